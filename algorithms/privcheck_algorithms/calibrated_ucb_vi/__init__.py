"""CALIBRATED-UCB-VI: the least regret of this package's algorithms on RiverSwim at (1, 10⁻⁵)-JDP and K = 2·10⁴.

A batch follows one public policy, so its users report cells (s, s′) and rewards less ½ alone. Every user is in one
batch, and only one Gaussian vector is released about a user, in the two tables of the batch: transitions with variance
σ² and reward sums with σ²/w². Its cost is exactly that of N(0, 1) against N(μ, 1), and μ = 0.26805 is the largest that
is (1, 10⁻⁵)-DP (to five digits).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import H, delta, epsilon, expression, maximum, symbol
from privcheck_algorithms.calibrated_ucb_vi.agent import OPTIONS, player
from privcheck_algorithms.online.policy_cells import PolicyCells
from privcheck_algorithms.privatizers.declaration import ANY_START, CALIBRATED, MU, neighbours

WEIGHT = symbol("reward_weight", "positive")

COUNTS = Reading(
    name="counts",
    ways=("pooled", "steps"),
    meaning="pooled: dynamics are known not to change with the step, and the agent adds the steps' tables up; steps: "
    "every step may have its own",
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
    """CALIBRATED-UCB-VI in the chosen readings: (ε, δ)-JDP by one Gaussian vector per user.

    ‖Δ‖₂² of the transitions is at most B = 2(H − 1) and of the rewards at most C = H. With σ² = (B + C·w²)/μ² for
    transitions and σ²/w² for rewards the whole is μ-GDP: B/σ² + C·w²/σ² = μ².
    """
    released = readings.get("rewards", "released") == "released"
    moved, gained = 2 * maximum(H - 1, 1), expression(H)
    variance = (moved + gained * WEIGHT**2 if released else moved) / MU**2
    schedule = Batches(size="users, each batch a fixed factor larger than the one before")
    rewards = PolicyCells(of="centred rewards")
    sums = (Release("rewards", rewards, Gaussian(variance=variance / WEIGHT**2), schedule=schedule),)
    return Declaration(
        name="calibrated-ucb-vi",
        title="CALIBRATED-UCB-VI: optimistic value iteration from disjoint batches, Gaussian noise by the exact curve",
        source="this package; README of calibrated_ucb_vi",
        origin=Origin(kind="own", text="README of calibrated_ucb_vi"),
        relation=neighbours(readings, ANY_START),
        releases=(
            Release("transitions", PolicyCells(of="transitions"), Gaussian(variance=variance), schedule=schedule),
            *(sums if released else ()),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="README, “The budget”", joint=Joint()),
        parameters=(*CALIBRATED, REWARD_WEIGHT) if released else CALIBRATED,
    )


CALIBRATED_UCB_VI = Algorithm(
    name="calibrated-ucb-vi",
    title="CALIBRATED-UCB-VI: optimistic value iteration from disjoint batches, Gaussian noise by the exact curve",
    source="this package; README of calibrated_ucb_vi",
    declare=declare_calibrated,
    readings=(COUNTS, REWARDS, ANY_START),
    options=OPTIONS,
    online=player,
    twin="calibrated-ucb-vi",
    release_noise=True,
    # small batches and nothing taken for noise: policies follow the noisy tables closely
    instance=AuditInstance(
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "thin": Fraction(0),
            "optimism": Fraction(0),
            "optimism_rewards": Fraction(0),
            "prior": Fraction(1, 1000),
            "prior_rewards": Fraction(1, 1000),
        },
    ),
)

__all__ = ["CALIBRATED_UCB_VI"]
