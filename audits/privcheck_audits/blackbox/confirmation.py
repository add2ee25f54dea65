"""Confirmation of violations found by calls for many runs, with fresh calls that each have their own generator.

A payoff is a figure of one run on D and one on D′ with a non-positive mean while the claim is true: for an event S,
P(S) − e^ε·P′(S) − δ ≤ 0, for any (ε, δ) that the claim implies; for ρ-zCDP also E f + 1 − E′ e^f − ρ ≤ 0
for bounded f (Donsker & Varadhan 1983, Bun & Steinke 2016, Definition 1.1). The payoffs are chosen from earlier runs.
The unit is a pair of calls, on D and on D′. Its payoff is the mean over the runs of the call: expectations are additive
even if the runs of a call are dependent, and calls with separate generators are independent, so the products of
1 + λ·payoff are e-processes (Waudby-Smith & Ramdas 2024, § 4.1) at any size of the calls. Gross violations take a few
dozen calls for one run each; narrow ones take longer calls, whose means vary less if the runs are in fact independent.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.gdp import gdp_delta
from privcheck.accounting.engine.zcdp import zcdp_delta
from privcheck_audits.blackbox.inputs import RunSource
from privcheck_audits.blackbox.scores import Scores
from privcheck_audits.blackbox.verdict import ClaimedLoss, Counts, Edges
from privcheck_audits.bounds import find_largest_refuted

_PAYOFFS: Final = (0.6, 0.2, 0.2)  # weights of the best ones, of different scores
_BETS: Final = (0.9, 0.6, 0.3, 0.1, 0.03, 0.01, 0.003)  # shares of the largest bet, beside the one that promises most
_BOLDEST: Final = 0.9
_CLIPS: Final = (1.0, 2.0, 3.0)  # nats, of f
_LEVELS: Final = (0.1, 0.3, 1.0, 2.0, 4.0)  # ε of events, where the claim implies several
_SIZES: Final = (1, 4, 16, 64, 256, 1024, 4096)  # runs of a call
_CALL: Final = 50  # runs that take as long as a call
_LUCK: Final = 2.5  # nats more than needed
_PATIENCE: Final = 10.0  # times as many units as are likely to do, before it is given up
_FEWEST: Final = 256  # units before it is given up
_RUNS: Final = 4  # times the audit's runs, at most
_SHORT: Final = 2_000  # units of calls for one run each that are made before longer calls are thought of
_LARGEST: Final = 700.0  # ε of which the exponential is taken
_CONTRADICTED: Final = -5.0  # standard errors below what long calls showed

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Payoff:
    """A bet: gain − price · loss − allowance has a non-positive mean under the claim.

    Attributes:
        score: Index of the score.
        gain: (2, bins) gain of a run on D and of one on D′, by the bin of its score.
        loss: (2, bins) loss of the same runs.
        level: ε at which the events are compared, if the claim implies more than one; else None.
        sides: Number of events compared; 0 for a divergence.
        expected: Mean and variance of a unit of one run each, from earlier runs.
    """

    score: int
    gain: Array
    loss: Array
    level: float | None
    sides: int
    expected: tuple[float, float] = (0.0, 0.0)

    def prices(self, claimed: float, target: ClaimedLoss) -> tuple[float, float]:
        """Price of the loss, and the allowance; both grow with the claim."""
        if self.sides == 0:
            return 1.0, claimed - 1.0
        level = claimed if self.level is None else self.level
        return math.exp(min(level, _LARGEST)), self.sides * _delta(self.level, claimed, target)

    def least(self, claimed: float, target: ClaimedLoss) -> float:
        """Smallest possible payoff of a unit (negative)."""
        price, allowance = self.prices(claimed, target)
        return float((self.gain - price * self.loss).min(axis=1).sum()) - allowance


def _delta(level: float | None, claimed: float, target: ClaimedLoss) -> float:
    if level is None:
        return target.delta
    return gdp_delta(claimed, level) if target.unit == "mu" else zcdp_delta(claimed, level)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitsOfCalls:
    """A block of units: gains and losses of each unit.

    Attributes:
        source: Source of the calls.
        scores: Scores of outputs.
        edges: Edges of the scores' bins.
        payoffs: The payoffs.
        size: Number of runs per call.
        before: Number of runs before the first block, for messages.
    """

    source: RunSource
    scores: Scores
    edges: Edges
    payoffs: tuple[Payoff, ...]
    size: int
    before: int

    def __call__(self, rng: np.random.Generator, units: int, first: int) -> Array:
        """(2, payoffs, units): means over the runs of each unit."""
        rows, trial = [], self.before + 2 * self.size * first
        for number, own in enumerate(rng.spawn(2 * units)):
            trials = trial + self.size * number + np.arange(self.size)
            rows.append(self.source.call(own, number % 2, self.size, trials=trials))
        scored = self.scores(np.concatenate(rows))
        found = np.zeros((2, len(self.payoffs), units))
        for which, payoff in enumerate(self.payoffs):
            place = np.searchsorted(self.edges.cuts[payoff.score], scored[payoff.score]).reshape(units, 2, self.size)
            for kind, worth in enumerate((payoff.gain, payoff.loss)):
                found[kind, which] = sum(worth[arm][place[:, arm]].mean(axis=1) for arm in (0, 1))
        return found


@dataclass(slots=True, kw_only=True, eq=False)
class Confirmation:
    """Confirmation by fresh calls of a violation shown by long calls on one pair; made by `plan_confirmation`.

    Attributes:
        target: The claim.
        payoffs: The payoffs, best first.
        alpha: Probability of refuting a true claim.
        size: Number of runs per call.
        most: Largest number of units.
        least: Smallest number of units.
        found: (2, payoffs, units) of each block so far.
        units: Number of units so far.
    """

    target: ClaimedLoss
    payoffs: tuple[Payoff, ...]
    alpha: float
    size: int
    most: int
    least: int
    found: list[Array] = field(default_factory=list)
    units: int = 0

    def follow(self, parts: Generator[Array]) -> Generator[None]:
        """Add block after block until the claim is refuted, yielding after each."""
        for part in parts:
            self.found.append(part)
            self.units += part.shape[2]
            if self.units >= self.least and self.is_refuted(self.target.claimed):
                parts.close()
                return
            yield

    def is_refuted(self, claimed: float) -> bool:
        """Whether the e-value against a claim has reached 1/α."""
        return bool(self.found) and self.log_e_value(claimed) >= -math.log(self.alpha)

    @property
    def confirmed(self) -> bool:
        """Whether the units refute the claim."""
        return self.is_refuted(self.target.claimed)

    @property
    def lower(self) -> float:
        """Lower bound on the loss from the units, rounded down."""
        return find_largest_refuted(self.is_refuted)

    @property
    def runs(self) -> int:
        """Number of runs in all units."""
        return 2 * self.size * self.units

    @property
    def contradicts(self) -> bool:
        """Whether the units gained far less than earlier runs promised, that is, whether those runs were dependent."""
        if not self.found:
            return False
        best = self.payoffs[0]
        price, allowance = best.prices(self.target.claimed, self.target)
        gain, loss = np.concatenate(self.found, axis=2)[:, 0]
        payoff = gain - price * loss - allowance
        mean, variance = best.expected
        error = math.sqrt(max(float(payoff.var()), variance / self.size) / self.units)
        return float(payoff.mean()) - mean < _CONTRADICTED * error

    @property
    def digest(self) -> str:
        """Digest of the payoffs."""
        parts = [part for payoff in self.payoffs for part in (payoff.gain.tobytes(), payoff.loss.tobytes())]
        return hashlib.sha256(b"".join([str([payoff.score for payoff in self.payoffs]).encode(), *parts])).hexdigest()

    def log_e_value(self, claimed: float) -> float:
        """Logarithm of the mixture of e-values, rounded down; it falls as the claim grows."""
        terms = []
        for which, (payoff, weight) in enumerate(zip(self.payoffs, _weights(self.payoffs), strict=True)):
            units = np.concatenate([part[:, which] for part in self.found], axis=1)
            (gain, loss), times = np.unique(units, axis=1, return_counts=True)
            price, allowance = payoff.prices(claimed, self.target)
            worst = -payoff.least(claimed, self.target)
            for share, part in _bets(payoff, self.target):
                size = share / -payoff.least(self.target.claimed, self.target)  # fixed before anything was seen
                if size * worst < 1 - 1e-9:  # what could lose more than it has is not made
                    logs = np.log1p(size * (gain - price * loss - allowance))
                    terms.append(math.log(weight * part) + float(logs @ times) - 1e-9 * float(np.abs(logs) @ times))
        return float(np.logaddexp.reduce(terms)) if terms else -math.inf


def plan_confirmation(
    counts: Counts, target: ClaimedLoss, *, alpha: float, runs: int, least: int = 0
) -> Confirmation | None:
    """Choose the payoffs, the size of a call and the number of units; None if no payoff promises a gain.

    Args:
        counts: Counts of the earlier runs.
        target: The claim.
        alpha: One minus the confidence.
        runs: Number of runs of the audit.
        least: Smallest number of units.
    """
    each = [_best_payoff(score, counts, target) for score in range(counts.inside.shape[0])]
    ranked = sorted((found for found in each if found is not None), key=lambda found: -found[0])[: len(_PAYOFFS)]
    if not ranked:
        return None
    payoffs = tuple(payoff for _, payoff in ranked)
    needed = -math.log(alpha) + _LUCK
    mean, variance = payoffs[0].expected
    worst = -payoffs[0].least(target.claimed, target)
    most = _RUNS * runs // 2
    needs = {size: needed / _growth(mean, variance / size, worst) for size in _SIZES if size == 1 or size <= most // 8}
    size = 1
    if needs[1] > _SHORT:
        size = min(needs, key=lambda size: max(1.0, size * needs[size] / most) * needs[size] * (_CALL + size))
    patience = _PATIENCE * needs[size]
    return Confirmation(
        target=target,
        payoffs=payoffs,
        alpha=alpha,
        size=size,
        most=max(1, min(most // size, max(least, _FEWEST, math.ceil(patience)))),
        least=least,
    )


def _weights(payoffs: Sequence[Payoff]) -> list[float]:
    return [weight / sum(_PAYOFFS[: len(payoffs)]) for weight in _PAYOFFS[: len(payoffs)]]


def _bets(payoff: Payoff, target: ClaimedLoss) -> list[tuple[float, float]]:
    """Shares of the largest bet with their weights: half of the weight is on the most promising share."""
    mean, variance = payoff.expected
    favourite = min(_BOLDEST, max(_BETS[-1], mean / (mean**2 + variance) * -payoff.least(target.claimed, target)))
    return [(favourite, 0.5), *((share, 0.5 / len(_BETS)) for share in _BETS)]


def _growth(mean: float, variance: float, worst: float) -> float:
    """Approximate growth of the logarithm of the e-value per unit."""
    square = mean**2 + variance
    size = min(mean / square, _BOLDEST / worst)
    return size * mean - size**2 * square / 2


def _best_payoff(score: int, counts: Counts, target: ClaimedLoss) -> tuple[float, Payoff] | None:
    """Fastest-growing payoff of a score, by the earlier runs, with its growth; None if no payoff promises a gain."""
    inside = counts.inside[score].astype(np.float64)
    totals = np.maximum(1, counts.totals)[:, np.newaxis]
    law = inside / totals
    levels: tuple[float | None, ...] = (None,) if target.unit == "epsilon" else _LEVELS
    tried = [payoff for level in levels for payoff in _events(score, law, level, target, runs=int(totals.min()))]
    if target.unit == "rho":
        smooth = (inside + 0.5) / (totals + 0.5 * inside.shape[1])
        tried += [_divergence(score, smooth, arm, clip) for arm in (0, 1) for clip in _CLIPS]
    best = None
    for payoff in tried:
        price, allowance = payoff.prices(target.claimed, target)
        worth = payoff.gain - price * payoff.loss
        means = (law * worth).sum(axis=1)
        variance = max(0.0, float((law * worth**2).sum() - (means**2).sum())) + 1e-12
        mean = float(means.sum()) - allowance
        lowered = mean - math.sqrt(variance / totals.min())
        if lowered <= 0:
            continue
        growth = _growth(lowered, variance, -payoff.least(target.claimed, target))
        if best is None or growth > best[0]:
            expected = (lowered, variance)
            best = growth, Payoff(score=score, gain=payoff.gain, loss=payoff.loss, level=payoff.level,
                                  sides=payoff.sides, expected=expected)  # fmt: skip
    return best


def _events(score: int, law: Array, level: float | None, target: ClaimedLoss, *, runs: int) -> list[Payoff]:
    """Payoffs of the best event of high scores, the best event of low scores, and both together."""
    epsilon = target.claimed if level is None else level
    price = math.exp(min(epsilon, _LARGEST))
    high = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]  # from bin k on
    low = np.cumsum(law, axis=1)  # up to bin k
    made = []
    for ours, others in ((high[0], high[1]), (low[1], low[0])):
        mean = ours - price * others - _delta(level, target.claimed, target)
        square = ours + price**2 * (others + 1 / runs)
        made.append(int(np.argmax(np.where(mean > 0, mean, 0.0) ** 2 / (square + 1e-12))))
    bins = np.arange(law.shape[1])
    first, second = (bins >= made[0]).astype(np.float64), (bins <= made[1]).astype(np.float64)
    none = np.zeros(bins.size)
    both = [] if made[1] >= made[0] else [(first, second)]
    return [
        Payoff(
            score=score,
            gain=np.stack([on_first, on_second]),
            loss=np.stack([on_second, on_first]),
            level=level,
            sides=int(on_first.any()) + int(on_second.any()),
        )
        for on_first, on_second in [(first, none), (none, second), *both]
    ]


def _divergence(score: int, law: Array, arm: int, clip: float) -> Payoff:
    """Payoff that bounds KL(D‖D′) (arm 0) or KL(D′‖D) by the clipped log-ratio f, with E′ e^f = 1."""
    f = np.clip(np.log(law[arm]) - np.log(law[1 - arm]), -clip, clip)
    f -= math.log(float(law[1 - arm] @ np.exp(f)))
    gain, loss = np.zeros((2, f.size)), np.zeros((2, f.size))
    gain[arm], loss[1 - arm] = f, np.exp(f)
    return Payoff(score=score, gain=gain, loss=loss, level=None, sides=0)
