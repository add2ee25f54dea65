"""Tests of noise: sums over all draws, compared with the declared law.

Every test is valid at any number of draws, and α is divided among them: the false-positive rate of all together is at
most α.

* scale: Σx²/σ² ~ χ²(n) for Gaussian, 2Σ|x|/b ~ χ²(2n) for Laplace noise, two-sided (`Noise.scale_statistic`); for a
  tree at each level too
* law: the distance of the distribution functions (Dvoretzky–Kiefer–Wolfowitz with Massart's constant)
* symmetry of matrices that are declared symmetric
* repeats: no draw of a run occurs twice in it, or in it and the run before, in any release, at any position, with any
  sign or scale. F(x) of continuous noise is uniform, so that N draws, or N beside M, have on average at most N²τ, or
  2NMτ, pairs closer than τ (Markov); only this test finds streams that are shared out of step, and noise seeded by data
  that few draws have in common (it finds nothing for noise on the integers, where many draws are equal)
* independence: the signs of two coordinates agree with probability ½; neighbouring coordinates, the same coordinate at
  the next step, in the next run, in earlier outputs (for a tree in the previous P-sum, the previous one of the same
  length, and the left half), and in another release (at the same position, and at the same leading indices). The
  compared pairs of coordinates form a forest, so that the agreements are independent: the count is binomial.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Declaration, Release
from privcheck.declare.mechanisms import Mechanism, Noise, lacks
from privcheck.declare.schedules import Tree
from privcheck.errors import AuditError, ParameterError
from privcheck.runtime.audit_pictures import Bar, Bars
from privcheck_audits.lockstep.streams import level, list_related_nodes
from privcheck_audits.lockstep.users import Array

_BINS: Final = 512  # of the probability integral transform
_SEEN: Final = 1 << 16  # coordinates of a slice whose signs are compared
_OUT: Final = 1 + 1e-9  # outward rounding of p-values
_DRAWS: Final = 1 << 14  # of a run, among which repeats are sought
_CLOSE: Final = 1e-12  # levels that are so close are one, and
_UNITS: Final = 16 * float(np.finfo(np.float64).eps)  # … so much more, of the largest output over the scale
_BAR: Final = "|"  # between the parts of a key, which are words of ours and names of releases
_ROUNDED: Final = 1e-9  # of the scale: by how much a matrix may miss its own transpose

Signs = NDArray[np.bool_]
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTest:
    """One test of noise.

    Attributes:
        name: Name of the test.
        where: The release, or two releases.
        p_value: Two-sided, rounded up.
        figure: The measured value: drawn scale over declared scale, distance of the distribution functions, share of
            agreeing signs, or difference of a matrix and its transpose in scales.
        draws: Number of draws.
    """

    name: str
    where: str
    p_value: float
    figure: float
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Sums that the tests are computed from; runs add up.

    Attributes:
        sizes: Number of draws and their `Noise.size`, by release, and by release and level of a tree.
        bins: Number of draws in each of the bins of equal probability, by release.
        agreements: Number of agreeing signs and of comparisons, by comparison and release (or two).
        asymmetry: Largest difference of two entries that should be equal, by release of symmetric matrices.
        repeats: Number of repeated pairs of draws of a run or of successive ones, the upper bound on its mean, and the
            number of draws.
    """

    sizes: Mapping[str, tuple[int, float]]
    bins: Mapping[str, NDArray[np.int64]]
    agreements: Mapping[str, tuple[int, int]]
    asymmetry: Mapping[str, float]
    repeats: tuple[int, float, int] = (0, 0.0, 0)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            sizes=_add(self.sizes, other.sizes),
            bins={name: _none(self.bins, name) + _none(other.bins, name) for name in {**self.bins, **other.bins}},
            agreements=_add(self.agreements, other.agreements),
            asymmetry={
                name: max(self.asymmetry.get(name, 0.0), other.asymmetry.get(name, 0.0))
                for name in {**self.asymmetry, **other.asymmetry}
            },
            repeats=(
                self.repeats[0] + other.repeats[0],
                self.repeats[1] + other.repeats[1],
                self.repeats[2] + other.repeats[2],
            ),
        )


