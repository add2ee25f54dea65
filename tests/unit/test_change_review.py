"""SARIF and Markdown of a change's review: required properties, places, and code under review that writes Markdown."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from privcheck.errors import ParameterError
from privcheck.reports.change_review import (
    MARK,
    describe_comment,
    describe_sarif,
    headline,
    notes_of,
    refuse_place,
    say_bound,
)
from privcheck.reports.values import ChangeReview, ReviewBudget, ReviewedTarget, ReviewRound, from_json
from work_trees import check_sarif

BAD = ReviewedTarget(
    kind="test", name="tests/test_a.py::test_count", file="tests/test a.py", line=12,
    through=("tests/test_a.py", "src/noise.py"), verdict="violation", claim="(1)-DP", claimed="ε ≤ 1", lower="ε ≥ 5.5",
    trials=2_000, confidence=0.9998, seed=4, method="guesses of a hidden coin", neighbours="([0, 1], [1, 1])",
    code="def test_witness():\n    pass\n", command="python -m pytest 'tests/test_a.py::test_count'", notes=("a note",),
)  # fmt: skip
PROVED = replace(
    BAD, kind="algorithm", name="mine", view="verify", verdict="fails", lower="", trials=0, confidence=None, code="",
    neighbours="two users", command="privcheck verify mine",
)  # fmt: skip
LATE = ReviewedTarget(
    kind="algorithm", name="mine", view="policy", file="src/mine.py", line=3, through=("src/mine.py",),
    verdict="not audited", reason="the time was over",
)  # fmt: skip
DOUBTED = replace(LATE, view="noise", verdict="undecided", reason="outputs do not repeat")
FINE = replace(BAD, verdict="consistent", lower="ε ≥ 0.7", neighbours="", code="", name="tests/test_a.py::test_fine")
REVIEW = ChangeReview(
    verdict="violation", base="origin/main", merge_base="b" * 40, commit="c" * 40,
    changed=("src/noise.py", "README.md"), beside=("README.md",),
    targets=(BAD, PROVED, DOUBTED, LATE, FINE), untouched=1,
    budget=ReviewBudget(alpha=0.05, run_number=17, share=2.2017e-4, relies_on="the word of the CI system"),
    rounds=(ReviewRound(number=1, alpha=1.1e-4, audits=1, seed=4),), minutes=10.0, seconds=61.2,
    versions={"python": "3.11.9"},
)  # fmt: skip
EMPTY = replace(REVIEW, verdict="nothing touched", targets=(), rounds=(), changed=("README.md",))


def test_sarif_has_a_result_for_each_problem_at_its_line():
    run = check_sarif(describe_sarif(REVIEW))
    assert [(one["ruleId"], one["level"]) for one in run["results"]] == [
        ("privacy-violation", "error"),
        ("privacy-claim-fails", "error"),
        ("privacy-undecided", "warning"),
        ("privacy-not-audited", "warning"),
    ]
    first = run["results"][0]
    place = first["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("tests/test%20a.py", 12)
    for said in ("ε ≥ 5.5", "ε ≤ 1", "([0, 1], [1, 1])", "guesses of a hidden coin", BAD.command):
        assert said in first["message"]["text"]
    prints = [one["partialFingerprints"]["privcheckTarget/v1"] for one in run["results"]]
    assert len(set(prints)) == len(prints)
    assert run["properties"]["share"] == REVIEW.budget.share


def test_a_finding_keeps_its_fingerprint_when_lines_and_bounds_move():
    moved = replace(REVIEW, targets=(replace(BAD, line=99, lower="ε ≥ 4", seed=9),))
    old, new = (check_sarif(describe_sarif(one))["results"][0] for one in (REVIEW, moved))
    assert old["partialFingerprints"] == new["partialFingerprints"]
    assert old["message"] != new["message"]


def test_sarif_of_nothing_is_whole():
    assert check_sarif(describe_sarif(EMPTY))["results"] == []


def test_a_comment_has_the_verdict_first_one_table_and_the_witness():
    text = describe_comment(REVIEW)
    lines = text.splitlines()
    assert lines[0] == MARK
    assert lines[1].startswith("### privcheck: violation: ")
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == 2 + len(REVIEW.targets)
    assert {line.count("|") for line in table} == {5}
    witness = text.partition("#### violation")[2].partition("####")[0]
    for said in (
        "(1)-DP",
        "5.5",
        "([0, 1], [1, 1])",
        "guesses of a hidden coin",
        "`src/noise.py`",
        BAD.command,
        BAD.code,
    ):
        assert said in witness
    assert "#### fails: `mine, verify`" in text
    assert "2 changed files between bbbbbbbbbbbb" in text
    assert "README.md" in text


def test_a_comment_about_nothing_says_that_nothing_was_spent():
    text = describe_comment(EMPTY)
    assert "nothing touched: the change touches nothing that is audited" in text
    assert "| verdict" not in text
    assert "nothing of the α = 0.05" in text
    assert "That rests on" not in text


def test_a_long_table_is_cut_and_says_so():
    many = replace(REVIEW, targets=tuple(replace(FINE, name=f"t{number}") for number in range(100)))
    table = [line for line in describe_comment(many).splitlines() if line.startswith("| ")]
    assert table[-1] == "| … | 60 more | | |"
    assert len(table) == 43


HOSTILE = "x | y ``z`` ` <img src=x> [a](b) @team #1 **b**\n| new | row |\n# head"


@pytest.mark.parametrize("field", ["name", "reason", "claim", "lower", "method", "neighbours", "claimed"])
def test_code_under_review_writes_no_markdown(field):
    """A name, a claim or a pair is shown as it is: no further row, no link, no mention, no tag."""
    text = describe_comment(replace(REVIEW, targets=(replace(BAD, **{field: HOSTILE}),)))
    plain = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)  # without what is code
    assert "<img" not in plain
    assert "@team" not in plain
    assert "](b)" not in plain
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert not [line for line in text.splitlines() if line.startswith("# ")]


def test_code_with_a_fence_does_not_end_its_block():
    code = "def test_witness():\n    x = '''\n```\n<script>\n'''\n"
    text = describe_comment(replace(REVIEW, targets=(replace(BAD, code=code),)))
    block = re.search(r"(`{4,})python\n(.*?)\n\1", text, re.DOTALL)
    assert block is not None
    assert block[2] == code.rstrip("\n")


def test_bounds_are_rounded_to_the_safe_side():
    for alpha in (1e-4, 1.1e-4, 1.0001e-4, 0.0185, 0.5, 9.9e-7, 9.91e-7, 2.0**-45):
        said = say_bound(replace(BAD, confidence=1 - alpha))
        shown = re.search(r"α = ([\d.e-]+)", said)[1]
        assert Fraction(shown) >= Fraction(1 - Fraction(1 - alpha)) * (1 - Fraction(1, 10**9))
        assert Fraction(shown) <= Fraction(alpha) * Fraction(12, 10)


def test_a_reason_stands_in_place_of_a_bound():
    assert say_bound(LATE) == "the time was over"
    assert say_bound(replace(FINE, confidence=None, trials=0, lower="")) == "claimed ε ≤ 1"


def test_headlines_count_verdicts():
    assert headline(REVIEW) == (
        "violation: a privacy claim of this change is broken "
        "(1 violation, 1 fails, 1 undecided, 1 not audited, 1 consistent)"
    )


def test_what_nobody_else_can_repeat_and_what_is_not_followed_is_said():
    notes = "\n".join(notes_of(replace(REVIEW, uncommitted=("a.py",), unfollowed=("b.py:3",))))
    assert "nobody else can repeat this run: a.py" in notes
    assert "not followed: b.py:3" in notes
    assert "the word of the CI system" in notes


def test_a_review_is_read_back_from_its_json():
    assert from_json(ChangeReview, REVIEW.to_dict()) == REVIEW


def test_a_file_that_could_not_be_written_is_refused_before_anything_is_audited(tmp_path):
    refuse_place(tmp_path / "new.sarif")
    for path in (tmp_path, tmp_path / "no" / "x.md"):
        with pytest.raises(ParameterError, match="expected a file in a folder that exists"):
            refuse_place(path)
