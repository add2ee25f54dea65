"""For the tests of those who declare algorithms or write mechanisms: assertions, strategies, enumeration.

Strategies need Hypothesis and audits of functions scikit-learn (extra `test`). Names are loaded when they are first
used, so that the pytest plugin, which lives here too, costs nothing where no test asks for it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privcheck.testing.assertions import assert_declaration
    from privcheck.testing.enumeration import Suprema, all_pairs, all_users, assert_sensitivity, suprema
    from privcheck.testing.private import assert_private
    from privcheck.testing.strategies import (
        neighbouring_datasets,
        neighbouring_pairs,
        neighbouring_records,
        rewards,
        trajectories,
    )

_HOMES = (
    ("privcheck.testing.assertions", ("assert_declaration",)),
    ("privcheck.testing.private", ("assert_private",)),
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
_HOME = {name: module for module, names in _HOMES for name in names}

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


def __getattr__(name: str) -> object:
    """Returns a public name, loading its module."""
    if name not in _HOME:
        message = f"module 'privcheck.testing' has no attribute {name!r}; public names: {', '.join(__all__)}"
        raise AttributeError(message)
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
