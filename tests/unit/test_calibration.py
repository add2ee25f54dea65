"""Least noise: meets the target by the accountant, a little less misses it, and the closed form where there is one."""

import dataclasses
import math

import pytest

from privcheck.accounting.engine.gdp import gdp_delta
from privcheck.errors import ParameterError
from privcheck.pricing import account
from privcheck.pricing.calibration import least_factor, least_noise
from privcheck.terms.symbols import exact
from privcheck_algorithms.dp_apvi import gaussian, laplace

DECLARATIONS = [gaussian({}), laplace({}), laplace({"rewards": "released"})]
SMALL = {"H": "4", "S": "3", "A": "2"}


def rescaled(declaration, factor: float):
    """The declaration with every spread multiplied: the naive twin's way to ask the accountant again."""
    releases = []
    for release in declaration.releases:
        mechanism = release.mechanism
        is_gaussian = mechanism.law.gaussian
        times = exact(f"{factor:.15f}")
        spread = mechanism.spread * (times * times if is_gaussian else times)
        changed = type(mechanism)(**{"variance" if is_gaussian else "scale": spread})
        releases.append(dataclasses.replace(release, mechanism=changed))
    return dataclasses.replace(declaration, releases=tuple(releases))


@pytest.mark.parametrize("declaration", DECLARATIONS, ids=lambda d: f"{d.name}-{len(d.releases)}")
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (3.0, 1e-5)])
def test_the_target_is_met_and_a_little_less_noise_misses_it(declaration, epsilon, delta):
    values = declaration.values(SMALL)
    found = least_noise(declaration, values, epsilon=epsilon, delta=delta)
    ratio = found.releases[0].ratio
    assert found.epsilon <= epsilon
    assert all(r.ratio == pytest.approx(ratio, rel=1e-12) for r in found.releases)
    assert least_factor(declaration, values, epsilon=epsilon, delta=delta) == pytest.approx(ratio, rel=1e-12)
    more, less = ratio * (1 + 1e-7), ratio * (1 - 1e-4)
    assert account(rescaled(declaration, more)).at(values).epsilon(delta) <= epsilon
    figure = account(rescaled(declaration, less)).at(values).curve.epsilon(delta=delta)
    assert figure.value > epsilon


def test_gaussian_noise_is_on_the_curve():
    declaration = gaussian({})
    values = declaration.values({"rho": "1"})
    found = least_noise(declaration, values, epsilon=1.0, delta=1e-5)
    mu = math.sqrt(2) / found.releases[0].ratio
    assert gdp_delta(mu, 1.0) == pytest.approx(1e-5, rel=1e-6)
    assert found.gaussian is None


def test_laplace_noise_may_be_replaced_by_less_gaussian_noise():
    declaration = laplace({})
    found = least_noise(declaration, declaration.values(), epsilon=1.0, delta=1e-5)
    assert found.releases[0].ratio < 0.5  # the pure claim charges 80 coordinates their worst case together
    assert found.gaussian is not None
    assert {r.law for r in found.gaussian} == {"gaussian"}
    assert found.gaussian[0].needed_std < found.releases[0].needed_std


def test_pure_targets():
    declaration = laplace({})
    found = least_noise(declaration, declaration.values(), epsilon=1.0, delta=0.0)
    assert found.releases[0].ratio == pytest.approx(1.0, rel=1e-8)
    assert found.gaussian is None


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-5), (-1.0, 1e-5), (math.nan, 1e-5), (1.0, 1.0), (1.0, -0.1)])
def test_nonsense_targets_are_refused(epsilon, delta):
    declaration = gaussian({})
    with pytest.raises(ParameterError, match="target"):
        least_noise(declaration, declaration.values(), epsilon=epsilon, delta=delta)
    with pytest.raises(ParameterError, match="target"):
        least_factor(declaration, declaration.values(), epsilon=epsilon, delta=delta)


def test_gaussian_noise_has_no_pure_target():
    declaration = gaussian({})
    with pytest.raises(ParameterError, match=r"not .ε, 0.-DP"):
        least_noise(declaration, declaration.values(), epsilon=1.0, delta=0.0)
