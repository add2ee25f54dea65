"""The documentation in Chromium: nothing against it from axe-core, no page wider than its screen, light and dark."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from accessibility import violations

ROOT = Path(__file__).parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome")
PAGES = (
    "index", "own-data", "comparison", "certificates", "lemmas", "notebook", "examples/papers", "examples/agents",
    "findings/index", "reference/api", "reference/commands", "genindex", "search",
)  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(ROOT / "docs"), str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2_000:]
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "scheme"), [(1366, "light"), (1366, "dark"), (390, "light")])
def test_pages_of_the_documentation(built, width, scheme):
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found, "expected Debian's package chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        for name in PAGES:
            page.goto((built / f"{name}.html").as_uri())
            assert violations(page) == [], name
            assert page.evaluate("document.documentElement.scrollWidth") == width, name
        browser.close()
