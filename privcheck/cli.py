"""The command line: parses, shows progress, prints, sets the exit code. What is computed is in `privcheck.commands`.

Exit codes: 0 done, and the claim holds where one was checked; 1 a claim fails or an audit found a violation; 2 misuse
or bad input; 3 undecided.
"""

from __future__ import annotations

import functools
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from privcheck.errors import PrivcheckError

if TYPE_CHECKING:
    from privcheck.results import Progress

VERDICTS = {"holds": 0, "consistent": 0, "fails": 1, "violation": 1, "undecided": 3}

Command = Callable[..., Any]


def _reported(command: Command) -> Command:
    """Turns every error of ours into one message and exit code 2, an interrupt into 130."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
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

    return wrapped


_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else there.")
_set = click.option(
    "--set", "sets", multiple=True, metavar="NAME=VALUE", help="A parameter, reading or option; repeat."
)
_delta = click.option("--delta", metavar="D", help="δ at which ε is reported; 0 under a pure claim, else 1e-5.")
_seed = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all randomness.")
_workers = click.option(
    "--workers", type=click.IntRange(min=1), help="Threads; all cores. Results do not depend on it."
)
_confidence = click.option(
    "--confidence", type=float, default=0.99, show_default=True, help="1 − α of the whole audit."
)
_trials = click.option("--trials", type=click.IntRange(min=1), help="Runs under each of the two neighbours.")
_env = click.option("--env", metavar="ENV", help="A registered environment; users are sampled from it.")
_data = click.option("--data", metavar="FILE", help="Trajectories (.parquet, .csv, .npz), or an environment's name.")
_rewards = click.option(
    "--rewards", type=click.Path(path_type=Path), help="The public reward function (state, action, reward), for --data."
)
_out = click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Directory for what is written.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="privcheck")
def main() -> None:
    """Check privacy claims of reinforcement-learning algorithms: what is released, what it costs, is it true?"""


@main.command("list")
@_json
@_reported
def list_command(*, as_json: bool) -> None:
    """Show the registered algorithms."""
    from privcheck.commands.declared import list_algorithms
    from privcheck.commands.printing import listing

    _finish(list_algorithms(), listing, as_json=as_json)


@main.command()
@click.argument("name")
@_set
@_json
@_reported
def show(name: str, *, sets: tuple[str, ...], as_json: bool) -> None:
    """Show what NAME releases and how its cost is derived, in words and LaTeX."""
    from privcheck.commands import declared
    from privcheck.commands.printing import shown
    from privcheck.commands.setting import parse_sets, resolve_setting

    _finish(declared.show(resolve_setting(name, parse_sets(sets))), shown, as_json=as_json)


@main.command()
@click.argument("name")
@_set
@_delta
@_json
@_reported
def budget(name: str, *, sets: tuple[str, ...], delta: str | None, as_json: bool) -> None:
    """Show what the releases of NAME cost."""
    from privcheck.commands import declared
    from privcheck.commands.printing import budgeted
    from privcheck.commands.setting import parse_delta, parse_sets, resolve_setting

    setting = resolve_setting(name, parse_sets(sets))
    _finish(declared.budget(setting, parse_delta(delta, setting)), budgeted, as_json=as_json)


@main.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every declared algorithm, at its defaults.")
@click.option("--pages", type=click.Path(path_type=Path), help="With --all: write a page of findings a paper here.")
@_set
@_json
@_reported
def verify(name: str | None, *, everything: bool, pages: Path | None, sets: tuple[str, ...], as_json: bool) -> None:
    """Judge the claim of NAME, or of all: does it hold for the declared releases?"""
    from privcheck.commands.declared import verified, verified_all
    from privcheck.commands.printing import verdicts
    from privcheck.commands.setting import parse_sets, resolve_setting

    if everything == (name is not None):
        raise click.UsageError("give one algorithm's NAME or --all")
    if name is not None and pages is not None:
        raise click.UsageError("--pages goes with --all: a page is about a whole paper")
    if everything and sets:
        raise click.UsageError("--set goes with one NAME: parameters differ between algorithms")
    if pages is not None:
        from privcheck.commands.pages import write_pages

        for path in write_pages(pages):
            click.echo(f"page: {path}", err=True)
    results = [verified(resolve_setting(name, parse_sets(sets)))] if name is not None else verified_all()
    _finish({"results": results} if everything else results[0], verdicts, as_json=as_json)
    sys.exit(max((VERDICTS[r["verdict"]] for r in results), key=lambda code: (code == 1, code), default=0))


@main.command()
@click.argument("name")
@click.option("--epsilon", required=True, metavar="E", help="Target ε, in nats.")
@_delta
@_set
@_json
@_reported
def calibrate(name: str, *, epsilon: str, delta: str | None, sets: tuple[str, ...], as_json: bool) -> None:
    """Find the least noise for which the releases of NAME are (E, D)-DP, against the published one."""
    from privcheck.commands import declared
    from privcheck.commands.printing import calibrated
    from privcheck.commands.setting import parse_delta, parse_sets, resolve_setting
    from privcheck.symbols import exact, to_float

    setting = resolve_setting(name, parse_sets(sets))
    target = to_float(exact(epsilon), rounding="down")
    _finish(
        declared.calibrated(setting, epsilon=target, delta=parse_delta(delta, setting)), calibrated, as_json=as_json
    )


@main.command()
@click.argument("name")
@click.option("--view", default="releases", show_default=True, help="releases, policy, lockstep or noise.")
@_trials
@_confidence
@_delta
@_seed
@_workers
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers run the trials (extra [cluster]).")
@_set
@_out
@_json
@_reported
def audit(
    name: str, *, view: str, sets: tuple[str, ...], delta: str | None, out: Path | None, as_json: bool, **how: Any
) -> None:
    """Bound the privacy loss of NAME from below; with --out, the same command resumes an audit that was stopped."""
    from privcheck.commands import learned
    from privcheck.commands.printing import audited
    from privcheck.commands.setting import parse_delta, parse_sets, resolve_setting

    setting = resolve_setting(name, parse_sets(sets))
    at = parse_delta(delta, setting)
    with _Bars() as bars:
        result = learned.audit(setting, view=view, delta=at, out=out, progress=bars(view), **how)
    if out is not None:
        _write(out / "audit.json", result)
    _finish(result, audited, as_json=as_json)
    sys.exit(VERDICTS[result["verdict"]])


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@_env
@_data
@_rewards
@click.option("--replicates", type=click.IntRange(min=1), default=1, show_default=True, help="Independent repetitions.")
@_seed
@_workers
@_set
@_out
@_json
@_reported
def run(
    names: tuple[str, ...], *, env: str | None, data: str | None, rewards: Path | None, replicates: int, seed: int,
    workers: int | None, sets: tuple[str, ...], out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run the agent NAME on sampled users or your own data; several that learn as they act are compared.

    With --out, the same command continues a run of an online agent that was stopped.
    """
    from privcheck.commands import learned, online
    from privcheck.commands.printing import ran, ran_online

    if online.online_only(names):
        if env is None or data is not None or rewards is not None:
            raise click.UsageError(f"{', '.join(names)} learns as it acts: give --env ENV, not --data or --rewards")
        result = _online(names, env, sets, replicates=replicates, seed=seed, workers=workers, out=out)
        _finish(result, ran_online, as_json=as_json)
        return
    setting, source = _setting_and_data(names[0], sets, env=env, data=data, rewards=rewards, seed=seed)
    with _Bars() as bars:
        result = learned.run(setting, source, replicates=replicates, seed=seed, out=out, progress=bars("run"))
    if out is not None:
        _write(out / "run.json", result)
    _finish(result, ran, as_json=as_json)


