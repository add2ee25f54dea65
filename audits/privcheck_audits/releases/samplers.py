"""What a function of one's own says beside its output: it may tell of its data only what the output tells.

A sampler is run once at a time on two neighbours, and what it prints, logs, warns of or writes is compared where its
outputs are the same. A text that one output has on D, and another text on D′, every time, is of the data.
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
    """What was found of one function.

    Attributes:
        name: Of the function.
        places: Where it says what its output does not tell.
        words: The neighbours; empty where nothing is known for certain.
    """

    name: str
    places: tuple[str, ...]
    words: str = ""


def hear_samplers(declaration: Declaration, values: Mapping[str, Fraction], seed: int) -> SaidBeside | None:
    """Returns the first function that says more than its output does; one that certainly does before others."""
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
    """Returns what was said beside each output, of runs that are drawn alike on all data."""
    heard = defaultdict[bytes, list[Mapping[str, object]]](list)
    for run in range(_RUNS):
        said = Said()
        with said.listen():
            output = one.draw(np.random.default_rng((seed, run)), data, 1, at)
        heard[output.tobytes()].append(said.read())
    return heard


def _list_told(ours: Heard, theirs: Heard) -> tuple[str, ...]:
    """Returns the places that say one thing on D and another on D′ beside the same output, every time."""
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
    """Returns the places that do not always say the same; None where all do, whatever the data and the output."""
    said = [each for heard in (ours, theirs) for texts in heard.values() for each in texts]
    told = tuple(sorted(place for place in said[0] if any(each[place] != said[0][place] for each in said)))
    return SaidBeside(name=name, places=told) if told and not _follows_outputs(ours, theirs, told) else None


def _follows_outputs(ours: Heard, theirs: Heard, places: tuple[str, ...]) -> bool:
    """Returns whether what is said is the same wherever the output is, and outputs do come again on both data."""
    common = ours.keys() & theirs.keys()
    if not common:
        return False
    groups = ([*ours.get(output, ()), *theirs.get(output, ())] for output in {*ours, *theirs})
    return all(each[place] == texts[0][place] for texts in groups for each in texts for place in places)
