"""Changed files and what imports them: read from the source, compared with what Python really loads.

Nothing here is random but the layout of generated packages, from fixed seeds.
"""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privcheck.commands.code_changes import find_definition, read_change, read_imports
from privcheck.errors import ParameterError, PrivcheckError
from work_trees import commit, git, make, write


def read(folder, registered=None):
    change = read_change("main", folder)
    return change, read_imports(change, registered or {})


def importing(folder, changed, registered=None):
    """Returns the files that reach a changed file by imports."""
    return set(read(folder, registered)[1].chains([changed]))


def test_a_change_has_committed_edited_new_and_deleted_files_and_no_ignored_ones(tmp_path):
    make(
        tmp_path, {"a.py": "", "b.py": "", "c.py": "", "same.py": "", ".gitignore": "*.log\n", "old name.py": "x = 1\n"}
    )
    commit(tmp_path, {"a.py": "x = 1\n", "näme.txt": ""})
    git(tmp_path, "mv", "old name.py", "new name.py")
    git(tmp_path, "commit", "-q", "-m", "renamed")
    write(tmp_path, {"b.py": "y = 1\n", "new.py": "", "run.log": ""})
    (tmp_path / "c.py").unlink()
    change = read_change("main", tmp_path)
    assert change.files == ("a.py", "b.py", "c.py", "new name.py", "new.py", "näme.txt", "old name.py")
    assert change.uncommitted == ("b.py", "c.py", "new.py")
    assert change.sources == ("a.py", "b.py", "new name.py", "new.py", "same.py")
    assert change.commit == git(tmp_path, "rev-parse", "HEAD")
    assert change.merge_base == git(tmp_path, "rev-parse", "main")


def test_what_only_the_base_changed_since_is_no_change(tmp_path):
    make(tmp_path, {"a.py": "", "b.py": ""})
    commit(tmp_path, {"a.py": "x = 1\n"})
    git(tmp_path, "switch", "-q", "main")
    commit(tmp_path, {"b.py": "x = 1\n"})
    git(tmp_path, "switch", "-q", "change")
    assert read_change("main", tmp_path).files == ("a.py",)


def test_a_folder_below_the_top_sees_the_whole_work_tree(tmp_path):
    make(tmp_path, {"a.py": "", "below/b.py": ""})
    commit(tmp_path, {"a.py": "x = 1\n"})
    change = read_change("main", tmp_path / "below")
    assert (change.root, change.files) == (tmp_path.resolve(), ("a.py",))


@pytest.mark.parametrize("base", ["nowhere", "--all", "", "main:a.py"])
def test_a_base_that_is_no_commit_is_refused(tmp_path, base):
    make(tmp_path, {"a.py": ""})
    with pytest.raises(ParameterError, match=r"expected a branch, tag or commit that is here"):
        read_change(base, tmp_path)


def test_what_is_no_work_tree_has_no_commit_or_shares_none_is_refused_with_the_remedy(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="is in no git work tree"):
        read_change("main", tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    with pytest.raises(ParameterError, match="expected a branch, tag or commit"):
        read_change("main", tmp_path)
    commit(tmp_path, {"a.py": ""})
    git(tmp_path, "switch", "-q", "--orphan", "change")
    commit(tmp_path, {"b.py": ""})
    with pytest.raises(ParameterError, match=r"share no commit here. Of a shallow clone, fetch the whole history"):
        read_change("main", tmp_path)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PrivcheckError, match="install git"):
        read_change("main", tmp_path)


LOADED = """
import importlib, json, sys
from pathlib import Path
top = Path(sys.argv[1])
sys.path.insert(0, str(top / "src"))
found = {}
for name in json.loads(sys.argv[2]):
    for known in [one for one in sys.modules if one.partition(".")[0].startswith("pack")]:
        del sys.modules[known]
    importlib.import_module(name)
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    found[name] = sorted(Path(file).relative_to(top).as_posix() for file in files if file and file.startswith(str(top)))
print(json.dumps(found))
"""


def _layout(seed):
    """Returns random modules in order, each of which imports some of those before it in a random way; their texts."""
    rng = np.random.default_rng(seed)
    names, texts = [], {}
    for at in range(rng.integers(4, 13)):
        packages = [f"pack{rng.integers(2)}", *(f"sub{rng.integers(2)}" for _ in range(rng.integers(3)))]
        name = ".".join([*packages, f"m{at}"])
        lines = []
        for other in rng.permutation(names)[: rng.integers(3)]:
            package, _, last = other.rpartition(".")
            ways = [f"import {other}", f"from {package} import {last}", f"from {other} import VALUE as v"]
            ways += [
                f"import {other} as o",
                f"def f():\n    import {other}\nf()",
                f"if 1:\n    from {package} import {last}",
            ]
            if other.split(".")[0] == packages[0]:  # the same root: relative, from as far up as the root
                rest = other.split(".")[1:]
                ways += [f"from {'.' * len(packages)}{'.'.join(rest)} import VALUE"]
                ways += [f"from {'.' * len(packages)}{'.'.join(rest[:-1])} import {rest[-1]}"]
            lines.append(rng.choice(ways))
        texts[f"src/{name.replace('.', '/')}.py"] = "\n".join([*lines, "VALUE = 1", ""])
        names.append(name)
        for depth in range(1, len(packages) + 1):
            texts.setdefault(f"src/{'/'.join(packages[:depth])}/__init__.py", "")
    return names, texts


