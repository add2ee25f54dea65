"""A user's own repository has folders `algorithms/` and `audits/`: neither its tests nor ours find the wrong ones.

`python -m pytest` puts the folder it is called in first on the path, before everything that is installed.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import files

import pytest

MODULES = (  # of the user's, named like ours
    "algorithms/dp_apvi.py",
    "algorithms/planning.py",
    "audits/blackbox.py",
    "audits/plan.py",
    "environments.py",
    "tests/twins.py",
)
SUITE = """
import json

import algorithms.dp_apvi
import audits.blackbox
import environments
import pytest
from click.testing import CliRunner

from privcheck import PureDP
from privcheck.runtime import registry
from privcheck.cli.main import main
from privcheck.testing import assert_private


def call(*arguments):
    result = CliRunner().invoke(main, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_users_own_are_the_users():
    assert [module.WHOSE for module in (algorithms.dp_apvi, audits.blackbox, environments)] == ["the user's"] * 3


def test_ours_are_ours():
    assert registry.algorithm("dp-apvi").declare({}).name == "dp-apvi"
    assert all(registry.algorithm(name).name == name for name in registry.names("algorithms"))
    assert call("doctor")["problems"] == []


def test_the_main_job(tmp_path):
    sets = ["--set", "n=100", "--set", "H=2", "--set", "S=2", "--trials", "200", "--out", str(tmp_path / "out")]
    report = call("check", "dp-apvi", "--env", "riverswim", *sets)
    assert report["verify"]["verdict"] == "holds"


@pytest.mark.privacy
def test_the_plugin():
    assert_private(lambda given, runs, rng: given + rng.laplace(0, 1, runs), PureDP(1), neighbours=[(0, 1)])
"""


@pytest.mark.parametrize("packages", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_users_folders_are_named_like_ours(tmp_path, packages):
    for name in MODULES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text('WHOSE = "the user\'s"\n')
        if packages and path.parent != tmp_path:
            (path.parent / "__init__.py").touch()
    (tmp_path / "tests" / "test_all.py").write_text(SUITE)
    (tmp_path / "algorithms" / "test_own.py").write_text("def test_own():\n    import privcheck_algorithms.dp_apvi\n")
    options = ["-p", "no:cacheprovider", "-q", "--privacy-trials=300", "--privacy-confidence=0.999999999"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "5 passed" in result.stdout
    assert "privacy: 1 audits" in result.stdout


def test_what_is_installed_has_our_names_alone():
    rooms = {path.parts[0] for path in files("privcheck") or () if path.suffix == ".py"}  # none where it is editable
    assert rooms <= {"privcheck", "privcheck_algorithms", "privcheck_audits", "privcheck_check"}
