"""Report values: what commands compute and reports show, typed; one encoder to JSON and one decoder."""

from privcheck.reports.values.audited import Audited, Audits, together
from privcheck.reports.values.codec import SCHEMA, document, from_json, to_json
from privcheck.reports.values.declared import (
    Budget,
    BudgetRelease,
    CalibratedNoise,
    CalibrationTarget,
    Certified,
    CostTrend,
    DeltaCurve,
    DerivationStep,
    Listed,
    ListedChoice,
    ListedParameter,
    Listing,
    MethodBound,
    NeededNoise,
    ReleasePrice,
    ReleaseSensitivity,
    Shown,
    ShownRelease,
    StepInput,
    TotalCost,
)
from privcheck.reports.values.learned import (
    Band,
    Compared,
    LearnedValue,
    LedgerRelease,
    LedgerSummary,
    OdometerReading,
    Ran,
    RanOnline,
    Regret,
    RunCurves,
    RunRemark,
    SpentCost,
)
from privcheck.reports.values.report import About, Diagnosis, Provenance, RenderedReport, Report, VerdictBrief
from privcheck.reports.values.verified import (
    AllVerified,
    Change,
    VerdictFinding,
    VerdictGround,
    VerdictWitness,
    Verified,
)

__all__ = [
    "SCHEMA", "About", "AllVerified", "Audited", "Audits", "Band", "Budget", "BudgetRelease", "CalibratedNoise",
    "CalibrationTarget", "Certified", "Change", "Compared", "CostTrend", "DeltaCurve", "DerivationStep",
    "Diagnosis", "LearnedValue", "LedgerRelease", "LedgerSummary", "Listed", "ListedChoice", "ListedParameter",
    "Listing", "MethodBound", "NeededNoise", "OdometerReading", "Provenance", "Ran", "RanOnline", "Regret",
    "ReleasePrice", "ReleaseSensitivity", "RenderedReport", "Report", "RunCurves", "RunRemark", "Shown",
    "ShownRelease", "SpentCost", "StepInput", "TotalCost", "VerdictBrief", "VerdictFinding", "VerdictGround",
    "VerdictWitness", "Verified", "document", "from_json", "to_json", "together",
]  # fmt: skip
