"""One run with many canaries: each of m users takes part or not by a hidden fair bit of their own.

Steinke, Nasr & Jagielski 2023 (Privacy auditing with one (1) training run), Theorem 5.2: under (ε, δ)-DP, whatever the
auditor guesses and on whichever canaries, the number of right ones among r guesses is hardly more than
Bin(r, e^ε/(1 + e^ε)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit

from privcheck.errors import ParameterError
from privcheck_audits.bounds.coin_flip import CoinFlip
from privcheck_audits.bounds.tails import OUT, check_counts, few_errors_p_value

_LARGEST: Final = 60.0  # ε; beyond, a guess is certain in double precision
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """Guesses of many hidden bits of one run; of several runs, if no user is a canary in two of them.

    Independent runs on disjoint canaries are one mechanism by parallel composition, so their counts may be added. The
    number of guesses is fixed in advance, or α is divided among those that are tried.

    Attributes:
        canaries: m, each in or out by a bit of its own.
        guesses: r, how many bits were guessed.
        errors: Of them, wrong.

    Raises:
        ParameterError: The counts contradict each other.
    """

    canaries: int
    guesses: int
    errors: int

    def __post_init__(self) -> None:
        check_counts(self.errors, self.guesses, 0.5)
        if self.canaries < self.guesses:
            raise ParameterError(
                f"expected at most one guess a canary, got {self.guesses} guesses of {self.canaries} canaries",
                name="guesses",
                given=self.guesses,
            )

    def p_value(self, epsilon: float, *, delta: float) -> float:
        """Returns how likely so many right guesses are under (ε, δ)-DP, rounded up.

        P(right ≥ v) ≤ β + 2mδ·max_i P(v > Bin ≥ v − i)/i, with β = P(Bin ≥ v).

        Raises:
            ParameterError: δ is not in [0, 1).
        """
        if not 0 <= delta < 1:
            raise ParameterError(f"expected delta in [0, 1), got {delta!r}", name="delta", given=delta)
        beta = few_errors_p_value(self.errors, self.guesses, rate=float(expit(-epsilon)))
        right = self.guesses - self.errors
        if delta == 0 or right == 0:
            return beta
        from scipy.stats import binom

        fewer = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), self.guesses, expit(epsilon)))
        gain = float((fewer / np.arange(1, right + 1)).max())
        return min(1.0, beta + 2 * self.canaries * delta * gain * OUT)

    def epsilon(self, *, alpha: float, delta: float) -> float:
        """Returns the lower bound on ε at confidence 1 − α, rounded down; 0 where nothing is refuted.

        >>> round(OneRun(canaries=1_000, guesses=684, errors=184).epsilon(alpha=0.05, delta=0.0), 4)
        0.8552
        """
        if delta == 0:
            return CoinFlip(errors=self.errors, guesses=self.guesses).epsilon(alpha=alpha)
        check_counts(self.errors, self.guesses, alpha)
        if self.p_value(0.0, delta=delta) > alpha:
            return 0.0
        low, high = 0.0, _LARGEST
        for _ in range(_HALVINGS):
            middle = math.fsum((low, high)) / 2
            if self.p_value(middle, delta=delta) <= alpha:
                low = middle
            else:
                high = middle
        return low
