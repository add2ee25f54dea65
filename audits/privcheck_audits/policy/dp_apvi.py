"""The audit plan of DP-APVI (paper 000, Algorithm 1), with Gaussian and with Laplace noise.

Releases, lockstep and noise are those of any tabular declaration. The policy view runs the whole agent in every trial,
on an instance of its own: users enough that a typical cell lies a little above E_ρ, below which the agent ignores it,
and a public reward for staying in a state, so that the values move with the canary's own transitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.declaration import Declaration
from privcheck.registry import AuditPlan
from privcheck.results import AuditRequest, AuditResult
from privcheck.trajectories import Trajectories, concatenate
from privcheck_algorithms.dp_apvi.agent import Setting, plan_batch, setting
from privcheck_audits.plan.meanings import policy_meaning
from privcheck_audits.policy.runs import Tables, Whole, whole_runs
from privcheck_audits.policy.view import check_policy, judged
from privcheck_audits.releases.canaries import random_users, sizes, worst_canary
from privcheck_audits.releases.view import releases
from privcheck_audits.white_box.views import lockstep, noise

_PER_CELL: Final = 1.5  # users a cell and step, in units of E_ρ
_NUMBERS: Final = 5_000  # released numbers of a pass, above which the policy view takes a smaller instance
_SMALL: Final = {"H": 2, "S": 2, "A": 2}  # where a violation would be visible
_SMALL_LAPLACE: Final = {"H": 1, "S": 2, "A": 2}
_WARM: Final = 2  # passes that make Numba compile before the clock starts


def audit(request: AuditRequest) -> AuditResult:
    """Returns the audit of DP-APVI from the requested view.

    Raises:
        ParameterError: A number of the request is out of its range.
        AuditError: A trial's score is not finite.
    """
    return {"releases": releases, "lockstep": lockstep, "noise": noise, "policy": policy}[request.view](request)


def policy(request: AuditRequest) -> AuditResult:
    """Returns the lower bound on ε from policies and values alone; valid against any mechanism, and weak."""
    values = instance_values(request.declaration, request.values)
    check_policy(request, values)
    whole = instance(request.declaration, values, request.options)
    whole_runs(whole, np.random.default_rng(0), _WARM)
    canary = worst_canary(request.declaration, values)
    return judged(
        request,
        whole,
        values=values,
        seen="policy and values",
        witness=canary.words,
        instance=", ".join(f"{name} = {values[name]}" for name in ("H", "S", "A")),
        meaning=lambda refuted: policy_meaning(refuted, "the policy that was learned, with its values,"),
        pair=canary.pair,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Agent:
    """The agent as the policy view calls it: importable, so that it can run in any process."""

    given: Setting

    def __call__(self, noisy: Tables) -> tuple[np.ndarray, np.ndarray]:
        return plan_batch(noisy["visits"], noisy["transitions"], self.given, rewards=noisy.get("rewards"))


def instance_values(declaration: Declaration, values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """Returns the policy view's parameters: the given ones, or a small instance where a pass would be too large."""
    H, S, A = sizes(values)
    if H * S * A * (S + 1) <= _NUMBERS:
        return values
    gaussian = all(release.mechanism.law.gaussian for release in declaration.releases)
    small = _SMALL if gaussian else _SMALL_LAPLACE
    return {**values, **{name: min(values[name], Fraction(size)) for name, size in small.items()}}


def instance(declaration: Declaration, values: Mapping[str, Fraction], options: Mapping[str, Fraction]) -> Whole:
    """Returns the whole agent on the worst canary among random users.

    Args:
        declaration: What is released.
        values: Its parameters.
        options: The agent's options.
    """
    _, S, A = sizes(values)
    stay = np.broadcast_to(np.eye(S)[:, None, :], (S, A, S))
    given = setting(declaration, values, options, reward=stay)
    users = max(1, math.ceil(_PER_CELL * S * A * given.constants.E))
    base = random_users(users, values, np.random.default_rng(0))  # public: the same in every audit
    first, second = (_tables(declaration, base, user) for user in worst_canary(declaration, values).pair)

    return Whole(
        exact=(first, second),
        noise={release.name: release.mechanism.at(values) for release in declaration.releases},
        agent=_Agent(given=given),
        actions=A,
    )


def _tables(declaration: Declaration, base: Trajectories, user: Trajectories | None) -> Tables:
    data = base if user is None else concatenate([base, user])
    return {release.name: release.statistic.compute(data) for release in declaration.releases}


def _plan(name: str) -> AuditPlan:
    return AuditPlan(
        name=name,
        views=("releases", "lockstep", "noise", "policy"),
        trials={"releases": 1_000_000, "lockstep": 100, "noise": 30, "policy": 100_000},
        audit=audit,
    )


DP_APVI = _plan("dp-apvi")
DP_APVI_LAPLACE = _plan("dp-apvi-laplace")
