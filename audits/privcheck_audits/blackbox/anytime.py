"""Looking at a black box after every block: bets on its runs by scores that were learned on the runs before them.

The first runs teach a score; the following ones are bet on with it and teach the next one as soon as they are as many.
Whoever bets on a run knows the runs before it and nothing else, so the e-value of `bounds.e_process` does not grow
on average while the claim is true, whatever is learned, and its product over the stages does not either. Half of the
e-value is bet in each stage: what a poor first score loses does not sink the good ones after it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from scipy.special import expit, log_ndtr

from privcheck_audits.blackbox.counts import Counts
from privcheck_audits.blackbox.guesses import beyond_cuts
from privcheck_audits.blackbox.verdict import Array, Attempt, ClaimedLoss, attempts
from privcheck_audits.blackbox.weights import weigh
from privcheck_audits.bounds import GuessPlan, find_largest_refuted, log_average, log_e_value

_BETS: Final = 9  # attempts that are bet on in a stage
_HALVINGS: Final = 60
_MOST_ODDS: Final = 700.0  # ln of odds
_OUT: Final = 1 + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """The bets of one stage, made by one score, with what came of them.

    Attributes:
        attempts: What is bet on.
        weights: Of the attempts, in the stage's e-value.
        counts: Of the runs that were bet on.
    """

    attempts: tuple[Attempt, ...]
    weights: tuple[float, ...]
    counts: Counts

    def log_e_value(self, claimed: float, target: ClaimedLoss) -> float:
        """Returns ln of the stage's e-value against a claim, rounded down; it falls as the claim grows."""
        runs = self.counts.runs
        if runs == 0:
            return 0.0
        made = beyond_cuts(self.attempts, self.counts)
        return log_e_value(
            made.wrong.tolist(),
            (made.right + made.wrong).tolist(),
            runs,
            plan=GuessPlan(shares=(1.0,) * len(self.attempts), weights=self.weights),
            epsilon=log_odds(claimed, target),
            delta=target.delta,
        )


@dataclass(slots=True, kw_only=True, eq=False)
class EProcess:
    """The e-process of one pair of neighbours.

    Attributes:
        target: The claim.
        stages: Of all stages; the last is under way.
    """

    target: ClaimedLoss
    stages: list[Stage] = field(default_factory=list)

    def begin(self, cuts: Sequence[Array], training: Counts, *, runs: int) -> None:
        """Begins a stage: bets on what the training runs recommend.

        Args:
            cuts: Of each score.
            training: Counts of the runs before, by models that had not seen the run.
            runs: About how many runs the stage will have.
        """
        tried = attempts(0, cuts, self.target)
        if self.target.unit != "epsilon":
            tried = [
                Attempt(pair=0, score=score, kind="curve", upper=edge, lower=edge)
                for score, cut in enumerate(cuts)
                for edge in range(cut.size)
            ]
        weights = weigh(tried, [training], self.target, tested=[runs], alpha=0.1)
        best = np.argsort(-weights, kind="stable")[:_BETS]
        shares = weights[best] / weights[best].sum() * (1 - 1e-12)
        self.stages.append(
            Stage(
                attempts=tuple(tried[i] for i in best), weights=tuple(float(w) for w in shares), counts=training.none()
            )
        )

    def add(self, counts: Counts) -> None:
        """Adds what came of some runs to the stage under way."""
        last = self.stages[-1]
        self.stages[-1] = Stage(attempts=last.attempts, weights=last.weights, counts=last.counts + counts)

    def log_e_value(self, claimed: float) -> float:
        """Returns ln of the e-value against a claim over all stages."""
        each = (stage.log_e_value(claimed, self.target) for stage in self.stages)
        return math.fsum(float(np.logaddexp(0.0, e_value)) - math.log(2) * _OUT for e_value in each)

    @property
    def runs(self) -> int:
        """Returns how many runs were bet on."""
        return sum(stage.counts.runs for stage in self.stages)

    @property
    def guess_counts(self) -> tuple[int, int]:
        """Returns the right and the wrong guesses of each stage's favourite."""
        each = [beyond_cuts(stage.attempts[:1], stage.counts) for stage in self.stages]
        return sum(int(made.right[0]) for made in each), sum(int(made.wrong[0]) for made in each)


def refutes(e_processes: Sequence[EProcess], claimed: float, *, alpha: float) -> bool:
    """Returns whether the mean e-value of all pairs has reached 1/α, which a true claim allows with α."""
    return log_average([e_process.log_e_value(claimed) for e_process in e_processes]) >= -math.log(alpha)


def anytime(e_processes: Sequence[EProcess], *, alpha: float) -> float:
    """Returns a lower bound on the loss that holds at whatever time it is asked for, at confidence 1 − α."""
    return find_largest_refuted(lambda claimed: refutes(e_processes, claimed, alpha=alpha))


def log_odds(claimed: float, target: ClaimedLoss) -> float:
    """Returns ln of the largest odds, right to wrong, of a guess of the hidden bit under a claim, rounded up.

    e^ε for ε, by Bayes' rule; Φ(μ/2) to Φ(−μ/2) for μ. For ρ a guess of all runs that says D with probability a on D
    and b on D′ has KL(a‖b) ≤ ρ and KL(b‖a) ≤ ρ (Bun & Steinke 2016, Definition 1.1 as α → 1, data processing). Both
    are jointly convex and the pair (1 − b, 1 − a) fulfils them too, so their mean does: a = 1 − b = σ(t) is best, with
    KL = t·tanh(t/2).
    """
    if target.unit == "epsilon":
        return claimed
    if target.unit == "mu":
        return float(log_ndtr(claimed / 2) - log_ndtr(-claimed / 2)) * _OUT
    low, high = 0.0, _MOST_ODDS
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if middle * (2 * float(expit(middle)) - 1) >= claimed else (middle, high)
    return high
