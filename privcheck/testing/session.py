"""Allowance of a test: its part of the session's α, given by the pytest plugin, and the record of its use.

Only the standard library is imported here: the plugin is loaded by every pytest run in the environment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TRIALS = 10_000
AGENT_TRIALS = 500
CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryLine:
    """A line of the summary.

    Attributes:
        claim: The claim.
        upper: The accountant's bound; empty if there is none.
        lower: The lower bound on the loss; empty if none was measured.
        trials: Runs under each neighbour.
        confidence: Confidence of this audit.
        verdict: "violation", "consistent", "holds", "fails" or "undecided".
        report: Path of the page; empty if none is written.
    """

    claim: str
    upper: str
    lower: str
    trials: int
    confidence: float
    verdict: str
    report: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRecord:
    """What a record of the session has of an audit beside its summary line.

    Attributes:
        file: File of the assertion's call.
        line: Its line, counted from 1.
        seed: Seed of the audit.
        method: Test or witness behind the verdict, in words.
        claimed: The claim as a number with its unit; empty if there is none.
        neighbours: The pair that shows a violation, as text; empty without one.
        code: A test that repeats a violation; empty without one.
        notes: Other observations, a sentence each.
    """

    file: str
    line: int
    seed: int
    method: str
    claimed: str = ""
    neighbours: str = ""
    code: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPlace:
    """Location of a test's report pages.

    Attributes:
        root: Function that makes the directory of all reports and returns it.
        name: Name of this test's directory in it; further audits of the test append a number.
        every: Whether audits without a violation get a page too.
        test: Name of the test.
    """

    root: Callable[[], Path]
    name: str
    every: bool
    test: str


@dataclass(slots=True, kw_only=True)
class Examples:
    """The audits requested by Hypothesis in one test.

    They share the test's α: α/(k (k + 1)) for the k-th distinct audit, which adds up to at most α for any number.

    Attributes:
        number: Number of distinct audits so far.
        known: Results by content: Hypothesis repeats failed examples, which must fail again.
        lines: Index of the test's summary line for the audits of a mechanism and claim.
        largest: The largest lower bound of each such line.
    """

    number: int = 0
    known: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    largest: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Allowance of a test.

    Attributes:
        trials: Default number of runs under each neighbour.
        agent_trials: The same for whole agents.
        confidence: Confidence of each of its audits.
        seed: Default seed of each of its audits.
        audits: Number of audits announced by the marker; None in an unmarked test.
        done: Summary lines of the audits that were made.
        examples: Audits requested by Hypothesis.
        place: Location of reports; None for no reports.
        reports: Functions that write the report of an audit, by its index in `done`.
        records: Further facts of an audit, by its index in `done`.
    """

    trials: int
    confidence: float
    seed: int
    audits: int | None
    agent_trials: int = AGENT_TRIALS
    done: list[SummaryLine] = field(default_factory=list)
    examples: Examples = field(default_factory=Examples)
    place: ReportPlace | None = None
    reports: dict[int, Callable[[], None]] = field(default_factory=dict)
    records: dict[int, AuditRecord] = field(default_factory=dict)


ALLOWANCE: ContextVar[Allowance | None] = ContextVar("privcheck_allowance", default=None)
