"""Worlds with facts about what is easy in them, and datasets of users who act in them without learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.features import FeatureMap
from privcheck.finite_mdp import FiniteMDP
from privcheck.planning import evaluate, refuse_size, sample_trajectories, uniform
from privcheck.results import Dataset, World
from privcheck.trivial_policies import judge_trivial_policies, state_trivial_regret


def make_world(
    *,
    name: str,
    description: str,
    mdp: FiniteMDP,
    features: FeatureMap | None = None,
    facts: Mapping[str, str | int | float] | None = None,
) -> World:
    """Returns the world, whose facts say what share of uniform play's regret the policies have that learn nothing.

    Args:
        name: As users type it.
        description: In one sentence.
        mdp: The model.
        features: What is publicly known of it, where there is something.
        facts: More of them, before the shares.
    """
    sizes = {"steps": mdp.horizon, "states": mdp.states, "actions": mdp.actions}
    if features is not None:
        sizes["dimension"] = features.dimension
    easy = state_trivial_regret(judge_trivial_policies(mdp, features))
    known = {**sizes, **(facts or {}), **easy}
    return World(name=name, description=description, mdp=mdp, facts=known, features=features)


def sample_dataset(
    model: Callable[[Mapping[str, int], int], World],
    values: Mapping[str, int],
    *,
    seed: int,
    public_reward: bool,
    behaviour: NDArray[np.float64] | None = None,
) -> Dataset:
    """Returns users who follow a behaviour policy in a world.

    Args:
        model: Makes the world, as it is registered.
        values: Its parameters, with the number of users n and of steps H among them.
        seed: Of what happens to the users.
        public_reward: Whether the reward function is public; it must then be one and the same at every step.
        behaviour: (H, S, A) action probabilities; None for uniform ones.

    Raises:
        ParameterError: They do not fit into memory.
    """
    users = values["n"]
    refuse_size(users, values["H"])
    world = model(values, seed)
    mdp, features = world.mdp, world.features
    equally = uniform(mdp.horizon, mdp.states, mdp.actions)
    policy = equally if behaviour is None else behaviour
    judged = judge_trivial_policies(mdp, features)
    trivial = {"random": judged.uniform, "myopic": judged.myopic}
    if features is not None and features.kernels is not None:  # elsewhere it is the myopic policy
        trivial["prior-only"] = judged.prior_only
    own = {} if behaviour is None else {"behaviour": evaluate(mdp, behaviour)}
    return Dataset(
        name=world.name,
        description=f"{users} users who act at random in {world.description}",
        trajectories=sample_trajectories(mdp, policy, users=users, rng=np.random.default_rng(seed)),
        reward=mdp.reward[0] if public_reward else None,
        evaluate=lambda policy: evaluate(mdp, policy),
        references={**own, **trivial, "optimum": judged.optimum},
        public=True,
        facts={"users": users, **world.facts, "sampling seed": seed},
        features=features,
    )
