"""Exact laws of further cases of the literature on their pairs: closed forms, enumerations and quadrature.

Written from the mechanisms' descriptions, and sharing no code with the functions that are run. A law is a partition of
the outputs into cells, and the cells' probabilities under both neighbours; whatever it loses, the function loses at
least.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special, stats
from scipy.optimize import brentq

from privcheck.runtime.auditors import MechanismClaim
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP

Array = NDArray[np.float64]
Cells = Callable[[Any], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Law:
    """The law of a function's outputs on one pair.

    Attributes:
        cells: Which cell each run's output is in.
        first: Probabilities of the cells on D.
        other: Probabilities on D′.
    """

    cells: Cells
    first: Array
    other: Array


def loss(law: Law, claim: MechanismClaim) -> float:
    """The largest loss over both directions, in the claim's unit and at its δ."""
    ways = ((law.first, law.other), (law.other, law.first))
    if isinstance(claim, PureDP | ApproxDP):
        delta = claim.delta.number(rounding="up") if isinstance(claim, ApproxDP) else 0.0
        return max(_epsilon(p, q, delta) for p, q in ways)
    measure = {ZCDP: _rho, GaussianDP: _mu}[type(claim)]
    return max(measure(p, q) for p, q in ways)


def _epsilon(p: Array, q: Array, delta: float) -> float:
    if delta == 0:
        with np.errstate(divide="ignore"):
            return float(np.log(p[p > 0] / q[p > 0]).max())

    def excess(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum()) - delta

    if excess(0) <= 0:
        return 0.0
    return math.inf if excess(60) > 0 else float(brentq(excess, 0, 60, xtol=1e-10))


def _rho(p: Array, q: Array) -> float:
    orders = np.concatenate([np.linspace(1.001, 8, 400), np.linspace(9, 60, 52)])
    some = p > 0
    with np.errstate(divide="ignore"):
        logs = np.log(p[some]), np.log(q[some])
    moments = special.logsumexp(orders[:, None] * logs[0] + (1 - orders[:, None]) * logs[1], axis=1)
    return float((moments / (orders - 1) / orders).max())


def _mu(p: Array, q: Array) -> float:
    order = np.argsort(np.where(p + q > 0, q / np.maximum(p + q, 1e-300), 0.5), kind="stable")
    right, wrong = np.cumsum(p[order]), np.cumsum(q[order])
    if ((wrong == 0) & (right > 0)).any():
        return math.inf
    inside = (right > 1e-9) & (wrong < 1 - 1e-9)
    return float((special.ndtri(right[inside]) - special.ndtri(wrong[inside])).max())


def intervals(edges: Sequence[float] | Array, first: Callable[[Array], Array], other: Callable[[Array], Array],
              of: Callable[[Any], Array] = np.asarray) -> Law:  # fmt: skip
    """Returns the law of one number of an output, between edges, by its distribution functions."""
    limits = np.asarray(edges, dtype=np.float64)
    parts = [np.diff(np.concatenate([[0.0], law(limits), [1.0]])) for law in (first, other)]
    return Law(cells=lambda out: np.searchsorted(limits, of(out)), first=parts[0], other=parts[1])


def values(first: dict[Any, float], other: dict[Any, float], of: Callable[[Any], Any] = list) -> Law:
    """Returns the law of discrete outputs, by their probabilities."""
    known = {each: i for i, each in enumerate(dict.fromkeys([*first, *other]))}
    return Law(
        cells=lambda out: np.array([known[each] for each in of(out)]),
        first=np.array([first.get(each, 0.0) for each in known]),
        other=np.array([other.get(each, 0.0) for each in known]),
    )


def rows(out: Any) -> list[tuple[Any, ...]]:
    """Returns rows as tuples."""
    return [tuple(row) for row in np.asarray(out).tolist()]


# --- Laplace noise under an integral over the noise of a threshold

_Z = np.linspace(-30, 30, 6_001)  # in scales


def average(scale: float, given: Callable[[Array], Array], z: Array = _Z) -> Array:
    """Returns the mean of a function of Laplace noise, (points, …) → (…), by Simpson's rule on either side of 0."""
    found = given(z * scale)
    weight = (0.5 * np.exp(-np.abs(z))).reshape(-1, *[1] * (found.ndim - 1))
    half = z.size // 2
    sides = [integrate.simpson((weight * found)[part], x=z[part], axis=0)
             for part in (slice(0, half + 1), slice(half, None))]  # fmt: skip
    return np.asarray(sides[0] + sides[1])


