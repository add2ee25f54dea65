"""The curve of a concrete pair from below, against nested integrals with mpmath that share nothing with it."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck.declare.declaration import Claim
from privcheck.terms.guarantees import ApproxDP
from privcheck.verification import verify
from privcheck.verification.pair_loss import noisy_delta, noisy_epsilon
from privcheck_algorithms.dp_apvi import gaussian, laplace


def true_delta(mu: float, moves: list[float], epsilon: mp.mpf) -> mp.mpf:
    """δ(ε) = E[δ(ε − loss of the first coordinate) of the others], down to the Gaussian pair or to nothing."""
    if not moves:
        if mu == 0:
            return max(mp.mpf(0), 1 - mp.e**epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.e**epsilon * mp.ncdf(-mu / 2 - epsilon / mu)
    move, rest = mp.mpf(moves[0]), moves[1:]
    ends = [rest_delta(mu, rest, epsilon - move) / 2, mp.e**-move * rest_delta(mu, rest, epsilon + move) / 2]
    kinks = {mp.mpf(0), move}
    for signs in range(2 ** len(rest)):  # where all other losses are at an end, the integrand has a corner
        total = sum((1 if signs >> i & 1 else -1) * m for i, m in enumerate(rest))
        kinks |= {x for x in [(move - epsilon + total) / 2] if 0 < x < move}
    density = mp.quad(lambda x: mp.e**-x / 2 * rest_delta(mu, rest, epsilon - move + 2 * x), sorted(kinks))
    return ends[0] + ends[1] + density


rest_delta = true_delta
MOVE = st.floats(0.01, 4)


# [lemma cells-of-loss]
@settings(max_examples=25, deadline=None)
@given(st.one_of(st.just(0.0), st.floats(0.05, 3)), st.lists(MOVE, min_size=1, max_size=1), st.floats(0, 3))
def test_one_laplace_coordinate_beside_gaussian_ones(mu, moves, epsilon):
    true = float(true_delta(mu, moves, mp.mpf(epsilon)))
    found = noisy_delta(mu, {moves[0]: 1}, epsilon)
    assert true * (1 - 1e-5) - 1e-13 <= found <= true


# [lemma cells-of-loss]
@pytest.mark.parametrize(
    ("mu", "moves", "epsilon"), [(0, [1.0, 0.5], 0.25), (0, [1.0, 1.0], 1), (0.7, [0.5, 1.5], 0.5), (0, [2.0, 0.1], 2)]
)
def test_two_laplace_coordinates(mu, moves, epsilon):
    with mp.workdps(20):
        true = float(true_delta(mu, moves, mp.mpf(epsilon)))
    counted = {move: moves.count(move) for move in moves}
    assert true * (1 - 1e-2) <= noisy_delta(mu, counted, epsilon) <= true


@settings(max_examples=8, deadline=None)
@given(st.floats(0, 2), st.dictionaries(MOVE, st.integers(1, 30), min_size=1, max_size=3), st.floats(1e-9, 0.2))
def test_the_inverse_is_one_and_no_more_than_all_moves_together(mu, moves, delta):
    epsilon = noisy_epsilon(mu, moves, delta)
    assert epsilon == 0 or noisy_delta(mu, moves, epsilon) > delta
    assert epsilon == 0 or noisy_delta(mu, moves, epsilon * (1 + 1e-9)) <= delta * (1 + 1e-6)
    if mu == 0:
        assert epsilon <= math.fsum(move * count for move, count in moves.items())


def test_more_coordinates_than_the_lattice_takes_lose_no_less_than_fewer():
    few, many = noisy_epsilon(0, {0.01: 3_000}, 1e-6), noisy_epsilon(0, {0.01: 300_000}, 1e-6)
    assert 0 < few <= many * (1 + 1e-9)


def test_nothing_that_moves_loses_nothing():
    assert noisy_epsilon(0.0, {}, 1e-9) == 0.0
    assert noisy_delta(0.0, {}, 0.0) == 0.0


@pytest.mark.parametrize(("factor", "verdict"), [("1", "holds"), ("1/10", "fails"), ("9/10", "fails")])
def test_laplace_noise_under_an_approximate_claim_is_decided(factor, verdict):
    declaration = laplace({})
    values = declaration.values({"H": "3", "S": "2", "A": "2"})
    pure = declaration.claim.guarantee.epsilon
    claim = Claim(ApproxDP(pure * factor, "1e-5"), source="a test")
    found = verify(replace(declaration, claim=claim), values)
    assert found.verdict == verdict
    assert found.lower_ratio > 0.999 * found.upper_ratio


@pytest.mark.parametrize("made", [gaussian, laplace])
def test_claims_without_epsilon_or_without_delta_are_judged(made):
    declaration = made({})
    values = declaration.values({"H": "1", "S": "2", "A": "2"})
    sure = replace(declaration, claim=Claim(ApproxDP(0, "999/1000"), source="a test"))
    assert verify(sure, values).verdict == "holds"
    small = replace(declaration, claim=Claim(ApproxDP(0, "1/100"), source="a test"))
    found = verify(small, values)
    assert (found.verdict, found.lower_ratio > 0.99 * found.upper_ratio) == ("fails", True)
    zero = replace(declaration, claim=Claim(ApproxDP(5, 0), source="a test"))
    found = verify(zero, values)
    assert found.verdict == ("fails" if made is gaussian else "holds")
