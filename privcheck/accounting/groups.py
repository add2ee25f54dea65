"""Group privacy: guarantees for k users who change together, and for one user with several records.

Additive noise is charged at k times the sensitivity, a Gaussian curve at k times μ (Dong, Roth & Su 2022, Theorem
2.14). (ξ, ρ)-zCDP costs k²ρ and ξk(1 + ½ + … + 1/k) (Bun & Steinke 2016, Section 5), a Rényi curve costs Σ_{j<k} kα/(kα
− j)·D_{kα−j} (their triangle inequality, k − 1 times). Everything else is bounded by its own profile.

Lemma group-profile: With δ_k the profile of k users, δ_{j+k}(ε₁ + ε₂) ≤ δ_j(ε₁) + e^{ε₁} δ_k(ε₂), which is the tightest
bound from the curve of one user alone. Source: Dong, Roth & Su 2022, Theorem 2.14, by duality. Proof: P₀(S) ≤
e^{ε₁}P_j(S) + δ_j(ε₁) along a chain of neighbours.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, overload

import numpy as np

from privcheck.accounting.answers import deltas_at
from privcheck.accounting.combining import job_of
from privcheck.accounting.curve import Curve, compose
from privcheck.accounting.engine.atoms import Atoms
from privcheck.accounting.engine.discrete import AtomicLaw, DiscreteGaussian
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import (
    UNIT,
    Direction,
    Floats,
    GaussianLaw,
    ZcdpLaw,
    repeat_on_one_draw,
)
from privcheck.accounting.engine.orders import Bound, RenyiLaw, corners_of
from privcheck.accounting.engine.profiles import Content, profile_atoms, profile_law
from privcheck.accounting.events import Event, Piece, discrete_gaussian, discrete_laplace
from privcheck.accounting.events.base import event, join_notes
from privcheck.accounting.reals import Real, whole
from privcheck.errors import ParameterError

_MOST: Final = 10_000  # users of a group
_POINTS: Final = 161  # of a profile that is put together
_FARTHEST: Final = 600.0
_UP: Final = 1 + 2.0**-50
_CORNERS: Final = 16  # terms of a group's Rényi bound whose bends are looked at, besides its end
_TAIL: Final = 1e-16  # δ up to which a profile is followed


@overload
def group(what: Event, *, size: Real) -> Event: ...
@overload
def group(what: Curve, *, size: Real) -> Curve: ...
def group(what: Event | Curve, *, size: Real) -> Event | Curve:
    """Convert an event, or a curve, to neighbours that differ in k users, under the relation of one.

    In a composition every event is converted to the group: adaptive composition holds for any two data sets. In a group
    of a sample each user is sampled separately; in a sample of a group all are drawn or left out together.

    Args:
        what: Event or curve for neighbours that differ in one user.
        size: k.

    Raises:
        ParameterError: k is out of range, or no privacy is left of an event.

    >>> from privcheck import accounting as acc
    >>> one, three = acc.compose(acc.gaussian(std=2)), acc.compose(acc.group(acc.gaussian(std=6), size=3))
    >>> one.epsilon(delta=1e-6).value == three.epsilon(delta=1e-6).value
    True
    """
    k = whole("size", size, most=_MOST)
    if isinstance(what, Curve):
        branches = {tuple(_group(e, k) for e in branch) for branch in what.branches}
        return Curve(branches=tuple(sorted(branches, key=str)))
    if not isinstance(what, Event):
        raise ParameterError(f"expected an event or a curve, got {what!r}", name="what", given=what)
    return _group(what, k)


def user_level(what: Event, *, records: Real, releases: Real | None = None) -> Event:
    """Convert an event from neighbours that differ in one record to neighbours that differ in one user.

    Args:
        what: Event for one record; its releases with other users' records only are the same under both neighbours.
        records: m, the largest number of records of one user in one release: a group of m records.
        releases: Number of releases with any records of a user; all of them if None.

    Raises:
        ParameterError: A number is out of range.

    >>> from privcheck import accounting as acc
    >>> daily = acc.laplace(scale=10, count=365)
    >>> acc.compose(acc.user_level(daily, records=4, releases=7)).epsilon(delta=0).value <= 2.8 * (1 + 1e-12)
    True
    """
    if not isinstance(what, Event):
        raise ParameterError(f"expected an event, got {what!r}; take a curve's one by one", name="what", given=what)
    times = what.count if releases is None else min(what.count, whole("releases", releases))
    return group(replace(what, count=times), size=records)


@dataclass(frozen=True, slots=True)
class GroupBound:
    """K(z) of a group of k users from that of one: z·Σ_{j<k} kα/(kα − j)·D_{kα−j}, α = 1 + z.

    Lemma group-renyi: A group of k users has D_α ≤ Σ_{j<k} kα/(kα − j)·D_{kα−j} of one user. Source: the triangle
    inequality of Bun & Steinke 2016, Section 5. Proof: with the last of k users taken apart, D_α(P₀‖P_k) ≤
    kα/(kα − 1)·D_{(kα−1)/(k−1)}(P₀‖P_{k−1}) + D_{kα}(P_{k−1}‖P_k).

    Attributes:
        one: K of one user.
        size: k.
    """

    one: Bound
    size: int

    @property
    def corners(self) -> tuple[float, ...]:
        """The z at which one of its terms bends or ends."""
        corners = {(z - j) / self.size for z in corners_of(self.one) for j in range(min(self.size, _CORNERS)) if z > j}
        return tuple(
            sorted(corners | {(z - self.size + 1) / self.size for z in corners_of(self.one) if z >= self.size})
        )

    def __call__(self, z: Floats) -> Floats:
        """(m,) bounds at (m,) z, rounded up."""
        top, total = self.size * (1 + z), np.zeros(len(z))
        for j in range(self.size):
            less = self.size * z + (self.size - 1 - j)  # kα − j − 1
            total += top / (less + 1) * self.one(less) / less
        result: Floats = z * total * (1 + (2 * self.size + 16) * UNIT)  # k sums, and the roundings of a term
        return result


def _group(one: Event, k: int) -> Event:
    if k == 1 or not one.pieces:
        return one
    if one.kind == "discrete_laplace" and k * one.parameter("sensitivity") <= 1000:
        made = discrete_laplace(scale=one.parameter("scale"), sensitivity=k * one.parameter("sensitivity"))
        return _event(one, k, made.pieces, "")
    laws = [law for law, _ in one.pieces]
    if one.kind == "discrete_gaussian" and not all(isinstance(law, DiscreteGaussian) for law in laws):
        # k users move an integer vector by k times its length at most
        return discrete_gaussian(std=one.amount("std"), sensitivity=k * one.amount("sensitivity"), count=one.count)
    # what is added to moves k times as far; a group has such laws only where its own event had
    additive = one.kind in ("laplace", "tree", "discrete_gaussian", "group")
    scaled: list[tuple[Piece, int]] = []
    if all(isinstance(x, GaussianLaw) or (additive and isinstance(x, LaplaceLaw | DiscreteGaussian)) for x in laws) or (
        all(isinstance(x, ZcdpLaw | RenyiLaw) for x in laws)
    ):
        scaled = [(_scale(law, k), times) for law, times in one.pieces]
        return _event(one, k, scaled, one.note)
    return _event(one, k, [(_from_profile(replace(one, count=1), k), 1)], "group bounded by the curve of one user")


def _event(one: Event, k: int, pieces: Sequence[tuple[Piece, int]], note: str) -> Event:
    notes, single = join_notes(one.note, note), str(replace(one, count=1))
    return event("group", pieces, one.count, notes, of=single, size=float(k), relation=one.relation)


def _scale(law: Piece, k: int) -> Piece:
    if isinstance(law, GaussianLaw):
        return GaussianLaw(law.mu_squared * k * k)
    if isinstance(law, LaplaceLaw):
        return LaplaceLaw(law.step * k)
    if isinstance(law, DiscreteGaussian):
        return DiscreteGaussian(law.sigma, law.shift * k)
    if isinstance(law, ZcdpLaw):
        return ZcdpLaw(law.rho * k * k, law.xi * k * math.fsum(1 / j for j in range(1, k + 1)) * _UP)
    assert isinstance(law, RenyiLaw)
    return RenyiLaw(GroupBound(law.bound, k), law.largest * k, law.drawn)


@functools.lru_cache(maxsize=64)
def _from_profile(one: Event, k: int) -> AtomicLaw:
    """Dominating law of a group from certified points of one user's profile, doubled and added."""
    curve = compose(one)
    x, h = _points(curve)
    powers, left = (x, h), k
    total: tuple[Floats, Floats] | None = None
    while left:
        if left & 1:
            total = powers if total is None else _chain(total, powers)
        left >>= 1
        if left:
            powers = _chain(powers, powers)
    assert total is not None
    law = profile_law([(Fraction(a), Fraction(min(1.0, b))) for a, b in zip(*(v.tolist() for v in total), strict=True)])
    if law.infinite("remove") >= 1:
        message = f"expected a group small enough for some privacy; {one} gives none for {k} users"
        raise ParameterError(message, name="size", given=k)
    if all(piece.on_one_draw is None for piece, _ in one.pieces):
        return law
    return replace(law, build=_group_atoms, arguments=(*law.arguments, one, k), repeat=_repeat_group)


