"""Numeric compositions at their edges: every limit on both sides, curves against floats, mixtures with given ends."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from certificate_verdicts import refused
from privcheck_check import numeric
from privcheck_check.enclosures import ONE, enclose
from privcheck_check.values import Rejected

F = Fraction
Event = dict[str, Any]


# ── Curves against floats ──


def phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def root(ratio: Callable[[float], float], t: float) -> float:
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if ratio(middle) > t else (middle, high)
    return low


def normal_curve(top: list[tuple[float, float]], bottom: list[tuple[float, float]], t: float) -> float:
    """P(X > x) − t·Q(X > x) at the x where the ratio of densities, which grows, is t."""

    def ratio(x: float) -> float:
        return sum(w * math.exp(m * x - m * m / 2) for w, m in top) / sum(
            w * math.exp(m * x - m * m / 2) for w, m in bottom
        )

    x = root(ratio, t)
    return sum(w * phi(m - x) for w, m in top) - t * sum(w * phi(m - x) for w, m in bottom)


def outcomes(event: Event) -> list[tuple[float, float]]:
    law, e = event["law"], float(F(event.get("epsilon", 0)))
    if law == "discrete":
        return [(float(F(p)), float(F(q))) for p, q in zip(event["p"], event["q"], strict=True)]
    if law == "randomised response":
        other = 1 / (math.exp(e) + event["values"] - 1)
        return [(math.exp(e) * other, other), (other, math.exp(e) * other), *[(other, other)] * (event["values"] - 2)]
    if law == "approximate":
        lost, true = float(F(event["lost"])), math.exp(e) / (1 + math.exp(e))
        bit = [((1 - lost) * true, (1 - lost) * (1 - true)), ((1 - lost) * (1 - true), (1 - lost) * true)]
        return [(lost, 0.0), (0.0, lost), *bit]
    if law == "binomial":
        m = event["trials"]
        coins = [math.comb(m, k) / 2**m for k in range(m + 1)]
        return list(zip([0.0, *coins], [*coins, 0.0], strict=True))
    norm = (1 - math.exp(-e)) / (1 + math.exp(-e))
    far = [norm * math.exp(-e * abs(x)) for x in range(-300, 300 + event["distance"])]
    return [(far[i - event["distance"]], far[i]) for i in range(event["distance"], len(far))]


def true_curve(event: Event, t: float) -> float:
    if "rate" in event:
        rate = float(F(event["rate"]))
        s = (t - 1 + rate) / rate
        single = {key: value for key, value in event.items() if key != "rate"}
        return rate * (true_curve(single, s) if s > 0 else 1 - s)
    if "squared_ratio" in event:
        m = math.sqrt(F(event["squared_ratio"]))
        if event["law"] == "gaussian":
            return phi(m / 2 - math.log(t) / m) - t * phi(-m / 2 - math.log(t) / m)
        if event["law"] == "opposite gaussians":
            q = float(F(event["share"]))
            return normal_curve([(1 - q, 0.0), (q, m)], [(1 - q, 0.0), (q, -m)], t)
        weights = [float(F(w)) for w in event["weights"]]
        return 1 - t if t <= weights[0] else normal_curve([(w, k * m) for k, w in enumerate(weights)], [(1.0, 0.0)], t)
    if event["law"] == "laplace":
        return max(0.0, 1 - t, 1 - math.sqrt(t * math.exp(-float(F(event["ratio"])))))
    return sum(max(0.0, p - t * q) for p, q in outcomes(event))


CURVES: list[Event] = [
    {"law": "gaussian", "squared_ratio": "1/9"},
    {"law": "gaussian", "squared_ratio": 4, "rate": "1/3"},
    {"law": "opposite gaussians", "squared_ratio": "2/3", "share": "1/5"},
    {"law": "opposite gaussians", "squared_ratio": 3, "share": 1},
    {"law": "opposite gaussians", "squared_ratio": 2, "share": "3/4"},
    {"law": "gaussian mixture", "squared_ratio": "2/3", "weights": ["1/4", "1/2", "1/4"]},
    {"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/4", 0, "1/4", "1/4", "1/4"]},
    {"law": "gaussian mixture", "squared_ratio": "1/2", "weights": [0, "1/3", "2/3"]},
    {"law": "gaussian mixture", "squared_ratio": "1/2", "weights": [0, 1]},
    {"law": "gaussian mixture", "squared_ratio": "1/2", "weights": ["1/3", "2/3", 0]},
    {"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/2", "1/2"], "rate": "1/2"},
    {"law": "laplace", "ratio": "1/2"},
    {"law": "laplace", "ratio": 3, "rate": "1/5"},
    {"law": "geometric", "epsilon": "1/2", "distance": 1},
    {"law": "geometric", "epsilon": "1/3", "distance": 2},
    {"law": "geometric", "epsilon": "2/3", "distance": 5},
    {"law": "randomised response", "epsilon": 1, "values": 2},
    {"law": "randomised response", "epsilon": "3/2", "values": 5},
    {"law": "approximate", "epsilon": "1/2", "lost": "1/7"},
    {"law": "approximate", "epsilon": 2, "lost": 0},
    {"law": "approximate", "epsilon": 2, "lost": 1},
    {"law": "discrete", "p": ["1/2", "1/2", 0], "q": ["1/4", "1/2", "1/4"]},
    {"law": "binomial", "trials": 1},
    {"law": "binomial", "trials": 2},
    {"law": "binomial", "trials": 3},
    {"law": "binomial", "trials": 40},
    {"law": "binomial", "trials": 41},
    {"law": "binomial", "trials": 900},
]
NAMES = ["-".join(str(value) for value in event.values()) for event in CURVES]


def bounded(event: Event) -> Callable[[Fraction], tuple[Fraction, Fraction]]:
    curve = numeric._read_event(event | {"count": 1})[1]

    def at(t: Fraction) -> tuple[Fraction, Fraction]:
        low, high = numeric._bounded(curve, enclose(t))
        return F(low, ONE), F(high, ONE)

    return at


@pytest.mark.parametrize("event", CURVES, ids=NAMES)
def test_a_curve_is_narrow_about_its_value_in_floats(event: Event) -> None:
    at = bounded(event)
    for t in (F(1, 50), F(1, 4), F(2, 3), F(17, 20), F(1), F(21, 20), F(3, 2), F(11, 4), F(8), F(60)):
        low, high = at(t)
        assert 0 <= high - low < F(1, 2**85)
        assert float(low) == pytest.approx(true_curve(event, float(t)), abs=2e-12)


@pytest.mark.parametrize("event", CURVES, ids=NAMES)
def test_a_curve_falls_by_at_most_one_a_unit_and_is_convex(event: Event) -> None:
    """Points in the other order, from the right: what the last point proposes does not matter."""
    at = bounded(event)
    points = [F(k, 7) for k in range(1, 40, 3)]
    found = {t: at(t) for t in reversed(points)}
    for one, other in itertools.pairwise(points):
        assert found[other][0] <= found[one][1]
        assert found[one][0] - found[other][1] <= other - one
    for a, b, c in zip(points, points[1:], points[2:], strict=False):
        assert 2 * found[b][0] <= found[a][1] + found[c][1]


# ── Limits ──

GAUSSIAN: Event = {"law": "gaussian", "squared_ratio": 1, "count": 1}
LIMITS: list[tuple[Event, str, list[Any], list[Any]]] = [
    (GAUSSIAN, "squared_ratio", ["1/1000", 4096], [0, -1, "-1/2", 4097, "8193/2"]),
    (GAUSSIAN, "count", [1, 10**9], [0, -1, 10**9 + 1, "1"]),
    (GAUSSIAN, "rate", ["1/1000", 1], [0, "-1/2", "3/2", 2]),
    ({"law": "opposite gaussians", "squared_ratio": 1, "share": 1, "count": 1}, "share", ["1/9", 1],
     [0, "-1/2", "3/2"]),
    ({"law": "laplace", "ratio": 1, "count": 1}, "ratio", ["1/9", 64], [0, "-1/2", 65, "129/2"]),
    ({"law": "geometric", "epsilon": 1, "distance": 1, "count": 1}, "distance", [1, 2, 64], [0, -1, 65]),
    ({"law": "geometric", "epsilon": 1, "distance": 1, "count": 1}, "epsilon", ["1/9", 64], [0, "-1/2", "129/2"]),
    ({"law": "randomised response", "epsilon": 1, "values": 2, "count": 1}, "values", [2, 10**9], [1, 0, 10**9 + 1]),
    ({"law": "randomised response", "epsilon": 1, "values": 2, "count": 1}, "epsilon", ["1/9", 64], [0, "-1/2", 65]),
    ({"law": "approximate", "epsilon": 1, "lost": 0, "count": 1}, "lost", [0, "1/2", 1], ["-1/2", -1, "3/2", 2]),
    ({"law": "approximate", "epsilon": 1, "lost": 0, "count": 1}, "epsilon", ["1/9", 64], [0, "-1/2", 65]),
    ({"law": "binomial", "trials": 1, "count": 1}, "trials", [1, 2], [0, -1, 10**7 + 1]),
    ({"law": "gaussian mixture", "squared_ratio": 1, "weights": [0, 1], "count": 1}, "weights",
     [[0, 1], ["1/64"] * 64],
     [[1], [1, 0], ["1/65"] * 65, ["1/2", "1/4"], ["1/2", "3/4"], ["3/2", "-1/2"], ["1/2", 1, "-1/2"], []]),
    ({"law": "discrete", "p": [1], "q": [1], "count": 1}, "p", [[1]],
     [["1/2"], [2], [0], ["1/2", "1/2"], [], ["3/2", "-1/2"], [1, "1/2", "-1/2"]]),
]  # fmt: skip


@pytest.mark.parametrize(("event", "field", "good", "bad"), LIMITS, ids=[f"{e['law']}-{f}" for e, f, *_ in LIMITS])
def test_every_field_of_an_event_has_its_limits(event: Event, field: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        numeric._read_event(event | {field: value})
    for value in bad:
        assert refused(numeric._read_event, event | {field: value}), value


def test_ten_million_coins_are_counted() -> None:
    curve = numeric._read_event({"law": "binomial", "trials": 10**7, "count": 1})[1]
    low, high = curve((ONE, ONE))
    assert low / ONE == pytest.approx(1 / math.sqrt(math.pi * 10**7 / 2), rel=1e-4)  # the largest mass
    assert high - low < ONE >> 100


def test_limits_of_sizes() -> None:
    assert (numeric.MOST_COINS, numeric.MOST_COUNT, numeric.MOST_EPSILON) == (10**7, 10**9, 64)
    assert (numeric.MOST_EVENTS, numeric.MOST_OUTCOMES) == (32, 64)


def test_sixty_four_outcomes_are_listed() -> None:
    for number, found in ((64, False), (65, True)):
        listed = [f"1/{number}"] * number
        assert refused(numeric._read_event, {"law": "discrete", "p": listed, "q": listed, "count": 1}) is found


SMALL: Event = {"law": "laplace", "ratio": "1/10000", "count": 1}


def bound(*events: Event, epsilon: Any = 1, **grid: Any) -> Fraction:
    hints = {"steps": 100, "digits": 20, "trim": "1/1000000"} | grid
    return numeric.upper_delta({"events": list(events), "grid": hints, "epsilon": epsilon, "delta": "1/2"})


@pytest.mark.parametrize(
    ("hints", "found"),
    [({"steps": 1}, False), ({"steps": "3/2"}, False), ({"steps": "1/2"}, True), ({"steps": 0}, True),
     ({"steps": 1 << 17}, False), ({"steps": (1 << 17) + 1}, True), ({"digits": 4}, False), ({"digits": 3}, True),
     ({"digits": 50}, False), ({"digits": 51}, True), ({"trim": 0}, False), ({"trim": "-1/2"}, True),
     ({"trim": 1}, False), ({"trim": "3/2"}, True), ({"epsilon": 0}, False), ({"epsilon": "-1/2"}, True),
     ({"epsilon": 64}, False), ({"epsilon": 65}, True), ({"epsilon": "129/2"}, True)],
)  # fmt: skip
def test_every_hint_has_its_limits(hints: dict[str, Any], found: bool) -> None:
    assert refused(bound, SMALL, **hints) is found


def test_thirty_two_events_are_composed() -> None:
    few: Event = {"law": "discrete", "p": [1], "q": [1], "count": 1}
    assert bound(*[few] * 32) < F(1, 10**5)
    assert refused(bound, *[few] * 33)
    assert refused(bound)


def test_a_claim_is_met_by_the_bound_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    document = {"events": [SMALL], "grid": {"steps": 100, "digits": 20, "trim": 0}, "epsilon": 1}
    monkeypatch.setattr(numeric, "upper_delta", lambda _: F(0))
    assert refused(numeric.check_numeric, document | {"delta": 0})
    assert not refused(numeric.check_numeric, document | {"delta": "1/1000"})
    for delta, found in (
        ("1/2", False),
        ("1/3", False),
        ("33/100", True),
        (1, False),
        (0, True),
        ("-1/2", True),
        (2, True),
    ):
        monkeypatch.setattr(numeric, "upper_delta", lambda _: F(1, 3))
        assert refused(numeric.check_numeric, document | {"delta": delta}) is found
    monkeypatch.undo()
    assert not refused(numeric.check_numeric, document | {"delta": 1})


def test_fields_of_other_laws_are_refused() -> None:
    for event in (
        GAUSSIAN | {"ratio": 1},
        {"law": "gaussian", "count": 1},
        GAUSSIAN | {"law": "cauchy"},
        GAUSSIAN | {"x": 1},
    ):
        assert refused(numeric._read_event, event)


def test_what_is_known_of_an_event() -> None:
    """Squared ratios of Gaussians without a sample, times the count; the work of a point; whether it is symmetric."""
    for event, squared, terms, symmetric in (
        (GAUSSIAN | {"count": 3}, 3, 2, True), (GAUSSIAN | {"rate": "1/2"}, 0, 2, False),
        ({"law": "opposite gaussians", "squared_ratio": 1, "share": 1, "count": 1}, 0, 4, True),
        ({"law": "gaussian mixture", "squared_ratio": 1, "weights": [0, 1], "count": 1}, 0, 2, False),
        ({"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/7"] * 7, "count": 1}, 0, 7, False),
        ({"law": "laplace", "ratio": 1, "count": 1}, 0, 2, True),
        ({"law": "geometric", "epsilon": 1, "distance": 1, "count": 1}, 0, 8, True),
        ({"law": "randomised response", "epsilon": 1, "values": 2, "count": 1}, 0, 2, True),
        ({"law": "approximate", "epsilon": 1, "lost": 0, "count": 1}, 0, 2, True),
        ({"law": "discrete", "p": [1], "q": [1], "count": 1}, 0, 2, False),
        ({"law": "binomial", "trials": 1, "count": 9}, 0, 2, True),
    ):  # fmt: skip
        found = numeric._read_event(event)
        assert (found[0], found[2:]) == (squared, (event["count"], terms, symmetric))


# ── Curves of intervals ──


def test_a_curve_is_cut_to_what_every_curve_keeps() -> None:
    """max(0, 1 − t) ≤ D(t) ≤ max(1, 1 − t), at both ends of t."""
    for value, t, cut in (
        ((-5, 2 * ONE), (ONE // 2, ONE), (0, ONE)), ((-5, 2 * ONE), (ONE // 4, ONE // 2), (ONE // 2, ONE)),
        ((ONE // 3, ONE // 2), (ONE, 2 * ONE), (ONE // 3, ONE // 2)), ((0, 0), (-ONE, ONE // 2), (ONE // 2, 2 * ONE)),
        ((0, 0), (0, 0), (ONE, ONE)), ((0, 7), (1, 1), (ONE - 1, 7)),
    ):  # fmt: skip
        assert numeric._bounded(lambda _, found=value: found, t) == cut


def test_a_sampled_curve_is_that_of_the_other_point() -> None:
    asked: list[Any] = []

    def curve(t: tuple[int, int]) -> tuple[int, int]:
        asked.append(t)
        return ONE // 4, ONE // 3

    found = numeric._sampled(curve, F(1, 3))((ONE, 2 * ONE))
    third = enclose(F(1, 3))
    two = enclose(F(2, 3))
    assert asked[0] == numeric.divide((ONE - two[1], 2 * ONE - two[0]), third)
    assert F(asked[0][0], ONE) <= 1
    assert F(asked[0][1], ONE) >= 4
    assert found == ((third[0] * (ONE // 4)) >> 192, -((-third[1] * (ONE // 3)) >> 192))


def test_finite_outcomes_are_enclosed_by_both_ends() -> None:
    p, q = (ONE // 2, ONE // 2 + 9), (ONE // 5, ONE // 5 + 7)
    low, high = numeric._finite([(p, q), ((0, 3), (ONE, ONE))])((ONE, ONE + 8))
    assert F(p[0], ONE) - F(ONE + 8, ONE) * F(q[1], ONE) - F(3, ONE) <= F(low, ONE)
    assert F(low, ONE) <= F(p[0], ONE) - F(ONE + 8, ONE) * F(q[1], ONE)
    assert F(high, ONE) >= F(p[1], ONE) - F(q[0], ONE)
    assert high <= p[1] - q[0] + 2
    assert numeric._finite([])((ONE, ONE)) == (0, 0)
    assert numeric._finite([((0, 0), (ONE, ONE))])((ONE, ONE)) == (0, 0)


def test_the_limit_on_newtons_steps_is_shared_by_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/2", "1/4", "1/4"], "count": 1}
    monkeypatch.setattr(numeric, "MOST_NEWTON", 3 * 40)
    curve = numeric._read_event(event)[1]
    points = [enclose(F(100 + k * k, 100)) for k in range(60)]
    with pytest.raises(ValueError, match="no root"):
        list(map(curve, points))
    monkeypatch.setattr(numeric, "MOST_NEWTON", 3 * 10**6)
    assert len(list(map(numeric._read_event(event)[1], points))) == 60


@pytest.mark.parametrize("off", [F(1, 10**20), F(-1, 10**20), F(1, 2), F(-1, 2)])
def test_a_root_is_proved_by_the_signs_about_it(off: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the logarithm is asked of another place than the root's, the curve is that of a worse set, never above."""
    event = {"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/2", "1/4", "1/4"], "count": 1}
    low, high = numeric._read_event(event)[1](enclose(F(3, 2)))
    exact = numeric.log
    monkeypatch.setattr(numeric, "log", lambda x: tuple(end + int(off * ONE) for end in exact(x)))
    other = numeric._read_event(event)[1](enclose(F(3, 2)))
    assert other[0] < high
    assert other[0] <= low + 40


