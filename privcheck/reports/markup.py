"""Templates and formulas as safe HTML: everything escaped, LaTeX as MathML, MathML reduced to known elements.

The LaTeX is not that of a TeX engine: letters with indices, fractions, roots, sums, brackets, Greek. For anything else
the result is None, and the page shows the source.

SymPy renders formulas as presentation MathML; a report.json may have been edited since, and this is the only markup in
it that reaches a page unescaped. For anything but plain MathML the result is None, and the page shows the formula's
text.
"""

from __future__ import annotations

import re
from collections import deque
from functools import cache
from html.entities import html5
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from privcheck.reports.wording import capitalise, figure, keep_together, spell_out, strip_controls


@cache
def environment(package: str) -> Environment:
    """The Jinja2 environment of a package's folder `templates`, shared by its pages."""
    made = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
    )
    made.filters |= {"breakable": breakable, "spell_out": spell_out, "keep_together": keep_together}
    made.filters |= {"capitalise": capitalise, "figure": figure}
    return made


def breakable(text: str) -> Markup:
    """A hash or a path with a possible line break after every eight characters."""
    clean = strip_controls(text)
    return Markup("<wbr>").join(clean[i : i + 8] for i in range(0, len(clean), 8))


def _clean(value: object) -> object:
    return strip_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_PART = re.compile(
    r"\\(?:text|mathrm|operatorname)\s*\{[^{}\\]*\}"  # words, with their spaces
    r"|\\mathcal\s*(?:\{[A-Za-z]\}|[A-Za-z])|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S",
    re.DOTALL,
)
_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
_OPERATORS = {
    "sum": "∑", "prod": "∏", "cdot": "⋅", "times": "×", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "neq": "≠",
    "sim": "∼", "approx": "≈", "in": "∈", "to": "→", "pm": "±", "mid": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖",
    "propto": "∝", "lvert": "|", "rvert": "|", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
    "langle": "⟨", "rangle": "⟩",
    "{": "{", "}": "}", "|": "‖",
}  # fmt: skip
_SPACES = {" ": "0.25em", ",": "0.17em", ";": "0.28em", ":": "0.22em", "quad": "1em", "qquad": "2em"}
_ACCENTS = {"tilde": "˜", "widetilde": "˜", "hat": "^", "widehat": "^", "bar": "¯", "overline": "¯", "check": "ˇ"}
_SCRIPT = dict(zip("ABDFLMNOPS", "𝒜ℬ𝒟ℱℒℳ𝒩𝒪𝒫𝒮", strict=True))


def _upright(letter: str) -> str:
    return ' mathvariant="normal"' if letter.isupper() else ""


_SIMPLE = {
    **{name: f"<mi{_upright(letter)}>{letter}</mi>" for name, letter in _GREEK.items()},
    **{name: f"<mi>{letter}</mi>" for name, letter in (("ell", "ℓ"), ("infty", "∞"), ("top", "⊤"), ("ldots", "…"))},
    **{name: f"<mo>{mark}</mo>" for name, mark in _OPERATORS.items()},
    **{name: f"<mi>{name}</mi>" for name in ("log", "ln", "exp", "max", "min", "sup", "inf", "tanh", "det", "Pr")},
    **{name: f'<mspace width="{width}"></mspace>' for name, width in _SPACES.items()},
    **dict.fromkeys(("textstyle", "displaystyle", "limits", "!"), ""),
}
_OPEN, _CLOSE, _LEFT, _RIGHT = "{", "}", r"\left", r"\right"
_DEPTH = 30

Parts = deque[str]


class _UnknownLatexError(Exception):
    """The source uses LaTeX that is not supported here."""


def latex_to_mathml(source: str) -> str | None:
    r"""The content of a `<math>` element, or None if the source uses unsupported LaTeX.

    >>> latex_to_mathml(r"\Delta_2")
    '<msub><mi mathvariant="normal">Δ</mi><mn>2</mn></msub>'
    >>> latex_to_mathml(r"\unknown{x}") is None
    True
    """
    parts = deque(_PART.findall(source))
    if not parts:
        return None
    try:
        return _sequence(parts, until=None, depth=0)
    except _UnknownLatexError:
        return None


def _next(parts: Parts) -> str:
    if not parts:
        raise _UnknownLatexError
    return parts.popleft()


