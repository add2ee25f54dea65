"""The commands that draw and learn: audit, run, check, sweep."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privcheck.cli.options import (
    VERDICTS,
    Count,
    certificate_option,
    common_delta_option,
    complete_algorithms,
    complete_methods,
    complete_views,
    confidence_option,
    data_option,
    delta_option,
    dry_run_option,
    env_option,
    features_option,
    finish,
    grant_option,
    json_option,
    keep_certificate,
    ledger_option,
    name_argument,
    noise_option,
    out_option,
    rewards_option,
    seed_option,
    set_option,
    trials_option,
    users_options,
    workers_option,
    yes_option,
)
from privcheck.cli.progress import ProgressBars

if TYPE_CHECKING:
    from privcheck.commands.dry_run import Foreseen
    from privcheck.data.reading import Users
    from privcheck.reports.values import Compared, Ran, RanOnline


_REPORT_PAGE = "report.html"
METHODS_HELP = (
    "The test: coin-flip, curve, clopper-pearson, divergence, sequential (stops once the claim is refuted), one-run, "
    "group; auto takes the view's default."
)


@click.command()
@name_argument
@click.option(
    "--view",
    default="releases",
    show_default=True,
    shell_complete=complete_views,
    help="releases, policy, lockstep or noise.",
)
@click.option(
    "--method", default="auto", show_default=True, metavar="METHOD", shell_complete=complete_methods, help=METHODS_HELP
)
@trials_option
@confidence_option
@delta_option
@seed_option
@workers_option
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers run the trials (extra [cluster]).")
@set_option
@out_option
@click.option(
    "--ledger", metavar="URL", help="A team's ledger: record the verdict there; a violation freezes the grant."
)
@click.option("--charge", metavar="ID", help="The audited charge of --ledger.")
@dry_run_option
@yes_option
@certificate_option
@json_option
def audit(
    name: str, *, sets: tuple[str, ...], out: Path | None, dry_run: bool, yes: bool, certificate: Path | None,
    **how: Any,
) -> None:  # fmt: skip
    """Bound the privacy loss of NAME from below.

    With --out, the same command resumes an audit that was stopped.

    \b
    Examples:
      privcheck audit dp-apvi --trials 1e6 --out runs/dp-apvi-audit
      privcheck audit private-ucb-vi-central --view policy --dry-run
    """
    from privcheck import api
    from privcheck.cli.printing import describe_audit
    from privcheck.commands.dry_run import foresee_audit
    from privcheck.commands.estimates import refuse_long
    from privcheck.commands.partial_outputs import telling_what_is_kept
    from privcheck.commands.settings import parse_sets
    from privcheck.runtime.run_folders import find_file, working_folder

    given, command = parse_sets(sets), ["privcheck", *sys.argv[1:]]
    asked = ("view", "method", "confidence", "trials", "workers")
    foreseen = foresee_audit(name, given, **{option: how[option] for option in asked})
    if dry_run:
        _tell_planned("audit", foreseen, delta=how["delta"], out=out)
        return
    refuse_long(foreseen.parts, yes=yes)
    place = None if out is None else working_folder(out)
    with telling_what_is_kept(place, resumes=True), ProgressBars() as bars:
        result = api.audit(name, out=out, progress=bars, command=command, parameters=given, **how)
    if out is not None:
        click.echo(f"report: {find_file(out, _REPORT_PAGE)}", err=True)
    if certificate is not None:
        from privcheck.commands.certificates import certificate_of_audit

        keep_certificate(certificate_of_audit(result), certificate)
    finish(result, describe_audit)
    sys.exit(VERDICTS[result.verdict])


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=complete_algorithms)
@env_option
@data_option
@rewards_option
@features_option
@users_options
@click.option("--replicates", type=Count(), default=1, show_default=True, help="Independent repetitions.")
@noise_option
@seed_option
@workers_option
@set_option
@out_option
@ledger_option
@grant_option
@common_delta_option
@dry_run_option
@yes_option
@json_option
def run(
    names: tuple[str, ...], *, env: str | None, data: str | None, rewards: Path | None, features: Path | None,
    users: Users, sets: tuple[str, ...], out: Path | None, delta: str | None, dry_run: bool, yes: bool,
    **how: Any,
) -> None:  # fmt: skip
    """Run the agent NAME on sampled users or your own data.

    Several online agents are compared.

    With --out, the same command continues a stopped run of an online agent, or of one that trains a policy.

    \b
    Examples:
      privcheck run dp-apvi --env riverswim --replicates 5
      privcheck run ucb-vi private-ucb-vi-central --env riverswim --set K=1e6 --out runs/two
      privcheck run private-policy-gradient --env cart-pole --set K=4000 --out runs/cart-pole
    """
    from privcheck import api
    from privcheck.cli.printing import describe_online_runs, describe_run
    from privcheck.commands.dry_run import foresee_run
    from privcheck.commands.estimates import refuse_long
    from privcheck.commands.partial_outputs import telling_what_is_kept
    from privcheck.commands.settings import parse_sets
    from privcheck.commands.sources import Place, refuse_files
    from privcheck.reports.values import Compared, RanOnline
    from privcheck.runtime import registry
    from privcheck.runtime.run_folders import find_file

    files: dict[str, Any] = {"data": data, "rewards": rewards, "features": features, "users": users}
    given, place = parse_sets(sets), Place(env=env, **files)
    amount = {option: how[option] for option in ("replicates", "seed", "workers")}
    foreseen = foresee_run(names, given, place, read=dry_run, **amount)
    if dry_run:
        _tell_planned("run", foreseen, out=out)
        return
    refuse_long(foreseen.parts, yes=yes)
    if delta is not None and len(names) == 1:
        raise click.UsageError("--delta goes with several NAMEs, to compare their guarantees; see `privcheck budget`")
    how |= {"env": env, "parameters": given, "out": out}
    first = registry.algorithm(names[0])
    acts = first.online is not None or first.trained is not None
    result: Ran | RanOnline | Compared
    with telling_what_is_kept(out, resumes=acts and how["noise"] == "simulated"), ProgressBars() as bars:
        if len(names) == 1:
            result = api.run(names[0], progress=bars, **files, **how)
        else:
            if (how.pop("ledger"), how.pop("grant")) != (None, None):
                raise click.UsageError("--ledger goes with one NAME: every run is a separate charge")
            refuse_files([registry.algorithm(name) for name in names], place)
            command = ["privcheck", *sys.argv[1:]]
            result = api.compare(names, progress=bars, delta=delta, command=command, **how)
    if out is not None:
        made = ["run.html"] if isinstance(result, RanOnline | Compared) else ["policy.npz", "policy.json", "run.json"]
        found = ", ".join(find_file(out, name).relative_to(out).as_posix() for name in made)
        click.echo(f"written to {out}: {found}", err=True)
        if how["noise"] == "release" and not isinstance(result, Compared):
            click.echo(f"to hand it on: privcheck publish {shlex.quote(str(out))} --out FOLDER", err=True)
    if isinstance(result, RanOnline | Compared):
        finish(result, describe_online_runs)
    else:
        finish(result, describe_run)


@click.command()
@name_argument
@env_option
@data_option
@rewards_option
@features_option
@users_options
@click.option(
    "--replicates", type=Count(), help="Repetitions of the run; by default 5 on simulated users, otherwise 1."
)
@noise_option
@delta_option
@trials_option
@confidence_option
@seed_option
@workers_option
@set_option
@out_option
@ledger_option
@grant_option
@dry_run_option
@yes_option
@json_option
def check(name: str, *, sets: tuple[str, ...], out: Path | None, dry_run: bool, yes: bool, **how: Any) -> None:
    """Account, verify, audit and run NAME; write one report.

    With --noise release the run draws release noise; audits, which repeat the releases, draw simulated noise.

    \b
    Examples:
      privcheck check dp-apvi --env icu-sepsis --dry-run
      privcheck check dp-apvi --data trips.parquet --noise release --out runs/trips
    """
    from privcheck import api
    from privcheck.commands.checks import exit_code
    from privcheck.commands.dry_run import foresee_check
    from privcheck.commands.estimates import refuse_long
    from privcheck.commands.partial_outputs import telling_what_is_kept
    from privcheck.commands.settings import parse_sets
    from privcheck.commands.sources import Place
    from privcheck.reports import render_text
    from privcheck.runtime.run_folders import find_file

    directory = out if out is not None else Path("runs") / name
    given, command = parse_sets(sets), ["privcheck", *sys.argv[1:]]
    place = Place(**{option: how[option] for option in ("env", "data", "rewards", "features", "users")})
    amount = {option: how[option] for option in ("trials", "replicates", "noise", "seed", "workers")}
    foreseen = foresee_check(name, given, place, read=dry_run, **amount)
    if dry_run:
        _tell_planned("check", foreseen, delta=how["delta"], out=directory)
        return
    refuse_long(foreseen.parts, yes=yes)
    with telling_what_is_kept(directory, resumes=True), ProgressBars() as bars:
        report = api.check(name, out=directory, progress=bars, command=command, parameters=given, **how)
    click.echo(f"report: {find_file(directory, _REPORT_PAGE)}", err=True)
    views = {} if report.audit is None else report.audit.views
    if report.run is None and any(view.verdict == "violation" for view in views.values()):
        frozen = ", and the grant is frozen" if how["ledger"] is not None else ""
        click.echo(f"not run: an audit found a violation; nothing was drawn or charged{frozen}", err=True)
    finish(report, render_text)
    code = exit_code(report)
    if code:
        failed = ["the claim fails"] if report.verify is not None and report.verify.verdict == "fails" else []
        failed += [
            f"the audit {name!r} found a violation" for name, view in views.items() if view.verdict == "violation"
        ]
        click.echo(f"exit code {code}: {', '.join(failed) or 'undecided'}", err=True)
    sys.exit(code)


def _tell_planned(command: str, foreseen: Foreseen, *, out: Path | None, delta: str | None = None) -> None:
    """Print the dry run of a command."""
    from privcheck.cli.printing import describe_planned
    from privcheck.commands.estimates import planned_work
    from privcheck.commands.settings import parse_delta

    writes = None if out is None else str(out)
    work = planned_work(
        command, foreseen.settings, foreseen.parts, delta=lambda one: parse_delta(delta, one), writes=writes
    )
    finish(work, describe_planned)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=complete_algorithms)
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="NAME=V1,V2,…",
    help="A parameter, reading or option with its values, or one of the environment's; repeat for a grid.",
)
@click.option(
    "--slope",
    metavar="NAME,…",
    help="Swept parameters along which power laws are fitted, with intervals: regret or gap, with and without noise, "
    "and the cost of privacy.",
)
@env_option
@data_option
@rewards_option
@features_option
@users_options
@click.option(
    "--seeds",
    "--replicates",
    "replicates",
    type=Count(),
    help="Independent repetitions of every point; 5 on simulated users, else 1.",
)
@seed_option
@workers_option
@click.option("--cluster", metavar="ADDRESS", help="A Dask scheduler whose workers run the points (extra [cluster]).")
@set_option
@common_delta_option
@out_option
@dry_run_option
@yes_option
@json_option
def sweep(
    names: tuple[str, ...], *, over: tuple[str, ...], sets: tuple[str, ...], out: Path | None, cluster: str | None,
    dry_run: bool, yes: bool, **how: Any,
) -> None:  # fmt: skip
    """Run the agents NAME over a grid of parameters.

    With simulated noise; value is compared against ε.

    With --out, the same command resumes a stopped sweep, and reuses points that another sweep finished.

    \b
    Examples:
      privcheck sweep calibrated-ucb-vi ucb-vi --over epsilon=0.5,1,2,4 --env riverswim --set K=20000
      privcheck sweep dp-apvi apvi --over rho=0.01,0.1,1 --over n=1e3,1e4 --env icu-sepsis --out runs/frontier
      privcheck sweep calibrated-ucb-vi --over K=1e4,4e4,16e4 --slope K --env riverswim --seeds 10
    """
    from privcheck.cli.printing import describe_planned, describe_sweep
    from privcheck.commands.estimates import planned_work, refuse_long
    from privcheck.commands.partial_outputs import telling_what_is_kept
    from privcheck.commands.settings import parse_over, parse_sets
    from privcheck.commands.sources import Place
    from privcheck.commands.sweeps import plan_sweep, sweep_where
    from privcheck.reports.comparisons import HTML_NAME, save_sweep

    given = parse_sets(sets)
    place = Place(**{option: how.pop(option) for option in ("env", "data", "rewards", "features", "users")})
    plan = plan_sweep(names, parse_over(over, given), given, place, **how)
    if dry_run:
        writes = None if out is None else str(out)
        work = planned_work("sweep", (), plan.parts, delta=lambda _: plan.delta, writes=writes)
        finish(work, describe_planned)
        return
    refuse_long(plan.parts, yes=yes)
    with telling_what_is_kept(out, resumes=True), ProgressBars() as bars:
        result = sweep_where(plan, cluster=cluster, out=out, progress=bars("sweep"))
    if out is not None:
        save_sweep(result, out)
        click.echo(f"page: {out / HTML_NAME}", err=True)
    finish(result, describe_sweep)
    sys.exit(0)
