"""Budget hooks of a run, and the text of audit findings for a ledger's evidence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from privcheck.reports.values import Audited

_MOST = 1900  # characters of an evidence's text


class Paying(Protocol):
    """Budget hooks of a run; called before the first draw."""

    def __call__(self) -> None:
        """Commit the reservation."""

    def judge(self, views: Iterable[Audited]) -> bool:
        """Record the findings of audits, and say whether the run may begin."""


class Nobody:
    """Budget hooks of a run that is not charged."""

    def __call__(self) -> None:
        """No-op: nothing is charged."""

    def judge(self, _: Iterable[Audited]) -> bool:
        """The run may always begin: the findings are in the report."""
        return True


def describe_finding(views: Iterable[Audited]) -> tuple[str, str] | None:
    """Joint verdict of audits, with each finding in words; None if all are undecided."""
    decided = [one for one in views if one.verdict in ("consistent", "violation")]
    if not decided:
        return None
    verdict = "violation" if any(one.verdict == "violation" for one in decided) else "consistent"
    return verdict, "; ".join(_describe(one) for one in decided)[:_MOST]


def _describe(one: Audited) -> str:
    bound = "" if one.epsilon_lower is None else f", ε ≥ {one.epsilon_lower:.6g} at δ = {one.delta:g}"
    how = f"{one.trials} runs, confidence {one.confidence:g}, seed {one.seed}"
    return f"{one.algorithm}, {one.view}: {one.verdict}{bound} ({how})"
