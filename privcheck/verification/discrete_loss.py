"""What a pair loses by noise on the integers, from below: the exact laws of the coordinates, together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from privcheck.mechanisms import DiscreteGaussianNoise, DiscreteLaplaceNoise
from privcheck.procedures import Outcomes
from privcheck.releases import Release
from privcheck.statistics import SparseDifference
from privcheck.verification.outcome_loss import Part, pair_delta, pair_epsilon


def discrete_loss(
    releases: Sequence[Release],
    moved: Mapping[str, SparseDifference],
    values: Mapping[str, Fraction],
    delta: float | None,
) -> float:
    """Returns ε at δ of all coordinates with noise on the integers together, rounded down.

    An attacker may look at those alone; their laws are independent, and their losses add up.

    Args:
        releases: Of a pair, those that are looked at.
        moved: Their changes.
        values: The parameters.
        delta: In (0, 1), rounded up; None asks for δ at ε = 0.
    """
    parts = discrete_parts(releases, moved, values)
    if not parts:
        return 0.0
    (outcomes, rounds), *beside = parts
    if delta is None:
        return pair_delta(outcomes, rounds, 0.0, beside)
    return pair_epsilon(outcomes, rounds, delta, beside)


def discrete_parts(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> list[Part]:
    """Returns the law of a coordinate of each noise on the integers and each change, with how many there are."""
    counts: dict[tuple[DiscreteGaussianNoise | DiscreteLaplaceNoise, int], int] = {}
    for release in releases:
        noise, change = release.mechanism.at(values), moved[release.name]
        if not isinstance(noise, DiscreteGaussianNoise | DiscreteLaplaceNoise) or not change.times:
            continue
        sizes, times = np.unique(np.rint(np.abs(change.change)), return_counts=True)
        for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
            if size:
                counts[noise, int(size)] = counts.get((noise, int(size)), 0) + count * change.times
    laws = [(noise.moved_law(size), rounds) for (noise, size), rounds in counts.items()]
    return [(Outcomes(log_p=law[0], log_q=law[1]), rounds) for law, rounds in laws if law is not None]
