"""Tests of networks in JAX, run in a process of their own; what is said where JAX is missing."""

import subprocess
import sys
from pathlib import Path

import pytest

from privcheck.errors import PrivcheckError
from privcheck_algorithms.trained.networks import Network, OptaxRule

FILE = Path(__file__).with_name("jax_networks.py")
ROOT = FILE.parents[2]
OPTIONS = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]


def run(chosen: str) -> str:
    """The output of the tests with these marks; other tests fork, which JAX warns of for as long as a process lives."""
    command = [sys.executable, "-m", "pytest", *OPTIONS, "-m", chosen, str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.every_change
def test_networks_in_jax():
    assert "13 passed" in run("not nightly")


@pytest.mark.nightly
def test_networks_in_jax_learn():
    assert "1 passed" in run("nightly")


def test_without_jax_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(PrivcheckError, match=r"privcheck\[deep\]"):
        Network(apply=lambda parameters, seen: seen @ parameters, first=[[0.0]], inputs=1, actions=2)
    with pytest.raises(PrivcheckError, match=r"privcheck\[deep\]"):
        OptaxRule(transformation=None).begin(3)
