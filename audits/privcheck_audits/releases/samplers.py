"""Side outputs of a user-written function: they may reveal about its data only what the output reveals.

A sampler is run once at a time on two neighbours; its prints, logs, warnings and written files are compared between
runs with equal outputs. A text that always accompanies one output on D, with a different text on D′, depends on the
data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, Final

import numpy as np

from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import OwnMechanism
from privcheck_audits.engine.outputs import Said

_RUNS: Final = 64  # on each of two neighbours
_PAIRS: Final = 4
_AGAIN: Final = 3  # so often an output has to come, with the same words each time, before it accuses

Heard = Mapping[bytes, list[Mapping[str, object]]]  # by output, what was said beside it


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidBeside:
    """Finding about the side outputs of one function.

    Attributes:
        name: Name of the function.
        places: Side channels that reveal more than the output.
        words: The neighbours; empty if the leak is not certain.
    """

    name: str
    places: tuple[str, ...]
    words: str = ""


def hear_samplers(declaration: Declaration, values: Mapping[str, Fraction], seed: int) -> SaidBeside | None:
    """First function with side outputs that reveal more than its output; certain leaks come before doubtful ones."""
    doubted: SaidBeside | None = None
    for one in _mechanisms(declaration):
        at = one.at(values)
        pairs = islice(one.pairs(declaration.relation, values)[::2], _PAIRS)  # each stands there in both orders
        for known in pairs:
            ours, theirs = (_hear(one, data, at, seed) for data in known.data)
            if places := _list_told(ours, theirs):
                return SaidBeside(name=one.name, places=places, words=known.words)
            doubted = doubted or _doubt(one.name, ours, theirs)
    return doubted


def _mechanisms(declaration: Declaration) -> Iterator[OwnMechanism]:
    return (one for one in declaration.releases if isinstance(one, OwnMechanism))


def _hear(one: OwnMechanism, data: Any, at: Mapping[str, float], seed: int) -> Heard:
    """Side outputs of runs, by output; the random draws are the same on all data."""
    heard = defaultdict[bytes, list[Mapping[str, object]]](list)
    for run in range(_RUNS):
        said = Said()
        with said.listen():
            output = one.draw(np.random.default_rng((seed, run)), data, 1, at)
        heard[output.tobytes()].append(said.read())
    return heard


def _list_told(ours: Heard, theirs: Heard) -> tuple[str, ...]:
    """Side channels that always differ between D and D′ beside the same output."""
    found = set()
    for output in ours.keys() & theirs.keys():
        first, second = ours[output], theirs[output]
        for place in first[0]:
            texts = [[said[place] for said in heard] for heard in (first, second)]
            steady = all(len(each) >= _AGAIN and all(text == each[0] for text in each) for each in texts)
            if steady and texts[0][0] != texts[1][0]:
                found.add(place)
    return tuple(sorted(found))


def _doubt(name: str, ours: Heard, theirs: Heard) -> SaidBeside | None:
    """Doubt about side channels with varying content; None if their content is constant or follows the output."""
    said = [each for heard in (ours, theirs) for texts in heard.values() for each in texts]
    told = tuple(sorted(place for place in said[0] if any(each[place] != said[0][place] for each in said)))
    return SaidBeside(name=name, places=told) if told and not _follows_outputs(ours, theirs, told) else None


def _follows_outputs(ours: Heard, theirs: Heard, places: tuple[str, ...]) -> bool:
    """Whether the side outputs are a function of the output, and outputs recur on both data."""
    common = ours.keys() & theirs.keys()
    if not common:
        return False
    groups = ([*ours.get(output, ()), *theirs.get(output, ())] for output in {*ours, *theirs})
    return all(each[place] == texts[0][place] for texts in groups for each in texts for place in places)
