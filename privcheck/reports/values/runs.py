"""Results of runs: one agent, several side by side, a grid of parameters. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from privcheck.errors import ParameterError
from privcheck.reports.values.result import NotLearned, PresetUsed, Result
from privcheck.runtime.results import Remark
from privcheck.support.display import Brief
from privcheck.terms.unit import Unit

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.reports.pictures import Picture
    from privcheck.reports.policies import Policy, Weights


def _made(policy: Policy | None) -> Policy:
    if policy is None:
        raise ParameterError("a result from a file has no policy in it: `privcheck.load_policy(directory)` reads it")
    return policy


WITHOUT_NOISE: Final = " without noise"  # after an agent's name: the agent itself with its noise off


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentCost:
    """Cost of a run, from its ledger; None if there is no finite bound in a currency.

    Attributes:
        rho: Σρ.
        pure_epsilon: Σε.
        mu: √Σμ².
        theorem: Why each of these sums bounds the leakage; empty in older reports.
        note: What the guarantee is about; empty in older reports.
    """

    rho: float | None
    pure_epsilon: float | None
    mu: float | None = None
    theorem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRelease:
    """One charged release of a ledger: charged law, scale and sensitivities, and its number of slices."""

    release: str
    law: str
    scale: float
    l1: float
    l2: float
    slices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSummary:
    """Summary of a ledger.

    Attributes:
        path: Name of its file; None if it was not written.
        entries: Number of slices.
        digest: Last hash of its chain.
        noise: Source of the noise.
        as_declared: Whether the noise was fresh and of the declared law; None in older reports.
        protects: Whether the noise protects, as only release noise does; None in older reports.
        written: When it was written: at each release, or before the run as a plan of spending; empty in older reports.
        releases: The releases.
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
    """True value of the learned policies, over replicates.

    Attributes:
        mean: Mean value; None if unknown.
        std: Standard deviation; None for a single replicate.
        baseline: Value of the non-private twin; None if it must not be computed.
        optimal: Value of the best policy; None if unknown.
        references: Values of known policies.
        claimed: Mean of the agent's own estimates; None if it makes none.
        note: How to read these values; None if there is no remark.
    """

    mean: float | None
    std: float | None
    baseline: float | None
    optimal: float | None
    references: Mapping[str, float]
    claimed: float | None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Gap of the learned policy to the best one; fields are None if the true values are unknown.

    Attributes:
        mean: V* − V^π, with the mean of V^π over replicates, at least 0.
        uniform: V* minus the value of uniformly random play.
        share_of_uniform: Mean over uniform; None also if the latter is 0.
    """

    mean: float | None = None
    uniform: float | None = None
    share_of_uniform: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Ran(Result):
    """Run of an agent that learns from data; see `privcheck.runtime.results.RunResult`."""

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
    remarks: tuple[Remark, ...] = ()
    policy_file: str | None = None
    seconds: float
    episodes_per_second: float | None  # None where their number is
    _policy: Any = field(default=None, repr=False, compare=False)  # a Policy; in no document
    _outcomes: tuple[float, ...] = field(default=(), repr=False, compare=False)  # gap of every replicate; as above

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per policy: its value and how it is known.

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
        """Plot of the learned policy's value with its references.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)

    @property
    def policy(self) -> Policy:
        """The first replicate's policy.

        Raises:
            ParameterError: The result was read from a file; the policy is in a file beside it. Or it has parameters,
                which are in `weights`.
        """
        if self._trained:
            raise ParameterError("a policy on observations has no table of probabilities: see `weights`")
        return _made(self._policy)

    @property
    def weights(self) -> Weights:
        """The first replicate's policy on observations.

        Raises:
            ParameterError: The result was read from a file, or has a table of probabilities, which is in `policy`.
        """
        if not self._trained:
            raise ParameterError("the result has no policy on observations: see `policy`, or the file beside it")
        found: Weights = self._policy
        return found

    @property
    def _trained(self) -> bool:
        return getattr(self._policy, "parameters", None) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Cumulative regret after all episodes.

    Attributes:
        mean: Mean over replicates.
        std: Standard deviation over replicates; None for a single replicate.
        optimal: Regret of the optimum, 0.
        maximum: K·V*, the largest possible regret.
        share: Mean over maximum; None if the latter is 0.
        twin: Name of the non-private twin, or "… without noise" for the agent itself with its noise off; None if there
            is none.
        baseline: Mean regret of the twin; None if it was not run.
        baseline_value: True expected return of the twin's last policy, mean over replicates; None if it was not run,
            and in older reports.
        uniform: K·(V* − V^uniform), the regret of uniformly random play; None in older reports, as are the following.
        myopic: Regret of the policy that takes the action with the largest mean reward of the step.
        prior_only: Regret of the policy that plans with the true mean rewards and the public prior.
        share_of_uniform: Mean over uniform; None also if the latter is 0.
        twin_differs: Reason why the twin acts otherwise even without noise; empty if it does not, and in older reports.
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
    twin_differs: str = ""

    @property
    def twin_is_itself(self) -> bool:
        """Whether the twin is the agent itself with its noise off."""
        return self.twin is not None and self.twin.endswith(WITHOUT_NOISE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A curve over episodes: mean and standard deviation over replicates; the latter is None for a single one."""

    mean: tuple[float, ...]
    std: tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RunCurves(Brief):
    """Curves over episodes, at the given numbers of episodes."""

    episodes: tuple[int, ...]
    regret: Band
    value: Band
    switches: Band

    def rows(self, **given: str) -> list[dict[str, Any]]:
        """One row per number of episodes: the given fields, then mean and standard deviation of each curve."""
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
    """Cost to the user who has spent most, from an episode on."""

    episode: int
    rho: float | None
    pure_epsilon: float | None
    mu: float | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RanOnline(Result):
    """Run of an online agent; see `privcheck.runtime.results.OnlineResult`."""

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
    _outcomes: tuple[float, ...] = field(default=(), repr=False, compare=False)  # final regret of every replicate
    _twin_outcomes: tuple[float, ...] = field(default=(), repr=False, compare=False)  # of the twin's; as above

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per number of episodes.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame(self.curves.rows())

    def plot(self) -> Picture:
        """Plots of regret, value, switches and privacy over episodes.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)

    @property
    def policy(self) -> Policy:
        """The first replicate's last policy.

        Raises:
            ParameterError: The result was read from a file; the policy is in a file beside it.
        """
        return _made(self._policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedClaim:
    """A guarantee in a comparison's unit, and whether the algorithm's own claim holds.

    Attributes:
        view: View that the guarantee is about: "joint" (the other users' view, if the billboard lemma applies),
            "releases" (the released outputs, if joint DP is claimed and does not follow), "local", "shuffle" or
            "central".
        relation: Neighbouring relation, in words.
        claim: The claim in its own unit, with its parameters' values.
        claimed: The ε implied by the claim at the common δ; None if it implies no finite ε, or has an unstated
            constant.
        epsilon: The accountant's ε of the declared releases at the common δ, rounded up; None if there is no finite ε.
        verdict: Verdict on the claim, in its own unit.
        method: How the verdict was reached.
        given: Names of releases with a sensitivity or price stated by their author.
        joint: What follows for joint DP; None if joint DP is not claimed.
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
    """Result of an algorithm in a comparison.

    Attributes:
        algorithm: Name of the algorithm.
        guarantee: Its guarantee and claim; None if it is not private.
        simulated: Whether its noise was simulated, which gives no protection.
        value: True expected return of the last policy, mean over replicates; None if unknown.
        std: Standard deviation of `value` over replicates; None for a single replicate.
        replicates: Number of replicates.
        optimum: Expected return of the best policy; None if unknown.
        uniform: Expected return of uniformly random play; None if unknown.
        share: Value over optimum; None if one of them is unknown or the optimum is not positive.
        lost: The regret of all episodes, or the gap of a policy learned from data, as a share of the uniform policy's.
        twin: Name of the same algorithm without privacy; None if there is none.
        twin_value: Value of the twin with the same users and constants; None if it was not run.
        did_not_learn: Why nothing was learned; None if something was learned, or if it is unknown.
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
    """Provenance of a comparison: command line, seeds by purpose, versions; it contains no times."""

    command: str
    seeds: Mapping[str, int]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Compared(Result):
    """Several online agents in one environment.

    Attributes:
        environment: Name of the environment.
        algorithms: Names of the algorithms.
        results: The run of each algorithm.
        delta: δ of every ε in `standings`; None in older documents.
        headline: The agents that learned, with their guarantees, and why the others did not.
        standings: Result of each algorithm, in the order of the runs.
        made_by: Provenance of the comparison.
    """

    environment: str
    algorithms: tuple[str, ...]
    results: tuple[RanOnline, ...]
    delta: float | None = None
    headline: str = ""
    standings: tuple[Standing, ...] = ()
    made_by: MadeBy | None = None

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per agent and number of episodes.

        Raises:
            ParameterError: pandas is not installed.
        """
        from privcheck.reports.files import make_frame

        return make_frame([row for one in self.results for row in one.curves.rows(algorithm=one.algorithm)])

    def plot(self) -> Picture:
        """Plots of value against ε, then of regret, value and switches over episodes.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SweepPoint(Brief):
    """A point of the grid: one algorithm at one setting.

    Attributes:
        algorithm: Name of the algorithm.
        over: Swept parameters known to the algorithm or its environment, with their values.
        refused: Why it was not run; empty if it was.
        environment: Name of the environment or data.
        replicates: Independent repetitions.
        episodes: Number of users in each repetition.
        parameters: Parameters of the declaration, as exact texts.
        options: Options of the agent.
        choices: Chosen readings.
        standing: Its result in the comparison; None if it was refused.
        regret: Regret of an online agent; None otherwise.
        value: Value of a policy learned from data; None otherwise.
        gap: Gap of a policy learned from data; None otherwise.
        outcomes: Final regret, or gap, of every replicate; empty if the true values are unknown.
        twin_outcomes: The same of the non-private twin; a single one if it learns from data, where it draws nothing.
        spent: Cost by the ledger; None without privacy.
        ledger: Summary of the first replicate's ledger.
        seconds: Duration of learning; None in a sweep's file, which contains no times.
        episodes_per_second: Speed of learning; None in a sweep's file.
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
    outcomes: tuple[float, ...] = ()
    twin_outcomes: tuple[float, ...] = ()
    spent: SpentCost | None = None
    ledger: LedgerSummary | None = None
    seconds: float | None = None
    episodes_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopeFit:
    """A power law fitted along one swept parameter.

    Attributes:
        algorithm: Name of the algorithm.
        parameter: The parameter.
        at: Values of the other swept parameters.
        quantity: Final regret, or the gap of a policy learned from data.
        of: "agent", with noise; "twin", without; "privacy", the difference of the two, the cost of privacy.
        values: Values of the parameter at the fitted points.
        means: Means over replicates at these points.
        exponent: The fitted exponent; None if nothing was fitted.
        low: Lower end of its interval; None for a single replicate.
        high: Upper end; None for a single replicate.
        confidence: Of the interval, which is about the replicates' randomness.
        theorem: Exponents of the theorem's terms, an upper bound without logarithms; empty if none is registered.
        source: The theorem.
        not_fitted: Why nothing was fitted; empty if something was.
        remark: What to read with the fit.
    """

    algorithm: str
    parameter: str
    at: Mapping[str, str]
    quantity: Literal["regret", "gap"]
    of: Literal["agent", "twin", "privacy"]
    values: tuple[float, ...]
    means: tuple[float, ...]
    exponent: float | None
    low: float | None
    high: float | None
    confidence: float
    theorem: str = ""
    source: str = ""
    not_fitted: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Sweep(Result):
    """Several algorithms over a grid of parameters.

    Attributes:
        environment: Name of the environment or data.
        algorithms: Names of the algorithms.
        over: The grid: values by parameter, as given.
        budgets: Swept parameters that are part of a guarantee.
        own_data: Whether the data are a user's own, the same at every point.
        replicates: Independent repetitions of every point.
        delta: δ at which every ε is stated.
        headline: The agents that learned, from which guarantee on, and why the others did not.
        points: Points in the order of the algorithms, then of the grid.
        made_by: Provenance of the sweep.
        slopes: Fitted exponents; empty unless they were asked for.
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
    slopes: tuple[SlopeFit, ...] = ()

    def without_clocks(self) -> Sweep:
        """The same sweep without durations and speeds: the same sweep gives the same file."""
        return replace(self, points=tuple(replace(one, seconds=None, episodes_per_second=None) for one in self.points))

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row per point.

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
        """Plots of the frontier: value against ε, one per setting of the parameters that are not part of a guarantee.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.pictures import draw_result

        return draw_result(self)
