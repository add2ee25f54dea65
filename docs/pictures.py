"""Makes the pictures of the gallery: runs each command, opens the page it wrote in Chromium, keeps what is seen first.

`make pictures` runs it in an environment with the tests' extra; `python docs/pictures.py NAME…` makes some of them.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER: Final = Path(__file__).parent / "pictures"
SIZE: Final = (1366, 1000)  # what a laptop shows, and a little more
SCALE: Final = 0.75  # of a picture
COLOURS: Final = 256
MARGIN: Final = 20  # around what is not background


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A page and what makes it.

    Attributes:
        name: Of the file in `docs/pictures`.
        command: As the gallery shows it.
        page: What it writes.
    """

    name: str
    command: str
    page: str


PICTURES: Final = (
    Picture(
        name="check",
        command="privcheck check dp-apvi --data icu-sepsis --out runs/check",
        page="runs/check/report.html",
    ),
    Picture(
        name="check-fails",
        command="privcheck check private-ucb-vi-central --env riverswim --set K=200 --trials 20000 --out runs/fails",
        page="runs/fails/report.html",
    ),
    Picture(
        name="audit",
        command="privcheck audit private-ucb-vi-central --method sequential --out runs/audit",
        page="runs/audit/report.html",
    ),
    Picture(
        name="run",
        command="privcheck run ucb-vi --env riverswim --replicates 5 --out runs/online",
        page="runs/online/run.html",
    ),
    Picture(
        name="compare",
        command="privcheck run ucb-vi private-ucb-vi-central calibrated-ucb-vi --env riverswim --replicates 5 "
        "--out runs/compared",
        page="runs/compared/run.html",
    ),
    Picture(
        name="sweep",
        command="privcheck sweep calibrated-ucb-vi ucb-vi --over epsilon=0.5,1,2,4 --env riverswim --set K=20000 "
        "--seeds 5 --out runs/frontier",
        page="runs/frontier/sweep.html",
    ),
    Picture(
        name="users",
        command="privcheck sweep dp-apvi --over n=1e4,2e4,4e4,8e4,16e4 --env riverswim --seeds 5 --out runs/users",
        page="runs/users/sweep.html",
    ),
    Picture(name="policy", command="privcheck policy runs/check/policy.npz --out policy.svg", page="policy.svg"),
    Picture(
        name="budget",
        command="""python -c "import privcheck; privcheck.budget('dp-apvi', curve=True).plot().save('budget.html')\"""",
        page="budget.html",
    ),
    Picture(
        name="test",
        command="python -m pytest test_count.py --privacy-report runs/tests",
        page="runs/tests/*/report.html",
    ),
)
SERVICE: Final = "python -m privcheck.cli.demo runs/demo"  # `make serve-demo` in a clone
TEST: Final = """import pytest
from privcheck import PureDP
from privcheck.testing import assert_private


def count(dataset, size, rng):
    return len(dataset) + rng.laplace(0, 0.5, size)


@pytest.mark.privacy
def test_count():
    assert_private(count, PureDP(1), neighbours=[([1, 2, 3], [1, 2])])
"""


def main(names: list[str]) -> None:
    """Makes the pictures of these names, or all."""
    FOLDER.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, _chromium() as browser:
        Path(folder, "test_count.py").write_text(TEST, encoding="utf-8")
        for picture in PICTURES:
            if not names or picture.name in names:
                ended = _run(picture.command, folder)
                found = sorted(Path(folder).glob(picture.page))
                if not found:
                    sys.exit(f"{picture.command}: it did not write {picture.page}:\n{ended}")
                with _tab(browser) as tab:
                    tab.goto(found[0].as_uri())
                    _keep(tab, picture.name)
        if not names or "service" in names:
            _keep_service(browser, folder)


def _run(command: str, folder: str) -> str:
    """Runs a command as this Python's, and returns what it said; a claim that fails is no failure here."""
    words = shlex.split(command)
    start = [sys.executable, "-m", "privcheck"] if words[0] == "privcheck" else [sys.executable]
    ended = subprocess.run([*start, *words[1:]], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    return ended.stdout + ended.stderr


def _keep_service(browser: Browser, folder: str) -> None:
    """Serves the demonstration's ledger, logs in and keeps the list of its datasets."""
    port = "8127"
    command = [*shlex.split(SERVICE), "--port", port]
    said = Path(folder, "said.txt")
    with said.open("w", encoding="utf-8") as log:
        server = subprocess.Popen([sys.executable, *command[1:]], cwd=folder, stderr=log, stdout=log)  # noqa: S603
        try:
            with _tab(browser) as tab:
                token = _wait_for_token(said, tab, f"http://127.0.0.1:{port}/login")
                tab.fill("input[name=token]", token)
                with tab.expect_navigation():
                    tab.click("main button")
                _keep(tab, "service")
        finally:
            server.terminate()
            server.wait()


def _wait_for_token(said: Path, tab: Page, url: str) -> str:
    for _ in range(60):
        tab.wait_for_timeout(1000)
        token = next((w for w in said.read_text(encoding="utf-8").split() if w.startswith("privcheck_")), "")
        if token:
            try:
                tab.goto(url)
            except Exception:  # noqa: BLE001, S112 - it does not listen yet
                continue
            return token
    sys.exit(f"the service did not start: {said.read_text(encoding='utf-8')}")


@contextmanager
def _chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield browser
        browser.close()


@contextmanager
def _tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
    try:
        yield context.new_page()
    finally:
        context.close()


def _keep(tab: Page, name: str) -> None:
    """Writes what the tab shows as a small PNG."""
    seen = _trim(Image.open(io.BytesIO(tab.screenshot())).convert("RGB"))
    size = round(seen.width * SCALE), round(seen.height * SCALE)
    small = seen.resize(size, Image.Resampling.LANCZOS).quantize(COLOURS, dither=Image.Dither.NONE)
    path = FOLDER / f"{name}.png"
    small.save(path, optimize=True)
    sys.stderr.write(f"{path.relative_to(FOLDER.parent.parent)}: {path.stat().st_size // 1000} kB\n")


def _trim(seen: Image.Image) -> Image.Image:
    """Returns what stands before the background, whose colour is that of the last corner, with a margin."""
    background = Image.new("RGB", seen.size, seen.getpixel((seen.width - 1, seen.height - 1)))
    left, top, right, bottom = ImageChops.difference(seen, background).getbbox() or (0, 0, *seen.size)
    sides = (max(0, left - MARGIN), max(0, top - MARGIN), min(seen.width, right + MARGIN))
    return seen.crop((*sides, min(seen.height, bottom + MARGIN)))


if __name__ == "__main__":
    main(sys.argv[1:])
