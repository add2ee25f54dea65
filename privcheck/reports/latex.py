r"""The little LaTeX that declarations use (statistics, noise laws, symbols), as MathML that browsers draw themselves.

Not a TeX engine: letters with indices, fractions, roots, sums, brackets, Greek. Anything else gives None, and the page
shows the source.
"""

from __future__ import annotations

import re
from collections import deque
from xml.sax.saxutils import escape

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
    """The source goes beyond what is understood here."""


def latex_to_mathml(source: str) -> str | None:
    r"""Returns the inside of a `<math>` element, or None where the source uses anything not known here.

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
    """Returns what stands before a closing part, which is taken off, or before the end."""
    if depth > _DEPTH:
        raise _UnknownLatexError
    drawn = []
    while parts and parts[0] != until:
        drawn.append(_script(parts, depth))
    if until is not None and _next(parts) != until:
        raise _UnknownLatexError
    return "".join(drawn)


def _script(parts: Parts, depth: int) -> str:
    """Returns an atom with its primes, indices and exponents."""
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
