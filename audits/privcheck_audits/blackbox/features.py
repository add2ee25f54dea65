"""Features of outputs of unknown distribution: statistics that have revealed broken mechanisms, as columns.

The test is valid for any features: they and their limits come from the training runs only. Values are first rounded to
a grid, 2³⁰ times finer than their spread, so that leaks of the design are found and not those of NumPy's floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.dependence import (
    PARITIES,
    SUMS,
    Dependence,
    Parities,
    Sums,
    learn_dependence,
    learn_parities,
    learn_sums,
)
from privcheck_audits.blackbox.width import echoes, figure_sizes, rest, shape

_COLUMNS: Final = 48  # of an output that get features of their own; wider ones are thinned out
_PAIRED: Final = 6  # columns of which every pair is looked at
_PICKED: Final = 40  # pairs of wider outputs
_LOOK: Final = 400  # runs that pairs are picked on
_ATOMS: Final = 32
_MEDIANS: Final = 8_000  # runs that limits of columns are taken from
_FRACTIONS: Final = 8
_STEPS: Final = (100.0, 2.0, 1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 2.0**-8, 2.0**-16, 2.0**-22)
_JUMPS: Final = 6
_SORTED: Final = 50_000  # numbers that are sorted at once
_TINY: Final = 1e-12
_DRAWN: Final = 0.5  # times columns over runs: how far correlations are drawn in
_TINIEST: Final = 1e-9  # added to variances of 1, so that combinations without noise can be inverted
_LARGEST: Final = 1e100  # squares and sums of what is larger overflow; such values keep their order no longer

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FeatureMap:
    """Map from outputs (runs, width) on the grid to features (runs, features); made by `feature_map`.

    Attributes:
        kept: (m,) columns with their own features; the first features are these columns.
        folded: (f,) kept columns for which the distances from both medians are compared.
        places: (2, m) medians of the kept columns on D and on D′.
        logs: (l,) kept columns with a signed logarithm of the magnitude.
        atoms: (a, 2) column and value of frequent values.
        rests: (r, 2) kept column and step, for remainders modulo the step.
        pairs: Pairs of kept columns, each (p, 2): compared by difference, sum, equality and ratio.
        jumps: (j,) columns of wider outputs, for the difference from the next column.
        ranks: (o,) indices of the order statistics of the kept columns.
        centre: (m,) centre of the principal components.
        axes: (m, c) principal axes over their spread: combinations without noise have a tiny spread.
        squared: (m, m) half of the difference of the two covariances' inverses: for variances and correlations that
            differ, in any direction.
        within: (2, m) limits of the values that `squared` is applied to.
        sums: Sums over all columns.
        dependence: Dependence between all columns.
        parities: Products of signs.
        last: Indices of the columns used from each of: quadratic form, sums, dependence, parities, shape and echoes.
    """

    kept: Indices
    folded: Indices
    places: Array
    logs: Indices
    atoms: Array
    rests: Array
    pairs: tuple[Indices, Indices, Indices, Indices]
    jumps: Indices
    ranks: Indices
    centre: Array
    axes: Array
    squared: Array
    within: Array
    sums: Sums
    dependence: Dependence
    parities: Parities
    last: tuple[Indices, ...]

    def __call__(self, rows: Array, figures: tuple[Array, ...] = ()) -> Array:
        """Features, all finite.

        Args:
            rows: (runs, width) on the grid.
            figures: `shape` and `echoes` of the rows, if already computed.
        """
        whole = rows
        if float(np.abs(rows).max(initial=0.0)) > _LARGEST:
            whole = np.clip(rows, -_LARGEST, _LARGEST)
        x = whole[:, self.kept]
        folded, logs = x[:, self.folded], x[:, self.logs]
        parts = [
            x,
            np.abs(folded - self.places[0, self.folded]) - np.abs(folded - self.places[1, self.folded]),
            np.sign(logs) * np.log1p(np.abs(logs)),
        ]
        parts += [_column(rows[:, int(column)] == value) for column, value in self.atoms]
        parts += [_column(rest(x[:, int(column)], step)) for column, step in self.rests]
        parts += self._of_pairs(x)
        parts.append(whole[:, self.jumps + 1] - whole[:, self.jumps])
        if self.ranks.size:
            parts.append(np.sort(x, axis=1)[:, self.ranks])
        parts.append((x - self.centre) @ self.axes)
        parts += self._of_all(x, whole, rows, figures)
        table = np.concatenate([part.astype(np.float64, copy=False) for part in parts], axis=1)
        kept: NDArray[np.float64] = np.clip(table, -_LARGEST, _LARGEST, out=table)
        return kept

    def _of_pairs(self, x: Array) -> list[NDArray[Any]]:
        (minus, plus, same, over) = ((x[:, pairs[:, 0]], x[:, pairs[:, 1]]) for pairs in self.pairs)
        ratio = np.log(np.abs(over[0]) + _TINY) - np.log(np.abs(over[1]) + _TINY)
        return [minus[0] - minus[1], plus[0] + plus[1], same[0] == same[1], ratio]

    def _of_all(self, x: Array, whole: Array, rows: Array, figures: tuple[Array, ...]) -> list[Array]:
        """The last groups of features; groups without chosen columns are not computed."""
        known = dict(zip((4, 5), figures, strict=False))
        groups: tuple[Callable[[], Array], ...] = (
            lambda: _column(self._quadratic(x)),
            lambda: self.sums(whole, self.last[1]),
            lambda: self.dependence(whole),
            lambda: self.parities(x),
            lambda: shape(rows),
            lambda: echoes(rows),
        )
        return [
            known[which][:, wanted] if which in known else group() if which == 1 else group()[:, wanted]
            for which, (group, wanted) in enumerate(zip(groups, self.last, strict=True))
            if wanted.size
        ]

    def _quadratic(self, x: Array) -> Array:
        body = np.clip(x, self.within[0], self.within[1]) - self.centre
        quadratic: Array = np.einsum("ij,ij->i", body @ self.squared, body)
        return quadratic

    @property
    def discriminants(self) -> Indices:
        """Indices of the features that are linear discriminants: they were learned on the last half of the runs."""
        before = (self.folded, self.logs, self.atoms, self.rests, *self.pairs, self.jumps, self.ranks, self.axes.T)
        start = sum(len(group) for group in (self.kept, *before, *self.last[:2]))
        mine = np.isin(self.last[2], self.dependence.discriminants)
        return start + np.flatnonzero(mine)

    def restricted(self, chosen: Bits) -> FeatureMap:
        """Copy of the map with the chosen features only; the kept columns themselves always stay.

        Args:
            chosen: (features,) mask over this map's features.
        """
        start = self.kept.size

        def take(group: NDArray[Any]) -> NDArray[Any]:
            nonlocal start
            mask = chosen[start : start + len(group)]
            start += len(group)
            return group[mask]

        return replace(  # in the order of the table
            self,
            folded=take(self.folded),
            logs=take(self.logs),
            atoms=take(self.atoms),
            rests=take(self.rests),
            pairs=(take(self.pairs[0]), take(self.pairs[1]), take(self.pairs[2]), take(self.pairs[3])),
            jumps=take(self.jumps),
            ranks=take(self.ranks),
            axes=take(self.axes.T).T,
            last=tuple(take(wanted) for wanted in self.last),
        )


def feature_map(rows: Array, secret: Bits) -> FeatureMap:
    """Build the features for outputs like the training runs.

    Args:
        rows: (runs, width) training runs on the grid.
        secret: (runs,) whether each was on D.
    """
    whole = np.clip(rows, -_LARGEST, _LARGEST)
    dependence = learn_dependence(whole, secret)
    kept = _keep(whole, secret, dependence)
    x = whole[:, kept]
    arms = [arm if arm.size else x for arm in (x[secret], x[~secret])]
    centre, axes = _axes(x)
    within = np.quantile(x[:_MEDIANS], [0.001, 0.999], axis=0)
    every = np.arange(kept.size)
    pairs = _pairs(x, secret)
    many = x.shape[1] > 1
    sizes = (int(many), SUMS if many else 0, dependence.features, PARITIES, *figure_sizes(rows.shape[1]))
    return FeatureMap(
        kept=kept,
        folded=every,
        places=np.stack([np.median(arm, axis=0) for arm in arms]),
        logs=every,
        atoms=_atoms(rows, kept),
        rests=_rests(x, secret),
        pairs=(pairs, pairs, pairs, pairs),
        jumps=_jumps(whole, secret),
        ranks=every[: kept.size * many],
        centre=centre,
        axes=axes[:, : kept.size * many],
        squared=_square(np.clip(x, within[0], within[1]) - centre, secret),
        within=within,
        sums=learn_sums(whole, secret),
        dependence=dependence,
        parities=learn_parities(x, secret),
        last=tuple(np.arange(size) for size in sizes),
    )


def _keep(whole: Array, secret: Bits, dependence: Dependence) -> Indices:
    """Columns with their own features: all but constant ones, or the most informative ones if there are many."""
    varying = np.flatnonzero((whole != whole[:1]).any(axis=0))
    if varying.size == 0:
        return np.zeros(1, dtype=np.int64)
    if varying.size <= _COLUMNS:
        return varying
    look = slice(0, 20 * _LOOK)
    far = separation(whole[look, varying], secret[look])
    spaced = varying[np.linspace(0, varying.size - 1, _COLUMNS // 4).astype(np.int64)]
    linked = dependence.pairs.reshape(-1)[: _COLUMNS // 2]
    first = np.unique(np.concatenate([spaced, linked]))
    ranked = varying[np.argsort(-far, kind="stable")]
    best = ranked[~np.isin(ranked, first)][: _COLUMNS - first.size]
    return np.sort(np.concatenate([first, best]))


def separation(columns: Array, secret: Bits) -> Array:
    """Kolmogorov–Smirnov distance of each column (m,) between the runs on D and on D′."""
    first, other = max(1, int(secret.sum())), max(1, int((~secret).sum()))
    far = np.zeros(columns.shape[1])
    steps = np.where(secret, other, -first)  # whole numbers: the order of ties does not matter, not even in rounding
    at_once = max(1, _SORTED // max(1, columns.shape[0]))
    for start in range(0, columns.shape[1], at_once):
        values = np.ascontiguousarray(columns[:, start : start + at_once].T)
        order = np.argsort(values, axis=1)
        ordered = np.take_along_axis(values, order, axis=1)
        heights = np.abs(np.cumsum(steps[order], axis=1))
        heights[:, :-1][ordered[:, 1:] == ordered[:, :-1]] = 0  # ties count together
        far[start : start + at_once] = heights.max(axis=1)
    return far / (first * other)


def _column(values: NDArray[np.generic]) -> NDArray[Any]:
    return values[:, np.newaxis]


def _pairs(x: Array, secret: Bits) -> NDArray[np.int64]:
    """Pairs of columns to compare: all if there are few, else those with the most informative difference or sum."""
    m = x.shape[1]
    every = np.stack(np.triu_indices(m, 1), axis=1).astype(np.int64)
    if m <= _PAIRED:
        return every
    look = slice(0, _LOOK)
    score = np.zeros(len(every))
    for sign in (-1.0, 1.0):
        for start in range(0, len(every), 256):
            part = every[start : start + 256]
            both = x[look][:, part[:, 0]] + sign * x[look][:, part[:, 1]]
            repeats = (np.diff(np.sort(both, axis=0), axis=0) == 0).mean(axis=0)
            score[start : start + 256] = np.maximum(
                score[start : start + 256], separation(both, secret[look]) + 0.1 * repeats
            )
    next_to = every[:, 1] - every[:, 0] == 1
    chosen = np.argsort(-(score + 0.05 * next_to), kind="stable")[:_PICKED]
    return every[np.sort(chosen)]


def _atoms(rows: Array, kept: NDArray[np.int64]) -> Array:
    """(column, value) of the most frequent values, most frequent first."""
    atoms = []
    least = max(3, rows.shape[0] // 2000)
    for column in kept:
        values, counts = np.unique(rows[:, column], return_counts=True)
        often = np.argsort(-counts, kind="stable")[:8]
        atoms += [(int(counts[i]), int(column), float(values[i])) for i in often if counts[i] >= least]
    best = sorted(atoms, reverse=True)[:_ATOMS]
    return np.array([(column, value) for _, column, value in best]).reshape(-1, 2)


def _jumps(whole: Array, secret: Bits) -> NDArray[np.int64]:
    """Columns with the most informative difference from the next one; empty for few columns, which are all compared."""
    if whole.shape[1] <= _PAIRED:
        return np.zeros(0, dtype=np.int64)
    look = slice(0, 5 * _LOOK)
    far = separation(np.diff(whole[look], axis=1), secret[look])
    return np.sort(np.argsort(-far, kind="stable")[:_JUMPS])


def _rests(x: Array, secret: Bits) -> Array:
    """(column, step) with the most informative remainder modulo the step."""
    look = slice(0, 10 * _LOOK)
    tried = [(column, step) for column in range(min(_PAIRED, x.shape[1])) for step in _STEPS]
    far = separation(np.stack([rest(x[look, column], step) for column, step in tried], axis=1), secret[look])
    best = np.argsort(-far, kind="stable")[:_FRACTIONS]
    return np.array([tried[i] for i in np.sort(best)])


def _square(body: Array, secret: Bits) -> Array:
    """(S₂⁻¹ − S₁⁻¹)/2 of the covariances on D and on D′, each shrunk towards its diagonal."""
    inverses = []
    for arm in (body[secret], body[~secret]):
        rows = arm if arm.shape[0] > 1 else body
        covariance = np.atleast_2d(np.cov(rows, rowvar=False)) if rows.shape[0] > 1 else np.eye(body.shape[1])
        drawn = _DRAWN * body.shape[1] / rows.shape[0]
        spread = np.sqrt(np.diag(covariance))
        spread[spread == 0] = 1.0
        correlation = covariance / spread / spread[:, None] + (drawn + _TINIEST) * np.eye(body.shape[1])
        inverses.append(np.linalg.inv(correlation) / spread / spread[:, None])
    difference: Array = (inverses[1] - inverses[0]) / 2
    return difference


def _axes(x: Array) -> tuple[Array, Array]:
    """Centre, and principal axes divided by their spread, with outliers clipped."""
    low, high = np.quantile(x[:_MEDIANS], [0.01, 0.99], axis=0)
    body = np.clip(x, low, high)
    centre, spread = body.mean(axis=0), body.std(axis=0)
    spread[spread == 0] = 1.0
    _, singular, axes = np.linalg.svd((body[:20_000] - centre) / spread, full_matrices=False)
    width = np.maximum(singular / np.sqrt(max(1, body[:20_000].shape[0])), 1e-7)
    square = np.zeros((x.shape[1], x.shape[1]))
    square[:, : axes.shape[0]] = axes.T / width / spread[:, None]
    return centre, square
