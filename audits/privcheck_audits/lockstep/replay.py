"""Lockstep replay: run on D, then on D′ behind D's billboard, and compare the exact values with the charge.

Two runs per pair and no statistics: the distance of the exact values, in the norms of the charge, must not exceed the
sensitivity charged to the ledger. This finds bugs that no output shows. A declaration's statistics are run on users one
after the other, through the channel and, if its schedule is a tree, through the counter; running agents are replayed by
`privcheck_audits.lockstep.online_agents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration, Draw, Release
from privcheck.declare.mechanisms import Noiseless
from privcheck.declare.procedures.charges import charge
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.schedules import Tree
from privcheck.declare.statistics import FeatureSums, GramMatrices, SparseDifference
from privcheck.declare.statistics.linear import step_bounds
from privcheck.errors import UnknownNameError
from privcheck.runtime import (
    Billboard,
    Channel,
    Ledger,
    Privatizer,
    RecordingChannel,
    ReleaseChannel,
    ReplayChannel,
    SimulatedNoise,
    TreeCounter,
)
from privcheck.runtime.audit_pictures import Bar, Bars, ShownPair
from privcheck.verification.candidates import UserPair
from privcheck.verification.witness import describe as witnessed
from privcheck_audits.lockstep.streams import MakeCounter, Seats, TreeNodes, insert_user, name_own_errors, outputs
from privcheck_audits.lockstep.users import Array, Users
from privcheck_audits.releases.canaries import describe

Norm = Literal["l1", "l2", "linf", "step"]  # step: ℓ₂ at the step that comes nearest to its share of the charge
NORMS: Final[tuple[Norm, ...]] = ("l1", "l2", "linf")
_SHOWN_NORMS: Final = {"l1": "ℓ₁", "l2": "ℓ₂", "linf": "ℓ∞", "step": "ℓ₂ at one step"}
ROUNDING: Final = 1e-12  # relative, for statistics that sum floats; distances of whole numbers are compared exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """Distance between the exact values of a release on two neighbours, in one norm.

    Attributes:
        release: The release's name.
        norm: The norm; for symmetric matrices in the coordinates with independent noise.
        measured: The distance of the exact values of all outputs; ∞ if the two runs did not release the same slices.
        charged: The sensitivity charged to the ledger.
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
        """Ratio measured/charged; 0 if both are 0."""
        if self.charged > 0:
            return self.measured / self.charged
        return math.inf if self.measured > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Result of replays of some pairs; results add up.

    Attributes:
        pairs: Number of pairs.
        distances: The largest, by release and norm.
        policies: Number of policies requested from the agent on D, over all pairs; 0 if no agent runs.
        changes: Number of them that differed from the one before: a constant policy shows nothing.
        departures: Number of times that an output on D′ behind the same billboards differed, a policy or any other
            output of the agent; the billboard lemma allows none.
        departure: The first pair with such a difference, in words; empty if there is none.
        unrepeated: Number of times that an output differed under the same data, billboards and randomness, so that
            nothing can be concluded.
        doubt: The first reason for that, with the remedy; empty if there is none.
        compared: Names of the compared outputs of the agent.
        plainest: The first pair that exceeds a charge, simplified as far as possible, in words; empty if there is none.
        shown: A pair side by side: the first that changed a policy, else the first with the largest ratio to the
            charge;
            None if none can be shown.
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
        """Rank of a pair for display: it changed a policy, exceeds a charge, or comes close to one."""
        if self.departures > 0:
            return True, False, 0.0
        ratios = [distance.ratio for distance in self.distances]
        return False, self.broken, max(ratios, default=0.0)

    @property
    def broken(self) -> bool:
        """Whether a pair exceeds a charge, or changes a policy."""
        return bool(self.plainest) or self.departures > 0 or any(distance.exceeds for distance in self.distances)


def add_until_departure(parts: Iterable[Replayed]) -> Replayed:
    """Sum of results in their order, up to the first with a departure: one is a proof, and later ones add nothing."""
    parts = iter(parts)
    added = next(parts)
    while not added.departures and (part := next(parts, None)) is not None:
        added += part
    return added


