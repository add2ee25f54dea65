"""Noisy sums of random batches, divided by a number that depends on the users: the divisor reveals them.

A noisy sum may be divided by anything that is public or released with noise: declare the sum. Training code often
divides by the size of the batch it has just drawn, or by ⌊q·n⌋ of a number n of users that the relation protects. The
noise is divided too, and its spread tells whose batch was larger: no theorem bounds that loss for all other users.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammaincinv, gammaln, ndtr, xlog1py, xlogy

from privcheck.declare.procedures.base import Array, Cost, Facts, KnownPair, Outcomes, set_words
from privcheck.declare.relations import AddRemoveOne, Relation
from privcheck.declare.samples import Poisson
from privcheck.declare.statistics.base import Sensitivity
from privcheck.errors import DeclarationError
from privcheck.terms.parameters import Condition, number, one_of
from privcheck.terms.symbols import INFINITE, Exact, Expr, expression

if TYPE_CHECKING:
    from privcheck.accounting.events import Event

Divisor = Literal["realised batch", "expected batch of all users"]
_THEOREM: Final = "the spread of the divided noise depends on the users, and no bound on its loss is known"
_FINEST: Final = 10**9  # denominator of a rate
_RAREST: Final = 1e-18  # probability of a batch that is left out
_REACH: Final = 7.0  # standard deviations of a component on both sides that are cut into cells
_PER_COMPONENT: Final = 41  # edges
_HEAVY: Final = 1e-4  # probability from which a component has edges of its own
_MOST_EDGES: Final = 900
_SHARES: Final = np.array(
    [1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99, 0.999, 1 - 1e-4, 1 - 1e-6]
)
_MOST_RADII: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedSum:
    """Sum of the clipped vectors of a Poisson sample, plus Gaussian noise, over a number that the users determine.

    A round releases (Σ over the batch + N(0, v·I_d))/max(1, D). D is the number of users in the batch, or ⌊q·n⌋ of the
    n users. Only the sum's price is known where D is public, or is released with noise: declare a `Release` of
    `ClippedSums` then.

    Attributes:
        name: Name, unique in the declaration.
        norm: C, bound on the norm of a user's vector.
        spread: v, the variance of each coordinate of the noise, before the division.
        dimension: d, dimension of the vectors.
        sampling: The batches: q, the probability of a user to be in one, and the number of rounds.
        divisor: D.
        users: As in a `Release`.
        source: Reference in the paper.
    """

    name: str
    norm: Expr
    spread: Expr
    dimension: Expr
    sampling: Poisson
    divisor: Divisor
    users: str
    source: str

    def __init__(
        self, name: str, *, norm: Exact | Expr, variance: Exact | Expr, dimension: Exact | Expr, sampling: Poisson,
        divisor: Divisor, users: str = "", source: str = "",
    ) -> None:  # fmt: skip
        set_words(self, name=name, users=users, source=source)
        one_of("divisor, of NormalisedSum", divisor, get_args(Divisor))
        object.__setattr__(self, "divisor", divisor)
        if not isinstance(sampling, Poisson) or sampling.most is not None:
            message = f"{name}: expected Poisson samples that are never cut off, got {sampling!r}"
            raise DeclarationError(f"{message}; a batch of a fixed size is a public divisor: declare a Release")
        object.__setattr__(self, "sampling", sampling)
        for key, amount in {"norm": norm, "spread": variance, "dimension": dimension}.items():
            object.__setattr__(self, key, number(f"{key}, of NormalisedSum", amount))

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        over = "the size of the batch" if self.divisor == "realised batch" else f"⌊{self.sampling.rate}·n⌋ of n users"
        return Facts(
            words=f"a batch's sum of clipped vectors, plus Gaussian noise of variance {self.spread}, over {over}",
            output="a noisy average",
            latex=rf"\left(\textstyle\sum x + N\left(0,\ {self.spread.latex()} I\right)\right)/D",
            law="gaussian",
            spread=self.spread,
            conditions=(
                Condition(what="the bound on a vector", of=self.norm, domain="positive"),
                Condition(what="the variance of the noise", of=self.spread, domain="positive"),
                Condition(what="the dimension", of=self.dimension, domain="count"),
                *self.sampling.conditions,
            ),
            symbols=self.norm.symbols | self.spread.symbols | self.dimension.symbols | self.sampling.symbols,
            rounds=self.sampling.times,
            schedule=self.sampling.words,
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of the noise before the division, rounded up."""
        return math.nextafter(math.sqrt(self.spread.number(values, rounding="up")), math.inf)

    def with_std(self, factor: Fraction) -> NormalisedSum:
        """Copy with `factor` times the standard deviation."""
        return NormalisedSum(
            self.name, norm=self.norm, variance=self.spread * factor**2, dimension=self.dimension,
            sampling=self.sampling, divisor=self.divisor, users=self.users, source=self.source,
        )  # fmt: skip

    def cost(self, relation: Relation) -> Cost:
        """Cost with no finite ε or ρ.

        Raises:
            DeclarationError: The number of users is public under the relation, or users have several records.
        """
        if not isinstance(relation, AddRemoveOne) or relation.trajectories != expression(1):
            message = f"{self.name}: a user has only one vector, and is added or removed; got {relation.words!r}"
            raise DeclarationError(
                f"{message}; where n is public, declare a Release of ClippedSums over ⌊{self.sampling.rate}·n⌋"
            )
        moved = Sensitivity(l1=INFINITE, l2=self.norm, linf=self.norm, reason="one user's vector, before the division")
        return Cost(
            sensitivity=moved, charged=self.norm, rho=INFINITE, pure=None, mu_squared=None, theorem=_THEOREM
        )  # fmt: skip

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """An event without a guarantee, as no bound on the loss is known; none if nobody is ever in a batch."""
        from privcheck.accounting.events import non_private

        none = self._rate(values) == 0 or self.sampling.rounds.number(values) == 0
        return () if none else (non_private(),)

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """A user with the longest vector or without; all others have the vector 0, or its opposite."""
        d = int(self.dimension.number(values))
        scale = math.sqrt(self.spread.number(values)) / self.norm.number(values)  # in units of C
        rounds = int(self.sampling.rounds.number(values))
        if not self.events(relation, values):
            return ()
        made = []
        for others, placed in self._others(values):
            present = self._components(values, others=others, placed=placed, present=True)
            absent = self._components(values, others=others, placed=placed, present=False)
            outcomes = _outcomes(present, absent, scale, d)
            where = f"the vectors of {others} others are {'0' if placed == 0 else 'opposite'}"
            for swapped in (False, True):
                told = "is in D and not in D′" if not swapped else "is in D′ and not in D"
                made.append(
                    KnownPair(
                        words=f"a user with a vector of the largest norm {told}; {where}",
                        data=("absent", "present") if swapped else ("present", "absent"),
                        outcomes=Outcomes(log_p=outcomes[swapped], log_q=outcomes[not swapped]),
                        rounds=rounds,
                        sampler=NormalisedRuns(
                            laws=(absent, present) if swapped else (present, absent),
                            std=scale,
                            dimension=d,
                            rounds=rounds,
                        ),
                    )
                )
        return tuple(made)

    def _others(self, values: Mapping[str, Fraction]) -> tuple[tuple[int, int], ...]:
        """Numbers of other users, and where their vectors lie in units of C along the user's."""
        q = self._rate(values)
        if self.divisor == "realised batch":
            return tuple((math.ceil(1 / q), placed) for placed in (0, -1))
        # the first number of users from which one more is a larger divisor
        return ((math.ceil(2 / q) - 1, 0),)

    def _rate(self, values: Mapping[str, Fraction]) -> Fraction:
        return Fraction(self.sampling.rate.number(values)).limit_denominator(_FINEST)

    def _components(self, values: Mapping[str, Fraction], *, others: int, placed: int, present: bool) -> Components:
        q = self._rate(values)
        rate = float(q)
        counts = np.arange(others + 1)
        chosen = gammaln(others + 1) - gammaln(counts + 1) - gammaln(others - counts + 1)
        weights = np.exp(chosen + xlogy(counts, rate) + xlog1py(others - counts, -rate))
        counts, weights = counts[weights > _RAREST], weights[weights > _RAREST]
        users = np.repeat([0, 1], len(counts)) if present else np.zeros(len(counts), dtype=np.int64)
        sizes = np.tile(counts, 2) if present else counts
        chances = np.concatenate([weights * (1 - rate), weights * rate]) if present else weights
        if self.divisor == "realised batch":
            divisors = np.maximum(1, sizes + users)
        else:
            divisors = np.full(len(sizes), max(1, math.floor(q * (others + present))))
        return Components(
            weights=tuple((chances / chances.sum()).tolist()),
            means=tuple(((placed * sizes + users) / divisors).tolist()),
            divisors=tuple(divisors.tolist()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Law of a round as a mixture of spherical Gaussians, with means on one axis in units of C.

    Attributes:
        weights: Probability of each component.
        means: Its mean.
        divisors: The number by which the noise is divided.
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    divisors: tuple[float, ...]

    def masses(self, edges: Array, radii: Array, std: float, dimension: int) -> Array:
        """(cells along the axis, cells of the distance from it) probabilities."""
        total = np.zeros((len(edges) - 1, max(len(radii) - 1, 1)))
        for weight, mean, divisor in zip(self.weights, self.means, self.divisors, strict=True):
            own = std / divisor
            a, b = (edges[:-1] - mean) / own, (edges[1:] - mean) / own
            along = np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))  # the smaller tail keeps its digits
            around = np.ones(1)
            if dimension > 1:
                squares = (radii / own) ** 2
                half = (dimension - 1) / 2  # of the freedom of a χ² law
                below, above = gammainc(half, squares / 2), gammaincc(half, squares / 2)
                around = np.where(below[:-1] > 0.5, above[:-1] - above[1:], np.diff(below))
            # differences of equal tails may round below 0
            total += weight * np.multiply.outer(np.maximum(along, 0.0), np.maximum(around, 0.0))
        return total

    def log_densities(self, x: Array, squares: Array, std: float, dimension: int) -> Array:
        """(m,) ln of the density at x on the axis and at squared distances from it, but for a constant."""
        own = std / np.array(self.divisors)
        log_weights = np.log(self.weights) - dimension * np.log(own)
        away = (x[:, np.newaxis] - np.array(self.means)) ** 2 + squares[:, np.newaxis]
        terms = log_weights - away / (2 * own**2)
        return np.asarray(np.logaddexp.reduce(terms, axis=1))


