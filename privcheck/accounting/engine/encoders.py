"""Matrix mechanisms: the sensitivity of C·G to one user, G the contributions to every step, C the encoder.

Lemma encoder-change: A user who contributes gᵢ, ‖gᵢ‖₂ ≤ 1, to the steps i of a pattern S changes C·G by at most the
root of Σ_{i,j ∈ S}|X_ij|, X = CᵀC, attained by equal gᵢ where no X_ij is negative. Source: Choquette-Choo, McMahan,
Rush & Thakurta 2023. Proof: the square of ‖Σᵢ cᵢgᵢᵀ‖_F, cᵢ the columns of C, is Σ_{i,j ∈ S} X_ij⟨gᵢ, gⱼ⟩.

The sensitivity is the largest value over all patterns a user may have.

*Which pattern is worst*, if at most k steps at least b apart may be taken:
1. Lemma encoder-first-steps: If W = |X| falls along every diagonal and with the distance from it, no pattern of k steps
   at least b apart has a larger ΣW_ij than {0, b, 2b, …}. Source: for Toeplitz encoders with falling coefficients
   Kalinin & Lampert 2024. Proof: in S = {s₁ < s₂ < …} the l-th step is at least (l − 1)b and its distance from the m-th
   at least |l − m|b: term by term {0, b, 2b, …} is at least as large.
2. Few patterns are enumerated.
3. Lemma encoder-rows: Σ_{i ∈ S} Σ_{j ∈ S} W_ij ≤ Σ_{i ∈ S} rᵢ where rᵢ is the largest Σ_{j ∈ S'} W_ij over all patterns
   S' with i; where columns b steps apart are orthogonal, rᵢ = W_ii and this is exact. Proof: S is one of the patterns
   S'. Two dynamic programmes find the largest. In general the pattern found by the second programme has a sum as well,
   and where the two agree the bound is attained.
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
_MOST_SIGNED: Final = 2_000_000  # patterns with signs, times the square of their length, that are all looked at
_DUALS: Final = 200  # patterns of which the programme is bounded, the heaviest
_SWEEPS: Final = 100  # of its ascent
_STARTS: Final = 24  # steps from which patterns are built up, where they are too many to enumerate
_ROUNDS: Final = 200  # changes of a pattern, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderSensitivity:
    """Sensitivity of C·G to one user in ‖·‖_F, with contributions of norm 1.

    Attributes:
        value: The sensitivity, rounded up.
        exact: Whether a user attains it, up to rounding.
        pattern: The steps that attain it, or come closest among the patterns tried.
        signs: ±1, the sign of one common vector in each of these steps.
    """

    value: float
    exact: bool
    pattern: tuple[int, ...]
    signs: tuple[int, ...]


def encoder_sensitivity(
    encoder: Floats, *, participations: int, separation: int, order: Order = "any"
) -> EncoderSensitivity:
    """Compute the sensitivity of an encoder, over all patterns of participation.

    Args:
        encoder: (m, n) C, one column per step.
        participations: k, the largest number of participations of one user.
        separation: b, the least distance between two participations in steps; the exact distance for the order "fixed".
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
        if not np.all(signed >= -rounding):
            heavy = np.argsort(-np.diag(signed), kind="stable")[:_STARTS].tolist()
            found = [_climb(signed, start, k, separation) for start in (pattern, *((step,) for step in heavy))]
            pattern = max(found)[1]
        return _sensitivity_at(weights, signed, rounding, pattern, bound)
    sums = [_sum(weights, pattern) for pattern in patterns]
    best = int(np.argmax(sums))
    if np.all(signed >= -rounding):
        return _sensitivity_at(weights, signed, rounding, patterns[best], sums[best])
    pattern, bound = _signed(signed, rounding, patterns, sums)
    return _sensitivity_at(weights, signed, rounding, pattern, bound)


