"""dp-recorder's examples of bugs, audited from outside beside its own grey-box tests: `benchmarks/recorder.md`.

    python benchmarks/recorder.py FOLDER [--commit ID] [--write]

FOLDER is a checkout of ObliviousAI/dp-recorder (Cebere et al. 2026, arXiv:2602.17454). Its own tests are run by pytest,
each of which passes if its auditor finds the bug. Our audit calls the same functions on the same two datasets, and the
same functions mended, and reads nothing inside them. A verdict other than the expected one ends the script with 1.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from privcheck import PureDP, audit_mechanism

TRIALS, CONFIDENCE = 20_000, 0.99
ARCHIVE = "tests/audit_harness/submissions/pets_submission.zip"
HEAD = """# dp-recorder's examples

ObliviousAI/dp-recorder at commit {commit}. Each function claims ε = 1 on the
two datasets of its test. *dp-recorder*: its own test, which reads the noise's inputs and the values that are marked as
public. *privcheck*: `audit_mechanism`, which reads outputs, with {trials:,} runs on each dataset at 99 %. The mended
functions are ours.

The harness of 73 tests, 24 of which have to fail, is about instrumented copies of dpmm, mbi and synthcity in
`{archive}`, {archived}

| function | truth | dp-recorder | privcheck | at least | seconds |
| --- | --- | --- | --- | ---: | ---: |
"""


def clipped(data: Any, limit: float) -> Any:
    """Data without NaN, clipped to ±limit."""
    return np.clip(np.nan_to_num(data), -limit, limit)


def mended(noise: Callable[..., Any]) -> dict[str, Callable[[Any], Any]]:
    """The functions without their bugs."""
    return {
        "buggy_private_mean": lambda x: (
            noise(np.array([clipped(x, 1.0).sum()]), 1.0, 0.5)[0]
            / max(1.0, noise(np.array([float(len(x))]), 1.0, 0.5)[0])
        ),
        "buggy_domain_inference": lambda x: [
            noise(np.array([np.sum(np.asarray(x) == c)]), 1.0, 1.0)[0] for c in range(3)
        ],
        "buggy_multiple_queries": lambda x: [
            noise(np.array([float(v)]), 1.0, 0.5)[0] for v in (np.sum(x), len(x))
        ],
        "buggy_nan_clipping": lambda x: noise(np.array([clipped(x, 5.0).sum()]), 10.0, 1.0)[0],  # one is replaced
        "buggy_privbayes_noise": lambda x: noise(np.array([clipped(x, 1.0).sum()]), 1.0, 1.0)[0],
        "buggy_private_sum": lambda x: noise(np.array([clipped(x, 5.0).sum()]), 10.0, 1.0)[0],
    }  # fmt: skip


def examples() -> list[tuple[str, str, Callable[[Any], Any], tuple[Any, Any], bool]]:
    """Module of the test, function, how it is called, its two datasets, whether it is broken."""
    nan, zeros = np.nan, np.zeros(100)
    tests: list[tuple[str, str, tuple[Any, Any], tuple[Any, ...], bool]] = [
        ("test_buggy_private_mean", "buggy_private_mean", ([0.5, 0.5, 0.5], [0.5, 0.5]), (), True),
        ("test_domain_inference", "buggy_domain_inference", ([0, 1, 2, 0], [0, 1, 0]), (), True),
        ("test_double_spending", "buggy_multiple_queries", (zeros, np.append(zeros, 1.0)), (), True),
        ("test_nan_injection", "buggy_nan_clipping", ([1.0, 2.0], [1.0, nan]), (), True),
        ("test_noise_miscalibration", "buggy_privbayes_noise", ([1.0, 1.0], [1.0]), (5, 5), True),
        ("test_sensitivity_miscalibration", "buggy_private_sum", ([1.0, -2.0, 3.0], [1.0, -2.0, 100.0]), (), True),
        ("test_correct_mechanism", "dp_count_mechanism", ([0, 1, 1, 0], [0, 1, 0]), (), False),
    ]
    right = mended(import_module("laplace_mechanism").instrumented_laplace)
    found = []
    for module, name, pair, more, broken in tests:
        given = (np.array(pair[0]), np.array(pair[1]))
        function = getattr(import_module(module), name)
        found.append((module, name, lambda x, f=function, more=more: f(x, *more, 1.0), given, broken))
        if name in right:
            found.append(("", f"{name}, mended", right[name], given, False))
    return found


def audited(function: Callable[[Any], Any], pair: tuple[Any, Any]) -> Any:
    """Our audit of a function that draws from NumPy's global generator."""

    def run(data: Any, rng: np.random.Generator) -> Any:
        np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002, TID251  the global generator is what it draws from
        return function(data)

    return audit_mechanism(run, PureDP(1), neighbours=[pair], trials=TRIALS, confidence=CONFIDENCE, seed=0)


def main() -> None:
    """Run both on every example, and write the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--commit", default="unknown", help="of the folder, for the page")
    asked.add_argument("--write", action="store_true")
    how = asked.parse_args()
    sys.path[:0] = [str(how.folder / "src"), str(how.folder / "tests")]
    rows, right = [], True
    for module, name, function, pair, broken in examples():
        began = time.perf_counter()
        found = audited(function, pair)
        took = time.perf_counter() - began
        theirs = "–"
        if module:
            test = how.folder / "tests" / f"{module}.py"
            call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
            paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2])}
            passed = subprocess.run(call, capture_output=True, check=False, env=paths).returncode == 0
            theirs = ("found" if broken else "spared") if passed else ("not found" if broken else "accused")
        ours = {"violation": "found" if broken else "accused"}.get(found.verdict, "not found" if broken else "spared")
        right = right and (found.verdict == "violation") == broken
        truth = "broken" if broken else "correct"
        rows.append(f"| `{name}` | {truth} | {theirs} | {ours} | {found.lower:.3g} | {took:.1f} |")
        print(rows[-1], flush=True)
    archived = "which is in the folder and is not unpacked here."
    if not (how.folder / ARCHIVE).exists():
        archived = "which was not at hand: those tests were not run."
    text = HEAD.format(commit=how.commit, trials=TRIALS, archive=ARCHIVE, archived=archived) + "\n".join(rows) + "\n"
    if how.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
