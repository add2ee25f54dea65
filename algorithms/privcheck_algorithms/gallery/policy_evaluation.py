"""Private policy evaluation (Balle, Gomrokchi & Precup 2016), tabular: a state's value is its mean return.

A user's trajectory gives a return in [0, R_max/(1 − γ)] from every visited state, and none from others. One user can
move the mean of a rarely visited state far: DP-LSW scales Gaussian noise to the *smooth sensitivity* of
the data at hand (Nissim, Raskhodnikova & Smith 2007), 5√(2 ln(2/δ))/ε of it with β = ε/(4(d + ln(2/δ))). Its price is
stated here, and no available method handles vectors whose noise itself differs between neighbours: *undecided*.
The reading `noise=global` has Gaussian noise scaled to one user's largest effect, R_max/(1 − γ) in each of d states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.procedures import OwnMechanism
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Stated
from privcheck.errors import TrajectoryError
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import Expr, d, delta, epsilon, log, sqrt
from privcheck_algorithms.papers import GALLERY

NOISE = Reading(
    name="noise",
    ways=("smooth", "global"),
    meaning="what the noise is scaled to: smooth is the data's smooth sensitivity as in the paper, global the worst",
)
TITLE = "Private policy evaluation: the mean return from every state, with Gaussian noise"
SOURCE = "Balle, Gomrokchi & Precup 2016, Differentially Private Policy Evaluation, DP-LSW (Algorithm 1)"
_RELATION = ReplaceOne("user")

Array = NDArray[np.float64]


def means(rows: tuple[Array, ...]) -> Array:
    """(d,) the mean return from every state, 0 for unvisited ones.

    Args:
        rows: Returns of every user from each state, as a fraction of the largest, in [0, 1]; NaN for unvisited states.

    Raises:
        TrajectoryError: A return is out of range.
    """
    returns = np.asarray(rows, dtype=np.float64)
    if (returns < 0).any() or (returns > 1).any():
        raise TrajectoryError("expected returns between 0 and 1, in units of R_max/(1 − γ); NaN where no visit is")
    visits = (~np.isnan(returns)).sum(axis=0)
    return np.asarray(np.nansum(returns, axis=0) / np.maximum(visits, 1))


def smooth_sensitivity(rows: tuple[Array, ...], beta: float) -> float:
    """Smooth sensitivity max_k e^{−kβ} √Σ_s 1/max(n_s − k, 1)², n_s users having visited s."""
    visits = (~np.isnan(np.asarray(rows, dtype=np.float64))).sum(axis=0)
    k = np.arange(visits.max() + 1)[:, np.newaxis]
    local = np.sqrt((1 / np.square(np.maximum(visits - k, 1.0))).sum(axis=1))
    return float((np.exp(-beta * k[:, 0]) * local).max())


def _std(data: tuple[Array, ...], *, factor: float, d: float, delta: float) -> float:
    """Standard deviation: both of the theorem's numbers, 5√(2 ln(2/δ))/ε and β, follow from one ε."""
    rare = math.log(2 / delta)
    beta = 5 * math.sqrt(2 * rare) / factor / (4 * (d + rare))
    return factor * smooth_sensitivity(data, beta)


def _sampler(
    rng: np.random.Generator, data: tuple[Array, ...], size: int, *, factor: float, d: float, delta: float
) -> Array:
    std = _std(data, factor=factor, d=d, delta=delta)
    return np.asarray(means(data) + std * rng.standard_normal((size, int(d))))


def _log_density(outputs: Array, data: tuple[Array, ...], factor: float, d: float, delta: float) -> Array:
    std = _std(data, factor=factor, d=d, delta=delta)
    distance = np.square(np.asarray(outputs) - means(data)).sum(axis=1)
    return np.asarray(-distance / (2 * std**2) - d * np.log(std) - d / 2 * np.log(2 * np.pi))


def _price(factor: Expr, delta: Expr, **_: Expr) -> ApproxDP:
    return ApproxDP(5 * sqrt(2 * log(2 / delta)) / factor, delta)


def _neighbours(d: float, **_: float) -> list[tuple[tuple[Array, ...], tuple[Array, ...]]]:
    """Users of whom one gains all or nothing everywhere, or visits no state, beside 0, 1, 4 or 19 others."""
    low, high, absent = (np.full(int(d), value) for value in (0.0, 1.0, np.nan))
    known = []
    for others in (0, 1, 4, 19):
        crowd = (low,) * others
        known += [((*crowd, low), (*crowd, high)), ((*crowd, low), (*crowd, absent))]
    return known


def policy_evaluation(readings: Mapping[str, str]) -> Declaration:
    """DP-LSW on a table of d states, or its variant with noise of the global sensitivity."""
    everywhere = readings.get("noise") == "global"
    smooth = OwnMechanism(
        "values",
        arguments={"factor": 5 * sqrt(2 * log(2 / delta)) / epsilon, "d": d, "delta": delta},
        spread="factor", sampler=_sampler, log_density=_log_density, price=_price, relation=_RELATION,
        neighbours=_neighbours, words="Gaussian noise, its std so many times the data's smooth sensitivity",
        output="the noisy mean return from every state, in units of the largest",
        source="as described in Nissim, Raskhodnikova & Smith 2007, Smooth Sensitivity and Sampling in Private Data "
        "Analysis",
    )  # fmt: skip
    overall = Release(
        "values",
        Stated(
            "mean returns, in units of the largest", l1=d, l2=sqrt(d), linf=1, compute=means, records=_returns,
            shape=(d,), latex=r"\bar G(s)", preconditions=("returns between 0 and 1 of the largest",),
        ),
        Gaussian(variance=2 * log(5 / (4 * delta)) * d / epsilon**2),
        stated=L2(sqrt(d)),
        source="Dwork & Roth 2014, Theorem 3.22",
    )  # fmt: skip
    return Declaration(
        name="dp-policy-evaluation",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=_RELATION,
        releases=(overall if everywhere else smooth,),
        claim=Claim(ApproxDP(epsilon, delta), source=SOURCE),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),
            Parameter(name="delta", default="1e-5", kind="probability", meaning="δ of the claim"),
            Parameter(name="d", default=3, kind="count", meaning="states"),
        ),
    )


def _returns(values: Mapping[str, Fraction], rng: np.random.Generator) -> Array:
    """One user's returns: none, all or random ones of the visited states."""
    states = int(values["d"])
    corners = [np.full(states, value) for value in (0.0, 1.0, np.nan)]
    mixed = np.where(rng.random(states) < 1 / 2, rng.random(states), np.nan)
    return np.asarray([*corners, mixed][rng.integers(4)])


POLICY_EVALUATION = Algorithm(
    name="dp-policy-evaluation", title=TITLE, source=SOURCE, paper=GALLERY, declare=policy_evaluation, readings=(NOISE,)
)
