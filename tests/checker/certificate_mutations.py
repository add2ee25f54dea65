"""Mutated certificates, and whether what they still say is true."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import random
from fractions import Fraction
from typing import Any

import certificate_samples as samples
import certificate_twins as naive

WORDS = [
    "add-remove", "replace-one", "replace-one-same-start", "zero-out", "laplace", "gaussian", "discrete-laplace",
    "discrete-gaussian", "gaussian-matrix", "noisy-max", "gaussian-max", "exponential", "gumbel", "theorem",
    "once", "local", "disjoint", "fresh", "shared",
    "one", "reward", "cost", "centred-reward", "state", "action", "next", "sum", "outer", "pure", "zcdp", "gdp",
    "approx", "central", "joint", "C-PURE", "C-ZCDP", "C-GDP", "C-PURE-APPROX", "C-ZCDP-APPROX", "C-GDP-APPROX",
    "T-COMPOSE",
    "H", "K", "S", "A", "rho", "epsilon", "delta", "scale", "m", "h", "integer", "real", "holds-at", "holds-for-all",
    "refuted", "B-MAX", "B-MIN", "B-BITS", "B-LOG", "+", "*", "-", "/", "^", "max", "min", "log", "sqrt", "bit_length",
    "guesses", "events", "committed", "released", "reserved", "mu2", "fails", "holds", "visits", "transitions",
]  # fmt: skip
NUMBERS: list[Any] = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    "1/2",
    "-1/2",
    "1/1000",
    10**9,
    "1/1000000000000",
    10**60,
    f"1/{10**60}",
    True,
    None,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to every value inside a document."""
    found = [path] if path else []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        found += places(each, (*path, key))
    return found


def changed(value: Any, rng: random.Random) -> Any:
    """Another value in place of a leaf or a part of the document."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, 2 * value, -value, value // 2, rng.choice(NUMBERS)])
    if isinstance(value, str):
        try:
            number = Fraction(value)
        except ValueError:
            return rng.choice(WORDS) if rng.random() < 0.8 else rng.choice(NUMBERS)
        return rng.choice([str(number * rng.choice([2, Fraction(1, 2), -1, Fraction(11, 10)])), rng.choice(NUMBERS)])
    if isinstance(value, list) and value:
        i, j = rng.randrange(len(value)), rng.randrange(len(value))
        found = list(value)
        match rng.randrange(4):
            case 0:
                del found[i]
            case 1:
                found.insert(i, copy.deepcopy(value[j]))
            case 2:
                found[i], found[j] = found[j], found[i]
            case _:
                return rng.choice(found)
        return found
    if isinstance(value, dict) and value:
        found, key = dict(value), rng.choice(list(value))
        if rng.random() < 0.5:
            del found[key]
        else:
            found[key + "x" if rng.random() < 0.5 else rng.choice(list(value))] = found[key]
        return found
    return rng.choice(NUMBERS)


def mutated(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One to three changes anywhere; the digest made right again nine times in ten."""
    found = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(places(found))
        at = found
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = changed(at[path[-1]], rng)
        if rng.random() < 0.1:  # a part of another place
            at[path[-1]] = copy.deepcopy(rng.choice([document.get("declared"), document.get("assumed"), 7]))
    if rng.random() < 0.9 and "declared" in found:
        if found.get("kind") == "ledger" and isinstance(found.get("evidence"), dict) and rng.random() < 0.7:
            with contextlib.suppress(TypeError, KeyError):
                found["evidence"]["rows"], found["declared"]["head"] = samples.chained(found["evidence"]["rows"])
        try:
            return samples.sealed(found)
        except (TypeError, ValueError):
            pass
    return found


def spoiled(text: str, rng: random.Random) -> bytes:
    """A change of the text itself: duplicate keys, NaN, floats, deep nesting, huge integers, cut or broken bytes."""
    at = rng.randrange(len(text))
    match rng.randrange(8):
        case 0:
            return text.replace("{", '{"kind": "holds-at", ', 1).encode()
        case 1:
            return text.replace("1", rng.choice(["NaN", "1.0", "1e3", "-Infinity", "01", "+1"]), 1).encode()
        case 2:
            return text.replace(": 1", ": " + "9" * rng.choice([401, 5000, 100_000]), 1).encode()
        case 3:
            return ("[" * 50_000 + text).encode()
        case 4:
            return text[:at].encode()
        case 5:
            data = bytearray(text.encode())
            data[rng.randrange(len(data))] = rng.randrange(256)
            return bytes(data)
        case 6:
            return (text[:at] + text[at : at + 40] + text[at:]).encode()
        case _:
            return (text[:-1] + ', "more": ' + "[" * 30 + "]" * 30 + "}").encode()


def parameters(declared: Any, rng: random.Random, *, corner: bool) -> dict[str, float]:
    """Random parameters in their ranges, all at an end if `corner`."""
    found = {}
    for name, each in declared["parameters"].items():
        least = float(Fraction(each["least"]))
        most = float(Fraction(each["most"])) if "most" in each else None
        if each["kind"] == "integer":
            number = least if corner else least + rng.choice([0, 1, 2, 5, rng.randrange(40)])
            number = min(number, most) if most is not None else number
        else:
            low, high = math.log(least or 1e-3), math.log(most or 30)
            number = math.exp(rng.uniform(min(low, high), high))
            if corner:
                number = most if most is not None else least or 1e-3
        found[name] = number
    return found


