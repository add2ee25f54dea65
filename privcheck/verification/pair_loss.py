"""The exact loss of one concrete pair in the claim's unit, rounded down, as a witness needs it.

A coordinate that changes by a times its Laplace scale has the loss a if the output lies beyond both values, −a on the
other side, and between them a density that is even around 0 once it is weighted by e^(−l/2).

Lemma cells-of-loss: An observer who sees a Laplace coordinate's output between both values only up to cells of the loss
of one width sees a loss at the middle of the cell, exactly, with a δ that is at most the true one. Proof: a
post-processing, of a density that is even.

All losses then lie on a lattice, and independent coordinates are convolved. A change that is rounded down to the
lattice loses no more than the change itself. The part of Gaussian coordinates is integrated exactly: given the loss l
of the others, δ(ε) is that of the Gaussian pair at ε − l.

Everything is rounded down: coordinates that are too many or too small are left out, as an attacker may do.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import PRICED, DiscreteGaussianNoise, DiscreteLaplaceNoise, LaplaceNoise
from privcheck.declare.procedures import Outcomes
from privcheck.declare.procedures.noisy_numbers import gaussian_outcomes, laplace_outcomes
from privcheck.declare.releases import Release
from privcheck.declare.schedules import Batches, PerUser
from privcheck.declare.statistics import SparseDifference
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import exact, to_float
from privcheck.verification.outcome_loss import Part, pair_delta, pair_epsilon
from privcheck.verification.shuffled_loss import shuffled_delta, shuffled_epsilon
from privcheck.verification.units import LossUnit, order_of, refuted_mu, unit_of


def discrete_loss(
    releases: Sequence[Release],
    moved: Mapping[str, SparseDifference],
    values: Mapping[str, Fraction],
    delta: float | None,
) -> float:
    """ε at δ of all coordinates with noise on the integers together, rounded down.

    An attacker may look at these coordinates alone; their laws are independent, and their losses add up.

    Args:
        releases: Releases of the pair that are considered.
        moved: Their changes.
        values: The parameters.
        delta: In (0, 1), rounded up; None asks for δ at ε = 0.
    """
    parts = discrete_parts(releases, moved, values)
    if not parts:
        return 0.0
    (outcomes, rounds), *beside = parts
    if delta is None:
        return pair_delta(outcomes, rounds, 0.0, beside)
    return pair_epsilon(outcomes, rounds, delta, beside)


def discrete_parts(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> list[Part]:
    """Law of a coordinate for each noise on the integers and each change, with the number of such coordinates."""
    counts: dict[tuple[DiscreteGaussianNoise | DiscreteLaplaceNoise, int], int] = {}
    for release in releases:
        noise, change = release.mechanism.at(values), moved[release.name]
        if not isinstance(noise, DiscreteGaussianNoise | DiscreteLaplaceNoise) or not change.times:
            continue
        sizes, times = np.unique(np.rint(np.abs(change.change)), return_counts=True)
        for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
            if size:
                counts[noise, int(size)] = counts.get((noise, int(size)), 0) + count * change.times
    laws = [(noise.moved_law(size), rounds) for (noise, size), rounds in counts.items()]
    return [(Outcomes(log_p=law[0], log_q=law[1]), rounds) for law, rounds in laws if law is not None]


_POINTS: Final = 2**13  # of the lattice
_MOST: Final = _POINTS // 4  # coordinates; each takes at least four points of it
_DOWN: Final = 1 - 1e-9  # covers the roundings of sums of so many positive terms
_TERM_ERROR: Final = 1e-14  # of each of the two terms of a Gaussian pair's δ
_HALVINGS: Final = 60

Floats = NDArray[np.float64]


def noisy_delta(mu: float, moves: Mapping[float, int], epsilon: float) -> float:
    """δ(ε) of the pair, rounded down.

    Args:
        mu: ‖Δ‖₂/σ of its Gaussian coordinates, rounded down.
        moves: Number of Laplace coordinates by the change in units of their scale, rounded down.
        epsilon: In nats, at least 0.
    """
    losses, masses = _law(tuple(sorted(moves.items(), reverse=True)))
    return max(0.0, float(masses @ _gaussian_delta(mu, epsilon - losses)) * _DOWN)


def noisy_epsilon(mu: float, moves: Mapping[float, int], delta: float) -> float:
    """An ε at which the pair's δ(ε) is above δ, so that no smaller ε holds at δ; 0 if none is found.

    Args:
        mu: As in `noisy_delta`.
        moves: Likewise.
        delta: In (0, 1), rounded up.
    """
    if not noisy_delta(mu, moves, 0.0) > delta:
        return 0.0
    low, high = 0.0, 1.0
    while noisy_delta(mu, moves, high) > delta and high < 1e6:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if noisy_delta(mu, moves, middle) > delta else (low, middle)
    return low


@functools.lru_cache(maxsize=32)
def _law(moves: tuple[tuple[float, int], ...]) -> tuple[Floats, Floats]:
    """Losses of all Laplace coordinates together and their probabilities under D; 0 with mass 1 if there are none."""
    kept, left = [], _MOST
    for move, count in moves:
        if move > 0 and left > 0 and math.isfinite(move):
            kept.append((move, min(count, left)))
            left -= kept[-1][1]
    if not kept:
        return np.zeros(1), np.ones(1)
    largest, whole = kept[0][0], math.fsum(move * count for move, count in kept)
    half = max(1, int(_POINTS * largest / (4 * whole)))  # cells of the largest move on either side of 0
    unit = largest / (2 * half)
    masses, reach = np.ones(1), 0
    for move, count in kept:
        cells = half if move == largest else int(move / (2 * unit) * (1 - 1e-15))
        if cells == 0:
            continue
        masses = np.convolve(masses, _power(_coordinate(cells, unit), count))
        reach += 2 * cells * count
    lattice = np.arange(-reach, reach + 1, dtype=np.float64)
    return lattice * unit - np.abs(lattice) * (unit * 1e-15), masses


def _coordinate(cells: int, unit: float) -> Floats:
    """Masses of the losses −2m·u, …, 2m·u of one coordinate with a change of 2m·u; P is the first law.

    Atoms at the ends; between them cells of width 2u, with losses at the odd multiples of u.
    """
    move = 2 * cells * unit
    masses = np.zeros(4 * cells + 1)
    masses[-1], masses[0] = 0.5, 0.5 * math.exp(-move)
    ends = np.exp(-np.arange(cells * 2 + 1) * unit)  # e^(−x/b) where the loss falls from the move by 2u a cell
    masses[1::2] = (0.5 * -np.diff(ends))[::-1]
    return masses


def _power(masses: Floats, times: int) -> Floats:
    raised, square = np.ones(1), masses
    while times:
        if times & 1:
            raised = np.convolve(raised, square)
        times >>= 1
        if times:
            square = np.convolve(square, square)
    return raised


def _gaussian_delta(mu: float, epsilon: Any) -> Floats:
    """Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) at any ε, negative ones too, rounded down; (1 − e^ε)₊ for μ = 0."""
    from scipy.special import log_ndtr

    if mu == 0:
        sure: Floats = np.maximum(-np.expm1(np.minimum(epsilon, 0.0)), 0.0)
        return sure
    with np.errstate(over="ignore"):
        first = np.exp(log_ndtr(mu / 2 - epsilon / mu))
        second = np.exp(np.minimum(epsilon + log_ndtr(-mu / 2 - epsilon / mu), 0.0))
    delta: Floats = np.maximum(first * (1 - _TERM_ERROR) - second * (1 + _TERM_ERROR), 0.0)
    return delta


_ROUNDED = 1 - Fraction(1, 10**12)
_MOST_MOVES = 100_000  # numbers with Laplace noise that are told beside procedures; an attacker may look at no more
_NEAR_ONE = 1e-9  # α − 1 below which D_α is taken for that of α → 1, which is less


def pair_loss(declaration: Declaration, moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]) -> float:
    """Loss of one pair in the claim's unit, exact except for rounding down.

    Releases with noise that no theorem prices are left out, as an attacker may do: their law is unknown.

    * ρ: ‖Δ‖₂²/2σ² for Gaussian releases, Σ g(|Δ|/b) with g(x) = x + e^(−x) − 1 for Laplace ones, which is their
      Kullback–Leibler divergence and therefore at most ρ.
    * ε of a pure claim: Σ|Δ|/b, attained by the outputs beyond both values; ∞ as soon as Gaussian noise protects a
      change.
    * ε at δ, and δ at ε = 0: the curve of Gaussian and Laplace noise together (`noisy_delta`), if every release is
      Gaussian to the last digit; that of discrete noise separately (`discrete_loss`).
    * ε at δ of messages behind a shuffler: the likelihood ratio of an event (`shuffled_loss`).
    * μ of Gaussian DP: ‖Δ‖₂/σ; with Laplace noise the largest μ that a point of the curve refutes.
    * the Rényi divergence at the claim's order α: α‖Δ‖₂²/2σ² for Gaussian releases, the closed form for Laplace ones
      (`_laplace_divergence`), the Kullback–Leibler divergence for others, which is less.
    * ∞ in every unit if two outputs share their noise and the pair changes their difference, which is exact.

    Args:
        declaration: The declaration of the releases.
        moved: `Release.moved` of the pair, by release, for those that hold the user.
        values: The parameters.
    """
    unit = unit_of(declaration, values)
    if leaks(declaration, moved, values):
        return 1.0 if unit == "delta" else math.inf
    known = [r for r in declaration.noisy if r.name in moved and type(r.mechanism) in PRICED]
    releases, moved = _independent(known, moved)
    if unit in {"epsilon", "delta"}:
        return _on_the_curve(declaration, releases, moved, values, unit)
    if unit == "mu":
        return _on_a_gaussian_curve(releases, moved, values)
    if unit == "renyi":
        return _divergence(releases, moved, values, order_of(declaration, values))
    terms = [_term(r, moved[r.name], values, pure=unit == "pure") for r in releases]
    if any(term is None for term in terms):
        return math.inf
    return to_float(sum((t for t in terms if t is not None), Fraction(0)), rounding="down")


def told_parts(
    declaration: Declaration, moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> tuple[Part, ...]:
    """Laws of the noisy statistics' outputs on one pair, to be composed with those of procedures.

    For Gaussian noise that is the coordinate along the change, for Laplace noise every number that changes, both up to
    cells; messages behind a shuffler, and noise that no theorem prices, are left out, as an attacker may do.

    Args:
        declaration: The declaration of the releases.
        moved: As for `pair_loss`.
        values: The parameters.
    """
    known = [r for r in declaration.noisy if r.name in moved and type(r.mechanism) in PRICED]
    known = [r for r in known if not r.mechanism.law.shuffled]
    releases, moved = _independent(known, moved)
    on_reals = [r for r in releases if not r.mechanism.law.whole]
    noisy = _gaussian_and_laplace(on_reals, moved, values)
    if noisy is None:
        return ()  # the pair is told apart for certain, which `pair_loss` says
    mu, moves = noisy
    parts = discrete_parts(releases, moved, values)
    if mu:
        parts.append((gaussian_outcomes(mu), 1))
    if moves:
        most = min(sum(moves.values()), _MOST_MOVES)
        scales = np.repeat(list(moves), [min(count, most) for count in moves.values()])
        parts.append((laplace_outcomes(np.sort(scales)[::-1][:most]), 1))
    return tuple(parts)


def _on_the_curve(
    declaration: Declaration,
    releases: Sequence[Release],
    moved: Mapping[str, SparseDifference],
    values: Mapping[str, Fraction],
    unit: LossUnit,
) -> float:
    """ε at the claim's δ, or δ at ε = 0."""
    claim = declaration.claim.guarantee
    assert isinstance(claim, ApproxDP)
    delta = claim.delta.number(values, rounding="up")
    if any(r.mechanism.law.shuffled for r in releases):
        if unit == "delta":
            return shuffled_delta(releases, moved, values)
        return shuffled_epsilon(releases, moved, values, delta)[0]
    noisy = _gaussian_and_laplace(releases, moved, values)
    if noisy is None:
        return 1.0 if unit == "delta" else math.inf
    mu, moves = noisy
    whole = discrete_loss(releases, moved, values, None if unit == "delta" else delta)
    if not moves:
        rest = gdp_delta(mu, 0.0, rounding="down") if unit == "delta" else gdp_epsilon(mu, delta, rounding="down")
        return max(whole, rest if mu else 0.0)
    return max(whole, noisy_delta(mu, moves, 0.0) if unit == "delta" else noisy_epsilon(mu, moves, delta))


