"""A change in a git work tree: its files, and the Python files that import one of them, directly or through others.

Imports are read from the source (`ast`), not from a running program. What cannot be decided there counts as an import:
both branches of an `if`, a name that could be that of two files, every submodule of a package that is imported with
`*`. A module whose name is computed at run time cannot be followed; such places are listed.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from privcheck.errors import ParameterError, PrivcheckError

_INIT: Final = "__init__.py"
_CONFTEST: Final = "conftest.py"
_LOADERS: Final = frozenset({"import_module", "__import__"})
_PLUGINS: Final = "pytest_plugins"  # modules that pytest imports with the module that assigns this name


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeChange:
    """Difference between a work tree and the last commit that it shares with a base.

    Attributes:
        root: Top folder of the work tree.
        base: The base as it was given.
        merge_base: The commit that both share.
        commit: The commit of the work tree.
        files: Changed files, deleted ones included, as paths from the root: committed or not.
        uncommitted: Those that differ from the commit, or are not in it.
        sources: All Python files that are not ignored by git, as paths from the root.
    """

    root: Path
    base: str
    merge_base: str
    commit: str
    files: tuple[str, ...]
    uncommitted: tuple[str, ...]
    sources: tuple[str, ...]


def read_change(base: str, directory: Path) -> CodeChange:
    """The change of the work tree that contains a directory.

    Raises:
        ParameterError: The directory is in no work tree, the base is no commit, or the two share none.
        PrivcheckError: git is not installed.
    """
    top = _git(directory, "rev-parse", "--show-toplevel", wrong=f"{directory} is in no git work tree")
    root = Path(top.rstrip("\n"))
    unknown = f"--base {base}: expected a branch, tag or commit that is here; fetch it first"
    _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}", wrong=unknown)
    commit = _git(root, "rev-parse", "--verify", "HEAD", wrong="the work tree has no commit yet").strip()
    lost = f"--base {base} and HEAD share no commit here. Of a shallow clone, fetch the whole history (fetch-depth: 0)"
    merge_base = _git(root, "merge-base", "--end-of-options", base, commit, wrong=lost).split()[0]
    new = _paths(root, "ls-files", "--others", "--exclude-standard")
    edited = _paths(root, "diff", "--name-only", "--no-renames", "HEAD", "--")
    changed = _paths(root, "diff", "--name-only", "--no-renames", merge_base, "--")
    known = {*_paths(root, "ls-files"), *new}
    return CodeChange(
        root=root,
        base=base,
        merge_base=merge_base,
        commit=commit,
        files=tuple(sorted(changed | new)),
        uncommitted=tuple(sorted(edited | new)),
        sources=tuple(sorted(path for path in known if path.endswith(".py") and (root / path).is_file())),
    )


def _git(folder: Path, *words: str, wrong: str) -> str:
    git = shutil.which("git")
    if git is None:
        raise PrivcheckError("git is not installed, and `privcheck ci` reads the change from it: install git")
    done = subprocess.run([git, "-C", str(folder), *words], capture_output=True, check=False)  # noqa: S603 - git's own words
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise ParameterError(wrong + (f" ({said})" if said else ""), name="base")
    return os.fsdecode(done.stdout)


def _paths(root: Path, *words: str) -> set[str]:
    options = [*words[:1], "-z", *words[1:]]
    return {path for path in _git(root, *options, wrong=f"git {words[0]} failed").split("\0") if path}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportGraph:
    """Imports among the Python files of a work tree, deleted files of the change included.

    Attributes:
        imports: Files that a file imports, by its path.
        modules: Files that a dotted name may mean.
        unfollowed: Places, FILE:LINE, where a module is loaded whose name is not in the source.
        unread: Files that are not valid Python, so that their imports are unknown.
    """

    imports: Mapping[str, frozenset[str]]
    modules: Mapping[str, frozenset[str]]
    unfollowed: tuple[str, ...]
    unread: tuple[str, ...]

    def chains(self, changed: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Every file that reaches a changed file by imports, with a shortest chain of files from it to there."""
        importers: dict[str, set[str]] = defaultdict(set)
        for one, imported in self.imports.items():
            for other in imported:
                importers[other].add(one)
        found: dict[str, tuple[str, ...]] = {path: (path,) for path in sorted(changed) if path in self.imports}
        waiting = deque(found)
        while waiting:
            path = waiting.popleft()
            for one in sorted(importers[path] - found.keys()):
                found[one] = (one, *found[path])
                waiting.append(one)
        return found

    def reached(self, path: str) -> set[str]:
        """The file and all files that it imports, directly or through others."""
        found, waiting = {path}, [path]
        while waiting:
            new = self.imports.get(waiting.pop(), frozenset()) - found
            found |= new
            waiting.extend(new)
        return found