def explain_untested(releases: Sequence[Release]) -> str:
    """Reason why the noise of releases cannot be tested; empty if it can."""
    if other := [release.name for release in releases if not release.mechanism.law.additive]:
        return f"the noise of {', '.join(other)} is not added to the value, so it cannot be separated from it"
    laws = {release.name: release.mechanism.law for release in releases}
    reasons = {name: lacks(law, "spread_cdf" if law.whole else "cdf", "of_std") for name, law in laws.items()}
    return "; ".join(f"{name}: {why}" for name, why in reasons.items() if why)


def list_declared_noise(declaration: Declaration, values: Mapping[str, Fraction]) -> dict[str, Noise]:
    """Law and scale of each release's noise by the declaration's expressions.

    Raises:
        ParameterError: A release has a law without tests here.
    """
    if why := explain_untested(declaration.noisy):
        raise ParameterError(f"{declaration.name}: {why}", name="view", given="noise")
    laws = {}
    for release in declaration.noisy:
        declared: Mechanism = getattr(release.mechanism, "declared", release.mechanism)
        laws[release.name] = declared.at(values).of_std(release.mechanism.std.number(values))
    return laws


class NoiseRecorder:
    """Records the noise of every slice as the sums that the tests need.

    Args:
        declaration: The declaration.
        values: Values of its parameters.
        seed: Seed of the audit, for messages.
        declared: The laws by release, if the recorded noise was transformed to laws other than the declaration's.
    """

    def __init__(
        self,
        declaration: Declaration,
        values: Mapping[str, Fraction],
        *,
        seed: int,
        declared: Mapping[str, Noise] | None = None,
    ) -> None:
        self._declared = dict(declared or list_declared_noise(declaration, values))
        self._trees = {release.name for release in declaration.noisy if isinstance(release.schedule, Tree)}
        self._seed = seed
        self._sizes: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
        self._bins: dict[str, NDArray[np.int64]] = {}
        self._agreements: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._asymmetry: dict[str, float] = {}
        self._run = -1
        self._signs: dict[tuple[str, int, int], Signs] = {}  # of this run, by release, output and first slice
        self._before: dict[tuple[str, int, int], Signs] = {}  # of the run before
        self._levels: dict[str, list[Array]] = defaultdict(list)  # |2F(x) − 1| of this run's draws, by release
        self._apart = 0.0  # by how much rounding may part two levels that are one
        self._repeats = (0, 0.0, 0)
        self._drawn = np.zeros(0)  # levels of the run before, sorted

    def record(self, noises: Mapping[str, Array], *, run: int, output: int, part: int = 0, largest: float) -> None:
        """Record the noise of slices that were released together.

        Args:
            noises: Output less exact value, (slices, …), by release; for a tree, the noise of the P-sum that closes.
            run: Number of the run; runs come one after the other.
            output: Number of the output, from 1.
            part: Index of its first slice.
            largest: The largest magnitude of an output that the noise was computed from.

        Raises:
            AuditError: A noise value is not finite.
        """
        if run != self._run:
            self._count_repeats()
            self._run, self._before, self._signs = run, self._signs, {}
        ours = np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(run, output, part)))
        noises = {name: self._spread(name, noise, ours) for name, noise in noises.items()}
        flat = {name: self._independent(name, noise) for name, noise in noises.items()}
        for name, noise in flat.items():
            self._measure(name, noise, output)
            self._apart = max(self._apart, _UNITS * largest / self._declared[name].scale)
            signs = noise[:, :_SEEN] > 0
            self._agree("neighbouring coordinates", name, signs[:, 1:], signs[:, :-1])
            self._agree("successive steps", name, signs[1:], signs[:-1])
            if (last := self._signs.get((name, output, part - 1))) is not None:
                self._agree("successive steps", name, signs[:1], last[-1:])
            before = list_related_nodes(output) if name in self._trees else {"successive outputs": output - 1}
            for kind, earlier in before.items():
                if (signs_before := self._signs.get((name, earlier, part))) is not None:
                    self._agree(kind, name, signs, signs_before)
            if (once := self._before.get((name, output, part))) is not None:
                self._agree("runs", name, signs, once)
            self._signs[name, output, part] = signs
        for one, other in combinations(flat, 2):
            for kind, left, right in _align(noises[one], noises[other], flat[one], flat[other]):
                self._agree(kind, f"{one} and {other}", left, right)

    def sums(self) -> Sums:
        """Sums of everything recorded so far."""
        self._count_repeats()
        return Sums(
            sizes=dict(self._sizes),
            bins=dict(self._bins),
            agreements=dict(self._agreements),
            asymmetry=dict(self._asymmetry),
            repeats=self._repeats,
        )

    def _count_repeats(self) -> None:
        """Count the repeated draws of a run, and of it and the run before, whose draws are discarded."""
        if self._levels:
            drawn = np.sort(np.concatenate([level for levels in self._levels.values() for level in levels]))
            close = _CLOSE + self._apart
            pairs, before, draws = self._repeats
            alone, apart, both = (
                int((np.diff(levels) <= close).sum())
                for levels in (drawn, self._drawn, np.sort(np.concatenate([self._drawn, drawn])))
            )
            # neighbours in the joint order that are of one run are neighbours in its own: the others are of both runs
            pairs += alone + max(0, both - alone - apart)
            compared = float(drawn.size) * (drawn.size + 2 * self._drawn.size)
            self._repeats, self._drawn = (pairs, before + compared * close, draws + drawn.size), drawn
        self._levels, self._apart = defaultdict(list), 0.0

    def _spread(self, name: str, noise: Array, ours: np.random.Generator) -> Array:
        """Noise on the integers with added uniform numbers in [−½, ½]: continuous, with the same independence.

        Raises:
            AuditError: The noise is not on the integers.
        """
        if not self._declared[name].whole:
            return noise
        if np.isfinite(noise).all() and (np.rint(noise) != noise).any():
            message = f"run {self._run} of the noise audit with seed {self._seed}: {name} is declared with noise on the"
            raise AuditError(f"{message} integers, but draws other numbers", trial=self._run, seed=self._seed)
        return noise + ours.uniform(-0.5, 0.5, noise.shape)

    def _independent(self, name: str, noise: Array) -> Array:
        """Coordinates (slices, numbers) with independent noise of one scale."""
        declared = self._declared[name]
        if not np.isfinite(noise).all():
            message = f"run {self._run} of the noise audit with seed {self._seed} has an output that is not finite"
            raise AuditError(message, trial=self._run, seed=self._seed)
        if declared.symmetric:
            apart = float(np.abs(noise - np.swapaxes(noise, -1, -2)).max(initial=0.0)) / declared.scale
            self._asymmetry[name] = max(self._asymmetry.get(name, 0.0), apart)
            rows, columns = np.triu_indices(noise.shape[-1])
            noise = noise[..., rows, columns]
            if declared.symmetric == "goe":
                noise = np.where(rows == columns, noise / math.sqrt(2), noise)
        return noise.reshape(len(noise), -1)

    def _measure(self, name: str, noise: Array, output: int) -> None:
        declared, numbers = self._declared[name], noise.ravel()
        size = declared.size(numbers)
        for key in (name, _key(name, f"level {level(output)}")) if name in self._trees else (name,):
            number, sum_ = self._sizes[key]
            self._sizes[key] = number + numbers.size, sum_ + size
        shares = declared.spread_cdf(numbers)
        room = _DRAWS // len(self._declared) - sum(level.size for level in self._levels[name])
        self._levels[name].append(np.abs(2 * shares[: max(0, room)] - 1))
        index = np.minimum((shares * _BINS).astype(np.int64), _BINS - 1)
        self._bins[name] = _none(self._bins, name) + np.bincount(index, minlength=_BINS)

    def _agree(self, kind: str, where: str, one: Signs, other: Signs) -> None:
        if one.size:
            agreed, pairs = self._agreements[_key(kind, where)]
            self._agreements[_key(kind, where)] = agreed + int((one == other).sum()), pairs + one.size


