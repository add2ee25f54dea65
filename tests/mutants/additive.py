"""Specimens that add noise to numbers: wrong scales and sensitivities; bounded, rounded, shared or repeated noise."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from mutants.specimen import Array, Run, Specimen, column
from privcheck.runtime.auditors import MechanismClaim
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP

_ONE = PureDP(1)
_FAIR = ApproxDP(1, "0.00001")
_GAUSSIAN_STD = 3.7306  # (1, 10⁻⁵) at sensitivity 1 (Balle & Wang 2018)


def laplace(scale: float, *, factor: float = 1.0) -> Run:
    """Returns x·factor + Laplace noise on every number."""
    return lambda given, runs, rng: _flat(
        column(given, runs) * factor + rng.laplace(0, scale, (runs, np.asarray(given).size))
    )


def gaussian(std: float) -> Run:
    """Returns x + Gaussian noise on every number."""
    return lambda given, runs, rng: _flat(column(given, runs) + rng.normal(0, std, (runs, np.asarray(given).size)))


def geometric(epsilon: float) -> Run:
    """Returns x + two-sided geometric noise, P(k) ∝ e^(−ε|k|)."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        share = -math.expm1(-epsilon)
        shape = (runs, np.asarray(given).size)
        return _flat(column(given, runs) + rng.geometric(share, shape) - rng.geometric(share, shape))

    return run


def _flat(rows: Array) -> Array:
    return rows[:, 0] if rows.shape[1] == 1 else rows


def _clamped(scale: float, low: float, high: float) -> Run:
    return lambda given, runs, rng: np.clip(given + rng.laplace(0, scale, runs), low, high)


def _bounded_noise(scale: float, most: float) -> Run:
    return lambda given, runs, rng: given + np.clip(rng.laplace(0, scale, runs), -most, most)


def _redrawn_noise(scale: float, most: float) -> Run:
    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        tail = math.exp(-most / scale)
        size = -scale * np.log1p(-rng.random(runs) * (1 - tail))
        noisy: Array = given + size * rng.choice([-1.0, 1.0], runs)
        return noisy

    return run


def _uniform(width: float) -> Run:
    return lambda given, runs, rng: given + rng.uniform(-width, width, runs)


def _one_sided(scale: float) -> Run:
    return lambda given, runs, rng: given + rng.exponential(scale, runs)


def _rounded(scale: float, step: float, *, before: bool) -> Run:
    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noise = rng.laplace(0, scale, runs)
        return given + np.round(noise / step) * step if before else np.round((given + noise) / step) * step

    return run


def _shared(scale: float) -> Run:
    return lambda given, runs, rng: column(given, runs) + rng.laplace(0, scale, (runs, 1))


def _correlated(scale: float, leak: float) -> Run:
    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        common = rng.normal(0, scale, (runs, 1))
        noisy: Array = column(given, runs) + common + rng.normal(0, leak, (runs, np.asarray(given).size))
        return noisy

    return run


def _opposite(scale: float) -> Run:
    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        noise = rng.laplace(0, scale, (runs, 1))
        noisy: Array = column(given, runs) + np.concatenate([noise, -noise], axis=1)
        return noisy

    return run


def _multiplied(scale: float) -> Run:
    return lambda given, runs, rng: column(given, runs) * (1 + rng.laplace(0, scale, (runs, 1)))


def _same_seed(scale: float) -> Run:
    return lambda given, runs, _: given + np.random.default_rng(7).laplace(0, scale, runs)


def _few_seeds(scale: float) -> Run:
    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        table = np.random.default_rng(3).laplace(0, scale, 256)  # one byte of seed
        return given + table[rng.integers(0, 256, runs)]

    return run


def _sometimes_exact(scale: float, chance: float) -> Run:
    return lambda given, runs, rng: given + rng.laplace(0, scale, runs) * (rng.random(runs) >= chance)


def _sometimes_tells(scale: float, chance: float) -> Run:
    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        return np.where(rng.random(runs) < chance, 1e6 + given, given + rng.laplace(0, scale, runs))

    return run


def _elsewhere(scale: float, chance: float) -> Run:
    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        return given + rng.laplace(0, scale, runs) + 40 * given * (rng.random(runs) < chance)

    return run


def _scale_of_data(scale: float) -> Run:
    return lambda given, runs, rng: given + rng.laplace(0, scale * (1 + given), runs)


