"""Checks before an endpoint runs: rate, length and time limits, JSON, query parameters, and who may ask what.

`Guard` is the middleware around every request; it also adds the headers of every answer. Bodies are JSON in UTF-8, with
every field once and numbers as they are written (`rewrite_json`): a float would lose digits before it could be refused,
and parsers disagree about repeated fields. One table of endpoints has the roles that may use them; callers are
identified by bearer tokens. Query parameters are known and given once each (`check_query`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, Final, NoReturn

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privcheck.errors import AuthorityError
from privcheck.ledger.registry import Action, Actor, digest_token, require
from privcheck.service.problems import FieldProblem, ProblemError, answer_problem, as_problem
from privcheck.service.session import Caller, LedgerSession, desk_of


def rewrite_json(body: bytes) -> bytes:
    """Rewrite a body so that every parser reads it alike; numbers with a fraction or an exponent become texts.

    An empty body stays empty.

    Raises:
        ProblemError: The body is not UTF-8 or nested too deeply (400), or is not JSON, repeats a field, or has a number
            that is not finite or is too long (422).
    """
    if not body:
        return body
    try:
        told = json.loads(
            body.decode("utf-8"), parse_float=str, parse_constant=_refuse_constant, object_pairs_hook=_once
        )
        return json.dumps(told).encode()
    except json.JSONDecodeError as error:  # left as it is, another parser might take it for UTF-16
        _refuse("body", f"expected JSON: {error}")
    except UnicodeDecodeError:
        raise ProblemError(400, "expected a body in UTF-8") from None
    except RecursionError:
        raise ProblemError(400, "expected a body with fewer levels: it is nested too deeply") from None
    except ValueError:
        _refuse("body", "expected numbers with fewer digits")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    told = dict(pairs)
    if len(told) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _refuse(twice[:100], f"the field {twice[:60]!r} is repeated")
    return told


def _refuse_constant(name: str) -> NoReturn:
    _refuse("body", f"expected a finite number, got {name}")


def _refuse(field: str, message: str) -> NoReturn:
    raise ProblemError(422, message, errors=[FieldProblem(field=field, message=message)])


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
    """Token buckets by key; the least recently used one is dropped when there are too many.

    Attributes:
        rate: Requests a second, in the long run.
        burst: Maximum number of requests at once.
        clock: Monotonic time, in seconds.
    """

    rate: float
    burst: int
    clock: Callable[[], float] = time.monotonic
    _levels: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str) -> None:
        """Take one request from a bucket.

        Raises:
            ProblemError: The bucket is empty: 429, with the seconds to wait.
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
    """ASGI middleware: rate by caller, length of the body, time of the request, headers, and an answer to every error.

    Attributes:
        app: The wrapped application.
        buckets: Rate limits, by address and by token.
        seconds: Time limit of one request.
        allowed: The methods of an address.
        check: Refuses ambiguous headers.
        whose: Identifies the caller of a request.
        most: Maximum number of concurrent requests of strangers, and separately of token holders.
        under_way: Present number of requests, of strangers and of holders.
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
        """Answer one request."""
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
                raise ProblemError(429, f"{self.most} requests are being processed: ask again")  # noqa: TRY301
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
            detail = f"no answer within {self.seconds:g} s; something may have been written"
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
    """Read the whole body up to its limit; the rest of a slightly longer body is read and dropped.

    A connection that is closed while its client still sends loses the answer.

    Raises:
        ProblemError: The body is too long: 413.
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
    """A `receive` that replays the buffered body, and then continues with the server's messages."""
    handed = False

    async def give() -> Message:
        nonlocal handed
        if handed:
            return await receive()
        handed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give


