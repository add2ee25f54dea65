"""Lower bounds on the loss of a pair with known output laws: exact for one round, on a lattice for many.

Independent rounds add their losses (`privcheck.accounting.engine.below`), and outputs of other mechanisms `beside` them
likewise: all draws are independent given the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from privcheck.accounting.engine.below import Shared, log_sum, loss_sums, refuted_epsilon
from privcheck.accounting.engine.laws import Floats
from privcheck.declare.procedures import Outcomes
from privcheck.verification.units import refuted_mu

_DOWN: Final = 1 - 1e-9  # covers the roundings of the outcomes' probabilities and of sums over them
_ORDERS: Final = np.concatenate(
    [1 + np.geomspace(1e-3, 1.0, 13), np.geomspace(2.5, 256.0, 21), np.geomspace(300, 1e9, 60)]
)
_MOST: Final = 10**9  # rounds
_LEAST: Final = 1e-290  # mass below which an outcome is left out, where many rounds are added up
_ROUNDED: Final = 2.0**-48  # of a logarithm of a probability, far from 0
_NEAR_ZERO: Final = 1e-11  # … near 0, of a cell a thousandth of a standard deviation wide
_DIRECT: Final = 2**18  # outcomes of several rounds that are told apart one by one
_NEAR_ONE: Final = 1e-9  # α − 1 below which D_α is taken for that of α → 1, which is less

Part = tuple[Outcomes, int]  # the laws of one round, and how many rounds


def pure_loss(outcomes: Outcomes, rounds: int, beside: Sequence[Part] = ()) -> float:
    """Largest loss of `rounds` rounds, in nats, rounded down; ∞ if an output of D is impossible under D′.

    Args:
        outcomes: The laws of one round.
        rounds: Number of rounds.
        beside: Further independent outcomes, with their rounds.
    """
    ways = [largest_losses(part) for part in ((outcomes, rounds), *beside)]
    return max(0.0, math.fsum(first for first, _ in ways), math.fsum(second for _, second in ways)) * _DOWN


def largest_losses(part: Part) -> tuple[float, float]:
    """Largest loss of D against D′ and of D′ against D, over all rounds, each rounded down."""
    outcomes, rounds = part
    possible = np.isfinite(outcomes.log_p) | np.isfinite(outcomes.log_q)
    p, q = outcomes.log_p[possible], outcomes.log_q[possible]
    digits = np.where(np.isfinite(p) & np.isfinite(q), np.abs(p) + np.abs(q), 0.0) * 2.0**-50
    losses = _losses(outcomes)[possible]
    first, second = (max(0.0, float((way - digits).max()) - _NEAR_ZERO) for way in (losses, -losses))
    return rounds * first, rounds * second


def rho_loss(outcomes: Outcomes, rounds: int, beside: Sequence[Part] = ()) -> float:
    """Least ρ for which these rounds can be ρ-zCDP: sup over orders of D_α/α, rounded down."""
    parts = [(outcomes, rounds), *beside]
    if any(_impossible(one) for one, _ in parts):
        return math.inf
    sums = np.sum([_divergences(one) * many for one, many in parts], axis=0)
    return max(0.0, float(sums.max())) * _DOWN


def _divergences(outcomes: Outcomes) -> Floats:
    """D_α/α of one round, first for α → 1, then for `_ORDERS`; each rounded down."""
    kept = np.isfinite(outcomes.log_p)
    p, q, losses = outcomes.log_p[kept], outcomes.log_q[kept], _losses(outcomes)[kept]
    digits = (np.abs(p) + np.abs(q)) * _ROUNDED + _NEAR_ZERO
    with np.errstate(under="ignore"):
        found = [float(np.exp(p) @ losses)]  # α → 1
    p, losses = p - digits, losses - digits
    found += [log_sum(p + (order - 1) * losses) / (order - 1) / order for order in _ORDERS.tolist()]
    return np.array(found) - _NEAR_ZERO


def renyi_loss(outcomes: Outcomes, rounds: int, order: float, beside: Sequence[Part] = ()) -> float:
    """D_α of `rounds` rounds, rounded down.

    Args:
        outcomes: The laws of one round.
        rounds: Number of rounds.
        order: α, above 1, rounded down.
        beside: As for `pure_loss`.
    """
    parts = [(outcomes, rounds), *beside]
    if any(_impossible(one) for one, _ in parts):
        return math.inf
    return max(0.0, math.fsum(many * _divergence(one, order) for one, many in parts)) * _DOWN


def _divergence(outcomes: Outcomes, order: float) -> float:
    kept = np.isfinite(outcomes.log_p)
    p, losses = outcomes.log_p[kept], _losses(outcomes)[kept]
    with np.errstate(under="ignore"):
        least = float(np.exp(p) @ losses) - 1e-12  # α → 1: where digits cancel in the other
    digits = (np.abs(p) + np.abs(outcomes.log_q[kept])) * 2.0**-50  # far out they are few
    p, losses = p - digits, losses - digits
    rest = order - 1
    if rest < _NEAR_ONE:  # where all of them do
        return least
    return max(least, log_sum(p + rest * losses) / rest - 1e-12 * (1 + 1 / rest))


def mu_loss(outcomes: Outcomes, rounds: int, beside: Sequence[Part] = ()) -> float:
    """A μ below which `rounds` rounds are not μ-GDP: a point of their curve lies above that of any smaller μ."""
    parts = ((outcomes, rounds), *beside)
    if any(_impossible(one) for one, _ in parts):
        return math.inf
    sums = LossSums(parts)
    last = max((float(law.losses.max(initial=0.0)) for law in sums.laws), default=0.0)
    return refuted_mu(sums.delta, last)


def pair_delta(outcomes: Outcomes, rounds: int, epsilon: float, beside: Sequence[Part] = ()) -> float:
    """δ(ε) of `rounds` rounds, rounded down.

    Args:
        outcomes: The laws of one round.
        rounds: Number of rounds.
        epsilon: In nats, at least 0.
        beside: As for `pure_loss`.
    """
    return LossSums(((outcomes, rounds), *beside)).delta(epsilon)


def pair_epsilon(outcomes: Outcomes, rounds: int, delta: float, beside: Sequence[Part] = ()) -> float:
    """An ε at which δ(ε) is above δ, so that no smaller one holds at δ; 0 if none is known, ∞ if no ε holds.

    Args:
        outcomes: The laws of one round.
        rounds: Number of rounds.
        delta: In (0, 1), rounded up.
        beside: As for `pure_loss`.
    """
    return LossSums(((outcomes, rounds), *beside)).epsilon(delta)


class LossSums:
    """Sum of the rounds' losses under D, exactly or on a lattice in two ways, and the outputs impossible under D′.

    To add up many rounds takes far longer than one look at δ(ε): make it once for all questions about a pair.
    """

    def __init__(self, given: Sequence[Part]) -> None:
        parts: list[Shared] = []
        hidden = 0.0
        several = len(given) > 1 or given[0][1] > 1
        for outcomes, rounds in given:
            possible = np.isfinite(outcomes.log_p)
            losses, masses = _losses(outcomes)[possible], np.exp(outcomes.log_p[possible])
            certain = float(masses[np.isposinf(losses)].sum())
            hidden += rounds * math.log1p(-certain) if certain < 1 else -math.inf
            shared = np.isfinite(losses) & (masses > (_LEAST if several else 0.0))
            parts.append((losses[shared], masses[shared], min(rounds, _MOST)))  # fewer rounds lose no more
        self.certain = -math.expm1(hidden)
        self.laws = loss_sums(parts, direct=_DIRECT if several else None)

    def delta(self, epsilon: float) -> float:
        """δ(ε), rounded down."""
        if math.isinf(epsilon):
            return self.certain * _DOWN
        return max(0.0, self.certain + max(law.delta(epsilon) for law in self.laws)) * _DOWN

    def epsilon(self, delta: float) -> float:
        """An ε at which δ(ε) is above δ, so that no smaller one holds at δ; 0 if none is known, ∞ if no ε holds."""
        return refuted_epsilon(self.delta, delta)


def _losses(outcomes: Outcomes) -> Floats:
    """Losses ln P/Q of the outcomes; NaN for outcomes impossible under both."""
    with np.errstate(invalid="ignore"):
        losses: Floats = outcomes.log_p - outcomes.log_q
    return losses


def _impossible(outcomes: Outcomes) -> bool:
    return bool((np.isfinite(outcomes.log_p) & np.isneginf(outcomes.log_q)).any())
