"""Shuffling: the multiset of messages that leaves the shuffler is the release.

Three pairs, all evaluated exactly: the binomial against its shift (shuffled bits), binary randomised response, and the
clones pair of any ε₀-DP local randomiser (Feldman, McMillan & Talwar 2021). The "stronger clones" theorems of 2023
carry an erratum (they hold for a restricted class of randomisers) and are used here for binary randomised response
only.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from privcheck.accounting.engine.atoms import Atoms, binomial_logs, fair_binomial, tidy
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.envelopes import greatest
from privcheck.accounting.engine.hulls import law_above
from privcheck.accounting.engine.laws import Direction, Floats
from privcheck.accounting.engine.mass import MassError

Movement = Literal["up", "down", "either"]
MOST_TRIALS: Final = 4_000_000  # of a binomial that is enumerated
_GROUPS: Final = 160  # numbers of clones that are told apart where they are too many to enumerate
_EXACT: Final = 1_000_000  # outcomes that are enumerated before clones are grouped
_MOST_OTHERS: Final = 1_500  # users whose others are enumerated
_FEW_OTHERS: Final = 60  # users at which every kink of every curve becomes a knot
_CHORDS: Final = 3_000  # between equally spaced knots
_ROUNDING: Final = 1e-13  # of a mass, for every user among whom it was summed up
_STEEP: Final = 30.0  # ε₀ above which losses are differences of logarithms
_HUGE: Final = 640.0  # ln of odds at which the loss is ±ε₀ or next to it: up to that much, upwards
_UNDERFLOWN: Final = -650.0  # ln of the mass at the largest loss that makes up for those that underflow
_OUTSIDE: Final = -110.0  # ln of the mass that is moved to the largest loss, for what is not enumerated
_TAILS: Final = 12.0  # standard deviations of the number of clones that are told apart


def bits_law(trials: int, probability: float, moved: Movement) -> AtomicLaw:
    """Law of the number of ones output by a shuffler, with and without the user; Bin(N, p) is the noise.

    "up": the user adds a one, and P of "remove", which has the user, is Bin(N, p) + 1 against Bin(N, p). "down": the
    user takes one away, Bin(N, p) against Bin(N, p) + 1. "either": a pair that dominates both, so any composition of
    rising and falling counters is covered. Fair bits cost the same in both directions.

    Args:
        trials: N, the noise bits of all users.
        probability: p, the probability of a one of each bit.
        moved: Direction in which the user changes the number of ones.
    """
    fair = probability == 0.5
    arguments = (trials, probability, "up" if fair else moved)
    symmetric = fair or moved == "either"
    return AtomicLaw(build=_bits, arguments=arguments, bound=math.inf, symmetric=symmetric)


def _bits(trials: int, probability: float, moved: Movement, direction: Direction) -> Atoms:
    if moved == "either":
        return greatest(_bits(trials, probability, "up", "remove"), _bits(trials, probability, "down", "remove"))
    log_odds = math.log(probability) - math.log1p(-probability)
    logs = binomial_logs(trials, log_odds)
    if (moved == "up") == (direction == "remove"):
        x = np.arange(trials)  # P = Bin + 1 at x + 1; the outcome N + 1 reveals it
        return tidy(np.log(x + 1) - np.log(trials - x) - log_odds, logs[:-1], math.exp(logs[-1]))
    x = np.arange(1, trials + 1)  # P = Bin: x = 0 reveals it
    return tidy((np.log(trials - x + 1) - np.log(x) + log_odds)[::-1], logs[:0:-1], math.exp(logs[0]))


def response_among_law(epsilon: float, users: int) -> AtomicLaw:
    """Build a pair that dominates the number of ones that n users send by binary randomised response.

    One user changes from 1 to 0; the curve is the largest over the values of the n − 1 others, m ones among them for
    all m (equal others are not always worst: n = 5, ε₀ = ½, ε = 0.2 has its worst at m = 1 by 24 %). It belongs to a
    pair [lemma largest-curve], here through its chords. Beyond 1 500 users the clones pair of randomised response is
    used, which holds for all values of the others.

    Args:
        epsilon: ε₀ of the local randomiser: truth with probability e^{ε₀}/(1 + e^{ε₀}).
        users: n, including the changing user.
    """
    if users > _MOST_OTHERS:
        return replace(response_clones_law(epsilon, users), rounded=True)
    arguments = (epsilon, users)
    return AtomicLaw(build=_response_among, arguments=arguments, bound=epsilon, symmetric=True, rounded=users > 2)


def _response_among(epsilon: float, users: int, _: Direction) -> Atoms:
    """Build the law above all curves: at every knot the largest δ, rounded up; between knots chords.

    Candidates have an error of `off` in relative mass and, through the ratios of neighbouring masses, in ln of odds.
    """
    candidates = [_response_count(epsilon, users - 1 - m, m) for m in range(users)]
    if users == 1:
        return candidates[0]
    knots = np.linspace(-epsilon, epsilon, _CHORDS + 1)
    if users <= _FEW_OTHERS:
        knots = np.concatenate([knots, *(atoms.losses for atoms in candidates)])
    knots = np.unique(np.clip(knots, -epsilon, epsilon))
    off = _ROUNDING * (users + 10)
    at = knots - off * min(epsilon, 1.0)  # δ falls
    worst = np.maximum.reduce([atoms.log_deltas(at) for atoms in candidates])
    worst[0] = math.log(-math.expm1(-epsilon))  # all losses are at least −ε₀
    law = law_above(knots, worst + off)
    inner = knots[1:-1]
    short = np.maximum.reduce([atoms.log_deltas(inner) for atoms in candidates]) - law.log_deltas(inner)
    if not np.all(short[~np.isneginf(short)] <= _ROUNDING):
        raise MassError(f"randomized response among {users} users, ε₀ = {epsilon!r}: a curve leaves its bound")
    return law


def _response_count(epsilon: float, zeros: int, ones: int) -> Atoms:
    """Loss of the count of ones, with given numbers of zeros and ones held by the others.

    With r the odds of the others sending x − 1 ones rather than x, the loss is ln((re^{ε₀} + 1)/(r + e^{ε₀})).
    """
    of_zeros, of_ones = np.exp(binomial_logs(zeros, -epsilon)), np.exp(binomial_logs(ones, epsilon))
    with np.errstate(divide="ignore"):
        others = np.log(np.convolve(of_zeros, of_ones))
    truth, flip = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    low, high = np.append(others, -np.inf), np.append(-np.inf, others)  # the user's own message is 0, is 1
    one = np.logaddexp(truth + high, flip + low)
    kept = np.isfinite(one)  # what underflowed is below 1e-307 an outcome, and counts as the largest loss
    low, high = low[kept], high[kept]
    odds = np.where(np.isinf(high), -_HUGE, _HUGE)  # at the ends one of the two is impossible
    both = np.isfinite(low) & np.isfinite(high)
    odds[both] = np.clip(high[both] - low[both], -_HUGE, _HUGE)
    if epsilon > _STEEP:
        losses = np.logaddexp(odds + epsilon, 0.0) - np.logaddexp(odds, epsilon)
    else:  # keeps the digits of small losses
        r = np.exp(odds)
        losses = np.log1p(math.expm1(epsilon) * (r - 1) / (r + math.exp(epsilon)))
    losses = np.where(odds >= _HUGE, epsilon, np.clip(losses, -epsilon, epsilon))
    return tidy(np.append(losses, epsilon), np.append(one[kept], _UNDERFLOWN + math.log(len(low) + len(kept))))


def clones_law(epsilon: float, users: int) -> AtomicLaw:
    """Build the clones pair, which dominates n shuffled users of any ε₀-DP local randomiser.

    Lemma clones: The messages of n shuffled users of any ε₀-DP local randomiser are dominated by P = (A + D, C − A + 1
    − D) against Q = (A + 1 − D, C − A + D), C ~ Bin(n − 1, e^{−ε₀}), A ~ Bin(C, ½), D ~ Bern(e^{ε₀}/(1 + e^{ε₀})).
    Source: Feldman, McMillan & Talwar 2021.

    With one user it is ε₀.

    Args:
        epsilon: ε₀.
        users: n.
    """
    return _clones_law(epsilon, users, -epsilon)


def response_clones_law(epsilon: float, users: int) -> AtomicLaw:
    """Build the clones pair of binary randomised response: C ~ Bin(n − 1, 2/(1 + e^{ε₀})), for any others' values.

    Lemma response-clones: With C ~ Bin(n − 1, 2/(1 + e^{ε₀})) the clones pair dominates n shuffled binary responses for
    all values of the others. Proof: each other user sends a fair coin with that probability and their bit otherwise,
    and revealing which messages are such bits only helps an attacker.
    """
    log_clone = math.log(2) - epsilon - math.log1p(math.exp(-epsilon))
    return _clones_law(epsilon, users, min(log_clone, 0.0))


def _clones_law(epsilon: float, users: int, log_clone: float) -> AtomicLaw:
    grouped = _clone_range(users - 1, log_clone)[2] > 1
    arguments = (epsilon, users, log_clone)
    return AtomicLaw(build=_clones, arguments=arguments, bound=epsilon, symmetric=True, rounded=grouped)


def _clones(epsilon: float, users: int, log_clone: float, _: Direction) -> Atoms:
    numbers, logs = _clone_numbers(users - 1, log_clone)
    losses, masses = [np.array([epsilon])], [np.array([_OUTSIDE])]
    truth, flip = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    for number, log in zip(numbers.tolist(), logs.tolist(), strict=True):
        ones, half = fair_binomial(number, reach=7.5)
        low, high = np.append(half, -np.inf), np.append(-np.inf, half)
        # ratio of neighbouring binomials: (A + D = a) has Bin(a − 1)/Bin(a) = a/(C + 1 − a)
        up = np.append(ones, ones[-1] + 1.0)
        down = number + 1.0 - up
        p = np.logaddexp(truth + high, flip + low)
        losses.append(np.log(up + down * math.exp(-epsilon)) - np.log(down + up * math.exp(-epsilon)))
        masses.append(p + log)
    return tidy(np.concatenate(losses), np.concatenate(masses))


def _clone_numbers(trials: int, log_probability: float) -> tuple[Floats, Floats]:
    """Numbers of clones and ln of their probabilities; rounded down where there are too many to keep apart.

    Lemma fewer-clones: Rounding the number of clones down makes no δ(ε) smaller. Proof: one more clone is a fair coin
    that anyone can add.
    """
    if trials == 0 or log_probability == 0.0:
        return np.array([trials]), np.zeros(1)
    logs = binomial_logs(trials, log_probability - math.log(-math.expm1(log_probability)))
    low, high, width = _clone_range(trials, log_probability)
    numbers = np.unique(np.append(0, np.arange(low, high + 1, width)))
    edges = np.append(numbers, trials + 1)
    sums = [float(np.logaddexp.reduce(logs[a:b])) for a, b in itertools.pairwise(edges.tolist())]
    return numbers, np.array(sums)


def _clone_range(trials: int, log_probability: float) -> tuple[int, int, int]:
    """Range of the numbers of clones that are kept apart: first, last and step."""
    probability = math.exp(log_probability)
    mean, std = trials * probability, math.sqrt(trials * probability * -math.expm1(log_probability))
    low, high = max(0, math.floor(mean - _TAILS * std - 40)), min(trials, math.ceil(mean + _TAILS * std + 40))
    outcomes = (high - low) * min(mean + 1, 15 * math.sqrt(mean + 1))
    return low, high, 1 if outcomes <= _EXACT else max(1, math.ceil((high - low) / _GROUPS))
