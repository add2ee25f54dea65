"""Parities: which product of signs, or sum of bits modulo 2, tells the neighbours apart, whatever each part says alone.

Noise that hides every number and not their joint sign, a secret shared over several bits and a linear hash with a
public seed leak like this, and no learner that goes from one column to the next finds it. Of up to 18 bits all 2¹⁸
subsets are tried at once by the fast Walsh–Hadamard transform; of more, all pairs and triples. What the best of so many
would show by chance is left alone: a parity that was only lucky would mislead the learners after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

_WHOLE: Final = 18  # bits of which every subset is tried
_DIGITS: Final = 16  # of an integer
PARITIES: Final = 3  # that become features
_LOOK: Final = 20_000  # runs
_TRIPLES: Final = 8_000  # runs that pairs and triples are searched on
_LUCK: Final = 1.2  # times what the luckiest of all subsets shows by chance

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parities:
    """From outputs (runs, m) to a few parities (runs, 3).

    Attributes:
        columns: (bits,) where each bit comes from.
        digits: (bits,) which binary digit of an integer it is; −1 where it says whether the value is above the limit.
        limits: (bits,).
        chosen: (3, bits) which bits each parity adds up; none where no more tell anything.
    """

    columns: NDArray[np.int64]
    digits: NDArray[np.int64]
    limits: Array
    chosen: NDArray[np.int64]

    def __call__(self, x: Array) -> Array:
        """Returns each parity, 0 or 1."""
        used = np.flatnonzero(self.chosen.any(axis=0))
        parities: Array = ((self.bits(x, used).astype(np.int64) @ self.chosen[:, used].T) % 2).astype(np.float64)
        return parities

    def bits(self, x: Array, used: NDArray[np.int64]) -> Bits:
        """Returns some of the bits (runs, used)."""
        bits = np.empty((x.shape[0], used.size), dtype=np.bool_)
        for at, bit in enumerate(used):
            values = x[:, self.columns[bit]]
            digit = self.digits[bit]
            bits[:, at] = values > self.limits[bit] if digit < 0 else np.floor(np.ldexp(values, -int(digit))) % 2 == 1
        return bits


def learn_parities(x: Array, secret: Bits) -> Parities:
    """Returns the parities that tell most.

    Args:
        x: (runs, m) training runs.
        secret: (runs,) whether each was on D.
    """
    part = slice(0, _LOOK)
    x, known = x[part], secret[part]
    wide = x.shape[1]
    low, high = x.min(axis=0), x.max(axis=0)
    middle = np.median(x, axis=0)
    of_two = ((x == low) | (x == high)).all(axis=0)
    limits = np.where(of_two, (low + high) / 2, middle)
    columns, digits = list(range(wide)), [-1] * wide
    whole = np.flatnonzero((x == np.rint(x)).all(axis=0) & ~of_two)
    for digit in range(_DIGITS):  # the last digits of all integers first
        for column in whole:
            if len(columns) < _WHOLE and 2.0**digit <= high[column] - low[column]:
                columns.append(int(column))
                digits.append(digit)
    every = Parities(
        columns=np.array(columns),
        digits=np.array(digits),
        limits=limits[columns],
        chosen=np.zeros((PARITIES, len(columns)), dtype=np.int64),
    )
    bits = every.bits(x, np.arange(len(columns)))
    chosen = _all_subsets(bits, known) if len(columns) <= _WHOLE else _small_subsets(bits, known)
    return Parities(columns=every.columns, digits=every.digits, limits=every.limits, chosen=chosen)


def _all_subsets(bits: Bits, secret: Bits) -> NDArray[np.int64]:
    """Returns the subsets whose parity is most correlated with the hidden bit: the largest Walsh–Hadamard terms."""
    number = bits.shape[1]
    cell = bits.astype(np.int64) @ (1 << np.arange(number))
    weight = np.where(secret, 1 / max(1, secret.sum()), -1 / max(1, (~secret).sum()))
    table = np.bincount(cell, weights=weight, minlength=1 << number)
    for bit in range(number):
        halves = table.reshape(-1, 2, 1 << bit)
        table = np.stack([halves[:, 0] + halves[:, 1], halves[:, 0] - halves[:, 1]], axis=1).reshape(-1)
    size = np.abs(table)
    size[0] = -1.0
    best = np.argsort(-size, kind="stable")[:PARITIES]
    best = best[size[best] > _luck(table.size, secret)]
    subsets = (best[:, None] >> np.arange(number)) & 1
    return np.concatenate([subsets, np.zeros((PARITIES - subsets.shape[0], number), dtype=np.int64)])


def _small_subsets(bits: Bits, secret: Bits) -> NDArray[np.int64]:
    """Returns the pairs and triples whose parity is most correlated with the hidden bit."""
    part = slice(0, _TRIPLES)
    signs = np.where(bits[part], 1.0, -1.0)
    weight = np.where(secret[part], 1 / max(1, secret[part].sum()), -1 / max(1, (~secret[part]).sum()))
    number = signs.shape[1]
    ranked: list[tuple[float, tuple[int, ...]]] = []
    pairs = np.abs((signs * weight[:, None]).T @ signs)
    for first in range(number):
        later = np.triu(np.abs((signs * (weight * signs[:, first])[:, None]).T @ signs), 1)
        later[: first + 1] = 0.0
        second, third = np.unravel_index(int(later.argmax()), later.shape)
        ranked.append((float(later[second, third]), (first, int(second), int(third))))
        if first + 1 < number:
            other = first + 1 + int(pairs[first, first + 1 :].argmax())
            ranked.append((float(pairs[first, other]), (first, other)))
    chosen = np.zeros((PARITIES, number), dtype=np.int64)
    least = _luck(number**3, secret[part])
    for row, (size, subset) in enumerate(sorted(ranked, reverse=True)[:PARITIES]):
        if size > least:
            chosen[row, list(subset)] = 1
    return chosen


def _luck(subsets: int, secret: Bits) -> float:
    """Returns how far the means of a sign on D and on D′ are apart, for the luckiest of so many that tell nothing."""
    error = math.sqrt(1 / max(1, secret.sum()) + 1 / max(1, (~secret).sum()))
    return _LUCK * error * math.sqrt(2 * math.log(2 * subsets))
