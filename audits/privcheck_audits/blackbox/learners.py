"""Learners of scores for black boxes: equal outputs, histograms, logistic regression, boosted trees.

Each learns, from training runs, a score of how much likelier an output is on D than on D′, in nats.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck_audits.engine.scores import LinearScore, learn_score

_LINEAR_RUNS: Final = 20_000
_LINEAR_NUMBERS: Final = 2_000_000  # of the table that logistic regression learns on
_LEAST_RUNS: Final = 4_000
_ROUNDS: Final = 10
_FEWEST: Final = 10  # runs under a neighbour, to grow trees
_STEEPEST: Final = 1e9  # nats a unit
_FAR: Final = 60.0  # nats
_SHRINK: Final = 1.0  # added to the counts under both neighbours

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """Input of the learners.

    Attributes:
        table: (runs, features) features.
        keys: (runs,) keys of each of `blackbox.scores.patterns`; None for patterns that are not needed.
    """

    table: Array
    keys: tuple[NDArray[np.uint64] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeyScore:
    """Log-ratio of an output's frequencies on D and on D′; 0 for outputs seen fewer than twice.

    Attributes:
        view: Index of the pattern.
        keys: Keys, ascending.
        ratio: Log-ratio of each key.
    """

    view: int
    keys: NDArray[np.uint64]
    ratio: Array

    def __call__(self, seen: Seen) -> Array:
        """Score of each run."""
        asked = seen.keys[self.view]
        if self.keys.size == 0 or asked is None:
            return np.zeros(seen.table.shape[0])
        place = np.minimum(np.searchsorted(self.keys, asked), self.keys.size - 1)
        scores: Array = np.where(self.keys[place] == asked, self.ratio[place], 0.0)
        return scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnScore:
    """Sum over columns of the log-ratio of two histograms, with separate bins for atoms.

    Attributes:
        columns: Columns of the table.
        cuts: Cuts of each column, ascending; the values on a cut form a separate bin.
        ratios: Log-ratios of each column's bins.
    """

    columns: NDArray[np.int64]
    cuts: tuple[Array, ...]
    ratios: tuple[Array, ...]

    def __call__(self, seen: Seen) -> Array:
        """Score of each run."""
        scores = np.zeros(seen.table.shape[0])
        for column, cut, ratio in zip(self.columns, self.cuts, self.ratios, strict=True):
            scores += ratio[_bins(seen.table[:, column], cut)]
        return scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainScore:
    """An unbinned column, oriented towards D, so that its far tails stay ordered.

    Attributes:
        column: Column of the table.
        centre: Value at which the score is 0.
        slope: Slope in nats per unit.
    """

    column: int
    centre: float
    slope: float

    def __call__(self, seen: Seen) -> Array:
        """Score of each run."""
        scores: Array = np.clip(self.slope * (seen.table[:, self.column] - self.centre), -_FAR, _FAR)
        return scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnIn:
    """Logistic regression on features with clipped tails.

    Attributes:
        low: (features,) smallest value of each.
        high: (features,) largest value of each.
        linear: The regression.
    """

    low: Array
    high: Array
    linear: LinearScore

    def __call__(self, seen: Seen) -> Array:
        """Score of each run."""
        return self.linear(np.clip(seen.table, self.low, self.high))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TreeScore:
    """Boosted trees.

    Attributes:
        columns: Columns of the table.
        model: The trees; None if there were too few runs.
    """

    columns: NDArray[np.int64]
    model: Any

    def __call__(self, seen: Seen) -> Array:
        """Score of each run."""
        if self.model is None:
            return np.zeros(seen.table.shape[0])
        with one_thread("openmp"):
            scores: Array = self.model.decision_function(seen.table[:, self.columns])
        return scores


def learn_keys(view: int, seen: Seen, secret: Bits) -> KeyScore:
    """Learn the score of equal outputs; both counts are increased by one."""
    asked = seen.keys[view]
    if asked is None:
        return KeyScore(view=view, keys=np.zeros(0, dtype=np.uint64), ratio=np.zeros(0))
    keys, index = np.unique(asked, return_inverse=True)
    on_first = np.bincount(index[secret], minlength=keys.size)
    on_other = np.bincount(index[~secret], minlength=keys.size)
    ratio = np.log((on_first + _SHRINK) / (on_other + _SHRINK))
    again = on_first + on_other > 1
    return KeyScore(view=view, keys=keys[again], ratio=ratio[again])


def learn_columns(columns: NDArray[np.int64], bins: int, seen: Seen, secret: Bits) -> ColumnScore:
    """Learn the score of the columns, one by one."""
    cuts, ratios = [], []
    for column in columns:
        values = seen.table[:, column]
        cut = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1), method="nearest"))
        place, size = _bins(values, cut), 2 * cut.size + 1
        first, other = np.bincount(place[secret], minlength=size), np.bincount(place[~secret], minlength=size)
        cuts.append(cut)
        ratios.append(np.log((first + _SHRINK) / (other + _SHRINK)))
    return ColumnScore(columns=columns, cuts=tuple(cuts), ratios=tuple(ratios))


def learn_plain(column: int, seen: Seen, secret: Bits) -> PlainScore:
    """Fit the line that suits a column of normal noise; for any noise with a monotone ratio its order is right."""
    values = seen.table[:, column]
    body = np.clip(values, *np.quantile(values, [0.005, 0.995]))
    first, other = (body[arm].mean() if arm.any() else body.mean() for arm in (secret, ~secret))
    variance = (np.square(body[secret] - first).sum() + np.square(body[~secret] - other).sum()) / body.size
    slope = float(np.clip((first - other) / variance, -_STEEPEST, _STEEPEST)) if variance > 0 else 0.0
    return PlainScore(column=int(column), centre=float(first + other) / 2, slope=slope)


def learn_linear(seen: Seen, secret: Bits) -> DrawnIn:
    """Fit the logistic regression."""
    part = slice(0, max(_LEAST_RUNS, min(_LINEAR_RUNS, _LINEAR_NUMBERS // seen.table.shape[1])))
    table = seen.table[part]
    low, high = np.quantile(np.sort(table.T, axis=1), [0.002, 0.998], axis=1)  # sorted first: twice as fast
    linear = learn_score(np.clip(table, low, high), secret[part], ridge=5.0, rounds=_ROUNDS)
    return DrawnIn(low=low, high=high, linear=linear)


def learn_trees(columns: NDArray[np.int64], seed: int, seen: Seen, secret: Bits, *, runs: int) -> TreeScore:
    """Grow trees on the first `runs` runs."""
    part = slice(0, runs)
    known = secret[part]
    if min(known.sum(), (~known).sum()) < _FEWEST:
        return TreeScore(columns=columns, model=None)
    model = _scikit_learn()(
        learning_rate=0.1,
        max_iter=120,
        max_leaf_nodes=15,
        min_samples_leaf=10,
        l2_regularization=1.0,
        early_stopping=True,
        validation_fraction=0.15,
        n_iter_no_change=6,
        random_state=seed,
    )
    model.fit(seen.table[part][:, columns], known)
    return TreeScore(columns=columns, model=model)


def one_thread(api: str | None = None) -> Any:
    """Context that limits libraries to one thread: on busy cores, waiting threads cost more than they gain.

    Args:
        api: "blas" or "openmp"; None for both.
    """
    return _controller().limit(limits=1, user_api=api)


@cache
def _controller() -> Any:
    _scikit_learn()
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _scikit_learn() -> Any:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        message = "auditing a function learns its score with scikit-learn, which is not installed"
        wanted = "install privcheck with the extra: pip install 'privcheck[blackbox]'"
        raise ParameterError(f"{message}; {wanted}") from None
    return HistGradientBoostingClassifier


def _bins(values: Array, cut: Array) -> NDArray[np.intp]:
    left = np.searchsorted(cut, values)
    place: NDArray[np.intp] = 2 * left + (
        cut[np.minimum(left, cut.size - 1)] == values
    )  # as if searched from the right
    return place
