"""Mutation testing of what decides safety: which changes of the code no test notices (`benchmarks/mutation.md`).

    PYTHONPATH=tests python benchmarks/mutation.py [GROUP or FILE …] [--most 300] [--again] [--report]

One process collects a group's tests and notes which lines each of them runs. It then forks for each mutant: the
child puts the mutant's code into the living functions, so that whoever imported them has it too, and runs the tests
that reach the changed line until one fails, those first that killed most. A mutant that hangs is killed by the clock
and counts as killed. What is done is kept in `runs/mutation.jsonl`, so that a run that ends early goes on where it was.
mutmut and cosmic-ray start a process, and collect its tests, for each mutant.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import collections
import copy
import gc
import importlib
import inspect
import itertools
import json
import math
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType

import pytest
from mutation_operators import ROOT, Key, Mutant, mutants

TABLE = Path(__file__).with_suffix(".md")
REASONS = Path(__file__).with_name("mutation_explained.toml")
DONE = ROOT / "runs" / "mutation.jsonl"
CHECKER, ACCOUNTING = "audits/privcheck_check/", "privcheck/accounting/"
_BROKEN = "the driver broke:"
_QUIET = 300  # calls of a function without a new line after which a test runs it untraced
RULES = ("refuted", "laws", "curves", "counts", "costs", "holds", "check", "values", "declared", "terms", "products",
         "quadrature", "__main__")  # fmt: skip
GROUPS = {  # files, and the tests that are to kill their mutants
    "numeric": (
        [f"{CHECKER}{name}.py" for name in ("numeric", "enclosures")],
        ["checker/test_n*.py", "checker/test_e*.py"],
    ),
    "checker": ([f"{CHECKER}{name}.py" for name in RULES], ["checker/test_checker*.py"]),
    "conversions": (
        [f"{ACCOUNTING}engine/zcdp.py", f"{ACCOUNTING}conversions.py"],
        ["oracle/test_conversions.py", "oracle/test_gaussian_curve.py", "oracle/test_claims.py"],
    ),
    "filters": (
        [f"{ACCOUNTING}filters.py", f"{ACCOUNTING}odometers.py"],
        ["oracle/test_filters.py", "oracle/test_filters_attacked.py"],
    ),
    "order": (
        ["privcheck/terms/symbols/proofs.py"],
        ["unit/test_proofs*.py", "unit/test_symbols.py", "unit/test_deciding.py"],
    ),
    "ledger": (
        ["privcheck/ledger/transitions.py", "privcheck/ledger/exact.py"],
        [
            "unit/test_transitions.py",
            "unit/test_exact_values.py",
            "unit/test_budget_[lkbt]*.py",
            "oracle/test_budget_states.py",
        ],
    ),
}
HEAD = """# Mutants of what decides safety

