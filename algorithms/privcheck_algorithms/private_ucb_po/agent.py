"""The agent of PRIVATE-UCB-PO: a request in, a run out. The algorithm itself is in `kernels`."""

from __future__ import annotations

import numpy as np

from privcheck.online.player import Player, Replicate
from privcheck.online.recording import blank, grid
from privcheck.planning import solve, uniform
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.oppo import ETA_SCALE, learning_rate
from privcheck_algorithms.baselines.ucb_vi import BONUS_SCALE, FAILURE
from privcheck_algorithms.online.optimism import policy_bonus
from privcheck_algorithms.online.private import (
    NOISE,
    PRECISION_SCALE,
    counters_of,
    curator,
    fresh_state,
    numbers,
    vectors,
)
from privcheck_algorithms.online.sizes import refuse
from privcheck_algorithms.online.sparse_mdp import compress
from privcheck_algorithms.private_ucb_po.kernels import play

OPTIONS = (FAILURE, BONUS_SCALE, ETA_SCALE, PRECISION_SCALE)


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns PRIVATE-UCB-PO in its world, ready to play.

    Args:
        request: What is asked.
        noiseless: No noise is drawn; with precision_scale = 0 the run then equals OPPO's.

    Raises:
        ParameterError: Sizes that are not the environment's, no episode, or too many counters.
    """
    refuse(request, vectors=vectors(request))
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    w, truth, given = compress(mdp), solve(mdp), curator(request, noiseless=noiseless)
    failure, scale, eta_scale = numbers(request.options, "failure", "bonus_scale", "eta_scale")
    bonus = policy_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=given.E1, E2=given.E2, scale=scale)
    eta = learning_rate(A=A, H=H, K=K, scale=eta_scale)
    label = "private-ucb-po, noiseless" if noiseless else "private-ucb-po"

    def start(number: int) -> Replicate:
        arrays, generators = fresh_state(request, given, number)
        arrays |= {
            "policy": uniform(H, S, A),  # line 1
            "logits": np.zeros((H, S, A)),
            "values": np.zeros((H + 1, S)),
            "last": uniform(H, S, A),
            "truth": np.zeros((H + 1, S)),
        }
        return Replicate(arrays=arrays | blank(K), generators=generators)

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        play(
            until, K, given.central, given.law, given.scale, w, bonus, eta, truth.value, g["users"], g["noise"],
            a["streams"], a["exact"], a["prefix"], a["noisy"], a["policy"], a["logits"], a["values"], a["last"],
            a["truth"], grid(K), a["curves"], a["totals"],
        )  # fmt: skip

    diagnostics = {"noise_scale": given.scale, "E1": given.E1, "E2": given.E2}
    return Player(
        start=start,
        play=block,
        label=label,
        told="last",
        optimal=truth.value,
        face=counters_of(request, given, tables=H, policy=("last", "policy", "logits", "values")),
        noise=NOISE,
        diagnostics=diagnostics,
    )
