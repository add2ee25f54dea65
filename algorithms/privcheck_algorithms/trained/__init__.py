"""Agents that train a policy on users' trajectories, with the declaration as their training code.

`tasks` are Gymnasium's for many users at a time, `hiv` and `cancer` are tasks of patients, `policies` have gradients
of every user apart, `networks` makes policies of JAX's functions, `training` reads batches, clipping and noise from a
declaration and hands noisy sums to a learner, `rules` are its updates, and `policy_gradient`, `natural_gradient` and
`evolution_strategies` are such agents, with their declarations; `advantage_weighted`, `fitted_q` and `model_planning`
learn from logged episodes. `simulated` makes tasks environments that are named on the command line, `running` runs the
agents there.

Imports: privcheck and `privatizers`. Promises: exact sums go into the channel and nowhere else; a learner sees noisy
sums and public numbers.
"""

from __future__ import annotations

from privcheck_algorithms.trained.advantage_weighted import PRIVATE_AWR, AdvantageWeighted
from privcheck_algorithms.trained.cancer import CANCER
from privcheck_algorithms.trained.evolution_strategies import PRIVATE_EVOLUTION_STRATEGIES, EvolutionStrategies
from privcheck_algorithms.trained.fitted_q import PRIVATE_FITTED_Q, FittedQ
from privcheck_algorithms.trained.hiv import HIV
from privcheck_algorithms.trained.logged import LoggedEpisodes, read_episodes
from privcheck_algorithms.trained.model_planning import PRIVATE_MODEL_PLANNING, RULES, ModelPlanning, Rules
from privcheck_algorithms.trained.moments import Moments, products, squares, with_products
from privcheck_algorithms.trained.natural_gradient import PRIVATE_NATURAL_GRADIENT, NaturalGradient
from privcheck_algorithms.trained.networks import Network, OptaxRule
from privcheck_algorithms.trained.policies import DosePolicy, LinearPolicy, MirrorPolicy, Policy, TanhPolicy
from privcheck_algorithms.trained.policy_gradient import (
    PRIVATE_POLICY_GRADIENT,
    PolicyGradient,
    SimulatedUsers,
    drawn_returns,
    greedy_returns,
)
from privcheck_algorithms.trained.rules import Adam, Rule
from privcheck_algorithms.trained.running import LearnedPolicy, Trained, load_trained
from privcheck_algorithms.trained.tasks import ACROBOT, CART_POLE, MOUNTAIN_CAR, PENDULUM, Episodes, Task
from privcheck_algorithms.trained.training import (
    Agent,
    LoggedUsers,
    Plan,
    Training,
    Users,
    no_noise,
    read_plan,
    release_noise,
    simulated_noise,
    simulated_sample,
    train,
)

__all__ = [
    "ACROBOT",
    "CANCER",
    "CART_POLE",
    "HIV",
    "MOUNTAIN_CAR",
    "PENDULUM",
    "PRIVATE_AWR",
    "PRIVATE_EVOLUTION_STRATEGIES",
    "PRIVATE_FITTED_Q",
    "PRIVATE_MODEL_PLANNING",
    "PRIVATE_NATURAL_GRADIENT",
    "PRIVATE_POLICY_GRADIENT",
    "RULES",
    "Adam",
    "AdvantageWeighted",
    "Agent",
    "DosePolicy",
    "Episodes",
    "EvolutionStrategies",
    "FittedQ",
    "LearnedPolicy",
    "LinearPolicy",
    "LoggedEpisodes",
    "LoggedUsers",
    "MirrorPolicy",
    "ModelPlanning",
    "Moments",
    "NaturalGradient",
    "Network",
    "OptaxRule",
    "Plan",
    "Policy",
    "PolicyGradient",
    "Rule",
    "Rules",
    "SimulatedUsers",
    "TanhPolicy",
    "Task",
    "Trained",
    "Training",
    "Users",
    "drawn_returns",
    "greedy_returns",
    "load_trained",
    "no_noise",
    "products",
    "read_episodes",
    "read_plan",
    "release_noise",
    "simulated_noise",
    "simulated_sample",
    "squares",
    "train",
    "with_products",
]
