"""The page of several algorithms side by side: headline, one table and one plot in one unit, then the runs."""

from __future__ import annotations

from collections.abc import Sequence

from privcheck.reports import tables
from privcheck.reports.frontier import frontier_plot
from privcheck.reports.html import inline, run_page, run_settings, template
from privcheck.reports.plots import Plot
from privcheck.reports.run_plots import overlaid_plots
from privcheck.reports.standing_tables import COLUMNS, remarks, standing_cells, warnings
from privcheck.reports.values import Compared, MadeBy, Standing
from privcheck.reports.wording import figure, keep_together


def compared_plots(result: Compared) -> list[Plot]:
    """Returns value against ε, then regret, value and switches over episodes."""
    found = None if result.delta is None else frontier_plot(result.standings, delta=result.delta)
    return [*([] if found is None else [found]), *overlaid_plots(result.results)]


def compared_page(result: Compared) -> str:
    """Returns the page of several online agents in one environment."""
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
    """Returns the algorithms side by side.

    Args:
        standings: One an algorithm.
        delta: The common one.
    """
    caption = (
        f"Guarantee: the accountant's bound on the declared releases. Claim: the ε that it implies at δ = "
        f"{figure(delta)}, and whether it holds, judged in its own unit. Value: true expected return of the policy "
        "learned last, mean ± standard deviation over seeds."
    )
    return tables.table(caption, COLUMNS, [standing_cells(one, delta=delta) for one in standings])


def made_facts(made: MadeBy | None) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Returns seeds and versions, by title."""
    if made is None:
        return []
    seeds = tuple((name, str(seed)) for name, seed in made.seeds.items())
    return [("Seeds", seeds), ("Versions", tuple(made.versions.items()))]
