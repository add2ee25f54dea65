"""Where to guess: on numbers of runs that are fixed in advance, α divided among them.

The auditor may look at all outputs before deciding which runs to guess on: given the outputs the bits are independent.
What may not depend on the bits is the number of guesses that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from privcheck.errors import ParameterError
from privcheck_audits.bounds.coin_flip import CoinFlip
from privcheck_audits.bounds.tails import check_counts

RANKS: Final = 20
_FAVOURITE: Final = 0.9  # of α, for the share that the declared law makes best
_LEAST: Final = 1 / 4096  # the smallest share of runs that is guessed on


@dataclass(frozen=True, slots=True, kw_only=True)
class GuessPlan:
    """On how many runs the auditor guesses, in each of several attempts, and which share of α each may spend.

    In every block of runs the guesses go to the runs with the largest absolute score, ties by position in the block.
    The numbers depend on the number of runs alone.

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


def guess_plan(favourite: float | None = None, *, weight: float = _FAVOURITE) -> GuessPlan:
    """Returns 20 shares, equally spaced on the logarithmic scale from every run to one in 4 096, with equal parts of α.

    Args:
        favourite: The share at which the declared law would be certified best, computed in advance from that law
            (`privcheck_audits.releases.reachable_limit`). It gets the part `weight` of α, and the 20 divide the rest.
        weight: In (0, 1); without a favourite it does nothing.

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


def bound_at_ranks(
    errors: tuple[int, ...], guesses: tuple[int, ...], plan: GuessPlan, *, runs: int, alpha: float, delta: float
) -> RankedBound:
    """Returns the largest lower bound on ε among the plan's attempts; all hold together at confidence 1 − α.

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
