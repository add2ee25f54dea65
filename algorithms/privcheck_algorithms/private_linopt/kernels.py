"""LinOpt-VI and LinOpt-PO (Zhou 2022, sections 4 to 6), compiled by Numba: plan from the billboard, act, publish.

Line numbers are those of Algorithms 1 and 2. First the PRIVATIZER of linear mixtures (section 6.1): a trajectory in,
four noisy counters out. Then the agent: `plan` reads no exact counters. A step's statistics are one Gram matrix and one
vector of sums, twice: of φ = ∫ψV with V(s′), and of ϕ with r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, SWITCHES, VALUE, Record, differ, note
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.mixtures import Mixture, integrate
from privcheck_algorithms.kernels.optimism import exponentials
from privcheck_algorithms.kernels.regression import invert_root, lengths, predict, raise_eigenvalues, solve
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, Walk, judge, roll_greedy, roll_mixed, value_mixed
from privcheck_algorithms.privatizers.counters import close_node
from privcheck_algorithms.privatizers.noise import NoiseStream, chunk

Array = NDArray[np.float64]


class Layout(NamedTuple):
    """Layout of the four counters in one vector: Σ φφᵀ, Σ φ·V(s′), Σ ϕϕᵀ, Σ ϕ·r, each with all its H steps.

    Matrices are stored by rows, on and above the diagonal.

    Attributes:
        H: Number of steps.
        d1: Dimension of φ.
        d2: Dimension of ϕ.
    """

    H: int
    d1: int
    d2: int


class Privatizer(NamedTuple):
    """The PRIVATIZER and its state from episode to episode.

    Attributes:
        K: Last episode, after which nothing is released (section 6.1 and Lemma 6.1).
        layout: Layout of counters in a vector of M.
        scales: The noise's standard deviations, by counter.
        channel: Source of the noise; its scale is not used.
        walk: The trajectory to count.
        exact: (M,) exact sums over users.
        noisy: (M,) published sums, the billboard; the same array as `exact` without privacy.
        prefix: (levels, M) noise of nodes, as in `close_node`; empty without privacy.
    """

    K: int
    layout: Layout
    scales: tuple[float, float, float, float]
    channel: NoiseStream
    walk: Walk
    exact: Array
    noisy: Array
    prefix: Array


@njit(cache=True, nogil=True, forceinline=True)
def triangle(d: int) -> int:
    """Number of entries on and above the diagonal of a (d, d) matrix."""
    return d * (d + 1) // 2


@njit(cache=True, nogil=True, forceinline=True)
def places(layout: Layout) -> tuple[int, int, int, int, int]:
    """Offsets of the four counters, and M, the end of the last one."""
    H, d1, d2 = layout
    values = H * triangle(d1)
    gram = values + H * d1
    rewards = gram + H * triangle(d2)
    return 0, values, gram, rewards, rewards + H * d2


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def count(known: Mixture, values: Array, privatizer: Privatizer, phi: Array) -> None:
    """Add one user's episode to the exact sums (section 6.1), with V of that episode.

    Args:
        known: The mixture.
        values: (H + 1, S) V of the user's episode.
        privatizer: Privatizer with the sums.
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
    """Add φφᵀ and φ·y of one user and step to the exact sums at the start of the arrays."""
    at = 0
    for i in range(phi.size):
        for j in range(i, phi.size):
            gram[at] += phi[i] * phi[j]
            at += 1
        sums[i] += phi[i] * target


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def publish(t: int, privatizer: Privatizer) -> None:
    """Publish the four counters after t users: closing nodes get noise; no action without privacy."""
    channel, scales, exact, noisy, prefix = (
        privatizer.channel, privatizer.scales, privatizer.exact, privatizer.noisy, privatizer.prefix
    )  # fmt: skip
    begins = places(privatizer.layout)
    for counter in range(4 if prefix.shape[0] > 0 else 0):
        first, last = begins[counter], begins[counter + 1]
        own = NoiseStream(
            channel.law, scales[counter], channel.streams, channel.rng, channel.raw[: chunk(last - first)], channel.room
        )
        close_node(own, t, exact[first:last], prefix[:, first:last], noisy[first:last])


Indices = NDArray[np.int64]


class Constants(NamedTuple):
    """Constants of a ridge regression.

    Attributes:
        ridge: γ (section 6.1), λ without privacy.
        beta: β of the bonus (lines 8 and 9).
    """

    ridge: float
    beta: float


