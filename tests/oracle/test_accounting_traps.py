"""Live defects of public libraries, each as a test: counts, number types, order, relations, tails and extremes."""

import decimal
import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.errors import ParameterError

pytestmark = pytest.mark.slow

EVENTS = {
    "gaussian": lambda **k: acc.gaussian(std=7, **k),
    "laplace": lambda **k: acc.laplace(scale=9, **k),
    "discrete_gaussian": lambda **k: acc.discrete_gaussian(std=5, **k),
    "discrete_laplace": lambda **k: acc.discrete_laplace(scale=6, **k),
    "symmetric_gaussian": lambda **k: acc.symmetric_gaussian(variance=30, **k, sensitivity=1),
    "pure": lambda **k: acc.pure(epsilon=0.1, **k),
    "approximate": lambda **k: acc.approximate(epsilon=0.1, delta=1e-9, **k),
    "zcdp": lambda **k: acc.zcdp(rho=0.01, **k),
    "randomized_response": lambda **k: acc.randomized_response(epsilon=0.2, categories=4, **k),
    "poisson_gaussian": lambda **k: acc.poisson_gaussian(std=1.1, rate=0.1, **k, relation="add-remove"),
    "tree": lambda **k: acc.tree(node=acc.gaussian(std=20), leaves=100, **k, participations=1),
    "shuffled_bits": lambda **k: acc.shuffled_bits(users=200, probability=0.4, **k),
    "shuffled": lambda **k: acc.shuffled(local_epsilon=0.8, users=300, **k, relation="replace-one"),
    "shuffled_randomized_response": lambda **k: acc.shuffled_randomized_response(
        epsilon=0.8, users=100, **k, relation="replace-one"
    ),
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_k_times_is_a_list_of_k(name):
    one, k = EVENTS[name], 5
    together = acc.compose(one(count=k)).epsilon(delta=1e-6)
    assert acc.compose(*[one()] * k).epsilon(delta=1e-6).value == together.value
    assert acc.compose(one(count=2), one(), one(count=2)).epsilon(delta=1e-6).value == together.value
    assert acc.compose(acc.compose(one(count=2)), one(count=3)).epsilon(delta=1e-6).value == together.value


@pytest.mark.parametrize("name", EVENTS)
def test_more_releases_cost_more_and_smaller_deltas_too(name):
    one = EVENTS[name]
    before = 0.0
    for k in (1, 2, 4, 8):
        found = acc.compose(one(count=k)).epsilon(delta=1e-6)
        assert found.value >= before
        assert found.value <= found.upper * (1 + 1e-12)
        assert acc.compose(one(count=k)).epsilon(delta=1e-8).value >= found.value * (1 - 1e-9)
        before = found.value


NOISE = {
    "gaussian": lambda f: acc.gaussian(std=3 * f, count=4),
    "laplace": lambda f: acc.laplace(scale=4 * f, count=4),
    "discrete_gaussian": lambda f: acc.discrete_gaussian(std=2 * f, count=2),
    "discrete_laplace": lambda f: acc.discrete_laplace(scale=3 * f, count=2),
    "symmetric_gaussian": lambda f: acc.symmetric_gaussian(variance=9 * f * f, sensitivity=1),
    "poisson_gaussian": lambda f: acc.poisson_gaussian(std=1.1 * f, rate=0.1, count=3, relation="add-remove"),
    "tree": lambda f: acc.tree(node=acc.laplace(scale=30 * f), leaves=37, participations=3, separation=4),
    "mixed": lambda f: acc.compose(acc.gaussian(std=9 * f), acc.laplace(scale=20 * f, count=3)),
}


@pytest.mark.parametrize("name", NOISE)
def test_more_noise_costs_less(name):
    curves = [acc.compose(NOISE[name](f)) for f in (1, 1.01, 1.5, 4)]
    for asked in (lambda c: c.epsilon(delta=1e-6).value, lambda c: c.delta(epsilon=0.2).value):
        values = [asked(curve) for curve in curves]
        assert values == sorted(values, reverse=True)
        assert values[-1] < values[0]


@pytest.mark.parametrize("name", EVENTS)
def test_epsilon_and_delta_invert_each_other(name):
    curve = acc.compose(EVENTS[name](count=3))
    found = curve.epsilon(delta=1e-5)
    most = curve.epsilon(delta=0).value
    if 0 < found.value < most:
        assert curve.delta(epsilon=found.value).value == pytest.approx(1e-5, rel=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "poisson_gaussian", "laplace", "shuffled_bits"])
def test_number_types_do_not_matter(name):
    kinds = [3, 3.0, Fraction(3), "3", np.int64(3), np.float32(3), np.float64(3)]
    made = {
        "gaussian": lambda x: acc.gaussian(std=x, sensitivity=x, count=x),
        "poisson_gaussian": lambda x: acc.poisson_gaussian(std=x, rate=Fraction(1, 3), count=x, relation="add-remove"),
        "laplace": lambda x: acc.laplace(scale=x, count=x),
        "shuffled_bits": lambda x: acc.shuffled_bits(users=100, messages=x, probability=0.5, count=x),
    }[name]
    assert len({made(x) for x in kinds}) == 1
    assert len({acc.compose(made(x)).epsilon(delta=1e-5).value for x in kinds}) == 1
    with pytest.raises(ParameterError):
        made(decimal.Decimal(3))


@given(st.permutations(list(EVENTS)[:6]))
@settings(max_examples=20)
def test_order_does_not_matter(names):
    curve = acc.compose(*(EVENTS[n](count=3) for n in names))
    assert curve == acc.compose(*(EVENTS[n](count=3) for n in sorted(names)))
    assert curve.epsilon(delta=1e-6) == acc.compose(*(EVENTS[n](count=3) for n in sorted(names))).epsilon(delta=1e-6)


