"""The bridge to dp-accounting, held against its own accountants; generated events have fixed seeds.

Events that the installed dp-accounting does not have yet are stood in for by dataclasses with its names and fields.
"""

import inspect
import itertools
import math
from dataclasses import make_dataclass

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import ParameterError

KINDS = dp.dp_event
DELTA = 1e-5


def epsilon(event, relation="add-remove", **how):
    return acc.from_dp_event(event, relation=relation, **how).epsilon(delta=DELTA)


@pytest.mark.parametrize(
    "event",
    [
        acc.gaussian(std=3, sensitivity=2, count=5),
        acc.laplace(scale=4, count=3),
        acc.discrete_laplace(scale=4, sensitivity=2),
        acc.randomized_response(epsilon=0.7, categories=5, count=2),
        acc.poisson_gaussian(std=2, rate=0.1, count=4, relation="add-remove"),
        acc.zcdp(rho=0.25),
        acc.zcdp(rho=0.25, xi=0.5, count=2),
        acc.symmetric_gaussian(variance=3, sensitivity=1),
        acc.tree(node=acc.gaussian(std=9), leaves=100, participations=1),
        acc.tree(node=acc.laplace(scale=40), leaves=9, participations=2),
        acc.mixture_of_gaussians(std=2, sensitivities=[0, 1, 2], probabilities=[0.5, 0.3, 0.2], relation="add-remove"),
        acc.matrix_gaussian(encoder=[[1, 0], [0.5, 1]], std=4, sensitivity=1, participations=1),
        acc.matrix_poisson_gaussian(
            encoder=np.eye(6) + 0.5 * np.eye(6, k=-1), std=2, rate=0.1, separation=2, relation="add-remove"
        ),
        acc.pure(epsilon=0.4, count=7),
        acc.permute_and_flip(epsilon=0.6),
        acc.above_threshold(threshold_scale=9, query_scale=30),
        acc.repeat_and_select(acc.gaussian(std=20), mean=10, law="geometric"),
        acc.repeat_and_select(acc.compose(acc.gaussian(std=20), acc.zcdp(rho=0.001)), mean=5, law="poisson"),
        acc.poisson(event=acc.laplace(scale=2, count=2), rate=0.1, count=3, relation="add-remove"),
        acc.non_private(),
        acc.gaussian(std=3, sensitivity=0),
    ],
    ids=lambda event: event.kind,
)
def test_events_travel_to_dp_accounting_and_back(event):
    curve = acc.compose(event)
    there = acc.to_dp_event(event)
    back = acc.from_dp_event(acc.to_dp_event(curve), relation="add-remove")
    assert back.epsilon(delta=DELTA).value == pytest.approx(curve.epsilon(delta=DELTA).value, rel=1e-9)
    for accountant in (PLDAccountant(value_discretization_interval=1e-3), RdpAccountant(orders=[2, 4, 8, 16, 32])):
        if accountant.supports(there):
            theirs = accountant.compose(there).get_epsilon(DELTA)
            assert curve.epsilon(delta=DELTA).value <= theirs * (1 + 1e-6) + 1e-9
            if isinstance(accountant, PLDAccountant) and math.isfinite(theirs):
                assert theirs <= curve.epsilon(delta=DELTA).value * 1.02 + 0.03


def test_discrete_gaussian_noise_travels_as_its_zcdp():
    there = acc.to_dp_event(acc.discrete_gaussian(std=10, count=3))
    assert there.count == 3
    assert there.event.rho == pytest.approx(0.005, rel=1e-12)
    vector = acc.to_dp_event(acc.discrete_gaussian(std=10, sensitivity=math.sqrt(2)))
    assert vector.rho == pytest.approx(0.01, rel=1e-12)
    assert epsilon(there).value >= acc.compose(acc.discrete_gaussian(std=10, count=3)).epsilon(delta=DELTA).value


@pytest.mark.parametrize(
    ("event", "remedy"),
    [
        (acc.shuffled(local_epsilon=1, users=10, relation="zero-out"), "pure\\(epsilon=1\\) bounds it"),
        (acc.bounded_range(epsilon=2), "pure\\(epsilon=2\\) bounds it"),
        (acc.approximate(epsilon=1, delta=1e-7), "1e-07 that is lost outright off its target"),
        (acc.renyi_curve({2: 0.1, 4: 0.2}), "all of it here"),
        (acc.shuffled_bits(users=30, probability=0.5), "all of it here"),
    ],
    ids=str,
)
def test_what_dp_accounting_does_not_know_is_refused_with_what_to_do(event, remedy):
    with pytest.raises(ParameterError, match=f"dp-accounting has no event.*{remedy}"):
        acc.to_dp_event(event)


def test_disjoint_users_and_other_things_are_refused():
    with pytest.raises(ParameterError, match="no parallel"):
        acc.to_dp_event(acc.parallel(acc.gaussian(std=1), acc.laplace(scale=1)))
    with pytest.raises(ParameterError, match="expected an event or a curve"):
        acc.to_dp_event("gaussian")
    with pytest.raises(ParameterError, match="expected an event of dp-accounting"):
        acc.from_dp_event(acc.gaussian(std=1), relation="add-remove")


# --- generated events against their accountants ---------------------------------------------------------------------

