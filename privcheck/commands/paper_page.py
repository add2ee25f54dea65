"""The page of findings of one paper: what it claims, what holds, and each system with its costs and its worst pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from privcheck import registry
from privcheck.accounting import claim_epsilon
from privcheck.commands.declared import calibrate_noise, price_releases
from privcheck.commands.judged import COLUMNS, Judged, say_columns, say_parameters, say_ratios, say_turns, say_verdict
from privcheck.commands.setting import Chosen
from privcheck.errors import ParameterError
from privcheck.guarantees import PureDP, claimed_delta
from privcheck.reports.statements import rank, say_origin, say_statements
from privcheck.reports.wording import capitalise, figure, spell_out
from privcheck.statements import KINDS, Statement

WRITTEN = (
    "Written by `privcheck verify --all --pages docs/findings`: every figure is computed from the declarations, none "
    "is typed."
)
_DELTA = 1e-5  # where the claim itself has no δ
_WORDS = (
    "**How to read the tables.** A system is judged by what it publishes, at the parameters given with it. *Holds, "
    "proved*: for all parameters. *Holds, checked*: at these. *Holds, given* a name: as long as what its author "
    "states is true. *Fails, witness*: two datasets that differ in one user are told apart better than the claim "
    "allows, computed exactly. *Cost/claim* is the accountant's upper bound over the claim, rounded up; *worst "
    "pair/claim* is what the worst pair known loses, rounded down. A loose step that another makes up for is a "
    "finding, not a failure. Joint DP *follows* from the published statistics by the billboard lemma where their "
    "claim holds; otherwise it is *unproved*, and never refuted by them."
)


def paper_page(paper: registry.Paper, systems: Sequence[Judged]) -> str:
    """Returns the page as Markdown."""
    return "\n".join(_page(paper, systems)) + "\n"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields a Markdown table line by line."""
    for row in (heading, ["---"] * len(heading), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def count_verdicts(systems: Sequence[Judged]) -> str:
    """Returns how many systems hold, fail and are undecided at their defaults: the authors' own apart from the others'.

    Only what is printed or published counts as a verdict on a paper.
    """
    said = []
    for kind, words in KINDS.items():
        here = [one for one in systems if one.result.origin is not None and one.result.origin.kind == kind]
        if here:
            said.append(f"{kind} ({words}): {_say_counts(here)}")
    return f"At the parameters given with each, by whose text it is: {'; '.join(said)}."


def _say_counts(systems: Sequence[Judged]) -> str:
    verdicts: list[str] = [one.result.verdict for one in systems]
    kinds = (("holds", "holds", "hold"), ("fails", "fails", "fail"), ("undecided", "is open", "are open"))
    counts = [(verdicts.count(kind), one, several) for kind, one, several in kinds]
    return " and ".join(f"{count} {one if count == 1 else several}" for count, one, several in counts if count)


def _say_all_turns(systems: Sequence[Judged]) -> str:
    """Returns for which systems the verdict is another elsewhere, and where; empty where it never is."""
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
    """Yields every printed statement with its verdict, system by system."""
    rows = [
        (judged.statement.name, f"[{one.name}](#{one.name})", judged.standing, judged.why)
        for one in systems
        for judged in sorted(one.result.statements, key=lambda judged: rank(judged.standing))
    ]
    if rows:
        yield (
            "**Statement by statement.** A system's headline follows from this table: it *fails* where one of its "
            "statements about the published statistics is refuted, *holds* where they all hold, and says nothing "
            "of the paper where none of them applies to it."
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
        "with its source. Whoever finds a system misread can change its `declaration.py` in a few lines and run the "
        "command again. A correction with the place in the text that contradicts us changes this page, and the "
        "changelog says so."
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
    yield ""
    if result.witness is not None:
        whole = f"`privcheck verify {result.algorithm} --json` prints it whole"
        yield f"The worst pair known: {result.witness.words}. {capitalise(whole)}."
        yield ""
        if result.witness.pair is not None:
            yield f"![what the two users do, and their loss beside the claim]({result.algorithm}.svg)"
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
    """Yields the verdict under every reading of every choice, the others at their default, and at other parameters."""
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
    """Returns what the least noise is for: where the claim has no δ, a weaker promise than the claim's."""
    claim = setting.declared.claim.guarantee
    at = f"ε = {figure(epsilon, rounding='up')} at δ = {figure(delta)}"
    if claimed_delta(claim) is not None and not isinstance(claim, PureDP):
        return f"What the claim promises, {at}, needs this much noise:"
    if isinstance(claim, PureDP):
        return (
            f"The claim is pure, δ = 0. Who settles for {at}, which is less than the claim promises, needs this much "
            "noise; it is no repair of the claim itself:"
        )
    return f"At {at}, which follows from the claim, this much noise is needed; the claim itself promises more:"


def _delta_of(setting: Chosen) -> float:
    claim = setting.declared.claim.guarantee
    claimed = None if isinstance(claim, PureDP) else claimed_delta(claim)
    return _DELTA if claimed is None else claimed.number(setting.values, rounding="down")
