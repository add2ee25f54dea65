"""Pages with forms: the officers' queue with its actions, and the what-if form.

The queue's forms write: commit a reservation, or release it. The what-if form writes nothing: how many more releases
fit, and the noise at which a wanted number fits.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import RedirectResponse, Response

from privcheck.errors import PrivcheckError
from privcheck.ledger.values import Grant, Quote
from privcheck.service.access import MOST_COUNT
from privcheck.service.calculator import Calculator
from privcheck.service.pages.lists import InPath, actions_on
from privcheck.service.pages.login import Submitting, Visiting, Visitor
from privcheck.service.pages.queries import Queue, queue_of
from privcheck.service.pages.rendering import render
from privcheck.service.problems import ProblemError, as_problem
from privcheck.service.session import LedgerSession

router = APIRouter()
_EVIDENCE: Final = 200  # characters, as of the JSON API
_Key = Annotated[str, Form(min_length=1, max_length=200, pattern=r"^[!-~]+$")]


@router.get("/queue")
async def show_queue(request: Request, visitor: Visiting) -> Response:
    """Render the queue of officers: reservations that have expired, frozen grants, violations."""
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
    """Commit a reservation: from then on it stays spent."""
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
    """Release a reservation, after its author or an officer attests, by a box and in words, that no noise was drawn."""
    if attest != "yes":
        raise ProblemError(422, "tick the box that states that no noise was drawn; nothing was changed")
    desk, actor = visitor.desk, visitor.actor

    def write() -> dict[str, Any]:
        return desk.book.release(actor, charge, evidence=evidence).to_dict()

    asked = {"do": "release", "charge": charge, "evidence": evidence}
    return _back(charge, await desk.call(desk.once, actor, key, asked, write))


def _back(charge: str, told: Mapping[str, Any]) -> Response:
    """Redirect to the charge's page, which shows the result.

    Raises:
        ProblemError: The request was refused: 409.
    """
    if told["state"] == "refused":
        raise ProblemError(409, f"{told['reason']}; nothing was changed")
    return RedirectResponse(f"/charges/{charge}", status_code=303)


def _queue(desk: LedgerSession, now: str) -> Queue:
    with desk.book.store.read() as transaction:
        return queue_of(transaction, now=now)


what_if_router = APIRouter()
# by the form's word: the event's type, the field that states its noise, and what both are called
NOISES: Final[Mapping[str, tuple[str, str, str]]] = {
    "gaussian-std": ("gaussian", "std", "Gaussian noise, standard deviation σ"),
    "gaussian-rho": ("gaussian", "rho", "Gaussian noise, ρ"),
    "laplace-scale": ("laplace", "scale", "Laplace noise, scale b"),
    "laplace-epsilon": ("laplace", "epsilon", "Laplace noise, ε"),
    "discrete-gaussian-std": ("discrete_gaussian", "std", "discrete Gaussian noise, σ"),
    "discrete-laplace-scale": ("discrete_laplace", "scale", "discrete Laplace noise, scale b"),
    "pure": ("pure", "epsilon", "anything ε-DP"),
    "zcdp": ("zcdp", "rho", "anything ρ-zCDP"),
    "gdp": ("gdp", "mu2", "anything μ-GDP, μ²"),
    "randomized-response": ("randomized_response", "epsilon", "randomised response, ε"),
}
_USUAL: Final = (1, 10, 100, 1000)
_SENSITIVE: Final = frozenset({"std", "scale"})  # noise that is stated beside a sensitivity
_Text = Annotated[str, Field(max_length=40)]


class Asked(BaseModel):
    """Fields of the form, unvalidated.

    Attributes:
        grant: Name of the grant.
        noise: A key of `NOISES`.
        value: The number that states the noise.
        sensitivity: The sensitivity, for a standard deviation or a scale.
        unit: The unit for which it was priced: a unit's text, or "dataset".
        count: Number of releases in one charge.
        wanted: The wanted number of charges.
    """

    model_config = ConfigDict(frozen=True)

    grant: Annotated[str, Field(max_length=64)] = ""
    noise: _Text = "gaussian-std"
    value: _Text = ""
    sensitivity: _Text = "1"
    unit: Annotated[str, Field(max_length=300)] = ""
    count: _Text = "1"
    wanted: _Text = ""

    def event(self) -> dict[str, Any]:
        """The event as JSON.

        Raises:
            ProblemError: The noise is not one of the form's, or the count is not a whole number.
        """
        if self.noise not in NOISES:
            raise ProblemError(422, f"expected noise one of {', '.join(NOISES)}")
        kind, field, _ = NOISES[self.noise]
        more = {"sensitivity": self.sensitivity} if field in _SENSITIVE and self.sensitivity else {}
        return {"type": kind, field: self.value, **more, "count": _whole("releases a time", self.count)}


@what_if_router.get("/what-if")
async def what_if(request: Request, visitor: Visiting, asked: Annotated[Asked, Query()]) -> Response:
    """Render the form and, if it is filled in, the cost of a charge and how often it would fit."""
    desk = visitor.desk
    shown = await desk.call(desk.book.show, visitor.actor)
    grants = [
        {"dataset": one["name"], **each}
        for one in shown["datasets"]
        for each in one["grants"]
        if visitor.actor.role == "officer" or each["name"] in visitor.actor.grants
    ]
    answer: dict[str, Any] = {"quote": None, "refused": "", "least": None, "waits": False}
    if asked.grant and asked.value:
        try:
            answer |= await _answer(request, visitor, asked)
        except (ProblemError, PrivcheckError) as error:
            problem = as_problem(error)
            if problem.status >= 500:
                raise problem from None
            answer["refused"] = problem.detail
    status = 422 if answer["refused"] else 200
    fields = {"grants": grants, "noises": NOISES, "asked": asked, **answer}
    return render("what_if", request.scope, fields, status=status)


async def _answer(request: Request, visitor: Visitor, asked: Asked) -> dict[str, Any]:
    desk, event = visitor.desk, asked.event()
    quote = await desk.call(desk.book.quote, visitor.actor, grant=asked.grant, event=event, unit=asked.unit or None)
    grant = await desk.call(desk.book.find_grant, visitor.actor, asked.grant)
    told = {"quote": quote.to_dict(), "grant": grant.to_dict(), "event": quote.event}
    wanted = [_whole("how many", asked.wanted)] if asked.wanted else []
    if grant.kind == "plan" or grant.recorded:
        return told
    try:
        return told | {"least": await desk.call(_least, request.app.state.calculators.holders, quote, grant, wanted)}
    except ProblemError as problem:
        if problem.status not in {429, 503}:
            raise
        return told | {"waits": True}  # the quote stands by itself


def _least(calculator: Calculator, quote: Quote, grant: Grant, wanted: list[int]) -> list[dict[str, Any]]:
    """Least noise at which the wanted number, and some usual numbers, of charges fit into the free budget."""
    free = {"amount": quote.balance["free"], "lost": quote.balance["lost"]["free"]}
    times = [*wanted, *(n for n in _USUAL if n not in wanted)]
    asked = {"event": quote.event, "currency": grant.currency, "free": free, "times": times}
    answers: list[dict[str, Any]] = calculator.run("afford", asked)["answers"]
    return answers


def _whole(what: str, text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text) <= MOST_COUNT:
        raise ProblemError(422, f"expected {what} as a whole number from 1 to {MOST_COUNT}, got {text!r}")
    return int(text)
