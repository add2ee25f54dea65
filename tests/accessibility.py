"""What axe-core has against a page in a browser: WCAG and its best practices, none of them left out."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe


def violations(page: Any) -> list[str]:
    """Rule and first element of each violation; a page that forbids scripts is read all the same."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}, {len(one['nodes'])} times: {one['nodes'][0]['html'][:200]}" for one in found]