def _group_atoms(knots: Content, _: Event, __: int, direction: Direction) -> Atoms:
    return profile_atoms(knots, direction)


def _repeat_group(times: int, _: Content, one: Event, k: int) -> AtomicLaw:
    """Group law of a mechanism that consists of one user's n releases on one draw.

    Each member changes all n releases at once, so the chain of k neighbours has k steps for that mechanism.
    """
    return _from_profile(replace(one, pieces=repeat_on_one_draw(one.pieces, times)), k)


def _points(curve: Curve) -> tuple[Floats, Floats]:
    """e^ε and bounds on δ(ε), ε of both signs, at the curve's corners where it has few, and at grid points."""
    job = job_of(curve.branches[0])
    largest = job.largest()
    reach = largest if largest <= _FARTHEST else min(curve.epsilon(delta=_TAIL).upper, _FARTHEST)
    if not math.isfinite(reach) or largest > _FARTHEST:
        lost = curve.delta(epsilon=_FARTHEST).upper
        reach = min(reach, curve.epsilon(delta=min(0.5, lost * (1 + 1e-6) + _TAIL)).upper, _FARTHEST)
    corners = [
        float(abs(at))
        for law, _ in job.laws
        if isinstance(law, AtomicLaw)
        for at in law.atoms("remove").losses[:_POINTS]
    ]
    grid = np.linspace(0.0, reach, _POINTS).tolist()
    epsilons = sorted({0.0, *grid, *(e for e in corners if e <= reach), *([largest] if largest <= _FARTHEST else [])})
    # all at once: what has no closed form is convolved once, not once a point
    d = np.minimum(1.0, deltas_at(curve.branches[0], np.array(epsilons)).values)
    x = np.exp(epsilons) * _UP
    # of the other direction: h(1/x) = 1 − (1 − h(x))/x
    mirror, below = 1 / x * _UP, np.minimum(1.0, (1 - (1 - d) / x) * _UP + 2.0**-52)
    return _thin(np.concatenate([mirror, x]), np.concatenate([below, d]))


