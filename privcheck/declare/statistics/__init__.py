"""Statistics of the users' data: computation and sensitivity to one user, in one class each."""

from privcheck.declare.statistics.base import Sensitivity, SparseDifference, Statistic
from privcheck.declare.statistics.counts import (
    CostSums,
    OneStepEach,
    PooledRewardSums,
    PooledTransitionCounts,
    PooledVisitCounts,
    RewardBits,
    RewardSums,
    TransitionCounts,
    VisitCounts,
)
from privcheck.declare.statistics.linear import Column, FeatureSums, GramMatrices, SmallestEigenvalue
from privcheck.declare.statistics.records import Records, Stated
from privcheck.declare.statistics.vectors import ClippedSums, Vectors, clip_users

__all__ = [
    "ClippedSums",
    "Column",
    "CostSums",
    "FeatureSums",
    "GramMatrices",
    "OneStepEach",
    "PooledRewardSums",
    "PooledTransitionCounts",
    "PooledVisitCounts",
    "Records",
    "RewardBits",
    "RewardSums",
    "Sensitivity",
    "SmallestEigenvalue",
    "SparseDifference",
    "Stated",
    "Statistic",
    "TransitionCounts",
    "Vectors",
    "VisitCounts",
    "clip_users",
]
