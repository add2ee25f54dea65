"""Results about a declaration: listed, shown, priced, calibrated, verified. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from privcheck.declare.statements import JudgedStatement, Origin, Statement
from privcheck.pricing.figures import LeastNoise, Method
from privcheck.reports.values.result import AgentConstant, Result
from privcheck.verification.findings import Finding, Ground, PlainWitness

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.pictures import Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedParameter:
    """A parameter or option of an algorithm, as `privcheck list` names it."""

    name: str
    default: str
    kind: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedChoice:
    """A reading of an ambiguous text."""

    name: str
    readings: tuple[str, ...]
    default: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A registered algorithm.

    Attributes:
        name: Name on the command line.
        title: Title in one line.
        source: Paper and algorithm.
        model: Model of trust; None for a non-private baseline.
        claim: Claim in words; None for a non-private baseline.
        parameters: Parameters of the declaration, then options of the agent.
        choices: Choices of readings.
        agent: Whether it has an agent to run.
        constants: Constants of the agent in both presets.
        paper: Title of its judged paper; None if there is none.
        error: Why the algorithm cannot be loaded, with the other fields empty; None if it can be.
    """

    name: str
    title: str
    source: str
    model: str | None
    claim: str | None
    parameters: tuple[ListedParameter, ...]
    choices: tuple[ListedChoice, ...]
    agent: bool
    constants: tuple[AgentConstant, ...] = ()
    paper: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Listing(Result):
    """Result of `privcheck list`."""

    algorithms: tuple[Listed, ...]

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per algorithm.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame([
            {"name": one.name, "title": one.title, "claim": one.claim, "model": one.model, "agent": one.agent}
            for one in self.algorithms
        ])  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRelease:
    """One declared release.

    Attributes:
        name: Name of the release.
        statistic: The released statistic.
        latex: Statistic and noise, in LaTeX.
        shape: Shape of the statistic.
        mechanism: Mechanism in words.
        source: Place in the paper.
        schedule: When it is released.
        users: Users whose data it contains; None for all users.
        stated: Sensitivity stated in the paper; None if there is none.
        preconditions: Conditions on the data.
    """

    name: str
    statistic: str
    latex: str
    shape: tuple[int, ...]
    mechanism: str
    schedule: str = ""
    users: str | None = None
    stated: str | None
    source: str
    preconditions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInput:
    """Input of a step of a derivation."""

    symbol: str
    value: str
    latex: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationStep:
    """One step from sensitivity to cost.

    Attributes:
        rule: Name of the rule.
        theorem: Theorem behind it.
        where: Name of the release.
        symbol: Symbol of the result, in LaTeX.
        text: Explanation.
        inputs: Inputs of the step.
        latex: The whole equation, in LaTeX.
        mathml: Right-hand side, in MathML.
        result: Right-hand side as text.
    """

    rule: str
    theorem: str
    where: str
    symbol: str
    text: str
    inputs: tuple[StepInput, ...] = ()
    latex: str
    mathml: str
    result: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostTrend:
    """Trend of the cost in one parameter, and the method that found it."""

    parameter: str
    trend: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceLine:
    """A line of the printed pseudo-code beside the agent under the preset `paper`.

    Attributes:
        line: Its number, after the algorithm's.
        says: Its content, in a phrase.
        code: The function that does it; empty if there is none.
        here: "as printed" or "deviates: …", with what the paper leaves open.
    """

    line: str
    says: str
    code: str
    here: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Shown(Result):
    """A declaration in words and LaTeX, with the derivation of its cost, its agent's constants and printed lines."""

    name: str
    title: str
    source: str
    model: str
    relation: str
    releases: tuple[ShownRelease, ...]
    claim: str
    claim_latex: str
    latex: str
    derivation: tuple[DerivationStep, ...]
    trends: tuple[CostTrend, ...] = ()
    constants: tuple[AgentConstant, ...] = ()
    unit: Mapping[str, Any] | None = None
    origin: Origin | None = None
    statements: tuple[Statement, ...] = ()
    conformance: tuple[ConformanceLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSensitivity:
    """Sensitivity of a release: in both norms, rounded up, and the charged one as an expression, with the reason."""

    l1: float
    l2: float
    charged: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePrice:
    """Cost of a release, rounded up; None if there is no finite cost in that currency."""

    rho: float | None
    pure_epsilon: float | None
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRelease:
    """One release with its price.

    Attributes:
        name: Name of the release.
        count: Number of outputs with the data of one user.
        schedule: When it is released.
        users: Users whose data it contains; None for all users.
        sensitivity: Its sensitivity.
        mechanism: Mechanism in words.
        std: Standard deviation of the noise.
        cost: Its cost.
    """

    name: str
    count: int
    schedule: str = ""
    users: str | None = None
    sensitivity: ReleaseSensitivity
    mechanism: str
    std: float
    cost: ReleasePrice


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalCost:
    """Cost of all releases together, rounded up; None if there is no finite bound in a currency."""

    epsilon: float | None
    delta: float
    rho: float | None
    mu: float | None
    pure_epsilon: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCurve:
    """δ against ε: the accountant's upper bound and the claim.

    Attributes:
        epsilon: ε, ascending.
        delta_upper: The accountant's δ at each.
        delta_claim: The claim's δ at each.
        claimed: ε that the claim allows at `claimed_at`; None if it allows every finite ε, and in older reports.
        claimed_at: 0 for a pure claim, else the δ of the budget.
    """

    epsilon: tuple[float, ...]
    delta_upper: tuple[float, ...]
    delta_claim: tuple[float, ...]
    claimed: float | None = None
    claimed_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Budget(Result):
    """Cost of the declared releases.

    Attributes:
        algorithm: Name of the algorithm.
        parameters: Values of its parameters.
        relation: The neighbours, in words.
        model: Model of trust.
        releases: Cost by release.
        guarantee: Total cost.
        methods: ε by each method of accounting.
        unit: Unit of privacy: protected user, number of trajectories, relation, model, and who stated it.
        curve: δ(ε), for reports.
    """

    algorithm: str
    parameters: Mapping[str, str]
    relation: str
    model: str
    releases: tuple[BudgetRelease, ...]
    guarantee: TotalCost
    methods: tuple[Method, ...]
    unit: Mapping[str, Any] | None = None
    curve: DeltaCurve | None = None

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per release.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame([
            {
                "release": one.name, "outputs": one.count, "sensitivity": one.sensitivity.charged,
                "mechanism": one.mechanism, "std": one.std, "rho": one.cost.rho,
                "pure_epsilon": one.cost.pure_epsilon, "cost": one.cost.expression,
            }
            for one in self.releases
        ])  # fmt: skip

    def plot(self) -> Picture:
        """Plot of δ against ε, for a budget with its curve.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTarget:
    """The (ε, δ) to calibrate to."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """Certified ε of the needed noise at δ, with the method and the relative tolerance of the minimum."""

    epsilon: float
    delta: float
    method: str
    direction: str
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CalibratedNoise(Result):
    """The least noise for a target, also with Gaussian noise or disjoint batches instead if those differ."""

    algorithm: str
    parameters: Mapping[str, str]
    target: CalibrationTarget
    releases: tuple[LeastNoise, ...]
    guarantee: Certified
    gaussian: tuple[LeastNoise, ...] | None = None
    batches: tuple[LeastNoise, ...] | None = None
    unit: Mapping[str, Any] | None = None

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per release and variant (declared, Gaussian, batches).

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        ways = {"declared": self.releases, "gaussian": self.gaussian or (), "batches": self.batches or ()}
        return make_frame([
            {
                "way": way, "release": one.name, "law": one.law, "published_std": one.published_std,
                "needed_std": one.needed_std, "ratio": one.ratio,
            }
            for way, rows in ways.items()
            for one in rows
        ])  # fmt: skip

    def plot(self) -> Picture:
        """Plot of the least noise beside the published noise.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerdictFinding(Finding):
    """A finding with its witness in plain values."""

    witness: PlainWitness | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateBrief:
    """The certificate of a result, and what the independent checker said of it.

    Attributes:
        accepted: Whether `privcheck_check`, in a process of its own, accepted it.
        says: Its sentence; or "not certified: " and the reason.
        kind: Kind of the certificate; empty without one.
        digest: SHA-256 of the certificate's canonical JSON; empty without one.
    """

    accepted: bool
    says: str
    kind: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verified(Result):
    """The verdict on a claim; see `privcheck.verification.verdict.Verification`."""

    algorithm: str
    parameters: Mapping[str, str]
    claim: str
    verdict: Literal["holds", "fails", "undecided"]
    joint: Literal["follows", "unproved", "refuted"] | None
    method: Literal["proved", "checked", "witness"]
    origin: Origin | None = None
    statements: tuple[JudgedStatement, ...] = ()
    unit: Mapping[str, Any] | None = None
    unit_words: str = ""
    given: tuple[str, ...] = ()
    rests_on: tuple[Ground, ...] = ()
    upper_ratio: float
    lower_ratio: float
    findings: tuple[VerdictFinding, ...]
    witness: PlainWitness | None
    repair: str
    sentence: str
    certificate: CertificateBrief | None = None

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per finding.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        names = ("code", "severity", "where", "message")
        return make_frame({name: [getattr(one, name) for one in self.findings] for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Unverified:
    """A registered algorithm that could not be judged.

    Attributes:
        algorithm: Name of the algorithm.
        error: The kind of failure, in one word.
        message: What failed, and where.
    """

    algorithm: str
    error: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AllVerified(Result):
    """Result of `privcheck verify --all`.

    Attributes:
        results: The verdicts.
        errors: The algorithms without a verdict, because their package is broken.
    """

    results: tuple[Verified, ...]
    errors: tuple[Unverified, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per algorithm.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        names = ("algorithm", "verdict", "method", "given", "joint", "upper_ratio", "lower_ratio", "claim")
        return make_frame({name: [getattr(one, name) for one in self.results] for name in names})
