"""Rules for shared samples, counters behind a shuffler, shared cells, bounds by step and impossible answers.

The twins enumerate: binomial laws as fractions, compositions of counters outcome by outcome, thresholds on a grid.
"""

from __future__ import annotations

import copy
import itertools
import random
from fractions import Fraction
from math import comb, exp
from typing import Any

import pytest

import certificate_samples as samples
from certificate_verdicts import verdict
from privcheck_check.enclosures import ONE
from privcheck_check.numeric import LAWS

GRID = {"steps": 150, "digits": 30, "trim": "1/1000000000000"}


def document(kind: str, relation: str, releases: list[dict[str, Any]], claim: dict[str, Any], **more: Any) -> Any:
    """A certificate of releases over H = 3, S = A = 2."""
    names = [each["name"] for each in releases]
    codes = ("sequential", *(f"secret-sample: {name}" for name in names), *(f"stated-sensitivity: {n}" for n in names))
    model = more.pop("model", "central")
    return {
        "format": "privcheck-certificate/1",
        "kind": kind,
        "declared": {
            "name": "ours", "source": "by hand", "relation": relation, "model": model,
            "unit": {"who": "user", "trajectories": 1}, "releases": releases,
            "parameters": {"H": samples.integer(3), "S": samples.integer(2), "A": samples.integer(2)},
            "claim": {"source": "by hand", **claim},
        },
        "assumed": samples.assumed("attainable") if kind == "refuted" else samples.assumed(*codes),
        **more,
        "conclusion": samples.HOLDS if kind != "refuted" else samples.HOLDS | {"verdict": "fails"},
    }  # fmt: skip


def numeric(relation: str, releases: list[dict[str, Any]], costs: list[Any], epsilon: str, delta: str) -> Any:
    rules = [
        {"rule": r["mechanism"]["law"], "release": r["name"], "at_most": c}
        for r, c in zip(releases, costs, strict=True)
    ]
    claim = {"currency": "approx", "epsilon": epsilon, "delta": delta}
    return document("holds-at", relation, releases, claim, steps=[*rules, {"rule": "C-NUMERIC", "grid": GRID}])


# ── counters ──


def test_the_curve_of_a_counter_is_that_of_its_outcomes() -> None:
    rng = random.Random(7)
    for trials in (1, 2, 3, 4, 5, 8, 33, 100):
        curve = LAWS["binomial"][0]({"trials": trials})
        law = [Fraction(comb(trials, k), 2**trials) for k in range(trials + 1)]
        for _ in range(40):
            t = rng.choice(
                [Fraction(rng.randrange(1, trials + 2), rng.randrange(1, trials + 2)), Fraction(rng.random())]
            )
            units = int(t * ONE)
            low, high = curve((units, units + 9))

            def best(at: Fraction, law: list[Fraction] = law) -> Fraction:
                pairs = zip([Fraction(0), *law], [*law, Fraction(0)], strict=True)
                return sum((max(Fraction(0), p - at * q) for p, q in pairs), Fraction(0))

            assert low <= best(Fraction(units + 9, ONE)) * ONE <= best(Fraction(units, ONE)) * ONE <= high
            assert high - low < 2**40


def counters(bits: int, ones: int, trials: int) -> dict[str, Any]:
    return {
        "name": "counters", "statistic": {"kind": "bits", "bits": bits, "ones": ones},
        "mechanism": {"law": "shuffled-bits", "noise_bits": trials, "chance": "1/2"}, "schedule": {"kind": "once"},
    }  # fmt: skip


def exact_delta(trials: int, up: int, down: int, epsilon: float) -> float:
    """δ of so many counters that rise and so many that fall, outcome by outcome."""
    law = [comb(trials, k) / 2**trials for k in range(trials + 1)]
    rise = list(zip([0.0, *law], [*law, 0.0], strict=True))
    fall = [(q, p) for p, q in rise]
    total = 0.0
    for outcome in itertools.product(*[rise] * up, *[fall] * down):
        p = q = 1.0
        for one, other in outcome:
            p, q = p * one, q * other
        total += max(0.0, p - exp(epsilon) * q)
    return total


@pytest.mark.parametrize(("ones", "relation", "up", "down"), [(1, "replace-one", 1, 1), (2, "zero-out", 2, 0)])
@pytest.mark.parametrize("trials", [6, 11])
@pytest.mark.parametrize("epsilon", ["1/2", "1"])
def test_counters_are_private_as_enumerated_and_no_more(
    ones: int, relation: str, up: int, down: int, trials: int, epsilon: str
) -> None:
    true = exact_delta(trials, up, down, float(Fraction(epsilon)))
    for factor, expected in ((1.0001, "accepted"), (0.9999, "numeric")):
        delta = str(Fraction(true * factor).limit_denominator(10**15))
        changed = up + down
        given = numeric(relation, [counters(4, ones, trials)], [changed], epsilon, delta)
        assert verdict(given) == expected
        fewer = copy.deepcopy(given)
        fewer["steps"][0]["at_most"] = changed - 1
        assert verdict(fewer) == "shuffled-bits"


