"""Matplotlib figures as SVG elements that live inside a page: its colours, its fonts, no outside references.

Figures are drawn in stand-in colours, which become CSS variables (a page is light or dark); pyplot and its global
state are not used; the same data give the same bytes.
"""

from __future__ import annotations

import io
import re
import threading
import warnings
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from privcheck.reports.wording import strip_controls

# stand-in colour → CSS variable of templates/report.css
INK, MUTED, RULE, PAPER, UPPER, LOWER, CLAIM, BAD = (f"#0{n}0{n}0{n}" for n in range(1, 9))
_VARIABLES = {
    INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", PAPER: "var(--paper)",
    UPPER: "var(--upper)", LOWER: "var(--lower)", CLAIM: "var(--claim)", BAD: "var(--bad)",
}  # fmt: skip

_POINTS = 72  # an SVG user unit is a point in Matplotlib; the page shows it as a pixel
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none", "text.parse_math": False, "font.family": "sans-serif", "font.size": 11.0,
    "axes.edgecolor": MUTED, "axes.labelcolor": INK, "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.linewidth": 0.8, "axes.spines.top": False,
    "axes.spines.right": False, "axes.facecolor": "none", "figure.facecolor": "none", "legend.frameon": False,
    "lines.linewidth": 1.8, "hatch.linewidth": 0.5,
}  # fmt: skip
_LOCK = threading.Lock()  # Matplotlib's settings are one for the process
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def draw(paint: Callable[[Axes], None], *, name: str, width: int, height: int, title: str, description: str) -> str:
    """Returns the drawing as an `<svg>` element with a title and a description.

    Args:
        paint: Draws on the axes.
        name: Prefix of every id in the element; unique in its page.
        width: In pixels at full size.
        height: In pixels at full size.
        title: For readers who do not see it.
        description: What it shows, for the same.
    """
    with _LOCK, style.context(["default", {**_SETTINGS, "svg.hashsalt": name}]), warnings.catch_warnings():
        # a glyph that Matplotlib's own font lacks is only measured there; the browser's fonts draw it
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure = Figure(figsize=(width / _POINTS, height / _POINTS), layout="constrained")
        FigureCanvasSVG(figure)
        paint(figure.add_subplot())
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return _inline(buffer.getvalue(), name=name, title=title, description=description)


def _inline(source: str, *, name: str, title: str, description: str) -> str:
    root = ET.fromstring(source)  # noqa: S314 - Matplotlib's own output
    _strip(root)
    used = set()
    for element in root.iter():
        used.update(_REFERENCE.findall(" ".join(element.attrib.values())))
        used.update(value[1:] for key, value in element.attrib.items() if key == "href")
    for element in root.iter():
        _rename(element, name, used)
    view = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib.update({"viewBox": view, "role": "img", "aria-labelledby": f"{name}-title {name}-description"})
    for tag, text in (("desc", description), ("title", title)):
        child = ET.Element(tag, {"id": f"{name}-{'title' if tag == 'title' else 'description'}"})
        child.text = strip_controls(text)
        root.insert(0, child)
    return ET.tostring(root, encoding="unicode", short_empty_elements=False)


def _strip(element: ET.Element) -> None:
    """Takes off namespaces, metadata and the style sheet, which would apply to the whole page."""
    element.tag = element.tag.partition("}")[2]
    element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for child in list(element):
        if child.tag.rpartition("}")[2] in {"metadata", "style"}:
            element.remove(child)
        else:
            _strip(child)
    if element.text and not element.text.strip():
        element.text = None
    element.tail = None


def _rename(element: ET.Element, name: str, used: set[str]) -> None:
    own = element.attrib.pop("id", None)
    if own in used:
        element.set("id", f"{name}-{own}")
    for key, value in element.attrib.items():
        if key == "href":
            element.set(key, f"#{name}-{value[1:]}")
        elif key == "style":
            element.set(key, _style(value))
        elif key == "clip-path":
            element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
        elif key == "d":
            element.set(key, " ".join(value.split()))


def _style(text: str) -> str:
    kept = [part.strip() for part in text.split(";") if not part.strip().startswith("font-family")]
    joined = "; ".join(part for part in kept if part)
    for colour, variable in _VARIABLES.items():
        joined = joined.replace(colour, variable)
    return joined
