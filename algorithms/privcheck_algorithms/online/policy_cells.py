"""Reports of users in a batch that follows one public deterministic policy: the cells (x, x′), and rewards.

With a = π_h(x) public, the cells (x, a, x′) with another a stay at 0 whatever the data, so that no counter is needed
for them. A last transition, into the state after step H, does not matter for planning, and is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories
from privcheck.declare.relations import Pair, Relation, ReplaceOne
from privcheck.declare.statistics import Sensitivity, SparseDifference
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.terms.symbols import H, expression, maximum, sqrt


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCells:
    """A table (max(H − 1, 1), S, S) of transitions, or (H, S) of rewards, of users who follow one public policy.

    Rewards are bits, or rewards less ½. Two users in different cells change centred rewards by ½ each and bits by 1
    each: the squared norm per step is at most 1, or 2 for bits, and the subtracted sum is known from the number of
    arrivals.

    Attributes:
        of: The summed quantity.
        policy: (H, S) public actions used for input validation; None until the policy is known.
    """

    of: Literal["transitions", "reward bits", "centred rewards"]
    policy: tuple[tuple[int, ...], ...] | None = None

    @property
    def name(self) -> str:
        """The statistic in words."""
        return f"{self.of} under the batch's policy"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        sums = (
            r"\textstyle\sum r_h(x,\pi_h(x))" if self.of == "reward bits" else r"\textstyle\sum (r_h(x,\pi_h(x)) - 1/2)"
        )
        return r"n_h(x,\pi_h(x),x')" if self.of == "transitions" else sums

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return frozenset({"H", "S"})

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data, in words."""
        kept = ("states in range, every user has H steps", "actions are the public policy's (the agent's door)")
        return {
            "transitions": kept,
            "reward bits": (*kept, "rewards 0 or 1"),
            "centred rewards": (*kept, "rewards in [0, 1]"),
        }[self.of]

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Upper bounds: at each step a user adds at most 1 to one cell, or ½ of a centred reward.

        If step 1 is shared, its reward bit changes one cell; its centred reward may change one cell by as much as two
        others.

        Raises:
            DeclarationError: A user has several trajectories.
        """
        if relation.trajectories != expression(1):
            message = f"{self.name}: a user follows the policy once, got the relation {relation.words!r}"
            raise DeclarationError(f"{message}; declare it for one trajectory")
        steps = maximum(H - 1, 1) if self.of == "transitions" else H
        moved = 2 * steps if isinstance(relation, ReplaceOne) else steps
        if self.of == "centred rewards" and isinstance(relation, ReplaceOne):
            return Sensitivity(
                l1=H,
                l2=sqrt(H),
                linf=expression(1),
                reason="at each step two cells by at most ½ each, or one cell by at most 1",
            )
        if self.of == "centred rewards":
            half = expression(Fraction(1, 2))
            return Sensitivity(l1=H / 2, l2=sqrt(H) / 2, linf=half, reason="at each step one cell by at most ½")
        if isinstance(relation, ReplaceOne) and relation.initial == "fixed" and self.of == "reward bits":
            moved = moved - 1  # one state at step 1, and one reward bit more or less
        return Sensitivity(
            l1=moved,
            l2=sqrt(moved),
            linf=expression(1),
            reason="one cell loses and another gains at each step, by at most 1 each",
            stepwise=True,
        )

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Shape (max(H − 1, 1), S, S) or (H, S)."""
        steps, states = int(values["H"]), int(values["S"])
        return (max(steps - 1, 1), states, states) if self.of == "transitions" else (steps, states)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """The table, or its slice at one step from 0.

        Raises:
            TrajectoryError: A reward is not a bit, an action is not the policy's, or the step does not exist.
        """
        if step is None:
            steps = max(data.horizon - 1, 1) if self.of == "transitions" else data.horizon
            return np.stack([self.compute(data, step=h) for h in range(steps)])
        if not 0 <= step < data.horizon:
            raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
        states = data.num_states
        self._refuse_others(data, step)
        if self.of == "transitions":
            table = np.zeros((states, states))
            np.add.at(table, (data.states[:, step], data.states[:, step + 1]), 1.0)
            return table
        rewards = data.rewards[:, step]
        if self.of == "centred rewards":
            rewards = rewards - 0.5
        elif odd := rewards[(rewards != 0) & (rewards != 1)].tolist():
            message = f"expected rewards 0 or 1, got {odd[0]} at step {step + 1}: let each user round it to 1 with that"
            raise TrajectoryError(f"{message} probability")
        sums = np.zeros(states)
        np.add.at(sums, data.states[:, step], rewards)
        return sums

    def _refuse_others(self, data: Trajectories, step: int) -> None:
        """Raise an error for users who did not follow the policy: their cells would count for another action."""
        if self.policy is None:
            return
        told = np.array(self.policy)[step][data.states[:, step]]
        if (other := np.flatnonzero(told != data.actions[:, step])).size:
            user = int(other[0])
            message = (
                f"expected the batch's policy at step {step + 1}, action {told[user]} in state "
                f"{data.states[user, step]}, got action {data.actions[user, step]} of user {user}"
            )
            raise TrajectoryError(f"{message}: only users who followed the policy may be in this batch")

    def difference(self, pair: Pair) -> SparseDifference:
        """Change between two users' data, over flat cells of the table."""
        change = np.zeros(1)
        for sign, user in zip((1.0, -1.0), pair, strict=True):
            if user is not None:
                change = change + sign * self.compute(user).ravel()
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells, change=change[cells])


def draw_user(values: Mapping[str, Fraction], rng: np.random.Generator) -> Trajectories:
    """Random user with reward bits: one who stays in a state with reward 1 throughout, or a random one.

    Args:
        values: The parameters H, S and A.
        rng: Generator of the user.
    """
    steps, states, number = (int(values[name]) for name in ("H", "S", "A"))
    stays = rng.random() < 0.5
    path = np.full((1, steps + 1), rng.integers(states)) if stays else rng.integers(0, states, (1, steps + 1))
    return Trajectories(
        states=path.astype(np.int32),
        actions=np.zeros((1, steps), np.int32),
        rewards=np.ones((1, steps)) if stays else rng.integers(0, 2, (1, steps)).astype(np.float64),
        num_states=states,
        num_actions=number,
    )
