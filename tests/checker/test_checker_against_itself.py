"""What the checker proves, it does not refute: of random declarations, a claim that it accepts has no accepted pair.

Neither half knows the other's rules: a cost that forgets a factor is met by a pair that has it, and a pair that takes
more than it may by a cost. Seeds are fixed: nothing here depends on chance.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import certificate_mutations as mutations
import certificate_samples as samples
from privcheck_check.check import check
from privcheck_check.values import Rejected

RELATIONS = ("add-remove", "replace-one", "replace-one-same-start", "zero-out")
ROUTES = {"pure": ("C-PURE", "epsilon"), "zcdp": ("C-ZCDP", "rho"), "gdp": ("C-GDP", "mu")}
CODES = ("sequential", "attainable", "integral")
ABOUT = ("public-schedule", "secret-sample", "stated-sensitivity", "stated-change", "theorem")
DELTAS = ("1/10", "1/1000")
GRID = {"steps": 200, "digits": 20, "trim": "1/1000000000"}
STEPS = [Fraction(round(1000 * 1.02**k), 1000) for k in range(-250, 200)]  # costs and claims that are tried: .007 to 51


def accepted(document: dict[str, Any]) -> bool:
    try:
        check(mutations.data(samples.sealed(document)))
    except Rejected:
        return False
    return True


def least(document_of: Any) -> Fraction | None:
    """The least accepted number of `STEPS`, given that all larger ones are accepted too; None if the last is not."""
    if not accepted(document_of(STEPS[-1])):
        return None
    low, high = -1, len(STEPS) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accepted(document_of(STEPS[middle])) else (middle, high)
    return STEPS[high]


def about(declared: dict[str, Any]) -> list[dict[str, str]]:
    names = [release["name"] for release in declared["releases"]]
    return samples.assumed(*CODES, *(f"{code}: {name}" for code in ABOUT for name in names))


# ── Declarations ──


def a_statistic(rng: random.Random) -> dict[str, Any]:
    match rng.choice(("table", "bits", "bounded", "stated", "selection", "selection")):
        case "table":
            cells = rng.choice((["state"], ["action"], ["state", "action"], ["next", "state"]))
            weight = rng.choice(("one", "reward", "cost", "centred-reward"))
            return {
                "kind": "table", "cells": cells, "weight": weight, "pooled": rng.random() < 0.3,
                "steps": rng.randint(1, 3), "states": 2, "actions": 2,
            }  # fmt: skip
        case "bits":
            bits = rng.randint(1, 3)
            return {"kind": "bits", "bits": bits, "ones": rng.randint(1, bits)}
        case "selection":
            return {"kind": "selection", "moves": rng.choice((1, 2, "1/2"))}
        case kind:
            l1 = rng.choice((1, 2, 3))
            return {"kind": kind, "l1": l1, "l2": rng.choice((1, "1/2", l1))}


def a_mechanism(rng: random.Random, kind: str) -> dict[str, Any]:
    scale, flag = rng.choice(("1/2", 1, 2, 5)), rng.random() < 0.5
    if kind == "selection":
        if rng.random() < 0.5:
            noise = rng.choice(("exponential", "gumbel", "laplace"))
            return {"law": "noisy-max", "scale": scale, "noise": noise, "one_sided": flag}
        queries = rng.choice((1, 2, 4, 30))
        return {
            "law": "sparse-vector", "threshold_scale": scale, "query_scale": rng.choice((0, 1, 2)), "one_sided": flag,
            "positives": rng.randint(1, queries), "queries": queries,
        }  # fmt: skip
    if kind == "bits" and flag:
        return rng.choice((
            {"law": "randomised-response", "keep": rng.choice(("3/4", "9/10")), "answers": rng.choice((2, 3))},
            {"law": "shuffled-bits", "noise_bits": rng.choice((3, 10)), "chance": "1/2"},
        ))  # fmt: skip
    law = rng.choice(("laplace", "laplace", "gaussian", "discrete-laplace", "discrete-gaussian"))
    return {"law": law, **({"variance": scale} if "gaussian" in law else {"scale": scale})}


def a_schedule(rng: random.Random) -> dict[str, Any]:
    return rng.choice((
        {"kind": "once"}, {"kind": "once"}, {"kind": "disjoint"}, {"kind": "local"},
        {"kind": "repeat", "times": rng.randint(0, 3), "noise": rng.choice(("fresh", "fresh", "shared"))},
        {"kind": "tree", "leaves": rng.randint(0, 6)},
        *[{"kind": "sampled", "times": rng.randint(0, 3), "rate": rng.choice((0, 1, "1/2", "1/10"))}] * 2,
    ))  # fmt: skip


def a_release(rng: random.Random, name: str) -> dict[str, Any]:
    statistic, schedule = a_statistic(rng), a_schedule(rng)
    found = {
        "name": name, "statistic": statistic, "mechanism": a_mechanism(rng, statistic["kind"]), "schedule": schedule,
    }  # fmt: skip
    if rng.random() < 0.15:
        found["shared"] = "outputs" if schedule["kind"] in ("disjoint", "local", "tree") else "cells"
    if schedule["kind"] == "sampled" and rng.random() < 0.5:
        found["sample"] = "one"
    if rng.random() < 0.1:
        found["part"] = rng.choice(("women", "men"))
    return found


def a_declaration(rng: random.Random) -> dict[str, Any]:
    releases = [a_release(rng, name) for name in "abc"[: rng.choice((1, 1, 2, 2, 3))]]
    if len(releases) > 1 and rng.random() < 0.4:  # of one sample, or twice the same
        releases[1] = {**a_release(rng, "b"), "schedule": releases[0]["schedule"]}
        if releases[0]["schedule"]["kind"] == "sampled":
            releases[0]["sample"] = releases[1]["sample"] = "one"
            if rng.random() < 0.5:  # of two samples
                releases[1]["sample"] = "of a alone"
                del releases[0]["sample"]
        else:
            releases[1].pop("sample", None)
    model = rng.choice(("central", "central", "joint", "local", "shuffle"))
    unit = {"who": "user", "trajectories": rng.choice((1, 1, 1, 2, 3))}
    return {
        "name": "random", "source": "", "relation": rng.choice(RELATIONS), "unit": unit, "model": model,
        "parameters": {}, "releases": releases, "claim": {},
    }  # fmt: skip


def a_plain_declaration(rng: random.Random) -> dict[str, Any]:
    """One or two counts with Laplace noise under add-remove, with one to three things changed about them."""
    sampled = {"kind": "sampled", "times": rng.randint(1, 2), "rate": rng.choice(("1/2", "1/10"))}
    found = a_declaration(rng) | {"relation": "add-remove", "model": "central", "releases": []}
    found["unit"] = found["unit"] | {"trajectories": 1}
    schedule = rng.choice(({"kind": "once"}, sampled, sampled, {"kind": "tree", "leaves": 4}))
    for name in "ab"[: rng.choice((1, 2))]:
        found["releases"].append({
            "name": name, "statistic": {"kind": "bits", "bits": 1, "ones": 1},
            "mechanism": {"law": "laplace", "scale": rng.choice((1, 2))}, "schedule": schedule,
        })  # fmt: skip
    for _ in range(rng.randint(1, 3)):
        release = rng.choice(found["releases"])
        match rng.randrange(7):
            case 0:
                release["statistic"] = {"kind": "selection", "moves": 1}
                release["mechanism"] = a_mechanism(rng, "selection")
            case 1:
                release["mechanism"] = a_mechanism(rng, release["statistic"]["kind"])
            case 2 if release["schedule"] is sampled:
                for each in found["releases"]:
                    each["sample"] = "one"
            case 3 if release["schedule"] is sampled:
                release["sample"] = rng.choice(("of a alone", "a", "b"))
            case 4:
                release["shared"] = "outputs" if release["schedule"]["kind"] == "tree" else "cells"
            case 5:
                found["unit"] = found["unit"] | {"trajectories": rng.choice((2, 3))}
            case 6:
                found["relation"] = rng.choice(RELATIONS)
    return found


# ── Proofs ──


def proof(
    declared: dict[str, Any], costs: list[Fraction], claim: dict[str, Any], total: Any, rule: str
) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"rule": release["mechanism"]["law"], "release": release["name"], "at_most": str(cost)}
        for release, cost in zip(declared["releases"], costs, strict=True)
    ]
    end = [{"rule": "T-COMPOSE", "at_most": total}, {"rule": rule}]
    return {
        "format": "privcheck-certificate/1", "kind": "holds-at",
        "declared": declared | {"claim": {"source": ""} | claim},
        "assumed": about(declared), "steps": steps + ([{"rule": rule, "grid": GRID}] if rule == "C-NUMERIC" else end),
        "conclusion": samples.HOLDS,
    }  # fmt: skip


def proofs(declared: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    """Claims that the checker accepts, in every currency in which it accepts any."""
    found = []
    for currency, (rule, name) in ROUTES.items():
        costs = []
        for release in declared["releases"]:
            alone = declared | {"releases": [release]}

            def document(cost: Fraction, alone: dict[str, Any] = alone) -> dict[str, Any]:
                return proof(alone, [cost], {"currency": currency, name: 10**9}, str(10**9), rule)  # noqa: B023

            costs.append(least(document))
        if None in costs:
            continue
        known = [cost for cost in costs if cost is not None]
        power = 2 if currency == "gdp" else 1
        total = least(
            lambda to: proof(declared, known, {"currency": currency, name: str(to)}, str(to**power), rule)  # noqa: B023
        )
        if total is None:
            continue
        found.append({"currency": currency, name: str(total)})
        if currency == "gdp":
            continue
        delta, way = rng.choice(DELTAS), f"{rule}-APPROX"
        approximate = least(
            lambda to: proof(
                declared, known, {"currency": "approx", "epsilon": str(to), "delta": delta}, str(total), way  # noqa: B023
            )
        )  # fmt: skip
        if approximate is not None:
            found.append({"currency": "approx", "epsilon": str(approximate), "delta": delta})
    return found + numeric(declared, rng)


def numeric(declared: dict[str, Any], rng: random.Random) -> list[dict[str, Any]]:
    """An accepted claim by the composition on a grid, from the least accepted cost of each noisy value alone."""
    claim, costs = {"currency": "approx", "epsilon": "2000", "delta": "1/2"}, []
    for release in declared["releases"]:
        alone = declared | {"releases": [release]}
        cost = least(lambda to, alone=alone: proof(alone, [to], claim, 0, "C-NUMERIC"))
        if cost is None:
            return []
        costs.append(cost)
    delta = rng.choice(DELTAS)
    epsilon = least(
        lambda to: proof(
            declared, costs, {"currency": "approx", "epsilon": str(to), "delta": delta}, 0, "C-NUMERIC"
        )
    )  # fmt: skip
    return [] if epsilon is None else [{"currency": "approx", "epsilon": str(epsilon), "delta": delta}]


# ── Pairs ──


def a_trajectory(declared: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    length = max((r["statistic"].get("steps", 1) for r in declared["releases"]), default=1)
    state, action, reward = rng.choice((0, 1)), rng.choice((0, 1)), rng.choice((0, 1, 1))
    first = [rng.choice((0, state)), rng.choice((0, action))]
    vectors = {}
    for release in declared["releases"]:
        statistic = release["statistic"]
        match statistic["kind"]:
            case "bits":
                ones = rng.randint(0, statistic["ones"])
                vectors[release["name"]] = [1] * ones + [0] * (statistic["bits"] - ones)
                if rng.random() < 0.5:
                    vectors[release["name"]].reverse()
            case "bounded" | "stated":
                longest = min(Fraction(statistic["l1"]), Fraction(statistic["l2"]))
                vectors[release["name"]] = [str(rng.choice((1, 1, -1)) * longest)]
    return {
        "states": [first[0]] + [state] * length, "actions": [first[1]] + [action] * (length - 1),
        "rewards": [reward] * length, "vectors": vectors,
    }  # fmt: skip


def a_refutation(declared: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A pair of neighbours, far apart, with scores and queries that move as far as they may, or a little further."""
    most = declared["unit"]["trajectories"]
    sides = [[a_trajectory(declared, rng) for _ in range(rng.choice((most, 1)))] for _ in range(2)]
    if declared["relation"] in ("add-remove", "zero-out"):
        sides[rng.randrange(2)] = []
    evidence: dict[str, Any] = {"behind": {}, "crossing": {}}
    for release in declared["releases"]:
        if release["statistic"]["kind"] != "selection":
            continue
        name, mechanism, moves = release["name"], release["mechanism"], Fraction(release["statistic"]["moves"])
        far = moves * rng.choice((1, most)) * rng.choice((1, -1))
        if mechanism["law"] == "noisy-max":
            at = rng.choice((0, 1, 20, -20))
            evidence["behind"][name] = [at, str(at + far * rng.choice((1, 2)))]
            continue
        most_above = min(mechanism["positives"], mechanism["queries"])
        above = rng.choice((0, most_above, rng.randint(0, most_above)))
        counts = [rng.choice((0, mechanism["queries"] - above)), above]
        at = rng.choice((0, 5, -20))
        if mechanism["query_scale"] == 0 and declared["claim"]["currency"] != "approx":
            levels = {"first": [0, str(abs(far))], "second": [str(abs(far)), 0]}
            if rng.random() < 0.5:
                return {"answers": {"release": name, "above": [False, True]} | levels}
        other = -far if not mechanism["one_sided"] and rng.random() < 0.7 else far
        evidence["crossing"][name] = [[counts[0], at, str(at + far)], [counts[1], -at, str(-at + other)]]
    names = [release["name"] for release in declared["releases"]]
    parts = {release.get("part") for release in declared["releases"]} - {None}
    if parts:
        evidence["part"] = rng.choice(sorted(parts))
        names = [r["name"] for r in declared["releases"] if r.get("part") in (None, evidence["part"])]
    evidence["using"] = rng.sample(names, rng.randint(1, len(names))) if names and rng.random() < 0.3 else names
    evidence |= {"pair": sides} if rng.random() < 0.9 else {}
    if declared["claim"]["currency"] == "zcdp" and rng.random() < 0.7:
        evidence["order"] = rng.choice(("11/10", "2", "10", "100"))
    if declared["claim"]["currency"] == "gdp":
        evidence["epsilon"] = rng.choice((0, "1/2", 1, 3))
    return evidence


