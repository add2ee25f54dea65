"""Private k-means (Blum, Dwork, McSherry & Nissim 2005): noisy counts and sums of the clusters in every iteration.

Points are in [−1, 1]^d. An added point is in one cluster and moves its count by 1 and its sum by at most d in ℓ₁: T
iterations with Laplace noise of scale (d + 1)T/ε are ε-DP, as Su et al. 2016 state for DPLloyd. If a point is replaced
by another, both contribute, and the same noise is half of the required noise. The centres of an
iteration are computed from earlier releases, and therefore public; here four in the plane, and five iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.declaration import L1, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Stated
from privcheck.errors import TrajectoryError
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import epsilon
from privcheck_algorithms.papers import GALLERY, NOT_AT_HAND

RELATION = Reading(
    name="relation",
    ways=("add-remove", "replace-one"),
    meaning="the difference between two neighbouring sets of points",
)
TITLE = "Private k-means: Lloyd's iterations from noisy counts and sums"
SOURCE = (
    "Blum, Dwork, McSherry & Nissim 2005, Practical Privacy: The SuLQ Framework; as described in Su, Cao, Li, "
    "Bertino & Jin 2016, Differentially Private K-Means Clustering (DPLloyd)"
)
ITERATIONS: Final = 5
DIMENSION: Final = 2
CENTRES: Final = np.array([[-0.5, -0.5], [-0.5, 0.5], [0.5, -0.5], [0.5, 0.5]])

Array = NDArray[np.float64]


def count_and_sum(rows: tuple[Array, ...]) -> Array:
    """(k, d + 1): number of points nearest to each centre, and their sum.

    Raises:
        TrajectoryError: A point is not in [−1, 1]^d.
    """
    points = np.asarray(rows, dtype=np.float64).reshape(-1, DIMENSION)
    if not (np.abs(points) <= 1).all():
        raise TrajectoryError("expected points in [−1, 1]²; scale them by bounds that are public")
    nearest = np.square(points[:, np.newaxis] - CENTRES).sum(axis=2).argmin(axis=1)
    table = np.zeros((len(CENTRES), DIMENSION + 1))
    np.add.at(table, nearest, np.column_stack([np.ones(len(points)), points]))
    return table


def _point(_: Mapping[str, Fraction], rng: np.random.Generator) -> Array:
    return rng.choice([-1.0, 1.0], DIMENSION) if rng.random() < 2 / 3 else rng.uniform(-1, 1, DIMENSION)


def k_means(readings: Mapping[str, str]) -> Declaration:
    """K-means with four clusters in the plane."""
    replaced = readings.get("relation") == "replace-one"
    moved = DIMENSION + 1
    truth = 2 * moved if replaced else moved
    clusters = Stated(
        "counts and sums of the clusters, points in [−1, 1]²",
        l1=truth, compute=count_and_sum, records=_point, shape=(*CENTRES.shape[:1], moved),
        latex=r"\textstyle\left(n_j,\ \sum_{x \in C_j} x\right)_j", preconditions=("points in [−1, 1]²",),
    )  # fmt: skip
    return Declaration(
        name="private-k-means",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="reconstructed", text=SOURCE, changed=NOT_AT_HAND),
        relation=ReplaceOne("user") if replaced else AddRemoveOne("user"),
        releases=tuple(
            Release(
                f"iteration {i}", clusters, Laplace(scale=moved * ITERATIONS / epsilon), stated=L1(moved),
                budget=PureDP(epsilon / ITERATIONS), source=SOURCE,
            )
            for i in range(1, ITERATIONS + 1)
        ),
        claim=Claim(PureDP(epsilon), source=SOURCE, composition="basic"),
        parameters=(Parameter(name="epsilon", default=1, kind="positive", meaning="ε of the claim, nats"),),
    )  # fmt: skip


K_MEANS = Algorithm(
    name="private-k-means", title=TITLE, source=SOURCE, paper=GALLERY, declare=k_means, readings=(RELATION,)
)
