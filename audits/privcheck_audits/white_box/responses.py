"""Users as response functions (Chowdhury & Zhou 2022, section 2.2): worlds without chance, one for each neighbour."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privcheck.declaration import Declaration
from privcheck.finite_mdp import FiniteMDP
from privcheck.relations import ReplaceOne
from privcheck.results import World
from privcheck_algorithms.environments.random_mdp import random_mdp


def response_pairs(declaration: Declaration, world: World) -> Iterator[tuple[FiniteMDP, FiniteMDP, str]]:
    """Yields pairs of users who move counters as far as they can be moved, as response functions, and their words.

    One stays in state 0, the other goes to the last state and stays there, both with reward c throughout, or one with
    0 and the other with 1; where step 1 is common to neighbours, they differ in its reward. In a world with features
    there are pairs besides who stay in the two states whose features are furthest apart as matrices, with other
    rewards, and as vectors, with reward 1.
    """
    mdp = world.mdp
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    fixed = isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed"
    start = 0 if fixed else S - 1
    for one_reward, other_reward in ((0.0, 1.0), (1.0, 1.0), (0.0, 0.0)):
        first = 1.0 - one_reward if fixed else other_reward
        one = answers(H, S, A, to=0, start=0, rewards=(one_reward, one_reward))
        other = answers(H, S, A, to=S - 1, start=start, rewards=(first, other_reward))
        stays, goes = (
            f"stays in state 0 with reward {one_reward:g}",
            f"is in state {S - 1} with reward {other_reward:g}",
        )
        yield one, other, f"in D the user {stays}, in D′ {goes}"
        yield other, one, f"in D the user {goes}, in D′ {stays}"
    if world.features is not None and not fixed:
        for (i, j), reward in zip(_find_far_states(world.features.phi), (0.0, 1.0), strict=True):
            one, other = (answers(H, S, A, to=s, start=s, rewards=(r, r)) for s, r in ((i, 1.0), (j, reward)))
            yield (
                one,
                other,
                f"in D the user stays in state {i} with reward 1, in D′ in state {j} with reward {reward:g}",
            )


def _find_far_states(phi: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Yields two pairs of states: with the outer products, and the features, furthest apart whatever the actions.

    Args:
        phi: (S, A, d).
    """
    S, A, _ = phi.shape
    rows = phi.reshape(S * A, -1)
    inner = rows @ rows.T
    squares = np.diag(inner)
    for apart in (
        squares[:, None] ** 2 + squares**2 - 2 * inner**2,
        squares[:, None] + squares - 2 * inner,
    ):
        least = apart.reshape(S, A, S, A).min(axis=(1, 3))
        i, j = np.unravel_index(int(least.argmax()), least.shape)
        yield int(i), int(j)


def random_responses(mdp: FiniteMDP, rng: np.random.Generator, *, model: bool) -> tuple[FiniteMDP, FiniteMDP, str]:
    """Returns two users who answer by random tables, or the agent's own world against another one.

    Args:
        mdp: The agent's own world.
        rng: The randomness.
        model: Real rollouts: a user of the world and one of another.
    """
    H, S, A = mdp.horizon, mdp.states, mdp.actions
    if model:
        other = random_mdp(S=S, A=A, H=H, seed=int(rng.integers(2**31)), stationary=True)
        return mdp, other, "in D a user of the world, in D′ of another one"
    one, two = (_table(rng, H, S, A) for _ in range(2))
    return one, two, "two users who answer by random tables"


def answers(H: int, S: int, A: int, *, to: int, start: int, rewards: tuple[float, float]) -> FiniteMDP:
    """Returns a user who goes to one state whatever is done; rewards in state 0, and elsewhere."""
    transition = np.zeros((1, S, A, S))
    transition[..., to] = 1.0
    reward = np.full((1, S, A, 1), rewards[1])
    reward[:, 0] = rewards[0]
    return FiniteMDP(horizon=H, transition=transition, reward=reward, initial=np.eye(S)[start])


def _table(rng: np.random.Generator, H: int, S: int, A: int) -> FiniteMDP:
    transition = np.eye(S)[rng.integers(0, S, size=(1, S, A))]
    reward = rng.integers(0, 2, size=(1, S, A, 1)).astype(np.float64)
    return FiniteMDP(horizon=H, transition=transition, reward=reward, initial=np.eye(S)[0])
