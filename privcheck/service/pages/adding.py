"""The pages as a part of the application."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response

from privcheck.service.pages import acting, asking, entering, looking
from privcheck.service.pages.rendering import render
from privcheck.service.pages.sessions import Sessions
from privcheck.service.pages.visitors import LoginNeededError, NoLedgerError

ROUTERS: Final = (entering.router, looking.router, asking.what_if_router, acting.router)


def add_pages(app: FastAPI, *, secure: bool) -> None:
    """Adds the pages, which are not in the OpenAPI document.

    Args:
        app: The application; its state has the desk.
        secure: Browsers reach it by TLS, whatever the requests look like here.
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
