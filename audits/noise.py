"""Noise as declared: does the channel draw the declared law at the declared scale, independently everywhere?

The auditor sees the exact value and the output of every slice (only auditors do), so it sees the noise itself. What is
declared is read from the mechanism's symbolic face (law and std), what is drawn from the channel. Every test is valid
at any number of draws, and α is divided among them: a correct channel is accused with probability at most α.

* scale: Σx²/σ² ~ χ²(n) for Gaussian, 2Σ|x|/b ~ χ²(2n) for Laplace noise, two-sided
* law: the distance of the distribution functions (Dvoretzky–Kiefer–Wolfowitz with Massart's constant)
* independence: the signs of two coordinates agree with probability ½; neighbouring coordinates, the same coordinate at
  the next step, in the next run, and in another release (at the same position, and at the same leading indices). Signs
  along a chain of independent coordinates agree independently, so the count is binomial.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from privcheck.declaration import Declaration
from privcheck.errors import AuditError, ParameterError
from privcheck.mechanisms import Noise
from privcheck.results import Progress, silent
from privcheck.runtime import Billboard, Channel, Ledger, NoiseSource, Privatizer, RecordingChannel, SimulatedNoise
from privcheck.trajectories import Trajectories

_BINS: Final = 512  # of the probability integral transform
_SEEN: Final = 1 << 16  # coordinates of a slice whose signs are compared
_TAG: Final = 0xA0D17
_OUT: Final = 1 + 1e-9  # outward rounding of p-values

Array = NDArray[np.float64]
Signs = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTest:
    """One test.

    Attributes:
        name: What was tested.
        where: The release, or two.
        p_value: Two-sided, rounded up.
        figure: What was measured: drawn scale over declared scale, distance of the distribution functions, or the share
            of agreeing signs.
        draws: From how many numbers.
    """

    name: str
    where: str
    p_value: float
    figure: float
    draws: int


@dataclass(slots=True, eq=False)
class _Draws:
    """Sums over the noise of one release."""

    number: int = 0
    size: float = 0.0  # Σx² (Gaussian), Σ|x| (Laplace)
    bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, dtype=np.int64))


@dataclass(slots=True, eq=False)
class _Agreement:
    """How often signs that ought to be independent agreed."""

    agreed: int = 0
    pairs: int = 0

    def add(self, one: Signs, other: Signs) -> None:
        self.agreed += int((one == other).sum())
        self.pairs += one.size


def declared_noise(declaration: Declaration, values: Mapping[str, Fraction]) -> dict[str, Noise]:
    """Returns the law and scale that the declaration's expressions state for each release.

    Raises:
        ParameterError: A release has a law that is not tested here.
    """
    found = {}
    for release in declaration.releases:
        law, std = release.mechanism.law, release.mechanism.std.number(values)
        if law not in {"gaussian", "laplace"}:
            raise ParameterError(f"{release.name}: noise of law {law!r} cannot be tested", name=release.name, given=law)
        found[release.name] = Noise(law=law, scale=std if law == "gaussian" else std / math.sqrt(2))
    return found


def noise_tests(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    data: Trajectories,
    *,
    runs: int,
    seed: int,
    source: Callable[[int], NoiseSource] = SimulatedNoise,
    progress: Progress = silent,
) -> tuple[NoiseTest, ...]:
    """Returns every test on the noise of so many runs of the channel.

    Args:
        declaration: What is released, with which noise.
        values: Its parameters.
        data: Any users.
        runs: Runs of the channel, each with a seed of its own.
        seed: The audit's seed.
        source: Makes a run's noise source from its seed.
        progress: Called after each run.

    Raises:
        AuditError: An output is not finite.
    """
    expected = declared_noise(declaration, values)
    draws = {name: _Draws() for name in expected}
    agreements: dict[tuple[str, str], _Agreement] = defaultdict(_Agreement)
    last_run: dict[tuple[str, int], Signs] = {}
    for run in range(runs):
        words = np.random.SeedSequence(seed, spawn_key=(_TAG, 1, run)).generate_state(2, np.uint64)
        billboard, noise = Billboard(), source(int(words[0]) << 64 | int(words[1]))
        ledger = Ledger(declaration, values, noise=noise.words)
        channel = RecordingChannel(Channel(declaration, values, noise=noise, billboard=billboard, ledger=ledger))
        privatizer = Privatizer(data, declaration, channel)
        last_step: dict[str, Signs] = {}
        for step in range(data.horizon):
            privatizer.publish(step)
            drawn = {name: billboard.read(name, part=step) - channel.exact.pop((name, step)) for name in expected}
            billboard.retire(step)
            for name, noises in drawn.items():
                _measure(draws[name], expected[name], noises, run, seed)
                signs = noises.ravel()[:_SEEN] > 0
                agreements["neighbouring coordinates", name].add(signs[1:], signs[:-1])
                for kind, before in (("successive steps", last_step.get(name)), ("runs", last_run.get((name, step)))):
                    if before is not None:
                        agreements[kind, name].add(signs, before)
                last_step[name] = last_run[name, step] = signs
            for one, other in combinations(drawn, 2):
                for kind, left, right in _aligned(drawn[one], drawn[other]):
                    agreements[kind, f"{one} and {other}"].add(left, right)
        progress(run + 1, runs)
    return (
        *(test for name in expected for test in _law_tests(name, expected[name], draws[name])),
        *(_independence(kind, where, found) for (kind, where), found in agreements.items() if found.pairs),
    )


def _measure(draws: _Draws, declared: Noise, noise: Array, run: int, seed: int) -> None:
    if not np.isfinite(noise).all():
        raise AuditError(
            f"run {run} of the noise audit with seed {seed} has an output that is not finite", trial=run, seed=seed
        )
    flat = noise.ravel()
    draws.number += flat.size
    draws.size += float(flat @ flat) if declared.law == "gaussian" else float(np.abs(flat).sum())
    index = np.minimum((declared.cdf(flat) * _BINS).astype(np.int64), _BINS - 1)
    draws.bins += np.bincount(index, minlength=_BINS)


def _aligned(one: Array, other: Array) -> list[tuple[str, Signs, Signs]]:
    size = min(one.size, other.size, _SEEN)
    found = [("the same position", one.ravel()[:size] > 0, other.ravel()[:size] > 0)]
    short, long = sorted((one, other), key=lambda array: array.ndim)
    if short.ndim < long.ndim and long.shape[: short.ndim] == short.shape:
        leading = long.reshape(short.size, -1)[:, 0]
        found.append(("the same leading indices", short.ravel()[:_SEEN] > 0, leading[:_SEEN] > 0))
    return found


def _law_tests(name: str, declared: Noise, draws: _Draws) -> tuple[NoiseTest, NoiseTest]:
    if declared.law == "gaussian":
        statistic, degrees = draws.size / declared.scale**2, draws.number
        ratio = math.sqrt(statistic / degrees)
    else:
        statistic, degrees = 2 * draws.size / declared.scale, 2 * draws.number
        ratio = statistic / degrees
    tail = 2 * min(float(chi2.cdf(statistic, degrees)), float(chi2.sf(statistic, degrees)))
    levels = np.arange(1, _BINS) / _BINS
    distance = float(np.abs(np.cumsum(draws.bins)[:-1] / draws.number - levels).max())
    return (
        NoiseTest(name="scale", where=name, p_value=min(1.0, tail * _OUT), figure=ratio, draws=draws.number),
        NoiseTest(
            name="law",
            where=name,
            p_value=min(1.0, 2 * math.exp(-2 * draws.number * distance**2) * _OUT),
            figure=distance,
            draws=draws.number,
        ),
    )


def _independence(kind: str, where: str, found: _Agreement) -> NoiseTest:
    tail = 2 * min(
        float(binom.cdf(found.agreed, found.pairs, 0.5)), float(binom.sf(found.agreed - 1, found.pairs, 0.5))
    )
    return NoiseTest(
        name=f"independence: {kind}",
        where=where,
        p_value=min(1.0, tail * _OUT),
        figure=found.agreed / found.pairs,
        draws=found.pairs,
    )
