"""SHUFFLED-ARMS: a bandit with publicly assigned arms, learned from reward bits behind a shuffler.

One reward bit of every user is released, behind a shuffler, once per batch. The assignment of arms to users is public
and depends on earlier batches alone, so that neighbours share it and a user moves one counter by one, Bin(N, ½) + 1
against Bin(N, ½); N = 62 fair bits are (1, 10⁻⁵)-SDP by the exact curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privcheck.data.finite_models import FiniteMDP
from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import RewardBits
from privcheck.runtime.registry import Algorithm, AuditInstance
from privcheck.runtime.results import World
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import A, beta, epsilon, n, symbol
from privcheck_algorithms.privatizers.declaration import LeastNoise
from privcheck_algorithms.shuffled_arms.agent import OPTIONS, player

PARAMETERS = (
    Parameter(name="A", default=20, kind="count", meaning="arms"),
    Parameter(name="K", default=20_000, kind="count", meaning="users, one reward each"),
    Parameter(name="epsilon", default="1", kind="positive", meaning="ε of the claim, nats"),
    Parameter(name="beta", default="1/100000", kind="probability", meaning="the claim's failure probability β"),
)
NOISE_BITS = Parameter(
    name="noise_bits",
    default=62,
    kind="count",
    meaning="N: fair bits of every arm's counter in a batch; for another ε or β the fewest that keep the claim",
)


def everybody(values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """K for every batch size: the number of allocated noise bits is the same in all batches."""
    return (int(values["K"]),)


def declare_arms(readings: Mapping[str, str]) -> Declaration:
    """SHUFFLED-ARMS: an arm's counter behind a shuffler, every bit as a separate message."""
    bits = symbol("noise_bits", "count")
    least = LeastNoise(
        name="noise_bits", declare=declare_arms, readings=tuple(sorted(readings.items())), usual=PARAMETERS, bits=True
    )
    return Declaration(
        name="shuffled-arms",
        title="SHUFFLED-ARMS: a bandit whose arms are dealt out in public, from reward bits behind a shuffler",
        source="this package; README of shuffled_arms",
        origin=Origin(kind="own", text="README of shuffled_arms"),
        relation=ReplaceOne("trajectory", initial="fixed"),  # the one arm that a user is dealt
        releases=(
            Release(
                "rewards",
                RewardBits(1, 1, A),
                ShuffledBits(users=n, threshold=bits, dealt=True),
                schedule=Batches(size="users, each batch a fixed factor larger than the one before", sizes=everybody),
            ),
        ),
        claim=Claim(ApproxDP(epsilon, beta), source="README, “The budget”"),
        parameters=(*PARAMETERS, replace(NOISE_BITS, follows=least)),
        model="shuffle",
    )


def small_world(sizes: Mapping[str, int]) -> World:
    """Bandit of at least two arms, in which audits run the agent."""
    means = np.linspace(0.2, 0.8, max(2, sizes["A"]))
    mdp = FiniteMDP(
        horizon=1,
        transition=np.ones((1, 1, means.size, 1)),
        reward=means[None, None, :, None],
        initial=np.ones(1),
    )
    return World(name="bandit", description="a bandit of evenly spaced arms", mdp=mdp, facts={})


SHUFFLED_ARMS = Algorithm(
    name="shuffled-arms",
    title="SHUFFLED-ARMS: a bandit whose arms are dealt out in public, from reward bits behind a shuffler",
    source="this package; README of shuffled_arms",
    declare=declare_arms,
    options=OPTIONS,
    online=player,
    twin="shuffled-arms",
    environment="bandit",
    # small batches and no prior to speak of: what is dealt follows the noisy sums closely
    instance=AuditInstance(
        sizes={"H": 1, "S": 1, "A": 2, "K": 8},
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "prior": Fraction(1, 1000),
            "messages": Fraction(20_000_000),
        },
        world=small_world,
    ),
)

__all__ = ["SHUFFLED_ARMS"]
