"""Trials scored by the likelihood ratio of the releases, and learned scores where that ratio is unknown.

Noise is drawn only in the coordinates in which the neighbours differ. The others have the same law under both
neighbours and independent noise, so they carry no information: a trial of DP-APVI at H = 20 draws 80 numbers, whatever
S and A are. By Neyman and Pearson no test of the outputs beats a threshold on the log-likelihood ratio.

A learned score is a logistic regression on features of the output, in plain NumPy. It is learned on separate runs and
never depends on the tested runs, so the test is valid for any score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import Noise
from privcheck.declare.procedures import Sampler
from privcheck.declare.statistics import SparseDifference
from privcheck.errors import ParameterError
from privcheck_audits.engine.kernels import add_log_ratio

_MOST: Final = 100_000  # coordinates of a trial
_CHUNK: Final = 160_000  # numbers drawn at a time: they stay in the cache until they are scored
_CERTAIN: Final = 1e6  # nats
_GRID: Final = 2.0**30  # scores are multiples of 2⁻³⁰ nats, so that equal likelihood ratios are equal scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MovedGroup:
    """The coordinates in which two neighbours differ, of all releases with the same noise.

    Attributes:
        releases: Names of the releases.
        noise: Noise of each coordinate, independent.
        change: (m,) f(D) − f(D′).
    """

    releases: tuple[str, ...]
    noise: Noise
    change: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcedureRuns:
    """Runs of a procedure on two neighbours: its output is not a value plus noise.

    Attributes:
        releases: Name of the procedure.
        sampler: Sampler of the runs and their exact likelihood ratio.
    """

    releases: tuple[str, ...]
    sampler: Sampler


Told = MovedGroup | ProcedureRuns  # what an attacker is told of one run


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scored:
    """The trials of one block.

    Attributes:
        score: (runs,) ln p(output | D) − ln p(output | D′); the guess is D if it is positive.
        secret: (runs,) whether the run was on D.
    """

    score: NDArray[np.float64]
    secret: NDArray[np.bool_]


def find_moved_groups(
    declaration: Declaration, values: Mapping[str, Fraction], pair: tuple[Any, Any], group: str = ""
) -> tuple[MovedGroup, ...]:
    """Coordinates that differ between the neighbours, of all outputs together, grouped by noise.

    If the noise depends on the size n of a batch and no n is given, the batch with the least noise counts.

    Args:
        declaration: The declaration.
        values: Values of its parameters.
        pair: The two neighbours' data.
        group: The user's group, if the users are partitioned.

    Raises:
        ParameterError: Noise that is not Gaussian hides more coordinates than a trial can draw.
    """
    groups: dict[Noise, list[tuple[str, NDArray[np.float64]]]] = {}
    for release in declaration.seen_by(group):
        noise = release.mechanism.at(release.quietest(values)).coordinates()
        change = _all_outputs(release.name, release.moved(pair, values), noise)
        if change.size:
            groups.setdefault(noise, []).append((release.name, change))
    return tuple(
        MovedGroup(
            releases=tuple(name for name, _ in members),
            noise=noise,
            change=np.concatenate([change for _, change in members]),
        )
        for noise, members in groups.items()
    )


def _all_outputs(name: str, difference: SparseDifference, noise: Noise) -> NDArray[np.float64]:
    """Change in every output that depends on the user.

    For m outputs with Gaussian noise and the same change, the mean is sufficient: one output with √m times the change.
    """
    if noise.gaussian:
        together: NDArray[np.float64] = difference.change * np.sqrt(difference.times)
        return together
    if difference.change.size * difference.times > _MOST:
        message = (
            f"{name}: one user moves {difference.change.size * difference.times} noisy numbers, expected {_MOST} at "
            "most in a trial: audit fewer episodes, for example --set K=2"
        )
        raise ParameterError(message, name="K")
    return np.tile(difference.change, difference.times)


def draw_hidden_bits(rng: np.random.Generator, runs: int) -> NDArray[np.bool_]:
    """Independent fair bits: whether each run is on D."""
    return rng.integers(0, 2, size=runs, dtype=np.uint8).astype(np.bool_)


def likelihood_trials(groups: Sequence[Told], rng: np.random.Generator, runs: int) -> Scored:
    """Scores of fresh runs, each on D or D′ by a hidden bit.

    The noise comes from `Noise.draw`, which the channel uses too. Scores are rounded to a grid: without it the last
    digits of a floating-point output, which differ between the arms, would decide the order of equal scores.

    Args:
        groups: The coordinates that differ, or the procedures to run.
        rng: The block's generator.
        runs: Number of runs.
    """
    secret = draw_hidden_bits(rng, runs)
    score = np.zeros(runs)
    step = max(1, _CHUNK // max(1, sum(map(_numbers, groups))))
    for start in range(0, runs, step):
        part = slice(start, min(start + step, runs))
        for group in groups:
            if isinstance(group, MovedGroup):
                add_log_ratio(group.noise, rng, group.change, secret[part], score[part])
            else:  # an output that one of the two cannot produce counts more than any likelihood ratio
                score[part] += np.clip(group.sampler(rng, secret[part]), -_CERTAIN, _CERTAIN)
    return Scored(score=np.rint(score * _GRID) / _GRID, secret=secret)


def _numbers(group: Told) -> int:
    return group.change.size if isinstance(group, MovedGroup) else group.sampler.numbers


_ROUNDS: Final = 30  # more than are needed, unless the data can be separated and the weights keep growing
_HALVINGS: Final = 8
_CONVERGED: Final = 1e-5

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearScore:
    """A score that is linear in standardised features; D is guessed if it is positive.

    Attributes:
        weights: (features,) weights.
        centre: (features,) means of the features in the training runs.
        spread: (features,) standard deviations in the training runs; 1 for a constant feature.
        offset: Added to the score.
    """

    weights: Array
    centre: Array
    spread: Array
    offset: float

    def __call__(self, features: Array) -> Array:
        """Score of each run, from features (runs, features)."""
        scores: Array = (features - self.centre) @ (self.weights / self.spread) + self.offset
        return scores


def learn_score(
    features: Array, secret: NDArray[np.bool_], *, ridge: float = 1.0, rounds: int = _ROUNDS
) -> LinearScore:
    """Fit a logistic regression of the hidden bit on the features, with a ridge penalty.

    Newton's method, each step halved until the penalised likelihood improves.

    Args:
        features: (runs, features) features.
        secret: (runs,) whether each run was on D.
        ridge: The penalty on the squared weights of standardised features; it keeps separable data finite.
        rounds: Largest number of steps.

    Raises:
        ParameterError: There are no runs, or a feature is not finite.
    """
    if features.shape[0] < 1 or not np.isfinite(features).all():
        raise ParameterError(
            f"expected finite features of at least one run, got shape {features.shape}", name="features"
        )
    away = features - features[0]  # exact where values are close: of 10²⁵ the mean is not one of equal values
    middle, spread = away.mean(axis=0), away.std(axis=0)
    spread[spread < 1e-12 * (1 + np.abs(middle))] = 1.0
    x = np.column_stack([(away - middle) / spread, np.ones(features.shape[0])])
    penalty = np.full(x.shape[1], ridge)
    penalty[-1] = 1e-6  # the offset is free but for a constant bit
    weights = np.zeros(x.shape[1])
    sign = np.where(secret, 1.0, -1.0)
    margin = np.zeros(x.shape[0])
    loss = _loss(margin, sign, weights, penalty)
    for _ in range(rounds):
        likely = 0.5 * (1 + np.tanh(margin / 2))
        root = x * np.sqrt(likely * (1 - likely))[:, None]
        curvature = root.T @ root + np.diag(penalty)  # of a matrix with itself BLAS computes one half
        step = np.linalg.solve(curvature, x.T @ (secret - likely) - penalty * weights)
        for _ in range(_HALVINGS):
            tried = x @ (weights + step)
            now = _loss(tried, sign, weights + step, penalty)
            if now <= loss:
                break
            step /= 2
        else:
            break
        weights, margin, loss = weights + step, tried, now
        if float(np.abs(step).max()) < _CONVERGED:
            break
    centre = features[0] + middle
    return LinearScore(weights=weights[:-1], centre=centre, spread=spread, offset=float(weights[-1]))


def _loss(margin: Array, sign: Array, weights: Array, penalty: Array) -> float:
    return float(np.logaddexp(0, -sign * margin).sum() + (penalty * weights**2).sum() / 2)
