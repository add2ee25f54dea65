"""PRIVATE-UCB-PO (Chowdhury & Zhou 2022, Algorithm 1): evaluate, improve, act, publish; compiled by Numba.

An episode: the agent evaluates and improves its policy from noisy counters, a user answers, the privatizer turns exact
counters and the channel's fresh noise into the next noisy counters. `evaluate_and_improve` is the agent, and reads no
exact counters.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import uniform
from privcheck.declare.declaration import Parameter
from privcheck.runtime.online import DONE, SWITCHES, VALUE, Player, Record, differ, note
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.kernels.optimism import (
    BONUS_SCALE,
    FAILURE,
    Bonus,
    PlanningBuffers,
    backup,
    exponentials,
    lay_out,
    policy_bonus,
    weigh,
)
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, empty_walk, roll_mixed, value_mixed
from privcheck_algorithms.kernels.tables import split
from privcheck_algorithms.online.agent_env import AgentEnv, Arrays, assemble, make_env
from privcheck_algorithms.online.private import PRECISION_SCALE, numbers
from privcheck_algorithms.privatizers.counters import Privatizer, publish

Array = NDArray[np.float64]

ETA_SCALE = Parameter(
    name="eta_scale", default=10, kind="positive", meaning="factor of the learning rate η = √(2 ln A/(H²K)); paper: 1"
)
OPTIONS = (FAILURE, replace(BONUS_SCALE, default="0.01"), ETA_SCALE, PRECISION_SCALE)


class Agent(NamedTuple):
    """The agent's state, computed from the billboard alone.

    Attributes:
        bonus: Coefficients of the exploration bonus.
        eta: η.
        policy: (H, S, A) π of the next episode.
        logits: (H, S, A) −η·Σ(Q̃ − Q̃ of the first action).
        values: (H + 1, S) Ṽ.
        last: (H, S, A) π of this episode.
    """

    bonus: Bonus
    eta: float
    policy: Array
    logits: Array
    values: Array
    last: Array


@njit(cache=True, nogil=True)
def play(w: SparseMDP, users: np.random.Generator, agent: Agent, privatizer: Privatizer, record: Record) -> None:
    """Play a block of episodes (Algorithm 1)."""
    truth, walk, totals = np.zeros((w.H + 1, w.S)), empty_walk(w.H), record.totals
    desk, bits = lay_out(split(privatizer.noisy, w.H, w.S, w.A)), np.empty(w.H * w.S * w.A, np.uint64)
    while totals[DONE] < record.until:  # line 4
        totals[SWITCHES] += 1.0 if totals[DONE] > 0.0 and differ(agent.policy, agent.last) else 0.0
        evaluate_and_improve(agent, desk, bits)  # lines 5 to 10 and 13
        totals[VALUE] = value_mixed(w, agent.last, truth)
        roll_mixed(w, agent.last, users, walk)  # line 11
        note(record)
        publish(privatizer, int(totals[DONE]), walk)  # line 12


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def evaluate_and_improve(agent: Agent, desk: PlanningBuffers, bits: NDArray[np.uint64]) -> None:
    """Evaluate the policy optimistically and write the next one (lines 5 to 10 and 13 of Algorithm 1, 113 to 122).

    The next policy depends on Q̃ of this episode alone, not on its trajectory, so both are written at once: the caller
    plays `last`, the evaluated policy. π^{k+1} ∝ π^k·exp(−ηQ̃) is stored as log-weights, up to a constant per state, so
    that a weight that underflows can recover. If all Q̃ of a state are equal, its policy is unchanged.

    Args:
        agent: The agent; its arrays are overwritten.
        desk: The billboard.
        bits: (H·SA,) scratch.
    """
    bonus, eta, policy, logits, values, last = agent
    H, S, A = policy.shape
    quality = desk.quality
    values[H, :] = 0.0  # line 5
    for h in range(H - 1, -1, -1):  # line 6
        weigh(desk, h, bonus)  # lines 7 and 8
        backup(desk, h, values, h)  # line 9
        for s in range(S):
            mean, top, first = 0.0, 0.0, quality[s * A]
            for a in range(A):
                last[h, s, a] = policy[h, s, a]
                mean += quality[s * A + a] * last[h, s, a]  # line 10
                logits[h, s, a] -= eta * (quality[s * A + a] - first)
                top = max(top, logits[h, s, a])
            values[h, s] = mean
            for a in range(A):
                policy[h, s, a] = logits[h, s, a] - top
    exponentials(policy.reshape(-1), bits)  # line 13
    for h in range(H):
        for s in range(S):
            total = 0.0
            for a in range(A):
                total += policy[h, s, a]
            share = 1.0 / total
            for a in range(A):
                policy[h, s, a] *= share


def learning_rate(*, A: int, H: int, K: int, scale: float) -> float:
    """Learning rate η = √(2 ln A/(H²K)) of Theorem 3.2, times `scale`; 0 with one action."""
    return scale * math.sqrt(2 * math.log(A) / (H**2 * K))


def player(request: OnlineRequest, *, noiseless: bool = False) -> Player:
    """Player of PRIVATE-UCB-PO in its world.

    Args:
        request: The request.
        noiseless: Whether to draw no noise; with precision_scale = 0 the run then equals OPPO's.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, or too many counters.
    """
    return optimise(
        make_env(request, noiseless=noiseless), "private-ucb-po, noiseless" if noiseless else "private-ucb-po"
    )


def optimise(where: AgentEnv, label: str) -> Player:
    """Player of the algorithm in an environment: with its privatizer, or without one, which is OPPO."""
    request, given, (H, S, A, _) = where.request, where.given, where.layout
    failure, scale, eta_scale = numbers(request.options, "failure", "bonus_scale", "eta_scale")
    bonus = policy_bonus(H=H, S=S, A=A, K=request.episodes, failure=failure, E1=given.E1, E2=given.E2, scale=scale)
    eta = learning_rate(A=A, H=H, K=request.episodes, scale=eta_scale)

    def begin() -> Arrays:
        return {
            "policy": uniform(H, S, A),  # line 1
            "logits": np.zeros((H, S, A)),
            "values": np.zeros((H + 1, S)),
            "last": uniform(H, S, A),
        }

    def block(own: Arrays, users: np.random.Generator, privatizer: Privatizer, record: Record) -> None:
        agent = Agent(bonus, eta, own["policy"], own["logits"], own["values"], own["last"])
        play(where.w, users, agent, privatizer, record)

    told, policy = "last", ("last", "policy", "logits", "values")
    return assemble(where, label=label, begin=begin, play=block, told=told, policy=policy)
