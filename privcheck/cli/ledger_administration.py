"""The ledger's commands for officers and witnesses: policies, grants, tokens, backups, heads, receipts."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from privcheck.cli.options import Place, finish, json_option, wants_json

if TYPE_CHECKING:
    from privcheck.commands.ledger_client import Desk

store_option = click.option(
    "--store",
    required=True,
    metavar="URL",
    help="The ledger: a path, sqlite:///path, postgresql://host/name, or a service, https://host.",
    envvar="PRIVCHECK_LEDGER",
)
token_option = click.option(
    "--token-file",
    type=Place(dir_okay=False),
    help="A file with your token, else PRIVCHECK_LEDGER_TOKEN; without one, anyone who may write a SQLite file is "
    "officer.",
)
OpenDesk = Callable[[], "Desk"]


def desk_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a ledger and its user; the command gets what opens it, `open_desk`."""

    @functools.wraps(command)
    def give_ledger(*args: Any, store: str, token_file: Path | None, **how: Any) -> None:
        from privcheck.commands.ledger_client import open_desk

        command(*args, open_desk=functools.partial(open_desk, store, token_file), **how)

    return store_option(token_option(give_ledger))


grant_option = click.option("--grant", "grant_name", required=True, metavar="G", help="The grant to charge.")
block_option = click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="B",
    help="For a divided dataset: a block of the grant; by default all.",
)
condition_option = click.option(
    "--condition",
    "conditions",
    multiple=True,
    type=click.Choice(["outputs", "billboard"]),
    help="For joint DP: a condition of the billboard lemma that was found to hold; all are needed.",
)
unit_option = click.option(
    "--unit",
    metavar="UNIT",
    help="The unit of privacy of an event's price, as 'patient, 8 trajectories, replace-one, central'; or 'dataset': "
    "you state that it was priced for the dataset's unit.",
)
key_option = click.option("--key", metavar="K", help="A repeated request with the same key is charged once.")


