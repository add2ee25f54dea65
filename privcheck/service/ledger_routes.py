"""Endpoints of the ledger, for writing and reading, and the readiness check.

* Writing: quotes, reservations, charges, claims, datasets, grants, tokens. The basis of a charge is a plain event, or a
  verified claim at the accountant's cost (`Claims`).
* Reading: datasets, curves, charges, receipts, exports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from itertools import takewhile
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import JSONResponse

from privcheck import __version__
from privcheck.accounting.currencies import NOT_A_GUARANTEE
from privcheck.ledger import Actor, Receipt, rows
from privcheck.ledger.exact import canonical, digest
from privcheck.ledger.grants import find_policy, grants_of
from privcheck.ledger.limits import STATED
from privcheck.ledger.values import Grant
from privcheck.ledger.views import charges_of_rows, join_charged, state_charges
from privcheck.runtime import registry
from privcheck.service import ledger_models as models
from privcheck.service.access import MOST_EVENTS, Acting, check_query
from privcheck.service.calculation_routes import Calculates, Health, Waiting
from privcheck.service.calculator import Calculator, Calculators
from privcheck.service.ledger_models import ClaimBody, SpendBody
from privcheck.service.problems import ProblemError, responses
from privcheck.service.session import LedgerSession, Pusher, desk_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Event of a charge, with its basis.

    Attributes:
        event: The event, as JSON.
        claim: The claim or description that is stored with the charge, or None.
        unit: The unit for which it was priced.
    """

    event: dict[str, Any]
    claim: dict[str, Any] | None
    unit: str | dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Claims:
    """Claims by the digest of algorithm, parameters and version; verified in the worker processes.

    Attributes:
        calculator: Runs the verification.
    """

    calculator: Calculator

    def judge(self, desk: LedgerSession, body: ClaimBody) -> dict[str, Any]:
        """State of a claim; starts its verification if there is no verdict."""
        asked = {"name": body.algorithm, "parameters": body.parameters, "version": __version__}
        name = digest(canonical(asked))
        found = self.calculator.run_later("claim", asked)
        desk.remember_claim(name, asked, judged=found is not None)
        told = {"claim": name, "algorithm": body.algorithm, "parameters": body.parameters}
        return {**told, "state": "running", "events": None} if found is None else {**told, **found}

    def spending(self, desk: LedgerSession, body: SpendBody) -> Spent:
        """Event of a request to spend with a claim.

        Raises:
            ProblemError: The claim is unknown (404), has no verdict yet (503), does not hold (409), or has no finite
                cost in the grant's currency (422).
        """
        assert body.claim is not None
        asked = desk.recall_claim(body.claim)
        if asked is None:
            raise ProblemError(404, "no such claim: POST /v1/claims creates it, and always returns the same one")
        found = self.calculator.run_later("claim", asked)
        if found is None:
            raise ProblemError(503, "the claim is being judged: ask again with the same Idempotency-Key")
        if found["state"] != "holds":
            state = found["state"]
            more = {"state": "refused", "reason": f"the claim {state}", "remaining": None, "receipt": None}
            raise ProblemError(409, f"only a claim that holds may be charged; this one {state}", more=more)
        currency = desk.currency_of(body.grant)
        event = found["events"].get(currency)  # a plan counts events, and a claim is none of them
        if event is None:
            raise ProblemError(422, f"{asked['name']} has no finite cost in the grant's currency, {currency}")
        about = {name: value for name, value in found["about"].items() if name != "unit"}
        claim = {"claim": body.claim, **about, "version": asked["version"]}
        return Spent(event=event, claim=claim, unit=found["about"]["unit"])


Json = dict[str, Any]
router = APIRouter(prefix="/v1", tags=["ledger"], dependencies=[Depends(check_query)])
At = Annotated[LedgerSession, Depends(desk_of)]
_READS = responses(401, 403)
_WRITES = responses(401, 403, 409)


