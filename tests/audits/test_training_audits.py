"""Audits of training code by canaries: DP-SGD in NumPy, its broken kin, examples and users, all steps or the last.

Each correct training is accused with probability at most 1 % a seed; the seeds are fixed, and none is.
"""

from functools import partial

import dp_accounting
import numpy as np
import pytest

from privcheck import ApproxDP, GaussianDP, audit_training, gradient_canaries
from privcheck import accounting as acc
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismError
from privcheck.runtime.training_audits import align

D, STEPS, STD = 600, 20, 4.0
ROWS = gradient_canaries(500, D, norm=100.0)
OWN = np.random.default_rng(9).normal(size=(40, D))


def clip(rows):
    return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))


def train(chosen, rng, *, kind="right", last=False, rate=1.0, std=STD, steps=STEPS):
    """Full batches or Poisson samples, a quadratic loss of its own users, and the canaries' given gradients."""
    theta, shown = np.zeros(D), []
    for _ in range(steps):
        gradients = np.concatenate([OWN - theta, chosen])
        gradients = gradients[rng.random(len(gradients)) < rate]
        total = clip(gradients).sum(axis=0)
        if kind == "clips the sum":
            total = gradients.sum(axis=0)
            total *= min(1, len(gradients) / np.linalg.norm(total))
        elif kind == "clips at 2":
            total = 2 * clip(gradients / 2).sum(axis=0)
        noise = 0.0 if kind == "first step only" and shown else rng.normal(0, std / (2 if kind == "half" else 1), D)
        shown.append(total + noise)
        theta = theta + 0.1 * shown[-1] / 540
    return theta if last else np.array(shown)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_correct_training_is_spared_and_shows_about_what_could_be_shown(last, seed):
    found = audit_training(partial(train, last=last), acc.gaussian(std=STD, count=STEPS), canaries=ROWS, seed=seed)
    assert found.verdict == "consistent"
    assert found.unit == "mu"
    assert found.claimed == pytest.approx(STEPS**0.5 / STD, rel=1e-11)
    assert found.claimed >= STEPS**0.5 / STD
    assert 0.4 * found.reachable <= found.lower <= 1.7 * found.reachable


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["half", "clips the sum", "clips at 2", "first step only"])
def test_broken_training_is_found(kind, last):
    found = audit_training(
        partial(train, kind=kind, last=last), acc.gaussian(std=STD, count=STEPS), canaries=ROWS, delta=1e-5, runs=20
    )
    assert found.verdict == "violation"
    assert found.evidence["charged_epsilon"] == pytest.approx(acc.gdp_epsilon(STEPS**0.5 / STD, 1e-5).upper, rel=1e-6)


def test_a_batch_of_everybody_is_found_where_a_sample_is_declared():
    sampled = acc.poisson_gaussian(std=2, rate=0.1, count=STEPS, relation="add-remove")
    ask = partial(audit_training, declared=sampled, canaries=ROWS, delta=1e-5, runs=4)
    assert ask(partial(train, std=2.0, rate=0.1)).verdict == "consistent"
    found = ask(partial(train, std=2.0))
    assert (found.verdict, found.unit, found.delta) == ("violation", "epsilon", 1e-5)
    assert found.claimed == pytest.approx(acc.compose(sampled).epsilon(delta=1e-5).upper)
    with pytest.raises(ParameterError, match="expected delta="):
        audit_training(train, sampled, canaries=ROWS)


def averages(chosen, rng, *, noise="right", rate=1.0, std=STD, last=False):
    """Noisy averages over the expected batch; noise is added to the sum, or, in the broken kin, by another scale."""
    size, shown = 250 * rate, []
    for _ in range(STEPS):
        total = clip(chosen[rng.random(len(chosen)) < rate]).sum(axis=0)
        drawn = rng.normal(0, std, D)
        # eight micro-batches, each of which is thought to bring a noise of its own; a batch divided by twice
        drawn /= {"right": 1.0, "of one micro-batch": 8**0.5, "divided twice": size}[noise]
        shown.append((total + drawn) / size)
    return np.sum(shown, axis=0) if last else np.array(shown)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("noise", ["right", "of one micro-batch", "divided twice"])
def test_noise_that_is_not_scaled_with_the_batch_is_found(noise, last):
    ask = partial(audit_training, declared=acc.gaussian(std=STD, count=STEPS), canaries=ROWS, runs=10)
    expected = "consistent" if noise == "right" else "violation"
    assert ask(partial(averages, noise=noise, last=last)).verdict == expected


