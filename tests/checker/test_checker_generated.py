"""Generated declarations with a claim just above or just below what a naive twin computes: accepted and rejected.

Every statistic, law, schedule and relation occurs. The twin shares no line with the checker.
"""

import random
from fractions import Fraction
from typing import Any

import pytest

import certificate_mutations as mutations
import certificate_samples as samples
import certificate_twins as twins
from privcheck_check.check import check, needed
from privcheck_check.declared import read_declared
from privcheck_check.values import Rejected

RELATIONS = ["add-remove", "zero-out", "replace-one", "replace-one-same-start"]
PURE = ["laplace", "discrete-laplace", "randomised-response", "noisy-max",
        "sparse-vector", "theorem"]  # fmt: skip
GAUSSIAN = ["gaussian", "discrete-gaussian", "gaussian-matrix"]


def number(rng: random.Random, low: int = 1, high: int = 40) -> str:
    return str(Fraction(rng.randrange(low, high), rng.randrange(1, 8)))


def statistic(kind: str, law: str, rng: random.Random) -> dict[str, Any]:
    match kind:
        case "table":
            cells = rng.choice([["state"], ["state", "action"], ["state", "action", "next"], ["next"], ["action"]])
            weight = "one" if "discrete" in law else rng.choice(["one", "reward", "cost", "centred-reward"])
            return samples.table(cells, weight) | {"pooled": rng.random() < 0.3}
        case "linear":
            part = "outer" if law == "gaussian-matrix" else rng.choice(["sum", "sum", "outer"])
            found = samples.linear(
                part, "1" if part == "outer" else rng.choice(["H - h + 1", "1/2", "h"]), "3/2", "1/2"
            )
            return found | {"signed": rng.random() < 0.5}
        case "bits":
            return {"kind": "bits", "bits": 4, "ones": rng.randrange(1, 5)}
        case "bounded":
            return {"kind": "bounded", "l1": "3", "l2": "2"}
        case "selection":
            return {"kind": "selection", "moves": number(rng)}
        case _:
            return {"kind": "stated", "l1": number(rng), "l2": number(rng)}


def fitting(law: str, rng: random.Random, *, computed: bool) -> str:
    """A kind of statistic that goes with the law; `computed` from data."""
    if law in ("noisy-max", "sparse-vector"):
        return "selection"
    if law == "theorem":
        return "stated"
    if law == "gaussian-matrix":
        return "linear"
    if law == "randomised-response":
        return "bits"
    if "discrete" in law:
        return rng.choice(["table", "bits"])
    kinds = ["table", "bits", "bounded"] + (["linear"] if law == "gaussian" else []) + ([] if computed else ["stated"])
    return rng.choice(kinds)


def mechanism(law: str, rng: random.Random) -> dict[str, Any]:
    terms: dict[str, Any] = {
        "laplace": {"scale": number(rng)}, "discrete-laplace": {"scale": number(rng)},
        "gaussian": {"variance": number(rng)},
        "discrete-gaussian": {"variance": number(rng)},
        "gaussian-matrix": {"variance": number(rng), "diagonal": rng.choice([1, 2, "1/2", 3])},
        "randomised-response": {"keep": rng.choice(["3/5", "3/4", "9/10"]), "answers": rng.choice([2, 3])},
        "noisy-max": {"scale": number(rng), "noise": rng.choice(["laplace", "exponential", "gumbel"]),
                      "one_sided": rng.random() < 0.5},
        "sparse-vector": {"threshold_scale": number(rng), "query_scale": number(rng), "positives": 3,
                          "queries": rng.choice([2, 9]), "one_sided": rng.random() < 0.5},
        "theorem": {"cost": number(rng), "currency": "pure", "theorem": "by hand"},
    }[law]  # fmt: skip
    return {"law": law, **terms}


def schedule(rng: random.Random, *, local: bool) -> dict[str, Any]:
    return {"kind": "local"} if local else rng.choice([
        {"kind": "once"}, {"kind": "disjoint"}, {"kind": "repeat", "times": rng.randrange(1, 5), "noise": "fresh"},
        {"kind": "tree", "leaves": rng.randrange(1, 20)},
    ])  # fmt: skip


def declaration(laws: list[str], rng: random.Random, claim: dict[str, Any], *, computed: bool) -> dict[str, Any]:
    local = rng.random() < 0.15
    relation = rng.choice(RELATIONS[2:] if local else RELATIONS)
    releases = []
    for i in range(rng.choice([1, 1, 2, 3])):
        law = rng.choice(laws)
        made = {"name": f"r{i}", "statistic": statistic(fitting(law, rng, computed=computed), law, rng),
                "mechanism": mechanism(law, rng), "schedule": schedule(rng, local=local)}  # fmt: skip
        releases.append(made | ({"part": rng.choice("ab")} if not computed and rng.random() < 0.2 else {}))
    batches = [each for each in releases if each["schedule"]["kind"] in ("disjoint", "tree")]
    stated = any(r["statistic"]["kind"] == "stated" or r["mechanism"]["law"] == "theorem" for r in batches)
    return {
        "name": "generated", "source": "", "relation": relation, "model": "local" if local else "central",
        "unit": {"who": "user", "trajectories": 1 if computed or stated else rng.choice([1, 1, 2])},
        "parameters": {"H": samples.integer(2), "S": samples.integer(3), "A": samples.integer(2)},
        "releases": releases, "claim": claim | {"source": ""},
    }  # fmt: skip


