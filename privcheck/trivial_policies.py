"""Policies that learn nothing: what a benchmark is worth is how far an agent leaves them behind.

*Uniform* takes every action equally often. *Myopic* takes an action of the largest known mean reward. *Prior-only*
plans with the true mean rewards and the public prior: in a linear mixture the θ of least norm under which the rows of
Σ_i θ_i·ψ_i sum to 1 (1/d₁ each where all kernels are probabilities, the base kernel alone where the others perturb it);
elsewhere next states are uniform. To plan with next states that no action moves is to play myopically, so that the two
are one policy in models without kernels. Equal actions are taken equally often: the lowest would favour a labelling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privcheck.features import FeatureMap
from privcheck.finite_mdp import FiniteMDP
from privcheck.planning import evaluate, solve, uniform

Array = NDArray[np.float64]
_EQUAL = 1e-9  # absolute, per step to go: actions whose returns differ by less are taken equally often


@dataclass(frozen=True, slots=True, kw_only=True)
class TrivialValues:
    """Exact expected returns of the policies that learn nothing, and of the optimum.

    Attributes:
        optimum: V*₁.
        uniform: Of the policy that takes every action equally often.
        myopic: Of the one that takes an action of the largest mean reward.
        prior_only: Of the one that plans with the true mean rewards and the public prior.
    """

    optimum: float
    uniform: float
    myopic: float
    prior_only: float

    @property
    def regret(self) -> dict[str, float]:
        """Returns the regret of an episode by policy: uniform, myopic and prior-only."""
        values = {"uniform": self.uniform, "myopic": self.myopic, "prior-only": self.prior_only}
        return {name: max(self.optimum - value, 0.0) for name, value in values.items()}


def judge_trivial_policies(mdp: FiniteMDP, features: FeatureMap | None = None) -> TrivialValues:
    """Returns the values of the trivial policies.

    Args:
        mdp: The model.
        features: Public features; only the kernels of a linear mixture are used.
    """
    equally = np.broadcast_to(uniform(1, mdp.states, mdp.actions), (mdp.horizon, mdp.states, mdp.actions))
    policies = {"uniform": equally, "myopic": make_myopic(mdp)}
    values = {name: evaluate(mdp, policy) for name, policy in policies.items()}
    kernels = None if features is None else features.kernels
    prior = values["myopic"] if kernels is None else evaluate(mdp, plan_with_prior(mdp, kernels))
    return TrivialValues(optimum=solve(mdp).value, prior_only=prior, **values)


def share_of_uniform(regret: float, uniform: float) -> float | None:
    """Returns a regret as a share of the uniform policy's; None where that is 0: then nothing is left to learn.

    Args:
        regret: Of what is judged.
        uniform: Of the uniform policy, over as many episodes.
    """
    return regret / uniform if uniform > _EQUAL else None


def state_trivial_regret(values: TrivialValues) -> dict[str, float]:
    """Returns facts about an environment: what share of the uniform policy's regret the other trivial policies have.

    Empty where the uniform policy is optimal.
    """
    regret = values.regret
    shares = {name: share_of_uniform(regret[name], regret["uniform"]) for name in ("myopic", "prior-only")}
    return {
        f"regret of the {name} policy, share of the uniform policy's": round(share, 6)
        for name, share in shares.items()
        if share is not None
    }


def make_myopic(mdp: FiniteMDP) -> Array:
    """Returns the policy (H, S, A) that is greedy for the mean reward of the step."""
    best = _take_best(mdp.mean_reward, 1)
    return np.broadcast_to(best, (mdp.horizon, mdp.states, mdp.actions))


def plan_with_prior(mdp: FiniteMDP, kernels: Array) -> Array:
    """Returns the policy (H, S, A) that is optimal for the true mean rewards and the prior's next states.

    Args:
        mdp: The model; of it the mean rewards and the number of steps are used.
        kernels: (d₁, S, A, S) known kernels ψ.
    """
    prior = mix_without_data(kernels)
    policy, after = np.empty((mdp.horizon, mdp.states, mdp.actions)), np.zeros(mdp.states)
    for h in reversed(range(mdp.horizon)):
        quality = mdp.mean_reward[mdp.part(h)] + prior @ after
        policy[h], after = _take_best(quality, mdp.horizon - h), quality.max(axis=1)
    return policy


def mix_without_data(kernels: Array) -> Array:
    """Returns Σ_i θ_i·ψ_i (S, A, S) for the θ of least norm under which its rows come closest to a sum of 1."""
    sums = kernels.sum(axis=-1).reshape(len(kernels), -1).T
    theta = np.linalg.lstsq(sums, np.ones(len(sums)), rcond=None)[0]
    mixed: Array = np.tensordot(theta, kernels, axes=1)
    return mixed


def _take_best(quality: Array, steps: int) -> Array:
    best = (quality >= quality.max(axis=-1, keepdims=True) - _EQUAL * steps).astype(np.float64)
    shares: Array = best / best.sum(axis=-1, keepdims=True)
    return shares
