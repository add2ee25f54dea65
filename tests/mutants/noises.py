"""Specimens whose noise is of another law: words too short, shares missing, supports cut, sums and samples wrong.

Further cases of the literature; `mutants.laws` has their exact laws on the pairs.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mutants.specimen import Array, Run, Specimen, column
from privcheck.runtime.auditors import MechanismClaim
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP

_ONE = PureDP(1)


def gaussian(std: float) -> Run:
    """Returns x + Gaussian noise."""
    return lambda given, runs, rng: given + rng.normal(0, std, runs)


def discrete_gaussian(variance: float) -> Run:
    """Returns x + discrete Gaussian noise, by table."""
    values = np.arange(-40, 41)
    shares = np.cumsum(np.exp(-(values**2) / (2 * variance)))
    return lambda given, runs, rng: given + values[np.searchsorted(shares / shares[-1], rng.random(runs), "right")]


def short_magnitude(epsilon: float, bits: int) -> Run:
    """Returns x + geometric noise whose magnitude is stored in so many bits."""
    share = -math.expm1(-epsilon)

    def run(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        noise = rng.geometric(share, runs) - rng.geometric(share, runs)
        return given + np.sign(noise) * (np.abs(noise) % 2**bits)

    return run


def short_uniform(bits: int, grid: float) -> Run:
    """Returns x + Laplace noise from a uniform of so many bits, rounded to a grid."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        uniform = (rng.integers(0, 2**bits, runs) + 0.5) / 2**bits - 0.5
        noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
        return np.round((given + noise) / grid) * grid

    return run


def geometric_by_coins(heads: int, bits: int) -> Run:
    """Returns x + two-sided geometric noise, by coins that go on with probability `heads`/2^`bits`."""
    stop = 1 - heads / 2**bits
    return lambda given, runs, rng: given + rng.geometric(stop, runs) - rng.geometric(stop, runs)


def logistic(given: float, runs: int, rng: np.random.Generator) -> Array:
    """Returns x + the difference of −ln U and −ln(1 − U): exponentials that share their uniform."""
    uniform = rng.random(runs)
    return given - np.log1p(-uniform) + np.log(uniform + 1e-300)


def gamma_shares(shares: int) -> Run:
    """Returns x + the noise of so many workers, four of whom add up to Laplace noise."""
    return lambda given, runs, rng: (
        given + (rng.gamma(0.25, 1, (runs, shares)) - rng.gamma(0.25, 1, (runs, shares))).sum(axis=1)
    )


def cut_laplace(most: float) -> Run:
    """Returns x + Laplace noise conditioned on being at most `most`."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        size = -np.log1p(rng.random(runs) * math.expm1(-most))
        noisy: Array = given + np.where(rng.random(runs) < 0.5, size, -size)
        return noisy

    return run


def inside_unit(scale: float) -> Run:
    """Returns x with Laplace noise conditioned on the result being in [0, 1], by the inverse of its law."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        left, right = -math.expm1(-given / scale), -math.expm1(-(1 - given) / scale)  # twice the parts of the law
        mass = rng.random(runs) * (left + right)
        below = given + scale * np.log1p(-np.minimum(mass, left))
        return np.where(mass < left, below, given - scale * np.log1p(-np.maximum(mass - left, 0)))

    return run


def staircase(inner: float, *, start: int = 0) -> Run:
    """Returns x with staircase noise at ε = 1; its first step has the width `inner`; levels begin at `start`."""
    share = math.exp(-1)

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        level = rng.geometric(1 - share, runs) - 1 + start
        outer = rng.random(runs) >= inner / (inner + (1 - inner) * share)
        place = rng.random(runs)
        size = level + np.where(outer, inner + (1 - inner) * place, inner * place)
        return given + np.where(rng.random(runs) < 0.5, size, -size)

    return run


