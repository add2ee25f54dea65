"""Specimens that randomise one user's value: local protocols with a wrong probability, order, seed or budget.

Further cases of the literature; `mutants.laws` has their exact laws on the pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mutants.counting import unary
from mutants.specimen import Array, Run, Specimen
from privcheck.terms.guarantees import PureDP

_ONE = PureDP(1)
_E = math.e


def bloom(keep: float, *, second: tuple[float, float] = (0.0, 1.0)) -> Run:
    """Returns a user's Bloom filter of 8 bits, two of them set: each bit is kept with probability `keep`, else fair.

    A second step sends 1 with a probability that depends on the bit so far, (of a 0, of a 1).
    """
    filters = np.zeros((2, 8))
    filters[[0, 0, 1, 1], [1, 4, 2, 6]] = 1

    def run(given: int, runs: int, rng: np.random.Generator) -> Array:
        fair = rng.integers(0, 2, (runs, 8))
        once = np.where(rng.random((runs, 8)) < keep, filters[given], fair)
        return (rng.random((runs, 8)) < np.where(once > 0, second[1], second[0])) * 1.0

    return run


def subset(share: float, *, first: bool = False) -> Run:
    """Returns two of eight values, the user's with probability `share`; ascending, or the user's first."""

    def run(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
        others = np.delete(np.arange(8), given)
        picks = others[np.argsort(rng.random((runs, 7)), axis=1)[:, :2]]
        picks[rng.random(runs) < share, 0] = given
        return picks if first else np.sort(picks, axis=1)

    return run


def hashed_apart(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns a seed of 6 bits under which the user's value is not hashed to 0, and the randomised hash, 0 to 3."""
    table = np.random.default_rng(11).integers(0, 4, (2, 64))[given]
    seed = rng.choice(np.flatnonzero(table), runs)
    answer = np.where(rng.random(runs) < _E / (_E + 3), table[seed], (table[seed] + rng.integers(1, 4, runs)) % 4)
    return np.stack([seed, answer], axis=1)


