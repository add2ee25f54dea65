"""Numeric compositions with enclosures made a thousandth wider: what is made of them has to contain the truth.

A low end taken for a high one changes a curve by 10⁻⁵⁷, which nobody sees. Here every square root, exponential,
logarithm, value of Φ and power is an interval of visible width, so that any mistaken end leaves the truth outside.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from privcheck_check import curves, numeric, refuted
from privcheck_check.enclosures import ONE, enclose
from privcheck_check.values import Rejected

F = Fraction
Interval = tuple[int, int]
EVENTS: list[dict[str, Any]] = [
    {"law": "gaussian", "squared_ratio": "1/4"},
    {"law": "gaussian", "squared_ratio": 9},
    {"law": "opposite gaussians", "squared_ratio": "1/2", "share": "1/3"},
    {"law": "gaussian mixture", "squared_ratio": "1/2", "weights": ["1/2", "1/3", 0, "1/6"]},
    {"law": "laplace", "ratio": "3/4"},
    {"law": "geometric", "epsilon": "1/3", "distance": 3},
    {"law": "randomised response", "epsilon": "1/2", "values": 2},
    {"law": "randomised response", "epsilon": "1/2", "values": 5},
    {"law": "approximate", "epsilon": "1/2", "lost": "1/10"},
    {"law": "discrete", "p": ["1/2", "1/3", "1/6"], "q": ["1/6", "1/2", "1/3"]},
    {"law": "binomial", "trials": 1},
    {"law": "binomial", "trials": 12},
    {"law": "binomial", "trials": 13},
    {"law": "binomial", "trials": 10_000},
]
NAMES = [" ".join(map(str, event.values())) for event in EVENTS]
TIMES = [F(1, 50), F(1, 3), F(2, 3), F(9, 10), F(1), F(11, 10), F(3, 2), F(2), F(5), F(40)]


def widen(interval: Interval) -> Interval:
    low, high = interval
    return low - (abs(low) >> 10) - 1, high + (abs(high) >> 10) + 1


def _wider(call: Callable[[Interval], Interval]) -> Callable[[Interval], Interval]:
    def wide(x: Interval) -> Interval:
        low, high = widen(call(x))
        return (max(0, low) if call.__name__ != "log" else low), high

    return wide


@pytest.fixture
def wider(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Widens what `numeric` takes from the enclosures, from when it is called."""

    def change() -> None:
        for name in ("exp", "log", "sqrt", "normal"):
            monkeypatch.setattr(numeric, name, _wider(getattr(numeric, name)))

    return change


def build(event: dict[str, Any], rate: Fraction | None) -> Callable[[Interval], Interval]:
    more = {} if rate is None else {"rate": str(rate)}
    curve = numeric._read_event(event | {"count": 1} | more)[1]
    return lambda t: numeric._bounded(curve, t)


@pytest.mark.parametrize("rate", [None, F(1, 4), F(1)])
@pytest.mark.parametrize("event", EVENTS, ids=NAMES)
def test_curves_of_wide_enclosures_contain_the_narrow_ones(
    event: dict[str, Any], rate: Fraction | None, wider: Callable[[], None]
) -> None:
    narrow = build(event, rate)
    true = {t: narrow(enclose(t)) for t in TIMES}
    wider()
    curve = build(event, rate)
    for t in TIMES:
        try:
            low, high = curve(enclose(t))
        except ValueError:
            assert event["law"] == "gaussian mixture"  # coefficients too wide to place a root
            continue
        assert low <= true[t][0]
        assert true[t][1] <= high
        assert high - low < ONE // 20 + (ONE >> 4) * int(t + 1)


@pytest.mark.parametrize("rate", [None, F(1, 4), F(1)])
@pytest.mark.parametrize("event", EVENTS, ids=NAMES)
def test_curves_on_intervals_contain_those_at_their_ends(event: dict[str, Any], rate: Fraction | None) -> None:
    curve = build(event, rate)
    for one, other in itertools.pairwise([F(-2), F(-1), F(0), *TIMES]):
        ends = enclose(one)[0], enclose(other)[1]
        try:
            low, high = curve(ends)
        except ValueError:
            assert event["law"] == "gaussian mixture"  # an interval too wide to place a root
            continue
        for t in ends:
            exact = curve((t, t))
            assert low <= exact[0]
            assert exact[1] <= high


