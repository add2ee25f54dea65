"""Where in a replicate's arrays things stand: the faces (`privcheck.online.player.Face`) of the tabular agents."""

from __future__ import annotations

from dataclasses import dataclass

from privcheck.online.player import Replicate, Tables
from privcheck_algorithms.online.tables import Array, as_declared
from privcheck_algorithms.privatizers.counters import begins, outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterFace:
    """Counters that are kept from user to user, `exact` and `noisy`, in the layout of `online.tables`.

    Attributes:
        names: The releases: visits, costs or rewards, transitions.
        sizes: T (H, or 1 where steps are pooled), S and A.
        episodes: K, after which nothing leaves.
        policy: As in `Face`.
        central: A curator keeps exact counters; else only sums of users' noisy messages are kept.
    """

    names: tuple[str, ...]
    sizes: tuple[int, int, int]
    episodes: int
    policy: tuple[str, ...]
    central: bool
    board: tuple[str, ...] = ("noisy",)

    def output(self, episode: int) -> int | None:
        """Returns the episode's number; None for the last, which nobody comes after."""
        return episode if episode < self.episodes else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
        """Returns the curator's exact counters; None where there is no curator."""
        return self.tables(one.arrays["exact"]) if self.central else None

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
class BatchCounterFace:
    """Counters of disjoint batches that double: a noisy vector `board` for each, their sum, and the batch's exact one.

    Attributes:
        counters: How a vector is laid out; K.
        first: Users of the first batch.
    """

    counters: CounterFace
    first: int
    board: tuple[str, ...] = ("board", "noisy")

    @property
    def policy(self) -> tuple[str, ...]:
        """Returns the arrays that a policy is made of."""
        return self.counters.policy

    def output(self, episode: int) -> int | None:
        """Returns the number of the batch that ends with the episode; None where none does, and for the last."""
        ends = episode < self.counters.episodes and begins(episode, self.first)
        return (episode // self.first).bit_length() if ends else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
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
class BatchFace:
    """Tables of disjoint batches: a noisy one for each batch, and the exact one of the batch under way.

    Attributes:
        names: The releases, which are the names of the arrays.
        ends: The last user of each batch; the last batch's tables do not leave.
        policy: As in `Face`.
    """

    names: tuple[str, ...]
    ends: tuple[int, ...]
    policy: tuple[str, ...]

    @property
    def board(self) -> tuple[str, ...]:
        """Returns the names of the noisy tables."""
        return self.names

    def output(self, episode: int) -> int | None:
        """Returns the batch that ends with the episode; None where none does, and for the last."""
        return self.ends.index(episode) + 1 if episode in self.ends[:-1] else None

    def exact(self, one: Replicate, output: int) -> Tables | None:
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
