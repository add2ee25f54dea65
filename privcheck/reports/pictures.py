"""Pictures of results for notebooks and files: the plots of the reports' pages as stand-alone images."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from privcheck.errors import ParameterError
from privcheck.reports.audit_view import bars_plot, history_plot, trade_off_plot
from privcheck.reports.files import as_report
from privcheck.reports.html import compared_plots
from privcheck.reports.plots import Plot, noise_plot, privacy_plot, value_plot
from privcheck.reports.reproductions import figure_plot
from privcheck.reports.run_plots import curve_plots, frontiers
from privcheck.reports.summary import audit_views
from privcheck.reports.values import Compared, RanOnline, Report, Reproduced, Sweep
from privcheck.support.display import Brief
from privcheck.support.files import write_whole

_SVG = '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"'


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Picture(Brief):
    """Plots of one result, as SVG: shown by notebooks, saved as files.

    Attributes:
        captions: Description of each plot.
        svgs: Each plot as an `<svg>` element on white paper.
    """

    captions: tuple[str, ...]
    svgs: tuple[str, ...] = field(repr=False)

    def _repr_html_(self) -> str:
        """The plots one below the other, as HTML for notebooks."""
        return "".join(f'<div style="max-width:720px">{svg}</div>' for svg in self.svgs)

    def save(self, path: Path | str) -> Path:
        """Write the plots and return the path.

        Args:
            path: A name that ends in .svg, for one plot, or in .html, for any number.

        Raises:
            ParameterError: The name has another ending, or it ends in .svg and there are several plots.
            OSError: The file cannot be written.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".html"):
            raise ParameterError(f"{path}: expected a name that ends in .svg or .html", name="path", given=str(path))
        if path.suffix == ".svg" and len(self.svgs) != 1:
            message = f"{path}: these are {len(self.svgs)} plots, and a .svg file holds one; save them as .html"
            raise ParameterError(message, name="path", given=str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = f'<!doctype html><meta charset="utf-8"><title>privcheck</title>{self._repr_html_()}'
        write_whole(path, self.svgs[0] if path.suffix == ".svg" else whole)
        return path


def draw_result(result: object) -> Picture:
    """Draw the plots of a result, the same as on its page.

    Raises:
        ParameterError: There is nothing to draw.
    """
    if isinstance(result, Sweep):
        plots = tuple(plot for _, plot in frontiers(result))
    elif isinstance(result, Reproduced):
        plots = tuple(figure_plot(one, name=f"figure-{number}") for number, one in enumerate(result.results, start=1))
    else:
        plots = tuple(compared_plots(result) if isinstance(result, Compared) else _plots(as_report(result)))
    if not plots:
        raise ParameterError(f"there is nothing to draw in this {type(result).__name__}")
    return Picture(captions=tuple(plot.caption for plot in plots), svgs=tuple(standalone(plot) for plot in plots))


def _plots(report: Report) -> Iterator[Plot]:
    several = [privacy_plot(report) if report.budget else None, noise_plot(report.calibrate)]
    for number, (_, view) in enumerate(audit_views(report), start=1):
        several += [paint(view, name=f"audit-{number}") for paint in (trade_off_plot, history_plot, bars_plot)]
    several.append(value_plot(report))
    if isinstance(report.run, RanOnline):
        several += curve_plots([report.run])
    return (plot for plot in several if plot is not None)


def standalone(plot: Plot) -> str:
    """The wide drawing as a stand-alone image in the colours of light paper."""
    css = files("privcheck.reports").joinpath("templates/report.css").read_text(encoding="utf-8")
    light = dict(reversed(re.findall(r"--([a-z]+): (#[0-9a-f]{6})", css)))  # what stands first is for light paper
    coloured = re.sub(r"var\(--([a-z]+)\)", lambda found: light[found[1]], plot.wide)
    named = re.search(r'aria-labelledby="(\S+)-title ', coloured)
    if named is not None:  # a page of a notebook may hold several of one kind
        own = hashlib.blake2b(coloured.encode(), digest_size=4).hexdigest()
        coloured = coloured.replace(f"{named[1]}-", f"{named[1]}-{own}-")
    return coloured.replace("<svg", _SVG, 1).replace("<svg", f'<svg style="background: {light["paper"]}"', 1)
