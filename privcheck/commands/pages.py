"""Pages of findings, one a paper, written from the verification itself: nothing in them is typed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from privcheck import registry
from privcheck.accounting import claim_epsilon
from privcheck.commands.declared import calibrate_noise, price_releases, verify_claim
from privcheck.commands.setting import Chosen, resolve_setting, settle
from privcheck.errors import ParameterError
from privcheck.guarantees import PureDP, claimed_delta
from privcheck.reports.values import AllVerified, Verified
from privcheck.reports.wording import figure, spell_out
from privcheck.whole_files import write_whole

COMMAND = "privcheck verify --all --pages docs/findings"
_DELTA = 1e-5  # where the claim itself has no δ

System = tuple[Chosen, Verified]


def write_pages(directory: Path, every: AllVerified) -> list[Path]:
    """Writes one page a paper, each whole or not at all, and returns their paths.

    Args:
        directory: Where they go.
        every: The verdicts on all registered declarations, at their defaults.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in paper_pages(every).items():
        path = directory / f"{name}.md"
        write_whole(path, text)
        written.append(path)
    return written


def paper_pages(every: AllVerified) -> dict[str, str]:
    """Returns the pages as Markdown, by the paper's name; systems in the order of their names."""
    papers: dict[registry.Paper, list[System]] = {}
    for result in every.results:
        setting = resolve_setting(result.algorithm, {})
        if setting.algorithm.paper is not None:
            papers.setdefault(setting.algorithm.paper, []).append((setting, result))
    verdicts = dict(sorted(papers.items(), key=lambda item: item[0].name))
    pages = {paper.name: "\n".join(_page(paper, systems)) + "\n" for paper, systems in verdicts.items()}
    return {"index": "\n".join(_index(verdicts)) + "\n", **pages}


def _index(verdicts: Mapping[registry.Paper, Sequence[System]]) -> Iterator[str]:
    yield "# What the papers claim, and what holds"
    yield ""
    yield f"Written by `{COMMAND}`: every figure is computed from the declarations, none is typed."
    yield ""
    results = [(paper, result) for paper, systems in verdicts.items() for _, result in systems]
    rows = [
        (f"[{r.algorithm}]({paper.name}.md#{r.algorithm})", _verdict(r), *_ratios(r), r.joint or "–")
        for paper, r in results
    ]
    yield from _table(("system", "verdict", "cost/claim", "worst pair/claim", "joint DP"), rows)
    yield ""
    open_ones = [r for _, r in results if r.verdict == "undecided"]
    if not open_ones:
        yield "No system is left undecided at its default parameters."
    for r in open_ones:
        yield f"* `{r.algorithm}` is undecided: {r.sentence}"
    yield ""
    yield from ("```{toctree}", ":maxdepth: 1", "", *(paper.name for paper in verdicts), "```")


def _page(paper: registry.Paper, systems: Sequence[System]) -> Iterator[str]:
    yield f"# {paper.title}"
    yield ""
    yield f"{paper.authors}. {paper.published}."
    yield ""
    yield f"Written by `{COMMAND}`: every figure is computed from the declarations, none is typed."
    yield ""
    yield (
        "The verdicts are about what is released, as declared, with theorem and section, in each algorithm's folder. A "
        "loose step that another step makes up for is reported as such. Joint DP follows from the releases by the "
        "billboard lemma and is never refuted by them."
    )
    yield ""
    rows = [
        (f"[{r.algorithm}](#{r.algorithm})", spell_out(r.claim), _verdict(r), *_ratios(r), r.joint or "–")
        for _, r in systems
    ]
    yield from _table(("system", "claim", "verdict", "cost/claim", "worst pair/claim", "joint DP"), rows)
    for setting, result in systems:
        yield from _system(setting, result)


def _system(setting: Chosen, result: Verified) -> Iterator[str]:
    declaration = setting.declared
    at = ", ".join(f"{name} = {value}" for name, value in result.parameters.items())
    yield from ("", f"## {result.algorithm}", "")
    yield f"{declaration.title}. {declaration.source}. Neighbours: {declaration.relation.words}. At {spell_out(at)}."
    yield ""
    yield f"**{_verdict(result).capitalize()}.** {result.sentence}"
    if result.repair:
        yield f"Least change: {result.repair}."
    yield ""
    for finding in result.findings:
        link = f"[{finding.code}](../reference/findings.md#{finding.code})"
        yield f"* {link} ({finding.severity}, {spell_out(finding.where)}): {spell_out(finding.message)}."
    yield ""
    yield from _costs(setting)
    yield from _readings(setting)
    yield from _least_noise(setting)
    if result.witness is not None:
        words = result.witness.words
        yield f"The worst pair known: {words}. `privcheck verify {result.algorithm} --json` prints it whole."


def _costs(setting: Chosen) -> Iterator[str]:
    priced = price_releases(setting, _delta_of(setting))
    rows = [
        (r.name, r.users or "all", figure(r.count), spell_out(r.mechanism), spell_out(r.cost.expression))
        for r in priced.releases
    ]
    yield from _table(("release", "users", "outputs with one user", "noise", "cost"), rows)
    yield ""


def _readings(setting: Chosen) -> Iterator[str]:
    """Yields the verdict under every reading of every choice, the others at their default."""
    rows = []
    for choice in setting.algorithm.readings:
        for reading in choice.ways:
            result = verify_claim(settle(setting.algorithm, {choice.name: reading}))
            rows.append((f"{choice.name} = {reading}", _verdict(result), *_ratios(result)))
    if rows:
        yield from _table(("reading", "verdict", "cost/claim", "worst pair/claim"), rows)
        yield ""


def _least_noise(setting: Chosen) -> Iterator[str]:
    claim, delta = setting.declared.claim.guarantee, _delta_of(setting)
    epsilon = claim_epsilon(claim, setting.values, delta)
    try:
        least = calibrate_noise(setting, epsilon=epsilon, delta=delta)
    except ParameterError as error:
        yield f"Least noise: {error}."
        yield ""
        return
    variants = (
        ("as declared", least.releases), ("Gaussian instead", least.gaussian),
        ("disjoint batches instead", least.batches),
    )  # fmt: skip
    rows = [
        (words, row.name, figure(row.published_std), figure(row.needed_std, rounding="up"), figure(row.ratio))
        for words, noises in variants
        for row in noises or ()
    ]
    yield f"What the claim promises, ε = {figure(epsilon)} at δ = {figure(delta)}, needs this much noise:"
    yield ""
    yield from _table(("how", "release", "published std", "needed std", "needed/published"), rows)
    yield ""


def _delta_of(setting: Chosen) -> float:
    claim = setting.declared.claim.guarantee
    claimed = None if isinstance(claim, PureDP) else claimed_delta(claim)
    return _DELTA if claimed is None else claimed.number(setting.values, rounding="down")


def _verdict(result: Verified) -> str:
    given = ", given" if result.given and result.verdict == "holds" else ""
    return f"{result.verdict}, {result.method}{given}" if result.verdict != "undecided" else "undecided"


def _ratios(result: Verified) -> tuple[str, str]:
    return figure(result.upper_ratio, rounding="up"), figure(result.lower_ratio, rounding="down")


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (heading, ["---"] * len(heading), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
