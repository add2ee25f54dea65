"""The policy view of agents that learn from a dataset: the agent half runs in every trial, on a small instance.

There are enough users for the agent to use a typical cell, and a public reward for staying in a state, so that the
values depend on the canary's transitions. The declared noise is drawn in bulk; the registered agent computes the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, concatenate
from privcheck.declare.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.runtime import Billboard
from privcheck.runtime.offline import Batch, OfflineAgent
from privcheck.runtime.online import Tables
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.runtime.setting import Setting
from privcheck_audits.plan.requests import policy_meaning
from privcheck_audits.policy.view import WholeAgent, bound_policies, check_policy, whole_runs
from privcheck_audits.releases.canaries import random_users, sizes, worst_canary

_NUMBERS: Final = 5_000  # released numbers of a pass, above which the policy view takes a smaller instance
_SMALL: Final = {"H": 2, "S": 2, "A": 2}  # where an algorithm's own instance names no size
_NOISES: Final = 4  # users a cell and step, in standard deviations, where the agent does not say how many
_WARM: Final = 2  # passes that make Numba compile before the clock starts


def audit_policies(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Lower bound on ε from policies and values alone; valid against any mechanism, and weak.

    Args:
        request: The request.
        algorithm: The algorithm; its agent half is run.

    Raises:
        ParameterError: A number of the request is out of range, or the algorithm has no agent that learns from a
            dataset.
        AuditError: A trial's score is not finite.
    """
    setting = instance_setting(request.setting, algorithm)
    check_policy(request, setting.values)
    whole = instance(setting, algorithm)
    whole_runs(whole, np.random.default_rng(0), _WARM)
    canary = worst_canary(setting.priced)
    return bound_policies(
        request,
        whole,
        values=setting.values,
        seen="policy and values",
        witness=canary.words,
        instance=", ".join(f"{name} = {setting.values[name]}" for name in _SMALL),
        meaning=lambda refuted: policy_meaning(refuted, "the policy that was learned, with its values,"),
        pair=canary.pair,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneByOne:
    """Passes of an agent that makes one pass at a time; importable by worker processes.

    Attributes:
        agent: The registered agent.
        setting: Setting of the instance.
        reward: (S, A, S) public reward.
    """

    agent: OfflineAgent
    setting: Setting
    reward: NDArray[np.float64]

    def __call__(self, noisy: Tables) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Greedy actions and values, (B, H, S) each; the tables are frozen."""
        agent_half = self.agent.make(self.setting, reward=self.reward)
        learnt = []
        for table in noisy.values():
            table.flags.writeable = False  # as on any billboard: a view of a frozen array cannot be set back
        for run in range(len(next(iter(noisy.values())))):
            billboard = Billboard()

            def publish(step: int, run: int = run, billboard: Billboard = billboard) -> None:
                for name, table in noisy.items():
                    billboard.publish(name, step, table[run, step], known_digest="none is kept")

            learnt.append(agent_half(billboard, publish))
        return np.stack([one.policy.argmax(axis=-1) for one in learnt]), np.stack([one.values for one in learnt])


def instance_setting(setting: Setting, algorithm: Algorithm) -> Setting:
    """Setting of the policy view: the given one, or a small instance if a pass would be too large."""
    H, S, A = sizes(setting.values)
    if H * S * A * (S + 1) <= _NUMBERS:
        return setting
    values, small = setting.values, {**_SMALL, **algorithm.instance.sizes}
    return setting.at({name: min(values[name], Fraction(size)) for name, size in small.items() if name in values})


def instance(setting: Setting, algorithm: Algorithm) -> WholeAgent:
    """The agent half on the worst canary among random users, with the declared noise.

    Args:
        setting: Setting of the instance.
        algorithm: The algorithm; its agent half is run.

    Raises:
        ParameterError: The algorithm has no agent that learns from a dataset.
    """
    agent = algorithm.offline
    if agent is None:
        raise ParameterError(f"{algorithm.name} has no private agent that learns from data", name=algorithm.name)
    declaration, values = setting.declared, setting.values
    _, S, A = sizes(values)
    stay = np.broadcast_to(np.eye(S)[:, None, :], (S, A, S))
    options = {name: Fraction(algorithm.instance.options.get(name, value)) for name, value in setting.options.items()}
    setting = replace(setting, options=options)
    base = random_users(_users(agent, setting), values, np.random.default_rng(0))  # public: the same in every audit
    first, second = (_tables(declaration, base, user) for user in worst_canary(setting.priced).pair)
    passes: Batch = OneByOne(agent=agent, setting=setting, reward=stay)
    if agent.batch is not None:
        passes = agent.batch(setting, stay)
    return WholeAgent(
        exact=(first, second),
        noise={release.name: release.mechanism.at(values) for release in declaration.noisy},
        agent=passes,
        actions=A,
    )


def _users(agent: OfflineAgent, setting: Setting) -> int:
    if agent.users is not None:
        return agent.users(setting)
    _, S, A = sizes(setting.values)
    std = max(release.mechanism.std.number(setting.values) for release in setting.declared.noisy)
    return max(1, math.ceil(_NOISES * S * A * std))


def _tables(
    declaration: Declaration, base: Trajectories, user: Trajectories | None
) -> Mapping[str, NDArray[np.float64]]:
    data = base if user is None else concatenate([base, user])
    return {release.name: release.statistic.compute(data) for release in declaration.noisy}
