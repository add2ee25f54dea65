"""Specimens from private training: batches, clipping, sampling and noise as libraries and their users got them wrong.

Each bug comes with a twin without it. Gradients are rows, (records, dimensions); in expectation of a norm of 1, one
record moves their clipped sum by 1.
"""

from __future__ import annotations

import math

import numpy as np

from mutants.specimen import Array, Run, Specimen, column, twins
from privcheck.terms.guarantees import ZCDP, GaussianDP, PureDP

_ONE = PureDP(1)
_GDP = GaussianDP(1)
_AMPLIFIED = math.log1p(0.5 * math.expm1(1))  # of a Laplace mechanism at ε = 1 by Poisson sampling of one half


def clip_rows(rows: Array, most: float = 1.0) -> Array:
    """Returns rows whose Euclidean norm is at most `most`."""
    norms = np.linalg.norm(rows, axis=-1, keepdims=True)
    short: Array = rows * np.minimum(1.0, most / np.maximum(norms, 1e-12))
    return short


def _noisy(exact: Array, std: float, runs: int, rng: np.random.Generator) -> Array:
    return exact + rng.normal(0, std, (runs, exact.size))


def gradient_sum(std: float, *, by_coordinate: bool = False) -> Run:
    """Returns the noisy sum of clipped gradients; each coordinate is clipped on its own where `by_coordinate`."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        kept = np.clip(given, -1, 1) if by_coordinate else clip_rows(given)
        return _noisy(kept.sum(axis=0), std, runs, rng)

    return run


def gradient_mean(*, number: int | None) -> Run:
    """Returns the noisy sum of clipped gradients over a public number, or over the batch's own size."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        return _noisy(clip_rows(given).sum(axis=0), 1.0, runs, rng) / (number or len(given))

    return run


def microbatches(std: float) -> Run:
    """Returns the noisy sum of the clipped mean gradients of microbatches of three records."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        means = given.reshape(-1, 3, given.shape[1]).mean(axis=1)
        return _noisy(clip_rows(means).sum(axis=0), std, runs, rng)

    return run


def vector_sum(*, each: bool) -> Run:
    """Returns a noisy sum of records, each clipped to ±½, or as a whole to ±1."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        total = np.clip(given, -0.5, 0.5).sum() if each else np.clip(given.sum(), -1, 1)
        return float(total) + rng.laplace(0, 1, runs)

    return run


def clipped_after_noise(*, records: bool) -> Run:
    """Returns a noisy sum that is clipped to ±5 at the end; records are clipped to [0, 1] before, or not at all."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        total = float((np.clip(given, 0, 1) if records else given).sum())
        return np.clip(total + rng.laplace(0, 1, runs), -5, 5)

    return run


def advantages(*, each: bool) -> Run:
    """Returns the noisy mean of ten users' advantages, clipped to ±1 user by user, or as a mean."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        mean = np.clip(given, -1, 1).mean() if each else np.clip(given.mean(), -1, 1)
        return float(mean) + rng.laplace(0, 2 / 10, runs)

    return run


def accumulated(*, zeroed: bool) -> Run:
    """Returns the noisy gradients of two steps; the second still holds the first's where it was not zeroed."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        steps = column(given, runs)
        return (steps if zeroed else np.cumsum(steps, axis=1)) + rng.normal(0, 1, steps.shape)

    return run


def sampled_steps(share: float, steps: int, *, fresh: bool) -> Run:
    """Returns noisy steps on a Poisson sample, drawn for each step or once for all of them."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        taken = rng.random((runs, steps if fresh else 1)) < share
        noisy: Array = given * taken + rng.laplace(0, 1, (runs, steps))
        return noisy

    return run


def one_stream(*, fresh: bool) -> Run:
    """Returns a record, sampled with probability ½, plus Laplace noise: both from one uniform, or from two."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        uniform = rng.random(runs)
        noise = -np.sign(uniform - 0.5) * np.log1p(-2 * np.minimum(np.abs(uniform - 0.5), 0.4999999999))
        taken = (rng.random(runs) if fresh else uniform) < 0.5
        noisy: Array = given * taken + noise
        return noisy

    return run


def never_empty(*, redraws: bool) -> Run:
    """Returns the noisy sum of a Poisson sample of one half; an empty one is drawn again where `redraws`."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        taken = rng.random((runs, given.size)) < 0.5
        while redraws and (empty := ~taken.any(axis=1)).any():
            taken[empty] = rng.random((int(empty.sum()), given.size)) < 0.5
        noisy: Array = taken @ given + rng.laplace(0, 1, runs)
        return noisy

    return run


