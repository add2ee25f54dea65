"""V-free tables: computed as loops say, and no pair of users moves them further than F, which some pair attains."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import ParameterError, TrajectoryError
from privcheck_algorithms.linear.tables import LinearSteps, LinearTables, least_product, refuse_angles, simplex, unpack

REPLACED = ReplaceOne("trajectory")
WEIGHTS = [
    ("1/2", 1, "7/5"),
    (1, "1/10", "1/10"),
    ("1/20", 2, 1),
    ("3/10", 1, None),
    (2, 1, 3),
    (None, 1, None),
    (None, 1, "1/4"),
]


def naive_vector(phi, following, reward, *, states, weights):
    """One user's vector at one step, entry by entry, from a simplex of its own: e(s) − 1/S in S dimensions."""
    g, b, w = weights
    vector = [math.sqrt(g) * x * y for x in phi for y in phi]
    vector += [math.sqrt(b) * x * ((s == following) - 1 / states) for x in phi for s in range(states)]
    return np.array(vector + [math.sqrt(w) * x * (reward - 0.5) for x in phi])


def squared(first, second, **public):
    return float(np.square(naive_vector(*first, **public) - naive_vector(*second, **public)).sum())


def floats(weights):
    return tuple(0.0 if w is None else float(Fraction(w)) for w in weights)


def tables(weights, *, states, steps=1, dimension=2, least=-1):
    g, b, w = weights
    return LinearTables(steps, dimension, states, gram=g, successors=b, rewards=w, least=least)


def furthest_on_a_grid(weights, *, states, least):
    """The largest squared distance over lengths, angles, successors and rewards of two users, in three dimensions."""
    lengths, most = (0.0, 0.5, 0.8, 1.0), 0.0
    cosines = [c for c in np.linspace(-1, 1, 201) if c >= least - 1e-12]
    for t, p, c in itertools.product(lengths, lengths, cosines):
        if (t, p) != (1.0, 1.0) and round(c * 100) % 10:
            continue  # few angles of short features
        x, y = t * np.array([1.0, 0, 0]), p * np.array([c, math.sqrt(1 - c * c), 0])
        for (s, r), (z, q) in itertools.product(itertools.product(range(min(states, 2)), (0, 0.5, 1)), repeat=2):
            moved = squared((x, s, r), (y, z, q), states=states, weights=weights)
            most = max(most, moved)
    return most


# [lemma unit-length] [lemma table-move]
@pytest.mark.parametrize("least", [-1, "-1/4", 0])
@pytest.mark.parametrize("states", [1, 2, 5])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_no_pair_of_users_on_a_grid_is_further_apart_than_the_bound_and_one_is_as_far(weights, states, least):
    bound = tables(weights, states=states, least=least).moved.number({})
    found = furthest_on_a_grid(floats(weights), states=states, least=float(Fraction(least)))
    assert bound * (1 - 1e-3) <= found <= bound * (1 + 1e-12)


# [lemma unit-length] [lemma table-move]
def test_random_pairs_are_nearer_than_the_bound_and_the_witness_is_as_far():
    rng = np.random.default_rng(0)
    for _ in range(300):
        states, d = int(rng.integers(2, 7)), int(rng.integers(2, 6))
        weights = tuple(Fraction(int(x), 100) for x in rng.integers(1, 300, 3))
        least = Fraction(-int(rng.integers(0, 101)), 100)
        statistic = tables(weights, states=states, dimension=d, least=least)
        bound = statistic.moved.number({})
        assert max(statistic.difference(pair).l2_squared for pair in statistic.candidates({})) >= bound * (1 - 1e-6)
        public = {"states": states, "weights": floats(weights)}
        for _ in range(20):
            x, y = rng.normal(size=(2, d)) * rng.choice([1.0, 0.1], (2, d))
            x, y = (v / np.linalg.norm(v) * rng.choice([1, rng.random()]) for v in (x, y))
            if x @ y < least:
                continue
            users = [(v, int(rng.integers(states)), float(rng.choice([0, 1, rng.random()]))) for v in (x, y)]
            assert squared(*users, **public) <= bound * (1 + 1e-12)


def test_candidates_keep_the_least_inner_product_and_are_of_unit_length():
    for least in (Fraction(-1), Fraction(-1, 3), Fraction(0)):
        statistic = tables((1, 1, 1), states=3, dimension=4, least=least)
        for first, second in statistic.candidates({}):
            assert float(first.phi[0, 0] @ second.phi[0, 0]) >= float(least)
            assert max(np.linalg.norm(user.phi[0, 0]) for user in (first, second)) <= 1


