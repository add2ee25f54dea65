"""Specimens that count: histograms, sums and means of records, randomised response, trees, sampling, shuffling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mutants.specimen import Array, Run, Specimen, column
from privcheck.runtime.auditors import MechanismClaim
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP

_ONE = PureDP(1)
Records = NDArray[np.float64]


def response(truth: float) -> Run:
    """Returns each bit with probability `truth`, the other one else."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        bits = column(given, runs)
        return np.where(rng.random(bits.shape) < truth, bits, 1 - bits)

    return run


def choice(truth: float, values: int) -> Run:
    """Returns the value with probability `truth`, any other with equal parts of the rest."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        other = (given + rng.integers(1, values, runs)) % values
        return np.where(rng.random(runs) < truth, float(given), other.astype(np.float64))

    return run


def shuffled(truth: float) -> Run:
    """Returns how many of the users' randomised bits are 1."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        ones = int(np.sum(given))
        return (rng.binomial(ones, truth, runs) + rng.binomial(len(given) - ones, 1 - truth, runs)).astype(np.float64)

    return run


def unary(truth: float, lie: float, values: int) -> Run:
    """Returns a one-hot code, each bit randomised: 1 with probability `truth` where it is 1, `lie` where it is 0."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        code = np.where(np.arange(values) == given, truth, lie)
        return (rng.random((runs, values)) < code).astype(np.float64)

    return run


def histogram(scale: float, bins: int, *, drop: bool = False, cut: float = 0.0) -> Run:
    """Returns noisy counts of the records; empty bins stay without noise where `drop`, small counts become 0."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        counts = np.bincount(np.asarray(given, dtype=np.int64), minlength=bins).astype(np.float64)
        noisy = counts + rng.laplace(0, scale, (runs, bins))
        if drop:
            noisy = np.where(counts > 0, noisy, 0.0)
        return np.where(noisy > cut, noisy, 0.0) if cut else noisy

    return run


def prefix_sums(scale: float, *, each: bool) -> Run:
    """Returns sums of the first 1, 2, … numbers: noise on the numbers, or on each sum."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        noise = rng.laplace(0, scale, exact.shape)
        sums: Array = np.cumsum(exact, axis=1) + noise if each else np.cumsum(exact + noise, axis=1)
        return sums

    return run


def mean(scale: float, *, private_number: bool, clip: float = math.inf) -> Run:
    """Returns the noisy mean of records; noise is scaled by the number of records, which is not published."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        kept = np.clip(given, -clip, clip)
        noise = rng.laplace(0, scale, runs)
        if private_number:
            mean: Array = (kept.sum() + noise * len(given) / 10) / len(given)
            return mean
        found: Array = (kept.sum() + noise) / 10
        return found

    return run


def plain(scale: float) -> Run:
    """Returns noisy numbers."""
    return lambda given, runs, rng: column(given, runs) + rng.laplace(0, scale, (runs, np.size(given)))


def tree(scale: float) -> Run:
    """Returns the noisy sums of every node of a binary tree over the numbers."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        level = column(given, runs)
        levels = [level]
        while level.shape[1] > 1:
            level = level[:, ::2] + level[:, 1::2]
            levels.append(level)
        exact = np.concatenate(levels, axis=1)
        return exact + rng.laplace(0, scale, exact.shape)

    return run


def sampled(share: float, scale: float) -> Run:
    """Returns the noisy sum of a random sample of the records."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        kept = rng.random((runs, len(given))) < share
        found: Array = kept @ np.asarray(given, dtype=np.float64) + rng.laplace(0, scale, runs)
        return found

    return run


def median(epsilon: float, values: int) -> Run:
    """Returns the median of records by the exponential mechanism over 0, …, values − 1."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        rank = np.array([abs(int((given < v).sum()) - int((given > v).sum())) for v in range(values)])
        weight = np.exp(-epsilon * rank / 2)
        chosen: Array = rng.choice(values, size=runs, p=weight / weight.sum()).astype(np.float64)
        return chosen

    return run


def branching(scale: float) -> Run:
    """Returns a noisy number and, only where the exact one is positive, a second one."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        first = given + rng.laplace(0, scale, runs)
        second = first + rng.laplace(0, scale, runs) if given > 0 else np.zeros(runs)
        return np.stack([first, second], axis=1)

    return run


def sized(scale: float) -> Run:
    """Returns noisy records, one number for each: the length tells their number."""
    return lambda given, runs, rng: np.asarray(given) + rng.laplace(0, scale, (runs, len(given)))


