"""Specimens whose leak no single number shows: in signs, order, ties, correlations, digits, or once in 1 000 runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mutants.specimen import Array, Run, Specimen, column
from privcheck.runtime.auditors import MechanismClaim
from privcheck.terms.guarantees import ZCDP, ApproxDP, PureDP

_ONE = PureDP(1)
_DELTA = ApproxDP(1, "0.001")


def joint_sign(columns: Sequence[int], width: int, truth: float) -> Run:
    """Returns normals of which only the sign of a product tells anything."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        noise = rng.normal(0, 1, (runs, width))
        wanted = np.where(rng.random(runs) < truth, 2 * given - 1, 1 - 2 * given)
        noise[np.sign(np.prod(noise[:, list(columns)], axis=1)) != wanted, columns[0]] *= -1
        return noise

    return run


def correlated(share: float, width: int) -> Run:
    """Returns unit normals; the first and the last are correlated where the exact number is 1."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noise = rng.normal(0, 1, (runs, width))
        noise[:, -1] = share * given * noise[:, 0] + math.sqrt(1 - (share * given) ** 2) * noise[:, -1]
        return noise

    return run


def series(memory: float, length: int) -> Run:
    """Returns a stationary series of unit normals; one remembers the one before where the exact number is 1."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        found = rng.normal(0, 1, (runs, length))
        kept = memory * given
        for t in range(1, length):
            found[:, t] = kept * found[:, t - 1] + math.sqrt(1 - kept**2) * found[:, t]
        return found

    return run


def ties_by_counts(given: Sequence[int], runs: int, rng: np.random.Generator) -> Array:
    """Returns noisy counts with their ranking, in which equal ones stand in the order of the exact counts."""
    exact = np.asarray(given, dtype=np.float64)
    share = -math.expm1(-1)
    shape = (runs, exact.size)
    noisy = exact + rng.geometric(share, shape) - rng.geometric(share, shape)
    ranked = np.argsort(-(noisy + 1e-3 * exact), axis=1, kind="stable")
    return np.concatenate([noisy, ranked], axis=1)


