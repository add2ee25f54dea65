"""CALIBRATED-VAPVI: the smallest value gap of this package's algorithms from linear features at ρ-zCDP."""

from fractions import Fraction

from privcheck.runtime.registry import Algorithm, AuditInstance
from privcheck_algorithms.calibrated_vapvi.agent import AGENT, OPTIONS
from privcheck_algorithms.calibrated_vapvi.declaration import REWARDS, declare_calibrated
from privcheck_algorithms.linear.audit_worlds import two_ends

CALIBRATED_VAPVI = Algorithm(
    name="calibrated-vapvi",
    title="CALIBRATED-VAPVI: offline value iteration from V-free tables, with the least Gaussian noise",
    source="this package; README of calibrated_vapvi",
    declare=declare_calibrated,
    readings=(REWARDS,),
    options=OPTIONS,
    offline=AGENT,
    # neither pessimism nor ridge: policies follow the noisy tables closely
    instance=AuditInstance(sizes={"H": 2, "d": 2}, options={"C": Fraction(0), "ridge": Fraction(0)}, world=two_ends),
)

__all__ = ["CALIBRATED_VAPVI"]
