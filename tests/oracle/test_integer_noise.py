"""Discrete Gaussian noise on scalars and vectors, against direct sums over the integers at 40 digits."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from privcheck import accounting as acc
from privcheck.accounting.engine.discrete import DiscreteGaussian
from privcheck.accounting.engine.integers import integer_vector_laws, squares
from privcheck.accounting.engine.laws import GaussianLaw


def discrete_delta(sigma, move, epsilon):
    """δ(ε) of a move by the integer vector d, by its loss's law: sums over ⟨d, x⟩, one coordinate at a time."""
    with mp.workdps(30):
        reach = math.ceil(16 * sigma)
        weights = [mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in range(-reach, reach + 1)]
        total = mp.fsum(weights)
        law = {0: mp.mpf(1)}
        for step in move:
            moved = {}
            for y, mass in law.items():
                for x, w in zip(range(-reach, reach + 1), weights, strict=True):
                    moved[y + step * x] = moved.get(y + step * x, 0) + mass * w / total
            law = moved
        length, ratio = sum(s * s for s in move), mp.exp(mp.mpf(epsilon))
        losses = {y: (length - 2 * y) / (2 * mp.mpf(sigma) ** 2) for y in law}
        return float(mp.fsum(mass * (1 - ratio * mp.exp(-losses[y])) for y, mass in law.items() if losses[y] > epsilon))


# [lemma integer-gaussian]
@pytest.mark.parametrize("sigma", [1.2, 2.0, 3.5])
@pytest.mark.parametrize("kappa", [0.3, 0.6, 1.0])
def test_a_continuous_gaussian_of_less_variance_dominates_up_to_its_factor(sigma, kappa):
    """The theorem where its factor is felt: κ = 0.3 gives 1.005."""
    factor = 1 + 2 * math.fsum(math.exp(-2 * math.pi**2 * kappa * n * n) for n in range(1, 9))
    for move in ((1,), (3,), (1, 1)):
        mu = math.sqrt(sum(s * s for s in move) / (sigma**2 - kappa))
        for share in (0.0, 0.3, 1.0, 2.0, 4.0):
            epsilon = share * mu + 1e-3
            assert discrete_delta(sigma, move, epsilon) <= factor ** len(move) * float(acc.gdp_delta(mu, epsilon))


# [lemma integer-gaussian]
def test_without_less_variance_it_does_not_dominate():
    sigma = 2.0
    excess = [
        discrete_delta(sigma, (1,), e) / float(acc.gdp_delta(1 / sigma, e)) for e in np.linspace(0.5, 1.5, 21).tolist()
    ]
    assert max(excess) > 1.01


# [lemma integer-vectors]
@pytest.mark.parametrize("square", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("sigma", [0.6, 1.5, 4.0])
def test_vectors_of_small_length_are_the_worst_of_all_moves(sigma, square):
    curve = acc.compose(acc.discrete_gaussian(std=sigma, sensitivity=math.sqrt(square) + (1e-9 if square == 1 else 0)))
    moves = [m for m in squares(square) if len(m) <= 2] if sigma > 1 else [m for m in squares(square) if len(m) <= 3]
    moves = moves or [next(iter(squares(square)))]
    for share in (0.1, 1.0, 3.0):
        epsilon = share * math.sqrt(square) / sigma
        truth = max(discrete_delta(sigma, move, epsilon) for move in moves)
        found = curve.delta(epsilon=epsilon)
        assert truth * (1 - 1e-12) <= found.upper
        assert found.direction == "upper"
        if len(moves) == len(list(squares(square))):
            assert found.upper <= truth * 1.001


# [lemma integer-vectors]
def test_all_moves_of_a_length_by_brute_force():
    for total in range(1, 20):
        brute = (
            {
                tuple(sorted((x for x in d if x), reverse=True))
                for size in range(1, total + 1)
                for d in itertools.combinations_with_replacement(range(5), min(size, total))
                if sum(x * x for x in d) == total
            }
            if total < 9
            else None
        )
        found = list(squares(total))
        assert len(found) == len(set(found))
        assert all(sum(x * x for x in d) == total and sorted(d, reverse=True) == list(d) for d in found)
        if brute is not None:
            assert set(found) == brute


@pytest.mark.parametrize(("sigma", "square"), [(15.0, 2.0), (20.0, 7.5), (30.0, 30.25), (12.0, 99.0), (1000.0, 5.0)])
def test_longer_vectors_are_within_one_percent_of_the_gaussian(sigma, square):
    """A Gaussian is what a long vector's noise comes to; zCDP is 6 to 8 % above it."""
    for count in (1, 100):
        event = acc.discrete_gaussian(std=sigma, sensitivity=math.sqrt(square), count=count)
        found = acc.compose(event).epsilon(delta=1e-6)
        wanted = float(acc.gdp_epsilon(math.sqrt(count * square) / sigma, 1e-6))
        assert wanted <= found.upper <= wanted * 1.01
        assert found.direction == "upper"


def test_moves_that_are_too_long_for_the_noise_fall_back_to_zcdp():
    assert integer_vector_laws(2.0, 9.5) is None
    found = acc.compose(acc.discrete_gaussian(std=2, sensitivity=9.5)).epsilon(delta=1e-6)
    assert found.upper == pytest.approx(float(acc.zcdp_to_epsilon(9.5**2 / 8, 1e-6)), rel=1e-6)


@pytest.mark.parametrize("std", [0.7, 2.9, 3.0, 50.0, 20_000.0])
def test_counts_add_up_however_they_are_written(std):
    once = acc.compose(acc.discrete_gaussian(std=std, sensitivity=2, count=10**6)).epsilon(delta=1e-6)
    parts = acc.compose(*[acc.discrete_gaussian(std=std, sensitivity=2, count=1000)] * 1000).epsilon(delta=1e-6)
    assert once == parts
    mu = 2e3 / std
    if std > 1:  # so many are a Gaussian of the same variance
        assert once.upper == pytest.approx(float(acc.gdp_epsilon(mu, 1e-6)), rel=1e-3)


def test_broad_sums_are_gaussian_with_a_hair_less_variance():
    law, times = DiscreteGaussian(3.0, 1).merge_repeats(10**8)
    assert times == 1
    assert isinstance(law, GaussianLaw)
    assert 1e8 / 9 < law.mu_squared < 1e8 / 9 * (1 + 1e-7)
    below = acc.compose(acc.discrete_gaussian(std=100, count=14_399)).epsilon(delta=1e-6)
    above = acc.compose(acc.discrete_gaussian(std=100, count=14_401)).epsilon(delta=1e-6)
    assert above.upper == pytest.approx(below.upper, rel=2e-4)


# [lemma discrete-gaussian-sum]
def test_the_sum_of_discrete_gaussians_is_one_up_to_its_factor():
    """At σ = 1, where the factor is 1 + 10k·e^{−π²} = 1.001 for two of them."""
    for sigma, times in ((1.0, 2), (1.0, 3), (1.3, 4)):
        x = np.arange(-60, 61)
        one = np.exp(-(x**2) / (2 * sigma**2))
        one /= one.sum()
        total = one
        for _ in range(times - 1):
            total = np.convolve(total, one)
        y = np.arange(len(total)) - len(total) // 2
        other = np.exp(-(y**2) / (2 * times * sigma**2))
        other /= other.sum()
        near = np.abs(y) < 25
        ratios = total[near] / other[near]
        assert ratios.max() <= 1 + 10 * times * math.exp(-(math.pi**2) * sigma**2)
        assert ratios.max() > 1 + 1e-11
