"""Runner of every test: count → bound → evidence → result → plots.

A view defines how its runs are counted and what the counts mean; the runner measures the time, keeps the partial sums,
adds the request and the claim to the result, and attaches the plots.
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
    """Interpretation of a test's counts.

    Attributes:
        violated: Whether a limit is refuted.
        doubt: Reason why the test is uninformative unless it refutes; empty if it is informative.
        evidence: Figures behind the result.
        method: The test, in words.
        witness: The pair, in words.
        lower: The lower bound on ε; None if the test gives no bound.
        reachable: Bound that the best test could have reached with these counts if the declared law is true.
        runs: Number of runs under both neighbours together; None for the requested trials, without timing.
        tally: Counts of the guesses, for the trade-off curve.
        bound: The lower bound from some of the blocks; None if its history is not drawn.
        limit: The same as `reachable` for a number of runs.
        before: Number of runs before the blocks, used to learn a score.
        anytime: Whether `bound` holds at all times simultaneously.
        pair: The neighbours' data, or their display.
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
    """Run a test and return its result, with the request and the limits that it is compared with.

    Args:
        request: The request.
        count: Runs the blocks and notes the partial sums.
        read: Interprets the counts.
        bound: The claim's and the accountant's ε; None for those at the request's parameters.
        values: Parameters of the attacked instance; None for the request's.
        began: Start of the audit, if its preparation is timed too; None to time the counting alone.
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
