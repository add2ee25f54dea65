"""Lower bounds for messages behind a shuffler: exact laws of its output under both of two neighbours.

Three quantities are considered, each of which gives a lower bound on ε at δ.

* The sum of the messages in the cells that the user holds in D, minus the sum in those held in D′, is at least t: a
  function of the output with the law of fair coins, ε ≥ ln((P(E) − δ)/Q(E)). It takes any number of bits.
* With integer messages: a message m + 1 in a cell in which no other user holds a 1, or a message 0 in a cell in which
  every other user does. Under D′ neither can occur, if all others hold the same data; no ε holds if it is likelier than
  δ.
* Lemma counters-together: Behind shufflers of their own, counters' losses add up. For integers the likelihood ratio of
  the multiset {zᵢ} is the mean over its messages of r(z) = P(z − 1)/P(z), z ~ Bin(m, p), if every other user holds a 0:
  rounded to a lattice its sum bounds the loss from below. Proof: it is a function of the multiset, and a sum of
  independent numbers. If bits are separate messages, a counter's sum is its whole output. If every other user holds a 1
  the same is true of m + 1 − z. All others hold the data of D′, or that of D.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.shuffle.sums import binomial_window
from privcheck.declare.mechanisms import ShuffledNoise, shuffled_noise
from privcheck.declare.procedures import Outcomes
from privcheck.declare.procedures.sample_laws import merge_by_loss
from privcheck.declare.releases import Release
from privcheck.declare.statistics import SparseDifference
from privcheck.verification.outcome_loss import Part, pair_delta, pair_epsilon

_MOST: Final = 1e11  # variance of a sum whose values are enumerated
_REACH: Final = 9.0  # of its standard deviations that are enumerated
_ROUNDED: Final = 1e-12  # relative, for every value that is summed
_DOWN: Final = 1 - 1e-9
_WINDOW: Final = 2**17  # values of a counter that are enumerated, to be added up with others
_MOST_USERS: Final = 20_000  # of integer messages that are added up on a lattice
_FINE: Final = 64.0  # lattice points a standard deviation of one message's ratio, at most
_POINTS: Final = 12_000  # … of a sum's bulk
_BULK: Final = 24.0  # standard deviations that it is wide
_CUT: Final = 1e-30  # mass below which an end of a lattice is left out
_THIN: Final = 1e-24  # mass below which an outcome is, so that what was cut off before is next to nothing of it
_SLACK: Final = 1e-9  # in nats, for the rounding of positive terms

Floats = NDArray[np.float64]


def shuffled_epsilon(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction], delta: float
) -> tuple[float, str]:
    """Certified lower bound on ε at δ of a pair's shuffled releases, and the event that attains it, in words.

    Of the sizes of a batch that the user may be in, the one with the least noise is considered, and with integer
    messages the one with the fewest noise bits per user.

    Args:
        releases: Those that hold the user; those that are not shuffled are left out, as an attacker may do.
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
            f"in a batch of {users} users, all noise bits of a counter that the user moves are equal with probability "
            f"{most:.6g} under D, and the counter then shows a number that D′ cannot produce"
        )
    integers = [r for r in same if r.mechanism.law.integers]
    shown = [_probability_of_showing([(noise[r.name], moved[r.name]) for r in integers]) for noise in noises]
    if (most := max(shown)) > delta:
        noise = noises[shown.index(most)][integers[0].name]
        m = noise.bits[0]
        return math.inf, (
            f"in a batch of {noise.senders} users, with all other users' data as in D′, a message {m + 1} where no "
            f"other user holds a 1, or 0 where all others do, has probability {most:.6g} under D and 0 under D′"
        )
    quietest = min(noises, key=lambda noise: sum(n.scale for n in noise.values()))
    loss, words = _sum_epsilon(same, moved, quietest, delta), "the sums of the messages distinguish the two"
    for others in ("D′", "D"):
        joint = _joint_epsilon(_all_counters(same, moved, quietest, others_of_first=others == "D"), delta)
        if joint > loss:
            loss, words = joint, "the messages of all counters together distinguish the two"
            words += f", with all other users' data as in {others}" if integers else ""
    users = quietest[same[0].name].senders
    batch = f"a batch of {users} users" if users > 1 else "a batch whose noise bits are dealt out"
    return loss, f"in {batch}, {words}" if loss > 0 else ""