def judge(sums: Sums, declared: Mapping[str, Noise]) -> tuple[NoiseTest, ...]:
    """Test the recorded sums against the declared noise, by release."""
    tests = []
    for name, noise in declared.items():
        for key, (number, size) in sorted(sums.sizes.items()):
            release, _, tree_level = key.partition(_BAR)
            if release == name:
                tests.append(_scale_test(f"{name}, {tree_level}" if tree_level else name, noise, number, size))
        if name in sums.bins:
            tests.append(_law_test(name, sums.bins[name]))
        if name in sums.asymmetry:
            apart = sums.asymmetry[name]
            certain = 1.0 if apart <= _ROUNDED else 0.0
            tests.append(
                NoiseTest(name="symmetry", where=name, p_value=certain, figure=apart, draws=sums.sizes[name][0])
            )
    for key, (agreed, pairs) in sums.agreements.items():
        kind, _, where = key.partition(_BAR)
        tests.append(_independence(kind, where, agreed, pairs))
    repeated, expected, draws = sums.repeats
    if draws:
        chance = min(1.0, _OUT * expected / repeated) if repeated else 1.0
        share = repeated / draws
        tests.append(NoiseTest(name="repeats", where="all releases", p_value=chance, figure=share, draws=draws))
    return tuple(tests)


