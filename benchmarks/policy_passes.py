"""Whole passes of DP-APVI a second at S = 6, A = 2, H = 20: what the policy view of the audit is made of.

    python benchmarks/policy_passes.py [--write]

The noise is drawn beforehand. Medians of seven rounds. `--write` puts the table beside this script.
"""

import os
import platform
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from privcheck.declare.declaration import resolve
from privcheck_algorithms.dp_apvi import GAUSSIAN, OPTIONS
from privcheck_algorithms.dp_apvi.agent import plan_batch, prepare
from privcheck_algorithms.environments import RIVERSWIM

ROUNDS, PASSES = 7, 10_000


def main() -> None:
    declaration = GAUSSIAN.declare({})
    values = declaration.values({"H": 20, "S": 6, "A": 2, "rho": "1/2"})
    data = RIVERSWIM.sample({"n": 1000, "H": 20, "S": 6}, 0)
    given = prepare(declaration, values, resolve(OPTIONS, {}, owner="benchmark"), reward=data.reward)
    rng = np.random.default_rng(0)
    visits, transitions = (
        exact + release.mechanism.at(values).draw(rng, (PASSES, *exact.shape))
        for release in declaration.releases
        for exact in (release.statistic.compute(data.trajectories),)
    )
    plan_batch(visits[:1], transitions[:1], given)  # compiles, or loads what was compiled
    lines = [
        "# Passes of the agent",
        "",
        f"{os.cpu_count()} cores, Python {platform.python_version()}. S = 6, A = 2, H = 20, noise drawn beforehand.",
        "",
        "| threads | passes a second |",
        "| --- | --- |",
    ]
    for threads in (1, 2):
        rates = []
        with ThreadPoolExecutor(threads) as pool:
            for _ in range(ROUNDS):
                started = time.perf_counter()
                jobs = [pool.submit(plan_batch, visits, transitions, given) for _ in range(threads)]
                for job in jobs:
                    job.result()
                rates.append(threads * PASSES / (time.perf_counter() - started))
        lines.append(f"| {threads} | {statistics.median(rates):,.0f} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if "--write" in sys.argv[1:]:
        Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