def _online(names: tuple[str, ...], env: str, sets: tuple[str, ...], *, out: Path | None, **how: Any) -> dict[str, Any]:
    from privcheck.commands import online
    from privcheck.commands.setting import parse_sets

    world, given = online.load_world(env, parse_sets(sets), seed=how["seed"])
    settings = online.online_settings(names, given, world)
    with _Bars() as bars:
        if len(settings) == 1:
            result = online.run_online(settings[0], world, out=out, progress=bars(names[0]), **how)
        else:
            result = online.compare(settings, world, out=out, progress=bars, **how)
    if out is not None:
        from privcheck.reports.online import save_runs

        save_runs(result, out)
    return result


@main.command()
@click.argument("name")
@_env
@_data
@_rewards
@click.option("--replicates", type=click.IntRange(min=1), help="Repetitions of the run; 5 on simulated users, else 1.")
@_delta
@_trials
@_confidence
@_seed
@_workers
@_set
@_out
@_json
@_reported
def check(
    name: str, *, env: str | None, data: str | None, rewards: Path | None, delta: str | None, seed: int,
    sets: tuple[str, ...], out: Path | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Check NAME: account, verify, audit and run it, and write one report."""
    from privcheck.commands import checking
    from privcheck.commands.setting import parse_delta
    from privcheck.reports import render_text, save_report

    setting, source = _setting_and_source(name, sets, env=env, data=data, rewards=rewards, seed=seed)
    at = parse_delta(delta, setting)  # everything is parsed before anything is written
    directory = out if out is not None else Path("runs") / name
    with _Bars() as bars:
        report = checking.check(
            setting,
            source,
            delta=at,
            seed=seed,
            out=directory,
            command=["privcheck", *sys.argv[1:]],
            progress=bars,
            **how,
        )
    _, page = save_report(report, directory)
    click.echo(f"report: {page}", err=True)
    _finish(report, render_text, as_json=as_json)
    sys.exit(checking.exit_code(report))


@main.command()
@click.argument("directory", type=click.Path(path_type=Path))
@_json
@_reported
def report(directory: Path, *, as_json: bool) -> None:
    """Render the finished check in DIRECTORY again, from its report.json."""
    from privcheck.reports import render_again

    page = render_again(directory)
    _finish({"html": str(page)}, lambda r: r["html"], as_json=as_json)


@main.command()
@_json
@_reported
def doctor(*, as_json: bool) -> None:
    """Look for problems of this installation."""
    from privcheck.commands.doctor import diagnose
    from privcheck.commands.printing import diagnosis

    result = diagnose()
    _finish(result, diagnosis, as_json=as_json)
    sys.exit(0 if result["ok"] else 2)


def _setting_and_source(
    name: str, sets: tuple[str, ...], *, env: str | None, data: str | None, rewards: Path | None, seed: int
) -> tuple[Any, Any]:
    """Returns the setting with the data it learns from, or with the model it acts in; defaults where none is named.

    Where there is a declaration only, the setting alone.
    """
    from privcheck import registry
    from privcheck.commands import online
    from privcheck.commands.setting import parse_sets, resolve_setting

    algorithm = registry.algorithm(name)
    if algorithm.agent is None and algorithm.online is None and algorithm.declare is not None:
        if (env, data, rewards) != (None, None, None):
            raise click.UsageError(f"{name} has no agent: nothing learns from --env, --data or --rewards")
        return resolve_setting(name, parse_sets(sets)), None
    if not online.online_only((name,)):
        usual = "icu-sepsis" if env is None and data is None else data
        return _setting_and_data(name, sets, env=env, data=usual, rewards=rewards, seed=seed)
    if data is not None or rewards is not None:
        raise click.UsageError(f"{name} learns as it acts: give --env ENV, not --data or --rewards")
    world, given = online.load_world(env or "riverswim", parse_sets(sets), seed=seed)
    return online.online_settings((name,), given, world)[0], world


def _setting_and_data(
    name: str, sets: tuple[str, ...], *, env: str | None, data: str | None, rewards: Path | None, seed: int
) -> tuple[Any, Any]:
    from privcheck import registry
    from privcheck.commands.data import load
    from privcheck.commands.setting import parse_sets, resolve_setting

    registry.algorithm(name)  # a wrong name is said before data are read
    source = load(env=env, data=data, rewards=rewards, given=parse_sets(sets), algorithm=name, seed=seed)
    return resolve_setting(name, source.given, sizes=source.sizes), source


def _finish(result: dict[str, Any], words: Callable[[dict[str, Any]], str], *, as_json: bool) -> None:
    click.echo(json.dumps(result, allow_nan=False) if as_json else words(result).rstrip("\n"))


def _write(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(result, allow_nan=False, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


class _Bars:
    """Progress bars on standard error, one after the other; none where nobody looks."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, name: str) -> Progress:
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
