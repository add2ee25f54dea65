"""Preparation of raw tables as trajectories for agents, chunk by chunk; every change is recorded.

The reader of tables is loaded when it is first used: Arrow, and pandas with it, take half a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privcheck.data.preparing.recipes import Codebook, PreparationPlan, draft_codebook, read_codebook, read_labels

if TYPE_CHECKING:
    from privcheck.data.preparing.stream import Prepared, prepare

__all__ = [
    "Codebook",
    "PreparationPlan",
    "Prepared",
    "draft_codebook",
    "prepare",
    "read_codebook",
    "read_labels",
]


def __getattr__(name: str) -> object:
    """Load `prepare` and its result class when they are first used."""
    if name not in ("Prepared", "prepare"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from privcheck.data.preparing import stream

    return getattr(stream, name)
