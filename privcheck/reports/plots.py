"""The plots of one algorithm as SVG in a page's colours: privacy curve, learned value, calibration, policy.

Figures are drawn in stand-in colours, which become CSS variables (a page is light or dark); pyplot and its global
state are not used; the same data give the same bytes.
"""

from __future__ import annotations

import io
import itertools
import math
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from xml.etree import ElementTree as ET

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from privcheck.pricing import LeastNoise
from privcheck.reports.summary import (
    DrawnCurve,
    PolicyValue,
    Privacy,
    PureBar,
    find_crossing,
    name_quantity,
    privacy,
    pure_bars,
    rank_policies,
)
from privcheck.reports.values import CalibratedNoise, Report
from privcheck.reports.wording import figure, strip_controls, superscript

# stand-in colour → CSS variable of templates/report.css
INK, MUTED, RULE, PAPER, UPPER, LOWER, CLAIM, BAD = (f"#0{n}0{n}0{n}" for n in range(1, 9))
_VARIABLES = {
    INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--paper)",
    UPPER: "var(--upper)", LOWER: "var(--lower)", CLAIM: "var(--claim)", BAD: "var(--bad)",
}  # fmt: skip

_POINTS = 72  # an SVG user unit is a point in Matplotlib; the page shows it as a pixel
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.family": "sans-serif", "font.size": 11.0,
    "axes.edgecolor": MUTED, "axes.labelcolor": INK, "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.linewidth": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.facecolor": "none", "figure.facecolor": "none", "legend.frameon": False,
    "lines.linewidth": 1.8, "hatch.linewidth": 0.5,
}  # fmt: skip
_LOCK = threading.Lock()  # Matplotlib's settings are one for the process
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def draw(paint: Callable[[Axes], None], *, name: str, width: int, height: int, title: str, description: str) -> str:
    """Draw an `<svg>` element with a title and a description.

    Args:
        paint: Function that draws on the axes.
        name: Prefix of every id in the element; unique in its page.
        width: Width in pixels at full size.
        height: Height in pixels at full size.
        title: Title for screen readers.
        description: Description for screen readers.
    """
    with _LOCK, style.context(["default", {**_SETTINGS, "svg.hashsalt": name}]), warnings.catch_warnings():
        # a glyph that Matplotlib's own font lacks is only measured there; the browser's fonts draw it
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure = Figure(figsize=(width / _POINTS, height / _POINTS), layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), name=name, title=title, description=description)


def _inline(source: str, *, name: str, title: str, description: str) -> str:
    root = ET.fromstring(source)  # noqa: S314 - Matplotlib's own output
    _strip(root)
    used = set()
    for element in root.iter():
        used.update(_REFERENCE.findall(" ".join(element.attrib.values())))
        used.update(value[1:] for key, value in element.attrib.items() if key == "href")
    for element in root.iter():
        _rename(element, name, used)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "role": "img", "aria-labelledby": f"{name}-title {name}-description"})
    for tag, text in (("desc", description), ("title", title)):
        child = ET.Element(tag, {"id": f"{name}-{'title' if tag == 'title' else 'description'}"})
        child.text = strip_controls(text)
        root.insert(0, child)
    return ET.tostring(root, encoding="unicode", short_empty_elements=False)


def _strip(element: ET.Element) -> None:
    """Remove namespaces, metadata and the style sheet, which would apply to the whole page."""
    element.tag = element.tag.partition("}")[2]
    element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for child in list(element):
        if child.tag.rpartition("}")[2] in {"metadata", "style"}:
            element.remove(child)
        else:
            _strip(child)
    if element.text and not element.text.strip():
        element.text = None
    element.tail = None


def _rename(element: ET.Element, name: str, used: set[str]) -> None:
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", f"{name}-{own}")
    for key, value in element.attrib.items():
        if key == "href":
            element.set(key, f"#{name}-{value[1:]}")
        elif key == "style":
            element.set(key, _style(value))
        elif key == "clip-path":
            element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
        elif key == "d":
            element.set(key, " ".join(value.split()))


def _style(text: str) -> str:
    kept = [part.strip() for part in text.split(";") if not part.strip().startswith("font-family")]
    joined = "; ".join(part for part in kept if part)
    for colour, variable in _VARIABLES.items():
        joined = joined.replace(colour, variable)
    return joined


