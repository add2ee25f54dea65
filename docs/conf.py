"""Sphinx configuration: MyST pages, Google docstrings, furo; `docs/reading.py` makes what would go stale if typed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import accessible
import example_pages
import reading
from sphinx.application import Sphinx

project = "privcheck"
copyright = "the privcheck authors"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_member_order = "bysource"
suppress_warnings = ["ref.python"]  # an annotation `Charge` may mean the accountant's or the ledger's
napoleon_use_ivar = True  # a field is described once, with its class


def setup(app: Sphinx) -> None:
    """Connects what is made while the pages are read."""
    app.connect("source-read", reading.write_commands)
    app.connect("source-read", example_pages.write_examples)
    app.connect("autodoc-process-docstring", reading.escape)
    app.connect("env-check-consistency", reading.check_names)
    app.connect("build-finished", accessible.complete)
