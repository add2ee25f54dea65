"""Anytime-valid tests: an e-process from bets on the auditor's guesses, which grows only if the claim is false.

A run's guess is right, wrong or withheld.

Lemma e-process: Under (ε, δ)-DP with a fair hidden bit the product of 1 + λ(1{right} − e^ε·1{wrong} − δ) over the runs,
the e-value, ever reaches 1/α with probability at most α, for every λ in [0, 1/(e^ε + δ)): the audit may check after
every block and stop at any time. Source: Ville's inequality. Proof: E[1{right} − e^ε·1{wrong}] ≤ δ, so it is a
supermartingale.

E-values are averaged over several λ and several numbers of guesses; averaging keeps the property and costs no α.

The e-value depends on the counts alone, so one tally serves every claim, and every ε is tested at once.

Guesses may depend on all outputs of the block: by Kairouz, Oh & Viswanath (2015, Theorem 3.1) a run either reveals its
bit, with probability δ, or is ε-DP; given the outputs and which runs reveal, the other bits lose on average, whatever
is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from scipy.special import log_ndtr

from privcheck.errors import ParameterError
from privcheck_audits.bounds.coin_flip import GuessPlan
from privcheck_audits.bounds.tails import check_counts

BETS: Final = (0.02, 0.06, 0.15, 0.35, 0.6)  # λ(e^ε + δ): the share of its e-value that a wrong guess costs
SIGNS: Final = GuessPlan(shares=(1.0,), weights=(1.0,))  # every run is guessed
_SHARES: Final = (1.0, 0.6, 0.3, 0.0625, 1 / 256)
_WEIGHTS: Final = (0.25, 0.4, 0.15, 0.1, 0.1)
_HALVINGS: Final = 60
_LARGEST: Final = 60.0
_SLACK: Final = 1e-9  # outward rounding of sums of logarithms, relative


def e_process_plan(favourite: float | None = None) -> GuessPlan:
    """Plan of five shares for short audits, which see no rare outputs; most of the weight is at 0.6 and at all runs.

    Args:
        favourite: The share with the best bound for the declared law; it gets half of the weight.
    """
    if favourite is None:
        return GuessPlan(shares=_SHARES, weights=_WEIGHTS)
    return GuessPlan(shares=(favourite, *_SHARES), weights=(0.5, *(weight / 2 for weight in _WEIGHTS)))


def log_e_value(
    errors: Sequence[int],
    guesses: Sequence[int],
    runs: int,
    *,
    plan: GuessPlan,
    epsilon: float,
    delta: float,
    bets: Sequence[float] = BETS,
) -> float:
    """Logarithm of the e-value against the claim (ε, δ)-DP, rounded down; the claim is refuted at ln(1/α).

    Args:
        errors: Wrong guesses of each attempt, over all blocks so far.
        guesses: Guesses of each attempt.
        runs: All runs.
        plan: The attempts, with their weights.
        epsilon: ε of the claim.
        delta: δ of the claim.
        bets: Shares of the largest allowed bet, in (0, 1), equally weighted.

    Raises:
        ParameterError: The counts contradict each other, or a number is out of range.
    """
    if not (epsilon >= 0 and 0 <= delta < 1 and bets and all(0 < bet < 1 for bet in bets)):
        raise ParameterError(
            f"expected epsilon ≥ 0, delta in [0, 1) and bets in (0, 1), got {epsilon!r}, {delta!r} and {bets}"
        )
    terms = []
    odds = math.exp(min(epsilon, 700.0))
    for wrong, made, weight in zip(errors, guesses, plan.weights, strict=True):
        check_counts(wrong, max(1, made), 0.5)
        if not wrong <= made <= runs:
            message = f"expected at most one guess a run, got {made} guesses, {wrong} wrong, in {runs} runs"
            raise ParameterError(message, given=made)
        for bet in bets:
            size = bet / (odds + delta)
            right = (made - wrong) * math.log1p(size * (1 - delta))
            withheld = (runs - made) * math.log1p(
                -bet * delta / (1 + delta)
            )  # as at ε = 0: the e-value falls as ε grows
            terms.append(math.log(weight / len(bets)) + right + wrong * math.log1p(-bet) + withheld)
    log_value = _log_sum(terms)
    return log_value - _SLACK * (1 + max(abs(term) for term in terms))


def log_e_value_on_the_curve(errors: int, runs: int, *, mu: float, bets: Sequence[float] = BETS) -> float:
    """Logarithm of the e-value against the claim of μ-GDP from guesses in every run, rounded down.

    A guess of a fair bit is right with probability at most Φ(μ/2) in every run, as for a mechanism with e^ε =
    Φ(μ/2)/Φ(−μ/2).
    """
    return log_e_value((errors,), (runs,), runs, plan=SIGNS, epsilon=_odds(mu), bets=bets, delta=0.0)


def anytime_epsilon(
    errors: Sequence[int],
    guesses: Sequence[int],
    runs: int,
    *,
    plan: GuessPlan,
    alpha: float,
    delta: float,
    bets: Sequence[float] = BETS,
) -> float:
    """Largest ε that the e-process refutes, rounded down: an anytime-valid lower bound."""

    def refutes(epsilon: float) -> bool:
        return _refutes(
            log_e_value(errors, guesses, runs, plan=plan, epsilon=epsilon, delta=delta, bets=bets), alpha=alpha
        )

    return find_largest_refuted(refutes)


def anytime_mu(errors: int, runs: int, *, alpha: float, bets: Sequence[float] = BETS) -> float:
    """Largest μ that the e-process refutes, rounded down: an anytime-valid lower bound."""
    return find_largest_refuted(
        lambda mu: _refutes(log_e_value_on_the_curve(errors, runs, mu=mu, bets=bets), alpha=alpha)
    )


def log_average(e_values: Sequence[float]) -> float:
    """Logarithm of the mean of e-values given as logarithms: combines several pairs without a Bonferroni correction."""
    return _log_sum(e_values) - math.log(len(e_values))


def _log_sum(terms: Sequence[float]) -> float:
    top = max(terms)
    return top + math.log(math.fsum(math.exp(term - top) for term in terms))


def _refutes(e_value: float, *, alpha: float) -> bool:
    if not 0 < alpha < 1:
        raise ParameterError(f"expected alpha in (0, 1), got {alpha!r}", name="alpha", given=alpha)
    return e_value >= -math.log(alpha)


def _odds(mu: float) -> float:
    return float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))


def find_largest_refuted(refutes: Callable[[float], bool]) -> float:
    """Largest refuted loss from 0 to 60, rounded down; losses above a refuted one need not be refuted."""
    if not refutes(0.0):
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return low
