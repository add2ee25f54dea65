"""A tiny declaration with its data, for tests of the running parts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import TransitionCounts, VisitCounts
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import A, H, S, rho, sqrt


@pytest.fixture
def tiny() -> Declaration:
    return Declaration(
        name="tiny",
        title="two tables",
        source="a test",
        relation=ReplaceOne("trajectory"),
        releases=(
            Release("visits", VisitCounts(H, S, A), Gaussian(variance=2 * H / rho), stated=L2(sqrt(2 * H))),
            Release("transitions", TransitionCounts(H, S, A), Gaussian(variance=2 * H / rho)),
        ),
        claim=Claim(ZCDP(rho), source="a test"),
        parameters=(
            Parameter(name="H", default=2, kind="count", meaning="steps"),
            Parameter(name="S", default=3, kind="count", meaning="states"),
            Parameter(name="A", default=2, kind="count", meaning="actions"),
            Parameter(name="rho", default="1/2", kind="positive", meaning="budget, nats"),
        ),
    )


@pytest.fixture
def values(tiny: Declaration) -> dict[str, Fraction]:
    return tiny.values()


@pytest.fixture
def data() -> Trajectories:
    rng = np.random.default_rng(5)
    return Trajectories(
        states=rng.integers(0, 3, (7, 3)).astype(np.int32),
        actions=rng.integers(0, 2, (7, 2)).astype(np.int32),
        rewards=rng.random((7, 2)),
        num_states=3,
        num_actions=2,
    )
