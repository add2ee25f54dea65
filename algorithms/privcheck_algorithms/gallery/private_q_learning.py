"""Private Q-learning with functional noise (Wang & Hegde 2019): Gaussian-process noise on the Q function.

Neighbours are reward functions with ‖r − r′‖∞ ≤ 1 on the states [0, 1]. Every update of the Q function gets a draw of a
Gaussian process of covariance σ²·exp(−β|s − t|). It hides a change of norm at most C in the kernel's Hilbert space, as
Gaussian noise of std σ hides a number's change by C (Hall, Rinaldo & Wasserman 2013). The paper bounds the
change of an update by C = (a² + a)L², a = 4α(k + 1)/B = 1/β, L the Lipschitz constant of the approximator, unless the
noise leaves a band of width k, and claims (ε, δ + J·exp(−(2k − 8.68√β·σ)²/2))-DP for σ = √(2(T/B) ln(e + ε/δ))·C/ε.

The composition of T/B Gaussian mechanisms of sensitivity C is priced exactly. The bound C on one reward function's
effect on a neural network's update is the paper's statement, neither proved nor tested here, so that the verdict is
*undecided*, with the figure that follows if C is right. Audits run neighbours whose updates are exactly C apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ApproxDP, GaussianDP
from privcheck.terms.symbols import Expr, delta, epsilon, exp, log, maximum, sqrt, symbol
from privcheck_algorithms.papers import GALLERY

TITLE = "Private Q-learning: Gaussian-process noise on the Q function at every update"
SOURCE = "Wang & Hegde 2019, Privacy-Preserving Q-Learning with Functional Noise in Continuous Spaces, Theorem 5"
STATES: Final = np.array([0.0, 0.5, 1.0])  # at which the Q function is looked at

Array = NDArray[np.float64]
alpha, k, L = symbol("alpha", "positive"), symbol("k", "positive"), symbol("L", "positive")
updates, batch, J = symbol("updates", "count"), symbol("batch", "count"), symbol("J", "count")


def covariance(beta: float) -> Array:
    """Kernel exp(−β|s − t|) at the states."""
    return np.asarray(np.exp(-beta * np.abs(STATES[:, np.newaxis] - STATES)))


def _sampler(
    rng: np.random.Generator, data: Array, size: int, *, sigma: float, beta: float, updates: float, **_: float
) -> Array:
    """Q function at the states after all updates, with accumulated noise."""
    root = np.linalg.cholesky(covariance(beta)) * sigma * np.sqrt(updates)
    return np.asarray(updates * np.asarray(data) + rng.standard_normal((size, STATES.size)) @ root.T)


def _log_density(outputs: Array, data: Array, sigma: float, beta: float, updates: float, **_: float) -> Array:
    """Log density up to its constant, which is the same for all data."""
    root = np.linalg.cholesky(covariance(beta)) * sigma * np.sqrt(updates)
    whitened = np.linalg.solve(root, (np.asarray(outputs) - updates * np.asarray(data)).T)
    return np.asarray(-np.square(whitened).sum(axis=0) / 2)


def _price(sigma: Expr, updates: Expr, moved: Expr, **_: Expr) -> GaussianDP:
    return GaussianDP(sqrt(updates) * moved / sigma)


def _neighbours(moved: float, beta: float, **_: float) -> list[tuple[Array, Array]]:
    """Updates that differ by C·exp(−β|s − ·|), of norm C, at the first state and at the second."""
    return [(np.zeros(STATES.size), moved * covariance(beta)[row]) for row in (0, 1)]


def private_q_learning(_: Mapping[str, str]) -> Declaration:
    """Private Q-learning with T/B updates."""
    step = 4 * alpha * (k + 1) / batch
    moved = (step**2 + step) * L**2
    sigma = sqrt(2 * updates * log(exp(1) + epsilon / delta)) * moved / epsilon
    leaves = J * exp(-(maximum(0, 2 * k - "8.68" * sigma / sqrt(step)) ** 2) / 2)  # claimed for 2k > 8.68√β·σ only
    relation = ReplaceOne("user")
    return Declaration(
        name="private-q-learning",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=relation,
        releases=(
            OwnMechanism(
                "Q functions",
                arguments={"sigma": sigma, "beta": 1 / step, "updates": updates, "moved": moved},
                spread="sigma", sampler=_sampler, log_density=_log_density, price=_price, relation=relation,
                neighbours=_neighbours, words="a draw of a Gaussian process on every update of the Q function",
                output="the Q function", source="Theorem 5, for the stated change C of one update",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta + leaves), source="Theorem 5"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
            Parameter(name="delta", default="1e-5", kind="probability", meaning="δ of the claim, without the band's"),
            Parameter(name="updates", default=100, kind="count", meaning="T/B, iterations over batch size"),
            Parameter(name="batch", default=64, kind="count", meaning="B, transitions in a batch", least=32),
            Parameter(name="alpha", default="1/1000", kind="positive", meaning="learning rate"),
            Parameter(name="k", default=10, kind="positive", meaning="half the width of the band of the noise"),
            Parameter(name="L", default=1, kind="positive", meaning="Lipschitz constant of the approximator"),
            Parameter(name="J", default=1, kind="count", meaning="reset factor of the noise"),
        ),
    )  # fmt: skip


PRIVATE_Q_LEARNING = Algorithm(
    name="private-q-learning", title=TITLE, source=SOURCE, paper=GALLERY, declare=private_q_learning
)
