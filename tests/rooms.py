"""Which test files reach a room of the packages, by the graph of imports: `pytest --room ledger`.

A room is a folder or a file at the top of `privcheck`, `privcheck_algorithms` or `privcheck_audits`. A test file
reaches it if it imports a module, itself or through what tests share, from which imports lead there. Names in texts
count as imports, since commands, entry points and lazy names are loaded by them; so does the command `privcheck`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

import privcheck.pricing
import privcheck.runtime
import privcheck.testing
from privcheck.support.plugins import _GROUPS, list_entries

PACKAGES = ("privcheck", "privcheck_algorithms", "privcheck_audits", "privcheck_check")
TESTS = Path(__file__).parent
LAZY = {name: module for module, names in privcheck._HOMES for name in names}  # `privcheck.verify` is loaded from there
SHARED = (TESTS, TESTS / "audits", TESTS / "checker", TESTS / "fuzz")  # pytest's pythonpath


@functools.cache
def _graph() -> grimp.ImportGraph:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=True, cache_dir=None)
    points = [point for group in _GROUPS for point in list_entries(group).values()]
    for module in {point.module for point in points} & graph.modules:
        graph.add_import(importer="privcheck.support.plugins", imported=module)
    for room in (privcheck.pricing, privcheck.runtime, privcheck.testing):
        for module, _ in room._HOMES:  # loaded when a name is first used
            graph.add_import(importer=room.__name__, imported=module)
    return graph


def _home(name: str) -> str | None:
    """Returns the module that a dotted name is in, or None where it is none of the packages'."""
    if name == "privcheck":
        return "privcheck.cli.main"  # the command
    while name and name not in _graph().modules:
        name = name.rpartition(".")[0]
    return name if "." in name else None  # a package by itself loads nothing


def _names(tree: ast.AST) -> Iterator[str]:
    """Yields every dotted name that a module imports or has in a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("privcheck"):
            yield node.value.partition(":")[0]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "privcheck":
            yield f"privcheck.{node.attr}"


@functools.cache
def _read(path: Path) -> frozenset[str]:
    return frozenset(_names(ast.parse(path.read_text(encoding="utf-8"))))


def _reached(path: Path) -> set[str]:
    """Returns the packages' modules that a test file names, itself or through what tests share."""
    found, read, waiting = set(), {path}, [path]
    while waiting:
        one = waiting.pop()
        for name in _read(one):
            top, _, rest = name.partition(".")
            if name == "privcheck" and "system" not in one.parts:
                continue  # `import privcheck`: what is used of it is named after it
            if top in PACKAGES:
                home = _home(f"{LAZY[rest]}.{rest}" if top == "privcheck" and rest in LAZY else name)
                found |= {home} if home else set()
                continue
            places = [folder / at for folder in SHARED for at in (f"{name.replace('.', '/')}.py", f"{top}.py")]
            places += [shared for folder in SHARED for shared in (folder / top).glob("*.py")]
            new = {shared for shared in places if shared.is_file() and not shared.name.startswith("test_")} - read
            read |= new
            waiting += new
    return found


@functools.cache
def _leading_to(room: str) -> frozenset[str]:
    """Returns the modules of a room, and all from which imports lead to it."""
    known = {part for package in PACKAGES for part in _graph().find_children(package)}
    rooms = {module for module in known if module.rpartition(".")[2] == room}
    if not rooms:
        names = ", ".join(sorted({module.rpartition(".")[2] for module in known}))
        raise pytest.UsageError(f"--room {room}: no folder or file at the top of a package, expected one of {names}")
    inside = rooms | {module for one in rooms for module in _graph().find_descendants(one)}
    return frozenset(inside.union(*(_graph().find_downstream_modules(module) for module in inside)))


def reaches(path: Path, room: str) -> bool:
    """Returns whether a test file reaches a room.

    Raises:
        pytest.UsageError: There is no such room.
    """
    return not _leading_to(room).isdisjoint(_reached(path))
