"""Matrix mechanisms: by how much one user moves C·G, G the contributions to every step, C the encoder.

A user who contributes gᵢ, ‖gᵢ‖₂ ≤ 1, to the steps i of a pattern S moves C·G by ‖Σᵢ cᵢgᵢᵀ‖_F, cᵢ the columns of C. Its
square is Σ_{i,j ∈ S} X_ij⟨gᵢ, gⱼ⟩ with X = CᵀC, at most Σ_{i,j ∈ S}|X_ij|, attained by equal gᵢ where no X_ij is
negative. The sensitivity is the largest of that over all patterns a user may have (Choquette-Choo, McMahan, Rush &
Thakurta 2023).

*Which pattern is worst*, if at most k steps at least b apart may be taken:
1. Let W = |X| fall along every diagonal and with the distance from it. In S = {s₁ < s₂ < …} the l-th step is at least
   (l − 1)b and its distance from the m-th at least |l − m|b: term by term {0, b, 2b, …} is at least as large. (For
   Toeplitz encoders with falling coefficients this is in Kalinin & Lampert 2024.)
2. Few patterns are enumerated.
3. Σ_{i ∈ S} Σ_{j ∈ S} W_ij ≤ Σ_{i ∈ S} rᵢ where rᵢ is the largest Σ_{j ∈ S'} W_ij over all patterns S' with i: two
   dynamic programmes. Where columns b steps apart are orthogonal, rᵢ = W_ii and this is exact. In general the pattern
   at which the second one ends has a sum of its own, and where it agrees the bound is attained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from privcheck.accounting.engine.laws import UNIT, Floats, as_floats

Order = Literal["any", "fixed"]
_MOST_PATTERNS: Final = 20_000  # that are enumerated
_MOST_WORK: Final = 20_000_000  # numbers in the dynamic programme of all rows: 160 MB
_SAME: Final = 1e-12  # relative
_TIE: Final = 1e-14  # relative; sums of the same terms in another order


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSensitivity:
    """By how much one user moves C·G in ‖·‖_F, contributions having norm 1.

    Attributes:
        value: Rounded up.
        exact: Whether a user attains it, up to rounding.
        pattern: The steps that attain it, or come closest among those tried.
    """

    value: float
    exact: bool
    pattern: tuple[int, ...]


def encoder_sensitivity(
    encoder: Floats, *, participations: int, separation: int, order: Order = "any"
) -> EncoderSensitivity:
    """Returns the sensitivity of an encoder, over all patterns of participation.

    Args:
        encoder: (m, n) C, a column a step.
        participations: k, of one user, at most.
        separation: b, at least this many steps apart; exactly so for the order "fixed".
        order: "any" for steps at least b apart, "fixed" for i, i + b, i + 2b, … as in epochs of one order.
    """
    signed = encoder.T @ encoder
    rounding = 2 * encoder.shape[0] * UNIT * (np.abs(encoder).T @ np.abs(encoder))
    weights = as_floats(np.abs(signed) + rounding)
    n = len(weights)
    k = min(participations, 1 + (n - 1) // separation)
    if k == 1:
        best = int(np.argmax(np.diag(weights)))
        return _sensitivity_at(weights, signed, rounding, (best,), float(weights[best, best]))
    if order == "fixed":
        patterns = [tuple(range(i, n, separation))[:k] for i in range(min(separation, n))]
    elif _falls(weights):
        patterns = [tuple(range(0, n, separation))[:k]]
        weights = as_floats(weights * (1 + 2 * n * _TIE))
    elif sum(math.comb(n - (size - 1) * (separation - 1), size) for size in range(1, k + 1)) <= _MOST_PATTERNS:
        patterns = [pattern for size in range(1, k + 1) for pattern in _patterns(n, size, separation)]
    else:
        rows = _row_sums(weights, k, separation)
        pattern, bound = _heaviest(rows, k, separation)
        return _sensitivity_at(weights, signed, rounding, pattern, bound)
    sums = [_sum(weights, pattern) for pattern in patterns]
    best = int(np.argmax(sums))
    return _sensitivity_at(weights, signed, rounding, patterns[best], sums[best])


def bandwidth(encoder: Floats) -> int:
    """Returns the least b for which columns b or more steps apart have no row in common."""
    present = (encoder != 0).astype(np.float64)
    apart = np.argwhere(present.T @ present > 0)
    return 1 + int(np.max(np.abs(apart[:, 0] - apart[:, 1]), initial=0))


def _sensitivity_at(
    weights: Floats, signed: Floats, rounding: Floats, pattern: tuple[int, ...], square: float
) -> EncoderSensitivity:
    chosen = np.ix_(pattern, pattern)
    attained = bool(np.all(signed[chosen] >= -rounding[chosen])) and square <= _sum(weights, pattern) * (1 + _SAME)
    value = math.sqrt(square * (1 + 4 * UNIT)) * (1 + 4 * UNIT)
    return EncoderSensitivity(value=value, exact=attained, pattern=pattern)


def _sum(weights: Floats, pattern: tuple[int, ...]) -> float:
    return math.fsum(weights[np.ix_(pattern, pattern)].ravel().tolist())


def _falls(weights: Floats) -> bool:
    """Returns whether W falls along every diagonal and with the distance from the main one."""
    along = weights[1:, 1:] <= weights[:-1, :-1] * (1 + _TIE)
    away = weights[:-1, 1:] <= weights[1:, 1:] * (1 + _TIE)  # W[i − 1, j] ≤ W[i, j], asked for i ≤ j
    return bool(np.all(along)) and bool(np.all(away[np.triu_indices(len(away))]))


def _patterns(n: int, k: int, separation: int, first: int = 0) -> Iterator[tuple[int, ...]]:
    """Yields all patterns of k steps."""
    if k == 0:
        yield ()
        return
    for i in range(first, n - (k - 1) * separation):
        for rest in _patterns(n, k - 1, separation, i + separation):
            yield (i, *rest)


def _row_sums(weights: Floats, k: int, separation: int) -> Floats:
    """Returns (n,) rᵢ, rounded up: the largest Σ_{j ∈ S} W_ij over the patterns S of k steps at most with i."""
    n = len(weights)
    own = np.diag(weights).copy()
    if n * n * k * 2 > _MOST_WORK:  # … or over any k − 1 steps that are far enough from i
        far = np.where(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) >= separation, weights, 0.0)
        largest = np.partition(far, n - k + 1, axis=1)[:, n - k + 1 :]
        return as_floats((own + largest.sum(axis=1)) * (1 + 2 * k * UNIT))
    left, right = (_prefixes(as_floats(w), k - 1, separation) for w in (weights, weights[::-1, ::-1]))
    right = right[:, ::-1]
    best = np.zeros(n)
    for taken in range(k):
        best = np.maximum(best, left[taken] + right[k - 1 - taken])
    return as_floats((own + best) * (1 + 4 * k * UNIT))


def _prefixes(weights: Floats, k: int, separation: int) -> Floats:
    """Returns (k + 1, n) the largest Σ W_ij over at most so many steps j ≤ i − b, for every row i."""
    n = len(weights)
    result = np.zeros((k + 1, n))
    best = np.zeros((n + 1, k + 1, n))  # of the steps before j, for every row
    for j in range(n):
        best[j + 1] = best[j]
        before = best[max(0, j + 1 - separation)]
        best[j + 1, 1:] = np.maximum(best[j, 1:], before[:-1] + weights[:, j])
    for i in range(n):
        result[:, i] = best[max(0, i + 1 - separation), :, i]
    return result


def _heaviest(charges: Floats, k: int, separation: int) -> tuple[tuple[int, ...], float]:
    """Returns the pattern of at most k steps with the largest sum of charges, and that sum, rounded up."""
    n = len(charges)
    best = np.zeros((n + 1, k + 1))
    for j in range(n):
        before = best[max(0, j + 1 - separation)]
        best[j + 1] = best[j]
        best[j + 1, 1:] = np.maximum(best[j, 1:], before[:-1] + charges[j])
    pattern, j, left = [], n, k
    while j and left:
        if best[j, left] > best[j - 1, left]:
            pattern.append(j - 1)
            j, left = max(0, j - separation), left - 1
        else:
            j -= 1
    return tuple(sorted(pattern)), float(best[n, k]) * (1 + 2 * k * UNIT)
