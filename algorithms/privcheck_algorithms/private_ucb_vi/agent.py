"""PRIVATE-UCB-VI (Chowdhury & Zhou 2022, Algorithm 2): plan, act, publish; compiled by Numba.

An episode: the agent plans from noisy counters, a user answers, the privatizer turns exact counters and the channel's
fresh noise into the next noisy counters. `plan` is the agent, and reads no exact counters; it does not depend on the
kind of privatizer (tree, local, doubling batches, a tree with recomputed noise).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, Player, Record, note
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.optimism import (
    BONUS_SCALE,
    FAILURE,
    Bonus,
    PlanningBuffers,
    backup,
    choose,
    lay_out,
    value_bonus,
    weigh,
)
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, empty_walk, judge, roll_greedy
from privcheck_algorithms.kernels.tables import split
from privcheck_algorithms.online.agent_env import Arrays, assemble, make_env
from privcheck_algorithms.online.private import FIRST_BATCH, PRECISION_SCALE, numbers
from privcheck_algorithms.privatizers import recompute
from privcheck_algorithms.privatizers.counters import (
    DOUBLING,
    LOCAL,
    RECOMPUTED,
    TREE,
    Privatizer,
    publish,
    renews,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

OPTIONS = (FAILURE, replace(BONUS_SCALE, default="0.01"), PRECISION_SCALE)
CALIBRATED_OPTIONS = (*OPTIONS, FIRST_BATCH)


class Agent(NamedTuple):
    """The agent's state, computed from the billboard alone.

    Attributes:
        bonus: Coefficients of the exploration bonus.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
    """

    bonus: Bonus
    actions: Indices
    values: Array


@njit(cache=True, nogil=True)
def play(w: SparseMDP, users: np.random.Generator, agent: Agent, privatizer: Privatizer, record: Record) -> None:
    """Play a block of episodes (Algorithm 2)."""
    layout, truth, walk = privatizer.layout, np.zeros((w.H + 1, w.S)), empty_walk(w.H)
    desk = lay_out(split(privatizer.noisy, layout.T, layout.S, layout.A))
    fresh = renews(privatizer, int(record.totals[DONE]))
    while record.totals[DONE] < record.until:  # line 3
        t = int(record.totals[DONE])
        if fresh:
            again = privatizer.kind == RECOMPUTED
            changed = plan_again(agent, desk, privatizer, t) if again else plan(agent, desk)  # lines 4 to 10
            if changed or t == 0:
                judge(w, agent.actions, truth, record)
        roll_greedy(w, agent.actions, users, walk)  # line 11
        note(record)
        fresh = publish(privatizer, t + 1, walk)  # line 12


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def plan(agent: Agent, desk: PlanningBuffers) -> bool:
    """Plan an episode from scratch (lines 4 to 10 of Algorithm 2).

    Args:
        agent: The agent; its policy and Ṽ are overwritten.
        desk: The billboard.

    Returns:
        Whether the policy changed.
    """
    bonus, actions, values = agent
    H, changed = actions.shape[0], False
    values[H, :] = 0.0  # line 4
    for h in range(H - 1, -1, -1):  # line 5
        weigh(desk, h, bonus)  # lines 6 and 7
        backup(desk, h, values, h)  # line 8
        changed |= choose(desk.quality, h, actions, values)  # lines 9 and 10
    return changed


@njit(cache=True, nogil=True, error_model="numpy")
def plan_again(agent: Agent, desk: PlanningBuffers, privatizer: Privatizer, t: int) -> bool:
    """Plan after t episodes like `plan`, with recomputed noise: a step's tables exist only while it is planned."""
    bonus, actions, values = agent
    H, changed = actions.shape[0], False
    only = desk.tables.visits.shape[0] - 1  # 0; a literal would compile `weigh` and `backup` for itself
    values[H, :] = 0.0
    for h in range(H - 1, -1, -1):
        recompute.write(privatizer.past, privatizer.channel, t, h, privatizer.noisy)
        weigh(desk, only, bonus)
        backup(desk, only, values, h)
        changed |= choose(desk.quality, h, actions, values)
    return changed


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of PRIVATE-UCB-VI in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; with precision_scale = 0 the run then equals UCB-VI's.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, or too many counters.
    """
    where = make_env(request, noiseless=noiseless, kinds=(TREE, RECOMPUTED, DOUBLING, LOCAL))
    given, (H, S, A, _) = where.given, where.layout
    failure, scale = numbers(request.options, "failure", "bonus_scale")
    bonus = value_bonus(H=H, S=S, A=A, K=request.episodes, failure=failure, E1=given.E1, E2=given.E2, scale=scale)

    def begin() -> Arrays:
        return {"actions": np.zeros((H, S), np.int64), "values": np.zeros((H + 1, S))}

    def block(own: Arrays, users: np.random.Generator, privatizer: Privatizer, record: Record) -> None:
        play(where.w, users, Agent(bonus, own["actions"], own["values"]), privatizer, record)

    return assemble(
        where,
        label="private-ucb-vi, noiseless" if noiseless else "private-ucb-vi",
        begin=begin,
        play=block,
        told="actions",
        policy=("actions", "values"),
        diagnostics={"noise_drawn_again": float(given.kind == RECOMPUTED)},
    )
