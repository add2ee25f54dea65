"""Audits of users with several contributions: correct releases are not accused, half the noise is found.

Confidence is 1 − 1e-9, of thirteen audits.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.pricing import Priced
from privcheck.pricing.calibration import least_noise
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck_audits.lockstep.views import lockstep, noise
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.view import audit_releases

SURE = 1 - 1e-9
CASES = [
    ("dp-ftrl", {"epochs": "2", "steps": "64"}),
    ("matrix-factorisation", {"epochs": "2", "steps": "32"}),
    ("banded-matrix-factorisation", {"steps": "64", "bands": "4", "rate": "1/4"}),
    ("bounded-contribution-apvi", {"H": "3", "S": "2", "A": "2", "m": "3", "rho": "1/4"}),
    ("banded-matrix-factorisation", {"sampling": "bins", "bins": "8", "bands": "4"}),
]


def request(declaration, values, **asked):
    given = {
        "setting": Setting(declaration=declaration, values=values), "view": "releases", "delta": 1e-5,
        "trials": 200_000, "confidence": SURE, "seed": 5,
    }  # fmt: skip
    return AuditRequest(**{**given, **asked})


def at_the_claim(name, given):
    """The declaration with the least noise for its claim, so that half of it breaks the claim by far."""
    setting = resolve_setting(name, given)
    values = dict(setting.values)
    if "noise_multiplier" in values:
        (least,) = least_noise(setting.declared, values, epsilon=float(values["epsilon"]), delta=1e-5).releases
        values["noise_multiplier"] *= Fraction(least.ratio * 1.001)
    return setting.declared, values


def halved(declaration):
    return replace(declaration, releases=tuple(one.with_std(Fraction(1, 2)) for one in declaration.releases))


@pytest.mark.parametrize(("name", "given"), CASES)
def test_half_the_noise_is_found_and_all_of_it_is_not_accused(name, given):
    declaration, values = at_the_claim(name, given)
    assert audit_releases(request(declaration, values)).verdict != "violation"
    assert audit_releases(request(halved(declaration), values)).verdict == "violation"


def test_the_canary_of_users_with_several_trajectories_has_all_of_them():
    setting = resolve_setting("bounded-contribution-apvi", CASES[3][1])
    canary = worst_canary(Priced(setting.declared, setting.values))
    assert {user.users for user in canary.pair} == {3}
    assert "3 trajectories, each" in canary.words
    assert canary.mu**2 / 2 == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize("given", [{}, {"noise": "trajectory"}])
def test_noise_for_one_trajectory_is_accused_of_what_it_leaks_of_m(given):
    setting = resolve_setting("bounded-contribution-apvi", {**CASES[3][1], **given})
    found = audit_releases(request(setting.declared, setting.values))
    assert (found.verdict == "violation") == bool(given)


@pytest.mark.parametrize(("name", "given"), [CASES[0], CASES[3]])
def test_what_reaches_the_channel_stays_within_the_charge(name, given):
    setting = resolve_setting(name, given)
    for view, audit in (("lockstep", lockstep), ("noise", noise)):
        found = audit(request(setting.declared, setting.values, view=view, trials=4))
        assert found.verdict != "violation"
