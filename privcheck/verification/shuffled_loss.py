"""Lower bounds for messages behind a shuffler: the exact probability of an event under both of two neighbours.

Two events are looked at, each of which gives ε ≥ ln((P(E) − δ)/Q(E)) at δ.

* The sum of the messages in the cells that the user holds in D, less the sum in those held in D′, is at least t: a
  function of what leaves, whose law is that of fair coins. Hardly anything is lost by looking at it alone.
* With integer messages: one of m + 1 in a cell in which nobody else holds a 1, or one of 0 in a cell in which everybody
  else does. Under D′ neither can occur, where everybody holds the same data; no ε holds where it is likelier than δ.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.shuffle.sums import binomial_window
from privcheck.declaration import Release
from privcheck.mechanisms import ShuffledNoise, shuffled_noise
from privcheck.statistics import SparseDifference

_MOST: Final = 1e11  # variance of a sum whose values are enumerated
_REACH: Final = 9.0  # of its standard deviations that are enumerated
_ROUNDED: Final = 1e-12  # relative, for every value that is summed
_DOWN: Final = 1 - 1e-9

Floats = NDArray[np.float64]


def shuffled_epsilon(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction], delta: float
) -> tuple[float, str]:
    """Returns a certified lower bound on ε at δ of a pair's shuffled releases, and at which event, in words.

    Of the sizes of a batch that the user may be in, the one with the least noise is looked at, and with integer
    messages the one with the fewest noise bits a user.

    Args:
        releases: Those that hold the user; others than shuffled ones are left out, as an attacker may.
        moved: `Release.moved` of the pair, by release.
        values: The parameters.
        delta: δ, rounded up.
    """
    shuffled = [r for r in releases if r.mechanism.law.shuffled and moved[r.name].cells.size]
    if not shuffled:
        return 0.0, ""
    settings = shuffled[0].settings(values)
    same = [r for r in shuffled if r.settings(values) == settings]
    noises = [{r.name: shuffled_noise(r.mechanism.at(at)) for r in same} for at in settings]
    if not noises:
        return 0.0, ""
    counters = [_extreme([(noise[r.name], moved[r.name]) for r in same]) for noise in noises]
    if (most := max(counters)) > delta:
        users = noises[counters.index(most)][same[0].name].senders
        return math.inf, (
            f"in a batch of {users} users, all noise bits of a counter that the user moves are alike with probability "
            f"{most:.6g} under D, and it then shows a number that D′ cannot send"
        )
    integers = [r for r in same if r.mechanism.law.integers]
    shown = [_probability_of_showing([(noise[r.name], moved[r.name]) for r in integers]) for noise in noises]
    if (most := max(shown)) > delta:
        noise = noises[shown.index(most)][integers[0].name]
        m = noise.bits[0]
        return math.inf, (
            f"in a batch of {noise.senders} users, everybody else holding the data of D′, a message {m + 1} where "
            f"nobody else holds a 1, or 0 where everybody else does, has probability {most:.6g} under D and 0 under D′"
        )
    quietest = min(noises, key=lambda noise: sum(n.scale for n in noise.values()))
    loss = _sum_epsilon(same, moved, quietest, delta)
    users = quietest[same[0].name].senders
    batch = f"a batch of {users} users" if users > 1 else "a batch whose noise bits are dealt out"
    return loss, f"in {batch}, the sums of the messages tell the two apart" if loss > 0 else ""


def shuffled_delta(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> float:
    """Returns a certified lower bound on δ(0), the total variation, of a pair's shuffled releases.

    The largest difference of an event's probabilities under D and under D′, over the events of `shuffled_epsilon`.
    """
    shuffled = [r for r in releases if r.mechanism.law.shuffled and moved[r.name].cells.size]
    settings = shuffled[0].settings(values) if shuffled else ()
    same = [r for r in shuffled if r.settings(values) == settings]
    best = 0.0
    for at in settings:
        noise = {r.name: shuffled_noise(r.mechanism.at(at)) for r in same}
        parts = [(noise[r.name], moved[r.name]) for r in same]
        shown = _probability_of_showing([(noise[r.name], moved[r.name]) for r in same if r.mechanism.law.integers])
        apart = [
            float((power - level).max(initial=0.0)) for power, level in (_tests(*s) for s in _sums(same, moved, noise))
        ]
        best = max(best, _extreme(parts), shown, *apart)
    return best * _DOWN


def _probability_of_showing(parts: Sequence[tuple[ShuffledNoise, SparseDifference]]) -> float:
    """Returns the probability that some counter reveals the user, rounded down.

    A bit 1 among zeros is shown by m noise bits that are all 1, with probability p^m; a bit 0 among ones by m that are
    all 0, (1 − p)^m.
    """
    hidden = 0.0
    for noise, change in parts:
        m, p = noise.bits
        rises, falls = int((change.change > 0).sum()), int((change.change < 0).sum())
        for counters, shown in ((rises, p**m), (falls, (1 - p) ** m)):
            if counters and shown >= 1:
                return _DOWN  # noise bits so rare that 1 − p is 1 in floats
            hidden += counters * math.log1p(-shown) if counters else 0.0
    return -math.expm1(hidden) * _DOWN


def _extreme(parts: Sequence[tuple[ShuffledNoise, SparseDifference]]) -> float:
    """Returns the probability that the sum of some counter's messages is beyond what D′ can send, rounded down.

    All of its N = nm noise bits are 1 where the user's bit is, with probability p^N, or 0 where it is not.
    """
    hidden = 0.0
    for noise, change in parts:
        m, p = noise.bits
        for counters, one in ((int((change.change > 0).sum()), p), (int((change.change < 0).sum()), 1 - p)):
            shown = math.exp(noise.senders * m * math.log(one)) if one > 0 else 0.0
            if counters and shown >= 1:
                return _DOWN
            hidden += counters * math.log1p(-shown) if counters else 0.0
    return -math.expm1(hidden) * _DOWN


def _sum_epsilon(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], noise: Mapping[str, ShuffledNoise], delta: float
) -> float:
    """Returns ε at δ, the largest over the sums that are looked at."""
    return max((sum_epsilon(*one, delta) for one in _sums(releases, moved, noise)), default=0.0)


def _sums(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], noise: Mapping[str, ShuffledNoise]
) -> list[tuple[int, float, int]]:
    """Returns N, p and c of the sum of all counters among fair bits, and of those that move one way among others."""
    fair, fair_moved = 0, 0
    rare: dict[tuple[float, int], tuple[int, int]] = {}
    for release in releases:
        senders, (m, p) = noise[release.name].senders, noise[release.name].bits
        change = moved[release.name].change
        if p == 0.5:
            fair, fair_moved = fair + senders * m * change.size, fair_moved + change.size
            continue
        for sign in (1, -1):
            trials, counters = rare.get((p, sign), (0, 0))
            count = int((sign * change > 0).sum())
            rare[p, sign] = trials + senders * m * count, counters + count
    sums = [(fair, 0.5, fair_moved)] if fair_moved else []
    return sums + [(trials, p, sign * counters) for (p, sign), (trials, counters) in rare.items() if counters]


@functools.lru_cache(maxsize=64)
def sum_epsilon(trials: int, probability: float, moved: int, delta: float) -> float:
    """Returns a lower bound on ε at δ of Bin(N, p) + c against Bin(N, p), N bits in all counters together.

    Fair bits of falling counters count from the other end, x ↦ N − x: any mixture with them is one such pair.

    Args:
        trials: N.
        probability: p of each.
        moved: c, below 0 where the counters are lower under D.
        delta: δ.
    """
    power, level = _tests(trials, probability, moved)
    power = power - delta
    if bool((power[level == 0] > 0).any()):
        return math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        log_ratios = np.where((power > 0) & (level > 0), np.log(power) - np.log(level), -np.inf)
    return max(0.0, float(log_ratios.max(initial=0.0)) * _DOWN)


def _tests(trials: int, probability: float, moved: int) -> tuple[Floats, Floats]:
    """Returns the power, rounded down, and the level, rounded up, of tests of the sum; none of too many values."""
    if trials * probability * (1 - probability) > _MOST:
        return np.zeros(0), np.zeros(0)  # hardly anything is lost, and more values than are worth looking at
    falling, moved = moved < 0, abs(moved)
    _, logs, outside = binomial_window(trials, probability, reach=_REACH)
    masses = np.exp(logs)
    slack = 1e-9 + _ROUNDED * len(masses)
    # rising counters are told from the top, P(X ≥ t − c) against P(X ≥ t), falling ones from the bottom
    tail = np.cumsum(masses if falling else masses[::-1])
    likelier = np.concatenate([tail, np.full(moved, tail[-1])])  # one value further for every counter
    rarer = np.concatenate([np.zeros(moved), tail])
    return likelier * (1 - slack), rarer * (1 + slack) + outside
