"""Calculations of the service that need no store: JSON in, JSON out, by the functions behind the commands.

Nothing here knows HTTP; it runs in the processes of `privcheck.service.worker`. Numbers are returned as decimal strings
that are never below the float they represent.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Final

from privcheck import accounting
from privcheck.accounting.currencies import Cost
from privcheck.accounting.curve import Curve
from privcheck.accounting.reals import real
from privcheck.commands import declarations
from privcheck.commands.run_charges import describe_claim, event_of
from privcheck.commands.settings import parse_delta, resolve_setting
from privcheck.errors import ParameterError, PrivcheckError, explain_error, hide_passwords
from privcheck.ledger.exact import read_number
from privcheck.ledger.grants import read_adaptive, read_plan
from privcheck.ledger.policies import bound_grants, bound_whole
from privcheck.ledger.values import BudgetPolicy, CurrencyName, Grant, read_cost, write_cost
from privcheck.ledger.views import write_dp_event
from privcheck.ledger.wire import parse_event
from privcheck.reports.values import document
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from privcheck.terms.symbols import exact, to_float

Json = dict[str, Any]
_UP: Final = Context(prec=17, rounding=ROUND_CEILING)
_READABLE: Final = 15  # digits that an event's number may have
_SHORT: Final = 6  # digits of a noise that somebody will type
_WIDEST: Final = Fraction(4**24)  # by which a noise is multiplied at most
_SPREADS: Final[Mapping[str, int]] = {
    "std": 1, "scale": 1, "threshold_scale": 1, "query_scale": 1, "rho": -2, "mu2": -2, "epsilon": -1
}  # fmt: skip # a field of an event, with the power of the spread that it is
_ORDERED: Final[tuple[CurrencyName, ...]] = ("epsilon", "rho", "mu2")
_NOISE: Final = frozenset(
    {"gaussian", "laplace", "discrete_gaussian", "discrete_laplace", "noisy_max", "above_threshold", "poisson_gaussian"}
)


def decimal_up(number: float) -> str | None:
    """A float as a decimal string that is not below it: the shortest repr if that suffices; None for ∞.

    >>> decimal_up(0.5), decimal_up(0.1), decimal_up(0.3)
    ('0.5', '0.10000000000000001', '0.3')
    """
    if math.isinf(number):
        return None
    shortest, value = Decimal(repr(number)), Decimal(number)
    return str(shortest if shortest >= value else _UP.plus(value))


def compose(body: Mapping[str, Any]) -> Json:
    """ε at δ, or δ at ε, of events on the same data: the tight value and the certified bound."""
    curve = _curve(body["events"])
    if body.get("delta") is not None:
        at = {"delta": body["delta"]}
        figure = curve.epsilon(delta=real("delta", body["delta"], strict=False, most=1))
    else:
        at = {"epsilon": body["epsilon"]}
        figure = curve.delta(epsilon=real("epsilon", body["epsilon"], strict=False))
    return {
        "quantity": "epsilon" if "delta" in at else "delta",
        "at": at,
        "estimate": decimal_up(figure.value),
        "upper": decimal_up(figure.upper),
        "method": figure.method,
        "direction": figure.direction,
        "reason": figure.reason,
    }


def calibrate(body: Mapping[str, Any]) -> Json:
    """The least noise: the factor on the spreads of all events that meets (ε, δ)."""
    target = (real("epsilon", body["epsilon"]), real("delta", body["delta"], strict=False, most=1))
    events: Sequence[Mapping[str, Any]] = body["events"]
    if not any(_spread(event) for event in events):
        message = "expected at least one event with noise to scale: gaussian or laplace, say, with std, scale or rho"
        raise ParameterError(message, name="events")
    _curve(events)  # what is refused is refused as it was given
    found = accounting.calibrate(target, lambda x: _curve([_scaled(event, Fraction(x)) for event in events]))
    factor = Fraction(found.scale)
    while True:  # the answer is judged as it will be read
        scaled = [_scaled(event, factor) for event in events]
        figure = _curve(scaled).epsilon(delta=target[1])
        if figure.upper <= target[0]:
            break
        factor *= 1 + Fraction(1, 10**12)
    return {
        "factor": decimal_up(to_float(factor, rounding="up")),
        "events": scaled,
        "epsilon": decimal_up(figure.upper),
        "estimate": decimal_up(figure.value),
        "delta": body["delta"],
        "method": figure.method,
        "tolerance": decimal_up(found.tolerance),
    }


def afford(body: Mapping[str, Any]) -> Json:
    """The least noise, in six digits, with which an event fits each number of times into the free budget."""
    return {"answers": [{"times": times, **_afford(body, times)} for times in body["times"]]}


def _afford(body: Mapping[str, Any], times: int) -> Json:
    event, currency, free = body["event"], body["currency"], read_cost(body["free"])
    names = [name for name in _SPREADS if name in event]
    if not names:
        message = f"expected an event with a number that states its noise, got {event['type']}"
        raise ParameterError(message, name="event")

    def scaled(factor: Fraction) -> Json:
        return _scaled(event, factor, digits=_SHORT, names=names)

    def cost(factor: Fraction) -> Cost:
        one = parse_event(scaled(factor)).cost(currency)
        return Cost(amount=one.amount * times, lost=one.lost * times)

    def fits(factor: Fraction) -> bool:
        found = cost(factor)
        return found.amount <= free.amount and found.lost <= free.lost

    low, high = Fraction(1), Fraction(1)
    while not fits(high) and high < _WIDEST:
        high *= 4
    while fits(low) and low > 1 / _WIDEST:
        low /= 4
    if not fits(high) or fits(low):
        return {"event": None, "cost": None}  # no noise does, or any does
    while high > low * (1 + Fraction(1, 10**7)):
        middle = Fraction(math.sqrt(low * high))
        low, high = (low, middle) if fits(middle) else (middle, high)
    return {"event": parse_event(scaled(high)).to_dict(), "cost": write_cost(cost(high))}


def _spread(event: Mapping[str, Any]) -> list[str]:
    return [name for name in _SPREADS if name in event] if event["type"] in _NOISE else []


def _scaled(
    event: Mapping[str, Any], factor: Fraction, *, digits: int = _READABLE, names: Sequence[str] | None = None
) -> Json:  # fmt: skip
    """Multiply the noise of an event, rounded towards more noise; `names` are the fields to scale."""
    changed = dict(event)
    for name in _spread(event) if names is None else names:
        power = _SPREADS[name]
        number = exact(str(event[name])) * factor**power
        context = Context(prec=digits, rounding=ROUND_CEILING if power > 0 else ROUND_FLOOR)
        changed[name] = str(context.divide(Decimal(number.numerator), Decimal(number.denominator)))
    return changed


def _curve(events: Sequence[Mapping[str, Any]]) -> Curve:
    return accounting.compose(*parse_event({"type": "compose", "events": events}).events())


def convert(body: Mapping[str, Any]) -> Json:
    """Implications of a guarantee: ε at δ or δ at ε, and its cost in the ordered currencies."""
    given = body["guarantee"]
    guarantee = _guarantee(given)
    answer: Json = {"guarantee": given, "epsilon": None, "delta": None}
    if body.get("delta") is not None:
        at = real("delta", body["delta"], strict=False, most=1)
        answer |= {"epsilon": decimal_up(accounting.claim_epsilon(guarantee, {}, at)), "delta": body["delta"]}
    else:
        at = real("epsilon", body["epsilon"], strict=False)
        answer |= {"delta": decimal_up(accounting.claim_delta(guarantee, {}, at)), "epsilon": body["epsilon"]}
    return answer | {"implies": {currency: _cost(given, currency) for currency in _ORDERED}}


def _guarantee(given: Mapping[str, Any]) -> Guarantee:
    needed = {"pure": ("epsilon",), "zcdp": ("rho",), "gdp": ("mu",), "approximate": ("epsilon", "delta")}
    kind = given["type"]
    if set(given) - {"type"} != set(needed[kind]):
        raise ParameterError(f"expected {kind} with {' and '.join(needed[kind])} alone", name="guarantee")
    numbers = {name: read_number(name, given[name]) for name in needed[kind]}
    if kind == "pure":
        return PureDP(numbers["epsilon"])
    if kind == "zcdp":
        return ZCDP(numbers["rho"])
    if kind == "gdp":
        return GaussianDP(numbers["mu"])
    if numbers["delta"] > 1:
        raise ParameterError(f"expected delta in [0, 1], got {given['delta']}", name="delta", given=given["delta"])
    return ApproxDP(numbers["epsilon"], numbers["delta"])


def _cost(given: Mapping[str, Any], currency: CurrencyName) -> str | None:
    """Cost of the guarantee in a currency, rounded up; None if no finite cost is known."""
    if given["type"] == "gdp":
        mu = exact(given["mu"])
        cost = {"rho": mu * mu / 2, "mu2": mu * mu, "epsilon": None if mu else Fraction(0)}[currency]
        return None if cost is None else decimal_up(to_float(cost, rounding="up"))
    try:
        spent = parse_event(given).cost(currency)
    except ParameterError:
        return None
    return decimal_up(to_float(spent.amount, rounding="up")) if spent.lost == 0 else None


def algorithms(_: Mapping[str, Any]) -> Json:
    """Every registered algorithm, as `privcheck list`."""
    return document(declarations.list_algorithms())


def show(body: Mapping[str, Any]) -> Json:
    """A declaration in words, as `privcheck show`."""
    return document(declarations.show(resolve_setting(body["name"], {})))


def budget(body: Mapping[str, Any]) -> Json:
    """Cost of the releases of an algorithm, as `privcheck budget`."""
    setting = resolve_setting(body["name"], body["parameters"])
    return document(declarations.price_releases(setting, parse_delta(body["delta"], setting)))


def verify(body: Mapping[str, Any]) -> Json:
    """The verdict on an algorithm's claim, as `privcheck verify`."""
    return document(declarations.verify_claim(resolve_setting(body["name"], body["parameters"])))


