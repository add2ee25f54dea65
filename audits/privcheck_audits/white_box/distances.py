"""How far one user moved a release, in the norms that it is charged in, and what several pairs come to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from privcheck.charges import charge
from privcheck.declaration import Release
from privcheck.pictures import Bar, Bars, ShownPair
from privcheck.relations import Relation, ReplaceOne
from privcheck.statistics import FeatureSums, GramMatrices, SparseDifference
from privcheck.statistics.linear import step_bounds
from privcheck_audits.white_box.users import Array

Norm = Literal["l1", "l2", "linf", "step"]  # step: ℓ₂ at the step that comes nearest to its share of the charge
NORMS: Final[tuple[Norm, ...]] = ("l1", "l2", "linf")
_SHOWN_NORMS: Final = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞", "step": "ℓ₂ at one step"}
ROUNDING: Final = 1e-12  # relative, for statistics that sum floats; distances of whole numbers are compared exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far one user moved a release, in one norm.

    Attributes:
        release: The release's name.
        norm: Which norm; of symmetric matrices in the coordinates in which their noise is independent.
        measured: The distance of the exact values of all outputs; ∞ where the two runs did not release the same slices.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What replays of some pairs came to; more pairs add up.

    Attributes:
        pairs: How many.
        distances: The largest, by release and norm.
        policies: Policies that an agent was asked for on D, over all pairs; 0 where no agent runs.
        changes: How many of them differed from the one before: a policy that never moves shows nothing.
        departures: How many times something was another one on D′ behind the same billboards, a policy or whatever else
            the agent hands back; the billboard lemma allows none.
        departure: The first pair of which one was, in words; empty without.
        unrepeated: How many times it was another one under the same data, billboards and randomness: about that nothing
            is known.
        doubt: The first reason why that is so, with the remedy; empty without.
        compared: What of the agent was compared, by name.
        plainest: The first pair that exceeds a charge, made as plain as it can be, in words; empty without.
        shown: A pair side by side: the first that moved a policy, else the first of those that move a release furthest
            of what is charged; None where none can be shown.
        words: The same pair in words.
    """

    pairs: int
    distances: tuple[Distance, ...]
    policies: int = 0
    changes: int = 0
    departures: int = 0
    departure: str = ""
    unrepeated: int = 0
    doubt: str = ""
    compared: tuple[str, ...] = ()
    plainest: str = ""
    shown: ShownPair | None = None
    words: str = ""

    def __add__(self, other: Replayed) -> Replayed:
        before, after = (self, other) if self.broken or not other.broken else (other, self)
        top, next_to_it = (other, self) if other._rank > self._rank else (self, other)
        told = top if top.shown else next_to_it
        return Replayed(
            pairs=self.pairs + other.pairs,
            distances=worst([*self.distances, *other.distances]),
            policies=self.policies + other.policies,
            changes=self.changes + other.changes,
            departures=self.departures + other.departures,
            departure=self.departure or other.departure,
            unrepeated=self.unrepeated + other.unrepeated,
            doubt=self.doubt or other.doubt,
            compared=tuple(dict.fromkeys((*self.compared, *other.compared))),
            plainest=told.plainest or before.plainest or after.plainest,
            shown=told.shown,
            words=told.words,
        )

    @property
    def _rank(self) -> tuple[bool, bool, float]:
        """Returns what makes a pair worth showing: it moved a policy, exceeds a charge, or comes close to one."""
        if self.departures > 0:
            return True, False, 0.0
        ratios = [distance.ratio for distance in self.distances]
        return False, self.broken, max(ratios, default=0.0)

    @property
    def broken(self) -> bool:
        """Returns whether a pair exceeds a charge, or moves a policy."""
        return bool(self.plainest) or self.departures > 0 or any(distance.exceeds for distance in self.distances)