class Agent(NamedTuple):
    """The agent's state, computed from the billboard alone.

    Attributes:
        mixed: Whether this is Algorithm 2, with probabilities as policies; otherwise Algorithm 1.
        eta: η of Algorithm 2.
        known_rewards: Whether mean rewards are public, and used in place of their estimates.
        known: The mixture.
        transition: Constants of the regression of V(s′) on φ.
        reward: Constants of the regression of r on ϕ.
        noisy: (M,) the billboard.
        values: (H + 1, S) V of this episode.
        quality: (H, SA) Q of this episode.
        actions: (H, S) Algorithm 1's policy; empty in Algorithm 2.
        last: (H, S, A) Algorithm 2's policy of this episode; empty in Algorithm 1, like the next two.
        policy: (H, S, A) policy of the next episode.
        logits: (H, S, A) η·Σ(Q − Q of the first action).
    """

    mixed: bool
    eta: float
    known_rewards: bool
    known: Mixture
    transition: Constants
    reward: Constants
    noisy: Array
    values: Array
    quality: Array
    actions: Indices
    last: Array
    policy: Array
    logits: Array


class Room(NamedTuple):
    """Scratch arrays for a step's regression.

    Attributes:
        phi: (d, SA) φ_V; unused for ϕ.
        matrix: (d, d) Λ.
        root: (d, d) its root, as in `kernels.regression`.
        theta: (d,) θ̂.
        rows: (2, SA) scratch of `lengths`.
        mean: (SA,) ⟨φ, θ̂⟩.
        length: (SA,) √(φᵀΛ⁻¹φ).
    """

    phi: Array
    matrix: Array
    root: Array
    theta: Array
    rows: Array
    mean: Array
    length: Array


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def make_room(d: int, cells: int) -> Room:
    """Scratch arrays for the regression of one step."""
    phi, rows = np.empty((d, cells)), np.empty((2, cells))
    return Room(phi, np.empty((d, d)), np.empty((d, d)), np.empty(d), rows, np.empty(cells), np.empty(cells))


@njit(cache=True, nogil=True, error_model="numpy")
def play(w: SparseMDP, users: np.random.Generator, agent: Agent, privatizer: Privatizer, record: Record) -> None:
    """Play a block of episodes (Algorithms 1 and 2)."""
    truth, totals, walk, layout = np.zeros((w.H + 1, w.S)), record.totals, privatizer.walk, privatizer.layout
    room, other = make_room(layout.d1, w.S * w.A), make_room(layout.d2, w.S * w.A)
    bits = np.empty(agent.policy.size, np.uint64)
    while totals[DONE] < record.until:  # line 2
        changed = plan(w, agent, room, other)  # lines 3 to 12
        if agent.mixed:
            improve(agent, bits)
            totals[SWITCHES] += 1.0 if changed and totals[DONE] > 0.0 else 0.0
            totals[VALUE] = value_mixed(w, agent.last, truth)
            roll_mixed(w, agent.last, users, walk)
        else:
            if changed or totals[DONE] == 0.0:
                judge(w, agent.actions, truth, record)
            roll_greedy(w, agent.actions, users, walk)  # line 13
        note(record)
        if int(totals[DONE]) < privatizer.K:  # line 14
            count(agent.known, agent.values, privatizer, room.phi)
            publish(int(totals[DONE]), privatizer)


@njit(cache=True, nogil=True, error_model="numpy")
def plan(w: SparseMDP, agent: Agent, room: Room, other: Room) -> bool:
    """Write V, Q and the policy of the next episode from the noisy counters; returns whether the policy changed.

    Args:
        w: The model, of which only sizes and public mean rewards are used.
        agent: The agent; its arrays are overwritten.
        room: Scratch for transitions.
        other: Scratch for rewards.
    """
    known, values, quality, noisy = agent.known, agent.values, agent.quality, agent.noisy
    H, cells, d1, d2, changed = w.H, quality.shape[1], known.kernels.shape[1], known.features.shape[0], False
    _, sums, gram, rewards, _ = places(Layout(H, d1, d2))
    values[H, :] = 0.0  # line 3
    for h in range(H - 1, -1, -1):  # line 4
        top = float(H - h)
        if agent.known_rewards:
            for c in range(cells):
                quality[h, c] = w.mean_reward[h * w.stride + c]
        else:
            quality[h, :] = 0.0
            matrix, vector = noisy[gram + h * triangle(d2) : rewards], noisy[rewards + h * d2 :]
            regress(agent.reward, matrix, vector, known.features, other, quality[h])  # lines 6 and 9
        if h < H - 1:  # at step H there is no V: φ = 0
            integrate(known.kernels, values[h + 1], room.phi)  # line 7
            matrix, vector = noisy[h * triangle(d1) : sums], noisy[sums + h * d1 : gram]
            regress(agent.transition, matrix, vector, room.phi, room, quality[h])  # lines 5 and 8
        for c in range(cells):
            quality[h, c] = max(0.0, min(top, quality[h, c]))  # line 10
        if agent.mixed:
            changed = evaluate(agent, h) or changed  # line 12 of Algorithm 2
        else:
            changed = choose_best(quality[h], h, agent.actions, values) or changed  # lines 11 and 12
    return changed


