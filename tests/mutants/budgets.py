"""Specimens that ask too often: retries, caches, filters, sparse vectors, shared coins, agents; each with its twin.

What is wrong is not a scale but what is drawn again, used again, counted wrongly or looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mutants.additive import laplace
from mutants.hidden import permute_and_flip
from mutants.selection import exponential_mechanism
from mutants.specimen import Array, Run, Specimen, column, twins
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP

_ONE = PureDP(1)


def best_of_three(scale: float, *, towards_truth: bool) -> Run:
    """Returns the one of three noisy answers nearest to the truth, or to zero."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noisy = given + rng.laplace(0, scale, (runs, 3))
        chosen = np.abs(noisy - (given if towards_truth else 0)).argmin(axis=1)
        best: Array = noisy[np.arange(runs), chosen]
        return best

    return run


def draws_told(scale: float, most: int) -> Run:
    """Returns the first noisy answer that is not negative, of at most so many, and how many it took: the time."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noisy = given + rng.laplace(0, scale, (runs, most))
        first = np.where((noisy >= 0).any(axis=1), (noisy >= 0).argmax(axis=1), most - 1)
        return np.stack([np.maximum(noisy[np.arange(runs), first], 0), first + 1], axis=1)

    return run


def cached(*, by_value: bool) -> Run:
    """Returns two noisy answers; noise is cached by the exact value where `by_value`."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        noise = rng.laplace(0, 1, (runs, 2))
        if by_value and given[0] == given[1]:
            noise = noise[:, [0, 0]]
        return column(given, runs) + noise

    return run


def seeded_by_data(*, salts: int | None) -> Run:
    """Returns a noisy count; noise is drawn with the count and a salt as seed, of so many salts, or afresh."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        if salts is None:
            return given + rng.laplace(0, 1, runs)
        noise = np.random.default_rng(int(given)).laplace(0, 1, salts)
        return given + noise[rng.integers(0, salts, runs)]

    return run


def second_answer(*, fresh: bool) -> Run:
    """Returns two answers at half the budget each; the second, twice as large, has the first's noise, or its own."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noise = rng.laplace(0, 2, (runs, 2))
        return np.stack([given + noise[:, 0], 2 * given + (2 * noise[:, 1] if fresh else noise[:, 0])], axis=1)

    return run


def filtered(*, budget: float, epsilon: float, before: bool) -> Run:
    """Returns noisy answers until a filter says stop, which looks before it adds the next query's ε, or after."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        answers, spent = [], 0.0
        while spent <= budget if before else spent + epsilon <= budget:
            answers.append(given + rng.laplace(0, 1 / epsilon, runs))
            spent += epsilon
        return np.stack(answers, axis=1)

    return run


def bucket_filter(*, by_start: bool) -> Run:
    """Returns answers about three ranges of one bucket; only ranges that hold its start are charged where `by_start`.

    What the filter refuses is −1; the bucket's budget is one answer's.
    """

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        answers, spent = [], 0
        for start in (0.0, 0.01, 0.02):
            charged = start == 0.0 or not by_start
            answers.append(np.full(runs, -1.0) if charged and spent else given + rng.laplace(0, 1, runs))
            spent += charged
        return np.stack(answers, axis=1)

    return run


def above_threshold(epsilon: float, *, redrawn: bool) -> Run:
    """Returns which query is the first above 1: the threshold's noise is drawn once, or for each query."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = column(given, runs)
        limit = 1 + rng.laplace(0, 2 / epsilon, exact.shape if redrawn else (runs, 1))
        above = exact + rng.laplace(0, 4 / epsilon, exact.shape) >= limit
        return np.where(above.any(axis=1), above.argmax(axis=1), exact.shape[1])

    return run


def two_reports(*, shared: bool) -> Run:
    """Returns two randomised bits of a user at ε = ½ each, with one coin for both, or two."""

    def run(given: Sequence[int], runs: int, rng: np.random.Generator) -> Array:
        lies = rng.random((runs, 1 if shared else 2)) >= 1 / (1 + math.exp(-0.5))
        return (column(given, runs) != lies) * 1.0

    return run


