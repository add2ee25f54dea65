"""A whole report, its audits, its policy and its publication. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from privcheck.reports.values.declarations import Budget, CalibratedNoise, Shown, TotalCost, Verified
from privcheck.reports.values.result import Result, take_fields
from privcheck.reports.values.runs import Ran, RanOnline, SpentCost
from privcheck.runtime.results import AuditResult
from privcheck.support.encoding import SCHEMA
from privcheck.terms.unit import Unit

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.pictures import Picture


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audited(Result, AuditResult):
    """One audit, with the algorithm, its claim, and the speed."""

    trials_per_second: float

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per view.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        views = self.views.values() if isinstance(self, Audits) else (self,)
        names = ("algorithm", "view", "verdict", "epsilon_lower", "epsilon_upper", "epsilon_claimed", "delta",
                 "trials", "confidence")  # fmt: skip
        return make_frame([{name: getattr(view, name) for name in names} for view in views])

    def plot(self) -> Picture:
        """Plots: trade-off curve, bound against the number of trials, and one ratio per release.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audits(Audited):
    """The audits of a report: the fields of the first view, and every view by name."""

    views: Mapping[str, Audited] = field(default_factory=dict)


def together(views: Mapping[str, Audited]) -> Audits | None:
    """Join audits of several views as one section of a report; None if there are none."""
    first = next(iter(views.values()), None)
    return None if first is None else take_fields(Audits, first, views=views)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The version of privcheck that made a report, and the version of the report's format."""

    version: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictBrief:
    """The verdict in brief."""

    verdict: Literal["holds", "fails", "undecided"]
    method: Literal["proved", "checked", "witness"]
    sentence: str
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Versions, seeds, command line, start and duration."""

    versions: Mapping[str, str]
    seeds: Mapping[str, int]
    command: str
    started: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report(Result):
    """Content of a page; a section that is None was not requested, or does not exist.

    Attributes:
        privcheck: Version of privcheck and of the format.
        algorithm: Name of the algorithm.
        title: Its title, in one line.
        source: Paper and algorithm.
        model: Model of trust.
        parameters: Parameters of the declaration.
        options: Options of the agent.
        choices: Chosen readings.
        verdict: The verdict in brief.
        show: The declaration.
        budget: Cost of its releases.
        verify: The verdict in full.
        calibrate: The least noise for the same guarantee.
        audit: Every audit.
        run: The run of the agent.
        provenance: Versions, seeds, command line, start and duration.
        unit: Unit of privacy of the declaration.
    """

    privcheck: About
    algorithm: str = ""
    title: str = ""
    source: str = ""
    model: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    verdict: VerdictBrief | None = None
    show: Shown | None = None
    budget: Budget | None = None
    verify: Verified | None = None
    calibrate: CalibratedNoise | None = None
    audit: Audits | None = None
    run: Ran | RanOnline | None = None
    provenance: Provenance | None = None
    unit: Mapping[str, Any] | None = None

    def plot(self) -> Picture:
        """All plots of its page.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedReport:
    """Result of `privcheck report`: the path of the page."""

    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPackage:
    """Result of `privcheck new`.

    Attributes:
        name: Name of the algorithm.
        kind: Kind of package, such as "online".
        directory: Folder of the package.
        files: All written files.
    """

    name: str
    kind: str
    directory: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Result of `privcheck doctor`.

    Attributes:
        ok: Whether there is no problem.
        problems: The problems, in words.
        versions: Versions of Python and the packages.
        platform: The operating system.
        executable: Path of the Python interpreter.
        cores: Number of cores of the machine; None if unknown.
        extras: Whether each optional part is installed, in words, by name.
        noise_sources: Sources of noise in words, by name.
        registered: Registered names by group.
    """

    ok: bool
    problems: tuple[str, ...]
    versions: Mapping[str, str]
    platform: str
    executable: str
    cores: int | None
    extras: Mapping[str, str]
    noise_sources: Mapping[str, str]
    registered: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLabels:
    """Names of states and actions, in the order of their codes; None if there are only codes."""

    states: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGuarantee:
    """Why a policy may be published, or why not.

    Attributes:
        claim: The claim about the releases it was learned from.
        relation: Neighbouring relation, in words.
        unit: Protected unit, and who stated it; None in files of earlier versions.
        spent: Cost of the run's ledger to one such unit.
        noise: Source of the noise.
        protects: Whether noise of that source protects the users; simulated noise does not.
        compared: Quantities that lockstep found to be equal on neighbours with the same billboards, and the number of
            pairs; empty if nothing was compared or something differed: then there is no evidence that the agent's
            output depends on the data only through its releases.
        ledger: Last hash of the ledger's chain.
    """

    claim: str
    relation: str
    unit: Unit | None = None
    spent: SpentCost | None
    noise: str
    protects: bool
    compared: str = ""
    ledger: str

    @property
    def publishable(self) -> bool:
        """Whether the noise protects and the agent's output was compared."""
        return self.protects and bool(self.compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """Value of a policy.

    Attributes:
        true: Its exact expected return; None without a model.
        claimed: The agent's own pessimistic estimate; None if it makes none.
        note: How to read these values.
    """

    true: float | None
    claimed: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPolicy:
    """Result of `privcheck policy FILE`.

    Attributes:
        policy: The file of the probabilities.
        algorithm: Algorithm that learned it.
        learned_from: Name of the data or the environment.
        labels: Names of states and actions; their codes if they have no names.
        guarantee: Why it may be published; None for an agent without privacy.
        value: Its value.
        warnings: Uses of the data that no noise covers.
        rows: State, steps, likeliest action and its probability; equal steps of a state are one row. Empty for a policy
            on observations.
        form: Its form, and the number of its parameters, if it is one; empty otherwise.
        picture: File of the heat map; None if not requested.
    """

    policy: str
    algorithm: str
    learned_from: str
    labels: PolicyLabels
    guarantee: PolicyGuarantee | None
    value: PolicyValue
    warnings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...]
    form: Mapping[str, str] = field(default_factory=dict)
    picture: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PolicyRecord(Result):
    """Content of policy.json.

    Attributes:
        policy: The file of the probabilities, beside this one.
        digest: SHA-256 of that file.
        algorithm: Algorithm that learned it.
        learned_from: Name of the data or the environment.
        steps: Number of steps, H.
        states: Number of states, S; 0 for a policy on observations.
        actions: Number of actions, A.
        labels: Names of states and actions.
        parameters: Parameters of the declaration, as exact texts.
        options: Options of the agent.
        choices: The readings of the paper, by name; empty in files of earlier versions.
        form: For a policy on observations, what its parameters are: its kind and sizes, how it sees observations, the
            numbers of its actions. None for a table of probabilities.
        guarantee: Why it may be published; None for an agent without privacy.
        value: Its value.
        warnings: Uses of the data that no noise covers: sizes taken from the data, choices that depend on it.
        versions: Versions of privcheck and its dependencies.
        made: Time in UTC; empty with release noise, because the duration of work on exact data is not a function of the
            releases.
    """

    policy: str
    digest: str
    algorithm: str
    learned_from: str
    steps: int
    states: int
    actions: int
    labels: PolicyLabels = field(default_factory=PolicyLabels)
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Any] | None = None
    guarantee: PolicyGuarantee | None
    value: PolicyValue
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    made: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file of the folder, with its SHA-256 in hexadecimal."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact:
    """An assumption of the guarantee that was not derived.

    Attributes:
        what: The fact.
        by: Who stated it, or which input check enforces it.
        kind: "stated by the author", "assumed about data", a "public fact" or "modelling".
        where: The release, or "all releases".
    """

    what: str
    by: str
    kind: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """Record of the releases behind a policy: file, last hash of the chain, number of slices."""

    file: str
    head: str
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PublishedGuarantee(Result):
    """Content of guarantee.json.

    Attributes:
        policy: SHA-256 of policy.npz.
        algorithm: Algorithm that learned the policy.
        unit: Protected unit, and who stated it.
        unit_words: The same in words.
        relation: Neighbouring relation, in words.
        model: Model of trust.
        cost: Upper bounds on the cost to one protected unit: ε at δ, ρ, μ, pure ε.
        guessed_right: Upper bound on the probability of guessing right between two equally likely records of one user.
        claim: The claim about the releases.
        verdict: Verdict on that claim for the discrete mechanism of the run; always "holds".
        joint: What follows for joint DP; None if joint DP is not claimed.
        rests_on: Assumptions that were not derived.
        compared: Quantities that lockstep found to be equal on neighbours.
        not_covered: Warnings about data that no noise covers, accepted by the publisher.
        noise: Source of the noise.
        record: Record of the releases.
        receipt: File of a team's signed receipt; None if no budget was charged.
    """

    policy: str
    algorithm: str
    unit: Unit
    unit_words: str
    relation: str
    model: str
    cost: TotalCost
    guessed_right: float
    claim: str
    verdict: VerdictBrief
    joint: str | None
    rests_on: tuple[StatedFact, ...]
    compared: str
    not_covered: tuple[str, ...]
    noise: str
    record: RecordHead
    receipt: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Published(Result):
    """Result of `privcheck publish`.

    Attributes:
        folder: Folder of the files.
        files: Every file with its digest; the digest of SHA256SUMS covers all others.
        guarantee: Content of guarantee.json.
        unit: Protected unit.
        withheld: Parts of the run that were left out.
    """

    folder: str
    files: tuple[PublishedFile, ...]
    guarantee: PublishedGuarantee
    unit: Unit
    withheld: tuple[str, ...]
