"""Kernels compiled when first called: as Numba's own, by name between processes, and without Numba before."""

import subprocess
import sys

import cloudpickle
import numpy as np
import pytest

from privcheck.support.kernels import njit

WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
from privcheck.cli.main import main
main(sys.argv[1:])
"""


def run_without_numba(*arguments):
    command = [sys.executable, "-c", WITHOUT_NUMBA, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@njit(cache=False, nogil=True)
def _square(x):
    return x * x


@njit(cache=False, nogil=True)
def _sum_of_squares(values):
    total = 0.0
    for value in values:
        total += _square(value)
    return total


@njit(cache=False, nogil=True)
def _apply(function, x):
    return function(x)


def test_kernels_call_each_other_and_take_each_other():
    values = np.random.default_rng(0).normal(size=1000)
    assert _sum_of_squares(values) == pytest.approx(float(values @ values))
    assert _apply(_square, 3) == 9


def test_a_kernel_travels_by_its_name():
    assert cloudpickle.loads(cloudpickle.dumps(_square)) is _square
    assert _square.__name__ == "_square"
    assert _square.__wrapped__(4) == 16


def test_reading_a_module_of_kernels_needs_no_numba():
    code = "import sys, privcheck_algorithms.dp_apvi, privcheck_algorithms.sdp_pe; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["show", "dp-apvi"], ["budget", "dp-apvi"], ["verify", "private-ucb-vi-central"], ["ledger", "--help"]],
    ids=" ".join,
)
def test_what_runs_no_agent_needs_no_numba(arguments):
    done = run_without_numba(*arguments)
    # 1: the claim of private-ucb-vi-central fails
    assert done.returncode == (1 if arguments[0] == "verify" else 0), done.stderr


def test_what_runs_an_agent_says_what_to_install(tmp_path):
    arguments = ["run", "ucb-vi", "--env", "riverswim", "--set", "K=10", "--out", str(tmp_path / "out")]
    done = run_without_numba(*arguments)
    assert done.returncode == 2
    assert "pip install 'privcheck[agents]'" in done.stderr
    assert not (tmp_path / "out").exists()
