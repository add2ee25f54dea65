"""The reachable limit: the bound that the best test could reach with a number of runs if the declaration is exact.

Every report prints it beside its bound, so that a weak bound is not mistaken for a private mechanism. It is computed
from the declared law before any run, by convolution on a grid: an estimate (of the median), never a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.declare.mechanisms import lacks
from privcheck_audits.bounds import (
    CoinFlip,
    CurveFlip,
    GuessPlan,
    anytime_epsilon,
    anytime_mu,
    bound_at_ranks,
    guess_plan,
)
from privcheck_audits.engine.scores import MovedGroup, Told, likelihood_trials

_POINTS: Final = 1 << 15  # of the grid
_WIDTH: Final = 9.0  # standard deviations of a Gaussian's likelihood ratio that the grid covers
_SEARCHED: Final = 0.9  # of α, while the favourite is looked for: about what it gets
_RUNS: Final = 1 << 17  # simulated where a law of noise gives no law of its loss
_SHARES: Final = np.geomspace(1 / 4096, 1.0, 241)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossLaw:
    """Error probability of the sign of the likelihood ratio when D and D′ are equally likely, largest |ratio| first.

    Attributes:
        share: (points,) shares of runs with the largest |log-likelihood ratio|, ascending from 0 to 1.
        errors: (points,) the probability that a run is among that share and its sign is wrong.
    """

    share: NDArray[np.float64]
    errors: NDArray[np.float64]

    def error_rate(self, share: float) -> float:
        """Error rate of guessing by the sign on a share of runs; the share is above 0."""
        return float(np.interp(share, self.share, self.errors)) / share


def loss_law(groups: Sequence[Told]) -> LossLaw:
    """Law of the likelihood ratio of the declared noise at the coordinates that differ.

    If a noise law has no `loss_masses`, or a procedure is run, the law is that of simulated runs.

    Raises:
        ParameterError: A noise law has no likelihood ratio either.
    """
    moved = [group for group in groups if isinstance(group, MovedGroup)]
    others = [group for group in moved if not group.noise.gaussian]
    if len(moved) < len(groups) or any(lacks(type(group.noise), "loss_masses") for group in others):
        return sample_law(likelihood_trials(groups, np.random.default_rng(0), _RUNS).score)
    by_law = {
        law: np.concatenate([g.noise.loss_steps(g.change) for g in others if type(g.noise) is law])
        for law in dict.fromkeys(type(group.noise) for group in others)
    }
    steps = np.concatenate([np.zeros(0), *by_law.values()])
    mu = float(np.sqrt(sum((g.change**2).sum() / g.noise.scale**2 for g in moved if g.noise.gaussian)))
    width = float(steps.sum()) + mu**2 / 2 + _WIDTH * mu
    if width == 0:
        return _accumulate(np.zeros(1), np.ones(1))
    half = _POINTS // 2 - 1
    cell = width / (half - steps.size)  # room for the rounding of each step to the grid
    transform = np.ones(_POINTS // 2 + 1, dtype=np.complex128)
    for law, moves in by_law.items():
        for step, count in zip(*np.unique(moves, return_counts=True), strict=True):
            transform *= np.fft.rfft(_centre(law.loss_masses(float(step), cell))) ** int(count)
    if mu > 0:
        transform *= np.fft.rfft(_gaussian(mu, cell))
    under_first = np.maximum(np.fft.irfft(transform, _POINTS), 0.0)  # index i stands for i·cell, modulo the grid
    positions = np.arange(1, half + 1)
    mass = np.concatenate([[under_first[0]], under_first[positions] + under_first[-positions]])[::-1]
    return _accumulate(cell * np.arange(half, -1, -1, dtype=np.float64), mass)


def sample_law(scores: NDArray[np.float64]) -> LossLaw:
    """Law of the likelihood ratio from runs of the known law, for the limit: not a bound.

    Each run counts with the probability of a wrong sign, 1/(1 + e^|score|), not with its outcome.
    """
    size, runs = np.sort(np.abs(scores))[::-1], scores.size
    return LossLaw(share=np.arange(runs + 1) / runs, errors=np.concatenate([[0.0], np.cumsum(expit(-size)) / runs]))


def reachable_curve(mu: float, runs: int, *, alpha: float, delta: float, users: int = 1) -> float:
    """Bound ε(δ) of the coin flip on the curve at its expected number of errors for the true μ.

    Args:
        mu: μ of one user.
        runs: Number of runs in all.
        alpha: One minus the confidence.
        delta: In (0, 1).
        users: Number of users changed at once.
    """
    flip = CurveFlip(errors=_curve_errors(users * mu, runs), runs=runs)
    return gdp_epsilon(flip.mu(alpha=alpha) / users, delta, rounding="down")


def reachable_anytime_curve(mu: float, runs: int, *, alpha: float, delta: float) -> float:
    """Bound ε(δ) of the e-process on the curve at its expected number of errors for the true μ."""
    return gdp_epsilon(anytime_mu(_curve_errors(mu, runs), runs, alpha=alpha), delta, rounding="down")


def reachable_guesses(law: LossLaw, plan: GuessPlan, runs: int, *, alpha: float, delta: float) -> float:
    """Bound on ε of the plan's attempts at their expected numbers of errors under the law."""
    return bound_at_ranks(*predict_counts(law, plan, runs), plan, runs=runs, alpha=alpha, delta=delta).epsilon


