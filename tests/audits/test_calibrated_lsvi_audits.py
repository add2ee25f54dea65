"""Audits of CALIBRATED-LSVI-UCB: the honest agent attains what it is charged, and every mutant is found.

Lockstep has no error probability. The noise audits run at α = 1e-9.
"""

from dataclasses import replace

import pytest

from mutants.agents import Altered
from privcheck.commands.settings import resolve_setting
from privcheck.runtime.online import DONE
from privcheck.runtime.results import AuditRequest
from privcheck_algorithms.calibrated_lsvi_ucb import agent as module
from privcheck_algorithms.calibrated_lsvi_ucb.agent import player
from privcheck_audits.lockstep import agent_views
from registered import ALGORITHMS

NAME = "calibrated-lsvi-ucb"
SMALL = {"H": "5", "d": "3", "K": "32"}
READINGS = [{}, {"gram": "released"}, {"rewards": "released"}, {"features": "given"}]


def look(view, *, trials=12, make=None, **given):
    setting = resolve_setting(NAME, {**SMALL, **given})
    request = AuditRequest(
        setting=setting.setting, view=view, delta=1e-5, trials=trials, confidence=1 - 1e-9, seed=4,
    )  # fmt: skip
    algorithm = ALGORITHMS[NAME] if make is None else replace(ALGORITHMS[NAME], online=make)
    return (agent_views.lockstep if view == "lockstep" else agent_views.noise)(request, algorithm)


@pytest.mark.parametrize("given", READINGS)
def test_the_honest_agent_attains_its_charge_and_draws_the_declared_noise(given):
    found = look("lockstep", **given)
    assert found.verdict == "consistent"
    assert found.evidence["departures"] == 0
    assert found.evidence["policies_that_moved"] > 20
    ratio = found.evidence["tables_l2_moved_over_charged"]
    assert ratio <= 1 + 1e-9
    # equal features and other successors attain F; with Gram matrices the worst features are at an angle
    assert ratio == pytest.approx(1, rel=1e-9) if "gram" not in given else ratio > 0.9
    assert look("noise", trials=6, **given).verdict == "consistent"


def peek(_request, play, one, episode):
    """Adds the last batch's exact tables to what the agent reads, which nothing releases."""
    one.arrays["tables"] += one.arrays["exact_tables"]
    play(one, episode)


def keep_user(_request, play, one, episode):
    """Keeps the sums of the batch before, so that a user stays in later tables too."""
    play(one, episode)
    if int(one.arrays["totals"][DONE]) == 1:
        one.arrays["reached"] *= 2


def test_an_agent_that_looks_at_exact_tables_is_found():
    found = look("lockstep", make=Altered(honest=player, alter=peek))
    assert found.verdict == "violation"
    assert found.evidence["departures"] > 0


def test_a_user_who_is_moved_five_per_cent_further_is_found(monkeypatch):
    honest = module.sum_up_batch
    monkeypatch.setattr(module, "sum_up_batch", lambda *sums: 1.05 * honest(*sums))
    found = look("lockstep")
    assert found.verdict == "violation"
    assert found.evidence["tables_l2_moved_over_charged"] == pytest.approx(1.05, rel=1e-9)


def test_a_user_who_is_summed_twice_is_found():
    found = look("lockstep", make=Altered(honest=player, alter=keep_user), growth="3", first_batch="1")
    assert found.verdict == "violation"


def test_five_per_cent_too_little_noise_is_found(monkeypatch):
    """200 runs of five batches with 12 numbers each: 5 % are 7.7 standard deviations of the scale that is drawn."""
    honest = module.release
    monkeypatch.setattr(module, "release", lambda exact, sigma, rng: honest(exact, 0.95 * sigma, rng))
    found = look("noise", trials=200)
    assert found.verdict == "violation"
    assert found.evidence["refuted"] != "nothing"