def below(x: Array, scale: float) -> Array:
    """Returns the distribution function of Laplace noise."""
    return np.asarray(stats.laplace.cdf(x, scale=scale))


def above(x: Array, scale: float) -> Array:
    """Returns the probability that Laplace noise is above."""
    return np.asarray(stats.laplace.sf(x, scale=scale))


def _numbered(parts: Sequence[int], of: Callable[[Any], Sequence[NDArray[np.int64]]]) -> Cells:
    return lambda out: np.ravel_multi_index(tuple(of(out)), tuple(parts))


# --- choices


def first_gap(threshold: float, noise: float, queries: float) -> Law:
    """Cells: which query is first, and its gap, in steps of ¼."""
    edges = np.arange(0, 12.01, 0.25)

    def law(exact: Sequence[float]) -> Array:
        found = []
        for k in range(len(exact)):

            def survives(z: Array, k: int = k) -> Array:
                before = np.prod([below(threshold + z - q, queries) for q in exact[:k]], axis=0) if k else 1.0
                return (before * above(threshold + z + edges[:, None] - exact[k], queries)).T

            at_least = average(noise, survives)
            found.append(at_least - np.append(at_least[1:], 0.0))
        rest = 1 - sum(part.sum() for part in found)
        return np.concatenate([*found, [rest]])

    def cells(out: Any) -> NDArray[np.int64]:
        place = np.clip(np.searchsorted(edges, out[:, 1], "right") - 1, 0, edges.size - 1)
        return np.where(out[:, 0] < 9, out[:, 0] * edges.size + place, 9 * edges.size).astype(np.int64)

    return Law(cells=cells, first=law((1,) * 8 + (0,)), other=law((0,) * 8 + (1,)))  # fmt: skip


def gaps_below() -> Law:
    """Cells: in how many of ten pairs the first gap is larger, and whether any query was above at all."""
    scale, threshold = 4.0, 6.0
    points = np.linspace(0, 80, 801)  # how far a gap is below 0

    def larger(z: Array, one: float, two: float) -> Array:
        """Returns P(gap two < gap one < 0) for each threshold noise."""
        shift = threshold + z[:, None]
        inner = stats.laplace.pdf(-points + shift - one, scale=scale) * below(-points + shift - two, scale)
        return np.asarray(integrate.simpson(inner, x=points, axis=1))

    def law(high: float, low: float) -> Array:
        def counts(z: Array) -> Array:
            yes, no = larger(z, high, low)[:, None], larger(z, low, high)[:, None]
            k = np.arange(11)
            return special.comb(10, k) * yes**k * no ** (10 - k)

        stays = average(2.0, counts, np.linspace(-30, 30, 601))
        return np.append(stays, 1 - stays.sum())

    def cells(out: Any) -> NDArray[np.int64]:
        return np.where((out < 0).all(axis=1), (out[:, ::2] > out[:, 1::2]).sum(axis=1), 11)

    return Law(cells=cells, first=law(0.5, -0.5), other=law(-0.5, 0.5))


def sequences(exact: Sequence[float], steps: Callable[[Array, float, Any], dict[int, tuple[Array, Any]]],
              noise: float, start: Any) -> dict[tuple[int, ...], float]:  # fmt: skip
    """Returns the law of answers to queries, one after another.

    Args:
        exact: The queries' exact answers.
        steps: From threshold noises, an exact answer and a state to each answer's probabilities and the next state;
            a state of None is the end: −1 from there on.
        noise: Scale of the threshold's noise.
        start: State before the first query.
    """
    z = _Z * noise
    paths: dict[tuple[int, ...], tuple[Array, Any]] = {(): (np.ones(z.size), start)}
    for q in exact:
        longer = {}
        for path, (share, state) in paths.items():
            if state is None:
                longer[*path, -1] = (share, None)
                continue
            for answer, (chance, following) in steps(z, q, state).items():
                longer[*path, answer] = (share * chance, following)
        paths = longer
    return {path: float(average(noise, lambda _, share=share: share)) for path, (share, _) in paths.items()}


def margins(z: Array, q: float, _: int) -> dict[int, tuple[Array, Any]]:
    far, near = above(0.75 + z + 0.25 - q, 1), above(0.75 + z - q, 1)
    return {2: (far, 1), 1: (near - far, None), 0: (1 - near, 1)}


