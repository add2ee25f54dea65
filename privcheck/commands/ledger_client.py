"""Where commands and runs ask the ledger: a store on this computer, or a service; the same questions to either.

Answers are the ledger's as JSON, and errors those of `privcheck.ledger.Book`, whichever of the two it is.
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
    """A ledger, and who asks it."""

    @property
    def service(self) -> Client | None:
        """Returns the client, where it is a service, which judges claims itself; None of a store."""

    def currency(self, grant: str) -> CurrencyName:
        """Returns what a grant is summed in."""

    def quote(self, *, grant: str, event: Spending, unit: Stated, blocks: Sequence[str] | None) -> Json:
        """Returns what a charge would cost; nothing is written."""

    def charge(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Charges what is about to be released, with its unit beside it or in the claim; a refusal is an answer."""

    def reserve(
        self, *, grant: str, event: object, key: str | None, unit: Stated = None, claim: Json | None = None,
        seconds: int = 3600, blocks: Sequence[str] | None = None,
    ) -> Json:  # fmt: skip
        """Sets budget aside."""

    def commit(self, charge: str) -> Json:
        """Commits a reservation."""

    def release(self, charge: str, *, evidence: str) -> Json:
        """Gives a reservation back."""

    def find_charge(self, charge: str) -> Json:
        """Returns a charge as it stands."""

    def show(self, dataset: str | None = None) -> Json:
        """Returns all datasets, or one."""

    def charges(self, dataset: str) -> Iterator[Json]:
        """Yields all charges to a dataset, in order."""

    def verify(
        self, receipts: Sequence[Receipt], heads: Sequence[Head] = (), *, checkpoint: Path | None = None
    ) -> Json:
        """Returns whether the chains fit together, and still have what receipts and heads were given for.

        Where a file of an earlier check is given, what that has read is not read again, and the file goes on.
        """

    def public_key(self) -> Json:
        """Returns the key that checks receipts and heads: `key` in PEM, `fingerprint`."""

    def prove(self, kept: Evidence) -> tuple[Evidence, list[str]]:
        """Returns the signed heads of now, with proofs that what was kept is in them, and what contradicts it."""

    def rebuild(self) -> None:
        """Writes the list of open reservations anew, from the rows."""

    def accept(self, receipts: Sequence[Receipt], *, freeze: bool) -> Json:
        """Lets a store be written again that was put back, once it was compared."""

    def set_policy(self, **fields: Any) -> Json:
        """Opens a dataset; returns its policy."""

    def add_blocks(self, dataset: str, names: Sequence[str], *, disjoint_users: str | None) -> list[Json]:
        """Divides a dataset; returns all blocks that it has."""

    def grant(self, **fields: Any) -> Json:
        """Makes a grant, with the fields of `Book.grant`, or of `Book.plan`; returns it with its policy."""

    def add_evidence(self, charge: str, *, verdict: Any, report: str) -> str:
        """Adds what an audit found; returns the row's hash."""

    def freeze(self, grant: str, *, reason: str) -> str:
        """Stops all spending on a grant; returns the row's hash."""

    def make_token(self, *, name: str, role: str, grants: tuple[str, ...], expires: str | None) -> str:
        """Returns a new token."""

    def revoke_token(self, name: str) -> None:
        """Ends a token."""

    def tokens(self) -> list[Json]:
        """Returns whose tokens there are."""

    def close(self) -> None:
        """Lets go of what is open."""


def read_token(token_file: Path | None) -> str:
    """Returns the token of a file, or else of the environment; empty where there is none."""
    return (os.environ.get(TOKEN, "") if token_file is None else token_file.read_text(encoding="utf-8")).strip()


def local_officer() -> Actor:
    """The user of this computer, by the number under which this process runs, who may do all that the file allows.

    The environment is not asked: whoever could choose a name there would attest his or her own reservations.
    """
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a number without a name
        user = str(os.getuid())
    return Actor(name=f"local-{re.sub(r'[^A-Za-z0-9._-]', '-', user)}", role="officer")


def make_ledger(url: str) -> Json:
    """Returns the first officer's token of a new ledger.

    Raises:
        ParameterError: It is to be made where a service keeps it.
    """
    if is_service(url):
        message = f"{hide_passwords(url)} is a service: a ledger is made where its store is, by privcheck serve"
        raise ParameterError(f"{message} there, or privcheck ledger init --store PATH", name="store", given=url)
    check_installed()  # before there is a file
    store = create_store(url)
    try:
        _, token = Book.init(store)
    finally:
        store.close()
    return {"store": store.url, "officer_token": token}


