"""In which tier a test is: marked by hand, or by the seconds that it took when all tests last ran (`seconds.json`).

Of a function with many cases as many stay in a tier as fit into its seconds, spread over all of them: the others are in
the next tier. So a test that has become slow leaves the fast tier when `make test-all` has recorded it, and no tier
loses a whole function but the fast one. A function that has never been recorded is fast.
The mark `every_change` keeps all cases of a slow function.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

SECONDS = Path(__file__).parent / "seconds.json"
FAST, CHANGE = 2.0, 12.0  # seconds of one function in the fast tier, and in `make test`
RECORDED = 0.5  # less is not kept


def function_of(nodeid: str) -> str:
    """Returns the function that a test is a case of, by its path below the tests."""
    path, _, name = nodeid.partition("[")[0].partition("::")
    return f"{path.rpartition('tests/')[2]}::{name}"


def read_seconds() -> dict[str, float]:
    """Returns the seconds that one case of a function took on average, of those that took long enough to be kept."""
    return json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.is_file() else {}


def write_seconds(spent: Mapping[str, float]) -> None:
    """Keeps the seconds of every test, as means over the cases of a function; of what did not run, what was kept."""
    cases: dict[str, list[float]] = {}
    for nodeid, seconds in spent.items():
        cases.setdefault(function_of(nodeid), []).append(seconds)
    long = {name: round(sum(of) / len(of), 3) for name, of in cases.items() if sum(of) > RECORDED}
    kept = {name: seconds for name, seconds in read_seconds().items() if name not in cases}
    SECONDS.write_text(json.dumps(dict(sorted((kept | long).items())), indent=0) + "\n", encoding="utf-8")


def mark_by_seconds(items: Iterable[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Marks the cases that do not fit into a tier's seconds: `slow`, and of those that are many `nightly`."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("nightly") is None and item.get_closest_marker("every_change") is None:
            functions.setdefault(function_of(item.nodeid), []).append(item)
    for name, cases in functions.items():
        each = seconds.get(name, 0.0)
        fast = [case for case in cases if case.get_closest_marker("slow") is None]
        for case in _beyond(cases, CHANGE, each, least=1):
            case.add_marker("nightly")
        for case in _beyond(fast, FAST, each, least=0):
            case.add_marker("slow")


def _beyond(cases: list[pytest.Item], budget: float, each: float, *, least: int) -> list[pytest.Item]:
    """Returns all but as many cases as fit, which are spread evenly from the first to the last."""
    most = len(cases) if each * len(cases) <= budget else max(least, int(budget / each))
    stay = {round(i * (len(cases) - 1) / max(1, most - 1)) for i in range(most)}
    return [case for at, case in enumerate(cases) if at not in stay]
