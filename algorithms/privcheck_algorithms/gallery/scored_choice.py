"""The exponential mechanism (McSherry & Talwar 2007) and permute-and-flip (McKenna & Sheldon 2020).

Both choose a candidate by its score and are ε-DP for scores of sensitivity 1. The first has bounded range ε as well, so
that many of them compose better; the second has no such bound, but errs less often.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import ScoredChoice
from privcheck.declare.procedures.scored_choice import Way
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import epsilon, symbol
from privcheck_algorithms.papers import GALLERY


def _algorithm(name: str, by: Way, title: str, source: str, claimed: str) -> Algorithm:
    def declare(_: Mapping[str, str]) -> Declaration:
        return Declaration(
            name=name,
            title=title,
            source=source,
            origin=Origin(kind="printed", text=source),
            relation=ReplaceOne("user"),
            releases=(
                ScoredChoice("choice", by=by, epsilon=epsilon, candidates=symbol("candidates", "count"), source=source),
            ),
            claim=Claim(PureDP(epsilon), source=claimed),
            parameters=(
                Parameter(name="epsilon", default=1, kind="positive", meaning="ε in nats"),
                Parameter(name="candidates", default=10, kind="count", least=2, meaning="number of scores"),
            ),
        )

    return Algorithm(name=name, title=title, source=source, paper=GALLERY, declare=declare)


EXPONENTIAL_MECHANISM = _algorithm(
    "exponential-mechanism",
    "exponential mechanism",
    "Exponential mechanism: a candidate with probability ∝ exp(εu/2)",
    "McSherry & Talwar 2007, Mechanism Design via Differential Privacy, Definition 2",
    "Theorem 6 of McSherry & Talwar 2007, with ε/2 for their ε",
)
PERMUTE_AND_FLIP = _algorithm(
    "permute-and-flip",
    "permute-and-flip",
    "Permute-and-flip: candidates in random order, each taken with probability exp(ε(u − max u)/2)",
    "McKenna & Sheldon 2020, Permute-and-Flip, Algorithm 1",
    "Theorem 1 of McKenna & Sheldon 2020",
)
