"""Canaries: neighbouring users that are hard to hide, and the exact loss between them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.gdp import gdp_epsilon
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import Declaration
from privcheck.declare.procedures import KnownPair, Procedure
from privcheck.declare.relations import Pair
from privcheck.errors import ParameterError
from privcheck.pricing import Priced, once
from privcheck.verification.candidates import UserPair, candidate_pairs, explain_no_pair
from privcheck.verification.outcome_loss import pair_epsilon
from privcheck.verification.witness import describe as witnessed
from privcheck_audits.engine.scores import MovedGroup, ProcedureRuns, Told, find_moved_groups

_SIZES = ("H", "S", "A")
_VISIBLE = 1e-3  # δ of what some thousand runs can show
_SHOWN = 3  # steps of a trajectory that words list


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Canary:
    """A pair of neighbours with the differences between them.

    Attributes:
        pair: The user's data in D and in D′; None if the user is absent.
        groups: The coordinates that differ, or the procedure to run.
        mu: √Σ(Δ/σ)² over the Gaussian coordinates.
        pure: The largest loss over the other coordinates: Σ|Δ|/b of Laplace noise; for a procedure, its ε at a δ of one
            in a thousand.
        words: The pair in words.
        group: The user's group, if the users are partitioned; else empty.
    """

    pair: UserPair
    groups: tuple[Told, ...]
    mu: float
    pure: float
    words: str
    group: str = ""

    @property
    def gaussian(self) -> bool:
        """Whether all coordinates that differ have Gaussian noise."""
        return all(isinstance(group, MovedGroup) and group.noise.gaussian for group in self.groups)


def sizes(values: Mapping[str, Fraction]) -> tuple[int, int, int]:
    """H, S and A of a tabular declaration.

    Raises:
        ParameterError: One of them is not among its parameters.
    """
    missing = [name for name in _SIZES if name not in values]
    if missing:
        raise ParameterError(f"canaries of tabular declarations need H, S and A; {missing[0]} is not a parameter")
    H, S, A = (int(values[name]) for name in _SIZES)
    return H, S, A


def canary(declaration: Declaration, values: Mapping[str, Fraction], pair: UserPair, group: str = "") -> Canary:
    """Canary of a pair, with the exact loss of its releases.

    Raises:
        ParameterError: The loss of a user-defined noise law is unknown.
    """
    groups = find_moved_groups(declaration, values, pair, group)
    apart = [group.noise.separation(group.change) for group in groups]
    tabular = all(user is None or isinstance(user, Trajectories) for user in pair)
    return Canary(
        pair=pair,
        groups=groups,
        mu=math.sqrt(sum(squared for squared, _ in apart)),
        pure=sum(largest for _, largest in apart),
        words=describe(pair) if tabular else witnessed(pair),
        group=group,
    )


@once
def worst_canary(priced: Priced) -> Canary:
    """Pair with the largest exact loss among the witnesses that verification tries.

    The pair is computed before any run. Procedures name their own pairs; among those the most visible one counts: the
    one with the largest ε at a δ of one in a thousand.
    """
    declaration, values = priced.declaration, priced.values
    known = [
        (_visible(pair), pair, one)
        for one in declaration.joined
        for pair in one.pairs(declaration.relation, values)
        if pair.sampler is not None
    ]
    if known:
        epsilon, pair, procedure = max(known, key=lambda one: one[0])
        of_procedure = _run_procedure(procedure, pair, epsilon)
        if not declaration.noisy:
            return of_procedure
        noisy = worst_canary(priced.of(replace(declaration, releases=declaration.noisy)))
        return max(noisy, of_procedure, key=lambda one: gdp_epsilon(one.mu, _VISIBLE) + one.pure)
    canaries = [
        canary(declaration, values, pair, group)
        for group in declaration.groups
        for pair in candidate_pairs(priced, group)
    ]
    if not canaries:
        raise ParameterError(f"{declaration.name}: {explain_no_pair(declaration, values)}", name="candidates")
    return max(canaries, key=lambda c: (c.mu**2 / 2 + c.pure, c.mu))


def _visible(pair: KnownPair) -> float:
    """Value of ε of a pair at a δ that a test can resolve."""
    return 0.0 if pair.outcomes is None else pair_epsilon(pair.outcomes, pair.rounds, _VISIBLE)


def _run_procedure(procedure: Procedure, pair: KnownPair, epsilon: float) -> Canary:
    assert pair.sampler is not None
    runs = ProcedureRuns(releases=(procedure.name,), sampler=pair.sampler)
    return Canary(
        pair=pair.data, groups=(runs,), mu=0.0, pure=epsilon, words=f"{procedure.facts.output}: {pair.words}",
        group=procedure.users,
    )  # fmt: skip


def random_users(
    users: int, values: Mapping[str, Fraction], rng: np.random.Generator, *, first: tuple[int, int] | None = None
) -> Trajectories:
    """Random users with uniform states and actions, and with half of the rewards equal to 0 or 1.

    Extreme values matter: uniform rewards alone miss small errors in a sensitivity.

    Args:
        users: Number of users.
        values: The declaration's parameters.
        rng: Generator of the users.
        first: The state and action of step 1, if the relation fixes them.
    """
    H, S, A = sizes(values)
    states = rng.integers(0, S, size=(users, H + 1), dtype=np.int32)
    actions = rng.integers(0, A, size=(users, H), dtype=np.int32)
    rewards = np.where(rng.random((users, H)) < 0.5, rng.integers(0, 2, size=(users, H)), rng.random((users, H)))
    if first is not None:
        states[:, 0], actions[:, 0] = first
    return Trajectories(states=states, actions=actions, rewards=rewards, num_states=S, num_actions=A)


def describe(pair: Pair) -> str:
    """Pair in words."""
    one, other = (_user(user) for user in pair)
    return f"in D the user {one}; in D′ the user {other}"


def _user(user: Trajectories | None) -> str:
    if user is None:
        return "is absent"
    if user.users > 1:
        rows = [_user(user.user(i)) for i in range(min(user.users, _SHOWN))]
        alike = "each" if len(set(rows)) == 1 else "of which the first"
        return f"has {user.users} trajectories, {alike} {rows[0]}"
    parts = (
        _sequence("state", user.states[0]),
        _sequence("action", user.actions[0]),
        _sequence("reward", user.rewards[0]),
    )
    return "has " + ", ".join(parts)


def _sequence(name: str, values: NDArray[np.int32] | NDArray[np.float64]) -> str:
    if (values == values[0]).all():
        return f"{name} {values[0]:g} throughout"
    shown = ", ".join(f"{v:g}" for v in values[:_SHOWN])
    return f"{name}s {shown}{', …' if values.size > _SHOWN else ''}"
