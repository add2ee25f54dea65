"""The command that audits a change: for jobs that check pull requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privcheck.cli.options import Count, Place, finish, json_option, wrap, wrapped_columns
from privcheck.cli.progress import ProgressBars

if TYPE_CHECKING:
    from privcheck.reports.values import ChangeReview

EXITS = {"violation": 1, "undecided": 3, "consistent": 0, "nothing touched": 0}


@click.command()
@click.option("--base", required=True, metavar="REV", help="The base of the change: a branch, a tag or a commit.")
@click.option(
    "--run-number",
    type=Count(),
    required=True,
    metavar="K",
    help="The number of this run, which no other commit ever had: GITHUB_RUN_NUMBER, CI_PIPELINE_IID. It decides the "
    "run's share of --alpha.",
)
@click.option("--minutes", type=float, default=10.0, show_default=True, help="Time for all audits together.")
@click.option(
    "--rounds", type=Count(), help="At most so many audits of each target; by default as many as there is time for."
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability that correct code is accused in any run of this repository, ever.",
)
@click.option("--sarif", type=Place(), metavar="FILE", help="Write the findings as SARIF 2.1.0.")
@click.option("--comment", type=Place(), metavar="FILE", help="Write a comment for the pull request, in Markdown.")
@json_option
def ci(
    *,
    base: str,
    run_number: int,
    minutes: float,
    rounds: int | None,
    alpha: float,
    sarif: Path | None,
    comment: Path | None,
) -> None:
    """Audit what the change since REV touches.

    These are registered algorithms and tests marked `privacy` that import a changed file of this git work tree,
    directly or through others.

    Exit code 1: a claim fails or an audit found a violation; 3: something touched is undecided or was not audited; 0:
    neither, or nothing was touched.

    \b
    Examples:
      privcheck ci --base origin/main --run-number 17
      privcheck ci --base main --run-number 18 --minutes 30 --sarif audit.sarif --comment comment.md
    """
    from privcheck.commands.change_audits import review_change
    from privcheck.reports.change_review import describe_comment, describe_sarif, refuse_place
    from privcheck.support.files import write_whole

    for path in (sarif, comment):
        if path is not None:
            refuse_place(path)
    with ProgressBars() as bars:
        result = review_change(
            base,
            directory=Path.cwd(),
            minutes=minutes,
            rounds=rounds,
            alpha=alpha,
            run_number=run_number,
            progress=bars,
        )
    for path, describe in ((sarif, describe_sarif), (comment, describe_comment)):
        if path is not None:
            write_whole(path, describe(result))
            click.echo(f"written: {path}", err=True)
    finish(result, describe_review)
    sys.exit(EXITS[result.verdict])


def describe_review(found: ChangeReview) -> str:
    """Text of a review: the verdict, a line for each target, and what was spent."""
    from privcheck.reports.change_review import headline, notes_of, say_bound

    rows = [("verdict", "target", "at", "bound or reason")]
    rows += [(one.verdict, one.title, f"{one.file}:{one.line}", say_bound(one)) for one in found.targets]
    bad = [one for one in found.targets if one.verdict in {"violation", "fails"}]
    witnesses = [
        "\n".join(
            [
                wrap(f"{one.title}: {one.method}"),
                *([wrap(f"neighbours: {one.neighbours}")] if one.neighbours else []),
                *([f"to repeat it: {one.command}"] if one.command else []),
            ]
        )
        for one in bad
    ]
    table = [wrapped_columns(rows), ""] if found.targets else []
    return "\n".join(
        [wrap(headline(found)), "", *table, *(f"{text}\n" for text in witnesses), *map(wrap, notes_of(found))]
    )
