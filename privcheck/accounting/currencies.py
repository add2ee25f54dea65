"""Cost of an event in a totally ordered currency, exact or rounded up: the unit of fully adaptive spending.

| currency | cost of one release | guarantee of Σ cost ≤ cap, chosen adaptively |
| --- | --- | --- |
| `pure` | ε | Rogers, Roth, Ullman & Vadhan 2016: basic composition is a filter |
| `zcdp` | ρ | Whitehouse, Ramdas, Rogers & Wu 2023; Feldman & Zrnic 2021 at every order |
| `gdp` | μ² | Smith & Thakurta 2022 |
| `renyi` | D_α in both directions, one α | Feldman & Zrnic 2021 |

Lemma filter-sum: Releases chosen adaptively whose costs in one currency, ε, ρ, μ² or D_α, never add up to more than a
cap keep the guarantee of the cap. Source: Rogers, Roth, Ullman & Vadhan 2016; Whitehouse, Ramdas, Rogers & Wu 2023;
Smith & Thakurta 2022; Feldman & Zrnic 2021.

A fraction is charged as the fraction, a float as the shortest decimal that names it, which is how it was written: a std
of 0.1 is a tenth. So n costs of one nth of a cap fill the cap exactly. Irrational costs, and costs made of several
events (trees, groups, samples), are rounded up.

A plan is a composition whose events are fixed in advance, and its exact curve is valid. Adaptively chosen spending
needs a totally ordered currency. Both meet in Σμ²: a μ whose trade-off function covers the plan's (`engine.covering`)
costs μ² in a filter, like one release, and so does every single event.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from privcheck.accounting.combining import job_of
from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.engine.bounded import BoundedRange
from privcheck.accounting.engine.covering import STEP, Composition, least_mu, least_rho
from privcheck.accounting.engine.discrete import DiscreteGaussian
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import DIRECTIONS, GaussianLaw, Law, LostLaw, ZcdpLaw
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.engine.sampled import SampledGaussian
from privcheck.accounting.events import Event, Piece
from privcheck.accounting.reals import Real, probability
from privcheck.errors import ParameterError
from privcheck.terms.symbols import to_float
from privcheck.terms.unit import RelationName

Name = Literal["pure", "zcdp", "gdp", "renyi"]
_UP: Final = Fraction(2**50 + 1, 2**50)  # outward rounding of a handful of floating-point operations
_CUMULANT: Final = 1e-12  # of K, relative, and the rounding of its exponentials
_ROUNDING: Final = 2e-15
_FROM_PURE: Final = "an ε-DP release: pure(epsilon=…)"

THEOREMS: Final[dict[Name, str]] = {
    "pure": "Σε, Rogers, Roth, Ullman & Vadhan 2016",
    "zcdp": "Σρ, Whitehouse, Ramdas, Rogers & Wu 2023",
    "gdp": "Σμ², Smith & Thakurta 2022",
    "renyi": "ΣD at one order, Feldman & Zrnic 2021",
}
# which concurrency the theorems cover that are named above, beside interactions that each end before the next begins
CONCURRENCY: Final[dict[Name, str]] = {
    "pure": "interactions that overlap too (Haney et al. 2023, for filters of (ε, δ)-DP)",
    "zcdp": "interactions one after the other: if two overlap, give each its own grant",
    "gdp": "interactions that overlap too (Haney et al. 2023, for filters of f-DP)",
    "renyi": "interactions that overlap too (Haney et al. 2023, for filters at one Rényi order)",
}
NOT_A_GUARANTEE: Final = (
    "the guarantee is that of the cap, not of the amount spent so far, because when to stop may depend on the answers"
)
UNITS: Final[dict[Name, str]] = {"pure": "ε", "zcdp": "ρ", "gdp": "μ²", "renyi": "D"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Currency:
    """Unit in which spending is counted.

    Attributes:
        name: "pure" (Σε), "zcdp" (Σρ), "gdp" (Σμ²) or "renyi" (ΣD_α).
        order: α of "renyi", above 1; None otherwise.
    """

    name: Name
    order: Fraction | None = None

    def __str__(self) -> str:
        return f"Rényi order {float(self.order or 0):g}" if self.name == "renyi" else self.name


_GDP: Final = Currency(name="gdp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of an event or curve in a currency.

    Attributes:
        amount: In the currency, exact or rounded up.
        lost: δ, the probability that a release loses everything outright.
        relation: Relation named by the event or curve; None for a number, or where the caller applied one.
    """

    amount: Fraction
    lost: Fraction = Fraction(0)
    relation: RelationName | None = None

    def __str__(self) -> str:
        return f"a cost of {self.amount!s:.40}" + (f" and δ = {self.lost!s:.40}" if self.lost else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Known guarantees of one law of an event, None where no finite one is known."""

    law: Piece
    pure: Fraction | None = None
    rho: Fraction | None = None
    mu_squared: Fraction | None = None
    lost: Fraction = Fraction(0)
    line: tuple[Fraction, Fraction] | None = None  # (ξ, ρ) with D_α ≤ ξ + ρα


def cost_of(what: object, currency: Currency) -> Cost:
    """Compute the cost of an event or a curve; over disjoint users (`parallel`) the dearest branch.

    Raises:
        ParameterError: The event has no finite cost in the currency; the message says what to do.
    """
    if isinstance(what, Event):
        return _repeat(_one(replace(what, count=1) if what.count != 1 else what, currency), what.count)
    if not isinstance(what, Curve):
        message = f"expected an event such as gaussian(std=30), a curve or an amount, got {what!r}"
        raise ParameterError(message, name="event", given=what)
    sums = [[cost_of(event, currency) for event in branch] for branch in what.branches]
    return Cost(
        amount=max(sum((c.amount for c in costs), Fraction(0)) for costs in sums),
        lost=max(sum((c.lost for c in costs), Fraction(0)) for costs in sums),
        relation=what.relation,
    )


def _repeat(cost: Cost, count: int) -> Cost:
    return cost if count == 1 else replace(cost, amount=cost.amount * count, lost=cost.lost * count)


@functools.lru_cache(maxsize=4096)
def _one(event: Event, currency: Currency) -> Cost:
    """Cost of one release: of its laws added up, or in μ² of its own curve where that is less."""
    cost = _by_laws(event, currency)
    if currency.name != "gdp":
        return cost
    covered = _compress((event,), Fraction(0))
    return replace(cost, amount=covered.mu_squared, lost=covered.lost)


def _by_laws(event: Event, currency: Currency) -> Cost:
    amount, lost = Fraction(0), Fraction(0)
    for piece, times in _pieces(event):
        known = _restate(event, _know(piece))
        one = _amount(known, currency)
        if one is None:
            raise ParameterError(_refusal(event, piece, currency), name="event", given=event)
        amount += one * times
        if given_up := known.lost + _infinite(piece, currency):
            lost += given_up * times
    return Cost(amount=amount, lost=lost, relation=event.relation)


def _pieces(event: Event) -> tuple[tuple[Piece, int], ...]:
    """Laws of an event; discrete Gaussian noise as one ZcdpLaw of Δ²/2σ², which holds for every shift."""
    if event.kind != "discrete_gaussian" or not event.pieces:
        return event.pieces
    return ((ZcdpLaw(to_float((event.amount("sensitivity") / event.amount("std")) ** 2 / 2, rounding="up")), 1),)


def _amount(known: _Known, currency: Currency) -> Fraction | None:
    if isinstance(known.law, LostLaw) or currency.name == "pure":
        return Fraction(0) if isinstance(known.law, LostLaw) else known.pure
    if currency.name == "zcdp":
        return _least(known.rho, *(() if known.pure is None else (pure_to_rho(known.pure), _own_rho(known))))
    if currency.name == "gdp":
        return known.mu_squared if known.mu_squared is not None or known.pure is None else pure_to_mu(known.pure) ** 2
    order = currency.order or Fraction(2)
    through_rho = _amount(known, Currency(name="zcdp"))
    smooth = None if through_rho is None else order * through_rho
    if known.line is not None:
        return _least(known.pure, known.line[0] + order * known.line[1])
    # ρ of a Gaussian says all there is
    own = None if isinstance(known.law, GaussianLaw | DiscreteGaussian | ZcdpLaw) else _divergence(known.law, order)
    return _least(known.pure, smooth, own)


def _least(*amounts: Fraction | None) -> Fraction | None:
    return min((f for f in amounts if f is not None), default=None)


def _restate(event: Event, known: _Known) -> _Known:
    """Tighten the guarantees of a law to the exact parameters of its event."""
    kind, get = event.kind, event.amount
    if isinstance(known.law, LostLaw):
        return replace(known, lost=get("delta")) if kind == "approximate" else known
    if kind in ("gaussian", "discrete_gaussian"):
        squared = (get("sensitivity") / get("std")) ** 2
        line = None if known.line is None else (Fraction(0), squared / 2)
        return replace(known, rho=squared / 2, mu_squared=squared if kind == "gaussian" else None, line=line)
    if kind == "zcdp":
        rho, xi = get("rho"), get("xi")
        return replace(known, rho=None if xi else rho, pure=None if rho else xi, line=(xi, rho))
    if (epsilon := _stated_epsilon(event)) is None:
        return known
    ranged = isinstance(known.law, BoundedRange)
    return replace(known, pure=epsilon, rho=epsilon * epsilon / 8 if ranged else known.rho)


def _stated_epsilon(event: Event) -> Fraction | None:
    """ε of pure DP exactly from the event's parameters; None where they do not state it."""
    kind, get = event.kind, event.amount
    if kind in ("laplace", "discrete_laplace"):
        return get("sensitivity") / get("scale")
    if kind in ("pure", "approximate", "randomized_response", "bounded_range"):
        return get("epsilon")
    if kind in ("exponential_mechanism", "permute_and_flip"):
        return get("epsilon") / 2 if event.parameter("monotone") else get("epsilon")
    ways = 1 if kind in ("noisy_max", "above_threshold") and event.parameter("monotone") else 2
    if kind == "noisy_max":
        return ways * get("sensitivity") / get("scale")
    if kind == "above_threshold":
        queries = ways * get("positives") / get("query_scale")
        return get("sensitivity") * (1 / get("threshold_scale") + queries)
    return None


def _know(piece: Piece) -> _Known:  # noqa: PLR0911 - one return a law
    """Guarantees of a law from its own numbers, rounded up.

    Bounded range η is η²/8-zCDP [lemma bounded-range-rho].
    """
    if isinstance(piece, LostLaw):
        return _Known(law=piece, lost=Fraction(piece.delta) * _UP)
    if isinstance(piece, GaussianLaw):
        squared = Fraction(piece.mu_squared) * _UP
        return _Known(law=piece, rho=squared / 2, mu_squared=squared)
    if isinstance(piece, ZcdpLaw):
        xi, rho = Fraction(piece.xi) * _UP, Fraction(piece.rho) * _UP
        return _Known(law=piece, rho=None if xi else rho, line=(xi, rho))
    if isinstance(piece, DiscreteGaussian):
        return _Known(law=piece, rho=(Fraction(piece.shift) / Fraction(piece.sigma)) ** 2 / 2 * _UP)
    if isinstance(piece, LaplaceLaw):
        pure = Fraction(piece.step) * _UP
        return _Known(law=piece, pure=pure, rho=laplace_rho(pure))
    if isinstance(piece, BoundedRange):
        pure = Fraction(piece.span_of_losses) * _UP
        return _Known(law=piece, pure=pure, rho=pure * pure / 8)
    largest = piece.largest if isinstance(piece, RenyiLaw) else max(piece.largest(d) for d in DIRECTIONS)
    # a largest loss of 0 is no guarantee but a factor on δ
    return _Known(law=piece, pure=Fraction(largest) * _UP if 0 < largest < math.inf else None)


def laplace_rho(step: Fraction) -> Fraction:
    """ρ of Laplace noise of ε = a, a + e^(−a) − 1, rounded up: D_α/α grows as α falls to 1.

    Below ½, where the terms cancel, an upper partial sum of its alternating series is used.
    """
    a = to_float(step, rounding="up")
    if a >= 0.5:
        return Fraction(a + math.expm1(-a)) * _UP if math.isfinite(a) else Fraction(a)
    tail = 0.0
    for k in range(14, 1, -1):  # a²/2 − a³/6 + … + a¹⁴/14!: terms alternate and fall, and the last one is added
        tail = 1 / math.factorial(k) - a * tail
    return Fraction(a) ** 2 * Fraction(tail) * _UP


@functools.lru_cache(maxsize=4096)
def pure_to_rho(epsilon: Fraction) -> Fraction:
    """ε·tanh(ε/2), the ρ of every ε-DP mechanism, rounded up.

    Randomised response dominates it, and its D_α/α falls from KL = ε·tanh(ε/2) at α = 1.
    """
    e = to_float(epsilon, rounding="up")
    return min(epsilon, Fraction(e) * Fraction(math.tanh(e / 2)) * _UP, epsilon * epsilon / 2)


@functools.lru_cache(maxsize=4096)
def pure_to_mu(epsilon: Fraction) -> Fraction:
    """Least μ for which every ε-DP mechanism is μ-GDP, −2Φ⁻¹(1/(1 + e^ε)), rounded up.

    Lemma pure-is-gaussian: −2Φ⁻¹(1/(1 + e^ε)) is the least μ for which every ε-DP mechanism is μ-GDP. Proof: the
    trade-off function of randomised response has its kink at α = β = 1/(1 + e^ε) and is straight elsewhere; that of
    μ-GDP is convex, has the same end points and meets the kink, so it lies below.
    """
    e = to_float(epsilon, rounding="up")
    if e == 0:
        return Fraction(0)
    # erfc(t) = 2/(1 + e^ε) for μ = 2√2·t; e^(−ε) is below it and erfc(t) ≤ e^(−t²), so that √ε is enough
    high = math.sqrt(e)
    if e < 600:
        low = 0.0
        for _ in range(100):
            middle = (low + high) / 2
            if not low < middle < high:
                break
            low, high = (low, middle) if _hides(middle, e) else (middle, high)
    return Fraction(high) * Fraction(2 * math.sqrt(2)) * _UP


def _hides(t: float, epsilon: float) -> bool:
    """Whether erf(t) ≥ tanh(ε/2) for certain; for ε of 1 or more by the complements, which keep their digits."""
    if epsilon < 1:
        return math.erf(t) * (1 - 4e-15) >= math.tanh(epsilon / 2)
    return math.erfc(t) * (1 + 4e-15) <= 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))


