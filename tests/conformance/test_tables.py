"""The tables of printed lines: complete, with code that exists, in the README and in `show`, and each line tested."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import privcheck_algorithms
from privcheck.cli.main import main
from privcheck.errors import DeclarationError
from privcheck.runtime import registry
from privcheck.runtime.conformance import AS_PRINTED, Line, tabulate_lines
from privcheck.support.plugins import find_entry

HERE, PACKAGES = Path(__file__).parent, Path(privcheck_algorithms.__file__).parent
# the last line of each printed algorithm, by folder
PRINTED = {
    "dp_apvi": {"Algorithm 1": 10},
    "dp_vapvi": {"Algorithm 2": 16},
    "dp_lsvi_ucb": {"Algorithm 1": 29},
    "private_ucb_vi": {"Algorithm 2": 12},
    "private_ucb_po": {"Algorithm 1": 13},
    "sdp_pe": {"Algorithm 1": 14, "Algorithm 2": 13, "Algorithm 3": 9},
    "private_linopt": {"Algorithm 1": 14, "Algorithm 2": 15},
}
TITLE = "## Line by line"


@functools.cache
def tabulated():
    """The algorithms with a table, by folder and name."""
    found: dict[str, dict[str, tuple[Line, ...]]] = {}
    for name in registry.names("algorithms"):
        lines = registry.algorithm(name).conformance
        if lines:
            folder = find_entry("algorithms", name).value.partition(":")[0].split(".")[1]
            found.setdefault(folder, {})[name] = lines
    return found


@functools.cache
def transcribed():
    """The lines with transcriptions, as the tests of this folder mark them; none of these tests is skipped."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(HERE.glob("test_lines_of_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, test in inspect.getmembers(module, inspect.isfunction):
            for line in getattr(test, "transcribes", ()):
                assert name.startswith("test_"), name
                marks = {mark.name for mark in getattr(test, "pytestmark", ())}
                assert not marks & {"skip", "skipif", "xfail", "nightly"}, name
                found.setdefault(line, []).append(name)
    return found


def numbers(line):
    """The algorithm's name and the numbers of a row; of a place in the text, none."""
    where, _, rest = line.number.partition(", ")
    found: set[int] = set()
    if where.startswith("Algorithm") and rest != "initialisation":
        for part in rest.split(", "):
            first, _, last = part.partition("–")
            found |= set(range(int(first), int(last or first) + 1))
    return where, found


def test_every_printed_algorithm_of_the_five_papers_has_a_table():
    assert {folder: set(of) for folder, of in tabulated().items()} == {
        "dp_apvi": {"dp-apvi", "dp-apvi-laplace"},
        "dp_vapvi": {"dp-vapvi", "dp-vapvi-unsplit"},
        "dp_lsvi_ucb": {"dp-lsvi-ucb-pp", "dp-lsvi-ucb-pp-as-printed"},
        "private_ucb_vi": {"private-ucb-vi-central", "private-ucb-vi-local"},
        "private_ucb_po": {"private-ucb-po-central", "private-ucb-po-local"},
        "sdp_pe": {"sdp-pe", "sdp-pe-as-printed"},
        "private_linopt": {"private-linopt-vi", "private-linopt-po"},
    }


@pytest.mark.parametrize("folder", PRINTED)
def test_every_printed_line_has_one_row(folder):
    for name, lines in tabulated()[folder].items():
        seen: dict[str, list[int]] = {}
        for line in lines:
            where, of = numbers(line)
            seen.setdefault(where, []).extend(of)
        printed = {where: of for where, of in seen.items() if where.startswith("Algorithm")}
        assert printed.keys() <= PRINTED[folder].keys(), name
        for where, of in printed.items():
            assert sorted(of) == list(range(1, PRINTED[folder][where] + 1)), (name, where)
        assert len({line.number for line in lines}) == len(lines)
    every = {numbers(line)[0] for lines in tabulated()[folder].values() for line in lines}
    assert PRINTED[folder].keys() <= every


