"""The law of what leaves a shuffler against a naive twin that writes out every message, and the sampler against both.

Random tests fail by chance with probability below 10⁻⁸ each.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from privcheck.declare.mechanisms import Noise, ShuffledBits, noise_bits
from privcheck_audits.bounds import count_vectors, log_ratios
from privcheck_audits.engine.scores import MovedGroup
from privcheck_audits.shuffled import view as shuffled
from privcheck_audits.shuffled.view import (
    as_sums,
    compute_shown_probability,
    integers_log_ratio,
    message_trials,
    simulate_law,
)

SMALL = st.sampled_from([(1, 1.0), (1, 3.0), (2, 4.0), (2, 1.0), (3, 6.0), (3, 1.5), (4, 4.0), (4, 2.0)])


def noise(users, threshold, messages="integers"):
    return ShuffledBits(users=users, threshold=Fraction(threshold), messages=messages).at({})


def group(noise, *change):
    return MovedGroup(releases=("a",), noise=noise, change=np.array(change, dtype=np.float64))


def twin(bits, threshold):
    """Returns the law of the multiset of integers: every outcome of every user's noise bits, written out."""
    m, p = noise_bits(len(bits), threshold)
    one = Fraction(p)
    law = {}
    for drawn in itertools.product((0, 1), repeat=m * len(bits)):
        sums = np.array(drawn).reshape(len(bits), m).sum(axis=1) + np.array(bits)
        key = tuple(count_vectors(sums[np.newaxis], m + 2)[0].tolist())
        law[key] = law.get(key, Fraction(0)) + one ** sum(drawn) * (1 - one) ** (len(drawn) - sum(drawn))
    return law


def in_order(bits, threshold):
    """Returns the law of the number of ones, where every bit is a separate message."""
    law = {}
    for counts, probability in twin(bits, threshold).items():
        ones = sum(value * count for value, count in enumerate(counts))
        law[ones,] = law.get((ones,), Fraction(0)) + probability
    return law


def neighbours(users, *, rising):
    """Returns the users' bits on D and on D′: on D′ all are the same."""
    return ([1] + [0] * (users - 1), [0] * users) if rising else ([0] + [1] * (users - 1), [1] * users)


@given(size=SMALL, rising=st.booleans())
def test_the_ratio_of_integer_messages_is_that_of_all_messages_written_out(size, rising):
    users, threshold = size
    on_first, on_second = neighbours(users, rising=rising)
    ratios = log_ratios(twin(on_first, threshold), twin(on_second, threshold))
    counts = np.array(list(ratios))[:, np.newaxis]
    found = integers_log_ratio(counts, np.array([rising]), users, threshold)[:, 0]
    assert found == pytest.approx(np.array(list(ratios.values())), rel=1e-12, abs=1e-12)


@given(size=SMALL, moved=st.integers(1, 3), rising=st.booleans())
def test_the_ratio_of_the_number_of_ones_is_that_of_all_bits_written_out(size, moved, rising):
    users, threshold = size
    moved = min(moved, users)
    more, less = [1] * moved + [0] * (users - moved), [0] * users
    first, second = (in_order(bits, threshold) for bits in ((more, less) if rising else (less, more)))
    ratios = log_ratios(first, second)
    own = moved if rising else 0  # the users' own ones on D
    ones = np.array([key[0] - own for key in ratios])[:, np.newaxis]
    found = shuffled._look_up(noise(users, threshold, "bits"), moved if rising else -moved, ones)
    assert found == pytest.approx(np.array(list(ratios.values())), rel=1e-9, abs=1e-9)


@given(size=SMALL, rising=st.booleans())
def test_the_probability_of_showing_is_the_mass_that_is_impossible_on_the_other_side(size, rising):
    users, threshold = size
    for law, messages in ((twin, "integers"), (in_order, "bits")):
        first, second = (law(bits, threshold) for bits in neighbours(users, rising=rising))
        mass = sum(p for key, p in first.items() if key not in second)
        one = group(noise(users, threshold, messages), 1.0 if rising else -1.0)
        assert compute_shown_probability([one]) == pytest.approx(float(mass), rel=1e-12)
        two = group(one.noise, one.change[0], one.change[0])
        assert compute_shown_probability([two]) == pytest.approx(1 - (1 - float(mass)) ** 2, rel=1e-12)


