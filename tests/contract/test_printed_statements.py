"""Whose text a declaration is, and which printed statement its verdict is about: a page says no more than that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privcheck.declare.statements import KINDS, Origin, Statement, judge_statements
from privcheck.errors import DeclarationError
from privcheck.runtime import registry

PAGES = Path(__file__).parents[2] / "docs" / "findings"
DECLARED = [name for name in registry.names("algorithms") if registry.algorithm(name).declare is not None]
JUDGED = [name for name in DECLARED if registry.algorithm(name).paper is not None]
SENTENCE = re.compile(r"[.!?]\s+(?=[A-Z“])")


def _declared(name, **readings):
    declare = registry.algorithm(name).declare
    assert declare is not None
    return declare(readings)


@pytest.mark.parametrize("name", DECLARED)
def test_everybody_says_whose_text_it_is(name):
    origin = _declared(name).origin
    assert origin is not None
    assert origin.kind in KINDS
    assert (registry.algorithm(name).paper is None) <= (origin.kind == "own")


@pytest.mark.parametrize("name", JUDGED)
def test_a_quotation_has_two_sentences_at_most(name):
    for printed in _declared(name).claim.statements:
        assert len(SENTENCE.findall(printed.quotation)) <= 1, printed.quotation
        assert len(printed.quotation) <= 400


def test_what_is_ours_is_no_verdict_on_a_paper():
    """Noise that was invented here so that a claim is true is never counted with what a paper prints."""
    for name in ("ldp-obi", "pucb", "dp-ucbvi-central", "dp-ucbvi-local", "luyo-lsvi-ucb", "ngo-lsvi-ucb"):
        assert _declared(name).origin.kind == "reconstructed", name
    assert _declared("dp-lsvi-ucb-pp").origin.kind == "repaired"
    assert _declared("sdp-pe").origin.kind == "repaired"
    assert _declared("dp-apvi").origin.kind == "printed"
    assert _declared("dp-apvi", rewards="released").origin.kind == "repaired"


def test_a_published_program_names_repository_commit_file_and_lines():
    published = [name for name in JUDGED if _declared(name).origin.kind == "published code"]
    assert len(published) >= 4
    for name in published:
        text = _declared(name).origin.text
        assert re.search(r"github\.com/[\w/.-]+, commit [0-9a-f]{7,}, [\w/.-]+\.py.*\blines? \d+", text), text


def _page(paper):
    return (PAGES / f"{paper}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", sorted({registry.algorithm(name).paper.name for name in JUDGED}))
def test_a_page_counts_by_class(paper):
    """The sentence of counts is that of the table's rows, recounted from the text of the page."""
    text = _page(paper)
    rows = re.findall(r"^\| \[[a-z0-9-]+\]\(#[a-z0-9-]+\) \|(.*)\|$", text, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split("|")] for row in rows]
    cells = [row for row in cells if len(row) == 7]  # those of the table of systems
    told = re.search(r"by origin of the text: (.*?)\.(?: |$)", text, re.MULTILINE)
    assert told is not None
    for part in told[1].split("; "):
        kind = part.split(" (")[0]
        for count, word in re.findall(r"(\d+) (holds?|fails?|is open|are open)", part.split("): ")[1]):
            start = {"h": "hold", "f": "fail", "i": "undecided", "a": "undecided"}[word[0]]
            assert sum(row[1] == kind and row[2].startswith(start) for row in cells) == int(count), (kind, word)
    assert sum(int(count) for count in re.findall(r"(\d+) (?:hold|fail|is open|are open)", told[1])) == len(cells)
    assert "How to contest this page" in text


def test_what_fails_stands_out_only_where_a_paper_is_judged():
    assert "**fails** at noise" not in _page("episodic-mdps")
    assert "| Corollary 5.2 | [private-ucb-vi-central](#private-ucb-vi-central) | unproved |" in _page("episodic-mdps")
    assert "| Lemma 5.1 | [private-ucb-vi-central](#private-ucb-vi-central) | refuted |" in _page("episodic-mdps")


STATED = Statement(name="Lemma 1", quotation="It is private.", where="section 1", neighbours="two users")
ACTED = Statement(name="Corollary 2", quotation="So is it.", where="section 1", neighbours="two users", about="actions")
PRINTED = Origin(kind="printed", text="a paper")


@pytest.mark.parametrize(
    ("origin", "verdict", "joint", "given", "expected"),
    [
        (PRINTED, "fails", "unproved", (), ("refuted", "unproved")),
        (PRINTED, "holds", "follows", (), ("holds", "holds")),
        (PRINTED, "holds", "follows", ("a count",), ("holds, given", "holds, given")),
        (PRINTED, "undecided", "unproved", (), ("undecided", "unproved")),
        (None, "fails", "refuted", (), ("refuted", "refuted")),
        (Origin(kind="repaired", text="a", changed="b"), "fails", "unproved", (), ("not applicable",) * 2),
        (Origin(kind="reconstructed", text="a", changed="b"), "holds", "follows", (), ("not applicable",) * 2),
    ],
)
def test_a_statement_follows_from_the_verdict_by_a_rule(origin, verdict, joint, given, expected):
    judged = judge_statements((STATED, ACTED), origin, verdict=verdict, joint=joint, given=given)
    assert tuple(one.standing for one in judged) == expected


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "invented"}, "expected one of"),
        ({"text": " "}, "expected a text"),
        ({"changed": "the noise"}, "expected nothing where the kind is 'printed'"),
        ({"kind": "repaired"}, "expected what is not in the text, and why"),
    ],
)
def test_an_origin_that_says_nothing_is_refused(fields, message):
    with pytest.raises(DeclarationError, match=message):
        Origin(**{"kind": "printed", "text": "a paper", **fields})