`PYTHONPATH=tests python benchmarks/mutation.py`: changes of one operator, number or statement; tests of more than 10
seconds of CPU are left out (`--longest`), and those of the nightly tier. *Explained* survivors do what the code does or
are stricter, each with its reason in `mutation_explained.toml`. Where fewer were *tried* than there are *mutants*, it
was a seeded sample (`--most`). All of `privcheck_check` was tried with tests of less than 2 seconds only (`--longest 2
--seconds 15`), counted while their lines are noted, which is slower; the rows of the other files are of earlier runs.
"""


def _module(name: str) -> ModuleType:
    return importlib.import_module(name.removesuffix(".py").removeprefix("audits/").replace("/", "."))


def apply(mutant: Mutant) -> None:
    """Put the mutant's code into the living module, and values made from it wherever they were imported."""
    name, function = mutant.key[:2]
    module = _module(name)
    scope, flag = vars(module), __future__.annotations.compiler_flag if "annotations" in vars(module) else 0
    scope.setdefault("_down", lambda value, by: value // by)
    body, changed = ast.parse((ROOT / name).read_text(encoding="utf-8")).body, mutant.statement()
    if function:
        living: object = module
        for part in function.split("."):
            living = inspect.getattr_static(living, part)
        bare = inspect.unwrap(getattr(living, "fget", None) or getattr(living, "__func__", living))
        assert isinstance(bare, FunctionType)
        scratch, plain = dict(scope), copy.copy(changed)
        plain.decorator_list = []
        exec(compile(ast.Module([plain], []), name, "exec", flag), scratch)  # noqa: S102 - our own code, changed
        made = scratch[plain.name]
        bare.__code__, bare.__defaults__, bare.__kwdefaults__ = made.__code__, made.__defaults__, made.__kwdefaults__
    for value in list(scope.values()):
        getattr(value, "cache_clear", lambda: None)()
    if function and "privcheck_check" not in name:
        return
    ours = [vars(one) for one in list(sys.modules.values()) if str(ROOT) in str(getattr(one, "__file__", ""))]
    for was in body:
        statement = changed if not function and was.lineno == changed.lineno else was
        if isinstance(statement, ast.Assign | ast.AnnAssign) and was.end_lineno >= changed.lineno:
            before = dict(scope)
            exec(compile(ast.Module([statement], []), name, "exec", flag), scope)  # noqa: S102 - likewise
            for value in [each for each in scope if each in before and scope[each] is not before[each]]:
                for other in ours:
                    if other.get(value) is before[value]:
                        other[value] = scope[value]


def reaches(mutant: Mutant, lines: range, ran: dict[str, list[int]]) -> bool:
    """Whether a test that ran these lines of the file's functions can notice the mutant of these `lines`."""
    function = mutant.key[1]
    return bool(ran) if not function else any(line in lines for line in ran.get(function, ()))


class Loop:
    """In place of pytest's loop: one run without a mutant, then a child for each mutant."""

    def __init__(self, files: list[str], chosen: list[Mutant], longest: float, most: float) -> None:
        self.files, self.chosen = {str(ROOT / name): name for name in files}, chosen
        self.longest, self.most = longest, most
        self.failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or (report.nodeid if report.failed else "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        usual = self._usual(session)
        numbers = {item.nodeid: str(i) for i, item in enumerate(session.items)}
        kills: collections.Counter[tuple[str, str]] = collections.Counter(  # of earlier runs, too
            (key[1], numbers[killer]) for (key, _), killer in read_done().items() if killer in numbers
        )
        gc.collect()
        gc.freeze()  # children share what is there
        short = [session.items[int(i)] for i, (seconds, _) in usual.items() if seconds <= self.longest]
        if broken := self._child(session, short, 36_000, lambda: None)[0]:
            sys.exit(f"{broken} fails without a mutant")
        with DONE.open("a", encoding="utf-8") as kept:
            for number, one in enumerate(self.chosen, start=1):
                (name, function), lines = one.key[:2], one.lines()
                calls = {i: seconds for i, (seconds, called) in usual.items()
                         if seconds <= self.longest and reaches(one, lines, called.get(name, {}))}  # fmt: skip
                order = sorted(calls, key=lambda i: (-kills[function, i], calls[i]))
                took = itertools.accumulate(calls[i] for i in order)
                order = [i for i, seconds in zip(order, took, strict=True) if seconds <= self.most]
                items = [session.items[int(i)] for i in order]
                said, took = self._child(session, items, 4 * sum(calls.values()) + 10, partial(apply, one))
                for i in order:
                    kills[function, i] += session.items[int(i)].nodeid == said
                record = {"key": one.key, "digest": one.digest, "killer": said}
                kept.write(json.dumps(record, ensure_ascii=False) + "\n")
                kept.flush()
                if not said or not number % 100:
                    print(f"{number}/{len(self.chosen)} {took:.1f} s {' | '.join(one.key[:4])}: {said or 'ALIVE'}")
        return True

    def _usual(self, session: pytest.Session) -> dict:
        """The seconds of each test and the lines of functions that it runs, kept file by file until one changes."""
        code = b"".join(Path(text).read_bytes() for text in sorted(self.files))
        tests: dict[str, list] = {}
        for path in sorted({item.path for item in session.items}):
            items = [item for item in session.items if item.path == path]
            names = " ".join(item.nodeid for item in items)
            digest = sha256(b"".join([names.encode(), code, path.read_bytes()])).hexdigest()[:12]
            kept = DONE.with_name(f"mutation_lines_{digest}.json")
            usual = json.loads(kept.read_text(encoding="utf-8") if kept.is_file() else self._child(
                session, items, 36_000, None)[0])  # fmt: skip
            if usual["failed"]:
                sys.exit(f"{usual['failed']} fails without a mutant")
            kept.write_text(json.dumps(usual), encoding="utf-8")
            tests |= {item.nodeid: usual["tests"][str(i)] for i, item in enumerate(items)}
        return {str(i): tests[item.nodeid] for i, item in enumerate(session.items)}

    def _child(
        self, session: pytest.Session, items: list, seconds: float, patch: Callable[[], None] | None
    ) -> tuple[str, float]:
        """What a child says after the tests: what failed first ("" for nothing); of all tests, if without a patch."""
        reading, writing = os.pipe()
        began, child = time.monotonic(), os.fork()
        if child == 0:
            os.setsid()
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1), os.dup2(quiet, 2)
            try:
                resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds),) * 2)  # whatever else the machine does
                said = self._patch(patch) if patch else ""
                said = said or self._run(session, items, trace=patch is None)
            except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
                said = f"{_BROKEN} {error!r}"
            with os.fdopen(writing, "w", encoding="utf-8") as told:
                told.write(said)
            os._exit(0)
        os.close(writing)
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, 20 * seconds)  # of a mutant that sleeps
        with os.fdopen(reading, encoding="utf-8") as hears:
            said = hears.read()
        signal.setitimer(signal.ITIMER_REAL, 0)
        _, status = os.waitpid(child, 0)
        if said.startswith(_BROKEN):
            sys.exit(said)
        return said or ("the clock" if os.WIFSIGNALED(status) else ""), time.monotonic() - began

    @staticmethod
    def _patch(patch: Callable[[], None]) -> str:
        try:
            patch()
        except Exception as error:  # noqa: BLE001 - whatever the changed statement raises when it is imported
            return f"its import: {error!r}"
        return ""

    @staticmethod
    def _fails(session: pytest.Session, item: pytest.Item, after: pytest.Item | None) -> bool:
        """Whether a test fails, without the reports and the captured output that take longer than most tests."""
        try:
            session._setupstate.setup(item)  # noqa: SLF001 - pytest's own protocol begins and ends so
            item.runtest()
        except pytest.skip.Exception:
            return False
        except BaseException:  # noqa: BLE001 - whatever a mutant raises
            return True
        finally:
            session._setupstate.teardown_exact(after)  # noqa: SLF001 - likewise
        return False

    def _run(self, session: pytest.Session, items: list, *, trace: bool) -> str:
        tests: dict[int, tuple[float, dict[str, dict[str, list[int]]]]] = {}
        ran: set[tuple[CodeType, int]] = set()

        quiet: collections.Counter[CodeType] = collections.Counter()  # calls since its last new line

        def note(frame: FrameType, event: str, _: object) -> Callable[..., object] | None:
            code = frame.f_code
            if code.co_filename not in self.files or quiet[code] > _QUIET:
                return None
            if event == "call":
                quiet[code] += 1
            elif (code, frame.f_lineno) not in ran:
                ran.add((code, frame.f_lineno))
                quiet[code] = 0
            return note

        for number, item in enumerate(items):  # none, if no test calls the function: its mutants live
            after = items[number + 1] if number + 1 < len(items) else None
            began = time.process_time()
            sys.settrace(note if trace else None)
            if trace or {"tmp_path", "capsys", "caplog"} & set(item.fixturenames):
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            elif self._fails(session, item, after):
                return item.nodeid
            sys.settrace(None)
            lines: dict[str, dict[str, list[int]]] = {}
            for code, line in ran:
                of_file = lines.setdefault(self.files[code.co_filename], {})
                of_file.setdefault(code.co_qualname.split(".<locals>")[0], []).append(line)
            tests[number] = (time.process_time() - began, lines)
            ran.clear()
            quiet.clear()
            if self.failed and not trace:
                return self.failed
        return json.dumps({"failed": self.failed, "tests": tests}) if trace else ""


