"""VAPVI (Yin, Duan, Wang & Wang 2022) and PEVI (Jin, Yang & Wang 2021), from exact sums: the twins of DP-VAPVI.

Qiao & Wang 2022 obtains VAPVI from its Algorithm 2 by removing the noise (section 4); PEVI is VAPVI with all weights 1.
Written from counts of cells and with a solver for each system, sharing nothing with DP-VAPVI's steps, so that the test
of their agreement without noise compares two derivations.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import one_hot
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.runtime.offline import Learnt, share_worthless
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import RunRequest, RunResult
from privcheck_algorithms.linear.regression import remark_features

Array = NDArray[np.float64]
_ALL: Final = slice(None)

OPTIONS: Final = (
    Parameter(name="ridge", default="0.1", kind="positive", meaning="λ, on the diagonal of the Gram matrices"),
    Parameter(name="C", default="0.1", kind="real", meaning="factor of the penalty √d·‖φ‖; PEVI's theorem: √d·H"),
)


def vapvi(
    data: Trajectories,
    phi: Array,
    options: Mapping[str, Fraction],
    *,
    variance: slice = _ALL,
    values: slice = _ALL,
    weighted: bool = True,
) -> Learnt:
    """VAPVI's policy and pessimistic values; ties up to rounding go to the lowest action.

    Args:
        data: The users' trajectories.
        phi: (S, A, d) features.
        options: `ridge` and `C`.
        variance: Users for estimating the variances.
        values: Users for estimating the values.
        weighted: Whether users are weighted by the variances; false for PEVI.
    """
    H, S, A = data.horizon, data.num_states, data.num_actions
    ridge, pessimism = float(options["ridge"]), float(options["C"]) * math.sqrt(phi.shape[-1])
    cells = phi.reshape(S * A, -1)
    actions, found, after = np.empty((H, S), dtype=np.int64), np.empty((H, S)), np.zeros(S)
    for h in reversed(range(H)):
        most, weight = H - h, np.ones(S * A)
        if weighted:
            n, _, following = _count(data, h, variance)
            gram = _gram(cells, n, ridge)
            square, mean = (np.linalg.solve(gram, cells.T @ (following @ after**power)) for power in (2, 1))
            spread = np.clip(cells @ square, 0, most**2) - np.clip(cells @ mean, 0, most) ** 2
            weight = 1 / np.maximum(1, spread)
        n, gains, following = _count(data, h, values)
        gram = _gram(cells, n * weight, ridge)
        w = np.linalg.solve(gram, cells.T @ (weight * (gains + following @ after)))
        lengths = np.sqrt((cells * np.linalg.solve(gram, cells.T).T).sum(axis=1))
        q = np.clip(cells @ w - pessimism * lengths, 0, most).reshape(S, A)
        worse = q.max(axis=1, keepdims=True) - q
        actions[h] = (worse <= 1e-10 * H).argmax(axis=1)
        after = found[h] = np.take_along_axis(q, actions[h][:, None], axis=1)[:, 0]
    return Learnt(policy=one_hot(actions, A), values=found, claimed=float(after.min()), diagnostics={})


def _count(data: Trajectories, h: int, users: slice) -> tuple[Array, Array, Array]:
    """Visits (SA,), sums of rewards (SA,) and transitions (SA, S) of a step."""
    cell = data.states[users, h] * data.num_actions + data.actions[users, h]
    size = data.num_states * data.num_actions
    n, gains, following = np.zeros(size), np.zeros(size), np.zeros((size, data.num_states))
    np.add.at(n, cell, 1.0)
    np.add.at(gains, cell, data.rewards[users, h])
    np.add.at(following, (cell, data.states[users, h + 1]), 1.0)
    return n, gains, following


def _gram(cells: Array, weights: Array, ridge: float) -> Array:
    matrix: Array = (cells * weights[:, None]).T @ cells + ridge * np.eye(cells.shape[1])
    return matrix


def _learn(request: RunRequest, *, weighted: bool) -> RunResult:
    """Run the algorithm; it is deterministic, so every replicate is the same."""
    data = request.data
    started = time.perf_counter()
    learnt = vapvi(data.trajectories, data.feature_map.phi, request.options, weighted=weighted)
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
        remarks=remark_features(data.feature_map),
        worthless=share_worthless(learnt),
    )


VAPVI = Algorithm(
    name="vapvi",
    title="VAPVI: pessimistic value iteration with features and variance weights, not private",
    source="Yin, Duan, Wang & Wang 2022; Qiao & Wang 2022, Algorithm 2 without noise, users not split",
    declare=None,
    options=OPTIONS,
    learn=partial(_learn, weighted=True),
)
PEVI = Algorithm(
    name="pevi",
    title="PEVI: pessimistic value iteration with features, not private",
    source="Jin, Yang & Wang 2021; Qiao & Wang 2022, section 5",
    declare=None,
    options=OPTIONS,
    learn=partial(_learn, weighted=False),
)
