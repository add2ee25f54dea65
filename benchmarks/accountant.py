"""The numeric accountant beside dp-accounting, in the same run on the same jobs.

    python benchmarks/accountant.py [--write]

Medians; every repetition asks for slightly other parameters, so that no cache answers. dp-accounting is used at its
defaults (grid 1e-4) as add/remove on float multipliers; its calibration takes half a minute. `--write` puts the table
beside this script.
"""

import itertools
import math
import os
import platform
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

import dp_accounting
import numpy as np
from dp_accounting import ComposedDpEvent, GaussianDpEvent, LaplaceDpEvent, SelfComposedDpEvent
from dp_accounting.pld import PLDAccountant

from algorithms.dp_apvi import GAUSSIAN
from privcheck import accounting as acc

_fresh = (1 + i * 1e-13 for i in itertools.count(1))  # parameters that no cache has seen


def median_of(work, repeats):
    """Returns the median of wall times in seconds, and the last result."""
    work()
    times, result = [], None
    for _ in range(repeats):
        started = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - started)
    return statistics.median(times), result


def mixed():
    return acc.compose(acc.gaussian(std=30 * next(_fresh), count=1000), acc.laplace(scale=50, count=500))


def theirs_mixed():
    gaussians = SelfComposedDpEvent(GaussianDpEvent(float(30 * next(_fresh))), 1000)
    return ComposedDpEvent([gaussians, SelfComposedDpEvent(LaplaceDpEvent(50.0), 500)])


def their_calibration():
    def made(std):
        return SelfComposedDpEvent(GaussianDpEvent(float(std)), 1000)

    interval = dp_accounting.LowerEndpointAndGuess(1.0, 100.0)
    return dp_accounting.calibrate_dp_mechanism(PLDAccountant, made, 1.0, 1e-6, interval, tol=1e-6)


def our_calibration():
    start = next(_fresh)
    return acc.calibrate((1.0, 1e-6), lambda std: acc.gaussian(std=std, count=1000), start=100 * start).scale


def many_epsilons():
    return mixed().epsilons(np.geomspace(1e-60, 0.5, 100_000)).values[0]


def many_deltas():
    return mixed().deltas(np.linspace(0, 30, 100_000)).values[-1]


def budget():
    return _ACCOUNT.at(_VALUES).methods(1e-5)[0].epsilon


def rows():
    """Returns (job, ours, theirs, limit), times in ms with the figure."""
    yield (
        "ε of 1000 Gaussians + 500 Laplace, δ = 1e-6, tight value",
        median_of(lambda: mixed().epsilon(delta=1e-6).value, 50),
        median_of(lambda: PLDAccountant().compose(theirs_mixed()).get_epsilon(1e-6), 5),
        "5 ms",
    )
    yield (
        "the same, certified upper bound",
        median_of(lambda: mixed().epsilon(delta=1e-6).upper, 10),
        (math.nan, "the line above"),
        "–",
    )
    yield (
        "the same at δ = 1e-60, tight value",
        median_of(lambda: mixed().epsilon(delta=1e-60).value, 50),
        median_of(lambda: PLDAccountant().compose(theirs_mixed()).get_epsilon(1e-60), 5),
        "5 ms",
    )
    yield (
        "the same at δ = 1e-60, certified",
        median_of(lambda: mixed().epsilon(delta=1e-60).upper, 10),
        (math.nan, "∞"),
        "–",
    )
    yield (
        "std of 1000 Gaussians for (1, 1e-6)",
        median_of(our_calibration, 20),
        median_of(their_calibration, 1) if "--quick" not in sys.argv else (math.nan, "–"),
        "20 ms",
    )
    yield "ε at 10⁵ δ from 1e-60 to ½", median_of(many_epsilons, 5), (math.nan, "–"), "1 s"
    yield "δ at 10⁵ ε from 0 to 30", median_of(many_deltas, 5), (math.nan, "–"), "1 s"
    yield "DP-APVI's budget at given numbers", median_of(budget, 50), (math.nan, "–"), "2 ms"


def shown(found):
    seconds, value = found
    value = f"{value:.9g}" if isinstance(value, float) else str(value)
    return f"{seconds * 1e3:,.1f} ms ({value})" if math.isfinite(seconds) else value


_ACCOUNT = acc.account(GAUSSIAN.declare({}))
_VALUES = GAUSSIAN.declare({}).values({})

if __name__ == "__main__":
    table = ["| job | privcheck | dp-accounting's PLD | limit |", "| --- | --- | --- | --- |"]
    for job, ours, theirs, limit in rows():
        table.append(f"| {job} | {shown(ours)} | {shown(theirs)} | {limit} |")
        print(table[-1], flush=True)
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    versions = f"dp-accounting {version('dp-accounting')}, NumPy {np.__version__}"
    text = f"# The accountant\n\n`python benchmarks/accountant.py --write`; {where}, {versions}; medians.\n\n"
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text + "\n".join(table) + "\n", encoding="utf-8")
