"""Runs that stop at a rare answer under Gaussian noise: upper bounds on the privacy curve, rounded up.

A run compares up to m queries with a threshold at z, each with fresh noise of standard deviation s, and stops at the
first query above. Lemmas `stopped-run`, `gaussian-sparse-vector` and `gaussian-noisy-max` are proved in
`docs/programs.md`; each states what the function next to it computes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np

from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.accounting.engine.laws import Floats, as_floats, root_up
from privcheck.accounting.engine.profiles import content, convex_profile, exponential_up, profile_atoms

_POINTS: Final = 600  # steps of ε of one run's curve
_MOST: Final = 16_000  # steps of ε of a composition
_SHOWN: Final = 1_200  # points of a curve that are handed on
_LEAST: Final = 1e-25  # δ at which a curve ends: what is left counts as lost
_FEW: Final = 40  # steps that are taken one by one before they are taken together
_GROWTH: Final = 1.1  # factor by which the number of steps taken together grows
_UP: Final = 1 + 1e-11  # sums of positive terms: 10⁴ roundings and more
_FARTHEST: Final = 500.0  # ε of a table
_DROPPED: Final = 1e-40  # mass at the largest losses that is moved to ∞


def stopped_delta(shift: float, queries: int, epsilon: float) -> float:
    """Upper bound on δ(ε) of a run that stops at the first of m queries above, at a known threshold.

    Lemma stopped-run: Let a run answer "below" to query i with probability Φ(tᵢ), and else stop, with tᵢ chosen from
    the answers before. Let R have the same probabilities of "below", and Φ̄(tᵢ + b), 0 ≤ b ≤ a, of stopping at i. Then
    P(S) − xR(S) ≤ 1 − W for every set S of outcomes, where W₀ = min(1, x) and Wⱼ₊₁ = Wⱼ·(1 − δₐ(ln(x/Wⱼ))), j < m, with
    δₐ the curve of N(0, 1) against N(a, 1). Some tᵢ attain it. Proof: docs/programs.md.

    Several steps are taken together: W·δₐ(ln(x/W)) grows with W, so n steps lower W by at most n times the first.

    Args:
        shift: a, at least 0.
        queries: m, at least 1.
        epsilon: ln x, at least 0.
    """
    left, done, block = 1.0, 0, 1.0
    while done < queries and left > 0:
        steps = 1 if done < _FEW else min(queries - done, math.floor(block))
        if done >= _FEW:
            block *= _GROWTH
        lost = gdp_delta(shift, max(0.0, (epsilon - math.log(left)) * (1 - 1e-15)))
        if lost <= 0:
            break
        left = max(0.0, left * (1 - min(1.0, steps * lost * (1 + 1e-15))) * (1 - 1e-15))
        done += steps
    return min(1.0, math.nextafter(1 - left, math.inf))


@functools.lru_cache(maxsize=256)
def sparse_vector_profile(
    *, threshold: float, shift: float, queries: int, positives: int, values: float, all_noisy: float
) -> Mapping[float, float]:
    """Points (ε, δ), ε ≥ 0, of an upper bound on the curve of a sparse vector with Gaussian noise.

    Lemma gaussian-sparse-vector: A sparse vector with one Gaussian threshold of standard deviation s₁ for c answers
    "above" and Gaussian noise s₂ on each of m queries loses at most what the composition of a Gaussian mechanism of μ =
    Δ/s₁ with c runs of `stopped-run`, a = 2Δ/s₂ (Δ/s₂ for monotone queries), loses. Fresh Gaussian values of the
    queries above add c Gaussian mechanisms; the gap between a query above and the threshold adds nothing. Proof:
    docs/programs.md.

    Args:
        threshold: μ of the threshold, Δ/s₁.
        shift: a.
        queries: m.
        positives: c.
        values: μ of one released value; 0 if none is released.
        all_noisy: μ of all noisy queries and values together, of which the output is a post-processing; 0 to leave that
            bound out.
    """
    runs = min(positives, queries)
    mu = math.nextafter(math.sqrt(threshold**2 + runs * values**2) * (1 + 1e-15), math.inf)
    far = min(_FARTHEST, gdp_epsilon(shift, _LEAST / queries / runs))
    spread = gdp_epsilon(mu, _LEAST)
    step = max(far / _POINTS, (min(far * runs, _FARTHEST) + min(spread, _FARTHEST)) / _MOST)
    masses, lost = _losses(shift, queries, far, step)
    total, infinite = masses, lost
    for _ in range(runs - 1):
        total, infinite = _trim(as_floats(np.convolve(total, masses)) * _UP, min(1.0, infinite + lost))
    behind = len(total) - 1  # steps of the largest finite loss of the runs
    reach = math.floor(min(_FARTHEST, step * behind + spread) / step)
    gaussian = np.array([_delta_of_any(mu, step * k) for k in range(-behind, reach + 1)])
    bounds = np.convolve(gaussian, total)[behind : behind + reach + 1] * _UP + infinite
    rounded = 1e-13 * step * behind  # losses on the grid may be below the true ones by a few units in the last place
    found = {step * k * (1 + 1e-13) + rounded: bound for k, bound in enumerate(bounds.tolist())}
    if all_noisy > 0:
        found = {e: min(bound, gdp_delta(all_noisy, e)) for e, bound in found.items()}
    return _falling(found)


def noisy_max_delta(shift: float, candidates: int, epsilon: float) -> float:
    """Upper bound on δ(ε) of the index of the largest of m scores with Gaussian noise of standard deviation s.

    Lemma gaussian-noisy-max: With a = 2Δ/s (Δ/s for monotone scores) it is at most m·(p − e^ε Φ(Φ⁻¹(p) − a)), p the
    smaller of 1/m and Φ̄(ε/a − a/2). Proof: docs/programs.md.

    Args:
        shift: a, above 0.
        candidates: m, at least 2.
        epsilon: In nats, at least 0.
    """
    from scipy.special import ndtr, ndtri

    free = epsilon / shift - shift / 2
    t = -float(ndtri(1 / candidates))
    if free >= t:
        return min(1.0, candidates * gdp_delta(shift, epsilon) * (1 + 1e-15))
    # Φ̄(t) − e^ε Φ̄(t + a) falls in t beyond the free optimum: a t below 1/m's own is on the safe side
    t = max(free, t - 1e-14 * (1 + abs(t)))
    value = float(ndtr(-t)) * (1 + 1e-13) - math.exp(min(epsilon, 700.0)) * float(ndtr(-t - shift)) * (1 - 1e-13)
    return min(1.0, max(0.0, candidates * value))


@functools.lru_cache(maxsize=256)
def noisy_max_profile(*, shift: float, candidates: int, monotone: bool) -> Mapping[float, float]:
    """Points (ε, δ), ε ≥ 0, of the smaller of `noisy_max_delta` and the curve of all noisy scores together.

    All noisy scores are a Gaussian mechanism of μ = √m·Δ/s, and the index is a post-processing of them.

    Args:
        shift: a.
        candidates: m.
        monotone: Whether a is Δ/s and not 2Δ/s.
    """
    mu = math.nextafter(shift / 2 * root_up(candidates), math.inf) if not monotone else shift * root_up(candidates)
    far = min(_FARTHEST, gdp_epsilon(shift, _LEAST / candidates))
    points = [far / _POINTS * k for k in range(_POINTS + 1)]
    return _falling({e: min(noisy_max_delta(shift, candidates, e), gdp_delta(mu, e)) for e in points})


def _falling(found: Mapping[float, float]) -> Mapping[float, float]:
    """Points that fall as ε grows, up to the first at which nothing but `_LEAST` is left."""
    kept: dict[float, float] = {}
    least = 1.0
    for epsilon, bound in found.items():
        least = min(least, bound)
        kept[epsilon] = least
        if least <= _LEAST:
            break
    if len(kept) <= _SHOWN:
        return kept
    some = np.unique(np.linspace(0, len(kept) - 1, _SHOWN).astype(np.int64)).tolist()
    listed = list(kept.items())
    return dict(listed[k] for k in some)  # chords between fewer points are above the curve as well


def _losses(shift: float, queries: int, far: float, step: float) -> tuple[Floats, float]:
    """P-masses of one run's losses at multiples of `step`, up to `far` or a step more, and that at ∞; rounded up."""
    places = range(math.ceil(far / step - 1e-9) + 1)
    knots = convex_profile(
        (exponential_up(step * k), Fraction(stopped_delta(shift, queries, step * k))) for k in places
    )
    atoms = profile_atoms(content(knots, (str(knots),)), "remove")
    masses = np.zeros(len(places))
    if not knots:
        return masses, 1.0
    np.add.at(masses, np.rint(atoms.losses / step).astype(np.int64), np.exp(atoms.logs) * _UP)
    return masses, float(atoms.infinite)


def _trim(masses: Floats, infinite: float) -> tuple[Floats, float]:
    """Move masses at the largest losses to ∞, at most `_DROPPED` together."""
    above = np.cumsum(masses[::-1])
    keep = len(masses) - int(np.searchsorted(above, _DROPPED, side="right"))
    return masses[:keep], infinite + _DROPPED


def _delta_of_any(mu: float, epsilon: float) -> float:
    """δ(ε) of a Gaussian mechanism at ε of either sign, rounded up; δ(−ε) = 1 − e^{−ε}(1 − δ(ε))."""
    if epsilon >= 0:
        return gdp_delta(mu, epsilon)
    return min(1.0, 1 - math.exp(epsilon) * (1 - gdp_delta(mu, -epsilon)) * (1 - 1e-15) + 1e-16)
