"""Additive noise, and mechanisms known only by a guarantee.

`laplace` is the scalar mechanism: for a vector with an ℓ1 budget, give the worst split over its coordinates as
sensitivity and count.

A spread without a sensitivity is in units of Δ (a noise multiplier), under any relation; for discrete noise, Δ = 1 on
integers. Where 1 would be right under one relation only (`symmetric_gaussian`), the sensitivity is required.
"""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.discrete import DiscreteGaussian, discrete_laplace_law, response_law
from privcheck.accounting.engine.integers import integer_vector_laws
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import GaussianLaw, LostLaw, ZcdpLaw
from privcheck.accounting.events.base import LEAST, Event, Piece, event, keep_fractions, ratio
from privcheck.accounting.reals import Real, real, whole
from privcheck.errors import ParameterError

_LEAST_STD: Final = 0.05  # of a discrete Gaussian whose masses are floats
_MOST_MOVED: Final = 1e9  # of its sensitivity
_MOST_SHIFT: Final = 500_000  # of discrete Laplace noise: that many different losses


def _response(epsilon: float, categories: int = 2) -> tuple[Piece, int]:
    return response_law(max(epsilon, LEAST), categories), 1


def gaussian(*, std: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Gaussian noise in every coordinate.

    Args:
        std: Standard deviation of one coordinate.
        sensitivity: ℓ2 sensitivity Δ₂ under the declared relation.
        count: Number of releases.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.gaussian(std=30, count=1000)).epsilon(delta=1e-6).value, 4)
    5.189
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    relative = ratio("gaussian", moved, spread)
    pieces: list[tuple[Piece, int]] = [(GaussianLaw(relative * relative), 1)] if relative > 0 else []
    return keep_fractions(
        event("gaussian", pieces, count, std=spread, sensitivity=moved, relation=None), std=std, sensitivity=sensitivity
    )


def laplace(*, scale: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Laplace noise of density exp(−|x|/b)/2b on a scalar.

    Args:
        scale: b.
        sensitivity: Δ, the largest change of the scalar under the declared relation. For a vector give the worst split
            of its ℓ1 budget: Δ₁/Δ∞ coordinates, each with a change of at most Δ∞, are sensitivity=Δ∞, count=Δ₁/Δ∞.
        count: Number of releases (or coordinates).

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.laplace(scale=50, count=500)).epsilon(delta=1e-6).value, 4)
    1.9805
    """
    spread, moved = real("scale", scale), real("sensitivity", sensitivity, strict=False)
    relative = ratio("laplace", moved, spread)
    return keep_fractions(
        event(
            "laplace",
            [(LaplaceLaw(relative), 1)] if relative > 0 else [],
            count,
            scale=spread,
            sensitivity=moved,
            relation=None,
        ),
        scale=scale,
        sensitivity=sensitivity,
    )


def discrete_gaussian(*, std: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Noise P(x) ∝ exp(−x²/2σ²) on the integers (Canonne, Kamath & Steinke 2020).

    Args:
        std: σ, the law's parameter.
        sensitivity: Δ of an integer-valued scalar. A non-integer value is read as the ℓ2 sensitivity of an integer
            vector: the worst change of that length is bounded by enumeration for small Δ², by a Gaussian with a
            variance smaller by one or two for σ above about 4, by Δ²/2σ²-zCDP otherwise (ibid.).
        count: Number of releases, adaptively composed.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.discrete_gaussian(std=8, count=4)).epsilon(delta=1e-6).value, 4)
    1.0606
    """
    spread, moved = real("std", std), real("sensitivity", sensitivity, strict=False)
    relative = ratio("discrete_gaussian", moved, spread)
    pieces: list[tuple[Piece, int]] = []
    note = ""
    if moved == int(moved) and spread >= _LEAST_STD and moved < _MOST_MOVED:
        pieces = [(DiscreteGaussian(spread, int(moved)), 1)] if moved else []
    else:
        laws = integer_vector_laws(spread, moved) if moved < _MOST_MOVED else None
        pieces = [(law, 1) for law in laws or (ZcdpLaw(relative * relative / 2),)]
        note = "moves of an integer vector bounded" if laws else ""
    return keep_fractions(
        event("discrete_gaussian", pieces, count, note, std=spread, sensitivity=moved, relation=None),
        std=std,
        sensitivity=sensitivity,
    )


def discrete_laplace(*, scale: Real, sensitivity: Real = 1, count: Real = 1) -> Event:
    """Noise P(x) ∝ exp(−|x|/b) on the integers, on an integer-valued scalar.

    Args:
        scale: b.
        sensitivity: Δ, an integer.
        count: Number of releases.

    Raises:
        ParameterError: A number is out of range, or Δ is not an integer.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.discrete_laplace(scale=5, count=4)).epsilon(delta=1e-6).value, 4)
    0.8
    """
    spread, moved = real("scale", scale), whole("sensitivity", sensitivity, least=0, most=_MOST_SHIFT)
    ratio("discrete_laplace", moved, spread)
    # with next to no noise the masses leave the floats' range; a Laplace pair of the same ε dominates
    pieces: list[tuple[Piece, int]] = []
    if moved:
        pieces.append((discrete_laplace_law(spread, moved), 1) if spread > 2e-3 else _response(moved / spread))
    return keep_fractions(
        event("discrete_laplace", pieces, count, scale=spread, sensitivity=moved, relation=None), scale=scale
    )


