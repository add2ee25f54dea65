"""One audit on a page: its question, neighbours, result and plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from privcheck.reports import summary, tables
from privcheck.reports.audit_wording import sentence
from privcheck.reports.plots import BAD, CLAIM, INK, LOWER, MUTED, PAPER, RULE, UPPER, Plot, both_widths, power, shorten
from privcheck.reports.values import Audited, Report
from privcheck.reports.wording import as_sentence, capitalise, figure, percent, spell_out, words
from privcheck.runtime.audit_pictures import Bar, History, ShownPair, TradeOff

_CORNER = 0.04  # a curve whose two errors are both below this somewhere is drawn on logarithmic axes
_LEAST = 1e-6  # where those begin at the earliest
_SMALL_GAP = 0.04  # below which a crossing is enlarged
_MOST_BARS = 24
_EDGE = 1e-9  # by which curves may touch
_DASHED, _DOTTED = (0, (5, 3)), (0, (1, 2))

Axis = Sequence[float]


def _below(data: TradeOff, curve: Axis | None) -> tuple[float, float] | None:
    """Where the band lies farthest below a curve, as (type-I error, gap), or None if it is nowhere below it.

    Gaps are weighted to avoid the ends, where steep curves have large gaps that cannot be seen.
    """
    gaps = [
        (allowed - high, x)
        for x, high, allowed in zip(data.grid, data.at_most, curve or (), strict=bool(curve))
        if allowed - high > _EDGE
    ]
    gap, where = max(gaps, key=lambda one: one[0] * math.sqrt(one[1] * (1 - one[1])), default=(0.0, 0.0))
    return (where, gap) if gaps else None


def _is_logarithmic(data: TradeOff) -> bool:
    """Whether the allowed curves are so close to the corner that linear axes would hide them."""
    return min(_corner(data, data.claim), _corner(data, data.accountant)) < _CORNER


def _least(data: TradeOff) -> float:
    """Lower limit of logarithmic axes: below every curve's corner, and at least 1e-6."""
    corners = (_corner(data, curve) for curve in (data.claim, data.accountant, data.at_most))
    return max(_LEAST, 10.0 ** math.floor(math.log10(max(min(corners), _LEAST)) - 1))


def _corner(data: TradeOff, curve: Axis | None) -> float:
    """The minimum over tests of the larger of the two errors; 1 without a curve."""
    return min(map(max, zip(data.grid, curve or (), strict=bool(curve))), default=1.0)


def _is_whole(data: TradeOff) -> bool:
    """Whether all curves are finite and as long as their grids: the report may have been edited."""
    curves = (data.at_least, data.at_most, data.claim, data.accountant)
    fits = len(data.type_one) == len(data.type_two) and len(data.grid) > 1 and data.at_least and data.at_most
    return (
        bool(fits)
        and all(
            not curve or (len(curve) == len(data.grid) and all(map(math.isfinite, curve)))
            for curve in (data.grid, *curves)
        )
        and all(map(math.isfinite, (*data.type_one, *data.type_two)))
    )


def trade_off_plot(view: Audited, *, name: str) -> Plot | None:
    """Plot of both kinds of error at every threshold, with the curves of claim and accountant; None without data.

    Args:
        view: One audit.
        name: Prefix of the drawing's ids.
    """
    data = view.trade_off
    if data is None or not _is_whole(data):
        return None
    runs = " and ".join(figure(number) for number in data.runs)
    caption = (
        "f-DP trade-off curve of the score: the least type-II error (the test says D for a run on D′) at each type-I "
        f"error (it says D′ for a run on D). Band: contains the true curve of the tests at {_count(data.type_one)}, "
        f"fixed in advance, at every point at once with {percent(data.confidence, rounding='down')} confidence, by "
        f"exact binomial intervals from {runs} runs on D and on D′. A mechanism that keeps its claim has no test below "
        "the claim's curve; other tests might lie lower than these. The verdict does not depend on this picture."
    )
    crossed = [f"{who} at a type-I error of {figure(where[0], digits=2)}" for who, curve in
               (("the claim", data.claim), ("the accountant's curve", data.accountant))
               if (where := _below(data, curve)) is not None]  # fmt: skip
    if crossed:
        below = " and below ".join(crossed)
        caption += f" The whole band lies below {below}: this alone refutes it at the band's confidence."
    if _is_logarithmic(data):
        caption += " Both axes are logarithmic."
    paint = partial(_paint_trade_off, data=data)
    title = "Trade-off curve" + (f", claim {spell_out(data.claim_words)}" if data.claim else "")
    return both_widths(paint, name=f"{name}-trade-off", height=(400, 350), title=title, caption=caption)


