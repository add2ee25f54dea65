"""Certificates of false statements that the checker accepted before it was read beside its rules a second time."""

from typing import Any

import pytest

import certificate_samples as samples
from certificate_verdicts import verdict

BIT = {"kind": "bits", "bits": 1, "ones": 1}
FAILS = {"verdict": "fails", "scope": "these numbers", "about": "releases"}
CELLS = {"kind": "table", "cells": ["state"], "weight": "one", "pooled": True, "steps": 1, "states": 2, "actions": 1}
STEP = {"states": [0, 0], "actions": [0], "rewards": [0]}


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


# ── What the checker accepted when selections, stated prices and samples had joined it ──


GRID = {"steps": 100, "digits": 25, "trim": "1/1000000000000000"}
SCORE = {"kind": "selection", "moves": 1}
VECTOR = {"threshold_scale": "1", "query_scale": "20", "positives": "50", "queries": "50"}
MAX = {"noise": "laplace", "one_sided": False}


def selecting(law: str, schedule: dict[str, Any], more: dict[str, Any], **terms: str) -> dict[str, Any]:
    part = samples.release("r", SCORE, law, schedule, **terms)
    part["mechanism"] |= more
    return part


def numeric(part: dict[str, Any], at_most: str, epsilon: str, delta: str = "1/1000000") -> str:
    claim = {"currency": "approx", "epsilon": epsilon, "delta": delta}
    return verdict({
        "format": "privcheck-certificate/1", "kind": "holds-at", "declared": declared(part, claim),
        "assumed": samples.assumed("sequential", "stated-sensitivity: r"), "conclusion": samples.HOLDS,
        "steps": [{"rule": part["mechanism"]["law"], "release": "r", "at_most": at_most},
                  {"rule": "C-NUMERIC", "grid": GRID}],
    })  # fmt: skip


def test_a_sparse_vector_is_charged_for_all_its_queries() -> None:
    """Fifty queries of 1/20 each: at one of them it would be (1/10, 10⁻⁶)-DP."""
    part = selecting("sparse-vector", {"kind": "once"}, {"one_sided": False}, **VECTOR)
    assert numeric(part, "1/20", "1/10") == "sparse-vector"
    assert numeric(part, "249/100", "4") == "sparse-vector"
    assert numeric(part, "5/2", "26/10") == "accepted"


def test_a_claim_below_nothing_is_not_kept_by_what_costs_nothing() -> None:
    nothing = samples.release("r", {"kind": "bounded", "l1": 0, "l2": 0}, "gaussian", variance="1")
    assert numeric(nothing, "0", "0", "0") == "accepted"
    assert numeric(nothing, "0", "-1", "1/10") == "C-NUMERIC"
    assert numeric(nothing, "0", "1", "-1/10") == "C-NUMERIC"


def fails(
    releases: list[dict[str, Any]], evidence: dict[str, Any], claim: dict[str, Any], trajectories: int = 1
) -> str:
    codes = ("attainable", "stated-law: r", "stated-change: r")
    unit = {"who": "user", "trajectories": trajectories}
    about = declared(releases[0], claim, unit=unit) | {"releases": releases}
    using = [one["name"] for one in releases]
    return verdict({
        "format": "privcheck-certificate/1", "kind": "refuted", "declared": about, "assumed": samples.assumed(*codes),
        "evidence": {"using": using} | evidence, "conclusion": FAILS,
    })  # fmt: skip


ANSWERED: list[tuple[str, dict[str, Any], dict[str, str], dict[str, Any]]] = [
    ("noisy-max", MAX, {"scale": "1"}, {"behind": {"r": [0, 2]}}),
    ("sparse-vector", {"one_sided": False},
     {"threshold_scale": "1", "query_scale": "1", "positives": "1", "queries": "9"},
     {"crossing": {"r": [[3, 0, 1], [1, 0, -1]]}}),
]  # fmt: skip


@pytest.mark.parametrize(("law", "more", "terms", "evidence"), ANSWERED)
def test_answers_that_share_a_draw_are_not_independent(
    law: str, more: dict[str, Any], terms: dict[str, str], evidence: dict[str, Any]
) -> None:
    """In four nodes of a tree the same noise gives the same answer: what one answer loses is lost once."""
    part, claim = selecting(law, {"kind": "tree", "leaves": 8}, more, **terms), {"currency": "pure", "epsilon": "5/2"}
    assert fails([part], evidence, claim) == "accepted"
    assert fails([part | {"shared": "outputs"}], evidence, claim) == "L-SHARED"


@pytest.mark.parametrize("kind", ["disjoint", "tree"])
@pytest.mark.parametrize("trajectories", [1, 3])
def test_a_batch_has_one_trajectory_of_the_unit(kind: str, trajectories: int) -> None:
    """Who is in which batch is public and may be such that no batch has two of a unit's trajectories."""
    schedule: dict[str, Any] = {"kind": kind} | ({"leaves": 1} if kind == "tree" else {})
    claim, found = {"currency": "pure", "epsilon": "1/10"}, ("T-TOUCH", "accepted")[trajectories == 1]
    part = selecting("noisy-max", schedule, MAX, scale="1")
    assert fails([part], {"behind": {"r": [0, 2]}}, claim, trajectories) == "accepted"
    assert fails([part], {"behind": {"r": [0, 3]}}, claim, trajectories) == "L-MAX"
    part = samples.release("r", {"kind": "stated", "l1": 3, "l2": 3}, "laplace", schedule, scale="1")
    assert fails([part], {"pair": [[{"vectors": {"r": [3]}}], []]}, claim, trajectories) == found


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [({"kind": "once"}, "accepted"), ({"kind": "repeat", "times": 0, "noise": "fresh"}, "L-STATED"),
     ({"kind": "tree", "leaves": 0}, "L-STATED"), ({"kind": "sampled", "times": 1, "rate": "1/9"}, "L-STATED")],
)  # fmt: skip
def test_a_stated_law_is_of_an_answer_that_leaves(schedule: dict[str, Any], rule: str) -> None:
    part = samples.release("r", {"kind": "stated", "l1": 0, "l2": 0}, "theorem", schedule, cost="1")
    part["mechanism"] |= {"currency": "pure", "theorem": "x"}
    laws = {"laws": {"r": [["1", "0"], ["0", "1"]]}}
    assert fails([part], laws, {"currency": "pure", "epsilon": 5}) == rule


@pytest.mark.parametrize("name", ["of r alone", "r", "t"])
def test_a_sample_of_one_release_is_no_other_sample(name: str) -> None:
    """Two samples of a tenth cost 2·log(1 + .1(e − 1)) = .3171, one with both values would cost .4940."""
    sampled = {"kind": "sampled", "times": 1, "rate": "1/10"}
    one, two = (samples.release(each, BIT, "laplace", sampled, scale="1") for each in ("r", "s"))
    pair = {"pair": [[{"vectors": {"r": [1], "s": [1]}}], []]}
    for epsilon, rule in (("31/100", "accepted"), ("32/100", "refuted")):
        assert fails([one, two | {"sample": name}], pair, {"currency": "pure", "epsilon": epsilon}) == rule
