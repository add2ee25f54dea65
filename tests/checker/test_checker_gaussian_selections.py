"""Selections with Gaussian noise: integrals, curves and rules of the checker against naive ones and laws of pairs."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import certificate_samples as samples
import certificate_twins as naive
from certificate_verdicts import edited, verdict
from privcheck_check import quadrature
from privcheck_check.enclosures import ONE, enclose, fractions
from privcheck_check.numeric import LAWS, Curve, upper_delta
from privcheck_check.quadrature import first_above, winners
from privcheck_check.terms import allow
from privcheck_check.values import Rejected

SCORES = samples.SCORES
GRID = {"steps": "300", "digits": 18, "trim": "1/1000000000000"}


def above(x: float) -> float:
    return naive.phi(-x)


# ── Integrals ──


def normal(z: mpmath.mpf, level: Fraction) -> mpmath.mpf:
    return mpmath.erfc((mpmath.mpf(level.numerator) / level.denominator - z) / mpmath.sqrt(2)) / 2


def drawn(seed: int) -> tuple[Fraction, list[tuple[int, Fraction]]]:
    rng = random.Random(seed)
    ratio = Fraction(rng.choice(["1/10", "1/2", "1", "7/3"]))
    return ratio, [(rng.choice([1, 2, 5, 20]), Fraction(rng.randint(-40, 40), 10)) for _ in range(rng.randint(1, 3))]


@pytest.mark.parametrize("seed", range(5))
def test_the_first_answer_above_has_the_law_of_the_integral(seed: int) -> None:
    allow()
    ratio, groups = drawn(seed)
    found = first_above(enclose(ratio), [(n, enclose(x)) for n, x in groups])
    levels = [x for n, x in groups for _ in range(n)]
    with mpmath.workdps(20):
        for i in {0, 1, 1 + len(levels) // 2}:
            before = Counter(levels if i == 0 else levels[: i - 1])

            def answers(u: mpmath.mpf, before: Any = before, i: int = i) -> mpmath.mpf:
                z = mpmath.mpf(ratio.numerator) / ratio.denominator * u
                below = mpmath.fprod(normal(z, x) ** n for x, n in before.items())
                return mpmath.npdf(u) * below * (1 - normal(z, levels[i - 1]) if i else 1)

            truth = mpmath.quad(answers, mpmath.linspace(-10, 10, 5))
            low, high = found[i]
            assert low - Fraction(1, 10**14) <= Fraction(str(truth)) <= high + Fraction(1, 10**14)
            assert high - low < Fraction(1, 10**15)
    assert sum(low for low, _ in found) <= 1 <= sum(high for _, high in found)


@pytest.mark.parametrize("seed", range(6, 10))
def test_the_winner_has_the_law_of_the_integral(seed: int) -> None:
    allow()
    _, groups = drawn(seed)
    groups.append((3, Fraction(1, 4)))
    found = winners([(n, enclose(x)) for n, x in groups])
    with mpmath.workdps(20):
        for g, (own, level) in enumerate(groups):

            def wins(u: mpmath.mpf, g: int = g, own: int = own, level: Fraction = level) -> mpmath.mpf:
                others = ((n - (h == g), x - level) for h, (n, x) in enumerate(groups))
                return own * mpmath.npdf(u) * mpmath.fprod(normal(u, x) ** n for n, x in others)

            truth = mpmath.quad(wins, mpmath.linspace(-10, 10, 5))
            low, high = found[g]
            assert low - Fraction(1, 10**14) <= Fraction(str(truth)) <= high + Fraction(1, 10**14)
            assert high - low < Fraction(1, 10**15)
    assert sum(low for low, _ in found) <= 1 <= sum(high for _, high in found)


# ── Curves ──


@functools.cache
def curve(law: str, squared: str, size: int) -> Curve:
    number = {"stopped run": "queries", "largest normal": "candidates"}[law]
    return LAWS[law][0]({"law": law, "squared_shift": squared, number: size})


def bound(law: str, squared: str, size: int, epsilon: float) -> float:
    t = enclose(Fraction(math.exp(epsilon)))
    low, high = (float(each) for each in fractions(curve(law, squared, size)(t)))
    assert low <= high <= low + 1e-40
    return high


def stopped(shift: float, queries: int, epsilon: float) -> float:
    """The best run by dynamic programming: V ← max over t of (Φ̄(t) − x·Φ̄(t + a))₊ + Φ(t)·V, on a fine grid of t."""
    levels = [i / 200 for i in range(-1600, 1601)]
    gains = [(max(0.0, above(t) - math.exp(epsilon) * above(t + shift)), naive.phi(t)) for t in levels]
    value = 0.0
    for _ in range(queries):
        value = max(gain + below * value for gain, below in gains)
    return value


@pytest.mark.parametrize(("squared", "queries"), [("1/16", 1), ("1/16", 7), ("1", 3), ("4", 30), ("1/16", 40)])
def test_the_curve_of_a_stopped_run_is_that_of_the_best_one(squared: str, queries: int) -> None:
    event = ("stopped run", squared, queries)
    shift = math.sqrt(Fraction(squared))
    for part in (0.0, 0.3, 1.0, 2.0):
        epsilon = part * shift * 2
        best = stopped(shift, queries, epsilon)
        assert best <= bound(*event, epsilon) * (1 + 1e-12)
        assert bound(*event, epsilon) <= best * 1.03 + 1e-6
    assert bound(*event, 0) == pytest.approx(stopped(shift, queries, 0), rel=1e-4 if queries <= 16 else 1e-2)


def test_many_queries_are_no_cheaper_than_fewer() -> None:
    for epsilon in (0.0, 0.4, 1.0):
        few, more, many = (bound("stopped run", "1/16", n, epsilon) for n in (90, 100, 10**4))
        assert few <= more <= many < 1


@pytest.mark.parametrize("candidates", [2, 5, 100])
def test_no_scores_lose_more_than_the_curve_of_the_largest(candidates: int) -> None:
    event = ("largest normal", "4/9", candidates)
    rng, mechanism = random.Random(candidates), {"variance": 9}
    for _ in range(12):
        n = rng.randint(1, candidates - 1)
        lead = Fraction(rng.randint(-30, 30), 5)
        groups = [[n, 0, 1], [candidates - n, str(lead), str(lead - 1)]]
        laws = [naive.compared("gaussian-max", mechanism, {}, groups, side) for side in (0, 1)]
        for epsilon in (0.0, 0.2, 0.7, 1.5):
            for p, q in (laws, laws[::-1]):
                # the winner's index: the candidates of a group are alike
                loss = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True))
                assert loss <= bound(*event, epsilon) * (1 + 1e-9) + 1e-9


def test_the_curve_of_the_largest_is_the_lemmas() -> None:
    for candidates, epsilon in itertools.product((2, 30, 10**6), (0.0, 0.5, 1.5, 3.0)):
        event = ("largest normal", "1/4", candidates)
        levels = [i / 1000 for i in range(-1000, 8000)]
        most = [t for t in levels if above(t) <= 1 / candidates]
        best = candidates * max(above(t) - math.exp(epsilon) * above(t + 0.5) for t in most)
        assert best * (1 - 1e-12) <= bound(*event, epsilon) <= best * 1.02 + 1e-7


@pytest.mark.parametrize("law", ["stopped run", "largest normal"])
def test_curves_are_convex_and_those_of_a_pair(law: str) -> None:
    points = [Fraction(i, 40) for i in range(1, 200)]
    values = [fractions(curve(law, "1/4", 60)(enclose(t))) for t in points]
    for (a, x), (b, y), (c, z) in zip(*(list(zip(points, values, strict=True))[i:] for i in range(3)), strict=False):
        assert y[0] <= x[1]
        assert y[0] <= ((c - b) * x[1] + (b - a) * z[1]) / (c - a)
    assert all(high >= max(0, 1 - t) and low <= 1 for t, (low, high) in zip(points, values, strict=True))


def test_hints_out_of_range_are_refused() -> None:
    for event in (
        {"law": "stopped run", "squared_shift": "1/16", "queries": 0, "count": 1},
        {"law": "stopped run", "squared_shift": "0", "queries": 5, "count": 1},
        {"law": "stopped run", "squared_shift": "1/16", "queries": 5, "count": 1, "rate": "1/2"},
        {"law": "largest normal", "squared_shift": "1/16", "candidates": 1, "count": 1},
        {"law": "largest normal", "squared_shift": "1/16", "candidates": 5, "count": 1, "rate": "1/2"},
        {"law": "largest normal", "squared_shift": "1/16", "candidates": 5, "count": 0},
    ):
        with pytest.raises(Rejected):
            upper_delta({"events": [event], "grid": GRID, "epsilon": "1", "delta": "1/2"})


def test_a_curve_is_paid_before_it_is_built() -> None:
    event = {"law": "stopped run", "squared_shift": "1/16", "queries": 10**9, "count": 1}
    with pytest.raises(Rejected, match="larger than this checker's limit"):
        upper_delta({"events": [event] * 4, "grid": GRID, "epsilon": "1", "delta": "1/2"})


def test_one_direction_bounds_both_orders_of_neighbours() -> None:
    """Beside an event with two curves; the pair turned round would lose everything with probability D(1)."""
    sampled = {"law": "gaussian", "squared_ratio": "1", "rate": "1/10", "count": 20}
    run = {"law": "stopped run", "squared_shift": "1/10000", "queries": 3, "count": 1}
    alone, both = (
        upper_delta({"events": events, "grid": GRID, "epsilon": "2", "delta": "1/2"})
        for events in ([sampled], [sampled, run])
    )
    assert alone <= both <= alone + Fraction(1, 10**4)


def convolved(threshold: float, shift: float, queries: int, epsilon: float) -> float:
    """δ of a Gaussian and one stopped run, by sums over both losses; the run's law from its curve's slopes."""
    losses = [i / 200 for i in range(400)]
    curve = [naive_stopped(shift, queries, x) for x in losses]
    q = [1 - curve[0]] + [
        (curve[i] - curve[i + 1]) / (math.exp(losses[i + 1]) - math.exp(losses[i])) for i in range(399)
    ]
    masses = [(losses[i], math.exp(losses[i]) * (q[i] - (q[i + 1] if i + 1 < len(q) else 0.0))) for i in range(len(q))]
    total = 0.0
    for loss, mass in masses:
        left = epsilon - loss
        delta = (
            naive.curve(threshold**2, left)
            if left >= 0
            else 1 - math.exp(left) * (1 - naive.curve(threshold**2, -left))
        )
        total += mass * delta
    return total


def naive_stopped(shift: float, queries: int, epsilon: float) -> float:
    left = 1.0
    for _ in range(queries):
        left *= 1 - naive.curve(shift**2, epsilon - math.log(left))
    return 1 - left


def test_a_sparse_vector_is_the_composition_of_its_threshold_and_its_runs() -> None:
    events = [{"law": "gaussian", "squared_ratio": "1/16", "count": 1},
              {"law": "stopped run", "squared_shift": "1/16", "queries": 100, "count": 1}]  # fmt: skip
    for epsilon in ("1/2", "1", "7/4"):
        found = float(upper_delta({"events": events, "grid": GRID, "epsilon": epsilon, "delta": "1/2"}))
        truth = convolved(0.25, 0.25, 100, float(Fraction(epsilon)))
        assert truth * (1 - 1e-3) - 1e-9 <= found <= truth * 1.06


# ── Rules ──


def holds(release: dict[str, Any], at_most: Any, claim: dict[str, Any], *, more: Any = ()) -> str:
    document = copy.deepcopy(samples.SELECTIONS)
    document["declared"] |= {"releases": [release, *more], "claim": {**claim, "source": "by hand"}}
    grid = {"steps": 200, "digits": 16, "trim": "1/1000000000"}
    step = {"rule": release["mechanism"]["law"], "release": release["name"], "at_most": at_most}
    document["steps"] = [step, {"rule": "C-NUMERIC", "grid": grid}]
    return verdict(document)


def approx(epsilon: str, delta: str) -> dict[str, str]:
    return {"currency": "approx", "epsilon": epsilon, "delta": delta}


VECTOR = samples.release("vector", SCORES, "gaussian-sparse-vector", one_sided=False, threshold_variance=16,
                         query_variance=64, positives=1, queries=6)  # fmt: skip


def test_a_claim_holds_above_the_curve_and_not_below_a_pair() -> None:
    assert holds(VECTOR, "1/64", approx("3/2", "1/95000")) == "accepted"
    assert holds(VECTOR, "1/64", approx("3/2", "1/105000")) == "numeric"
    assert holds(VECTOR, "1/65", approx("3/2", "1/2")) == "gaussian-sparse-vector"
    assert holds(VECTOR, "1/16", approx("3/2", "1/95000")) == "numeric"  # stated, and charged, four times
    one_way = edited(VECTOR, "mechanism", "one_sided", to=True)
    assert holds(one_way, "1/64", approx("3/2", "1/1000000")) == "accepted"
    unit = edited(VECTOR, "statistic", "moves", to=2)
    assert holds(unit, "1/64", approx("3/2", "1/2")) == "gaussian-sparse-vector"
    assert holds(unit, "1/16", approx("3/2", "1/2")) == "accepted"


@pytest.mark.parametrize("seed", range(4))
def test_no_accepted_claim_is_below_what_a_pair_loses(seed: int) -> None:
    """Random claims and random queries: where the pair loses more by the naive law, the claim is rejected."""
    rng = random.Random(seed)
    release = copy.deepcopy(VECTOR)
    release["mechanism"] |= {"threshold_variance": rng.choice([4, 16]), "query_variance": rng.choice([9, 64]),
                             "queries": rng.choice([2, 5, 8])}  # fmt: skip
    variance, queries = release["mechanism"]["query_variance"], release["mechanism"]["queries"]
    epsilon, worst = Fraction(rng.randint(1, 8), 8), 0.0
    for _ in range(30):
        n = rng.randint(1, queries - 1)
        a, b = Fraction(rng.randint(-80, 10), 4), Fraction(rng.randint(-40, 40), 4)
        groups = [[n, str(a), str(a + 1)], [1, str(b), str(b - 1)]]
        laws = [naive.compared("gaussian-sparse-vector", release["mechanism"], {}, groups, side) for side in (0, 1)]
        for p, q in (laws, laws[::-1]):
            worst = max(worst, sum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(p, q, strict=True)))
    claim = approx(str(epsilon), str(Fraction(worst * 0.999).limit_denominator(10**9)))
    assert holds(release, f"1/{variance}", claim) == "numeric"


def test_sizes_are_whole_and_selections_leave_once() -> None:
    claim = approx("3/2", "1/2")
    for name in ("queries", "positives"):
        assert holds(edited(VECTOR, "mechanism", name, to="3/2"), "1/64", claim) != "accepted"
    for name in ("threshold_variance", "query_variance"):
        assert holds(edited(VECTOR, "mechanism", name, to=0), "1/64", claim) != "accepted"
    repeated = edited(VECTOR, "schedule", to={"kind": "repeat", "times": 3, "noise": "fresh"})
    assert holds(repeated, "1/64", claim) == "M-STOPPED"
    table = edited(VECTOR, "statistic", to={"kind": "bounded", "l1": 1, "l2": 1})
    assert holds(table, "1/64", claim) == "gaussian-sparse-vector"
    none = edited(VECTOR, "mechanism", "positives", to=0)
    assert holds(none, "1/64", approx("0", "1/1000000")) == "accepted"  # nothing is released
    best = samples.release("best", SCORES, "gaussian-max", one_sided=False, variance=36, candidates=100)
    assert holds(best, "1/36", approx("1", "21/1000")) == "accepted"
    assert holds(best, "1/37", approx("2", "1/2")) == "gaussian-max"
    assert holds(edited(best, "mechanism", "candidates", to=1), "1/36", approx("0", "1/10")) == "accepted"
    assert holds(best, "1/36", approx("1", "20/1000")) == "numeric"


@pytest.mark.parametrize(("currency", "at_most"), [("gdp", "6/64"), ("zcdp", "6/128")])
def test_all_noisy_numbers_together_are_a_gaussian_value(currency: str, at_most: str) -> None:
    document = copy.deepcopy(samples.SELECTIONS)
    rule, name = {"gdp": ("C-GDP", "mu"), "zcdp": ("C-ZCDP", "rho")}[currency]
    size = "307/1000" if currency == "gdp" else "47/1000"
    document["declared"] |= {
        "releases": [VECTOR],
        "claim": {"currency": currency, name: size, "source": "by hand"},
    }
    step = {"rule": "gaussian-sparse-vector", "release": "vector", "at_most": at_most}
    document["steps"] = [step, {"rule": "T-COMPOSE", "at_most": at_most}, {"rule": rule}]
    assert verdict(document) == "accepted"
    assert verdict(edited(document, "steps", 0, "at_most", to="5/128")) == "gaussian-sparse-vector"
    assert (
        verdict(edited(document, "declared", "releases", 0, "mechanism", "queries", to=7)) == "gaussian-sparse-vector"
    )


def test_no_selection_with_gaussian_noise_is_pure() -> None:
    document = copy.deepcopy(samples.SELECTIONS)
    document["declared"] |= {"releases": [VECTOR], "claim": {"currency": "pure", "epsilon": 99, "source": "by hand"}}
    step = {"rule": "gaussian-sparse-vector", "release": "vector", "at_most": 99}
    document["steps"] = [step, {"rule": "T-COMPOSE", "at_most": 99}, {"rule": "C-PURE"}]
    assert verdict(document) == "gaussian-sparse-vector"


def test_an_adaptive_sparse_vector_costs_its_threshold_and_its_budget() -> None:
    document = samples.ADAPTIVE_FOR_ALL
    assert verdict(document) == "accepted"
    larger = edited(document, "declared", "releases", 0, "mechanism", "budget", to="epsilon")
    assert verdict(larger) == "adaptive-sparse-vector"
    few = copy.deepcopy(document) | {"kind": "holds-at"}
    few.pop("bounds")
    few["conclusion"] = samples.HOLDS
    few["declared"]["releases"][0]["mechanism"] |= {"queries": 1, "budget": 9}
    assert verdict(few) == "accepted"  # all noisy queries cost less than the budget: 1/36 + 1/18
    assert verdict(edited(few, "declared", "releases", 0, "mechanism", "queries", to=13)) == "adaptive-sparse-vector"


LEVELS = samples.SELECTIONS_REFUTED


@pytest.mark.parametrize(
    "groups",
    [
        [[50, 0, "-11/10"], [50, "1/4", "5/4"]],
        [[50, 0, -1], [51, "1/4", "5/4"]],
        [[0, 0, -1], [50, "1/4", "5/4"]],
        [[401, 0, -1]],
        [],
        [[1, 0, 0]] * 9,
        [[50, 0], [50, "1/4"]],
    ],
    ids=str,
)
def test_pairs_out_of_range_are_refused(groups: Any) -> None:
    document = edited(LEVELS, "evidence", "levels", "best", to=groups)
    assert verdict(document) == "L-LEVELS"


def test_levels_go_with_gaussian_noise_and_move_one_way_where_declared() -> None:
    assert verdict(LEVELS) == "accepted"
    one_way = edited(LEVELS, "declared", "releases", 0, "mechanism", "one_sided", to=True)
    assert verdict(one_way) == "L-LEVELS"
    laplace = samples.release("best", SCORES, "noisy-max", noise="laplace", one_sided=False, scale=4)
    assert verdict(edited(LEVELS, "declared", "releases", 0, to=laplace)) == "L-LEVELS"
    assert verdict(edited(LEVELS, "declared", "releases", 0, "mechanism", "variance", to=0)) == "L-LEVELS"
    none = edited(LEVELS, "declared", "releases", 1, "mechanism", "positives", to=0)
    assert verdict(none) == "L-LEVELS"
    moved = edited(LEVELS, "declared", "releases", 0, "statistic", "moves", to="99/100")
    assert verdict(moved) == "L-LEVELS"


def test_a_claim_is_refuted_up_to_the_loss_of_its_pair() -> None:
    mechanism = samples.GAUSSIAN_VECTOR["mechanism"]
    groups = [[49, -14, -13], [1, -2, -3]]
    laws = [naive.compared("gaussian-sparse-vector", mechanism, {}, groups, side) for side in (0, 1)]
    loss = sum(max(0.0, p - math.exp(0.25) * q) for p, q in zip(*laws, strict=True))
    document = copy.deepcopy(LEVELS)
    document["declared"]["releases"] = [samples.GAUSSIAN_VECTOR]
    document["evidence"] = {"using": ["vector"], "levels": {"vector": groups}}
    for factor, said in ((0.999, "accepted"), (1.001, "refuted")):
        delta = str(Fraction(loss * factor).limit_denominator(10**12))
        document["declared"]["claim"] = {**approx("1/4", delta), "source": "by hand"}
        assert verdict(document) == said


def test_integrals_with_too_many_nodes_are_refused() -> None:
    far = edited(LEVELS, "declared", "releases", 1, "mechanism", "threshold_variance", to=10**12)
    assert verdict(far) == "work"


# ── The rule's nodes and roundings ──


@pytest.mark.parametrize("times", [Fraction(1), Fraction(7, 3), Fraction(48), Fraction(49), Fraction(49, 100) * 400**2])
def test_nodes_are_as_fine_and_reach_as_far_as_the_proof_asks(times: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """K/d² ≤ 49/100 for the least d or the next, and nodes from −17 to 17; each is paid."""
    paid: list[int] = []
    monkeypatch.setattr(quadrature, "spend", paid.append)
    nodes = [fractions(u) for u, _ in quadrature._nodes(times, 3)]
    middles = [(low + high) / 2 for low, high in nodes]
    d = round(1 / (middles[1] - middles[0]))
    assert times / d**2 <= Fraction(49, 100)
    assert d == 1 or times / (d - 1) ** 2 > Fraction(49, 100) or times / (d - 2) ** 2 > Fraction(49, 100)
    assert (round(middles[0]), round(middles[-1])) == (-17, 17)
    assert paid == [3 * len(nodes)]


def test_shares_are_widened_by_the_rule_s_error() -> None:
    slack, units = Fraction(1, 2**54), Fraction(4, ONE)
    half, whole, tiny = quadrature._shares([(ONE // 2, ONE // 2), (ONE, ONE), (1, 1)], (ONE, ONE))
    assert half == (Fraction(1, 2) - slack, Fraction(1, 2) + slack + units)
    assert whole == (1 - slack, 1)
    assert tiny == (0, Fraction(1, ONE) + slack + units)


def corners(interval: tuple[int, int]) -> list[float]:
    return [float(end) for end in fractions(interval)]


def wide(rng: random.Random, low: float, high: float) -> tuple[int, int]:
    """An interval with a width that no rounding has."""
    middle, apart = rng.uniform(low, high), rng.uniform(0.05, 0.2) * (high - low)
    return enclose(Fraction(middle - apart))[0], enclose(Fraction(middle + apart))[1]


@pytest.mark.parametrize("seed", range(6))
def test_wide_intervals_hold_the_shares_of_all_their_numbers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes, two groups, every number at either end of its interval: each choice, by floats."""
    allow()
    rng, asked = random.Random(seed), list[tuple[Fraction, int]]()
    nodes = [(wide(rng, -1.2, -0.2), wide(rng, 0.4, 1)) for _ in range(2)]

    def few(times: Fraction, work: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        asked.append((times, work))
        return nodes

    monkeypatch.setattr(quadrature, "_nodes", few)
    ratio, levels = wide(rng, 0.5, 2), [wide(rng, -1, 1) for _ in range(2)]
    counts = (1, 2)
    firsts = first_above(ratio, list(zip((2, 7), levels, strict=True)))
    best = winners(list(zip(counts, levels, strict=True)))
    factors = 1 + 9 * fractions(ratio)[1] ** 2
    assert factors <= asked[0][0] <= factors * (1 + Fraction(1, 2**100))
    assert [times for times, _ in asked[1:]] == [3, 3]
    assert (len(firsts), len(best), [work for _, work in asked]) == (10, 2, [20 + 9 // 4, 40, 40])

    def share(terms: Callable[[float], float], drawn: tuple[tuple[float, float], ...]) -> float:
        return sum(w * terms(u) for u, w in drawn) / sum(w for _, w in drawn)

    for r, u, w, v, x, *levels_ in itertools.product(*map(corners, (ratio, *nodes[0], *nodes[1], *levels))):
        each, drawn_ = [levels_[0]] * 2 + [levels_[1]] * 7, ((u, w), (v, x))
        for i, (low, high) in enumerate(firsts):

            def first(z: float, i: int = i, r: float = r, each: list[float] = each) -> float:
                before = math.prod(naive.phi(r * z - level) for level in (each[: i - 1] if i else each))
                return before * (above(r * z - each[i - 1]) if i else 1)

            assert low - 1e-12 <= share(first, drawn_) <= high + 1e-12
        for g, (low, high) in enumerate(best):

            def won(z: float, g: int = g, at: list[float] = levels_) -> float:
                own, others = counts[g], counts[1 - g]
                return own * naive.phi(z) ** (own - 1) * naive.phi(z + at[g] - at[1 - g]) ** others

            assert low - 1e-12 <= share(won, drawn_) <= high + 1e-12


def test_weights_known_to_be_between_two_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share is at least what the least weights give of the sum of the largest."""
    allow()
    weights = [(Fraction(4, 10), Fraction(5, 10)), (Fraction(7, 10), Fraction(8, 10))]
    drawn_ = [(Fraction(-1), weights[0]), (Fraction(1, 2), weights[1])]
    nodes = [(enclose(u), (enclose(w[0])[0], enclose(w[1])[1])) for u, w in drawn_]
    monkeypatch.setattr(quadrature, "_nodes", lambda *_: nodes)
    level = Fraction(3, 4)
    found = [*first_above(enclose(Fraction(1)), [(1, enclose(level))]), winners([(1, enclose(level)), (2, (0, 0))])[0]]
    laws = [lambda u: naive.phi(u - 0.75), lambda u: above(u - 0.75), lambda u: naive.phi(u + 0.75) ** 2]
    for (low, high), law in zip(found, laws, strict=True):
        least, most = (float(sum(w[i] * Fraction(law(float(u))) for u, w in drawn_)) for i in (0, 1))
        assert float(low) == pytest.approx(least / 1.3, abs=1e-12)
        assert float(high) == pytest.approx(most / 1.1, abs=1e-12)
