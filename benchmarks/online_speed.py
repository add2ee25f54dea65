"""Episodes a second of the online agents, beside their noise alone and a plain NumPy loop of the same algorithm.

    python benchmarks/online_speed.py [--write]

RiverSwim, S = 6, A = 2, H = 20, K = 2·10⁴, 20 replicates on all cores; medians of five. Each run is paired with one
that draws the noise of as many episodes and does nothing else, on as many threads, right before it; the share is the
ratio of their CPU times, pair by pair. The NumPy loop is the naive twin of the tests: the same algorithm, the same
numbers, one replicate on one core. Compilation is not counted. "Lively": bonuses of 0.003 and precision levels of 0.01
times the paper's, with which policies change in nearly every episode and are evaluated anew; else the paper's own.
"""

import os
import platform
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numba import njit

from privcheck.commands.online_runs import load_world, online_settings
from privcheck.runtime.results import OnlineRequest
from privcheck_algorithms.kernels.tables import size
from privcheck_algorithms.privatizers.noise import LAPLACE, add, chunk, lanes, open_channel
from twins.paper_002 import trace

K, REPLICATES, M, PAIRS, LONG = 20_000, 20, size(20, 6, 2), 5, 20_000_000
NAMES = (
    "ucb-vi", "private-ucb-vi-central", "private-ucb-vi-local", "oppo", "private-ucb-po-central",
    "private-ucb-po-local", "calibrated-ucb-vi",
)  # fmt: skip
PRIVATE = [name for name in NAMES if name.startswith("private")]
LIVELY = {"bonus_scale": "0.003", "precision_scale": "0.01"}
LOOPS = {"private-ucb-vi-central": "vi", "private-ucb-vi-local": "vi", "private-ucb-po-central": "po"}


def request(name, *, episodes=K, replicates=REPLICATES, workers=None, **given):
    world, _ = load_world("riverswim", {}, seed=0)
    sets = {"K": str(episodes)} | given
    known = online_settings([name], {}, world)[0]
    names = {p.name for p in (*(known.declaration.parameters if known.declaration else ()), *known.algorithm.options)}
    setting = online_settings([name], {k: v for k, v in sets.items() if k in names}, world)[0]
    return setting.algorithm, OnlineRequest(
        setting=setting.setting,
        world=world, episodes=episodes, replicates=replicates, seed=1, workers=workers or os.cpu_count() or 1,
    )  # fmt: skip


def channel(seed):
    rng = np.random.default_rng(seed)
    return open_channel(LAPLACE, 1.0, streams=lanes(seed), rng=rng, piece=chunk(M))


@njit(nogil=True)
def draw(episodes, channel):
    out, values = np.empty(channel.raw.size), np.zeros(channel.raw.size)
    for _ in range(episodes):
        for _ in range(0, M, values.size):
            add(channel, values, out)


def noise_alone(_=None):
    """Draws the noise of a whole run, on all cores."""
    seeds = np.random.SeedSequence(0).spawn(REPLICATES)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda seed: draw(K, channel(seed)), seeds))


def numpy_noise(_=None):
    """The same by NumPy's own `Generator.laplace`, of a hundredth of the episodes, on one core."""
    rng = np.random.default_rng(0)
    for _ in range(K * REPLICATES // 100):
        rng.laplace(0.0, 1.0, M)


def seconds(work, *given):
    """Returns wall and CPU time."""
    wall, core = time.perf_counter(), time.process_time()
    work(*given)
    return time.perf_counter() - wall, time.process_time() - core


def naive_rate(name, kind):
    _, asked = request(name, episodes=60, replicates=1)
    started = time.process_time()
    trace(asked, kind=kind)
    return 60 / (time.process_time() - started)


def measured(name, **sets):
    """Returns episodes a second in all and of one core's CPU time, and the share of the rate of the noise alone."""
    algorithm, asked = request(name, **sets)
    algorithm.play(request(name, episodes=10, **sets)[1])
    pairs = [(seconds(noise_alone), seconds(algorithm.play, asked)) for _ in range(PAIRS)]
    wall, core = (K * REPLICATES / statistics.median(run[i] for _, run in pairs) for i in range(2))
    return wall, core, statistics.median(alone[1] / run[1] for alone, run in pairs)


def main():
    draw(1, channel(np.random.SeedSequence(0)))
    rows = []
    for name in NAMES:
        rows.append((name, *measured(name), *measured(name, **LIVELY)))
        print(rows[-1], flush=True)
    alone = [seconds(noise_alone) for _ in range(PAIRS)]
    wall, core = (K * REPLICATES / statistics.median(one[i] for one in alone) for i in range(2))
    plain = K * REPLICATES / 100 / statistics.median(seconds(numpy_noise)[1] for _ in range(PAIRS))
    lines = ["# Episodes a second", "", __doc__.split("\n\n")[2].replace("\n", " "), "",
             "| agent | a second, in all | of CPU time | share of its noise's rate | lively: in all | share |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for name, wall_here, core_here, share, lively, _, lively_share in rows:
        shares = [f"{each:.0%}" if name in PRIVATE else "" for each in (share, lively_share)]
        cells = [f"`{name}`", f"{wall_here:,.0f}", f"{core_here:,.0f}", shares[0], f"{lively:,.0f}", shares[1]]
        lines.append(f"| {' | '.join(cells)} |")
    algorithm, asked = request("private-ucb-vi-central", episodes=LONG, replicates=1)
    long = seconds(algorithm.play, asked)[0]
    lines += [f"| the Laplace noise of {M} counters alone | {wall:,.0f} | {core:,.0f} | | | |",
              f"| the same drawn by NumPy | | {plain:,.0f} | | | |",
              *(f"| NumPy, through a channel: `{name}` | | {naive_rate(name, kind):,.0f} | | | |"
                for name, kind in LOOPS.items()),
              "", f"K = {LONG:,} in one replicate of `private-ucb-vi-central`: {long:.0f} s.",
              "", f"Python {platform.python_version()}, {os.cpu_count()} cores."]  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text)
    if "--write" in sys.argv:
        Path(__file__).with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
