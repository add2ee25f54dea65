"""SDP-PE's agents in the views that run them: honest ones pass, and mutants of what is sent and shuffled are found.

At 99.9999 % confidence: an honest agent is accused with probability at most 10⁻⁶ each; seeds are fixed.
"""

from dataclasses import replace

import pytest

from mutants.protocols import PROTOCOLS, agent_with
from privcheck.commands.settings import resolve_setting
from privcheck.runtime.registry import algorithm, plan_for
from privcheck.runtime.results import AuditRequest

PRIVATE = ("sdp-pe", "sdp-pe-as-printed", "sdp-pe-calibrated")


def run(subject, view, trials, seed=3):
    setting = resolve_setting(subject.name, {}).setting
    request = AuditRequest(setting=setting, view=view, delta=1e-5, trials=trials, confidence=0.999999, seed=seed)
    return plan_for(subject).audit(request)


@pytest.mark.parametrize("name", PRIVATE)
def test_messages_are_those_declared(name):
    result = run(algorithm(name), "noise", 4)
    assert result.agent_ran
    assert result.verdict == "consistent"
    assert result.evidence["messages"] > 5_000
    assert result.evidence["counters_with_wrong_messages"] == 0


@pytest.mark.parametrize("name", PRIVATE)
def test_one_user_moves_what_is_charged_and_no_policy(name):
    result = run(algorithm(name), "lockstep", 6)
    assert result.agent_ran
    assert result.verdict == "consistent"
    assert result.evidence["departures"] == 0
    assert result.evidence["policies_that_moved"] > 0


@pytest.mark.parametrize("mutant", PROTOCOLS)
def test_mutants_are_found(mutant):
    honest = algorithm("sdp-pe")
    result = run(replace(honest, online=agent_with(mutant)), "noise", 4)
    assert result.verdict == "violation"
    words = {
        "lets order through": "order of",
        "one order for all counters": "links of",
        "sends zeros for noise bits": "scale of",
    }
    assert words.get(mutant, "number and kind") in result.evidence["refuted"]


def test_an_agent_that_peeks_is_found_by_its_policies():
    from privcheck_audits.policy.online import audit_policies, instance

    subject = algorithm("sdp-pe-calibrated")
    setting = resolve_setting(subject.name, {}).setting
    request = AuditRequest(setting=setting, view="policy", delta=1e-5, trials=400, confidence=0.999999, seed=3)
    runs = replace(instance(setting, subject), noiseless=True)
    assert audit_policies(request, subject, runs).verdict == "violation"
