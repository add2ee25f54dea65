"""The coin flip: each run takes D or D′ by a fair hidden bit, and the auditor guesses the bit from the output.

Whatever the guess is based on, the mechanism's guarantee bounds how often it can be right, so too few errors refute the
guarantee. Both directions of the pair are tested at once, by one binomial tail: no normal approximation, no constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from scipy.special import expit, ndtr, ndtri

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.errors import ParameterError
from privcheck_audits.bounds.tails import OUT, check_counts, error_rate_at_most, few_errors_p_value

_PRECISION: Final = 1e-9  # relative, of bounds found by bisection


@dataclass(frozen=True, slots=True, kw_only=True)
class CoinFlip:
    """Guesses of a hidden fair bit, with abstentions: tests (ε, δ)-DP of any mechanism.

    Under ε-DP a guess is right with probability at most p = e^ε/(1 + e^ε), given all outputs (Bayes' rule, prior ½).

    An (ε, δ) mechanism is, on a pair, one that reveals its bit with probability δ, whatever the bit is, and is ε-DP
    otherwise (Kairouz, Oh & Viswanath 2015, Theorem 3.1). So R ~ Bin(coins, δ) bits are revealed; given the outputs and
    which they are, every other guess is still right with probability at most p. Where the *number* of guesses g was
    fixed before, the right ones are stochastically at most R + Bin(g − R, p): revealing one bit more turns a guess that
    is right with probability p into a right one. Randomised response that reveals its bit with probability δ, guessed
    in every run, attains it. With δ = 0 the number of guesses may depend on the outputs.

    Attributes:
        errors: Wrong guesses.
        guesses: All guesses.
        coins: All runs, guessed or not; asked for where delta > 0 only.
        delta: The probability that a bit is revealed and is one that guesses name: δ where both neighbours are guessed,
            δ/2 where only one is.

    Raises:
        ParameterError: The counts contradict each other, or δ is not in [0, 1).
    """

    errors: int
    guesses: int
    coins: int = 0  # together: a δ needs the coins that it may reveal, and pure DP reveals none
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_counts(self.errors, self.guesses, 0.5)
        if not (self.delta == 0 or (0 < self.delta < 1 and self.coins >= self.guesses)):
            wanted = "delta in [0, 1), and no more guesses than coins"
            raise ParameterError(
                f"expected {wanted}, got delta={self.delta!r}, {self.guesses} guesses of {self.coins} coins",
                given=self.delta,
            )

    def epsilon(self, *, alpha: float) -> float:
        """Returns the lower bound on ε at confidence 1 − α, rounded down; 0 where nothing is refuted.

        >>> round(CoinFlip(errors=25, guesses=100).epsilon(alpha=0.05), 4)
        0.7022
        """
        rate = error_rate_at_most(self.errors, self.guesses, alpha=alpha)
        if rate >= 0.5:
            return 0.0
        bound = max(0.0, (math.log1p(-rate) - math.log(rate)) / OUT)
        if self.delta == 0 or bound == 0 or self.p_value(0.0) > alpha:
            return bound if self.delta == 0 else 0.0
        if self.p_value(bound) <= alpha:
            return bound
        from scipy.optimize import brentq

        level = math.log(alpha)
        step = _PRECISION * bound
        found = float(brentq(lambda epsilon: math.log(self.p_value(epsilon)) - level, 0.0, bound, xtol=step))
        while found > 0 and self.p_value(found) > alpha:
            found, step = found - step, 2 * step
        return max(0.0, found)

    def p_value(self, epsilon: float) -> float:
        """Returns how likely so few errors are under (ε, δ)-DP, rounded up."""
        rate = float(expit(-epsilon))
        return few_errors_p_value(self.errors, self.guesses, rate=rate, coins=self.coins, delta=self.delta)


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
        check_counts(self.errors, self.runs, 0.5)

    def mu(self, *, alpha: float) -> float:
        """Returns the lower bound on μ at confidence 1 − α, rounded down; 0 where nothing is refuted.

        >>> round(CurveFlip(errors=308_538, runs=1_000_000).mu(alpha=0.01), 4)
        0.9939
        """
        rate = error_rate_at_most(self.errors, self.runs, alpha=alpha)
        return 0.0 if rate >= 0.5 else max(0.0, -2 * float(ndtri(rate)) / OUT)

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