LEAVES = st.one_of(
    st.builds(dp.GaussianDpEvent, st.floats(0.5, 20)),
    st.builds(dp.LaplaceDpEvent, st.floats(0.5, 20)),
    st.builds(KINDS.DiscreteLaplaceDpEvent, st.floats(0.05, 1.5), st.integers(1, 4)),
    st.builds(dp.PoissonSampledDpEvent, st.floats(0.01, 0.9), st.builds(dp.GaussianDpEvent, st.floats(0.7, 10))),
    st.just(dp.NoOpDpEvent()),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(dp.SelfComposedDpEvent, inner, st.integers(1, 5)),
        st.builds(dp.ComposedDpEvent, st.lists(inner, max_size=3)),
    ),
    max_leaves=4,
)


@given(TREES)
@settings(max_examples=15, deadline=None)
def test_generated_trees_cost_what_the_pld_says(event):
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(DELTA)
    if theirs > 60:  # their grid of 10⁻³ is all that is compared
        return
    ours = epsilon(event)
    assert ours.value <= theirs * 1.02 + 0.05  # a bound, where nothing tighter is known
    assert theirs <= ours.upper * 1.02 + 0.05
    again = acc.from_dp_event(
        acc.to_dp_event(acc.from_dp_event(event, relation="add-remove")), relation="add-remove"
    ).epsilon(delta=DELTA)
    assert again.value == pytest.approx(ours.value, rel=1e-9, abs=1e-12)


RENYI = st.one_of(
    st.builds(dp.GaussianDpEvent, st.floats(0.7, 20)),
    st.builds(KINDS.ZCDpEvent, st.floats(0, 2), st.floats(0, 1)),
    st.builds(
        dp.PoissonSampledDpEvent,
        st.floats(0.01, 0.9),
        st.lists(st.builds(dp.GaussianDpEvent, st.floats(1, 9)), min_size=1, max_size=3).map(dp.ComposedDpEvent),
    ),
    st.builds(
        dp.PoissonSampledDpEvent,
        st.floats(0.01, 0.9),
        st.builds(dp.SelfComposedDpEvent, st.builds(dp.GaussianDpEvent, st.floats(2, 9)), st.integers(1, 4)),
    ),
)


@given(st.lists(RENYI, min_size=1, max_size=3), st.integers(1, 20))
@settings(max_examples=12, deadline=None)
def test_generated_compositions_cost_at_most_what_their_orders_say(events, count):
    event = dp.SelfComposedDpEvent(dp.ComposedDpEvent(events), count)
    orders = np.concatenate([np.linspace(1.1, 10, 30), np.arange(11, 100, 4)])
    theirs = RdpAccountant(orders=orders).compose(event).get_epsilon(DELTA)
    assert epsilon(event).value <= theirs * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8, 1000, [3, 900, 12]])
def test_trees_cost_what_their_orders_say(steps):
    event = KINDS.SingleEpochTreeAggregationDpEvent(5.0, steps)
    orders = np.concatenate([np.linspace(1.01, 10, 400), np.linspace(10.5, 500, 200)])
    accountant = RdpAccountant(orders=orders, neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    theirs = accountant.compose(event).get_epsilon(DELTA)
    largest = max(steps) if isinstance(steps, list) else steps
    ours = acc.gdp_epsilon(math.sqrt(largest.bit_length()) / 5, DELTA).value
    assert epsilon(event).value == pytest.approx(ours, rel=1e-12)
    assert ours <= theirs <= 1.3 * ours  # orders are no exact curve


@pytest.mark.parametrize(("p", "m"), [(0.5, 2), (0.1, 2), (0.3, 7), (0.9, 40)])
def test_randomised_response_is_theirs_under_replacement(p, m):
    event = dp.SelfComposedDpEvent(KINDS.RandomizedResponseDpEvent(p, m), 1)
    accountant = PLDAccountant(NeighboringRelation.REPLACE_ONE)
    theirs = accountant.compose(event).get_epsilon(DELTA)
    assert epsilon(event).value == pytest.approx(theirs, abs=2e-4)
    assert epsilon(event, sensitivity=2).value == epsilon(event).value


@pytest.mark.parametrize(
    "event",
    [
        KINDS.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.9, 0.1]),
        KINDS.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0, 3.0], [0.5, 0.3, 0.2]),
    ],
)
def test_mixtures_are_theirs(event):
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(DELTA)
    assert epsilon(event).value <= theirs * (1 + 1e-6)  # a grid is made so fine that δ is good to 10⁻⁵
    assert theirs <= epsilon(event).value * 1.01 + 1e-2


# --- edges ------------------------------------------------------------------------------------------------------------

GAUSSIAN = dp.GaussianDpEvent(2.0)


@pytest.mark.parametrize(
    "event",
    [
        dp.NoOpDpEvent(),
        dp.ComposedDpEvent([]),
        dp.SelfComposedDpEvent(GAUSSIAN, 0),
        dp.SelfComposedDpEvent(dp.NonPrivateDpEvent(), 0),
        dp.PoissonSampledDpEvent(0.3, dp.NoOpDpEvent()),
        dp.PoissonSampledDpEvent(0.0, GAUSSIAN),
        dp.PoissonSampledDpEvent(0.0, dp.NonPrivateDpEvent()),
        dp.GaussianDpEvent(math.inf),
        dp.LaplaceDpEvent(math.inf),
        KINDS.RandomizedResponseDpEvent(1.0, 3),
        KINDS.RandomizedResponseDpEvent(0.0, 1),
        KINDS.DiscreteLaplaceDpEvent(0.5, 0),
        KINDS.ZCDpEvent(0.0),
        KINDS.SingleEpochTreeAggregationDpEvent(1.0, 0),
        KINDS.SingleEpochTreeAggregationDpEvent(1.0, []),
        KINDS.MixtureOfGaussiansDpEvent(0.0, [0.0], [1.0]),
    ],
    ids=str,
)
def test_what_leaks_nothing_costs_nothing(event):
    assert epsilon(event).upper == 0.0
    assert (
        acc.to_dp_event(acc.from_dp_event(event, relation="add-remove")) == dp.ComposedDpEvent([])
        or epsilon(event).value == 0
    )