def event_options(command: Any) -> Any:
    """Add the options that describe the released event to a command."""
    options = (
        click.option("--event", metavar="JSON", help='As {"type": "gaussian", "std": "30", "count": 100}.'),
        click.option("--event-file", type=Place(exists=True, dir_okay=False), help="The same in a file."),
        click.option("--gaussian-rho", metavar="RHO", help="Gaussian noise, by its ρ."),
        click.option("--gaussian-std", metavar="STD", help="Gaussian noise, by its standard deviation."),
        click.option("--laplace-epsilon", metavar="E", help="Laplace noise, by its ε."),
        click.option("--pure-epsilon", metavar="E", help="An ε-DP mechanism with no other known property."),
        click.option("--sensitivity", metavar="D", help="ℓ2 sensitivity, with --gaussian-std; by default 1."),
        click.option("--count", metavar="N", help="How often; by default 1."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@desk_options
@click.option("--dataset", required=True, metavar="NAME", help="The dataset whose budget is granted.")
@click.option("--currency", metavar="rho|mu2|epsilon", help="The summed quantity: ρ, μ² or ε.")
@click.option("--cap", metavar="C", help="The most that may be charged.")
@click.option("--plan", type=Place(exists=True, dir_okay=False), help="Instead: events fixed in advance, a JSON file.")
@click.option("--lost", metavar="D", help="δ set aside for releases with a δ of their own; by default 0.")
@click.option("--delta", metavar="D", help="δ at which the grant's ε is stated.")
@unit_option
@click.option("--name", required=True, metavar="G", help="The grant's name.")
@click.option(
    "--block", "blocks", multiple=True, metavar="B", help="For a divided dataset: a covered block; may be repeated."
)
@json_option
def grant(*, open_desk: OpenDesk, **fields: Any) -> None:
    """Grant part of a dataset's budget, with a fixed cap.

    Open the dataset with `ledger policy` first.

    The events of a plan need --unit, the protected unit for which they were priced.

    \b
    Examples:
      privcheck ledger grant --store budget.db --dataset trips --currency rho --cap 1 --delta 1e-6 --name team-a
      privcheck ledger grant --store budget.db --dataset trips --plan plan.json --unit dataset --delta 1e-6 --name P
    """
    from privcheck.cli.ledger_text import describe_granted, give

    finish(give(open_desk(), **fields), describe_granted)


@click.command()
@click.argument("dataset")
@desk_options
@click.option("--name", "names", multiple=True, required=True, metavar="B", help="A new block; may be repeated.")
@click.option("--disjoint-users", metavar="TEXT", help="How it is known that no user is in two blocks.")
@json_option
def block(dataset: str, *, open_desk: OpenDesk, names: tuple[str, ...], disjoint_users: str | None) -> None:
    """Divide DATASET into blocks without a common user, or add some.

    Each block has the whole policy as its cap.

    \b
    Examples:
      privcheck ledger block trips --store budget.db --name 2027-01 --name 2027-02 \\
        --disjoint-users "riders are assigned by the month in which they signed up"
    """
    from privcheck.cli.ledger_text import describe_blocks

    made = open_desk().add_blocks(dataset, names, disjoint_users=disjoint_users)
    finish({"dataset": dataset, "blocks": made}, describe_blocks)


@click.command()
@desk_options
@click.option("--dataset", required=True, metavar="NAME", help="The new dataset.")
@click.option("--epsilon", required=True, metavar="E", help="ε of all its releases together, for ever.")
@click.option("--delta", required=True, metavar="D", help="δ of all its releases together, for ever.")
@click.option(
    "--unit",
    required=True,
    metavar="UNIT",
    help="Who is protected: noun, at most how many trajectories (and steps), neighbours, model of trust.",
)
@click.option(
    "--allow-asserted-unit",
    "asserted_units",
    is_flag=True,
    help="Charge also runs whose unit was only asserted (one episode is one user), not shown by a column.",
)
@click.option("--remainder", default="rho", show_default=True, help="Currency of grants made after the first charge.")
@click.option("--until", metavar="TIME", help="When charging ends, such as 2027-01-31T12:00:00Z; by default never.")
@json_option
def policy(*, open_desk: OpenDesk, **fields: Any) -> None:
    """Open a dataset with its (ε, δ) and its protected unit.

    All its grants together stay within that (ε, δ).

    Neighbours are replace-one, replace-one-same-start, add-remove or zero-out; the model of trust, where noise is
    drawn, is central, joint, shuffle or local.

    \b
    Examples:
      privcheck ledger policy --store budget.db --dataset trips --epsilon 8 --delta 1e-6 \\
        --unit "rider, 8 trajectories, replace-one, central"
    """
    from privcheck.cli.ledger_text import describe_policy

    finish({"policy": open_desk().set_policy(**fields)}, describe_policy)


@click.command()
@click.argument("charge_id", metavar="ID")
@desk_options
@click.option("--verdict", type=click.Choice(["consistent", "violation"]), required=True, help="The audit's.")
@click.option("--report", required=True, metavar="TEXT", help="Location of the report, or its digest.")
@json_option
def evidence(charge_id: str, *, open_desk: OpenDesk, verdict: str, report: str) -> None:
    """Record the result of an audit of the charge ID.

    A violation freezes its grant permanently.

    \b
    Examples:
      privcheck ledger evidence c-0123456789abcdef --store budget.db --verdict consistent --report audit.json
    """
    from privcheck.cli.ledger_text import describe_evidence

    found: Any = verdict
    row = open_desk().add_evidence(charge_id, verdict=found, report=report)
    finish({"charge": charge_id, "verdict": verdict, "row": row}, describe_evidence)


@click.command()
@click.argument("grant_name", metavar="GRANT")
@desk_options
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@json_option
def freeze(grant_name: str, *, open_desk: OpenDesk, reason: str) -> None:
    """Stop all spending on GRANT permanently.

    \b
    Examples:
      privcheck ledger freeze team-a --store budget.db --reason "an audit found a violation"
    """
    from privcheck.cli.ledger_text import describe_frozen

    row = open_desk().freeze(grant_name, reason=reason)
    finish({"grant": grant_name, "state": "frozen", "row": row}, describe_frozen)


@click.command()
@desk_options
@click.option("--name", metavar="NAME", help="Whose.")
@click.option("--role", metavar="ROLE", help="reader, analyst, ci, officer or admin.")
@click.option("--grant", "grants", multiple=True, metavar="G", help="A grant that it may charge; may be repeated.")
@click.option("--expires", metavar="TIME", help="When it expires, such as 2027-01-31T12:00:00Z.")
@click.option("--revoke", is_flag=True, help="Revoke the token of that name.")
@click.option("--list", "listed", is_flag=True, help="List the tokens' owners; no token is shown again.")
@json_option
def token(
    *, open_desk: OpenDesk, name: str | None, role: str | None, grants: tuple[str, ...],
    expires: str | None, revoke: bool, listed: bool,
) -> None:  # fmt: skip
    """Make a token, revoke one, or list them.

    A new token is shown only this once.

    \b
    Examples:
      privcheck ledger token --store budget.db --name ana --role analyst --grant team-a
      privcheck ledger token --store budget.db --list
    """
    from privcheck.cli.ledger_text import change_token, describe_token, describe_tokens

    if [listed, revoke, role is not None].count(True) != 1 or listed == (name is not None):
        raise click.UsageError("give --name with --role for a new token, or with --revoke; or --list")
    desk = open_desk()
    if name is None:
        finish({"tokens": desk.tokens()}, describe_tokens)
        return
    result = change_token(desk, name=name, role=role, grants=grants, expires=expires)
    finish(result, describe_token)


@click.command()
@click.argument("file", type=Place())
@store_option
@token_option
@json_option
def backup(file: Path, *, store: str, token_file: Path | None) -> None:
    """Write a checked backup to the new FILE.

    It holds all rows committed now, even while others write.

    \b
    Examples:
      privcheck ledger backup monday.backup --store budget.db
    """
    from privcheck.cli.ledger_text import describe_backup
    from privcheck.commands.ledger_client import open_book

    book, actor = open_book(store, token_file)
    finish(book.back_up(actor, file).to_dict(), describe_backup)


@click.command()
@click.argument("file", type=Place(exists=True, dir_okay=False))
@store_option
@click.option(
    "--replace", "replace_newer", is_flag=True,
    help="Even if the present file is in use, newer, another ledger or broken; it is kept beside the new one.",
)  # fmt: skip
@json_option
def restore(file: Path, *, store: str, replace_newer: bool) -> None:
    """Replace a lost or broken ledger by the backup FILE.

    Rows after the backup may be missing: the ledger is read-only until an officer has compared it with receipts.

    \b
    Examples:
      privcheck ledger restore monday.backup --store budget.db
    """
    from privcheck.cli.ledger_text import describe_restored
    from privcheck.commands.ledger_client import put_back

    finish(put_back(store, file, replace_newer=replace_newer), describe_restored)


_EXITS: Final = {"consistent": 0, "contradicted": 1, "undecided": 3}
public_key_option = click.option(
    "--key",
    "key",
    required=True,
    type=Place(exists=True, dir_okay=False),
    help="The ledger's public key, as `ledger key` prints it; get it from another source than the file.",
)


@click.command()
@desk_options
@json_option
def key(*, open_desk: OpenDesk) -> None:
    """Print the public key of the ledger's receipts and heads (PEM).

    \b
    Examples:
      privcheck ledger key --store budget.db > ledger.pem
    """
    finish(open_desk().public_key(), lambda told: str(told["key"]).rstrip())


@click.group()
def receipt() -> None:
    """Check the signatures of a ledger, without the ledger.

    \b
    Examples:
      privcheck ledger receipt verify receipt.json --key ledger.pem
    """


@receipt.command("verify")
@click.argument("file", type=Place(exists=True, dir_okay=False))
@public_key_option
@json_option
def verify_receipt(file: Path, *, key: Path) -> None:
    """Check the signatures of the receipts and heads in FILE.

    No ledger is needed, only its public key.

    FILE has one JSON, as a charge printed it, or one per line. Exit code 1: a signature does not match the key; 3: one
    predates Ed25519, so that only the ledger can check it.

    \b
    Examples:
      privcheck ledger receipt verify receipt.json --key ledger.pem
    """
    from privcheck.ledger.heads import Evidence, check_signatures

    _end(check_signatures(Evidence.parse(file.read_text(encoding="utf-8")), _read_key(key)))


@click.group()
def heads() -> None:
    """Show, keep and compare signed heads of the ledger's chains.

    \b
    Examples:
      privcheck ledger heads push /mnt/elsewhere/heads.jsonl --store budget.db
      privcheck ledger heads compare /mnt/elsewhere/heads.jsonl --key ledger.pem
    """


@heads.command()
@desk_options
@json_option
def show(*, open_desk: OpenDesk) -> None:
    """Print the current signed heads of all chains, one JSON per line.

    \b
    Examples:
      privcheck ledger heads show --store budget.db > heads.jsonl
    """
    from privcheck.ledger.heads import Evidence

    found, _ = open_desk().prove(Evidence())
    told = {"heads": [head.to_dict() for head in found.heads]}
    finish(told, lambda _: "\n".join(found.lines()))


@heads.command()
@click.argument("place")
@store_option
@token_option
@json_option
def push(place: str, *, store: str, token_file: Path | None) -> None:
    """Keep the signed heads in a second PLACE.

    A file, https://host/path or git:REPOSITORY.

    A push first compares the ledger with the last heads in that place, and adds the proof that the new ones extend
    them. Exit code 1: they do not, and nothing was pushed.

    \b
    Examples:
      privcheck ledger heads push /mnt/elsewhere/heads.jsonl --store budget.db
      privcheck ledger heads push git:/srv/protocol --store budget.db
    """
    from privcheck.commands.ledger_client import is_service, open_desk
    from privcheck.ledger.witnesses import open_witness, push_heads

    if is_service(store):
        raise click.UsageError("a service pushes its heads itself: privcheck serve --push-heads PLACE")
    witness = open_witness(place)
    pushed = push_heads(open_desk(store, token_file).prove, witness)
    finish(pushed.to_dict(), _describe_pushed)
    sys.exit(1 if pushed.problems else 0)


@heads.command()
@click.argument("places", nargs=-1, required=True, metavar="FILE...")
@public_key_option
@click.option("--proofs", metavar="FILE", help="Proofs between the heads, from `ledger heads prove`; or one more FILE.")
@json_option
def compare(places: tuple[str, ...], *, key: Path, proofs: str | None) -> None:
    """Compare stored heads and receipts, in one FILE or several.

    No ledger is needed.

    FILE is any place to which heads are pushed. Exit code 1: two contradict each other (the ledger was rolled back, or
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
    _end(compare(Evidence.join(parts), _read_key(key)))


@heads.command()
@click.option("--from", "places", multiple=True, required=True, metavar="FILE", help="Heads and receipts; repeatable.")
@desk_options
@json_option
def prove(*, places: tuple[str, ...], open_desk: OpenDesk) -> None:
    """Prove that the ledger still has the rows of earlier heads.

    Print the current heads, and the proofs for earlier heads and receipts.

    Pass the output to `ledger heads compare` with the earlier heads. Exit code 1: a proof is missing, because the
    ledger is shorter or has other rows.

    \b
    Examples:
      privcheck ledger heads prove --from heads.jsonl --store budget.db > proofs.jsonl
    """
    from privcheck.ledger.heads import Evidence
    from privcheck.ledger.witnesses import open_witness

    kept = Evidence.join(Evidence.parse(open_witness(place).read(), name=place) for place in places)
    found, problems = open_desk().prove(kept)
    told: dict[str, Any] = {"proofs": found.to_dicts()}
    finish({**told, "problems": problems}, lambda _: "\n".join(found.lines()))
    if not wants_json():
        for problem in problems:
            click.echo(f"problem: {problem}", err=True)
    sys.exit(1 if problems else 0)


def _read_key(file: Path) -> Any:
    from privcheck.ledger.signing import PublicKey

    return PublicKey.parse(file.read_text(encoding="utf-8"))


def _end(found: Any) -> None:
    finish(found.to_dict(), _describe_compared)
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
