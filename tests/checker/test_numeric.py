"""Numeric compositions: curves, grid, convolution and the bound, each against arithmetic that shares no code.

The truths of the three large cases were computed apart, by contour integrals and a Fourier accountant, to the digits
shown.
"""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from privcheck.verification.certificates.grids import numeric_certificate
from privcheck_check import numeric
from privcheck_check.enclosures import ONE, enclose
from privcheck_check.values import Rejected

Real = Any  # mpmath has no types
Document = dict[str, Any]


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(80):
        yield


def _real(value: Fraction | str | int) -> Real:
    fraction = Fraction(value)
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def document(
    *events: Document,
    epsilon: str,
    delta: str,
    steps: int | str = 100,
    digits: int = 20,
    trim: str = "1/10000000000000000",
) -> Document:
    return {
        "events": list(events),
        "grid": {"steps": steps, "digits": digits, "trim": trim},
        "epsilon": epsilon,
        "delta": delta,
    }


def _accepted(value: Document) -> bool:
    try:
        numeric.check_numeric(value)
    except Rejected:
        return False
    return True


# ── Curves ──


def _root(ratio: Callable[[Real], Real], t: Real) -> Real:
    low, high = mpmath.mpf(-200), mpmath.mpf(200)
    for _ in range(int(mpmath.mp.prec * 1.02) + 12):
        middle = (low + high) / 2
        low, high = (low, middle) if ratio(middle) > t else (middle, high)
    return low


def _normal_curve(top: list[tuple[Real, Real]], bottom: list[tuple[Real, Real]], t: Real) -> Real:
    """P(X > x) - t Q(X > x) at the x where the densities' ratio is t; monotone in x for all pairs below."""

    def ratio(x: Real) -> Real:
        return sum(w * mpmath.exp(m * x - m * m / 2) for w, m in top) / sum(
            w * mpmath.exp(m * x - m * m / 2) for w, m in bottom
        )

    x = _root(ratio, t)
    return sum(w * mpmath.ncdf(m - x) for w, m in top) - t * sum(w * mpmath.ncdf(m - x) for w, m in bottom)


def _sum_curve(outcomes: list[tuple[Real, Real]], t: Real) -> Real:
    return sum((max(p - t * q, 0) for p, q in outcomes), mpmath.mpf(0))


def _law(event: Document) -> Callable[[Real], Real]:
    """The curve of an event from its definition."""
    zero, one = mpmath.mpf(0), mpmath.mpf(1)
    if event["law"] == "gaussian":
        m = mpmath.sqrt(_real(event["squared_ratio"]))
        q = _real(event.get("rate", 1))
        return lambda t: _normal_curve([(1 - q, zero), (q, m)], [(one, zero)], t) if t > 1 - q else 1 - t
    if event["law"] == "opposite gaussians":
        m, q = mpmath.sqrt(_real(event["squared_ratio"])), _real(event["share"])
        return lambda t: _normal_curve([(1 - q, zero), (q, m)], [(1 - q, zero), (q, -m)], t)
    if event["law"] == "gaussian mixture":
        m, weights = mpmath.sqrt(_real(event["squared_ratio"])), [_real(w) for w in event["weights"]]
        parts = [(w, k * m) for k, w in enumerate(weights)]
        return lambda t: _normal_curve(parts, [(one, zero)], t) if t > weights[0] else 1 - t
    if event["law"] == "laplace":
        return lambda t: _laplace_curve(_real(event["ratio"]), _real(event.get("rate", 1)), t)
    return lambda t: _sum_curve(_outcomes(event), t)


def _laplace_curve(e: Real, q: Real, t: Real) -> Real:
    """Integral of the positive part of p - t q: the ratio grows with x, so from its root on, in closed form."""

    def ratio(x: Real) -> Real:
        return 1 - q + q * mpmath.exp(abs(x) - abs(x - e))

    def tail(x: Real) -> Real:
        return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2

    if t < ratio(mpmath.mpf(0)):
        return 1 - t
    if t >= ratio(e):
        return mpmath.mpf(0)
    x = _root(ratio, t)
    return (1 - q - t) * tail(x) + q * tail(x - e)


