"""Trade-off curves (f-DP): how well a score tells the neighbours apart at every threshold, and what claims allow.

The thresholds are fixed before the runs that are counted at them, on a stream of their own, so memory does not grow
with the number of runs and every count is binomial.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from privcheck.accounting import claim_delta, claim_epsilon
from privcheck.guarantees import ZCDP, GaussianDP, Guarantee, PrivacyProfile, RenyiDP
from privcheck.pictures import TradeOff
from privcheck.pricing.cost import NumericAccount
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.engine.scores import Scored

PILOT: Final = 4_096  # runs from which thresholds are chosen; nothing else is read from them
_MARKS: Final = 32  # thresholds an arm
_TAIL: Final = 1e-3  # share of an arm beyond its outermost threshold
_TAG: Final = (0xA0D17, 0x9107)  # spawn key of the pilot, which no part of an audit has
_GRID: Final = np.unique(np.concatenate([np.linspace(0, 1, 81), np.geomspace(1e-5, 0.1, 33)]))
_PROFILE: Final = 61  # points of a privacy curve that is turned into a trade-off curve
_CERTIFIED: Final = 25  # such points where each costs milliseconds
_SMALL: Final = 1e-6  # δ at which that curve ends

Sample = Callable[[np.random.Generator, int], Scored]


def pilot_marks(sample: Sample, *, seed: int) -> tuple[float, ...]:
    """Returns thresholds for `tally` from a small sample on a stream of its own.

    Args:
        sample: Draws and scores so many runs.
        seed: The audit's.
    """
    scored = sample(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_TAG)), PILOT)
    return marks(scored)


def marks(scored: Scored) -> tuple[float, ...]:
    """Returns thresholds for `tally`, ascending: quantiles of each arm, close to each other in its tails.

    Args:
        scored: Runs that are not counted: a pilot's, or those on which the score was learned.
    """
    levels = ndtr(np.linspace(ndtri(_TAIL), ndtri(1 - _TAIL), _MARKS))
    arms = [scored.score[arm] for arm in (scored.secret, ~scored.secret)]
    quantiles = [np.quantile(arm, levels, method="inverted_cdf") for arm in arms if arm.size]  # atoms are met exactly
    return tuple(np.unique(np.concatenate([np.zeros(1), *quantiles])).tolist())


def trade_off(
    counted: Tally,
    *,
    confidence: float,
    claim: NDArray[np.float64] | None,
    words: str,
    accountant: NDArray[np.float64] | None,
) -> TradeOff | None:
    """Returns both kinds of error at every threshold; None where an arm has no run.

    Thresholds were fixed before the runs were drawn, so each count is binomial: exact intervals (Clopper & Pearson
    1934), α divided among both sides of both counts of all thresholds. The curve is that of the tests at these
    thresholds and of chance between them, the hull of their points: it lies between the hulls of the intervals'
    corners.

    Args:
        counted: The runs.
        confidence: Of all intervals together.
        claim: The claim's curve on the grid, or None.
        words: The claim.
        accountant: The accountant's curve on the grid, or None.
    """
    arms = counted.on_first, counted.on_second
    if min(arms) == 0:
        return None
    level = (1 - confidence) / (4 * len(counted.false_second))
    one, two = (np.array(errors) for errors in (counted.false_second, counted.false_first))
    (one_low, one_high), (two_low, two_high) = (
        _interval(errors, runs, level) for errors, runs in zip((one, two), arms, strict=True)
    )
    return TradeOff(
        runs=arms,
        confidence=confidence,
        type_one=_floats(one / arms[0]),
        type_two=_floats(two / arms[1]),
        grid=_floats(_GRID),
        at_least=_floats(_hull([0.0, *one_low, 1.0], [1.0, *two_low, 0.0])),
        at_most=_floats(_hull([0.0, *one_high, 1.0], [1.0, *two_high, 0.0])),
        claim=None if claim is None else _floats(claim),
        claim_words=words,
        accountant=None if accountant is None else _floats(accountant),
    )


def _hull(alphas: list[float], betas: list[float]) -> NDArray[np.float64]:
    """Returns the largest convex curve on the grid that lies below or on all points, which reach from α = 0 to 1."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(zip(alphas, betas, strict=True)):
        while len(kept) > 1 and _turns_down(kept[-2], kept[-1], (x, y)):
            kept.pop()
        if not kept or x > kept[-1][0]:
            kept.append((x, y))
    corners = np.array(kept)
    return np.asarray(np.interp(_GRID, corners[:, 0], corners[:, 1]))


