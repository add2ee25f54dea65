"""The certified bounds against exact values, wherever both exist: never below, and not far above."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.combining import job_of
from privcheck.accounting.engine.grid import grid_epsilons, grid_log_deltas
from privcheck.accounting.engine.methods import HOW, atoms_of, epsilons_of
from privcheck.accounting.engine.renyi import renyi_epsilons

counts = st.integers(1, 40)
events = st.one_of(
    st.builds(lambda e, k: acc.pure(epsilon=e, count=k), st.floats(-4, 0.5).map(lambda t: 10.0**t), counts),
    st.builds(
        lambda e, m, k: acc.randomized_response(epsilon=e, categories=m, count=k),
        st.floats(0.01, 3),
        st.integers(2, 9),
        counts,
    ),
    st.builds(
        lambda b, k: acc.laplace(scale=b, count=k), st.floats(-0.5, 3).map(lambda t: 10.0**t), st.integers(1, 400)
    ),
    st.builds(
        lambda b, s, k: acc.discrete_laplace(scale=b, sensitivity=s, count=k),
        st.floats(0.3, 20),
        st.integers(1, 5),
        counts,
    ),
    st.builds(lambda s, k: acc.discrete_gaussian(std=s, count=k), st.floats(0.4, 30), counts),
    st.builds(lambda n, p: acc.shuffled_bits(users=n, probability=p), st.integers(30, 3000), st.floats(0.1, 0.9)),
    st.builds(
        lambda e, n: acc.shuffled(local_epsilon=e, users=n, relation="replace-one"),
        st.floats(0.05, 4),
        st.integers(1, 400),
    ),
    st.builds(
        lambda s, q: acc.poisson_gaussian(std=s, rate=q, relation="add-remove"),
        st.floats(0.3, 5),
        st.floats(0.001, 0.999),
    ),
)


# [lemma connect-the-dots]
@pytest.mark.every_change
@pytest.mark.slow
@settings(max_examples=80)
@given(events, st.floats(-40, -0.2).map(lambda t: 10.0**t))
def test_bounds_enclose_exact_values(event, delta):
    job, log_delta = job_of([event]), np.array([math.log(delta)])
    for direction in job.directions:
        found = epsilons_of(job, log_delta, direction)
        value = float(found.values[0])
        if HOW[found.how[0]].errs == "upper" or not math.isfinite(value):
            continue
        least = value * (1 - 1e-10) - 1e-13
        assert renyi_epsilons(job, log_delta, direction)[0] >= least or job.infinite(direction) > 0
        grid = float(grid_epsilons(job, log_delta, found.values, direction)[0][0])
        assert grid >= least
        if value > 1e-6 and math.isfinite(grid) and delta > 1e-12:
            assert grid <= value * 1.02 + 1e-3
        if 0 < value < job.largest(direction) * (1 - 1e-6):
            bound = grid_log_deltas(job, found.values, log_delta, direction)[0][0]
            assert bound >= log_delta[0] - 1e-8 * abs(log_delta[0])


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(events.filter(lambda e: e.kind not in ("laplace", "poisson_gaussian")), min_size=2, max_size=3),
    st.floats(-9, -1),
)
def test_mixtures_of_atoms_stay_below_their_grid(parts, exponent):
    job, log_delta = job_of(parts), exponent * math.log(10)
    for direction in job.directions:
        if (atoms := atoms_of(job, direction)) is None:
            continue
        exact = float(atoms.epsilons(np.array([log_delta]))[0])
        if math.isfinite(exact):
            grid = grid_epsilons(job, np.array([log_delta]), np.array([exact]), direction)[0][0]
            assert grid >= exact * (1 - 1e-10) - 1e-13


@pytest.mark.parametrize("count", [10**4, 10**6, 10**9])
def test_very_many_releases_keep_their_order(count):
    """Laplace of tiny ε each, in the limit a Gaussian of μ² = count·a² less a third of a³: values and bounds agree."""
    a = 1 / math.sqrt(count)
    found = acc.compose(acc.laplace(scale=math.sqrt(count), count=count)).epsilon(delta=1e-6)
    limit = acc.gdp_epsilon(
        math.sqrt(count * 2 * (a + math.expm1(-a))) if a > 1e-4 else math.sqrt(1 - a / 3), 1e-6
    ).value
    assert found.value == pytest.approx(limit, rel=5e-3 if found.direction != "upper" else 0.15)
    assert found.upper >= found.value * (1 - 1e-12)
