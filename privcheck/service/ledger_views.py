"""Endpoints that read the ledger: datasets, curves, charges, receipts, exports; and whether the service is ready."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import JSONResponse

from privcheck import __version__
from privcheck.accounting.currencies import NOT_A_GUARANTEE
from privcheck.ledger import Actor, Receipt, rows
from privcheck.ledger.exporting import charges_of_rows, join_charged, state_charges
from privcheck.ledger.values import Grant
from privcheck.service import ledger_models as models
from privcheck.service.calculator import Calculators
from privcheck.service.desk import Desk
from privcheck.service.ledger_routes import At
from privcheck.service.limits import MOST_EVENTS
from privcheck.service.models import Health, Waiting
from privcheck.service.problems import ProblemError, responses
from privcheck.service.pushing import Pusher
from privcheck.service.questions import check_query
from privcheck.service.security import Acting
from privcheck.service.stateless import Calculates

views = APIRouter(prefix="/v1", tags=["ledger"], dependencies=[Depends(check_query)])
_PAGE: Final = 100
GRANT_FIELDS: Final = tuple(field.name for field in fields(Grant))  # without its balance
DELTAS: Final = ("1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "1e-8", "1e-9", "1e-10", "1e-12")
_READS = responses(401, 403)


@views.get("/readyz", responses=responses(), tags=["calculations"])
async def ready(request: Request) -> Health:
    """Returns that the service is ready: it calculates, and its ledger, where it has one, is read and written."""
    desk: Desk | None = request.app.state.desk
    if desk is not None:
        if desk.book.store.read_only or desk.book.store.doubt:
            raise ProblemError(503, "the ledger is read-only; an officer has to look at it")
        await desk.holders.check()
    calculators: Calculators = request.app.state.calculators
    if not (calculators.strangers if desk is None else calculators.holders).is_up():
        raise ProblemError(503, "calculations are not ready yet: ask again", public=True)
    pusher: Pusher | None = request.app.state.pusher
    if pusher is None:
        return Health(status="ok", version=__version__)
    pushed, failing = pusher.pushed, bool(pusher.failure)
    return Health(status="ok", version=__version__, heads_pushed=pushed, heads_failing=failing)


@views.get("/datasets", response_model=models.ShownDatasets, responses=_READS)
async def show_datasets(desk: At, actor: Acting) -> Response:
    """Returns all datasets: policies, grants with what is left, heads."""
    return JSONResponse(await desk.call(desk.book.show, actor))


@views.get("/datasets/{dataset}", response_model=models.ShownDataset, responses=_READS)
async def show_dataset(dataset: models.InPath, desk: At, actor: Acting) -> Response:
    """Returns a dataset."""
    return JSONResponse(await desk.call(_dataset, desk, actor, dataset))


@views.get("/datasets/{dataset}/curve", response_model=models.CapCurve, responses=_READS)
async def show_curve(dataset: models.InPath, desk: At, actor: Acting, calculator: Calculates) -> Response:
    """Returns ε at δ of all that the dataset's grants will ever admit: the guarantee, whatever is spent so far."""
    shown = await desk.call(_dataset, desk, actor, dataset)
    grants = [{name: grant[name] for name in GRANT_FIELDS} for grant in shown["grants"]]
    asked = {"policy": shown["policy"], "grants": grants, "deltas": DELTAS}
    found = await desk.call(calculator.run, "curve", asked)
    return JSONResponse({"dataset": dataset, **found})


@views.get("/datasets/{dataset}/charges", response_model=models.Charges, responses=_READS)
async def show_charges(dataset: models.InPath, desk: At, actor: Acting, after: models.After = 0) -> Response:
    """Returns a page of a dataset's charges, in the order in which they were opened."""
    return JSONResponse(await desk.call(_charges, desk, actor, dataset, after))


@views.get("/grants/{grant}", response_model=models.ShownGrant, responses=_READS)
async def show_grant(grant: models.InPath, desk: At, actor: Acting) -> Response:
    """Returns a grant, and what is left of it."""
    return JSONResponse(await desk.call(_grant, desk, actor, grant))


@views.get("/charges/{charge}", response_model=models.ShownCharge, responses=_READS)
async def show_charge(charge: models.InPath, desk: At, actor: Acting) -> Response:
    """Returns a charge as it stands."""
    return JSONResponse((await desk.call(desk.book.find_charge, actor, charge)).to_dict())


@views.get("/receipts/{hash}", response_model=models.SignedHead, responses=_READS)
async def show_receipt(hash: models.Hash, desk: At, actor: Acting) -> Response:  # noqa: A002 - the path's name
    """Returns the receipt of the row with a hash; 404: the chain was cut, where a receipt names it."""
    return JSONResponse((await desk.call(desk.book.find_receipt, actor, hash)).to_dict())


@views.get("/key", response_model=models.SigningKey, responses=_READS)
async def show_key(desk: At, actor: Acting) -> Response:
    """Returns the public key with which anybody can check receipts and heads."""
    return JSONResponse((await desk.call(desk.book.public_key, actor)).to_dict())