def symmetric_gaussian(
    *,
    variance: Real,
    kind: Literal["goe", "upper"] = "goe",
    sensitivity: Real | NDArray[np.float64],
    count: Real = 1,
) -> Event:
    """Symmetric matrix of Gaussian noise.

    GOE (off-diagonal variance v, diagonal 2v) costs ‖D‖_F²/2v of μ²; independent N(0, v) on and above the diagonal
    costs Σ_{i≤j} D_ij²/v, at most ‖D‖_F²/v, attained by diagonal D.

    Args:
        variance: v.
        kind: "goe" or "upper".
        sensitivity: ‖D‖_F, at most 1 for D = φφᵀ with ‖φ‖ ≤ 1 under add/remove and √2 under replace; or the matrix D of
            the worst pair itself.
        count: Number of releases.

    Raises:
        ParameterError: A number is out of range, or the matrix is not symmetric.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.symmetric_gaussian(variance=8, sensitivity=1, count=3)).epsilon(delta=1e-6).value, 4)
    1.9254
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
    mu_squared = ratio("symmetric_gaussian", squares, 2 * v if kind == "goe" else v)
    pieces: list[tuple[Piece, int]] = [(GaussianLaw(mu_squared), 1)] if moved > 0 else []
    return event("symmetric_gaussian", pieces, count, variance=v, noise=kind, sensitivity=moved, relation=None)


def pure(*, epsilon: Real, count: Real = 1) -> Event:
    """Mechanism known only to be ε-DP: binary randomised response dominates it.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.pure(epsilon=0.1, count=50)).epsilon(delta=1e-6).value, 4)
    3.1729
    """
    e = real("epsilon", epsilon, strict=False)
    return keep_fractions(
        event("pure", [_response(e)] if e > 0 else [], count, epsilon=e, relation=None), epsilon=epsilon
    )


def approximate(*, epsilon: Real, delta: Real, count: Real = 1) -> Event:
    """Mechanism known only to be (ε, δ)-DP: with probability δ everything is lost, otherwise it is ε-DP.

    That pair dominates every (ε, δ)-DP mechanism (Kairouz, Oh & Viswanath 2015), so k of them lose 1 − (1 − δ)^k
    outright.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.approximate(epsilon=0.1, delta=1e-9, count=50)).epsilon(delta=1e-6).value, 4)
    3.1769
    """
    e, d = real("epsilon", epsilon, strict=False), real("delta", delta, strict=False, most=1)
    if d == 1:
        raise ParameterError("expected delta below 1, got 1: nothing is protected", name="delta", given=delta)
    pieces: list[tuple[Piece, int]] = [_response(e)] if e > 0 else []
    lossy = [*pieces, (LostLaw(d), 1)] if d > 0 else pieces
    return keep_fractions(
        event("approximate", lossy, count, epsilon=e, delta=d, relation=None), epsilon=epsilon, delta=delta
    )


def non_private(*, count: Real = 1) -> Event:
    """Release that protects nothing: ε = ∞ at every δ below 1.

    Raises:
        ParameterError: The count is out of range.
    """
    return event(
        "non_private", [(LostLaw(1 - 2.0**-53), 2)], count, relation=None
    )  # twice: what is kept rounds to nothing


def zcdp(*, rho: Real, xi: Real = 0, count: Real = 1) -> Event:
    """Mechanism known only to be (ξ, ρ)-zCDP: no pair dominates it, Rényi orders compose it.

    For all α > 1, D_α ≤ ξ + ρα (Bun & Steinke 2016, Definition 1.1). ρ = 0 leaves D_∞ ≤ ξ, which is ξ-DP.

    Args:
        rho: ρ in nats.
        xi: ξ in nats.
        count: Number of releases.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.zcdp(rho=0.1)).epsilon(delta=1e-6).value, 4)
    2.1419
    """
    r, x = real("rho", rho, strict=False), real("xi", xi, strict=False)
    pieces: list[tuple[Piece, int]] = []
    if r > 0:
        pieces.append((ZcdpLaw(r, x), 1))
    elif x > 0:
        pieces.append(_response(x))
    return keep_fractions(event("zcdp", pieces, count, rho=r, xi=x, relation=None), rho=rho, xi=xi)


def randomized_response(*, epsilon: Real, categories: Real = 2, count: Real = 1) -> Event:
    """Randomised response over m categories with likelihood ratios of at most e^ε.

    Args:
        epsilon: ε: truth with probability e^ε/(e^ε + m − 1).
        categories: m, at least 2.
        count: Number of releases.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> round(acc.compose(acc.randomized_response(epsilon=0.5, categories=4, count=10)).epsilon(delta=1e-6).value, 4)
    4.9677
    """
    e, m = real("epsilon", epsilon, strict=False), whole("categories", categories, least=2)
    pieces = [_response(e, m)] if e > 0 else []
    return keep_fractions(
        event("randomized_response", pieces, count, epsilon=e, categories=m, relation=None), epsilon=epsilon
    )
