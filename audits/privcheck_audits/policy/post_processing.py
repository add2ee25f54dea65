"""The policy view of algorithms with a registered step from releases to policies (`privcheck.runtime.offline`).

Lockstep and noise audits are those of any declaration. The policy view draws the declared noise in every trial, at the
requested ε or ρ, on the instance of the algorithm, and post-processes the noisy statistics as the agent would. No
registered agent is run, and results say so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privcheck.errors import ParameterError
from privcheck.runtime.offline import DrawPolicies, PolicyRuns
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck.runtime.setting import Setting
from privcheck_audits.engine.scores import draw_hidden_bits
from privcheck_audits.plan.requests import policy_meaning
from privcheck_audits.policy.view import Outputs, bound_policies, check_policy
from privcheck_audits.releases.canaries import describe
from privcheck_audits.releases.view import small


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HiddenRuns:
    """Runs on D or D′ by a hidden bit; importable, so that blocks can run in any process.

    Attributes:
        draw: Draws the policies of runs, given whether each is on D.
    """

    draw: DrawPolicies

    def __call__(self, rng: np.random.Generator, runs: int) -> Outputs:
        """Policies of fresh runs.

        Raises:
            ParameterError: The features do not have one row per run.
        """
        secret = draw_hidden_bits(rng, runs)
        features = self.draw(rng, secret)
        if features.ndim != 2 or features.shape[0] != runs:
            message = f"policies: expected features of {runs} runs, ({runs}, features), got shape {features.shape}"
            raise ParameterError(message, name="policies", given=features.shape)
        return Outputs(features=features, secret=secret)


def audit_policies(request: AuditRequest, algorithm: Algorithm, runs: PolicyRuns | None = None) -> AuditResult:
    """Lower bound on ε from policies alone; valid against any mechanism, and weak.

    Args:
        request: The request.
        algorithm: The algorithm; its post-processing is run.
        runs: Runs of another agent, without checkpoints; None for the registered one on its instance.

    Raises:
        ParameterError: A number of the request is out of range, or the algorithm has no post-processing.
        AuditError: A trial's score is not finite.
    """
    values = small(request.values, algorithm)
    check_policy(request, values)
    whole = runs or instance(request.setting, algorithm)
    sizes = ", ".join(f"{name} = {values[name]}" for name in algorithm.instance.sizes if name in values)

    def mean(refuted: str) -> str:
        said = policy_meaning(refuted, whole.told)
        return f"{said}. {whole.remark}" if whole.remark else said

    return bound_policies(
        request,
        HiddenRuns(draw=whole.draw),
        values=values,
        seen=whole.seen,
        witness="; ".join(words for words in (describe(whole.pair), whole.witness) if words),
        instance=", ".join(words for words in (whole.instance, sizes) if words),
        keep=runs is None,
        meaning=mean,
        pair=whole.pair,
        agent_ran=False,
    )


def instance(setting: Setting, algorithm: Algorithm) -> PolicyRuns:
    """The agent's post-processing on its instance, ready to run with the declared noise.

    Args:
        setting: Declaration, parameters, options and readings; sizes are the instance's.
        algorithm: The algorithm; its post-processing is run.

    Raises:
        ParameterError: The algorithm has no post-processing.
    """
    if algorithm.policies is None:
        message = f"{algorithm.name} has no agent and no step from releases to policies: it has no policy view"
        raise ParameterError(message, name=algorithm.name)
    return algorithm.policies(setting.at(small(setting.values, algorithm)))
