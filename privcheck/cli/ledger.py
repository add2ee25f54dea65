"""The commands of the team's budget: `privcheck ledger …`; exit code 1 if a charge was refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from privcheck.cli.group import Front
from privcheck.cli.ledger_administration import (
    OpenDesk,
    backup,
    block,
    block_option,
    condition_option,
    desk_options,
    event_options,
    evidence,
    freeze,
    grant,
    grant_option,
    heads,
    key,
    key_option,
    policy,
    receipt,
    restore,
    store_option,
    token,
    unit_option,
)
from privcheck.cli.options import Count, Place, finish, json_option, set_option, wants_json, write
from privcheck.cli.progress import ProgressBars


@click.group(cls=Front)
def ledger() -> None:
    """Keep a team's budget: spent on which data, by whom, and left.

    \b
    Examples:
      privcheck ledger init --store budget.db
      privcheck ledger policy --store budget.db --dataset trips --epsilon 8 --delta 1e-6 \\
        --unit "rider, 8 trajectories, replace-one, central"
      privcheck ledger grant --store budget.db --dataset trips --currency rho --cap 1 --delta 1e-6 --name team-a
      privcheck ledger charge --store budget.db --grant team-a --gaussian-rho 0.01 --unit dataset --key job-17
    """


for _other in (backup, block, evidence, freeze, grant, heads, key, policy, receipt, restore, token):
    ledger.add_command(_other)


@ledger.command()
@store_option
@json_option
def init(store: str) -> None:
    """Create a ledger and print the first officer's token.

    The token is shown only once.

    \b
    Examples:
      privcheck ledger init --store budget.db
    """
    from privcheck.cli.ledger_text import describe_new
    from privcheck.commands.ledger_client import make_ledger

    finish(make_ledger(store), describe_new)


@ledger.command()
@desk_options
@grant_option
@block_option
@unit_option
@event_options
@json_option
def quote(*, open_desk: OpenDesk, grant_name: str, blocks: tuple[str, ...], unit: str | None, **event: Any) -> None:
    """Show what a charge would cost, and how often it would fit.

    Nothing is written.

    \b
    Examples:
      privcheck ledger quote --store budget.db --grant team-a --gaussian-std 30 --count 100 --unit dataset
    """
    from privcheck.cli.ledger_text import describe_quote, read_event, read_unit

    desk = open_desk()
    result = desk.quote(grant=grant_name, event=read_event(**event), unit=read_unit(unit), blocks=blocks or None)
    finish(result, describe_quote)
    sys.exit(1 if result["state"] == "refused" else 0)


@ledger.command()
@desk_options
@grant_option
@click.option("--algorithm", metavar="NAME", help="A registered algorithm whose claim holds, at its cost.")
@set_option
@block_option
@condition_option
@unit_option
@event_options
@key_option
@json_option
def charge(
    *, open_desk: OpenDesk, grant_name: str, key: str | None, algorithm: str | None,
    sets: tuple[str, ...], blocks: tuple[str, ...], conditions: tuple[str, ...], unit: str | None, **event: Any,
) -> None:  # fmt: skip
    """Charge a release before its noise is drawn.

    Draw the noise after the answer "committed".

    An event needs --unit, the protected unit for which it was priced; an algorithm declares its own.

    \b
    Examples:
      privcheck ledger charge --store budget.db --grant team-a --gaussian-rho 0.01 --unit dataset --key job-17
    """
    from privcheck.cli.ledger_text import read_event, read_unit, state

    desk = open_desk()
    if algorithm is None and not sets:
        asked: Any = {"event": read_event(**event), "blocks": blocks or None, "claim": state(conditions)}
        _end(desk.charge(grant=grant_name, key=key, unit=read_unit(unit), **asked))
    if algorithm is None or conditions or any(value is not None for value in event.values()):
        raise click.UsageError("give --algorithm with its --set, or an event with its --unit, and not both")
    if unit is not None:
        raise click.UsageError("leave --unit out beside --algorithm: an algorithm declares its unit of privacy")
    from privcheck.commands.run_charges import charge_algorithm
    from privcheck.commands.settings import parse_sets

    of = blocks or None
    with ProgressBars() as bars:
        bars(f"verify {algorithm}")
        decided = charge_algorithm(desk, grant_name, algorithm, parse_sets(sets), key=key, blocks=of)
    _end(decided)


@ledger.command()
@desk_options
@grant_option
@block_option
@condition_option
@unit_option
@event_options
@key_option
@click.option("--seconds", type=Count(), default=3600, show_default=True, help="Duration of the reservation.")
@json_option
def reserve(
    *, open_desk: OpenDesk, grant_name: str, blocks: tuple[str, ...], conditions: tuple[str, ...],
    unit: str | None, key: str | None, seconds: int, **event: Any,
) -> None:  # fmt: skip
    """Set budget aside for a run.

    It counts as spent until it is released.

    \b
    Examples:
      privcheck ledger reserve --store budget.db --grant team-a --gaussian-std 30 --unit dataset --key job-17
    """
    from privcheck.cli.ledger_text import read_event, read_unit, state

    desk = open_desk()
    asked: Any = {"event": read_event(**event), "blocks": blocks or None, "claim": state(conditions)}
    _end(desk.reserve(grant=grant_name, key=key, seconds=seconds, unit=read_unit(unit), **asked))


@ledger.command()
@click.argument("charge_id", metavar="ID")
@desk_options
@json_option
def commit(charge_id: str, *, open_desk: OpenDesk) -> None:
    """Commit the reservation ID.

    Draw the noise after the answer "committed".

    \b
    Examples:
      privcheck ledger commit c-0123456789abcdef --store budget.db
    """
    _end(open_desk().commit(charge_id))


@ledger.command()
@click.argument("charge_id", metavar="ID")
@desk_options
@click.option("--evidence", required=True, metavar="TEXT", help="Evidence that no noise was drawn.")
@json_option
def release(charge_id: str, *, open_desk: OpenDesk, evidence: str) -> None:
    """Give back the reservation ID if no noise was drawn for it.

    After it has expired, only another officer can.

    \b
    Examples:
      privcheck ledger release c-0123456789abcdef --store budget.db --evidence "the job never started"
    """
    _end(open_desk().release(charge_id, evidence=evidence))


@ledger.command()
@click.argument("dataset", required=False)
@desk_options
@click.option("--charge", "charge_id", metavar="ID", help="One charge: its purpose and conditions.")
@json_option
def show(dataset: str | None, *, open_desk: OpenDesk, charge_id: str | None) -> None:
    """Show every dataset, one dataset, or one charge.

    Of a dataset: its policy, its grants and their remaining budgets.

    \b
    Examples:
      privcheck ledger show --store budget.db
      privcheck ledger show --store budget.db --charge c-0123456789abcdef
    """
    from privcheck.cli.ledger_text import describe_charge, describe_shown

    if charge_id is not None and dataset is not None:
        raise click.UsageError("give DATASET, or --charge, and not both")
    desk = open_desk()
    if charge_id is not None:
        charge = desk.find_charge(charge_id)
        finish({"charge": charge, "receipt": desk.find_receipt(charge["hash"])}, describe_charge)
        return
    finish(desk.show(dataset), describe_shown)


@ledger.command()
@desk_options
@click.option(
    "--receipt", "receipts", multiple=True, metavar="FILE|JSON", help="A receipt that you kept; may be repeated."
)
@click.option("--receipts", "file", type=Place(exists=True, dir_okay=False), help="A file of receipts, one per line.")
@click.option(
    "--heads",
    "place",
    metavar="PLACE",
    help="The place to which heads were pushed: a file, https://… or git:REPOSITORY.",
)
@click.option(
    "--checkpoint",
    type=Place(dir_okay=False),
    metavar="FILE",
    help="Continue after the rows checked in FILE, the checkpoint of your last check, and rewrite it; start from the "
    "first row if FILE does not exist.",
)
@click.option("--rebuild", is_flag=True, help="First rebuild the list of open reservations from the rows.")
@click.option("--accept", is_flag=True, help="After the comparison, open a restored copy for writing again.")
@click.option(
    "--freeze-lost", is_flag=True, help="With --accept, even if rows are lost: freeze the grants of their datasets."
)
@json_option
def verify(
    *, open_desk: OpenDesk, receipts: tuple[str, ...], file: Path | None, place: str | None,
    checkpoint: Path | None, rebuild: bool, accept: bool, freeze_lost: bool,
) -> None:  # fmt: skip
    """Check every chain, and the sums against the caps.

    Given receipts or heads, check too that no rows were removed.

    \b
    Examples:
      privcheck ledger verify --store budget.db --receipt kept.json
      privcheck ledger verify --store budget.db --heads /mnt/elsewhere/heads.jsonl
      privcheck ledger verify --store budget.db --checkpoint checked.json
      privcheck ledger verify --store budget.db --receipts receipts.jsonl --accept
    """
    from privcheck.cli.ledger_text import describe_accepted, describe_checked, read_heads, read_receipt, read_receipts

    if freeze_lost and not accept:
        raise click.UsageError("--freeze-lost goes with --accept")
    if place is not None and accept:
        raise click.UsageError("give --heads without --accept: a copy is accepted by its receipts")
    if checkpoint is not None and accept:
        raise click.UsageError("--accept reads all rows: give it without --checkpoint")
    desk = open_desk()
    kept = [read_receipt(text) for text in receipts] + ([] if file is None else read_receipts(file))
    if rebuild:
        desk.rebuild()
    if accept:
        taken = desk.accept(kept, freeze=freeze_lost)
        finish(taken, describe_accepted)
        sys.exit(0 if taken["accepted"] else 1)
    with ProgressBars() as bars:
        bars("ledger verify")
        result = desk.verify(kept, read_heads(place), checkpoint=checkpoint)
    finish(result, describe_checked)
    sys.exit(0 if result["ok"] else 1)


@ledger.command("import")
@click.argument("file", type=Place(exists=True, dir_okay=False))
@desk_options
@grant_option
@unit_option
@json_option
def import_command(file: Path, *, open_desk: OpenDesk, grant_name: str, unit: str | None) -> None:
    """Charge a past run from its record FILE (ledger.jsonl).

    For a run that was not charged before it drew its noise.

    A record names the protected unit; an older record without one needs --unit.

    \b
    Examples:
      privcheck ledger import runs/trips/ledger.jsonl --store budget.db --grant team-a
    """
    from privcheck.commands.run_charges import import_run

    _end(import_run(open_desk(), grant_name, file, unit=unit))


@ledger.command()
@click.argument("dataset")
@desk_options
@click.option(
    "--as", "form", type=click.Choice(["statement", "dp-event", "certificate"]), default="statement", show_default=True
)
@json_option
def export(dataset: str, *, open_desk: OpenDesk, form: str) -> None:
    """Write all charges to DATASET.

    As a statement, the events as dp_accounting's DpEvent, or a certificate.

    The certificate is for `python -m privcheck_check FILE`, which trusts neither the store nor this program.

    \b
    Examples:
      privcheck ledger export trips --store budget.db --as statement
      privcheck ledger export trips --store budget.db --as certificate > trips.json
    """
    from privcheck.cli.ledger_text import describe_event, export_event, write_statement

    desk = open_desk()
    if form == "dp-event":
        finish(export_event(desk, dataset), describe_event)
        return
    if form == "certificate":
        from privcheck.commands.certificates import certificate_of_ledger, text_of

        write(text_of(certificate_of_ledger(desk, dataset)), nl=False)
        return
    for piece in write_statement(desk, dataset, as_json=wants_json()):
        write(piece, nl=False)


def _end(decision: dict[str, Any]) -> NoReturn:
    from privcheck.cli.ledger_text import describe_decision

    finish(decision, describe_decision)
    sys.exit(1 if decision["state"] == "refused" else 0)
