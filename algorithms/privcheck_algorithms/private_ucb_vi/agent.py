"""The agent of PRIVATE-UCB-VI: a request in, a run out. The algorithm itself is in `kernels`."""

from __future__ import annotations

import numpy as np

from privcheck.online.player import Player, Replicate
from privcheck.online.recording import blank, grid
from privcheck.planning import solve
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.ucb_vi import BONUS_SCALE, FAILURE
from privcheck_algorithms.online.optimism import value_bonus
from privcheck_algorithms.online.private import (
    FIRST_BATCH,
    NOISE,
    PRECISION_SCALE,
    counters_of,
    curator,
    draws_again,
    fresh_state,
    fresh_walk,
    numbers,
    vectors,
)
from privcheck_algorithms.online.sizes import refuse
from privcheck_algorithms.online.sparse_mdp import compress
from privcheck_algorithms.private_ucb_vi import doubling, stepwise
from privcheck_algorithms.private_ucb_vi.kernels import play

OPTIONS = (FAILURE, BONUS_SCALE, PRECISION_SCALE)
CALIBRATED_OPTIONS = (*OPTIONS, FIRST_BATCH)


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Returns PRIVATE-UCB-VI in its world, ready to play.

    Args:
        request: What is asked.
        noiseless: No noise is drawn; with precision_scale = 0 the run then equals UCB-VI's.

    Raises:
        ParameterError: Sizes that are not the environment's, no episode, or too many counters.
    """
    again = draws_again(request)
    refuse(request, vectors=again or vectors(request))
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    w, truth, given = compress(mdp), solve(mdp), curator(request, noiseless=noiseless, batched=True)
    failure, scale = numbers(request.options, "failure", "bonus_scale")
    bonus = value_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=given.E1, E2=given.E2, scale=scale)
    label = "private-ucb-vi, noiseless" if noiseless else "private-ucb-vi"

    def start(number: int) -> Replicate:
        own = fresh_walk(request, number) if again else fresh_state(request, given, number)
        arrays, generators = own
        arrays |= {
            "actions": np.zeros((H, S), np.int64),
            "values": np.zeros((H + 1, S)),
            "truth": np.zeros((H + 1, S)),
        }
        return Replicate(arrays=arrays | blank(K), generators=generators)

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        agent = (a["actions"], a["values"], a["truth"], grid(K), a["curves"], a["totals"])
        if again:
            stepwise.play(
                until, K, given.law, given.scale, w, bonus, truth.value, g["users"], g["noise"], a["streams"],
                a["marks"], a["paths"], a["taken"], a["costs"], *agent,
            )  # fmt: skip
        elif given.first:
            doubling.play(
                until, K, given.first, given.law, given.scale, w, bonus, truth.value, g["users"], g["noise"],
                a["streams"], a["exact"], a["board"], a["noisy"], *agent,
            )  # fmt: skip
        else:
            play(
                until, K, given.central, given.law, given.scale, w, bonus, truth.value, g["users"], g["noise"],
                a["streams"], a["exact"], a["prefix"], a["noisy"], *agent,
            )  # fmt: skip

    diagnostics = {"noise_scale": given.scale, "E1": given.E1, "E2": given.E2, "noise_drawn_again": float(bool(again))}
    return Player(
        start=start,
        play=block,
        label=label,
        told="actions",
        optimal=truth.value,
        face=counters_of(request, given, tables=H, policy=("actions", "values")),
        noise=NOISE,
        diagnostics=diagnostics,
    )
