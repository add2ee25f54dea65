"""What screen readers miss in Furo's pages, added when all pages are written; axe-core checks it in the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHANGES = (
    # headings of the groups of pages have no level
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    # a block that is wider than the screen is reached by keyboard
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper ', '<div tabindex="0" class="table-wrapper '),
    # the corner of a table is no heading
    ('<th class="head"><p></p></th>', "<td></td>"),
    # two complementary landmarks without a name
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="All pages">'),
    ('<aside class="toc-drawer">', '<aside class="toc-drawer" aria-label="This page">'),
    ('<aside class="toc-drawer no-toc">', '<aside class="toc-drawer no-toc" aria-label="This page">'),
    # links above and below the article stand in no landmark
    ('<article role="main" ', "<article "),
    ('<div class="content">', '<div class="content" role="main">'),
    ("<footer>", '<footer role="none">'),
)
SEARCH = ("<noscript>", '<h1 class="visually-hidden">Search</h1>\n<noscript>')


def complete(app: Any, failure: Exception | None) -> None:
    """Rewrites the pages that Sphinx wrote; does nothing after a failed build or for another builder."""
    if failure is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = written = path.read_text(encoding="utf-8")
        for was, now in (*CHANGES, *((SEARCH,) if path.name == "search.html" else ())):
            text = text.replace(was, now)
        if text != written:
            path.write_text(text, encoding="utf-8")
