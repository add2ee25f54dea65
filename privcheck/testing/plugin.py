"""The pytest plugin: the marker `privacy`, one α for the whole session, a summary at its end.

Each audit of a test marked `privacy` spends α/(audits of all marked tests that run); the false-positive rate of all of
them together is at most α. Results are stored as the test's properties, so that they come back from xdist's workers and
are in JUnit files.

`privcheck ci` runs sessions with two further options: `--privacy-record FILE`, to which every collected test, audit and
outcome is appended as a line of JSON (each worker of xdist collects all tests), and `--privacy-files FILE`, a list of
the only files to collect.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from privcheck.testing.session import (
    AGENT_TRIALS,
    ALLOWANCE,
    CONFIDENCE,
    TRIALS,
    Allowance,
    ReportPlace,
    SummaryLine,
)

_NUMBER = pytest.StashKey[int]()  # of audits in the session
_TOLD = pytest.StashKey[set[str]]()  # names of modules in the record
_ONLY = pytest.StashKey[frozenset[Path] | None]()  # files to collect; None for all
_MARKER = "privacy(trials=None, audits=1): audits a privacy claim; spends a part of the session's α"
_LONGEST_NAME = 100
_HEADS = {"claim": "claim", "upper": "accountant", "lower": "audit", "trials": "trials", "verdict": "verdict"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("privacy", "audits of privacy claims (privcheck)")
    group.addoption(
        "--privacy-trials",
        type=int,
        default=TRIALS,
        metavar="N",
        help=f"runs under each neighbour ({TRIALS})",
    )
    group.addoption(
        "--privacy-confidence",
        type=float,
        default=CONFIDENCE,
        metavar="C",
        help=f"1 − α of all audits of the session together ({CONFIDENCE})",
    )
    group.addoption("--privacy-seed", type=int, default=0, metavar="S", help="seed of the audits (0)")
    group.addoption(
        "--privacy-report",
        default=None,
        metavar="DIR",
        help="directory of report pages for all audits; by default only failing audits, in pytest's cache",
    )
    group.addoption(
        "--privacy-agent-trials",
        type=int,
        default=AGENT_TRIALS,
        metavar="N",
        help=f"runs of a whole agent under each neighbour ({AGENT_TRIALS})",
    )
    group.addoption(
        "--privacy-record", type=Path, metavar="FILE", help="append tests, audits and outcomes as JSON lines"
    )
    group.addoption("--privacy-files", type=Path, metavar="FILE", help="a list of the only files to collect tests from")
    parser.addini("privacy_report", "as --privacy-report", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and refuse options out of range."""
    config.addinivalue_line("markers", _MARKER)
    if not 0 < config.getoption("--privacy-confidence") < 1:
        given = config.getoption("--privacy-confidence")
        raise pytest.UsageError(f"--privacy-confidence: expected strictly between 0 and 1, got {given}")
    if config.getoption("--privacy-trials") < 1 or config.getoption("--privacy-agent-trials") < 1:
        raise pytest.UsageError("--privacy-trials: expected at least 1; --privacy-agent-trials: expected at least 1")
    if config.getoption("--privacy-seed") < 0:
        raise pytest.UsageError("--privacy-seed: expected at least 0")
    listed: Path | None = config.getoption("--privacy-files")
    config.stash[_ONLY] = None if listed is None else frozenset(map(Path, _lines_of(listed)))


def _lines_of(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"--privacy-files: expected a list of files, one a line, in {path}: {error}") from error


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that are not listed by --privacy-files."""
    only = config.stash.get(_ONLY, None)
    return None if only is None or collection_path.is_dir() or collection_path in only else True


def pytest_collection_finish(session: pytest.Session) -> None:
    """Count the audits among which α is divided: those of tests that run, the same in every xdist worker."""
    marks = [item.get_closest_marker("privacy") for item in session.items]
    session.config.stash[_NUMBER] = sum(_audits(mark) for mark in marks if mark is not None)
    for item, mark in zip(session.items, marks, strict=True):
        file, line, _ = item.reportinfo()
        _append(
            item.config,
            "test",
            test=item.nodeid,
            path=str(item.path),
            file=str(file),
            line=(line or 0) + 1,
            audits=0 if mark is None else _audits(mark),
        )


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Record what could not be collected."""
    report = yield
    if report.failed:
        _append(collector.config, "uncollected", file=str(collector.path), why=_last_line(report.longreprtext))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record a test's outcome: the first phase that did not pass, or the call."""
    report = yield
    if report.when == "call" or not report.passed:
        why = "" if call.excinfo is None else call.excinfo.exconly().strip().partition("\n")[0]
        _append(item.config, "outcome", test=item.nodeid, outcome=report.outcome, why=why)
    return report


def _append(config: pytest.Config, kind: str, **said: object) -> None:
    """Append a line to the record, if one is kept; a line is one write, so that xdist's workers do not mix theirs."""
    path: Path | None = config.getoption("--privacy-record")
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, **said}) + "\n")


