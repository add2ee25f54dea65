"""The commands of the team's budget: `privcheck ledger …`; exit code 1 where a charge was refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from privcheck.commands.failures import Front
from privcheck.commands.kinds import Count, Place
from privcheck.commands.options import finish, json_option, set_option

store_option = click.option(
    "--store", required=True, metavar="URL", help="The ledger: a path, or sqlite:///path.", envvar="PRIVCHECK_LEDGER"
)
token_option = click.option(
    "--token-file",
    type=Place(dir_okay=False),
    help="A file with your token; else PRIVCHECK_LEDGER_TOKEN. Without one, whoever may write the file is its officer.",
)
grant_option = click.option("--grant", "grant_name", required=True, metavar="G", help="The grant to charge.")
key_option = click.option("--key", metavar="K", help="The same request with the same key is charged once.")


def event_options(command: Any) -> Any:
    """Returns a command with the options that say what is released."""
    options = (
        click.option("--event", metavar="JSON", help='As {"type": "gaussian", "std": "30", "count": 100}.'),
        click.option("--event-file", type=Place(exists=True, dir_okay=False), help="The same in a file."),
        click.option("--gaussian-rho", metavar="RHO", help="Gaussian noise, by its ρ."),
        click.option("--gaussian-std", metavar="STD", help="Gaussian noise, by its standard deviation."),
        click.option("--laplace-epsilon", metavar="E", help="Laplace noise, by its ε."),
        click.option("--pure-epsilon", metavar="E", help="An ε-DP mechanism of which nothing else is known."),
        click.option("--sensitivity", metavar="D", help="ℓ2 sensitivity, with --gaussian-std; 1 unless told."),
        click.option("--count", metavar="N", help="How often; 1 unless told."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=Front)
def ledger() -> None:
    """Keep a team's budget: what has been spent on which data, by whom, and what is left.

    \b
    Examples:
      privcheck ledger init --store budget.db
      privcheck ledger grant --store budget.db --dataset trips --currency rho --cap 1 --delta 1e-6 --name team-a
      privcheck ledger charge --store budget.db --grant team-a --gaussian-rho 0.01 --key job-17
    """


@ledger.command()
@store_option
@json_option
def init(store: str, *, as_json: bool) -> None:
    """Make a new ledger; the first officer's token is told this once.

    \b
    Examples:
      privcheck ledger init --store budget.db
    """
    from privcheck.commands.ledger_words import describe_new
    from privcheck.commands.ledger_work import make_ledger

    finish(make_ledger(store), describe_new, as_json=as_json)


@ledger.command()
@store_option
@token_option
@click.option("--dataset", required=True, metavar="NAME", help="Whose budget it is a part of.")
@click.option("--currency", metavar="rho|mu2|epsilon", help="What is summed: ρ, μ² or ε.")
@click.option("--cap", metavar="C", help="The most of it that may be spent.")
@click.option("--plan", type=Place(exists=True, dir_okay=False), help="Instead: events fixed in advance, a JSON file.")
@click.option("--lost", metavar="D", help="δ set aside for releases that lose some outright; 0 unless told.")
@click.option("--delta", metavar="D", help="δ at which ε is stated.")
@click.option("--name", required=True, metavar="G", help="The grant's name.")
@json_option
def grant(*, store: str, token_file: Path | None, as_json: bool, **fields: Any) -> None:
    """Give a part of a dataset's budget, with a fixed cap.

    A dataset that has no policy gets the one that its first grant implies, and the output says so; `ledger policy` sets
    one of its own.

    \b
    Examples:
      privcheck ledger grant --store budget.db --dataset trips --currency rho --cap 1 --delta 1e-6 --name team-a
    """
    from privcheck.commands.ledger_words import describe_granted
    from privcheck.commands.ledger_work import give, open_desk

    finish(give(open_desk(store, token_file), **fields), describe_granted, as_json=as_json)


@ledger.command()
@store_option
@token_option
@click.option("--dataset", required=True, metavar="NAME", help="The new dataset.")
@click.option("--epsilon", required=True, metavar="E", help="ε of all that is ever released from it.")
@click.option("--delta", required=True, metavar="D", help="δ of all that is ever released from it.")
@click.option("--relation", default="replace-one", show_default=True, help="Which data are neighbours.")
@click.option("--unit", default="user", show_default=True, help="Whose data a neighbour differs in.")
@click.option(
    "--trust", default="central", show_default=True, help="Where noise is drawn: central, joint, shuffle, local."
)
@click.option(
    "--remainder", default="rho", show_default=True, help="Currency of what is granted after the first charge."
)
@click.option("--until", metavar="TIME", help="When charges end, as 2027-01-31T12:00:00Z; never unless told.")
@json_option
def policy(*, store: str, token_file: Path | None, as_json: bool, **fields: Any) -> None:
    """Open a dataset with the (ε, δ) that all its grants together keep.

    \b
    Examples:
      privcheck ledger policy --store budget.db --dataset trips --epsilon 8 --delta 1e-6
    """
    from privcheck.commands.ledger_words import describe_policy
    from privcheck.commands.ledger_work import open_desk

    desk = open_desk(store, token_file)
    result = {"policy": desk.book.set_policy(desk.actor, **fields).to_dict()}
    finish(result, describe_policy, as_json=as_json)


@ledger.command()
@store_option
@token_option
@grant_option
@event_options
@json_option
def quote(*, store: str, token_file: Path | None, grant_name: str, as_json: bool, **event: Any) -> None:
    """Ask what a charge would cost, and how often it would fit; nothing is written.

    \b
    Examples:
      privcheck ledger quote --store budget.db --grant team-a --gaussian-std 30 --count 100
    """
    from privcheck.commands.ledger_words import describe_quote
    from privcheck.commands.ledger_work import open_desk, read_event

    desk = open_desk(store, token_file)
    result = desk.book.quote(desk.actor, grant=grant_name, event=read_event(**event))
    finish(result.to_dict(), describe_quote, as_json=as_json)
    sys.exit(0 if result.fits else 1)


@ledger.command()
@store_option
@token_option
@grant_option
@click.option("--algorithm", metavar="NAME", help="A registered algorithm whose claim holds, at what it costs.")
@set_option
@event_options
@key_option
@json_option
def charge(
    *, store: str, token_file: Path | None, grant_name: str, key: str | None, as_json: bool, algorithm: str | None,
    sets: tuple[str, ...], **event: Any,
) -> None:  # fmt: skip
    """Charge what is about to be released; draw the noise once this has answered "committed".

    \b
    Examples:
      privcheck ledger charge --store budget.db --grant team-a --gaussian-rho 0.01 --key job-17
    """
    from privcheck.commands.ledger_work import open_desk, read_event

    desk = open_desk(store, token_file)
    if algorithm is None and not sets:
        _end(desk.book.charge(desk.actor, grant=grant_name, event=read_event(**event), key=key), as_json=as_json)
    if algorithm is None or any(value is not None for value in event.values()):
        raise click.UsageError("give --algorithm with its --set, or an event, and not both")
    from privcheck.commands.charging import charge_algorithm
    from privcheck.commands.setting import parse_sets, resolve_setting

    setting = resolve_setting(algorithm, parse_sets(sets))
    _end(charge_algorithm(desk, grant_name, setting, key=key), as_json=as_json)


@ledger.command()
@store_option
@token_option
@grant_option
@event_options
@key_option
@click.option("--seconds", type=Count(), default=3600, show_default=True, help="How long it runs.")
@json_option
def reserve(
    *, store: str, token_file: Path | None, grant_name: str, key: str | None, seconds: int, as_json: bool, **event: Any
) -> None:
    """Set budget aside for a run; it counts as spent until it is released.

    \b
    Examples:
      privcheck ledger reserve --store budget.db --grant team-a --gaussian-std 30 --key job-17
    """
    from privcheck.commands.ledger_work import open_desk, read_event

    desk = open_desk(store, token_file)
    released = read_event(**event)
    decision = desk.book.reserve(desk.actor, grant=grant_name, event=released, key=key, seconds=seconds)
    _end(decision, as_json=as_json)


@ledger.command()
@click.argument("charge_id", metavar="ID")
@store_option
@token_option
@json_option
def commit(charge_id: str, *, store: str, token_file: Path | None, as_json: bool) -> None:
    """Commit the reservation ID; draw the noise once this has answered "committed".

    \b
    Examples:
      privcheck ledger commit c-0123456789abcdef --store budget.db
    """
    from privcheck.commands.ledger_work import open_desk

    desk = open_desk(store, token_file)
    _end(desk.book.commit(desk.actor, charge_id), as_json=as_json)


@ledger.command()
@click.argument("charge_id", metavar="ID")
@store_option
@token_option
@click.option("--evidence", required=True, metavar="TEXT", help="How it is known that nothing was drawn.")
@json_option
def release(charge_id: str, *, store: str, token_file: Path | None, evidence: str, as_json: bool) -> None:
    """Give back the reservation ID, of which nothing was drawn; once it has expired only another officer can.

    \b
    Examples:
      privcheck ledger release c-0123456789abcdef --store budget.db --evidence "the job never started"
    """
    from privcheck.commands.ledger_work import open_desk

    desk = open_desk(store, token_file)
    _end(desk.book.release(desk.actor, charge_id, evidence=evidence), as_json=as_json)


@ledger.command()
@click.argument("dataset", required=False)
@store_option
@token_option
@json_option
def show(dataset: str | None, *, store: str, token_file: Path | None, as_json: bool) -> None:
    """Show every dataset, or one: its policy, its grants and what is left of them.

    \b
    Examples:
      privcheck ledger show --store budget.db
    """
    from privcheck.commands.ledger_words import describe_shown
    from privcheck.commands.ledger_work import open_desk

    desk = open_desk(store, token_file)
    finish(desk.book.show(desk.actor, dataset), describe_shown, as_json=as_json)


@ledger.command()
@store_option
@token_option
@click.option("--receipt", "receipts", multiple=True, metavar="FILE|JSON", help="One that was kept; repeat.")
@json_option
def verify(*, store: str, token_file: Path | None, receipts: tuple[str, ...], as_json: bool) -> None:
    """Check every chain, the sums against the caps and, given a receipt, that nothing was cut off.

    \b
    Examples:
      privcheck ledger verify --store budget.db --receipt kept.json
    """
    from privcheck.commands.ledger_words import describe_checked
    from privcheck.commands.ledger_work import open_desk, read_receipt

    desk = open_desk(store, token_file)
    result = desk.book.verify(desk.actor, receipts=[read_receipt(text) for text in receipts])
    finish(result.to_dict(), describe_checked, as_json=as_json)
    sys.exit(0 if result.ok else 1)


@ledger.command("import")
@click.argument("file", type=Place(exists=True, dir_okay=False))
@store_option
@token_option
@grant_option
@json_option
def import_command(file: Path, *, store: str, token_file: Path | None, grant_name: str, as_json: bool) -> None:
    """Charge what a run has spent that was not charged before it drew, from its record FILE (ledger.jsonl).

    \b
    Examples:
      privcheck ledger import runs/trips/ledger.jsonl --store budget.db --grant team-a
    """
    from privcheck.commands.charging import import_run
    from privcheck.commands.ledger_work import open_desk

    _end(import_run(open_desk(store, token_file), grant_name, file), as_json=as_json)


@ledger.command()
@click.argument("dataset")
@store_option
@token_option
@click.option("--as", "form", type=click.Choice(["statement", "dp-event"]), default="statement", show_default=True)
@json_option
def export(dataset: str, *, store: str, token_file: Path | None, form: str, as_json: bool) -> None:
    """Write all charges to DATASET: a statement, or the events as dp_accounting's DpEvent.

    \b
    Examples:
      privcheck ledger export trips --store budget.db --as statement
    """
    from privcheck.commands.ledger_export import export_dataset
    from privcheck.commands.ledger_words import describe_export
    from privcheck.commands.ledger_work import open_desk

    finish(export_dataset(open_desk(store, token_file), dataset, form), describe_export, as_json=as_json)


@ledger.command()
@click.argument("charge_id", metavar="ID")
@store_option
@token_option
@click.option("--verdict", type=click.Choice(["consistent", "violation"]), required=True, help="The audit's.")
@click.option("--report", required=True, metavar="TEXT", help="Where it can be read, or its digest.")
@json_option
def evidence(charge_id: str, *, store: str, token_file: Path | None, verdict: str, report: str, as_json: bool) -> None:
    """Add what an audit found of the charge ID; a violation freezes its grant, for good.

    \b
    Examples:
      privcheck ledger evidence c-0123456789abcdef --store budget.db --verdict consistent --report audit.json
    """
    from privcheck.commands.ledger_words import describe_evidence
    from privcheck.commands.ledger_work import open_desk

    desk = open_desk(store, token_file)
    found: Any = verdict
    row = desk.book.add_evidence(desk.actor, charge_id, verdict=found, report=report)
    finish({"charge": charge_id, "verdict": verdict, "row": row}, describe_evidence, as_json=as_json)


@ledger.command()
@click.argument("grant_name", metavar="GRANT")
@store_option
@token_option
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@json_option
def freeze(grant_name: str, *, store: str, token_file: Path | None, reason: str, as_json: bool) -> None:
    """Stop all spending on GRANT, for good.

    \b
    Examples:
      privcheck ledger freeze team-a --store budget.db --reason "an audit found a violation"
    """
    from privcheck.commands.ledger_words import describe_frozen
    from privcheck.commands.ledger_work import open_desk

    desk = open_desk(store, token_file)
    row = desk.book.freeze(desk.actor, grant_name, reason=reason)
    finish({"grant": grant_name, "state": "frozen", "row": row}, describe_frozen, as_json=as_json)


@ledger.command()
@store_option
@token_option
@click.option("--name", required=True, metavar="NAME", help="Whose.")
@click.option("--role", metavar="ROLE", help="reader, analyst, ci, officer or admin.")
@click.option("--grant", "grants", multiple=True, metavar="G", help="A grant that it may charge; repeat.")
@click.option("--expires", metavar="TIME", help="When it ends, as 2027-01-31T12:00:00Z.")
@click.option("--revoke", is_flag=True, help="End the token of that name.")
@json_option
def token(
    *, store: str, token_file: Path | None, name: str, role: str | None, grants: tuple[str, ...], expires: str | None,
    revoke: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make a token, which is told this once, or end one.

    \b
    Examples:
      privcheck ledger token --store budget.db --name ana --role analyst --grant team-a
    """
    from privcheck.commands.ledger_words import describe_token
    from privcheck.commands.ledger_work import change_token, open_desk

    if revoke == (role is not None):
        raise click.UsageError("give --role for a new token, or --revoke")
    desk = open_desk(store, token_file)
    result = change_token(desk, name=name, role=role, grants=grants, expires=expires)
    finish(result, describe_token, as_json=as_json)


def _end(decision: Any, *, as_json: bool) -> NoReturn:
    from privcheck.commands.ledger_words import describe_decision

    finish(decision.to_dict(), describe_decision, as_json=as_json)
    sys.exit(1 if decision.state == "refused" else 0)
