"""Losses with finitely many values against direct sums, exact fractions and enumeration."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.engine.atoms import Atoms, binomial_logs, power
from privcheck.accounting.shuffle.pairs import response_clones_law


def hockey_stick(p, q, epsilon):
    """δ(ε) of two laws on the same outcomes, digit by digit."""
    with mp.workdps(40):
        e = mp.exp(mp.mpf(epsilon))
        return float(mp.fsum(max(mp.mpf(0), mp.mpf(a) - e * mp.mpf(b)) for a, b in zip(p, q, strict=True)))


def responses(epsilons):
    """All outcomes of independent binary randomised responses."""
    with mp.workdps(40):
        one = [mp.exp(mp.mpf(e)) / (1 + mp.exp(mp.mpf(e))) for e in epsilons]
        p, q = [], []
        for bits in itertools.product((0, 1), repeat=len(one)):
            p.append(mp.fprod(x if b else 1 - x for x, b in zip(one, bits, strict=True)))
            q.append(mp.fprod(1 - x if b else x for x, b in zip(one, bits, strict=True)))
        return p, q


# [lemma response-dominates]
@given(st.lists(st.floats(0.05, 3), min_size=1, max_size=8), st.floats(0, 0.999))
@settings(max_examples=30)
def test_optimal_composition_by_enumeration(epsilons, share):
    at = share * sum(epsilons)
    found = acc.compose(*(acc.pure(epsilon=e) for e in epsilons)).delta(epsilon=at)
    assert found.direction == "exact"
    assert found.value == pytest.approx(hockey_stick(*responses(epsilons), at), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("k", "e0", "epsilon"), [(100, 0.1, 2.0), (1000, 0.01, 0.5), (30, 1.0, 12.5)])
def test_homogeneous_composition_is_the_binomial_sum(k, e0, epsilon):
    """Kairouz, Oh & Viswanath's continuous form: E[(1 − e^{ε−S})₊], S = (2m − k)ε₀."""
    with mp.workdps(50):
        one = 1 / (1 + mp.exp(-mp.mpf(e0)))
        truth = mp.fsum(
            mp.binomial(k, m) * one**m * (1 - one) ** (k - m) * (1 - mp.exp(epsilon - (2 * m - k) * mp.mpf(e0)))
            for m in range(k + 1)
            if (2 * m - k) * e0 > epsilon
        )
    assert acc.compose(acc.pure(epsilon=e0, count=k)).delta(epsilon=epsilon).value == pytest.approx(
        float(truth), rel=1e-10
    )


@pytest.mark.parametrize(("m", "e0", "k"), [(2, 0.7, 3), (4, 0.7, 3), (10, 1.5, 4)])
def test_randomized_response_over_categories_by_enumeration(m, e0, k):
    total = math.exp(e0) + m - 1
    single = [math.exp(e0) / total, 1 / total] + [1 / total] * (m - 2)
    other = [single[1], single[0], *single[2:]]
    p = [math.prod(c) for c in itertools.product(single, repeat=k)]
    q = [math.prod(c) for c in itertools.product(other, repeat=k)]
    curve = acc.compose(acc.randomized_response(epsilon=e0, categories=m, count=k))
    for at in (0.0, 0.3, e0, 1.5 * e0):
        assert curve.delta(epsilon=at).value == pytest.approx(hockey_stick(p, q, at), rel=1e-9)


@pytest.mark.parametrize(("trials", "p"), [(5, Fraction(1, 3)), (40, Fraction(1, 2)), (60, Fraction(9, 10))])
def test_shuffled_bits_by_fractions(trials, p):
    law = [Fraction(math.comb(trials, x)) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)]
    below, above = [*law, Fraction(0)], [Fraction(0), *law]
    curve = acc.compose(acc.shuffled_bits(users=trials, probability=p))
    for ratio in (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(4)):
        truth = max(
            sum(max(Fraction(0), a - ratio * b) for a, b in zip(one, other, strict=True))
            for one, other in ((below, above), (above, below))
        )
        assert curve.delta(epsilon=math.log(ratio)).value == pytest.approx(float(truth), rel=1e-11)