@router.post("/quotes", response_model=models.Quoted, responses=_READS)
async def quote(body: models.SpendBody, desk: At, actor: Acting, calculator: Calculates) -> Response:
    """Quote the cost of a charge, whether it would fit now and how often; writes nothing."""
    spent = await _spent(desk, body, calculator)
    asked = {"grant": body.grant, "event": spent.event, "unit": spent.unit, "blocks": body.blocks}
    found = await desk.call(desk.book.quote, actor, **asked)
    return JSONResponse(found.to_dict())


@router.post("/charges", status_code=201, response_model=models.Decided, responses=_WRITES)
async def charge(
    body: models.SpendBody, key: models.Key, desk: At, actor: Acting, calculator: Calculates
) -> Response:  # fmt: skip
    """Charge a release before its noise is drawn: draw the noise once this has answered 201."""
    spent = await _spent(desk, body, calculator)
    asked = _ask(body, spent, key)
    return _answer((await desk.call(desk.writer.charge, actor, **asked)).to_dict(), 201)


@router.post("/reservations", status_code=201, response_model=models.Decided, responses=_WRITES)
async def reserve(
    body: models.ReserveBody, key: models.Key, desk: At, actor: Acting, calculator: Calculates
) -> Response:  # fmt: skip
    """Reserve budget for a run; the reservation counts as spent until it is released."""
    spent = await _spent(desk, body, calculator)
    asked = _ask(body, spent, key)
    decision = await desk.call(desk.writer.reserve, actor, **asked, seconds=body.seconds)
    return _answer(decision.to_dict(), 201)


@router.post("/reservations/{charge}/commit", response_model=models.Decided, responses=_WRITES)
async def commit(charge: models.InPath, key: models.Key, desk: At, actor: Acting) -> Response:
    """Commit a reservation: draw the noise once this has answered 200."""

    def write() -> Json:
        return desk.book.commit(actor, charge).to_dict()

    return _answer(await _once(desk, actor, key, {"do": "commit", "charge": charge}, write), 200)


@router.post("/reservations/{charge}/release", response_model=models.Decided, responses=_WRITES)
async def release(
    charge: models.InPath, body: models.ReleaseBody, key: models.Key, desk: At, actor: Acting
) -> Response:  # fmt: skip
    """Release a reservation if no noise was drawn for it; once it has expired, only another officer can."""

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
    """Start the verification of an algorithm's claim, and show its state; ask again until it is not running."""
    if body.algorithm not in registry.names("algorithms"):
        raise ProblemError(404, f"there is no algorithm {body.algorithm!r}: GET /v1/algorithms lists them")
    return JSONResponse(await desk.call(Claims(calculator).judge, desk, body), 202)


@router.post("/datasets", status_code=201, responses=_WRITES)
async def open_dataset(body: models.DatasetBody, key: models.Key, desk: At, actor: Acting) -> models.NewPolicy:
    """Open a dataset with the (ε, δ) that all its grants together keep."""
    fields = body.model_dump()

    def write() -> Json:
        return {"policy": desk.book.set_policy(actor, **fields).to_dict()}

    return models.NewPolicy(**await _once(desk, actor, key, {"do": "dataset", **fields}, write))


@router.post("/datasets/{dataset}/blocks", status_code=201, responses=_WRITES)
async def add_blocks(
    dataset: models.InPath, body: models.BlocksBody, key: models.Key, desk: At, actor: Acting
) -> models.NewBlocks:
    """Divide a dataset into blocks without a common user, or add blocks."""
    asked = {"do": "blocks", "dataset": dataset, **body.model_dump()}

    def write() -> Json:
        made = desk.book.add_blocks(actor, dataset, body.blocks, disjoint_users=body.disjoint_users)
        return {"dataset": dataset, "blocks": [one.to_dict() for one in made]}

    return models.NewBlocks(**await _once(desk, actor, key, asked, write))


@router.post("/grants", status_code=201, responses=_WRITES)
async def make_grant(
    body: models.GrantBody, key: models.Key, desk: At, actor: Acting, calculator: Calculates
) -> models.NewGrant:
    """Make a grant: a part of a dataset's budget, with a fixed cap or plan."""
    fields = body.fields()
    await desk.call(_certify, desk, calculator, fields)

    def write() -> Json:
        make = desk.book.grant if body.events is None else desk.book.plan
        grant, policy = make(actor, **fields)
        return {"grant": grant.to_dict(), "policy": policy.to_dict()}

    return models.NewGrant(**await _once(desk, actor, key, {"do": "grant", **fields}, write))


