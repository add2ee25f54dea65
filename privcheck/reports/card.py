"""The card of a published policy: one page in plain words, as HTML and as Markdown from the same lines.

It states what the policy is, for whom it was learned, who is protected and how strongly, what it was compared with,
what it must not be used for, and how to check the files. Its numbers are functions of the releases or public facts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from privcheck.reports.markup import environment
from privcheck.reports.promise import Strength, grade
from privcheck.reports.values import PolicyRecord, PublishedGuarantee, Ran, RanOnline
from privcheck.reports.wording import as_sentence, capitalise, figure, percent, spell_out, strip_controls
from privcheck.terms.unit import RelationName, TrustModel

_CODE: Final = "`"  # around what is shown as code, in the lines of a card
_MARKDOWN: Final = re.compile(r"([\\*_\[\]<>#|!~&])")
_UP: Final = 1 + 2.0**-50  # more than the rounding error of one exponential
_LARGEST: Final = 20.0  # ε beyond which a factor on odds says nothing
_CHANGED: Final[dict[RelationName, str]] = {
    "replace-one": "the records of one {who} said anything else",
    "replace-one-same-start": (
        "the records of one {who} said anything else after their first state and action, which are not protected"
    ),
    "add-remove": "one {who} were left out, or came in",
    "zero-out": "the records of one {who} were blank",
}
_DRAWN: Final[dict[TrustModel, str]] = {
    "central": "The holder of the data saw them all and added the noise",
    "joint": "The holder of the data saw them all and added the noise",
    "shuffle": "Each {who} added noise, and a shuffler, which has to be trusted, hid who sent what",
    "local": "Each {who} added noise before anything was sent",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSection:
    """A heading with a few lines; text between two backticks in a line is code."""

    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Content of both forms of a card.

    Attributes:
        title: The published policy in words.
        dated: Day of publication, or empty.
        strength: Strength of the guarantee.
        verdict: The verdict in short, at the top.
        meaning: Its meaning for one person.
        sections: The rest.
        sums: Files with their SHA-256.
    """

    title: str
    dated: str
    strength: Strength
    verdict: str
    meaning: tuple[str, ...]
    sections: tuple[CardSection, ...]
    sums: tuple[tuple[str, str], ...]


def write_card(
    record: PolicyRecord, guarantee: PublishedGuarantee, run: Ran | RanOnline, *, title: str, source: str,
    learned_for: str, not_for: Sequence[str], dated: str, sums: Sequence[tuple[str, str]],
) -> Card:  # fmt: skip
    """Write the card of a policy that may be published.

    Args:
        record: Record of the policy.
        guarantee: Content of guarantee.json, with a finite ε.
        run: Run that learned the policy; its remarks and true values, if a model gives them, are shown.
        title: Title of the algorithm.
        source: Source of the algorithm.
        learned_for: Intended use, as stated by the publisher; `not_for` and `dated` are also the publisher's.
        not_for: Further uses that are ruled out.
        dated: Day of publication, or empty.
        sums: Files with their SHA-256.
    """
    cost, who = guarantee.cost, _plain(guarantee.unit.who)
    assert cost.epsilon is not None
    strength = grade(cost.epsilon, cost.delta)
    return Card(
        title=f"A policy of {record.steps} steps, {_inputs(record)} and {record.actions} actions",
        dated=dated,
        strength=strength,
        verdict=f"May be published. The protection of one {who} is {strength}.",
        meaning=tuple(_meaning(guarantee, who)),
        sections=(
            CardSection(heading="What it is", lines=tuple(_about(record, run, title, source, learned_for))),
            CardSection(
                heading="Who is protected", lines=tuple(_protected(guarantee, who, withheld=run.episodes is None))
            ),
            CardSection(heading="What it was compared with", lines=tuple(_compared(record, guarantee, run))),
            CardSection(heading="What it must not be used for", lines=tuple(_limits(record, run, who, not_for))),
            CardSection(heading="How to check it", lines=tuple(_checks(record, guarantee))),
        ),
        sums=tuple(sums),
    )


def card_page(card: Card) -> str:
    """The card as a stand-alone HTML page, which prints on one sheet."""
    template = environment("privcheck.reports").get_template("card.html.j2")
    return template.render(card=card, line=_as_html)


def card_text(card: Card) -> str:
    """The card as Markdown."""
    lines = [f"# {_as_markdown(card.title)}", "", f"**{_as_markdown(card.verdict)}**", ""]
    lines += [part for text in card.meaning for part in (_as_markdown(text), "")]
    if card.dated:
        lines += [f"Published on {card.dated}.", ""]
    for section in card.sections:
        lines += [f"## {section.heading}", "", *(f"* {_as_markdown(text)}" for text in section.lines), ""]
    lines += ["| file | SHA-256 |", "| --- | --- |", *(f"| `{name}` | `{sum_}` |" for name, sum_ in card.sums)]
    return "\n".join(lines) + "\n"


def _meaning(guarantee: PublishedGuarantee, who: str) -> Iterator[str]:
    cost = guarantee.cost
    right = percent(guarantee.guessed_right, rounding="up")
    yield (
        f"Suppose somebody knows everything but which of two records one {who} has, and takes both for equally likely. "
        f"Without this policy they guess right 50 % of the time; with everything that was released, at most {right}."
    )
    assert cost.epsilon is not None
    formal = f"ε = {figure(cost.epsilon, rounding='up')}"
    formal += f" at δ = {figure(cost.delta, rounding='up')}" if cost.delta else " (pure)"
    formal += f", ρ = {figure(cost.rho, rounding='up')}" if cost.rho is not None else ""
    yield f"In formal terms, {formal}."
    if cost.delta == 0 and cost.epsilon < _LARGEST:
        factor = figure(math.exp(cost.epsilon) * _UP, rounding="up")
        yield f"The odds of any belief about one {who} change by a factor of at most {factor}."


