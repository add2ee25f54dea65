"""ε or δ of a composition at any number of points: one code path for one point or a hundred thousand.

The composition's (ε, δ)-parts lose 1 − ∏(1 − δᵢ) outright; the rest of δ is available to the other parts (Kairouz, Oh &
Viswanath 2015). Every method is capped by the sum of the largest losses, where it is finite.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.combining import job_of
from privcheck.accounting.engine.gdp import SMALLEST
from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laws import UNIT, Floats
from privcheck.accounting.engine.methods import (
    HOW,
    SUMMED,
    Errs,
    How,
    PointValues,
    epsilons_of,
    log_deltas_of,
)
from privcheck.accounting.events import Event

_CAPPED: Final = How(name="pure DP, summed", errs="upper")
_NONE: Final = How(name="none", errs="exact")
_ALL: Final = (*HOW, _CAPPED, _NONE)
_MOST_EXACT: Final = 64  # (ε, δ)-parts whose δ are combined in fractions where the last digit decides
NAMES: Final = tuple(how.name for how in _ALL)  # of `Answers.how`
WAYS: Final[tuple[Errs, ...]] = ("upper", "estimate", "exact")  # of `Answers.errs`


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answers:
    """Values at many points.

    Attributes:
        values: (m,) ε or δ, never below the truth.
        how: (m,) index into the methods.
        errs: (m,) index into "upper", "estimate", "exact": the direction of each error, over both directions of the
            pairs.
    """

    values: Floats
    how: NDArray[np.intp]
    errs: NDArray[np.intp]

    @property
    def method(self) -> str:
        """Names of the methods, in order of first appearance."""
        _, first = np.unique(self.how, return_index=True)
        return "; ".join(dict.fromkeys(NAMES[self.how[i]] for i in np.sort(first)))

    @property
    def direction(self) -> Errs:
        """Direction of the values' errors: that of the worst value."""
        return WAYS[int(self.errs.min())] if len(self.errs) else "exact"


@functools.lru_cache(maxsize=256)
def fetch_job(branch: tuple[Event, ...]) -> Job:
    """Get the cached accounting job of a composition."""
    return job_of(branch)


def epsilons_at(branch: tuple[Event, ...], deltas: Floats) -> Answers:
    """Compute the least ε with δ(ε) ≤ δ, at (m,) δ in [0, 1)."""
    job = fetch_job(branch)
    most = job.largest()
    log_rest = np.minimum(_log_left(job, deltas), 0.0)
    values = np.full(len(deltas), most)
    how = np.full(len(deltas), _ALL.index(SUMMED if math.isfinite(most) else _NONE))
    errs = np.full(len(deltas), WAYS.index("upper" if job.orders_only else "exact"))  # at δ = 0: Σ of largest losses
    values[np.isnan(log_rest)], how[np.isnan(log_rest)] = np.inf, _ALL.index(_NONE)  # less than what is lost outright
    asked = log_rest > -np.inf
    if job.hopeless:
        errs[asked] = WAYS.index("upper")
        return Answers(values=values, how=how, errs=errs)
    if not asked.any():
        return Answers(values=values, how=how, errs=errs)
    answers = [(d, epsilons_of(job, log_rest[asked], d)) for d in job.directions]
    tops, which, worst = _over_directions([f for _, f in answers], joined=job.joined)
    capped = np.isfinite(most) & (most <= tops)
    values[asked] = np.where(capped, most, tops)
    how[asked] = np.where(capped, _ALL.index(_CAPPED), which)
    errs[asked] = np.where(capped, WAYS.index("upper"), worst)
    return Answers(values=values, how=how, errs=errs)


def deltas_at(branch: tuple[Event, ...], epsilons: Floats) -> Answers:
    """Compute δ(ε) at (m,) ε ≥ 0."""
    job = fetch_job(branch)
    beyond = epsilons >= job.largest()
    values = _add_lost(job, np.where(beyond, -np.inf, 0.0))
    how = np.full(len(epsilons), _ALL.index(SUMMED))
    errs = np.where(beyond, WAYS.index("exact"), WAYS.index("upper"))
    asked = ~beyond
    if job.hopeless or not asked.any():
        return Answers(values=values, how=how, errs=errs)
    answers = [(d, log_deltas_of(job, epsilons[asked], d)) for d in job.directions]
    tops, which, worst = _over_directions([f for _, f in answers], joined=job.joined)
    values[asked], how[asked], errs[asked] = _add_lost(job, tops), which, worst
    return Answers(values=values, how=how, errs=errs)


def _over_directions(answers: list[PointValues], *, joined: bool) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Take the largest values over the directions, their methods, and the worst error direction of any of them.

    Where the laws are replaced by dominating ones (`joined`), exact arithmetic gives an upper bound.
    """
    values = np.stack([f.values for f in answers])
    if np.isnan(values).any():
        raise ArithmeticError("an accountant's method returned a value that is not a number: please report this")
    top = values.argmax(axis=0)
    how = np.stack([f.how for f in answers])
    worst = np.array([WAYS.index(h.errs) for h in HOW])[how].min(axis=0)
    index = np.arange(values.shape[1])
    return values[top, index], how[top, index], np.zeros_like(worst) if joined else worst


def _log_left(job: Job, deltas: Floats) -> Floats:
    """Logarithm of the δ left after the (ε, δ)-parts have lost theirs, rounded down; −∞ for 0, NaN below."""
    with np.errstate(divide="ignore"):
        if job.lost == 0:
            return np.log(deltas)
        slack = 4 * UNIT * (2 + sum(n for _, n in job.losts))
        lost = -math.expm1(job.lost)
        rest = deltas - lost
        close = np.abs(rest) <= 1e-9 * lost
        rest -= slack * lost
        known = sum(n for _, n in job.losts) <= _MOST_EXACT
        for i in np.flatnonzero(close & known) if known else ():
            rest[i] = _exactly_left(job.losts, float(deltas[i]))
        left = np.log(np.maximum(rest, 0.0)) - job.lost - 4 * UNIT * (1 + abs(job.lost))
    return np.where(rest < 0, np.nan, left)


@functools.lru_cache(maxsize=1024)
def _exactly_left(losts: tuple[tuple[float, int], ...], delta: float) -> float:
    """δ − (1 − ∏(1 − δᵢ)^nᵢ) computed exactly, rounded down."""
    kept = math.prod(((1 - Fraction(d)) ** n for d, n in losts), start=Fraction(1))
    rest = Fraction(delta) - 1 + kept
    left = float(rest)
    return math.nextafter(left, -math.inf) if Fraction(left) > rest else left


def _add_lost(job: Job, log_deltas: Floats) -> Floats:
    """δ of all parts together, rounded up; an underflow is rounded up too."""
    rest = np.where(log_deltas == -np.inf, 0.0, np.maximum(np.exp(log_deltas) * (1 + 4 * UNIT), SMALLEST))
    if job.lost == 0:
        return np.minimum(rest, 1.0)
    slack = 1 + 4 * UNIT * (3 + sum(n for _, n in job.losts))
    whole = (-math.expm1(job.lost) + math.exp(job.lost) * rest) * slack
    if len(job.losts) == 1 and job.losts[0][1] == 1:  # exactly the part's own where nothing else is lost
        whole = np.where(rest == 0, job.losts[0][0], whole)
    return np.minimum(whole, 1.0)
