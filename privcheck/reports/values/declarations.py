"""Results about a declaration: listed, shown, accounted, calibrated, verified. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from privcheck.declare.statements import JudgedStatement, Origin, Statement
from privcheck.reports.values.result import AgentConstant, Result
from privcheck.support.display import Brief

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
        name: What users type.
        title: One line.
        source: Paper and algorithm.
        model: Of trust; None for a non-private baseline.
        claim: In words; None for a non-private baseline.
        parameters: The declaration's, then the agent's options.
        choices: The readings.
        agent: Whether there is one to run.
        constants: The agent's, in both presets.
        paper: Title of the judged paper that it is from; None where it is from none.
        error: Why the algorithm cannot be loaded; None where it can. Its other fields are then empty.
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
    """What `privcheck list` prints."""

    algorithms: tuple[Listed, ...]

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row an algorithm.

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
        name: Its name.
        statistic: What is released.
        latex: Statistic and noise.
        shape: Of the statistic.
        mechanism: In words.
        source: Where the paper says so.
        schedule: When it is released.
        users: Whose data it holds; None where everybody's.
        stated: The sensitivity that the paper states; None where it states none.
        preconditions: What the data must satisfy.
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
    """What a step of a derivation was computed from."""

    symbol: str
    value: str
    latex: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivationStep:
    """One step from sensitivity to cost.

    Attributes:
        rule: Its name.
        theorem: What it rests on.
        where: Of which release.
        symbol: Of the result, in LaTeX.
        text: Why.
        inputs: What it was computed from.
        latex: The whole equation.
        mathml: Its right-hand side.
        result: The same as text.
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
    """How the cost moves with one parameter, and how that is known."""

    parameter: str
    trend: str
    method: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Shown(Result):
    """A declaration in words and LaTeX, with the derivation of its cost, and the agent's constants in both presets."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSensitivity:
    """How far one user moves a release: in both norms, rounded up, and the charged one as an expression, with why."""

    l1: float
    l2: float
    charged: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePrice:
    """What a release costs, rounded up; None where it has no finite cost in that currency."""

    rho: float | None
    pure_epsilon: float | None
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRelease:
    """One release with its price.

    Attributes:
        name: Its name.
        count: Outputs that hold one user.
        schedule: When it is released.
        users: Whose data it holds; None where everybody's.
        sensitivity: How far one user moves it.
        mechanism: In words.
        std: The noise's standard deviation.
        cost: What it costs.
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
    """What all releases cost together, rounded up; None where there is no finite bound in a currency."""

    epsilon: float | None
    delta: float
    rho: float | None
    mu: float | None
    pure_epsilon: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodBound:
    """ε by one method of accounting, and which way it errs."""

    name: str
    epsilon: float
    direction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaCurve:
    """δ against ε, as the accountant bounds it from above and as it is claimed."""

    epsilon: tuple[float, ...]
    delta_upper: tuple[float, ...]
    delta_claim: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Budget(Result):
    """What the declared releases cost.

    Attributes:
        algorithm: Whose.
        parameters: At which values.
        relation: The neighbours, in words.
        model: Of trust.
        releases: Release by release.
        guarantee: All together.
        methods: ε by each method of accounting.
        unit: Of privacy: who is protected, how many trajectories, relation, model, on whose word.
        curve: δ(ε), for reports.
    """

    algorithm: str
    parameters: Mapping[str, str]
    relation: str
    model: str
    releases: tuple[BudgetRelease, ...]
    guarantee: TotalCost
    methods: tuple[MethodBound, ...]
    unit: Mapping[str, Any] | None = None
    curve: DeltaCurve | None = None

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a release.

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
        """Returns δ against ε, of a budget that was asked for with its curve.

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
class NeededNoise:
    """The declared and the needed standard deviation of one release's noise, and the second over the first."""

    name: str
    law: str
    published_std: float
    needed_std: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Certified:
    """The ε that the needed noise is certified to have at δ, by which method, least up to a relative tolerance."""

    epsilon: float
    delta: float
    method: str
    direction: str
    tolerance: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CalibratedNoise(Result):
    """The least noise for a target; with Gaussian noise or disjoint batches instead where that is another question."""

    algorithm: str
    parameters: Mapping[str, str]
    target: CalibrationTarget
    releases: tuple[NeededNoise, ...]
    guarantee: Certified
    gaussian: tuple[NeededNoise, ...] | None = None
    batches: tuple[NeededNoise, ...] | None = None
    unit: Mapping[str, Any] | None = None

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a release and way of releasing it.

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
        """Returns the least noise beside the published one.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictGround:
    """A fact that a verdict rests on; see `privcheck.verification.grounds.Ground`."""

    basis: str
    where: str
    what: str
    by: str
    kind: str = ""
    checked_where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How far a pair of neighbours moves one release; the ℓ₂ distance squared."""

    l1: float
    l2_squared: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VerdictWitness(Brief):
    """A pair of neighbours with its exact loss.

    Attributes:
        words: What they are.
        loss: In the claim's unit.
        changes: By release.
        group: The user's group in a partition of the users; None without one.
        pair: The user in D and in D′: columns by name, None where there is no such user; None where it is too long.
    """

    words: str
    loss: float
    changes: Mapping[str, Change]
    group: str | None = None
    pair: tuple[Mapping[str, Any] | str | None, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFinding:
    """A finding; see `privcheck.verification.rules`."""

    code: str
    severity: Literal["critical", "theoretical", "negligible"]
    where: str
    message: str
    evidence: Mapping[str, str]
    witness: VerdictWitness | None = None


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
    rests_on: tuple[VerdictGround, ...] = ()
    upper_ratio: float
    lower_ratio: float
    findings: tuple[VerdictFinding, ...]
    witness: VerdictWitness | None
    repair: str
    sentence: str

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a finding.

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
        algorithm: Its name.
        error: The kind of failure, in one word.
        message: What failed, and where.
    """

    algorithm: str
    error: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AllVerified(Result):
    """What `privcheck verify --all` prints.

    Attributes:
        results: The verdicts.
        errors: The algorithms without a verdict, because their package is broken.
    """

    results: tuple[Verified, ...]
    errors: tuple[Unverified, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row an algorithm.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        names = ("algorithm", "verdict", "method", "given", "joint", "upper_ratio", "lower_ratio", "claim")
        return make_frame({name: [getattr(one, name) for one in self.results] for name in names})
