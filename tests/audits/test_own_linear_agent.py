"""A linear agent that a third party registers is audited as it is registered, and said not to have been run.

Bounds on the honest one hold at confidence 1 − 1e-9; the one that peeks shows with hardly a wrong guess.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import own_ridge as own
from privcheck.commands.settings import resolve_setting
from privcheck.declare.releases import Draw
from privcheck.declare.schedules import Batches
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck_algorithms.linear.runs import streams
from privcheck_audits.policy.post_processing import HiddenRuns

SURE = 1 - 1e-9


def audit(name, *, trials, confidence=SURE, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()}).setting
    request = AuditRequest(setting=setting, view="policy", delta=1e-5, trials=trials, confidence=confidence, seed=2)
    return registry.audit_plan(name).audit(request)


def test_it_is_audited_by_its_own_steps(register):
    register("algorithms", "own-ridge", own.HONEST)
    assert registry.audit_plan("own-ridge").views == ("releases", "lockstep", "noise", "policy")
    seen = audit("own-ridge", trials=5_000)
    assert seen.verdict == "consistent"
    assert seen.evidence["error_rate_of_all_guesses"] < 0.48  # .42 in three seeds, with a standard deviation of .006
    assert seen.evidence["instance"] == "a ruler of features, H = 1, d = 2"
    assert not seen.agent_ran
    assert seen.method.startswith("the declared noise, then the paper's steps")


def test_one_that_peeks_is_caught_at_the_plan_s_own_number_of_trials(register):
    register("algorithms", "own-ridge-peeking", own.PEEKING)
    trials = registry.audit_plan("own-ridge-peeking").trials["policy"]
    seen = audit("own-ridge-peeking", trials=trials, confidence=0.99, rho="1/4")
    assert seen.verdict == "violation"
    assert seen.epsilon_lower > seen.epsilon_claimed
    assert seen.evidence["meaning"].startswith("the policy that was learned leaks")


@pytest.mark.parametrize("shape", [(3, 2), (4,), ()])
def test_features_of_other_runs_are_refused(shape):
    with pytest.raises(ParameterError, match=r"expected features of 4 runs, \(4, features\)"):
        HiddenRuns(draw=lambda _rng, _on_first: np.zeros(shape))(np.random.default_rng(0), 4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"draw": Draw(across=("cells",))}, "share"),
        ({"schedule": Batches(size="four")}, "sums over all users so far"),
    ],
    ids=["shared by cells", "batches"],
)
def test_noise_that_is_not_drawn_as_it_is_declared_is_refused(change, why):
    setting = resolve_setting("dp-vapvi", {})
    gains, *others = reversed(setting.declared.releases)
    other = replace(setting.declared, releases=(*others, replace(gains, **change)))
    with pytest.raises(ParameterError, match=why):
        streams(other, setting.values, 1)
