"""Time to the first answer of the commands that people begin with, of two trees in turns.

    python benchmarks/startup.py BEFORE AFTER [--times N] [--write]

BEFORE and AFTER are checkouts. Every run is a cold process, the trees in alternation; a row has the medians of wall
time and of user and system CPU time, and of `verify --all` the wall time to its first verdict, after which it is ended.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = (("list",), ("list", "--json"), ("show", "dp-apvi"), ("budget", "dp-apvi"), ("verify", "dp-apvi"))
FIRST = ("verify", "--all")


def environment(tree):
    paths = (tree, tree / "algorithms", tree / "audits")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}


def run(tree, words):
    """Returns wall and CPU seconds of one command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "privcheck", *words]
    subprocess.run(command, env=environment(tree), cwd=tree, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def first_verdict(tree):
    """Returns wall and CPU seconds until the first line below the heading is printed."""
    began = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "privcheck", *FIRST]
    with subprocess.Popen(command, env=environment(tree), cwd=tree, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(3):
            process.stdout.readline()
        wall = time.perf_counter() - began
        process.kill()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(trees, times, ask):
    found = {tree: [] for tree in trees}
    for _ in range(times):
        for tree in trees:
            found[tree].append(ask(tree))
    return [tuple(statistics.median(values) for values in zip(*found[tree], strict=True)) for tree in trees]


def rows(trees, times):
    for words in COMMANDS:
        yield f"`{' '.join(words)}`", measure(trees, times, lambda tree, words=words: run(tree, words))
    yield "`verify --all`, first verdict", measure(trees, max(times // 3, 1), first_verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="write startup.md beside this file")
    given = parser.parse_args()
    trees = (given.before.resolve(), given.after.resolve())
    load = os.getloadavg()[0]
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}"
    lines = [
        "# Start-up",
        "",
        f"`python benchmarks/startup.py BEFORE AFTER --times {given.times} --write`; {where} before the start. Cold",
        "processes, the two trees in alternation; medians. CPU is user and system time: compare it under load.",
        "",
        "| command | before: wall s | CPU s | after: wall s | CPU s |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, ((wall, cpu), (wall2, cpu2)) in rows(trees, given.times):
        lines.append(f"| {name} | {wall:.2f} | {cpu:.2f} | {wall2:.2f} | {cpu2:.2f} |")
        print(lines[-1], flush=True)
    if given.write:
        Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
