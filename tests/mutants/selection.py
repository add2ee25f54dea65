"""Specimens that choose: sparse vector and noisy max in their published variants, exponential mechanisms.

Sparse-vector variants 1 to 6 as numbered by Lyu, Su & Li (2017), "Understanding the sparse vector technique", Figure 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mutants.specimen import Array, Run, Specimen, column
from privcheck.terms.guarantees import PureDP

_STOPPED = -1.0  # published after the last answer
_ONE = PureDP(1)


def sparse_vector(
    *,
    threshold: float,
    noise: float,
    queries: float,
    most: int,
    redrawn: float = 0.0,
    show: Literal["bit", "value", "fresh value"] = "bit",
    value_noise: float = 1.0,
) -> Run:
    """Returns the sparse-vector technique over a dataset of query answers.

    Args:
        threshold: T.
        noise: Laplace scale on the threshold.
        queries: Laplace scale on the queries; 0 for none.
        most: Answers above the threshold after which it stops.
        redrawn: Laplace scale of a threshold redrawn after each such answer; 0 for never.
        show: What is published above the threshold: a bit, the noisy answer compared, or one with fresh noise.
        value_noise: Laplace scale of fresh noise.
    """

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        noisy = exact + (rng.laplace(0, queries, exact.shape) if queries else 0)
        limit = threshold + rng.laplace(0, noise, runs)
        found = np.zeros(exact.shape)
        count = np.zeros(runs, dtype=np.int64)
        for i in range(exact.shape[1]):
            going = count < most
            above = going & (noisy[:, i] >= limit)
            answer: Any = 1.0
            if show == "value":
                answer = noisy[:, i]
            elif show == "fresh value":
                answer = exact[:, i] + rng.laplace(0, value_noise, runs)
            found[:, i] = np.where(going, np.where(above, answer, 0.0), _STOPPED)
            count += above
            if redrawn:
                limit = np.where(above, threshold + rng.laplace(0, redrawn, runs), limit)
        return found

    return run


def noisy_max(
    draw: Literal["laplace", "exponential", "gaussian", "gumbel"], scale: float, *, value: bool = False
) -> Run:
    """Returns the index, or the noisy value, of the largest noisy answer."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        if draw == "exponential":
            noisy = exact + rng.exponential(scale, exact.shape)
        else:
            noisy = exact + getattr(rng, "normal" if draw == "gaussian" else draw)(0, scale, exact.shape)
        found: Array = noisy.max(axis=1) if value else noisy.argmax(axis=1).astype(np.float64)
        return found

    return run


def both_of_max(scale: float) -> Run:
    """Returns the index and the noisy value of the largest noisy answer."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        noisy = column(given, runs) + rng.laplace(0, scale, (runs, len(given)))
        return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1)

    return run


def exponential_mechanism(epsilon: float, sensitivity: float, *, halved: bool = True) -> Run:
    """Returns an index with probability ∝ exp(ε·answer/(2Δ)), without the 2 where it is not halved."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        weight = np.exp(epsilon * np.asarray(given, dtype=np.float64) / ((2 if halved else 1) * sensitivity))
        chosen: Array = rng.choice(len(given), size=runs, p=weight / weight.sum()).astype(np.float64)
        return chosen

    return run


