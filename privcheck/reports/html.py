"""A report, or a comparison, as one self-contained HTML page: no network, no scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from privcheck.reports import summary, tables
from privcheck.reports.audit_view import View, audit_views
from privcheck.reports.comparisons import COLUMNS, remarks, standing_cells, warnings
from privcheck.reports.files import digest, encode
from privcheck.reports.markup import environment, latex_to_mathml, safe_mathml
from privcheck.reports.plots import Plot, privacy_plot, value_plot
from privcheck.reports.promise import concerned, promise
from privcheck.reports.run_plots import curve_plots, frontier_plot, overlaid_plots
from privcheck.reports.tables import contents
from privcheck.reports.values import Compared, MadeBy, Provenance, Ran, RanOnline, Report, Standing, Verified
from privcheck.reports.wording import LATEX, are_one, figure, join_roots, keep_together, label, show_value

Facts = tuple[tuple[str, str], ...]

_INPUTS = {"parameters": "Parameters", "choices": "Readings", "options": "Options"}
_RUN_PARTS = {**_INPUTS, "diagnostics": "Diagnostics"}


def render_html(report: Report, *, fingerprint: str | None = None) -> str:
    """Render the page; the same report gives the same bytes.

    Args:
        report: The report.
        fingerprint: Digest of the report.json it is rendered from; None to compute it from the report.

    Raises:
        ParameterError: The report contains a NaN, or a type that JSON cannot express.
    """
    show, budget, run, made = report.show, report.budget, report.run, report.provenance
    name = report.algorithm or (show.name if show else "unnamed")
    ledger, promised = run.ledger if run else None, promise(report)
    return template("report.html.j2").render(
        name=name,
        title=report.title or name,
        subtitle=_subtitle(report),
        version=report.privcheck.version,
        verdict=summary.verdict(report),
        brief=_brief(report),
        strength=promised.strength if promised else "",
        strength_words=promised.headline if promised else "",
        figures=[item for item in summary.figures(report) if item.label != summary.PRESET],
        notices=summary.notices(report),
        parts=contents(report),
        inputs=_groups(report, _INPUTS),
        show=show,
        witness=_witness(report.verify) if report.verify else None,
        budget=tables.budget_table(report),
        totals=_present(tables.guarantee_table(report), tables.methods_table(report), tables.least_noise_table(report)),
        privacy=inline(privacy_plot(report)) if budget else None,
        verified=report.verify is not None,
        findings=tables.findings_table(report),
        grounds=tables.grounds_table(report),
        audits=tables.audit_table(report),
        views=[_picture(view) for view in audit_views(report)],
        value=inline(value_plot(report)),
        values=tables.value_table(report),
        curves=[inline(plot) for plot in curve_plots([run])] if isinstance(run, RanOnline) else [],
        run=_run(run) if run else (),
        diagnostics=tables.facts(run.diagnostics) if run else (),
        compared=run.compared if run else "",
        ledger=tables.ledger_table(ledger),
        recorded=tables.facts(ledger, leave=("digest", "as_declared")),
        ledger_digest=ledger.digest if ledger else "",
        spent=tables.facts(run.spent) if run else (),
        provenance=_provenance(made) if made else [],
        command=made.command if made else "",
        digest=fingerprint or digest(encode(report)),
    )  # fmt: skip


def _brief(report: Report) -> Facts:
    """Rows of the verdict box: guarantee in plain words, parameters, protected unit, neighbours, readers concerned."""
    promised, run = promise(report), report.run
    parameters = ", ".join(tables.assign(name, value) for name, value in report.parameters.items())
    readings = ", ".join(f"{name} = {way}" for name, way in report.choices.items())
    parameters = "; ".join(part for part in (parameters, readings) if part)
    relation = report.show.relation if report.show else report.budget.relation if report.budget else ""
    if run is not None and run.preset is not None:
        parameters += f"{'; ' if parameters else ''}preset {run.preset.words}"
    own_users = _own_users(run)
    rows = (
        ("In plain words", promised.text if promised else ""),
        ("Parameters", parameters),
        ("Protected", own_users),
        ("Neighbours", f"{relation} (of the claim)" if own_users else relation),
        ("Who should care", concerned(report)),
    )
    return tuple((name, text) for name, text in rows if text)


def _own_users(run: Ran | RanOnline | None) -> str:
    """The unit of privacy of a run on a user's own data, in words; empty for simulated users."""
    unit = None if run is None else run.unit
    return f"{unit.words}; stated by: {unit.stated_by}" if unit is not None and unit.of_table else ""


def run_page(runs: Sequence[RanOnline]) -> str:
    """Page of one or several runs of online agents in one environment."""
    return template("run.html.j2").render(
        names=", ".join(run.algorithm for run in runs),
        title=runs[0].title if len(runs) == 1 else f"{len(runs)} agents compared",
        subtitle=runs[0].description,
        failed=[f"{run.algorithm} {run.did_not_learn.words}." for run in runs if run.did_not_learn is not None],
        table=tables.runs_table(runs),
        plots=[inline(plot) for plot in curve_plots(runs)],
        settings=[(run.title, run_settings(run)) for run in runs],
    )  # fmt: skip


def run_settings(run: RanOnline) -> list[tuple[str, Facts]]:
    """All settings of a run, by title."""
    return [*_groups(run, _RUN_PARTS), ("Run", _run(run))]


