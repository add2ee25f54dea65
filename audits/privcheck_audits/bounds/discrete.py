"""Discrete outputs: canonical keys, exact likelihood ratios, and events that are impossible under the neighbour.

Atoms are never binned: two outputs either have the same key or not. If the laws of both neighbours can be enumerated,
the likelihood ratio is exact, and an event of probability above δ that is impossible under the neighbour
refutes every ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck_audits.bounds.tails import OUT, error_rate_at_most

Key = tuple[int, ...]
Law = Mapping[Key, Fraction]


def count_vectors(messages: NDArray[np.int64], alphabet: int) -> NDArray[np.int64]:
    """Count of each message, (runs, alphabet): the canonical key of a shuffler's output.

    Args:
        messages: (runs, users) with values 0 … alphabet − 1, in any order.
        alphabet: Number of different messages.

    Raises:
        ParameterError: A message is outside the alphabet.
    """
    if messages.size and not (int(messages.min()) >= 0 and int(messages.max()) < alphabet):
        raise ParameterError(
            f"expected messages 0 … {alphabet - 1}, got {int(messages.min())} … {int(messages.max())}", name="messages"
        )
    runs = messages.shape[0]
    flat = messages + alphabet * np.arange(runs)[:, None]
    return np.bincount(flat.ravel(), minlength=runs * alphabet).reshape(runs, alphabet)


def log_ratios(first: Law, second: Law) -> dict[Key, float]:
    """Log-ratio ln p(key | D) − ln p(key | D′) of every possible key; ±∞ if one of the two is 0.

    Raises:
        ParameterError: A law does not add up to 1, or has a negative probability.
    """
    for law in (first, second):
        if sum(law.values()) != 1 or min(law.values()) < 0:
            raise ParameterError(f"expected probabilities that add up to 1 exactly, got {sum(law.values())}")
    ratios = {}
    for key in first.keys() | second.keys():
        one, other = first.get(key, Fraction(0)), second.get(key, Fraction(0))
        if one or other:
            ratio = one / other if other else Fraction(0)
            ratios[key] = math.inf if not other else -math.inf if not one else _log(ratio)
    return ratios


def exact_epsilon(first: Law, second: Law, *, delta: float) -> float:
    """Least ε at which the pair satisfies (ε, δ)-DP in both directions, rounded down; ∞ if there is none.

    Args:
        first: The law on D.
        second: The law on D′.
        delta: In [0, 1).
    """
    ratios = log_ratios(first, second)
    return max(_one_way(first, second, ratios, 1, delta), _one_way(second, first, ratios, -1, delta))


def key_score(ratios: Mapping[Key, float]) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """Score of keys, (runs, length) to (runs,); an infinite log-ratio counts one nat more than the largest finite one.

    A key outside both laws scores 0: the mechanism is then not the enumerated one, and such runs get no priority among
    the guesses.
    """
    finite = [abs(ratio) for ratio in ratios.values() if math.isfinite(ratio)]
    top = max(finite, default=0.0) + 1.0
    table = {key: min(top, max(-top, ratio)) for key, ratio in ratios.items()}

    def score(keys: NDArray[np.int64]) -> NDArray[np.float64]:
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        known = np.array([table.get(tuple(int(part) for part in key), 0.0) for key in unique])
        scores: NDArray[np.float64] = known[inverse.ravel()]
        return scores

    return score


def impossible_epsilon(hits: int, runs: int, *, alpha: float, delta: float) -> float:
    """∞ if an event that is impossible under the neighbour has probability above δ, else 0.

    Lemma impossible-event: An event of probability above δ that is impossible under the neighbour refutes every ε.
    Proof: P(E) ≤ e^ε·0 + δ holds for no ε once P(E) > δ. The event must be impossible by the known law, not merely
    unseen.

    Args:
        hits: Number of occurrences.
        runs: Number of runs under the neighbour where the event is possible.
        alpha: One minus the confidence.
        delta: In [0, 1).

    Raises:
        ParameterError: The counts contradict each other, or α is not in (0, 1).

    >>> impossible_epsilon(3, 1_000, alpha=0.01, delta=0.0)
    inf
    """
    least = 1 - error_rate_at_most(runs - hits, runs, alpha=alpha)
    return math.inf if hits and (delta == 0 or least - 1e-15 > delta * OUT) else 0.0


def _log(ratio: Fraction) -> float:
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _one_way(one: Law, other: Law, ratios: Mapping[Key, float], sign: int, delta: float) -> float:
    """Least ε with Σ (p − e^ε·q)₊ ≤ δ: the sum is piecewise linear in e^ε, with corners at the ratios."""
    ordered = sorted(((sign * ratio, key) for key, ratio in ratios.items()), reverse=True)
    budget = Fraction(delta)
    p = q = Fraction(0)
    for ratio, key in ordered:
        if q and p - _power(ratio) * q > budget:  # already at this corner the keys above cost more than δ
            break
        if ratio <= 0:
            return 0.0 if not q or p - q <= budget else _between(p, q, budget)
        p += one.get(key, Fraction(0))
        q += other.get(key, Fraction(0))
        if not q and p > budget:
            return math.inf
    return _between(p, q, budget)


def _power(ratio: float) -> Fraction:
    return Fraction(math.exp(ratio)) if ratio < 700 else Fraction(10) ** 304


def _between(p: Fraction, q: Fraction, budget: Fraction) -> float:
    if not q or p - budget <= q:
        return 0.0
    return max(0.0, _log((p - budget) / q) / OUT)
