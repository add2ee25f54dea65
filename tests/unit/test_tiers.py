"""Tiers of tests: by marks, by recorded seconds, by a cover of the registry's structures and by rooms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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

    def add_marker(self, name: str) -> None:
        self.marks.append(name)


def marked(cases: list[Case], each: float) -> list[list[str]]:
    tiers.mark_by_seconds(cases, {"unit/test_a.py::test_b": each})
    return [case.marks for case in cases]


@pytest.mark.parametrize(
    ("number", "each", "fast", "change"),
    [
        (4, tiers.FAST / 4, 4, 4),  # all fit
        (10, tiers.FAST / 4, 4, 10),
        (200, tiers.FAST / 4, 4, int(tiers.CHANGE / tiers.FAST * 4)),
        (3, tiers.FAST + 1, 0, 3),
        (3, tiers.CHANGE + 1, 0, 1),  # a function is in every change, if with one case
        (1, 10 * tiers.CHANGE, 0, 1),
    ],
)
def test_as_many_cases_stay_as_fit_into_the_seconds_of_a_tier(number, each, fast, change):
    found = marked([Case(f"tests/unit/test_a.py::test_b[{i}]") for i in range(number)], each)
    assert sum("slow" not in marks for marks in found) == fast
    assert sum("nightly" not in marks for marks in found) == change
    if 1 < change < number:  # the first and the last among them
        assert "nightly" not in found[0]
        assert "nightly" not in found[-1]


def test_what_is_marked_by_hand_stays_where_it_is():
    cases = [Case("tests/unit/test_a.py::test_b[0]", "nightly"), Case("tests/unit/test_a.py::test_b[1]", "slow")]
    assert marked(cases, 0.001) == [["nightly"], ["slow"]]
    assert marked([Case("tests/unit/test_other.py::test_b")], 1e6) == [[]]
    kept = marked([Case(f"tests/unit/test_a.py::test_b[{i}]", "slow", "every_change") for i in range(50)], 1.0)
    assert kept == [["slow", "every_change"]] * 50


def test_seconds_are_means_over_cases_and_what_did_not_run_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "SECONDS", tmp_path / "seconds.json")
    tiers.write_seconds({"tests/unit/test_a.py::test_b[x[0]]": 2.0, "unit/test_a.py::test_b[1]": 4.0, "a.py::c": 0.1})
    tiers.write_seconds({"tests/oracle/test_d.py::test_e": 1.0})
    assert tiers.read_seconds() == {"oracle/test_d.py::test_e": 1.0, "unit/test_a.py::test_b": 3.0}


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
    return pytest.TestReport(nodeid, ("", None, ""), {}, outcome, None, when, duration=30.0)


def test_the_table_counts_and_names_what_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "SECONDS", tmp_path / "seconds.json")
    monkeypatch.delenv("HYPOTHESIS_PROFILE", raising=False)
    table = ResultsTable(tmp_path / "table.md")
    for one in (("setup", "passed"), ("call", "passed"), ("teardown", "passed")):
        table.pytest_runtest_logreport(report("tests/unit/test_a.py::test_b", one[1], one[0]))
    table.pytest_runtest_logreport(report("tests/oracle/test_c.py::test_d[1]", "failed"))
    table.pytest_runtest_logreport(report("tests/oracle/test_c.py::test_e", "failed", "setup"))
    table.pytest_sessionfinish(pytest.ExitCode.TESTS_FAILED)
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "1 passed, 2 failed, 0 skipped" in text
    assert "| unit | 1 | 0 | 0 | 1.5 |" in text
    assert "| oracle | 0 | 2 | 0 | 1.0 |" in text
    assert "* `tests/oracle/test_c.py::test_e (setup)`" in text
    assert json.loads((tmp_path / "seconds.json").read_text(encoding="utf-8"))["unit/test_a.py::test_b"] == 90.0
