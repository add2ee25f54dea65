"""A statistic that leaves several times with noise that varies from output to output.

The statistic, its sensitivity and the law of its noise are those of the release; its schedule says by what the standard
deviation of each output's noise is multiplied. Every output holds all users.
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

from privcheck.charges import charge_of
from privcheck.domains import Condition
from privcheck.errors import DeclarationError, ParameterError
from privcheck.procedures.base import Array, Cost, KnownPair
from privcheck.procedures.moved import LOOKED, gaussian_outcomes, laplace_outcomes
from privcheck.relations import LARGEST, LONGEST, Relation, extreme_pairs, most_trajectories
from privcheck.releases import Release
from privcheck.schedules import Once, Outputs
from privcheck.statistics.base import Sensitivity
from privcheck.statistics.derived import tabular_sizes
from privcheck.symbols import Expr, minimum

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

_MOST: Final = 4096  # Laplace outputs of different noise that are composed one by one; of more the pure sum is charged


@dataclass(frozen=True, slots=True)
class VaryingRelease:
    """A release whose schedule varies its noise; what a declaration makes of it.

    Attributes:
        release: The statistic with the noise of which every output has a multiple.

    Raises:
        DeclarationError: The noise is of another law than Gaussian or Laplace, or it is shared.
    """

    release: Release

    def __post_init__(self) -> None:
        law, where = self.release.mechanism.law, f"release {self.release.name!r}"
        if law.name not in {"gaussian", "laplace"}:
            message = f"{where}: noise of the law {law.name!r} that varies by output is not accounted for here"
            raise DeclarationError(f"{message}; declare Gaussian or Laplace noise, or a release for each output")
        if self.release.draw.name or self.release.draw.across:
            message = f"{where}: noise that varies by output is drawn afresh for each"
            raise DeclarationError(f"{message}; leave `draw` out")

    @property
    def outputs(self) -> Outputs:
        """Returns the schedule."""
        schedule = self.release.schedule
        assert isinstance(schedule, Outputs)
        return schedule

    @property
    def name(self) -> str:
        """Returns the release's name."""
        return self.release.name

    @property
    def users(self) -> str:
        """Returns the group whose data it is; empty for everybody."""
        return self.release.users

    @property
    def source(self) -> str:
        """Returns where the paper says so."""
        return self.release.source

    @property
    def words(self) -> str:
        """Returns what is drawn, in words."""
        factor = f"output t {str(self.outputs.factor).replace('h', 't')} times its standard deviation"
        return f"{self.release.mechanism.words}, {factor}, on the {self.release.statistic.name}"

    @property
    def output(self) -> str:
        """Returns what leaves."""
        return f"noisy {self.release.statistic.name}"

    @property
    def latex(self) -> str:
        """Returns what leaves in one output."""
        return rf"{self.release.statistic.latex} + c_t\cdot {self.release.mechanism.latex}"

    @property
    def schedule(self) -> str:
        """Returns how often it leaves."""
        return self.outputs.words

    @property
    def models(self) -> tuple[str, ...]:
        """Returns the central model."""
        return ("central",)

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns the statistic's."""
        return tuple(self.release.statistic.preconditions)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        return self.release.conditions

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that occur in it."""
        return self.release.symbols

    @property
    def law(self) -> str:
        """Returns the law of its noise."""
        return self.release.mechanism.law.name

    @property
    def spread(self) -> Expr:
        """Returns the mechanism's spread, of which the outputs have multiples."""
        return self.release.mechanism.spread

    @property
    def rounds(self) -> Expr:
        """Returns the number of outputs."""
        return self.outputs.count

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Returns the mechanism's standard deviation of one coordinate, of which outputs have multiples; rounded up."""
        return self.release.mechanism.std.number(values, rounding="up")

    def with_std(self, factor: Fraction) -> VaryingRelease:
        """Returns the release with all noise of so many times the standard deviation."""
        mechanism = self.release.mechanism
        if not hasattr(mechanism, "with_spread"):
            message = f"{self.name}: no other spread can be set of {mechanism.words}"
            raise ParameterError(f"{message}; give {type(mechanism).__name__} the method `with_spread`", name="spread")
        power = 2 if mechanism.law.gaussian else 1
        return VaryingRelease(replace(self.release, mechanism=mechanism.with_spread(self.spread * factor**power)))

    def cost(self, relation: Relation) -> Cost:
        """Returns Σ_t of the outputs' costs, c_t the multiple of the standard deviation of output t.

        Gaussian: μ² = Σ Δ²/(c_t σ)² (Dong, Roth & Su 2022, Corollary 3.3), ρ half of it. Laplace: ε = Σ Δ₁/(c_t b), and
        ρ the least of ε and Σ (Δ₁/(c_t b))²/2 (Bun & Steinke 2016, Proposition 1.4).
        """
        one, mechanism = self._one(relation), self.release.mechanism
        pure, square = mechanism.pure(one), mechanism.gdp_squared(one)
        sensitivity, squares = self.release.statistic.sensitivity(relation), self.outputs.sum_inverse(2)
        charged = getattr(sensitivity, mechanism.law.norm)
        if pure is None:
            assert square is not None
            mu_squared = square * squares
            return Cost(
                sensitivity=sensitivity, charged=charged, rho=mu_squared / 2, pure=None, mu_squared=mu_squared,
                theorem="Σ Δ²/σ² over the outputs (Dong, Roth & Su 2022, Corollary 3.3)",
            )  # fmt: skip
        summed = pure * self.outputs.sum_inverse(1)
        return Cost(
            sensitivity=sensitivity,
            charged=charged,
            rho=minimum(pure**2 * squares / 2, summed),
            pure=summed,
            mu_squared=None,
            theorem="Σ Δ₁/b over the outputs",
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """Returns all outputs: of Gaussian noise as one event, of Laplace noise as one for each spread there is."""
        from privcheck.accounting.events import gaussian, pure

        moved = self._one(relation)
        cost = charge_of(replace(self.release, schedule=Once()), moved, values)
        if not self.outputs.count.number(values) or cost.l1 == 0:
            return ()
        law = self.release.mechanism.law
        if law.gaussian:
            root = math.nextafter(math.sqrt(self.outputs.sum_inverse(2).number(values, rounding="up")), math.inf)
            return (gaussian(std=cost.scale, sensitivity=math.nextafter(cost.l2 * root, math.inf)),)
        factors = Counter(self.outputs.factors(values, rounding="down"))
        if len(factors) > _MOST:
            total = self.outputs.sum_inverse(1).number(values, rounding="up") * cost.l1 / cost.scale
            return (pure(epsilon=total * (1 + 1e-14)),)
        charges = [(replace(cost, scale=cost.scale * factor * (1 - 1e-15)), n) for factor, n in factors.items()]
        return tuple(event * n for one, n in charges for event in law.of(one).events(one, stepwise=moved.stepwise))

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Returns extreme users with the law of what all outputs together tell of them.

        Of Gaussian noise that is one number, the outputs' mean along f(D) − f(D′) weighted by their precision.
        """
        if not self.outputs.count.number(values):
            return ()
        factors = np.array(self.outputs.factors(values, rounding="up"))
        scale = self.release.mechanism.at(values).coordinates().scale
        known = []
        for pair in self._extreme(relation, values):
            change = np.abs(self.release.mechanism.whitened(self.release.statistic.difference(pair)).change)
            if not change.any():
                continue
            moves = np.sort(np.outer(change / scale, 1 / factors).ravel())[::-1]
            first, second = ("absent" if user is None else str(user) for user in pair)
            gaussian = self.release.mechanism.law.gaussian
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

    def _one(self, relation: Relation) -> Sensitivity:
        return self.release.mechanism.whiten(self.release.statistic.sensitivity(relation))

    def _extreme(self, relation: Relation, values: Mapping[str, Fraction]) -> Iterator[tuple[Any, Any]]:
        statistic = self.release.statistic
        if hasattr(statistic, "extreme_pairs"):
            yield from statistic.extreme_pairs(relation, values)
            return
        sizes, rows = tabular_sizes(statistic, values), most_trajectories(relation, values)
        if sizes is not None and sizes[0] * rows <= LONGEST and max(sizes) <= LARGEST:
            yield from extreme_pairs(relation, *sizes, trajectories=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingRuns:
    """Runs of all outputs, scored by the exact likelihood ratio of the numbers that move.

    Attributes:
        moves: By how many standard deviations, or scales, each number moves.
        gaussian: Whether the noise is Gaussian, else Laplace.
    """

    moves: tuple[float, ...]
    gaussian: bool

    @property
    def numbers(self) -> int:
        """Returns one for each number that moves."""
        return len(self.moves)

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Returns the scores of fresh runs."""
        scores: Array = np.zeros(on_first.size)
        for move in self.moves:
            held = np.where(on_first, move, 0.0)
            if self.gaussian:
                scores += move * (held + rng.standard_normal(on_first.size) - move / 2)
            else:
                seen = held + rng.laplace(0.0, 1.0, on_first.size)
                scores += np.abs(seen) - np.abs(seen - move)
        return scores
