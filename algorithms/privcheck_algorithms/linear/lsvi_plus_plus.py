"""LSVI-UCB++ (He, Zhao, Zhou & Gu 2023), compiled by Numba: exact, or from noisy sums (Sahu 2025, Algorithm 1).

Steps are those of Sahu's Algorithm 1. Rewards are known (step 10). After an episode its user is counted, with weights
that depend on the user's pair and on the billboard; then a pass writes the releases: first Gram matrices, with
determinants that decide whether there is a new plan, then for h = H, …, 1 the sums
over V_{h+1} of this pass. Users act between two passes, so that their policy is a function of the billboard.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.runtime.online import DONE, Record, note
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.regression import (
    add_noise,
    add_outer,
    add_symmetric_noise,
    invert,
    invert_floored,
    lengths,
    predict,
    solve,
    update_inverse,
    weigh_next,
)
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, Walk, judge, roll_greedy
from privcheck_algorithms.linear.lsvi import Features, Room, differs

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

EXACT, FRESH, ONE_DRAW = range(3)  # whether noise is added, and whether each output has its own
HIGH, LOW, SQUARE = range(3)  # V̂, V̌ and V̂²: places in `sums`, `weights` and `noise`


class Data(NamedTuple):
    """Exact sums over the users so far; the privatizer's side.

    Attributes:
        gram: (H, d, d) Σ σ̄⁻²φφᵀ.
        nexts: (H, S, d) Σ σ̄⁻²φ·1{s′}.
        sums: (3, H, d) Σ σ̄⁻²φ·y of the last pass, y = V̂(s′), V̌(s′), V̂(s′)².
    """

    gram: Array
    nexts: Array
    sums: Array


class Board(NamedTuple):
    """The billboard, from which all plans and weights are made.

    Attributes:
        gram: (H, d, d) noisy Gram matrices.
        sums: (3, H, d) noisy sums.
    """

    gram: Array
    sums: Array


class Plan(NamedTuple):
    """The agent's plan, computed from the billboard.

    Attributes:
        actions: (H, S) the next user's policy.
        upper: (H, S·A) Q̂.
        lower: (H, S·A) Q̌.
        values: (2, H + 1, S) V̂ and V̌.
        weights: (3, H, d) ŵ, w̌ and w̄.
        roots: (H, d, d) W of every step, Λ̃⁻¹ = WᵀW.
        logs: (2, H) ln det Λ̃, now and at the last plan.
        inverse: (H, d, d) Λ⁻¹ if no noise is drawn; updated with every user.
        plans: (1,) number of plans made.
    """

    actions: Indices
    upper: Array
    lower: Array
    values: Array
    weights: Array
    roots: Array
    logs: Array
    inverse: Array
    plans: Indices


class Rule(NamedTuple):
    """Parameters of the agent.

    Attributes:
        K: Number of episodes; nothing is released after the last.
        kind: `EXACT`, `FRESH` or `ONE_DRAW`.
        growth: Growth factor of a determinant until the next plan (step 9).
        ridge: 2λ̃ (step 1).
        least: The floor of eigenvalues; 0 for none.
        bonus: β̂ (step 10), and β̌ (step 11).
        doubt: Factor of the third term of step 25; the paper's: 2d³H².
        square_bonus: β̄ of Lemma B.3, with which step 24 adds E and D to the variance; 0 for E = D = 0.
        weighted: Whether σ̄ is estimated; else it is H.
        centred: Whether V − c is regressed, and β̂ is in units of V's span over H.
        std_gram: Standard deviation of the noise drawn for Gram matrices, above the diagonal.
        diagonal: Factor of the standard deviation on the diagonal.
        std_sums: (3) standard deviations of the noise drawn for the sums.
    """

    K: int
    kind: int
    growth: float
    ridge: float
    least: float
    bonus: float
    doubt: float
    square_bonus: float
    weighted: bool
    centred: bool
    std_gram: float
    diagonal: float
    std_sums: tuple[float, float, float]


class NoiseStream(NamedTuple):
    """Source of the noise.

    Attributes:
        rng: Generator of the noise.
        matrices: (H, d, d) noise of the Gram matrices: of this output, or of all.
        vectors: (3, H, d) noise of the sums.
        replay: (1,) 1 if outputs are read from the board instead of drawn.
    """

    rng: np.random.Generator
    matrices: Array
    vectors: Array
    replay: Indices


class Agent(NamedTuple):
    """The whole state of the agent; `reward` is (H or 1, S·A), public."""

    features: Features
    reward: Array
    data: Data
    board: Board
    plan: Plan
    rule: Rule
    channel: NoiseStream
    room: Room
    walk: Walk
    told: Indices
    truth: Array


@njit(cache=True, nogil=True, error_model="numpy")
def play(w: SparseMDP, users: np.random.Generator, agent: Agent, record: Record) -> None:
    """Play a block of episodes."""
    plan, rule, totals, told = agent.plan, agent.rule, record.totals, agent.told
    if totals[DONE] == 0.0:
        start(agent, w.H)
        judge(w, plan.actions, agent.truth, record)
    while totals[DONE] < record.until:
        for h in range(w.H):
            for s in range(w.S):
                told[h, s] = plan.actions[h, s]
        roll_greedy(w, told, users, agent.walk)  # step 23
        note(record)
        k = int(totals[DONE])
        count(agent, w.A)
        if k < rule.K and publish(agent, k) and differs(plan.actions, told):
            judge(w, plan.actions, agent.truth, record)


@njit(cache=True, nogil=True, error_model="numpy")
def start(agent: Agent, H: int) -> None:
    """Initialise the plan before the first user (steps 1 and 2)."""
    plan, ridge = agent.plan, agent.rule.ridge
    d = agent.room.vector.size
    plan.upper[:, :] = float(H)
    for h in range(H):
        plan.values[HIGH, h, :] = float(H)
        plan.logs[0, h] = plan.logs[1, h] = d * math.log(ridge)
        for i in range(d):
            plan.inverse[h, i, i], plan.roots[h, i, i] = 1.0 / ridge, 1.0 / math.sqrt(ridge)


@njit(cache=True, nogil=True, error_model="numpy")
def count(agent: Agent, A: int) -> None:
    """Count one user, with weight 1/σ̄² at each step (steps 24 to 26); without noise, update determinants too."""
    data, walk, plan, room, exact = agent.data, agent.walk, agent.plan, agent.room, agent.rule.kind == EXACT
    for h in range(walk.taken.size):
        x, following = agent.features.rows[walk.path[h] * A + walk.taken[h]], walk.path[h + 1]
        if exact and agent.rule.weighted:
            solve_exactly(agent, h)
        weight = 1.0 / spread(agent, h, x) ** 2
        add_outer(data.gram[h], x, weight)
        nexts = data.nexts[h, following]
        for i in range(x.size):
            nexts[i] += weight * x[i]
        if exact:
            plan.logs[0, h] += math.log(update_inverse(plan.inverse[h], x, weight, room.vector))


@njit(cache=True, nogil=True, error_model="numpy")
def solve_exactly(agent: Agent, h: int) -> None:
    """Write ŵ and w̄ of the users so far at step h from the updated inverse (steps 5 and 7)."""
    plan, sums, d = agent.plan, agent.data.sums, agent.room.vector.size
    sum_targets(agent, h)
    for which in (HIGH, SQUARE):
        w = plan.weights[which, h]
        for i in range(d):
            w[i] = 0.0
        for j in range(d):
            for i in range(d):
                w[i] += plan.inverse[h, j, i] * sums[which, h, j]


@njit(cache=True, nogil=True, error_model="numpy")
def spread(agent: Agent, h: int, x: Array) -> float:
    """Spread σ̄ of a pair with features x (steps 8, 24 and 25); at least H."""
    rule, weights = agent.rule, agent.plan.weights
    H = agent.walk.taken.size
    least, top = float(H), float(H * H)
    if not rule.weighted:
        return least
    mean, square = 0.0, 0.0
    for i in range(x.size):
        mean += x[i] * weights[HIGH, h, i]
        square += x[i] * weights[SQUARE, h, i]
    length = norm(agent, h, x) if rule.doubt > 0.0 or rule.square_bonus > 0.0 else 0.0
    slack = doubts(agent, h, x, mean, length) if rule.square_bonus > 0.0 else 0.0
    if not rule.centred:
        mean = min(top, max(0.0, mean))
    variance = min(top, max(0.0, square)) - mean * mean
    least = max(least, math.sqrt(max(0.0, variance + slack + H)))
    return max(least, rule.doubt * math.sqrt(length))


@njit(cache=True, nogil=True, error_model="numpy")
def norm(agent: Agent, h: int, x: Array) -> float:
    """Length ‖φ‖ in the norm of Λ̃⁻¹ of step h."""
    size = 0.0
    if agent.rule.kind == EXACT:
        inverse = agent.plan.inverse[h]
        for i in range(x.size):
            for j in range(x.size):
                size += x[i] * inverse[i, j] * x[j]
    else:
        root = agent.plan.roots[h]
        for i in range(x.size):
            entry = 0.0
            for j in range(i + 1):
                entry += root[i, j] * x[j]
            size += entry * entry
    return math.sqrt(max(0.0, size))


@njit(cache=True, nogil=True, error_model="numpy")
def doubts(agent: Agent, h: int, x: Array, mean: float, length: float) -> float:
    """E + D of Lemma B.3, by which step 24 widens the variance.

    Args:
        agent: The agent.
        h: The step.
        x: (d,) features φ of the pair.
        mean: ŵᵀφ, not clipped.
        length: ‖φ‖ in the norm of Λ̃⁻¹.
    """
    rule, pessimistic = agent.rule, agent.plan.weights[LOW, h]
    H, cubed, low = float(agent.walk.taken.size), float(x.size) ** 3, 0.0
    for i in range(x.size):
        low += x[i] * pessimistic[i]
    E = min(rule.square_bonus * length, H**2) + min(2.0 * H * rule.bonus * length, H**2)
    D = min(4.0 * cubed * H**2 * (mean - low + 2.0 * rule.bonus * length), cubed * H**3)
    return E + D


@njit(cache=True, nogil=True, error_model="numpy")
def publish(agent: Agent, k: int) -> bool:
    """Write the releases after user k; returns whether there is a new plan (step 9)."""
    rule, plan = agent.rule, agent.plan
    H, due, step = plan.actions.shape[0], False, math.log(rule.growth)
    if rule.kind != EXACT:
        draw(agent, k)
        for h in range(H):
            release_gram(agent, h)
    for h in range(H):
        due = due or plan.logs[0, h] >= plan.logs[1, h] + step
    for h in range(H - 1, -1, -1) if due or rule.kind != EXACT else range(0):
        regress(agent, h)
        if due:
            renew(agent, h)
    plan.plans[0] += 1 if due else 0
    return due


@njit(cache=True, nogil=True, error_model="numpy")
def draw(agent: Agent, k: int) -> None:
    """Draw the noise of an output, or of all outputs before the first one; nothing under replay."""
    rule, channel = agent.rule, agent.channel
    if channel.replay[0] == 1 or (rule.kind == ONE_DRAW and k > 1):
        return
    channel.matrices[:, :, :] = 0.0
    channel.vectors[:, :, :] = 0.0
    for h in range(channel.matrices.shape[0]):
        add_symmetric_noise(channel.rng, rule.std_gram, rule.diagonal, channel.matrices[h])
        for which in range(3):
            add_noise(channel.rng, rule.std_sums[which], channel.vectors[which, h])


@njit(cache=True, nogil=True, error_model="numpy")
def release_gram(agent: Agent, h: int) -> None:
    """Write the noisy Gram matrix of step h and its root; under replay the noisy one is kept."""
    rule, noisy, plan = agent.rule, agent.board.gram[h], agent.plan
    d = agent.room.vector.size
    if agent.channel.replay[0] == 0:
        exact, noise = agent.data.gram[h], agent.channel.matrices[h]
        for i in range(d):
            for j in range(d):
                noisy[i, j] = exact[i, j] + noise[i, j]
    plan.logs[0, h] = invert_floored(noisy, rule.ridge, rule.least, agent.room.matrix, plan.roots[h])


@njit(cache=True, nogil=True, error_model="numpy")
def middle(agent: Agent, h: int) -> tuple[float, float]:
    """Centre and span of V̂_{h+1}; 0 and H if values are not centred."""
    values = agent.plan.values[HIGH, h + 1]
    low, high = values[0], values[0]
    for s in range(1, values.size):
        low, high = min(low, values[s]), max(high, values[s])
    return (0.5 * (low + high), high - low) if agent.rule.centred else (0.0, float(agent.walk.taken.size))


@njit(cache=True, nogil=True, error_model="numpy")
def sum_targets(agent: Agent, h: int) -> None:
    """Write the exact sums of step h over V̂, V̌ and V̂² of step h + 1 (steps 5 to 7)."""
    data, values, shifted = agent.data, agent.plan.values, agent.room.shifted
    shift, _ = middle(agent, h)
    for s in range(shifted.size):
        shifted[s] = values[HIGH, h + 1, s] - shift
    weigh_next(data.nexts[h], shifted, data.sums[HIGH, h])
    for s in range(shifted.size):
        shifted[s] *= shifted[s]
    weigh_next(data.nexts[h], shifted, data.sums[SQUARE, h])
    weigh_next(data.nexts[h], values[LOW, h + 1], data.sums[LOW, h])


@njit(cache=True, nogil=True, error_model="numpy")
def regress(agent: Agent, h: int) -> None:
    """Write the released sums of step h, and ŵ, w̌ and w̄ (steps 5 to 7)."""
    rule, plan, room = agent.rule, agent.plan, agent.room
    sum_targets(agent, h)
    if rule.kind == EXACT:
        plan.logs[0, h] = invert_floored(agent.data.gram[h], rule.ridge, rule.least, room.matrix, plan.roots[h])
        invert(plan.roots[h], plan.inverse[h])  # no rounding is carried on
    for which in range(3):
        noisy = agent.board.sums[which, h]
        if agent.channel.replay[0] == 0:
            for i in range(noisy.size):
                noisy[i] = agent.data.sums[which, h, i] + agent.channel.vectors[which, h, i]
        solve(plan.roots[h], noisy, plan.weights[which, h])


@njit(cache=True, nogil=True, error_model="numpy")
def renew(agent: Agent, h: int) -> None:
    """Write Q̂, Q̌, V̂, V̌ and the actions of step h (steps 10 to 12 and 18 to 20)."""
    rule, plan, pairs = agent.rule, agent.plan, agent.room.pairs
    reward = agent.reward[h if agent.reward.shape[0] > 1 else 0]
    columns, upper, lower = agent.features.columns, plan.upper[h], plan.lower[h]
    H, S = plan.actions.shape
    top, A = float(H), upper.size // S
    shift, span = middle(agent, h)
    beta = rule.bonus * span / H
    plan.logs[1, h] = plan.logs[0, h]
    predict(columns, plan.weights[HIGH, h], pairs[0])
    lengths(columns, plan.roots[h], pairs[2:], pairs[1])
    for p in range(upper.size):
        upper[p] = max(0.0, min(upper[p], reward[p] + pairs[0, p] + shift + beta * pairs[1, p]))
    predict(columns, plan.weights[LOW, h], pairs[0])
    for p in range(upper.size):
        lower[p] = min(top, max(lower[p], reward[p] + pairs[0, p] - rule.bonus * pairs[1, p]))
    for s in range(S):
        best, which, least = upper[s * A], 0, lower[s * A]
        for a in range(1, A):
            least = max(least, lower[s * A + a])
            if upper[s * A + a] > best:
                best, which = upper[s * A + a], a
        plan.values[HIGH, h, s], plan.values[LOW, h, s], plan.actions[h, s] = best, least, which
