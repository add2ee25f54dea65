"""Certificates written by hand, one a kind, from which the tests make true and false ones."""

from __future__ import annotations

import ast
import copy
import json
from hashlib import sha256
from typing import Any


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    """The document with the digest of what it declares."""
    document = copy.deepcopy(document)
    text = json.dumps(document["declared"], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    document["digest"] = "sha256:" + sha256(text.encode("ascii")).hexdigest()
    return document


def integer(value: int, least: int = 1) -> dict[str, Any]:
    return {"kind": "integer", "least": least, "value": value}


def real(value: int | str, **more: Any) -> dict[str, Any]:
    return {"kind": "real", "least": 0, "value": value, **more}


def table(cells: list[str], weight: str = "one", steps: Any = "H") -> dict[str, Any]:
    return {
        "kind": "table", "cells": cells, "weight": weight, "pooled": False, "steps": steps,
        "states": "S", "actions": "A",
    }  # fmt: skip


def assumed(*codes: str) -> list[dict[str, str]]:
    return [{"code": each, "what": each, "by": "the tests"} for each in ("data-in-range", "unit", *codes)]


HOLDS = {"verdict": "holds", "scope": "these numbers", "about": "releases"}
ONCE = {"kind": "once"}

DP_APVI: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "holds-at",
    "declared": {
        "name": "dp-apvi",
        "source": "Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1",
        "relation": "replace-one",
        "unit": {"who": "trajectory", "trajectories": 1},
        "model": "central",
        "parameters": {"H": integer(20), "S": integer(24), "A": integer(25), "rho": real(1)},
        "releases": [
            {
                "name": name,
                "statistic": table(cells),
                "mechanism": {"law": "gaussian", "variance": ["/", ["*", 2, "H"], "rho"]},
                "schedule": ONCE,
            }
            for name, cells in (("visits", ["state", "action"]), ("transitions", ["state", "action", "next"]))
        ],
        "claim": {"currency": "zcdp", "rho": "rho", "source": "Theorem 3.4"},
    },
    "assumed": assumed("sequential"),
    "steps": [
        {"rule": "gaussian", "release": "visits", "at_most": ["/", "rho", 2]},
        {"rule": "gaussian", "release": "transitions", "at_most": ["/", "rho", 2]},
        {"rule": "T-COMPOSE", "at_most": "rho"},
        {"rule": "C-ZCDP"},
    ],
    "conclusion": HOLDS,
}

SCALE = ["/", ["*", 3, "H", ["max", 1, ["bit_length", ["-", "K", 1]]]], "epsilon"]


def walk(state: int, action: int, reward: int) -> dict[str, Any]:
    """Twenty steps: state 0, action 0 first, then the ones given."""
    return {
        "states": [0] + [state] * 20,
        "actions": [0] + [action] * 19,
        "rewards": [1 - reward] + [reward] * 19,
    }


UCB_VI: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "refuted",
    "declared": {
        "name": "private-ucb-vi-central",
        "source": "Chowdhury & Zhou 2022, arXiv:2112.10599, Algorithm 2",
        "relation": "replace-one-same-start",
        "unit": {"who": "trajectory", "trajectories": 1},
        "model": "joint",
        "parameters": {"H": integer(20), "S": integer(6), "A": integer(2), "K": integer(20000), "epsilon": real(1)},
        "releases": [
            {
                "name": name,
                "statistic": statistic,
                "mechanism": {"law": "laplace", "scale": SCALE},
                "schedule": {"kind": "tree", "leaves": ["-", "K", 1]},
            }
            for name, statistic in (
                ("visits", table(["state", "action"])),
                ("costs", table(["state", "action"], "cost")),
                ("transitions", table(["state", "action", "next"])),
            )
        ],
        "claim": {"currency": "pure", "epsilon": "epsilon", "source": "Lemma 5.1"},
    },
    "assumed": [],
    "evidence": {
        "pair": [[walk(0, 0, 0) | {"rewards": [0] * 20}], [walk(5, 1, 0) | {"rewards": [1] + [0] * 19}]],
        "using": ["visits", "costs", "transitions"],
    },
    "conclusion": {"verdict": "fails", "scope": "these numbers", "about": "releases"},
}