# every endpoint with its action in the table of roles; None: anybody, without a token
ENDPOINTS: Final[Mapping[tuple[str, str], Action | None]] = {
    ("POST", "/v1/compose"): None,
    ("POST", "/v1/calibrate"): None,
    ("POST", "/v1/convert"): None,
    ("GET", "/v1/algorithms"): None,
    ("GET", "/v1/algorithms/{name}"): None,
    ("POST", "/v1/algorithms/{name}/budget"): None,
    ("POST", "/v1/algorithms/{name}/verify"): None,
    ("GET", "/v1/healthz"): None,
    ("GET", "/v1/readyz"): None,
    ("POST", "/v1/quotes"): "quote",
    ("POST", "/v1/reservations"): "reserve",
    ("POST", "/v1/reservations/{charge}/commit"): "commit",
    ("POST", "/v1/reservations/{charge}/release"): "release",
    ("POST", "/v1/charges"): "charge",
    ("GET", "/v1/charges/{charge}"): "show",
    ("POST", "/v1/claims"): "quote",
    ("POST", "/v1/evidence"): "evidence",
    ("GET", "/v1/datasets"): "show",
    ("GET", "/v1/datasets/{dataset}"): "show",
    ("GET", "/v1/datasets/{dataset}/curve"): "show",
    ("GET", "/v1/datasets/{dataset}/charges"): "show",
    ("GET", "/v1/receipts/{hash}"): "show",
    ("GET", "/v1/key"): "show",
    ("GET", "/v1/heads"): "verify",
    ("GET", "/v1/export"): "export",
    ("POST", "/v1/datasets"): "policy",
    ("POST", "/v1/datasets/{dataset}/blocks"): "policy",
    ("POST", "/v1/grants"): "grant",
    ("GET", "/v1/grants/{grant}"): "show",
    ("POST", "/v1/grants/{grant}/freeze"): "freeze",
    ("POST", "/v1/verify"): "verify",
    ("POST", "/v1/accept"): "accept",
    ("GET", "/v1/tokens"): "token",
    ("POST", "/v1/tokens"): "token",
    ("DELETE", "/v1/tokens/{name}"): "token",
}
# every page for people, in the same way; None: anybody may, with or without a session
PAGES: Final[Mapping[tuple[str, str], Action | None]] = {
    ("GET", "/login"): None,
    ("POST", "/login"): None,
    ("POST", "/logout"): None,
    ("GET", "/page.css"): None,
    ("GET", "/icon.svg"): None,
    ("GET", "/"): "show",
    ("GET", "/datasets/{dataset}"): "show",
    ("GET", "/charges/{charge}"): "show",
    ("POST", "/charges/{charge}/commit"): "commit",
    ("POST", "/charges/{charge}/release"): "release",
    ("GET", "/what-if"): "quote",
    ("GET", "/queue"): "attest",
    ("GET", "/statement/{dataset}"): "export",
}
_BEARER: Final = HTTPBearer(auto_error=False, description="A token: privcheck ledger token, or POST /v1/tokens.")


async def _find_actor(
    request: Request,
    desk: Annotated[LedgerSession, Depends(desk_of)],
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> Actor:
    """Find the actor of a request's token, and check that the role permits the endpoint's action.

    Raises:
        AuthorityError: The token is missing or unknown, or the role does not permit the action.
    """
    if given is None:
        raise AuthorityError("expected the header Authorization: Bearer TOKEN", known=False)
    caller: Caller = request.state.caller
    actor = await desk.find_holder(digest_token(given.credentials), known=caller.role is not None)
    request.state.caller = replace(caller, role=actor.role)
    action = ENDPOINTS[request.method, request.scope["route"].path]
    assert action is not None, "an endpoint without an action needs no token"
    require(actor, action)
    return actor


Acting = Annotated[Actor, Depends(_find_actor)]


_ONCE: Final = frozenset({
    b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"idempotency-key",
    b"transfer-encoding",
})  # fmt: skip


def check_headers(scope: Mapping[str, Any]) -> None:
    """Refuse an ambiguous request.

    Raises:
        ProblemError: A header of identity or framing is repeated or contradicts another, the body is encoded, or the
            address has an encoded slash, backslash or null (400).
    """
    names = Counter(name for name, _ in scope["headers"])
    if twice := [name.decode() for name in names if name in _ONCE and names[name] > 1]:
        raise ProblemError(400, f"the header {twice[0]} came {names[twice[0].encode()]} times; expected it once")
    if names[b"content-length"] and names[b"transfer-encoding"]:
        raise ProblemError(400, "the headers Content-Length and Transfer-Encoding both give the length of the body")
    if dict(scope["headers"]).get(b"content-encoding", b"identity").lower() != b"identity":
        raise ProblemError(400, "expected a body without Content-Encoding")
    if re.search(rb"%(2f|5c|00)", scope.get("raw_path") or b"", re.IGNORECASE):
        raise ProblemError(400, "expected an address without %2F, %5C and %00: names never contain them")


async def check_query(request: Request) -> None:
    """Refuse unknown query parameters: a misspelt filter would be ignored, and everything returned.

    Raises:
        ProblemError: A parameter is unknown, or repeated: 422.
    """
    if not request.query_params:
        return
    described = request.app.openapi()["paths"][request.scope["route"].path][request.method.lower()]
    known = sorted(one["name"] for one in described.get("parameters", ()) if one["in"] == "query")
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known or count > 1:
            expected = f"expected one of {', '.join(known)}" if known else "expected none"
            message = f"{expected}, each at most once; got {name[:60]!r}"
            raise ProblemError(422, message, errors=[FieldProblem(field=name[:100], message=message)])


def allowed_methods(path: str) -> str:
    """Methods of an address, in the format of the header Allow; empty if there are none."""
    found = {method for method, pattern in _patterns() if pattern.fullmatch(path)}
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    every = (*ENDPOINTS, *PAGES, ("GET", "/v1/openapi.json"))
    parts = [(method, re.split(r"\{\w+\}", path)) for method, path in every]
    return tuple((method, re.compile("[^/]+".join(map(re.escape, of)))) for method, of in parts)
