"""Models with a known truth, from which users' trajectories are sampled."""

from algorithms.environments.icu_sepsis import ICU_SEPSIS
from algorithms.environments.riverswim import RIVERSWIM

__all__ = ["ICU_SEPSIS", "RIVERSWIM"]
