"""Specimens from libraries of private sums, histograms and samplers, each with a twin without its bug.

Overflow, NaN, sensitivities of the wrong bound, thresholds that are off by one, post-processing that looks again.
"""

from __future__ import annotations

import math

import numpy as np

from mutants.additive import geometric, laplace
from mutants.specimen import Array, Run, Specimen, column, twins
from privcheck.terms.guarantees import ApproxDP, PureDP

_ONE = PureDP(1)
_SHARE = -math.expm1(-1)  # of a geometric law with ratio 1/e


def _geometric(runs: int, rng: np.random.Generator) -> Array:
    return (rng.geometric(_SHARE, runs) - rng.geometric(_SHARE, runs)).astype(np.float64)


def nan_sum(*, by_record: bool) -> Run:
    """Returns the noisy sum of records clipped to [0, 1]; NaN becomes 0 record by record, or as a sum."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        kept = np.clip(given, 0, 1)
        total = float(np.nan_to_num(kept).sum() if by_record else np.nan_to_num(kept.sum()))
        return total + rng.laplace(0, 1, runs)

    return run


def integer_sum(kind: type) -> Run:
    """Returns the noisy sum of bits, added up in integers of that kind."""
    return lambda given, runs, rng: float(np.sum(given, dtype=kind)) + rng.laplace(0, 1, runs)


def modular(modulus: int, *, noise_first: bool) -> Run:
    """Returns a count modulo a number, with geometric noise before or after."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        noise = _geometric(runs, rng)
        return (given + noise) % modulus if noise_first else given % modulus + noise

    return run


def sum_of_squares(bounds: tuple[float, float], *, largest: bool) -> Run:
    """Returns the noisy sum of squares of records within bounds; its sensitivity from both bounds, or the lower."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        sensitivity = max(map(abs, bounds if largest else bounds[:1])) ** 2
        return float((np.clip(given, *bounds) ** 2).sum()) + rng.laplace(0, sensitivity, runs)

    return run


def released_above(threshold: float, *, cast: bool) -> Run:
    """Returns the noisy count of a group that is there, where it reaches a threshold, cast to int or rounded up."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        least = int(threshold) if cast else math.ceil(threshold)
        noisy = given + _geometric(runs, rng)
        return np.where((given > 0) & (noisy >= least), noisy, 0.0)

    return run


def gaussian_above(threshold: float) -> Run:
    """Returns the noisy count of a group that is there, Gaussian of std 2.3, where it is above a threshold."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        noisy = given + rng.normal(0, 2.3, runs)
        return np.where((given > 0) & (noisy > threshold), noisy, 0.0)

    return run


def ranged_histogram(between: tuple[float, float] | None) -> Run:
    """Returns noisy counts of four bins between bounds, or between the data's least and largest."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        counts, _ = np.histogram(given, bins=4, range=between)
        return counts + rng.laplace(0, 2, (runs, 4))

    return run


def percent(number: int, *, round_first: bool) -> Run:
    """Returns a count as noisy percent of a public number, rounded before or after noise."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        exact, noise = 100 * given / number, rng.laplace(0, 100 / number, runs)
        return np.round(exact) + noise if round_first else np.round(exact + noise)

    return run


def weights_of(*, shifted: bool) -> Run:
    """Returns an index by the exponential mechanism at ε = 1; what is NaN by overflow counts as certain."""

    def run(given: tuple[float, float], runs: int, rng: np.random.Generator) -> Array:
        score = np.asarray(given) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(score - score.max() if shifted else score)
            share = np.nan_to_num(weight / weight.sum(), nan=1.0)
        return (rng.random(runs) >= share[0]) * 1.0

    return run


def magnitude_and_sign(*, once: bool) -> Run:
    """Returns x with a geometric magnitude and a fair sign; of the two zeros one is drawn again where `once`."""

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        size, sign = rng.geometric(_SHARE, runs) - 1, rng.choice([-1, 1], runs)
        while once and (twice := (size == 0) & (sign < 0)).any():
            size[twice] = rng.geometric(_SHARE, int(twice.sum())) - 1
            sign[twice] = rng.choice([-1, 1], int(twice.sum()))
        return (given + size * sign).astype(np.float64)

    return run


def redrawn_inside(scale: float, low: float, high: float) -> Run:
    """Returns x with Laplace noise, drawn again until it lies inside the bounds."""

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        noisy = given + rng.laplace(0, scale, runs)
        while (outside := (noisy < low) | (noisy > high)).any():
            noisy[outside] = given + rng.laplace(0, scale, int(outside.sum()))
        return noisy

    return run


def consistent(*, noisy_total: bool) -> Run:
    """Returns noisy counts, shifted to the exact total, or to a noisy one."""

    def run(given: object, runs: int, rng: np.random.Generator) -> Array:
        exact = column(given, runs)
        noisy = exact + rng.laplace(0, 2, exact.shape)
        total = exact.sum(axis=1, keepdims=True) + (rng.laplace(0, 2, (runs, 1)) if noisy_total else 0)
        return noisy + (total - noisy.sum(axis=1, keepdims=True)) / exact.shape[1]

    return run


def synthetic_rows(copied: float) -> Run:
    """Returns three rows from a noisy histogram; the first is a copy of a record with the probability `copied`."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        counts = np.histogram(given, bins=10, range=(0, 10))[0] + rng.laplace(0, 1, (runs, 10))
        shares = np.cumsum(np.maximum(counts, 0) + 1e-9, axis=1)
        picks = rng.random((runs, 3, 1)) * shares[:, -1:, None]
        rows: Array = (picks > shares[:, None, :]).sum(axis=2) + 0.5
        rows[:, 0] = np.where(rng.random(runs) < copied, rng.choice(given, runs), rows[:, 0])
        return rows

    return run