def read_done() -> dict[tuple[Key, str], str]:
    """Of each mutant that was tried, by key and digest: the test that killed it, "" for none."""
    lines = DONE.read_text(encoding="utf-8").splitlines() if DONE.is_file() else []
    return {(tuple(one["key"]), one["digest"]): one["killer"] for one in map(json.loads, lines)}


def read_reasons() -> dict[tuple[str, str, str, str], str]:
    """Of each survivor that no test can tell from the code, by file, function, line and change: why."""
    found = tomllib.loads(REASONS.read_text(encoding="utf-8"))["survivor"]
    return {
        (one["file"], one["function"], one["line"], change): one["why"] for one in found for change in one["changes"]
    }


def report() -> None:
    """Write the table from what is done; files of which nothing was tried in this checkout keep their lines."""
    done, reasons, rows, alive = read_done(), read_reasons(), [], []
    written = TABLE.read_text(encoding="utf-8").splitlines()
    for name in (name for files, _ in GROUPS.values() for name in files):
        whole = mutants(name)
        tried = [one for one in whole if (one.key, one.digest) in done]
        if not tried and (row := [line for line in written if line.startswith(f"| `{name}` |")]):
            rows += row
            alive += [line for line in written if line.startswith(f"* `{name}`, ")]
            continue
        survived = [one for one in tried if not done[one.key, one.digest]]
        still = [one for one in survived if one.key[:4] not in reasons]
        killed, explained = len(tried) - len(survived), len(survived) - len(still)
        rows.append(f"| `{name}` | {len(whole)} | {len(tried)} | {killed} | {explained} | {len(still)} |")
        alive += [f"* `{name}`, {one.key[1] or 'outside functions'}, `{one.key[2]}`: `{one.key[3]}`" for one in still]
    top = ["| file | mutants | tried | killed | explained | open |", "| --- | ---: | ---: | ---: | ---: | ---: |"]
    TABLE.write_text("\n".join([HEAD, *top, *rows, "", "## Open", "", *(alive or ["None."])]) + "\n", encoding="utf-8")