def template(name: str) -> Template:
    """A template of the reports' pages."""
    made = environment("privcheck.reports")
    made.filters["formula"] = _formula
    return made.get_template(name)


def _picture(view: View) -> dict[str, Any]:
    return {"view": view, "plots": [inline(plot) for plot in view.plots]}


def inline(plot: Plot | None) -> dict[str, Any] | None:
    """A plot in the form that templates expect."""
    # our own drawing; every text in it was escaped when the XML was written
    if plot is None:
        return None
    return {"caption": plot.caption, "wide": Markup(plot.wide), "narrow": Markup(plot.narrow)}  # noqa: S704 - our SVG


def _formula(latex: str, mathml: str = "", *, block: bool = False) -> Markup | None:
    """The formula as safe MathML; None if it cannot be made safe, so that its text is shown."""
    # LaTeX first: it states the whole equation where the ready-made MathML may be its right-hand side alone
    safe = safe_mathml(latex_to_mathml(join_roots(latex, LATEX)), block=block) or safe_mathml(mathml, block=block)
    return None if safe is None else Markup(safe)  # noqa: S704 - that is what safe means


def _present(*several: tables.ReportTable | None) -> list[tables.ReportTable]:
    return [table for table in several if table is not None]


def _subtitle(report: Report) -> str:
    models = {"central": "central model", "local": "local model", "shuffle": "shuffle model"}
    return " · ".join(part for part in (report.source, models.get(report.model, report.model)) if part)


def _groups(part: Report | RanOnline, titles: Mapping[str, str]) -> list[tuple[str, Facts]]:
    """The non-empty mappings among the fields, by their titles."""
    groups = ((title, _pairs(getattr(part, name))) for name, title in titles.items())
    return [(title, pairs) for title, pairs in groups if pairs]


def _pairs(part: Mapping[str, object]) -> Facts:
    return tuple((label(name), show_value(value)) for name, value in part.items() if value is not None)


def _witness(verify: Verified) -> dict[str, Any] | None:
    witness = verify.witness
    if witness is None:
        return None
    loss = show_value(witness.loss, rounding="up" if are_one(verify) else "down")
    figures = (("loss", loss), *tables.facts(witness, leave=("words", "loss")))
    return {"words": witness.words, "figures": figures, "pair": tables.pair_table(witness)}


def _run(run: Ran | RanOnline) -> Facts:
    rows = [*tables.facts(run, leave=("algorithm", "seconds"))]
    if run.preset is not None:
        rows.append(("preset", run.preset.words))
    if isinstance(run, Ran):
        if run.value.claimed is not None:
            rows.append(("the agent's own estimate", show_value(run.value.claimed)))
    elif run.regret.baseline is not None:
        kind = "" if run.regret.twin_is_itself else ", without privacy"
        rows.append((f"regret of {run.regret.twin}{kind}", show_value(run.regret.baseline)))
        rows += [("what else tells it apart", run.regret.twin_differs)] if run.regret.twin_differs else []
    return (*rows, ("learning time", tables.seconds(run.seconds)))


def _provenance(made: Provenance) -> list[tuple[str, Facts]]:
    run = (*tables.facts(made, leave=("command", "seconds")), ("in all", tables.seconds(made.seconds)))
    parts = (("Versions", tuple(made.versions.items())), ("Seeds", _pairs(made.seeds)), ("Run", run))
    return [(title, pairs) for title, pairs in parts if pairs]


def compared_plots(result: Compared) -> list[Plot]:
    """Plots of value against ε, then of regret, value and switches over episodes."""
    found = None if result.delta is None else frontier_plot(result.standings, delta=result.delta)
    return [*([] if found is None else [found]), *overlaid_plots(result.results)]


def compared_page(result: Compared) -> str:
    """Page of several online agents in one environment."""
    runs, first = result.results, result.results[0]
    users, seeds = figure(first.episodes), figure(first.replicates)
    if result.delta is None:  # an older document, which has no standings
        return run_page(runs)
    return template("compare.html.j2").render(
        names=", ".join(result.algorithms),
        title=keep_together(result.headline),
        subtitle=f"{first.description}; {users} users one after the other, {seeds} seeds",
        warnings=warnings(result.standings, delta=result.delta),
        remarks=remarks(result.standings),
        table=standings_table(result.standings, delta=result.delta),
        frontier=inline(frontier_plot(result.standings, delta=result.delta)),
        plots=[inline(plot) for plot in overlaid_plots(runs)],
        settings=[(run.title, run_settings(run)) for run in runs],
        made=result.made_by,
        facts_of=made_facts(result.made_by),
    )


def standings_table(standings: Sequence[Standing], *, delta: float) -> tables.ReportTable | None:
    """Table of the algorithms side by side.

    Args:
        standings: One result per algorithm.
        delta: The common δ.
    """
    caption = (
        f"Guarantee: the accountant's bound on the declared releases. Claim: the ε that it implies at δ = "
        f"{figure(delta)}, and whether it holds, judged in its own unit. Value: true expected return of the policy "
        "learned last, mean ± standard deviation over seeds."
    )
    return tables.table(caption, COLUMNS, [standing_cells(one, delta=delta) for one in standings])


def made_facts(made: MadeBy | None) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Seeds and versions, by title."""
    if made is None:
        return []
    seeds = tuple((name, str(seed)) for name, seed in made.seeds.items())
    return [("Seeds", seeds), ("Versions", tuple(made.versions.items()))]
