"""Lower bounds on the loss of a pair with known output laws: exact for one round, on a lattice for many.

Independent rounds add their losses L = ln P/Q, and δ(ε) = E over D of (1 − e^(ε − L))₊. Sums are taken on a lattice by
one Fourier transform. Losses are put on the lattice by distinguishing fewer outcomes, which loses no more (data
processing, in every composition): neighbouring outcomes are merged, parts of one if need be, until the merged loss is a
point of the lattice. So no round's mean loss is rounded away, however many rounds there are. For users who are hardly
ever sampled that merges the rounds with them with all others: there losses rounded down give more. The larger bound
counts. The rounding error of the transform, and the mass outside the lattice's ends, are subtracted.

Outputs of other mechanisms `beside` it add their losses likewise: all draws are independent given the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures import Outcomes
from privcheck.verification.units import refuted_mu

_DOWN: Final = 1 - 1e-9  # covers the roundings of the outcomes' probabilities and of sums over them
_POINTS: Final = 2**20  # of the lattice on which losses of several rounds add up
_LEFT_OUT: Final = 1e-13  # probability of sums beyond either end of the lattice, at most
_TRANSFORMED: Final = 2.0**-52 * 20  # error of a Fourier transform of so many points, relative to the law's ℓ₁ norm
_ORDERS: Final = np.concatenate(
    [1 + np.geomspace(1e-3, 1.0, 13), np.geomspace(2.5, 256.0, 21), np.geomspace(300, 1e9, 60)]
)
_MOST: Final = 10**9  # rounds
_SPARE: Final = 4096  # of them, for what merging does to the ends
_COARSE: Final = 0.1  # nats between points of the lattice, beyond which losses are rounded down, not merged
_LEAST: Final = 1e-290  # mass below which an outcome is left out, where many rounds are added up
_ROUNDED: Final = 2.0**-48  # of a logarithm of a probability, far from 0
_NEAR_ZERO: Final = 1e-11  # … near 0, of a cell a thousandth of a standard deviation wide
_TILTS: Final = np.geomspace(1e-3, 1e3, 61)
_DIRECT: Final = 2**18  # outcomes of several rounds that are told apart one by one
_FEW: Final = 64  # rounds that may be
_EACH: Final = 1e-13  # rounding of one round's loss, in nats
_CLOSE: Final = 1e-13  # to an ε, relatively and in nats
_NOTHING: Final = -800.0  # below ln of every share of δ that floats hold
_NEAR_ONE: Final = 1e-9  # α − 1 below which D_α is taken for that of α → 1, which is less

Floats = NDArray[np.float64]
Part = tuple[Outcomes, int]  # the laws of one round, and how many rounds
_Shared = tuple[Floats, Floats, int]  # losses that both neighbours may make, their masses under D, and the rounds
Put = Callable[[Floats, Floats, float], tuple[NDArray[np.int64], Floats]]


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
    found += [_log_sum(p + (order - 1) * losses) / (order - 1) / order for order in _ORDERS.tolist()]
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
    return max(least, _log_sum(p + rest * losses) / rest - 1e-12 * (1 + 1 / rest))


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Law:
    """A law of the sum of the losses under D, with a δ that is a lower bound.

    Attributes:
        losses: (m,) values, ascending.
        masses: (m,) their probabilities.
        off: Amount by which the masses may be too large in total.
    """

    losses: Floats
    masses: Floats
    off: float = 0.0

    def delta(self, epsilon: float) -> float:
        """E (1 − e^(ε − L))₊, rounded down."""
        above = int(np.searchsorted(self.losses, epsilon, side="right"))
        return float(self.masses[above:] @ -np.expm1(epsilon - self.losses[above:])) - self.off


class LossSums:
    """Sum of the rounds' losses under D, exactly or on a lattice in two ways, and the outputs impossible under D′.

    To add up many rounds takes far longer than one look at δ(ε): make it once for all questions about a pair.
    """

    def __init__(self, given: Sequence[Part]) -> None:
        parts: list[_Shared] = []
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
        size = math.prod(losses.size**rounds if rounds < _FEW else math.inf for losses, _, rounds in parts)
        if size <= _DIRECT or not several or not size:
            self.laws: tuple[_Law, ...] = (_add_directly(parts),)
        else:
            self.laws = tuple(_add_up(parts, put=put) for put in (merge_outcomes, _round_down))

    def delta(self, epsilon: float) -> float:
        """δ(ε), rounded down."""
        if math.isinf(epsilon):
            return self.certain * _DOWN
        return max(0.0, self.certain + max(law.delta(epsilon) for law in self.laws)) * _DOWN

    def epsilon(self, delta: float) -> float:
        """An ε at which δ(ε) is above δ, so that no smaller one holds at δ; 0 if none is known, ∞ if no ε holds."""
        from scipy.optimize import brentq

        if not self.delta(0.0) > delta:
            return 0.0
        if self.delta(math.inf) > delta:
            return math.inf
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2 * high
        most = low

        def excess(epsilon: float) -> float:
            nonlocal most
            found = self.delta(epsilon)
            if found > delta:
                most = max(most, epsilon)
            return math.log(found / delta) if found > 0 else _NOTHING

        # some 15 passes over all losses where halves take 60; whatever the root is, the answer is an ε that was tried
        root = float(brentq(excess, low, high, xtol=_CLOSE, rtol=_CLOSE))
        excess(max(low, root - 2 * _CLOSE * (1 + root)))
        return most


def _add_directly(parts: Sequence[_Shared]) -> _Law:
    """Law of the sum of few losses, with every outcome kept separate."""
    losses, masses = np.zeros(1), np.ones(1)
    for one, law, rounds in parts:
        for _ in range(rounds):
            losses, masses = np.add.outer(losses, one).ravel(), np.multiply.outer(masses, law).ravel()
    several = sum(rounds for _, _, rounds in parts) > 1
    losses = losses - np.abs(losses) * 1e-14 - _EACH if several else losses
    order = np.argsort(losses, kind="stable")
    return _Law(losses=losses[order], masses=masses[order])


def _add_up(parts: Sequence[_Shared], *, put: Put) -> _Law:
    """Law of the sum of all losses, each put on the lattice.

    The lattice spans a range that the sum leaves with a probability of at most `_LEFT_OUT` at either end (Chernoff's
    bound); a sum beyond it wraps around to the other end, so that this probability is subtracted.
    """
    low, high = _ends(parts)
    step = max((high - low) / (_POINTS - _SPARE), 1e-12)
    while True:
        placed = put if step <= _COARSE else _round_down
        on_points = [(*placed(losses, masses, step), rounds) for losses, masses, rounds in parts]
        low, high = _ends([(step * points.astype(np.float64), merged, n) for points, merged, n in on_points])
        if high - low <= step * (_POINTS - 8):  # of these, whose low end may lie lower
            break
        step *= 1.25
    start = math.floor(low / step) - 4
    transformed = []
    for points, merged, rounds in on_points:
        law = np.zeros(_POINTS)
        np.add.at(law, points % _POINTS, merged)
        transformed.append((np.fft.rfft(law), rounds))
    total = sum(rounds for _, rounds in transformed)
    powers = [transform**rounds for transform, rounds in transformed]
    summed: Floats = np.fft.irfft(math.prod(powers[1:], start=powers[0]), _POINTS).astype(np.float64)
    values: Floats = step * (start + np.arange(_POINTS, dtype=np.float64))
    values -= np.abs(values) * 1e-14 + total * _EACH
    ordered: Floats = np.roll(summed, -(start % _POINTS))
    # one error a coefficient, grown by the powers, then back: ‖·‖₁ is at most √points times ‖·‖₂ (Parseval)
    largest = [np.abs(transform) + _TRANSFORMED for transform, _ in transformed]
    whole = [size**rounds for size, (_, rounds) in zip(largest, transformed, strict=True)]
    grown = np.zeros_like(largest[0])
    for i, (size, (_, rounds)) in enumerate(zip(largest, transformed, strict=True)):
        others = math.prod(whole[:i] + whole[i + 1 :], start=np.ones_like(size))
        grown += rounds * size ** (rounds - 1) * _TRANSFORMED * others
    back = math.sqrt(2 * float(grown @ grown) / _POINTS) + _TRANSFORMED * float(np.linalg.norm(summed))
    kept = ordered > 0
    return _Law(losses=values[kept], masses=ordered[kept], off=2 * _LEFT_OUT + math.sqrt(_POINTS) * back)


def _ends(parts: Sequence[_Shared]) -> tuple[float, float]:
    """Bounds that the sum of all losses exceeds with a probability of at most `_LEFT_OUT` at either end."""
    least = math.fsum(rounds * float(losses.min()) for losses, _, rounds in parts)
    most = math.fsum(rounds * float(losses.max()) for losses, _, rounds in parts)
    return max(least, -_reach(parts, -1)), min(most, _reach(parts, 1))


def _round_down(losses: Floats, masses: Floats, step: float) -> tuple[NDArray[np.int64], Floats]:
    """Put each outcome on the lattice point below it: δ(ε) increases with the loss."""
    return np.floor(losses / step * (1 - 1e-15 * np.sign(losses))).astype(np.int64), masses


def merge_outcomes(losses: Floats, masses: Floats, step: float) -> tuple[NDArray[np.int64], Floats]:
    """Merge outcomes to a law on multiples of the step that distinguishes fewer; merged ones have loss k·step.

    From the least loss l on: with T = ⌈l/step⌉·step, outcomes are added while Σ p·(1 − e^(T − loss)) < 0, that is while
    ΣP < e^T·ΣQ; of the outcome that takes it above 0 just the part that makes it 0, and the rest begins the next group.
    The last group, if it does not reach T, is put at T − step, below all its losses.

    Args:
        losses: (m,) ln P/Q of the outcomes, finite.
        masses: (m,) P, above 0.
        step: Of the lattice.
    """
    order = np.argsort(losses, kind="stable")
    pending = zip(losses[order].tolist(), masses[order].tolist(), strict=True)
    points, merged = [], []
    target, held, lacking = -math.inf, 0.0, 0.0  # T of the group, its mass, and by how much its sum is below 0
    point = 0
    for loss, whole in pending:
        mass = whole
        if held > 0 and loss > target:
            gain = -mass * math.expm1(target - loss)
            if gain < lacking:
                held, lacking = held + mass, lacking - gain
                continue
            part = min(1.0, lacking / gain)
            points.append(point)
            merged.append(held + part * mass)
            mass, held, lacking = mass * (1 - part), 0.0, 0.0
            if mass <= 0:
                continue
        if held == 0:
            point = math.ceil(loss / step)
            target = point * step
        held, lacking = held + mass, lacking + mass * max(0.0, math.expm1(target - loss))
    if held > 0:
        points.append(point if lacking == 0 else point - 1)
        merged.append(held)
    return np.array(points, dtype=np.int64), np.array(merged)


def _reach(parts: Sequence[_Shared], sign: int) -> float:
    """Bound exceeded by the sum of all losses, or of all losses negated, with probability at most `_LEFT_OUT`."""
    known = [(np.log(masses / float(masses.sum())), sign * losses, rounds) for losses, masses, rounds in parts]
    bounds = [
        (math.fsum(rounds * _log_sum(logs + t * losses) for logs, losses, rounds in known) - math.log(_LEFT_OUT)) / t
        for t in _TILTS.tolist()
    ]
    return float(min(bounds))


def _losses(outcomes: Outcomes) -> Floats:
    """Losses ln P/Q of the outcomes; NaN for outcomes impossible under both."""
    with np.errstate(invalid="ignore"):
        losses: Floats = outcomes.log_p - outcomes.log_q
    return losses


def _impossible(outcomes: Outcomes) -> bool:
    return bool((np.isfinite(outcomes.log_p) & np.isneginf(outcomes.log_q)).any())


def _log_sum(logs: Floats) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
