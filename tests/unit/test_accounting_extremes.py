"""Whatever numbers go in: a figure within its range, ∞ with a reason or a ParameterError; no NaN, hang or warning.

Warnings are errors in this suite, so an overflow that goes unnoticed in NumPy fails here too.
"""

import math
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import ParameterError

LONGEST = 10.0  # seconds of processor time for one example; most take milliseconds, the longest about two

sizes = [5e-324, 1e-300, 1e-30, 1e-9, 0.1, 0.5, 1, 2.5, 50, 1e4, 1e9, 1e30, 1e300]
nonsense = [0, -1, math.nan, math.inf, -math.inf, True, "x", "nan", None, [1], 1j]
others = ["0.5", np.float32(0.3), np.int64(7)]
numbers = st.one_of(st.sampled_from(sizes), st.sampled_from(sizes), st.sampled_from(nonsense + others))
counts = st.sampled_from(
    [1, 1, 2, 10, 1000, 10**6, 10**9, 10**15, "7", np.int64(3), 0, -3, 2.5, True, 10**16, math.nan, 1e300]
)
nodes = st.sampled_from([acc.gaussian(std=3), acc.laplace(scale=3), acc.laplace(scale=1e-3), acc.pure(epsilon=1)])
flags = st.sampled_from([True, False, False, 1, "no", None])
noises = st.sampled_from(["laplace", "exponential", "gumbel", "gaussian", None])
matrices = st.sampled_from(
    [[[1]], np.eye(4), np.tril(np.ones((5, 5))), 1e-90 * np.eye(3), 1e90 * np.eye(3), [[1, -1], [0, 1]], [], "x", None]
)
parts_of = st.sampled_from([[0, 1], [1, 2], [0], [0, 1e-9], [0, 0.5, 3], [0, 1e30], ["1", 2], [-1, 1], 3, None])
relations = st.sampled_from(["add-remove", "zero-out", "replace-one"])
chances = st.sampled_from([[0.5, 0.5], [1 - 1e-12, 1e-12], [1], [0.2, 0.3, 0.5], [1, 0], ["0.9", "0.1"], [2, -1], "x"])
CONSTRUCTORS = {
    acc.gaussian: {"std": numbers, "sensitivity": numbers},
    acc.laplace: {"scale": numbers, "sensitivity": numbers},
    acc.discrete_gaussian: {"std": numbers, "sensitivity": st.one_of(numbers, counts)},
    acc.discrete_laplace: {"scale": numbers, "sensitivity": counts},
    acc.symmetric_gaussian: {
        "variance": numbers,
        "kind": st.sampled_from(["goe", "upper", "x"]),
        "sensitivity": numbers,
    },
    acc.pure: {"epsilon": numbers},
    acc.approximate: {"epsilon": numbers, "delta": numbers},
    acc.zcdp: {"rho": numbers},
    acc.randomized_response: {"epsilon": numbers, "categories": counts},
    acc.poisson_gaussian: {
        "std": numbers,
        "rate": numbers,
        "sensitivity": numbers,
        "relation": st.sampled_from(["add-remove", "zero-out", "replace-one"]),
    },
    acc.without_replacement: {
        "event": nodes,
        "users": counts,
        "batch": counts,
        "relation": st.sampled_from(["add-remove", "replace-one"]),
    },
    acc.tree: {"node": nodes, "leaves": counts, "participations": counts, "separation": counts},
    acc.shuffled_bits: {"users": counts, "messages": counts, "probability": numbers},
    acc.shuffled: {"local_epsilon": numbers, "users": counts, "relation": relations},
    acc.shuffled_randomized_response: {"epsilon": numbers, "users": counts, "relation": relations},
    acc.exponential_mechanism: {"epsilon": numbers, "monotone": flags},
    acc.permute_and_flip: {"epsilon": numbers, "monotone": flags},
    acc.noisy_max: {"noise": noises, "scale": numbers, "sensitivity": numbers, "monotone": flags},
    acc.above_threshold: {"threshold_scale": numbers, "query_scale": numbers, "positives": counts},
    acc.laplace_histogram: {"scale": numbers, "threshold": numbers, "contribution": numbers, "keys": counts},
    acc.gaussian_histogram: {"std": numbers, "threshold": numbers, "contribution": numbers, "keys": counts},
    acc.matrix_gaussian: {
        "encoder": matrices,
        "std": numbers,
        "sensitivity": numbers,
        "participations": counts,
        "separation": counts,
    },
    acc.matrix_poisson_gaussian: {
        "encoder": matrices,
        "std": numbers,
        "rate": numbers,
        "separation": counts,
        "relation": relations,
    },
    acc.matrix_random_allocation: {
        "encoder": matrices,
        "std": numbers,
        "bins": counts,
        "separation": counts,
        "relation": relations,
    },
    acc.mixture_of_gaussians: {
        "std": numbers,
        "sensitivities": parts_of,
        "probabilities": chances,
        "relation": relations,
    },
}
companions = st.sampled_from(
    [(), (), (acc.gaussian(std=2),), (acc.laplace(scale=3),), (acc.pure(epsilon=0.1, count=3),), (acc.zcdp(rho=0.1),)]
)
deltas = st.sampled_from([0, 1e-300, 1e-60, 1e-15, 1e-6, 0.1, 0.9])
epsilons = st.sampled_from([0, 1e-300, 1e-9, 0.5, 3, 100, 1e4, 1e300])


def check(parts, delta, epsilon):
    started = time.process_time()
    curve = acc.compose(*parts)
    found, at = curve.epsilon(delta=delta), curve.delta(epsilon=epsilon)
    assert found.value >= 0
    assert math.isfinite(found.value) or found.reason
    assert found.upper >= found.value * (1 - 1e-6)  # an estimate may rest on a coarser law than its bound
    assert 0 <= at.value <= 1
    assert at.value * (1 - 1e-6) <= at.upper <= 1
    assert time.process_time() - started < LONGEST