GAUSSIAN: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "holds-at",
    "declared": {
        "name": "ten clipped sums",
        "source": "by hand",
        "relation": "add-remove",
        "unit": {"who": "user", "trajectories": 1},
        "model": "central",
        "parameters": {"sigma": real(10), "epsilon": real("2"), "delta": real("1/100000")},
        "releases": [
            {
                "name": "sums",
                "statistic": {"kind": "bounded", "l1": 4, "l2": 1},
                "mechanism": {"law": "gaussian", "variance": ["^", "sigma", 2]},
                "schedule": {"kind": "repeat", "times": 10, "noise": "fresh"},
            }
        ],
        "claim": {"currency": "approx", "epsilon": "epsilon", "delta": "delta", "source": "by hand"},
    },
    "assumed": assumed("sequential"),
    "steps": [
        {"rule": "gaussian", "release": "sums", "at_most": "1/10"},
        {"rule": "T-COMPOSE", "at_most": "1/10"},
        {"rule": "C-GDP-APPROX"},
    ],
    "conclusion": HOLDS,
}

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}


def term(text: str) -> Any:
    """A term from a formula in Python's notation: `2*H/rho`, `H**(5/2)`, `bit_length(K - 1)`."""

    def of(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return name
            case ast.BinOp(
                left=left, op=ast.Pow(), right=ast.BinOp(left=ast.Constant(value=p), right=ast.Constant(value=q))
            ):
                return ["^", of(left), f"{p}/{q}"]
            case ast.BinOp(left=left, op=operator, right=right):
                return [OPERATORS[type(operator)], of(left), of(right)]
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return [name, *map(of, arguments)]
            case _:
                raise ValueError(ast.dump(node))

    return of(ast.parse(text, mode="eval").body)


def release(
    name: str, statistic: dict[str, Any], law: str, schedule: dict[str, Any] = ONCE, **terms: Any
) -> dict[str, Any]:
    """A release; the mechanism's terms as formulas."""
    words = ("noise", "currency", "theorem")
    mechanism = {key: term(each) if isinstance(each, str) and key not in words else each for key, each in terms.items()}
    return {"name": name, "statistic": statistic, "mechanism": {"law": law} | mechanism, "schedule": schedule}


def linear(part: str, target: str = "1", feature: str = "1", weight: str = "1", steps: str = "H") -> dict[str, Any]:
    return {
        "kind": "linear", "features": "phi", "part": part, "signed": False,
        "steps": term(steps), "feature": term(feature), "target": term(target), "weight": term(weight),
    }  # fmt: skip


def holds_for_all(
    name: str,
    relation: str,
    parameters: dict[str, Any],
    releases: list[tuple[dict[str, Any], str]],
    claim: dict[str, str],
    rule: str,
    total: str,
    *,
    bounds: tuple[tuple[str, str, str], ...] = (),
    codes: tuple[str, ...] = (),
    model: str = "central",
    trajectories: str = "1",
) -> dict[str, Any]:
    """A certificate of a claim that holds for all parameters, from formulas."""
    steps = [
        {"rule": each["mechanism"]["law"], "release": each["name"], "at_most": term(cost)} for each, cost in releases
    ]
    numbers = {key: term(value) for key, value in claim.items() if key != "currency"}
    return {
        "format": "privcheck-certificate/1",
        "kind": "holds-for-all",
        "declared": {
            "name": name, "source": "by hand", "relation": relation, "model": model,
            "unit": {"who": "trajectory", "trajectories": term(trajectories)},
            "parameters": parameters, "releases": [each for each, _ in releases],
            "claim": {"currency": claim["currency"], "source": "by hand"} | numbers,
        },
        "assumed": assumed(*codes),
        "bounds": [{"rule": by, "term": term(left), "at_least": term(right)} for by, left, right in bounds],
        "steps": [*steps, {"rule": "T-COMPOSE", "at_most": term(total)}, {"rule": rule}],
        "conclusion": HOLDS | {"scope": "all parameters"},
    }  # fmt: skip


COUNTS = (("visits", table(["state", "action"])), ("transitions", table(["state", "action", "next"])))
SIZES = {"H": integer(20), "S": integer(24), "A": integer(25)}

APVI_FOR_ALL = holds_for_all(
    "dp-apvi", "replace-one", SIZES | {"rho": real(1)},
    [(release(name, each, "gaussian", variance="2*H/rho"), "rho/2") for name, each in COUNTS],
    {"currency": "zcdp", "rho": "rho"}, "C-ZCDP", "rho", codes=("sequential",),
)  # fmt: skip

BOUNDED_APVI = holds_for_all(
    "bounded-contribution-apvi", "replace-one", SIZES | {"rho": real(1), "m": integer(3)},
    [(release(name, each, "gaussian", variance="2*H*m**2/rho"), "rho/2") for name, each in COUNTS],
    {"currency": "zcdp", "rho": "rho"}, "C-ZCDP", "rho", codes=("sequential",), trajectories="m",
)  # fmt: skip

VAPVI = holds_for_all(
    "dp-vapvi-unsplit", "replace-one", {"H": integer(20), "rho": real(1)},
    [
        (release("squared values", linear("sum", "(H-h)**2"), "gaussian", variance="10*H**5/rho"),
         "rho*(H-1)*(2*H-1)*(3*H**2-3*H-1)/(150*H**4)"),
        (release("values", linear("sum", "H-h"), "gaussian", variance="10*H**3/rho"), "rho*(H-1)*(2*H-1)/(30*H**2)"),
        (release("gram", linear("outer"), "gaussian-matrix", variance="5*H/(4*rho)", diagonal=2), "2*rho/5"),
        (release("weighted gram", linear("outer"), "gaussian-matrix", variance="5*H/(4*rho)", diagonal=2), "2*rho/5"),
        (release("gains", linear("sum", "H-h+1"), "gaussian", variance="10*H**3/rho"), "rho*(H+1)*(2*H+1)/(30*H**2)"),
    ],
    {"currency": "zcdp", "rho": "rho"}, "C-ZCDP", "rho*(146*H**4-15*H**3+20*H**2-1)/(150*H**4)", codes=("sequential",),
)  # fmt: skip

UCBVI = holds_for_all(
    "dp-ucbvi-central", "replace-one", SIZES | {"K": integer(1000), "epsilon": real(1)},
    [
        (release(name, each, "laplace", {"kind": "tree", "leaves": ["-", "K", 1]},
                 scale="6*H*max(1, bit_length(K-1))/epsilon"),
         "epsilon*bit_length(K-1)/(3*max(1, bit_length(K-1)))")
        for name, each in (*COUNTS, ("rewards", table(["state", "action"], "reward")))
    ],
    {"currency": "pure", "epsilon": "epsilon"}, "C-PURE", "epsilon",
    bounds=(("B-MAX", "max(1, bit_length(K-1))", "bit_length(K-1)"),),
    codes=("sequential", *(f"public-schedule: {each}" for each in ("visits", "transitions", "rewards"))), model="joint",
)  # fmt: skip

PATE = holds_for_all(
    "pate", "replace-one",
    {"queries": integer(1000), "scale": real(40), "delta": real("1/100000", most=1)},
    [(release("labels", {"kind": "selection", "moves": 1}, "noisy-max",
              {"kind": "repeat", "times": "queries", "noise": "fresh"}, scale="scale", noise="laplace",
              one_sided=False), "2*queries/scale**2")],
    {"currency": "approx", "epsilon": "2*sqrt(2)*sqrt(queries)*sqrt(log(1/delta))/scale + 4*queries/scale**2",
     "delta": "delta"},
    "C-ZCDP-APPROX", "2*queries/scale**2", codes=("sequential", "stated-sensitivity: labels"),
)  # fmt: skip

RAPPOR = holds_for_all(
    "rappor", "replace-one", {"bits": integer(128), "hashes": integer(2), "f": real("1/2", most=1)},
    [(release("permanent response", {"kind": "bits", "bits": "bits", "ones": "hashes"}, "randomised-response",
              {"kind": "local"}, keep="1 - f/2", answers="2"), "2*hashes*log((2-f)/f)")],
    {"currency": "pure", "epsilon": "2*hashes*log(2*(1-f/2)/f)"}, "C-PURE", "2*hashes*log((2-f)/f)", model="local",
)  # fmt: skip

LSVI = holds_for_all(
    "dp-lsvi-ucb-pp", "replace-one", {"H": integer(20), "K": integer(1000), "rho": real(1)},
    [
        (release(name, linear("sum", target, weight="1/H**2", steps="H-1"), "gaussian",
                 {"kind": "repeat", "times": ["-", "K", 1], "noise": "fresh"}, variance=variance),
         "rho*(H-1)*(K-1)/(4*H**5*K)")
        for name, target, variance in (("optimistic", "H", "8*H**3*K/rho"), ("pessimistic", "H", "8*H**3*K/rho"),
                                       ("squared", "H**2", "8*H**5*K/rho"))
    ] + [
        (release("gram", linear("outer", weight="1/H**2"), "gaussian-matrix",
                 {"kind": "repeat", "times": ["-", "K", 1], "noise": "fresh"}, variance="H*K/rho", diagonal=2),
         "rho*(K-1)/(2*H**4*K)")
    ],
    {"currency": "zcdp", "rho": "rho"}, "C-ZCDP", "rho*(5*H-3)*(K-1)/(4*H**5*K)", codes=("sequential",), model="joint",
)  # fmt: skip

LINEAR_REFUTED: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "refuted",
    "declared": VAPVI["declared"] | {
        "name": "a Gram matrix with half the variance",
        "releases": [release("gram", linear("outer"), "gaussian-matrix", variance="H/(4*rho)", diagonal=2)],
        "parameters": {"H": integer(2), "rho": real(1)},
        "claim": {"currency": "approx", "epsilon": "rho", "delta": "1/10", "source": "by hand"},
    },
    "assumed": assumed("attainable"),
    "evidence": {"pair": [[{"features": {"phi": [[1, 0], ["3/5", "4/5"]]}}],
                          [{"features": {"phi": [[0, 1], ["-4/5", "3/5"]]}}]],
                 "using": ["gram"]},
    "conclusion": UCB_VI["conclusion"],
}  # fmt: skip

