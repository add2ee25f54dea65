"""Targets of a change: registered algorithms and tests marked `privacy`, and the processes that audit them.

Each audit is made by a process of its own that can be ended when its time is over: `privcheck verify` and `privcheck
audit` of an algorithm, a session of pytest for the tests of a file.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, Protocol, cast

from privcheck.commands.checks import audited_views
from privcheck.commands.code_changes import AssertionCall, CodeChange, ImportGraph, find_definition
from privcheck.commands.settings import resolve_setting
from privcheck.errors import PrivcheckError
from privcheck.reports.values import ReviewedTarget, ReviewVerdict
from privcheck.runtime import registry
from privcheck.support.plugins import describe_failure, list_entries

TRIALS: Final = 2_000  # of a function, under each neighbour, in the first round
AGENT_TRIALS: Final = 500  # of a whole agent
_FIRST: Final[Mapping[str, int]] = {"releases": 100_000, "policy": AGENT_TRIALS}  # at most; else the view's own number
_GROUP: Final = "privcheck.algorithms"  # of entry points
_EXACT: Final = frozenset({"verify", "lockstep"})  # what compares exactly, and spends no α
_ENDINGS: Final = (0, 1, 3)  # exit codes of a command that decided
_LONGEST: Final = 600  # characters of a reason
_BAD: Final = frozenset({"violation", "fails"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Amounts of a round.

    Attributes:
        alpha: False-alarm probability of one audit.
        seed: Seed of the round.
        factor: Multiple of the first round's trials.
    """

    alpha: float
    seed: int
    factor: int


class Unit(Protocol):
    """What one process audits."""

    @property
    def audits(self) -> int:
        """Number of audits that spend α; each has the level's."""

    def run(self, level: Level, seconds: float) -> tuple[tuple[ReviewedTarget, ...], bool]:
        """The audits made, and whether the process came to its end in so many seconds."""

    def rest(self, found: Sequence[ReviewedTarget]) -> Unit:
        """What is left to audit in the same round, after these results of a process that was ended."""

    def again(self, found: Sequence[ReviewedTarget]) -> Unit | None:
        """What to audit in the next round, after these results; None for nothing."""


def confidence_of(alpha: float) -> float:
    """The least float 1 − α or above, so that no more than α is spent.

    >>> confidence_of(0.25), confidence_of(0.01) >= 0.99
    (0.75, True)
    """
    found = 1.0 - alpha
    return found if 1 - Fraction(found) <= Fraction(alpha) else math.nextafter(found, 1.0)


def session_confidence(alpha: float, audits: int) -> float:
    """The confidence of a session of pytest whose audits then have at most α each.

    The plugin divides 1 − confidence among them in floats: a quotient and a difference, together wrong by less than
    2⁻⁵³. That much is taken off each α before.
    """
    return confidence_of(audits * (alpha - 2.0**-53) * (1 - 2.0**-50))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """How a process ended: its exit code, None if its time was over, and its outputs."""

    code: int | None
    out: str
    said: str
    seconds: float


