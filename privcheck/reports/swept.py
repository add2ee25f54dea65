"""A sweep as a page and as files: headline, a frontier a setting, one short table in one unit, how it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports import tables
from privcheck.reports.headlines import is_at, list_settings
from privcheck.reports.model import encode
from privcheck.reports.standing_tables import COLUMNS, remarks, standing_cells, warnings
from privcheck.reports.summary import Notice
from privcheck.reports.values import Sweep, SweepPoint, from_json
from privcheck.reports.wording import figure, keep_together, spell_out
from privcheck.whole_files import write_together

JSON_NAME: Final = "sweep.json"
HTML_NAME: Final = "sweep.html"
_FOLDED: Final = 24  # rows: a longer table is folded
_OWN: Final = (
    "All points learned from the same users. With noise for a release they would be that many releases about them: "
    "together they cost the sum of their guarantees, and choosing the best of them is one more look at the data."
)


def save_sweep(result: Sweep, directory: Path) -> None:
    """Writes sweep.json, sweep.html and the plots alone, all or none; the same sweep gives the same bytes.

    Args:
        result: A sweep.
        directory: Where to.

    Raises:
        PrivcheckError: They cannot be written; what was there before is still there.
    """
    kept = result.without_clocks()
    pictures = _pictures(kept)
    write_together(directory, {JSON_NAME: encode(kept), HTML_NAME: sweep_page(kept), **pictures})
    for path in directory.glob("frontier-*.svg"):
        if path.name not in pictures:  # of another sweep, whose json and page are gone
            path.unlink()


def _pictures(result: Sweep) -> dict[str, str]:
    """Returns the plots as SVG files by name: frontier-1.svg and so on."""
    try:
        drawn = result.plot().svgs
    except ParameterError:  # nothing to draw
        return {}
    return {f"frontier-{number}.svg": svg for number, svg in enumerate(drawn, start=1)}


def render_sweep_again(directory: Path) -> Path:
    """Writes sweep.html from sweep.json alone and returns its path.

    Raises:
        FileFormatError: There is no sweep that this version can read.
        PrivcheckError: The page cannot be written; the old one is still there.
    """
    file = directory / JSON_NAME
    try:
        page = sweep_page(from_json(Sweep, json.loads(file.read_bytes().decode("utf-8")), "sweep"))
    except (OSError, ValueError, ParameterError) as error:
        message = f"{file}: expected what `privcheck sweep NAME… --over … --out DIR` wrote; {error!s}"
        raise FileFormatError(message) from None
    write_together(directory, {HTML_NAME: page})
    return directory / HTML_NAME


def sweep_page(result: Sweep) -> str:
    """Returns the page of a sweep."""
    from privcheck.reports.comparison import made_facts  # here, not above: they load matplotlib
    from privcheck.reports.frontiers import frontiers
    from privcheck.reports.html import inline, template

    standings = [one.standing for one in result.points if one.standing is not None]
    users = sorted({one.episodes for one in result.points if not one.refused})
    counted = figure(users[0]) if len(users) == 1 else f"{figure(users[0])} to {figure(users[-1])}"
    grid = "; ".join(f"{spell_out(name)} = {', '.join(values)}" for name, values in result.over.items())
    seeds = "" if result.replicates == 1 else f" · {result.replicates} seeds"
    return template("sweep.html.j2").render(
        names=", ".join(result.algorithms),
        title=keep_together(result.headline),
        subtitle=f"{result.environment} · {counted} users · {grid}{seeds}",
        warnings=(*warnings(standings, delta=result.delta), *_warn_of_own_data(result), *_warn_of_refused(result)),
        plots=[(where, inline(plot)) for where, plot in frontiers(result)],
        table=points_table(result),
        folded=len(result.points) > _FOLDED,
        remarks=remarks(standings),
        made=result.made_by,
        facts_of=made_facts(result.made_by),
    )


def points_table(result: Sweep) -> tables.ReportTable | None:
    """Returns the points, a row each."""
    caption = (
        f"Guarantee: the accountant's bound on the declared releases. Claim: the ε that it implies at δ = "
        f"{figure(result.delta)}, and whether it holds, judged in its own unit. Value: true expected return of the "
        f"policy learned last{_say_spread(result)}."
    )
    shown = [name for name, values in result.over.items() if len(values) > 1]
    columns = (COLUMNS[0], *(f"#{spell_out(name)}" for name in shown), *COLUMNS[1:])
    return tables.table(caption, columns, [_row(one, shown, result.delta) for one in result.points])


def _say_spread(result: Sweep) -> str:
    if result.replicates == 1:
        return ""
    acted = any(one.regret is not None for one in result.points)
    drawn = "seeds" if acted else "draws of noise, all on the same users"
    return f", mean ± standard deviation over {result.replicates} {drawn}"


def _row(one: SweepPoint, shown: Sequence[str], delta: float) -> list[str | tables.Cell]:
    over = [one.over.get(name, "") for name in shown]
    if one.standing is None:
        return [one.algorithm, *over, tables.Cell(text="refused", tone="bad"), "", "", ""]
    name, *rest = standing_cells(one.standing, delta=delta)
    return [name, *over, *rest]


def _warn_of_own_data(result: Sweep) -> list[Notice]:
    many = len([one for one in result.points if not one.refused])
    if not result.own_data or many < 2:
        return []
    return [Notice(tone="bad", title=f"{many} looks at the same users", text=_OWN)]


def _warn_of_refused(result: Sweep) -> list[Notice]:
    return [
        Notice(tone="bad", title="Refused", text=f"{one.algorithm}{_where(one.over)}: {one.refused}.")
        for one in result.points
        if one.refused
    ]


def _where(over: Mapping[str, str]) -> str:
    return "" if not over else " at " + ", ".join(f"{spell_out(name)} = {value}" for name, value in over.items())


def group_points(result: Sweep) -> list[tuple[dict[str, str], list[SweepPoint]]]:
    """Returns the points by the setting of what is no part of a guarantee; a point that knows less is at several."""
    others = [name for name in result.over if name not in result.budgets]
    settings = list_settings(result.points, others) or [{}]
    return [(setting, [one for one in result.points if is_at(one, setting)]) for setting in settings]


def find_axis(result: Sweep) -> str | None:
    """Returns the parameter to draw against where no swept one is part of a guarantee: the first of numbers."""
    if result.budgets:
        return None
    return next((name for name, values in result.over.items() if all(as_number(one) for one in values)), None)


def as_number(text: str) -> float | None:
    """Returns a value above 0 as a number; None where it is none."""
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        return None
    return value if value > 0 else None
