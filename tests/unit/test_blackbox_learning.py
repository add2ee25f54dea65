"""How scores of black boxes are learned: bins, patterns that are worth a key, and what is held out of many runs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from privcheck_audits.blackbox import scores
from privcheck_audits.blackbox.scores import _bins, learn


@given(
    arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0])),
    arrays(np.float64, st.integers(1, 4), elements=st.sampled_from([-1.0, 0.0, 1.0, 2.0]), unique=True),
)
def test_a_value_on_a_cut_has_a_bin_to_itself(values, cuts):
    cut = np.sort(cuts)
    wanted = np.searchsorted(cut, values, "left") + np.searchsorted(cut, values, "right")
    assert (_bins(values, cut) == wanted).all()


def runs_of(mechanism, number, seed=0):
    rng = np.random.default_rng(seed)
    secret = rng.random(number) < 0.5
    return mechanism(secret, rng)[:, None], secret


def laplace(secret, rng):
    return secret + rng.laplace(size=secret.size)


def depends(secret, rng):
    """Returns normal noise whose fraction says the bit, the other way round beyond ±1: nothing that is monotone."""
    drawn = rng.normal(size=secret.size)
    low = secret ^ (np.abs(drawn) > 1)
    return np.floor(drawn) + rng.random(secret.size) / 2 + np.where(low, 0.0, 0.5)


@pytest.mark.parametrize(("mechanism", "grown"), [(laplace, False), (depends, True)])
def test_trees_of_single_numbers_stay_where_they_say_more_than_the_others(mechanism, grown):
    rows, secret = runs_of(mechanism, 20_000)
    found = learn(rows, secret, np.random.default_rng(1))
    assert ("trees" in found.scores.names) is grown
    assert found.held_out.shape == (len(found.scores.names), 10_000)
    assert found.secret.shape == (10_000,)
    fresh, known = runs_of(mechanism, 4_000, seed=2)
    said = found.scores(fresh)
    assert said.shape == (len(found.scores.names), 4_000)
    # held out means: as good on runs that were not seen; both are means of thousands, 5 standard errors apart at most
    losses = [
        np.logaddexp(0, np.where(of, -values, values))
        for values, of in ((said[-1], known), (found.held_out[-1], found.secret))
    ]
    error = np.sqrt(sum(loss.var() / loss.size for loss in losses))
    assert abs(losses[0].mean() - losses[1].mean()) < 5 * error


def test_few_runs_are_all_held_out_in_turn():
    rows, secret = runs_of(laplace, 600)
    found = learn(rows, secret, np.random.default_rng(1))
    assert np.array_equal(found.secret, secret)
    assert found.held_out.shape == (len(found.scores.names), 600)


def test_orders_are_looked_up_only_where_one_came_back():
    rng = np.random.default_rng(3)
    assert scores._repeated(rng.normal(size=(500, 1))) == [0, 1]
    assert scores._repeated(rng.normal(size=(500, 40))) == [0, 1]
    assert scores._repeated(rng.normal(size=(500, 3))) == [0, 1, 3]  # six orders
    assert scores._repeated(rng.integers(0, 3, (500, 4)).astype(np.float64)) == [0, 1, 2, 3]
