"""DP-APVI (Qiao & Wang 2022, Algorithm 1): one agent, declared with Gaussian and with Laplace noise.

Visit and transition counts are released once, with noise. The paper assumes that the reward function r is known. If it
is not (`rewards="released"`), per-cell reward sums are a third release, and the budget is split over three tables
instead of two: a deviation, declared and charged like the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import L1, L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import RewardSums, Statistic, TransitionCounts, VisitCounts
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.terms.guarantees import ZCDP, PureDP
from privcheck.terms.symbols import A, H, S, epsilon, rho, sqrt
from privcheck_algorithms.dp_apvi import conformance
from privcheck_algorithms.dp_apvi.agent import AGENT, OPTIONS
from privcheck_algorithms.papers import DP_APVI_LAPLACE_RATE, DP_APVI_RATE, OFFLINE, PURE_APVI, THEOREM_3_4

SIZES = (
    Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
    Parameter(name="S", default=24, kind="count", meaning="states"),
    Parameter(name="A", default=25, kind="count", meaning="actions"),
)
RHO = Parameter(name="rho", default="1", kind="positive", meaning="budget in zCDP, nats")
EPSILON = Parameter(name="epsilon", default="1", kind="positive", meaning="budget in pure DP, nats")
_TEXT = "Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1"

REWARDS = Reading(
    name="rewards",
    ways=("known", "released"),
    meaning="known: the reward function is public, as in the paper; released: noisy reward sums are a third release",
    private_rewards="released",
)


def gaussian(readings: Mapping[str, str]) -> Declaration:
    """DP-APVI with Gaussian noise: ρ-zCDP by Theorem 3.4, eq. (2)."""
    tables = _tables(readings)
    # eq. (2): σ² = 2H/ρ, each of the two tables ρ/2-zCDP (Lemma D.1); three tables: ρ/3 each
    variance = len(tables) * H / rho
    return Declaration(
        name="dp-apvi",
        title="DP-APVI: offline value iteration from noisy counts, Gaussian",
        source="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1 and eq. (2)",
        relation=ReplaceOne("trajectory"),
        releases=tuple(
            Release(name, statistic, Gaussian(variance=variance), stated=L2(sqrt(2 * H)), source="Lemma D.1")
            for name, statistic in tables.items()
        ),
        claim=Claim(ZCDP(rho), source="Theorem 3.4", statements=(THEOREM_3_4,)),
        origin=_origin(_TEXT, readings),
        parameters=(*SIZES, RHO),
    )


def laplace(readings: Mapping[str, str]) -> Declaration:
    """DP-APVI with Laplace noise: ε-DP (section 3, "Apply Laplace Mechanism")."""
    tables = _tables(readings)
    scale = 2 * len(tables) * H / epsilon  # section 3: Lap(4H/ε) for two tables whose joint ℓ₁ sensitivity is 4H
    return Declaration(
        name="dp-apvi-laplace",
        title="DP-APVI: offline value iteration from noisy counts, Laplace",
        source="Qiao & Wang 2022, arXiv:2206.00810, section 3, Algorithm 1 with the Laplace mechanism",
        relation=ReplaceOne("trajectory"),
        releases=tuple(
            Release(name, statistic, Laplace(scale=scale), stated=L1(2 * H), source="section 3")
            for name, statistic in tables.items()
        ),
        claim=Claim(PureDP(epsilon), source="section 3", statements=(PURE_APVI,)),
        origin=_origin(f"{_TEXT}, with the Laplace noise of section 3", readings),
        parameters=(*SIZES, EPSILON),
    )


def _origin(printed: str, readings: Mapping[str, str]) -> Origin:
    if readings.get("rewards", "known") == "known":
        return Origin(kind="printed", text=printed)
    third = "sums of rewards are a third noisy table, because these data have no public reward function"
    return Origin(kind="repaired", text=printed, changed=third)


def _tables(readings: Mapping[str, str]) -> dict[str, Statistic[Trajectories]]:
    tables: dict[str, Statistic[Trajectories]] = {
        "visits": VisitCounts(H, S, A),
        "transitions": TransitionCounts(H, S, A),
    }
    if readings.get("rewards", "known") == "released":
        tables["rewards"] = RewardSums(H, S, A)
    return tables


GAUSSIAN = Algorithm(
    name="dp-apvi",
    title="DP-APVI: offline value iteration from noisy counts, Gaussian",
    source="Qiao & Wang 2022, arXiv:2206.00810, Algorithm 1",
    paper=OFFLINE,
    declare=gaussian,
    readings=(REWARDS,),
    options=OPTIONS,
    printed={"bonus_scale": "1"},
    offline=AGENT,
    instance=AuditInstance(sizes={"H": 2, "S": 2, "A": 2}),  # where a violation would be visible
    conformance=conformance.GAUSSIAN,
    rate=DP_APVI_RATE,
)

LAPLACE = Algorithm(
    name="dp-apvi-laplace",
    title="DP-APVI: offline value iteration from noisy counts, Laplace",
    source="Qiao & Wang 2022, arXiv:2206.00810, section 3, Algorithm 1 with the Laplace mechanism",
    paper=OFFLINE,
    declare=laplace,
    readings=(REWARDS,),
    options=OPTIONS,
    printed={"bonus_scale": "1"},
    offline=AGENT,
    instance=AuditInstance(sizes={"H": 1, "S": 2, "A": 2}),
    conformance=conformance.LAPLACE,
    rate=DP_APVI_LAPLACE_RATE,
)

__all__ = ["GAUSSIAN", "LAPLACE"]
