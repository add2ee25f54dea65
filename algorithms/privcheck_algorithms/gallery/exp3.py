"""Unmodified EXP3 (Auer, Cesa-Bianchi, Freund & Schapire 2002), whose only noise is the draw of arms.

Lemma exp3: T rounds are (T − 1)·ln(1 + K(1 − γ)/γ)-DP, neighbours being sequences of gains that differ in one round.
Source: Tossou & Dimitrakakis 2017 for T rounds. Proof: for all earlier draws and gains, an arm's probability is between
γ/K and 1 − γ + γ/K, so that on two neighbours it differs by a factor of at most K(1 − γ)/γ + 1. In the round of the
gain that differs, the arm is drawn before it, and both laws agree.

γ is given by its odds γ/(1 − γ), apart from the rate η of the weights exp(η·Ĝ), which is γ/K in the original and the
same number here at the defaults.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.errors import ParameterError
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import Expr, log, symbol
from privcheck_algorithms.papers import GALLERY, NOT_AT_HAND

TITLE = "EXP3 unchanged: arms drawn in proportion to exponential weights, with no noise added"
SOURCE = "as described in Tossou & Dimitrakakis 2017, Achieving Privacy in the Adversarial Multi-Armed Bandit"
_SEQUENCES = 2**16

Array = NDArray[np.float64]
odds, rate = symbol("odds", "positive"), symbol("rate", "positive")
rounds, arms = symbol("rounds", "count"), symbol("arms", "count")


def arm_law(scores: Array, odds: float) -> Array:
    """Law of the next arm, (K, sequences), from exponents of the weights and γ/(1 − γ)."""
    gamma = odds / (1 + odds)
    weights = np.exp(scores - scores.max(axis=0))
    law: Array = (1 - gamma) * weights / weights.sum(axis=0) + gamma / len(scores)
    return law


def _play(data: Array, at: Mapping[str, float], choose: Callable[[int, Array], NDArray[np.int64]], size: int) -> Array:
    """Log probability of the choices, (size,): in each round the law of the arm, a choice, its gain."""
    gains, columns = np.asarray(data), np.arange(size)
    # an arm's scores lie side by side: largest values and sums over few arms are taken for all sequences at once
    scores, logs = np.zeros((gains.shape[1], size)), np.zeros(size)
    for t, gain in enumerate(gains):
        law = arm_law(scores, at["odds"])
        chosen = choose(t, law)
        likely = law[chosen, columns]
        logs += np.log(likely)
        if gain.any():
            scores[chosen, columns] += at["rate"] * gain[chosen] / likely
    return logs


def _log_density(outputs: NDArray[np.int64], data: Array, **at: float) -> Array:
    drawn = np.asarray(outputs, dtype=np.int64)
    return _play(data, at, lambda t, _: drawn[:, t], len(drawn))


def _sampler(rng: np.random.Generator, data: Array, size: int, **at: float) -> NDArray[np.int64]:
    drawn = np.empty((size, len(data)), dtype=np.int64)

    def choose(t: int, law: Array) -> NDArray[np.int64]:
        drawn[:, t] = np.minimum((rng.random(size) > law.cumsum(axis=0)).sum(axis=0), len(law) - 1)
        return drawn[:, t]

    _play(data, at, choose, size)
    return drawn


def _neighbours(rounds: float, arms: float, **_: float) -> list[tuple[Array, Array]]:
    """Gains that differ in the first round and arm, with no gain or full gains later."""
    known = []
    for later in (0.0, 1.0):
        low = np.full((int(rounds), int(arms)), later)
        low[0] = 0
        high = low.copy()
        high[0, 0] = 1
        known.append((low, high))
    return known


def _outputs(rounds: float, arms: float, **_: float) -> NDArray[np.int64]:
    if arms**rounds > _SEQUENCES:
        message = f"exp3: at most {_SEQUENCES} sequences of arms are enumerated, got {arms:g}^{rounds:g}"
        raise ParameterError(f"{message}; take fewer rounds", name="rounds", given=rounds)
    return np.array(list(itertools.product(range(int(arms)), repeat=int(rounds))), dtype=np.int64)


def _price(odds: Expr, rounds: Expr, arms: Expr, **_: Expr) -> PureDP:
    return PureDP((rounds - 1) * log(1 + arms / odds))


def exp3(_: Mapping[str, str]) -> Declaration:
    """EXP3 with the linear claim."""
    relation = ReplaceOne("user")
    return Declaration(
        name="exp3",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="reconstructed", text=SOURCE, changed=NOT_AT_HAND),
        relation=relation,
        releases=(
            OwnMechanism(
                "arms", arguments={"odds": odds, "rate": rate, "rounds": rounds, "arms": arms}, spread="odds",
                sampler=_sampler, log_density=_log_density, price=_price, relation=relation,
                neighbours=_neighbours, outputs=_outputs,
                words="arms drawn by exponential weights of estimated gains, mixed with uniform ones",
                output="the arm of every round", source=SOURCE,
            ),
        ),
        claim=Claim(PureDP(rounds * log(1 + arms / odds)), source=SOURCE, composition="basic"),
        parameters=(
            Parameter(name="odds", default="1/9", kind="positive", meaning="γ/(1 − γ), γ the share of uniform draws"),
            Parameter(name="rate", default="1/20", kind="positive", meaning="η of the weights exp(η·Ĝ)"),
            Parameter(name="rounds", default=8, kind="count", meaning="T, one user's gains a round", least=2),
            Parameter(name="arms", default=2, kind="count", meaning="K, number of arms", least=2),
        ),
    )  # fmt: skip


EXP3 = Algorithm(name="exp3", title=TITLE, source=SOURCE, paper=GALLERY, declare=exp3)
