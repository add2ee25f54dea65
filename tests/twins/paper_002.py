"""PRIVATE-UCB-VI and PRIVATE-UCB-PO as the paper writes them, slowly: every noisy partial sum passes a channel.

The naive twin of the kernels, for small sizes. Each node of the tree (each user's message) is released slice by slice
through a `Channel` of its own onto a billboard of its own; the agent, in plain NumPy, is handed billboards alone. The
noise source repeats the kernels' stream, so that a run has the same policies and, up to the rounding of sums, the same
tables as the kernels' replicate of that number. Replay tests put other channels in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import one_hot, uniform
from privcheck.data.trajectories import Trajectories
from privcheck.declare.mechanisms import Noise
from privcheck.runtime import Billboard, Channel, Ledger
from privcheck.runtime.channel import ReleaseChannel
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.optimism import Bonus, policy_bonus, value_bonus
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, compress, empty_walk, roll_greedy, roll_mixed
from privcheck_algorithms.kernels.tables import as_declared, size
from privcheck_algorithms.online.private import PrivatizerConfig, declared, privatizer_config
from privcheck_algorithms.private_ucb_po.agent import learning_rate
from privcheck_algorithms.privatizers import noise as kernel_noise
from twins.planning import best_backward, value_backward

Array = NDArray[np.float64]
Tables = Mapping[str, Array]
Opener = Callable[[int], tuple[ReleaseChannel, Billboard]]  # of the node that closes with an episode


class KernelNoise:
    """A noise source that repeats the kernels' stream: one vector of fresh noise an episode, as they lay it out."""

    words = "simulated: the kernels' own stream, for their naive twin"
    as_declared, protects = True, False

    def __init__(self, request: OnlineRequest, given: PrivatizerConfig, number: int) -> None:
        mdp = request.world.mdp
        own = seeds(request.seed, number, "noise")["noise"]
        self._given, self._sizes = given, (mdp.horizon, mdp.states, mdp.actions)
        self._names = [release.name for release in declared(request).releases]
        self._streams, self._rng = kernel_noise.lanes(own), np.random.default_rng(own)
        self._fresh: Tables = {}

    def advance(self) -> None:
        """Draws the vector of the next release."""
        M = size(*self._sizes)
        fresh, piece = np.empty(M), kernel_noise.padded(M)
        channel = kernel_noise.open_channel(
            self._given.law, self._given.scale, streams=self._streams, rng=self._rng, piece=piece
        )
        kernel_noise.add(channel, np.zeros(M), fresh)
        self._fresh = as_declared(fresh, *self._sizes)

    def add(self, noise: Noise, value: Array, *, release: int, part: int) -> Array:
        """Returns value + the noise that the kernels add there."""
        return np.asarray(value + self._fresh[self._names[release]][part])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """What happened in a run, episode by episode.

    Attributes:
        policies: (H, S, A) action probabilities of each episode.
        regret: (K,) cumulative.
        tables: The noisy counters that each episode was planned from.
        users: Each episode's trajectory.
    """

    policies: list[Array] = field(default_factory=list)
    regret: list[float] = field(default_factory=list)
    tables: list[Tables] = field(default_factory=list)
    users: list[Trajectories] = field(default_factory=list)


def trace(
    request: OnlineRequest,
    *,
    kind: Literal["vi", "po"],
    number: int = 0,
    opener: Opener | None = None,
    answers: Sequence[Trajectories] | None = None,
) -> Trace:
    """Returns a run of Algorithm 2 ("vi") or Algorithm 1 ("po").

    Args:
        request: What is asked.
        kind: Which algorithm.
        number: The replicate.
        opener: Makes the channel of the node that closes with an episode, and its billboard; None releases with the
            kernels' noise.
        answers: The users' trajectories, whatever the policy; None lets users act in the environment.
    """
    given, mdp, K = privatizer_config(request), request.world.mdp, request.episodes
    source = KernelNoise(request, given, number)
    opening = opener or _opener(request, source)
    rng = np.random.default_rng(seeds(request.seed, number, "users")["users"])
    bonus, eta = _constants(request, given, kind)
    w, best, found = compress(mdp), best_backward(mdp), Trace()
    nodes: dict[int, Billboard] = {}  # by the episode that closes them
    policy, total = uniform(mdp.horizon, mdp.states, mdp.actions), 0.0
    logits = np.zeros_like(policy)
    for k in range(1, K + 1):
        tables = _read(request, [nodes[t] for t in _cover(k - 1, central=given.central)])
        if kind == "vi":
            policy = _greedy(tables, bonus)
        else:
            quality = _qualities(tables, bonus, policy)
        total += best - value_backward(mdp, policy)
        found.policies.append(policy)
        found.tables.append(tables)
        found.regret.append(total)
        user = _answer(request, w, policy, rng) if answers is None else answers[k - 1]
        found.users.append(user)
        if kind == "po":  # line 13 of Algorithm 1
            logits = logits - eta * quality
            weights = np.exp(logits - logits.max(axis=2, keepdims=True))
            policy = weights / weights.sum(axis=2, keepdims=True)
        if k < K:
            source.advance()
            channel, nodes[k] = opening(k)
            _release(request, channel, found.users[k - (k & -k if given.central else 1) : k])
    return found


