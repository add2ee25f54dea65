"""The pieces of the black-box audit against slow twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from privcheck_audits.blackbox.anytime import weigh
from privcheck_audits.blackbox.features import feature_map, separation
from privcheck_audits.blackbox.floats import fingerprint
from privcheck_audits.blackbox.scores import grid_steps, on_grid, own_step, patterns, row_keys
from privcheck_audits.blackbox.verdict import (
    Attempt,
    ClaimedLoss,
    _divergence,
    _event_mu,
    _event_rho,
    attempts,
    best,
    edges,
)
from privcheck_audits.bounds import moments
from privcheck_audits.engine.scores import learn_score

PURE = ClaimedLoss(unit="epsilon", claimed=1.0, delta=0.0)


def scores(seed, runs=3_000, number=2):
    rng = np.random.default_rng(seed)
    secret = rng.random(runs) < 0.5
    drawn = np.where(secret, 0.8, -0.8) + rng.normal(size=(number, runs))
    return np.rint(drawn * 2**20) / 2**20, secret


def test_counts_between_edges_are_those_of_a_loop():
    values, secret = scores(0)
    cut = edges(values)
    plans = ClaimedLoss(unit="rho", claimed=0.5, delta=0.0).divergences
    counts = cut.count(values, secret, plans)
    for score in range(2):
        for edge, at in enumerate(cut.cuts[score]):
            assert counts.above(score, edge) == (
                sum(values[score][secret] > at),
                sum(values[score][~secret] > at),
            )
        for i, plan in enumerate(plans):
            assert counts.sums[score * len(plans) + i] == moments(values[score], secret, plan)
    half = cut.count(values[:, :1_000], secret[:1_000], plans)
    rest = cut.count(values[:, 1_000:], secret[1_000:], plans)
    assert ((half + rest).inside == counts.inside).all()
    assert (half + rest).sums[0].pairs == half.sums[0].pairs + rest.sums[0].pairs
    assert (half + rest).totals.tolist() == counts.totals.tolist() == [secret.sum(), (~secret).sum()]
    again = counts.none() + counts
    assert not counts.none().totals.any()
    assert (again.inside == counts.inside).all()
    assert (again.sums, again.totals.tolist()) == (counts.sums, counts.totals.tolist())


def test_the_parts_of_alpha_add_up_to_at_most_one_and_promising_attempts_have_more():
    values, secret = scores(1)
    cut = edges(values)
    counts = cut.count(values, secret)
    tried = attempts(0, cut.cuts, PURE)
    weights = weigh(tried, [counts], PURE, tested=[6_000], alpha=0.01)
    assert 0.99 < weights.sum() <= 1 + 1e-12
    assert weights.min() >= 0.09 / len(tried)
    assert weights.max() > 0.3
    found = best(tried, weights, [counts], [counts], PURE, alpha=0.01, rng=np.random.default_rng(0))
    assert found.alpha <= 0.01
    assert found.right > found.wrong


def test_attempts_fit_the_claims_unit():
    cuts = (np.array([-1.0, 0.0, 1.0]),)
    kinds = {
        unit: {a.kind for a in attempts(0, cuts, ClaimedLoss(unit=unit, claimed=1.0, delta=0.0))}
        for unit in ("epsilon", "rho", "mu")
    }
    assert kinds == {"epsilon": {"flip"}, "rho": {"event", "divergence"}, "mu": {"event", "curve"}}


@given(st.integers(1, 1_000), st.integers(0, 1_000))
def test_event_bounds_stay_below_the_loss_of_the_observed_frequencies(right, wrong):
    rho, mu = _event_rho(right, 1_000, wrong, 1_000, 0.01), _event_mu(right, 1_000, wrong, 1_000, 0.01)
    if right <= wrong:
        assert rho == mu == 0
    else:
        assert mu < ndtri(right / 1_000) - ndtri(wrong / 1_000)  # of a Gaussian with these frequencies
    if right > 600 and wrong < 400:
        assert min(rho, mu) > 0
    if right > wrong > 10 and right < 990:
        p, q = right / 1_000, wrong / 1_000
        orders = 1 + np.geomspace(1e-3, 90, 500)
        losses = [math.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1) / a for a in orders]
        assert rho < max(losses)


def test_event_bounds_of_a_gaussian_stay_below_the_truth():
    # N(0, 1) against N(1, 1) above .5, at frequencies equal to the probabilities
    right, wrong = round(1e5 * ndtr(0.5)), round(1e5 * ndtr(-0.5))
    assert 0.97 < _event_mu(right, 100_000, wrong, 100_000, 0.01) < 1
    assert 0.2 < _event_rho(right, 100_000, wrong, 100_000, 0.01) < 0.5


@pytest.mark.parametrize("sign", [1, -1])
def test_the_divergence_bound_covers_and_approaches(sign):
    # KL of unit-variance normals one apart is ½; the score is the likelihood ratio
    rng = np.random.default_rng(2)
    secret = rng.random(200_000) < 0.5
    score = (sign * (np.where(secret, 1.0, 0.0) + rng.normal(size=secret.size) - 0.5))[None]
    target = ClaimedLoss(unit="rho", claimed=0.5, delta=0.0)
    counts = edges(score).count(score, secret, target.divergences)
    found = [
        _divergence(Attempt(pair=0, score=0, kind="divergence", plan=plan), counts, target, times=1.0, alpha=0.01)
        for plan in range(len(target.divergences))
    ]
    if sign < 0:
        assert max(found) == 0
        return
    assert 0.45 < max(found) < 0.5


def test_the_grid_keeps_what_a_design_may_tell_and_drops_the_last_bits():
    rng = np.random.default_rng(3)
    noise = rng.laplace(size=(1_000, 1))
    on_first = rng.random(1_000) < 0.5
    steps = grid_steps(noise, on_first)
    assert 2.0**-32 < steps[0] < 2.0**-28
    assert (on_grid(noise + 1e-15, steps) == on_grid(noise, steps)).mean() > 0.99
    assert (grid_steps(np.rint(10 * noise), on_first) == 0).all()
    assert (on_grid(np.array([[-0.0, np.inf, 1e300]]), np.array([0.0, 0.5, 1e-20])) == [[0, np.inf, np.inf]]).all()


@pytest.mark.parametrize(("kind", "digits"), [(np.float32, 24), (np.float16, 11)])
@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e4])
def test_the_grid_follows_precision_and_magnitude_and_not_the_type(kind, digits, magnitude):
    # seeds are fixed; a largest value outside of the limits has probability below 1e-9
    drawn = magnitude * np.random.default_rng(5).laplace(size=4_000)
    noise = drawn[np.abs(drawn) < 6e4].astype(kind).astype(np.float64)  # float16 ends at 65 504
    step = own_step(noise)
    top = 2.0 ** np.frexp(np.abs(noise).max())[1]
    assert top * 2.0 ** -(digits + 1) <= step <= top * 2.0 ** -(digits - 2)
    assert own_step(noise + math.pi) == 0  # its digits are used up
    rows, on_first = noise[:, np.newaxis], np.arange(noise.size) % 2 == 0
    assert grid_steps(rows, on_first)[0] == step
    assert grid_steps(rows, on_first, fine=True)[0] < step / 2**10
    one_arm = np.where(on_first[:, np.newaxis], rows, rows + math.pi)
    assert grid_steps(one_arm, on_first)[0] >= step


def test_even_grids_atoms_and_a_mark_for_nothing_are_left_alone():
    rng = np.random.default_rng(6)
    for quarter in (2.0**-2, 2.0**-10, 2.0**-20):
        assert own_step(np.rint(rng.laplace(size=2_000) / quarter) * quarter) == 0
    doubles = rng.laplace(size=2_000)
    assert own_step(np.where(rng.random(2_000) < 0.9, np.rint(doubles) / 4, doubles)) == 0
    single = doubles.astype(np.float32).astype(np.float64)
    assert own_step(np.where(rng.random(2_000) < 0.3, -1e9, single)) == own_step(single)


def test_every_cell_of_the_grid_has_as_many_finer_points():
    points = np.arange(-64, 64)[:, np.newaxis] / 64.0
    _, sizes = np.unique(on_grid(points, np.array([0.25])), return_counts=True)
    assert set(sizes[1:-1]) == {16}


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), min_size=1, max_size=30))
def test_keys_are_equal_where_rows_are(rows):
    array = np.array(rows, dtype=np.float64)
    keys = row_keys(array)
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (keys[i] == keys[j]) == (one == other)


def test_patterns_are_those_of_a_loop():
    rows = np.array([[3.0, 1.0, 3.0], [-1.5, 0.0, 2.0]])
    same, signs, ranked, dense = patterns(rows, range(4))
    assert (same == rows).all()
    assert (ranked == [[1, 3, 3], [-1.5, 0, 2]]).all()
    assert (dense == [[1, 0, 1], [0, 1, 2]]).all()
    assert (signs == [[4, 4, 4], [-1, 3, 4]]).all()
    few = patterns(rows, (0, 2))
    assert few[1] is few[3] is None
    assert (few[2] == ranked).all()
    assert [view is None for view in patterns(rows[:, :1], (0, 1))] == [False, False]


def test_features_are_finite_whatever_comes():
    rng = np.random.default_rng(4)
    for width in (1, 2, 7, 80):
        rows = rng.normal(size=(300, width)) * np.exp(rng.normal(size=(300, width)) * 40)
        rows[0], rows[1] = np.inf, -np.inf
        secret = rng.random(300) < 0.5
        at = on_grid(rows, grid_steps(rows, secret))
        table = feature_map(at, secret)(at)
        assert np.isfinite(table).all()
        assert table.shape[0] == 300


def test_separation_is_the_kolmogorov_smirnov_distance():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(5)
    secret = rng.random(500) < 0.4
    kinds = [rng.normal(size=500) + secret, rng.integers(0, 3, 500), np.ones(500)]
    columns = np.stack(kinds * 40, axis=1).astype(np.float64)  # more than are sorted at once
    wanted = [ks_2samp(column[secret], column[~secret]).statistic for column in columns.T]
    assert separation(columns, secret) == pytest.approx(wanted)


def test_newtons_steps_end_where_the_likelihood_is_flat():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(2_000, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0.9], [0, 0, 1]])
    secret = rng.random(2_000) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.2]))
    score = learn_score(x, secret, ridge=1.0)
    likely = 1 / (1 + np.exp(-score(x)))
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    assert np.abs(standard.T @ (secret - likely) - score.weights).max() < 1e-3


def test_fingerprints():
    found = fingerprint(np.array([0.0, 0.75, -(2.0**-54), np.inf, 0.1]))
    assert found[:, 0].tolist() == [0, 0, 3, 0, 3]
    assert found[1].tolist() == [0, 0, -2]
    assert found[4].tolist() == [3, -3, math.log2((0.1).as_integer_ratio()[1]) * -1]
