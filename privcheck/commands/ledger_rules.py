"""The commands of those who divide the budget: policies, grants, tokens, and what stops spending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from privcheck.commands.kinds import Place
from privcheck.commands.ledger_options import store_option, token_option, unit_option
from privcheck.commands.options import finish, json_option


@click.command()
@store_option
@token_option
@click.option("--dataset", required=True, metavar="NAME", help="The dataset whose budget it is part of.")
@click.option("--currency", metavar="rho|mu2|epsilon", help="What is summed: ρ, μ² or ε.")
@click.option("--cap", metavar="C", help="The most that may be spent.")
@click.option("--plan", type=Place(exists=True, dir_okay=False), help="Instead: events fixed in advance, a JSON file.")
@click.option("--lost", metavar="D", help="δ set aside for releases that lose some outright; by default 0.")
@click.option("--delta", metavar="D", help="δ at which ε is stated.")
@unit_option
@click.option("--name", required=True, metavar="G", help="The grant's name.")
@click.option(
    "--block", "blocks", multiple=True, metavar="B", help="Of a divided dataset: a block it covers; may be repeated."
)
@json_option
def grant(*, store: str, token_file: Path | None, as_json: bool, **fields: Any) -> None:
    """Grant part of a dataset's budget, with a fixed cap; `ledger policy` opens the dataset before.

    The events of a plan need --unit, for whom they were priced.

    \b
    Examples:
      privcheck ledger grant --store budget.db --dataset trips --currency rho --cap 1 --delta 1e-6 --name team-a
      privcheck ledger grant --store budget.db --dataset trips --plan plan.json --unit dataset --delta 1e-6 --name P
    """
    from privcheck.commands.desks import open_desk
    from privcheck.commands.ledger_words import describe_granted
    from privcheck.commands.ledger_work import give

    finish(give(open_desk(store, token_file), **fields), describe_granted, as_json=as_json)


@click.command()
@click.argument("dataset")
@store_option
@token_option
@click.option("--name", "names", multiple=True, required=True, metavar="B", help="A new block; may be repeated.")
@click.option("--disjoint-users", metavar="TEXT", help="How it is known that no user is in two blocks.")
@json_option
def block(
    dataset: str, *, store: str, token_file: Path | None, names: tuple[str, ...], disjoint_users: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Divide DATASET into blocks without a common user, each with the whole policy as its cap, or add some.

    \b
    Examples:
      privcheck ledger block trips --store budget.db --name 2027-01 --name 2027-02 \\
        --disjoint-users "riders are assigned by the month in which they signed up"
    """
    from privcheck.commands.desks import open_desk
    from privcheck.commands.ledger_words import describe_blocks

    desk = open_desk(store, token_file)
    made = desk.add_blocks(dataset, names, disjoint_users=disjoint_users)
    finish({"dataset": dataset, "blocks": made}, describe_blocks, as_json=as_json)


@click.command()
@store_option
@token_option
@click.option("--dataset", required=True, metavar="NAME", help="The new dataset.")
@click.option("--epsilon", required=True, metavar="E", help="ε of all that is ever released from it.")
@click.option("--delta", required=True, metavar="D", help="δ of all that is ever released from it.")
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
    help="Charge also runs whose unit somebody asserted (one episode is one user) and no column showed.",
)
@click.option(
    "--remainder", default="rho", show_default=True, help="Currency of what is granted after the first charge."
)
@click.option("--until", metavar="TIME", help="When charging ends, such as 2027-01-31T12:00:00Z; by default never.")
@json_option
def policy(*, store: str, token_file: Path | None, as_json: bool, **fields: Any) -> None:
    """Open a dataset with the (ε, δ) that all its grants together keep, and whom that protects.

    Neighbours are replace-one, replace-one-same-start, add-remove or zero-out; the model of trust, where noise is
    drawn, is central, joint, shuffle or local.

    \b
    Examples:
      privcheck ledger policy --store budget.db --dataset trips --epsilon 8 --delta 1e-6 \\
        --unit "rider, 8 trajectories, replace-one, central"
    """
    from privcheck.commands.desks import open_desk
    from privcheck.commands.ledger_words import describe_policy

    desk = open_desk(store, token_file)
    result = {"policy": desk.set_policy(**fields)}
    finish(result, describe_policy, as_json=as_json)


@click.command()
@click.argument("charge_id", metavar="ID")
@store_option
@token_option
@click.option("--verdict", type=click.Choice(["consistent", "violation"]), required=True, help="The audit's.")
@click.option("--report", required=True, metavar="TEXT", help="Where it can be read, or its digest.")
@json_option
def evidence(charge_id: str, *, store: str, token_file: Path | None, verdict: str, report: str, as_json: bool) -> None:
    """Record what an audit found about the charge ID; a violation freezes its grant permanently.

    \b
    Examples:
      privcheck ledger evidence c-0123456789abcdef --store budget.db --verdict consistent --report audit.json
    """
    from privcheck.commands.desks import open_desk
    from privcheck.commands.ledger_words import describe_evidence

    desk = open_desk(store, token_file)
    found: Any = verdict
    row = desk.add_evidence(charge_id, verdict=found, report=report)
    finish({"charge": charge_id, "verdict": verdict, "row": row}, describe_evidence, as_json=as_json)


@click.command()
@click.argument("grant_name", metavar="GRANT")
@store_option
@token_option
@click.option("--reason", required=True, metavar="TEXT", help="Why.")
@json_option
def freeze(grant_name: str, *, store: str, token_file: Path | None, reason: str, as_json: bool) -> None:
    """Stop all spending on GRANT permanently.

    \b
    Examples:
      privcheck ledger freeze team-a --store budget.db --reason "an audit found a violation"
    """
    from privcheck.commands.desks import open_desk
    from privcheck.commands.ledger_words import describe_frozen

    desk = open_desk(store, token_file)
    row = desk.freeze(grant_name, reason=reason)
    finish({"grant": grant_name, "state": "frozen", "row": row}, describe_frozen, as_json=as_json)


@click.command()
@store_option
@token_option
@click.option("--name", metavar="NAME", help="Whose.")
@click.option("--role", metavar="ROLE", help="reader, analyst, ci, officer or admin.")
@click.option("--grant", "grants", multiple=True, metavar="G", help="A grant that it may charge; may be repeated.")
@click.option("--expires", metavar="TIME", help="When it expires, such as 2027-01-31T12:00:00Z.")
@click.option("--revoke", is_flag=True, help="Revoke the token of that name.")
@click.option("--list", "listed", is_flag=True, help="Show whose tokens there are; none is told again.")
@json_option
def token(
    *, store: str, token_file: Path | None, name: str | None, role: str | None, grants: tuple[str, ...],
    expires: str | None, revoke: bool, listed: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make a token, which is shown only this once, end one, or list them.

    \b
    Examples:
      privcheck ledger token --store budget.db --name ana --role analyst --grant team-a
      privcheck ledger token --store budget.db --list
    """
    from privcheck.commands.desks import open_desk
    from privcheck.commands.ledger_words import describe_token, describe_tokens
    from privcheck.commands.ledger_work import change_token

    if [listed, revoke, role is not None].count(True) != 1 or listed == (name is not None):
        raise click.UsageError("give --name with --role for a new token, or with --revoke; or --list")
    desk = open_desk(store, token_file)
    if name is None:
        finish({"tokens": desk.tokens()}, describe_tokens, as_json=as_json)
        return
    result = change_token(desk, name=name, role=role, grants=grants, expires=expires)
    finish(result, describe_token, as_json=as_json)
