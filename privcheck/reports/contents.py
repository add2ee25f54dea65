"""The parts of a report's page: what each is called, what it says in a line while it is folded, what stands open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from privcheck.reports import summary, tables
from privcheck.reports.values import Report
from privcheck.reports.wording import show_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a page.

    Attributes:
        key: Its place in the page, for links.
        title: Its heading.
        gist: What it says, in a line.
        open: Whether a reader has to see it.
    """

    key: str
    title: str
    gist: str
    open: bool = False


def contents(report: Report) -> dict[str, Part]:
    """Returns the parts that a report has, by key, in the page's order."""
    return {part.key: part for part in _parts(report)}


def _parts(report: Report) -> Iterator[Part]:
    show, run, ledger = report.show, report.run, report.run.ledger if report.run else None
    if report.verify is not None:
        findings = report.verify.findings
        yield Part(key="findings", title="Findings", gist=_findings(report), open=bool(findings))
    if report.budget is not None:
        yield Part(key="budget", title="Budget", gist=_budget(report))
    if show is not None and (show.releases or show.derivation):
        steps = len(show.derivation)
        gist = f"{_count(len(show.releases), 'release')}, {_count(steps, 'step')} from what one user moves to the cost"
        yield Part(key="derivation", title="Derivation", gist=gist)
    views = dict(summary.audit_views(report))
    if views:
        accused = any(view.verdict == "violation" for view in views.values())
        yield Part(key="audit", title="Audit", gist=_audit(report), open=accused or report.verify is None)
    if run is not None:
        yield Part(key="learned", title="What was learned", gist=_learned(report))
    if report.parameters or report.choices or report.options:
        checked = "checked" if report.verify else "audited"
        gist = ", ".join(tables.assign(name, value) for name, value in report.parameters.items())
        yield Part(key="inputs", title=f"What was {checked}", gist=gist)
    if ledger is not None:
        gist = f"{_count(ledger.entries, 'entry', 'entries')}; noise {ledger.noise.partition(':')[0]}"
        yield Part(key="ledger", title="Ledger", gist=gist)
    yield Part(key="provenance", title="Provenance", gist=_provenance(report))


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def _findings(report: Report) -> str:
    verify = report.verify
    assert verify is not None
    kinds = Counter(item.severity for item in tables.gravest_first(report))
    said = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none"
    weak = Counter(item.kind or item.basis for item in verify.rests_on)
    grounds = ", ".join(f"{number} {basis}" for basis, number in weak.items())
    return f"{said}; the verdict rests on facts: {grounds}" if grounds else said


def _budget(report: Report) -> str:
    loss = next((item for item in summary.figures(report) if item.label == summary.LOSS_AT_MOST), None)
    number = len(report.budget.releases) if report.budget else 0
    return ", ".join([_count(number, "release"), *([f"{loss.value} {loss.note}"] if loss else [])])


def _audit(report: Report) -> str:
    words: dict[str, list[str]] = {}
    for name, view in summary.audit_views(report):
        words.setdefault(view.verdict, []).append(name)
    return "; ".join(f"{word}: {', '.join(names)}" for word, names in words.items())


def _learned(report: Report) -> str:
    mine = next((item for item in summary.rank_policies(report) if item.role == "private"), None)
    if mine is None:
        return "the agent's own estimate; the true value is unknown"
    return f"{summary.name_quantity(report)} {show_value(mine.value)} beside what it is compared with"


def _provenance(report: Report) -> str:
    made = report.provenance
    seeds = ", ".join(f"{name} {seed}" for name, seed in made.seeds.items()) if made else ""
    return f"command, versions, seeds{f' ({seeds})' if seeds else ''}, fingerprint"
