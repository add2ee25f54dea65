"""Models with a known truth: users' trajectories are sampled from them, and online agents act in them."""

from algorithms.environments.gym_tables import gym_environment
from algorithms.environments.icu_sepsis import ICU_SEPSIS
from algorithms.environments.p_table import table_environment
from algorithms.environments.random_mdp import RANDOM
from algorithms.environments.riverswim import RIVERSWIM

__all__ = ["ICU_SEPSIS", "RANDOM", "RIVERSWIM", "gym_environment", "table_environment"]
