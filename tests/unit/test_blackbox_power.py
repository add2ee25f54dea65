"""What a number of runs could have shown: against bounds searched loss by loss and run by run, and in an audit.

Nothing here is random but the two audits, which have fixed seeds.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from privcheck import PureDP, audit_mechanism
from privcheck_audits.blackbox.power import find_power, find_visible
from privcheck_audits.blackbox.verdict import ClaimedLoss, reachable


def naive(claim, runs, *, alpha):
    """Returns what guessing every run of randomised response shows, by a root of the binomial tail."""
    errors = min(runs, math.ceil(runs / (1 + math.exp(claim)))) if claim < 700 else 0
    if errors >= runs / 2:
        return 0.0
    tail = lambda epsilon: binom.cdf(errors, runs, 1 / (1 + math.exp(epsilon))) - alpha  # noqa: E731
    return 0.0 if tail(0.0) > 0 else brentq(tail, 0.0, 30.0, xtol=1e-12)


@pytest.mark.parametrize("runs", [60, 700, 20_000])
@pytest.mark.parametrize("claimed", [0.1, 1.0, 2.5])
def test_the_least_visible_loss_and_the_runs_for_twice_the_claim_are_those_of_a_search(claimed, runs):
    target = ClaimedLoss(unit="epsilon", claimed=claimed, delta=0.0)
    visible, needed = find_visible(target, runs, lambda loss, tested: naive(loss, tested, alpha=0.01) > claimed)
    seldom_wrong = math.log(runs / 0.7 - 1)  # half of the audits see no error
    losses = np.arange(claimed, seldom_wrong, 1e-3)
    slow = next((loss for loss in losses if naive(loss, runs, alpha=0.01) > claimed), seldom_wrong)
    assert visible == pytest.approx(slow, abs=0.02)
    assert naive(2 * claimed, round(needed), alpha=0.01) > claimed
    assert naive(2 * claimed, round(needed * 0.7), alpha=0.01) <= claimed


@pytest.mark.parametrize("unit", ["epsilon", "rho", "mu"])
def test_more_runs_see_more_and_nothing_is_seen_beyond_what_reveals_everything(unit):
    target = ClaimedLoss(unit=unit, claimed=1.0, delta=0.0)
    few, many = (find_power(target, runs, alpha=0.01) for runs in (200, 20_000))
    assert 1 < many.visible < few.visible
    assert few.most < many.most
    assert few.reachable == reachable(target, 200, alpha=0.01) < few.most
    assert few.needed == many.needed
    beyond = find_power(ClaimedLoss(unit=unit, claimed=few.most + 0.01, delta=0.0), 200, alpha=0.01)
    assert beyond.visible == math.inf
    assert "for any leak" in beyond.notes(100, share=0.7)[0]
    assert find_power(ClaimedLoss(unit=unit, claimed=300.0, delta=0.0), 200, alpha=0.01).trials(share=0.7) is None


def test_a_result_says_when_its_runs_were_too_few_and_how_many_would_do():
    def response(given, runs, rng):  # ε = 0.2
        return np.where(rng.random(runs) < 1 / (1 + np.exp(0.2)), 1 - given, given)

    few = audit_mechanism(response, PureDP("1/10"), neighbours=[(0, 1)], trials=100)
    assert few.verdict == "consistent"
    assert few.visible > 0.2
    assert f"nothing below ε = {few.visible:.3g} could have been shown" in str(few)
    assert f"ask for about {few.needed:,}" in few.notes[-1]
    enough = audit_mechanism(response, PureDP("1/10"), neighbours=[(0, 1)], trials=3 * few.needed)
    assert enough.verdict == "violation"
    assert enough.visible < 0.2
    assert enough.trade_off.runs[0] + enough.trade_off.runs[1] == enough.evidence["tested_on"]
    assert enough.neighbours == ((0, 1),)
