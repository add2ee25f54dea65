"""The audit plans of the private tabular online agents (paper 002 and its baselines): releases, and whole agents.

Releases are those of any declaration. The policy view runs the registered agent in every trial on an instance of its
own, where a violation would be visible: RiverSwim with two states and two steps and eight users, of whom the first is
the canary. At these sizes the paper's bonus hides everything the agent learned, so the instance takes a small one and
no precision levels: no claim rests on either. The noise is the declared one, at the ε that is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from algorithms.calibrated_ucb_vi.agent import player as calibrated_player
from algorithms.calibrated_ucb_vi.statistic import FirstVisits
from algorithms.environments.riverswim import online_riverswim
from algorithms.online import rewards
from algorithms.online.reward_agent import player as reward_player
from algorithms.private_ucb_po.agent import player as po_player
from algorithms.private_ucb_vi.agent import player as vi_player
from audits.bounds import guess_plan, ranked_bound
from audits.canaries import worst_canary
from audits.engine import Tally
from audits.online import MakePlayer, OnlineRuns
from audits.plans import anything
from audits.plans.common import Evidence, check, checkpoint, limits
from audits.policy import Outputs, policy_trials
from audits.reach import loss_law, reachable_guesses
from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.finite_mdp import FiniteMDP
from privcheck.registry import AuditPlan
from privcheck.relations import ReplaceOne
from privcheck.results import AuditRequest, AuditResult, OnlineRequest, World

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
AGENTS: Final[Mapping[str, MakePlayer]] = {
    "private-ucb-vi-central": vi_player,
    "private-ucb-vi-local": vi_player,
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
    return policy(request) if request.view == "policy" else anything.audit(request)


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
    check(request)
    began = time.perf_counter()
    whole = runs or instance(request.declaration, request.values, request.options)
    values = _small(request.values)  # not the agent's own: a mutant draws less noise than is declared
    bound, alpha, plan = limits(request, values), 1 - request.confidence, guess_plan()
    whole(np.random.default_rng(0), 2)  # Numba compiles before the clock starts
    clock = time.perf_counter()
    counted = policy_trials(
        whole,
        plan,
        trials=request.trials,
        seed=request.seed,
        workers=request.workers,
        executor=request.executor,
        checkpoint=checkpoint(request, Outputs, Tally) if runs is None else None,
        progress=request.progress,
    )
    spent, tested = time.perf_counter() - clock, counted.tested
    best = ranked_bound(
        tested.ranked_errors, tested.ranked_guesses, plan, runs=tested.runs, alpha=alpha, delta=request.delta
    )
    refuted = bound.refuted(best.epsilon)
    law = loss_law(worst_canary(request.declaration, values).groups)
    evidence: Evidence = {
        "errors": best.flip.errors,
        "guesses": best.flip.guesses,
        "revealed": best.flip.revealed,
        "error_rate_of_all_guesses": tested.errors / tested.runs,
        "learned_on": counted.learned,
        "tested_on": tested.runs,
        "attempts": len(plan.shares),
        "p_value_claimed": 1.0 if bound.claimed is None else best.flip.p_value(bound.claimed),
        "refuted": refuted,
        "instance": "RiverSwim, " + ", ".join(f"{name} = {values[name]}" for name in SIZES),
        "meaning": _meaning(refuted),
        "trials_per_second": 2 * request.trials / spent,
    }
    return AuditResult(
        view="policy",
        verdict="consistent" if refuted == "nothing" else "violation",
        trials=request.trials,
        confidence=request.confidence,
        delta=request.delta,
        epsilon_lower=best.epsilon,
        epsilon_upper=bound.upper,
        epsilon_claimed=bound.claimed,
        reachable=reachable_guesses(law, plan, tested.runs, alpha=alpha, delta=request.delta),  # by a test of releases
        method=f"whole agent: a score of the policies of users 2 to {values['K']} learned on {counted.learned} runs, "
        f"coin flip on the others at {len(plan.shares)} shares fixed in advance; valid against any mechanism",
        witness=_words(request.declaration),
        evidence=evidence,
        seconds=time.perf_counter() - began,
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
    if declaration.name not in AGENTS:
        message = f"expected one of {', '.join(AGENTS)}, got {declaration.name!r}: other agents have no policy view"
        raise ParameterError(message, name="name", given=declaration.name)
    H, S, K = (int(SIZES[name]) for name in ("H", "S", "K"))
    request = OnlineRequest(
        declaration=declaration,
        values=_small(values),
        options={name: OPTIONS.get(name, value) for name, value in options.items()},
        readings=_readings(declaration),
        world=World(name="riverswim", description="of the later users", mdp=online_riverswim(S, H=H)),
        episodes=K,
    )
    start = S - 1 if _any_start(declaration) else 0
    first = (_answers(H, S, to=0, start=0, reward=0.0), _answers(H, S, to=S - 1, start=start, reward=1.0))
    return OnlineRuns(make=AGENTS[declaration.name], request=request, first=first)


def _small(values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    return {**values, **{name: size for name, size in SIZES.items() if name in values}}


def _answers(H: int, S: int, *, to: int, start: int, reward: float) -> FiniteMDP:
    """Returns a user who, whatever is done, goes to one state and stays, with the same reward at every step."""
    A = int(SIZES["A"])
    transition = np.zeros((1, S, A, S))
    transition[..., to] = 1.0
    return FiniteMDP(horizon=H, transition=transition, reward=np.full((1, S, A, S), reward), initial=np.eye(S)[start])


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


def _meaning(refuted: str) -> str:
    if refuted == "nothing":
        return (
            "what the later users were told to do does not give the first user's data away beyond what is claimed, "
            "as far as this test sees; that is no proof of privacy, and the releases view sees more"
        )
    return f"what the later users were told to do gives the first user's data away: more than the {refuted} allows"


def _plan(name: str) -> AuditPlan:
    return AuditPlan(
        name=name,
        views=("releases", "policy"),
        trials={"releases": 1_000_000, "policy": 2_000},
        audit=audit,
    )


PRIVATE_UCB_VI_CENTRAL = _plan("private-ucb-vi-central")
PRIVATE_UCB_VI_LOCAL = _plan("private-ucb-vi-local")
PRIVATE_UCB_PO_CENTRAL = _plan("private-ucb-po-central")
PRIVATE_UCB_PO_LOCAL = _plan("private-ucb-po-local")
PUCB = _plan("pucb")
LDP_OBI = _plan("ldp-obi")
DP_UCBVI_CENTRAL = _plan("dp-ucbvi-central")
DP_UCBVI_LOCAL = _plan("dp-ucbvi-local")
CALIBRATED_UCB_VI = _plan("calibrated-ucb-vi")
