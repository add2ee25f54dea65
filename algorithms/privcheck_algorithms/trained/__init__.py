"""Agents that train a policy on users' trajectories, with the declaration as their training code.

`tasks` are Gymnasium's for many users at a time, `hiv` is a task of patients, `policies` have gradients of every user
apart, `training` reads batches, clipping and noise from a declaration and hands noisy sums to a learner,
`policy_gradient` and `evolution_strategies` are two such agents, with their declarations; `advantage_weighted`,
`fitted_q` and `model_planning` learn from logged episodes.

Imports: privcheck and `privatizers`. Promises: exact sums go into the channel and nowhere else; a learner sees noisy
sums and public numbers.
"""

from __future__ import annotations

from privcheck_algorithms.trained.advantage_weighted import PRIVATE_AWR, AdvantageWeighted
from privcheck_algorithms.trained.evolution_strategies import PRIVATE_EVOLUTION_STRATEGIES, EvolutionStrategies
from privcheck_algorithms.trained.fitted_q import PRIVATE_FITTED_Q, FittedQ
from privcheck_algorithms.trained.hiv import HIV
from privcheck_algorithms.trained.model_planning import PRIVATE_MODEL_PLANNING, RULES, ModelPlanning, Rules
from privcheck_algorithms.trained.moments import Moments, products, squares, with_products
from privcheck_algorithms.trained.policies import LinearPolicy, MirrorPolicy, Policy, TanhPolicy
from privcheck_algorithms.trained.policy_gradient import (
    PRIVATE_POLICY_GRADIENT,
    PolicyGradient,
    SimulatedUsers,
    drawn_returns,
    greedy_returns,
)
from privcheck_algorithms.trained.tasks import ACROBOT, CART_POLE, MOUNTAIN_CAR, PENDULUM, Episodes, Task
from privcheck_algorithms.trained.training import (
    Agent,
    LoggedUsers,
    Plan,
    Training,
    Users,
    no_noise,
    read_plan,
    simulated_noise,
    simulated_sample,
    train,
)

__all__ = [
    "ACROBOT",
    "CART_POLE",
    "HIV",
    "MOUNTAIN_CAR",
    "PENDULUM",
    "PRIVATE_AWR",
    "PRIVATE_EVOLUTION_STRATEGIES",
    "PRIVATE_FITTED_Q",
    "PRIVATE_MODEL_PLANNING",
    "PRIVATE_POLICY_GRADIENT",
    "RULES",
    "AdvantageWeighted",
    "Agent",
    "Episodes",
    "EvolutionStrategies",
    "FittedQ",
    "LinearPolicy",
    "LoggedUsers",
    "MirrorPolicy",
    "ModelPlanning",
    "Moments",
    "Plan",
    "Policy",
    "PolicyGradient",
    "Rules",
    "SimulatedUsers",
    "TanhPolicy",
    "Task",
    "Training",
    "Users",
    "drawn_returns",
    "greedy_returns",
    "no_noise",
    "products",
    "read_plan",
    "simulated_noise",
    "simulated_sample",
    "squares",
    "train",
    "with_products",
]