AUDIT: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "audit",
    "declared": {"name": "releases of dp-apvi", "source": "by hand", "method": "guesses",
                 "guarantee": {"currency": "pure", "epsilon": "9/10"}, "alpha": "1/100"},
    "assumed": [{"code": "runs-took-place", "what": "a thousand runs with fair hidden bits", "by": "seed 7"}],
    "evidence": {"runs": 1000, "guesses": 1000, "correct": 750},
    "conclusion": {"verdict": "refuted at level alpha", "scope": "these counts", "about": "guarantee"},
}  # fmt: skip

EVENTS: dict[str, Any] = AUDIT | {
    "declared": AUDIT["declared"] | {"method": "events",
                                     "guarantee": {"currency": "approx", "epsilon": 1, "delta": "1/100"}},
    "evidence": {"first": {"runs": 1000, "count": 700}, "second": {"runs": 1000, "count": 100},
                 "first_at_least": "65/100", "second_at_most": "13/100"},
}  # fmt: skip


def chained(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """The rows, each with the digest of the one before, and the last digest."""
    previous, found = "", []
    for row in rows:
        found.append({**row, "previous": previous})
        text = json.dumps(found[-1], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        previous = "sha256:" + sha256(text.encode("ascii")).hexdigest()
    return found, previous


def row(charge: str, amount: Any, state: str = "committed", grant: str = "team") -> dict[str, Any]:
    return {"charge": charge, "grant": grant, "state": state, "amount": amount, "row": "00"}


ROWS = [row("a", "1/10", "reserved"), row("b", "1/5"), row("a", "1/10"), row("c", "3/10", "reserved"),
        row("c", "3/10", "released"), row("d", "1/5")]  # fmt: skip


def ledger(rows: list[dict[str, Any]], **changed: Any) -> dict[str, Any]:
    """A certificate of a chain of rows."""
    found, head = chained(rows)
    return {
        "format": "privcheck-certificate/1",
        "kind": "ledger",
        "declared": {"name": "trips", "source": "by hand", "unit": "rider, 1 trajectory, replace-one, central",
                     "currency": "rho", "grants": {"team": "3/5"},
                     "policy": {"epsilon": "7", "delta": "1/1000000", "order": "5"}, "head": head} | changed,
        "assumed": [],
        "evidence": {"rows": found},
        "conclusion": {"verdict": "keeps the policy", "scope": "these rows", "about": "ledger"},
    }  # fmt: skip


LEDGER = ledger(ROWS)

NUMERIC: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "numeric",
    "declared": {"name": "ten Laplaces", "source": "by hand",
                 "events": [{"law": "laplace", "ratio": "1/10", "count": 10}],
                 "epsilon": "1/2", "delta": "1/10"},
    "assumed": [],
    "evidence": {"grid": {"steps": 100, "digits": 15, "trim": "1/1000000000"}},
    "conclusion": {"verdict": "holds", "scope": "these numbers", "about": "events"},
}  # fmt: skip

ALL = {
    "apvi": DP_APVI, "ucb-vi": UCB_VI, "gaussian": GAUSSIAN, "apvi for all": APVI_FOR_ALL, "bounded apvi": BOUNDED_APVI,
    "vapvi": VAPVI, "ucbvi": UCBVI, "pate": PATE, "rappor": RAPPOR, "lsvi": LSVI, "linear refuted": LINEAR_REFUTED,
    "audit": AUDIT, "events": EVENTS, "ledger": LEDGER, "numeric": NUMERIC,
}  # fmt: skip

SGD: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "holds-at",
    "declared": {
        "name": "dp-sgd", "source": "by hand", "relation": "add-remove", "unit": {"who": "user", "trajectories": 1},
        "model": "central",
        "parameters": {"noise": real("11/10"), "C": real(3), "rate": real("1/100", most=1), "rounds": integer(100)},
        "releases": [release("gradients", {"kind": "bounded", "l1": 300, "l2": "C"}, "gaussian",
                             {"kind": "sampled", "times": "rounds", "rate": "rate"}, variance="C**2*noise**2"),
                     release("choice", {"kind": "selection", "moves": 1}, "noisy-max", noise="gumbel",
                             one_sided=False, scale=20)],
        "claim": {"currency": "approx", "epsilon": 2, "delta": "1/100000", "source": "by hand"},
    },
    "assumed": assumed("sequential", "secret-sample: gradients", "stated-sensitivity: choice"),
    "steps": [{"rule": "gaussian", "release": "gradients", "at_most": "100/121"},
              {"rule": "noisy-max", "release": "choice", "at_most": "1/10"},
              {"rule": "C-NUMERIC", "grid": {"steps": 250, "digits": 20, "trim": "1/1000000000"}}],
    "conclusion": HOLDS,
}  # fmt: skip
ALL["sgd"] = SGD

