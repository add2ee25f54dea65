"""A linear agent of one's own in one file: ridge regression on two noisy statistics; and one that reads raw data.

Only the step from releases to a policy is written. It stands on the ruler of `privcheck_algorithms.linear`, among as
many users who take either action as let one user's data matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.runtime.offline import PolicyRuns
from privcheck.runtime.registry import Algorithm
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import ZCDP
from privcheck.terms.symbols import H, d, rho
from privcheck_algorithms.linear.regression import best, gram, invert, predict, solve, sums
from privcheck_algorithms.linear.runs import (
    ACTIONS,
    INSTANCE,
    Draws,
    LinearRuns,
    Ruler,
    make_ruler_for,
    norm_bound,
    offline_runs,
    streams,
)

_USERS = 20.0  # for either action, in units of the noise on a sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge:
    """Greedy with respect to (Σφφᵀ + λ·1)⁻¹ Σφr, both noisy.

    Attributes:
        users: Other users who take either action, of whom half have reward 1.
        ridge: λ.
        peeks: It reads both before noise: the mutant.
    """

    users: float
    ridge: float
    peeks: bool = False

    def __call__(self, ruler: Ruler, noise: Draws, second: np.ndarray) -> np.ndarray:
        _, actions, rewards = ruler.user(second, differs=True)
        theirs = (actions[:, :1] == np.arange(ACTIONS))[:, None]  # (runs, 1, A): by the one state that users are in
        phi = ruler.homes[:1]
        matrix, vector = gram(self.users + theirs, phi), sums(self.users / 2 + theirs * rewards[:, :1, None], phi)
        if not self.peeks:
            matrix, vector = matrix + noise["gram"][:, 0, 0], vector + noise["gains"][:, 0, 0]
        w = solve(invert(matrix + self.ridge * np.eye(phi.shape[-1])), vector)
        return best(predict(ruler.phi, w))[0].astype(np.float64)


def declare(_readings: Mapping[str, str]) -> Declaration:
    phi, relation = Column("phi", 1, r"\phi"), ReplaceOne("trajectory")
    matrices = GramMatrices(name="Gram matrices of φ", steps=H, dimension=d, vector=phi)
    gains = FeatureSums(name="φ·r sums", steps=H, dimension=d, vector=phi, target=Column("r", 1, "r"))
    half = [statistic.sensitivity(relation).l2 ** 2 / rho for statistic in (matrices, gains)]
    return Declaration(
        name="own-ridge",
        title="ridge regression",
        source="a test",
        relation=relation,
        releases=(
            Release("gram", matrices, SymmetricGaussian(variance=half[0], kind="upper")),
            Release("gains", gains, Gaussian(variance=half[1])),
        ),
        claim=Claim(ZCDP(rho), source="a test"),
        parameters=(
            Parameter(name="H", default=1, kind="count", meaning="steps"),
            Parameter(name="d", default=2, kind="count", meaning="dimension"),
            Parameter(name="rho", default=1, kind="positive", meaning="budget in zCDP, nats"),
        ),
    )


def policies(setting: Setting, *, peeks: bool = False) -> PolicyRuns:
    declaration, values = setting.declared, setting.values
    ruler, noise = make_ruler_for(declaration, values, "gram"), streams(declaration, values, 1)
    users = float(round(_USERS * noise["gains"].noise.scale))
    agent = Ridge(users=users, ridge=norm_bound(noise["gram"]), peeks=peeks)
    return offline_runs(LinearRuns(ruler=ruler, streams=noise, agent=agent))


HONEST = Algorithm(
    name="own-ridge",
    title="ridge regression",
    source="a test",
    declare=declare,
    policies=policies,
    instance=INSTANCE,
)
PEEKING = replace(HONEST, name="own-ridge-peeking", policies=partial(policies, peeks=True))
