"""Empirical risk minimisation with output perturbation (Chaudhuri, Monteleoni & Sarwate 2011, Algorithm 1).

Lemma minimiser-move: The minimiser of (1/n) Σ ℓ(y·wᵀx) + (λ/2)‖w‖², of a convex loss with |ℓ′| ≤ 1 and ‖x‖ ≤ 1, moves
by at most 2/(nλ) when one of n users is replaced. Source: Chaudhuri, Monteleoni & Sarwate 2011.

Noise of density ∝ exp(−‖v‖/b) with b = 2/(nλε) makes it ε-DP by the triangle inequality. The loss is the Huber loss,
under which the minimiser is Σ y·x/(nλ) if all margins are below ½: two opposite vectors attain 2/(nλ).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import Claim, Declaration, Parameter
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import Expr, d, epsilon, n, symbol
from privcheck_algorithms.papers import GALLERY

TITLE = "Private classification: a regularised minimiser plus noise along a random direction"
SOURCE = "Chaudhuri, Monteleoni & Sarwate 2011, Differentially Private Empirical Risk Minimization, Algorithm 1"
_HALF_WIDTH = 0.5  # of the Huber loss's quadratic part
_STEPS = 2000

Array = NDArray[np.float64]
Data = tuple[tuple[float, ...], ...]  # y·x of every user
regularisation = symbol("regularisation", "positive")


@functools.lru_cache(maxsize=64)
def minimiser(data: Data, regularisation: float) -> tuple[float, ...]:
    """Minimiser w by gradient descent on a strongly convex, smooth objective, to a gradient of about 1e-13."""
    signed = np.array(data)
    step, w = 1 / (regularisation + 1 / (2 * _HALF_WIDTH)), np.zeros(signed.shape[1])
    for _ in range(_STEPS):
        slope = -np.clip((1 + _HALF_WIDTH - signed @ w) / (2 * _HALF_WIDTH), 0, 1)  # ℓ′ of the Huber loss
        gradient = (slope[:, np.newaxis] * signed).mean(axis=0) + regularisation * w
        w -= step * gradient
        if np.abs(gradient).max() < 1e-13:
            break
    return tuple(w.tolist())


def _sampler(
    rng: np.random.Generator, data: Data, size: int, *, scale: float, regularisation: float, d: float, **_: float
) -> Array:
    direction = rng.standard_normal((size, int(d)))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(minimiser(data, regularisation) + rng.gamma(d, scale, (size, 1)) * direction)


def _log_density(outputs: Array, data: Data, scale: float, regularisation: float, **_: float) -> Array:
    """Log density up to its constant, which is the same for all data."""
    return np.asarray(-np.linalg.norm(np.asarray(outputs) - minimiser(data, regularisation), axis=1) / scale)


def _price(scale: Expr, regularisation: Expr, n: Expr, **_: Expr) -> PureDP:
    return PureDP(2 / (n * regularisation * scale))


def _neighbours(n: float, d: float, **_: float) -> list[tuple[Data, Data]]:
    """One user's vector and its opposite, with other users who cancel out or all agree."""
    one = np.zeros(int(d))
    one[0] = 1.0
    others = [np.roll(one, 1) * (-1) ** i for i in range(int(n) - 1)]
    agreeing = [np.roll(one, 1)] * (int(n) - 1)
    return [
        (_as_data([*crowd, one]), _as_data([*crowd, two]))
        for crowd in (others, agreeing)
        for two in (-one, np.roll(one, 1))
    ]


def _as_data(rows: list[Array]) -> Data:
    return tuple(tuple(row.tolist()) for row in rows)


def output_perturbation(_: Mapping[str, str]) -> Declaration:
    """Output perturbation of a Huber classifier of n users in d dimensions."""
    relation = ReplaceOne("user")
    return Declaration(
        name="erm-output-perturbation",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=relation,
        releases=(
            OwnMechanism(
                "classifier",
                arguments={
                    "scale": 2 / (n * regularisation * epsilon), "regularisation": regularisation, "n": n, "d": d,
                },
                spread="scale", sampler=_sampler, log_density=_log_density, price=_price, relation=relation,
                neighbours=_neighbours, words="noise of density ∝ exp(−‖v‖₂/b) on a regularised minimiser",
                output="a noisy classifier", source="Theorem 6 and Corollary 8",
            ),
        ),
        claim=Claim(PureDP(epsilon), source="Theorem 6"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
            Parameter(name="n", default=101, kind="count", meaning="users"),
            Parameter(name="regularisation", default="1/10", kind="positive", meaning="λ"),
            Parameter(name="d", default=2, kind="count", meaning="dimension of a classifier"),
        ),
    )  # fmt: skip


OUTPUT_PERTURBATION = Algorithm(
    name="erm-output-perturbation", title=TITLE, source=SOURCE, paper=GALLERY, declare=output_perturbation
)
