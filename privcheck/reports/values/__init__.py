"""Report values: what commands compute and reports show, typed; one encoder to JSON and one decoder."""

from privcheck.reports.values.audited import Audited, Audits, together
from privcheck.reports.values.codec import SCHEMA, document, from_json, to_json
from privcheck.reports.values.declared import (
    AllVerified,
    Budget,
    BudgetRelease,
    Calibrated,
    Certified,
    Change,
    DeltaCurve,
    DerivationStep,
    Guarantee,
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
    Target,
    Trend,
    VerdictFinding,
    VerdictGround,
    VerdictWitness,
    Verified,
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
from privcheck.reports.values.report import About, Judged, Provenance, Report

__all__ = [
    "SCHEMA", "About", "AllVerified", "Audited", "Audits", "Band", "Budget", "BudgetRelease", "Calibrated", "Certified",
    "Change", "Compared", "DeltaCurve", "DerivationStep", "Guarantee", "Judged", "LearnedValue", "LedgerRelease",
    "LedgerSummary", "Listed", "ListedChoice", "ListedParameter", "Listing", "MethodBound", "NeededNoise",
    "OdometerReading", "Provenance", "Ran", "RanOnline", "Regret", "ReleasePrice", "ReleaseSensitivity", "Report",
    "RunCurves", "RunRemark", "Shown", "ShownRelease", "SpentCost", "StepInput", "Target", "Trend", "VerdictFinding",
    "VerdictGround", "VerdictWitness", "Verified", "document", "from_json", "to_json", "together",
]  # fmt: skip
