"""Which way asymmetric pairs go: compositions against sums over all outputs, for every choice of who moves what."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from privcheck import accounting as acc
from privcheck.accounting.engine.atoms import tidy
from privcheck.accounting.engine.envelopes import greatest, mirror
from privcheck.errors import ParameterError


def bits(trials, p, moved):
    """Returns the number of ones with the user and without."""
    noise = np.array([math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)])
    up, down = np.append(0, noise), np.append(noise, 0)
    return (up, down) if moved == "up" else (down, up)


def sampled(shift, rate, cells=40_000):
    """Returns a Poisson-sampled Gaussian with the user and without, as masses of short intervals: below the truth."""
    edges = np.linspace(-12, shift + 12, cells)
    plain, moved = np.diff(ndtr(edges)), np.diff(ndtr(edges - shift))
    return (1 - rate) * plain + rate * moved, plain


def hockey_stick(one, other, epsilon):
    """Returns the larger δ(ε) of both directions of two independent outputs."""
    with_user, without = np.outer(one[0], other[0]), np.outer(one[1], other[1])
    return max(
        np.maximum(with_user - math.exp(epsilon) * without, 0).sum(),
        np.maximum(without - math.exp(epsilon) * with_user, 0).sum(),
    )


PAIRS = [
    ((80, 0.2), (80, 0.8)),
    ((12, 0.3), (40, 0.1)),
    ((9, 0.05), (7, 0.9)),
    ((30, 0.5), (20, 0.75)),
    ((3, 0.2),) * 2,
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.2, 3.0])
def test_two_shuffled_sums_in_every_choice_of_ways(one, other, epsilon):
    truths = {}
    for ways in itertools.product(("up", "down"), repeat=2):
        truths[ways] = hockey_stick(bits(*one, ways[0]), bits(*other, ways[1]), epsilon)
        parts = [
            acc.shuffled_bits(users=n, probability=p, moved=way) for (n, p), way in zip((one, other), ways, strict=True)
        ]
        found = acc.compose(*parts).delta(epsilon=epsilon)
        assert found.value == pytest.approx(truths[ways], rel=1e-9, abs=1e-15)
        assert found.upper >= truths[ways] * (1 - 1e-13)
    either = acc.compose(*[acc.shuffled_bits(users=n, probability=p) for n, p in (one, other)])
    assert either.delta(epsilon=epsilon).upper >= max(truths.values()) * (1 - 1e-13)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
@pytest.mark.parametrize(("shift", "rate", "trials", "p"), [(3, 0.1, 50, 0.9), (1, 0.3, 50, 0.1), (2, 0.6, 8, 0.7)])
def test_a_sampled_gaussian_beside_a_shuffled_sum(shift, rate, trials, p, epsilon):
    gaussian = acc.poisson_gaussian(std=1, sensitivity=shift, rate=rate, relation="add-remove")
    truths = []
    for way in ("up", "down"):
        truths.append(hockey_stick(sampled(shift, rate), bits(trials, p, way), epsilon))
        curve = acc.compose(gaussian, acc.shuffled_bits(users=trials, probability=p, moved=way))
        assert truths[-1] * (1 - 1e-12) <= curve.delta(epsilon=epsilon).upper <= truths[-1] * 1.01
    either = acc.compose(gaussian, acc.shuffled_bits(users=trials, probability=p)).delta(epsilon=epsilon)
    assert either.upper >= max(truths) * (1 - 1e-12)


def test_alone_a_shuffled_sum_costs_the_same_whichever_way_it_goes():
    found = [
        acc.compose(acc.shuffled_bits(users=60, probability=0.3, moved=way)).delta(epsilon=0.7).value
        for way in ("up", "down", "either")
    ]
    assert found[1] == found[0]
    assert found[2] == pytest.approx(found[0], rel=1e-11)


def test_a_way_that_means_nothing_is_refused():
    with pytest.raises(ParameterError, match="'up', 'down' or 'either'"):
        acc.shuffled_bits(users=5, probability=0.5, moved="left")


atoms = st.lists(st.tuples(st.floats(-4, 4), st.floats(1e-9, 1), st.floats(1e-9, 1)), min_size=1, max_size=9)


def law(rows, infinite):
    """Returns a law from any (·, p, q): masses normed, losses their log ratios."""
    p, q = np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
    p, q = p / p.sum() * (1 - infinite), q / q.sum()
    return tidy(np.log(p) - np.log(q), np.log(p), infinite)


# [lemma largest-curve]
@settings(max_examples=200)
@given(atoms, atoms, st.sampled_from([0.0, 1e-6, 0.2]), st.sampled_from([0.0, 1e-6]))
def test_the_greatest_of_two_curves_is_just_that(one, other, lost, also):
    first, second = law(one, lost), law(other, also)
    found = greatest(first, second)
    at = np.concatenate([np.linspace(-12, 12, 300), first.losses, second.losses])
    truth = np.exp(np.maximum(first.log_deltas(at), second.log_deltas(at)))
    assert (np.exp(found.log_deltas(at)) >= truth * (1 - 1e-13)).all()
    np.testing.assert_allclose(np.exp(found.log_deltas(at)), truth, rtol=1e-9, atol=1e-12)


# [lemma mirror] [lemma join-at-zero]
@pytest.mark.every_change
@settings(max_examples=100)
@given(atoms, st.sampled_from([0.0, 1e-6, 0.2]))
def test_a_mirrored_curve_bounds_both_directions_and_is_one_of_them(rows, lost):
    pair = law(rows, lost)
    found = mirror(pair)
    at = np.linspace(0, 10, 200)
    truth = np.exp(pair.log_deltas(at))
    curve = np.exp(found.log_deltas(at))
    images = pair.logs - pair.losses
    if np.exp(pair.logs)[pair.losses > 0].sum() + np.exp(images)[pair.losses > 0].sum() + pair.infinite <= 1:
        np.testing.assert_allclose(curve, truth, rtol=1e-11, atol=1e-14)
    else:  # no pair has that curve in both directions: a bound, as close as a convex one can be at 0
        assert (curve >= truth * (1 - 1e-11)).all()
        np.testing.assert_allclose(curve[0], truth[0], rtol=1e-9, atol=1e-14)
    below = -np.expm1(-at) + np.exp(-at) * truth  # δ(−ε) = 1 − e^{−ε} + e^{−ε}·δ(ε)
    assert (np.exp(found.log_deltas(-at)) >= below * (1 - 1e-11)).all()