def _count(thresholds: Sequence[float]) -> str:
    return f"{len(thresholds)} threshold{'' if len(thresholds) == 1 else 's'}"


def history_plot(view: Audited, *, name: str) -> Plot | None:
    """Plot of the lower bound against the number of trials, with its limit, or None without a history.

    Args:
        view: One audit.
        name: Prefix of the drawing's ids.
    """
    data = view.history
    if data is None or not data.trials or len(data.trials) != len(_finite(data.epsilon_lower)):
        return None
    level = percent(view.confidence, rounding="down")
    together = (
        "All points hold together: the bound is valid at any time."
        if data.anytime
        else "Each point uses the runs up to it and is valid by itself, not jointly with the others; the last point is "
        "the bound of the audit."
    )
    caption = f"Lower bound on ε against the number of runs under each neighbour, at {level} confidence. {together}"
    if _finite(data.reachable):
        seeing = " of all releases" if view.view == "policy" else ""
        caption += (
            f" Grey: the bound that the best test{seeing} is expected to certify with as many runs if the declared law "
            f"is exactly true; single audits scatter around it."
        )
    paint = partial(_paint_history, view=view, data=data)
    title = f"Lower bound on ε against trials, at the end {figure(data.epsilon_lower[-1], rounding='down')}"
    return both_widths(paint, name=f"{name}-history", height=(330, 310), title=title, caption=caption)


def _finite(numbers: Axis) -> list[float]:
    return [number for number in numbers if math.isfinite(number)]


def bars_plot(view: Audited, *, name: str) -> Plot | None:
    """Plot of one measured ratio per release, or None if there are none.

    Args:
        view: One audit.
        name: Prefix of the drawing's ids.
    """
    part = view.bars
    drawn = [] if part is None else [(bar, bar.ratio) for bar in part.bars if bar.ratio is not None]
    if part is None or not drawn:
        return None
    if part.one_sided and len({ratio for _, ratio in drawn}) == 1 and not any(bar.violated for bar, _ in drawn):
        return None  # bars of one length; the figures below say it
    drawn.sort(key=lambda one: (not one[0].violated, -abs(math.log(max(one[1], 1e-9)))))
    kept = drawn[:_MOST_BARS]
    if part.caption:
        caption = part.caption
    elif part.one_sided:
        caption = (
            "Distance by which one user moved each release, over the charged sensitivity; above 1 it exceeds the "
            "charge."
        )
    else:
        level = percent(view.confidence, rounding="down")
        caption = (
            "The scale at which the channel drew each release's noise, over the declared one, with intervals that hold "
            f"together with all other tests of this audit at {level} confidence. An interval without 1 is a violation."
        )
    if len(drawn) > len(kept):
        caption += f" Shown: the {len(kept)} of {len(drawn)} furthest from 1."
    for bar in part.bars:
        if bar.ratio is None:
            caption += f" Not drawn: {bar.name}, {bar.words}."
    heights = (70 + 34 * len(kept), 66 + 46 * len(kept))
    paint = partial(_paint_bars, bars=kept, quantity=part.quantity, one_sided=part.one_sided)
    return both_widths(paint, name=f"{name}-bars", height=heights, title=part.quantity, caption=caption)


