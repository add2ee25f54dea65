"""Certificates of false statements that the checker accepted before it was read beside its rules a second time."""

from typing import Any

import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from privcheck_check.check import check
from privcheck_check.values import Rejected

BIT = {"kind": "bits", "bits": 1, "ones": 1}
FAILS = {"verdict": "fails", "scope": "these numbers", "about": "releases"}
CELLS = {"kind": "table", "cells": ["state"], "weight": "one", "pooled": True, "steps": 1, "states": 2, "actions": 1}
STEP = {"states": [0, 0], "actions": [0], "rewards": [0]}


def verdict(document: dict[str, Any]) -> str:
    try:
        check(mutations.data(samples.sealed(document)))
    except Rejected as fault:
        return fault.rule
    return "accepted"


def declared(release: dict[str, Any], claim: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {
        "name": "x", "source": "", "relation": "add-remove", "unit": {"who": "user", "trajectories": 1},
        "model": "central", "parameters": {}, "releases": [release], "claim": {"source": ""} | claim,
    } | changed  # fmt: skip


def refuted(
    release: dict[str, Any], user: dict[str, Any], claim: dict[str, Any], other: dict[str, Any] | None = None
) -> str:
    """The verdict on a refutation by one user, present and absent (or replaced by another)."""
    pair = [[user], [other] if other else []]
    relation = "replace-one" if other else "add-remove"
    return verdict({
        "format": "privcheck-certificate/1", "kind": "refuted", "declared": declared(release, claim, relation=relation),
        "assumed": samples.assumed("stated-law: r"), "evidence": {"pair": pair, "using": ["r"]}, "conclusion": FAILS,
    })  # fmt: skip


def holds(part: dict[str, Any], rule: str, at_most: Any, claim: dict[str, Any], **changed: Any) -> str:
    codes = ("sequential", "public-schedule: r", "stated-sensitivity: r", "theorem: r", "secret-sample: r")
    end = {"pure": "C-PURE", "zcdp": "C-ZCDP"}[claim["currency"]]
    return verdict({
        "format": "privcheck-certificate/1", "kind": "holds-at", "declared": declared(part, claim, **changed),
        "assumed": samples.assumed(*codes), "conclusion": samples.HOLDS,
        "steps": [{"rule": rule, "release": "r", "at_most": at_most}, {"rule": "T-COMPOSE", "at_most": at_most},
                  {"rule": end}],
    })  # fmt: skip


def shared(schedule: dict[str, Any], law: str = "laplace", **terms: Any) -> dict[str, Any]:
    terms = terms or {"scale": "1"}
    return samples.release("r", CELLS, law, schedule, **terms) | {"shared": "cells"}


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [({"kind": "once"}, "accepted"), ({"kind": "repeat", "times": 1, "noise": "shared"}, "accepted"),
     ({"kind": "repeat", "times": 0, "noise": "fresh"}, "refuted"), ({"kind": "tree", "leaves": 0}, "refuted"),
     ({"kind": "sampled", "times": 1, "rate": "1/100"}, "T-TOUCH")],
)  # fmt: skip
def test_cells_with_one_noise_leak_where_a_value_leaves(schedule: dict[str, Any], rule: str) -> None:
    """Of a sample of one user in a hundred, (0, ½)-DP holds whatever the noise."""
    claim = {"currency": "approx", "epsilon": 0, "delta": "1/2"}
    assert refuted(shared(schedule), STEP, claim) == rule


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_one_noise_for_several_values_leaks_where_there_are_two(times: int) -> None:
    part = samples.release("r", BIT, "laplace", {"kind": "repeat", "times": times, "noise": "shared"}, scale="1")
    found = refuted(part, {"vectors": {"r": [1]}}, {"currency": "pure", "epsilon": 100})
    assert found == ("accepted" if times > 1 else "refuted")


def test_only_added_noise_cancels() -> None:
    """The same randomised answer, given twice, is as private as once; a theorem's mechanism adds nothing."""
    twice = {"kind": "repeat", "times": 2, "noise": "shared"}
    answer = samples.release("r", BIT, "randomised-response", twice, keep="3/4", answers="2")
    claim = {"currency": "pure", "epsilon": 2}
    assert refuted(answer, {"vectors": {"r": [1]}}, claim, {"vectors": {"r": [0]}}) == "L-SHARED"
    theorem = samples.release("r", CELLS, "theorem", cost="1")
    theorem["mechanism"] |= {"currency": "pure", "theorem": "x"}
    assert refuted(theorem | {"shared": "cells"}, STEP, claim) == "L-SHARED"


