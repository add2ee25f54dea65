"""One of several laws, drawn independently of the user and revealed to the attacker."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from privcheck.accounting.engine.laws import (
    UNIT,
    Cells,
    Complex,
    Direction,
    Fading,
    Floats,
    Law,
    Moments,
    Repeat,
    as_complex,
    as_floats,
    merge,
)
from privcheck.errors import ParameterError

_LARGEST: Final = 1e150  # of a mean whose square is taken


@dataclass(frozen=True, slots=True)
class RevealedLaw:
    """Law i with probability wᵢ, under both neighbours: K(z) = ln Σ wᵢ e^{Kᵢ(z)}.

    Lemma revealed-choice: Revealing a law that was drawn independently of the user only helps an attacker. Proof:
    hockey-sticks are jointly convex.

    Attributes:
        weights: w, with sum 1.
        laws: One for every weight.
    """

    weights: tuple[float, ...]
    laws: tuple[Law, ...]

    @property
    def on_one_draw(self) -> Repeat | None:
        """The same choice for all n releases, which also share the draw of the chosen law."""
        return lambda times: replace(self, laws=tuple(_repeat(law, times) for law in self.laws))

    @property
    def symmetric(self) -> bool:
        """Whether all laws are symmetric."""
        return all(law.symmetric for law in self.laws)

    def largest(self, direction: Direction) -> float:
        """Largest loss of all laws."""
        return max(law.largest(direction) for law in self.laws)

    def infinite(self, direction: Direction) -> float:
        """Mass at loss ∞."""
        return math.fsum(w * law.infinite(direction) for w, law in zip(self.weights, self.laws, strict=True))

    def span(self, direction: Direction) -> float:
        """Largest span of all laws."""
        return max(law.span(direction) for law in self.laws)

    def moments(self, c: Floats, direction: Direction) -> Moments:
        """K, K′, K″ at c."""
        moments = [law.moments(c, direction) for law in self.laws]
        logs = np.array([math.log(w) + k for w, (k, _, _) in zip(self.weights, moments, strict=True)])
        total = np.logaddexp.reduce(logs, axis=0)
        with np.errstate(invalid="ignore"):  # where K is ∞
            shares = np.nan_to_num(np.exp(logs - total), nan=1.0)
        means, bends = np.array([m for _, m, _ in moments]), np.array([v for _, _, v in moments])
        means = np.minimum(means, _LARGEST)
        mean = (shares * means).sum(axis=0)
        return as_floats(total), as_floats(mean), as_floats((shares * (bends + (means - mean) ** 2)).sum(axis=0))

    def _shares(self, c: float, direction: Direction) -> Floats:
        """Probabilities of the laws after tilting by e^{cL}."""
        at = np.array([c])
        logs = [
            math.log(w) + float(law.moments(at, direction)[0][0])
            for w, law in zip(self.weights, self.laws, strict=True)
        ]
        return as_floats(np.exp(np.array(logs) - np.logaddexp.reduce(logs)))

    def wave(self, c: float, step: float, count: int, direction: Direction) -> tuple[Complex, float]:
        """K(c + it) − K(c), φ being the mean of the φᵢ."""
        sums, error = np.zeros(count, dtype=np.complex128), 0.0
        shares = self._shares(c, direction)
        for share, law in zip(shares.tolist(), self.laws, strict=True):
            wave, off = law.wave(c, step, count, direction)
            # shares rest on Kᵢ, whose own errors grow with the losses
            sums += share * np.exp(wave)
            error += share * (off + UNIT * (40 + 8 * c * law.span(direction)))
        with np.errstate(divide="ignore"):
            return as_complex(np.log(sums)), error

    def bound_decay(self, c: float, direction: Direction) -> Fading | None:
        """Mean of the bounds of the laws, 1 for laws without a known bound; None where no law has one."""
        parts = [
            (share, law.bound_decay(c, direction))
            for share, law in zip(self._shares(c, direction), self.laws, strict=True)
        ]

        def at(t: float) -> float:
            total = math.fsum(float(share) * (1.0 if part is None else math.exp(part(t))) for share, part in parts)
            return math.log(min(1.0, max(total * (1 + 1e-12), 1e-300)))  # a total that no double holds is below that

        return None if all(part is None for _, part in parts) else at

    def work(self, c: float, longest: float) -> tuple[float, float]:
        """Total cost of all laws."""
        costs = [law.work(c, longest) for law in self.laws]
        return sum(fixed for fixed, _ in costs), sum(each for _, each in costs)

    def cells(self, mesh: float, tail: float, direction: Direction) -> Cells:
        """Build a dominating law on the grid."""
        total: Cells | None = None
        for w, law in zip(self.weights, self.laws, strict=True):
            one = law.cells(mesh, tail, direction)
            one = Cells(start=one.start, masses=one.masses * w, infinite=one.infinite * w)
            total = one if total is None else merge(total, one)
        assert total is not None
        return total


def _repeat(law: Law, times: int) -> Law:
    if (again := law.on_one_draw) is None:
        message = f"no law is known for {times} releases that share a choice of {law!r:.80}"
        raise ParameterError(f"{message}; account for the choice where it is made, once for all of them", given=times)
    return again(times)
