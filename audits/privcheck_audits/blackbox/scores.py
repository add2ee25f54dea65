"""Learned scores of outputs of unknown distribution: several, since no single one finds every leak.

The learners come first (equal outputs, histograms, logistic regression, boosted trees): each learns how much likelier
an output is on D than on D′, in nats.

Each is learned on training runs only. Its held-out values on the training runs decide the shares of the audit's α.
Before learning, outputs are rounded to a grid, so that leaks of the design are found and not those of floats
(`grid_steps`); discrete patterns of outputs get 64-bit keys, by which equal ones are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck_audits.blackbox.features import FeatureMap, feature_map, separation
from privcheck_audits.blackbox.width import echoes, shape
from privcheck_audits.engine.scores import LinearScore, learn_score

_LINEAR_RUNS: Final = 20_000
_LINEAR_NUMBERS: Final = 2_000_000  # of the table that logistic regression learns on
_LEAST_RUNS: Final = 4_000
_ROUNDS: Final = 10
_FEWEST_TO_GROW: Final = 10  # runs under a neighbour, to grow trees
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
        keys: (runs,) keys of each of `patterns`; None for patterns that are not needed.
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
    if min(known.sum(), (~known).sum()) < _FEWEST_TO_GROW:
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


_BITS: Final = 30  # of the fine grid
_PRECISIONS: Final = (8, 11, 24)  # bfloat16, float16, float32
_GUARD: Final = 2  # bits by which the grid is coarser than the numbers
_PRECISION_RUNS: Final = 4_000  # runs on which the precision is seen
_MEDIANS: Final = 8_000  # runs that the spread is taken from
_FEWEST: Final = 32  # different numbers that a precision is read from
_SHARE: Final = 0.5  # of them that have no more bits
_EVEN: Final = 0.4  # of them that are odd multiples of the finest step: half, on one even grid
_TOP: Final = 0.999  # quantile of the magnitudes
_DIGITS: Final = 53


def grid_steps(rows: Array, secret: Bits, *, fine: bool = False) -> Array:
    """Grid step of each column (width,): a power of two; 0 for integers.

    In double precision the grid is 2³⁰ times finer than the spread of a column. Numbers of lower precision lie on their
    own grids, which are finer around 0, and noise added to them leaves a coarser fingerprint: there the grid is four
    times as coarse as the numbers are at the largest magnitude. The precision is read from the last bits of the
    numbers, whatever their dtype; numbers on one even grid (counts, multiples of ¼) are not rounded further. All of
    this is decided on the training runs.

    Args:
        rows: (runs, width) training runs.
        secret: (runs,) whether each was on D; the precision of either neighbour's numbers counts.
        fine: Whether to treat all numbers as double precision.
    """
    steps = np.zeros(rows.shape[1])
    for column, values in enumerate(rows.T):
        finite = values[np.isfinite(values)]
        if finite.size == 0 or (finite == np.rint(finite)).all():
            continue
        few = finite[:_MEDIANS]
        away = np.abs(few - np.median(few))
        spread = float(np.median(away[away > 0])) if away.any() else float(np.abs(few[0]))
        steps[column] = 2.0 ** max(-1000, np.floor(np.log2(spread)) - _BITS)
        if not fine:
            look = slice(0, _PRECISION_RUNS)
            arms = (values[look][secret[look]], values[look][~secret[look]])
            steps[column] = max(steps[column], *(own_step(arm) for arm in arms))
    return steps


def on_grid(rows: Array, steps: Array) -> Array:
    """Round rows to the grid, halves upwards; −0 becomes 0.

    Every cell contains the same number of points of a finer grid: rounding halves to even would make every second cell
    larger where numbers are coarse.
    """
    moving = steps > 0
    unit = np.where(moving, steps, 1.0)
    with np.errstate(over="ignore"):  # what is too large for the grid becomes infinite, an atom of its own
        rounded: Array = rows / unit  # by a power of two: exact
        rounded += 0.5
        np.floor(rounded, out=rounded)
        rounded *= unit
    if not moving.all():
        np.copyto(rounded, rows, where=~moving)
    rounded += 0.0
    return rounded


def own_step(values: Array) -> float:
    """Step that hides the grid of numbers of low precision; 0 for double precision and even grids.

    >>> noise = np.random.default_rng(0).laplace(0, 1, 1_000)
    >>> own_step(noise), own_step(noise.astype(np.float32).astype(float)), own_step(np.rint(4 * noise) / 4)
    (0.0, 1.9073486328125e-06, 0.0)
    """
    shown = np.unique(np.abs(values[np.isfinite(values) & (values != 0)]))
    if shown.size < _FEWEST:
        return 0.0
    fraction, power = np.frexp(shown)
    digits = np.ldexp(fraction, _DIGITS).astype(np.int64)
    bits = _DIGITS - np.log2(digits & -digits).astype(np.int64)  # that the number needs
    for precision in _PRECISIONS:
        low = bits <= precision
        if low.mean() >= _SHARE:
            last = (power - bits)[low]
            if (last == last.min()).mean() >= _EVEN:
                return 0.0
            top = np.frexp(np.quantile(shown[low], _TOP, method="lower"))[1]
            return float(2.0 ** (int(top) - precision + _GUARD))
    return 0.0


def row_keys(rows: Array) -> NDArray[np.uint64]:
    """64-bit key of each row (runs,): equal rows have equal keys; different rows collide with probability 2⁻⁶⁴."""
    words = np.ascontiguousarray(rows).view(np.uint64)
    key = np.full(rows.shape[0], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in range(rows.shape[1]):
        key ^= words[:, column]
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64's finaliser
            key ^= key >> np.uint64(shift)
            key *= np.uint64(factor)
        key ^= key >> np.uint64(31)
    return key


PATTERNS: Final = ("equal outputs", "signs and round numbers", "equal outputs in any order", "order of the values")


def patterns(rows: Array, wanted: Sequence[int]) -> tuple[Array | None, ...]:
    """Discrete views of outputs: the output, signs and round numbers, sorted values, and their order with ties.

    Args:
        rows: (runs, width) outputs.
        wanted: Indices of `PATTERNS`; other views are None. Single numbers have only the first two patterns.
    """
    views: list[Array | None] = [None] * len(PATTERNS)
    if 0 in wanted:
        views[0] = rows
    if 1 in wanted:
        views[1] = np.sign(rows) + 3.0 * (rows == np.rint(rows)) + 7.0 * np.isinf(rows)
    if 2 in wanted and 3 not in wanted:
        views[2] = np.sort(rows, axis=1)
    if 3 in wanted:
        order = np.argsort(rows, axis=1, kind="stable")
        ranked = np.take_along_axis(rows, order, axis=1)
        new = np.zeros(rows.shape)
        new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
        dense = np.empty_like(rows)
        np.put_along_axis(dense, order, np.cumsum(new, axis=1), axis=1)
        views[2:] = [ranked if 2 in wanted else None, dense]
    return tuple(views if rows.shape[1] > 1 else views[:2])


_FOLDS: Final = 3
_HALVES: Final = 2  # of many single numbers: few are enough to learn from, and rare ones have to be held out too
_REPEATS: Final = 10_000  # runs among which an order has to come back to be looked up
_MANY: Final = 20_000  # runs from which on one part learns and the other part is asked
_BLENDED: Final = 40_000  # runs that the blend is learned on
_TREE_FEATURES: Final = 64
_CLEARLY: Final = 1.05  # times what any other feature tells, for what is learned of all columns at once
_TREE_RUNS: Final = 40_000
_TRIED: Final = 8_000  # runs on which trees are tried where they are seldom of use
_FEATURES: Final = 128  # that tell most by themselves; others are not looked at again
_LOOK: Final = 8_000  # runs on which features are compared
_BINS: Final = 24
_FINE_BINS: Final = 192
_GRID: Final = 2.0**20  # scores are multiples of 2⁻²⁰
_MOST: Final = 60.0  # nats; a score says no more

Score = Callable[[Seen], Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Scores of one pair of neighbours; a high score is a guess of D.

    Attributes:
        steps: Steps of the grid.
        features: Features of rows on the grid.
        single: The scores, with their names.
        blend: Combination of the scores; the last score.
    """

    steps: Array
    features: FeatureMap
    single: tuple[tuple[str, Score], ...]
    blend: LinearScore

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the scores."""
        return (*(name for name, _ in self.single), "all together")

    def __call__(self, rows: Array) -> Array:
        """Scores of raw outputs, (scores, runs)."""
        at = on_grid(rows, self.steps)
        views = [score.view for _, score in self.single if isinstance(score, KeyScore) and score.keys.size]
        seen = Seen(table=self.features(at), keys=_keys(at, views))
        scores = _apply(self.single, seen)
        return _tidy(np.vstack([scores, self.blend(scores.T)]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedScores:
    """Scores with their held-out values on the training runs.

    Attributes:
        scores: Scores for fresh runs.
        held_out: (scores, runs) values on training runs, by models that did not see the run.
        secret: (runs,) whether each of these runs was on D.
    """

    scores: Scores
    held_out: Array
    secret: Bits


def learn(rows: Array, secret: Bits, rng: np.random.Generator, *, fine: bool = False) -> LearnedScores:
    """Learn scores on the runs.

    Args:
        rows: (runs, width) outputs.
        secret: (runs,) whether each was on D.
        rng: Generator that divides the runs and seeds the trees.
        fine: Whether to use the grid for double precision whatever the precision of the outputs.

    Raises:
        ParameterError: scikit-learn is not installed.
    """
    with one_thread():
        steps = grid_steps(rows, secret, fine=fine)
        at = on_grid(rows, steps)
        many = secret.size >= _MANY
        parts = _HALVES if many and rows.shape[1] == 1 else _FOLDS
        fold = rng.permutation(np.arange(secret.size) % parts)
        seed = int(rng.integers(2**31))
        figures = () if many else (shape(at), echoes(at))  # worked out once where they are needed four times
        drawn = _Drawn(rows=at, figures=figures, keys=_keys(at, _repeated(at)), secret=secret)
        if many:
            features, final, held_out, known = _split(drawn, fold == 0, seed)
        else:
            features, final, held_out, known = _crossed(drawn, fold, seed)
        # the blend's weights saw every run, but there are a handful of them
        blend = learn_score(held_out.T[:_BLENDED], known[:_BLENDED], ridge=5.0)
    scores = Scores(steps=steps, features=features, single=final, blend=blend)
    return LearnedScores(scores=scores, held_out=_tidy(np.vstack([held_out, blend(held_out.T)])), secret=known)


_Fitted = tuple[FeatureMap, tuple[tuple[str, Score], ...], Array, Bits]


def _split(drawn: _Drawn, asked: Bits, seed: int) -> _Fitted:
    """Scores learned on some of the runs, with their values on the others: cheap, if there are many runs."""
    part, others = drawn.part(~asked), drawn.part(asked)
    single = drawn.rows.shape[1] == 1
    features, final = _fit(part, seed, tree_runs=_TRIED if single else None)
    held_out = _apply(final, others.view(features))
    if single:  # few trees say whether all are worth their time, which most of an audit of single numbers would go to
        losses = [_loss(values, others.secret) for values in held_out]
        if losses[-1] < min(losses[:-1]):
            features, final = _fit(part, seed)
            held_out = _apply(final, others.view(features))
        else:
            final, held_out = final[:-1], held_out[:-1]
    return features, final, held_out, others.secret


def _loss(scores: Array, secret: Bits) -> float:
    """Mean logarithmic loss of the guesses of the hidden bit."""
    return float(np.logaddexp(0.0, np.where(secret, -scores, scores)).mean())


def _crossed(drawn: _Drawn, fold: NDArray[np.int64], seed: int) -> _Fitted:
    """Scores learned on all runs, with the cross-fitted values on each fold."""
    features, final = _fit(drawn, seed)
    held_out = np.zeros((len(final), drawn.secret.size))
    for k in range(_FOLDS):
        asked = fold == k
        seen_by_others, fitted = _fit(drawn.part(~asked), seed)
        held_out[:, asked] = _apply(fitted, drawn.part(asked).view(seen_by_others))
    return features, final, held_out, drawn.secret


def _tidy(scores: Array) -> Array:
    rounded: Array = np.rint(np.clip(scores, -_MOST, _MOST) * _GRID) / _GRID
    return rounded


def _apply(single: tuple[tuple[str, Score], ...], seen: Seen) -> Array:
    return np.stack([np.clip(score(seen), -_MOST, _MOST) for _, score in single])


def _keys(rows: Array, views: Sequence[int]) -> tuple[NDArray[np.uint64] | None, ...]:
    return tuple(None if view is None else row_keys(view) for view in patterns(rows, views))


def _repeated(rows: Array) -> list[int]:
    """Indices of the patterns that get keys: orders, which need sorting, only if any recurs in a sample."""
    if rows.shape[1] < 2:
        return [0, 1]
    few = _keys(rows[:_REPEATS], (2, 3))
    return [0, 1, *(view for view, keys in enumerate(few) if keys is not None and np.unique(keys).size < keys.size)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """Training runs, with everything that does not depend on the learned models."""

    rows: Array
    figures: tuple[Array, ...]
    keys: tuple[NDArray[np.uint64] | None, ...]
    secret: Bits

    def part(self, which: Bits) -> _Drawn:
        return _Drawn(
            rows=self.rows[which],
            figures=tuple(each[which] for each in self.figures),
            keys=tuple(None if keys is None else keys[which] for keys in self.keys),
            secret=self.secret[which],
        )

    def view(self, features: FeatureMap) -> Seen:
        return Seen(table=features(self.rows, self.figures), keys=self.keys)


def _fit(drawn: _Drawn, seed: int, *, tree_runs: int | None = None) -> tuple[FeatureMap, tuple[tuple[str, Score], ...]]:
    """Fit the features and all scores, from outputs on the grid."""
    secret = drawn.secret
    every = feature_map(drawn.rows, secret)
    look = np.arange(secret.size) < _LOOK
    table = drawn.part(look).view(every).table
    far = separation(table, secret[look])
    lines = every.discriminants  # of hundreds of weights: they say too much of the runs that they were learned on
    if lines.size:
        unseen = slice(0, min(_LOOK, secret.size // 2))
        fresh = separation(table[unseen][:, lines], secret[unseen])
        far[lines] = np.where(fresh > _CLEARLY * np.delete(far, lines).max(), fresh, -1.0)
    chosen = (far >= np.sort(far)[-min(_FEATURES, far.size)]) & (far >= 0)
    chosen[: every.kept.size] = True
    features = every.restricted(chosen)
    best = np.argsort(-far[chosen], kind="stable")
    seen = drawn.view(features)
    own = np.arange(features.kept.size)  # the first columns of the table are the outputs themselves
    keyed = [learn_keys(view, seen, secret) for view in range(len(seen.keys))]
    return features, (
        *zip(PATTERNS, keyed, strict=False),
        ("one figure as it is", learn_plain(int(best[0]), seen, secret)),
        ("one figure", learn_columns(best[:1], _FINE_BINS, seen, secret)),
        ("values one by one", learn_columns(own, _BINS, seen, secret)),
        ("linear", learn_linear(seen, secret)),
        ("trees", learn_trees(np.sort(best[:_TREE_FEATURES]), seed, seen, secret, runs=tree_runs or _TREE_RUNS)),
    )
