"""The shuffled sums draw their declared law, ones and integer messages alike: five percent of τ would be noticed.

A correct sampler is rejected with probability at most 10⁻¹⁰ by each p-value, about fifteen of them; a wrong one is
missed with probability below 10⁻⁹.
"""

import math

import numpy as np
import pytest
from scipy import stats

from privcheck.declare.mechanisms import ShuffledBits, ShuffledBitsNoise, draw_messages, noise_bits
from privcheck.errors import ParameterError
from privcheck.terms.symbols import expression

REJECTED = 1e-10
DRAWS = 100_000


def p_value(counts, expected):
    """Returns the χ² p-value, outcomes of fewer than ten expected draws joined at either end."""
    order = np.argsort(expected)
    small = np.cumsum(expected[order]) < 10
    joined = np.append(counts[order][~small], counts[order][small].sum())
    wanted = np.append(expected[order][~small], expected[order][small].sum())
    keep = wanted > 0
    return stats.chisquare(joined[keep], wanted[keep] * joined[keep].sum() / wanted[keep].sum()).pvalue


@pytest.mark.parametrize(("n", "tau"), [(5, 100.0), (7, 7.0), (300, 60.0), (5145, 500_067.5)])
def test_the_number_of_ones_is_binomial(n, tau):
    m, p = noise_bits(n, tau)
    noise = ShuffledBits(users=n, threshold=str(tau)).at({})
    ones = np.rint(noise.draw(np.random.default_rng(1), (10, DRAWS // 10)).ravel() + n * m * p).astype(int)
    k = np.arange(n * m + 1)
    assert p_value(np.bincount(ones, minlength=k.size), DRAWS * stats.binom.pmf(k, n * m, p)) > REJECTED
    assert abs(ones.std() / noise.scale - 1) < 7 / math.sqrt(2 * DRAWS)  # seven standard errors: 10⁻¹¹


@pytest.mark.parametrize("tau", [95.0, 105.0])
def test_a_threshold_that_is_off_is_rejected(tau):
    noise = ShuffledBitsNoise(scale=1.0, senders=1, threshold=tau)
    ones = np.rint(noise.draw(np.random.default_rng(2), DRAWS) + tau / 2).astype(int)
    k = np.arange(120)
    assert p_value(np.bincount(ones, minlength=k.size), DRAWS * stats.binom.pmf(k, 100, 0.5) + 1e-300) < REJECTED


@pytest.mark.parametrize(("n", "tau", "held"), [(6, 18.0, 0), (6, 18.0, 6), (40, 12.0, 15)])
def test_the_integer_messages_are_the_users_bits_and_their_noise(n, tau, held):
    m, p = noise_bits(n, tau)
    counts = draw_messages(np.random.default_rng(3), np.full((50, DRAWS // 50), held), n, tau)
    assert counts.shape == (50, DRAWS // 50, m + 2)
    assert (counts.sum(axis=-1) == n).all()
    law = stats.binom.pmf(np.arange(m + 1), m, p)
    mean = (n - held) * np.append(law, 0) + held * np.append(0, law)
    drawn = counts.reshape(-1, m + 2)
    error = drawn.std(axis=0) / math.sqrt(DRAWS) + 1e-12
    assert (np.abs(drawn.mean(axis=0) - mean) < 7 * error).all()
    # the sum of the messages is the sum of all bits
    sums = drawn @ np.arange(m + 2) - held
    k = np.arange(n * m + 1)
    assert p_value(np.bincount(sums, minlength=k.size), DRAWS * stats.binom.pmf(k, n * m, p)) > REJECTED


def test_the_likelihood_ratio_and_the_distribution_function_are_those_of_the_law():
    n, tau = 8, 20.0
    m, p = noise_bits(n, tau)
    noise = ShuffledBits(users=n, threshold=20).at({})
    k = np.arange(n * m + 1)
    x = (k - n * m * p)[:, np.newaxis]
    law = stats.binom(n * m, p)
    with np.errstate(divide="ignore"):
        wanted = law.logpmf(k) - np.log(np.append(law.pmf(k)[1:], 0.0))
    assert np.allclose(noise.log_ratio(x, np.array([1.0])), wanted)
    assert np.allclose(noise.cdf(x[:, 0]), law.cdf(k))


def test_more_users_who_hold_a_one_than_users_are_refused():
    with pytest.raises(ParameterError, match="from 0 to 4"):
        draw_messages(np.random.default_rng(4), np.array([5]), 4, 10.0)


def test_users_that_are_no_whole_number_are_refused():
    with pytest.raises(ParameterError, match="whole number of users"):
        ShuffledBits(users=expression("1/2"), threshold=10).at({})