def reachable_anytime(law: LossLaw, plan: GuessPlan, runs: int, *, alpha: float, delta: float) -> float:
    """Bound on ε of the e-process at its attempts' expected numbers of errors under the law."""
    return anytime_epsilon(*predict_counts(law, plan, runs), runs, plan=plan, alpha=alpha, delta=delta)


def best_plan(law: LossLaw, runs: int, *, alpha: float, delta: float) -> GuessPlan:
    """Guess plan with the share of the best bound under this law as the favourite.

    It compares the bounds of `CoinFlip` at all shares; any choice made before the runs is valid.
    """
    every = GuessPlan(shares=tuple(_SHARES.tolist()), weights=(1 / _SHARES.size,) * _SHARES.size)
    errors, guesses = predict_counts(law, every, runs)
    level = _SEARCHED * alpha
    best, certified = 0, 0.0
    for i, (wrong, number) in enumerate(zip(errors, guesses, strict=True)):
        flip = CoinFlip(errors=wrong, guesses=number, coins=runs, delta=delta)
        if flip.p_value(certified) <= level and (bound := flip.epsilon(alpha=level)) > certified:
            best, certified = i, bound
    return guess_plan(float(_SHARES[best]))


def _curve_errors(mu: float, runs: int) -> int:
    return min(runs, int(np.ceil(runs * ndtr(-mu / 2))))


def predict_counts(law: LossLaw, plan: GuessPlan, runs: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Expected errors of each attempt, rounded up, and its number of guesses."""
    guesses = plan.ranks(runs)
    errors = tuple(
        min(number, int(np.ceil(number * law.error_rate(share))))
        for share, number in zip(plan.shares, guesses, strict=True)
    )
    return errors, guesses


def _accumulate(loss: NDArray[np.float64], mass: NDArray[np.float64]) -> LossLaw:
    """Law of a |ratio| with the values `loss`, descending; at loss l the sign is wrong with odds e^(−l)."""
    return LossLaw(
        share=np.concatenate([[0.0], np.cumsum(mass)]),
        errors=np.concatenate([[0.0], np.cumsum(mass * expit(-loss))]),
    )


def _gaussian(mu: float, cell: float) -> NDArray[np.float64]:
    half = _POINTS // 2 - 1
    positions = np.arange(-half, half + 1)
    edges = (np.arange(-half, half + 2) - 0.5) * cell
    return _wrap(positions, np.diff(ndtr((edges - mu**2 / 2) / mu)))


def _centre(mass: NDArray[np.float64]) -> NDArray[np.float64]:
    reach = mass.size // 2
    return _wrap(np.arange(-reach, reach + 1), mass)


def _wrap(positions: NDArray[np.int64], mass: NDArray[np.float64]) -> NDArray[np.float64]:
    grid = np.zeros(_POINTS)
    grid[positions % _POINTS] = mass
    return grid