def values(declared: Any) -> dict[str, float]:
    return {name: float(Fraction(each["value"])) for name, each in declared["parameters"].items()}


def neighbours(document: Any) -> bool:
    """Whether the pair of a refutation is one, within range."""
    declared, (first, second) = document["declared"], document["evidence"].get("pair", ([], []))
    if "pair" not in document["evidence"]:
        return True
    most, at = naive.value(declared["unit"]["trajectories"], values(declared)), values(declared)
    if max(len(first), len(second)) > most:
        return False
    if declared["relation"] in ("add-remove", "zero-out"):
        if bool(first) == bool(second):
            return False
    elif not first or not second:
        return False
    if declared["relation"] == "replace-one-same-start" and any(
        (a["states"][0], a["actions"][0]) != (b["states"][0], b["actions"][0])
        for a, b in zip(first, second, strict=True)
    ):
        return False
    for release in declared["releases"]:
        statistic = release["statistic"]
        if statistic["kind"] == "table" and release["name"] in document["evidence"]["using"]:
            for each in first + second:
                steps = len(each["actions"])
                if (len(each["states"]), len(each["rewards"])) != (steps + 1, steps):
                    return False
                if max(each["states"]) >= naive.value(statistic["states"], at) or min(each["states"]) < 0:
                    return False
                if max(each["actions"]) >= naive.value(statistic["actions"], at) or min(each["actions"]) < 0:
                    return False
                if any(not 0 <= Fraction(r) <= 1 for r in each["rewards"]):
                    return False
        if statistic["kind"] == "linear":
            for each in first + second:
                for vector in each["features"][statistic["features"]]:
                    if sum(Fraction(x) ** 2 for x in vector) > Fraction(naive.value(statistic["feature"], at)) ** 2:
                        return False
    return True


def tail(n: int, k: int, p: float) -> float:
    logs = [
        math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) + j * math.log(p) + (n - j) * math.log1p(-p)
        for j in range(max(k, 0), n + 1)
    ]
    return math.fsum(map(math.exp, logs)) if k > 0 else 1.0


def audit_is_true(document: Any) -> bool:
    declared, counts = document["declared"], document["evidence"]
    guarantee, alpha = declared["guarantee"], float(Fraction(declared["alpha"])) * (1 + 1e-9)
    if guarantee["currency"] == "gdp":
        return tail(counts["guesses"], counts["correct"], naive.phi(float(Fraction(guarantee["mu"])) / 2)) <= alpha
    epsilon, delta = float(Fraction(guarantee["epsilon"])), float(Fraction(guarantee.get("delta", 0)))
    if declared["method"] == "guesses":
        likely = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
        return likely < 1 and tail(counts["guesses"], counts["correct"], likely) <= alpha
    low, high = float(Fraction(counts["first_at_least"])), float(Fraction(counts["second_at_most"]))
    first, second = counts["first"], counts["second"]
    chance = tail(first["runs"], first["count"], low) + tail(second["runs"], second["runs"] - second["count"], 1 - high)
    return low > math.exp(epsilon) * high + delta and chance <= alpha


def ledger_is_true(document: Any) -> bool:
    """Sums of reserved and committed charges after every row, and the caps at a fine grid of orders."""
    declared, state = document["declared"], dict[str, Any]()
    caps = {grant: Fraction(cap) for grant, cap in declared["grants"].items()}
    for row in document["evidence"]["rows"]:
        if Fraction(row["amount"]) < 0 or row["grant"] not in caps:
            return False
        state[row["charge"]] = row
        for grant, cap in caps.items():
            live = [r for r in state.values() if r["grant"] == grant and r["state"] != "released"]
            if sum(Fraction(r["amount"]) for r in live) > cap:
                return False
    total, policy = float(sum(caps.values())), declared["policy"]
    epsilon, delta = float(Fraction(policy["epsilon"])), float(Fraction(policy["delta"]))
    if declared["currency"] == "epsilon":
        return total <= epsilon * (1 + 1e-9)
    if declared["currency"] == "mu2":
        return naive.curve(total, epsilon) <= delta * (1 + 1e-9)
    orders = [1 + math.exp(x / 50) for x in range(-300, 400)]
    best = min(total * a + math.log(1 - 1 / a) - math.log(delta * a) / (a - 1) for a in orders)
    return best <= epsilon * (1 + 1e-3)


def is_true(document: Any, rng: random.Random) -> bool:
    """Whether the conclusion of an accepted certificate is true, by the naive twin."""
    match document["kind"]:
        case "holds-at":
            return naive.slack(document, values(document["declared"])) > -1e-9
        case "holds-for-all":
            declared = document["declared"]
            trials = [parameters(declared, rng, corner=i == 0) for i in range(12)] + [values(declared)]
            return all(naive.slack(document, at) > -1e-7 for at in trials)
        case "refuted":
            at, kinds = values(document["declared"]), {"behind", "crossing", "levels", "laws"}
            shuffled = any(each["mechanism"]["law"] == "shuffled-bits" for each in document["declared"]["releases"])
            told = kinds & document["evidence"].keys() or shuffled
            return neighbours(document) and (naive.finite_excess if told else naive.excess)(document, at) > -1e-9
        case "audit":
            return audit_is_true(document)
        case "ledger":
            return ledger_is_true(document)
        case _:
            return document["kind"] == "numeric"  # its own tests have twins


def data(document: Any) -> bytes:
    return json.dumps(document).encode()
