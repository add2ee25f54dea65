"""Encoders against all patterns of participation; mixtures of Gaussians against integrals and dp-accounting's PLD."""

import itertools
import math
from dataclasses import replace

import mpmath as mp
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.optimize import brentq
from scipy.special import ndtr

from privcheck import accounting as acc
from privcheck.accounting.engine import encoders
from privcheck.accounting.engine.laws import DIRECTIONS
from privcheck.accounting.engine.mixtures import MixtureLaw
from privcheck.errors import ParameterError


def patterns(n, k, b):
    for size in range(1, k + 1):
        for steps in itertools.combinations(range(n), size):
            if all(y - x >= b for x, y in itertools.pairwise(steps)):
                yield steps


def moved(encoder, steps):
    """The largest ‖Σ ±cᵢ‖ over all signs, for contributions that are numbers."""
    signs = itertools.product((1, -1), repeat=len(steps))
    return max(float(np.linalg.norm(encoder[:, steps] @ np.array(s))) for s in signs)


def lower(rng, n, *, signed=False, bands=None):
    matrix = np.tril(rng.normal(size=(n, n)) if signed else rng.uniform(size=(n, n)))
    return matrix if bands is None else np.triu(matrix, -bands + 1)


# [lemma encoder-change]
@pytest.mark.parametrize("seed", range(12))
def test_the_sensitivity_is_the_largest_over_all_patterns(seed):
    rng = np.random.default_rng(seed)
    n, k, b = int(rng.integers(1, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    encoder = lower(rng, n)
    truth = max(moved(encoder, steps) for steps in patterns(n, k, b))
    found = acc.matrix_sensitivity(encoder, participations=k, separation=b)
    assert truth * (1 - 1e-15) <= found.value <= truth * (1 + 1e-11)
    assert found.exact
    assert found.pattern in set(patterns(n, k, b))


# [lemma encoder-change]
@pytest.mark.parametrize("seed", range(12))
def test_entries_of_both_signs_are_bounded(seed):
    rng = np.random.default_rng(100 + seed)
    encoder = lower(rng, 7, signed=True)
    truth = max(moved(encoder, steps) for steps in patterns(7, 3, 2))
    found = acc.matrix_sensitivity(encoder, participations=3, separation=2)
    assert truth * (1 - 1e-15) <= found.value
    for steps in patterns(7, 3, 2):  # contributions that are vectors
        g = rng.normal(size=(len(steps), 3))
        g /= np.linalg.norm(g, axis=1)[:, None]
        assert np.linalg.norm(encoder[:, steps] @ g) <= found.value
    if found.exact:
        assert found.value <= truth * (1 + 1e-11)


def test_a_single_participation_is_the_largest_column():
    rng = np.random.default_rng(3)
    encoder = rng.normal(size=(6, 5))
    found = acc.matrix_sensitivity(encoder, participations=1)
    assert found.exact
    assert found.value == pytest.approx(np.linalg.norm(encoder, axis=0).max(), rel=1e-13)
    assert acc.matrix_sensitivity(encoder, participations=4, separation=5).value == found.value


# [lemma encoder-rows]
@pytest.mark.parametrize("seed", range(8))
def test_bounds_by_rows_are_bounds_and_exact_for_bands(seed, monkeypatch):
    rng = np.random.default_rng(200 + seed)
    n, k, b = 9, 3, 3
    for bands in (None, b):
        encoder = lower(rng, n, bands=bands)
        exact = acc.matrix_sensitivity(encoder, participations=k, separation=b).value
        with monkeypatch.context() as patch:
            patch.setattr(encoders, "_MOST_PATTERNS", 0)
            bound = acc.matrix_sensitivity(encoder, participations=k, separation=b)
            patch.setattr(encoders, "_MOST_WORK", 0)
            coarse = acc.matrix_sensitivity(encoder, participations=k, separation=b)
        assert exact * (1 - 1e-14) <= bound.value <= coarse.value * (1 + 1e-14)
        assert bound.value <= exact * 1.4
        if bands:
            assert bound.exact
            assert bound.value == pytest.approx(exact, rel=1e-12)


# [lemma encoder-first-steps]
@pytest.mark.parametrize(("n", "k", "b"), [(10, 3, 2), (12, 4, 3), (9, 9, 1)])
def test_falling_toeplitz_encoders_in_closed_form(n, k, b):
    """The square root of prefix sums: the worst pattern is 0, b, 2b, … (Kalinin & Lampert 2024)."""
    coefficients = [1.0]
    for i in range(1, n):
        coefficients.append(coefficients[-1] * (2 * i - 1) / (2 * i))
    encoder = np.array([[coefficients[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    assert encoder @ encoder == pytest.approx(np.tril(np.ones((n, n))))
    found = acc.matrix_sensitivity(encoder, participations=k, separation=b)
    assert found.exact
    assert found.pattern == tuple(range(0, n, b))[:k]
    truth = max(np.linalg.norm(encoder[:, steps].sum(axis=1)) for steps in patterns(n, k, b))
    assert found.value == pytest.approx(truth, rel=1e-11)
    assert found.value >= truth * (1 - 1e-15)


def test_a_fixed_order_knows_fewer_patterns():
    rng = np.random.default_rng(8)
    encoder = lower(rng, 8)
    fixed = acc.matrix_sensitivity(encoder, participations=2, separation=4, order="fixed")
    truth = max(np.linalg.norm(encoder[:, [i, i + 4]].sum(axis=1)) for i in range(4))
    assert fixed.value == pytest.approx(truth, rel=1e-12)
    assert fixed.value <= acc.matrix_sensitivity(encoder, participations=2, separation=4).value


def test_a_matrix_mechanism_is_one_gaussian():
    prefix_sums = np.tril(np.ones((4, 4)))
    event = acc.matrix_gaussian(encoder=prefix_sums, std=5, participations=2, separation=2, sensitivity=0.5, count=3)
    other = acc.gaussian(std=10, sensitivity=math.sqrt(10), count=3)
    found, wanted = (acc.compose(e).epsilon(delta=1e-6) for e in (event, other))
    assert found.value == pytest.approx(wanted.value, rel=1e-12)
    assert found.direction == "exact"
    rng = np.random.default_rng(0)
    signed = acc.matrix_gaussian(encoder=lower(rng, 6, signed=True), std=5, participations=3, sensitivity=1)
    answer = acc.compose(signed).epsilon(delta=1e-6)
    columns = np.array(lower(np.random.default_rng(0), 6, signed=True)).T
    largest = max(
        np.linalg.norm(np.array(signs) @ columns[list(taken)])
        for taken in itertools.combinations(range(6), 3)
        for signs in itertools.product((-1, 1), repeat=3)
    )
    wanted = acc.compose(acc.gaussian(std=5, sensitivity=largest)).epsilon(delta=1e-6)
    assert answer.value == pytest.approx(wanted.value, rel=1e-9)  # all patterns and signs, one by one
    assert answer.direction == "exact"


# [lemma banded-groups]
def test_banded_sampling_by_drawing_from_both_laws():
    """4 steps, 2 bands: δ of the mixture over who is sampled, by 200 000 draws; beyond 6 std less than once in 10⁸."""
    rng = np.random.default_rng(17)
    encoder, rate, std = np.diag([1.0, 0.8, 1.0, 0.8]) + np.diag([0.5, 0.4, 0.5], -1), 0.3, 1.2
    event = acc.matrix_poisson_gaussian(encoder=encoder, std=std, rate=rate, separation=2, relation="add-remove")
    shifts = [encoder[:, [0, 2]] @ np.array(s) / std for s in itertools.product((0, 1), repeat=2)]
    chances = [(1 - rate) ** 2, rate * (1 - rate), rate * (1 - rate), rate**2]
    draws = 200_000
    noise = rng.normal(size=(draws, 4))
    figures = {epsilon: acc.compose(event).delta(epsilon=epsilon) for epsilon in (0.2, 0.6)}
    for direction in (1, -1):
        which = rng.choice(4, size=draws, p=chances)
        z = noise + (np.array(shifts)[which] if direction > 0 else 0)
        ratios = sum(c * np.exp(z @ s - s @ s / 2) for c, s in zip(chances, shifts, strict=True))
        loss = direction * np.log(ratios)
        for epsilon, found in figures.items():
            gains = np.maximum(1 - np.exp(epsilon - loss), 0)
            error = 6 * gains.std() / math.sqrt(draws)
            assert gains.mean() - error <= found.upper
            if direction > 0:  # the larger of the two
                assert found.value <= gains.mean() + error


def test_more_groups_than_steps_are_one_step_each():
    wide = acc.matrix_poisson_gaussian(
        encoder=np.tril(np.ones((3, 3))), std=2, rate=0.1, separation=10**15, relation="add-remove"
    )
    single = acc.poisson_gaussian(std=2, rate=0.1, sensitivity=math.sqrt(3), relation="add-remove")
    assert acc.compose(wide).delta(epsilon=0.5).upper == pytest.approx(acc.compose(single).delta(epsilon=0.5).upper)


def test_bands_that_overlap_are_refused():
    prefix_sums = np.tril(np.ones((4, 4)))
    with pytest.raises(ParameterError, match="bandwidth 2"):
        acc.matrix_poisson_gaussian(encoder=prefix_sums, std=1, rate=0.1, separation=2, relation="add-remove")
    with pytest.raises(ParameterError, match="lower triangular"):
        acc.matrix_poisson_gaussian(encoder=prefix_sums.T, std=1, rate=0.1, separation=4, relation="add-remove")
    # no term cancels: columns that are orthogonal and share a row are still two releases of one user in one row
    shared = np.array([[1.0, 0, 0], [1, 1, 0], [-1, 0, 1], [0, 0, 0]])
    assert encoders.bandwidth(shared) == 3


MIXTURES = [
    ((0.0, 1.0), (0.9, 0.1)),
    ((0.0, 0.5, 1.5, 2.0), (0.4, 0.3, 0.2, 0.1)),
    ((0.7, 1.1), (0.5, 0.5)),
    ((0.0, 0.01), (0.99, 0.01)),
    ((0.0, 6.0), (0.999, 0.001)),
]


def one_delta(shifts, weights, epsilon, direction):
    """δ of one release: where the loss is ε, by bisection, and normal tails."""

    def log_ratio(x):
        return float(
            np.logaddexp.reduce([math.log(p) + s * x - s * s / 2 for s, p in zip(shifts, weights, strict=True)])
        )

    level = epsilon if direction == "remove" else -epsilon
    if log_ratio(-300) >= level:
        return 0.0
    x = brentq(lambda x: log_ratio(x) - level, -300, 300, xtol=1e-13)
    mixed = [p * (ndtr(s - x) if direction == "remove" else ndtr(x - s)) for s, p in zip(shifts, weights, strict=True)]
    if direction == "remove":
        return math.fsum(mixed) - math.exp(epsilon) * ndtr(-x)
    return ndtr(x) - math.exp(epsilon) * math.fsum(mixed)


@pytest.mark.parametrize(
    ("shifts", "weights"), [MIXTURES[1], *(pytest.param(*m, marks=pytest.mark.nightly) for m in MIXTURES)]
)
def test_one_mixture_by_normal_tails(shifts, weights):
    std = 2.0
    sizes = [s * std for s in shifts]
    curve = acc.compose(
        acc.mixture_of_gaussians(std=std, sensitivities=sizes, probabilities=weights, relation="add-remove")
    )
    for share in (0.1, 0.7):
        epsilon = share * shifts[-1]
        truth = max(one_delta(shifts, weights, epsilon, d) for d in DIRECTIONS)
        assert truth * (1 - 1e-9) <= curve.delta(epsilon=epsilon).upper <= truth * (1 + 1e-4) + 1e-15


# [lemma connect-the-dots]
@pytest.mark.parametrize(("shifts", "weights"), MIXTURES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_cells_dominate_in_each_direction(shifts, weights, direction):
    law, mesh = MixtureLaw(shifts, weights), 1e-3 * shifts[-1]
    cells = law.cells(mesh, 1e-14, direction)
    losses = (cells.start + np.arange(len(cells.masses))) * mesh
    assert cells.masses.sum() + cells.infinite == pytest.approx(1, rel=1e-12)
    for share in (0.0, 0.2, 0.7, 1.3):
        epsilon = share * shifts[-1]
        found = float((cells.masses * np.maximum(1 - np.exp(epsilon - losses), 0)).sum()) + cells.infinite
        truth = one_delta(shifts, weights, epsilon, direction)
        assert truth * (1 - 1e-10) - 1e-15 <= found <= truth * (1 + 1e-3) + 2e-14


# [lemma mixture-trapezoid]
@pytest.mark.parametrize(
    ("shifts", "weights"), [MIXTURES[0], *(pytest.param(*m, marks=pytest.mark.nightly) for m in MIXTURES[1:])]
)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_cumulants_by_quadrature(shifts, weights, direction):
    law = MixtureLaw(shifts, weights)
    with mp.workdps(25):

        def ratio(x):
            return mp.fsum(p * mp.exp(s * x - mp.mpf(s) ** 2 / 2) for s, p in zip(shifts, weights, strict=True))

        for c in (0.3, 5.0):
            middle = float((c + 1) * shifts[-1] if direction == "remove" else -c * shifts[-1])
            points = mp.linspace(-14 + min(0, middle), 14 + max(0, middle), 16 + int(abs(middle) / 2))

            def integral(z, points=points):
                power = z + 1 if direction == "remove" else -z
                return mp.quad(
                    lambda x: mp.exp(power * mp.log(ratio(x)) - x * x / 2), points, method="gauss-legendre"
                ) / mp.sqrt(2 * mp.pi)

            exact = integral(mp.mpf(c))
            k = float(law.moments(np.array([c]), direction)[0][0])
            rounding = 1e-15 * (1 + c * law.span(direction))  # what jobs add
            assert -rounding <= k - float(mp.log(exact)) <= rounding + 1e-14
            wave, error = law.wave(c, 0.7, 8, direction)
            fading = law.bound_decay(c, direction)
            for i in (1, 7):
                phi = complex(integral(mp.mpc(c, 0.7 * i)) / exact)
                assert abs(np.exp(wave[i]) - phi) <= error < 1e-10
                assert math.log(abs(phi)) <= fading(0.7 * i)


# [lemma mixture-variation]
@pytest.mark.parametrize(("shifts", "weights"), MIXTURES)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_variation_of_the_density_of_the_loss(shifts, weights, direction):
    """Rise and fall of h = φ·r^p/(ln r)′ on a hundred thousand points, by differences."""
    law = MixtureLaw(shifts, weights)
    s, p = np.array(shifts), np.array(weights)
    for c in (0.2, 3.0, 20.0):
        x = np.linspace(-14 - c * s[-1], 14 + (c + 1) * s[-1], 100_001)
        terms = np.multiply.outer(x, s) - s * s / 2 + np.log(p)
        log_ratio = np.logaddexp.reduce(terms, axis=1)
        mean = (np.exp(np.maximum(terms - log_ratio[:, None], -700)) * s).sum(axis=1)
        logs = (c + 1 if direction == "remove" else -c) * log_ratio - x * x / 2
        logs -= logs.max()
        density = np.exp(logs) / mean
        truth = np.abs(np.diff(density)).sum() / (np.exp(logs).sum() * (x[1] - x[0]))
        assert truth <= math.exp(law.bound_decay(c, direction)(1e30)) * 1e30 <= 2 * truth


@pytest.mark.parametrize(
    ("std", "sizes", "chances", "count"),
    [
        (2.0, (0, 1, 2), (0.8, 0.1, 0.1), 5),
        pytest.param(1.0, (0, 1), (0.9, 0.1), 20, marks=pytest.mark.nightly),
        pytest.param(2.0, (0, 1, 2, 3), (0.7, 0.2, 0.05, 0.05), 30, marks=pytest.mark.nightly),
    ],
)
def test_compositions_by_dp_accounting(std, sizes, chances, count):
    pld = privacy_loss_distribution.from_mixture_gaussian_mechanism(
        std, sizes, chances, value_discretization_interval=1e-3
    ).self_compose(count)
    curve = acc.compose(
        acc.mixture_of_gaussians(
            std=std, sensitivities=sizes, probabilities=chances, count=count, relation="add-remove"
        )
    ).epsilon(delta=1e-5)
    assert curve.value == pytest.approx(pld.get_epsilon_for_delta(1e-5), rel=3e-3)
    assert curve.value <= curve.upper <= curve.value * (1 + 1e-4)


@pytest.mark.parametrize("std", [1e7, 1e9, 1e11])
def test_tiny_losses_are_those_of_the_mean_contribution(std):
    """To first order in 1/σ the loss is that of one Gaussian; never less, and at most the largest contribution's."""
    mixture = acc.mixture_of_gaussians(
        std=std, sensitivities=[0, 0.5, 3], probabilities=[0.2, 0.5, 0.3], relation="add-remove"
    )
    found = acc.compose(mixture).epsilon(delta=1e-3 / std).upper
    mean, largest = (acc.gaussian(std=std, sensitivity=size).epsilon(delta=1e-3 / std).upper for size in (1.15, 3))
    assert mean * (1 - 1e-3) <= found <= largest


def test_two_parts_are_poisson_sampling_and_one_part_is_a_gaussian():
    two = acc.mixture_of_gaussians(
        std=2, sensitivities=[0, 1], probabilities=["0.98", "0.02"], count=100, relation="add-remove"
    )
    sampled = acc.poisson_gaussian(std=2, rate="0.02", count=100, relation="add-remove")
    a, b = (acc.compose(e).epsilon(delta=1e-6) for e in (two, sampled))
    assert a.value == pytest.approx(b.value, rel=1e-10)
    assert a.upper == pytest.approx(b.upper, rel=1e-4)
    one = acc.compose(
        acc.mixture_of_gaussians(std=2, sensitivities=[1, 5], probabilities=[1, 0], relation="add-remove")
    )
    plain = acc.compose(acc.gaussian(std=2)).epsilon(delta=1e-6)
    assert one.epsilon(delta=1e-6) == replace(plain, relation="add-remove")
    assert (
        acc.compose(acc.mixture_of_gaussians(std=2, sensitivities=[0], probabilities=[1], relation="add-remove"))
        .delta(epsilon=0)
        .upper
        == 0
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: acc.matrix_sensitivity([1, 2, 3], participations=1),
        lambda: acc.matrix_sensitivity([[1, math.nan]], participations=1),
        lambda: acc.matrix_sensitivity([[0.0, 0.0]], participations=1),
        lambda: acc.matrix_sensitivity("no matrix", participations=1),
        lambda: acc.matrix_sensitivity([[1.0]], order="shuffled", participations=1),
        lambda: acc.matrix_sensitivity([[1.0]], participations=0),
        lambda: acc.matrix_gaussian(encoder=[[1.0]], std=0, sensitivity=1, participations=1),
        lambda: acc.mixture_of_gaussians(std=1, sensitivities=[0, 1], probabilities=[0.5, 0.4], relation="add-remove"),
        lambda: acc.mixture_of_gaussians(std=1, sensitivities=[0, 1], probabilities=[1], relation="add-remove"),
        lambda: acc.mixture_of_gaussians(std=1, sensitivities=[-1, 1], probabilities=[0.5, 0.5], relation="add-remove"),
        lambda: acc.mixture_of_gaussians(std=1, sensitivities="01", probabilities=[0.5, 0.5], relation="add-remove"),
        lambda: acc.mixture_of_gaussians(
            std=1e-3, sensitivities=[0, 1], probabilities=[0.5, 0.5], relation="add-remove"
        ),
    ],
)
def test_bad_input_is_refused(make):
    with pytest.raises(ParameterError, match="expected"):
        make()
