"""Specimens whose leak is in what surrounds the numbers, and rarely certain: types, lengths, order, texts, exceptions.

Each has a mended twin. Noise on integers is two-sided geometric, P(k) ∝ e^(−ε·|k|), which is exactly ε-DP.
"""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mutants.specimen import OneRun, Run, Specimen, twins
from privcheck.terms.guarantees import PureDP

_ONE = PureDP(1)
_FAIR = math.e / (1 + math.e)  # truth of randomised response at ε = 1
_NINE = math.log(9)  # loss at truth .9


def geometric(epsilon: float, rng: np.random.Generator) -> int:
    """Returns two-sided geometric noise."""
    share = -math.expm1(-epsilon)
    return int(rng.geometric(share) - rng.geometric(share))


def response(given: int, truth: float, rng: np.random.Generator) -> int:
    """Returns a bit by randomised response."""
    return given if rng.random() < truth else 1 - given


class Level(enum.Enum):
    """What is said of a noisy count."""

    LOW = "low"
    HIGH = "high"


@dataclass
class Estimate:
    """A published object, to which a cache may have been attached."""

    noisy: float


def retried(*, gives_up: bool) -> OneRun:
    """Returns a noisy count that is positive: drawn up to five times, or clamped."""

    def run(given: float, rng: np.random.Generator) -> float:
        for _ in range(5 if gives_up else 1):
            noisy = given + rng.laplace(0, 1)
            if noisy > 0:
                return float(noisy)
        if gives_up:
            raise RuntimeError("no positive answer")
        return 0.0

    return run


def leaderboard(*, exact: bool) -> OneRun:
    """Returns noisy counts by name, the largest exact, or noisy, one first."""

    def run(given: dict[str, float], rng: np.random.Generator) -> dict[str, float]:
        noisy = {name: count + rng.laplace(0, 2) for name, count in given.items()}
        by = given if exact else noisy
        return {name: noisy[name] for name in sorted(noisy, key=lambda name: (-by[name], name))}

    return run


def labelled(*, exact: bool) -> OneRun:
    """Returns a noisy count with a level: that of the exact one nine times in ten, or that of the noisy one."""

    def run(given: int, rng: np.random.Generator) -> tuple[float, Level]:
        noisy = given + rng.laplace(0, 1)
        high = response(given, 0.9, rng) if exact else noisy > 0.5
        return float(noisy), Level.HIGH if high else Level.LOW

    return run


def as_json(truth: float) -> OneRun:
    """Returns a response, which is random, as JSON."""
    return lambda given, rng: json.dumps({"version": 2, "answer": bool(response(given, truth, rng))})


def refusal(truth: float) -> OneRun:
    """Raises one of two exceptions, by randomised response."""

    def run(given: int, rng: np.random.Generator) -> None:
        raise (KeyError("user") if response(given, truth, rng) else LookupError("user"))

    return run


def synthetic(*, exact: bool) -> OneRun:
    """Returns synthetic records: a Poisson number about the exact one, or a noisy one."""

    def run(given: int, rng: np.random.Generator) -> list[float]:
        number = rng.poisson(given) if exact else max(0, given + geometric(0.25, rng))
        return [float(x) for x in rng.normal(size=number)]

    return run


def packed(epsilon: float) -> OneRun:
    """Returns a noisy count as two bytes."""
    return lambda given, rng: (given + geometric(epsilon, rng)).to_bytes(2, "big", signed=True)


def last_visit(epsilon: float) -> OneRun:
    """Returns a noisy day."""
    return lambda given, rng: dt.date(2020, 1, 1) + dt.timedelta(days=given + geometric(epsilon, rng))


def priced(scale: float) -> OneRun:
    """Returns a noisy amount in cents, as a decimal."""
    return lambda given, rng: Decimal(f"{given + rng.laplace(0, scale):.2f}")


def share_of(*, exact: bool) -> OneRun:
    """Returns a noisy share as a fraction of the exact number of records, or of a hundred."""
    return lambda given, rng: Fraction(50 + geometric(1, rng), given if exact else 100)


def session(*, bounded: bool) -> OneRun:
    """Returns events of a session that ends with probability .2 or .4 each time, or after at most four, .25 or .3."""

    def run(given: int, rng: np.random.Generator) -> Iterator[str]:
        chance = (0.25, 0.3)[given] if bounded else (0.2, 0.4)[given]
        for _ in range(4 if bounded else 200):
            yield "event"
            if rng.random() < chance:
                return

    return run


def coefficient(*, shared: bool) -> OneRun:
    """Returns a noisy complex number, with one noise for both parts, or two."""

    def run(given: float, rng: np.random.Generator) -> complex:
        first, second = rng.laplace(0, 1, 2)
        return complex(given + first, first if shared else second)

    return run


