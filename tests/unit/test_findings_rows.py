"""Rows of findings on a report's page: those that differ in a few words share one."""

from __future__ import annotations

from dataclasses import replace

import small_reports as small
from privcheck.reports.tables import findings_table


def rows(*found: tuple[str, str, str, str]) -> list[list[str]]:
    report = small.whole("fails")
    findings = tuple(replace(report.verify.findings[0], severity=s, code=c, where=w, message=m) for s, c, w, m in found)
    table = findings_table(replace(report, verify=replace(report.verify, findings=findings)))
    return [[cell.text for cell in row] for row in table.rows] if table else []


def test_findings_that_differ_in_a_number_share_a_row_with_every_number():
    said = "this release costs {} times the share that the paper allots to it"
    found = rows(
        ("theoretical", "claim-slack", "claim", "the releases cost half of the claim"),
        *(("critical", "budget-exceeded", where, said.format(x)) for where, x in (("a", 1.9), ("b", 1.95), ("c", 2))),
    )
    assert found == [
        [
            "critical",
            "budget-exceeded",
            "a, b, c",
            f"{said.format(1.9)}. Elsewhere: b: “1.95” in place of “1.9”; c: “2” in place of “1.9”",
        ],
        ["theoretical", "claim-slack", "claim", "the releases cost half of the claim"],
    ]


def test_other_codes_severities_and_sentences_have_rows_of_their_own():
    said = "one sentence of a few words"
    found = rows(
        ("critical", "x", "a", said),
        ("critical", "x", "b", said),
        ("critical", "y", "a", said),
        ("negligible", "x", "a", said),
        ("critical", "x", "a", "what is said here has nothing in common"),
    )
    assert [row[:3] for row in found] == [
        ["critical", "x", "a, b"],
        ["critical", "y", "a"],
        ["critical", "x", "a"],
        ["negligible", "x", "a"],
    ]
    assert found[0][3] == said
    assert rows() == []


def test_replaced_formulas_are_quoted_whole():
    said = "{} is larger than any pair of neighbours shows, {} (of both {}): noise is {} times what it should be here"
    found = rows(
        ("negligible", "slack", "a", said.format("2H", "2√(H − 1)/H", 0.5, 2)),
        ("negligible", "slack", "b", said.format("√H", "√(4H − 4)", 0.5, 4)),
        ("negligible", "slack", "c", said.format("√H", "√(4H − 4)", 0.5, 4)),
        ("negligible", "slack", "d", said.format("2H", "2√(H − 1)/H", 0.5, 2) + " and more"),
    )
    assert [row[2] for row in found] == ["a, b, c", "d"]
    assert found[0][3].endswith(
        "Elsewhere: b, c: “√H” in place of “2H”, “√(4H − 4)” in place of “2√(H − 1)/H”, “4” in place of “2”"
    )
