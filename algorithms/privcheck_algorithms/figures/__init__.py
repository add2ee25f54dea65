"""The papers' figures that show results of runs, one module a paper, with the recorded conclusions.

A figure is what its text says: quoted, at the printed sizes, with the observations as predicates. What the text leaves
open is listed with what is taken, in the direction that helps the text's own claim wherever that is known.

Imports: `privcheck.runtime` and the papers. Promises: no figure runs anything on import, and an outcome is decided by
its predicates alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from privcheck.runtime.figures import Curve, Judged, Results

RECORDED: Final = Path(__file__).parent / "recorded.json"
"""What `python -m privcheck.commands.reproduction_pages` writes: the results of all figures."""


def number(value: float) -> str:
    """A number with four digits, whole from a thousand on.

    >>> number(67945.3), number(0.12345)
    ('67 945', '0.1235')
    """
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.4g}"


def share(curve: Curve, results: Results) -> str:
    """The end of a line as a share of uniformly random play's; in its own unit if that is unknown.

    >>> line = Curve(label="a", x=(1.0,), mean=(3.0,), std=None, runs=1)
    >>> share(line, Results(curves={}, uniform=4.0)), share(line, Results(curves={}, uniform=None))
    ('75.0 %', '3')
    """
    return f"{100 * curve.end / results.uniform:.1f} %" if results.uniform else number(curve.end)


def shares(results: Results, labels: Iterable[str]) -> str:
    """The ends of several lines, as text."""
    return ", ".join(f"{label} {share(results[label], results)}" for label in labels)


def decide(holds: bool, reason: str) -> Judged:  # noqa: FBT001 - a predicate's value
    """The outcome of a predicate."""
    return Judged(outcome="reproduced" if holds else "not reproduced", reason=reason)