def _run(command: Sequence[str], directory: Path, seconds: float) -> _Ended:
    """Run a process, and end it with its children when its time is over."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        # files and not pipes: a process that a child outlives would keep a pipe open
        process = subprocess.Popen(command, cwd=directory, stdout=out, stderr=said, start_new_session=True)  # noqa: S603 - this interpreter
        code: int | None = None
        try:
            code = process.wait(timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                _end(process)
        texts = []
        for file in (out, said):
            file.seek(0)
            texts.append(file.read().decode("utf-8", errors="replace"))
    return _Ended(code=code, out=texts[0], said=texts[1], seconds=time.monotonic() - began)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)  # its own session, and so its own group
        else:
            process.kill()
    process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgorithmView:
    """A view of a registered algorithm, or "verify".

    Attributes:
        row: Its row without a result.
        trials: Runs of the first round; 0 for "verify".
        directory: Working directory.
    """

    row: ReviewedTarget
    trials: int
    directory: Path

    @property
    def audits(self) -> int:
        """1, or 0 for what compares exactly."""
        return 0 if self.row.view in _EXACT else 1

    def run(self, level: Level, seconds: float) -> tuple[tuple[ReviewedTarget, ...], bool]:
        """Run `privcheck verify` or `privcheck audit`."""
        name, view = self.row.name, self.row.view
        if view == "verify":
            words = ["verify", name]
        else:
            amounts: dict[str, float] = {"trials": self.trials * level.factor, "seed": level.seed}
            if view not in _EXACT:
                amounts["confidence"] = confidence_of(level.alpha)
            words = ["audit", name, "--view", view, "--yes"]
            words += [word for option, value in amounts.items() for word in (f"--{option}", repr(value))]
        # -P: a module in the working directory is not found before an installed one, as of the command `privcheck`
        ended = _run([sys.executable, "-P", "-m", "privcheck", *words, "--json"], self.directory, seconds)
        if ended.code is None:
            return (), False
        row = replace(self.row, command=shlex.join(["privcheck", *words]), seconds=ended.seconds)
        try:
            told = json.loads(ended.out)
        except json.JSONDecodeError:
            told = {}
        if ended.code not in _ENDINGS or "verdict" not in told:
            reason = str(told.get("message") or _last(ended.said) or f"privcheck ended with {ended.code}")
            return (replace(row, verdict="not audited", reason=_cut(reason)),), True
        return (_read_verdict(row, told) if view == "verify" else _read_audit(row, told),), True

    def rest(self, found: Sequence[ReviewedTarget]) -> AlgorithmView:
        """The same: it has one result or none."""
        return self

    def again(self, found: Sequence[ReviewedTarget]) -> AlgorithmView | None:
        """The same, unless it found a violation, was refused, or repeats itself."""
        done = self.row.view == "verify" or any(one.verdict in _BAD | {"not audited"} for one in found)
        return None if done else self


def _read_verdict(row: ReviewedTarget, told: Mapping[str, Any]) -> ReviewedTarget:
    findings = "; ".join(f"{one['code']}: {one['message']}" for one in told["findings"])
    witness = told.get("witness") or {}
    return replace(
        row,
        verdict=told["verdict"],
        reason=_cut(findings) if told["verdict"] == "undecided" else "",
        claim=told["claim"],
        method=" ".join(part for part in (str(told.get("sentence") or ""), _cut(findings)) if part),
        neighbours=str(witness.get("words") or ""),
    )


def _read_audit(row: ReviewedTarget, told: Mapping[str, Any]) -> ReviewedTarget:
    lower, claimed = told.get("epsilon_lower"), told.get("epsilon_claimed")
    at = f" at δ = {told['delta']:g}" if told.get("delta") else ""
    doubt = str(told["evidence"].get("doubt", ""))
    verdict: ReviewVerdict = "undecided" if doubt and told["verdict"] == "consistent" else told["verdict"]
    where = told.get("audited_at")
    elsewhere = f"audited at {where}, and not at the declared parameters" if where else ""
    return replace(
        row,
        verdict=verdict,
        reason=(doubt or elsewhere) if verdict == "undecided" else "",
        claim=told["claim"],
        claimed="" if claimed is None else f"ε ≤ {math.ceil(claimed * 1e4) / 1e4:g}{at}",
        lower="" if lower is None else f"ε ≥ {math.floor(lower * 1e4) / 1e4:g}{at}",
        trials=told["trials"],
        confidence=None if row.view in _EXACT else told["confidence"],
        seed=told["seed"],
        method=_cut(str(told["method"])),
        neighbours=_cut(str(told["witness"])) if verdict != "consistent" else "",
        notes=(*([elsewhere] if elsewhere else []), *([] if told["agent_ran"] else ["no agent was run"])),
    )


def find_algorithms(
    change: CodeChange, graph: ImportGraph, directory: Path, until: float
) -> Iterator[tuple[str, list[ReviewedTarget | AlgorithmView]]]:
    """Yield the file of every algorithm registered from the work tree, and what to audit if the change touches it.

    In place of views there is a row of an algorithm that cannot be audited.

    Args:
        change: The change.
        graph: Its imports.
        directory: Working directory of the audits.
        until: Reading of the clock `time.monotonic` from which on nothing more is loaded.
    """
    chains = graph.chains(change.files)
    installed = {name: (point.module, point.attr) for name, point in list_entries("algorithms").items()}
    declared = _read_projects(change)
    for name, (module, attribute) in sorted({**installed, **declared}.items()):
        own = graph.modules.get(module, frozenset())
        if not own:
            continue
        touching = [chains[path] for path in sorted(own) if path in chains]
        if not touching:
            yield min(own), []
            continue
        file, line = find_definition(change, graph, module, attribute.partition(".")[0]) or (min(own), 1)
        row = ReviewedTarget(
            kind="algorithm", name=name, file=file, line=line, through=touching[0], verdict="not audited",
            reason="the time was over",
        )  # fmt: skip
        if installed.get(name) != (module, attribute):
            reason = "it is registered in pyproject.toml and not so in what is installed: pip install -e ."
            yield min(own), [replace(row, reason=reason)]
        elif time.monotonic() > until:
            yield min(own), [row]
        else:
            yield min(own), [*_views(row, change, graph, own, directory=directory, until=until)]


def _read_projects(change: CodeChange) -> dict[str, tuple[str, str]]:
    """Module and attribute of the algorithms that projects of the work tree register, by name."""
    found = {}
    for path in change.projects:
        try:
            project = tomllib.loads((change.root / path).read_text(encoding="utf-8"))
            tables = (
                project.get("project", {}).get("entry-points"),
                project.get("tool", {}).get("poetry", {}).get("plugins"),
            )
            points = {name: value for table in tables for name, value in (table or {}).get(_GROUP, {}).items()}
        except (OSError, ValueError, AttributeError):
            continue  # pip refuses it too
        for name, value in points.items():
            module, _, attribute = str(value).partition(":")
            found[name] = (module.strip(), attribute.strip())
    return found


def _views(
    row: ReviewedTarget, change: CodeChange, graph: ImportGraph, own: Iterable[str], *, directory: Path, until: float
) -> Iterator[ReviewedTarget | AlgorithmView]:
    """Load an algorithm in a process of its own, where its code may hang or exit, and yield its views."""
    code = f"from privcheck.commands.change_targets import print_views; print_views({row.name!r})"
    ended = _run([sys.executable, "-P", "-c", code], directory, until - time.monotonic())
    try:
        told = json.loads(_last(ended.out))
    except json.JSONDecodeError:
        said = _last(ended.said) or f"its process ended with {ended.code}"
        told = {"error": "the time was over while it was loaded" if ended.code is None else said, "files": {}}
    if reason := told["error"] or find_hidden(change, graph, own, told["files"]):
        yield replace(row, reason=_cut(reason))
    elif not told["declares"]:
        yield replace(row, verdict="nothing to audit", reason="")
    else:
        yield AlgorithmView(row=replace(row, view="verify"), trials=0, directory=directory)
        for view, usual in told["views"].items():
            trials = min(usual, _FIRST.get(view, usual))
            yield AlgorithmView(row=replace(row, view=view), trials=trials, directory=directory)


def print_views(name: str) -> None:
    """Print what can be audited of an algorithm as a line of JSON: views with their usual trials, and loaded files."""
    found: dict[str, Any] = {"error": "", "declares": False, "views": {}, "files": {}}
    try:
        setting = resolve_setting(name, {})
        loaded = {module: getattr(of, "__file__", None) for module, of in list(sys.modules.items())}
        found["files"] = {module: file for module, file in loaded.items() if isinstance(file, str)}
        if setting.declaration is not None:
            plan = registry.plan_for(setting.algorithm)
            found["declares"] = True
            found["views"] = {view: plan.trials[view] for view in audited_views(setting, plan)}
    except PrivcheckError as error:
        found["error"] = str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code under review may raise anything
        found["error"] = describe_failure(error)
    sys.stdout.write(f"\n{json.dumps(found)}\n")


def find_hidden(change: CodeChange, graph: ImportGraph, own: Iterable[str], loaded: Mapping[str, str]) -> str:
    """Say which file of the work tree was not loaded because another module of its name was; empty if none.

    An installed copy with the same content is as good as the file.

    Args:
        change: The change.
        graph: Its imports.
        own: Files of a target; those that they import are looked at too.
        loaded: Files of loaded modules by name.
    """
    meant = {path for one in own for path in graph.reached(one)}
    for name, paths in graph.modules.items():
        found = loaded.get(name)
        if found is None or name.partition(".")[0] in sys.stdlib_module_names or not paths & meant:
            continue
        there = [change.root / path for path in sorted(paths) if (change.root / path).is_file()]
        if there and not any(_is_same(Path(found), path) for path in there):
            message = f"{name} was loaded from {found}, and not from {min(paths)} of the work tree"
            return f"{message}: install the work tree (pip install -e .)"
    return ""


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other) or one.read_bytes() == other.read_bytes()
    except OSError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedTest:
    """A collected test.

    Attributes:
        test: pytest's id.
        path: Its file, absolute.
        file: File of its function, absolute.
        line: Line of its function.
        audits: Announced audits; 0 without the mark `privacy`.
    """

    test: str
    path: str
    file: str
    line: int
    audits: int

    @property
    def argument(self) -> str:
        """The id as an argument of pytest in any folder."""
        return "::".join([self.path, *self.test.split("::")[1:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """Tests of the touched files.

    Attributes:
        tests: All tests of these files, without the mark `privacy` too.
        wrong: Why a file could not be collected, by its path from the root; "" for the session as a whole.
    """

    tests: tuple[MarkedTest, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)


def collect_tests(change: CodeChange, files: Sequence[str], directory: Path, seconds: float) -> Collected:
    """Let pytest collect the tests of some files, where its configuration looks for tests."""
    if importlib.util.find_spec("pytest") is None:
        return Collected(wrong={"": "pytest is not installed here"})
    with tempfile.TemporaryDirectory() as name:
        listed, record = Path(name) / "files", Path(name) / "record"
        listed.write_text("".join(f"{change.root / path}\n" for path in files), encoding="utf-8")
        words = ["--collect-only", "-q", f"--privacy-files={listed}", f"--privacy-record={record}"]
        ended = _run([sys.executable, "-m", "pytest", *words], directory, seconds)
        lines = _read_record(record)
    if ended.code is None:
        return Collected(wrong={"": "the time was over while pytest collected the tests"})
    wrong = {
        _from_root(change, line["file"]): f"pytest cannot collect it: {line['why']}"
        for line in lines
        if line["kind"] == "uncollected"
    }
    if ended.code not in {0, 5} and not wrong:
        wrong = {"": f"pytest ended with {ended.code}: {_last(ended.said) or _last(ended.out)}"}
    tests = {line["test"]: line for line in lines if line["kind"] == "test"}  # once, though each worker collects all
    names = ("test", "path", "file", "line", "audits")
    return Collected(tests=tuple(MarkedTest(**{n: one[n] for n in names}) for one in tests.values()), wrong=wrong)


def _read_record(path: Path) -> list[dict[str, Any]]:
    """Lines of a record, without one that was cut off in writing."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(json.JSONDecodeError):
            found.append(cast("dict[str, Any]", json.loads(line)))
    return found


