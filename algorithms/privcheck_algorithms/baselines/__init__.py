"""Non-private baselines: the algorithms' twins without noise."""

from privcheck_algorithms.baselines.apvi import APVI
from privcheck_algorithms.baselines.linear_mixtures import LINEAR_OPPO, UCRL_VTR
from privcheck_algorithms.baselines.lsvi_ucb import LSVI_UCB
from privcheck_algorithms.baselines.lsvi_ucb_pp import LSVI_UCB_PP
from privcheck_algorithms.baselines.oppo import OPPO
from privcheck_algorithms.baselines.ucb_vi import UCB_VI
from privcheck_algorithms.baselines.vapvi import PEVI, VAPVI

__all__ = ["APVI", "LINEAR_OPPO", "LSVI_UCB", "LSVI_UCB_PP", "OPPO", "PEVI", "UCB_VI", "UCRL_VTR", "VAPVI"]
