"""The registry: a chain of the store itself, which says what names, tokens and datasets there are.

Tables are found by name, and a table can be changed: a grant moved to another dataset, a token that was revoked made
valid again. So whatever changes one of them appends a row to the chain of `REGISTRY`, in the same transaction, and
`find_problems` compares the tables with what the rows say; `privcheck.ledger.projections` compares them with the chains
of the datasets, which also sees a name that was changed before the store had a registry.

| kind | written when | says |
| --- | --- | --- |
| registry | the store was made, or got its registry | what there was then; it vouches for nothing before |
| dataset | a policy opens a dataset | its name, and the hash of its first row |
| grant | a grant is made | its name, its dataset, and the hash of the row that made it |
| token | a token is made | all that is kept of it |
| revoke | a token is ended | whose, and when |
| accept | a copy that was put back is accepted | what was lost, and what was done about it |

Its rows are appended under a lock of their own, taken before that of a dataset; charges never take it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from privcheck.errors import LedgerError
from privcheck.ledger import rows
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.signing import commit_secret, read_number, read_secret
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry

_TOKEN: Final = ("hash", "name", "role", "grants", "expires", "revoked", "made_by", "made_at")


@dataclass(slots=True)
class _State:
    """What a store has, by its tables or by its registry.

    Attributes:
        datasets: Their names.
        grants: The dataset of each.
        tokens: All that is kept of each, by name.
        closed: Datasets on which nothing more is granted.
        secret: The commitment to the store's secret.
        store: The store's number.
    """

    datasets: set[str] = field(default_factory=set)
    grants: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    secret: str = ""
    store: str = ""

    @staticmethod
    def read(transaction: Transaction) -> _State:
        """What the tables say."""
        kept = transaction.all(f"SELECT {', '.join(_TOKEN)} FROM token")  # noqa: S608 - constants
        tokens = [dict(zip(_TOKEN, row, strict=True)) for row in kept]
        closed = transaction.one("SELECT value FROM meta WHERE name = 'lost'")
        return _State(
            datasets=set(rows.datasets(transaction)),
            grants={str(row[0]): str(row[1]) for row in transaction.all("SELECT name, dataset FROM budget")},
            tokens={str(one["name"]): {**one, "grants": json.loads(str(one["grants"]))} for one in tokens},
            closed=set() if closed is None else set(json.loads(str(closed[0]))),
            secret=commit_secret(read_secret(transaction)),
            store=read_number(transaction),
        )

    def to_dict(self) -> dict[str, Any]:
        """The fields, in one order."""
        return {
            "datasets": sorted(self.datasets),
            "grants": self.grants,
            "tokens": [self.tokens[name] for name in sorted(self.tokens)],
            "closed": sorted(self.closed),
            "secret": self.secret,
            "store": self.store,
        }

    def take(self, row: Entry) -> None:
        """Go on with what the next row says."""
        body = row.body
        if row.kind == "registry":
            self.datasets, self.grants = set(body["datasets"]), dict(body["grants"])
            self.tokens = {one["name"]: one for one in body["tokens"]}
            self.closed, self.secret, self.store = set(body["closed"]), body["secret"], body["store"]
        elif row.kind == "dataset":
            self.datasets.add(body["dataset"])
        elif row.kind == "grant":
            self.grants[body["grant"]] = body["dataset"]
        elif row.kind == "token":
            self.tokens[body["name"]] = body
        elif row.kind == "revoke":
            self.tokens[body["name"]] = {**self.tokens[body["name"]], "revoked": body["revoked"]}
        elif row.kind == "accept":
            self.closed |= set(body["closed"])
        else:
            raise KeyError(row.kind)


def begin(transaction: Transaction, *, actor: str, at: str) -> None:
    """Write the first row: what there is now, which is nothing in a new store."""
    lock(transaction)
    note(transaction, "registry", _State.read(transaction).to_dict(), actor=actor, at=at)


def lock(transaction: Transaction) -> None:
    """Keep every other writer of the registry out; after names are claimed, before a dataset is locked."""
    transaction.lock(REGISTRY)


def note(transaction: Transaction, kind: str, body: dict[str, Any], *, actor: str, at: str) -> None:
    """Append a row; the registry is locked."""
    rows.append(transaction, dataset=REGISTRY, kind=kind, actor=actor, body=body, at=at)


def find_problems(transaction: Transaction) -> list[str]:
    """What is wrong with the registry's chain, and where the tables differ from it; one sentence each."""
    told, last, problems = _State(), None, []
    try:
        for row in rows.rows_of_dataset(transaction, REGISTRY):
            if (row.seq, row.prev) != ((1, "") if last is None else (last.seq + 1, last.hash)):
                problems.append(f"registry, row {row.seq}: the chain breaks: it does not follow the row before it")
            if not _is_sealed(row):
                problems.append(f"registry, row {row.seq}: it was changed after it was written: its hash does not fit")
            if (row.kind == "registry") != (row.seq == 1):
                problems.append(f"registry, row {row.seq}: not a row of the registry")
            last = row
            told.take(row)
    except (LedgerError, KeyError, TypeError, ValueError) as error:
        return [*problems, f"registry, after row {0 if last is None else last.seq - 1}: cannot be read: {error!r:.80}"]
    if last is None:
        return ["registry: its rows are missing"]
    if transaction.one("SELECT 1 FROM dataset WHERE name = ?", (REGISTRY,)) is None:  # by which it is locked
        problems.append("registry: its name is missing")
    if problems:
        return problems
    try:
        found = _State.read(transaction)
    except (ValueError, TypeError) as error:
        return [f"registry: the tables of names and tokens cannot be read: {error!r:.80}"]
    return _compare(told, found)


def _is_sealed(row: Entry) -> bool:
    return rows.seal(**{name: getattr(row, name) for name in row.__slots__ if name != "hash"}).hash == row.hash


def _compare(told: _State, found: _State) -> list[str]:
    """Where the tables differ from the registry."""
    problems = list(_differ("dataset", told.datasets, found.datasets))
    problems += _differ("grant", told.grants, found.grants)
    problems += [
        f"grant {name}: it is of dataset {found.grants[name]!r}, and was made for {dataset!r}"
        for name, dataset in sorted(told.grants.items())
        if found.grants.get(name, dataset) != dataset
    ]
    problems += _differ("token", told.tokens, found.tokens)
    for name in sorted(set(told.tokens) & set(found.tokens)):
        was, now = told.tokens[name], found.tokens[name]
        problems += [
            f"token {name}: its {one} is {'another' if one == 'hash' else repr(now[one])}, and the registry says "
            f"{'otherwise' if one == 'hash' else repr(was[one])}"
            for one in _TOKEN
            if was.get(one) != now[one]
        ]
    if told.closed != found.closed:
        problems.append(
            f"datasets with lost rows: the store says {', '.join(sorted(found.closed)) or 'none'}, and the registry "
            f"{', '.join(sorted(told.closed)) or 'none'}"
        )
    if told.secret != found.secret:
        problems.append("the store's key is not the one that it was made with")
    if told.store != found.store:
        problems.append("the store's number is not the one that it was made with")
    return problems


def _differ(what: str, told: Iterable[str], found: Iterable[str]) -> Iterable[str]:
    for name in sorted(set(told) - set(found)):
        yield f"{what} {name}: the registry knows it, and it is not there any more"
    for name in sorted(set(found) - set(told)):
        yield f"{what} {name}: it is there, and the registry does not know it"
