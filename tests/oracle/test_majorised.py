"""Very many Laplace scales as fewer: never below all of them together, and by little above."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting import combining
from privcheck.accounting.engine.majorised import majorise
from privcheck.declare.mechanisms import LaplaceNoise
from privcheck.declare.mechanisms.base import Charge

steps = st.lists(st.tuples(st.floats(-6, 1).map(lambda x: 10.0**x), st.integers(1, 50)), min_size=1, max_size=60)


# [lemma joined-scales]
@given(steps)
def test_what_stands_for_others_majorises_them_weakly(given_steps):
    """By definition: sorted downwards, every partial sum is at least theirs; computed from lists, not from groups."""
    few = sorted((a for a, n in majorise(given_steps) for _ in range(n)), reverse=True)
    all_of_them = sorted((a for a, n in given_steps for _ in range(n)), reverse=True)
    few += [0.0] * (len(all_of_them) - len(few))
    one, other = 0.0, 0.0
    for mine, theirs in zip(few, all_of_them, strict=False):
        one, other = one + mine, other + theirs
        assert one >= other * (1 - 1e-12)
    assert math.fsum(few) <= math.fsum(all_of_them) * 1.0001 + 1.03 * max(all_of_them) * 0.02 * len(set(few))


# [lemma joined-scales] [lemma laplace-majorisation]
@pytest.mark.parametrize("delta", [0.01, 1e-6, 1e-20])
def test_joined_scales_lie_above_those_apart_by_less_than_a_percent(delta, monkeypatch):
    events = [acc.laplace(scale=s) for s in np.random.default_rng(5).uniform(20, 200, 120)]
    apart = acc.compose(events).epsilon(delta=delta)
    monkeypatch.setattr(combining, "MOST", 20)
    joined = acc.compose([*events, acc.laplace(scale=1e12)]).epsilon(delta=delta)
    assert apart.value * (1 - 1e-3) <= joined.value <= apart.value * 1.01  # "apart" is a bound too, by a grid
    assert joined.direction == "upper"


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(129, 600), st.floats(1.0, 100.0), st.floats(0.1, 3.0))
def test_the_label_says_that_it_is_a_bound(number, scale, spread):
    events = [acc.laplace(scale=scale * (1 + spread * i / number)) for i in range(number)]
    figure = acc.compose(events).epsilon(delta=1e-6)
    assert figure.direction == "upper"
    assert figure.upper == figure.value <= sum(1 / e.parameter("scale") for e in events) * (1 + 1e-12)


def loses_at_least(moves, epsilon, cells=400):
    """δ(ε) from below: every loss rounded down to a lattice, its law convolved move by move."""
    step = sum(moves) / cells
    law, start = np.ones(1), 0
    for w in moves:
        low, high = math.floor(-w / step), math.floor(w / step)
        edges = np.clip(np.arange(low, high + 2) * step, -w, w)  # L = w − 2x where x ~ ½e^{−x} lies between 0 and w
        masses = 0.5 * np.diff(np.exp(-(w - edges) / 2))
        masses[0] += 0.5 * math.exp(-w)
        masses[-1] += 0.5
        law, start = np.convolve(law, masses), start + low
    losses = (start + np.arange(law.size)) * step
    above = losses > epsilon
    return float(law[above] @ -np.expm1(epsilon - losses[above]))


# [lemma laplace-vector]
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=12),
    st.sampled_from([1e-3, 1e-6]),
    st.sampled_from([0.7, 3.0, 20.0]),
    st.floats(1.0, 1.5),
)
def test_a_charge_of_laplace_noise_is_above_every_change_of_its_norms(moves, delta, scale, slack):
    """What the moves lose by a convolution of their own, at the ε that their norms are charged for δ."""
    l1, linf = math.fsum(moves) * (1 + 1e-15), max(moves) * slack
    charge = Charge(law="laplace", scale=scale, l1=l1, l2=l1, linf=linf)
    charged = acc.compose(LaplaceNoise(scale=scale).events(charge, stepwise=False)).epsilon(delta=delta)
    assert loses_at_least([move / scale for move in moves], charged.upper) <= delta * (1 + 1e-9)
    assert charged.upper <= l1 / scale * (1 + 1e-9)
    alike = replace(charge, l1=len(moves) * linf)
    several = acc.compose(acc.laplace(scale=scale, sensitivity=linf, count=len(moves))).epsilon(delta=delta)
    found = acc.compose(LaplaceNoise(scale=scale).events(alike, stepwise=False)).epsilon(delta=delta)
    assert found.value == pytest.approx(several.value, rel=1e-6, abs=1e-12)


def test_the_convolution_sees_a_charge_that_is_a_tenth_too_small():
    moves = [0.5] * 6
    charged = acc.compose(acc.laplace(scale=1, sensitivity=0.5, count=6)).epsilon(delta=1e-3)
    assert loses_at_least(moves, charged.value * 0.9, cells=4_000) > 1e-3
    assert loses_at_least(moves, charged.value * 0.98, cells=4_000) > 1e-3
