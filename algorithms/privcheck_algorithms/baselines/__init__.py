"""Non-private baselines: the algorithms' twins without noise."""

from privcheck_algorithms.baselines.apvi import APVI
from privcheck_algorithms.baselines.oppo import OPPO
from privcheck_algorithms.baselines.ucb_vi import UCB_VI

__all__ = ["APVI", "OPPO", "UCB_VI"]