_RIGHT: Final = 0.3  # of the height, from above: where the outermost curve is named
_LEFT: Final = (0.7, 0.84)  # where the others are, below most reports' line at δ
_GAP: Final = 0.015  # of the width, between a curve and its name
_ROOM: Final = 0.3  # of the width: less of it left of a curve is too little for a name


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveName:
    """A falling curve and its name.

    Attributes:
        text: The name.
        colour: Colour of the curve and the name.
        x: x of the curve's points, ascending.
        y: y of the same points, positive and nonincreasing.
    """

    text: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]


def name_curves(axes: Axes, curves: Sequence[CurveName], *, size: float) -> None:
    """Write each curve's name beside it.

    Args:
        axes: The axes, with limits set and a logarithmic y axis.
        curves: Its curves; the outermost at half height is named on its right.
        size: Font size.
    """
    left, right = axes.get_xlim()
    wide = right - left
    style: dict[str, Any] = {"fontsize": size}
    ordered = sorted(curves, key=lambda curve: _cross(curve, _level(axes, 0.5)), reverse=True)
    levels = iter(_LEFT)
    for place, curve in enumerate(ordered):
        outermost = place == 0
        level = _level(axes, _RIGHT if outermost else next(levels, _LEFT[-1]))
        level = min(level, max(curve.y) / 3)
        x = _cross(curve, level)
        inner = min((_cross(other, level) for other in ordered[place:]), default=x)
        if x >= right:  # flat: below its end
            end = max(axes.get_ylim()[0], _height(curve, right))
            axes.text(right - wide * _GAP, end / 1.6, curve.text, color=curve.colour, ha="right", va="top", **style)
        elif outermost or inner - left < _ROOM * wide:
            axes.text(x + wide * _GAP, level, curve.text, color=curve.colour, ha="left", va="bottom", **style)
        else:
            stroke: dict[str, Any] = {"color": curve.colour, "linewidth": 0.8, "linestyle": (0, (1, 2))}
            axes.plot([inner - wide * _GAP, x], [level, level], **stroke)
            axes.text(
                inner - wide * 1.3 * _GAP, level, curve.text, color=curve.colour, ha="right", va="center", **style
            )


def _level(axes: Axes, share: float) -> float:
    """The y at a share of the axis height, from the top."""
    low, high = (math.log(limit) for limit in axes.get_ylim())
    return math.exp(high - share * (high - low))


def _cross(curve: CurveName, level: float) -> float:
    """The least x at which the curve is at or below a level; ∞ if it is above it everywhere."""
    if curve.y[0] <= level:
        return curve.x[0]
    for (x0, y0), (x1, y1) in itertools.pairwise(zip(curve.x, curve.y, strict=True)):
        if y1 <= level:
            share = (math.log(y0) - math.log(level)) / (math.log(y0) - math.log(y1))
            return x0 + share * (x1 - x0)
    return math.inf


def _height(curve: CurveName, x: float) -> float:
    """The curve's y at its last point that is not right of x."""
    return next((y for at, y in zip(reversed(curve.x), reversed(curve.y), strict=True) if at <= x), curve.y[0])


