"""What models of trust ask beyond the unit: local charges are recorded, joint ones name the lemma's conditions.

In the local model a charge is one message of each user who takes part, and who that is the ledger does not know: what
was charged is recorded, not added, and a grant's cap is that of one message.

Joint DP follows from a billboard that is private where every output to a user is computed from the billboard and that
user's own data alone (Hsu, Huang, Roth, Roughgarden & Wu 2014). The store sees the billboard's cost, not that; so a
charge of joint DP carries the lemma's conditions by name, with how each is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from privcheck.accounting.billboard_lemma import PRECONDITIONS
from privcheck.errors import BudgetError, ParameterError
from privcheck.ledger.values import Policy
from privcheck.unit import Unit

RECORDED: Final = "local DP of every message; charges are recorded, not added"
LEMMA: Final = "billboard lemma, Hsu, Huang, Roth, Roughgarden & Wu 2014"
STATED: Final = "stated by who charges"


def check_joint(policy: Policy, unit: Unit, claim: Mapping[str, Any]) -> dict[str, Any] | None:
    """A claim with the conditions of joint DP spelled out, where its unit is of that model; None where it says nothing.

    Args:
        policy: Of the dataset.
        unit: For whom it was priced.
        claim: What is said of it; `joint` has how each condition of the lemma is known.

    Raises:
        BudgetError: It is of joint DP, and a condition of the billboard lemma is not met, or was not named.
        ParameterError: It has such conditions, and is of another model.
    """
    told = dict(claim)
    if unit.model == "joint":
        told["joint"] = {"lemma": LEMMA, "conditions": _spell_out(policy, told.get("joint") or {})}
    elif told.pop("joint", None):
        message = (
            f"conditions of the billboard lemma are those of joint DP, and this was priced for the {unit.model} model "
            f"({unit.text!r}): expected a unit of the joint model, or no conditions"
        )
        raise ParameterError(message, name="conditions")
    return told or None


def conditions_of(claim: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Returns the conditions under which a claim that was taken is one of joint DP; none of another."""
    return [] if claim is None else list(claim.get("joint", {}).get("conditions", ()))


def _spell_out(policy: Policy, met: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Returns the conditions of the billboard lemma, each with how it is known.

    Raises:
        BudgetError: One is not met; what nobody looked at is not.
        ParameterError: One is unknown.
    """
    unknown = sorted(set(met) - set(PRECONDITIONS))
    if unknown:
        message = f"expected conditions of {', '.join(PRECONDITIONS)}; got {unknown[0][:40]!r}"
        raise ParameterError(message, name="conditions", given=unknown[0])
    missing = [f"{name}: {words}" for name, words in PRECONDITIONS.items() if not met.get(name)]
    if missing:
        message = (
            "joint DP does not follow from the billboard lemma, because this was not found true: "
            f"{'; '.join(missing)}. Expected of what is charged to {policy.dataset!r} a claim whose actions are "
            "computed from billboard and own data, or an event with the conditions that were looked at"
        )
        raise BudgetError(message, cost=None, remaining=None)
    return [{"name": n, "statement": s, "holds": True, "how": met[n]} for n, s in PRECONDITIONS.items()]
