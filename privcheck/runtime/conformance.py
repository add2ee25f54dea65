"""Line by line: what a printed pseudo-code says, and whether the code does it under the preset `paper`.

An algorithm's lines are registered with it. `privcheck show`, the README's table and the tests read the same tuple: a
line that counts as printed has a transcription in the tests that is compared with the code; any other says how it
deviates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from privcheck.errors import DeclarationError

AS_PRINTED: Final = "as printed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One printed line, or consecutive ones that say one thing.

    Attributes:
        number: As printed, after the algorithm's name: "Algorithm 3, 6", "Algorithm 1, 8–12". Formulas of the text that
            the pseudo-code refers to have the place's name: "section V, equation (7)".
        says: Its content, in a phrase.
        code: The function that does it, below the package of algorithms; empty if there is none.
        deviates: The difference and its reason; empty if the code does what is printed.
        leaves_open: What the text does not determine; empty if nothing.
        takes: What is taken for it.

    Raises:
        DeclarationError: The number or content is missing, a line is said to be as printed without any code, or one of
            the last two is given without the other.
    """

    number: str
    says: str
    code: str = ""
    deviates: str = ""
    leaves_open: str = ""
    takes: str = ""

    def __post_init__(self) -> None:
        if not self.number or not self.says:
            raise DeclarationError(f"a printed line has a number and a content, got {self.number!r}, {self.says!r}")
        if not self.code and not self.deviates:
            raise DeclarationError(f"{self.number}: expected the function that does it, or how it deviates")
        if bool(self.leaves_open) != bool(self.takes):
            raise DeclarationError(f"{self.number}: expected what the paper leaves open together with what is taken")

    @property
    def standing(self) -> str:
        """The line's standing: "as printed" or "deviates: …", with what the paper leaves open."""
        said = f"deviates: {self.deviates}" if self.deviates else AS_PRINTED
        return f"{said}; the paper leaves {self.leaves_open} open; we take {self.takes}" if self.takes else said


def tabulate_lines(algorithms: Mapping[str, Sequence[Line]]) -> str:
    """The table of a README, in Markdown: each line once, with names where algorithms differ in it.

    Args:
        algorithms: The lines of each algorithm by its name, in printed order.
    """
    rows: dict[str, dict[Line, list[str]]] = {}
    for name, lines in algorithms.items():
        for line in lines:
            rows.setdefault(line.number, {}).setdefault(line, []).append(name)
    table = ["| line | says | code | here |", "| --- | --- | --- | --- |"]
    for number, versions in rows.items():
        for line, names in versions.items():
            of = f" ({', '.join(f'`{name}`' for name in names)})" if len(versions) > 1 else ""
            code = f"`{line.code}`" if line.code else ""
            table.append(f"| {number}{of} | {_cell(line.says)} | {code} | {_cell(line.standing)} |")
    return "\n".join(table)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")
