"""A picture of a witness: the two users side by side with differences marked, and the pair's loss beside the claim."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from privcheck.reports.values import Verified
from privcheck.reports.wording import figure, show_value, spell_out, strip_controls

_WIDTH, _LEFT, _GAP, _LINE = 720, 56, 8, 18  # pixels; _LEFT is for the names D and D′
_MOST = 6  # columns; the rest of a longer pair is said to follow
_LETTER = 7.2  # about the width of one at this size
_BAR_LEFT, _BAR = 190, 330
_PAPER, _INK, _MUTED, _RULE, _SAME, _DIFFERS, _CLAIM, _BAD = (
    "#fdfcfa", "#22211f", "#635f58", "#dcd7cd", "#f5f2ec", "#f9e3cf", "#6b4a86", "#a01c24",
)  # fmt: skip

Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The actions of both users at some steps, one line per fact."""

    heading: str
    users: tuple[Lines, Lines]


def draw_pair(result: Verified) -> str | None:
    """The picture as an SVG file, light also on dark pages; None if no pair is known.

    Bars are scaled to the longest finite one; an infinite loss is a dashed bar. Exact factors are written beside them.
    """
    witness = result.witness
    if witness is None or witness.pair is None:
        return None
    columns = _columns(witness.pair)
    wide = (_WIDTH - _LEFT - _GAP * len(columns)) / len(columns)
    rows = max(len(lines) for lines in _wrapped(columns, wide))
    top, high = 34, rows * _LINE + 12
    drawn = [*_cells(columns, wide, top, high), *_bars(result, top + 2 * (high + _GAP) + 14)]
    height = top + 2 * (high + _GAP) + 14 + 3 * 24 + 6
    about = escape(strip_controls(witness.words))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"',
        '  role="img" font-family="system-ui, Segoe UI, Noto Sans, Helvetica, Arial, sans-serif" font-size="13">',
        f"<title>The worst known pair for {escape(result.algorithm)}</title>",
        f"<desc>{about}</desc>",
        f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="{_PAPER}"/>',
        *drawn,
        "</svg>",
        "",
    ])  # fmt: skip


def _columns(pair: Sequence[Mapping[str, Any] | str | None]) -> list[_Column]:
    first, second = pair[0], pair[1]
    if isinstance(first, Mapping) and isinstance(second, Mapping) and "states" in first:
        return _steps(first, second)
    return [_Column(heading="", users=(_facts(first), _facts(second)))]


def _steps(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[_Column]:
    """One column per group of equal steps, and one for the final states."""
    users = [list(zip(u["states"], u["actions"], u["rewards"], strict=False)) for u in (first, second)]
    columns, start = [], 1
    for both, same in itertools.groupby(zip(*users, strict=True)):
        end = start + len(list(same)) - 1
        heading = f"step {start}" if end == start else f"steps {start}–{end}"
        said = tuple(
            (f"state {show_value(s)}", f"action {show_value(a)}", f"reward {show_value(r)}") for s, a, r in both
        )
        columns.append(_Column(heading=heading, users=(said[0], said[1])))
        start = end + 1
    left = len(columns) - _MOST
    if left > 0:
        columns = [*columns[:_MOST], _Column(heading="…", users=(("and so on",), ("and so on",)))]
    last = [(f"state {show_value(u['states'][-1])}",) for u in (first, second)]
    return [*columns, _Column(heading="then", users=(last[0], last[1]))]


def _facts(user: Mapping[str, Any] | str | None) -> Lines:
    if not isinstance(user, Mapping):
        return (spell_out(user) if user else "nobody",)
    said, steps = [], 1
    for part in user.values():
        for name, values in part.items() if isinstance(part, Mapping) else ():
            if isinstance(values, list) and values:
                steps = max(steps, len(values))
                said.append(f"{spell_out(str(name))} = {_short(values[0])}")
    return (*said, *([] if steps == 1 else [f"at step 1, and so on for {steps} steps"]))


def _short(value: object) -> str:
    if not isinstance(value, list):
        return show_value(value)
    told = max((i for i, v in enumerate(value) if v), default=0) + 1
    told = min(told, 4)
    rest = ", …" if told < len(value) else ""
    return f"({', '.join(show_value(v) for v in value[:told])}{rest})"


def _wrapped(columns: Sequence[_Column], wide: float) -> Iterator[list[str]]:
    """Yield the lines of every cell, wrapped to its width."""
    letters = max(10, int((wide - 16) / _LETTER))
    for column in columns:
        for lines in column.users:
            yield [part for line in lines for part in textwrap.wrap(strip_controls(line), letters) or [""]]


def _cells(columns: Sequence[_Column], wide: float, top: int, high: int) -> Iterator[str]:
    for user, name in enumerate(("D", "D′")):
        middle = top + user * (high + _GAP) + high / 2 + 5
        yield f'<text x="18" y="{middle:.0f}" font-size="17" fill="{_INK}">{name}</text>'
    wrapped = list(_wrapped(columns, wide))
    for number, column in enumerate(columns):
        x = _LEFT + number * (wide + _GAP)
        yield f'<text x="{x:.1f}" y="22" fill="{_MUTED}">{escape(column.heading)}</text>'
        pair = wrapped[2 * number], wrapped[2 * number + 1]
        for user, (mine, other) in enumerate((pair, pair[::-1])):
            y = top + user * (high + _GAP)
            fill = _SAME if mine == other else _DIFFERS
            size = f'width="{wide:.1f}" height="{high}" rx="4"'
            yield f'<rect x="{x:.1f}" y="{y}" {size} fill="{fill}" stroke="{_RULE}"/>'
            for place, line in enumerate(mine):
                weight = "" if line in other else ' font-weight="600"'
                at = y + 20 + place * _LINE
                yield f'<text x="{x + 8:.1f}" y="{at}" fill="{_INK}"{weight}>{escape(line)}</text>'


def _bars(result: Verified, top: float) -> Iterator[str]:
    """Yield bars of the claim, of the pair's least loss and of any pair's largest loss, in the claim's unit."""
    least, most = result.lower_ratio, result.upper_ratio
    longest = max([1.0, *(ratio for ratio in (least, most) if math.isfinite(ratio))])
    bars = (
        ("claimed", 1.0, "the claim", _CLAIM),
        ("this pair loses at least", least, f"{figure(least, rounding='down')} times the claim", _BAD),
        ("any pair loses at most", most, f"{figure(most, rounding='up')} times the claim", _MUTED),
    )
    for number, (name, ratio, factor, colour) in enumerate(bars):
        y = top + 24 * number
        long = _BAR if math.isinf(ratio) else max(2.0, _BAR * ratio / longest)
        if math.isinf(most) and not math.isinf(ratio):
            long /= 4  # beside what has no end
        said = "no ε is large enough" if math.isinf(ratio) else factor
        broken = f' stroke="{colour}" stroke-dasharray="5 4" fill-opacity="0.25"' if math.isinf(ratio) else ""
        yield f'<text x="18" y="{y + 12:.0f}" fill="{_INK}">{name}</text>'
        yield f'<rect x="{_BAR_LEFT}" y="{y:.0f}" width="{long:.1f}" height="14" fill="{colour}"{broken}/>'
        x = _BAR_LEFT + long + 8
        yield f'<text x="{x:.1f}" y="{y + 12:.0f}" fill="{_INK}">{escape(said)}</text>'
