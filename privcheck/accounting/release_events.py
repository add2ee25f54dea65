"""Releases as events of the numeric accountant: the sensitivity of all outputs against the noise that is drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from privcheck.accounting.events import Event, gaussian, laplace, pure
from privcheck.declaration import Release
from privcheck.runtime.ledger import Charge, charge_of
from privcheck.statistics import Sensitivity


def release_events(
    release: Release, charged: Sensitivity, values: Mapping[str, Fraction], *, factor: float = 1.0
) -> tuple[Event, ...]:
    """Returns one release, all its outputs, as events.

    Args:
        release: The release.
        charged: `release.charged(relation)`.
        values: The parameters.
        factor: By which the noise is multiplied.
    """
    return (charged_event(charge_of(release, charged, values), stepwise=charged.stepwise, factor=factor),)


def charged_event(cost: Charge, *, stepwise: bool, factor: float = 1.0) -> Event:
    """Returns a release with additive noise as an event.

    A Laplace release of a table whose cells move by 0 or ±Δ∞ is Δ₁/Δ∞ scalar releases. Where cells move by parts of Δ∞,
    no worst split is proved for the whole curve, and the release is charged as any (Δ₁/b)-DP mechanism.

    Args:
        cost: Law, scale and sensitivities.
        stepwise: Every cell moves by 0 or ±Δ∞.
        factor: By which the noise is multiplied.
    """
    scale = cost.scale * factor
    if cost.law == "gaussian":
        return gaussian(std=scale, sensitivity=cost.l2)
    if stepwise and cost.linf > 0:
        return laplace(scale=scale, sensitivity=cost.linf, count=max(1, math.ceil(cost.l1 / cost.linf)))
    return pure(epsilon=cost.l1 / scale * (1 + 1e-15))
