"""Lockstep replay: run on D, then on D′ behind D's billboard, and compare what reached the channel with the charge.

Two runs a pair and no statistics: the distance of the exact values must not exceed the sensitivity that the ledger is
charged. This sees bugs that no output shows. A declaration's statistics are run on users one after the other, through
the channel and, where its schedule is a tree, through the counter; running agents are replayed by
`privcheck_audits.white_box.online_lockstep`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privcheck.declaration import Declaration, Draw, Release
from privcheck.errors import UnknownNameError
from privcheck.mechanisms import Noiseless
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
from privcheck.schedules import Tree
from privcheck.trajectories import Trajectories
from privcheck.verification.candidates import UserPair
from privcheck.verification.witness import describe as witnessed
from privcheck_audits.releases.canaries import describe
from privcheck_audits.white_box.distances import Distance, Moved, step_shares
from privcheck_audits.white_box.streams import (
    MakeCounter,
    Seats,
    TreeNodes,
    insert_user,
    name_own_errors,
    outputs,
)
from privcheck_audits.white_box.users import Array, Users

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
    """Publishes every declared statistic as often as its schedule says, and yields after each step of an output.

    Args:
        users: In their order; of a partition of the users, every group is all of them.
        declaration: What is released.
        values: Its parameters.
        opened: Opens the channel of an output.
        counter: Makes the counter of a tree. What its noise is added to is the P-sum that closes, which is taken here
            from the counter's sums without noise.
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
    """Yields the exact P-sum that closes with each user, from the counter's own sums."""
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
) -> tuple[Distance, ...]:
    """Returns how far the pair moved each release in each norm, all its outputs together.

    D and D′ are the base with the pair's user, in the same place, added; only one step is held at a time.

    Args:
        declaration: What is released about the user, and charged.
        values: Its parameters.
        base: The other users.
        pair: The user's data in D and D′.
        seed: Of D's noise.
        position: Where the user comes, counted from 0.
        execute: What a run does with its users and channels; it yields between steps.
        stepwise: Whether each step is compared with its share of the charge too, and no slice may be missing.
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
        execute(insert_user(base, user, position), seen, values, opened)
        for user, opened in zip(pair, (channels.first, channels.second), strict=True)
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
    """Returns the parameters with the size n of a batch, where the noise depends on it; charges do not."""
    sizes = [n for r in declaration.noisy if r.batch_sizes is not None for n in r.batch_sizes(values)]
    depends = any(r.batch_sizes is not None for r in declaration.noisy)
    return {**values, "n": Fraction(max(sizes, default=1))} if depends else values


def describe_user(pair: UserPair, position: int | None) -> str:
    """Returns the pair in words, and where in the order of users it is; None where it is alone."""
    tabular = all(user is None or isinstance(user, Trajectories) for user in pair)
    words = describe(pair) if tabular else witnessed(pair)
    return words + (f" (user {position + 1})" if position is not None else "")


class _Channels:
    """The channels of D, and behind their billboards those of D′; exact values stay until both have a slice."""

    def __init__(self, declaration: Declaration, values: Mapping[str, Fraction], seed: int) -> None:
        self._declaration, self._values, self._seed = declaration, values, seed
        self._channel: Channel | None = None
        self._billboards: dict[int, Billboard] = {}
        self._ours: dict[int, RecordingChannel] = {}
        self._theirs: dict[int, ReplayChannel] = {}

    def first(self, output: int) -> ReleaseChannel:
        """Opens D's channel of an output."""
        noise, billboard = SimulatedNoise(self._seed + output), self._billboards.setdefault(output, Billboard())
        ledger = Ledger(self._declaration, self._values, noise=noise.words)
        if self._channel is None:
            self._channel = Channel(self._declaration, self._values, noise=noise, billboard=billboard, ledger=ledger)
        channel = self._channel.again(noise=noise, billboard=billboard, ledger=ledger)
        self._ours[output] = RecordingChannel(channel)
        return self._ours[output]

    def second(self, output: int) -> ReleaseChannel:
        """Opens the channel of D′ of an output."""
        self._theirs[output] = ReplayChannel(self._billboards.setdefault(output, Billboard()))
        return self._theirs[output]

    def common(self) -> Iterator[tuple[str, int, Array, Array]]:
        """Yields and forgets what both have released: the release's name, which slice, and the two exact values."""
        for output in self._ours.keys() & self._theirs.keys():
            ours, theirs = self._ours[output].exact, self._theirs[output].exact
            parts = set()
            for name, part in list(ours.keys() & theirs.keys()):
                parts.add(part)
                yield name, part, ours.pop((name, part)), theirs.pop((name, part))
            for part in parts - {part for _, part in (*ours, *theirs)}:
                self._billboards[output].retire(part)

    def list_unmatched(self) -> set[str]:
        """Returns the releases of which one of the two has a slice that the other has not."""
        return {name for channels in (self._ours, self._theirs) for c in channels.values() for name, _ in c.exact}
