"""Events for people who only have numbers: what was released, at which spread and sensitivity, how often.

Every event is a pure value, checked where it is made. Sensitivities are those of the declared neighbouring relation,
computed before anything gets here: the relation is applied once, and the accountant sees Δ/spread only. `laplace` is
the scalar mechanism: for a vector with an ℓ1 budget give the worst split over its coordinates as sensitivity and count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.discrete import MOST_STD, DiscreteGaussian, discrete_laplace_law, response_law
from privcheck.accounting.laws import GaussianLaw, LaplaceLaw, Law, LostLaw, ZcdpLaw
from privcheck.accounting.parameters import Real, real, whole
from privcheck.accounting.sampled import SampledGaussian
from privcheck.accounting.trees import tree_load
from privcheck.errors import ParameterError

Piece = Law | ZcdpLaw | LostLaw
_LEAST: Final = 1e-60  # a loss below it is rounded up to it
_FEW: Final = 1e-12  # a sampling rate below it is rounded up to it
_GIVEN_AWAY: Final = 20.0  # Δ/std of sampled noise above which its exact law is too steep for the contour
_NEAR: Final = 1e-8  # Δ/std below which sampling is left out
_MOST_SHIFT: Final = 500_000  # of discrete Laplace noise: that many different losses


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What one mechanism releases, `count` times.

    Attributes:
        kind: The function that made it.
        parameters: Its checked parameters.
        pieces: Laws of the loss of one release, with multiplicities.
        count: How often, adaptively.
        note: What its figures rest on, where that is not exact.
    """

    kind: str
    parameters: tuple[tuple[str, float | int | str], ...]
    pieces: tuple[tuple[Piece, int], ...]
    count: int
    note: str = ""

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={value}" for name, value in self.parameters)
        return f"{self.count} × {self.kind}({inside})" if self.count > 1 else f"{self.kind}({inside})"

    def parameter(self, name: str) -> float:
        """Returns a numeric parameter."""
        return float(dict(self.parameters)[name])


def event(
    kind: str, pieces: Sequence[tuple[Piece, int]], count: object, note: str = "", /, **given: float | str
) -> Event:
    """Returns an event from checked parameters; `count` is checked here."""
    parameters = tuple(given.items())
    return Event(kind=kind, parameters=parameters, pieces=tuple(pieces), count=whole("count", count), note=note)


def _ratio(kind: str, top: float, bottom: float) -> float:
    """Returns Δ/spread, which must not leave the floats' range; rounded up to 1e-60, so that powers of it do not."""
    found = top / bottom
    if not math.isfinite(found) or (top > 0 and found == 0):
        message = f"{kind}: sensitivity/spread = {top:g}/{bottom:g} is out of range; expected between 1e-300 and 1e300"
        raise ParameterError(message, name="sensitivity", given=top)
    return max(found, _LEAST) if found > 0 else 0.0


def _response(epsilon: float, categories: int = 2) -> tuple[Piece, int]:
    return response_law(max(epsilon, _LEAST), categories), 1


