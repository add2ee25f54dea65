"""The open ledger of a service: the book, its thread pool, repeated answers, long checks, token holders, pushed heads.

* `LedgerSession` runs the book's functions in threads, and repeats the answer to a repeated idempotency key.
* `Checks` run the operations that read the whole ledger, checks and exports: one at a time, often longer than a
  request, so a client repeats its request until the answer is there.
* `Holders` cache the holders of tokens, so that requests of strangers use no resources of holders.
* `Pusher` pushes heads to a witness, in a separate thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import Request

from privcheck.errors import PrivcheckError, StateError, StoreError
from privcheck.ledger import Actor, Book, Receipt
from privcheck.ledger.exact import canonical, digest
from privcheck.ledger.grants import find_grant
from privcheck.ledger.idempotency import find_claim, keep_claim, once
from privcheck.ledger.registry import Role, list_holders
from privcheck.ledger.values import CurrencyName
from privcheck.ledger.witnesses import Witness, push_heads
from privcheck.ledger.writer import Writer
from privcheck.service.problems import ProblemError

_MOST: Final = 8  # under way
_PATIENCE: Final = 5.0  # seconds that a request waits
T = TypeVar("T")
_FRESH: Final = 30.0  # seconds in which who asked comes back for the answer


@dataclass(slots=True)
class _Check:
    answer: Future[Any]
    ended: float | None = None

    def end(self, _: Future[Any]) -> None:
        self.ended = time.monotonic()

    def is_old(self) -> bool:
        return self.ended is not None and time.monotonic() - self.ended > _FRESH


@dataclass(slots=True)
class Checks:
    """Pending operations by key; each reads every row, so that they run one at a time."""

    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "privcheck-ledger-check"))
    _running: dict[str, _Check] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def ask(self, key: str, check: Callable[[], T]) -> T | None:
        """Start or join an operation; None while it is in progress: ask again.

        Raises:
            PrivcheckError: The operation's own error.
            ProblemError: Too many operations are under way: 429.
        """
        answer = self._begin(key, check)
        with suppress(Exception):  # what it raises is told below, the end of our patience is not
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(answer)), _PATIENCE)
        if not answer.done():
            return None
        with self._lock:
            self._running.pop(key, None)  # it is told now
        return answer.result()

    def close(self) -> None:
        """Wait for the running operation; queued ones are cancelled."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _begin(self, key: str, check: Callable[[], T]) -> Future[T]:
        with self._lock:
            for old in [name for name, one in self._running.items() if one.is_old()]:
                del self._running[old]  # nobody came back for it, and the ledger has gone on
            if key not in self._running:
                if len(self._running) >= _MOST:
                    raise ProblemError(429, f"{_MOST} checks of the ledger are running: ask again")
                begun = _Check(self._thread.submit(check))
                begun.answer.add_done_callback(begun.end)
                self._running[key] = begun
            return self._running[key].answer