def permutation(length: int, truth: float) -> Run:
    """Returns a random permutation of which only the parity tells anything."""

    def run(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        found = np.argsort(rng.random((runs, length)), axis=1)
        first, second = np.triu_indices(length, 1)
        odd = (found[:, first] > found[:, second]).sum(axis=1) % 2
        wrong = odd != np.where(rng.random(runs) < truth, given, 1 - given)
        found[wrong, 0], found[wrong, 1] = found[wrong, 1].copy(), found[wrong, 0].copy()
        return found

    return run


def thresholded(threshold: float) -> Run:
    """Returns noisy counts of the bins that are not empty, where they are above a threshold."""

    def run(given: Sequence[int], runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        noisy = exact + rng.laplace(0, 1, exact.shape)
        return np.where((exact > 0) & (noisy > threshold), noisy, 0.0)

    return run


def top(number: int, scale: float) -> Run:
    """Returns the indices of the largest noisy answers."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        noisy = column(given, runs) + rng.laplace(0, scale, (runs, len(given)))
        return np.argsort(-noisy, axis=1, kind="stable")[:, :number]

    return run


def staircase(epsilon: float) -> Run:
    """Returns x with the noise of Geng & Viswanath (2014) at sensitivity 1."""
    share, step = math.exp(-epsilon), 1 / (1 + math.exp(epsilon / 2))

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        sign, level, inner = rng.choice([-1, 1], runs), rng.geometric(1 - share, runs) - 1, rng.random(runs)
        outer = rng.random(runs) >= step / (step + (1 - step) * share)
        noise: Array = sign * (level + np.where(outer, step + (1 - step) * inner, step * inner))
        return given + noise

    return run


def hashed(truth: float) -> Run:
    """Returns a public seed of 6 bits with the randomised hash, 0 to 3, of the exact value under it."""
    table = np.random.default_rng(5).integers(0, 4, (2, 64))

    def run(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        seed = rng.integers(0, 64, runs)
        exact = table[given, seed]
        answer = np.where(rng.random(runs) < truth, exact, (exact + rng.integers(1, 4, runs)) % 4)
        return np.stack([seed, answer], axis=1)

    return run


def linear_hash(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns a public seed of 16 bits with the parity of those that the exact value selects."""
    seed = rng.integers(0, 1 << 16, runs)
    selected = seed & (0b1011 if given else 0b0110)
    return np.stack([seed, np.bitwise_count(selected) % 2], axis=1)


def flat_noise(given: object, runs: int, rng: np.random.Generator) -> Array:
    """Returns five numbers with normal noise in four dimensions: one direction has none."""
    direction = np.array([1.0, -2, 3, 1, -1]) / 4
    noise = rng.normal(0, 1, (runs, 5))
    return column(given, runs) + noise - (noise @ direction)[:, None] * direction


def greedy(scale: float) -> Run:
    """Returns the action, 0 or 1, that a policy takes in each state by noisy differences of values."""
    return lambda given, runs, rng: (column(given, runs) + rng.laplace(0, scale, (runs, np.size(given))) > 0) * 1


def labels(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns one of 500 labels; half of them are thrice as likely as the others, and which half is told."""
    likely = np.random.default_rng(9).permutation(500) < 250
    weight = np.where(likely == bool(given), 3.0, 1.0)
    return rng.choice(500, runs, p=weight / weight.sum())


def secret_shares(truth: float) -> Run:
    """Returns three numbers modulo 101 that add up to the exact one, times 50, with probability `truth`."""

    def run(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        first, second = rng.integers(0, 101, (2, runs))
        told = np.where(rng.random(runs) < truth, given, 1 - given)
        return np.stack([first, second, (50 * told - first - second) % 101], axis=1)

    return run


def echo(given: int, runs: int, rng: np.random.Generator) -> Array:
    """Returns forty normals; the sixth or the thirteenth is the twenty-first again, blurred."""
    found = rng.normal(0, 1, (runs, 40))
    found[:, 5 + 7 * given] = found[:, 20] + 0.3 * rng.normal(0, 1, runs)
    return found


def direction(given: float, runs: int, rng: np.random.Generator) -> Array:
    """Returns forty unit normals; along one direction the variance is larger where the exact number is 1."""
    along = np.random.default_rng(2).normal(0, 1, 40)
    noise = rng.normal(0, 1, (runs, 40))
    return noise + 1.2 * given * rng.normal(0, 1, (runs, 1)) * along / np.linalg.norm(along)


def moved_maximum(given: float, runs: int, rng: np.random.Generator) -> Array:
    """Returns 25 normals of which only the largest is moved."""
    found = rng.normal(0, 1, (runs, 25))
    found[np.arange(runs), found.argmax(axis=1)] += 1.2 * given
    return found


def walk(given: float, runs: int, rng: np.random.Generator) -> Array:
    """Returns a random walk of 300 normal steps; the 222nd is moved."""
    return np.cumsum(rng.normal(0, 1, (runs, 300)) + np.where(np.arange(300) == 222, 1.8 * given, 0.0), axis=1)


def wide(scale: float) -> Run:
    """Returns 2 000 numbers with Laplace noise, of which one is moved."""
    exact = np.where(np.arange(2_000) == 1_321, 1.0, 0.0)
    return lambda given, runs, rng: rng.laplace(0, scale, (runs, exact.size)) + given * exact


def ball(epsilon: float, size: int) -> Run:
    """Returns numbers with noise of density ∝ e^(−ε·‖x‖₂)."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        towards = rng.normal(0, 1, (runs, size))
        length = rng.gamma(size, 1 / epsilon, (runs, 1))
        noisy: Array = column(given, runs) + towards / np.linalg.norm(towards, axis=1, keepdims=True) * length
        return noisy

    return run


def permute_and_flip(epsilon: float) -> Run:
    """Returns an index by the mechanism of McKenna & Sheldon (2020) at sensitivity 1."""

    def run(given: Sequence[float], runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        exact = np.asarray(given, dtype=np.float64)
        order = np.argsort(rng.random((runs, exact.size)), axis=1)
        heads = rng.random(order.shape) < np.exp(epsilon / 2 * (exact - exact.max()))[order]
        chosen: NDArray[np.int64] = order[np.arange(runs), heads.argmax(axis=1)]
        return chosen

    return run


def _specimen(
    name: str, run: Run, claim: MechanismClaim, *pairs: tuple[Any, Any], broken: bool, loss: float | None = None
) -> Specimen:
    return Specimen(name=name, run=run, claim=claim, pairs=pairs or ((0, 1),), broken=broken, loss=loss)


_E = math.e / (math.e + 3)
_SPLIT = ((1, 1, 1, 0, 0, 0, 0, 0), (0, 0, 0, 1, 1, 1, 1, 1))
_BINS = ((3, 0, 2, 0), (3, 1, 2, 0))
_STATES = ((0.5,) * 5, (-0.5,) * 5)
_FLIP = math.log(2 * math.exp(0.5) - 1)  # loss of one state: noise of scale 1 crosses 0 from ½ away
_SPREAD = (np.zeros(10), np.full(10, 1 / math.sqrt(10)))
_STUDENT = 1.1393  # ln of the largest ratio of two densities of Student's t with 3 degrees, one apart

HIDDEN = (
    _specimen("sign of two of thirty", joint_sign((3, 17), 30, 0.9), _ONE, broken=True, loss=math.log(9)),
    _specimen("sign of three of twenty", joint_sign((1, 5, 9), 20, 0.95), _ONE, broken=True, loss=math.log(19)),
    _specimen("correlation", correlated(0.9, 30), _ONE, broken=True, loss=math.inf),
    _specimen("variance in one direction", direction, _ONE, broken=True, loss=math.inf),
    _specimen("memory of a series", series(0.35, 30), _ONE, broken=True, loss=math.inf),
    _specimen("ties broken by exact counts", ties_by_counts, _ONE, ((0, 0, 0, 0), (0, 1, 0, 0)), broken=True,
              loss=math.inf),
    _specimen("parity of a permutation of six", permutation(6, 0.9), _ONE, broken=True, loss=math.log(9)),
    _specimen("parity of a permutation, fair", permutation(6, math.e / (1 + math.e)), _ONE, broken=False, loss=1),
    _specimen("thresholded histogram, low threshold", thresholded(4.5), _DELTA, _BINS, broken=True, loss=math.inf),
    _specimen("thresholded histogram", thresholded(1 + math.log(500)), _DELTA, _BINS, broken=False),
    _specimen("top three, noise for one", top(3, 1.5), _ONE, _SPLIT, broken=True),
    _specimen("top three", top(3, 6), _ONE, _SPLIT, broken=False),
    _specimen("poisson noise", lambda given, runs, rng: given + rng.poisson(5, runs), _ONE, broken=True,
              loss=math.inf),
    _specimen("staircase noise at twice the budget", staircase(2), _ONE, broken=True, loss=2),
    _specimen("staircase noise", staircase(1), _ONE, broken=False, loss=1),
    _specimen("student noise", lambda given, runs, rng: given + rng.standard_t(3, runs), _ONE, broken=True,
              loss=_STUDENT),
    _specimen("public hash, wrong truth", hashed(0.85), _ONE, broken=True, loss=math.log(17)),
    _specimen("public hash", hashed(_E), _ONE, broken=False, loss=1),
    _specimen("public linear hash", linear_hash, _ONE, broken=True, loss=math.inf),
    _specimen("noise without one direction", flat_noise, ZCDP("1/2"), (np.zeros(5), np.eye(5)[0]), broken=True,
              loss=math.inf),
    _specimen("greedy policy", greedy(1), _ONE, _STATES, broken=True, loss=5 * _FLIP),
    _specimen("greedy policy, noise for five states", greedy(5), _ONE, _STATES, broken=False,
              loss=5 * math.log(2 * math.exp(0.1) - 1)),
    _specimen("parity of large integers", lambda given, runs, rng: 2 * rng.integers(0, 1 << 61, runs) + given, _ONE,
              broken=True, loss=math.inf),
    _specimen("500 labels", labels, PureDP("1/2"), broken=True, loss=math.log(3)),
    _specimen("secret shares", secret_shares(0.9), _ONE, broken=True, loss=math.log(9)),
    _specimen("blurred echo", echo, _ONE, broken=True, loss=math.inf),
    _specimen("largest of 25 moved", moved_maximum, _ONE, broken=True, loss=math.inf),
    _specimen("step of a random walk", walk, ZCDP("1/2"), broken=True, loss=1.62),
    _specimen("one of 2 000 numbers, half scale", wide(0.5), _ONE, broken=True, loss=2),
    _specimen("tells once in a thousand", lambda given, runs, rng: np.where(
        rng.random(runs) < 1e-3, 1e3 + given, given + rng.laplace(0, 1, runs)), ApproxDP(1, "0.0001"), broken=True,
        loss=math.inf),
    _specimen("ball noise in ten dimensions", ball(1, 10), _ONE, _SPREAD, broken=False, loss=1),
    _specimen("permute and flip", permute_and_flip(1), _ONE, ((1, 1, 1, 0, 0), (0, 0, 0, 1, 1)), broken=False),
    _specimen("wide student noise", lambda given, runs, rng: given + 3 * rng.standard_t(5, runs), _ONE, broken=False,
              loss=0.4469),
)  # fmt: skip