def test_counters_of_several_values_of_pooled_tables_or_of_several_trajectories_have_no_rule() -> None:
    good = numeric("replace-one", [counters(4, 1, 200)], [2], "2", "1/100")
    assert verdict(good) == "accepted"
    for path, to in (
        (("releases", 0, "schedule"), {"kind": "repeat", "times": 2, "noise": "fresh"}),
        (("releases", 0, "statistic"), samples.table(["state"]) | {"pooled": True}),
        (("releases", 0, "statistic"), samples.table(["state"], "cost")),
        (("unit", "trajectories"), 2),
        (("releases", 0, "mechanism", "noise_bits"), 0),
    ):
        made = copy.deepcopy(good)
        at = made["declared"]
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = to
        assert verdict(made) == "shuffled-bits", path


# ── samples ──


def sampled(
    name: str, sample: str = "", rate: str = "1/10", variance: int = 4, law: str = "gaussian"
) -> dict[str, Any]:
    spread = {"variance": variance} if law == "gaussian" else {"scale": 4}
    release = {
        "name": name, "statistic": {"kind": "bounded", "l1": 1, "l2": 1}, "mechanism": {"law": law, **spread},
        "schedule": {"kind": "sampled", "times": 20, "rate": rate},
    }  # fmt: skip
    return release | ({"sample": sample} if sample else {})


def test_two_sums_of_one_sample_cost_as_one_of_both_and_more_than_two_samples() -> None:
    claims = [f"{k}/20" for k in range(16, 50)]

    def least(releases: list[dict[str, Any]], costs: list[Any]) -> str:
        return next(e for e in claims if verdict(numeric("add-remove", releases, costs, e, "1/100000")) == "accepted")

    together = least([sampled("a", "batch"), sampled("b", "batch")], ["1/4", "1/4"])
    joint = least([sampled("both", variance=2)], ["1/2"])
    apart = least([sampled("a"), sampled("b")], ["1/4", "1/4"])
    assert together == joint
    assert Fraction(together) > Fraction(apart)


def test_a_shared_sample_has_one_rate_and_noise_of_one_kind() -> None:
    other = [sampled("a", "batch"), sampled("b", "batch", rate="1/5")]
    assert verdict(numeric("add-remove", other, ["1/4", "1/4"], "9", "1/10")) == "T-SAMPLED"
    mixed = [sampled("a", "batch", law="laplace"), sampled("b", "batch")]
    assert verdict(numeric("add-remove", mixed, ["1/4", "1/4"], "9", "1/10")) == "T-SAMPLED"
    laplace = [sampled("a", "batch", law="laplace"), sampled("b", "batch", law="laplace")]
    steps = [{"rule": "laplace", "release": name, "at_most": 9} for name in ("a", "b")]
    steps += [{"rule": "T-COMPOSE", "at_most": 18}, {"rule": "C-PURE"}]
    claim = {"currency": "pure", "epsilon": 18}
    alone = [sampled("a", law="laplace"), sampled("b", law="laplace")]
    assert verdict(document("holds-at", "add-remove", alone, claim, steps=steps)) == "accepted"
    together = document("holds-at", "add-remove", laplace, claim, steps=steps)
    assert verdict(together) == "T-COMPOSE"  # ε of both is amplified together: more than of two samples
    rates = [laplace[0], sampled("b", "batch", law="laplace", rate="1/5")]
    assert verdict(document("holds-at", "add-remove", rates, claim, steps=steps)) == "T-SAMPLED"


# ── cells that share a draw ──


def walk(states: list[int]) -> dict[str, Any]:
    return {"states": states, "actions": [0, 0, 0], "rewards": [0, 0, 0]}


def local(cells: list[str], *, pooled: bool) -> dict[str, Any]:
    return {
        "name": "visits", "statistic": samples.table(cells) | {"pooled": pooled}, "shared": "cells",
        "mechanism": {"law": "laplace", "scale": 1000}, "schedule": {"kind": "local"},
    }  # fmt: skip


def test_one_draw_for_all_cells_tells_what_is_not_alike() -> None:
    claim = {"currency": "pure", "epsilon": 100}
    evidence = {"pair": [[walk([0, 0, 0, 0])], [walk([1, 1, 1, 1])]], "using": ["visits"]}
    for cells, pooled in ((["state"], True), (["state", "action"], False)):
        made = document(
            "refuted", "replace-one", [local(cells, pooled=pooled)], claim, model="local", evidence=evidence
        )
        assert verdict(made) == "accepted"
    same = {**evidence, "pair": [[walk([0, 1, 0, 0])], [walk([1, 0, 0, 1])]]}  # one visit of each, then another of 0
    made = document("refuted", "replace-one", [local(["state"], pooled=True)], claim, model="local", evidence=same)
    assert verdict(made) == "refuted"
    steps = [{"rule": "laplace", "release": "visits", "at_most": 1}, {"rule": "T-COMPOSE", "at_most": 1}]
    steps.append({"rule": "C-PURE"})
    releases = [local(["state"], pooled=True)]
    held = document("holds-at", "replace-one", releases, claim, model="local", steps=steps)
    assert verdict(held) == "L-SHARED"


