"""In which tier a test is: marked by hand, or by the seconds that it took when all tests last ran (`seconds.json`).

Each tier has so many seconds of all workers together. They are shared out so that short functions run whole, and every
long one gets the same: of its cases as many stay as fit in, spread over all of them, and the others are in the next
tier. So a test that has become slow leaves the fast tier when `make test-all` has recorded it. In `make test` at least
one case of a function stays, unless it takes more than `LONGEST`. A function that has never been recorded is fast, and
`make seconds` records it. The mark `every_change` keeps all of a slow function's cases in `make test`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SECONDS = Path(__file__).parent / "seconds.json"
FAST, CHANGE = 280.0, 840.0  # of two workers in 3 and 10 minutes, less what starting, linters and doctests take
LONGEST = 8.0  # of one case; what takes longer is nightly, unless it is marked `every_change`
RECORDED = 0.5  # a function that takes less is recorded with the others
OTHERS = "others"
ADDED = {"slow": "slow_by_seconds", "nightly": "nightly_by_seconds"}  # the mark beside one that is not by hand


@dataclass(frozen=True)
class Function:
    """What is recorded of a test function.

    Attributes:
        change: Cases that no mark by hand leaves to the night.
        fast: Those of them that no mark by hand makes slow.
        each: Seconds of a case on average.
        whole: Whether all cases stay in every change.
    """

    change: int
    fast: int
    each: float
    whole: bool = False


def function_of(nodeid: str) -> str:
    """Returns the function that a test is a case of, by its path below the tests."""
    path, _, name = nodeid.partition("[")[0].partition("::")
    return f"{path.rpartition('tests/')[2]}::{name}"


def read_seconds() -> dict[str, Function]:
    """Returns what is recorded of the functions that took long, and of all others together."""
    kept = json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.is_file() else {}
    return {name: Function(*of) for name, of in kept.items()}


def write_seconds(
    spent: Mapping[str, float], marks: Mapping[str, Iterable[str]], *, kept: Mapping[str, Function] | None = None
) -> None:
    """Records the seconds of tests, and which of them marks by hand keep out of a tier.

    Args:
        spent: Seconds by test.
        marks: Marks by test.
        kept: Functions that stay as they were recorded, where not all tests ran.
    """
    cases: dict[str, list[tuple[float, bool, bool]]] = {}
    for nodeid, seconds in spent.items():
        has = set(marks.get(nodeid, ()))
        late, slow = (name in has and added not in has for name, added in reversed(ADDED.items()))
        cases.setdefault(function_of(nodeid), []).append((seconds, not late, not (late or slow)))
    whole = {function_of(nodeid) for nodeid, has in marks.items() if "every_change" in has}
    means = {
        name: Function(
            sum(c for _, c, _ in of), sum(f for *_, f in of), sum(s for s, *_ in of) / len(of), name in whole
        )
        for name, of in cases.items()
    }
    known = dict(kept or {})
    total = {name: one.each * len(cases[name]) for name, one in means.items() if name not in known}
    rest = sum(seconds for seconds in total.values() if seconds <= RECORDED)
    long = known | {name: means[name] for name, seconds in total.items() if seconds > RECORDED}
    long.pop(OTHERS, None)
    lines = [
        f"{json.dumps(name)}: [{one.change}, {one.fast}, {one.each:.3f}, {json.dumps(one.whole)}]"
        for name, one in [*sorted(long.items()), (OTHERS, Function(1, 1, rest))]
    ]
    SECONDS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def fitting(number: int, each: float, seconds: float, *, least: int) -> int:
    """Returns how many cases of a function fit into its seconds."""
    return number if each * number <= seconds else min(number, max(least, int(seconds / each)))


def share(budget: float, functions: Iterable[tuple[int, float]], *, others: float, least: int) -> float:
    """Returns the seconds for each function, with which all together take the budget; ∞ where they take less."""
    costs = [(number, each) for number, each in functions if number]
    low, high = 0.0, max((number * each for number, each in costs), default=0.0)
    taken = lambda seconds: others + sum(fitting(n, each, seconds, least=least) * each for n, each in costs)  # noqa: E731
    if taken(high) <= budget:
        return float("inf")
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if taken(middle) <= budget else (low, middle)
    return low


def mark_by_seconds(items: Iterable[Any], recorded: Mapping[str, Function]) -> None:
    """Marks the cases that do not fit into a tier's seconds: `slow`, and of those that are many `nightly`."""
    others = recorded[OTHERS].each if OTHERS in recorded else 0.0
    known = [one for name, one in recorded.items() if name != OTHERS]
    whole = sum(one.change * one.each for one in known if one.whole)
    parted = ((one.change, one.each) for one in known if not one.whole and one.each <= LONGEST)
    change = share(CHANGE, parted, others=others + whole, least=1)
    fast = share(FAST, ((one.fast, one.each) for one in known), others=others, least=0)
    functions: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("nightly") is None and function_of(item.nodeid) in recorded:
            functions.setdefault(function_of(item.nodeid), []).append(item)
    for name, cases in functions.items():
        quick = [case for case in cases if case.get_closest_marker("slow") is None]
        if cases[0].get_closest_marker("every_change") is None:
            each = recorded[name].each
            _leave(cases, 0 if each > LONGEST else fitting(len(cases), each, change, least=1), "nightly")
        _leave(quick, fitting(len(quick), recorded[name].each, fast, least=0), "slow")


def _leave(cases: list[Any], number: int, mark: str) -> None:
    """Marks all but so many cases, which are spread evenly from the first to the last."""
    stay = {round(i * (len(cases) - 1) / max(1, number - 1)) for i in range(number)}
    for case in (case for at, case in enumerate(cases) if at not in stay):
        case.add_marker(getattr(pytest.mark, mark))
        case.add_marker(getattr(pytest.mark, ADDED[mark]))
