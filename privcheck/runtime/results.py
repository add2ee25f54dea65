"""Requests and results of runs and audits: values read by the command line, the reports and the tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from privcheck.runtime.audit_pictures import Bars, History, ShownPair, TradeOff
from privcheck.support.display import Brief, Progress, silent

if TYPE_CHECKING:  # reports carry some of these values, and load neither NumPy nor SymPy
    from concurrent.futures import Executor
    from fractions import Fraction
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from privcheck.data.features import FeatureMap
    from privcheck.data.finite_models import FiniteMDP
    from privcheck.data.trajectories import Trajectories
    from privcheck.declare.declaration import Declaration
    from privcheck.pricing import Priced
    from privcheck.runtime.ledger import Ledger
    from privcheck.runtime.setting import Setting

NoiseKind = Literal["simulated", "release"]


def nothing() -> None:
    """No-op budget hook: the run is not charged to any budget."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Dataset(Brief):
    """Trajectories to learn from, with public knowledge about them.

    Attributes:
        name: Their origin.
        description: In one sentence.
        trajectories: The users' data.
        reward: r(s, a, s′), public, broadcastable to (S, A, S); None if the reward function is not public and has to be
            learned from noisy sums.
        evaluate: The true expected return of a policy (H, S, A) of action probabilities; None if it is unknown.
        references: True values of known policies by name ("behaviour", "optimum", …); empty without a model. "random"
            is the policy that takes every action equally often.
        public: The data are simulated from a public model, so exact figures about them may be shown. Figures of a
            user's own file are shown only if they come from the billboard.
        facts: Size and origin, for the report.
        features: Public features of states and actions, if there are any.

    Raises:
        ParameterError: The features are of another number of states or actions.
    """

    name: str
    description: str
    trajectories: Trajectories
    reward: NDArray[np.float64] | None
    evaluate: Callable[[NDArray[np.float64]], float] | None
    references: Mapping[str, float]
    public: bool
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    features: FeatureMap | None = None

    def __post_init__(self) -> None:
        if self.features is not None:
            users = self.trajectories
            self.features.refuse_other(users.num_states, users.num_actions, owner=self.name)

    @property
    def feature_map(self) -> FeatureMap:
        """The features; by default one coordinate for every state and action."""
        from privcheck.data.features import one_hot_features

        return self.features or one_hot_features(self.trajectories.num_states, self.trajectories.num_actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Request for a run of an agent.

    Attributes:
        setting: Declaration (None for a non-private baseline), parameters, options and readings.
        data: The data to learn from.
        replicates: Independent repetitions, each with its own noise.
        seed: Seed of the simulated noise.
        noise: The noise source: "simulated", from the seed, or "release", for published outputs.
        ledger: Where the first replicate's ledger is written, or None.
        progress: Called after each unit of work.
    """

    setting: Setting
    data: Dataset
    replicates: int = 1
    seed: int = 0
    noise: NoiseKind = "simulated"
    ledger: Path | None = None
    progress: Progress = silent

    @property
    def declaration(self) -> Declaration | None:
        """The declaration of the releases; None for a baseline."""
        return self.setting.declaration

    @property
    def values(self) -> Mapping[str, Fraction]:
        """The declaration's parameters."""
        return self.setting.values

    @property
    def options(self) -> Mapping[str, Fraction]:
        """The agent's options."""
        return self.setting.options


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """An agent's remark on its own run, to be read before its figures.

    Attributes:
        title: In a few words.
        text: In a sentence or two.
    """

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RunResult(Brief):
    """Result of a run of an agent.

    Attributes:
        returns: The true expected return of each replicate's policy, (replicates,); None without a model.
        claimed: The agent's own (pessimistic) estimate of its policy's return, (replicates,).
        baseline: The true return of the non-private twin on the same data; None if it must not be computed.
        policy: The first replicate's policy, (H, S, A) action probabilities.
        ledger: The first replicate's ledger; None for a non-private agent.
        diagnostics: Figures about the learning, from the billboard only, by name.
        seconds: Wall time of the learning alone.
        remarks: The agent's remarks on them, from the billboard only.
        worthless: Share of all steps and states at which the agent's own value is 0, so that it takes any action there,
            mean over replicates; from the billboard only. None if it is unknown.
    """

    returns: NDArray[np.float64] | None
    claimed: NDArray[np.float64]
    baseline: float | None
    policy: NDArray[np.float64]
    ledger: Ledger | None
    diagnostics: Mapping[str, float]
    seconds: float
    remarks: tuple[Remark, ...] = ()
    worthless: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class World(Brief):
    """A model that online agents act in, simulated from public knowledge.

    Attributes:
        name: As users type it.
        description: In one sentence.
        mdp: The model.
        facts: Size and origin, for the report.
        features: Public features of states and actions, if there are any.
        public: The model with the public mean rewards and law of the first state that agents are given, if users
            respond by another one, as the users that differ between an audit's neighbours do; None if it is `mdp`.

    Raises:
        ParameterError: The features are of another number of states or actions.
    """

    name: str
    description: str
    mdp: FiniteMDP
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    features: FeatureMap | None = None
    public: FiniteMDP | None = None

    def __post_init__(self) -> None:
        if self.features is not None:
            self.features.refuse_other(self.mdp.states, self.mdp.actions, owner=self.name)

    @property
    def feature_map(self) -> FeatureMap:
        """The features; by default one coordinate for every state and action."""
        from privcheck.data.features import one_hot_features

        return self.features or one_hot_features(self.mdp.states, self.mdp.actions)

    @property
    def public_model(self) -> FiniteMDP:
        """The model for public mean rewards and the public law of the first state, if any are public."""
        return self.public or self.mdp

    def answered_by(self, mdp: FiniteMDP) -> World:
        """The same world with users who respond by another model; public knowledge stays."""
        return replace(self, mdp=mdp, public=self.public_model)

    @property
    def sizes(self) -> dict[str, int]:
        """H, S, A and the dimensions of the features, by their names in declarations."""
        mdp = self.mdp
        plain = {"d": mdp.states * mdp.actions} if self.features is None else self.features.sizes
        return {"H": mdp.horizon, "S": mdp.states, "A": mdp.actions, **plain}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnlineRequest:
    """Request for a run of an online agent: K users, one after the other, each a trajectory under the agent's policy.

    Attributes:
        setting: Declaration (None for a non-private baseline), parameters, options and readings.
        world: The agent's environment.
        episodes: K.
        replicates: Independent repetitions, each with its own randomness.
        seed: Seed of the users' responses and of the simulated noise.
        noise: The noise source. With release noise there is no checkpoint: released outputs are not drawn again.
        directory: Where the first replicate's ledger and the checkpoint are written, or None. A checkpoint of the same
            run there is continued.
        workers: Threads; the result does not depend on it.
        progress: Called after each block with (episodes done, total), over all replicates.
    """

    setting: Setting
    world: World
    episodes: int
    replicates: int = 1
    seed: int = 0
    noise: NoiseKind = "simulated"
    directory: Path | None = None
    workers: int = 1
    progress: Progress = silent

    @property
    def declaration(self) -> Declaration | None:
        """The declaration of the releases; None for a baseline."""
        return self.setting.declaration

    @property
    def values(self) -> Mapping[str, Fraction]:
        """The declaration's parameters."""
        return self.setting.values

    @property
    def options(self) -> Mapping[str, Fraction]:
        """The agent's options."""
        return self.setting.options

    @property
    def readings(self) -> Mapping[str, str]:
        """The chosen readings."""
        return self.setting.readings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OnlineResult(Brief):
    """Result of a run of an online agent.

    Attributes:
        episodes: (G,) the numbers of episodes after which figures were taken; the last is K.
        regret: (replicates, G) cumulative regret V*₁ − V^π₁ up to and including that episode, exact.
        value: (replicates, G) true expected return of the policy of that episode.
        switches: (replicates, G) number of policy changes up to and including that episode.
        optimal: V*₁.
        policy: The first replicate's last policy, (H, S, A) action probabilities.
        ledger: The first replicate's ledger; None for a non-private agent.
        diagnostics: Figures about the learning, from the billboard only, by name.
        seconds: Wall time of the learning alone, over all sessions if a checkpoint was continued.
        at_limit: Share of all steps and states at which the agent's optimistic value is at its maximum, after the last
            episode, mean over replicates; None for an agent without such values.
    """

    episodes: NDArray[np.int64]
    regret: NDArray[np.float64]
    value: NDArray[np.float64]
    switches: NDArray[np.float64]
    optimal: float
    policy: NDArray[np.float64]
    ledger: Ledger | None
    diagnostics: Mapping[str, float]
    seconds: float
    at_limit: float | None = None


AuditView = str  # the name of a registered view: releases, policy, lockstep, noise, or somebody else's
AuditMethod = Literal[
    "auto", "coin-flip", "curve", "clopper-pearson", "divergence", "sequential", "one-run", "group"
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """Request for an audit.

    Attributes:
        setting: The audited setting: declaration, parameters, the agent's options and the readings.
        view: Name of the view.
        delta: δ at which a lower bound on ε is reported; 0 for pure DP.
        trials: N, the runs under each of the two neighbours; 2N in all.
        confidence: 1 − α of the whole audit, everything it tries included.
        seed: Seed of the trials' noise and hidden bits.
        workers: Threads; the result does not depend on it.
        progress: Called after each block.
        executor: Executor of the blocks of trials in place of threads, a cluster's for example; the result does not
            depend on it.
        directory: Where finished blocks of trials are kept, or None. An audit that was stopped continues from there;
            blocks of another audit are refused.
        method: The statistical test; "auto" is the choice of the view's plan. A view refuses those that do not fit.
    """

    setting: Setting
    view: AuditView
    delta: float
    trials: int
    confidence: float
    seed: int = 0
    workers: int = 1
    progress: Progress = silent
    executor: Executor | None = None
    directory: Path | None = None
    method: AuditMethod = "auto"

    @property
    def declaration(self) -> Declaration:
        """The declaration of the releases."""
        return self.setting.declared

    @property
    def values(self) -> Mapping[str, Fraction]:
        """The declaration's parameters."""
        return self.setting.values

    @property
    def priced(self) -> Priced:
        """The declaration at its parameters, priced."""
        return self.setting.priced

    @property
    def options(self) -> Mapping[str, Fraction]:
        """The agent's options."""
        return self.setting.options


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AuditResult(Brief):
    """Result of an audit, as an auditor returns it; the command adds the algorithm, claim, seed and speed.

    Attributes:
        algorithm: Name of the audited algorithm.
        view: Name of the view.
        trials: N, runs under each neighbour.
        confidence: Confidence 1 − α of the whole audit, with which `epsilon_lower` holds and a violation is declared.
        delta: δ of the three ε.
        epsilon_lower: Lower bound on the loss, rounded down; None if the view bounds no ε.
        epsilon_upper: Upper bound of the accountant for the same releases; None if there is none.
        epsilon_claimed: ε allowed by the claim at the same δ; None if the claim does not limit it.
        verdict: "violation" or "consistent", at the requested parameters, or "undecided" if the number of runs is too
            small to refute anything; an audit never shows that a mechanism is private.
        reachable: Lower bound that the best test could certify with the same number of runs, if the truth were
            `epsilon_upper`.
        method: The statistical test, in words.
        witness: The neighbours, in words.
        evidence: Figures behind the verdict, by name; "curve", if there is one, holds the lists `epsilon` and
            `delta_lower`.
        seconds: Wall-clock time.
        trials_per_second: Runs per second, of 2N in all; 0 until the command adds it.
        claim: The claim.
        seed: Seed of the trials.
        agent_ran: Whether the registered agent itself was run; otherwise its declared releases were audited. None in
            older reports.
        asks: Question of the view, in a sentence.
        leaves_open: What a result without a violation does not show.
        audited_at: The audited parameters, if they differ from the requested ones.
        trade_off: Both error rates of the score, at every threshold; no verdict depends on this nor on the following.
        history: The bound against the number of trials.
        pair: The pair of neighbours side by side.
        bars: A measured ratio per release, for views that bound no ε.
    """

    algorithm: str = ""
    view: AuditView
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
    trials_per_second: float = 0.0
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