def _turns_down(before: tuple[float, float], here: tuple[float, float], after: tuple[float, float]) -> bool:
    (x0, y0), (x1, y1), (x2, y2) = before, here, after
    return (y1 - y0) * (x2 - x0) >= (y2 - y0) * (x1 - x0)


def trace_claim(guarantee: Guarantee, values: Mapping[str, Fraction]) -> NDArray[np.float64] | None:
    """Returns the least type-II error on the grid that the claim allows; None where it allows everything.

    (ε, δ)-DP is the curve max(0, 1 − δ − e^ε α, e^(−ε)(1 − δ − α)) (Dong, Roth & Su 2022, Proposition 2.5). ρ-zCDP is
    what its conversions imply at many ε together: sharp for no mechanism, but true of all; Rényi DP likewise. A profile
    is the largest of its points' curves, μ-GDP Φ(Φ⁻¹(1 − α) − μ) itself.
    """
    if isinstance(guarantee, GaussianDP):
        return np.asarray(ndtr(ndtri(1 - _GRID) - guarantee.mu.number(values, rounding="up")))
    if isinstance(guarantee, PrivacyProfile):
        points = [(p.epsilon.number(values, rounding="up"), p) for p in guarantee.points]
        return _least_errors([(e, claim_delta(p, values, e)) for e, p in points])
    if isinstance(guarantee, ZCDP | RenyiDP):
        last = claim_epsilon(guarantee, values, _SMALL)
        if not math.isfinite(last):
            return None
        epsilons = np.linspace(0.0, last, _PROFILE)
        return _least_errors([(float(e), claim_delta(guarantee, values, float(e))) for e in epsilons])
    epsilon = guarantee.epsilon.number(values, rounding="up")
    return _least_errors([(epsilon, claim_delta(guarantee, values, epsilon))]) if math.isfinite(epsilon) else None


@functools.lru_cache(maxsize=64)  # every pair, view and attempt of an audit is drawn against the same curve
def trace_charge(charged: NumericAccount) -> NDArray[np.float64] | None:
    """Returns the least type-II error on the grid for what the accountant charges; None where that is unbounded.

    μ-GDP is the curve Φ(Φ⁻¹(1 − α) − μ) (Dong, Roth & Su 2022, Definition 2.6); otherwise what many (ε, δ) imply.
    """
    if charged.mu is not None:
        return None if math.isinf(charged.mu) else np.asarray(ndtr(ndtri(1 - _GRID) - charged.mu))
    last = min(charged.epsilon(_SMALL), charged.pure)
    if not math.isfinite(last):
        return None
    pairs = [(float(e), charged.delta(float(e))) for e in np.linspace(0.0, last, _CERTIFIED)]
    return _least_errors([*pairs, (charged.pure, 0.0)] if math.isfinite(charged.pure) else pairs)


def _least_errors(pairs: list[tuple[float, float]]) -> NDArray[np.float64]:
    least = np.zeros(_GRID.size)
    for epsilon, delta in pairs:
        steep = 1 - delta - np.exp(min(epsilon, 700.0)) * _GRID
        flat = math.exp(-epsilon) * (1 - delta - _GRID)
        least = np.maximum(least, np.maximum(steep, flat))
    return least


def _interval(errors: NDArray[Any], runs: int, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    none, every = errors == 0, errors == runs
    low = np.where(none, 0.0, betaincinv(np.where(none, 1, errors), runs - errors + 1, level))
    high = np.where(every, 1.0, betainccinv(errors + 1, np.where(every, 1, runs - errors), level))
    return low, high


def _floats(array: NDArray[Any]) -> tuple[float, ...]:
    return tuple(np.clip(array, 0.0, 1.0).tolist())