def _paint_trade_off(axes: Axes, *, data: TradeOff, wide: bool) -> None:
    logarithmic, least = _is_logarithmic(data), _least(data)
    floor = least / 10 if logarithmic else 0.0  # below the axis, where a curve leaves the picture

    def draw(x: Axis, y: Axis, **how: Any) -> None:
        axes.plot([max(a, floor) for a in x], [max(b, floor) for b in y], **how)

    for scale in (axes.set_xscale, axes.set_yscale):
        scale("log" if logarithmic else "linear")
    for limits in (axes.set_xlim, axes.set_ylim):
        limits(least if logarithmic else -0.005, 1.3 if logarithmic else 1.005)
    draw(data.grid, [1 - x for x in data.grid], color=MUTED, linewidth=0.9, linestyle=_DOTTED, label="nothing learned")
    low, high = ([max(y, floor) for y in curve] for curve in (data.at_least, data.at_most))
    axes.fill_between([max(x, floor) for x in data.grid], low, high, color=LOWER, alpha=0.3, linewidth=0)
    draw(data.grid, data.at_most, color=LOWER, linewidth=0.8)
    draw(data.grid, data.at_least, color=LOWER, linewidth=0.8)
    if data.accountant:
        draw(data.grid, data.accountant, color=UPPER, label="accountant: no test below" if wide else "accountant")
    if data.claim:
        text = "claimed: no test below" if wide else "claimed"
        draw(data.grid, data.claim, color=CLAIM, linestyle=_DASHED, label=text)
    at = [p for p in zip(data.type_one, data.type_two, strict=True) if not logarithmic or min(p) > 0]
    if at:
        axes.plot(*zip(*at, strict=True), "o", color=LOWER, markersize=2.6, label="measured, with its band")
    _mark_crossing(axes, data, wide=wide)
    _dress(axes)
    if logarithmic:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator())
            axis.set_minor_locator(NullLocator())
            axis.set_major_formatter(FuncFormatter(power))
    axes.set_xlabel("type-I error")
    axes.set_ylabel("type-II error")
    _legend(axes, "best" if logarithmic else "upper right", wide=wide)


def _mark_crossing(axes: Axes, data: TradeOff, *, wide: bool) -> None:
    """Mark the gap by which the band lies below the claim or accountant, enlarged if it is small."""
    below = _below(data, data.claim) or _below(data, data.accountant)
    if below is None:
        return
    x, gap = below
    bottom = data.at_most[data.grid.index(x)]
    bottom = max(bottom, _least(data)) if _is_logarithmic(data) else bottom
    small = gap < _SMALL_GAP and not _is_logarithmic(data)
    where = _enlarge(axes, data, x, wide=wide) if small else axes
    arrow = {"arrowstyle": "<->", "color": BAD, "shrinkA": 0, "shrinkB": 0}
    where.annotate("", xy=(x, bottom), xytext=(x, bottom + gap), arrowprops=arrow)
    where.annotate(
        "refuted", xy=(x, bottom + gap / 2), xytext=(7, 0), textcoords="offset points", color=BAD, fontsize=11,
        weight="bold", va="center",
    )  # fmt: skip


def _enlarge(axes: Axes, data: TradeOff, x: float, *, wide: bool) -> Axes:
    """Draw a window on the curves near one of their ends, in the empty corner of the plot."""
    inner = axes.inset_axes((0.62, 0.3, 0.36, 0.36) if wide else (0.5, 0.34, 0.46, 0.3))
    width = 2 * min(x, 1 - x)
    left = 0.0 if x < 0.5 else 1 - width
    inside = [k for k, at in enumerate(data.grid) if left <= at <= left + width]
    values = [curve[k] for curve in (data.at_least, data.claim or data.accountant or ()) for k in inside]
    inner.fill_between(data.grid, data.at_least, data.at_most, color=LOWER, alpha=0.3, linewidth=0)
    inner.plot(data.grid, data.at_most, color=LOWER, linewidth=0.8)
    inner.plot(data.grid, data.at_least, color=LOWER, linewidth=0.8)
    if data.accountant:
        inner.plot(data.grid, data.accountant, color=UPPER)
    if data.claim:
        inner.plot(data.grid, data.claim, color=CLAIM, linestyle=_DASHED)
    inner.plot(data.type_one, data.type_two, "o", color=LOWER, markersize=2.6)
    inner.set_xlim(left, left + width)
    inner.set_ylim(min(values), max(values))
    for axis in (inner.xaxis, inner.yaxis):
        axis.set_major_locator(MaxNLocator(3))
        axis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value), digits=3)))
    inner.tick_params(labelsize=9)
    inner.patch.set(facecolor=PAPER, alpha=1)
    inner.set_title("enlarged", fontsize=10, color=MUTED, pad=4)
    low, high = inner.get_ylim()
    axes.indicate_inset((left, low, width, high - low), edgecolor=MUTED, alpha=1)
    return inner