def parity_of_bits(truth: float) -> Run:
    """Returns random bits of which only the parity tells anything."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        bits = rng.integers(0, 2, (runs, 20))
        total = int(np.asarray(given).sum())
        wanted = np.where(rng.random(runs) < truth, total % 2, 1 - total % 2)
        bits[:, 7] ^= (bits.sum(axis=1) % 2) ^ wanted
        return bits.astype(np.float64)

    return run


def ranking(scale: float) -> Run:
    """Returns the order of noisy numbers."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        noisy = column(given, runs) + rng.laplace(0, scale, (runs, len(given)))
        return np.argsort(noisy, axis=1).astype(np.float64)

    return run


def normal(std: float) -> Run:
    """Returns numbers with Gaussian noise."""
    return lambda given, runs, rng: column(given, runs) + rng.normal(0, std, (runs, np.size(given)))


def sorted_noise(scale: float) -> Run:
    """Returns noisy numbers in ascending order of the exact ones."""

    def run(given: Records, runs: int, rng: np.random.Generator) -> Array:
        order = np.argsort(given, kind="stable")
        return (column(given, runs) + rng.laplace(0, scale, (runs, len(given))))[:, order]

    return run


def parity(scale: float) -> Run:
    """Returns a noisy count whose last digit is the exact count's."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noisy = np.round(given + rng.laplace(0, scale, runs))
        kept: Array = noisy + (noisy % 2 != given % 2)
        return kept

    return run


def _specimen(
    name: str, run: Run, claim: MechanismClaim, *pairs: tuple[Any, Any], broken: bool, loss: float | None = None
) -> Specimen:
    return Specimen(name=name, run=run, claim=claim, pairs=pairs, broken=broken, loss=loss)


def _records(*values: float) -> Records:
    return np.array(values, dtype=np.float64)


_E = math.e / (1 + math.e)
_BITS = (np.zeros(10), np.array([1.0, *[0.0] * 9]))
_TEN = (_records(1, 0, 1, 0, 1, 0, 1, 0, 1, 1), _records(1, 0, 1, 0, 1, 0, 1, 0, 1, 0))
_LEFT_OUT = (_records(0, 1, 1, 2, 2, 2), _records(1, 1, 2, 2, 2))
_FAR = (_records(*[0.5] * 9, 30), _records(*[0.5] * 9, 0))
_SHORT = (_records(*[1.0] * 10), _records(*[1.0] * 9))
_FOUR = (np.zeros(4), np.array([1.0, 0, 0, 0]))
_PATH = (np.zeros(8), np.array([0, 0, 0, 1.0, 0, 0, 0, 0]))
_MANY = (np.zeros(40), np.array([1.0, *[0.0] * 39]))
_HEAPS = (_records(2, 2, 2, 5, 5, 5, 5), _records(2, 2, 2, 2, 5, 5, 5))
_UP_AND_DOWN = (np.array([0.0, 1, 0, 1, 0, 1]), np.array([1.0, 0, 1, 0, 1, 0]))
_ALL_OVER = (np.zeros(200), np.where(np.arange(200) % 3 == 0, -1, 1) / math.sqrt(200))
_ONE_OF_600 = (np.zeros(600), np.where(np.arange(600) == 321, 1.0, 0.0))

COUNTING = (
    _specimen("randomised response", response(_E), _ONE, (0, 1), broken=False, loss=1),
    _specimen("randomised response, truth .8", response(0.8), _ONE, (0, 1), broken=True, loss=math.log(4)),
    _specimen("randomised response, ten bits", response(_E), _ONE, _BITS, broken=False, loss=1),
    _specimen(
        "randomised response, ten bits of one user",
        response(_E),
        _ONE,
        (np.zeros(10), np.ones(10)),
        broken=True,
        loss=10,
    ),
    _specimen("choice of eight", choice(math.e / (math.e + 7), 8), _ONE, (2, 5), broken=False, loss=1),
    _specimen("choice of eight as of two", choice(0.5, 8), _ONE, (2, 5), broken=True, loss=math.log(7)),
    _specimen("unary code", unary(0.5, 1 / (math.e + 1), 6), _ONE, (1, 4), broken=False, loss=1),
    _specimen("unary code, twice the budget", unary(_E, 1 - _E, 6), _ONE, (1, 4), broken=True, loss=2),
    _specimen("shuffled bits", shuffled(_E), _ONE, _BITS, broken=False, loss=1),
    _specimen("shuffled bits, too much amplification", shuffled(0.95), PureDP("1/2"), _BITS, broken=True),
    _specimen("histogram", histogram(1, 4), _ONE, _LEFT_OUT, broken=False, loss=1),
    _specimen("histogram with ε for 1/ε", histogram(0.5, 4), PureDP("1/2"), _LEFT_OUT, broken=True, loss=2),
    _specimen("histogram, replacement as removal", histogram(1, 8), _ONE, _HEAPS, broken=True, loss=2),
    _specimen(
        "histogram without its empty bins", histogram(1, 4, drop=True), _ONE, _LEFT_OUT, broken=True, loss=math.inf
    ),
    _specimen("histogram, small counts cut", histogram(1, 4, cut=1.5), _ONE, _LEFT_OUT, broken=False, loss=1),
    _specimen("histogram of 100 bins", histogram(1, 100), _ONE, _LEFT_OUT, broken=False, loss=1),
    _specimen("histogram of 100 bins, half scale", histogram(0.5, 100), _ONE, _LEFT_OUT, broken=True, loss=2),
    _specimen("prefix sums", prefix_sums(1, each=False), _ONE, _PATH, broken=False, loss=1),
    _specimen("prefix sums, noise on each", prefix_sums(1, each=True), _ONE, _PATH, broken=True, loss=5),
    _specimen("sum", mean(1, private_number=False, clip=1), _ONE, _TEN, broken=False, loss=1),
    _specimen("sum of unclipped records", mean(1, private_number=False), _ONE, _FAR, broken=True, loss=30),
    _specimen(
        "mean over the private number",
        mean(0.1, private_number=True, clip=1),
        _ONE,
        (_records(*[1.0] * 4, 0), _records(*[1.0] * 4)),
        broken=True,
    ),
    _specimen("sum of one less", mean(1, private_number=False, clip=1), _ONE, _SHORT, broken=False, loss=1),
    _specimen("tree", tree(3), _ONE, _FOUR, broken=False, loss=1),
    _specimen("tree, a level too few", tree(2), _ONE, _FOUR, broken=True, loss=1.5),
    _specimen("sampled sum", sampled(0.5, 1), PureDP("0.6202"), _TEN, broken=False, loss=0.6201),
    _specimen("sampled sum, amplified too much", sampled(0.5, 1), PureDP("1/4"), _TEN, broken=True),
    _specimen("median", median(1, 8), _ONE, _HEAPS, broken=False),
    _specimen("median, sensitivity halved", median(3, 8), _ONE, _HEAPS, broken=True),
    _specimen("second answer only where positive", branching(2), _ONE, (0.0, 1.0), broken=True, loss=math.inf),
    _specimen("as many numbers as records", sized(1), _ONE, _SHORT, broken=True, loss=math.inf),
    _specimen(
        "in the order of the exact numbers",
        sorted_noise(1),
        _ONE,
        (_records(0, 3, 6), _records(3.5, 3, 6)),
        broken=True,
    ),
    _specimen("parity kept", parity(1), _ONE, (4.0, 5.0), broken=True, loss=math.inf),
    _specimen("forty numbers", plain(1), _ONE, _MANY, broken=False, loss=1),
    _specimen("forty numbers, half scale", plain(0.5), _ONE, _MANY, broken=True, loss=2),
    _specimen("parity of twenty bits", parity_of_bits(_E), _ONE, (0, 1), broken=False, loss=1),
    _specimen("parity of twenty bits, truth .9", parity_of_bits(0.9), _ONE, (0, 1), broken=True, loss=math.log(9)),
    _specimen("ranking", ranking(6), _ONE, (np.zeros(6), np.ones(6) * [1, 0, 1, 0, 1, 0]), broken=False),
    _specimen("ranking of one figure's noise", ranking(1), _ONE, _UP_AND_DOWN, broken=True),
    _specimen("200 numbers", normal(1), ZCDP("1/2"), _ALL_OVER, broken=False, loss=0.5),
    _specimen("200 numbers at half std", normal(0.5), ZCDP("1/2"), _ALL_OVER, broken=True, loss=2),
    _specimen("one of 600 numbers, half scale", plain(0.5), _ONE, _ONE_OF_600, broken=True, loss=2),
    _specimen("nothing", lambda _, runs, __: np.zeros(runs), PureDP(0), (0.0, 1.0), broken=False, loss=0),
    _specimen("coin of its own", lambda _, runs, rng: rng.random(runs), PureDP(0), (0.0, 1.0), broken=False, loss=0),
    _specimen(
        "no noise", lambda given, runs, _: np.full(runs, float(given)), _ONE, (0.0, 1.0), broken=True, loss=math.inf
    ),
    _specimen("histogram, zCDP", histogram(1, 4), ZCDP("1/2"), _LEFT_OUT, broken=False),
    _specimen("shuffled bits at δ", shuffled(0.6), ApproxDP("1/2", "0.001"), _BITS, broken=False),
)
