"""Non-private baselines: the algorithms' twins without noise."""

from algorithms.baselines.apvi import APVI

__all__ = ["APVI"]
