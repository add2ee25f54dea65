"""The CENTRAL- and the LOCAL-PRIVATIZER of Chowdhury & Zhou 2022 (section 5), declared once for all algorithms.

Three tables: visits N, costs C (or rewards), transitions M. Where no paper states the noise, it follows from the claim
(`LeastNoise`): the least for its (ε, β) by the exact curve.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from privcheck.accounting import Curve, calibrate, calibrate_whole, gaussian
from privcheck.data.trajectories import Trajectories
from privcheck.declare.declaration import L1, Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Laplace
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import PerUser, Tree
from privcheck.declare.statements import Origin, Statement
from privcheck.declare.statistics import (
    CostSums,
    PooledRewardSums,
    PooledTransitionCounts,
    PooledVisitCounts,
    RewardSums,
    Statistic,
    TransitionCounts,
    VisitCounts,
)
from privcheck.pricing import account
from privcheck.runtime.registry import Reading
from privcheck.terms.guarantees import PureDP
from privcheck.terms.symbols import A, H, K, S, ceil_log2, epsilon, log, maximum, symbol

Declare = Callable[[Mapping[str, str]], Declaration]

_DIGITS = 5  # of μ, rounded down: at most 10⁻⁴ more noise than the least


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastNoise:
    """Rule `Parameter(follows=…)` of a parameter that sets all of a declaration's noise.

    At the default claim it gives the parameter's own default, which a README lists.

    Attributes:
        name: Name of the parameter.
        declare: Map from readings to the declaration.
        readings: The chosen readings.
        usual: The declaration's other parameters; at their defaults the parameter has its default.
        claim: Names of the claim's parameters, ε and its failure probability.
        bits: Whether the parameter is the number of noise bits; otherwise the noise's std is inverse to it.
        sizes: Names of other parameters that its value depends on, such as those of a sample.
    """

    name: str
    declare: Declare
    readings: tuple[tuple[str, str], ...]
    usual: tuple[Parameter, ...]
    claim: tuple[str, str] = ("epsilon", "beta")
    bits: bool = False
    sizes: tuple[str, ...] = ()

    def __call__(self, values: Mapping[str, Fraction]) -> Fraction:
        """Value with which the releases satisfy the claim at the least noise.

        Raises:
            ParameterError: No amount of noise is enough.
        """
        decisive = (*self.claim, *self.sizes)
        defaults = {one.name: one.check(one.default) for one in self.usual if one.name in decisive}
        if all(values[name] == default for name, default in defaults.items()):
            return values[self.name]
        return _find(self, tuple(sorted(values.items())))


def follow_gaussian(values: Mapping[str, Fraction]) -> Fraction:
    """Largest μ for which N(0, 1) against N(μ, 1) is (ε, δ)-DP; at ε = 1, δ = 10⁻⁵ the default.

    Args:
        values: `epsilon`, `delta` and `mu`, the default.
    """
    if values["epsilon"] == 1 and values["delta"] == Fraction(1, 100_000):
        return values["mu"]
    return _find_gaussian(float(values["epsilon"]), float(values["delta"]))


@functools.lru_cache(maxsize=256)
def _find_gaussian(epsilon: float, delta: float) -> Fraction:
    return _round_down(1 / Fraction(calibrate((epsilon, delta), lambda std: gaussian(std=std)).scale))


@functools.lru_cache(maxsize=256)
def _find(least: LeastNoise, given: tuple[tuple[str, Fraction], ...]) -> Fraction:
    values, declaration = dict(given), least.declare(dict(least.readings))
    target = tuple(float(values[name]) for name in least.claim)
    composed, start = account(declaration), float(values[least.name])

    def price(value: float) -> Curve:
        return composed.at({**values, least.name: Fraction(value)}).curve

    if least.bits:
        return Fraction(calibrate_whole((target[0], target[1]), price, seek="least", start=start).value)
    return _round_down(Fraction(calibrate((target[0], target[1]), price, seek="largest", start=start).scale))


def _round_down(value: Fraction) -> Fraction:
    """Positive number rounded down to five significant digits."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - _DIGITS + 1)
    return math.floor(value / unit) * unit


