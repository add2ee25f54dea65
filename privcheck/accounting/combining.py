"""From events to a job: equal events merged and their laws counted, in an order independent of the caller's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from privcheck.accounting.engine.discrete import AtomicLaw, DiscreteGaussian
from privcheck.accounting.engine.job import Job
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import GaussianLaw, Law, LostLaw, ZcdpLaw
from privcheck.accounting.engine.majorised import MOST, majorise
from privcheck.accounting.engine.orders import RenyiLaw
from privcheck.accounting.events import Event, Piece


def combine(events: Sequence[Event]) -> tuple[Event, ...]:
    """Merge equal events in a fixed order: neither order nor grouping matters from here on."""
    counts: Counter[Event] = Counter()
    for event in events:
        counts[replace(event, count=1)] += event.count
    joined = (replace(e, count=n) for e, n in counts.items())
    return tuple(sorted(joined, key=lambda e: (e.kind, e.parameters, e.relation or "", e.fractions)))


def job_of(events: Sequence[Event]) -> Job:
    """Build the accounting job of a composition."""
    counts: Counter[Piece] = Counter()
    for event in events:
        for piece, times in event.pieces:
            counts[piece] += times * event.count
    squares, rhos, xis = [], [], []
    losts: list[tuple[float, int]] = []
    bounds: list[tuple[RenyiLaw, int]] = []
    laws: list[tuple[Law, int]] = []
    for given, repeats in counts.items():
        piece, times = given.merge_repeats(repeats) if isinstance(given, DiscreteGaussian) else (given, repeats)
        if isinstance(piece, GaussianLaw):
            squares.append(times * piece.mu_squared)
        elif isinstance(piece, ZcdpLaw):
            rhos.append(times * piece.rho)
            xis.append(times * piece.xi)
        elif isinstance(piece, RenyiLaw):
            bounds.append((piece, times))
        elif isinstance(piece, LostLaw):
            losts.append((piece.delta, times))
        else:
            laws.append((piece, times))
    laws, joined = _few_laplaces(laws)
    joined = joined or any(isinstance(law, AtomicLaw) and law.below is not None for law, _ in laws)
    laws.sort(key=lambda pair: _key(pair[0]))
    return Job(
        mu_squared=_sum(squares),
        laws=tuple(laws),
        rho=_sum(rhos),
        lost=_sum(times * math.log1p(-delta) for delta, times in losts),
        losts=tuple(sorted(losts)),
        xi=_sum(xis),
        bounds=tuple(bounds),
        joined=joined,
    )


def _few_laplaces(laws: list[tuple[Law, int]]) -> tuple[list[tuple[Law, int]], bool]:
    """Replace very many different Laplace laws by fewer that dominate them; also say whether any were replaced."""
    steps = [(law.step, times) for law, times in laws if isinstance(law, LaplaceLaw)]
    if len(steps) <= MOST:
        return laws, False
    others = [(law, times) for law, times in laws if not isinstance(law, LaplaceLaw)]
    return others + [(LaplaceLaw(a), times) for a, times in majorise(steps)], True


def _key(law: Law) -> str:
    name = law.build.__name__ if isinstance(law, AtomicLaw) else ""
    return f"{name} {law!r}"


def _sum(terms: Iterable[float]) -> float:
    """Correctly rounded sum, independent of order and grouping; ±∞ where it overflows."""
    numbers = list(terms)
    try:
        return math.fsum(numbers)
    except OverflowError:
        return math.copysign(math.inf, numbers[0])