def test_shuffled_bits_give_a_user_away_with_their_last_outcome():
    curve = acc.compose(acc.shuffled_bits(users=4, probability="0.5"))
    found = curve.epsilon(delta=0.01)
    assert found.value == math.inf
    assert "reveals a user" in found.reason
    assert curve.delta(epsilon=50).value == pytest.approx(1 / 16)


def clones_by_enumeration(n, e0):
    clone, truth = math.exp(-e0), 1 / (1 + math.exp(-e0))
    p, q = {}, {}
    for c in range(n):
        weight = math.comb(n - 1, c) * clone**c * (1 - clone) ** (n - 1 - c)
        for a in range(c + 1):
            inner = weight * math.comb(c, a) / 2**c
            for d, chance in ((1, truth), (0, 1 - truth)):
                for law, out in ((p, (a + d, c - a + 1 - d)), (q, (a + 1 - d, c - a + d))):
                    law[out] = law.get(out, 0) + inner * chance
    outcomes = sorted(p.keys() | q.keys())
    return [p.get(o, 0) for o in outcomes], [q.get(o, 0) for o in outcomes]


@pytest.mark.parametrize(("n", "e0"), [(1, 1.0), (2, 0.5), (7, 1.0), (25, 2.0)])
def test_clones_by_enumeration(n, e0):
    curve = acc.compose(acc.shuffled(local_epsilon=e0, users=n, relation="replace-one"))
    p, q = clones_by_enumeration(n, e0)
    for share in (0.0, 0.2, 0.6, 0.95):
        assert curve.delta(epsilon=share * e0).value == pytest.approx(hockey_stick(p, q, share * e0), rel=1e-9)


def test_one_user_is_not_hidden():
    assert acc.compose(acc.shuffled(local_epsilon=1.3, users=1, relation="replace-one")).epsilon(
        delta=0
    ).value == pytest.approx(1.3, rel=1e-12)
    one = acc.compose(acc.shuffled(local_epsilon=1.3, users=1, relation="replace-one")).delta(epsilon=0.4).value
    assert one == pytest.approx(acc.pure_delta(1.3, 0.4).value, rel=1e-12)


# [lemma fewer-clones]
def test_grouped_clones_err_upwards_by_little(monkeypatch):
    from privcheck.accounting.shuffle import pairs as shuffling

    exact = acc.compose(acc.shuffled(local_epsilon=1.0, users=3001, relation="replace-one")).epsilon(delta=1e-6)
    monkeypatch.setattr(shuffling, "_EXACT", 1000)
    grouped = acc.compose(acc.shuffled(local_epsilon=1.0000000001, users=3001, relation="replace-one")).epsilon(
        delta=1e-6
    )
    assert grouped.direction == "upper"
    assert exact.value <= grouped.value <= exact.value * (1 + 1e-2)


# [lemma response-clones]
@pytest.mark.parametrize(("n", "e0"), [(1, 1.0), (2, 1.0), (5, 0.5), (12, 2.0), (80, 1.0)])
def test_shuffled_response_is_worst_over_the_others(n, e0):
    """By brute force over how many of the others hold a one; and the clones pair, true for all, lies above."""
    flip = 1 / (1 + math.exp(e0))
    curve = acc.compose(acc.shuffled_randomized_response(epsilon=e0, users=n, relation="replace-one"))
    clones = response_clones_law(e0, n).atoms("remove")
    for share in (0.0, 0.1, 0.4, 0.9):
        worst = 0.0
        for ones in range(n):
            others = np.convolve(np.exp(binomial_logs(n - 1 - ones, -e0)), np.exp(binomial_logs(ones, e0)))
            low, high = np.append(others, 0), np.append(0, others)
            one, zero = (1 - flip) * high + flip * low, flip * high + (1 - flip) * low
            ratio = math.exp(share * e0)
            worst = max(worst, np.maximum(one - ratio * zero, 0).sum(), np.maximum(zero - ratio * one, 0).sum())
        found = curve.delta(epsilon=share * e0).value
        assert worst * (1 - 1e-9) <= found <= worst * (1 + 1e-3) + 1e-14
        assert found <= math.exp(clones.log_deltas(np.array([share * e0]))[0]) * (1 + 1e-3)