def gaussian(*, std: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Returns Gaussian noise in every coordinate.

    Args:
        std: Standard deviation of one coordinate.
        sensitivity: ℓ2 sensitivity Δ₂ under the declared relation.
        count: How many releases.

    Raises:
        ParameterError: A number is out of range.
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    ratio = _ratio("gaussian", moved, spread)
    pieces: list[tuple[Piece, int]] = [(GaussianLaw(ratio * ratio), 1)] if ratio > 0 else []
    return event("gaussian", pieces, count, std=spread, sensitivity=moved)


def laplace(*, scale: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Returns Laplace noise of density exp(−|x|/b)/2b on a scalar.

    Args:
        scale: b.
        sensitivity: Δ, the most the scalar moves under the declared relation. For a vector give the worst split of its
            ℓ1 budget: coordinates that move by at most Δ∞ each, Δ₁/Δ∞ of them, are sensitivity=Δ∞, count=Δ₁/Δ∞.
        count: How many releases (or coordinates).

    Raises:
        ParameterError: A number is out of range.
    """
    spread, moved = real("scale", scale), real("sensitivity", sensitivity, strict=False)
    ratio = _ratio("laplace", moved, spread)
    return event("laplace", [(LaplaceLaw(ratio), 1)] if ratio > 0 else [], count, scale=spread, sensitivity=moved)


def discrete_gaussian(*, std: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Returns noise P(x) ∝ exp(−x²/2σ²) on the integers (Canonne, Kamath & Steinke 2020).

    Args:
        std: σ, the law's parameter.
        sensitivity: Δ of an integer-valued scalar. Any other value is read as the ℓ2 sensitivity of an integer
            vector, of which only Δ²/2σ²-zCDP is used (ibid.).
        count: How many releases.

    Raises:
        ParameterError: A number is out of range.
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    times = whole("count", count)
    pieces: list[tuple[Piece, int]] = []
    if moved > 0:
        ratio = _ratio("discrete_gaussian", moved, spread)
        scalar = moved == int(moved) and spread >= 0.05 and spread * math.sqrt(times) <= MOST_STD and moved < 1e9
        law: Piece = DiscreteGaussian(spread, int(moved)) if scalar else ZcdpLaw(ratio * ratio / 2)
        pieces.append((law, 1))
    return event("discrete_gaussian", pieces, times, std=spread, sensitivity=moved)


def discrete_laplace(*, scale: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Returns noise P(x) ∝ exp(−|x|/b) on the integers, on an integer-valued scalar.

    Args:
        scale: b.
        sensitivity: Δ, an integer.
        count: How many releases.

    Raises:
        ParameterError: A number is out of range, or Δ is not an integer.
    """
    spread, moved = real("scale", scale), whole("sensitivity", sensitivity, least=0, most=_MOST_SHIFT)
    _ratio("discrete_laplace", moved, spread)
    # with next to no noise the masses leave the floats' range; a Laplace pair of the same ε dominates
    pieces: list[tuple[Piece, int]] = []
    if moved:
        pieces.append((discrete_laplace_law(spread, moved), 1) if spread > 2e-3 else _response(moved / spread))
    return event("discrete_laplace", pieces, count, scale=spread, sensitivity=moved)


def symmetric_gaussian(
    *,
    variance: Real,
    kind: Literal["goe", "upper"] = "goe",
    sensitivity: Real | NDArray[np.float64] = 1,
    count: Real = 1,
) -> Event:
    """Returns a symmetric matrix of Gaussian noise.

    GOE (off-diagonal variance v, diagonal 2v) costs ‖D‖_F²/2v of μ²; independent N(0, v) on and above the diagonal
    costs Σ_{i≤j} D_ij²/v, at most ‖D‖_F²/v, attained by diagonal D.

    Args:
        variance: v.
        kind: "goe" or "upper".
        sensitivity: ‖D‖_F, at most 1 for D = φφᵀ with ‖φ‖ ≤ 1 under add/remove and √2 under replace; or the matrix D of
            the worst pair itself.
        count: How many releases.

    Raises:
        ParameterError: A number is out of range, or the matrix is not symmetric.
    """
    if kind not in ("goe", "upper"):
        raise ParameterError(f"expected kind 'goe' or 'upper', got {kind!r}", name="kind", given=kind)
    v = real("variance", variance)
    if isinstance(sensitivity, np.ndarray) and sensitivity.ndim > 0:
        d = np.asarray(sensitivity, dtype=np.float64)
        if d.ndim != 2 or d.shape[0] != d.shape[1] or not np.isfinite(d).all() or not np.array_equal(d, d.T):
            message = "expected sensitivity as a number or a finite symmetric matrix, got an array of shape"
            raise ParameterError(f"{message} {d.shape}", name="sensitivity", given=sensitivity)
        squares = (
            math.fsum((d * d).ravel().tolist()) if kind == "goe" else math.fsum((np.triu(d) ** 2).ravel().tolist())
        )
        moved = math.sqrt(squares)
    else:
        moved = real("sensitivity", sensitivity, strict=False)
        squares = moved * moved  # ∞ where it overflows, which is refused below
    mu_squared = _ratio("symmetric_gaussian", squares, 2 * v if kind == "goe" else v)
    pieces: list[tuple[Piece, int]] = [(GaussianLaw(mu_squared), 1)] if moved > 0 else []
    return event("symmetric_gaussian", pieces, count, variance=v, noise=kind, sensitivity=moved)


def pure(*, epsilon: Real, count: Real = 1) -> Event:
    """Returns an ε-DP mechanism of which nothing else is known: binary randomised response dominates it.

    Raises:
        ParameterError: A number is out of range.
    """
    e = real("epsilon", epsilon, strict=False)
    return event("pure", [_response(e)] if e > 0 else [], count, epsilon=e)


def approximate(*, epsilon: Real, delta: Real, count: Real = 1) -> Event:
    """Returns an (ε, δ)-DP mechanism: with probability δ all is lost, otherwise it is ε-DP.

    That pair dominates every (ε, δ)-DP mechanism (Kairouz, Oh & Viswanath 2015), so that k of them lose
    1 − (1 − δ)^k outright.

    Raises:
        ParameterError: A number is out of range.
    """
    e, d = real("epsilon", epsilon, strict=False), real("delta", delta, strict=False, most=1)
    if d == 1:
        raise ParameterError("expected delta below 1, got 1: nothing is protected", name="delta", given=delta)
    pieces: list[tuple[Piece, int]] = [_response(e)] if e > 0 else []
    return event("approximate", [*pieces, (LostLaw(d), 1)] if d > 0 else pieces, count, epsilon=e, delta=d)


def zcdp(*, rho: Real, count: Real = 1) -> Event:
    """Returns a ρ-zCDP mechanism of which nothing else is known: no pair dominates it, Rényi orders compose it.

    Raises:
        ParameterError: A number is out of range.
    """
    r = real("rho", rho, strict=False)
    return event("zcdp", [(ZcdpLaw(r), 1)] if r > 0 else [], count, rho=r)


def randomized_response(*, epsilon: Real, categories: Real = 2, count: Real = 1) -> Event:
    """Returns randomised response over m categories whose likelihood ratios are at most e^ε.

    Args:
        epsilon: ε: truth with probability e^ε/(e^ε + m − 1).
        categories: m, at least 2.
        count: How many releases.

    Raises:
        ParameterError: A number is out of range.
    """
    e, m = real("epsilon", epsilon, strict=False), whole("categories", categories, least=2)
    return event("randomized_response", [_response(e, m)] if e > 0 else [], count, epsilon=e, categories=m)


def poisson_gaussian(*, std: Real, rate: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Returns Gaussian noise on a Poisson sample of the users, under adding or removing one user; both directions.

    Args:
        std: Standard deviation of one coordinate.
        rate: The probability with which each user is in the sample.
        sensitivity: ℓ2 norm of one user's contribution.
        count: How many rounds, sampled afresh.

    Raises:
        ParameterError: A number is out of range.
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    q, ratio = real("rate", rate, most=1), _ratio("poisson_gaussian", moved, spread)
    pieces: list[tuple[Piece, int]] = []
    note = ""
    if ratio > 0:
        if ratio > 1e4:
            message = f"poisson_gaussian: sensitivity/std = {ratio:g}; expected at most 1e4: that is hardly any noise"
            raise ParameterError(message, name="std", given=std)
        if ratio < _NEAR and q < 1:
            note = "sampling left out: its losses are next to nothing"
        elif q < _FEW:
            note = f"sampling rate rounded up to {_FEW:g}"
        sampled = q < 1 and ratio >= _NEAR
        if sampled and ratio > _GIVEN_AWAY:
            # outputs of the mechanism with and without the user differ in the runs that sample them, a share q at most
            note = "hardly any noise: whoever is sampled counts as given away"
            pieces.append((LostLaw(q), 1))
        else:
            pieces.append((SampledGaussian(ratio, max(q, _FEW)) if sampled else GaussianLaw(ratio * ratio), 1))
    return event("poisson_gaussian", pieces, count, note, std=spread, rate=q, sensitivity=moved)


def tree(*, node: Event, leaves: Real, participations: Real = 1, separation: Real = 1, count: Real = 1) -> Event:
    """Returns a binary tree of noisy partial sums, a node at a time an event.

    One participation is in ⌊log₂ T⌋ + 1 complete nodes at most. Several add up: Gaussian nodes are charged the largest
    Σc_v² over all patterns of leaves (T = 8, p = 2: 14), Laplace nodes the least moves that majorise every pattern: no
    pattern exceeds their δ(ε). Where the tree is too large for that, each level has its own worst pattern, and the
    figures' method says "bounded level by level".

    Args:
        node: One node's event, `sensitivity` being that of one participation; any event for one participation.
        leaves: T.
        participations: Of one user.
        separation: Leaves between two participations, at least.
        count: How many such trees.

    Raises:
        ParameterError: A number is out of range, or the node's event is neither Gaussian nor Laplace for several
            participations.
    """
    if not isinstance(node, Event) or node.count != 1:
        raise ParameterError(
            "expected node as one event with count=1, for example gaussian(std=30)", name="node", given=node
        )
    size, p = whole("leaves", leaves), whole("participations", participations, most=1_000_000)
    apart = whole("separation", separation)
    load = tree_load(size, p, apart)
    pieces: list[tuple[Piece, int]] = []
    for piece, times in node.pieces:
        if p == 1:
            pieces.append((piece, times * load.total))
        elif isinstance(piece, GaussianLaw):
            pieces.append((GaussianLaw(piece.mu_squared * load.squares), times))
        elif isinstance(piece, LaplaceLaw):
            pieces += [(LaplaceLaw(piece.step * c), times * n) for c, n in load.moves]
        else:
            message = f"expected gaussian or laplace nodes for {p} participations, got {node}"
            raise ParameterError(message, name="node", given=node)
    laplace_nodes = p > 1 and any(isinstance(piece, LaplaceLaw) for piece, _ in node.pieces)
    if not (load.least if laplace_nodes else load.exact):
        note = "tree bounded level by level"
    else:
        note = "" if load.attained or not laplace_nodes else "tree bounded by the least moves above all patterns"
    return event("tree", pieces, count, note, node=str(node), leaves=size, participations=p, separation=apart)
