"""Tables of DP-APVI (Qiao & Wang) for users with up to m trajectories each: bounded-contribution offline RL.

All trajectories of a user may be identical, and then move every count m times as far. Noise for one trajectory protects
such a user at m²·ρ, not at ρ (nor at m·ρ, as m compositions would have it); m times its standard deviation restores ρ.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import TransitionCounts, VisitCounts
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import A, H, S, rho, sqrt, symbol
from privcheck_algorithms.papers import GALLERY

NOISE = Reading(
    name="noise",
    ways=("users", "trajectory"),
    meaning="users: m times the standard deviation for one trajectory; trajectory: that of one, as the paper has it",
)
TITLE = "Bounded contribution: DP-APVI's tables of users with up to m trajectories"
SOURCE = "Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1 and eq. (2), of users with several trajectories"


def declare_bounded_contribution(readings: Mapping[str, str]) -> Declaration:
    """Both tables with Gaussian noise, and the claim of ρ-zCDP at user level."""
    m = symbol("m", "count")
    alike = 1 if readings.get("noise") == "trajectory" else m
    tables = {"visits": VisitCounts(H, S, A), "transitions": TransitionCounts(H, S, A)}
    return Declaration(
        name="bounded-contribution-apvi",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="own", text=SOURCE),
        relation=ReplaceOne("user", trajectories=m),
        releases=tuple(
            Release(
                name,
                table,
                Gaussian(variance=alike**2 * 2 * H / rho),
                stated=L2(alike * sqrt(2 * H)),
                source="eq. (2), for one trajectory",
            )
            for name, table in tables.items()
        ),
        claim=Claim(ZCDP(rho), source="Theorem 3.4, for one trajectory"),
        parameters=(
            Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
            Parameter(name="S", default=24, kind="count", meaning="states"),
            Parameter(name="A", default=25, kind="count", meaning="actions"),
            Parameter(name="m", default=5, kind="count", meaning="trajectories of a user, at most"),
            Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats"),
        ),
    )


BOUNDED_CONTRIBUTION = Algorithm(
    name="bounded-contribution-apvi", title=TITLE, source=SOURCE, paper=GALLERY,
    declare=declare_bounded_contribution, readings=(NOISE,),
)  # fmt: skip
