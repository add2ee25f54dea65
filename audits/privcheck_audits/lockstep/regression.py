"""Agents that regress on public features of a dataset, run whole in the world of their algorithm's audit instance.

Both halves are the registered ones. Users are trajectories of that world: some who stay in the states with the most
distant features, and random ones. If the users are partitioned, the privatizer assigns groups by position, and a user
may change the releases of one group only.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditRequest, AuditResult, World
from privcheck.runtime.setting import Setting
from privcheck.verification.candidates import UserPair
from privcheck_audits.lockstep.agents import follow_closely
from privcheck_audits.lockstep.noise_tests import Sums
from privcheck_audits.lockstep.offline_agents import OfflinePasses, replay_pair, search_far
from privcheck_audits.lockstep.replay import Distance, Replayed, add_until_departure, replay
from privcheck_audits.lockstep.streams import audience, tractable
from privcheck_audits.lockstep.views import audit_draws, audit_pairs
from privcheck_audits.plan.requests import check
from privcheck_audits.releases.canaries import random_users

_ACTIONS: Final = 4  # of which pairs stay at the ends, at most


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """An agent in a world; importable, so that blocks can run in any process.

    Attributes:
        world: The world, with its features.
        closely: The agent with the options of its audit instance, under which its policy follows the releases.
        asked: The agent with the requested options, under which values are often clipped and actions tie.
    """

    world: World
    closely: OfflinePasses
    asked: OfflinePasses

    @property
    def setting(self) -> Setting:
        """The requested setting, at the world's sizes and with its features."""
        return self.asked.setting

    @property
    def declaration(self) -> Declaration:
        """The agent's declaration."""
        return self.setting.declared

    @property
    def relation(self) -> ReplaceOne | None:
        """The relation, if it is replacement; None if a user is absent from one of the datasets."""
        relation = self.declaration.relation
        return relation if isinstance(relation, ReplaceOne) else None

    def users(self, number: int, rng: np.random.Generator) -> list[Trajectories]:
        """Random users of the world."""
        drawn = random_users(number, {name: Fraction(size) for name, size in self.world.sizes.items()}, rng)
        return [drawn.user(index) for index in range(number)]

    def ends(self) -> list[UserPair]:
        """Pairs who stay in the first and in the last state, with one action, and rewards of 1 or of 1 and 0.

        The first pair changes Gram matrices and feature sums most in the worlds of linear agents.
        """
        last, pairs = self.world.mdp.states - 1, []
        for reward, action in itertools.product((1.0, 0.0), range(min(self.world.mdp.actions, _ACTIONS))):
            pairs.append(self._neighbours(self._stays(0, action, 1.0), self._stays(last, action, reward)))
        return pairs

    def random_pair(self, rng: np.random.Generator) -> UserPair:
        """Two random neighbours."""
        one, other = self.users(2, rng)
        return self._neighbours(one, other, absent_first=bool(rng.integers(2)))

    def _neighbours(self, one: Trajectories, other: Trajectories, *, absent_first: bool = False) -> UserPair:
        if self.relation is None:
            return (None, one) if absent_first else (one, None)
        if self.relation.initial == "any":
            return one, other
        states, actions = other.states.copy(), other.actions.copy()
        states[:, 0], actions[:, 0] = one.states[:, 0], one.actions[:, 0]
        return one, replace(other, states=states, actions=actions)

    def _stays(self, state: int, action: int, reward: float) -> Trajectories:
        mdp = self.world.mdp
        return Trajectories(
            states=np.full((1, mdp.horizon + 1), state, dtype=np.int32),
            actions=np.full((1, mdp.horizon), action, dtype=np.int32),
            rewards=np.full((1, mdp.horizon), reward),
            num_states=mdp.states,
            num_actions=mdp.actions,
        )


def place_agent(algorithm: Algorithm, setting: Setting) -> Placed:
    """Place an agent in the world of its algorithm's audit instance, at the setting's sizes.

    Raises:
        ParameterError: The algorithm has no agent that learns from a dataset, or no world.
    """
    if algorithm.offline is None or algorithm.instance.world is None:
        raise ParameterError(f"{algorithm.name} has no agent that regresses on features of a dataset", name="offline")
    counts = {p.name for p in setting.declared.parameters if p.kind == "count"}
    world = algorithm.instance.world({name: int(value) for name, value in setting.values.items() if name in counts})
    values = {name: Fraction(world.sizes.get(name, value)) for name, value in setting.values.items()}
    asked = replace(setting, values=values, features=world.feature_map)
    closely = replace(asked, options=follow_closely(algorithm, setting.options))
    agents = (OfflinePasses(agent=algorithm.offline, setting=one) for one in (closely, asked))
    return Placed(world=world, closely=next(agents), asked=next(agents))


