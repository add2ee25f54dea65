"""Pairs that dominate several others at once: the largest of two curves, and a curve with its mirror image.

δ as a function of e^ε is convex, falls from 1 at 0 with a slope of −1 at least, and every function of that kind belongs
to a pair [lemma profile-pair].

Lemma largest-curve: The largest of several curves is the curve of a pair that dominates them all; composed, it
dominates every mixture of them. Source: Zhu, Dong & Wang 2022, Proposition 8 and Theorem 10.

Between neighbouring values of the losses the curves are linear: where one of them is the largest its atoms are taken
unchanged, and where they cross an atom accounts for the change of slope. Rounding goes up: the result is compared with
the given curves.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.atoms import Atoms, tidy
from privcheck.accounting.engine.laws import Floats, as_floats

Indices = NDArray[np.int64]
_TIE: Final = 1e-12  # relative; curves that agree to this much do not cross
_ZERO: Final = 1e-13  # relative to the knots around it
_UP: Final = 1e-12  # relative; on top of what rounding is seen to have taken away
_TAIL: Final = 4e-13  # relative error of a tail's Q-mass


def greatest(one: Atoms, other: Atoms) -> Atoms:
    """Build the law with δ(ε) the larger of two laws', for every real ε; rounded up."""
    knots = as_floats(np.union1d(one.losses, other.losses))
    logs = np.stack([one.log_deltas(knots), other.log_deltas(knots)])
    leads = _leaders(one, other, logs)
    places, masses = _crossings((one, other), knots, logs, leads)
    # a knot counts for a curve that leads on both its sides; one next to a crossing has its atom there all the same
    parts = [(places, masses)]
    for which, atoms in enumerate((one, other)):
        at = np.searchsorted(knots, atoms.losses)
        lead = leads[at] == which
        parts.append((atoms.losses[lead], atoms.logs[lead]))
    infinite = max(one.infinite, other.infinite)
    law = tidy(np.concatenate([p for p, _ in parts]), np.concatenate([m for _, m in parts]), infinite)
    return _raise_masses(law, knots, as_floats(logs.max(axis=0)))


def _leaders(one: Atoms, other: Atoms, logs: Floats) -> Indices:
    """(n,) index of the larger curve at every knot; where they agree, the previous leader."""
    with np.errstate(invalid="ignore"):
        gaps = np.where(np.isneginf(logs).all(axis=0), 0.0, logs[0] - logs[1])
    clear = np.where(gaps > _TIE, 0, np.where(gaps < -_TIE, 1, -1))
    known = np.maximum.accumulate(np.where(clear >= 0, np.arange(len(clear)), -1))
    first = int(one.log_q_above()[0] > other.log_q_above()[0])  # towards e^ε = 0 the flatter one leads
    return np.asarray(np.where(known >= 0, clear[np.maximum(known, 0)], first), dtype=np.int64)


def _crossings(pair: tuple[Atoms, Atoms], knots: Floats, logs: Floats, leads: Indices) -> tuple[Floats, Floats]:
    """Crossings of the curves and ln of the P-masses there: e^ε times the fall of the Q-mass above."""
    before = np.flatnonzero(leads[1:] != leads[:-1])
    if not len(before):
        return np.empty(0), np.empty(0)
    low, high = knots[before], knots[before + 1]
    tails = np.stack([_log_q_above(atoms, high) for atoms in pair])
    index = np.arange(len(before))
    left, right = tails[leads[before], index], tails[leads[before + 1], index]
    with np.errstate(divide="ignore"):
        top = logs[:, before].max(axis=0)
        share = np.abs(np.subtract(*np.exp(logs[:, before] - top)))
        share /= np.maximum(share + np.abs(np.subtract(*np.exp(logs[:, before + 1] - top))), 1e-300)
        places = np.clip(low + np.logaddexp(np.log1p(-share), np.log(share) + high - low), low, high)
        places = np.where(
            np.abs(places) < _ZERO * np.maximum(np.abs(low), high), 0.0, places
        )  # mirror images cross at 0
        gaps = -np.expm1(np.minimum(right - left, 0.0)) + _TAIL
        return as_floats(places), as_floats(places + left + np.log(gaps))


