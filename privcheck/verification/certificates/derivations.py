"""Derivations of claims that hold: a bound on each release's cost, their sum, and the claim."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import (
    GaussianNoisyMax,
    GaussianSparseVector,
    Procedure,
    RandomisedResponse,
    UnaryEncoding,
)
from privcheck.declare.procedures.base import moved_by_a_user
from privcheck.declare.releases import Release
from privcheck.declare.samples import Poisson, Sample
from privcheck.declare.schedules import load_of
from privcheck.errors import CertificateError
from privcheck.pricing import Priced
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP
from privcheck.terms.symbols import Expr, exp, expression, largest, log, total
from privcheck.verification.certificates.canonical import Json, Where, number, term
from privcheck.verification.certificates.grids import grid_hints

_LARGEST_EPSILON: Final = 64
_ABOVE: Final = 1 + Fraction(1, 2**100)  # roots and logarithms are enclosed to 192 bits on the checker's way
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
    if any(_moves_nothing(one, priced) for one in priced.declaration.releases):
        raise CertificateError("a release costs nothing at these parameters alone")
    declaration, route = priced.declaration, "C-ZCDP-APPROX" if _is_zcdp_curve(priced) else _route(priced)
    costs = {one.name: _cost(priced, one, _CURRENCIES[route]) for one in declaration.releases}
    claimed = _claimed(declaration.claim.guarantee)
    if len(costs) == 1 and claimed is not None:  # no less than its cost, in the simplest form that is enough
        costs = dict.fromkeys(costs, claimed)
    sums = [total([costs[name] for name in _names(declaration, group)]) for group in declaration.groups]
    whole = term(claimed if claimed is not None else largest(*sums), Where("the total", None))
    steps: list[Json] = [
        {
            "rule": release["mechanism"]["law"],
            "release": name,
            "at_most": term(costs[name], Where(f"release {name!r}", None)),
        }
        for release in written
        for name in (release["name"],)
    ]
    steps += [{"rule": "T-COMPOSE", "at_most": whole}, {"rule": route}]
    bounds = list(_maxima([*written, whole]))
    for stated in (bounds, []) if bounds else ([],):
        yield {"steps": steps, "bounds": stated}


def _names(declaration: Declaration, group: str) -> list[str]:
    """Names of the releases that hold a user of the group."""
    among = declaration.among(group)
    return [one.name for one in declaration.releases if one.users in among]


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


def derive_at(priced: Priced, written: Sequence[Json]) -> Iterator[Json]:
    """Yield bodies of derivations at the parameters: by exact costs, then by costs that are rounded up a little.

    Args:
        priced: The declaration at its parameters.
        written: Its releases in the canonical form.

    Raises:
        CertificateError: The claim has no rule, or a release no cost in its currency.
    """
    route = _route(priced)
    currency, declaration = _CURRENCIES[route], priced.declaration
    releases = declaration.releases
    for tight, slack in itertools.product((False, True), (Fraction(1), _ABOVE)):
        exact = {one.name: _bound(_cost(priced, one, currency, tight=tight), priced.values) for one in releases}
        costs = {name: amount * slack for name, amount in exact.items()}
        steps: list[Json] = [
            {"rule": release["mechanism"]["law"], "release": release["name"], "at_most": number(costs[release["name"]])}
            for release in written
        ]
        whole = max(_sum_at(priced, group, costs) for group in declaration.groups)
        total = {"rule": "T-COMPOSE", "at_most": number(whole * slack)}
        yield {"steps": [*steps, total, {"rule": route}]}


def _sum_at(priced: Priced, group: str, costs: Mapping[str, Fraction]) -> Fraction:
    """Sum of the costs of the releases that hold a user of the group; ε of one sample's values, amplified together."""
    summed, shared = Fraction(0), dict[int, tuple[Poisson, Fraction]]()
    released = {one.name: one for one in priced.declaration.releases}
    for name in _names(priced.declaration, group):
        sampling = _shared(released[name]) if _is_pure(priced) else None
        if sampling is None:
            summed += costs[name]
        else:
            shared[id(sampling)] = (sampling, shared.get(id(sampling), (sampling, Fraction(0)))[1] + costs[name])
    for sampling, together in shared.values():
        amplified = sampling.rounds * log(1 + sampling.rate * (exp(expression(together)) - 1))
        summed += _bound(amplified, priced.values)
    return summed