@njit(cache=True, nogil=True, forceinline=True)
def choose_best(quality: Array, h: int, actions: Indices, values: Array) -> bool:
    """Write a step's largest Q and its lowest action; returns whether an action changed.

    Args:
        quality: (SA,) Q.
        h: The step, from 0.
        actions: (H, S) the policy; row h is overwritten.
        values: (H + 1, S) V; row h is overwritten.
    """
    S, changed = actions.shape[1], False
    A = quality.size // S
    for s in range(S):
        best, which = quality[s * A], 0
        for a in range(1, A):
            if quality[s * A + a] > best:
                best, which = quality[s * A + a], a
        changed |= actions[h, s] != which
        values[h, s], actions[h, s] = best, which
    return changed


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def regress(of: Constants, gram: Array, sums: Array, phi: Array, room: Room, quality: Array) -> None:  # noqa: PLR0917
    """Add ⟨φ, θ̂⟩ + β·√(φᵀΛ⁻¹φ) to each cell's Q.

    Args:
        of: Constants of the regression.
        gram: Array that begins with the entries of Λ − γI on and above the diagonal, by rows.
        sums: Array that begins with u, (d,).
        phi: (d, SA) the features.
        room: Scratch.
        quality: (SA,) added to.
    """
    d, cells = phi.shape
    ridge, beta = of
    matrix, root, theta = room.matrix, room.root, room.theta
    at = 0
    for i in range(d):
        for j in range(i, d):
            matrix[i, j] = gram[at]
            matrix[j, i] = gram[at]
            at += 1
        matrix[i, i] += ridge
    if not stands_out(matrix, 0.5 * ridge, root):
        raise_eigenvalues(matrix, 0.5 * ridge, root)
        invert_root(matrix, root)
    solve(root, sums[:d], theta)
    predict(phi, theta, room.mean)
    lengths(phi, root, room.rows, room.length)
    for c in range(cells):
        quality[c] += room.mean[c] + beta * room.length[c]


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def stands_out(matrix: Array, least: float, root: Array) -> bool:
    """Whether no pivot of Λ is below `least`; also writes the root of Λ.

    No pivot is below the smallest eigenvalue, and that is at least γ/2 = λ_min except with the failure probability of
    Theorem 6.5 (its proof: ‖N‖ ≤ Σ and γ = 2Σ); for exact sums it is at least γ. So eigenvalues are raised only if
    noise exceeds its bound, or the ridge is chosen smaller.
    """
    if invert_root(matrix, root) == -np.inf:
        return False
    for i in range(matrix.shape[0]):  # noqa: SIM110 - Numba has no all()
        if root[i, i] * root[i, i] * least > 1.0:  # 1/pivot
            return False
    return True


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def evaluate(agent: Agent, h: int) -> bool:
    """Write V of a step under the policy, which is stored as `last`, and the log-weights of the next episode.

    The next policy depends on Q of this episode alone (line 15 of Algorithm 2), so both are written at once. π is
    stored as log-weights η·ΣQ up to a constant per state, so that a weight that underflows can recover.

    Returns:
        Whether the policy differs from the last played one.
    """
    last, policy, logits, values, quality = agent.last, agent.policy, agent.logits, agent.values, agent.quality
    S, A = last.shape[1], last.shape[2]
    changed = differ(last[h : h + 1], policy[h : h + 1])
    for s in range(S):
        mean, top, first = 0.0, 0.0, quality[h, s * A]
        for a in range(A):
            last[h, s, a] = policy[h, s, a]
            mean += quality[h, s * A + a] * last[h, s, a]
            logits[h, s, a] += agent.eta * (quality[h, s * A + a] - first)
            top = max(top, logits[h, s, a])
        values[h, s] = mean
        for a in range(A):
            policy[h, s, a] = logits[h, s, a] - top
    return changed


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def improve(agent: Agent, bits: NDArray[np.uint64]) -> None:
    """Turn log-weights into the next episode's policy (line 15 of Algorithm 2)."""
    policy = agent.policy
    H, S, A = policy.shape
    exponentials(policy.reshape(-1), bits)
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += policy[h, s, a]
            share = 1.0 / total
            for a in range(A):
                policy[h, s, a] *= share
