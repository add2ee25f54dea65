"""E(V₁ + … + Vₜ − c)₊ of independent numbers with one law, of any size: a geometric grid, and doubling.

The points are 0 and ±2^{k/m}, k whole. Where single numbers outweigh all others they do what the even grid of
`excesses` cannot, and cost little.

Lemma excess-doubled: Split the mass of every number over the points on both sides, its mean kept; add two independent
numbers on the points and split again; and so on up to a sum of t. For no c is E(ΣV − c)₊ or E(c − ΣV)₊ larger than that
of the result. Proof: a split is a mean-preserving spread, and, whatever independent number is added later, both are
convex functions of what is split.

2^{i/m} ± 2^{(i − d)/m} lies between two points whose places beside i and whose shares depend on d only, and next to i
for all large d, which are added at once. All masses are sums of products of masses: as accurate far out as elsewhere.

Lemma excess-doubled-below: For a mass μ at p + uh in the cell [p, q] of width h, split over p and q, take away κ(p)
times uhμ or κ(q) times (1 − u)hμ, in any parts that add to one, where κ is the functional φ ↦ (φ(i + 1) − φ(i))/h⁺ −
(φ(i) − φ(i − 1))/h⁻ of a point i and its neighbours. The signed measure that is left has no larger integral of any
convex function than μ. Where only the shares are known, ½(1 − u)hμ times κ(p) and ½uhμ times κ(q) together do as well.
Proof: φ is above the chords of the cells on both sides, extended; so the chord is above φ(p + uh) by at most the least
of uhκ(p) and (1 − u)hκ(q). For A, B ≥ 0 the least of uA and (1 − u)B is at most ½(1 − u)A + ½uB: it is enough to
compare at u = B/(A + B), where AB ≤ ½(A² + B²).

Where the signed measure would have a negative mass, cells around it are put at their lower points as a whole, which
lowers E(ΣV − c)₊, or at their upper ones, which lowers E(c − ΣV)₊; so does leaving out some mass.

Where V is above the last point u it is put there: E(ΣV − c)₊ is at most E(Σmin(V, u) − c)₊ + t·E(V − u)₊ and at least
the first of these, and E(c − ΣV)₊ does not fall. Where V is below the least point it is raised to it, by which E(ΣV −
c)₊ does not fall, or left out.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.bells import TAIL, between
from privcheck.accounting.engine.laws import UNIT, Floats, as_floats

OCTAVES: Final = (8, 11, 16, 23, 32, 45, 64, 91, 128)  # points from a number to its double
_LEAST: Final = 1e-150  # mass of a point, below which it is left out …
_LOST: Final = 1e-130  # … and more than all of these
_LOOKS: Final = 8  # for negative masses
_TAPER: Final = 12  # cells, from none to all of which is split

# upper bounds on E(S − c)₊ and E(c − S)₊, or a lower bound on one of them
Bounds = Literal["both above", "excess below", "shortfall below"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Measures on the points, one a row, which bound the laws of sums.

    Attributes:
        start: The least k.
        octave: m, one of `OCTAVES`.
        middle: Place of 0: as many negative points as positive ones, or none.
        masses: (e, j) masses of the points, by their value.
        bounds: Of what.
    """

    start: int
    octave: int
    middle: int
    masses: Floats
    bounds: Bounds

    @property
    def points(self) -> Floats:
        """(j,) values."""
        return points(self.start, self.masses.shape[1] - self.middle - 1, self.octave, signed=self.middle > 0)

    def excesses(self) -> Floats:
        """Bounds on E(S − c)₊ with c at each of the points, (e, j)."""
        found = np.cumsum(np.cumsum(self.masses[:, :0:-1], axis=1) * np.diff(self.points)[::-1], axis=1)[:, ::-1]
        return self._rounded(np.pad(found, ((0, 0), (0, 1))))

    def shortfalls(self) -> Floats:
        """Bounds on E(c − S)₊ with c at each of the points, (e, j)."""
        found = np.cumsum(np.cumsum(self.masses[:, :-1], axis=1) * np.diff(self.points), axis=1)
        return self._rounded(np.pad(found, ((0, 0), (1, 0))))

    def _rounded(self, found: Floats) -> Floats:
        slack = UNIT * (64 * self.octave + 8 * self.masses.shape[1] + 1024)
        lost = _LOST * (1 + 2 * float(self.points[-1]))
        return as_floats(found * (1 + slack) + lost if self.bounds == "both above" else found * (1 - slack))


