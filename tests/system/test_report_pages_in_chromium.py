"""Chromium measures the pages of reports: short enough to read, no wider than the screen, light and dark."""

import itertools
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import sync_playwright

from accessibility import violations
from privcheck import api
from privcheck.cli.main import main
from privcheck.reports.files import load_report
from privcheck.reports.html import render_html

DATA = Path(__file__).parents[1] / "unit" / "data"
NAMES = ("chromium", "chromium-browser", "google-chrome")
MOST = {1366: 4_000, 390: 9_000}  # pixels high, by the screen's width
SCREENS = list(itertools.product(MOST, ["light", "dark"]))


@pytest.fixture(scope="module")
def chromium():
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, "expected Debian's package chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])  # as root there is none
        yield browser
        browser.close()


def measure(chromium, path, width, scheme):
    """Returns a page's height, by how much it is wider than the screen, its complaints, and its background."""
    context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    try:
        page, complaints = context.new_page(), []
        page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
        page.goto(path.as_uri())
        high, wide, paper = page.evaluate(
            "[document.documentElement.scrollHeight, document.documentElement.scrollWidth,"
            " getComputedStyle(document.body).backgroundColor]"
        )
        return high, wide - width, complaints + violations(page), paper
    finally:
        context.close()


def check(chromium, path, *, most=MOST):
    for width, scheme in SCREENS:
        high, over, complaints, paper = measure(chromium, path, width, scheme)
        assert complaints == []
        assert over == 0, f"{over} pixels wider than {width}"
        assert high <= most[width], f"{high} pixels at {width}"
        assert (paper == "rgb(25, 26, 28)") == (scheme == "dark")


@pytest.mark.parametrize("name", ["report_holds", "report_fails"])
def test_stored_reports(chromium, tmp_path, name):
    path = tmp_path / "report.html"
    path.write_text(render_html(load_report(DATA / f"{name}.json")), encoding="utf-8")
    check(chromium, path)


@pytest.mark.slow
def test_the_demonstration(chromium, tmp_path):
    """`make demo`, the first page that anybody sees."""
    ended = CliRunner().invoke(main, ["check", "dp-apvi", "--data", "icu-sepsis", "--out", str(tmp_path / "out")])
    assert ended.exit_code == 0, ended.output
    check(chromium, tmp_path / "out" / "report.html")


def test_a_page_that_is_too_long_or_too_wide_would_be_seen(chromium, tmp_path):
    path = tmp_path / "report.html"
    path.write_text('<body><div style="width: 2000px; height: 12000px"></div>', encoding="utf-8")
    high, over, _, _ = measure(chromium, path, 390, "light")
    assert high > MOST[390]
    assert over > 0


def test_links_unfold_what_they_lead_to_and_what_is_unfolded_fits_a_phone(chromium, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render_html(load_report(DATA / "report_holds.json")), encoding="utf-8")
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(path.as_uri())
    assert "A weak guarantee" in page.inner_text("section.verdict")  # ε = 6.573
    assert not page.is_visible("#derivation ol")
    page.click("nav.contents a:text-is('Derivation')")
    assert page.is_visible("#derivation ol")
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    cut = "[...document.querySelectorAll('.table .scroll')].filter(box => box.scrollWidth > box.clientWidth)"
    assert page.evaluate(f"{cut}.length > 0")
    shades = page.evaluate(f"{cut}.map(box => getComputedStyle(box).backgroundImage)")  # at the edge that cuts it
    assert all(shade.count("linear-gradient") == 4 for shade in shades)
    context.close()


def test_the_card_of_a_published_policy_prints_on_one_page(chromium, tmp_path):
    """With a warning, a receipt's lines left out, and as much as a publisher is likely to say."""
    mine, out = tmp_path / "mine", tmp_path / "out"
    api.run("dp-apvi", env="riverswim", H=3, n=20, noise="release", out=mine)
    record = json.loads((mine / "policy.json").read_text(encoding="utf-8"))
    warning = "S=6 and A=2 taken from the largest ids in the data, which a single user can change: no noise covers that"
    (mine / "policy.json").write_text(json.dumps({**record, "warnings": [warning]}), encoding="utf-8")
    sentence = "adults with sepsis in intensive care whose stay began in one of the two hospitals of the region " * 2
    api.publish(
        mine, out=out, learned_for=sentence.strip(), not_for=[sentence.strip()] * 3, dated="2026-11-24",
        accept_uncovered=True,
    )  # fmt: skip
    page = chromium.new_page(viewport={"width": 390, "height": 800})
    try:
        page.goto((out / "card.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert page.evaluate("document.querySelector('.verdict').getBoundingClientRect().top") < 120
        pdf = page.pdf(prefer_css_page_size=True)
    finally:
        page.close()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
