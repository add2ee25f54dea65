"""The proved bound on the FFT's rounding: its assumption at every size, and the bound against exact convolutions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcheck import accounting as acc
from privcheck.accounting.combining import job_of
from privcheck.accounting.engine import grid
from privcheck.accounting.engine.convolution import convolve, transform_error
from privcheck.accounting.engine.job import saddle_at

UNIT = 2.0**-53
SIZES = [1 << t for t in range(4, 20)] + [pytest.param(1 << 20, marks=pytest.mark.nightly)]


def cosines(size):
    """cos(2πk/n) for k up to n/2, from arguments up to π/4 in long double, each rounded once."""
    turn = 2 * np.longdouble("3.14159265358979323846264338327950288")
    angles = turn * np.arange(size // 8 + 1).astype(np.longdouble) / size
    quarter = np.empty(size // 4 + 1)
    quarter[: size // 8 + 1] = np.cos(angles)
    quarter[size // 8 :] = np.sin(angles)[::-1]
    return np.concatenate([quarter, -quarter[-2::-1]])


# [lemma fft-transform]
@pytest.mark.parametrize("size", SIZES)
def test_no_twiddle_factor_is_off_by_more_than_assumed(size):
    """A single 1 at a·2^b meets one nontrivial twiddle (a = 1), or two at most (a = 3), and only zeros are added.

    So the transform shows the twiddle factors of every pass as they are stored, whether passes have radix 2 or 4.
    """
    table = cosines(size)
    frequencies = np.arange(size // 2 + 1, dtype=np.int64)
    for a, assumed in ((1, 3.4), (3, 2 * 3.4 + 2.9)):  # the reference is within 0.6u
        for b in range(size.bit_length() - 1):
            if (place := a << b) >= size:
                break
            single = np.zeros(size)
            single[place] = 1
            turned = frequencies * place % size
            quarter = (turned - size // 4) % size
            real, imag = table[np.minimum(turned, size - turned)], table[np.minimum(quarter, size - quarter)]
            found = np.fft.rfft(single)
            assert np.hypot(found.real - real, found.imag + imag).max() <= assumed * UNIT


def test_no_grid_is_larger_than_the_sizes_that_were_looked_at():
    assert grid._LARGEST == 1 << 20


def exact_convolution(laws, size):
    """Integers all the way: masses are floats, that is, integers over a power of 2."""
    total, shift = np.array([1] + [0] * (size - 1), dtype=object), 0
    for law, count in laws:
        integers = np.array([int(x * 2.0**80) for x in law], dtype=object)
        for _ in range(count):
            long = np.convolve(total, integers)
            total = long[:size].copy()
            total[: size - 1] += long[size:]
            shift += 80
    return total, shift


# [lemma fft-transform] [lemma fft-product]
@pytest.mark.parametrize(("size", "counts"), [(16, (1, 1)), (64, (3,)), (128, (2, 5, 1)), (256, (7, 2))])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_holds_against_integers_and_says_something(size, counts, seed):
    rng = np.random.default_rng(seed)
    laws = []
    for count in counts:
        law = np.round(rng.random(size) ** rng.integers(1, 30) * 2.0**60) / 2.0**60
        law[rng.random(size) < 0.3] = 0.0
        laws.append((law / 2.0 ** math.ceil(math.log2(law.sum())), count))
    found, bound = convolve(laws, size)
    exact, shift = exact_convolution(laws, size)
    errors = [abs(int(m * 2.0**200) * 2 ** (shift - 200) - e) for m, e in zip(found.tolist(), exact, strict=True)]
    worst = max(errors) / 2**shift
    assert worst <= bound
    assert 0 < bound <= 1e-12 * found.max()
    assert worst >= bound * 1e-5  # far from vacuous: errors of random signs stay three or four digits below


# [lemma fft-product]
@given(st.integers(1, 10**9), st.floats(0.01, 0.99), st.sampled_from([1 << 10, 1 << 14, 1 << 17]))
@settings(max_examples=25)
def test_powers_stay_within_the_bound(count, share, size):
    """Bernoulli laws: binomial masses, wrapped, from ratios in long double; a reference error counts against us."""
    law = np.zeros(size)
    law[0], law[1] = 1 - share, share
    found, bound = convolve([(law, count)], size)
    mean, std = count * share, math.sqrt(count * share * (1 - share))
    low, high = max(0, math.floor(mean - 12 * std - 40)), min(count, math.ceil(mean + 12 * std + 40))
    k = np.arange(low, high, dtype=np.longdouble)
    steps = np.log((count - k) / (k + 1)) + np.log(np.longdouble(law[1])) - np.log(np.longdouble(law[0]))
    logs = np.append(np.longdouble(0), np.cumsum(steps))
    masses = np.exp(logs - logs.max())
    left = np.longdouble(law[0]) + np.longdouble(law[1]) - 1  # the floats do not quite add up to 1
    masses *= np.exp(count * np.log1p(left)) / masses.sum()
    exact = np.bincount(np.arange(low, high + 1) % size, weights=masses.astype(np.float64), minlength=size)
    reference = 1e-15 + count * 2e-19 + (high - low) * 1e-18  # relative
    assert np.abs(found - exact).max() <= bound + reference * exact.max()
    if count <= 10**6:
        assert bound <= 1e-5 * exact.max()


# [lemma grid-window]
def test_composed_laws_enclose_the_tilted_sum_of_their_own_grid():
    """The whole way, tilting and wrapping included: δ of the grid's own law by direct convolution is never above."""
    job = job_of([acc.laplace(scale=2, count=3), acc.laplace(scale=3, count=2)])
    for epsilon in (0.0, 0.4, 1.2, 1.9):
        mesh, size = 1 / 240, 1 << 11
        parts = [(law.cells(mesh, 1e-15, "remove"), count) for law, count in job.all_laws]
        start, total = 0, np.ones(1, dtype=np.longdouble)
        for cells, count in parts:
            for _ in range(count):
                total, start = np.convolve(total, cells.masses.astype(np.longdouble)), start + cells.start
        losses = (start + np.arange(len(total))) * np.longdouble(mesh)
        exact = float(np.sum(total * np.maximum(0, -np.expm1(np.longdouble(epsilon) - losses)) * (losses > epsilon)))
        c = saddle_at(job, epsilon, "remove")
        frame = grid.Frame(c=c, mesh=mesh, size=size, window=(-2.2, 2.2, 3.0), epsilon=epsilon)
        law = grid._transform(parts, frame, lost=0.0)
        bound = math.exp(law.log_deltas(np.array([epsilon]))[0][0])
        assert exact <= bound * (1 + 1e-15)
        assert bound <= exact * (1 + 1e-9)


