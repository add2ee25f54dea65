"""Every code of a finding has its section, the notebook runs, and what a document names exists."""

import contextlib
import importlib
import io
import json
import re
from pathlib import Path

import pytest
from mypy import api as mypy

from privcheck.verification import CODES

ROOT = Path(__file__).parents[2]


def test_the_python_in_the_readme_is_well_typed(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(ROOT)
    file = tmp_path / "readme.py"
    for ending, status in (("", 0), ("\ncost.no_such_field\n", 1)):
        file.write_text("\n".join(blocks) + ending, encoding="utf-8")
        said, wrong, code = mypy.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(file)])
        assert code == status, said + wrong
        assert ('"Budget" has no attribute "no_such_field"' in said) == bool(status)


def test_the_notebook_runs_and_says_what_it_holds():
    path = ROOT / "docs/notebook.ipynb"
    assert path.stat().st_size < 20_000  # pictures and tables are made by who runs it
    scope = {}
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("".join(cell["source"]), "notebook", "exec"), scope)  # noqa: S102 - our own document
        assert said.getvalue() == "".join(text for output in cell["outputs"] for text in output["text"])
    assert sum(bool(cell["outputs"]) for cell in cells) == 5


def test_every_code_has_a_section():
    text = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+)$", text, re.MULTILINE)
    assert sections == list(CODES)


DOCUMENTS = [
    ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/reference/*.md"), ROOT / "tests/README.md",
    *ROOT.glob("algorithms/privcheck_algorithms/*/README.md"),
]  # fmt: skip


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_modules_that_a_document_names_exist(path):
    text = path.read_text(encoding="utf-8")
    places = [
        path.parent,
        ROOT,
        ROOT / "algorithms",
        ROOT / "audits",
        ROOT / "audits/privcheck_check",
        ROOT / "tests/checker",
        ROOT / "tests",
        ROOT / "algorithms/privcheck_algorithms",
    ]
    files = {name for name in re.findall(r"`([a-z0-9_/]+\.py)`", text) if not name.startswith("my_package/")}
    made = {template.stem for template in (ROOT / "privcheck").rglob("starter/**/*.py.j2")}  # by `privcheck new`
    assert {name for name in files - made if not any((place / name).exists() for place in places)} == set()
    modules = set(re.findall(r"(?<![\w./-])privcheck(?:_algorithms|_audits)?(?:\.[a-z_]+)+(?![\w(])", text)) - GROUPS
    assert {name for name in modules if not _exists(name)} == set()


GROUPS = {
    f"privcheck.{group}"
    for group in ("algorithms", "environments", "environment_families", "figures", "auditors", "views")
}


def _exists(name):
    """Returns whether it is a module, or something in one."""
    module, _, last = name.rpartition(".")
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return module.startswith("privcheck") and hasattr(importlib.import_module(module), last)
    return True


CITING = [path for room in ("privcheck", "algorithms", "audits", "docs") for path in (ROOT / room).rglob("*.[pm][yd]")]


def test_references_name_statements_and_not_lines_of_a_text():
    """A line number helps nobody who has another copy; lines of a printed algorithm are few, and stay."""
    text = re.compile(
        r"[Pp]apers? 00[0-9]|(?<!CSV )(?<!code )[Ll]ines? [0-9]{3,}|\b00[0-4]'s\b|\b00[0-4], (?:line|Table)"
    )
    assert CITING
    found = {str(p.relative_to(ROOT)): text.findall(p.read_text(encoding="utf-8")) for p in CITING}
    assert {name: lines for name, lines in found.items() if lines} == {}