def _cover(t: int, *, central: bool) -> list[int]:
    """Returns the nodes, by the episode that closes them, whose sums cover [1, t] (sections 5.1 and 5.2)."""
    if not central:
        return list(range(1, t + 1))
    nodes = []
    while t:
        nodes.append(t)
        t -= t & -t
    return nodes


def _read(request: OnlineRequest, billboards: Sequence[Billboard]) -> Tables:
    mdp = request.world.mdp
    shapes = {release.name: release.statistic.shape(request.values) for release in declared(request).releases}
    return {
        name: sum((np.stack([b.read(name, part=h) for h in range(mdp.horizon)]) for b in billboards), np.zeros(shape))
        for name, shape in shapes.items()
    }


def _release(request: OnlineRequest, channel: ReleaseChannel, users: Sequence[Trajectories]) -> None:
    for release in declared(request).releases:
        for h in range(request.world.mdp.horizon):
            partial = sum(release.statistic.compute(user, step=h) for user in users)
            channel.release(release.name, np.asarray(partial), part=h)


def _opener(request: OnlineRequest, source: KernelNoise) -> Opener:
    def opening(_: int) -> tuple[ReleaseChannel, Billboard]:
        billboard, declaration = Billboard(), declared(request)
        ledger = Ledger(declaration, request.values, noise=source.words)
        channel = Channel(declaration, request.values, noise=source, billboard=billboard, ledger=ledger)
        return channel, billboard

    return opening


def _answer(request: OnlineRequest, w: SparseMDP, policy: Array, rng: np.random.Generator) -> Trajectories:
    mdp = request.world.mdp
    walk = empty_walk(mdp.horizon)
    if (policy.max(axis=2) == 1).all():  # such a policy costs no randomness
        roll_greedy(w, policy.argmax(axis=2), rng, walk)
    else:
        roll_mixed(w, policy, rng, walk)
    return Trajectories(
        states=walk.path[None].astype(np.int32),
        actions=walk.taken[None].astype(np.int32),
        rewards=1 - walk.costs[None],
        num_states=mdp.states,
        num_actions=mdp.actions,
    )


def _constants(request: OnlineRequest, given: PrivatizerConfig, kind: str) -> tuple[Bonus, float]:
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    failure, scale = (float(request.options[name]) for name in ("failure", "bonus_scale"))
    if kind == "vi":
        return value_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=given.E1, E2=given.E2, scale=scale), 0.0
    eta = learning_rate(A=A, H=H, K=K, scale=float(request.options["eta_scale"]))
    return policy_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=given.E1, E2=given.E2, scale=scale), eta


def _estimates(tables: Tables, bonus: Bonus) -> tuple[Array, Array, Array]:
    """Returns c̃ and β, (H, S, A), and P̃, (H, S, A, S): equation (1), and the bonus."""
    n = np.maximum(1, tables["visits"] + bonus.E)
    return tables["costs"] / n, bonus.root / np.sqrt(n) + bonus.linear / n, tables["transitions"] / n[..., None]


def _greedy(tables: Tables, bonus: Bonus) -> Array:
    """Returns Algorithm 2's policy."""
    cost, beta, P = _estimates(tables, bonus)
    H, S, A = cost.shape
    value, actions = np.zeros(S), np.zeros((H, S), dtype=np.int64)
    for h in reversed(range(H)):
        quality = np.minimum(H - h, np.maximum(0, cost[h] + P[h] @ value - beta[h]))
        value, actions[h] = quality.min(axis=1), quality.argmin(axis=1)
    return one_hot(actions, A)


def _qualities(tables: Tables, bonus: Bonus, policy: Array) -> Array:
    """Returns Algorithm 1's Q̃ of a policy."""
    cost, beta, P = _estimates(tables, bonus)
    H, S, _ = cost.shape
    value, quality = np.zeros(S), np.zeros_like(cost)
    for h in reversed(range(H)):
        quality[h] = np.minimum(H - h, np.maximum(0, cost[h] + P[h] @ value - beta[h]))
        value = (quality[h] * policy[h]).sum(axis=1)
    return quality
