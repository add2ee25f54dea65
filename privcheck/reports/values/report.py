"""A whole report, the audits in it, the policy beside it and what is published. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from privcheck.reports.values.declarations import Budget, CalibratedNoise, Shown, TotalCost, Verified
from privcheck.reports.values.result import Result
from privcheck.reports.values.runs import Ran, RanOnline, SpentCost
from privcheck.runtime.audit_pictures import Bars, History, ShownPair, TradeOff
from privcheck.support.encoding import SCHEMA
from privcheck.terms.unit import Unit

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.pictures import Picture


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audited(Result):
    """One audit; see `privcheck.runtime.results.AuditResult`.

    Attributes:
        algorithm: Whose releases or agent.
        view: Which audit.
        trials: N, runs under each neighbour.
        confidence: 1 − α of the whole audit.
        delta: At which the three ε are.
        epsilon_lower: The loss is at least this; None where the view bounds no ε.
        epsilon_upper: The accountant's bound; None where there is none.
        epsilon_claimed: What the claim allows; None where it allows everything.
        verdict: At the parameters asked for.
        reachable: What the best test could have certified with as many runs.
        method: The test.
        witness: The neighbours, in words.
        evidence: Figures behind the verdict, by name.
        seconds: Wall time.
        trials_per_second: Runs a second, 2N in all.
        claim: What was claimed.
        seed: Of the trials.
        agent_ran: Whether the registered agent itself was run; otherwise what was audited are its releases as declared.
            None where an older report does not say.
        asks: What the view asks, in a sentence.
        leaves_open: What a result without a violation does not say.
        audited_at: The parameters that were audited, where they are not those asked for.
        trade_off: Picture; no verdict rests on this nor on the following.
        history: Picture.
        pair: Picture.
        bars: Picture.
    """

    algorithm: str = ""
    view: str
    trials: int
    confidence: float
    delta: float
    epsilon_lower: float | None
    epsilon_upper: float | None
    epsilon_claimed: float | None
    verdict: Literal["violation", "consistent", "undecided"]
    reachable: float | None
    method: str
    witness: str
    evidence: Mapping[str, Any]
    seconds: float
    trials_per_second: float
    claim: str = ""
    seed: int = 0
    agent_ran: bool | None = None
    asks: str = ""
    leaves_open: str = ""
    audited_at: str | None = None
    trade_off: TradeOff | None = None
    history: History | None = None
    pair: ShownPair | None = None
    bars: Bars | None = None

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a view.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        views = self.views.values() if isinstance(self, Audits) else (self,)
        names = ("algorithm", "view", "verdict", "epsilon_lower", "epsilon_upper", "epsilon_claimed", "delta",
                 "trials", "confidence")  # fmt: skip
        return make_frame([{name: getattr(view, name) for name in names} for view in views])

    def plot(self) -> Picture:
        """Returns trade-off curve, bound against the number of trials, a ratio a release.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Audits(Audited):
    """The audits of a report: the first view's own fields, and every view by name."""

    views: Mapping[str, Audited] = field(default_factory=dict)


