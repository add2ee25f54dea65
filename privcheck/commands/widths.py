"""Columns of text, as wide as the terminal where there is one; full where the output goes to a file or a pipe."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_GAP: Final = "  "
_NO_TERMINAL: Final = 10_000
_LEAST: Final = 12  # of a column that is cut or wrapped

Rows = Sequence[Sequence[str]]


def columns(rows: Rows) -> str:
    """Returns rows as aligned columns, the first one as a heading."""
    return _join(rows, _widths(rows))


def pages_of_columns(heading: Sequence[str], pages: Iterable[Rows]) -> Iterator[str]:
    """Yields rows as columns that are as wide as the first page and the heading need; a longer cell stands out."""
    left = iter(pages)
    first = [heading, *next(left, ())]
    widths = _widths(first)
    yield _join(first, widths)
    for page in left:
        yield "\n".join(_lines(page, widths))


def stream_columns(heading: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """Yields a heading and then a line a row, as they come; a cell that is longer than its column stands out."""
    yield from _join([heading], widths).split("\n")
    for row in rows:
        yield from _lines([row], widths)


def cut_columns(rows: Rows, *, most: int = _NO_TERMINAL) -> str:
    """Returns rows as columns that fit the terminal and `most`: all but the first may be cut, with `…` at the end."""
    widths, room = _widths(rows), min(_room(), most)
    while _sum(widths) > room and max(widths[1:]) > _LEAST:
        widths[widths.index(max(widths[1:]), 1)] -= 1
    return _join([[_cut(cell, width) for cell, width in zip(row, widths, strict=True)] for row in rows], widths)


def cut_line(text: str, *, most: int) -> str:
    """Returns a line that fits the terminal and `most`, with `…` at the end where it was cut."""
    return _cut(text, min(_room(), most))


def wrapped_columns(rows: Rows) -> str:
    """Returns rows as columns that fit the terminal: the last one is wrapped, nothing is cut."""
    widths = _widths(rows)
    widths[-1] = max(min(widths[-1], _room() - _sum(widths) + widths[-1]), _LEAST)
    lines: list[Sequence[str]] = []
    for row in rows:
        first, *more = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) or [""]
        lines.append([*row[:-1], first])
        lines += [["" for _ in row[:-1]] + [part] for part in more]
    return _join(lines, widths)


def wrap(text: str) -> str:
    """Returns a text in lines that fit the terminal."""
    return textwrap.fill(text, _room(), subsequent_indent=_GAP, break_long_words=False, break_on_hyphens=False)


def _room() -> int:
    return max(shutil.get_terminal_size(fallback=(_NO_TERMINAL, 24)).columns, 2 * _LEAST)


def _widths(rows: Rows) -> list[int]:
    return [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]


def _sum(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _cut(cell: str, width: int) -> str:
    return cell if len(cell) <= width else cell[: width - 1].rstrip() + "…"


def _join(rows: Rows, widths: Sequence[int]) -> str:
    lines = _lines(rows, widths)
    return "\n".join([lines[0], _GAP.join("─" * width for width in widths), *lines[1:]])


def _lines(rows: Rows, widths: Sequence[int]) -> list[str]:
    return [_GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
