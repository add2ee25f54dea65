"""Who is known to hold a token, so that what strangers ask for takes nothing from those who hold one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from privcheck.errors import PrivcheckError
from privcheck.ledger import Actor, Book
from privcheck.ledger.roles import Role
from privcheck.ledger.tokens import list_holders
from privcheck.service.problems import ProblemError

_FRESH: Final = 1.0  # seconds for which what was read counts
_PATIENCE: Final = 1.0  # seconds that a request waits to be told apart
_WAITING: Final = 32  # tokens that are looked up for strangers


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, as far as quotas and messages go; what a caller may do is asked of the store in any case.

    Attributes:
        bucket: Whose requests are counted together: the token's digest, or the address of a stranger.
        role: Of the token; None of a stranger.
    """

    bucket: str
    role: Role | None = None


@dataclass(slots=True)
class Holders:
    """The tokens that a store has, read at most once a second, by one thread that does nothing else for strangers.

    A token that was made within the last second may still count as a stranger's; it opens what it opens nevertheless.

    Attributes:
        book: Whose tokens they are.
        clock: Seconds that only rise.
    """

    book: Book
    clock: Callable[[], float] = time.monotonic
    _roles: dict[str, Role] = field(default_factory=dict)
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "privcheck-holders"))
    _last: Future[None] | None = None
    _begun: float = 0.0
    _waiting: int = 0

    async def find(self, digest: str) -> Role | None:
        """The role of a token by its digest; None where it is not known, or was not in time."""
        reading = self._refresh()
        if digest not in self._roles:
            with suppress(TimeoutError, PrivcheckError):
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(reading)), _PATIENCE)
        return self._roles.get(digest)

    async def check(self) -> None:
        """Ask whether the store can be read, which was tried within the last second.

        Raises:
            StoreError: It cannot.
        """
        await asyncio.shield(asyncio.wrap_future(self._refresh()))

    async def look_up(self, digest: str) -> Actor:
        """Whose token has a digest that is not known: asked of the store, apart from what holders ask.

        Raises:
            AuthorityError: It is unknown, revoked or over.
            ProblemError: Too many are being looked up: 429.
        """
        if self._waiting >= _WAITING:
            raise ProblemError(429, f"{_WAITING} tokens are being looked up: ask again")
        self._waiting += 1
        try:
            return await asyncio.wrap_future(self._thread.submit(self.book.find_holder, digest))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Wait for the lookup that runs; the others are not begun."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _refresh(self) -> Future[None]:
        last = self._last
        if last is None or (last.done() and self.clock() - self._begun >= _FRESH):
            self._begun = self.clock()
            self._last = last = self._thread.submit(self._read)
        return last

    def _read(self) -> None:
        with self.book.store.read() as transaction:
            self._roles = list_holders(transaction, now=self.book.now())
