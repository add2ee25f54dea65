"""Runtime: noise sources, the channel of every release, billboard, ledger, agents and the registry of all of them.

Imports `declare`, `pricing`, `data` and the rooms below them; knows neither reports nor commands. Promises: noise is
drawn in the channel and nowhere else, every release is in the ledger, an agent sees the billboard and no data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privcheck.support.lazy import load_lazily

if TYPE_CHECKING:
    from privcheck.runtime.channel import (
        Billboard,
        Channel,
        Privatizer,
        RecordingChannel,
        ReleaseChannel,
        ReplayChannel,
    )
    from privcheck.runtime.ledger import Entry, Ledger, read_ledger
    from privcheck.runtime.noise import NoiseSource, NoNoise, SimulatedNoise, TreeCounter


# loaded when first used: what lists algorithms or completes names needs neither NumPy nor SymPy
_HOMES = (
    ("privcheck.runtime.channel", ("Billboard",)),
    ("privcheck.runtime.channel", ("Channel", "ReleaseChannel")),
    ("privcheck.runtime.noise", ("TreeCounter",)),
    ("privcheck.runtime.ledger", ("Entry", "Ledger", "read_ledger")),
    ("privcheck.runtime.noise", ("NoiseSource", "NoNoise", "SimulatedNoise")),
    ("privcheck.runtime.channel", ("Privatizer",)),
    ("privcheck.runtime.channel", ("RecordingChannel", "ReplayChannel")),
)

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

__getattr__, __dir__ = load_lazily(__name__, _HOMES)
