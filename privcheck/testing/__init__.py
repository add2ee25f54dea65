"""For the tests of those who declare algorithms: strategies, enumeration, and the check that a sensitivity is exact.

Only this package imports Hypothesis (extra `test`).
"""

from privcheck.testing.enumeration import Suprema, all_pairs, all_users, assert_sensitivity, suprema
from privcheck.testing.strategies import neighbouring_pairs, rewards, trajectories

__all__ = [
    "Suprema",
    "all_pairs",
    "all_users",
    "assert_sensitivity",
    "neighbouring_pairs",
    "rewards",
    "suprema",
    "trajectories",
]
