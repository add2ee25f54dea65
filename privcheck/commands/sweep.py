"""The command sweep: several algorithms over a grid of parameters, and the frontier of value against ε."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from privcheck.commands.kinds import Count, complete_algorithms
from privcheck.commands.options import (
    ProgressBars,
    common_delta_option,
    data_option,
    dry_run_option,
    env_option,
    features_option,
    finish,
    json_option,
    out_option,
    rewards_option,
    seed_option,
    set_option,
    users_options,
    workers_option,
    yes_option,
)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…", shell_complete=complete_algorithms)
@click.option(
    "--over",
    multiple=True,
    required=True,
    metavar="NAME=V1,V2,…",
    help="A parameter, reading or option with its values, or one of the environment's; repeat for a grid.",
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
    dry_run: bool, yes: bool, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """Run the agents NAME over a grid of parameters: what is learned at which ε, with simulated noise.

    With --out, the same command goes on with a sweep that was stopped, and takes the points that another one finished.

    \b
    Examples:
      privcheck sweep calibrated-ucb-vi ucb-vi --over epsilon=0.5,1,2,4 --env riverswim --set K=20000
      privcheck sweep dp-apvi apvi --over rho=0.01,0.1,1 --over n=1e3,1e4 --env icu-sepsis --out runs/frontier
    """
    from privcheck.commands.estimates import planned_work, refuse_long
    from privcheck.commands.grids import parse_over
    from privcheck.commands.kept import telling_what_is_kept
    from privcheck.commands.printing import describe_planned
    from privcheck.commands.setting import parse_sets
    from privcheck.commands.sources import Place
    from privcheck.commands.sweep_plans import plan_sweep
    from privcheck.commands.sweep_words import describe_sweep
    from privcheck.commands.sweeping import sweep_where
    from privcheck.reports.swept import HTML_NAME, save_sweep

    given = parse_sets(sets)
    place = Place(**{option: how.pop(option) for option in ("env", "data", "rewards", "features", "users")})
    plan = plan_sweep(names, parse_over(over, given), given, place, **how)
    if dry_run:
        writes = None if out is None else str(out)
        work = planned_work("sweep", (), plan.parts, delta=lambda _: plan.delta, writes=writes)
        finish(work, describe_planned, as_json=as_json)
        return
    refuse_long(plan.parts, yes=yes)
    with telling_what_is_kept(out, resumes=True), ProgressBars() as bars:
        result = sweep_where(plan, cluster=cluster, out=out, progress=bars("sweep"))
    if out is not None:
        save_sweep(result, out)
        click.echo(f"page: {out / HTML_NAME}", err=True)
    finish(result, describe_sweep, as_json=as_json)
    sys.exit(0)
