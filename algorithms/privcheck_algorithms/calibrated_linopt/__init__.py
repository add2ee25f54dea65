"""CALIBRATED-LINOPT: linear mixtures learned at (ε, δ)-JDP with little regret."""

from fractions import Fraction

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.calibrated_linopt.agent import OPTIONS
from privcheck_algorithms.calibrated_linopt.audit_world import audit_world
from privcheck_algorithms.calibrated_linopt.declaration import REWARDS, declare_calibrated
from privcheck_algorithms.calibrated_linopt.player import player

CALIBRATED_LINOPT = Algorithm(
    name="calibrated-linopt",
    title="CALIBRATED-LINOPT: linear mixtures learned from disjoint batches, V public within each",
    source="this package; README of calibrated_linopt",
    declare=declare_calibrated,
    readings=(REWARDS,),
    options=OPTIONS,
    online=player,
    # small batches and one policy in each, as good as the mean model's best: policies follow the noisy sums closely
    instance=AuditInstance(
        sizes={"H": 2, "S": 2, "A": 2, "K": 8, "d1": 2, "d2": 2},
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "turns": Fraction(1),
            "spread": Fraction(1, 100_000),
        },
        world=audit_world,
    ),
)

__all__ = ["CALIBRATED_LINOPT"]
