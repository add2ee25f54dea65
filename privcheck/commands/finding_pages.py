"""Pages of findings, one per paper, generated from the verification: nothing in them is typed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from privcheck.accounting import claim_epsilon
from privcheck.commands.declarations import calibrate_noise, price_releases, verify_claim
from privcheck.commands.settings import Chosen, resolve_setting, settle
from privcheck.declare.statements import KINDS, Statement
from privcheck.errors import ParameterError
from privcheck.reports.pair_picture import draw_pair
from privcheck.reports.values import AllVerified, Verified
from privcheck.reports.wording import (
    capitalise,
    figure,
    label,
    rank,
    ratio,
    say_certificate,
    say_holds,
    say_origin,
    say_statements,
    spell_out,
)
from privcheck.runtime import registry
from privcheck.support.files import write_whole
from privcheck.terms.guarantees import PureDP, claimed_delta

COLUMNS = ("text", "verdict", "elsewhere", "cost/claim", "worst pair/claim", "joint DP")  # of `say_columns`


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A verdict at a setting that differs from the default in one choice or set of parameters.

    Attributes:
        words: The difference, such as "log = ln".
        result: The verdict at that setting.
        default: Whether this is the default itself, listed for comparison.
    """

    words: str
    result: Verified
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A system with its verdicts.

    Attributes:
        setting: Its declaration at the defaults.
        result: The verdict at the defaults.
        elsewhere: Verdicts at every reading of every choice, and at the parameters named in its registration.
    """

    setting: Chosen
    result: Verified
    elsewhere: tuple[Elsewhere, ...]

    @property
    def name(self) -> str:
        """Name of the system."""
        return self.result.algorithm

    @property
    def of_paper(self) -> bool:
        """Whether the verdict is about the authors' text or program."""
        origin = self.result.origin
        return origin is not None and origin.of_paper

    @property
    def turns(self) -> tuple[Elsewhere, ...]:
        """The settings at which the verdict differs from the default's."""
        return tuple(one for one in self.elsewhere if one.result.verdict != self.result.verdict)


def judge(result: Verified) -> Judged:
    """Judge a system at its other settings, given its verdict at the defaults."""
    setting = resolve_setting(result.algorithm, {})
    return Judged(setting=setting, result=result, elsewhere=tuple(_at_other_values(setting, result)))


def _at_other_values(setting: Chosen, result: Verified) -> Iterator[Elsewhere]:
    for choice in setting.algorithm.readings:
        for reading in choice.ways:
            default = reading == choice.ways[0]
            there = (
                result if default else verify_claim(settle(setting.algorithm, {choice.name: reading}), certified=False)
            )
            yield Elsewhere(words=f"{choice.name} = {reading}", result=there, default=default)
    for given in setting.algorithm.elsewhere:
        words = ", ".join(
            f"{name} = {figure(int(value) if value.isdigit() else value)}" for name, value in given.items()
        )
        yield Elsewhere(words=words, result=verify_claim(settle(setting.algorithm, given), certified=False))


def say_parameters(values: Mapping[str, str]) -> str:
    """Parameters in words: "K = 20 000, ε = 1"."""
    said = ((label(name), figure(int(value) if value.isdigit() else value)) for name, value in values.items())
    return ", ".join(f"{name} = {value}" for name, value in said)


def say_verdict(result: Verified) -> str:
    """The verdict in the words of the command line: "holds, proved", or "holds, given arms"."""
    if result.verdict == "holds":
        return say_holds(result.method, result.given)
    return f"{result.verdict}, {result.method}" if result.verdict != "undecided" else "undecided"


def say_ratios(result: Verified) -> tuple[str, str]:
    """Cost over claim, rounded up, and the worst pair's loss over claim, rounded down; "1" only for exactly 1."""
    return ratio(result.upper_ratio, rounding="up"), ratio(result.lower_ratio, rounding="down")


def say_turns(judged: Judged) -> str:
    """The settings at which the verdict differs, as text; empty if it is the same everywhere."""
    by_verdict: dict[str, list[str]] = {}
    for one in judged.turns:
        by_verdict.setdefault(one.result.verdict, []).append(one.words)
    mark = "**" if judged.of_paper else ""  # what is ours does not stand out beside a paper's name
    return "; ".join(f"{mark}{verdict}{mark} at {' and at '.join(places)}" for verdict, places in by_verdict.items())


def say_columns(judged: Judged) -> tuple[str, ...]:
    """A system's cells in the tables of findings."""
    result = judged.result
    text = result.origin.kind if result.origin is not None else "–"
    return (text, say_verdict(result), say_turns(judged) or "–", *say_ratios(result), result.joint or "–")


