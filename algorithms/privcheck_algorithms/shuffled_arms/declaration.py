"""What SHUFFLED-ARMS releases: one reward bit of every user, behind a shuffler, once a batch.

Which user is dealt which arm is public and depends on earlier batches alone: neighbours share it. So a user moves one
counter by one, Bin(N, ½) + 1 against Bin(N, ½), and N = 62 fair bits are (1, 10⁻⁵)-SDP by the exact curve.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.declaration import Claim, Declaration, Parameter, Release
from privcheck.guarantees import ApproxDP
from privcheck.mechanisms import ShuffledBits
from privcheck.relations import ReplaceOne
from privcheck.schedules import Batches
from privcheck.statements import Origin
from privcheck.statistics import RewardBits
from privcheck.symbols import A, beta, epsilon, n, symbol
from privcheck_algorithms.privatizers.least import LeastNoise

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
    """Returns K for the size of any batch: noise bits that are dealt out are as many in every one."""
    return (int(values["K"]),)


def declare_arms(readings: Mapping[str, str]) -> Declaration:
    """Returns SHUFFLED-ARMS: an arm's counter behind a shuffler, every bit a message of its own."""
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