def at_least_one(share: float, *, rounds: bool) -> Run:
    """Returns the noisy sum of a sample: max(1, ⌊share·n⌉) records, or each with the probability `share`."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        size = max(1, round(share * given.size))
        ranks = np.argsort(rng.random((runs, given.size)), axis=1)
        taken = ranks < size if rounds else rng.random(ranks.shape) < share
        noisy: Array = taken @ given + rng.laplace(0, 0.5, runs)
        return noisy

    return run


def dropouts(*, planned: int) -> Run:
    """Returns a sum with the noise of two workers, of variance 1/`planned` each; two others dropped out."""
    return lambda given, runs, rng: given + rng.normal(0, math.sqrt(1 / planned), (runs, 2)).sum(axis=1)


def variance_as_std(variance: float, *, root: bool) -> Run:
    """Returns a number with noise that was given as a variance."""
    return lambda given, runs, rng: given + (math.sqrt(variance) if root else variance) * rng.normal(0, 1, runs)


def shared_weights(*, all_noisy: bool) -> Run:
    """Returns the three largest of six weights by noisy size, two of them with noise; the third as it is.

    Mended, the two with noise alone. Half of ε chooses, half of it is the noise of the values: Laplace, scale 2.
    """

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        exact, rows = column(given, runs), np.arange(runs)[:, None]
        chosen = np.argsort(-(exact + rng.laplace(0, 2, exact.shape)), axis=1)[:, :3]
        noisy = exact + rng.laplace(0, 2, exact.shape)
        shown = np.zeros(exact.shape)
        shown[rows, chosen[:, :2]] = noisy[rows, chosen[:, :2]]
        if not all_noisy:
            shown[rows, chosen[:, 2:]] = exact[rows, chosen[:, 2:]]
        return shown

    return run


def unbounded_column(*, noisy: bool) -> Run:
    """Returns the sums of two columns; the second, for which nobody gave bounds, gets no noise, or as much."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        noise = rng.laplace(0, 2, (runs, 2))
        return column(given, runs) + (noise if noisy else noise * [1, 0])

    return run


def _rows(*rows: tuple[float, ...], of: int) -> Array:
    found = np.zeros((of, len(rows[0])))
    found[: len(rows)] = rows
    return found


_STEP = (np.zeros((4, 3)), _rows((0.6, 0.8, 0), of=4))
_CORNER = (np.zeros((3, 4)), _rows((5, 5, 5, 5), of=3))
_SMALLER = (np.vstack([np.zeros((2, 40)), np.eye(40)[:1]]), np.zeros((2, 40)))
_TURNED = (_rows((90, 0), of=6), _rows((-90, 0), of=6))
_OUTLIER = (np.array([0.5] * 9 + [30.0]), np.array([0.5] * 9 + [0.0]))
_HEAVY = (np.array([50.0, 0, 0]), np.array([-50.0, 0, 0]))
_USER = (np.array([0.0] * 9 + [30.0]), np.array([0.0] * 9 + [-30.0]))
_FIRST = (np.array([0.0, 0.0]), np.array([1.0, 0.0]))
_WEIGHTS = (np.array([3.0, 2, 2, 1, 0, 0]), np.array([3.0, 2, 2, 2, 0, 0]))

