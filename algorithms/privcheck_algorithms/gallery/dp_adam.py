"""DP-Adam on full batches: every step is a noisy sum of all users' clipped gradients, followed by Adam.

Adam's moments and steps (Kingma & Ba 2015, Algorithm 1) read noisy gradients only: post-processing, which is free. With
every user in every batch nothing is amplified, and the composed steps are one Gaussian mechanism of μ = √T/σ.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.schedules import Poisson
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import ClippedSums
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, symbol
from privcheck_algorithms.gallery.dp_sgd import RELATION, RELATIONS
from privcheck_algorithms.papers import GALLERY

TITLE = "DP-Adam: clipped gradients of all users in every step, with Gaussian noise"
SOURCE = "Kingma & Ba 2015, Adam, Algorithm 1, on the noisy gradients of Abadi et al. 2016, Algorithm 1, at rate 1"


def dp_adam(readings: Mapping[str, str]) -> Declaration:
    """Full-batch DP-Adam with a claim of (ε, δ)-DP: at rate 1 a sample contains all users."""
    C, multiplier = symbol("C", "positive"), symbol("noise_multiplier", "positive")
    return Declaration(
        name="dp-adam",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="own", text=SOURCE),
        relation=RELATIONS[readings.get("relation", "add-remove")],
        releases=(
            Release(
                "gradients",
                ClippedSums(dimension=d, norm=C),
                Gaussian(variance=(multiplier * C) ** 2),
                schedule=Poisson(rate=1, rounds=symbol("rounds", "count")),
                source="Abadi et al. 2016, Algorithm 1",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="Dong, Roth & Su 2022, Theorem 2.7 and Corollary 2.13"),
        parameters=(
            Parameter(name="epsilon", default="9/10", kind="positive", meaning="ε that is claimed"),
            Parameter(name="delta", default="1/100000", kind="probability", meaning="δ that is claimed"),
            Parameter(name="noise_multiplier", default=50, kind="positive", meaning="std of the noise over C"),
            Parameter(name="rounds", default=100, kind="count", meaning="steps of the optimiser"),
            Parameter(name="C", default=1, kind="positive", meaning="norm to which gradients are clipped"),
            Parameter(name="d", default=10, kind="count", meaning="parameters of the model"),
        ),
    )


DP_ADAM = Algorithm(name="dp-adam", title=TITLE, source=SOURCE, paper=GALLERY, declare=dp_adam, readings=(RELATION,))