def bandwidth(encoder: Floats) -> int:
    """Least b for which columns b or more steps apart have no row in common."""
    present = (encoder != 0).astype(np.float64)
    apart = np.argwhere(present.T @ present > 0)
    return 1 + int(np.max(np.abs(apart[:, 0] - apart[:, 1]), initial=0))


def _sensitivity_at(
    weights: Floats, signed: Floats, rounding: Floats, pattern: tuple[int, ...], square: float
) -> EncoderSensitivity:
    chosen = np.ix_(pattern, pattern)
    signs = _align(signed[chosen])
    alike = bool(np.all(signed[chosen] >= -rounding[chosen]))
    reached = float(weights[chosen].sum()) if alike else float(signs @ signed[chosen] @ signs)
    attained = square <= reached * (1 + _SAME)
    value = math.sqrt(square * (1 + 4 * UNIT)) * (1 + 4 * UNIT)
    return EncoderSensitivity(value=value, exact=attained, pattern=pattern, signs=tuple(map(int, signs)))


def _align(products: Floats) -> Floats:
    """Find signs ±1 with a large Σ ±± X_ij: all are tried for few columns, else each is flipped in turn.

    Where no product of columns is negative, equal signs are optimal.
    """
    size = len(products)
    if np.all(products >= 0):
        return np.ones(size)
    if 2 ** (size - 1) * size**2 <= _MOST_SIGNED:
        signs = _all_signs(size)
        return as_floats(signs[int(np.argmax(((signs @ products) * signs).sum(axis=1)))])
    _, vectors = np.linalg.eigh(products)
    starts = [np.ones(size), *(np.where(vectors[:, -i] >= 0, 1.0, -1.0) for i in (1, 2, 3))]
    flipped = [_flip(products, signs) for signs in starts]
    return max(flipped, key=lambda signs: float(signs @ products @ signs))


def _flip(products: Floats, signs: Floats) -> Floats:
    """Flip signs one at a time, starting from the given ones, until no single flip helps."""
    for _ in range(10 * len(signs)):
        gains = -signs * (products @ signs) + np.diag(products)  # a quarter of what a flip adds
        best = int(np.argmax(gains))
        if gains[best] <= _SAME * float(np.abs(products).max()):
            break
        signs[best] = -signs[best]
    return signs


def _all_signs(size: int) -> Floats:
    """All signs ±1, up to a common sign, (2^(size − 1), size)."""
    bits = np.arange(2 ** (size - 1))[:, np.newaxis] >> np.arange(size) & 1
    return as_floats(1.0 - 2.0 * bits)


def _signed(
    signed: Floats, rounding: Floats, patterns: list[tuple[int, ...]], sums: list[float]
) -> tuple[tuple[int, ...], float]:
    """Find the pattern with the largest effect of signed contributions, as far as known, and a bound for all patterns.

    Args:
        signed: X.
        rounding: Bound on the error of every X_ij.
        patterns: All patterns.
        sums: Σ|X_ij| of each pattern, rounded up.
    """
    order = sorted(range(len(patterns)), key=lambda i: -sums[i])
    bound, best = 0.0, (-1.0, patterns[order[0]])
    for place, i in enumerate(order):
        if place == _DUALS or sums[i] <= bound:
            bound = max(bound, sums[i])
            break
        chosen = np.ix_(patterns[i], patterns[i])
        signs = _align(signed[chosen])
        best = max(best, (float(signs @ signed[chosen] @ signs), patterns[i]))
        bound = max(bound, min(sums[i], _dual_bound(signed[chosen]) + float(rounding[chosen].sum())))
    for i in order[_DUALS:]:
        if sums[i] <= best[0] or len(patterns[i]) ** 2 * 2 ** len(patterns[i]) > _MOST_SIGNED // len(order):
            break
        chosen = np.ix_(patterns[i], patterns[i])
        signs = _align(signed[chosen])
        best = max(best, (float(signs @ signed[chosen] @ signs), patterns[i]))
    return best[1], bound


