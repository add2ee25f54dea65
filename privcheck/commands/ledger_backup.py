"""`privcheck ledger backup` and `restore`: where the store is, not through a service."""

from __future__ import annotations

from pathlib import Path

import click

from privcheck.commands.kinds import Place
from privcheck.commands.ledger_options import store_option, token_option
from privcheck.commands.options import finish, json_option


@click.command()
@click.argument("file", type=Place())
@store_option
@token_option
@json_option
def backup(file: Path, *, store: str, token_file: Path | None, as_json: bool) -> None:
    """Write a backup to FILE, a new one: all that is committed now, whoever writes meanwhile; its chains are checked.

    \b
    Examples:
      privcheck ledger backup monday.backup --store budget.db
    """
    from privcheck.commands.desks import open_book
    from privcheck.commands.ledger_words import describe_backup

    book, actor = open_book(store, token_file)
    finish(book.back_up(actor, file).to_dict(), describe_backup, as_json=as_json)


@click.command()
@click.argument("file", type=Place(exists=True, dir_okay=False))
@store_option
@click.option(
    "--replace", "replace_newer", is_flag=True,
    help="Even where what is there is in use, newer, another ledger or broken; it is kept beside it.",
)  # fmt: skip
@json_option
def restore(file: Path, *, store: str, replace_newer: bool, as_json: bool) -> None:
    """Put the backup FILE in the place of a ledger that was lost or is broken.

    What it has forgotten leaves it in doubt: nothing is written before an officer has compared it with receipts.

    \b
    Examples:
      privcheck ledger restore monday.backup --store budget.db
    """
    from privcheck.commands.desks import put_back
    from privcheck.commands.ledger_words import describe_restored

    finish(put_back(store, file, replace_newer=replace_newer), describe_restored, as_json=as_json)
