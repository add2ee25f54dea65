"""What a request's line and headers may say: known questions once each, and which methods an address has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fastapi import Request

from privcheck.service.problems import FieldProblem, ProblemError
from privcheck.service.security import ENDPOINTS, PAGES

_ONCE: Final = frozenset({
    b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"idempotency-key",
    b"transfer-encoding",
})  # fmt: skip


def check_headers(scope: Mapping[str, Any]) -> None:
    """Refuses a request of which two readers may understand two things.

    Raises:
        ProblemError: A header that says who asks or what came twice, the body is encoded, or its address has a slash
            that is none (400).
    """
    names = Counter(name for name, _ in scope["headers"])
    if twice := [name.decode() for name in names if name in _ONCE and names[name] > 1]:
        raise ProblemError(400, f"the header {twice[0]} came {names[twice[0].encode()]} times; expected it once")
    if names[b"content-length"] and names[b"transfer-encoding"]:
        raise ProblemError(400, "the headers Content-Length and Transfer-Encoding both say how long the body is")
    if dict(scope["headers"]).get(b"content-encoding", b"identity").lower() != b"identity":
        raise ProblemError(400, "expected a body without Content-Encoding")
    if re.search(rb"%(2f|5c|00)", scope.get("raw_path") or b"", re.IGNORECASE):
        raise ProblemError(400, "expected an address without %2F, %5C and %00: no name has them")


async def check_query(request: Request) -> None:
    """Refuses a question that an endpoint does not know: a misspelt one would ask for everything.

    Raises:
        ProblemError: It is not known, or came twice: 422.
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
    """Returns the methods that an address has, as the header Allow says them; empty where it has none."""
    found = {method for method, pattern in _patterns() if pattern.fullmatch(path)}
    return ", ".join(sorted(found | ({"HEAD"} if "GET" in found else set())))


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    every = (*ENDPOINTS, *PAGES, ("GET", "/v1/openapi.json"))
    parts = [(method, re.split(r"\{\w+\}", path)) for method, path in every]
    return tuple((method, re.compile("[^/]+".join(map(re.escape, of)))) for method, of in parts)
