"""A request in, a run out, for the private baselines that plan with rewards."""

from __future__ import annotations

import math

import numpy as np

from privcheck.errors import ParameterError
from privcheck.online.player import Player, Replicate
from privcheck.online.recording import blank, grid
from privcheck.planning import solve
from privcheck.results import OnlineRequest
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
from privcheck_algorithms.online.rewards import PlanningRule, play
from privcheck_algorithms.online.sizes import refuse
from privcheck_algorithms.online.sparse_mdp import compress

OPTIONS = (FAILURE, BONUS_SCALE, PRECISION_SCALE)


def player(request: OnlineRequest, *, kind: int, label: str, pooled: bool = False, noiseless: bool = False) -> Player:
    """Returns the agent in its world, ready to play.

    Args:
        request: What is asked.
        kind: How to plan; see `privcheck_algorithms.online.rewards`.
        label: The algorithm's name.
        pooled: Counts are pooled over the steps.
        noiseless: No noise is drawn; the precision levels stay.

    Raises:
        ParameterError: Sizes that are not the environment's, no episode, too many counters, or pooled counts where the
            dynamics change with the step.
    """
    refuse(request, vectors=vectors(request))
    mdp, K = request.world.mdp, request.episodes
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    if pooled and mdp.transition.shape[0] > 1:
        message = f"{label} pools its counts over the steps, but {request.world.name} changes with the step"
        raise ParameterError(message, name="env", given=request.world.name)
    w, truth, given = compress(mdp), solve(mdp), curator(request, noiseless=noiseless)
    failure, scale = numbers(request.options, "failure", "bonus_scale")
    bonus = policy_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=given.E1, E2=given.E2, scale=scale)
    rule = PlanningRule(
        kind=kind,
        E1=given.E1,
        E2=given.E2,
        log=math.log(6 * S * A * K * H / failure),
        root=bonus.root,
        linear=bonus.linear,
        scale=scale,
    )
    tables = 1 if pooled else H

    def start(number: int) -> Replicate:
        arrays, generators = fresh_state(request, given, number, tables=tables)
        arrays |= {
            "actions": np.zeros((H, S), np.int64),
            "values": np.zeros((H + 1, S)),
            "judged": np.full((H, S), -1),
            "truth": np.zeros((H + 1, S)),
        }
        return Replicate(arrays=arrays | blank(K), generators=generators)

    def block(one: Replicate, until: int) -> None:
        a, g = one.arrays, one.generators
        play(
            until, K, given.central, given.law, given.scale, w, tables, rule, truth.value, g["users"], g["noise"],
            a["streams"], a["exact"], a["prefix"], a["noisy"], a["actions"], a["values"], a["judged"], a["truth"],
            grid(K), a["curves"], a["totals"],
        )  # fmt: skip

    name = f"{label}, noiseless" if noiseless else label
    diagnostics = {"noise_scale": given.scale, "E1": given.E1, "E2": given.E2}
    return Player(
        start=start,
        play=block,
        label=name,
        told="actions",
        optimal=truth.value,
        face=counters_of(request, given, tables=tables, policy=("actions", "values")),
        noise=NOISE,
        diagnostics=diagnostics,
    )
