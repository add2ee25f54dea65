"""What the commands share: options, errors as one message, progress bars, and how a result is printed or kept."""

from __future__ import annotations

import functools
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from privcheck.errors import PrivcheckError

if TYPE_CHECKING:
    from privcheck.results import Progress

VERDICTS = {"holds": 0, "consistent": 0, "fails": 1, "violation": 1, "undecided": 3}

Command = Callable[..., Any]
Result = TypeVar("Result")


def report_errors(command: Command) -> Command:
    """Turns every error of ours into one message and exit code 2, an interrupt into 130."""

    @functools.wraps(command)
    def run_reporting(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except PrivcheckError as error:
            click.echo(f"privcheck: {error}", err=True)
            sys.exit(2)
        except MemoryError:
            click.echo("privcheck: out of memory: make H, S, A or --trials smaller (--set S=…, --set H=…)", err=True)
            sys.exit(2)
        except OSError as error:
            click.echo(f"privcheck: {error.strerror or error}: {error.filename or ''}".rstrip(": "), err=True)
            sys.exit(2)
        except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError) as error:
            # a bug of ours must not end with 1, which means that a claim fails
            traceback.print_exc()
            click.echo(f"privcheck: internal error, nothing was decided: {error!r}; please report it", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("privcheck: interrupted; what was finished is kept", err=True)
            sys.exit(130)

    return run_reporting


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else there."
)
set_option = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="A parameter, reading or option; repeat."
)
delta_option = click.option("--delta", metavar="D", help="δ at which ε is reported; 0 under a pure claim, else 1e-5.")
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
workers_option = click.option(
    "--workers", type=click.IntRange(min=1), help="Threads; all cores. Results do not depend on it."
)
confidence_option = click.option(
    "--confidence", type=float, default=0.99, show_default=True, help="1 − α of the whole audit."
)
trials_option = click.option("--trials", type=click.IntRange(min=1), help="Runs under each of the two neighbours.")
env_option = click.option("--env", metavar="ENV", help="A registered environment; users are sampled from it.")
data_option = click.option(
    "--data", metavar="FILE", help="Trajectories (.parquet, .csv, .npz), or an environment's name."
)
rewards_option = click.option(
    "--rewards", type=click.Path(path_type=Path), help="The public reward function (state, action, reward), for --data."
)
features_option = click.option(
    "--features",
    type=click.Path(path_type=Path),
    help="Public features of states and actions, for --data: .npz with phi (S, A, d), or a table with the columns "
    "state, action, phi1, phi2, …; never computed from the users' data.",
)
out_option = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Directory for what is written."
)


def finish(result: Result, words: Callable[[Result], str], *, as_json: bool) -> None:
    """Prints the result, in words or as one JSON object."""
    from privcheck.reports.values import document

    click.echo(json.dumps(document(result), allow_nan=False) if as_json else words(result).rstrip("\n"))


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
