"""Random allocation in few rounds of little noise, against integration, enumeration and simulation.

None of these shares code with the engine: sums over all choices of values, trapezoids in the line and in the plane with
one term in closed form, simulated epochs.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import beta

from privcheck import accounting as acc
from privcheck.accounting.engine.allocated import allocated_law
from privcheck.accounting.engine.allocated_replaced import replaced_allocation_law
from privcheck.accounting.engine.doubled import OCTAVES, Numbers, Sums, excess_of_both, plus, repeated
from privcheck.accounting.engine.doubled import _steps as steps

BOUNDS = ("both above", "excess below", "shortfall below")


def curve(law, direction, losses, *, below):
    """δ of one of the bounds, straight from the law."""
    atoms = law.atoms_below(direction) if below else law.atoms(direction)
    return np.exp(atoms.log_deltas(np.array(losses)))


# --- sums of independent numbers -------------------------------------------------------------------------------------


def exactly(law, count, thresholds):
    """E(ΣV − c)₊ and E(c − ΣV)₊ by all choices of `count` values."""
    over, under = np.zeros(len(thresholds)), np.zeros(len(thresholds))
    for choice in itertools.product(law.items(), repeat=count):
        total, mass = math.fsum(value for value, _ in choice), math.prod(mass for _, mass in choice)
        over += mass * np.maximum(total - thresholds, 0)
        under += mass * np.maximum(thresholds - total, 0)
    return over, under


@st.composite
def laws(draw):
    """A few values on the grid, of very different sizes, with masses of very different sizes."""
    octave, start = draw(st.sampled_from(OCTAVES[:4])), draw(st.integers(-30, 30))
    signed, size = draw(st.booleans()), draw(st.integers(20, 60))
    places = draw(st.lists(st.integers(-size if signed else 0, size), min_size=2, max_size=5, unique=True))
    logs = draw(st.lists(st.floats(-12, 0), min_size=len(places), max_size=len(places)))
    masses = np.exp(logs) / np.exp(logs).sum()
    on_grid = np.zeros((1, (2 if signed else 1) * size + 1))
    law = {}
    for place, mass in zip(places, masses.tolist(), strict=True):
        on_grid[0, place + (size if signed else 0)] = mass
        law[math.copysign(2.0 ** ((start + abs(place) - 1) / octave), place) if place else 0.0] = mass
    return law, [
        Sums(start=start, octave=octave, middle=size if signed else 0, masses=on_grid.copy(), bounds=bounds)
        for bounds in BOUNDS
    ]


# [lemma excess-doubled] [lemma excess-doubled-below]
@settings(max_examples=80, deadline=None)
@given(known=laws(), count=st.integers(2, 4))
def test_sums_of_a_few_values_by_enumeration(known, count):
    law, (above, excess, shortfall) = known
    upper = repeated(above, count)
    over, under = exactly(law, count, upper.points)
    far = 1e-14 * count * max(map(abs, law))  # of thresholds that are sums
    assert np.all(upper.excesses()[0] >= over * (1 - 1e-12) - far)
    assert np.all(upper.shortfalls()[0] >= under * (1 - 1e-12) - far)
    assert np.all(repeated(excess, count).excesses()[0] <= over * (1 + 1e-12) + far)
    assert np.all(repeated(shortfall, count).shortfalls()[0] <= under * (1 + 1e-12) + far)
    # a split moves a number by less than the distance of two points, for every time that it is split
    apart = (2 ** (1 / above.octave) - 1) * 2 * math.log2(2 * count) * count * sum(abs(v) * p for v, p in law.items())
    assert np.all(upper.excesses()[0] <= over + apart)
    if above.middle:
        halves = [plus(one, one) for one in (above, excess)]
        true = exactly(law, 4, np.zeros(1))[0][0]
        low, high = (float(excess_of_both(half, half)[0]) for half in reversed(halves))
        assert low <= true * (1 + 1e-12) + far
        assert high >= true * (1 - 1e-12) - far


# [lemma excess-doubled] [lemma excess-doubled-below]
@pytest.mark.parametrize("s", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(("start", "count"), [(-40, 120), (0, 40), (-8, 24)])
def test_two_numbers_of_which_much_is_below_the_first_point_or_above_the_last(s, start, count):
    """One in closed form, the other integrated; thresholds at the points."""
    at = Sums(start=start, octave=8, middle=0, masses=np.zeros((1, count + 1)), bounds="both above").points
    with np.errstate(divide="ignore"):
        x = (np.log(at) / s + s / 2)[np.newaxis]
    numbers = Numbers(start=start, octave=8, x=x, blur=1e-15, parts=((s, np.ones(1)),))
    lost = 2 * float(numbers.beyond()[0])
    y = np.linspace(-12, 14, 4001)
    weights = np.exp(-y * y / 2) * (y[1] - y[0]) / math.sqrt(2 * math.pi)
    for bounds in BOUNDS:
        two = repeated(numbers.on_points(bounds), 2)
        c = two.points
        rest = c - np.exp(s * y[:, np.newaxis] - s * s / 2)
        with np.errstate(divide="ignore"):
            d = np.log(np.maximum(rest, 0)) / s
        over = weights @ np.where(rest > 0, ndtr(s / 2 - d) - rest * ndtr(-s / 2 - d), 1 - rest)
        under = over - 2 + c
        if bounds == "both above":
            assert np.all(two.excesses()[0] + lost >= over - 1e-9)
            assert np.all(two.shortfalls()[0] >= under - 1e-9)
        elif bounds == "excess below":
            assert np.all(two.excesses()[0] <= over + 1e-9)
        else:
            assert np.all(two.shortfalls()[0] <= under + 1e-9)


# [lemma excess-doubled] [lemma excess-doubled-below]
@settings(max_examples=40, deadline=None)
@given(
    octave=st.sampled_from(OCTAVES[:2]),
    signed=st.booleans(),
    count=st.integers(2, 3),
    peaks=st.tuples(st.floats(0, 60), st.floats(0, 60)),
    width=st.floats(2, 30),
)
def test_sums_of_many_values_by_enumeration(octave, signed, count, peaks, width):
    """Thresholds at all the sums, most of them between points: there a split shows, and what is taken away for it."""
    k = np.arange(60)
    over, under = (np.exp(-(((k - peak) / width) ** 2)) for peak in peaks)
    masses = np.concatenate([under[::-1] if signed else under[:0], [0.01], over])
    masses /= masses.sum()
    positive = 2.0 ** ((k - 20) / octave)
    values = np.concatenate([-positive[::-1] if signed else positive[:0], [0.0], positive])
    sums, chances = values, masses
    for _ in range(count - 1):
        sums, chances = np.add.outer(sums, values).ravel(), np.multiply.outer(chances, masses).ravel()
    order = np.argsort(sums)
    sums, chances = sums[order], chances[order]
    after = np.append(np.cumsum(chances[::-1])[::-1][1:], 0.0)
    before = np.append(0.0, np.cumsum(chances)[:-1])
    exact = (
        np.append(np.cumsum((after[:-1] * np.diff(sums))[::-1])[::-1], 0.0),
        np.append(0.0, np.cumsum(before[1:] * np.diff(sums))),
    )
    middle, off = 60 if signed else 0, 1e-12 * positive[-1]
    for bounds in BOUNDS:
        one = Sums(start=-20, octave=octave, middle=middle, masses=masses[np.newaxis, :].copy(), bounds=bounds)
        summed = repeated(one, count)
        for i, found in enumerate((summed.excesses()[0], summed.shortfalls()[0])):
            at = np.interp(sums, summed.points, found)
            if bounds == "both above":
                assert np.all(at >= exact[i] * (1 - 1e-12) - off)
            elif bounds == BOUNDS[1 + i]:
                assert np.all(at <= exact[i] * (1 + 1e-12) + off)


# [lemma excess-doubled]
@pytest.mark.parametrize("octave", OCTAVES)
@pytest.mark.parametrize("sign", [1, -1])
def test_shares_put_every_sum_between_two_points(octave, sign):
    found = steps(octave, sign)
    for d, (move, share) in enumerate(zip(found.moves, found.shares, strict=True), 1):
        ends = [2.0 ** (place / octave) for place in (move, move + 1)]
        assert ends[0] * (1 - share) + ends[1] * share == pytest.approx(1 + sign * 2.0 ** (-d / octave), rel=1e-12)
        # at a point exactly it may be on either side; elsewhere rounding does not put it into the wrong cell
        assert (sign < 0 and d == octave) or 1e-6 < share < 1 - 1e-6
    rest = 1 + sign * 2.0 ** (-(len(found.moves) + 1) / octave)
    assert 2.0 ** (min(sign, 0) / octave) <= rest <= 2.0 ** (max(sign, 0) / octave)


# [lemma excess-doubled-below]
@pytest.mark.parametrize("signed", [False, True])
def test_bounds_of_a_smooth_law_differ_by_the_square_of_the_distance(signed):
    gaps = []
    for octave in (8, 16, 32):
        least = octave * round(2 + math.log2(octave))  # the least point is far nearer to 0 than the others' distance
        k = np.arange(-least, 3 * octave)
        side = 2.0 ** (k / octave) * np.exp(-((k / octave + 1) ** 2) / 2) / octave
        masses = np.concatenate([side[::-1] if signed else side[:0], [0.0], side])[np.newaxis, :]
        masses /= masses.sum()
        found = []
        for bounds in BOUNDS[:2]:
            middle = len(k) if signed else 0
            one = Sums(start=-least, octave=octave, middle=middle, masses=masses.copy(), bounds=bounds)
            summed = repeated(one, 5)
            found.append(np.interp(2.5, summed.points, summed.excesses()[0]))
        gaps.append(1 - found[1] / found[0])
        assert gaps[-1] > 0
    assert gaps[1] < 0.4 * gaps[0]
    assert gaps[2] < 0.4 * gaps[1]
    assert gaps[2] < 2e-3


# --- two and three rounds --------------------------------------------------------------------------------------------


def call(s, c):
    """E(Y − c)₊ and E(c − Y)₊ of Y = e^{sx − s²/2}."""
    at = np.log(np.maximum(c, 1e-300)) / s
    over = np.where(c > 0, ndtr(s / 2 - at) - c * ndtr(-s / 2 - at), 1 - c)
    return over, np.where(c > 0, c * ndtr(at + s / 2) - ndtr(at - s / 2), 0)


def swap(s, epsilon, c):
    """E(W − c)₊ of W = e^{sx − s²/2} − e^{ε − sx − s²/2}."""
    x = (np.arcsinh(c * math.exp(s * s / 2 - epsilon / 2) / 2) + epsilon / 2) / s
    return ndtr(s - x) - math.exp(epsilon) * ndtr(-s - x) - c * ndtr(-x)


def deltas(s, rounds, epsilon):
    """Trapezoids over all rounds but one: δ of remove and add, and of replacing a user."""
    x = np.linspace(-10 - s, 10 + s, 10_001 if rounds == 2 else 601)
    weights = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    y = np.exp(s * x - s * s / 2)
    w = y - np.exp(epsilon - s * x - s * s / 2)
    for _ in range(rounds - 2):
        y, w, weights = (
            np.add.outer(y, y).ravel(),
            np.add.outer(w, w).ravel(),
            np.multiply.outer(weights, weights).ravel(),
        )
    remove = float(weights @ call(s, rounds * math.exp(epsilon) - y)[0]) / rounds
    add = float(weights @ call(s, rounds * math.exp(-epsilon) - y)[1]) / rounds * math.exp(epsilon)
    return remove, add, float(weights @ swap(s, epsilon, -w)) / rounds


# [lemma excess-doubled] [lemma excess-doubled-below] [lemma allocation-replaced] [lemma allocation-pair]
@pytest.mark.parametrize(("s", "rounds"), [(2.0, 2), (1.5, 2), (1.0, 2), (0.6, 2), (2.4, 3), (1.3, 3)])
def test_few_rounds_by_integration(s, rounds):
    losses = np.array([0.0, 0.3, 1.0, 2.0, 3.0, 5.0, 8.0])
    true = np.array([deltas(s, rounds, epsilon) for epsilon in losses])
    one, two = allocated_law(s, rounds), replaced_allocation_law(s, rounds)
    for i, (law, direction) in enumerate([(one, "remove"), (one, "add"), (two, "remove")]):
        seen = true[:, i] > 1e-9
        lower, upper = (curve(law, direction, losses, below=below)[seen] for below in (True, False))
        assert np.all(lower <= true[seen, i] * (1 + 1e-7))
        assert np.all(upper >= true[seen, i] * (1 - 1e-7))
        assert np.all(upper <= true[seen, i] * 1.06)  # between knots that lie as far apart
        assert np.all(lower >= true[seen, i] * 0.9)


# --- more of them ----------------------------------------------------------------------------------------------------


# [lemma excess-doubled]
def test_simulated_epochs_lie_between_the_bounds():
    """Each share of 2·10⁵ runs lies outside its Clopper–Pearson interval with probability 1e-9, 9 times."""
    rng = np.random.default_rng(6)
    rounds, runs, s = 12, 200_000, 1.8
    x = rng.standard_normal((runs, rounds))
    there = x.copy()
    there[:, 0] += s
    one, two = allocated_law(s, rounds), replaced_allocation_law(s, rounds)

    def mean(x, sign):
        return np.log(np.exp(sign * s * x - s * s / 2).mean(axis=1))

    losses = [
        (one, "remove", mean(there, 1)),
        (one, "add", -mean(x, 1)),
        (two, "remove", mean(there, 1) - mean(there, -1)),
    ]
    for law, direction, loss in losses:
        for at in (0.3, 1.5, 3.0):
            # δ(ε) is the probability that the loss is above ε plus an exponential number
            hits = int((loss > at + rng.exponential(size=runs)).sum())
            low, high = beta.ppf(5e-10, max(hits, 1e-300), runs - hits + 1), beta.ppf(1 - 5e-10, hits + 1, runs - hits)
            lower, upper = (float(curve(law, direction, [at], below=below)[0]) for below in (True, False))
            assert upper >= low
            assert lower <= high
            assert upper <= 1.05 * lower


@settings(max_examples=8, deadline=None)
@given(
    std=st.floats(0.5, 1.3).map(lambda x: float(f"{x:.3g}")),
    rounds=st.one_of(st.integers(2, 12), st.integers(2, 40)),
    epochs=st.one_of(st.just(1), st.integers(1, 100)),
    exponent=st.floats(-9, -3),
    relation=st.sampled_from(["add-remove", "zero-out", "replace-one"]),
)
def test_bounds_of_few_rounds_are_near_each_other(std, rounds, epochs, exponent, relation):
    event = acc.random_allocation(std=std, rounds=rounds, epochs=epochs, relation=relation)
    figure = acc.compose(event).epsilon(delta=10**exponent)
    assert figure.lower <= figure.upper <= 1.03 * figure.lower


@pytest.mark.parametrize(
    ("question", "delta", "relation", "gap"),
    [
        ((0.518, 5, 45), 9e-7, "add-remove", 0.003),  # was .40
        ((0.529, 4, 2), 2e-4, "add-remove", 0.003),
        ((0.2, 64, 1), 1e-6, "add-remove", 0.003),
        ((0.604, 2, 1), 4e-8, "replace-one", 0.006),  # was .35
        ((0.517, 10, 9), 1e-8, "replace-one", 0.01),
        ((0.929, 19, 1), 2e-6, "replace-one", 0.015),
    ],
)
def test_bounds_that_were_wide(question, delta, relation, gap):
    std, rounds, epochs = question
    event = acc.random_allocation(std=std, rounds=rounds, epochs=epochs, relation=relation)
    figure = acc.compose(event).epsilon(delta=delta)
    assert (1 - gap) * figure.upper <= figure.lower <= figure.upper