@pytest.mark.parametrize("folder", PRINTED)
def test_every_line_as_printed_has_a_test_that_computes_it(folder):
    rows = {
        (folder, line.number): line for lines in tabulated()[folder].values() for line in lines if not line.deviates
    }
    tested = {line for line in transcribed() if line[0] == folder}
    assert rows.keys() - tested == set()
    deviating = {(folder, line.number) for lines in tabulated()[folder].values() for line in lines} - rows.keys()
    assert tested & deviating == set()
    assert tested <= rows.keys()


@pytest.mark.parametrize("folder", PRINTED)
def test_every_row_names_code_that_exists(folder):
    for lines in tabulated()[folder].values():
        for line in lines:
            parts = line.code.split(".")
            at = next(i for i in range(len(parts), 0, -1) if (PACKAGES / Path(*parts[:i])).with_suffix(".py").is_file())
            found: object = importlib.import_module(".".join(["privcheck_algorithms", *parts[:at]]))
            for name in parts[at:]:
                found = getattr(found, name)
            assert callable(found), line.code


@pytest.mark.parametrize("folder", PRINTED)
def test_the_readme_has_exactly_the_table(folder):
    readme = (PACKAGES / folder / "README.md").read_text(encoding="utf-8")
    section = readme.partition(f"{TITLE}\n")[2].partition("\n## ")[0]
    table = "\n".join(row for row in section.splitlines() if row.startswith("|"))
    assert table == tabulate_lines(tabulated()[folder])


@pytest.mark.parametrize("folder", PRINTED)
def test_what_a_paper_leaves_open_is_said_with_what_is_taken(folder):
    for lines in tabulated()[folder].values():
        assert any(re.search(r"the paper leaves .+ open; we take .+", line.standing) for line in lines)


def test_show_prints_the_table_and_has_it_in_its_json():
    name = "sdp-pe-as-printed"
    lines = registry.algorithm(name).conformance
    shown = json.loads(CliRunner().invoke(main, ["show", name, "--json"]).stdout)["conformance"]
    assert [(one["line"], one["says"], one["here"]) for one in shown] == [
        (line.number, line.says, line.standing) for line in lines
    ]
    assert {one["here"].partition(":")[0].partition(";")[0] for one in shown} == {AS_PRINTED, "deviates"}
    text = CliRunner().invoke(main, ["show", name], env={"COLUMNS": "400"}).stdout
    followed = sum(not line.deviates for line in lines)
    assert f"line by line, with preset=paper: {followed} of {len(lines)} as printed" in text
    for line in lines:
        assert f"{line.says} · {line.standing}" in text
    assert json.loads(CliRunner().invoke(main, ["show", "adassp", "--json"]).stdout)["conformance"] == []


def test_a_line_without_code_says_how_it_deviates():
    assert Line(number="1", says="x", deviates="left out").standing == "deviates: left out"
    assert Line(number="1", says="x", code="a.b", leaves_open="c", takes="2").standing == (
        "as printed; the paper leaves c open; we take 2"
    )
    for wrong in ({}, {"code": "a.b", "leaves_open": "c"}, {"code": "a.b", "takes": "2"}, {"code": "a.b", "says": ""}):
        with pytest.raises(DeclarationError):
            Line(**{"number": "1", "says": "x", **wrong})


def test_rows_that_differ_between_algorithms_name_them():
    same, one, other = (Line(number=n, says=s, code="a.b") for n, s in (("1", "x"), ("2", "y"), ("2", "z | w")))
    rows = tabulate_lines({"first": (same, one), "second": (same, other)}).splitlines()[2:]
    assert rows == [
        "| 1 | x | `a.b` | as printed |",
        "| 2 (`first`) | y | `a.b` | as printed |",
        r"| 2 (`second`) | z \| w | `a.b` | as printed |",
    ]