def _log_q_above(atoms: Atoms, at: Floats) -> Floats:
    """Logarithm ln Q(L ≥ l), −∞ beyond the last value."""
    tails = np.append(atoms.log_q_above(), -np.inf)
    return as_floats(tails[np.searchsorted(atoms.losses, at, side="left")])


def _raise_masses(law: Atoms, knots: Floats, logs: Floats) -> Atoms:
    """Multiply the masses by the largest shortfall of the law's curve at the knots, and a little more."""
    with np.errstate(invalid="ignore"):
        short = np.where(np.isneginf(logs), 0.0, logs - law.log_deltas(knots))
    missing = max(0.0, float(np.max(short))) + _UP
    return Atoms(losses=law.losses, logs=law.logs + missing, infinite=law.infinite)


def mirror(atoms: Atoms) -> Atoms:
    """Build the law with the same δ(ε) for ε ≥ 0, and for ε < 0 the δ(ε) of the reversed pair.

    Lemma mirror: If only H_α ≤ δ(ln α) for α ≥ 1 is known, of a family of pairs that contains (Q, P) with every (P, Q),
    then for α < 1 H_α ≤ 1 − α + α·δ(−ln α). A loss l > 0 of mass p then has its mirror image −l, of mass p·e^{−l}, and
    the remaining mass has loss 0. Proof: H_α(P, Q) = 1 − α + α·H_{1/α}(Q, P).

    Where no mass remains, for example where a loss of 0 was rounded up, the two halves form a bound that is not convex
    at ε = 0, and the least losses are moved apart until it is (`_join_at_zero`).
    """
    above = atoms.losses > 0
    losses, logs = _join_at_zero(atoms.losses[above], atoms.logs[above], atoms.infinite)
    images = logs - losses
    rest = 1 - atoms.infinite - float(np.exp(logs).sum()) - float(np.exp(images).sum())
    middle = max(rest, 0.0) + _UP
    every = np.concatenate([-losses[::-1], [0.0], losses])
    return tidy(every, np.concatenate([images[::-1], [math.log(middle)], logs]), atoms.infinite)


def _join_at_zero(losses: Floats, logs: Floats, infinite: float) -> tuple[Floats, Floats]:
    """Join the least losses above 0 so that they fit with their mirror images, without making any δ(ε) smaller.

    The masses and those of their images may add up to at most 1 − `infinite`. Where they exceed it, the first k losses
    are replaced by one loss l₁ with its image −l₁, which share all the mass M not used by the others. The k with the
    least l₁ is taken.

    Lemma join-at-zero: One loss l₁ with its image −l₁ of mass M together has no smaller δ(ε) than k losses of masses p
    with their images if l₁ is at least the last of them, and their part of δ(0), D = Σp(1 − e^{−l}), at most
    M·tanh(l₁/2). Proof: their part of δ is convex in e^ε and 0 from e^{l₁} on, so it lies under the chord, which is the
    part of l₁.

    Args:
        losses: (n,) increasing, above 0.
        logs: (n,) ln of their masses.
        infinite: P-mass at loss ∞.
    """
    both = np.exp(logs) + np.exp(logs - losses)
    if 1 - infinite - float(both.sum()) >= -_UP:
        return losses, logs
    room = 1 - infinite - (both.sum() - np.cumsum(both))  # M, at every k
    gaps = np.cumsum(np.exp(logs) * -np.expm1(-losses)) * (1 + _UP)  # D
    shares = np.where(room > 0, gaps / np.where(room > 0, room, 1.0), 1.0)
    moved = np.where(shares < 1, np.maximum(losses, 2 * np.arctanh(np.minimum(shares, 1 - _UP)) * (1 + _UP)), np.inf)
    k = int(moved.argmin())
    first = math.log(room[k]) - np.logaddexp(0.0, -moved[k])
    return np.append(moved[k], losses[k + 1 :]), np.append(first, logs[k + 1 :])
