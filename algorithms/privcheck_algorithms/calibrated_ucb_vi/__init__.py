"""CALIBRATED-UCB-VI: the least regret this package gets on RiverSwim at (1, 10⁻⁵)-JDP and K = 2·10⁴."""

from fractions import Fraction

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.calibrated_ucb_vi.agent import OPTIONS, player
from privcheck_algorithms.calibrated_ucb_vi.declaration import CAP, COUNTS, POLICY, REWARDS, declare_calibrated
from privcheck_algorithms.privatizers.declaration import ANY_START

CALIBRATED_UCB_VI = Algorithm(
    name="calibrated-ucb-vi",
    title="CALIBRATED-UCB-VI: optimistic value iteration from disjoint batches, Gaussian noise by the exact curve",
    source="this package; README of calibrated_ucb_vi",
    declare=declare_calibrated,
    readings=(POLICY, COUNTS, CAP, REWARDS, ANY_START),
    options=OPTIONS,
    online=player,
    release_noise=True,
    # small batches and nothing taken for noise: policies follow the noisy tables closely
    instance=AuditInstance(
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "turns": Fraction(1),
            "support": Fraction(0),
            "known": Fraction(0),
            "noise_bonus": Fraction(0),
            "thin": Fraction(0),
            "optimism": Fraction(0),
            "optimism_rewards": Fraction(0),
            "prior": Fraction(1, 1000),
            "prior_rewards": Fraction(1, 1000),
        },
    ),
)

__all__ = ["CALIBRATED_UCB_VI"]
