"""OPPO, optimistic policy optimisation (Efroni, Shani, Rosenberg & Mannor 2020a): the twin of PRIVATE-UCB-PO.

Algorithm 1 of paper 002 with exact counts and E = 0.
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
from privcheck.online.recording import DONE, SWITCHES, VALUE, blank, differ, grid, note
from privcheck.planning import solve, uniform
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.ucb_vi import BONUS_SCALE, EPISODES, FAILURE
from privcheck_algorithms.online.optimism import Bonus, evaluate_and_improve, policy_bonus
from privcheck_algorithms.online.sizes import refuse
from privcheck_algorithms.online.sparse_mdp import SparseMDP, compress, roll_mixed, value_mixed
from privcheck_algorithms.online.tables import count, size, split

Array = NDArray[np.float64]

ETA_SCALE = Parameter(
    name="eta_scale", default=1, kind="positive", meaning="factor of the learning rate η = √(2 ln A/(H²K)); paper: 1"
)


def learning_rate(*, A: int, H: int, K: int, scale: float) -> float:
    """Returns η = √(2 ln A/(H²K)) of Theorem 3.2 (line 146 of the text), times `scale`; 0 with one action."""
    return scale * math.sqrt(2 * math.log(A) / (H**2 * K))


@njit(cache=True, nogil=True)
def play(  # noqa: PLR0917 - Numba's functions take positional arguments
    until: int, w: SparseMDP, bonus: Bonus, eta: float, optimal: float, users: np.random.Generator, flat: Array,
    policy: Array, logits: Array, values: Array, last: Array, truth: Array, grid: NDArray[np.int64], curves: Array,
    totals: Array,
) -> None:  # fmt: skip
    """Plays episodes up to and with the given one.

    Args:
        until: The last episode of this block.
        w: Where users act.
        bonus: The bonus's numbers.
        eta: η.
        optimal: V*₁, for the regret.
        users: The users' randomness.
        flat: The counters.
        policy: (H, S, A) π of the next episode.
        logits: As in `evaluate_and_improve`.
        values: (H + 1, S) Ṽ.
        last: (H, S, A) π of this episode.
        truth: (H + 1, S) V^π.
        grid: The record's episodes.
        curves: The record.
        totals: The record's sums.
    """
    path, taken, costs = np.empty(w.H + 1, np.int64), np.empty(w.H, np.int64), np.empty(w.H)
    scratch = (np.empty(w.S * w.A), np.empty(w.S * w.A), np.empty(w.S * w.A))
    bits = np.empty(w.H * w.S * w.A, np.uint64)
    visits, sums, transitions = split(flat, w.H, w.S, w.A)
    while totals[DONE] < until:  # line 4
        totals[SWITCHES] += 1.0 if totals[DONE] > 0.0 and differ(policy, last) else 0.0
        evaluate_and_improve(visits, sums, transitions, bonus, eta, policy, logits, values, scratch, bits, last)
        totals[VALUE] = value_mixed(w, last, truth)
        roll_mixed(w, last, users, path, taken, costs)  # line 11
        note(totals, grid, curves, optimal)
        count(visits, sums, transitions, w.A, path, taken, costs)  # line 12, without noise


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Returns OPPO in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: No episode, or too many counters.
    """
    refuse(request, vectors=1)
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    w, truth = compress(mdp), solve(mdp)
    failure, scale, eta_scale = (float(request.options[name]) for name in ("failure", "bonus_scale", "eta_scale"))
    bonus = policy_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=0.0, E2=0.0, scale=scale)
    eta = learning_rate(A=A, H=H, K=K, scale=eta_scale)

    def start(number: int) -> Replicate:
        arrays = {
            "flat": np.zeros(size(H, S, A)),
            "policy": uniform(H, S, A),  # line 1
            "logits": np.zeros((H, S, A)),
            "values": np.zeros((H + 1, S)),
            "last": uniform(H, S, A),
            "truth": np.zeros((H + 1, S)),
        }
        users = np.random.default_rng(seeds(request.seed, number, "users")["users"])
        return Replicate(arrays=arrays | blank(K), generators={"users": users})

    def block(one: Replicate, until: int) -> None:
        a = one.arrays
        play(
            until, w, bonus, eta, truth.value, one.generators["users"], a["flat"], a["policy"], a["logits"],
            a["values"], a["last"], a["truth"], grid(K), a["curves"], a["totals"],
        )  # fmt: skip

    return Player(start=start, play=block, label="oppo", told="last", optimal=truth.value)


OPPO = Algorithm(
    name="oppo",
    title="OPPO: optimistic policy optimisation from exact counts, not private",
    source="Efroni, Shani, Rosenberg & Mannor 2020; paper 002, Algorithm 1 without noise",
    declare=None,
    options=(EPISODES, FAILURE, BONUS_SCALE, ETA_SCALE),
    online=player,
)
