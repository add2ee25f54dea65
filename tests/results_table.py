"""The table of a run of the tests, as `make test-all` commits it: `pytest --record FILE`."""

from __future__ import annotations

import collections
import datetime as dt
import os
import platform
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tiers import ADDED, write_seconds

ROOT = Path(__file__).parents[1]
SLOWEST = 10
MARKS = (*ADDED, *ADDED.values(), "every_change")
TITLES = {"nightly": "# Tests of random examples, 3 000 each", "": "# All tests, the nightly tier included"}


@dataclass
class ResultsTable:
    """Counts and times of every folder of the tests, kept while they run, written when all have ended."""

    path: Path
    began: float = field(default_factory=time.time)
    counts: dict[str, collections.Counter[str]] = field(default_factory=dict)
    seconds: collections.Counter[str] = field(default_factory=collections.Counter)
    failed: list[str] = field(default_factory=list)
    marks: dict[str, list[str]] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts a test once, as failed where any of its phases failed."""
        self.seconds[report.nodeid] += report.duration
        self.marks[report.nodeid] = [name for name in MARKS if name in report.keywords]
        if report.when != "call" and report.passed:
            return
        kind = "failed" if report.failed else "skipped" if report.skipped else "passed"
        self.counts.setdefault(_folder(report.nodeid), collections.Counter())[kind] += 1
        if report.failed:
            self.failed.append(f"{report.nodeid} ({report.when})")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected is a failure."""
        if report.failed:
            self.failed.append(f"{report.nodeid} (collection)")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Writes the table, and the seconds by which tests are put into tiers."""
        self.path.write_text(self.text(int(exitstatus)), encoding="utf-8")
        if os.environ.get("HYPOTHESIS_PROFILE") != "nightly":  # thirty times as many examples
            write_seconds(self.seconds, self.marks)

    def text(self, exitstatus: int) -> str:
        """Returns the table in Markdown."""
        total = sum(self.counts.values(), collections.Counter())
        spent = collections.Counter[str]()
        for name, seconds in self.seconds.items():
            spent[_folder(name)] += seconds
        began = dt.datetime.fromtimestamp(self.began, dt.UTC)
        where = f"{os.cpu_count()} cores, Python {platform.python_version()}, {platform.machine()}"
        rows = [
            f"| {folder} | {of['passed']:,} | {of['failed']:,} | {of['skipped']:,} | {spent[folder] / 60:.1f} |"
            for folder, of in sorted(self.counts.items())
        ]
        slowest = [f"* {seconds:.0f} s, `{name}`" for name, seconds in self.seconds.most_common(SLOWEST)]
        failed = [f"* `{name}`" for name in self.failed] or ["None."]
        minutes = (time.time() - self.began) / 60
        said = ", ".join(f"{total[kind]:,} {kind}" for kind in ("passed", "failed", "skipped"))
        lines = [
            TITLES.get(os.environ.get("HYPOTHESIS_PROFILE", ""), TITLES[""]),
            "",
            f"`make test-all`, {began:%Y-%m-%d %H:%M} UTC, commit {_commit()}, {where}:",
            f"{said} in {minutes:.0f} minutes; exit status {exitstatus}.",
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


def _commit() -> str:
    """Returns the commit that was tested, and whether files differ from it."""
    run = lambda *words: subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False)  # noqa: E731
    head = run("rev-parse", "--short", "HEAD").stdout.strip() or "unknown"
    return head + " and changes" * bool(run("status", "--porcelain", "--untracked-files=no").stdout.strip())
