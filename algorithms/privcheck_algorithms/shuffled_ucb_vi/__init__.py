"""SHUFFLED-UCB-VI: optimistic value iteration from bits behind a shuffler, one public policy per batch.

The bits of a batch are released once. A user moves at most 2(H − 1) counters of transitions and 2H of reward bits, 22
at H = 6, and each of them is Bin(N, ½) + 1 against Bin(N, ½). The noise is stated by μ as if it were Gaussian: σ² =
(2(H − 1) + 2H·w²)/μ² of a transition counter, σ²/w² of a reward counter, N = ⌈4σ²⌉ fair bits. The claim of (ε, β)-SDP
at μ = 0.266 does not rest on that: the accountant composes the binomial counters exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from privcheck.declare.declaration import Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import H, beta, epsilon, maximum, n, symbol
from privcheck_algorithms.online.policy_cells import PolicyCells, draw_user
from privcheck_algorithms.privatizers.declaration import LeastNoise, neighbours
from privcheck_algorithms.shuffled_ucb_vi.agent import OPTIONS, player

WEIGHT = symbol("reward_weight", "positive")
MU = symbol("mu", "positive")

PARAMETERS = (
    Parameter(name="H", default=6, kind="count", meaning="steps of an episode"),
    Parameter(name="S", default=4, kind="count", meaning="states"),
    Parameter(name="A", default=2, kind="count", meaning="actions"),
    Parameter(name="K", default=20_000, kind="count", meaning="episodes, one user each"),
    Parameter(name="epsilon", default="1", kind="positive", meaning="ε of the claim, nats"),
    Parameter(name="beta", default="1/100000", kind="probability", meaning="the claim's failure probability β"),
    Parameter(
        name="reward_weight", default="0.7", kind="positive", meaning="w: reward bits get 1/w times the noise's std"
    ),
)
PRECISION = Parameter(
    name="mu",
    default="0.266",
    kind="positive",
    meaning="the noise: σ² = (2(H − 1) + 2H·w²)/μ²; for another ε or β the largest that keeps the claim",
)
INITIAL = Reading(
    name="initial",
    ways=("any", "fixed"),
    meaning="any: any trajectory for any other; fixed: step 1's state is common to neighbours, the noise is the same",
)


def everybody(values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """K for every batch size: the number of allocated noise bits is the same in all batches."""
    return (int(values["K"]),)


def declare_shuffled(readings: Mapping[str, str]) -> Declaration:
    """SHUFFLED-UCB-VI: every bit as a separate message, with ⌈4σ²⌉ publicly allocated fair bits a counter."""
    variance = (2 * maximum(H - 1, 1) + 2 * H * WEIGHT**2) / MU**2
    least = LeastNoise(name="mu", declare=declare_shuffled, readings=tuple(sorted(readings.items())), usual=PARAMETERS)
    batches = Batches(size="users, each batch a fixed factor larger than the one before", sizes=everybody)
    return Declaration(
        name="shuffled-ucb-vi",
        title="SHUFFLED-UCB-VI: optimism in batches of one public policy, from bits behind a shuffler",
        source="this package; README of shuffled_ucb_vi",
        origin=Origin(kind="own", text="README of shuffled_ucb_vi"),
        relation=neighbours(readings, INITIAL),
        releases=(
            Release(
                "transitions",
                PolicyCells(of="transitions"),
                ShuffledBits(users=n, threshold=4 * variance, dealt=True),
                schedule=batches,
            ),
            Release(
                "rewards",
                PolicyCells(of="reward bits"),
                ShuffledBits(users=n, threshold=4 * variance / WEIGHT**2, dealt=True),
                schedule=batches,
            ),
        ),
        claim=Claim(ApproxDP(epsilon, beta), source="README, “The budget”"),
        parameters=(*PARAMETERS, replace(PRECISION, follows=least)),
        model="shuffle",
        records=draw_user,
    )


SHUFFLED_UCB_VI = Algorithm(
    name="shuffled-ucb-vi",
    title="SHUFFLED-UCB-VI: optimism in batches of one public policy, from bits behind a shuffler",
    source="this package; README of shuffled_ucb_vi",
    declare=declare_shuffled,
    readings=(INITIAL,),
    options=OPTIONS,
    online=player,
    twin="shuffled-ucb-vi",
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
