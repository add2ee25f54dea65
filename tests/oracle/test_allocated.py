"""Random allocation under replacing a user, of any mechanism and with several participations, against naive figures.

None of these shares code with the engine: integration in the plane, sums rounded by hand, enumeration, simulation.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, binom, norm

from privcheck import accounting as acc
from privcheck.accounting.engine.allocated import allocated_law
from privcheck.accounting.engine.allocated_below import GaussianRound, allocation_below, greatest, parts_atoms
from privcheck.accounting.engine.allocated_pairs import pair_allocation_law
from privcheck.accounting.engine.allocated_replaced import _Terms, replaced_allocation_law
from privcheck.accounting.engine.allocated_several import _Counted, log_most_likely
from privcheck.accounting.engine.discrete import response_law
from privcheck.accounting.engine.excesses import Binned, OnGrid, add_up, best_tilt, grid_above, grid_below
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import GaussianLaw
from privcheck.errors import ParameterError

DIRECTIONS = ("remove", "add")


def bounds(law, at, direction="remove"):
    """δ of both bounds at one ε, straight from the law."""
    both = (law.atoms_below(direction), law.atoms(direction))
    return tuple(float(np.exp(atoms.log_deltas(np.array([at]))[0])) for atoms in both)


def replaced(std, rounds, *, epochs=1, participations=1, relation="replace-one"):
    event = acc.random_allocation(
        std=std, rounds=rounds, epochs=epochs, participations=participations, relation=relation
    )
    return acc.compose(event)


# --- sums of independent numbers -------------------------------------------------------------------------------------


def on_a_grid(values, masses, low, step, count):
    """Law of a few values, each in its cell; those on a grid point are between points too."""
    place = (values - low) / step
    cell = np.minimum(place.astype(int), count - 1)
    inside = np.bincount(cell, weights=masses, minlength=count)
    raised = np.bincount(cell, weights=masses * (place - cell), minlength=count)
    return Binned(
        first=low,
        step=step,
        inside=inside,
        raised=raised,
        off=inside * 1e-13,
        lacking=np.zeros(count),
        atoms=np.zeros(count + 1),
        under=0.0,
    )


@st.composite
def few_values(draw):
    values = draw(st.lists(st.floats(-5, 5), min_size=2, max_size=6, unique=True))
    weights = draw(st.lists(st.floats(0.05, 1), min_size=len(values), max_size=len(values)))
    return np.array(values), np.array(weights) / sum(weights)


# [lemma excess-above] [lemma excess-below]
@settings(max_examples=150, deadline=None)
@given(law=few_values(), count=st.integers(1, 4), cells=st.integers(4, 60), share=st.floats(-0.2, 1.1))
def test_a_law_on_a_grid_bounds_every_sum(law, count, cells, share):
    values, masses = law
    low, high = float(values.min()) - 0.3, float(values.max()) + 0.4
    threshold = count * (low + share * (high - low))
    exact = 0.0
    for choice in itertools.product(range(len(values)), repeat=count):
        total, mass = values[list(choice)].sum(), float(np.prod(masses[list(choice)]))
        exact += mass * max(float(total) - threshold, 0.0)
    binned = on_a_grid(values, masses, low, (high - low) / cells, cells)
    above, below = grid_above(binned), grid_below(binned)
    tilt = best_tilt(above, count, threshold)
    assert add_up(above, count, tilt).excess(threshold)[1] >= exact * (1 - 1e-12)
    if below is not None:
        found = add_up(below, count, tilt).excess(threshold)
        assert found[0] <= exact * (1 + 1e-12) + 1e-14
        assert np.all(below.masses >= 0)
        assert below.masses.sum() <= 1 + 1e-9


# [lemma excess-above]
@settings(max_examples=100, deadline=None)
@given(law=few_values(), count=st.integers(1, 4), share=st.floats(-0.2, 1.1), tilt=st.floats(1, 4))
def test_exponentials_of_sums(law, count, share, tilt):
    values, masses = law
    step = 0.25
    places = np.round(values / step).astype(int) - round(float(values.min()) / step)
    grid = OnGrid(first=step * round(float(values.min()) / step), step=step, masses=np.bincount(places, weights=masses))
    points = grid.first + step * places
    threshold = count * (float(points.min()) + share * float(np.ptp(points)))
    exact = 0.0
    for choice in itertools.product(range(len(points)), repeat=count):
        total, mass = points[list(choice)].sum(), float(np.prod(masses[list(choice)]))
        exact += mass * max(math.expm1(float(total) - threshold), 0.0)
    found = math.exp(add_up(grid, count, tilt * step).log_exponential_excess(threshold))
    far = math.exp(tilt * (count * float(points.max()) - threshold))  # of the tilted mass a little is outside
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9) + 1e-9 * max(far, 1.0)


# [lemma excess-below]
def test_a_fine_grid_is_tight():
    """The uniform law on [0, 1], 40 of them: the bounds differ by about the square of the step."""
    gaps = []
    for cells in (20, 40, 80):
        inside = np.full(cells, 1 / cells)
        binned = Binned(
            first=0.0,
            step=1 / cells,
            inside=inside,
            raised=inside / 2,
            off=np.zeros(cells),
            lacking=np.zeros(cells),
            atoms=np.zeros(cells + 1),
            under=0.0,
        )
        laws = (grid_below(binned), grid_above(binned))
        found = [add_up(law, 40, best_tilt(law, 40, 23.0)).excess(23.0) for law in laws]
        assert found[0][0] < found[1][1]
        gaps.append(found[1][1] - found[0][0])
    assert gaps[1] < 0.4 * gaps[0]
    assert gaps[2] < 0.4 * gaps[1]


# --- replacing a user ------------------------------------------------------------------------------------------------


# [lemma allocation-replaced]
def test_no_other_pair_of_contributions_costs_more():
    """E(dN(u)/dN(0) − e^ε·dN(v)/dN(0) − c)₊ in the plane, for u and v in the ball and c of both signs."""
    rng = np.random.default_rng(3)
    grid = np.linspace(-8, 8, 241)
    x, y = np.meshgrid(grid, grid)
    mass = norm.pdf(x) * norm.pdf(y) * (grid[1] - grid[0]) ** 2

    def cost(u, v, epsilon, c):
        ratios = [np.exp(w[0] * x + w[1] * y - (w @ w) / 2) for w in (u, v)]
        return float((mass * np.maximum(ratios[0] - math.exp(epsilon) * ratios[1] - c, 0)).sum())

    for _ in range(60):
        s, epsilon, c = rng.uniform(0.1, 1.5), rng.uniform(0, 2), rng.uniform(-3, 3)
        u, v = (rng.uniform(0, s) * w / np.linalg.norm(w) for w in rng.standard_normal((2, 2)))
        opposite = np.array([s, 0.0])
        assert cost(u, v, epsilon, c) <= cost(opposite, -opposite, epsilon, c) + 1e-6


# [lemma allocation-replaced] [lemma allocation-one-large]
@pytest.mark.parametrize("s", [0.2, 0.5, 1.0, 1.6, 2.4])
def test_two_rounds_by_integration(s):
    law = replaced_allocation_law(s, 2)
    x = np.linspace(-8 - s, 8 + s, 1401)
    weights = norm.pdf(x) * (x[1] - x[0])
    mass = np.multiply.outer(weights, weights)
    for at in (0.0, 0.1, 0.4, 1.0, 2.0):
        w = np.exp(s * x - s * s / 2) - np.exp(at - s * x - s * s / 2)
        true = float((mass * np.maximum(np.add.outer(w, w), 0)).sum()) / 2
        lower, upper = bounds(law, at)
        assert lower <= true * (1 + 1e-4) + 1e-9
        assert upper >= true * (1 - 1e-4) - 1e-9
        assert upper - lower <= (0.06 if s < 2 else 0.1) * true + 1e-6


@pytest.mark.parametrize(("s", "rounds"), [(0.4, 8), (0.8, 20), (1.25, 5)])
def test_sums_rounded_by_hand_hold_the_curve(s, rounds):
    """W rounded down and up to a fine grid; cut at the ends, where it is rounded as well."""
    law, step = replaced_allocation_law(s, rounds), 4e-3
    for at in (0.0, 0.2, 0.5):
        edges = np.arange(-60, 60 + step, step)
        inside = np.arcsinh(edges / (2 * math.exp(at / 2 - s * s / 2)))
        masses = np.diff(norm.cdf((inside + at / 2) / s), prepend=0.0)
        tail = 1 - masses.sum()
        values = []
        for up in (0, 1):
            one = np.append(masses[1:], tail) if up == 0 else masses
            total = np.fft.irfft(np.fft.rfft(one, 1 << 21) ** rounds, 1 << 21)
            sums = rounds * edges[0] + np.arange(1 << 21) * step
            values.append(float(total @ np.maximum(sums, 0)) / rounds)
        # the part above 60 is missing in both
        missing = float(norm.sf((inside[-1] + at / 2) / s - s))
        lower, upper = bounds(law, at)
        assert lower <= values[1] + missing + 1e-9
        assert upper >= values[0] - 1e-9
        assert values[1] - values[0] <= 1.01 * step
        assert upper - lower <= 0.06 * upper + 1e-7


# [lemma allocation-replaced-large]
def test_bounds_hold_each_other_over_many_parameters():
    rng = np.random.default_rng(7)
    for _ in range(20):
        s, rounds = 10 ** rng.uniform(-6, 0.39), int(10 ** rng.uniform(0.31, 3))
        below = allocation_below(GaussianRound(shift=s, replaced=True), rounds, 1, "remove")
        std = math.sqrt(math.log1p(_Terms(shift=s, rounds=rounds, epsilon=0.0).std ** 2 / rounds))
        for epsilon in (rng.uniform(0, 5, 12) * std).tolist():
            upper = _Terms(shift=s, rounds=rounds, epsilon=epsilon).bound(rough=bool(rng.integers(2)))
            lower = float(np.exp(below.log_deltas(np.array([epsilon]))[0]))
            assert 0 <= lower <= upper <= 1
            known = norm.cdf(s - epsilon / (2 * s)) - math.exp(epsilon) * norm.cdf(-s - epsilon / (2 * s))
            assert lower <= known + 1e-12  # the random round is no worse than a known one


# [lemma allocation-one-large]
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("replaced", [False, True])
def test_one_large_number_among_three(replaced, direction):
    """All outcomes of three rounds in a cube, of which those with one large number are a part."""
    s = 1.5
    x = np.linspace(-7 - s, 7 + s, 161)
    weights = norm.pdf(x) * (x[1] - x[0])
    mass = weights[:, None, None] * weights[None, :, None] * weights[None, None, :]
    up, down = (np.exp(sign * s * x - s * s / 2) for sign in (1, -1))
    p = (up[:, None, None] + up[None, :, None] + up[None, None, :]) / 3
    q = (down[:, None, None] + down[None, :, None] + down[None, None, :]) / 3 if replaced else np.ones_like(p)
    over, under = (p, q) if direction == "remove" else (q, p)
    laws = GaussianRound(shift=s, replaced=replaced).one_large(3, direction)
    for at in (0.0, 0.5, 2.0, 3.0):
        true = float((mass * np.maximum(over - math.exp(at) * under, 0)).sum())
        shares = [float(np.maximum(a - math.exp(at) * b, 0).sum()) for a, b in laws]
        assert max(shares) <= true * (1 + 2e-2) + 1e-6
        assert direction == "add" or at < 2 or max(shares) >= 0.7 * true


# [lemma greatest-profile]
@settings(max_examples=80, deadline=None)
@given(law=few_values(), data=st.data())
def test_the_greatest_of_some_merged_pairs(law, data):
    values, q = law
    p = q * np.exp(values)
    p /= p.sum()
    size = len(p)
    groups = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    merged = [data.draw(groups) for _ in range(data.draw(st.integers(1, 4)))]
    laws = [tuple(np.bincount(group, weights=masses) for masses in (p, q)) for group in merged]
    over, under = greatest(laws)

    def profile(a, b, x):
        return float(np.maximum(a - x * b, 0).sum())

    for x in np.exp(np.linspace(-6, 6, 41)):
        known = [profile(*one, x) for one in laws]
        assert profile(over, under, x) <= max(known) * (1 + 1e-9)
    for a, b in laws:  # at every kink of one of them it is as large as the largest
        for x in a[(a > 0) & (b > 0)] / b[(a > 0) & (b > 0)]:
            assert profile(over, under, x) >= max(profile(*one, x) for one in laws) * (1 - 1e-6) - 1e-9
    atoms = parts_atoms(over, under)
    two = (np.multiply.outer(z, z).ravel() for z in (np.exp(atoms.logs), np.exp(atoms.logs - atoms.losses)))
    pair, squared = tuple(two), (np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel())
    for x in np.exp(np.linspace(-4, 4, 21)):
        assert profile(*pair, x) <= profile(*squared, x) * (1 + 1e-9) + 1e-12


# [lemma allocation-replaced]
def test_simulated_epochs_lie_between_the_bounds():
    """Each share of 2·10⁵ runs lies outside its Clopper–Pearson interval with probability 1e-9, 6 times."""
    rng = np.random.default_rng(5)
    rounds, runs = 20, 200_000
    for epochs in (1, 3):
        losses = np.zeros(runs)
        for _ in range(epochs):
            x = rng.standard_normal((runs, rounds))
            x[:, 0] += 1
            losses += np.log(np.exp(x).sum(axis=1)) - np.log(np.exp(-x).sum(axis=1))
        for at in (0.3, 0.8, 1.2):
            hits = int((losses > at + rng.exponential(size=runs)).sum())
            low, high = beta.ppf(5e-10, hits, runs - hits + 1), beta.ppf(1 - 5e-10, hits + 1, runs - hits)
            figure = replaced(1, rounds, epochs=epochs).delta(epsilon=at)
            assert figure.upper >= low
            assert figure.lower <= high


@pytest.mark.parametrize(
    ("std", "rounds", "epochs", "delta", "gap"),
    [
        (1, 100, 10, 1e-5, 0.01),
        (2, 1000, 10, 1e-6, 0.005),
        (30, 50, 3, 1e-12, 0.02),
        (1, 1000, 1, 1e-8, 0.025),
        (0.41, 100, 1, 1e-5, 0.025),
    ],
)
def test_replaced_bounds_are_near_each_other(std, rounds, epochs, delta, gap):
    figure = replaced(std, rounds, epochs=epochs).epsilon(delta=delta)
    assert (1 - gap) * figure.upper <= figure.lower <= figure.upper
    one_side = replaced(std, rounds, epochs=epochs, relation="add-remove").epsilon(delta=delta)
    assert one_side.lower <= figure.upper
    same = replaced(std, rounds, epochs=epochs, relation="replace-one-same-start").epsilon(delta=delta)
    assert same.upper == figure.upper


@pytest.mark.parametrize("std", [1e-6, 0.5, 1e7, 1e12])
@pytest.mark.parametrize("rounds", [1, 2, pytest.param(10**4, marks=pytest.mark.nightly)])
def test_replaced_extremes_are_bounded(std, rounds):
    figure = replaced(std, rounds, epochs=3).epsilon(delta=1e-12)
    plain = acc.compose(acc.gaussian(std=std, sensitivity=2, count=3)).epsilon(delta=1e-12)
    assert 0 <= figure.upper <= plain.upper * (1 + 5e-3)
    if figure.bounded_below:
        assert 0 <= figure.lower <= figure.upper


@pytest.mark.slow
def test_a_million_rounds():
    figure = replaced(4, 10**6).epsilon(delta=1e-8)
    fewer = replaced(4, 10**4).epsilon(delta=1e-8)
    assert 0 < figure.lower <= figure.upper < fewer.lower
    assert figure.upper <= 1.25 * figure.lower


def test_releases_of_one_draw_are_one_release():
    (law, _), *_ = acc.random_allocation(std=3, rounds=50, relation="replace-one").pieces
    assert law.on_one_draw(4).arguments == (pytest.approx(2 / 3), 50)
    (law, _), *_ = acc.random_allocation(std=3, rounds=50, participations=2, relation="zero-out").pieces
    assert law.on_one_draw(4).arguments[0].one.shift == pytest.approx(2 / 3)
    (law, _), *_ = acc.allocated(event=acc.laplace(scale=3), rounds=50, relation="zero-out").pieces
    assert law.on_one_draw(4).arguments == (((LaplaceLaw(1 / 3), 4),), 50)


# --- any mechanism ---------------------------------------------------------------------------------------------------


# [lemma allocation-any-pair]
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("rounds", [2, 5, 60])
def test_randomized_response_by_its_binomial(epsilon, rounds):
    """S/t depends on the number of rounds with the likelier outcome only."""
    law = pair_allocation_law(((response_law(epsilon, 2), 1),), rounds, exact=True)
    ones = np.arange(rounds + 1)
    share = 1 / (1 + math.exp(epsilon))
    q = binom.pmf(ones, rounds, share)
    ratio = (ones * math.exp(epsilon) + (rounds - ones) * math.exp(-epsilon)) / rounds
    for at in np.array([0.0, 0.01, 0.1, 0.4, 0.8]) * epsilon:
        true = {"remove": float(q @ np.maximum(ratio - math.exp(at), 0))}
        true["add"] = float(q @ np.maximum(1 - math.exp(at) * ratio, 0))
        for direction in DIRECTIONS:
            lower, upper = bounds(law, at, direction)
            assert lower <= true[direction] * (1 + 1e-10) + 1e-14
            assert upper >= true[direction] * (1 - 1e-10) - 1e-14
            assert upper - lower <= 0.1 * true[direction] + 1e-6  # between knots the curve has corners


# [lemma allocation-any-pair]
@pytest.mark.parametrize("a", [0.3, 1.0, 3.0])
def test_laplace_in_two_rounds_by_integration(a):
    law = pair_allocation_law(((LaplaceLaw(a), 1),), 2, exact=True)
    # the loss under Q: −a with probability ½, a with ½e^{−a}, and the density ¼e^{−(l + a)/2} between
    inner = np.linspace(-a, a, 3001)
    middles, width = (inner[1:] + inner[:-1]) / 2, inner[1] - inner[0]
    losses = np.concatenate([[-a], middles, [a]])
    masses = np.concatenate([[0.5], 0.25 * np.exp(-(middles + a) / 2) * width, [0.5 * math.exp(-a)]])
    assert masses.sum() == pytest.approx(1, abs=1e-6)
    ratio = np.add.outer(np.exp(losses), np.exp(losses)) / 2
    mass = np.multiply.outer(masses, masses)
    for at in np.array([0.0, 0.05, 0.3, 0.7]) * a:
        remove = float((mass * np.maximum(ratio - math.exp(at), 0)).sum())
        add = float((mass * np.maximum(1 - math.exp(at) * ratio, 0)).sum())
        for direction, true in zip(DIRECTIONS, (remove, add), strict=True):
            lower, upper = bounds(law, at, direction)
            assert lower <= true * (1 + 1e-4) + 1e-7
            assert upper >= true * (1 - 1e-4) - 1e-7
            assert upper - lower <= 0.06 * true + 1e-4


# [lemma allocation-any-pair]
@settings(max_examples=12, deadline=None)
@given(
    p=st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
    q=st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
    rounds=st.integers(2, 4),
)
def test_few_outcomes_by_enumeration(p, q, rounds):
    p, q = (np.array(x) / sum(x) for x in (p, q))
    event = acc.allocated(event=acc.loss_distribution(list(p), list(q)), rounds=rounds, relation="zero-out")
    curve = acc.compose(event)
    for at in (0.0, 0.1, 0.5):
        remove = add = 0.0
        for outcome in itertools.product(range(3), repeat=rounds):
            rest = float(np.prod(q[list(outcome)]))
            user = rest * float(np.mean([p[o] / q[o] for o in outcome]))
            remove += max(user - math.exp(at) * rest, 0.0)
            add += max(rest - math.exp(at) * user, 0.0)
        true = max(remove, add)
        figure = curve.delta(epsilon=at)
        assert figure.upper >= true * (1 - 1e-9)
        assert figure.upper <= true * 1.03 + 1e-3
        assert not figure.bounded_below  # only a bound on some mechanism's pair is known


@pytest.mark.parametrize(
    "base",
    [acc.laplace(scale=1), acc.randomized_response(epsilon=1, categories=3), acc.discrete_laplace(scale=2)],
)
def test_bounds_of_any_mechanism_are_near_each_other(base):
    event = acc.allocated(event=base, rounds=100, epochs=5, relation="add-remove")
    figure = acc.compose(event).epsilon(delta=1e-6)
    assert 0.98 * figure.upper <= figure.lower <= figure.upper
    known = acc.compose(5 * base).epsilon(delta=1e-6)
    assert figure.upper <= known.upper


def test_no_loss_is_larger_than_that_of_a_known_round():
    """A mass of rounding's size at an unbounded loss would show at this δ."""
    base = acc.laplace(scale=3.26)
    event = acc.allocated(event=base, rounds=4, epochs=305, relation="add-remove")
    figure = acc.compose(event).epsilon(delta=1.13e-12)
    assert 0.95 * figure.upper <= figure.lower <= figure.upper
    assert figure.upper < acc.compose(305 * base).epsilon(delta=1.13e-12).upper / 2