def _certify(desk: LedgerSession, calculator: Calculator, fields: Mapping[str, Any]) -> None:
    """Compose all grants in a process that can be killed, before the ledger does so inside its transaction.

    Raises:
        ProblemError: The composition takes too long, or is refused.
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
    """Record an audit's finding on a charge; a violation freezes the grant."""

    def write() -> Json:
        value = desk.book.add_evidence(actor, body.charge, verdict=body.verdict, report=body.report)
        return {"charge": body.charge, "verdict": body.verdict, "hash": value}

    return models.NewEvidence(**await _once(desk, actor, key, {"do": "evidence", **body.model_dump()}, write))


@router.post("/grants/{grant}/freeze", status_code=201, responses=_WRITES)
async def freeze_grant(
    grant: models.InPath, body: models.FreezeBody, key: models.Key, desk: At, actor: Acting
) -> models.Frozen:
    """Stop all spending on a grant, permanently."""

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
    """Make a store that was restored from a backup writable again, after comparing it with receipts."""
    receipts = [Receipt.parse(one.model_dump()) for one in body.receipts]
    return JSONResponse((await desk.call(desk.book.accept, actor, receipts=receipts, freeze=body.freeze)).to_dict())


@router.post("/tokens", status_code=201, responses=_WRITES)
async def make_token(body: models.TokenBody, key: models.Key, desk: At, actor: Acting) -> models.NewToken:
    """Create a token, which is shown only this once."""
    fields = {**body.model_dump(), "grants": tuple(body.grants)}

    def write() -> Json:
        return {"name": body.name, "role": body.role, "token": desk.book.make_token(actor, **fields)}

    told = await _once(desk, actor, key, {"do": "token", **body.model_dump()}, write, secret=True)
    return models.NewToken(**told)


@router.delete("/tokens/{name}", responses=_WRITES)
async def revoke_token(name: models.InPath, key: models.Key, desk: At, actor: Acting) -> models.Revoked:
    """Revoke a token."""

    def write() -> Json:
        desk.book.revoke_token(actor, name)
        return {"name": name, "revoked": True}

    return models.Revoked(**await _once(desk, actor, key, {"do": "revoke", "name": name}, write))


async def _spent(desk: LedgerSession, body: models.SpendBody, calculator: Calculator) -> Spent:
    if body.event is not None:
        claim = {} if body.about is None else body.about.model_dump(exclude_defaults=True)
        if body.conditions is not None:
            claim["joint"] = dict.fromkeys(body.conditions, STATED)
        return Spent(event=body.event.plain(), claim=claim or None, unit=models.plain_unit(body.unit))
    return await desk.call(Claims(calculator).spending, desk, body)


def _ask(body: models.SpendBody, spent: Spent, key: str) -> Json:
    """Request in the form of the book's arguments."""
    return {
        "grant": body.grant, "event": spent.event, "unit": spent.unit, "key": key, "claim": spent.claim,
        "blocks": body.blocks,
    }  # fmt: skip


async def _once(
    desk: LedgerSession, actor: Actor, key: str, asked: Json, write: Callable[[], Json], *, secret: bool = False
) -> Json:
    return await desk.call(desk.once, actor, key, asked, write, secret=secret)


def _answer(told: Json, status: int) -> Response:
    """Response for a decision; a refusal is a problem with the same fields."""
    if told["state"] == "refused":
        raise ProblemError(409, told["reason"] or "refused", more=told)
    return JSONResponse(told, status)


views = APIRouter(prefix="/v1", tags=["ledger"], dependencies=[Depends(check_query)])
_PAGE: Final = 100
GRANT_FIELDS: Final = tuple(field.name for field in fields(Grant))  # without its balance
DELTAS: Final = ("1e-3", "1e-4", "1e-5", "1e-6", "1e-7", "1e-8", "1e-9", "1e-10", "1e-12")
_SHOWN = responses(401, 403)


