"""The FastAPI application: its routes and pages, the ledger that it opens, its HTTP protocol, its OpenAPI document.

The protocol is HTTP/1.1 alone, with a time limit for headers, and answers a malformed request with a problem
(`PatientProtocol`). The ledger is the existing one, or a new one (`open_or_create`). `python -m privcheck.service.app >
docs/openapi.json` writes the committed document.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import h11
from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from privcheck import __version__
from privcheck.errors import StoreError
from privcheck.ledger import Book, create_store, open_store
from privcheck.ledger.witnesses import open_witness
from privcheck.ledger.writer import Writer
from privcheck.service import calculation_routes, ledger_routes
from privcheck.service.access import Buckets, Guard, allowed_methods, check_headers
from privcheck.service.calculator import Calculator, Calculators
from privcheck.service.pages import forms, lists, login
from privcheck.service.pages.login import LoginNeededError, NoLedgerError, Sessions, find_caller
from privcheck.service.pages.rendering import render
from privcheck.service.problems import ProblemDetails, answer_problems
from privcheck.service.session import LedgerSession, Pusher

ROUTERS: Final = (login.router, lists.router, forms.what_if_router, forms.router)


def add_pages(app: FastAPI, *, secure: bool) -> None:
    """Add the pages, which are not in the OpenAPI document.

    Args:
        app: The application; its state has the open ledger.
        secure: Whether browsers reach it by TLS, whatever scheme its requests have.
    """
    app.state.sessions = Sessions()
    app.state.secure = secure
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.add_exception_handler(LoginNeededError, _to_login)
    app.add_exception_handler(NoLedgerError, _say_no_ledger)


def _to_login(request: Request, _: Exception) -> Response:
    where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    back = f"?next={quote(where, safe='/')}" if request.method == "GET" and where != "/" else ""
    return RedirectResponse(f"/login{back}", status_code=303)


def _say_no_ledger(request: Request, _: Exception) -> Response:
    return render("no_ledger", request.scope, {}, status=200 if request.url.path == "/" else 404)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the service.

    Attributes:
        store: URL of the ledger's store; None for calculations alone.
        seconds: Time limit of one request.
        calculation_seconds: Time limit of one calculation.
        rate: Requests a second of one token, or of all strangers at one address, in the long run.
        burst: Maximum number of requests at once.
        processes: Worker processes for token holders; one more is for strangers. Without a store they are shared.
        push_heads: The witness that the ledger's heads are pushed to; None for none.
        push_seconds: Interval between pushes.
        secure: Whether browsers reach the service by TLS that a proxy terminates; the service's own TLS is detected.
    """

    store: str | None = None
    seconds: float = 10.0
    calculation_seconds: float = 5.0
    rate: float = 100.0
    burst: int = 300
    processes: int = 2
    push_heads: str | None = None
    push_seconds: float = 300.0
    secure: bool = False


def create_app(settings: Settings | None = None) -> FastAPI:
    """Create the service as an ASGI application.

    Raises:
        ParameterError: The place for heads is invalid.
        StoreError: There is no ledger at the store's URL.
    """
    chosen = settings or Settings()
    own = Calculator(processes=chosen.processes, seconds=chosen.calculation_seconds)
    apart = own if chosen.store is None else Calculator(processes=1, seconds=chosen.calculation_seconds)
    calculators = Calculators(holders=own, strangers=apart)
    desk = pusher = None
    if chosen.store is not None:
        book = Book(open_store(chosen.store))
        writer = Writer(book, timeout=0.9 * chosen.seconds)
        desk = LedgerSession(book=book, writer=writer)
        if chosen.push_heads is not None:
            pusher = Pusher(book=book, witness=open_witness(chosen.push_heads), seconds=chosen.push_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        own.start()  # those of strangers begin when the first one asks
        if pusher is not None:
            pusher.start()
        yield
        for one in {id(one): one for one in (own, apart)}.values():
            one.close()
        if pusher is not None:
            pusher.close()
        if desk is not None:
            desk.close()

    app = FastAPI(
        title="privcheck",
        summary="Privacy budgets: calculations, and the ledger of a team",
        version=__version__,
        docs_url=None,  # their pages run scripts of other hosts
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,  # a redirect would name the host that the request named
        lifespan=lifespan,
    )
    app.state.calculators = calculators
    app.state.desk = desk
    app.state.pusher = pusher
    answer_problems(app)
    for router in (calculation_routes.router, ledger_routes.router, ledger_routes.views):
        app.include_router(router)
    add_pages(app, secure=chosen.secure)
    app.state.buckets = Buckets(rate=chosen.rate, burst=chosen.burst)
    app.add_middleware(
        Guard,
        buckets=app.state.buckets,
        seconds=chosen.seconds,
        allowed=allowed_methods,
        check=check_headers,
        whose=lambda scope: find_caller(scope, app),
    )
    _document_problems(app)
    return app


def _document_problems(app: FastAPI) -> None:
    """Replace FastAPI's error schemas in the OpenAPI document by the schema of problems."""
    described = app.openapi

    def openapi() -> dict[str, Any]:
        document = described()
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        if "ProblemDetails" not in schemas:
            schema = ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= {**schema.pop("$defs", {}), "ProblemDetails": schema}
        return document

    app.openapi = openapi  # type: ignore[method-assign]


HEAD_SECONDS: Final = 10.0  # from a connection, or the first byte of a request, to the end of its headers
_MOST_CONNECTIONS: Final = 800  # below the 1024 files that a process may have open


class PatientProtocol(H11Protocol):
    """Connection with a time limit for a request's headers, which uvicorn lacks."""

    _hurry: asyncio.TimerHandle | None = None
    head_seconds = HEAD_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, and start the timer for its first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Receive bytes; the timer runs until the headers are complete."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._hurry is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer of a closed connection."""
        self._stop()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer a malformed request."""
        told = {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": msg}
        body = json.dumps(told).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait(self) -> None:
        self._hurry = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None

    def _give_up(self) -> None:
        self._hurry = None
        if not self.transport.is_closing():
            self.transport.close()


# what uvicorn is told, wherever the service is served
LISTENS: Final[dict[str, Any]] = {
    "http": PatientProtocol,
    "ws": "none",
    "server_header": False,
    "timeout_keep_alive": 15,
    "h11_max_incomplete_event_size": 16 * 1024,
    "limit_concurrency": _MOST_CONNECTIONS,
}


def open_or_create(url: str) -> str | None:
    """Create a ledger if there is none, and return its first officer's token; None if there is one.

    Raises:
        ParameterError: The URL is not that of a store.
        StoreError: The place has something else than a ledger, or it cannot be opened.
    """
    try:
        open_store(url).close()
    except StoreError as error:
        try:
            store = create_store(url)
        except StoreError:
            raise error from None  # there is something, and it is no ledger
        _, token = Book.init(store)
        store.close()
        return token
    return None


def describe() -> str:
    """OpenAPI document as text, without the package's version, so that it changes with the API alone."""
    document = create_app().openapi()
    return json.dumps({**document, "info": {**document["info"], "version": "1"}}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(describe(), end="")  # noqa: T201 - its purpose
