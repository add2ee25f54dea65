"""SHUFFLED-UCB-VI: optimistic value iteration from bits behind a shuffler, one public policy a batch."""

from fractions import Fraction

from privcheck.registry import Algorithm, AuditInstance
from privcheck_algorithms.shuffled_ucb_vi.agent import OPTIONS, player
from privcheck_algorithms.shuffled_ucb_vi.declaration import INITIAL, declare_shuffled

SHUFFLED_UCB_VI = Algorithm(
    name="shuffled-ucb-vi",
    title="SHUFFLED-UCB-VI: optimism in batches of one public policy, from bits behind a shuffler",
    source="this package; README of shuffled_ucb_vi",
    declare=declare_shuffled,
    readings=(INITIAL,),
    options=OPTIONS,
    online=player,
    # small batches and no prior to speak of: policies follow the noisy tables closely
    instance=AuditInstance(
        options={
            "first_batch": Fraction(1),
            "growth": Fraction(2),
            "thin": Fraction(0),
            "optimism": Fraction(0),
            "optimism_rewards": Fraction(0),
            "prior": Fraction(1, 1000),
            "prior_rewards": Fraction(1, 1000),
            "messages": Fraction(20_000_000),
        },
    ),
)

__all__ = ["SHUFFLED_UCB_VI"]