def step_shares(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Array | None:
    """Returns the share of its ℓ₂ charge that each step of a linear statistic may be moved by, (H,).

    The charge's square is the sum of the steps', whose bounds on features, targets and weights each step keeps by
    itself: a step moved further than its share breaks a bound, also where the others leave room. None of other
    statistics, and where the relation treats the first step apart.
    """
    statistic = release.statistic
    apart = isinstance(relation, ReplaceOne) and relation.initial == "fixed"
    if apart or not isinstance(statistic, GramMatrices | FeatureSums):
        return None
    bounds = step_bounds(statistic.size, values, statistic.shape(values)[0], rounding="up")
    total = math.sqrt(float(np.square(bounds).sum()))
    return bounds / total if total > 0 else bounds


def worst(distances: Iterable[Distance]) -> tuple[Distance, ...]:
    """Returns the distance with the largest measured/charged for each release and norm."""
    best: dict[tuple[str, str], Distance] = {}
    for distance in distances:
        key = (distance.release, distance.norm)
        if key not in best or (distance.exceeds, distance.ratio) > (best[key].exceeds, best[key].ratio):
            best[key] = distance
    return tuple(best.values())


@dataclass(slots=True, kw_only=True, eq=False)
class Moved:
    """Adds up one release's distance, slice by slice.

    Attributes:
        release: Of whose statistic the slices are.
        rounding: What floats may be off by, relative to the charge.
        slack: What they may be off by besides.
        shares: (H,) the share of its ℓ₂ charge that each step may be moved by (`step_shares`); then every slice must
            have left. None where steps are not looked at one by one.
        same_slices: Whether both runs released the same, finite slices.
    """

    release: Release
    rounding: float = ROUNDING
    slack: float = 0.0
    shares: Array | None = None
    same_slices: bool = True
    _l1: float = 0.0
    _squares: float = 0.0  # until all slices are in: exact for whole numbers
    _largest: float = 0.0
    _whole: bool = True
    _steps: dict[int, float] = field(default_factory=dict)  # ℓ₂ by slice

    def add(self, ours: Array, theirs: Array, part: int = 0) -> None:
        """Adds one slice, or several along a first axis: the exact values on D and on D′.

        Args:
            ours: On D.
            theirs: On D′.
            part: Which slice it is, where steps are looked at one by one.
        """
        if ours.shape != theirs.shape or not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
            self.same_slices = False
            return
        change = self._independent(ours - theirs)
        size = np.abs(change)
        self._whole = self._whole and bool((size == np.rint(size)).all())
        self._l1 += float(size.sum())
        self._squares += float(np.square(size).sum())
        self._largest = max(self._largest, float(size.max(initial=0.0)))
        self._steps[part] = math.sqrt(float(np.square(size).sum()))

    def distances(self, relation: Relation, values: Mapping[str, Fraction], words: str) -> Iterator[Distance]:
        """Yields the distance in each norm, beside what the ledger is charged."""
        due_for = charge(self.release, relation, values)
        if self.shares is not None:
            self.same_slices = self.same_slices and set(self._steps) == set(range(self.shares.size))
        norms = {"l1": self._l1, "l2": math.sqrt(self._squares), "linf": self._largest}
        for norm in NORMS:
            limit = float(getattr(due_for, norm))
            allowed = limit if self._whole else limit * (1 + self.rounding) + self.slack
            yield Distance(
                release=self.release.name,
                norm=norm,
                measured=norms[norm] if self.same_slices else math.inf,
                charged=limit,
                exceeds=not (self.same_slices and norms[norm] <= allowed),
                pair=words,
            )
        if self.shares is not None:
            yield self._worst_step(float(due_for.l2) * self.shares, words)

    def _worst_step(self, limits: Array, words: str) -> Distance:
        moved = np.array([self._steps.get(part, math.inf) for part in range(limits.size)])
        allowed = limits * (1 + self.rounding) + self.slack
        over = np.divide(moved, limits, out=np.where(moved > 0, math.inf, 0.0), where=limits > 0)
        step = int(over.argmax())
        return Distance(
            release=self.release.name,
            norm="step",
            measured=float(moved[step]) if self.same_slices else math.inf,
            charged=float(limits[step]),
            exceeds=not (self.same_slices and bool((moved <= allowed).all())),
            pair=words,
        )

    def _independent(self, change: Array) -> Array:
        """Returns the change in coordinates in which the noise is independent and of one scale."""
        if not getattr(self.release.statistic, "symmetric", False):
            return change
        apart = np.abs(change - np.swapaxes(change, -1, -2)).max(initial=0.0)
        if apart > 1e-9 * max(1.0, np.abs(change).max(initial=0.0)):
            self.same_slices = False  # no symmetric noise protects it
            return change
        rows, columns = np.triu_indices(change.shape[-1])
        entries = change[..., rows, columns].ravel()
        mirrored = np.broadcast_to(rows != columns, (entries.size // rows.size, rows.size)).ravel()
        sparse = SparseDifference(cells=np.arange(entries.size), change=entries, mirrored=mirrored)
        return self.release.mechanism.whitened(sparse).change


def draw_distances(distances: Iterable[Distance]) -> Bars:
    """Returns how far each release was moved over what is charged, in its worst norm: exact, without an interval."""
    worst: dict[str, Distance] = {}
    for one in distances:
        if one.release not in worst or (one.exceeds, one.ratio) > (
            worst[one.release].exceeds,
            worst[one.release].ratio,
        ):
            worst[one.release] = one
    return Bars(
        quantity="distance moved / sensitivity charged",
        one_sided=True,
        bars=tuple(
            Bar(
                name=f"{one.release}, {_SHOWN_NORMS[one.norm]}",
                ratio=one.ratio if math.isfinite(one.ratio) else None,
                violated=one.exceeds,
                words=f"{one.measured:.6g} of {one.charged:.6g}"
                if math.isfinite(one.measured)
                else "the two runs did not release the same slices",
            )
            for one in worst.values()
        ),
    )