def hadamard(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns a row of the Hadamard matrix of order 8 and the sign of the user's value in it, randomised."""
    row = rng.integers(0, 8, runs)
    sign = 1 - 2 * (np.bitwise_count(row & given).astype(np.int64) % 2)
    return np.stack([row, np.where(rng.random(runs) < _E / (_E + 1), sign, -sign)], axis=1)


def piecewise(inside: float) -> Run:
    """Returns a number near the user's, in [−1, 1], with probability `inside`, any other in [−C, C] else."""
    most = (math.exp(0.5) + 1) / (math.exp(0.5) - 1)

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        low = (most + 1) / 2 * given - (most - 1) / 2
        rest = rng.uniform(-most, 1, runs)  # an interval of length C − 1 is cut out of [−C, C]
        rest += (rest > low) * (most - 1)
        return np.where(rng.random(runs) < inside, rng.uniform(low, low + most - 1, runs), rest)

    return run


def square_wave(*, everywhere: bool) -> Run:
    """Returns a number within ¼ of the user's, in [0, 1], or another in [−¼, 1¼]; any of these where `everywhere`."""
    inside = 0.5 * _E / (0.5 * _E + 1)

    def run(given: float, runs: int, rng: np.random.Generator) -> Array:
        rest = rng.uniform(-0.25, 1.25 if everywhere else 0.75, runs)
        if not everywhere:
            rest += (rest > given - 0.25) * 0.5
        return np.where(rng.random(runs) < inside, given + rng.uniform(-0.25, 0.25, runs), rest)

    return run


def key_and_value(given: tuple[int, float], runs: int, rng: np.random.Generator) -> Array:
    """Returns whether the user has a key, and its value as ±1, each randomised at ε = 1; (0, 0) for no key."""
    present, value = given
    ideal = value if present else 0.0  # who has no key draws a fair one
    plus = np.where(rng.random(runs) < (1 + ideal) / 2, 1.0, -1.0)
    plus = np.where(rng.random(runs) < _E / (_E + 1), plus, -plus)
    sent = rng.random(runs) < (_E if present else 1) / (_E + 1)
    return np.stack([sent * 1.0, np.where(sent, plus, 0.0)], axis=1)


def lies_by_modulus(given: int, runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Returns one of six values: the user's, or another by a number of four bits modulo five."""
    other = (given + 1 + rng.integers(0, 16, runs) % 5) % 6
    return np.where(rng.random(runs) < _E / (_E + 5), given, other)


_RAPPOR = 11 / 16 * 7 / 16 / (9 / 16 * 5 / 16)  # odds of a bit sent where it is set, over those where it is not

LOCAL: tuple[Specimen, ...] = (
    Specimen(
        name="optimal unary code, both probabilities swapped", run=unary(1 / (_E + 1), 0.5, 6), claim=_ONE,
        pairs=((1, 4),), broken=False, loss=1, why="useless, and as private: the odds are each other's inverse",
        source="Wang, Blocki, Li & Jha 2017",
    ),
    Specimen(
        name="RAPPOR, both steps", run=bloom(0.5, second=(0.5, 0.75)), claim=PureDP("1.0745"), pairs=((0, 1),),
        broken=False, loss=2 * math.log(_RAPPOR), why="p* = 9/16, q* = 11/16, two hash functions",
        source="Erlingsson, Pihur & Korolova 2014, Theorem 2",
    ),
    Specimen(
        name="RAPPOR, two hash functions paid as one", run=bloom(0.5), claim=PureDP("2.1973"), pairs=((0, 1),),
        broken=True, loss=4 * math.log(3), why="four bits differ, each by odds of 3",
        source="Erlingsson, Pihur & Korolova 2014, Theorem 1",
    ),
    Specimen(
        name="subset selection", run=subset(2 * _E / (2 * _E + 6)), claim=_ONE, pairs=((2, 5),), broken=False, loss=1,
        why="odds of e between subsets with and without the value", source="Ye & Barg 2018",
    ),
    Specimen(
        name="subset selection, share of two answers", run=subset(_E / (_E + 1)), claim=_ONE, pairs=((2, 5),),
        broken=True, loss=1 + math.log(3), why="e/(e + 1) forgets that three times as many subsets are without it",
        source="Ye & Barg 2018",
    ),
    Specimen(
        name="subset selection, true value first", run=subset(2 * _E / (2 * _E + 6), first=True), claim=_ONE,
        pairs=((2, 5),), broken=True, loss=math.inf, why="the other user's value second is impossible",
        source="multi-freq-ldpy 0.2.5, SS_Client",
    ),
    Specimen(
        name="hash seeds without collisions", run=hashed_apart, claim=_ONE, pairs=((0, 1),), broken=True,
        loss=math.inf, why="seeds under which one value is hashed to 0 are the other's alone",
        source="Wang, Blocki, Li & Jha 2017 (the seed must not depend on the value)",
    ),
    Specimen(
        name="Hadamard response", run=hadamard, claim=_ONE, pairs=((3, 5),), broken=False, loss=1,
        why="one randomised sign; the row is drawn without the value", source="Acharya, Sun & Zhang 2019",
    ),
    Specimen(
        name="piecewise mechanism", run=piecewise(math.exp(0.5) / (math.exp(0.5) + 1)), claim=_ONE,
        pairs=((-1.0, 1.0),), broken=False, loss=1, why="densities e^½/2·(e^½ − 1)/(e^½ + 1) and that over e",
        source="Wang et al. 2019",
    ),
    Specimen(
        name="piecewise mechanism, ε for half of it", run=piecewise(_E / (_E + 1)), claim=_ONE, pairs=((-1.0, 1.0),),
        broken=True, loss=1.5, why="inside with odds of e where e^½ is due", source="Wang et al. 2019",
    ),
    Specimen(
        name="square wave", run=square_wave(everywhere=False), claim=_ONE, pairs=((0.0, 1.0),), broken=False, loss=1,
        why="densities e/(e/2 + 1) and 1/(e/2 + 1)", source="Li et al. 2020",
    ),
    Specimen(
        name="square wave, the rest everywhere", run=square_wave(everywhere=True), claim=_ONE, pairs=((0.0, 1.0),),
        broken=True, loss=math.log1p(1.5 * _E), why="the rest is spread over 3/2, and falls inside too",
        source="Li et al. 2020",
    ),
    Specimen(
        name="key and value, one of them paid", run=key_and_value, claim=_ONE, pairs=(((1, 1.0), (0, 0.0)),),
        broken=True, loss=1 + math.log(2 * _E / (_E + 1)), why="a key with its value, against a fair one without it",
        source="Ye et al. 2019 (PrivKV), Gu et al. 2020 (PCKV)",
    ),
    Specimen(
        name="lies by a modulus", run=lies_by_modulus, claim=_ONE, pairs=((0, 3),), broken=True,
        loss=1 + math.log(16 / 15), why="four of five lies have 3 of 16 words, one has 4",
        source="Lemire 2019 (bias of the modulus)",
    ),
)  # fmt: skip
