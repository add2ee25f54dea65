"""Mutation testing of what decides safety: which changed operators no test notices (`benchmarks/mutation.md`).

    PYTHONPATH=tests python benchmarks/mutation.py [FILE …] [--every 3]

One process imports everything and forks for each mutant: the child puts the mutant's code into the living functions, so
that whoever imported them has it too, and runs the tests of the file until one fails, those first that killed most so
far. Only what is inside functions is mutated. A mutant that hangs is killed by the clock, and counts as killed.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import importlib
import inspect
import math
import os
import re
import resource
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".md")
TARGETS = {  # a file, and the test files that kill its mutants soonest
    "privcheck/accounting/engine/zcdp.py": ("oracle/test_conversions.py",),
    "privcheck/accounting/conversions.py": ("oracle/test_conversions.py", "oracle/test_gaussian_curve.py"),
    "privcheck/accounting/filters.py": ("oracle/test_filters.py", "oracle/test_filters_attacked.py"),
    "privcheck/terms/symbols/ordering.py": ("unit/test_symbols.py", "unit/test_deciding.py"),
    "privcheck/ledger/transitions.py": ("unit/test_budget_ledger.py", "oracle/test_budget_states.py"),
}
# survivors that are no gap: function and change, and why no test can tell them from the code
EXPLAINED: dict[tuple[str, str], str] = {}
SWAPS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "True": "False", "ceil": "floor", "floor": "ceil"}


@dataclass(frozen=True)
class Mutant:
    """A function with one change."""

    function: str
    line: int
    change: str
    code: CodeType


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the node with one change, in every way that is tried."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield ast.Compare(node.left, [SWAPS[type(node.ops[0])](), *node.ops[1:]], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(SWAPS[type(node.op)](), node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in NAMES:
        yield ast.Name(NAMES[node.id], node.ctx)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.If):
        yield ast.If(ast.Constant(value=False), node.body, node.orelse)
    elif isinstance(node, ast.Raise):
        yield ast.Pass()


def mutants(path: Path) -> Iterator[Mutant]:
    """Yields the mutants of every function and method of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owners = [("", tree), *((f"{n.name}.", n) for n in tree.body if isinstance(n, ast.ClassDef))]
    functions = [(owner + n.name, n) for owner, inside in owners for n in inside.body if isinstance(n, ast.FunctionDef)]
    for name, function in functions:
        body = [part for statement in function.body for part in ast.walk(statement)]
        skipped = {id(function.body[0].value)} if isinstance(function.body[0], ast.Expr) else set()
        for node in (part for part in body if id(part) not in skipped):
            for new in changed(node):
                memo = {id(node): ast.copy_location(new, node)}  # the copy has the new node in the old one's place
                made = ast.fix_missing_locations(copy.deepcopy(tree, memo))
                was, now = (" ".join(ast.unparse(n).split())[:60] for n in (node, new))
                yield Mutant(name, node.lineno, f"{was} → {now}", _code_of(compile(made, str(path), "exec"), name))


def _code_of(whole: CodeType, name: str) -> CodeType:
    for part in name.split("."):
        whole = next(c for c in whole.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return whole


def _living(module: ModuleType, name: str) -> FunctionType:
    found = inspect.getattr_static(module, name.split(".", maxsplit=1)[0])
    for part in name.split(".")[1:]:
        found = inspect.getattr_static(found, part)
    found = getattr(found, "fget", None) or getattr(found, "__func__", found)
    return inspect.unwrap(found)


class Killers:
    """Runs first what killed most, and tells which test failed."""

    def __init__(self, counts: collections.Counter[str], told: int) -> None:
        self.counts, self.told = counts, told

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: -self.counts[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self.told, report.nodeid.encode())


def run(tests: list[str], counts: collections.Counter[str], seconds: float, patch=lambda: None) -> tuple[str, float]:
    """Runs tests in a child after a patch; returns what failed first ("" for nothing), and the processor's seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1), os.dup2(quiet, 2)
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds),) * 2)  # whatever else the machine does
            patch()
            arguments = ["-xq", "--assert=plain", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"), *tests]
            code = pytest.main(arguments, plugins=[Killers(counts, writing)])
            os.write(writing, b"" if code in {0, 1} else b"an error")  # of 1 the test has been told
        except BaseException as error:  # noqa: BLE001 - a child must not go on as its parent
            os.write(writing, f"an error: {error!r}".encode())
        os._exit(0)
    os.close(writing)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, 20 * seconds)  # of a mutant that sleeps
    said = b"".join(iter(lambda: os.read(reading, 4096), b"")).decode()
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.close(reading)
    _, status, used = os.wait4(child, 0)
    return said or ("the clock" if os.WIFSIGNALED(status) else ""), used.ru_utime + used.ru_stime


def score(name: str, every: int) -> list[str]:
    """Runs a file's mutants; returns its part of the table."""
    module = importlib.import_module(re.sub(r"/", ".", name.removesuffix(".py")))
    tests = [str(ROOT / "tests" / test) for test in TARGETS[name]]
    counts: collections.Counter[str] = collections.Counter()
    failed, usual = run(tests, counts, 3_600)
    if failed:
        sys.exit(f"{name}: {failed} fails without a mutant")
    survived, tried = [], list(mutants(Path(str(module.__file__))))[::every]
    for number, one in enumerate(tried):
        living = _living(module, one.function)
        killer, took = run(tests, counts, 3 * usual + 10, lambda f=living, c=one.code: setattr(f, "__code__", c))
        counts[killer] += bool(killer)
        print(
            f"{name} {number + 1}/{len(tried)} {took:.1f} s {one.function}:{one.line} {one.change}: {killer or 'ALIVE'}"
        )
        survived += [] if killer else [one]
    lines = [f"| `{name}` | {len(tried)} | {len(tried) - len(survived)} | {1 - len(survived) / len(tried):.0%} |"]
    return lines + [
        f"* `{name}:{one.line}`, {one.function}: `{one.change}`: "
        + EXPLAINED.get((one.function, one.change), "not explained")
        for one in survived
    ]


def main() -> None:
    """Writes the table of the files that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=list(TARGETS))
    parser.add_argument("--every", type=int, default=1, help="try one mutant in so many")
    asked = parser.parse_args()
    parts = [score(name, asked.every) for name in asked.files]
    chosen = "Every mutant" if asked.every == 1 else f"One mutant in {asked.every}"
    head = ["# Mutants of what decides safety", "", f"{chosen} of the functions of each file.", ""]
    table = ["| file | mutants | killed | score |", "| --- | ---: | ---: | ---: |", *(part[0] for part in parts)]
    alive = [line for part in parts for line in part[1:]] or ["None."]
    TABLE.write_text("\n".join([*head, *table, "", "## Survivors", "", *alive]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
