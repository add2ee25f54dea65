"""Statistics of trajectories: what is computed and how far one user can move it, in one class each."""

from privcheck.statistics.base import Sensitivity, SparseDifference, Statistic
from privcheck.statistics.counts import RewardSums, TransitionCounts, VisitCounts

__all__ = ["RewardSums", "Sensitivity", "SparseDifference", "Statistic", "TransitionCounts", "VisitCounts"]
