"""Mutants of running online agents: what is counted, drawn or looked at between two episodes is not what is declared.

Each takes an honest agent with counters (`exact`, `noisy`) and returns another one, to be made and played alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, MakePlayer, Player, Replicate
from privcheck.runtime.results import OnlineRequest

Array = NDArray[np.float64]
Play = Callable[[Replicate, int], None]
Alter = Callable[[OnlineRequest, Play, Replicate, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Altered:
    """An agent that does something else in every episode.

    Attributes:
        honest: The agent.
        alter: Plays one episode, by means of the honest agent's `play`.
    """

    honest: MakePlayer
    alter: Alter

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Returns the agent, ready to play."""
        player = self.honest(request, noiseless=noiseless)

        def play(one: Replicate, until: int) -> None:
            for episode in range(int(one.arrays["totals"][DONE]) + 1, until + 1):
                self.alter(request, player.play, one, episode)

        return replace(player, play=play)


def shares_noise(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose first two tables carry the same noise; the true loss is ∞."""

    def alter(request: OnlineRequest, play: Play, one: Replicate, episode: int) -> None:
        play(one, episode)
        exact, noisy = one.arrays["exact"], one.arrays["noisy"]
        cells = exact.size // (request.world.mdp.states + 2)
        noisy[cells : 2 * cells] = exact[cells : 2 * cells] + (noisy - exact)[:cells]

    return Altered(honest=honest, alter=alter)


def reuses_nodes(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose noise comes back in every episode, node by node or user by user; the true loss is ∞."""

    def alter(_request: OnlineRequest, play: Play, one: Replicate, episode: int) -> None:
        streams = one.arrays["streams"].copy()
        play(one, episode)
        one.arrays["streams"][...] = streams

    return Altered(honest=honest, alter=alter)


def forgets_level(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose tree has a level too few: its longest P-sum has no noise; the true loss is ∞."""

    def alter(_request: OnlineRequest, play: Play, one: Replicate, episode: int) -> None:
        play(one, episode)
        top = len(one.arrays["prefix"]) - 1
        if episode == 1 << top:
            one.arrays["prefix"][top] = 0.0
            one.arrays["noisy"][...] = one.arrays["exact"]

    return Altered(honest=honest, alter=alter)


def counts_twice(honest: MakePlayer, user: int = 1) -> MakePlayer:
    """Returns the agent that counts one user twice; true loss of pure DP: twice the charged, for that user."""

    def alter(_request: OnlineRequest, play: Play, one: Replicate, episode: int) -> None:
        before = one.arrays["exact"].copy()
        play(one, episode)
        if episode == user:
            more = one.arrays["exact"] - before
            one.arrays["exact"] += more
            one.arrays["noisy"] += more

    return Altered(honest=honest, alter=alter)


def plans_from_exact(honest: MakePlayer) -> MakePlayer:
    """Returns the agent that plans from its exact counters too, which nothing releases; the true loss is ∞."""

    def alter(_request: OnlineRequest, play: Play, one: Replicate, episode: int) -> None:
        one.arrays["noisy"] += 1_000.0 * one.arrays["exact"]  # a tree's sums are written anew in every episode
        play(one, episode)

    return Altered(honest=honest, alter=alter)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Talkative:
    """An agent that puts the exact visits on its billboard too, behind the declared tables; the true loss is ∞.

    Attributes:
        honest: The agent.
    """

    honest: MakePlayer

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Returns the agent, ready to play."""
        player = self.honest(request, noiseless=noiseless)

        def start(number: int) -> Replicate:
            one = player.start(number)
            visits = one.arrays["noisy"].size // (request.world.mdp.states + 2)
            return replace(one, arrays={**one.arrays, "noisy": np.zeros(one.arrays["noisy"].size + visits)})

        def play(one: Replicate, until: int) -> None:
            exact, noisy = one.arrays["exact"], one.arrays["noisy"]
            player.play(replace(one, arrays={**one.arrays, "noisy": noisy[: exact.size]}), until)
            noisy[exact.size :] = exact[: noisy.size - exact.size]

        return replace(player, start=start, play=play)
