"""Every example of the documentation runs without a warning, prints something, and is on one page."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LONGEST = 120.0  # seconds of one example, where kernels are compiled anew on a busy machine; else at most 10


def _load():
    spec = importlib.util.spec_from_file_location("example_pages", DOCS / "example_pages.py")
    module = sys.modules["example_pages"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pages = _load()
NAMES = sorted(path.stem for path in pages.FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_every_example_compiles_and_has_a_title_and_two_sentences(name):
    example = pages.read_example(name)
    compile(example.path.read_text(encoding="utf-8"), name, "exec")
    assert len(re.findall(r"[.?](?:\s|$)", example.text)) == 2
    assert 3 <= len(example.code.splitlines()) <= 40
    assert max(map(len, example.code.splitlines())) <= pages.WIDTH
    assert "print(" in example.code


def test_every_example_is_on_one_page():
    shown = [name for page in pages.PAGES for name in pages.names_on(page)]
    assert sorted(shown) == NAMES
    assert len({pages.read_example(name).title for name in NAMES}) == len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_example_runs_without_a_warning(name):
    outcome = pages.run_example(pages.read_example(name))
    assert outcome.printed.strip()
    assert len(outcome.printed.splitlines()) <= 12
    assert outcome.seconds < LONGEST
    assert ("figure = " in pages.read_example(name).code) == outcome.figure.startswith("<svg")


def _write(folder, monkeypatch, code):
    monkeypatch.setattr(pages, "FOLDER", folder)
    (folder / "mine.py").write_text(f'"""A title.\n\nIt has a text. And another.\n"""\n\n{code}\n', encoding="utf-8")
    return pages.read_example("mine")


def test_an_example_is_shown_with_its_code_its_output_and_its_figure(tmp_path, monkeypatch):
    example = _write(tmp_path, monkeypatch, "print('a ' * 60)\nfigure = '<svg></svg>'")
    outcome = pages.run_example(example)
    assert (outcome.printed, outcome.figure) == ("a " * 60 + "\n", "<svg></svg>")
    shown = pages.show_example(example, outcome)
    assert shown.startswith("## A title\n\nIt has a text. And another.\n\n```python\nprint('a ' * 60)\nfigure = ")
    assert "<svg></svg>" in shown
    assert max(map(len, shown.splitlines())) <= pages.WIDTH


@pytest.mark.parametrize("code", ["1 / 0", "import warnings\nwarnings.warn('careful')", "import sys\nsys.exit(3)"])
def test_an_example_that_fails_or_warns_ends_the_build(tmp_path, monkeypatch, code):
    example = _write(tmp_path, monkeypatch, code)
    with pytest.raises(RuntimeError, match=r"mine\.py ended with"):
        pages.run_example(example)


@pytest.mark.parametrize("text", ["x = 1", '"""A title."""', '"""No full stop\n\nText.\n"""'])
def test_a_script_without_a_title_and_a_text_is_refused(tmp_path, monkeypatch, text):
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="expected a docstring"):
        pages.read_example("mine")


def test_pages_have_the_examples_and_the_notebook_in_place_of_marks_and_are_read_again_with_them(monkeypatch):
    monkeypatch.setattr(pages, "run_example", lambda _: pages.Outcome(printed="said", figure="", seconds=1.0))
    for page in ("index", *pages.PAGES):
        read = set()
        source = [(pages.FOLDER / f"{page}.md").read_text(encoding="utf-8")]
        pages.write_examples(SimpleNamespace(env=SimpleNamespace(note_dependency=read.add)), f"examples/{page}", source)
        assert "<!--" not in source[0]
        assert len(read) == len(NAMES if page == "index" else pages.names_on(page))
        assert all(Path(path).is_file() for path in read)
    cells = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    source = [(DOCS / "notebook.md").read_text(encoding="utf-8")]
    pages.write_examples(SimpleNamespace(env=SimpleNamespace(note_dependency=read.add)), "notebook", source)
    assert str(DOCS / "notebook.ipynb") in read
    assert [cell for cell in cells if "".join(cell["source"]) not in source[0]] == []
    assert source[0].count("```text\n") == sum(len(cell.get("outputs", [])) for cell in cells) > 0
    untouched = ["<!-- example: compose -->"]
    pages.write_examples(SimpleNamespace(), "tutorial", untouched)
    assert untouched == ["<!-- example: compose -->"]
