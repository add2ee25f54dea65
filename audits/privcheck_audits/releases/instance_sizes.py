"""Releases at the sizes of an algorithm's own audit instance, where those asked for would hide everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.registry import Algorithm
from privcheck.results import AuditRequest
from privcheck_audits.plan.methods import on_curve
from privcheck_audits.releases.reachable_limit import reachable_curve


def visible(request: AuditRequest, algorithm: Algorithm) -> AuditRequest:
    """Returns the request at the instance's sizes, where at those asked for the releases view could not see anything.

    DP-LSVI-UCB++ loses 6·10⁻⁶ of its claim at H = 20, and half of it at H = 1, which the same claim is about.
    """
    if request.view != "releases" or request.method not in {"auto", "curve"} or not on_curve(request):
        return request
    mu = request.priced.numbers.mu
    if mu is None or request.declaration.shared_draws:
        return request
    reachable = reachable_curve(mu, 2 * request.trials, alpha=1 - request.confidence, delta=request.delta)
    if reachable > 0:
        return request
    return replace(request, setting=request.setting.at(small(request.values, algorithm)))


def small(values: Mapping[str, Fraction], algorithm: Algorithm) -> Mapping[str, Fraction]:
    """Returns the parameters with the sizes of the algorithm's instance."""
    sizes = algorithm.instance.sizes
    return {**values, **{name: Fraction(size) for name, size in sizes.items() if name in values}}
