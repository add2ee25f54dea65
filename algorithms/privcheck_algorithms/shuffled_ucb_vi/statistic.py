"""What users of a batch report who all follow one public deterministic policy: the cells (x, x′), and reward bits.

With a = π_h(x) public, the cells (x, a, x′) with another a stay at 0 whatever the data, so that no counter is needed
for them. A last transition, into the state after step H, is worth nothing to a plan, and is not reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.relations import Pair, Relation, ReplaceOne
from privcheck.statistics import Sensitivity, SparseDifference
from privcheck.symbols import H, expression, maximum, sqrt
from privcheck.trajectories import Trajectories


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCells:
    """A table (max(H − 1, 1), S, S) of transitions, or (H, S) of reward bits, of users who follow one public policy.

    Attributes:
        of: What is summed.
    """

    of: Literal["transitions", "rewards"]

    @property
    def name(self) -> str:
        """Returns the statistic in words."""
        return "transitions under the batch's policy" if self.of == "transitions" else "reward bits under it"

    @property
    def latex(self) -> str:
        """Returns the statistic as a formula."""
        return r"n_h(x,\pi_h(x),x')" if self.of == "transitions" else r"\textstyle\sum r_h(x,\pi_h(x))"

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that the statistic depends on."""
        return frozenset({"H", "S"})

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns what the data must satisfy, in words."""
        kept = ("states in range, every user has H steps", "actions are the public policy's (the agent's door)")
        return kept if self.of == "transitions" else (*kept, "rewards 0 or 1")

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns upper bounds: at each step a user adds at most 1 to one cell, and 1 fewer at step 1's shared reward.

        Raises:
            DeclarationError: A user has several trajectories.
        """
        if relation.trajectories != expression(1):
            message = f"{self.name}: a user follows the policy once, got the relation {relation.words!r}"
            raise DeclarationError(f"{message}; declare it for one trajectory")
        steps = maximum(H - 1, 1) if self.of == "transitions" else H
        moved = 2 * steps if isinstance(relation, ReplaceOne) else steps
        if isinstance(relation, ReplaceOne) and relation.initial == "fixed" and self.of == "rewards":
            moved = moved - 1  # one state at step 1, and one reward bit more or less
        return Sensitivity(
            l1=moved,
            l2=sqrt(moved),
            linf=expression(1),
            reason="one cell loses and another gains at each step, by at most 1 each",
            stepwise=True,
        )

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns (max(H − 1, 1), S, S) or (H, S)."""
        steps, states = int(values["H"]), int(values["S"])
        return (max(steps - 1, 1), states, states) if self.of == "transitions" else (steps, states)

    def compute(self, data: Trajectories, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns the table, or its slice at one step counted from 0.

        Raises:
            TrajectoryError: A reward is no bit, or there is no such step.
        """
        if step is None:
            steps = max(data.horizon - 1, 1) if self.of == "transitions" else data.horizon
            return np.stack([self.compute(data, step=h) for h in range(steps)])
        if not 0 <= step < data.horizon:
            raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
        states = data.num_states
        if self.of == "transitions":
            table = np.zeros((states, states))
            np.add.at(table, (data.states[:, step], data.states[:, step + 1]), 1.0)
            return table
        bits = data.rewards[:, step]
        if odd := bits[(bits != 0) & (bits != 1)].tolist():
            message = f"expected rewards 0 or 1, got {odd[0]} at step {step + 1}: let each user round it to 1 with that"
            raise TrajectoryError(f"{message} probability")
        sums = np.zeros(states)
        np.add.at(sums, data.states[:, step], bits)
        return sums

    def difference(self, pair: Pair) -> SparseDifference:
        """Returns the change between two users' data, over flat cells of the table."""
        change = np.zeros(1)
        for sign, user in zip((1.0, -1.0), pair, strict=True):
            if user is not None:
                change = change + sign * self.compute(user).ravel()
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells, change=change[cells])


def draw_user(values: Mapping[str, Fraction], rng: np.random.Generator) -> Trajectories:
    """Returns one user's data with reward bits: one who stays in a state, with reward 1 throughout, or a random one.

    Args:
        values: The parameters H, S and A.
        rng: The randomness.
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
