"""Least noise: the multiple of the declared noise that a target guarantee needs, by release, and with another law.

All declared spreads are multiplied by one factor, so the releases keep their proportions. The accountant certifies the
result; the target is met at this factor and missed at a factor smaller by more than the stated tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from privcheck.accounting import Calibrated, Curve, calibrate, compose, gaussian, parallel
from privcheck.declare.declaration import Declaration, check_declaration
from privcheck.declare.mechanisms import GaussianNoise, lacks
from privcheck.declare.mechanisms.base import Charge
from privcheck.declare.releases import is_additive
from privcheck.declare.statistics import Sensitivity
from privcheck.errors import ParameterError
from privcheck.pricing.cost import Account
from privcheck.pricing.events import declared_branches
from privcheck.pricing.figures import LeastNoise
from privcheck.pricing.priced import Priced, once


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Least noise for a target.

    Attributes:
        target: (ε, δ).
        epsilon: Certified ε with the needed noise at δ; at most the target's.
        method: Method of the accountant.
        tolerance: Relative distance within which smaller noise might still meet the target.
        releases: Needed noise under the declared laws.
        gaussian: Needed noise if Gaussian noise of one standard deviation replaces every other law; None where all
            noise is Gaussian already, where there are procedures, or δ = 0.
        batches: Needed noise under the declared laws, but released over disjoint batches of users instead of trees or
            cumulative repetitions, with each user in one output; None where that is so already, or where there are
            procedures.
    """

    target: tuple[float, float]
    epsilon: float
    method: str
    tolerance: float
    releases: tuple[LeastNoise, ...]
    gaussian: tuple[LeastNoise, ...] | None
    batches: tuple[LeastNoise, ...] | None


def least_noise(
    declaration: Declaration, values: Mapping[str, Fraction], *, epsilon: float, delta: float
) -> Calibration:
    """Find the least multiple of the declared noise for which all releases together are (ε, δ)-DP, by release.

    Args:
        declaration: The declaration, priced at its derived sensitivities.
        values: Parameters of the declaration.
        epsilon: Target ε, above 0.
        delta: Target δ in [0, 1); at 0 every release has to be pure.

    Raises:
        ParameterError: As `least_factor`.
    """
    check_declaration("least_noise", declaration)
    return needed_noise(Priced(declaration, values), epsilon=epsilon, delta=delta)


def needed_noise(priced: Priced, *, epsilon: float, delta: float) -> Calibration:
    """As `least_noise`, for a priced declaration."""
    values, target = priced.values, (epsilon, delta)
    composed = _compose_to_scale(priced, target)
    calibrated = _find_factor(priced, target)
    charges = priced.charges
    published = _stds(composed, charges)
    needed = tuple(_row(name, charges[name].law, std, calibrated.scale * std) for name, std in published.items())
    others = [(one, one.std(values)) for one in priced.declaration.releases if not is_additive(one)]
    needed += tuple(_row(one.name, one.facts.law, std, calibrated.scale * std) for one, std in others)
    return Calibration(
        target=target,
        epsilon=calibrated.epsilon,
        method=calibrated.figure.method,
        tolerance=calibrated.tolerance,
        releases=needed,
        gaussian=_all_gaussian(composed, charges, epsilon, delta),
        batches=_in_batches(composed, charges, values, target),
    )


def least_factor(declaration: Declaration, values: Mapping[str, Fraction], *, epsilon: float, delta: float) -> float:
    """Find the least multiple of the declared noise for which all releases together are (ε, δ)-DP, and nothing else.

    `least_noise` also computes the noise that Gaussian noise and disjoint batches would need: one search each, twice as
    long in total.

    Args:
        declaration: As in `least_noise`.
        values: Parameters of the declaration.
        epsilon: Target ε, above 0.
        delta: Target δ in [0, 1); at 0 every release has to be pure.

    Raises:
        ParameterError: The target is out of range, δ = 0 is requested of noise that is not pure, messages are integers,
            no amount of the noise is enough, or a custom noise law does not provide what the accountant needs.
    """
    check_declaration("least_factor", declaration)
    return needed_factor(Priced(declaration, values), epsilon=epsilon, delta=delta)


def needed_factor(priced: Priced, *, epsilon: float, delta: float) -> float:
    """As `least_factor`, for a priced declaration."""
    _compose_to_scale(priced, (epsilon, delta))
    return _find_factor(priced, (epsilon, delta)).scale


