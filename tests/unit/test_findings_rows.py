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


def test_equal_findings_share_a_row_and_alike_ones_follow_with_the_clauses_that_differ():
    said = "sensitivity H is of another relation (add or remove); it is too small by {}: derived is {}. It is charged"
    found = rows(
        ("theoretical", "claim-slack", "claim", "the releases cost half of the claim"),
        *(
            ("critical", "wrong-relation", where, said.format(*x))
            for where, x in (
                ("a", (1.9, "2H − 2 (two; or 1: all)")),
                ("b", (2, "2H")),
                ("c", (1.9, "2H − 2 (two; or 1: all)")),
            )
        ),
        ("critical", "wrong-relation", "d", "what is said here has nothing in common"),
    )
    assert found == [
        ["critical", "wrong-relation", "a, c", said.format(1.9, "2H − 2 (two; or 1: all)")],
        ["critical", "wrong-relation", "b", "the same, but it is too small by 2; derived is 2H"],
        ["critical", "wrong-relation", "d", "what is said here has nothing in common"],
        ["theoretical", "claim-slack", "claim", "the releases cost half of the claim"],
    ]


def test_a_finding_of_one_clause_is_said_in_full():
    said = "this release costs {} times the share that the paper allots to it"
    found = rows(*(("critical", "budget-exceeded", where, said.format(x)) for where, x in (("a", 1.9), ("b", 1.95))))
    assert [row[3] for row in found] == [said.format(1.9), said.format(1.95)]


def test_other_codes_and_severities_have_rows_of_their_own():
    said = "one sentence of a few words"
    found = rows(
        ("critical", "x", "a", said), ("critical", "x", "b", said), ("critical", "y", "a", said),
        ("negligible", "x", "a", said),
    )  # fmt: skip
    assert [row[:3] for row in found] == [["critical", "x", "a, b"], ["critical", "y", "a"], ["negligible", "x", "a"]]
    assert found[0][3] == said
    assert rows() == []
