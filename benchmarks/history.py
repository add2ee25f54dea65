"""The speed of what people wait for, run by run: `benchmarks/history.jsonl`.

    PYTHONPATH=tests python benchmarks/history.py [--write]

Every job is timed in turns with a reference, a fixed piece of NumPy, by processor time; its figure is the ratio of the
smallest of five of each: machines differ, ratios hardly do. A job that takes 1.5 times the median of the last five runs
on record fails the script. `--write` adds the run to the record.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import math
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from privcheck import PureDP, accounting, audit_mechanism, verify_claim

HISTORY = Path(__file__).with_suffix(".jsonl")
TIMES, KEPT, SLOWER = 5, 5, 1.5
LEAST = 0.1  # seconds that a job is repeated for
_fresh = (1 + k * 1e-9 for k in itertools.count())  # answers are remembered: each job asks about another number


def reference() -> None:
    matrix = np.random.default_rng(0).normal(size=(220, 220))
    for _ in range(40):
        np.linalg.eigvalsh(matrix @ matrix.T)


def command(*words: str) -> Callable[[], object]:
    line = [sys.executable, "-m", "privcheck", *words]
    return lambda: subprocess.run(line, check=True, stdout=subprocess.DEVNULL)


def audit() -> object:
    function = lambda x, size, rng: x + rng.laplace(0, 1, size)  # noqa: E731 - as a user writes it
    return audit_mechanism(function, PureDP(1), neighbours=[(0, 1)], trials=10_000)


JOBS: dict[str, Callable[[], object]] = {
    "privcheck list": command("list"),
    "privcheck verify dp-apvi": command("verify", "dp-apvi"),
    "verify_claim dp-apvi, imported": lambda: verify_claim("dp-apvi"),
    "10 000 sampled Gaussians": lambda: accounting.compose(
        accounting.poisson_gaussian(std=next(_fresh), rate=0.01, relation="add-remove", count=10_000)
    ).epsilon(delta=1e-5),
    "500 Laplaces": lambda: accounting.compose(accounting.laplace(scale=10 * next(_fresh), count=500)).epsilon(
        delta=1e-6
    ),
    "random allocation, 1 of 1 000": lambda: accounting.compose(
        accounting.random_allocation(std=next(_fresh), rounds=1_000, relation="add-remove")
    ).epsilon(delta=1e-5),
    "black-box audit, 10 000 runs": audit,
}


def spent() -> float:
    """Processor seconds of this process and of the commands it ran."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def timed(work: Callable[[], object], often: int = 1) -> float:
    before = spent()
    for _ in range(often):
        work()
    return (spent() - before) / often


def ratio(job: Callable[[], object]) -> float:
    """The job's processor time over the reference's."""
    job()  # imports and compilation are not timed
    often = max(1, math.ceil(LEAST / max(1e-6, timed(job))))
    took = [(timed(job, often), timed(reference)) for _ in range(TIMES)]
    return min(one for one, _ in took) / min(other for _, other in took)


def main() -> None:
    """Time the jobs, compare them with the record, and add to it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    how = parser.parse_args()
    lines = HISTORY.read_text(encoding="utf-8").splitlines() if HISTORY.is_file() else []
    record = [json.loads(line) for line in lines]
    found, slower = {}, []
    for name, job in JOBS.items():
        found[name] = round(ratio(job), 3)
        before = [one["ratios"][name] for one in record if name in one["ratios"]][-KEPT:]
        usual = statistics.median(before) if before else found[name]
        print(f"{name:45} {found[name]:8.3f}   {found[name] / usual:5.2f} of the median on record", flush=True)
        slower += [name] * (found[name] > SLOWER * usual)
    if how.write:
        head = ["git", "-C", str(HISTORY.parent), "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
        made = {
            "on": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "commit": commit,
            "python": platform.python_version(),
            "ratios": found,
        }
        with HISTORY.open("a", encoding="utf-8") as file:
            file.write(json.dumps(made) + "\n")
    sys.exit(f"slower than {SLOWER} times the record: {', '.join(slower)}" if slower else 0)


if __name__ == "__main__":
    main()