def _paint_history(axes: Axes, *, view: Audited, data: History, wide: bool) -> None:
    trials, lower = data.trials, data.epsilon_lower
    limit_at, limit = data.reachable_trials, _finite(data.reachable)
    claimed, upper = view.epsilon_claimed, view.epsilon_upper
    axes.set_xscale("log")
    if limit_at and len(limit_at) == len(limit):
        axes.plot(limit_at, limit, color=MUTED, label="the best test" if wide else "best test")
    axes.plot(trials, lower, "o-", color=LOWER, markersize=3.5, label="audit: at least" if wide else "at least")
    axes.plot(trials[-1:], lower[-1:], "o", color=LOWER, markersize=7, markeredgecolor=PAPER, zorder=5)
    for value, colour, style, text in (
        (upper, UPPER, "solid", "accountant: at most" if wide else "at most"),
        (claimed, CLAIM, _DASHED, "claimed"),
    ):
        if value is not None and math.isfinite(value):
            axes.axhline(value, color=colour, linestyle=style, label=f"{text}, ε = {figure(value, rounding='up')}")
    top = max([*lower, *limit, *(v for v in (claimed, upper) if v is not None and math.isfinite(v))])
    axes.set_ylim(-0.02 * (top or 1.0), (top or 1.0) * 1.08)
    left = min([*limit_at[:1], trials[0]])
    axes.set_xlim(max(left, 1) * 0.9, max(trials[-1], left * 2) * 1.15)
    _dress(axes)
    decades = math.log10(axes.get_xlim()[1] / axes.get_xlim()[0])
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(power if decades > 2 else lambda value, _: figure(round(value))))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.set_xlabel("runs under each neighbour")
    axes.set_ylabel("ε", rotation=0, labelpad=10)
    _legend(axes, "best", wide=wide)


def _paint_bars(axes: Axes, *, bars: Sequence[tuple[Bar, float]], quantity: str, one_sided: bool, wide: bool) -> None:
    ends = [end for bar, _ in bars for end in (bar.ratio, bar.at_least, bar.at_most)]
    reach = [end for end in ends if end is not None] + [1.0]
    pad = max(0.06 * (max(reach) - min(reach)), 0.02)
    axes.set_xlim(0.0 if one_sided else min(reach) - pad, max(reach) + pad)
    axes.set_ylim(len(bars) - 0.4, -0.6 if wide else -0.8)
    axes.axvline(1.0, color=CLAIM, linestyle=_DASHED, linewidth=1.4)
    across = axes.get_yaxis_transform()
    for row, (bar, ratio) in enumerate(bars):
        colour = BAD if bar.violated else LOWER
        if one_sided:
            axes.barh(row, ratio, height=0.34, color=colour, linewidth=0)
        else:
            axes.axhline(row, color=RULE, linewidth=0.8, zorder=0)
            if bar.at_least is not None and bar.at_most is not None:
                axes.plot([bar.at_least, bar.at_most], [row, row], color=colour, linewidth=2.2)
            axes.plot([ratio], [row], "o", color=colour, markersize=7)
        text: dict[str, Any] = {"transform": across, "color": INK, "fontsize": 11}
        name, value = shorten(bar.name, 34 if wide else 40), figure(ratio)
        weight = "bold" if bar.violated else "normal"
        if wide:
            axes.text(-0.02, row, name, ha="right", va="center", weight=weight, **text)
        else:
            axes.text(0.0, row - 0.24, name, va="bottom", weight=weight, **text)
        if one_sided and wide and bar.words:
            value += f"  ({bar.words})"
        axes.text(1.02, row, value, va="center", weight=weight, **text)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
    axes.set_xlabel(quantity)