def test_what_the_checker_says_of_an_enclosure_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> Fraction:
        raise ValueError("no")

    monkeypatch.setattr(numeric, "upper_delta", fails)
    with pytest.raises(Rejected, match="numeric: no"):
        numeric.check_numeric({"events": [], "grid": {}, "epsilon": 0, "delta": 1})


# ── The same at a coarse scale, where one rounding in the wrong direction is seen ──


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(numeric, "BITS", 9)
    monkeypatch.setattr(numeric, "ONE", 1 << 9)
    return 1 << 9


@pytest.mark.parametrize("trials", [1, 2, 3, 4, 9, 10, 40, 41, 60, 61])
def test_tails_of_coins_contain_the_exact_ones_at_any_scale(trials: int, coarse: int) -> None:
    """At 2⁻⁹ the weights end long before the last coin, so that the rest of the series counts."""
    curve = numeric._binomial({"trials": trials})
    coins = [F(math.comb(trials, k), 2**trials) for k in range(trials + 1)]
    for t in [*range(1, 3 * coarse, 61), coarse, 20 * coarse, trials * coarse, trials * coarse + 1, 90 * coarse]:
        exact = sum(
            (max(F(0), p - F(t, coarse) * q) for p, q in zip([F(0), *coins], [*coins, F(0)], strict=True)), F(0)
        )
        low, high = curve((t, t))
        assert low <= exact * coarse <= high
        assert high - low <= 14 + 8 * t // coarse
    low, high = curve((coarse // 2, 2 * coarse))
    assert low <= curve((2 * coarse, 2 * coarse))[0]
    assert high >= curve((coarse // 2, coarse // 2))[1]


def test_outcomes_contain_the_exact_ones_at_any_scale(coarse: int) -> None:
    for p, q, t in itertools.product((5, 77, 300), (0, 3, 211), (1, 100, 511, 513, 1000)):
        low, high = numeric._finite([((p, p), (q, q))])((t, t))
        exact = max(F(0), p - F(t * q, coarse))
        assert low <= exact <= high
        assert (low, high) in ((low, low), (low, low + 1), (low, low + 2))


# ── Given ends ──


def test_ends_of_a_response_are_those_of_its_exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    monkeypatch.setattr(numeric, "_finite", found.append)
    monkeypatch.setattr(numeric, "exp", lambda _: (2 * ONE, 3 * ONE))
    numeric._randomised_response({"epsilon": 1, "values": 5})
    ((true, other), (turned, truth), (rest, same)) = found[0]
    assert (turned, truth, same) == (other, true, rest)
    for (low, high), (least, most), slack in (
        (other, (F(1, 7), F(1, 6)), 1), (true, (F(2, 7), F(1, 2)), 4), (rest, (F(3, 7), F(1, 2)), 3),
    ):  # fmt: skip
        assert least - F(slack, ONE) <= F(low, ONE) <= least
        assert most <= F(high, ONE) <= most + F(slack, ONE)


MIXTURE: Event = {"law": "gaussian mixture", "squared_ratio": 1, "weights": ["1/3", "1/3", "1/3"], "count": 1}


def test_a_mixture_of_wide_means_contains_the_narrow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [enclose(F(k, 5)) for k in (2, 4, 5, 6, 9, 30)]
    narrow = [numeric._mixture(MIXTURE)(t) for t in points]
    exact = numeric.sqrt
    for below, above in ((1, 0), (0, 1), (1, 1)):
        monkeypatch.setattr(
            numeric, "sqrt", lambda x, a=below, b=above: (exact(x)[0] - a * (ONE >> 12), exact(x)[1] + b * (ONE >> 12))
        )
        curve = numeric._mixture(MIXTURE)
        for t, (low, high) in zip(points, narrow, strict=True):
            wide = curve(t)
            assert wide[0] <= low
            assert high <= wide[1] <= high + (ONE >> 8)
            assert wide[1] - wide[0] >= ONE >> 16


def test_a_mixture_is_a_line_up_to_its_first_weight() -> None:
    """P/Q ≥ w₀: D(t) = 1 − t up to w₀, and at most 1 − w₀ beyond, where t meets the enclosure of w₀."""
    low, high = numeric.multiply(enclose(F(1, 3)), numeric.exp((0, 0)))
    assert low < high
    curve = numeric._mixture(MIXTURE)
    for t in (
        (high, high + 9),
        (high, high),
        (low, low),
        (low, high + 5),
        (5, 7),
        (high - 1, high),
        (high - 1, ONE // 2),
    ):
        assert curve(t) == (ONE - t[1], ONE - min(t[0], low))
    beyond = curve((high + ONE // 99, high + ONE // 99))
    assert beyond[1] < ONE - low
    assert beyond[1] - beyond[0] < ONE >> 90


def test_a_root_is_refused_where_coefficients_are_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = numeric.exp
    t = enclose(F(3, 2))
    monkeypatch.setattr(numeric, "exp", lambda x: (exact(x)[0], exact(x)[1] + (exact(x)[1] >> 60)))
    with pytest.raises(ValueError, match="no root"):
        numeric._mixture(MIXTURE)(t)
    # ½ + z/2 at t = 5/8: a wide t moves the root by more than the margin
    one = {"squared_ratio": 1, "weights": ["1/2", "1/2"]}
    start = 5 * ONE // 8
    monkeypatch.setattr(numeric, "exp", lambda x: (exact(x)[0], exact(x)[1] + (exact(x)[1] >> 31)))
    with pytest.raises(ValueError, match="no root"):
        numeric._mixture(one)((start, start + (start >> 30)))


def test_a_mixture_with_a_tiny_last_weight_has_its_root() -> None:
    """z is some 10¹⁵ there: a unit of 2⁻¹⁹² in a coefficient would be seen."""
    tiny = F(1, 10**15)
    curve = numeric._mixture({"squared_ratio": 1, "weights": [str(1 - tiny), str(tiny)]})
    low, high = numeric._bounded(curve, enclose(F(2)))
    assert 0 <= low <= high < ONE >> 80


def test_laplace_noise_far_out_is_nothing_at_all() -> None:
    curve = numeric._read_event({"law": "laplace", "ratio": "1/2", "count": 1})[1]
    assert numeric._bounded(curve, enclose(F(60))) == (0, 0)
    assert curve(enclose(F(60)))[1] == 0
    assert numeric._bounded(lambda _: (-9, 5), (2 * ONE, 3 * ONE)) == (0, 5)


# ── The grid ──


def grid(**changed: Any) -> numeric.Grid:
    return numeric.Grid(**{"steps": F(5, 2), "unit": 1000, "trim": F(1, 100)} | changed)


def test_masses_are_the_formula_of_the_polygon_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """H d_(i+1) − (2H + 1) d_i + (H + 1) d_(i−1) by the ends that make it largest; over t, by the upper end of 1/t."""
    h, unit = F(5, 2), 1000
    points = [(ONE * a // 100, ONE * b // 100) for a, b in ((70, 75), (40, 42), (22, 23), (20, 24), (19, 19), (1, 3))]
    inverse = {k: enclose(F(7, 5) ** k) for k in range(-9, 10)}

    class Wide(numeric.Grid):
        def ladder(self, low: int, high: int) -> list[tuple[int, int]]:
            return [(inverse[k][0] - (ONE >> 6), inverse[k][1] + (ONE >> 6)) for k in range(low, high + 1)]

        def power(self, index: int) -> tuple[int, int]:
            return inverse[index][0] - (ONE >> 6), inverse[index][1]

    low = -3
    monkeypatch.setattr(numeric, "_points", lambda *_: (low, points))
    given = Wide(steps=h, unit=unit, trim=F(0))
    forward, backward = numeric.discretise(lambda t: t, given, terms=1)
    masses, turned = [], []
    for i, (least, _) in enumerate(points):
        rise = h * (points[i + 1][1] - least) if i + 1 < len(points) else F(0)
        fall = (h + 1) * (points[i - 1][1] - least) if i else F(ONE - least)
        mass = max(F(0), rise + fall) * unit / ONE
        masses.append(math.ceil(mass))
        turned.append(math.ceil(mass * F(inverse[-low - i][1] + (ONE >> 6), ONE)))
    assert min(masses) == 0
    assert (forward.start, forward.masses, forward.stride, forward.count) == (low, masses, 1, 1)
    assert (backward.start, backward.masses, backward.stride, backward.count) == (1 - low - 6, turned[::-1], 1, 1)
    assert forward.infinite == math.ceil(F(points[-1][1] * unit, ONE))
    lost = ONE - ((ONE - points[0][1]) * (inverse[3][0] - (ONE >> 6)) >> 192)
    assert backward.infinite == math.ceil(F(lost * unit, ONE))


def test_points_are_paid_for_and_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = numeric._read_event({"law": "laplace", "ratio": 1, "count": 1})[1]
    given = grid(steps=F(9))
    low, points = numeric._points(curve, given, 4)
    assert low < 0 < low + len(points) - 1
    assert given.work == numeric.MOST_WORK - 300 * 4 * len(points)
    for most, found in ((len(points) - 1, False), (len(points) - 2, True)):
        monkeypatch.setattr(numeric, "MOST_CELLS", most)
        assert refused(numeric._points, curve, grid(steps=F(9)), 4) is found


def test_wider_cells_keep_what_is_on_their_points() -> None:
    for start, masses, expected in (
        (0, [5, 0, 7], [5, 7]), (-2, [5, 0, 7, 0], [5, 7, 0]), (4, [9], [9]), (-1, [0, 3], [0, 3]),
        (3, [0, 3, 0, 4], [0, 3, 4]),
    ):  # fmt: skip
        wide = numeric.coarsen(numeric.Loss(start=start, masses=masses, infinite=2, count=1), grid())
        assert wide.masses == expected
        assert wide.start == start - start % 2


def test_losses_below_epsilon_count_nothing() -> None:
    loss = numeric.Loss(start=-50, masses=[1000, 7, 9], infinite=0, count=1)
    assert numeric.delta_at(loss, F(1), grid()) == 0
    assert numeric.delta_at(numeric.Loss(start=-50, masses=[9], infinite=3, count=1), F(0), grid()) == F(3, 1000)


def test_a_count_is_reached() -> None:
    one = numeric.Loss(start=1, masses=[10**20], infinite=0, count=1)
    for count in (1, 2, 3, 4, 5, 6, 7, 11, 12, 22):
        found = numeric.repeat(one, count, grid(unit=10**20, trim=F(0)))
        assert (found.count, found.start, found.masses) == (count, count, [10**20])


def test_documented_limits() -> None:
    assert (numeric.MOST_CELLS, numeric.MOST_DIGITS) == (2**17, 2**24)


@pytest.mark.parametrize("scale", [9, 4])
@pytest.mark.parametrize("trials", [1, 2, 3, 4, 5, 6, 30, 31, 60, 61, 400, 401])
def test_weights_of_coins_contain_the_exact_ones_at_any_scale(
    trials: int, scale: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the largest, from the middle on; the last one is that of all that are not listed."""
    one = 1 << scale
    monkeypatch.setattr(numeric, "ONE", one)
    tails, total = numeric._tails(trials)
    half = (trials + 1) // 2
    largest = math.comb(trials, half)
    weights = [F(one * math.comb(trials, k), largest) for k in range(trials + 1)]
    assert len(tails) <= trials - half + 2
    for i, (low, high) in enumerate(tails):
        assert 0 <= low <= sum(weights[half + i :]) <= high
        assert high - low <= 4 * len(tails)
    if len(tails) == trials - half + 2:
        assert tails[-1] == (0, 0)
    else:
        assert weights[half + len(tails) - 2] <= 1
        assert tails[-1][0] == 0 < tails[-1][1] <= 1 + 2 * one
    assert total[0] <= sum(weights) <= total[1]
    assert total[0] == 2 * tails[0][0] - (one if trials % 2 == 0 else 0)
    assert total[1] == 2 * tails[0][1] - (one if trials % 2 == 0 else 0)


@pytest.mark.parametrize("trials", [6, 7, 20])
def test_the_curve_of_coins_takes_the_ends_of_weights(trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P[X ≥ k − 1] − t·P[X ≥ k], of wide tails and a wide total, the lower half turned round."""
    half = (trials + 1) // 2
    tails = [(ONE * a // 64, ONE * b // 64) for a, b in ((170, 200), (90, 120), (30, 50), (9, 11), (0, 1))]
    total = (ONE * 250 // 64, ONE * 300 // 64)
    monkeypatch.setattr(numeric, "_tails", lambda _: (tails, total))
    curve = numeric._binomial({"trials": trials})

    def above(k: int) -> tuple[Fraction, Fraction]:
        if k < half:
            low, high = above(trials - k + 1)
            return 1 - high, 1 - low
        if k > trials:
            return F(0), F(0)
        low, high = tails[min(k - half, len(tails) - 1)]
        return F(low, total[1]), F(high, total[0])

    for t in (F(1, 40), F(1, 3), F(3, 4), F(1), F(9, 8), F(2), F(5), F(trials), F(trials) + F(1, 9), F(70)):
        k = math.ceil(t * (trials + 1) / (1 + t))
        before, at = above(k - 1), above(k)
        low, high = curve((int(t * ONE), int(t * ONE)))
        for found, exact in ((low, before[0] - t * at[1]), (high, before[1] - t * at[0])):
            assert abs(F(found, ONE) - exact) < F(t + 9, ONE)


def test_polynomials_are_enclosed_at_any_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numeric, "BITS", 3)
    assert numeric._polynomial([], 5) == (0, 0)
    for z in (0, 1, 3, 8, 11, 30, 1000):
        for coefficients in ([(5, 6)], [(1, 1), (3, 4)], [(7, 9), (0, 0), (5, 5)], [(0, 1), (2, 2), (3, 3), (11, 12)]):
            low, high = numeric._polynomial(coefficients, z)
            least, most = (sum(c[i] * F(z, 8) ** k for k, c in enumerate(coefficients)) for i in (0, 1))
            assert low <= least
            assert most <= high
            assert high - low <= most - least + 2 * sum(F(z, 8) ** k for k in range(len(coefficients) - 1))
            if not z:
                assert (low, high) == coefficients[0]


# ── What the half-line of a curve is asked about ──


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def above(*given: Any) -> tuple[int, int]:
        found.append(given)
        return 0, ONE

    monkeypatch.setattr(numeric, "_above", above)
    return found


def test_the_half_line_of_opposite_gaussians(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """x = log z / m with a z² − (1 − s)(t − 1) z − a t = 0, for all t of an interval; b may be 0 about t = 1."""
    squared, share = F(2), F(1, 3)
    m, q, rest = numeric.sqrt(enclose(squared)), enclose(share), enclose(1 - share)
    roots: list[Any] = []
    exact = numeric.sqrt
    monkeypatch.setattr(numeric, "sqrt", lambda x: (roots.append(x), exact(x))[1])
    curve = numeric._opposite({"squared_ratio": str(squared), "share": str(share)})
    a = float(share) * math.exp(-float(squared) / 2)

    def place(t: float) -> float:
        b = float(1 - share) * (t - 1) / 2
        return math.log((b + math.sqrt(b * b + a * a * t)) / a) / math.sqrt(2)

    for low, high in (
        (F(1, 2), F(9, 10)),
        (F(9, 10), F(6, 5)),
        (F(6, 5), F(3)),
        (F(1), F(2)),
        (F(1, 2), F(1)),
        (F(1), F(1)),
    ):
        roots.clear()
        curve((int(low * ONE), int(high * ONE)))
        t, x, top, bottom = asked[-1]
        assert t == (int(low * ONE), int(high * ONE))
        assert top == [(rest, (0, 0)), (q, m)]
        assert bottom == [(rest, (0, 0)), (q, (-m[1], -m[0]))]
        for at in (low, (low + high) / 2, high):
            assert x[0] / ONE - 1e-12 <= place(float(at)) <= x[1] / ONE + 1e-12
        if low <= 1 <= high:
            part = numeric.multiply(q, numeric.exp(enclose(-squared / 2)))
            assert roots[0][0] == numeric.multiply(numeric.multiply(part, part), t)[0]


def test_the_half_line_of_a_mixture(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """x = K m/2 + log z / m, K the last index; the means k·m of the weights that are not 0."""
    m = (ONE + 7, 2 * ONE)
    monkeypatch.setattr(numeric, "sqrt", lambda _: m)
    monkeypatch.setattr(numeric, "log", lambda _: (3 * ONE, 5 * ONE))
    weights = ["1/2", 0, "1/4", "1/4"]
    numeric._mixture({"squared_ratio": 1, "weights": weights})(enclose(F(3, 2)))
    t, x, top, bottom = asked[0]
    assert t == enclose(F(3, 2))
    assert top == [(enclose(F(w)), (k * m[0], k * m[1])) for k, w in enumerate(weights) if w]
    assert bottom == [((ONE, ONE), (0, 0))]
    low, high = numeric.divide((3 * ONE, 5 * ONE), m)
    assert x == (low + 3 * m[0] // 2, high + 3 * m[1] // 2)


def test_a_root_is_refused_where_its_sign_is_seen_at_the_other_end_of_t_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """½ + z/2 at t = 3/2, a relative 2⁻³⁰ wide, with coefficients thrice as wide: above t's low end only."""
    exact, start = numeric.exp, 3 * ONE // 2
    monkeypatch.setattr(numeric, "exp", lambda x: (exact(x)[0], exact(x)[1] + 3 * (exact(x)[1] >> 30)))
    with pytest.raises(ValueError, match="no root"):
        numeric._mixture({"squared_ratio": 1, "weights": ["1/2", "1/2"]})((start, start + (start >> 30)))


def test_the_last_mass_is_rounded_up_by_any_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """(H + 1)·d at the last point, one unit of 2⁻¹⁹² more than a whole number, and exactly one."""
    inverse = pow(3, -1, ONE)
    for before, mass in ((inverse, 3 * inverse // ONE + 1), (ONE // 3 + 1, 2), (ONE // 2, 2)):
        monkeypatch.setattr(numeric, "_points", lambda *_, d=before: (-1, [(ONE, ONE), (d, d), (0, 0)]))
        forward, _ = numeric.discretise(lambda t: t, numeric.Grid(steps=F(2), unit=1, trim=F(0)), terms=1)
        assert forward.masses[-1] == mass
    monkeypatch.setattr(numeric, "_points", lambda *_: (-1, [(ONE, ONE), (ONE // 2, ONE // 2), (0, 0)]))
    forward, _ = numeric.discretise(lambda t: t, numeric.Grid(steps=F(1), unit=1, trim=F(0)), terms=1)
    assert forward.masses[-1] == 1
