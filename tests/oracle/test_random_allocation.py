"""Random allocation against integration, convolution by hand and simulation, none of which shares code with it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from privcheck import accounting as acc
from privcheck.accounting.engine.allocated import Allocation, allocated_law
from privcheck.accounting.engine.allocated_below import merged_gaussian
from privcheck.accounting.engine.gdp import gdp_log_delta
from privcheck.commands.settings import resolve_setting
from privcheck.errors import ParameterError
from privcheck.verification import verify

DIRECTIONS = ("remove", "add")
EPSILONS = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)


def allocation(std, rounds, *, epochs=1, participations=1):
    return acc.random_allocation(
        std=std, rounds=rounds, epochs=epochs, participations=participations, relation="add-remove"
    )


def epsilon(*given, delta=1e-5, **said):
    return acc.compose(allocation(*given, **said)).epsilon(delta=delta)


def bounds(s, rounds, at, direction):
    """δ of both bounds at one ε, straight from the laws."""
    law = allocated_law(s, rounds)
    return tuple(
        float(np.exp(atoms.log_deltas(np.array([at]))[0]))
        for atoms in (law.atoms_below(direction), law.atoms(direction))
    )


# --- one epoch -------------------------------------------------------------------------------------------------------


# [lemma allocation-pair] [lemma allocation-series]
@pytest.mark.parametrize("s", [0.2, 0.5, 1.0, 1.6])
def test_two_rounds_by_integration(s):
    """The midpoint rule for the mean of two exponentials against 1, in the plane."""
    x = np.linspace(-8, 8 + 2 * s, 1201)
    weights = norm.pdf(x) * (x[1] - x[0])
    ratio = np.add.outer(*2 * [np.exp(s * x - s * s / 2) / 2])
    mass = np.multiply.outer(weights, weights)
    for at in EPSILONS:
        remove = float((mass * np.maximum(ratio - math.exp(at), 0)).sum())
        add = float((mass * np.maximum(1 - math.exp(at) * ratio, 0)).sum())
        for direction, true in zip(DIRECTIONS, (remove, add), strict=True):
            lower, upper = bounds(s, 2, at, direction)
            assert lower <= true * (1 + 1e-3) + 1e-8
            assert upper >= true * (1 - 1e-3) - 1e-8
            assert s > 1 or upper - lower <= 1e-2 * true + (1e-6 if s < 1 else 1e-2)


def bracket(s, rounds, cells=6000):
    """Sums of likelihood ratios rounded down and up to a grid: a naive bracket of E(S/t − x)₊ and E(1 − xS/t)₊."""
    top = 6.0 * rounds
    edges = np.linspace(0, top, cells + 1)
    with np.errstate(divide="ignore"):
        below = norm.cdf(np.log(edges) / s + s / 2)
    masses = np.diff(below)
    laws = []
    for up in (0, 1):
        one = np.zeros(cells + 1)
        one[up : cells + up] = masses
        total = np.ones(1)
        for _ in range(rounds):
            total = np.convolve(total, one)[: cells + 1]  # what is above the top is left out
        laws.append(total)
    # E(S − c)₊ = t − c + E(c − S)₊, of sums below c only
    values = edges / rounds

    def deltas(at):
        c = math.exp(at)
        short = [float(total @ np.maximum(c - values, 0)) for total in laws]
        gone = [float(total @ np.maximum(1 - c * values, 0)) for total in laws]
        return (1 - c + short[1], 1 - c + short[0]), (gone[1], gone[0])

    return deltas


@pytest.mark.parametrize(("s", "rounds"), [(0.4, 8), (0.8, 20), (1.25, 12)])
def test_sums_rounded_by_hand_hold_the_curve(s, rounds):
    deltas = bracket(s, rounds)
    for at in (0.0, 0.1, 0.3, 0.6):
        for direction, (low, high) in zip(DIRECTIONS, deltas(at), strict=True):
            lower, upper = bounds(s, rounds, at, direction)
            assert lower <= high + 1e-12
            assert upper >= low - 1e-12
            assert high - low <= 1.5e-3 * rounds  # the bracket says something
            assert upper - lower <= 2e-2 * upper + 1e-8


# [lemma allocation-series] [lemma allocation-trapezoid]
@pytest.mark.parametrize(("s", "rounds"), [(0.05, 1000), (1.0, 100), (1.0, 1000), (2.0, 300), (1e-6, 50), (0.3, 10**6)])
def test_shortfalls_are_known_to_many_digits(s, rounds):
    of = Allocation(shift=s, rounds=rounds)
    d = of.std * np.array([-1.0, -0.5, 0.0, 1.0, 3.0, 4.9])
    lower, upper = of.shortfalls(d[d > -rounds])
    assert np.all(lower <= upper)
    assert np.all(upper - lower <= 1e-3 * of.std)
    assert np.all(np.diff(upper) > 0)
    near = np.abs(d[d > -rounds]) <= of.std
    assert np.all((upper - lower)[near] <= 1e-4 * of.std)


# [lemma allocation-large-term]
def test_a_rare_large_term_is_not_left_out():
    """Far out the sum is one large term: t·E(Y − c)₊ beside the others' mean is about the whole."""
    s, rounds = 1.0, 100
    for at in (2.5, 3.5, 5.0):
        lower, upper = bounds(s, rounds, at, "remove")
        c = rounds * math.exp(at)
        x = (math.log(c - rounds + 1) + s * s / 2) / s
        single = norm.sf(x - s) - (c - rounds + 1) * norm.sf(x)  # the others at their mean: Jensen, from below
        assert lower <= upper
        assert single * 0.999 <= upper <= 2.5 * single


