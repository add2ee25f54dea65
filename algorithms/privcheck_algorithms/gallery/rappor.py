"""RAPPOR (Erlingsson, Pihur & Korolova 2014): a value in a Bloom filter, with permanently randomised bits.

The permanent response is drawn once, and every later report is made from it: together they lose ε∞ (Theorem 1). A
single report, made from the permanent response by further randomisation, loses ε₁ (Theorem 2).
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import UnaryEncoding, permanent_response
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import log, symbol
from privcheck_algorithms.papers import GALLERY

REPORTS = Reading(name="reports", ways=("all", "one"), meaning="whether an attacker sees all reports of a user or one")
TITLE = "RAPPOR: permanent randomised response of the bits of a Bloom filter"
SOURCE = "Erlingsson, Pihur & Korolova 2014, RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response"


def rappor(readings: Mapping[str, str]) -> Declaration:
    """RAPPOR with its paper's claims: ε∞ for all reports, ε₁ for one of them."""
    one_report = readings.get("reports") == "one"
    k, h = symbol("bits", "count"), symbol("hashes", "count")
    f, p, q = (symbol(name, "positive") for name in ("f", "p", "q"))
    kept, flipped = f * (p + q) / 2 + (1 - f) * q, f * (p + q) / 2 + (1 - f) * p  # q* and p* of the paper
    if one_report:
        answer = UnaryEncoding("report", bits=k, ones=h, keep=kept, flip=flipped, source=f"{SOURCE}, Theorem 2")
        claim = Claim(PureDP(h * log(kept * (1 - flipped) / (flipped * (1 - kept)))), source="Theorem 2")
    else:
        answer = permanent_response("permanent response", bits=k, ones=h, f=f, source=f"{SOURCE}, Theorem 1")
        claim = Claim(PureDP(2 * h * log((1 - f / 2) / (f / 2))), source="Theorem 1")
    coins = (
        Parameter(name="q", default="3/4", kind="probability", meaning="of reporting 1 where the permanent bit is 1"),
        Parameter(name="p", default="1/2", kind="probability", meaning="of reporting 1 where the permanent bit is 0"),
    )
    return Declaration(
        name="rappor",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ReplaceOne("user"),
        model="local",
        releases=(answer,),
        claim=claim,
        parameters=(
            Parameter(name="bits", default=128, kind="count", least=4, meaning="of the Bloom filter"),
            Parameter(name="hashes", default=2, kind="count", meaning="h, its hash functions"),
            Parameter(name="f", default="1/2", kind="probability", meaning="share of the bits that a coin replaces"),
            *coins,
        ),
    )


RAPPOR = Algorithm(name="rappor", title=TITLE, source=SOURCE, paper=GALLERY, declare=rappor, readings=(REPORTS,))