def reports(*, shuffled: bool) -> Run:
    """Returns users' bits, randomised at ε = 2, as they arrive or shuffled."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        told = (exact != (rng.random(exact.shape) >= 1 / (1 + math.exp(-2)))) * 1.0
        return rng.permuted(told, axis=1) if shuffled else told

    return run


def daily_reports(*, memoised: bool) -> Run:
    """Returns five days' randomised bits of one user: one draw for all days, or a new one every day."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        lies = rng.random((runs, 1 if memoised else 5)) >= 1 / (1 + math.exp(-1))
        return np.repeat((given != lies) * 1.0, 5 if memoised else 1, axis=1)

    return run


def actions(*, stale: bool) -> Run:
    """Returns ten actions of a policy on two arms' noisy rewards, one in ten explores; the sixth is by exact ones."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = column(given, runs)
        best = np.repeat((exact + rng.laplace(0, 1, exact.shape)).argmax(axis=1)[:, None], 10, axis=1)
        if stale:
            best[:, 5] = exact.argmax(axis=1)
        return np.where(rng.random(best.shape) < 0.1, rng.integers(0, 2, best.shape), best)

    return run


def optimistic(*, noisy_count: bool) -> Run:
    """Returns the index of an arm, its noisy reward over 10 and a bonus by its visits, noisy or exact."""

    def run(given: tuple[float, float], runs: int, rng: np.random.Generator) -> Array:
        reward, visits = given
        scale = 2 if noisy_count else 1
        seen = np.maximum(visits + (rng.laplace(0, 2, runs) if noisy_count else 0), 1)
        index: Array = (reward + rng.laplace(0, scale, runs)) / 10 + 1 / np.sqrt(seen)
        return index

    return run


def exploring(*, noisy_count: bool) -> Run:
    """Returns ten actions of which a share 1/√n explores, n the exact number of visits, or a noisy one."""

    def run(given: float, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        seen = np.maximum(given + (rng.laplace(0, 1, runs) if noisy_count else np.zeros(runs)), 1)
        explores = rng.random((runs, 10)) < 1 / np.sqrt(seen)[:, None]
        return np.where(explores, rng.integers(0, 2, explores.shape), 1)

    return run


def prefix_sums_of_tree(*, forgotten: int | None) -> Run:
    """Returns the noisy sums of the first 1, …, 8 users by a binary tree; one user's leaf has no noise."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        exact, sums = column(given, runs), np.zeros((runs, 8))
        nodes: dict[tuple[int, int], Array] = {}
        for last in range(1, 9):
            start = 0
            while start < last:
                size = 1 << ((last - start).bit_length() - 1)
                if (start, size) not in nodes:
                    quiet = size == 1 and start == forgotten
                    noise = np.zeros(runs) if quiet else rng.laplace(0, 4, runs)
                    nodes[start, size] = exact[:, start : start + size].sum(axis=1) + noise
                sums[:, last - 1] += nodes[start, size]
                start += size
        return sums

    return run


_ABOVE = 0.5 * (np.exp(-1) - 0.25 * np.exp(-2)) / 0.75  # P(L₁ − L₂ ≥ 1), Laplace of scales 1 and ½
_LOW_AND_HIGH = ([0.0] * 12, [1.0] * 12)
_THREE = (np.zeros(8), np.where(np.arange(8) == 2, 1.0, 0.0))
_TWENTY = (np.zeros(20), np.where(np.arange(20) == 7, 1.0, 0.0))

