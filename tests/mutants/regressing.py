"""Mutants of agents that regress on a dataset: what leaves, what is looked at and whose data it is is not as declared.

Each takes an honest `OfflineAgent` and returns another one, to be audited alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, concatenate
from privcheck.runtime import Billboard
from privcheck.runtime.channel import ReleaseChannel
from privcheck.runtime.offline import DataHolder, Learnt, OfflineAgent, Pass
from privcheck.runtime.setting import Setting
from privcheck_algorithms.dp_vapvi.agent import VapviPrivatizer

Array = NDArray[np.float64]
Hold = Callable[[Trajectories, Setting, ReleaseChannel, Billboard], DataHolder]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tapped:
    """A channel of which the exact values are put on a billboard of somebody's own.

    Attributes:
        channel: Which draws the noise.
        kept: Where the exact values stand.
    """

    channel: ReleaseChannel
    kept: Billboard

    def release(self, name: str, value: Array, *, part: int) -> Array:
        """Returns the noisy value."""
        self.kept.publish(name, part, value.copy())
        return self.channel.release(name, value, part=part)


def _hold(agent: OfflineAgent) -> Hold:
    assert agent.regressing is not None
    return agent.regressing


@dataclass(slots=True, kw_only=True, eq=False)
class Peek:
    """Both halves of an agent whose agent half plans from exact values; the true loss is ∞ where they show.

    Attributes:
        honest: The agent.
        kept: The exact values of the run that goes on.
    """

    honest: OfflineAgent
    kept: Billboard = field(default_factory=Billboard)

    def hold(self, data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        """Returns the honest privatizer half, tapped."""
        self.kept = Billboard()
        return _hold(self.honest)(data, setting, Tapped(channel=channel, kept=self.kept), billboard)

    def make(self, setting: Setting, *, reward: Array | None) -> Pass:
        """Returns the agent half before the wrong billboard."""
        prepared = self.honest.make(setting, reward=reward)

        def look(
            billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = lambda: None
        ) -> Learnt:
            return prepared(self.kept, publish, done=done)

        return look


def plans_from_exact(agent: OfflineAgent) -> OfflineAgent:
    """Returns the agent whose agent half reads exact sums, which nothing releases."""
    peek = Peek(honest=agent)
    return replace(agent, make=peek.make, regressing=peek.hold)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Past:
    """A channel past which some releases are posted as they are."""

    channel: ReleaseChannel
    billboard: Billboard
    quiet: str

    def release(self, name: str, value: Array, *, part: int) -> Array:
        if name != self.quiet:
            return self.channel.release(name, value, part=part)
        self.billboard.publish(name, part, value.copy())
        return value


def forgets_noise(agent: OfflineAgent, release: str) -> OfflineAgent:
    """Returns the agent whose privatizer posts a release without noise, past the channel; the true loss is ∞."""

    def hold(data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        return _hold(agent)(data, setting, _Past(channel=channel, billboard=billboard, quiet=release), billboard)

    return replace(agent, regressing=hold)


def weighs_by_exact(agent: OfflineAgent) -> OfflineAgent:
    """Returns the agent whose privatizer takes V and the weights from its exact sums: every user's row moves."""

    def hold(data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        kept = Billboard()
        return _hold(agent)(data, setting, Tapped(channel=channel, kept=kept), kept)

    return replace(agent, regressing=hold)


def counts_twice(agent: OfflineAgent) -> OfflineAgent:
    """Returns the agent that counts all users twice; true loss: four times the charged ρ."""

    def hold(data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        return _hold(agent)(concatenate([data, data]), setting, channel, billboard)

    return replace(agent, regressing=hold)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Louder:
    """A channel that is handed one slice of one release a few times over."""

    channel: ReleaseChannel
    where: tuple[str, int]
    factor: float

    def release(self, name: str, value: Array, *, part: int) -> Array:
        return self.channel.release(name, value * self.factor if (name, part) == self.where else value, part=part)


def louder(agent: OfflineAgent, release: str, step: int, factor: float) -> OfflineAgent:
    """Returns the agent whose privatizer multiplies one slice of a release: there a bound of the declaration is broken.

    Args:
        agent: The honest one.
        release: Whose slice.
        step: Which one, counted from 0.
        factor: By how much.
    """

    def hold(data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        return _hold(agent)(data, setting, _Louder(channel=channel, where=(release, step), factor=factor), billboard)

    return replace(agent, regressing=hold)


def shares_users(agent: OfflineAgent, halves: Mapping[str, str]) -> OfflineAgent:
    """Returns DP-VAPVI with other users in its releases than declared.

    Args:
        agent: DP-VAPVI.
        halves: By release, the half whose users it holds; "" for everybody.
    """

    def hold(data: Trajectories, setting: Setting, channel: ReleaseChannel, billboard: Billboard) -> DataHolder:
        privatizer = VapviPrivatizer(data, setting, channel, billboard)
        privatizer._users = {**privatizer._users, **halves}
        return privatizer

    return replace(agent, regressing=hold)