# ── bounds by step, and roots ──


def test_bounds_may_follow_the_step_and_a_root_squared_is_what_it_was() -> None:
    outer = {
        "kind": "linear", "steps": "H", "feature": ["-", 4, "h"], "target": 1, "weight": 1, "features": "phi",
        "part": "outer", "signed": False,
    }  # fmt: skip
    matrix = {"law": "gaussian-matrix", "variance": 1, "diagonal": 2}
    releases = [{"name": "gram", "statistic": outer, "mechanism": matrix, "schedule": {"kind": "once"}}]
    exact = sum(2 * (4 - h) ** 4 for h in (1, 2, 3))  # Σ 2·size² over μ² = Δ²/2v
    for amount, expected in (
        (Fraction(exact, 2), "accepted"),
        (Fraction(exact, 2) - Fraction(1, 10**9), "gaussian-matrix"),
    ):
        steps = [{"rule": "gaussian-matrix", "release": "gram", "at_most": str(amount)}]
        steps += [{"rule": "T-COMPOSE", "at_most": exact}, {"rule": "C-GDP"}]
        claim = {"currency": "gdp", "mu": exact}
        assert verdict(document("holds-at", "replace-one", releases, claim, steps=steps)) == expected
    stated = {"kind": "stated", "l1": 9, "l2": ["^", "7/3", "1/2"]}
    noisy = [
        {
            "name": "s",
            "statistic": stated,
            "mechanism": {"law": "gaussian", "variance": "7/6"},
            "schedule": {"kind": "once"},
        }
    ]
    steps = [
        {"rule": "gaussian", "release": "s", "at_most": 1},
        {"rule": "T-COMPOSE", "at_most": 1},
        {"rule": "C-ZCDP"},
    ]
    assert (
        verdict(document("holds-at", "replace-one", noisy, {"currency": "zcdp", "rho": 1}, steps=steps)) == "accepted"
    )


# ── answers that a neighbour cannot give ──


def vector(**more: Any) -> dict[str, Any]:
    law = {
        "law": "sparse-vector",
        "threshold_scale": 2,
        "query_scale": 0,
        "positives": 2,
        "queries": 9,
        "one_sided": False,
    }
    return {
        "name": "answers", "statistic": {"kind": "selection", "moves": 1}, "mechanism": law | more,
        "schedule": {"kind": "once"},
    }  # fmt: skip


def test_impossible_answers_are_those_that_no_threshold_gives() -> None:
    """Against thresholds on a fine grid; 400 patterns, half of the queries moved by up to 1."""
    rng, seen = random.Random(3), set()
    for _ in range(400):
        size = rng.randrange(1, 4)
        first = [Fraction(rng.randrange(-4, 5), 2) for _ in range(size)]
        second = [q + Fraction(rng.randrange(-3, 4), 2) for q in first]
        above = [rng.random() < 0.5 for _ in range(size)]
        grid = [Fraction(k, 4) + Fraction(1, 8) for k in range(-20, 21)]

        def gives(queries: list[Fraction], above: list[bool] = above, grid: list[Fraction] = grid) -> bool:
            return any([q >= z for q in queries] == above for z in grid)

        fits = all(abs(a - b) <= 1 for a, b in zip(first, second, strict=True)) and sum(above[:-1]) < 2
        true = fits and gives(first) and not gives(second)
        answers = {
            "release": "answers",
            "above": above,
            "first": [str(q) for q in first],
            "second": [str(q) for q in second],
        }
        made = document(
            "refuted", "replace-one", [vector()], {"currency": "pure", "epsilon": 50}, evidence={"answers": answers}
        )
        assert (verdict(made) == "accepted") == true, answers
        seen.add(true)
    assert seen == {True, False}


@pytest.mark.parametrize("change", [{"query_scale": 1}, {"one_sided": True}])
def test_noise_on_queries_or_scores_that_move_one_way_are_another_case(change: dict[str, Any]) -> None:
    answers = {"release": "answers", "above": [False, True], "first": [0, 1], "second": [1, 0]}
    claim = {"currency": "pure", "epsilon": 50}
    made = document("refuted", "replace-one", [vector()], claim, evidence={"answers": answers})
    assert verdict(made) == "accepted"
    made = document("refuted", "replace-one", [vector(**change)], claim, evidence={"answers": answers})
    assert verdict(made) == "L-PATTERN"
    approx = {"currency": "approx", "epsilon": 50, "delta": "1/100"}
    assert verdict(document("refuted", "replace-one", [vector()], approx, evidence={"answers": answers})) == "L-PATTERN"
