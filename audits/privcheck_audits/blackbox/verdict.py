"""Verdict from counts: many attempts, each with a share of α fixed before any tested run was seen.

The edges of each score come from the training runs; the tested runs are counted between them block by block and not
stored. An attempt cuts a score. For ε the runs beyond the cuts are guesses of the hidden bit (the coin flip of
`bounds`): which runs are guessed on depends on outputs and training runs only, and given those the bits are
independent, so the number of guesses need not be fixed; with δ > 0 it is (`fixed_number`). For ρ and μ the runs beyond
a cut are an event whose probabilities under D and D′ are bounded (Clopper & Pearson), or the score bounds the
divergence (`privcheck_audits.bounds.divergence`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainccinv, expit, ndtri

from privcheck.errors import ParameterError
from privcheck.terms.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP
from privcheck_audits.bounds import (
    CoinFlip,
    CurveFlip,
    DivergencePlan,
    Moments,
    divergence_plan,
    error_rate_at_most,
    moments,
    rho_at_least,
)

_TAILS: Final = 24  # edges from either end of a score
_FEWEST: Final = 8  # training runs beyond the outermost edge
_HALF_STEP: Final = 2.0**-21  # scores are multiples of 2⁻²⁰: no score is on an edge

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Edges:
    """Edges of each score's bins, ascending.

    Attributes:
        cuts: Edges of each score.
    """

    cuts: tuple[Array, ...]

    def count(self, scores: Array, secret: Bits, divergences: Sequence[DivergencePlan] = ()) -> Counts:
        """Counts of some runs from their scores.

        Args:
            scores: (scores, runs) scores of each run.
            secret: (runs,) whether each run was on D.
            divergences: Plans of the sums for bounds on a divergence; empty if none are needed.
        """
        number = max(cut.size for cut in self.cuts) + 1
        inside = np.zeros((len(self.cuts), 2, number), dtype=np.int64)
        for which, (cut, values) in enumerate(zip(self.cuts, scores, strict=True)):
            place = np.searchsorted(cut, values)
            for arm, mine in enumerate((secret, ~secret)):
                inside[which, arm] = np.bincount(place[mine], minlength=number)
        sums = tuple(moments(values, secret, plan) for values in scores for plan in divergences)
        return Counts(inside=inside, sums=sums, totals=np.array([secret.sum(), (~secret).sum()]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Counts of runs.

    Attributes:
        inside: (scores, 2, edges + 1) number of runs on D and on D′ with a score below the first edge, between the
            first and the second, …
        sums: Moments of each score for each divergence plan, score by score; empty without plans.
        totals: (2,) number of runs on D and on D′.
    """

    inside: NDArray[np.int64]
    sums: tuple[Moments, ...]
    totals: NDArray[np.int64]

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            inside=self.inside + other.inside,
            sums=tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)),
            totals=self.totals + other.totals,
        )

    def none(self) -> Counts:
        """Counts of the same shapes for no runs."""
        nothing = tuple(
            Moments(pairs=0, sums=(0.0,) * len(each.sums), squares=(0.0,) * len(each.sums)) for each in self.sums
        )
        return Counts(inside=np.zeros_like(self.inside), sums=nothing, totals=np.zeros_like(self.totals))

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self.totals.sum())

    def above(self, score: int, edge: int) -> tuple[int, int]:
        """Number of runs on D and on D′ with a score above the edge."""
        first, other = self.inside[score, :, edge + 1 :].sum(axis=1)
        return int(first), int(other)


def edges(held_out: Array) -> Edges:
    """Edges at equal steps of the logarithm of either tail's mass, and at 0, from training scores."""
    return Edges(cuts=tuple(_cuts(values) for values in held_out))


