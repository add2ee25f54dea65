"""The PRIVATIZER of linear mixtures (Zhou 2022, section 6.1): a trajectory in, four noisy counters out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit
from privcheck_algorithms.linear.mixtures import Mixture
from privcheck_algorithms.online.sparse_mdp import Walk
from privcheck_algorithms.privatizers.counters import close_node
from privcheck_algorithms.privatizers.noise import Channel, chunk

Array = NDArray[np.float64]


class Layout(NamedTuple):
    """How the four counters lie in one vector: Σ φφᵀ, Σ φ·V(s′), Σ ϕϕᵀ, Σ ϕ·r, each with all its H steps.

    Of a matrix the entries on and above the diagonal lie there, by rows.

    Attributes:
        H: Steps.
        d1: Of φ.
        d2: Of ϕ.
    """

    H: int
    d1: int
    d2: int


class Privatizer(NamedTuple):
    """The PRIVATIZER and what it keeps from episode to episode.

    Attributes:
        K: Nothing leaves after this episode (section 6.1 and Lemma 6.1).
        layout: How counters lie in a vector of M.
        scales: The noise's standard deviations, by counter.
        channel: What adds noise; of it the scale is not used.
        walk: The trajectory that is counted.
        exact: (M,) exact sums over users.
        noisy: (M,) what is published: the billboard; the same array as `exact` without privacy.
        prefix: (levels, M) noise of nodes, as in `close_node`; empty without privacy.
    """

    K: int
    layout: Layout
    scales: tuple[float, float, float, float]
    channel: Channel
    walk: Walk
    exact: Array
    noisy: Array
    prefix: Array


@njit(cache=True, nogil=True, forceinline=True)
def triangle(d: int) -> int:
    """Returns the entries on and above the diagonal of a (d, d) matrix."""
    return d * (d + 1) // 2


@njit(cache=True, nogil=True, forceinline=True)
def places(layout: Layout) -> tuple[int, int, int, int, int]:
    """Returns where each of the four counters begins, and M, where the last one ends."""
    H, d1, d2 = layout
    values = H * triangle(d1)
    gram = values + H * d1
    rewards = gram + H * triangle(d2)
    return 0, values, gram, rewards, rewards + H * d2


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def count(known: Mixture, values: Array, privatizer: Privatizer, phi: Array) -> None:
    """Adds one user's episode to the exact sums (section 6.1), with V of that very episode.

    Args:
        known: The mixture.
        values: (H + 1, S) V of the user's episode.
        privatizer: Where it is added.
        phi: (d₁, any) scratch.
    """
    kernels, features, exact = known.kernels, known.features, privatizer.exact
    path, taken, costs = privatizer.walk
    H, d1, d2 = privatizer.layout
    _, sums, gram, rewards, _ = places(privatizer.layout)
    S = kernels.shape[0]
    A = features.shape[1] // S
    for h in range(H):
        cell = path[h] * A + taken[h]
        for i in range(d1):
            total = 0.0
            for s in range(S):
                total += kernels[s, i, cell] * values[h + 1, s]
            phi[i, 0] = total
        matrix, vector = exact[h * triangle(d1) : sums], exact[sums + h * d1 : gram]
        add_user(matrix, vector, phi[:, 0], values[h + 1, path[h + 1]])
        matrix, vector = exact[gram + h * triangle(d2) : rewards], exact[rewards + h * d2 :]
        add_user(matrix, vector, features[:, cell], 1.0 - costs[h])


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def add_user(gram: Array, sums: Array, phi: Array, target: float) -> None:
    """Adds φφᵀ and φ·y of one user and step to the exact sums, which begin with them."""
    at = 0
    for i in range(phi.size):
        for j in range(i, phi.size):
            gram[at] += phi[i] * phi[j]
            at += 1
        sums[i] += phi[i] * target


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def publish(t: int, privatizer: Privatizer) -> None:
    """Publishes the four counters after t users: the nodes that close get their noise; nothing without privacy."""
    channel, scales, exact, noisy, prefix = (
        privatizer.channel, privatizer.scales, privatizer.exact, privatizer.noisy, privatizer.prefix
    )  # fmt: skip
    begins = places(privatizer.layout)
    for counter in range(4 if prefix.shape[0] > 0 else 0):
        first, last = begins[counter], begins[counter + 1]
        own = Channel(
            channel.law, scales[counter], channel.streams, channel.rng, channel.raw[: chunk(last - first)], channel.room
        )
        close_node(own, t, exact[first:last], prefix[:, first:last], noisy[first:last])