def smart_sums(scale: float, block: int, *, totals: bool = True) -> Run:
    """Returns noisy prefix sums: noise on each number of the block so far, and on each finished block's total."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        sums, done, partly = np.empty_like(exact), np.zeros(runs), np.zeros(runs)
        for i in range(exact.shape[1]):
            if i % block == block - 1:
                done += exact[:, i - block + 1 : i + 1].sum(axis=1) + totals * rng.laplace(0, scale, runs)
                partly = np.zeros(runs)
            else:
                partly += exact[:, i] + rng.laplace(0, scale, runs)
            sums[:, i] = done + partly
        return sums

    return run


def bootstrapped(scale: float) -> Run:
    """Returns the noisy sum of as many records drawn with replacement."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        return given[rng.integers(0, given.size, (runs, given.size))].sum(axis=1) + rng.laplace(0, scale, runs)

    return run


def every_second(given: Array, runs: int, rng: np.random.Generator) -> Array:
    """Returns the noisy sum of every second record, from the first on or from the second."""
    sums = np.array([given[::2].sum(), given[1::2].sum()])
    noisy: Array = sums[rng.integers(0, 2, runs)] + rng.laplace(0, 1, runs)
    return noisy


def realised_batch(given: Array, runs: int, rng: np.random.Generator) -> Array:
    """Returns the noisy mean of a Poisson sample of one half, std 2, over the number of records it happens to have."""
    taken = rng.random((runs, given.size)) < 0.5
    mean: Array = (taken @ given + rng.normal(0, 2, runs)) / np.maximum(taken.sum(axis=1), 1)
    return mean


def square_root(steps: int) -> Array:
    """Returns the lower triangular square root of prefix sums, (steps, steps)."""
    entries = np.cumprod(np.array([1.0, *((2 * k - 1) / (2 * k) for k in range(1, steps))]))
    lags = np.subtract.outer(np.arange(steps), np.arange(steps))
    root: Array = np.where(lags >= 0, entries[np.abs(lags)], 0.0)
    return root


def factorised_sums(given: object, runs: int, rng: np.random.Generator) -> Array:
    """Returns prefix sums with the noise of their square root, unit normals: enough for the last user."""
    exact = column(given, runs)
    return np.cumsum(exact, axis=1) + rng.normal(0, 1, exact.shape) @ square_root(exact.shape[1]).T


def shared_sign(given: object, runs: int, rng: np.random.Generator) -> Array:
    """Returns numbers with Laplace noise of one sign."""
    exact = column(given, runs)
    noisy: Array = exact + rng.choice([-1.0, 1.0], (runs, 1)) * rng.exponential(1, exact.shape)
    return noisy


def ball_of_exponential_radius(given: object, runs: int, rng: np.random.Generator) -> Array:
    """Returns three numbers with noise of any direction and of an exponential length, which should be Gamma(3)."""
    towards = rng.normal(0, 1, (runs, 3))
    noisy: Array = column(given, runs) + towards / np.linalg.norm(towards, axis=1, keepdims=True) * rng.exponential(
        1, (runs, 1)
    )
    return noisy


