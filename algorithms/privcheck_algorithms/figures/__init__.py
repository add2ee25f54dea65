"""The papers' figures that show results of runs, one module a paper, with the recorded conclusions.

A figure is what its text says: quoted, at the printed sizes, with the observations as predicates. What the text leaves
open is listed with what is taken, in the direction that helps the text's own claim wherever that is known.
"""

from pathlib import Path
from typing import Final

RECORDED: Final = Path(__file__).parent / "recorded.json"
"""What `python -m privcheck.commands.reproduction_pages` writes: the results of all figures."""
