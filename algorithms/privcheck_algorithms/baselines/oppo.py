"""OPPO, optimistic policy optimisation (Efroni, Shani, Rosenberg & Mannor 2020a): the twin of PRIVATE-UCB-PO.

Algorithm 1 of Chowdhury & Zhou 2022 with exact counts and E = 0.
"""

from __future__ import annotations

from dataclasses import replace

from privcheck.online.player import Player
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.ucb_vi import EPISODES
from privcheck_algorithms.online.optimism import BONUS_SCALE, FAILURE
from privcheck_algorithms.online.stage import stage
from privcheck_algorithms.private_ucb_po.agent import ETA_SCALE, optimise
from privcheck_algorithms.privatizers.counters import EXACT


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Returns OPPO in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: No episode, or too many counters.
    """
    return optimise(stage(request, kinds=(EXACT,)), "oppo")


OPPO = Algorithm(
    name="oppo",
    title="OPPO: optimistic policy optimisation from exact counts, not private",
    source="Efroni, Shani, Rosenberg & Mannor 2020; Chowdhury & Zhou 2022, Algorithm 1 without noise",
    declare=None,
    options=(EPISODES, FAILURE, BONUS_SCALE, replace(ETA_SCALE, default=200)),
    printed={"bonus_scale": "1", "eta_scale": "1"},
    online=player,
)
