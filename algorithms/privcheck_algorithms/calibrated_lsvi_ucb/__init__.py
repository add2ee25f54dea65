"""CALIBRATED-LSVI-UCB: the least regret this package gets in linear MDPs under ρ-zCDP."""

from fractions import Fraction

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.calibrated_lsvi_ucb.agent import OPTIONS, player
from privcheck_algorithms.calibrated_lsvi_ucb.audit_world import make_audit_world
from privcheck_algorithms.calibrated_lsvi_ucb.declaration import FEATURES, GRAM, REWARDS, declare_calibrated

CALIBRATED_LSVI_UCB = Algorithm(
    name="calibrated-lsvi-ucb",
    title="CALIBRATED-LSVI-UCB: posterior sampling from V-free sums of disjoint batches, with the least noise",
    source="this package; README of calibrated_lsvi_ucb",
    declare=declare_calibrated,
    readings=(GRAM, REWARDS, FEATURES),
    options=OPTIONS,
    online=player,
    # small batches, hardly a prior and models that are not moved: policies follow the noisy tables closely
    instance=AuditInstance(
        sizes={"H": 2, "S": 2, "A": 8, "d": 2, "K": 8},
        options={
            "first_batch": Fraction(1, 10**9),
            "growth": Fraction(2),
            "turns": Fraction(1),
            "perturbation": Fraction(0),
            "prior": Fraction(1000),
        },
        world=make_audit_world,
    ),
)

__all__ = ["CALIBRATED_LSVI_UCB"]