def test_vectors_are_what_loops_say_and_unpack_to_the_sums():
    rng = np.random.default_rng(1)
    cases = [(2, 3, ("1/2", "5/4", "7/10")), (4, 2, ("1/2", "5/4", None)), (1, 2, (1, 1, 2)), (3, 2, (None, 2, 1))]
    for states, d, exact in cases:
        weights, users = floats(exact), 6
        phi = rng.normal(size=(users, 3, d))
        phi /= np.linalg.norm(phi, axis=2, keepdims=True) * 1.01
        data = LinearSteps(
            phi=phi, following=rng.integers(0, states, (users, 3)), rewards=rng.random((users, 3)), states=states,
            weights=weights,
        )  # fmt: skip
        statistic = tables(exact, states=states, steps=3, dimension=d)
        whole = statistic.compute(data)
        assert whole.shape == statistic.shape({})
        for step in range(3):
            np.testing.assert_array_equal(statistic.compute(data, step=step), whole[step])
        found = unpack(whole, dimension=d, states=states, weights=weights)
        for step in range(3):
            gram = sum(np.outer(x, x) for x in phi[:, step])
            if exact[0] is not None:
                np.testing.assert_allclose(found.gram[step], gram, rtol=1e-12, atol=1e-12)
            reached = sum(
                np.outer(x, np.eye(states)[s] - 1 / states)
                for x, s in zip(phi[:, step], data.following[:, step], strict=True)
            )
            np.testing.assert_allclose(found.successors[step] @ simplex(states).T, reached, rtol=1e-12, atol=1e-12)
            if exact[2] is not None:
                gains = sum(x * (r - 0.5) for x, r in zip(phi[:, step], data.rewards[:, step], strict=True))
                np.testing.assert_allclose(found.rewards[step], gains, rtol=1e-12, atol=1e-12)
        assert (found.rewards is None, found.gram is None) == (exact[2] is None, exact[0] is None)


def test_a_difference_is_as_long_as_the_naive_one():
    rng = np.random.default_rng(2)
    for _ in range(50):
        states, d = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        weights = tuple(float(x) for x in rng.random(3) + 0.1)
        statistic = tables(tuple(Fraction(x) for x in weights), states=states, steps=2, dimension=d)
        pair = tuple(replace(statistic.record({}, rng), weights=weights) for _ in range(2))
        naive = sum(
            squared(*((u.phi[0, h], u.following[0, h], u.rewards[0, h]) for u in pair), states=states, weights=weights)
            for h in range(2)
        )
        assert statistic.difference(pair).l2_squared == pytest.approx(naive, rel=1e-9, abs=1e-12)
        nobody = (np.zeros(d), 0, 0.0)
        one = [(pair[0].phi[0, h], pair[0].following[0, h], pair[0].rewards[0, h]) for h in range(2)]
        alone = sum(squared(user, nobody, states=states, weights=weights) for user in one)
        assert statistic.difference((pair[0], None)).l2_squared == pytest.approx(alone, rel=1e-9)
        assert alone <= statistic.sensitivity(AddRemoveOne("trajectory")).l2.number({}) ** 2 * (1 + 1e-12)


def test_steps_add_up_and_so_do_trajectories():
    one, several = tables((1, 1, 1), states=3, steps=1), tables((1, 1, 1), states=3, steps=9)
    assert several.sensitivity(REPLACED).l2.number({}) == pytest.approx(3 * one.sensitivity(REPLACED).l2.number({}))
    of_two = one.sensitivity(ReplaceOne("user", trajectories=2))
    assert of_two.l2.number({}) == pytest.approx(2 * one.sensitivity(REPLACED).l2.number({}))
    assert one.sensitivity(ZeroOut()).l2.number({}) ** 2 == pytest.approx(1 + 2 / 3 + 1 / 4)
    bounds = several.sensitivity(REPLACED)
    assert bounds.linf.number({}) <= bounds.l2.number({}) <= bounds.l1.number({})


def test_a_simplex_is_regular_and_about_0():
    for states in range(1, 9):
        x = simplex(states)
        np.testing.assert_allclose(x @ x.T, np.eye(states) - 1 / states, atol=1e-12)
        np.testing.assert_allclose(x.T @ x, np.eye(states - 1), atol=1e-12)


def test_public_features_say_how_far_they_are_apart():
    phi = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.6, 0.8], [0.0, 0.0]]])
    assert least_product(phi) == 0.0
    refuse_angles(phi, 0.0)
    phi = np.concatenate([phi, [[[-0.6, 0.8], [0.0, 0.0]]]])
    assert -0.6 - 1e-9 < least_product(phi) <= -0.6
    refuse_angles(phi, -0.6)
    with pytest.raises(ParameterError, match=r"inner product of -0.6.*declare a κ of no more than that"):
        refuse_angles(phi, -0.5)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"phi": np.full((1, 2, 2), 0.8)}, "norm of phi is 1.13.*divide"),
        ({"phi": np.full((1, 2, 2), np.nan)}, "norm of phi is nan"),
        ({"following": np.array([[0, 3]])}, "state reached is 3 for user 0 at step 2"),
        ({"rewards": np.array([[0.0, 1.5]])}, "reward is 1.5"),
        ({"rewards": np.zeros((1, 3))}, "expected phi"),
        ({"weights": (1.0, -1.0, 0.0)}, "three squared weights"),
    ],
)
def test_data_beyond_the_bounds_are_refused(changed, says):
    fields = {"phi": np.full((1, 2, 2), 0.5), "following": np.zeros((1, 2), int), "rewards": np.zeros((1, 2))}
    with pytest.raises(TrajectoryError, match=says):
        LinearSteps(**{**fields, "states": 3, "weights": (1.0, 1.0, 1.0), **changed})
