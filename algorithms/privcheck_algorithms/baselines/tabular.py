"""UCB-VI and OPPO, the non-private twins of PRIVATE-UCB-VI and PRIVATE-UCB-PO.

* UCB-VI (Azar, Osband & Munos 2017) with step-dependent transitions: Algorithm 2 of Chowdhury & Zhou 2022 with exact
  counts and E = 0. Planning is incremental (`replan`).
* OPPO, optimistic policy optimisation (Efroni, Shani, Rosenberg & Mannor 2020a): Algorithm 1 of Chowdhury & Zhou 2022
  with exact counts and E = 0.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import solve
from privcheck.declare.declaration import Parameter
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Player, Record, Replicate, blank, grid, note
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.replicates import seeds
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.optimism import (
    BONUS_SCALE,
    FAILURE,
    Bonus,
    PlanningBuffers,
    backup,
    choose,
    share_at_limit,
    value_bonus,
    weigh,
)
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, Walk, compress, roll_greedy, value_greedy
from privcheck_algorithms.kernels.tables import Counters, Layout, count, size, split
from privcheck_algorithms.online.agent_env import make_env
from privcheck_algorithms.online.private import refuse
from privcheck_algorithms.private_ucb_po.agent import ETA_SCALE, optimise
from privcheck_algorithms.privatizers.counters import EXACT

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

EPISODES = Parameter(name="K", default=20_000, kind="count", meaning="episodes")


class Agent(NamedTuple):
    """The agent, with its state for incremental planning.

    Attributes:
        bonus: Coefficients of the exploration bonus.
        walk: The last trajectory.
        flat: N, C and N(·, ·, s′), as one vector.
        inverse: (H, SA) 1/max(1, N).
        beta: (H, SA) the bonus.
        quality: (H, SA) Q̃.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
        judged: As in `value_greedy`.
        truth: (H + 1, S) V^π.
    """

    bonus: Bonus
    walk: Walk
    flat: Array
    inverse: Array
    beta: Array
    quality: Array
    actions: Indices
    values: Array
    judged: Indices
    truth: Array


@njit(cache=True, nogil=True, error_model="numpy")
def replan(w: SparseMDP, agent: Agent, tables: Counters) -> bool:
    """Update the plan after one more trajectory; returns whether the policy changed.

    An episode adds one visit per step: 1/n and β are computed for the visited cell only, and where no value of the next
    step changed, only this cell is planned again. The numbers are those of planning from scratch, bit by bit: a cell's
    Q̃ depends on its own counters and on Ṽ_{h+1} alone.

    Args:
        w: The model, of which only the sizes are used.
        agent: The agent; its policy and planning state are overwritten.
        tables: Its counters, with the last trajectory counted.
    """
    visits, costs, transitions = tables
    bonus, (path, taken, _) = agent.bonus, agent.walk
    inverse, beta, quality, actions, values = agent.inverse, agent.beta, agent.quality, agent.actions, agent.values
    cells = w.S * w.A
    changed, moved = False, False  # moved: Ṽ_{h+1} is not what it was
    for h in range(w.H - 1, -1, -1):
        visited, top = path[h] * w.A + taken[h], float(w.H - h)
        inverse[h, visited] = 1.0 / max(1.0, visits[h, visited] + bonus.E)
        beta[h, visited] = bonus.root * math.sqrt(inverse[h, visited]) + bonus.linear * inverse[h, visited]
        first, last = path[h], path[h] + 1
        if moved:  # `backup`, operation by operation
            first, last = 0, w.S
            for cell in range(cells):
                quality[h, cell] = costs[h, cell]
            for successor in range(w.S):
                value = values[h + 1, successor]
                for cell in range(cells):
                    quality[h, cell] += transitions[h, successor, cell] * value
            for cell in range(cells):
                quality[h, cell] = min(top, max(0.0, quality[h, cell] * inverse[h, cell] - beta[h, cell]))
        else:
            total = costs[h, visited]
            for successor in range(w.S):
                total += transitions[h, successor, visited] * values[h + 1, successor]
            quality[h, visited] = min(top, max(0.0, total * inverse[h, visited] - beta[h, visited]))
        moved = False
        for s in range(first, last):
            best, which = quality[h, s * w.A], 0
            for a in range(1, w.A):
                if quality[h, s * w.A + a] < best:
                    best, which = quality[h, s * w.A + a], a
            moved = moved or best != values[h, s]
            changed = changed or which != actions[h, s]
            values[h, s], actions[h, s] = best, which
    return changed


@njit(cache=True, nogil=True, error_model="numpy")
def play(w: SparseMDP, users: np.random.Generator, agent: Agent, record: Record) -> None:
    """Play a block of episodes (Algorithm 2 of Chowdhury & Zhou 2022, with exact counts)."""
    bonus, inverse, beta, quality = agent.bonus, agent.inverse, agent.beta, agent.quality
    actions, values, totals = agent.actions, agent.values, record.totals
    tables, layout = split(agent.flat, w.H, w.S, w.A), Layout(w.H, w.S, w.A, False)
    if totals[DONE] == 0.0:
        for h in range(w.H - 1, -1, -1):
            desk = PlanningBuffers(tables, inverse[h], beta[h], quality[h])
            weigh(desk, h, bonus)
            backup(desk, h, values, h)
            choose(quality[h], h, actions, values)
        totals[VALUE] = value_greedy(w, actions, agent.judged, agent.truth)
    while totals[DONE] < record.until:
        if totals[DONE] > 0.0 and replan(w, agent, tables):  # lines 4 to 10
            totals[SWITCHES] += 1.0
            totals[VALUE] = value_greedy(w, actions, agent.judged, agent.truth)
        roll_greedy(w, actions, users, agent.walk)  # line 11
        note(record)
        count(agent.flat, layout, agent.walk)  # line 12, without noise


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Player of UCB-VI in its world; it never draws noise.

    Raises:
        ParameterError: No episode, or too many counters.
    """
    refuse(request, vectors=1 + 4 / (request.world.mdp.states + 2))
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    w, truth, points = compress(mdp), solve(mdp), grid(K)
    failure, scale = (float(request.options[name]) for name in ("failure", "bonus_scale"))
    bonus = value_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=0.0, E2=0.0, scale=scale)

    def start(number: int) -> Replicate:
        arrays = {
            "path": np.zeros(H + 1, np.int64),
            "taken": np.zeros(H, np.int64),
            "costs": np.zeros(H),
            "flat": np.zeros(size(H, S, A)),
            **{name: np.zeros((H, S * A)) for name in ("inverse", "beta", "quality")},
            "actions": np.zeros((H, S), np.int64),
            "values": np.zeros((H + 1, S)),
            "judged": np.full((H, S), -1),
            "truth": np.zeros((H + 1, S)),
        }
        users = np.random.default_rng(seeds(request.seed, number, "users")["users"])
        return Replicate(arrays=arrays | blank(K), generators={"users": users})

    def block(one: Replicate, until: int) -> None:
        a = one.arrays
        kept = {name: a[name] for name in Agent._fields if name in a}
        agent = Agent(bonus=bonus, walk=Walk(a["path"], a["taken"], a["costs"]), **kept)
        record = Record(until=until, totals=a["totals"], curves=a["curves"], grid=points, optimal=truth.value)
        play(w, one.generators["users"], agent, record)

    return Player(
        start=start,
        play=block,
        label="ucb-vi",
        told="actions",
        optimal=truth.value,
        at_limit=lambda one: share_at_limit(one.arrays["values"], costs=True),
    )


UCB_VI = Algorithm(
    name="ucb-vi",
    title="UCB-VI: optimistic value iteration from exact counts, not private",
    source="Azar, Osband & Munos 2017; Chowdhury & Zhou 2022, Algorithm 2 without noise",
    declare=None,
    options=(EPISODES, FAILURE, BONUS_SCALE),
    printed={"bonus_scale": "1"},
    online=player,
)


def oppo_player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Player of OPPO in its world; it never draws noise.

    Raises:
        ParameterError: No episode, or too many counters.
    """
    return optimise(make_env(request, kinds=(EXACT,)), "oppo")


OPPO = Algorithm(
    name="oppo",
    title="OPPO: optimistic policy optimisation from exact counts, not private",
    source="Efroni, Shani, Rosenberg & Mannor 2020; Chowdhury & Zhou 2022, Algorithm 1 without noise",
    declare=None,
    options=(EPISODES, FAILURE, BONUS_SCALE, replace(ETA_SCALE, default=200)),
    printed={"bonus_scale": "1", "eta_scale": "1"},
    online=oppo_player,
)