def partition_counts(*, bounded: bool) -> Run:
    """Returns noisy counts of users by partition; each user counts in all of theirs, or in one drawn at random."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        counts = np.zeros((runs, given.shape[1]))
        for user in given:
            theirs = np.flatnonzero(user)
            if bounded:
                counts[np.arange(runs), rng.choice(theirs, runs)] += 1
            else:
                counts[:, theirs] += 1
        return counts + rng.laplace(0, 1, counts.shape)

    return run


def with_error_bar(*, exact: bool) -> Run:
    """Returns the noisy mean of ten records in [0, 1] and its error: of data and noise, or of noise alone."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        spread = float(given.std()) if exact else 0.0
        width = 1.96 * math.sqrt(spread**2 / given.size + 2 * 0.1**2)
        return np.stack([float(given.mean()) + rng.laplace(0, 0.1, runs), np.full(runs, width)], axis=1)

    return run


def middle(*, local: bool) -> Run:
    """Returns the noisy median of records in [0, 10], by how far it moves in this dataset or in any."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        ranked, m = np.sort(given), given.size // 2
        moves = max(ranked[m + 1] - ranked[m], ranked[m] - ranked[m - 1]) if local else 10
        noisy: Array = ranked[m] + rng.laplace(0, moves, runs)
        return noisy

    return run


def quantile(*, inside: bool) -> Run:
    """Returns the median by the exponential mechanism: a number inside the interval chosen, or the record below it."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        edges = np.concatenate([[0.0], np.sort(given), [10.0]])
        weight = np.diff(edges) * np.exp(-np.abs(np.arange(edges.size - 1) - given.size / 2) / 2)
        chosen = rng.choice(weight.size, runs, p=weight / weight.sum())
        found: Array = edges[chosen] + (np.diff(edges)[chosen] * rng.random(runs) if inside else 0)
        return found

    return run