def _cuts(values: Array) -> Array:
    ordered = np.sort(values)
    n = ordered.size
    ranks = np.unique(np.round(np.geomspace(min(_FEWEST, n), max(1, n // 2), _TAILS)).astype(np.int64))
    ranks = ranks[ranks <= n]
    cuts = np.concatenate([ordered[ranks - 1] + _HALF_STEP, ordered[n - ranks] - _HALF_STEP, [_HALF_STEP]])
    return np.unique(cuts)


Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Guesses:
    """Guesses of attempts on one pair of neighbours.

    Attributes:
        right: (attempts,) right guesses.
        wrong: (attempts,) wrong guesses.
    """

    right: Numbers
    wrong: Numbers


def beyond_cuts(tried: Sequence[Attempt], counts: Counts) -> Guesses:
    """Guesses of all runs beyond the attempts' cuts, however many there are."""
    right, wrong = np.zeros((2, len(tried)), dtype=np.int64)
    if not len(tried):
        return Guesses(right=right, wrong=wrong)
    above = _above(counts)
    first, other = counts.totals
    score = np.array([attempt.score for attempt in tried])
    upper = np.array([-1 if attempt.upper is None else attempt.upper for attempt in tried])
    lower = np.array([-1 if attempt.lower is None else attempt.lower for attempt in tried])
    up, down = upper >= 0, lower >= 0
    right[up], wrong[up] = above[score[up], :, upper[up]].T
    right[down] += other - above[score[down], 1, lower[down]]
    wrong[down] += first - above[score[down], 0, lower[down]]
    return Guesses(right=right, wrong=wrong)


def fixed_number(tried: Sequence[Attempt], training: Counts, tested: Counts, rng: np.random.Generator) -> Guesses:
    """Guesses chosen by the outputs alone, in a number fixed by the training runs.

    Each attempt guesses the share of the tested runs that lay beyond its cuts in the training runs: the outermost bins,
    and part of the next one.

    If δ > 0, the number of guesses has to be fixed beforehand (`bounds.CoinFlip`). The runs between two cuts are tied:
    of the bin of the last guesses, the required number of runs is chosen at random.

    Args:
        tried: All attempts of one pair: above every edge, below it, and both at edges equally far from the ends.
        training: Counts of the training runs.
        tested: Counts of the tested runs.
        rng: Generator that picks the part, independently of the hidden bits.
    """
    seen = beyond_cuts(tried, training)
    shares = (seen.right + seen.wrong) / max(1, training.runs)
    numbers = np.minimum(tested.runs, np.maximum(1, np.rint(shares * tested.runs))).astype(np.int64)
    right = np.zeros(len(tried), dtype=np.int64)
    above = _above(tested)
    cuts: dict[int, int] = {}
    for attempt in tried:
        last = max(-1 if edge is None else edge for edge in (attempt.upper, attempt.lower))
        cuts[attempt.score] = max(cuts.get(attempt.score, 0), last + 1)
    for members, score, way in _families(tried):
        for_first, for_other = _rings(above[score, :, : cuts[score]], tested.totals, way)
        reached = np.concatenate([[0], np.cumsum(for_first + for_other)])
        wanted = numbers[members]
        ring = np.minimum(np.searchsorted(reached, wanted, "right") - 1, for_first.size - 1)
        before = np.concatenate([[0], np.cumsum(for_first)])[ring]
        rest = wanted - reached[ring]
        right[members] = before + rng.hypergeometric(for_first[ring], for_other[ring], rest)
    return Guesses(right=right, wrong=numbers - right)


def _above(counts: Counts) -> Numbers:
    """Runs above each edge, (scores, 2, edges)."""
    return np.cumsum(counts.inside[:, :, :0:-1], axis=2)[:, :, ::-1]


def _families(tried: Sequence[Attempt]) -> Iterator[tuple[Numbers, int, tuple[bool, bool]]]:
    """Yield groups of attempts with the same score and direction: indices, score, whether above and below."""
    ways: dict[tuple[int, tuple[bool, bool]], list[int]] = {}
    for i, attempt in enumerate(tried):
        way = (attempt.upper is not None, attempt.lower is not None)
        ways.setdefault((attempt.score, way), []).append(i)
    for (score, way), members in ways.items():
        yield np.array(members), score, way


def _rings(above: Numbers, totals: Numbers, way: tuple[bool, bool]) -> tuple[Numbers, Numbers]:
    """Right and wrong guesses of each bin, outermost first; the bins cover all runs."""
    first, other = np.diff(np.concatenate([totals[:, None], above, np.zeros((2, 1), dtype=np.int64)], axis=1)) * -1
    if way == (True, False):
        return first[::-1], other[::-1]
    if way == (False, True):
        return other, first
    half = first.size // 2
    right = np.concatenate([first[::-1][:half] + other[:half], first[half : first.size - half]])
    wrong = np.concatenate([other[::-1][:half] + first[:half], other[half : first.size - half]])
    return right, wrong


TIES: Final = 0x71E5  # keeps the draws among tied runs apart from an audit's others
REFUTES: Final = 0.35  # of α, for the attempt that refutes the claim best by the training runs
CERTIFIES: Final = 0.4  # for the one with the largest bound, often the same
_ORDERS: Final = 1 + np.geomspace(1e-3, 300, 120)  # Rényi orders
_DOWN: Final = 1 - 1e-9
_UP: Final = 1 + 1e-9
_TIGHT_CLIP: Final = 1.5  # nats, where runs are too few for the clip of a Gaussian of the claimed ρ
_LEAST_RHO: Final = 1e-6  # for which a clip is worked out
_VERY_MANY: Final = 1 << 32  # runs, of which δ reveals as many as expected, whatever is asked of them

BoundUnit = Literal["epsilon", "rho", "mu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedLoss:
    """The claim, as floats rounded up.

    Attributes:
        unit: Unit of the claim.
        claimed: ε, ρ or μ.
        delta: δ of an (ε, δ) claim, else 0.
    """

    unit: BoundUnit
    claimed: float
    delta: float

    @classmethod
    def of(cls, claim: object) -> ClaimedLoss:
        """A claim's loss.

        Raises:
            ParameterError: No claim that is tested from outputs, or a number out of its range.
        """
        unit: BoundUnit
        delta = 0.0
        if isinstance(claim, PureDP | ApproxDP):
            unit, claimed = "epsilon", claim.epsilon.number(rounding="up")
            delta = claim.delta.number(rounding="up") if isinstance(claim, ApproxDP) else 0.0
        elif isinstance(claim, ZCDP):
            unit, claimed = "rho", claim.rho.number(rounding="up")
        elif isinstance(claim, GaussianDP):
            unit, claimed = "mu", claim.mu.number(rounding="up")
        else:
            wanted = "PureDP, ApproxDP, ZCDP or GaussianDP"
            raise ParameterError(f"claim: expected one of {wanted}, got {claim!r}", name="claim", given=claim)
        if not (0 <= claimed < math.inf and 0 <= delta < 1):
            raise ParameterError(f"claim: expected finite and not negative, δ below 1, got {claim}", given=claim)
        return cls(unit=unit, claimed=claimed, delta=delta)

    @property
    def divergences(self) -> tuple[DivergencePlan, ...]:
        """Divergence plans tried for each score: empty except for ρ."""
        if self.unit != "rho":
            return ()
        likely = divergence_plan(max(self.claimed, _LEAST_RHO))
        tight = DivergencePlan(clip=_TIGHT_CLIP, scales=(1.0, 1.0), directions=("first", "second"), weights=(0.5, 0.5))
        return (likely, tight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One way of using the counts of one pair.

    Attributes:
        pair: Index of the pair.
        score: Index of the score.
        kind: "flip" (guesses), "event" (two probabilities), "curve" (errors over all runs), "divergence", or
            "e-process" (bets of an audit that may stop early).
        upper: D is guessed above this edge; None if it is never guessed.
        lower: D′ is guessed below this edge; None if it is never guessed.
        plan: Index of the divergence plan.
    """

    pair: int
    score: int
    kind: Literal["flip", "event", "curve", "divergence", "e-process"]
    upper: int | None = None
    lower: int | None = None
    plan: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The largest lower bound; all attempts hold jointly at the audit's confidence.

    Attributes:
        lower: The bound in the claim's unit, rounded down.
        attempt: The attempt that gives it.
        alpha: Part of α of this attempt.
        right: Number of right guesses of the attempt.
        wrong: Number of wrong guesses.
    """

    lower: float
    attempt: Attempt
    alpha: float
    right: int
    wrong: int


def attempts(pair: int, cuts: Sequence[Array], target: ClaimedLoss) -> list[Attempt]:
    """All attempts on the scores of a pair."""
    tried = []
    for score, cut in enumerate(cuts):
        every = range(cut.size)
        kind: Literal["flip", "event"] = "flip" if target.unit == "epsilon" else "event"
        tried += [Attempt(pair=pair, score=score, kind=kind, upper=edge) for edge in every]
        tried += [Attempt(pair=pair, score=score, kind=kind, lower=edge) for edge in every]
        if target.unit == "epsilon":
            tried += [
                Attempt(pair=pair, score=score, kind="flip", upper=cut.size - 1 - edge, lower=edge)
                for edge in every
                if cut.size - 1 - edge >= edge
            ]
        if target.unit == "mu":
            tried += [Attempt(pair=pair, score=score, kind="curve", upper=edge, lower=edge) for edge in every]
        if target.unit == "rho":
            plans = range(len(target.divergences))
            tried += [Attempt(pair=pair, score=score, kind="divergence", plan=plan) for plan in plans]
    return tried


def best(
    tried: Sequence[Attempt],
    weights: Array,
    training: Sequence[Counts],
    tested: Sequence[Counts],
    target: ClaimedLoss,
    *,
    alpha: float,
    rng: np.random.Generator,
) -> Best:
    """Largest lower bound among the attempts, which hold jointly at confidence 1 − α.

    Args:
        tried: The attempts on all pairs.
        weights: Their shares of α.
        training: Counts of each pair's training runs.
        tested: Counts of each pair's tested runs.
        target: The claim.
        alpha: One minus the confidence.
        rng: Generator that picks among tied runs if the number of guesses is fixed.
    """
    largest = Best(lower=0.0, attempt=tried[0], alpha=alpha * float(weights[0]), right=0, wrong=0)
    search = _largest_flip if target.unit == "epsilon" else _largest_loss
    for pair, (taught, counts) in enumerate(zip(training, tested, strict=True)):
        of_pair = np.array([attempt.pair == pair for attempt in tried])
        mine = [attempt for attempt in tried if attempt.pair == pair]
        made = fixed_number(mine, taught, counts, rng) if target.delta > 0 else beyond_cuts(mine, counts)
        lower, i = search(mine, made, alpha * weights[of_pair], counts, target)
        if lower > largest.lower:
            part = alpha * float(weights[of_pair][i])
            right, wrong = int(made.right[i]), int(made.wrong[i])
            largest = Best(lower=lower, attempt=mine[i], alpha=part, right=right, wrong=wrong)
    return largest


def reachable(target: ClaimedLoss, runs: int, *, alpha: float) -> float:
    """Bound that the favourite attempts would give for the easiest mechanism for which the claim is exactly true.

    That is randomised response for (ε, δ), which reveals its bit with probability δ; N(0, 1) against N(μ, 1) for μ, and
    the same with μ = √(2ρ) for ρ.

    Args:
        target: The claim.
        runs: Tested runs, both neighbours together.
        alpha: One minus the confidence.
    """
    part = alpha * (REFUTES + CERTIFIES)
    if target.unit == "epsilon":
        errors = min(runs, math.ceil(runs * (1 - target.delta) * expit(-target.claimed)))
        if target.delta > 0 and runs > _VERY_MANY:
            guesses = max(errors, runs - math.ceil(runs * target.delta))
            return CoinFlip(errors=errors, guesses=guesses).epsilon(alpha=part)
        return CoinFlip(errors=errors, guesses=runs, coins=runs, delta=target.delta).epsilon(alpha=part)
    from scipy.special import ndtr

    mu = target.claimed if target.unit == "mu" else math.sqrt(2 * target.claimed)
    if target.unit == "mu":
        return CurveFlip(errors=min(runs, math.ceil(runs * ndtr(-mu / 2))), runs=runs).mu(alpha=part)
    cuts = np.linspace(-1, 4, 26)
    half = runs // 2
    return max(_event_rho(int(half * ndtr(mu - cut)), half, math.ceil(half * ndtr(-cut)), half, part) for cut in cuts)


def _largest_flip(
    tried: Sequence[Attempt], made: Guesses, parts: Array, counts: Counts, target: ClaimedLoss
) -> tuple[float, int]:
    """Largest bound on ε, with its attempt.

    Bounds at δ = 0 are upper limits and are computed for all attempts at once, so that few attempts need the exact
    bound.
    """
    number = made.right + made.wrong
    at_most = odds_at_least(made.wrong, number, parts)
    found, which = 0.0, 0
    for i in np.argsort(-at_most, kind="stable"):
        if at_most[i] <= found:
            break
        one_way = tried[i].upper is None or tried[i].lower is None
        flip = CoinFlip(
            errors=int(made.wrong[i]),
            guesses=int(number[i]),
            coins=counts.runs,
            delta=target.delta / 2 if one_way else target.delta,
        )
        if found > 0 and flip.p_value(found) > parts[i]:
            continue
        lower = flip.epsilon(alpha=float(parts[i]))
        found, which = (lower, int(i)) if lower > found else (found, which)
    return found, which


def odds_at_least(wrong: NDArray[np.int64], number: NDArray[np.int64], alphas: Array | float) -> Array:
    """Approximate bound of each `CoinFlip` at δ = 0; 0 if nothing was guessed."""
    some = wrong < number
    rate = np.full(number.size, 0.5)
    level = np.broadcast_to(alphas, number.shape)[some]
    rate[some] = np.minimum(0.5, betainccinv(wrong[some] + 1, (number - wrong)[some], level))
    found: Array = np.log1p(-rate) - np.log(rate)
    return found * _UP


def _largest_loss(
    tried: Sequence[Attempt], made: Guesses, parts: Array, counts: Counts, target: ClaimedLoss
) -> tuple[float, int]:
    """Largest bound on ρ or μ, with its attempt."""
    bounds = [
        lower_bound(attempt, counts, target, right=int(right), wrong=int(wrong), alpha=float(part))
        for attempt, right, wrong, part in zip(tried, made.right, made.wrong, parts, strict=True)
    ]
    which = int(np.argmax(bounds))
    return bounds[which], which


def lower_bound(
    attempt: Attempt, counts: Counts, target: ClaimedLoss, *, right: int, wrong: int, alpha: float, times: float = 1.0
) -> float:
    """Bound of one attempt on ρ or μ.

    Args:
        attempt: Attempt of a kind other than "flip".
        counts: Counts of the runs.
        target: The claim.
        right: Number of right guesses.
        wrong: Number of wrong guesses.
        alpha: α of the attempt.
        times: Factor on the number of runs and on their sums; `right` and `wrong` are already multiplied.
    """
    if attempt.kind == "divergence":
        return _divergence(attempt, counts, target, times=times, alpha=alpha)
    ours, others = (int(runs * times) for runs in counts.totals)
    if min(ours, others) == 0:
        return 0.0
    if attempt.kind == "curve":
        return CurveFlip(errors=min(wrong, ours + others), runs=ours + others).mu(alpha=alpha)
    ours, others = (ours, others) if attempt.upper is not None else (others, ours)
    bound = _event_mu if target.unit == "mu" else _event_rho
    return bound(min(right, ours), ours, min(wrong, others), others, alpha)


def _event(right: int, ours: int, wrong: int, others: int, alpha: float) -> tuple[float, float]:
    """Lower bound on the event's probability under one neighbour, and upper bound under the other."""
    least = 1 - error_rate_at_most(ours - right, ours, alpha=alpha / 2)
    return max(0.0, least), error_rate_at_most(wrong, others, alpha=alpha / 2)


def _event_rho(right: int, ours: int, wrong: int, others: int, alpha: float) -> float:
    """Lower bound on ρ: under ρ-zCDP an event's D_α is at most ρα at every order (data processing)."""
    p, q = _event(right, ours, wrong, others, alpha)
    if p <= q:
        return 0.0
    with np.errstate(divide="ignore"):
        inside = _ORDERS * math.log(p) + (1 - _ORDERS) * math.log(q)
        outside = _ORDERS * np.log1p(-p) + (1 - _ORDERS) * np.log1p(-q)
    return max(0.0, float((np.logaddexp(inside, outside) / (_ORDERS - 1) / _ORDERS).max()) * _DOWN)


def _event_mu(right: int, ours: int, wrong: int, others: int, alpha: float) -> float:
    """Lower bound on μ: an event of probability q has probability at most Φ(Φ⁻¹(q) + μ) under the neighbour."""
    p, q = _event(right, ours, wrong, others, alpha)
    return max(0.0, float(ndtri(p) - ndtri(q)) * _DOWN) if q < p else 0.0


def _divergence(attempt: Attempt, counts: Counts, target: ClaimedLoss, *, times: float, alpha: float) -> float:
    """Lower bound on ρ from the sums, or from `times` as many runs with the same means."""
    plans = target.divergences
    sums = counts.sums[attempt.score * len(plans) + attempt.plan]
    more = replace(
        sums,
        pairs=round(sums.pairs * times),
        sums=tuple(value * times for value in sums.sums),
        squares=tuple(value * times for value in sums.squares),
    )
    return rho_at_least(more, plans[attempt.plan], alpha=alpha)