SIZES = (
    Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
    Parameter(name="S", default=6, kind="count", meaning="states"),
    Parameter(name="A", default=2, kind="count", meaning="actions"),
)
EPISODES = Parameter(name="K", default=20_000, kind="count", meaning="episodes, one user each")
EPSILON = Parameter(name="epsilon", default="1", kind="positive", meaning="budget in pure DP, nats")

MU = symbol("mu", "positive")
CALIBRATED = (
    *SIZES,
    EPISODES,
    Parameter(name="epsilon", default="1", kind="positive", meaning="ε of the claim, nats"),
    Parameter(name="delta", default="0.00001", kind="probability", meaning="δ of the claim"),
    Parameter(
        name="mu",
        default="0.26805",
        kind="positive",
        meaning="the noise: all a user's releases are μ-GDP together; for another ε or δ the largest that keeps it",
        follows=follow_gaussian,
    ),
)  # of agents whose noise is what (ε, δ)-JDP needs

# Joint DP of Chowdhury & Zhou 2022: "Each user u_k is identified by the cost and state responses she gives to the
# actions" (section 2.2), and "the initial state s_1 is assumed to be fixed and history independent" (section 2.1)
SAME_START = Reading(
    name="initial",
    ways=("fixed", "any"),
    meaning="fixed: a user is a response function (section 2.2), step 1's state and action are common to neighbours; "
    "any: any trajectory for any other",
)
# Their local DP is "for all trajectories X, X′ ∈ 𝒳", "the set of all possible trajectories" (Definition 2.3). Of Bai et
# al. 2024 "a trajectory S_k = (x_h, a_h, r_h) represents the sensitive data to be protected", with x_1 drawn from d_1
# (section II-A): the first state is a user's own there, in the joint model too
ANY_START = Reading(
    name="initial",
    ways=("any", "fixed"),
    meaning="any: any trajectory for any other; fixed, a weaker claim: step 1's state and action are common to "
    "neighbours",
)
NOISE = Reading(
    name="noise",
    ways=("calibrated", "chowdhury-zhou"),
    meaning="its noise is not in the papers; chowdhury-zhou: their privatizer's, Lap(3H…/ε); calibrated: "
    "Lap(6H…/ε), the least that makes the claim true for any two trajectories",
)
LOG = Reading(
    name="log",
    ways=("log2", "ln"),
    meaning="the base of log K in the noise of Lemma 5.1: log2 is ⌈log₂ K⌉, ln the natural logarithm",
)
Statistics = Mapping[str, Statistic[Trajectories]]

