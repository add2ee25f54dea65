"""Tiers of tests: by marks, by recorded seconds, by a cover of the registry's structures and by rooms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import conftest
import tiers
from results_table import ResultsTable
from rooms import reaches
from structures import cover, described, features, over_registry

TESTS = Path(__file__).parents[1]


class Case:
    """A collected test: its name and its marks."""

    def __init__(self, nodeid: str, *marks: str) -> None:
        self.nodeid, self.marks = nodeid, [*marks]

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.marks else None

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self.marks.append(mark.name)


NAME = "unit/test_a.py::test_b"


def marked(number: int, each: float, *marks: str, others: float = 0.0) -> list[Case]:
    cases = [Case(f"tests/{NAME}[{i}]", *marks) for i in range(number)]
    recorded = {NAME: tiers.Function(number, number, each), tiers.OTHERS: tiers.Function(1, 1, others)}
    tiers.mark_by_seconds(cases, recorded)
    return cases


@pytest.mark.parametrize(
    ("number", "each", "others", "fast", "change"),
    [
        (4, 1.0, 0.0, 4, 4),  # all fit
        (1_000, 2.0, 0.0, tiers.FAST / 2, tiers.CHANGE / 2),
        (100, 2.0, tiers.FAST - 20, 10, 100),  # what others leave
        (10, 2.0, tiers.CHANGE - 8, 0, 4),
        (3, tiers.CHANGE, 0.0, 0, 0),  # no case is short enough
        (3, tiers.LONGEST, tiers.CHANGE, 0, 1),
        (3, 1.0, tiers.CHANGE, 0, 1),  # a function is in every change, if with one case
    ],
)
def test_as_many_cases_stay_as_fit_into_the_seconds_of_a_tier(number, each, others, fast, change):
    cases = marked(number, each, others=others)
    assert sum("slow" not in case.marks for case in cases) == pytest.approx(fast, abs=1)
    assert sum("nightly" not in case.marks for case in cases) == pytest.approx(change, abs=1)
    if 1 < change < number:  # the first and the last among them
        assert "nightly" not in cases[0].marks + cases[-1].marks
    for case in cases:
        assert all((mark in case.marks) == (added in case.marks) for mark, added in tiers.ADDED.items())


def test_every_long_function_gets_the_same_and_short_ones_run_whole():
    functions = [(10, 0.1), (100, 1.0), (50, 2.0), (1, 3.0)]
    each = tiers.share(45.0, functions, others=1.0, least=1)
    assert 18 <= each < 22
    taken = sum(seconds * tiers.fitting(number, seconds, each, least=1) for number, seconds in functions)
    assert 40 < taken + 1.0 <= 45
    assert tiers.share(1e6, functions, others=1.0, least=1) == float("inf")


def test_what_stays_whole_is_paid_for_first():
    recorded = {NAME: tiers.Function(100, 0, tiers.CHANGE / 101, whole=True), "b.py::c": tiers.Function(50, 0, 1.0)}
    cases = [Case(f"tests/b.py::c[{i}]") for i in range(50)]
    tiers.mark_by_seconds(cases, recorded)
    left = tiers.CHANGE / 101
    assert sum("nightly" not in case.marks for case in cases) in {int(left), int(left) + 1}


def test_what_is_marked_by_hand_stays_where_it_is():
    assert [case.marks for case in marked(2, 1e6, "nightly")] == [["nightly"], ["nightly"]]
    assert [case.marks for case in marked(2, 0.01, "slow")] == [["slow"], ["slow"]]
    kept = ["slow", "every_change"]
    assert [case.marks for case in marked(50, 1e3, *kept)] == [kept] * 50
    unknown = Case("tests/unit/test_other.py::test_b")
    tiers.mark_by_seconds([unknown], {NAME: tiers.Function(1, 1, 1e6)})
    assert unknown.marks == []


def test_seconds_are_means_over_cases_and_marks_by_hand_are_told_from_others(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "SECONDS", tmp_path / "seconds.json")
    spent = {f"tests/{NAME}[{i}]": float(i) for i in range(1, 5)}
    marks = [("slow",), ("nightly",), ("slow", "slow_by_seconds"), ("nightly", "nightly_by_seconds")]
    tiers.write_seconds({**spent, "tests/a.py::c": 0.1}, dict(zip(spent, marks, strict=True)))
    assert tiers.read_seconds() == {NAME: tiers.Function(3, 2, 2.5), tiers.OTHERS: tiers.Function(1, 1, 0.1)}


def test_a_run_of_some_tests_adds_functions_and_leaves_those_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "SECONDS", tmp_path / "seconds.json")
    before = {
        "a.py::gone": tiers.Function(5, 5, 9.0),
        NAME: tiers.Function(3, 2, 2.5),
        tiers.OTHERS: tiers.Function(1, 1, 7.0),
    }
    spent = {f"tests/{NAME}[1]": 80.0, "tests/b.py::new[1]": 1.0, "tests/b.py::new[2]": 3.0, "tests/b.py::quick": 0.2}
    tiers.write_seconds(spent, {"tests/b.py::new[2]": ("slow",)}, kept=before)
    new = {"b.py::new": tiers.Function(2, 1, 2.0), tiers.OTHERS: tiers.Function(1, 1, 0.2)}
    assert tiers.read_seconds() == before | new


def test_a_cover_has_every_feature_with_few_cases():
    for uses in ((), ("online", "declared"), ("from data",)):
        cases = [case for case, parts in described().items() if parts.issuperset(uses)]
        chosen = cover(cases)
        assert len(set(chosen)) == len(chosen) < len(cases) / 2
        for case in cases:
            assert all(any(part in described()[one] for one in chosen) for part in described()[case])


def test_everything_registered_is_in_some_tier_and_the_cover_in_that_of_a_change():
    cases = over_registry("declared", readings=True, fast=3)
    assert len(cases) == sum("declared" in parts for parts in described().values())
    late = {case.id: {mark.name for mark in case.marks} for case in cases}
    assert sum(not marks for marks in late.values()) <= 3
    change = [one for one, marks in late.items() if "nightly" not in marks]
    assert len(change) == len(cover([case for case, parts in described().items() if "declared" in parts]))
    assert len(late) == len(cases)


def test_features_are_kinds_and_fields_that_are_set_without_names_and_numbers(tiny):
    found = set(features(tiny, "declaration"))
    expected = {"Release.statistic is CellSums", "Release.mechanism is Gaussian", "Claim.guarantee is ZCDP"}
    assert expected <= found
    assert {"Declaration.model = central", "Release.stated is L2", "Release.stated is None"} <= found
    assert not [part for part in found if "tiny" in part or "visits" in part]


def test_a_room_is_reached_by_imports_however_they_lead_there():
    assert reaches(TESTS / "oracle" / "test_budget_states.py", "ledger")  # by what tests share
    assert reaches(TESTS / "system" / "test_ledger_commands.py", "ledger")  # by the command
    assert not reaches(TESTS / "oracle" / "test_conversions.py", "ledger")
    assert reaches(TESTS / "oracle" / "test_conversions.py", "accounting")
    with pytest.raises(pytest.UsageError, match=r"expected one of .*ledger"):
        reaches(TESTS / "oracle" / "test_conversions.py", "legder")


def report(nodeid: str, outcome: str, when: str = "call") -> pytest.TestReport:
    return pytest.TestReport(nodeid, ("", None, ""), {"slow": 1}, outcome, None, when, duration=30.0)


A, B, C = "tests/unit/test_a.py::test_b", "tests/oracle/test_c.py::test_d[1]", "tests/oracle/test_c.py::test_e"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "SECONDS", tmp_path / "seconds.json")
    monkeypatch.delenv("HYPOTHESIS_PROFILE", raising=False)
    return lambda: ResultsTable(tmp_path / "table.md", tmp_path / "kept")


def run(table: ResultsTable, nodeid: str, *phases: str) -> None:
    for when, outcome in zip(("setup", "call", "teardown"), phases, strict=False):
        table.pytest_runtest_logreport(report(nodeid, outcome, when))


def test_the_table_counts_and_names_what_failed(tmp_path, table):
    made = table()
    run(made, A, "passed", "passed", "passed")
    run(made, B, "passed", "failed", "passed")
    made.pytest_runtest_logreport(report(C, "failed", "setup"))
    made.pytest_runtest_logreport(report(C, "passed", "teardown"))
    made.pytest_sessionfinish(pytest.ExitCode.TESTS_FAILED)
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "1 passed, 2 failed, 0 skipped" in text
    assert "| unit | 1 | 0 | 0 | 1.5 |" in text
    assert "| oracle | 0 | 2 | 0 | 2.5 |" in text
    assert f"* `{C}` (setup)" in text
    assert f"commit {made.commit}:" in text
    assert tiers.read_seconds()["unit/test_a.py::test_b"] == tiers.Function(1, 0, 90.0)


def test_a_stopped_run_goes_on_from_what_it_finished(tmp_path, table):
    made = table()
    run(made, A, "passed", "passed", "passed")
    run(made, B, "passed", "failed", "passed")
    run(made, C, "passed")  # killed while it ran
    made.pytest_sessionfinish(pytest.ExitCode.INTERRUPTED)
    assert not (tmp_path / "table.md").exists()
    with (tmp_path / "kept").open("a") as file:
        file.write('{"nodeid": "tests/unit/te')  # … and while it wrote
    again = table()
    assert {name: one.kind for name, one in again.finished.items()} == {A: "passed", B: "failed"}
    run(again, B, "passed", "passed", "passed")
    run(again, C, "passed", "skipped", "passed")
    again.pytest_sessionfinish(pytest.ExitCode.OK)
    assert "2 passed, 0 failed, 1 skipped" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert table().finished == again.finished


def test_finished_tests_are_not_collected_again(tmp_path, monkeypatch):
    done = tmp_path / "done"
    done.write_text(f"{A}\n")
    monkeypatch.setenv(conftest.DONE, str(done))
    items, left = [Case(A), Case(B)], []
    hook = SimpleNamespace(pytest_deselected=lambda *, items: left.extend(items))
    conftest.pytest_collection_modifyitems(SimpleNamespace(hook=hook), items)
    assert [item.nodeid for item in items] == [B]
    assert [item.nodeid for item in left] == [A]


def test_a_worker_that_crashed_ends_its_test(table):
    made = table()
    made.pytest_runtest_logreport(report(A, "failed", "???"))
    assert made.finished[A].kind == "failed"
