"""Coin-flip bounds: each run uses D or D′ by a fair hidden bit, and the auditor guesses the bit from the output.

Whatever the guess is based on, the mechanism's guarantee bounds how often it can be right, so too few errors refute the
guarantee. Both directions of the pair are tested at once, by one binomial tail: no normal approximation, no constant.
In this order:

* `CoinFlip` and `CurveFlip`: the test, with and without abstentions.
* `guess_plan`: numbers of runs to guess on, fixed in advance, with α divided among them.
* `group_size`, `user_epsilon`: small ε by group privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
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

    Lemma coin-flip: Under ε-DP a guess is right with probability at most p = e^ε/(1 + e^ε), given all outputs. Proof:
    Bayes' rule, prior ½.

    Lemma revealed-bits: Under (ε, δ)-DP, if the *number* of guesses g was fixed beforehand, the right ones are
    stochastically at most R + Bin(g − R, p), R ~ Bin(coins, δ). Randomised response that reveals its bit with
    probability δ, guessed in every run, attains it. Source: Kairouz, Oh & Viswanath 2015, Theorem 3.1. Proof: by that
    theorem the mechanism is, on a pair, one that reveals its bit with probability δ, whatever the bit is, and is ε-DP
    otherwise. So R bits are revealed; given the outputs and which they are, every other guess is still right with
    probability at most p, and revealing one bit more turns a guess that is right with probability p into a right one.

    With δ = 0 the number of guesses may depend on the outputs.

    Attributes:
        errors: Wrong guesses.
        guesses: All guesses.
        coins: All runs, guessed or not; required only if delta > 0.
        delta: The probability that a bit is revealed and has a value that is guessed: δ if both neighbours are guessed,
            δ/2 if only one is.

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
        """Lower bound on ε at confidence 1 − α, rounded down; 0 if nothing is refuted.

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
        """Probability of at most this number of errors under (ε, δ)-DP, rounded up."""
        rate = float(expit(-epsilon))
        return few_errors_p_value(self.errors, self.guesses, rate=rate, coins=self.coins, delta=self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFlip:
    """Guesses of a hidden fair bit in every run, without abstentions: tests μ-GDP.

    Lemma gaussian-flip: Any test of a μ-GDP mechanism with prior ½ errs with probability at least Φ(−μ/2). Source:
    Dong, Roth & Su 2022, Definition 2.6. Proof: any test of N(0, 1) against N(μ, 1) does, at the fixed point of the
    trade-off curve.

    The bound is about mechanisms on that curve: declared Gaussian releases. ρ-zCDP alone does not imply it.

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
        """Lower bound on μ at confidence 1 − α, rounded down; 0 if nothing is refuted.

        >>> round(CurveFlip(errors=308_538, runs=1_000_000).mu(alpha=0.01), 4)
        0.9939
        """
        rate = error_rate_at_most(self.errors, self.runs, alpha=alpha)
        return 0.0 if rate >= 0.5 else max(0.0, -2 * float(ndtri(rate)) / OUT)

    def epsilon(self, *, alpha: float, delta: float) -> float:
        """Value of ε on the exact Gaussian curve at δ for the lower bound on μ, rounded down.

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
        """Probability of at most this number of errors under μ-GDP, rounded up."""
        return few_errors_p_value(self.errors, self.runs, rate=float(ndtr(-mu / 2)))


RANKS: Final = 20
_FAVOURITE: Final = 0.9  # of α, for the share that the declared law makes best
_LEAST: Final = 1 / 4096  # the smallest share of runs that is guessed on


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessPlan:
    """Number of runs to guess on in each of several attempts, and their shares of α.

    In every block of runs the guesses go to the runs with the largest absolute score, ties by position in the block.
    The numbers depend on the number of runs alone.

    The auditor may look at all outputs before deciding which runs to guess on: given the outputs the bits are
    independent. Only the tested number of guesses must not depend on the bits.

    Attributes:
        shares: Shares of the runs in a block to guess on, in (0, 1], one per attempt.
        weights: Shares of α, adding up to 1.

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
        """Number of guesses of each attempt in a block."""
        return tuple(min(runs, max(1, round(share * runs))) for share in self.shares)


def guess_plan(favourite: float | None = None, *, weight: float = _FAVOURITE) -> GuessPlan:
    """Plan of 20 shares, spaced logarithmically from every run to one in 4 096, with equal parts of α.

    Args:
        favourite: The share with the best bound for the declared law, computed in advance from that law
            (`privcheck_audits.plan.reachable`). It gets the part `weight` of α, and the 20 divide the rest.
        weight: In (0, 1); ignored without a favourite.

    Raises:
        ParameterError: The weight is not in (0, 1).
    """
    if not 0 < weight < 1:
        raise ParameterError(f"expected a weight in (0, 1), got {weight!r}", name="weight", given=weight)
    shares = tuple(_LEAST ** (k / (RANKS - 1)) for k in range(RANKS))
    if favourite is None:
        return GuessPlan(shares=shares, weights=(1 / RANKS,) * RANKS)
    return GuessPlan(shares=(favourite, *shares), weights=(weight, *((1 - weight) / RANKS,) * RANKS))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedBound:
    """The best of several attempts, at their joint confidence.

    Attributes:
        epsilon: The lower bound on ε, rounded down.
        flip: The guesses it comes from.
        share: Share of the runs guessed on.
        alpha: Part of α of this attempt.
    """

    epsilon: float
    flip: CoinFlip
    share: float
    alpha: float


def bound_at_ranks(
    errors: tuple[int, ...], guesses: tuple[int, ...], plan: GuessPlan, *, runs: int, alpha: float, delta: float
) -> RankedBound:
    """Largest lower bound on ε among the plan's attempts, which hold jointly at confidence 1 − α.

    Args:
        errors: Wrong guesses of each attempt.
        guesses: Guesses of each attempt.
        plan: The attempts.
        runs: All runs, under both neighbours.
        alpha: One minus the confidence.
        delta: In [0, 1).
    """
    check_counts(0, runs, alpha)
    bounds = []
    for wrong, number, share, weight in zip(errors, guesses, plan.shares, plan.weights, strict=True):
        flip = CoinFlip(errors=wrong, guesses=number, coins=runs, delta=delta)
        part = alpha * weight
        bounds.append(RankedBound(epsilon=flip.epsilon(alpha=part), flip=flip, share=share, alpha=part))
    return max(bounds, key=lambda bound: bound.epsilon)


_HALVINGS: Final = 24  # each asks for a bound; the last is rounded down
_AIM: Final = 1.5  # ε of the group at which guesses say most about a user's


def group_size(epsilon: float) -> int:
    """Number of users to change together, so that kε is between 1 and 2; 1 if ε is at least 1.

    For small ε the data of k users are changed at once, and the guarantee implied by group privacy is tested. At ε =
    0.1 a guess is right in 52.5 of 100 runs, hard to distinguish from 50; with ten users at once, in 73.

    Raises:
        ParameterError: ε is not positive.
    """
    if not 0 < epsilon < math.inf:
        raise ParameterError(f"expected a positive, finite epsilon, got {epsilon!r}", name="epsilon", given=epsilon)
    return max(1, round(_AIM / epsilon)) if epsilon < 1 else 1


def group_delta(epsilon: float, delta: float, *, users: int) -> float:
    """Bound δ(e^{kε} − 1)/(e^ε − 1), rounded up: the δ of k users at kε (Vadhan 2017, Lemma 2.2).

    Raises:
        ParameterError: A number is out of range.
    """
    if users < 1 or not (epsilon >= 0 and 0 <= delta < 1):
        raise ParameterError(
            f"expected at least one user, epsilon ≥ 0 and delta in [0, 1), got {users}, {epsilon!r} and {delta!r}"
        )
    if delta == 0 or users == 1:
        return delta
    if users * epsilon > 700:
        return math.inf
    steps = users if epsilon == 0 else math.expm1(users * epsilon) / math.expm1(epsilon)
    return delta * steps * OUT


def user_epsilon(bound: Callable[[float], float], *, users: int, delta: float) -> float:
    """Lower bound on one user's ε from a bound about k users, rounded down.

    Lemma group-bound: ε is refuted if the group's lower bound, at the δ of k users, exceeds kε, and the refuted ones
    are an interval. Proof: larger ε has larger δ and is harder to refute.

    (For μ-GDP and ρ-zCDP divide by k and k² instead.)

    Args:
        bound: From δ to the group's lower bound on ε at one fixed confidence; falls as δ grows.
        users: k.
        delta: δ of one user's guarantee.

    Raises:
        ParameterError: A number is out of range.
    """
    if users < 1 or not 0 <= delta < 1:
        raise ParameterError(f"expected at least one user and delta in [0, 1), got {users} and {delta!r}")
    if delta == 0 or users == 1:
        return bound(delta) / users / (OUT if users > 1 else 1)

    def refutes(epsilon: float) -> bool:
        paid = group_delta(epsilon, delta, users=users)
        return paid < 1 and bound(paid) > users * epsilon

    low, high = 0.0, bound(delta) / users
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low
