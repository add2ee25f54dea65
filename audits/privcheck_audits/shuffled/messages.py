"""Trials of shuffler outputs: messages of the counters in which two batches differ, scored by their exact ratio.

In the audited batch of n users, all other users have the data of D′, so that every counter that differs is 0 or n on
D′. The output is the multiset of messages of each counter: with every bit as a separate message, the number of ones is
the only information, Bin(N, p) plus the users' own; of integers z = bit + Σy, the frequencies of 0, 1, …, m + 1.
Counters have independent noise, so that their joint ratio is the product. Nothing is binned: scores of ±∞ are outputs
that are impossible on one neighbour.

`attacks` lists the observed counters, the pair, the batch, and the number of users changed alike, from the known law,
before any run.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from privcheck.declare.mechanisms import ShuffledNoise, draw_messages, noise_bits, shuffled_noise
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck.verification.candidates import UserPair, candidate_pairs, explain_no_pair
from privcheck.verification.witness import describe
from privcheck_audits.engine.scores import MovedGroup, Scored, draw_hidden_bits, find_moved_groups
from privcheck_audits.plan.reachable import LossLaw, sample_law

_GRID: Final = 2.0**30  # scores are multiples of 2⁻³⁰ nats
_CHUNK: Final = 160_000  # numbers drawn at a time: they stay in the cache until they are scored
_REACH: Final = 12.0  # standard deviations of a number of ones whose scores are tabulated
_MORE: Final = 60  # numbers beyond them

Array = NDArray[np.float64]


def as_sums(groups: Sequence[MovedGroup]) -> tuple[MovedGroup, ...]:
    """Counters of which only the sum of the messages is observed; anyone can compute it."""
    return tuple(replace(group, noise=shuffled_noise(group.noise).sums) for group in groups)


def width(group: MovedGroup) -> int:
    """Number of observed values per counter: 1 for the sum, or m + 2 for the counts of 0 … m + 1."""
    noise = shuffled_noise(group.noise)
    return noise.bits[0] + 2 if noise.integers else 1


def compute_shown_probability(groups: Sequence[MovedGroup]) -> float:
    """Probability that a run on D has an output that is impossible on D′, by the known law.

    A number of ones above N, or below the users' own; a message m + 1 if all bits are 0 on D′, or 0 if all are 1.
    """
    hidden = 1.0
    for group in groups:
        noise = shuffled_noise(group.noise)
        m, p = noise.bits
        size, trials = np.abs(group.change), noise.senders * m
        rising = group.change > 0
        if noise.integers:
            shown = np.where(rising, p**m, (1 - p) ** m)
        else:
            within = np.minimum(size, trials + 1.0)
            shown = np.where(rising, bdtrc(trials - within, trials, p), bdtr(within - 1, trials, p))
            shown = np.where(size > trials, 1.0, shown)
        hidden *= float(np.prod(1 - shown))
    return 1 - hidden


def message_trials(groups: Sequence[MovedGroup], rng: np.random.Generator, runs: int) -> Scored:
    """Scores of fresh runs, each on D or D′ by a hidden bit; ±∞ for outputs impossible on one neighbour.

    The messages come from the mechanism's own samplers, which the channel uses too. Scores are rounded to a grid, so
    that equal ratios are equal scores.

    Args:
        groups: The counters that differ, by noise; for "shuffled integers" each by ±1.
        rng: The block's generator.
        runs: Number of runs.
    """
    secret = draw_hidden_bits(rng, runs)
    score = np.zeros(runs)
    step = max(1, _CHUNK // max(1, sum(group.change.size * width(group) for group in groups)))
    for start in range(0, runs, step):
        part = slice(start, min(start + step, runs))
        for group in groups:
            trial = _integers if group.noise.integers else _sums
            score[part] += trial(group, rng, secret[part])
    return Scored(score=np.rint(score * _GRID) / _GRID, secret=secret)


def integers_log_ratio(counts: NDArray[np.int64], rising: NDArray[np.bool_], senders: int, threshold: float) -> Array:
    """Log-ratio ln p(messages | D) − ln p(messages | D′) of each counter; ±∞ if one is 0.

    With P = Bin(m, p), one 1 among bits 0 makes the ratio of D to D′ the mean of P(z − 1)/P(z) over the n messages, one
    0 among bits 1 that of P(z)/P(z − 1): exchange the hidden user with each of the n. A message m + 1, or 0, makes it
    infinite.

    Args:
        counts: (…, cells, m + 2) number of users who send 0, 1, …, m + 1.
        rising: (cells,) whether the user has a 1 on D and a 0 on D′, as all others have; otherwise the reverse.
        senders: n.
        threshold: τ.
    """
    m, p = noise_bits(senders, threshold)
    z = np.arange(1, m + 1, dtype=np.float64)
    up = z / (m + 1 - z) * ((1 - p) / p)  # P(z − 1)/P(z)
    one, none = np.concatenate([[0.0], up, [0.0]]), np.concatenate([[0.0], 1 / up, [0.0]])
    means = np.where(rising, counts @ one, counts @ none) / senders
    given_away = np.where(rising, counts[..., m + 1], counts[..., 0]) > 0
    with np.errstate(divide="ignore"):
        ratios: Array = np.where(given_away, np.inf, np.log(means))
    return ratios


def simulate_law(groups: Sequence[MovedGroup], rng: np.random.Generator, runs: int) -> LossLaw:
    """Law of the likelihood ratio from simulated runs of the known law, for the limit: not a bound."""
    return sample_law(message_trials(groups, rng, runs).score)


def _sums(group: MovedGroup, rng: np.random.Generator, secret: NDArray[np.bool_]) -> Array:
    noise = shuffled_noise(group.noise)
    m, p = noise.bits
    drawn = noise.draw(rng, (secret.size, group.change.size))
    ones = np.rint(drawn + noise.senders * m * p).astype(np.int64)
    change = group.change.astype(np.int64)
    ones -= np.where(secret[:, None], 0, change)  # less the users' own on D: on D′ they are fewer by the change
    score = np.zeros(secret.size)
    for moved in np.unique(change).tolist():
        score += _look_up(noise, moved, ones[:, change == moved])
    return score


def _look_up(noise: ShuffledNoise, change: int, ones: NDArray[np.int64]) -> Array:
    first, table = _table(noise, change)
    at = ones - first
    if at.min(initial=0) >= 0 and at.max(initial=0) < table.size:
        summed: Array = table[at].sum(axis=1)
        return summed
    ratios: Array = _scores(noise, change, ones.reshape(-1)).reshape(ones.shape).sum(axis=1)  # once in e^70 draws
    return ratios


@functools.lru_cache(maxsize=64)
def _table(noise: ShuffledNoise, change: int) -> tuple[int, Array]:
    """Scores of the likely numbers of ones less the users' own on D, with the first of these numbers."""
    m, p = noise.bits
    trials, more = noise.senders * m, abs(change)
    half = math.ceil(_REACH * noise.scale) + more + _MORE
    first, last = max(-more, math.floor(trials * p) - half), min(trials + more, math.ceil(trials * p) + half)
    return first, _scores(noise, change, np.arange(first, last + 1))