def refutation(declared: dict[str, Any], evidence: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": "privcheck-certificate/1", "kind": "refuted", "declared": declared, "assumed": about(declared),
        "evidence": evidence, "conclusion": {"verdict": "fails", "scope": "these numbers", "about": "releases"},
    }  # fmt: skip


def judged(seed: int, pairs: int = 40) -> tuple[int, int, list[dict[str, Any]]]:
    """Proved claims of a random declaration, pairs that refute half of such a claim, and pairs that refute it whole."""
    rng = random.Random(seed)
    declared = (a_declaration, a_plain_declaration)[seed % 2](rng)
    claims, near, wrong = proofs(declared, rng), 0, []
    for claim in claims:
        about_claim = declared | {"claim": {"source": ""} | claim}
        name = next(name for name in ("epsilon", "rho", "mu") if name in claim)
        half = declared | {"claim": {"source": ""} | claim | {name: str(Fraction(claim[name]) / 2)}}
        for _ in range(pairs):
            evidence = a_refutation(about_claim, rng)
            if accepted(refutation(half, evidence)):
                near += 1
                if accepted(document := refutation(about_claim, evidence)):
                    wrong.append(document)
    return len(claims), near, wrong


EVERY_CHANGE = (0, 1, 2, 10)  # 10 has two samples that an earlier checker took for one
PARTS = [pytest.param(part, marks=() if part in EVERY_CHANGE else pytest.mark.nightly) for part in range(24)]


@pytest.mark.parametrize("part", PARTS)
def test_no_claim_is_both_proved_and_refuted(part: int) -> None:
    found = [judged(seed) for seed in range(25 * part, 25 * (part + 1))]
    assert not [document for *_, wrong in found for document in wrong]
    assert sum(claims for claims, *_ in found) >= 5  # of 25 declarations, most of which have no cost at all
    assert sum(near for _, near, _ in found) >= 10