def _shared(one: Procedure) -> Poisson | None:
    """The Poisson sample that a release shares with others."""
    schedule = getattr(one, "schedule", None)
    return schedule.sampling if isinstance(schedule, Sample) and isinstance(schedule.sampling, Poisson) else None


def _is_pure(priced: Priced) -> bool:
    return _CURRENCIES[_route(priced)] == "pure"


def derive_numeric(priced: Priced, written: Sequence[Json]) -> Json:
    """Body of a derivation at the parameters by numeric composition: the cost of one value of each release.

    Args:
        priced: The declaration at its parameters.
        written: Its releases in the canonical form.

    Raises:
        CertificateError: The claim is not of (ε, δ), or a release has neither a Gaussian nor a pure price.
    """
    claim, declaration = priced.declaration.claim.guarantee, priced.declaration
    if not isinstance(claim, ApproxDP):
        raise CertificateError(f"the claim: no numeric composition decides {type(claim).__name__}")
    steps: list[Json] = []
    events: list[Json] = []
    for one, release in zip(declaration.releases, written, strict=True):
        law, schedule = release["mechanism"]["law"], release["schedule"]
        amount = _bound(_cost_of_one(priced, one, law), priced.values)
        amount = Fraction(math.ceil(amount)) if law == "shuffled-bits" else amount * _ABOVE
        steps.append({"rule": law, "release": one.name, "at_most": number(amount)})
        count = int(_times(one, priced))
        if amount == 0 or count == 0:
            continue
        if isinstance(one, GaussianNoisyMax | GaussianSparseVector):
            events += _compared(one, priced, amount)
            continue
        if law == "shuffled-bits":
            events.append({"law": "binomial", "trials": release["mechanism"]["noise_bits"], "count": int(amount)})
            continue
        gaussian = law in {"gaussian", "gaussian-matrix"} or release["mechanism"].get("currency") == "gdp"
        event: Json = {"law": "gaussian", "squared_ratio": str(amount)}
        event = event if gaussian else {"law": "approximate", "epsilon": str(amount), "lost": 0}
        if isinstance(one, RandomisedResponse | UnaryEncoding):
            event = {"law": "randomised response", "epsilon": str(amount), "values": _answers(one, priced)}
            count = count if isinstance(one, RandomisedResponse) else count * 2 * int(one.ones.number(priced.values))
        sampled = {"rate": str(_at(schedule["rate"], priced))} if schedule["kind"] == "sampled" else {}
        events.append({**event, **sampled, "count": count})
    if not events:  # any grid does
        events.append({"law": "approximate", "epsilon": "1", "lost": 0, "count": 1})
    epsilon, delta = (Fraction(x.number(priced.values, rounding="down")) for x in (claim.epsilon, claim.delta))
    if not (0 < epsilon <= _LARGEST_EPSILON and 0 < delta < 1):
        raise CertificateError("the claim: its ε or δ is out of the range of numeric compositions")
    return {"steps": [*steps, {"rule": "C-NUMERIC", "grid": grid_hints(events, epsilon=epsilon, delta=delta)}]}


def _compared(one: GaussianNoisyMax | GaussianSparseVector, priced: Priced, amount: Fraction) -> list[Json]:
    """A selection with Gaussian noise as events, at μ² of one noisy number."""
    squared = str(amount if one.monotone else 4 * amount)
    if isinstance(one, GaussianNoisyMax):
        most = int(one.candidates.number(priced.values))
        return [{"law": "largest normal", "squared_shift": squared, "candidates": most, "count": 1}]
    queries, positives = (int(x.number(priced.values)) for x in (one.queries, one.positives))
    threshold = _bound((_moved(one, priced) / one.threshold_std) ** 2, priced.values)
    first = {"law": "gaussian", "squared_ratio": str(threshold), "count": 1}
    return [
        first,
        {"law": "stopped run", "squared_shift": squared, "queries": queries, "count": min(queries, positives)},
    ]


