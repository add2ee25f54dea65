"""Releases of CALIBRATED-VAPVI: one vector per step that serves every V, once, with the least Gaussian noise.

Algorithm 2 of Qiao & Wang 2022 releases five statistics per step, three of which are sums over V or V² and are charged
for V as large as H. The tables of `privcheck_algorithms.linear.tables` do not depend on V; as one vector they have the
cost of their joint worst pair, not the sum of three worst pairs.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Reading
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import H, S, d, rho, symbol
from privcheck_algorithms.linear.tables import LinearTables

RELEASE = "tables"
GRAM_WEIGHT, REWARD_WEIGHT = symbol("gram_weight", "positive"), symbol("reward_weight", "positive")
OPPOSED = symbol("opposed", "positive")

REWARDS = Reading(
    name="rewards",
    ways=("released", "known"),
    meaning="released: noisy reward sums are part of the tables; known: the reward function is public, and costs "
    "nothing",
)
_SIZES = (
    Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
    Parameter(name="S", default=2, kind="count", meaning="states"),
    Parameter(name="d", default=10, kind="count", meaning="dimension of the features"),
)
_RHO = Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats")
_GRAM = Parameter(
    name="gram_weight",
    default=1,
    kind="positive",
    meaning="g: Gram matrices have 1/g times the noise variance of the successors' sums",
)
_REWARD = Parameter(
    name="reward_weight",
    default=4,
    kind="positive",
    meaning="w: reward sums have 1/w times the noise variance of the successors' sums",
)
_OPPOSED = Parameter(
    name="opposed",
    default="1",
    kind="positive",
    meaning="-κ, at most 1: no two features, as they are mapped, have an inner product below κ; 1 of any features",
)


def declare_calibrated(readings: Mapping[str, str]) -> Declaration:
    """CALIBRATED-VAPVI: ρ-zCDP by one Gaussian vector with squared sensitivity exactly H·F.

    ρ = Δ²/2σ² with Δ² = H·F (`LinearTables.moved`), hence σ² = H·F/2ρ.
    """
    released = readings.get("rewards", "released") == "released"
    tables = LinearTables(
        H, d, S, gram=GRAM_WEIGHT, successors=1, rewards=REWARD_WEIGHT if released else None, least=-OPPOSED
    )
    return Declaration(
        name="calibrated-vapvi",
        title="CALIBRATED-VAPVI: offline value iteration from V-free tables, with the least Gaussian noise",
        source="this package; README of calibrated_vapvi",
        origin=Origin(kind="own", text="README of calibrated_vapvi"),
        relation=ReplaceOne("trajectory"),
        releases=(Release(RELEASE, tables, Gaussian(variance=H * tables.moved / (2 * rho))),),
        claim=Claim(ZCDP(rho), source="README, “The budget”"),
        parameters=(*_SIZES, _RHO, _GRAM, *((_REWARD,) if released else ()), _OPPOSED),
        candidates=tables.candidates,
        records=tables.record,
    )
