"""Lower bounds on the loss of a composition: the sum of independent losses, rounded down, exactly or on a lattice.

Independent releases add their losses L = ln P/Q, and δ(ε) = E over P of (1 − e^(ε − L))₊. Sums are taken on a lattice
by one Fourier transform.

Lemma merged-outcomes: If losses are put on the lattice by distinguishing fewer outcomes, δ(ε) is no larger, in every
composition: neighbouring outcomes are merged, parts of one if need be, until the merged loss is a point of the lattice.
Proof: data processing.

So no release's mean loss is rounded away, however many there are. For losses that are hardly ever large that merges
them with all others: there losses rounded down give more. The larger bound counts. The rounding error of the transform,
and the mass outside the lattice's ends, are subtracted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.laws import Floats

_POINTS: Final = 2**20  # of the lattice on which losses of several rounds add up
_LEFT_OUT: Final = 1e-13  # probability of sums beyond either end of the lattice, at most
_TRANSFORMED: Final = 2.0**-52 * 20  # error of a Fourier transform of so many points, relative to the law's ℓ₁ norm
_SPARE: Final = 4096  # of them, for what merging does to the ends
_COARSE: Final = 0.1  # nats between points of the lattice, beyond which losses are rounded down, not merged
_WIDEST: Final = 1e3  # … and so wide a lattice says nothing
_TILTS: Final = np.geomspace(1e-3, 1e3, 61)
_EACH: Final = 1e-13  # rounding of one round's loss, in nats
_FEW: Final = 64  # rounds that may be told apart outcome by outcome
_CLOSE: Final = 1e-13  # to an ε, relatively and in nats
_NOTHING: Final = -800.0  # below ln of every share of δ that floats hold

Shared = tuple[Floats, Floats, int]  # losses that both neighbours may make, their masses under D, and the releases
Put = Callable[[Floats, Floats, float], tuple[NDArray[np.int64], Floats]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossSum:
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


def loss_sums(parts: Sequence[Shared], *, direct: int | None) -> tuple[LossSum, ...]:
    """Laws of the sum of all losses, each of which has a δ that is a lower bound.

    Args:
        parts: Losses with their masses, and the number of times each is added.
        direct: Number of outcomes up to which all are kept separate; None for any number.
    """
    size = math.prod(losses.size**rounds if rounds < _FEW else math.inf for losses, _, rounds in parts)
    if direct is None or size <= direct or not size:
        return (_add_directly(parts),)
    return tuple(_add_up(parts, put=put) for put in (merge_outcomes, _round_down))


def refuted_epsilon(delta_of: Callable[[float], float], delta: float) -> float:
    """An ε at which δ(ε) is above δ, so that no smaller one holds at δ; 0 if none is known, ∞ if no ε holds.

    Args:
        delta_of: Lower bound on δ(ε), also at ∞.
        delta: In (0, 1), rounded up.
    """
    from scipy.optimize import brentq

    if not delta_of(0.0) > delta:
        return 0.0
    if delta_of(math.inf) > delta:
        return math.inf
    low, high = 0.0, 1.0
    while delta_of(high) > delta:
        low, high = high, 2 * high
    most = low

    def excess(epsilon: float) -> float:
        nonlocal most
        found = delta_of(epsilon)
        if found > delta:
            most = max(most, epsilon)
        return math.log(found / delta) if found > 0 else _NOTHING

    # some 15 passes over all losses where halves take 60; the answer is an ε that was looked at, whatever the root is
    root = float(brentq(excess, low, high, xtol=_CLOSE, rtol=_CLOSE))
    excess(max(low, root - 2 * _CLOSE * (1 + root)))
    return most


def _add_directly(parts: Sequence[Shared]) -> LossSum:
    """Law of the sum of few losses, with every outcome kept separate."""
    losses, masses = np.zeros(1), np.ones(1)
    for one, law, rounds in parts:
        for _ in range(rounds):
            losses, masses = np.add.outer(losses, one).ravel(), np.multiply.outer(masses, law).ravel()
    several = sum(rounds for _, _, rounds in parts) > 1
    losses = losses - np.abs(losses) * 1e-14 - _EACH if several else losses
    order = np.argsort(losses, kind="stable")
    return LossSum(losses=losses[order], masses=masses[order])


def _add_up(parts: Sequence[Shared], *, put: Put) -> LossSum:
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
        if not step < _WIDEST:  # so many rounds, each rounded down, spread over more steps than there are
            return LossSum(losses=np.zeros(1), masses=np.zeros(1))
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
    return LossSum(losses=values[kept], masses=ordered[kept], off=2 * _LEFT_OUT + math.sqrt(_POINTS) * back)


def _ends(parts: Sequence[Shared]) -> tuple[float, float]:
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


def _reach(parts: Sequence[Shared], sign: int) -> float:
    """Bound exceeded by the sum of all losses, or of all losses negated, with probability at most `_LEFT_OUT`."""
    known = [(np.log(masses / float(masses.sum())), sign * losses, rounds) for losses, masses, rounds in parts]
    bounds = [
        (math.fsum(rounds * log_sum(logs + t * losses) for logs, losses, rounds in known) - math.log(_LEFT_OUT)) / t
        for t in _TILTS.tolist()
    ]
    return float(min(bounds))


def log_sum(logs: Floats) -> float:
    """Logarithm of the sum of the exponentials."""
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))
