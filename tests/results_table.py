"""The results of all tests, as `make test-all` commits them: `pytest --record TABLE --kept FILE`.

A run goes on from the finished tests of the file, as all tests take hours.
"""

from __future__ import annotations

import collections
import datetime as dt
import json
import os
import platform
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tiers import ADDED, read_seconds, write_seconds

ROOT = Path(__file__).parents[1]
SLOWEST = 10
MARKS = (*ADDED, *ADDED.values(), "every_change")
TITLES = {"nightly": "# Tests of random examples, 3 000 each", "": "# All tests, the nightly tier included"}


@dataclass(frozen=True)
class Finished:
    """A finished test.

    Attributes:
        nodeid: Which test.
        kind: "passed", "failed" or "skipped"; failed if any of its phases failed.
        phase: The phase that failed, or the last.
        seconds: Of all phases.
        marks: Those of the marks of tiers that it has.
        commit: The commit that was tested.
        ended: When, in seconds since 1970.
    """

    nodeid: str
    kind: str
    phase: str
    seconds: float
    marks: tuple[str, ...]
    commit: str
    ended: float


def read_finished(kept: Path) -> dict[str, Finished]:
    """Returns the finished tests of earlier runs, the last of each; a line that a killed run broke off is left out."""
    lines = kept.read_text(encoding="utf-8").splitlines(keepends=True) if kept.is_file() else []
    found = (json.loads(line) for line in lines if line.endswith("\n"))
    return {one["nodeid"]: Finished(**one | {"marks": tuple(one["marks"])}) for one in found}


def _commit() -> str:
    """Returns the commit that was tested, and whether files differ from it."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)

    head = run("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    return head + " and changes" * bool(run("status", "--porcelain", "--untracked-files=no").stdout.strip())


@dataclass
class ResultsTable:
    """Results of all tests: a line as each ends, from which a later run goes on, and a table when all have ended.

    Attributes:
        path: The table.
        kept: File of the finished tests; those that did not fail are not run again.
        part: Whether not all tests were asked for, so that recorded seconds stay and new functions are added.
        commit: What is tested.
        finished: All finished tests, those of earlier runs included.
    """

    path: Path
    kept: Path
    part: bool = False
    commit: str = field(default_factory=_commit)
    finished: dict[str, Finished] = field(default_factory=dict)
    seconds: collections.Counter[str] = field(default_factory=collections.Counter)
    failed: dict[str, str] = field(default_factory=dict)
    skipped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.finished = read_finished(self.kept)
        broken = self.kept.is_file() and not self.kept.read_bytes().endswith(b"\n")
        if broken:
            whole = self.kept.read_text(encoding="utf-8").rpartition("\n")[0]
            self.kept.write_text(whole + "\n" if whole else "", encoding="utf-8")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps a test when its last phase has ended."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.setdefault(report.nodeid, str(report.when))
        if report.skipped:
            self.skipped.add(report.nodeid)
        if report.when in ("setup", "call"):
            return  # the end of its last phase, or the crash of a worker, ends a test
        name = report.nodeid
        kind = "failed" if name in self.failed else "skipped" if name in self.skipped else "passed"
        marks = tuple(mark for mark in MARKS if mark in report.keywords)
        phase = self.failed.get(name, "call")
        one = Finished(name, kind, phase, round(self.seconds[name], 3), marks, self.commit, time.time())
        self.finished[name] = one
        with self.kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(vars(one)) + "\n")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is a failure."""
        if report.failed:
            self.failed[report.nodeid] = "collection"

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes the table of an ended run, and the seconds by which tests are put into tiers."""
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
            return
        self.path.write_text(self.text(int(exitstatus)), encoding="utf-8")
        if os.environ.get("HYPOTHESIS_PROFILE") != "nightly":  # thirty times as many examples
            all_ = self.finished.values()
            seconds, marks = {one.nodeid: one.seconds for one in all_}, {one.nodeid: one.marks for one in all_}
            write_seconds(seconds, marks, kept=read_seconds() if self.part else None)

    def text(self, exitstatus: int) -> str:
        """Returns the table in Markdown."""
        total = collections.Counter(one.kind for one in self.finished.values())
        counts: dict[str, collections.Counter[str]] = {}
        spent = collections.Counter[str]()
        for one in self.finished.values():
            counts.setdefault(_folder(one.nodeid), collections.Counter())[one.kind] += 1
            spent[_folder(one.nodeid)] += one.seconds
        ended = [one.ended for one in self.finished.values()] or [time.time()]
        began, last = (f"{dt.datetime.fromtimestamp(at, dt.UTC):%Y-%m-%d %H:%M}" for at in (min(ended), max(ended)))
        commits = list(dict.fromkeys(one.commit for one in sorted(self.finished.values(), key=lambda one: one.ended)))
        where = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"
        rows = [
            f"| {folder} | {of['passed']:,} | {of['failed']:,} | {of['skipped']:,} | {spent[folder] / 60:.1f} |"
            for folder, of in sorted(counts.items())
        ]
        by_seconds = sorted(self.finished.values(), key=lambda one: -one.seconds)
        slowest = [f"* {one.seconds:.0f} s, `{one.nodeid}`" for one in by_seconds[:SLOWEST]]
        phases = {one.nodeid: one.phase for one in self.finished.values() if one.kind == "failed"}
        phases |= {name: phase for name, phase in self.failed.items() if phase == "collection"}
        failed = [f"* `{name}` ({phase})" for name, phase in phases.items()] or ["None."]
        minutes = sum(spent.values()) / 60
        said = ", ".join(f"{total[kind]:,} {kind}" for kind in ("passed", "failed", "skipped"))
        lines = [
            TITLES.get(os.environ.get("HYPOTHESIS_PROFILE", ""), TITLES[""]),
            "",
            f"`make test-all`, {began} to {last} UTC, {where},",
            f"{'commits' if commits[1:] else 'commit'} {', '.join(commits)}:",
            f"{said} in {minutes:.0f} minutes of all workers; exit status {exitstatus}.",
            "",
            "| folder | passed | failed | skipped | minutes, of all workers |",
            "| --- | ---: | ---: | ---: | ---: |",
            *rows,
            "",
            "## Failures",
            "",
            *failed,
            "",
            "## Slowest",
            "",
            *slowest,
        ]
        return "\n".join(lines) + "\n"


def _folder(nodeid: str) -> str:
    parts = Path(nodeid.partition("::")[0]).parts
    return parts[parts.index("tests") + 1] if "tests" in parts[:-2] else parts[0] if parts else ""