def _scores(noise: ShuffledNoise, change: int, ones: NDArray[np.int64]) -> Array:
    m, p = noise.bits
    drawn = (ones.astype(np.float64) - noise.senders * m * p)[:, None]
    with np.errstate(invalid="ignore"):  # beyond what either neighbour can send, which never occurs
        return noise.log_ratio(drawn, np.array([float(change)]))


def _integers(group: MovedGroup, rng: np.random.Generator, secret: NDArray[np.bool_]) -> Array:
    noise = shuffled_noise(group.noise)
    n = noise.senders
    rising = group.change > 0
    held = np.where(rising, np.where(secret[:, None], 1, 0), np.where(secret[:, None], n - 1, n))
    counts = draw_messages(rng, held, n, noise.threshold)
    summed: Array = integers_log_ratio(counts, rising, n, noise.threshold).sum(axis=1)
    return summed


_NUMBERS: Final = 600  # of a run, that are drawn to look at integer messages; further counters are left out
_WIDEST: Final = 40  # integers 0 … m + 1, beyond which only their sums are looked at: a message shows no one then


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attack:
    """The observed counters, the pair and the batch of an attack.

    Attributes:
        groups: The counters in which D and D′ differ.
        users: Number of users who change alike.
        pair: The data of each of them in D and in D′.
        batch: n, the number of users behind the shuffler.
        shown: Probability, by the known law, that a run on D has an output that is impossible on D′.
    """

    groups: tuple[MovedGroup, ...]
    users: int
    pair: UserPair
    batch: int
    shown: float

    @property
    def integers(self) -> bool:
        """Whether every integer message is observed, not only their sum."""
        return any(group.noise.integers for group in self.groups)

    @property
    def counters(self) -> int:
        """Number of observed counters."""
        return sum(group.change.size for group in self.groups)

    @property
    def noise_bits(self) -> tuple[int, float]:
        """Number m and probability p of noise bits of the first counter; (0, ½) if no counter changes."""
        for group in self.groups:
            return shuffled_noise(group.noise).bits
        return 0, 0.5

    @property
    def words(self) -> str:
        """The pair in words, with the data of the other users."""
        alike = f"{self.users} users with the same data: " if self.users > 1 else ""
        where = f"; all are in one batch of {self.batch} users" if self.batch > 1 else "; the noise bits are dealt out"
        if self.integers:
            where += (
                f", with all other users' data as in D′: a message {self.noise_bits[0] + 1} in a counter where no "
                "other user holds a 1, or 0 where all others do, is the one user's"
            )
        return alike + describe(self.pair) + where


