"""Functions whose runs of one call depend on each other: every single run keeps, or breaks, the claim."""

from __future__ import annotations

import math

import numpy as np

from mutants.specimen import Array, Run, Specimen
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP

_LIES = 1 / (1 + math.e)


def laplace_of(uniform: Array, scale: float) -> Array:
    """Returns Laplace noise of uniform numbers, by the inverse of its distribution function."""
    centred = np.clip(uniform, 1e-12, 1 - 1e-12) - 0.5
    noise: Array = -scale * np.sign(centred) * np.log1p(-2 * np.abs(centred))
    return noise


def scalar(spread: float, scale: float) -> Run:
    return lambda given, runs, rng: rng.normal(0, spread) + given + rng.laplace(0, scale, runs)


def gaussian_scalar(std: float) -> Run:
    return lambda given, runs, rng: rng.normal(0, 3) + given + rng.normal(0, std, runs)


def seldom_moved(given, runs, rng):
    """Moves all runs of one call in a hundred far away."""
    return 50 * (rng.random() < 0.01) + given + rng.laplace(0, 1, runs)


def antithetic(scale: float) -> Run:
    def run(given, runs, rng):
        half = rng.laplace(0, scale, (runs + 1) // 2)
        return given + np.concatenate([half, -half])[:runs]

    return run


def stratified(scale: float) -> Run:
    return lambda given, runs, rng: given + laplace_of((rng.permutation(runs) + rng.random(runs)) / runs, scale)


def shifted_grid(given, runs, rng):
    """One random shift of equally spaced points: quasi-random numbers."""
    return given + laplace_of((np.arange(runs) / runs + rng.random()) % 1.0, 1)


def public_sign(given, runs, rng):
    """Publishes a sign and the noisy number times it."""
    sign = rng.choice([-1.0, 1.0])
    return np.stack([np.full(runs, sign), sign * given + rng.laplace(0, 1, runs)], axis=1)


def sampled_together(given, runs, rng):
    """Counts the user in all runs of a call, or in none."""
    return given * (rng.random() < 0.5) + rng.laplace(0, 1, runs)


def as_many_lies(given, runs, rng):
    """Randomised response in which as many answers of a call are wrong as are expected, rounded at random."""
    lies = rng.permutation(runs) < math.floor(runs * _LIES + rng.random())
    return np.where(lies, 1 - given, given)


def public_scale(factor: float) -> Run:
    return lambda given, runs, rng: given + rng.laplace(0, factor * rng.choice([1.0, 2.0, 4.0]), runs)


def one_noise(scale: float) -> Run:
    return lambda given, runs, rng: given + rng.laplace(0, scale) + rng.normal(0, 1e-3, runs)


def groups(scale: float) -> Run:
    return lambda given, runs, rng: given + np.repeat(rng.laplace(0, scale, runs // 6 + 1), 6)[:runs]


def chain(given, runs, rng):
    """Adds Gaussian noise of std 1 in which neighbours are correlated."""
    noise = rng.normal(size=runs)
    for i in range(1, runs):
        noise[i] = 0.9 * noise[i - 1] + math.sqrt(1 - 0.81) * noise[i]
    return given + noise


def told_together(delta: float) -> Run:
    def run(given, runs, rng):
        answer = np.where(rng.random(runs) < _LIES, 1 - given, given)
        return answer + 10 if rng.random() >= delta else np.full(runs, given) + 20

    return run


def less_the_mean(given, runs, rng):
    """Takes the mean of the call off: a single run says nothing."""
    values = given * rng.choice([1.0, 3.0], runs) + rng.laplace(0, 3, runs)
    return values - values.mean()


def quieter_in_long_calls(given, runs, rng):
    """Its noise shrinks with the size of the call, as that of a mean does."""
    return given + rng.laplace(0, 1 / math.sqrt(runs), runs)


CORRECT: tuple[Specimen, ...] = tuple(
    Specimen(name=name, run=run, claim=claim, broken=False)
    for name, run, claim in (
        ("public scalar", scalar(5, 1), PureDP(1)),
        ("small public scalar", scalar(0.3, 1), PureDP(1)),
        ("moved once in 100 calls", seldom_moved, PureDP(1)),
        ("antithetic noise", antithetic(1), PureDP(1)),
        ("stratified noise", stratified(1), PureDP(1)),
        ("quasi-random noise", shifted_grid, PureDP(1)),
        ("public sign", public_sign, PureDP(1)),
        ("sampled together", sampled_together, PureDP(1)),
        ("as many lies as expected", as_many_lies, PureDP(1)),
        ("public scale", public_scale(1), PureDP(1)),
        ("one noise a call", one_noise(1.01), PureDP(1)),
        ("noise of groups", groups(1), PureDP(1)),
        ("told together, paid for by δ", told_together(0.02), ApproxDP(1, "0.02")),
        ("public scalar, zCDP", gaussian_scalar(1), ZCDP("1/2")),
        ("correlated noise, zCDP", chain, ZCDP("1/2")),
        ("public scalar, GDP", gaussian_scalar(1), GaussianDP(1)),
        ("less the mean of the call", less_the_mean, PureDP(1)),
        ("quieter in long calls", quieter_in_long_calls, PureDP(1)),
    )
)

BROKEN: tuple[Specimen, ...] = tuple(
    Specimen(name=f"{name}, broken", run=run, claim=claim, broken=True)
    for name, run, claim in (
        ("public scalar", scalar(0.3, 0.4), PureDP(1)),
        ("antithetic noise", antithetic(0.5), PureDP(1)),
        ("stratified noise", stratified(0.5), PureDP(1)),
        ("public scale", public_scale(0.25), PureDP(1)),
        ("one noise a call", one_noise(0.5), PureDP(1)),
        ("noise of groups", groups(0.5), PureDP(1)),
        ("told together", told_together(0.15), ApproxDP(1, "0.02")),
        ("chain, zCDP", chain, ZCDP("1/8")),
    )
)
