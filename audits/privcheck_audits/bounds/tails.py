"""Binomial tails for the coin flip, exact (Clopper & Pearson 1934) and rounded outward; and a pair of intervals.

The pair of Clopper–Pearson intervals is for comparison: one event, fixed in advance, counted in both arms.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincc, betainccinv

from privcheck.errors import ParameterError

OUT: Final = 1 + 1e-10  # outward rounding of SciPy's tails and quantiles, whose relative error is below 1e-12
_SMALLEST: Final = 1e-200  # p-value; SciPy's tails lose digits below, all but four at 1e-290
_UNSEEN: Final = 60.0  # −ln of the probability of numbers of revealed bits that are not looked at one by one
_NUMBERS: Final = 200  # of revealed bits that are told apart


def error_rate_at_most(errors: int, runs: int, *, alpha: float) -> float:
    """Largest error rate that the count does not reject at level α, rounded up (Clopper & Pearson 1934).

    Args:
        errors: Wrong guesses.
        runs: Guesses.
        alpha: In (0, 1).

    Raises:
        ParameterError: The counts contradict each other or α is not in (0, 1).

    >>> round(error_rate_at_most(0, 100, alpha=0.05), 4)
    0.0295
    """
    check_counts(errors, runs, alpha)
    if errors == runs:
        return 1.0
    return min(1.0, float(betainccinv(errors + 1, runs - errors, alpha)) * OUT)


def few_errors_p_value(errors: int, guesses: int, *, rate: float, coins: int = 0, delta: float = 0.0) -> float:
    """Probability of at most this number of errors if each guess is wrong with at least a rate, rounded up.

    P(Bin(guesses, rate) ≤ errors); with δ > 0 P(Bin(guesses − R, rate) ≤ errors), where R ~ Bin(coins, δ) bits are
    revealed and guessed rightly.

    Args:
        errors: Wrong guesses.
        guesses: All guesses.
        rate: Error rate.
        coins: All bits, guessed or not; required only if delta > 0.
        delta: The probability that a bit is revealed.

    Raises:
        ParameterError: The counts contradict each other, or a number is not a probability.
    """
    check_counts(errors, guesses, 0.5)
    if not (0 <= rate <= 1 and 0 <= delta < 1):
        wanted = "an error rate in [0, 1] and delta in [0, 1)"
        raise ParameterError(f"expected {wanted}, got {rate!r} and {delta!r}", name="rate", given=rate)
    if delta == 0:
        from scipy.stats import binom  # here, not above: half of the time in which a worker process starts

        total = float(binom.cdf(errors, guesses, rate))
    else:
        check_counts(guesses, coins, 0.5)
        revealed, chance, beyond = _revealed(coins, delta)
        left = guesses - revealed
        many = left > errors
        few = np.ones(left.size)  # where no more guesses are left than errors
        few[many] = betaincc(errors + 1, left[many] - errors, rate)
        total = float(chance @ few) + beyond
    return min(1.0, max(_SMALLEST, total * OUT))


@lru_cache(maxsize=256)
def _revealed(coins: int, delta: float) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Numbers of revealed bits with their probabilities, stochastically at least Bin(coins, δ), and the remaining tail.

    All numbers except unlikely ones; small unlikely ones are counted as the next number. If there are very many
    numbers, groups of them are counted as their largest.
    """
    from scipy.stats import binom

    mean = coins * delta
    away = math.sqrt(2 * _UNSEEN * mean)  # Bernstein's inequality
    low, high = max(0, math.floor(mean - away)), min(coins, math.ceil(mean + away + _UNSEEN))
    step = -(-(high - low + 1) // _NUMBERS)
    last = np.append(np.arange(low, high, step), high).astype(np.float64)  # of those that are counted as one
    last = last[: 1 + np.count_nonzero(binom.sf(last, coins, delta) > math.exp(-_UNSEEN))]
    below, above = binom.cdf(last, coins, delta), binom.sf(last, coins, delta)
    chance = np.where(last <= mean, np.diff(below, prepend=0.0), -np.diff(above, prepend=1.0))
    return last, chance, float(above[-1])


def check_counts(errors: int, runs: int, alpha: float) -> None:
    """Raise an error for counts that contradict each other, or an α outside (0, 1).

    Raises:
        ParameterError: The counts contradict each other or α is not in (0, 1).
    """
    if not 0 <= errors <= runs or runs < 1:
        raise ParameterError(f"expected at least one run and no more errors than runs, got {errors} errors in {runs}")
    if not 0 < alpha < 1:
        raise ParameterError(f"expected alpha in (0, 1), got {alpha!r}", name="alpha", given=alpha)


def clopper_pearson_pair(hits: tuple[int, int], runs: tuple[int, int], *, alpha: float, delta: float) -> float:
    """Lower bound on ε at δ from the frequency of one event under D and under D′, rounded down.

    Lemma clopper-pearson-pair: Four one-sided intervals at α/4 each hold jointly: the event and its complement, in both
    directions, must satisfy P ≤ e^ε·Q + δ. Source: Clopper & Pearson 1934 for each interval.

    The event must not depend on the counted runs. With the same number of runs the coin flip needs one interval where
    this needs two, and halves the gap.

    Args:
        hits: Number of occurrences under D and under D′.
        runs: Number of runs under each neighbour.
        alpha: One minus the confidence.
        delta: In [0, 1).

    Raises:
        ParameterError: The counts contradict each other, or α is not in (0, 1).

    >>> round(clopper_pearson_pair((7_311, 2_689), (10_000, 10_000), alpha=0.05, delta=0.0), 4)
    0.9496
    """
    above = [error_rate_at_most(hit, of, alpha=alpha / 4) for hit, of in zip(hits, runs, strict=True)]
    missed = [error_rate_at_most(of - hit, of, alpha=alpha / 4) for hit, of in zip(hits, runs, strict=True)]
    lower = 0.0
    for one, other in ((0, 1), (1, 0)):
        for likely, rare in ((1 - missed[one], above[other]), (1 - above[one], missed[other])):
            if likely - delta > rare:
                lower = max(lower, (math.log(likely - delta) - math.log(rare)) / OUT)
    return lower
