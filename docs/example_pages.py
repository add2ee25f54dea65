"""What is to copy: scripts of `docs/examples`, which run while the pages are read, and the cells of the notebook."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = Path(__file__).parent / "examples"
NOTEBOOK = "<!-- the notebook stands here -->"
INDEX = "<!-- the examples of all pages stand here -->"
EXAMPLE = re.compile(r"^<!-- example: (\w+) -->$", re.MULTILINE)
WIDTH = 88  # characters of a block without a scroll bar
PAGES = ("budgets", "papers", "agents", "audits", "publishing")  # in the order of the front page
# an example is run alone in a folder that is thrown away; the SVG that it leaves in `figure` is kept
_RUN = """
import pathlib, runpy, sys
figure = runpy.run_path(sys.argv[1], run_name="__main__").get("figure")
if figure is not None:
    pathlib.Path(sys.argv[2]).write_text(figure, encoding="utf-8")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A script as it is shown.

    Attributes:
        name: Its file without the ending.
        title: First line of its docstring, without the full stop.
        text: The rest of its docstring.
        code: What follows the docstring.
    """

    name: str
    title: str
    text: str
    code: str

    @property
    def path(self) -> Path:
        """The script."""
        return FOLDER / f"{self.name}.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an example did: its standard output, the text of its figure (empty without one) and its seconds."""

    printed: str
    figure: str
    seconds: float


def read_example(name: str) -> Example:
    """Read a script.

    Raises:
        ValueError: The script has no docstring of a title and a text.
    """
    source = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    head = ast.parse(source).body[0]
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")
    if not text or not title.endswith(".") or "\n" in title:
        raise ValueError(f"{name}.py: expected a docstring of a title with a full stop, an empty line and a text")
    code = "\n".join(source.splitlines()[head.end_lineno :]).strip().replace("  # fmt: skip", "")
    return Example(name=name, title=title.removesuffix("."), text=text, code=code)


def names_on(page: str) -> list[str]:
    """The examples of a page, in its order."""
    return EXAMPLE.findall((FOLDER / f"{page}.md").read_text(encoding="utf-8"))


def run_example(example: Example) -> Outcome:
    """Run a script in a process and a folder of its own; warnings are errors.

    Raises:
        RuntimeError: The script failed; the message has its error output.
    """
    with TemporaryDirectory() as folder:
        figure = Path(folder) / "figure.svg"
        work = Path(folder) / "work"
        work.mkdir()
        paths = os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)  # the same packages as here
        began = time.perf_counter()
        ended = subprocess.run(  # noqa: S603 - our own scripts
            [sys.executable, "-W", "error", "-c", _RUN, str(example.path), str(figure)],
            cwd=work,
            env=os.environ | {"PYTHONPATH": paths, "PYTHONIOENCODING": "utf-8", "PYTHONSAFEPATH": "1"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        seconds = time.perf_counter() - began
        if ended.returncode or ended.stderr:
            raise RuntimeError(f"{example.path} ended with {ended.returncode}:\n{ended.stderr}")
        drawn = figure.read_text(encoding="utf-8") if figure.is_file() else ""
    return Outcome(printed=ended.stdout, figure=drawn, seconds=seconds)


def show_example(example: Example, outcome: Outcome) -> str:
    """The example as Markdown, under a heading."""
    drawn = ["", "```{raw} html", f'<div class="example-figure">{outcome.figure}</div>', "```"]
    return "\n".join([
        f"## {example.title}",
        "",
        example.text,
        "",
        "```python",
        example.code,
        "```",
        "",
        "```text",
        *map(_wrap, outcome.printed.rstrip().splitlines()),
        "```",
        *(drawn if outcome.figure else []),
        "",
        f"{{download}}`{example.name}.py`, {outcome.seconds:.0f} s with the start of Python",
    ])  # fmt: skip


def _wrap(line: str) -> str:
    return line if len(line) <= WIDTH else textwrap.fill(line, WIDTH, subsequent_indent="    ")


def show_index(pages: Sequence[str] = PAGES) -> str:
    """A table for every page, with a row for each example."""
    lines = []
    for page in pages:
        heading = re.search(r"^# (.+)$", (FOLDER / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
        assert heading is not None
        lines += [f"## {heading[1]}", "", "| example | what it shows |", "| --- | --- |"]
        lines += [
            f"| [{one.title}]({page}.md#{slug(one.title)}) | {' '.join(one.text.split())} |"
            for one in map(read_example, names_on(page))
        ]
        lines += [""]
    return "\n".join(lines)


def show_notebook(path: Path) -> str:
    """A notebook as Markdown: its cells, and the printed outputs that are stored with them."""
    shown = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        shown.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", []):
            printed = "".join(output["text"]).rstrip().splitlines()
            shown.append("\n".join(["```text", *map(_wrap, printed), "```"]))
    return "\n\n".join(shown)


def slug(title: str) -> str:
    """The anchor of a heading, as MyST and GitHub make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def write_examples(app: Any, page: str, source: list[str]) -> None:
    """Put the examples and the notebook where a page has a mark; it is read again when one of them changes."""
    if page == "notebook":
        notebook = FOLDER.parent / "notebook.ipynb"
        app.env.note_dependency(str(notebook))
        source[0] = source[0].replace(NOTEBOOK, show_notebook(notebook))
    folder, _, name = page.rpartition("/")
    if folder != FOLDER.name:
        return
    for other in PAGES if name == "index" else [name]:
        for one in names_on(other):
            app.env.note_dependency(str((FOLDER / f"{one}.py").resolve()))
    source[0] = source[0].replace(INDEX, show_index()) if name == "index" else EXAMPLE.sub(_run_and_show, source[0])


def _run_and_show(found: re.Match[str]) -> str:
    example = read_example(found[1])
    return show_example(example, run_example(example))