def _cauchy(scale: float) -> Run:
    return lambda given, runs, rng: given + scale * rng.standard_cauchy(runs)


def _averaged(scale: float, times: int) -> Run:
    return lambda given, runs, rng: given + rng.laplace(0, scale, (runs, times)).mean(axis=1)


def _repeated(scale: float, times: int) -> Run:
    return lambda given, runs, rng: given + rng.laplace(0, scale, (runs, times))


def _student(freedom: float, scale: float) -> Run:
    return lambda given, runs, rng: given + scale * rng.standard_t(freedom, runs)


def _specimen(name: str, run: Run, claim: MechanismClaim, *, broken: bool, loss: float | None = None) -> Specimen:
    return Specimen(name=name, run=run, claim=claim, broken=broken, loss=loss)


def _vectors(name: str, run: Run, claim: MechanismClaim, *given: object, broken: bool, loss: float | None) -> Specimen:
    pair = tuple(np.asarray(one, dtype=np.float64) for one in given)
    return Specimen(name=name, run=run, claim=claim, pairs=((pair[0], pair[1]),), broken=broken, loss=loss)


_CAUCHY = 2 * math.asinh(0.5)  # ln of the largest ratio of two Cauchy densities one unit apart, at scale 1
_CHANCE = 0.02
_SQUARES = (np.zeros(4), np.full(4, 0.5))