def test_the_relation_is_applied_once():
    """Replace moves a sum by two clipping norms: Δ/std doubles, and nothing else does."""
    replaced = acc.from_dp_event(SelfComposedDpEvent(GaussianDpEvent(4.0), 10), relation="replace-one")
    assert replaced.epsilon(delta=1e-6).value == acc.compose(acc.gaussian(std=2, count=10)).epsilon(delta=1e-6).value
    sampled = PoissonSampledDpEvent(0.1, GaussianDpEvent(4.0))
    found = acc.from_dp_event(sampled, relation="replace-one").epsilon(delta=1e-6).value
    own = acc.compose(acc.poisson_gaussian(std=4, rate=0.1, relation="replace-one"))
    assert found == pytest.approx(own.epsilon(delta=1e-6).value, rel=1e-9)
    with pytest.raises(ParameterError, match="one clipping norm"):
        acc.from_dp_event(sampled, sensitivity=2, relation="add-remove")


@given(st.integers(1, 6), st.floats(0.01, 2), st.floats(-320, -15))
@settings(max_examples=30)
def test_never_above_the_pure_sum_also_below_any_grid(k, a, exponent):
    delta = 10.0**exponent
    for parts in ([acc.laplace(scale=1 / a, count=k)], [acc.pure(epsilon=a, count=k), acc.laplace(scale=3)]):
        curve = acc.compose(*parts)
        found, most = curve.epsilon(delta=delta), curve.epsilon(delta=0)
        assert 0 < found.value <= most.value * (1 + 1e-12)
        assert found.upper <= most.value * (1 + 1e-12)
    assert math.isfinite(acc.compose(acc.gaussian(std=3), acc.laplace(scale=5)).epsilon(delta=max(delta, 1e-300)).value)


SMALL, LARGE = 1e-9, 1e9
EXTREMES = [
    *(acc.gaussian(std=s, count=k) for s, k in itertools.product((SMALL, 1.0, LARGE), (1, 10**6, 10**12))),
    *(acc.laplace(scale=s, count=k) for s, k in itertools.product((SMALL, 1.0, 1e4, LARGE), (1, 10**6, 10**12))),
    *(acc.pure(epsilon=e, count=k) for e, k in itertools.product((SMALL, 1.0, 800.0), (1, 10**6, 10**12))),
    *(acc.discrete_gaussian(std=s, count=k) for s, k in itertools.product((0.01, 1.0, 1e7), (1, 10**6))),
    *(acc.discrete_laplace(scale=s, count=k) for s, k in itertools.product((1e-3, 1.0, 1e7), (1, 10**6))),
    *(acc.zcdp(rho=r, count=k) for r, k in itertools.product((1e-12, 1.0, 1e12), (1, 10**6))),
    *(
        acc.approximate(epsilon=e, delta=1e-12, count=k)
        for e, k in itertools.product((SMALL, 10.0), (1, 10**6, 10**14))
    ),
    acc.poisson_gaussian(std=0.05, rate=0.5, count=10, relation="add-remove"),
    acc.poisson_gaussian(std=1, rate=1e-6, count=10**6, relation="add-remove"),
    acc.poisson_gaussian(std=100, rate=0.9, count=10, relation="add-remove"),
    acc.shuffled_bits(users=2, probability=0.5),
    acc.shuffled_bits(users=10**6, probability=1e-6, count=100),
    acc.shuffled(local_epsilon=500, users=1000, relation="replace-one"),
    acc.shuffled(local_epsilon=1e-6, users=1000, count=1000, relation="replace-one"),
    acc.shuffled_randomized_response(epsilon=30, users=50, relation="replace-one"),
    acc.randomized_response(epsilon=0.5, categories=10**6, count=10**5),
]


@pytest.mark.slow
@pytest.mark.parametrize("event", EXTREMES, ids=str)
def test_extremes_end_in_a_number_or_in_infinity_with_a_reason(event):
    started = time.perf_counter()
    for parts in ((event,), (event, acc.gaussian(std=5)), (event, acc.laplace(scale=2))):
        curve = acc.compose(*parts)
        for delta in (1e-15, 1e-5, 0.5):
            found = curve.epsilon(delta=delta)
            assert found.value >= 0
            assert math.isfinite(found.value) or found.reason
            assert found.upper >= found.value * (1 - 1e-9)
        at_one = curve.delta(epsilon=1.0)
        assert 0 <= at_one.value <= at_one.upper * (1 + 1e-9) <= 1 + 1e-8
    assert time.perf_counter() - started < 60  # no hang; most take milliseconds


@given(st.floats(0.3, 20), st.integers(1, 2000), st.sampled_from([1e-3, 1e-6, 1e-9]))
@settings(max_examples=25)
def test_two_accountants_agree_on_renyi_terms(std, count, delta):
    """dp-accounting's RDP never lies below the exact curve, and zCDP's best order never above its grid of orders."""
    event = acc.gaussian(std=std, count=count)
    theirs = RdpAccountant().compose(acc.to_dp_event(event)).get_epsilon(delta)
    assert acc.compose(event).epsilon(delta=delta).value <= theirs * (1 + 1e-9)
    ours = acc.compose(acc.zcdp(rho=count / (2 * std**2))).epsilon(delta=delta).value
    assert ours <= theirs * (1 + 1e-9)
    assert ours == pytest.approx(acc.zcdp_to_epsilon(count / (2 * std**2), delta).value, rel=1e-9)
