"""Logging in and out, and what every page loads."""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import RedirectResponse, Response

from privcheck.errors import AuthorityError
from privcheck.ledger.tokens import digest_token
from privcheck.service.desk import Desk
from privcheck.service.pages.rendering import render, style_sheet
from privcheck.service.pages.sessions import SECONDS
from privcheck.service.pages.visitors import (
    NoLedgerError,
    check_origin,
    cookie_name,
    find_address,
    session_of,
    submit,
    travels_safely,
)

router = APIRouter()
_LONGEST: Final = 200
_LOCAL: Final = re.compile(r"/(?![/\\])[A-Za-z0-9_.~/?=&%+-]{0,1000}")  # a page of this service, and nothing else
_KEEP: Final = {"Cache-Control": "max-age=86400"}  # its address changes with it
_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#1f528f"/>'
    '<path d="M4 12V8M8 12V4M12 12V6" stroke="#fff" stroke-width="2"/></svg>'
)


@router.get("/page.css")
def show_style() -> Response:
    """Returns the style sheet of all pages."""
    return Response(style_sheet(), media_type="text/css", headers=dict(_KEEP))


@router.get("/icon.svg")
def show_icon() -> Response:
    """Returns the icon."""
    return Response(_ICON, media_type="image/svg+xml", headers=dict(_KEEP))


@router.get("/login")
def show_login(request: Request, next: str = "/") -> Response:  # noqa: A002 - the query's name
    """Returns the form that asks for a token."""
    _desk(request)
    if session_of(request) is not None:
        return RedirectResponse(_local(next), status_code=303)
    return render("login", request.scope, {"next": _local(next), "refused": ""})


@router.post("/login")
async def log_in(
    request: Request,
    token: Annotated[str, Form(max_length=_LONGEST)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",  # noqa: A002 - the field's name
) -> Response:
    """Opens a session for whoever has a token."""
    desk = _desk(request)
    check_origin(request.headers)
    digest = digest_token(token.strip())
    role = await desk.holders.find(digest)
    request.app.state.buckets.take(find_address(request.scope) if role is None else digest)
    try:
        await desk.find_holder(digest, known=role is not None)
    except AuthorityError as error:
        return render("login", request.scope, {"next": _local(next), "refused": str(error)}, status=401)
    request.app.state.sessions.close(request.cookies.get(cookie_name(request), ""))
    answer = RedirectResponse(_local(next), status_code=303)
    answer.set_cookie(
        cookie_name(request),
        request.app.state.sessions.open(digest),
        max_age=SECONDS,
        path="/",
        secure=travels_safely(request),
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/logout", dependencies=[Depends(submit)])
async def log_out(request: Request) -> Response:
    """Ends the session."""
    name = cookie_name(request)
    request.app.state.sessions.close(request.cookies[name])
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(name, path="/", secure=travels_safely(request), httponly=True, samesite="strict")
    return answer


def _desk(request: Request) -> Desk:
    desk: Desk | None = request.app.state.desk
    if desk is None:
        raise NoLedgerError
    return desk


def _local(where: str) -> str:
    return where if _LOCAL.fullmatch(where) else "/"
