"""The fuzzer's command: `python -m accounting` in tests/fuzz, or `make fuzz`."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final

from .asking import Finding, Report
from .checks import QUESTIONS, check
from .jobs import Job, jobs
from .known import KNOWN
from .tables import table

_TO_A_POOL: Final = 250  # jobs


def _reports(given: argparse.Namespace) -> Iterator[Report]:
    """Yields the reports in the jobs' order: first those that an earlier run of the same command kept."""
    kinds = tuple(given.kinds.split(",")) if given.kinds else None
    chosen = itertools.chain(() if kinds else KNOWN, jobs(given.jobs, given.seed, kinds))
    kept: list[str] = []
    if given.keep and given.keep.exists():
        kept = given.keep.read_text(encoding="utf-8").splitlines(keepends=True)
    if kept and not kept[-1].endswith("\n"):  # the run was killed while it wrote
        given.keep.write_text("".join(kept[:-1]), encoding="utf-8")
        kept.pop()
    for line, job in zip(kept, chosen, strict=False):
        said = json.loads(line)
        yield Report(**said | {"job": job, "findings": [Finding(**found) for found in said["findings"]]})
    for report in _asked(chosen, partial(check, questions=frozenset(given.questions.split(","))), given.processes):
        if given.keep:
            said = {name: value for name, value in vars(report).items() if name != "job"}
            with given.keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(said | {"findings": list(map(asdict, report.findings))}) + "\n")
        yield report


def _asked(chosen: Iterator[Job], ask: Callable[[Job], Report], processes: int) -> Iterator[Report]:
    if processes == 1:
        yield from map(ask, chosen)
        return
    # new processes from time to time: the caches of the accountant grow with every event
    while some := list(itertools.islice(chosen, _TO_A_POOL)):
        with ProcessPoolExecutor(processes) as pool:
            yield from pool.map(ask, some)


def _shown(finding: Finding) -> str:
    figures = f"{finding.figure:.12g} | {finding.truth:.12g} | {finding.factor - 1:.3g}"
    return f"{finding.sort} | #{finding.number} {finding.job}.{finding.question} | {figures} | {finding.method}\n"


def main() -> int:
    """Asks jobs, prints what is wrong as it comes and the table at the end; fails where a figure is below the truth."""
    parser = argparse.ArgumentParser(prog="python -m accounting", description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop then")
    parser.add_argument("--kinds", default="", help="kinds of events, with commas; all by default")
    parser.add_argument("--questions", default=",".join(sorted(QUESTIONS)), help="which, with commas")
    parser.add_argument("--write", type=Path, help="file for the table")
    parser.add_argument("--keep", type=Path, help="file for finished jobs: the same command goes on from it")
    given = parser.parse_args()
    started, reports = time.perf_counter(), []
    for report in _reports(given):
        reports.append(report)
        worst: dict[str, Finding] = {}
        for found in report.findings:
            if found.sort not in worst or not worst[found.sort].factor >= found.factor:
                worst[found.sort] = found
        sys.stdout.writelines(map(_shown, worst.values()))
        sys.stdout.flush()
        if time.perf_counter() - started > given.seconds:
            break
    text = table(reports, seed=given.seed, seconds=time.perf_counter() - started)
    sys.stdout.write(text)
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    return int(any(found.sort.startswith("below") for report in reports for found in report.findings))


if __name__ == "__main__":
    sys.exit(main())
