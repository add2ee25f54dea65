"""Lockstep replay: run on D, then on D′ behind D's billboard, and compare what reached the channel with the charge.

Two runs a pair and no statistics: the distance of the exact values must not exceed the sensitivity that the ledger is
charged. This sees bugs that no output shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from audits.canaries import describe
from privcheck.declaration import Declaration
from privcheck.relations import Pair
from privcheck.runtime import (
    Billboard,
    Channel,
    Ledger,
    Privatizer,
    RecordingChannel,
    ReleaseChannel,
    ReplayChannel,
    SimulatedNoise,
)
from privcheck.runtime.ledger import Charge, charge
from privcheck.trajectories import Trajectories, concatenate

Norm = Literal["l1", "l2", "linf"]
Execution = Callable[[Trajectories, Declaration, ReleaseChannel], Iterator[int]]
Exact = dict[tuple[str, int], NDArray[np.float64]]

_NORMS: Final[tuple[Norm, ...]] = ("l1", "l2", "linf")
_ROUNDING: Final = 1e-12  # relative, for statistics that sum floats; distances of whole numbers are compared exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far one user moved a release, in one norm.

    Attributes:
        release: The release's name.
        norm: Which norm.
        measured: The distance of the exact values; ∞ where the two runs did not release the same slices.
        charged: The sensitivity that the ledger is charged.
        exceeds: Whether measured is more than charged.
        pair: The neighbours in words.
    """

    release: str
    norm: Norm
    measured: float
    charged: float
    exceeds: bool
    pair: str

    @property
    def ratio(self) -> float:
        """Returns measured/charged; 0 where both are 0."""
        if self.charged > 0:
            return self.measured / self.charged
        return math.inf if self.measured > 0 else 0.0


def publish_steps(data: Trajectories, declaration: Declaration, channel: ReleaseChannel) -> Iterator[int]:
    """Publishes every declared statistic step by step, and yields after each step."""
    privatizer = Privatizer(data, declaration, channel)
    for step in range(data.horizon):
        privatizer.publish(step)
        yield step


def replay(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    base: Trajectories,
    pair: Pair,
    *,
    seed: int,
    execute: Execution = publish_steps,
) -> tuple[Distance, ...]:
    """Returns how far the pair moved each release in each norm.

    D and D′ are the base with the pair's user, in the same place, added; only one step is held at a time.

    Args:
        declaration: What is released, and charged.
        values: Its parameters.
        base: The other users, at least one.
        pair: The user's data in D and D′.
        seed: Of D's noise.
        execute: What a run does with its data and channel; it yields between steps.
    """
    billboard = Billboard()
    noise = SimulatedNoise(seed)
    ledger = Ledger(declaration, values, noise=noise.words)
    first = RecordingChannel(Channel(declaration, values, noise=noise, billboard=billboard, ledger=ledger))
    second = ReplayChannel(billboard)
    moved = {release.name: _Moved() for release in declaration.releases}
    ours = execute(_with(base, pair[0]), declaration, first)
    theirs = execute(_with(base, pair[1]), declaration, second)
    while True:
        ended = [next(run, None) is None for run in (ours, theirs)]
        for key in first.exact.keys() & second.exact.keys():
            moved[key[0]].add(first.exact.pop(key), second.exact.pop(key))
        for part in {part for _, part in billboard.digests} if not first.exact and not second.exact else ():
            billboard.retire(part)
        if any(ended):
            break
    for name, _ in (*first.exact, *second.exact):
        moved[name].same_slices = False
    words = describe(pair)
    return tuple(
        distance
        for release in declaration.releases
        for distance in moved[release.name].distances(
            release.name, charge(release, declaration.relation, values), words
        )
    )


def worst(found: Iterable[Distance]) -> tuple[Distance, ...]:
    """Returns the distance with the largest measured/charged for each release and norm."""
    best: dict[tuple[str, str], Distance] = {}
    for distance in found:
        key = (distance.release, distance.norm)
        if key not in best or distance.ratio > best[key].ratio or (distance.exceeds and not best[key].exceeds):
            best[key] = distance
    return tuple(best.values())


class _Moved:
    """Adds up one release's distance, slice by slice."""

    def __init__(self) -> None:
        self.norms = dict.fromkeys(_NORMS, 0.0)
        self.whole = True
        self.same_slices = True

    def add(self, ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> None:
        if ours.shape != theirs.shape or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
            self.same_slices = False
            return
        size = np.abs(ours - theirs)
        self.whole &= bool((size == np.rint(size)).all())
        self.norms["l1"] += float(size.sum())
        self.norms["l2"] += float(np.square(size).sum())  # squared until all slices are in: exact for whole numbers
        self.norms["linf"] = max(self.norms["linf"], float(size.max(initial=0.0)))

    def distances(self, name: str, charged: Charge, words: str) -> Iterator[Distance]:
        for norm in _NORMS:
            measured = self.norms[norm] if norm != "l2" else math.sqrt(self.norms[norm])
            limit = float(getattr(charged, norm))
            allowed = limit if self.whole else limit * (1 + _ROUNDING)
            yield Distance(
                release=name,
                norm=norm,
                measured=measured if self.same_slices else math.inf,
                charged=limit,
                exceeds=not (self.same_slices and measured <= allowed),
                pair=words,
            )


def _with(base: Trajectories, user: Trajectories | None) -> Trajectories:
    return base if user is None else concatenate([base, user])
