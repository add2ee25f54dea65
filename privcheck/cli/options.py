"""Shared parts of the commands: options, argument types, columns of text, output of results."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from privcheck.errors import ParameterError
from privcheck.support.plugins import list_entries

if TYPE_CHECKING:
    from privcheck.commands.certificates import CheckedCertificate


_MOST: Final = 10**18  # a count that no computation comes to, and that 64 bits hold

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


class Count(click.ParamType[int]):
    """A whole number: 1000000, 1_000_000 or 1e6."""

    name = "count"

    def __init__(self, *, least: int = 1) -> None:
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the number; a number that is not whole or out of range is refused."""
        from privcheck.terms.symbols.exactness import exact

        try:
            count = exact(value)
        except ParameterError:
            count = None
        if count is None or count.denominator != 1 or not self._least <= count <= _MOST:
            self.fail(f"expected a whole number from {self._least} to 1e18, as 1000 or 1e6, got {value!r}", param, ctx)
        return int(count)


class Place(click.Path):
    """A non-empty path: an empty text would be the current directory."""

    def __init__(self, **how: Any) -> None:
        super().__init__(path_type=Path, **how)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the path; an empty text is refused."""
        if not str(value).strip():
            self.fail("expected a path, got an empty text", param, ctx)
        return super().convert(value, param, ctx)


def _complete(known: Callable[[], Sequence[str]]) -> Complete:
    def complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in known() if name.startswith(incomplete)]

    return complete


def _environments() -> list[str]:
    return [*list_entries("environments"), *(f"{family}:" for family in list_entries("environment_families"))]


def _methods() -> Sequence[str]:
    from privcheck.runtime.results import AuditMethod

    return get_args(AuditMethod)


complete_algorithms: Final = _complete(lambda: sorted(list_entries("algorithms")))
complete_environments: Final = _complete(_environments)
complete_methods: Final = _complete(_methods)
complete_views: Final = _complete(lambda: sorted(list_entries("views")))

name_argument: Final = click.argument("name", shell_complete=complete_algorithms)


VERDICTS = {"holds": 0, "consistent": 0, "fails": 1, "violation": 1, "undecided": 3}

Result = TypeVar("Result")


_COLOURS: Final = {
    "holds": "green", "consistent": "green", "fails": "red", "violation": "red", "undecided": "yellow",
    "unproved": "yellow",
}  # fmt: skip
_HEADLINE: Final = re.compile(rf"^(?:{'|'.join(_COLOURS)})\b", re.IGNORECASE | re.MULTILINE)
_RESULT = "privcheck.result"  # in a context, where its result goes


def _keep_result_apart(context: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's way
    """Redirect an agent's prints to standard error, so that standard output has only the JSON."""
    if value and _RESULT not in context.meta:
        context.meta[_RESULT] = sys.stdout
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    expose_value=False,  # `finish` and `wants_json` ask the context
    callback=_keep_result_apart,
    help="Print one JSON object to standard output and nothing else.",
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="Set a parameter, reading or option; may be repeated."
)
certificate_option = click.option(
    "--certificate",
    type=Place(),
    metavar="FILE",
    help="Write the certificate, for `python -m privcheck_check FILE`; refused where there is none.",
)
delta_option = click.option(
    "--delta", metavar="D", help="δ at which ε is reported; 0 for a pure claim, otherwise 1e-5."
)
common_delta_option = click.option(
    "--delta",
    metavar="D",
    help="δ at which the guarantees of several algorithms are compared; the least that a claim names, else 1e-5.",
)
noise_option = click.option(
    "--noise",
    type=click.Choice(["simulated", "release"]),
    default="simulated",
    show_default=True,
    help="Where the run's noise comes from: simulated is seeded and protects nobody; release is exact and unseedable, "
    "for publication (extra [release]).",
)
seed_option = click.option("--seed", type=Count(least=0), default=0, show_default=True, help="Random seed.")
workers_option = click.option(
    "--workers", type=Count(), help="Number of threads, by default one per core; results do not depend on it."
)
confidence_option = click.option(
    "--confidence", type=float, default=0.99, show_default=True, help="1 − α of the whole audit."
)
trials_option = click.option("--trials", type=Count(), help="Runs under each of the two neighbours; 1e6 is a million.")
env_option = click.option(
    "--env",
    metavar="ENV",
    shell_complete=complete_environments,
    help="A registered environment; users are sampled from it.",
)
data_option = click.option(
    "--data", metavar="FILE", help="Trajectories (.parquet, .csv, .npz), or an environment's name."
)
_USERS = (
    click.option("--column", "user_column", metavar="user=NAME", help="The file's column that names each row's user."),
    click.option("--who", metavar="NOUN", help="The noun for one user, such as patient; by default from the column."),
    click.option("--max-trajectories", type=Count(), metavar="M", help="The most episodes of a user."),
    click.option(
        "--one-episode-is-one-user", is_flag=True, help="State that each episode belongs to a different user."
    ),
)


