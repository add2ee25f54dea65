"""Protocol of a mechanism, its noise, the numeric charge of a release, and the base of independent noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.errors import ParameterError
from privcheck.terms.parameters import number
from privcheck.terms.symbols import Exact, Expr

if TYPE_CHECKING:
    from privcheck.accounting.events import Event
    from privcheck.declare.statistics.base import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Cost of a release to its users, as numbers: what a ledger stores and an accountant composes.

    Attributes:
        law: Name of the noise's law.
        scale: Spread as drawn: standard deviation (Gaussian) or b (Laplace).
        l1: ℓ₁ sensitivity charged, rounded up.
        l2: ℓ₂ sensitivity charged, rounded up.
        linf: ℓ∞ sensitivity charged, rounded up.
        users: Group of a partition that is charged; empty if all users are.
        senders: n, number of users behind the shuffler, for shuffled bits and integers; 0 otherwise.
        threshold: τ, target number of noise bits of all users together, for shuffled bits and integers; 0 otherwise.
    """

    law: str
    scale: float
    l1: float
    l2: float
    linf: float
    users: str = ""
    senders: int = 0
    threshold: float = 0.0


Array = NDArray[np.float64]
Symmetry = Literal["", "goe", "upper"]

_ABILITIES: Final = {
    "draw": "sampler",
    "log_ratio": "likelihood ratio of two neighbours",
    "separation": "figure for the distance between two neighbours",
    "loss_masses": "law of the privacy loss on a grid",
    "of_std": "scale for a standard deviation",
    "cdf": "distribution function",
    "spread_cdf": "distribution function of the noise plus a uniform number",
    "largest": "bound on its largest draw",
    "std": "standard deviation",
    "events": "event of the numeric accountant",
    "loss": "exact loss of a pair",
    "unit_loss": "exact loss of a unit move",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Noise at run time: independent draws of one law and scale in every coordinate.

    A custom law derives from this class and defines `name` and the methods that it supports. A method that it leaves
    out raises an error that names the method and the remedy: an unknown law is never treated as 0.

    `additive`, `gaussian`, `shuffled`, `integers`, `whole` and `unbounded` are properties of the law; `norm` is the
    sensitivity that prices it, `rule`, `theorem` and `symbol` (its spread, in LaTeX) are printed in the price's line of
    a derivation, `spread_words` in the message about an invalid spread.

    Attributes:
        scale: Standard deviation of the Gaussian, b of the Laplace law; rounded up from the exact value.
    """

    name: ClassVar[str]
    additive: ClassVar[bool] = True  # an output less the exact value is the noise
    gaussian: ClassVar[bool] = False  # on the Gaussian curve, where all coordinates are as one
    shuffled: ClassVar[bool] = False  # users' own messages behind a shuffler
    integers: ClassVar[bool] = False  # messages that only their own sender's noise hides
    whole: ClassVar[bool] = False  # on the integers: it hides statistics of whole numbers only
    unbounded: ClassVar[bool] = False  # no ε of pure DP bounds it
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    rule: ClassVar[str] = ""
    theorem: ClassVar[str] = "price stated by its author: no theorem here covers it"
    symbol: ClassVar[str] = r"\sigma"
    spread_words: ClassVar[str] = "spread of the noise"

    scale: float

    @property
    def symmetric(self) -> Symmetry:
        """Kind of symmetric matrices drawn; empty for noise that is independent in every cell."""
        return ""

    def coordinates(self) -> Noise:
        """Noise in the mechanism's own coordinates, where it is independent (see `Mechanism.whitened`)."""
        return self

    def add(self, value: Array, rng: np.random.Generator) -> Array:
        """Return value + fresh noise; `value` itself is not modified."""
        noise = self.draw(rng, value.shape)
        noise += value
        return noise

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Draw noise of the shape."""
        raise refusal(type(self), "draw")

    # what audits of the releases ask

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Compute ln p(output | D) − ln p(output | D′), summed over the last axis, for outputs f(D) + noise.

        Args:
            noise: (…, m) outputs minus f(D), at the coordinates in which the neighbours differ.
            change: (m,) f(D) − f(D′) there.
        """
        raise refusal(type(self), "log_ratio")

    def separation(self, change: Array) -> tuple[float, float]:
        """Return (μ², 0) for a change on the Gaussian curve, otherwise (0, ε) with ε the largest loss.

        Args:
            change: (m,) f(D) − f(D′).
        """
        raise refusal(type(self), "separation")

    def loss_steps(self, change: Array) -> Array:
        """Largest |log-likelihood ratio| of each coordinate, (m,): the `step` arguments of `loss_masses`."""
        raise refusal(type(self), "loss_masses")

    @classmethod
    def loss_masses(cls, step: float, cell: float) -> Array:
        """Law under D of one coordinate's log-likelihood ratio, on a grid; simulated if not defined.

        Args:
            step: An entry of `loss_steps`.
            cell: Width of the grid's cells, in nats.

        Returns:
            (2r + 1,) masses of the cells −r … r.
        """
        raise refusal(cls, "loss_masses")

    # what audits of the noise ask

    def of_std(self, std: float) -> Self:
        """Noise of the law with standard deviation `std` in each coordinate."""
        raise refusal(type(self), "of_std")

    def cdf(self, x: Array) -> Array:
        """Distribution function of one coordinate's noise; additive noise is continuous and symmetric."""
        raise refusal(type(self), "cdf")

    def spread_cdf(self, x: Array) -> Array:
        """Distribution function used by the tests: `cdf`.

        For noise on the integers (`whole`), that of the noise plus a uniform number in [−½, ½], which is continuous.
        """
        return self.cdf(x)

    def size(self, numbers: Array) -> float:
        """Sum over drawn numbers that `scale_statistic` tests; −Σ ln P(|noise| ≥ |x|) unless overridden."""
        with np.errstate(divide="ignore"):
            return -float(np.log(2 * self.spread_cdf(-np.abs(numbers))).sum())

    def scale_statistic(self, number: int, size: float) -> tuple[float, int]:
        """Statistic and its degrees of freedom: χ² if the `number` drawn numbers are of this noise.

        P(|noise| ≥ |x|) is uniform, so −2 ln of it is χ²(2), and the sum over n numbers is χ²(2n).

        Args:
            number: n.
            size: Sum of `size` over all of them.
        """
        if lacks(type(self), "cdf") and lacks(type(self), "spread_cdf"):
            raise refusal(type(self), "cdf")
        return 2 * size, 2 * number

    def scale_ratio(self, per_degree: float) -> float:
        """Ratio of the drawn scale to this one, from the statistic over its degrees of freedom."""
        return per_degree

    def largest(self, numbers: int, failure: float) -> float:
        """Bound that all of `numbers` |noise| draws stay within, except with probability `failure`."""
        raise refusal(type(self), "largest")

    # what the accountant asks

    @property
    def std(self) -> float:
        """Standard deviation of one coordinate."""
        raise refusal(type(self), "std")

    def charge(self, *, l1: float, l2: float, linf: float, users: str) -> Charge:
        """Charge of a release with this noise and the given sensitivities, as the ledger stores it."""
        return Charge(law=self.name, scale=self.scale, l1=l1, l2=l2, linf=linf, users=users)

    @classmethod
    def of(cls, cost: Charge) -> Noise:
        """Noise of a charge, in the coordinates in which it is independent."""
        return cls(scale=cost.scale)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Events of the numeric accountant for a nonzero charge with this noise.

        Args:
            cost: The charge; only its sensitivities matter.
            stepwise: Whether every coordinate changes by 0 or ±Δ∞.
        """
        raise refusal(type(self), "events")

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Return (ρ, ε of pure DP, μ²) of a charge with this noise, from the charge alone.

        ∞ if no finite value is known, as for a custom law; NaN for μ² off the Gaussian curve.
        """
        return math.inf, math.inf, math.nan

    # what verification asks, of the laws whose prices are theorems

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Exact loss of a pair in one output, rounded down: ε of pure DP, or the loss in zCDP.

        Args:
            changes: (|Δ|, number of coordinates with it).
            spread: The declared spread, rounded up; positive.
            pure: Whether the loss is in pure DP; otherwise in zCDP.
        """
        raise refusal(cls, "loss")

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Loss of one coordinate that changes by 1, rounded up; convex in the change and 0 at 0.

        Args:
            spread: The declared spread, rounded down; positive.
            pure: Whether the loss is in pure DP; otherwise in zCDP.
        """
        raise refusal(cls, "unit_loss")


def lacks(law: type[Noise], *abilities: str) -> str:
    """Message naming the first ability that a law lacks, with the remedy; empty if it has all of them."""
    for ability in abilities:
        if vars(Noise)[ability] is _defines(law, ability):
            return _say_lacking(law, ability)
    return ""


def refusal(law: type[Noise], ability: str) -> ParameterError:
    """Error for a method that a law does not define."""
    return ParameterError(_say_lacking(law, ability), name="mechanism", given=law.name)


def _say_lacking(law: type[Noise], ability: str) -> str:
    message = f"noise of the law {law.name!r} has no {_ABILITIES[ability]}"
    return f"{message}: give {law.__name__} the method `{ability}`"


def _defines(law: type[Noise], ability: str) -> object:
    return next(vars(kind)[ability] for kind in law.__mro__ if ability in vars(kind))


class Mechanism(Protocol):
    """Noise with an exact spread, and its price on a statistic of given sensitivity."""

    @property
    def law(self) -> type[Noise]:
        """The law: class of the noise that `at` returns."""
        ...

    @property
    def words(self) -> str:
        """The mechanism in words with its spread."""
        ...

    @property
    def latex(self) -> str:
        """Law of the noise as a formula."""
        ...

    @property
    def spread(self) -> Expr:
        """Declared spread (variance, or scale b)."""
        ...

    @property
    def std(self) -> Expr:
        """Standard deviation of one coordinate."""
        ...

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Sensitivity in coordinates in which the noise is independent and of one scale."""
        ...

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Change of a pair in the coordinates of `whiten`."""
        ...

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Least known ρ for which the release is ρ-zCDP, for a sensitivity in the coordinates of `whiten`."""
        ...

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """ε of pure DP, or None if no finite ε holds."""
        ...

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """μ² if the release is exactly as private as N(0, 1) against N(μ, 1), None if it is not Gaussian."""
        ...

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Noise that is drawn at the given parameters."""
        ...


def positive_scale(spread: Expr, values: Mapping[str, Fraction]) -> float:
    """Evaluate a spread as a float, rounded up.

    Raises:
        ParameterError: The spread is not positive and finite at these parameters.
    """
    scale = spread.number(values, rounding="up")
    if not (scale > 0 and math.isfinite(scale)):
        raise ParameterError(
            f"expected a positive, finite spread, got {spread} = {scale} at {dict(values)}", given=scale
        )
    return scale


@dataclass(frozen=True, slots=True, kw_only=True)
class Noiseless(Noise):
    """Adds no noise and gives no privacy, whatever its scale.

    Non-private counterparts of agents and tests use it; no declaration contains it.
    """

    name: ClassVar[str] = "none"

    scale: float = 0.0

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Return zeros of the shape."""
        return np.zeros(shape)

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Refuse: without noise the log-likelihood ratio is 0 or ∞.

        Raises:
            ParameterError: Always.
        """
        raise ParameterError("without noise the likelihood ratio of two neighbours is 0 or ∞; nothing to score")


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """Independent noise of one law in every coordinate; one field, its spread, which the law's `symbol` denotes.

    A subclass defines `law`, the text of its spread (`title`, `formula`), its standard deviation and its price.
    """

    law = Noise  # a ClassVar is not the protocol's property to every type checker
    title: ClassVar[str]
    formula: ClassVar[str]

    @property
    def words(self) -> str:
        """The mechanism in words with its spread."""
        return f"{self.title} {self.spread}"

    @property
    def latex(self) -> str:
        """The noise's law as a formula."""
        return rf"{self.formula}{self.spread.latex()}\right)"

    @property
    def spread(self) -> Expr:
        """The declared spread."""
        spread: Expr = getattr(self, fields(self)[0].name)
        return spread

    def with_spread(self, spread: Expr) -> Self:
        """Return the mechanism with another spread."""
        return replace(self, **{fields(self)[0].name: spread})

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Return the sensitivity unchanged: the noise is independent in every coordinate."""
        return sensitivity

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Return the change with every entry of a symmetric matrix as a coordinate."""
        return difference.every_entry()

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Return None: not on the Gaussian curve."""
        return None

    def _set_spread(self, given: Exact | Expr) -> None:
        (field,) = fields(self)
        object.__setattr__(self, field.name, number(f"{field.name}, of {type(self).__name__}", given))

    def _noise(self, scale: Expr, values: Mapping[str, Fraction]) -> Noise:
        return self.law(scale=positive_scale(scale, values))
