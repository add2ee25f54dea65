"""Models with a known truth: users' trajectories are sampled from them, and online agents act in them.

Imports: privcheck, and the features of dp_vapvi's benchmark. Promises: a world is fixed by its name, sizes and seed.
"""

from __future__ import annotations

from privcheck_algorithms.environments.finite import BANDIT, RANDOM, RIVERSWIM
from privcheck_algorithms.environments.icu_sepsis import ICU_SEPSIS
from privcheck_algorithms.environments.linear import LINEAR_HYPERCUBE, LINEAR_MIXTURE, LINEAR_SIGNS, LINEAR_SYNTHETIC
from privcheck_algorithms.environments.tables import gym_environment, table_environment

__all__ = [
    "BANDIT",
    "ICU_SEPSIS",
    "LINEAR_HYPERCUBE",
    "LINEAR_MIXTURE",
    "LINEAR_SIGNS",
    "LINEAR_SYNTHETIC",
    "RANDOM",
    "RIVERSWIM",
    "gym_environment",
    "table_environment",
]
