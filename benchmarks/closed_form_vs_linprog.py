"""Equation (3) of Qiao & Wang 2022 in closed form against the linear programme (4), on the same noisy cells in one run.

    python benchmarks/closed_form_vs_linprog.py [--write]

The closed form runs as the agent runs it, in a compiled loop over cells; linprog is SciPy's HiGHS, one call a cell, its
matrices built beforehand. Medians of five rounds, interleaved. `--write` puts the table beside this script.
"""

import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import scipy
from numba import njit
from scipy.optimize import linprog

from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total

SIZES = (6, 24, 100)
ROUNDS = 5
PROGRAMMES = {6: 200, 24: 100, 100: 20}  # a round
CELLS = 100_000
STD, E = 6.3, 72.0  # ρ = 1, H = 20


@njit(nogil=True)
def solve_all(pairs, following, out):
    for i in range(pairs.size):
        private_counts(following[i], private_total(pairs[i], following[i], E), out[i])


def cells(rng, count, S):
    exact = rng.poisson(rng.exponential(60.0, (count, 1)) * rng.dirichlet(np.ones(S), count)).astype(float)
    return exact.sum(axis=1) + rng.normal(0, STD, count), exact + rng.normal(0, STD, exact.shape)


def programme(pair, following):
    S = following.size
    y, m = np.maximum(following, 0), max(pair, 0.0)
    one, t, total = np.eye(S), -np.ones((S, 1)), np.r_[np.ones(S), 0.0]
    rows = np.vstack([np.hstack([one, t]), np.hstack([-one, t]), total, -total])
    return {"c": np.r_[np.zeros(S), 1.0], "A_ub": rows, "b_ub": np.r_[y, -y, m + E / 2, E / 2 - m]}


def measure(S):
    rng = np.random.default_rng(0)
    pairs, following = cells(rng, CELLS, S)
    found = np.empty_like(following)
    solve_all(pairs[:1], following[:1], found[:1])  # compiles
    ready = [programme(pairs[i], following[i]) for i in range(PROGRAMMES[S])]
    closed, solver, difference = [], [], 0.0
    for _ in range(ROUNDS):
        started = time.perf_counter()
        solve_all(pairs, following, found)
        closed.append((time.perf_counter() - started) / CELLS)
        started = time.perf_counter()
        solved = [linprog(**given, bounds=(0, None), method="highs") for given in ready]
        solver.append((time.perf_counter() - started) / len(ready))
        difference = max(difference, *(np.abs(s.x[:S] - found[i]).max() for i, s in enumerate(solved)))
    return statistics.median(closed), statistics.median(solver), difference


def main() -> None:
    lines = [
        "# Equation (3): closed form against linprog",
        "",
        f"{os.cpu_count()} cores, Python {platform.python_version()}, SciPy {scipy.__version__}; one thread.",
        "",
        "| S | closed form, ns a cell | linprog, µs a cell | times faster | largest difference of an entry |",
        "| --- | --- | --- | --- | --- |",
    ]
    for S in SIZES:
        closed, solver, difference = measure(S)
        lines.append(f"| {S} | {closed * 1e9:.0f} | {solver * 1e6:.0f} | {solver / closed:,.0f} | {difference:.1e} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if "--write" in sys.argv[1:]:
        Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
