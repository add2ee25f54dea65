"""Meaning of a guarantee in plain words: how often an attacker who guesses at even odds can be right.

For an (ε, δ)-DP mechanism the probability is at most (e^ε + δ)/(1 + e^ε): a test names the right one of two equally
likely datasets with probability (1 + P − Q)/2, where P ≤ e^ε Q + δ and 1 − Q ≤ e^ε (1 − P) + δ. The whole curve gives a
second bound: (1 + δ(0))/2, by total variation. Both are rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from privcheck.reports.summary import audit_views, claimed_epsilon
from privcheck.reports.values import Report
from privcheck.reports.wording import capitalise, figure, percent

Strength = Literal["strong", "moderate", "weak", "none", "unshown"]

_STRONG, _MODERATE = (
    0.75,
    0.9,
)  # right at most so often: ε = ln 3 = 1.1 and ε = ln 9 = 2.2 where δ is small
_SLACK = 1 + 2.0**-50  # more than the rounding errors of the few operations below


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Strength of a guarantee against an attacker.

    Attributes:
        strength: Strength by ε and δ alone; "none" if no finite ε is known or an audit found a violation, "unshown" if
            there is only a claim.
        text: The guarantee in plain words.
        claimed: Whether it is the claimed guarantee; False if the claim fails.
    """

    strength: Strength
    text: str
    claimed: bool = True

    @property
    def headline(self) -> str:
        """The strength as a sentence."""
        if self.strength == "unshown":
            return "A claim, not a guarantee."
        if self.strength == "none":
            return "No guarantee."
        limits = {"strong": f"at most {percent(_STRONG)}", "moderate": f"at most {percent(_MODERATE)}"}
        often = limits.get(self.strength, f"more than {percent(_MODERATE)}")
        scale = f"by ε and δ alone an attacker is right {often} of the time"
        return f"A {self.strength} guarantee ({scale}){'' if self.claimed else ', and not the one claimed'}."


def guess_right(epsilon: float, delta: float) -> float:
    """Upper bound on the probability of guessing right between two equally likely neighbours, rounded up.

    Args:
        epsilon: ε, in nats; at least 0.
        delta: δ.

    >>> guess_right(0.0, 0.0), round(guess_right(1.0, 0.0), 4), guess_right(math.inf, 0.0)
    (0.5000000000000004, 0.7311, 1.0)
    """
    missed = math.exp(-epsilon) / (1 + math.exp(-epsilon))  # 1/(1 + e^ε), which does not overflow
    return min(1.0, (1 - (1 - min(1.0, delta)) * missed) * _SLACK)


def promise(report: Report) -> Promise | None:
    """Meaning of the report's guarantee; None if it has none.

    The guarantee is the accountant's bound on the declared releases; in a report of audits alone, it is the claim.
    """
    audit, budget = report.audit, report.budget
    if budget is None:
        if audit is None or audit.epsilon_claimed is None:
            return None
        were = f"Were the claim true, {_say(audit.epsilon_claimed, audit.delta)}"
        if any(view.verdict == "violation" for _, view in audit_views(report)):
            return Promise(strength="none", text=f"{were} It is not: the audit found more.")
        return Promise(strength="unshown", text=f"{were} An audit cannot show that it is.")
    total = budget.guarantee
    epsilon, delta = (total.epsilon, total.delta) if total.epsilon is not None else (total.pure_epsilon, 0.0)
    if epsilon is None or math.isinf(epsilon):
        text = "No finite ε is known for the declaration, so an attacker may be right every time."
        return Promise(strength="none", text=text)
    failed, claim = report.verify is not None and report.verify.verdict == "fails", claimed_epsilon(report)
    said = [capitalise(_say(epsilon, delta, _distance(report), claim if failed else None))]
    caught = any(view.verdict == "violation" and view.agent_ran for _, view in audit_views(report))
    if caught:
        said.append("An audit found that the running code loses more: none of this applies to it.")
    strength = "none" if caught else grade(epsilon, delta)
    return Promise(strength=strength, text=" ".join(said), claimed=not failed)


def _distance(report: Report) -> float | None:
    """Bound on δ at ε = 0, the total variation distance; None without it."""
    curve = report.budget.curve if report.budget else None
    if curve is None or not curve.epsilon or curve.epsilon[0] != 0:
        return None
    distance = curve.delta_upper[0]
    return distance if 0 <= distance <= 1 else None


def grade(epsilon: float, delta: float) -> Strength:
    """Strength of a finite guarantee, by ε and δ alone."""
    right = guess_right(epsilon, delta)
    return "strong" if right <= _STRONG else "moderate" if right <= _MODERATE else "weak"


def _say(epsilon: float, delta: float, distance: float | None = None, claim: tuple[float, float] | None = None) -> str:
    """How often an attacker is right, by ε and δ alone and, if it is sharper, by the whole curve, as text.

    Args:
        epsilon: ε of the guarantee.
        delta: Its δ.
        distance: Total variation distance by the whole curve.
        claim: ε and δ of a claim that fails, for comparison in the same terms.
    """
    alone, at = guess_right(epsilon, delta), f"ε = {figure(epsilon, rounding='up')}"
    less = claim is not None and claim[0] < epsilon and claim[1] == delta
    allowed = percent(guess_right(*claim)) if claim is not None and less else ""
    who = (
        "an attacker who sees all releases and knows everything else, except which of two records is the user's (50 : "
        "50 before), names the right one at most"
    )
    if delta == 0:
        most = percent(alone, rounding="up")
        alone_said = f"after the most telling output the belief in one of them is at most {most} (pure {at})"
    else:
        alone_said = f"{at} at δ = {figure(delta)} alone would allow {percent(alone, rounding='up')}"
    if allowed:
        alone_said += f", where the claim allows {allowed}"
    whole = 1.0 if distance is None else min(1.0, (1 + distance) / 2 * _SLACK)
    if whole < alone:
        average = f"{percent(whole, rounding='up')} of the time, on average over all outputs (by the whole curve δ(ε))"
        return f"{who} {average}; {alone_said}."
    told = f"{who} {percent(alone, rounding='up')} of the time, at {at}{f' and δ = {figure(delta)}' if delta else ''}"
    return f"{told}; the claim allows {allowed}." if allowed else f"{told}."


def concerned(report: Report) -> str:
    """The readers concerned by the report's verdict, and why; empty if there is none."""
    verify, made = report.verify, promise(report)
    refuted = any(view.verdict == "violation" for _, view in audit_views(report))
    if refuted and (verify is None or verify.verdict == "holds"):
        return "Everyone who runs this code: it leaks more than claimed. Withdraw its releases."
    if verify is None:
        return "Everyone who relies on the claim: an audit can refute it and cannot prove it." if report.audit else ""
    if verify.verdict == "fails":
        return (
            "Everyone who runs it as printed or cites its claim: users lose more than promised, already by the "
            "declared noise."
        )
    if verify.verdict == "undecided":
        return (
            "Everyone who relies on the claim: it was neither proved nor refuted. Do not rely on it until it is "
            "decided."
        )
    weak = made is not None and made.strength in {"weak", "none"}
    told = "the claim is true, and promises little" if weak else "the claim may be relied on for the declared releases"
    rest = (
        " Everyone who changes the code: an audit shows whether it still matches its declaration." if report.run else ""
    )
    return f"Everyone who approves the budget: at these parameters {told}.{rest}"
