"""Trust models: whose claims a dataset takes.

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

RECORDED: Final = "local DP of every message; charges are recorded, not added"
LEMMA: Final = "billboard lemma, Hsu, Huang, Roth, Roughgarden & Wu 2014"
STATED: Final = "stated by who charges"
# of a policy: the models of claims that may be charged. What is on a billboard is private in the central model
_TAKES: Final = {
    "central": ("central", "joint"),
    "joint": ("central", "joint"),
    "shuffle": ("shuffle",),
    "local": ("local",),
}
_DRAWN: Final = {
    "central": "by a curator who sees the data",
    "joint": "by a curator who sees the data",
    "shuffle": "by each user, behind a shuffler",
    "local": "by each user",
}


def check_claim(policy: Policy, claim: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns a claim that a dataset takes: of its trust model, the conditions of a joint one spelled out.

    Raises:
        BudgetError: It is of joint DP, and a condition of the billboard lemma is not met, or nobody named it.
        ParameterError: It is of another trust model.
    """
    told = dict(claim or {})
    model = told.get("model")
    if model is not None:
        _check_model(policy, model)
    if model == "joint" or (policy.trust == "joint" and model is None):
        met = told.get("joint") or {}
        told |= {"model": "joint", "joint": {"lemma": LEMMA, "conditions": _spell_out(policy, met)}}
    return told or None


def conditions_of(claim: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Returns the conditions under which a claim that was taken is one of joint DP; none of another."""
    return [] if claim is None else list(claim.get("joint", {}).get("conditions", ()))


def _check_model(policy: Policy, model: object) -> None:
    if model not in _DRAWN:
        message = f"expected model one of {', '.join(_DRAWN)}; got {str(model)[:40]!r}"
        raise ParameterError(message, name="model", given=model)
    if model not in _TAKES[policy.trust]:
        message = (
            f"the claim is of the {model} model, in which noise is drawn {_DRAWN[str(model)]}, and the policy of "
            f"{policy.dataset!r} is of the {policy.trust} model; expected a dataset of its own: privcheck ledger "
            f"policy --trust {model}"
        )
        raise ParameterError(message, name="model", given=model)


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
