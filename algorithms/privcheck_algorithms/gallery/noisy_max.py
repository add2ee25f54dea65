"""Report-noisy-max (Dwork & Roth 2014, Claim 3.9): releases only the index of the largest of many noisy scores.

Charged as noisy scores it would seem to cost a multiple, the number of candidates; its proof charges for one.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import NoisyMax
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import epsilon, symbol
from privcheck_algorithms.papers import GALLERY

TITLE = "Report-noisy-max: the index of the largest of many noisy scores"
SOURCE = "Dwork & Roth 2014, The Algorithmic Foundations of Differential Privacy, Claim 3.9"


def noisy_max(_: Mapping[str, str]) -> Declaration:
    """Report-noisy-max with Laplace noise of scale 2/ε on scores of sensitivity 1."""
    return Declaration(
        name="noisy-max",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ReplaceOne("user"),
        releases=(
            NoisyMax(
                "winner", noise="laplace", scale=2 / epsilon, candidates=symbol("candidates", "count"), source=SOURCE
            ),
        ),
        claim=Claim(PureDP(epsilon), source="Claim 3.9, for scores that move either way"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε in nats"),
            Parameter(name="candidates", default=10, kind="count", least=2, meaning="number of scores"),
        ),
    )


NOISY_MAX = Algorithm(name="noisy-max", title=TITLE, source=SOURCE, paper=GALLERY, declare=noisy_max)
