"""Cost of a release to its users, as numbers: written down by a ledger and added up by an accountant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.symbols import Expr

if TYPE_CHECKING:
    from privcheck.accounting.events import Event
    from privcheck.declare.relations import Relation
    from privcheck.declare.releases import Release
    from privcheck.declare.statistics.base import Sensitivity


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """Cost of a release to its users, as numbers.

    Attributes:
        law: The name of the noise's law.
        scale: Its standard deviation (Gaussian) or b (Laplace), as drawn.
        l1: The ℓ₁ sensitivity charged, rounded up.
        l2: The ℓ₂ sensitivity charged, rounded up.
        linf: The ℓ∞ sensitivity charged, rounded up.
        users: The charged group of users, of a partition; empty for all users.
        senders: n, the users behind the shuffler, for shuffled bits and integers; 0 otherwise.
        threshold: τ, the number of noise bits they are to draw, likewise.
    """

    law: str
    scale: float
    l1: float
    l2: float
    linf: float
    users: str = ""
    senders: int = 0
    threshold: float = 0.0


def charge(release: Release, relation: Relation, values: Mapping[str, Fraction]) -> Charge:
    """Charge of the whole release: the derived sensitivity of all its outputs, and the noise drawn.

    If the noise depends on the size n of a batch and no n is given, it is that of the batch with the least noise.
    """
    return charge_of(release, release.charged(relation), release.quietest(values))


def charge_of(release: Release, charged: Sensitivity, values: Mapping[str, Fraction]) -> Charge:
    """Charge of the whole release, from a sensitivity that is derived already.

    Raises:
        DeclarationError: The mechanism draws noise of another law than it declares.
    """
    noise, law = release.mechanism.at(values), release.mechanism.law
    if not isinstance(noise, law):
        message = f"release {release.name!r}: its mechanism says the law {law.name!r} and draws {noise!r:.100}"
        raise DeclarationError(f"{message}; let `at` return noise of the class {law.__name__}")
    return noise.charge(
        l1=charged.l1.number(values, rounding="up"),
        l2=charged.l2.number(values, rounding="up"),
        linf=charged.linf.number(values, rounding="up"),
        users=release.users,
    )


Array = NDArray[np.float64]
Symmetry = Literal["", "goe", "upper"]

_ABILITIES: Final = {
    "draw": "sampler",
    "log_ratio": "likelihood ratio of two neighbours",
    "separation": "figure for how far apart it leaves two neighbours",
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
    """The running face of a mechanism: independent noise of one law and scale in every coordinate.

    A law of one's own derives from this class, gives `name` and the methods that it can answer. What it leaves out is
    refused wherever it is asked for, by name and with the remedy: nothing takes an unknown law for 0.

    `additive`, `gaussian`, `shuffled`, `integers`, `whole` and `unbounded` are questions to the law; `norm` is the
    sensitivity that prices it, `rule`, `theorem` and `symbol` (its spread, in LaTeX) stand in the price's line of a
    derivation, `spread_words` in the message about a spread that is none.

    Attributes:
        scale: The standard deviation of the Gaussian, b of the Laplace law; rounded up from the exact value.
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
    theorem: ClassVar[str] = "as its author prices it: no theorem here does"
    symbol: ClassVar[str] = r"\sigma"
    spread_words: ClassVar[str] = "spread of the noise"

    scale: float

    @property
    def symmetric(self) -> Symmetry:
        """Returns how symmetric matrices are drawn; empty for noise that is independent in every cell."""
        return ""

    def coordinates(self) -> Noise:
        """Returns the noise in the mechanism's own coordinates, where it is independent (see `Mechanism.whitened`)."""
        return self

    def add(self, value: Array, rng: np.random.Generator) -> Array:
        """Returns value + fresh noise; `value` itself is left alone."""
        noise = self.draw(rng, value.shape)
        noise += value
        return noise

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Array:
        """Returns fresh noise of the shape."""
        raise refusal(type(self), "draw")

    # what audits of the releases ask

    def log_ratio(self, noise: Array, change: Array) -> Array:
        """Returns ln p(output | D) − ln p(output | D′) summed over the last axis, for outputs f(D) + noise.

        Args:
            noise: (…, m) outputs less f(D), at the coordinates in which the neighbours differ.
            change: (m,) f(D) − f(D′) there.
        """
        raise refusal(type(self), "log_ratio")

    def separation(self, change: Array) -> tuple[float, float]:
        """Returns (μ², ε): of a change on the Gaussian curve μ² and 0, of any other 0 and the largest loss.

        Args:
            change: (m,) f(D) − f(D′).
        """
        raise refusal(type(self), "separation")

    def loss_steps(self, change: Array) -> Array:
        """Returns the largest |log-likelihood ratio| of each coordinate, (m,): what `loss_masses` are asked for."""
        raise refusal(type(self), "loss_masses")

    @classmethod
    def loss_masses(cls, step: float, cell: float) -> Array:
        """Returns the law under D of one coordinate's log-likelihood ratio, on a grid; without it, it is simulated.

        Args:
            step: Of `loss_steps`.
            cell: The grid's width, in nats.

        Returns:
            (2r + 1,) masses of the cells −r … r.
        """
        raise refusal(cls, "loss_masses")

    # what audits of the noise ask

    def of_std(self, std: float) -> Self:
        """Returns noise of the law with this standard deviation of one coordinate."""
        raise refusal(type(self), "of_std")

    def cdf(self, x: Array) -> Array:
        """Returns the distribution function of one coordinate's noise; additive noise is continuous and symmetric."""
        raise refusal(type(self), "cdf")

    def spread_cdf(self, x: Array) -> Array:
        """Returns the distribution function that is tested: `cdf`.

        Of noise on the integers (`whole`) that of the noise plus a uniform number in [−½, ½], which is continuous.
        """
        return self.cdf(x)

    def size(self, numbers: Array) -> float:
        """Returns the sum over drawn numbers that `scale_statistic` tests; −Σ ln P(|noise| ≥ |x|) unless overridden."""
        with np.errstate(divide="ignore"):
            return -float(np.log(2 * self.spread_cdf(-np.abs(numbers))).sum())

    def scale_statistic(self, number: int, size: float) -> tuple[float, int]:
        """Returns a statistic and its degrees of freedom: it is χ² where so many numbers drawn are of this noise.

        P(|noise| ≥ |x|) is uniform, so that −2 ln of it is χ²(2); of n numbers χ²(2n).

        Args:
            number: n.
            size: The sum of `size` over all of them.
        """
        if lacks(type(self), "cdf") and lacks(type(self), "spread_cdf"):
            raise refusal(type(self), "cdf")
        return 2 * size, 2 * number

    def scale_ratio(self, per_degree: float) -> float:
        """Returns the scale drawn over this one, from the statistic over its degrees of freedom."""
        return per_degree

    def largest(self, numbers: int, failure: float) -> float:
        """Returns what no |noise| of so many draws exceeds, but with probability `failure`."""
        raise refusal(type(self), "largest")

    # what the accountant asks

    @property
    def std(self) -> float:
        """Returns the standard deviation of one coordinate."""
        raise refusal(type(self), "std")

    def charge(self, *, l1: float, l2: float, linf: float, users: str) -> Charge:
        """Returns the charge of a release with this noise and the given sensitivities, as a ledger holds it."""
        return Charge(law=self.name, scale=self.scale, l1=l1, l2=l2, linf=linf, users=users)

    @classmethod
    def of(cls, cost: Charge) -> Noise:
        """Returns the noise of a charge, in the coordinates in which it is independent."""
        return cls(scale=cost.scale)

    def events(self, cost: Charge, *, stepwise: bool) -> tuple[Event, ...]:
        """Returns a charge with this noise that is not 0 as events of the numeric accountant.

        Args:
            cost: The charge, of which the sensitivities count.
            stepwise: Whether every coordinate moves by 0 or ±Δ∞.
        """
        raise refusal(type(self), "events")

    def price_charge(self, cost: Charge) -> tuple[float, float, float]:
        """Returns (ρ, ε of pure DP, μ²) of a charge with this noise, from the charge alone.

        ∞ where no finite figure is known, as of a law of one's own; NaN for a μ² off the Gaussian curve.
        """
        return math.inf, math.inf, math.nan

    # what verification asks, of the laws whose prices are theorems

    @classmethod
    def loss(cls, changes: Sequence[tuple[Fraction, int]], spread: Fraction, *, pure: bool) -> Fraction:
        """Returns the exact loss of a pair in one output, rounded down: ε of pure DP, or in zCDP.

        Args:
            changes: (|Δ|, at how many coordinates).
            spread: Above 0: the declared spread, rounded up.
            pure: In which unit.
        """
        raise refusal(cls, "loss")

    @classmethod
    def unit_loss(cls, spread: Fraction, *, pure: bool) -> Fraction:
        """Returns the loss of one coordinate that moves by 1, rounded up; a loss convex in the move and 0 at 0.

        Args:
            spread: Above 0: the declared spread, rounded down.
            pure: In which unit.
        """
        raise refusal(cls, "unit_loss")