@pytest.mark.parametrize(
    "event",
    [
        dp.NonPrivateDpEvent(),
        dp.SelfComposedDpEvent(dp.NonPrivateDpEvent(), 3),
        dp.ComposedDpEvent([GAUSSIAN, dp.NonPrivateDpEvent()]),
        dp.PoissonSampledDpEvent(0.1, dp.NonPrivateDpEvent()),
        dp.PoissonSampledDpEvent(0.1, dp.GaussianDpEvent(0.0)),
        dp.GaussianDpEvent(0.0),
        dp.LaplaceDpEvent(0),
        KINDS.DiscreteLaplaceDpEvent(0, 1),
        KINDS.RandomizedResponseDpEvent(0.0, 2),
        KINDS.SingleEpochTreeAggregationDpEvent(0.0, 4),
        KINDS.MixtureOfGaussiansDpEvent(0.0, [0.0, 1.0], [0.5, 0.5]),
    ],
    ids=str,
)
def test_what_protects_nothing_costs_infinity(event):
    for delta in (1e-5, 0.5, 1 - 2**-53):
        found = acc.from_dp_event(event, relation="add-remove").epsilon(delta=delta)
        assert found.value == found.upper == math.inf
        assert found.reason
    assert acc.from_dp_event(event, relation="add-remove").delta(epsilon=10).upper == 1.0
    theirs = PLDAccountant()
    if theirs.supports(event):
        assert theirs.compose(event).get_epsilon(0.5) == math.inf


@pytest.mark.parametrize(
    "event",
    [
        dp.SelfComposedDpEvent(GAUSSIAN, 2.9),
        dp.SelfComposedDpEvent(GAUSSIAN, -2),
        dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(GAUSSIAN, -2), -1),
        dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(GAUSSIAN, -2), 0),
        dp.SelfComposedDpEvent(GAUSSIAN, math.nan),
        dp.SelfComposedDpEvent(GAUSSIAN, "two"),
        dp.GaussianDpEvent(-1.0),
        dp.GaussianDpEvent(math.nan),
        dp.LaplaceDpEvent(-math.inf),
        KINDS.DiscreteLaplaceDpEvent(-0.1, 1),
        KINDS.DiscreteLaplaceDpEvent(0.1, 1.5),
        KINDS.RandomizedResponseDpEvent(1.5, 2),
        KINDS.RandomizedResponseDpEvent(-0.1, 2),
        KINDS.RandomizedResponseDpEvent(0.5, 0),
        KINDS.ZCDpEvent(-0.1),
        KINDS.ZCDpEvent(0.1, -5),
        dp.PoissonSampledDpEvent(1.5, GAUSSIAN),
        dp.PoissonSampledDpEvent(math.nan, dp.NoOpDpEvent()),
        dp.PoissonSampledDpEvent(0.5, KINDS.ZCDpEvent(0.1)),
        KINDS.SingleEpochTreeAggregationDpEvent(1.0, 2.5),
        KINDS.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.4]),
        dp.UnsupportedDpEvent(),
        KINDS.RepeatAndSelectDpEvent(GAUSSIAN, 1.5, -2.0),
    ],
    ids=str,
)
def test_nonsense_is_refused(event):
    with pytest.raises(ParameterError):
        acc.from_dp_event(event, relation="add-remove")


def test_xi_counts():
    """(ξ, ρ)-zCDP is ξ more at every order."""
    plain, more = epsilon(KINDS.ZCDpEvent(0.1)).value, epsilon(KINDS.ZCDpEvent(0.1, xi=5)).value
    assert more == pytest.approx(plain + 5, rel=1e-9)


@pytest.mark.parametrize("moved", [1.2, 2, 3])
def test_zcdp_of_several_neighbours_is_group_privacy(moved):
    """k²ρ is attained by Gaussian noise; ξ of an ε-DP mechanism grows at least k-fold."""
    k = math.ceil(moved)
    found = epsilon(KINDS.ZCDpEvent(0.01), sensitivity=moved).value
    assert found == pytest.approx(acc.zcdp_to_epsilon(0.01 * k * k, DELTA).value, rel=1e-6)
    assert found >= acc.gdp_epsilon(k * math.sqrt(0.02), DELTA).value
    shifted = epsilon(KINDS.ZCDpEvent(0.0, 0.5), sensitivity=moved).upper
    assert shifted >= 0.5 * k * (1 - 1e-6) - 1e-3
    assert epsilon(KINDS.ZCDpEvent(0.01), sensitivity=0.5).value == epsilon(KINDS.ZCDpEvent(0.01)).value


