"""Derivations of claims that hold: a bound on each release's cost, their sum, and the claim."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from privcheck.declare.procedures import Procedure
from privcheck.declare.releases import Release
from privcheck.errors import CertificateError
from privcheck.pricing import Priced
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from privcheck.terms.symbols import Expr, largest, total
from privcheck.verification.certificates.canonical import Json, number, term

_ABOVE: Final = 1 + Fraction(1, 2**100)  # its enclosures are of 192 bits
_CURRENCIES: Final = {
    "C-PURE": "pure",
    "C-ZCDP": "zcdp",
    "C-GDP": "gdp",
    "C-PURE-APPROX": "pure",
    "C-ZCDP-APPROX": "zcdp",
    "C-GDP-APPROX": "gdp",
}


def derive_for_all(priced: Priced, written: Sequence[Json]) -> Iterator[Json]:
    """Yield bodies of derivations for all parameters; the checker decides which of them is one.

    Args:
        priced: The declaration at its parameters.
        written: Its releases in the canonical form.
    """
    declaration, route = priced.declaration, "C-ZCDP-APPROX" if _is_zcdp_curve(priced) else _route(priced)
    costs = {one.name: _cost(priced, one, _CURRENCIES[route]) for one in declaration.releases}
    claimed = _claimed(declaration.claim.guarantee)
    if len(costs) == 1 and claimed is not None:  # no less than its cost, in the simplest form that is enough
        costs = dict.fromkeys(costs, claimed)
    sums = [total([costs[one.name] for one in declaration.joined_for(group)]) for group in declaration.groups]
    whole = term(claimed if claimed is not None else largest(*sums), "the total")
    steps: list[Json] = [
        {"rule": release["mechanism"]["law"], "release": release["name"], "at_most": term(costs[release["name"]], "")}
        for release in written
    ]
    steps += [{"rule": "T-COMPOSE", "at_most": whole}, {"rule": route}]
    bounds = list(_maxima([*written, whole]))
    for stated in (bounds, []) if bounds else ([],):
        yield {"steps": steps, "bounds": stated}


def _claimed(guarantee: Guarantee) -> Expr | None:
    """The claim in the currency of the costs that it is compared with; None if it follows by a conversion."""
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon
    if isinstance(guarantee, ZCDP):
        return guarantee.rho
    return guarantee.mu**2 if isinstance(guarantee, GaussianDP) else None


def _is_zcdp_curve(priced: Priced) -> bool:
    """Whether the claim is one of (ε, δ), which for all parameters follows from ρ alone."""
    return isinstance(priced.declaration.claim.guarantee, ApproxDP) and priced.account.rho.infinite is False


def _maxima(part: Any) -> Iterator[Json]:
    """Yield for every maximum in a document that it is at least each of its arguments, but for numbers."""
    seen = set[str]()
    for node in _nodes(part):
        if node[:1] != ["max"]:
            continue
        for argument in node[1:]:
            if isinstance(argument, list) and str((node, argument)) not in seen:
                seen.add(str((node, argument)))
                yield {"rule": "B-MAX", "term": node, "at_least": argument}


def _nodes(part: Any) -> Iterator[list[Any]]:
    """Yield all lists in a document."""
    parts = list(part.values()) if isinstance(part, dict) else part
    if isinstance(part, list):
        yield part
    if isinstance(parts, list):
        for one in parts:
            yield from _nodes(one)


def derive_at(priced: Priced, written: Sequence[Json]) -> Json:
    """Body of a derivation at the parameters.

    Args:
        priced: The declaration at its parameters.
        written: Its releases in the canonical form.

    Raises:
        CertificateError: The claim has no rule, or a release no cost in its currency.
    """
    route = _route(priced)
    currency, declaration = _CURRENCIES[route], priced.declaration
    costs = {
        one.name: _bound(_cost(priced, one, currency), release, priced)
        for one, release in zip(declaration.releases, written, strict=True)
    }
    steps: list[Json] = [
        {"rule": release["mechanism"]["law"], "release": release["name"], "at_most": number(costs[release["name"]])}
        for release in written
    ]
    whole = max(
        sum((costs[one.name] for one in declaration.joined_for(group)), Fraction(0)) for group in declaration.groups
    )
    steps += [{"rule": "T-COMPOSE", "at_most": number(whole)}, {"rule": route}]
    return {"steps": steps}


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


def _words(part: Any) -> set[str]:
    """Operations of all terms in a document."""
    return {str(node[0]) for node in _nodes(part) if node}


def _has_roots(part: Any) -> bool:
    """Whether a power with a fraction as exponent occurs."""
    return any(node[0] == "^" and "/" in str(node[2]) for node in _nodes(part) if len(node) == 3)