def adaptive(z: Array, q: float, left: int) -> dict[int, tuple[Array, Any]]:
    far = above(0.5 + z + 3 - q, 4)
    near = (1 - far) * above(0.5 + z - q, 2)
    once, twice = (left - spent if left - spent >= 2 else None for spent in (1, 2))
    return {2: (far, once), 1: (near, twice), 0: (1 - far - near, left)}


def three_answers(z: Array, q: float, given: int) -> dict[int, tuple[Array, Any]]:
    yes = above(0.5 + z - q, 2)
    return {1: (yes, given + 1 if given < 2 else None), 0: (1 - yes, given)}


def value_compared() -> Law:
    """Cells: which query is first, and its value, in steps of ½."""
    edges = np.arange(-16, 16.01, 0.5)

    def law(exact: Sequence[float]) -> Array:
        fine = np.linspace(-40, 40, 8_001)
        noise = np.diff(below(fine, 2))
        middle = (fine[1:] + fine[:-1]) / 2
        found, before = [], np.ones(middle.size)
        for q in exact:
            reached = np.concatenate([[0.0], np.cumsum(noise * before)])  # by thresholds up to .5 + fine
            points = 0.5 + fine
            chance = stats.laplace.pdf(points - q, scale=4) * reached
            mass = integrate.cumulative_simpson(chance, x=points, initial=0)
            found.append(np.diff(np.concatenate([[0.0], np.interp(edges, points, mass), [mass[-1]]])))
            before = before * below(0.5 + middle - q, 4)
        return np.concatenate([*found, [1 - sum(part.sum() for part in found)]])

    def cells(out: Any) -> NDArray[np.int64]:
        none = (out == 0).all(axis=1)
        first = (out != 0).argmax(axis=1)
        place = np.searchsorted(edges, out[np.arange(len(out)), first])
        return np.where(none, out.shape[1] * (edges.size + 1), first * (edges.size + 1) + place)

    return Law(cells=cells, first=law((1,) * 9 + (0,)), other=law((0,) * 9 + (1,)))


def max_gap(scale: float) -> Law:
    """Cells: which answer is largest, and its gap, in steps of ¼."""
    edges = np.arange(0, 12.01, 0.25)

    def law(exact: Sequence[float]) -> Array:
        found = []
        for i, q in enumerate(exact):

            def survives(z: Array, i: int = i, q: float = q) -> Array:
                others = [below(q + z[:, None] - edges - r, scale) for j, r in enumerate(exact) if j != i]
                return np.asarray(np.prod(others, axis=0))

            at_least = average(scale, survives)
            found.append(at_least - np.append(at_least[1:], 0.0))
        return np.concatenate(found)

    def cells(out: Any) -> NDArray[np.int64]:
        place = np.clip(np.searchsorted(edges, out[:, 1], "right") - 1, 0, edges.size - 1)
        return (out[:, 0] * edges.size + place).astype(np.int64)

    return Law(cells=cells, first=law((1, 0, 0, 0)), other=law((0, 1, 1, 1)))  # fmt: skip


def exponential_max(exact: Sequence[float]) -> dict[Any, float]:
    wins = {}

    def density(x: float, i: int) -> float:
        """Density of the noisy score i at x, times the probability that all others are below."""
        below = math.prod(max(0.0, -math.expm1(r - x)) for j, r in enumerate(exact) if j != i)
        return math.exp(exact[i] - x) * below

    for i in range(len(exact)):
        wins[i] = integrate.quad(density, max(exact), 60, args=(i,), epsabs=1e-12, limit=200)[0]
    return wins


def flips(exact: Sequence[float], rate: float) -> dict[Any, float]:
    """Goes through all orders."""
    found = dict.fromkeys(range(len(exact)), 0.0)
    orders = list(itertools.permutations(range(len(exact))))
    for order in orders:
        left = 1.0
        for i in order:
            heads = math.exp(rate * (exact[i] - max(exact)))
            found[i] += left * heads / len(orders)
            left *= 1 - heads
    return found


def weighted(weights: Sequence[float]) -> dict[Any, float]:
    return {i: weight / sum(weights) for i, weight in enumerate(weights)}