def _gaussian_and_laplace(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> tuple[float, dict[float, int]] | None:
    """‖Δ‖₂/σ of the Gaussian releases and the changes of the Laplace ones; None if one loss is unbounded."""
    terms = {r.name: _term(r, moved[r.name], values, pure=False) for r in releases}
    if None in terms.values():
        return None
    gaussian = [terms[r.name] for r in releases if r.mechanism.law.gaussian]
    squared = 2 * sum((t for t in gaussian if t is not None), Fraction(0))
    mu = max(0.0, math.nextafter(math.sqrt(to_float(squared, rounding="down")), 0.0))
    return mu, _laplace_moves([r for r in releases if r.mechanism.law is LaplaceNoise], moved, values)


def _on_a_gaussian_curve(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> float:
    """A μ below which the pair is not μ-GDP, as a point of its curve shows; ∞ for shuffled messages."""
    noisy = _gaussian_and_laplace(releases, moved, values)
    if noisy is None:
        return math.inf
    mu, moves = noisy
    if not moves:
        return mu
    last = mu * (mu + 8) + math.fsum(move * count for move, count in moves.items())
    return max(mu, refuted_mu(lambda epsilon: noisy_delta(mu, moves, epsilon), last))


def _divergence(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction], order: float
) -> float:
    """The pair's D_α, rounded down: divergences of independent outputs add up."""
    total = 0.0
    for release in releases:
        term = _term(release, moved[release.name], values, pure=False)
        if term is None:
            return math.inf
        if release.mechanism.law is LaplaceNoise:
            moves = _laplace_moves([release], moved, values)
            total += math.fsum(count * _laplace_divergence(move, order) for move, count in moves.items())
        else:
            factor = order if release.mechanism.law.gaussian else 1.0
            total += factor * to_float(term, rounding="down")
    return total * float(_ROUNDED)


def _laplace_divergence(move: float, order: float) -> float:
    """D_α of Laplace noise shifted by `move` times its scale, rounded down.

    ln(α/(2α − 1)·e^((α−1)x) + (α − 1)/(2α − 1)·e^(−αx))/(α − 1) (Mironov 2017, Proposition 6); never below the
    Kullback–Leibler divergence x + e^(−x) − 1, which is used where digits cancel.
    """
    rest, least = order - 1, (move + math.expm1(-move)) * (1 - 1e-12) - 1e-15 * move
    if rest < _NEAR_ONE:
        return max(0.0, least)
    terms = (math.log(order / (2 * order - 1)) + rest * move, math.log(rest / (2 * order - 1)) - order * move)
    exponent = max(terms) + math.log1p(math.exp(min(terms) - max(terms)))
    rounding = 1e-14 * (1 + abs(terms[0]) + abs(terms[1]))
    return max(0.0, least, (exponent - rounding) / rest)


def _laplace_moves(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]
) -> dict[float, int]:
    """Number of coordinates by their change in units of their scale, rounded down."""
    counts: dict[float, int] = {}
    for release in releases:
        change = moved[release.name]
        if not change.times or not change.cells.size:
            continue
        scale = _spread(release, values)
        moves, times = np.unique(np.abs(change.change), return_counts=True)
        for move, count in zip(moves, times, strict=True):
            scales = to_float(exact_change(float(move)) / scale, rounding="down")
            counts[scales] = counts.get(scales, 0) + int(count) * change.times
    return counts


