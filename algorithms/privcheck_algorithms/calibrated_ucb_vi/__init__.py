"""CALIBRATED-UCB-VI: the least regret this package gets on RiverSwim at (1, 10⁻⁵)-JDP and K = 2·10⁴."""

from privcheck.registry import Algorithm
from privcheck_algorithms.calibrated_ucb_vi.agent import OPTIONS, run
from privcheck_algorithms.calibrated_ucb_vi.declaration import CAP, COUNTS, INITIAL, REWARDS, calibrated

CALIBRATED_UCB_VI = Algorithm(
    name="calibrated-ucb-vi",
    title="CALIBRATED-UCB-VI: optimistic value iteration from disjoint batches, Gaussian noise by the exact curve",
    source="this package; README of calibrated_ucb_vi",
    declare=calibrated,
    choices=(COUNTS, CAP, REWARDS, INITIAL),
    options=OPTIONS,
    online=run,
)

__all__ = ["CALIBRATED_UCB_VI"]
