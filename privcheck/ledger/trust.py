"""Trust models: whose claims a dataset takes.

In the local model a charge is one message of each user who takes part, and who that is the ledger does not know: what
was charged is recorded, not added, and a grant's cap is that of one message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from privcheck.errors import ParameterError
from privcheck.ledger.values import Policy

RECORDED: Final = "local DP of every message; charges are recorded, not added"
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


def check_trust(policy: Policy, claim: Mapping[str, Any] | None) -> None:
    """Refuses a claim of another trust model than the dataset's.

    Raises:
        ParameterError: It is one.
    """
    model = None if claim is None else claim.get("model")
    if model is None or model in _TAKES[policy.trust]:
        return
    if model not in _DRAWN:
        message = f"expected model one of {', '.join(_DRAWN)}; got {str(model)[:40]!r}"
        raise ParameterError(message, name="model", given=model)
    message = (
        f"the claim is of the {model} model, in which noise is drawn {_DRAWN[model]}, and the policy of "
        f"{policy.dataset!r} is of the {policy.trust} model; expected a dataset of its own: privcheck ledger policy "
        f"--trust {model}"
    )
    raise ParameterError(message, name="model", given=model)