def together(views: Mapping[str, Audited]) -> Audits | None:
    """Returns audits of several views as one section of a report; None where there are none."""
    first = next(iter(views.values()), None)
    if first is None:
        return None
    return Audits(**{one.name: getattr(first, one.name) for one in fields(Audited)}, views=views)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """Which version of privcheck made a report, and the form that it has."""

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
    """What a page shows; a section that is None was not asked for, or there is none.

    Attributes:
        privcheck: Who made it.
        algorithm: Its name.
        title: One line about it.
        source: Paper and algorithm.
        model: Of trust.
        parameters: The declaration's.
        options: The agent's.
        choices: The readings.
        verdict: In brief.
        show: The declaration.
        budget: What it costs.
        verify: The verdict.
        calibrate: The least noise for the same guarantee.
        audit: Every audit.
        run: What the agent learned.
        provenance: Where it comes from.
        unit: Of privacy, of the declaration.
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
        """Returns all plots of its page.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedReport:
    """What `privcheck report` prints: where the page is."""

    html: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPackage:
    """What `privcheck new` prints.

    Attributes:
        name: Of the algorithm.
        kind: Of package: "online" and so on.
        directory: Where the package is.
        files: All that were written.
    """

    name: str
    kind: str
    directory: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What `privcheck doctor` prints.

    Attributes:
        ok: Whether there is no problem.
        problems: In words.
        versions: Of Python and the packages.
        platform: The operating system.
        executable: Python's.
        cores: Of the machine; None where nobody says.
        extras: Whether each optional part is installed, in words, by name.
        noise_sources: In words, by name.
        registered: Names by group.
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
    """What users call states and actions, in the order of their codes; None where codes are all there is."""

    states: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGuarantee:
    """Why a policy may be published, or why not.

    Attributes:
        claim: What is claimed of the releases that it was learned from.
        relation: Between which data.
        unit: Who is protected, on whose word; None in files of earlier versions, which did not say.
        spent: What the run's ledger has cost one of them.
        noise: Where the noise came from.
        protects: Whether noise of that source protects anybody; simulated noise does not.
        compared: What lockstep has found to be the same on neighbours behind the same billboards, on how many pairs;
            empty where nothing was compared, or something was not the same: then nothing says that the agent handed
            back functions of its releases alone.
        ledger: The last link of the ledger's hash chain.
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
        """Whether the noise protects, and what was handed back was compared."""
        return self.protects and bool(self.compared)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyValue:
    """What a policy is worth.

    Attributes:
        true: Its expected return, where a model says; None where nobody knows it.
        claimed: The agent's own pessimistic estimate; None where it makes none.
        note: How to read these.
    """

    true: float | None
    claimed: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPolicy:
    """What `privcheck policy FILE` prints.

    Attributes:
        policy: The file of the probabilities.
        algorithm: What learned it.
        learned_from: The data or the environment.
        labels: What users call states and actions, their codes where they have no other name.
        guarantee: None for an agent without privacy.
        value: What it is worth.
        warnings: What no noise covers.
        rows: State, steps, likeliest action and its probability; equal steps of a state are one row.
        picture: The file of the heat map; None where none was asked for.
    """

    policy: str
    algorithm: str
    learned_from: str
    labels: PolicyLabels
    guarantee: PolicyGuarantee | None
    value: PolicyValue
    warnings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...]
    picture: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PolicyRecord(Result):
    """What policy.json holds.

    Attributes:
        policy: The file of the probabilities, beside this one.
        digest: SHA-256 of that file.
        algorithm: What learned it.
        learned_from: The data or the environment.
        steps: H.
        states: S.
        actions: A.
        labels: What users call them.
        parameters: Of the declaration, exact.
        options: Of the agent.
        choices: The readings of the paper, by name; empty in files of earlier versions.
        guarantee: None for an agent without privacy.
        value: What it is worth.
        warnings: What no noise covers: sizes that were taken from the data, choices that looked at it.
        versions: Of privcheck and what it stands on.
        made: When, in UTC; empty with release noise: how long exact data took is no function of the releases.
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
    """A fact that the guarantee rests on and that was not derived.

    Attributes:
        what: The fact.
        by: On whose word it is, or which door checks it.
        kind: "stated by the author", "assumed about data", a "public fact" or "modelling".
        where: The release, or "all releases".
    """

    what: str
    by: str
    kind: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHead:
    """The record of the releases that a policy was learned from: its file, its last link, its number of slices."""

    file: str
    head: str
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PublishedGuarantee(Result):
    """What guarantee.json holds.

    Attributes:
        policy: SHA-256 of policy.npz.
        algorithm: What learned the policy.
        unit: Who is protected, on whose word.
        unit_words: The same in words.
        relation: Between which data.
        model: Of trust.
        cost: What the releases cost one of those who are protected: ε at δ, ρ, μ, pure ε; upper bounds.
        guessed_right: How often at most a guess between two equally likely records of one user is right.
        claim: What was claimed of the releases.
        verdict: On that claim, of the discrete mechanism that was drawn; always "holds".
        joint: What follows for joint DP; None where nothing of the kind is claimed.
        rests_on: The facts that were not derived.
        compared: What lockstep found to be the same on neighbours.
        not_covered: What no noise covers, as the publisher accepted it.
        noise: Where the noise came from.
        record: Of the releases.
        receipt: The file of a team's signed receipt; None where no budget was charged.
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
    """What `privcheck publish` prints.

    Attributes:
        folder: Where the files are.
        files: Every file with its digest; that of SHA256SUMS stands for all.
        guarantee: As in guarantee.json.
        unit: Who is protected.
        withheld: What of the run was left out.
    """

    folder: str
    files: tuple[PublishedFile, ...]
    guarantee: PublishedGuarantee
    unit: Unit
    withheld: tuple[str, ...]
