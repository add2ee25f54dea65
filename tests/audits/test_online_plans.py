"""The policy view of the private online agents: it runs the agents, catches peeking, and accuses no honest one.

Bounds hold at confidence 1 − 1e-9: an honest agent is accused by a reseed with probability below 1e-9 an audit, all 31
together below 4e-8. Agents that peek are missed with more than 80 (CALIBRATED-UCB-VI, which breaks ties at random) or
45 wrong guesses of 560; in 20 seeds there were at most 37 (6.6 %) and 2. At error rates of 7 % and 1 % that many have
probability below 1e-9.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import mutants
from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest
from privcheck.terms.guarantees import PureDP
from privcheck_algorithms.kernels.sparse_mdp import compress
from privcheck_audits.bounds import guess_plan
from privcheck_audits.engine.scores import draw_hidden_bits
from privcheck_audits.policy.online import SIZES, as_numbers, audit_policies, features, instance
from privcheck_audits.policy.view import policy_trials
from privcheck_audits.releases.view import audit_releases
from registered import ALGORITHMS
from structures import over_registry
from twins import paper_002 as reference

SURE = 1 - 1e-9
NAMES = over_registry("online", "fresh noise")  # of others: test_lsvi_audits
BY_ANOTHER_BUDGET = [name for name in registry.names("algorithms") if "calibrated" in name or "shuffled" in name]


def ask(name, *, trials=200, seed=3, view="policy", **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return AuditRequest(
        setting=setting.setting,
        view=view,
        delta=0.0 if isinstance(setting.declared.claim.guarantee, PureDP) else 1e-5,
        trials=trials,
        confidence=SURE,
        seed=seed,
    )


def runs_of(request):
    return instance(request.setting, ALGORITHMS[request.declaration.name])


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_registered_with_every_view(name):
    plan = registry.audit_plan(name)
    assert plan.name == name
    assert plan.views == tuple(plan.trials) == ("releases", "lockstep", "noise", "policy")


def test_the_releases_are_audited_as_any_declaration_s():
    plan, request = registry.audit_plan("pucb"), ask("pucb", view="releases", trials=2_000)
    assert plan.audit(request).epsilon_lower == audit_releases(request).epsilon_lower


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_agent_is_not_accused(name):
    found = registry.audit_plan(name).audit(ask(name))
    assert found.verdict == "consistent"
    assert found.epsilon_lower <= found.epsilon_upper
    assert found.evidence["learned_on"] == 120
    assert "not a proof of privacy" in found.evidence["meaning"]


# as printed, E in the thousands is added to every count: eight users' policies hardly move, peeking or not
@pytest.mark.parametrize("name", over_registry("online", "fresh noise", but=("sdp-pe-as-printed",)))
def test_an_agent_that_peeks_at_the_counts_is_caught(name):
    sized = ask(name).values
    request = ask(name, trials=400, **({"rho": "1/100"} if "rho" in sized else {}))  # 400 runs certify ε = 2 at most
    found = audit_policies(request, ALGORITHMS[name], mutants.peeking_online(runs_of(request)))
    assert found.verdict == "violation"
    assert found.epsilon_lower > found.epsilon_upper
    assert found.evidence["refuted"] == "claim and declaration"
    assert "leaks the first user's data" in found.evidence["meaning"]


@pytest.mark.parametrize("kind", ["vi", "po"])
@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_trial_is_the_paper_s_agent_behind_its_channel(kind, trust, monkeypatch):
    request = ask(f"private-ucb-{kind}-{trust}", epsilon=30)
    whole = runs_of(request)
    outputs = whole(np.random.default_rng(9), 6)
    rng = np.random.default_rng(9)
    assert np.array_equal(outputs.secret, draw_hidden_bits(rng, 6))
    asked = replace(whole.request, seed=int(rng.integers(2**63)))
    answer = reference._answer
    for run in range(6):
        worlds = iter([compress(whole.first[0 if outputs.secret[run] else 1])])
        monkeypatch.setattr(
            reference, "_answer", lambda r, w, policy, users, worlds=worlds: answer(r, next(worlds, w), policy, users)
        )
        found = reference.trace(asked, kind=kind, number=run)
        user, is_first = found.users[0], bool(outputs.secret[run])
        assert (user.states[0, 1:] == (0 if is_first else 1)).all()
        assert (user.rewards[0] == (0 if is_first else 1)).all()
        told = np.stack(found.policies) if kind == "po" else np.argmax(found.policies, axis=3)
        policies = np.stack([as_numbers(one, 2) for one in told])
        np.testing.assert_allclose(outputs.features[run], features(policies, mixed=kind == "po"), atol=1e-9)


def test_neighbours_share_what_the_relation_fixes():
    fixed, free = (runs_of(ask("private-ucb-vi-central", initial=initial)) for initial in ("fixed", "any"))
    assert np.array_equal(fixed.first[0].initial, fixed.first[1].initial)
    assert not np.array_equal(free.first[0].initial, free.first[1].initial)
    assert fixed.request.world.mdp.transition.max(axis=-1).min() < 1  # later users are drawn


def test_nothing_but_the_first_user_s_data_tells_the_arms_apart():
    whole = runs_of(ask("private-ucb-vi-local", epsilon=1000))
    twins = replace(whole, first=(whole.first[0], whole.first[0]))
    counted = policy_trials(twins, guess_plan(), trials=300, seed=2).tested
    assert abs(counted.errors / counted.runs - 0.5) < 0.16  # 6.5 standard deviations
    apart = policy_trials(whole, guess_plan(), trials=300, seed=2).tested
    assert apart.errors < 0.05 * apart.runs


def test_sizes_are_the_instance_s_own_and_the_rest_is_as_asked():
    whole = runs_of(ask("private-ucb-vi-central", epsilon=7, H=20, K=10**6))
    assert {name: whole.request.values[name] for name in SIZES} == SIZES
    assert whole.request.values["epsilon"] == 7


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("calibrated-ucb-vi", {"counts": "steps"}), ("calibrated-ucb-vi", {"rewards": "known"}),
        ("private-ucb-po-central", {"log": "ln", "initial": "any"}), ("ldp-obi", {"noise": "chowdhury-zhou"}),
    ],
    ids=str,
)  # fmt: skip
def test_other_readings_are_audited_too(name, given):
    found = registry.audit_plan(name).audit(ask(name, trials=100, **given))
    assert found.verdict == "consistent"


def test_what_cannot_be_audited_is_refused():
    with pytest.raises(ParameterError, match="at least 100 trials"):
        registry.audit_plan("pucb").audit(ask("pucb", trials=99))
    request = ask("dp-apvi", view="policy")
    with pytest.raises(ParameterError, match="no online agent"):
        audit_policies(request, ALGORITHMS["dp-apvi"])


@pytest.mark.nightly
@pytest.mark.parametrize("budget", [5, 20])
@pytest.mark.parametrize("name", over_registry("online", "fresh noise", but=BY_ANOTHER_BUDGET))
def test_a_bound_of_an_honest_agent_stays_below_the_accountant_s(name, budget):
    given = {"rho" if "rho" in ask(name).values else "epsilon": budget}
    found = registry.audit_plan(name).audit(ask(name, trials=2_000, **given))
    assert found.epsilon_lower <= found.epsilon_upper
    if budget == 20 and not name.startswith("sdp-pe"):  # τ hides everything from eight users' policies
        # and the score sees something: .06 is 6 standard deviations of 2 800 guesses
        assert found.evidence["error_rate_of_all_guesses"] < 0.44


@pytest.mark.slow
@pytest.mark.parametrize("name", ["private-ucb-vi-local", "private-ucb-po-local"])
def test_a_twentieth_of_the_noise_is_caught(name):
    request = ask(name, trials=3_000)
    found = audit_policies(request, ALGORITHMS[name], runs_of(ask(name, epsilon=20)))
    assert found.verdict == "violation"


@pytest.mark.slow
def test_threads_and_processes_give_the_same_counts():
    whole = runs_of(ask("private-ucb-vi-central"))
    alone = policy_trials(whole, guess_plan(), trials=2_000, seed=1)
    assert policy_trials(whole, guess_plan(), trials=2_000, seed=1, workers=2) == alone
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert policy_trials(whole, guess_plan(), trials=2_000, seed=1, executor=pool) == alone
