"""Chromium walks the pages: laptop and phone, light and dark; no complaints, nothing wider than a phone."""

import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import sync_playwright

from accessibility import violations
from privcheck.cli import demo
from privcheck.ledger import Book, create_store
from privcheck.service.app import Settings, create_app
from served import served

NAMES = ("chromium", "chromium-browser", "google-chrome")
PHONE, LAPTOP = (390, 844), (1366, 800)
SCREENS = [
    pytest.param(PHONE, "dark", id="phone-dark"),
    *(
        pytest.param(size, scheme, id=f"{name}-{scheme}", marks=pytest.mark.nightly)
        for name, size, scheme in (("phone", PHONE, "light"), ("laptop", LAPTOP, "light"), ("laptop", LAPTOP, "dark"))
    ),
]


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
def looking(chromium, screen=LAPTOP, scheme="light"):
    """Yields a tab and what Chromium complained about: errors of pages, blocked loads, broken policies."""
    width, height = screen
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    complaints = []
    page = context.new_page()
    page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.extend(_failure(request)))
    try:
        yield page, complaints
    finally:
        context.close()


def _failure(request):
    """Returns what failed, if it was not that another page was asked for before it came."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]


def check(page, complaints):
    """Asserts that a page is one that Chromium has nothing against, and that fits its screen."""
    assert complaints == [], page.url
    assert violations(page) == [], page.url
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0, f"{page.url} is {wide} pixels wider than the screen"
    assert page.locator("h1, h2").count() > 0, page.url


def follow(page, selector):
    """Clicks what leads to another page, and waits for that."""
    with page.expect_navigation():
        page.click(selector)


def settle(page):
    """Loads a page again while the process that calculates begins."""
    for _ in range(40):
        if "load the page again" not in page.inner_text("main"):
            return
        page.reload()


def log_in(page, base, token):
    page.goto(base + "/")
    assert page.url == f"{base}/login"
    page.fill("input[name=token]", token)
    follow(page, "main button")


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
        follow(page, "a:text-is('trips')")
        settle(page)
        check(page, complaints)
        drawn = [one.bounding_box() for one in page.locator("figure svg[aria-label]").all() if one.is_visible()]
        assert [box["width"] > 300 for box in drawn] == [True, True]  # the line and the curve, at one size each
        follow(page, "table.charges a >> nth=0")
        check(page, complaints)
        assert "Reserved" in page.inner_text("section.verdict")
        page.go_back()
        follow(page, "a:text-is('Statement to print')")
        check(page, complaints)
        follow(page, "nav a:text-is('Queue')")
        check(page, complaints)
        page.click("summary")
        assert page.is_visible("textarea[name=evidence]")
        check(page, complaints)
        follow(page, "nav a:text-is('What if')")
        check(page, complaints)
        page.select_option("select[name=grant]", "icu-nightly")
        page.select_option("select[name=noise]", "laplace-scale")
        page.fill("input[name=value]", "20")
        page.fill("input[name=unit]", "dataset")
        page.fill("input[name=wanted]", "30")
        follow(page, "main button")
        settle(page)
        check(page, complaints)
        assert "Fits 9 times" in page.inner_text("section.verdict >> nth=0")
        assert "b = 66.66" in page.inner_text("section.least")
        follow(page, "nav button")
        assert page.url == f"{base}/login"
        check(page, complaints)


def test_an_officer_attests_in_the_browser_and_an_error_is_a_page(service, chromium):
    base, token = service
    with looking(chromium, PHONE) as (page, complaints):
        log_in(page, base, token)
        page.goto(base + "/queue")
        assert "2 wait" in page.inner_text("section.verdict")
        page.click("summary")
        page.fill("textarea[name=evidence]", "the scheduler never started it")
        page.click("button:text-is('Release')")
        assert page.url == base + "/queue"  # the box is not ticked, and the browser says so
        page.check("input[name=attest]")
        follow(page, "button:text-is('Release')")
        assert "Released" in page.inner_text("section.verdict")
        follow(page, "nav a:text-is('Queue')")
        assert "1 waits" in page.inner_text("section.verdict")
        check(page, complaints)
        assert page.goto(base + "/datasets/nowhere").status == 404
        assert "Not Found" in page.inner_text("h2")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.context.clear_cookies()
        page.goto(base + "/datasets/trips")
        assert page.url == f"{base}/login?next=/datasets/trips"
        page.fill("input[name=token]", token)
        follow(page, "main button")
        assert page.url == f"{base}/datasets/trips"


def test_the_walk_would_see_what_the_policy_forbids_and_what_is_too_wide(service, chromium):
    base, _ = service
    with looking(chromium, PHONE) as (page, complaints):

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