def _outcomes(event: Document) -> list[tuple[Real, Real]]:
    """The pair itself, outcome by outcome."""
    if event["law"] == "discrete":
        return [(_real(p), _real(q)) for p, q in zip(event["p"], event["q"], strict=True)]
    e = _real(event["epsilon"])
    if event["law"] == "randomised response":
        k = event["values"]
        other = 1 / (mpmath.exp(e) + k - 1)
        true = mpmath.exp(e) * other
        return [(true, other), (other, true), *[(other, other)] * (k - 2)]
    if event["law"] == "approximate":
        lost, true = _real(event["lost"]), mpmath.exp(e) / (1 + mpmath.exp(e))
        closed = [((1 - lost) * true, (1 - lost) * (1 - true)), ((1 - lost) * (1 - true), (1 - lost) * true)]
        return [(lost, mpmath.mpf(0)), (mpmath.mpf(0), lost), *closed]
    norm = (1 - mpmath.exp(-e)) / (1 + mpmath.exp(-e))
    span = int(150 / e)
    far = [norm * mpmath.exp(-e * abs(x)) for x in range(-span, span + event["distance"])]
    return [(far[x - event["distance"]], far[x]) for x in range(event["distance"], len(far))]


FINITE = ("geometric", "randomised response", "approximate", "discrete")
CURVES: list[Document] = [
    {"law": "gaussian", "squared_ratio": "1/10"},
    {"law": "gaussian", "squared_ratio": "4"},
    {"law": "gaussian", "squared_ratio": "100/121", "rate": "1/100"},
    {"law": "opposite gaussians", "squared_ratio": "1/3", "share": "1/10"},
    {"law": "opposite gaussians", "squared_ratio": "2", "share": "1"},
    {"law": "gaussian mixture", "squared_ratio": "1/3", "weights": ["1/2", "1/4", "1/8", "1/8"]},
    {"law": "gaussian mixture", "squared_ratio": "1", "weights": [0, 0, "1/3", 0, "2/3"]},
    {"law": "laplace", "ratio": "1/3"},
    {"law": "laplace", "ratio": "2"},
    {"law": "laplace", "ratio": "2", "rate": "1/10"},
    {"law": "geometric", "epsilon": "2/3", "distance": 1},
    {"law": "geometric", "epsilon": "2/3", "distance": 4},
    {"law": "randomised response", "epsilon": "3/2", "values": 2},
    {"law": "randomised response", "epsilon": "3/2", "values": 7},
    {"law": "approximate", "epsilon": "1/2", "lost": "1/1000"},
    {"law": "discrete", "p": ["1/2", "1/3", 0, "1/6"], "q": ["1/4", "2/3", "1/12", 0]},
]


@pytest.mark.parametrize("event", CURVES, ids=lambda event: f"{event['law']}-{len(event)}")
def test_a_curve_contains_the_hockey_stick_divergence(event: Document) -> None:
    _, curve, *_ = numeric._read_event({**event, "count": 1})
    truth = _law(event)
    for t in (
        Fraction(1, 7),
        Fraction(4, 5),
        Fraction(199, 200),
        Fraction(1),
        Fraction(203, 200),
        Fraction(4, 3),
        Fraction(9),
    ):
        low, high = (_real(Fraction(end, ONE)) for end in numeric._bounded(curve, enclose(t)))
        value = truth(_real(t))
        assert low - mpmath.mpf(10) ** -60 <= value <= high + mpmath.mpf(10) ** -60, t
        assert high - low < mpmath.mpf(2) ** -90, t


# ── One event on the grid ──


