"""Messages behind a shuffler against brute force: every multiset enumerated with fractions at tiny n and m.

Upper bounds must never be below the truth, lower bounds never above it, for every value of the other users' bits.
"""

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.events.shuffled import changed_messages, moved_counters
from privcheck.accounting.shuffle.sums import binomial_window, counter_law, fewest_hidden, message_law
from privcheck.commands.settings import resolve_setting
from privcheck.declare.mechanisms import noise_bits
from privcheck.declare.statistics import SparseDifference
from privcheck.verification.shuffled_loss import sum_epsilon
from privcheck.verification.witness import find_witness, keep_undominated

EPSILONS = (0.0, 0.1, 0.3, 0.7, 1.5)


@functools.cache
def multiset(bits, m, p):
    """Returns the law of the integer messages of users who hold these bits, as a sorted tuple."""
    noise = [math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1)]
    found = {(): Fraction(1)}
    for bit in bits:
        step = Counter()
        for messages, mass in found.items():
            for y, weight in enumerate(noise):
                step[tuple(sorted((*messages, bit + y)))] += mass * weight
        found = dict(step)
    return found


def ones(bits, m, p):
    """Returns the law of the number of ones among all bits sent apart."""
    trials = len(bits) * m
    return {sum(bits) + k: math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)}


def product(*laws):
    return {
        tuple(x for x, _ in chosen): math.prod(w for _, w in chosen)
        for chosen in itertools.product(*(law.items() for law in laws))
    }


def delta(p, q, epsilon):
    return float(sum(max(Fraction(0), w - Fraction(math.exp(epsilon)) * q.get(x, 0)) for x, w in p.items()))


# n, τ: fair bits, rare ones (n > τ), m = 1 and more
SHAPES = [(1, 1), (1, 3), (2, 4), (3, 3), (3, 6), (4, 2), (5, 2), (6, 1), (5, 5)]


# [lemma thinned-bits]
@pytest.mark.parametrize(("n", "tau"), SHAPES)
@pytest.mark.parametrize(("rises", "falls"), [(1, 0), (0, 1), (1, 1), (2, 1), (2, 0)])
def test_the_accountant_never_is_below_any_mixture_of_rising_and_falling_counters(n, tau, rises, falls):
    m, p = noise_bits(n, float(tau))
    p = Fraction(p)
    zero, one = ones((0,) * n, m, p), ones((1,) + (0,) * (n - 1), m, p)
    above = product(*[one] * rises, *[zero] * falls)
    below = product(*[zero] * rises, *[one] * falls)
    bits = noise_bits(n, float(tau))
    curve = acc.compose(moved_counters(users=n, bits=bits, threshold=float(tau), moved=rises + falls))
    for epsilon in EPSILONS:
        true = delta(above, below, epsilon)
        found = curve.delta(epsilon=epsilon)
        assert found.upper >= true * (1 - 1e-12)
        if p == Fraction(1, 2):  # fair bits: the same for every mixture, exactly
            assert found.value == pytest.approx(true, rel=1e-9, abs=1e-15)


# [lemma counters-together]
@pytest.mark.parametrize(("n", "tau"), SHAPES)
@pytest.mark.parametrize(("rises", "falls"), [(1, 0), (1, 1), (2, 1)])
def test_the_witness_never_is_above_the_truth(n, tau, rises, falls):
    m, p = noise_bits(n, float(tau))
    zero, one = ones((0,) * n, m, Fraction(p)), ones((1,) + (0,) * (n - 1), m, Fraction(p))
    above = product(*[one] * rises, *[zero] * falls)
    below = product(*[zero] * rises, *[one] * falls)
    for at in (1e-6, 0.02, 0.1, 0.3, 0.6):
        if p == 0.5:
            found = sum_epsilon(n * m * (rises + falls), p, rises + falls, at)
        else:
            found = max(sum_epsilon(n * m * rises, p, rises, at), sum_epsilon(n * m * max(falls, 1), p, -falls, at))
        if math.isinf(found):
            assert float(sum(w for x, w in above.items() if x not in below)) > at * (1 - 1e-9)
        elif found > 0:
            assert delta(above, below, found) >= at * (1 - 1e-9)


# [lemma integer-messages] [lemma lattice-ratio]
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 3), (2, 2), (3, 2), (4, 2), (5, 1), (4, 3)])
def test_integer_messages_are_dominated_whatever_the_others_hold(n, m):
    half = Fraction(1, 2)
    law = acc.compose(changed_messages(users=n, messages=m, moved=1))
    for others in itertools.combinations_with_replacement((0, 1), n - 1):
        one, zero = multiset((1, *others), m, half), multiset((0, *others), m, half)
        for epsilon in EPSILONS:
            upper = law.delta(epsilon=epsilon).upper
            assert upper >= max(delta(one, zero, epsilon), delta(zero, one, epsilon)) * (1 - 1e-9)


