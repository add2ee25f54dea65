"""What the commands share: options, progress bars, and how a result is printed or kept."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from privcheck.commands.kinds import Count, Place, complete_environments

if TYPE_CHECKING:
    from privcheck.progress import Progress

VERDICTS = {"holds": 0, "consistent": 0, "fails": 1, "violation": 1, "undecided": 3}

Result = TypeVar("Result")


_RESULT = "privcheck.result"  # in a context, where its result goes


def _keep_result_apart(context: click.Context, _: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click's way
    """Has what an agent prints go to standard error, so that nothing stands beside the JSON."""
    if value and _RESULT not in context.meta:
        context.meta[_RESULT] = sys.stdout
        context.with_resource(contextlib.redirect_stdout(sys.stderr))
    return value


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    callback=_keep_result_apart,
    help="Print one JSON object to standard output and nothing else.",
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="Set a parameter, reading or option; may be repeated."
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
    "for what is published (extra [release]).",
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
    click.option("--who", metavar="NOUN", help="What one user is called, such as patient; by default from the column."),
    click.option("--max-trajectories", type=Count(), metavar="M", help="At most how many episodes a user has."),
    click.option("--one-episode-is-one-user", is_flag=True, help="State that each episode is another user's."),
)


def users_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that say who the users of --data are; the command gets them as one value, `users`."""

    @functools.wraps(command)
    def gather(
        *args: Any, user_column: str | None, who: str | None, max_trajectories: int | None,
        one_episode_is_one_user: bool, **how: Any,
    ) -> None:  # fmt: skip
        from privcheck.reading import Users

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
grant_option = click.option("--grant", metavar="G", help="Which grant of --ledger is charged.")
out_option = click.option("--out", type=Place(file_okay=False), help="Write everything to this directory.")
dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Print what would be done, at which sizes and cost, and about how long it would take; draw and write nothing.",
)
yes_option = click.option(
    "--yes", is_flag=True, help="Start even if it will take more than about an hour or 8 GB of memory."
)


def finish(result: Result, words: Callable[[Result], str], *, as_json: bool) -> None:
    """Prints the result, in words or as one JSON object."""
    from privcheck.reports.values import document

    write(json.dumps(document(result), allow_nan=False) if as_json else words(result).rstrip("\n"))


def write(text: str, *, nl: bool = True) -> None:
    """Prints a result, or a part of one, on the standard output that the command began with."""
    context = click.get_current_context(silent=True)
    click.echo(text, file=None if context is None else context.meta.get(_RESULT), nl=nl)


class ProgressBars:
    """Progress bars on standard error, one after the other; none where nobody looks."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, name: str) -> Progress:
        """Returns the callback of a new bar, which takes the place of the one before."""
        self._close()

        def progress(done: int, total: int) -> None:
            if self._bar is None:
                from tqdm import tqdm

                self._bar = tqdm(desc=name, total=total, file=sys.stderr, disable=not sys.stderr.isatty(), leave=False)
            self._bar.total = total
            self._bar.update(done - self._bar.n)

        return progress

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