@pytest.mark.parametrize("event", CURVES, ids=lambda event: f"{event['law']}-{len(event)}")
def test_the_masses_on_the_grid_dominate_and_are_those_of_the_polygon(event: Document) -> None:
    """Against the truth at points off the grid in both directions, and cell by cell against the polygon's masses."""
    _, curve, *_ = numeric._read_event({**event, "count": 1})
    h, unit = 7, 10**16
    grid = numeric.Grid(steps=Fraction(h), unit=unit, trim=Fraction(1, 10**9))
    forward, backward = numeric.discretise(curve, grid, terms=1)
    mpmath.mp.dps = 40
    truth = _law(event)
    ratio = 1 + 1 / mpmath.mpf(h)

    def turned(t: Real) -> Real:
        return 1 - t + t * truth(1 / t)

    rng, finite = random.Random(1), event["law"] in FINITE
    for loss, exact in ((forward, truth), (backward, turned)):
        end = loss.start + len(loss.masses) - 1
        for _ in range(4):
            t = mpmath.mpf(rng.uniform(0.05, 6))
            bound = mpmath.mpf(loss.infinite) / unit + sum(
                mpmath.mpf(mass) / unit * max(0, 1 - t / ratio**index)
                for index, mass in enumerate(loss.masses, start=loss.start)
            )
            assert bound >= exact(t) - mpmath.mpf(10) ** -35
            # a chord over a cell of width 1/7: within 1/(8 * 49) of a smooth curve, 1/28 of one that bends
            assert bound - exact(t) < (0.04 if finite else 0.006)
        for index in rng.sample(range(loss.start + 1, end), min(4, end - loss.start - 1)):
            left, here, right = (exact(ratio ** (index + shift)) for shift in (-1, 0, 1))
            polygon = h * (right - here) - (h + 1) * (here - left)
            assert 0 <= loss.masses[index - loss.start] - polygon * unit < 2
        assert 1 <= mpmath.mpf(sum(loss.masses) + loss.infinite) / unit < 1 + mpmath.mpf(10) ** -12


# ── Composition ──


def _naive(left: list[int], right: list[int]) -> list[int]:
    sums = [0] * (len(left) + len(right) - 1)
    for (i, a), (j, b) in itertools.product(enumerate(left), enumerate(right)):
        sums[i + j] += a * b
    return sums


def test_a_product_is_the_exact_convolution() -> None:
    rng = random.Random(2)
    grid = numeric.Grid(steps=Fraction(10), unit=10**6, trim=Fraction(0))
    for _ in range(300):
        left, right = (
            [rng.choice((0, 1, rng.randrange(10 ** rng.randrange(1, 60)))) for _ in range(rng.randrange(1, 40))]
            for _ in range(2)
        )
        assert numeric._product(left, right, grid) == _naive(left, right)
        assert numeric._product(left, left, grid) == _naive(left, left)
    for left, right in (([0], [10**40]), ([0, 0, 0], [7]), ([9], [9]), ([10**30] * 50, [10**30 - 1] * 50)):
        assert numeric._product(left, right, grid) == _naive(left, right)
    for size in (700, 3000):  # long enough for the number-theoretic transform of the decimal library
        left = [rng.randrange(10**20) for _ in range(size)]
        assert numeric._product(left, left[:99], grid) == _naive(left, left[:99])


def _as_fractions(loss: numeric.Loss, unit: int) -> tuple[dict[int, Fraction], Fraction]:
    masses = {index: Fraction(mass, unit) for index, mass in enumerate(loss.masses, start=loss.start)}
    return masses, Fraction(loss.infinite, unit)


def _tail(masses: dict[int, Fraction], infinite: Fraction, least: int) -> Fraction:
    return infinite + sum(mass for index, mass in masses.items() if index >= least)