@views.get("/readyz", responses=responses(), tags=["calculations"])
async def ready(request: Request) -> Health:
    """Check that the service is ready: it calculates, and its ledger, if it has one, is readable and writable."""
    desk: LedgerSession | None = request.app.state.desk
    if desk is not None:
        if desk.book.store.read_only or desk.book.store.doubt:
            raise ProblemError(503, "the ledger is read-only until an officer has compared it")
        await desk.holders.check()
    calculators: Calculators = request.app.state.calculators
    if not (calculators.strangers if desk is None else calculators.holders).is_up():
        raise ProblemError(503, "calculations are not ready yet: ask again", public=True)
    pusher: Pusher | None = request.app.state.pusher
    if pusher is None:
        return Health(status="ok", version=__version__)
    pushed, failing = pusher.pushed, bool(pusher.failure)
    return Health(status="ok", version=__version__, heads_pushed=pushed, heads_failing=failing)


@views.get("/datasets", response_model=models.ShownDatasets, responses=_SHOWN)
async def show_datasets(desk: At, actor: Acting) -> Response:
    """Show all datasets: policies, grants with the rest of their budget, heads."""
    return JSONResponse(await desk.call(desk.book.show, actor))


@views.get("/datasets/{dataset}", response_model=models.ShownDataset, responses=_SHOWN)
async def show_dataset(dataset: models.InPath, desk: At, actor: Acting) -> Response:
    """Show a dataset."""
    return JSONResponse(await desk.call(_dataset, desk, actor, dataset))


@views.get("/datasets/{dataset}/curve", response_model=models.CapCurve, responses=_SHOWN)
async def show_curve(dataset: models.InPath, desk: At, actor: Acting, calculator: Calculates) -> Response:
    """Compute ε at δ of all that the dataset's grants will ever admit: the guarantee, independent of the spending."""
    shown = await desk.call(_dataset, desk, actor, dataset)
    grants = [{name: grant[name] for name in GRANT_FIELDS} for grant in shown["grants"]]
    asked = {"policy": shown["policy"], "grants": grants, "deltas": DELTAS}
    found = await desk.call(calculator.run, "curve", asked)
    return JSONResponse({"dataset": dataset, **found})


@views.get("/datasets/{dataset}/charges", response_model=models.Charges, responses=_SHOWN)
async def show_charges(dataset: models.InPath, desk: At, actor: Acting, after: models.After = 0) -> Response:
    """Show a page of a dataset's charges, in the order of their creation."""
    return JSONResponse(await desk.call(_charges, desk, actor, dataset, after))


@views.get("/grants/{grant}", response_model=models.ShownGrant, responses=_SHOWN)
async def show_grant(grant: models.InPath, desk: At, actor: Acting) -> Response:
    """Show a grant, and the rest of its budget."""
    return JSONResponse(await desk.call(_grant, desk, actor, grant))


@views.get("/charges/{charge}", response_model=models.ShownCharge, responses=_SHOWN)
async def show_charge(charge: models.InPath, desk: At, actor: Acting) -> Response:
    """Show the current state of a charge."""
    return JSONResponse((await desk.call(desk.book.find_charge, actor, charge)).to_dict())


@views.get("/receipts/{hash}", response_model=models.SignedHead, responses=_SHOWN)
async def show_receipt(hash: models.Hash, desk: At, actor: Acting) -> Response:  # noqa: A002 - the path's name
    """Show the receipt of the row with a hash; a 404 for the hash of a receipt means that the chain was cut."""
    return JSONResponse((await desk.call(desk.book.find_receipt, actor, hash)).to_dict())


@views.get("/key", response_model=models.SigningKey, responses=_SHOWN)
async def show_key(desk: At, actor: Acting) -> Response:
    """Show the public key with which anybody can check receipts and heads."""
    return JSONResponse((await desk.call(desk.book.public_key, actor)).to_dict())


