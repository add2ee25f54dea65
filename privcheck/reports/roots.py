r"""Products of roots as one root: √(2H) where algebra gives √2·√H, in exact expressions and in LaTeX alike."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How a language writes roots and products.

    Attributes:
        root: What opens a root, its bracket included.
        opening: The brackets that open.
        closing: Those that close.
        times: Stands between factors.
        group: A sum as a factor, with "{}" for it.
    """

    root: str
    opening: str
    closing: str
    times: str
    group: str


EXACT = Notation(root="sqrt(", opening="(", closing=")", times="*", group="({})")
LATEX = Notation(root=r"\sqrt{", opening="{(", closing="})", times=" ", group=r"\left({}\right)")
_SUM = re.compile(r" [+-] ")


def join_roots(text: str, notation: Notation) -> str:
    r"""Returns the text with roots that stand beside each other, multiplied, as one; everything else as it is.

    >>> join_roots("2*sqrt(2)*sqrt(H)*sqrt(H - 1)/3", EXACT), join_roots(r"\sqrt{2} \sqrt{H}", LATEX)
    ('2*sqrt(2*H*(H - 1))/3', '\\sqrt{2 H}')
    """
    done, start = "", text.find(notation.root)
    while start >= 0:
        factors, end = _factors(text, start, notation)
        if not factors:  # a bracket is never closed
            break
        inside = factors[0] if len(factors) == 1 else notation.times.join(_factor(part, notation) for part in factors)
        done += f"{text[:start]}{notation.root}{join_roots(inside, notation)}{text[end - 1]}"
        text = text[end:]
        start = text.find(notation.root)
    return done + text


def _factors(text: str, start: int, notation: Notation) -> tuple[list[str], int]:
    """Returns what stands under each root of the product that begins here, and where it ends."""
    found: list[str] = []
    place = end = start
    while text.startswith(notation.root, place):
        inner = place + len(notation.root)
        closed = _closed(text, inner, notation)
        if closed is None or text.startswith(("**", "^"), closed):  # a power of a root is not its factor's
            break
        found.append(text[inner : closed - 1])
        end = closed
        place = end + len(notation.times) if text.startswith(notation.times, end) else len(text)
    return found, end


def _closed(text: str, inner: int, notation: Notation) -> int | None:
    """Returns the place after the bracket that closes what begins here, None where there is none."""
    depth = 1
    for place in range(inner, len(text)):
        depth += (text[place] in notation.opening) - (text[place] in notation.closing)
        if not depth:
            return place + 1
    return None


def _factor(part: str, notation: Notation) -> str:
    """Returns a factor of a product: a sum in brackets."""
    level, sum_at_top = 0, False
    for place, letter in enumerate(part):
        level += (letter in notation.opening) - (letter in notation.closing)
        sum_at_top |= level == 0 and _SUM.match(part, place) is not None
    return notation.group.format(part) if sum_at_top else part