def above_threshold_count(scale: float, threshold: float, *, forgets: bool) -> Run:
    """Returns how many queries it took and the exact number of answers above the threshold, or a noisy one."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        limit = threshold + rng.laplace(0, scale, (runs, 1))
        above = exact + rng.laplace(0, 2 * scale, exact.shape) >= limit
        first = np.where(above.any(axis=1), above.argmax(axis=1), exact.shape[1])
        number = (exact >= threshold).sum(axis=1) + (0 if forgets else rng.laplace(0, scale * exact.shape[1], runs))
        return np.stack([first, number], axis=1)

    return run


def _specimen(name: str, run: Run, claim: PureDP, *pairs: Any, broken: bool, loss: float | None = None) -> Specimen:
    made = tuple((list(map(float, one)), list(map(float, other))) for one, other in pairs)
    return Specimen(name=name, run=run, claim=claim, pairs=made, broken=broken, loss=loss)


_ALL = ((1, 1, 1, 1, 1), (2, 2, 2, 2, 2))
_HALF = ((1,) * 5 + (0,) * 5, (0,) * 5 + (1,) * 5)
_LONG = ((0,) * 10, (1,) * 10)
_X = ((1, 0, 1, 0, 1, 0), (0, 1, 0, 1, 0, 1))
_ONE_UP = ((0, 0, 0, 0, 0), (1, 0, 0, 0, 0))
_SPLIT = ((1, 1, 1, 0, 0), (0, 0, 0, 1, 1))
_ZEROS = ((0,) * 8, (1,) + (0,) * 7)

SELECTION = (
    _specimen("sparse vector 1", sparse_vector(threshold=0, noise=2, queries=4, most=1), _ONE, _HALF, broken=False),
    _specimen(
        "sparse vector 1, 3 answers", sparse_vector(threshold=0, noise=2, queries=12, most=3), _ONE, _HALF, broken=False
    ),
    _specimen(
        "sparse vector 2",
        sparse_vector(threshold=0.5, noise=2, queries=4, most=1, redrawn=2),
        _ONE,
        _HALF,
        broken=False,
    ),
    _specimen(
        "sparse vector 3",
        sparse_vector(threshold=0.5, noise=2, queries=2, most=1, show="value"),
        _ONE,
        _HALF,
        _ONE_UP,
        broken=True,
        loss=math.inf,
    ),
    _specimen(
        "sparse vector 4", sparse_vector(threshold=1, noise=4, queries=4 / 3, most=5), _ONE, _LONG, _HALF, broken=True
    ),
    _specimen(
        "sparse vector 5",
        sparse_vector(threshold=0.5, noise=2, queries=0, most=99),
        _ONE,
        _HALF,
        broken=True,
        loss=math.inf,
    ),
    _specimen("sparse vector 6", sparse_vector(threshold=0.5, noise=2, queries=2, most=99), _ONE, _HALF, broken=True),
    _specimen(
        "sparse vector, no noise on the threshold",
        sparse_vector(threshold=0.5, noise=1e-9, queries=4, most=99),
        _ONE,
        _LONG,
        broken=True,
        loss=None,
    ),
    _specimen(
        "sparse vector, fresh values",
        sparse_vector(threshold=0.5, noise=4, queries=8, most=1, show="fresh value", value_noise=2),
        _ONE,
        _HALF,
        broken=False,
    ),
    _specimen(
        "sparse vector, fresh values not paid",
        sparse_vector(threshold=0.5, noise=2, queries=4, most=1, show="fresh value", value_noise=0.5),
        _ONE,
        _ALL,
        broken=True,
    ),
    _specimen(
        "sparse vector, fresh values without noise",
        sparse_vector(threshold=0.5, noise=2, queries=4, most=1, show="fresh value", value_noise=1e-9),
        _ONE,
        _ALL,
        broken=True,
        loss=math.inf,
    ),
    _specimen("noisy max", noisy_max("laplace", 2), _ONE, _SPLIT, _ZEROS, broken=False),
    _specimen("noisy max, exponential noise", noisy_max("exponential", 2), _ONE, _SPLIT, broken=False),
    _specimen("noisy max, gumbel noise", noisy_max("gumbel", 2), _ONE, _SPLIT, broken=False, loss=None),
    _specimen("noisy max at half scale", noisy_max("laplace", 0.8), _ONE, _SPLIT, broken=True),
    _specimen("noisy max, too little gumbel noise", noisy_max("gumbel", 1), _ONE, _SPLIT, broken=True),
    _specimen("noisy max, little gaussian noise", noisy_max("gaussian", 1), _ONE, _SPLIT, broken=True),
    _specimen("noisy max with the value", noisy_max("laplace", 1, value=True), _ONE, _ALL, _ZEROS, broken=True, loss=5),
    _specimen(
        "noisy max with the value, exponential noise",
        noisy_max("exponential", 2, value=True),
        _ONE,
        _ALL,
        _SPLIT,
        broken=True,
        loss=math.inf,
    ),
    _specimen("noisy max with index and value", both_of_max(1), _ONE, _ALL, broken=True),
    _specimen("exponential mechanism", exponential_mechanism(1, 1), _ONE, _SPLIT, broken=False),
    _specimen(
        "exponential mechanism without the 2", exponential_mechanism(1, 1, halved=False), _ONE, _SPLIT, broken=True
    ),
    _specimen("exponential mechanism, sensitivity halved", exponential_mechanism(1, 0.5), _ONE, _SPLIT, broken=True),
    _specimen(
        "above threshold with a count",
        above_threshold_count(2, 0.5, forgets=True),
        _ONE,
        _ONE_UP,
        broken=True,
        loss=math.inf,
    ),
    _specimen(
        "above threshold with a noisy count", above_threshold_count(4, 0.5, forgets=False), _ONE, _ONE_UP, broken=False
    ),
)
