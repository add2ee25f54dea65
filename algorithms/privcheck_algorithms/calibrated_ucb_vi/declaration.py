"""What CALIBRATED-UCB-VI releases: two tables a batch of users, Gaussian noise, every user in one batch.

All that leaves about a user is one Gaussian vector: transitions with variance σ² and reward sums with σ²/w². Its cost
is that of N(0, 1) against N(μ, 1), exactly, and μ = 0.26805 is the largest that is (1, 10⁻⁵)-DP (to five digits).
"""

from __future__ import annotations

from collections.abc import Mapping

from privcheck.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.guarantees import ApproxDP
from privcheck.mechanisms import Gaussian
from privcheck.registry import Reading
from privcheck.schedules import Batches
from privcheck.statements import Origin
from privcheck.statistics import RewardSums, Statistic, TransitionCounts
from privcheck.symbols import A, Expr, H, S, delta, epsilon, expression, maximum, minimum, symbol
from privcheck.trajectories import Trajectories
from privcheck_algorithms.calibrated_ucb_vi.statistic import FirstVisits
from privcheck_algorithms.online.policy_cells import PolicyCells
from privcheck_algorithms.privatizers.declaration import ANY_START, CALIBRATED, MU, neighbours

WEIGHT = symbol("reward_weight", "positive")

POLICY = Reading(
    name="policy",
    ways=("one", "turns"),
    meaning="one: a batch follows one public policy, and reports cells (s, s′) and rewards less 1/2; turns: 32 "
    "policies take turns in a batch, which reports (s, a, s′) and rewards",
)

COUNTS = Reading(
    name="counts",
    ways=("pooled", "steps"),
    meaning="pooled: dynamics are known not to change with the step; steps: every step may have its own. With "
    "policy=turns pooled is one table for all steps; with policy=one there is a table a step, which the agent adds up",
)
CAP = Reading(
    name="cap",
    ways=("3", "1", "2", "4", "6", "20"),
    meaning="of policy=turns, counts=pooled: a user's first so many visits to each (s, a) are counted; else all are",
)
REWARDS = Reading(
    name="rewards",
    ways=("released", "known"),
    meaning="released: noisy reward sums; known: the mean reward of every (s, a) is public, and costs nothing",
)
REWARD_WEIGHT = Parameter(
    name="reward_weight", default="0.75", kind="positive", meaning="w: reward sums get 1/w times the transitions' noise"
)


def declare_calibrated(readings: Mapping[str, str]) -> Declaration:
    """Returns CALIBRATED-UCB-VI in the chosen readings: (ε, δ)-JDP by one Gaussian vector a user.

    ‖Δ‖₂² of the transitions is at most B and of the rewards at most C: with one policy a batch 2(H − 1) and H; with
    turns both 2·m·min(H, m·S·A) pooled, 2H by step. With σ² = (B + C·w²)/μ² for transitions and σ²/w² for rewards the
    whole is μ-GDP: B/σ² + C·w²/σ² = μ².
    """
    alone = readings.get("policy", "one") == "one"
    pooled = readings.get("counts", "pooled") == "pooled"
    cap, released = int(readings.get("cap", "3")), readings.get("rewards", "released") == "released"
    moved: Expr = 2 * minimum(cap, H) * minimum(H, cap * S * A) if pooled else 2 * H
    gained = moved
    transitions: Statistic[Trajectories] = (
        FirstVisits(of="transitions", cap=cap) if pooled else TransitionCounts(H, S, A)
    )
    rewards: Statistic[Trajectories] = FirstVisits(of="rewards", cap=cap) if pooled else RewardSums(H, S, A)
    if alone:
        moved, gained = 2 * maximum(H - 1, 1), expression(H)
        transitions, rewards = PolicyCells(of="transitions"), PolicyCells(of="centred rewards")
    variance = (moved + gained * WEIGHT**2 if released else moved) / MU**2
    schedule = Batches(size="users, each batch a fixed factor larger than the one before")
    sums = (Release("rewards", rewards, Gaussian(variance=variance / WEIGHT**2), schedule=schedule),)
    return Declaration(
        name="calibrated-ucb-vi",
        title="CALIBRATED-UCB-VI: optimistic value iteration from disjoint batches, Gaussian noise by the exact curve",
        source="this package; README of calibrated_ucb_vi",
        origin=Origin(kind="own", text="README of calibrated_ucb_vi"),
        relation=neighbours(readings, ANY_START),
        releases=(
            Release("transitions", transitions, Gaussian(variance=variance), schedule=schedule),
            *(sums if released else ()),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="README, “The budget”", joint=Joint()),
        parameters=(*CALIBRATED, REWARD_WEIGHT) if released else CALIBRATED,
    )
