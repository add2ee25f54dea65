"""Non-private baselines: the algorithms' twins without noise."""

from algorithms.baselines.apvi import APVI
from algorithms.baselines.oppo import OPPO
from algorithms.baselines.ucb_vi import UCB_VI

__all__ = ["APVI", "OPPO", "UCB_VI"]
