"""Pages that show the ledger: all datasets, one dataset, one charge with its derivation, a statement.

The first line of a page is a status in a word and a sentence (`Standing`). The derivation of a charge's cost has steps
with exact numbers, from its event to its share of the grant's cap (`derive`, `share_of`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from privcheck.accounting.currencies import NOT_A_GUARANTEE
from privcheck.ledger import Actor, rows
from privcheck.ledger.balances import SHARES
from privcheck.ledger.exact import write_number
from privcheck.ledger.forecasts import say_forecast
from privcheck.ledger.registry import may
from privcheck.ledger.values import Charge, CurrencyName, Entry, Grant
from privcheck.ledger.wire import Part, parse_event
from privcheck.service.calculator import Calculator
from privcheck.service.ledger_routes import DELTAS, GRANT_FIELDS, lines_of
from privcheck.service.pages.charts import Drawing, draw_courses, draw_curve
from privcheck.service.pages.login import Visiting
from privcheck.service.pages.queries import Course, History, course_of, history_of, newest_charges
from privcheck.service.pages.rendering import describe_event, render, symbol
from privcheck.service.problems import ProblemError
from privcheck.service.session import LedgerSession

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Status of a dataset, a grant or a charge.

    Attributes:
        tone: good, open (needs attention), bad (blocked), or plain.
        word: The status in a word or two.
        sentence: The status in a sentence.
    """

    tone: Literal["good", "open", "bad", "plain"]
    word: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Parts of a cap, in per cent of it, for a drawing.

    Attributes:
        committed: Share that may have been released.
        reserved: Share that may still be released.
    """

    committed: float
    reserved: float


def standing_of_dataset(dataset: Json, *, now: str) -> Standing:
    """Status of a dataset.

    Args:
        dataset: The dataset as `Book.show` describes it.
        now: The time, in UTC.
    """
    grants = dataset["grants"]
    if (closed := _why_closed(dataset, now)) is not None:
        return Standing(tone="bad", word=closed[0], sentence=closed[1])
    if not grants:
        return Standing(tone="plain", word="No grants", sentence="It cannot be charged: it has no grants yet.")
    frozen = [grant for grant in grants if grant["balance"]["state"] == "frozen"]
    if frozen:
        names = _join([grant["name"] for grant in frozen])
        sentence = f"{names} {'is' if len(frozen) == 1 else 'are'} frozen: an officer has to decide."
        return Standing(tone="bad", word="Frozen" if frozen == grants else "Partly frozen", sentence=sentence)
    full = [grant for grant in grants if Fraction(grant["balance"]["free"]) == 0]
    if len(full) == len(grants):
        return Standing(tone="open", word="Spent", sentence="Its grants are used up.")
    if full:
        return Standing(tone="good", word="Open", sentence=f"Used up: {_join([g['name'] for g in full])}.")
    return Standing(tone="good", word="Open", sentence="All its grants have budget left.")


def _why_closed(dataset: Json, now: str) -> tuple[str, str] | None:
    """Reason why a dataset cannot be charged at all, in a word and a sentence; None if it can."""
    policy, support = dataset["policy"], dataset["support"]
    if support["state"] != "as declared":
        return "Not supported", support["sentence"]
    if policy["until"] is not None and policy["until"] <= now:
        return "Ended", "Its policy has ended: it cannot be charged."
    if policy["unit"] is None:
        unknown = "Its policy does not state the number of trajectories of a user: it accepts no grants or charges."
        return "Closed", unknown
    return None


def standing_of_grant(grant: Json) -> Standing:
    """Status of a grant."""
    if grant["balance"]["state"] == "frozen":
        return Standing(tone="bad", word="frozen", sentence="It can no longer be charged.")
    if Fraction(grant["balance"]["free"]) == 0:
        return Standing(tone="open", word="spent", sentence="Nothing is left.")
    return Standing(tone="good", word="open", sentence="It may be charged.")


def standing_of_charge(charge: Charge) -> Standing:
    """Status of a charge."""
    if charge.state == "committed":
        sentence = "Noise may have been drawn: it stays spent, and is never refunded."
        return Standing(tone="plain", word="Committed", sentence=sentence)
    if charge.state == "released":
        return Standing(tone="good", word="Released", sentence="Nothing was drawn, so nothing is spent.")
    if charge.expired:
        sentence = "Noise may have been drawn. It counts as spent until an officer attests that none was."
        return Standing(tone="open", word="Expired", sentence=sentence)
    return Standing(tone="open", word="Reserved", sentence="Set aside for a run; it counts as spent until released.")


def bar_of(grant: Json) -> Bar:
    """Committed and reserved parts of a grant's cap."""
    return bar_of_sums(grant["balance"], grant["balance"]["cap"])