def released(distances: tuple[float, float], numbers: tuple[float, float], threshold: float, *,
             noisy: bool = True) -> Law:  # fmt: skip
    """Cells: nothing, or a number between edges."""
    edges = np.linspace(-20, 30, 201)

    def law(distance: float, number: float) -> Array:
        shown = float(above(np.array(threshold - distance), 2)) if noisy else float(distance > threshold)
        return np.append(np.diff(np.concatenate([[0], below(edges - number, 2), [1]])) * shown, 1 - shown)

    def cells(out: Any) -> NDArray[np.int64]:
        return np.array([edges.size + 1 if y is None else np.searchsorted(edges, y) for y in out])

    return Law(cells=cells, first=law(distances[0], numbers[0]), other=law(distances[1], numbers[1]))


def cauchy(factor: float, dilated: float) -> Law:
    edges = np.concatenate(
        [-np.geomspace(3_000, 40, 200), np.linspace(-40, 40, 4_001), np.geomspace(40, 3_000, 200)[1:]]
    )
    return intervals(edges, stats.cauchy(0, factor).cdf, stats.cauchy(1, factor * dilated).cdf)


def largest(scale: float, of_all: Callable[[Array], Array]) -> Law:
    """Cells of the largest score, whose distribution function is a function of one score's."""
    laws = [lambda y, x=x: of_all(below(y - x, scale)) for x in (0, 1)]
    return intervals(np.linspace(-12, 25, 371), laws[0], laws[1])


def any_key() -> Law:
    one = 0.5 * math.exp(-math.log(50))
    any_of = -math.expm1(8 * math.log1p(-one))
    return Law(
        cells=lambda out: (out > 0).any(axis=1) * 1, first=np.array([1 - any_of, any_of]), other=np.array([1.0, 0])
    )


# --- local

_E = math.e


def bits(first: Sequence[float], other: Sequence[float]) -> Law:
    """Returns the law of independent bits, by the probabilities that they are 1."""
    every = list(itertools.product((0, 1), repeat=len(first)))
    laws = [
        {word: math.prod(p if bit else 1 - p for bit, p in zip(word, chances, strict=True)) for word in every}
        for chances in (first, other)
    ]
    return values(laws[0], laws[1], rows)


def filters(of_one: float, of_zero: float) -> Law:
    laws = [[of_one if i in told else of_zero for i in range(8)] for told in ((1, 4), (2, 6))]
    return bits(laws[0], laws[1])


def subsets(share: float) -> Law:
    laws = [
        {pair: share / 7 if given in pair else (1 - share) / 21 for pair in itertools.combinations(range(8), 2)}
        for given in (2, 5)
    ]
    return values(laws[0], laws[1], rows)


def ordered_subsets() -> Law:
    share = 2 * _E / (2 * _E + 6)

    def chance(pair: tuple[int, int], given: int) -> float:
        if given in pair:
            return share / 7 if pair[0] == given else 0.0
        return (1 - share) / 42

    laws = [{pair: chance(pair, given) for pair in itertools.permutations(range(8), 2)} for given in (2, 5)]
    return values(laws[0], laws[1], rows)


def seeds() -> Law:
    laws = []
    for table in np.random.default_rng(11).integers(0, 4, (2, 64)):  # the public hash functions
        law = {}
        allowed = [s for s in range(64) if table[s] != 0]
        for s, answer in itertools.product(allowed, range(4)):
            law[s, answer] = (_E if answer == table[s] else 1) / (_E + 3) / len(allowed)
        laws.append(law)
    return values(laws[0], laws[1], rows)


def hadamard() -> Law:
    matrix = np.array([[1]])
    for _ in range(3):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    laws = [
        {(row, sign): (_E if matrix[row, given] == sign else 1) / (_E + 1) / 8 for row in range(8) for sign in (-1, 1)}
        for given in (3, 5)
    ]
    return values(laws[0], laws[1], rows)


def steps(edges: Sequence[float], *densities: Sequence[float]) -> Law:
    """Returns the law of piecewise constant densities, in the order of the edges; nothing outside."""
    parts = [np.concatenate([[0.0], np.array(each) * np.diff(edges), [0.0]]) for each in densities]
    return Law(cells=lambda out: np.searchsorted(np.asarray(edges), out), first=parts[0], other=parts[1])


def near(inside: float) -> Law:
    """The piecewise mechanism for −1 and 1: [−C, −1] and [1, C] are near."""
    most = (math.exp(0.5) + 1) / (math.exp(0.5) - 1)
    high, low = inside / (most - 1), (1 - inside) / (most + 1)
    return steps((-most, -1, 1, most), (high, low, low), (low, low, high))