def _dress(axes: Axes) -> None:
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)


def _legend(axes: Axes, where: Literal["upper right", "best"], *, wide: bool) -> None:
    axes.legend(
        loc=where, fontsize=11 if wide else 10, handlelength=2.2, frameon=True, facecolor=PAPER, edgecolor="none",
        framealpha=0.85,
    )  # fmt: skip


_ELSEWHERE = ("meaning", "plainest_pair", "trials_per_second", "runs")  # in words, the table of audits, or JSON alone


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One audit on a page.

    Attributes:
        name: Name of the view.
        question: Question of the view.
        sentence: Its result; empty if the page's verdict says the same.
        method: The statistical test.
        witness: The neighbours in words.
        pair: The neighbours side by side, or None.
        plots: Its plots.
        meaning: Meaning of the result; empty if not stated.
        evidence: Further values.
        open: Whether it is unfolded at first: it found a violation, or is the only audit.
    """

    name: str
    question: str
    sentence: str
    method: str
    witness: str
    pair: tables.ReportTable | None
    plots: tuple[Plot, ...]
    meaning: str
    evidence: tuple[tuple[str, str], ...]
    open: bool


def audit_views(report: Report) -> list[View]:
    """The audits of a report, in its order."""
    views = summary.audit_views(report)
    alone = len(views) == 1 and report.verify is None  # the verdict says it
    return [
        View(
            name=name,
            question=view.asks,
            sentence="" if alone else sentence(name, view),
            method=capitalise(view.method),
            witness=_witness(name, view),
            pair=None if view.pair is None else side_by_side(view.pair),
            plots=tuple(
                plot
                for plot in (draw(view, name=f"audit-{number}") for draw in (trade_off_plot, history_plot, bars_plot))
                if plot is not None
            ),
            meaning=as_sentence(words(view.evidence, "meaning")),
            evidence=tables.facts(view.evidence, leave=_ELSEWHERE),
            open=alone or view.verdict == "violation",
        )
        for number, (name, view) in enumerate(views, start=1)
    ]


def _witness(name: str, view: Audited) -> str:
    """The neighbours in words, in the simplest form found."""
    if name == "noise":  # its witness is the tests that fail
        return ""
    return capitalise(words(view.evidence, "plainest_pair") or view.witness)


def side_by_side(pair: ShownPair) -> tables.ReportTable | None:
    """Table of the two neighbours' data side by side, with differences marked; None if there are no rows."""
    columns, labels = pair.columns, pair.labels
    first, second = (_side(rows, len(labels), len(columns)) for rows in (pair.first, pair.second))
    apart = [any(one[k] != other[k] for one, other in zip(first, second, strict=True)) for k in range(len(columns))]
    differing = [k for k, differs in enumerate(apart) if differs]
    same = [k for k, differs in enumerate(apart) if not differs]
    body: list[list[str | tables.Cell]] = []
    for label, one, other in zip(labels, first, second, strict=True):
        differ = [one[k] != other[k] for k in differing]
        body.append([
            label,
            *(
                tables.Cell(text=spell_out(side[k]), tone="mark" if differs and side[k] else "plain")
                for side in (one, other)
                for k, differs in zip(differing, differ, strict=True)
            ),
            *(spell_out(one[k]) for k in same),
            tables.Cell(text="≠" if any(differ) else "", tone="mark" if any(differ) else "plain"),
        ])  # fmt: skip
    names = [spell_out(column) for column in columns]
    heads = [f"{dataset}: {names[k]}" for dataset in ("D", "D′") for k in differing]
    heads += [f"both: {names[k]}" for k in same]
    caption = f"{pair.title} Differences are coloured and marked by ≠. {pair.note}".strip()
    return tables.table(caption, (pair.row, *heads, "differs"), body)


def _side(rows: Sequence[Sequence[str]] | None, number: int, width: int) -> list[list[str]]:
    """The cells of one neighbour; "absent" for an absent user."""
    if rows is None or len(rows) != number:
        return [["absent"] * width for _ in range(number)]
    return [([*row] + [""] * width)[:width] for row in rows]
