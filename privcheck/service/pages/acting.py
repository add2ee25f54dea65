"""The officer's queue, and the forms that change something: commit a reservation, or give it back."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from privcheck.service.desk import Desk
from privcheck.service.pages.looking import InPath, actions_on
from privcheck.service.pages.reading import Queue, queue_of
from privcheck.service.pages.rendering import render
from privcheck.service.pages.visitors import Submitting, Visiting
from privcheck.service.problems import ProblemError

router = APIRouter()
_EVIDENCE: Final = 200  # characters, as of the JSON API
_Key = Annotated[str, Form(min_length=1, max_length=200, pattern=r"^[!-~]+$")]


@router.get("/queue")
async def show_queue(request: Request, visitor: Visiting) -> Response:
    """Returns what waits for an officer: reservations that have expired, frozen grants, violations."""
    desk, now = visitor.desk, visitor.desk.book.now()
    queue = await desk.call(_queue, desk, now)
    fields = {
        "queue": queue,
        "actions": {charge.id: actions_on(visitor.actor, charge) for charge in (*queue.expired, *queue.running)},
        "keys": {charge.id: secrets.token_urlsafe(16) for charge in queue.expired},
    }
    return render("queue", request.scope, fields)


@router.post("/charges/{charge}/commit")
async def commit(charge: InPath, visitor: Submitting, key: _Key) -> Response:
    """Commits a reservation: from then on it stays spent."""
    desk, actor = visitor.desk, visitor.actor

    def write() -> dict[str, Any]:
        return desk.book.commit(actor, charge).to_dict()

    return _back(charge, await desk.call(desk.once, actor, key, {"do": "commit", "charge": charge}, write))


@router.post("/charges/{charge}/release")
async def release(
    charge: InPath,
    visitor: Submitting,
    key: _Key,
    evidence: Annotated[str, Form(min_length=1, max_length=_EVIDENCE)],
    attest: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """Gives back a reservation of which nothing was drawn, which whoever does it says in a box and in words."""
    if attest != "yes":
        raise ProblemError(422, "expected the box ticked that says that no noise was drawn; nothing was changed")
    desk, actor = visitor.desk, visitor.actor

    def write() -> dict[str, Any]:
        return desk.book.release(actor, charge, evidence=evidence).to_dict()

    asked = {"do": "release", "charge": charge, "evidence": evidence}
    return _back(charge, await desk.call(desk.once, actor, key, asked, write))


def _back(charge: str, told: Mapping[str, Any]) -> Response:
    """Returns the way to the charge's page, where what was done stands.

    Raises:
        ProblemError: It was refused: 409.
    """
    if told["state"] == "refused":
        raise ProblemError(409, f"{told['reason']}; nothing was changed")
    return RedirectResponse(f"/charges/{charge}", status_code=303)


def _queue(desk: Desk, now: str) -> Queue:
    with desk.book.store.read() as transaction:
        return queue_of(transaction, now=now)