def lacks(law: type[Noise], *abilities: str) -> str:
    """Returns what noise of a law cannot be asked, with the remedy; empty where it can be asked all of it."""
    for ability in abilities:
        if vars(Noise)[ability] is _defines(law, ability):
            return _say_lacking(law, ability)
    return ""


def refusal(law: type[Noise], ability: str) -> ParameterError:
    """Returns the error of a question that a law does not answer."""
    return ParameterError(_say_lacking(law, ability), name="mechanism", given=law.name)


def _say_lacking(law: type[Noise], ability: str) -> str:
    message = f"noise of the law {law.name!r} has no {_ABILITIES[ability]}"
    return f"{message}: give {law.__name__} the method `{ability}`"


def _defines(law: type[Noise], ability: str) -> object:
    return next(vars(kind)[ability] for kind in law.__mro__ if ability in vars(kind))


class Mechanism(Protocol):
    """Noise with an exact spread, and what it costs on a statistic of given sensitivity."""

    @property
    def law(self) -> type[Noise]:
        """Returns the law: the class of the noise that `at` returns."""
        ...

    @property
    def words(self) -> str:
        """Returns the mechanism in words with its spread."""
        ...

    @property
    def latex(self) -> str:
        """Returns the noise's law as a formula."""
        ...

    @property
    def spread(self) -> Expr:
        """Returns the declared spread (variance, or scale b)."""
        ...

    @property
    def std(self) -> Expr:
        """Returns the standard deviation of one coordinate."""
        ...

    def whiten(self, sensitivity: Sensitivity) -> Sensitivity:
        """Returns the sensitivity in coordinates in which the noise is independent and of one scale."""
        ...

    def whitened(self, difference: SparseDifference) -> SparseDifference:
        """Returns a pair's change in those coordinates."""
        ...

    def zcdp(self, sensitivity: Sensitivity) -> Expr:
        """Returns the least ρ known for which the release is ρ-zCDP, of a sensitivity in those coordinates."""
        ...

    def pure(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns ε of pure DP, or None where no finite ε holds."""
        ...

    def gdp_squared(self, sensitivity: Sensitivity) -> Expr | None:
        """Returns μ² if the release is exactly as private as N(0, 1) against N(μ, 1), None if it is not Gaussian."""
        ...

    def at(self, values: Mapping[str, Fraction]) -> Noise:
        """Returns the noise that is drawn at the given parameters."""
        ...


def positive_scale(spread: Expr, values: Mapping[str, Fraction]) -> float:
    """Returns a spread as a float, rounded up.

    Raises:
        ParameterError: It is not positive and finite at these parameters.
    """
    scale = spread.number(values, rounding="up")
    if not (scale > 0 and math.isfinite(scale)):
        raise ParameterError(
            f"expected a positive, finite spread, got {spread} = {scale} at {dict(values)}", given=scale
        )
    return scale