def main() -> None:
    """Try the mutants that were asked for and are not done; write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("asked", nargs="*", default=list(GROUPS))
    parser.add_argument("--most", type=int, default=10**9, help="a sample of so many mutants a file, always the same")
    parser.add_argument("--longest", type=float, default=10, help="leave out tests of more seconds than this")
    parser.add_argument("--seconds", type=float, default=10**9, help="at most so many seconds of tests a mutant")
    parser.add_argument("--tests", nargs="*", help="tests in place of the group's: those that are about the file")
    parser.add_argument(
        "--part", default="1/1", help="2/3: every third mutant, from the second on; for three processes"
    )
    parser.add_argument("--again", action="store_true", help="only the open survivors, again")
    parser.add_argument("--report", action="store_true", help="write the table from what is done")
    how = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"
    DONE.parent.mkdir(exist_ok=True)
    for group, (files, tests) in GROUPS.items() if not how.report else ():
        named = [name for name in files if {group, name} & set(how.asked)]
        done, reasons, chosen = read_done(), read_reasons(), []
        for name in named:
            whole = mutants(name)
            for one in random.Random(name).sample(whole, min(len(whole), how.most)):  # noqa: S311 - a sample to try
                state = done.get((one.key, one.digest))
                if state == "" and one.key[:4] not in reasons if how.again else state is None:
                    chosen.append(one)
        part, parts = map(int, how.part.split("/"))
        chosen = chosen[part - 1 :: parts]
        if chosen:
            arguments = [
                "-q",
                "--assert=plain",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "-m",
                "not nightly",
                "-k",
                "not postgresql",  # another store, of the same transitions
                "-c",
            ]
            places = [str(path) for test in how.tests or tests for path in sorted((ROOT / "tests").glob(test))]
            loop = Loop(files, chosen, how.longest, how.seconds)
            pytest.main([*arguments, str(ROOT / "pyproject.toml"), *places], plugins=[loop])
    report()


if __name__ == "__main__":
    main()
