"""LSVI-UCB++ (He, Zhao, Zhou & Gu 2023), the non-private twin of Sahu's DP-LSVI-UCB++.

Users are weighted by 1/σ̄². Between two plans Gram matrices are followed by rank-one updates of their inverses, and ŵ
and w̄, on which weights depend, are solved for with these.
"""

from __future__ import annotations

from privcheck.errors import ParameterError
from privcheck.online.player import Player
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.ucb_vi import EPISODES
from privcheck_algorithms.linear.lsvi_player import CENTRED, GROWTH
from privcheck_algorithms.linear.weighted_player import BONUS as WEIGHTED_BONUS
from privcheck_algorithms.linear.weighted_player import DOUBT, weighted_player
from privcheck_algorithms.linear.weighted_player import RIDGE as WEIGHTED_RIDGE
from privcheck_algorithms.linear.weighted_player import exact_rule as exact_weighted_rule


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Returns LSVI-UCB++ in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: No episode, a growth below 1, or too large matrices.
    """
    if request.options["growth"] < 1:
        message = f"growth (of a determinant until the next plan): expected at least 1, got {request.options['growth']}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    return weighted_player(request, exact_weighted_rule(request), label="lsvi-ucb-pp")


LSVI_UCB_PP = Algorithm(
    name="lsvi-ucb-pp",
    title="LSVI-UCB++: optimistic weighted regression in linear MDPs, not private",
    source="He, Zhao, Zhou & Gu 2023; Sahu 2025, Algorithm 1 without noise",
    declare=None,
    readings=(CENTRED,),
    options=(EPISODES, WEIGHTED_RIDGE, WEIGHTED_BONUS, GROWTH, DOUBT),
    printed={"doubt": "1"},
    online=player,
)