def wave(high: float, low: float) -> Law:
    return steps((-0.25, 0.25, 0.75, 1.25), (high, low, low), (low, low, high))


def keys() -> Law:
    keeps = _E / (_E + 1)
    present = {(1, 1): keeps * keeps, (1, -1): keeps * (1 - keeps), (0, 0): 1 - keeps}
    absent = {(1, 1): (1 - keeps) / 2, (1, -1): (1 - keeps) / 2, (0, 0): keeps}
    return values(present, absent, rows)


def uneven_lies() -> Law:
    laws = []
    for given in (0, 3):
        law = {given: _E / (_E + 5)}
        for word in range(16):
            other = (given + 1 + word % 5) % 6
            law[other] = law.get(other, 0.0) + 5 / (_E + 5) / 16
        laws.append(law)
    return values(laws[0], laws[1], list)


# --- noises


def shifted(law: Callable[[Array], Array], edges: Sequence[float] | Array, by: float = 1.0) -> Law:
    """Returns the law of a number with noise of a distribution function."""
    return intervals(edges, law, lambda y: law(y - by))


def whole(chance: Callable[[int], float], most: int) -> Law:
    """Returns the law of 0 or 1 with integer noise, as far as `most` from 0."""
    laws = [{k: chance(k - x) for k in range(-most, most + 1)} for x in (0, 1)]
    return values(laws[0], laws[1], lambda out: np.asarray(out, dtype=np.int64).tolist())


def two_sided(ratio: float) -> Callable[[int], float]:
    return lambda k: (1 - ratio) / (1 + ratio) * ratio ** abs(k)


def discrete_gaussian(variance: float) -> Callable[[int], float]:
    total = sum(math.exp(-k * k / 2 / variance) for k in range(-60, 61))
    return lambda k: math.exp(-k * k / 2 / variance) / total


def short_magnitude() -> Law:
    found: dict[int, float] = {}
    for k in range(-400, 401):
        stored = int(math.copysign(abs(k) % 8, k))
        found[stored] = found.get(stored, 0.0) + two_sided(math.exp(-0.5))(k)
    return whole(lambda k: found.get(k, 0.0), 8)


def short_uniform() -> Law:
    noise: dict[int, float] = {}
    for word in range(4_096):
        u = (word + 0.5) / 4_096
        z = math.log(2 * u) if u < 0.5 else -math.log(2 * (1 - u))
        k = round(z * 16)
        noise[k] = noise.get(k, 0.0) + 1 / 4_096
    return values(
        noise, {k + 16: p for k, p in noise.items()}, lambda out: np.rint(np.asarray(out) * 16).astype(int).tolist()
    )


def logistic(y: Array) -> Array:
    return np.asarray(special.expit(y))


def bessel(y: Array) -> Array:
    """Returns the distribution function of density K₀(|z|)/π: by the integral of K₀ from 0."""
    return 0.5 + np.sign(y) * special.iti0k0(np.minimum(np.abs(y), 500))[1] / math.pi


def cut(y: Array, most: float) -> Array:
    z = np.clip(y, -most, most)
    return 0.5 + np.sign(z) * np.expm1(-np.abs(z)) / np.expm1(-most) / 2


def unit_interval() -> Law:
    edges = np.sort(np.append(np.linspace(0, 1, 401), [1e-4]))
    laws = []
    for x in (0.0, 0.25):
        law = stats.laplace(x, 0.39181)
        laws.append(lambda y, law=law: np.clip((law.cdf(y) - law.cdf(0)) / (law.cdf(1) - law.cdf(0)), 0, 1))
    return intervals(edges, laws[0], laws[1])


def stairs(inner: float, *, start: int) -> Callable[[Array], Array]:
    """Returns the distribution function of staircase noise at ε = 1, by its steps."""
    heights, edges, share = [], [0.0], math.exp(-1)
    for k in range(start, 40):
        heights += [share**k, share ** (k + 1)]
        edges += [k + inner, k + 1.0]
    edges[0] = float(start)
    mass = np.concatenate([[0.0], np.cumsum(np.diff(edges) * heights)])
    return lambda y: 0.5 + np.sign(y) * np.interp(np.abs(y), edges, mass) / mass[-1] / 2


def laplace(y: Array, scale: float = 1.0) -> Array:
    return below(y, scale)


