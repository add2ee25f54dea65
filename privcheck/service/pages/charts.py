"""Coordinates of drawings, from which templates make SVG elements; the style sheet has the colours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from privcheck.reports.wording import figure, superscript
from privcheck.service.pages.queries import Course

SIZES: Final = (("wide", 720, 300), ("narrow", 360, 260))
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 18, 40
_STEPS: Final = (  # of a scale of time, and how its ticks are written
    *((timedelta(minutes=n), "%H:%M") for n in (1, 5, 15, 60, 360)),
    *((timedelta(days=n), "%d %b") for n in (1, 2, 7, 14, 30, 61, 122)),
    *((timedelta(days=365 * n), "%Y") for n in (1, 2, 5)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a drawing.

    Attributes:
        name: Name in the legend; empty for none.
        style: A class of the style sheet.
        path: The `d` attribute of its path.
    """

    name: str
    style: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A drawing at one size.

    Attributes:
        size: "wide" or "narrow", a class of the style sheet.
        width: Width of the view box.
        height: Height of the view box.
        lines: Lines of the data and of bounds.
        across: Ticks of the horizontal axis: position and text.
        up: Ticks of the vertical axis.
        marks: Points: x, y, text and anchor of the text.
        names: Names of both axes.
        box: Left, top, right and bottom of the axes.
    """

    size: str
    width: int
    height: int
    lines: tuple[Line, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    marks: tuple[tuple[float, float, str, str], ...]
    names: tuple[str, str]
    box: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Coordinate system of a drawing."""

    size: str
    width: int
    height: int
    left: float
    right: float
    low: float
    high: float

    def x(self, value: float) -> float:
        inner = self.width - _LEFT - _RIGHT
        return round(_LEFT + inner * (value - self.left) / (self.right - self.left), 2)

    def y(self, value: float) -> float:
        inner = self.height - _TOP - _BOTTOM
        return round(_TOP + inner * (self.high - value) / (self.high - self.low), 2)

    def draw(self, **parts: Any) -> Drawing:
        box = (_LEFT, _TOP, self.width - _RIGHT, self.height - _BOTTOM)
        return Drawing(size=self.size, width=self.width, height=self.height, box=box, **parts)


def draw_courses(courses: Sequence[Course], *, now: str, spent_at: Mapping[str, str]) -> list[Drawing]:
    """Draw the spent shares of caps over time: steps up to now, then dashes at the recent rate to the cap.

    The future takes at most half of the width.

    Args:
        courses: Spending by grant.
        now: The time, in UTC.
        spent_at: When all will be spent at the recent rate (`privcheck.ledger.forecasts`), of the grants with a rate.
    """
    begin = min(_seconds(course.points[0][0]) for course in courses)
    end = max(_seconds(now), begin + 60)
    right = min(max(map(_seconds, spent_at.values()), default=end), 2 * end - begin)
    drawings = []
    for size, width, height in SIZES:
        frame = _Frame(size, width, height, begin, max(right, end), 0.0, 1.05)
        lines = [
            Line(name=course.grant, style=f"series-{n}", path=_steps(frame, course, end))
            for n, course in enumerate(courses)
        ]
        ahead = [
            Line(name="", style=f"series-{n} ahead", path=_ahead(frame, course, end, _seconds(spent_at[course.grant])))
            for n, course in enumerate(courses)
            if course.grant in spent_at
        ]
        cap = Line(name="", style="limit", path=f"M{frame.x(begin)} {frame.y(1)}H{frame.x(frame.right)}")
        today = Line(name="", style="today", path=f"M{frame.x(end)} {frame.y(0)}V{frame.y(1)}")
        drawings.append(
            frame.draw(
                lines=(cap, *([today] if ahead else []), *lines, *ahead),
                across=tuple((frame.x(at), text) for at, text in _times(begin, frame.right, most=width // 90)),
                up=tuple((frame.y(n / 4), f"{n * 25} %") for n in range(5)),
                marks=(
                    (frame.x(begin), frame.y(1) + 13, "cap", "start"),
                    *([(frame.x(end), frame.y(1) + 13, "now", "end")] if ahead else []),
                ),
                names=("", ""),
            )
        )
    return drawings


def draw_curve(points: Iterable[tuple[float, float]], *, policy: tuple[float, float]) -> list[Drawing]:
    """Draw δ over ε of all that the caps admit, with the policy's point.

    Args:
        points: δ and ε, both above 0.
        policy: ε and δ.
    """
    curve = sorted((epsilon, math.log10(delta)) for delta, epsilon in points)
    at = (policy[0], math.log10(policy[1]) if policy[1] > 0 else -12.0)
    low = min([at[1], *(y for _, y in curve)])
    high = max([at[1], *(y for _, y in curve)])
    most = 1.08 * max([at[0], *(x for x, _ in curve)])
    powers = [n for n in range(math.floor(low), math.ceil(high) + 1) if n % 3 == 0]
    drawings = []
    for size, width, height in SIZES:
        frame = _Frame(size, width, height, 0.0, most, math.floor(low) - 0.5, math.ceil(high) + 0.5)
        path = "M" + "L".join(f"{frame.x(x)} {frame.y(y)}" for x, y in curve)
        box = f"M{frame.x(0)} {frame.y(at[1])}H{frame.x(at[0])}V{frame.y(frame.low)}"
        x, y = frame.x(at[0]), frame.y(at[1])
        drawings.append(
            frame.draw(
                lines=(
                    Line(name="", style="limit", path=box),
                    Line(name="all grants, at their caps", style="series-0", path=path),
                ),
                across=tuple((frame.x(value), figure(value)) for value in _round_steps(most, most=width // 80)),
                up=tuple((frame.y(n), "10" + superscript(n)) for n in powers),
                marks=((x, y, "policy", "end" if x > width / 2 else "start"),),
                names=("ε", "δ"),
            )
        )
    return drawings


def _steps(frame: _Frame, course: Course, end: float) -> str:
    """Path of steps: level until the next point, and up to the end."""
    (at, share), *rest = course.points
    path = [f"M{frame.x(_seconds(at))} {frame.y(share)}"]
    for moment, value in rest:
        path.append(f"H{frame.x(_seconds(moment))}V{frame.y(value)}")
    return "".join([*path, f"H{frame.x(end)}"])


def _ahead(frame: _Frame, course: Course, end: float, spent_at: float) -> str:
    """Path of a straight line from now to the moment at which all is spent, cut at the frame."""
    share = course.points[-1][1]
    until = min(max(spent_at, end), frame.right)
    reached = share + (1 - share) * (until - end) / (spent_at - end) if spent_at > end else share
    return f"M{frame.x(end)} {frame.y(share)}L{frame.x(until)} {frame.y(reached)}"


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _times(begin: float, end: float, *, most: int) -> list[tuple[float, str]]:
    """Ticks at round intervals of time up to the end, with their texts."""
    step, form = next(((s, f) for s, f in _STEPS if (end - begin) / s.total_seconds() <= most), _STEPS[-1])
    seconds = step.total_seconds()
    first = math.ceil(begin / seconds) * seconds
    count = int((end - first) // seconds) + 1 if end >= first else 0
    moments = [first + n * seconds for n in range(count)]
    utc = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return [(moment, (utc + timedelta(seconds=moment)).strftime(form)) for moment in moments]


def _round_steps(high: float, *, most: int) -> list[float]:
    """Round numbers from 0 up to a number."""
    raw = high / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return [float(f"{n * step:.6g}") for n in range(int(high / step) + 1)]
