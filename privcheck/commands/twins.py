"""The non-private twin of an online agent, run beside it where that is quick."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from privcheck import registry
from privcheck.commands.setting import Chosen
from privcheck.declaration import resolve
from privcheck.errors import ParameterError
from privcheck.progress import silent
from privcheck.registry import Algorithm
from privcheck.results import OnlineRequest, OnlineResult
from privcheck.setting import Setting

_CHEAP = 10**11  # counters times episodes up to which a twin is run too: it plans in some seconds, or a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """The non-private twin in the same world, with the same users and options.

    Attributes:
        name: None where there is no twin.
        regret: Mean over replicates; None where a run would take long, or more memory than a run may take.
        value: The last policy's true expected return, mean over replicates; likewise.
    """

    name: str | None = None
    regret: float | None = None
    value: float | None = None


PlayTwin = Callable[[Algorithm, OnlineRequest], OnlineResult]


def run_twin(setting: Chosen, asked: OnlineRequest, play: PlayTwin) -> Twin:
    """Returns what the twin of an algorithm does where that acts, by `play`; nothing where it has none."""
    twin = None if setting.algorithm.twin is None else registry.algorithm(setting.algorithm.twin)
    if twin is None or twin.online is None:
        return Twin()
    mdp = asked.world.mdp
    counters = mdp.horizon * mdp.states * mdp.actions * (mdp.states + 2)
    options = resolve(twin.options, {}, owner=twin.name)
    options |= {name: value for name, value in asked.options.items() if name in options}
    options |= {name: Fraction(asked.episodes) for name in ("K",) if name in options}
    ways = {reading.name: reading.ways for reading in twin.readings}
    readings = {name: ways[name][0] for name in ways} | {
        n: w for n, w in asked.readings.items() if w in ways.get(n, ())
    }
    own = Setting(declaration=None, options=options, readings=readings)
    without = replace(asked, setting=own, directory=None, progress=silent)
    if counters * asked.episodes * asked.replicates <= _CHEAP:
        with suppress(ParameterError):
            played = play(twin, without)
            regret, value = (float(curve[:, -1].mean()) for curve in (played.regret, played.value))
            return Twin(name=twin.name, regret=regret, value=value)
    return Twin(name=twin.name)
