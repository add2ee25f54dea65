"""PRIVATE-POLICY-GRADIENT: REINFORCE with noisy averages and Adam (Williams 1992; Kingma & Ba 2015).

A user's vector has two parts. The first is Σ_t (G_t − b)·∇log π(a_t | s_t) over their episode, where the signal G_t is
±γ^(steps left) if the episode reaches a terminal state, + for a goal and − for a failure, and 0 if the time limit ends
it. The second, one number, is the mean of their G_t, from which the next batch's baseline b follows: noisy sum over B,
clipped to [−1, 1]. The first batch has no baseline, and updates nothing else. Of the vector's squared norm C² the
signal has a public share q: the gradient is limited to length C·√(1 − q), and the signal is multiplied by C·√q.

Everything else that shapes the training is a public number, fixed before anyone takes part. The defaults were found on
simulated users with other seeds than those of `benchmarks/trained.md`. Tuning them on users would be a cost of its own,
which no figure here contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin, public
from privcheck.declare.statistics import ClippedSums
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, symbol
from privcheck_algorithms.privatizers.declaration import MU, follow_gaussian
from privcheck_algorithms.trained.policies import Policy, drawing, most_likely, probabilities
from privcheck_algorithms.trained.rules import Adam, Rule
from privcheck_algorithms.trained.running import SMALL, UNITS, Trained, policy_reading
from privcheck_algorithms.trained.tasks import Array, Choose, Episodes, Flags, Task, play
from privcheck_algorithms.trained.training import Plan, Sums

NAME: Final = "private-policy-gradient"
TITLE: Final = "PRIVATE-POLICY-GRADIENT: REINFORCE from one episode a user, with noisy averages and Adam"
SOURCE: Final = "this package; README of trained"
VECTORS: Final = "vectors"


def vector_parameters(batch: Parameter, coordinates: Parameter, *, norm: int | str) -> tuple[Parameter, ...]:
    """Parameters of an agent with one vector a user: K, its own B and d, C with this default, ε, δ and μ."""
    return (
        Parameter(name="K", default=10_000, kind="count", meaning="users, one episode each"),
        batch,
        coordinates,
        Parameter(name="C", default=norm, kind="positive", meaning="norm to which a user's vector is clipped"),
        Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
        Parameter(name="delta", default="0.00001", kind="probability", meaning="δ of the claim"),
        Parameter(
            name="mu",
            default="0.26805",
            kind="positive",
            meaning="the noise: all of a user's releases are μ-GDP together; for another ε or δ the largest that keeps "
            "it",
            follows=follow_gaussian,
        ),
    )


PARAMETERS: Final = vector_parameters(
    Parameter(name="B", default=250, kind="count", meaning="users of a batch; a rest that fills none takes no part"),
    Parameter(name="d", default=98, kind="count", meaning="coordinates of a vector: the policy's parameters, and one"),
    norm=3,
)


def batch_sizes(values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """Sizes of the batches: B alone."""
    return (int(values["B"]),)


def declare_vectors(
    *, name: str, title: str, of: str, parameters: tuple[Parameter, ...], joint: Joint | None
) -> Declaration:
    """(ε, δ)-DP by one Gaussian vector a user: ‖Δ‖₂ ≤ 2C, and with variance (2C/μ)² it is μ-GDP.

    Args:
        name: Name of the algorithm.
        title: Its title.
        of: What a user's vector is, in words.
        parameters: K, B, d, C, ε, δ and μ with their defaults (`vector_parameters`).
        joint: Of agents that users meet, who see their own actions; None for logged users, who act no more.
    """
    C = symbol("C", "positive")
    size = public("B users, in the order in which they come", why="a number fixed before anyone takes part")
    return Declaration(
        name=name,
        title=title,
        source=SOURCE,
        origin=Origin(kind="own", text="README of trained"),
        relation=ReplaceOne("user"),
        releases=(
            Release(
                VECTORS,
                ClippedSums(dimension=d, norm=C, of=of),
                Gaussian(variance=(2 * C / MU) ** 2),
                schedule=Batches(size=size, sizes=batch_sizes),
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="README, “The price”", joint=joint),
        parameters=parameters,
    )


def declare(_: Mapping[str, str]) -> Declaration:
    """The declaration: one gradient with its signal a user."""
    of = "a user's policy gradient and mean signal"
    return declare_vectors(name=NAME, title=TITLE, of=of, parameters=PARAMETERS, joint=Joint())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """State of the learner between two batches, from noisy sums and public numbers.

    Attributes:
        batches: Batches so far.
        parameters: (d,) of the policy.
        memory: (m,) of the update rule.
        baseline: b.
        norm: C, as declared.
        total: (d,) sum of the parameters that the result averages.
        averaged: Number of them.
    """

    batches: int
    parameters: Array
    memory: Array
    baseline: float
    norm: float
    total: Array
    averaged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradient:
    """The agent (`privcheck_algorithms.trained.training.Agent`). All of its numbers are public.

    Attributes:
        task: The task.
        policy: The policy's form.
        rate: The first learning rate; it falls linearly to 0 with the last batch.
        discount: γ.
        tail: Share of the batches, the last ones, whose parameters are averaged into the result.
        signal_share: q, the signal's share of the vector's squared norm.
        rule: The update rule, which sees noisy averages.

    Raises:
        ParameterError: A number is out of range.
    """

    task: Task
    policy: Policy
    rate: float = 0.2
    discount: float = 0.98
    tail: float = 0.25
    signal_share: float = 0.15
    rule: Rule = field(default_factory=Adam)

    def __post_init__(self) -> None:
        if not 0 < self.rate < np.inf:
            raise ParameterError(f"rate: expected above 0, got {self.rate}", name="rate", given=self.rate)
        for name, value in (("discount", self.discount), ("tail", self.tail), ("signal_share", self.signal_share)):
            if not 0 < value <= 1 or (name == "signal_share" and value == 1):
                raise ParameterError(f"{name}: expected a share above 0, got {value}", name=name, given=value)

    @property
    def blocks(self) -> Mapping[str, int]:
        """The policy's parameters, and one signal."""
        return {VECTORS: self.policy.dimension + 1}

    def begin(self, plan: Plan) -> State:
        """State before any user."""
        zeros = np.zeros(self.policy.dimension)
        first = self.policy.initial()
        return State(
            batches=0,
            parameters=first,
            memory=self.rule.begin(self.policy.dimension),
            baseline=0.0,
            norm=plan.blocks[0].norm,
            total=zeros,
            averaged=0,
        )

    def choose(self, state: State) -> Choose:
        """Actions drawn from the policy."""
        return drawing(self.policy, state.parameters)

    def per_user_vector(self, state: State, episodes: Episodes) -> Array:
        """Gradient and mean signal of each user's own episode, (B, d + 1)."""
        gradients, means = policy_gradients(
            self.task, self.policy, state.parameters, episodes, discount=self.discount, baseline=state.baseline
        )
        return weigh(gradients, means, norm=state.norm, share=self.signal_share)

    def update(self, state: State, sums: Sums, plan: Plan) -> State:
        """One step of the rule, uphill; none after the first batch, whose gradients had no baseline."""
        baseline = read_baseline(sums[VECTORS][-1], plan.batch, norm=state.norm, share=self.signal_share)
        number, last = state.batches, state.batches + 1 == plan.batches
        if number == 0 and not last:
            return replace(state, batches=1, baseline=baseline)
        number, average = max(number, 1), sums[VECTORS][:-1] / plan.batch
        memory, step = self.rule.step(state.memory, average, number=number)
        parameters = state.parameters + self.rate * (1 - state.batches / plan.batches) * step
        kept = state.batches >= (1 - self.tail) * plan.batches or last
        return replace(
            state,
            batches=state.batches + 1,
            parameters=parameters,
            memory=memory,
            baseline=baseline,
            total=state.total + parameters if kept else state.total,
            averaged=state.averaged + kept,
        )

    def result(self, state: State) -> Array:
        """The averaged parameters."""
        return np.asarray(state.total / max(state.averaged, 1))


