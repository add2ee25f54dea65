"""The policy view of agents that regress on public features of a dataset: both halves run in every trial.

The world is that of the algorithm's audit instance, with enough random users that the result is not all noise; one more
user stays in the first state in D and in the last one in D′, where features are as far apart as possible. An agent with
exact sums that do not depend on releases (`OfflineAgent.batch`) makes many passes at a time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Trajectories, concatenate
from privcheck.declare.mechanisms import Noise
from privcheck.runtime import Billboard
from privcheck.runtime.offline import Learnt, OfflineAgent, Pass
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.runtime.setting import Setting
from privcheck_audits.engine.scores import draw_hidden_bits
from privcheck_audits.lockstep.offline_agents import reward_staying
from privcheck_audits.lockstep.regression import Placed, place_agent
from privcheck_audits.lockstep.replay import describe_user
from privcheck_audits.plan.requests import policy_meaning
from privcheck_audits.policy.view import Outputs, Runs, WholeAgent, bound_policies, check_policy
from privcheck_audits.releases.view import small

TOLD: Final = "the policy that was learned, with its values,"
_NOISES: Final = 4  # users a state and action, in standard deviations, where the agent does not say how many
_WARM: Final = 2  # passes before the clock starts

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressingRuns:
    """Fresh runs of both halves; importable, so that blocks can run in any process.

    Attributes:
        agent: The registered agent.
        prepared: The agent half, ready to run.
        setting: Setting with the features of the world.
        data: The users of D and of D′.
        noise: Noise of each release.
        actions: A.
    """

    agent: OfflineAgent
    prepared: Pass
    setting: Setting
    data: tuple[Trajectories, Trajectories]
    noise: Mapping[str, Noise]
    actions: int

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Fresh runs, each on D or D′ by a hidden bit."""
        secret = draw_hidden_bits(rng, runs)
        seen = []
        for on_first in secret:
            learnt = self._learn(self.data[0 if on_first else 1], rng)
            seen.append(np.concatenate([learnt.policy[..., 1:].ravel(), learnt.values.ravel()]))
        return Outputs(features=np.stack(seen), secret=secret)

    def _learn(self, data: Trajectories, rng: np.random.Generator) -> Learnt:
        billboard, agent = Billboard(), self.agent
        channel = DrawnChannel(self.noise, billboard, rng)
        return self.prepared(billboard, agent.hold(data, self.setting, channel, billboard).publish)


class DrawnChannel:
    """A channel that draws the declared noise from one generator and posts the sum; it has no ledger.

    Args:
        noise: Noise of each release.
        billboard: Billboard for the noisy slices.
        rng: Generator of the trial's block.
    """

    def __init__(self, noise: Mapping[str, Noise], billboard: Billboard, rng: np.random.Generator) -> None:
        self._noise, self._billboard, self._rng = noise, billboard, rng

    def release(self, name: str, value: Array, *, part: int) -> Array:
        """Add noise to a value, post the sum on the billboard and return it."""
        self._billboard.publish(name, part, self._noise[name].add(value, self._rng), known_digest="none is kept")
        return self._billboard.read(name, part=part)


def audit_policies(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Lower bound on ε from policies and values alone; valid against any mechanism, and weak.

    Args:
        request: The request.
        algorithm: The algorithm; its agent is run.

    Raises:
        ParameterError: A number of the request is out of range, or the algorithm has no such agent or no world.
        AuditError: A trial's score is not finite.
    """
    placed = place_small(request.setting, algorithm)
    check_policy(request, placed.setting.values)
    whole = instance(placed)
    whole(np.random.default_rng(0), _WARM)
    pair = placed.ends()[0]
    sizes = ", ".join(f"{name} = {size}" for name, size in placed.world.sizes.items())
    return bound_policies(
        request,
        whole,
        values=placed.setting.values,
        seen="policy and values",
        witness=describe_user(pair, None),
        instance=f"{placed.world.description}, {sizes}",
        meaning=lambda refuted: policy_meaning(refuted, TOLD),
        pair=pair,
    )


def place_small(setting: Setting, algorithm: Algorithm) -> Placed:
    """The agent at the sizes of its algorithm's audit instance, at which a violation would be visible.

    Raises:
        ParameterError: As for `place_agent`.
    """
    return place_agent(algorithm, setting.at(small(setting.values, algorithm)))


def instance(placed: Placed) -> Runs:
    """The agent with the end users of its world among random users, with the declared noise."""
    setting, agent = placed.closely.setting, placed.closely.agent
    declaration, values = setting.declared, setting.values
    base = placed.users(_count_users(placed), np.random.default_rng(0))  # public: the same in every audit
    noise = {release.name: release.mechanism.at(values) for release in declaration.noisy}
    pair = placed.ends()[0]
    arms = tuple([*base, *([] if user is None else [user])] for user in pair)
    mdp = placed.world.mdp
    reward = reward_staying(mdp.states, mdp.actions)
    if agent.batch is not None:
        exact = placed.closely.find_exact(arms[0]), placed.closely.find_exact(arms[1])
        return WholeAgent(exact=exact, noise=noise, agent=agent.batch(setting, reward), actions=mdp.actions)
    data = concatenate(arms[0]), concatenate(arms[1])
    prepared = agent.make(setting, reward=reward)
    return RegressingRuns(agent=agent, prepared=prepared, setting=setting, data=data, noise=noise, actions=mdp.actions)


def _count_users(placed: Placed) -> int:
    """Number of users for which a state and action has a few times the noise."""
    setting, mdp = placed.closely.setting, placed.world.mdp
    if placed.closely.agent.users is not None:
        return placed.closely.agent.users(setting)
    std = max(release.mechanism.std.number(setting.values) for release in setting.declared.noisy)
    return max(1, math.ceil(_NOISES * mdp.states * mdp.actions * std))
