"""What one test may spend: the part of the session's α that the pytest plugin gives it, and what it did with it.

Only the standard library is imported here: the plugin is loaded by every pytest run on the machine.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field

TRIALS = 10_000
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
    """

    claim: str
    upper: str
    lower: str
    trials: int
    confidence: float
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What a test marked `privacy` may spend.

    Attributes:
        trials: Runs under each neighbour, where the test names none.
        confidence: Of each of its audits.
        seed: Of each of its audits, where the test names none.
        audits: How many audits the marker announces.
        done: Those that were made.
    """

    trials: int
    confidence: float
    seed: int
    audits: int
    done: list[SummaryLine] = field(default_factory=list)


ALLOWANCE: ContextVar[Allowance | None] = ContextVar("privcheck_allowance", default=None)
