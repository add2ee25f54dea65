"""Refutations at their edges: which end of an enclosure counts, what a pair may hold, each loss against its formula."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.signal

import certificate_mutations as mutations
import certificate_samples as samples
from certificate_verdicts import verdict
from privcheck_check.check import check
from privcheck_check.curves import gaussian_delta
from privcheck_check.declared import read_declared
from privcheck_check.refuted import FEATURES, STEPS, Loss, _exceeds, _laplace_divergence
from privcheck_check.terms import exponential
from privcheck_check.values import Rejected

F = Fraction
FAILS = {"verdict": "fails", "scope": "these numbers", "about": "releases"}
PURE_1 = {"currency": "pure", "epsilon": 1}


def document(
    releases: list[dict[str, Any]], claim: dict[str, Any], pair: list[Any], more: dict[str, Any] | None = None,
    **changed: Any,
) -> dict[str, Any]:  # fmt: skip
    declared = {
        "name": "x", "source": "", "relation": "add-remove", "unit": {"who": "user", "trajectories": 1},
        "model": "central", "parameters": {}, "releases": releases, "claim": {"source": ""} | claim,
    } | changed  # fmt: skip
    attained = any(each["statistic"]["kind"] in ("linear", "selection") for each in releases)
    return {
        "format": "privcheck-certificate/1", "kind": "refuted", "declared": declared,
        "assumed": samples.assumed(*(["attainable"] if attained else []), "stated-law: r"),
        "evidence": {"pair": pair, "using": [each["name"] for each in releases]} | (more or {}), "conclusion": FAILS,
    }  # fmt: skip


def exceeds(loss: Loss, order: Fraction | None = None, **claim: Any) -> bool:
    part = samples.release("r", {"kind": "bits", "bits": 1, "ones": 1}, "laplace", scale="1")
    text = {key: str(value) if isinstance(value, Fraction) else value for key, value in claim.items()}
    return _exceeds(loss, read_declared(document([part], text, [])["declared"]), order, None)


def test_a_pure_loss_counts_by_its_lower_end() -> None:
    for epsilon, found in ((2, False), (1, False), ("99/100", True)):
        assert exceeds(Loss(laplace=Counter({(F(1), F(3)): 1})), currency="pure", epsilon=epsilon) == found
    assert exceeds(Loss(unbounded=True), currency="pure", epsilon=100)


def test_an_irrational_claim_counts_by_its_upper_end() -> None:
    """The loss is below √2 by less than 10⁻⁶⁰."""
    below = F(math.isqrt(2 * 10**120), 10**60)
    root: Any = ["sqrt", 2]
    assert not exceeds(Loss(laplace=Counter({(below, below): 1})), currency="pure", epsilon=root)
    assert exceeds(Loss(laplace=Counter({(below + F(1, 10**57),) * 2: 1})), currency="pure", epsilon=root)


def test_a_gaussian_loss_counts_by_its_lower_end() -> None:
    for mu, found in ((2, False), (1, False), ("99/100", True), (-2, True)):
        assert exceeds(Loss(square=(F(1), F(9))), currency="gdp", mu=mu) == found
        assert not exceeds(Loss(square=(F(1), F(9)), whole=False), currency="gdp", mu=mu)
    assert not exceeds(Loss(), currency="gdp", mu=-1)
    for rho, found in ((2, False), (1, False), ("99/100", True)):
        assert exceeds(Loss(square=(F(2), F(6))), currency="zcdp", rho=rho) == found


def test_a_divergence_counts_by_its_lower_end() -> None:
    order, ratio = F(3), (F(1), F(2))
    whole = 3 * _laplace_divergence((F(1), F(1)), order) + order
    loss = Loss(laplace=Counter({ratio: 3}), square=(F(2), F(6)))
    assert not exceeds(loss, order, currency="zcdp", rho=["/", str(whole.limit_denominator(10**60)), 3])
    assert not exceeds(loss, order, currency="zcdp", rho=F(math.ceil(whole * 10**40), 3 * 10**40))
    assert exceeds(loss, order, currency="zcdp", rho=F(math.floor(whole * 10**40), 3 * 10**40))
    assert _laplace_divergence(ratio, order) == _laplace_divergence((F(1), F(1)), order)
    assert _laplace_divergence((F(0), F(0)), order) <= 0
    with pytest.raises(Rejected, match="L-RENYI"):
        exceeds(Loss(whole=False), order, currency="zcdp", rho=1)
    exact = Loss(square=(F(2), F(2)))
    assert not exceeds(exact, order, currency="zcdp", rho=1)


def test_a_curve_counts_by_its_lower_end() -> None:
    square, wide = (F(1), F(1)), (F(1), F(4))
    low = gaussian_delta(square, (F(1), F(1)))[0]
    down, up = F(math.floor(low * 10**70), 10**70), low
    for loss in (Loss(square=square, unbounded=True), Loss(square=wide, unbounded=True)):
        assert exceeds(loss, currency="approx", epsilon=1, delta=down)
        assert not exceeds(loss, currency="approx", epsilon=1, delta=up)
    with pytest.raises(Rejected, match="L-CURVE"):
        exceeds(Loss(whole=False, unbounded=True), currency="approx", epsilon=1, delta=0)


def test_an_event_counts_by_its_lower_ends() -> None:
    loss = Loss(discrete=Counter({(F(2), F(4)): 1}))
    low = (1 - exponential((F(-1), F(-1)))[1]) / 2
    assert exceeds(loss, currency="approx", epsilon=1, delta=F(math.floor(low * 10**70), 10**70))
    assert not exceeds(loss, currency="approx", epsilon=1, delta=low + F(1, 10**50))
    assert not exceeds(loss, currency="approx", epsilon=3, delta=0)
    assert not exceeds(loss, currency="approx", epsilon=2, delta=0)
    for delta, found in ((0, True), ("99/100", True), (1, False), (2, False)):
        assert exceeds(Loss(noiseless=True), currency="approx", epsilon=1, delta=delta) == found
        assert not exceeds(Loss(), currency="approx", epsilon=1, delta=delta)
    assert not exceeds(Loss(laplace=Counter({(F(9), F(9)): 1})), currency="approx", epsilon=1, delta=1)


def bits(
    law: str, values: list[int], claim: dict[str, Any], schedule: dict[str, Any] | None = None, **terms: Any
) -> str:
    """A user with these bits, added or (in randomised response) in place of one with none."""
    statistic = {"kind": "bits", "bits": len(values), "ones": len(values)}
    part = samples.release("r", statistic, law, schedule or {"kind": "once"}, **terms)
    pair = [[{"vectors": {"r": values}}], []]
    return verdict(document([part], claim, pair))


def six_quarters_at_one() -> float:
    """δ at ε = 1 of six Laplace values a quarter of a scale apart; losses in steps of a ten-thousandth."""
    step, t = 1e-4, 0.25
    count = round(t / step)  # losses −t to t; between them P has density e^((l − t)/2)/4
    middles = (np.arange(2 * count) + 0.5) * step - t
    law = np.exp((middles - t) / 2) / 4 * step
    law[[0, -1]] += math.exp(-t) / 2, 0.5
    total = np.maximum(scipy.signal.fftconvolve(law, law), 0)
    total = np.maximum(scipy.signal.fftconvolve(scipy.signal.fftconvolve(total, total), total), 0)
    losses = -6 * (t - step / 2) + step * np.arange(len(total))
    return float((total * np.maximum(-np.expm1(1 - losses), 0)).sum())


@pytest.mark.parametrize("law", ["laplace", "discrete-laplace"])
def test_losses_of_laplace_noise(law: str) -> None:
    """Three coordinates in two values of scale 4: a loss of 3/2 at most, of discrete noise with probability 2⁻⁶."""
    twice = {"kind": "repeat", "times": 2, "noise": "fresh"}
    for epsilon, found in (("149/100", "accepted"), ("3/2", "refuted")):
        assert bits(law, [1, 1, 1], {"currency": "pure", "epsilon": epsilon}, twice, scale="4") == found
    exact = six_quarters_at_one() if law == "laplace" else (1 - math.exp(-0.5)) / 64
    for factor, found in ((0.99 if law == "laplace" else 0.999, "accepted"), (1.001, "refuted")):
        claim = {"currency": "approx", "epsilon": 1, "delta": str(F(exact * factor).limit_denominator(10**12))}
        assert bits(law, [1, 1, 1], claim, twice, scale="4") == found
    assert bits(law, [1], {"currency": "pure", "epsilon": "19/10"}, scale="1/2") == "accepted"
    for wrong in ("0", "0 - 1", "sqrt(2) - 2", "sqrt(2)*sqrt(2) - 2"):
        assert bits(law, [1], {"currency": "pure", "epsilon": 0}, scale=wrong) == law


def test_divergences_add_up_over_values_and_coordinates() -> None:
    order = F(2)
    six = 6 * float(_laplace_divergence((F(1, 4), F(1, 4)), order)) / 2
    part = samples.release("r", {"kind": "bits", "bits": 3, "ones": 3}, "laplace",
                           {"kind": "repeat", "times": 2, "noise": "fresh"}, scale="4")  # fmt: skip
    for factor, found in ((0.999, "accepted"), (1.001, "refuted")):
        claim = {"currency": "zcdp", "rho": str(F(six * factor).limit_denominator(10**12))}
        pair = [[{"vectors": {"r": [1, 1, 1]}}], []]
        assert verdict(document([part], claim, pair, {"order": 2})) == found


@pytest.mark.parametrize("law", ["gaussian", "discrete-gaussian"])
def test_losses_of_gaussian_noise(law: str) -> None:
    """Three coordinates in two values of variance 4: μ² = 3/2."""
    twice = {"kind": "repeat", "times": 2, "noise": "fresh"}
    for rho, found in (("74/100", "accepted"), ("3/4", "refuted")):
        assert bits(law, [1, 1, 1], {"currency": "zcdp", "rho": rho}, twice, variance="4") == found
    never = {"kind": "repeat", "times": 0, "noise": "fresh"}
    assert bits(law, [1], {"currency": "pure", "epsilon": 100}, never, variance="4") == "refuted"
    assert bits(law, [1], {"currency": "zcdp", "rho": "99/100"}, variance="1/2") == "accepted"
    for wrong in ("0", "0 - 1", "sqrt(2) - 2", "sqrt(2)*sqrt(2) - 2"):
        assert bits(law, [1], {"currency": "zcdp", "rho": 0}, variance=wrong) == law
    gdp = bits(law, [1], {"currency": "gdp", "mu": "1/10"}, variance="1")
    assert gdp == ("accepted" if law == "gaussian" else "refuted")


def test_one_gaussian_value_is_enough() -> None:
    some, none = (
        samples.release(name, {"kind": "bits", "bits": 1, "ones": 1}, "gaussian",
                        {"kind": "repeat", "times": times, "noise": "fresh"}, variance="4")
        for name, times in (("a", 1), ("b", 0))
    )  # fmt: skip
    pair = [[{"vectors": {"a": [1], "b": [1]}}], []]
    assert verdict(document([some, none], {"currency": "pure", "epsilon": 100}, pair)) == "accepted"


def test_a_matrix_has_noise_of_its_own_on_the_diagonal() -> None:
    """φ = (3/5, 4/5): entries 9/25, 12/25, 16/25; with diagonal 2, μ² = 81/1250 + 144/625 + 256/1250 = 1/2."""
    part = samples.release("r", samples.linear("outer", steps="1"), "gaussian-matrix", variance="1")
    part["mechanism"]["diagonal"] = 2
    pair = [[{"features": {"phi": [["3/5", "4/5"]]}}], []]
    for rho, found in (("249/1000", "accepted"), ("1/4", "refuted")):
        assert verdict(document([part], {"currency": "zcdp", "rho": rho}, pair)) == found


def response(values: list[int], claim: dict[str, Any], times: int = 1, keep: Any = "3/4", answers: Any = "2") -> str:
    statistic = {"kind": "bits", "bits": len(values), "ones": len(values)}
    schedule = {"kind": "repeat", "times": times, "noise": "fresh"}
    part = samples.release("r", statistic, "randomised-response", schedule, keep=keep, answers=answers)
    pair = [[{"vectors": {"r": values}}], [{"vectors": {"r": [0] * len(values)}}]]
    return verdict(document([part], claim, pair, relation="replace-one"))


def test_losses_of_randomised_response() -> None:
    """Two bits in two values: 4·log 3 = 4.394, with probability (3/4)⁴; of three answers log(2·.6/.4) a bit."""
    for epsilon, found in (("439/100", "accepted"), ("44/10", "refuted")):
        assert response([1, 1], {"currency": "pure", "epsilon": epsilon}, 2) == found
    exact = 0.75**4 * (1 - math.exp(4 - 4 * math.log(3)))
    for factor, found in ((0.999, "accepted"), (1.001, "refuted")):
        claim = {"currency": "approx", "epsilon": 4, "delta": str(F(exact * factor).limit_denominator(10**12))}
        assert response([1, 1], claim, 2) == found
    for epsilon, found in (("109/100", "accepted"), ("11/10", "refuted")):
        assert response([1], {"currency": "pure", "epsilon": epsilon}, keep="3/5", answers="3") == found


@pytest.mark.parametrize("keep", ["0", "1", "2", "0 - 1", "1/3", "1/sqrt(5)"])
def test_what_is_no_randomised_response(keep: str) -> None:
    assert response([1], {"currency": "pure", "epsilon": 0}, keep=keep) == "randomised-response"


def test_a_response_is_one_of_bits() -> None:
    assert response([1], PURE_1 | {"epsilon": 0}, keep="1/2", answers="3") == "accepted"
    assert response([1], PURE_1 | {"epsilon": 0}, keep="1/2") == "refuted"
    assert response([1], PURE_1 | {"epsilon": "88/100"}, keep="1/sqrt(2)") == "accepted"  # log(1 + √2) = .8814
    assert response([1], PURE_1 | {"epsilon": "89/100"}, keep="1/sqrt(2)") == "refuted"
    table = samples.table(["state"], steps=1) | {"states": 2, "actions": 1}
    part = samples.release("r", table, "randomised-response", keep="3/4", answers="2")
    user = {"states": [0, 0], "actions": [0], "rewards": [0]}
    claim = {"currency": "pure", "epsilon": 0}
    assert verdict(document([part], claim, [[user], []])) == "randomised-response"
    assert response([1], {"currency": "gdp", "mu": 0}) == "L-GDP"  # at which ε?


def test_the_divergence_of_a_response() -> None:
    """Of order 2, log(p²/q + q²/p) = log(7/3) with p = 3/4."""
    part = samples.release("r", {"kind": "bits", "bits": 1, "ones": 1}, "randomised-response", keep="3/4", answers="2")
    pair = [[{"vectors": {"r": [1]}}], [{"vectors": {"r": [0]}}]]
    for factor, found in ((0.999, "accepted"), (1.001, "refuted")):
        claim = {"currency": "zcdp", "rho": str(F(math.log(7 / 3) / 2 * factor).limit_denominator(10**12))}
        assert verdict(document([part], claim, pair, {"order": 2}, relation="replace-one")) == found


# ── What a pair may hold ──


TABLE = samples.table(["state", "action", "next"], "reward", steps=2) | {"states": 2, "actions": 2}
USER = {"states": [0, 1, 1], "actions": [1, 0], "rewards": [1, "1/2"]}


def table(user: dict[str, Any], statistic: dict[str, Any] = TABLE, epsilon: Any = "149/100", **changed: Any) -> str:
    part = samples.release("r", statistic, "laplace", scale="1")
    return verdict(document([part], {"currency": "pure", "epsilon": epsilon}, [[user], []], **changed))


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({}, "accepted"), ({"states": [0, 1, 2]}, "R-RANGE"), ({"states": [0, 2, 1]}, "R-RANGE"),
     ({"actions": [2, 0]}, "R-RANGE"), ({"actions": [0, 2]}, "R-RANGE"), ({"rewards": [1, "-1/2"]}, "R-RANGE"),
     ({"rewards": ["3/2", 1]}, "R-RANGE"), ({"rewards": [1, "1/2", 0]}, "R-RANGE"), ({"states": [0, 1]}, "R-RANGE"),
     ({"states": [0, 1, 1, 1]}, "R-RANGE"), ({"states": [0, 1], "actions": [1], "rewards": [1]}, "R-RANGE"),
     ({"states": [-1, 1, 1]}, "R-RANGE"), ({"actions": [-1, 0]}, "R-RANGE")],
)  # fmt: skip
def test_trajectories_are_in_range(changed: dict[str, Any], rule: str) -> None:
    assert table(USER | changed) == rule


def test_a_table_is_summed_cell_by_cell() -> None:
    """Cells of both steps: pooled, two steps in one cell add up; apart, or with another next state, they do not."""
    part = samples.release("r", TABLE | {"pooled": True}, "gaussian", variance="1")
    same = {"states": [0, 0, 0], "actions": [0, 0], "rewards": [1, 1]}
    for user, rho in ((same, 2), (same | {"states": [0, 0, 1]}, 1), (same | {"actions": [0, 1]}, 1)):
        for factor, found in (("99/100", "accepted"), ("1", "refuted")):
            claim = {"currency": "zcdp", "rho": str(F(factor) * rho)}
            assert verdict(document([part], claim, [[user], []])) == found
    onward = part | {"statistic": TABLE | {"pooled": True, "cells": ["next"]}}
    user = {"states": [0, 1, 1], "actions": [0, 0], "rewards": [1, 1]}  # state 1 comes next twice
    for rho, found in (("199/100", "accepted"), ("2", "refuted")):
        assert verdict(document([onward], {"currency": "zcdp", "rho": rho}, [[user], []])) == found
    apart = part | {"statistic": TABLE}
    assert verdict(document([apart], {"currency": "zcdp", "rho": 1}, [[same], []])) == "refuted"


def test_no_trajectory_is_longer_than_the_limit() -> None:
    for length, rule in ((STEPS, "accepted"), (STEPS + 1, "R-RANGE")):
        user = {"states": [0] * (length + 1), "actions": [0] * length, "rewards": [1] * length}
        assert table(user) == rule
    nothing = TABLE | {"steps": 0}
    assert table({"states": [0], "actions": [], "rewards": []}, nothing) == "refuted"


@pytest.mark.parametrize(
    ("statistic", "vector", "rule"),
    [({"kind": "bits", "bits": 3, "ones": 2}, [1, 0, 1], "accepted"),
     ({"kind": "bits", "bits": 3, "ones": 2}, [1, 1, 1], "R-RANGE"),
     ({"kind": "bits", "bits": 3, "ones": 2}, [1, 1], "R-RANGE"),
     ({"kind": "bits", "bits": 3, "ones": 2}, [1, 1, 0, 0], "R-RANGE"),
     ({"kind": "bits", "bits": 3, "ones": 2}, [2, 0, 0], "R-RANGE"),
     ({"kind": "bits", "bits": 3, "ones": 2}, ["1/2", 1, 0], "R-RANGE"),
     ({"kind": "bounded", "l1": 2, "l2": 2}, [2], "accepted"),
     ({"kind": "bounded", "l1": 2, "l2": 2}, [1, -1], "accepted"),
     ({"kind": "bounded", "l1": 2, "l2": 3}, [2, 1], "R-RANGE"),
     ({"kind": "bounded", "l1": 2, "l2": 3}, [-2, -1], "R-RANGE"),
     ({"kind": "bounded", "l1": 4, "l2": 2}, [2, 1], "R-RANGE"),
     ({"kind": "bounded", "l1": 4, "l2": 3}, [3], "accepted"), ({"kind": "bounded", "l1": 4, "l2": 3}, [4], "R-RANGE"),
     ({"kind": "bounded", "l1": 4, "l2": -3}, [2], "R-RANGE"),
     ({"kind": "bounded", "l1": 2, "l2": ["+", 1, ["sqrt", ["*", 2, 2]]]}, [2], "accepted"),
     ({"kind": "stated", "l1": 2, "l2": 2}, [2], "assumed"),
     ({"kind": "selection", "moves": 2}, [2], "R-STATISTIC")],
)  # fmt: skip
def test_vectors_are_in_range(statistic: dict[str, Any], vector: list[Any], rule: str) -> None:
    part = samples.release("r", statistic, "laplace", scale="1")
    claim = {"currency": "pure", "epsilon": "199/100"}
    assert verdict(document([part], claim, [[{"vectors": {"r": vector}}], []])) == rule


SUM = samples.linear("sum", "h", "h", "2", "2") | {"signed": False}
LINEAR = {"features": {"phi": [[1], [0, 2]]}, "targets": {"r": [1, 2]}, "weights": {"r": [0, 2]}}


@pytest.mark.parametrize(
    ("changed", "statistic", "rule"),
    [({}, SUM, "accepted"), ({"features": {"phi": [[1], [0, "21/10"]]}}, SUM, "R-RANGE"),
     ({"features": {"phi": [[2], [0, 2]]}}, SUM, "R-RANGE"), ({"features": {"phi": [[1]]}}, SUM, "R-RANGE"),
     ({"features": {"other": [[1], [0, 2]]}}, SUM, "R-RANGE"), ({"targets": {"r": [2, 2]}}, SUM, "R-RANGE"),
     ({"targets": {"r": [-1, 2]}}, SUM, "R-RANGE"), ({"targets": {"r": [-1, 2]}}, SUM | {"signed": True}, "accepted"),
     ({"targets": {"r": [-2, 2]}}, SUM | {"signed": True}, "R-RANGE"), ({"targets": {"r": [1]}}, SUM, "R-RANGE"),
     ({"targets": {}}, SUM, "R-RANGE"), ({"weights": {"r": [0, 3]}}, SUM, "R-RANGE"),
     ({"weights": {"r": [0, -2]}}, SUM, "R-RANGE"), ({"weights": {"r": [1]}}, SUM, "R-RANGE"),
     ({"weights": {}}, SUM, "refuted"), ({"targets": {"r": ["-1/2", 2]}}, SUM, "R-RANGE"),
     ({"features": {"phi": [[1], [0] * (FEATURES - 1) + [2]]}}, SUM, "accepted"),
     ({"features": {"phi": [[1], [0] * FEATURES + [2]]}}, SUM, "R-RANGE"),
     ({}, SUM | {"weight": -1}, "R-RANGE"), ({}, SUM | {"feature": -9}, "R-RANGE"),
     ({"targets": {}}, SUM | {"part": "outer", "target": 1}, "accepted"),
     ({"features": {"phi": [[1]] * (STEPS + 1)}, "targets": {"r": [1] * (STEPS + 1)}, "weights": {}},
      samples.linear("sum", "1", "1", "1", str(STEPS + 1)), "R-RANGE")],
)  # fmt: skip
def test_linear_data_is_in_range(changed: dict[str, Any], statistic: dict[str, Any], rule: str) -> None:
    """φ of length 2 at the second step, target 2, weight 2: a change of 8 in one coordinate (outer: 2·4)."""
    part = samples.release("r", statistic, "laplace", scale="1")
    claim = {"currency": "pure", "epsilon": "79/10"}
    assert verdict(document([part], claim, [[LINEAR | changed], []])) == rule


@pytest.mark.parametrize("name", ["feature", "weight", "target"])
def test_bounds_of_linear_data_are_met_below_their_enclosure(name: str) -> None:
    """A number above √2 by less than the width of its enclosure is out of range, one below it is not."""
    low = F(math.isqrt(2 * 10**120), 10**60)
    for number, rule in ((low - F(1, 10**57), "accepted"), (low + F(1, 10**60), "R-RANGE")):
        statistic = samples.linear("sum", "1", "1", "1", "1") | {name: samples.term("sqrt(2)")}
        data = {"feature": "1", "target": "1", "weight": "1"} | {name: str(number)}
        user = {"features": {"phi": [[data["feature"]]]}, "targets": {"r": [data["target"]]},
                "weights": {"r": [data["weight"]]}}  # fmt: skip
        part = samples.release("r", statistic, "laplace", scale="1")
        assert verdict(document([part], PURE_1, [[user], []])) == rule


SPLIT = samples.table(["state"], steps=1) | {"states": 3, "actions": 2}
LEFT, RIGHT = ({"states": [0, s], "actions": [0], "rewards": [0]} for s in (1, 2))
NEXT = SPLIT | {"cells": ["next"]}


@pytest.mark.parametrize(
    ("relation", "most", "pair", "rule"),
    [("add-remove", 1, [[LEFT], []], "accepted"), ("add-remove", 1, [[], [LEFT]], "accepted"),
     ("zero-out", 1, [[LEFT], []], "accepted"), ("zero-out", 1, [[LEFT], [RIGHT]], "R-PAIR"),
     ("add-remove", 1, [[LEFT, LEFT], []], "R-PAIR"), ("add-remove", 2, [[], [LEFT, LEFT]], "accepted"),
     ("add-remove", 2, [[LEFT], [RIGHT]], "R-PAIR"), ("replace-one", 1, [[LEFT], []], "R-PAIR"),
     ("replace-one", 1, [[], [LEFT]], "R-PAIR"), ("replace-one", 1, [[], []], "R-PAIR"),
     ("replace-one", 1, [[LEFT], [RIGHT]], "accepted"), ("replace-one", 2, [[LEFT], [RIGHT, RIGHT]], "accepted"),
     ("replace-one-same-start", 1, [[LEFT], [RIGHT]], "accepted"),
     ("replace-one-same-start", 2, [[LEFT], [RIGHT, RIGHT]], "R-PAIR"),
     ("replace-one-same-start", 1, [[LEFT], [RIGHT | {"actions": [1]}]], "R-PAIR"),
     ("replace-one-same-start", 1, [[LEFT], [RIGHT | {"states": [1, 2]}]], "R-PAIR"),
     ("replace-one-same-start", 2, [[LEFT, LEFT], [RIGHT, RIGHT | {"actions": [1]}]], "R-PAIR"),
     ("add-remove", 2, [[LEFT, LEFT | {"states": [0, 1, 1], "actions": [0, 0], "rewards": [0, 0]}], []], "R-RANGE")],
)  # fmt: skip
def test_pairs_are_neighbours(relation: str, most: int, pair: list[Any], rule: str) -> None:
    part = samples.release("r", NEXT, "laplace", scale="1")
    claim, unit = {"currency": "pure", "epsilon": "9/10"}, {"who": "user", "trajectories": most}
    assert verdict(document([part], claim, pair, relation=relation, unit=unit)) == rule


def test_a_shared_start_needs_a_first_step() -> None:
    part = samples.release("r", {"kind": "bits", "bits": 1, "ones": 1}, "laplace", scale="1")
    pair = [[{"vectors": {"r": [1]}}], [{"vectors": {"r": [0]}}]]
    claim = {"currency": "pure", "epsilon": "1/2"}
    assert verdict(document([part], claim, pair, relation="replace-one")) == "accepted"
    assert verdict(document([part], claim, pair, relation="replace-one-same-start")) == "R-PAIR"


@pytest.mark.parametrize("schedule", [{"kind": "tree", "leaves": 4}, {"kind": "disjoint"}, {"kind": "once"}])
@pytest.mark.parametrize("sides", [(2, 1), (1, 2)])
def test_several_trajectories_are_not_in_one_batch(schedule: dict[str, Any], sides: tuple[int, int]) -> None:
    part = samples.release("r", NEXT, "laplace", schedule, scale="1")
    pair, unit = [[LEFT] * sides[0], [RIGHT] * sides[1]], {"who": "user", "trajectories": 2}
    found = verdict(document([part], PURE_1, pair, relation="replace-one", unit=unit))
    assert found == ("accepted" if schedule["kind"] == "once" else "T-TOUCH")


def test_releases_used_are_of_one_part() -> None:
    parts = [
        samples.release(name, SPLIT, "laplace", scale="1") | ({"part": part} if part else {})
        for name, part in (("all", ""), ("left", "a"), ("right", "b"))
    ]
    claim = {"currency": "pure", "epsilon": "19/10"}
    for using, part, rule in (
        (["all", "left"], "a", "accepted"), (["left", "right"], "a", "evidence"), (["all", "left"], "", "evidence"),
        (["right", "all"], "b", "accepted"), (["all", "other"], "a", "evidence"), ([], "a", "evidence"),
        (["all"], "", "refuted"), (["all", "all"], "", "evidence"), (["all"], "a", "refuted"),
    ):  # fmt: skip
        more = {"using": using} | ({"part": part} if part else {})
        assert verdict(document(parts, claim, [[LEFT], []], more)) == rule


def test_sizes_of_the_evidence_are_limited() -> None:
    part = samples.release("r", SPLIT, "laplace", scale="1")
    unit = {"who": "user", "trajectories": 30}
    for number, rule in ((20, "accepted"), (21, "R-PAIR")):
        assert verdict(document([part], PURE_1, [[LEFT] * number, []], unit=unit)) == rule
    for pair in ([[LEFT]], [[LEFT], [], []]):
        assert verdict(document([part], PURE_1 | {"epsilon": 0}, pair)) == "R-PAIR"
    zero = {"currency": "zcdp", "rho": "1/10"}
    for order, rule in (
        (1, "evidence"),
        (1001, "evidence"),
        ("101/100", "accepted"),
        (2, "accepted"),
        (1000, "refuted"),
    ):
        assert verdict(document([part], zero, [[LEFT], []], {"order": order})) == rule
    for wrong in ("answers", ["answers"], {"answers": {}}, 7):
        assert verdict(document([part], PURE_1, []) | {"evidence": wrong}) in ("evidence", "L-PATTERN")


@pytest.mark.parametrize("law", ["theorem", "noisy-max"])
def test_other_mechanisms_have_no_exact_loss(law: str) -> None:
    part = samples.release("r", SPLIT, law, **({"cost": "1"} if law == "theorem" else {"scale": "1"}))
    more = {"currency": "pure", "theorem": "x"} if law == "theorem" else {"noise": "laplace", "one_sided": False}
    part["mechanism"] |= more
    assert verdict(document([part], PURE_1 | {"epsilon": 0}, [[LEFT], []])) == "R-STATISTIC"


@pytest.mark.parametrize(
    ("cells", "states", "users", "rule"),
    [(["state"], 1, [0], "refuted"), (["state"], 2, [0], "accepted"), (["state"], 2, [0, 1], "refuted"),
     (["state"], 2, [0, 0, 1], "accepted"), (["state", "action"], 1, [0], "accepted"), (["next"], 1, [0], "refuted"),
     (["next"], 2, [0], "accepted"), (["action"], 5, [0], "accepted")],
)  # fmt: skip
def test_one_noise_hides_what_is_the_same_in_all_cells(
    cells: list[str], states: int, users: list[int], rule: str
) -> None:
    statistic = samples.table(cells, steps=1) | {"states": states, "actions": 2}
    part = samples.release("r", statistic, "laplace", scale="1") | {"shared": "cells"}
    side = [{"states": [s, s], "actions": [0], "rewards": [0]} for s in users]
    unit = {"who": "user", "trajectories": 3}
    assert verdict(document([part], PURE_1, [side, []], unit=unit)) == rule


def test_cells_that_all_change_alike_stay_hidden_in_many_values() -> None:
    user = {"states": [0, 0], "actions": [0], "rewards": [0]}
    statistic = samples.table(["state"], steps=1) | {"states": 1, "actions": 1}
    for times, noise, rule in ((2, "fresh", "refuted"), (2, "shared", "accepted"), (1, "shared", "refuted")):
        schedule = {"kind": "repeat", "times": times, "noise": noise}
        part = samples.release("r", statistic, "laplace", schedule, scale="1") | {"shared": "cells"}
        assert verdict(document([part], PURE_1, [[user], []])) == rule


ADDED = {
    "laplace": {"scale": "1"}, "discrete-laplace": {"scale": "1"}, "gaussian": {"variance": "1"},
    "discrete-gaussian": {"variance": "1"}, "gaussian-matrix": {"variance": "1", "diagonal": 2},
}  # fmt: skip


@pytest.mark.parametrize("law", ADDED)
def test_any_noise_that_is_added_cancels(law: str) -> None:
    twice = {"kind": "repeat", "times": 2, "noise": "shared"}
    part = samples.release("r", SPLIT, law, twice, **ADDED[law])
    assert verdict(document([part], PURE_1, [[LEFT], []])) == "accepted"


def test_cells_are_those_of_all_steps() -> None:
    """One step of two, both of one cell: a table for each step has two cells, a pooled one has one."""
    user = {"states": [0, 0, 0], "actions": [0, 0], "rewards": [1, 0]}
    for pooled, rule in ((False, "accepted"), (True, "refuted")):
        statistic = samples.table(["state"], "reward", 2) | {"states": 1, "actions": 1, "pooled": pooled}
        part = samples.release("r", statistic, "laplace", scale="1") | {"shared": "cells"}
        assert verdict(document([part], PURE_1, [[user], []])) == rule
    bit = samples.release("r", {"kind": "bits", "bits": 1, "ones": 1}, "laplace", scale="1") | {"shared": "cells"}
    assert verdict(document([bit], PURE_1, [[{"vectors": {"r": [1]}}], []])) == "L-SHARED"


def test_discrete_noise_is_of_integers() -> None:
    for law, terms in (("discrete-laplace", {"scale": "1"}), ("discrete-gaussian", {"variance": "1"})):
        part = samples.release("r", {"kind": "bounded", "l1": 2, "l2": 2}, law, **terms)
        for value, rule in (("3/2", law), (2, "accepted")):
            pair = [[{"vectors": {"r": [value]}}], []]
            assert verdict(document([part], PURE_1, pair)) == rule


# ── Answers of a sparse vector ──


def pattern(
    above: list[Any], first: list[Any], second: list[Any], claim: dict[str, Any] = PURE_1, *, one_sided: bool = False,
    name: str = "s", moves: Any = 1, **terms: str,
) -> str:  # fmt: skip
    terms = {"threshold_scale": "1", "query_scale": "0", "positives": "1", "queries": "400"} | terms
    vector = samples.release("s", {"kind": "selection", "moves": moves}, "sparse-vector", **terms)
    vector["mechanism"]["one_sided"] = one_sided
    bit = samples.release("b", {"kind": "bits", "bits": 1, "ones": 1}, "laplace", scale="1")
    answers = {"release": name, "above": above, "first": first, "second": second}
    return verdict(document([bit, vector], claim, []) | {"evidence": {"answers": answers}})


BELOW, ABOVE = False, True


@pytest.mark.parametrize(
    ("above", "first", "second", "rule"),
    [([BELOW, ABOVE], [0, 1], [1, 0], "accepted"), ([BELOW, ABOVE], [0, 1], [1, 1], "accepted"),
     ([BELOW, ABOVE], [0, 1], [0, 1], "L-PATTERN"), ([BELOW, ABOVE], [1, 0], [0, 1], "L-PATTERN"),
     ([BELOW, ABOVE], [1, 1], [2, 0], "L-PATTERN"), ([BELOW, BELOW], [0, 0], [1, 1], "L-PATTERN"),
     ([ABOVE], [0], [1], "L-PATTERN"), ([BELOW, ABOVE, BELOW], [0, 1, 0], [1, 0, 0], "L-PATTERN"),
     ([BELOW, BELOW, ABOVE], [0, 0, 1], [0, 1, 1], "accepted"), ([BELOW, ABOVE], [0, 2], [0, 0], "L-PATTERN"),
     ([BELOW, ABOVE], [0, 1], [2, 1], "L-PATTERN"), ([BELOW, ABOVE], [0, 1, 1], [1, 0], "L-PATTERN"),
     ([BELOW, ABOVE], [0, 1], [1, 0, 0], "L-PATTERN"), ([BELOW, ABOVE], [0, 1, 5], [1, 0, 5], "L-PATTERN"),
     ([0, 1], [0, 1], [1, 0], "L-PATTERN"), ([0, ABOVE], [0, 1], [1, 0], "L-PATTERN"), ([], [], [], "L-PATTERN")],
)  # fmt: skip
def test_answers_that_one_neighbour_cannot_give(
    above: list[Any], first: list[Any], second: list[Any], rule: str
) -> None:
    assert pattern(above, first, second) == rule


def test_answers_end_with_the_last_positive() -> None:
    above, first, second = [ABOVE, BELOW, ABOVE], [1, 0, 1], [1, 1, 1]
    assert pattern(above, first, second) == "L-PATTERN"
    assert pattern(above, first, second, positives="2") == "accepted"


@pytest.mark.parametrize(("queries", "rule"), [("2", "accepted"), ("1", "L-PATTERN"), ("5/2", "evaluate")])
def test_there_are_no_more_answers_than_queries(queries: str, rule: str) -> None:
    assert pattern([False, True], [0, 1], [1, 0], queries=queries) == rule


def test_queries_without_noise_move_as_declared() -> None:
    given = ([BELOW, ABOVE], [0, 1], [1, 0])
    assert pattern(*given, query_scale="1") == "L-PATTERN"
    assert pattern(*given, threshold_scale="0") == "L-PATTERN"
    assert pattern(*given, threshold_scale="sqrt(2)*sqrt(2) - 2") == "L-PATTERN"
    assert pattern(*given, threshold_scale="1/2") == "accepted"
    assert pattern(*given, one_sided=True) == "L-PATTERN"
    assert pattern([BELOW, ABOVE], [0, 1], [1, 1], one_sided=True) == "accepted"
    assert pattern([BELOW, ABOVE], [0, 1], [0, 0], one_sided=True) == "accepted"
    assert pattern([BELOW, BELOW, ABOVE], [0, 0, 1], [1, "1/2", 1], one_sided=True) == "accepted"
    assert pattern([BELOW, ABOVE, ABOVE], [0, 1, 1], [0, "1/2", 0], one_sided=True, positives="2") == "accepted"
    above_root = str(F(math.isqrt(2 * 10**120) + 1, 10**60))
    assert pattern([BELOW, ABOVE], [0, 1], [above_root, 1], moves=["sqrt", 2]) == "L-PATTERN"
    assert pattern([BELOW, ABOVE], [0, 1], ["7/5", 1], moves=["sqrt", 2]) == "accepted"
    for name in ("b", "other"):
        assert pattern(*given, name=name) == "L-PATTERN"


@pytest.mark.parametrize(
    ("claim", "rule"),
    [({"currency": "gdp", "mu": 9}, "accepted"), ({"currency": "zcdp", "rho": 9}, "accepted"),
     ({"currency": "approx", "epsilon": 0, "delta": 0}, "L-PATTERN")],
)  # fmt: skip
def test_what_cannot_be_answered_refutes_claims_without_delta(claim: dict[str, Any], rule: str) -> None:
    assert pattern([BELOW, ABOVE], [0, 1], [1, 0], claim) == rule


def test_a_sentence_names_what_was_answered() -> None:
    vector = samples.release("s", {"kind": "selection", "moves": 1}, "sparse-vector", threshold_scale="1",
                             query_scale="0", positives="1", queries="9")  # fmt: skip
    vector["mechanism"]["one_sided"] = False
    answers = {"release": "s", "above": [False, True], "first": [0, 1], "second": [1, 0]}
    whole = document([vector], PURE_1, []) | {"evidence": {"answers": answers}}
    assert "answers of s that one of two neighbours cannot give" in check(mutations.data(samples.sealed(whole)))
