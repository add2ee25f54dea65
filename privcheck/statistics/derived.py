"""Which statistics have a sensitivity that is derived here and compared with every pair of neighbours in the tests.

All others bring their own: what their author states is then what a verdict rests on, and it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal

from privcheck.statistics.bits import OneStepEach, RewardBits
from privcheck.statistics.counts import CellSums, CostSums, RewardSums, TransitionCounts, VisitCounts
from privcheck.statistics.eigenvalues import SmallestEigenvalue
from privcheck.statistics.linear import FeatureSums, GramMatrices
from privcheck.statistics.on_grid import OnGrid
from privcheck.statistics.pooled import PooledSums
from privcheck.statistics.stated import Stated
from privcheck.statistics.vectors import ClippedSums

_COSTS = CostSums(1, 1, 1)
_TABLES = (_COSTS, *(table(1, 1, 1) for table in (VisitCounts, TransitionCounts, RewardSums, RewardBits)))


def is_derived(statistic: Any) -> bool:
    """Returns whether the sensitivity is derived here: one of our statistics with our own cells and weights."""
    if type(statistic) is OnGrid:
        return is_derived(statistic.of)
    if type(statistic) in {GramMatrices, FeatureSums, ClippedSums, SmallestEigenvalue}:
        return True
    table = _table(statistic)
    return table is not None and any(_alike(table, ours) for ours in _TABLES)


def is_whole(statistic: Any) -> bool:
    """Returns whether its values are whole numbers: counts of ours, sums of bits, or as `Stated` checks it."""
    if type(statistic) is OnGrid:
        return True
    if type(statistic) is Stated:
        return statistic.whole
    table = _table(statistic)
    return table is not None and is_derived(statistic) and (table.weight is None or table.bits)


def tabular_sizes(statistic: Any, values: Mapping[str, Fraction]) -> tuple[int, int, int] | None:
    """Returns (H, S, A) of the trajectories that a statistic of ours counts, or None where it counts none."""
    table = _table(statistic)
    if table is None:
        return None
    horizon, states, actions = table.shape(values)[:3]
    return horizon, states, actions


def find_complement(statistic: Any) -> Literal["rewards", "costs", ""]:
    """Returns which of two tables it is whose cells a user's reward r and cost 1 − r go to; empty for all others."""
    if type(statistic) is not CellSums or not is_derived(statistic):
        return ""
    if statistic.weight is _COSTS.weight:
        return "costs"
    return "rewards" if statistic.weight is not None else ""


def _table(statistic: Any) -> CellSums | None:
    if type(statistic) is OnGrid:
        return _table(statistic.of)
    if type(statistic) is PooledSums:
        return _table(statistic.by_step)
    if type(statistic) is OneStepEach:
        return _table(statistic.table)
    return statistic if type(statistic) is CellSums else None


def _alike(table: CellSums, ours: CellSums) -> bool:
    return (
        (table.cells, table.weight, table.bits, table.changes_if_pair_fixed, len(table.sizes))
        == (ours.cells, ours.weight, ours.bits, ours.changes_if_pair_fixed, len(ours.sizes))
    )  # fmt: skip
