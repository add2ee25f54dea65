"""Certificates written by hand, one a kind, from which the tests make true and false ones."""

from __future__ import annotations

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
        "kind": "table", "cells": cells, "weight": weight, "pooled": False, "steps": steps, "states": "S", "actions": "A",
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
