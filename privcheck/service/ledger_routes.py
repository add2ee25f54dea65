"""Endpoints that write to the ledger: quotes, reservations, charges, claims, datasets, grants, tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response
from starlette.responses import JSONResponse

from privcheck import registry
from privcheck.ledger import Actor, Receipt
from privcheck.ledger.granting import find_policy, grants_of
from privcheck.ledger.trust import STATED
from privcheck.service import ledger_models as models
from privcheck.service.calculator import Calculator
from privcheck.service.claims import Claims, Spent
from privcheck.service.desk import Desk, desk_of
from privcheck.service.problems import ProblemError, responses
from privcheck.service.questions import check_query
from privcheck.service.security import Acting
from privcheck.service.stateless import Calculates

Json = dict[str, Any]
router = APIRouter(prefix="/v1", tags=["ledger"], dependencies=[Depends(check_query)])
At = Annotated[Desk, Depends(desk_of)]
_READS = responses(401, 403)
_WRITES = responses(401, 403, 409)


@router.post("/quotes", response_model=models.Quoted, responses=_READS)
async def quote(body: models.SpendBody, desk: At, actor: Acting, calculator: Calculates) -> Response:
    """Returns what a charge would cost, whether it would fit now and how often; writes nothing."""
    spent = await _spent(desk, body, calculator)
    asked = {"grant": body.grant, "event": spent.event, "unit": spent.unit, "blocks": body.blocks}
    found = await desk.call(desk.book.quote, actor, **asked)
    return JSONResponse(found.to_dict())


@router.post("/charges", status_code=201, response_model=models.Decided, responses=_WRITES)
async def charge(
    body: models.SpendBody, key: models.Key, desk: At, actor: Acting, calculator: Calculates
) -> Response:  # fmt: skip
    """Charges what is about to be released: draw the noise once this has answered 201."""
    spent = await _spent(desk, body, calculator)
    asked = _ask(body, spent, key)
    return _answer((await desk.call(desk.writer.charge, actor, **asked)).to_dict(), 201)


@router.post("/reservations", status_code=201, response_model=models.Decided, responses=_WRITES)
async def reserve(
    body: models.ReserveBody, key: models.Key, desk: At, actor: Acting, calculator: Calculates
) -> Response:  # fmt: skip
    """Sets budget aside for a run; it counts as spent until it is released."""
    spent = await _spent(desk, body, calculator)
    asked = _ask(body, spent, key)
    decision = await desk.call(desk.writer.reserve, actor, **asked, seconds=body.seconds)
    return _answer(decision.to_dict(), 201)


@router.post("/reservations/{charge}/commit", response_model=models.Decided, responses=_WRITES)
async def commit(charge: models.InPath, key: models.Key, desk: At, actor: Acting) -> Response:
    """Commits a reservation: draw the noise once this has answered 200."""

    def write() -> Json:
        return desk.book.commit(actor, charge).to_dict()

    return _answer(await _once(desk, actor, key, {"do": "commit", "charge": charge}, write), 200)


@router.post("/reservations/{charge}/release", response_model=models.Decided, responses=_WRITES)
async def release(
    charge: models.InPath, body: models.ReleaseBody, key: models.Key, desk: At, actor: Acting
) -> Response:  # fmt: skip
    """Gives back a reservation if nothing was drawn for it; once it has expired, only another officer can."""

    def write() -> Json:
        return desk.book.release(actor, charge, evidence=body.evidence).to_dict()

    asked = {"do": "release", "charge": charge, **body.model_dump()}
    return _answer(await _once(desk, actor, key, asked, write), 200)


@router.post("/claims", status_code=202, response_model=models.Claimed, responses=_WRITES)
async def claim(
    body: models.ClaimBody,
    key: models.Key,  # noqa: ARG001 - every write has one; a claim is what it is about, whatever its key
    desk: At,
    actor: Acting,  # noqa: ARG001 - who may
    calculator: Calculates,
) -> Response:
    """Begins to judge an algorithm's claim, and returns how that stands; ask again until it is not running."""
    if body.algorithm not in registry.names("algorithms"):
        raise ProblemError(404, f"there is no algorithm {body.algorithm!r}: GET /v1/algorithms lists them")
    return JSONResponse(await desk.call(Claims(calculator).judge, desk, body), 202)


@router.post("/datasets", status_code=201, responses=_WRITES)
async def open_dataset(body: models.DatasetBody, key: models.Key, desk: At, actor: Acting) -> models.NewPolicy:
    """Opens a dataset with the (ε, δ) that all its grants together keep."""
    fields = body.model_dump()

    def write() -> Json:
        return {"policy": desk.book.set_policy(actor, **fields).to_dict()}

    return models.NewPolicy(**await _once(desk, actor, key, {"do": "dataset", **fields}, write))


@router.post("/datasets/{dataset}/blocks", status_code=201, responses=_WRITES)
async def add_blocks(
    dataset: models.InPath, body: models.BlocksBody, key: models.Key, desk: At, actor: Acting
) -> models.NewBlocks:
    """Divides a dataset into blocks without a common user, or adds some."""
    asked = {"do": "blocks", "dataset": dataset, **body.model_dump()}

    def write() -> Json:
        made = desk.book.add_blocks(actor, dataset, body.blocks, disjoint_users=body.disjoint_users)
        return {"dataset": dataset, "blocks": [one.to_dict() for one in made]}

    return models.NewBlocks(**await _once(desk, actor, key, asked, write))


