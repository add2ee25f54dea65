"""One audit on a page: what was asked, of which neighbours, what was found, and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from privcheck.pictures import ShownPair
from privcheck.reports import summary, tables
from privcheck.reports.audit_plots import bars_plot, history_plot, trade_off_plot
from privcheck.reports.audited import sentence
from privcheck.reports.plots import Plot
from privcheck.reports.values import Audited, Report
from privcheck.reports.wording import as_sentence, capitalise, spell_out, words

_ELSEWHERE = ("meaning", "plainest_pair", "trials_per_second", "runs")  # said in words, or in the table of audits


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One audit.

    Attributes:
        name: The view's.
        question: What it asks.
        sentence: What it found; empty where the page's verdict says the same.
        method: The test.
        witness: The neighbours in words.
        pair: The neighbours side by side, or None.
        plots: Its pictures, as far as there are any.
        meaning: What the result means; empty where nobody says.
        evidence: Further figures.
        open: Whether a reader has to see it: it refutes something, or stands alone.
    """

    name: str
    question: str
    sentence: str
    method: str
    witness: str
    pair: tables.ReportTable | None
    plots: tuple[Plot, ...]
    meaning: str
    evidence: tuple[tuple[str, str], ...]
    open: bool


def audit_views(report: Report) -> list[View]:
    """Returns the audits of a report, in its order."""
    views = summary.audit_views(report)
    alone = len(views) == 1 and report.verify is None  # the verdict says it
    return [
        View(
            name=name,
            question=view.asks,
            sentence="" if alone else sentence(name, view),
            method=capitalise(view.method),
            witness=_witness(name, view),
            pair=None if view.pair is None else side_by_side(view.pair),
            plots=tuple(
                plot
                for plot in (draw(view, name=f"audit-{number}") for draw in (trade_off_plot, history_plot, bars_plot))
                if plot is not None
            ),
            meaning=as_sentence(words(view.evidence, "meaning")),
            evidence=tables.facts(view.evidence, leave=_ELSEWHERE),
            open=alone or view.verdict == "violation",
        )
        for number, (name, view) in enumerate(views, start=1)
    ]


def _witness(name: str, view: Audited) -> str:
    """Returns the neighbours in words: those that the table shows, as plain as they could be made."""
    if name == "noise":  # its witness is the tests that fail
        return ""
    return capitalise(words(view.evidence, "plainest_pair") or view.witness)


def side_by_side(pair: ShownPair) -> tables.ReportTable | None:
    """Returns the two neighbours' data beside each other, what differs marked; None where there is none."""
    columns, labels = pair.columns, pair.labels
    first, second = (_side(rows, len(labels), len(columns)) for rows in (pair.first, pair.second))
    apart = [any(one[k] != other[k] for one, other in zip(first, second, strict=True)) for k in range(len(columns))]
    differing = [k for k, differs in enumerate(apart) if differs]
    same = [k for k, differs in enumerate(apart) if not differs]
    body: list[list[str | tables.Cell]] = []
    for label, one, other in zip(labels, first, second, strict=True):
        differ = [one[k] != other[k] for k in differing]
        body.append([
            label,
            *(
                tables.Cell(text=spell_out(side[k]), tone="mark" if differs and side[k] else "plain")
                for side in (one, other)
                for k, differs in zip(differing, differ, strict=True)
            ),
            *(spell_out(one[k]) for k in same),
            tables.Cell(text="≠" if any(differ) else "", tone="mark" if any(differ) else "plain"),
        ])  # fmt: skip
    names = [spell_out(column) for column in columns]
    heads = [f"{dataset}: {names[k]}" for dataset in ("D", "D′") for k in differing]
    heads += [f"both: {names[k]}" for k in same]
    caption = f"{pair.title} Coloured, and marked by ≠: what differs. {pair.note}".strip()
    return tables.table(caption, (pair.row, *heads, "differs"), body)


def _side(rows: Sequence[Sequence[str]] | None, number: int, width: int) -> list[list[str]]:
    """Returns the cells of one neighbour; those of a user who is absent say so."""
    if rows is None or len(rows) != number:
        return [["absent"] * width for _ in range(number)]
    return [([*row] + [""] * width)[:width] for row in rows]
