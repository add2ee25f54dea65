"""The accountant for Opacus: against integrals, above Opacus' own way to charge accumulation, and its checkpoints."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, norm

from privcheck import accounting as acc
from privcheck.accounting import OpacusAccountant
from privcheck.errors import ParameterError


def accountant(*steps):
    made = OpacusAccountant()
    for batches, noise, rate, count in steps:
        for _ in range(count):
            made.step_on(batches, noise_multiplier=noise, sample_rate=rate)
    return made


def delta_of_one_step(epsilon, batches, noise, rate):
    """The larger δ of both directions, on a fine grid: shares nothing with the engine."""
    y = np.linspace(-14 * noise, batches + 14 * noise, 400_001)
    chances = binom.pmf(np.arange(batches + 1), batches, rate)
    p = sum(c * norm.pdf(y, j, noise) for j, c in enumerate(chances))
    q = norm.pdf(y, 0, noise)
    width = y[1] - y[0]
    return max(float(np.maximum(0, a - math.exp(epsilon) * b).sum() * width) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize(
    ("batches", "noise", "rate"), [(1, 1.0, 0.1), (2, 1.0, 0.1), (4, 2.0, 0.25), (3, 0.7, 1.0), (5, 1.5, 0.999)]
)
def test_epsilon_of_a_step_is_that_of_an_integral_from_above(batches, noise, rate):
    spent = accountant((batches, noise, rate, 1)).get_epsilon(1e-4)
    assert delta_of_one_step(spent, batches, noise, rate) <= 1e-4 * (1 + 1e-6)
    assert delta_of_one_step(spent * 0.999, batches, noise, rate) > 1e-4


# [lemma larger-contribution]
@pytest.mark.parametrize("seed", range(5))
def test_a_larger_contribution_costs_no_less_in_either_direction(seed):
    rng = np.random.default_rng(seed)
    y = np.linspace(-12, 20, 20_001)
    chances = rng.dirichlet(np.ones(6))
    moved = rng.random(5) * chances[:-1]
    larger = chances.copy()
    larger[:-1] -= moved
    larger[1:] += moved
    q = norm.pdf(y)

    def costs(weights):
        p = sum(w * norm.pdf(y, j, 1) for j, w in enumerate(weights))
        return [np.maximum(0, a - math.e**e * b).sum() for e in (0, 0.3, 1, 3) for a, b in ((p, q), (q, p))]

    assert all(big >= small * (1 - 1e-9) for big, small in zip(costs(larger), costs(chances), strict=True))


@pytest.mark.parametrize(("batches", "rate"), [(2, 0.1), (4, 1 / 3), (30, 1e-3), (7, 0.9)])
def test_the_chances_that_are_charged_are_never_below_exact_ones(batches, rate, monkeypatch):
    charged = []

    def kept(*, probabilities, **more):
        charged.append([Fraction(one) for one in probabilities])
        return acc.mixture_of_gaussians(probabilities=probabilities, **more)

    monkeypatch.setattr("privcheck.accounting.opacus_accountant.mixture_of_gaussians", kept)
    accountant((batches, 1.0, rate, 1)).get_epsilon(1e-5)
    (chances,), q = charged, Fraction(rate)
    for least in range(1, batches + 1):
        exact = sum(math.comb(batches, j) * q**j * (1 - q) ** (batches - j) for j in range(least, batches + 1))
        assert exact < sum(chances[least:]) / sum(chances) < exact * (1 + Fraction(1, 10**11))


def test_many_steps_are_composed_whatever_their_order():
    spent = accountant((1, 1.0, 0.01, 300), (4, 1.0, 0.01, 100), (1, 2.0, 0.05, 200)).get_epsilon(1e-5)
    assert spent == accountant((1, 2.0, 0.05, 200), (4, 1.0, 0.01, 100), (1, 1.0, 0.01, 300)).get_epsilon(1e-5)
    naive = acc.compose(
        acc.poisson_gaussian(std=1, rate=0.01, count=300, relation="add-remove"),
        acc.poisson_gaussian(std=2, rate=0.05, count=200, relation="add-remove"),
        acc.mixture_of_gaussians(
            std=1, sensitivities=range(5), probabilities=binom.pmf(range(5), 4, 0.01), relation="add-remove", count=100
        ),
    )
    assert spent == pytest.approx(naive.epsilon(delta=1e-5).upper, rel=1e-8)


def test_accumulated_batches_cost_more_than_one_sample_at_their_rate():
    made, hook_of = OpacusAccountant(), OpacusAccountant.get_optimizer_hook_fn
    hook = hook_of(made, sample_rate=0.01)
    for _ in range(250):
        hook(SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=4))
    as_opacus = accountant((1, 1.0, 0.04, 250)).get_epsilon(1e-5)
    assert made.accumulated == [(1.0, 0.01, 4, 250)]
    assert len(made) == 250
    assert as_opacus == pytest.approx(4.185, abs=1e-3)
    assert made.get_epsilon(1e-5) == pytest.approx(4.550, abs=1e-3)
    hook(SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=1))
    assert made.history == [(1.0, 0.01, 1)]


def test_the_ends_of_every_range():
    assert OpacusAccountant().get_epsilon(1e-5) == 0
    assert accountant((1, 1.0, 0.0, 5), (3, 1.0, 0.0, 5)).get_epsilon(1e-5) == 0
    assert accountant((1, 0.0, 0.1, 1)).get_epsilon(1e-5) == math.inf
    assert accountant((4, 0.0, 0.1, 1)).get_epsilon(1e-5) == math.inf
    steep = accountant((150, 1.0, 0.01, 1)).get_epsilon(1e-5)
    assert steep == acc.compose(acc.gaussian(std=1, sensitivity=150)).epsilon(delta=1e-5).upper
    everybody = accountant((3, 2.0, 1.0, 7)).get_epsilon(1e-5)
    assert everybody == acc.compose(acc.gaussian(std=2, sensitivity=3, count=7)).epsilon(delta=1e-5).upper


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise_multiplier": -1.0}, {"noise_multiplier": math.nan}, {"sample_rate": 1.5}, {"sample_rate": math.nan},
        {"sample_rate": -0.1}, {"batches": 0}, {"batches": 2.5}, {"batches": 1_001},
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused_and_leave_no_step(wrong):
    made = OpacusAccountant()
    given = {"batches": 2, "noise_multiplier": 1.0, "sample_rate": 0.1, **wrong}
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        made.step_on(given.pop("batches"), **given)
    assert len(made) == 0
    with pytest.raises(ParameterError, match="delta"):
        made.get_epsilon(1.5)


def test_a_history_that_opacus_writes_is_read_and_checked():
    made = OpacusAccountant()
    made.history = [(1.0, 0.01, 1000)]  # as its search for a noise multiplier does
    assert made.get_epsilon(1e-5) == accountant((1, 1.0, 0.01, 1000)).get_epsilon(1e-5)
    made.history = [(1.0, 1.5, 10)]
    with pytest.raises(ParameterError, match="sample_rate"):
        made.get_epsilon(1e-5)


def test_checkpoints_come_back_and_those_of_others_are_refused():
    made, other = accountant((1, 1.0, 0.01, 3), (4, 1.0, 0.01, 2)), accountant((1, 9.0, 0.5, 1))
    state = made.state_dict()
    made.step(noise_multiplier=1.0, sample_rate=0.01)  # a checkpoint does not change afterwards
    other.load_state_dict(state)
    assert (other.history, other.accumulated, len(other)) == ([(1.0, 0.01, 3)], [(1.0, 0.01, 4, 2)], 5)
    kept = {"of": "another"}
    assert made.state_dict(kept) is kept
    assert kept["of"] == "another"
    history = {"history": [(1.0, 0.01, 3)]}
    for wrong in (
        None,
        {},
        history,
        {**history, "mechanism": "rdp"},
        {**history, "mechanism": "privcheck"},
        {**state, "mechanism": "rdp"},
        {**state, "history": [(1.0, 2.0, 3)]},
    ):
        with pytest.raises(ParameterError):
            other.load_state_dict(wrong)
    assert len(other) == 5