def claim(body: Mapping[str, Any]) -> Json:
    """Verdict on an algorithm's claim and, if it holds, the cost of its releases as an event of each currency."""
    setting = resolve_setting(body["name"], body["parameters"])
    verified = declarations.verify_claim(setting)
    verdict = "fails" if verified.joint == "refuted" else verified.verdict
    holds = verdict == "holds"
    events = {currency: event_of(setting, currency) if holds else None for currency in _ORDERED}
    about = describe_claim(setting, verdict, given=verified.given, certified=holds)
    return {"state": verdict, "events": events, "about": about}


def curve(body: Mapping[str, Any]) -> Json:
    """ε at every δ of all charges that a dataset's grants can ever admit together."""
    policy, grants = BudgetPolicy.of(dict(body["policy"])), [Grant.of(dict(grant)) for grant in body["grants"]]
    bounds = {d: bound_whole(replace(policy, delta=exact(d)), grants) for d in body["deltas"]}
    return {"points": [{"delta": d, "epsilon": decimal_up(bound)} for d, bound in bounds.items()]}


def certify(body: Mapping[str, Any]) -> Json:
    """ε of a new grant together with the existing grants, computed in a process that can be killed."""
    read = read_plan if "events" in body["fields"] else read_adaptive
    grants = [*(Grant.of(dict(grant)) for grant in body["grants"]), read(**body["fields"])]
    return {"epsilon": decimal_up(bound_grants(grants, delta=exact(body["delta"])))}


def dp_event(body: Mapping[str, Any]) -> Json:
    """The dp-accounting event of events, written as Python."""
    return {"text": write_dp_event(body["events"])}


TASKS: Final[Mapping[str, Callable[[Mapping[str, Any]], Json]]] = {
    task.__name__: task
    for task in (compose, calibrate, convert, algorithms, show, budget, verify, claim, curve, certify, dp_event, afford)
}


def answer(name: str, body: Mapping[str, Any]) -> Json:
    """Answer a task, or say why it was refused or failed: no exception of a task ends the process.

    Args:
        name: The task, one of `TASKS`.
        body: Input of the task.

    Returns:
        The answer as `result`; `refused` with message, hint, name of the field and kind of error; or `crashed` with the
        traceback.
    """
    try:
        return {"result": TASKS[name](body)}
    except (PrivcheckError, MemoryError) as error:
        said = explain_error(error)
        message, field = hide_passwords(said.message), str(getattr(error, "name", ""))
        return {"refused": {"message": message, "hint": said.hint, "name": field, "kind": said.kind}}
    except Exception:  # noqa: BLE001 - an error of ours is reported by the service, which goes on
        return {"crashed": traceback.format_exc()}
