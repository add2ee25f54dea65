"""Zhou 2022 has no experiments."""

from __future__ import annotations

from typing import Final

from privcheck.runtime.figures import PaperFigures
from privcheck_algorithms.papers import MIXTURE

FIGURES: Final = PaperFigures(
    paper=MIXTURE,
    figures=(),
    others="The paper has no experiments, no figure and no table. `privcheck sweep --slope` fits exponents beside "
    "those of Theorem 6.5.",
)
