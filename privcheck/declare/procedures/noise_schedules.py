"""A statistic released several times with noise that varies from output to output.

The statistic, its sensitivity and the law of its noise are those of the release; its schedule gives the factor on the
standard deviation of each output's noise. Every output contains all users.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.procedures.base import Array, Cost, KnownPair
from privcheck.declare.procedures.charges import charge_of
from privcheck.declare.procedures.noisy_numbers import LOOKED, gaussian_outcomes, laplace_outcomes
from privcheck.declare.relations import LARGEST, LONGEST, Relation, extreme_pairs, most_trajectories
from privcheck.declare.schedules import Once, Outputs
from privcheck.declare.statistics.base import Sensitivity
from privcheck.declare.statistics.sensitivities import tabular_sizes
from privcheck.errors import DeclarationError
from privcheck.terms.symbols import minimum

if TYPE_CHECKING:
    from privcheck.accounting.events import Event
    from privcheck.declare.releases import Release

_MOST: Final = 4096  # Laplace outputs of different noise that are composed one by one; of more the pure sum is charged


def check_varying(release: Release) -> None:
    """Check that noise of the release's law that varies by output has a price.

    Raises:
        DeclarationError: The noise is of another law than Gaussian or Laplace, or it is shared.
    """
    law, where = release.mechanism.law, f"release {release.name!r}"
    if law.name not in {"gaussian", "laplace"}:
        message = f"{where}: noise of the law {law.name!r} that varies by output is not accounted for here"
        raise DeclarationError(f"{message}; declare Gaussian or Laplace noise, or a release for each output")
    if release.draw.name or release.draw.across:
        message = f"{where}: noise that varies by output is drawn afresh for each"
        raise DeclarationError(f"{message}; leave `draw` out")


def varying_cost(release: Release, relation: Relation) -> Cost:
    """Sum of the outputs' costs, where output t has c_t times the standard deviation.

    Gaussian: μ² = Σ Δ²/(c_t σ)² (Dong, Roth & Su 2022, Corollary 3.3), ρ half of it. Laplace: ε = Σ Δ₁/(c_t b), and
    ρ the least of ε and Σ (Δ₁/(c_t b))²/2 (Bun & Steinke 2016, Proposition 1.4).
    """
    outputs = _outputs(release)
    one, mechanism = _moved(release, relation), release.mechanism
    pure, square = mechanism.pure(one), mechanism.gdp_squared(one)
    sensitivity, squares = release.statistic.sensitivity(relation), outputs.sum_inverse(2)
    charged = getattr(sensitivity, mechanism.law.norm)
    if pure is None:
        assert square is not None
        mu_squared = square * squares
        return Cost(
            sensitivity=sensitivity, charged=charged, rho=mu_squared / 2, pure=None, mu_squared=mu_squared,
            theorem="Σ Δ²/σ² over the outputs (Dong, Roth & Su 2022, Corollary 3.3)",
        )  # fmt: skip
    summed = pure * outputs.sum_inverse(1)
    return Cost(
        sensitivity=sensitivity,
        charged=charged,
        rho=minimum(pure**2 * squares / 2, summed),
        pure=summed,
        mu_squared=None,
        theorem="Σ Δ₁/b over the outputs",
    )


def varying_events(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
    """All outputs as events: one for Gaussian noise; for Laplace noise one for each distinct spread."""
    outputs = _outputs(release)
    from privcheck.accounting.events import gaussian, pure

    moved = _moved(release, relation)
    cost = charge_of(replace(release, schedule=Once()), moved, values)
    if not outputs.count.number(values) or cost.l1 == 0:
        return ()
    law = release.mechanism.law
    if law.gaussian:
        root = math.nextafter(math.sqrt(outputs.sum_inverse(2).number(values, rounding="up")), math.inf)
        return (gaussian(std=cost.scale, sensitivity=math.nextafter(cost.l2 * root, math.inf)),)
    factors = Counter(outputs.factors(values, rounding="down"))
    if len(factors) > _MOST:
        total = outputs.sum_inverse(1).number(values, rounding="up") * cost.l1 / cost.scale
        return (pure(epsilon=total * (1 + 1e-14)),)
    charges = [(replace(cost, scale=cost.scale * factor * (1 - 1e-15)), n) for factor, n in factors.items()]
    return tuple(event * n for one, n in charges for event in law.of(one).events(one, stepwise=moved.stepwise))


def varying_pairs(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
    """Extreme users, with the joint law of all outputs that depend on them.

    For Gaussian noise that is one number, the precision-weighted mean of the outputs along f(D) − f(D′).
    """
    outputs = _outputs(release)
    if not outputs.count.number(values):
        return ()
    factors = np.array(outputs.factors(values, rounding="up"))
    scale = release.mechanism.at(values).coordinates().scale
    known = []
    for pair in _extreme(release, relation, values):
        change = np.abs(release.mechanism.whitened(release.statistic.difference(pair)).change)
        if not change.any():
            continue
        moves = np.sort(np.outer(change / scale, 1 / factors).ravel())[::-1]
        first, second = ("absent" if user is None else str(user) for user in pair)
        gaussian = release.mechanism.law.gaussian
        told = moves if gaussian else moves[:LOOKED]
        known.append(
            KnownPair(
                words=f"in D the user is {first}; in D′ {second}; all other users are the same",
                data=pair,
                outcomes=gaussian_outcomes(float(np.linalg.norm(moves))) if gaussian else laplace_outcomes(moves),
                sampler=VaryingRuns(moves=tuple(told.tolist()), gaussian=gaussian),
            )
        )
    return tuple(known)


def _moved(release: Release, relation: Relation) -> Sensitivity:
    return release.mechanism.whiten(release.statistic.sensitivity(relation))


def _outputs(release: Release) -> Outputs:
    assert isinstance(release.schedule, Outputs)
    return release.schedule


def _extreme(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Iterator[tuple[Any, Any]]:
    statistic = release.statistic
    if hasattr(statistic, "extreme_pairs"):
        yield from statistic.extreme_pairs(relation, values)
        return
    sizes, rows = tabular_sizes(statistic, values), most_trajectories(relation, values)
    if sizes is not None and sizes[0] * rows <= LONGEST and max(sizes) <= LARGEST:
        yield from extreme_pairs(relation, *sizes, trajectories=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingRuns:
    """Runs of all outputs, scored by the exact likelihood ratio of the numbers that change.

    Attributes:
        moves: Change of each number, in standard deviations (Gaussian) or scales (Laplace).
        gaussian: Whether the noise is Gaussian; otherwise Laplace.
    """

    moves: tuple[float, ...]
    gaussian: bool

    @property
    def numbers(self) -> int:
        """One for each number that changes."""
        return len(self.moves)

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and score them."""
        scores: Array = np.zeros(on_first.size)
        for move in self.moves:
            held = np.where(on_first, move, 0.0)
            if self.gaussian:
                scores += move * (held + rng.standard_normal(on_first.size) - move / 2)
            else:
                seen = held + rng.laplace(0.0, 1.0, on_first.size)
                scores += np.abs(seen) - np.abs(seen - move)
        return scores
