"""Registry: a chain of the store itself, which records its names, tokens and datasets; roles and their actions.

Tables are looked up by name, and a table can be changed: a grant moved to another dataset, a revoked token made valid
again. So every change of one of them appends a row to the chain of `REGISTRY`, in the same transaction (`note` has the
kinds of rows), and `find_problems` compares the tables with the rows; `privcheck.ledger.schema` compares them with the
chains of the datasets, which also detects a name that was changed before the store had a registry.

Tokens are 256 random bits, shown once; only the SHA-256 is stored. `require` checks the one table of roles and actions.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from privcheck.errors import AuthorityError, LedgerError, ParameterError
from privcheck.ledger import rows
from privcheck.ledger.exact import canonical, read_name
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.signing import commit_secret, read_number, read_secret
from privcheck.ledger.store import Transaction
from privcheck.ledger.values import Entry

_TOKEN: Final = ("hash", "name", "role", "grants", "expires", "revoked", "made_by", "made_at")


@dataclass(slots=True)
class _State:
    """Names, tokens and identity of a store, by its tables or by its registry.

    Attributes:
        datasets: Names of the datasets.
        grants: Dataset of each grant.
        tokens: Stored fields of each token, by name.
        closed: Datasets that are closed to new grants.
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
        """Read the state from the tables."""
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
        """Fields as JSON, in a fixed order."""
        return {
            "datasets": sorted(self.datasets),
            "grants": self.grants,
            "tokens": [self.tokens[name] for name in sorted(self.tokens)],
            "closed": sorted(self.closed),
            "secret": self.secret,
            "store": self.store,
        }

    def take(self, row: Entry) -> None:
        """Apply the next row."""
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
    """Write the first row: the present names and tokens, none in a new store."""
    lock(transaction)
    note(transaction, "registry", _State.read(transaction).to_dict(), actor=actor, at=at)


def lock(transaction: Transaction) -> None:
    """Lock the registry against other writers; after names are claimed, before a dataset is locked.

    The registry has a separate lock, taken before that of a dataset; charges never take it.
    """
    transaction.lock(REGISTRY)


def note(transaction: Transaction, kind: str, body: dict[str, Any], *, actor: str, at: str) -> None:
    """Append a row; the registry must be locked.

    | kind | written when | says |
    | --- | --- | --- |
    | registry | the store was made, or got its registry | the names and tokens then; it proves nothing before |
    | dataset | a policy opens a dataset | its name, and the hash of its first row |
    | grant | a grant is made | its name, its dataset, and the hash of the row that made it |
    | token | a token is made | all stored fields of it |
    | revoke | a token is revoked | its name, and when |
    | accept | a restored copy is accepted | the lost rows, and the consequences |
    """
    rows.append(transaction, dataset=REGISTRY, kind=kind, actor=actor, body=body, at=at)


def find_problems(transaction: Transaction) -> list[str]:
    """Problems of the registry's chain, and differences between it and the tables; one sentence each."""
    told, last, problems = _State(), None, []
    try:
        for row in rows.rows_of_dataset(transaction, REGISTRY):
            if (row.seq, row.prev) != ((1, "") if last is None else (last.seq + 1, last.hash)):
                problems.append(f"registry, row {row.seq}: the chain breaks: it does not follow the row before it")
            if not _is_sealed(row):
                problems.append(
                    f"registry, row {row.seq}: it was changed after it was written: its hash does not match"
                )
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
    """Differences between the tables and the registry."""
    problems = list(_differ("dataset", told.datasets, found.datasets))
    problems += _differ("grant", told.grants, found.grants)
    problems += [
        f"grant {name}: it belongs to dataset {found.grants[name]!r}, but was made for {dataset!r}"
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
        problems.append("the store's key differs from its original key")
    if told.store != found.store:
        problems.append("the store's number differs from its original number")
    return problems


def _differ(what: str, told: Iterable[str], found: Iterable[str]) -> Iterable[str]:
    for name in sorted(set(told) - set(found)):
        yield f"{what} {name}: it is in the registry, but was removed"
    for name in sorted(set(found) - set(told)):
        yield f"{what} {name}: it exists, but is not in the registry"


Role = Literal["reader", "analyst", "ci", "officer", "admin"]
Action = Literal[
    "show", "verify", "export", "quote", "reserve", "commit", "release", "charge", "import", "evidence",
    "policy", "grant", "attest", "freeze", "accept", "backup", "token",
]  # fmt: skip
ROLES: Final[tuple[Role, ...]] = get_args(Role)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)