COSTS: Statistics = {
    "visits": VisitCounts(H, S, A),
    "costs": CostSums(H, S, A),
    "transitions": TransitionCounts(H, S, A),
}
REWARDS: Statistics = {
    "visits": VisitCounts(H, S, A),
    "rewards": RewardSums(H, S, A),
    "transitions": TransitionCounts(H, S, A),
}
POOLED: Statistics = {
    "visits": PooledVisitCounts(H, S, A),
    "rewards": PooledRewardSums(H, S, A),
    "transitions": PooledTransitionCounts(H, S, A),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedAlgorithm:
    """An algorithm based on a privatizer, with the places of its statements in the papers.

    Attributes:
        name: The name users type.
        title: One line in words.
        source: Paper and algorithm.
        tables: Counted statistics, by the release's name.
        claim: Source of the claimed guarantee.
        noise: Source of the noise.
        stated: Source of H as each table's ℓ₁ sensitivity; empty if none is stated for this algorithm.
        factor: b·ε/(H log K), or b·ε/H without trees: 3 in Chowdhury & Zhou 2022.
        origin: Origin of the declared text.
        statements: Statements printed in the paper.
    """

    name: str
    title: str
    source: str
    tables: Statistics
    claim: str
    noise: str
    origin: Origin
    statements: tuple[Statement, ...] = ()
    stated: str = ""
    factor: int = 3


def central(counted: CountedAlgorithm, readings: Mapping[str, str], *, initial: Reading) -> Declaration:
    """Three tables in binary trees with Lap(3H log K/ε) on every node: ε-JDP (Lemma 5.1, Corollary 5.2).

    `initial`, `SAME_START` or `ANY_START`, gives the neighbours that the claim compares by default.

    Episode K's counts are never released (Algorithms 1 and 2: they only affect episode K + 1), so the tree has K
    − 1 leaves, and the first lies in ⌊log₂(K − 1)⌋ + 1 = ⌈log₂ K⌉ nodes. With K = 1 nothing is released; log 1 = 0 is
    not a valid scale there and is replaced by log 2.
    """
    natural = readings.get("log", "log2") == "ln"
    levels, drawn = (log(K), log(maximum(K, 2))) if natural else (ceil_log2(K), maximum(ceil_log2(K), 1))
    return _declaration(
        counted,
        neighbours(readings, initial),
        Laplace(scale=counted.factor * H * drawn / epsilon),
        Tree(leaves=K - 1, counted=levels),
        joint=Joint(),
    )


def local(counted: CountedAlgorithm, readings: Mapping[str, str]) -> Declaration:
    """Three tables of one user each with Lap(3H/ε): ε-LDP (Lemma 5.4), for any two trajectories."""
    return _declaration(
        counted, neighbours(readings, ANY_START), Laplace(scale=counted.factor * H / epsilon), PerUser(), joint=None
    )


def neighbours(readings: Mapping[str, str], initial: Reading) -> ReplaceOne:
    """Relation of the reading `initial`, or of its default."""
    chosen = initial.check(readings.get(initial.name, initial.ways[0]))
    return ReplaceOne("trajectory", initial="any" if chosen == "any" else "fixed")


def noise_of_ours(readings: Mapping[str, str], *, local: bool) -> Origin:
    """Origin of an algorithm if the available papers do not state its noise."""
    missing = "its own paper is not at hand, and those that describe it do not state its noise"
    chosen = (
        "taken is the least that makes its claim true"
        if noise_factor(readings) == 6
        else f"taken is that of Chowdhury & Zhou's {'LOCAL' if local else 'CENTRAL'}-PRIVATIZER, whose proof is about "
        "other tables"
    )
    return Origin(
        kind="reconstructed", text="the algorithm as later papers describe it", changed=f"{missing}; {chosen}"
    )


def noise_factor(readings: Mapping[str, str]) -> int:
    """Value of b·ε/(H log K) for the reading `noise`."""
    return 6 if readings.get("noise", "calibrated") == "calibrated" else 3


def _declaration(
    counted: CountedAlgorithm,
    relation: ReplaceOne,
    mechanism: Laplace,
    schedule: Tree | PerUser,
    *,
    joint: Joint | None,
) -> Declaration:
    return Declaration(
        name=counted.name,
        title=counted.title,
        source=counted.source,
        relation=relation,
        releases=tuple(
            Release(
                name,
                statistic,
                mechanism,
                stated=L1(H) if counted.stated else None,
                source=counted.stated or counted.noise,
                schedule=schedule,
                budget=PureDP(epsilon / 3) if counted.stated else None,
            )
            for name, statistic in counted.tables.items()
        ),
        claim=Claim(
            PureDP(epsilon),
            source=counted.claim,
            joint=joint,
            composition="basic" if counted.stated else None,
            statements=counted.statements,
        ),
        origin=counted.origin,
        parameters=(*SIZES, EPISODES, EPSILON),
        model="local" if joint is None else "central",
    )
