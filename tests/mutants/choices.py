"""Specimens that choose, test or tune: sparse vector with gaps and margins, noisy max with gaps, smooth sensitivity.

Further cases of the literature; `mutants.laws` has their exact laws on the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mutants.selection import sparse_vector
from mutants.specimen import Array, Run, Specimen, column
from privcheck.terms.guarantees import ApproxDP, PureDP

_ONE = PureDP(1)


def gap_of_first_above(threshold: float, noise: float, queries: float) -> Run:
    """Returns which query is the first above the threshold, and by how much both with their noise; −1 for none."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        gap = exact + rng.laplace(0, queries, exact.shape) - threshold - rng.laplace(0, noise, (runs, 1))
        first = np.where((gap >= 0).any(axis=1), (gap >= 0).argmax(axis=1), exact.shape[1])
        found = np.append(gap, np.full((runs, 1), -1.0), axis=1)[np.arange(runs), first]
        return np.stack([first, found], axis=1)

    return run


def all_gaps(threshold: float, noise: float, queries: float) -> Run:
    """Returns by how much each query is above the threshold or below, up to the first above; 0 afterwards."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        gap = exact + rng.laplace(0, queries, exact.shape) - threshold - rng.laplace(0, noise, (runs, 1))
        earlier = np.cumsum(gap >= 0, axis=1) - (gap >= 0)
        return np.where(earlier == 0, gap, 0.0)

    return run


def free_above_margin(threshold: float, noise: float, queries: float, margin: float) -> Run:
    """Returns 2 for queries far above the threshold, 0 for those below; the first 1, just above, is the last answer."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = column(given, runs)
        gap = exact + rng.laplace(0, queries, exact.shape) - threshold - rng.laplace(0, noise, (runs, 1))
        answer = np.where(gap >= margin, 2, (gap >= 0) * 1)
        near = answer == 1
        return np.where(np.cumsum(near, axis=1) - near == 0, answer, -1)

    return run


def adaptive_sparse_vector(threshold: float, epsilon: float, most: int, margin: float) -> Run:
    """Returns 2 for queries far above by coarse noise, at half price, 1 for those above by finer noise, 0 for others.

    The adaptive algorithm of Ding et al. 2019 without its gaps: half of ε is for the threshold, the rest pays for
    `most` answers.
    """

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = column(given, runs)
        price = epsilon / 2 / most
        limit = threshold + rng.laplace(0, 2 / epsilon, runs)
        left = np.full(runs, 2 * most)  # in halves of a price
        found = np.full(exact.shape, -1)
        for i in range(exact.shape[1]):
            far = exact[:, i] + rng.laplace(0, 4 / price, runs) - limit >= margin
            near = exact[:, i] + rng.laplace(0, 2 / price, runs) - limit >= 0
            going = left >= 2
            found[:, i] = np.where(going, np.where(far, 2, near * 1), -1)
            left -= np.where(going, np.where(far, 1, near * 2), 0)
        return found

    return run


def gap_of_max(scale: float) -> Run:
    """Returns the index of the largest noisy answer, and by how much it is above the second."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> Array:
        noisy = column(given, runs) + rng.laplace(0, scale, (runs, len(given)))
        ranked = np.sort(noisy, axis=1)
        return np.stack([noisy.argmax(axis=1), ranked[:, -1] - ranked[:, -2]], axis=1)

    return run


def max_of_exponentials(scale: float) -> Run:
    """Returns the index of the largest answer with exponential noise."""
    return lambda given, runs, rng: (column(given, runs) + rng.exponential(scale, (runs, len(given)))).argmax(axis=1)


def flips(rate: float) -> Run:
    """Returns an index: in random order, the first whose coin of probability e^(rate·(answer − largest)) is heads."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = np.asarray(given, dtype=np.float64)
        order = np.argsort(rng.random((runs, exact.size)), axis=1)
        heads = rng.random(order.shape) < np.exp(rate * (exact - exact.max()))[order]
        chosen: NDArray[np.int64] = order[np.arange(runs), heads.argmax(axis=1)]
        return chosen

    return run


def _one_of(weights: Array, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(runs), side="right")


