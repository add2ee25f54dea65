"""Independence of the runs of one call: calls are compared with each other before scores are learned.

Each call is cut into two halves at random, and each half is summarised by several figures: ranks of columns and of
random combinations of them, distances from the middle, frequent values. If runs are independent, so are the halves of
a call: shared noise (a scalar drawn once per call) correlates them positively, and balancing (antithetic or stratified
draws, a subtracted mean) correlates them negatively. One run of a long call is also compared with calls for one run,
which shows distributions that depend on the size of a call.

The first calls choose the figure to test; fresh calls test that one figure by permutations, which are exact if runs are
independent. So independent runs are called dependent with probability at most 10⁻⁴ by the second test alone, and about
10⁻⁶ by both. A verdict does not depend on this: `blackbox.confirmation` catches dependence that no comparison shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from privcheck_audits.blackbox.inputs import RunSource
from privcheck_audits.blackbox.scores import row_keys

FIRST: Final = 64  # pairs of a call on D and one on D′
AGAIN: Final = 192  # of the second test
_SHARE: Final = 0.1  # of the audit's runs, at most, that the first calls have
_SIZES: Final = (4, 64)  # runs of a call, at least and at most
_NUMBERS: Final = 4_000_000  # of the outputs of the first calls
_SUSPECTED: Final = 0.01  # false-positive probability of the first test
_SURE: Final = 1e-4  # of the second
_MORE: Final = 2  # permutations times the level: so many random orders may be as extreme
_BATCH: Final = 500  # permutations at a time
_COLUMNS: Final = 8  # of an output that are looked at
_MIXED: Final = 4  # random combinations of all columns
_ATOMS: Final = 3  # values of a column that come back, each counted by itself
_COMMON: Final = (0.02, 0.98)  # how often such a value comes
_LARGEST: Final = 1e100
_FINE: Final = 2.0**20  # steps of a combination
_ROUNDING: Final = 1e-12

Test = Literal["halves", "size"]
Kind = Literal["rank", "distance", "atom"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One statistic for comparing calls.

    Attributes:
        test: Whether to compare halves of one call, or runs of long calls with calls for one run.
        arms: Neighbours compared: D (0), D′ (1), or both.
        view: Index of a view of `CallPairs`.
        kind: The value's rank, its distance from the middle, or whether it equals `atom`.
        atom: The value of an "atom" figure.
        sign: +1 if the halves agree, or long calls have larger values; −1 for the opposite.
    """

    test: Test
    arms: tuple[int, ...]
    view: int
    kind: Kind
    atom: float = 0.0
    sign: int = 1

    def __str__(self) -> str:
        where = " and ".join(("D", "D′")[arm] for arm in self.arms)
        if self.test == "size":
            return f"the law of a run on {where} depends on how many runs are requested in one call"
        how = "agree with each other" if self.sign > 0 else "balance each other"
        return f"the runs of one call are not independent: on {where} halves of a call {how} more than those of two do"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CallPairs:
    """A block of pairs of calls to compare.

    Attributes:
        source: Source of the calls.
        size: Number of runs of a long call.
    """

    source: RunSource
    size: int

    def __call__(self, rng: np.random.Generator, pairs: int, first: int) -> tuple[Array, Array]:
        """Views of long calls (pairs, 2, size, views) and of calls for one run (pairs, 2, views)."""
        width = self.source.width
        kept = np.unique(np.linspace(0, width - 1, _COLUMNS).astype(np.int64))
        signs = np.random.default_rng(width).choice([-1.0, 1.0], size=(width, _MIXED))  # the same in every block
        made = [
            [
                _view(self.source.call(own, which, size), kept, signs)
                for which, size, own in zip((0, 1, 0, 1), (self.size, self.size, 1, 1), four.spawn(4), strict=True)
            ]
            for four in rng.spawn(pairs)
        ]
        return np.stack([pair[:2] for pair in made]), np.stack([pair[2:] for pair in made])[:, :, 0]


def _view(rows: Array, kept: NDArray[np.int64], signs: Array) -> Array:
    rows = np.clip(rows, -_LARGEST, _LARGEST)
    parts = [rows[:, kept]]
    if rows.shape[1] > 1:
        # on a grid: BLAS adds up one row in another order than many, and equal rows would be told apart
        parts.append(np.rint(np.arcsinh(rows) @ signs * _FINE))
    if 1 < rows.shape[1] <= 2 * _COLUMNS:
        parts.append((row_keys(rows) >> np.uint64(11)).astype(np.float64)[:, np.newaxis])  # whole rows that come back
    return np.concatenate(parts, axis=1)


def call_size(trials: int, width: int) -> int:
    """Number of runs of a long call in the comparison, for N trials with `width` numbers each."""
    return int(np.clip(min(_SHARE * trials / FIRST, _NUMBERS / (2 * FIRST * width)), *_SIZES))


