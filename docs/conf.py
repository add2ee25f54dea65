"""Sphinx configuration: MyST pages, Google docstrings, furo."""

project = "privcheck"
copyright = "the privcheck authors"  # noqa: A001 - Sphinx's name
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
myst_heading_anchors = 2
autodoc_typehints = "description"
autodoc_member_order = "bysource"
