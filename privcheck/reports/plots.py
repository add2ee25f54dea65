"""The two plots of a report: the privacy curve with its claim and both bounds, and the learned value among others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from privcheck.reports.curve_names import CurveName, name_curves
from privcheck.reports.curves import DrawnCurve, Privacy, find_crossing, privacy
from privcheck.reports.drawing import CLAIM, INK, LOWER, MUTED, PAPER, RULE, UPPER, draw
from privcheck.reports.summary import PolicyValue, name_quantity, rank_policies
from privcheck.reports.values import Report
from privcheck.reports.wording import figure, strip_controls, superscript

WIDE, NARROW = 720, 350  # pixels; a page shows one of the two
_LEAST_DELTA = 1e-30


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """A plot in two widths, of which a page shows the one that fits.

    Attributes:
        caption: What it shows; also read to those who do not see it.
        wide: An `<svg>` element for laptops and paper.
        narrow: An `<svg>` element for phones.
    """

    caption: str
    wide: str
    narrow: str


def privacy_plot(report: Report) -> Plot | None:
    """Returns δ(ε) as claimed, bounded above by the accountant and below by the audit, or None without any curve."""
    data = privacy(report)
    floor = _floor(data)
    if floor is None:
        return None
    shown = [name for name, curve in (("the claim", data.claim), ("the accountant's upper bound", data.upper),
                                      ("the audit's lower bound", data.lower)) if curve is not None]  # fmt: skip
    caption = f"δ as a function of ε, δ on a logarithmic axis: {', '.join(shown)}."
    if data.claim and report.budget is not None and report.budget.guarantee.delta == 0:
        least = report.budget.guarantee.pure_epsilon
        where = "at no ε" if least is None else f"from ε = {figure(least, rounding='up')} on"
        caption += (
            f" The claim is of pure DP, judged where δ is 0; what is declared reaches that {where}. A curve below "
            "the claim's at smaller ε is no sign that the claim holds."
        )
    if data.upper and data.lower and find_crossing(data) is None:
        caption += " The strip between the two bounds is what the audit leaves open."
    caption += _say_pure(report)
    paint = partial(_paint_privacy, data=data, floor=floor)
    return both_widths(paint, name="privacy", height=(330, 310), title="Privacy curve", caption=caption)


def _say_pure(report: Report) -> str:
    """Returns what the curve does not show of a pure claim: δ = 0 has no place on a logarithmic axis."""
    audit, total = report.audit, report.budget.guarantee if report.budget else None
    if total is None or total.pure_epsilon is None or audit is None or audit.epsilon_claimed is None or audit.delta:
        return ""
    claimed = figure(audit.epsilon_claimed, rounding="up")
    text = (
        f" The claim is pure, ε = {claimed} at δ = 0, where a logarithmic axis has no place for it: there the releases "
        f"lose at most {figure(total.pure_epsilon, rounding='up')}."
    )
    if total.pure_epsilon > audit.epsilon_claimed:
        text += " A curve that is lower at every δ > 0 in the picture does not make such a claim true."
    return text


def value_plot(report: Report) -> Plot | None:
    """Returns the learned policy's value among those it is compared with, or None where nothing was learned."""
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
    """Returns the plot in both widths.

    Args:
        paint: Called with the axes and `wide`, whether it is the wide one.
        name: Prefix of every id; unique in its page.
        height: Of the wide and of the narrow drawing, in pixels.
        title: For readers who do not see it.
        caption: What it shows.
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
    """Returns the lowest δ that is shown: three decades below the report's δ, or what the curves reach."""
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
    """Returns a power of ten as a tick of a logarithmic axis."""
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
    """Returns a name that fits beside a drawing, without control characters."""
    clean = strip_controls(name)
    return clean if len(clean) <= length else clean[: length - 1] + "…"
