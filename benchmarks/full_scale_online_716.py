"""PRIVATE-UCB-VI under the central tree with all 716 states of ICU-Sepsis, A = 25, H = 20: time and peak memory.

    python benchmarks/full_scale_online_716.py [K] [--write]

257 million counters in a tree would take 8 bytes · (⌈log₂ K⌉ + 2) each: 10 GB for K = 8 already, 35 GB for K = 20 000.
So a node's noise is drawn again whenever a step is planned, and only that step's tables exist. An episode costs one
draw for each counter and each bit of its number that is set. Measured in a process of its own; the peak is the whole
process's, the twin without privacy included. `--write` puts the table beside this script.
"""

import os
import platform
import resource
import sys
import time
from pathlib import Path

from privcheck.commands.online_runs import load_world, online_settings, run_online

PEAK = 1024 if sys.platform == "linux" else 1  # ru_maxrss is in kilobytes on Linux, in bytes on macOS
NAME, BUDGET = "private-ucb-vi-central", 8.0  # GB


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK / 1e9


def main() -> None:
    K = int(next((word for word in sys.argv[1:] if word.isdigit()), "8"))
    world, _ = load_world("icu-sepsis", {"S": "716", "H": "20"}, seed=0)
    given = {"K": str(K), "initial": "any", "bonus_scale": "0.003", "precision_scale": "0.01"}
    setting = online_settings([NAME], given, world)[0]
    done = []

    def report(episodes: int, total: int) -> None:
        done.append((episodes, time.perf_counter()))
        print(f"{episodes} of {total} episodes, peak {peak():.2f} GB", file=sys.stderr, flush=True)

    started, core = time.perf_counter(), time.process_time()
    result = run_online(setting, world, replicates=1, seed=1, progress=lambda _: report)
    core = time.process_time() - core
    first, again = done[0][1] - started, "yes" if result.diagnostics["noise_drawn_again"] else "no"
    lines = [
        "# PRIVATE-UCB-VI, central, S = 716, A = 25, H = 20",
        "",
        f"{os.cpu_count()} cores, Python {platform.python_version()}; one replicate, which one core plays.",
        "",
        "| episodes | seconds of learning | CPU seconds in all | peak memory, GB | noise drawn again |",
        "| --- | --- | --- | --- | --- |",
        f"| {K} | {result.seconds:.1f} | {core:.1f} | {peak():.2f} | {again} |",
        "",
        f"Until the first block was done, compilation and one episode beforehand included: {first:.1f} s.",
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if peak() > BUDGET:
        raise SystemExit(f"more than {BUDGET:g} GB")
    if "--write" in sys.argv[1:]:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
