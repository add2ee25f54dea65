"""Privacy losses on a grid, rounded up for one bound and down for the other, and convolved."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import ndtr
from scipy.stats import binom

STEP = 1 / 1000


class Loss:
    """A privacy loss on a grid: masses of k·STEP from `first` on, and a mass at ∞."""

    def __init__(self, first: int, masses: np.ndarray, infinite: float) -> None:
        self.first, self.masses, self.infinite = first, masses, infinite

    def plus(self, other: Loss) -> Loss:
        """Returns the loss of two independent outputs."""
        masses = np.clip(fftconvolve(self.masses, other.masses), 0.0, None)
        return Loss(self.first + other.first, masses, 1 - (1 - self.infinite) * (1 - other.infinite))

    def repeated(self, times: int) -> Loss:
        """Returns that of so many."""
        found, power = Loss(0, np.ones(1), 0.0), self
        while times:
            found = found.plus(power) if times & 1 else found
            times >>= 1
            power = power.plus(power) if times else power
        return found

    def delta(self, epsilon: float) -> float:
        """Returns E[(1 − e^(ε − loss))⁺]."""
        losses = (self.first + np.arange(len(self.masses))) * STEP
        gains = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0)), 0.0)
        return float(self.masses @ gains) + self.infinite


def placed(losses: np.ndarray, masses: np.ndarray, *, up: bool, infinite: float = 0.0) -> Loss:
    """Returns masses at losses on the grid."""
    at = (np.ceil(losses / STEP - 1e-9) if up else np.floor(losses / STEP + 1e-9)).astype(int)
    first = int(at.min())
    return Loss(first, np.bincount(at - first, weights=masses), infinite)


@functools.lru_cache(maxsize=512)
def laplace_loss(t: float, *, up: bool) -> Loss:
    """Returns the loss of Lap(0, 1) against Lap(t, 1)."""
    edges = np.linspace(-t, t, max(2, int(8 * t / STEP) + 2))
    below = 0.5 * np.exp(-(t - edges) / 2)  # P(loss ≤ y), y < t
    masses = np.diff(below)
    losses = np.concatenate([[-t], edges[1:] if up else edges[:-1], [t]])
    return placed(losses, np.concatenate([[below[0]], masses, [0.5]]), up=up)


@functools.lru_cache(maxsize=512)
def gaussian_loss(mu: float, *, up: bool) -> Loss:
    """Returns the loss of N(μ, 1) against N(0, 1): N(μ²/2, μ²)."""
    edges = mu * mu / 2 + mu * np.linspace(-9, 9, max(2, int(18 * mu / STEP * 4)))
    masses = np.diff(ndtr((edges - mu * mu / 2) / mu))
    return placed(edges[1:] if up else edges[:-1], masses, up=up, infinite=float(ndtr(-9.0)) * 2 if up else 0.0)


@functools.lru_cache(maxsize=512)
def bits_loss(trials: int, p: float, rising: bool, *, up: bool) -> Loss:  # noqa: FBT001
    """Returns the loss of Bin(N, p) + 1 against Bin(N, p), or the other way round."""
    values = np.arange(trials + 2)
    with_one, without = binom.pmf(values - 1, trials, p), binom.pmf(values, trials, p)
    first, second = (with_one, without) if rising else (without, with_one)
    seen = (first > 0) & (second > 0)
    return placed(
        np.log(first[seen]) - np.log(second[seen]), first[seen], up=up, infinite=float(first[(second == 0)].sum())
    )


@functools.lru_cache(maxsize=512)
def integers_loss(users: int, bits: int, p: float, rising: bool, others: int, *, up: bool) -> Loss:  # noqa: FBT001
    """Returns the loss of the sorted messages of one counter, the changed user's bit 1 against 0 or the other way."""
    laws: list[dict[Any, float]] = []
    for own in (1, 0) if rising else (0, 1):
        law: dict[Any, float] = {}
        for noise in itertools.product(range(bits + 1), repeat=users):
            held = (own, *(1 if i < others else 0 for i in range(users - 1)))
            mass = math.prod(float(binom.pmf(y, bits, p)) for y in noise)
            messages = tuple(sorted(b + y for b, y in zip(held, noise, strict=True)))
            law[messages] = law.get(messages, 0.0) + mass
        laws.append(law)
    both = [m for m in laws[0] if m in laws[1]]
    alone = math.fsum(mass for m, mass in laws[0].items() if m not in laws[1])
    masses = np.array([laws[0][m] for m in both])
    losses = np.array([math.log(laws[0][m] / laws[1][m]) for m in both])
    return placed(losses, masses, up=up, infinite=alone) if both else Loss(0, np.zeros(1), alone)
