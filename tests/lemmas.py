"""All lemmas in docstrings, with the tests that name them; `python tests/lemmas.py` writes `docs/lemmas.md` again.

A docstring of the packages states a lemma in a paragraph or list item `Lemma NAME: statement. Source: … Proof: …`. The
name is in kebab case; `Proof:` is followed by the proof, or by where in the docstring it is; `Reviewed: name, date` is
optional. Other places cite it as `[lemma NAME]`. A test that checks it says so in a comment `# [lemma NAME]` above the
function and its decorators, a file of such tests in its docstring.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "lemmas.md"
PACKAGES = {"privcheck": ROOT, "privcheck_algorithms": ROOT / "algorithms", "privcheck_audits": ROOT / "audits"}
OWN = ("lemmas", "test_lemmas")  # files whose citations are examples
CITED = re.compile(r"\[lemma\s+([^\]]*)\]")
_LEMMA = re.compile(r"(?:\d\. |\* )?Lemma ([a-z][^\s:]*): ")
_ITEM = re.compile(r"\d\. |\* |$")
_PART = re.compile(r"(?:^|\s)(Source|Proof|Reviewed):\s")
_HEAD = """\
# Lemmas

A verdict is only as good as the mathematics beneath it. This page lists the {lemmas} results that prices, bounds and
verdicts depend on: statement, published source, the docstring with the proof, and the tests that compare the statement
with an independent and slower computation. For {own} of them no source is named: their proof is this project's own, and
read by nobody else unless it says so. A test is evidence, not a proof.

To review a lemma, read the statement and its proof in the docstring, and try to break both; then add a line `Reviewed:
name, date` to the paragraph of the lemma, or open an issue that says what is wrong. {reviewed}.

A docstring states a lemma in a paragraph `Lemma NAME: …`, other places cite it as `[lemma NAME]`, and so does a comment
above the tests that check it. `PYTHONPATH=tests python tests/lemmas.py` collects them into this page; do not edit it.
"""


@dataclass(frozen=True)
class Lemma:
    """A statement in a docstring."""

    name: str
    place: str  # dotted name of the module, class or function with the docstring
    statement: str
    parts: Mapping[str, str]  # of Source, Proof, Reviewed

    @property
    def room(self) -> str:
        """Name of the room, or of the package where rooms are not of `privcheck`."""
        package, _, rest = self.place.partition(".")
        return f"{package}.{rest.partition('.')[0]}" if package == "privcheck" else package


def read(docstring: str, place: str) -> Iterator[Lemma]:
    """Yields the lemmas of a docstring without indentation."""
    lines = docstring.splitlines()
    for start, line in enumerate(lines):
        if found := _LEMMA.match(line):
            own = [line[found.end() :]]
            for following in lines[start + 1 :]:
                if _ITEM.match(following) or _LEMMA.match(following):
                    break
                own.append(following.strip())
            statement, *parts = _PART.split(" ".join(own))
            yield Lemma(found[1], place, statement.strip(), dict(zip(parts[::2], parts[1::2], strict=True)))


def stated() -> list[Lemma]:
    """Returns all lemmas of the packages, in the order of modules and lines."""
    found: list[Lemma] = []
    for package, folder in PACKAGES.items():
        for path in sorted((folder / package).rglob("*.py")):
            module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            for place, docstring in _docstrings(ast.parse(path.read_text(encoding="utf-8")), module):
                found += read(docstring, place)
    return found


def _docstrings(node: ast.AST, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield place, ast.get_docstring(node) or ""
        for below in node.body:
            yield from _docstrings(below, f"{place}.{getattr(below, 'name', '')}")


def checks(folder: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Returns by lemma the tests that name it, `oracle/test_waves.py::test_…`, or a file alone for all tests in it."""
    found = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        text, file = path.read_text(encoding="utf-8"), path.relative_to(folder).as_posix()
        if "[lemma" in text:
            above = re.findall(r"(?m)^# (\[lemma .+)\n(?:(?!def |\n).*\n)*def (test_\w+)", text)
            assert text.count("\n# [lemma ") == len(above), f"{file}: a comment `# [lemma …]` is above no test"
            whole = ast.get_docstring(ast.parse(text)) or ""
            for names, test in [(whole, file), *((names, f"{file}::{test}") for names, test in above)]:
                for name in CITED.findall(names):
                    found[name].append(test)
    return dict(found)


def citations() -> set[tuple[str, str]]:
    """Returns (lemma, file) of all citations in packages, tests and pages."""
    folders = [*(folder / package for package, folder in PACKAGES.items()), ROOT / "tests", ROOT / "docs"]
    files = [path for folder in folders for path in folder.rglob("*.[pm][yd]") if path.stem not in OWN]
    return {(name, str(f.relative_to(ROOT))) for f in files for name in CITED.findall(f.read_text(encoding="utf-8"))}


def write(lemmas: Sequence[Lemma], tests: Mapping[str, Iterable[str]]) -> str:
    """Returns the page."""
    own = sum("Source" not in one.parts for one in lemmas)
    reviewed = sum("Reviewed" in one.parts for one in lemmas)
    count = f"So far {reviewed} of {len(lemmas)} have such a line" if reviewed else "So far none has such a line"
    lines = [_HEAD.format(lemmas=len(lemmas), own=own, reviewed=count)]
    for room in dict.fromkeys(one.room for one in lemmas):
        lines += [f"## `{room}`", ""]
        for one in (one for one in lemmas if one.room == room):
            lines += [f"### {one.name}", "", _escape(one.statement), "", *_facts(one, tests.get(one.name, ())), ""]
    return "\n".join(lines)


def _facts(one: Lemma, tests: Iterable[str]) -> Iterator[str]:
    if "Source" in one.parts:
        yield f"* Source: {_escape(one.parts['Source'])}"
    yield f"* {'Proof' if 'Proof' in one.parts else 'Stated'} in `{one.place}`"
    by_file = defaultdict(list)
    for file, _, test in (each.partition("::") for each in tests):
        by_file[file].append(f"`{test}`" if test else "all tests")
    yield from (f"* Tests: `tests/{file}`: {', '.join(names)}" for file, names in by_file.items())
    if "Reviewed" in one.parts:
        yield f"* Reviewed: {_escape(one.parts['Reviewed'])}"


def _escape(text: str) -> str:
    """Returns text of a docstring as Markdown, with citations as links."""
    pieces = re.split(r"(`[^`]*`|(?<!\w)\*\w+\*|\[lemma [a-z0-9-]+\])", text)
    pieces[::2] = [re.sub(r"([\\*_<\[\]|~])", r"\\\1", piece) for piece in pieces[::2]]
    return CITED.sub(r"[lemma \1](#\1)", "".join(pieces))


if __name__ == "__main__":
    PAGE.write_text(write(stated(), checks()), encoding="utf-8")