# [lemma allocation-any-pair]
@pytest.mark.parametrize(("s", "rounds"), [(0.5, 100), (1.0, 40)])
def test_gaussian_noise_by_two_ways(s, rounds):
    """Its loss on a grid, and sums of ratios on another, against the transform that knows the Gaussian."""
    grids, known = pair_allocation_law(((GaussianLaw(s * s), 1),), rounds, exact=False), allocated_law(s, rounds)
    for direction in DIRECTIONS:
        for at in (-0.1, 0.0, 0.05, 0.2, 0.4):
            lower, upper = bounds(known, at, direction)
            found = float(np.exp(grids.atoms(direction).log_deltas(np.array([at]))[0]))
            assert lower <= found <= upper * 1.08 + 1e-7


def test_gaussian_noise_is_the_other_event():
    event = acc.allocated(event=acc.gaussian(std=2), rounds=40, participations=3, relation="zero-out")
    direct = acc.random_allocation(std=2, rounds=40, participations=3, relation="zero-out")
    assert acc.compose(event).epsilon(delta=1e-5).upper == pytest.approx(
        acc.compose(direct).epsilon(delta=1e-5).upper, rel=1e-9
    )


def test_one_round_is_the_mechanism_itself_and_several_are_blocks():
    base = acc.laplace(scale=2)
    alone = acc.allocated(event=base, rounds=1, epochs=4, relation="zero-out")
    assert acc.compose(alone).epsilon(delta=1e-5).value == acc.compose(4 * base).epsilon(delta=1e-5).value
    blocks = acc.compose(acc.allocated(event=base, rounds=20, participations=2, relation="zero-out"))
    two = acc.compose(acc.allocated(event=base, rounds=10, epochs=2, relation="zero-out"))
    assert blocks.epsilon(delta=1e-5).upper == pytest.approx(two.epsilon(delta=1e-5).upper, rel=1e-3)
    bound = acc.loss_distribution([0.5, 0.5], [0.4, 0.6])
    listed = acc.compose(acc.allocated(event=bound, rounds=20, participations=2, relation="zero-out"))
    assert "blocks" in listed.epsilon(delta=1e-5).reason
    assert not listed.epsilon(delta=1e-5).bounded_below


