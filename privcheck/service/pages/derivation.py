"""How a charge's cost comes about, step by step, with exact numbers: from its event to its share of the grant's cap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from privcheck.ledger.answers import Charge
from privcheck.ledger.balances import SHARES
from privcheck.ledger.exact import write_number
from privcheck.ledger.values import CurrencyName, Grant
from privcheck.ledger.wire import Part, parse_event
from privcheck.service.pages.wording import describe_event, symbol

_SHOWN: Final = 20  # parts of an event
_GIVEN: Final = "as it is stated"
_FROM_PURE: Final[Mapping[str, str]] = {
    "rho": "every ε-DP release is ρ-zCDP with ρ = ε·tanh(ε/2)",
    "mu2": "every ε-DP release is μ-GDP with μ = −2Φ⁻¹(1/(1 + e^ε)) (Dong, Roth & Su 2022)",
}
_DERIVED: Final = "as the accountant derives it from the event's privacy loss"
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
_PURE: Final = frozenset({"laplace", "discrete_laplace", "pure", "approximate", "randomized_response", "bounded_range"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        words: What is done.
        rule: Why that is right; empty where it is arithmetic.
        sides: Exact numbers, or None, with what stands before each: "4 × ", "0.05"; " = ", "0.2".
    """

    words: str
    rule: str = ""
    sides: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a charge takes of its grant's cap.

    Attributes:
        units: In 2⁻⁶²ths of the cap, rounded up.
        cap: The cap, exactly.
    """

    units: int
    cap: str


def rule_of(event: Mapping[str, Any], currency: str) -> str:
    """Returns why one release of an event costs what it does in a currency."""
    kind = str(event["type"])
    stated = next((name for name in ("rho", "mu2", "std", "scale", "epsilon") if name in event), "")
    rule = _RULES.get((kind, stated, currency))
    if rule is not None and (kind, "xi") != ("zcdp", next((name for name in event if name == "xi"), "")):
        return rule
    return _FROM_PURE.get(currency, _DERIVED) if kind in _PURE else _DERIVED


def derive(charge: Charge, grant: Grant) -> list[Step]:
    """Returns the steps of a charge's cost, which end with the cost that was charged."""
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
        steps.append(Step(words="All of it together", sides=((f"{letter} = ", write_number(total)),)))
    if total != charge.cost.amount:
        words = "Rounded up to 18 digits" if charge.cost.amount > total else "As it was priced when it was charged"
        steps.append(Step(words=words, sides=((f"{letter} = ", write_number(charge.cost.amount)),)))
    if charge.cost.lost:
        steps.append(Step(words="Lost outright, beside it", sides=(("δ = ", write_number(charge.cost.lost)),)))
    return steps


def share_of(charge: Charge, grant: Grant) -> Share:
    """Returns what a charge takes of its grant's cap."""
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
