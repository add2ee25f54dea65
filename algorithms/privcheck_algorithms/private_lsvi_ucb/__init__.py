"""Two private LSVI-UCBs that Sahu 2025 compares with, as far as the five papers describe what they release."""

from privcheck.registry import Algorithm
from privcheck_algorithms.linear.lsvi_player import (
    BONUS,
    CENTRED,
    FLOOR,
    GROWTH,
    INSTANCE,
    NOISE_BONUS,
    NOISE_RIDGE,
    RIDGE,
)
from privcheck_algorithms.papers import LINEAR
from privcheck_algorithms.private_lsvi_ucb.agent import EPISODES, luyo_player, ngo_player
from privcheck_algorithms.private_lsvi_ucb.declaration import GRAM, luyo, ngo

LUYO = Algorithm(
    name="luyo-lsvi-ucb",
    title="private LSVI-UCB with fixed batches (Luyo et al.)",
    source="compared with in Sahu 2025, arXiv:2504.09339",
    paper=LINEAR,
    declare=luyo,
    readings=(GRAM, CENTRED),
    options=(EPISODES, BONUS, NOISE_BONUS, RIDGE, NOISE_RIDGE, FLOOR),
    instead="calibrated-lsvi-ucb",
    online=luyo_player,
    instance=INSTANCE,
    twin="lsvi-ucb",
)

NGO = Algorithm(
    name="ngo-lsvi-ucb",
    title="private LSVI-UCB with determinant updates and a tree (Ngo et al.)",
    source="compared with in Sahu 2025, arXiv:2504.09339",
    paper=LINEAR,
    declare=ngo,
    readings=(CENTRED,),
    options=(BONUS, NOISE_BONUS, RIDGE, NOISE_RIDGE, FLOOR, GROWTH),
    instead="calibrated-lsvi-ucb",
    online=ngo_player,
    instance=INSTANCE,
    twin="lsvi-ucb",
)

__all__ = ["LUYO", "NGO"]
