"""Pages of findings, one a paper, written from the verification itself: nothing in them is typed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from privcheck import registry
from privcheck.commands.judged import COLUMNS, Judged, judge, say_columns
from privcheck.commands.paper_page import WRITTEN, count_verdicts, paper_page, table
from privcheck.reports.pair_picture import draw_pair
from privcheck.reports.values import AllVerified
from privcheck.whole_files import write_whole

Papers = Mapping[registry.Paper, Sequence[Judged]]


def write_pages(directory: Path, every: AllVerified) -> list[Path]:
    """Writes one page a paper and a picture of every worst pair, each whole or not at all, and returns their paths.

    Args:
        directory: Where they go.
        every: The verdicts on all registered declarations, at their defaults.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in paper_pages(every).items():
        path = directory / name
        write_whole(path, text)
        written.append(path)
    return written


def paper_pages(every: AllVerified) -> dict[str, str]:
    """Returns the pages as Markdown and the pictures as SVG, by file name; systems in the order of their names."""
    papers: dict[registry.Paper, list[Judged]] = {}
    for result in every.results:
        paper = registry.algorithm(result.algorithm).paper
        if paper is not None:
            papers.setdefault(paper, []).append(judge(result))
    verdicts = dict(sorted(papers.items(), key=lambda item: item[0].name))
    drawn = {one.result.algorithm: draw_pair(one.result) for systems in verdicts.values() for one in systems}
    return {
        "index.md": "\n".join(_index(verdicts)) + "\n",
        **{f"{paper.name}.md": paper_page(paper, systems) for paper, systems in verdicts.items()},
        **{f"{name}.svg": svg for name, svg in drawn.items() if svg is not None},
    }


def _index(papers: Papers) -> Iterator[str]:
    yield from ("# What the papers claim, and what holds", "")
    yield (
        "A paper on private reinforcement learning publishes some statistics with noise and claims a guarantee for "
        "them. Here each such system is declared, release by release, and its claim is verified: the releases' cost is "
        "derived for the neighbouring datasets that the claim is about, and a pair of neighbours is looked for that "
        "loses more. A system that fails has such a pair, drawn on its paper's page."
    )
    yield ""
    yield from _words()
    yield ""
    for paper, systems in papers.items():
        yield from ("", f"## [{paper.title}]({paper.name}.md)", "")
        yield from (f"{paper.authors}. {paper.published}. {count_verdicts(systems)}", "")
        rows = [(f"[{one.name}]({paper.name}.md#{one.name})", *say_columns(one)) for one in systems]
        yield from table(("system", *COLUMNS), rows)
        yield ""
        for one in systems:
            if one.result.verdict == "undecided":
                yield f"* `{one.result.algorithm}` is undecided: {one.result.sentence}"
        yield ""
    yield WRITTEN
    yield ""
    yield from ("```{toctree}", ":maxdepth: 1", "", *(paper.name for paper in papers), "```")


def _words() -> Iterator[str]:
    """Yields the words of the tables, which are those of `privcheck verify`."""
    yield "* *verdict*: at the parameters on the system's page, as `privcheck verify NAME` says it. *Holds, proved* is"
    yield "  for all parameters, *holds, checked* for these, *holds, given* a name as long as what the author of that"
    yield "  states is true. *Fails, witness* names a pair of neighbouring datasets that loses more than is claimed."
    yield "* *text*: whose it is. *Printed* is as the paper has it, *published code* what its authors' program does:"
    yield "  only these are verdicts on a paper. *Repaired* is a text with a change that the verdict needs,"
    yield "  *reconstructed* has noise or constants that no text states, *own* is an algorithm of this project."
    yield "* *elsewhere*: where the verdict differs, under another reading of the paper or at other parameters."
    yield "* *cost/claim*: the accountant's upper bound over the claim, rounded up. Above 1 nothing is proved."
    yield "* *worst pair/claim*: what the worst pair known loses over the claim, rounded down. Above 1 the claim is"
    yield "  false."
    yield "* *joint DP*: *follows* by the billboard lemma where the claim holds for the statistics, else *unproved*."