@views.get("/heads", response_model=models.SignedHeads, responses=_SHOWN)
async def show_heads(desk: At, actor: Acting) -> Response:
    """Show the signed heads of all chains: keep them, any two reveal a rollback or a fork."""
    return JSONResponse({"heads": [head.to_dict() for head in await desk.call(desk.book.heads, actor)]})


@views.get(
    "/export",
    response_model=models.Exported,
    responses={202: {"model": Waiting, "description": "Not ready yet: ask again."}, **_SHOWN},
)
async def export(
    desk: At,
    actor: Acting,
    calculator: Calculates,
    kind: Annotated[Literal["dp-event", "statement"], Query(alias="as")] = "statement",
    dataset: Annotated[models.Name | None, Query()] = None,
) -> Response:
    """Export the guarantee (statement) or the charges that were not released (dp-event); 202 while it reads."""
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
    responses={202: {"model": Waiting, "description": "Not ready yet: ask again."}, **_SHOWN},
)
async def verify(body: models.VerifyBody, desk: At, actor: Acting) -> Response:
    """Verify the hashes and sums of every chain, and the rows of kept receipts; 202 while it reads."""
    receipts = tuple(Receipt.parse(one.model_dump()) for one in body.receipts)
    found = await desk.check_later(actor, receipts)
    if found is None:
        return JSONResponse(Waiting(state="running").model_dump(), 202, {"Retry-After": "2"})
    return JSONResponse(found)


@views.get("/tokens", responses=_SHOWN)
async def list_tokens(desk: At, actor: Acting) -> models.Tokens:
    """List the tokens with their holders."""
    return models.Tokens.model_validate({"tokens": await desk.call(desk.book.list_tokens, actor)})


def _dataset(desk: LedgerSession, actor: Actor, name: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.book.show(actor, name)["datasets"][0]
    return found


def _grant(desk: LedgerSession, actor: Actor, name: str) -> dict[str, Any]:
    shown = desk.book.show(actor, desk.book.find_grant(actor, name).dataset)["datasets"][0]
    return next(grant for grant in shown["grants"] if grant["name"] == name)


def _charges(desk: LedgerSession, actor: Actor, dataset: str, after: int) -> dict[str, Any]:
    found = desk.book.charges(actor, dataset, after=after, most=_PAGE + 1)
    shown = [one.to_dict() for one in found[:_PAGE]]
    return {"charges": shown, "next": shown[-1]["seq"] if len(found) > _PAGE else None}


def _state_all(desk: LedgerSession, actor: Actor, dataset: str | None) -> list[dict[str, Any]]:
    """Datasets, all or one, each with the lines of its statement up to the head that is shown."""
    return [
        {**one, "lines": lines_of(desk, one["name"], last=one["head"]["seq"])}
        for one in desk.book.show(actor, dataset)["datasets"]
    ]


def lines_of(desk: LedgerSession, dataset: str, *, last: int) -> list[dict[str, Any]]:
    """Lines of a dataset's statement, from its charges up to a row."""
    with desk.book.store.read() as transaction:
        found = takewhile(lambda row: row.seq <= last, rows.rows_of_dataset(transaction, dataset))
        lines = state_charges(charges_of_rows(found))
    if len(lines) > MOST_EVENTS:
        raise ProblemError(422, f"{len(lines)} different charges do not fit into one statement")
    return lines


def _read_all(
    desk: LedgerSession, actor: Actor, dataset: str | None
) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Datasets, all or one, each with its events up to the head that is shown."""
    return [
        (one, events_of(desk, one["name"], last=one["head"]["seq"]))
        for one in desk.book.show(actor, dataset)["datasets"]
    ]


def events_of(desk: LedgerSession, dataset: str, *, last: int) -> list[dict[str, Any]]:
    """Events charged to a dataset up to a row and not released by then, equal events together."""
    with desk.book.store.read() as transaction:
        found = takewhile(lambda row: row.seq <= last, rows.rows_of_dataset(transaction, dataset))
        events = join_charged((one["state"], one["event"]) for one in charges_of_rows(found))
    if len(events) > MOST_EVENTS:
        raise ProblemError(422, f"{len(events)} different events do not fit into one export")
    return events
