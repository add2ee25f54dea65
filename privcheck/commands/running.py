"""The commands that draw and learn: audit, run, check."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privcheck.commands.options import (
    VERDICTS,
    ProgressBars,
    confidence_option,
    data_option,
    delta_option,
    env_option,
    features_option,
    finish,
    json_option,
    out_option,
    report_errors,
    rewards_option,
    seed_option,
    set_option,
    trials_option,
    workers_option,
)

if TYPE_CHECKING:
    from privcheck.registry import Algorithm
    from privcheck.reports.values import Compared, RanOnline

_FILES = "--data, --rewards or --features"
METHODS_HELP = (
    "The test: coin-flip, curve, clopper-pearson, divergence, sequential (stops once the claim is refuted), one-run, "
    "group; auto is the view's own."
)


@click.command()
@click.argument("name")
@click.option("--view", default="releases", show_default=True, help="releases, policy, lockstep or noise.")
@click.option("--method", default="auto", show_default=True, metavar="METHOD", help=METHODS_HELP)
@trials_option
@confidence_option
@delta_option
@seed_option
@workers_option
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers run the trials (extra [cluster]).")
@set_option
@out_option
@json_option
@report_errors
def audit(
    name: str, *, view: str, method: str, sets: tuple[str, ...], delta: str | None, out: Path | None, as_json: bool,
    **how: Any,
) -> None:  # fmt: skip
    """Bound the privacy loss of NAME from below; with --out, the same command resumes an audit that was stopped."""
    from privcheck.commands import auditing, learned
    from privcheck.commands.printing import describe_audit
    from privcheck.commands.provenance import Began
    from privcheck.commands.setting import parse_delta, parse_sets, resolve_setting
    from privcheck.reports import save_report, save_result

    setting = resolve_setting(name, parse_sets(sets))
    at, began = parse_delta(delta, setting), Began()
    earlier = {} if out is None else auditing.earlier_views(setting, out)  # refused before anything is drawn
    with ProgressBars() as bars:
        result = learned.audit(setting, view=view, method=method, delta=at, out=out, progress=bars(view), **how)
    if out is not None:
        save_result(result, out / "audit.json")
        command = ["privcheck", *sys.argv[1:]]
        report = auditing.audit_report(setting, result, earlier, command=command, began=began)
        click.echo(f"report: {save_report(report, out)[1]}", err=True)
    finish(result, describe_audit, as_json=as_json)
    sys.exit(VERDICTS[result.verdict])


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@env_option
@data_option
@rewards_option
@features_option
@click.option("--replicates", type=click.IntRange(min=1), default=1, show_default=True, help="Independent repetitions.")
@seed_option
@workers_option
@set_option
@out_option
@json_option
@report_errors
def run(
    names: tuple[str, ...], *, env: str | None, data: str | None, rewards: Path | None, features: Path | None,
    replicates: int, seed: int, workers: int | None, sets: tuple[str, ...], out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run the agent NAME on sampled users or your own data; several that learn as they act are compared.

    With --out, the same command continues a run of an online agent that was stopped.
    """
    from privcheck import registry
    from privcheck.commands import learned, online
    from privcheck.commands.printing import describe_online_runs, describe_run

    algorithms = [registry.algorithm(name) for name in names]
    if online.online_only(algorithms):
        if env is None or (data, rewards, features) != (None, None, None):
            raise click.UsageError(f"{', '.join(names)} learns as it acts: give --env ENV, not {_FILES}")
        runs = _online(algorithms, env, sets, replicates=replicates, seed=seed, workers=workers, out=out)
        finish(runs, describe_online_runs, as_json=as_json)
        return
    files = {"data": data, "rewards": rewards, "features": features}
    setting, source = _load_data(algorithms[0], sets, env=env, seed=seed, **files)
    with ProgressBars() as bars:
        result = learned.run(setting, source, replicates=replicates, seed=seed, out=out, progress=bars("run"))
    if out is not None:
        from privcheck.reports import save_result

        save_result(result, out / "run.json")
    finish(result, describe_run, as_json=as_json)


def _online(
    algorithms: list[Algorithm], env: str, sets: tuple[str, ...], *, out: Path | None, **how: Any
) -> RanOnline | Compared:
    from privcheck.commands import online
    from privcheck.commands.setting import parse_sets

    world, given = online.load_world(env, parse_sets(sets), seed=how["seed"])
    settings = online.settle_together(algorithms, given, world)
    result: RanOnline | Compared
    with ProgressBars() as bars:
        if len(settings) == 1:
            result = online.run_online(settings[0], world, out=out, progress=bars(algorithms[0].name), **how)
        else:
            result = online.compare(settings, world, out=out, progress=bars, **how)
    if out is not None:
        from privcheck.reports.runs import save_runs

        save_runs(result, out)
    return result


@click.command()
@click.argument("name")
@env_option
@data_option
@rewards_option
@features_option
@click.option("--replicates", type=click.IntRange(min=1), help="Repetitions of the run; 5 on simulated users, else 1.")
@delta_option
@trials_option
@confidence_option
@seed_option
@workers_option
@set_option
@out_option
@json_option
@report_errors
def check(
    name: str, *, env: str | None, data: str | None, rewards: Path | None, features: Path | None, delta: str | None,
    seed: int, sets: tuple[str, ...], out: Path | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Check NAME: account, verify, audit and run it, and write one report."""
    from privcheck.commands import checking
    from privcheck.commands.setting import parse_delta
    from privcheck.reports import render_text, save_report

    files = {"data": data, "rewards": rewards, "features": features}
    setting, source = _load_source(name, sets, env=env, seed=seed, **files)
    at = parse_delta(delta, setting)  # everything is parsed before anything is written
    directory = out if out is not None else Path("runs") / name
    with ProgressBars() as bars:
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
    finish(report, render_text, as_json=as_json)
    sys.exit(checking.exit_code(report))


def _load_source(name: str, sets: tuple[str, ...], *, env: str | None, seed: int, **files: Any) -> tuple[Any, Any]:
    """Returns the setting with the data it learns from, or with the model it acts in; defaults where none is named.

    Where there is a declaration only, the setting alone.
    """
    from privcheck import registry
    from privcheck.commands import online
    from privcheck.commands.setting import parse_sets, settle

    algorithm = registry.algorithm(name)
    given_files = any(file is not None for file in files.values())
    if not algorithm.runs and algorithm.declare is not None:
        if env is not None or given_files:
            raise click.UsageError(f"{name} has no agent: nothing learns from --env, --data, --rewards or --features")
        return settle(algorithm, parse_sets(sets)), None
    if algorithm.online is None:
        regresses = algorithm.offline is not None and algorithm.offline.regressing is not None
        usual = registry.usual_environment("features" if regresses else "datasets")
        return _load_data(
            algorithm, sets, env=usual if env is None and files["data"] is None else env, seed=seed, **files
        )
    if given_files:
        raise click.UsageError(f"{name} learns as it acts: give --env ENV, not {_FILES}")
    where = env or algorithm.environment or registry.usual_environment("online")
    world, given = online.load_world(where, parse_sets(sets), seed=seed)
    return online.settle_together([algorithm], given, world)[0], world


def _load_data(
    algorithm: Algorithm, sets: tuple[str, ...], *, env: str | None, seed: int, **files: Any
) -> tuple[Any, Any]:
    from privcheck.commands.data import load
    from privcheck.commands.setting import parse_sets, settle

    source = load(env=env, given=parse_sets(sets), algorithm=algorithm, seed=seed, **files)
    return settle(algorithm, source.given, sizes=source.sizes), source