def policy_gradients(
    task: Task, policy: Policy, parameters: Array, episodes: Episodes, *, discount: float, baseline: float
) -> tuple[Array, Array]:
    """Σ_t (G_t − b)·∇log π(a_t | s_t) of each user's own episode, (B, d), and the mean of their G_t, (B,)."""
    signals, live = discounted_signals(task, episodes, discount=discount)
    advantages = np.where(live, signals - baseline, 0.0)
    chances = probabilities(policy.logits(parameters, episodes.observations))
    taken = episodes.actions[..., np.newaxis] == np.arange(1, len(task.actions))
    slopes = (taken - chances[..., 1:]) * advantages[..., np.newaxis]
    gradients = policy.gradients(parameters, episodes.observations, slopes)
    return gradients, np.asarray(signals.sum(axis=1) / np.maximum(episodes.lengths, 1))


def make_agent(task: Task, policy: Policy, options: Mapping[str, Fraction]) -> PolicyGradient:
    """The agent with the registered options.

    Raises:
        ParameterError: An option is out of range.
    """
    return PolicyGradient(
        task=task,
        policy=policy,
        rate=float(options["rate"]),
        discount=float(options["discount"]),
        tail=float(options["tail"]),
        signal_share=float(options["signal_share"]),
    )


SIGNALS: Final = (
    Parameter(name="discount", default="0.98", kind="probability", meaning="γ of the signals"),
    Parameter(name="tail", default="0.25", kind="probability", meaning="share of the last batches that is averaged"),
    Parameter(
        name="signal_share", default="0.15", kind="probability", meaning="share of the squared norm for the signal, q"
    ),
)
OPTIONS: Final = (
    UNITS,
    Parameter(name="rate", default="0.2", kind="positive", meaning="Adam's first learning rate"),
    *SIGNALS,
)
FORMS: Final = policy_reading("tanh", "linear", "linear-without-constant")
PRIVATE_POLICY_GRADIENT: Final = Algorithm(
    name=NAME,
    title=TITLE,
    source=SOURCE,
    declare=declare,
    readings=(FORMS,),
    options=OPTIONS,
    trained=Trained(make=make_agent),
    instance=SMALL,
)


