"""What a black-box audit bets on, finds in signs and keeps of wide outputs, against slow twins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from privcheck_audits.blackbox.anytime import EProcess, Stage, anytime, log_odds, refutes
from privcheck_audits.blackbox.dependence import learn_parities
from privcheck_audits.blackbox.verdict import Attempt, ClaimedLoss, Counts
from privcheck_audits.blackbox.width import WIDEST, pick_columns, sum_columns
from privcheck_audits.bounds import BETS

PURE = ClaimedLoss(unit="epsilon", claimed=1.0, delta=0.0)


def counts(first, other):
    """Counts of one score with one edge: (below, above) on D and on D′."""
    inside = np.array([[first, other]], dtype=np.int64)
    return Counts(inside=inside, sums=(), totals=inside.sum(axis=2)[0])


def stage(*, first, other, weights=(0.75, 0.25)):
    tried = (Attempt(pair=0, score=0, kind="flip", upper=0), Attempt(pair=0, score=0, kind="flip", upper=0, lower=0))
    return Stage(attempts=tried, weights=weights, counts=counts(first, other))


def test_the_e_value_is_the_product_of_bets_run_by_run():
    # above the edge 30 of D and 5 of D′, below it 10 of D and 40 of D′
    made, epsilon = stage(first=(10, 30), other=(40, 5)), 0.7
    wanted = 0.0
    for weight, right, wrong in ((0.75, 30, 5), (0.25, 30 + 40, 5 + 10)):
        for bet in BETS:
            size = bet / math.exp(epsilon)
            e_value = 1.0
            for _ in range(right):
                e_value *= 1 + size
            for _ in range(wrong):
                e_value *= 1 - size * math.exp(epsilon)
            wanted += weight / len(BETS) * e_value
    assert made.log_e_value(epsilon, PURE) == pytest.approx(math.log(wanted), abs=1e-6)
    assert made.log_e_value(epsilon, PURE) <= math.log(wanted)
    e_process = EProcess(target=PURE, stages=[made, stage(first=(0, 0), other=(0, 0)), made])
    assert e_process.log_e_value(epsilon) == pytest.approx(2 * math.log((1 + wanted) / 2), abs=1e-6)


def test_the_bound_at_any_time_is_where_the_mean_e_value_of_the_pairs_reaches_its_limit():
    rich = EProcess(target=PURE, stages=[stage(first=(10, 300), other=(300, 5))])
    poor = EProcess(target=PURE, stages=[stage(first=(50, 50), other=(50, 50))])
    found = anytime([rich, poor], alpha=0.01)
    assert 1 < found < 4
    assert refutes([rich, poor], found * 0.999, alpha=0.01)
    assert not refutes([rich, poor], found * 1.001, alpha=0.01)
    assert anytime([poor], alpha=0.01) == 0
    assert refutes([rich], found, alpha=0.005 * 1.02)  # a pair more costs what Bonferroni would


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.5, 2.0, 20.0])
def test_the_odds_of_zcdp_are_the_best_of_all_pairs_of_probabilities(rho):
    def divergence(a, b):
        return a * np.log(a / b) + (1 - a) * np.log((1 - a) / (1 - b))

    grid = 1 / (1 + np.exp(-np.linspace(-30, 30, 1_501)))
    a, b = np.meshgrid(grid, grid)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        allowed = (divergence(a, b) <= rho) & (divergence(b, a) <= rho)
    best = ((a + 1 - b) / 2)[allowed].max()
    at = log_odds(rho, ClaimedLoss(unit="rho", claimed=rho, delta=0.0))
    assert best <= 1 / (1 + math.exp(-at)) + 1e-9
    assert best == pytest.approx(1 / (1 + math.exp(-at)), abs=0.01)


@given(st.floats(0, 8))
def test_the_odds_of_gdp_are_those_of_two_normals(mu):
    at = log_odds(mu, ClaimedLoss(unit="mu", claimed=mu, delta=0.0))
    assert 1 / (1 + math.exp(-at)) == pytest.approx(float(ndtr(mu / 2)))


def parity(bits, subset):
    return bits[:, list(subset)].sum(axis=1) % 2


def test_the_best_parity_of_all_subsets_is_that_of_a_loop():
    rng = np.random.default_rng(0)
    x, secret = rng.normal(size=(800, 7)), rng.random(800) < 0.5
    flip = (x[:, [1, 2, 4, 6]] < 0).sum(axis=1) % 2 != secret
    x[flip & (rng.random(800) < 0.8), 4] *= -1
    found = learn_parities(x, secret)
    bits = x > np.median(x, axis=0)
    far = {
        subset: abs(parity(bits, subset)[secret].mean() - parity(bits, subset)[~secret].mean())
        for size in range(1, 8)
        for subset in itertools.combinations(range(7), size)
    }
    best = max(far, key=far.get)
    assert best == (1, 2, 4, 6)
    assert np.flatnonzero(found.chosen[0]).tolist() == list(best)
    assert (found(x)[:, 0] == parity(bits, best)).all()


@pytest.mark.parametrize("width", [8, 30])
def test_parities_that_were_only_lucky_are_left_alone(width):
    rng = np.random.default_rng(1)
    for _ in range(10):
        x, secret = rng.normal(size=(2_000, width)), rng.random(2_000) < 0.5
        assert not learn_parities(x, secret).chosen.any()


def test_triples_are_found_among_many_columns_and_digits_of_integers_too():
    rng = np.random.default_rng(2)
    x, secret = rng.normal(size=(3_000, 40)), rng.random(3_000) < 0.5
    x[:, 33] = np.abs(x[:, 33]) * np.sign(x[:, 4] * x[:, 21]) * np.where(secret, 1, -1)
    assert np.flatnonzero(learn_parities(x, secret).chosen[0]).tolist() == [4, 21, 33]
    seeds = rng.integers(0, 1 << 12, 3_000)
    masks = np.where(secret, 0b1011, 0b0110)
    hashed = np.array([(int(seed) & int(mask)).bit_count() % 2 for seed, mask in zip(seeds, masks, strict=True)])
    table = np.stack([seeds, hashed], axis=1).astype(np.float64)
    found = learn_parities(table, secret)
    assert found.chosen.any()
    assert (
        abs(found(table)[secret, 0].mean() - found(table)[~secret, 0].mean()) > 0.45
    )  # always even on D, a coin on D′


def test_columns_of_wide_outputs_are_picked_by_their_means_and_spreads():
    rng = np.random.default_rng(3)
    rows, secret = rng.normal(size=(400, 2_000)), rng.random(400) < 0.5
    rows[secret, 1_234] += 1.5
    rows[secret, 77] *= 2
    rows[0, 5] = np.inf
    half = sum_columns(rows[:100], secret[:100], 0) + sum_columns(rows[100:], secret[100:], 100)
    narrow = pick_columns(half)
    assert narrow.columns.size == WIDEST
    assert {1_234, 77} <= set(narrow.columns.tolist())
    assert (np.abs(narrow.lines).argmax(axis=0) == 1_234).all()
    out = narrow(rows)
    assert out.shape == (400, narrow.width)
    assert (out[:, :WIDEST] == rows[:, narrow.columns]).all()
    assert out[1, WIDEST:][3:8] == pytest.approx(
        [rows[1].sum(), np.abs(rows[1]).sum(), (rows[1] ** 2).sum(), rows[1].max(), rows[1].min()]
    )
