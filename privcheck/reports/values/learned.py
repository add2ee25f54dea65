"""What agents learned and spent. The fields are those of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privcheck.brief import Brief
from privcheck.errors import ParameterError
from privcheck.reports.values.presets import PresetUsed
from privcheck.reports.values.result import Result
from privcheck.reports.values.unlearned import NotLearned
from privcheck.unit import Unit

if TYPE_CHECKING:
    import pandas as pd

    from privcheck.policies import Policy
    from privcheck.reports.picture import Picture


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
    """What an agent learned from data; see `privcheck.results.RunResult`."""

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
        from privcheck.reports.frames import make_frame

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
        from privcheck.reports.picture import draw_result

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
    """What an agent did that learns as it acts; see `privcheck.results.OnlineResult`."""

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
        from privcheck.reports.frames import make_frame

        return make_frame(self.curves.rows())

    def plot(self) -> Picture:
        """Returns regret, value, switches and privacy over episodes.

        Raises:
            ParameterError: There is nothing to draw.
        """
        from privcheck.reports.picture import draw_result

        return draw_result(self)

    @property
    def policy(self) -> Policy:
        """Returns the first replicate's last policy.

        Raises:
            ParameterError: The result was read from a file, which lies beside the policy's own.
        """
        return _made(self._policy)
