"""Environment of the agents of counters: a fresh replicate, its privatizer, a player with a kernel; audit adapters.

The adapters (`privcheck.runtime.online.Face`) of the tabular agents have the layout of a replicate's arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.runtime.online import Face, Player, Record, Replicate, Tables, blank, grid
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.optimism import share_at_limit
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, compress
from privcheck_algorithms.kernels.tables import Array, Layout, aligned, as_declared, size
from privcheck_algorithms.online.private import (
    NO_PRIVATIZER,
    NOISE,
    PrivatizerConfig,
    declared,
    privatizer_config,
    recomputes_noise,
    refuse,
    vectors,
)
from privcheck_algorithms.privatizers import noise, recompute
from privcheck_algorithms.privatizers.counters import (
    DOUBLING,
    EXACT,
    LOCAL,
    RECOMPUTED,
    TREE,
    Privatizer,
    begins,
    levels,
    outputs,
)
from privcheck_algorithms.privatizers.recompute import RecomputedTree


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFace:
    """Adapter of counters kept from user to user, `exact` and `noisy`, in the layout of `kernels.tables`.

    Attributes:
        names: The releases: visits, costs or rewards, transitions.
        sizes: T (H, or 1 if steps are pooled), S and A.
        episodes: K, after which nothing is released.
        policy: As in `Face`.
        central: Whether a curator keeps exact counters; otherwise only sums of users' noisy messages are kept.
    """

    names: tuple[str, ...]
    sizes: tuple[int, int, int]
    episodes: int
    policy: tuple[str, ...]
    central: bool
    board: tuple[str, ...] = ("noisy",)

    def output(self, episode: int) -> int | None:
        """Number of the episode; None for the last one, which has no later user."""
        return episode if episode < self.episodes else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Exact counters of the curator; None without a curator."""
        return self.tables(one.arrays["exact"]) if self.central else None

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Noisy counters."""
        return self.tables(one.arrays["noisy"])

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values among the noisy counters."""
        T, S, A = self.sizes
        return int(one.arrays["noisy"].size) - T * S * A * (S + 2)

    def tables(self, flat: Array) -> Tables:
        """Tables of the releases, in their declared shapes."""
        return dict(zip(self.names, as_declared(flat, *self.sizes).values(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounterFace:
    """Adapter of counters of disjoint doubling batches: one noisy vector `board` each, their sum, and the exact vector.

    Attributes:
        counters: Layout of a vector, and K.
        first: Number of users of the first batch.
    """

    counters: CounterFace
    first: int
    board: tuple[str, ...] = ("board", "noisy")

    @property
    def policy(self) -> tuple[str, ...]:
        """Arrays that make up a policy."""
        return self.counters.policy

    def output(self, episode: int) -> int | None:
        """Number of the batch that ends with the episode; None if there is none, and for the last batch."""
        ends = episode < self.counters.episodes and begins(episode, self.first)
        return (episode // self.first).bit_length() if ends else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Exact counters of the batch that has ended."""
        return self.counters.tables(one.arrays["exact"])

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Noisy counters of the batch."""
        return self.counters.tables(one.arrays["board"][output - 1])

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values among the batches' noisy counters, or in their sum."""
        noisy, exact = one.arrays["board"], int(one.arrays["exact"].size)
        extra = int(noisy.size) - outputs(self.counters.episodes, self.first) * exact
        return max(extra, self.counters.undeclared(one))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFace:
    """Adapter of tables of disjoint batches: a noisy table for each batch, and the exact one of the current batch.

    Attributes:
        names: Names of the releases, and of the arrays.
        ends: The last user of each batch; the last batch's tables are not released.
        policy: As in `Face`.
    """

    names: tuple[str, ...]
    ends: tuple[int, ...]
    policy: tuple[str, ...]

    @property
    def board(self) -> tuple[str, ...]:
        """Names of the noisy tables."""
        return self.names

    def output(self, episode: int) -> int | None:
        """Number of the batch that ends with the episode; None if there is none, and for the last batch."""
        return self.ends.index(episode) + 1 if episode in self.ends[:-1] else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Exact tables of the batch that has ended."""
        return {name: one.arrays[f"exact_{name}"].copy() for name in self.names}

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Noisy tables of the batch."""
        return {name: one.arrays[name][output - 1].copy() for name in self.names}

    def undeclared(self, one: Replicate) -> int:
        """Number of undeclared values in the tables of all batches."""
        return sum(
            int(one.arrays[name].size) - len(self.ends) * int(one.arrays[f"exact_{name}"].size) for name in self.names
        )


Arrays = Mapping[str, NDArray[Any]]

_EMPTY = np.zeros((0, 0))
_NO_PAST = RecomputedTree(
    S=0,
    A=0,
    marks=np.zeros((0, 0, 0, 0, 0), np.uint64),
    paths=np.zeros((0, 0), np.int64),
    taken=np.zeros((0, 0), np.int64),
    costs=_EMPTY,
    exact=np.zeros(0),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentEnv:
    """Environment of an agent of counters: its world, its privatizer configuration, its counters' layout.

    Attributes:
        request: The request.
        given: Configuration of the privatizer.
        w: The world.
        optimal: Optimal value V*₁.
        layout: Layout of the counters.
    """

    request: OnlineRequest
    given: PrivatizerConfig
    w: SparseMDP
    optimal: float
    layout: Layout

    def keep(self) -> Arrays:
        """Arrays of the privatizer in a replicate, before the first episode."""
        H, K, (T, S, A, _), kind = self.w.H, self.request.episodes, self.layout, self.given.kind
        if kind == RECOMPUTED:
            return {
                "paths": np.zeros((K, H + 1), np.int64),
                "taken": np.zeros((K, H), np.int64),
                "costs": np.zeros((K, H)),
                "marks": np.zeros((levels(K), recompute.PARTS, H, *noise.SHAPE), np.uint64),
            }
        M = size(T, S, A)
        rows = {"board": outputs(K, self.given.first)} if kind == DOUBLING else {"prefix": levels(K)}
        return {
            "exact": aligned(M if self.given.central else 0),
            "noisy": aligned(M),
            **{name: aligned(*((number, M) if self.given.central else (0, 0))) for name, number in rows.items()},
        }

    def privatizer(self, one: Replicate) -> Privatizer:
        """Privatizer of a replicate, with its arrays."""
        arrays, layout, past, kind = one.arrays, self.layout, _NO_PAST, self.given.kind
        if kind == RECOMPUTED:  # one step's tables
            layout, M = layout._replace(T=1), size(1, layout.S, layout.A)
            kept = {name: arrays[name] for name in ("marks", "paths", "taken", "costs")}
            past = RecomputedTree(S=layout.S, A=layout.A, exact=np.zeros(M), **kept)
            exact, noisy, rows = np.zeros(0), np.zeros(M), _EMPTY
        else:
            exact, noisy, rows = arrays["exact"], arrays["noisy"], arrays["board" if kind == DOUBLING else "prefix"]
        channel = noise.open_channel(
            self.given.law,
            self.given.scale,
            streams=arrays["streams"],
            rng=one.generators["noise"],
            piece=noise.chunk(noisy.size),
        )
        return Privatizer(
            kind=kind,
            K=self.request.episodes,
            first=self.given.first,
            layout=layout,
            channel=channel,
            exact=exact,
            noisy=noisy,
            rows=rows,
            past=past,
        )

    def face(self, policy: tuple[str, ...]) -> Face:
        """Audit adapter of an agent, given the arrays that make up its policy."""
        T, S, A, _ = self.layout
        counters = CounterFace(
            names=tuple(release.name for release in declared(self.request).noisy),
            sizes=(T, S, A),
            episodes=self.request.episodes,
            policy=policy,
            central=self.given.central,
        )
        return BatchCounterFace(counters=counters, first=self.given.first) if self.given.first else counters


def make_env(
    request: OnlineRequest,
    *,
    noiseless: bool = False,
    kinds: Collection[int] = (TREE, LOCAL),
    pooled: bool = False,
    rewards: bool = False,
) -> AgentEnv:
    """Environment of an agent of counters.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; the precision levels, with which the agent plans, are unchanged.
        kinds: Kinds of privatizers that the agent supports; `EXACT` alone for a non-private agent.
        pooled: Whether counts are pooled over the steps.
        rewards: Whether to sum rewards; otherwise costs.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, too many counters, or as `privatizer_config`.
    """
    if EXACT in kinds:
        refuse(request, vectors=1)
        given = NO_PRIVATIZER
    else:
        again = recomputes_noise(request) if RECOMPUTED in kinds else 0.0
        refuse(request, vectors=again or vectors(request))
        given = privatizer_config(request, noiseless=noiseless, kinds=kinds)
    mdp = request.world.mdp
    layout = Layout(T=1 if pooled else mdp.horizon, S=mdp.states, A=mdp.actions, rewards=rewards)
    return AgentEnv(request=request, given=given, w=compress(mdp), optimal=solve(mdp).value, layout=layout)


def assemble(
    where: AgentEnv,
    *,
    label: str,
    begin: Callable[[], Arrays],
    play: Callable[[Arrays, np.random.Generator, Privatizer, Record], None],
    told: str,
    policy: tuple[str, ...],
    diagnostics: Mapping[str, float] | None = None,
) -> Player:
    """Player with an agent's kernel.

    Args:
        where: Environment of the agent.
        label: The agent's name in a run's fingerprint.
        begin: Makes the agent's arrays of a replicate, by name.
        play: The kernel: plays a block of episodes on such arrays.
        told: As in `Player`.
        policy: As in `Face`.
        diagnostics: Further diagnostics of the privatizer.
    """
    request, given, points = where.request, where.given, grid(where.request.episodes)
    private = given.kind != EXACT

    def start(number: int) -> Replicate:
        own = seeds(request.seed, number, "users", "noise")
        arrays = {**where.keep(), "streams": noise.lanes(own["noise"]), **begin(), **blank(request.episodes)}
        return Replicate(arrays=arrays, generators={name: np.random.default_rng(one) for name, one in own.items()})

    def block(one: Replicate, until: int) -> None:
        a = one.arrays
        record = Record(until=until, totals=a["totals"], curves=a["curves"], grid=points, optimal=where.optimal)
        play(a, one.generators["users"], where.privatizer(one), record)

    return Player(
        start=start,
        play=block,
        label=label,
        told=told,
        optimal=where.optimal,
        face=where.face(policy) if private else None,
        noise=NOISE,
        diagnostics={"noise_scale": given.scale, "E1": given.E1, "E2": given.E2, **(diagnostics or {})}
        if private
        else {},
        at_limit=lambda one: share_at_limit(one.arrays["values"], costs=not where.layout.rewards),
    )
