"""Binary-tree counters against the naive tree of P-sums, exactly: which draws are in which prefix, and how many hold a
user."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.declare.mechanisms import GaussianNoise, LaplaceNoise, Noiseless, SymmetricGaussianNoise
from privcheck.declare.schedules import Tree
from privcheck.errors import ParameterError
from privcheck.runtime.noise import TreeCounter
from twins.streams import prefix_sums, psums_holding

LAWS = [
    LaplaceNoise(scale=2.0),
    GaussianNoise(scale=3.0),
    SymmetricGaussianNoise(scale=3.0, kind="upper"),
    SymmetricGaussianNoise(scale=3.0, kind="goe"),
]


class Units:
    """Draws the unit vectors in turn, so that a released noise says which draws it is the sum of."""

    symmetric = ""

    def __init__(self):
        self.drawn = 0

    def draw(self, rng, shape):
        unit = np.zeros(shape)
        unit[self.drawn] = 1.0
        self.drawn += 1
        return unit


def naive_cover(t):
    """[1, t] as P-sums: the largest power of two that fits, from the left, again and again."""
    nodes, start = [], 0
    while start < t:
        size = 1
        while start + 2 * size <= t:
            size *= 2
        nodes.append((start + 1, start + size))
        start += size
    return nodes


def naive_prefix_sums(increments, noise, rng):
    """The naive twin: every node of every prefix has its noise, drawn when it is first needed, and is kept for ever."""
    kept, released = {}, []
    for t in range(1, len(increments) + 1):
        total = np.zeros(increments.shape[1:])
        for first, last in naive_cover(t):
            if (first, last) not in kept:
                kept[first, last] = increments[first - 1 : last].sum(axis=0) + noise.draw(rng, increments.shape[1:])
            total += kept[first, last]
        released.append(total)
    return np.array(released)


@pytest.mark.parametrize("leaves", range(1, 65))
def test_covariances_are_the_numbers_of_shared_nodes(leaves):
    noises = prefix_sums(np.zeros((leaves, leaves)), Units(), np.random.default_rng(0))
    covers = [set(naive_cover(t)) for t in range(1, leaves + 1)]
    shared = [[len(a & b) for b in covers] for a in covers]
    assert (noises @ noises.T == np.array(shared)).all()
    assert set(np.unique(noises)) <= {0.0, 1.0}


@pytest.mark.parametrize("leaves", range(1, 65))
def test_every_leaf_is_in_as_many_nodes_as_the_schedule_charges(leaves):
    """The P-sums that any prefix uses, leaf by leaf; the declared figure is the first leaf's and the largest."""
    used = set().union(*(naive_cover(t) for t in range(1, leaves + 1)))
    counts = []
    for user in range(1, leaves + 1):
        holding = sorted(((a, b) for a, b in used if a <= user <= b), key=lambda node: node[1] - node[0])
        assert psums_holding(user, leaves) == tuple(holding)
        counts.append(len(holding))
    declared = Tree(leaves=leaves).times.rational()
    assert counts[0] == max(counts) == declared == leaves.bit_length()


@pytest.mark.parametrize("leaves", [1, 2, 3, 7, 8, 33])
@pytest.mark.parametrize("noise", LAWS, ids=lambda n: f"{n.name} {n.symmetric}")
def test_the_same_draws_give_the_naive_tree(noise, leaves):
    """Both draw a P-sum's noise when it closes, so the same generator gives the same noises: equal, not only in law."""
    rng = np.random.default_rng(leaves)
    x = rng.uniform(-1, 1, (leaves, 5, 4, 3))  # users, replicates, steps, features
    data = x[..., :, None] * x[..., None, :]
    fast = prefix_sums(data, noise, np.random.default_rng(1))
    slow = naive_prefix_sums(data, noise, np.random.default_rng(1))
    assert np.allclose(fast, slow, rtol=0, atol=1e-11)
    if noise.symmetric:
        assert np.allclose(fast, np.swapaxes(fast, -1, -2), rtol=0, atol=1e-12)


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_without_noise_the_sums_are_exact(leaves, seed):
    data = np.random.default_rng(seed).integers(-5, 6, (leaves, 2)).astype(float)
    released = prefix_sums(data, Noiseless(), np.random.default_rng(0))
    assert (released == np.cumsum(data, axis=0)).all()


@pytest.mark.parametrize("noise", LAWS, ids=lambda n: f"{n.name} {n.symmetric}")
def test_sampled_variances(noise):
    """40 000 replicates of T = 6: second moments within 7 standard errors, error below 1e-9 for 4 · 4 · 21 figures."""
    count, diagonal = 40_000, {"goe": 2.0}.get(noise.symmetric, 1.0)
    released = prefix_sums(np.zeros((6, count, 2, 2)), noise, np.random.default_rng(5))
    variance = noise.scale**2 * (2 if noise.name == "laplace" else 1)
    fourth = 6 if noise.name == "laplace" else 3  # kurtosis; of sums at most that
    for s in range(1, 7):
        for t in range(s, 7):
            shared = len(set(naive_cover(s)) & set(naive_cover(t)))
            for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
                v = variance * (diagonal if i == j else 1.0)
                found = float(np.mean(released[s - 1, :, i, j] * released[t - 1, :, i, j]))
                allowed = 7 * v * math.sqrt(fourth * s.bit_count() * t.bit_count() / count)
                assert abs(found - shared * v) < allowed


def test_only_live_noise_is_kept():
    counter, rng = TreeCounter((3,), LAWS[1], leaves=1000), np.random.default_rng(0)
    for t in range(1, 1001):
        counter.release(np.zeros(3), rng)
        assert sum(kept is not None for kept in counter._live) == t.bit_count() <= 10
    with pytest.raises(ParameterError, match="declared for 1000 users"):
        counter.release(np.zeros(3), rng)


def test_a_released_array_is_the_callers_own():
    counter, rng = TreeCounter((2,), Noiseless(), leaves=3), np.random.default_rng(0)
    counter.release(np.ones(2), rng)[:] = 99.0
    assert counter.release(np.ones(2), rng).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("increment", "message"),
    [
        (np.zeros((2, 3)), "shape"),
        (np.array([[0.0, math.nan], [math.nan, 0.0]]), "finite"),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), "symmetric"),
    ],
)
def test_bad_contributions_are_refused_before_anything_is_drawn(increment, message):
    counter, rng = TreeCounter((2, 2), LAWS[2], leaves=3), np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(ParameterError, match=message):
        counter.release(increment, rng)
    assert counter.users == 0
    assert rng.bit_generator.state == before


def test_bad_counters_are_refused():
    with pytest.raises(ParameterError, match="at least one user"):
        TreeCounter((2,), LAWS[0], leaves=0)
    with pytest.raises(ParameterError, match="square"):
        TreeCounter((2, 3), LAWS[3], leaves=2)