def test_a_curve_left_of_zero_is_a_line() -> None:
    for event in EVENTS:
        curve = build(event, None)
        for t in (-3 * ONE, -1, 0):
            assert curve((t, t)) == (ONE - t, ONE - t)
        assert curve((-ONE, -5)) == (ONE + 5, 2 * ONE)
        low, high = curve((-ONE, ONE))
        assert (low, high) == (0, 2 * ONE)


def test_mixtures_of_intervals() -> None:
    """Weights, means, the place and t as intervals: P(X > x) − t·P(Y > x) at all of their ends."""
    weights, means = [(ONE // 4, ONE // 3), (ONE // 2, 2 * ONE // 3)], [(0, ONE // 2), (ONE, 2 * ONE)]
    x, t = (-ONE // 3, ONE), (ONE // 2, 3 * ONE)
    whole = numeric._above(t, x, list(zip(weights, means, strict=True)), [((ONE, ONE), (-ONE, ONE))])
    for picks in itertools.product((0, 1), repeat=7):
        at = [(w[i], w[i]) for w, i in zip(weights, picks, strict=False)]
        mu = [(m[i], m[i]) for m, i in zip(means, picks[2:], strict=False)]
        place, times = x[picks[4]], t[picks[5]]
        below = -ONE if picks[6] else ONE
        one = numeric._above(
            (times, times), (place, place), list(zip(at, mu, strict=True)), [((ONE, ONE), (below, below))]
        )
        assert whole[0] <= one[0]
        assert one[1] <= whole[1]


def test_arithmetic_of_intervals() -> None:
    rng = random.Random(3)
    for _ in range(300):
        x, y = (tuple(sorted(rng.randrange(-40, 40) for _ in range(2))) for _ in range(2))
        assert numeric._plus(x, y) == (x[0] + y[0], x[1] + y[1])
        assert numeric._minus(x) == (-x[1], -x[0])
        low, high = numeric._half(x)
        assert (2 * low <= x[0] < 2 * low + 2, 2 * high - 2 < x[1] <= 2 * high) == (True, True)
        a, b = rng.randrange(-50, 50), rng.randrange(1, 9)
        assert numeric._up(a, b) - 1 < F(a, b) <= numeric._up(a, b)


def test_mass_that_the_polygon_does_not_explain() -> None:
    """At most 1 − (1 − D)/t, whatever D and 1/t are in their intervals."""
    rng = random.Random(4)
    for _ in range(200):
        point, inverse = (tuple(sorted(rng.randrange(ONE) for _ in range(2))) for _ in range(2))
        found = numeric._unexplained(point, inverse)
        exact = max(1 - (1 - F(d, ONE)) * F(i, ONE) for d in point for i in inverse)
        assert exact <= F(found, ONE) <= exact + F(1, ONE)


def test_the_first_index_of_a_monotone_test() -> None:
    for most, first in itertools.product((1, 2, 3, 10, 64), range(1, 70)):
        assert numeric._first(lambda index, first=first: index >= first, most) == min(first, most)


class Wide(numeric.Grid):
    """Powers of the ratio, a thousandth wider."""

    def power(self, index: int) -> Interval:
        return widen(numeric.Grid.power(self, index))

    def ladder(self, low: int, high: int) -> list[Interval]:
        return [widen(each) for each in numeric.Grid.ladder(self, low, high)]


def grid(kind: type[numeric.Grid] = numeric.Grid, trim: Fraction | int = 0) -> numeric.Grid:
    return kind(steps=F(20), unit=10**20, trim=F(trim))


def at_least(first: numeric.Loss, second: numeric.Loss) -> bool:
    """N-ORDER: no upper tail of the first is below that of the second."""
    places = sorted({loss.start + i * loss.stride for loss in (first, second) for i in range(len(loss.masses))})

    def tail(loss: numeric.Loss, place: int) -> int:
        return loss.infinite + sum(m for i, m in enumerate(loss.masses) if loss.start + i * loss.stride >= place)

    return all(tail(first, place) >= tail(second, place) for place in places) and first.infinite >= second.infinite


PLACED = [each for each in EVENTS if each["law"] != "gaussian mixture"]  # its root has no place in a wide interval


@pytest.mark.parametrize("event", PLACED)
@pytest.mark.parametrize("trim", [F(1, 10**9), F(1, 10**6)])
def test_masses_of_wide_powers_are_greater(event: dict[str, Any], trim: Fraction) -> None:
    _, curve, _, terms, _ = numeric._read_event(event | {"count": 1})
    for narrow, wide in zip(*(numeric.discretise(curve, grid(k, trim=trim), terms=terms) for k in (numeric.Grid, Wide)),
                            strict=True):  # fmt: skip
        assert narrow.count == wide.count == 1
        assert narrow.stride == wide.stride == 1
        assert 1 <= F(sum(narrow.masses) + narrow.infinite, 10**20) <= 1 + F(1, 10**6)
        assert F(sum(wide.masses) + wide.infinite, 10**20) >= 1


def losses() -> list[numeric.Loss]:
    rng = random.Random(9)
    return [
        numeric.Loss(
            start=start, masses=[rng.randrange(10**18) for _ in range(size)], infinite=rng.randrange(10**16), count=1
        )
        for start, size in ((-3, 8), (-4, 9), (0, 1), (5, 2), (-7, 3))
    ]


def test_wide_cells_of_wide_powers_are_greater() -> None:
    for loss in losses():
        narrow, wide = (numeric.coarsen(loss, grid(kind)) for kind in (numeric.Grid, Wide))
        assert at_least(wide, narrow)
        assert at_least(narrow, loss) or sum(narrow.masses) >= sum(loss.masses)
        assert (narrow.count, narrow.infinite, narrow.stride) == (loss.count, loss.infinite, 2)
        assert narrow.start % 2 == 0
        for base in (F(1), F(20, 21)):  # P and Q: neither loses mass
            one, other = (
                sum(m * base ** (each.start + i * each.stride) for i, m in enumerate(each.masses))
                for each in (narrow, loss)
            )
            assert other <= one <= other + 40


def test_the_last_step_of_wide_powers_is_greater(wider: Callable[[], None]) -> None:
    narrow = [numeric.delta_at(loss, F(1, 4), grid()) for loss in losses()]
    for loss, found in zip(losses(), narrow, strict=True):
        assert numeric.delta_at(loss, F(1, 4), grid(Wide)) >= found
    wider()
    for loss, found in zip(losses(), narrow, strict=True):
        assert numeric.delta_at(loss, F(1, 4), grid()) >= found
        assert numeric.delta_at(loss, F(1, 4), grid()) <= found + F(1, 10)


def test_a_composition_counts_what_is_infinite_and_what_is_cut() -> None:
    """Every pair of masses, and every infinite one with all of the other, in fractions."""
    for left, right in itertools.product(losses(), losses()):
        for trim in (F(0), F(1, 10**4)):
            found = numeric.compose(left, right, grid(trim=trim))
            total, other = sum(left.masses) + left.infinite, sum(right.masses) + right.infinite
            whole = F(total * other, 10**20)
            assert whole <= sum(found.masses) + found.infinite <= whole + len(left.masses) * len(right.masses) + 2
            infinite = F(left.infinite * other + right.infinite * sum(left.masses), 10**20)
            allowed = 2 * trim * 10**20
            assert infinite <= found.infinite <= infinite + allowed + 2
            assert found.count == 2
            if not trim:
                assert found.start == left.start + right.start
                assert len(found.masses) == len(left.masses) + len(right.masses) - 1
                for i, mass in enumerate(found.masses):
                    exact = sum(
                        a * right.masses[i - j] for j, a in enumerate(left.masses) if 0 <= i - j < len(right.masses)
                    )
                    assert F(exact, 10**20) <= mass <= F(exact, 10**20) + 1


def test_what_is_cut_is_no_more_than_allowed_and_as_much_as_fits() -> None:
    unit = 10**20
    left = numeric.Loss(start=0, masses=[unit] + [5] * 9, infinite=0, count=1)
    one = numeric.Loss(start=3, masses=[unit], infinite=0, count=1)
    for allowed, cut in ((0, 0), (4, 0), (5, 1), (14, 2), (15, 3), (45, 9), (100, 9)):
        found = numeric.compose(left, one, grid(trim=F(allowed, 2 * unit)))
        assert found.infinite == 5 * cut
        assert len(found.masses) == 10 - cut
        turned = numeric.Loss(start=-9, masses=left.masses[::-1], infinite=0, count=1)
        found = numeric.compose(turned, one, grid(trim=F(allowed, 2 * unit)))
        assert found.start == -6 + cut
        assert found.masses[0] == (5 * (cut + 1) if cut < 9 else unit + 45)
        assert found.infinite == 0


def test_cells_widen_from_sixty_four_events_on() -> None:
    one = numeric.Loss(start=-1, masses=[10**19] * 3, infinite=0, count=1)
    for count, stride in ((1, 1), (62, 1), (63, 2), (254, 2), (255, 4)):
        many = numeric.Loss(start=0, masses=[10**20], infinite=0, count=count)
        assert numeric.compose(one, many, grid()).stride == stride
        assert numeric.compose(many, one, grid()).stride == stride


def test_losses_and_products_are_limited() -> None:
    far = numeric.Loss(start=16 * 64 * 20, masses=[1], infinite=0, count=1)
    near = numeric.Loss(start=0, masses=[1], infinite=0, count=1)
    step = numeric.Loss(start=1, masses=[1], infinite=0, count=1)
    assert numeric.compose(far, near, grid()).start == far.start
    with pytest.raises(Rejected, match="losses beyond"):
        numeric.compose(far, step, grid())
    poor = grid()
    poor.work = 100
    with pytest.raises(Rejected, match="limit"):
        numeric.compose(near, numeric.Loss(start=0, masses=[1] * 10, infinite=0, count=1), poor)
    exact = grid()
    exact.spend(exact.work)
    assert exact.work == 0
    with pytest.raises(Rejected):
        exact.spend(1)


def test_gaussians_merge_by_their_squared_ratios() -> None:
    events = [
        {"law": "gaussian", "squared_ratio": "1/4", "count": 3},
        {"law": "gaussian", "squared_ratio": 1, "count": 2},
    ]
    single = [{"law": "gaussian", "squared_ratio": "11/4", "count": 1}]
    rest = {"grid": {"steps": 20, "digits": 20, "trim": "1/1000000"}, "epsilon": 1, "delta": "1/2"}
    assert numeric.upper_delta({"events": events} | rest) == numeric.upper_delta({"events": single} | rest)


def test_both_directions_count() -> None:
    """A user named with probability 1/10 in one direction only: δ at ε = 0 is that of the other."""
    rest = {"grid": {"steps": 20, "digits": 20, "trim": "1/1000000"}, "epsilon": 2, "delta": 1}
    p, q = ["9/10", "1/10", 0], ["9/10", "1/20", "1/20"]
    laplace = {"law": "laplace", "ratio": "1/10", "count": 1}  # which is symmetric
    one, other = (
        numeric.upper_delta({"events": [{"law": "discrete", "p": a, "q": b, "count": 1}, laplace]} | rest)
        for a, b in ((p, q), (q, p))
    )
    assert one >= F(1, 20)
    assert abs(one - other) < F(1, 10**15)


def test_masses_of_geometric_laws_contain_the_exact_ones(
    wider: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(numeric, "_finite", found.append)
    event = {"law": "geometric", "epsilon": "1/3", "distance": 3}
    numeric._geometric(event)
    wider()
    numeric._geometric(event)
    for narrow, wide in zip(found[0], found[1], strict=True):
        for (low, high), (lower, higher) in zip(narrow, wide, strict=True):
            assert lower < low <= high < higher


def test_the_gaussian_curve_of_wide_enclosures(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(F(1, 4), F(1, 2)), (F(4), F(1)), (F(9), F(0)), (F(1), F(3))]
    narrow = [curves.gaussian_delta((s, s), (e, e)) for s, e in cases]

    def wide(call: Any) -> Any:
        return lambda x: (call(x)[0] * F(999, 1000), call(x)[1] * F(1001, 1000))

    for name in ("square_root", "exponential", "normal"):
        monkeypatch.setattr(curves, name, wide(getattr(curves, name)))
    for (s, e), true in zip(cases, narrow, strict=True):
        found = curves.gaussian_delta((s, s), (e, e))
        assert found[0] <= true[0]
        assert true[1] <= found[1] <= true[1] + F(1, 50)
        assert found[0] >= true[0] - F(1, 50)


def test_divergences_of_wide_enclosures(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio, order = (F(2), F(3)), F(5, 2)
    true = refuted._laplace_divergence(ratio, order)

    def wide(call: Any) -> Any:
        return lambda x: (call(x)[0] * F(999, 1000), call(x)[1] * F(1001, 1000))

    for name in ("exponential", "logarithm"):
        monkeypatch.setattr(refuted, name, wide(getattr(refuted, name)))
    assert true - F(1, 100) <= refuted._laplace_divergence(ratio, order) < true
