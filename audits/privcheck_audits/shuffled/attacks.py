"""What can be looked at behind a shuffler: at which pair, in which batch, of how many users moved alike.

Everything here is computed from the known law, before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.errors import ParameterError
from privcheck.mechanisms import shuffled_noise
from privcheck.pricing import Priced
from privcheck.verification.candidates import UserPair, candidate_pairs
from privcheck.verification.known_data import explain_no_pair
from privcheck.verification.witness import describe
from privcheck_audits.engine.scores import MovedGroup, find_moved_groups
from privcheck_audits.shuffled.messages import as_sums, compute_shown_probability, width

_NUMBERS: Final = 600  # of a run, that are drawn to look at integer messages; further counters are left out
_WIDEST: Final = 40  # integers 0 … m + 1, beyond which only their sums are looked at: a message shows no one then


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attack:
    """What is looked at, at which pair, in which batch.

    Attributes:
        groups: The counters in which D and D′ differ.
        users: How many users are moved alike.
        pair: The data of each of them in D and in D′.
        batch: n, everybody behind the shuffler.
        shown: Probability, by the known law, that a run on D sends what cannot be sent on D′.
    """

    groups: tuple[MovedGroup, ...]
    users: int
    pair: UserPair
    batch: int
    shown: float

    @property
    def integers(self) -> bool:
        """Returns whether every integer message is looked at, not their sum alone."""
        return any(group.noise.integers for group in self.groups)

    @property
    def counters(self) -> int:
        """Returns how many counters are looked at."""
        return sum(group.change.size for group in self.groups)

    @property
    def noise_bits(self) -> tuple[int, float]:
        """Returns (m, p) of the first counter; (0, ½) where no counter is moved."""
        for group in self.groups:
            return shuffled_noise(group.noise).bits
        return 0, 0.5

    @property
    def words(self) -> str:
        """Returns the pair in words, and where everybody else is."""
        alike = f"{self.users} users who are alike: " if self.users > 1 else ""
        where = f"; all are in one batch of {self.batch} users" if self.batch > 1 else "; the noise bits are dealt out"
        if self.integers:
            where += (
                f", everybody else holding the data of D′: a message {self.noise_bits[0] + 1} in a counter where "
                "nobody else holds a 1, or 0 where everybody else does, is the one user's"
            )
        return alike + describe(self.pair) + where


def attacks(priced: Priced, sizes: tuple[int, ...]) -> Iterator[Attack]:
    """Yields what can be looked at, at the pair that moves most counters.

    * The number of ones of every counter, in the batch with the least noise of those that hold so many users.
    * Every integer message of one user's counters, in the batch that shows the user most often.

    Args:
        priced: What is sent, at its parameters.
        sizes: How many users to move alike where the sums are looked at.

    Raises:
        ParameterError: No pair of neighbours can be held in memory, or there is nobody in any batch.
    """
    declaration, values = priced.declaration, priced.values
    pair, group = _pair(priced)
    seen = declaration.seen_by(group)
    settings = seen[0].settings(values) if seen else ()
    together = replace(declaration, releases=tuple(r for r in seen if r.settings(values) == settings))
    moved = [find_moved_groups(together, at, pair, group) for at in settings]
    if not any(moved):
        message = f"{declaration.name}: no batch has a user in it, and nothing is sent; audit more episodes"
        raise ParameterError(message, name="K", given=values.get("K"))
    for users in sizes:
        large = [groups for groups in moved if groups and _senders(groups) >= users]
        if large:
            alike = [replace(g, change=g.change * users) for g in as_sums(max(large, key=_strength))]
            yield _attack(alike, users, pair)
    integers = [kept for groups in moved if (kept := _integers(groups))]
    if integers:
        yield _attack(max(integers, key=compute_shown_probability), 1, pair)


def _attack(groups: Sequence[MovedGroup], users: int, pair: UserPair) -> Attack:
    shown = compute_shown_probability(groups)
    return Attack(groups=tuple(groups), users=users, pair=pair, batch=_senders(groups), shown=shown)


def _pair(priced: Priced) -> tuple[UserPair, str]:
    """Returns the pair that moves most counters, and the user's group in a partition of the users."""
    declaration, values, pairs = priced.declaration, priced.values, []
    for group in declaration.groups:
        for pair in candidate_pairs(priced, group):
            changes = [r.moved(pair, values) for r in declaration.seen_by(group)]
            pairs.append((sum(float(np.abs(c.change).sum()) * c.times for c in changes), pair, group))
    if not pairs:
        raise ParameterError(f"{declaration.name}: {explain_no_pair(declaration, values)}", name="candidates")
    _, pair, group = max(pairs, key=lambda each: each[0])
    return pair, group


def _senders(groups: Sequence[MovedGroup]) -> int:
    return min(shuffled_noise(group.noise).senders for group in groups)


def _strength(groups: Sequence[MovedGroup]) -> float:
    """Returns Σ(Δ/std)²: how far the sums are moved."""
    return sum(float(np.square(group.change / group.noise.scale).sum()) for group in groups)


def _integers(groups: Sequence[MovedGroup]) -> list[MovedGroup]:
    """Returns the counters of integer messages that the one user moves by one, as many as can be drawn."""
    kept: list[MovedGroup] = []
    left = _NUMBERS
    for group in groups:
        if not group.noise.integers or width(group) > _WIDEST:
            continue
        change = group.change[np.abs(group.change) == 1][: left // width(group)]
        left -= change.size * width(group)
        if change.size:
            kept.append(replace(group, change=change))
    return kept
