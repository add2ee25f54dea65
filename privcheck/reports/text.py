"""A report for the terminal: verdict first, then the figures, the warnings and three short tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from privcheck.reports import summary, tables
from privcheck.reports.promise import promise
from privcheck.reports.values import Report
from privcheck.reports.wording import spell_out, strip_controls, words

_GAP = "  "
_AUDIT = ("view", "verdict", "agent ran", "ε at least", "expected", "ε at most", "claimed", "at", "time")
_WIDEST = 44  # of one column; longer cells are cut, the page has them whole


def render_text(report: Report, *, width: int = 100) -> str:
    """The report in plain text, without control characters, ending in a newline.

    Args:
        report: Report of a finished check, or of any part of one.
        width: Column at which sentences are wrapped; tables may be wider.
    """
    blocks = (
        _head(report, width),
        _figures(report, width),
        _notices(report, width),
        _violations(report, width),
        _findings(report, width),
        _grounds(report, width),
        _tables(report),
    )
    return "\n\n".join("\n".join(lines) for lines in map(list, blocks) if lines) + "\n"


def _head(report: Report, width: int) -> Iterator[str]:
    if report.run is not None and report.run.did_not_learn is not None and report.verify is None:
        yield from _wrap(f"{report.run.algorithm} {report.run.did_not_learn.words}.", width, "")
    verdict = summary.verdict(report)
    name = report.algorithm or (report.show.name if report.show else "unnamed")
    promised = promise(report)
    told = verdict.statements or verdict.claim
    claim = f": {told}" if told else ""
    yield strip_controls(f"{verdict.headline.upper()} · {name}{claim}")
    for sentence in (
        verdict.statements and f"Claimed: {verdict.claim}.",
        verdict.origin,
        verdict.ratios and f"Cost over claim: {verdict.ratios}.",
        verdict.why,
        verdict.sentence,
        verdict.how and f"Found {verdict.how}.",
        verdict.certificate,
        verdict.joint,
        verdict.repair,
        verdict.meaning,
        promised and f"{promised.headline} {promised.text}",
    ):
        yield from _wrap(sentence or "", width, "  ")


def _figures(report: Report, width: int) -> Iterator[str]:
    figures = summary.figures(report)
    first = max((len(item.label) for item in figures), default=0)
    second = max((len(item.value) for item in figures), default=0)
    for item in figures:
        head = f"  {item.label:<{first}}  {item.value:<{second}}  "
        yield from textwrap.wrap(
            strip_controls(head + item.note), width, subsequent_indent=" " * len(head), drop_whitespace=True
        )


def _notices(report: Report, width: int) -> Iterator[str]:
    for notice in summary.notices(report):
        if notice.title == summary.NOTHING_LEARNED and report.verify is None:  # a run says so in its first line
            continue
        yield from _wrap(f"! {notice.title}. {notice.text}", width, "  ")


def _violations(report: Report, width: int) -> Iterator[str]:
    """Yield the meaning of each violation, and the pair of neighbours that showed it."""
    for name, view in summary.audit_views(report):
        if view.verdict == "violation" and name != "noise":  # which looks at no pair
            meaning, pair = words(view.evidence, "meaning"), view.witness
            yield from _wrap(f"{name}: {meaning}." if meaning else "", width, "  ")
            yield from _wrap(f"The pair: {pair}." if pair else "", width, "  ")


def _findings(report: Report, width: int) -> Iterator[str]:
    rows = tables.finding_rows(report)
    if rows:
        yield "findings"
    for item in rows:
        head = f"{item.severity} {item.code}{f' {item.where}' if item.where else ''}: "
        yield from _wrap(head + item.message, width, "  ")


def _grounds(report: Report, width: int) -> Iterator[str]:
    """Yield the unproved assumptions of the verdict; the page has the rest."""
    every = report.verify.rests_on if report.verify else ()
    weak = [item for item in every if item.basis in {"stated", "assumed"}]
    if weak:
        yield "assumptions and evidence"
    for item in weak:
        yield from _wrap(spell_out(f"{item.kind or item.basis}, {item.where}: {item.what} — {item.by}"), width, "  ")


def _tables(report: Report) -> Iterator[str]:
    parts = (
        ("budget", tables.budget_table(report)),
        ("audit", _only(tables.audit_table(report), _AUDIT)),
        ("learned", tables.value_table(report)),
    )
    first = True
    for title, table in parts:
        if table is not None:
            if not first:
                yield ""
            first = False
            yield title
            yield from _lines(table)


def _only(table: tables.ReportTable | None, columns: tuple[str, ...]) -> tables.ReportTable | None:
    if table is None:
        return None
    kept = [i for i, column in enumerate(table.columns) if column in columns]
    return tables.ReportTable(
        caption=table.caption,
        columns=tuple(table.columns[i] for i in kept),
        numeric=tuple(table.numeric[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
    )


def _lines(table: tables.ReportTable) -> Iterator[str]:
    grid = [table.columns, *(tuple(cell.text for cell in row) for row in table.rows)]
    clean = [[_cut(strip_controls(text)) for text in row] for row in grid]
    widths = [max(len(row[i]) for row in clean) for i in range(len(table.columns))]
    for row in clean:
        cells = (
            text.rjust(size) if numeric else text.ljust(size)
            for text, size, numeric in zip(row, widths, table.numeric, strict=True)
        )
        yield (_GAP + _GAP.join(cells)).rstrip()


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _wrap(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(strip_controls(text), width, initial_indent=indent, subsequent_indent=indent + "  ")