def open_desk(url: str, token_file: Path | None) -> Desk:
    """Returns a ledger and who asks it: by a token, or the user who may write the file.

    Raises:
        AuthorityError: The token is unknown, revoked or over, or there is none and the store is not a file.
        StoreError: There is no ledger.
    """
    if is_service(url):
        return _open_service(url, read_token(token_file))
    return _Store(*open_book(url, token_file))


def open_book(url: str, token_file: Path | None) -> tuple[Book, Actor]:
    """Returns the ledger of a store, and who asks it; errors as of `open_desk`.

    Raises:
        ParameterError: It is a service.
    """
    _refuse_service(url)
    token = read_token(token_file)
    book = Book(open_store(url))
    if not token and not book.store.url.startswith("sqlite:"):
        book.store.close()
        message = f"expected a token in {TOKEN} or --token-file: only who may write a SQLite file needs none"
        raise AuthorityError(message, known=False)
    command = click.get_current_context(silent=True)
    if command is not None:
        command.call_on_close(book.store.close)
    return book, book.find_actor(token) if token else local_officer()


def put_back(url: str, file: Path, *, replace_newer: bool) -> Json:
    """Puts a backup in the place of a ledger; whoever may make one there may do so, and officers alone write to it.

    Raises:
        ParameterError: It is a service.
        StoreError: What is there is in use, newer, another ledger or broken.
    """
    _refuse_service(url)
    stamp = datetime.now(UTC).strftime("%Y%m%d_%H%M%S_%f")
    return {**restore(url, file, replace_newer=replace_newer, stamp=stamp).to_dict(), "url": hide_passwords(url)}


@contextmanager
def open_till(url: str) -> Iterator[Desk]:
    """Yields the ledger that a run pays; who pays is in PRIVCHECK_LEDGER_TOKEN. Errors as of `open_desk`."""
    desk = open_desk(url, None)
    try:
        yield desk
    finally:
        desk.close()


def is_service(url: str) -> bool:
    """Returns whether a ledger's URL is that of a service."""
    return url.lower().startswith(("http://", "https://"))


def _refuse_service(url: str) -> None:
    if is_service(url):
        message = f"{hide_passwords(url)} is a service: its store is backed up and put back where that is"
        raise ParameterError(f"{message}: give --store PATH or postgresql://…", name="store", given=hide_passwords(url))


def _open_service(url: str, token: str) -> _Service:
    if not token:
        message = f"{hide_passwords(url)} asks who pays: expected a token in {TOKEN} or --token-file"
        raise AuthorityError(message, known=False)
    from privcheck.ledger.client import Client

    return _Service(Client(url, token))


class _Store:
    """A store on this computer, or one that it reaches itself."""

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
    """A service: it knows who asks by the token, and reads what it is sent as a store does."""

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
            message = f"{hide_passwords(self.client.url)} is a service, which reads its store itself: a checkpoint is"
            raise ParameterError(f"{message} for who reads the store; leave it out", name="checkpoint")
        return self.client.verify([receipt.to_dict() for receipt in receipts])

    def public_key(self) -> Json:
        return self.client.public_key()

    def prove(self, kept: Evidence) -> tuple[Evidence, list[str]]:
        self._refuse((*kept.heads, *kept.receipts))
        return Evidence(heads=tuple(Head.parse(one) for one in self.client.heads())), []

    def _refuse(self, kept: Sequence[object]) -> None:
        if kept:
            message = "a service shows its heads, and compares none: ask where its store is, with --store PATH"
            raise ParameterError(message, name="store", given=self.client.url)

    def rebuild(self) -> None:
        message = f"{hide_passwords(self.client.url)} is a service: its list is rebuilt where its store is"
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
        """Does nothing: every request has a connection of its own."""


def _in_utc(name: str, moment: object) -> str | None:
    return None if moment is None else read_time(name, moment)


def _state(unit: Stated, claim: Json | None) -> Json:
    """The unit of privacy and the origin of an event, for a service; the verdict is the service's own.

    Raises:
        ParameterError: There is a unit beside the claim's.
    """
    given = claim or {}
    own = given.get("unit")
    if own is not None and unit is not None:
        raise ParameterError(f"the claim has a unit of its own, {own}; expected no other beside it", name="unit")
    about = {name: given[name] for name in _STATED if name in given}
    met = [name for name, how in given["joint"].items() if how] if "joint" in given else None
    return {"unit": unit if own is None else own, "conditions": met, "about": about or None}