def weigh(gradients: Array, means: Array, *, norm: float, share: float) -> Array:
    """Vectors of length at most C, (B, d): gradients limited to C·√(1 − q), and mean signals times C·√q.

    It makes the signals' noise independent of the gradients' lengths. Privacy does not rest on it: `train` clips again.
    """
    most = norm * (1 - share) ** 0.5
    return np.concatenate([limited(gradients, most), means[:, np.newaxis] * norm * share**0.5], axis=1)


def limited(rows: Array, most: float) -> Array:
    """Rows (B, d) of length at most `most`. Privacy does not rest on it: `train` clips again."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, most / np.maximum(lengths, most)))


def read_baseline(total: float, batch: int, *, norm: float, share: float) -> float:
    """The baseline b from a batch's noisy sum of signals as `weigh` has them: the mean over B, clipped to [−1, 1]."""
    return float(np.clip(total / (batch * norm * share**0.5), -1.0, 1.0))


def discounted_signals(task: Task, episodes: Episodes, *, discount: float) -> tuple[Array, Flags]:
    """G_t of every step, 0 after the end, and whether a step belongs to the episode, both (B, T).

    By rewards, G_t is the mean worth of the steps from t to the time limit, with weights γ^k and rewards of 0 after an
    end: within [0, 1], and of one size for early and late steps.
    """
    left = episodes.lengths[:, np.newaxis] - np.arange(episodes.actions.shape[1])
    live = left > 0
    if task.worth is not None:
        means = _mean_worth(task.worth(episodes.rewards_to(task.limit)), discount=discount)
        return np.where(live, means[:, : live.shape[1]], 0.0), np.asarray(live)
    sign = 1.0 if task.signal == "goal" else -1.0
    faded = discount ** np.maximum(left - 1, 0)
    return np.asarray(sign * faded * (live & episodes.terminated[:, np.newaxis])), np.asarray(live)


def _mean_worth(worth: Array, *, discount: float) -> Array:
    """Σ_k γ^k·worth_{t+k} over Σ_k γ^k, of the steps that are left."""
    means, total, weight = np.empty(worth.shape), np.zeros(len(worth)), 0.0
    for t in reversed(range(worth.shape[1])):
        total, weight = worth[:, t] + discount * total, 1.0 + discount * weight
        means[:, t] = total / weight
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedUsers:
    """Users of a task, from a seed. A user's random numbers depend on the seed and on the user's number alone.

    Attributes:
        task: The task.
        seed: The seed.
    """

    task: Task
    seed: int

    def play(self, choose: Choose, users: range) -> Episodes:
        """Let these users play one episode each."""
        starts, uniforms = draw_rows(self.task, self.seed, users)
        return play(self.task, choose, users=users, starts=starts, uniforms=uniforms)


def draw_rows(task: Task, seed: int, users: range) -> tuple[Array, Array]:
    """Random numbers of users, (users, n) for starts and (users, limit) for actions: one stream for each user."""
    width = len(task.low)
    rows = np.empty((len(users), width + task.limit))
    for row, user in zip(rows, users, strict=True):
        row[:] = np.random.default_rng((seed, user)).random(width + task.limit)
    return rows[:, :width], rows[:, width:]


def greedy_returns(task: Task, policy: Policy, parameters: Array, *, seed: int, episodes: int) -> Array:
    """Returns of the greedy policy on fresh simulated users, (episodes,): for simulations, where the model is public.

    Args:
        task: The task.
        policy: The policy's form.
        parameters: Its parameters.
        seed: Seed of the fresh users.
        episodes: Number of them.
    """
    choose = most_likely(policy, parameters)
    return SimulatedUsers(task=task, seed=seed).play(choose, range(episodes)).returns


def drawn_returns(task: Task, policy: Policy, parameters: Array, *, seed: int, episodes: int) -> Array:
    """Returns of the policy that draws its actions, as users do while it is trained, (episodes,): as `greedy_returns`.

    Args:
        task: The task.
        policy: The policy's form.
        parameters: Its parameters.
        seed: Seed of the fresh users.
        episodes: Number of them.
    """
    choose = drawing(policy, parameters)
    return SimulatedUsers(task=task, seed=seed).play(choose, range(episodes)).returns
