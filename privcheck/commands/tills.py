"""Where a run pays: a store on this computer, or a service; the same five questions to either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from privcheck.commands.ledger_work import Desk, open_desk, read_token
from privcheck.errors import AuthorityError, UnknownNameError
from privcheck.ledger.values import Unit, read_unit

Json = dict[str, Any]


class Till(Protocol):
    """Reserves and commits what a run costs; answers are those of the ledger, as JSON."""

    def currency(self, grant: str) -> Unit:
        """Returns what a grant is summed in."""

    def reserve(self, grant: str, event: Json, claim: Json, key: str | None) -> Json:
        """Sets budget aside."""

    def commit(self, charge: str) -> Json:
        """Commits a reservation."""

    def release(self, charge: str, why: str) -> None:
        """Gives a reservation back."""

    def state(self, charge: str) -> str:
        """Returns in which state a charge is."""


@contextmanager
def open_till(url: str) -> Iterator[Till]:
    """Yields the till at a store's or a service's URL; who pays is in PRIVCHECK_LEDGER_TOKEN.

    Raises:
        AuthorityError: A service is asked without a token.
        StoreError: There is no ledger.
    """
    if not url.startswith(("http://", "https://")):
        desk = open_desk(url, None)
        try:
            yield _Store(desk)
        finally:
            desk.book.store.close()
        return
    token = read_token(None)
    if not token:
        message = f"{url} asks who pays: expected a token in PRIVCHECK_LEDGER_TOKEN"
        raise AuthorityError(message, action="reserve", known=False)
    from privcheck.client import Client

    yield _Service(Client(url, token=token))


class _Store:
    def __init__(self, desk: Desk) -> None:
        self._book, self._actor = desk.book, desk.actor

    def currency(self, grant: str) -> Unit:
        return self._book.find_grant(self._actor, grant).currency

    def reserve(self, grant: str, event: Json, claim: Json, key: str | None) -> Json:
        return self._book.reserve(self._actor, grant=grant, event=event, claim=claim, key=key).to_dict()

    def commit(self, charge: str) -> Json:
        return self._book.commit(self._actor, charge).to_dict()

    def release(self, charge: str, why: str) -> None:
        self._book.release(self._actor, charge, evidence=why)

    def state(self, charge: str) -> str:
        return self._book.find_charge(self._actor, charge).state


class _Service:
    """A service judges claims where they are named; here the event says what the accountant found, and of whom."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def currency(self, grant: str) -> Unit:
        units = {one["name"]: one["currency"] for each in self._client.show()["datasets"] for one in each["grants"]}
        if grant not in units:
            raise UnknownNameError("grant", grant, sorted(units))
        return "events" if units[grant] == "events" else read_unit(units[grant])

    def reserve(self, grant: str, event: Json, claim: Json, key: str | None) -> Json:
        stated: Json = {name: claim[name] for name in ("relation", "model") if name in claim}
        if "joint" in claim:
            stated["conditions"] = [name for name, how in claim["joint"].items() if how]
        answer: Json = self._client.reserve(grant=grant, event=event, key=key, **stated)
        return answer

    def commit(self, charge: str) -> Json:
        answer: Json = self._client.commit(charge)
        return answer

    def release(self, charge: str, why: str) -> None:
        self._client.release(charge, evidence=why)

    def state(self, charge: str) -> str:
        return str(self._client.find_charge(charge)["state"])