def step_shares(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Array | None:
    """Share of the ℓ₂ charge of a linear statistic that each step may use, (H,).

    The charge's square is the sum of the steps', and each step keeps its own bounds on features, targets and weights: a
    step beyond its share breaks a bound, even if the others leave room. None for other statistics, and if the relation
    treats the first step separately.
    """
    statistic = release.statistic
    apart = isinstance(relation, ReplaceOne) and relation.initial == "fixed"
    if apart or not isinstance(statistic, GramMatrices | FeatureSums):
        return None
    bounds = step_bounds(statistic.size, values, statistic.shape(values)[0], rounding="up")
    total = math.sqrt(float(np.square(bounds).sum()))
    return bounds / total if total > 0 else bounds


def worst(distances: Iterable[Distance]) -> tuple[Distance, ...]:
    """Distance with the largest measured/charged for each release and norm."""
    best: dict[tuple[str, str], Distance] = {}
    for distance in distances:
        key = (distance.release, distance.norm)
        if key not in best or (distance.exceeds, distance.ratio) > (best[key].exceeds, best[key].ratio):
            best[key] = distance
    return tuple(best.values())


@dataclass(slots=True, kw_only=True, eq=False)
class Moved:
    """Accumulates one release's distance, slice by slice.

    Attributes:
        release: The release.
        rounding: Tolerance for floats, relative to the charge.
        slack: Additional absolute tolerance.
        shares: (H,) share of the ℓ₂ charge of each step (`step_shares`); every slice must then be released. None if
            steps are not compared one by one.
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
        """Add one slice, or several along a first axis: the exact values on D and on D′.

        Args:
            ours: Exact values on D.
            theirs: Exact values on D′.
            part: Index of the slice, if steps are compared one by one.
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
        """Yield the distance in each norm, with the sensitivity charged."""
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
        """The change in coordinates with independent noise of one scale."""
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
    """Bars of each release's distance over its charge, in the worst norm: exact, without an interval."""
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


Opened = Callable[[int], ReleaseChannel]  # the channel of an output, counted from 1
Execution = Callable[[Users, Declaration, Mapping[str, Fraction], Opened], Iterator[int]]


def publish(
    users: Users,
    declaration: Declaration,
    values: Mapping[str, Fraction],
    opened: Opened,
    *,
    counter: MakeCounter = TreeCounter,
) -> Iterator[int]:
    """Publish every declared statistic as often as its schedule says; yields after each step of an output.

    Args:
        users: Users in their order; if the users are partitioned, every group contains all of them.
        declaration: The declaration.
        values: Values of its parameters.
        opened: Opens the channel of an output.
        counter: Makes the counter of a tree. Its noise is added to the P-sum that closes, which is computed here from
            the counter's sums without noise.
    """
    last = {release.name: outputs(release, values) for release in declaration.noisy}
    parts = {release.name: release.statistic.shape(values)[0] for release in declaration.noisy}
    seats = Seats(users, values)
    sums = {r.name: tree_sums(r, seats, values, counter) for r in declaration.noisy if isinstance(r.schedule, Tree)}
    alike = not sums and len(set(last.values())) == len(set(parts.values())) == 1
    for output in range(1, max(last.values()) + 1):
        channel = opened(output)
        data = seats.find_data(declaration.noisy, output) if alike else None
        if data is not None:  # all statistics of the same users, as an agent's own privatizer publishes them
            privatizer = Privatizer(data, declaration, channel)
            for part in range(parts[declaration.noisy[0].name]):
                with name_own_errors(", ".join(last)):
                    privatizer.publish(part)
                yield output
            continue
        out = [release for release in declaration.noisy if output <= last[release.name]]
        nodes = {release.name: next(sums[release.name]) for release in out if release.name in sums}
        for part in range(max(parts[release.name] for release in out)):
            for release in out:
                if part < parts[release.name]:
                    whole = nodes.get(release.name)
                    value = seats.exact(release, output, step=part) if whole is None else np.array(whole[part])
                    channel.release(release.name, value, part=part)
            yield output


def tree_sums(release: Release, seats: Seats, values: Mapping[str, Fraction], counter: MakeCounter) -> Iterator[Array]:
    """Yield the exact P-sum that closes with each user, from the counter's own sums."""
    leaves = outputs(release, values)
    if leaves < 1:
        return
    made, taken = counter(release.statistic.shape(values), Noiseless(), leaves=leaves), TreeNodes()
    rng = np.random.default_rng()  # nothing is drawn from it
    for user in range(1, leaves + 1):
        yield taken.close(user, made.release(seats.exact(release, user), rng))


def replay(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    base: Users,
    pair: UserPair,
    *,
    seed: int,
    position: int = 0,
    execute: Execution = publish,
    stepwise: bool = False,
    other_base: Users | None = None,
) -> tuple[Distance, ...]:
    """Distances between the exact values of each release on the pair, in each norm, over all outputs.

    D and D′ are the base with the pair's user inserted at the same position; only one step is held at a time.

    Args:
        declaration: The releases about the user, and their charge.
        values: Values of its parameters.
        base: The other users.
        pair: The user's data in D and D′.
        seed: Seed of D's noise.
        position: Position of the user, from 0.
        execute: Runs the releases on users and channels; it yields between steps.
        stepwise: Whether to compare each step with its share of the charge too; no slice may then be missing.
        other_base: The other users of D′, where they are not those of D: then distances mean nothing, outputs do.
    """
    seen = replace(declaration, releases=tuple(replace(r, draw=Draw()) for r in declaration.noisy))
    values = with_batch_size(seen, values)
    channels = _Channels(seen, values, seed)
    moved = {
        release.name: Moved(
            release=release, shares=step_shares(release, seen.relation, values) if stepwise else None
        )
        for release in seen.noisy
    }  # fmt: skip
    ours, theirs = (
        execute(insert_user(others, user, position), seen, values, opened)
        for others, user, opened in zip(
            (base, base if other_base is None else other_base), pair, (channels.first, channels.second), strict=True
        )
    )
    going = True
    while going:
        going = next(ours, None) is not None
        with suppress(UnknownNameError):  # D′ released what D did not: it stays unmatched
            going = next(theirs, None) is not None and going
        for name, part, mine, other in channels.common():
            moved[name].add(mine, other, part)
    for name in channels.list_unmatched():
        moved[name].same_slices = False
    words = describe_user(pair, position if base else None)
    return tuple(d for release in seen.noisy for d in moved[release.name].distances(seen.relation, values, words))


def with_batch_size(declaration: Declaration, values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """Parameters with the size n of a batch, if the noise depends on it; charges do not."""
    sizes = [n for r in declaration.noisy if r.batch_sizes is not None for n in r.batch_sizes(values)]
    depends = any(r.batch_sizes is not None for r in declaration.noisy)
    return {**values, "n": Fraction(max(sizes, default=1))} if depends else values


def describe_user(pair: UserPair, position: int | None) -> str:
    """The pair in words, with its position in the order of users; None if it is alone."""
    tabular = all(user is None or isinstance(user, Trajectories) for user in pair)
    words = describe(pair) if tabular else witnessed(pair)
    return words + (f" (user {position + 1})" if position is not None else "")


class _Channels:
    """The channels of D, and behind their billboards those of D′; exact values are kept until both have a slice."""

    def __init__(self, declaration: Declaration, values: Mapping[str, Fraction], seed: int) -> None:
        self._declaration, self._values, self._seed = declaration, values, seed
        self._channel: Channel | None = None
        self._billboards: dict[int, Billboard] = {}
        self._ours: dict[int, RecordingChannel] = {}
        self._theirs: dict[int, ReplayChannel] = {}

    def first(self, output: int) -> ReleaseChannel:
        """Open D's channel of an output."""
        noise, billboard = SimulatedNoise(self._seed + output), self._billboards.setdefault(output, Billboard())
        ledger = Ledger(self._declaration, self._values, noise=noise.words)
        if self._channel is None:
            self._channel = Channel(self._declaration, self._values, noise=noise, billboard=billboard, ledger=ledger)
        channel = self._channel.again(noise=noise, billboard=billboard, ledger=ledger)
        self._ours[output] = RecordingChannel(channel)
        return self._ours[output]

    def second(self, output: int) -> ReleaseChannel:
        """Open the channel of D′ of an output."""
        self._theirs[output] = ReplayChannel(self._billboards.setdefault(output, Billboard()))
        return self._theirs[output]

    def common(self) -> Iterator[tuple[str, int, Array, Array]]:
        """Yield and discard the slices released by both: release name, slice index, and both exact values."""
        for output in self._ours.keys() & self._theirs.keys():
            ours, theirs = self._ours[output].exact, self._theirs[output].exact
            parts = set()
            for name, part in list(ours.keys() & theirs.keys()):
                parts.add(part)
                yield name, part, ours.pop((name, part)), theirs.pop((name, part))
            for part in parts - {part for _, part in (*ours, *theirs)}:
                self._billboards[output].retire(part)

    def list_unmatched(self) -> set[str]:
        """Names of the releases with a slice in one run but not in the other."""
        return {name for channels in (self._ours, self._theirs) for c in channels.values() for name, _ in c.exact}