def _outcomes(first: Components, second: Components, std: float, dimension: int) -> tuple[Array, Array]:
    """Logarithms of both laws' probabilities of cells, whichever law they are of."""
    edges, radii = [], []
    for law in (first, second):
        for weight, mean, divisor in zip(law.weights, law.means, law.divisors, strict=True):
            if weight >= _HEAVY:
                edges.append(mean + std / divisor * np.linspace(-_REACH, _REACH, _PER_COMPONENT))
                if dimension > 1:
                    radii.append(std / divisor * np.sqrt(2 * gammaincinv((dimension - 1) / 2, _SHARES)))
    xs = np.concatenate([[-np.inf], _thinned(np.concatenate(edges), _MOST_EDGES), [np.inf]])
    rs = np.concatenate([[0.0], _thinned(np.concatenate(radii), _MOST_RADII), [np.inf]]) if radii else np.zeros(0)
    p, q = (law.masses(xs, rs, std, dimension).ravel() for law in (first, second))
    known = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        return np.log(p[known]), np.log(q[known])


def _thinned(places: Array, most: int) -> Array:
    """Sorted places, at most so many of them."""
    places = np.unique(places)
    return places[:: max(1, math.ceil(len(places) / most))]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedRuns:
    """Draws of all rounds, scored by the exact density ratio.

    Attributes:
        laws: Laws of a round on D and on D′.
        std: Standard deviation of the noise before the division, in units of C.
        dimension: d.
        rounds: Number of rounds.
    """

    laws: tuple[Components, Components]
    std: float
    dimension: int
    rounds: int

    @property
    def numbers(self) -> int:
        """Three a round: the batch, the output along the axis, and its distance from it."""
        return 3 * self.rounds

    def __call__(self, rng: np.random.Generator, on_first: NDArray[np.bool_]) -> Array:
        """Draw runs and return ln p(output | D) − ln p(output | D′) of each."""
        scores = np.zeros(on_first.size)
        for _ in range(self.rounds):
            x, squares = np.empty(on_first.size), np.zeros(on_first.size)
            for law, chosen in zip(self.laws, (on_first, ~on_first), strict=True):
                drawn = int(chosen.sum())
                which = rng.choice(len(law.weights), size=drawn, p=law.weights)
                own = self.std / np.array(law.divisors)[which]
                x[chosen] = np.array(law.means)[which] + own * rng.standard_normal(drawn)
                if self.dimension > 1:
                    squares[chosen] = own**2 * rng.chisquare(self.dimension - 1, drawn)
            first, second = (law.log_densities(x, squares, self.std, self.dimension) for law in self.laws)
            scores += first - second
        return scores