def _from_root(change: CodeChange, path: str) -> str:
    try:
        return Path(path).resolve().relative_to(change.root.resolve()).as_posix()
    except ValueError:
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedFile:
    """The marked tests of a file.

    Attributes:
        tests: The tests.
        through: Files by which it imports a changed one.
        change: The change.
        graph: Its imports.
        directory: Working directory.
    """

    tests: tuple[MarkedTest, ...]
    through: tuple[str, ...]
    change: CodeChange
    graph: ImportGraph
    directory: Path

    @property
    def audits(self) -> int:
        """Announced audits of all tests."""
        return sum(one.audits for one in self.tests)

    def rows(self) -> Iterator[ReviewedTarget]:
        """The rows of the tests without results."""
        for one in self.tests:
            file = _from_root(self.change, one.file)
            yield ReviewedTarget(
                kind="test", name=one.test, file=file, line=one.line, through=self.through, verdict="not audited",
                reason="the time was over",
            )  # fmt: skip

    def run(self, level: Level, seconds: float) -> tuple[tuple[ReviewedTarget, ...], bool]:
        """Run a session of pytest; the tests that ended before its time was over have results."""
        with tempfile.TemporaryDirectory() as name:
            record = Path(name) / "record"
            options = [*self._options(level, self.audits), f"--privacy-record={record}", "--maxfail=0", "-q"]
            words = [*(one.argument for one in self.tests), *options]
            ended = _run([sys.executable, "-m", "pytest", *words], self.directory, seconds)
            lines = _read_record(record)
        loaded = {name: file for line in lines if line["kind"] == "modules" for name, file in line["files"].items()}
        hidden = find_hidden(self.change, self.graph, [self.through[0]], loaded)
        found: list[ReviewedTarget] = []
        for test, row in zip(self.tests, self.rows(), strict=True):
            of_test = [line for line in lines if line.get("test") == test.test]
            outcome = next((line for line in of_test if line["kind"] == "outcome"), None)
            if outcome is None:
                if ended.code is not None:
                    said = f"pytest ended with {ended.code} before this test: {_last(ended.said) or _last(ended.out)}"
                    found.append(replace(row, reason=_cut(said)))
                continue
            command = ["python", "-m", "pytest", test.test, *self._options(level, test.audits)]
            row = replace(row, seconds=ended.seconds, command=shlex.join(command))  # noqa: PLW2901 - the same row with more
            audits = [line for line in of_test if line["kind"] == "audit"]
            rows = self._read(row, audits, outcome["outcome"], outcome["why"])
            found += [replace(one, verdict="not audited", reason=hidden) for one in rows] if hidden else rows
        return tuple(found), ended.code is not None

    def _options(self, level: Level, audits: int) -> list[str]:
        return [
            f"--privacy-confidence={session_confidence(level.alpha, audits)!r}",
            f"--privacy-seed={level.seed}",
            f"--privacy-trials={TRIALS * level.factor}",
            f"--privacy-agent-trials={AGENT_TRIALS * level.factor}",
        ]

    def _read(
        self, row: ReviewedTarget, audits: Sequence[Mapping[str, Any]], outcome: str, why: str
    ) -> list[ReviewedTarget]:
        """The rows of a test that ended: its audits, as far as the test itself did not expect a violation."""
        found = []
        for number, one in enumerate(audits, 1):
            verdict: ReviewVerdict = one["verdict"]
            if verdict in _BAD and outcome != "failed":
                verdict = "expected violation"
            made = replace(
                row,
                view=f"audit {number} of {len(audits)}" if len(audits) > 1 else "",
                verdict=verdict,
                reason="verification does not decide the claim" if verdict == "undecided" else "",
                claim=one["claim"],
                claimed=one["claimed"] or one["upper"],
                lower=one["lower"],
                trials=one["trials"],
                confidence=one["confidence"],
                seed=one["seed"],
                method=one["method"],
                neighbours=one["neighbours"],
                code=one["code"],
                notes=tuple(one["notes"]),
            )
            called = _from_root(self.change, one["file"])
            found.append(replace(made, file=called, line=one["line"]) if called in self.graph.imports else made)
        if not found:
            said = {"passed": "it passed without an audit", "skipped": f"it was skipped: {why}"}
            return [replace(row, reason=_cut(said.get(outcome, f"it failed before its audit: {why}")))]
        if outcome == "failed" and not any(one.verdict in _BAD for one in found):
            reason = _cut(f"no violation, and the test failed: {why}")
            found[-1] = replace(found[-1], verdict="undecided", reason=reason)
        return found

    def rest(self, found: Sequence[ReviewedTarget]) -> MarkedFile:
        """The tests without a result."""
        known = {one.name for one in found}
        return replace(self, tests=tuple(one for one in self.tests if one.test not in known))

    def again(self, found: Sequence[ReviewedTarget]) -> MarkedFile | None:
        """The tests whose audits all came to results, and found no violation."""
        settled = {one.name for one in found if one.verdict not in {"consistent", "expected violation"}}
        left = tuple(one for one in self.tests if one.test not in settled)
        return replace(self, tests=left) if left else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTests:
    """Tests and calls of assertions that the change touches.

    Attributes:
        units: Files with marked tests.
        rows: Rows of what cannot be audited.
        calls: Touched calls in the source.
        tests: Collected tests, marked or not.
    """

    units: tuple[MarkedFile, ...] = ()
    rows: tuple[ReviewedTarget, ...] = ()
    calls: tuple[AssertionCall, ...] = ()
    tests: tuple[MarkedTest, ...] = ()


