"""The planner's naive twin: values backward, one step after the other, over the whole table."""

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP


def value_backward(mdp: FiniteMDP, policy: NDArray[np.float64]) -> float:
    """Returns the expected return of a policy (H, S, A), where `planning.evaluate` carries the law forward."""
    value = np.zeros(mdp.states)
    for law, reward, step in reversed(list(steps(mdp, policy))):
        value = (step[:, :, None] * law * (reward + value)).sum(axis=(1, 2))
    return float(mdp.initial @ value)


def best_backward(mdp: FiniteMDP) -> float:
    """Returns the optimum's expected return."""
    value = np.zeros(mdp.states)
    for law, reward, _ in reversed(list(steps(mdp, np.empty(mdp.horizon)))):
        value = (law * (reward + value)).sum(axis=2).max(axis=1)
    return float(mdp.initial @ value)


def steps(mdp: FiniteMDP, policy: NDArray[np.float64]):
    """Yields law (S, A, S), rewards (S, A, S) and what the policy does, of each step."""
    for h in range(mdp.horizon):
        part = 0 if mdp.transition.shape[0] == 1 else h
        yield mdp.transition[part], mdp.reward[part], policy[h]
