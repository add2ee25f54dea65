"""Audits of PRIVATE-UCB-VI with batches that double, inside and from the policies: mutants are found.

Lockstep has no error probability. Noise and policy audits run at α = 1e-9 each, four of them on the correct agent.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import mutants
from mutants import rescaled_noise
from privcheck.commands.settings import resolve_setting
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_audits.policy.online import audit_policies, instance
from registered import ALGORITHMS

NAME = "private-ucb-vi-calibrated"
SMALL = {"H": "4", "S": "3", "A": "2", "K": "40", "releases": "doubling"}


def asked(view, trials, **given):
    setting = resolve_setting(NAME, SMALL | given)
    return AuditRequest(
        setting=setting.setting, view=view, delta=1e-5,
        trials=trials, confidence=1 - 1e-9, seed=4,
    )  # fmt: skip


def test_a_batch_moves_by_what_is_charged_and_only_one_of_them():
    found = registry.audit_plan(NAME).audit(asked("lockstep", 8))
    assert found.verdict == "consistent"
    assert found.evidence["departures"] == 0
    assert found.evidence["policies_that_moved"] > 8
    ratios = [value for key, value in found.evidence.items() if key.endswith("_l2_moved_over_charged")]
    assert ratios == pytest.approx([1.0] * 3, rel=1e-9)


@pytest.mark.parametrize("K", ["1", "4", "40", "1000"])
def test_the_noise_of_every_batch_is_the_declared_one(K):
    found = registry.audit_plan(NAME).audit(asked("noise", 6, K=K))
    assert found.verdict == "consistent", found.evidence


def test_half_the_noise_is_found():
    request = asked("noise", 24)
    half = replace(request.setting, declaration=rescaled_noise(request.declaration, 0.5))
    found = registry.audit_plan(NAME).audit(replace(request, setting=half))
    assert found.verdict == "violation"


def test_the_policies_accuse_no_honest_agent_and_one_that_peeks():
    request = asked("policy", 400)
    assert registry.audit_plan(NAME).audit(request).verdict == "consistent"
    runs = instance(request.setting, ALGORITHMS[NAME])
    assert audit_policies(request, ALGORITHMS[NAME], mutants.peeking_online(runs)).verdict == "violation"
