"""`privcheck new`: the package passes its own tests and its own check, and nothing is written over."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.commands.starter import KINDS, start_package
from privcheck.errors import ParameterError


def run_new(*arguments):
    return CliRunner().invoke(main, ["new", *map(str, arguments)])


def test_the_kinds_are_those_of_the_command():
    option = next(one for one in main.commands["new"].params if one.name == "kind")
    assert sorted(option.type.choices) == sorted(KINDS)


def test_without_a_kind_it_is_an_online_agent(tmp_path):
    """As scripts have it that were written before there were kinds."""
    assert json.loads(run_new("my-own-agent", "--out", tmp_path / "mine", "--json").stdout)["kind"] == "online"


def test_a_kind_that_is_none_is_refused(tmp_path):
    result = run_new("my-own-agent", "--kind", "distributed", "--out", tmp_path / "mine")
    assert result.exit_code == 2
    assert "'shuffle'" in result.stderr
    with pytest.raises(ParameterError, match=r"expected a kind out of .*offline.*, got 'distributed'"):
        start_package("my-own-agent", "distributed", tmp_path / "mine")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_it_writes_what_it_lists(kind, tmp_path):
    result = run_new("my-own-agent", "--kind", kind, "--out", tmp_path / "mine", "--json")
    assert result.exit_code == 0
    files = json.loads(result.stdout)["files"]
    assert sorted(files) == sorted(str(path) for path in (tmp_path / "mine").rglob("*") if path.is_file())
    texts = {path: Path(path).read_text(encoding="utf-8") for path in files}
    assert not [path for path, text in texts.items() if re.search(r"\{\{|\}\}|\{%|%\}", text)]
    for path, text in texts.items():
        if path.endswith(".py"):
            ast.parse(text)
            assert max(map(len, text.splitlines())) <= 120
            assert "\n\n\n\n" not in text
    listed = re.findall(r"^\| `([^`]*)` \|", texts[str(tmp_path / "mine/README.md")], re.MULTILINE)
    named = {str(tmp_path / "mine" / name) for name in listed}
    assert named == {path for path in files if Path(path).name not in {"pyproject.toml", "README.md", ".gitignore"}}
    assert "my_own_agent" in texts[str(tmp_path / "mine/pyproject.toml")]
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["My-Agent", "my_agent", "-x", "x-", "1x", "a b", "../x", "", "é"])
def test_names_that_are_none_are_refused(name, tmp_path):
    result = run_new("--out", tmp_path / "mine", "--", name)
    assert result.exit_code == 2
    assert "lower-case words joined by hyphens" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["dp-apvi", "numpy", "privcheck", "class", "json"])
def test_names_that_are_taken_are_refused(name, tmp_path):
    result = run_new(name, "--out", tmp_path / "mine")
    assert result.exit_code == 2
    assert "choose another name" in result.stderr
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_over(tmp_path):
    place = tmp_path / "mine"
    place.mkdir()
    (place / "precious").write_text("x", encoding="utf-8")
    result = run_new("my-own-agent", "--out", place)
    assert result.exit_code == 2
    assert "nothing was written" in result.stderr
    assert [path.name for path in place.iterdir()] == ["precious"]
    assert run_new("my-own-agent", "--out", place / "precious").exit_code == 2


@pytest.fixture(params=KINDS)
def installed(request, tmp_path):
    """The package of each kind, importable and registered as an editable install has it."""
    assert run_new("my-own-agent", "--kind", request.param, "--out", tmp_path / "mine").exit_code == 0
    metadata = tmp_path / "site/my_own_agent-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-own-agent\nVersion: 0.1.0\n", encoding="utf-8")
    entries = "[privcheck.algorithms]\nmy-own-agent = my_own_agent:ALGORITHM\n"
    (metadata / "entry_points.txt").write_text(entries, encoding="utf-8")
    paths = [tmp_path / "mine/src", tmp_path / "site", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, filter(None, paths)))}
    return request.param, tmp_path / "mine", environment


@pytest.mark.slow
def test_its_own_tests_pass(installed):
    _, place, environment = installed
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


FASTER = {"online": ("--set", "H=4"), "shuffle": ("--set", "H=4")}  # than 20 steps, which take the time of five


@pytest.mark.slow
def test_its_own_check_holds_with_the_agent_run(installed):
    kind, place, environment = installed
    command = [sys.executable, "-c", "from privcheck.cli.main import main; main()"]
    command += ["check", "my-own-agent", "--out", "report", "--json", "--trials", "500", *FASTER.get(kind, ())]
    command += ["--replicates", "2"] if kind != "function" else []
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["verify"]["verdict"] == "holds"
    ran = {view: audit["agent_ran"] for view, audit in result["audit"]["views"].items()}
    assert {view for view in ran if ran[view]} >= (set() if kind == "function" else {"lockstep", "noise", "policy"})
