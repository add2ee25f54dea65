"""PATE (Papernot et al. 2017, 2018): a student learns from the noisy votes of teachers who hold the data.

The papers' small ε are computed from the votes themselves: valid for their data, not for neighbours, and as secret as
the data.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import NoisyVotes
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP, RenyiDP
from privcheck.terms.symbols import delta, epsilon, log, sqrt, symbol
from privcheck_algorithms.papers import GALLERY, NOT_AT_HAND

BOUND = Reading(
    name="bound",
    ways=("data-independent", "data-dependent"),
    meaning="whether the claimed ε is about these votes",
)
NOISE = Reading(name="noise", ways=("laplace", "gaussian"), meaning="on the votes: of 2017, or GNMax of 2018")
TITLE = "PATE: the winners of noisy votes of teachers, query after query"
SOURCE = "as described in Papernot et al. 2017, Semi-supervised Knowledge Transfer, and 2018, Scalable Private Learning"
_VOTES = "the votes of the teachers, by how clearly each query is won"


def pate(readings: Mapping[str, str]) -> Declaration:
    """PATE with the papers' claim for all data, or with a claim for the data at hand."""
    gaussian = readings.get("noise") == "gaussian"
    dependent = readings.get("bound") == "data-dependent"
    queries, spread = symbol("queries", "count"), symbol("std" if gaussian else "scale", "positive")
    order, where = (
        symbol("order", "positive"),
        f"Papernot et al. {'2018, section 4' if gaussian else '2017, section 2'}",
    )
    parameters = [
        Parameter(name="queries", default=286 if gaussian else 100, kind="count", meaning="votes that are taken"),
        Parameter(name="std", default=40, kind="positive", meaning="std of the noise, in votes")
        if gaussian
        else Parameter(name="scale", default=20, kind="positive", meaning="scale of the noise, 1/γ, in votes"),
    ]
    target = Parameter(name="delta", default="1/100000", kind="probability", meaning="δ that is claimed")
    if dependent:
        claim = Claim(
            ApproxDP(epsilon, delta),
            source="Papernot et al. 2017, section 4, and 2018, section 5: MNIST",
            data_dependent=_VOTES,
        )
        best = "1.97" if gaussian else "2.04"
        parameters += [Parameter(name="epsilon", default=best, kind="positive", meaning="ε of these votes"), target]
    elif gaussian:
        claim = Claim(
            RenyiDP(order, order * queries / spread**2),
            source="Papernot et al. 2018, section 4, Proposition 8, of each query",
        )
        parameters.append(Parameter(name="order", default=8, kind="count", least=2, meaning="order of the divergence"))
    else:
        strong = 4 * queries / spread**2 + 2 * sqrt(2 * queries * log(1 / delta)) / spread
        claim = Claim(
            ApproxDP(strong, delta),
            source="Papernot et al. 2017, section 3.2, after Theorem 2: 4Tγ² + 2γ√(2T ln 1/δ)",
        )
        parameters.append(target)
    return Declaration(
        name="pate",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="reconstructed", text=SOURCE, changed=NOT_AT_HAND),
        relation=ReplaceOne("user"),
        releases=(
            NoisyVotes(
                "labels", noise="gaussian" if gaussian else "laplace", spread=spread, queries=queries, source=where
            ),
        ),
        claim=claim,
        parameters=tuple(parameters),
    )


PATE = Algorithm(name="pate", title=TITLE, source=SOURCE, paper=GALLERY, declare=pate, readings=(BOUND, NOISE))
