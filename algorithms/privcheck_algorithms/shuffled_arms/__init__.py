"""SHUFFLED-ARMS: a bandit whose arms are dealt out in public, from reward bits behind a shuffler."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import Algorithm, AuditInstance
from privcheck.results import World
from privcheck_algorithms.shuffled_arms.agent import OPTIONS, player
from privcheck_algorithms.shuffled_arms.declaration import declare_arms


def small_world(sizes: Mapping[str, int]) -> World:
    """Returns a bandit of two arms at least, in which audits run the agent."""
    means = np.linspace(0.2, 0.8, max(2, sizes["A"]))
    mdp = FiniteMDP(
        horizon=1,
        transition=np.ones((1, 1, means.size, 1)),
        reward=means[None, None, :, None],
        initial=np.ones(1),
    )
    return World(name="bandit", description="a bandit of evenly spaced arms", mdp=mdp, facts={})


SHUFFLED_ARMS = Algorithm(
    name="shuffled-arms",
    title="SHUFFLED-ARMS: a bandit whose arms are dealt out in public, from reward bits behind a shuffler",
    source="this package; README of shuffled_arms",
    declare=declare_arms,
    options=OPTIONS,
    online=player,
    environment="bandit",
    # small batches and no prior to speak of: what is dealt follows the noisy sums closely
    instance=AuditInstance(
        sizes={"H": 1, "S": 1, "A": 2, "K": 8},
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "prior": Fraction(1, 1000),
            "messages": Fraction(20_000_000),
        },
        world=small_world,
    ),
)

__all__ = ["SHUFFLED_ARMS"]