def _own_rho(known: _Known) -> Fraction | None:
    """ρ of a law's own Rényi divergences, rounded up; None where a closed form says as much, or they are not known."""
    law = known.law
    if (
        known.rho is not None
        or known.pure is None
        or isinstance(law, LostLaw | GaussianLaw | ZcdpLaw | DiscreteGaussian)
    ):
        return None
    divergence = lambda z: float(_divergence(law, 1 + Fraction(z)) or math.inf) * (1 + 1e-15)  # noqa: E731
    rho = least_rho(divergence, to_float(known.pure, rounding="up"))
    return Fraction(rho) * _UP if math.isfinite(rho) else None


def _divergence(piece: Law | RenyiLaw, order: Fraction) -> Fraction | None:
    """D_α of a law, the larger direction, rounded up; its mass at loss ∞ is left out."""
    z = to_float(order - 1, rounding="up")  # D grows with the order
    if isinstance(piece, RenyiLaw):
        k = float(piece.bound(np.array([z]))[0])
    else:
        k = max(_cumulant(piece, z, d) for d in DIRECTIONS)
    return Fraction(max(k, 0.0)) / (order - 1) * _UP if math.isfinite(k) else None


def _cumulant(law: Law, z: float, direction: Literal["remove", "add"]) -> float:
    cumulant = float(law.moments(np.array([z]), direction)[0][0])
    return cumulant + _CUMULANT * abs(cumulant) + _ROUNDING * (1 + z * law.span(direction))


