"""What the contour stands on, law by law: characteristic functions with their error, and bounds on how they fade."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.combining import job_of
from privcheck.accounting.engine.contour import contour_epsilons, contour_log_deltas, line
from privcheck.accounting.engine.discrete import DiscreteGaussian, response_law
from privcheck.accounting.engine.job import Job, saddle_at
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.sampled import SampledGaussian

scales = st.floats(-3, 1).map(lambda x: 10.0**x)
laws = st.one_of(
    scales.map(LaplaceLaw),
    st.builds(SampledGaussian, st.floats(-1.5, 0.9).map(lambda x: 10.0**x), st.floats(0.001, 0.95)),
    st.builds(response_law, st.floats(0.01, 5), st.integers(2, 9)),
    st.builds(DiscreteGaussian, st.floats(0.4, 9), st.integers(1, 3)),
)
tilts = st.floats(-1.5, 1.2).map(lambda x: 10.0**x)


def characteristic(law, c, t, direction):
    """Returns E[e^{(c + it)L}]/E[e^{cL}] by quadrature or summation in 25 digits; no code is shared."""
    z = mp.mpc(c, t)
    if isinstance(law, LaplaceLaw):
        a = mp.mpf(law.step)

        def moment(w):
            density = (mp.exp((w + mp.mpf(1) / 2) * a) - mp.exp(-(w + mp.mpf(1) / 2) * a)) / (4 * w + 2)
            return mp.exp(w * a) / 2 + mp.exp(-(w + 1) * a) / 2 + mp.exp(-a / 2) * density

    elif isinstance(law, SampledGaussian):
        s, q = mp.mpf(law.shift), mp.mpf(law.rate)
        power = 1 if direction == "remove" else 0
        sign = 1 if direction == "remove" else -1
        low, high = (-11, (c + 1) * law.shift + 11) if power else (-c * law.shift - 11, 11)
        pieces = mp.linspace(low, high, 24 + int(abs(t) * law.shift / 3))

        def moment(w):
            def integrand(x):
                log_r = mp.log(1 - q + q * mp.exp(s * x - s * s / 2))
                return mp.exp((sign * w + power) * log_r - x * x / 2)  # but for 1/√(2π), which cancels

            return mp.quad(integrand, pieces, method="gauss-legendre")

    elif isinstance(law, DiscreteGaussian):
        v, d = mp.mpf(law.sigma) ** 2, law.shift
        xs = range(-math.ceil(14 * law.sigma + 4 * d), math.ceil(14 * law.sigma + (c + 4) * d) + 1)
        total = mp.fsum(mp.exp(-(mp.mpf(x) ** 2) / (2 * v)) for x in xs)

        def moment(w):
            return mp.fsum(mp.exp(-(mp.mpf(x) ** 2) / (2 * v) + w * (2 * d * x + d * d) / (2 * v)) for x in xs) / total

    else:
        atoms = law.atoms("remove")

        def moment(w):
            pairs = zip(atoms.losses.tolist(), atoms.logs.tolist(), strict=True)
            return mp.fsum(mp.exp(mp.mpf(p) + w * mp.mpf(x)) for x, p in pairs)

    return complex(moment(z) / moment(mp.mpf(c)))


# [lemma laplace-cumulant] [lemma mixture-trapezoid] [lemma sampled-shift] [lemma sampled-variation]
@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(laws, tilts, st.floats(0.1, 60), st.sampled_from(["remove", "add"]))
def test_waves_are_within_their_error_and_below_their_fading(law, c, t, direction):
    if isinstance(law, DiscreteGaussian) and law.sigma < 3:
        direction = "remove"
    logs, error = law.wave(c, t / 4, 5, direction)
    assert error < 1e-11
    with mp.workdps(25):
        exact = characteristic(law, c, t, direction)
    assert abs(complex(np.exp(logs[4])) - exact) <= error
    fading = law.bound_decay(c, direction)
    if fading is not None:
        for earlier in (t, t / 2, t / 30):
            assert math.log(max(abs(exact), 1e-300)) <= fading(earlier) + 1e-12


# [lemma contour-aliasing] [lemma contour-truncation]
@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(laws, st.integers(1, 400)), min_size=1, max_size=3, unique_by=lambda p: repr(p[0])),
    st.floats(0.05, 20),
    st.floats(-60, -0.1),
)
def test_lines_made_elsewhere_are_bounds_too_and_roots_hold(parts, mu_squared, log_delta):
    """Every line bounds δ everywhere, so that a line made for another ε never lies below one made for this."""
    job = Job(mu_squared=mu_squared, laws=tuple(parts), rho=0.0, lost=0.0)
    for direction in job.directions:
        found = contour_epsilons(job, np.array([log_delta, log_delta - 1.0]), direction)
        if np.isnan(found).any():
            continue
        assert found[0] <= found[1] * (1 + 1e-9)
        here = contour_log_deltas(job, found, direction)
        assert np.all(here <= np.array([log_delta, log_delta - 1.0]) * (1 - 1e-8) + 1e-8)
        other = line(job, 2 * found[1] + 0.5, saddle_at(job, 2 * found[1] + 0.5, direction), direction)
        assert other is None or np.all(other.log_deltas(found) >= here - 1e-7 * (1 + np.abs(here)))


def test_many_different_steps_are_one_integral():
    events = [acc.poisson_gaussian(std=0.8 + 0.1 * i, rate=0.01 + 0.002 * i, relation="add-remove") for i in range(12)]
    figure = acc.compose(*events).epsilon(delta=1e-6)
    assert (figure.method, figure.direction) == ("contour integral", "exact")
    job = job_of(events)
    assert figure.value == max(contour_epsilons(job, np.array([math.log(1e-6)]), d)[0] for d in job.directions)


def test_a_root_at_the_edge_between_two_looks_is_found():
    """Rounding may say "beyond" at the end of one look and "before" at the beginning of the next, the same point."""
    events = [
        acc.gaussian(std=7830.0),
        6 * acc.poisson_gaussian(std=0.741, rate=0.000584, sensitivity=0.689, relation="add-remove"),
    ]
    one = acc.compose(events).epsilon(delta=5.02e-06)
    tree = acc.tree(
        node=acc.poisson_gaussian(std=0.741, rate=0.000584, sensitivity=0.689, relation="add-remove"),
        leaves=1,
        count=6,
        participations=1,
    )
    assert acc.compose(events[0], tree).epsilon(delta=5.02e-06).value == pytest.approx(one.value, rel=1e-3)
