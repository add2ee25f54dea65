"""Running online agents as auditors see them: what their privatizers hold, and what stands on their billboards.

An agent is driven episode by episode through `Player` and `Replicate` (`online.driver`), on the kernels that
users run; nothing here knows what is inside of them. What is read are the replicate's arrays: the exact and the noisy
counters, or the tables of a batch. A local privatizer has no exact counters: a user's message is what the agent's twin
without noise adds to the sums, started where the agent stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Declaration
from privcheck.errors import AuditError, ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.results import OnlineRequest, World
from privcheck.schedules import Batches, PerUser, Tree
from privcheck_algorithms.calibrated_ucb_vi.agent import schedule
from privcheck_algorithms.environments.random_mdp import random_mdp
from privcheck_algorithms.online.driver import Player, Replicate
from privcheck_algorithms.online.private import first_batch
from privcheck_algorithms.online.tables import as_declared
from privcheck_algorithms.privatizers.batches import begins, outputs
from privcheck_audits.policy.online import MakePlayer

Array = NDArray[np.float64]
Tables = Mapping[str, Array]

EPISODES: Final = 64  # K, at most
_NUMBERS: Final = 20_000  # counters, above which fewer states, actions or steps are taken
_POLICIES: Final = (
    "actions",
    "policy",
    "last",
    "logits",
    "values",
    "played",
)  # arrays that depend on the billboard only
_LIVELY: Final = {  # options under which policies follow the noisy tables closely; no claim depends on them
    "bonus_scale": Fraction(1, 100),
    "precision_scale": Fraction(0),
    "first_batch": Fraction(4),
    "growth": Fraction(1),
    "turns": Fraction(2),
    "support": Fraction(0),
    "known": Fraction(0),
}


class Watch(Protocol):
    """Where in a replicate's arrays things stand."""

    @property
    def board(self) -> tuple[str, ...]:
        """Returns the names of the arrays that are the billboard."""
        ...

    def output(self, episode: int) -> int | None:
        """Returns which output leaves with an episode, counted from 1; None where none does."""
        ...

    def exact(self, one: Replicate, output: int) -> Tables:
        """Returns copies of what the last output's noise was added to, by release; of a tree the sum over all users."""
        ...

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns copies of the last output, by release."""
        ...

    def undeclared(self, one: Replicate) -> int:
        """Returns how many numbers stand on the billboard that no release declares."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Counters that are kept from user to user, `exact` and `noisy`, in the layout of `online.tables`.

    Attributes:
        names: The releases: visits, costs or rewards, transitions.
        sizes: T (H, or 1 where steps are pooled), S and A.
        episodes: K, after which nothing leaves.
    """

    names: tuple[str, ...]
    sizes: tuple[int, int, int]
    episodes: int
    board: tuple[str, ...] = ("noisy",)

    def output(self, episode: int) -> int | None:
        """Returns the episode's number; None for the last, which nobody comes after."""
        return episode if episode < self.episodes else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Returns the exact counters."""
        return self.tables(one.arrays["exact"])

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the noisy counters."""
        return self.tables(one.arrays["noisy"])

    def undeclared(self, one: Replicate) -> int:
        """Returns by how many numbers the noisy counters are more than what is declared."""
        T, S, A = self.sizes
        return int(one.arrays["noisy"].size) - T * S * A * (S + 2)

    def tables(self, flat: Array) -> Tables:
        """Returns the releases' tables, in their declared shapes."""
        return dict(zip(self.names, as_declared(flat, *self.sizes).values(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCounters:
    """Counters of disjoint batches that double: a noisy vector `board` for each, their sum, and the batch's exact one.

    Attributes:
        counters: How a vector is laid out; K.
        first: Users of the first batch.
    """

    counters: Counters
    first: int
    board: tuple[str, ...] = ("board", "noisy")

    def output(self, episode: int) -> int | None:
        """Returns the number of the batch that ends with the episode; None where none does, and for the last."""
        ends = episode < self.counters.episodes and begins(episode, self.first)
        return (episode // self.first).bit_length() if ends else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Returns the exact counters of the batch that has ended."""
        return self.counters.tables(one.arrays["exact"])

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the noisy counters of the batch."""
        return self.counters.tables(one.arrays["board"][output - 1])

    def undeclared(self, one: Replicate) -> int:
        """Returns by how many numbers the batches' noisy counters, or their sum, are more than what is declared."""
        noisy, exact = one.arrays["board"], int(one.arrays["exact"].size)
        extra = int(noisy.size) - outputs(self.counters.episodes, self.first) * exact
        return max(extra, self.counters.undeclared(one))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTables:
    """Tables of disjoint batches: a noisy one for each batch, and the exact one of the batch under way.

    Attributes:
        names: The releases, which are the names of the arrays.
        ends: The last user of each batch; the last batch's tables do not leave.
    """

    names: tuple[str, ...]
    ends: tuple[int, ...]

    @property
    def board(self) -> tuple[str, ...]:
        """Returns the names of the noisy tables."""
        return self.names

    def output(self, episode: int) -> int | None:
        """Returns the batch that ends with the episode; None where none does, and for the last."""
        return self.ends.index(episode) + 1 if episode in self.ends[:-1] else None

    def exact(self, one: Replicate, output: int) -> Tables:
        """Returns the exact tables of the batch that has ended."""
        return {name: one.arrays[f"exact_{name}"].copy() for name in self.names}

    def noisy(self, one: Replicate, output: int) -> Tables:
        """Returns the noisy tables of the batch."""
        return {name: one.arrays[name][output - 1].copy() for name in self.names}

    def undeclared(self, one: Replicate) -> int:
        """Returns by how many numbers the tables of all batches are more than what is declared."""
        return sum(
            int(one.arrays[name].size) - len(self.ends) * int(one.arrays[f"exact_{name}"].size) for name in self.names
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watched:
    """An agent under audit; importable, so that blocks can run in any process.

    Attributes:
        make: Makes the agent.
        request: What is asked of it.
        watch: Where its arrays hold what.
    """

    make: MakePlayer
    request: OnlineRequest
    watch: Watch

    @property
    def declaration(self) -> Declaration:
        """Returns what the agent may release."""
        assert self.request.declaration is not None
        return self.request.declaration

    @property
    def local(self) -> bool:
        """Returns whether every user adds noise of their own."""
        return all(isinstance(release.schedule, PerUser) for release in self.declaration.releases)

    @property
    def tree(self) -> bool:
        """Returns whether outputs are sums over all users so far, of P-sums with noise of their own."""
        return all(isinstance(release.schedule, Tree) for release in self.declaration.releases)

    def player(self, seed: int, *, mdp: FiniteMDP | None = None, quiet: bool = False) -> Player:
        """Returns the agent in its own world or in another one, ready to play."""
        world = self.request.world if mdp is None else replace(self.request.world, mdp=mdp)
        return self.make(replace(self.request, seed=seed, world=world), quiet=quiet)


class Twin:
    """A replicate that goes wherever an agent stands, to play an episode there without noise.

    Args:
        agent: Under local privacy.
        seed: Of the audited run.
    """

    def __init__(self, agent: Watched, seed: int) -> None:
        assert isinstance(agent.watch, Counters)
        self._watch, self._seed = agent.watch, seed
        self._one = agent.player(seed, quiet=True).start(0)

    def message(self, quiet: Player, one: Replicate, episode: int) -> Tables:
        """Returns what a user sends in an episode, before the noise; the agent itself is left where it is.

        Args:
            quiet: The agent without noise, in the user's world.
            one: Where the agent stands before the episode.
            episode: Its number.
        """
        place(self._one, one)
        quiet.play(self._one, episode)
        return self._watch.tables(self._one.arrays["noisy"] - one.arrays["noisy"])

    def check(self, one: Replicate, episode: int) -> None:
        """Checks that the agent has played the same policy with its noise.

        Raises:
            AuditError: It has not: what it sent in its own episode is not known then.
        """
        if not same_policies(self._one, one):
            message = (
                f"in episode {episode} the agent plays another policy without noise, behind the same billboard: what "
                "its user sends is not known"
            )
            raise AuditError(message, trial=episode, seed=self._seed)


def watched(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    options: Mapping[str, Fraction],
    *,
    make: MakePlayer,
    readings: Mapping[str, str],
) -> tuple[Watched, Mapping[str, Fraction]]:
    """Returns the agent in a random model, and the parameters at which it runs: those asked for, up to some size.

    Args:
        declaration: What is released.
        values: Its parameters.
        options: The agent's options, of which those that keep it from learning in a few episodes are replaced.
        make: Makes the agent.
        readings: Those that the agent asks for.

    Raises:
        ParameterError: The agent has neither counters nor batches of the declared releases.
    """
    at = moderate(values)
    H, S, A, K = (int(at[name]) for name in ("H", "S", "A", "K"))
    world = World(name="random", description="random", mdp=random_mdp(S=S, A=A, H=H, seed=1, stationary=True))
    request = OnlineRequest(
        declaration=declaration,
        values=at,
        options={name: _LIVELY.get(name, value) for name, value in options.items()},
        readings=readings,
        world=world,
        episodes=K,
    )
    names = tuple(release.name for release in declaration.releases)
    first = declaration.releases[0]
    watch: Watch
    counters = Counters(names=names, sizes=(first.statistic.shape(at)[0], S, A), episodes=K)
    if isinstance(first.schedule, Batches) and "growth" not in options:
        watch = BatchCounters(counters=counters, first=first_batch(request))
    elif isinstance(first.schedule, Batches):
        size, growth = int(request.options["first_batch"]), float(request.options["growth"])
        watch = BatchTables(names=names, ends=tuple(schedule(K, first=size, growth=growth).tolist()))
    elif isinstance(first.schedule, Tree | PerUser) and len(names) == 3:
        watch = counters
    else:
        message = f"{declaration.name}: expected three tables of counters, or batches, got {', '.join(names)}"
        raise ParameterError(message, name=declaration.name)
    return Watched(make=make, request=request, watch=watch), at


def moderate(values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """Returns parameters with at most `EPISODES` episodes and not too many counters, the others as they are."""
    at = {**values, "K": min(values["K"], Fraction(EPISODES))}
    while math.prod((at["H"], at["S"], at["A"], at["S"] + 2)) > _NUMBERS:
        name = max(("S", "A", "H"), key=lambda each: at[each])
        at[name] = Fraction(int(at[name]) * 3 // 4)
    return at


def place(one: Replicate, where: Replicate) -> None:
    """Puts a replicate where another one stands: arrays and randomness."""
    for name, array in one.arrays.items():
        array[...] = where.arrays[name]
    for name, rng in one.generators.items():
        rng.bit_generator.state = where.generators[name].bit_generator.state


def policies(one: Replicate) -> dict[str, NDArray[Any]]:
    """Returns the arrays that a policy is made of."""
    return {name: one.arrays[name] for name in _POLICIES if name in one.arrays}


def same_policies(one: Replicate, other: Replicate) -> bool:
    """Returns whether two replicates have the same policy, bit for bit."""
    return all(np.array_equal(array, other.arrays[name]) for name, array in policies(one).items())
