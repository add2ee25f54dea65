"""Models with a known truth: users' trajectories are sampled from them, and online agents act in them."""

from privcheck_algorithms.environments.bandit import BANDIT
from privcheck_algorithms.environments.gym_tables import gym_environment
from privcheck_algorithms.environments.icu_sepsis import ICU_SEPSIS
from privcheck_algorithms.environments.linear_hypercube import LINEAR_HYPERCUBE
from privcheck_algorithms.environments.linear_mixture import LINEAR_MIXTURE
from privcheck_algorithms.environments.linear_signs import LINEAR_SIGNS
from privcheck_algorithms.environments.linear_synthetic import LINEAR_SYNTHETIC
from privcheck_algorithms.environments.p_table import table_environment
from privcheck_algorithms.environments.random_mdp import RANDOM
from privcheck_algorithms.environments.riverswim import RIVERSWIM

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