def test_beyond_the_table_scores_are_computed_one_by_one():
    many = noise(1_000, 1_000, "bits")
    first, table = shuffled._table(many, 2)
    inside = np.array([[first + 5, first + table.size - 5]])
    assert shuffled._look_up(many, 2, inside)[0] == pytest.approx(table[5] + table[-5], rel=1e-12)
    outside = np.array([[first - 1, 500]])
    expected = many.log_ratio(np.array([[first - 501.0], [0.0]]), np.array([2.0])).sum()
    assert shuffled._look_up(many, 2, outside)[0] == pytest.approx(expected, rel=1e-12)


def test_the_table_is_the_closed_form():
    # Bin(N, ½) against its shift by one: ln P(x) − ln P(x + 1) = ln (x + 1)/(N − x)
    one = noise(6, 6_000, "bits")
    x = np.arange(2_500, 3_500)
    expected = np.log((x + 1) / (6_000 - x))
    assert shuffled._look_up(one, 1, x[:, np.newaxis]) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("messages", ["integers", "bits"])
@pytest.mark.parametrize(("users", "threshold"), [(3, 6.0), (4, 2.0)])
def test_what_is_sampled_follows_the_law_that_is_written_out(messages, users, threshold):
    # two counters, one rising and one falling: the scores of both arms against the product of the laws
    drawn = group(noise(users, threshold, messages), 1.0, -1.0)
    law = twin if messages == "integers" else in_order
    expected = [{}, {}]  # by score, on D′ and on D
    laws = [[law(bits, threshold) for bits in neighbours(users, rising=rising)] for rising in (True, False)]
    tables = [log_ratios(first, second) for first, second in laws]
    for keys in itertools.product(*tables):
        ratio = sum(table[key] for table, key in zip(tables, keys, strict=True))
        for arm in (0, 1):
            p = math.prod(float(pair[1 - arm].get(key, 0)) for pair, key in zip(laws, keys, strict=True))
            if p:
                score = ratio if math.isinf(ratio) else round(ratio, 6)
                expected[arm][score] = expected[arm].get(score, 0.0) + p
    found = message_trials([drawn], np.random.default_rng(1), 60_000)
    for arm in (0, 1):
        scores = found.score[found.secret == bool(arm)]
        rounded = np.where(np.isinf(scores), scores, np.round(scores, 6))
        assert set(np.unique(rounded + 0.0)) <= {score + 0.0 for score in expected[arm]}
        for score, p in expected[arm].items():
            seen = int((rounded == score).sum())
            assert binom.cdf(seen, scores.size, p) > 1e-10
            assert binom.sf(seen - 1, scores.size, p) > 1e-10


def test_a_sampler_of_another_law_would_be_seen():
    # the test above can fail: fewer noise bits, same scores
    drawn = group(noise(3, 3.0, "bits"), 1.0)
    found = message_trials([drawn], np.random.default_rng(1), 60_000)
    law = in_order([1, 0, 0], 6.0)
    share = float(law[7,])  # all six noise bits are 1 beside the user's own
    seen = int(np.isposinf(found.score[found.secret]).sum())
    assert min(binom.cdf(seen, found.secret.sum(), share), binom.sf(seen - 1, found.secret.sum(), share)) < 1e-10


def test_the_simulated_law_is_the_exact_one():
    # n = 3, two noise bits each: the error rate of all guesses, and of the most certain tenth, to six sigma
    one = group(noise(3, 6.0), 1.0)
    first, second = (twin(bits, 6.0) for bits in neighbours(3, rising=True))
    wrong = sum(min(float(first.get(key, 0)), float(second.get(key, 0))) for key in first.keys() | second.keys()) / 2
    law = simulate_law([one], np.random.default_rng(2), 40_000)
    assert law.error_rate(1.0) == pytest.approx(wrong, abs=6 * 0.5 / math.sqrt(40_000))
    shown = compute_shown_probability([one]) / 2
    assert law.error_rate(shown * 0.8) == 0


def test_a_sum_of_integer_messages_is_the_sum_of_bits():
    summed = as_sums([group(noise(3, 6.0), 1.0, -1.0)])
    assert [g.noise.name for g in summed] == ["shuffled bits"]
    assert isinstance(summed[0].noise, Noise)
    one = message_trials(summed, np.random.default_rng(3), 5_000)
    other = message_trials([group(noise(3, 6.0, "bits"), 1.0, -1.0)], np.random.default_rng(3), 5_000)
    assert np.array_equal(one.score, other.score)
