"""report.json: what is accepted, and that it is written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privcheck.errors import FileFormatError, ParameterError, PrivcheckError
from privcheck.reports import SCHEMA, load_report, read_report, render_again, save_report
from small_reports import as_written, whole

MINIMAL = {"privcheck": {"version": "0.1.0", "schema": SCHEMA}}


@pytest.fixture
def sample():
    return whole("holds")


def test_saved_and_loaded_it_is_the_same(sample, tmp_path):
    json_path, html_path = save_report(sample, tmp_path / "new" / "dir")
    assert load_report(json_path.parent) == load_report(json_path) == sample
    assert html_path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(p.name for p in json_path.parent.iterdir()) == ["report.html", "report.json"]


def test_rendered_again_from_report_json_alone(sample, tmp_path):
    json_path, html_path = save_report(sample, tmp_path)
    first, written = html_path.read_bytes(), json_path.read_bytes()
    html_path.unlink()
    assert render_again(tmp_path) == html_path
    assert html_path.read_bytes() == first
    assert json_path.read_bytes() == written


def _loaded(data, tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(data), encoding="utf-8")
    return load_report(tmp_path)


def test_what_an_older_report_lacks_and_a_newer_one_adds_makes_no_difference(sample, tmp_path):
    data = as_written("holds")
    assert "schema" not in data  # older than that field
    assert "schedule" not in data["budget"]["releases"][0]
    data |= {"schema": SCHEMA, "unknown": {"field": [1, 2.5, None, True, "ρ"]}, "calibrate": None}
    data["budget"]["releases"][0]["unknown"] = 1
    assert _loaded(data, tmp_path) == sample
    page = render_again(tmp_path).read_text(encoding="utf-8")
    assert "Holds, proved" in page


def test_the_schema_number_stands_first(sample, tmp_path):
    json_path, _ = save_report(sample, tmp_path)
    data = json.loads(json_path.read_text(encoding="utf-8"))
    assert next(iter(data.items())) == ("schema", SCHEMA)
    assert data["privcheck"]["schema"] == sample.privcheck.schema <= SCHEMA


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"budget": {"curve": {"delta_upper": [0.5, math.nan]}}}, r"report\.budget\.curve\.delta_upper\[1\] is NaN"),
        ({"budget": {"x": np.float64("nan")}}, r"report\.budget\.x is NaN"),
        ({"run": {"x": object()}}, "type object cannot be written"),
        ({"run": {"x": "\ud800"}}, "not a text that can be written"),
        ({"run": [1]}, r"report\.run: expected an object, got list"),
        ({"verdict": "holds"}, r"report\.verdict: expected an object, got 'holds'"),
        ({"budget": {}}, r"report\.budget\.algorithm is missing"),
        ({"privcheck": None}, "expected a report with a schema number"),
        ({"privcheck": {"schema": True}}, "expected a report with a schema number"),
        ({"privcheck": {"schema": "1"}}, "expected a report with a schema number"),
        ({"privcheck": {"schema": SCHEMA + 1}}, "use a newer privcheck"),
    ],
)
def test_what_is_no_report_is_refused_before_anything_is_written(change, says, tmp_path):
    with pytest.raises(ParameterError, match=says):
        save_report(read_report(MINIMAL | change), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_is_no_number_is_refused_before_anything_is_written(sample, tmp_path):
    broken = replace(sample, budget=replace(sample.budget, guarantee=replace(sample.budget.guarantee, rho=math.nan)))
    with pytest.raises(ParameterError, match=r"report\.budget\.guarantee\.rho is NaN"):
        save_report(broken, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "not a complete JSON report"),
        (b'{"privcheck": {"schema": 1}, "budget": {', "not a complete JSON report"),
        (b"[1, 2]", "expected a report, a JSON object; got list"),
        (b"null", "got NoneType"),
        (b"{}", "expected a report with a schema number"),
        (b'{"privcheck": {"schema": 3}}', "use a newer privcheck"),
        (b'{"privcheck": {"schema": 1}, "run": {"x": NaN}}', "NaN is not allowed"),
        (b'{"privcheck": {"schema": 1}, "run": {"x": -Infinity}}', "-Infinity is not allowed"),
        (b'{"privcheck": {"schema": 1}, "run": 3}', r"report\.run: expected an object, got 3"),
        (b"\xff\xfe", "cannot be read as a report"),
        (b"[" * 100_000, "not a complete JSON report"),
        (b'{"privcheck": {"schema": 1}, "run": {"x": "\\ud800"}}', "not a text that can be written"),
        (b'{"privcheck": {"schema": 1}, "run": {"x": ' + b"9" * 5000 + b"}}", "not a complete JSON report"),
    ],
)
def test_broken_files_are_named(text, says, tmp_path):
    (tmp_path / "report.json").write_bytes(text)
    with pytest.raises(FileFormatError, match=says) as caught:
        load_report(tmp_path)
    assert str(tmp_path / "report.json") in str(caught.value)


def test_a_missing_report_says_where_one_comes_from(tmp_path):
    with pytest.raises(FileFormatError, match=r"no report\.json in .*privcheck check NAME --out DIR"):
        load_report(tmp_path)
    with pytest.raises(FileFormatError, match=r"no report\.json"):
        render_again(tmp_path / "nowhere")
    assert list(tmp_path.iterdir()) == []


def _fail_on(monkeypatch, name, error):
    replace = os.replace

    def failing(source, target):
        if Path(target).name == name and Path(source).name != f"{name}.old":
            raise error
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)


@pytest.mark.parametrize("name", ["report.json", "report.html"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_is_killed_leaves_nothing(name, error, sample, tmp_path, monkeypatch):
    _fail_on(monkeypatch, name, error)
    with pytest.raises(PrivcheckError if isinstance(error, OSError) else KeyboardInterrupt):
        save_report(sample, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_a_write_that_is_killed_leaves_the_old_report(name, sample, tmp_path, monkeypatch):
    save_report(read_report(MINIMAL), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    _fail_on(monkeypatch, name, OSError(28, "No space left on device"))
    with pytest.raises(
        PrivcheckError, match=r"cannot write the report to .*No space left on device; nothing was changed"
    ):
        save_report(sample, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_failed_rendering_writes_nothing(sample, tmp_path, monkeypatch):
    def broken(_report, **_how):
        raise RuntimeError

    monkeypatch.setattr("privcheck.reports.html.render_html", broken)
    with pytest.raises(RuntimeError):
        save_report(sample, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_a_file_is_refused(sample, tmp_path):
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(PrivcheckError, match="cannot write the report"):
        save_report(sample, tmp_path / "out")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "mine"


def test_importing_the_reports_loads_nothing_heavy():
    code = (
        "import sys, privcheck.reports\n"
        "print([name for name in ('matplotlib', 'jinja2', 'sympy', 'scipy', 'numpy') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
