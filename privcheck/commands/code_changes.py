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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
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
        projects: All files pyproject.toml among the others.
    """

    root: Path
    base: str
    merge_base: str
    commit: str
    files: tuple[str, ...]
    uncommitted: tuple[str, ...]
    sources: tuple[str, ...]
    projects: tuple[str, ...] = ()


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
        projects=tuple(sorted(path for path in known if PurePosixPath(path).name == "pyproject.toml")),
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
        assertions: Calls of assertions of privacy in each file that names one; files that are not valid Python are
            among them, without calls.
    """

    imports: Mapping[str, frozenset[str]]
    modules: Mapping[str, frozenset[str]]
    unfollowed: tuple[str, ...]
    assertions: Mapping[str, tuple[AssertionCall, ...]]

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


def read_imports(change: CodeChange, registered: Mapping[str, AbstractSet[str]]) -> ImportGraph:
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
    imports, unfollowed, assertions = {}, list[str](), {}
    for path in sorted(files):
        found = {*_packages_of(path, files), *_conftests_of(path, files)}
        source = _Source() if path in deleted else _read_source(change.root / path, path, registered)
        for name in source.imported:
            asked = name.removesuffix(".*")
            prefixes = [asked[:at] for at in (*_dots(asked), len(asked))]
            for one in (*prefixes, *(below[asked] if name.endswith(".*") else ())):
                found |= modules.get(one, set())
        for place in source.relative:
            found |= set(_files_at(place, files))
        unfollowed += [f"{path}:{line}" for line in source.computed]
        if source.asserts:
            assertions[path] = tuple(source.calls)
        imports[path] = frozenset(found - {path})
    return ImportGraph(
        imports=imports,
        modules={name: frozenset(paths) for name, paths in modules.items()},
        unfollowed=tuple(unfollowed),
        assertions=assertions,
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


_ASSERTIONS: Final = frozenset({"assert_private", "assert_declaration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionCall:
    """A call of `assert_private` or `assert_declaration` in the source.

    Attributes:
        file: Its file.
        first: Its first line.
        last: Its last line.
        inside: First and last line of the outermost function that it is in, with its decorators; its own lines outside
            of any.
    """

    file: str
    first: int
    last: int
    inside: tuple[int, int]


@dataclass(slots=True, kw_only=True)
class _Source:
    """What is read of a file.

    Attributes:
        imported: Dotted names that are imported absolutely; `a.*` for all of a package.
        relative: Places, without a suffix, that are imported relatively; `a/*` for all of a package.
        computed: Lines where a module is loaded by a name that is not in the source, or by one relative to a package.
        asserts: Whether it names an assertion of privacy.
        calls: Its calls of assertions.
    """

    imported: set[str] = field(default_factory=set)
    relative: set[PurePosixPath] = field(default_factory=set)
    computed: list[int] = field(default_factory=list)
    asserts: bool = False
    calls: list[AssertionCall] = field(default_factory=list)


def _read_source(file: Path, path: str, registered: Mapping[str, AbstractSet[str]]) -> _Source:
    """Read a file; of one that is not valid Python nothing is known, and pytest will say what is wrong with it."""
    found = _Source()
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        found.asserts = True
        return found
    aliases: dict[str, str] = {}
    called: list[tuple[ast.Call, tuple[int, int] | None]] = []
    for node, inside in _walk(tree):
        if isinstance(node, ast.Import):
            found.imported |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            _read_from(node, path, found)
            aliases |= {one.asname or one.name: one.name for one in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in registered:
            found.imported |= registered[node.value]
        elif isinstance(node, ast.Attribute):
            found.asserts |= node.attr in _ASSERTIONS
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _assigns(node, _PLUGINS):
            texts = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
            found.imported |= {text for text in texts if isinstance(text, str)}
        elif isinstance(node, ast.Call):
            called.append((node, inside))
    for call, inside in called:  # when all names are known
        is_name = isinstance(call.func, ast.Name)
        named: str = getattr(call.func, "id" if is_name else "attr", "")
        name = aliases.get(named, named) if is_name else named
        if name in _LOADERS:
            _read_loader(call, found)
        elif name in _ASSERTIONS and found.asserts:
            last = call.end_lineno or call.lineno
            lines = inside or (call.lineno, last)
            found.calls.append(AssertionCall(file=path, first=call.lineno, last=last, inside=lines))
    return found


def _walk(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[int, int] | None]]:
    """Yield every node in the order of the source, with the first and last line of the outermost function around it."""
    waiting: list[tuple[ast.AST, tuple[int, int] | None]] = [(tree, None)]
    while waiting:
        node, inside = waiting.pop()
        if inside is None and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            inside = (first, node.end_lineno or node.lineno)
        yield node, inside
        waiting += [(child, inside) for child in reversed(list(ast.iter_child_nodes(node)))]


def _read_loader(call: ast.Call, found: _Source) -> None:
    """Add the module that `import_module` or `__import__` loads."""
    first = call.args[0] if call.args else None
    text = first.value if isinstance(first, ast.Constant) else None
    if isinstance(text, str) and not text.startswith("."):
        found.imported.add(text)
    else:
        found.computed.append(call.lineno)


def _read_from(node: ast.ImportFrom, path: str, found: _Source) -> None:
    """Add what `from … import …` imports."""
    every = node.module == "privcheck.testing" and node.names[0].name == "*"
    found.asserts |= every or any(one.name in _ASSERTIONS for one in node.names)
    if not node.level:
        found.imported |= {f"{node.module}.{one.name}" for one in node.names}
        return
    folders = PurePosixPath(path).parents
    if node.level <= len(folders):  # else beyond the work tree
        package = folders[node.level - 1].joinpath(*(node.module or "").split("."))
        found.relative |= {package, *(package / one.name for one in node.names)}


def _files_at(place: PurePosixPath, files: set[str]) -> Iterator[str]:
    """Files of a module or package at a place; of a whole package, its modules."""
    if place.name == "*":
        for one in map(PurePosixPath, files):
            if one.parent == place.parent or (one.name == _INIT and one.parent.parent == place.parent):
                yield str(one)
    else:
        yield from (path for path in (f"{place}.py", str(place / _INIT)) if path in files)


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    parts = (part for target in targets for part in ast.walk(target))  # of a tuple too
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def find_definition(change: CodeChange, graph: ImportGraph, module: str, name: str) -> tuple[str, int] | None:
    """File and line where a module's name is assigned or defined; imports of the name are followed.

    The file without that line (1) if it is not assigned at the top level; None if the module is not in the work tree.
    """
    seen: set[tuple[str, str]] = set()
    place: tuple[str, int] | None = None
    waiting = deque((path, name) for path in sorted(graph.modules.get(module, frozenset())))
    while waiting:
        path, wanted = waiting.popleft()
        if (path, wanted) in seen or not (change.root / path).is_file():
            continue
        seen.add((path, wanted))
        place = place or (path, 1)
        try:
            body = ast.parse((change.root / path).read_bytes()).body
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in body:
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
