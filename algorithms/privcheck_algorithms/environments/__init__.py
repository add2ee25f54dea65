"""Models with a known truth: users' trajectories are sampled from them, and online agents act in them."""

from privcheck_algorithms.environments.gym_tables import gym_environment
from privcheck_algorithms.environments.icu_sepsis import ICU_SEPSIS
from privcheck_algorithms.environments.p_table import table_environment
from privcheck_algorithms.environments.random_mdp import RANDOM
from privcheck_algorithms.environments.riverswim import RIVERSWIM

__all__ = ["ICU_SEPSIS", "RANDOM", "RIVERSWIM", "gym_environment", "table_environment"]