WIDE, NARROW = 720, 350  # pixels; a page shows one of the two
_LEAST_DELTA = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot in two widths; a page shows the one that fits.

    Attributes:
        caption: Description of the plot, also for screen readers.
        wide: An `<svg>` element for laptops and paper.
        narrow: An `<svg>` element for phones.
    """

    caption: str
    wide: str
    narrow: str


def privacy_plot(report: Report) -> Plot | None:
    """Plot of what is claimed, charged and measured; None without any of it.

    Of a pure claim it shows ε at δ = 0, which the logarithmic axis of a curve δ(ε) cannot: there the claim lies above
    any finite loss.
    """
    bars = pure_bars(report)
    if bars:
        return _pure_plot(bars)
    data = privacy(report)
    floor = _floor(data)
    if floor is None:
        return None
    shown = [name for name, curve in (("the claim", data.claim), ("the accountant's upper bound", data.upper),
                                      ("the audit's lower bound", data.lower)) if curve is not None]  # fmt: skip
    caption = f"δ as a function of ε, δ on a logarithmic axis: {', '.join(shown)}."
    if data.upper and data.lower and find_crossing(data) is None:
        caption += " The audit leaves the strip between the two bounds open."
    paint = partial(_paint_privacy, data=data, floor=floor)
    return both_widths(paint, name="privacy", height=(330, 310), title="Privacy curve", caption=caption)


def _pure_plot(bars: Sequence[PureBar]) -> Plot:
    claim, *others = bars
    told = [f"{bar.text} {bar.number}" for bar in bars]
    above = [bar.text.partition(":")[0] for bar in others if bar.epsilon > claim.epsilon]
    caption = f"ε at δ = 0, where the claim is made: {'; '.join(told)}."
    caption += f" Above the claim: {', '.join(above)}." if above else " Nothing is above the claim."
    heights = (56 + 34 * len(bars), 52 + 46 * len(bars))
    return both_widths(
        partial(_paint_pure, bars=bars), name="privacy", height=heights, title="Claimed and charged ε", caption=caption
    )


def _paint_pure(axes: Axes, *, bars: Sequence[PureBar], wide: bool) -> None:
    finite = max((bar.epsilon for bar in bars if math.isfinite(bar.epsilon)), default=0.0) or 1.0
    colours = {"claim": CLAIM, "upper": UPPER, "lower": LOWER}
    for row, bar in enumerate(bars):
        length = bar.epsilon if math.isfinite(bar.epsilon) else 1.3 * finite
        axes.barh(row, length, height=0.5, color=colours[bar.side], alpha=1.0 if math.isfinite(bar.epsilon) else 0.5)
        axes.text(length + 0.01 * finite, row, bar.number, va="center", fontsize=11 if wide else 10)
    axes.axvline(bars[0].epsilon, color=CLAIM, linestyle=(0, (5, 3)), linewidth=1.2)
    axes.set_xlim(0, 1.42 * finite)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_yticks(range(len(bars)), [bar.text for bar in bars])
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.set_xlabel("ε at δ = 0")


def value_plot(report: Report) -> Plot | None:
    """Plot of the learned policy's value with its references, or None if there are fewer than two values."""
    policies = rank_policies(report)
    if len(policies) < 2:
        return None
    quantity = name_quantity(report)
    values = "; ".join(f"{item.name} {figure(item.value)}" for item in policies)
    caption = "Regret of each policy" if quantity == "regret" else "True expected return of each policy"
    caption += "; the bar is one standard deviation over replicates each way."
    heights = (64 + 30 * len(policies), 60 + 42 * len(policies))
    paint = partial(_paint_values, policies=policies, quantity=quantity)
    return both_widths(paint, name="value", height=heights, title=f"Learned {quantity}: {values}", caption=caption)


def both_widths(paint: Callable[..., None], *, name: str, height: tuple[int, int], title: str, caption: str) -> Plot:
    """Draw a plot in both widths.

    Args:
        paint: Called with the axes and `wide`, whether this is the wide drawing.
        name: Prefix of every id; unique in its page.
        height: Heights of the wide and the narrow drawing, in pixels.
        title: Title for screen readers.
        caption: Description of the plot.
    """
    wide, narrow = (
        draw(
            partial(paint, wide=width == WIDE),
            name=f"{name}-{width}", width=width, height=tall, title=title, description=caption,
        )
        for width, tall in zip((WIDE, NARROW), height, strict=True)
    )  # fmt: skip
    return Plot(caption=caption, wide=wide, narrow=narrow)


def _floor(data: Privacy) -> float | None:
    """The lowest shown δ: three decades below the report's δ, or the lowest δ of the curves; None without a curve."""
    positive = [y for curve in data.curves for y in curve.delta if y > _LEAST_DELTA]
    if not positive:
        return None
    least = min(data.delta / 1000, max(positive) / 10) if data.delta else max(min(positive), 1e-12)
    return 10.0 ** math.floor(math.log10(max(least, _LEAST_DELTA)) + 1e-9)


