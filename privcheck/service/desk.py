"""The open ledger of a service: the book, the threads that may touch it, and answers that are given again."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import Request

from privcheck.errors import StateError, StoreError
from privcheck.ledger import Actor, Book, Receipt
from privcheck.ledger.exact import canonical, digest
from privcheck.ledger.granting import find_grant
from privcheck.ledger.keys import find_claim, keep_claim, once
from privcheck.ledger.values import CurrencyName
from privcheck.ledger.writer import Writer
from privcheck.service.checks import Checks
from privcheck.service.holders import Holders
from privcheck.service.problems import ProblemError

_THREADS: Final = 32  # what waits in them is written together
_WAITING: Final = 256  # requests for one of them
_KEPT: Final = 10_000  # keys
_CLOSING: Final = 5.0  # seconds for what waits to be written
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Desk:
    """An open ledger.

    Attributes:
        book: The ledger.
        writer: Writes its charges and reservations, many at a time.
    """

    book: Book
    writer: Writer
    holders: Holders = field(init=False)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(_THREADS, "privcheck-ledger"))
    _waiting: int = 0
    _told: OrderedDict[tuple[str, str], dict[str, Any]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _claims: OrderedDict[str, dict[str, Any]] = field(default_factory=OrderedDict)
    _judged: set[str] = field(default_factory=set)
    _telling: threading.Lock = field(default_factory=threading.Lock)
    _checks: Checks = field(default_factory=Checks)

    def __post_init__(self) -> None:
        self.holders = Holders(self.book)

    async def find_holder(self, digest: str, *, known: bool) -> Actor:
        """Whose token has a digest; one that is not known is looked up apart, however many there are.

        Raises:
            AuthorityError: It is unknown, revoked or over.
            ProblemError: Too many wait already: 429.
        """
        if known:
            return await self.call(self.book.find_holder, digest)
        return await self.holders.look_up(digest)

    async def call(self, function: Callable[..., T], *args: Any, **more: Any) -> T:
        """Returns what a function of the ledger returns, called in one of a few threads.

        Raises:
            ProblemError: Too many wait already: 429.
        """
        if self._waiting >= _WAITING:
            raise ProblemError(429, f"{_WAITING} requests wait for the ledger: ask again")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *args, **more))
        finally:
            self._waiting -= 1

    async def check_later(self, actor: Actor, receipts: tuple[Receipt, ...]) -> dict[str, Any] | None:
        """Returns whether the chains fit together; None while that is being read: it is to be asked for again."""
        key = digest(actor.name, canonical([receipt.to_dict() for receipt in receipts]))
        found = await self._checks.ask(key, partial(self.book.verify, actor, receipts=receipts))
        return None if found is None else found.to_dict()

    def once(
        self, actor: Actor, key: str, asked: Mapping[str, Any], write: Callable[[], dict[str, Any]], *,
        secret: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Returns what a write answers, or has answered when the same key came before; a secret while this runs."""
        if not secret:
            return once(self.book, actor, key, asked, write)
        with self._telling:
            try:
                told = once(self.book, actor, key, asked, write, secret=True)
            except StateError:  # it was told before
                if (actor.name, key) not in self._told:
                    raise
                return self._told[actor.name, key]
            self._told[actor.name, key] = told
            _forget(self._told)
            return told

    def remember_claim(self, name: str, about: Mapping[str, Any], *, judged: bool) -> None:
        """Keeps what a claim is about: once it was judged in the store, where that can be written."""
        with self._lock:
            self._claims[name] = dict(about)
            _forget(self._claims)
            new = judged and name not in self._judged
            if new and len(self._judged) < _KEPT:
                self._judged.add(name)
        if new:
            with suppress(StoreError), self.book.write() as transaction:
                keep_claim(transaction, name, about)

    def recall_claim(self, name: str) -> dict[str, Any] | None:
        """Returns what a claim is about; None where it was never judged, nor asked for since the service started."""
        with self._lock:
            known = self._claims.get(name)
        if known is not None:
            return known
        with self.book.store.read() as transaction:
            return find_claim(transaction, name)

    def currency_of(self, grant: str) -> CurrencyName:
        """Returns the currency of a grant.

        Raises:
            UnknownNameError: There is none of the name.
        """
        with self.book.store.read() as transaction:
            return find_grant(transaction, grant).currency

    def close(self) -> None:
        """Lets go of the store, once what is under way has ended."""
        self.writer.close(timeout=_CLOSING)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._checks.close()
        self.holders.close()
        self.book.store.close()


def desk_of(request: Request) -> Desk:
    """Returns the open ledger.

    Raises:
        ProblemError: The service has none.
    """
    desk: Desk | None = request.app.state.desk
    if desk is None:
        raise ProblemError(503, "this service keeps no ledger; expected one started with --store URL", public=True)
    return desk


def _forget(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > _KEPT:
        kept.popitem(last=False)