def judged(document: dict[str, Any]) -> str:
    """The rule that rejects a sealed certificate, or "accepted"."""
    try:
        check(mutations.data(document))
    except Rejected as fault:
        return fault.rule
    return "accepted"


def accepted(document: dict[str, Any]) -> bool:
    rule = judged(samples.sealed(document))
    assert rule in ("accepted", "refuted", "T-COMPOSE", *PURE, *GAUSSIAN)
    return rule == "accepted"


def near(value: float, factor: str) -> str:
    return str(Fraction(value).limit_denominator(10**9) * Fraction(factor) if value > 1e-4 else Fraction(value))


SCOPES = {"holds-at": "these numbers", "holds-for-all": "all parameters"}
ROUTES = [("C-PURE", "pure", "epsilon", PURE), ("C-ZCDP", "zcdp", "rho", PURE + GAUSSIAN),
          ("C-GDP", "gdp", "mu", [GAUSSIAN[0], GAUSSIAN[2]])]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("route", ROUTES, ids=[each[0] for each in ROUTES])
def test_claims_at_the_edge_of_what_is_derived(route: tuple[str, str, str, list[str]], seed: int) -> None:
    rule, currency, field, laws = route
    rng = random.Random(f"{rule} {seed}")
    declared = declaration(laws, rng, {"currency": currency, field: 1}, computed=False)
    at = {"H": 2.0, "S": 3.0, "A": 2.0}
    parts = {each.get("part") for each in declared["releases"]}
    for kind in ("holds-at", "holds-for-all"):
        costs = [twins.cost(declared, each, at, currency, tight=kind == "holds-at") for each in declared["releases"]]
        sums = [
            sum(c for c, r in zip(costs, declared["releases"], strict=True) if r.get("part") in (None, part))
            for part in parts - {None} or {None}
        ]
        for factor, expected in (("1000001/1000000", True), ("999999/1000000", False)):
            total = near(max(sums), "1000001/1000000")
            claimed = ["sqrt", near(max(sums), "1000002/1000000")] if currency == "gdp" else total
            steps = [
                {"rule": each["mechanism"]["law"], "release": each["name"], "at_most": near(c, "10000001/10000000")}
                for c, each in zip(costs, declared["releases"], strict=True)
            ]
            wrong = rng.randrange(len(steps) + 1)  # a cost or the total, whichever is too small
            if not expected and wrong < len(steps):
                steps[wrong]["at_most"] = near(costs[wrong], factor)
            elif not expected:
                total = near(max(sums), factor)
            document = {
                "format": "privcheck-certificate/1", "kind": kind,
                "declared": declared | {"claim": {"currency": currency, field: claimed, "source": ""}},
                "assumed": samples.assumed(*needed(read_declared(declared), kind)),
                "steps": [*steps, {"rule": "T-COMPOSE", "at_most": total}, {"rule": rule}],
                "conclusion": samples.HOLDS | {"scope": SCOPES[kind]},
            }  # fmt: skip
            if kind == "holds-for-all":
                document["bounds"] = []
                # at H = 2 only: the least value of a claim for all is not an upper end
                document["declared"] = {**document["declared"], "parameters": {}}
                document["declared"]["releases"] = [fixed(each) for each in declared["releases"]]
            assert accepted(document) == expected, (factor, wrong)