@router.post("/grants", status_code=201, responses=_WRITES)
async def make_grant(
    body: models.GrantBody, key: models.Key, desk: At, actor: Acting, calculator: Calculates
) -> models.NewGrant:
    """Makes a grant: a part of a dataset's budget, whose cap or plan is fixed."""
    fields = body.fields()
    await desk.call(_certify, desk, calculator, fields)

    def write() -> Json:
        make = desk.book.grant if body.events is None else desk.book.plan
        grant, policy = make(actor, **fields)
        return {"grant": grant.to_dict(), "policy": policy.to_dict()}

    return models.NewGrant(**await _once(desk, actor, key, {"do": "grant", **fields}, write))


def _certify(desk: Desk, calculator: Calculator, fields: Mapping[str, Any]) -> None:
    """Composes all grants where it can be killed, before that is done where the ledger waits for it.

    Raises:
        ProblemError: It takes too long, or is refused.
    """
    with desk.book.store.read() as transaction:
        policy = find_policy(transaction, fields["dataset"])
        others = grants_of(transaction, fields["dataset"])
    blocks = set(fields.get("blocks", ()))
    grants = [grant.to_dict() for grant in others if not blocks or blocks & set(grant.blocks)]
    currencies = {fields.get("currency", "events"), *(grant["currency"] for grant in grants)}
    if len(currencies) == 1 and "events" not in currencies:
        return  # a sum in one currency, which takes no time
    if policy is None or policy.unit is None:
        return  # the book refuses it
    told = {name: value for name, value in fields.items() if name != "unit"}
    calculator.run("certify", {"grants": grants, "fields": told, "delta": str(policy.delta)})


@router.post("/evidence", status_code=201, responses=_WRITES)
async def add_evidence(body: models.EvidenceBody, key: models.Key, desk: At, actor: Acting) -> models.NewEvidence:
    """Adds what an audit found of a charge; a violation freezes the grant."""

    def write() -> Json:
        value = desk.book.add_evidence(actor, body.charge, verdict=body.verdict, report=body.report)
        return {"charge": body.charge, "verdict": body.verdict, "hash": value}

    return models.NewEvidence(**await _once(desk, actor, key, {"do": "evidence", **body.model_dump()}, write))


@router.post("/grants/{grant}/freeze", status_code=201, responses=_WRITES)
async def freeze_grant(
    grant: models.InPath, body: models.FreezeBody, key: models.Key, desk: At, actor: Acting
) -> models.Frozen:
    """Stops all spending on a grant, for good."""

    def write() -> Json:
        return {"grant": grant, "state": "frozen", "hash": desk.book.freeze(actor, grant, reason=body.reason)}

    return models.Frozen(**await _once(desk, actor, key, {"do": "freeze", "grant": grant, **body.model_dump()}, write))


@router.post("/accept", response_model=models.Accepted, responses=_WRITES)
async def accept(
    body: models.AcceptBody,
    key: models.Key,  # noqa: ARG001 - every write has one; an answer about another copy would be none about this one
    desk: At,
    actor: Acting,
) -> Response:
    """Lets a store be written again that was put back from a backup, once it was compared with receipts."""
    receipts = [Receipt.parse(one.model_dump()) for one in body.receipts]
    return JSONResponse((await desk.call(desk.book.accept, actor, receipts=receipts, freeze=body.freeze)).to_dict())


@router.post("/tokens", status_code=201, responses=_WRITES)
async def make_token(body: models.TokenBody, key: models.Key, desk: At, actor: Acting) -> models.NewToken:
    """Makes a token, which is shown only this once."""
    fields = {**body.model_dump(), "grants": tuple(body.grants)}

    def write() -> Json:
        return {"name": body.name, "role": body.role, "token": desk.book.make_token(actor, **fields)}

    told = await _once(desk, actor, key, {"do": "token", **body.model_dump()}, write, secret=True)
    return models.NewToken(**told)


@router.delete("/tokens/{name}", responses=_WRITES)
async def revoke_token(name: models.InPath, key: models.Key, desk: At, actor: Acting) -> models.Revoked:
    """Ends a token."""

    def write() -> Json:
        desk.book.revoke_token(actor, name)
        return {"name": name, "revoked": True}

    return models.Revoked(**await _once(desk, actor, key, {"do": "revoke", "name": name}, write))


async def _spent(desk: Desk, body: models.SpendBody, calculator: Calculator) -> Spent:
    if body.event is not None:
        claim = {} if body.about is None else body.about.model_dump(exclude_defaults=True)
        if body.conditions is not None:
            claim["joint"] = dict.fromkeys(body.conditions, STATED)
        return Spent(event=body.event.plain(), claim=claim or None, unit=models.plain_unit(body.unit))
    return await desk.call(Claims(calculator).spending, desk, body)


def _ask(body: models.SpendBody, spent: Spent, key: str) -> Json:
    """Returns the request as the book takes it."""
    return {
        "grant": body.grant, "event": spent.event, "unit": spent.unit, "key": key, "claim": spent.claim,
        "blocks": body.blocks,
    }  # fmt: skip


async def _once(
    desk: Desk, actor: Actor, key: str, asked: Json, write: Callable[[], Json], *, secret: bool = False
) -> Json:
    return await desk.call(desk.once, actor, key, asked, write, secret=secret)


def _answer(told: Json, status: int) -> Response:
    """Returns a decision; one that refuses is a problem with the same fields."""
    if told["state"] == "refused":
        raise ProblemError(409, told["reason"] or "refused", more=told)
    return JSONResponse(told, status)
