"""Clients of a ledger for commands and runs: a store opened directly, or a service, with the same methods.

Both answer in JSON and raise the errors of `privcheck.ledger.Book`.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import click

from privcheck.errors import AuthorityError, ParameterError, hide_passwords
from privcheck.ledger import Actor, Book, Receipt, Spending, create_store, open_store
from privcheck.ledger.backups import restore
from privcheck.ledger.chains import read_checkpoint, write_checkpoint
from privcheck.ledger.grants import read_time
from privcheck.ledger.heads import Evidence, Head
from privcheck.ledger.signing import check_installed
from privcheck.ledger.values import CurrencyName, read_currency
from privcheck.ledger.wire import parse_event

if TYPE_CHECKING:
    from privcheck.ledger.client import Client, Stated

Json = dict[str, Any]
TOKEN: Final = "PRIVCHECK_LEDGER_TOKEN"  # noqa: S105 - where it is looked for
_PAGE: Final = 1000
_STATED: Final = ("algorithm", "parameters", "noise", "record")  # of what a service is told of an event


class Desk(Protocol):
    """A ledger with the identity of its caller."""

    @property
    def service(self) -> Client | None:
        """The client of a service, which judges claims itself; None for a store."""

    def currency(self, grant: str) -> CurrencyName:
        """Currency in which a grant is summed."""

    def quote(self, *, grant: str, event: Spending, unit: Stated, blocks: Sequence[str] | None) -> Json:
        """Price a charge; nothing is written."""

    def charge(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Charge a coming release, with its unit as argument or in the claim; a refusal is an answer, not an error."""

    def reserve(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        seconds: int = 3600, blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Set budget aside."""

    def commit(self, charge: str) -> Json:
        """Commit a reservation."""

    def release(self, charge: str, *, evidence: str) -> Json:
        """Give a reservation back."""

    def find_charge(self, charge: str) -> Json:
        """A charge in its current state."""

    def find_receipt(self, value: str) -> Json:
        """The receipt of the row with a hash."""

    def show(self, dataset: str | None = None) -> Json:
        """All datasets, or one."""

    def charges(self, dataset: str) -> Iterator[Json]:
        """Yield all charges to a dataset, in order."""

    def verify(
        self, receipts: Sequence[Receipt], heads: Sequence[Head] = (), *, checkpoint: Path | None = None
    ) -> Json:
        """Check that the chains are consistent and still contain the rows of the given receipts and heads.

        With the file of an earlier check, the rows checked before are not read again, and the file is updated.
        """

    def public_key(self) -> Json:
        """The key that checks receipts and heads: `key` in PEM, `fingerprint`."""

    def prove(self, kept: Evidence) -> tuple[Evidence, list[str]]:
        """The current signed heads, with proofs that they contain the kept evidence, and the contradictions found."""

    def rebuild(self) -> None:
        """Rebuild the list of open reservations from the rows."""

    def accept(self, receipts: Sequence[Receipt], *, freeze: bool) -> Json:
        """Re-open a restored store for writing after comparing it with receipts."""

    def set_policy(self, **fields: Any) -> Json:
        """Open a dataset and return its policy."""

    def add_blocks(self, dataset: str, names: Sequence[str], *, disjoint_users: str | None) -> list[Json]:
        """Divide a dataset and return all its blocks."""

    def grant(self, **fields: Any) -> Json:
        """Make a grant, with the fields of `Book.grant` or `Book.plan`, and return it with its policy."""

    def add_evidence(self, charge: str, *, verdict: Any, report: str) -> str:
        """Add the result of an audit and return the row's hash."""

    def freeze(self, grant: str, *, reason: str) -> str:
        """Stop all spending on a grant and return the row's hash."""

    def make_token(self, *, name: str, role: str, grants: tuple[str, ...], expires: str | None) -> str:
        """Make a token and return it."""

    def revoke_token(self, name: str) -> None:
        """Revoke a token."""

    def tokens(self) -> list[Json]:
        """All tokens by owner, without their secrets."""

    def close(self) -> None:
        """Close open resources."""


def read_token(token_file: Path | None) -> str:
    """The token of a file, or else of the environment variable; empty if there is none."""
    return (os.environ.get(TOKEN, "") if token_file is None else token_file.read_text(encoding="utf-8")).strip()


def local_officer() -> Actor:
    """The user of this process, by its user id, as an officer: file permissions are the only limit.

    Environment variables are not read: a user who could choose a name there could attest to their own reservations.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a number without a name
        user = str(os.getuid())
    return Actor(name=f"local-{re.sub(r'[^A-Za-z0-9._-]', '-', user)}", role="officer")


def make_ledger(url: str) -> Json:
    """Make a ledger and return the first officer's token.

    Raises:
        ParameterError: The URL is that of a service, which makes its own ledger.
    """
    if is_service(url):
        message = (
            f"{hide_passwords(url)} is a service: its ledger is made on the machine of its store, by privcheck serve"
        )
        raise ParameterError(f"{message} there, or privcheck ledger init --store PATH", name="store", given=url)
    check_installed()  # before there is a file
    store = create_store(url)
    try:
        _, token = Book.init(store)
    finally:
        store.close()
    return {"store": store.url, "officer_token": token}


def open_desk(url: str, token_file: Path | None) -> Desk:
    """Open a ledger as the owner of a token or, for a SQLite file, as the user who may write it.

    Raises:
        AuthorityError: The token is unknown, revoked or expired, or is missing and the store is not a file.
        StoreError: There is no ledger.
    """
    if is_service(url):
        return _open_service(url, read_token(token_file))
    return _Store(*open_book(url, token_file))


def open_book(url: str, token_file: Path | None) -> tuple[Book, Actor]:
    """Open the ledger of a store, with its caller; errors as of `open_desk`.

    Raises:
        ParameterError: The URL is that of a service.
    """
    _refuse_service(url)
    token = read_token(token_file)
    book = Book(open_store(url))
    if not token and not book.store.url.startswith("sqlite:"):
        book.store.close()
        message = f"expected a token in {TOKEN} or --token-file: only users who may write a SQLite file need none"
        raise AuthorityError(message, known=False)
    command = click.get_current_context(silent=True)
    if command is not None:
        command.call_on_close(book.store.close)
    return book, book.find_actor(token) if token else local_officer()


def put_back(url: str, file: Path, *, replace_newer: bool) -> Json:
    """Replace a ledger by a backup; needs only the right to create one there, but afterwards only officers write.

    Raises:
        ParameterError: The URL is that of a service.
        StoreError: The existing ledger is in use, newer, another ledger or broken.
    """
    _refuse_service(url)
    stamp = datetime.now(UTC).strftime("%Y%m%d_%H%M%S_%f")
    return {**restore(url, file, replace_newer=replace_newer, stamp=stamp).to_dict(), "url": hide_passwords(url)}


@contextmanager
def open_till(url: str) -> Iterator[Desk]:
    """Open the ledger a run is charged to; the token is in PRIVCHECK_LEDGER_TOKEN. Errors as of `open_desk`."""
    desk = open_desk(url, None)
    try:
        yield desk
    finally:
        desk.close()


def is_service(url: str) -> bool:
    """Whether a ledger's URL is that of a service."""
    return url.lower().startswith(("http://", "https://"))


def _refuse_service(url: str) -> None:
    if is_service(url):
        message = f"{hide_passwords(url)} is a service: its store is backed up and restored on its own machine"
        raise ParameterError(f"{message}: give --store PATH or postgresql://…", name="store", given=hide_passwords(url))


def _open_service(url: str, token: str) -> _Service:
    if not token:
        message = f"{hide_passwords(url)} needs the payer's token: expected one in {TOKEN} or --token-file"
        raise AuthorityError(message, known=False)
    from privcheck.ledger.client import Client

    return _Service(Client(url, token))


class _Store:
    """Client of a store that this process opens directly."""

    def __init__(self, book: Book, actor: Actor) -> None:
        self.book, self.actor = book, actor

    @property
    def service(self) -> None:
        return None

    def currency(self, grant: str) -> CurrencyName:
        return self.book.find_grant(self.actor, grant).currency

    def quote(self, *, grant: str, event: Spending, unit: Stated, blocks: Sequence[str] | None) -> Json:
        return self.book.quote(self.actor, grant=grant, event=event, unit=unit, blocks=blocks).to_dict()

    def charge(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        return self.book.charge(
            self.actor, grant=grant, event=event, unit=unit, key=key, claim=claim, blocks=blocks
        ).to_dict()  # fmt: skip

    def reserve(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        seconds: int = 3600, blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        return self.book.reserve(
            self.actor, grant=grant, event=event, unit=unit, key=key, claim=claim, seconds=seconds, blocks=blocks
        ).to_dict()

    def commit(self, charge: str) -> Json:
        return self.book.commit(self.actor, charge).to_dict()

    def release(self, charge: str, *, evidence: str) -> Json:
        return self.book.release(self.actor, charge, evidence=evidence).to_dict()

    def find_charge(self, charge: str) -> Json:
        return self.book.find_charge(self.actor, charge).to_dict()

    def find_receipt(self, value: str) -> Json:
        return self.book.find_receipt(self.actor, value).to_dict()

    def show(self, dataset: str | None = None) -> Json:
        return self.book.show(self.actor, dataset)

    def charges(self, dataset: str) -> Iterator[Json]:
        after = 0
        while page := self.book.charges(self.actor, dataset, after=after, most=_PAGE):
            yield from (charge.to_dict() for charge in page)
            after = page[-1].seq

    def verify(
        self, receipts: Sequence[Receipt], heads: Sequence[Head] = (), *, checkpoint: Path | None = None
    ) -> Json:
        after = None if checkpoint is None else read_checkpoint(checkpoint)
        found = self.book.verify(self.actor, receipts=receipts, heads=heads, after=after)
        if checkpoint is not None and found.checkpoint is not None:
            write_checkpoint(checkpoint, found.checkpoint)
        return found.to_dict()

    def public_key(self) -> Json:
        return self.book.public_key(self.actor).to_dict()

    def prove(self, kept: Evidence) -> tuple[Evidence, list[str]]:
        return self.book.prove(self.actor, kept)

    def rebuild(self) -> None:
        self.book.rebuild(self.actor)

    def accept(self, receipts: Sequence[Receipt], *, freeze: bool) -> Json:
        return self.book.accept(self.actor, receipts=receipts, freeze=freeze).to_dict()

    def set_policy(self, **fields: Any) -> Json:
        return self.book.set_policy(self.actor, **fields).to_dict()

    def add_blocks(self, dataset: str, names: Sequence[str], *, disjoint_users: str | None) -> list[Json]:
        made = self.book.add_blocks(self.actor, dataset, names, disjoint_users=disjoint_users)
        return [block.to_dict() for block in made]

    def grant(self, **fields: Any) -> Json:
        make = self.book.plan if "events" in fields else self.book.grant
        grant, policy = make(self.actor, **fields)
        return {"grant": grant.to_dict(), "policy": policy.to_dict()}

    def add_evidence(self, charge: str, *, verdict: Any, report: str) -> str:
        return self.book.add_evidence(self.actor, charge, verdict=verdict, report=report)

    def freeze(self, grant: str, *, reason: str) -> str:
        return self.book.freeze(self.actor, grant, reason=reason)

    def make_token(self, *, name: str, role: str, grants: tuple[str, ...], expires: str | None) -> str:
        return self.book.make_token(self.actor, name=name, role=role, grants=grants, expires=expires)

    def revoke_token(self, name: str) -> None:
        self.book.revoke_token(self.actor, name)

    def tokens(self) -> list[Json]:
        return self.book.list_tokens(self.actor)

    def close(self) -> None:
        self.book.store.close()


class _Service:
    """Client of a service, which identifies the caller by the token and parses requests as a store does."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @property
    def service(self) -> Client:
        return self.client

    def currency(self, grant: str) -> CurrencyName:
        currency = self.client.find_grant(grant)["currency"]
        return "events" if currency == "events" else read_currency(currency)

    def quote(self, *, grant: str, event: Spending, unit: Stated, blocks: Sequence[str] | None) -> Json:
        return self.client.quote(grant=grant, event=event.to_dict(), unit=unit, blocks=blocks)

    def charge(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        plain = parse_event(event).to_dict()
        return self.client.charge(grant=grant, event=plain, key=key, blocks=blocks, **_state(unit, claim))

    def reserve(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        seconds: int = 3600, blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        plain = parse_event(event).to_dict()
        return self.client.reserve(
            grant=grant, event=plain, key=key, seconds=seconds, blocks=blocks, **_state(unit, claim)
        )  # fmt: skip

    def commit(self, charge: str) -> Json:
        return self.client.commit(charge)

    def release(self, charge: str, *, evidence: str) -> Json:
        return self.client.release(charge, evidence=evidence)

    def find_charge(self, charge: str) -> Json:
        return self.client.find_charge(charge)

    def find_receipt(self, value: str) -> Json:
        return self.client.find_receipt(value)

    def show(self, dataset: str | None = None) -> Json:
        return self.client.show(dataset)

    def charges(self, dataset: str) -> Iterator[Json]:
        after: int | None = 0
        while after is not None:
            page = self.client.charges(dataset, after=after)
            yield from page["charges"]
            after = page["next"]

    def verify(
        self, receipts: Sequence[Receipt], heads: Sequence[Head] = (), *, checkpoint: Path | None = None
    ) -> Json:
        self._refuse(heads)
        if checkpoint is not None:
            message = (
                f"{hide_passwords(self.client.url)} is a service, which reads its store itself, and a checkpoint is"
            )
            raise ParameterError(f"{message} for readers of the store; leave it out", name="checkpoint")
        return self.client.verify([receipt.to_dict() for receipt in receipts])

    def public_key(self) -> Json:
        return self.client.public_key()

    def prove(self, kept: Evidence) -> tuple[Evidence, list[str]]:
        self._refuse((*kept.heads, *kept.receipts))
        return Evidence(heads=tuple(Head.parse(one) for one in self.client.heads())), []

    def _refuse(self, kept: Sequence[object]) -> None:
        if kept:
            message = (
                "a service shows its heads but compares none: run this on the machine of its store, with --store PATH"
            )
            raise ParameterError(message, name="store", given=self.client.url)

    def rebuild(self) -> None:
        message = f"{hide_passwords(self.client.url)} is a service: its list is rebuilt on the machine of its store"
        raise ParameterError(message, name="rebuild")

    def accept(self, receipts: Sequence[Receipt], *, freeze: bool) -> Json:
        return self.client.accept([receipt.to_dict() for receipt in receipts], freeze=freeze)

    def set_policy(self, **fields: Any) -> Json:
        policy: Json = self.client.set_policy(**{**fields, "until": _in_utc("until", fields.get("until"))})["policy"]
        return policy

    def add_blocks(self, dataset: str, names: Sequence[str], *, disjoint_users: str | None) -> list[Json]:
        made: list[Json] = self.client.add_blocks(dataset, names, disjoint_users=disjoint_users)["blocks"]
        return made

    def grant(self, **fields: Any) -> Json:
        if "events" in fields:
            plan = parse_event(fields.pop("events"))
            fields["events"] = [part.to_dict() for part in plan.parts]
        if "blocks" in fields:
            fields["blocks"] = list(fields["blocks"])
        return self.client.grant(**fields)

    def add_evidence(self, charge: str, *, verdict: Any, report: str) -> str:
        return self.client.add_evidence(charge, verdict=verdict, report=report)

    def freeze(self, grant: str, *, reason: str) -> str:
        return self.client.freeze(grant, reason=reason)

    def make_token(self, *, name: str, role: str, grants: tuple[str, ...], expires: str | None) -> str:
        return self.client.make_token(name=name, role=role, grants=grants, expires=_in_utc("expires", expires))

    def revoke_token(self, name: str) -> None:
        self.client.revoke_token(name)

    def tokens(self) -> list[Json]:
        return self.client.tokens()

    def close(self) -> None:
        """No-op: every request has its own connection."""


def _in_utc(name: str, moment: object) -> str | None:
    return None if moment is None else read_time(name, moment)


def _state(unit: Stated, claim: Json | None) -> Json:
    """The unit of privacy and the origin of an event, for a service, which makes its own verdict.

    Raises:
        ParameterError: A unit is given beside that of the claim.
    """
    given = claim or {}
    own = given.get("unit")
    if own is not None and unit is not None:
        raise ParameterError(f"the claim has its own unit, {own}; expected no other unit beside it", name="unit")
    about = {name: given[name] for name in _STATED if name in given}
    met = [name for name, how in given["joint"].items() if how] if "joint" in given else None
    return {"unit": unit if own is None else own, "conditions": met, "about": about or None}
