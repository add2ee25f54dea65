"""The command line: parses, shows progress, prints and sets the exit code; `privcheck.commands` does the computing.

Exit codes are in `privcheck.commands.failures`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privcheck.cli.ci import ci
from privcheck.cli.group import Front
from privcheck.cli.ledger import ledger
from privcheck.cli.options import (
    VERDICTS,
    Place,
    certificate_option,
    complete_algorithms,
    delta_option,
    finish,
    json_option,
    keep_certificate,
    name_argument,
    set_option,
    wants_json,
    write,
)
from privcheck.cli.prepare import prepare
from privcheck.cli.progress import ProgressBars
from privcheck.cli.reproduce import reproduce
from privcheck.cli.runs import audit, check, run, sweep
from privcheck.cli.serve import serve
from privcheck.commands.failures import MISUSE

if TYPE_CHECKING:
    from privcheck.reports.values import AllVerified, Unverified, Verified


@click.group("privcheck", cls=Front, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="privcheck")
def main() -> None:
    """Check privacy claims of reinforcement-learning algorithms: what is released, what it costs, is it true?"""


@main.command("list")
@json_option
def list_command() -> None:
    """Show the registered algorithms.

    \b
    Examples:
      privcheck list
      privcheck list --json
    """
    from privcheck.cli.listing import describe_algorithms, list_algorithms

    found = list_algorithms()
    write(json.dumps(found, allow_nan=False) if wants_json() else describe_algorithms(found))
    sys.exit(MISUSE if any(one["error"] for one in found["algorithms"]) else 0)


@main.command()
@name_argument
@set_option
@json_option
def show(name: str, *, sets: tuple[str, ...]) -> None:
    """Show the releases of NAME and how their cost is derived.

    \b
    Examples:
      privcheck show dp-apvi
      privcheck show private-ucb-vi-central --set K=1e6
    """
    from privcheck.cli.printing import describe_declaration
    from privcheck.commands import declarations
    from privcheck.commands.settings import parse_sets, resolve_setting

    finish(declarations.show(resolve_setting(name, parse_sets(sets))), describe_declaration)


@main.command()
@name_argument
@set_option
@delta_option
@certificate_option
@json_option
def budget(name: str, *, sets: tuple[str, ...], delta: str | None, certificate: Path | None) -> None:
    """Show the cost of the releases of NAME.

    \b
    Examples:
      privcheck budget dp-apvi --set rho=1/10 --delta 1e-6
      privcheck budget dp-sgd --certificate dp-sgd.json
    """
    from privcheck.cli.printing import describe_budget
    from privcheck.commands.declarations import price_releases
    from privcheck.commands.settings import parse_delta, parse_sets, resolve_setting

    setting = resolve_setting(name, parse_sets(sets))
    at = parse_delta(delta, setting)
    if certificate is not None:
        from privcheck.commands.certificates import certificate_of_price

        keep_certificate(certificate_of_price(setting.priced, Fraction(at)), certificate)
    with ProgressBars() as bars:
        bars(f"budget {name}")
        priced = price_releases(setting, at)
    finish(priced, describe_budget)


@main.command()
@click.argument("name", required=False, shell_complete=complete_algorithms)
@click.option("--all", "everything", is_flag=True, help="Every declared algorithm, at its defaults.")
@click.option("--pages", type=Place(), help="With --all: write one page of findings per paper to this directory.")
@click.option("--out", type=Place(), metavar="FILE", help="Write the verdict as a page (.html) or as JSON (.json).")
@set_option
@certificate_option
@json_option
def verify(
    name: str | None, *, everything: bool, pages: Path | None, out: Path | None, sets: tuple[str, ...],
    certificate: Path | None,
) -> None:  # fmt: skip
    """Judge the claim of NAME, or of all: does it hold?

    \b
    Examples:
      privcheck verify sdp-pe-as-printed --out sdp-pe.html
      privcheck verify dp-apvi --certificate dp-apvi.json
      privcheck verify --all --json
    """
    from privcheck.cli.printing import describe_verdict, describe_verdicts
    from privcheck.commands.certificates import certificate_of
    from privcheck.commands.checks import report_verdict
    from privcheck.commands.declarations import verify_claim
    from privcheck.commands.provenance import Began
    from privcheck.commands.settings import parse_sets, resolve_setting
    from privcheck.reports.files import check_page, keep

    if everything == (name is not None):
        raise click.UsageError("give one algorithm's NAME or --all")
    if name is not None and pages is not None:
        raise click.UsageError("--pages goes with --all: a page is about a whole paper")
    if everything and (sets or certificate is not None or out is not None):
        raise click.UsageError("--set, --certificate and --out go with one NAME; --pages writes pages of all")
    if name is not None:
        began = Began()
        if out is not None:
            check_page(out)
        setting = resolve_setting(name, parse_sets(sets))
        with ProgressBars() as bars:
            bars(f"verify {name}")
            result = verify_claim(setting)
        if certificate is not None:
            keep_certificate(certificate_of(setting.priced), certificate)
        if out is not None:
            made = report_verdict(setting, result, began=began, command=["privcheck", *sys.argv[1:]])
            click.echo(f"page: {keep(made, out)}", err=True)
        finish(result, describe_verdict)
        sys.exit(VERDICTS[result.verdict])
    every = _verify_all(show=not wants_json())
    if pages is not None:
        from privcheck.commands.finding_pages import write_pages

        for path in write_pages(pages, every):
            click.echo(f"page: {path}", err=True)
    if wants_json():
        finish(every, describe_verdicts)
    codes = {VERDICTS[r.verdict] for r in every.results} | ({MISUSE} if every.errors else set())
    sys.exit(next((code for code in (1, MISUSE, 3) if code in codes), 0))


def _verify_all(*, show: bool) -> AllVerified:
    """Judge every registered claim, with a line per claim as soon as it is judged."""
    from privcheck.cli.printing import stream_verdicts
    from privcheck.commands.declarations import join_verdicts, verify_each
    from privcheck.runtime import registry

    names, found = registry.names("algorithms"), []
    with ProgressBars() as bars:
        progress = bars("verify")

        def keep() -> Iterator[Verified | Unverified]:
            for one in verify_each():
                found.append(one)
                progress(len(found), len(names))
                yield one

        if show:
            for line in stream_verdicts(keep(), names):
                bars.print(line)
        else:
            for _ in keep():
                pass
    return join_verdicts(found)


@main.command()
@name_argument
@click.option("--epsilon", required=True, metavar="E", help="Target ε, in nats.")
@delta_option
@set_option
@certificate_option
@json_option
def calibrate(name: str, *, epsilon: str, delta: str | None, sets: tuple[str, ...], certificate: Path | None) -> None:
    """Find the least noise that makes NAME (E, D)-DP.

    It is compared with the published noise.

    \b
    Examples:
      privcheck calibrate dp-apvi --epsilon 1 --delta 1e-5
    """
    from privcheck import api
    from privcheck.cli.printing import describe_calibration
    from privcheck.commands.settings import parse_sets, resolve_setting

    with ProgressBars() as bars:
        bars(f"calibrate {name}")
        result = api.calibrate(name, epsilon=epsilon, delta=delta, parameters=parse_sets(sets))
    if certificate is not None:
        from privcheck.commands.certificates import certificate_of_noise

        priced, target = resolve_setting(name, parse_sets(sets)).priced, result.target
        found = certificate_of_noise(priced, epsilon=Fraction(target.epsilon), delta=Fraction(target.delta))
        keep_certificate(found, certificate)
    finish(result, describe_calibration)


@main.command()
@click.argument("directory", type=Place())
@json_option
def report(directory: Path) -> None:
    """Render the finished work in DIRECTORY again.

    A check, audits, an online run or a sweep, from its JSON file alone.

    \b
    Examples:
      privcheck report runs/dp-apvi
    """
    from privcheck.reports import JSON_NAME, render_again
    from privcheck.reports.values import RenderedReport
    from privcheck.runtime.run_folders import find_file

    if not find_file(directory, JSON_NAME).exists() and (directory / "sweep.json").exists():
        from privcheck.reports.comparisons import render_sweep_again

        page = render_sweep_again(directory)
    elif not find_file(directory, JSON_NAME).exists() and find_file(directory, "run.json").exists():
        from privcheck.reports.files import render_runs_again

        page = render_runs_again(directory)
    else:
        page = render_again(directory)
    finish(RenderedReport(html=str(page)), lambda r: r.html)


@main.command()
@click.argument("file", type=Place())
@click.option("--out", type=Place(), help="A heat map of the policy: a .svg, .png or .pdf file.")
@json_option
def policy(file: Path, *, out: Path | None) -> None:
    """Show the policy in FILE: a table, and a heat map with --out.

    `run` and `check` write such files, policy.npz.

    \b
    Examples:
      privcheck policy runs/dp-apvi/policy.npz --out policy.svg
    """
    from privcheck.cli.printing import describe_shown_policy
    from privcheck.commands.run_outputs import show_policy

    finish(show_policy(file, picture=out, whole=wants_json()), describe_shown_policy)


@main.command()
@click.argument("directory", type=Place())
@click.option("--out", type=Place(file_okay=False), required=True, help="The new folder; it must be empty.")
@delta_option
@click.option("--for", "learned_for", default="", metavar="TEXT", help="The intended users or purpose of the policy.")
@click.option("--not-for", multiple=True, metavar="TEXT", help="A further use to exclude; may be repeated.")
@click.option("--date", "dated", default="", metavar="DAY", help="The day on the card, as 2026-11-24; none by default.")
@click.option("--accept-uncovered", is_flag=True, help="Publish facts not covered by noise too; the card says so.")
@json_option
def publish(directory: Path, *, out: Path, delta: str | None, **said: Any) -> None:
    """Make a folder to share from the run in DIRECTORY.

    Policy, guarantee, record of releases and a one-page card.

    Refused are runs with simulated noise, policies that were not compared on neighbours, and claims that do not hold.

    \b
    Examples:
      privcheck publish runs/mine --out handed-on --date 2026-11-24
    """
    from privcheck import api
    from privcheck.cli.printing import describe_published

    with ProgressBars() as bars:
        bars("publish")
        published = api.publish(directory, out=out, delta=delta, **said)
    finish(published, describe_published)


@main.command()
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["function", "linear", "offline", "online", "shuffle"]),
    default="online",
    show_default=True,
    help="An agent that learns as it acts (online), from a dataset (offline), from one with features (linear), from "
    "bits of users behind a shuffler (shuffle), or a mechanism that is a function of any data (function).",
)
@click.option("--out", type=Place(), help="Directory of the package; NAME by default.")
@json_option
def new(name: str, *, kind: str, out: Path | None) -> None:
    """Write a new package: declaration, code, tests and a CI file.

    \b
    Examples:
      privcheck new my-ucb-vi
      privcheck new my-rounding-agent --kind shuffle
    """
    from privcheck.cli.printing import describe_started
    from privcheck.commands.starter import start_package

    finish(start_package(name, kind, out), describe_started)


@main.command()
@json_option
def doctor() -> None:
    """Look for problems with this installation.

    \b
    Examples:
      privcheck doctor
    """
    from privcheck.cli.printing import describe_diagnosis
    from privcheck.commands.provenance import diagnose

    result = diagnose()
    finish(result, describe_diagnosis)
    sys.exit(0 if result.ok else 2)


for command in (audit, run, check, ci, sweep, reproduce, prepare, ledger, serve):
    main.add_command(command)
