"""The curves δ(ε) of a report: as claimed, bounded above by the accountant and below by the audit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from privcheck.reports.wording import section, value_of

_FAR = 700.0  # nats; beyond this e^ε overflows


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """δ as a function of ε, ascending in ε; δ may be 0."""

    epsilon: tuple[float, ...]
    delta: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Privacy:
    """What the privacy plot shows: three curves, each of which may be missing, and δ with the two bounds at it."""

    claim: Curve | None
    upper: Curve | None
    lower: Curve | None
    delta: float | None
    epsilon_upper: float | None
    epsilon_lower: float | None

    @property
    def curves(self) -> tuple[Curve, ...]:
        """Returns the curves that are there."""
        return tuple(curve for curve in (self.claim, self.upper, self.lower) if curve is not None)


def privacy(report: Mapping[str, Any]) -> Privacy:
    """Returns the curves and bounds that a report holds."""
    audit = section(report, "audit")
    here = [
        view for view in (audit, *map(partial(section, audit, "views"), section(audit, "views"))) if _here(report, view)
    ]
    found = next((curve for view in here if (curve := section(view, "evidence", "curve"))), {})
    budget, guarantee = section(report, "budget", "curve"), section(report, "budget", "guarantee")
    delta = value_of(guarantee.get("delta"))
    delta = value_of(audit.get("delta")) if delta is None else delta
    upper = guarantee.get("epsilon") if guarantee.get("epsilon") is not None else audit.get("epsilon_upper")
    same = value_of(audit.get("delta")) == delta
    return Privacy(
        claim=_curve(budget, "delta_claim"),
        upper=_curve(budget, "delta_upper"),
        lower=_curve(found, "delta_lower"),
        delta=delta,
        epsilon_upper=value_of(upper),
        epsilon_lower=value_of(audit.get("epsilon_lower")) if same and _here(report, audit) else None,
    )


def _here(report: Mapping[str, Any], view: Mapping[str, Any]) -> bool:
    """Returns whether an audit is about the parameters that the report's accountant is about."""
    return not (section(report, "budget") and section(view, "evidence").get("audited_at"))


def _curve(part: Mapping[str, Any], name: str) -> Curve | None:
    epsilon, delta = part.get("epsilon"), part.get(name)
    if not isinstance(epsilon, list) or not isinstance(delta, list):
        return None
    pairs = []
    for x, y in zip(map(value_of, epsilon), map(value_of, delta), strict=False):
        if x is not None and y is not None and math.isfinite(x) and 0 <= y <= 1:
            pairs.append((x, y))
    pairs.sort()
    if len(pairs) < 2 or not any(y > 0 for _, y in pairs):
        return None
    return Curve(epsilon=tuple(x for x, _ in pairs), delta=tuple(y for _, y in pairs))


def crossing(data: Privacy) -> float | None:
    """Returns an ε at which the audit's δ exceeds the accountant's, or None.

    Between the accountant's points the chord in e^ε bounds the true δ: a hockey-stick divergence is convex in e^ε (it
    is not in ε), so a δ above the chord contradicts the accountant wherever its points lie.
    """
    if data.lower is None or data.upper is None:
        return None
    for epsilon, delta in zip(data.lower.epsilon, data.lower.delta, strict=True):
        chord = _chord(data.upper, epsilon)
        if chord is not None and delta > chord * (1 + 1e-9):
            return epsilon
    return None


def _chord(curve: Curve, x: float) -> float | None:
    points = zip(curve.epsilon, curve.delta, strict=True)
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 <= x <= x1:
            far = not 0 < x1 - x0 < _FAR
            return max(y0, y1) if far else y0 + (y1 - y0) * math.expm1(x - x0) / math.expm1(x1 - x0)
    return None