def suspect(long: Array, single: Array, rng: np.random.Generator) -> Figure | None:
    """Figure by which calls differ most, if independent runs would rarely (1 %) differ as much; None otherwise.

    Both a normal bound and a permutation test of that figure have to find it, at 1 % over all figures and directions:
    the second is exact for any law.

    Args:
        long: (pairs, 2, size, views) of `CallPairs`.
        single: (pairs, 2, views).
        rng: Generator that cuts the calls into halves.
    """
    order = _shuffle(long, rng)
    found: list[tuple[float, Figure]] = []
    for view in range(long.shape[3]):
        for test, kind, atom in _figures(long[..., view]):
            alone = [Figure(test=test, arms=(arm,), view=view, kind=kind, atom=atom) for arm in (0, 1)]
            each = np.concatenate([_compare(figure, long, single, order) for figure in alone])
            for arms in ((0, 1), (0,), (1,)):
                z = _halves_z(each[list(arms)]) if test == "halves" else _size_z(each[list(arms)])
                sign = 1 if z >= 0 else -1
                found.append((abs(z), Figure(test=test, arms=arms, view=view, kind=kind, atom=atom, sign=sign)))
    largest, best = max(found, key=lambda each: each[0])
    level = _SUSPECTED / (2 * len(found))
    if log_ndtr(-largest) > np.log(level):
        return None
    # rare values are not normal: 4 runs a call of sorted integers were suspected 12 times in 100 by z alone
    return best if _is_extreme(best, _compare(best, long, single, order), level, rng) else None


def is_confirmed(figure: Figure, long: Array, single: Array, rng: np.random.Generator) -> bool:
    """Whether fresh calls also differ by the figure, by a permutation test at 10⁻⁴.

    If runs are independent, the second halves of all calls on one neighbour are exchangeable, and so are single calls
    and runs of long ones: the p-value, counted over random permutations and the observed order, is valid (Phipson &
    Smyth 2010).
    """
    return _is_extreme(figure, _compare(figure, long, single, _shuffle(long, rng)), _SURE, rng)


def _is_extreme(figure: Figure, values: Array, level: float, rng: np.random.Generator) -> bool:
    """Whether the p-value of a figure's values in its direction, over random permutations, is at most `level`."""
    arms, _, calls = values.shape
    seen = figure.sign * float((values[:, 0] * values[:, 1]).sum() if figure.test == "halves" else values[:, 1].sum())
    as_large, batches = 1, math.ceil(_MORE / level / _BATCH)
    for _ in range(batches):
        if figure.test == "halves":
            second = rng.permuted(np.repeat(values[np.newaxis, :, 1], _BATCH, axis=0), axis=2)
            other = (values[:, 0] * second).sum(axis=(1, 2))
        else:
            mixed = rng.permuted(np.repeat(values.reshape(1, arms, -1), _BATCH, axis=0), axis=2)
            other = mixed[:, :, calls:].sum(axis=(1, 2))  # all of a neighbour's values add up to 0
        as_large += int((figure.sign * other >= seen - _ROUNDING).sum())
        if as_large > _MORE * 2:
            return False
    return as_large <= level * (1 + _BATCH * batches)


def _figures(values: Array) -> list[tuple[Test, Kind, float]]:
    kinds: list[tuple[Test, Kind, float]] = [
        ("halves", "rank", 0.0),
        ("halves", "distance", 0.0),
        ("size", "rank", 0.0),
        ("size", "distance", 0.0),
    ]
    different, counts = np.unique(values, return_counts=True)
    common = np.argsort(-counts, kind="stable")[:_ATOMS]
    share = counts[common] / values.size
    atoms = different[common[(share > _COMMON[0]) & (share < _COMMON[1])]]
    return kinds + [("halves", "atom", float(atom)) for atom in atoms]


def _shuffle(long: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Random order of the runs of each long call (pairs, 2, size)."""
    return np.argsort(rng.random(long.shape[:3]), axis=2)


def _compare(figure: Figure, long: Array, single: Array, order: NDArray[np.int64]) -> Array:
    """(arms, 2, calls), centred: means of both halves of each long call, or single calls and runs of long ones.

    Only one run of a long call is compared with the single calls, so that there is one independent run per call.
    """
    each = []
    for arm in figure.arms:
        rows = np.take_along_axis(long[:, arm, :, figure.view], order[:, arm], axis=1)
        calls, size = rows.shape
        if figure.test == "halves":
            scored = _score(figure, rows.reshape(-1)).reshape(calls, size)
            pair = np.stack([half.mean(axis=1) for half in (scored[:, : size // 2], scored[:, -(size // 2) :])])
            each.append(pair - pair.mean(axis=1, keepdims=True))
        else:
            pooled = _score(figure, np.concatenate([single[:, arm, figure.view], rows[:, 0]]))
            each.append(pooled.reshape(2, calls) - pooled.mean())
    return np.stack(each)


def _score(figure: Figure, values: Array) -> Array:
    if figure.kind == "atom":
        return np.asarray(values == figure.atom, dtype=np.float64)
    from scipy.stats import rankdata  # here, not above: half of the time in which a worker process starts

    rank = rankdata(values) / values.size - 0.5
    return np.asarray(rank if figure.kind == "rank" else np.abs(rank), dtype=np.float64)


def _halves_z(values: Array) -> float:
    """Fisher's z of the correlation, in standard errors; 0 if the correlation is undefined."""
    scale = np.sqrt((values[:, 0] ** 2).sum() * (values[:, 1] ** 2).sum())
    if scale <= _ROUNDING:
        return 0.0
    r = float(np.clip((values[:, 0] * values[:, 1]).sum() / scale, -1 + _ROUNDING, 1 - _ROUNDING))
    return float(np.arctanh(r)) * math.sqrt(values.shape[0] * (values.shape[2] - 1) - 2)


def _size_z(values: Array) -> float:
    """Difference of the means in standard errors; 0 if all values are equal."""
    number = values.shape[0] * values.shape[2]
    spread = math.sqrt(float((values**2).mean()) * 2 / number)
    return float(values[:, 1].mean() - values[:, 0].mean()) / spread if spread > _ROUNDING else 0.0


def join(parts: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Join the views of several blocks."""
    return np.concatenate([long for long, _ in parts]), np.concatenate([single for _, single in parts])
