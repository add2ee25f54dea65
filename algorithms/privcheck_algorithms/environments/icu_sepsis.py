"""ICU-Sepsis: a Markov model of sepsis treatment estimated from MIMIC-III patients (Choudhary et al. 2024).

716 states (713 clusters of patients' measurements, death, survival, and an absorbing end), 25 doses of fluid and
vasopressor, the clinicians' policy, and each state's mean SOFA score, the severity of organ failure. The model is
public, so that users simulated from it, and true values in it, may be shown.

States may be aggregated by SOFA score for learning; a policy is always judged in the full model.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import FiniteMDP, evaluate, refuse_size, sample_trajectories, solve, uniform
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Parameter
from privcheck.errors import ParameterError, PrivcheckError
from privcheck.runtime.registry import Environment
from privcheck.runtime.results import Dataset, World
from privcheck_algorithms.environments.finite import make_world

STATES, ACTIONS, STEPS = 716, 25, 20
DEATH, SURVIVAL, END = 713, 714, 715  # the first two lead to the third, which is absorbing
TERMINAL = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SepsisModel:
    """The unaggregated model.

    Attributes:
        mdp: 716 states, 20 steps; reward 1 on a transition from a patient's state into survival.
        clinicians: (716, 25) the clinicians' action probabilities; uniform in the terminal states.
        sofa: (716,) mean SOFA score of each state; 0 in the terminal states.
    """

    mdp: FiniteMDP
    clinicians: NDArray[np.float64]
    sofa: NDArray[np.float64]

    def of_steps(self, H: int) -> FiniteMDP:
        """The same law and rewards over H steps."""
        return replace(self.mdp, horizon=H)


@functools.lru_cache(maxsize=1)
def load() -> SepsisModel:
    """Model from the data file of the package `icu-sepsis`, without importing the package.

    (Importing it pulls in a simulator and prints a warning; one NumPy file is all that is needed.)

    Raises:
        PrivcheckError: The package is not installed, or its file lacks the arrays of version 2.
    """
    path = _asset()
    try:
        with np.load(path) as file:
            transition, initial, clinicians, sofa = (
                file[key] for key in ("tx_mat", "d_0", "expert_policy", "sofa_scores")
            )
    except (OSError, ValueError, KeyError) as error:
        message = f"{path.name} of the package icu-sepsis cannot be read: {error}; install it again"
        raise PrivcheckError(message) from None
    if transition.shape != (STATES, ACTIONS, STATES) or clinicians.shape != (STATES, ACTIONS):
        message = f"expected {STATES} states and {ACTIONS} actions in icu-sepsis, got {transition.shape}"
        raise PrivcheckError(f"{message}; install a 2.x version of it")
    reward = np.zeros((STATES, 1, STATES))
    reward[:DEATH, 0, SURVIVAL] = 1.0
    clinicians[DEATH:] = 1.0 / ACTIONS
    transition.flags.writeable = False  # taken as it is, not copied: 100 MB
    mdp = FiniteMDP(horizon=STEPS, transition=transition[None], reward=reward[None], initial=initial)
    return SepsisModel(mdp=mdp, clinicians=clinicians, sofa=sofa)


def groups(sofa: NDArray[np.float64], states: int) -> NDArray[np.int32]:
    """Groups of the 716 states: bins of nearly equal size by SOFA score, with separate terminal states.

    The scores belong to the public model, not to the users, so the bins cost no privacy. Group numbers rise with SOFA;
    death, survival and end are the last three. With 716 groups every state keeps its number.

    Args:
        sofa: (716,) the scores.
        states: Number of groups, 4 to 716.

    Raises:
        ParameterError: `states` is out of range.
    """
    if not TERMINAL < states <= STATES:
        message = (
            f"S: expected {TERMINAL + 1} to {STATES} (three are death, survival and end; "
            f"{STATES} is the full model), got {states}"
        )
        raise ParameterError(message, name="S", given=states)
    group = np.arange(STATES, dtype=np.int32)
    if states < STATES:
        rank = np.empty(DEATH, dtype=np.int64)
        rank[np.argsort(sofa[:DEATH], kind="stable")] = np.arange(DEATH)
        group[:DEATH] = rank * (states - TERMINAL) // DEATH
        group[DEATH:] = states - TERMINAL + np.arange(TERMINAL)
    return group


def _sample(values: Mapping[str, int], seed: int) -> Dataset:
    """Patients treated by the model's clinicians for H steps, with aggregated states."""
    users, H, states = values["n"], values["H"], values["S"]
    refuse_size(users, H)
    model = load()
    group = groups(model.sofa, states)
    clinicians = np.broadcast_to(model.clinicians, (H, STATES, ACTIONS))
    mdp = model.of_steps(H)
    full = sample_trajectories(mdp, clinicians, users=users, rng=np.random.default_rng(seed))
    reward = np.zeros((states, 1, states))
    reward[: states - TERMINAL, 0, states - 2] = 1.0
    return Dataset(
        name="icu-sepsis",
        description=(
            f"{users} simulated patients of the ICU-Sepsis model (MIMIC-III), treated by its clinicians for {H} steps; "
            + ("states not aggregated" if states == STATES else f"states aggregated to {states} by SOFA score")
        ),
        trajectories=Trajectories(
            states=group[full.states],
            actions=full.actions,
            rewards=full.rewards,
            num_states=states,
            num_actions=ACTIONS,
        ),
        reward=reward,
        evaluate=lambda policy: evaluate(mdp, _lift(policy, group, states)),
        references=dict(_references(H, states)),
        public=True,
        facts={
            "users": users,
            "steps": H,
            "states": states,
            "actions": ACTIONS,
            "states of the model": STATES,
            "sampling seed": seed,
        },
    )