def leaks(declaration: Declaration, moved: Mapping[str, SparseDifference], values: Mapping[str, Fraction]) -> bool:
    """Whether outputs that share their noise have an exact difference that the pair changes.

    * One draw over all outputs of a schedule: two outputs differ by the users between them, exactly. If the first user
      is in two outputs, a later one is in one of them and not in the other. With batches and users' own releases the
      user is in one output, and the others are without.
    * One draw over all cells of a table: the differences between its cells are exact, and change unless all cells
      change by the same amount.
    * One draw for two releases: their difference is exact, and changes unless both change by the same amount. A release
      of another group, which the user is not in, does not change at all.
    """
    shared = [r for r in declaration.noisy if r.name in moved and r.name in declaration.shared_draws]
    elsewhere = {r.draw.name for r in declaration.noisy if r.draw.name and r.name not in moved}
    seen: dict[str, SparseDifference] = {}
    for release in shared:
        change, name = moved[release.name], release.draw.name
        cells = math.prod(release.statistic.shape(values)[1:])
        if not change.cells.size or not change.times:
            continue
        apart = change.times > 1 or isinstance(release.schedule, Batches | PerUser)
        if ("outputs" in release.draw.across and apart) or name in elsewhere:
            return True
        if "cells" in release.draw.across and not _all_alike(change, cells):
            return True
        if name and name in seen and not _alike(seen[name], change):
            return True
        seen.setdefault(name, change)
    return False


