"""The audit plans of the private tabular online agents (paper 002 and its baselines): releases, and whole agents.

Releases are those of any declaration; lockstep and noise look inside the running agent (`online_inside`). The policy
view runs the registered agent in every trial on an instance of its own, where a violation would be visible: RiverSwim
with two states and two steps and eight users, of whom the first is the canary. At these sizes the paper's bonus hides
everything the agent learned, so the instance takes a small one and no precision levels: no claim rests on either. The
noise is the declared one, at the ε that is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.registry import AuditPlan
from privcheck.relations import ReplaceOne
from privcheck.results import AuditRequest, AuditResult, OnlineRequest, World
from privcheck_algorithms.calibrated_ucb_vi.agent import player as calibrated_player
from privcheck_algorithms.calibrated_ucb_vi.statistic import FirstVisits
from privcheck_algorithms.environments.riverswim import riverswim
from privcheck_algorithms.online import rewards
from privcheck_algorithms.online.reward_agent import player as reward_player
from privcheck_algorithms.private_ucb_po.agent import player as po_player
from privcheck_algorithms.private_ucb_vi.agent import player as vi_player
from privcheck_audits.plan import any_declaration as anything
from privcheck_audits.plan.meanings import policy_meaning
from privcheck_audits.policy.online import MakePlayer, OnlineRuns
from privcheck_audits.policy.view import check_policy, judged
from privcheck_audits.white_box import online_views as online_inside
from privcheck_audits.white_box.responses import answers

SIZES: Final = {"H": Fraction(2), "S": Fraction(2), "A": Fraction(2), "K": Fraction(8)}
OPTIONS: Final = {  # under which a policy follows the noisy counts closely; no claim depends on them
    "bonus_scale": Fraction(1, 100),
    "precision_scale": Fraction(0),
    "first_batch": Fraction(1),
    "growth": Fraction(1),
    "turns": Fraction(1),
    "support": Fraction(0),
    "known": Fraction(0),
}
_TOLD: Final = "what the later users were told to do"
AGENTS: Final[Mapping[str, MakePlayer]] = {
    "private-ucb-vi-central": vi_player,
    "private-ucb-vi-local": vi_player,
    "private-ucb-vi-calibrated": vi_player,
    "private-ucb-po-central": po_player,
    "private-ucb-po-local": po_player,
    "pucb": partial(reward_player, kind=rewards.PUCB, label="pucb"),
    "ldp-obi": partial(reward_player, kind=rewards.OBI, label="ldp-obi", pooled=True),
    "dp-ucbvi-central": partial(reward_player, kind=rewards.BERNSTEIN, label="dp-ucbvi"),
    "dp-ucbvi-local": partial(reward_player, kind=rewards.BERNSTEIN, label="dp-ucbvi"),
    "calibrated-ucb-vi": calibrated_player,
}


def audit(request: AuditRequest) -> AuditResult:
    """Returns the audit of an online agent from the requested view.

    Raises:
        ParameterError: A number of the request is out of its range, or the agent is none of those registered here.
        AuditError: A trial's score is not finite.
    """
    if request.view == "policy":
        return policy(request)
    if request.view == "releases":
        return anything.audit(request)
    look = online_inside.lockstep if request.view == "lockstep" else online_inside.noise
    return look(request, _agent(request.declaration), _readings(request.declaration))


def policy(request: AuditRequest, runs: OnlineRuns | None = None) -> AuditResult:
    """Returns the lower bound on ε from the policies that later users are shown; valid against any mechanism, and weak.

    Under local DP the same policies are computed from what users sent, so the bound is on that claim too.

    Args:
        request: What is asked.
        runs: The agent, whose blocks are not kept; None for the registered one on the plan's instance.

    Raises:
        ParameterError: As for `audit`.
        AuditError: As for `audit`.
    """
    values = _small(request.values)  # not the agent's own: a mutant draws less noise than is declared
    check_policy(request, values)
    whole = runs or instance(request.declaration, request.values, request.options)
    whole(np.random.default_rng(0), 2)  # Numba compiles before the clock starts
    return judged(
        request,
        whole,
        values=values,
        seen=f"the policies of users 2 to {values['K']}",
        witness=_words(request.declaration),
        instance="RiverSwim, " + ", ".join(f"{name} = {values[name]}" for name in SIZES),
        keep=runs is None,
        meaning=lambda refuted: policy_meaning(refuted, _TOLD, whose="the first user's"),
        pair=whole.first,
    )


def instance(declaration: Declaration, values: Mapping[str, Fraction], options: Mapping[str, Fraction]) -> OnlineRuns:
    """Returns the registered agent on the small instance.

    Args:
        declaration: What is released.
        values: Its parameters, of which the sizes are replaced.
        options: The agent's options, of which those that keep it from learning here are replaced.

    Raises:
        ParameterError: No agent is known under the declaration's name.
    """
    make = _agent(declaration)
    H, S, A, K = (int(size) for size in SIZES.values())
    request = OnlineRequest(
        declaration=declaration,
        values=_small(values),
        options={name: OPTIONS.get(name, value) for name, value in options.items()},
        readings=_readings(declaration),
        world=World(name="riverswim", description="of the later users", mdp=riverswim(S, H=H)),
        episodes=K,
    )
    start = S - 1 if _any_start(declaration) else 0
    stays = answers(H, S, A, to=0, start=0, rewards=(0.0, 0.0))
    goes = answers(H, S, A, to=S - 1, start=start, rewards=(1.0, 1.0))
    return OnlineRuns(make=make, request=request, first=(stays, goes))


def _agent(declaration: Declaration) -> MakePlayer:
    if declaration.name not in AGENTS:
        message = f"expected one of {', '.join(AGENTS)}, got {declaration.name!r}: no other agent is known to this plan"
        raise ParameterError(message, name="name", given=declaration.name)
    return AGENTS[declaration.name]


def _small(values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    return {**values, **{name: size for name, size in SIZES.items() if name in values}}


def _any_start(declaration: Declaration) -> bool:
    return not (isinstance(declaration.relation, ReplaceOne) and declaration.relation.initial == "fixed")


def _readings(declaration: Declaration) -> Mapping[str, str]:
    """Returns those readings that the agents ask for, from what is declared."""
    first = declaration.releases[0].statistic
    released = {"rewards": "released" if any(r.name == "rewards" for r in declaration.releases) else "known"}
    if isinstance(first, FirstVisits):
        return {"counts": "pooled", "cap": str(first.cap), **released}
    return {"counts": "steps", **released}


def _words(declaration: Declaration) -> str:
    start = "is in the last state throughout" if _any_start(declaration) else "goes to the last state and stays there"
    return f"in D the first user stays in state 0 with reward 0 throughout; in D′ the first user {start}, with reward 1"


def _plan(name: str) -> AuditPlan:
    return AuditPlan(
        name=name,
        views=("releases", "lockstep", "noise", "policy"),
        trials={"releases": 1_000_000, "lockstep": 12, "noise": 8, "policy": 2_000},
        audit=audit,
    )


PRIVATE_UCB_VI_CENTRAL = _plan("private-ucb-vi-central")
PRIVATE_UCB_VI_LOCAL = _plan("private-ucb-vi-local")
PRIVATE_UCB_VI_CALIBRATED = _plan("private-ucb-vi-calibrated")
PRIVATE_UCB_PO_CENTRAL = _plan("private-ucb-po-central")
PRIVATE_UCB_PO_LOCAL = _plan("private-ucb-po-local")
PUCB = _plan("pucb")
LDP_OBI = _plan("ldp-obi")
DP_UCBVI_CENTRAL = _plan("dp-ucbvi-central")
DP_UCBVI_LOCAL = _plan("dp-ucbvi-local")
CALIBRATED_UCB_VI = _plan("calibrated-ucb-vi")
