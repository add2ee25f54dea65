"""Results of `privcheck ci`: the audits of what a change touches, within a time and a false-alarm budget.

Fields are the JSON's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from privcheck.reports.values.result import Result
from privcheck.support.display import Brief

ReviewVerdict = Literal[
    "violation", "fails", "undecided", "not audited", "expected violation", "consistent", "holds", "nothing to audit"
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReviewedTarget(Brief):
    """One audit of a target that the change touches, or why there is none.

    Attributes:
        kind: "algorithm", registered and in the work tree; "test", marked `privacy`; "call", of
            `assert_private` or `assert_declaration`, that no audited test made.
        name: The algorithm's name, pytest's id of the test, or FILE:LINE of the call.
        view: The view of an algorithm's audit, or "verify"; empty for tests.
        file: File of the declaration or of the call, from the top of the work tree.
        line: Its line, counted from 1.
        through: Files by which the target imports a changed one: its own first, the changed one last.
        verdict: "violation" and "consistent" of an audit; "fails", "holds" and "undecided" of a claim; "expected
            violation" of a test that passes because it expects one; "nothing to audit" of an algorithm that declares no
            privacy; "not audited" otherwise.
        reason: Why it is undecided or was not audited; empty otherwise.
        claim: The claim in words.
        claimed: The claim as a number with its unit.
        lower: The lower bound on the loss.
        trials: Runs under each neighbour, or pairs and runs of a view that counts those; 0 if none was made.
        confidence: 1 − α of this audit alone; None if it spends no α.
        seed: Its seed; None without one.
        method: The test, event or witness behind the verdict, in words.
        neighbours: The pair that shows a violation.
        code: A test that repeats a violation.
        command: The command that repeats the audit.
        notes: Further observations, a sentence each.
        seconds: Wall time of the process that made it.
    """

    kind: Literal["algorithm", "test", "call"]
    name: str
    view: str = ""
    file: str
    line: int
    through: tuple[str, ...]
    verdict: ReviewVerdict
    reason: str = ""
    claim: str = ""
    claimed: str = ""
    lower: str = ""
    trials: int = 0
    confidence: float | None = None
    seed: int | None = None
    method: str = ""
    neighbours: str = ""
    code: str = ""
    command: str = ""
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def title(self) -> str:
        """Name and view."""
        return f"{self.name}, {self.view}" if self.view else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRound:
    """A round of audits: every target once, with four times the trials of the round before.

    Attributes:
        number: From 1.
        alpha: False-alarm probability of the whole round.
        audits: Audits that share it.
        seed: Their seed, from commit, run number and round.
    """

    number: int
    alpha: float
    audits: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBudget:
    """Share of the repository's false-alarm budget that this run spends.

    Attributes:
        alpha: A, of all runs of the repository together.
        run_number: k, the number of this run.
        share: α of this run, from A and k alone.
        relies_on: What has to be true for the sum over all runs to be at most A.
    """

    alpha: float
    run_number: int
    share: float
    relies_on: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ChangeReview(Result):
    """Audits of the privacy claims that a change touches.

    Attributes:
        verdict: "violation" if a claim is refuted or an audit found a violation; else "undecided" if one is undecided
            or was not audited; else "consistent", or "nothing touched" if there was nothing to audit.
        base: The base of the comparison as given.
        merge_base: The commit that base and work tree share.
        commit: The commit under review.
        uncommitted: Changed files that are not in it as they are here.
        changed: All changed files.
        beside: Changed files that no target imports.
        unfollowed: Places, FILE:LINE, in what targets import, where a module is loaded by a name that the source does
            not have.
        targets: Touched targets with their audits, violations first.
        untouched: Number of targets that the change does not touch.
        budget: The run's share of the false-alarm budget.
        rounds: Rounds that were made.
        minutes: The time budget.
        seconds: Wall time of the whole run.
        versions: Of Python and privcheck.
    """

    verdict: Literal["violation", "undecided", "consistent", "nothing touched"]
    base: str
    merge_base: str
    commit: str
    uncommitted: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    unfollowed: tuple[str, ...] = ()
    targets: tuple[ReviewedTarget, ...] = ()
    untouched: int = 0
    budget: ReviewBudget
    rounds: tuple[ReviewRound, ...] = ()
    minutes: float
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)
