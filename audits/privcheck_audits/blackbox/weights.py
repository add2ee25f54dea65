"""Who gets which share of α: decided by the training runs alone, before any tested run was seen.

Two attempts get most of it: the one that refutes the claim best, and the one whose bound is largest. They differ where
a claim is broken by far, which a rare event shows as a large bound and a common one more surely. A third takes from
both: one of few from which the choice is made, for the largest of hundreds of noisy bounds is a lucky one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from privcheck.accounting.engine.gdp import gdp_delta
from privcheck_audits.blackbox.counts import Counts
from privcheck_audits.blackbox.guesses import beyond_cuts
from privcheck_audits.blackbox.verdict import (
    CERTIFIES,
    REFUTES,
    Array,
    Attempt,
    ClaimedLoss,
    lower_bound,
    odds_at_least,
)

_NEXT: Final = 0.15  # of α, for the runners-up together
_STEADY: Final = 0.45  # taken from the two, for the attempt that luck has least to do with
_HALVINGS: Final = 50
_RUNNERS_UP: Final = 4  # of either kind
_WORSE: Final = 2.0  # standard deviations by which counts are made worse
_CAUTION: Final = 3.0  # standard deviations by which δ may reveal more than expected


def weigh(
    tried: Sequence[Attempt], training: Sequence[Counts], target: ClaimedLoss, *, tested: Sequence[int], alpha: float
) -> Array:
    """Returns the share of α of each attempt, (attempts,), adding up to 1, from the training runs alone.

    Args:
        tried: The attempts.
        training: Counts of each pair by models that had not seen the run.
        target: The claim.
        tested: How many runs of each pair will be tested.
        alpha: One minus the confidence.
    """
    refutes, certifies = np.zeros((2, len(tried)))
    for pair, counts in enumerate(training):
        of_pair = np.array([attempt.pair == pair for attempt in tried])
        mine = [attempt for attempt in tried if attempt.pair == pair]
        refutes[of_pair], certifies[of_pair] = _promises(mine, counts, target, runs=tested[pair], alpha=alpha)
    weights = np.full(len(tried), (1 - REFUTES - CERTIFIES - _NEXT) / len(tried))
    if target.delta > 0:
        steady = _as_of_normal_noise(tried, training, certifies, target, tested=tested, alpha=alpha)
    else:
        steady = _of_all_scores(tried, certifies)
    if steady is not None:
        weights[steady] += _STEADY
    for promise, share in ((refutes, REFUTES), (certifies, CERTIFIES)):
        order = np.argsort(-promise, kind="stable")
        following = order[1 : 1 + _RUNNERS_UP]
        weights[order[0]] += share - (0.0 if steady is None else _STEADY / 2)
        weights[following] += _NEXT / 2 / max(1, following.size)
    return weights / max(1.0, float(weights.sum()))


def _of_all_scores(tried: Sequence[Attempt], certifies: Array) -> int | None:
    """Returns the attempt both ways with the largest bound by a pair's last score, which combines the others.

    Of scores that tell nearly the same the largest bound is that of the luckiest one.
    """
    last = {attempt.pair: attempt.score for attempt in tried}
    of_last = [
        i
        for i, attempt in enumerate(tried)
        if attempt.score == last[attempt.pair] and attempt.upper is not None and attempt.lower is not None
    ]
    return max(of_last, key=lambda i: float(certifies[i]), default=None)


def _as_of_normal_noise(
    tried: Sequence[Attempt],
    training: Sequence[Counts],
    certifies: Array,
    target: ClaimedLoss,
    *,
    tested: Sequence[int],
    alpha: float,
) -> int | None:
    """Returns the attempt on as many guesses as would certify normal noise best, by a pair's last score.

    With δ > 0 few guesses count, fewer than training runs can tell the best number of. Where the claim is exactly true
    of normal noise the number follows from the claim; no attempt, where δ = 0.
    """
    if target.delta == 0:
        return None
    low, high = 1e-6, 60.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gdp_delta(middle, target.claimed) < target.delta else (low, middle)
    cuts = np.linspace(0, 6, 121)
    best, worth = None, -math.inf
    for pair, counts in enumerate(training):
        right = np.floor(tested[pair] * ndtr(low / 2 - cuts)).astype(np.int64)
        wrong = np.ceil(tested[pair] * ndtr(-low / 2 - cuts)).astype(np.int64)
        paid = _paid(target.delta, tested[pair])
        bounds = odds_at_least(wrong, np.maximum(right - paid, 0) + wrong, alpha * _STEADY)
        which = int(np.argmax(bounds))
        share = (right[which] + wrong[which]) / max(1, tested[pair])
        made = beyond_cuts(tried, counts)
        far = np.abs(np.log(np.maximum(made.right + made.wrong, 0.5) / max(1, counts.runs) / share))
        last = max(attempt.score for attempt in tried if attempt.pair == pair)
        both = [
            i
            for i, attempt in enumerate(tried)
            if (attempt.pair, attempt.score) == (pair, last) and attempt.upper is not None and attempt.lower is not None
        ]
        nearest = min(both, key=lambda i: float(far[i]), default=None)
        if nearest is not None and (best is None or certifies[nearest] > worth):
            best, worth = nearest, float(certifies[nearest])
    return best


def _paid(revealing: Array | float, runs: int) -> NDArray[np.int64]:
    """Returns how many right guesses δ may have paid for, about."""
    revealed = np.asarray(revealing) * runs
    paid: NDArray[np.int64] = np.ceil(revealed + _CAUTION * np.sqrt(revealed)).astype(np.int64)
    return paid


def _promises(
    tried: Sequence[Attempt], training: Counts, target: ClaimedLoss, *, runs: int, alpha: float
) -> tuple[Array, Array]:
    """Returns how well each attempt would refute the claim, −ln p, and its bound, by counts as in the training runs.

    The counts are made worse by standard deviations: among hundreds of attempts the largest bound is that of a lucky
    one with few guesses, and the best for one audit is hardly better than its neighbours with more.
    """
    grown = runs / max(1, training.runs)
    made = beyond_cuts(tried, training)

    def grow(deviations: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        right = np.maximum(0.0, made.right - deviations * np.sqrt(made.right)) * grown
        wrong = (made.wrong + deviations * np.sqrt(made.wrong + 1)) * grown
        return np.floor(right).astype(np.int64), np.ceil(wrong).astype(np.int64)

    if target.unit != "epsilon":
        bounds = np.array(
            [
                lower_bound(each, training, target, right=int(r), wrong=int(w), alpha=alpha / 10, times=grown)
                for each, r, w in zip(tried, *grow(_WORSE), strict=True)
            ]
        )
        return bounds, bounds
    from scipy.stats import binom

    one_way = np.array([attempt.upper is None or attempt.lower is None for attempt in tried])
    paid = _paid(np.where(one_way, target.delta / 2, target.delta), runs)
    right, wrong = grow(_WORSE)
    number = np.maximum(right - paid, 1) + wrong
    refutes = np.where(right > paid, -binom.logcdf(wrong, number, expit(-target.claimed)), -np.inf)
    certifies = np.where(right > paid, odds_at_least(wrong, number, alpha * CERTIFIES), -np.inf)
    return refutes, certifies
