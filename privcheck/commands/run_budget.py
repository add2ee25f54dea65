"""What a run is charged with, as those who run it see it; and what audits found, as a ledger's evidence says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from privcheck.reports.values import Audited

_MOST = 1900  # characters of an evidence's text


class Paying(Protocol):
    """Who pays for a run; it is called before the first draw."""

    def __call__(self) -> None:
        """Commits what was reserved."""

    def judge(self, views: Iterable[Audited]) -> bool:
        """Records what audits found; returns whether the run may begin."""


class Nobody:
    """A run that is charged to nobody's budget."""

    def __call__(self) -> None:
        """Does nothing."""

    def judge(self, _: Iterable[Audited]) -> bool:
        """Returns that the run may begin, whatever was found: the report says it."""
        return True


def describe_finding(views: Iterable[Audited]) -> tuple[str, str] | None:
    """Returns the verdict of audits together, and what each found in words; None where none of them decided."""
    decided = [one for one in views if one.verdict in ("consistent", "violation")]
    if not decided:
        return None
    verdict = "violation" if any(one.verdict == "violation" for one in decided) else "consistent"
    return verdict, "; ".join(_describe(one) for one in decided)[:_MOST]


def _describe(one: Audited) -> str:
    bound = "" if one.epsilon_lower is None else f", ε ≥ {one.epsilon_lower:.6g} at δ = {one.delta:g}"
    how = f"{one.trials} runs, confidence {one.confidence:g}, seed {one.seed}"
    return f"{one.algorithm}, {one.view}: {one.verdict}{bound} ({how})"
