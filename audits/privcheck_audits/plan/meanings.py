"""What the result of an audit means, in words that need no statistics."""

from __future__ import annotations

import math

from privcheck.declaration import Declaration

_NO_PROOF = "that is not a proof of privacy"


def policy_meaning(refuted: str, told: str, *, whose: str = "one user's") -> str:
    """Returns what a result of the policy view means.

    Args:
        refuted: As `Limits.name_refuted` says it.
        told: What was looked at: "what the later users were told to do".
        whose: Whose data it is about.
    """
    if refuted == "nothing":
        return (
            f"as far as this test sees, {told} leaks no more of {whose} data than is claimed; {_NO_PROOF}, "
            "and the releases view sees more"
        )
    return f"{told} leaks {whose} data: more than the {refuted} allows"


def releases_meaning(refuted: str, declaration: Declaration, *, reachable: float | None) -> str:
    """Returns what a result of the releases view means.

    Args:
        refuted: As `Limits.name_refuted` says it.
        declaration: What was audited.
        reachable: What the best test could have certified with as many runs; None where that is not known.
    """
    if refuted != "nothing":
        meaning = f"the noisy statistics leak one user's data: more than the {refuted} allows"
        if declaration.claim.joint is None:
            return meaning
        return f"{meaning}. Joint DP is about the other users' actions: it loses its proof by this, and is not refuted"
    meaning = f"as far as this test sees, the noisy statistics leak no more than is claimed; {_NO_PROOF}"
    if reachable is None:
        return meaning
    if reachable <= 0:
        return f"{meaning}. With these parameters and so few runs no test could have shown a loss that is as declared"
    return (
        f"{meaning}. Were the loss as declared, the best test could have shown ε ≥ {_down(reachable)} with as many runs"
    )


def _down(epsilon: float) -> str:
    """Returns a lower bound in four digits, rounded down, as tables show it."""
    digits = 3 - math.floor(math.log10(epsilon))
    return f"{math.floor(epsilon * 10.0**digits * (1 + 1e-13)) / 10.0**digits:.4g}"