def find_tests(change: CodeChange, graph: ImportGraph, directory: Path, seconds: float) -> tuple[FoundTests, int]:
    """Find tests that the change touches, and count the calls of assertions that it does not."""
    chains = graph.chains(change.files)
    calls = [call for path, some in graph.assertions.items() if path in chains for call in some]
    untouched = sum(len(some) for path, some in graph.assertions.items() if path not in chains)
    reaching = graph.chains(graph.assertions)
    files = [path for path in change.sources if path in chains and path in reaching]
    if not files:
        return FoundTests(), untouched
    collected = collect_tests(change, files, directory, seconds)
    marked: dict[str, list[MarkedTest]] = {}
    for one in collected.tests:
        if one.audits:
            marked.setdefault(_from_root(change, one.path), []).append(one)
    units = tuple(
        MarkedFile(tests=tuple(tests), through=chains[path], change=change, graph=graph, directory=directory)
        for path, tests in sorted(marked.items())
        if path in chains
    )
    rows = tuple(
        ReviewedTarget(
            kind="test", name=path or "tests", file=path or files[0], line=1, through=chains.get(path, (files[0],)),
            verdict="not audited", reason=_cut(why),
        )
        for path, why in sorted(collected.wrong.items())
    )  # fmt: skip
    return FoundTests(units=units, rows=rows, calls=tuple(calls), tests=collected.tests), untouched


def find_silent_calls(
    change: CodeChange, graph: ImportGraph, targets: FoundTests, found: Iterable[ReviewedTarget]
) -> Iterator[ReviewedTarget]:
    """Yield a row for each touched call of an assertion that no audited test made.

    A call inside a marked test that has a row is not told twice.
    """
    chains = graph.chains(change.files)
    rows = [(one.file, one.line) for one in found if one.kind == "test"]
    wrong = {one.file for one in targets.rows}
    for call in targets.calls:
        low, high = min(call.first, call.inside[0]), max(call.last, call.inside[1])
        inside = [one for one in targets.tests if _from_root(change, one.file) == call.file and low <= one.line <= high]
        made = any(file == call.file and call.first <= line <= call.last for file, line in rows)
        if made or call.file in wrong or any(one.audits for one in inside):
            continue
        reason = "no collected test makes this call"
        if inside:
            reason = "its test is not marked `privacy`, and would not share the repository's α: @pytest.mark.privacy"
        yield ReviewedTarget(
            kind="call", name=f"{call.file}:{call.first}", file=call.file, line=call.first, through=chains[call.file],
            verdict="not audited", reason=reason,
        )  # fmt: skip


def _last(text: str) -> str:
    """The last line with anything in it."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
