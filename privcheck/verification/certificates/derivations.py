"""Derivations of claims that hold: a bound on each release's cost, their sum, and the claim."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from privcheck.declare.procedures import Procedure
from privcheck.declare.releases import Release
from privcheck.errors import CertificateError
from privcheck.pricing import Priced
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP
from privcheck.terms.symbols import Expr
from privcheck.verification.certificates.canonical import Json, describe_declaration, number

_ABOVE: Final = 1 + Fraction(1, 2**100)  # its enclosures are of 192 bits
_CURRENCIES: Final = {
    "C-PURE": "pure",
    "C-ZCDP": "zcdp",
    "C-GDP": "gdp",
    "C-PURE-APPROX": "pure",
    "C-GDP-APPROX": "gdp",
}


def derive_for_all(priced: Priced) -> Json | None:
    """Derivation for all parameters; None if its steps have no form."""
    del priced
    return None


def derive_at(priced: Priced) -> tuple[str, Json]:
    """Kind and body of a derivation at the parameters: "holds-at" with its steps.

    Raises:
        CertificateError: The claim has no rule, or a release no cost in its currency.
    """
    route = _route(priced)
    currency, declaration = _CURRENCIES[route], priced.declaration
    written = describe_declaration(declaration, priced.values)["releases"]
    costs = {
        one.name: _bound(_cost(priced, one, currency), release, priced)
        for one, release in zip(declaration.releases, written, strict=True)
    }
    steps: list[Json] = [
        {"rule": release["mechanism"]["law"], "release": release["name"], "at_most": number(costs[release["name"]])}
        for release in written
    ]
    total = max(
        sum((costs[one.name] for one in declaration.joined_for(group)), Fraction(0)) for group in declaration.groups
    )
    steps += [{"rule": "T-COMPOSE", "at_most": number(total)}, {"rule": route}]
    return "holds-at", {"steps": steps}


def _route(priced: Priced) -> str:
    claim = priced.declaration.claim.guarantee
    if isinstance(claim, PureDP):
        return "C-PURE"
    if isinstance(claim, ZCDP):
        return "C-ZCDP"
    if isinstance(claim, GaussianDP):
        return "C-GDP"
    if not isinstance(claim, ApproxDP):
        raise CertificateError(f"the claim: no rule is about {type(claim).__name__}")
    if priced.account.mu_squared is not None:
        return "C-GDP-APPROX"
    if priced.account.pure is not None:
        return "C-PURE-APPROX"
    raise CertificateError("the claim: its curve is that of a numeric composition")


def _cost(priced: Priced, one: Procedure, currency: str) -> Expr:
    """Cost of a release by the checker's rules: ε, ρ or μ² of all outputs that hold one user."""
    found = one.cost(priced.declaration.relation)
    if currency == "pure":
        cost = found.pure
    elif currency == "gdp":
        cost = found.mu_squared
    elif found.mu_squared is not None:
        cost = found.mu_squared / 2
    else:  # ε²/2 of every output, which is what the checker knows of noise that is not Gaussian
        times = one.schedule.times if isinstance(one, Release) else None
        cost = None if found.pure is None else found.pure**2 / (2 if times is None else 2 * times)
    if cost is None or cost.infinite:
        raise CertificateError(f"release {one.name!r}: no cost in {currency}")
    return cost


def _bound(cost: Expr, release: Json, priced: Priced) -> Fraction:
    """The cost as a fraction, rounded up; a little further if the checker encloses roots or logarithms on its way."""
    known = cost.rational(priced.values)
    if known is None:
        return Fraction(cost.number(priced.values, rounding="up"))
    rational = not any(word in _words(release) for word in ("log", "exp", "sqrt")) and not _has_roots(release)
    return known if rational else known * _ABOVE


def _words(part: Any) -> set[Any]:
    """All texts in a document."""
    if isinstance(part, dict):
        part = list(part.values())
    return set().union(*map(_words, part)) if isinstance(part, list) else {part}


def _has_roots(part: Any) -> bool:
    """Whether a power with a fraction as exponent occurs."""
    if isinstance(part, dict):
        part = list(part.values())
    if not isinstance(part, list):
        return False
    return (part[:1] == ["^"] and "/" in str(part[2])) or any(map(_has_roots, part))