def _independent(
    releases: Sequence[Release], moved: Mapping[str, SparseDifference]
) -> tuple[list[Release], dict[str, SparseDifference]]:
    """Outputs with independent noise, which is all an attacker needs: one of each set that shares a draw."""
    kept: dict[str, Release] = {}
    changes: dict[str, SparseDifference] = {}
    for release in releases:
        change = moved[release.name]
        if "outputs" in release.draw.across:
            change = replace(change, times=min(change.times, 1))
        if "cells" in release.draw.across:
            most = np.argsort(-np.abs(change.change))[:1]
            change = replace(change, cells=change.cells[most], change=change.change[most])
        kept.setdefault(release.draw.name or f"release {release.name}", release)
        changes[release.name] = change
    return list(kept.values()), changes


def _all_alike(change: SparseDifference, cells: int) -> bool:
    """Whether at every step with a change all cells change, by the same amount."""
    first = np.flatnonzero(np.diff(change.cells // cells, prepend=-1))  # of every step, cells ascending
    most, least = (f.reduceat(change.change, first) for f in (np.maximum, np.minimum))
    return change.cells.size == first.size * cells and np.array_equal(most, least)


def _alike(one: SparseDifference, other: SparseDifference) -> bool:
    return np.array_equal(one.cells, other.cells) and np.array_equal(one.change, other.change)


def _term(
    release: Release, difference: SparseDifference, values: Mapping[str, Fraction], *, pure: bool
) -> Fraction | None:
    """Part of the loss by all outputs of one release, rounded down; None if it is unbounded."""
    if not difference.cells.size or not difference.times:
        return Fraction(0)
    law = release.mechanism.law
    if law.shuffled or (pure and law.unbounded):
        return None  # the largest message reveals the user; Gaussian tails bound no ε
    spread = _spread(release, values)
    if spread == 0:
        return None  # without noise the change is exact
    moves, counts = np.unique(np.abs(difference.change), return_counts=True)
    changes = [(exact_change(float(c)), int(k)) for c, k in zip(moves, counts, strict=True)]
    return difference.times * law.loss(changes, spread, pure=pure)


def _spread(release: Release, values: Mapping[str, Fraction]) -> Fraction:
    """The spread, or the next float above it if it is irrational: more noise than there is loses less."""
    spread = release.mechanism.spread.rational(values)
    return Fraction(release.mechanism.spread.number(values, rounding="up")) if spread is None else spread


def exact_change(change: float) -> Fraction:
    """The change as a fraction: whole numbers exactly, others reduced by more than their rounding error."""
    return exact(int(change)) if float(change).is_integer() else Fraction(float(change)) * _ROUNDED
