"""The commands with which others check a ledger: its public key, receipts, heads; most of them need no ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from privcheck.commands.kinds import Place
from privcheck.commands.ledger_options import store_option, token_option
from privcheck.commands.options import finish, json_option

_EXITS: Final = {"consistent": 0, "contradicted": 1, "undecided": 3}
key_option = click.option(
    "--key",
    "key",
    required=True,
    type=Place(exists=True, dir_okay=False),
    help="The ledger's public key, as `ledger key` prints it; have it from somebody else than the file.",
)


@click.command()
@store_option
@token_option
@json_option
def key(*, store: str, token_file: Path | None, as_json: bool) -> None:
    """Print the public key (PEM) that checks the ledger's receipts and heads.

    \b
    Examples:
      privcheck ledger key --store budget.db > ledger.pem
    """
    from privcheck.commands.desks import open_desk

    finish(open_desk(store, token_file).public_key(), lambda told: str(told["key"]).rstrip(), as_json=as_json)


@click.group()
def receipt() -> None:
    """Check what a ledger signed, without the ledger.

    \b
    Examples:
      privcheck ledger receipt verify receipt.json --key ledger.pem
    """


@receipt.command("verify")
@click.argument("file", type=Place(exists=True, dir_okay=False))
@key_option
@json_option
def verify_receipt(file: Path, *, key: Path, as_json: bool) -> None:
    """Check that the receipts and heads in FILE were signed with the ledger's key; no ledger is needed.

    FILE has one JSON, as a charge printed it, or one a line. Exit code 1: one was not signed with it; 3: one is from
    before Ed25519, which the ledger alone can check.

    \b
    Examples:
      privcheck ledger receipt verify receipt.json --key ledger.pem
    """
    from privcheck.ledger.heads import Evidence, check_signatures

    _end(check_signatures(Evidence.parse(file.read_text(encoding="utf-8")), _read_key(key)), as_json=as_json)


@click.group()
def heads() -> None:
    """Show, keep and compare signed heads: what the ledger said it had, at some time.

    \b
    Examples:
      privcheck ledger heads push /mnt/elsewhere/heads.jsonl --store budget.db
      privcheck ledger heads compare /mnt/elsewhere/heads.jsonl --key ledger.pem
    """


@heads.command()
@store_option
@token_option
@json_option
def show(*, store: str, token_file: Path | None, as_json: bool) -> None:
    """Print the signed heads of all chains as they are now, one JSON a line.

    \b
    Examples:
      privcheck ledger heads show --store budget.db > heads.jsonl
    """
    from privcheck.commands.desks import open_desk
    from privcheck.ledger.heads import Evidence

    found, _ = open_desk(store, token_file).prove(Evidence())
    told = {"heads": [head.to_dict() for head in found.heads]}
    finish(told, lambda _: "\n".join(found.lines()), as_json=as_json)


@heads.command()
@click.argument("place")
@store_option
@token_option
@json_option
def push(place: str, *, store: str, token_file: Path | None, as_json: bool) -> None:
    """Keep the signed heads in a second PLACE: a file, https://host/path or git:REPOSITORY.

    A push first compares the ledger with the last heads in that place, and adds the proof that the new ones follow
    them. Exit code 1: they do not, and nothing was pushed.

    \b
    Examples:
      privcheck ledger heads push /mnt/elsewhere/heads.jsonl --store budget.db
      privcheck ledger heads push git:/srv/protocol --store budget.db
    """
    from privcheck.commands.desks import is_service, open_desk
    from privcheck.ledger.witnesses import open_witness, push_heads

    if is_service(store):
        raise click.UsageError("a service pushes its heads itself: privcheck serve --push-heads PLACE")
    witness = open_witness(place)
    pushed = push_heads(open_desk(store, token_file).prove, witness)
    finish(pushed.to_dict(), _describe_pushed, as_json=as_json)
    sys.exit(1 if pushed.problems else 0)


@heads.command()
@click.argument("places", nargs=-1, required=True, metavar="FILE...")
@key_option
@click.option("--proofs", metavar="FILE", help="Proofs between the heads, from `ledger heads prove`; or one more FILE.")
@json_option
def compare(places: tuple[str, ...], *, key: Path, proofs: str | None, as_json: bool) -> None:
    """Compare heads and receipts that were kept, in one FILE or several; no ledger is needed.

    FILE is any place that heads are pushed to. Exit code 1: two contradict each other (the ledger was rolled back, or
    showed different histories), or one was not signed with the key; 3: a proof is missing, which only the ledger can
    give.

    \b
    Examples:
      privcheck ledger heads compare heads.jsonl --key ledger.pem
      privcheck ledger heads compare mine.jsonl yours.jsonl --key ledger.pem --proofs proofs.jsonl
    """
    from privcheck.ledger.heads import Evidence, compare
    from privcheck.ledger.witnesses import open_witness

    given = [*places, *([] if proofs is None else [proofs])]
    parts = [Evidence.parse(open_witness(place).read(), name=place) for place in given]
    _end(compare(Evidence.join(parts), _read_key(key)), as_json=as_json)


@heads.command()
@click.option("--from", "places", multiple=True, required=True, metavar="FILE", help="Heads and receipts; repeatable.")
@store_option
@token_option
@json_option
def prove(*, places: tuple[str, ...], store: str, token_file: Path | None, as_json: bool) -> None:
    """Prove that the ledger still has the rows of earlier heads and receipts: prints heads of now and the proofs.

    What it prints goes into `ledger heads compare` with the earlier ones. Exit code 1: of one there is no proof,
    because the ledger is shorter than it, or has other rows.

    \b
    Examples:
      privcheck ledger heads prove --from heads.jsonl --store budget.db > proofs.jsonl
    """
    from privcheck.commands.desks import open_desk
    from privcheck.ledger.heads import Evidence
    from privcheck.ledger.witnesses import open_witness

    kept = Evidence.join(Evidence.parse(open_witness(place).read(), name=place) for place in places)
    found, problems = open_desk(store, token_file).prove(kept)
    told: dict[str, Any] = {"proofs": found.to_dicts()}
    finish({**told, "problems": problems}, lambda _: "\n".join(found.lines()), as_json=as_json)
    if not as_json:
        for problem in problems:
            click.echo(f"problem: {problem}", err=True)
    sys.exit(1 if problems else 0)


def _read_key(file: Path) -> Any:
    from privcheck.ledger.signing import PublicKey

    return PublicKey.parse(file.read_text(encoding="utf-8"))


def _end(found: Any, *, as_json: bool) -> None:
    finish(found.to_dict(), _describe_compared, as_json=as_json)
    sys.exit(_EXITS[found.verdict])


def _describe_compared(result: dict[str, Any]) -> str:
    what = f"{result['heads']} heads and {result['receipts']} receipts"
    told = [f"problem: {one}" for one in result["problems"]]
    told += [f"cannot tell: {one}" for one in result["missing"]]
    sound = {"consistent": f"OK: {what}, nothing contradicts", "contradicted": f"contradicted: {what}"}
    return "\n".join([*told, sound.get(result["verdict"], f"undecided: {what}")])


def _describe_pushed(result: dict[str, Any]) -> str:
    if result["problems"]:
        return "\n".join(
            [*(f"problem: {one}" for one in result["problems"]), f"nothing was pushed to {result['place']}"]
        )
    counts = f"{len(result['heads'])} heads pushed, {result['unchanged']} chains unchanged"
    return f"{result['place']}: {counts}"
