"""What is read in place of whole chains: an index and three tables, which `verify` compares with the chains.

| what | it has | a row that it lacks |
| --- | --- | --- |
| `entry_rare`, an index | where rows other than charge, commit and release are: policies, grants, … | is not seen |
| `reservation` | reservations that were neither committed nor given back | waits for no officer |
| `budget` | every grant with its dataset | is not listed |
| `dataset` | every dataset | is not listed |

Nothing is decided from these alone: they say where rows are, and each row that a rule is decided from is checked
against its hash. What is spent is in none of them: a balance is in the last row about its grant, which counts what is
reserved, in whatever table that stands or does not. A row that a projection lacks is the danger: a freeze is not (that
is in the balance too), but a grant that is not seen is in no sum of the policy. So the database keeps the index itself,
the tables are written in the transaction of their row, and `verify` walks every chain without them and compares.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from privcheck.ledger import rows
from privcheck.ledger.store import Row, Transaction


def find_reserved(transaction: Transaction, *, most: int) -> tuple[dict[str, str], int]:
    """Returns open reservations with their datasets, those first that end first, and how many there are in all."""
    found = transaction.all("SELECT charge, dataset FROM reservation ORDER BY expires, charge LIMIT ?", (most,))
    count = transaction.one("SELECT COUNT(*) FROM reservation")
    assert count is not None
    return {str(charge): str(dataset) for charge, dataset in found}, int(count[0] or 0)


def rebuild(transaction: Transaction) -> None:
    """Writes the table of reservations anew, from the rows; nobody else writes meanwhile."""
    names = sorted(rows.datasets(transaction))
    for dataset in names:
        transaction.lock(dataset)
    transaction.run("DELETE FROM reservation")
    for dataset in names:
        for charge, expires in _reserved(transaction, dataset):
            transaction.later(rows.OPENED, (charge, dataset, expires))


def compare(
    transaction: Transaction, dataset: str, *, rare: Mapping[str, Collection[int]], reserved: Mapping[str, str]
) -> list[str]:
    """Returns where the index and the table of reservations are not what a chain says.

    Args:
        transaction: Reads.
        dataset: Whose chain.
        rare: The places of its rows other than charge, commit and release, by kind.
        reserved: When its open reservations end, by charge.
    """
    statement = f"SELECT kind, seq FROM entry WHERE dataset = ? AND {rows.RARE} ORDER BY kind, seq"  # noqa: S608 - a constant
    indexed = set(transaction.all(statement, (dataset,)))
    walked: set[Row] = {(kind, seq) for kind, places in rare.items() for seq in places}
    problems = [
        f"{dataset}, row {seq}: the index entry_rare lacks it, or has it as of another kind: rebuild it (REINDEX)"
        for _, seq in sorted(walked ^ indexed, key=str)
    ]
    kept = transaction.all("SELECT charge, expires FROM reservation WHERE dataset = ?", (dataset,))
    listed = {str(charge): expires for charge, expires in kept}
    for charge in sorted({*listed, *reserved}):
        if listed.get(charge) != reserved.get(charge):
            there, is_open = charge in listed, charge in reserved
            wrong = "lacks it" if not there else "has another end of it" if is_open else "has it, and it is not open"
            problems.append(
                f"{dataset}, charge {charge}: the table of reservations {wrong}: rebuild it (verify --rebuild)"
            )
    return problems


def compare_names(transaction: Transaction, grants: Mapping[str, str]) -> list[str]:
    """Returns where the tables of datasets and grants are not what the rows say.

    Args:
        transaction: Reads.
        grants: The dataset of every grant that a row of a chain has made.
    """
    named = set(rows.datasets(transaction))
    chains = {str(row[0]) for row in transaction.all("SELECT DISTINCT dataset FROM entry")}
    problems = [
        f"{name}: it has rows, and the table of datasets lacks it" for name in sorted(chains - named - {rows.REGISTRY})
    ]
    listed = {str(name): str(of) for name, of in transaction.all("SELECT name, dataset FROM budget")}
    for name in sorted({*listed, *grants}):
        if name not in grants:
            problems.append(f"grant {name}: the row that made it is missing")
        elif name not in listed:
            problems.append(f"grant {name}: the table of grants lacks it")
        elif listed[name] != grants[name]:
            problems.append(f"grant {name}: it is of {grants[name]}, and the table of grants says {listed[name]}")
    return problems


def _reserved(transaction: Transaction, dataset: str) -> Iterator[tuple[str, str]]:
    """Yields the open reservations of a dataset with their ends, from its rows, unchecked: `verify` checks them."""
    begun = (
        "SELECT seq, charge, body FROM entry AS e WHERE dataset = ? AND kind = 'charge' AND seq > ? AND body LIKE ? "
        "AND NOT EXISTS (SELECT 1 FROM entry AS f WHERE f.charge = e.charge AND f.seq > e.seq) ORDER BY seq LIMIT 1000"
    )
    after = 0
    while page := transaction.all(begun, (dataset, after, '%"state":"reserved"%')):
        after = int(page[-1][0] or 0)
        for _, charge, text in page:
            with suppress(ValueError, TypeError, KeyError):  # no row of a ledger, which a migration does not judge
                body = json.loads(str(text))
                if body["state"] == "reserved":
                    yield str(charge), str(body["expires"])