def bar_of_sums(sums: Json, cap: str) -> Bar:
    """Committed and reserved parts of a cap."""
    parts = [float(100 * Fraction(sums[name]) / Fraction(cap)) for name in ("committed", "reserved")]
    return Bar(committed=round(parts[0], 3), reserved=round(parts[1], 3))


def _join(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < 3 else f"{names[0]}, {names[1]} and {len(names) - 2} more"


_SHOWN: Final = 20  # parts of an event
_GIVEN: Final = "as it is stated"
_FROM_PURE: Final[Mapping[str, str]] = {
    "rho": "every ε-DP release is ρ-zCDP with ρ = ε·tanh(ε/2)",
    "mu2": "every ε-DP release is μ-GDP with μ = −2Φ⁻¹(1/(1 + e^ε)) (Dong, Roth & Su 2022)",
}
_OWN: Final[Mapping[str, str]] = {
    "rho": "the least ρ that covers the release's own Rényi divergences",
    "mu2": "the least μ, to a ten-thousandth, whose trade-off function covers the release's own (Blackwell)",
}
_DERIVED: Final = "derived by the accountant from the event's privacy loss"
# by type, by the field that states the noise where there are several, and by currency
_RULES: Final[Mapping[tuple[str, str, str], str]] = {
    ("gaussian", "rho", "rho"): _GIVEN,
    ("gaussian", "rho", "mu2"): "μ² = 2ρ: Gaussian noise",
    ("gaussian", "mu2", "mu2"): _GIVEN,
    ("gaussian", "mu2", "rho"): "ρ = μ²/2: Gaussian noise",
    ("gaussian", "std", "mu2"): "μ² = (Δ/σ)² (Dong, Roth & Su 2022)",
    ("gaussian", "std", "rho"): "ρ = (Δ/σ)²/2 (Bun & Steinke 2016)",
    ("discrete_gaussian", "std", "rho"): "ρ = (Δ/σ)²/2 (Canonne, Kamath & Steinke 2020)",
    ("laplace", "scale", "epsilon"): "ε = Δ/b (Dwork, McSherry, Nissim & Smith 2006)",
    ("laplace", "scale", "rho"): "ρ = ε + e^(−ε) − 1 with ε = Δ/b: its Rényi divergences",
    ("laplace", "epsilon", "epsilon"): _GIVEN,
    ("laplace", "epsilon", "rho"): "ρ = ε + e^(−ε) − 1: the Rényi divergences of Laplace noise",
    ("discrete_laplace", "scale", "epsilon"): "ε = Δ/b (Ghosh, Roughgarden & Sundararajan 2009)",
    ("pure", "epsilon", "epsilon"): _GIVEN,
    ("approximate", "epsilon", "epsilon"): _GIVEN,
    ("randomized_response", "epsilon", "epsilon"): _GIVEN,
    ("bounded_range", "epsilon", "epsilon"): _GIVEN,
    ("bounded_range", "epsilon", "rho"): "ρ = ε²/8: bounded range (Cesar & Rogers 2021)",
    ("zcdp", "rho", "rho"): _GIVEN,
    ("gdp", "mu2", "mu2"): _GIVEN,
    ("gdp", "mu2", "rho"): "ρ = μ²/2 (Dong, Roth & Su 2022)",
}
_BY_KIND: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(("pure", "approximate"), _FROM_PURE),
    **dict.fromkeys(("laplace", "discrete_laplace", "randomized_response", "bounded_range"), _OWN),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a derivation.

    Attributes:
        words: The operation in words.
        rule: The theorem or formula behind it; empty for arithmetic.
        sides: Exact numbers, or None, each with the text before it: "4 × ", "0.05"; " = ", "0.2".
    """

    words: str
    rule: str = ""
    sides: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Share of its grant's cap that a charge takes.

    Attributes:
        units: In 2⁻⁶²ths of the cap, rounded up.
        cap: The cap, exactly.
    """

    units: int
    cap: str


def rule_of(event: Mapping[str, Any], currency: str) -> str:
    """Theorem or formula for the cost of one release of an event in a currency."""
    kind = str(event["type"])
    stated = next((name for name in ("rho", "mu2", "std", "scale", "epsilon") if name in event), "")
    rule = _RULES.get((kind, stated, currency))
    if rule is not None and (kind, "xi") != ("zcdp", next((name for name in event if name == "xi"), "")):
        return rule
    return _BY_KIND.get(kind, {}).get(currency, _DERIVED)


def derive(charge: Charge, grant: Grant) -> list[Step]:
    """Steps of a charge's cost, which end with the cost that was charged."""
    currency, letter = grant.currency, symbol(grant.currency)
    parts = parse_event(charge.event).parts
    if currency == "events":
        return [Step(words="A plan counts its events down", sides=(("", write_number(charge.cost.amount)),))]
    steps = [step for part in parts[:_SHOWN] for step in _of_part(part, currency)]
    if len(parts) > _SHOWN:
        steps.append(Step(words=f"{len(parts) - _SHOWN} more events, in the same way"))
    costs = [part.cost(currency) for part in parts]
    total = sum((cost.amount for cost in costs), Fraction(0))
    if len(parts) > 1:
        steps.append(Step(words="All events together", sides=((f"{letter} = ", write_number(total)),)))
    if total != charge.cost.amount:
        words = "Rounded up to 18 digits" if charge.cost.amount > total else "Price at the time of the charge"
        steps.append(Step(words=words, sides=((f"{letter} = ", write_number(charge.cost.amount)),)))
    if charge.cost.lost:
        steps.append(Step(words="δ of outright loss, in addition", sides=(("δ = ", write_number(charge.cost.lost)),)))
    return steps


def share_of(charge: Charge, grant: Grant) -> Share:
    """Share of its grant's cap that a charge takes."""
    return Share(units=-(-charge.cost.amount * SHARES // grant.cap), cap=write_number(grant.cap))


def _of_part(part: Part, currency: CurrencyName) -> list[Step]:
    event, letter = part.to_dict(), symbol(currency)
    once = Part(type=part.type, fields=part.fields, count=1)
    one, all_of_them = once.cost(currency).amount, part.cost(currency).amount
    steps = [
        Step(
            words=f"One release: {describe_event(once.to_dict())}",
            rule=rule_of(event, currency),
            sides=((f"{letter} = ", write_number(one)),),
        )
    ]
    if part.count > 1:
        sides = ((f"{part.count} × ", write_number(one)), (" = ", write_number(all_of_them)))
        steps.append(Step(words=f"{part.count} releases: costs in {letter} add up", sides=sides))
    return steps


router = APIRouter()
_PAGE: Final = 25
_QUICK: Final = 20  # events of plans whose curve there is at once, and not behind what takes long
_DRAWN: Final = 6  # lines that can be told apart
_WALKED: Final = 5_000  # rows of a chain that a statement sums up, in a tenth of a second
_LISTED: Final = 200  # lines of a statement
_Before = Annotated[int | None, Query(ge=1, le=2**53)]
InPath = Annotated[str, Path(min_length=1, max_length=80)]


@router.get("/")
async def show_all(request: Request, visitor: Visiting) -> Response:
    """Render the page of all datasets."""
    desk = visitor.desk
    shown = await desk.call(desk.book.show, visitor.actor)
    datasets = [_dress(one, desk.book.now()) for one in shown["datasets"]]
    return render("datasets", request.scope, {"datasets": datasets})


@router.get("/datasets/{dataset}")
async def show_dataset(dataset: InPath, request: Request, visitor: Visiting, before: _Before = None) -> Response:
    """Render the page of a dataset: its guarantee, grants, their history, the curve of their caps, its charges."""
    desk, now = visitor.desk, visitor.desk.book.now()
    shown = await desk.call(_show_one, desk, visitor.actor, dataset)
    courses, frozen = await desk.call(_courses, desk, shown)
    charges = await desk.call(_charges, desk, dataset, before, now)
    curve = await ask_curve(request, desk, shown)
    ends = {one["name"]: one["forecast"]["spent_at"] for one in shown["grants"] if one["forecast"] is not None}
    ahead = {course.grant: end for course in courses if (end := ends.get(course.grant)) is not None}
    fields = {
        "dataset": _dress(shown, now),
        "spending": draw_courses(courses, now=now, spent_at=ahead) if courses else [],
        "drawn": len(courses),
        "ahead": bool(ahead),
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
    """Render the page of a charge: its event, its cost with the derivation, its history, its receipt."""
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
        "steps": await desk.call(derive, found.charge, grant),  # of up to 10⁴ events
        "share": share_of(found.charge, grant),
        "actions": actions_on(visitor.actor, found.charge),
        "key": secrets.token_urlsafe(16),
    }
    return render("charge", request.scope, fields)


@router.get("/statement/{dataset}")
async def show_statement(dataset: InPath, request: Request, visitor: Visiting) -> Response:
    """Render a statement to print: policy, guarantee, grants, charges, the signed head."""
    desk, now = visitor.desk, visitor.desk.book.now()
    shown = await desk.call(_show_one, desk, visitor.actor, dataset)
    short = shown["head"]["seq"] <= _WALKED
    lines = await desk.call(lines_of, desk, dataset, last=shown["head"]["seq"]) if short else []
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
    """Verdict on the claim of a charge; empty if there is none.

    Commands write the verdict; the service writes the name of the claim, which is charged only if it holds.
    """
    if claim is None:
        return ""
    verdict = str(claim["verdict"]) if "verdict" in claim else "holds" if "claim" in claim else ""
    return f"{verdict}, given {', '.join(claim['given'])}" if "given" in claim else verdict


def actions_on(actor: Actor, charge: Charge) -> list[str]:
    """Actions on a charge that its page offers an actor; the book checks the permission again."""
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


async def ask_curve(request: Request, desk: LedgerSession, shown: Json) -> dict[str, Any]:
    """ε at every δ of all that a dataset's grants will ever admit, and at the policy's δ; or why it is missing."""
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


def _show_one(desk: LedgerSession, actor: Actor, name: str) -> dict[str, Any]:
    found: dict[str, Any] = desk.book.show(actor, name)["datasets"][0]
    return found


def _courses(desk: LedgerSession, shown: Json) -> tuple[list[Course], list[Entry]]:
    """Spending over time of the first grants, and the rows that froze grants."""
    with desk.book.store.read() as transaction:
        drawn = [course_of(transaction, grant["name"]) for grant in shown["grants"][:_DRAWN]]
        return drawn, rows.rows_of_kind(transaction, shown["name"], "freeze")


def _charges(desk: LedgerSession, dataset: str, before: int | None, now: str) -> list[Charge]:
    with desk.book.store.read() as transaction:
        return newest_charges(transaction, dataset, before=before, most=_PAGE + 1, now=now)


def _history(desk: LedgerSession, charge: str, now: str) -> History:
    with desk.book.store.read() as transaction:
        return history_of(transaction, charge, now=now)


def _say_left(grant: Json, policy: Json) -> str:
    """Charges and time that are left of a grant; empty before its first charge."""
    found = grant["forecast"]
    return "" if found is None else say_forecast(found, symbol(grant["currency"]), until=policy["until"])


def _dress(dataset: Json, now: str) -> dict[str, Any]:
    """Dataset with the status texts and bars of itself and of its grants."""
    grants = [
        {
            **grant,
            "bar": bar_of(grant),
            "standing": standing_of_grant(grant),
            "left": _say_left(grant, dataset["policy"]),
        }
        for grant in dataset["grants"]
    ]
    return {
        **dataset,
        "grants": grants,
        "standing": standing_of_dataset(dataset, now=max(now, dataset["head"]["at"])),  # the dataset's time
        "divided": [_dress_block(block, dataset["grants"]) for block in dataset["blocks"]],
    }


def _dress_block(block: Json, grants: Sequence[Json]) -> dict[str, Any]:
    """Block with the grants that cover it, and their balances on it."""
    there = []
    for grant in grants:
        if block["name"] in grant["blocks"]:
            balance = {**grant["balance"], **grant["balance"]["blocks"][block["name"]]}
            there.append({**grant, "balance": balance, "bar": bar_of_sums(balance, balance["cap"])})
    return {**block, "grants": there}