def normalised_utilities(epsilon: float, parts: float) -> Run:
    """Returns an index by the exponential mechanism on answers scaled to [0, 1] by their own range."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = np.asarray(given, dtype=np.float64)
        return _one_of(np.exp(epsilon * parts / 2 * (exact - exact.min()) / np.ptp(exact)), runs, rng)

    return run


def powers_of_two(rate: float) -> Run:
    """Returns an index by the exponential mechanism of Ilvento 2020: weights 2^(−rate·score), for rates of few bits."""
    return lambda given, runs, rng: _one_of(np.exp2(-rate * np.asarray(given, dtype=np.float64)), runs, rng)


def propose_test_release(epsilon: float, threshold: float, *, noisy: bool = True) -> Run:
    """Returns a noisy number where its dataset is further from a sensitive one than a threshold, None else.

    Each of both steps has noise at half of ε. A dataset is here its distance and the number, of sensitivity 1 unless
    the distance is 0.
    """

    def run(given: tuple[float, float], runs: int, rng: np.random.Generator) -> list[float | None]:
        distance, value = given
        noise = rng.laplace(0, 2 / epsilon, (runs, 2))
        told = distance + noise[:, 0] * noisy > threshold
        return [value + z if tell else None for tell, z in zip(told, noise[:, 1].tolist(), strict=True)]

    return run


def smooth(factor: float) -> Run:
    """Returns a number with Cauchy noise of `factor` times its smooth sensitivity; a dataset is here both."""

    def run(given: tuple[float, float], runs: int, rng: np.random.Generator) -> Array:
        value, sensitivity = given
        noisy: Array = value + factor * sensitivity * rng.standard_cauchy(runs)
        return noisy

    return run


def best_candidate(scale: float, number: int | Literal["geometric"]) -> Run:
    """Returns the largest of so many noisy scores, or of a geometric number of mean 2."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        counts = rng.geometric(0.5, runs) if number == "geometric" else np.full(runs, number)
        noisy = given + rng.laplace(0, scale, (runs, counts.max()))
        best: Array = np.where(np.arange(noisy.shape[1]) < counts[:, None], noisy, -np.inf).max(axis=1)
        return best

    return run


