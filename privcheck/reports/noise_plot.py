"""The plot of a calibration: the least noise for a guarantee beside the published one, release by release."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from privcheck.reports.drawing import CLAIM, INK, RULE, UPPER
from privcheck.reports.plots import Plot, both_widths, shorten
from privcheck.reports.values import CalibratedNoise, NeededNoise
from privcheck.reports.wording import figure


def noise_plot(result: CalibratedNoise | None) -> Plot | None:
    """Returns the standard deviations as bars; None where no noise is needed."""
    rows = () if result is None else result.releases
    if result is None or not rows or max(max(row.published_std, row.needed_std) for row in rows) <= 0:
        return None
    target = f"({figure(result.target.epsilon)}, {figure(result.target.delta)})-DP"
    said = "; ".join(f"{row.name} {figure(row.needed_std)} of {figure(row.published_std)}" for row in rows)
    caption = f"Standard deviation of each release's noise: published, and the least for {target}."
    heights = (70 + 44 * len(rows), 66 + 56 * len(rows))
    paint = partial(_paint, rows=rows)
    return both_widths(paint, name="noise", height=heights, title=f"Least noise: {said}", caption=caption)


def _paint(axes: Axes, *, rows: Sequence[NeededNoise], wide: bool) -> None:
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