ADDITIVE = (
    _specimen("laplace", laplace(1), _ONE, broken=False, loss=1),
    _specimen("laplace, ε = 1/10", laplace(10), PureDP("0.1"), broken=False, loss=0.1),
    _specimen("laplace, ε = 3", laplace(1 / 3), PureDP(3), broken=False, loss=3),
    _specimen("laplace at half scale", laplace(0.5), _ONE, broken=True, loss=2),
    _specimen("laplace at half scale, ε = 1/10", laplace(5), PureDP("0.1"), broken=True, loss=0.2),
    _specimen("laplace at half scale, ε = 3", laplace(1 / 6), PureDP(3), broken=True, loss=6),
    _specimen("laplace, sensitivity short by √2", laplace(1, factor=math.sqrt(2)), _ONE, broken=True, loss=2**0.5),
    _specimen("laplace with ε for 1/ε", laplace(0.5), PureDP("0.5"), broken=True, loss=2),
    _specimen("laplace, variance for scale", laplace(0.7071), _ONE, broken=True, loss=2**0.5),
    _specimen("gaussian", gaussian(_GAUSSIAN_STD), _FAIR, broken=False, loss=1),
    _specimen("gaussian at half std", gaussian(_GAUSSIAN_STD / 2), _FAIR, broken=True, loss=2.17),
    _specimen("gaussian, std for variance", gaussian(math.sqrt(_GAUSSIAN_STD)), _FAIR, broken=True, loss=2.1),
    _specimen("gaussian called pure", gaussian(0.6), PureDP(2), broken=True, loss=math.inf),
    _specimen("gaussian, zCDP", gaussian(1), ZCDP("1/2"), broken=False, loss=0.5),
    _specimen("gaussian, zCDP, std for variance", gaussian(math.sqrt(2)), ZCDP("1/8"), broken=True, loss=0.25),
    _specimen("gaussian, zCDP, sensitivity short by 2", gaussian(1), ZCDP("1/8"), broken=True, loss=0.5),
    _specimen("gaussian, GDP", gaussian(1), GaussianDP(1), broken=False, loss=1),
    _specimen("gaussian, GDP, short by √2", gaussian(1), GaussianDP("0.7072"), broken=True, loss=1),
    _specimen("laplace called zCDP", laplace(1), ZCDP("1/2"), broken=False, loss=0.368),
    _specimen("laplace at half scale called zCDP", laplace(0.5), ZCDP("1/2"), broken=True),
    _specimen("geometric", geometric(1), _ONE, broken=False, loss=1),
    _specimen("geometric at half scale", geometric(2), _ONE, broken=True, loss=2),
    _specimen("geometric, ε = 1/4, claimed for half", geometric(0.5), PureDP("1/4"), broken=True, loss=0.5),
    _specimen("clamped laplace", _clamped(1, 0, 1), _ONE, broken=False, loss=1),
    _specimen("bounded noise", _bounded_noise(1, 3), _ONE, broken=True, loss=math.inf),
    _specimen("noise redrawn until small", _redrawn_noise(1, 2), _ONE, broken=True, loss=math.inf),
    _specimen("uniform noise", _uniform(5), _ONE, broken=True, loss=math.inf),
    _specimen("uniform noise, paid for by δ", _uniform(5), ApproxDP(0, "0.1"), broken=False, loss=0),
    _specimen("uniform noise, half as wide", _uniform(2.5), ApproxDP(0, "0.1"), broken=True),
    _specimen("one-sided noise", _one_sided(1), _ONE, broken=True, loss=math.inf),
    _specimen("rounded after noise", _rounded(1, 0.25, before=False), _ONE, broken=False, loss=1),
    Specimen(
        name="rounded before adding",
        run=_rounded(1, 0.01, before=True),
        claim=_ONE,
        pairs=((0.0, 0.777),),
        broken=True,
        loss=math.inf,
    ),
    _specimen("same seed every time", _same_seed(1), _ONE, broken=True, loss=math.inf),
    _specimen("256 seeds", _few_seeds(1), _ONE, broken=True, loss=math.inf),
    _specimen("no noise once in 50", _sometimes_exact(1, _CHANCE), _ONE, broken=True, loss=math.inf),
    _specimen("tells once in 100", _sometimes_tells(1, 0.01), _ONE, broken=True, loss=math.inf),
    _specimen("tells once in 100, paid for by δ", _sometimes_tells(1, 0.01), ApproxDP(1, "0.01"), broken=False, loss=1),
    _specimen("δ spent twice", _sometimes_tells(1, 0.02), ApproxDP(1, "0.01"), broken=True, loss=math.inf),
    _specimen("another law once in 200", _elsewhere(1, 0.005), _ONE, broken=True, loss=math.inf),
    Specimen(
        name="fine noise before adding",
        run=_rounded(1, 1e-5, before=True),
        claim=_ONE,
        pairs=((0.0, 0.7777774),),
        broken=True,
        loss=math.inf,
    ),
    _vectors("factor in common", _multiplied(1), PureDP(3), (1, 2, 3), (1, 2, 4), broken=True, loss=math.inf),
    _specimen("scale taken from the data", _scale_of_data(1), _ONE, broken=True, loss=math.inf),
    _specimen("cauchy", _cauchy(1), _ONE, broken=False, loss=_CAUCHY),
    _specimen("cauchy at half scale", _cauchy(0.5), _ONE, broken=True, loss=2 * math.asinh(1)),
    _specimen("student, 3 degrees", _student(3, 2.0), PureDP("1"), broken=False, loss=0.87),
    _specimen("mean of four draws", _averaged(1, 4), _ONE, broken=True, loss=4),
    _specimen("four answers, composition counted once", _repeated(1, 4), _ONE, broken=True, loss=4),
    _specimen("two answers at half budget", _repeated(2, 2), _ONE, broken=False, loss=1),
    _vectors("noise shared between coordinates", _shared(1), _ONE, (0, 0), (1, 0), broken=True, loss=math.inf),
    _vectors("noise shared between ten", _shared(1), _ONE, np.zeros(10), np.eye(10)[3], broken=True, loss=math.inf),
    _vectors("opposite noise", _opposite(1), _ONE, (0, 0), (1, 0), broken=True, loss=math.inf),
    _vectors("noise that multiplies", _multiplied(1), _ONE, (1, 1), (1, 2), broken=True, loss=math.inf),
    _vectors("correlated noise", _correlated(1, 0.2), ZCDP("1/2"), (0, 0), (1, 0), broken=True, loss=None),
    _vectors("ℓ2 noise for four", gaussian(1), ZCDP("1/2"), *_SQUARES, broken=False, loss=0.5),
    _vectors("ℓ2 noise at ℓ∞ sensitivity", gaussian(0.5), ZCDP("1/2"), *_SQUARES, broken=True, loss=2),
    _vectors("ℓ1 noise at ℓ2 sensitivity", laplace(1), _ONE, *_SQUARES, broken=True, loss=2),
    _vectors("ℓ1 noise for four", laplace(2), _ONE, *_SQUARES, broken=False, loss=1),
    _specimen(
        "gaussian threshold", lambda g, n, r: (g + r.normal(0, 1, n) > float(ndtri(0.9))) * 1, ZCDP("1/2"), broken=False
    ),
)
