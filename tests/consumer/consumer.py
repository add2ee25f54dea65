"""What typed code of a user calls, under the strictest rules of both type checkers; it is checked, never run."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

import privcheck
from privcheck import PureDP, audit_mechanism, verify
from privcheck.accounting import Filter, Odometer, Plan
from privcheck.data.reading import ArrowTable
from privcheck.declare.declaration import L2, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.statistics import TransitionCounts, VisitCounts
from privcheck.ledger.client import Client
from privcheck.terms.guarantees import ZCDP, ApproxDP
from privcheck.terms.symbols import A, Expr, H, S, rho, sqrt
from privcheck.verification import Verification


def declare() -> Declaration:
    """Returns a declaration; every mechanism is taken for one."""
    return Declaration(
        name="visits-only",
        title="Visit counts, once",
        source="an example",
        relation=ReplaceOne("trajectory"),
        releases=(
            Release("visits", VisitCounts(H, S, A), Gaussian(variance=2 * H / rho), stated=L2(sqrt(H))),
            Release("whole", VisitCounts(H, S, A), DiscreteGaussian(variance=2 * H / rho)),
            Release("moves", TransitionCounts(H, S, A), Laplace(scale=2 * H)),
            Release("steps", TransitionCounts(H, S, A), DiscreteLaplace(scale=2 * H)),
        ),
        claim=Claim(ZCDP(rho), source="an example"),
        parameters=(Parameter(name="H", default=20, kind="count", meaning="steps"),),
    )


def judge(declaration: Declaration) -> tuple[str, float | None, list[str]]:
    """Returns a verdict in parts."""
    judged: Verification = verify(declaration, declaration.values())
    return judged.verdict, judged.upper_ratio, [finding.message for finding in judged.findings]


def spend(cost: Expr) -> str:
    """Returns formulas and sums of budgets."""
    matrices = SymmetricGaussian(variance=cost, kind="goe")
    return (
        f"{cost} {matrices.spread} {ApproxDP(epsilon=Fraction(1), delta=Fraction(1, 1000))} {Odometer} {Filter} {Plan}"
    )


def learn(table: ArrowTable) -> tuple[object, ...]:
    """Returns a figure of a run, from data in memory."""
    alone = privcheck.Users(one_episode_is_one_user=True)
    ran = privcheck.run("dp-apvi", data=table, users=alone, S=24, A=25, rho="1/2")
    cost = privcheck.budget("dp-apvi", rho="1/2", delta="1e-5")
    noise = privcheck.calibrate("dp-apvi", epsilon=1.0)
    return ran.policy, cost.methods[0].epsilon, privcheck.verify_claim("dp-apvi", H=5).verdict, noise


def laplace(x: float, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Returns noisy numbers."""
    return x + rng.laplace(0, 1, size)


def audit() -> float:
    """Returns a lower bound."""
    return audit_mechanism(laplace, PureDP(1), neighbours=[(0.0, 1.0)]).lower


def charge(address: str, token: str) -> object:
    """Returns what a ledger answered."""
    return Client(address, token).charge(grant="G", unit="dataset", event={"type": "gaussian", "rho": "0.01"})["state"]