def smart(scale: float) -> Law:
    """Cells of what one number moves: the first partial sum with it, less the one before, and its block's total.

    Both noisy figures can be had from the sums, and all other noise is the same for both neighbours.
    """
    edges = np.array([0.0, 1.0])
    parts = [np.diff(np.concatenate([[0], below(edges - x, scale), [1]])) for x in (0, 1)]
    return Law(
        cells=_numbered((3, 3), lambda out: [np.searchsorted(edges, out[:, 1] - out[:, 0]),
                                             np.searchsorted(edges, out[:, 2])]),
        first=np.outer(parts[0], parts[0]).ravel(), other=np.outer(parts[1], parts[1]).ravel(),
    )  # fmt: skip


def exact_total() -> Law:
    return Law(
        cells=lambda out: np.rint(out[:, 2]).astype(np.int64), first=np.array([1.0, 0]), other=np.array([0, 1.0])
    )


def mixed(parts: Sequence[tuple[float, float]], scale: float = 1.0) -> Callable[[Array], Array]:
    """Returns the distribution function of a number, drawn with these shares, plus Laplace noise."""
    return lambda y: np.asarray(sum(share * below(y - x, scale) for share, x in parts))


def batches(exact: float, others: int) -> Callable[[Array], Array]:
    """Returns the distribution function of a noisy mean over the realised batch; all other records are 0."""

    def law(y: Array) -> Array:
        found = np.zeros(np.shape(y))
        for number in range(others + 1):
            share = math.comb(others, number) / 2**others
            cases = [(share, 0.0, number)] if not exact else [(share / 2, 0.0, number), (share / 2, exact, number + 1)]
            for chance, total, size in cases:
                found += chance * stats.norm.cdf(y, total / max(size, 1), 2 / max(size, 1))
        return found

    return law


def factorised() -> Law:
    """Cells of the likelihood ratio's exponent: the inverse root of the sums, along the first column of the root."""
    column = np.array([math.comb(2 * k, k) / 4**k for k in range(8)])
    lags = np.subtract.outer(np.arange(8), np.arange(8))
    inverse = np.linalg.inv(np.where(lags >= 0, column[np.abs(lags)], 0.0))
    norm = float(np.linalg.norm(column))
    return intervals(
        np.linspace(-6, 8, 281), stats.norm.cdf, lambda y: stats.norm.cdf(y - norm),
        lambda out: out @ inverse.T @ column / norm,
    )  # fmt: skip


def quadrants() -> Law:
    """Cells: the first number below 0, up to 1, or above; the second below 0 or not."""
    up, down = 0.5, 0.5
    inside = -math.expm1(-1)
    first = np.array([down, 0, 0, up * inside, 0, up * (1 - inside)])
    other = np.array([down * (1 - inside), 0, down * inside, 0, 0, up])
    return Law(
        cells=_numbered((3, 2), lambda out: [np.searchsorted([0.0, 1.0], out[:, 0]), (out[:, 1] >= 0) * 1]),
        first=first, other=other,
    )  # fmt: skip


def balls() -> Law:
    """Cells of the distance from the first dataset's numbers."""

    def further(t: Array) -> Array:
        r = (np.arange(80_000) + 0.5) / 2_000
        weight = np.exp(-r) / np.exp(-r).sum()
        return np.array([weight @ np.clip(((d * d - 1 - r * r) / (2 * r) + 1) / 2, 0, 1) for d in t])

    edges = np.concatenate([np.geomspace(0.01, 1, 25), np.linspace(1.1, 8, 40)])
    return intervals(edges, lambda t: -np.expm1(-t), further, lambda out: np.linalg.norm(out, axis=1))


def cubes(shape: float) -> Law:
    """Cells of the largest absolute number."""

    def law(by: float) -> Callable[[Array], Array]:
        def within(t: Array) -> Array:
            r = (np.arange(60_000) + 0.5) / 1_000
            weight = stats.gamma(shape).pdf(r) / stats.gamma(shape).pdf(r).sum()
            shares = [np.clip((np.minimum(d - by, r) - np.maximum(-d - by, -r)) / (2 * r), 0, 1) for d in t]
            return np.array([weight @ share**3 for share in shares])

        return within

    return intervals(np.linspace(0.1, 16, 160), law(0), law(1), lambda out: np.abs(out).max(axis=1))