def fixed(value: Any) -> Any:
    """The release with its sizes put in."""
    if isinstance(value, dict):
        return {key: fixed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [fixed(each) for each in value]
    return {"H": 2, "S": 3, "A": 2}.get(value, value) if isinstance(value, str) else value


def user(declared: Any, rng: random.Random, start: tuple[int, int] | None) -> dict[str, Any]:
    """Random data in range: two steps, features of norm at most 3/2, targets and weights at their ends or between."""
    states, actions = [rng.randrange(3) for _ in range(3)], [rng.randrange(2) for _ in range(2)]
    if start is not None:
        states[0], actions[0] = start
    vectors, targets, weights = {}, {}, {}
    for each in declared["releases"]:
        made = each["statistic"]
        if made["kind"] == "bits":
            ones = rng.sample(range(4), rng.randrange(made["ones"] + 1))
            vectors[each["name"]] = [int(i in ones) for i in range(4)]
        if made["kind"] == "bounded":
            vectors[each["name"]] = rng.choice([["2", 0], ["-6/5", "8/5"], ["1/2", "-1/2"], [0, 0]])
        if made["kind"] == "linear" and made["part"] == "sum":
            ends = [Fraction(twins.value(made["target"], {"H": 2.0, "h": h})) for h in (1.0, 2.0)]
            signs = [-1, Fraction(-1, 2)] if made["signed"] else []
            targets[each["name"]] = [str(end * rng.choice([0, 1, Fraction(1, 3), *signs])) for end in ends]
        if made["kind"] == "linear" and start is None and rng.random() < 0.7:
            weights[each["name"]] = [rng.choice([0, "1/2", "1/5"]) for _ in range(2)]
        elif made["kind"] == "linear":
            weights[each["name"]] = ["1/2", "1/2"]
    phi = [rng.choice([["3/2", 0], [0, "3/2"], ["9/10", "-6/5"], ["-3/2", 0], ["1/2", "1/2"]]) for _ in range(2)]
    if start is not None:
        phi[0] = ["1/2", "1/2"]
    return {"states": states, "actions": actions, "rewards": [rng.choice([0, 1, "1/3"]) for _ in range(2)],
            "features": {"phi": phi}, "vectors": vectors, "targets": targets, "weights": weights}  # fmt: skip


LOSSES = [("pure", "epsilon", ["laplace", "discrete-laplace", "randomised-response"]), ("zcdp", "rho", GAUSSIAN),
          ("gdp", "mu", [GAUSSIAN[0], GAUSSIAN[2]])]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", LOSSES, ids=[each[0] for each in LOSSES])
def test_pairs_at_the_edge_of_a_claim(kind: tuple[str, str, list[str]], seed: int) -> None:
    currency, field, laws = kind
    rng = random.Random(f"{currency} {seed}")
    declared = declaration(laws, rng, {"currency": currency, field: 1}, computed=True)
    start = (rng.randrange(3), rng.randrange(2)) if declared["relation"] == "replace-one-same-start" else None
    pair = [[user(declared, rng, start)], [user(declared, rng, start)]]
    if declared["relation"] in ("add-remove", "zero-out"):
        pair[rng.randrange(2)] = []
    names = [each["name"] for each in declared["releases"]]
    document = {
        "format": "privcheck-certificate/1", "kind": "refuted", "declared": declared,
        "assumed": samples.assumed("attainable"),
        "evidence": {"pair": pair, "using": names},
        "conclusion": samples.UCB_VI["conclusion"],
    }  # fmt: skip
    at = {"H": 2.0, "S": 3.0, "A": 2.0}
    loss = twins.excess(document, at) + 1  # relative to a claim of 1
    if not loss:
        assert not accepted(document)
        return
    for factor, expected in (("999999/1000000", True), ("1000001/1000000", False)):
        edge = near(loss, factor)
        document["declared"] = declared | {
            "claim": {"currency": currency, field: ["sqrt", edge] if currency == "gdp" else edge, "source": ""}
        }
        assert accepted(document) == expected


@pytest.mark.parametrize("rule", ["C-PURE-APPROX", "C-ZCDP-APPROX", "C-ZCDP-ORDER", "C-GDP-APPROX"])
@pytest.mark.parametrize("seed", range(3))
def test_conclusions_in_epsilon_and_delta_at_the_edge(rule: str, seed: int) -> None:
    rng = random.Random(f"{rule} {seed}")
    law = "laplace" if rule == "C-PURE-APPROX" else "gaussian"
    spread = {"scale": str(rng.randrange(5, 9))} if law == "laplace" else {"variance": str(rng.randrange(3, 30))}
    bits = {"kind": "bits", "bits": 3, "ones": 2}
    declared = declaration(["gaussian"], random.Random(0), {}, computed=False) | {
        "relation": "add-remove", "model": "central", "unit": {"who": "user", "trajectories": 1},
        "releases": [samples.release("bits", bits, law, **spread)],
    }  # fmt: skip
    end = {"rule": rule} | ({"order": rng.choice([3, "7/2", 10])} if rule == "C-ZCDP-ORDER" else {})
    step = {"rule": law, "release": "bits", "at_most": samples.term(f"2/{next(iter(spread.values()))}")}
    if rule in ("C-ZCDP-APPROX", "C-ZCDP-ORDER"):
        step["at_most"] = samples.term(f"1/{spread['variance']}")
    document = {
        "format": "privcheck-certificate/1", "kind": "holds-at", "assumed": samples.assumed(),
        "steps": [step, {"rule": "T-COMPOSE", "at_most": step["at_most"]}, end], "conclusion": samples.HOLDS,
    }  # fmt: skip
    low, high = 1e-3, 60.0  # ε between them, by the twin
    for _ in range(60):
        middle = (low + high) / 2
        claim = {"currency": "approx", "epsilon": str(Fraction(middle)), "delta": "1/1000"}
        enough = twins.slack({**document, "declared": declared | {"claim": claim}}, {}) >= 0
        low, high = (low, middle) if enough else (middle, high)
    for factor, expected in (("1000001/1000000", "accepted"), ("999999/1000000", rule)):
        claim = {"currency": "approx", "epsilon": near(high, factor), "delta": "1/1000", "source": ""}
        sealed = samples.sealed(document | {"declared": declared | {"claim": claim}})
        assert judged(sealed) == expected
    for other in ({"rule": rule, "order": 3} if "order" not in end else {"rule": rule}, {"rule": "C-GDP"}, {"rule": 7}):
        steps = [*document["steps"][:2], other]
        assert judged({**sealed, "steps": steps}) in ("steps", "C-GDP")
