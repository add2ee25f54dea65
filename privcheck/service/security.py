"""Who may ask what: one table of endpoints, bearer tokens, and the refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from privcheck.errors import AuthorityError
from privcheck.ledger.roles import Action, Actor, require
from privcheck.ledger.tokens import digest_token
from privcheck.service.desk import Desk, desk_of
from privcheck.service.holders import Caller

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
    desk: Annotated[Desk, Depends(desk_of)],
    given: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> Actor:
    """Returns whose token came with a request, if the role may do what is asked for.

    Raises:
        AuthorityError: There is no token, it is not known, or the role may not.
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
