"""AdaSSP (Wang 2018, Algorithm 2): linear regression from a noisy λ_min, a noisy XᵀX and a noisy Xᵀy.

Each of the three is given (ε/3, δ/3) by Gaussian noise of std Δ·√ln(6/δ)/(ε/3): ln(2/δ′) stands under the root, where
the classical bound has 2·ln(1.25/δ′), and none of them is (ε/3, δ/3)-DP. Together they are still private unless ε is
large, since Gaussian noise composes better than budgets add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

import numpy as np

from privcheck.data.trajectories import Regressors
from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import AddRemoveOne, ReplaceOne
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices, SmallestEigenvalue
from privcheck.runtime.registry import Algorithm, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import d, delta, epsilon, expression, log, symbol
from privcheck_algorithms.papers import GALLERY

RELATION = Reading(
    name="relation", ways=("add-remove", "replace-one"), meaning="the difference between two neighbouring sets of rows"
)
TITLE = "AdaSSP: linear regression from noisy sufficient statistics"
SOURCE = "Wang 2018, Revisiting differentially private linear regression, Algorithm 2"


def adassp(readings: Mapping[str, str]) -> Declaration:
    """AdaSSP with its claim of (ε, δ)-DP and a third of both for each of its three releases."""
    replaced = readings.get("relation") == "replace-one"
    X, Y = symbol("X", "positive"), symbol("Y", "positive")
    x, y = Column("x", X, "x"), Column("y", Y, "y")
    per_unit = log(6 / delta) / (epsilon / 3) ** 2  # of variance, for a sensitivity of 1
    third = ApproxDP(epsilon / 3, delta / 3)
    return Declaration(
        name="adassp",
        title=TITLE,
        source=SOURCE,
        origin=Origin(kind="printed", text=SOURCE),
        relation=ReplaceOne("user") if replaced else AddRemoveOne("user"),
        releases=(
            Release(
                "eigenvalue",
                SmallestEigenvalue(dimension=d, vector=x),
                Gaussian(variance=per_unit * X**4),
                stated=L2(X**2),
                source="Algorithm 2, step 1",
                budget=third,
            ),
            Release(
                "gram",
                GramMatrices(name="XᵀX", steps=expression(1), dimension=d, vector=x),
                SymmetricGaussian(variance=per_unit * X**4, kind="upper"),
                stated=L2(X**2),
                source="Algorithm 2, step 3",
                budget=third,
            ),
            Release(
                "moments",
                FeatureSums(name="Xᵀy", steps=expression(1), dimension=d, vector=x, target=y),
                Gaussian(variance=per_unit * X**2 * Y**2),
                stated=L2(X * Y),
                source="Algorithm 2, step 4",
                budget=third,
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source="Algorithm 2", composition="basic"),
        parameters=(
            Parameter(name="epsilon", default=1, kind="positive", meaning="ε in nats"),
            Parameter(name="delta", default="1/1000000", kind="probability", meaning="δ"),
            Parameter(name="d", default=5, kind="count", meaning="features"),
            Parameter(name="X", default=1, kind="positive", meaning="largest norm of a row's features"),
            Parameter(name="Y", default=1, kind="positive", meaning="largest response, in [0, Y]"),
        ),
        candidates=replaced_rows if replaced else lone_rows,
    )


def lone_rows(values: Mapping[str, Fraction]) -> Iterator[tuple[Regressors | None, Regressors | None]]:
    """Yield a row at both bounds along the first axis, present and absent: it moves all three releases furthest."""
    row = _row(values, axis=0, sign=1.0)
    yield row, None
    yield None, row


def replaced_rows(values: Mapping[str, Fraction]) -> Iterator[tuple[Regressors, Regressors]]:
    """Yield rows along two axes, which move XᵀX and λ_min furthest, and opposite ones, which move Xᵀy furthest."""
    first, opposite = _row(values, axis=0, sign=1.0), _row(values, axis=0, sign=-1.0)
    yield first, opposite
    if values["d"] > 1:
        other = _row(values, axis=1, sign=1.0)
        yield first, other
        yield other, first


def _row(values: Mapping[str, Fraction], *, axis: int, sign: float) -> Regressors:
    vector = np.zeros((1, 1, int(values["d"])))
    vector[0, 0, axis] = sign * float(values["X"])
    return Regressors(vectors={"x": vector}, targets={"y": np.array([[float(values["Y"])]])}, weights={})


ADASSP = Algorithm(name="adassp", title=TITLE, source=SOURCE, paper=GALLERY, declare=adassp, readings=(RELATION,))
