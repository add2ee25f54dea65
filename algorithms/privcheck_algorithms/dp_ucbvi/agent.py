"""Private baselines that plan with rewards: PUCB, LDP-OBI and DP-UCBVI. One kernel, three planning rules.

Counters are by step (T = H tables) or pooled (T = 1), with the layout of `kernels.tables` and T in place of H. The
papers describe these algorithms in a few lines; each folder's README lists what was filled in.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.runtime.online import DONE, Player, Record, note
from privcheck.runtime.results import OnlineRequest
from privcheck.support.kernels import njit
from privcheck_algorithms.dp_apvi.kernels import private_counts, private_total
from privcheck_algorithms.kernels.optimism import BONUS_SCALE, FAILURE, policy_bonus
from privcheck_algorithms.kernels.sparse_mdp import SparseMDP, empty_walk, judge, roll_greedy
from privcheck_algorithms.kernels.tables import Counters, split
from privcheck_algorithms.online.agent_env import Arrays, assemble, make_env
from privcheck_algorithms.online.private import PRECISION_SCALE, numbers
from privcheck_algorithms.privatizers.counters import Privatizer, publish

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

OPTIONS = (FAILURE, replace(BONUS_SCALE, default="0.001"), replace(PRECISION_SCALE, default="0.001"))
PUCB, OBI, BERNSTEIN = range(3)


class PlanningRule(NamedTuple):
    """Planning rule of an agent.

    Attributes:
        kind: `PUCB`, `OBI` or `BERNSTEIN`.
        E1: Precision level of visits and rewards.
        log: The logarithm in the bonus.
        root: Factor of 1/√n in the bonus of `OBI`.
        linear: Factor of 1/n there.
        scale: Factor of the bonus.
    """

    kind: int
    E1: float
    log: float
    root: float
    linear: float
    scale: float


class Agent(NamedTuple):
    """The agent's state, computed from the billboard alone.

    Attributes:
        rule: The planning rule.
        actions: (H, S) the policy.
        values: (H + 1, S) Ṽ.
        x: (S,) scratch.
    """

    rule: PlanningRule
    actions: Indices
    values: Array
    x: Array


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def quality(agent: Agent, tables: Counters, h: int, cell: int) -> float:
    """Optimistic value of one pair at one step, in [0, H − h + 1] for the papers' h.

    PUCB (Vietri et al. 2020, as reconstructed in its README): known from ñ ≥ 2E on, and then the bonus is
    (H + 1)·√(2L/max(ñ − E, 1)) + (1 + SH)(3E/ñ + 2E²/ñ²).
    OBI: Lemma 3.1's bonus of Chowdhury & Zhou 2022, with n = max(1, ñ + E).
    BERNSTEIN (Qiao & Wang 2023, as reconstructed): counts by equation (3) of Qiao & Wang 2022, then
    2·√(Var_P̃(Ṽ)·L/n) + √(2L/n) + 20·S·H·E·L/n.

    Args:
        agent: The agent, of which `values` from step h + 1 on are read.
        tables: The noisy counters.
        h: The step, from 0.
        cell: s·A + a.
    """
    (visits, sums, transitions), rule, after, x = tables, agent.rule, agent.values[h + 1], agent.x
    H, S = agent.actions.shape
    t, top = h if visits.shape[0] > 1 else 0, float(H - h)
    n = visits[t, cell]
    if rule.kind == BERNSTEIN:
        for s in range(S):
            x[s] = transitions[t, s, cell]
        total = private_total(n, x.copy(), rule.E1 / 2)
        private_counts(x.copy(), total, x)
        n = total + rule.E1 / 2
        if n <= rule.E1:
            return top
        mean, square = 0.0, 0.0
        for s in range(S):
            p = (x[s] + rule.E1 / (2 * S)) / n
            mean += p * after[s]
            square += p * after[s] * after[s]
        variance = max(0.0, square - mean * mean)
        bonus = 2 * math.sqrt(variance * rule.log / n) + math.sqrt(2 * rule.log / n)
        bonus += 20 * S * H * rule.E1 * rule.log / n
        return float(max(0.0, min(top, sums[t, cell] / n + mean + rule.scale * bonus)))
    total = sums[t, cell]
    for s in range(S):
        total += transitions[t, s, cell] * after[s]
    if rule.kind == PUCB:
        if n < max(2 * rule.E1, 1.0):
            return top
        bonus = (H + 1) * math.sqrt(2 * rule.log / max(n - rule.E1, 1.0))
        share = rule.E1 / n
        bonus += (1 + S * H) * (3 * share + 2 * share * share)
        return float(max(0.0, min(top, total / n + rule.scale * bonus)))
    n = max(1.0, n + rule.E1)
    return float(max(0.0, min(top, total / n + rule.root / math.sqrt(n) + rule.linear / n)))


@njit(cache=True, nogil=True, error_model="numpy")
def plan(agent: Agent, tables: Counters) -> bool:
    """Plan an episode from noisy counters; ties go to the lowest action. Returns whether the policy changed."""
    actions, values = agent.actions, agent.values
    H, S = actions.shape
    A, changed = tables.visits.shape[1] // S, False
    values[H, :] = 0.0
    for h in range(H - 1, -1, -1):
        for s in range(S):
            best, which = -1.0, 0
            for a in range(A):
                q = quality(agent, tables, h, s * A + a)
                if q > best:
                    best, which = q, a
            changed = changed or actions[h, s] != which
            values[h, s], actions[h, s] = best, which
    return changed


@njit(cache=True, nogil=True)
def play(w: SparseMDP, users: np.random.Generator, agent: Agent, privatizer: Privatizer, record: Record) -> None:
    """Play a block of episodes."""
    layout, truth, walk = privatizer.layout, np.zeros((w.H + 1, w.S)), empty_walk(w.H)
    tables = split(privatizer.noisy, layout.T, w.S, w.A)
    while record.totals[DONE] < record.until:
        if plan(agent, tables) or record.totals[DONE] == 0.0:
            judge(w, agent.actions, truth, record)
        roll_greedy(w, agent.actions, users, walk)
        note(record)
        publish(privatizer, int(record.totals[DONE]), walk)


def player(request: OnlineRequest, *, kind: int, label: str, pooled: bool = False, noiseless: bool = False) -> Player:
    """Agent in its world, ready to play.

    Args:
        request: The request.
        kind: Planning rule: `PUCB`, `OBI` or `BERNSTEIN`.
        label: The algorithm's name.
        pooled: Whether counts are pooled over the steps.
        noiseless: Whether to draw no noise; the precision levels are unchanged.

    Raises:
        ParameterError: Sizes other than the environment's, no episode, too many counters, or pooled counts although the
            dynamics change with the step.
    """
    where = make_env(request, noiseless=noiseless, pooled=pooled, rewards=True)
    if pooled and request.world.mdp.transition.shape[0] > 1:
        message = f"{label} pools its counts over the steps, but {request.world.name} changes with the step"
        raise ParameterError(message, name="env", given=request.world.name)
    given, (_, S, A, _), H, K = where.given, where.layout, where.w.H, request.episodes
    failure, scale = numbers(request.options, "failure", "bonus_scale")
    bonus = policy_bonus(H=H, S=S, A=A, K=K, failure=failure, E1=given.E1, E2=given.E2, scale=scale)
    log = math.log(6 * S * A * K * H / failure)
    rule = PlanningRule(kind=kind, E1=given.E1, log=log, root=bonus.root, linear=bonus.linear, scale=scale)

    def begin() -> Arrays:
        return {"actions": np.zeros((H, S), np.int64), "values": np.zeros((H + 1, S))}

    def block(own: Arrays, users: np.random.Generator, privatizer: Privatizer, record: Record) -> None:
        play(where.w, users, Agent(rule, own["actions"], own["values"], np.empty(S)), privatizer, record)

    name = f"{label}, noiseless" if noiseless else label
    return assemble(where, label=name, begin=begin, play=block, told="actions", policy=("actions", "values"))