def _sequence(parts: Parts, *, until: str | None, depth: int) -> str:
    """The parts before a closing part, which is consumed, or before the end, as MathML."""
    if depth > _DEPTH:
        raise _UnknownLatexError
    drawn = []
    while parts and parts[0] != until:
        drawn.append(_script(parts, depth))
    if until is not None and _next(parts) != until:
        raise _UnknownLatexError
    return "".join(drawn)


def _script(parts: Parts, depth: int) -> str:
    """An atom with its primes, indices and exponents, as MathML."""
    base = _atom(parts, depth)
    scripts = {"_": "", "^": "", "'": ""}
    while parts and parts[0] in scripts:
        mark = parts.popleft()
        if mark != "'" and scripts[mark]:
            raise _UnknownLatexError
        scripts[mark] += "<mtext>′</mtext>" if mark == "'" else _argument(parts, depth)
    if scripts["'"] and base:
        # no superscript: where the font is none for formulas, its raised prime would be raised twice, to a dot
        primes = scripts["'"]
        base = f"<mrow>{base}{primes}</mrow>"
    below, above = scripts["_"], scripts["^"]
    if (below or above) and not base:
        raise _UnknownLatexError
    if below and above:
        return f"<msubsup>{base}{below}{above}</msubsup>"
    if below:
        return f"<msub>{base}{below}</msub>"
    return f"<msup>{base}{above}</msup>" if above else base


def _argument(parts: Parts, depth: int) -> str:
    if parts and parts[0] == _OPEN:
        parts.popleft()
        return f"<mrow>{_sequence(parts, until=_CLOSE, depth=depth + 1)}</mrow>"
    if parts and parts[0].isdigit():  # without braces one digit is the argument, as in \tfrac12
        digits = parts.popleft()
        parts.extendleft([digits[1:]] if digits[1:] else [])
        return f"<mn>{digits[0]}</mn>"
    return _atom(parts, depth + 1)


def _atom(parts: Parts, depth: int) -> str:
    if parts and parts[0] == _OPEN:
        return _argument(parts, depth)
    part = _next(parts)
    if part.startswith("\\"):
        return _command(parts, part[1:], depth)
    if part[0].isdigit():
        return f"<mn>{part}</mn>"
    if part.isalpha():
        return f"<mi>{part}</mi>"
    if part in "}_^&#%$~'":
        raise _UnknownLatexError
    return f"<mo>{escape('−' if part == '-' else part)}</mo>"


def _command(parts: Parts, name: str, depth: int) -> str:
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name.endswith("}") and not name.startswith("mathcal"):
        return f"<mtext>{escape(name[name.index('{') + 1 : -1])}</mtext>"
    if name.startswith("mathcal"):
        letter = name.rstrip("}")[-1]
        return f"<mi>{_SCRIPT.get(letter, letter)}</mi>"
    if name in {"frac", "tfrac", "dfrac"}:
        return f"<mfrac>{_argument(parts, depth)}{_argument(parts, depth)}</mfrac>"
    return _nest(parts, name, depth)


def _nest(parts: Parts, name: str, depth: int) -> str:
    if name == "sqrt" and not (parts and parts[0] == "["):
        return f"<msqrt>{_argument(parts, depth)}</msqrt>"
    if name in _ACCENTS:
        return f'<mover accent="true">{_argument(parts, depth)}<mo>{_ACCENTS[name]}</mo></mover>'
    if name == _LEFT[1:]:
        opening = _fence(_next(parts))
        inside = _sequence(parts, until=_RIGHT, depth=depth + 1)
        return f"<mrow>{opening}{inside}{_fence(_next(parts))}</mrow>"
    raise _UnknownLatexError


def _fence(part: str) -> str:
    mark = _OPERATORS.get(part[1:], "") if part.startswith("\\") else part
    if len(mark) != 1 or mark.isalnum():
        raise _UnknownLatexError
    return "" if mark == "." else f'<mo fence="true" stretchy="true">{escape(mark)}</mo>'


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
_DEEPEST = 60  # deeper nesting is no formula a reader follows


def safe_mathml(source: object, *, block: bool = False) -> str | None:
    """The formula as a `<math>` element with only MathML in it, or None if it contains anything else.

    Args:
        source: MathML, with or without the outer `<math>`; SymPy's named entities are understood.
        block: Display it on a separate line.

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
    """The content of an element, or None if any of it is not MathML."""
    token = _name(element) in _TOKENS
    if depth > _DEEPEST or (token and len(element)):
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
