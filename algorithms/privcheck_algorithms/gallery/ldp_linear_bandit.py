"""Local LinUCB (Zheng, Cai, Huang, Li & Wang 2020): every user sends x xᵀ and x·y with Gaussian noise.

The noise is σ = 4√(2 ln(1.25/δ))/ε for both. A published implementation (MindArmour) writes this formula in a comment
and computes σ = 4√(ln(1.25/δ))/ε, without the 2: the reading `noise=published-code`.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import PerUser
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, expression, log
from privcheck_algorithms.papers import GALLERY

NOISE = Reading(
    name="noise",
    ways=("formula", "published-code"),
    meaning="the variance: formula is 32 ln(1.25/δ)/ε², published-code is half of it",
)
TITLE = "Local LinUCB: every user's x xᵀ and x·y with Gaussian noise"
SOURCE = "Zheng, Cai, Huang, Li & Wang 2020, Locally Differentially Private (Contextual) Bandits Learning, Algorithm 3"


def ldp_linear_bandit(readings: Mapping[str, str]) -> Declaration:
    """Local linear bandit, contexts of norm at most 1, rewards in [0, 1]."""
    factor = 16 if readings.get("noise") == "published-code" else 32
    variance = factor * log(5 / (4 * delta)) / epsilon**2
    context, reward = Column("x", 1, "x"), Column("y", 1, "y")
    return Declaration(
        name="ldp-linear-bandit",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ReplaceOne("user"),
        releases=(
            Release(
                "gram",
                GramMatrices(name="x xᵀ", steps=expression(1), dimension=d, vector=context),
                SymmetricGaussian(variance=variance, kind="upper"),
                schedule=PerUser(),
                source=SOURCE,
            ),
            Release(
                "sums",
                FeatureSums(name="x·y", steps=expression(1), dimension=d, vector=context, target=reward),
                Gaussian(variance=variance),
                schedule=PerUser(),
                source=SOURCE,
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source=SOURCE),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
            Parameter(name="delta", default="1e-5", kind="probability", meaning="δ of the claim"),
            Parameter(name="d", default=5, kind="count", meaning="dimension of a context"),
        ),
        model="local",
    )


LDP_LINEAR_BANDIT = Algorithm(
    name="ldp-linear-bandit", title=TITLE, source=SOURCE, paper=GALLERY, declare=ldp_linear_bandit, readings=(NOISE,)
)
