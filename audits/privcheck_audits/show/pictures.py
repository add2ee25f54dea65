"""What a plan hands over for the pictures of its report: trade-off curve, bound against trials, pair, ratios.

`privcheck_audits.plan.runner` hands it over for every test: counts at the thresholds that `pilot_marks` of `trade_offs`
chose, a `Prefixes` with the sums on the way, `bound(counted)`, the lower bound from some of the blocks, and
`limit(runs)`, what the best test could have reached with as many runs. What is not given is not drawn. Memory does not
grow with the number of trials, and no bound depends on anything here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from privcheck.mechanisms import Noise
from privcheck.pictures import Bar, Bars, History, ShownPair
from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.engine.prefixes import Counted, Prefixes
from privcheck_audits.show.side_by_side import show_pair
from privcheck_audits.show.trade_offs import trace_charge, trace_claim, trade_off
from privcheck_audits.white_box.distances import Distance
from privcheck_audits.white_box.noise_tests import NoiseTest

__all__ = ["Prefixes", "add_pictures", "draw_distances", "draw_spreads", "history", "of_parts"]

_LIMITS: Final = 24  # points of the limit
_LEAST: Final = 50  # trials, where the limit begins
_NORMS: Final = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞", "step": "ℓ₂ at one step"}

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
    """Returns the result with its pictures, as far as there is something to draw.

    Args:
        result: What the audit found.
        request: What was asked.
        values: The parameters of the attacked instance; the request's where None.
        counted: The runs, for the trade-off curve; counted at thresholds, or there is none.
        seen: The sums of blocks, for the history.
        before: Runs that came before the blocks and are not in them, for a score that is learned.
        bound: The lower bound on ε from some of the blocks, at the audit's confidence.
        limit: What the best test could have certified with so many runs in the blocks.
        anytime: Whether `bound` holds at all times at once.
        pair: The neighbours' data, or how they are shown.
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
    """Returns the bound that each of some sums gives, beside the limit.

    Args:
        points: Sums of the first blocks.
        bound: The lower bound on ε.
        limit: What the best test could have certified with so many runs, or None.
        before: Runs that came before the blocks.
        anytime: Whether the bounds hold together.
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
    """Returns the history of an audit of several parts, from the part that found most, with the trials of all."""
    if course is None:
        return None
    return replace(
        course,
        trials=tuple(parts * number for number in course.trials),
        reachable_trials=tuple(parts * number for number in course.reachable_trials),
    )


def draw_distances(distances: Iterable[Distance]) -> Bars:
    """Returns how far each release was moved over what is charged, in its worst norm: exact, without an interval."""
    worst: dict[str, Distance] = {}
    for one in distances:
        if one.release not in worst or (one.exceeds, one.ratio) > (
            worst[one.release].exceeds,
            worst[one.release].ratio,
        ):
            worst[one.release] = one
    return Bars(
        quantity="distance moved / sensitivity charged",
        one_sided=True,
        bars=tuple(
            Bar(
                name=f"{one.release}, {_NORMS[one.norm]}",
                ratio=one.ratio if math.isfinite(one.ratio) else None,
                violated=one.exceeds,
                words=f"{one.measured:.6g} of {one.charged:.6g}"
                if math.isfinite(one.measured)
                else "the two runs did not release the same slices",
            )
            for one in worst.values()
        ),
    )


def draw_spreads(tests: Iterable[NoiseTest], declared: Mapping[str, Noise], level: float) -> Bars:
    """Returns the scale that each release's noise was drawn at over the declared one, with its interval.

    n·(drawn/true)² ~ χ²(n) for Gaussian noise, 2n·(drawn/true) ~ χ²(2n) for Laplace noise: the interval holds the
    declared scale exactly where the test does not refute it.

    Args:
        tests: Of the noise; those of the scale are shown.
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