def read_imports(change: CodeChange, registered: Mapping[str, str]) -> ImportGraph:
    """Read the imports of all Python files of a work tree.

    Args:
        change: The change.
        registered: Modules by the names under which an entry point registers something of theirs. A text that is such
            a name counts as an import of its module, because privcheck loads what is registered by its name.
    """
    deleted = {path for path in change.files if path.endswith(".py")} - set(change.sources)
    files = {*change.sources, *deleted}
    modules: dict[str, set[str]] = defaultdict(set)
    for path in files:
        for name in _names_of(path, files):
            modules[name].add(path)
    below: dict[str, set[str]] = defaultdict(set)
    for name in modules:
        below[name.rpartition(".")[0]].add(name)
    imports, unfollowed, unread = {}, [], []
    for path in sorted(files):
        found = {*_packages_of(path, files), *_conftests_of(path, files)}
        try:
            tree = None if path in deleted else ast.parse((change.root / path).read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            tree = None
            unread.append(path)
        for name in _imported(tree, registered) if tree is not None else ():
            asked = name.removesuffix(".*")
            prefixes = [asked[:at] for at in (*_dots(asked), len(asked))]
            for one in (*prefixes, *(below[asked] if name.endswith(".*") else ())):
                found |= modules.get(one, set())
        for other in _relative(tree, path) if tree is not None else ():
            found |= set(_files_at(other, files))
        unfollowed += [f"{path}:{line}" for line in _computed(tree)] if tree is not None else []
        imports[path] = frozenset(found - {path})
    return ImportGraph(
        imports=imports,
        modules={name: frozenset(paths) for name, paths in modules.items()},
        unfollowed=tuple(unfollowed),
        unread=tuple(unread),
    )


def _dots(name: str) -> list[int]:
    return [at for at, letter in enumerate(name) if letter == "."]


def _names_of(path: str, files: set[str]) -> Iterator[str]:
    """Dotted names by which a file can be imported: from every folder above it that is not itself a regular package."""
    whole = PurePosixPath(path)
    parts = whole.parts[:-1] if whole.name == _INIT else whole.with_suffix("").parts
    for start in range(len(parts)):
        if "/".join([*parts[:start], _INIT]) not in files or start == 0:
            yield ".".join(parts[start:])


def _packages_of(path: str, files: set[str]) -> Iterator[str]:
    """The `__init__.py` of the packages around a file, which are executed before it."""
    folder = PurePosixPath(path).parent
    while (init := str(folder / _INIT)) in files:
        yield init
        if folder == folder.parent:
            return
        folder = folder.parent


def _conftests_of(path: str, files: set[str]) -> Iterator[str]:
    """The `conftest.py` that pytest executes before the tests of a file."""
    yield from (str(folder / _CONFTEST) for folder in PurePosixPath(path).parents if str(folder / _CONFTEST) in files)


def _imported(tree: ast.Module, registered: Mapping[str, str]) -> Iterator[str]:
    """Dotted names that a module imports absolutely; `a.*` for all of a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in registered:
            yield registered[node.value]
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{one.name}" for one in node.names)
        elif isinstance(node, ast.Call) and _is_loader(node) and (name := _text(node.args[:1])):
            yield name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _assigns(node, _PLUGINS) and node.value is not None:
            texts = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
            yield from (text for text in texts if isinstance(text, str))


def _relative(tree: ast.Module, path: str) -> Iterator[PurePosixPath]:
    """Places, without a suffix, that a module imports relatively; `a/*` for all of a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            folders = PurePosixPath(path).parents
            if node.level > len(folders):
                continue  # beyond the work tree
            package = folders[node.level - 1].joinpath(*(node.module or "").split("."))
            yield package
            yield from (package / one.name for one in node.names)


def _files_at(place: PurePosixPath, files: set[str]) -> Iterator[str]:
    """Files of a module or package at a place, with the packages between; of a whole package, its modules."""
    if place.name == "*":
        for one in map(PurePosixPath, files):
            if one.parent == place.parent or (one.name == _INIT and one.parent.parent == place.parent):
                yield str(one)
        return
    for path in (f"{place}.py", str(place / _INIT)):
        if path in files:
            yield path
            yield from _packages_of(path, files)


def _is_loader(node: ast.Call) -> bool:
    called = node.func
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name in _LOADERS


def _text(nodes: list[ast.expr]) -> str:
    """The text of a first argument; empty if it is not a constant."""
    first = nodes[0] if nodes else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _computed(tree: ast.Module) -> list[int]:
    """Lines where a module is loaded by a name that is not in the source, or by one relative to a package."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_loader(node))
    return [node.lineno for node in calls if not _text(node.args[:1]) or _text(node.args[:1]).startswith(".")]


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def find_definition(change: CodeChange, graph: ImportGraph, module: str, name: str) -> tuple[str, int] | None:
    """File and line where a module's name is assigned or defined; imports of the name are followed.

    The file without that line (1) if it is not assigned at the top level; None if the module is not in the work tree.
    """
    seen: set[tuple[str, str]] = set()
    place: tuple[str, int] | None = None
    waiting = deque((path, name) for path in sorted(graph.modules.get(module, frozenset())))
    while waiting:
        path, wanted = waiting.popleft()
        if (path, wanted) in seen or not (change.root / path).is_file() or path in graph.unread:
            continue
        seen.add((path, wanted))
        place = place or (path, 1)
        for node in ast.parse((change.root / path).read_bytes()).body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and _assigns(node, wanted):
                return path, node.lineno
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == wanted:
                return path, node.lineno
            if isinstance(node, ast.ImportFrom):
                for one in node.names:
                    if (one.asname or one.name) == wanted:
                        sources = {other for other in graph.imports[path] if _is_module(other, node.module or "")}
                        waiting += [(other, one.name) for other in sorted(sources)]
    return place


def _is_module(path: str, name: str) -> bool:
    """Whether the path ends as a module of that name does."""
    parts = tuple(name.split(".")) if name else ()
    whole = PurePosixPath(path)
    own = whole.parts[:-1] if whole.name == _INIT else whole.with_suffix("").parts
    return own[len(own) - len(parts) :] == parts


_ASSERTIONS: Final = frozenset({"assert_private", "assert_declaration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionCall:
    """A call of `assert_private` in the source.

    Attributes:
        file: Its file.
        first: Its first line.
        last: Its last line.
        inside: First and last line of the outermost function or class around it; its own lines outside of any.
    """

    file: str
    first: int
    last: int
    inside: tuple[int, int]


def find_assertions(change: CodeChange, path: str) -> tuple[tuple[AssertionCall, ...], bool]:
    """The calls of `assert_private` in a file, and whether it names an assertion of privacy at all."""
    try:
        tree = ast.parse((change.root / path).read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return (), True  # pytest says what is wrong with it
    named = {"assert_private"}
    uses = False
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.name in _ASSERTIONS:
            uses = True
            named |= {node.asname or node.name} if node.name == "assert_private" else set()
        uses |= isinstance(node, ast.Attribute) and node.attr in _ASSERTIONS
    calls = []
    for outer in tree.body:
        around = (_first_line(outer), outer.end_lineno or outer.lineno)
        for node in ast.walk(outer):
            if isinstance(node, ast.Call) and uses and _is_call_of(node, named):
                last = node.end_lineno or node.lineno
                calls.append(AssertionCall(file=path, first=node.lineno, last=last, inside=around))
    return tuple(calls), uses


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])


def _is_call_of(node: ast.Call, named: set[str]) -> bool:
    called = node.func
    if isinstance(called, ast.Attribute):
        return called.attr == "assert_private"
    return isinstance(called, ast.Name) and called.id in named
