"""Costs and conclusions that hold: each mechanism, schedule and conclusion at the number where it begins to hold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import certificate_samples as samples
from certificate_verdicts import verdict

F = Fraction
FINE = 10**65  # finer than the width of an enclosure
BITS = {"kind": "bits", "bits": 3, "ones": 2}
SCORES = {"kind": "selection", "moves": 2}
CODES = (
    "sequential",
    *(
        f"{code}: {name}"
        for name in "rst"
        for code in ("public-schedule", "stated-sensitivity", "theorem", "secret-sample")
    ),
)
ENDS = {"pure": "C-PURE", "zcdp": "C-ZCDP", "gdp": "C-GDP"}
GRID = {"steps": 100, "digits": 25, "trim": "1/1000000000000000"}


def document(releases: list[dict[str, Any]], claim: dict[str, Any], steps: list[Any], **changed: Any) -> dict[str, Any]:
    return {
        "format": "privcheck-certificate/1",
        "kind": "holds-at",
        "assumed": samples.assumed(*CODES),
        "steps": steps,
        "declared": {
            "name": "x",
            "source": "",
            "relation": "add-remove",
            "unit": {"who": "user", "trajectories": 1},
            "model": "central",
            "parameters": {},
            "releases": releases,
            "claim": {"source": ""} | claim,
        }
        | changed,
        "conclusion": samples.HOLDS,
    }


def made(
    law: str, statistic: dict[str, Any], terms: dict[str, Any], schedule: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "name": "r",
        "statistic": statistic,
        "mechanism": {"law": law} | terms,
        "schedule": schedule or {"kind": "once"},
    }


def cost(part: dict[str, Any], currency: str, amount: Any, **changed: Any) -> str:
    """The verdict on a claim of exactly this cost."""
    field = {"pure": "epsilon", "zcdp": "rho", "gdp": "mu"}[currency]
    stated = amount if isinstance(amount, list) else str(amount)
    claim = {"currency": currency, field: ["sqrt", stated] if currency == "gdp" else stated}
    if currency == "gdp":
        claim["mu"] = ["^", stated, "1/2"]
    law = part["mechanism"]["law"]
    steps = [
        {"rule": law, "release": "r", "at_most": stated},
        {"rule": "T-COMPOSE", "at_most": stated},
        {"rule": ENDS[currency]},
    ]
    return verdict(document([part], claim, steps, **changed))


VECTOR = {"threshold_scale": 3, "query_scale": 5, "positives": 4, "queries": 99}
COSTS: list[tuple[str, dict[str, Any], dict[str, Any], str, Fraction]] = [
    # law, statistic, its terms, the currency, the cost under add-remove
    ("laplace", BITS, {"scale": 3}, "pure", F(2, 3)),
    ("discrete-laplace", BITS, {"scale": 3}, "pure", F(2, 3)),
    (
        "discrete-laplace",
        samples.table(["state"]) | {"steps": 2, "states": 2, "actions": 1},
        {"scale": 3},
        "pure",
        F(2, 3),
    ),
    ("gaussian", BITS, {"variance": 3}, "zcdp", F(1, 3)),
    ("gaussian", BITS, {"variance": 3}, "gdp", F(2, 3)),
    ("discrete-gaussian", BITS, {"variance": 3}, "zcdp", F(1, 3)),
    ("gaussian", {"kind": "bounded", "l1": 5, "l2": 3}, {"variance": 3}, "gdp", F(3)),
    ("laplace", {"kind": "bounded", "l1": 5, "l2": 3}, {"scale": 2}, "pure", F(5, 2)),
    ("laplace", {"kind": "stated", "l1": 5, "l2": 3}, {"scale": 2}, "pure", F(5, 2)),
    ("gaussian", {"kind": "stated", "l1": 5, "l2": 3}, {"variance": 2}, "gdp", F(9, 2)),
    (
        "gaussian-matrix",
        samples.linear("outer", steps="1", feature="2", weight="3"),
        {"variance": 9, "diagonal": 2},
        "gdp",
        F(8),
    ),
    (
        "gaussian-matrix",
        samples.linear("outer", steps="1", feature="2", weight="3"),
        {"variance": 9, "diagonal": 3},
        "gdp",
        F(8),
    ),
    (
        "gaussian-matrix",
        samples.linear("outer", steps="1", feature="2", weight="3"),
        {"variance": 9, "diagonal": 1},
        "gdp",
        F(16),
    ),
    (
        "gaussian-matrix",
        samples.linear("outer", steps="1", feature="2", weight="3"),
        {"variance": 9, "diagonal": 2},
        "zcdp",
        F(4),
    ),
    *(
        ("noisy-max", SCORES, {"scale": 3, "noise": noise, "one_sided": one_sided}, "pure", F(2 if one_sided else 4, 3))
        for noise in ("exponential", "gumbel", "laplace")
        for one_sided in (False, True)
    ),
    ("noisy-max", SCORES, {"scale": 3, "noise": "gumbel", "one_sided": False}, "zcdp", F(2, 9)),  # ε²/8
    ("sparse-vector", SCORES, VECTOR | {"one_sided": False}, "pure", F(2, 3) + F(16, 5)),
    ("sparse-vector", SCORES, VECTOR | {"one_sided": True}, "pure", F(2, 3) + F(8, 5)),
    ("theorem", BITS, {"cost": "5/3", "currency": "pure", "theorem": "x"}, "pure", F(5, 3)),
    ("theorem", SCORES, {"cost": "5/3", "currency": "zcdp", "theorem": "x"}, "zcdp", F(5, 3)),
    ("theorem", SCORES, {"cost": "5/3", "currency": "gdp", "theorem": "x"}, "gdp", F(25, 9)),
    ("theorem", SCORES, {"cost": "5/3", "currency": "gdp", "theorem": "x"}, "zcdp", F(25, 18)),
]


@pytest.mark.parametrize(("law", "statistic", "terms", "currency", "amount"), COSTS)
def test_costs_are_those_of_the_table(
    law: str, statistic: dict[str, Any], terms: dict[str, Any], currency: str, amount: Fraction
) -> None:
    part = made(law, statistic, terms)
    assert cost(part, currency, amount) == "accepted"
    assert cost(part, currency, amount - F(1, 10**30)) == law
    for name, term in terms.items():  # nothing that may be negative
        if name not in ("theorem", "one_sided", "diagonal", "noise", "currency"):
            assert cost(made(law, statistic, terms | {name: -1}), currency, 10**6) == law
            assert term != 0
    for name in ("scale", "variance", "query_scale", "threshold_scale"):
        if name in terms:
            assert cost(made(law, statistic, terms | {name: 0}), currency, 10**6) in (law, "evaluate")
    for name in set(statistic) & {"ones", "bits", "moves", "l1", "l2", "steps", "states", "actions"}:
        assert cost(made(law, statistic | {name: -1}, terms), currency, 10**6) == "S-SIZE"


@pytest.mark.parametrize(
    ("law", "statistic", "terms", "currency"),
    [
        ("gaussian", BITS, {"variance": 3}, "pure"),
        ("gaussian-matrix", samples.linear("outer", steps="1"), {"variance": 3, "diagonal": 2}, "pure"),
        ("discrete-gaussian", BITS, {"variance": 3}, "pure"),
        ("discrete-gaussian", BITS, {"variance": 3}, "gdp"),
        ("laplace", BITS, {"scale": 3}, "gdp"),
        ("noisy-max", SCORES, {"scale": 1, "noise": "gumbel", "one_sided": False}, "gdp"),
        ("theorem", BITS, {"cost": 1, "currency": "zcdp", "theorem": "x"}, "pure"),
        ("theorem", BITS, {"cost": 1, "currency": "zcdp", "theorem": "x"}, "gdp"),
        ("theorem", BITS, {"cost": 1, "currency": "gdp", "theorem": "x"}, "pure"),
        ("laplace", samples.linear("sum", steps="1"), {"scale": 1}, "pure"),
        ("shuffled-bits", BITS, {"noise_bits": 9, "chance": "1/2"}, "pure"),
        ("shuffled-bits", BITS, {"noise_bits": 9, "chance": "1/2"}, "zcdp"),
        ("gaussian", SCORES, {"variance": 1}, "zcdp"),
        ("randomised-response", {"kind": "stated", "l1": 1, "l2": 1}, {"keep": "2/3", "answers": 2}, "pure"),
    ],
)
def test_mechanisms_without_a_cost(law: str, statistic: dict[str, Any], terms: dict[str, Any], currency: str) -> None:
    assert cost(made(law, statistic, terms), currency, 10**6) == law


@pytest.mark.parametrize("law", ["laplace", "theorem"])
def test_a_rho_below_half_the_square_of_epsilon(law: str) -> None:
    """Of Laplace noise, n·(t + e^(−t) − 1) over n coordinates at t scales; of any other ε-DP answer, ε·tanh(ε/2)."""
    with mpmath.workdps(90):
        third, two = mpmath.mpf(1) / 3, mpmath.mpf(2)
        if law == "laplace":  # two bits change, each by a third of the scale
            part, true = made("laplace", BITS, {"scale": 3}), two * (third + mpmath.exp(-third) - 1)
        else:
            part = made("theorem", BITS, {"cost": "2/3", "currency": "pure", "theorem": "x"})
            true = two / 3 * mpmath.tanh(third)
        assert cost(part, "zcdp", F(int(mpmath.ceil(true * 10**40)), 10**40)) == "accepted"
        assert cost(part, "zcdp", F(int(mpmath.floor(true * FINE)), FINE)) == law


def test_a_randomised_response_costs_the_log_of_its_odds() -> None:
    with mpmath.workdps(90):
        for keep, answers, odds in (("3/4", 2, 3), ("3/5", 4, F(9, 2)), ("1/3", 3, 1)):
            true = 2 * mpmath.log(mpmath.mpf(F(odds).numerator) / F(odds).denominator)
            part = made("randomised-response", BITS, {"keep": keep, "answers": answers})
            up = F(int(mpmath.ceil(true * 10**40)), 10**40)
            assert cost(part, "pure", up) == "accepted"
            if odds != 1:
                assert cost(part, "pure", F(int(mpmath.floor(true * FINE)), FINE)) == "randomised-response"
    for terms in (
        {"keep": "1/3", "answers": 2},
        {"keep": 1, "answers": 2},
        {"keep": 2, "answers": 2},
        {"keep": 0, "answers": 2},
    ):
        part = made("randomised-response", BITS, terms)
        assert cost(part, "pure", 10**6) in ("randomised-response", "evaluate")


LAPLACE = {"scale": 3}


@pytest.mark.parametrize(
    ("schedule", "factor"),
    [
        ({"kind": "once"}, 1),
        ({"kind": "disjoint"}, 1),
        ({"kind": "repeat", "times": 3, "noise": "fresh"}, 3),
        ({"kind": "repeat", "times": 0, "noise": "fresh"}, 0),
        ({"kind": "tree", "leaves": 7}, 3),
        ({"kind": "tree", "leaves": 8}, 4),
        ({"kind": "tree", "leaves": 1}, 1),
    ],
)
@pytest.mark.parametrize("trajectories", [1, 3])
def test_schedules_multiply(schedule: dict[str, Any], factor: int, trajectories: int) -> None:
    unit = {"who": "user", "trajectories": trajectories}
    part = made("laplace", BITS, LAPLACE, schedule)
    amount = F(2, 3) * factor * trajectories
    assert cost(part, "pure", amount, unit=unit) == "accepted"
    if factor:
        assert cost(part, "pure", amount - F(1, 10**30), unit=unit) == "laplace"
    part, square = made("gaussian", BITS, {"variance": 3}, schedule), F(2, 3) * factor * trajectories**2
    assert cost(part, "gdp", square, unit=unit) == "accepted"
    if factor:
        assert cost(part, "gdp", square - F(1, 10**30), unit=unit) == "gaussian"


@pytest.mark.parametrize(
    ("schedule", "changed", "rule"),
    [
        ({"kind": "repeat", "times": 3, "noise": "shared"}, {}, "T-REPEAT"),
        ({"kind": "repeat", "times": "1/2", "noise": "fresh"}, {}, "evaluate"),
        ({"kind": "repeat", "times": -1, "noise": "fresh"}, {}, "evaluate"),
        ({"kind": "tree", "leaves": "1/2"}, {}, "evaluate"),
        ({"kind": "tree", "leaves": -1}, {}, "evaluate"),
        ({"kind": "local"}, {}, "T-LOCAL"),
        ({"kind": "once"}, {"model": "local", "relation": "replace-one"}, "T-LOCAL"),
        ({"kind": "disjoint"}, {"model": "local", "relation": "replace-one"}, "T-LOCAL"),
        ({"kind": "local"}, {"model": "local"}, "T-LOCAL"),
        ({"kind": "local"}, {"relation": "replace-one"}, "accepted"),
        ({"kind": "local"}, {"model": "local", "relation": "zero-out"}, "T-LOCAL"),
        ({"kind": "local"}, {"model": "local", "relation": "replace-one"}, "accepted"),
        ({"kind": "local"}, {"model": "local", "relation": "replace-one-same-start"}, "accepted"),
        ({"kind": "sampled", "times": "1/2", "rate": "1/2"}, {}, "evaluate"),
        ({"kind": "sampled", "times": 2, "rate": "-1/2"}, {}, "T-SAMPLED"),
        ({"kind": "sampled", "times": 2, "rate": "3/2"}, {}, "T-SAMPLED"),
        ({"kind": "sampled", "times": 2, "rate": 1}, {}, "accepted"),
        ({"kind": "sampled", "times": 2, "rate": 0}, {}, "accepted"),
        ({"kind": "sampled", "times": 0, "rate": 0}, {}, "accepted"),
        ({"kind": "sampled", "times": 2, "rate": 1}, {"relation": "zero-out"}, "accepted"),
        ({"kind": "sampled", "times": 2, "rate": 1}, {"relation": "replace-one"}, "T-SAMPLED"),
    ],
)
def test_schedules_have_premises(schedule: dict[str, Any], changed: dict[str, Any], rule: str) -> None:
    assert cost(made("laplace", BITS, LAPLACE, schedule), "pure", 100, **changed) == rule


def test_samples_amplify() -> None:
    with mpmath.workdps(90):
        true = 3 * mpmath.log(1 + (mpmath.exp(mpmath.mpf(2) / 3) - 1) / 4)
        part = made("laplace", BITS, LAPLACE, {"kind": "sampled", "times": 3, "rate": "1/4"})
        assert cost(part, "pure", F(int(mpmath.ceil(true * 10**40)), 10**40)) == "accepted"
        assert cost(part, "pure", F(int(mpmath.floor(true * FINE)), FINE)) == "laplace"
        for shown, rule in ((true * 1.001, "accepted"), (true * 0.999, "T-COMPOSE")):
            total = str(F(int(mpmath.ceil(shown * 10**40)), 10**40))
            steps = [
                {"rule": "laplace", "release": "r", "at_most": "2/3"},
                {"rule": "T-COMPOSE", "at_most": total},
                {"rule": "C-PURE"},
            ]
            claim = {"currency": "pure", "epsilon": total}
            assert verdict(document([part | {"sample": "s"}], claim, steps)) == rule
    assert cost(part, "zcdp", 100) == "accepted"  # not amplified, which is an upper bound
    gaussian = made("gaussian", BITS, {"variance": 3}, {"kind": "sampled", "times": 3, "rate": "1/4"})
    for currency, all_of_them in (("zcdp", F(1)), ("gdp", F(2))):
        assert cost(gaussian, currency, all_of_them) == "accepted"
        assert cost(gaussian, currency, all_of_them - F(1, 10**30)) == "gaussian"


# ── Composition and conclusions ──


def named(name: str, scale: int, part: str = "") -> dict[str, Any]:
    return made("laplace", BITS, {"scale": scale}) | {"name": name} | ({"part": part} if part else {})


def composed(parts: list[dict[str, Any]], stated: list[Any], total: Any, claim: Any = 100) -> str:
    steps = [{"rule": "laplace", "release": p["name"], "at_most": str(s)} for p, s in zip(parts, stated, strict=True)]
    steps += [{"rule": "T-COMPOSE", "at_most": str(total)}, {"rule": "C-PURE"}]
    return verdict(document(parts, {"currency": "pure", "epsilon": str(claim)}, steps))


def test_the_costs_of_every_part_add_up() -> None:
    three = [named("r", 2), named("s", 1, "a"), named("t", 4, "b")]
    assert composed(three, [1, 2, "1/2"], 3, 3) == "accepted"
    assert composed(three, [1, 2, "1/2"], "299/100") == "T-COMPOSE"
    assert composed(three[:2], [1, 2], 3) == "accepted"
    assert composed(three[:2], [1, 2], "299/100") == "T-COMPOSE"
    assert composed([three[0], named("s", 1)], [1, 2], "299/100") == "T-COMPOSE"
    assert composed(three[1:], [2, "1/2"], 2) == "accepted"
    assert composed(three[1:], [2, 3], 2) == "T-COMPOSE"
    assert composed(three, [1, 2, "1/2"], 3, "299/100") == "C-PURE"


def steps_of(rule: str, total: Any, law: str = "gaussian", **more: Any) -> list[Any]:
    return [
        {"rule": law, "release": "r", "at_most": total},
        {"rule": "T-COMPOSE", "at_most": total},
        {"rule": rule} | more,
    ]


def approx(rule: str, epsilon: Any, delta: Any, total: Any = 1, **more: Any) -> str:
    """A release whose cost is at most the total, in the currency of the rule."""
    part = made("laplace", BITS, {"scale": 2}) if "PURE" in rule else made("gaussian", BITS, {"variance": 2})
    steps = steps_of(rule, total, part["mechanism"]["law"], **more)
    return verdict(document([part], {"currency": "approx", "epsilon": epsilon, "delta": delta}, steps))


def test_conclusions_in_epsilon_and_delta_begin_to_hold_where_they_should() -> None:
    with mpmath.workdps(90):
        one, delta = mpmath.mpf(1), mpmath.mpf(1) / 10
        curve = mpmath.ncdf(one / 2 - 1) - mpmath.e * mpmath.ncdf(-one / 2 - 1)
        for rule, epsilon, more in (
            ("C-ZCDP-APPROX", 1 + 2 * mpmath.sqrt(mpmath.log(10)), {}),
            ("C-ZCDP-ORDER", 3 + mpmath.log(one * 2 / 3) - mpmath.log(3 * delta) / 2, {"order": 3}),
        ):
            down, up = F(int(mpmath.floor(epsilon * FINE)), FINE), F(int(mpmath.ceil(epsilon * 10**40)), 10**40)
            assert approx(rule, str(up), "1/10", **more) == "accepted"
            assert approx(rule, str(down), "1/10", **more) == rule
            assert approx(rule, str(up), 1, **more) == "accepted"
            assert approx(rule, str(up), 2, **more) == rule
            assert approx(rule, str(up), "-1/10", **more) == rule
            assert approx(rule, str(up), 0, **more) in (rule, "evaluate")
        down, up = F(int(mpmath.floor(curve * FINE)), FINE), F(int(mpmath.ceil(curve * 10**40)), 10**40)
        assert approx("C-GDP-APPROX", 1, str(up)) == "accepted"
        assert approx("C-GDP-APPROX", 1, str(down)) == "C-GDP-APPROX"
        assert approx("C-GDP-APPROX", 1, -1) == approx("C-GDP-APPROX", -1, 1) == "C-GDP-APPROX"
    assert approx("C-PURE-APPROX", 1, 0) == "accepted"
    assert approx("C-PURE-APPROX", "99/100", "1/2") == "C-PURE-APPROX"
    assert approx("C-PURE-APPROX", 1, -1) == "C-PURE-APPROX"


@pytest.mark.parametrize(("mu", "rule"), [(1, "accepted"), ("99/100", "C-GDP"), (-1, "C-GDP"), (-2, "C-GDP")])
def test_mu_is_not_negative(mu: Any, rule: str) -> None:
    part = made("gaussian", BITS, {"variance": 2})
    assert verdict(document([part], {"currency": "gdp", "mu": mu}, steps_of("C-GDP", 1))) == rule


def test_an_order_goes_with_its_conclusion() -> None:
    assert approx("C-ZCDP-ORDER", 9, "1/10") == "steps"
    assert approx("C-ZCDP-APPROX", 9, "1/10", order=2) == "steps"
    for order, rule in ((1, "C-ZCDP-ORDER"), ("1/2", "C-ZCDP-ORDER"), (2, "accepted"), ("x", "C-ZCDP-ORDER")):
        assert approx("C-ZCDP-ORDER", 9, "1/10", order=order) == rule


def test_steps_are_those_of_the_releases() -> None:
    part = made("gaussian", BITS, {"variance": 2})
    claim = {"currency": "zcdp", "rho": 1}
    good = steps_of("C-ZCDP", 1)
    assert verdict(document([part], claim, good)) == "accepted"
    for wrong in (
        good[:2],
        good[1:],
        [good[0], *good],
        [good[0] | {"rule": "laplace"}, *good[1:]],
        [good[0] | {"release": "s"}, *good[1:]],
        [good[0] | {"more": 1}, *good[1:]],
        [good[0], good[1] | {"rule": "T-ONCE"}, good[2]],
        [good[0], good[1] | {"more": 1}, good[2]],
        [*good[:2], {"rule": "C-NONE"}],
        [*good[:2], {"rule": "x" * 41}],
        [*good[:2], {"rule": 7}],
        [*good[:2], {}],
        [good[0], {"rule": "T-COMPOSE"}, good[2]],
        [{"rule": "gaussian", "release": "r"}, *good[1:]],
        [good[0], good[2], good[1]],
        [*good[:2], "C-ZCDP"],
        [],
        good * 101,
    ):
        assert verdict(document([part], claim, wrong)) == "steps", wrong
    for rule in ("C-PURE", "C-GDP", "C-ZCDP-APPROX", "C-PURE-APPROX"):
        found = verdict(document([part], claim, steps_of(rule, 1)))
        assert found == rule


@pytest.mark.parametrize("rule", ["C-GDP-APPROX", "C-ZCDP-ORDER", "C-NUMERIC"])
def test_conclusions_at_numbers_only(rule: str) -> None:
    part = made("gaussian", BITS, {"variance": 2})
    more = {"order": 2} if "ORDER" in rule else {"grid": GRID} if "NUMERIC" in rule else {}
    whole = document([part], {"currency": "approx", "epsilon": 50, "delta": "1/2"}, steps_of(rule, 1, **more))
    if rule == "C-NUMERIC":
        whole["steps"].pop(1)
    assert verdict(whole) == "accepted"
    everywhere = whole | {
        "kind": "holds-for-all",
        "bounds": [],
        "conclusion": samples.HOLDS | {"scope": "all parameters"},
    }
    assert verdict(everywhere) in (rule, "steps")


# ── C-NUMERIC ──


def gaussian_epsilon(mu2: float, delta: float) -> float:
    def at(epsilon: float) -> float:
        mu = math.sqrt(mu2)

        def phi(x: float) -> float:
            return math.erfc(-x / math.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)

    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > delta else (low, middle)
    return high


def numeric(
    parts: list[dict[str, Any]], stated: list[Any], epsilon: float, delta: str = "1/1000", **changed: Any
) -> str:
    steps: list[Any] = [
        {"rule": p["mechanism"]["law"], "release": p["name"], "at_most": s} for p, s in zip(parts, stated, strict=True)
    ]
    claim = {"currency": "approx", "epsilon": str(F(epsilon).limit_denominator(10**9)), "delta": delta}
    return verdict(document(parts, claim, [*steps, {"rule": "C-NUMERIC", "grid": GRID}], **changed))


def normal(name: str, schedule: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return made("gaussian", BITS, {"variance": 8}, schedule) | {"name": name} | more


def test_values_are_counted_and_composed() -> None:
    tree = {"kind": "tree", "leaves": 4}
    thrice = {"kind": "repeat", "times": 3, "noise": "fresh"}
    for parts, mu2 in (
        ([normal("r")], 0.25),
        ([normal("r", tree)], 0.75),
        ([normal("r", thrice), normal("s", tree)], 1.5),
        ([normal("r"), normal("s", tree, part="a"), normal("t", part="b")], 1.0),
        ([normal("r", tree, part="a"), normal("t", part="b")], 0.75),
    ):
        exact = gaussian_epsilon(mu2, 0.001)
        assert numeric(parts, ["1/4"] * len(parts), exact * 1.001) == "accepted"
        assert numeric(parts, ["1/4"] * len(parts), exact * 0.999) == "numeric"
        assert numeric(parts, ["249/1000"] * len(parts), exact * 1.001) == "gaussian"


def test_values_of_one_sample_are_one_value() -> None:
    """At rate 1 a sample is everybody: two values of squared ratio 1/4 in each of three rounds."""
    rounds = {"kind": "sampled", "times": 3, "rate": 1}
    both = [normal("r", rounds, sample="x"), normal("s", rounds, sample="x")]
    exact = gaussian_epsilon(1.5, 0.001)
    assert numeric(both, ["1/4", "1/4"], exact * 1.001) == "accepted"
    assert numeric(both, ["1/4", "1/4"], exact * 0.999) == "numeric"
    apart = [both[0], both[1] | {"sample": "y"}]
    assert numeric(apart, ["1/4", "1/4"], exact * 1.001) == "accepted"
    more = [*both, normal("t")]
    exact = gaussian_epsilon(1.75, 0.001)
    assert numeric(more, ["1/4"] * 3, exact * 1.001) == "accepted"
    assert numeric(more, ["1/4"] * 3, exact * 0.999) == "numeric"
    for other in (
        {"kind": "sampled", "times": 2, "rate": 1},
        {"kind": "sampled", "times": 3, "rate": "1/2"},
    ):
        assert numeric([both[0], normal("s", other, sample="x")], ["1/4", "1/4"], 50) == "T-SAMPLED"
    laplace = made("laplace", BITS, {"scale": 4}, rounds) | {"name": "s", "sample": "x"}
    assert numeric([both[0], laplace], ["1/4", "1/2"], 50) == "T-SAMPLED"
    assert numeric([laplace], ["1/2"], 50) == "accepted"
    assert numeric([laplace | {"sample": "y"}, both[0]], ["1/2", "1/4"], 50) == "accepted"
    root = made("gaussian", BITS, {"variance": 8}, {"kind": "sampled", "times": 3, "rate": ["sqrt", "1/2"]})
    assert numeric([root], ["1/4"], 50) == "T-SAMPLED"


def test_a_pure_value_is_a_randomised_bit() -> None:
    """One value of ε = 1/2: δ(1/4) = (e^{1/2} − e^{1/4})/(1 + e^{1/2})."""
    part = made("laplace", BITS, {"scale": 4})
    exact = (math.exp(0.5) - math.exp(0.25)) / (1 + math.exp(0.5))
    for factor, rule in ((1.001, "accepted"), (0.999, "numeric")):
        assert numeric([part], ["1/2"], 0.25, str(F(exact * factor).limit_denominator(10**9))) == rule
    assert numeric([part], [["sqrt", "1/3"]], 9) == "C-NUMERIC"
    for currency in ({"currency": "pure", "epsilon": 9}, {"currency": "gdp", "mu": 9}):
        steps = [{"rule": "laplace", "release": "r", "at_most": "1/2"}, {"rule": "C-NUMERIC", "grid": GRID}]
        assert verdict(document([part], currency, steps)) == "C-NUMERIC"
    steps = [{"rule": "laplace", "release": "r", "at_most": "1/2"}] * 2 + [{"rule": "C-NUMERIC", "grid": GRID}]
    claim = {"currency": "approx", "epsilon": 9, "delta": "1/2"}
    assert verdict(document([part], claim, steps)) == "C-NUMERIC"
    assert verdict(document([part], claim, [steps[0], steps[2] | {"more": 1}])) == "C-NUMERIC"
    assert verdict(document([part], claim, [steps[0] | {"rule": "gaussian"}, steps[2]])) == "steps"
    irrational = {"currency": "approx", "epsilon": ["sqrt", 2], "delta": "1/2"}
    assert verdict(document([part], irrational, [steps[0], steps[2]])) in ("accepted", "numeric", "format")


@pytest.mark.parametrize(
    ("changed", "about", "stated", "rule"),
    [
        ({}, {}, 4, "accepted"),
        ({}, {}, 3, "accepted"),  # two bits on either side, but there are three
        ({}, {}, 2, "shuffled-bits"),
        ({}, {}, 5, "accepted"),
        ({}, {}, "9/2", "evaluate"),
        ({"schedule": {"kind": "disjoint"}}, {}, 4, "accepted"),
        ({"schedule": {"kind": "tree", "leaves": 1}}, {}, 4, "shuffled-bits"),
        ({"schedule": {"kind": "repeat", "times": 1, "noise": "fresh"}}, {}, 4, "shuffled-bits"),
        ({"mechanism": {"law": "shuffled-bits", "noise_bits": 0, "chance": "1/2"}}, {}, 4, "shuffled-bits"),
        ({"mechanism": {"law": "shuffled-bits", "noise_bits": 1, "chance": "1/2"}}, {}, 4, "numeric"),
        ({"mechanism": {"law": "shuffled-bits", "noise_bits": "2001/2", "chance": "1/2"}}, {}, 4, "accepted"),
        ({"shared": "cells"}, {}, 4, "shuffled-bits"),
        ({}, {"unit": {"who": "user", "trajectories": 2}}, 8, "shuffled-bits"),
        ({"statistic": {"kind": "bounded", "l1": 1, "l2": 1}}, {}, 4, "shuffled-bits"),
        ({"statistic": {"kind": "stated", "l1": 4, "l2": 1}}, {}, 4, "accepted"),
        ({"statistic": SCORES}, {}, 4, "shuffled-bits"),
        ({"statistic": samples.table(["state"]) | {"steps": 2, "states": 2, "actions": 1}}, {}, 4, "accepted"),
        (
            {"statistic": samples.table(["state"], "reward") | {"steps": 2, "states": 2, "actions": 1}},
            {},
            4,
            "accepted",
        ),
        (
            {"statistic": samples.table(["state"], "cost") | {"steps": 2, "states": 2, "actions": 1}},
            {},
            4,
            "shuffled-bits",
        ),
        (
            {"statistic": samples.table(["state"]) | {"steps": 2, "states": 2, "actions": 1, "pooled": True}},
            {},
            4,
            "shuffled-bits",
        ),
        ({}, {"relation": "zero-out"}, 2, "accepted"),
        ({}, {"relation": "zero-out"}, 1, "shuffled-bits"),
        ({}, {"relation": "add-remove"}, 4, "shuffled-bits"),
        ({}, {"model": "local"}, 4, "T-LOCAL"),
    ],
)
def test_counters_behind_a_shuffler(changed: dict[str, Any], about: dict[str, Any], stated: Any, rule: str) -> None:
    part = made("shuffled-bits", BITS, {"noise_bits": 1000, "chance": "1/2"}) | changed
    found = numeric([part], [stated], 1.5, **({"relation": "replace-one", "model": "shuffle"} | about))
    assert found == rule
    if rule == "accepted":
        steps = [{"rule": "laplace", "release": "r", "at_most": stated}, {"rule": "C-NUMERIC", "grid": GRID}]
        claim = {"currency": "approx", "epsilon": 2, "delta": "1/1000"}
        other = {"relation": "replace-one", "model": "shuffle"} | about
        assert verdict(document([part], claim, steps, **other)) == "steps"