def lockstep(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Test whether one user changes a release of the running agent by more than its charge, or changes its policy.

    `trials` is the number of pairs, two runs of the agent each. Every step is compared with its share of the charge.

    Args:
        request: The request.
        algorithm: The algorithm; its agent is run.

    Raises:
        ParameterError: A number of the request is out of range, or the algorithm has no agent or no world.
    """
    check(request)
    began = time.perf_counter()
    placed = place_agent(algorithm, request.setting.at(tractable(request.declaration, request.values)))
    number = audience(placed.declaration, placed.setting.values) - 1
    base = placed.users(number, np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(2,))))
    return audit_pairs(
        request,
        RegressingPairs(placed=placed, base=base),
        began=began,
        values=placed.setting.values,
        agent_ran=True,
        method="lockstep replay of the running agent: compares the values handed to the channel on D and, behind D's "
        "billboard, on D′, step by step with the charged sensitivity, and checks that both learn the same "
        "policy, bit for bit; exact, without error probability",
        instance=_describe(placed),
    )


def noise(request: AuditRequest, algorithm: Algorithm) -> AuditResult:
    """Test whether the declared noise is drawn for the running agent; `trials` is the number of its runs.

    Args:
        request: The request.
        algorithm: The algorithm; its agent is run.

    Raises:
        ParameterError: As for `lockstep`.
        AuditError: An output is not finite.
        ChannelError: The agent does not release a declared slice.
    """
    check(request)
    began = time.perf_counter()
    placed = place_agent(algorithm, request.setting.at(tractable(request.declaration, request.values)))
    rng = np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(3,)))
    users = placed.users(audience(placed.declaration, placed.setting.values), rng)
    return audit_draws(
        request,
        RegressingDraws(placed=placed, users=users, seed=request.seed),
        began=began,
        values=placed.setting.values,
        who="what the running agent's channel drew",
        agent_ran=True,
        instance=_describe(placed),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressingPairs:
    """Pairs of neighbours with a running agent; importable, so that blocks can run in any process.

    Attributes:
        placed: The agent.
        base: The other users.
    """

    placed: Placed
    base: Sequence[Trajectories]

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Replayed:
        """Replay a number of pairs."""
        return add_until_departure(self._one(rng, number) for number in range(first, first + runs))

    def _one(self, rng: np.random.Generator, number: int) -> Replayed:
        pair, position, agent = self._choose(rng, number)
        passes, placed = agent.fresh(), self.placed
        seed = int(rng.integers(2**62))

        among = partial(replay, placed.declaration, placed.setting.values, seed=seed, execute=passes)

        def run(users: UserPair) -> tuple[Distance, ...]:
            return charge_one_group(placed.declaration, among(self.base, users, position=position, stepwise=True))

        found = replay_pair(pair, run, passes, position=position)
        first = number < 4 * len(self.placed.ends()) and position == 0  # each pair of ends with either options
        return search_far(found, pair, self.base, among, passes) if first else found

    def _choose(self, rng: np.random.Generator, number: int) -> tuple[UserPair, int, OfflinePasses]:
        """Choose pair, position and agent: first the ends at either of two positions with either options."""
        agents = (self.placed.closely, self.placed.asked)
        fixed = list(itertools.product(self.placed.ends(), (0, 1), agents))
        if number < len(fixed):
            return fixed[number]
        pair, _, agent = fixed[int(rng.integers(len(fixed)))]
        position = int(rng.integers(len(self.base) + 1))
        return pair if number % 3 == 0 else self.placed.random_pair(rng), position, agent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegressingDraws:
    """Runs of an agent with recorded noise; importable, so that blocks can run in any process.

    Attributes:
        placed: The agent.
        users: Users in their order.
        seed: Seed of the audit, for messages.
    """

    placed: Placed
    users: Sequence[Trajectories]
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Sums:
        """Sums of the noise drawn by a number of runs."""
        return self.placed.asked.record(self.users, runs=range(first, first + runs), rng=rng, seed=self.seed)


def charge_one_group(declaration: Declaration, distances: Sequence[Distance]) -> tuple[Distance, ...]:
    """Distances with a charge of 0 outside the user's group, which is the one with most of the changes.

    A user is charged for the releases of one group of each partition; if a user changes releases of several groups, the
    claim's parallel composition does not hold.
    """
    groups = [{release.name for release in declaration.seen_by(group)} for group in declaration.groups]
    moved = {distance.release for distance in distances if distance.measured > 0}
    own = max(groups, key=lambda names: len(names & moved))
    return tuple(
        distance
        if distance.release in own
        else replace(distance, charged=0.0, exceeds=distance.exceeds or distance.measured > 0)
        for distance in distances
    )


def _describe(placed: Placed) -> str:
    return (
        f"{placed.world.description}; half of the runs with the options of the audit instance, under which policies "
        "follow the noisy tables closely, half with the requested ones, where values are clipped and actions tie"
    )
