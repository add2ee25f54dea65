"""Assertions about privacy for test suites. In a test marked `privacy` they share one α with the whole session."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from privcheck.declaration import Declaration
from privcheck.entry_points import load_entry
from privcheck.errors import DeclarationError, ParameterError
from privcheck.guarantees import claimed_delta
from privcheck.results import AuditRequest, AuditResult
from privcheck.setting import Setting
from privcheck.symbols import Exact
from privcheck.testing.session import ALLOWANCE, CONFIDENCE, TRIALS, Allowance, SummaryLine
from privcheck.verification import Verification, judge

DeclarationView = Literal["releases", "lockstep", "noise"]
_PAIRS = 50  # of the lockstep view, two runs each
_RUNS = 50  # of the noise view


def assert_declaration(
    declaration: Declaration,
    sets: Mapping[str, Exact] | None = None,
    *,
    views: Sequence[DeclarationView] = ("lockstep", "noise", "releases"),
    trials: int | None = None,
    confidence: float | None = None,
    seed: int | None = None,
) -> Verification:
    """Asserts that a declaration's claim holds and that audits of its statistics and noise refute nothing.

    Args:
        declaration: What is asserted.
        sets: Parameters that differ from the defaults.
        views: The audits; α is divided among those that draw.
        trials: Runs under each neighbour in the releases view; 10 000, or what the session's options say.
        confidence: .99; in a test marked `privacy` the session decides and none may be given.
        seed: 0, or what the session's options say.

    Raises:
        AssertionError: The claim fails or is undecided, a statistic moves further than it says, or an audit found a
            violation.
        ParameterError: An argument is out of range, or the marker announced fewer audits.
    """
    __tracebackhide__ = True
    allowed = allow(confidence)
    values = declaration.values(dict(sets or {}))
    setting = Setting(declaration=declaration, values=values)
    try:
        verified = judge(setting.priced)
    except DeclarationError as error:  # a statistic contradicts itself, on a pair that the message names
        raise AssertionError(str(error)) from error
    drawing = [view for view in views if view != "lockstep"]
    delta = _delta(declaration)
    runs = {"lockstep": _PAIRS, "noise": _RUNS, "releases": allowed.trials if trials is None else trials}
    problems = []
    lower = ""
    if verified.verdict != "holds":
        findings = "; ".join(f"{finding.code}: {finding.message}" for finding in verified.findings) or verified.repair
        problems.append(f"verify: {verified.claim} {verified.verdict} ({findings})")
    for view in views:
        result = _view(
            view,
            AuditRequest(
                setting=setting,
                view=view,
                delta=delta,
                trials=runs[view],
                confidence=1 - (1 - allowed.confidence) / max(1, len(drawing)),
                seed=allowed.seed if seed is None else seed,
            ),
        )
        if result.epsilon_lower is not None:
            lower = f"ε ≥ {round_down(result.epsilon_lower)}"
        if result.verdict == "violation":
            problems.append(f"{view}: {result.method}; {result.witness}; {dict(result.evidence)}")
    upper = setting.priced.epsilon(delta)
    allowed.done.append(
        SummaryLine(
            claim=verified.claim,
            upper=f"ε ≤ {_up(upper)}" + (f" at δ = {delta:g}" if delta else ""),
            lower=lower,
            trials=runs["releases"] if "releases" in views else 0,
            confidence=allowed.confidence,
            verdict=verified.verdict if verified.verdict != "holds" else "violation" if problems else "consistent",
        )
    )
    if problems:
        raise AssertionError(f"{declaration.name}: " + "\n".join(problems)[:2_000])
    return verified


def allow(confidence: float | None) -> Allowance:
    """Returns what an audit of the running test may spend; outside of a marked test, what was asked for.

    Raises:
        ParameterError: The test is marked and a confidence is given, or it has made all its audits.
    """
    allowed = ALLOWANCE.get()
    given = CONFIDENCE if confidence is None else confidence
    if allowed is None:
        return Allowance(trials=TRIALS, confidence=given, seed=0, audits=None)
    if allowed.audits is None:
        return replace(allowed, confidence=given)
    if confidence is not None:
        message = "a test marked `privacy` shares one α with its session: leave out `confidence`"
        raise ParameterError(f"{message}, set --privacy-confidence", name="confidence", given=confidence)
    if len(allowed.done) >= allowed.audits:
        message = f"expected {allowed.audits} audits in this test, as its marker says, and this is one more"
        more = len(allowed.done) + 1
        raise ParameterError(f"{message}; mark it `@pytest.mark.privacy(audits={more})`", name="audits", given=more)
    return allowed


def _delta(declaration: Declaration) -> float:
    claimed = claimed_delta(declaration.claim.guarantee)
    return 1e-5 if claimed is None or claimed.symbols else claimed.number(rounding="down")


def _view(view: str, request: AuditRequest) -> AuditResult:
    attack = cast("Callable[[AuditRequest], AuditResult]", load_entry("auditors", view, kind="view"))
    return attack(request)


def round_down(value: float) -> str:
    """Returns four decimals of a lower bound, rounded down."""
    return f"{math.floor(value * 1e4) / 1e4:g}" if math.isfinite(value) else "∞"


def _up(value: float) -> str:
    return f"{math.ceil(value * 1e4) / 1e4:g}" if math.isfinite(value) else "∞"
