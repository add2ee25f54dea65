"""The record of reproduced figures and its page in the documentation, from an output folder of `privcheck reproduce`.

`python -m privcheck.commands.reproduction_pages OUT DOCS` takes the finished result of each figure, the full one before
a quick one, and writes them to the file that the figures' package keeps, the page DOCS/reproductions.md, and the
pictures DOCS/reproductions/PAPER-FIGURE.svg.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from privcheck.commands.reproductions import folder_of, list_figures, read_record
from privcheck.errors import FileFormatError, ParameterError
from privcheck.reports.files import encode
from privcheck.reports.reproductions import JSON_NAME, figure_plot, markdown
from privcheck.reports.values import Reproduced, Reproduction, from_json
from privcheck.runtime import figures
from privcheck.support.files import write_whole

PAGE: Final = "reproductions.md"
PICTURES: Final = "reproductions"


def find_results(out: Path) -> tuple[Reproduction, ...]:
    """The finished results in an output folder, in the order of the papers; the full one before a quick one.

    Raises:
        FileFormatError: A result cannot be read by this version.
    """
    found = list[Reproduction]()
    for paper in figures.papers():
        for one in figures.figures_of(paper).figures:
            for quick in (False, True):
                file = folder_of(out, paper, one.name, quick=quick) / JSON_NAME
                if file.exists():
                    found.append(_read(file))
                    break
    return tuple(found)


def _read(file: Path) -> Reproduction:
    try:
        return from_json(Reproduction, json.loads(file.read_text(encoding="utf-8")), "figure")
    except (OSError, ValueError, ParameterError) as error:
        message = f"{file}: expected what `privcheck reproduce --out DIR` wrote; {error!s}"
        raise FileFormatError(message) from None


def records() -> tuple[Reproduction, ...]:
    """All recorded reproductions, in the order of the papers and of their figures."""
    found = list[Reproduction]()
    for paper in figures.papers():
        known = figures.figures_of(paper)
        kept = {(one.paper, one.figure): one for one in read_record(known.recorded)}
        found += [kept[paper, one.name] for one in known.figures if (paper, one.name) in kept]
    return tuple(found)


def write_record(results: tuple[Reproduction, ...]) -> None:
    """Write the results to the files that their papers' packages keep; a file has the figures of several papers."""
    files: dict[Path, list[Reproduction]] = {}
    for one in results:
        if (path := figures.figures_of(one.paper).recorded) is not None:
            files.setdefault(path, []).append(one)
    for path, some in files.items():
        write_whole(path, encode(Reproduced(results=tuple(some))))


def page() -> str:
    """The page of the recorded figures."""
    papers = {name: figures.figures_of(name).paper for name in figures.papers()}
    titles = {name: f"{one.authors}: {one.title}" for name, one in papers.items()}
    return markdown(records(), list_figures(), titles=titles)


def write_pages(docs: Path) -> None:
    """Write the page and the pictures of the recorded figures to the documentation's folder."""
    from privcheck.reports.pictures import standalone

    for one in records():
        name = f"{one.paper}-{one.figure}"
        write_whole(docs / PICTURES / f"{name}.svg", standalone(figure_plot(one, name=name)) + "\n")
    write_whole(docs / PAGE, page())


if __name__ == "__main__":
    write_record(find_results(Path(sys.argv[1])))
    write_pages(Path(sys.argv[2]))
