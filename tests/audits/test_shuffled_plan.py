"""The plan behind a shuffler: it refutes what is sent as integers and comes near what is sent as bits, never above.

Bounds at 99.9999 % confidence unless a test says otherwise: a correct system is accused by chance with probability at
most 10⁻⁶ each; what is to be found is found with a probability that is higher still.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from mutants.shuffled import counting_on, fewer_noise_bits, integer_messages, sent_twice
from privcheck.commands.checks import _enough
from privcheck.commands.runs import audit
from privcheck.commands.settings import resolve_setting
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.releases import Draw
from privcheck.declare.statistics import VisitCounts
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck.reports.values import to_json
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import A, H, K, S
from privcheck.testing import assert_declaration
from privcheck_audits.bounds import exact_epsilon
from privcheck_audits.engine.blocks import blocks, total
from privcheck_audits.releases.view import audit_releases
from privcheck_audits.shuffled.view import Messages, aim, attacks, declines, instances, releases
from registered import SDP_PE, SDP_PE_AS_PRINTED

CONFIDENCE = 0.999999


def ask(name="sdp-pe", *, declaration=None, trials=20_000, confidence=CONFIDENCE, delta=1e-5, **given):
    setting = resolve_setting(name, {key: str(value) for key, value in given.items()})
    return AuditRequest(
        setting=setting.setting
        if declaration is None
        else Setting(declaration=declaration, values=declaration.values(given)),
        view="releases",
        delta=delta,
        trials=trials,
        confidence=confidence,
        seed=5,
    )


def tiny(delta="1/20", **how):
    """Returns visits of one batch of few users with few noise bits, so that everything can be written out."""
    return Declaration(
        name="tiny",
        title="tiny",
        source="none",
        relation=ReplaceOne("trajectory"),
        releases=(
            Release(
                "visits",
                VisitCounts(H, S, A),
                ShuffledBits(users=4, threshold=8),
                **how,
            ),
        ),
        claim=Claim(ApproxDP(3, delta), source="none"),
        parameters=tuple(
            Parameter(name=name, default=value, kind="count", meaning=name)
            for name, value in (("H", 1), ("S", 2), ("A", 2))
        ),
        model="shuffle",
    )


def binomials(trials, moved):
    """Returns the exact laws of the two counters of `tiny`: one with a one more on D, one with one fewer."""
    mass = {x: Fraction(math.comb(trials, x), 2**trials) for x in range(trials + 1)}
    first = {(x + moved, y): p * q for x, p in mass.items() for y, q in mass.items()}
    second = {(x, y + moved): p * q for x, p in mass.items() for y, q in mass.items()}
    return first, second


def test_bits_are_not_accused_and_the_bound_comes_near_what_they_cost():
    found = SDP_PE.audit(ask(trials=50_000))
    assert found.verdict == "consistent"
    assert 0.7 * found.epsilon_upper < found.epsilon_lower <= found.epsilon_upper < found.epsilon_claimed
    assert found.reachable == pytest.approx(found.epsilon_lower, rel=0.1)
    assert found.evidence["users_moved_alike"] > 1
    assert "users with the same data" in found.witness
    assert found.history.epsilon_lower[-1] == pytest.approx(found.epsilon_lower, rel=1e-6)


@pytest.mark.slow
def test_as_published_the_instance_with_least_noise_refutes_integer_messages():
    found = SDP_PE_AS_PRINTED.audit(ask("sdp-pe-as-printed"))
    assert found.verdict == "consistent"  # at H = 6, which was asked for and where verification says the claim holds
    assert found.evidence["violation_at"] == "H = 1 (asked: H = 6)"
    assert found.evidence["violation_epsilon_lower"] == "inf"
    assert float(found.evidence["epsilon_lower_at_H_6"]) < 0.05


def test_integer_messages_are_refuted_with_the_event_in_words():
    found = SDP_PE_AS_PRINTED.audit(ask("sdp-pe-as-printed", H=1))
    assert found.verdict == "violation"
    assert found.epsilon_lower == found.reachable == math.inf
    assert found.epsilon_upper is None
    assert found.evidence["probability_of_impossible"] == pytest.approx(1 - (1 - 1 / 8) ** 6)
    assert "a message 4 where no other user's bit is 1, or a message 0 where all others' are" in str(
        found.evidence["meaning"]
    )
    assert "all are in one batch of 5144 users" in found.witness


@pytest.mark.slow
def test_at_the_asked_parameters_where_verification_refutes_them():
    found = SDP_PE_AS_PRINTED.audit(ask("sdp-pe-as-printed", trials=2_000, K=200_000))
    assert found.verdict == "violation"
    assert "audited_at" not in found.evidence
    assert found.evidence["H"] == "6"


def test_few_users_send_too_many_noise_bits_to_be_shown():
    found = SDP_PE_AS_PRINTED.audit(ask("sdp-pe-as-printed", K=300, H=1))
    assert found.verdict == "consistent"
    assert found.evidence["looked_at"] == "the number of ones of each counter"
    assert found.epsilon_lower <= found.epsilon_upper


def test_the_lower_bound_approaches_the_exact_loss_of_a_small_batch():
    # δ above what shows: the coin flip alone. δ below: everything is refuted, though the best guesses say ε < ∞
    declaration, (first, second) = tiny(), binomials(8, 1)
    exact = exact_epsilon(first, second, delta=0.05)
    found = audit_releases(ask(declaration=declaration, delta=0.05, trials=500_000, confidence=0.99))
    assert 0.9 * exact < found.epsilon_lower <= exact  # the other side of the confidence interval: fixed seed
    below = audit_releases(ask(declaration=tiny("1/1000"), delta=1e-3, trials=50_000))
    assert exact_epsilon(first, second, delta=1e-3) == math.inf
    assert below.epsilon_lower == math.inf
    assert below.verdict == "violation"
    assert "a number of ones that is impossible" in str(below.evidence["meaning"])


def test_several_hundred_audits_accuse_the_exact_loss_at_most_with_alpha():
    # whole bounds at α = .05, aimed once: the number of alarms in R audits is at most Bin(R, α), but for 1e-9
    alpha, audits = 0.05, 400
    declaration, (first, second) = tiny(), binomials(8, 1)
    request = ask(declaration=declaration, delta=0.05, trials=1_000, confidence=1 - alpha)
    exact = exact_epsilon(first, second, delta=request.delta)
    chosen = aim(request, declaration, least=exact)
    work = Messages(groups=chosen.attack.groups, plan=chosen.plan, seed=0)
    alarms = sum(chosen.bound(work(np.random.default_rng(seed), 2_000, 0)) > exact for seed in range(audits))
    assert alarms <= binom.isf(1e-9, audits, alpha)


def test_an_impossible_output_is_met_as_often_as_the_law_says_and_rarely_refutes_what_is_just_allowed():
    # δ a little above the probability of what shows: with the test of that forced on, alarms in at most α of audits
    alpha, audits = 0.05, 400
    declaration = tiny()
    shown = next(attacks(Priced(declaration), (1,))).shown
    assert shown == pytest.approx(1 - (1 - 2**-8) ** 2)
    chosen = aim(ask(declaration=declaration, delta=0.0, trials=1_000), declaration, least=1.0)
    forced = replace(chosen, delta=shown * 0.999, alpha=alpha / 0.1)  # a tenth of which is that test's
    work = Messages(groups=chosen.attack.groups, plan=chosen.plan, seed=0)
    counted = [work(np.random.default_rng(seed), 2_000, 0) for seed in range(audits)]
    alarms = sum(math.isinf(forced._refute_outright(c.shown, c.on_first)) for c in counted)
    assert 0 < alarms <= binom.isf(1e-9, audits, alpha * 1.2)  # δ is a little below the truth
    together = total(iter(counted))
    low, high = binom.ppf([1e-10, 1 - 1e-10], together.on_first, shown)
    assert low <= together.shown <= high


def mutant(name, request):
    """Returns what the mutant's users send."""
    declaration = request.declaration
    return {
        "integer messages": lambda: integer_messages(declaration),
        "a quarter of the noise bits": lambda: fewer_noise_bits(declaration, "1/4"),
        "amplified by all K users": lambda: counting_on(declaration, K),
        "own bits sent twice": lambda: sent_twice(declaration, request.values),
    }[name]()


