"""k Laplace releases of one scale and nothing else: atoms, edges and a smooth rest.

With u = z + ½ and a = Δ/b, the loss of one release has E[e^{zL}] = A + B, A = e^{−a/2}cosh(ua) for its two atoms and
B = e^{−a/2}sinh(ua)/(2u) for the density between them. Of (A + B)^k = ΣC(k, j)A^{k−j}B^j the terms with few densities
are not smooth enough for a contour and are summed in closed form; the rest falls as |z|^{−j} and is integrated. For k ≤
8 the closed form is complete.

Errors are bounded and added: of the closed form those of logarithms of binomial coefficients, of exponents, and of the
differences between neighbouring edges; of the integral what [lemma contour-truncation] leaves out and the rounding of
every node. Aliasing only adds [lemma contour-aliasing], for A and B are transforms of positive measures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.atoms import fair_binomial
from privcheck.accounting.engine.contour import Line, period
from privcheck.accounting.engine.job import Job, saddle_at, saddle_for
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import UNIT, Floats, as_complex, as_floats

_FEW: Final = 8  # densities among k whose terms are summed in closed form
_MOST: Final = 100_000  # nodes
_MOST_RELEASES: Final = 100_000  # beyond, their count multiplies the rounding too far
_DIGITS: Final = 36.0  # −ln of what truncation leaves, relative to the result
_TERMS: Final = 64  # of those with many densities, that are bounded one by one
_SPREAD: Final = 76.0  # −ln of the neighbouring periods, in the first estimate of the step
_TIGHT: Final = math.log(1e-7)  # of δ: what an error may be
_TURNS: Final = 6  # lines for one root
_STEPS: Final = 60  # of a search on one line
_CLOSE: Final = 1e-13  # to a root, relative to it and to the width


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closed:
    """Terms of the closed form, in which only the distance to ε is missing.

    Attributes:
        places: (n,) places of the atoms, all numbers of densities together.
        densities: (n,) j, the number of densities.
        logs: (n,) ln of everything but the kernel.
        off: (n,) bounds on the relative rounding errors of these.
    """

    places: Floats
    densities: NDArray[np.intp]
    logs: Floats
    off: Floats


@dataclass(frozen=True, kw_only=True)
class LaplaceSum:
    """Curve of k equal Laplace releases.

    Attributes:
        step: a.
        count: k.
    """

    step: float
    count: int

    @property
    def job(self) -> Job:
        """The composition as a job."""
        return Job(mu_squared=0.0, laws=((LaplaceLaw(self.step), self.count),), rho=0.0, lost=0.0)

    @property
    def most(self) -> float:
        """ka, the largest loss."""
        return self.count * self.step

    def log_delta(self, epsilon: float, line: Line | None) -> float:
        """Compute ln δ(ε), rounded up: the closed form plus the integral on a line (None where there is no rest)."""
        total = self.closed_form(epsilon)
        if line is not None:
            sums, errors = line.sums(np.array([epsilon]))
            exponent = line.scale - line.c * epsilon
            grown = math.exp(min(700.0, exponent)) * (1 + UNIT * (8 + 4 * (abs(line.scale) + line.c * epsilon)))
            total += grown * (max(float(sums[0]), 0.0) + float(errors[0]))
        if not total > 0:
            return -math.inf
        return min(0.0, math.log(total) + 8 * UNIT * (1 + abs(math.log(total))))

    def is_tight(self, epsilon: float, line: Line | None) -> bool:
        """Whether what rounding and truncation add to ln δ(ε) does not count."""
        if line is None:
            return True
        bounded = self.log_delta(epsilon, line)
        added = float(line.sums(np.array([epsilon]))[1][0])
        return math.log(max(added, 1e-300)) + line.scale - line.c * epsilon <= bounded + _TIGHT or bounded == -math.inf

    @cached_property
    def _closed(self) -> Closed:
        a, k = self.step, self.count
        places, densities, logs, off = [], [], [], []
        for j in range(min(_FEW, k) + 1):
            i, known = fair_binomial(k - j, reach=19.0)  # C(k − j, i)/2^{k−j}, down to e^{−722}
            weight = math.log(math.comb(k, j)) - k * a / 2 - j * math.log(2)
            places.append((k - j - 2 * i) * a)
            densities.append(np.full(len(i), j))
            logs.append(known + weight)
            off.append(_binomial_rounding(known) + UNIT * (8 * (k * a + abs(weight)) + 4 * np.abs(known) + 200))
        return Closed(
            places=as_floats(np.concatenate(places)),
            densities=np.concatenate(densities),
            logs=as_floats(np.concatenate(logs)),
            off=as_floats(np.concatenate(off)),
        )

    def closed_form(self, epsilon: float) -> float:
        """Sum of the terms with at most eight densities, rounded up.

        Lemma laplace-terms: For the term A^{k−j}B^j, A of the atoms and B of the density of one release, E[(1 −
        e^{ε−L})₊] is e^{ε/2} times a sum over the places sᵢ = (k − j − 2i)a − ε of the atoms of C(k − j, i)·Hj(sᵢ), Hj
        the j-fold central difference of Gj(s) = Σ 2(s/2)^{j+1+2i}/(j + 1 + 2i)!. Proof: Gj is the transform of
        1/((2u)^j (u² − ¼)).

        As δ falls, the rounding of the places is covered by that of ε.
        """
        a, known = self.step, self._closed
        epsilon = epsilon - 8 * UNIT * self.most
        s, edge = known.places - epsilon, known.densities * a
        whole, part = s >= edge, np.abs(s) < edge
        whole &= s > 0
        total = 0.0
        with np.errstate(under="ignore", divide="ignore"):  # far below there is nothing that counts
            far, j = s[whole], known.densities[whole]
            # 2 sinh(s/2)(2 sinh(a/2))^j
            exponents = known.logs[whole] + far / 2 + np.log(-np.expm1(-far)) + j * _log_sinh(a)
            total += float(np.exp(exponents + epsilon / 2) @ (1 + known.off[whole] + UNIT * (8 * far + 8 * j + 40)))
            if part.any():
                values, errors = _differences(s[part], known.densities[part], a)
                scales = np.exp(known.logs[part] + epsilon / 2)
                total += float(scales @ (np.maximum(values, 0.0) * (1 + known.off[part]) + errors))
        return total * (1 + UNIT * (len(s) + abs(epsilon) + 40))

    def line(self, epsilon: float) -> Line | None:
        """Build the line for the terms with more than eight densities, None where k has none.

        Raises:
            ArithmeticError: There are too many nodes or releases, or the terms are beyond the floats' range.
        """
        k = self.count
        if k <= _FEW:
            return None
        job = self.job
        c = saddle_at(job, min(epsilon, (1 - 1e-7) * self.most), "remove")
        scale, _, k2 = (float(x[0]) for x in job.moments(np.array([c]), "remove"))
        curvature = k2 + 1 / c**2 + 1 / (c + 1) ** 2
        step = 2 * math.pi / min(period(job, epsilon, c, "remove"), 2.2 * self.most + _SPREAD / c)
        leading = -math.log(c) - math.log1p(c) - 0.5 * math.log(2 * math.pi * curvature)
        last, left = self._end(c, scale, leading - _DIGITS)
        count = math.ceil(last / step) + 1
        if not (count <= _MOST and k <= _MOST_RELEASES):
            raise ArithmeticError("too many nodes, or releases")
        times = as_floats(step * np.arange(count))
        z = as_complex(c + 1j * times)
        values, off = self._rest(z, scale)
        poles = step / math.pi / (z * (z + 1))
        weights = as_complex(values * poles)
        weights[0] /= 2
        moduli = np.abs(weights)
        if not 0 < float(moduli.max()) < math.inf:
            raise ArithmeticError("the terms are beyond the floats' range")
        rounded = float(off @ np.abs(poles)) + float(moduli.sum()) * UNIT * (40 + count / 8)
        kept = 1 + int(np.flatnonzero(moduli > 1e-20 * moduli.max())[-1])
        return Line(
            c=c,
            epsilon=epsilon,
            scale=scale,
            times=times[:kept],
            weights=weights[:kept],
            width=math.sqrt(curvature),
            error=(left + rounded + float(moduli[kept:].sum())) * (1 + 1e-9),
            turning=8 * UNIT * float(moduli @ times),
        )

    def _end(self, c: float, scale: float, target: float) -> tuple[float, float]:
        """T, doubled until little is left beyond it, and a bound on what is left, divided by e^{K(c) − cε}.

        Lemma laplace-truncation: With x = (c + ½)a, the terms of more than j densities on Re z = c beyond t = T leave
        out at most Σ_i C(k, i)·e^{−ka/2}·M_i(2T)^{−i}/((i + 1)πT) over i > j, with M_i = max of (C² − s)^{(k−i)/2}(S² +
        s)^{i/2} over 0 ≤ s ≤ 1, C = cosh x, S = sinh x. Proof: |cosh ua|² = C² − s and |sinh ua|² = S² + s for s =
        sin² ta, and |2u| ≥ 2t, |z(z + 1)| ≥ t².
        """
        a, k = self.step, self.count
        x = (c + 0.5) * a
        i = np.arange(_FEW + 1, min(k, _FEW + _TERMS) + 1)
        # cosh and sinh divided by e^x
        cosh, sinh = (1 + math.exp(-2 * x)) / 2, -math.expm1(-2 * x) / 2
        one = math.exp(-2 * x)  # C² − S², in these units
        s = np.clip((i * cosh**2 - (k - i) * sinh**2) / k, 0.0, one)
        with np.errstate(divide="ignore", invalid="ignore"):
            atoms = np.where(k > i, (k - i) * np.log(np.maximum(cosh**2 - s, 0.0)), 0.0)
            fixed = atoms / 2 + i * np.log(sinh**2 + s) / 2 - np.log(i + 1.0)
        fixed += _log_binomials(k, i) + (k * c * a - scale)
        slack = 1e-14 * (100 + k + k * c * a)
        last = 8.0
        while True:
            log_left = float(np.logaddexp.reduce(fixed - i * math.log(2 * last)))
            if k > i[-1]:  # the others: M_i ≤ C^k, and ΣC(k, i)y^i from i on is at most C(k, i)y^i(1 + y)^k
                after = float(_log_binomials(k, i[-1:] + 1)[0]) - (int(i[-1]) + 1) * math.log(2 * last)
                after += k * math.log1p(1 / (2 * last)) + k * math.log(cosh) + k * c * a - scale
                log_left = float(np.logaddexp(log_left, after))
            log_left += slack - math.log(math.pi * last)
            if log_left <= target or last > 1e12:
                return last, math.exp(min(log_left, 700.0))
            last *= 1.25

    def _rest(self, z: NDArray[np.complex128], scale: float) -> tuple[NDArray[np.complex128], Floats]:
        """((A + B)^k − Σ_{j ≤ 8} C(k, j)A^{k−j}B^j)·e^{−scale}, and bounds on its errors.

        With A′ = e^{−za}A and B′ = e^{−za}B, each computed to η, which is some units of 2⁻⁵³, the powers err by at most
        k·η·(|A′| + |B′| + η)^{k−1}.
        """
        a, k = self.step, self.count
        twice = 2 * z + 1
        fade = np.exp(-twice * a)
        one, other = (1 + fade) / 2, -np.expm1(-twice * a) / (2 * twice)
        turned = k * a * z - scale
        with np.errstate(under="ignore", divide="ignore"):
            whole = np.exp(k * np.log(one + other) + turned)
            closed = np.full(len(z), math.comb(k, _FEW), dtype=np.complex128)
            for j in range(_FEW - 1, -1, -1):
                closed = closed * other + math.comb(k, j) * one ** (_FEW - j)
            closed = closed * np.exp((k - _FEW) * np.log(np.where(one == 0, 1e-300, one)) + turned)
            moduli = np.abs(one) + np.abs(other)
            unit = UNIT * (48 + 16 * np.abs(twice) * a)
            top = np.exp((k - 1) * np.log(moduli + 2 * unit) + turned.real)
        off = top * (4 * k * unit * (1 + 1 / np.abs(twice)) + UNIT * (16 * (np.abs(turned.real) + abs(scale)) + 400))
        return as_complex(whole - closed), as_floats(off)


def laplace_log_delta(one: LaplaceSum, epsilon: float) -> float | None:
    """Compute ln δ(ε), rounded up; None where the rest needs too many nodes, or where no digit of δ is known."""
    if epsilon >= one.most:
        return -math.inf
    try:
        line = one.line(epsilon)
    except ArithmeticError:
        return None
    return one.log_delta(epsilon, line) if one.is_tight(epsilon, line) else None


def laplace_epsilon(one: LaplaceSum, log_delta: float) -> float | None:
    """Compute ε, rounded up, on a line that is rebuilt until it fits the root.

    Returns:
        None where the rest needs too many nodes, or no digit of δ is known.
    """
    slope, epsilon = saddle_for(one.job, log_delta, "remove")
    epsilon = min(max(epsilon, 0.0), one.most)
    try:
        for _ in range(_TURNS):
            line = one.line(epsilon)
            width = one.most if line is None else line.width
            slope = slope if line is None else line.c
            root = _root(one, line, log_delta, start=epsilon, reach=2 * width, slope=slope)
            if line is None or abs(root - epsilon) <= 0.5 * width:
                return root if one.is_tight(root, line) else None
            epsilon = root
    except ArithmeticError:
        return None
    return None


def _root(one: LaplaceSum, line: Line | None, log_delta: float, *, start: float, reach: float, slope: float) -> float:
    """Find the ε near a start at which ln δ, by one line, is no longer above the target: by secants and halves.

    Args:
        one: The sum.
        line: The line.
        log_delta: The target.
        start: First ε.
        reach: How far from there it is looked for.
        slope: −(ln δ)′, about.
    """
    low, high = max(0.0, start - reach), min(one.most, start + reach)
    ends, close = [low, high], _CLOSE * min(reach, high)
    at, before = start, None
    for _ in range(_STEPS):
        excess = max(one.log_delta(at, line) - log_delta, -1e5)
        ends[excess <= 0] = at
        if before is not None and excess != before[1]:
            slope = (before[1] - excess) / (at - before[0])
        before = (at, excess)
        moved = excess / slope if slope > 0 else math.inf
        aim = at + moved
        if abs(moved) <= close or ends[1] - ends[0] <= close:
            break
        if not ends[0] < aim < ends[1]:  # to an end that was not looked at, or to the middle
            edge = low if moved < 0 else high
            aim = edge if edge in ends and edge != at else (ends[0] + ends[1]) / 2
        at = aim
    root, nudge = min(max(at, low), high), max(1e-16 * high, math.ulp(at))
    while root < high and one.log_delta(root, line) > log_delta:
        root, nudge = min(high, root + nudge), 2 * nudge
    return root


def _differences(s: Floats, densities: NDArray[np.intp], a: float) -> tuple[Floats, Floats]:
    """Hj(s) for |s| < ja: 2^j times the j-fold box of ∫2 sinh((s + v)/2)₊; and bounds on the rounding."""
    i = np.arange(_FEW + 1)
    signs = _SIGNS[densities]
    half = np.maximum(s[:, None] + (densities[:, None] - 2 * i) * a, 0.0) / 2
    n = densities[:, None] + 1.0
    term = 2 * half**n / _FACTORIALS[densities + 1][:, None]
    squares, total = half * half, term.copy()
    while True:  # Gj(s) = Σ 2(s/2)^{j+1+2i}/(j + 1 + 2i)!
        n = n + 2
        term = term * squares / (n * (n - 1))
        total += term
        if not (term > 1e-18 * total).any():
            break
    values = (signs * total).sum(axis=1)
    errors = (np.abs(signs) * total * (120 + 16 * (n + half))).sum(axis=1) * UNIT
    return as_floats(values), as_floats(errors)


def _log_sinh(a: float) -> float:
    """Compute ln(2 sinh(a/2))."""
    return a / 2 + math.log(-math.expm1(-a))


def _log_binomials(k: int, i: NDArray[np.intp]) -> Floats:
    """Compute ln C(k, i) of increasing i, the last of which is at most k."""
    each = np.arange(1, int(i[-1]) + 1)
    return as_floats(np.cumsum(np.log(k + 1 - each) - np.log(each))[i - 1])


def _binomial_rounding(logs: Floats) -> Floats:
    """Bounds on the rounding of ln of fair binomial probabilities, which are summed up outwards from the middle."""
    falls = as_floats(logs.max() - logs)
    middle = len(falls) // 2
    sums = np.concatenate([np.cumsum(falls[: middle + 1][::-1])[::-1], np.cumsum(falls[middle + 1 :])])
    return as_floats(UNIT * (8 * falls + 2 * sums + len(falls) + 40))


_SIGNS: Final = np.array([[(-1) ** i * math.comb(j, i) for i in range(_FEW + 1)] for j in range(_FEW + 1)], dtype=float)
_FACTORIALS: Final = np.array([math.factorial(j) for j in range(_FEW + 2)], dtype=float)