DP_UCB = holds_for_all(
    "dp-ucb", "replace-one-same-start",
    {"arms": integer(5, 2), "K": integer(1000, 2), "epsilon": real(1)},
    [(release("trees", {**table(["state", "action"], "reward", 1), "states": 1, "actions": "arms"}, "laplace",
              {"kind": "tree", "leaves": "K"}, scale="arms*log(K)/(epsilon*log(2))"),
      "epsilon*log(2)*bit_length(K)/(arms*log(K))")],
    {"currency": "pure", "epsilon": "epsilon"}, "C-PURE", "epsilon",
    bounds=(("B-POWER", "log(K)", "(bit_length(K) - 1)*log(2)"),), codes=("sequential", "public-schedule: trees"),
)  # fmt: skip

CHOICES = holds_for_all(
    "choices of a sample", "add-remove", {"rounds": integer(10), "rate": real("1/10", most=1), "epsilon": real(1)},
    [(release("choice", {"kind": "selection", "moves": 1}, "noisy-max",
              {"kind": "sampled", "times": "rounds", "rate": "rate"}, scale="1/epsilon", noise="gumbel",
              one_sided=False),
      "rounds*log(rate*(exp(2*epsilon) - 1) + 1)")],
    {"currency": "pure", "epsilon": "rounds*log(1 + rate*(exp(2*epsilon) - 1))"}, "C-PURE",
    "rounds*log(1 + rate*(exp(2*epsilon) - 1))",
    codes=("sequential", "secret-sample: choice", "stated-sensitivity: choice"),
)  # fmt: skip
ALL |= {"dp-ucb": DP_UCB, "choices": CHOICES}

