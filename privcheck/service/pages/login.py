"""Login: sessions, cookies, roles of visitors, and the files that every page loads.

A session has a random name and the digest of its token, in memory alone. A visitor has the session's cookie, its token
and role; the origin of a form is checked.
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, FastAPI, Form, Request
from fastapi.security.utils import get_authorization_scheme_param
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from privcheck.errors import AuthorityError
from privcheck.ledger import Actor
from privcheck.ledger.registry import digest_token, require
from privcheck.service.access import PAGES
from privcheck.service.pages.rendering import render, style_sheet
from privcheck.service.problems import ProblemError
from privcheck.service.session import Caller, LedgerSession

SECONDS: Final = 12 * 3600  # of a session
_MOST: Final = 1000
_MOST_OF_ONE: Final = 10  # of one token, so that nobody drives out the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Session of a logged-in visitor.

    Attributes:
        digest: SHA-256 of the token, which is looked up in the store on every request.
        csrf: The token that every form has to send back.
        began: Start, on the clock of `Sessions`.
    """

    digest: str
    csrf: str
    began: float


@dataclass(slots=True, kw_only=True)
class Sessions:
    """All sessions; the oldest ones end when there are too many, and all of them when the service does.

    Attributes:
        clock: Monotonic time, in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _open: OrderedDict[str, Session] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, digest: str) -> str:
        """Open a session, and return its name, 256 random bits.

        Args:
            digest: Digest of the token that logs in.
        """
        name = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old()
            own = [one for one, session in self._open.items() if session.digest == digest]
            for old in own[: max(0, len(own) - _MOST_OF_ONE + 1)]:
                del self._open[old]
            while len(self._open) >= _MOST:
                self._open.popitem(last=False)
            self._open[name] = Session(digest=digest, csrf=secrets.token_urlsafe(32), began=self.clock())
        return name

    def find(self, name: str) -> Session | None:
        """Session of a name; None if there is none, or it has expired."""
        with self._lock:
            self._drop_old()
            return self._open.get(name)

    def close(self, name: str) -> None:
        """End a session."""
        with self._lock:
            self._open.pop(name, None)

    def _drop_old(self) -> None:
        """Drop expired sessions, which are first in the order of their start."""
        while self._open:
            name, session = next(iter(self._open.items()))
            if self.clock() - session.began < SECONDS:
                return
            del self._open[name]


async def find_caller(scope: Scope, app: FastAPI) -> Caller:
    """Identify the caller of a request by its bearer token or its session; else by its address, as a stranger."""
    desk: LedgerSession | None = app.state.desk
    request = Request(scope)
    digest = ""
    if "authorization" in request.headers:
        scheme, token = get_authorization_scheme_param(request.headers["authorization"])
        digest = digest_token(token) if scheme.lower() == "bearer" else ""
    elif request.cookies:
        request.scope["app"] = app
        session = session_of(request)
        digest = "" if session is None else session.digest
    role = await desk.holders.find(digest) if desk is not None and digest else None
    return Caller(bucket=find_address(scope)) if role is None else Caller(bucket=digest, role=role)


def find_address(scope: Scope) -> str:
    """Client address of a request."""
    return str((scope.get("client") or ("unknown",))[0])


class LoginNeededError(Exception):
    """The session is missing, or its token has ended."""


class NoLedgerError(Exception):
    """The service has no ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A logged-in visitor who may see the page.

    Attributes:
        actor: The actor.
        csrf: The token that every form on the page sends back.
        desk: The open ledger.
    """

    actor: Actor
    csrf: str
    desk: LedgerSession


def cookie_name(request: Request) -> str:
    """Name of the session's cookie; with TLS the prefix `__Host-` makes browsers bind it to this host."""
    return "__Host-privcheck" if travels_safely(request) else "privcheck"


def travels_safely(request: Request) -> bool:
    """Whether browsers reach the service by TLS: its own, or a proxy's."""
    return request.scope.get("scheme") == "https" or bool(request.app.state.secure)  # whatever Host says


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuse a form that another site has sent.

    Raises:
        ProblemError: The form is from another site, or its origin is missing: 403.
    """
    fetched, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = fetched == "same-origin" if fetched is not None else _host_of(origin) == headers.get("host", "")
    if not own:
        raise ProblemError(403, "the form came from another site; use a form of this service")


def _host_of(origin: str | None) -> str | None:
    try:
        return None if origin is None else urlsplit(origin).netloc
    except ValueError:
        return None


def session_of(request: Request) -> Session | None:
    """Session of a request's cookie, or None."""
    sessions: Sessions = request.app.state.sessions
    return sessions.find(request.cookies.get(cookie_name(request), ""))


async def _visit(request: Request) -> Visitor:
    """Authorise the visitor of a page; the token is looked up each time, because it may end at any time.

    Raises:
        AuthorityError: The role does not permit the page's action.
        LoginNeededError: The session is missing, or its token is unknown, revoked or expired.
        NoLedgerError: The service has no ledger.
    """
    desk: LedgerSession | None = request.app.state.desk
    if desk is None:
        raise NoLedgerError
    session = session_of(request)
    if session is None:
        raise LoginNeededError
    caller: Caller = request.state.caller
    try:
        actor = await desk.find_holder(session.digest, known=caller.role is not None)
    except AuthorityError:
        request.app.state.sessions.close(request.cookies[cookie_name(request)])
        raise LoginNeededError from None
    request.state.caller = replace(caller, role=actor.role)
    visitor = Visitor(actor=actor, csrf=session.csrf, desk=desk)
    request.state.visitor = visitor  # a page that says why not has its way out too
    action = PAGES[request.method, request.scope["route"].path]
    if action is not None:
        require(actor, action)
    return visitor


Visiting = Annotated[Visitor, Depends(_visit)]


async def submit(request: Request, visitor: Visiting, csrf: Annotated[str, Form()] = "") -> Visitor:
    """Authorise a form: it must be from a page of this visitor's session.

    Raises:
        ProblemError: It is not: 403.
    """
    check_origin(request.headers)
    if not hmac.compare_digest(csrf.encode(), visitor.csrf.encode()):
        raise ProblemError(403, "the form does not belong to this session; reload the page")
    return visitor


Submitting = Annotated[Visitor, Depends(submit)]


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
    """Send the style sheet of all pages."""
    return Response(style_sheet(), media_type="text/css", headers=dict(_KEEP))


@router.get("/icon.svg")
def show_icon() -> Response:
    """Send the icon."""
    return Response(_ICON, media_type="image/svg+xml", headers=dict(_KEEP))


@router.get("/login")
def show_login(request: Request, next: str = "/") -> Response:  # noqa: A002 - the query's name
    """Render the login form, which asks for a token."""
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
    """Open a session for the holder of a token."""
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
    """End the session."""
    name = cookie_name(request)
    request.app.state.sessions.close(request.cookies[name])
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(name, path="/", secure=travels_safely(request), httponly=True, samesite="strict")
    return answer


def _desk(request: Request) -> LedgerSession:
    desk: LedgerSession | None = request.app.state.desk
    if desk is None:
        raise NoLedgerError
    return desk


def _local(where: str) -> str:
    return where if _LOCAL.fullmatch(where) else "/"
