"""Mutants of running agents behind a shuffler: what leaves it is not what is declared, though sums may look right.

Each takes an honest agent whose face shows messages (`privcheck.runtime.online.Shuffles`) and rewrites what left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, MakePlayer, Player, Replicate, Sent
from privcheck.runtime.results import OnlineRequest

Messages = NDArray[np.int8]
Rewrite = Callable[[Sent, NDArray[np.int64], np.random.Generator], Messages]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewritten:
    """An agent whose messages are rewritten before the analyser counts their sum.

    Attributes:
        honest: The agent.
        rewrite: From messages and (users, counters) own bits to (counters, M) others.
    """

    honest: MakePlayer
    rewrite: Rewrite

    def __call__(self, request: OnlineRequest, *, noiseless: bool = False) -> Player:
        """Returns the agent, ready to play."""
        player = self.honest(request, noiseless=noiseless)
        face = player.face

        def play(one: Replicate, until: int) -> None:
            for episode in range(int(one.arrays["totals"][DONE]) + 1, until + 1):
                player.play(one, episode)
                if (output := face.output(episode)) is None:
                    continue
                for sent in face.messages(one, output):
                    left, rng = one.arrays[f"left_{sent.release}"], one.generators["noise"]
                    messages = self.rewrite(sent, own_bits(one, sent), rng)
                    left[...] = messages.reshape(left.shape)
                    ones = np.where(messages > 0, messages, 0).sum(axis=1, dtype=np.int64)
                    table = one.arrays[sent.release][output - 1]
                    table[...] = (ones - (sent.due - sent.users) / 2).reshape(table.shape)

        return replace(player, play=play)


def own_bits(one: Replicate, sent: Sent) -> NDArray[np.int64]:
    """Returns (users, counters) users' own bits."""
    paths, bits = one.arrays["paths"][: sent.users], one.arrays["bits"][: sent.users]
    shape = one.arrays[f"exact_{sent.release}"].shape
    if sent.release != "transitions":
        shape = (shape[0], shape[-1])  # of a bandit's rewards (1, 1, A): paths are arms
    table = np.zeros((sent.users, *shape), dtype=np.int64)
    rows = np.arange(sent.users)
    for h in range(shape[0]):
        if sent.release == "transitions":
            table[rows, h, paths[:, h], paths[:, h + 1]] = 1
        else:
            table[rows, h, paths[:, h]] = bits[:, h]
    return table.reshape(sent.users, -1)


def lets_order_through(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose users' own bits leave first, in their order; the true loss is ∞."""

    def rewrite(sent: Sent, own: NDArray[np.int64], rng: np.random.Generator) -> Messages:
        changed = sent.messages.copy()
        for counter, messages in enumerate(changed):
            ones = int((messages == 1).sum() - own[:, counter].sum())
            rest = np.zeros(sent.due - sent.users, dtype=np.int8)
            rest[:ones] = 1
            messages[: sent.due] = np.concatenate([own[:, counter], rng.permutation(rest)])
        return changed

    return Rewritten(honest=honest, rewrite=rewrite)


def shares_order(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose shuffler draws one order for all counters of a release; trajectories can be read off."""

    def rewrite(sent: Sent, own: NDArray[np.int64], rng: np.random.Generator) -> Messages:
        changed, order = sent.messages.copy(), rng.permutation(sent.due)
        for counter, messages in enumerate(changed):
            ones, zeros = _split(messages, own[:, counter])
            fair = rng.permutation(np.concatenate([np.ones(ones, np.int8), np.zeros(zeros, np.int8)]))
            messages[: sent.due] = np.concatenate([own[:, counter], fair])[order]
        return changed

    return Rewritten(honest=honest, rewrite=rewrite)


def forgets_decoys(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose first user sends none of the fair bits dealt to them; true ε: a little more, δ too."""

    def rewrite(sent: Sent, own: NDArray[np.int64], rng: np.random.Generator) -> Messages:
        changed, forgotten = sent.messages.copy(), -(-(sent.due - sent.users) // sent.users)
        for counter, messages in enumerate(changed):
            fair = sent.due - sent.users
            ones = int(rng.hypergeometric(*_split(messages, own[:, counter]), fair - forgotten))
            rest = np.zeros(fair - forgotten, dtype=np.int8)
            rest[:ones] = 1
            kept = rng.permutation(np.concatenate([own[:, counter], rest]))
            messages[:] = -1
            messages[: kept.size] = kept
        return changed

    return Rewritten(honest=honest, rewrite=rewrite)


def sends_sums(honest: MakePlayer) -> MakePlayer:
    """Returns the agent whose users send one integer each, the sum of their bits; the sums are those declared."""

    def rewrite(sent: Sent, own: NDArray[np.int64], rng: np.random.Generator) -> Messages:
        changed = np.full_like(sent.messages, -1)
        for counter, messages in enumerate(sent.messages):
            ones, zeros = _split(messages, own[:, counter])
            fair = rng.permutation(np.concatenate([np.ones(ones, np.int64), np.zeros(zeros, np.int64)]))
            sums = [part.sum() for part in np.array_split(fair, sent.users)] + own[:, counter]
            changed[counter, : sent.users] = rng.permutation(sums)
        return changed

    return Rewritten(honest=honest, rewrite=rewrite)


def _split(messages: Messages, own: NDArray[np.int64]) -> tuple[int, int]:
    """Returns how many of a counter's fair bits are 1, and 0."""
    ones = int((messages == 1).sum() - own.sum())
    return ones, int((messages == 0).sum() - (1 - own).sum())
