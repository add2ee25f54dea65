"""Detection of runs that learned nothing, from the policies' true values and the agent's diagnostics.

A run that closed more than a twentieth of the gap between uniformly random play and the optimum counts as having
learned, unless its policy never changed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from privcheck.commands.settings import Chosen
from privcheck.reports.values import Cause, Gap, NotLearned, Regret
from privcheck.runtime.registry import PAPER
from privcheck.runtime.results import OnlineResult, RunResult

_LAST: Final = 0.75  # judged are the policies after this share of the episodes
_NOTHING: Final = 0.95  # of what uniformly random play loses: less of it is something learned
_SOLVED: Final = 0.05  # of the same: a policy that loses less needs no word about how it came about
_MOSTLY: Final = 0.5  # of all (step, state): so many optimistic values at their limit are the reason
_LEARNS: Final = 0.5  # of what uniformly random play loses: the twin without privacy that loses less has learned


def judge_acting(setting: Chosen, result: OnlineResult, regret: Regret) -> NotLearned | None:
    """Why an online agent did not learn; None if it did, or if there is nothing to learn.

    Args:
        setting: The algorithm.
        result: Its run, of all replicates.
        regret: Its regret, with that of policies that learn nothing.
    """
    episodes = float(result.episodes[-1])
    uniform = (regret.uniform or 0.0) / episodes
    if uniform <= 0 or regret.share_of_uniform is None:
        return None
    loss = _late_loss(result) / uniform
    stayed = not result.switches[:, -1].any() and loss > _SOLVED
    if not stayed and loss < _NOTHING:
        return None
    cause, because = _why_acting(setting, result, regret, stayed=stayed)
    return NotLearned(because=because, advice=_advise(setting), cause=cause)


def _late_loss(result: OnlineResult) -> float:
    """Mean regret per episode of the last quarter's policies."""
    at = result.episodes
    first = min(int(np.searchsorted(at, _LAST * at[-1])), at.size - 1)
    if first == at.size - 1:
        return float((result.optimal - result.value[:, -1]).mean())
    lost = result.regret[:, -1] - result.regret[:, first]
    return float(lost.mean() / (at[-1] - at[first]))


def _why_acting(setting: Chosen, result: OnlineResult, regret: Regret, *, stayed: bool) -> tuple[Cause, str]:
    K, H, limit = int(result.episodes[-1]), len(result.policy), result.at_limit
    private = setting.declaration is not None
    if limit == 1 or (limit is not None and limit >= _MOSTLY and not private):  # noise moves values to the limit too
        share = "all" if limit == 1 else f"{100 * limit:.0f} % of all"
        return "bonus", (
            f"its bonus exceeds what can be earned: after all {K} episodes its optimistic value is still the largest "
            f"there can be (H = {H} at the first step) at {share} steps and states"
        )
    if stayed:
        return "unchanged", f"its policy never changed: all {K} episodes were played like the first, before any data"
    without = "" if regret.twin_is_itself else f" ({regret.twin})"
    if private and _twin_learned(regret):
        return "noise", f"of its noise: without it{without} the same constants learn here"
    because = "its last policies are worth no more than uniformly random ones"
    if private and regret.baseline is not None and regret.uniform:
        kept = 100 * regret.baseline / regret.uniform
        because += f"; without noise{without} the same constants lose {kept:.0f} % of what random play loses"
    return "unknown", because


def _twin_learned(regret: Regret) -> bool:
    return bool(regret.baseline is not None and regret.uniform and regret.baseline < _LEARNS * regret.uniform)


def judge_learned(setting: Chosen, result: RunResult, gap: Gap) -> NotLearned | None:
    """Why an agent that learns from data did not; None if it did, or if it is unknown.

    Args:
        setting: The algorithm.
        result: Its run, of all replicates.
        gap: Gap between its policies and the optimum, if the true values are known.
    """
    if result.worthless == 1:
        because = "every Q̂ is 0: its penalty for uncertainty exceeds what can be earned, at every step and state"
        return NotLearned(because=because, advice=_advise(setting), cause="penalty")
    if gap.share_of_uniform is None or gap.share_of_uniform < 1:
        return None
    because = "its policy is worth no more than the uniformly random one"
    return NotLearned(because=because, advice=_advise(setting))


def _advise(setting: Chosen) -> str:
    """Advice: constants that learn, another agent at the same budget, more data or a larger budget."""
    algorithm = setting.algorithm
    more = ["more episodes (K)" if algorithm.online is not None else "more users"]
    more += [f"a larger {name}" for name in ("epsilon", "rho") if name in setting.values][:1]
    tried = [f"it without --set {name}" for name in sorted(setting.given & algorithm.printed.keys())][:1]
    practical = setting.preset == PAPER and algorithm.printed
    if algorithm.instead:  # at small budgets the practical constants alone do not help
        tried.append(f"{algorithm.instead} (learns at smaller budgets)")
        more[0] = f"--set preset=practical with {more[0]}" if practical else more[0]
    elif practical:
        tried.append("--set preset=practical")
    tried += more
    return ", ".join(tried[:-1]) + (" or " if tried[:-1] else "") + tried[-1]
