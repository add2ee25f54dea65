"""Idempotency keys of what is no charge: policies, blocks, grants, commits, releases, evidence, tokens; and claims.

The keys of charges and reservations are in their rows. Of everything else the request's digest and the answer are kept
beside it, in the same transaction, so that asking again after an answer was lost gives that answer, whoever has started
the service anew since then. An answer that tells a secret is not kept: it is told once. What is refused keeps no key,
here as on the command line. Two requests have no key in the ledger: a claim is what it is about, and an acceptance is
of the copy that is there, so that it is decided anew, whatever was answered of another one.
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
    """Returns what a write answers, or what it has answered when the same key came before.

    Args:
        book: The ledger that is written to, by `write`, in one transaction with the key.
        actor: Who asks: keys are everybody's own, and one is for one request, whatever that is about.
        key: The idempotency key.
        asked: What is asked for; fields that are None do not count.
        write: Writes, and returns the answer.
        secret: The answer is not kept.

    Returns:
        The answer; one whose `state` is "refused" is decided anew when it is asked for again.

    Raises:
        IdempotencyError: The key came before, with another request.
        StateError: It came before, and its answer told a secret, which is not told again.
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
    """Keeps what a claim is about, by its name, which is the digest of that."""
    if find_claim(transaction, name) is None:
        transaction.run("INSERT INTO claim (name, about) VALUES (?, ?)", (name, canonical(dict(about))))


def find_claim(transaction: Transaction, name: str) -> dict[str, Any] | None:
    """Returns what a claim is about; None where nothing is kept under the name."""
    row = transaction.one("SELECT about FROM claim WHERE name = ?", (name,))
    return None if row is None else dict(json.loads(str(row[0])))


def _write(told: Mapping[str, Any]) -> str:
    """Returns an answer as text, its fields in their order."""
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


def _repeat(key: str, body: str) -> dict[str, Any]:
    if not body:
        message = f"the request with the key {key!r} was answered with a token, which is told once and not kept; if it"
        raise StateError(f"{message} did not arrive, revoke that token and ask for one of another name", state="told")
    return dict(json.loads(body))
