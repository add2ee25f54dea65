"""Anytime-valid black-box audits: after every block, bets on its runs by scores learned on earlier runs.

The first runs train a score; bets on the following runs use it, and those runs train the next score once there are as
many of them. A bet depends only on earlier runs, so that the e-value of `bounds.e_process` does not grow on average
while the claim is true, whatever is learned, and neither does its product over the stages. Each stage bets half of its
e-value: the losses of a poor first score do not cancel the gains of later ones.

`weigh` divides α among the attempts of an audit, by the training runs alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr, ndtr

from privcheck.accounting.engine.gdp import gdp_delta
from privcheck_audits.blackbox.verdict import (
    CERTIFIES,
    REFUTES,
    Array,
    Attempt,
    ClaimedLoss,
    Counts,
    attempts,
    beyond_cuts,
    lower_bound,
    odds_at_least,
)
from privcheck_audits.bounds import GuessPlan, find_largest_refuted, log_average, log_e_value

_NEXT: Final = 0.15  # of α, for the runners-up together
_STEADY: Final = 0.45  # taken from the two, for the attempt that luck has least to do with
_SHARE_HALVINGS: Final = 50
_RUNNERS_UP: Final = 4  # of either kind
_WORSE: Final = 2.0  # standard deviations by which counts are made worse
_CAUTION: Final = 3.0  # standard deviations by which δ may reveal more than expected


def weigh(
    tried: Sequence[Attempt], training: Sequence[Counts], target: ClaimedLoss, *, tested: Sequence[int], alpha: float
) -> Array:
    """Share of α of each attempt, (attempts,), adding up to 1, from the training runs alone.

    Two attempts get most of it: the one that refutes the claim best, and the one with the largest bound. They differ if
    a claim is grossly violated, which a rare event shows as a large bound and a common one more reliably. A third
    attempt takes a part from both: one chosen among few, since the largest of hundreds of noisy bounds is a lucky one.

    Args:
        tried: The attempts.
        training: Counts of each pair's training runs, by held-out scores.
        target: The claim.
        tested: Number of runs of each pair that will be tested.
        alpha: One minus the confidence.
    """
    refutes, certifies = np.zeros((2, len(tried)))
    for pair, counts in enumerate(training):
        of_pair = np.array([attempt.pair == pair for attempt in tried])
        mine = [attempt for attempt in tried if attempt.pair == pair]
        refutes[of_pair], certifies[of_pair] = _promises(mine, counts, target, runs=tested[pair], alpha=alpha)
    weights = np.full(len(tried), (1 - REFUTES - CERTIFIES - _NEXT) / len(tried))
    if target.delta > 0:
        steady = _as_of_normal_noise(tried, training, certifies, target, tested=tested, alpha=alpha)
    else:
        steady = _of_all_scores(tried, certifies)
    if steady is not None:
        weights[steady] += _STEADY
    for promise, share in ((refutes, REFUTES), (certifies, CERTIFIES)):
        order = np.argsort(-promise, kind="stable")
        following = order[1 : 1 + _RUNNERS_UP]
        weights[order[0]] += share - (0.0 if steady is None else _STEADY / 2)
        weights[following] += _NEXT / 2 / max(1, following.size)
    return weights / max(1.0, float(weights.sum()))


def _of_all_scores(tried: Sequence[Attempt], certifies: Array) -> int | None:
    """Two-sided attempt with the largest bound by a pair's last score, which combines the others.

    Among nearly equivalent scores, the largest bound is that of the luckiest one.
    """
    last = {attempt.pair: attempt.score for attempt in tried}
    of_last = [
        i
        for i, attempt in enumerate(tried)
        if attempt.score == last[attempt.pair] and attempt.upper is not None and attempt.lower is not None
    ]
    return max(of_last, key=lambda i: float(certifies[i]), default=None)


def _as_of_normal_noise(
    tried: Sequence[Attempt],
    training: Sequence[Counts],
    certifies: Array,
    target: ClaimedLoss,
    *,
    tested: Sequence[int],
    alpha: float,
) -> int | None:
    """Attempt with about the number of guesses that would be best for normal noise, by a pair's last score.

    With δ > 0 few guesses count, too few for the training runs to show the best number. For normal noise of which the
    claim is exactly true, the number follows from the claim. None if δ = 0.
    """
    if target.delta == 0:
        return None
    low, high = 1e-6, 60.0
    for _ in range(_SHARE_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if gdp_delta(middle, target.claimed) < target.delta else (low, middle)
    cuts = np.linspace(0, 6, 121)
    best, worth = None, -math.inf
    for pair, counts in enumerate(training):
        right = np.floor(tested[pair] * ndtr(low / 2 - cuts)).astype(np.int64)
        wrong = np.ceil(tested[pair] * ndtr(-low / 2 - cuts)).astype(np.int64)
        paid = _paid(target.delta, tested[pair])
        bounds = odds_at_least(wrong, np.maximum(right - paid, 0) + wrong, alpha * _STEADY)
        which = int(np.argmax(bounds))
        share = (right[which] + wrong[which]) / max(1, tested[pair])
        last = max(attempt.score for attempt in tried if attempt.pair == pair)
        both = [
            i
            for i, attempt in enumerate(tried)
            if (attempt.pair, attempt.score) == (pair, last) and attempt.upper is not None and attempt.lower is not None
        ]
        made = beyond_cuts([tried[i] for i in both], counts)  # this pair's alone: others have other edges
        far = np.abs(np.log(np.maximum(made.right + made.wrong, 0.5) / max(1, counts.runs) / share))
        nearest = both[int(np.argmin(far))] if both else None
        if nearest is not None and (best is None or certifies[nearest] > worth):
            best, worth = nearest, float(certifies[nearest])
    return best


def _paid(revealing: Array | float, runs: int) -> NDArray[np.int64]:
    """Approximate number of right guesses that may be due to δ."""
    revealed = np.asarray(revealing) * runs
    paid: NDArray[np.int64] = np.ceil(revealed + _CAUTION * np.sqrt(revealed)).astype(np.int64)
    return paid


def _promises(
    tried: Sequence[Attempt], training: Counts, target: ClaimedLoss, *, runs: int, alpha: float
) -> tuple[Array, Array]:
    """Promise of each attempt by the training counts: −ln p of its refutation of the claim, and its bound.

    The counts are made worse by standard deviations: among hundreds of attempts the largest bound is that of a lucky
    one with few guesses, and the best attempt is hardly better than its neighbours with more guesses.
    """
    grown = runs / max(1, training.runs)
    made = beyond_cuts(tried, training)

    def grow(deviations: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        right = np.maximum(0.0, made.right - deviations * np.sqrt(made.right)) * grown
        wrong = (made.wrong + deviations * np.sqrt(made.wrong + 1)) * grown
        return np.floor(right).astype(np.int64), np.ceil(wrong).astype(np.int64)

    if target.unit != "epsilon":
        bounds = np.array(
            [
                lower_bound(each, training, target, right=int(r), wrong=int(w), alpha=alpha / 10, times=grown)
                for each, r, w in zip(tried, *grow(_WORSE), strict=True)
            ]
        )
        return bounds, bounds
    from scipy.stats import binom

    one_way = np.array([attempt.upper is None or attempt.lower is None for attempt in tried])
    paid = _paid(np.where(one_way, target.delta / 2, target.delta), runs)
    right, wrong = grow(_WORSE)
    number = np.maximum(right - paid, 1) + wrong
    refutes = np.where(right > paid, -binom.logcdf(wrong, number, expit(-target.claimed)), -np.inf)
    certifies = np.where(right > paid, odds_at_least(wrong, number, alpha * CERTIFIES), -np.inf)
    return refutes, certifies


_BETS: Final = 9  # attempts that are bet on in a stage
_HALVINGS: Final = 60
_MOST_ODDS: Final = 700.0  # ln of odds
_OUT: Final = 1 + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """Bets of one stage, made with one score, and their outcomes.

    Attributes:
        attempts: The attempts that are bet on.
        weights: Weight of each attempt in the stage's e-value.
        counts: Counts of the runs that were bet on.
    """

    attempts: tuple[Attempt, ...]
    weights: tuple[float, ...]
    counts: Counts

    def log_e_value(self, claimed: float, target: ClaimedLoss) -> float:
        """Logarithm of the stage's e-value against a claim, rounded down; it falls as the claim grows."""
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
        stages: All stages; the last one is still open.
    """

    target: ClaimedLoss
    stages: list[Stage] = field(default_factory=list)

    def begin(self, cuts: Sequence[Array], training: Counts, *, runs: int) -> None:
        """Begin a stage: choose the bets that the training runs recommend.

        Args:
            cuts: Edges of each score.
            training: Counts of the earlier runs, by held-out scores.
            runs: Approximate number of runs of the stage.
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
        """Add the counts of some runs to the open stage."""
        last = self.stages[-1]
        self.stages[-1] = Stage(attempts=last.attempts, weights=last.weights, counts=last.counts + counts)

    def log_e_value(self, claimed: float) -> float:
        """Logarithm of the e-value against a claim over all stages."""
        each = (stage.log_e_value(claimed, self.target) for stage in self.stages)
        return math.fsum(float(np.logaddexp(0.0, e_value)) - math.log(2) * _OUT for e_value in each)

    @property
    def runs(self) -> int:
        """Number of runs that were bet on."""
        return sum(stage.counts.runs for stage in self.stages)

    @property
    def guess_counts(self) -> tuple[int, int]:
        """Right and wrong guesses of each stage's heaviest attempt, summed over the stages."""
        each = [beyond_cuts(stage.attempts[:1], stage.counts) for stage in self.stages]
        return sum(int(made.right[0]) for made in each), sum(int(made.wrong[0]) for made in each)


def refutes(e_processes: Sequence[EProcess], claimed: float, *, alpha: float) -> bool:
    """Whether the mean e-value of all pairs has reached 1/α (probability at most α under a true claim)."""
    return log_average([e_process.log_e_value(claimed) for e_process in e_processes]) >= -math.log(alpha)


def anytime(e_processes: Sequence[EProcess], *, alpha: float) -> float:
    """Lower bound on the loss that is valid at any stopping time, at confidence 1 − α."""
    return find_largest_refuted(lambda claimed: refutes(e_processes, claimed, alpha=alpha))


def log_odds(claimed: float, target: ClaimedLoss) -> float:
    """Logarithm of the largest odds, right to wrong, of a guess of the hidden bit under a claim, rounded up.

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
