"""Plot data of a plan's report: trade-off curve, bound against trials, pair, ratios.

`privcheck_audits.plan.runner` passes it for every test (`add_pictures`); missing parts are not drawn. Memory does not
grow with the number of trials, and no bound depends on anything here.

* Trade-off curves (f-DP): both kinds of error of a score at every threshold, and the errors that claims allow. The
  thresholds (`pilot_marks`) are chosen before the counted runs, from a separate random stream, so that every count is
  binomial.
* The pair of neighbours as a table for readers: each user, step by step, in D and in D′.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, betaincinv, ndtr, ndtri

from privcheck.accounting import claim_delta, claim_epsilon
from privcheck.data.finite_models import FiniteMDP
from privcheck.data.trajectories import Regressors, Trajectories
from privcheck.pricing.cost import NumericAccount
from privcheck.runtime.audit_pictures import History, ShownPair, TradeOff
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.terms.guarantees import ZCDP, GaussianDP, Guarantee, PrivacyProfile, RenyiDP
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.engine.scores import Scored
from privcheck_audits.engine.sequential import Counted, Prefixes

PILOT: Final = 4_096  # runs from which thresholds are chosen; nothing else is read from them
_MARKS: Final = 32  # thresholds an arm
_TAIL: Final = 1e-3  # share of an arm beyond its outermost threshold
_TAG: Final = (0xA0D17, 0x9107)  # spawn key of the pilot, which no part of an audit has
_GRID: Final = np.unique(np.concatenate([np.linspace(0, 1, 81), np.geomspace(1e-5, 0.1, 33)]))
_PROFILE: Final = 61  # points of a privacy curve that is turned into a trade-off curve
_CERTIFIED: Final = 25  # such points where each costs milliseconds
_SMALL: Final = 1e-6  # δ at which that curve ends

Sample = Callable[[np.random.Generator, int], Scored]


def pilot_marks(sample: Sample, *, seed: int) -> tuple[float, ...]:
    """Thresholds for `tally` from a small sample with a separate random stream.

    Args:
        sample: Draws and scores a number of runs.
        seed: Seed of the audit.
    """
    scored = sample(np.random.default_rng(np.random.SeedSequence(seed, spawn_key=_TAG)), PILOT)
    return marks(scored)


def marks(scored: Scored) -> tuple[float, ...]:
    """Thresholds for `tally`, ascending: quantiles of each arm, dense in its tails.

    Args:
        scored: Runs that are not counted: a pilot's, or those that the score was learned on.
    """
    levels = ndtr(np.linspace(ndtri(_TAIL), ndtri(1 - _TAIL), _MARKS))
    arms = [scored.score[arm] for arm in (scored.secret, ~scored.secret)]
    quantiles = [np.quantile(arm, levels, method="inverted_cdf") for arm in arms if arm.size]  # atoms are met exactly
    return tuple(np.unique(np.concatenate([np.zeros(1), *quantiles])).tolist())


def trade_off(
    counted: Tally,
    *,
    confidence: float,
    claim: NDArray[np.float64] | None,
    words: str,
    accountant: NDArray[np.float64] | None,
) -> TradeOff | None:
    """Both kinds of error at every threshold; None if an arm has no runs.

    Thresholds were fixed before the runs were drawn, so each count is binomial: exact intervals (Clopper & Pearson
    1934), α divided among both sides of both counts of all thresholds. The curve is that of the tests at these
    thresholds and of their random mixtures, the hull of their points: it lies between the hulls of the intervals'
    corners.

    Args:
        counted: Counts of the runs.
        confidence: Joint confidence of all intervals.
        claim: The claim's curve on the grid, or None.
        words: The claim, in words.
        accountant: The accountant's curve on the grid, or None.
    """
    arms = counted.on_first, counted.on_second
    if min(arms) == 0:
        return None
    level = (1 - confidence) / (4 * len(counted.false_second))
    one, two = (np.array(errors) for errors in (counted.false_second, counted.false_first))
    (one_low, one_high), (two_low, two_high) = (
        _interval(errors, runs, level) for errors, runs in zip((one, two), arms, strict=True)
    )
    return TradeOff(
        runs=arms,
        confidence=confidence,
        type_one=_floats(one / arms[0]),
        type_two=_floats(two / arms[1]),
        grid=_floats(_GRID),
        at_least=_floats(_hull([0.0, *one_low, 1.0], [1.0, *two_low, 0.0])),
        at_most=_floats(_hull([0.0, *one_high, 1.0], [1.0, *two_high, 0.0])),
        claim=None if claim is None else _floats(claim),
        claim_words=words,
        accountant=None if accountant is None else _floats(accountant),
    )


def _hull(alphas: list[float], betas: list[float]) -> NDArray[np.float64]:
    """Largest convex curve on the grid below or on all points, which reach from α = 0 to 1."""
    kept: list[tuple[float, float]] = []
    for x, y in sorted(zip(alphas, betas, strict=True)):
        while len(kept) > 1 and _turns_down(kept[-2], kept[-1], (x, y)):
            kept.pop()
        if not kept or x > kept[-1][0]:
            kept.append((x, y))
    corners = np.array(kept)
    return np.asarray(np.interp(_GRID, corners[:, 0], corners[:, 1]))


def _turns_down(before: tuple[float, float], here: tuple[float, float], after: tuple[float, float]) -> bool:
    (x0, y0), (x1, y1), (x2, y2) = before, here, after
    return (y1 - y0) * (x2 - x0) >= (y2 - y0) * (x1 - x0)


def trace_claim(guarantee: Guarantee, values: Mapping[str, Fraction]) -> NDArray[np.float64] | None:
    """Least type-II error on the grid that the claim allows; None if it allows everything.

    (ε, δ)-DP is the curve max(0, 1 − δ − e^ε α, e^(−ε)(1 − δ − α)) (Dong, Roth & Su 2022, Proposition 2.5). ρ-zCDP is
    what its conversions imply at many ε together: not sharp for any mechanism, but valid for all; Rényi DP likewise. A
    profile
    is the largest of its points' curves, μ-GDP Φ(Φ⁻¹(1 − α) − μ) itself.
    """
    if isinstance(guarantee, GaussianDP):
        return np.asarray(ndtr(ndtri(1 - _GRID) - guarantee.mu.number(values, rounding="up")))
    if isinstance(guarantee, PrivacyProfile):
        points = [(p.epsilon.number(values, rounding="up"), p) for p in guarantee.points]
        return _least_errors([(e, claim_delta(p, values, e)) for e, p in points])
    if isinstance(guarantee, ZCDP | RenyiDP):
        last = claim_epsilon(guarantee, values, _SMALL)
        if not math.isfinite(last):
            return None
        epsilons = np.linspace(0.0, last, _PROFILE)
        return _least_errors([(float(e), claim_delta(guarantee, values, float(e))) for e in epsilons])
    epsilon = guarantee.epsilon.number(values, rounding="up")
    return _least_errors([(epsilon, claim_delta(guarantee, values, epsilon))]) if math.isfinite(epsilon) else None


@functools.lru_cache(maxsize=64)  # every pair, view and attempt of an audit is drawn against the same curve
def trace_charge(charged: NumericAccount) -> NDArray[np.float64] | None:
    """Least type-II error on the grid for the accountant's charge; None if the charge is unbounded.

    μ-GDP is the curve Φ(Φ⁻¹(1 − α) − μ) (Dong, Roth & Su 2022, Definition 2.6); otherwise what many (ε, δ) imply.
    """
    if charged.mu is not None:
        return None if math.isinf(charged.mu) else np.asarray(ndtr(ndtri(1 - _GRID) - charged.mu))
    last = min(charged.epsilon(_SMALL), charged.pure)
    if not math.isfinite(last):
        return None
    pairs = [(float(e), charged.delta(float(e))) for e in np.linspace(0.0, last, _CERTIFIED)]
    return _least_errors([*pairs, (charged.pure, 0.0)] if math.isfinite(charged.pure) else pairs)


def _least_errors(pairs: list[tuple[float, float]]) -> NDArray[np.float64]:
    least = np.zeros(_GRID.size)
    for epsilon, delta in pairs:
        steep = 1 - delta - np.exp(min(epsilon, 700.0)) * _GRID
        flat = math.exp(-epsilon) * (1 - delta - _GRID)
        least = np.maximum(least, np.maximum(steep, flat))
    return least


def _interval(errors: NDArray[Any], runs: int, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    none, every = errors == 0, errors == runs
    low = np.where(none, 0.0, betaincinv(np.where(none, 1, errors), runs - errors + 1, level))
    high = np.where(every, 1.0, betainccinv(errors + 1, np.where(every, 1, runs - errors), level))
    return low, high


def _floats(array: NDArray[Any]) -> tuple[float, ...]:
    return tuple(np.clip(array, 0.0, 1.0).tolist())


_ROWS: Final = 40  # after equal ones in a row were written once
_COORDINATES: Final = 2  # of a vector that are written out

Row = tuple[str, ...]


def show_pair(pair: tuple[Any, Any], title: str = "") -> ShownPair | None:
    """Two users side by side; None if both are absent.

    Trajectories are shown as states, actions and rewards, regressors as vectors, targets and weights, finite models as
    response functions; anything else by its text.

    Args:
        pair: The user's data in D and in D′; None if the user is absent.
        title: Title of the table; empty for the default.
    """
    present = next((user for user in pair if user is not None), None)
    columns: tuple[str, ...]
    if isinstance(present, Trajectories):
        cells = [None if user is None else _trajectory(user) for user in pair]
        labels = [*_numbers(present.horizon), "after"]
        usual, row, columns = "The user in whom D and D′ differ, step by step.", "step", ("state", "action", "reward")
    elif isinstance(present, Regressors):
        cells = [None if user is None else _show_regressors(user) for user in pair]
        labels, columns = _numbers(present.horizon), _names(present)
        usual, row = "The contribution of the user in whom D and D′ differ to the statistics, step by step.", "step"
    elif isinstance(present, FiniteMDP):
        cells = [None if user is None else _responses(user) for user in pair]
        labels, columns = _questions(present), ("next state", "reward")
        usual, row = "Response function of the first user, for any action of the agent.", "step, state, action"
    elif present is not None:
        cells = [None if user is None else [(str(user),)] for user in pair]
        labels, columns, usual, row = ["all"], ("data",), "The data in which D and D′ differ.", ""
    else:
        return None
    return side_by_side(title or usual, row=row, columns=columns, labels=labels, cells=(cells[0], cells[1]))


def side_by_side(
    title: str,
    *,
    row: str,
    columns: tuple[str, ...],
    labels: Sequence[str],
    cells: tuple[Sequence[Row] | None, Sequence[Row] | None],
    note: str = "",
) -> ShownPair:
    """Table in which consecutive equal rows are merged, cut if it is long.

    Args:
        title: Title of the table.
        row: Heading of the row labels.
        columns: Columns shown for each neighbour.
        labels: Label of each row; consecutive numbers can be merged into a range.
        cells: The rows of D and of D′; None for a user who is absent.
        note: Note below the table.
    """
    rows = [tuple(None if side is None else side[i] for side in cells) for i in range(len(labels))]
    starts = [i for i in range(len(rows)) if i == 0 or rows[i] != rows[i - 1] or not labels[i].isdigit()]
    ends = [*(start - 1 for start in starts[1:]), len(rows) - 1]
    kept = list(zip(starts, ends, strict=True))
    if len(kept) > _ROWS:
        note = " ".join(part for part in (note, f"{len(kept) - _ROWS} more rows are omitted.") if part)
        kept = kept[:_ROWS]
    first, second = (None if side is None else tuple(side[start] for start, _ in kept) for side in cells)
    return ShownPair(
        title=title,
        row=row,
        columns=columns,
        labels=tuple(labels[a] if a == b else f"{labels[a]}–{labels[b]}" for a, b in kept),
        first=first,
        second=second,
        note=note,
    )


def _numbers(steps: int) -> list[str]:
    return [str(step) for step in range(1, steps + 1)]


def _trajectory(user: Trajectories) -> list[Row]:
    states, actions, rewards = user.states[0].tolist(), user.actions[0].tolist(), user.rewards[0].tolist()
    rows = [(str(s), str(a), f"{r:g}") for s, a, r in zip(states, actions, rewards, strict=False)]
    return [*rows, (str(states[-1]), "", "")]


def _names(user: Regressors) -> tuple[str, ...]:
    return (*user.vectors, *user.targets, *user.weights)


def _show_regressors(user: Regressors) -> list[Row]:
    vectors = [column[0] for column in user.vectors.values()]
    numbers = [column[0] for column in (*user.targets.values(), *user.weights.values())]
    return [
        (*(_vector(column[step]) for column in vectors), *(f"{column[step]:.4g}" for column in numbers))
        for step in range(user.horizon)
    ]


def _vector(vector: NDArray[np.float64]) -> str:
    shown = [f"{x:.4g}" for x in vector[:_COORDINATES]]
    rest = vector[_COORDINATES:]
    if rest.size:
        shown.append("0, …" if not rest.any() else "…")
    return f"({', '.join(shown)})"


def _questions(user: FiniteMDP) -> list[str]:
    steps = user.transition.shape[0]
    return [
        f"{'any' if steps == 1 else h + 1}, {s}, {a}"
        for h in range(steps)
        for s in range(user.states)
        for a in range(user.actions)
    ]


def _responses(user: FiniteMDP) -> list[Row]:
    shape = user.transition.shape
    likeliest = user.transition.argmax(axis=3).reshape(-1)
    certain = user.transition.max(axis=3).reshape(-1) == 1.0
    rewards = np.broadcast_to(user.reward, shape).reshape(-1, shape[3])[np.arange(likeliest.size), likeliest]
    return [
        (f"{s}" if sure else f"{s}, most likely", f"{r:g}")
        for s, sure, r in zip(likeliest.tolist(), certain.tolist(), rewards.tolist(), strict=True)
    ]


__all__ = ["Prefixes", "add_pictures", "history", "of_parts"]

_LIMITS: Final = 24  # points of the limit
_LEAST: Final = 50  # trials, where the limit begins

C = TypeVar("C", bound=Counted)


def add_pictures(
    result: AuditResult,
    request: AuditRequest,
    *,
    values: Mapping[str, Fraction] | None = None,
    counted: Tally | None = None,
    seen: Prefixes[Any] | None = None,
    before: int = 0,
    bound: Callable[[Any], float] | None = None,
    limit: Callable[[int], float] | None = None,
    anytime: bool = False,
    pair: tuple[Any, Any] | ShownPair | None = None,
) -> AuditResult:
    """Add the plots to a result, as far as their data are given.

    Args:
        result: What the audit found.
        request: The request.
        values: Parameters of the attacked instance; None for the request's.
        counted: Counts of the runs, for the trade-off curve; drawn only if they include thresholds.
        seen: The sums of blocks, for the history.
        before: Number of runs before the blocks, used to learn a score.
        bound: The lower bound on ε from some of the blocks, at the audit's confidence.
        limit: Bound that the best test could have reached with a number of runs in the blocks.
        anytime: Whether `bound` holds at all times simultaneously.
        pair: The neighbours' data, or their display.
    """
    curve, course = None, None
    if counted is not None and counted.false_second:
        at, claim = request.values if values is None else values, request.declaration.claim.guarantee
        curve = trade_off(
            counted,
            confidence=request.confidence,
            claim=trace_claim(claim, at),
            words=request.declaration.claim_words,
            accountant=trace_charge(request.priced.at(at).numbers),
        )
    if seen is not None and seen.points and bound is not None:
        course = history(seen.points, bound, limit, before=before, anytime=anytime)
        if result.epsilon_lower is not None:  # of an audit that stopped it may be more than its last bound
            course = replace(course, epsilon_lower=(*course.epsilon_lower[:-1], result.epsilon_lower))
    shown = result.pair if pair is None else pair if isinstance(pair, ShownPair) else show_pair(pair)
    return replace(result, trade_off=curve, history=course, pair=shown)


def history(
    points: tuple[C, ...],
    bound: Callable[[C], float],
    limit: Callable[[int], float] | None,
    *,
    before: int = 0,
    anytime: bool = False,
) -> History:
    """Bound from each of some sums, beside the limit.

    Args:
        points: Sums of the first blocks.
        bound: The lower bound on ε.
        limit: Bound that the best test could have reached with a number of runs, or None.
        before: Number of runs before the blocks.
        anytime: Whether the bounds hold simultaneously.
    """
    least = min(2 * _LEAST, points[0].runs)
    grid = np.unique(np.geomspace(least, points[-1].runs, _LIMITS).round().astype(int)).tolist()
    runs = grid if limit is not None else []
    return History(
        trials=tuple((before + point.runs) // 2 for point in points),
        epsilon_lower=tuple(bound(point) for point in points),
        anytime=anytime,
        reachable_trials=tuple((before + number) // 2 for number in runs),
        reachable=tuple(limit(number) for number in grid) if limit is not None else (),
    )


def of_parts(course: History | None, parts: int) -> History | None:
    """History of an audit of several parts: that of the part with the largest bound, with the trials of all parts."""
    if course is None:
        return None
    return replace(
        course,
        trials=tuple(parts * number for number in course.trials),
        reachable_trials=tuple(parts * number for number in course.reachable_trials),
    )