def table(*, stores_zeros: bool) -> OneRun:
    """Returns a sparse row of noisy counts above 2; those below are zeros that are stored where anybody was."""

    def run(given: Sequence[int], rng: np.random.Generator) -> sp.csr_array:
        noisy = np.asarray(given) + rng.laplace(0, 1, len(given))
        shown = np.where(noisy > 2, noisy, 0.0)
        stored = np.flatnonzero((np.asarray(given) > 0) if stores_zeros else shown)
        places = (np.zeros(stored.size, dtype=np.int64), stored)
        return sp.csr_array((shown[stored], places), shape=(1, len(given)))

    return run


def narrow_type(*, by_data: bool) -> OneRun:
    """Returns a noisy count in the smallest type that holds the exact one, or in 64 bits."""

    def run(given: int, rng: np.random.Generator) -> NDArray[Any]:
        kind = np.min_scalar_type(given) if by_data else np.dtype(np.int64)
        return np.array([np.clip(given + geometric(1, rng), 0, 255)]).astype(kind)

    return run


def participants(*, absent: float, present: float) -> OneRun:
    """Returns pseudonyms in a random order; one user's is there with a probability that tells."""

    def run(given: int, rng: np.random.Generator) -> list[str]:
        names = [name for name in ("fox", "owl", "elk") if rng.random() < 0.5]
        if rng.random() < (present if given else absent):
            names.append("bee")
        return [names[i] for i in rng.permutation(len(names))]

    return run


def turns(truth: float) -> OneRun:
    """Returns seven random turns as a text, of which only the parity tells."""

    def run(given: int, rng: np.random.Generator) -> str:
        left = rng.integers(0, 2, 7)
        left[-1] = (response(given, truth, rng) - left[:-1].sum()) % 2
        return "".join("RL"[turn] for turn in left)

    return run


def boolean(truth: float) -> OneRun:
    """Returns True or 1, by randomised response."""
    return lambda given, rng: True if response(given, truth, rng) else 1


def inverse(epsilon: float) -> OneRun:
    """Returns the inverse of a noisy count, which may be zero."""
    return lambda given, rng: 1 / (given + geometric(epsilon, rng))


def below(*, exact: bool) -> OneRun:
    """Returns a noisy count; raises below −2, with the exact count in the message, or without."""

    def run(given: int, rng: np.random.Generator) -> float:
        noisy = given + rng.laplace(0, 1)
        if noisy < -2:
            raise ValueError(f"count {given} is too small" if exact else "the count is too small")
        return float(noisy)

    return run


def in_bounds(*, redraws: bool) -> OneRun:
    """Returns a noisy count in [0, 3] with how often it was drawn, or clamped."""

    def run(given: float, rng: np.random.Generator) -> dict[str, Any]:
        noisy, draws = given + rng.laplace(0, 1), 1
        while redraws and not 0 <= noisy <= 3:
            noisy, draws = given + rng.laplace(0, 1), draws + 1
        return {"value": float(np.clip(noisy, 0, 3)), "meta": {"draws": draws}}

    return run


def cached(*, keeps: bool) -> OneRun:
    """Returns an object with a noisy value, and the exact one in a private field."""

    def run(given: float, rng: np.random.Generator) -> Any:
        made = Estimate(noisy=float(given + rng.laplace(0, 1)))
        return {"estimate": made, "debug": [vars(made), given]} if keeps else {"estimate": made, "debug": [vars(made)]}

    return run


def two_counts(scale: float) -> OneRun:
    """Returns two noisy counts, both of which one user moves, by name."""
    return lambda given, rng: {"visits": given + rng.laplace(0, scale), "users": given + rng.laplace(0, scale)}


def codes(epsilon: float) -> OneRun:
    """Returns a set with a noisy code and three random ones."""
    return lambda given, rng: {given + geometric(epsilon, rng), *(100 + rng.integers(0, 5, 3)).tolist()}


def interval(*, exact: bool) -> OneRun:
    """Returns a noisy mean with a confidence interval of the data's spread, or of the largest one."""

    def run(given: Sequence[float], rng: np.random.Generator) -> tuple[float, tuple[float, float]]:
        noisy = float(np.mean(given) + rng.laplace(0, 1 / len(given)))
        width = float(np.std(given)) if exact else 0.5
        return noisy, (round(noisy - width, 6), round(noisy + width, 6))

    return run


def rarely_none(chances: tuple[float, float]) -> Run:
    """Returns noise, and None with a small probability that depends on the data: many runs a call, as a list."""

    def run(given: int, runs: int, rng: np.random.Generator) -> list[float | None]:
        none = rng.random(runs) < chances[given]
        return [None if nothing else float(x) for nothing, x in zip(none, rng.normal(size=runs), strict=True)]

    return run


def token(truth: float) -> OneRun:
    """Returns an integer of 90 bits of which only the last tells."""
    return lambda given, rng: (int(rng.integers(1 << 62)) << 28) + (int(rng.integers(1 << 26)) << 1) + response(
        given, truth, rng
    )  # fmt: skip


