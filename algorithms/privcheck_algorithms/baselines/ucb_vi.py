"""UCB-VI (Azar, Osband & Munos 2017) with step-dependent transitions, the non-private twin of PRIVATE-UCB-VI.

Algorithm 2 of paper 002 with exact counts and E = 0. An episode adds one visit a step, so planning starts from what
stands: at a step after which no value moved only the visited cell is planned anew, and 1/n and β are computed for
visited cells alone. The numbers are those of planning from scratch, bit by bit: a cell's Q̃ depends on its own counters
and on Ṽ_{h+1} alone.
`w` is the model that users answer by, a `SparseMDP`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.online.driver import seeds
from privcheck.online.player import Player, Replicate
from privcheck.online.recording import DONE, SWITCHES, VALUE, blank, grid, note
from privcheck.planning import solve
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest
from privcheck_algorithms.online.optimism import Bonus, backup, plan, value_bonus, weigh
from privcheck_algorithms.online.sizes import refuse
from privcheck_algorithms.online.sparse_mdp import SparseMDP, compress, roll_greedy, value_greedy
from privcheck_algorithms.online.tables import count, size, split

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

EPISODES = Parameter(name="K", default=20_000, kind="count", meaning="episodes")
FAILURE = Parameter(name="failure", default="0.1", kind="probability", meaning="failure probability of the bonus")
BONUS_SCALE = Parameter(
    name="bonus_scale", default=1, kind="real", meaning="factor of the whole exploration bonus; the paper's: 1"
)


@njit(cache=True, nogil=True, error_model="numpy")
def replan(  # noqa: PLR0917 - Numba's functions take positional arguments
    visits: Array, costs: Array, transitions: Array, w: SparseMDP, bonus: Bonus, path: Indices, taken: Indices,
    inverse: Array, beta: Array, quality: Array, actions: Indices, values: Array,
) -> bool:  # fmt: skip
    """Plans what one more trajectory changed; returns whether the policy changed.

    Args:
        visits: (H, SA) N, the trajectory counted.
        costs: (H, SA) C.
        transitions: (H, S, SA) N(s, a, s′).
        w: Sizes only.
        bonus: The bonus's numbers.
        path: (H + 1,) the trajectory's states.
        taken: (H,) its actions.
        inverse: (H, SA) 1/max(1, N), kept from episode to episode.
        beta: (H, SA) the bonus, kept.
        quality: (H, SA) Q̃, kept.
        actions: (H, S) the policy, kept.
        values: (H + 1, S) Ṽ, kept.
    """
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
def play(  # noqa: PLR0917 - as above
    until: int, w: SparseMDP, bonus: Bonus, optimal: float, users: np.random.Generator,
    path: Indices, taken: Indices, flat: Array, inverse: Array, beta: Array, quality: Array,
    actions: Indices, values: Array,
    judged: Indices, truth: Array, grid: Indices, curves: Array, totals: Array,
) -> None:  # fmt: skip
    """Plays episodes up to and with the given one.

    Args:
        until: The last episode of this block.
        w: Where users act.
        bonus: The bonus's numbers.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        path: (H + 1,) the last trajectory's states, kept.
        taken: (H,) its actions, kept.
        flat: The counters.
        inverse: As in `replan`.
        beta: As in `replan`.
        quality: As in `replan`.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
        judged: As in `value_greedy`.
        truth: (H + 1, S) V^π.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    visits, sums, transitions = split(flat, w.H, w.S, w.A)
    costs = np.empty(w.H)
    scratch = (np.empty(w.S * w.A), np.empty(w.S * w.A), np.empty(w.S * w.A))
    if totals[DONE] == 0.0:
        for h in range(w.H - 1, -1, -1):
            weigh(visits, h, bonus, inverse[h], beta[h])
            backup(sums, transitions, h, inverse[h], beta[h], values, h + 1, float(w.H - h), quality[h])
        plan(visits, sums, transitions, bonus, actions, values, scratch)
        totals[VALUE] = value_greedy(w, actions, judged, truth)
    while totals[DONE] < until:
        if totals[DONE] > 0.0 and replan(  # lines 4 to 10
            visits, sums, transitions, w, bonus, path, taken, inverse, beta, quality, actions, values
        ):
            totals[SWITCHES] += 1.0
            totals[VALUE] = value_greedy(w, actions, judged, truth)
        roll_greedy(w, actions, users, path, taken, costs)  # line 11
        note(totals, grid, curves, optimal)
        count(visits, sums, transitions, w.A, path, taken, costs)  # line 12, without noise


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Returns UCB-VI in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: No episode, or too many counters.
    """
    refuse(request, vectors=1 + 4 / (request.world.mdp.states + 2))
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    w, truth = compress(mdp), solve(mdp)
    failure, scale = (float(request.options[name]) for name in ("failure", "bonus_scale"))
    bonus = value_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=0.0, E2=0.0, scale=scale)

    def start(number: int) -> Replicate:
        arrays = {
            "path": np.zeros(H + 1, np.int64),
            "taken": np.zeros(H, np.int64),
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
        play(
            until, w, bonus, truth.value, one.generators["users"], a["path"], a["taken"], a["flat"],
            a["inverse"], a["beta"], a["quality"], a["actions"], a["values"], a["judged"], a["truth"], grid(K),
            a["curves"], a["totals"],
        )  # fmt: skip

    return Player(start=start, play=block, label="ucb-vi", told="actions", optimal=truth.value)


UCB_VI = Algorithm(
    name="ucb-vi",
    title="UCB-VI: optimistic value iteration from exact counts, not private",
    source="Azar, Osband & Munos 2017; paper 002, Algorithm 2 without noise",
    declare=None,
    options=(EPISODES, FAILURE, BONUS_SCALE),
    online=player,
)