# --- epochs ----------------------------------------------------------------------------------------------------------


def test_the_published_bounds_are_met():
    """PLD_accounting 2.0 has [.617227, .627923] at an accuracy of .02; Feldman & Shenfeld 2026."""
    figure = epsilon(1, 100)
    assert 0.617227 <= figure.lower <= figure.upper <= 0.627923


@pytest.mark.parametrize(
    ("std", "rounds", "epochs", "delta"),
    [
        (1, 100, 10, 1e-5),
        (0.8, 391, 5, 1.25e-5),
        (1, 1000, 100, 1e-5),
        (0.5, 1000, 20, 1e-5),
        (0.41, 100, 1, 1e-5),
        (2.26, 186, 74, 8e-5),  # rare large losses …
        (2.26, 186, 5, 8e-5),  # … which had hidden the others
    ],
)
def test_both_bounds_are_near_each_other(std, rounds, epochs, delta):
    figure = epsilon(std, rounds, epochs=epochs, delta=delta)
    assert 0.98 * figure.upper <= figure.lower <= figure.value <= figure.upper
    back = acc.compose(allocation(std, rounds, epochs=epochs)).delta(epsilon=figure.value)
    assert back.lower <= delta * 1.001
    assert back.upper >= delta * 0.9


# [lemma allocation-pair]
def test_simulated_epochs_lie_between_the_bounds():
    """Each share of 2·10⁵ runs lies outside its Clopper–Pearson interval with probability 1e-9, 12 times."""
    rng = np.random.default_rng(5)
    std, rounds, epochs, runs = 1.0, 20, 3, 200_000
    s = 1 / std
    for direction, sign in (("remove", 1), ("add", -1)):
        losses = np.zeros(runs)
        for _ in range(epochs):
            x = rng.standard_normal((runs, rounds))
            if direction == "remove":
                x[:, 0] += s
            losses += sign * np.log(np.exp(s * x - s * s / 2).mean(axis=1))
        for at in (0.2, 0.8, 1.6):
            # δ(ε) is the probability that the loss is above ε plus an exponential number
            hits = int((losses > at + rng.exponential(size=runs)).sum())
            low, high = beta.ppf(5e-10, hits, runs - hits + 1), beta.ppf(1 - 5e-10, hits + 1, runs - hits)
            curve = acc.compose(allocation(std, rounds, epochs=epochs)).delta(epsilon=at)
            assert curve.upper >= low
            assert direction == "add" or curve.lower <= high


# --- properties ------------------------------------------------------------------------------------------------------

stds = st.floats(0.6, 30).map(lambda x: float(f"{x:.3g}"))


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(std=stds, rounds=st.integers(2, 2000), epochs=st.integers(1, 50), exponent=st.integers(-8, -3))
def test_order_of_bounds_noise_epochs_and_rounds(std, rounds, epochs, exponent):
    delta = 10.0**exponent
    figure = epsilon(std, rounds, epochs=epochs, delta=delta)
    plain = acc.compose(acc.gaussian(std=std, count=epochs)).epsilon(delta=delta)
    assert figure.lower <= figure.upper <= plain.upper * (1 + 5e-3)
    assert epsilon(std, rounds, epochs=epochs + 1, delta=delta).upper >= figure.lower
    assert epsilon(std * 1.5, rounds, epochs=epochs, delta=delta).lower <= figure.upper
    assert epsilon(std, 2 * rounds, epochs=epochs, delta=delta).lower <= figure.upper