def test_a_noisy_matrix_is_one_of_outer_products() -> None:
    """The cell (0, 0, 0) of a table has three numbers, as an entry of a matrix on the diagonal has."""
    statistic = CELLS | {"cells": ["state", "action", "next"]}
    part = samples.release("r", statistic, "gaussian-matrix", variance="1")
    part["mechanism"]["diagonal"] = "1/100"
    assert refuted(part, STEP, {"currency": "zcdp", "rho": 1}) == "gaussian-matrix"


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [({"kind": "once"}, "accepted"), ({"kind": "sampled", "times": 1, "rate": "1/2"}, "L-PATTERN"),
     ({"kind": "repeat", "times": 0, "noise": "fresh"}, "L-PATTERN")],
)  # fmt: skip
def test_answers_of_a_sample_can_be_given_without_the_user(schedule: dict[str, Any], rule: str) -> None:
    """Half of the time the user is not in the sample: the answers are at most twice as likely on either side."""
    part = samples.release("r", {"kind": "selection", "moves": 1}, "sparse-vector", schedule, threshold_scale="1",
                           query_scale="0", positives="1", queries="10")  # fmt: skip
    part["mechanism"]["one_sided"] = False
    answers = {"release": "r", "above": [False, True], "first": [0, 1], "second": [1, 0]}
    document = {
        "format": "privcheck-certificate/1", "kind": "refuted",
        "declared": declared(part, {"currency": "pure", "epsilon": 1}), "assumed": samples.assumed("attainable"),
        "evidence": {"answers": answers}, "conclusion": FAILS,
    }  # fmt: skip
    assert verdict(document) == rule


@pytest.mark.parametrize("schedule", [{"kind": "tree", "leaves": 4}, {"kind": "disjoint"}])
@pytest.mark.parametrize("law", ["theorem", "laplace"])
def test_what_is_said_of_one_value_is_not_said_of_several_batches(schedule: dict[str, Any], law: str) -> None:
    """Two trajectories in two batches touch two values, each as much as was said of a value."""
    statistic = {"kind": "stated", "l1": 1, "l2": 1}
    part = samples.release("r", statistic, law, schedule, **({"cost": "1"} if law == "theorem" else {"scale": "1"}))
    if law == "theorem":
        part["mechanism"] |= {"currency": "pure", "theorem": "x"}
    claim = {"currency": "pure", "epsilon": 3}
    for trajectories, rule in ((1, "accepted"), (2, "S-STATED")):
        unit = {"who": "user", "trajectories": trajectories}
        assert holds(part, law, 3, claim, unit=unit) == rule


def test_a_sample_has_a_name() -> None:
    """Two releases of a sample without a name would each be charged as if of a sample of their own."""
    sampled = {"kind": "sampled", "times": 1, "rate": "1/2"}
    part = samples.release("r", BIT, "laplace", sampled, scale="1")
    claim = {"currency": "pure", "epsilon": 1}
    assert holds(part, "laplace", 1, claim) == "accepted"
    assert holds(part | {"sample": ""}, "laplace", 1, claim) == "declared: r"


def test_answers_are_counted_in_whole_numbers() -> None:
    half = {"kind": "selection", "moves": 1}
    part = samples.release(
        "r", half, "sparse-vector", threshold_scale="1", query_scale="1", positives="1/2", queries="10"
    )
    part["mechanism"]["one_sided"] = False
    assert holds(part, "sparse-vector", 5, {"currency": "pure", "epsilon": 5}) == "evaluate"
    part = samples.release("r", BIT, "randomised-response", keep="3/4", answers="5/2")
    assert holds(part, "randomised-response", 5, {"currency": "pure", "epsilon": 5}) == "evaluate"
    claim = {"currency": "pure", "epsilon": "1/10"}
    assert refuted(part, {"vectors": {"r": [1]}}, claim, {"vectors": {"r": [0]}}) == "evaluate"


@pytest.mark.parametrize(
    ("changed", "rule"),
    [({}, "accepted"), ({"model": "local"}, "T-LOCAL"), ({"relation": "add-remove"}, "shuffled-bits")],
)
def test_shuffled_bits_have_a_shuffler_and_a_public_number(changed: dict[str, Any], rule: str) -> None:
    """In the local model each message is seen with its sender; a user who leaves sends fewer messages."""
    part = samples.release("r", BIT, "shuffled-bits", noise_bits="1000", chance="1/2")
    claim = {"currency": "approx", "epsilon": 2, "delta": "1/100"}
    about = {"relation": "replace-one", "model": "shuffle"} | changed
    document = {
        "format": "privcheck-certificate/1", "kind": "holds-at", "declared": declared(part, claim, **about),
        "assumed": samples.assumed(), "conclusion": samples.HOLDS,
        "steps": [{"rule": "shuffled-bits", "release": "r", "at_most": 2},
                  {"rule": "C-NUMERIC", "grid": {"steps": 100, "digits": 20, "trim": "1/1000000000"}}],
    }  # fmt: skip
    assert verdict(document) == rule
