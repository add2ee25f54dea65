"""What stands before every request: who asks, a length, a time, a rate; and headers behind every answer."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privcheck.service.bodies import rewrite_json
from privcheck.service.holders import Caller
from privcheck.service.problems import ProblemError, answer_problem, as_problem

BODY_BYTES: Final = 64 * 1024
_DRAINED_BYTES: Final = 16 * BODY_BYTES
MOST_EVENTS: Final = 10_000
MOST_COUNT: Final = 10**9
_BUCKETS: Final = 10_000  # addresses or tokens that are remembered
# an answer costs no more than a refusal, and an officer at the address of a stranger who asks too often gets in
_UNCOUNTED: Final = frozenset({"/login", "/page.css", "/icon.svg"})
_LOG: Final = logging.getLogger("privcheck.service")

_HEADERS: Final = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"cross-origin-resource-policy": b"same-origin",
}


@dataclass(slots=True, kw_only=True)
class Buckets:
    """Token buckets by key; the one that was used longest ago is forgotten when there are too many.

    Attributes:
        rate: Requests a second, in the long run.
        burst: Requests at once.
        clock: Seconds that only rise.
    """

    rate: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str) -> None:
        """Takes one request from a bucket.

        Raises:
            ProblemError: It is empty: 429, with the seconds to wait.
        """
        with self._lock:
            now = self.clock()
            level, then = self._levels.pop(key, (float(self.burst), now))
            level = min(self.burst, level + (now - then) * self.rate)
            self._levels[key] = (level - 1 if level >= 1 else level, now)
            if len(self._levels) > _BUCKETS:
                self._levels.popitem(last=False)
        if level < 1:
            seconds = max(1, math.ceil((1 - level) / self.rate))
            detail = f"too many requests: at most {self.burst} at once and {self.rate:g} a second"
            raise ProblemError(429, detail, headers={"Retry-After": str(seconds)})


@dataclass(slots=True)
class Guard:
    """ASGI middleware: rate by caller, length of the body, time of the request, headers, and no error unanswered.

    Attributes:
        app: What stands behind it.
        buckets: By address, and by token.
        seconds: Of one request.
        allowed: The methods of an address.
        check: Refuses headers that cannot be understood in one way.
        whose: Who sends a request.
        most: Requests of strangers under way at the same time, and as many of those who hold a token.
        under_way: How many there are now, of strangers and of holders.
    """

    app: ASGIApp
    buckets: Buckets
    seconds: float
    allowed: Callable[[str], str]
    check: Callable[[Scope], None]
    whose: Callable[[Scope], Awaitable[Caller]]
    most: int = 256
    under_way: list[int] = field(default_factory=lambda: [0, 0])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        caller = await self.whose(scope)
        scope.setdefault("state", {})["caller"] = caller
        holds = caller.role is not None
        self.under_way[holds] += 1
        try:
            await self._bounded(caller, scope, receive, send)
        finally:
            self.under_way[holds] -= 1

    async def _bounded(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                _add_headers(message, allow=self.allowed(scope["path"]) if message["status"] == 405 else None)
            await send(message)

        try:
            if self.under_way[caller.role is not None] > self.most:
                raise ProblemError(429, f"{self.most} requests are under way: ask again")  # noqa: TRY301
            if scope["path"] not in _UNCOUNTED:
                self.buckets.take(caller.bucket)
            async with asyncio.timeout(self.seconds):
                self.check(scope)
                body = await _read(scope, receive)
                if scope["path"].startswith("/v1/") and _is_json(scope):
                    body = rewrite_json(body)
                if scope["method"] == "HEAD":  # whose body the server leaves out
                    scope = {**scope, "method": "GET"}
                await self.app(scope, _again(body, receive), answer)
        except Exception as error:
            problem = self._problem(error)
            if problem.status == 500:
                _LOG.exception("internal error at %s", scope.get("path", "")[:100].encode("ascii", "replace").decode())
            if begun:
                raise
            await answer_problem(problem, scope)(scope, receive, answer)

    def _problem(self, error: Exception) -> ProblemError:
        if isinstance(error, TimeoutError):
            detail = f"no answer within {self.seconds:g} s; whether anything was written is not known"
            closed = {"Connection": "close"}  # what it still sends is of nobody's interest
            again = f"{detail}: ask again, a write with the same Idempotency-Key"
            return ProblemError(503, again, headers=closed, public=True)
        return as_problem(error)


def _is_json(scope: Scope) -> bool:
    said: bytes = dict(scope["headers"]).get(b"content-type", b"")
    given = said.partition(b";")[0].strip().lower()
    return given == b"application/json" or (given.startswith(b"application/") and given.endswith(b"+json"))


def _add_headers(message: MutableMapping[str, Any], *, allow: str | None) -> None:
    given = [(name.lower(), value) for name, value in message.get("headers", ())]
    if allow is not None:
        given = [(name, value) for name, value in given if name != b"allow"] + [(b"allow", allow.encode())]
    names = {name for name, _ in given}
    message["headers"] = [*given, *((name, value) for name, value in _HEADERS.items() if name not in names)]


async def _read(scope: Scope, receive: Receive) -> bytes:
    """Returns the whole body, which is short; of one that is not much too long the rest is read and forgotten.

    A connection that is closed while its client still sends loses the answer.

    Raises:
        ProblemError: It is too long: 413.
    """
    said = dict(scope["headers"]).get(b"content-length", b"")
    stated, size, read, more = int(said[:20]) if said.isdigit() else 0, 0, bytearray(), True
    while more and max(stated, size) <= _DRAINED_BYTES:
        message = await receive()
        if message["type"] != "http.request":
            break  # the client has gone
        part = message.get("body", b"")
        size += len(part)
        if size <= BODY_BYTES:
            read += part
        more = message.get("more_body", False)
    if max(stated, size) > BODY_BYTES:
        raise ProblemError(413, f"the body is longer than {BODY_BYTES} bytes", headers={"Connection": "close"})
    return bytes(read)


def _again(body: bytes, receive: Receive) -> Receive:
    """Returns what hands out the body that was read, and then what the server says."""
    handed = False

    async def give() -> Message:
        nonlocal handed
        if handed:
            return await receive()
        handed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