def attacks(priced: Priced, sizes: tuple[int, ...]) -> Iterator[Attack]:
    """Yield the possible attacks at the pair that changes most counters.

    * The number of ones of every counter, in the batch with the least noise among those with enough users.
    * Every integer message of one user's counters, in the batch that shows the user most often.

    Args:
        priced: Declaration of the messages, with values of its parameters.
        sizes: Numbers of users to change alike if sums are observed.

    Raises:
        ParameterError: No pair of neighbours can be held in memory, or all batches are empty.
    """
    declaration, values = priced.declaration, priced.values
    pair, group = _pair(priced)
    seen = declaration.seen_by(group)
    settings = seen[0].settings(values) if seen else ()
    together = replace(declaration, releases=tuple(r for r in seen if r.settings(values) == settings))
    moved = [find_moved_groups(together, at, pair, group) for at in settings]
    if not any(moved):
        message = f"{declaration.name}: no batch has a user, so nothing is sent; audit more episodes"
        raise ParameterError(message, name="K", given=values.get("K"))
    for users in sizes:
        large = [groups for groups in moved if groups and _senders(groups) >= users]
        if large:
            alike = [replace(g, change=g.change * users) for g in as_sums(max(large, key=_strength))]
            yield _attack(alike, users, pair)
    integers = [kept for groups in moved if (kept := _integer_counters(groups))]
    if integers:
        yield _attack(max(integers, key=compute_shown_probability), 1, pair)


def _attack(groups: Sequence[MovedGroup], users: int, pair: UserPair) -> Attack:
    shown = compute_shown_probability(groups)
    return Attack(groups=tuple(groups), users=users, pair=pair, batch=_senders(groups), shown=shown)


def _pair(priced: Priced) -> tuple[UserPair, str]:
    """Pair that changes most counters, and the user's group if the users are partitioned."""
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
    """Signal-to-noise ratio Σ(Δ/std)² of the sums."""
    return sum(float(np.square(group.change / group.noise.scale).sum()) for group in groups)


def _integer_counters(groups: Sequence[MovedGroup]) -> list[MovedGroup]:
    """Counters of integer messages that the user changes by one, as many as can be drawn."""
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
