"""Releases of CALIBRATED-LSVI-UCB: one vector per batch and step, independent of V, every user in one batch.

Only one Gaussian vector is released about a user. Its squared sensitivity is T·F, with T the steps with relevant
successors and F the largest squared distance at a step of any two users' vectors
(`privcheck_algorithms.linear.tables`):
ρ = T·F/2σ², so that σ² = T·F/2ρ is the least noise for the claim.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Reading
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import Expr, H, S, d, maximum, rho, symbol
from privcheck_algorithms.linear.tables import LinearTables
from privcheck_algorithms.privatizers.declaration import EPISODES

RELEASE = "tables"
GRAM_WEIGHT, REWARD_WEIGHT = symbol("gram_weight", "positive"), symbol("reward_weight", "positive")
OPPOSED = symbol("opposed", "positive")

GRAM = Reading(
    name="gram",
    ways=("modelled", "released"),
    meaning="modelled: Gram matrices follow from the public policies and the model learned so far, and cost nothing; "
    "released: noisy Gram matrices leave beside the successors' sums",
)
REWARDS = Reading(
    name="rewards",
    ways=("known", "released"),
    meaning="known: the mean reward of every (s, a) is public, and costs nothing; released: noisy sums of φ·(r − ½)",
)
FEATURES = Reading(
    name="features",
    ways=("mapped", "given"),
    meaning="mapped: by the public linear map that makes the smallest ellipsoid about them a ball; given: as they are",
)
_SIZES = (
    Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
    Parameter(name="S", default=2, kind="count", meaning="states, at least 2", least=2),
    Parameter(name="d", default=10, kind="count", meaning="dimension of the features"),
    EPISODES,
)
_RHO = Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats")
_GRAM = Parameter(
    name="gram_weight",
    default="1/2",
    kind="positive",
    meaning="g: Gram matrices have 1/g times the noise variance of the successors' sums",
)
_REWARD = Parameter(
    name="reward_weight",
    default="1/2",
    kind="positive",
    meaning="w: reward sums have 1/w times the noise variance of the successors' sums",
)
_OPPOSED = Parameter(
    name="opposed",
    default="1",
    kind="positive",
    meaning="-κ, at most 1: no two features, as they are mapped, have an inner product below κ; 1 of any features; "
    "noise is least from 1/(S - 1) down, which one-hot features allow",
)


def declare_calibrated(readings: Mapping[str, str]) -> Declaration:
    """CALIBRATED-LSVI-UCB in the chosen readings: ρ-zCDP of the releases, joint ρ-zCDP by the billboard.

    With public rewards the last step's successors are not needed for planning, and are not released: T = H − 1, or 1 if
    H = 1.
    """
    modelled = readings.get("gram", "modelled") == "modelled"
    known = readings.get("rewards", "known") == "known"
    steps: Expr = maximum(H - 1, 1) if known else H
    tables = LinearTables(
        steps,
        d,
        S,
        gram=None if modelled else GRAM_WEIGHT,
        successors=1,
        rewards=None if known else REWARD_WEIGHT,
        least=-OPPOSED,
    )
    return Declaration(
        name="calibrated-lsvi-ucb",
        title="CALIBRATED-LSVI-UCB: posterior sampling from V-free sums of disjoint batches, with the least noise",
        source="this package; README of calibrated_lsvi_ucb",
        origin=Origin(kind="own", text="README of calibrated_lsvi_ucb"),
        relation=ReplaceOne("trajectory"),
        releases=(
            Release(
                RELEASE,
                tables,
                Gaussian(variance=steps * tables.moved / (2 * rho)),
                schedule=Batches(size="users, each batch a fixed factor larger than the one before"),
            ),
        ),
        claim=Claim(ZCDP(rho), source="README, “The budget”", joint=Joint()),
        parameters=(*_SIZES, _RHO, _OPPOSED, *(() if modelled else (_GRAM,)), *(() if known else (_REWARD,))),
        candidates=tables.candidates,
        records=tables.record,
    )
