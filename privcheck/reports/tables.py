"""The tables of a report, the same for page and terminal, and the order of the parts of its page."""

from __future__ import annotations

import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

from privcheck.reports import summary
from privcheck.reports.audit_wording import audited_at
from privcheck.reports.summary import Tone, audit_views, name_quantity, rank_policies
from privcheck.reports.values import LedgerSummary, RanOnline, ReleasePrice, Report, VerdictFinding
from privcheck.reports.wording import (
    NOTHING,
    agree,
    figure,
    label,
    percent,
    ratio,
    rounding_of,
    show_value,
    spell_out,
)
from privcheck.verification import PlainWitness

_SEVERITIES: dict[str, Tone] = {"critical": "bad", "theoretical": "open", "negligible": "plain"}
_SPREADS = {"gaussian": "std", "laplace": "b"}
_ALIKE = 0.75  # share of words that findings of one row have in common
_ASKED = re.compile(r" \(asked: [^)]*\)")
_AUDIT_TONES: dict[str, Tone] = {"violation": "bad", "consistent": "plain"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: text and colour."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """A table without empty columns.

    Attributes:
        caption: Description in a sentence.
        columns: The headings.
        numeric: Whether each column has numbers, which are set flush right.
        rows: Rows, with one cell per column.
    """

    caption: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Cell, ...], ...]


def table(caption: str, columns: Sequence[str], body: Sequence[Sequence[str | Cell]]) -> ReportTable | None:
    """Make a table without its empty columns; None if there are no rows.

    Args:
        caption: Description of the table.
        columns: The headings; one that starts with "#" is a column of numbers.
        body: The rows.
    """
    cells = [[item if isinstance(item, Cell) else Cell(text=item) for item in row] for row in body]
    kept = [i for i in range(len(columns)) if any(row[i].text not in {"", NOTHING} for row in cells)]
    if not cells or not kept:
        return None
    return ReportTable(
        caption=caption,
        columns=tuple(columns[i].removeprefix("#") for i in kept),
        numeric=tuple(columns[i].startswith("#") for i in kept),
        rows=tuple(tuple(Cell(text=row[i].text or NOTHING, tone=row[i].tone) for i in kept) for row in cells),
    )


def budget_table(report: Report) -> ReportTable | None:
    """Table of the cost of each release."""
    body = [
        [
            item.name,
            figure(item.count),
            figure(item.sensitivity.l1, rounding="up"),
            figure(item.sensitivity.l2, rounding="up"),
            spell_out(item.mechanism),
            figure(item.std),
            _cost(item.cost),
        ]
        for item in (report.budget.releases if report.budget else ())
    ]
    columns = ("release", "#times", "#Δ₁", "#Δ₂", "mechanism", "#std", "cost")
    caption = "Releases with their ℓ₁ and ℓ₂ sensitivities Δ₁ and Δ₂, their noise and their cost."
    return table(caption, columns, body)


def _cost(cost: ReleasePrice) -> str:
    for value, currency in ((cost.pure_epsilon, "pure DP"), (cost.rho, "zCDP")):
        if value is not None:
            price = f"{figure(value, rounding='up')} in {currency}"
            return f"{price}: {spell_out(cost.expression)}" if cost.expression else price
    return spell_out(cost.expression)


def guarantee_table(report: Report) -> ReportTable | None:
    """Table of the total cost in every currency with a finite bound."""
    if report.budget is None:
        return None
    total, body = report.budget.guarantee, []
    currencies = (("zCDP", "ρ", total.rho), ("Gaussian DP", "μ", total.mu), ("pure DP", "ε", total.pure_epsilon))
    for currency, symbol, value in currencies:
        if value is not None:
            body.append([currency, f"{symbol} = {figure(value, rounding='up')}"])
    if total.epsilon is not None and total.delta > 0:
        body.append(["(ε, δ)-DP", f"ε = {figure(total.epsilon, rounding='up')}, δ = {figure(total.delta)}"])
    return table("All releases together, in each unit that has a bound, rounded up.", ("guarantee", "holds with"), body)


def least_noise_table(report: Report) -> ReportTable | None:
    """Table of the least noise beside the declared noise."""
    least = report.calibrate
    if least is None:
        return None
    body = [
        [item.name, item.law, figure(item.published_std), figure(item.needed_std), ratio(item.ratio, rounding="up")]
        for item in (*least.releases, *(least.gaussian or ()))
    ]
    epsilon, delta = figure(least.target.epsilon, rounding="up"), figure(least.target.delta)
    caption = (
        f"The least noise that gives ε = {epsilon} at δ = {delta}, by the exact composition, beside the declared one."
    )
    if _is_pure(report) and least.target.delta > 0:
        caption += (
            f" A different target from the rest of this page: δ = {delta} asks less than pure ε-DP (δ = 0), which "
            f"claim and verdict are about, so less noise is enough."
        )
    return table(caption, ("release", "noise needed", "declared std", "needed std", "needed/declared"), body)


def _is_pure(report: Report) -> bool:
    """Whether the report is about pure DP, with δ = 0."""
    return report.budget is not None and report.budget.guarantee.delta == 0


def methods_table(report: Report) -> ReportTable | None:
    """Table of ε at the report's δ by each method, with the direction of its error."""
    body = [
        [
            item.name,
            figure(item.epsilon, rounding="down" if item.direction.split(" ")[0] == "lower" else "up"),
            item.direction,
        ]
        for item in (report.budget.methods if report.budget else ())
    ]
    at = "" if report.budget is None else f", at δ = {figure(report.budget.guarantee.delta)}"
    return table(f"The same releases by each method of accounting{at}.", ("method", "#ε", "direction"), body)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """Findings with one message.

    Attributes:
        severity: Their severity.
        code: Their code.
        where: Where they are, in their order.
        message: What is found; where a row before it has the code and most of its clauses, only the others.
    """

    severity: str
    code: str
    where: str
    message: str


def finding_rows(report: Report) -> tuple[FindingRow, ...]:
    """The findings of a report, the gravest first; equal ones share a row, alike ones follow each other."""
    groups: list[list[VerdictFinding]] = []
    for item in gravest_first(report):
        same = next((group for group in groups if _alike(group[0], item)), None)
        if same is None:
            groups.append([item])
        else:
            same.append(item)
    return tuple(row for group in groups for row in _rows(report, group))


def _rows(report: Report, group: Sequence[VerdictFinding]) -> Iterator[FindingRow]:
    """Yield the rows of alike findings: the first in full, of the others the clauses that differ from it."""
    places: dict[str, list[str]] = {}
    for item in group:
        places.setdefault(spell_out(agree(report, item.message)), []).append(item.where)
    first = next(iter(places))
    known = set(_clauses(first))
    for message, where in places.items():
        clauses = _clauses(message)
        own = [clause for clause in clauses if clause not in known]
        alone = len(own) in {0, len(clauses)}  # of the first row, and where no clause is shared
        yield FindingRow(
            severity=group[0].severity,
            code=group[0].code,
            where=", ".join(dict.fromkeys(place for place in where if place)),
            message=message if alone else f"the same, but {'; '.join(own)}",
        )


def findings_table(report: Report) -> ReportTable | None:
    """Table of the findings, the gravest first."""
    body: list[list[str | Cell]] = [
        [Cell(text=item.severity, tone=_SEVERITIES[item.severity]), item.code, item.where, item.message]
        for item in finding_rows(report)
    ]
    return table("Findings of the verification, the gravest first.", ("severity", "code", "where", "finding"), body)


def _alike(one: VerdictFinding, other: VerdictFinding) -> bool:
    """Whether two findings have a code and most of their words in common, and as many clauses."""
    if (one.severity, one.code) != (other.severity, other.code):
        return False
    if len(_clauses(one.message)) != len(_clauses(other.message)):
        return False
    compared = difflib.SequenceMatcher(None, one.message.split(" "), other.message.split(" "), autojunk=False)
    return compared.ratio() > _ALIKE


def _clauses(message: str) -> list[str]:
    """A message at its semicolons, colons and ends of sentences outside brackets."""
    parts, depth, begun = [], 0, 0
    for place, letter in enumerate(message):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter in ";:." and message[place + 1 : place + 2] == " ":
            parts.append(message[begun:place].strip())
            begun = place + 1
    return [*parts, message[begun:].strip().rstrip(".")]


def gravest_first(report: Report) -> list[VerdictFinding]:
    """Findings of a report, the gravest first."""
    order = list(_SEVERITIES)
    return sorted(report.verify.findings if report.verify else (), key=lambda item: order.index(item.severity))


def grounds_table(report: Report) -> ReportTable | None:
    """Table of the assumptions and evidence of the verdict, the weakest first."""
    body: list[list[str | Cell]] = [
        [
            Cell(text=item.kind or item.basis, tone="open" if item.basis == "stated" else "plain"),
            item.basis,
            item.where,
            spell_out(item.what),
            spell_out(item.by),
            spell_out(item.checked_where or "nowhere") if item.basis == "assumed" else "",
        ]
        for item in (report.verify.rests_on if report.verify else ())
    ]
    caption = (
        "Assumptions and evidence of the verdict, the weakest first: stated by the author, assumed, checked, proved."
    )
    return table(caption, ("kind", "basis", "where", "fact", "by", "checked by"), body)


def pair_table(witness: PlainWitness) -> ReportTable | None:
    """Table of the two users' trajectories of a witness, with repeated values written once."""
    body = []
    for dataset, user in zip(("D", "D′"), witness.pair or (), strict=False):
        if not isinstance(user, Mapping):
            body.append([dataset, "nobody", ""])
            continue
        body += [[dataset, str(name), _runs(value)] for name, value in user.items() if isinstance(value, list)]
    return table("The user in whom the two datasets differ, step by step.", ("dataset", "what", "values"), body)


def _runs(values: Sequence[object]) -> str:
    groups = ((show_value(value), len(list(same))) for value, same in itertools.groupby(values))
    return ", ".join(text if count == 1 else f"{text} ({count} times)" for text, count in groups)


def audit_table(report: Report) -> ReportTable | None:
    """Table of every audit's bound beside the bound expected for its number of trials."""
    body: list[list[str | Cell]] = [
        [
            name,
            Cell(text=view.verdict, tone=_AUDIT_TONES.get(view.verdict, "open")),
            figure(view.agent_ran),
            figure(view.epsilon_lower, rounding="down"),
            figure(view.reachable, rounding="down"),
            figure(view.epsilon_upper, rounding="up"),
            figure(view.epsilon_claimed, rounding="up"),
            figure(view.delta),
            _ASKED.sub("", audited_at(view)),
            percent(view.confidence, rounding="down"),
            figure(view.trials),
            seconds(view.seconds),
        ]
        for name, view in audit_views(report)
    ]
    columns = (
        "view", "verdict", "agent ran", "#ε at least", "#expected", "#ε at most", "#claimed", "#at δ", "at",
        "#confidence", "#trials", "#time",
    )  # fmt: skip
    caption = (
        "Lower bounds on the loss, beside the bound that the best test is expected to certify with as many trials "
        "(runs under "
        "each of the two neighbours): single audits scatter around it."
    )
    return table(caption, columns, body)


def value_table(report: Report) -> ReportTable | None:
    """Table of the learned policy's value with its references."""
    kinds = {"private": "learned from the billboard", "twin": "same data, no privacy", "reference": "known policy"}
    body = [
        [item.name, figure(item.value), NOTHING if item.std is None else figure(item.std, digits=2), kinds[item.role]]
        for item in rank_policies(report)
    ]
    quantity = name_quantity(report)
    columns = ("policy", f"#{quantity}", "#std", "what it is")
    of = "Regret" if quantity == "regret" else "True expected return"
    return table(f"{of}: mean and standard deviation over replicates.", columns, body)


def ledger_table(ledger: LedgerSummary | None) -> ReportTable | None:
    """Table of the ledger's releases."""
    body = [
        [
            item.release,
            item.law,
            f"{_SPREADS.get(item.law, 'scale')} = {figure(item.scale)}",
            figure(item.l1, rounding="up"),
            figure(item.l2, rounding="up"),
            figure(item.slices),
        ]
        for item in (ledger.releases if ledger else ())
    ]
    columns = ("release", "law", "spread", "#charged ℓ₁", "#charged ℓ₂", "#slices")
    caption = "Releases of the run's first replicate, as recorded."
    if ledger is not None and "plan of spending" in ledger.written:
        caption = (
            "Planned releases of the run's first replicate: a plan of spending, written before anything was drawn."
        )
    return table(caption, columns, body)


def seconds(number: float) -> str:
    """A duration with its unit."""
    return f"{figure(number, digits=2)} s" if number < 120 else f"{figure(number / 60, digits=2)} min"


def facts(part: object, *, leave: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """The plain fields of an object, or items of a mapping, as pairs of words; no lists, objects and nulls."""
    items = part.items() if isinstance(part, Mapping) else _fields(part)
    return tuple(
        (label(str(name)), show_value(value, rounding=rounding_of(str(name))))
        for name, value in items
        if name not in leave and isinstance(value, (str, int, float))
    )


def assign(name: str, value: object) -> str:
    """A parameter with its value: `rho` and 1 give "ρ = 1"."""
    return f"{label(name)} = {show_value(value)}"


def _fields(part: object) -> list[tuple[str, object]]:
    return [(one.name, getattr(part, one.name)) for one in fields(part)] if is_dataclass(part) else []


def runs_table(runs: Sequence[RanOnline]) -> ReportTable | None:
    """Table of regret, last value, switches and cost of each run of an online agent."""
    body = [
        [
            run.algorithm,
            figure(run.episodes),
            figure(run.regret.mean),
            NOTHING if run.regret.std is None else figure(run.regret.std, digits=2),
            NOTHING if run.regret.share is None else percent(run.regret.share),
            NOTHING if run.regret.share_of_uniform is None else percent(run.regret.share_of_uniform),
            figure(run.curves.value.mean[-1]),
            figure(run.curves.switches.mean[-1]),
            figure(run.spent and run.spent.pure_epsilon, rounding="up"),
            figure(run.spent and run.spent.rho, rounding="up"),
        ]
        for run in runs
    ]
    caption = (
        f"Cumulative regret after all episodes, mean over {figure(runs[0].replicates)} replicates; its share of the "
        "largest possible regret and of the uniform policy's; the last policy's true value, the policy switches, and "
        "what was spent by the ledger"
    )
    whys = dict.fromkeys(f"{run.spent.theorem}; {run.spent.note}" for run in runs if run.spent and run.spent.theorem)
    caption += "".join(f" ({why})" for why in whys) + "."
    columns = (
        "agent", "#episodes", "#regret", "#std", "#of the most", "#of uniform's", "#last value", "#switches",
        "#ε (pure)", "#ρ",
    )  # fmt: skip
    return table(caption, columns, body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a page.

    Attributes:
        key: Anchor in the page, for links.
        title: Heading.
        gist: Summary in a line.
        open: Whether it is unfolded at first.
    """

    key: str
    title: str
    gist: str
    open: bool = False


def contents(report: Report) -> dict[str, Part]:
    """The parts of a report by key, in the page's order."""
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
        gist = f"{_count(len(show.releases), 'release')}, {_count(steps, 'step')} from sensitivity to cost"
        yield Part(key="derivation", title="Derivation", gist=gist)
    views = dict(summary.audit_views(report))
    if views:
        accused = any(view.verdict == "violation" for view in views.values())
        yield Part(key="audit", title="Audit", gist=_audit(report), open=accused or report.verify is None)
    if run is not None:
        yield Part(key="learned", title="What was learned", gist=_learned(report))
    if report.parameters or report.choices or report.options:
        checked = "checked" if report.verify else "audited"
        gist = ", ".join(assign(name, value) for name, value in report.parameters.items())
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
    kinds = Counter(item.severity for item in gravest_first(report))
    said = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none"
    weak = Counter(item.kind or item.basis for item in verify.rests_on)
    grounds = ", ".join(f"{number} {basis}" for basis, number in weak.items())
    return f"{said}; assumptions and evidence: {grounds}" if grounds else said


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
