"""k Laplace releases of one scale and nothing else: atoms, edges and a smooth rest.

With u = z + ½ and a = Δ/b, the loss of one release has E[e^{zL}] = A + B, A = e^{−a/2}cosh(ua) for its two atoms and
B = e^{−a/2}sinh(ua)/(2u) for the density between them. Of (A + B)^k = ΣC(k, c)A^{k−c}B^c the terms with few densities
are not smooth enough for a contour and are summed in closed form (all terms positive); the rest falls as |z|^{−c} and
is integrated. For k ≤ 8 the closed form is complete.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from privcheck.accounting.engine.atoms import fair_binomial
from privcheck.accounting.engine.contour import period
from privcheck.accounting.engine.job import Job, saddle_at, saddle_for
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import Complex, Floats, as_complex, as_floats

_FEW: Final = 8  # densities among k whose terms are summed in closed form
_MOST: Final = 400_000  # nodes
_FADED: Final = 38.0  # −ln of what may be left out


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rest:
    """Integrand of the terms with many densities on a vertical line.

    Attributes:
        c: Real part of the line.
        scale: K(c), taken out.
        times: (n,) t of the nodes c + it.
        weights: (n,) e^{K(z) − K(c)}/(z(z + 1))·step/π of those terms, the first halved.
    """

    c: float
    scale: float
    times: Floats
    weights: Complex


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def log_delta(self, epsilon: float, rest: Rest | None) -> float:
        """Logarithm ln δ(ε): the closed form plus the integral on the given line (None where there is no rest)."""
        total = self.closed_form(epsilon)
        if rest is not None:
            turned = rest.weights * np.exp(-1j * epsilon * rest.times)
            total += math.exp(min(700.0, rest.scale - rest.c * epsilon)) * float(np.sum(turned.real))
        return math.log(total) if total > 0 else -math.inf

    def closed_form(self, epsilon: float) -> float:
        """Sum of the terms with at most eight densities.

        Lemma laplace-terms: For the term A^{k−c}B^c, A of the atoms and B of the density of one release, E[(1 −
        e^{ε−L})₊] is e^{ε/2} times a sum over the places sᵢ = (k − c − 2i)a − ε of the atoms of C(k − c, i)·Hc(sᵢ), Hc
        the c-fold central difference of Gc(s) = Σ 2(s/2)^{c+1+2i}/(c + 1 + 2i)!. Proof: Gc is the transform of
        1/((2u)^c (u² − ¼)).
        """
        a, k = self.step, self.count
        parts = []
        for c in range(min(_FEW, k) + 1):
            atoms = k - c
            i, logs = fair_binomial(atoms, reach=19.0)  # C(k − c, i)/2^{k−c}, down to e^{−722}
            places = (atoms - 2 * i) * a - epsilon
            keep = places > -c * a
            if not keep.any():
                continue
            weight = math.log(math.comb(k, c)) - k * a / 2 + epsilon / 2 - c * math.log(2)
            with np.errstate(divide="ignore", under="ignore"):  # (ka)^c underflows where it does not count
                parts.append(np.log(_kernel(places[keep], c, a)) + logs[keep] + weight)
        everything = np.concatenate(parts) if parts else np.array([-np.inf])
        return float(np.exp(everything).sum())

    def rest(self, epsilon: float) -> Rest | None:
        """Build the line for the terms with more than eight densities, None where k has none.

        Raises:
            ArithmeticError: The terms need too many nodes.
        """
        a, k = self.step, self.count
        if k <= _FEW:
            return None
        job = self.job
        c = min(saddle_at(job, min(epsilon, 0.999 * k * a), "remove"), 40 / a)
        scale = float(job.moments(np.array([c]), "remove")[0][0])
        step = 2 * math.pi / min(period(job, epsilon, c, "remove"), 2.2 * k * a + 2 * _FADED / c)
        # beyond T the rest is below (k/2T)⁹/9! of the whole; the whole itself may fade before
        far = k / 2 * math.exp((_FADED - math.lgamma(_FEW + 2)) / (_FEW + 1))
        if far / step > _MOST and k * math.log1p(a / 2) < _FADED:
            raise ArithmeticError("too many nodes")
        blocks, start, size, negligible = [], 0, 1024, 0
        while start * step <= far and negligible < 4:
            if start > _MOST:
                raise ArithmeticError("too many nodes")
            z = as_complex(c + 1j * np.arange(start, start + size) * step)
            values = self._remainder(z, scale) / (z * (z + 1))
            blocks.append((z, values))
            resonance = start * step * a > 8  # the whole comes back, lower, near multiples of π/a
            negligible = negligible + 1 if resonance and float(np.abs(values).max()) * c * (c + 1) < 1e-18 else 0
            start, size = start + size, min(2 * size, 1 << 14)
        nodes = np.concatenate([z for z, _ in blocks])
        weights = as_complex(np.concatenate([w for _, w in blocks]) * (step / math.pi))
        weights[0] /= 2
        return Rest(c=c, scale=scale, times=as_floats(nodes.imag), weights=weights)

    def _remainder(self, z: Complex, scale: float) -> Complex:
        """((A + B)^k − Σ_{c ≤ 8} C(k, c)A^{k−c}B^c)·e^{−scale}."""
        a, k = self.step, self.count
        twice = 2 * z + 1
        fade = np.exp(-twice * a)
        # A = e^{za}(1 + fade)/2, B/A = (1 − fade)/((1 + fade)(2z + 1))
        log_a = z * a + np.log1p(fade) - math.log(2)
        ratio = -np.expm1(-twice * a) / ((1 + fade) * twice)
        whole = np.exp(k * (log_a + np.log1p(ratio)) - scale)
        term, closed = np.ones_like(z), np.zeros_like(z)
        for c in range(_FEW + 1):
            closed += term
            term *= ratio * ((k - c) / (c + 1))
        result: Complex = whole - np.exp(k * log_a - scale) * closed
        return result


def laplace_log_delta(line: LaplaceSum, epsilon: float) -> float | None:
    """Compute ln δ(ε), None where the rest needs too many nodes."""
    if epsilon >= line.count * line.step:
        return -math.inf
    try:
        return line.log_delta(epsilon, line.rest(epsilon))
    except (ArithmeticError, ValueError):
        return None


def laplace_epsilon(line: LaplaceSum, log_delta: float, *, rounded: float) -> float | None:
    """Compute ε on a line that is rebuilt until it fits the root, None where the rest needs too many nodes.

    Args:
        line: The sum.
        log_delta: ln δ.
        rounded: The root is moved up until ln δ there, rounded up by this much relatively, is not above the target.
    """
    most = line.count * line.step
    epsilon = min(saddle_for(line.job, log_delta, "remove")[1], most)

    def excess(rest: Rest | None, at: float) -> float:
        there = line.log_delta(at, rest)
        return there + rounded * (1 + abs(there)) - log_delta if there > -math.inf else -1e5

    try:
        if epsilon <= 0 and excess(line.rest(0.0), 0.0) <= 0:
            return 0.0
        for _ in range(6):
            epsilon = before = max(epsilon, 0.0)
            rest = line.rest(epsilon)
            width = most if rest is None else 3 / max(rest.c, 1 / most)
            low, high = max(0.0, epsilon - width), min(most, epsilon + width)
            epsilon = _between(functools.partial(excess, rest), low, high)
            if rest is None or abs(epsilon - before) <= 0.1 * width:
                nudge = 1e-15 * epsilon
                while epsilon < most and excess(rest, epsilon) > 0:
                    epsilon, nudge = epsilon + nudge, 2 * nudge
                return min(most * (1 + 1e-15), epsilon)
    except (ArithmeticError, ValueError):
        return None
    return None


def _between(excess: Callable[[float], float], low: float, high: float) -> float:
    """Root of a falling function, or the end beyond which it lies."""
    from scipy.optimize import brentq

    if excess(low) <= 0:
        return low
    if excess(high) > 0:
        return high
    return float(brentq(lambda e: max(excess(e), -1e5), low, high, xtol=1e-300, rtol=1e-15))


def _kernel(places: Floats, c: int, a: float) -> Floats:
    """Hc(s) for s > −ca: 2^c times the c-fold box of ∫2 sinh((s + v)/2)₊."""
    whole = places >= c * a
    result = np.empty_like(places)
    result[whole] = 2 * np.sinh(np.minimum(places[whole], 1400.0) / 2) * (2 * math.sinh(a / 2)) ** c
    part = places[~whole]
    total = np.zeros_like(part)
    for i in range(c + 1):
        total += (-1) ** i * math.comb(c, i) * _transform(part + (c - 2 * i) * a, c)
    result[~whole] = np.maximum(total, 1e-320)
    return result


def _transform(s: Floats, c: int) -> Floats:
    """Gc(s) = Σᵢ 2(s/2)^{c+1+2i}/(c + 1 + 2i)!, 0 for s ≤ 0."""
    half = np.maximum(s, 0.0) / 2
    term = 2 * half ** (c + 1) / math.factorial(c + 1)
    total = term.copy()
    for i in range(1, 2000):
        n = c + 1 + 2 * i
        term = term * half * half / (n * (n - 1))
        total += term
        if not np.any(term > 1e-17 * total):
            break
    return total
