"""Idempotency keys for writes other than charges, and the names of claims.

The writes are policies, blocks, grants, commits, releases, evidence and tokens. The keys of charges and reservations
are in their rows. For other writes the digest of the request and the answer are stored in the same transaction, so that
a repeated request gets the first answer even after the service was restarted. An answer with a secret is not stored: it
is given once. Refused requests store no key, as on the command line. Two requests have no key in the ledger: a claim is
named by its content, and an acceptance is about the present copy of the store, so that it is decided anew each time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privcheck.errors import IdempotencyError, StateError
from privcheck.ledger import rows
from privcheck.ledger.exact import canonical, digest, read_text
from privcheck.ledger.registry import Actor
from privcheck.ledger.store import Transaction

if TYPE_CHECKING:
    from privcheck.ledger.book import Book

_WHERE = "WHERE actor = ? AND request_key = ?"


def once(
    book: Book, actor: Actor, key: str, asked: Mapping[str, Any], write: Callable[[], dict[str, Any]], *,
    secret: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Run a write once for each key: a repeated request gets the stored answer.

    Args:
        book: The ledger, to which `write` writes in one transaction with the key.
        actor: The caller; every actor has separate keys, and a key is for one request, whatever that is about.
        key: The idempotency key.
        asked: The fields of the request; those that are None do not count.
        write: Writes, and returns the answer.
        secret: Whether the answer has a secret, and is not stored.

    Returns:
        The answer; a request with an answer of `state` "refused" is decided anew when it is repeated.

    Raises:
        IdempotencyError: The key was used for another request.
        StateError: The key was used, and its answer had a secret, which is not given again.
    """
    said = digest(canonical({name: value for name, value in asked.items() if value is not None}))
    read_text("key", key)
    with book.together(actor) as transaction:
        # whoever comes at the same time with the same key waits here
        if earlier := rows.earlier_requests(transaction, actor.name, key):
            if (said, None) not in earlier:
                raise IdempotencyError(f"the key {key!r} was used for another request; expected a new key")
            found = transaction.one(f"SELECT body FROM answer {_WHERE}", (actor.name, key))  # noqa: S608 - a constant
            assert found is not None
            return _repeat(key, str(found[0]))
        told = write()
        if told.get("state") != "refused":
            transaction.run(
                "INSERT INTO answer (actor, request_key, request, body, written_at) VALUES (?, ?, ?, ?, ?)",
                (actor.name, key, said, "" if secret else _write(told), book.now()),
            )
        return told


def keep_claim(transaction: Transaction, name: str, about: Mapping[str, Any]) -> None:
    """Store the content of a claim under its name, which is the digest of the content."""
    if find_claim(transaction, name) is None:
        transaction.run("INSERT INTO claim (name, about) VALUES (?, ?)", (name, canonical(dict(about))))


def find_claim(transaction: Transaction, name: str) -> dict[str, Any] | None:
    """Content of a claim, or None if there is no claim of the name."""
    row = transaction.one("SELECT about FROM claim WHERE name = ?", (name,))
    return None if row is None else dict(json.loads(str(row[0])))


def _write(told: Mapping[str, Any]) -> str:
    """Answer as JSON, its fields in their order."""
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def _repeat(key: str, body: str) -> dict[str, Any]:
    if not body:
        message = f"the request with the key {key!r} was answered with a token, which is shown once and not kept; if it"
        raise StateError(f"{message} did not arrive, revoke that token and make one under another name", state="told")
    return dict(json.loads(body))