@pytest.mark.parametrize("moved", [1.5, 2])
def test_noise_is_relative_to_what_a_neighbour_moves(moved):
    assert epsilon(GAUSSIAN, sensitivity=moved).value == pytest.approx(acc.gdp_epsilon(moved / 2, DELTA).value)
    noise = acc.from_dp_event(dp.LaplaceDpEvent(3.0), sensitivity=moved, relation="replace-one")
    plain = acc.compose(acc.laplace(scale=3, sensitivity=moved))
    assert noise.relation == "replace-one"
    assert noise != plain  # it says what the other does not
    assert noise.epsilon(delta=DELTA).value == plain.epsilon(delta=DELTA).value
    for event in (dp.PoissonSampledDpEvent(0.1, GAUSSIAN), KINDS.MixtureOfGaussiansDpEvent(1.0, [1.0], [1.0])):
        with pytest.raises(ParameterError, match="one clipping norm"):
            acc.from_dp_event(event, sensitivity=moved, relation="add-remove")
    with pytest.raises(ParameterError, match="integers"):
        acc.from_dp_event(KINDS.DiscreteLaplaceDpEvent(0.1, 1), sensitivity=1.5, relation="add-remove")


@pytest.mark.parametrize("shape", [0.0, 1.0, 0.5, math.inf])
def test_the_best_of_several_runs_costs_at_most_what_their_orders_say(shape):
    event = KINDS.RepeatAndSelectDpEvent(dp.SelfComposedDpEvent(dp.GaussianDpEvent(20.0), 4), 12.0, shape)
    orders = np.concatenate([np.linspace(1.1, 10, 30), np.arange(11, 400, 4)])
    theirs = RdpAccountant(orders=orders).compose(event).get_epsilon(DELTA)
    assert theirs * 0.7 <= epsilon(event).value <= theirs * 1.01  # two upper bounds


@pytest.mark.parametrize("seed", range(60))
def test_no_composition_with_a_best_run_costs_more_than_by_their_orders(seed):
    """Theirs scans few orders of the same theorem; at any of them ours is at most rounding looser."""
    rng = np.random.default_rng([35, seed])

    def noise(low, high):
        return dp.GaussianDpEvent(math.exp(rng.uniform(math.log(low), math.log(high))))

    run = noise(0.7, 80)
    if rng.random() < 0.3:
        run = dp.SelfComposedDpEvent(dp.LaplaceDpEvent(rng.uniform(1, 20)), int(rng.integers(1, 20)))
    shape = float(rng.choice([0.0, 0.3, 1.0, 4.0, math.inf]))
    best = KINDS.RepeatAndSelectDpEvent(run, math.exp(rng.uniform(0.1, 6)), shape)
    others = [dp.SelfComposedDpEvent(noise(0.7, 80), int(rng.integers(1, 100))), KINDS.ZCDpEvent(rng.uniform(0, 0.3))]
    event = dp.ComposedDpEvent([best, *others[: rng.integers(0, 3)]])
    delta = 10 ** rng.uniform(-12, -0.5)
    theirs = RdpAccountant().compose(event).get_epsilon(delta)
    ours = acc.compose(acc.from_dp_event(event, relation="add-remove")).epsilon(delta=delta)
    assert ours.upper <= theirs * (1 + 1e-9)


def test_runs_without_choice_cost_what_they_cost():
    once = KINDS.RepeatAndSelectDpEvent(GAUSSIAN, 1.0, 1.0)
    assert acc.from_dp_event(once, relation="add-remove") == acc.from_dp_event(GAUSSIAN, relation="add-remove")
    assert epsilon(KINDS.RepeatAndSelectDpEvent(dp.NoOpDpEvent(), 9.0, 0.0)).value == 0
    assert epsilon(KINDS.RepeatAndSelectDpEvent(dp.NonPrivateDpEvent(), 9.0, 0.0)).value == math.inf
    for mean, shape in ((0.5, 1.0), (-1.0, math.inf), (5.0, -1.0), (5.0, math.nan), (math.nan, 1.0)):
        with pytest.raises(ParameterError):
            acc.from_dp_event(KINDS.RepeatAndSelectDpEvent(GAUSSIAN, mean, shape), relation="add-remove")


@pytest.mark.parametrize("rate", [0.01, 0.4])
def test_samples_of_laplace_noise_are_theirs(rate):
    event = dp.SelfComposedDpEvent(dp.PoissonSampledDpEvent(rate, dp.LaplaceDpEvent(1.5)), 10)
    theirs = PLDAccountant(value_discretization_interval=1e-3).compose(event).get_epsilon(DELTA)
    ours = epsilon(event)
    assert ours.value <= theirs * 1.01 + 1e-9
    assert theirs <= ours.upper * 1.02 + 0.03
    mixed = dp.PoissonSampledDpEvent(rate, dp.ComposedDpEvent([dp.LaplaceDpEvent(1.5), dp.GaussianDpEvent(2.0)]))
    apart = dp.ComposedDpEvent([dp.LaplaceDpEvent(1.5), dp.GaussianDpEvent(2.0)])
    assert epsilon(dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(2.0))).value < epsilon(mixed).upper
    assert epsilon(mixed).value < epsilon(apart).upper