@pytest.mark.parametrize("seed", range(8))
def test_imports_are_those_that_python_makes(tmp_path, seed):
    names, texts = _layout(seed)
    make(tmp_path, texts)
    top = tmp_path.resolve()
    command = [sys.executable, "-c", LOADED, str(top), json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    graph = read(tmp_path)[1]
    for name, loaded in json.loads(done.stdout).items():
        assert graph.reached(f"src/{name.replace('.', '/')}.py") == set(loaded), name


@pytest.mark.parametrize("seed", range(4))
def test_chains_are_shortest_ways_to_a_changed_file(tmp_path, seed):
    """Against breadth-first search from every file on its own."""
    names, texts = _layout(100 + seed)
    make(tmp_path, texts)
    graph = read(tmp_path)[1]
    changed = {f"src/{name.replace('.', '/')}.py" for name in names[:2]}
    chains = graph.chains(changed)
    for path in graph.imports:
        level, seen, steps = {path}, {path}, 0
        while level and not level & changed:
            level = {other for one in level for other in graph.imports[one]} - seen
            seen |= level
            steps += 1
        assert (path in chains) == bool(level)
        if level:
            chain = chains[path]
            assert (chain[0], chain[-1] in changed, len(chain)) == (path, True, steps + 1)
            assert all(later in graph.imports[one] for one, later in itertools.pairwise(chain))


@pytest.mark.parametrize(
    ("text", "reaches"),
    [
        ("from pkg import *", True),  # its `__all__` may name the module
        ("import pkg", False),
        ("import pkg.other", False),
        ("from .pkg import mod", True),
        ("from . import pkg", False),
        ("from .pkg import *", True),
        ("import importlib\nimportlib.import_module('pkg.mod')", True),
        ("from importlib import import_module as load\nload('pkg.mod')", True),
        ("__import__('pkg.mod')", True),
        ("pytest_plugins = ('pkg.mod',)", True),
        ("pytest_plugins: list = ['pkg.mod']", True),
        ("NAME = 'registered-name'", True),
        ("NAME = 'pkg.mod'", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pkg.mod", True),
        ("try:\n    import faster\nexcept ImportError:\n    from pkg import mod", True),
        ("from ....beyond import mod", False),
        ("# import pkg.mod", False),
    ],
)
def test_ways_to_import(tmp_path, text, reaches):
    make(tmp_path, {"pkg/__init__.py": "", "pkg/mod.py": "", "pkg/other.py": "", "one.py": text})
    assert ("one.py" in importing(tmp_path, "pkg/mod.py", {"registered-name": {"pkg.mod"}})) == reaches


def test_importing_a_module_executes_the_packages_around_it(tmp_path):
    make(tmp_path, {"a/__init__.py": "from a import hidden", "a/hidden.py": "", "a/b/__init__.py": "", "a/b/c.py": ""})
    commit(tmp_path, {"t.py": "import a.b.c"})
    assert {"t.py", "a/b/c.py", "a/__init__.py"} <= importing(tmp_path, "a/hidden.py")


def test_a_name_that_two_files_may_have_counts_for_both(tmp_path):
    make(tmp_path, {"one/tools.py": "", "two/tools.py": "", "t.py": "import tools", "u.py": "import one.tools"})
    assert importing(tmp_path, "two/tools.py") == {"two/tools.py", "t.py"}
    assert importing(tmp_path, "one/tools.py") == {"one/tools.py", "t.py", "u.py"}


def test_a_module_inside_a_package_has_no_name_without_it(tmp_path):
    make(tmp_path, {"p/__init__.py": "", "p/json.py": "", "t.py": "import json"})
    assert importing(tmp_path, "p/json.py") == {"p/json.py"}


def test_a_deleted_module_touches_what_imports_it(tmp_path):
    make(tmp_path, {"gone.py": "", "t.py": "import gone"})
    git(tmp_path, "rm", "-q", "gone.py")
    git(tmp_path, "commit", "-q", "-m", "deleted")
    change, graph = read(tmp_path)
    assert graph.chains(change.files) == {"gone.py": ("gone.py",), "t.py": ("t.py", "gone.py")}


def test_a_conftest_touches_the_tests_below_it(tmp_path):
    make(tmp_path, {"tests/conftest.py": "", "tests/a/test_a.py": "", "other/test_b.py": ""})
    assert importing(tmp_path, "tests/conftest.py") == {"tests/conftest.py", "tests/a/test_a.py"}


def test_places_that_cannot_be_followed_are_listed(tmp_path):
    loads = "import importlib\nname = 'a'\nimportlib.import_module(name)\nimportlib.import_module('.b', 'a')\n"
    make(tmp_path, {"t.py": loads, "u.py": "__import__()\n"})
    assert read(tmp_path)[1].unfollowed == ("t.py:3", "t.py:4", "u.py:1")


def test_a_file_that_is_not_python_imports_nothing_and_is_left_to_pytest(tmp_path):
    make(tmp_path, {"t.py": "import a\nthis is no Python\n", "a.py": "", "n.py": "x = '\0'\n"})
    graph = read(tmp_path)[1]
    assert graph.assertions == {"t.py": (), "n.py": ()}
    assert graph.chains(["a.py"]) == {"a.py": ("a.py",)}


def calls(tmp_path, text):
    make(tmp_path, {"t.py": text})
    return read(tmp_path)[1].assertions.get("t.py")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("from privcheck.testing import assert_private\nassert_private(f, c)", [2]),
        ("from privcheck.testing import assert_private as ap\nap(f, c)\nap(g, c)", [2, 3]),
        ("import privcheck.testing\nprivcheck.testing.assert_private(f, c)", [2]),
        ("from privcheck import testing as t\n\nt.assert_private(f, c)", [3]),
        ("from privcheck.testing import *\nassert_private(f, c)", [2]),
        ("from privcheck.testing import assert_declaration\nassert_declaration(d)", [2]),
        ("from privcheck.testing import assert_sensitivity\nassert_sensitivity(s)", None),
        ("from privcheck import audit_mechanism", None),
        ("def f():\n    def g():\n        from privcheck.testing import assert_private\n        assert_private()", [4]),
    ],
)
def test_calls_of_the_assertion_are_found_under_their_names(tmp_path, text, lines):
    found = calls(tmp_path, text)
    assert (None if found is None else [one.first for one in found]) == lines


