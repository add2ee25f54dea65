"""Lower bounds from the guesses of many hidden bits of one run: on ε at a δ, on μ, on ρ.

Mahloujifar, Melis & Chaudhuri 2025 (Auditing f-differential privacy in one run) bound the number of right guesses under
any trade-off curve.

Lemma one-run-inequalities: For r guesses of m fair bits, W of them right, under a claim that no event of probability y
has less than g(y) under a neighbour, g convex (`Neighbouring`), g(R(t)) ≤ H(t − 1) and g(H(t)) ≤ R(t + 1), R(t) =
E[W; W ≥ t]/m, H(t) = E[r − W; W ≥ t]/m. Source: Mahloujifar, Melis & Chaudhuri 2025, for the first. Proof: fix a bit i,
the others, a threshold t and a guess s. The event “bit i is guessed as s, and at least t other guesses are right” is
one of outputs. If the bit is s, the guess is right and W ≥ t + 1; if not, it is wrong and W ≥ t. Average over i and s,
as g is convex.

Lemma one-run-start: If P(W ≥ v) = τ, R(v) is at least v/r·(τr/m + Σ r/(k(k − 1))·R(k)) over k > v, where H(v) = τr/m −
R(v), and upwards R(k) ≥ g(H(k − 1)) and H(k) = H(k − 1) − (r − k + 1)/(k − 1)·(R(k − 1) − R(k)). The right side falls
in R(v), so R(v) is at least where the two are equal. Proof: summation by parts gives the formula with equality for the
true R(k), and H(k) as H(v) − (r − v)/v·R(v) and a sum of the R(j), v < j ≤ k, with weights that are not negative, as
(r − j)/j falls in j. So the least R of every step give the least H and the next R.

Lemma one-run-recursion: With the least R(v), or R(v) = τv/m if g of the least is below H(v), H(v) = τr/m − R(v) and
downwards the least H(i) ≥ g(R(i + 1)), P(W ≥ v) < τ if R(0) + H(0) exceeds r/m. Proof: let P(W ≥ v) be τ; of a larger
probability take the law times a factor, which keeps the inequalities, as g is convex and g(0) = 0. R(i) is R(v) −
(v − 1)/(r − v + 1)·H(v) and a sum of the H(k), i ≤ k < v, with weights that are not negative, as k/(r − k) grows in k.
H(v − 1) is at least g of the least R(v), hence at least H(v), and so downwards: the least H of every step are those for
which equality holds, and R(0) + H(0) ≤ r/m must not be less than theirs. Otherwise use the first inequality alone:
moving all mass above v down to v, from the top, keeps it, so W ≤ v and R(v) = τv/m without loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

from privcheck.errors import ParameterError
from privcheck.support.kernels import njit
from privcheck_audits.bounds.coin_flip import CoinFlip
from privcheck_audits.bounds.tails import OUT, check_counts, few_errors_p_value

Array = NDArray[np.float64]

_ROUNDING: Final = 1e-9  # relative, of a recursion over at most some 10⁵ guesses
_HALVINGS: Final = 45
_STEPS: Final = 30  # of a search between neighbours of a factor of at most r/v
_NEGLIGIBLE: Final = 1e-9
_ROUGH: Final = 40.0
_ROUGH_HALVINGS: Final = 18
_BETS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)  # of the logarithm of a run's e-value, a root of the guesses
_LEVELS: Final = 4  # of right guesses in a root of the guesses
_UNSEEN: Final = 1e-10  # probability beyond which levels are not told apart
_LARGEST: Final = {"epsilon": 60.0, "mu": 40.0, "rho": 800.0}  # beyond, a guess is certain in double precision
_LEAST_LOG: Final = -690.0  # of a probability
# more towards 0 and 1, where events of a few guesses lie
_CHANCES: Final = expit(np.linspace(-25, 25, 1_501))
_APART: Final = 1e-3  # of the logarithms of odds; chances are 1/30 apart
_FEWER: Final = expit(np.linspace(-20, 20, 301))  # for ρ, of which each takes a search
_ORDERS: Final = 1 + np.geomspace(0.02, 300, 32)  # Rényi orders


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Neighbouring:
    """Least probability under a neighbour, g(y), of an event of probability y.

    Between two chances g is bounded by the chord to their left, from below: it is convex [lemma convex-from-below].

    Attributes:
        chances: (n,) y, ascending.
        least: (n,) g(y), rounded down.
    """

    chances: Array
    least: Array

    @classmethod
    def approximate(cls, epsilon: float, delta: float) -> Self:
        """Under (ε, δ)-DP: y ≤ e^ε·x + δ and 1 − x ≤ e^ε(1 − y) + δ."""
        bends = np.array([delta, 1 - (1 - delta) / (1 + math.exp(epsilon))])
        inner = bends[(bends > 0) & (bends < 1)]
        # a chord between a bend and a chance beside it would have the slope of its rounding
        apart = np.abs(logit(_CHANCES)[:, None] - logit(inner)).min(axis=1, initial=np.inf) > _APART
        y = np.unique(np.concatenate([_CHANCES[apart], bends]))
        return cls._rounded(y, np.maximum((y - delta) * math.exp(-epsilon), 1 - delta - math.exp(epsilon) * (1 - y)))

    @classmethod
    def gaussian(cls, mu: float) -> Self:
        """Under μ-GDP: Φ(Φ⁻¹(y) − μ)."""
        return cls._rounded(_CHANCES, ndtr(ndtri(_CHANCES) - mu))

    @classmethod
    def concentrated(cls, rho: float) -> Self:
        """Under ρ-zCDP: the least x with D_a(Ber(y)‖Ber(x)) and D_a(Ber(x)‖Ber(y)) at most ρa, for 32 orders a and 1.

        Lemma concentrated-event: Under ρ-zCDP no event of probability y has a smaller one under a neighbour than the
        least x with D_a(Ber(y)‖Ber(x)) and D_a(Ber(x)‖Ber(y)) at most ρa, convex in y. Proof: Rényi divergences of
        events are at most those of outputs, and each is quasi-convex in both arguments together.
        """
        return cls._rounded(_FEWER, _least_concentrated(rho))

    @classmethod
    def _rounded(cls, y: Array, least: Array) -> Self:
        return cls(chances=y, least=np.maximum(0.0, least) / OUT)


@lru_cache(maxsize=256)
def _least_concentrated(rho: float) -> Array:
    y, low, high = _FEWER, np.full(_FEWER.size, _LEAST_LOG), np.log(_FEWER) - np.log1p(-_FEWER)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        far = _further(y, expit(middle), rho)
        low, high = np.where(far, middle, low), np.where(far, high, middle)
    return np.where(low > _LEAST_LOG, expit(low), 0.0)


def _further(y: Array, x: Array, rho: float) -> NDArray[np.bool_]:
    """Whether two coins are further apart than ρ-zCDP allows."""
    log_y, log_x, tails_y, tails_x = np.log(y), np.log(x), np.log1p(-y), np.log1p(-x)
    apart = np.maximum(
        y * (log_y - log_x) + (1 - y) * (tails_y - tails_x), x * (log_x - log_y) + (1 - x) * (tails_x - tails_y)
    )
    far: NDArray[np.bool_] = apart > rho
    a = _ORDERS[:, None]
    for (p, not_p), (q, not_q) in (((log_y, tails_y), (log_x, tails_x)), ((log_x, tails_x), (log_y, tails_y))):
        moment = np.logaddexp(a * p + (1 - a) * q, a * not_p + (1 - a) * not_q)
        far |= (moment > a * (a - 1) * rho).any(axis=0)
    return far


@njit(cache=True, nogil=True)
def _least_at(chances: Array, least: Array, place: int, y: float) -> float:
    """g(y) from below, where `place` is the last chance of at most y, or 0."""
    if chances[place] > y:
        return 0.0
    if place == 0:
        return float(least[0])
    slope = (least[place] - least[place - 1]) / (chances[place] - chances[place - 1])
    return float(least[place] + slope * (y - chances[place]))


@njit(cache=True, nogil=True)
def _least_right(chances: Array, least: Array, right: int, guesses: int, p: float) -> float:
    """The least mR(v), rounded down, as right guesses beyond v must be likely enough [lemma one-run-start]."""
    low, high = p * right, p * guesses
    for _ in range(_STEPS):
        middle = (low + high) / 2
        r, h, more, place = middle, p * guesses - middle, 0.0, chances.size - 1
        for k in range(right + 1, guesses + 1):
            if h <= 0.0 or r < _NEGLIGIBLE * p:
                break
            while place > 0 and chances[place] > h:
                place -= 1
            beyond = min(r, max(0.0, _least_at(chances, least, place, h)))
            h -= (guesses - k + 1) / (k - 1) * (r - beyond)
            more += beyond / (k * (k - 1.0))
            r = beyond
        if middle < p * right + right * more:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _least_total(chances: Array, least: Array, right: int, guesses: int, p: float) -> float:
    """m(R(0) + H(0)), the least that P(W ≥ right) = p takes, or a number above `guesses`.

    Args:
        chances: m·y.
        least: m·g(y).
        right: v.
        guesses: r.
        p: P(W ≥ v).
    """
    r = _least_right(chances, least, right, guesses, p)
    place = max(0, int(np.searchsorted(chances, r, side="right")) - 1)
    if _least_at(chances, least, place, r) < p * guesses - r:
        r, place = p * right, 0
    h = p * guesses - r
    for i in range(right - 1, -1, -1):
        while place + 1 < chances.size and chances[place + 1] <= r:
            place += 1
        more = max(h, _least_at(chances, least, place, r))
        r += i / (guesses - i) * (more - h)
        h = more
        if r + h > 2 * guesses:
            break
    return r + h


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """Guesses of many hidden bits of one run, or of several runs if no user is a canary in two of them.

    Independent runs on disjoint canaries are one mechanism by parallel composition, so their counts may be added. The
    number of guesses is fixed in advance, or α is divided among the attempted numbers.

    Lemma one-run-pure: If each of m users takes part or not by a separate hidden fair bit, under pure ε the number of
    right ones among r guesses is stochastically at most Bin(r, e^ε/(1 + e^ε)), whatever the auditor guesses and on
    whichever canaries. Source: Steinke, Nasr & Jagielski 2023, Privacy auditing with one (1) training run, Theorem 5.2.

    Every other claim is tested by the recursion at the top of this file, (ε, δ) too: the published function for δ > 0
    (their Appendix D) is below the truth for two bits. Let a mechanism with (1, .02)-DP guess both, both right with
    probability e·a, one right with a each, none with x, where a = e·x + .02: P(W ≥ 1) = 1 − x = .93450, and the
    function returns .93346.

    Attributes:
        canaries: m, each in or out by a separate bit.
        guesses: r, the number of guessed bits.
        errors: Number of wrong guesses.

    Raises:
        ParameterError: The counts contradict each other.
    """

    canaries: int
    guesses: int
    errors: int

    def __post_init__(self) -> None:
        check_counts(self.errors, self.guesses, 0.5)
        if self.canaries < self.guesses:
            raise ParameterError(
                f"expected at most one guess a canary, got {self.guesses} guesses of {self.canaries} canaries",
                name="guesses",
                given=self.guesses,
            )

    def refutes(self, claim: Neighbouring, *, alpha: float) -> bool:
        """Whether so many right guesses have probability below α under the claim."""
        right, m = self.guesses - self.errors, self.canaries
        if right == 0:
            return False
        total = _least_total(claim.chances * m, claim.least * m, right, self.guesses, alpha)
        return bool(total > self.guesses * (1 + _ROUNDING))

    def p_value(self, epsilon: float, *, delta: float) -> float:
        """Probability of at least this number of right guesses under (ε, δ)-DP, rounded up.

        Raises:
            ParameterError: δ is not in [0, 1).
        """
        if not 0 <= delta < 1:
            raise ParameterError(f"expected delta in [0, 1), got {delta!r}", name="delta", given=delta)
        if delta == 0:
            return few_errors_p_value(self.errors, self.guesses, rate=float(expit(-epsilon)))
        return self.most_likely(Neighbouring.approximate(epsilon, delta))

    def most_likely(self, claim: Neighbouring) -> float:
        """Largest probability of at least this number of right guesses under the claim, rounded up."""
        return self._likely(claim, low=_LEAST_LOG, high=0.0, halvings=_HALVINGS)

    def roughly(self, claim: Neighbouring, *, beyond: float) -> float:
        """The same, of at most `beyond`, rounded up by up to a part in 5 000, or to e⁻⁴⁰ of it."""
        high = math.log(beyond)
        return self._likely(claim, low=high - _ROUGH, high=high, halvings=_ROUGH_HALVINGS)

    def _likely(self, claim: Neighbouring, *, low: float, high: float, halvings: int) -> float:
        for _ in range(halvings):
            middle = (low + high) / 2
            low, high = (low, middle) if self.refutes(claim, alpha=math.exp(middle)) else (middle, high)
        return math.exp(high)

    def epsilon(self, *, alpha: float, delta: float, above: float = 0.0) -> float:
        """Lower bound on ε at confidence 1 − α, rounded down; 0 if nothing above `above` is refuted.

        >>> round(OneRun(canaries=1_000, guesses=684, errors=184).epsilon(alpha=0.05, delta=0.0), 4)
        0.8552
        """
        check_counts(self.errors, self.guesses, alpha)
        if delta == 0:
            return CoinFlip(errors=self.errors, guesses=self.guesses).epsilon(alpha=alpha)
        return _largest(
            lambda epsilon: self.refutes(Neighbouring.approximate(epsilon, delta), alpha=alpha),
            above,
            _LARGEST["epsilon"],
        )

    def mu(self, *, alpha: float, above: float = 0.0) -> float:
        """Lower bound on μ of a μ-GDP mechanism at confidence 1 − α, rounded down; 0 if nothing above is refuted.

        >>> round(OneRun(canaries=1_000, guesses=150, errors=21).mu(alpha=0.05), 3)
        0.548
        """
        return _largest(lambda mu: self.refutes(Neighbouring.gaussian(mu), alpha=alpha), above, _LARGEST["mu"])

    def rho(self, *, alpha: float, above: float = 0.0) -> float:
        """Lower bound on ρ of a ρ-zCDP mechanism at confidence 1 − α, rounded down; 0 if nothing above is refuted.

        >>> round(OneRun(canaries=1_000, guesses=150, errors=21).rho(alpha=0.05), 3)
        0.116
        """
        return _largest(lambda rho: self.refutes(Neighbouring.concentrated(rho), alpha=alpha), above, _LARGEST["rho"])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunBets:
    """Bets on the right guesses of one run after another, which may be looked at after every run.

    Lemma one-run-bets: If P(W ≥ v) ≤ B(v) under the claim in every run, given those before, the product of e^(θW)/M
    over the runs, M the mean of e^(θV), P(V ≥ v) = B(v), ever reaches 1/α with probability at most α, for every θ ≥ 0,
    and so does an average of such products. Source: Ville's inequality. Proof: W is stochastically at most V, and
    e^(θw) grows in w, so each factor has mean at most 1. The same with W and V rounded down to some levels.

    Attributes:
        guesses: r of each run.
        levels: (levels,) numbers of right guesses, ascending from 0.
        most: (levels,) the largest probability of as many under the claim, rounded up.
    """

    guesses: int
    levels: NDArray[np.int64]
    most: Array

    @classmethod
    def against(cls, claim: Neighbouring | float, *, canaries: int, guesses: int) -> Self:
        """Bets against a claim.

        Args:
            claim: The curve, or ε of a pure claim.
            canaries: m of each run, with coins of their own.
            guesses: r of each run.
        """
        levels, most = [0], [1.0]
        steps = np.arange(guesses / 2, guesses, math.sqrt(guesses) / _LEVELS)
        for level in (*np.unique(np.ceil(steps).astype(np.int64)).tolist(), guesses):
            if level <= levels[-1]:
                continue
            run = OneRun(canaries=canaries, guesses=guesses, errors=guesses - level)
            if isinstance(claim, Neighbouring):
                chance = run.roughly(claim, beyond=most[-1])
            else:
                chance = min(most[-1], run.p_value(claim, delta=0.0))
            levels.append(level)
            most.append(chance)
            if chance < _UNSEEN:
                break
        return cls(guesses=guesses, levels=np.array(levels), most=np.array(most))

    def log_e_value(self, right: Sequence[int] | NDArray[np.int64]) -> float:
        """Logarithm of the e-value of some runs, rounded down; the claim is refuted at ln(1/α).

        Args:
            right: Right guesses of each run.
        """
        reached = self.levels[np.searchsorted(self.levels, np.asarray(right), side="right") - 1]
        chance = self.most - np.append(self.most[1:], 0.0)
        places = chance > 0
        each = []
        for bet in _BETS:
            tilt = bet / math.sqrt(self.guesses)
            mean = float(np.logaddexp.reduce(np.log(chance[places]) + tilt * self.levels[places]))
            each.append(tilt * float(reached.sum()) - reached.size * mean)
        total = float(np.logaddexp.reduce(each)) - math.log(len(_BETS))
        return total - _ROUNDING * (1 + max(map(abs, each)))


def _largest(refuted: Callable[[float], bool], above: float, most: float) -> float:
    """Largest refuted loss, rounded down; refuted losses are an interval from 0."""
    if above >= most or not refuted(above):
        return 0.0
    low, high = above, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