MUTANTS = {
    "integer messages": "claim and declaration",
    "a quarter of the noise bits": "declaration",
    "amplified by all K users": "claim and declaration",
    "own bits sent twice": "declaration",
}


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_found_at_one_step_and_said_to_break_what_it_breaks(name):
    request = ask(trials=20_000, H=1)
    found = releases(request, mutant(name, request))
    assert found.verdict == "violation"
    assert found.evidence["refuted"] == MUTANTS[name]
    assert found.epsilon_lower > found.epsilon_upper


@pytest.mark.nightly
@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_is_found_as_published_with_100_000_runs_at_99_percent(name):
    # H = 6, K = 20 000: each is beyond the bound by far more than chance could bring about
    request = ask(trials=100_000, confidence=0.99)
    found = releases(request, mutant(name, request))
    if found.verdict == "violation":
        assert found.epsilon_lower > found.epsilon_upper
    else:  # the verdict is about H = 6; what was found at one step stands beside it
        assert found.evidence["violation_at"] == "H = 1 (asked: H = 6)"
        assert float(found.evidence["violation_epsilon_lower"]) > found.epsilon_claimed


@pytest.mark.nightly
def test_thirty_whole_audits_of_honest_messages_accuse_at_most_with_alpha():
    # Bin(30, .05) is above 12 with probability 2e-9; group privacy leaves the bound below the truth: none is expected
    alarms = sum(
        SDP_PE.audit(replace(ask(trials=4_000, confidence=0.95, H=1), seed=seed)).verdict == "violation"
        for seed in range(30)
    )
    assert alarms <= binom.isf(1e-8, 30, 0.05)


