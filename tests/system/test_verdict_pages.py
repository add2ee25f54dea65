"""`privcheck verify NAME --out FILE`: the verdict alone as a page or JSON, refused at the door or written whole."""

import html
import json
import re

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main

FAILS = "private-ucb-vi-central"


def verify(*arguments):
    return CliRunner().invoke(main, ["verify", *map(str, arguments)])


def words(page):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.split("</style>")[1])).split())


def test_a_claim_that_fails_has_a_page_with_the_reason_and_the_claim_beside_the_charge(tmp_path):
    page = tmp_path / "new" / "fails.html"
    said = verify(FAILS, "--out", page)
    assert said.exit_code == 1
    assert f"page: {page}" in said.stderr
    assert said.stdout.startswith(f"FAILS · {FAILS}")
    text = words(page.read_text(encoding="utf-8"))
    for told in (
        "Fails", "Cost over claim: 1.95", "Why: the noise is sized for another neighbouring relation than the claim's.",
        "claimed 1; accountant: at most 1.95; worst known pair: at least 1.95", "where the claim allows 73.1 %",
        "initial = fixed", "Claimed ε = 1 pure, δ = 0", "Loss at most ε ≤ 1.95 pure, δ = 0, accountant",
    ):  # fmt: skip
        assert told in text, told


@pytest.mark.parametrize(("name", "headline"), [("dp-apvi", "Holds, proved"), ("sparse-vector-4", "Fails")])
def test_every_verdict_has_a_page_and_a_document(tmp_path, name, headline):
    code = 0 if headline.startswith("Holds") else 1
    assert verify(name, "--out", tmp_path / "a.html").exit_code == code
    assert words((tmp_path / "a.html").read_text(encoding="utf-8")).count(headline)
    assert verify(name, "--out", tmp_path / "a.json").exit_code == code
    told = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert told["verify"]["verdict"] == ("holds" if code == 0 else "fails")
    assert told["audit"] is None
    assert told["run"] is None
    assert told["budget"]["guarantee"]


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.commands.declarations.verify_claim", lambda *_: pytest.fail("judged"))
    for place in (tmp_path, tmp_path / "page.txt", tmp_path / "page"):
        said = verify(FAILS, "--out", place)
        assert said.exit_code == 2
        assert "a name that ends in .json or .html" in said.stderr
    assert verify("--all", "--out", tmp_path / "x.html").exit_code == 2


def test_a_check_says_at_once_what_the_agent_refuses(tmp_path, monkeypatch):
    monkeypatch.setattr("privcheck.commands.checks.verify_claim", lambda *_: pytest.fail("judged"))
    said = CliRunner().invoke(main, ["check", FAILS, "--env", "icu-sepsis", "--out", str(tmp_path / "out")])
    assert said.exit_code == 2
    assert "use --set initial=any" in said.stderr
