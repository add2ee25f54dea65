"""The pages of findings are what the verification says now: a page that was typed, or went stale, fails here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main

PAGES = Path(__file__).parents[2] / "docs" / "findings"


@pytest.mark.nightly
def test_the_committed_pages_are_the_generated_ones(tmp_path):
    ended = CliRunner().invoke(main, ["verify", "--all", "--pages", str(tmp_path), "--json"])
    assert ended.exit_code == 1, ended.output
    results = {r["algorithm"]: r["verdict"] for r in json.loads(ended.stdout)["results"]}
    assert results["dp-apvi"] == results["dp-apvi-laplace"] == "holds"
    assert results["dp-lsvi-ucb-pp-as-printed"] == "fails"
    assert {path.name for path in PAGES.iterdir()} == {path.name for path in tmp_path.iterdir()}
    for made in tmp_path.iterdir():
        assert (PAGES / made.name).read_text(encoding="utf-8") == made.read_text(encoding="utf-8"), (
            f"run: privcheck verify --all --pages {PAGES.name}"
        )


def test_pages_are_about_whole_papers(tmp_path):
    refused = CliRunner().invoke(main, ["verify", "dp-apvi", "--pages", str(tmp_path / "pages")])
    assert refused.exit_code == 2
    assert "--all" in refused.output
    assert not (tmp_path / "pages").exists()


def test_no_system_of_the_papers_is_left_without_a_verdict():
    """Three of the gallery are: two prices are their authors' word, that nothing could try, and one is not known."""
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    left = [line for line in index.splitlines() if "is undecided" in line]
    assert [line.split("`")[1] for line in left] == [
        "dp-policy-evaluation",
        "private-q-learning",
        "published-privorl-j",
    ]
    for failing in ("dp-lsvi-ucb-pp-as-printed", "private-ucb-vi-central", "published-ucb-vi-local"):
        row = next(line for line in index.splitlines() if line.startswith(f"| [{failing}]"))
        assert "fails, witness" in row


def test_a_verdict_that_turns_with_the_size_is_shown_at_both():
    page = (PAGES / "shuffle-dp.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| [sdp-pe-as-printed]")]
    assert len(rows) == 1
    assert "holds, checked" in rows[0]
    assert "**fails** at K = 200\u202f000" in rows[0]
    assert "| K = 200\u202f000 | fails, witness | ∞ | ∞ |" in page


def test_the_words_of_a_verdict_are_those_of_the_command():
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    said = CliRunner().invoke(main, ["verify", "dp-apvi"]).output
    row = next(line for line in index.splitlines() if line.startswith("| [dp-apvi]"))
    assert "| holds, proved |" in row
    assert said.startswith("HOLDS, PROVED · dp-apvi")


def test_every_picture_is_shown_and_every_failing_system_has_one():
    pages = "\n".join(path.read_text(encoding="utf-8") for path in PAGES.glob("*.md"))
    pictures = {path.name for path in PAGES.glob("*.svg")}
    assert {name for name in pictures if f"]({name})" in pages} == pictures
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    failing = {line.split("]")[0][3:] for line in index.splitlines() if "| fails, witness |" in line}
    assert len(failing) > 8
    assert {f"{name}.svg" for name in failing} <= pictures