BUDGETS: tuple[Specimen, ...] = (
    *twins(
        "budget split over one query too few", _ONE, (np.zeros(4), np.ones(4)),
        broken=laplace(3), mended=laplace(4), losses=(4 / 3, 1),
        why="Laplace noise, ‖Δ‖₁/scale", source="IBM/differential-privacy-library#104, second point",
    ),
    *twins(
        "best of three answers", _ONE,
        broken=best_of_three(1, towards_truth=True), mended=best_of_three(3, towards_truth=False), losses=(3, 1),
        kinds=("exact", "at most"), why="the nearest of three has density ∝ e^(−3|z|); mended, three answers at ε = ⅓",
    ),
    *twins(
        "number of draws told", _ONE,
        broken=draws_told(1, 200), mended=draws_told(3, 3), losses=(200, 1),
        why="a draw fails with probability ½ or 1/(2e), up to 200 times; mended, three answers at ε = ⅓",
    ),
    *twins(
        "noise cached by value", _ONE, ((3, 3), (3, 4)),
        broken=cached(by_value=True), mended=cached(by_value=False), losses=(math.inf, 1),
        why="equal answers show equal values", source="world-federation-of-advertisers/cross-media-measurement#4387",
    ),
    *twins(
        "noise seeded by the data", _ONE, (4, 5),
        broken=seeded_by_data(salts=16), mended=seeded_by_data(salts=None), losses=(math.inf, 1),
        why="sixteen outputs on each", source="world-federation-of-advertisers/cross-media-measurement#4387",
    ),
    *twins(
        "noise of the first answer in the second", _ONE,
        broken=second_answer(fresh=False), mended=second_answer(fresh=True), losses=(math.inf, 1),
        why="their difference is exact", source="google/jax#3646",
    ),
    *twins(
        "filter looks before it adds", _ONE,
        broken=filtered(budget=1, epsilon=0.5, before=True), mended=filtered(budget=1, epsilon=0.5, before=False),
        losses=(1.5, 1), why="three answers at ε = ½, or two", source="opendp/smartnoise-sdk#621",
    ),
    *twins(
        "filter charges by a bucket's start", _ONE,
        broken=bucket_filter(by_start=True), mended=bucket_filter(by_start=False), losses=(3, 1),
        why="three answers at ε = 1, or one", source="world-federation-of-advertisers/cross-media-measurement#2209",
    ),
    *twins(
        "sparse vector, threshold redrawn for each query", PureDP(4), _LOW_AND_HIGH,
        broken=above_threshold(4, redrawn=True), mended=above_threshold(4, redrawn=False),
        losses=(12 * math.log((1 - _ABOVE) / 0.5), 4), kinds=("exact", "at most"),
        why="twelve times ln P(below | 0)/P(below | 1); mended, Lyu, Su & Li 2017, Theorem 2",
    ),
    *twins(
        "permute and flip charged as exponential", ZCDP("1/2"), ((0, 0), (1, -1)),
        broken=permute_and_flip(2), mended=exponential_mechanism(2, 1), losses=(0.72753, 0.44939),
        why="Rényi divergences of (½, ½) and (1 − 1/(2e²), 1/(2e²)), or (e², 1)/(1 + e²); largest D_α/α",
        source="opendp/opendp#2911",
    ),
    *twins(
        "two reports with one coin", _ONE, ((0, 0), (0, 1)), ((0, 0), (1, 1)),
        broken=two_reports(shared=True), mended=two_reports(shared=False), losses=(math.inf, 1),
        why="whether the bits differ is told; mended, twice ½",
    ),
    *twins(
        "shuffler keeps the order", ApproxDP(1, "0.05"), _TWENTY,
        broken=reports(shuffled=False), mended=reports(shuffled=True),
        losses=(math.log((1 / (1 + math.exp(-2)) - 0.05) * (1 + math.exp(2))), 1), kinds=("exact", "at most"),
        why="one user's bit; mended, δ(1) = .0499 of the binomials of twenty bits",
        source="arx-deidentifier/arx#218",
    ),
    *twins(
        "daily reports drawn anew", _ONE, (0, 1),
        broken=daily_reports(memoised=False), mended=daily_reports(memoised=True), losses=(5, 1),
        why="five reports at ε = 1 (Erlingsson, Pihur & Korolova 2014: memoise)",
    ),
    *twins(
        "one action by exact rewards", _ONE, ((3, 3.5), (4, 3.5)),
        broken=actions(stale=True), mended=actions(stale=False), losses=(math.log(19), 1),
        kinds=("at least", "at most"), why="the sixth action is the best one with probability .95",
    ),
    *twins(
        "bonus by exact visits", _ONE, ((0, 1), (0, 2)),
        broken=optimistic(noisy_count=False), mended=optimistic(noisy_count=True),
        losses=(10 * (1 - math.sqrt(0.5)), 1), kinds=("exact", "at most"),
        why="Laplace noise of scale 1/10, the bonus falls from 1 to 1/√2; mended, twice ε = ½",
    ),
    *twins(
        "exploration by exact visits", _ONE, (1, 2),
        broken=exploring(noisy_count=False), mended=exploring(noisy_count=True), losses=(5 * math.log(2), 1),
        kinds=("exact", "at most"), why="ten actions 0, with probability ½ or √½/2 each; mended, one noisy count",
    ),
    *twins(
        "prefix sums with a leaf forgotten", _ONE, _THREE,
        broken=prefix_sums_of_tree(forgotten=2), mended=prefix_sums_of_tree(forgotten=None), losses=(math.inf, 0.75),
        why="the third sum less the second is exact; mended, three of the nodes published hold the third user",
    ),
)  # fmt: skip
