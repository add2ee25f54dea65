"""The command that runs the papers' figures again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from privcheck.cli.options import (
    Count,
    columns,
    finish,
    json_option,
    out_option,
    workers_option,
    wrap,
    wrapped_columns,
)
from privcheck.cli.progress import ProgressBars

if TYPE_CHECKING:
    from privcheck.reports.values import ListedFigures, Reproduced, Reproduction


@click.command()
@click.argument("paper", required=False)
@click.argument("figure", required=False)
@click.option("--all", "everything", is_flag=True, help="Every figure, of PAPER or of all papers.")
@click.option("--quick", is_flag=True, help="Shrunken versions, some minutes for all; conclusions are marked quick.")
@click.option("--seed", type=Count(least=0), help="Random seed in place of the figure's own.")
@workers_option
@out_option
@json_option
def reproduce(
    paper: str | None, figure: str | None, *, everything: bool, quick: bool, seed: int | None, workers: int | None,
    out: Path | None,
) -> None:  # fmt: skip
    """Run FIGURE of PAPER again and judge it by its text.

    Without arguments, list figures and recorded conclusions.

    With --out, the same command continues where a stopped one was.

    \b
    Examples:
      privcheck reproduce
      privcheck reproduce shuffle-dp figure-8 --out runs/figures
      privcheck reproduce --all --quick
    """
    from privcheck.commands import reproductions
    from privcheck.commands.partial_outputs import telling_what_is_kept
    from privcheck.reports.reproductions import HTML_NAME

    if not everything and figure is None:
        if quick or seed is not None or workers is not None or out is not None:
            raise click.UsageError("give a PAPER and a FIGURE, or --all: the other options are of a run")
        finish(reproductions.list_figures(paper), describe_figures)
        return
    if everything and figure is not None:
        raise click.UsageError(f"--all runs all figures of {paper}; leave out {figure}, or --all")
    asked = reproductions.ask(paper, figure, quick=quick, seed=seed, workers=workers)
    with telling_what_is_kept(out, resumes=True), ProgressBars() as bars:
        result = reproductions.reproduce(asked, out=out, progress=bars)
    for one in result.results if out is not None else ():
        assert out is not None
        folder = reproductions.folder_of(out, one.paper, one.figure, quick=one.quick)
        click.echo(f"page: {folder / HTML_NAME}", err=True)
    finish(result, describe_reproduced)


def describe_figures(listed: ListedFigures) -> str:
    """Text of the list of figures: what each shows, and the recorded conclusion."""
    rows = [("paper", "figure", "recorded", "shows")]
    for one in listed.figures:
        record = "–" if one.outcome is None else f"{one.outcome}{' (quick)' if one.quick else ''}"
        rows.append((one.paper, one.figure, record, one.title))
    others = [wrap(f"{paper}: {said}") for paper, said in listed.others.items()]
    return "\n".join([wrapped_columns(rows), "", *others])


def describe_reproduced(result: Reproduced) -> str:
    """Text of reproduced figures, each with its numbers, what its text says, and its outcome."""
    return "\n\n".join(_describe(one) for one in result.results)


def _describe(one: Reproduction) -> str:
    from privcheck.reports.reproductions import PICTURES, QUICK, numbers_table, say_outcome

    table = numbers_table(one)
    assert table is not None
    rows = [table.columns, *([cell.text for cell in row] for row in table.rows)]
    said = [
        wrap(f"“{judged.quotation}” {judged.outcome}: {judged.reason} {judged.undecided}".rstrip())
        for judged in one.observations
    ]
    return "\n".join(
        [
            wrap(f"{one.paper} {one.figure}: {one.title} ({one.where})"),
            "",
            wrap(table.caption),
            columns(rows),
            "",
            *said,
            wrap(PICTURES),
            *(wrap(f"taken: {taken}") for taken in one.taken),
            "",
            wrap(f"{say_outcome(one)}: {one.reason}"),
            *([wrap(QUICK)] if one.quick else []),
        ]
    )
