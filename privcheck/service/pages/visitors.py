"""Who visits a page: the session's cookie, the token behind it, the role, and where a form comes from."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, FastAPI, Form, Request
from fastapi.security.utils import get_authorization_scheme_param
from starlette.types import Scope

from privcheck.errors import AuthorityError
from privcheck.ledger import Actor
from privcheck.ledger.roles import require
from privcheck.ledger.tokens import digest_token
from privcheck.service.desk import Desk
from privcheck.service.holders import Caller
from privcheck.service.pages.sessions import Session, Sessions
from privcheck.service.problems import ProblemError
from privcheck.service.security import PAGES


async def find_caller(scope: Scope, app: FastAPI) -> Caller:
    """Who sends a request: by the bearer token or the session that comes with it, else a stranger at an address."""
    desk: Desk | None = app.state.desk
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
    """From where a request comes."""
    return str((scope.get("client") or ("unknown",))[0])


class LoginNeededError(Exception):
    """There is no session, or its token has ended."""


class NoLedgerError(Exception):
    """The service keeps no ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who is logged in and may see the page.

    Attributes:
        actor: Who.
        csrf: What every form on the page sends back.
        desk: The open ledger.
    """

    actor: Actor
    csrf: str
    desk: Desk


def cookie_name(request: Request) -> str:
    """Returns the name of the session's cookie: where it travels by TLS alone, browsers hold it to this host."""
    return "__Host-privcheck" if travels_safely(request) else "privcheck"


def travels_safely(request: Request) -> bool:
    """Returns whether browsers reach the service by TLS: its own, or a proxy's."""
    return request.url.scheme == "https" or bool(request.app.state.secure)


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuses a form that another site has sent.

    Raises:
        ProblemError: The browser says so, or nothing of where the form comes from: 403.
    """
    fetched, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = fetched == "same-origin" if fetched is not None else _host_of(origin) == headers.get("host", "")
    if not own:
        raise ProblemError(403, "the form came from another site; expected one of a page of this service")


def _host_of(origin: str | None) -> str | None:
    try:
        return None if origin is None else urlsplit(origin).netloc
    except ValueError:
        return None


def session_of(request: Request) -> Session | None:
    """Returns the session of a request's cookie."""
    sessions: Sessions = request.app.state.sessions
    return sessions.find(request.cookies.get(cookie_name(request), ""))


async def _visit(request: Request) -> Visitor:
    """Returns who asks for a page, if the role may: the token is looked up each time, so that it may end any time.

    Raises:
        AuthorityError: The role may not.
        LoginNeededError: There is no session, or its token is unknown, revoked or over.
        NoLedgerError: The service keeps none.
    """
    desk: Desk | None = request.app.state.desk
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
    """Returns who sends a form, if it is one of a page that this visitor was given.

    Raises:
        ProblemError: It is not: 403.
    """
    check_origin(request.headers)
    if not hmac.compare_digest(csrf.encode(), visitor.csrf.encode()):
        raise ProblemError(403, "the form is none of this session; expected one of a page loaded since the login")
    return visitor


Submitting = Annotated[Visitor, Depends(submit)]
