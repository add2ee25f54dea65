"""Random tabular models: successors by a Dirichlet law, rewards uniform; `model` is the seed of the draw."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privcheck.declaration import Parameter
from privcheck.errors import ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import Environment
from privcheck.results import World
from privcheck_algorithms.environments.simulated import make_world

_TOO_MANY = 50_000_000  # numbers of a transition table that is kept


def random_mdp(*, S: int, A: int, H: int, seed: int, stationary: bool = False) -> FiniteMDP:
    """Returns a model with P_h(· | s, a) uniform on the simplex and r_h(s, a) uniform on [0, 1]; start s = 0.

    Args:
        S: States.
        A: Actions.
        H: Steps.
        seed: Of the draw.
        stationary: The same law at every step.

    Raises:
        ParameterError: More than 5·10⁷ numbers.
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


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
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
    model=_model,
)