SCORES = {"kind": "selection", "moves": 1}
OWN = release("own", {"kind": "stated", "l1": 0, "l2": 0}, "theorem", cost="1/2", currency="pure", theorem="ours")
CHOSEN = [
    release("gumbel", SCORES, "noisy-max", noise="gumbel", one_sided=True, scale=2),
    release("laplace", SCORES, "noisy-max", noise="laplace", one_sided=False, scale=4),
    release("vector", SCORES, "sparse-vector", threshold_scale=2, query_scale=3, positives=1, queries=4,
            one_sided=False),
    OWN,
]  # fmt: skip
CHOICES_REFUTED: dict[str, Any] = {
    "format": "privcheck-certificate/1",
    "kind": "refuted",
    "declared": {
        "name": "choices", "source": "by hand", "relation": "add-remove", "model": "central",
        "unit": {"who": "user", "trajectories": 1}, "parameters": {}, "releases": CHOSEN,
        "claim": {"currency": "pure", "epsilon": "2", "source": "by hand"},
    },
    "assumed": assumed("attainable", "stated-law: own", "stated-change: own"),
    "evidence": {"using": ["gumbel", "laplace", "vector", "own"], "behind": {"gumbel": [20, 21], "laplace": [80, 82]},
                 "crossing": {"vector": [[3, 12, 13], [1, -12, -13]]},
                 "laws": {"own": [["3/5", "2/5"], ["2/5", "3/5"]]}},
    "conclusion": UCB_VI["conclusion"],
}  # fmt: skip
CHOICES_CURVE = {
    **CHOICES_REFUTED,
    "declared": {**CHOICES_REFUTED["declared"],
                 "claim": {"currency": "approx", "epsilon": "1/2", "delta": "1/50", "source": "by hand"}},
    "evidence": {**CHOICES_REFUTED["evidence"], "behind": {"gumbel": [0, 1], "laplace": [0, 2]},
                 "crossing": {"vector": [[3, 0, 1], [1, 0, -1]]}},
}  # fmt: skip
SHUFFLED_REFUTED: dict[str, Any] = {
    **CHOICES_REFUTED,
    "declared": {
        **CHOICES_REFUTED["declared"], "name": "counters", "relation": "zero-out", "model": "shuffle",
        "releases": [release("bits", {"kind": "bits", "bits": 2, "ones": 2}, "shuffled-bits", {"kind": "disjoint"},
                             noise_bits=5, chance="1/3")],
        "claim": {"currency": "approx", "epsilon": "3", "delta": "1/10", "source": "by hand"},
    },
    "assumed": assumed(),
    "evidence": {"using": ["bits"], "pair": [[], [{"vectors": {"bits": [1, 1]}}]]},
}  # fmt: skip
BATCH = {"kind": "sampled", "times": "rounds", "rate": "rate"}
ONE_SAMPLE: dict[str, Any] = {
    **SGD,
    "declared": {
        **SGD["declared"], "name": "one sample",
        "parameters": {"rate": real("1/10", most=1), "rounds": integer(5)},
        "releases": [
            release("first", {"kind": "bounded", "l1": 1, "l2": 1}, "laplace", BATCH, scale=2) | {"sample": "one"},
            release("second", {"kind": "bits", "bits": 3, "ones": 1}, "laplace", BATCH, scale=4) | {"sample": "one"},
            OWN,
        ],
        "claim": {"currency": "pure", "epsilon": "6/5", "source": "by hand"},
    },
    "assumed": assumed("sequential", "secret-sample: first", "secret-sample: second", "stated-sensitivity: own",
                       "theorem: own"),
    "steps": [{"rule": "laplace", "release": "first", "at_most": "1/2"},
              {"rule": "laplace", "release": "second", "at_most": "1/4"},
              {"rule": "theorem", "release": "own", "at_most": "1/2"},
              {"rule": "T-COMPOSE", "at_most": "6/5"}, {"rule": "C-PURE"}],
}  # fmt: skip
NOISES: dict[str, Any] = {
    **SGD,
    "declared": {
        **SGD["declared"], "name": "zcdp of other noise", "relation": "replace-one", "parameters": {},
        "releases": [*CHOSEN[:3], OWN,
                     release("table", {**table(["state"]), "steps": 2, "states": 3, "actions": 2}, "laplace", scale=4),
                     release("said", {"kind": "stated", "l1": 0, "l2": 0}, "theorem", cost="1/5", currency="gdp",
                             theorem="ours")],
        "claim": {"currency": "zcdp", "rho": "21/25", "source": "by hand"},
    },
    "assumed": assumed("sequential", *(f"stated-sensitivity: {each}" for each in
                                       ("gumbel", "laplace", "vector", "own", "said")),
                       "theorem: own", "theorem: said"),
    "steps": [{"rule": "noisy-max", "release": "gumbel", "at_most": "1/32"},
              {"rule": "noisy-max", "release": "laplace", "at_most": "49/400"},
              {"rule": "sparse-vector", "release": "vector", "at_most": "20/100"},
              {"rule": "theorem", "release": "own", "at_most": "49/400"},
              {"rule": "laplace", "release": "table", "at_most": "3/25"},
              {"rule": "theorem", "release": "said", "at_most": "1/50"},
              {"rule": "T-COMPOSE", "at_most": "21/25"}, {"rule": "C-ZCDP"}],
}  # fmt: skip
ALL |= {"choices refuted": CHOICES_REFUTED, "choices' curve": CHOICES_CURVE, "counters": SHUFFLED_REFUTED,
        "one sample": ONE_SAMPLE, "noises": NOISES}  # fmt: skip