def _model(values: Mapping[str, int], seed: int) -> World:  # noqa: ARG001 - the model is not drawn
    """Model for online agents; with fewer than 716 states, a separate lumped model.

    The transitions and rewards of a group are then the means of its states. (Agents that act in the full model and see
    only groups would not be in a finite model: their optimum is not known.)
    """
    H, states = values["H"], values["S"]
    model = load()
    group = groups(model.sofa, states)
    member = np.zeros((STATES, states))
    member[np.arange(STATES), group] = 1.0
    weights = (member / member.sum(axis=0)).T
    lumped = np.einsum("gs,sat,tk->gak", weights, model.mdp.transition[0], member, optimize=True)
    reward = np.zeros((states, 1, states))
    reward[: states - TERMINAL, 0, states - 2] = 1.0
    lumped /= lumped.sum(axis=2, keepdims=True)
    return make_world(
        name="icu-sepsis",
        description=f"the ICU-Sepsis model (MIMIC-III), {H} steps; "
        + ("states not aggregated" if states == STATES else f"its states lumped to {states} by SOFA score"),
        mdp=FiniteMDP(horizon=H, transition=lumped[None], reward=reward[None], initial=model.mdp.initial @ member),
        facts={"states of the model": STATES},
    )


@functools.lru_cache(maxsize=8)
def _references(H: int, states: int) -> dict[str, float]:
    """Exact expected returns in the full model: survival within H steps.

    The optimum treats each of the 716 states by itself. A policy that sees groups cannot: what planning on the groups'
    true means reaches is a bound from below on the best of those.
    """
    model = load()
    mdp = model.of_steps(H)
    if states < STATES:
        plan = np.eye(ACTIONS)[solve(_model({"H": H, "S": states}, 0).mdp).actions]
        grouped = {"plan of the true groups": evaluate(mdp, _lift(plan, groups(model.sofa, states), states))}
    else:
        grouped = {}
    return {
        **grouped,
        "clinicians": evaluate(mdp, np.broadcast_to(model.clinicians, (H, STATES, ACTIONS))),
        "random": evaluate(mdp, uniform(H, STATES, ACTIONS)),
        "optimum": solve(mdp).value,
    }


def _lift(policy: NDArray[np.float64], group: NDArray[np.int32], states: int) -> NDArray[np.float64]:
    """Policy on the 716 states with the actions of each state's group."""
    if policy.ndim != 3 or policy.shape[1:] != (states, ACTIONS):
        message = f"expected a policy of shape (H, {states}, {ACTIONS}), got {policy.shape}"
        raise ParameterError(message, name="policy")
    return policy[:, group, :]


def _asset() -> Path:
    spec = importlib.util.find_spec("icu_sepsis")
    if spec is None or not spec.submodule_search_locations:
        raise PrivcheckError("the environment icu-sepsis needs its package: pip install 'privcheck[icu-sepsis]'")
    return Path(next(iter(spec.submodule_search_locations)), "envs", "assets", "dynamics.npz")


ICU_SEPSIS = Environment(
    name="icu-sepsis",
    title="Sepsis treatment in intensive care, a model of MIMIC-III patients",
    source="Choudhary et al. 2024, ICU-Sepsis: A Benchmark MDP Built from Real Medical Data; PyPI package icu-sepsis",
    parameters=(
        Parameter(name="n", default=20_000, kind="count", meaning="simulated patients"),
        Parameter(name="H", default=STEPS, kind="count", meaning="steps of an episode"),
        Parameter(name="S", default=24, kind="count", meaning="states after aggregation by SOFA, 4 to 716"),
    ),
    sample=_sample,
    model=_model,
    usual_for=("datasets",),
)
