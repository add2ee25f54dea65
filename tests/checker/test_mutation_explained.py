"""Survivors of mutation testing that are explained: each is a change of the code as it stands, with its reason."""

from __future__ import annotations

import collections
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "mutation.py"


@pytest.fixture(scope="module")
def mutation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_mutation", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_explained_survivors_are_changes_of_the_code(mutation: ModuleType) -> None:
    reasons = mutation.read_reasons()
    known = {one.key[:4] for name in {key[0] for key in reasons} for one in mutation.mutants(name)}
    assert reasons.keys() <= known, sorted(reasons.keys() - known)[:3]
    assert all(why.endswith(".") and len(why.split()) > 4 for why in reasons.values())


def test_no_survivor_is_explained_twice(mutation: ModuleType) -> None:
    found = mutation.tomllib.loads(mutation.REASONS.read_text(encoding="utf-8"))["survivor"]
    keys = [(one["file"], one["function"], one["line"], change) for one in found for change in one["changes"]]
    assert [key for key, number in collections.Counter(keys).items() if number > 1] == []


def test_changes_cover_comparisons_bounds_and_refusals(mutation: ModuleType) -> None:
    code = "def f(x):\n    if not x[0] < 3:\n        raise ValueError\n    return min(x[1] // 2, -x[0])\n"
    tree = mutation.ast.parse(code)
    found = {label for part in mutation._parts(tree) for label, _ in mutation._changes(part)}
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
