"""Tokens: 256 random bits, told once, of which only the SHA-256 is kept."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection
from typing import Any, Final

from privcheck.errors import AuthorityError, ParameterError
from privcheck.ledger import registry
from privcheck.ledger.exact import canonical, read_name
from privcheck.ledger.roles import ROLES, Actor, Role
from privcheck.ledger.store import Transaction

_PREFIX: Final = "privcheck_"
_UNKNOWN: Final = "the token is unknown, revoked or over; ask an officer for one: privcheck ledger token"


def make_token(
    transaction: Transaction,
    *,
    name: str,
    role: str,
    grants: tuple[str, ...],
    expires: str | None,
    by: str,
    at: str,
) -> str:
    """Writes a new token; returns it, for the one time that it can be told.

    Raises:
        ParameterError: The name is taken, the role unknown, or a CI token is without its one grant or its end.
    """
    read_name("name", name)
    if role not in ROLES:
        raise ParameterError(f"expected role one of {', '.join(ROLES)}; got {role!r}", name="role", given=role)
    if role == "ci" and (len(grants) != 1 or expires is None):
        raise ParameterError("expected exactly one grant and a time at which it ends for a CI token", name="role")
    transaction.claim("name", [f"token {name}"])
    registry.lock(transaction)
    if transaction.one("SELECT 1 FROM token WHERE name = ?", (name,)) is not None:
        raise ParameterError(f"there is a token of the name {name!r} already", name="name", given=name)
    for grant in grants:
        if transaction.one("SELECT 1 FROM budget WHERE name = ?", (grant,)) is None:
            raise ParameterError(f"expected grants that there are, got {grant!r}", name="grant", given=grant)
    token = _PREFIX + secrets.token_urlsafe(32)
    hashed = digest_token(token)
    transaction.run(
        "INSERT INTO token (hash, name, role, grants, expires, revoked, made_by, made_at) "
        "VALUES (?, ?, ?, ?, ?, NULL, ?, ?)",
        (hashed, name, role, canonical(list(grants)), expires, by, at),
    )
    told = {
        "hash": hashed, "name": name, "role": role, "grants": list(grants), "expires": expires, "revoked": None,
        "made_by": by, "made_at": at,
    }  # fmt: skip
    registry.note(transaction, "token", told, actor=by, at=at)
    return token


def find_actor(transaction: Transaction, digest: str, *, now: str) -> Actor:
    """Returns whose token it is, by the token's digest.

    Raises:
        AuthorityError: It is unknown, revoked or over.
    """
    row = transaction.one("SELECT name, role, grants, expires, revoked FROM token WHERE hash = ?", (digest,))
    if row is None or row[4] is not None or (row[3] is not None and str(row[3]) <= now):
        raise AuthorityError(_UNKNOWN, known=False)
    role: Role = next(role for role in ROLES if role == row[1])
    return Actor(name=str(row[0]), role=role, grants=tuple(json.loads(str(row[2]))), holder=digest)


def look_up(transaction: Transaction, digests: Collection[str], *, now: str) -> None:
    """Looks up whether tokens may be used, for `check_holder`; none of them can be ended before the transaction has."""
    new = sorted(set(digests) - {"", *transaction.holders})
    if not new:
        return
    transaction.share("token", new)
    marks = ", ".join("?" * len(new))
    found = transaction.all(
        f"SELECT hash FROM token WHERE revoked IS NULL AND (expires IS NULL OR expires > ?) AND hash IN ({marks})",  # noqa: S608 - marks
        (now, *new),
    )
    valid = {row[0] for row in found}
    transaction.holders.update({digest: digest in valid for digest in new})


def check_holder(transaction: Transaction, actor: Actor, *, now: str) -> None:
    """Refuses what was asked for with a token that has ended since it was looked up.

    Raises:
        AuthorityError: It has.
    """
    look_up(transaction, (actor.holder,), now=now)
    if actor.holder and not transaction.holders[actor.holder]:
        raise AuthorityError(_UNKNOWN, known=False)


def list_holders(transaction: Transaction, *, now: str) -> dict[str, Role]:
    """The role of every token that may be used, by the token's digest."""
    found = transaction.all(
        "SELECT hash, role FROM token WHERE revoked IS NULL AND (expires IS NULL OR expires > ?)", (now,)
    )
    return {str(value): next(role for role in ROLES if role == name) for value, name in found}


def revoke_token(transaction: Transaction, name: str, *, by: str, now: str) -> None:
    """Ends a token, once every transaction has ended that writes by it.

    Raises:
        ParameterError: There is none of the name.
    """
    row = transaction.one("SELECT hash, revoked FROM token WHERE name = ?", (name,))
    if row is None:
        raise ParameterError(f"expected the name of a token, got {name!r}", name="name", given=name)
    transaction.claim("token", [str(row[0])])
    registry.lock(transaction)
    row = transaction.one("SELECT revoked FROM token WHERE name = ?", (name,))  # again: another may have been first
    if row is not None and row[0] is None:
        transaction.run("UPDATE token SET revoked = ? WHERE name = ?", (now, name))
        registry.note(transaction, "revoke", {"name": name, "revoked": now}, actor=by, at=now)


def list_tokens(transaction: Transaction) -> list[dict[str, Any]]:
    """Returns whose tokens there are, in the order in which they were made; of the tokens themselves nothing."""
    names = ("name", "role", "grants", "expires", "revoked", "made_by", "made_at")
    found = transaction.all(f"SELECT {', '.join(names)} FROM token ORDER BY made_at, name")  # noqa: S608 - ours
    told = [dict(zip(names, row, strict=True)) for row in found]
    return [{**one, "grants": json.loads(str(one["grants"]))} for one in told]


def digest_token(token: str) -> str:
    """Returns the SHA-256 of a token: all that is kept of it."""
    return hashlib.sha256(token.encode()).hexdigest()
