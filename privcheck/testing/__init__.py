"""Tools for tests of declared algorithms and mechanisms: assertions, strategies, enumeration.

Imports `reports`, `verification`, `runtime` and the rooms below them; knows neither the command line nor the budget.
Promises: all tests of a session share one level α, and a failure prints code that fails in the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privcheck.support.lazy import load_lazily

if TYPE_CHECKING:
    from privcheck.testing.assertions import assert_declaration, assert_private
    from privcheck.testing.enumeration import Suprema, all_pairs, all_users, assert_sensitivity, suprema
    from privcheck.testing.strategies import (
        neighbouring_datasets,
        neighbouring_pairs,
        neighbouring_records,
        rewards,
        trajectories,
    )


_HOMES = (
    ("privcheck.testing.assertions", ("assert_declaration",)),
    ("privcheck.testing.assertions", ("assert_private",)),
    ("privcheck.testing.enumeration", ("Suprema", "all_pairs", "all_users", "assert_sensitivity", "suprema")),
    (
        "privcheck.testing.strategies",
        (
            "neighbouring_datasets",
            "neighbouring_pairs",
            "neighbouring_records",
            "rewards",
            "trajectories",
        ),
    ),
)

__all__ = [
    "Suprema",
    "all_pairs",
    "all_users",
    "assert_declaration",
    "assert_private",
    "assert_sensitivity",
    "neighbouring_datasets",
    "neighbouring_pairs",
    "neighbouring_records",
    "rewards",
    "suprema",
    "trajectories",
]

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