def _dual_bound(products: Floats) -> float:
    """Σλᵢ with diag(λ) ⪰ X, rounded up."""
    size = len(products)
    vectors = np.eye(size)
    vectors[:, 0] += 0.5
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    off = products - np.diag(np.diag(products))
    for _ in range(_SWEEPS):
        for i in range(size):
            pull = off[i] @ vectors
            if (length := float(np.linalg.norm(pull))) > 0:
                vectors[i] = pull / length
    dual = np.diag(products) + np.linalg.norm(off @ vectors, axis=1)
    least = float(np.linalg.eigvalsh(np.diag(dual) - products)[0])
    slack = 64 * size * UNIT * float(np.abs(products).sum() + dual.sum())  # of the eigenvalue
    return (math.fsum(dual.tolist()) + size * max(0.0, slack - least)) * (1 + 4 * size * UNIT)


def _climb(signed: Floats, pattern: tuple[int, ...], k: int, separation: int) -> tuple[float, tuple[int, ...]]:
    """Find a large squared effect of one signed vector, and its pattern, by local search.

    Starting from a pattern, one step at a time is added, dropped or exchanged, whichever gives the largest effect.
    """
    n = len(signed)
    steps = list(pattern)
    signs = _align(signed[np.ix_(steps, steps)])
    value = float(signs @ signed[np.ix_(steps, steps)] @ signs)
    for _ in range(_ROUNDS):
        best = (value * (1 + _SAME), steps)
        pull = signed[:, steps] @ signs
        for out in (*range(len(steps)), None):
            if out is None and len(steps) >= k:
                continue
            rest = [step for place, step in enumerate(steps) if place != out]
            left = pull - (0.0 if out is None else signed[:, steps[out]] * signs[out])
            kept = signs if out is None else np.delete(signs, out)
            base = float(kept @ left[rest])
            gains = base + 2 * np.abs(left) + np.diag(signed)
            near = np.zeros(n, dtype=bool)
            for step in rest:
                near[max(0, step - separation + 1) : step + separation] = True
            gains[near] = base
            step = int(np.argmax(gains))
            if gains[step] > best[0]:
                best = (float(gains[step]), rest if near[step] else sorted([*rest, step]))
        if best[1] is steps:
            break
        steps = best[1]
        signs = _align(signed[np.ix_(steps, steps)])
        value = float(signs @ signed[np.ix_(steps, steps)] @ signs)
    return value, tuple(steps)


def _sum(weights: Floats, pattern: tuple[int, ...]) -> float:
    return math.fsum(weights[np.ix_(pattern, pattern)].ravel().tolist())


def _falls(weights: Floats) -> bool:
    """Whether W falls along every diagonal and with the distance from the main diagonal."""
    along = weights[1:, 1:] <= weights[:-1, :-1] * (1 + _TIE)
    away = weights[:-1, 1:] <= weights[1:, 1:] * (1 + _TIE)  # W[i − 1, j] ≤ W[i, j], asked for i ≤ j
    return bool(np.all(along)) and bool(np.all(away[np.triu_indices(len(away))]))


def _patterns(n: int, k: int, separation: int, first: int = 0) -> Iterator[tuple[int, ...]]:
    """Yield all patterns of k steps."""
    if k == 0:
        yield ()
        return
    for i in range(first, n - (k - 1) * separation):
        for rest in _patterns(n, k - 1, separation, i + separation):
            yield (i, *rest)


def _row_sums(weights: Floats, k: int, separation: int) -> Floats:
    """(n,) rᵢ, rounded up: the largest Σ_{j ∈ S} W_ij over the patterns S of at most k steps that contain i."""
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
    """(k + 1, n) the largest Σ W_ij over at most 0, 1, …, k steps j ≤ i − b, for every row i."""
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
    """Pattern of at most k steps with the largest sum of charges, and that sum, rounded up."""
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
