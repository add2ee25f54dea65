"""The running face: noise sources, the channel through which every release passes, billboard, ledger, replay."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privcheck.runtime.billboard import Billboard
    from privcheck.runtime.channel import Channel, ReleaseChannel
    from privcheck.runtime.counters import TreeCounter
    from privcheck.runtime.ledger import Entry, Ledger, read_ledger
    from privcheck.runtime.noise import NoiseSource, NoNoise, SimulatedNoise
    from privcheck.runtime.privatizer import Privatizer
    from privcheck.runtime.replay import RecordingChannel, ReplayChannel

# loaded when first used: what lists algorithms or completes names needs neither NumPy nor SymPy
_HOMES = (
    ("privcheck.runtime.billboard", ("Billboard",)),
    ("privcheck.runtime.channel", ("Channel", "ReleaseChannel")),
    ("privcheck.runtime.counters", ("TreeCounter",)),
    ("privcheck.runtime.ledger", ("Entry", "Ledger", "read_ledger")),
    ("privcheck.runtime.noise", ("NoiseSource", "NoNoise", "SimulatedNoise")),
    ("privcheck.runtime.privatizer", ("Privatizer",)),
    ("privcheck.runtime.replay", ("RecordingChannel", "ReplayChannel")),
)
_HOME = {name: module for module, names in _HOMES for name in names}

__all__ = [
    "Billboard",
    "Channel",
    "Entry",
    "Ledger",
    "NoNoise",
    "NoiseSource",
    "Privatizer",
    "RecordingChannel",
    "ReleaseChannel",
    "ReplayChannel",
    "SimulatedNoise",
    "TreeCounter",
    "read_ledger",
]


def __getattr__(name: str) -> object:
    """Returns a public name, loading its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; public names: {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