def on_the_curve() -> Law:
    """Cells: whether the numbers are normals of one uniform; two shifted curves meet in points alone."""

    def cells(out: Any) -> NDArray[np.int64]:
        uniform = np.arctan2(out[:, 1], out[:, 0]) / (2 * math.pi) % 1
        radius = np.sqrt(-2 * np.log(np.maximum(uniform, 1e-300)))
        return (np.abs(np.hypot(out[:, 0], out[:, 1]) - radius) <= 1e-9 * (1 + 1 / np.maximum(uniform, 1e-12))) * 1

    return Law(cells=cells, first=np.array([0.0, 1]), other=np.array([1.0, 0]))


def three_uniforms(y: Array) -> Array:
    """Returns the distribution function of Irwin and Hall, of three on [−1, 1]."""
    x = np.clip((np.asarray(y) + 3) / 2, 0, 3)
    return np.asarray(sum((-1) ** k * math.comb(3, k) * np.maximum(x - k, 0) ** 3 for k in range(4)) / 6)


_GAUSSIAN_STD = 0.309644  # (6, .3) at sensitivity 1
_FINE = np.linspace(-12, 13, 5_001)
_DECIMAL = 2 * math.log10(100)
_TEST = 2 * math.log(20)
_CROSSED = ((1, 0) * 4, (0, 1) * 4)
_THREE = ((1, 1, 1, 0, 0, 0), (0, 0, 0, 1, 1, 1))
_FOUR = ((1,) * 4 + (0,) * 4, (0,) * 4 + (1,) * 4)


def _pair(law: Callable[..., dict[Any, float]], first: Any, other: Any, *more: Any) -> Law:
    return values(law(first, *more), law(other, *more), lambda out: np.asarray(out, dtype=np.int64).tolist())


def _answers(pair: Sequence[Sequence[float]], step: Any, noise: float, start: Any) -> Law:
    laws = [sequences(each, step, noise, start) for each in pair]
    return values(laws[0], laws[1], lambda out: rows(np.asarray(out, dtype=np.int64)))


