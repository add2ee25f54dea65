"""Survivors of mutation testing that are explained: each is a change of the code as it stands, with its reason."""

from __future__ import annotations

import collections
import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def mutation() -> ModuleType:
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("mutation")
    finally:
        sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module")
def operators(mutation: ModuleType) -> ModuleType:
    return sys.modules["mutation_operators"]


def test_explained_survivors_are_changes_of_the_code(mutation: ModuleType) -> None:
    reasons = mutation.read_reasons()
    known = {one.key[:4] for name in {key[0] for key in reasons} for one in mutation.mutants(name)}
    assert reasons.keys() <= known, sorted(reasons.keys() - known)[:3]
    assert all(why.endswith(".") and len(why.split()) > 4 for why in reasons.values())


def test_no_survivor_is_explained_twice(mutation: ModuleType) -> None:
    found = mutation.tomllib.loads(mutation.REASONS.read_text(encoding="utf-8"))["survivor"]
    keys = [(one["file"], one["function"], one["line"], change) for one in found for change in one["changes"]]
    assert [key for key, number in collections.Counter(keys).items() if number > 1] == []


def test_changes_cover_comparisons_bounds_and_refusals(operators: ModuleType) -> None:
    code = "def f(x):\n    if not x[0] < 3:\n        raise ValueError\n    return min(x[1] // 2, -x[0])\n"
    tree = operators.ast.parse(code)
    found = {label for part in operators._parts(tree) for label, _ in operators._changes(part)}
    assert {
        "x[0] < 3 → x[0] <= 3",
        "3 → 4",
        "3 → 2",
        "not x[0] < 3 → x[0] < 3",
        "if not x[0] < 3 → if False",
        "raise ValueError → pass",
        "min → max",
        "x[1] → x[0]",
        "x[1] // 2 → -(-x[1] // 2)",
        "-x[0] → x[0]",
    } <= found