def _chain(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Points of the profile of both groups together: h(xy) ≤ h₁(x) + x·h₂(y), rounded up."""
    x, h = one
    y, g = other
    keep = np.abs(np.add.outer(np.log(x), np.log(y))) <= _FARTHEST
    above = (np.multiply.outer(x, np.ones(len(y))) * g + h[:, None]) * _UP
    return _thin((np.multiply.outer(x, y) * _UP)[keep], np.minimum(1.0, above)[keep])


def _thin(x: Floats, h: Floats) -> tuple[Floats, Floats]:
    """Points on the lower hull of the given ones, at most twice as many as in a profile: any subset is a bound."""
    order = np.lexsort((h, x))
    kept: list[tuple[float, float]] = [(0.0, 1.0)]
    for a, b in zip(x[order].tolist(), h[order].tolist(), strict=True):
        if b >= kept[-1][1] or a == kept[-1][0]:
            continue
        while len(kept) >= 2:
            (x0, h0), (x1, h1) = kept[-2], kept[-1]
            if (h1 - h0) * (a - x0) < (b - h0) * (x1 - x0):
                break
            kept.pop()
        kept.append((a, b))
    points = np.array(kept[1:]) if len(kept) > 1 else np.array([[1.0, 1.0]])
    if len(points) > 2 * _POINTS:
        points = points[np.unique(np.linspace(0, len(points) - 1, 2 * _POINTS).round().astype(int))]
    return points[:, 0], points[:, 1]
