"""Errors as RFC 9457 problem details: all are `application/problem+json`, and every status is documented."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from privcheck.errors import (
    AuthorityError,
    BudgetError,
    FullError,
    IdempotencyError,
    LedgerError,
    PrivcheckError,
    StateError,
    StoreError,
    UnknownNameError,
    explain_error,
    hide_passwords,
)
from privcheck.ledger.registry import Role

MEDIA_TYPE: Final = "application/problem+json"
RETRY_SECONDS: Final = 1
UNAVAILABLE: Final = "not available: ask again later"  # all that strangers are told
_READ_ONLY: Final = "the ledger is read-only until an officer has compared it"
_NOT_NOW: Final = "the ledger is not available now: ask again, a write with the same Idempotency-Key"
_LOG: Final = logging.getLogger("privcheck.service")
_SHOWN: Final = 20  # fields of a body that is refused
_LONGEST: Final = 300

_MEANING: Final[Mapping[int, str]] = {
    400: "The request cannot be read: its headers, its address, or a body that is not text.",
    401: "The bearer token is missing, unknown, expired or revoked.",
    403: "The token's role may not do this.",
    404: "No such resource.",
    405: "The address supports other methods only.",
    409: "The ledger refuses; nothing was spent.",
    413: "The body is longer than 64 KiB.",
    422: "A value is refused; `errors` names the fields.",
    429: "Too many requests, or too many running calculations: retry after `Retry-After` seconds.",
    500: "An internal error; nothing was decided.",
    503: "No answer in time, or the outcome is unknown: ask again, a write with the same `Idempotency-Key`.",
}
_STATUS: Final[Mapping[type[PrivcheckError], int]] = {
    UnknownNameError: 404,
    StateError: 409,
    BudgetError: 409,
    IdempotencyError: 422,
    FullError: 429,  # before what it is one of
    StoreError: 503,
    LedgerError: 503,
}
ALWAYS: Final = (400, 404, 405, 413, 422, 429, 500, 503)


class FieldProblem(BaseModel):
    """Problem of one field."""

    field: str
    message: str


class ProblemDetails(BaseModel):
    """A problem (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    error: str | None = Field(default=None, description="The kind, in one word, as in the commands' --json.")
    errors: list[FieldProblem] | None = None


class ProblemError(Exception):
    """Error that ends a request early.

    Attributes:
        status: The HTTP status.
        detail: The input, what was expected, and what to do.
        errors: The fields that are refused.
        more: Further members of the answer.
        headers: Further headers of the answer.
        public: Whether anybody may read the detail of an answer from 500 on; below 500 everybody may.
        inside: Whether the detail is a message of the store, with its place: for officers alone.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[FieldProblem] = (),
        more: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        public: bool = False,
        inside: bool = False,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.more = dict(more or {})
        self.headers = dict(headers or {})
        self.public = public
        self.inside = inside

    def tell(self, role: Role | None) -> ProblemError:
        """Copy of the problem for a reader: the place and the messages of the store are for officers alone.

        Args:
            role: Role of the request's token; None without a known token.
        """
        if self.status < 500 or self.public or role == "officer":
            return self
        if role is None:
            return ProblemError(self.status, UNAVAILABLE, headers=self.headers)
        if not self.inside:
            return self
        detail = _READ_ONLY if self.more.get("read_only") else _NOT_NOW
        return ProblemError(self.status, detail, headers=self.headers)

    def response(self) -> Response:
        """Response for the problem."""
        told: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **({"errors": [one.model_dump() for one in self.errors]} if self.errors else {}),
            **self.more,
        }
        headers = dict(self.headers)
        if self.status in {429, 503}:
            headers.setdefault("Retry-After", str(RETRY_SECONDS))
        # ASCII: a body may hold what no encoding can, and a message may quote it
        return Response(json.dumps(told), status_code=self.status, headers=headers, media_type=MEDIA_TYPE)


def answer_problem(problem: ProblemError, scope: Scope) -> Response:
    """Response to a request that ends early: a page for a browser that asks for HTML, else the problem.

    It is limited to the information for the caller's role; the log has the rest.
    """
    told = problem.tell(getattr(scope.get("state", {}).get("caller"), "role", None))
    if told is not problem:
        _LOG.warning("%d at %s: %s", problem.status, _printed(scope), problem.detail)
    problem = told
    accepted = dict(scope["headers"]).get(b"accept", b"")
    if scope["path"].startswith("/v1/") or b"text/html" not in accepted:
        return problem.response()
    from privcheck.service.pages.rendering import render  # templates where somebody looks at them

    plain = problem.response()
    page = render(
        "problem", scope, {"problem": problem, "title": HTTPStatus(problem.status).phrase}, status=problem.status
    )
    for name in set(plain.headers) - {"content-type", "content-length"}:
        page.headers[name] = plain.headers[name]
    return page


def join_hint(message: str, hint: str | None) -> str:
    """Message with a hint appended, unless it contains it."""
    return f"{message}; {hint}" if hint and hint not in message else message


def as_problem(error: Exception) -> ProblemError:
    """Problem for an exception: a specific one for this package's errors, else an internal error."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, AuthorityError):
        headers = {} if error.known else {"WWW-Authenticate": "Bearer"}
        return ProblemError(403 if error.known else 401, str(error), more={"error": "authority"}, headers=headers)
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)
    if isinstance(error, PrivcheckError):
        said = explain_error(error)
        message = hide_passwords(said.message)
        detail = join_hint(message, said.hint)
        field = "" if isinstance(error, UnknownNameError) else str(getattr(error, "name", ""))
        errors = [FieldProblem(field=field[:100], message=_short(message))] if field else []
        state = {"state": error.state} if isinstance(error, StateError) else {}
        more = {"error": said.kind, **state}
        if status == 503:
            lasting = isinstance(error, LedgerError) or getattr(error, "read_only", False)
            return ProblemError(503, _short(detail), more={**more, "read_only": lasting}, inside=True)
        return ProblemError(status, _short(detail), errors=errors, more=more)
    return ProblemError(500, "internal error, nothing was decided: please report it", public=True)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documented errors of an endpoint: those common to all, and its own."""
    return {
        status: {
            "description": _MEANING[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
            **({"headers": {"Retry-After": _RETRY_HEADER}} if status in {429, 503} else {}),
        }
        for status in sorted({*ALWAYS, *statuses})
    }


_RETRY_HEADER: Final = {"description": "Seconds to wait.", "schema": {"type": "string"}}


def answer_problems(app: FastAPI) -> None:
    """Register handlers that answer every error of an application with a problem."""

    def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        problem = ProblemError(error.status_code, _short(str(error.detail)), headers=error.headers)
        return answer_problem(problem, request.scope)

    def on_fields(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [_field(one) for one in error.errors()[:_SHOWN]]
        detail = "; ".join(f"{one.field}: {one.message}" for one in errors)
        return answer_problem(ProblemError(422, _short(detail), errors=errors), request.scope)

    def on_ours(request: Request, error: Exception) -> Response:
        return answer_problem(as_problem(error), request.scope)

    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_fields)
    app.add_exception_handler(ProblemError, on_ours)
    app.add_exception_handler(PrivcheckError, on_ours)


def _field(error: Mapping[str, Any]) -> FieldProblem:
    """Problem of a field, without the input, which may be anything."""
    place = [str(part)[:100] for part in error["loc"] if part not in {"body", "query", "path", "header"}]
    return FieldProblem(field=".".join(place) or str(error["loc"][0]), message=_short(str(error["msg"])))


def _printed(scope: Scope) -> str:
    return str(scope.get("path", ""))[:100].encode("ascii", "replace").decode()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST * 4 else f"{text[: _LONGEST * 4]} …"
