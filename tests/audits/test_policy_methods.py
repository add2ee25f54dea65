"""The policy view with bets in place of the coin flip: it stops at a violation, and accuses nobody else.

Bounds hold at confidence 1 − 1e-9: an honest agent is accused by a reseed with probability below 1e-9 an audit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

import pytest

import mutants
from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.runtime.results import AuditRequest
from privcheck_audits.policy.online import audit_policies, instance
from registered import ALGORITHMS, DP_APVI

SURE = 1 - 1e-9
SMALL = {"H": "2", "S": "2", "A": "2"}


CENTRAL = ALGORITHMS["private-ucb-vi-central"]


def ask(name, *, trials, given=None, **more):
    setting = resolve_setting(name, given or {})
    values = {
        "setting": setting.setting,
        "view": "policy",
        "delta": 1e-5 if name == "dp-apvi" else 0.0,
        "trials": trials,
        "confidence": SURE,
        "method": "sequential",
        "seed": 3,
    }
    return AuditRequest(**{**values, **more})


def timeless(result):
    evidence = {key: value for key, value in result.evidence.items() if key != "trials_per_second"}
    return {**asdict(result), "evidence": evidence, "seconds": 0}


def test_an_agent_that_peeks_stops_the_audit():
    request = ask("private-ucb-vi-central", trials=1_000)
    whole = instance(request.setting, CENTRAL)
    found = audit_policies(request, CENTRAL, mutants.peeking_online(whole))
    assert found.verdict == "violation"
    assert found.evidence["ended"] == "stopped"
    assert found.evidence["learned_on"] == 600
    assert found.evidence["tested_on"] == found.evidence["runs"] < 1_000 < found.evidence["most_runs"] == 1_400
    assert found.trials == (600 + found.evidence["tested_on"] + 1) // 2
    assert found.epsilon_lower > found.epsilon_claimed
    assert "leaks the first user's data" in found.evidence["meaning"]
    fixed = audit_policies(replace(request, method="coin-flip", trials=300), CENTRAL, mutants.peeking_online(whole))
    assert fixed.verdict == "violation"


def test_an_honest_agent_is_bet_on_to_the_end():
    found = DP_APVI.audit(ask("dp-apvi", trials=4_000, given=SMALL))
    assert found.verdict == "consistent"
    assert found.evidence["ended"] == "done"
    assert found.trials == 4_000
    assert 0 <= found.epsilon_lower <= found.epsilon_upper


def test_bets_do_not_depend_on_where_blocks_run_nor_on_sessions(tmp_path):
    request = ask("dp-apvi", trials=6_000, given=SMALL)
    whole = timeless(DP_APVI.audit(request))
    assert timeless(DP_APVI.audit(replace(request, workers=2))) == whole
    with ThreadPoolExecutor(2) as pool:
        assert timeless(DP_APVI.audit(replace(request, executor=pool))) == whole

    def interrupt(done, of):
        if done > 0.6 * of:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        DP_APVI.audit(replace(request, directory=tmp_path, progress=interrupt))
    assert timeless(DP_APVI.audit(replace(request, directory=tmp_path))) == whole
    with pytest.raises(ParameterError, match="method: there 'sequential', here 'auto'"):
        DP_APVI.audit(replace(request, directory=tmp_path, method="auto"))


def test_without_a_claim_there_is_nothing_to_bet_against():
    with pytest.raises(ParameterError, match=r"at δ = 0 there is no claimed ε .* these fit: auto, coin-flip$"):
        DP_APVI.audit(ask("dp-apvi", trials=1_000, given=SMALL, delta=0.0))


def test_auto_is_the_coin_flip():
    request = ask("dp-apvi-laplace", trials=1_000, given=SMALL)
    found = [DP_APVI.audit(replace(request, method=method)) for method in ("auto", "coin-flip")]
    assert timeless(found[0]) == timeless(found[1])
