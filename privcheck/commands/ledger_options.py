"""The options that commands of the ledger share."""

from __future__ import annotations

from typing import Any

import click

from privcheck.commands.kinds import Place

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
    help="A file with your token, else PRIVCHECK_LEDGER_TOKEN; without one, who may write a SQLite file is officer.",
)
grant_option = click.option("--grant", "grant_name", required=True, metavar="G", help="The grant to charge.")
block_option = click.option(
    "--block",
    "blocks",
    multiple=True,
    metavar="B",
    help="Of a divided dataset: a block of the grant; by default all.",
)
condition_option = click.option(
    "--condition",
    "conditions",
    multiple=True,
    type=click.Choice(["outputs", "billboard"]),
    help="Of joint DP: a condition of the billboard lemma that was found met; all are needed.",
)
unit_option = click.option(
    "--unit",
    metavar="UNIT",
    help="For whom an event was priced, as 'patient, 8 trajectories, replace-one, central'; or 'dataset': you state "
    "that it was priced for the dataset's unit.",
)
key_option = click.option("--key", metavar="K", help="The same request with the same key is charged once.")


def event_options(command: Any) -> Any:
    """Returns a command with the options that say what is released."""
    options = (
        click.option("--event", metavar="JSON", help='As {"type": "gaussian", "std": "30", "count": 100}.'),
        click.option("--event-file", type=Place(exists=True, dir_okay=False), help="The same in a file."),
        click.option("--gaussian-rho", metavar="RHO", help="Gaussian noise, by its ρ."),
        click.option("--gaussian-std", metavar="STD", help="Gaussian noise, by its standard deviation."),
        click.option("--laplace-epsilon", metavar="E", help="Laplace noise, by its ε."),
        click.option("--pure-epsilon", metavar="E", help="An ε-DP mechanism about which nothing else is known."),
        click.option("--sensitivity", metavar="D", help="ℓ2 sensitivity, with --gaussian-std; by default 1."),
        click.option("--count", metavar="N", help="How often; by default 1."),
    )
    for option in reversed(options):
        command = option(command)
    return command
