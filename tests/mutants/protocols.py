"""Mutants of what users send and what a shuffler does, of SDP-PE's `Protocol`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from privcheck.declare.mechanisms import ShuffledNoise
from privcheck.runtime.online import MakePlayer
from privcheck_algorithms.sdp_pe.agent import player
from privcheck_algorithms.sdp_pe.batches import HONEST, Bits, Messages, Protocol, count_messages, encode


def _keep_order(messages: Messages, rng: np.random.Generator) -> Messages:
    return messages


def _share_order(messages: Messages, rng: np.random.Generator) -> Messages:
    """One order for all counters: what stands at one place was sent by one user."""
    return messages[:, rng.permutation(messages.shape[1])]


def _forget(bits: Bits, noise: ShuffledNoise, rng: np.random.Generator) -> Messages:
    """The first user sends their own bit alone, before the others' messages."""
    sent = encode(bits, noise, rng)
    theirs = -(-(count_messages(noise, len(bits)) - len(bits)) // len(bits))
    return np.delete(sent, slice(1, 1 + theirs), axis=1)


def _silence(bits: Bits, noise: ShuffledNoise, rng: np.random.Generator) -> Messages:
    """The first user sends as many messages as they should, but their noise bits are 0."""
    sent = encode(bits, noise, rng)
    sent[:, 1 : 1 + (count_messages(noise, len(bits)) - len(bits)) // len(bits)] = 0
    return sent


def _add_up(bits: Bits, noise: ShuffledNoise, rng: np.random.Generator) -> Messages:
    """Every user sends one integer, the sum of their bits."""
    return np.stack([part.sum(axis=1) for part in np.array_split(encode(bits, noise, rng), len(bits), axis=1)], axis=1)


PROTOCOLS: dict[str, Protocol] = {
    "lets order through": replace(HONEST, shuffle=_keep_order),
    "one order for all counters": replace(HONEST, shuffle=_share_order),
    "forgets noise bits": replace(HONEST, encode=_forget),
    "sends zeros for noise bits": replace(HONEST, encode=_silence),
    "sends sums": replace(HONEST, encode=_add_up),
}


def agent_with(name: str) -> MakePlayer:
    """Returns SDP-PE whose protocol is this mutant."""
    made: MakePlayer = partial(player, protocol=PROTOCOLS[name])
    return made