@pytest.mark.parametrize(("std", "shift", "k"), [(0.7, 1, 3), (2.0, 3, 2), (4.0, 1, 2), (3.0, 2, 4)])
def test_discrete_gaussian_by_direct_convolution(std, shift, k):
    x = np.arange(-60, 61)
    law = np.exp(-(x**2) / (2 * std**2))
    law /= law.sum()
    total = law
    for _ in range(k - 1):
        total = np.convolve(total, law)
    sums = np.arange(-60 * k, 60 * k + 1)
    loss = (k * shift**2 - 2 * shift * sums) / (2 * std**2)
    curve = acc.compose(acc.discrete_gaussian(std=std, sensitivity=shift, count=k))
    for at in (0.0, 0.5, 1.7):
        truth = float(np.sum(total * np.maximum(0, -np.expm1(at - loss)) * (loss > at)))
        assert curve.delta(epsilon=at).value == pytest.approx(truth, rel=1e-9)


def test_discrete_gaussian_cumulants_agree_between_their_two_forms(monkeypatch):
    from privcheck.accounting.engine import discrete

    law = discrete.DiscreteGaussian(3.5, 2)
    fast, error = law.wave(2.0, 0.8, 50, "remove")
    monkeypatch.setattr(discrete, "_SMOOTH", 100.0)
    slow, other = law.wave(2.0, 0.8, 50, "remove")
    assert np.abs(np.exp(slow) - np.exp(fast)).max() <= error + other <= 1e-10


@pytest.mark.parametrize(("scale", "shift", "k"), [(1.5, 1, 2), (3.0, 4, 3)])
def test_discrete_laplace_by_direct_convolution(scale, shift, k):
    x = np.arange(-120, 121)
    p = np.exp(-np.abs(x) / scale)
    p /= p.sum()
    losses = (np.abs(x - shift) - np.abs(x)) / scale
    pairs = [(1.0, 0.0)]
    for _ in range(k):
        merged = {}
        for mass, loss in pairs:
            for a, b in zip(p, losses, strict=True):
                merged[round(loss + b, 10)] = merged.get(round(loss + b, 10), 0) + mass * a
        pairs = [(m, s) for s, m in merged.items()]
    curve = acc.compose(acc.discrete_laplace(scale=scale, sensitivity=shift, count=k))
    for at in (0.0, 0.4, 1.1):
        truth = sum(m * max(0.0, 1 - math.exp(at - s)) for m, s in pairs)
        assert curve.delta(epsilon=at).value == pytest.approx(truth, rel=1e-8)


@pytest.mark.parametrize("lightest", [-40.0, -400.0])
def test_powers_on_a_lattice_are_those_of_fractions_down_to_the_lightest_masses(lightest):
    """Products fall far below the smallest normal number; every mass that is kept has all its digits."""
    logs = np.array([lightest, lightest / 2, -3.0, math.log1p(-2 * math.exp(-3.0))])
    base, raised = [Fraction(mass) for mass in np.exp(logs)], [Fraction(1)]
    for _ in range(12):
        longer = [Fraction(0)] * (len(raised) + 3)
        for i, j in itertools.product(range(len(raised)), range(4)):
            longer[i + j] += raised[i] * base[j]
        raised = longer
    given = Atoms(losses=np.array([-0.3, -0.1, 0.1, 0.3]), logs=logs)
    found = power(given, 12)
    # the lattice of sums has a step of .2 from −3.6 on; masses below e^−660 have joined a neighbour above
    for loss, log in zip(found.losses[1:], found.logs[1:], strict=True):
        exact = raised[round((loss + 3.6) / 0.2)]
        assert float(Fraction(math.exp(log)) / exact) == pytest.approx(1, rel=1e-12)
    assert math.fsum(map(math.exp, found.logs)) == pytest.approx(float(sum(raised)), rel=1e-13)
