"""Chromium walks the pages: laptop and phone, light and dark; no complaints, nothing wider than a phone."""

import itertools
import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

from privcheck.ledger import Book, create_store
from privcheck.service import demo
from privcheck.service.app import Settings, create_app
from served import served

NAMES = ("chromium", "chromium-browser", "google-chrome")
SCREENS = list(itertools.product([(1366, 800), (390, 844)], ["light", "dark"]))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("store") / "demo.db")
    store = create_store(url)
    book, token = Book.init(store)
    demo.fill(book)
    store.close()
    with served(create_app(Settings(store=url, rate=1e6, burst=10**6, processes=1, calculation_seconds=30))) as client:
        yield str(client.base_url).rstrip("/"), token


@pytest.fixture(scope="module")
def chromium():
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, "expected Debian's package chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])  # as root there is none
        yield browser
        browser.close()


@contextmanager
def looking(chromium, screen=(1366, 800), scheme="light"):
    """Yields a tab and what Chromium complained about: errors of pages, blocked loads, broken policies."""
    width, height = screen
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    complaints = []
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    try:
        yield page, complaints
    finally:
        context.close()


def check(page, complaints):
    """Asserts that a page is one that Chromium has nothing against, and that fits its screen."""
    assert complaints == [], page.url
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0, f"{page.url} is {wide} pixels wider than the screen"
    assert page.locator("h1, h2").count() > 0, page.url


def log_in(page, base, token):
    page.goto(base + "/")
    assert page.url == f"{base}/login"
    page.fill("input[name=token]", token)
    page.click("main button")


@pytest.mark.parametrize(("screen", "scheme"), SCREENS)
def test_every_page_on_every_screen(service, chromium, screen, scheme):
    base, token = service
    with looking(chromium, screen, scheme) as (page, complaints):
        page.goto(base + "/")
        check(page, complaints)
        log_in(page, base, token)
        assert page.url == base + "/"
        check(page, complaints)
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(25, 26, 28)"
        assert dark == (scheme == "dark")
        page.click("nav button")
        assert page.url == f"{base}/login"
        check(page, complaints)


def test_the_walk_would_see_what_the_policy_forbids_and_what_is_too_wide(service, chromium):
    base, _ = service
    with looking(chromium, (390, 844)) as (page, complaints):

        def spoil(route):
            answer = route.fetch()
            route.fulfill(response=answer, body=answer.text().replace("<main>", '<main style="width: 600px">'))

        page.route("**/login", spoil)
        page.goto(base + "/login")
        assert any("Content Security Policy" in said for said in complaints), complaints
        with pytest.raises(AssertionError):
            check(page, complaints)
        page.evaluate("document.querySelector('main').style.width = '600px'")
        with pytest.raises(AssertionError, match="wider than the screen"):
            check(page, [])
