"""The application: its parts put together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI

from privcheck import __version__
from privcheck.ledger import Book, open_store
from privcheck.ledger.witnesses import open_witness
from privcheck.ledger.writer import Writer
from privcheck.service import ledger_routes, ledger_views, stateless
from privcheck.service.calculator import Calculator, Calculators
from privcheck.service.desk import Desk
from privcheck.service.limits import Buckets, Guard
from privcheck.service.pages.adding import add_pages
from privcheck.service.pages.visitors import find_caller
from privcheck.service.problems import ProblemDetails, answer_problems
from privcheck.service.pushing import Pusher
from privcheck.service.questions import allowed_methods, check_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the service runs.

    Attributes:
        store: URL of the ledger's store; None for calculations alone.
        seconds: Of one request.
        calculation_seconds: Of one calculation.
        rate: Requests a second of one token, or of all strangers at one address, in the long run.
        burst: Requests at once.
        processes: That calculate for those who hold a token; one more does for strangers. Without a store all do.
        push_heads: A second place that the ledger's heads are pushed to; None for none.
        push_seconds: From one push to the next.
        secure: Browsers reach the service by TLS, which a proxy ends; its own TLS shows by itself.
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
    """Returns the service as an ASGI application.

    Raises:
        ParameterError: The place for heads is none.
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
        desk = Desk(book=book, writer=writer)
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
    for router in (stateless.router, ledger_routes.router, ledger_views.views):
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
    """Lets the OpenAPI document hold the schema of problems, in place of FastAPI's own."""
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
