"""`list` from files in the packages, without making declarations, which would load SymPy and prove every domain.

`python -m privcheck.cli.listing PACKAGE` writes such a file, `listing.json` beside the package's `__init__`. It has a
row
for every algorithm that the package registers, by the value of its entry point. An algorithm without a row is described
from its declaration, so the file is optional; a contract test keeps ours equal to the declarations.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from privcheck.cli.options import cut_columns, cut_line
from privcheck.errors import ParameterError
from privcheck.support.plugins import find_entry, list_entries

NAME: Final = "listing.json"
SCHEMA: Final = 2  # of the document; equal to that of all others, which would load what this module avoids
_WIDTH: Final = 100
_FORMS: Final = (  # of guarantees; the levels may be formulas, which `show` prints
    (r"\(.*, .*\)-DP", "(ε, δ)-DP"),
    (r"\(.*\)-DP", "ε-DP"),
    (r"\(.*\)-zCDP", "ρ-zCDP"),
    (r"\(.*\)-GDP", "μ-GDP"),
)
Row = Mapping[str, Any]


def list_algorithms() -> dict[str, Any]:
    """The document that `privcheck list --json` prints."""
    return {"schema": SCHEMA, "algorithms": [_row(name) for name in sorted(list_entries("algorithms"))]}


def _row(name: str) -> Row:
    try:
        value = find_entry("algorithms", name).value
    except ParameterError:  # it is registered twice, and the row says so
        value = ""
    row = _kept(value.partition(":")[0].partition(".")[0]).get(value)
    return _describe(name) if row is None or row["name"] != name else row


@cache
def _kept(package: str) -> Mapping[str, Row]:
    """The rows in a package's file, by entry point; empty without a file. The package is not imported."""
    path = find_file(package)
    if path is None or not path.exists():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    rows: Mapping[str, Row] = document["algorithms"]
    return rows if document["schema"] == SCHEMA else {}


def find_file(package: str) -> Path | None:
    """Path of a package's file, whether or not it exists; None if there is no such package."""
    try:
        spec = find_spec(package) if package else None
    except ValueError:  # a module that was made in this process and comes from no file
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / NAME


def _describe(name: str) -> Row:
    from privcheck.commands.declarations import list_algorithm
    from privcheck.reports.values import to_json

    row: Row = to_json(list_algorithm(name))
    return row


def describe_algorithms(document: Mapping[str, Any]) -> str:
    """One line per algorithm, grouped by paper, at most 100 columns wide."""
    papers: dict[str, list[Row]] = {}
    for one in sorted(document["algorithms"], key=_order):
        papers.setdefault(_heading(one), []).append(one)
    heading = ("name", "claim", "agent", "title")
    cells = [(one["name"], say_claim(one["claim"]), "yes" if one["agent"] else "no", _title(one))
             for rows in papers.values() for one in rows]  # fmt: skip
    lines = iter(cut_columns([heading, *cells], most=_WIDTH).split("\n"))
    return "\n".join(_under_headings(papers, lines))


def _under_headings(papers: Mapping[str, Sequence[Row]], lines: Iterator[str]) -> Iterator[str]:
    yield next(lines)
    yield next(lines)
    for paper, rows in papers.items():
        yield ""
        yield cut_line(paper, most=_WIDTH)
        yield from (next(lines) for _ in rows)


def _title(row: Row) -> str:
    """The error or the title, without a leading name that repeats the line's first column."""
    first, colon, rest = row["title"].partition(": ")
    said = re.sub(r"\W", "", row["name"].lower()).startswith(re.sub(r"\W", "", first.lower()))
    return str(row["error"] or (rest if colon and said else row["title"]))


def _heading(row: Row) -> str:
    if row["error"]:
        return "Cannot be loaded"
    if row["paper"] is not None:
        return str(row["paper"])
    return "Without privacy" if row["claim"] is None else "Other algorithms"


def _order(row: Row) -> tuple[bool, bool, str, str]:
    return bool(row["error"]), row["paper"] is None, _heading(row), row["name"]


def say_claim(claim: str | None) -> str:
    """The form of a claim: its view and its kind of guarantee.

    >>> say_claim("up to a constant, joint (2*epsilon, delta)-DP"), say_claim(None)
    ('O(·) joint (ε, δ)-DP', 'none')
    """
    if claim is None:
        return "none"
    order, constant, rest = claim.rpartition("up to a constant, ")
    for pattern, form in _FORMS:
        rest, found = re.subn(pattern, form, rest, count=1)
        if found:
            break
    return ("O(·) " if constant else order) + rest


def write_listing(package: str) -> None:
    """Write the file of a package, with one line per registered algorithm.

    Raises:
        ParameterError: There is no such package, or an algorithm of it cannot be described.
    """
    path = find_file(package)
    if path is None:
        raise ParameterError(f"there is no package {package!r} to import", name="package", given=package)
    path.write_text(make_listing(package), encoding="utf-8")


def make_listing(package: str) -> str:
    """The text of a package's file.

    Raises:
        ParameterError: An algorithm of the package cannot be described.
    """
    rows = {}
    for name, point in sorted(list_entries("algorithms").items()):
        if point.value.partition(":")[0].partition(".")[0] == package:
            row = rows[point.value] = _describe(name)
            if row["error"]:
                raise ParameterError(f"{name}: {row['error']}", name="package", given=package)
    lines = ",\n".join(f"  {json.dumps(value)}: {json.dumps(row, ensure_ascii=False)}" for value, row in rows.items())
    return f'{{"schema": {SCHEMA}, "algorithms": {{\n{lines}\n}}}}\n'


if __name__ == "__main__":
    write_listing(sys.argv[1])
