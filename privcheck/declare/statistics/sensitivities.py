"""Statistics with a derived sensitivity, and the requirements on another author's statistic.

For all others a verdict depends on the sensitivity that their author states, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Literal

import numpy as np

from privcheck.declare.relations import Relation
from privcheck.declare.statistics.base import Sensitivity, Statistic
from privcheck.declare.statistics.counts import (
    CellSums,
    CostSums,
    OneStepEach,
    PooledSums,
    RewardBits,
    RewardSums,
    TransitionCounts,
    VisitCounts,
)
from privcheck.declare.statistics.grid import OnGrid
from privcheck.declare.statistics.linear import FeatureSums, GramMatrices, SmallestEigenvalue
from privcheck.declare.statistics.records import Stated
from privcheck.declare.statistics.vectors import ClippedSums
from privcheck.errors import DeclarationError, ParameterError, PrivcheckError
from privcheck.terms.parameters import Condition
from privcheck.terms.symbols import expression

_COSTS = CostSums(1, 1, 1)
_TABLES = (_COSTS, *(table(1, 1, 1) for table in (VisitCounts, TransitionCounts, RewardSums, RewardBits)))


def is_derived(statistic: Any) -> bool:
    """Whether the sensitivity is derived here: a statistic of ours with our own cells and weights."""
    if type(statistic) is OnGrid:
        return is_derived(statistic.of)
    if type(statistic) in {GramMatrices, FeatureSums, ClippedSums, SmallestEigenvalue}:
        return True
    table = _table(statistic)
    return table is not None and any(_alike(table, ours) for ours in _TABLES)


def is_whole(statistic: Any) -> bool:
    """Whether the values are whole numbers: counts of ours, sums of bits, or `Stated` as whole, which it checks."""
    if type(statistic) is OnGrid:
        return True
    if type(statistic) is Stated:
        return statistic.whole
    table = _table(statistic)
    return table is not None and is_derived(statistic) and (table.weight is None or table.bits)


def tabular_sizes(statistic: Any, values: Mapping[str, Fraction]) -> tuple[int, int, int] | None:
    """(H, S, A) of the trajectories that a statistic of ours counts; None if it counts none."""
    table = _table(statistic)
    if table is None:
        return None
    horizon, states, actions = table.shape(values)[:3]
    return horizon, states, actions


def find_complement(statistic: Any) -> Literal["rewards", "costs", ""]:
    """Which of two complements a statistic is: "rewards", or "costs" 1 − r in the same cells; else empty."""
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


OURS: Final = (CellSums, PooledSums, OneStepEach, GramMatrices, FeatureSums, ClippedSums, SmallestEigenvalue)
_RETURN: Final = "return Sensitivity(l1=…, l2=…, linf=…, reason='…')"
_WORDS, _ASKED = ("name", "latex"), ("sensitivity", "shape", "compute", "difference")


def check_statistic(where: str, statistic: object) -> None:
    """Check that a value has the interface of a `Statistic`.

    Raises:
        DeclarationError: An attribute or method is missing or of the wrong type.
    """
    if type(statistic) in OURS:
        return
    lacks = [name for name in (*_WORDS, "symbols", "preconditions", *_ASKED) if not hasattr(statistic, name)]
    lacks += [name for name in _ASKED if name not in lacks and not callable(getattr(statistic, name))]
    if isinstance(statistic, type) or lacks:
        shown = f"the class {statistic.__name__}" if isinstance(statistic, type) else f"{statistic!r:.200}"
        message = f"{where}: expected a statistic, such as VisitCounts(H, S, A), got {shown}"
        raise DeclarationError(f"{message}, which has no {', '.join(lacks) or 'values of its own'}")
    for name in _WORDS:
        if not isinstance(getattr(statistic, name), str):
            raise DeclarationError(f"{where}: the statistic's {name} is not a text: {getattr(statistic, name)!r}")
    symbols = getattr(statistic, "symbols")  # noqa: B009 - of a Protocol that is not yet proved to be one
    if not isinstance(symbols, frozenset | set) or not all(isinstance(name, str) for name in symbols):
        message = f"{where}: the statistic's symbols are not a set of names: {symbols!r:.100}"
        raise DeclarationError(f"{message}; write symbols = frozenset({{'H'}}), frozenset() without parameters")
    preconditions = getattr(statistic, "preconditions")  # noqa: B009 - as above
    if not isinstance(preconditions, tuple | list) or not all(isinstance(one, str) for one in preconditions):
        message = f"{where}: the statistic's preconditions are not a tuple of strings: {preconditions!r:.100}"
        raise DeclarationError(f"{message}; write preconditions = ('rewards in [0, 1]',), () without any")


def shape_of(where: str, statistic: Statistic[Any], values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """Shape of an author's own statistic.

    Raises:
        DeclarationError: It is not a tuple of whole numbers, each at least 1, with the steps first.
    """
    asked = "expected a tuple of whole numbers, at least 1, the steps first"
    shape: Any
    try:
        shape = statistic.shape(values)
    except PrivcheckError:
        raise
    except Exception as error:
        message = f"{where}: the statistic's own shape(values) raises {type(error).__name__}: {error}; {asked}"
        raise DeclarationError(message) from error
    whole = isinstance(shape, tuple) and all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in shape)
    if not whole or not shape or min(shape) < 1:
        message = f"{where}: {asked}, of the statistic's shape(values), got {shape!r:.100}"
        raise DeclarationError(f"{message}; write return (1, int(values['d'])), (1, 1) of one number")
    return tuple(int(size) for size in shape)


def sensitivity_of(where: str, statistic: Statistic[Any], relation: Relation) -> Sensitivity:
    """Sensitivity of a statistic under a relation.

    Raises:
        DeclarationError: Its `sensitivity` raises, or does not return a Sensitivity.
    """
    try:
        sensitivity = statistic.sensitivity(relation)
    except PrivcheckError:
        raise
    except Exception as error:
        message = f"{where}: the statistic's own sensitivity({relation.words}) raises {type(error).__name__}: {error}"
        raise DeclarationError(f"{message}; {_RETURN}") from error
    if not isinstance(sensitivity, Sensitivity):
        raise DeclarationError(f"{where}: expected a Sensitivity of the statistic, got {sensitivity!r:.200}; {_RETURN}")
    return sensitivity


def sensitivity_conditions(statistic: Statistic[Any], sensitivity: Sensitivity) -> tuple[Condition, ...]:
    """Conditions on a stated sensitivity: ℓ∞ ≤ ℓ₂ ≤ ℓ₁, as holds for the norms of every vector."""
    if is_derived(statistic):
        return ()
    l1, l2, linf = sensitivity.l1, sensitivity.l2, sensitivity.linf
    return (
        *(
            Condition(what=f"the {norm} sensitivity", of=size, domain="nonnegative")
            for norm, size in (("ℓ₁", l1), ("ℓ₂", l2), ("ℓ∞", linf))
        ),
        Condition(what="the square of its ℓ₁ sensitivity less that of ℓ₂", of=l1**2 - l2**2, domain="nonnegative"),
        # of nothing at all ℓ∞ may be a bound: our own tables say 1 where one step of a fixed pair is all there is
        Condition(
            what="the square of its ℓ₂ sensitivity less that of ℓ∞ (times the former)",
            of=(l2**2 - linf**2) * l2**2,
            domain="nonnegative",
        ),
    )


def check_zeros(where: str, sensitivity: Sensitivity, values: Mapping[str, Fraction]) -> None:
    """Check that none of the stated norms is 0 unless all are: noise on it would be charged nothing.

    Raises:
        ParameterError: A norm is 0 and another is not.
    """
    norms = {"ℓ₁": sensitivity.l1, "ℓ₂": sensitivity.l2, "ℓ∞": sensitivity.linf}
    zeros = [name for name, norm in norms.items() if norm.rational(values) == 0]
    nothing = zeros == ["ℓ₁", "ℓ₂"] and sensitivity.l1 != expression(0)  # at these parameters, by a bound on ℓ∞
    if 0 < len(zeros) < len(norms) and not nothing:
        stated = ", ".join(f"{name} = {norm}" for name, norm in norms.items())
        message = f"{where}: expected a sensitivity that is 0 in all norms or in none, got {stated}"
        raise ParameterError(f"{message}; a change that is 0 in one norm is 0", given=stated)
