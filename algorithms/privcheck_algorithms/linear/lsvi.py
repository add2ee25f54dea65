"""LSVI-UCB (Jin, Yang, Wang & Jordan 2020, Algorithm 1), compiled by Numba: exact, or from noisy sums on a billboard.

After an episode its user is counted; then, if one is due, a pass writes the releases and the next policy: for h = H, …,
1 the sums Σ φ·(r + V_{h+1}(s′)) are first exact, then noisy, and V_h is computed from the noisy ones alone. Users
act between two passes, so that the policy of every user is a function of the billboard.

*Centred*: (r − ½ + V(s′) − c)/(1 + span) is regressed in place of r + V(s′), with c the middle of V_{h+1} and span from
its least to its largest value, both public. As P·1 = 1, constants are linear in φ, and predictions are shifted and
scaled back.
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

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

EXACT, TREE, FRESH = range(3)  # how Gram matrices leave: not at all, by a tree, or with fresh noise each time


class Features(NamedTuple):
    """Features φ of all pairs, in both layouts.

    Attributes:
        rows: (S·A, d) one row per pair.
        columns: (d, S·A) one row per coordinate.
    """

    rows: Array
    columns: Array


class Sums(NamedTuple):
    """Exact sums over the users so far; the privatizer's side.

    Attributes:
        gram: (H, d, d) Σ φφᵀ.
        nexts: (H, S, d) Σ φ·1{s′}.
        rewards: (H, d) Σ φ·r.
        gains: (H, d) Σ φ·(r + V(s′)), or of the centred values, of the last pass.
    """

    gram: Array
    nexts: Array
    rewards: Array
    gains: Array


class Board(NamedTuple):
    """The billboard, from which all plans are made.

    Attributes:
        gram: (H, d, d) noisy Gram matrices.
        gains: (H, d) noisy sums.
    """

    gram: Array
    gains: Array


class Plan(NamedTuple):
    """The agent's plan, computed from the billboard.

    Attributes:
        actions: (H, S) the next user's policy.
        values: (H + 1, S) V.
        roots: (H, d, d) W of every step, (Λ + ridge)⁻¹ = WᵀW.
        logs: (2, H) ln det of Λ + ridge, now and at the last plan.
        inverse: (H, d, d) Λ⁻¹ if no noise is drawn; updated with every user.
        plans: (1,) number of plans made.
    """

    actions: Indices
    values: Array
    roots: Array
    logs: Array
    inverse: Array
    plans: Indices


class Rule(NamedTuple):
    """Parameters of the agent.

    Attributes:
        K: Number of episodes; nothing is released after the last.
        kind: Schedule of the Gram matrices' release.
        batches: Number of batches of equal length, at most K, each followed by a pass; 0 for a pass whenever a
            determinant has grown.
        growth: Factor of that growth.
        most: Largest number of passes.
        ridge: λ plus the addition for noise, on the diagonal.
        least: The floor of eigenvalues; 0 for none.
        bonus: β in units of the largest target less the smallest.
        noise_bonus: Additional β for noise, in units of `unit`.
        centred: Whether values are centred.
        std_gram: Standard deviation of the noise drawn for Gram matrices, above the diagonal.
        diagonal: Factor of the standard deviation on the diagonal.
        std_gains: Standard deviation of the noise drawn for the sums.
    """

    K: int
    kind: int
    batches: int
    growth: float
    most: int
    ridge: float
    least: float
    bonus: float
    noise_bonus: float
    centred: bool
    std_gram: float
    diagonal: float
    std_gains: float


class NoiseStream(NamedTuple):
    """Source of the noise.

    Attributes:
        rng: Generator of the noise.
        nodes: (levels, H, d, d) noise of a tree's nodes, summed over t's bits from each level up.
        replay: (1,) 1 if outputs are read from the board instead of drawn.
        left: (2,) episodes of the last release of Gram matrices and of gains.
    """

    rng: np.random.Generator
    nodes: Array
    replay: Indices
    left: Indices


class Scale(NamedTuple):
    """Scaling of the targets, (r + V − shift)/unit, and β."""

    unit: float
    shift: float
    beta: float


class Room(NamedTuple):
    """Scratch arrays.

    Attributes:
        pairs: (4, S·A).
        vector: (d,).
        matrix: (d, d).
        shifted: (S,).
    """

    pairs: Array
    vector: Array
    matrix: Array
    shifted: Array


class Agent(NamedTuple):
    """The whole state of the agent."""

    features: Features
    sums: Sums
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
        roll_greedy(w, told, users, agent.walk)
        note(record)
        k = int(totals[DONE])
        count(agent, w.A)
        if k < rule.K and publish(agent, k) and differs(plan.actions, told):
            judge(w, plan.actions, agent.truth, record)


@njit(cache=True, nogil=True, forceinline=True)
def differs(policy: Indices, other: Indices) -> bool:
    """Whether two policies (H, S) differ."""
    H, S = policy.shape
    for h in range(H):
        for s in range(S):
            if policy[h, s] != other[h, s]:
                return True
    return False


@njit(cache=True, nogil=True, error_model="numpy")
def start(agent: Agent, H: int) -> None:
    """Initialise the plan before the first user: the largest possible values, and the first action everywhere."""
    plan, ridge = agent.plan, agent.rule.ridge
    d = agent.features.rows.shape[1]
    for h in range(H):
        plan.values[h, :] = float(H - h)
        plan.logs[0, h] = plan.logs[1, h] = d * math.log(ridge)
        for i in range(d):
            plan.inverse[h, i, i], plan.roots[h, i, i] = 1.0 / ridge, 1.0 / math.sqrt(ridge)


@njit(cache=True, nogil=True, error_model="numpy")
def count(agent: Agent, A: int) -> None:
    """Count one user; without noise, update determinants too."""
    rows, sums, walk, plan, rule = agent.features.rows, agent.sums, agent.walk, agent.plan, agent.rule
    follows = rule.kind == EXACT and rule.batches == 0
    for h in range(walk.taken.size):
        x, following, reward = rows[walk.path[h] * A + walk.taken[h]], walk.path[h + 1], 1.0 - walk.costs[h]
        add_outer(sums.gram[h], x, 1.0)
        nexts, rewards = sums.nexts[h, following], sums.rewards[h]
        for i in range(x.size):
            nexts[i] += x[i]
            rewards[i] += reward * x[i]
        if follows:
            plan.logs[0, h] += math.log(update_inverse(plan.inverse[h], x, 1.0, agent.room.vector))


@njit(cache=True, nogil=True, forceinline=True)
def batch(k: int, K: int, batches: int) -> int:
    """Number of batches that have ended after k of K users: batch j of B ends with user ⌊jK/B⌋."""
    return ((k + 1) * batches - 1) // K


@njit(cache=True, nogil=True, error_model="numpy")
def publish(agent: Agent, k: int) -> bool:
    """Write the releases after user k; returns whether there is a new plan."""
    rule, plan, left = agent.rule, agent.plan, agent.channel.left
    due, leaf = False, k
    if rule.batches > 0:
        leaf = batch(k, rule.K, rule.batches)
        due = leaf > batch(k - 1, rule.K, rule.batches)
        if not due:
            return False
    if rule.kind != EXACT:
        release_gram(agent, leaf)
        left[0] = k
    if rule.batches == 0 and plan.plans[0] < rule.most:
        step = math.log(rule.growth)
        for h in range(plan.logs.shape[1]):
            due = due or plan.logs[0, h] >= plan.logs[1, h] + step
    if due:
        left[1] = k
        plan.plans[0] += 1
        for h in range(plan.logs.shape[1] - 1, -1, -1):
            regress(agent, h)
    return due


@njit(cache=True, nogil=True, error_model="numpy")
def release_gram(agent: Agent, t: int) -> None:
    """Write the noisy Gram matrices of t users or batches, and their roots; under replay the noisy ones are kept.

    The node that closes with t is that of its lowest bit; the noise of the sum is that of the nodes of all its bits.
    """
    rule, channel, plan = agent.rule, agent.channel, agent.plan
    level = 0
    while rule.kind == TREE and (t >> level) & 1 == 0:
        level += 1
    above = level + 1
    while t >> above != 0 and (t >> above) & 1 == 0:
        above += 1
    has_above = rule.kind == TREE and t >> above != 0
    H, d = plan.logs.shape[1], agent.room.vector.size
    for h in range(H):
        exact, noisy, node = agent.sums.gram[h], agent.board.gram[h], channel.nodes[level, h]
        if channel.replay[0] == 0:
            for i in range(d):
                for j in range(d):
                    node[i, j] = channel.nodes[above, h, i, j] if has_above else 0.0
            add_symmetric_noise(channel.rng, rule.std_gram, rule.diagonal, node)
            for i in range(d):
                for j in range(d):
                    noisy[i, j] = exact[i, j] + node[i, j]
        plan.logs[0, h] = invert_floored(noisy, rule.ridge, rule.least, agent.room.matrix, plan.roots[h])


@njit(cache=True, nogil=True, error_model="numpy")
def regress(agent: Agent, h: int) -> None:
    """Write the released sums of step h, and from these V_h and the actions (lines 4 to 11 of Jin et al.)."""
    rule, plan, sums, room, rng = agent.rule, agent.plan, agent.sums, agent.room, agent.channel.rng
    columns, gains, noisy = agent.features.columns, sums.gains[h], agent.board.gains[h]
    H, S = plan.actions.shape
    values, shifted = plan.values[h + 1], room.shifted
    low, high = values[0], values[0]
    for s in range(1, S):
        low, high = min(low, values[s]), max(high, values[s])
    shift, unit, width = 0.0, 1.0, float(H - h)
    if rule.centred:
        shift, unit = 0.5 * (low + high) + 0.5, 1.0 + high - low
        width = unit
    for s in range(S):
        shifted[s] = values[s] - shift
    weigh_next(sums.nexts[h], shifted, gains)
    for i in range(gains.size):
        gains[i] = (gains[i] + sums.rewards[h, i]) / unit
    if rule.kind == EXACT:
        plan.logs[0, h] = invert_floored(sums.gram[h], rule.ridge, rule.least, room.matrix, plan.roots[h])
        invert(plan.roots[h], plan.inverse[h])  # no rounding is carried on
    if agent.channel.replay[0] == 0:
        for i in range(gains.size):
            noisy[i] = gains[i]
        add_noise(rng, rule.std_gains, noisy)
    plan.logs[1, h] = plan.logs[0, h]
    solve(plan.roots[h], noisy, room.vector)
    predict(columns, room.vector, room.pairs[0])
    lengths(columns, plan.roots[h], room.pairs[2:], room.pairs[1])
    choose(plan, h, room.pairs, Scale(unit, shift, rule.bonus * width + rule.noise_bonus * unit))


@njit(cache=True, nogil=True, error_model="numpy")
def choose(plan: Plan, h: int, pairs: Array, scale: Scale) -> None:
    """Write V_h and the lowest best action, for unit·φᵀw + shift + β·‖φ‖ clipped to [0, H − h + 1].

    Args:
        plan: Overwritten at step h, from 0.
        h: The step.
        pairs: (2 or more, S·A) φᵀw and ‖φ‖; the first is overwritten by Q.
        scale: Scaling of the regressed targets.
    """
    H, S = plan.actions.shape
    unit, shift, beta = scale
    A, top = pairs.shape[1] // S, float(H - h)
    for p in range(pairs.shape[1]):
        pairs[0, p] = min(top, max(0.0, unit * pairs[0, p] + shift + beta * pairs[1, p]))
    for s in range(S):
        best, which = pairs[0, s * A], 0
        for a in range(1, A):
            if pairs[0, s * A + a] > best:
                best, which = pairs[0, s * A + a], a
        plan.values[h, s], plan.actions[h, s] = best, which
