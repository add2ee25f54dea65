"""Declarations of one table and one step, for tests of the auditors: a user moves one number, or two, by 1."""

from __future__ import annotations

from fractions import Fraction

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, Laplace
from privcheck.declare.relations import AddRemoveOne, Relation
from privcheck.declare.statistics import RewardSums, VisitCounts
from privcheck.runtime.results import AuditRequest
from privcheck.runtime.setting import Setting
from privcheck.terms.guarantees import ZCDP, PureDP
from privcheck.terms.symbols import A, H, S, epsilon, rho

SIZES = tuple(
    Parameter(name=name, default=size, kind="count", meaning="size") for name, size in {"H": 1, "S": 4, "A": 2}.items()
)
ONE_USER = AddRemoveOne()
EPSILON = Parameter(name="epsilon", default=1, kind="positive", meaning="budget")
RHO = Parameter(name="rho", default="1/8", kind="positive", meaning="budget in zCDP")


def declared(claim, releases, parameter, relation: Relation) -> Declaration:
    return Declaration(
        name="small",
        title="one step",
        source="a test",
        relation=relation,
        releases=releases,
        claim=Claim(claim, source="a test"),
        parameters=(*SIZES, parameter),
    )


def laplace(relation: Relation = ONE_USER) -> Declaration:
    """Visit counts with Lap(1/ε): one number moves by 1 under add/remove, ε is exact."""
    release = Release("visits", VisitCounts(H, S, A), Laplace(scale=1 / epsilon))
    return declared(PureDP(epsilon), (release,), EPSILON, relation)


def gaussian(relation: Relation = ONE_USER) -> Declaration:
    """Visit counts with variance 1/2ρ: ρ-zCDP exactly under add/remove."""
    release = Release("visits", VisitCounts(H, S, A), Gaussian(variance=1 / (2 * rho)))
    return declared(ZCDP(rho), (release,), RHO, relation)


def mixed(relation: Relation = ONE_USER) -> Declaration:
    """Visits with Gaussian and reward sums with Laplace noise, half of ρ-zCDP each."""
    releases = (
        Release("visits", VisitCounts(H, S, A), Gaussian(variance=1 / rho)),
        Release("rewards", RewardSums(H, S, A), Laplace(scale=rho ** Fraction(-1, 2))),
    )
    return declared(ZCDP(rho), releases, RHO, relation)


def request(declaration: Declaration, **asked) -> AuditRequest:
    """Returns a request for the releases view; `sets` are parameters."""
    pure = isinstance(declaration.claim.guarantee, PureDP)
    values = {
        "setting": Setting(declaration=declaration, values=declaration.values(asked.pop("sets", {}))),
        "view": "releases",
        "delta": 0.0 if pure else 1e-5,
        "trials": 10_000,
        "confidence": 0.95,
        "seed": 1,
    }
    return AuditRequest(**{**values, **asked})