def key_union(keys: int, threshold: float) -> Run:
    """Returns noisy counts of a user's own keys, where they are above a threshold, and 0 for others."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        noisy = 1 + rng.laplace(0, keys, (runs, keys))
        return np.where((noisy > threshold) & (given > 0), noisy, 0.0)

    return run


_DOWN_UP = ((1,) * 8 + (0,), (0,) * 8 + (1,))
_TURNS = (tuple([0.5, -0.5] * 10), tuple([-0.5, 0.5] * 10))
_CROSSED = (tuple([1, 0] * 4), tuple([0, 1] * 4))
_THREE_THREE = ((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1))
_FOUR_FOUR = ((1, 1, 1, 1, 0, 0, 0, 0), (0, 0, 0, 0, 1, 1, 1, 1))
_NINE_ONE = ((1,) * 9 + (0,), (0,) * 9 + (1,))
_AGAINST_ALL = ((1, 0, 0, 0), (0, 1, 1, 1))
_SCORES = ((0,) + (1,) * 19, (1,) + (0,) * 19)
_NO_DISTANCE = ((0.0, 0.0), (0.0, 10.0))  # two sensitive datasets
_CLOSER = ((6.0, 0.0), (5.0, 1.0))

CHOICES: tuple[Specimen, ...] = (
    Specimen(
        name="sparse vector with a gap", run=gap_of_first_above(1.5, 1, 2), claim=PureDP(2), pairs=(_DOWN_UP,),
        broken=False, loss=2, loss_is="at most", why="the gap costs nothing", source="Ding, Wang, Zhang & Kifer 2019",
    ),
    Specimen(
        name="sparse vector with a gap, noise for monotone queries", run=gap_of_first_above(1.5, 1, 1),
        claim=PureDP(2), pairs=(_DOWN_UP,), broken=True, loss=2.45, loss_is="at least",
        why="scale 1/ε₂ is for queries that all move one way; here one goes up where eight go down",
        source="Lyu, Su & Li 2017 (monotonic queries)",
    ),
    Specimen(
        name="sparse vector with gaps below", run=all_gaps(6, 2, 4), claim=_ONE, pairs=(_TURNS,), broken=True,
        loss=2.469, loss_is="at least", why="every gap is a Laplace answer, of which one is paid for",
        source="Lyu, Su & Li 2017 (positive answers alone are charged)",
    ),
    Specimen(
        name="sparse vector, far answers free", run=free_above_margin(0.75, 0.5, 1, 0.25), claim=PureDP(4),
        pairs=(_CROSSED,), broken=True, loss=6.604, why="answers far above the threshold are not counted",
        source="Ding, Wang, Zhang & Kifer 2019 (adaptive, without its half price)",
    ),
    Specimen(
        name="adaptive sparse vector", run=adaptive_sparse_vector(0.5, 4, 2, 3), claim=PureDP(4),
        pairs=(_THREE_THREE,), broken=False, loss=2.2705, why="far answers at half price and at twice the noise",
        source="Ding, Wang, Zhang & Kifer 2019",
    ),
    Specimen(
        name="sparse vector, three answers, noise for one",
        run=sparse_vector(threshold=0.5, noise=1, queries=2, most=3), claim=PureDP(2), pairs=(_FOUR_FOUR,),
        broken=True, loss=2.8236, why="noise of 2Δ/ε₂ where three answers need 6Δ/ε₂",
        source="Lyu, Su & Li 2017",
    ),
    Specimen(
        name="sparse vector with the value compared",
        run=sparse_vector(threshold=0.5, noise=2, queries=4, most=1, show="value"), claim=_ONE, pairs=(_NINE_ONE,),
        broken=True, loss=2.266, loss_is="at least", why="a low value says that all before it were lower still",
        source="Lyu, Su & Li 2017, Figure 1, Algorithm 3",
    ),
    Specimen(
        name="noisy max with a gap", run=gap_of_max(2), claim=_ONE, pairs=(_AGAINST_ALL,), broken=False, loss=1,
        why="the gap costs nothing", source="Ding, Wang, Zhang & Kifer 2019",
    ),
    Specimen(
        name="noisy max with a gap, noise for monotone answers", run=gap_of_max(1), claim=_ONE,
        pairs=(_AGAINST_ALL,), broken=True, loss=2, why="scale 1/ε is for answers that all move one way",
        source="Ding, Wang, Zhang & Kifer 2019",
    ),
    Specimen(
        name="noisy max of monotone counts", run=max_of_exponentials(1), claim=_ONE,
        pairs=(((0, 0, 0, 0), (1, 0, 0, 0)),), broken=False, loss=0.82605,
        why="exponential noise of scale 1/ε for counts that all move one way",
        source="Ding et al. 2021",
    ),
    Specimen(
        name="permute and flip without the 2", run=flips(1), claim=_ONE, pairs=(_AGAINST_ALL,), broken=True, loss=1.826,
        why="coins of e^(ε·score) where half of it is due", source="McKenna & Sheldon 2020",
    ),
    Specimen(
        name="exponential mechanism on normalised answers", run=normalised_utilities(1, 10), claim=_ONE,
        pairs=(((1, 0, 0), (1, 1, 0)),), broken=True, loss=4.3169,
        why="one of ten records moves a score by 1, not by 1/10, where the range is 1",
        source="McSherry & Talwar 2007 (sensitivity of the score as used)",
    ),
    Specimen(
        name="base-two exponential mechanism, rate rounded down", run=powers_of_two(0.5), claim=_ONE, pairs=(_SCORES,),
        broken=False, loss=0.6579, why="ε = 2·ln 2·rate, .69", source="Ilvento 2020",
    ),
    Specimen(
        name="base-two exponential mechanism, rate rounded up", run=powers_of_two(1), claim=_ONE, pairs=(_SCORES,),
        broken=True, loss=math.log(39 / 10.5), why="ε = 2·ln 2·rate, 1.39", source="Ilvento 2020",
    ),
    Specimen(
        name="propose, test, release", run=propose_test_release(1, 2 * math.log(20)), claim=ApproxDP(1, "0.05"),
        pairs=(_CLOSER, _NO_DISTANCE), broken=False, loss=0.78981,
        why="twice ½; a sensitive dataset passes with probability δ/2", source="Dwork & Lei 2009",
    ),
    Specimen(
        name="propose, test, release without noise in the test",
        run=propose_test_release(1, 2 * math.log(20), noisy=False), claim=ApproxDP(1, "0.05"), pairs=(_CLOSER,),
        broken=True, loss=math.inf, why="whether it is released tells the distance", source="Dwork & Lei 2009",
    ),
    Specimen(
        name="propose, test, release with the decimal logarithm", run=propose_test_release(1, 2 * math.log10(100)),
        claim=ApproxDP(1, "0.01"), pairs=(_NO_DISTANCE,), broken=True, loss=4.6789,
        why="a sensitive dataset passes with probability e⁻²/2", source="Dwork & Lei 2009",
    ),
    Specimen(
        name="smooth sensitivity", run=smooth(6), claim=_ONE, pairs=(((0.0, 1.0), (1.0, math.exp(1 / 6))),),
        broken=False, loss=0.22614, why="β = ε/6, Cauchy noise of 6·S/ε",
        source="Nissim, Raskhodnikova & Smith 2007",
    ),
    Specimen(
        name="smooth sensitivity, shift and dilation at ε each", run=smooth(1), claim=_ONE,
        pairs=(((0.0, 1.0), (1.0, math.e)),), broken=True, loss=1.1426,
        why="β = ε and noise of S/ε: each alone costs up to ε",
        source="Nissim, Raskhodnikova & Smith 2007",
    ),
    Specimen(
        name="best of five candidates, paid once", run=best_candidate(2, 5), claim=_ONE, broken=True, loss=2.5,
        why="five scores at ε = ½; below both every factor is e^½", source="Liu & Talwar 2019; Papernot & Steinke 2022",
    ),
    Specimen(
        name="best of geometrically many candidates", run=best_candidate(3, "geometric"), claim=_ONE, broken=False,
        loss=0.51017, why="three times the ⅓ of one score", source="Liu & Talwar 2019; Papernot & Steinke 2022",
    ),
    Specimen(
        name="union of keys, δ of one", run=key_union(8, 1 + 8 * math.log(50)), claim=ApproxDP(1, "0.01"),
        pairs=((1, 0),), broken=True, loss=math.inf, why="eight keys, each shown with probability .01",
        source="Gopi et al. 2020; Korolova et al. 2009",
    ),
)  # fmt: skip
