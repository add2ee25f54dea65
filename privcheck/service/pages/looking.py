"""Pages that show the ledger: all datasets, one dataset, one charge, a statement."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from privcheck.accounting.currencies import NOT_A_GUARANTEE
from privcheck.ledger import Actor, rows
from privcheck.ledger.answers import Charge
from privcheck.ledger.roles import may
from privcheck.ledger.values import Entry
from privcheck.service.calculator import Calculator
from privcheck.service.desk import Desk
from privcheck.service.ledger_views import DELTAS, GRANT_FIELDS, lines_of
from privcheck.service.pages import derivation
from privcheck.service.pages.drawing import Drawing, draw_courses, draw_curve
from privcheck.service.pages.reading import Course, History, course_of, history_of, newest_charges
from privcheck.service.pages.rendering import render
from privcheck.service.pages.standing import (
    bar_of,
    bar_of_sums,
    standing_of_charge,
    standing_of_dataset,
    standing_of_grant,
)
from privcheck.service.pages.visitors import Visiting
from privcheck.service.problems import ProblemError

router = APIRouter()
Json = Mapping[str, Any]
_PAGE: Final = 25
_QUICK: Final = 20  # events of plans whose curve there is at once, and not behind what takes long
_DRAWN: Final = 6  # lines that can be told apart
_WALKED: Final = 20_000  # rows of a chain that a statement sums up, in half a second
_LISTED: Final = 200  # lines of a statement
_Before = Annotated[int | None, Query(ge=1, le=2**53)]
InPath = Annotated[str, Path(min_length=1, max_length=80)]


@router.get("/")
async def show_all(request: Request, visitor: Visiting) -> Response:
    """Returns the page of all datasets."""
    desk = visitor.desk
    shown = await desk.call(desk.book.show, visitor.actor)
    datasets = [_dress(one, desk.book.now()) for one in shown["datasets"]]
    return render("datasets", request.scope, {"datasets": datasets})


@router.get("/datasets/{dataset}")
async def show_dataset(dataset: InPath, request: Request, visitor: Visiting, before: _Before = None) -> Response:
    """Returns the page of a dataset: its guarantee, grants, their course, the curve of their caps, its charges."""
    desk, now = visitor.desk, visitor.desk.book.now()
    shown = await desk.call(_show_one, desk, visitor.actor, dataset)
    courses, frozen = await desk.call(_courses, desk, shown)
    charges = await desk.call(_charges, desk, dataset, before, now)
    curve = await ask_curve(request, desk, shown)
    fields = {
        "dataset": _dress(shown, now),
        "spending": draw_courses(courses, now=now) if courses else [],
        "drawn": len(courses),
        "frozen": frozen,
        "curve": _draw(shown["policy"], curve),
        "guaranteed": curve,
        "charges": charges[:_PAGE],
        "units": {grant["name"]: grant["currency"] for grant in shown["grants"]},
        "older": charges[_PAGE - 1].seq if len(charges) > _PAGE else None,
        "before": before,
        "note": NOT_A_GUARANTEE,
    }
    return render("dataset", request.scope, fields)


@router.get("/charges/{charge}")
async def show_charge(charge: InPath, request: Request, visitor: Visiting) -> Response:
    """Returns the page of a charge: what it is, what it costs and why, what became of it, its receipt."""
    desk, now = visitor.desk, visitor.desk.book.now()
    found = await desk.call(_history, desk, charge, now)
    grant = await desk.call(desk.book.find_grant, visitor.actor, found.charge.grant)
    fields = {
        "charge": found.charge,
        "told": found.charge.to_dict(),
        "standing": standing_of_charge(found.charge),
        "history": found,
        "verdict": _verdict(found.charge.claim),
        "grant": grant.to_dict(),
        "steps": await desk.call(derivation.derive, found.charge, grant),  # of up to 10⁴ events
        "share": derivation.share_of(found.charge, grant),
        "actions": actions_on(visitor.actor, found.charge),
        "key": secrets.token_urlsafe(16),
    }
    return render("charge", request.scope, fields)


@router.get("/statement/{dataset}")
async def show_statement(dataset: InPath, request: Request, visitor: Visiting) -> Response:
    """Returns a statement to print: policy, guarantee, grants, what was charged, the signed head."""
    desk, now = visitor.desk, visitor.desk.book.now()
    shown = await desk.call(_show_one, desk, visitor.actor, dataset)
    short = shown["head"]["seq"] <= _WALKED
    lines = await desk.call(lines_of, desk, dataset) if short else []
    fields = {
        "dataset": _dress(shown, now),
        "guaranteed": await ask_curve(request, desk, shown),
        "lines": lines[:_LISTED],
        "listed": short,
        "left_out": max(0, len(lines) - _LISTED),
        "now": now,
        "note": NOT_A_GUARANTEE,
    }
    return render("statement", request.scope, fields)


def _verdict(claim: Json | None) -> str:
    """Returns what was found of the claim that a charge is for, empty where nobody had judged it.

    Commands write the verdict; the service writes the name of the claim, which is charged only where it holds.
    """
    if claim is None:
        return ""
    verdict = str(claim["verdict"]) if "verdict" in claim else "holds" if "claim" in claim else ""
    return f"{verdict}, given {', '.join(claim['given'])}" if "given" in claim else verdict


def actions_on(actor: Actor, charge: Charge) -> list[str]:
    """Returns what somebody may do about a charge on its page: as the book decides, which is asked again."""
    if charge.state != "reserved":
        return []
    own = actor.name == charge.actor
    allowed = actor.role == "officer" or (own and charge.grant in actor.grants)
    attests = charge.expired or not own
    if not allowed or not may(actor.role, "commit"):
        return []
    if attests and (own or not may(actor.role, "attest")):
        return ["commit"]
    return ["commit", "attest" if attests else "release"]


async def ask_curve(request: Request, desk: Desk, shown: Json) -> dict[str, Any]:
    """Returns ε at every δ of all that a dataset's grants will ever admit, and at the policy's; or why not now."""
    calculator: Calculator = request.app.state.calculators.holders
    own = next((d for d in DELTAS if Fraction(d) == Fraction(shown["policy"]["delta"])), shown["policy"]["delta"])
    deltas = [*DELTAS, *([own] if own not in DELTAS else [])]
    grants = [{name: grant[name] for name in GRANT_FIELDS} for grant in shown["grants"]]
    asked = {"policy": shown["policy"], "grants": grants, "deltas": deltas}
    long = sum(len(grant["plan"]) for grant in grants) > _QUICK
    missing = "it is being computed: load the page again"
    try:
        found = await desk.call(calculator.run_later if long else calculator.run, "curve", asked)
    except ProblemError as problem:
        found, missing = None, missing if problem.status in {429, 503} else problem.detail
    if found is None:
        return {"points": [], "epsilon": None, "missing": missing}
    points = found["points"]
    at = next(point["epsilon"] for point in points if point["delta"] == own)
    return {"points": points, "epsilon": at, "missing": ""}


def _draw(policy: Json, curve: Json) -> list[Drawing]:
    points = [
        (float(point["delta"]), float(point["epsilon"]))
        for point in curve["points"]
        if point["epsilon"] is not None and float(point["delta"]) > 0
    ]
    return (
        draw_curve(points, policy=(float(Fraction(policy["epsilon"])), float(Fraction(policy["delta"]))))
        if points
        else []
    )


def _show_one(desk: Desk, actor: Actor, name: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.book.show(actor, name)["datasets"][0]
    return found


def _courses(desk: Desk, shown: Json) -> tuple[list[Course], list[Entry]]:
    """Returns how the first grants were spent, and the rows that have frozen some."""
    with desk.book.store.read() as transaction:
        drawn = [course_of(transaction, grant["name"]) for grant in shown["grants"][:_DRAWN]]
        return drawn, rows.rows_of_kind(transaction, shown["name"], "freeze")


def _charges(desk: Desk, dataset: str, before: int | None, now: str) -> list[Charge]:
    with desk.book.store.read() as transaction:
        return newest_charges(transaction, dataset, before=before, most=_PAGE + 1, now=now)


def _history(desk: Desk, charge: str, now: str) -> History:
    with desk.book.store.read() as transaction:
        return history_of(transaction, charge, now=now)


def _dress(dataset: Json, now: str) -> dict[str, Any]:
    """Returns a dataset with what is said and drawn of it and of its grants."""
    grants = [{**grant, "bar": bar_of(grant), "standing": standing_of_grant(grant)} for grant in dataset["grants"]]
    return {
        **dataset,
        "grants": grants,
        "standing": standing_of_dataset(dataset, now=max(now, dataset["head"]["at"])),  # the dataset's time
        "divided": [_dress_block(block, dataset["grants"]) for block in dataset["blocks"]],
    }


def _dress_block(block: Json, grants: Sequence[Json]) -> dict[str, Any]:
    """Returns a block with the grants that cover it, as they stand there."""
    there = []
    for grant in grants:
        if block["name"] in grant["blocks"]:
            balance = {**grant["balance"], **grant["balance"]["blocks"][block["name"]]}
            there.append({**grant, "balance": balance, "bar": bar_of_sums(balance, balance["cap"])})
    return {**block, "grants": there}