def users_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options about the users of --data; the command gets them as one value, `users`."""

    @functools.wraps(command)
    def gather(
        *args: Any, user_column: str | None, who: str | None, max_trajectories: int | None,
        one_episode_is_one_user: bool, **how: Any,
    ) -> None:  # fmt: skip
        from privcheck.data.reading import Users

        if user_column is not None:
            ours, equals, user_column = user_column.partition("=")
            if ours.strip() != "user" or not equals or not user_column.strip():
                message = "--column expects user=NAME here; `privcheck prepare` renames other columns"
                raise click.UsageError(message)
        users = Users(
            column=None if user_column is None else user_column.strip(),
            who=who,
            max_trajectories=max_trajectories,
            one_episode_is_one_user=one_episode_is_one_user,
        )
        command(*args, users=users, **how)

    for option in reversed(_USERS):
        gather = option(gather)
    return gather


rewards_option = click.option(
    "--rewards", type=Place(), help="The public reward function (state, action, reward), for --data."
)
features_option = click.option(
    "--features",
    type=Place(),
    help="Public features of states and actions, for --data: .npz with phi (S, A, d), or a table with the columns "
    "state, action, phi1, phi2, …; never computed from the users' data.",
)
ledger_option = click.option(
    "--ledger", metavar="URL", help="A team's budget, as for `privcheck ledger`; charged before the first draw."
)
grant_option = click.option("--grant", metavar="G", help="The grant of --ledger to charge.")
out_option = click.option("--out", type=Place(file_okay=False), help="Write everything to this directory.")
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Print the plan with its sizes, cost and approximate duration; draw and write nothing.",
)
yes_option = click.option(
    "--yes", is_flag=True, help="Start even if it will take more than about an hour or 8 GB of memory."
)


def keep_certificate(found: CheckedCertificate, path: Path) -> None:
    """Write a certificate, and say what the checker said of it."""
    from privcheck.commands.certificates import write_certificate
    from privcheck.reports.wording import say_certificate

    write_certificate(found, path)
    click.echo(f"{path}: {say_certificate(found.brief)}", err=True)


def wants_json() -> bool:
    """Whether the command prints JSON."""
    context = click.get_current_context(silent=True)
    return context is not None and _RESULT in context.meta


def finish(result: Result, words: Callable[[Result], str]) -> None:
    """Print the result, in words or as one JSON object."""
    from privcheck.reports.values import document

    write(json.dumps(document(result), allow_nan=False) if wants_json() else words(result).rstrip("\n"))


def write(text: str, *, nl: bool = True) -> None:
    """Print a result, or a part of it, to the standard output with which the command began."""
    context = click.get_current_context(silent=True)
    file = None if context is None else context.meta.get(_RESULT)
    plain = file is not None or "NO_COLOR" in os.environ
    click.echo(text if plain else _HEADLINE.sub(_coloured, text), file=file, nl=nl)


def _coloured(headline: re.Match[str]) -> str:
    """The verdict in its colour; Click leaves colours out where the output is no terminal."""
    return click.style(headline[0], fg=_COLOURS[headline[0].lower()], bold=True)


_GAP: Final = "  "
_NO_TERMINAL: Final = 10_000
_LEAST: Final = 12  # of a column that is cut or wrapped

Rows = Sequence[Sequence[str]]


def columns(rows: Rows) -> str:
    """Align rows as columns; the first row is the heading."""
    return _join(rows, _widths(rows))


def pages_of_columns(heading: Sequence[str], pages: Iterable[Rows]) -> Iterator[str]:
    """Yield rows as columns as wide as the heading and first page need; longer cells of later pages overflow."""
    left = iter(pages)
    first = [heading, *next(left, ())]
    widths = _widths(first)
    yield _join(first, widths)
    for page in left:
        yield "\n".join(_lines(page, widths))


def stream_columns(heading: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yield a heading, then one line per row as rows arrive; a cell longer than its column overflows."""
    yield from _join([heading], widths).split("\n")
    for row in rows:
        yield from _lines([row], widths)


def cut_columns(rows: Rows, *, most: int = _NO_TERMINAL) -> str:
    """Fit rows as columns into the terminal and `most`: all but the first column may be cut, ending in `…`."""
    widths, room = _widths(rows), min(_room(), most)
    while _sum(widths) > room and max(widths[1:]) > _LEAST:
        widths[widths.index(max(widths[1:]), 1)] -= 1
    return _join([[_cut(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows], widths)


def cut_line(text: str, *, most: int) -> str:
    """Fit a line into the terminal and `most`; a cut line ends in `…`."""
    return _cut(text, min(_room(), most))


def wrapped_columns(rows: Rows) -> str:
    """Fit rows as columns into the terminal: the last column is wrapped, nothing is cut."""
    widths = _widths(rows)
    widths[-1] = max(min(widths[-1], _room() - _sum(widths) + widths[-1]), _LEAST)
    lines: list[Sequence[str]] = []
    for row in rows:
        first, *more = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) or [""]
        lines.append([*row[:-1], first])
        lines += [["" for _ in row[:-1]] + [part] for part in more]
    return _join(lines, widths)


def wrap(text: str) -> str:
    """Fill a text into lines that fit the terminal."""
    return textwrap.fill(text, _room(), subsequent_indent=_GAP, break_long_words=False, break_on_hyphens=False)


def _room() -> int:
    return max(shutil.get_terminal_size(fallback=(_NO_TERMINAL, 24)).columns, 2 * _LEAST)


def _widths(rows: Rows) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1].rstrip() + "…"


def _join(rows: Rows, widths: Sequence[int]) -> str:
    lines = _lines(rows, widths)
    return "\n".join([lines[0], _GAP.join("─" * width for width in widths), *lines[1:]])


def _lines(rows: Rows, widths: Sequence[int]) -> list[str]:
    return [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
