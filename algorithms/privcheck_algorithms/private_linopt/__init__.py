"""Private-LinOpt-VI and Private-LinOpt-PO (Zhou 2022): two declarations with the same four tree counters."""

from fractions import Fraction

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.linear.audit_mixture import mixture_audit_world
from privcheck_algorithms.papers import MIXTURE
from privcheck_algorithms.private_linopt.agent import ETA_SCALE, OPTIONS, PRINTED, policy_player, value_player
from privcheck_algorithms.private_linopt.declaration import READINGS, policy_optimization, value_iteration

# a ridge of the noise's size and no bonus: policies follow the noisy sums closely
INSTANCE = AuditInstance(
    sizes={"H": 1, "A": 2, "S": 24, "K": 4, "d": 2, "d1": 2, "d2": 2},
    options={
        "ridge": Fraction(0),
        "noise_scale": Fraction(1, 4),
        "bonus_p": Fraction(100),
        "bonus_r": Fraction(1, 100),
        "eta_scale": Fraction(2),
    },
    world=mixture_audit_world,
)

VI = Algorithm(
    name="private-linopt-vi",
    title="Private-LinOpt-VI: optimistic value iteration in linear mixture MDPs, binary-tree counters",
    source="Zhou 2022, arXiv:2201.07052, Algorithm 1",
    paper=MIXTURE,
    declare=value_iteration,
    readings=READINGS,
    options=OPTIONS,
    instead="calibrated-linopt",
    printed={**PRINTED, "ridge": "0"},
    online=value_player,
    instance=INSTANCE,
    twin="ucrl-vtr",
    environment="linear-hypercube",
)

PO = Algorithm(
    name="private-linopt-po",
    title="Private-LinOpt-PO: optimistic policy steps in linear mixture MDPs, binary-tree counters",
    source="Zhou 2022, arXiv:2201.07052, Algorithm 2",
    paper=MIXTURE,
    declare=policy_optimization,
    readings=READINGS,
    options=(*OPTIONS, ETA_SCALE),
    instead="calibrated-linopt",
    printed={**PRINTED, "ridge": "0", "eta_scale": "1"},
    online=policy_player,
    instance=INSTANCE,
    twin="linear-oppo",
    environment="linear-hypercube",
)

__all__ = ["PO", "VI"]
