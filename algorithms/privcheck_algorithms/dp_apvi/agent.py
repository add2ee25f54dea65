"""The agent of Qiao & Wang's (2022) Algorithm 1: pessimistic value iteration from noisy counts, one step h at a time.

`plan` reads a billboard and never data; `AGENT` is registered, run (`privcheck.runtime.offline`) and audited. The
README
beside this file maps theorems to lines and lists the deviations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.data.finite_models import one_hot, reward_table
from privcheck.declare.declaration import Declaration, Parameter
from privcheck.errors import ParameterError
from privcheck.runtime import Billboard
from privcheck.runtime.offline import Learnt, OfflineAgent
from privcheck.runtime.results import Remark, RunRequest
from privcheck.runtime.setting import Setting
from privcheck_algorithms.baselines.apvi import OPTIONS as TWIN_OPTIONS
from privcheck_algorithms.baselines.apvi import apvi, unknown_penalty
from privcheck_algorithms.dp_apvi.kernels import Constants, passes, step

Array = NDArray[np.float64]
OPTIONS = (
    *TWIN_OPTIONS,
    Parameter(name="C2", default=16, kind="real", meaning="factor of the penalty for noise"),
)
_MOSTLY = 0.5  # below this share of visits above the noise, a policy was learned from noise more than from data
_PER_CELL = 1.5  # users a cell and step of an audit, in units of E_ρ
NO_REWARDS = np.broadcast_to(0.0, (0, 0))  # in the place of reward sums where the reward function is public


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicInputs:
    """Public inputs of planning.

    Attributes:
        H: Number of steps of an episode.
        S: Number of states.
        A: Number of actions.
        constants: H, E_ρ, C1, C2, C, bonus_scale, ι, and whether noisy reward sums are on the billboard.
        reward: (S, A, S) r(s, a, s′), a read-only view; 0 if it is not public.
    """

    H: int
    S: int
    A: int
    constants: Constants
    reward: Array


def noise_bound(declaration: Declaration, values: Mapping[str, Fraction], *, failure: float) -> float:
    """Bound E_ρ: with probability at least 1 − failure no released number is off by more than E_ρ/2.

    A union bound over all numbers released, H·S·A·(S + 1), or (S + 2) with rewards; at most 2HS²A, which is the paper's
    count, except with a single state and rewards. Gaussian: Lemma D.2, E = 2√2·σ·√ln(4HS²A/δ), since
    P(|N(0, σ²)| > t) ≤ 2·exp(−t²/2σ²). Laplace: P(|Lap(b)| > t) = exp(−t/b), so E = 2b·ln(2HS²A/δ), the E_ε that
    section 3 states as Õ(H/ε).

    Args:
        declaration: The declaration, with the noise of its releases.
        values: Values of its parameters.
        failure: δ of the utility bound.

    Raises:
        ParameterError: A release has noise without a known bound.
    """
    H, S, A = (int(values[name]) for name in ("H", "S", "A"))
    numbers = H * S * A * max(2 * S, S + len(declaration.noisy) - 1)
    return max(2 * release.mechanism.at(values).largest(numbers, failure) for release in declaration.noisy)


def prepare(
    declaration: Declaration,
    values: Mapping[str, Fraction],
    options: Mapping[str, Fraction],
    *,
    reward: Array | None,
    noisy: bool = True,
) -> PublicInputs:
    """Public inputs of planning, from the declaration.

    Args:
        declaration: The declaration; the bound E_ρ follows from its noise.
        values: Values of its parameters.
        options: The agent's options.
        reward: r(s, a, s′), public, broadcastable to (S, A, S); not read if reward sums are released.
        noisy: Whether the declared noise is drawn; without it E_ρ = 0.

    Raises:
        ParameterError: C ≤ 1, or the reward function is neither public nor released.
    """
    H, S, A = (int(values[name]) for name in ("H", "S", "A"))
    failure, C = float(options["failure"]), unknown_penalty(options)
    released = any(release.name == "rewards" for release in declaration.noisy)
    if reward is None and not released:
        raise ParameterError(
            "the reward function of these data is not public, and rewards=known needs one: release noisy reward sums "
            "with --set rewards=released, or give the public reward function with --rewards FILE",
            name="rewards",
        )
    return PublicInputs(
        H=H,
        S=S,
        A=A,
        constants=Constants(
            H=H,
            E=noise_bound(declaration, values, failure=failure) if noisy else 0.0,
            C1=float(options["C1"]),
            C2=float(options["C2"]),
            C=C,
            scale=float(options["bonus_scale"]),
            iota=math.log(H * S * A / failure),
            released=released,
        ),
        reward=reward_table(np.zeros(1) if released or reward is None else reward, S, A),
    )


def plan(
    billboard: Billboard,
    publish: Callable[[int], None],
    given: PublicInputs,
    *,
    keep: bool = False,
    done: Callable[[], None] = lambda: None,
) -> Learnt:
    """Policy and values from the billboard alone.

    Args:
        billboard: Billboard with the noisy counts.
        publish: Requests the noisy counts of one step, from 0; its return value is ignored.
        given: Public inputs.
        keep: Whether to leave each step's tables on the billboard; otherwise they are dropped once the step is planned,
            and a pass needs the memory of one step.
        done: Called after each step.
    """
    H, S, A = given.H, given.S, given.A
    actions, values = np.empty((H, S), dtype=np.int64), np.empty((H, S))
    after, law = np.zeros(S), np.empty(S)
    counts, total = np.zeros(4), 0.0
    for h in reversed(range(H)):  # line 3 of Algorithm 1
        publish(h)
        visits = billboard.read("visits", part=h)
        counts += step(
            visits,
            billboard.read("transitions", part=h),
            billboard.read("rewards", part=h) if given.constants.released else NO_REWARDS,
            given.reward,
            after,
            H - h,
            given.constants,
            actions[h],
            values[h],
        )
        total += float(visits.sum())
        after = values[h]
        law = np.maximum(visits.sum(axis=1), 0.0)  # of the state at the step planned last, which is the first
        if not keep:
            billboard.retire(h)
        done()
    law = law / law.sum() if law.sum() > 0 else np.full(S, 1.0 / S)
    known, vacuous, worthless, seen = (float(count) for count in counts)
    share_above_noise = min(max(seen / total, 0.0), 1.0) if total > 0 else 0.0
    return Learnt(
        policy=one_hot(actions, A),
        values=values,
        claimed=float(law @ after),
        diagnostics={
            "noise_bound": given.constants.E,
            "cells": H * S * A,
            "known_cells": known,
            "share_above_noise": share_above_noise,
            "share_of_known_cells_with_vacuous_penalty": vacuous / known if known else 1.0,
            "share_of_states_worth_nothing": worthless / (H * S),
        },
        remarks=remark(share_above_noise),
    )


def plan_batch(
    visits: Array, transitions: Array, given: PublicInputs, *, rewards: Array | None = None
) -> tuple[NDArray[np.int64], Array]:
    """Greedy actions and Ṽ, each (B, H, S), of B whole passes: the agent B times, in one call without the GIL.

    Args:
        visits: (B, H, S, A) noisy visit counts.
        transitions: (B, H, S, A, S) noisy transition counts.
        given: Public inputs.
        rewards: (B, H, S, A) noisy reward sums, if they are released.

    Raises:
        ParameterError: A shape is wrong, a number is not finite, or reward sums are missing or not expected.
    """
    B, shape = visits.shape[0], (given.H, given.S, given.A)
    if (rewards is not None) != given.constants.released:
        raise ParameterError(f"reward sums: expected {'some' if given.constants.released else 'none'}", name="rewards")
    sums = np.zeros((B, given.H, 0, 0)) if rewards is None else rewards
    expected = ((B, *shape), (B, *shape, given.S), (B, given.H, *(shape[1:] if given.constants.released else (0, 0))))
    tables = (visits, transitions, sums)
    if tuple(table.shape for table in tables) != expected or not all(np.isfinite(table.sum()) for table in tables):
        got = tuple(table.shape for table in tables)
        raise ParameterError(f"expected finite tables of shapes {expected}, got {got}", name="visits")
    # read-only like what the billboard shows, so that the kernels are compiled for one kind of array
    visits, transitions, sums = (
        np.broadcast_to(np.ascontiguousarray(table, dtype=np.float64), table.shape) for table in tables
    )
    actions, values = passes(visits, transitions, sums, given.reward, given.constants)
    return actions, values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApviPass:
    """The registered agent half; importable, so that audits can run it in any process.

    Attributes:
        given: Public inputs of planning.
    """

    given: PublicInputs

    def __call__(
        self, billboard: Billboard, publish: Callable[[int], None], *, done: Callable[[], None] = lambda: None
    ) -> Learnt:
        """Policy and values from the billboard alone; see `plan`."""
        return plan(billboard, publish, self.given, done=done)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ApviBatch:
    """Many passes in one call; see `plan_batch`.

    Attributes:
        given: Public inputs of planning.
    """

    given: PublicInputs

    def __call__(self, noisy: Mapping[str, Array]) -> tuple[NDArray[np.int64], Array]:
        """Greedy actions and Ṽ, each (B, H, S), from noisy statistics by release."""
        return plan_batch(noisy["visits"], noisy["transitions"], self.given, rewards=noisy.get("rewards"))


def make_pass(setting: Setting, *, reward: Array | None) -> ApviPass:
    """Make the agent half.

    Raises:
        ParameterError: As for `prepare`.
    """
    return ApviPass(given=prepare(setting.declared, setting.values, setting.options, reward=reward))


def make_batch(setting: Setting, reward: Array) -> ApviBatch:
    """Make an agent half for many passes in one call.

    Raises:
        ParameterError: As for `prepare`.
    """
    return ApviBatch(given=prepare(setting.declared, setting.values, setting.options, reward=reward))


def remark(share: float) -> tuple[Remark, ...]:
    """Remark on the share of visits above the noise."""
    if share >= _MOSTLY:
        return ()
    down = math.floor(1000 * share) / 10
    text = (
        f"Only {down:g} % of the visits lie in cells whose noisy count exceeds the noise bound. "
        "The policy was learned more from noise than from data; its value says little about larger datasets."
    )
    return (Remark(title="Learned mostly from noise", text=text),)


def baseline(request: RunRequest) -> float:
    """True return of APVI's policy on the same data; if rewards are released, APVI estimates them too."""
    assert request.data.evaluate is not None
    released = any(release.name == "rewards" for release in request.setting.declared.noisy)
    learnt = apvi(request.data.trajectories, reward=None if released else request.data.reward, options=request.options)
    return request.data.evaluate(learnt.policy)


def users_of_audits(setting: Setting) -> int:
    """Number of users for which a typical cell and step of an audit's data is a little above E_ρ.

    Below it the agent ignores a cell.
    """
    S, A = (int(setting.values[name]) for name in ("S", "A"))
    failure = float(setting.options["failure"])
    bound = noise_bound(setting.declared, setting.values, failure=failure)
    return max(1, math.ceil(_PER_CELL * S * A * bound))


AGENT = OfflineAgent(make=make_pass, batch=make_batch, baseline=baseline, users=users_of_audits)