GAUSSIAN_MAX = release("best", SCORES, "gaussian-max", one_sided=False, variance="std**2", candidates=100)
GAUSSIAN_VECTOR = release("vector", SCORES, "gaussian-sparse-vector", one_sided=False, threshold_variance=16,
                          query_variance=64, positives=2, queries=50)  # fmt: skip
ADAPTIVE = release("adaptive", SCORES, "adaptive-sparse-vector", one_sided=False, threshold_scale=4, top_scale=32,
                   middle_scale=16, margin=20, budget="1/2", queries=30)  # fmt: skip
SELECTIONS: dict[str, Any] = {
    **SGD,
    "declared": {
        **SGD["declared"], "name": "selections", "relation": "replace-one", "parameters": {"std": real(6)},
        "releases": [GAUSSIAN_MAX, GAUSSIAN_VECTOR, ADAPTIVE],
        "claim": {"currency": "approx", "epsilon": "4", "delta": "1/1000", "source": "by hand"},
    },
    "assumed": assumed("sequential", *(f"stated-sensitivity: {each}" for each in ("best", "vector", "adaptive"))),
    "steps": [{"rule": "gaussian-max", "release": "best", "at_most": "1/36"},
              {"rule": "gaussian-sparse-vector", "release": "vector", "at_most": "1/64"},
              {"rule": "adaptive-sparse-vector", "release": "adaptive", "at_most": "3/4"},
              {"rule": "C-NUMERIC", "grid": {"steps": 40, "digits": 16, "trim": "1/1000000000"}}],
}  # fmt: skip
ADAPTIVE_FOR_ALL = holds_for_all(
    "adaptive", "replace-one", {"epsilon": real(1), "w": real(2), "k": integer(3)},
    [(release("adaptive", SCORES, "adaptive-sparse-vector", one_sided=False, threshold_scale="(1+w)/epsilon",
              top_scale="4*k*(1+w)/(w*epsilon)", middle_scale="2*k*(1+w)/(w*epsilon)", margin=3,
              budget="w*epsilon/(1+w)", queries=9), "epsilon")],
    {"currency": "pure", "epsilon": "epsilon"}, "C-PURE", "epsilon", codes=("stated-sensitivity: adaptive",),
)  # fmt: skip
SELECTIONS_REFUTED: dict[str, Any] = {
    **CHOICES_REFUTED,
    "declared": {
        **CHOICES_REFUTED["declared"], "name": "selections", "relation": "replace-one", "parameters": {"std": real(6)},
        "releases": [GAUSSIAN_MAX, GAUSSIAN_VECTOR],
        "claim": {"currency": "gdp", "mu": "9/20", "source": "by hand"},
    },
    "assumed": assumed("attainable"),
    "evidence": {"using": ["best", "vector"], "epsilon": "1/8",
                 "levels": {"best": [[50, 0, -1], [50, "1/4", "5/4"]],
                            "vector": [[49, -14, -13], [1, "-2", "-3"]]}},
}  # fmt: skip
ALL |= {"selections": SELECTIONS, "adaptive": ADAPTIVE_FOR_ALL, "selections refuted": SELECTIONS_REFUTED}