# [lemma grid-window]
def test_what_lies_above_the_window_is_counted():
    """A window that ends too early still bounds: what is cut off comes back as mass above it."""
    job = job_of([acc.gaussian(std=1.0)])
    parts = [(law.cells(0.02, 1e-12, "remove"), n) for law, n in job.all_laws]
    c = saddle_at(job, 1.0, "remove")
    cut = grid._transform(parts, grid.Frame(c=c, mesh=0.02, size=256, window=(-2.2, 2.5, 1.0), epsilon=1.0), lost=0.0)
    at = np.array([1.0])
    assert cut.highest < 3
    assert math.exp(cut.log_deltas(at)[0][0]) >= acc.gdp_delta(1.0, 1.0).value
    whole = grid._transform(parts, grid.Frame(c=c, mesh=0.02, size=4096, window=(-10, 12, 8.0), epsilon=1.0), lost=0.0)
    assert math.exp(whole.log_deltas(at)[0][0]) == pytest.approx(acc.gdp_delta(1.0, 1.0).value, rel=1e-4)


@pytest.mark.parametrize(("mesh", "size"), [(1e-3, 300), (0.2, 3000), (3.0, 500), (1e-9, 64)])
def test_fading_sums_are_sums(mesh, size):
    """Σ p_j e^{−mesh(j − i)} over j ≥ i, one by one, also where the exponentials leave the floats' range."""
    masses = np.random.default_rng(3).exponential(size=size) * np.exp(np.linspace(300, -300, size))
    found = grid._fading_sums(masses, mesh)
    above = np.longdouble(0)
    for i in range(size - 1, -1, -1):
        above = masses[i] + above * np.exp(-np.longdouble(mesh))
        assert found[i] == pytest.approx(float(above), rel=1e-12)


def test_counts_beyond_every_bound_give_infinity_not_nan():
    law = np.array([0.5, 0.25, 0.0, 0.25] * 4) / 4
    found, bound = convolve([(law, 10**15)], 16)
    assert np.isfinite(found).all()
    assert bound > 0
    assert not math.isnan(bound)
    assert transform_error(1 << 20) < 3e-14
