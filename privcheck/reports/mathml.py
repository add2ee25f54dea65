"""Formulas in MathML, made safe: parsed, reduced to known elements and attributes, and written out again.

SymPy renders formulas as presentation MathML; a report.json may have been edited since, and this is the only markup in
it that reaches a page unescaped. What is not plain MathML gives None, and the page shows the formula's text instead.
"""

from __future__ import annotations

import re
from html.entities import html5
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

_TOKENS = frozenset({"mi", "mn", "mo", "ms", "mtext"})
_LAYOUT = frozenset({
    "math", "merror", "mfenced", "mfrac", "mmultiscripts", "mover", "mpadded", "mphantom", "mprescripts", "mroot",
    "mrow", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtr", "munder", "munderover",
    "none",
})  # fmt: skip
_ATTRIBUTES = frozenset({
    "accent", "accentunder", "columnspan", "depth", "display", "displaystyle", "fence", "form", "height", "largeop",
    "linethickness", "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "rowspan", "rspace", "scriptlevel",
    "separator", "stretchy", "symmetric", "voffset", "width",
})  # fmt: skip
_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_VALUE = re.compile(r"[A-Za-z0-9 .+%-]{0,32}")
_ENTITY = re.compile(r"&([A-Za-z][A-Za-z0-9]*);")
_XML_ENTITIES = frozenset({"amp", "lt", "gt", "quot", "apos"})
_UPRIGHT = str.maketrans({"\N{DOUBLE-STRUCK ITALIC SMALL E}": "e", "\N{DOUBLE-STRUCK ITALIC SMALL D}": "d"})
_DEPTH = 60  # deeper nesting is no formula a reader follows


def safe_mathml(source: object, *, block: bool = False) -> str | None:
    """Returns the formula as a `<math>` element without anything but MathML in it, or None where it is not that.

    Args:
        source: MathML, with or without the outer `<math>`; SymPy's named entities are understood.
        block: Displayed on a line of its own.

    >>> safe_mathml("<mi>x</mi>")
    '<math><mi>x</mi></math>'
    >>> safe_mathml("<mi onclick='steal()'>x</mi>")
    '<math><mi>x</mi></math>'
    >>> safe_mathml("<script>steal()</script>") is None
    True
    """
    if not isinstance(source, str) or not source.strip() or "<!" in source or "<?" in source:
        return None  # no DOCTYPE, hence no entity that expands into more than a character
    text = _ENTITY.sub(_character, source.strip())
    if not text.startswith("<math"):
        text = f"<math>{text}</math>"
    try:
        root = ET.fromstring(text)  # noqa: S314 - declarations of entities were refused above
    except (ET.ParseError, ValueError):
        return None
    inner = _content(root, 0) if _name(root) == "math" else None
    if inner is None:
        return None
    return f'<math display="block">{inner}</math>' if block else f"<math>{inner}</math>"


def _character(match: re.Match[str]) -> str:
    name = match.group(1)
    known = html5.get(f"{name};")
    return match.group(0) if name in _XML_ENTITIES or known is None else escape(known)


def _name(element: ET.Element) -> str:
    return str(element.tag).removeprefix(_NAMESPACE)


def _content(element: ET.Element, depth: int) -> str | None:
    """Returns the inside of an element, or None if anything in it is not MathML."""
    token = _name(element) in _TOKENS
    if depth > _DEPTH or (token and len(element)):
        return None
    parts = [escape((element.text or "").translate(_UPRIGHT)) if token else ""]
    if not token and (element.text or "").strip():
        return None
    for child in element:
        part = _element(child, depth + 1)
        if part is None or (child.tail or "").strip():
            return None
        parts.append(part)
    return "".join(parts)


def _element(element: ET.Element, depth: int) -> str | None:
    name = _name(element)
    inner = _content(element, depth) if name in _TOKENS | _LAYOUT and name != "math" else None
    if inner is None:
        return None
    if name == "mfenced":  # SymPy before 1.14 writes it, browsers no longer draw it
        return f"<mrow><mo>(</mo>{inner}<mo>)</mo></mrow>"
    kept = "".join(
        f' {key}="{value}"' for key, value in element.attrib.items() if key in _ATTRIBUTES and _VALUE.fullmatch(value)
    )
    return f"<{name}{kept}>{inner}</{name}>"
