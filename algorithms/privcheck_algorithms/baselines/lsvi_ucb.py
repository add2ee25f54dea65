"""LSVI-UCB (Jin, Yang, Wang & Jordan 2020, Algorithm 1), the non-private twin of the private LSVI-UCBs of Sahu 2025.

Planned anew when the determinant of a Gram matrix has doubled (Wang, Zhou & Gu 2021), or after each of B batches. The
inverses that determinants are followed with are updated by rank one and made afresh at every plan.
"""

from __future__ import annotations

from privcheck.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.online.player import Player
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest
from privcheck_algorithms.baselines.ucb_vi import EPISODES
from privcheck_algorithms.linear.lsvi_player import BONUS, CENTRED, GROWTH, RIDGE, exact_rule, lsvi_player

BATCHES = Parameter(
    name="batches",
    default=50,
    kind="count",
    meaning="with growth=1: plans after so many batches of equal length; K: each",
)


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:  # noqa: ARG001 - it always is
    """Returns LSVI-UCB in its world, ready to play; it draws no noise whatever is asked.

    Raises:
        ParameterError: No episode, a growth below 1, or too large matrices.
    """
    growth = float(request.options["growth"])
    if growth < 1:
        message = f"growth (of a determinant until the next plan): expected at least 1, got {growth:g}"
        raise ParameterError(message, name="growth", given=request.options["growth"])
    batches = min(int(request.options["batches"]), request.episodes) if growth == 1 else 0
    return lsvi_player(request, exact_rule(request, batches=batches, growth=growth), label="lsvi-ucb")


LSVI_UCB = Algorithm(
    name="lsvi-ucb",
    title="LSVI-UCB: optimistic regression in linear MDPs, not private",
    source="Jin, Yang, Wang & Jordan 2020, Algorithm 1; Sahu 2025, section 1",
    declare=None,
    readings=(CENTRED,),
    options=(EPISODES, RIDGE, BONUS, GROWTH, BATCHES),
    online=player,
)
