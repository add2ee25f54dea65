"""CALIBRATED-UCB-VI: the least regret of this package's algorithms on RiverSwim at (1, 10⁻⁵)-JDP and K = 2·10⁴.

Every user is in one batch, and only one Gaussian vector is released about a user, in the two tables of the batch:
transitions with variance σ² and reward sums with σ²/w². Its cost is exactly that of N(0, 1) against N(μ, 1), and μ =
0.26805 is the largest that is (1, 10⁻⁵)-DP (to five digits).

In this order: counts of each user's first m visits to a cell (`FirstVisits`), the declaration, the registration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import Pair, Relation, ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import RewardSums, Sensitivity, SparseDifference, Statistic, TransitionCounts
from privcheck.errors import TrajectoryError
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import A, Expr, H, S, delta, epsilon, expression, maximum, minimum, sqrt, symbol
from privcheck_algorithms.calibrated_ucb_vi.agent import OPTIONS, player
from privcheck_algorithms.online.policy_cells import PolicyCells
from privcheck_algorithms.privatizers.declaration import ANY_START, CALIBRATED, MU, neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstVisits:
    """A table (1, S, A, S) of transitions, or (1, S, A) of rewards, of each user's first m visits to each (s, a).

    If dynamics do not change with the step, as RiverSwim's, all steps of a user are informative about the same cells;
    but a user who stays in one cell contributes H to it, and the noise has to hide that: ‖Δ‖₂ = H√2
    (`PooledTransitionCounts`). Counting only a user's first m visits to each cell does not change the law of counted
    transitions (whether a visit is counted depends on the past alone), and bounds ‖Δ‖₂ by √(2·m·min(H, m·S·A)).

    Attributes:
        of: Summed quantity.
        cap: m, at least 1.
    """

    of: Literal["transitions", "rewards"]
    cap: int

    @property
    def name(self) -> str:
        """The statistic in words."""
        what = "transition counts" if self.of == "transitions" else "reward sums"
        return f"{what} of each user's first {self.cap} visits to a pair, all steps together"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        return (
            rf"n^{{({self.cap})}}(s,a,s')" if self.of == "transitions" else rf"\textstyle\sum r^{{({self.cap})}}(s,a)"
        )

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return frozenset().union(H.symbols, S.symbols, A.symbols)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data, in words; `Trajectories` rejects other data."""
        return ("states and actions in range, every user has H steps", "rewards in [0, 1]")

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Upper bounds: a user adds at most m in all to the cells of a pair, and min(H, m·S·A) in all.

        So one user's table has ‖·‖₂² ≤ m·min(H, m·S·A). Two users' tables have no negative entry, so the squared norm
        of their difference is at most the sum of both. With a shared first pair the bounds are the same.
        """
        most, each = minimum(H, self.cap * S * A), minimum(self.cap, H)
        users = 2 if isinstance(relation, ReplaceOne) else 1
        return Sensitivity(
            l1=users * most,
            l2=sqrt(users * each * most),
            linf=each,
            reason=f"each of {users} users adds at most {self.cap} to a pair's cells, min(H, {self.cap}·S·A) in all",
        )

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Shape (1, S, A, S) or (1, S, A)."""
        states, actions = int(values["S"]), int(values["A"])
        return (1, states, actions, states) if self.of == "transitions" else (1, states, actions)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """The table, or with step = 0 the same without its first axis.

        Raises:
            TrajectoryError: `step` is neither None nor 0.
        """
        if step not in {None, 0}:
            raise TrajectoryError(f"expected step 0 of a table whose steps are pooled, got {step}")
        table = self._table(data)
        return table[np.newaxis] if step is None else table

    def difference(self, pair: Pair) -> SparseDifference:
        """Change between two users' data, over flat cells of the table."""
        change = np.zeros(0)
        for sign, user in zip((1.0, -1.0), pair, strict=True):
            if user is not None:
                table = sign * self._table(user).ravel()
                change = table if not change.size else change + table
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells, change=change[cells])

    def _table(self, data: Trajectories) -> NDArray[np.float64]:
        states, actions = data.num_states, data.num_actions
        shape = (states, actions, states) if self.of == "transitions" else (states, actions)
        table, rows = np.zeros(shape), np.arange(data.users)
        seen = np.zeros((data.users, states, actions), dtype=np.int64)
        for h in range(data.horizon):
            s, a, following = data.states[:, h], data.actions[:, h], data.states[:, h + 1]
            fresh = seen[rows, s, a] < self.cap
            seen[rows, s, a] += 1
            if self.of == "transitions":
                np.add.at(table, (s[fresh], a[fresh], following[fresh]), 1.0)
            else:
                np.add.at(table, (s[fresh], a[fresh]), data.rewards[fresh, h])
        return table


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
    """CALIBRATED-UCB-VI in the chosen readings: (ε, δ)-JDP by one Gaussian vector per user.

    ‖Δ‖₂² of the transitions is at most B and of the rewards at most C: with one policy per batch 2(H − 1) and H; with
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


CALIBRATED_UCB_VI = Algorithm(
    name="calibrated-ucb-vi",
    title="CALIBRATED-UCB-VI: optimistic value iteration from disjoint batches, Gaussian noise by the exact curve",
    source="this package; README of calibrated_ucb_vi",
    declare=declare_calibrated,
    readings=(POLICY, COUNTS, CAP, REWARDS, ANY_START),
    options=OPTIONS,
    online=player,
    twin="calibrated-ucb-vi",
    release_noise=True,
    # small batches and nothing taken for noise: policies follow the noisy tables closely
    instance=AuditInstance(
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "turns": Fraction(1),
            "support": Fraction(0),
            "known": Fraction(0),
            "noise_bonus": Fraction(0),
            "thin": Fraction(0),
            "optimism": Fraction(0),
            "optimism_rewards": Fraction(0),
            "prior": Fraction(1, 1000),
            "prior_rewards": Fraction(1, 1000),
        },
    ),
)

__all__ = ["CALIBRATED_UCB_VI"]