def test_a_batch_replaces_a_member():
    """Their accountant reads the multiplier inside as that of replacing a member: half of what is charged here."""
    batch = KINDS.SampledWithoutReplacementDpEvent(1000, 20, dp.GaussianDpEvent(4.0))
    halved = KINDS.SampledWithoutReplacementDpEvent(1000, 20, dp.GaussianDpEvent(2.0))
    orders = np.concatenate([np.linspace(1.1, 10, 30), np.arange(11, 200, 4)])
    accountant = RdpAccountant(orders=orders, neighboring_relation=NeighboringRelation.REPLACE_ONE)
    theirs = accountant.compose(dp.SelfComposedDpEvent(halved, 100)).get_epsilon(DELTA)
    ours = epsilon(dp.SelfComposedDpEvent(batch, 100), "replace-one")
    assert ours.value <= theirs * (1 + 1e-6)
    assert ours.value >= epsilon(dp.SelfComposedDpEvent(batch, 100)).value * (1 - 1e-6)
    made = acc.without_replacement(
        event=acc.gaussian(std=4, sensitivity=2), users=1000, batch=20, relation="replace-one"
    )
    assert ours.value == pytest.approx(acc.compose(100 * made).epsilon(delta=DELTA).value, rel=1e-9)
    assert epsilon(KINDS.SampledWithoutReplacementDpEvent(9, 0, GAUSSIAN)).value == 0
    assert epsilon(KINDS.SampledWithoutReplacementDpEvent(9, 2, dp.NonPrivateDpEvent())).value == math.inf
    for n, b, moved in ((9, 10, 1), (9, 1.5, 1), (0, 0, 1), (9, 2, 1.5)):
        with pytest.raises(ParameterError):
            epsilon(KINDS.SampledWithoutReplacementDpEvent(n, b, GAUSSIAN), sensitivity=moved)
    with pytest.raises(ParameterError, match="accountants disagree under REPLACE_ONE"):
        acc.to_dp_event(made)


def test_batches_with_replacement_cost_the_same_whichever_way_a_user_differs():
    event = dp.SelfComposedDpEvent(KINDS.SampledWithReplacementDpEvent(1000, 10, dp.GaussianDpEvent(5.0)), 100)
    made = acc.compose(acc.with_replacement(std=5, users=1000, draws=10, count=100, relation="replace-one"))
    for relation in ("replace-one", "add-remove", "zero-out"):
        assert epsilon(event, relation).value == pytest.approx(made.epsilon(delta=DELTA).value, rel=1e-9)
    with pytest.raises(ParameterError, match="one clipping norm"):
        epsilon(event, sensitivity=2)
    with pytest.raises(ParameterError, match="expected Gaussians"):
        epsilon(KINDS.SampledWithReplacementDpEvent(9, 2, dp.LaplaceDpEvent(1.0)), "replace-one")
    assert epsilon(KINDS.SampledWithReplacementDpEvent(9, 0, GAUSSIAN), "replace-one").value == 0


def test_truncated_samples_are_theirs_or_above():
    """Both are bounds; where hardly any sample is cut they are those of plain Poisson sampling."""
    event = KINDS.TruncatedSubsampledGaussianDpEvent(999, 0.01, 60, 2.0)
    ours, plain = epsilon(event), epsilon(dp.PoissonSampledDpEvent(0.01, GAUSSIAN))
    assert plain.value <= ours.upper * (1 + 1e-9)
    assert ours.value <= plain.upper * 1.05 + 0.01
    made = acc.truncated_poisson_gaussian(std=2, rate=0.01, users=1000, most=60, relation="add-remove")
    assert acc.from_dp_event(event, relation="add-remove") == acc.compose(made)
    assert acc.to_dp_event(made) == event
    for n, q, b, std in ((999, 0.0, 5, 1.0), (999, 0.1, 0, 1.0), (999, 0.1, 5, math.inf)):
        assert epsilon(KINDS.TruncatedSubsampledGaussianDpEvent(n, q, b, std)).value == 0
    assert epsilon(KINDS.TruncatedSubsampledGaussianDpEvent(999, 0.1, 5, 0.0)).value == math.inf
    with pytest.raises(ParameterError):
        epsilon(KINDS.TruncatedSubsampledGaussianDpEvent(999, 1.1, 5, 1.0))


def test_samples_of_samples_are_samples():
    once = dp.PoissonSampledDpEvent(0.25, dp.PoissonSampledDpEvent(0.5, GAUSSIAN))
    assert epsilon(once).value == pytest.approx(epsilon(dp.PoissonSampledDpEvent(0.125, GAUSSIAN)).value, rel=1e-9)
    assert acc.from_dp_event(dp.PoissonSampledDpEvent(1, GAUSSIAN), relation="add-remove") == acc.from_dp_event(
        GAUSSIAN, relation="add-remove"
    )


# --- events of its main branch, which 0.6.0 does not have ------------------------------------------------------------

NEWER = {
    name: getattr(KINDS, name, None) or make_dataclass(name, fields, bases=(KINDS.DpEvent,), frozen=True)
    for name, fields in {
        "EpsilonDeltaDpEvent": ["epsilon", "delta"],
        "ExponentialMechanismDpEvent": ["epsilon"],
        "PermuteAndFlipDpEvent": ["epsilon"],
        "DiscreteGaussianDpEvent": ["sigma", ("sensitivity", float, 1.0), ("dimension", object, None)],
        "RandomAllocationDpEvent": ["event", "num_selected", "num_steps"],
    }.items()
}
EPSILON_DELTA, EXPONENTIAL, PERMUTE, DISCRETE, ALLOCATION = NEWER.values()


@pytest.fixture
def newer(monkeypatch):
    for name, kind in NEWER.items():
        monkeypatch.setattr(KINDS, name, kind, raising=False)