@settings(max_examples=20, deadline=None)
@given(
    std=st.floats(1, 10).map(lambda x: float(f"{x:.3g}")),
    rounds=st.integers(50, 1000),
    participations=st.sampled_from([1, 1, 2, 5]),
    epochs=st.integers(2, 100),
    exponent=st.integers(-9, -3),
)
def test_rare_large_losses_hide_no_bulk(std, rounds, participations, epochs, exponent):
    """Curves known at points have large losses of no mass that counts: with them, ε was that of a Rényi order."""
    figure = epsilon(std, rounds, participations=participations, epochs=epochs, delta=10.0**exponent)
    assert figure.upper <= 1.02 * figure.lower


def test_one_round_or_all_of_them_are_plain_noise():
    assert epsilon(2, 1, epochs=7).value == acc.compose(acc.gaussian(std=2, count=7)).epsilon(delta=1e-5).value
    everywhere = epsilon(2, 9, participations=9, epochs=2)
    assert everywhere.value == pytest.approx(acc.compose(acc.gaussian(std=2, count=18)).epsilon(delta=1e-5).value)


def test_more_participations_cost_more_and_less_than_their_rounds_alone():
    some = [epsilon(2, 60, participations=k).upper for k in (1, 2, 7, 30, 60)]
    assert some == sorted(some)
    assert epsilon(2, 60, participations=2).upper == pytest.approx(epsilon(2, 30, epochs=2).upper)
    assert epsilon(2, 60, participations=7).bounded_below


def test_releases_of_one_draw_are_one_release():
    """Three nodes of a tree that hold the user's round see the same draw: √3 times the sensitivity."""
    (law, _), *_ = allocation(3, 50).pieces
    assert law.on_one_draw(3).arguments == (pytest.approx(math.sqrt(3) / 3), 50)


# --- doors -----------------------------------------------------------------------------------------------------------


def test_the_relation_has_to_be_given():
    with pytest.raises(ParameterError, match="expected relation="):
        acc.random_allocation(std=1, rounds=10)
    with pytest.raises(ParameterError, match="expected relation="):
        acc.random_allocation(std=1, rounds=10, relation="replace")
    with pytest.raises(ParameterError, match="participations"):
        acc.random_allocation(std=1, rounds=10, participations=11, relation="zero-out")


@given(mu=st.floats(-8, 3).map(lambda x: 10**x), z=st.floats(-3, 5))
def test_merged_gaussian_outcomes_are_below_its_curve(mu, z):
    losses, masses = merged_gaussian(mu)
    at = max(mu * mu / 2 + z * mu, 0.0)
    below = float(masses @ np.maximum(-np.expm1(np.minimum(at - losses, 0.0)), 0))
    truth = math.exp(gdp_log_delta(mu, at))
    assert below <= truth * (1 + 1e-12)
    assert mu > 30 or below >= 0.99 * truth - 1e-9


def test_other_compositions_have_no_lower_bound():
    mixed = acc.compose(allocation(1, 10), acc.laplace(scale=3)).epsilon(delta=1e-5)
    assert not mixed.bounded_below
    with pytest.raises(ParameterError, match="ask for its upper"):
        _ = mixed.lower


@pytest.mark.parametrize("std", [1e-6, 0.21, 0.3, 1e7, 1e12])
@pytest.mark.parametrize("rounds", [2, 10**12])
def test_extremes_are_bounded(std, rounds):
    figure = epsilon(std, rounds, epochs=3)
    plain = acc.compose(acc.gaussian(std=std, count=3)).epsilon(delta=1e-5)
    assert 0 <= figure.upper <= plain.upper * (1 + 5e-3)


# --- declarations ----------------------------------------------------------------------------------------------------


def test_shuffled_dp_sgd_is_decided():
    setting = resolve_setting("dp-sgd", {"sampling": "shuffled"})
    verdict = verify(setting.declared, setting.values)
    assert verdict.verdict == "holds"
    assert 0.99 * verdict.upper_ratio <= verdict.lower_ratio <= verdict.upper_ratio


def test_very_many_epochs_have_bounds():
    """Rounded down once for each of 10¹² epochs, losses fill no lattice."""
    figure = acc.random_allocation(std=8, rounds=16, relation="zero-out", epochs=10**12).epsilon(delta=0.1)
    assert 0 <= figure.lower <= figure.upper < math.inf
