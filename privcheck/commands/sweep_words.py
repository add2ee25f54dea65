"""A sweep in the terminal."""

from __future__ import annotations

from privcheck.commands.widths import columns, wrap
from privcheck.reports.standing_tables import remarks, warnings
from privcheck.reports.swept import points_table
from privcheck.reports.values import Sweep


def describe_sweep(result: Sweep) -> str:
    """Returns the headline, what to know before using a figure, and every point."""
    standings = [one.standing for one in result.points if one.standing is not None]
    table = points_table(result)
    assert table is not None
    rows = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    notices = (*warnings(standings, delta=result.delta), *remarks(standings))
    refused = [
        wrap(f"refused: {one.algorithm} at {', '.join(f'{k} = {v}' for k, v in one.over.items())}: {one.refused}")
        for one in result.points
        if one.refused
    ]
    notes = [wrap(f"{notice.title}. {notice.text}") for notice in notices]
    return "\n".join([wrap(result.headline), "", columns(rows), "", *refused, *notes])