_LOOKUP_FRESH: Final = 1.0  # seconds for which what was read counts
_LOOKUP_PATIENCE: Final = 1.0  # seconds that a request waits to be told apart
_MOST_LOOKUPS: Final = 32  # tokens that are looked up for strangers


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Caller of a request, for quotas and messages only; permissions are checked in the store in any case.

    Attributes:
        bucket: Key of the caller's rate limit: the token's digest, or the address of a stranger.
        role: Role of the token; None for a stranger.
    """

    bucket: str
    role: Role | None = None


@dataclass(slots=True)
class Holders:
    """Tokens of a store, read at most once a second; its one thread also looks up the unknown tokens of strangers.

    A token that was made within the last second may still count as a stranger's; its permissions are not affected.

    Attributes:
        book: The ledger.
        clock: Monotonic time, in seconds.
    """

    book: Book
    clock: Callable[[], float] = time.monotonic
    _roles: dict[str, Role] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "privcheck-holders"))
    _last: Future[None] | None = None
    _begun: float = 0.0
    _waiting: int = 0

    async def find(self, digest: str) -> Role | None:
        """Role of a token by its digest; None if it is unknown, or was not read in time."""
        reading = self._refresh()
        if digest not in self._roles:
            with suppress(TimeoutError, PrivcheckError):
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(reading)), _LOOKUP_PATIENCE)
        return self._roles.get(digest)

    async def check(self) -> None:
        """Check that the store is readable, by an attempt within the last second.

        Raises:
            StoreError: The store cannot be read.
        """
        await asyncio.shield(asyncio.wrap_future(self._refresh()))

    async def look_up(self, digest: str) -> Actor:
        """Find the actor of an unknown token's digest in the store, separately from the requests of holders.

        Raises:
            AuthorityError: The token is unknown, revoked or expired.
            ProblemError: Too many tokens are being looked up: 429.
        """
        if self._waiting >= _MOST_LOOKUPS:
            raise ProblemError(429, f"{_MOST_LOOKUPS} tokens are being looked up: ask again")
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._thread.submit(self.book.find_holder, digest))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Wait for the running lookup; queued ones are not started."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _refresh(self) -> Future[None]:
        last = self._last
        if last is None or (last.done() and self.clock() - self._begun >= _LOOKUP_FRESH):
            self._begun = self.clock()
            self._last = last = self._thread.submit(self._read)
        return last

    def _read(self) -> None:
        with self.book.store.read() as transaction:
            self._roles = list_holders(transaction, now=self.book.now())


_THREADS: Final = 32  # what waits in them is written together
_WAITING: Final = 256  # requests for one of them
_KEPT: Final = 10_000  # keys
_CLOSING: Final = 5.0  # seconds for what waits to be written


@dataclass(slots=True, kw_only=True)
class LedgerSession:
    """An open ledger in a service.

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
        """Find the actor of a token's digest; unknown tokens are looked up in a separate thread.

        Raises:
            AuthorityError: The token is unknown, revoked or expired.
            ProblemError: Too many requests wait already: 429.
        """
        if known:
            return await self.call(self.book.find_holder, digest)
        return await self.holders.look_up(digest)

    async def call(self, function: Callable[..., T], *args: Any, **more: Any) -> T:
        """Call a function of the ledger in the thread pool.

        Raises:
            ProblemError: Too many requests wait already: 429.
        """
        if self._waiting >= _WAITING:
            raise ProblemError(429, f"{_WAITING} requests wait for the ledger: ask again")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *args, **more))
        finally:
            self._waiting -= 1

    async def check_later(self, actor: Actor, receipts: tuple[Receipt, ...]) -> dict[str, Any] | None:
        """Verify the chains; None while that is in progress: ask again."""
        key = digest(actor.name, canonical([receipt.to_dict() for receipt in receipts]))
        found = await self.read_later(key, partial(self.book.verify, actor, receipts=receipts))
        return None if found is None else found.to_dict()

    async def read_later(self, key: str, read: Callable[[], T]) -> T | None:
        """Run a function that reads every row; None while that is in progress: ask again.

        Args:
            key: Requests with the same key share one answer.
            read: The function.
        """
        return await self._checks.ask(key, read)

    def once(
        self, actor: Actor, key: str, asked: Mapping[str, Any], write: Callable[[], dict[str, Any]], *,
        secret: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Run a write once for each key; a secret answer is repeated only while this service runs."""
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
        """Store the content of a claim; in the ledger once it has a verdict, if that is writable."""
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
        """Content of a claim; None without a verdict, and without a request since the service started."""
        with self._lock:
            known = self._claims.get(name)
        if known is not None:
            return known
        with self.book.store.read() as transaction:
            return find_claim(transaction, name)

    def currency_of(self, grant: str) -> CurrencyName:
        """Currency of a grant.

        Raises:
            UnknownNameError: There is no grant of the name.
        """
        with self.book.store.read() as transaction:
            return find_grant(transaction, grant).currency

    def close(self) -> None:
        """Close the store after pending requests finish."""
        self.writer.close(timeout=_CLOSING)
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._checks.close()
        self.holders.close()
        self.book.store.close()


def desk_of(request: Request) -> LedgerSession:
    """The open ledger of a request's application.

    Raises:
        ProblemError: The service has no ledger.
    """
    desk: LedgerSession | None = request.app.state.desk
    if desk is None:
        raise ProblemError(503, "this service keeps no ledger; expected one started with --store URL", public=True)
    return desk


def _forget(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > _KEPT:
        kept.popitem(last=False)


_SERVICE: Final = Actor(name="service", role="reader")
_LOG: Final = logging.getLogger("privcheck.service")


@dataclass(slots=True, kw_only=True)
class Pusher:
    """Pushes the heads of a ledger at intervals; a failed push stops no charge, and is repeated.

    Attributes:
        book: The ledger.
        witness: The witness of its heads.
        seconds: Interval from the end of one push to the next.
        pushed: Time of the last push without a failure or a contradiction, in UTC; None: none yet.
        failure: Reason why the last push failed; empty if it succeeded.
    """

    book: Book
    witness: Witness
    seconds: float
    pushed: str | None = None
    failure: str = ""
    _end: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._work, name="privcheck-ledger-heads", daemon=True)
        self._thread.start()

    def push(self) -> None:
        """Push once; a failure is logged and stored."""
        try:
            done = push_heads(partial(self.book.prove, _SERVICE), self.witness)
            self.failure = "; ".join(done.problems)
        except (PrivcheckError, OSError) as error:
            self.failure = str(error)
        if self.failure:
            _LOG.error("the ledger's heads were not pushed: %s", self.failure)
        else:
            self.pushed = self.book.now()

    def close(self) -> None:
        """Stop after a push that is under way, within a few seconds."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(_CLOSING)

    def _work(self) -> None:
        self.push()
        while not self._end.wait(self.seconds):
            self.push()
