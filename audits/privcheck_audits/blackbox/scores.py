"""Learned scores of outputs whose law nobody knows: several, because no one of them finds everything.

Each is learned on training runs alone, and what it said of training runs is what models said that had not seen them:
the parts of the audit's α are dealt out by that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck_audits.blackbox.echoes import echoes, shape
from privcheck_audits.blackbox.features import FeatureMap, feature_map, separation
from privcheck_audits.blackbox.grid import grid_steps, on_grid
from privcheck_audits.blackbox.learners import (
    Array,
    Bits,
    KeyScore,
    Seen,
    learn_columns,
    learn_keys,
    learn_linear,
    learn_plain,
    learn_trees,
    one_thread,
)
from privcheck_audits.blackbox.patterns import PATTERNS, patterns, row_keys
from privcheck_audits.policy.linear_score import LinearScore, learn_score

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
    """The scores of one pair of neighbours; D is guessed where a score is high.

    Attributes:
        steps: The grid.
        features: Of rows on the grid.
        single: The scores by name.
        blend: What combines them; the last score.
    """

    steps: Array
    features: FeatureMap
    single: tuple[tuple[str, Score], ...]
    blend: LinearScore

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the scores' names."""
        return (*(name for name, _ in self.single), "all together")

    def __call__(self, rows: Array) -> Array:
        """Returns (scores, runs) of outputs as they were returned."""
        at = on_grid(rows, self.steps)
        views = [score.view for _, score in self.single if isinstance(score, KeyScore) and score.keys.size]
        seen = Seen(table=self.features(at), keys=_keys(at, views))
        scores = _apply(self.single, seen)
        return _tidy(np.vstack([scores, self.blend(scores.T)]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearnedScores:
    """Scores with what they say of the training runs, each by models that did not see the run.

    Attributes:
        scores: To be applied to fresh runs.
        held_out: (scores, runs) of those runs that models did not see.
        secret: (runs,) whether each of those was on D.
    """

    scores: Scores
    held_out: Array
    secret: Bits


def learn(rows: Array, secret: Bits, rng: np.random.Generator, *, fine: bool = False) -> LearnedScores:
    """Returns the scores learned on the runs.

    Args:
        rows: (runs, width) outputs.
        secret: (runs,) whether each was on D.
        rng: Divides the runs and seeds the trees.
        fine: On the grid for double precision, whatever precision the outputs have.

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
    """Returns scores learned on some of the runs and what they say of the others: cheap, where there are many."""
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
    """Returns the mean logarithmic loss of the guesses of the hidden bit."""
    return float(np.logaddexp(0.0, np.where(secret, -scores, scores)).mean())


def _crossed(drawn: _Drawn, fold: NDArray[np.int64], seed: int) -> _Fitted:
    """Returns scores learned on all runs, and what those learned on the other folds say of each fold."""
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
    """Returns the patterns that are worth a key: orders, which take sorting, where any came back in a look."""
    if rows.shape[1] < 2:
        return [0, 1]
    few = _keys(rows[:_REPEATS], (2, 3))
    return [0, 1, *(view for view, keys in enumerate(few) if keys is not None and np.unique(keys).size < keys.size)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Drawn:
    """Training runs, with what does not depend on what is learned."""

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
    """Returns the features and all scores, from outputs on the grid."""
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
