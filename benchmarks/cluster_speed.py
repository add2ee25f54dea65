"""A Dask cluster of two workers on this machine beside two threads: the same audit, its time, and who computes.

    python benchmarks/cluster_speed.py [--trials 40000000] [--rounds 3] [--write]

Arms take turns: two threads; the cluster, with blocks sent in groups; the cluster with one block a task, as before
groups. Each audit has its own seed in a round, the bounds must be equal, and a small audit before it loads what is
loaded once. Least of the rounds. The scheduler is in the client's process, so its seconds are counted there. Wall time
means little on a busy machine; the processor's seconds mean more. `--write` puts the table beside this script.
"""

import argparse
import os
import platform
import sys
import time
from pathlib import Path

import privcheck
from privcheck_audits.engine import pools

NAME = "dp-apvi"


def warm(seed, **where):
    """Loads what is loaded once."""
    privcheck.audit(NAME, trials=8_000_000, seed=seed, **where)  # blocks for both workers


def audit(trials, seed, **where):
    """Returns wall time, this process's seconds, and the bound."""
    began, used = time.perf_counter(), time.process_time()
    found = privcheck.audit(NAME, trials=trials, seed=seed, **where)
    return time.perf_counter() - began, time.process_time() - used, found.epsilon_lower


def on_cluster(trials, seed, most):
    """Returns wall time, this process's and the workers' seconds, and the bound, with at most so many blocks a task."""
    from distributed import Client, LocalCluster

    before = vars(pools)["_MOST"]
    vars(pools).update(_MOST=most or before)
    try:
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            warm(seed, cluster=cluster.scheduler_address)
            started = client.run(time.process_time)
            wall, used, lower = audit(trials, seed, cluster=cluster.scheduler_address)
            ended = client.run(time.process_time)
            return wall, used, sum(ended.values()) - sum(started.values()), lower
    finally:
        vars(pools).update(_MOST=before)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=float, default=4e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    how = parser.parse_args()
    trials = int(how.trials)
    ways = {"cluster, groups of blocks": None, "cluster, a block a task": 1}
    arms = {"two threads": [], **{name: [] for name in ways}}
    for seed in range(how.rounds):
        warm(seed, workers=2)
        wall, used, lower = audit(trials, seed, workers=2)
        arms["two threads"].append((wall, used, 0.0))
        for name, most in ways.items():
            *spent, there = on_cluster(trials, seed, most)
            assert there == lower, (there, lower)
            arms[name].append(tuple(spent))
    least = {name: tuple(map(min, zip(*rounds, strict=True))) for name, rounds in arms.items()}
    command = f"`python benchmarks/cluster_speed.py --trials {trials:.0e} --rounds {how.rounds}`"
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    made = f"{command}: `{NAME}`, {machine}. Seconds; the same bound in every arm."
    lines = [
        "# A cluster of two workers",
        "",
        made,
        "",
        "| arm | wall | of two threads | processor, here | processor, workers |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    base = least["two threads"][0]
    for name, (wall, used, theirs) in least.items():
        lines.append(f"| {name} | {wall:.1f} | {wall / base:.2f} | {used:.1f} | {theirs:.1f} |")
    table = "\n".join(lines) + "\n"
    print(table)
    if how.write:
        Path(__file__).with_suffix(".md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
