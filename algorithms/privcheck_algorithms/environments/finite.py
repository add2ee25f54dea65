"""Finite worlds with a known truth: RiverSwim, random models, bandits, and the regret of policies without learning.

`make_world` adds this regret to a model as facts; `sample_dataset` draws users who act without learning.

* RiverSwim: a chain against a current (Strehl & Littman 2008), as in Chowdhury & Zhou's experiments. The reward is
  small and certain at the bank, 1 at the far end, which only long persistence reaches.
* Random tabular models: successors by a Dirichlet law, rewards uniform; `model` is the seed of the draw.
* A bandit of heterogeneous users, as in Bai et al.'s experiments: A arms, one step, one state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.data.features import FeatureMap
from privcheck.data.finite_models import (
    FiniteMDP,
    evaluate,
    judge_trivial_policies,
    refuse_size,
    sample_trajectories,
    state_trivial_regret,
    uniform,
)
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Environment
from privcheck.runtime.results import Dataset, World


def make_world(
    *,
    name: str,
    description: str,
    mdp: FiniteMDP,
    features: FeatureMap | None = None,
    facts: Mapping[str, str | int | float] | None = None,
) -> World:
    """World whose facts state the regret of policies without learning, as shares of uniform play's regret.

    Args:
        name: Name, as typed by users.
        description: Description in one sentence.
        mdp: The model.
        features: Public features of the model, if any.
        facts: Further facts, listed before the shares.
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
    """Users who follow a behaviour policy in a world.

    Args:
        model: Constructor of the world, as registered.
        values: Values of its parameters, including the number of users n and of steps H.
        seed: Seed of the users' trajectories.
        public_reward: Whether the reward function is public; it must then be one and the same at every step.
        behaviour: (H, S, A) action probabilities; None for uniform ones.

    Raises:
        ParameterError: The users do not fit into memory.
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


LEFT, RIGHT = 0, 1


def riverswim(states: int, *, H: int) -> FiniteMDP:
    """Chain of S states, two actions and H steps; users start at s = 0.

    Left is deterministic: s → max(0, s − 1). Right: at s = 0 stay .4, up .6; between, up .35, stay .6, down .05; at S −
    1
    stay .6, down .4. Rewards .005 at (0, left) and 1 at (S − 1, right).

    Raises:
        ParameterError: There are fewer than 2 states, or no step.
    """
    if states < 2:
        raise ParameterError(f"S: a river has at least 2 states, got {states}", name="S", given=states)
    last = states - 1
    transition = np.zeros((states, 2, states))
    for s in range(states):
        transition[s, LEFT, max(0, s - 1)] = 1.0
    transition[0, RIGHT, [0, 1]] = 0.4, 0.6
    for s in range(1, last):
        transition[s, RIGHT, [s - 1, s, s + 1]] = 0.05, 0.6, 0.35
    transition[last, RIGHT, [last - 1, last]] = 0.4, 0.6
    reward = np.zeros((states, 2, 1))
    reward[0, LEFT], reward[last, RIGHT] = 0.005, 1.0
    return FiniteMDP(horizon=H, transition=transition[None], reward=reward[None], initial=np.eye(states)[0])


def _make_riverswim(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
    """Chain for online agents; the seed is unused, since the model is fixed."""
    H, states = values["H"], values["S"]
    return make_world(
        name="riverswim",
        description=f"RiverSwim with {states} states and {H} steps; users start at the bank (simulated)",
        mdp=riverswim(states, H=H),
    )


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    """Users who act uniformly at random; exact values of random, myopic and optimum at this H."""
    return sample_dataset(_make_riverswim, values, seed=seed, public_reward=True)


RIVERSWIM = Environment(
    name="riverswim",
    title="RiverSwim: a chain against the current",
    source="Strehl & Littman 2008, with the numbers of Chowdhury & Zhou's experiments",
    parameters=(
        Parameter(name="n", default=1000, kind="count", meaning="simulated users"),
        Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
        Parameter(name="S", default=6, kind="count", meaning="length of the chain, at least 2"),
    ),
    sample=_sample,
    model=_make_riverswim,
    usual_for=("online",),
)


_TOO_MANY = 50_000_000  # numbers of a transition table that is kept


def random_mdp(*, S: int, A: int, H: int, seed: int, stationary: bool = False) -> FiniteMDP:
    """Model with P_h(· | s, a) uniform on the simplex and r_h(s, a) uniform on [0, 1]; start s = 0.

    Args:
        S: Number of states.
        A: Number of actions.
        H: Number of steps.
        seed: Seed of the draw.
        stationary: Whether the law is the same at every step.

    Raises:
        ParameterError: The model has more than 5·10⁷ numbers.
    """
    steps = 1 if stationary else H
    if steps * S * A * S > _TOO_MANY:
        message = f"H·S²·A = {steps * S * A * S} numbers; at most {_TOO_MANY} are drawn: make H, S or A smaller"
        raise ParameterError(message, name="S", given=S)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0x3D9,)))
    return FiniteMDP(
        horizon=H,
        transition=rng.dirichlet(np.ones(S), size=(steps, S, A)),
        reward=rng.random((steps, S, A, 1)),
        initial=np.eye(S)[0],
    )


def _make_random(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
    H, S, A = values["H"], values["S"], values["A"]
    return make_world(
        name="random",
        description=f"a random model of {S} states, {A} actions and {H} steps, drawn from seed {values['model']}",
        mdp=random_mdp(S=S, A=A, H=H, seed=values["model"]),
        facts={"model seed": values["model"]},
    )


RANDOM = Environment(
    name="random",
    title="A random tabular model, other dynamics at every step",
    source="P_h(· | s, a) uniform on the simplex, r_h(s, a) uniform on [0, 1]",
    parameters=(
        Parameter(name="H", default=10, kind="count", meaning="steps of an episode"),
        Parameter(name="S", default=5, kind="count", meaning="states"),
        Parameter(name="A", default=3, kind="count", meaning="actions"),
        Parameter(name="model", default=1, kind="count", meaning="number of the model: the seed of its draw"),
    ),
    model=_make_random,
)


SPREAD = 0.1  # σ; the paper states none
MOST = 0.99  # of an arm's mean over all users, before clipping


def arm_means(A: int, *, seed: int, spread: float = SPREAD) -> NDArray[np.float64]:
    """(A,) the mean of every arm over its users: E[min(1, max(0, r + ξ))], r uniform, ξ ~ N(0, σ²).

    The mean of arm a is drawn uniformly on [0, 0.99]; user k's own mean is that plus N(0, σ²), clipped to [0, 1], and
    the reward is a bit with that mean. Every user acts once, so that an agent observes a bit with the mean of the
    clipped means.

    Args:
        A: Number of arms.
        seed: Seed of the draw.
        spread: σ.

    Raises:
        ParameterError: There is no arm, or the spread is not positive.
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
    """Bandit as a model of one state and one step.

    Raises:
        ParameterError: As for `arm_means`.
    """
    means = arm_means(A, seed=seed, spread=spread)
    return FiniteMDP(horizon=1, transition=np.ones((1, 1, A, 1)), reward=means[None, None, :, None], initial=np.ones(1))


def _make_bandit(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is drawn from its own number
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
    model=_make_bandit,
)