def _append_modules(config: pytest.Config) -> None:
    """Record the files of modules loaded since the last test: an installed copy may hide what was to be audited."""
    told = config.stash.setdefault(_TOLD, set())
    new = [(name, module) for name, module in list(sys.modules.items()) if name not in told]
    told.update(name for name, _ in new)
    files = {name: getattr(module, "__file__", None) for name, module in new}
    _append(config, "modules", files={name: file for name, file in files.items() if isinstance(file, str)})


def _last_line(text: str) -> str:
    return next((line.removeprefix("E").strip() for line in reversed(text.splitlines()) if line.strip()), "")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Give a marked test its allowance, and store its results."""
    mark = item.get_closest_marker("privacy")
    allowed = _of_unmarked(item) if mark is None else _of_marked(item, mark)
    token = ALLOWANCE.set(allowed)
    try:
        return (yield)
    finally:
        ALLOWANCE.reset(token)
        _write_reports(item, allowed)
        if item.config.getoption("--privacy-record") is not None:
            _append_modules(item.config)
        for number, audited in enumerate(allowed.done):
            _append(item.config, "audit", test=item.nodeid, **asdict(audited), **asdict(allowed.records[number]))
        for number, audited in enumerate(allowed.done if mark is not None else ()):
            item.user_properties += [
                (f"privacy.{number}.{field.name}", str(getattr(audited, field.name))) for field in fields(SummaryLine)
            ]


def _of_marked(item: pytest.Item, mark: pytest.Mark) -> Allowance:
    alpha = 1 - item.config.getoption("--privacy-confidence")
    trials = mark.kwargs.get("trials")
    return Allowance(
        trials=trials or item.config.getoption("--privacy-trials"),
        agent_trials=trials or item.config.getoption("--privacy-agent-trials"),
        confidence=1 - alpha / item.config.stash[_NUMBER],
        seed=item.config.getoption("--privacy-seed"),
        audits=_audits(mark),
        place=_place(item),
    )


def _of_unmarked(item: pytest.Item) -> Allowance:
    return Allowance(trials=TRIALS, confidence=CONFIDENCE, seed=0, audits=None, place=_place(item))


def _place(item: pytest.Item) -> ReportPlace | None:
    """Location of the test's reports: as requested or, for failures only, in pytest's cache; None without a cache."""
    given = item.config.getoption("--privacy-report") or item.config.getini("privacy_report")
    cache: pytest.Cache | None = getattr(item.config, "cache", None)
    if not given and cache is None:
        return None

    def root() -> Path:
        return (item.config.rootpath / given).resolve() if given else Path(cache.mkdir("privacy")) if cache else Path()

    name = re.sub(r"[^\w.-]+", "-", item.nodeid)
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}-{zlib.crc32(item.nodeid.encode()):08x}"
    return ReportPlace(root=root, name=name, every=bool(given), test=item.nodeid)


def _write_reports(item: pytest.Item, allowed: Allowance) -> None:
    for write in allowed.reports.values():
        try:
            write()
        except Exception as error:  # noqa: BLE001 - what the test found is told, whatever becomes of the page
            item.add_report_section("call", "privacy", f"no report: {type(error).__name__}: {error}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write a line for every audit."""
    reports = [
        report
        for some in terminalreporter.stats.values()
        for report in some
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]
    lines = [(report.nodeid, line) for report in reports for line in _lines(report.user_properties)]
    if not lines:
        return
    confidence = config.getoption("--privacy-confidence")
    terminalreporter.section(f"privacy: {len(lines)} audits, {confidence:g} confidence for all together")
    rows = [(*_HEADS.values(), "test")]
    for nodeid, line in sorted(lines, key=lambda row: row[0]):
        rows.append((*(line[name] or "–" for name in _HEADS), nodeid))
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        terminalreporter.write_line("  ".join([*cells, row[-1]]))
    for nodeid, line in sorted(lines, key=lambda row: row[0]):
        if line.get("report"):
            terminalreporter.write_line(f"report of {nodeid}: {line['report']}")
    terminalreporter.write_line("an audit never shows that a mechanism is private: consistent means not refuted")


def _audits(mark: pytest.Mark) -> int:
    unknown = set(mark.kwargs) - {"trials", "audits"}
    if unknown or mark.args:
        raise pytest.UsageError(f"privacy marker: expected trials=… and audits=…, got {mark.args or sorted(unknown)}")
    number = mark.kwargs.get("audits", 1)
    if not isinstance(number, int) or number < 1:
        raise pytest.UsageError(f"privacy marker: expected audits to be at least 1, got {number!r}")
    return number


def _lines(properties: Iterable[tuple[str, object]]) -> list[Mapping[str, str]]:
    lines: dict[str, dict[str, str]] = {}
    for name, value in properties:
        parts = name.split(".")
        if len(parts) == 3 and parts[0] == "privacy":
            lines.setdefault(parts[1], {})[parts[2]] = str(value)
    return [line for line in lines.values() if set(_HEADS) <= set(line)]