def _moved(one: GaussianNoisyMax | GaussianSparseVector, priced: Priced) -> Expr:
    return moved_by_a_user(one.sensitivity, priced.declaration.relation)


def _cost_of_one(priced: Priced, one: Procedure, law: str) -> Expr:
    """Cost of one noisy value: μ² of Gaussian noise, ε of other noise, the number of counters behind a shuffler."""
    relation = priced.declaration.relation
    if isinstance(one, GaussianNoisyMax):
        return (_moved(one, priced) / one.std_of_noise) ** 2
    if isinstance(one, GaussianSparseVector):
        return (_moved(one, priced) / one.query_std) ** 2
    if _moves_nothing(one, priced):
        return expression(0)
    if isinstance(one, Release):
        moved = one.mechanism.whiten(one.contributed(relation))
        if law == "shuffled-bits":
            return moved.l1
        cost = one.mechanism.gdp_squared(moved) if "gaussian" in law else one.mechanism.pure(moved)
    elif isinstance(one, UnaryEncoding):
        cost = one.kept
    else:
        found = one.cost(relation)
        cost = found.pure / one.facts.rounds if found.pure is not None else found.dominating_mu_squared
    if cost is None:
        raise CertificateError(f"release {one.name!r}: no price of one value")
    return cost


def _answers(one: RandomisedResponse | UnaryEncoding, priced: Priced) -> int:
    """How many answers there are to one question."""
    return int(one.categories.number(priced.values)) if isinstance(one, RandomisedResponse) else 2


def _times(one: Procedure, priced: Priced) -> Fraction:
    times = load_of(one.schedule).total if isinstance(one, Release) else one.facts.rounds
    return Fraction(times.number(priced.values, rounding="up"))


def _at(written: Any, priced: Priced) -> Fraction:
    """Value of a rate: a number or a parameter."""
    if isinstance(written, list):
        raise CertificateError("the rate of a sample is neither a number nor a parameter")
    return priced.values[written] if written in priced.values else Fraction(written)


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
    gaussian = all(isinstance(one, GaussianNoisyMax | GaussianSparseVector) for one in priced.declaration.releases)
    if priced.account.mu_squared is not None or gaussian:
        return "C-GDP-APPROX"
    if priced.account.pure is not None:
        return "C-PURE-APPROX"
    raise CertificateError("the claim: its curve is that of a numeric composition")


def _cost(priced: Priced, one: Procedure, currency: str, *, tight: bool = False) -> Expr:
    """Cost of a release by the checker's rules: ε, ρ or μ² of all outputs that hold one user.

    `tight`: ρ of what is not Gaussian as it is priced, at most ε·tanh(ε/2), and not ε²/2 of every output.
    """
    found = one.cost(priced.declaration.relation)
    if _moves_nothing(one, priced):
        return expression(0)
    if currency == "pure":
        cost = found.pure if _shared(one) is None else _cost_of_one(priced, one, "")
    elif currency == "gdp":
        cost = found.mu_squared if found.mu_squared is not None else found.dominating_mu_squared
    elif found.mu_squared is not None:
        cost = found.mu_squared / 2
    elif tight or found.pure is None:
        cost = found.rho
    else:  # ε²/2 of every output, which is what the checker knows of noise that is not Gaussian
        times = one.schedule.times if isinstance(one, Release) else None
        cost = None if found.pure is None else found.pure**2 / (2 if times is None else 2 * times)
    if cost is None or cost.infinite:
        raise CertificateError(f"release {one.name!r}: no cost in {currency}")
    return cost


def _moves_nothing(one: Procedure, priced: Priced) -> bool:
    """Whether no user changes the statistic at these parameters: one cell, or what neighbours have in common."""
    return isinstance(one, Release) and one.contributed(priced.declaration.relation).l1.rational(priced.values) == 0


def _bound(cost: Expr, values: Mapping[str, Fraction]) -> Fraction:
    """The cost as a fraction, rounded up."""
    known = cost.rational(values)
    return Fraction(cost.number(values, rounding="up")) if known is None else known