def second_moments(*, wishart: bool) -> Run:
    """Returns the noisy matrix of second moments of records with ‖x‖₂ ≤ 1: Wishart noise, or Laplace in a triangle."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        if wishart:
            half = rng.normal(0, math.sqrt(0.5), (runs, 2, 3))
            noise = half @ half.transpose(0, 2, 1)
        else:
            noise = np.triu(rng.laplace(0, 1.5, (runs, 2, 2)))  # |x₁²| + |x₁x₂| + |x₂²| ≤ 3/2
            noise += np.triu(noise, 1).transpose(0, 2, 1)
        found: Array = given.T @ given + noise
        return found

    return run


def expression(*, clip_last: bool) -> Run:
    """Returns the noisy sum of four times each record, clipped to [0, 1] after the expression or before it."""

    def run(given: Array, runs: int, rng: np.random.Generator) -> Array:
        values = np.clip(4 * given, 0, 1) if clip_last else 4 * np.clip(given, 0, 1)
        return float(values.sum()) + rng.laplace(0, 1, runs)

    return run


def _numbers(*values: float) -> Array:
    return np.array(values, dtype=np.float64)


_MODULUS = 16
_WRAPPED = 1 + math.log1p(math.exp(-_MODULUS)) - math.log1p(math.exp(2 - _MODULUS))
_UNEVEN = math.log(math.expm1(-1) / math.expm1(-2) * 2)  # of P(0 ≤ x + noise ≤ 2), x = 1 against 0, at scale 1
_HALF = math.log(0.5 * (1 + math.exp(0.5)))  # of an index, ½ against 1/(1 + e^½)

AGGREGATES: tuple[Specimen, ...] = (
    *twins(
        "NaN becomes zero in the sum", _ONE, (_numbers(*[0.5] * 9, math.nan), _numbers(*[0.5] * 9, 1)),
        broken=nan_sum(by_record=False), mended=nan_sum(by_record=True), losses=(5.5, 1),
        why="Laplace noise, |Δ|/scale", source="google/differential-privacy#405, opendp/opendp#2935",
    ),
    *twins(
        "sum overflows", _ONE, (np.ones(127, int), np.ones(128, int)),
        broken=integer_sum(np.int8), mended=integer_sum(np.int64), losses=(255, 1),
        why="127 + 1 = −128 in eight bits", source="Casacuberta et al. 2022; google/differential-privacy#126",
    ),
    *twins(
        "noise after the modulus", _ONE, (_MODULUS - 1, _MODULUS),
        broken=modular(_MODULUS, noise_first=False), mended=modular(_MODULUS, noise_first=True),
        losses=(_MODULUS - 1, _WRAPPED), why="15 + 1 = 0 modulo 16; mended, (1 + α¹⁶)/(α + α¹⁵) with α = 1/e",
        source="Casacuberta et al. 2022",
    ),
    *twins(
        "sensitivity of the lower bound", _ONE, (_numbers(3), _numbers()),
        broken=sum_of_squares((1, 3), largest=False), mended=sum_of_squares((1, 3), largest=True), losses=(9, 1),
        why="a square of 9, noise for 1", source="IBM/differential-privacy-library#105, #104",
    ),
    *twins(
        "threshold cast to an integer", ApproxDP(1, "0.0365"), (1, 0),
        broken=released_above(3.2, cast=True), mended=released_above(3.2, cast=False), losses=(math.inf, 0),
        why="released with probability α²/(1 + α) = .099 > δ where nobody is there; mended, α³/(1 + α) = .0364",
        source="google/differential-privacy, pull request 101",
    ),
    *twins(
        "Laplace's threshold for Gaussian noise", ApproxDP(1, "0.01"), (1, 0),
        broken=gaussian_above(1 + math.log(100)), mended=gaussian_above(7), losses=(math.inf, 0),
        why="released with probability Φ(−ln 100/2.3) = .0226 > δ; mended, .0045", source="opendp/smartnoise-sdk#204",
    ),
    *twins(
        "histogram between the data's bounds", _ONE,
        (_numbers(1, 1, 2, 3, 4, 5, 6, 7, 8, 10), _numbers(1, 1, 2, 3, 4, 5, 6, 7, 8, 40)),
        broken=ranged_histogram(None), mended=ranged_histogram((0, 40)), losses=(5, 1),
        why="Laplace noise, ‖Δ‖₁/scale: 10 and 2 at scale 2", source="IBM/differential-privacy-library#20",
    ),
    *twins(
        "percent rounded before noise", _ONE, (101, 102),
        broken=percent(200, round_first=True), mended=percent(200, round_first=False), losses=(2, 1),
        why="Laplace noise, 1 over ½: 50.5 is rounded to 50",
    ),
    *twins(
        "exponential weights overflow", _ONE, ((1419, 1419), (1420, 1419)),
        broken=weights_of(shifted=False), mended=weights_of(shifted=True), losses=(math.inf, _HALF),
        why="exp(710) = ∞: one index is certain; mended, ½ against 1/(1 + e^½)",
    ),
    *twins(
        "scale rounded to zero", PureDP(2),
        broken=laplace(1 // 2), mended=laplace(1 / 2), losses=(math.inf, 2), why="no noise at all",
    ),
    *twins(
        "geometric noise of 1 − α", PureDP("1/4"), (0, 1),
        broken=lambda g, n, r: g + r.geometric(math.exp(-0.25), n) - r.geometric(math.exp(-0.25), n),
        mended=geometric(0.25), losses=(-math.log(-math.expm1(-0.25)), 0.25),
        why="P(k) ∝ (1 − α)^|k| with α = e^(−¼)",
    ),
    *twins(
        "geometric noise with two zeros", _ONE, (0, 1),
        broken=magnitude_and_sign(once=False), mended=magnitude_and_sign(once=True), losses=(1 + math.log(2), 1),
        why="P(0) = 1 − α, P(1) = (1 − α)α/2 (Canonne, Kamath & Steinke 2020, Algorithm 2, line 9)",
    ),
    *twins(
        "bounded noise without its normaliser", _ONE,
        broken=redrawn_inside(1, 0, 2), mended=redrawn_inside(2, 0, 2),
        losses=(1 + _UNEVEN, 0.5 + math.log(math.expm1(-0.5) / math.expm1(-1) * 2)),
        why="P(0 ≤ x + noise ≤ 2) differs between x = 0 and 1 (Holohan et al. 2020)",
    ),
    *twins(
        "redrawn until not negative", _ONE,
        broken=redrawn_inside(1, 0, math.inf),
        mended=lambda g, n, r: np.maximum(g + r.laplace(0, 1, n), 0), losses=(1 + math.log(2 - math.exp(-1)), 1),
        why="P(x + noise ≥ 0) is ½ at 0 and 1 − 1/(2e) at 1",
    ),
    *twins(
        "counts shifted to the exact total", _ONE, (_numbers(3, 2, 4), _numbers(3, 3, 4)),
        broken=consistent(noisy_total=False), mended=consistent(noisy_total=True), losses=(math.inf, 1),
        kinds=("exact", "at most"), why="their sum is the total; mended, two Laplace mechanisms at ε = ½",
    ),
    *twins(
        "synthetic rows with a record", _ONE, (_numbers(3.137, 1.2, 7.7, 7.9), _numbers(1.2, 7.7, 7.9)),
        broken=synthetic_rows(0.1), mended=synthetic_rows(0), losses=(math.inf, 1), kinds=("exact", "at most"),
        why="3.137 is seen once in 40 runs; mended, a histogram's post-processing",
    ),
    *twins(
        "contributions bounded by partition only", _ONE, (np.eye(3), np.vstack([np.eye(3), np.ones((1, 3))])),
        broken=partition_counts(bounded=False), mended=partition_counts(bounded=True), losses=(3, 1),
        why="a user in three partitions: ‖Δ‖₁ = 3", source="google/differential-privacy, pull requests 84 and 87",
    ),
    *twins(
        "error bar of the data", _ONE, (np.zeros(10), np.append(np.zeros(9), 1.0)),
        broken=with_error_bar(exact=True), mended=with_error_bar(exact=False), losses=(math.inf, 1),
        why="the data's spread is seen", source="OpenMined/PipelineDP, pull request 550 (noise alone, as it must be)",
    ),
    *twins(
        "local sensitivity", _ONE, (_numbers(0, 4, 5, 6, 10), _numbers(9, 4, 5, 6, 10)),
        broken=middle(local=True), mended=middle(local=False), losses=(math.inf, 0.1),
        why="two scales: densities are apart without bound in the tails (Nissim, Raskhodnikova & Smith 2007)",
    ),
    *twins(
        "quantile is a record", _ONE, (_numbers(2, 4, 6), _numbers(2, 4.5, 6)),
        broken=quantile(inside=False), mended=quantile(inside=True), losses=(math.inf, 1), kinds=("exact", "at most"),
        why="4 is published of one of them alone; mended, the exponential mechanism over intervals (Smith 2011)",
    ),
    *twins(
        "Wishart noise", _ONE, (np.eye(2)[:1], np.zeros((1, 2))),
        broken=second_moments(wishart=True), mended=second_moments(wishart=False), losses=(math.inf, 1 / 1.5),
        why="the noise is positive semi-definite: some matrices are impossible",
        source="IBM/differential-privacy-library#42",
    ),
    *twins(
        "clamped before the expression", _ONE, (_numbers(1, 0), _numbers(0, 0)),
        broken=expression(clip_last=False), mended=expression(clip_last=True), losses=(4, 1),
        why="Laplace noise, |Δ|/scale", source="opendp/smartnoise-sdk#201",
    ),
)  # fmt: skip