@views.get("/heads", response_model=models.SignedHeads, responses=_READS)
async def show_heads(desk: At, actor: Acting) -> Response:
    """Returns the signed heads of all chains: keep them, any two show a rollback or a fork."""
    return JSONResponse({"heads": [head.to_dict() for head in await desk.call(desk.book.heads, actor)]})


@views.get(
    "/export",
    response_model=models.Exported,
    responses={202: {"model": Waiting, "description": "Not there yet: ask again."}, **_READS},
)
async def export(
    desk: At,
    actor: Acting,
    calculator: Calculates,
    kind: Annotated[Literal["dp-event", "statement"], Query(alias="as")] = "statement",
    dataset: Annotated[models.Name | None, Query()] = None,
) -> Response:
    """Returns what is guaranteed (statement) or what was charged and not given back (dp-event); 202 while it reads."""
    if kind == "statement":
        key = f"statement {actor.name} {dataset or ''}"
        stated = await desk.read_later(key, partial(_state_all, desk, actor, dataset))
        if stated is None:
            return JSONResponse(Waiting(state="running").model_dump(), 202, {"Retry-After": "2"})
        return JSONResponse({"kind": kind, "at": desk.book.now(), "note": NOT_A_GUARANTEE, "datasets": stated})
    read = await desk.read_later(f"export {actor.name} {dataset or ''}", partial(_read_all, desk, actor, dataset))
    if read is None:
        return JSONResponse(Waiting(state="running").model_dump(), 202, {"Retry-After": "2"})
    every = []
    for one, events in read:
        text = (await desk.call(calculator.run, "dp_event", {"events": events}))["text"]
        unit = one["policy"]["unit"]
        every.append({"dataset": one["name"], "unit": unit, "events": events, "dp_event": text, "head": one["head"]})
    return JSONResponse({"kind": kind, "at": desk.book.now(), "datasets": every})


@views.post(
    "/verify",
    response_model=models.Checked,
    responses={202: {"model": Waiting, "description": "Not there yet: ask again."}, **_READS},
)
async def verify(body: models.VerifyBody, desk: At, actor: Acting) -> Response:
    """Returns whether every chain fits together, adds up, and has what receipts were given for; 202 while it reads."""
    receipts = tuple(Receipt.parse(one.model_dump()) for one in body.receipts)
    found = await desk.check_later(actor, receipts)
    if found is None:
        return JSONResponse(Waiting(state="running").model_dump(), 202, {"Retry-After": "2"})
    return JSONResponse(found)


@views.get("/tokens", responses=_READS)
async def list_tokens(desk: At, actor: Acting) -> models.Tokens:
    """Returns whose tokens there are."""
    return models.Tokens.model_validate({"tokens": await desk.call(desk.book.list_tokens, actor)})


def _dataset(desk: Desk, actor: Actor, name: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.book.show(actor, name)["datasets"][0]
    return found


def _grant(desk: Desk, actor: Actor, name: str) -> dict[str, Any]:
    shown = desk.book.show(actor, desk.book.find_grant(actor, name).dataset)["datasets"][0]
    return next(grant for grant in shown["grants"] if grant["name"] == name)


def _charges(desk: Desk, actor: Actor, dataset: str, after: int) -> dict[str, Any]:
    found = desk.book.charges(actor, dataset, after=after, most=_PAGE + 1)
    shown = [one.to_dict() for one in found[:_PAGE]]
    return {"charges": shown, "next": shown[-1]["seq"] if len(found) > _PAGE else None}


def _state_all(desk: Desk, actor: Actor, dataset: str | None) -> list[dict[str, Any]]:
    """Returns a dataset, or all, each with the lines of its statement up to the head that it is shown with."""
    return [
        {**one, "lines": lines_of(desk, one["name"], last=one["head"]["seq"])}
        for one in desk.book.show(actor, dataset)["datasets"]
    ]


def lines_of(desk: Desk, dataset: str, *, last: int) -> list[dict[str, Any]]:
    """Returns the lines of a dataset's statement, of its charges up to a row."""
    with desk.book.store.read() as transaction:
        found = takewhile(lambda row: row.seq <= last, rows.rows_of_dataset(transaction, dataset))
        lines = state_charges(charges_of_rows(found))
    if len(lines) > MOST_EVENTS:
        raise ProblemError(422, f"{len(lines)} different charges are more than fit into one statement")
    return lines


def _read_all(desk: Desk, actor: Actor, dataset: str | None) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Returns a dataset, or all, each with its events up to the head that it is shown with."""
    return [
        (one, events_of(desk, one["name"], last=one["head"]["seq"]))
        for one in desk.book.show(actor, dataset)["datasets"]
    ]


def events_of(desk: Desk, dataset: str, *, last: int) -> list[dict[str, Any]]:
    """Returns what was charged to a dataset up to a row and not released by then, equal events together."""
    with desk.book.store.read() as transaction:
        found = takewhile(lambda row: row.seq <= last, rows.rows_of_dataset(transaction, dataset))
        events = join_charged((one["state"], one["event"]) for one in charges_of_rows(found))
    if len(events) > MOST_EVENTS:
        raise ProblemError(422, f"{len(events)} different events are more than fit into one export")
    return events
