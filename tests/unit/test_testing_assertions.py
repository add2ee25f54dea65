"""Assertions and strategies that other people's tests use.

Correct mechanisms are audited at confidence 1 − 10⁻⁹.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutants import rescaled_noise, short_sensitivity
from privcheck import PureDP, audit_mechanism
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, ZeroOut
from privcheck.errors import ParameterError
from privcheck.testing import (
    assert_declaration,
    assert_private,
    assertions,
    neighbouring_datasets,
    neighbouring_records,
)
from privcheck.testing.session import ALLOWANCE, Allowance
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
    with pytest.raises(AssertionError, match="further than its stated sensitivity"):
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


@pytest.fixture
def asked(monkeypatch):
    """Audits that are not made: what each was asked for."""
    found = []
    audit = audit_mechanism(laplace, PureDP(9), neighbours=[(0, 1)], trials=100)

    def record(mechanism, claim, **more):
        found.append(more)
        lower = float(more["neighbours"][0][1] == 7)
        return replace(audit, lower=lower, verdict="violation" if lower else "consistent", **_given(more))

    monkeypatch.setattr(assertions, "audit_mechanism", record)
    return found


def _given(more):
    return {name: more[name] for name in ("neighbours", "trials", "confidence", "seed")}


@pytest.mark.parametrize("audits", [1, 3])
def test_examples_of_a_test_share_what_its_marker_has(asked, audits):
    allowed = Allowance(trials=100, confidence=1 - 1e-3, seed=5, audits=audits)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.integers(8, 10_000))
    def check(other):
        before = len(asked)
        for _ in range(2):
            assert_private(laplace, PureDP(1), neighbours=[(0, other)])
        assert len(asked) - before <= 1  # an audit that was made is known

    token = ALLOWANCE.set(allowed)
    try:
        check()
    finally:
        ALLOWANCE.reset(token)
    shares = [1 - each["confidence"] for each in asked]
    assert len(shares) > 30
    assert sum(shares) <= 1e-3 * audits
    assert shares[0] == pytest.approx(1e-3 * audits / 2)
    assert len({each["seed"] for each in asked}) == len(asked)
    assert len(allowed.done) == 1
    assert allowed.done[0].confidence == pytest.approx(1 - 1e-3 * audits)


def test_what_failed_fails_again_and_is_reported_with_its_seed(asked):
    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(st.integers(0, 20))
    def check(other):
        assert_private(laplace, PureDP(1), neighbours=[(0, other)], confidence=0.9)

    token = ALLOWANCE.set(Allowance(trials=100, confidence=0.99, seed=0, audits=None))
    try:
        with pytest.raises(AssertionError, match=r"neighbours: \(0, 7\)") as caught:
            check()
    finally:
        ALLOWANCE.reset(token)
    (failed,) = (each for each in asked if each["neighbours"][0][1] == 7)
    assert f"seed={failed['seed']}," in str(caught.value)
    assert f"confidence={failed['confidence']!r}," in str(caught.value)
    assert sum(1 - each["confidence"] for each in asked) <= 0.1


def test_examples_need_a_test_without_deadline_and_content_that_can_be_seen():
    @settings(max_examples=1, deadline=200)
    @given(st.just(1))
    def hasty(other):
        assert_private(laplace, PureDP(1), neighbours=[(0, other)])

    @settings(max_examples=1, deadline=None)
    @given(st.just(1))
    def opaque(other):
        assert_private(laplace, PureDP(1), neighbours=[(object(), other)])

    with pytest.raises(ParameterError, match="deadline=None"):
        hasty()
    with pytest.raises(ParameterError, match="is not visible"):
        opaque()