def test_mutants_of_other_noise_are_refused():
    declaration = resolve_setting("dp-apvi", {}).declared
    with pytest.raises(TypeError, match="behind a shuffler"):
        integer_messages(declaration)


def test_declarations_behind_a_shuffler_can_be_asserted():
    found = assert_declaration(tiny(), views=("lockstep", "releases"), trials=2_000, confidence=CONFIDENCE)
    assert found.verdict == "holds"


def test_any_declaration_behind_a_shuffler_is_audited_and_shared_noise_is_declined():
    assert audit_releases(ask(declaration=tiny(), delta=0.05)).verdict == "consistent"
    assert "share their noise bits" in declines(tiny(draw=Draw(across=("cells",))))
    assert "no release behind a shuffler" in declines(resolve_setting("dp-apvi", {}).declared)
    assert SDP_PE.lacks(resolve_setting("sdp-pe", {}).declared, "releases") == ""


def test_the_exact_counts_move_as_far_as_is_charged():
    found = SDP_PE.audit(replace(ask(trials=12), view="lockstep"))  # the first users are of crude exploration
    assert found.verdict == "consistent"
    assert found.evidence["visits_l1_moved_over_charged"] == 1.0


def test_without_anybody_in_a_batch_there_is_nothing_to_audit():
    with pytest.raises(ParameterError, match="no batch has a user"):
        SDP_PE.audit(ask(K=2))


def test_instances_are_the_asked_one_and_the_one_with_least_noise():
    values = ask().values
    assert [at["H"] for at in instances(values)] == [6, 1]
    assert instances({**values, "H": Fraction(1)}) == ({**values, "H": Fraction(1)},)
    assert instances({}) == ({},)


def test_the_same_result_for_any_number_of_workers_and_after_an_interruption(tmp_path):
    request = ask("sdp-pe-as-printed", trials=20_000, H=1)
    one, two = (releases(replace(request, workers=w, directory=d)) for w, d in ((1, tmp_path), (2, None)))
    again = releases(replace(request, directory=tmp_path))
    for other in (two, again):
        assert {k: v for k, v in one.evidence.items() if k != "trials_per_second"} == {
            k: v for k, v in other.evidence.items() if k != "trials_per_second"
        }


def test_progress_reaches_the_end_once_and_results_go_into_json():
    seen = []
    setting = resolve_setting("sdp-pe-as-printed", {"H": "2"})
    found = audit(setting, trials=2_000, delta=1e-5, workers=1, progress=lambda done, of: seen.append((done, of)))
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert json.loads(json.dumps(to_json(found), allow_nan=False))["epsilon_lower"] == "inf"


def test_a_check_goes_on_where_no_amount_of_noise_would_do():
    assert _enough(resolve_setting("sdp-pe-as-printed", {}), 1e-5) is None


def test_guesses_are_made_on_the_blocks_of_the_engine():
    request = ask(trials=2_000, H=1)
    chosen = aim(request, request.declaration, least=0.13)
    work = Messages(groups=chosen.attack.groups, plan=chosen.plan, seed=0)
    counted = total(blocks(work, 4_000, seed=0, block=1_000))
    assert counted.runs == 4_000
    assert 0 < counted.on_first < 4_000
    assert chosen.bound(counted) > 0