def _about(record: PolicyRecord, run: Ran | RanOnline, title: str, source: str, learned_for: str) -> Iterator[str]:
    if record.form is None:
        yield "For each step and state it gives the probability of each action."
    else:
        yield "From an observation it gives the probability of each action; `policy.json` says in which form."
    of = f"of {figure(run.episodes)} " if run.episodes is not None else "of a private number of "
    people = "simulated users" if run.unit is not None and run.unit.basis == "simulation" else "episodes"
    yield (
        f"Learned by {_plain(record.algorithm)} ({_plain(title)}; {_plain(source)}) from the records {of}{people}: "
        f"{_plain(record.learned_from)}."
    )
    yield f"For: {_plain(as_sentence(learned_for))}" if learned_for else "For whom: the publisher does not say."
    if run.did_not_learn is not None:
        yield f"Nothing was learned: {_plain(record.algorithm)} {_plain(run.did_not_learn.words)}."
    for remark in run.remarks if isinstance(run, Ran) else ():
        yield f"{_plain(remark.title)}. {_plain(remark.text)}"


def _inputs(record: PolicyRecord) -> str:
    return f"{record.states} states" if record.form is None else f"{record.form['inputs']} observed numbers"


def _protected(guarantee: PublishedGuarantee, who: str, *, withheld: bool) -> Iterator[str]:
    unit = guarantee.unit
    assert unit.relation is not None
    assert unit.model is not None
    several = "record" if unit.trajectories == 1 else f"up to {unit.trajectories} records together"
    changed = _CHANGED[unit.relation].format(who=who)
    if unit.relation != "add-remove":
        hidden = "not hidden by noise, and in none of these files" if withheld else "not hidden"
        changed += f". The number of people in the data is {hidden}"
    yield (
        f"Each {who}, with their {several}. The bound above compares what was released with what would have been "
        f"released if {changed}."
    )
    yield f"The definition of one {who} was stated by: {_plain(unit.stated_by).rstrip('.')}."
    yield f"{_DRAWN[unit.model].format(who=who)} ({_plain(guarantee.noise)})."
    given = guarantee.verdict.given
    rests = f"The claim {_plain(spell_out(guarantee.claim))} was judged, and holds ({guarantee.verdict.method}"
    yield f"{rests}{', given ' + _plain(', '.join(given)) if given else ''})."
    yield (
        f"{len(guarantee.rests_on)} facts are assumed or stated and not proved; `guarantee.json` lists each with its "
        f"source."
    )
    yield from (f"No noise covers this: {_plain(as_sentence(warning))}" for warning in guarantee.not_covered)
    if guarantee.receipt is not None:
        yield f"Charged to a budget before any noise was drawn: `{guarantee.receipt}` is the signed receipt."


def _compared(record: PolicyRecord, guarantee: PublishedGuarantee, run: Ran | RanOnline) -> Iterator[str]:
    yield (
        f"The agent with itself, on made-up data that differ in one {_plain(guarantee.unit.who)}, behind the same "
        f"noisy releases. The same in both: {_plain(guarantee.compared)}."
    )
    value = record.value
    if value.true is None:
        yield "Its value was compared neither with another policy nor with current practice: the true value is unknown."
    else:
        known = run.value.references if isinstance(run, Ran) else {"optimal policy": run.optimal_value}
        others = ", ".join(f"{_plain(name)} {figure(worth)}" for name, worth in known.items())
        yield f"In the simulated world its true value is {figure(value.true)}{f' ({others})' if others else ''}."
    if value.claimed is not None:
        yield f"The agent's own estimate from the noisy releases is {figure(value.claimed)}; it is no lower bound."


def _limits(record: PolicyRecord, run: Ran | RanOnline, who: str, not_for: Sequence[str]) -> Iterator[str]:
    yield (
        "To decide about a person without somebody accountable for the decision: the policy was never tried on people."
    )
    if run.did_not_learn is not None:
        yield "For any decision at all: nothing was learned."
    what = "states" if record.form is None else "observations"
    yield f"For other {what}, actions or people than those of {_plain(record.learned_from)}."
    yield f"To conclude that other releases about the same people are private: what one {who} loses adds up."
    yield from (_plain(as_sentence(capitalise(text))) for text in not_for)


def _checks(record: PolicyRecord, guarantee: PublishedGuarantee) -> Iterator[str]:
    yield "Whole files: `sha256sum --check SHA256SUMS`. Ask the publisher for the digest of `SHA256SUMS` itself."
    if record.form is None:
        yield (
            'With NumPy alone: `numpy.load("policy.npz")["probabilities"][step, state].argmax()` is the code of the '
            "likeliest action; `policy.json` has the labels."
        )
    else:
        yield (
            'With NumPy alone: `numpy.load("policy.npz")["parameters"]` are the parameters of the form in '
            "`policy.json`."
        )
    yield f"The record of the releases, `{guarantee.record.file}`, ends in `{guarantee.record.head}`."
    if guarantee.receipt is not None:
        yield f"`privcheck ledger receipt verify {guarantee.receipt} --key KEY` checks the receipt."


def _plain(text: str) -> str:
    """The text without control characters and without backticks, which would mark code."""
    return strip_controls(text).replace(_CODE, "'")


def _as_html(text: str) -> Markup:
    parts = strip_controls(text).split(_CODE)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def _as_markdown(text: str) -> str:
    parts = strip_controls(text).split(_CODE)
    return "".join(f"`{part}`" if index % 2 else _MARKDOWN.sub(r"\\\1", part) for index, part in enumerate(parts))
