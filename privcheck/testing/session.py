"""What one test may spend: the part of the session's α that the pytest plugin gives it, and what it did with it.

Only the standard library is imported here: the plugin is loaded by every pytest run on the machine.
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
        claim: What was claimed.
        upper: The accountant's bound; empty where there is none.
        lower: The lower bound on the loss; empty where none was measured.
        trials: Runs under each neighbour.
        confidence: Of this audit.
        verdict: "violation", "consistent", "holds", "fails" or "undecided".
        report: The page; empty where none is written.
    """

    claim: str
    upper: str
    lower: str
    trials: int
    confidence: float
    verdict: str
    report: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPlace:
    """Where a test's report pages go.

    Attributes:
        root: Makes the directory of all reports, and returns it.
        name: Of this test's directory in it; further audits of the test have a number behind it.
        every: Whether audits that find nothing get one too.
        test: The test's name.
    """

    root: Callable[[], Path]
    name: str
    every: bool
    test: str


@dataclass(slots=True, kw_only=True)
class Examples:
    """The audits that Hypothesis asked for in one test.

    They share what the test may spend: α/(k (k + 1)) for the k-th different audit, which adds up to α for any number.

    Attributes:
        number: Different audits so far.
        known: What each found, by its content: Hypothesis asks again for what failed, and must see it fail.
        lines: Where in the test's summary lines the audits of one mechanism and claim are.
        largest: The largest lower bound of each such line.
    """

    number: int = 0
    known: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    largest: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a test may spend.

    Attributes:
        trials: Runs under each neighbour, where the test names none.
        agent_trials: The same for whole agents.
        confidence: Of each of its audits.
        seed: Of each of its audits, where the test names none.
        audits: How many audits the marker announces; None in a test that is not marked.
        done: Those that were made.
        examples: Those that Hypothesis asked for.
        place: Where reports go, if anywhere.
        reports: What writes the report of an audit, by its number among `done`.
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


ALLOWANCE: ContextVar[Allowance | None] = ContextVar("privcheck_allowance", default=None)
