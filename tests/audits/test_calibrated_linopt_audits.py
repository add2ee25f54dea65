"""CALIBRATED-LINOPT under audit: its charges are attained by the running agent, and what is broken in it is found.

Lockstep and its mutants have no error probability. `test_online_plans` and `test_white_box_online` ask of it what they
ask of every online agent: that it is not accused, and that policies tell an agent apart that peeks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mutants import rescaled_noise, short_sensitivity
from mutants.agents import Altered
from privcheck.commands.settings import resolve_setting
from privcheck.runtime.results import AuditRequest
from privcheck_algorithms.calibrated_linopt import audit_world
from privcheck_audits.lockstep import agent_views
from registered import ALGORITHMS

NAME = "calibrated-linopt"
READINGS = ({}, {"rewards": "released", "d2": "2"})


def asked(view, trials, given, *, change=lambda declaration: declaration):
    setting = resolve_setting(NAME, {"H": "4", "K": "24", "d1": "3", **given})
    return AuditRequest(
        setting=replace(setting.setting, declaration=change(setting.declared)), view=view, delta=1e-5, trials=trials,
        confidence=1 - 1e-9, seed=4,
    )  # fmt: skip


def look(request, make=None):
    view = agent_views.lockstep if request.view == "lockstep" else agent_views.noise
    return view(request, ALGORITHMS[NAME] if make is None else replace(ALGORITHMS[NAME], online=make))


@pytest.mark.parametrize("given", READINGS, ids=str)
def test_users_move_the_agent_s_sums_exactly_as_far_as_is_charged(given):
    found = look(asked("lockstep", 8, given))
    assert found.verdict == "consistent"
    ratios = [value for key, value in found.evidence.items() if key.endswith("_l2_moved_over_charged")]
    assert ratios == pytest.approx([1.0] * (2 if given else 1), rel=1e-9)


@pytest.mark.parametrize("given", READINGS, ids=str)
def test_a_sensitivity_that_is_five_percent_short_is_found(given):
    found = look(asked("lockstep", 8, given, change=lambda honest: short_sensitivity(honest, "19/20")))
    assert found.verdict == "violation"


@pytest.mark.parametrize(("array", "given"), [("values", READINGS[0]), ("rewards", READINGS[1])])
def test_an_agent_that_plans_from_exact_sums_too_is_found(array, given):
    def alter(_request, play, one, episode):
        ends = np.cumsum([2**k for k in range(9)])  # batches of the audit instance
        batch = int(np.searchsorted(ends, episode - 1))
        peeks = episode - 1 == ends[batch] and batch < len(one.arrays[array])
        secret = 1000.0 * one.arrays[f"exact_{array}"] if peeks else 0.0
        one.arrays[array][min(batch, len(one.arrays[array]) - 1)] += secret
        play(one, episode)
        one.arrays[array][min(batch, len(one.arrays[array]) - 1)] -= secret

    request = asked("lockstep", 8, given)
    assert look(request).verdict == "consistent"
    found = look(request, Altered(honest=ALGORITHMS[NAME].online, alter=alter))
    assert found.verdict == "violation"
    assert found.evidence["departures"] > 0


def test_noise_at_another_scale_is_found():
    """Four batches a run leave 9 numbers each: after 100 runs 15 % less are more than ten standard deviations."""
    found = look(asked("noise", 100, {}, change=lambda honest: rescaled_noise(honest, 0.85)))
    assert found.verdict == "violation"
    assert "scale of values" in found.witness


def test_the_audits_world_is_a_mixture():
    world = audit_world({"H": 3, "S": 4, "A": 4, "d1": 4, "d2": 3})
    assert world.sizes == {"H": 3, "S": 4, "A": 4, "d": 3, "d1": 4, "d2": 3}
    assert world.features.kernels.sum(axis=-1)[0] == pytest.approx(1)
    assert np.abs(world.features.kernels.sum(axis=-1)[1:]).max() < 1e-12