def _pair(
    name: str, broken: Any, mended: Any, losses: tuple[float, float], why: str, *pairs: Any, most: bool = False
) -> tuple[Specimen, Specimen]:
    kinds = ("exact", "at most") if most else ("exact", "exact")
    made = pairs or ((0, 1),)
    return twins(name, _ONE, *made, broken=broken, mended=mended, losses=losses, why=why, kinds=kinds)  # type: ignore[arg-type]


RELEASED: tuple[Specimen, ...] = (
    *_pair("exception after five draws", retried(gives_up=True), retried(gives_up=False), (5.0, 1.0),
           "no positive draw in five has probability ½⁵, and (e⁻¹/2)⁵"),
    *_pair("order of exact counts", leaderboard(exact=True), leaderboard(exact=False), (math.inf, 1.0),
           "one order on each", ({"a": 2, "b": 1}, {"a": 1, "b": 2})),
    *_pair("level of the exact count", labelled(exact=True), labelled(exact=False), (1 + _NINE, 1.0),
           "1 + ln 9: number and level are independent"),
    *_pair("JSON at twice the budget", as_json(math.e**2 / (1 + math.e**2)), as_json(_FAIR), (2.0, 1.0), "its odds"),
    *_pair("exception by randomised response", refusal(0.9), refusal(_FAIR), (_NINE, 1.0), "its odds"),
    *_pair("Poisson number of records", synthetic(exact=True), synthetic(exact=False), (math.inf, 1.0),
           "(5/9)ᵏ e⁴ is unbounded; mended, geometric noise at ¼, as the number moves by 4", (5, 9), most=True),
    *_pair("count in bytes at twice the budget", packed(2), packed(1), (2.0, 1.0), "geometric noise"),
    *_pair("day at twice the budget", last_visit(2), last_visit(1), (2.0, 1.0), "geometric noise"),
    *_pair("decimal at half scale", priced(0.5), priced(1), (2.0, 1.0), "Laplace noise"),
    *_pair("fraction of an exact number", share_of(exact=True), share_of(exact=False), (math.inf, 0.0),
           "101 is prime: no fraction of it is one of 100 but whole ones", (100, 101)),
    *_pair("length of a session", session(bounded=False), session(bounded=True), (199 * math.log(8 / 6), 0.3),
           "(.8/.6)ᵏ; mended, ln(.3/.25), and 3 ln(.75/.7)", most=True),
    *_pair("noise shared by both parts", coefficient(shared=True), coefficient(shared=False), (math.inf, 1.0),
           "their difference is exact"),
    *_pair("zeros that are stored", table(stores_zeros=True), table(stores_zeros=False), (math.inf, 1.0),
           "stored, or not", ([3, 0, 2], [3, 1, 2]), most=True),
    *_pair("type by the size of the count", narrow_type(by_data=True), narrow_type(by_data=False), (math.inf, 1.0),
           "8 bits, or 16; mended, geometric noise", (255, 256), most=True),
    *_pair("pseudonym of a participant", participants(absent=0.0, present=0.9),
           participants(absent=1 - _FAIR, present=_FAIR), (math.inf, 1.0), "never there, or mostly"),
    *_pair("parity of a text", turns(0.9), turns(_FAIR), (_NINE, 1.0), "odds of the parity"),
    *_pair("True or 1", boolean(0.8), boolean(_FAIR), (math.log(4), 1.0), "its odds"),
    *_pair("inverse of a count", inverse(2), inverse(1), (2.0, 1.0), "geometric noise; zero raises"),
    *_pair("exact count in a rare message", below(exact=True), below(exact=False), (math.inf, 1.0),
           "the message tells, once in 15 or 40 runs"),
    *_pair("number of draws", in_bounds(redraws=True), in_bounds(redraws=False), (math.inf, 1.0),
           "(.525/.252)ᵏ is unbounded"),
    *_pair("exact value for debugging", cached(keeps=True), cached(keeps=False), (math.inf, 1.0), "it is told"),
    *_pair("two counts, noise for one", two_counts(1), two_counts(2), (2.0, 1.0), "both are moved"),
    *_pair("code in a set", codes(2), codes(1), (2.0, 1.0), "geometric noise"),
    *_pair("interval of the exact spread", interval(exact=True), interval(exact=False), (math.inf, 0.5),
           "one width on each; mended, the mean of three moves by 1/6", ([0.0, 1.0, 1.0], [0.0, 1.0, 0.5])),
    *_pair("None once in a hundred", rarely_none((0.01, 0.06)), rarely_none((0.01, 0.02)), (math.log(6), math.log(2)),
           "its odds"),
    *_pair("last bit of 90", token(0.9), token(_FAIR), (_NINE, 1.0), "its odds"),
)  # fmt: skip
