"""What the published experiment code does with its noisy statistics: DP-LSVI-UCB++ with σ̄ = H throughout."""

from __future__ import annotations

from privcheck.post_processing import PolicyRuns
from privcheck.setting import Setting
from privcheck_algorithms.dp_lsvi_ucb.agent import make_policies


def policies(setting: Setting) -> PolicyRuns:
    """Returns the agent with the declared noise, on the ruler."""
    return make_policies(setting, weighted=False)
