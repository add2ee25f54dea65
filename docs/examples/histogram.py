"""Declare a release and learn its price.

A declaration states the statistic, its noise, the neighbours and the claim. The
sensitivity is derived from the neighbours: a trajectory that is replaced by another
changes two cells at every step.
"""

import privcheck
from privcheck import ZCDP, Claim, Declaration, Gaussian, Parameter, Release, ReplaceOne
from privcheck.declare.statistics import VisitCounts
from privcheck.terms.symbols import A, H, S, rho

declaration = Declaration(
    name="visits-only",
    title="Visit counts, once",
    source="an example",
    relation=ReplaceOne("trajectory"),
    releases=(Release("visits", VisitCounts(H, S, A), Gaussian(variance=H / rho)),),
    claim=Claim(ZCDP(rho), source="an example"),
    parameters=(
        *(Parameter(name=n, default=6, kind="count", meaning=n) for n in "HSA"),
        Parameter(name="rho", default=1, kind="positive", meaning="budget in zCDP"),
    ),
)

cost = privcheck.account(declaration)
print(f"Δ₂² = {cost.costs[0].sensitivity.l2 ** 2}, the cost is {cost.rho}-zCDP")
verdict = privcheck.verify(declaration, declaration.values())
print(verdict.verdict, verdict.method)
