"""Reports: typed values of finished commands, stored as JSON, shown as text and as self-contained pages.

Imports `runtime`, `declare` and the rooms below them; knows neither commands nor the budget. Promises: nothing is
computed here. A page shows only the values, so that `render_again` needs just report.json. Light to import: Jinja2 and
Matplotlib are loaded when a page is rendered.
"""

from __future__ import annotations

from privcheck.reports.files import JSON_NAME, load_report, read_report, render_again, save_report, save_result
from privcheck.reports.text import render_text
from privcheck.reports.values import SCHEMA

__all__ = [
    "JSON_NAME",
    "SCHEMA",
    "load_report",
    "read_report",
    "render_again",
    "render_text",
    "save_report",
    "save_result",
]