def attempt(constructor, data, delta, epsilon):
    given_ = {name: data.draw(values, label=name) for name, values in CONSTRUCTORS[constructor].items()}
    try:
        event = constructor(**given_, count=data.draw(counts, label="count"))
    except ParameterError:
        return
    check((event, *data.draw(companions)), delta, epsilon)


@pytest.mark.parametrize("constructor", CONSTRUCTORS, ids=lambda c: c.__name__)
@given(data=st.data(), delta=deltas, epsilon=epsilons)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_any_numbers_end_well(constructor, data, delta, epsilon):
    attempt(constructor, data, delta, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("constructor", CONSTRUCTORS, ids=lambda c: c.__name__)
@given(data=st.data(), delta=deltas, epsilon=epsilons)
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
def test_many_numbers_end_well(constructor, data, delta, epsilon):
    attempt(constructor, data, delta, epsilon)


FOUND = [  # each broke something once
    (acc.discrete_laplace(scale=1e-300, sensitivity=7, count=10**6), acc.laplace(scale=3)),
    (acc.discrete_gaussian(std=0.5, sensitivity=1e16), acc.pure(epsilon=0.1, count=3)),
    (acc.discrete_gaussian(std=1e300),),
    (acc.discrete_gaussian(std=1e300, sensitivity=0.5, count=10**15),),
    (acc.symmetric_gaussian(variance=2.5, kind="upper", sensitivity=0.3),),
    (acc.shuffled_randomized_response(epsilon=5e-324, users=2, count=10, relation="replace-one"),),
    (acc.pure(epsilon=1e300, count=10), acc.laplace(scale=3)),
    (acc.pure(epsilon=1e300, count=10**9),),
    (acc.zcdp(rho=1e9, count=1000), acc.zcdp(rho=0.1)),
    (acc.approximate(epsilon=1, delta=0.1, count=10**9),),
    (acc.gaussian(std=1e9, sensitivity=1e-9, count=7),),
    (acc.laplace(scale=50, sensitivity=1e-300, count=1000),),
    (acc.laplace(scale=0.1, sensitivity=18, count=8),),
    (acc.shuffled_bits(users=1, messages=3, probability=1e-30, count=10), acc.zcdp(rho=0.1)),
    pytest.param(
        (acc.poisson_gaussian(std=50, rate=1e-5, sensitivity=1e-3, count=10**6, relation="add-remove"),),
        marks=pytest.mark.slow,
    ),
    (acc.poisson_gaussian(std=50, rate=1e-300, sensitivity=1e-300, count=10**6, relation="add-remove"),),
    pytest.param(
        (acc.poisson_gaussian(std=0.1, rate=1e-9, sensitivity=7, count=10**15, relation="add-remove"),),
        marks=pytest.mark.slow,
    ),
    (acc.randomized_response(epsilon=1e-30, categories=7, count=10**15),),
    (acc.discrete_laplace(scale=50, sensitivity=2, count=10**9),),
]


@pytest.mark.parametrize("parts", FOUND, ids=lambda parts: " + ".join(map(str, parts)))
def test_what_broke_once_ends_well(parts):
    for delta, epsilon in ((0, 0), (1e-300, 1e300), (1e-6, 1e-9), (0.9, 100)):
        check(parts, delta, epsilon)


@given(st.floats(1e-300, 1e-9), st.integers(1, 10**6))
@example(1e-160, 1)
@settings(max_examples=30)
def test_next_to_nothing_is_rounded_up_never_down(size, count):
    """TV of k releases is at least that of one, tanh(ε/2) or 2Φ(μ/2) − 1, whatever underflows on the way."""
    for event, least in (
        (acc.gaussian(std=1, sensitivity=size, count=count), size * 0.398),
        (acc.laplace(scale=1, sensitivity=size, count=count), size * 0.499),
        (acc.pure(epsilon=size, count=count), size * 0.499),
    ):
        assert acc.compose(event).advantage().value >= least


def test_many_at_once_where_there_is_hardly_any_noise():
    curve = acc.compose(acc.pure(epsilon=1e300, count=10), acc.laplace(scale=3))
    asked = np.geomspace(1e-9, 0.5, 100)
    assert (curve.epsilons(asked).values >= 1e300).all()
    assert (curve.deltas(np.linspace(0, 9, 100)).values <= 1).all()


def test_sampled_noise_that_hides_nothing_gives_away_whoever_is_sampled():
    # its law is two far bells: it once ran for minutes, then counted as lost outright
    sampled = acc.poisson_gaussian(std=1e-3, rate=0.01, relation="add-remove")
    curve = acc.compose(sampled, acc.gaussian(std=3))
    alone = acc.compose(acc.gaussian(std=3)).epsilon(delta=0.01 / 0.99).value
    assert curve.epsilon(delta=0.02).value >= alone
    assert curve.epsilon(delta=0.001).value == pytest.approx(1e6 / 2, rel=0.01)
    assert math.isinf(
        acc.compose(acc.poisson_gaussian(std=1e-5, rate=0.01, relation="add-remove")).epsilon(delta=0.001).value
    )
    exact = acc.compose(acc.poisson_gaussian(std=0.051, rate=0.01, relation="add-remove")).delta(epsilon=1.0).upper
    assert acc.compose(acc.poisson_gaussian(std=0.049, rate=0.01, relation="add-remove")).delta(
        epsilon=1.0
    ).value >= exact * (1 - 1e-9)
