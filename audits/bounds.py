"""From guesses to bounds: the coin flip, exact at any number of runs.

Each run takes D or D′ by a fair hidden bit, and the auditor guesses the bit from the output. Whatever the guess is
based on, the mechanism's guarantee bounds how often it can be right, so too few errors refute the guarantee. Both
directions of the pair are tested at once. Every test here is one binomial tail (Clopper & Pearson 1934): no normal
approximation, no constant. Lower bounds are rounded down and p-values up.

The auditor may look at all outputs before deciding which runs to guess on: given the outputs the bits are independent.
What may not depend on the bits is the number of guesses that is tested; it is fixed in advance (`GuessPlan`), and α is
divided among all that are tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from scipy.special import expit, ndtr, ndtri
from scipy.stats import beta, binom

from privcheck.accounting import gdp_epsilon
from privcheck.errors import ParameterError

_OUT: Final = 1 + 1e-10  # outward rounding of SciPy's tails and quantiles, whose relative error is below 1e-12
_SMALLEST: Final = 1e-300  # p-value; SciPy's tails lose digits below
RANKS: Final = 20
_LEAST: Final = 1 / 4096  # the smallest share of runs that is guessed on
_REVEALED: Final = 0.1  # the share of α that pays for revealed runs


def error_rate_at_most(errors: int, runs: int, *, alpha: float) -> float:
    """Returns the largest error rate that the count does not reject at level α, rounded up (Clopper & Pearson 1934).

    Args:
        errors: Wrong guesses.
        runs: Guesses.
        alpha: In (0, 1).

    Raises:
        ParameterError: The counts contradict each other or α is not in (0, 1).

    >>> round(error_rate_at_most(0, 100, alpha=0.05), 4)
    0.0295
    """
    _check(errors, runs, alpha)
    if errors == runs:
        return 1.0
    return min(1.0, float(beta.isf(alpha, errors + 1, runs - errors)) * _OUT)


def few_errors_p_value(errors: int, runs: int, *, rate: float) -> float:
    """Returns P(Bin(runs, rate) ≤ errors), rounded up: how likely so few errors are if each has at least that rate.

    Raises:
        ParameterError: The counts contradict each other or the rate is not a probability.
    """
    _check(errors, runs, 0.5)
    if not 0 <= rate <= 1:
        raise ParameterError(f"expected an error rate in [0, 1], got {rate!r}", name="rate", given=rate)
    return min(1.0, max(_SMALLEST, float(binom.cdf(errors, runs, rate)) * _OUT))


def revealed_at_most(runs: int, delta: float, *, alpha: float) -> int:
    """Returns d with P(Bin(runs, δ) > d) ≤ α: an (ε, δ) mechanism reveals the bit in at most so many runs.

    (ε, δ)-DP on a pair is simulated by randomised response that tells the truth outright with probability δ (Kairouz,
    Oh & Viswanath 2015, Theorem 3.1).

    Raises:
        ParameterError: An argument is out of range.
    """
    _check(0, runs, alpha)
    if not 0 <= delta < 1:
        raise ParameterError(f"expected delta in [0, 1), got {delta!r}", name="delta", given=delta)
    if delta == 0:
        return 0
    return int(binom.isf(alpha / _OUT, runs, delta))


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinFlip:
    """Guesses of a hidden fair bit, with abstentions: tests (ε, δ)-DP of any mechanism.

    Under ε-DP a guess is right with probability at most e^ε/(1 + e^ε), given all outputs (Bayes' rule with prior ½).

    Attributes:
        errors: Wrong guesses.
        guesses: All guesses.
        revealed: Right guesses that δ pays for, from `revealed_at_most`; 0 for pure DP.

    Raises:
        ParameterError: The counts contradict each other.
    """

    errors: int
    guesses: int
    revealed: int = 0

    def __post_init__(self) -> None:
        _check(self.errors, self.guesses, 0.5)
        if self.revealed < 0:
            raise ParameterError(f"expected a number of revealed runs, got {self.revealed}", given=self.revealed)

    def epsilon(self, *, alpha: float) -> float:
        """Returns the lower bound on ε at confidence 1 − α, rounded down; 0 where nothing is refuted.

        >>> round(CoinFlip(errors=25, guesses=100).epsilon(alpha=0.05), 4)
        0.7022
        """
        tested = self.guesses - self.revealed
        if tested <= self.errors:
            return 0.0
        rate = error_rate_at_most(self.errors, tested, alpha=alpha)
        return 0.0 if rate >= 0.5 else max(0.0, (math.log1p(-rate) - math.log(rate)) / _OUT)

    def p_value(self, epsilon: float) -> float:
        """Returns how likely so few errors are under (ε, δ)-DP, rounded up."""
        tested = self.guesses - self.revealed
        if tested <= self.errors:
            return 1.0
        return few_errors_p_value(self.errors, tested, rate=float(expit(-epsilon)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFlip:
    """Guesses of a hidden fair bit in every run, without abstentions: tests μ-GDP.

    Any test of N(0, 1) against N(μ, 1) with prior ½ errs with probability at least Φ(−μ/2), so any test of a μ-GDP
    mechanism does (Dong, Roth & Su 2022, Definition 2.6: at the fixed point of the trade-off curve). The bound is about
    mechanisms on that curve: declared Gaussian releases. ρ-zCDP alone does not imply it.

    Attributes:
        errors: Wrong guesses.
        runs: All runs.

    Raises:
        ParameterError: The counts contradict each other.
    """

    errors: int
    runs: int

    def __post_init__(self) -> None:
        _check(self.errors, self.runs, 0.5)

    def mu(self, *, alpha: float) -> float:
        """Returns the lower bound on μ at confidence 1 − α, rounded down; 0 where nothing is refuted.

        >>> round(CurveFlip(errors=308_538, runs=1_000_000).mu(alpha=0.01), 4)
        0.9939
        """
        rate = error_rate_at_most(self.errors, self.runs, alpha=alpha)
        return 0.0 if rate >= 0.5 else max(0.0, -2 * float(ndtri(rate)) / _OUT)

    def epsilon(self, *, alpha: float, delta: float) -> float:
        """Returns the ε of the exact Gaussian curve at δ for the lower bound on μ, rounded down.

        Args:
            alpha: One minus the confidence.
            delta: In (0, 1).

        Raises:
            ParameterError: δ is not in (0, 1): at δ = 0 the curve has no finite ε.
        """
        if not 0 < delta < 1:
            raise ParameterError(f"expected delta in (0, 1), got {delta!r}", name="delta", given=delta)
        return gdp_epsilon(self.mu(alpha=alpha), delta, rounding="down")

    def p_value(self, mu: float) -> float:
        """Returns how likely so few errors are under μ-GDP, rounded up."""
        return few_errors_p_value(self.errors, self.runs, rate=float(ndtr(-mu / 2)))


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessPlan:
    """On how many runs the auditor guesses, in each of several attempts, and which share of α each may spend.

    In every block of runs the guesses go to the runs with the largest |score|, ties by position in the block. The
    numbers depend on the number of runs alone.

    Attributes:
        shares: Of the runs in a block that are guessed on, in (0, 1], one an attempt.
        weights: Of α, adding up to 1.

    Raises:
        ParameterError: A share is not in (0, 1], or the weights do not add up to at most 1.
    """

    shares: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        good = all(0 < share <= 1 for share in self.shares) and all(weight > 0 for weight in self.weights)
        if not (good and len(self.shares) == len(self.weights) >= 1 and sum(self.weights) <= 1 + 1e-12):
            raise ParameterError(f"expected shares in (0, 1] with weights that add up to 1, got {self}")

    def ranks(self, runs: int) -> tuple[int, ...]:
        """Returns the number of guesses of each attempt in a block of so many runs."""
        return tuple(min(runs, max(1, round(share * runs))) for share in self.shares)


def guess_plan(favourite: float | None = None) -> GuessPlan:
    """Returns 20 shares, equally spaced on the logarithmic scale from every run to one in 4 096, with equal parts of α.

    Args:
        favourite: The share at which the declared law would be certified best, computed in advance from that law
            (`audits.reach`). It gets half of α, and the 20 divide the other half.
    """
    shares = tuple(_LEAST ** (k / (RANKS - 1)) for k in range(RANKS))
    if favourite is None:
        return GuessPlan(shares=shares, weights=(1 / RANKS,) * RANKS)
    return GuessPlan(shares=(favourite, *shares), weights=(0.5, *(0.5 / RANKS,) * RANKS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedBound:
    """The best of several attempts, at the confidence of all of them together.

    Attributes:
        epsilon: The lower bound on ε, rounded down.
        flip: The guesses it comes from.
        share: Of the runs that were guessed on.
        alpha: The part of α that this attempt spent.
    """

    epsilon: float
    flip: CoinFlip
    share: float
    alpha: float


def ranked_bound(
    errors: tuple[int, ...], guesses: tuple[int, ...], plan: GuessPlan, *, runs: int, alpha: float, delta: float
) -> RankedBound:
    """Returns the largest lower bound on ε among the plan's attempts; all hold together at confidence 1 − α.

    With δ > 0 a tenth of α pays for the number of revealed runs, which every attempt takes off its right guesses.

    Args:
        errors: Wrong guesses of each attempt.
        guesses: Guesses of each attempt.
        plan: The attempts.
        runs: All runs, under both neighbours.
        alpha: One minus the confidence.
        delta: In [0, 1).
    """
    _check(0, runs, alpha)
    revealed = revealed_at_most(runs, delta, alpha=alpha * _REVEALED)
    rest = alpha * (1 - _REVEALED) if delta > 0 else alpha
    found = []
    for wrong, number, share, weight in zip(errors, guesses, plan.shares, plan.weights, strict=True):
        flip = CoinFlip(errors=wrong, guesses=number, revealed=revealed)
        part = rest * weight
        found.append(RankedBound(epsilon=flip.epsilon(alpha=part), flip=flip, share=share, alpha=part))
    return max(found, key=lambda bound: bound.epsilon)


def _check(errors: int, runs: int, alpha: float) -> None:
    if not 0 <= errors <= runs or runs < 1:
        raise ParameterError(f"expected at least one run and no more errors than runs, got {errors} errors in {runs}")
    if not 0 < alpha < 1:
        raise ParameterError(f"expected alpha in (0, 1), got {alpha!r}", name="alpha", given=alpha)