def _compose_to_scale(priced: Priced, target: tuple[float, float]) -> Account:
    """Get the account of a declaration, checked that multiplying its noise can meet the target."""
    (epsilon, delta), declaration, values = target, priced.declaration, priced.values
    numbers = all(isinstance(x, int | float | Fraction) and not isinstance(x, bool) for x in (epsilon, delta))
    if not (numbers and 0 < epsilon < math.inf and 0 <= delta < 1):
        message = f"expected a target with ε above 0 and δ in [0, 1), got ε = {epsilon!r:.40}, δ = {delta!r:.40}"
        raise ParameterError(message, name="epsilon", given=epsilon)
    if leaking := declaration.shared_draws:
        message = (
            f"{declaration.name}: {', '.join(leaking)} reuse their noise, so no amount of it is enough: declare fresh"
        )
        raise ParameterError(f"{message} draws first", name="draw")
    if whole := [r.name for r in declaration.noisy if r.mechanism.law.integers]:
        message = (
            f"{declaration.name}: {', '.join(whole)} are released as integer messages, each hidden only by its "
            "sender's noise: the least noise cannot be searched for; send each bit as a separate message and calibrate "
            "that"
        )
        raise ParameterError(message, name="messages")
    if mute := [why for r in declaration.noisy if (why := lacks(r.mechanism.law, "events", "std"))]:
        raise ParameterError(f"{declaration.name}: {mute[0]}", name="mechanism")
    composed = priced.account
    silent = all(c.charged.l1.rational(values) == 0 or not c.release.settings(values) for c in composed.costs)
    if silent and all(not one.events(declaration.relation, values) for one in declaration.others):
        message = f"{declaration.name} releases nothing about any user at these parameters: no noise is needed"
        raise ParameterError(message, name="parameters", given=dict(values))
    if unbounded := priced.numbers.unbounded:
        message = f"{declaration.name}: no finite ε is known for this noise at any scale ({unbounded})"
        raise ParameterError(f"{message}: declare another mechanism", name="procedures")
    impure = [c.release.mechanism.law.name for c in composed.costs if c.pure is None]
    impure += [one.procedure.facts.law for one in composed.procedures if one.cost.pure is None]
    if delta == 0 and impure:
        raise ParameterError(
            f"{impure[0].capitalize()} noise is not (ε, 0)-DP for any ε: give --delta above 0",
            name="delta",
            given=delta,
        )
    return composed


@once
def _find_factor(priced: Priced, target: tuple[float, float]) -> Calibrated:
    charged = {c.release.name: c.charged for c in priced.account.costs}
    return calibrate(target, lambda factor: _scale(priced.declaration, charged, priced.values, factor))


def _scale(
    declaration: Declaration, charged: Mapping[str, Sensitivity], values: Mapping[str, Fraction], factor: float
) -> Curve:
    """Curve with all noise multiplied."""
    branches = declared_branches(declaration, charged, values, factor=factor)
    return parallel(*(compose(*events) for events in branches or ((),)))


def _all_gaussian(
    composed: Account, charges: Mapping[str, Charge], epsilon: float, delta: float
) -> tuple[LeastNoise, ...] | None:
    """Gaussian noise of one std for all releases: Σ Δ₂²/σ² is the budget of the target's curve."""
    if delta == 0 or composed.mu_squared is not None or composed.procedures:
        return None
    declaration = composed.declaration
    together = max(
        math.sqrt(math.fsum(charges[r.name].l2 ** 2 for r in declaration.seen_by(group)))
        for group in declaration.groups
    )
    std = calibrate((epsilon, delta), lambda s: gaussian(std=s, sensitivity=together), start=together).scale
    published = _stds(composed, charges)
    return tuple(_row(name, GaussianNoise.name, published[name], std) for name in charges)


def _in_batches(
    composed: Account, charges: Mapping[str, Charge], values: Mapping[str, Fraction], target: tuple[float, float]
) -> tuple[LeastNoise, ...] | None:
    """Noise needed by disjoint batches, with each user in one output, instead of trees and repetitions."""
    if composed.procedures or all(c.release.schedule.times.rational(values) == 1 for c in composed.costs):
        return None
    declaration = composed.declaration
    alone = {c.release.name: c.release.mechanism.whiten(c.sensitivity) for c in composed.costs}
    factor = calibrate(target, lambda f: _scale(declaration, alone, values, f)).scale
    published = _stds(composed, charges)
    return tuple(_row(name, c.law, published[name], factor * published[name]) for name, c in charges.items())


def _row(name: str, law: str, published: float, needed: float) -> LeastNoise:
    return LeastNoise(name=name, law=law, published_std=published, needed_std=needed, ratio=needed / published)


def _stds(composed: Account, charges: Mapping[str, Charge]) -> dict[str, float]:
    """Standard deviation of each release's noise."""
    laws = {c.release.name: c.release.mechanism.law for c in composed.costs}
    return {name: laws[name].of(c).std for name, c in charges.items()}