_LOOKS: Final[frozenset[Action]] = frozenset({"show", "verify", "export"})
_SPENDS: Final[frozenset[Action]] = frozenset({"quote", "reserve", "commit", "release", "charge", "import", "evidence"})
_RULES: Final[frozenset[Action]] = frozenset({"policy", "grant", "attest", "freeze", "accept", "backup"})
_MAY: Final[dict[Role, frozenset[Action]]] = {
    "reader": _LOOKS,
    "analyst": _LOOKS | _SPENDS,
    "ci": _LOOKS | _SPENDS,
    "officer": _LOOKS | _SPENDS | _RULES | {"token"},
    "admin": frozenset({"token"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The authenticated author of an action.

    Attributes:
        name: The name in every row.
        role: The role that determines the permitted actions.
        grants: The grants that an analyst or a CI job may charge; officers may charge all.
        holder: The digest of the actor's token, which every write looks up again; empty without one.
    """

    name: str
    role: Role
    grants: tuple[str, ...] = ()
    holder: str = field(default="", repr=False, compare=False)


def may(role: Role, action: Action) -> bool:
    """Whether a role permits an action at all.

    >>> may("analyst", "charge"), may("analyst", "grant"), may("admin", "charge")
    (True, False, False)
    """
    return action in _MAY[role]


def require(actor: Actor, action: Action, *, grant: str | None = None) -> None:
    """Check that an actor is permitted to act.

    Args:
        actor: The actor.
        action: The action.
        grant: The grant that the action is about, if any.

    Raises:
        AuthorityError: The role does not permit the action, or the grant is not one of the actor's.
    """
    if not may(actor.role, action):
        able = ", ".join(role for role in ROLES if may(role, action))
        message = f"{actor.name} is {_article(actor.role)} and may not {action}; expected one of: {able}"
        raise AuthorityError(message, action=action)
    if grant is not None and action in _SPENDS and actor.role in ("analyst", "ci") and grant not in actor.grants:
        own = ", ".join(actor.grants) or "none"
        raise AuthorityError(f"{actor.name} may not {action} on grant {grant!r}; own grants: {own}", action=action)


def _article(role: Role) -> str:
    return f"{'an' if role[0] in 'aeio' else 'a'} {role}" if role != "ci" else "a CI job"


_PREFIX: Final = "privcheck_"
_UNKNOWN: Final = "the token is unknown, revoked or expired; ask an officer for one: privcheck ledger token"


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
    """Create a token; this return value is the only time that it is shown.

    Raises:
        ParameterError: The name is taken, the role or a grant is unknown, or a CI token has no expiry or not exactly
            one grant.
    """
    read_name("name", name)
    if role not in ROLES:
        raise ParameterError(f"expected role one of {', '.join(ROLES)}; got {role!r}", name="role", given=role)
    if role == "ci" and (len(grants) != 1 or expires is None):
        raise ParameterError("expected exactly one grant and an expiry time for a CI token", name="role")
    transaction.claim("name", [f"token {name}"])
    lock(transaction)
    if transaction.one("SELECT 1 FROM token WHERE name = ?", (name,)) is not None:
        raise ParameterError(f"a token of the name {name!r} already exists", name="name", given=name)
    for grant in grants:
        if transaction.one("SELECT 1 FROM budget WHERE name = ?", (grant,)) is None:
            raise ParameterError(f"expected existing grants, got {grant!r}", name="grant", given=grant)
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
    note(transaction, "token", told, actor=by, at=at)
    return token


def find_actor(transaction: Transaction, digest: str, *, now: str) -> Actor:
    """Find the actor of a token, by the token's digest.

    Raises:
        AuthorityError: The token is unknown, revoked or expired.
    """
    row = transaction.one("SELECT name, role, grants, expires, revoked FROM token WHERE hash = ?", (digest,))
    if row is None or row[4] is not None or (row[3] is not None and str(row[3]) <= now):
        raise AuthorityError(_UNKNOWN, known=False)
    role: Role = next(role for role in ROLES if role == row[1])
    return Actor(name=str(row[0]), role=role, grants=tuple(json.loads(str(row[2]))), holder=digest)


def look_up(transaction: Transaction, digests: Collection[str], *, now: str) -> None:
    """Look up the validity of tokens, for `check_holder`; they cannot be revoked before the transaction ends."""
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
    """Refuse a request with a token that has ended since it was looked up.

    Raises:
        AuthorityError: The token has ended.
    """
    look_up(transaction, (actor.holder,), now=now)
    if actor.holder and not transaction.holders[actor.holder]:
        raise AuthorityError(_UNKNOWN, known=False)


def list_holders(transaction: Transaction, *, now: str) -> dict[str, Role]:
    """Role of every valid token, by the token's digest."""
    found = transaction.all(
        "SELECT hash, role FROM token WHERE revoked IS NULL AND (expires IS NULL OR expires > ?)", (now,)
    )
    return {str(value): next(role for role in ROLES if role == name) for value, name in found}


def revoke_token(transaction: Transaction, name: str, *, by: str, now: str) -> None:
    """Revoke a token, once every transaction that writes by it has ended.

    Raises:
        ParameterError: There is no token of the name.
    """
    row = transaction.one("SELECT hash, revoked FROM token WHERE name = ?", (name,))
    if row is None:
        raise ParameterError(f"expected the name of a token, got {name!r}", name="name", given=name)
    transaction.claim("token", [str(row[0])])
    lock(transaction)
    row = transaction.one("SELECT revoked FROM token WHERE name = ?", (name,))  # again: another may have been first
    if row is not None and row[0] is None:
        transaction.run("UPDATE token SET revoked = ? WHERE name = ?", (now, name))
        note(transaction, "revoke", {"name": name, "revoked": now}, actor=by, at=now)


def list_tokens(transaction: Transaction) -> list[dict[str, Any]]:
    """List the tokens with their holders, in the order of their creation, without the tokens or their digests."""
    names = ("name", "role", "grants", "expires", "revoked", "made_by", "made_at")
    found = transaction.all(f"SELECT {', '.join(names)} FROM token ORDER BY made_at, name")  # noqa: S608 - ours
    told = [dict(zip(names, row, strict=True)) for row in found]
    return [{**one, "grants": json.loads(str(one["grants"]))} for one in told]


def digest_token(token: str) -> str:
    """SHA-256 of a token: the only stored form."""
    return hashlib.sha256(token.encode()).hexdigest()
