"""Assertions and strategies that other people's tests use.

Correct mechanisms are audited at confidence 1 − 10⁻⁹.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from mutants import rescaled_noise, short_sensitivity
from privcheck import PureDP
from privcheck.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.testing import assert_declaration, assert_private, neighbouring_datasets, neighbouring_records
from privcheck_algorithms.dp_apvi import GAUSSIAN, LAPLACE

SURE = 1 - 1e-9
SMALL = {"H": 2, "S": 2, "A": 2}


def laplace(given, runs, rng):
    return given + rng.laplace(0, 1, runs)


def test_a_refuted_claim_is_an_assertion_error_with_bound_pair_and_seed():
    with pytest.raises(AssertionError, match=r"violation: .*ε ≥ .*seed 4[\s\S]*neighbours: \(0, 1\)"):
        assert_private(laplace, PureDP("1/10"), neighbours=[(0, 0), (0, 1)], trials=500, seed=4)
    found = assert_private(laplace, PureDP(1), neighbours=[(0, 1)], trials=500, confidence=SURE)
    assert found.verdict == "consistent"


@pytest.mark.parametrize("algorithm", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_a_true_declaration_passes(algorithm):
    found = assert_declaration(algorithm.declare({}), SMALL, trials=500, confidence=SURE)
    assert found.verdict == "holds"


def test_mutants_of_a_declaration_do_not():
    honest = LAPLACE.declare({})
    with pytest.raises(AssertionError, match="noise: "):
        assert_declaration(rescaled_noise(honest, 0.5), SMALL, trials=500)
    with pytest.raises(AssertionError, match="further than its own sensitivity"):
        assert_declaration(short_sensitivity(honest, "1/2"), SMALL, trials=500, views=("lockstep",))


@settings(max_examples=30)
@given(neighbouring_datasets(ReplaceOne(initial="fixed"), 2, 3, 2, others=2))
def test_replacing_changes_the_first_user_alone(pair):
    first, other = pair
    assert first.users == other.users == 3
    assert (first.states[1:] == other.states[1:]).all()
    assert (first.rewards[1:] == other.rewards[1:]).all()
    assert first.states[0, 0] == other.states[0, 0]


@pytest.mark.parametrize("relation", [AddRemoveOne(), ZeroOut()])
def test_the_others_stay_when_one_leaves(relation):
    @settings(max_examples=20)
    @given(neighbouring_datasets(relation, 2, 3, 2, others=2))
    def check(pair):
        assert sorted(data.users for data in pair) == [2, 3]

    check()


@settings(max_examples=30)
@given(neighbouring_records(size=4, low=-1.0, high=2.0, columns=3))
def test_neighbouring_records_differ_in_one_at_most(pair):
    first, other = pair
    assert first.shape == other.shape == (4, 3)
    assert (first != other).any(axis=1).sum() <= 1
    assert np.isfinite(first).all()
    assert min(first.min(), other.min()) >= -1
    assert max(first.max(), other.max()) <= 2
