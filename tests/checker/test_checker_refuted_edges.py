"""Refutations at their edges: what is shared, sampled, shuffled, selected or stated, and which end counts."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import certificate_samples as samples
from privcheck_check import laws
from privcheck_check.curves import gaussian_delta
from privcheck_check.declared import read_declared
from privcheck_check.refuted import Loss, _exceeds
from privcheck_check.terms import allow, evaluate, logarithm
from test_checker_laws import verdict
from test_checker_refutations import ABOVE, BELOW, document, exceeds, pattern, response

F = Fraction
WIDE = ["-", ["sqrt", 2], ["sqrt", 2]]  # 0, with ends on either side
PURE_0 = {"currency": "pure", "epsilon": 0}
BIT = {"kind": "bits", "bits": 1, "ones": 1}


def pure(epsilon: Any) -> dict[str, Any]:
    return {"currency": "pure", "epsilon": str(F(epsilon))}


def curve(epsilon: Any, delta: Any) -> dict[str, Any]:
    return {"currency": "approx", "epsilon": str(F(epsilon)), "delta": str(F(delta))}


def vectors(*first: Any, second: Any = None, name: str = "r") -> dict[str, Any]:
    sides = [[{"vectors": {name: list(first)}}], [] if second is None else [{"vectors": {name: second}}]]
    return {"pair": sides}


def middle(term: Any) -> Fraction:
    """A number inside the enclosure of an irrational term."""
    low, high = evaluate(term, {})
    assert low < high
    return (low + high) / 2


ROOT = ("sqrt", F(2))


# ── Vectors ──


def test_norms_are_met_below_their_enclosure() -> None:
    for sizes, inside, between in (
        ({"l1": ["sqrt", 2], "l2": 9}, evaluate(ROOT, {})[0], middle(ROOT)),
        ({"l1": 9, "l2": ["sqrt", 2]}, evaluate(ROOT, {})[0], middle(ROOT)),
    ):
        part = samples.release("r", {"kind": "bounded"} | sizes, "laplace", scale="1")
        assert verdict([part], pure(1), vectors(str(inside))) == "accepted"
        assert verdict([part], pure(1), vectors(str(between))) == "R-RANGE"


@pytest.mark.parametrize(
    ("l2", "vector", "rule"),
    [(0, [0], "accepted"), ("1/2", ["1/2"], "accepted"), ("-1/2", ["1/2"], "R-RANGE"), ("-1/2", [0], "R-RANGE"),
     (WIDE, [0], "accepted")],
)  # fmt: skip
def test_a_norm_is_not_negative(l2: Any, vector: list[Any], rule: str) -> None:
    bounded = samples.release("r", {"kind": "bounded", "l1": 1, "l2": l2}, "laplace", scale="1")
    other = samples.release("s", BIT, "laplace", scale="1")
    pair = {"pair": [[{"vectors": {"r": vector, "s": [1]}}], []]}
    assert verdict([bounded, other], pure("1/2"), pair) == rule


def test_a_stated_change_is_told_once_on_the_first_side() -> None:
    part = samples.release("r", {"kind": "stated", "l1": 1, "l2": 1}, "laplace", scale="1")
    for second in ([], [-1]):
        found = [
            verdict([part], pure(epsilon), vectors(1, second=second), relation="replace-one")
            for epsilon in ("9/10", "11/10")
        ]
        assert found == ["accepted", "refuted"]
    twice = {"pair": [[{"vectors": {"r": [1]}}, {"vectors": {"r": [1]}}], []]}
    assert verdict([part], pure(1), twice, unit={"who": "u", "trajectories": 2}) == "R-RANGE"
    bounded = part | {"statistic": {"kind": "bounded", "l1": 1, "l2": 1}}
    assert verdict([bounded], pure(1), twice, unit={"who": "u", "trajectories": 2}) == "accepted"


def test_an_entry_of_a_table_is_its_weight() -> None:
    """Of the cost at a reward of ¼ the entry is ¾, of the reward ¼, of the centred reward −¼."""
    user = {"states": [0, 0], "actions": [0], "rewards": ["1/4"]}
    for weight, entry in (("cost", 0.75), ("reward", 0.25), ("centred-reward", 0.25), ("one", 1.0)):
        statistic = samples.table(["state"], weight, steps=1) | {"states": 1, "actions": 1}
        part = samples.release("r", statistic, "laplace", scale="1")
        found = [verdict([part], pure(str(entry + by)), {"pair": [[user], []]}) for by in (-0.01, 0.01)]
        assert found == ["accepted", "refuted"]


def test_a_target_without_a_sign_is_at_least_0() -> None:
    part = samples.release("r", samples.linear("sum", steps="1"), "laplace", scale="1")
    for target, rule in (("1/2", "accepted"), (1, "accepted"), ("-1/100", "R-RANGE"), ("101/100", "R-RANGE")):
        user = {"features": {"phi": [[1]]}, "targets": {"r": [target]}}
        assert verdict([part], pure("1/3"), {"pair": [[user], []]}) == rule


# ── One draw of noise ──


@pytest.mark.parametrize(
    ("schedule", "relation", "rule"),
    [({"kind": "local"}, "replace-one", "accepted"), ({"kind": "disjoint"}, "add-remove", "accepted"),
     ({"kind": "tree", "leaves": 1}, "add-remove", "refuted"),
     ({"kind": "tree", "leaves": 2}, "add-remove", "accepted"),
     ({"kind": "tree", "leaves": 3}, "add-remove", "accepted")],
)  # fmt: skip
def test_one_noise_for_all_outputs_cancels_where_there_are_others(
    schedule: dict[str, Any], relation: str, rule: str
) -> None:
    part = samples.release("r", BIT, "laplace", schedule, scale="1") | {"shared": "outputs"}
    local = schedule["kind"] == "local"
    pair = vectors(1, second=[0] if relation == "replace-one" else None)
    assert verdict([part], pure(99), pair, relation=relation, model="local" if local else "central") == rule


def test_all_of_a_discrete_sum_is_integers() -> None:
    for law, spread in (("discrete-laplace", {"scale": "1"}), ("discrete-gaussian", {"variance": "1"})):
        part = samples.release("r", {"kind": "bounded", "l1": 9, "l2": 9}, law, **spread)
        assert verdict([part], pure("1/2"), vectors(1, "1/2")) == law
        assert verdict([part], pure("1/2"), vectors(1, 2)) == "accepted"


# ── Random samples ──


def sampled(law: str, name: str = "r", rate: Any = "1/2", times: Any = 1, **terms: Any) -> dict[str, Any]:
    return samples.release(name, BIT, law, {"kind": "sampled", "times": times, "rate": rate}, **terms)


def test_sampled_noise_has_the_law_of_its_name() -> None:
    """At rate 1 and ε = ½, one scale apart: Laplace 1 − e^(−¼) = .221, of the discrete event ½(1 − e^(−½)) = .197."""
    for law, least, most in (("laplace", ".21", ".2213"), ("discrete-laplace", ".196", ".1968")):
        found = [verdict([sampled(law, rate=1, scale="1")], curve("1/2", delta), vectors(1)) for delta in (least, most)]
        assert found == ["accepted", "refuted"]


def test_a_sample_loses_in_the_direction_of_the_pair() -> None:
    """One scale at rate ½: log(½ + e/2) = .6201 where D has the unit, −log(½ + e⁻¹/2) = .3799 where D′ has it."""
    part = sampled("laplace", scale="1")
    for pair, loss in ((vectors(1), 0.620115), (dict(vectors(1), pair=vectors(1)["pair"][::-1]), 0.379885)):
        found = [verdict([part], pure(str(loss * factor)), pair) for factor in (0.99999, 1.00001)]
        assert found == ["accepted", "refuted"]


def test_samples_are_one_by_name_and_else_of_each_release() -> None:
    """Two values of one scale at rate ½: of one sample log(½ + e²/2) = 1.4338, of two 2·log(½ + e/2) = 1.2402."""
    pair = {"pair": [[{"vectors": {"r": [1], "s": [1]}}], []]}
    both = [sampled("laplace", name, scale="1") for name in "rs"]
    for releases, loss in ((both, 1.2402), ([each | {"sample": "b"} for each in both], 1.4338)):
        found = [verdict(releases, pure(str(loss + by)), pair) for by in (-0.01, 0.01)]
        assert found == ["accepted", "refuted"]
    other = [both[0] | {"sample": "b"}, sampled("laplace", "s", rate="1/3", scale="1") | {"sample": "b"}]
    assert verdict(other, pure("1/10"), pair) == "T-TOUCH"


def test_what_goes_with_no_random_sample() -> None:
    assert verdict([sampled("discrete-gaussian", variance="1")], pure(1), vectors(1)) == "T-TOUCH"
    answer = sampled("randomised-response", keep="3/4", answers="2")
    assert verdict([answer], PURE_0, vectors(1)) == "randomised-response"
    rates = {"rate": ["max", "1/2", ["+", "1/2", WIDE]]}, {"rate": "-1/2"}, {"rate": "3/2"}
    for rate, rule in zip(rates, ("T-TOUCH", "T-SAMPLED", "T-SAMPLED"), strict=True):
        assert verdict([sampled("laplace", scale="1", **rate)], PURE_0, vectors(1)) == rule


@pytest.mark.parametrize(
    ("rate", "times", "rule"), [("1/2", 1, "accepted"), (1, 2, "accepted"), (0, 1, "refuted"), ("1/2", 0, "refuted")]
)
def test_a_sampled_gaussian_value_loses_without_bound(rate: Any, times: int, rule: str) -> None:
    """Of μ² = ¼."""
    part = sampled("gaussian", rate=rate, times=times, variance="4")
    assert verdict([part], pure(100), vectors(1)) == rule
    assert verdict([sampled("laplace", rate=rate, times=times, scale="1/4")], pure(100), vectors(1)) == "refuted"


def test_a_sampled_gaussian_value_has_a_curve() -> None:
    """μ = 2, r = ½, ε = ½: r·D((e^ε − 1 + r)/r), D of the Gaussian curve."""
    t, mu = (math.exp(0.5) - 0.5) / 0.5, 2.0

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    exact = 0.5 * (phi(mu / 2 - math.log(t) / mu) - t * phi(-mu / 2 - math.log(t) / mu))
    found = [
        verdict([sampled("gaussian", variance="1/4")], curve("1/2", exact * by), vectors(1)) for by in (0.98, 1.001)
    ]
    assert found == ["accepted", "refuted"]
    # the other direction: P = N(0, 1), Q the mixture; never more than r
    part = sampled("gaussian", variance="1/100")
    assert verdict([part], {"currency": "zcdp", "rho": 1}, vectors(1) | {"order": 10}) == "accepted"
    turned = {"pair": vectors(1)["pair"][::-1], "order": 10}
    assert verdict([part], {"currency": "zcdp", "rho": 1}, turned) == "refuted"  # at most log 2 at any order


def test_the_divergence_of_other_sampled_noise_counts() -> None:
    """Laplace noise of one scale at r = ½: more than 1/20 of order 2, by the two tails alone."""
    both = [sampled("laplace", scale="1"), sampled("gaussian", "s", variance="1") | {"sample": "b"}]
    assert verdict(both[:1], {"currency": "zcdp", "rho": "1/20"}, vectors(1) | {"order": 2}) == "accepted"
    assert verdict(both[:1], {"currency": "zcdp", "rho": 1}, vectors(1) | {"order": 2}) == "refuted"


def test_a_sampled_divergence_is_its_formula() -> None:
    """3·(αμ²/2 + log(r)·α/(α − 1)) at α = 3, by the lower ends."""
    order, rate = F(3), F(1, 2)
    allow()
    least = 3 * (order * 4 / 2 + order / (order - 1) * logarithm((rate, rate))[0])
    assert float(least) == pytest.approx(18 - 4.5 * math.log(2))
    loss = Loss(sampled=[((F(4), F(9)), rate, 3)])
    assert not exceeds(loss, order, currency="zcdp", rho=least / order)
    assert exceeds(loss, order, currency="zcdp", rho=least / order - F(1, 10**80))
    assert not exceeds(Loss(sampled=[((F(4), F(4)), F(0), 3)]), order, currency="zcdp", rho=0)
    assert not exceeds(Loss(sampled=[((F(4), F(4)), F(1, 10**9), 3)]), order, currency="zcdp", rho=0)


# ── Counters ──


def counters(*change: Any, chance: Any = "1/3", users: int = 0, **more: Any) -> str:
    statistic = {"kind": "bounded", "l1": 9, "l2": 9} if "1/2" in change else {"kind": "bits", "bits": 2, "ones": 2}
    schedule = more.pop("schedule", {"kind": "once"})
    terms = {"noise_bits": 3} | ({"users": users} if users else {})
    part = samples.release("r", statistic, "shuffled-integers" if users else "shuffled-bits", schedule, **terms)
    part["mechanism"]["chance"] = chance
    claim = more.pop("claim", pure(99))
    side = [{"vectors": {"r": list(each)}} for each in more.pop("also", [])]
    pair = {"pair": [[{"vectors": {"r": list(change)}}, *side], []][:: more.pop("way", 1)]}
    return verdict([part], claim, pair, relation="zero-out", model="shuffle", **more)


def test_counters_change_by_one_once_with_a_probability() -> None:
    two = {"unit": {"who": "u", "trajectories": 2}}
    assert counters(1, 0) == "accepted"
    assert counters(1, 0, also=[[1, 0]], **two) == "L-SHUFFLED"
    assert counters("1/2", 0) == "L-SHUFFLED"
    assert counters(1, 0, schedule={"kind": "disjoint"}) == "accepted"
    for schedule in ({"kind": "repeat", "times": 2, "noise": "fresh"}, {"kind": "tree", "leaves": 1}):
        assert counters(1, 0, schedule=schedule) == "L-SHUFFLED"
    for chance, rule in ((0, "accepted"), (1, "accepted"), ("-1/2", "L-SHUFFLED"), ("3/2", "L-SHUFFLED"),
                         (["max", "1/2", ["+", "1/2", WIDE]], "L-SHUFFLED")):  # fmt: skip
        assert counters(1, 0, chance=chance) == rule


@pytest.mark.parametrize("users", [0, 2])
@pytest.mark.parametrize("way", [1, -1])
def test_a_counter_loses_as_much_as_its_coins_say(users: int, way: int) -> None:
    """Of (0, δ): the total variation of X + 1 and X; at ε = 1 the two directions differ."""
    p, noise = F(1, 3), max(1, users) * 3

    def masses(value: int) -> Fraction:
        return math.comb(noise, value) * p**value * (1 - p) ** (noise - value) if 0 <= value <= noise else F(0)

    if users:  # of two users the sum tells less than the multiset
        coin = [math.comb(3, k) * p**k * (1 - p) ** (3 - k) for k in range(4)]
        law: dict[tuple[int, ...], list[Fraction]] = {}
        for a in range(4):
            for b in range(4):
                for side, more in enumerate((1, 0)):
                    key = tuple(sorted((a + more, b)))
                    law.setdefault(key, [F(0), F(0)])[side] += coin[a] * coin[b]
        pairs = list(law.values())
    else:
        pairs = [[masses(k - 1), masses(k)] for k in range(noise + 2)]
    exact = sum(max(0.0, float(pair[way < 0]) - math.e * float(pair[way > 0])) for pair in pairs)
    found = [counters(1, 0, way=way, users=users, claim=curve(1, str(exact * by))) for by in (0.9999, 1.0001)]
    assert found == ["accepted", "refuted"]


# ── Randomised response ──


@pytest.mark.parametrize(
    ("keep", "answers"), [(["+", 1, WIDE], 2), (["+", "1/2", WIDE], 2), (0, 2), ("-1/2", 2), (1, 1), ("1/2", 1), (1, 0)]
)
def test_the_truth_has_the_larger_odds_for_certain(keep: Any, answers: int) -> None:
    part = samples.release("r", BIT, "randomised-response", answers=answers)
    part["mechanism"]["keep"] = keep
    assert verdict([part], PURE_0, vectors(1, second=[0]), relation="replace-one") == "randomised-response"
    assert response([1], PURE_0) == "accepted"


# ── Selections, crossings, laws ──


SCORES = {"kind": "selection", "moves": 1}


def choice(
    behind: Any, claim: Any = PURE_0, *, moves: Any = 1, scale: Any = 1, one_sided: bool = False, **more: Any
) -> str:
    schedule = more.pop("schedule", {"kind": "once"})
    part = samples.release("r", SCORES | {"moves": moves}, "noisy-max", schedule, noise="laplace", one_sided=one_sided)
    part["mechanism"]["scale"] = scale
    return verdict([part], claim, {"behind": {"r": behind}}, **more)


def test_scores_move_by_all_trajectories_of_a_value() -> None:
    two = {"unit": {"who": "u", "trajectories": 2}}
    assert choice([0, 4], **two) == "accepted"
    assert choice([0, "401/100"], **two) == "L-MAX"
    assert choice([0, 2], schedule={"kind": "disjoint"}, **two) == "accepted"
    assert choice([0, 4], schedule={"kind": "disjoint"}, **two) == "L-MAX"
    assert choice([0, 4], moves=2) == "accepted"
    assert choice([0, "401/100"], moves=2) == "L-MAX"
    assert choice([0, 2], moves=2, one_sided=True) == "accepted"
    assert choice([0, 3], moves=2, one_sided=True) == "L-MAX"
    assert choice([0, str(middle(ROOT))], moves=["sqrt", 2], one_sided=True) == "L-MAX"
    assert choice([0, str(evaluate(ROOT, {})[0])], moves=["sqrt", 2], one_sided=True) == "accepted"


@pytest.mark.parametrize("behind", [[], [1], [1, 2, 3]])
def test_two_numbers_say_how_far_behind(behind: list[int]) -> None:
    assert choice(behind) == "L-MAX"


@pytest.mark.parametrize("scale", [0, "-1/2", WIDE, -2])
def test_the_scale_of_a_selection_is_positive(scale: Any) -> None:
    assert choice([0, 1], scale=scale) == "L-MAX"
    assert choice([0, 1], scale="1/2") == "accepted"


def crossing(groups: Any, *, one_sided: bool = False, claim: Any = PURE_0, **terms: Any) -> str:
    given = {"threshold_scale": 1, "query_scale": 1, "positives": 9, "queries": 99} | terms
    part = samples.release("r", SCORES, "sparse-vector", one_sided=one_sided, **given)
    return verdict([part], claim, {"crossing": {"r": groups}})


def test_a_selection_is_no_crossing_and_a_crossing_no_selection() -> None:
    vector = samples.release("r", SCORES, "sparse-vector", threshold_scale=1, query_scale=1, positives=1, queries=2,
                             one_sided=False)  # fmt: skip
    assert verdict([vector], PURE_0, {"behind": {"r": [0, 1]}}) == "L-MAX"
    chosen = samples.release("r", SCORES, "noisy-max", noise="laplace", one_sided=False, scale=1)
    assert verdict([chosen], PURE_0, {"crossing": {"r": [[1, 0, 1], [1, 0, -1]]}}) == "L-SPARSE"


@pytest.mark.parametrize(
    "groups",
    [[], [[1, 0, 1]], [[1, 0, 1], [1, 0, 1], [1, 0, 1]], [[1, 0], [1, 0, 1]], [[1, 0, 1], [1, 0, 1, 1]],
     [[-1, 0, 1], [1, 0, 1]], [[61, 0, 1], [1, 0, 1]], [[1, 0, 1], ["1", 0, 1]]],
)  # fmt: skip
def test_two_groups_of_three_numbers_say_what_is_crossed(groups: Any) -> None:
    assert crossing(groups) == "L-SPARSE"
    assert crossing(groups, threshold_scale=2) == "L-SPARSE"


def test_a_group_has_up_to_sixty_queries() -> None:
    assert crossing([[60, 0, 1], [1, 0, -1]]) == "accepted"
    assert crossing([[0, 0, 1], [1, 0, -1]]) == "accepted"


@pytest.mark.parametrize(
    ("moves", "rule"),
    [((1, 1), "accepted"), ((-1, -1), "accepted"), ((0, 1), "accepted"), ((0, -1), "accepted"), ((1, 0), "accepted"),
     ((-1, 0), "accepted"), ((1, -1), "L-SPARSE"), ((-1, 1), "L-SPARSE"), (("1/2", "-1/2"), "L-SPARSE"),
     ((2, 2), "L-SPARSE")],
)  # fmt: skip
def test_queries_of_a_one_sided_vector_move_one_way(moves: tuple[Any, Any], rule: str) -> None:
    groups = [[2, str(F(moves[0])), 0], [1, str(F(moves[1])), 0]]
    assert crossing(groups, one_sided=True) == rule
    assert crossing(groups) == ("L-SPARSE" if moves == (2, 2) else "accepted")


@pytest.mark.parametrize("wrong", [0, "0 - 1/2", "0 - 3"])
@pytest.mark.parametrize("name", ["threshold_scale", "query_scale"])
def test_scales_of_a_sparse_vector_are_positive_fractions(name: str, wrong: Any) -> None:
    assert crossing([[1, 0, 1], [1, 0, -1]], **{name: wrong}) == "L-SPARSE"
    part = samples.release("r", SCORES, "sparse-vector", one_sided=False, threshold_scale=1, query_scale=1,
                           positives=9, queries=99)  # fmt: skip
    part["mechanism"][name] = ["max", 1, ["+", 1, WIDE]]
    assert verdict([part], PURE_0, {"crossing": {"r": [[1, 0, 1], [1, 0, -1]]}}) == "L-SPARSE"


@pytest.mark.parametrize("law", [[["1/2", "1/2"]], [["1/2", "1/2"], ["1/4", "3/4"], ["0", "1"]], []])
def test_a_stated_law_has_two_sides(law: Any) -> None:
    own = samples.release("r", {"kind": "stated", "l1": 0, "l2": 0}, "theorem", cost=1, currency="pure", theorem="x")
    assert verdict([own], PURE_0, {"laws": {"r": law}}) == "L-STATED"


# ── Finite laws ──

CERTAIN: laws.Law = [(laws.UNIT, laws.UNIT, 0, 0)]


def test_the_supremum_of_a_law_counts_by_its_lower_end() -> None:
    law = laws.exactly([F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)])
    ratio = laws.largest(law)
    assert ratio
    low, high = logarithm((ratio, ratio))
    assert low < high
    for epsilon, found in ((2 * low, False), (low + high, False), (2 * low - F(1, 10**80), True)):
        assert exceeds(Loss(finite=[(law, 2)]), currency="pure", epsilon=epsilon) == found


def test_an_outcome_of_one_neighbour_counts_where_it_occurs() -> None:
    for claim in ({"currency": "pure", "epsilon": 99}, {"currency": "zcdp", "rho": 99}):
        assert exceeds(Loss(finite=[(CERTAIN, 1)]), **claim)
        assert not exceeds(Loss(finite=[(CERTAIN, 0)]), **claim)


def test_divergences_of_laws_add_up() -> None:
    """Of order 2 of (¾, ¼): log(7/3), twice; a law of no output has none."""
    law = laws.exactly([F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)])
    for factor, found in ((0.9999, True), (1.0001, False)):
        rho = F(math.log(7 / 3) * factor).limit_denominator(10**12)
        assert exceeds(Loss(finite=[(law, 2), (CERTAIN, 0)]), F(2), currency="zcdp", rho=rho) == found


def test_a_law_and_gaussian_noise_are_composed_for_a_curve() -> None:
    """δ of a fair bit kept with ¾ beside μ = 1 at ε = 1: by the two values of the bit, from Gaussian curves."""

    def phi(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    def gaussian(t: float) -> float:
        return phi(0.5 - math.log(t)) - t * phi(-0.5 - math.log(t))

    law = laws.exactly([F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)])
    exact = 0.75 * gaussian(math.e / 3) + 0.25 * gaussian(3 * math.e)
    loss = Loss(finite=[(law, 1)], square=(F(1), F(4)))
    for factor, found in ((0.99, True), (1.001, False)):
        delta = F(exact * factor).limit_denominator(10**12)
        assert exceeds(loss, currency="approx", epsilon=1, delta=delta) == found


def test_a_gaussian_claim_is_compared_by_its_square() -> None:
    for square, found in ((F(26, 100), True), (F(1, 4), False), (F(24, 100), False)):
        assert exceeds(Loss(square=(square, square)), currency="gdp", mu="1/2") is found
    assert not exceeds(Loss(square=(F(7, 2),) * 2), currency="gdp", mu=2)
    assert exceeds(Loss(square=(F(9, 2),) * 2), currency="gdp", mu=2)


def gdp(mu: Any, law: laws.Law, at: Any) -> bool:
    part = samples.release("r", BIT, "laplace", scale="1")
    declared = read_declared(document([part], {"currency": "gdp", "mu": mu}, [])["declared"])
    return _exceeds(Loss(finite=[(law, 1)]), declared, None, F(at))


def test_other_noise_is_compared_with_the_gaussian_curve_at_one_epsilon() -> None:
    """A law that is (1, δ)-DP with δ inside the enclosure of the Gaussian curve of μ = 1 is not shown to be worse."""
    low, high = gaussian_delta((F(1), F(1)), (F(1), F(1)))
    assert low < high
    for delta, found in (((low + high) / 2, False), (high, False), (high + F(1, 10**60), True)):
        law = laws.exactly([delta, 1 - delta], [F(0), F(1)])
        assert gdp(1, law, 1) == found


@pytest.mark.parametrize(("at", "rule"), [("1/2", "accepted"), (0, "evidence"), ("-1/2", "evidence"), (2, "refuted")])
def test_the_epsilon_of_a_comparison_is_positive(at: Any, rule: str) -> None:
    """Laplace noise of one scale, δ(½) = .2212, δ(2) = 0; the Gaussian curve of μ = ½ has .0787 at ½."""
    part = samples.release("r", BIT, "laplace", scale="1")
    assert verdict([part], {"currency": "gdp", "mu": "1/2"}, vectors(1) | {"epsilon": at}) == rule


# ── Answers of a sparse vector ──


def test_a_pattern_has_up_to_four_hundred_answers() -> None:
    for number, rule in ((400, "accepted"), (401, "L-PATTERN")):
        above, first, second = [BELOW] * number, [0] * number, [1] + [0] * (number - 1)
        above[-1], first[-1] = ABOVE, 1
        assert pattern(above, first, second, queries="500") == rule