def points(start: int, count: int, octave: int, *, signed: bool) -> Floats:
    """The points 0 and ±2^{k/m}, by their value.

    Args:
        start: The least k.
        count: Number of positive ones.
        octave: m.
        signed: Whether there are negative ones.
    """
    k = start + np.arange(count)
    positive = np.ldexp(np.exp2((k % octave) / octave), k // octave)  # each is exactly the double of one before
    return as_floats(np.concatenate([-positive[::-1] if signed else positive[:0], [0.0], positive]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """Numbers V = Σ w·e^{cx − c²/2} that grow with x ~ N(0, 1), one a row.

    Attributes:
        start: The least k of the points.
        octave: m.
        x: (e, j) where V is at each of the points, by their value; −∞ for 0 if V has one sign.
        blur: Bound on the rounding error of x.
        parts: c, and (e,) w > 0 for c > 0, w < 0 for c < 0, where ln|w| is rounded.
    """

    start: int
    octave: int
    x: Floats
    blur: float
    parts: tuple[tuple[float, Floats], ...]

    @property
    def signed(self) -> bool:
        """Whether V has both signs."""
        return math.isfinite(float(self.x[0, 0]))

    @property
    def points(self) -> Floats:
        """(j,) points."""
        size = self.x.shape[1] - 1
        return points(self.start, size // 2 if self.signed else size, self.octave, signed=self.signed)

    def on_points(self, bounds: Bounds) -> Sums:
        """Measures that bound their laws."""
        mass, off, low, high = _between(self.x, 0.0, self.blur)
        values = self.points
        mean, wrong = -values[:-1] * mass, np.abs(values[:-1]) * (off + 8 * UNIT * mass)
        for centre, weights in self.parts:
            its, its_off, _, _ = _between(self.x, centre, self.blur)
            mean += weights[:, np.newaxis] * its
            rounded = UNIT * (8 + 8 * np.abs(np.log(np.abs(weights))))[:, np.newaxis]
            wrong += np.abs(weights)[:, np.newaxis] * (its_off + rounded * its)
        up = np.clip(mean / np.diff(values), 0.0, mass)
        wrong = off + wrong / np.diff(values) * (1 + 1e-9)
        at = np.zeros(self.x.shape)
        if bounds == "both above":
            at[:, 0], at[:, -1] = sum(low), sum(high)
        elif bounds == "excess below":
            at[:, -1] = np.maximum(high[0] - high[1], 0.0)
        cells = _Cells(low=mass - up, high=up, off=wrong, kinks=((mass - up + wrong) / 2, (up + wrong) / 2))
        middle = len(values) // 2 if self.signed else 0
        atoms = Sums(start=self.start, octave=self.octave, middle=middle, masses=as_floats(at), bounds=bounds)
        return _settled(atoms, cells)

    def beyond(self) -> Floats:
        """Upper bounds on E(V − u)₊, u the last point, (e,)."""
        last = float(self.points[-1])
        _, _, _, (high, off) = _between(self.x[:, -2:], 0.0, self.blur)
        rest, rounding = -last * high, last * off
        for centre, weights in self.parts:
            _, _, _, (high, off) = _between(self.x[:, -2:], centre, self.blur)
            rest = rest + weights * high
            rounding = rounding + np.abs(weights) * off
        return as_floats(np.maximum(rest, 0.0) + rounding + _LOST)


def _between(
    x: Floats, centre: float, blur: float
) -> tuple[Floats, Floats, tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Masses of N(m, 1) between points, below the first ≤ m and above the last ≥ m, with bounds on their errors."""
    from scipy.special import ndtr

    masses, _, tails = between(x, centre)
    y = x - centre
    # the hazard rate at y is at most |y| + 1
    off = tails * (TAIL + 2 * blur * (np.abs(np.where(np.isfinite(y), y, 0.0)) + 1) + 16 * UNIT)
    return (
        masses,
        as_floats(np.maximum(off[:, :-1], off[:, 1:]) + 8 * UNIT * masses),
        (ndtr(y[:, 0]), off[:, 0]),
        (ndtr(-y[:, -1]), off[:, -1]),
    )


def repeated(one: Sums, count: int) -> Sums:
    """Measures of sums of t independent numbers [lemma excess-doubled].

    Args:
        one: Of one number.
        count: t, at least 1.
    """
    if count == 1:
        return one
    half = repeated(one, count // 2)
    whole = plus(half, half)
    return plus(whole, one) if count % 2 else whole


def excess_of_both(a: Sums, b: Sums) -> Floats:
    """Bounds on E(A + B)₊ of two independent sums on points of both signs, (e,)."""
    n = max(a.middle, b.middle)
    total = (_widened(a, n).masses * _widened(b, n).excesses()[:, ::-1]).sum(axis=1)
    slack = UNIT * (8 * n + 64)
    return as_floats(total * (1 + slack if a.bounds == "both above" else 1 - slack))


def plus(a: Sums, b: Sums) -> Sums:
    """Measures of the sums of two independent numbers [lemma excess-doubled]."""
    same, signed, n = a is b, a.middle > 0, max(s.masses.shape[1] - s.middle - 1 for s in (a, b))
    a = _widened(a, n)
    b = a if same else _widened(b, n)
    (a_zero, *a_sides), (b_zero, *b_sides) = _sides(a), _sides(b)
    atoms, zero, cells = list[Floats](), a_zero * b_zero, list[tuple[Floats, ...]]()
    for i, (x, y) in enumerate(zip(a_sides, b_sides, strict=True)):
        exact = np.pad(a_zero * y + b_zero * x, ((0, 0), (0, a.octave)))
        exact[:, a.octave :] += x * y
        atoms.append(as_floats(exact))
        cell = tuple(np.zeros(exact.shape) for _ in range(2 if a.bounds == "both above" else 4))
        for large, small in ((2 * x, x),) if same else ((x, y), (y, x)):
            _scatter(cell, large, small, _steps(a.octave, 1))
        if signed:
            other = a_sides[1 - i], b_sides[1 - i]
            for large, small in ((2 * x, other[1]),) if same else ((x, other[1]), (y, other[0])):
                _scatter(cell, large, small, _steps(a.octave, -1))
        cells.append((as_floats(np.maximum(cell[0] - cell[1], 0.0)), *cell[1:]))
    if signed:
        zero = zero + (a_sides[0] * b_sides[1] + a_sides[1] * b_sides[0]).sum(axis=1, keepdims=True)
        whole = np.concatenate([atoms[1][:, ::-1], zero, atoms[0]], axis=1)
        # the point nearer to 0 is the lower one, or the upper one
        joined = [np.concatenate([cells[1][i ^ 1][:, ::-1], each], axis=1) for i, each in enumerate(cells[0])]
    else:
        whole, joined = np.concatenate([zero, atoms[0]], axis=1), list(cells[0])
    slack = UNIT * (32 * n + 256 * a.octave + 1024)
    whole *= 1 + slack if a.bounds == "both above" else 1 - slack
    off = as_floats(slack * (joined[0] + joined[1]))
    kinks = tuple(as_floats(each + off) for each in joined[2:])
    exactly = replace(a, middle=whole.shape[1] // 2 if signed else 0, masses=as_floats(whole))
    return _settled(exactly, _Cells(low=joined[0], high=joined[1], off=off, kinks=kinks))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cells:
    """Masses between neighbouring points.

    Attributes:
        low: (e, j − 1) masses that go to the lower points where the mean is kept.
        high: (e, j − 1) masses that go to the upper points.
        off: (e, j − 1) bounds on the errors of both.
        kinks: (e, j − 1) masses times shares of a cell, for κ of its lower and of its upper point, rounded up.
    """

    low: Floats
    high: Floats
    off: Floats
    kinks: tuple[Floats, ...]


def _settled(atoms: Sums, cells: _Cells) -> Sums:
    """Measures on the points.

    Args:
        atoms: What lies exactly there.
        cells: All other masses.
    """
    masses = atoms.masses
    if atoms.bounds != "both above":
        masses = _sharpened(masses, cells, atoms.points, 0 if atoms.bounds == "excess below" else 1)
    else:
        masses[:, :-1] += cells.low + cells.off
        masses[:, 1:] += cells.high + cells.off
        masses *= 1 + 8 * UNIT
    masses[masses < _LEAST] = 0.0
    return replace(atoms, masses=masses)


def _sharpened(atoms: Floats, cells: _Cells, values: Floats, safe: int) -> Floats:
    """Measures below the laws [lemma excess-doubled-below].

    Args:
        atoms: (e, j) masses at the points, exactly there.
        cells: All other masses.
        values: (j,) points.
        safe: Point of a cell that all of it may be put at: 0 for the lower, 1 for the upper.
    """
    widths = np.diff(values)
    low, high = np.maximum(cells.low - cells.off, 0.0), np.maximum(cells.high - cells.off, 0.0)
    kinks = tuple(each * (widths * (1 + 1e-13)) for each in cells.kinks)
    split = np.ones(low.shape)  # share of a cell that is split; the rest is put at one point
    split[:, [0, -1]] = 0.0  # there a point has one neighbour only
    for look in range(_LOOKS + 1):
        masses = atoms.copy()
        masses[:, :-1] += split * low
        masses[:, 1:] += split * high
        masses[:, safe : safe + low.shape[1]] += (1 - split) * (low + high)
        bent = (split * kinks[0])[:, 1:] + (split * kinks[1])[:, :-1]
        masses[:, 1:-1] += bent * (1 / widths[1:] + 1 / widths[:-1])
        masses *= 1 - 16 * UNIT
        masses[:, :-2] -= bent / widths[:-1] * (1 + 8 * UNIT)
        masses[:, 2:] -= bent / widths[1:] * (1 + 8 * UNIT)
        wrong = masses < 0
        if not wrong.any():
            break
        split = np.minimum(split, np.maximum(_apart(wrong) - (1 << look), 0) / _TAPER)
        if look == _LOOKS - 1:
            split[wrong.any(axis=1)] = 0.0
    return as_floats(masses)


def _apart(wrong: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Points between each cell and the nearest of some points, (e, j − 1) of (e, j)."""
    places, far = np.arange(wrong.shape[1]), 1 << 40
    before = np.maximum.accumulate(np.where(wrong, places, -far), axis=1)
    after = np.minimum.accumulate(np.where(wrong, places, far)[:, ::-1], axis=1)[:, ::-1]
    return np.minimum((places - before)[:, :-1], (after - places)[:, 1:])


def _sides(sums: Sums) -> tuple[Floats, ...]:
    """Masses at 0, (e, 1), and of the positive and the negative points by their size, (e, n)."""
    zero, over = sums.masses[:, sums.middle : sums.middle + 1], sums.masses[:, sums.middle + 1 :]
    return (zero, over, sums.masses[:, : sums.middle][:, ::-1]) if sums.middle else (zero, over)


def _widened(sums: Sums, count: int) -> Sums:
    """Add points beyond the largest, up to so many positive ones."""
    more = count - (sums.masses.shape[1] - sums.middle - 1)
    if not more:
        return sums
    before = more if sums.middle else 0
    masses = as_floats(np.pad(sums.masses, ((0, 0), (before, more))))
    return replace(sums, middle=sums.middle + before, masses=masses)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Steps:
    """Where 2^{i/m} ± 2^{(i − d)/m} lies, for d = 1, 2, …, up to where one of the points beside it is i.

    Attributes:
        factors: (d,) 1 ± 2^{−d/m}.
        moves: (d,) the point next to it that is nearer to 0, less i.
        shares: (d,) share of the other point.
        width: Distance from 1 to the next point on that side.
        far: Place of the cell beside i, less i.
    """

    factors: Floats
    moves: tuple[int, ...]
    shares: tuple[float, ...]
    width: float
    far: int


@functools.lru_cache(maxsize=2 * len(OCTAVES))
def _steps(octave: int, sign: int) -> _Steps:
    rise = math.log(2) / octave
    width = abs(math.expm1(sign * rise))
    d = np.arange(1, math.ceil(math.log2(1 / width) * octave) + 2)
    factors = 1 + np.exp2(-d / octave) if sign > 0 else -np.expm1(-d * rise)
    moves = np.floor(np.log2(factors) * octave).astype(np.int64)
    shares = (factors / np.exp2(moves / octave) - 1) / math.expm1(rise)
    return _Steps(
        factors=as_floats(factors),
        moves=tuple(moves.tolist()),
        shares=tuple(shares.tolist()),
        width=width,
        far=0 if sign > 0 else -1,
    )


def _scatter(cells: tuple[Floats, ...], large: Floats, small: Floats, steps: _Steps) -> None:
    """Add the masses of sums of a number and a smaller one to their cells.

    Args:
        cells: (e, n + m) masses, the first cell being that next to 0, and the parts of them that go to the point
            farther from 0; and, for bounds from below, what κ of both points is taken away. Changed.
        large: (e, n) masses by size.
        small: (e, n) masses by size.
        steps: Of their signs.
    """
    whole, outer, *kinks = cells
    n, m = large.shape[1], len(steps.moves)
    octave = whole.shape[1] - n
    for d, (move, share) in enumerate(zip(steps.moves, steps.shares, strict=True), 1):
        if d >= n:
            return
        both = large[:, d:] * small[:, :-d]
        first = d + move
        if first < 0:  # between 0 and the first point
            near, both, first = both[:, :-first], both[:, -first:], 0
            between = steps.factors[d - 1] * np.exp2(np.arange(d, d + near.shape[1]) / octave)
            whole[:, 0] += near.sum(axis=1)
            outer[:, 0] += near @ between
            if kinks:
                kinks[0][:, 0] += near @ between
        at = slice(first + 1, first + 1 + both.shape[1])
        whole[:, at] += both
        both *= share
        outer[:, at] += both
        if kinks and share <= 0.5:
            kinks[0][:, at] += both
        elif kinks:
            both *= (1 - share) / share
            kinks[1][:, at] += both
    # farther apart than that, all at once
    if n <= m + 1:
        return
    size = np.exp2(np.arange(n) / octave)
    both = np.cumsum(small[:, : n - m - 1], axis=1)
    moved = np.cumsum(small[:, : n - m - 1] * size[: n - m - 1], axis=1) / (size[m + 1 :] * steps.width)
    moved *= large[:, m + 1 :]
    both *= large[:, m + 1 :]
    at = slice(m + 2 + steps.far, n + 1 + steps.far)
    whole[:, at] += both
    outer[:, at] += np.maximum(both - moved, 0.0) if steps.far else moved
    if kinks:
        kinks[-steps.far][:, at] += moved