def _add(
    one: Mapping[str, tuple[int, Number]], other: Mapping[str, tuple[int, Number]]
) -> dict[str, tuple[int, Number]]:
    sums = dict(one)
    for name, (number, size) in other.items():
        here = sums.get(name)
        sums[name] = (number, size) if here is None else (here[0] + number, here[1] + size)
    return sums


def _none(bins: Mapping[str, NDArray[np.int64]], name: str) -> NDArray[np.int64]:
    return bins.get(name, np.zeros(_BINS, dtype=np.int64))


def _key(*words: str) -> str:
    return _BAR.join(words)


def _align(one: Array, other: Array, flat_one: Array, flat_other: Array) -> list[tuple[str, Signs, Signs]]:
    """Compared signs of two releases' slices, (slices, …) each."""
    slices = min(len(one), len(other))
    size = min(flat_one.shape[1], flat_other.shape[1], _SEEN)
    compared = [("the same position", flat_one[:slices, :size] > 0, flat_other[:slices, :size] > 0)]
    short, long = sorted((one[:slices], other[:slices]), key=lambda array: array.ndim)
    if short.ndim < long.ndim and long.shape[1 : short.ndim] == short.shape[1:]:
        signs = short.reshape(slices, -1)[:, :_SEEN] > 0
        leading = long.reshape(slices, math.prod(short.shape[1:]), -1)[:, :_SEEN, 0] > 0
        compared.append(("the same leading indices", signs, leading))
    return compared


def _scale_test(where: str, declared: Noise, number: int, size: float) -> NoiseTest:
    from scipy.stats import chi2

    statistic, degrees = declared.scale_statistic(number, size)
    ratio = declared.scale_ratio(statistic / degrees)
    tail = 2 * min(float(chi2.cdf(statistic, degrees)), float(chi2.sf(statistic, degrees)))
    return NoiseTest(name="scale", where=where, p_value=min(1.0, tail * _OUT), figure=ratio, draws=number)


def _law_test(where: str, bins: NDArray[np.int64]) -> NoiseTest:
    number, levels = int(bins.sum()), np.arange(1, _BINS) / _BINS
    distance = float(np.abs(np.cumsum(bins)[:-1] / number - levels).max())
    tail = 2 * math.exp(-2 * number * distance**2)
    return NoiseTest(name="law", where=where, p_value=min(1.0, tail * _OUT), figure=distance, draws=number)


def _independence(kind: str, where: str, agreed: int, pairs: int) -> NoiseTest:
    from scipy.stats import binom

    tail = 2 * min(float(binom.cdf(agreed, pairs, 0.5)), float(binom.sf(agreed - 1, pairs, 0.5)))
    return NoiseTest(
        name=f"independence: {kind}", where=where, p_value=min(1.0, tail * _OUT), figure=agreed / pairs, draws=pairs
    )


def draw_spreads(tests: Iterable[NoiseTest], declared: Mapping[str, Noise], level: float) -> Bars:
    """Bars of each release's drawn scale over the declared one, with its interval.

    n·(drawn/true)² ~ χ²(n) for Gaussian noise, 2n·(drawn/true) ~ χ²(2n) for Laplace noise: the interval holds the
    declared scale exactly where the test does not refute it.

    Args:
        tests: Tests of the noise; those of the scale are shown.
        declared: The declared noise by release.
        level: α of each test.
    """
    from scipy.stats import chi2

    bars = []
    for test in tests:
        if test.name != "scale":
            continue
        noise = declared[test.where]
        _, degrees = noise.scale_statistic(test.draws, 0.0)
        ends = (float(quantile(level / 2, degrees)) for quantile in (chi2.isf, chi2.ppf))
        low, high = (noise.scale_ratio(degrees / end) for end in ends)
        bars.append(
            Bar(
                name=test.where,
                ratio=test.figure,
                at_least=test.figure * low,
                at_most=test.figure * high,
                violated=test.p_value < level,
                words=f"{test.draws} draws, declared {noise.scale:.6g}",
            )
        )
    return Bars(quantity="scale drawn / scale declared", one_sided=False, bars=tuple(bars))