TRAINING: tuple[Specimen, ...] = (
    *twins(
        "noise over the batch size", _GDP, _STEP,
        broken=gradient_sum(1 / 4), mended=gradient_sum(1), losses=(4, 1),
        why="Gaussian noise, μ = ‖Δ‖₂/std", source="meta-pytorch/opacus#753, #200",
    ),
    *twins(
        "divided by the batch's own size", _GDP, _SMALLER,
        broken=gradient_mean(number=None), mended=gradient_mean(number=3), losses=(math.inf, 1),
        why="Gaussians of two variances are apart by no finite μ", source="meta-pytorch/opacus#571, #819",
    ),
    *twins(
        "microbatches, noise for one norm", _GDP, _TURNED,
        broken=microbatches(1), mended=microbatches(2), losses=(2, 1),
        why="a replaced record turns its microbatch's mean: ‖Δ‖₂ = 2", source="tensorflow/privacy#81, #620",
    ),
    *twins(
        "clipping by coordinate", _GDP, _CORNER,
        broken=gradient_sum(1, by_coordinate=True), mended=gradient_sum(1), losses=(2, 1),
        why="‖(1, 1, 1, 1)‖₂ = 2", source="fedbiomed/fedbiomed#1443",
    ),
    *twins(
        "clipping of the sum", _ONE, _HEAVY,
        broken=vector_sum(each=False), mended=vector_sum(each=True), losses=(2, 1),
        why="Laplace noise, |Δ|/scale: a replaced record turns the sum from 1 to −1; mended, itself from ½ to −½",
        source="OpenMined/PipelineDP#551",
    ),
    *twins(
        "clipping after noise", _ONE, _OUTLIER,
        broken=clipped_after_noise(records=False), mended=clipped_after_noise(records=True), losses=(30, 1),
        why="Laplace noise, |Δ|/scale inside ±5", source="NVIDIA/NVFlare#462",
    ),
    *twins(
        "advantages clipped as a mean", _ONE, _USER,
        broken=advantages(each=False), mended=advantages(each=True), losses=(10, 1),
        why="Laplace noise of scale 2/10: the mean turns from 1 to −1; mended, by 2/10",
    ),
    *twins(
        "gradients not zeroed", _GDP, _FIRST,
        broken=accumulated(zeroed=False), mended=accumulated(zeroed=True), losses=(math.sqrt(2), 1),
        why="the first step's user is in both sums", source="meta-pytorch/opacus, pull request 203",
    ),
    *twins(
        "one sample for all steps", PureDP("0.6343"),
        broken=sampled_steps(0.1, 4, fresh=False), mended=sampled_steps(0.1, 4, fresh=True),
        losses=(math.log1p(0.1 * math.expm1(4)), 4 * math.log1p(0.1 * math.expm1(1))),
        why="sampling amplifies the whole once, or each step: ln(1 + q(e^ε − 1))",
    ),
    *twins(
        "sample and noise from one stream", PureDP("0.6202"),
        broken=one_stream(fresh=False), mended=one_stream(fresh=True), losses=(math.log1p(math.e), _AMPLIFIED),
        why="density f(y − 1) + f(y) over f(y) below 1", source="google/jax#3646 (a key used twice)",
    ),
    *twins(
        "empty batches drawn again", PureDP("0.6202"), (np.array([0.0]), np.array([1.0])),
        broken=never_empty(redraws=True), mended=never_empty(redraws=False), losses=(1, _AMPLIFIED),
        why="a single record is always drawn: no amplification", source="meta-pytorch/opacus#161",
    ),
    *twins(
        "at least one record sampled", PureDP("0.4942"), (np.zeros(2), np.array([1.0, 0])),
        broken=at_least_one(0.1, rounds=True), mended=at_least_one(0.1, rounds=False),
        losses=(math.log1p(0.5 * math.expm1(2)), math.log1p(0.1 * math.expm1(2))),
        why="one of two is drawn: a share of ½, not of 1/10",
    ),
    *twins(
        "noise of workers who dropped out", _GDP,
        broken=dropouts(planned=4), mended=dropouts(planned=2), losses=(math.sqrt(2), 1),
        why="half of the variance is missing",
    ),
    *twins(
        "noise times its variance", ZCDP(2),
        broken=variance_as_std(0.25, root=False), mended=variance_as_std(0.25, root=True), losses=(8, 2),
        why="ρ = 1/(2·std²)", source="google-deepmind/optax#281",
    ),
    *twins(
        "chosen weights without noise", _ONE, _WEIGHTS,
        broken=shared_weights(all_noisy=False), mended=shared_weights(all_noisy=True), losses=(math.inf, 1),
        kinds=("exact", "at most"),
        why="an exact weight is seen; mended, two Laplace mechanisms at ε = ½", source="NVIDIA/NVFlare#343",
    ),
    *twins(
        "column without bounds, without noise", _ONE, (np.array([0.0, 0]), np.array([1.0, 1])),
        broken=unbounded_column(noisy=False), mended=unbounded_column(noisy=True), losses=(math.inf, 1),
        why="an exact sum is seen; mended, Laplace at ‖Δ‖₁ = 2", source="opendp/smartnoise-sdk#317",
    ),
)  # fmt: skip