def _paint_privacy(axes: Axes, *, data: Privacy, floor: float, wide: bool) -> None:
    right = max(
        x for curve in data.curves for x, y in zip(curve.epsilon, curve.delta, strict=True) if y >= floor or not x
    )
    left = min(curve.epsilon[0] for curve in data.curves)
    right = right if right > left else left + 1
    axes.set_yscale("log")
    axes.set_ylim(floor, 2.0)
    axes.set_xlim(left, right * (1.0 if wide else 1.02))
    if data.delta and data.delta >= floor:
        axes.axhline(data.delta, color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
        where = (0.012, data.delta * 1.25)
        axes.text(*where, f"δ = {figure(data.delta)}", transform=axes.get_yaxis_transform(), color=MUTED, fontsize=10)
    if data.upper and data.lower:
        axes.fill_between(*_strip_between(data.lower, data.upper, floor), color=UPPER, alpha=0.12, linewidth=0)
    names = []
    for curve, colour, stroke, text in (
        (data.upper, UPPER, "solid", "accountant: at most"),
        (data.claim, CLAIM, (0, (5, 3)), "claimed"),
        (data.lower, LOWER, "solid", "audit: at least"),
    ):
        if curve is not None:
            heights = _lift(curve.delta, floor)
            axes.plot(curve.epsilon, heights, color=colour, linestyle=stroke)
            names.append(CurveName(text=text, colour=colour, x=curve.epsilon, y=heights))
    for epsilon, colour in ((data.epsilon_upper, UPPER), (data.epsilon_lower, LOWER)):
        if epsilon is not None and math.isfinite(epsilon) and data.delta:
            axes.plot([epsilon], [data.delta], "o", color=colour, markersize=6, markeredgecolor=PAPER, zorder=5)
    lowest = round(math.log10(floor))
    step = max(1, math.ceil(-lowest / 8))
    axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in range(0, lowest - 1, -step)]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(power))
    axes.xaxis.set_major_locator(MaxNLocator(8 if wide else 5, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("ε")
    axes.set_ylabel("δ", rotation=0, labelpad=10)
    name_curves(axes, names, size=11 if wide else 10)


def power(value: float, _: object) -> str:
    """A power of ten as the tick label of a logarithmic axis."""
    exponent = round(math.log10(value))
    return "1" if not exponent else "10" + superscript(exponent)


def _lift(delta: Sequence[float], floor: float) -> list[float]:
    # a logarithmic axis has no 0: below the axis, where the curve leaves the picture
    return [max(y, floor / 100) for y in delta]


def _strip_between(lower: DrawnCurve, upper: DrawnCurve, floor: float) -> tuple[list[float], list[float], list[float]]:
    grid = sorted(
        x for x in {*lower.epsilon, *upper.epsilon}
        if max(lower.epsilon[0], upper.epsilon[0]) <= x <= min(lower.epsilon[-1], upper.epsilon[-1])
    )  # fmt: skip
    below = [_at(lower, x, floor) for x in grid]
    above = [max(_at(upper, x, floor), low) for x, low in zip(grid, below, strict=True)]
    return grid, below, above


def _at(curve: DrawnCurve, x: float, floor: float) -> float:
    points = list(zip(curve.epsilon, _lift(curve.delta, floor), strict=True))
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        if x0 <= x <= x1:
            share = (x - x0) / (x1 - x0) if x1 > x0 else 1.0
            return math.exp(math.log(y0) + share * (math.log(y1) - math.log(y0)))
    return floor / 100


def _paint_values(axes: Axes, *, policies: Sequence[PolicyValue], quantity: str, wide: bool) -> None:
    looks = {"private": (UPPER, UPPER, 9), "twin": (PAPER, UPPER, 8), "reference": (MUTED, MUTED, 6)}
    reach = [item.value + sign * (item.std or 0) for item in policies for sign in (-1, 1)]
    pad = (max(reach) - min(reach)) * 0.06 or abs(max(reach)) * 0.06 or 1.0
    axes.set_xlim(min(reach) - pad, max(reach) + pad)
    axes.set_ylim(len(policies) - 0.5, -0.6 if wide else -0.8)
    for item in policies:
        if item.role == "private":
            axes.axvline(item.value, color=UPPER, linewidth=0.8, linestyle=(0, (1, 2)))
    across = axes.get_yaxis_transform()  # x in widths of the axes, y in rows
    for row, item in enumerate(policies):
        face, edge, size = looks[item.role]
        axes.axhline(row, color=RULE, linewidth=0.8, zorder=0)
        if item.std:
            axes.plot([item.value - item.std, item.value + item.std], [row, row], color=edge, linewidth=2.2)
        axes.plot([item.value], [row], "o", color=edge, markerfacecolor=face, markersize=size, markeredgewidth=1.6)
        name, weight = shorten(item.name, 34 if wide else 40), "bold" if item.role == "private" else "normal"
        style: dict[str, Any] = {"transform": across, "color": INK, "weight": weight, "fontsize": 11}
        if wide:
            axes.text(-0.02, row, name, ha="right", va="center", **style)
        else:
            axes.text(0.0, row - 0.2, name, va="bottom", **style)
        axes.text(1.02, row, figure(item.value), va="center", **style)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.set_xlabel("regret" if quantity == "regret" else "expected return")


def shorten(name: str, length: int) -> str:
    """Shorten a name to fit beside a drawing, and remove control characters."""
    clean = strip_controls(name)
    return clean if len(clean) <= length else clean[: length - 1] + "…"


def noise_plot(result: CalibratedNoise | None) -> Plot | None:
    """Plot of the standard deviations as bars; None if no noise is needed."""
    rows = () if result is None else result.releases
    if result is None or not rows or max(max(row.published_std, row.needed_std) for row in rows) <= 0:
        return None
    target = f"({figure(result.target.epsilon)}, {figure(result.target.delta)})-DP"
    said = "; ".join(f"{row.name} {figure(row.needed_std)} of {figure(row.published_std)}" for row in rows)
    caption = f"Standard deviation of each release's noise: published, and the least for {target}."
    heights = (70 + 44 * len(rows), 66 + 56 * len(rows))
    paint = partial(_paint, rows=rows)
    return both_widths(paint, name="noise", height=heights, title=f"Least noise: {said}", caption=caption)


def _paint(axes: Axes, *, rows: Sequence[LeastNoise], wide: bool) -> None:
    axes.set_ylim(len(rows) - 0.4, -0.7)
    for place, row in enumerate(rows):
        for shift, std, colour in ((-0.16, row.published_std, CLAIM), (0.16, row.needed_std, UPPER)):
            axes.barh(place + shift, std, height=0.28, color=colour)
            axes.text(std, place + shift, f" {figure(std)}", va="center", color=INK, fontsize=10)
    most = max(max(row.published_std, row.needed_std) for row in rows)
    axes.set_xlim(0, most * (1.15 if wide else 1.3))
    axes.set_yticks(range(len(rows)), labels=[shorten(row.name, 34 if wide else 16) for row in rows])
    axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.grid(visible=True, axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("standard deviation")
    for colour, text in ((CLAIM, "published"), (UPPER, "least")):
        axes.barh(0, 0, color=colour, label=text)
    axes.legend(loc="lower right", fontsize=10, ncols=2, bbox_to_anchor=(1, 1))


_MOST_LABELS: Final = 40  # states named at the axis
_MOST_IN_LEGEND: Final = 24  # actions


def draw_policy(
    probabilities: NDArray[np.float64], states: Sequence[str], actions: Sequence[str], *, title: str
) -> Figure:
    """Draw the figure.

    Args:
        probabilities: Action probabilities, shape (H, S, A).
        states: Names of the states.
        actions: Names of the actions.
        title: Name of the algorithm that learned the policy.
    """
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    steps, count, _ = probabilities.shape
    likeliest = probabilities.argmax(axis=2).T  # (S, H)
    chance = probabilities.max(axis=2).T[..., None]
    palette = colormaps["tab10" if len(actions) <= 10 else "tab20" if len(actions) <= 20 else "turbo"]
    places = np.arange(len(actions)) if len(actions) <= 20 else np.linspace(0, 1, len(actions))
    colours = np.array([palette(place)[:3] for place in places])
    image = colours[likeliest] * chance + (1 - chance)  # towards white where other actions are as likely
    figure = Figure(figsize=(min(4 + 0.3 * steps, 12), min(2 + 0.22 * count, 12)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.imshow(image, aspect="auto", interpolation="nearest", origin="upper")
    axes.set(title=f"{title}: likeliest action", xlabel="step", ylabel="state")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if count <= _MOST_LABELS:
        axes.set_yticks(range(count), labels=[str(state) for state in states])
    shown = sorted(set(likeliest.ravel().tolist()))[:_MOST_IN_LEGEND]
    patches = [Patch(facecolor=colours[action], label=actions[action]) for action in shown]
    axes.legend(handles=patches, title="action", loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    return figure
