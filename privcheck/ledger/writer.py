"""One writer for all threads of a process: waiting requests are written together, in one transaction.

A disk writes through some hundreds of times a second, however many callers there are; so the requests that arrive while
one transaction is written share the next one. Each is validated, authorised and priced before it is queued
(`Book.prepare`). If a transaction fails nevertheless, each of its requests is written alone, so that a bad one affects
no other. A request is answered once its transaction is on the disk.
"""

from __future__ import annotations

import queue
import secrets
import threading
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Unpack

from privcheck.errors import AuthorityError, FullError, IdempotencyError, StoreError
from privcheck.ledger import registry, rows
from privcheck.ledger.book import Book
from privcheck.ledger.registry import Actor
from privcheck.ledger.store import Transaction
from privcheck.ledger.transitions import Asked, AskedFor, Prepared
from privcheck.ledger.values import Decision

MOST: Final = 256  # requests of a transaction
WAITING: Final = 1024  # requests that may wait; more are refused at once
TIMEOUT: Final = 10.0  # seconds until a request is told that its outcome is not known


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Request:
    prepared: Prepared
    answer: Future[Decision] = field(default_factory=Future)


class Writer:
    """Writes charges and reservations to a book, many in one transaction; its calls are those of `Book`.

    Args:
        book: The ledger.
        most: Maximum number of requests of a transaction.
        waiting: Maximum number of waiting requests.
        timeout: Seconds until an unanswered request fails with an unknown outcome.
    """

    def __init__(self, book: Book, *, most: int = MOST, waiting: int = WAITING, timeout: float = TIMEOUT) -> None:
        self.book = book
        self._most, self._timeout = most, timeout
        self._queue: queue.Queue[_Request | None] = queue.Queue(maxsize=waiting)
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="privcheck-ledger-writer", daemon=True)
        self._thread.start()

    def charge(self, actor: Actor, **asked: Unpack[Asked]) -> Decision:
        """Charge a release before its noise is drawn, as `Book.charge` does.

        Raises:
            FullError: Too many requests wait.
            PrivcheckError: As of `Book.charge`.
        """
        return self.submit(self.book.prepare(actor, "charge", **asked))

    def reserve(self, actor: Actor, **asked: Unpack[AskedFor]) -> Decision:
        """Reserve budget for a run, as `Book.reserve` does.

        Raises:
            FullError: Too many requests wait.
            PrivcheckError: As of `Book.reserve`.
        """
        return self.submit(self.book.prepare(actor, "reserve", **asked))

    def submit(self, prepared: Prepared) -> Decision:
        """Submit a prepared request, and return its decision once it is on the disk.

        A request without a key gets one, so that writing it a second time, if the outcome of the first attempt is
        unknown, does not charge twice.

        Raises:
            FullError: Too many requests wait.
            PrivcheckError: As of `Book.apply`.
            StoreError: It is unknown whether it was written: ask again with the same key.
        """
        request = _Request(prepared=prepared if prepared.key else replace(prepared, key=f"w-{secrets.token_hex(12)}"))
        if self._closed:
            raise StoreError(f"{self.book.store.url}: the ledger is being closed; ask again with the same key")
        try:
            self._queue.put_nowait(request)
        except queue.Full:
            message = f"{self._queue.maxsize} requests are already waiting; ask again later with the same key"
            raise FullError(message) from None
        try:
            return request.answer.result(self._timeout)
        except Late:
            request.answer.cancel()  # it is left out where it was not begun
            message = f"{self.book.store.url}: no answer within {self._timeout:g} s; ask again with the same key"
            raise StoreError(message) from None

    def close(self, *, timeout: float = TIMEOUT) -> None:
        """Write the waiting requests and stop; the others fail with an unknown outcome.

        Args:
            timeout: Maximum number of seconds to wait.
        """
        self._closed = True
        with suppress(queue.Full):
            self._queue.put(None, timeout=timeout)
        self._thread.join(timeout)
        while True:
            try:
                request = self._queue.get_nowait()
            except queue.Empty:
                return
            if request is not None:
                _fail(request, StoreError("the ledger was closed; ask again with the same key"))

    def _work(self) -> None:
        while True:
            request = self._queue.get()
            taken = [request]
            with suppress(queue.Empty):
                while len(taken) < self._most:
                    taken.append(self._queue.get_nowait())
            batch = [r for r in taken if r is not None and r.answer.set_running_or_notify_cancel()]
            # datasets are locked in the order of their names, whoever else writes
            batch.sort(key=lambda r: r.prepared.grant.dataset)
            if batch:
                self._write(batch)
            if None in taken:
                return

    def _write(self, batch: list[_Request]) -> None:
        """Write requests together, or one by one if that fails."""
        answers: list[Decision | AuthorityError | IdempotencyError] = []
        try:
            with self.book.write() as transaction:
                holders = {request.prepared.actor.holder for request in batch}
                registry.look_up(transaction, holders, now=self.book.now())
                _look_up_keys(transaction, batch)
                for request in batch:
                    try:
                        answers.append(self.book.apply(transaction, request.prepared))
                    except (AuthorityError, IdempotencyError) as error:  # told before anything is written
                        answers.append(error)
        except BaseException as error:  # noqa: BLE001 - every one of them has to be answered
            lasting = isinstance(error, StoreError) and error.read_only
            if len(batch) > 1 and not lasting:
                for request in batch:
                    self._write([request])
                return
            for request in batch:
                _fail(request, error)
            return
        for request, answer in zip(batch, answers, strict=True):
            if isinstance(answer, (AuthorityError, IdempotencyError)):
                _fail(request, answer)
            else:
                with suppress(InvalidStateError):
                    request.answer.set_result(answer)


def _look_up_keys(transaction: Transaction, batch: list[_Request]) -> None:
    """Look up the keys of all requests, one query for each actor, and then lock their datasets."""
    wanted: dict[str, list[str]] = {}
    for request in batch:
        wanted.setdefault(request.prepared.actor.name, []).append(str(request.prepared.key))
    for actor in sorted(wanted):
        rows.find_requests(transaction, actor, wanted[actor])
    for request in batch:
        transaction.lock(request.prepared.grant.dataset)


def _fail(request: _Request, error: BaseException) -> None:
    with suppress(InvalidStateError):
        request.answer.set_exception(error)
