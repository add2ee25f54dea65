"""Episodes a second of the online agents, beside their noise alone and a plain NumPy loop of the same algorithm.

    python benchmarks/online_speed.py [--write]

RiverSwim, S = 6, A = 2, H = 20, K = 2·10⁴, 20 replicates on all cores; medians of three. The NumPy loop is the naive
twin of the tests: the same algorithm, the same numbers, one replicate. Compilation is not counted.
"""

import os
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from numba import njit

from algorithms.online.reference import trace
from algorithms.online.tables import size
from algorithms.privatizers.noise import LAPLACE, fill, lanes, padded
from privcheck.commands.online import load_world, online_settings
from privcheck.results import OnlineRequest

K, REPLICATES, M = 20_000, 20, size(20, 6, 2)
NAMES = (
    "ucb-vi", "private-ucb-vi-central", "private-ucb-vi-local", "oppo", "private-ucb-po-central",
    "private-ucb-po-local", "calibrated-ucb-vi",
)  # fmt: skip


def request(name, *, episodes=K, replicates=REPLICATES, workers=None, **given):
    world, _ = load_world("riverswim", {}, seed=0)
    sets = {"K": str(episodes), "bonus_scale": "0.003", "precision_scale": "0.01"} | given
    known = online_settings([name], {}, world)[0]
    names = {p.name for p in (*(known.declaration.parameters if known.declaration else ()), *known.algorithm.options)}
    setting = online_settings([name], {k: v for k, v in sets.items() if k in names}, world)[0]
    return setting.algorithm, OnlineRequest(
        declaration=setting.declaration, values=setting.values, options=setting.options, readings=setting.choices,
        world=world, episodes=episodes, replicates=replicates, seed=1, workers=workers or os.cpu_count() or 1,
    )  # fmt: skip


@njit(nogil=True)
def noise_alone(episodes, state, rng, raw, out):
    for _ in range(episodes):
        fill(LAPLACE, 1.0, state, rng, raw, out)


def noise_rate():
    """Returns episodes' worth of noise a second, all cores: one core's rate times the cores."""
    state, rng = lanes(np.random.SeedSequence(0)), np.random.default_rng(0)
    raw, out = np.empty((2, padded(M)), np.uint64), np.empty(padded(M))
    noise_alone(1, state, rng, raw, out)
    started = time.thread_time()
    noise_alone(K, state, rng, raw, out)
    return K / (time.thread_time() - started) * (os.cpu_count() or 1)


def plain_rate():
    """Returns the same with NumPy's own `Generator.laplace`."""
    rng, out = np.random.default_rng(0), 0.0
    started = time.thread_time()
    for _ in range(200):
        out += rng.laplace(0.0, 1.0, M)[0]
    return 200 / (time.thread_time() - started) * (os.cpu_count() or 1)


def naive_rate(name, kind):
    _, asked = request(name, episodes=60, replicates=1)
    started = time.perf_counter()
    trace(asked, kind=kind)
    return 60 / (time.perf_counter() - started)


def main():
    rows = []
    for name in NAMES:
        algorithm, asked = request(name)
        walls, cores = [], []
        for _ in range(3):
            wall, core = time.perf_counter(), time.process_time()
            algorithm.online(asked)
            walls.append(K * REPLICATES / (time.perf_counter() - wall))
            cores.append(K * REPLICATES / (time.process_time() - core))
        rows.append((name, statistics.median(walls), statistics.median(cores)))
        print(rows[-1], flush=True)
    noise = noise_rate()
    plain = plain_rate()
    lines = ["# Episodes a second", "", __doc__.split("\n\n")[2].replace("\n", " "), "",
             "| agent | a second, in all | a second of CPU time of one core |", "| --- | --- | --- |"]  # fmt: skip
    lines += [f"| `{name}` | {wall:,.0f} | {core:,.0f} |".replace(",", " ") for name, wall, core in rows]
    lines += [f"| the Laplace noise of {M:,} counters alone | {noise:,.0f} | {noise / (os.cpu_count() or 1):,.0f} |",
              f"| the same drawn by NumPy | {plain:,.0f} | {plain / (os.cpu_count() or 1):,.0f} |",
              *(f"| NumPy, through a channel: `{name}` | {naive_rate(name, kind):,.0f} | |"
                for name, kind in (("private-ucb-vi-central", "vi"), ("private-ucb-po-central", "po"))),
              "", f"Python {platform.python_version()}, {os.cpu_count()} cores."]  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
