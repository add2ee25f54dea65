"""Reproduced figures as text, picture, page and documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from privcheck.reports import tables
from privcheck.reports.files import encode
from privcheck.reports.summary import Tone
from privcheck.reports.tables import Cell, ReportTable
from privcheck.reports.values import ComparedNumber, Line, ListedFigures, Reproduction
from privcheck.reports.wording import NOTHING, capitalise, figure, percent, spell_out
from privcheck.support.files import write_together

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privcheck.reports.plots import Plot

JSON_NAME: Final = "result.json"
HTML_NAME: Final = "figure.html"
SVG_NAME: Final = "figure.svg"
EPISODE: Final = "episode"
_TONES: Final[Mapping[str, Tone]] = {"reproduced": "good", "not reproduced": "bad", "underspecified": "open"}
_MEASURES: Final = {"regret": "cumulative regret", "gap": "gap v* − v^π", "switches": "policy switches"}
_AXES: Final = {"epsilon": "ε", "n": "users n", EPISODE: "episode"}
QUICK: Final = (
    "This is a shrunken version, marked quick: fewer runs, and smaller sizes where the table says so. Its conclusion "
    "is no verdict on the printed sizes."
)
PICTURES: Final = (
    "The curves themselves exist as pictures only: the text prints none of their values, so the curves are "
    "underspecified, and what is judged is what the text says about them."
)


def say_outcome(one: Reproduction) -> str:
    """The outcome, with "(quick)" behind that of a shrunken version."""
    return f"{one.outcome} (quick)" if one.quick else one.outcome


def numbers_table(one: Reproduction) -> ReportTable | None:
    """Table of the last value of every line beside the printed number, if there is one."""
    printed = {number.of: number for number in one.numbers}
    axis = _AXES.get(one.axis, spell_out(one.axis))
    x = figure(one.lines[0].x[-1])
    caption = f"{capitalise(_MEASURES[one.measure])} at {axis} = {x}, mean ± standard deviation of {one.runs} runs."
    columns = ("line", "agent", f"#{_MEASURES[one.measure]}", "#of uniform play", "#the paper's number", "same", "note")
    return tables.table(caption, columns, [_row(line, printed.get(line.label), one) for line in one.lines])


def _row(line: Line, printed: ComparedNumber | None, one: Reproduction) -> list[str | Cell]:
    spread = "" if line.std is None else f" ± {figure(line.std[-1], digits=2, rounding='up')}"
    share = "" if not one.uniform else percent(line.mean[-1] / one.uniform)
    same: str | Cell = NOTHING
    if printed is not None and printed.same is not None:
        same = Cell(text="yes" if printed.same else "no", tone="good" if printed.same else "bad")
    note = printed.note if printed is not None else "" if line.judged else "not in the paper's figure"
    number = NOTHING if printed is None else figure(printed.paper)
    return [line.label, line.algorithm, figure(line.mean[-1]) + spread, share, number, same, note]


def figure_plot(one: Reproduction, *, name: str = "figure") -> Plot:
    """Plot of a reproduced figure, with the printed numbers as dotted lines.

    Args:
        one: The figure.
        name: Prefix of every id; unique in its page.
    """
    from privcheck.reports.plots import both_widths  # loads Matplotlib

    last = "; ".join(f"{line.label} {figure(line.mean[-1])}" for line in one.lines)
    caption = f"{one.title}, run again{' as a shrunken version' if one.quick else ''}: {_MEASURES[one.measure]}"
    caption += f", mean of {one.runs} runs." + (
        " Bands are one standard deviation each way." if any(line.std for line in one.lines) else ""
    )
    if one.numbers:
        caption += " Dotted: the paper's own numbers."
    if any(not line.judged for line in one.lines):
        caption += " Dashed: not in the paper's figure."
    height = (max(340, 60 + 26 * (len(one.lines) + 2)), max(320, 60 + 22 * (len(one.lines) + 2)))
    return both_widths(partial(_paint, one=one), name=name, height=height, title=f"At the end: {last}", caption=caption)


def _paint(axes: Axes, *, one: Reproduction, wide: bool) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    from privcheck.reports.plots import INK, MUTED, RULE
    from privcheck.reports.run_plots import COLOURS, DASHES, LineName, name_lines

    names, along = list[LineName](), one.axis == EPISODE
    axes.set_xscale("linear" if along else "log")
    axes.set_yscale("log" if one.measure == "switches" else "linear")
    for place, line in enumerate(one.lines):
        colour = COLOURS[place % len(COLOURS)]
        style: Any = DASHES[place // len(COLOURS) % len(DASHES)] if line.judged else (0, (6, 3))
        marker: dict[str, Any] = {} if along else {"marker": "o", "markersize": 4}
        axes.plot(line.x, line.mean, color=colour, linestyle=style, linewidth=1.8, label=line.label, **marker)
        names.append(LineName(text=line.label, height=line.mean[-1], colour=colour, strong=line.judged))
        if line.std is not None:
            low = [max(mean - std, 0.0) for mean, std in zip(line.mean, line.std, strict=True)]
            high = [mean + std for mean, std in zip(line.mean, line.std, strict=True)]
            axes.fill_between(line.x, low, high, color=colour, alpha=0.13, linewidth=0)
    for value in sorted({number.paper for number in one.numbers}):
        axes.axhline(value, color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)), label=f"paper: {figure(value)}")
        names.append(LineName(text=f"paper: {figure(value)}", height=value, colour=MUTED))
    if one.uniform is not None and not along:
        axes.axhline(one.uniform, color=MUTED, linewidth=1.0, linestyle=(0, (2, 2)))
        names.append(LineName(text="uniform play", height=one.uniform, colour=MUTED))
    axes.grid(visible=True, color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel(_AXES.get(one.axis, spell_out(one.axis)), color=INK)
    axes.set_ylabel(_MEASURES[one.measure], color=INK)
    if one.measure != "switches":
        axes.set_ylim(bottom=0.0)
    if along:
        axes.set_xlim(0, max(one.lines[0].x))
        axes.xaxis.set_major_locator(MaxNLocator(6 if wide else 4))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: figure(float(value))))
        axis.set_minor_formatter(NullFormatter())
    if one.measure == "switches":  # names are set apart by height, which a logarithmic axis distorts
        axes.legend(fontsize=9 if wide else 8, loc="best")
        return
    name_lines(axes, names, wide=wide)


def observations_table(one: Reproduction) -> ReportTable | None:
    """Table of what the text says, with the predicate, the outcome and the reason."""
    body: list[list[str | Cell]] = [
        [
            f"“{said.quotation}”",
            said.reading,
            Cell(text=said.outcome, tone=_TONES[said.outcome]),
            " ".join(part for part in (said.reason, said.undecided) if part),
        ]
        for said in one.observations
    ]
    return tables.table("What the text says about the figure", ("the text", "read as", "outcome", "why"), body)


def figure_page(one: Reproduction) -> str:
    """Page of a reproduced figure."""
    from privcheck.reports.html import inline, made_facts, template

    sizes = ", ".join(f"{spell_out(name)} = {value}" for name, value in one.sizes.items())
    return template("figure.html.j2").render(
        one=one,
        outcome=say_outcome(one),
        tone=_TONES[one.outcome],
        subtitle=f"{one.environment} · {sizes} · {one.runs} runs of each line",
        quick=QUICK if one.quick else "",
        pictures=PICTURES,
        plot_of=inline(figure_plot(one)),
        numbers=numbers_table(one),
        observations=observations_table(one),
        facts_of=made_facts(one.made_by),
    )


def save_reproduction(one: Reproduction, directory: Path) -> None:
    """Write result.json, figure.html and figure.svg, all or none.

    Args:
        one: The figure.
        directory: Its folder.

    Raises:
        PrivcheckError: The files cannot be written; the previous ones are unchanged.
    """
    from privcheck.reports.pictures import standalone

    picture = standalone(figure_plot(one))
    write_together(directory, {JSON_NAME: encode(one), HTML_NAME: figure_page(one), SVG_NAME: picture})


def markdown(results: Sequence[Reproduction], listed: ListedFigures, *, titles: Mapping[str, str]) -> str:
    """The documentation page of all figures: index, then a section a figure.

    Args:
        results: Recorded reproductions.
        listed: All figures, and what else the papers number.
        titles: Authors and title of every paper, by name.
    """
    by_name = {(one.paper, one.figure): one for one in results}
    return "\n".join(_lines(by_name, listed, titles)) + "\n"


def _lines(
    by_name: Mapping[tuple[str, str], Reproduction], listed: ListedFigures, titles: Mapping[str, str]
) -> Iterator[str]:
    yield "# The papers' figures, run again"
    yield ""
    yield from _fill(
        "`privcheck reproduce PAPER FIGURE` runs the printed environment, sizes, ε and seeds and ends with one of "
        "three conclusions: *reproduced*, *not reproduced*, or *underspecified*, where the text leaves open what "
        "decides. What is judged is what a text says about its figure, as a predicate with a stated tolerance, and the "
        f"numbers it prints. {PICTURES} A conclusion is about our implementation at these settings, not about what the "
        "authors saw; constants that a text does not print are listed with what was taken for them. This page is made "
        "by the command under [How this page is made](#how-this-page-is-made)."
    )
    yield ""
    yield "| paper | figure | shows | conclusion | runs |"
    yield "| --- | --- | --- | --- | --- |"
    for row in listed.figures:
        one = by_name.get((row.paper, row.figure))
        said = NOTHING if one is None else say_outcome(one)
        runs = NOTHING if one is None else str(one.runs)
        link = f"[{row.figure}](#{row.paper}-{row.figure})"
        yield f"| {row.paper} | {link} | {_cell(row.title)} | {said} | {runs} |"
    for paper in dict.fromkeys(row.paper for row in listed.figures):
        yield ""
        yield f"## {titles[paper]}"
        if listed.others.get(paper):
            yield ""
            yield from _fill(listed.others[paper])
        for row in listed.figures:
            if row.paper == paper and (one := by_name.get((paper, row.figure))) is not None:
                yield from _section(one)
    for paper, said in listed.others.items():
        if paper not in {row.paper for row in listed.figures}:
            yield ""
            yield f"## {titles[paper]}"
            yield ""
            yield from _fill(said)
    yield ""
    yield "## How this page is made"
    yield ""
    yield "```console"
    yield "$ privcheck reproduce --all --out runs/figures"
    yield "$ python -m privcheck.commands.reproduction_pages runs/figures docs"
    yield "```"
    yield ""
    yield from _fill(
        "The second command takes every figure's finished result, the full one before a quick one, records it beside "
        "the figures' definitions, and writes this page and its pictures. `privcheck reproduce` without arguments "
        "lists the records. `--quick` runs all figures in some minutes."
    )


def _section(one: Reproduction) -> Iterator[str]:
    yield ""
    yield f"### {one.paper} {one.figure}"
    yield ""
    yield from _fill(f"{one.title} ({one.where}).")
    yield ""
    yield "```console"
    yield f"$ {one.command}"
    yield "```"
    yield ""
    yield from _fill(f"**{capitalise(say_outcome(one))}.** {one.reason}" + (f" {QUICK}" if one.quick else ""))
    yield ""
    yield f"![{one.title}](reproductions/{one.paper}-{one.figure}.svg)"
    yield ""
    yield from _fill(f"The setting, in the paper's words: “{one.setting}”")
    yield ""
    yield from _table(numbers_table(one))
    yield ""
    yield from _table(observations_table(one))
    yield ""
    yield "Left open by the text, with what was taken:"
    yield ""
    for taken in one.taken:
        yield from _fill(f"* {taken}", indent="  ")


def _table(made: ReportTable | None) -> Iterator[str]:
    if made is None:
        return
    yield from _fill(made.caption)
    yield ""
    yield f"| {' | '.join(made.columns)} |"
    yield f"| {' | '.join('---:' if numeric else '---' for numeric in made.numeric)} |"
    for row in made.rows:
        yield f"| {' | '.join(_cell(cell.text) for cell in row)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _fill(text: str, *, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