EXAMPLES = [
    dp.NoOpDpEvent(),
    dp.NonPrivateDpEvent(),
    dp.GaussianDpEvent(1.0),
    dp.LaplaceDpEvent(1.0),
    dp.SelfComposedDpEvent(GAUSSIAN, 2),
    dp.ComposedDpEvent([GAUSSIAN]),
    dp.PoissonSampledDpEvent(0.1, GAUSSIAN),
    KINDS.RandomizedResponseDpEvent(0.5, 3),
    KINDS.DiscreteLaplaceDpEvent(1.0, 1),
    KINDS.SampledWithReplacementDpEvent(9, 2, GAUSSIAN),
    KINDS.SampledWithoutReplacementDpEvent(9, 2, GAUSSIAN),
    KINDS.SingleEpochTreeAggregationDpEvent(1.0, 4),
    KINDS.RepeatAndSelectDpEvent(GAUSSIAN, 2.0, 1.0),
    KINDS.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]),
    KINDS.ZCDpEvent(0.1),
    KINDS.TruncatedSubsampledGaussianDpEvent(99, 0.1, 20, 1.0),
    EPSILON_DELTA(0.5, 1e-6),
    EXPONENTIAL(0.5),
    PERMUTE(0.5),
    DISCRETE(2.0),
    ALLOCATION(GAUSSIAN, 1, 10),
]
UNREAD = {"DpEvent", "UnsupportedDpEvent"}  # one is none, the other says so itself


@pytest.mark.usefixtures("newer")
def test_every_event_that_dp_accounting_has_is_read():
    known = {name for name, kind in inspect.getmembers(KINDS, inspect.isclass) if issubclass(kind, KINDS.DpEvent)}
    assert known == {type(event).__name__ for event in EXAMPLES} | UNREAD
    for event in EXAMPLES:
        assert epsilon(event).upper >= epsilon(event).value >= 0


@pytest.mark.parametrize("name", NEWER)
def test_events_of_other_modules_are_not_taken_for_its_own(newer, name):
    other = make_dataclass(name, ["one", "another"], bases=(KINDS.DpEvent,), frozen=True)
    with pytest.raises(ParameterError, match="no curve for this dp-accounting event"):
        epsilon(other(0.5, 0.0))


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize(
    ("event", "written"),
    [
        (acc.pure(epsilon=0.4, count=7), EPSILON_DELTA(0.4, 0.0)),
        (acc.approximate(epsilon=0.3, delta=1e-9, count=7), EPSILON_DELTA(0.3, 1e-9)),
        (acc.approximate(epsilon=0, delta=1e-9), EPSILON_DELTA(0.0, 1e-9)),
        (acc.above_threshold(threshold_scale=10, query_scale=40), EPSILON_DELTA(pytest.approx(0.15), 0.0)),
        (acc.exponential_mechanism(epsilon=0.5), EXPONENTIAL(0.5)),
        (acc.exponential_mechanism(epsilon=0.5, monotone=True, count=3), EXPONENTIAL(0.25)),
        (acc.bounded_range(epsilon=0.5, count=3), EXPONENTIAL(0.5)),
        (acc.noisy_max(noise="gumbel", scale=10), EXPONENTIAL(0.2)),
        (acc.permute_and_flip(epsilon=0.5), PERMUTE(0.5)),
        (acc.permute_and_flip(epsilon=0.5, monotone=True), PERMUTE(0.25)),
        (acc.discrete_gaussian(std=3, sensitivity=2, count=4), DISCRETE(3.0, 2.0, 1)),
        (acc.discrete_gaussian(std=9, sensitivity=1.5), DISCRETE(9.0, 1.5, None)),
        (acc.laplace_histogram(scale=2, threshold=40, contribution=1, keys=1), None),
        (
            acc.random_allocation(std=2, rounds=20, participations=3, epochs=2, relation="add-remove"),
            ALLOCATION(dp.GaussianDpEvent(2.0), 3, 20),
        ),
    ],
    ids=str,
)
def test_newer_events_are_written_where_they_are_there(event, written):
    there, curve = acc.to_dp_event(event), acc.compose(event)
    if written is not None:
        assert there == (dp.SelfComposedDpEvent(written, event.count) if event.count > 1 else written)
    back = acc.from_dp_event(acc.to_dp_event(curve), relation="add-remove")
    for at in (1e-12, 1e-6, 0.01):
        assert back.epsilon(delta=at).upper == pytest.approx(curve.epsilon(delta=at).upper, rel=1e-9)


def test_what_is_not_there_yet_is_written_by_what_is(monkeypatch):
    for name in NEWER:
        monkeypatch.delattr(KINDS, name, raising=False)
    assert acc.to_dp_event(acc.pure(epsilon=0.4)) == KINDS.DiscreteLaplaceDpEvent(0.4, 1)
    assert acc.to_dp_event(acc.permute_and_flip(epsilon=0.5)) == dp.LaplaceDpEvent(2.0)
    refused = (
        acc.exponential_mechanism(epsilon=1),
        acc.approximate(epsilon=1, delta=1e-9),
        acc.random_allocation(std=2, rounds=20, relation="add-remove"),
    )
    for event in refused:
        with pytest.raises(ParameterError, match="dp-accounting has no event"):
            acc.to_dp_event(event)


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one"])
def test_random_allocations_are_read(relation):
    once, epochs = ALLOCATION(dp.GaussianDpEvent(2.0), 2, 20), ALLOCATION(dp.GaussianDpEvent(2.0), 1, 20)
    ours = acc.random_allocation(std=2, rounds=20, participations=2, relation=relation)
    assert epsilon(once, relation).upper == acc.compose(ours).epsilon(delta=DELTA).upper
    several = dp.SelfComposedDpEvent(epochs, 3)
    ours = acc.random_allocation(std=2, rounds=20, epochs=3, relation=relation)
    assert epsilon(several, relation).upper == acc.compose(ours).epsilon(delta=DELTA).upper
    assert epsilon(ALLOCATION(dp.GaussianDpEvent(2.0), 0, 20), relation).upper == 0
    every = dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 20)
    assert epsilon(ALLOCATION(dp.GaussianDpEvent(2.0), 20, 20), relation).upper >= epsilon(every, relation).value
    assert epsilon(ALLOCATION(dp.NonPrivateDpEvent(), 1, 20), relation).upper == math.inf
    laplaces = ALLOCATION(dp.ComposedDpEvent([dp.LaplaceDpEvent(3.0), GAUSSIAN]), 1, 20)
    if relation == "replace-one":
        with pytest.raises(ParameterError, match="only Gaussian noise"):
            epsilon(laplaces, relation)
    else:
        inner = acc.from_dp_event(laplaces.event, relation=relation).epsilon(delta=DELTA).upper
        assert epsilon(laplaces, relation).upper < inner
    for wrong in (ALLOCATION(GAUSSIAN, 3, 2), ALLOCATION(GAUSSIAN, -1, 2), ALLOCATION(GAUSSIAN, 1.5, 2)):
        with pytest.raises(ParameterError):
            epsilon(wrong, relation)