def shuffled_delta(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> float:
    """Certified lower bound on δ(0), the total variation, of a pair's shuffled releases.

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
        joint = [_joint_delta(_all_counters(same, moved, noise, others_of_first=first)) for first in (False, True)]
        best = max(best, _extreme(parts), shown, *apart, *joint)
    return best * _DOWN


def _all_counters(
    releases: Sequence[Release],
    moved: Mapping[str, SparseDifference],
    noise: Mapping[str, ShuffledNoise],
    *,
    others_of_first: bool,
) -> tuple[_Counters, ...]:
    """The counters that the user changes, grouped by law.

    Args:
        releases: Releases of one batch.
        moved: The user's change of each release's counters.
        noise: Noise of each release.
        others_of_first: Whether all others hold the data of D rather than that of D′.
    """
    found = dict[tuple[int, int, float, bool, bool], int]()
    for release in releases:
        senders, (m, p) = noise[release.name].senders, noise[release.name].bits
        change, integers = moved[release.name].change, release.mechanism.law.integers
        for rises, counters in ((True, int((change > 0).sum())), (False, int((change < 0).sum()))):
            if integers:  # the others hold a 1 where the user of D′ does, or that of D
                law = (senders, m, p if rises is not others_of_first else 1 - p, True, others_of_first)
            else:
                law = (1, senders * m, p, False, not rises)
            if counters:
                found[law] = found.get(law, 0) + counters
    return tuple(_Counters(*law, counters) for law, counters in found.items())


@dataclass(frozen=True, slots=True)
class _Counters:
    """Counters that the user changes, behind shufflers of their own.

    Attributes:
        users: n; 1 if bits are separate messages, which do not show their sender.
        messages: m, each user's noise bits.
        probability: p.
        integers: Whether the multiset of the users' sums is output, not their sum alone.
        swapped: Whether the bit unlike all others is in D′.
        count: Number of such counters.
    """

    users: int
    messages: int
    probability: float
    integers: bool
    swapped: bool
    count: int

    def law(self) -> Outcomes | None:
        """Laws of one counter under D and D′; None if it has too many values."""
        if self.integers:
            known = one_among_messages(self.users, self.messages, self.probability)
        else:
            known = one_among_bits(self.messages, self.probability)
        if known is None:
            return None
        first, second = known[::-1] if self.swapped else known
        return merge_by_loss(np.stack([first, second]))


@functools.lru_cache(maxsize=64)
def _joint_epsilon(counters: tuple[_Counters, ...], delta: float) -> float:
    parts = _laws(counters)
    return max(0.0, pair_epsilon(*parts[0], delta, parts[1:]) - _SLACK) if parts else 0.0


@functools.lru_cache(maxsize=64)
def _joint_delta(counters: tuple[_Counters, ...]) -> float:
    parts = _laws(counters)
    return pair_delta(*parts[0], 0.0, parts[1:]) if parts else 0.0


def _laws(counters: tuple[_Counters, ...]) -> list[Part]:
    known = [(one.law(), one.count) for one in counters]
    return [(law, count) for law, count in known if law is not None]


@functools.lru_cache(maxsize=64)
def one_among_bits(trials: int, probability: float) -> tuple[Floats, Floats] | None:
    """Log masses of Bin(N, p) + 1 and of Bin(N, p), with values of negligible mass merged into one.

    Args:
        trials: N.
        probability: p of each.
    """
    if 2 * _REACH * math.sqrt(trials * probability * (1 - probability)) > _WINDOW or not 0 < probability < 1:
        return None
    first, logs, _ = binomial_window(trials, probability, reach=_REACH)
    masses, last = np.exp(logs), first + len(logs) - 1
    if last < trials:
        return _told(np.append(0.0, masses), np.append(masses, 0.0), shown=0.0)
    return _told(np.append(0.0, masses[:-1]), masses, shown=float(masses[-1]))


@functools.lru_cache(maxsize=64)
def one_among_messages(users: int, messages: int, probability: float) -> tuple[Floats, Floats] | None:
    """Log masses of a function of n integer messages, with one bit equal to 1 and without it.

    Args:
        users: n.
        messages: m, each user's noise bits.
        probability: p of each.
    """
    from scipy.stats import binom

    if users > _MOST_USERS or messages > _MOST_USERS or not 0 < probability < 1:
        return None
    z = np.arange(messages + 1)
    masses = binom.pmf(z, messages, probability)
    ratios = z / (messages + 1 - z) * ((1 - probability) / probability)
    std = math.sqrt(float(masses @ (ratios - 1) ** 2))
    mesh = max(std / _FINE, _BULK * std * math.sqrt(users) / _POINTS)
    if messages == 1:
        mesh = float(ratios[1])  # there are two values
    places = np.rint(np.minimum(ratios / mesh, 4 * _POINTS / math.sqrt(users) + 1)).astype(np.int64)
    one: Floats = np.bincount(places, weights=masses).astype(np.float64)
    shifted = np.bincount(places[1:], weights=masses[:-1], minlength=len(one))  # a bit 1 sends z + 1
    rest = _power(one, users - 1)
    return _told(np.convolve(rest, shifted), np.convolve(rest, one), shown=float(masses[-1]))


def _told(with_one: Floats, without: Floats, *, shown: float) -> tuple[Floats, Floats]:
    """Log masses: rare values merged into one outcome, and those impossible without the bit into another.

    Args:
        with_one: Masses with one bit equal to 1, except for values that are impossible without it.
        without: Masses without it.
        shown: The probability of those impossible values.
    """
    kept = (with_one > _THIN) & (without > _THIN)
    laws = []
    for law, end in ((with_one, shown), (without, 0.0)):
        with np.errstate(divide="ignore"):
            laws.append(np.log([*law[kept], float(law[~kept].sum()) + _THIN, end]))
    return laws[0], laws[1]


def _power(one: Floats, times: int) -> Floats:
    """Masses of the sum of `times` independent whole numbers; negligible mass at its ends is cut off."""
    total, power = np.ones(1), one
    while times:
        total = _cut(np.convolve(total, power)) if times & 1 else total
        times >>= 1
        power = _cut(np.convolve(power, power)) if times else power
    return total


def _cut(masses: Floats) -> Floats:
    low = int(np.searchsorted(np.cumsum(masses), _CUT))
    high = len(masses) - int(np.searchsorted(np.cumsum(masses[::-1]), _CUT))
    return masses[low:high]


def _probability_of_showing(parts: Sequence[tuple[ShuffledNoise, SparseDifference]]) -> float:
    """Probability that some counter reveals the user, rounded down.

    Lemma message-shown: A bit 1 among zeros is revealed with probability p^m, a bit 0 among ones with probability (1 −
    p)^m. Proof: its m noise bits are all 1, or all 0.
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
    """Probability that the sum of some counter's messages is impossible under D′, rounded down.

    All of its N = nm noise bits are 1 if the user's bit is 1, with probability p^N, or 0 if it is 0, with (1 − p)^N.
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
    """Lower bound on ε at δ, the largest over the sums considered."""
    return max((sum_epsilon(*one, delta) for one in _sums(releases, moved, noise)), default=0.0)


def _sums(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], noise: Mapping[str, ShuffledNoise]
) -> list[tuple[int, float, int]]:
    """N, p and c of the sum of all counters with fair bits, and of the others' sums, by direction of the change."""
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
    """Lower bound on ε at δ of Bin(N, p) + c against Bin(N, p), with N bits in all counters together.

    Fair bits of falling counters count from the other end, x ↦ N − x: any mixture with them is one such pair.

    Args:
        trials: N.
        probability: p of each.
        moved: c, below 0 if the counters are lower under D.
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
    """Power, rounded down, and level, rounded up, of tests of the sum; empty if it has too many values."""
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