def test_what_is_refused():
    with pytest.raises(ParameterError, match="only Gaussian noise has a pair"):
        acc.allocated(event=acc.laplace(scale=2), rounds=9, relation="replace-one")
    with pytest.raises(ParameterError, match="Rényi orders"):
        acc.allocated(event=acc.zcdp(rho=1), rounds=9, relation="zero-out")
    with pytest.raises(ParameterError, match="participations"):
        acc.allocated(event=acc.laplace(scale=2), rounds=9, participations=10, relation="zero-out")
    inner = acc.poisson_gaussian(std=1, rate=0.5, relation="replace-one")
    with pytest.raises(ParameterError, match="priced under zero-out"):
        acc.allocated(event=inner, rounds=9, relation="zero-out")


# --- several participations ------------------------------------------------------------------------------------------


def symmetric_polynomial(values, k):
    """The k-th elementary symmetric polynomial of each row."""
    sums = [np.ones(len(values))] + [np.zeros(len(values)) for _ in range(k)]
    for column in values.T:
        for j in range(k, 0, -1):
            sums[j] = sums[j] + sums[j - 1] * column
    return sums[k]


# [lemma allocation-statistic] [lemma allocation-blocks] [lemma allocation-chord]
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("rounds", "k"), [(8, 3), (30, 2), (12, 5), (6, 4), (5, 4)])
def test_simulated_choices_lie_between_the_bounds(relation, rounds, k):
    """Each share of 2·10⁵ runs lies outside its Clopper–Pearson interval with probability 1e-9, 40 times."""
    rng = np.random.default_rng(11)
    runs, s = 200_000, 0.8
    curve = acc.compose(acc.random_allocation(std=1 / s, rounds=rounds, participations=k, relation=relation))
    for direction in DIRECTIONS:
        x = rng.standard_normal((runs, rounds))
        if direction == "remove" or relation == "replace-one":
            x[:, :k] += s
        loss = np.log(symmetric_polynomial(np.exp(s * x - s * s / 2), k) / math.comb(rounds, k))
        if relation == "replace-one":
            loss -= np.log(symmetric_polynomial(np.exp(-s * x - s * s / 2), k) / math.comb(rounds, k))
        elif direction == "add":
            loss = -loss
        for at in (0.3, 1.0):
            hits = int((loss > at + rng.exponential(size=runs)).sum())
            low, high = beta.ppf(5e-10, hits, runs - hits + 1), beta.ppf(1 - 5e-10, hits + 1, runs - hits)
            figure = curve.delta(epsilon=at)
            assert figure.upper >= low
            assert direction == "add" or figure.lower <= high