def cube(shape: float) -> Run:
    """Returns three numbers with noise from a cube, half of whose side is a gamma number: K-norm noise if Gamma(4)."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        noisy: Array = column(given, runs) + rng.gamma(shape, 1, (runs, 1)) * rng.uniform(-1, 1, (runs, 3))
        return noisy

    return run


def one_uniform_normals(given: object, runs: int, rng: np.random.Generator) -> Array:
    """Returns two numbers with the normals of Box and Muller, radius and angle from one uniform."""
    uniform = 1 - rng.random(runs)
    radius, angle = np.sqrt(-2 * np.log(uniform)), 2 * math.pi * uniform
    return column(given, runs) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def three_uniforms(given: float, runs: int, rng: np.random.Generator) -> Array:
    """Returns x + a sum of three uniforms of variance ⅓, taken for a normal."""
    noisy: Array = given + rng.uniform(-1, 1, (runs, 3)).sum(axis=1)
    return noisy


def _added(
    name: str,
    run: Run,
    claim: MechanismClaim,
    *,
    broken: bool,
    loss: float,
    why: str,
    source: str,
    kind: Literal["exact", "at least", "at most"] = "exact",
) -> Specimen:
    return Specimen(
        name=name, run=run, claim=claim, broken=broken, loss=loss, loss_is=kind, why=why, source=source, pairs=((0, 1),)
    )  # fmt: skip


_PATH = (np.zeros(6), np.array([0, 1.0, 0, 0, 0, 0]))
_CORNERS = (np.zeros(3), np.ones(3))
_FIRST_OF_TWO = (np.zeros(2), np.array([1.0, 0.0]))
_FIRST_OF_EIGHT = (np.zeros(8), np.eye(8)[0])
_BAGGED = (np.zeros(5), np.array([1.0, 0, 0, 0, 0]))
_STRIPES = (np.array([0.0, 1] * 10), np.array([1.0, 1] + [0.0, 1] * 9))
_ROOT_NORM = float(np.linalg.norm(square_root(8)[:, 0]))
_FAR_STD = math.sqrt(2 * math.log(1.25 / 0.3)) / 6
_WIDE = math.log1p(math.expm1(1) / 0.1)  # A of Geng et al. at ε = 1 and δ = 1/20

NOISES: tuple[Specimen, ...] = (
    _added(
        "gaussian, ε = 6", gaussian(0.309644), ApproxDP(6, "0.3"), broken=False, loss=6, why="the exact curve",
        source="Balle & Wang 2018",
    ),
    _added(
        "gaussian, ε = 6, classical std", gaussian(_FAR_STD), ApproxDP(6, "0.3"), broken=True, loss=7.252,
        why="√(2 ln(1.25/δ))/ε is proved for ε ≤ 1 alone", source="Zhao et al. 2019; Balle & Wang 2018",
    ),
    _added(
        "discrete gaussian", discrete_gaussian(4), ZCDP("1/8"), broken=False, loss=0.125, why="ρ = Δ²/(2σ²)",
        source="Canonne, Kamath & Steinke 2020",
    ),
    _added(
        "discrete gaussian, σ rounded down", discrete_gaussian(1), ZCDP("0.1386"), broken=True, loss=0.5,
        why="σ of 1.9 becomes 1: ρ = ½", source="Canonne, Kamath & Steinke 2020",
    ),
    _added(
        "geometric, magnitude of three bits", short_magnitude(0.5, 3), PureDP("1/2"), broken=True, loss=math.inf,
        why="beyond 7 it begins again: −7 of 0 alone", source="Balcer & Vadhan 2018 (finite computers)",
    ),
    _added(
        "laplace, uniform of twelve bits", short_uniform(12, 1 / 16), _ONE, broken=True, loss=math.inf,
        why="in the tails 4,096 values leave holes, in other places for 0 and 1", source="Mironov 2012",
    ),
    _added(
        "geometric by coins of three bits, rounded up", geometric_by_coins(3, 3), _ONE, broken=False,
        loss=math.log(8 / 3), why="3/8 is above 1/e", source="Balcer & Vadhan 2018; Ghosh et al. 2012",
    ),
    _added(
        "logistic noise", logistic, _ONE, broken=False, loss=1,
        why="the slope of ln f is below 1: two exponentials of one uniform", source="Devroye 1986",
    ),
    _added(
        "laplace of four shares", gamma_shares(4), _ONE, broken=False, loss=1, why="Laplace is infinitely divisible",
        source="Ács & Castelluccia 2011",
    ),
    _added(
        "laplace of four shares, two missing", gamma_shares(2), _ONE, broken=True, loss=math.inf,
        why="the density is Bessel's K₀, without bound at 0", source="Ács & Castelluccia 2011",
    ),
    _added(
        "truncated laplace", cut_laplace(_WIDE), ApproxDP(1, "0.05"), broken=False, loss=1,
        why="δ = (e^ε − 1)/(2(e^A − 1))", source="Geng, Ding, Guo & Kumar 2020",
    ),
    _added(
        "truncated laplace, too narrow", cut_laplace(math.log(10)), ApproxDP(1, "0.05"), broken=True, loss=math.inf,
        why="A = ln(1/(2δ)): .095 lies beyond", source="Geng, Ding, Guo & Kumar 2020",
    ),
    Specimen(
        name="bounded laplace", run=inside_unit(0.39181), claim=_ONE, pairs=((0.0, 0.25),), broken=False, loss=1,
        why="scale Δ/(ε − ln C(Δ)/C(0))", source="Holohan et al. 2020",
    ),
    _added(
        "staircase, another step", staircase(0.8), _ONE, broken=False, loss=1, why="any width of the first step",
        source="Geng & Viswanath 2014",
    ),
    _added(
        "staircase, levels from one", staircase(1 / (1 + math.exp(0.5)), start=1), _ONE, broken=True, loss=math.inf,
        why="numpy's geometric begins at 1: nothing within 1 of the number", source="Geng & Viswanath 2014",
    ),
    Specimen(
        name="smart sums", run=smart_sums(2, 3), claim=_ONE, pairs=(_PATH,), broken=False, loss=1,
        why="every number is in one block and in one partial sum", source="Chan, Shi & Song 2011; Barthe et al. 2012",
    ),
    Specimen(
        name="smart sums, noise for one", run=smart_sums(1, 3), claim=_ONE, pairs=(_PATH,), broken=True, loss=2,
        why="every number is in one block and in one partial sum", source="Chan, Shi & Song 2011; Barthe et al. 2012",
    ),
    Specimen(
        name="smart sums, totals without noise", run=smart_sums(1, 3, totals=False), claim=_ONE, pairs=(_PATH,),
        broken=True, loss=math.inf, why="the third sum is exact", source="Ding et al. 2018 (StatDP)",
    ),
    Specimen(
        name="bootstrapped sum", run=bootstrapped(1), claim=_ONE, pairs=(_BAGGED,), broken=True,
        loss=5 * math.log1p(math.expm1(1) / 5), why="Σ P(k)·e^k, k ~ Bin(5, 1/5): a record is drawn more than once",
        source="Wang, Cheng & Awan 2022",
    ),
    Specimen(
        name="every second record, amplified", run=every_second, claim=PureDP("0.6202"), pairs=(_STRIPES,),
        broken=True, loss=0.99992, why="the others tell which half it was", source="Balle, Barthe & Gaboardi 2018",
    ),
    Specimen(
        name="mean over the realised batch", run=realised_batch, claim=ApproxDP("0.2", "0.0398"),
        pairs=((np.zeros(2), np.array([0.0, 0, 1])),), broken=True, loss=0.28325,
        why="the noise shrinks with every record in the batch", source="meta-pytorch/opacus#571",
    ),
    Specimen(
        name="matrix mechanism, last column's norm", run=factorised_sums, claim=GaussianDP(1),
        pairs=(_FIRST_OF_EIGHT,), broken=True, loss=_ROOT_NORM, why="the first user is in eight rows of the root",
        source="Fichtenberger, Henzinger & Upadhyay 2023; Denisov et al. 2022",
    ),
    Specimen(
        name="noise of one sign", run=shared_sign, claim=_ONE, pairs=(_FIRST_OF_TWO,), broken=True, loss=math.inf,
        why="unlike signs are impossible for zeros", source="Mironov 2012 (sign and magnitude drawn apart)",
    ),
    Specimen(
        name="ball noise of exponential length", run=ball_of_exponential_radius, claim=_ONE,
        pairs=((np.zeros(3), np.eye(3)[0]),), broken=True, loss=math.inf, why="density e^(−r)/r², without bound at 0",
        source="Chaudhuri, Monteleoni & Sarwate 2011",
    ),
    Specimen(
        name="cube noise", run=cube(4), claim=_ONE, pairs=(_CORNERS,), broken=False, loss=1, loss_is="at most",
        why="density ∝ e^(−‖z‖∞), ‖Δ‖∞ = 1", source="Hardt & Talwar 2010",
    ),
    Specimen(
        name="cube noise, a dimension too few", run=cube(3), claim=_ONE, pairs=(_CORNERS,), broken=True, loss=math.inf,
        why="density ∝ E₁(‖z‖∞), without bound at 0", source="Hardt & Talwar 2010",
    ),
    Specimen(
        name="two normals of one uniform", run=one_uniform_normals, claim=GaussianDP(1), pairs=(_FIRST_OF_TWO,),
        broken=True, loss=math.inf, why="the noise lies on one curve", source="Box & Muller 1958",
    ),
    _added(
        "normal of three uniforms", three_uniforms, GaussianDP(1), broken=True, loss=math.inf,
        why="nothing beyond 3", source="Devroye 1986 (central limit)",
    ),
)  # fmt: skip
