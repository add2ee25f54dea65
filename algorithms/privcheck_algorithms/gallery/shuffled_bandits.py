"""Bandits in the shuffle model: a batch of users sends its rewards or contexts as bits behind a shuffler.

Tenenbaum, Kaplan, Mansour & Stemmer 2021 eliminate arms from sums of rewards, each rounded to a bit by its user, 1 with
the reward's probability, in batches that double. Linear bandits (Garcelon, Chaudhuri, Perchet & Pirotta 2022; Chowdhury
& Zhou 2022) send d + d(d + 1)/2 coordinates of y·x and of x xᵀ; here each is shifted to [0, 1] and rounded to one bit,
and has a separate binary sum of Cheu et al. 2019. Their own protocols differ in the number of bits a coordinate.

The papers' thresholds have unstated constants: τ = 96 ln(2/δ)/ε² is required by the binomial counter's proof,
√(6 ln(2/δ)/τ) = ε/4. A mixture over rounded bits costs no more than its worst bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from privcheck.declare.declaration import L1, Claim, Declaration, Parameter, Release
from privcheck.declare.mechanisms import ShuffledBits
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Batches
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import RewardBits, Stated
from privcheck.errors import TrajectoryError
from privcheck.runtime.registry import Algorithm
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import Expr, d, delta, epsilon, log, n, sqrt
from privcheck_algorithms.gallery.bandits import ARMS, BUDGET, ONE_REWARD, arms
from privcheck_algorithms.papers import GALLERY, NOT_AT_HAND

BANDIT_TITLE = "Shuffled arm elimination: rewards rounded to bits, summed behind a shuffler"
BANDIT_SOURCE = (
    "as described in Tenenbaum, Kaplan, Mansour & Stemmer 2021, Differentially Private Multi-Armed Bandits in the "
    "Shuffle Model"
)
LINEAR_TITLE = "Shuffled linear bandit: every coordinate of x xᵀ and x·y a bit behind a shuffler"
LINEAR_SOURCE = (
    "as described in Garcelon, Chaudhuri, Perchet & Pirotta 2022, Privacy Amplification via Shuffling for Linear "
    "Contextual Bandits, and Chowdhury & Zhou 2022, Shuffle Private Linear Contextual Bandits"
)
_SHARED = (
    BUDGET,
    Parameter(name="delta", default="1e-5", kind="probability", meaning="δ of the claim"),
    Parameter(name="K", default=20_000, kind="count", meaning="users", least=2),
)
_COORDINATES = d * (d + 3) / 2  # of x·y and of the upper triangle of x xᵀ


def doubling(values: Mapping[str, Fraction]) -> tuple[int, ...]:
    """Sizes 2, 4, 8, … of batches of K users, the last one as large as the remaining users allow.

    >>> doubling({"K": Fraction(20)})
    (2, 4, 6, 8)
    """
    sizes: list[int] = []
    left = int(values["K"])
    while left > 0:
        sizes.append(min(left, 2 ** (len(sizes) + 1)))
        left -= sizes[-1]
    return tuple(sorted(set(sizes)))


def _threshold(share: Expr, rare: Expr) -> Expr:
    return 96 * log(2 / rare) / share**2


def shuffled_bandit(_: Mapping[str, str]) -> Declaration:
    """Arm elimination; every batch is for one arm, and each of its users sends one rounded reward."""
    return Declaration(
        name="shuffled-bandit",
        title=BANDIT_TITLE,
        source=BANDIT_SOURCE,
        origin=Origin(kind="reconstructed", text=BANDIT_SOURCE, changed=NOT_AT_HAND),
        relation=ONE_REWARD,
        releases=(
            Release(
                "rewards",
                RewardBits(1, 1, arms),
                ShuffledBits(users=n, threshold=_threshold(epsilon, delta)),
                stated=L1(1),
                schedule=Batches(size="2^b users of one arm", sizes=doubling),
                source="the binary sum, once a batch, as described in Cheu et al. 2019",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source=BANDIT_SOURCE),
        parameters=(ARMS, *_SHARED),
        model="shuffle",
    )


def shuffled_linear_bandit(_: Mapping[str, str]) -> Declaration:
    """Linear bandit, with m coordinates at ε/√(8m ln(2/δ)) and δ/2m each, by advanced composition."""
    share = epsilon / sqrt(8 * _COORDINATES * log(2 / delta))
    bits = Stated(
        "sums of the rounded coordinates of x xᵀ and x·y",
        l1=_COORDINATES,
        l2=sqrt(_COORDINATES),
        linf=1,
        compute=_add_up,
        records=_rounded,
        shape=(_COORDINATES,),
        whole=True,
        stepwise=True,
        latex=r"\textstyle\sum_u b_u",
        preconditions=("every coordinate of a user is 0 or 1",),
    )
    return Declaration(
        name="shuffled-linear-bandit",
        title=LINEAR_TITLE,
        source=LINEAR_SOURCE,
        origin=Origin(kind="reconstructed", text=LINEAR_SOURCE, changed=NOT_AT_HAND),
        relation=ReplaceOne("user"),
        releases=(
            Release(
                "coordinates",
                bits,
                ShuffledBits(users=n, threshold=_threshold(share, delta / (2 * _COORDINATES))),
                stated=L1(_COORDINATES),
                schedule=Batches(size="2^b users", sizes=doubling),
                source="the binary sum, once a coordinate and batch, as described in Cheu et al. 2019",
            ),
        ),
        claim=Claim(ApproxDP(epsilon, delta), source=LINEAR_SOURCE, composition="advanced"),
        parameters=(*_SHARED, Parameter(name="d", default=2, kind="count", meaning="dimension of a context")),
        model="shuffle",
    )


def _add_up(rows: tuple[np.ndarray, ...]) -> np.ndarray:
    """Number of users who send a 1, for every coordinate.

    Raises:
        TrajectoryError: A sent value is neither 0 nor 1.
    """
    bits = np.asarray(rows)
    if not np.isin(bits, (0, 1)).all():
        raise TrajectoryError("expected coordinates 0 or 1; let each user shift them to [0, 1] and round them")
    ones: np.ndarray = bits.sum(axis=0)
    return ones


def _rounded(values: Mapping[str, Fraction], rng: np.random.Generator) -> np.ndarray:
    """One user's bits: all 0, all 1, or random ones, equally often."""
    bits = int(values["d"]) * (int(values["d"]) + 3) // 2
    return (np.zeros(bits), np.ones(bits), rng.integers(0, 2, bits).astype(float))[rng.integers(3)]


BANDIT = Algorithm(
    name="shuffled-bandit", title=BANDIT_TITLE, source=BANDIT_SOURCE, paper=GALLERY, declare=shuffled_bandit
)
LINEAR = Algorithm(
    name="shuffled-linear-bandit", title=LINEAR_TITLE, source=LINEAR_SOURCE, paper=GALLERY,
    declare=shuffled_linear_bandit,
)  # fmt: skip