WRITTEN = "Written by `privcheck verify --all --pages docs/findings`: every figure is computed from the declarations."
_DELTA = 1e-5  # where the claim itself has no δ
_WORDS = (
    "**How to read the tables.** A system is judged by its releases, at the parameters given with it. *Holds, "
    "proved*: for all parameters. *Holds, checked*: at these. *Holds, given* a name: provided that its author's "
    "statements are true. *Fails, witness*: two datasets that differ in one user can be distinguished better than the "
    "claim allows, computed exactly. *Cost/claim* is the accountant's upper bound over the claim, rounded up; *worst "
    "pair/claim* is the loss of the worst known pair over the claim, rounded down. A loose step that another step "
    "compensates is a finding, not a failure. Joint DP *follows* from the published statistics by the billboard lemma "
    "where their "
    "claim holds; otherwise it is *unproved*, and never refuted by them."
)


def paper_page(paper: registry.Paper, systems: Sequence[Judged]) -> str:
    """The page of one paper as Markdown."""
    return "\n".join(_page(paper, systems)) + "\n"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a Markdown table line by line."""
    for row in (heading, ["---"] * len(heading), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def count_verdicts(systems: Sequence[Judged]) -> str:
    """Count the systems that hold, fail and are undecided at their defaults, by the origin of their text.

    Only printed texts and published code count as verdicts on a paper.
    """
    said = []
    for kind, words in KINDS.items():
        here = [one for one in systems if one.result.origin is not None and one.result.origin.kind == kind]
        if here:
            said.append(f"{kind} ({words}): {_say_counts(here)}")
    return f"At the parameters given with each, by origin of the text: {'; '.join(said)}."


def _say_counts(systems: Sequence[Judged]) -> str:
    verdicts: list[str] = [one.result.verdict for one in systems]
    kinds = (("holds", "holds", "hold"), ("fails", "fails", "fail"), ("undecided", "is open", "are open"))
    counts = [(verdicts.count(kind), one, several) for kind, one, several in kinds]
    return " and ".join(f"{count} {one if count == 1 else several}" for count, one, several in counts if count)


def _say_all_turns(systems: Sequence[Judged]) -> str:
    """The systems whose verdict differs elsewhere, and where, as a sentence; empty if there are none."""
    turning = [f"`{one.name}` ({say_turns(one)})" for one in systems if one.turns]
    return f" Elsewhere the verdict differs for {', '.join(turning)}." if turning else ""


def _page(paper: registry.Paper, systems: Sequence[Judged]) -> Iterator[str]:
    yield f"# {paper.title}"
    yield ""
    yield f"{paper.authors}. {paper.published}."
    yield ""
    if paper.about:
        yield from (paper.about, "")
    yield f"**What was found.** {count_verdicts(systems)}{_say_all_turns(systems)}"
    yield ""
    rows = [(f"[{one.name}](#{one.name})", spell_out(one.result.claim), *say_columns(one)) for one in systems]
    yield from table(("system", "claim", *COLUMNS), rows)
    yield ""
    yield _WORDS
    yield ""
    yield WRITTEN
    yield ""
    yield from _statements(systems)
    for one in systems:
        yield from _system(one)
    yield from _answers(paper)


def _statements(systems: Sequence[Judged]) -> Iterator[str]:
    """Yield every printed statement with its verdict, system by system."""
    rows = [
        (judged.statement.name, f"[{one.name}](#{one.name})", judged.standing, judged.why)
        for one in systems
        for judged in sorted(one.result.statements, key=lambda judged: rank(judged.standing))
    ]
    if rows:
        yield (
            "**Statement by statement.** A system's headline follows from this table: it *fails* if one of its "
            "statements about the published statistics is refuted and *holds* if they all hold; it is no verdict on "
            "the paper if none of them applies."
        )
        yield ""
        yield from table(("statement", "system", "verdict", "why"), rows)
        yield ""


def _answers(paper: registry.Paper) -> Iterator[str]:
    if paper.answers:
        yield from ("", "## What the authors might answer", "")
        yield from (f"* {answer}" for answer in paper.answers)
    yield from ("", "## How to contest this page", "")
    yield (
        "Every verdict is recomputed by `privcheck verify NAME`, and `privcheck show NAME` prints what was declared, "
        "with its source. If a system was misread, change its `declaration.py` in a few lines and run the command "
        "again. A correction that cites the contradicting place in the text changes this page, and is noted in the "
        "changelog."
    )


def _system(judged: Judged) -> Iterator[str]:
    setting, result = judged.setting, judged.result
    declaration = setting.declared
    yield from ("", f"## {result.algorithm}", "")
    title, source = capitalise(declaration.title), capitalise(declaration.source)
    if result.origin is not None:
        yield from (say_origin(result.origin), "")
    yield f"{title}. {source}. Neighbours: {declaration.relation.words}. At {say_parameters(result.parameters)}."
    yield ""
    yield f"**{capitalise(say_verdict(result))}.** {result.sentence}"
    if said := say_statements(result.statements):
        yield f"{said}."
    if judged.turns:
        yield f"Elsewhere the verdict differs: {say_turns(judged)}."
    if result.repair:
        yield f"Least change: {spell_out(result.repair)}."
    if result.certificate is not None:
        yield f"{say_certificate(result.certificate, name=result.algorithm)} [What that means](../certificates.md)."
    yield ""
    if result.witness is not None:
        whole = f"`privcheck verify {result.algorithm} --json` prints it whole"
        yield f"The worst known pair: {result.witness.words}. {capitalise(whole)}."
        yield ""
        if result.witness.pair is not None:
            yield f"![the data of the two users, and their loss beside the claim]({result.algorithm}.svg)"
            yield ""
    for one in result.statements:
        yield from _quote(one.statement)
    if result.statements:
        yield ""
    for finding in result.findings:
        link = f"[{finding.code}](../reference/findings.md#{finding.code})"
        yield f"* {link} ({finding.severity}, {spell_out(finding.where)}): {spell_out(finding.message)}."
    yield ""
    yield from _costs(setting)
    yield from _elsewhere(judged)
    yield from _least_noise(setting)


def _quote(printed: Statement) -> Iterator[str]:
    yield f"> **{printed.name}.** “{printed.quotation}”"
    yield f"> — {printed.where}. Compared are {printed.neighbours}."
    if printed.assumes:
        yield f"> It presupposes: {'; '.join(printed.assumes)}."
    if printed.disclaimed:
        yield f"> {printed.disclaimed}"
    yield ">"


def _costs(setting: Chosen) -> Iterator[str]:
    priced = price_releases(setting, _delta_of(setting))
    rows = [
        (r.name, r.users or "all", figure(r.count), spell_out(r.mechanism), spell_out(r.cost.expression))
        for r in priced.releases
    ]
    yield from table(("release", "users", "outputs with one user", "noise", "cost"), rows)
    yield ""


def _elsewhere(judged: Judged) -> Iterator[str]:
    """Yield the verdict under each reading of each choice, the others at their default, and at other parameters."""
    rows = [
        (one.words + (" (default)" if one.default else ""), say_verdict(one.result), *say_ratios(one.result))
        for one in judged.elsewhere
    ]
    if rows:
        yield from table(("reading or parameter", "verdict", "cost/claim", "worst pair/claim"), rows)
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
        (words, row.name, figure(row.published_std), *(figure(f, rounding="up") for f in (row.needed_std, row.ratio)))
        for words, noises in variants
        for row in noises or ()
    ]
    yield _need(setting, epsilon, delta)
    yield ""
    yield from table(("how", "release", "declared std", "needed std", "needed/declared"), rows)
    yield ""


def _need(setting: Chosen, epsilon: float, delta: float) -> str:
    """Heading of the least-noise table; if the claim has no δ, it says that the target is weaker than the claim."""
    claim = setting.declared.claim.guarantee
    at = f"ε = {figure(epsilon, rounding='up')} at δ = {figure(delta)}"
    if claimed_delta(claim) is not None and not isinstance(claim, PureDP):
        return f"What the claim promises, {at}, needs this much noise:"
    if isinstance(claim, PureDP):
        return (
            f"The claim is pure, δ = 0. The weaker guarantee {at} needs this much noise; this does not repair the "
            "claim itself:"
        )
    return f"At {at}, which follows from the claim, this much noise is needed; the claim itself promises more:"


def _delta_of(setting: Chosen) -> float:
    claim = setting.declared.claim.guarantee
    claimed = None if isinstance(claim, PureDP) else claimed_delta(claim)
    return _DELTA if claimed is None else claimed.number(setting.values, rounding="down")


Papers = Mapping[registry.Paper, Sequence[Judged]]


def write_pages(directory: Path, every: AllVerified) -> list[Path]:
    """Write one page per paper and a picture of each worst pair, each file atomically, and return their paths.

    Args:
        directory: Output folder; created if missing.
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
    """The pages as Markdown and the pictures as SVG, by file name; papers sorted by name."""
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
        "derived for the neighbouring datasets that the claim is about, and a pair of neighbours with a larger loss is "
        "sought. A system that fails has such a pair, drawn on its paper's page."
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
    """Yield the explanation of the tables' terms, which are those of `privcheck verify`."""
    yield "* *verdict*: at the parameters on the system's page, as `privcheck verify NAME` says it. *Holds, proved* is"
    yield "  for all parameters, *holds, checked* for these, *holds, given* a name provided that its author's"
    yield (
        "  statements are true. *Fails, witness* names a pair of neighbouring datasets that loses more than the claim."
    )
    yield "* *text*: its origin. *Printed* is the paper's text, *published code* its authors' program:"
    yield "  only these are verdicts on a paper. *Repaired* is a text with a change that the verdict needs,"
    yield "  *reconstructed* has noise or constants that no text states, *own* is an algorithm of this project."
    yield "* *elsewhere*: where the verdict differs, under another reading of the paper or at other parameters."
    yield "* *cost/claim*: the accountant's upper bound over the claim, rounded up. Above 1 nothing is proved."
    yield "* *worst pair/claim*: the loss of the worst known pair over the claim, rounded down. Above 1 the claim is"
    yield "  false."
    yield "* *joint DP*: *follows* by the billboard lemma where the claim holds for the statistics, else *unproved*."