def _infinite(piece: Piece, currency: Currency) -> Fraction:
    """Mass at loss ∞, left out by the cumulant of a pair and charged as δ instead."""
    if currency.name != "renyi" or isinstance(piece, LostLaw | ZcdpLaw | RenyiLaw | DiscreteGaussian):
        return Fraction(0)
    return Fraction(max(piece.infinite(d) for d in DIRECTIONS)) * _UP


def _refusal(event: Event, piece: Piece, currency: Currency) -> str:
    message = f"{event} has no finite cost in {currency}"
    if isinstance(piece, SampledGaussian):
        return (
            f"{message}: the saving of sampling shows only in Rényi orders; use currency='renyi' with an order, or "
            "spend gaussian(std=…) as if all users were sampled"
        )
    if currency.name == "pure":
        return f"{message}: its likelihood ratios are unbounded; use currency='zcdp', 'gdp' or 'renyi'"
    if isinstance(piece, DiscreteGaussian) or event.kind == "discrete_gaussian":
        return f"{message}: discrete noise is not on the Gaussian curve; use currency='zcdp' or 'renyi'"
    if isinstance(piece, ZcdpLaw):
        other = "'zcdp' or 'renyi'" if piece.xi == 0 else "'renyi'"
        return f"{message}: only {'(ξ, ρ)-' if piece.xi else 'ρ-'}zCDP is known of it; use currency={other}"
    if currency.name == "renyi":
        return f"{message}: nothing is known at this order; use a lower order, or spend {_FROM_PURE}"
    return f"{message}: its likelihood ratios are unbounded; use currency='renyi' with an order, or spend {_FROM_PURE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Cost of a plan in Σμ², as one release.

    Attributes:
        mu_squared: μ², rounded up.
        lost: δ₀: the mass lost outright and the δ set aside.
        method: Origin of μ.
        points: Number of ε at which the plan's curve was computed.
        relation: Relation under which the plan is priced; None where no event of it names one.
    """

    mu_squared: Fraction
    lost: Fraction
    method: str
    points: int
    relation: RelationName | None

    @property
    def mu(self) -> float:
        """μ, rounded up."""
        return math.nextafter(math.sqrt(to_float(self.mu_squared, rounding="up")), math.inf)

    @property
    def cost(self) -> Cost:
        """Cost to spend in a filter or odometer for "gdp"."""
        return Cost(amount=self.mu_squared, lost=self.lost, relation=self.relation)


def compress_to_mu(*parts: Event | Curve | Iterable[Event | Curve], lost: Real = 0) -> Compressed:
    """Find the least μ², to about 1e-4, for which a composition fixed in advance is μ-GDP up to a δ₀; certified.

    Never above Σμ² of the single events, where that is finite. For sampled noise, discrete Gaussian noise and zCDP no
    tail bound is known that Gaussian noise of a smaller spread than theirs would cover: they need `lost`.

    Args:
        parts: Events and curves, as in `compose`; fixed in advance.
        lost: δ set aside for the tail, in addition to the mass lost outright.

    Raises:
        ParameterError: No finite μ is known, or lost is out of range.

    >>> from privcheck import accounting as acc
    >>> plan = [acc.gaussian(std=30, count=1000), acc.laplace(scale=50, count=500)]
    >>> whole = compress_to_mu(plan)
    >>> round(acc.gdp_epsilon(whole.mu, 1e-6).value, 2), round(acc.compose(plan).epsilon(delta=1e-6).value, 2)
    (5.7, 5.7)
    >>> acc.Filter("gdp", cap=2).spend(whole.cost).amount == whole.mu_squared
    True
    """
    aside = probability("lost", lost)
    curve = compose(*parts)
    branches = [replace(_compress(branch, aside), relation=curve.relation) for branch in curve.branches]
    worst = max(branches, key=lambda c: c.mu_squared)
    return replace(worst, lost=max(c.lost for c in branches), points=sum(c.points for c in branches))


def _compress(branch: tuple[Event, ...], aside: Fraction) -> Compressed:
    """Cost of the events that one group of users sees, whatever their relation."""
    outright = _lost_outright(branch)
    job = replace(job_of(branch), lost=0.0, losts=())
    ceiling = _sum_of_squares(branch)
    summed = Compressed(
        mu_squared=ceiling or Fraction(0), lost=outright, method="Σμ² of its events", points=0, relation=None
    )
    if ceiling is not None and float(ceiling) <= job.mu_squared * (1 + STEP):
        return summed
    if job.hopeless:
        return summed if ceiling is not None else _refuse(branch)
    infinite = max(job.infinite(d) for d in job.directions) * (
        1 + 1e-6
    )  # a little more, so that there is an ε from which on it is enough
    allowed = infinite + to_float(aside, rounding="down")
    rest = Composition(job=job, allowed=allowed)
    if not math.isfinite(rest.tail) and not rest.gaussian:
        return summed if ceiling is not None else _refuse(branch)
    most = math.inf if ceiling is None else math.sqrt(float(ceiling))
    mu = least_mu(rest, most)
    if mu is None or mu >= most:
        return summed if ceiling is not None else _refuse(branch)
    return Compressed(
        mu_squared=Fraction(mu) ** 2,
        lost=outright + max(Fraction(infinite) + aside, Fraction(allowed)),
        method="least μ of the composed curve",
        points=len(rest.known),
        relation=None,
    )


def _refuse(branch: tuple[Event, ...]) -> Compressed:
    message = f"no finite μ is known for {', '.join(map(str, branch))}: nothing bounds the far tail of its loss"
    raise ParameterError(f"{message}; set some δ aside for it, such as lost=1e-9", name="lost", given=0)


def _lost_outright(branch: tuple[Event, ...]) -> Fraction:
    """Σδ lost outright, with the δ of `approximate` events taken exactly as written."""
    total = Fraction(0)
    for event in branch:
        for piece, times in event.pieces:
            if isinstance(piece, LostLaw):
                one = event.amount("delta") if event.kind == "approximate" else Fraction(piece.delta)
                total += one * times * event.count
    return total


def _sum_of_squares(branch: tuple[Event, ...]) -> Fraction | None:
    try:
        return sum((_by_laws(replace(e, count=1), _GDP).amount * e.count for e in branch), Fraction(0))
    except ParameterError:
        return None