def test_a_call_knows_its_lines_and_the_test_around_it(tmp_path):
    head = "from privcheck.testing import assert_private\n\n\n@mark\n@other(\n  1)\n"
    text = head + "def test():\n  assert_private(\n    f)\n  x = 1\n"
    (found,) = calls(tmp_path, text)
    assert (found.first, found.last, found.inside) == (8, 9, (4, 10))


def test_tests_of_one_class_are_told_apart(tmp_path):
    head = "from privcheck.testing import assert_private\n\n\nclass TestOwn:\n"
    text = head + "".join(f"    def test_{name}(self):\n        assert_private(f)\n\n" for name in "ab")
    found = calls(tmp_path, text)
    assert [(one.first, one.inside) for one in found] == [(6, (5, 6)), (9, (8, 9))]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("HERE", ("pkg/__init__.py", 3)),
        ("FIRST", ("pkg/__init__.py", 4)),
        ("SECOND", ("pkg/__init__.py", 4)),
        ("TYPED", ("pkg/__init__.py", 5)),
        ("THERE", ("pkg/mod.py", 2)),
        ("RENAMED", ("pkg/mod.py", 2)),
        ("make", ("pkg/mod.py", 4)),
        ("LOOP", ("pkg/__init__.py", 1)),
        ("NOWHERE", ("pkg/__init__.py", 1)),
    ],
)
def test_the_line_of_a_definition_is_found_through_imports(tmp_path, name, place):
    top = "from pkg.mod import THERE, THERE as RENAMED, make\nfrom pkg.loop import LOOP\n"
    make(
        tmp_path,
        {
            "pkg/__init__.py": top + "HERE = 1\nFIRST, SECOND = 1, 2\nTYPED: int = 3\n",
            "pkg/mod.py": "\nTHERE = 1\n\ndef make(): ...\n",
            "pkg/loop.py": "from pkg import LOOP\n",
        },
    )
    change, graph = read(tmp_path)
    assert find_definition(change, graph, "pkg", name) == place
    assert find_definition(change, graph, "elsewhere", name) is None


def test_no_path_of_the_tree_is_followed_out_of_it(tmp_path):
    make(tmp_path, {"a.py": "from .. import outside\n"})
    assert read(tmp_path)[1].imports == {"a.py": frozenset()}
    assert not list(Path(tmp_path).parent.glob("outside*"))
