"""What a release costs its users, as numbers: what a ledger writes down and an accountant adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from privcheck.errors import DeclarationError

if TYPE_CHECKING:
    from privcheck.relations import Relation
    from privcheck.releases import Release
    from privcheck.statistics.base import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a release costs its users, as numbers.

    Attributes:
        law: The name of the noise's law.
        scale: Its standard deviation (Gaussian) or b (Laplace), as drawn.
        l1: The ℓ₁ sensitivity charged, rounded up.
        l2: The ℓ₂ sensitivity charged, rounded up.
        linf: The ℓ∞ sensitivity charged, rounded up.
        users: The group of users who pay it, of a partition; empty where everybody does.
        senders: n, the users behind the shuffler, for shuffled bits and integers; 0 otherwise.
        threshold: τ, how many noise bits they are to draw, ibid.
    """

    law: str
    scale: float
    l1: float
    l2: float
    linf: float
    users: str = ""
    senders: int = 0
    threshold: float = 0.0


def charge(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Charge:
    """Returns what the whole release is charged: the derived sensitivity of all its outputs, and the noise drawn.

    Of noise that depends on the size n of a batch, where no n is given, that of the batch with the least.
    """
    return charge_of(release, release.charged(relation), release.quietest(values))


def charge_of(release: Release, charged: Sensitivity, values: Mapping[str, Fraction]) -> Charge:
    """Returns the same from a sensitivity that is derived already.

    Raises:
        DeclarationError: The mechanism draws noise of another law than it says.
    """
    noise, law = release.mechanism.at(values), release.mechanism.law
    if not isinstance(noise, law):
        message = f"release {release.name!r}: its mechanism says the law {law.name!r} and draws {noise!r:.100}"
        raise DeclarationError(f"{message}; let `at` return noise of the class {law.__name__}")
    return noise.charge(
        l1=charged.l1.number(values, rounding="up"),
        l2=charged.l2.number(values, rounding="up"),
        linf=charged.linf.number(values, rounding="up"),
        users=release.users,
    )