def plan(rate, std):
    """The event of dp-accounting that a plan of jax-privacy states for DP-SGD, read as a declaration."""
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(std))
    return acc.from_dp_event(dp_accounting.SelfComposedDpEvent(step, STEPS), relation="add-remove")


def test_an_accountant_told_a_smaller_sampling_rate_is_found_by_its_plan():
    ask = partial(audit_training, canaries=ROWS, delta=1e-5, runs=10)
    told = ask(partial(averages, rate=0.25, std=0.8), plan(0.02, 0.8))
    assert told.verdict == "violation"
    assert told.claimed == pytest.approx(plan(0.02, 0.8).epsilon(delta=1e-5).upper, rel=1e-9)
    assert ask(partial(averages, rate=0.25, std=0.8), plan(0.25, 0.8)).verdict == "consistent"
    assert ask(partial(averages, rate=0.02, std=0.8), plan(0.02, 0.8)).verdict == "consistent"


def logistic(chosen, rng, *, std, steps=15):
    """Logistic regression on (features, label) of users with two examples each, clipped by user; the last weights."""
    weights = np.zeros(40)
    for _ in range(steps):
        total = rng.normal(0, std, 40)
        for user in chosen:
            gradient = sum(x * (y - 1 / (1 + np.exp(-x @ weights))) for x, y in user)
            total += gradient / max(1, np.linalg.norm(gradient))
        weights = weights + 0.2 * total
    return weights


def loss_of_users(weights, users):
    return [-sum(np.logaddexp(0, -(2 * y - 1) * (x @ weights)) for x, y in user) for user in users]


def test_users_are_canaries_as_well_as_examples_and_the_loss_of_the_last_weights_tells_them_apart():
    rng = np.random.default_rng(3)
    users = [[(rng.normal(size=40) * 3, int(rng.random() < 0.5)) for _ in range(2)] for _ in range(30)]
    ask = partial(audit_training, canaries=users, score=loss_of_users, runs=20, seed=1)
    assert ask(partial(logistic, std=8.0), GaussianDP("1.94")).verdict == "consistent"  # √15/8 = .484 …
    assert ask(partial(logistic, std=8.0), acc.gaussian(std=8, count=15)).verdict == "consistent"
    assert ask(partial(logistic, std=0.5), acc.gaussian(std=8, count=15)).verdict == "violation"


@pytest.mark.parametrize(("count", "dimension"), [(1, 1), (5, 9), (9, 9), (40, 3)])
def test_gradient_canaries_have_one_norm_and_are_orthogonal_where_they_can_be(count, dimension):
    rows = gradient_canaries(count, dimension, norm=7.0, seed=count)
    assert rows.shape == (count, dimension)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.full(count, 7.0))
    if count <= dimension:
        assert rows @ rows.T == pytest.approx(49 * np.eye(count), abs=1e-9)


def test_scores_are_sums_along_each_canary_and_other_shapes_are_refused():
    rng = np.random.default_rng(0)
    sums, rows = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    naive = [sum(float(row @ one) for one in sums) / float(row @ row) ** 0.5 for row in rows]
    assert align(sums, rows) == pytest.approx(naive)
    assert align(sums.sum(axis=0), rows) == pytest.approx(naive)
    for wrong in (rng.normal(size=5), rng.normal(size=(2, 3, 4)), 1.0):
        with pytest.raises(ParameterError, match="give score="):
            align(wrong, rows)
    with pytest.raises(MechanismError):
        audit_training(lambda chosen, _: np.full(D, np.nan) + len(chosen), ApproxDP(1, "1/100"), canaries=ROWS)
    for wrong in ({"count": 0}, {"dimension": 0}, {"norm": 0.0}, {"norm": float("inf")}):
        with pytest.raises(ParameterError):
            gradient_canaries(**{"count": 2, "dimension": 2, "norm": 1.0, **wrong})


def test_events_without_a_finite_price_are_refused_before_anything_is_trained():
    def never(*_):
        pytest.fail("trained")

    with pytest.raises(ParameterError, match="no finite ε"):
        audit_training(never, acc.non_private(), canaries=ROWS, delta=1e-5)
    found = audit_training(train, acc.gaussian(std=STD, count=STEPS), canaries=ROWS)
    assert found.claim == "(1.11803)-GDP by the declared steps"
