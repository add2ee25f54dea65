"""APVI (Yin & Wang 2021b), the non-private twin of DP-APVI: pessimistic value iteration from exact counts.

Qiao & Wang 2022 obtains it from Algorithm 1 by replacing ñ and P̃ with n and P̂ of eq. (15) (section 3,
footnote 6); without noise E_ρ = 0 and the C2 term is gone. Written in NumPy from the data, sharing nothing with
DP-APVI's kernels, so that the test of their agreement without noise compares two derivations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import one_hot, reward_table
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.offline import Learnt, share_worthless
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import RunRequest, RunResult

Array = NDArray[np.float64]

OPTIONS = (
    Parameter(name="failure", default="0.1", kind="probability", meaning="failure probability of the utility bound"),
    Parameter(name="C1", default="1.41421356237309504880", kind="real", meaning="factor of the Bernstein penalty"),
    Parameter(name="C", default=2, kind="positive", meaning="unknown cells are penalised by C·H; above 1"),
    Parameter(
        name="bonus_scale",
        default="1e-6",
        kind="real",
        meaning="factor of known cells' penalty; the paper's: 1. Below it the agent's estimate is not a lower bound",
    ),
)


def apvi(data: Trajectories, *, reward: Array | None, options: Mapping[str, Fraction]) -> Learnt:
    """APVI's policy and pessimistic values; ties up to rounding go to the lowest action.

    Args:
        data: The users' trajectories.
        reward: r(s, a, s′), public, broadcastable to (S, A, S); None takes each cell's mean reward, with a Hoeffding
            allowance √(ι/2n).
        options: `failure`, `C1`, `C` and `bonus_scale`, as for DP-APVI.

    Raises:
        ParameterError: C ≤ 1, or the rewards do not fit.
    """
    H, S, A = data.horizon, data.num_states, data.num_actions
    C1, C, scale = float(options["C1"]), unknown_penalty(options), float(options["bonus_scale"])
    iota = math.log(H * S * A / float(options["failure"]))
    table = None if reward is None else reward_table(reward, S, A)
    actions, values, after = np.empty((H, S), dtype=np.int64), np.empty((H, S)), np.zeros(S)
    for h in reversed(range(H)):
        s, a, following = data.states[:, h], data.actions[:, h], data.states[:, h + 1]
        n = np.zeros((S, A, S))
        np.add.at(n, (s, a, following), 1.0)
        visits = n.sum(axis=2)
        seen, divisor = visits > 0, np.maximum(visits, 1.0)
        P = np.where(seen[..., None], n / divisor[..., None], 1.0 / S)  # eq. (15)
        gain = np.broadcast_to(after, n.shape) if table is None else table + after
        Q = (P * gain).sum(axis=2)
        variance = (P * (gain - Q[..., None]) ** 2).sum(axis=2)
        bonus = C1 * np.sqrt(variance * iota / divisor)
        if table is None:
            sums = np.zeros((S, A))
            np.add.at(sums, (s, a), data.rewards[:, h])
            Q += sums / divisor
            bonus += np.sqrt(iota / (2 * divisor))
        Q = np.clip(Q - np.where(seen, scale * bonus, C * H), 0.0, H - h)
        worse = Q.max(axis=1, keepdims=True) - Q
        actions[h] = (worse <= 1e-10 * H).argmax(axis=1)
        after = values[h] = np.take_along_axis(Q, actions[h][:, None], axis=1)[:, 0]
    claimed = float(after[data.states[:, 0]].mean())
    return Learnt(policy=one_hot(actions, A), values=values, claimed=claimed, diagnostics={})


def unknown_penalty(options: Mapping[str, Fraction]) -> float:
    """Factor C of the penalty C·H of an unknown cell.

    Raises:
        ParameterError: C ≤ 1 (Algorithm 1 requires more), so that an unknown cell could have a positive value.
    """
    if options["C"] <= 1:
        message = f"C (penalty C·H of unknown cells): expected above 1, got {options['C']}"
        raise ParameterError(message, name="C", given=options["C"])
    return float(options["C"])


def _learn(request: RunRequest) -> RunResult:
    """Run APVI; it is deterministic, so every replicate is the same."""
    data = request.data
    started = time.perf_counter()
    learnt = apvi(data.trajectories, reward=data.reward, options=request.options)
    seconds = time.perf_counter() - started
    request.progress(1, 1)
    return RunResult(
        returns=np.full(request.replicates, data.evaluate(learnt.policy)) if data.evaluate else None,
        claimed=np.full(request.replicates, learnt.claimed),
        baseline=None,
        policy=learnt.policy,
        ledger=None,
        diagnostics={},
        seconds=seconds,
        worthless=share_worthless(learnt),
    )


APVI = Algorithm(
    name="apvi",
    title="APVI: pessimistic value iteration from exact counts, not private",
    source="Yin & Wang 2021b; Qiao & Wang 2022, footnote 6 and eq. (15)",
    declare=None,
    options=OPTIONS,
    printed={"bonus_scale": "1"},
    learn=_learn,
)
