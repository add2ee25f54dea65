"""What `list` reads from a package's file is what its declarations say, and one broken package hides no other."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from click.testing import CliRunner

from privcheck.cli import listing
from privcheck.cli.main import main
from privcheck.commands import declarations
from privcheck.reports.values import SCHEMA, document
from privcheck.runtime import registry

REMEDY = "python -m privcheck.cli.listing privcheck_algorithms"


def call(*arguments, code):
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == code, done.output
    return done


def test_the_file_is_what_the_declarations_say():
    path = listing.find_file("privcheck_algorithms")
    assert path is not None
    text = path.read_text(encoding="utf-8")
    assert text == listing.make_listing("privcheck_algorithms"), f"write it again: {REMEDY}"
    assert json.loads(text)["schema"] == listing.SCHEMA == SCHEMA
    assert listing.list_algorithms() == json.loads(json.dumps(document(declarations.list_algorithms())))


def test_listing_loads_no_symbolic_algebra():
    code = """
import sys
from privcheck.cli.main import main
try:
    main(["list"])
finally:
    heavy = {"sympy", "scipy", "numpy", "numba", "privcheck.declare.declaration", "privcheck_algorithms"}
    heavy &= sys.modules.keys()
    assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "dp-apvi-laplace" in done.stdout


@pytest.fixture
def few(monkeypatch):
    """Lets the registry list dp-apvi and what a test registers."""
    entries = registry.list_entries
    ours = {name for name in registry.names("algorithms") if name != "dp-apvi"}

    def shown(group):
        return {name: point for name, point in entries(group).items() if name not in ours}

    monkeypatch.setattr(registry, "list_entries", shown)
    monkeypatch.setattr(listing, "list_entries", shown)


def test_a_third_partys_algorithm_is_described_from_its_declaration(register, few):
    register("algorithms", "somebodys", registry.Algorithm(name="somebodys", title="T", source="S", declare=None))
    found = {one["name"]: one for one in listing.list_algorithms()["algorithms"]}
    assert (found["somebodys"]["title"], found["somebodys"]["claim"], found["somebodys"]["error"]) == ("T", None, None)


def test_a_broken_package_is_one_row_of_a_list_and_of_all_verdicts(tmp_path, monkeypatch, few):
    """One whose module cannot be imported, and one whose declaration raises."""
    head = "from privcheck.runtime.registry import Algorithm\n"
    made = "def declare(readings):\n    return 1 / 0\n"
    made += "ONE = Algorithm(name='c-broken', title='T', source='S', declare=declare)\n"
    (tmp_path / "broken_third_party.py").write_text(head + made)
    metadata = tmp_path / "broken_third_party-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken_third_party\nVersion: 1.0\n")
    points = "a-broken = not_installed_anywhere:ONE\nc-broken = broken_third_party:ONE\n"
    (metadata / "entry_points.txt").write_text(f"[privcheck.algorithms]\n{points}")
    monkeypatch.syspath_prepend(tmp_path)
    rows = {one["name"]: one for one in json.loads(call("list", "--json", code=2).stdout)["algorithms"]}
    assert rows["dp-apvi"]["error"] is None
    assert "No module named 'not_installed_anywhere'" in rows["a-broken"]["error"]
    assert "ZeroDivisionError" in rows["c-broken"]["error"]
    assert rows["a-broken"].keys() == rows["dp-apvi"].keys()
    assert "Cannot be loaded" in call("list", code=2).stdout
    told = json.loads(call("verify", "--all", "--json", code=2).stdout)
    assert [one["algorithm"] for one in told["results"]] == ["dp-apvi"]
    assert [(one["algorithm"], one["error"]) for one in told["errors"]] == [
        ("a-broken", "package"),
        ("c-broken", "package"),
    ]
    lines = call("verify", "--all", code=2).stdout.splitlines()
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["a-broken", "error"],
        ["c-broken", "error"],
        ["dp-apvi", "holds"],
    ]


@pytest.mark.parametrize("codes", [("fails", 1), ("undecided", 2), ("holds", 2)])
def test_a_failing_claim_outweighs_a_broken_package_which_outweighs_undecided(monkeypatch, codes):
    from privcheck.reports.values import Unverified

    verdict, code = codes
    verified = declarations.verify_claim(declarations.resolve_setting("dp-apvi", {"H": "2"}))
    found = [Unverified(algorithm="b", error="package", message="m"), replace(verified, verdict=verdict)]
    monkeypatch.setattr(declarations, "verify_each", lambda: iter(found))
    call("verify", "--all", code=code)


def test_verdicts_are_printed_as_they_come(monkeypatch):
    """The first line leaves before the second verdict is asked for."""
    import click

    said = []
    monkeypatch.setattr(click, "echo", lambda text="", **_: said.append(text))
    verified = declarations.verify_claim(declarations.resolve_setting("dp-apvi", {"H": "2"}))

    def found():
        yield verified
        assert any(str(line).startswith("dp-apvi ") for line in said)
        said.append("second")
        yield replace(verified, algorithm="other")

    monkeypatch.setattr(declarations, "verify_each", found)
    call("verify", "--all", code=0)
    assert said.index("second") < next(i for i, line in enumerate(said) if line.startswith("other "))
