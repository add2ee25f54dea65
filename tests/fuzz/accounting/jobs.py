"""Random jobs: every kind alone, every pair of kinds, and some triples, with what is asked of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.special import ndtr, ndtri

from privcheck import accounting as acc

from .kinds import KINDS
from .parts import COUNTED, Part, logs


@dataclass(frozen=True, slots=True)
class Job:
    """Events on the same data, and the questions.

    Attributes:
        number: Which one it is, of its seed.
        parts: The events.
        deltas: Where ε is asked for.
        shares: Where δ is asked for, as shares of the ε found.
        rate: A false-positive rate.
        many: How many vectorised questions.
    """

    number: int
    parts: tuple[Part, ...]
    deltas: tuple[float, ...]
    shares: tuple[float, ...]
    rate: float
    many: int

    def __str__(self) -> str:
        return f"acc.compose({', '.join(str(part) for part in self.parts)})"


def build(part: Part, written: Callable[[Any], Any] = lambda x: x) -> acc.Event | acc.Curve:
    """Returns the event of a part, or the curve, its numbers written in some other way."""
    if part.kind in OWN_CURVES:
        return OWN_CURVES[part.kind](part.parameters["mu"], part.count)
    given: dict[str, Any] = {
        name: build(value, written)
        if isinstance(value, Part)
        else written(value)
        if isinstance(value, float | int) and not isinstance(value, bool)
        else value
        for name, value in part.parameters.items()
    }
    if part.kind in AROUND:
        return AROUND[part.kind](**given) * part.count
    event: acc.Event = getattr(acc, part.kind)(**given, **{COUNTED.get(part.kind, "count"): written(part.count)})
    return event


def _profile_of(of: acc.Event) -> acc.Event:
    """Returns all that is kept of an event where its curve is handed on at some points."""
    curve = acc.compose(of)
    reach = min(curve.epsilon(delta=1e-9).upper, 40.0)
    points = np.linspace(0, reach, 40)
    deltas = np.array([curve.delta(epsilon=float(e)).upper for e in points])
    return acc.privacy_profile(dict(zip(points.tolist(), np.minimum.accumulate(deltas).tolist(), strict=True)))


def _parallel(one: Any, other: Any) -> acc.Curve:
    """Returns a curve over disjoint users; the parts have names in a job."""
    return acc.parallel(one, other)


AROUND: Final[dict[str, Callable[..., Any]]] = {
    "nested": lambda made: made,
    "group": acc.group,
    "user_level": acc.user_level,
    "profile": _profile_of,
    "parallel": _parallel,
    "plan": lambda one, other: acc.Plan.of(one, other).curve,
}


def _delta(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)) * (1 + 1e-12) + 1e-15


def _profile(mu: float, count: int) -> acc.Event:
    points = np.linspace(0, mu * mu / 2 + 7 * mu, 60).tolist()
    table = dict(zip(points, np.minimum.accumulate([_delta(mu, e) for e in points]).tolist(), strict=True))
    return acc.privacy_profile(table, count=count)


def _trade_off(mu: float, count: int) -> acc.Event:
    levels = ndtr(np.linspace(-8, 8, 80)).tolist()
    table = {a: float(ndtr(ndtri(1 - a) - mu)) * (1 - 1e-12) for a in levels if 0 < a < 1}
    return acc.trade_off({0: 1 - 1e-15, **table, 1: 0}, between="convex", count=count)


OWN_CURVES: Final[dict[str, Callable[[float, int], acc.Event]]] = {
    "privacy_profile": _profile,
    "trade_off": _trade_off,
    "renyi_curve": lambda mu, count: acc.renyi_curve(
        {float(a): float(a) * mu * mu / 2 * (1 + 1e-15) for a in np.geomspace(1.01, 300, 40)}, count=count
    ),
}


def _part(kind: str, rng: np.random.Generator, *, alone: bool) -> Part:
    count = 1 if rng.random() < 0.4 else int(logs(rng, 0.3, 3.5 if alone else 1.3))
    if kind in ("shuffled_bits", "shuffled", "shuffled_randomized_response", "tree", "nested"):
        count = min(count, 3 if kind == "nested" else 6)
    return Part(kind, KINDS[kind].draw(rng), count)


def jobs(number: int, seed: int, kinds: tuple[str, ...] | None = None, *, most: int = 10**9) -> Iterator[Job]:
    """Yields jobs: kinds alone, pairs, then triples in turn, each job by its own generator.

    Args:
        number: How many.
        seed: Of all of them.
        kinds: The kinds that take part; all if None.
        most: How often an event is released, at most.
    """
    names = tuple(sorted(kinds or KINDS))
    alone = [(name,) for name in names]
    pairs = list(itertools.combinations_with_replacement(names, 2))
    order = np.random.default_rng([seed, 1])
    order.shuffle(pairs)  # type: ignore[arg-type] # a list of pairs
    schedule = itertools.cycle([*alone, *pairs])
    for i in range(number):
        rng = np.random.default_rng([seed, 2, i])
        chosen = tuple(str(x) for x in rng.choice(names, 3)) if i % 10 == 9 else next(schedule)
        parts = tuple(_part(kind, rng, alone=len(chosen) == 1) for kind in chosen)
        parts = tuple(replace(part, count=min(part.count, most)) for part in parts)
        deltas = (logs(rng, -6, -1), logs(rng, -14, -0.1))
        shares = (
            0.0 if rng.random() < 0.1 else round(float(rng.uniform(0, 1)), 3),
            round(float(rng.uniform(0.5, 1.6)), 3),
        )
        yield Job(i, parts, deltas, shares, logs(rng, -8, -0.05), int(rng.choice([3, 65, 66, 200])))
