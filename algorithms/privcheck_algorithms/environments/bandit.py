"""A bandit of heterogeneous users, as in Bai et al.'s experiments: A arms, one step, one state.

The mean of arm a is drawn uniform on [0, 0.99]; user k's own mean is that plus N(0, σ²), clipped to [0, 1], and the
reward is a bit with that mean. Every user acts once, so that what an agent meets is a bit with the clipped mean's mean.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import Environment
from privcheck.results import World

SPREAD = 0.1  # σ; the paper states none
MOST = 0.99  # of an arm's mean over all users, before clipping


def arm_means(A: int, *, seed: int, spread: float = SPREAD) -> NDArray[np.float64]:
    """Returns (A,) the mean of every arm over its users: E[min(1, max(0, r + ξ))], r uniform, ξ ~ N(0, σ²).

    Args:
        A: Arms.
        seed: Of the draw.
        spread: σ.

    Raises:
        ParameterError: No arm, or a spread that is not positive.
    """
    from scipy.special import ndtr

    if A < 1:
        raise ParameterError(f"A: a bandit has at least 1 arm, got {A}", name="A", given=A)
    if not spread > 0:
        raise ParameterError(f"spread of users' means: expected more than 0, got {spread:g}", name="spread")
    means = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xA2,))).uniform(0.0, MOST, A)
    low, high = -means / spread, (1.0 - means) / spread
    density = np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)
    inside = means * (ndtr(high) - ndtr(low)) + spread * density / np.sqrt(2 * np.pi)
    return np.asarray(inside + 1.0 - ndtr(high))


def bandit(A: int, *, seed: int, spread: float = SPREAD) -> FiniteMDP:
    """Returns the bandit as a model of one state and one step.

    Raises:
        ParameterError: As for `arm_means`.
    """
    means = arm_means(A, seed=seed, spread=spread)
    return FiniteMDP(horizon=1, transition=np.ones((1, 1, A, 1)), reward=means[None, None, :, None], initial=np.ones(1))


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is drawn from its own number
    arms, number = values["A"], values["model"]
    mdp = bandit(arms, seed=number)
    best, mean = float(mdp.mean_reward.max()), float(mdp.mean_reward.mean())
    return World(
        name="bandit",
        description=f"a bandit of {arms} arms and heterogeneous users, drawn from seed {number}",
        mdp=mdp,
        facts={"steps": 1, "states": 1, "actions": arms, "model seed": number, "a random arm's regret": best - mean},
    )


BANDIT = Environment(
    name="bandit",
    title="A bandit of heterogeneous users",
    source="Bai et al. 2024, section VI-A, after Li et al. 2024; spread of users' means 0.1 (caption of Figure 7)",
    parameters=(
        Parameter(name="A", default=20, kind="count", meaning="arms"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its draw"),
    ),
    model=_model,
)