def hockey_stick(p, q, at):
    return float(np.maximum(np.asarray(p) - math.exp(at) * np.asarray(q), 0).sum())


def delta(event, at, relation="add-remove", **how):
    return acc.from_dp_event(event, relation=relation, **how).delta(epsilon=at)


@given(st.floats(0, 3), st.floats(0, 0.3), st.integers(1, 6), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_several_guarantees_compose_as_kairouz_oh_and_viswanath_say(e, lost, count, share):
    """1 − δ is that nothing is lost in any release times the hockey-stick of binary randomised response."""
    at, kept = share * count * e, math.exp(e) / (1 + math.exp(e))
    apart = math.fsum(
        math.comb(count, j) * max(0.0, kept ** (count - j) * (1 - kept) ** j * (1 - math.exp(at - (count - 2 * j) * e)))
        for j in range(count + 1)
    )
    truth = 1 - (1 - lost) ** count * (1 - apart)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KINDS, "EpsilonDeltaDpEvent", EPSILON_DELTA, raising=False)
        ours = delta(dp.SelfComposedDpEvent(EPSILON_DELTA(e, lost), count), at)
    assert truth * (1 - 1e-9) - 1e-12 <= ours.upper
    assert ours.value <= truth * (1 + 1e-6) + 1e-9


def test_a_sampled_guarantee_is_amplified(newer):
    """(ln(1 + q(e^ε − 1)), qδ) (Balle, Barthe & Gaboardi 2018, Theorem 8), which the pair of the guarantee attains."""
    for e, lost, q in ((0.5, 1e-3, 0.1), (2.0, 0.0, 0.01), (0.1, 0.2, 0.9)):
        event = dp.PoissonSampledDpEvent(q, EPSILON_DELTA(e, lost))
        found = delta(event, math.log1p(q * math.expm1(e)))
        assert found.upper == pytest.approx(q * lost, rel=1e-6, abs=1e-9)
        assert found.upper >= q * lost


@pytest.mark.parametrize("q", [0.05, 0.5])
@pytest.mark.parametrize("e", [0.3, 1.5])
def test_a_sampled_guarantee_where_one_user_replaces_another(newer, q, e):
    """Two users with opposite bits: without either the answer is a coin, with one it leans to that user's side."""
    p = min(math.exp(e) / 2, 1 - math.exp(-e) / 2)
    for kind in (EPSILON_DELTA(e, 0.0), EXPONENTIAL(2 * e), PERMUTE(e)):
        there, other = ([(1 - q) / 2 + q * x, (1 - q) / 2 + q * (1 - x)] for x in (p, 1 - p))
        for at in (0.0, e / 4, e):
            truth = hockey_stick(there, other, at)
            assert truth <= delta(dp.PoissonSampledDpEvent(q, kind), at, "replace-one").upper * (1 + 1e-12)
        plain = acc.from_dp_event(kind, relation="replace-one").epsilon(delta=1e-6).upper
        assert epsilon(dp.PoissonSampledDpEvent(q, kind), "replace-one").upper <= plain * (1 + 1e-9)


def exponential_law(scores, e):
    weights = np.exp(e * (np.array(scores) - max(scores)) / 2)
    return weights / weights.sum()


def permuted_law(scores, e):
    """Permute-and-flip, order by order."""
    taken, law = [math.exp(e * (x - max(scores)) / 2) for x in scores], np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for y in order:
            law[y] += left * taken[y]
            left *= 1 - taken[y]
    return law / math.factorial(len(scores))


SCORES = st.lists(st.tuples(st.floats(-3, 3), st.sampled_from([-1.0, -0.4, 0.0, 1.0])), min_size=2, max_size=4)


@pytest.mark.parametrize(
    ("kind", "law"), [(EXPONENTIAL, exponential_law), (PERMUTE, permuted_law)], ids=["exponential", "permute-and-flip"]
)
@given(SCORES, st.tuples(st.floats(0.05, 3), st.integers(1, 2), st.sampled_from([1, 2]), st.floats(0, 1)))
@settings(max_examples=60, deadline=None)
def test_selections_cost_at_least_what_generated_scores_leak(kind, law, scores, drawn):
    """Scores of sensitivity 1 that move by ±`users`; all pairs of outputs of two releases."""
    e, count, users, share = drawn
    here, there = (law([x + users * way * move for x, move in scores], e) for way in (0, 1))
    p, q = (np.multiply.outer(x, x).ravel() if count == 2 else x for x in (here, there))
    at = share * count * users * e
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KINDS, kind.__name__, kind, raising=False)
        found = delta(dp.SelfComposedDpEvent(kind(e), count), at, "add-remove" if users == 1 else "replace-one").upper
    assert max(hockey_stick(p, q, at), hockey_stick(q, p, at)) <= found * (1 + 1e-9) + 1e-12


