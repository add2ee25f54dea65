"""Balls in bins of a matrix mechanism: the user is in the steps of one of b bins, drawn uniformly, and kept secret.

With equal contributions in all steps of a bin the encoded outputs are noise moved by mᵢ, the sum of the bin's columns.
Observed are the b numbers ⟨mᵢ, output⟩, of which the exact likelihood ratio is a function; two post-processings have
laws that are computed. If no two bins share a row and all have one norm, the numbers are those of an epoch of b batches
with independent noise (`shuffled_epochs`). Else it is the number ⟨Σmᵢ, output⟩.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.mechanisms import GaussianNoise
from privcheck.declare.procedures.base import Array, Outcomes
from privcheck.declare.procedures.mixtures import log_masses, normalised, spaced
from privcheck.declare.procedures.shuffled_epochs import ShuffledEpoch

_SAME: Final = 1e-12  # relative, of norms
_DOWN: Final = 1 - 1e-12  # covers the roundings of a norm of up to 5 000 rows
_CELLS: Final = 2**12
_NEAR: Final = 9.0  # standard deviations
_GAP: Final = 1e-3
_FAR: Final = 1e8
_RATIO: Final = 1.02
_BLOCK: Final = 1 << 22  # numbers at a time


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bins:
    """Means of the encoded outputs with the user in each of the bins.

    Attributes:
        means: (rows, b) in units of the noise.
    """

    means: Array

    def outcomes(self) -> Iterator[tuple[str, Outcomes]]:
        """Yield each observed quantity in words, with its laws with the user and without."""
        gram = self.means.T @ self.means
        norms = np.sqrt(np.diag(gram))
        if not (gram - np.diag(np.diag(gram))).any() and norms.min() >= norms.max() * (1 - _SAME):
            epoch = ShuffledEpoch(
                noise=GaussianNoise(scale=1.0), batches=len(norms), shifts=(float(norms.min()) * _DOWN, 0.0)
            )
            for words, laws in epoch.outcomes():
                yield (
                    words.replace("of an epoch", "of a bin").replace("likelihood ratio of", "likelihood ratios of"),
                    laws,
                )
            return
        yield "test on the projection on the sum of all bins", self._projected(gram)

    def _projected(self, gram: Array) -> Outcomes:
        """Laws of the cell that contains ⟨Σmᵢ, output⟩/|Σmᵢ|."""
        rows = gram.sum(axis=1)
        shifts = rows / math.sqrt(float(rows.sum())) * _DOWN
        places, counts = np.unique(np.round(shifts, 12), return_counts=True)
        least, most = min(0.0, float(places[0])), max(0.0, float(places[-1]))
        far = _NEAR * _RATIO ** np.arange(1, math.ceil(math.log(_FAR / _NEAR) / math.log(_RATIO)))
        parts = [np.linspace(least - _NEAR, most + _NEAR, _CELLS), least - far, most + far]
        edges = spaced(np.concatenate(parts), np.array([0.0]), _GAP)
        noise = GaussianNoise(scale=1.0)
        without, with_user = log_masses(noise, edges), np.full(edges.size + 1, -np.inf)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True):
            with_user = np.logaddexp(with_user, math.log(count / len(shifts)) + log_masses(noise, edges - place))
        return Outcomes(log_p=normalised(with_user), log_q=normalised(without))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinRuns:
    """Runs of the mechanism, scored by the exact likelihood ratio of all outputs.

    Attributes:
        bins: Means of the outputs.
        in_first: Whether the user is in D; else in D′.
    """

    bins: Bins
    in_first: bool

    @property
    def numbers(self) -> int:
        """One per dimension of the means, and the bin."""
        rows, count = self.bins.means.shape
        return int(min(rows, count)) + 1

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them, a block at a time."""
        root: Array = np.asarray(np.linalg.qr(self.bins.means, mode="r"), dtype=np.float64)
        halves = (root * root).sum(axis=0) / 2
        count, size = root.shape[1], max(1, _BLOCK // root.shape[1])
        scores = np.empty(on_first.size)
        for start in range(0, on_first.size, size):
            here = on_first[start : start + size] == self.in_first
            outputs = rng.standard_normal((here.size, root.shape[0]))
            outputs[here] += root.T[rng.integers(count, size=int(here.sum()))]
            exponents = outputs @ root - halves
            top = exponents.max(axis=1)
            ratios = top + np.log(np.exp(exponents - top[:, np.newaxis]).mean(axis=1))
            scores[start : start + size] = ratios if self.in_first else -ratios
        return scores