# [lemma allocation-complement]
@settings(max_examples=200)
@given(seed=st.integers(0, 2**32), rounds=st.integers(2, 12), s=st.floats(0.05, 4), data=st.data())
def test_most_rounds_are_known_ones_and_a_complement(seed, rounds, s, data):
    """Without the rounds' sum the likelihood ratio is that of the complement, mirrored; the sum's is a Gaussian's."""
    k = data.draw(st.integers(0, rounds))
    x = np.random.default_rng(seed).normal(0, 2, rounds)

    def without_the_sum(x, k):
        whole = math.log(symmetric_polynomial(np.exp(s * x - s * s / 2)[np.newaxis], k)[0] / math.comb(rounds, k))
        moved = k * s / math.sqrt(rounds)
        return whole - (moved * x.sum() / math.sqrt(rounds) - moved**2 / 2)

    mirrored = 2 * x.mean() - x
    assert without_the_sum(x, k) == pytest.approx(without_the_sum(mirrored, rounds - k), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("relation", ["add-remove", "zero-out", "replace-one"])
def test_all_rounds_but_one_are_nearly_exact(relation):
    event = acc.random_allocation(std=7.42, rounds=5, participations=4, relation=relation, epochs=3)
    parts = [
        acc.gaussian(std=7.42, sensitivity=2 if relation == "replace-one" else 1, count=9),
        acc.random_allocation(std=7.42, rounds=5, relation=relation, epochs=3),
    ]
    figure, apart = acc.compose(event).epsilon(delta=1e-4), acc.compose(*parts).epsilon(delta=1e-4)
    assert figure.value == apart.value
    assert 0.998 * figure.upper <= figure.lower == apart.lower


# [lemma allocation-count]
def test_the_ratio_of_k_rounds_is_below_that_of_a_sample():
    """Outcome by outcome, at any rate: symmetric polynomials, and Bayes by convolution."""
    rng = np.random.default_rng(2)
    for _ in range(400):
        rounds = int(rng.integers(2, 40))
        k, rate = int(rng.integers(1, rounds)), float(rng.uniform(1e-3, 0.999))
        ratios = np.exp(rng.normal(0, 10 ** rng.uniform(-1, 0.7), (1, rounds)))
        exact = float(symmetric_polynomial(ratios, k)[0]) / math.comb(rounds, k)
        share = rate * ratios / (1 - rate + rate * ratios)
        variance = (share * (1 - share)).sum()
        bound = math.exp(log_most_likely(np.array([variance]), rounds)[0]) * float(np.prod(1 - rate + rate * ratios))
        assert exact <= bound / binom.pmf(k, rounds, rate) * (1 + 1e-9)
        # given the outcomes the size of the sample has that probability: Bayes
        sizes = np.ones(1)
        for one in share[0]:
            sizes = np.convolve(sizes, [1 - one, one])
        bayes = float(np.prod(1 - rate + rate * ratios)) * sizes[k] / binom.pmf(k, rounds, rate)
        assert bayes == pytest.approx(exact, rel=1e-8)


# [lemma allocation-nodes]
@pytest.mark.parametrize(
    ("variance", "rounds"), [(0.0, 3), (1e-6, 50), (0.7, 3), (5.0, 21), (200.0, 1000), (2e4, 10**6)]
)
def test_the_largest_probability_of_a_number_of_rounds(variance, rounds):
    half = (rounds + 1) // 2

    def size(angle):
        return math.exp(half * math.log1p(-2 * variance / half * math.sin(angle / 2) ** 2))

    truth, error = integrate.quad(size, 0, math.pi, points=[min(3.0, 1 / math.sqrt(1 + variance))], epsrel=1e-12)
    bound = math.exp(log_most_likely(np.array([variance]), rounds)[0]) * math.pi
    assert truth - error <= bound <= truth * (1 + 1e-9) + error


# [lemma allocation-chord]
@pytest.mark.parametrize(("s", "rounds", "k", "rate", "tilt"), [(1.0, 16, 4, 0.2, 1.0), (0.7, 30, 12, 0.35, 1.8)])
def test_tilted_outcomes_are_below_the_bound(s, rounds, k, rate, tilt):
    """Importance sampling: 2·10⁴ outcomes under the law that the likelihood ratio tilts; ten standard errors."""
    rng = np.random.default_rng(9)
    one = _Counted(shift=s, rounds=rounds, participations=k, rate=rate, tilt=tilt)
    x = np.linspace(-9.0, 14.0, 20_001)
    h = np.log1p(rate * np.expm1(s * x - s * s / 2))
    draws, logs = np.empty((20_000, rounds)), 0.0
    for centre, columns in ((s, slice(0, k)), (0.0, slice(k, None))):
        weights = np.exp(-((x - centre) ** 2) / 2 + (tilt - 1) * h)
        size = draws[:, columns].shape
        draws[:, columns] = rng.choice(x, size, p=weights / weights.sum())
        plain = np.exp(-((x - centre) ** 2) / 2).sum()
        logs += size[1] * math.log(weights.sum() / plain)
    ratio = np.exp(s * draws - s * s / 2)
    loss = np.log(symmetric_polynomial(ratio, k) / math.comb(rounds, k))
    undone = np.exp(logs - (tilt - 1) * np.log1p(rate * (ratio - 1)).sum(axis=1))
    at = one.loss * np.array([0.8, 1.0, 1.3])
    bounds = one.bounds(at, math.log(1e-4))
    for epsilon, bound in zip(at.tolist(), bounds, strict=True):
        found = undone * np.maximum(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0)
        mean, error = float(found.mean()), float(found.std()) / math.sqrt(len(found))
        assert bound >= mean - 10 * error
        assert bound <= 2.5 * mean + 10 * error + 2e-3


def test_the_chance_of_a_number_of_rounds_is_rounded_down():
    for rounds, k, rate in ((10, 3, 0.2), (1000, 100, 0.09), (10**6, 4, 1e-5)):
        one = _Counted(shift=1.0, rounds=rounds, participations=k, rate=rate, tilt=1.0)
        logs = gammaln(rounds + 1) - gammaln(k + 1) - gammaln(rounds - k + 1) + k * math.log(rate)
        assert one.log_probability == pytest.approx(logs + (rounds - k) * math.log1p(-rate), abs=1e-6)
        assert one.log_probability <= binom.logpmf(k, rounds, rate) + 1e-9


# [lemma allocation-heads] [lemma allocation-statistic]
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize(("rounds", "k"), [(4, 2), (12, 3), (40, 30), (200, 40)])
def test_several_randomized_responses_by_their_binomial(epsilon, rounds, k):
    """The ratio depends on the number of rounds with the likelier outcome: every number enumerated."""
    event = acc.allocated(
        event=acc.randomized_response(epsilon=epsilon, categories=2),
        rounds=rounds,
        participations=k,
        relation="zero-out",
    )
    curve = acc.compose(event)
    ones = np.arange(rounds + 1)
    q = binom.pmf(ones, rounds, 1 / (1 + math.exp(epsilon)))
    ratio = np.array([
        float(symmetric_polynomial(np.exp(epsilon * np.where(np.arange(rounds) < n, 1.0, -1.0))[None, :], k)[0])
        for n in ones
    ]) / math.comb(rounds, k)  # fmt: skip
    for at in np.array([0.0, 0.1, 0.5, 1.0]) * epsilon:
        true = max(float(q @ np.maximum(ratio - math.exp(at), 0)), float(q @ np.maximum(1 - math.exp(at) * ratio, 0)))
        figure = curve.delta(epsilon=at)
        assert figure.lower <= true * (1 + 1e-9) + 1e-14
        assert figure.upper >= true * (1 - 1e-9) - 1e-14
        assert figure.lower >= 0.999 * figure.upper - 1e-14


def test_heads_that_floats_cannot_hold():
    """The data sets are hardly ever confused: the loss is about that of the usual number of heads without the user."""
    epsilon, rounds, k = 2.0, 10_000, 1000
    event = acc.allocated(event=acc.pure(epsilon=epsilon), rounds=rounds, participations=k, relation="add-remove")
    figure = acc.compose(event).epsilon(delta=0.5)
    p, q = (1 / (1 + math.exp(sign * epsilon)) for sign in (-1, 1))
    heads, own = round(rounds * q), np.arange(k + 1)
    with_user = logsumexp(binom.logpmf(own, k, p) + binom.logpmf(heads - own, rounds - k, q))
    assert figure.upper == pytest.approx(binom.logpmf(heads, rounds, q) - with_user, rel=0.01)
    assert figure.lower == pytest.approx(figure.upper, rel=1e-6)


@pytest.mark.parametrize("k", [2, 10, 100])
def test_bounds_of_several_participations_of_any_mechanism(k):
    event = acc.allocated(event=acc.laplace(scale=1), rounds=1000, participations=k, relation="add-remove")
    figure = acc.compose(event).epsilon(delta=1e-5)
    assert 0.97 * figure.upper <= figure.lower <= figure.upper


@pytest.mark.parametrize(("k", "gap"), [(2, 0.005), (10, 0.01), (100, 0.03)])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_bounds_for_several_participations(k, gap, relation):
    gap = min(gap, 0.02) if relation == "add-remove" else gap
    figure = replaced(1, 1000, epochs=10, participations=k, relation=relation).epsilon(delta=1e-5)
    assert (1 - gap) * figure.upper <= figure.lower <= figure.upper


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    std=st.floats(0.6, 30),
    rounds=st.integers(3, 300),
    share=st.floats(0, 1),
    relation=st.sampled_from(["add-remove", "replace-one"]),
)
def test_several_participations_lie_between_one_and_all(std, rounds, share, relation):
    k = 2 + int(share * (rounds - 3))
    figures = [replaced(std, rounds, participations=n, relation=relation).epsilon(delta=1e-6) for n in (1, k, rounds)]
    assert figures[1].lower <= figures[1].upper
    assert figures[0].lower <= figures[1].upper * (1 + 1e-9)
    assert figures[1].lower <= figures[2].upper * (1 + 1e-9)
