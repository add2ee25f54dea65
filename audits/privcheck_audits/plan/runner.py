"""One runner for every test: count → bound → evidence → result → pictures.

A view says how its runs are counted and what the counts mean; the runner keeps the time and the sums on the way, sets
the result beside what was asked and claimed, and draws what there is to draw.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from privcheck.runtime.audit_pictures import Bars, ShownPair
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.engine.sequential import Prefixes
from privcheck_audits.plan.pictures import add_pictures
from privcheck_audits.plan.requests import Evidence, Limits, limits, says_nothing

C = TypeVar("C")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What a test's counts mean.

    Attributes:
        violated: Whether something is refuted.
        doubt: Why nothing can be said where nothing is refuted; empty where something can.
        evidence: The figures.
        method: The test, in words.
        witness: The pair, in words.
        lower: The lower bound on ε, or None where the test has none.
        reachable: What the best test could have certified with these counts, were the declared law true.
        runs: Under both neighbours together; None where they are the trials that were asked for, and not timed.
        tally: The guesses, for the trade-off curve.
        bound: The lower bound from some of the blocks; None where its history is not drawn.
        limit: The same as `reachable` for a number of runs.
        before: Runs that came before the blocks and are not in them, for a score that is learned.
        anytime: Whether `bound` holds at all times at once.
        pair: The neighbours' data, or how they are shown.
        bars: Figures of the releases beside the declared ones.
    """

    violated: bool
    evidence: Evidence
    method: str
    witness: str = ""
    lower: float | None = None
    reachable: float | None = None
    runs: int | None = None
    tally: Tally | None = None
    bound: Callable[[Any], float] | None = None
    limit: Callable[[int], float] | None = None
    before: int = 0
    anytime: bool = False
    pair: tuple[Any, Any] | ShownPair | None = None
    bars: Bars | None = None
    doubt: str = ""


def run_test(
    request: AuditRequest,
    count: Callable[[Prefixes[Any]], C],
    read: Callable[[C], Outcome],
    *,
    bound: Limits | None = None,
    values: Mapping[str, Fraction] | None = None,
    began: float | None = None,
    agent_ran: bool = False,
) -> AuditResult:
    """Returns what a test came to, beside what was asked and the limits that it is compared with.

    Args:
        request: What is asked.
        count: Runs the blocks, and notes the sums on the way.
        read: What the counts mean.
        bound: The claim's and the accountant's ε; those at the request's parameters where None.
        values: The parameters of the attacked instance; the request's where None.
        began: When the audit began, where its preparation counts too; else the counting alone is timed.
        agent_ran: Whether the registered agent was run.
    """
    began = time.perf_counter() if began is None else began
    seen = Prefixes[Any]()
    counted = count(seen)
    seconds = time.perf_counter() - began
    outcome, bound = read(counted), bound or limits(request, request.values)
    runs = outcome.runs
    open_ = bool(outcome.doubt) or says_nothing(request)
    timed: Evidence = {} if runs is None else {"trials_per_second": runs / seconds}
    result = AuditResult(
        view=request.view,
        verdict="violation" if outcome.violated else "undecided" if open_ else "consistent",
        trials=request.trials if runs is None else -(-runs // 2),
        confidence=request.confidence,
        delta=request.delta,
        epsilon_lower=outcome.lower,
        epsilon_upper=bound.upper,
        epsilon_claimed=bound.claimed,
        reachable=outcome.reachable,
        method=outcome.method,
        witness=outcome.witness,
        evidence=outcome.evidence | timed,
        seconds=seconds,
        agent_ran=agent_ran,
    )
    return add_pictures(
        replace(result, bars=outcome.bars),
        request,
        values=values,
        counted=outcome.tally,
        seen=None if outcome.bound is None else seen,
        before=outcome.before,
        bound=outcome.bound,
        limit=outcome.limit,
        anytime=outcome.anytime,
        pair=outcome.pair,
    )
