"""The audit plans of the linear systems (papers 000, 001, 004 and the baselines of 001).

Releases, lockstep and noise are those of any declaration. The policy view draws the declared noise in every trial, on
an instance of its own (`linear.instance`), and does with the noisy statistics what the paper does; its lines are
cited there. Episodes have one step: the values after it are 0, so that noise is smallest beside what a user moves, and
no policy of more steps shows more. The constants of confidence sets, for which the papers give orders only, are small,
so that a policy follows the noisy statistics closely; no claim depends on them. Noise and claim are the declared ones,
at the ε or ρ that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Final

from privcheck.accounting import account
from privcheck.accounting.account import shared_draws
from privcheck.declaration import Declaration
from privcheck.errors import ParameterError
from privcheck.results import AuditRequest, AuditResult
from privcheck_audits.linear.instance import LinearInstance, longest, norm_bound, streams, world
from privcheck_audits.linear.mixture import LinOpt
from privcheck_audits.linear.offline import Vapvi
from privcheck_audits.linear.optimistic import LsviUcb, LsviUcbPlusPlus
from privcheck_audits.linear.runs import LinearRuns
from privcheck_audits.plan.common import size_note
from privcheck_audits.plan.meanings import policy_meaning
from privcheck_audits.plan.methods import on_curve
from privcheck_audits.policy.view import bound_policies, check_policy
from privcheck_audits.releases.audit import audit_releases
from privcheck_audits.releases.canaries import describe
from privcheck_audits.releases.reach import reachable_curve

EPISODES: Final = 4  # online: of a user each, and as many batches
SIZES: Final[Mapping[str, Fraction]] = {
    name: Fraction(size)
    for name, size in {"H": 1, "d": 2, "d1": 2, "d2": 2, "K": EPISODES, "B": EPISODES, "N": EPISODES - 1}.items()
}
_LATER: Final = 3  # of four users the one who differs, where outputs share their noise: one policy before, one after
_USERS: Final = 20  # offline, for either action, in units of the noise on a sum: it then moves weights by 5 % each
_REWARDED: Final = 0.3  # of them, so that Q is neither clipped at 0 nor at 1
_PESSIMISM: Final = 0.1  # C√d‖φ‖ of the longest feature without noise
_OPTIMISM: Final = 0.4  # β‖φ‖ of the longest feature without data: what a reward adds still outweighs it
_ALONE: Final = 1.4  # the same of DP-LSVI-UCB++, whose bonus is all that the last step's data move


def releases(request: AuditRequest) -> AuditResult:
    """Returns the audit of a linear system's releases, at its instance's sizes where those asked for hide everything.

    Raises:
        ParameterError: A number of the request is out of its range.
        AuditError: A trial's score is not finite.
    """
    asked = visible(request)
    result = audit_releases(asked)
    return replace(result, evidence={**result.evidence, **size_note(request.values, asked.values)})


def policy(request: AuditRequest, runs: LinearRuns | None = None) -> AuditResult:
    """Returns the lower bound on ε from policies alone; valid against any mechanism, and weak.

    Args:
        request: What is asked.
        runs: The agent, whose blocks are not kept; None for the declared one on the plan's instance.

    Raises:
        ParameterError: As for `audit`.
        AuditError: As for `audit`.
    """
    values = small(request.values)
    check_policy(request, values)
    whole = runs or instance(request.declaration, values)
    return bound_policies(
        request,
        whole,
        values=values,
        seen=_seen(request.declaration),
        witness=f"{describe(whole.world.pair)}; their features are orthogonal, and as long as any",
        instance=f"a ruler of features, {_sizes(values)}",
        keep=runs is None,
        meaning=partial(_meaning, request.declaration),
        pair=whole.world.pair,
        agent_ran=False,
    )


def visible(request: AuditRequest) -> AuditRequest:
    """Returns the request at the instance's sizes, where at those asked for the releases view could not see anything.

    DP-LSVI-UCB++ loses 6·10⁻⁶ of its claim at H = 20, and half of it at H = 1, which the same claim is about.
    """
    if request.view != "releases" or request.method not in {"auto", "curve"} or not on_curve(request):
        return request
    mu = account(request.declaration).at(request.values).mu
    if mu is None or shared_draws(request.declaration):
        return request
    reachable = reachable_curve(mu, 2 * request.trials, alpha=1 - request.confidence, delta=request.delta)
    return request if reachable > 0 else replace(request, setting=request.setting.at(small(request.values)))


def small(values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """Returns the policy view's parameters: the given ones, with the instance's sizes."""
    return {**values, **{name: size for name, size in SIZES.items() if name in values}}


def instance(declaration: Declaration, values: Mapping[str, Fraction]) -> LinearRuns:
    """Returns the paper's agent on the plan's instance, ready to run with the declared noise.

    Args:
        declaration: What is released.
        values: Its parameters, the instance's sizes among them.

    Raises:
        ParameterError: No agent is known under the declaration's name.
    """
    if declaration.name not in AGENTS:
        message = f"expected one of {', '.join(AGENTS)}, got {declaration.name!r}: other systems have no policy view"
        raise ParameterError(message, name="name", given=declaration.name)
    return AGENTS[declaration.name](declaration, values)


def _offline(declaration: Declaration, values: Mapping[str, Fraction]) -> LinearRuns:
    where, noise = _world(declaration, values, "gram"), streams(declaration, values, 1)
    users = math.ceil(_USERS * noise["gains"].noise.scale / where.norm)
    agent = Vapvi(
        users=float(users),
        rewarded=float(round(_REWARDED * users)),
        everywhere=not declaration.release("gram").users,
        ridge=norm_bound(noise["gram"]),  # K₁ and K₂ have E/2, Lemma E.2's bound on their noise, on the diagonal
        pessimism=_PESSIMISM * math.sqrt(users),
        offset=0.0,
    )
    return LinearRuns(world=where, streams=noise, agent=agent)


def _plus_plus(declaration: Declaration, values: Mapping[str, Fraction], *, weighted: bool = True) -> LinearRuns:
    where, noise = _world(declaration, values, "gram"), streams(declaration, values, EPISODES - 1)
    ridge = 2 * where.norm * norm_bound(noise["gram"])  # 2λ̃; in units of ‖φ‖, so that noise moves Q by as much
    agent = LsviUcbPlusPlus(
        episodes=EPISODES,
        place=_LATER if shared_draws(declaration) else 1,
        ridge=ridge,
        bonus=_ALONE * math.sqrt(ridge) / where.norm,
        weighted=weighted,
    )
    return LinearRuns(world=where, streams=noise, agent=agent)


def _private_lsvi(declaration: Declaration, values: Mapping[str, Fraction]) -> LinearRuns:
    where, noise = _world(declaration, values, "gram"), streams(declaration, values, EPISODES - 1)
    ridge = 2 * norm_bound(noise["gram"])
    agent = LsviUcb(episodes=EPISODES, ridge=ridge, bonus=_OPTIMISM * math.sqrt(ridge))
    return LinearRuns(world=where, streams=noise, agent=agent)


def _mixture(declaration: Declaration, values: Mapping[str, Fraction], *, mixed: bool) -> LinearRuns:
    where, noise = _world(declaration, values, "reward gram"), streams(declaration, values, EPISODES - 1)
    transition, reward = (2 * norm_bound(noise[name]) for name in ("transition gram", "reward gram"))  # line 1318
    agent = LinOpt(
        episodes=EPISODES,
        ridges=(transition, reward),
        bonuses=(_OPTIMISM * math.sqrt(transition / 2), _OPTIMISM * math.sqrt(reward)),  # ‖φ‖ is up to √2·(H − h)
        mixed=mixed,
        rate=1.0,
    )
    return LinearRuns(world=where, streams=noise, agent=agent)


def _sizes(values: Mapping[str, Fraction]) -> str:
    return ", ".join(f"{name} = {values[name]}" for name in SIZES if name in values)


def _world(declaration: Declaration, values: Mapping[str, Fraction], release: str) -> LinearInstance:
    dimension, norm = longest(declaration, values, release)
    return world(horizon=int(values["H"]), dimension=dimension, norm=norm)


def _seen(declaration: Declaration) -> str:
    if declaration.name in OFFLINE:
        return "the policy"
    if shared_draws(declaration):
        others = [k for k in range(2, EPISODES + 1) if k != _LATER]
        return f"the policies of users {' and '.join(map(str, others))}, not of user {_LATER}, who differs,"
    return f"the policies of users 2 to {EPISODES}"


def _meaning(declaration: Declaration, refuted: str) -> str:
    told = "the policy that was learned" if declaration.name in OFFLINE else "what the other users were told to do"
    found = policy_meaning(refuted, told)
    if declaration.name in SWITCHING:
        found += (
            ". This is about the agent that plans anew after every release, as the published code does; where a policy "
            "waits until a determinant has doubled (step 9), it would not change within so few users"
        )
    return found


Build = Callable[[Declaration, Mapping[str, Fraction]], LinearRuns]
AGENTS: Final[Mapping[str, Build]] = {
    "dp-vapvi": _offline,
    "dp-vapvi-unsplit": _offline,
    "dp-lsvi-ucb-pp": _plus_plus,
    "dp-lsvi-ucb-pp-as-printed": _plus_plus,
    "published-lsvi-ucb-pp": partial(_plus_plus, weighted=False),
    "luyo-lsvi-ucb": _private_lsvi,
    "ngo-lsvi-ucb": _private_lsvi,
    "private-linopt-vi": partial(_mixture, mixed=False),
    "private-linopt-po": partial(_mixture, mixed=True),
}
OFFLINE: Final = ("dp-vapvi", "dp-vapvi-unsplit")
SWITCHING: Final = ("dp-lsvi-ucb-pp", "dp-lsvi-ucb-pp-as-printed")
