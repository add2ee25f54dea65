"""The JSON is a contract: documents of the first form are read, shown, and written with every field that they had."""

from __future__ import annotations

import json
import shutil

import pytest

from privcheck.errors import FileFormatError
from privcheck.reports import load_report, render_again
from privcheck.reports.files import render_runs_again
from privcheck.reports.values import RanOnline, Report, document, from_json
from small_reports import DATA

FIRST = {"report": (Report, render_again, "Holds, checked"), "run": (RanOnline, render_runs_again, "Cumulative regret")}


def written(name):
    return json.loads((DATA / f"{name}_first_form.json").read_text(encoding="utf-8"))


def kept(old, new, where):
    """Asserts that what an object had is still there, the same, in the same order."""
    if isinstance(old, dict):
        assert [name for name in new if name in old] == list(old), where
        for name, value in old.items():
            if value in ("inf", "-inf"):  # since the second form a text beside the number
                assert (new[name], new[f"{name}_infinite"]) == (None, value), where
            else:
                kept(value, new[name], f"{where}.{name}")
    elif isinstance(old, list):
        assert len(old) == len(new), where
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            kept(one, other, f"{where}[{index}]")
    else:
        assert (type(old), old) == (type(new), new), where


@pytest.mark.parametrize("name", FIRST)
def test_every_field_of_the_first_form_is_still_there(name):
    kind, _, _ = FIRST[name]
    kept(written(name), document(from_json(kind, written(name))), name)


@pytest.mark.parametrize("name", FIRST)
def test_documents_of_the_first_form_are_rendered_again(name, tmp_path):
    _, render, said = FIRST[name]
    shutil.copy(DATA / f"{name}_first_form.json", tmp_path / f"{name}.json")
    page = render(tmp_path).read_text(encoding="utf-8")
    assert said in page
    assert page.endswith("</html>")
    assert render(tmp_path).read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("report", {"budget": 3}, r"report\.budget: expected an object, got 3"),
        ("run", {"curves": {}}, r"run\.curves\.episodes is missing"),
        ("run", {"regret": None}, r"run\.regret: expected an object, got NoneType"),
        ("run", {"results": [{}]}, r"run\.algorithms is missing"),
    ],
)
def test_what_is_no_such_document_is_refused_by_the_name_of_the_field(name, change, says, tmp_path):
    (tmp_path / f"{name}.json").write_text(json.dumps(written(name) | change), encoding="utf-8")
    with pytest.raises(FileFormatError, match=says):
        FIRST[name][1](tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.json"]


def test_a_report_of_the_first_form_does_not_say_whether_the_agent_was_run():
    report = load_report(DATA / "report_first_form.json")
    assert {view.agent_ran for view in report.audit.views.values()} == {None}
