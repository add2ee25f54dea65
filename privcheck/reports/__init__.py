"""Reports: typed values of a finished `check`, kept as report.json, shown as text and as a self-contained page.

Nothing here computes: what a page shows stands in the values, so `render_again` needs report.json alone. Light to
import: Jinja2 and Matplotlib are loaded when a page is rendered.
"""

from privcheck.reports.model import JSON_NAME, load_report, read_report
from privcheck.reports.store import render_again, save_report, save_result
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
