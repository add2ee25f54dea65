"""Statistics of the users' data: what is computed and how far one user can move it, in one class each."""

from privcheck.statistics.base import Sensitivity, SparseDifference, Statistic
from privcheck.statistics.counts import RewardSums, TransitionCounts, VisitCounts
from privcheck.statistics.linear import Column, FeatureSums, GramMatrices

__all__ = [
    "Column",
    "FeatureSums",
    "GramMatrices",
    "RewardSums",
    "Sensitivity",
    "SparseDifference",
    "Statistic",
    "TransitionCounts",
    "VisitCounts",
]
