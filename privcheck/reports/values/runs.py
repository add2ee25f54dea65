"""Results of runs: one agent, several side by side, a grid of parameters. The fields are those of the JSON.

The fields are those of the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from privcheck.errors import ParameterError
from privcheck.reports.values.result import NotLearned, PresetUsed, Result
from privcheck.support.display import Brief
from privcheck.terms.unit import Unit

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.pictures import Picture
    from privcheck.reports.policies import Policy


def _made(policy: Policy | None) -> Policy:
    if policy is None:
        raise ParameterError("a result from a file has no policy in it: `privcheck.load_policy(directory)` reads it")
    return policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentCost:
    """What a run has cost, from its ledger; None where there is no finite bound in a currency.

    Attributes:
        rho: Σρ.
        pure_epsilon: Σε.
        mu: √Σμ².
        theorem: Why each of these sums bounds what has leaked; empty in older reports.
        note: Of what it is a guarantee; likewise.
    """

    rho: float | None
    pure_epsilon: float | None
    mu: float | None = None
    theorem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRelease:
    """One charged release of a ledger: law, scale and sensitivities that were charged, and its number of slices."""

    release: str
    law: str
    scale: float
    l1: float
    l2: float
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary:
    """What stands in a ledger.

    Attributes:
        path: Its file's name; None where it was not written.
        entries: Slices.
        digest: The last link of its hash chain.
        noise: Where the noise came from.
        as_declared: Whether it was fresh noise of the declared law; None where an older report does not say.
        protects: Whether the outputs may be published, as release noise alone allows; likewise.
        written: When: by the releases as they left, or before the run, as a plan of spending; empty in older reports.
        releases: Release by release.
    """

    path: str | None
    entries: int
    digest: str
    noise: str
    as_declared: bool | None = None
    protects: bool | None = None
    written: str = ""
    releases: tuple[LedgerRelease, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedValue:
    """The true value of what was learned, over replicates.

    Attributes:
        mean: None where nobody knows it.
        std: None for a single replicate.
        baseline: The non-private twin's; None where it must not be computed.
        optimal: The best policy's.
        references: Of known policies.
        claimed: The agent's own estimate.
        note: How to read these; None where there is nothing to say.
    """

    mean: float | None
    std: float | None
    baseline: float | None
    optimal: float | None
    references: Mapping[str, float]
    claimed: float
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far the learned policy is from the best one; None where the true values are not known.

    Attributes:
        mean: V* − V^π, over replicates.
        uniform: V* less the value of the policy that takes every action equally often.
        share_of_uniform: Mean over uniform; None where that is 0, too.
    """

    mean: float | None = None
    uniform: float | None = None
    share_of_uniform: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRemark:
    """What an agent says about its run, to be read before its figures."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ran(Result):
    """What an agent learned from data; see `privcheck.runtime.results.RunResult`."""

    algorithm: str
    environment: str
    description: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    replicates: int
    episodes: int | None  # None where their number is private, and the noise was drawn for a release
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    unit: Unit | None = None  # of privacy; None without privacy
    preset: PresetUsed | None = None
    did_not_learn: NotLearned | None = None
    value: LearnedValue
    gap: Gap = field(default_factory=Gap)
    spent: SpentCost | None
    ledger: LedgerSummary | None
    diagnostics: Mapping[str, float]
    compared: str = ""  # what was the same on neighbours behind the same billboards; empty: nothing was compared
    remarks: tuple[RunRemark, ...] = ()
    policy_file: str | None = None
    seconds: float
    episodes_per_second: float | None  # None where their number is
    _policy: Any = field(default=None, repr=False, compare=False)  # a Policy; in no document

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a policy: what it is worth and how that is known.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        value = self.value
        rows: list[tuple[str, float | None, float | None, str]] = [
            (self.algorithm, value.mean, value.std, "true"),
            (self.algorithm, value.claimed, None, "the agent's own estimate"),
            ("without privacy", value.baseline, None, "true"),
            *((name, known, None, "true") for name, known in value.references.items()),
        ]
        shown = [row for row in rows if row[1] is not None]
        return make_frame([dict(zip(("policy", "value", "std", "known"), row, strict=True)) for row in shown])

    def plot(self) -> Picture:
        """Returns the learned policy's value among those it is compared with.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)

    @property
    def policy(self) -> Policy:
        """Returns the first replicate's policy.

        Raises:
            ParameterError: The result was read from a file, which lies beside the policy's own.
        """
        return _made(self._policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Cumulative regret after all episodes.

    Attributes:
        mean: Over replicates.
        std: None for a single replicate.
        optimal: The optimum's, 0.
        maximum: K·V*, the most there could be.
        share: Mean over maximum; None where that is 0.
        twin: The non-private twin's name; None where there is none.
        baseline: Its mean regret; None where it was not run.
        baseline_value: The true expected return of its last policy, mean over replicates; likewise, and None in older
            reports.
        uniform: K·(V* − V^uniform), of the policy that takes every action equally often; None in older reports, as are
            the following.
        myopic: Of the policy that takes an action of the largest mean reward of the step.
        prior_only: Of the policy that plans with the true mean rewards and the public prior.
        share_of_uniform: Mean over uniform; None where that is 0, too.
    """

    mean: float
    std: float | None
    optimal: float
    maximum: float
    share: float | None
    twin: str | None
    baseline: float | None
    baseline_value: float | None = None
    uniform: float | None = None
    myopic: float | None = None
    prior_only: float | None = None
    share_of_uniform: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A curve over episodes: mean and standard deviation over replicates; no deviation for a single one."""

    mean: tuple[float, ...]
    std: tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunCurves(Brief):
    """Curves over episodes, at these numbers of episodes."""

    episodes: tuple[int, ...]
    regret: Band
    value: Band
    switches: Band

    def rows(self, **given: str) -> list[dict[str, Any]]:
        """Returns a row for each number of episodes: mean and standard deviation of each curve behind what is given."""
        curves = {"regret": self.regret, "value": self.value, "switches": self.switches}
        return [
            {
                **given,
                "episodes": episodes,
                **{name: band.mean[k] for name, band in curves.items()},
                **{f"{name}_std": None if band.std is None else band.std[k] for name, band in curves.items()},
            }
            for k, episodes in enumerate(self.episodes)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class OdometerReading:
    """What the user who has paid most has paid from an episode on."""

    episode: int
    rho: float | None
    pure_epsilon: float | None
    mu: float | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RanOnline(Result):
    """What an agent did that learns as it acts; see `privcheck.runtime.results.OnlineResult`."""

    algorithm: str
    title: str
    environment: str
    description: str
    facts: Mapping[str, Any]
    replicates: int
    episodes: int
    parameters: Mapping[str, str]
    options: Mapping[str, str]
    choices: Mapping[str, str]
    unit: Unit | None = None  # of privacy; None without privacy
    preset: PresetUsed | None = None
    did_not_learn: NotLearned | None = None
    optimal_value: float
    regret: Regret
    curves: RunCurves
    spent: SpentCost | None
    odometer: tuple[OdometerReading, ...] | None
    ledger: LedgerSummary | None
    diagnostics: Mapping[str, float]
    compared: str = ""  # as of `Ran`
    policy_file: str | None = None
    seconds: float
    episodes_per_second: float
    _policy: Any = field(default=None, repr=False, compare=False)  # a Policy; in no document

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a number of episodes.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame(self.curves.rows())

    def plot(self) -> Picture:
        """Returns regret, value, switches and privacy over episodes.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)

    @property
    def policy(self) -> Policy:
        """Returns the first replicate's last policy.

        Raises:
            ParameterError: The result was read from a file, which lies beside the policy's own.
        """
        return _made(self._policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedClaim:
    """A guarantee in a comparison's unit, and whether the algorithm's own claim holds.

    Attributes:
        view: Of whom the guarantee is: "joint" (the other users' view, where the billboard lemma applies), "releases"
            (what is released, where joint DP is claimed and does not follow), "local", "shuffle" or "central".
        relation: Which datasets are neighbours.
        claim: In its own unit, with its parameters' values.
        claimed: The ε that the claim implies at the common δ; None where it implies none, or has an unstated constant.
        epsilon: The accountant's ε of the declared releases at the common δ, rounded up; None where none is finite.
        verdict: On the claim, in its own unit.
        method: How the verdict was reached.
        given: Whose sensitivity or price their author states.
        joint: What follows for joint DP; None where nothing of the kind is claimed.
        sentence: The verdict in words.
    """

    view: Literal["joint", "releases", "local", "shuffle", "central"]
    relation: str
    claim: str
    claimed: float | None
    epsilon: float | None
    verdict: Literal["holds", "fails", "undecided"]
    method: Literal["proved", "checked", "witness"]
    given: tuple[str, ...] = ()
    joint: Literal["follows", "unproved", "refuted"] | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How an algorithm came off.

    Attributes:
        algorithm: Its name.
        guarantee: What it guarantees and claims; None for one that is not private.
        simulated: Whether its noise was simulated, which protects nobody.
        value: The true expected return of the policy that it had learned in the end, mean over replicates; None where
            nobody knows it.
        std: Of the same over replicates; None for a single one.
        replicates: Their number.
        optimum: The best policy's expected return; None where nobody knows it.
        uniform: Of the policy that takes every action equally often; likewise.
        share: Value over optimum; None where one of them is not known or the optimum is not above 0.
        lost: The regret of all episodes, or the gap of a policy learned from data, as a share of the uniform policy's.
        twin: The name of the same algorithm without privacy; None where there is none.
        twin_value: What that reaches with the same users and constants; None where it was not run.
        did_not_learn: Why nothing was learned; None where something was, or where nobody knows.
    """

    algorithm: str
    guarantee: PricedClaim | None
    simulated: bool
    value: float | None
    std: float | None
    replicates: int
    optimum: float | None
    uniform: float | None
    share: float | None
    lost: float | None
    twin: str | None = None
    twin_value: float | None = None
    did_not_learn: NotLearned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBy:
    """By what a comparison was made: command line, seeds by what they seeded, versions. It says nothing of the time."""

    command: str
    seeds: Mapping[str, int]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Compared(Result):
    """Several online agents in one environment.

    Attributes:
        environment: Where they acted.
        algorithms: Their names.
        results: Each one's run.
        delta: At which δ every ε of `standings` is; None in older documents.
        headline: Who learned at which guarantee, and why the others did not.
        standings: Each one's, in the order of the runs.
        made_by: By what it was made.
    """

    environment: str
    algorithms: tuple[str, ...]
    results: tuple[RanOnline, ...]
    delta: float | None = None
    headline: str = ""
    standings: tuple[Standing, ...] = ()
    made_by: MadeBy | None = None

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row an agent and number of episodes.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame([row for one in self.results for row in one.curves.rows(algorithm=one.algorithm)])

    def plot(self) -> Picture:
        """Returns value against ε, then regret, value and switches over episodes.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SweepPoint(Brief):
    """A point of the grid: one algorithm at one setting.

    Attributes:
        algorithm: Its name.
        over: The swept parameters that it knows, or its environment does, with their values.
        refused: Why it was not run; empty where it was.
        environment: Where it acted or learned from.
        replicates: Independent repetitions.
        episodes: Users of each.
        parameters: The declaration's, as exact texts.
        options: The agent's.
        choices: The readings.
        standing: How it came off; None where it was refused.
        regret: Of an agent that learns as it acts.
        value: Of a policy learned from data.
        gap: Likewise.
        spent: What the ledger says it cost; None without privacy.
        ledger: What stands in the first replicate's ledger.
        seconds: Of learning; None in a sweep's file, which says nothing of the time.
        episodes_per_second: Likewise.
    """

    algorithm: str
    over: Mapping[str, str]
    refused: str = ""
    environment: str
    replicates: int
    episodes: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    standing: Standing | None = None
    regret: Regret | None = None
    value: LearnedValue | None = None
    gap: Gap | None = None
    spent: SpentCost | None = None
    ledger: LedgerSummary | None = None
    seconds: float | None = None
    episodes_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Result):
    """Several algorithms over a grid of parameters.

    Attributes:
        environment: Where they acted or learned from.
        algorithms: Their names.
        over: The grid: values by parameter, as they were given.
        budgets: Those of the swept parameters that are part of a guarantee.
        own_data: Whether users' own data were learned from, all points from the same users'.
        replicates: Independent repetitions of every point.
        delta: At which δ every ε is.
        headline: Who learned from which guarantee on, and why the others did not.
        points: In the order of the algorithms, then of the grid.
        made_by: By what it was made.
    """

    environment: str
    algorithms: tuple[str, ...]
    over: Mapping[str, tuple[str, ...]]
    budgets: tuple[str, ...] = ()
    own_data: bool = False
    replicates: int
    delta: float
    headline: str
    points: tuple[SweepPoint, ...]
    made_by: MadeBy

    def without_clocks(self) -> Sweep:
        """Returns the same without what depends on the machine: the same sweep gives the same file."""
        return replace(self, points=tuple(replace(one, seconds=None, episodes_per_second=None) for one in self.points))

    def to_frame(self) -> pd.DataFrame:
        """Returns a pandas frame, one row a point.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame([
            {
                "algorithm": one.algorithm,
                **{name: one.over.get(name) for name in self.over},
                "epsilon": None if here is None or here.guarantee is None else here.guarantee.epsilon,
                "verdict": None if here is None or here.guarantee is None else here.guarantee.verdict,
                "value": None if here is None else here.value,
                "std": None if here is None else here.std,
                "share": None if here is None else here.share,
                "learned": None if here is None else here.did_not_learn is None,
                "refused": one.refused,
            }
            for one in self.points
            for here in (one.standing,)
        ])  # fmt: skip

    def plot(self) -> Picture:
        """Returns the frontier: value against ε, a plot for every setting of what is no part of a guarantee.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)