LAWS: dict[str, tuple[Callable[[], Law], ...]] = {
    "sparse vector with a gap": (lambda: first_gap(1.5, 1, 2),),
    "sparse vector with a gap, noise for monotone queries": (lambda: first_gap(1.5, 1, 1),),
    "sparse vector with gaps below": (gaps_below,),
    "sparse vector, far answers free": (lambda: _answers(_CROSSED, margins, 0.5, 1),),
    "adaptive sparse vector": (lambda: _answers(_THREE, adaptive, 0.5, 4),),
    "sparse vector, three answers, noise for one": (lambda: _answers(_FOUR, three_answers, 1, 0),),
    "sparse vector with the value compared": (value_compared,),
    "noisy max with a gap": (lambda: max_gap(2),),
    "noisy max with a gap, noise for monotone answers": (lambda: max_gap(1),),
    "noisy max of monotone counts": (lambda: _pair(exponential_max, (0, 0, 0, 0), (1, 0, 0, 0)),),
    "permute and flip without the 2": (lambda: _pair(flips, (1, 0, 0, 0), (0, 1, 1, 1), 1),),
    "exponential mechanism on normalised answers": (
        lambda: _pair(weighted, [math.exp(5), 1, 1], [math.exp(5), math.exp(5), 1]),
    ),
    "base-two exponential mechanism, rate rounded down": (
        lambda: _pair(weighted, [1] + [2**-0.5] * 19, [2**-0.5] + [1] * 19),
    ),
    "base-two exponential mechanism, rate rounded up": (lambda: _pair(weighted, [1] + [0.5] * 19, [0.5] + [1] * 19),),
    "propose, test, release": (
        lambda: released((6, 5), (0, 1), _TEST), lambda: released((0, 0), (0, 10), _TEST),
    ),
    "propose, test, release without noise in the test": (lambda: released((6, 5), (0, 1), _TEST, noisy=False),),
    "propose, test, release with the decimal logarithm": (lambda: released((0, 0), (0, 10), _DECIMAL),),
    "smooth sensitivity": (lambda: cauchy(6, math.exp(1 / 6)),),
    "smooth sensitivity, shift and dilation at ε each": (lambda: cauchy(1, _E),),
    "best of five candidates, paid once": (lambda: largest(2, lambda t: t**5),),
    "best of geometrically many candidates": (lambda: largest(3, lambda t: t / (2 - t)),),
    "union of keys, δ of one": (any_key,),
    "optimal unary code, both probabilities swapped": (
        lambda: bits([0.5, 1 / (_E + 1)] + [0.5] * 4, [0.5] * 4 + [1 / (_E + 1), 0.5]),
    ),
    "RAPPOR, both steps": (lambda: filters(11 / 16, 9 / 16),),
    "RAPPOR, two hash functions paid as one": (lambda: filters(3 / 4, 1 / 4),),
    "subset selection": (lambda: subsets(2 * _E / (2 * _E + 6)),),
    "subset selection, share of two answers": (lambda: subsets(_E / (_E + 1)),),
    "subset selection, true value first": (ordered_subsets,),
    "hash seeds without collisions": (seeds,),
    "Hadamard response": (hadamard,),
    "piecewise mechanism": (lambda: near(math.exp(0.5) / (math.exp(0.5) + 1)),),
    "piecewise mechanism, ε for half of it": (lambda: near(_E / (_E + 1)),),
    "square wave": (lambda: wave(_E / (_E / 2 + 1), 1 / (_E / 2 + 1)),),
    "square wave, the rest everywhere": (
        lambda: wave(_E / (_E / 2 + 1) + 1 / (_E / 2 + 1) / 1.5, 1 / (_E / 2 + 1) / 1.5),
    ),
    "key and value, one of them paid": (keys,),
    "lies by a modulus": (uneven_lies,),
    "gaussian, ε = 6": (lambda: shifted(stats.norm(0, _GAUSSIAN_STD).cdf, np.linspace(-5, 6, 20_001)),),
    "gaussian, ε = 6, classical std": (
        lambda: shifted(stats.norm(0, math.sqrt(2 * math.log(1.25 / 0.3)) / 6).cdf, np.linspace(-5, 6, 20_001)),
    ),
    "discrete gaussian": (lambda: whole(discrete_gaussian(4), 40),),
    "discrete gaussian, σ rounded down": (lambda: whole(discrete_gaussian(1), 20),),
    "geometric, magnitude of three bits": (short_magnitude,),
    "laplace, uniform of twelve bits": (short_uniform,),
    "geometric by coins of three bits, rounded up": (lambda: whole(two_sided(3 / 8), 40),),
    "logistic noise": (lambda: shifted(logistic, _FINE),),
    "laplace of four shares": (lambda: shifted(laplace, _FINE),),
    "laplace of four shares, two missing": (lambda: shifted(bessel, np.sort(np.append(_FINE, [1e-4, -1e-4]))),),
    "truncated laplace": (
        lambda: shifted(lambda y: cut(y, math.log1p(math.expm1(1) / 0.1)), np.linspace(-4, 5, 9_001)),
    ),
    "truncated laplace, too narrow": (lambda: shifted(lambda y: cut(y, math.log(10)), np.linspace(-4, 5, 9_001)),),
    "bounded laplace": (unit_interval,),
    "staircase, another step": (lambda: shifted(stairs(0.8, start=0), np.arange(-60, 61) / 5),),
    "staircase, levels from one": (
        lambda: shifted(stairs(1 / (1 + math.exp(0.5)), start=1), np.linspace(-12, 12, 481)),
    ),
    "smart sums": (lambda: smart(2),),
    "smart sums, noise for one": (lambda: smart(1),),
    "smart sums, totals without noise": (exact_total,),
    "bootstrapped sum": (
        lambda: intervals(np.linspace(-8, 14, 441), mixed([(1, 0)]),
                          mixed([(math.comb(5, k) * 0.2**k * 0.8 ** (5 - k), k) for k in range(6)])),
    ),
    "every second record, amplified": (
        lambda: intervals(np.linspace(-6, 18, 481), mixed([(0.5, 0), (0.5, 10)]), mixed([(0.5, 1), (0.5, 10)])),
    ),
    "mean over the realised batch": (
        lambda: intervals(np.linspace(-12, 12, 9_601), batches(0, 2), batches(1, 2)),
    ),
    "matrix mechanism, last column's norm": (factorised,),
    "noise of one sign": (quadrants,),
    "ball noise of exponential length": (balls,),
    "cube noise": (lambda: cubes(4),),
    "cube noise, a dimension too few": (lambda: cubes(3),),
    "two normals of one uniform": (on_the_curve,),
    "normal of three uniforms": (lambda: shifted(three_uniforms, np.linspace(-3, 4, 701)),),
}  # fmt: skip


@cache
def laws_of(name: str) -> tuple[Law, ...]:
    """Returns a specimen's laws, one for each of its pairs."""
    return tuple(law() for law in LAWS[name])
