"""What is shown of balances: what is left of a cap, and what local users have lost, who draw their own noise.

What somebody has lost who took part in every charge of a local dataset is the sum, which is shown by itself: it takes
nothing from any cap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from privcheck.accounting.currencies import NOT_A_GUARANTEE, Cost
from privcheck.accounting.sums import bound_epsilon
from privcheck.ledger.balances import Balance, empty
from privcheck.ledger.exact import write_number
from privcheck.ledger.policies import above
from privcheck.ledger.values import CURRENCIES, Entry, Grant, Policy

_REPORT: Final = 300  # characters of an audit's report that a sentence quotes


def describe_balance(grant: Grant, balance: Balance) -> dict[str, Any]:
    """Returns a grant's balance for those who ask: cap, committed, reserved and what is free.

    Where it covers several blocks the numbers are those of the fullest, on which a charge to all of them would fail
    first; `blocks` has each. Where charges are recorded, not added, nothing of the cap is committed; `recorded` has
    what a user has lost who took part in all of them.
    """
    places = {place: balance.at(grant, place) for place in grant.places}
    fullest = max(places, key=lambda place: places[place].held(grant.cap).amount)
    lost = min(balance.free(grant, place).lost for place in places)
    return {
        "currency": grant.currency,
        "cap": write_number(grant.cap),
        **_describe(grant, balance, fullest),
        "lost": {"cap": write_number(grant.lost), "free": write_number(lost)},
        "used": [max(uses) for uses in zip(*(sums.used for sums in places.values()), strict=True)],
        "state": "frozen" if balance.frozen else "open",
        "blocks": {block: _describe(grant, balance, block) for block in grant.blocks},
        "recorded": _describe_recorded(grant, balance),
    }


def _describe(grant: Grant, balance: Balance, place: str) -> dict[str, Any]:
    sums = empty(grant) if grant.recorded else balance.at(grant, place)
    return {
        "committed": write_number(sums.committed.amount),
        "reserved": write_number(sums.reserved.amount),
        "free": write_number(balance.free(grant, place).amount),
        "used": list(sums.used),
    }


def describe_message(grant: Grant, cost: Cost) -> dict[str, str | None]:
    """Returns (ε, δ) of one message of a local charge."""
    epsilon = bound_epsilon(CURRENCIES[grant.currency], cost, grant.delta)
    return {"epsilon": _write(epsilon), "delta": write_number(grant.delta)}


def _describe_recorded(grant: Grant, balance: Balance) -> dict[str, Any] | None:
    """Returns what a user has lost who took part in all of a local grant's charges, on the worst block.

    None of a grant whose charges are added.
    """
    if not grant.recorded:
        return None
    sums = [balance.at(grant, place).held(grant.cap) for place in grant.places]
    most = Cost(amount=max(one.amount for one in sums), lost=max(one.lost for one in sums))
    told = {"amount": write_number(most.amount), "lost": write_number(most.lost)}
    return {**told, **describe_message(grant, most), "note": NOT_A_GUARANTEE}


def describe_all_taken(policy: Policy, found: Sequence[tuple[Grant, Balance]]) -> dict[str, Any] | None:
    """Returns (ε, δ) of a user who took part in all charges to a local dataset, on the worst block.

    None in other models, where a cap says what everybody loses.
    """
    if policy.trust != "local":
        return None
    places = {place for grant, _ in found for place in grant.places}
    epsilon = max((_bound_place(policy, found, place) for place in places), default=0.0)
    told = {"epsilon": _write(epsilon), "delta": write_number(policy.delta)}
    return {**told, "note": f"who took part in every charge; {NOT_A_GUARANTEE}"}


def _bound_place(policy: Policy, found: Sequence[tuple[Grant, Balance]], place: str) -> float:
    """Returns ε of all that was recorded in a place: one sum where it is one currency, else the sum of the ε."""
    here = [(grant, balance.at(grant, place).held(grant.cap)) for grant, balance in found if place in grant.places]
    totals: dict[str, Cost] = {}
    for grant, cost in here:
        was = totals.get(grant.currency, Cost(amount=Fraction(0)))
        totals[grant.currency] = Cost(amount=was.amount + cost.amount, lost=was.lost + cost.lost)
    spent = {name: cost for name, cost in totals.items() if cost.amount or cost.lost}
    delta = policy.delta / max(len(spent), 1)
    bounds = (bound_epsilon(currency, spent[name], delta) for name, currency in CURRENCIES.items() if name in spent)
    return math.fsum(bounds) * (1 + 1e-15) if len(spent) > 1 else next(bounds, 0.0)


def _write(epsilon: float) -> str | None:
    return write_number(above(epsilon)) if math.isfinite(epsilon) else None


def describe_support(policy: Policy, evidence: Sequence[Entry]) -> dict[str, Any]:
    """Whether a dataset's guarantee is supported by its rows: the sentence that every page, export and statement says.

    What its charges were declared to cost is all that the ledger adds up. Once an audit has found that a charge lost
    more, the sum bounds nothing, whatever was frozen afterwards.

    Args:
        policy: Of the dataset.
        evidence: Its rows of evidence, in order.
    """
    found = [row for row in evidence if row.body["verdict"] == "violation"]
    if not found:
        sentence = f"Holds as declared; unit: {policy.unit_words}."
        return {"state": "as declared", "since": None, "charges": [], "sentence": sentence}
    charges = list(dict.fromkeys(str(row.body["of"]) for row in found))
    first = found[0]
    more = f" Violations were found of {len(charges)} charges." if len(charges) > 1 else ""
    sentence = (
        f"Not supported since {first.at[:10]}: an audit of charge {first.body['of']} found a violation "
        f"({first.body['report'][:_REPORT]}).{more} Unit: {policy.unit_words}."
    )
    return {"state": "not supported", "since": first.at, "charges": charges, "sentence": sentence}
