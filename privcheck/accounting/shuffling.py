"""Shuffling: the multiset of messages that leaves the shuffler is the release.

Three pairs, all evaluated exactly: the binomial against its shift (shuffled bits), binary randomised response, and the
clones pair of any ε₀-DP local randomiser (Feldman, McMillan & Talwar 2021). The "stronger clones" theorems of 2023 carry an
erratum (they hold for a restricted class of randomisers) and are used here for binary randomised response only.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from privcheck.accounting.atoms import Atoms, binomial_logs, fair_binomial, tidy
from privcheck.accounting.discrete import AtomicLaw
from privcheck.accounting.laws import Direction, Floats

MOST_TRIALS: Final = 4_000_000  # of a binomial that is enumerated
_GROUPS: Final = 160  # numbers of clones that are told apart where they are too many to enumerate
_EXACT: Final = 1_000_000  # outcomes that are enumerated before clones are grouped
_OUTSIDE: Final = -110.0  # ln of the mass that is moved to the largest loss, for what is not enumerated
_TAILS: Final = 12.0  # standard deviations of the number of clones that are told apart


def bits_law(trials: int, probability: float) -> AtomicLaw:
    """Returns Bin(N, p) against Bin(N, p) + 1: how many ones a shuffler outputs with and without one more.

    Args:
        trials: N, the noise bits of all users.
        probability: p of each.
    """
    return AtomicLaw(build=_bits, arguments=(trials, probability), bound=math.inf, symmetric=False)


def _bits(trials: int, probability: float, direction: Direction) -> Atoms:
    log_odds = math.log(probability) - math.log1p(-probability)
    logs = binomial_logs(trials, log_odds)
    if direction == "remove":  # P = Bin: x = 0 gives P away
        x = np.arange(1, trials + 1)
        return tidy((np.log(trials - x + 1) - np.log(x) + log_odds)[::-1], logs[:0:-1], math.exp(logs[0]))
    x = np.arange(trials)  # P = Bin + 1 at x + 1; the outcome N + 1 gives it away
    return tidy(np.log(x + 1) - np.log(trials - x) - log_odds, logs[:-1], math.exp(logs[-1]))


def response_among_law(epsilon: float, users: int) -> AtomicLaw:
    """Returns the number of ones that n users send by binary randomised response, one of whom changes from 1 to 0.

    All others hold 0, which the tests find to be their worst values, both directions together, by enumeration.

    Args:
        epsilon: ε₀ of the local randomiser: truth with probability e^{ε₀}/(1 + e^{ε₀}).
        users: n, the changing one among them.
    """
    return AtomicLaw(build=_response_among, arguments=(epsilon, users), bound=epsilon, symmetric=False)


def _response_among(epsilon: float, users: int, direction: Direction) -> Atoms:
    others = binomial_logs(users - 1, -epsilon) if users > 1 else np.zeros(1)
    flip = -epsilon - math.log1p(math.exp(-epsilon))
    truth = -math.log1p(math.exp(-epsilon))
    low, high = np.append(others, -np.inf), np.append(-np.inf, others)  # the user's own message is 0, is 1
    one, zero = np.logaddexp(truth + high, flip + low), np.logaddexp(truth + low, flip + high)
    p, q = (one, zero) if direction == "remove" else (zero, one)
    order = slice(None) if direction == "remove" else slice(None, None, -1)  # the loss is monotone in the count
    return tidy((p - q)[order], p[order])


def clones_law(epsilon: float, users: int) -> AtomicLaw:
    """Returns the clones pair, which dominates n shuffled users of any ε₀-DP local randomiser.

    C ~ Bin(n − 1, e^{−ε₀}), A ~ Bin(C, ½), D ~ Bern(e^{ε₀}/(1 + e^{ε₀})): P = (A + D, C − A + 1 − D) against
    Q = (A + 1 − D, C − A + D) (Feldman, McMillan & Talwar 2021, Theorem 3.1). With one user it is ε₀.

    Args:
        epsilon: ε₀.
        users: n.
    """
    return _clones_law(epsilon, users, -epsilon)


def response_clones_law(epsilon: float, users: int) -> AtomicLaw:
    """Returns the clones pair of binary randomised response: C ~ Bin(n − 1, 2/(1 + e^{ε₀})), whatever the others hold.

    Each other user sends a fair coin with that probability and the own bit otherwise; telling the own bits apart only
    helps an attacker, so this dominates the shuffled response for all values of the others.
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
    """Returns numbers of clones and ln of their probabilities; rounded down where they are too many to tell apart.

    A number of clones rounded down errs on the safe side: one more clone is a fair coin that anyone can add.
    """
    if trials == 0 or log_probability == 0.0:
        return np.array([trials]), np.zeros(1)
    logs = binomial_logs(trials, log_probability - math.log(-math.expm1(log_probability)))
    low, high, width = _clone_range(trials, log_probability)
    numbers = np.unique(np.append(0, np.arange(low, high + 1, width)))
    edges = np.append(numbers, trials + 1)
    sums = [float(np.logaddexp.reduce(logs[a:b])) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    return numbers, np.array(sums)


def _clone_range(trials: int, log_probability: float) -> tuple[int, int, int]:
    """Returns the numbers of clones that are told apart: first, last and step."""
    probability = math.exp(log_probability)
    mean, std = trials * probability, math.sqrt(trials * probability * -math.expm1(log_probability))
    low, high = max(0, math.floor(mean - _TAILS * std - 40)), min(trials, math.ceil(mean + _TAILS * std + 40))
    outcomes = (high - low) * min(mean + 1, 15 * math.sqrt(mean + 1))
    return low, high, 1 if outcomes <= _EXACT else max(1, math.ceil((high - low) / _GROUPS))
