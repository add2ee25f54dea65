"""Non-private baselines: the algorithms' twins without noise.

Imports: privcheck and agents' shared code; the agents of private_ucb_po and private_linopt, which run without noise
here. The papers' agents import their twins from here. Promises: no noise is drawn.
"""

from __future__ import annotations

from privcheck_algorithms.baselines.apvi import APVI
from privcheck_algorithms.baselines.linear import LINEAR_OPPO, LSVI_UCB, LSVI_UCB_PP, UCRL_VTR
from privcheck_algorithms.baselines.tabular import OPPO, UCB_VI
from privcheck_algorithms.baselines.vapvi import PEVI, VAPVI

__all__ = ["APVI", "LINEAR_OPPO", "LSVI_UCB", "LSVI_UCB_PP", "OPPO", "PEVI", "UCB_VI", "UCRL_VTR", "VAPVI"]
