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
            f"{said.format(1.9)}; likewise b: this release costs 1.95; c: this release costs 2",
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
    assert found[0][3] == f"{said}; likewise b"
    assert rows() == []
