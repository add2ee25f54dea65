"""The linear online agents under audit: what moves their releases furthest, what is caught, and one draw for all.

Lockstep has no error probability; mutants are told apart with certainty, and shared draws with far more than is asked.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.declare.statistics import FeatureSums
from privcheck.runtime.online import DONE
from privcheck.runtime.results import AuditRequest, OnlineRequest
from privcheck_algorithms.linear.audit_worlds import audit_world
from privcheck_audits.lockstep.agents import Watched
from privcheck_audits.lockstep.online_agents import answers, replay_agent
from privcheck_audits.policy.online import audit_policies
from registered import ALGORITHMS

CASES = [
    ("luyo-lsvi-ucb", {}), ("luyo-lsvi-ucb", {"gram": "cumulative"}), ("luyo-lsvi-ucb", {"centred": "on"}),
    ("ngo-lsvi-ucb", {}), ("ngo-lsvi-ucb", {"centred": "on"}), ("dp-lsvi-ucb-pp", {}),
    ("dp-lsvi-ucb-pp-as-printed", {}), ("published-lsvi-ucb-pp", {}),
]  # fmt: skip
SIZES = {"H": 3, "S": 8, "d": 3, "K": 17, "A": 2}
LARGE = {"bonus": 1000, "noise_bonus": 0}  # values at their caps, where sums move furthest


def watched(name, *, break_=None, **given):
    world = audit_world(SIZES)
    known = resolve_setting(name, {})
    sizes = {**SIZES, "B": SIZES["K"], "N": SIZES["K"]}
    names = {*known.values, *known.options, *known.readings}
    asked = {key: str(value) for key, value in {**sizes, **given}.items() if key in names}
    setting = resolve_setting(name, asked).setting
    if break_ is not None:
        setting = replace(setting, declaration=break_(setting.declared))
    request = OnlineRequest(setting=setting, world=world, episodes=SIZES["K"], seed=1)
    return Watched(make=ALGORITHMS[name].online, request=request)


def stays(state, reward):
    H, S, A = (SIZES[size] for size in "HSA")
    return answers(H, S, A, to=state, start=state, rewards=(reward, reward))


def moved(agent, states, *, position=1):
    pair = stays(states[0], 1.0), stays(states[1], 1.0)
    found = replay_agent(agent, pair, position, seed=5, words="")
    assert found.departures == 0
    return {d.release: d.measured / d.charged for d in found.distances if d.norm == "l2"}, found


FIRST, OPPOSITE, LAST = 0, SIZES["S"] - 3, SIZES["S"] - 1


@pytest.mark.parametrize(("name", "given"), CASES, ids=str)
def test_orthogonal_and_opposite_features_attain_what_is_charged(name, given):
    agent = watched(name, growth="1/1000", **LARGE, **given)
    matrices, _ = moved(agent, (FIRST, LAST))
    sums, _ = moved(agent, (FIRST, OPPOSITE))
    assert matrices["gram"] == pytest.approx(1, rel=1e-9)
    assert max(*matrices.values(), *sums.values()) <= 1 + 1e-9
    which = "optimistic values" if "pp" in name else "gains"
    assert sums[which] == pytest.approx(1, rel=1e-9)
    assert sums["gram"] == pytest.approx(0, abs=1e-9)
    later, _ = moved(agent, (FIRST, LAST), position=SIZES["K"])
    assert max(later.values()) == 0  # nobody comes after the last user


def understate(release):
    """The declaration as if features of Gram matrices, or targets of sums, were bounded by a little less."""

    def alter(declaration):
        statistic = declaration.release(release).statistic
        if isinstance(statistic, FeatureSums):
            column = replace_bound(statistic.target, Fraction(95, 100))
            broken = replace(statistic, target=column)
        elif statistic.weight is not None:  # the agent's features are as long as is declared
            broken = replace(statistic, weight=replace_bound(statistic.weight, Fraction(95, 100)))
        else:
            broken = replace(statistic, vector=replace_bound(statistic.vector, Fraction(97, 100)))
        return replace(
            declaration,
            releases=tuple(replace(r, statistic=broken) if r.name == release else r for r in declaration.releases),
        )

    return alter


def replace_bound(column, factor):
    return type(column)(column.name, column.bound * factor, column.latex)


@pytest.mark.parametrize(("name", "given"), [case for case in CASES if "published" not in case[0]], ids=str)
def test_a_sensitivity_that_is_five_percent_short_is_caught(name, given):
    which = "optimistic values" if "pp" in name else "gains"
    for release, states in (("gram", (FIRST, LAST)), (which, (FIRST, OPPOSITE))):
        agent = watched(name, growth="1/1000", break_=understate(release), **LARGE, **given)
        _, found = moved(agent, states)
        assert {d.release for d in found.distances if d.exceeds} == {release}


class Remembers:
    """An agent that adds its exact Gram matrices to what the next plan is made of; the true loss is ∞."""

    def __init__(self, honest):
        self.honest = honest

    def __call__(self, request, *, noiseless=False):
        player = self.honest(request, noiseless=noiseless)

        def play(one, until):
            for episode in range(int(one.arrays["totals"][DONE]) + 1, until + 1):
                player.play(one, episode)
                exact = one.arrays["exact_gram"]
                one.arrays["values"][..., 0, 0] += 1e-6 * exact[0, 0, 0]

        return replace(player, play=play)


@pytest.mark.parametrize("name", ["luyo-lsvi-ucb", "ngo-lsvi-ucb", "dp-lsvi-ucb-pp"])
def test_lockstep_catches_a_plan_that_looks_at_exact_sums(name):
    agent = watched(name, growth="1/1000")
    found = replay_agent(
        replace(agent, make=Remembers(agent.make)), (stays(0, 1.0), stays(7, 1.0)), 1, seed=5, words=""
    )
    assert found.departures > 0


def policy_audit(name):
    setting = resolve_setting(name, {"rho": "1/10"}).setting
    request = AuditRequest(
        setting=setting, view="policy", delta=1e-5, trials=600, confidence=0.99, seed=2, method="auto"
    )
    return audit_policies(request, ALGORITHMS[name])


@pytest.mark.parametrize("name", ["dp-lsvi-ucb-pp-as-printed", "published-lsvi-ucb-pp"])
def test_one_draw_for_all_outputs_shows_in_what_the_others_are_told(name):
    found = policy_audit(name)
    assert found.verdict == "violation"
    assert found.epsilon_lower > found.epsilon_claimed


def test_fresh_draws_do_not():
    assert policy_audit("dp-lsvi-ucb-pp").verdict == "consistent"