def test_selections_attain_their_price(newer):
    """Two scores far apart, or equal, that move towards each other; half of all candidates move for the range."""
    e = 0.8
    apart = [permuted_law(x, e)[0] for x in ([0.0, 40.0], [1.0, 39.0])]
    assert math.log(apart[1] / apart[0]) == pytest.approx(e, rel=1e-9)
    assert delta(PERMUTE(e), e * (1 - 1e-6)).upper > 0
    assert delta(PERMUTE(e), e).upper == pytest.approx(0, abs=1e-12)
    at = 0.3
    best = max(hockey_stick([a, 1 - a], *[[a / (a + (1 - a) * math.exp(e)), 1 - a / (a + (1 - a) * math.exp(e))]], at)
               for a in np.linspace(0.001, 0.999, 20001))  # fmt: skip
    assert delta(EXPONENTIAL(e), at).upper == pytest.approx(best, rel=1e-6)
    assert delta(EXPONENTIAL(e), at).upper >= best


def moved_law(sigma, moves):
    """Discrete Gaussian noise on a vector and on the same vector elsewhere, on all points that matter."""
    reach = int(9 * sigma) + max(moves)
    axis = np.arange(-reach, reach + 1)
    mass = np.exp(-(np.arange(-3 * reach, 3 * reach + 1) ** 2) / 2 / sigma**2).sum()
    laws = [np.ones(1), np.ones(1)]
    for move in moves:
        for i, centre in enumerate((0, move)):
            laws[i] = np.multiply.outer(laws[i], np.exp(-((axis - centre) ** 2) / 2 / sigma**2) / mass).ravel()
    return laws


@pytest.mark.parametrize("sigma", [0.7, 1.6])
@pytest.mark.parametrize("square", [1, 2, 3, 4])
def test_discrete_gaussian_noise_on_integers_and_their_vectors(newer, sigma, square):
    worst = {True: 0.0, False: 0.0}
    root = math.isqrt(square)
    for at in (0.0, 0.7, 2.5):
        vectors = [moves for n in range(1, square + 1) for moves in itertools.combinations_with_replacement((1, 2), n)]
        for moves in vectors:
            if sum(x * x for x in moves) <= square:
                found = hockey_stick(*moved_law(sigma, moves), at)
                worst[len(moves) == 1] = max(worst[len(moves) == 1], found)
        for dimension in (None, 4):
            upper = delta(DISCRETE(sigma, math.sqrt(square), dimension), at).upper
            assert max(worst.values()) <= upper * (1 + 1e-9) + 1e-12
        scalar = delta(DISCRETE(sigma, float(root), 1), at).upper
        assert scalar == pytest.approx(hockey_stick(*moved_law(sigma, [root]), at), rel=1e-7, abs=1e-9)
        worst = dict.fromkeys(worst, 0.0)


def test_discrete_gaussian_noise_is_relative_to_what_a_neighbour_moves(newer):
    replaced = epsilon(DISCRETE(8.0, 1.0, 1), "replace-one").value
    assert replaced == epsilon(DISCRETE(8.0, 2.0, 1)).value
    assert epsilon(DISCRETE(8.0)).value >= epsilon(DISCRETE(8.0, 1.0, 1)).value


@pytest.mark.parametrize(
    ("event", "nothing"),
    [
        (EPSILON_DELTA(0.0, 0.0), True),
        (EXPONENTIAL(0.0), True),
        (PERMUTE(0.0), True),
        (DISCRETE(math.inf), True),
        (DISCRETE(2.0, 0.0), True),
        (EPSILON_DELTA(math.inf, 0.0), False),
        (EPSILON_DELTA(0.1, 1.0), False),
        (EXPONENTIAL(math.inf), False),
        (PERMUTE(math.inf), False),
        (DISCRETE(0.0), False),
    ],
    ids=str,
)
def test_the_ends_of_newer_events(newer, event, nothing):
    assert epsilon(event).upper == (0.0 if nothing else math.inf)
    assert epsilon(dp.SelfComposedDpEvent(event, 3), "replace-one").upper == (0.0 if nothing else math.inf)


@pytest.mark.parametrize(
    "event",
    [
        EPSILON_DELTA(-0.1, 0.0),
        EPSILON_DELTA(0.1, -1e-9),
        EPSILON_DELTA(0.1, 1.1),
        EPSILON_DELTA(math.nan, 0.0),
        EXPONENTIAL(-1.0),
        PERMUTE("one"),
        DISCRETE(-1.0),
        DISCRETE(1.0, -1.0),
        DISCRETE(1.0, 1.0, 0),
        DISCRETE(1.0, 1.0, 1.5),
        KINDS.RepeatAndSelectDpEvent(EPSILON_DELTA(0.1, 1e-9), 5.0, 1.0),
        KINDS.SampledWithReplacementDpEvent(9, 2, PERMUTE(0.1)),
    ],
    ids=str,
)
def test_nonsense_in_newer_events_is_refused(newer, event):
    with pytest.raises(ParameterError):
        acc.from_dp_event(event, relation="add-remove")
