"""What CALIBRATED-LINOPT releases: one Gaussian vector a batch of users, every user in one batch.

A user moves Σx·y by √(H − 1) and Σφ·(r − ½) by √H (`statistic`). With variance σ² = ((H − 1) + w²·H)/μ² for the first
and σ²/w² for the second, (H − 1)/σ² + w²·H/σ² = μ²: the cost is exactly that of N(0, 1) against N(μ, 1), and
μ = 0.26805 is the largest that is (1, 10⁻⁵)-DP (to five digits).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from privcheck.declaration import Claim, Declaration, Joint, Parameter, Release
from privcheck.guarantees import ApproxDP
from privcheck.mechanisms import Gaussian
from privcheck.registry import Reading
from privcheck.relations import ReplaceOne
from privcheck.schedules import Batches
from privcheck.statements import Origin
from privcheck.symbols import Expr, H, delta, epsilon, expression, maximum, symbol
from privcheck_algorithms.calibrated_linopt.statistic import TargetSums, draw_user, furthest_pairs
from privcheck_algorithms.privatizers.declaration import CALIBRATED, MU

KERNELS, FEATURES = symbol("d1", "count"), symbol("d2", "count")
WEIGHT = symbol("reward_weight", "positive")

REWARDS = Reading(
    name="rewards",
    ways=("known", "released"),
    meaning="known: the mean reward of every (s, a) is public, and costs nothing; released: noisy sums of φ·(r − ½)",
)
_OWN = (
    Parameter(name="d1", default=5, kind="count", meaning="known kernels of the mixture"),
    Parameter(name="d2", default=5, kind="count", meaning="dimension of the features in which rewards are linear"),
    Parameter(
        name="reward_weight", default=1, kind="positive", meaning="w: sums of rewards get 1/w times the noise of values"
    ),
)


def declare_calibrated(readings: Mapping[str, str]) -> Declaration:
    """Returns CALIBRATED-LINOPT in the chosen readings: (ε, δ)-JDP by one Gaussian vector a user."""
    released = readings.get("rewards", "known") == "released"
    steps = maximum(H - 1, 1)  # of a single step, which has no next value, noise alone leaves
    moved: Expr = steps + (WEIGHT**2 * H if released else expression(0))
    variance = moved / MU**2
    schedule = Batches(size="users, each batch a fixed factor larger than the one before")
    values, rewards = TargetSums("values", steps, KERNELS), TargetSums("rewards", H, FEATURES)
    releases: tuple[Release, ...] = (Release("values", values, Gaussian(variance=variance), schedule=schedule),)
    if released:
        releases += (Release("rewards", rewards, Gaussian(variance=variance / WEIGHT**2), schedule=schedule),)
    sums = (values, rewards) if released else (values,)
    sizes = tuple(p for p in CALIBRATED if p.name not in {"S", "A"})  # S and A appear in nothing that is released
    return Declaration(
        name="calibrated-linopt",
        title="CALIBRATED-LINOPT: linear mixtures learned from disjoint batches, V public within each",
        source="this package; README of calibrated_linopt",
        origin=Origin(kind="own", text="README of calibrated_linopt"),
        relation=ReplaceOne("trajectory"),
        releases=releases,
        claim=Claim(ApproxDP(epsilon, delta), source="README, “The budget”", joint=Joint()),
        parameters=(*sizes, *(_OWN if released else _OWN[:1])),
        candidates=partial(furthest_pairs, sums),
        records=partial(draw_user, sums),
    )