def test_a_composition_is_never_below_the_exact_one_and_loses_what_it_may() -> None:
    """Losses with every mass of at least an index: the order in which raising and cutting are safe."""
    rng = random.Random(3)
    for _ in range(150):
        unit = 10 ** rng.randrange(3, 9)
        trim = rng.choice((Fraction(0), Fraction(1, 1000), Fraction(1, 10**6), Fraction(1)))
        grid = numeric.Grid(steps=Fraction(10), unit=unit, trim=trim)
        losses = []
        for _ in range(2):
            masses = [rng.choice((0, rng.randrange(unit // 4))) for _ in range(rng.randrange(1, 12))]
            losses.append(
                numeric.Loss(
                    start=rng.randrange(-9, 9),
                    masses=masses,
                    infinite=rng.randrange(unit // 9),
                    count=rng.randrange(1, 4),
                )
            )
        found, found_infinite = _as_fractions(numeric.compose(*losses, grid), unit)
        (a, a_infinite), (b, b_infinite) = (_as_fractions(loss, unit) for loss in losses)
        exact: dict[int, Fraction] = {}
        for (i, p), (j, q) in itertools.product(a.items(), b.items()):
            exact[i + j] = exact.get(i + j, Fraction(0)) + p * q
        infinite = a_infinite * (sum(b.values()) + b_infinite) + sum(a.values()) * b_infinite
        cut = trim * sum(loss.count for loss in losses) + Fraction(len(exact) + 1, unit)
        for least in range(min(exact) - 1, max(exact) + 2):
            assert _tail(found, found_infinite, least) >= _tail(exact, infinite, least)
            if trim < 1:
                # the top's cut joins infinity; the bottom's is raised, at most one cut more above any index
                assert _tail(found, found_infinite, least) <= _tail(exact, infinite, least) + 2 * cut


def test_powers_and_ladders_contain_the_ratios() -> None:
    for steps in (Fraction(1), Fraction(22, 7), Fraction(2000)):
        grid = numeric.Grid(steps=steps, unit=1, trim=Fraction(0))
        rungs = grid.ladder(-30, 40)
        assert len(rungs) == 71
        assert grid.ladder(0, 0) == [(ONE, ONE)]
        for index in range(-30, 41):
            exact = (1 + 1 / steps) ** index * ONE
            for low, high in (rungs[index + 30], grid.power(index)):
                assert low <= exact <= high
                assert high - low < 200 * (1 + exact / ONE)


def test_cells_twice_as_wide_dominate_and_keep_the_masses_of_both_laws() -> None:
    """Against the exact split, in fractions; points of the wider grid are even multiples of the ratio."""
    rng = random.Random(5)
    for _ in range(100):
        steps, stride, unit = Fraction(rng.randrange(1, 50), rng.randrange(1, 4)), 1 << rng.randrange(4), 10**9
        steps = max(steps, Fraction(1))
        grid, ratio = numeric.Grid(steps=steps, unit=unit, trim=Fraction(0)), (1 + 1 / steps) ** stride
        masses = [rng.choice((0, rng.randrange(unit))) for _ in range(rng.randrange(1, 9))]
        loss = numeric.Loss(
            start=stride * rng.randrange(-9, 9), stride=stride, masses=masses, infinite=rng.randrange(9), count=3
        )
        wide = numeric.coarsen(loss, grid)
        assert (wide.stride, wide.infinite, wide.count) == (2 * stride, loss.infinite, 3)
        assert wide.start % wide.stride == 0
        exact: dict[int, Fraction] = {}
        for index, mass in enumerate(masses):
            place = loss.start // stride + index
            parts = (
                {place: Fraction(1)} if place % 2 == 0 else {place - 1: 1 / (1 + ratio), place + 1: ratio / (1 + ratio)}
            )
            assert sum(parts.values()) == 1
            assert sum(part / ratio**at for at, part in parts.items()) == 1 / ratio**place
            for at, part in parts.items():
                exact[at] = exact.get(at, Fraction(0)) + part * mass
        found = {wide.start // stride + 2 * index: mass for index, mass in enumerate(wide.masses)}
        assert set(exact) <= set(found)
        for at, mass in found.items():
            assert 0 <= mass - exact.get(at, 0) < 3


def test_the_last_step_is_rounded_up() -> None:
    rng = random.Random(6)
    for _ in range(60):
        grid = numeric.Grid(steps=Fraction(rng.randrange(1, 90)), unit=10**9, trim=Fraction(0))
        masses = [rng.randrange(10**9) for _ in range(rng.randrange(1, 20))]
        stride = 1 << rng.randrange(4)
        loss = numeric.Loss(
            start=stride * rng.randrange(-20, 20), stride=stride, masses=masses, infinite=rng.randrange(99), count=1
        )
        epsilon = Fraction(rng.randrange(200), 100)
        found = _real(numeric.delta_at(loss, epsilon, grid))
        ratio, limit = 1 + 1 / _real(grid.steps), mpmath.exp(_real(epsilon))
        exact = mpmath.mpf(loss.infinite) + sum(
            mass * max(0, 1 - limit / ratio ** (loss.start + index * stride)) for index, mass in enumerate(masses)
        )
        assert -(mpmath.mpf(10) ** -70) <= found - exact / 10**9 < mpmath.mpf(10) ** -45


# ── The bound ──


def _expand(event: Document) -> list[tuple[Real, Real]]:
    single, whole = _outcomes(event), [(mpmath.mpf(1), mpmath.mpf(1))]
    for _ in range(event["count"]):
        whole = [(p * a, q * b) for (p, q), (a, b) in itertools.product(whole, single)]
    return whole


def _exact_delta(event: Document | None, finite: list[Document], epsilon: Fraction) -> Real:
    """delta of one continuous event and enumerated finite ones: sum over outcomes of p D(t q / p), both directions."""
    curve = _law(event) if event else (lambda t: max(mpmath.mpf(0), 1 - t))
    outcomes = [(mpmath.mpf(1), mpmath.mpf(1))]
    for part in finite:
        outcomes = [(p * a, q * b) for (p, q), (a, b) in itertools.product(outcomes, _expand(part))]
    t = mpmath.exp(_real(epsilon))
    known: dict[Real, Real] = {}

    def at(s: Real, *, turned: bool) -> Real:
        s = mpmath.mpf(mpmath.nstr(s, 25)) if s else s
        if (s, turned) not in known:
            known[s, turned] = 1 if not s else curve(s) if not turned else 1 - s + s * curve(1 / s)
        return known[s, turned]

    forward = sum(p * at(t * q / p, turned=False) for p, q in outcomes if p)
    backward = sum(q * at(t * p / q, turned=True) for p, q in outcomes if q)
    return max(forward, backward)


def _some_events(rng: random.Random) -> tuple[Document | None, list[Document]]:
    continuous: Document | None = rng.choice(
        (
            None,
            {"law": "gaussian", "squared_ratio": f"{rng.randrange(1, 30)}/10"},
            {"law": "gaussian", "squared_ratio": f"{rng.randrange(5, 30)}/10", "rate": f"1/{rng.randrange(2, 20)}"},
            {"law": "laplace", "ratio": f"{rng.randrange(1, 20)}/7"},
            {"law": "laplace", "ratio": f"{rng.randrange(1, 20)}/7", "rate": f"1/{rng.randrange(2, 20)}"},
        )
    )
    finite: list[Document] = []
    for _ in range(rng.randrange(0 if continuous else 1, 3)):
        epsilon = f"{rng.randrange(1, 20)}/10"
        weights = [rng.randrange(1, 9) for _ in range(3)]
        p = [f"{w}/{sum(weights)}" for w in weights]
        rng.shuffle(weights)
        q = [f"{w}/{sum(weights)}" for w in weights]
        law = rng.choice(
            (
                {"law": "randomised response", "epsilon": epsilon, "values": rng.choice((2, 3, 4))},
                {"law": "approximate", "epsilon": epsilon, "lost": rng.choice((0, "1/50"))},
                {"law": "discrete", "p": p, "q": q},
            )
        )
        finite.append({**law, "count": rng.randrange(1, 4)})
    return continuous and {**continuous, "count": 1}, finite


def test_the_bound_is_never_below_the_exact_delta_on_generated_compositions() -> None:
    """200 compositions on coarse and fine grids, some with senseless hints; exact by enumeration and closed forms."""
    rng = random.Random(4)
    close = 0
    with mpmath.workdps(30):
        for _ in range(200):
            continuous, finite = _some_events(rng)
            epsilon = Fraction(rng.randrange(0, 40), 10)
            value = document(
                *([continuous] if continuous else []),
                *finite,
                epsilon=str(epsilon),
                delta="1/2",
                steps=rng.choice((1, "7/2", 40)),
                digits=rng.choice((4, 12, 16)),
                trim=rng.choice(("1/1000000000000", "1/100000000000", "1/1000", "1")),
            )
            bound, exact = numeric.upper_delta(value), _exact_delta(continuous, finite, epsilon)
            assert _real(bound) >= exact - mpmath.mpf(10) ** -20, value
            if value["grid"]["steps"] == 40 and value["grid"]["digits"] > 4 and len(value["grid"]["trim"]) > 6:
                close += 1
                assert _real(bound) <= exact * 1.02 + 1e-4, value
    assert close > 10


DP_SGD = {"law": "gaussian", "squared_ratio": "100/121", "rate": "1/100", "count": 10_000}
NOISES = (
    {"law": "gaussian", "squared_ratio": "1/900", "count": 1000},
    {"law": "laplace", "ratio": "1/50", "count": 500},
)
RESPONSES = (
    {"law": "randomised response", "epsilon": "1/10", "values": 2, "count": 100},
    {"law": "gaussian", "squared_ratio": "1/25", "count": 5},
)
TRUTHS = {
    "dp-sgd": ((DP_SGD,), "5.192583", "1/100000"),
    "noises": (NOISES, "5.701138", "1/1000000"),
    "responses": (RESPONSES, "4.803380", "1/100000"),
}


@pytest.mark.parametrize("name", TRUTHS)
def test_large_compositions_are_certified_within_two_parts_in_ten_thousand(name: str) -> None:
    events, truth, delta = TRUTHS[name]
    claim = Fraction(truth) * (1 + Fraction(2, 10_000))
    value = numeric_certificate(events, epsilon=claim, delta=Fraction(delta))
    begin = time.process_time()
    numeric.check_numeric(value)
    assert time.process_time() - begin < 30, "some 3 seconds on an idle machine"
    assert len(json.dumps(value)) < 400


def test_false_statements_are_rejected_whatever_the_hints() -> None:
    """The statement is made false by a share that the grid's excess would hide if the bound went down with it."""
    events, truth, delta = TRUTHS["responses"]
    base = numeric_certificate(events, epsilon=Fraction(truth) * (1 + Fraction(2, 10_000)), delta=Fraction(delta))
    assert _accepted(base)
    exact = {**base, "epsilon": truth}
    false: list[Document] = [
        {**exact, "epsilon": str(Fraction(truth) * (1 - Fraction(1, 100_000)))},
        {**exact, "delta": str(Fraction(delta) * Fraction(999, 1000))},
        {**exact, "delta": "1/100000000000000000000000000"},
    ]
    changes: list[tuple[int, str, object]] = [
        (0, "count", 101),
        (0, "epsilon", "1001/10000"),
        (1, "count", 6),
        (1, "squared_ratio", "401/10000"),
    ]
    for index, field, changed in changes:
        altered = [{**event, field: changed} if i == index else event for i, event in enumerate(events)]
        false.append({**exact, "events": altered})
    more: Document = {"law": "discrete", "p": ["1/2", "1/2"], "q": ["51/100", "49/100"], "count": 1}
    false.append({**exact, "events": [*events, more]})
    hints = [
        base["grid"],
        {"steps": 1, "digits": 4, "trim": "1"},
        {"steps": 40, "digits": 4, "trim": "0"},
        {"steps": 300, "digits": 25, "trim": "1/2"},
        {"steps": 977, "digits": 50, "trim": "1/1000000000000"},
    ]
    for value, grid in itertools.product(false, hints):
        assert not _accepted({**value, "grid": grid}), (value, grid)


@pytest.mark.parametrize("seed", range(3))
def test_hints_alone_never_make_a_false_statement_true(seed: int) -> None:
    """The exact epsilon of a Gaussian is known; a claim 10^-6 below it is false on every grid."""
    rng = random.Random(seed)
    squared = Fraction(rng.randrange(1, 40), 10)
    epsilon = Fraction(rng.randrange(1, 30), 10)
    event = {"law": "gaussian", "squared_ratio": str(squared), "count": 1}
    exact = _exact_delta(event, [], epsilon)
    below = Fraction(int(exact * (1 - mpmath.mpf(10) ** -6) * 10**40), 10**40)
    for _ in range(20):
        value = document(
            event,
            epsilon=str(epsilon),
            delta=str(below),
            steps=f"{rng.randrange(9, 500)}/9",
            digits=rng.randrange(4, 51),
            trim=rng.choice(
                ("0", "1", f"1/{10 ** rng.randrange(30)}", f"{rng.randrange(9)}/{10 ** rng.randrange(1, 20)}")
            ),
        )
        assert not _accepted(value)


def test_directions_of_an_asymmetric_pair_are_both_counted() -> None:
    """Mass where Q is zero is open in one direction only; turned round, the same bound holds."""
    open_one: list[object] = ["1/10", "9/10"]
    for p, q in ((open_one, [0, 1]), ([0, 1], open_one)):
        event = {"law": "discrete", "p": p, "q": q, "count": 1}
        assert not _accepted(document(event, epsilon="1", delta="99/1000"))
        assert _accepted(document(event, epsilon="1", delta="101/1000"))


MALFORMED: dict[str, Callable[[Document], None]] = {
    "no events": lambda value: value.update(events=[]),
    "too many events": lambda value: value.update(events=value["events"] * 33),
    "no grid": lambda value: value.pop("grid"),
    "unknown field": lambda value: value.update(tail="1/2"),
    "unknown hint": lambda value: value["grid"].update(window=3),
    "unknown law": lambda value: value["events"][0].update(law="cauchy"),
    "foreign field": lambda value: value["events"][0].update(values=2),
    "law of another type": lambda value: value["events"][0].update(law=["gaussian"]),
    "no steps": lambda value: value["grid"].update(steps=0),
    "huge steps": lambda value: value["grid"].update(steps=10**9),
    "negative digits": lambda value: value["grid"].update(digits=-5),
    "many digits": lambda value: value["grid"].update(digits=10**6),
    "negative trim": lambda value: value["grid"].update(trim="-1/2"),
    "a float": lambda value: value.update(epsilon=1.5),
    "true": lambda value: value["events"][0].update(count=True),
    "count of zero": lambda value: value["events"][0].update(count=0),
    "huge count": lambda value: value["events"][0].update(count=10**30),
    "negative epsilon": lambda value: value.update(epsilon="-1"),
    "huge epsilon": lambda value: value.update(epsilon="1000000"),
    "delta of zero": lambda value: value.update(delta=0),
    "delta above one": lambda value: value.update(delta="3/2"),
    "no delta": lambda value: value.pop("delta"),
    "ratio of zero": lambda value: value["events"][0].update(squared_ratio=0),
    "tiny ratio": lambda value: value["events"][0].update(squared_ratio="1/1" + "0" * 150),
    "rate of zero": lambda value: value["events"][0].update(rate=0),
    "rate above one": lambda value: value["events"][0].update(rate="11/10"),
    "outcomes that sum to less": lambda value: value.update(
        events=[{"law": "discrete", "p": ["1/2", "1/4"], "q": ["1/2", "1/2"], "count": 1}]
    ),
    "an outcome below zero": lambda value: value.update(
        events=[{"law": "discrete", "p": ["3/2", "-1/2"], "q": ["1/2", "1/2"], "count": 1}]
    ),
    "laws of different length": lambda value: value.update(
        events=[{"law": "discrete", "p": ["1/2", "1/2"], "q": [1], "count": 1}]
    ),
    "weights that sum to less": lambda value: value.update(
        events=[{"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/2", "1/4"], "count": 1}]
    ),
    "all weight on zero": lambda value: value.update(
        events=[{"law": "gaussian mixture", "squared_ratio": 1, "weights": [1, 0], "count": 1}]
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_certificates_are_rejected(name: str) -> None:
    value = document({"law": "gaussian", "squared_ratio": "1/4", "count": 1}, epsilon="4", delta="1/100")
    assert _accepted(value)
    MALFORMED[name](value)
    with pytest.raises(Rejected):
        numeric.check_numeric(value)


@pytest.mark.parametrize(
    ("events", "grid"),
    [
        ([DP_SGD], {"steps": 1 << 17, "digits": 50, "trim": "0"}),
        ([{**DP_SGD, "count": 10**9}], {"steps": 2000, "digits": 50, "trim": "0"}),
        ([{"law": "laplace", "ratio": 64, "count": 10**9}], {"steps": 9, "digits": 4, "trim": "1"}),
        ([{"law": "laplace", "ratio": 64, "count": 10**9}], {"steps": 9, "digits": 4, "trim": "0"}),
        (
            [{"law": "discrete", "p": [0, 1], "q": [1, 0], "count": 10**9}],
            {"steps": 2000, "digits": 9, "trim": "0"},
        ),
        (
            [{"law": "gaussian mixture", "squared_ratio": 4096, "weights": ["1/64"] * 64, "count": 9}],
            {"steps": 2000, "digits": 9, "trim": "0"},
        ),
        ([{"law": "gaussian", "squared_ratio": 4096, "count": 10**9}] * 32, {"steps": 99, "digits": 9, "trim": "0"}),
    ],
)
def test_hostile_sizes_end_soon(events: list[Document], grid: Document) -> None:
    begin = time.process_time()
    assert not _accepted({"events": events, "grid": grid, "epsilon": "1", "delta": "1/1000"})
    assert time.process_time() - begin < 60


def test_the_largest_work_fits_the_memory_it_is_meant_to() -> None:
    """What is refused is refused before it is allocated."""
    grid = numeric.Grid(steps=Fraction(10), unit=10**50, trim=Fraction(0))
    with pytest.raises(Rejected, match="product is larger"):
        numeric._product([10**50] * 90_000, [10**50] * 90_000, grid)
    grid.work = 10
    with pytest.raises(Rejected, match="composition is larger"):
        numeric._product([1] * 9, [1] * 9, grid)


def test_a_mixture_without_a_root_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "MOST_NEWTON", 30)
    event = {"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/2", "1/4", "1/4"], "count": 1}
    with pytest.raises(Rejected, match="no root"):
        numeric.check_numeric(document(event, epsilon="1", delta="1/2"))


@pytest.mark.parametrize("event", CURVES, ids=lambda event: f"{event['law']}-{len(event)}")
def test_hints_of_each_law_give_a_bound_close_to_the_exact_delta(event: Document) -> None:
    single = {**event, "count": 1}
    epsilon = Fraction(3, 2)
    truth = _law(event)
    t = mpmath.exp(_real(epsilon))
    exact = max(truth(t), 1 - t + t * truth(1 / t))
    value = numeric_certificate([single], epsilon=epsilon, delta=Fraction(1, 1000), tolerance=1e-3)
    bound = _real(numeric.upper_delta(value))
    assert exact - mpmath.mpf(10) ** -50 <= bound <= exact * (1 + mpmath.mpf(10) ** -3) + mpmath.mpf(10) ** -7