# [lemma integer-messages] [lemma lattice-ratio]
def test_two_counters_of_integer_messages_are_dominated_for_all_others():
    n, m, half = 3, 1, Fraction(1, 2)
    law = acc.compose(changed_messages(users=n, messages=m, moved=2))
    for first, second in itertools.product(itertools.combinations_with_replacement((0, 1), n - 1), repeat=2):
        for a, b in itertools.product((0, 1), repeat=2):
            p = product(multiset((a, *first), m, half), multiset((b, *second), m, half))
            q = product(multiset((1 - a, *first), m, half), multiset((1 - b, *second), m, half))
            for epsilon in EPSILONS:
                assert law.delta(epsilon=epsilon).upper >= delta(p, q, epsilon) * (1 - 1e-9)


# [lemma message-shown]
@pytest.mark.parametrize(("n", "m"), [(2, 1), (3, 2), (4, 3)])
def test_what_gives_a_user_away_is_what_the_other_dataset_cannot_send(n, m):
    """A message m + 1 among bits 0 has probability 2^−m, and no values of the others' bits make it more."""
    half, most = Fraction(1, 2), Fraction(0)
    for others in itertools.combinations_with_replacement((0, 1), n - 1):
        one, zero = multiset((1, *others), m, half), multiset((0, *others), m, half)
        most = max(
            most, sum(w for x, w in one.items() if x not in zero), sum(w for x, w in zero.items() if x not in one)
        )
    assert most == half**m


# [lemma fewest-hidden]
def test_fewer_batches_dominate_all_of_them():
    batches = [(2**b, -(-500_067 // 2**b)) for b in range(2, 13)]
    kept = fewest_hidden(batches)
    assert len(kept) < len(batches)
    at = np.array([0.0, 0.01, 0.03])
    bound = np.maximum.reduce([message_law(*one).atoms("remove").log_deltas(at) for one in kept])
    for one in (batches[0], batches[5], batches[-1]):
        assert (message_law(*one).atoms("remove").log_deltas(at) <= bound + 1e-3).all()


@pytest.mark.parametrize(("trials", "p"), [(7, 0.5), (1000, 0.5), (40_000, 0.25), (3_000_000, 0.001)])
def test_the_window_is_the_binomial(trials, p):
    from scipy import stats

    first, logs, outside = binomial_window(trials, p)
    x = first + np.arange(len(logs))
    assert np.allclose(logs, stats.binom.logpmf(x, trials, p), rtol=1e-9, atol=1e-8)
    rest = stats.binom.cdf(first - 1, trials, p) + stats.binom.sf(x[-1], trials, p)
    assert rest <= outside or rest < 1e-50


def test_a_coarse_law_is_hardly_above_the_exact_one():
    exact = acc.compose(acc.shuffled_bits(users=200_000, probability=0.5)).epsilon(delta=1e-6)
    assert len(counter_law(200_000).atoms("remove").losses) < 2_100
    many = moved_counters(users=2, bits=noise_bits(2, 200_000.0), threshold=200_000.0, moved=1)
    coarse = acc.compose(many).epsilon(delta=1e-6)
    assert exact.value <= coarse.upper <= exact.value * 1.001


# [lemma fewer-counters]
@pytest.mark.parametrize("name", ["shuffled-linear-bandit", "sdp-pe-calibrated"])
def test_pairs_that_change_fewer_counters_lose_no_more(name, monkeypatch):
    setting = resolve_setting(name, {})
    few = find_witness(setting.declared, setting.values)
    monkeypatch.setattr("privcheck.verification.witness.keep_undominated", lambda _, changed: list(changed))
    every = find_witness(setting.declared, setting.values)
    assert few is not None
    assert every is not None
    assert few.loss == every.loss > 0


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=8))
def test_a_pair_is_left_out_where_another_changes_as_much_everywhere(counts):
    def moved(up, down):
        return SparseDifference(cells=np.arange(up + down), change=np.array([1.0] * up + [-1.0] * down))

    two = [SimpleNamespace(name=name, mechanism=SimpleNamespace(law=SimpleNamespace(shuffled=True))) for name in "ab"]
    changed = [(i, {"a": moved(*c[:2]), "b": moved(*c[2:])}) for i, c in enumerate(counts)]
    kept = [i for i, _ in keep_undominated(two, changed)]
    for i, one in enumerate(counts):
        above = [j for j, other in enumerate(counts) if all(a >= b for a, b in zip(other, one, strict=True))]
        alone = all(counts[j] == one for j in above) and min(above) == i
        assert (i in kept) == alone
    louder = {"a": SparseDifference(cells=np.arange(1), change=np.array([2.0])), "b": moved(0, 0)}
    assert len(keep_undominated(two, [*changed, (9, louder)])) == len(counts) + 1  # the argument is of single bits
