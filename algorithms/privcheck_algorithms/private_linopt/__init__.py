"""Private-LinOpt-VI and Private-LinOpt-PO (Zhou 2022): two declarations with the same four tree counters.

Released are four binary-tree counters per step (section 6.1): the transition counters Σ φφᵀ and Σ φ·V(s′) with φ = ∫ψV,
the reward counters Σ ϕϕᵀ and Σ ϕ·r. Both algorithms use the same PRIVATIZER (Definitions 6.2 and 6.3) and clip Q at H −
h + 1 (Algorithms 1 and 2), so that they differ only in their use of the releases.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from privcheck.declare.declaration import L2, Claim, Declaration, Joint, Parameter, Release
from privcheck.declare.mechanisms import Gaussian, SymmetricGaussian
from privcheck.declare.relations import ReplaceOne
from privcheck.declare.schedules import Tree
from privcheck.declare.statements import Origin
from privcheck.declare.statistics import Column, FeatureSums, GramMatrices
from privcheck.runtime.registry import Algorithm, AuditInstance, Reading
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import (
    Expr,
    H,
    K,
    ceil,
    ceil_log2,
    d,
    delta,
    epsilon,
    expression,
    h,
    log,
    maximum,
    sqrt,
    symbol,
)
from privcheck_algorithms.linear.audit_worlds import mixture_audit_world
from privcheck_algorithms.papers import LINOPT_RATE, MIXTURE, THEOREM_6_4
from privcheck_algorithms.private_linopt import conformance
from privcheck_algorithms.private_linopt.agent import ETA_SCALE, OPTIONS, PRINTED, policy_player, value_player

d1, d2 = symbol("d1", "count"), symbol("d2", "count")

_SIZES = (
    Parameter(name="H", default=20, kind="count", meaning="steps of an episode"),
    Parameter(name="K", default=20_000, kind="count", meaning="episodes, a user each"),
)
_COMMON = (Parameter(name="d", default=10, kind="count", meaning="dimension of all features"),)
_OWN = (
    Parameter(name="d1", default=10, kind="count", meaning="dimension of the transition features"),
    Parameter(name="d2", default=10, kind="count", meaning="dimension of the reward features"),
)
_BUDGET = (
    Parameter(name="epsilon", default="1", kind="positive", meaning="ε of the claim, nats"),
    Parameter(name="delta", default="1e-5", kind="probability", meaning="δ of the claim"),
)

LOG = Reading(
    name="log",
    ways=("log2", "ln"),
    meaning="m = ⌈log K⌉ of Lemma 6.1, whose base the paper leaves open: log2 is ⌈log₂ K⌉, ln is ⌈ln K⌉",
)
DIMENSIONS = Reading(
    name="dimensions",
    ways=("common", "own"),
    meaning="common: d for both features and in the noise, as Theorem 6.5 substitutes; own: d1 and d2, Δ = d1·H²",
)
VALUES = Reading(
    name="values",
    ways=("clipped", "crude"),
    meaning="clipped: V of step h + 1 is at most H − h, and ‖φ‖ in proportion; crude: V ≤ H and ‖φ‖ ≤ √d·H throughout",
)
READINGS = (LOG, DIMENSIONS, VALUES)


def value_iteration(readings: Mapping[str, str]) -> Declaration:
    """Private-LinOpt-VI (Algorithm 1, with the PRIVATIZER of section 6.1)."""
    return _declaration("private-linopt-vi", "Private-LinOpt-VI: optimistic value iteration", "Algorithm 1", readings)


def policy_optimization(readings: Mapping[str, str]) -> Declaration:
    """Private-LinOpt-PO (Algorithm 2, with the PRIVATIZER of section 6.1)."""
    return _declaration("private-linopt-po", "Private-LinOpt-PO: optimistic policy steps", "Algorithm 2", readings)


def _declaration(name: str, title: str, algorithm: str, readings: Mapping[str, str]) -> Declaration:
    common = readings.get("dimensions", "common") == "common"
    return Declaration(
        name=name,
        title=f"{title} in linear mixture MDPs, binary-tree counters",
        source=f"Zhou 2022, arXiv:2201.07052, {algorithm} and section 6.1",
        relation=ReplaceOne("trajectory"),
        releases=_releases(readings, d if common else d1, d if common else d2),
        claim=Claim(
            ApproxDP(epsilon, delta),
            source="Theorem 6.4",
            joint=Joint(sees=("billboard", "own data")),  # Theorem 6.4's proof: a = π(s), π from the counters alone
            order_only=True,  # Theorem 6.4: O(ε, δ)
            composition="basic",  # Theorem 6.4's proof: four counters, then H steps
            statements=(THEOREM_6_4,),
        ),
        origin=Origin(
            kind="printed",
            text=f"Zhou 2022, arXiv:2201.07052, {algorithm} and section 6.1, with the constant 1 for O(·)",
        ),
        parameters=(*_SIZES, *(_COMMON if common else _OWN), *_BUDGET),
    )


def _releases(readings: Mapping[str, str], transition: Expr, reward: Expr) -> tuple[Release, ...]:
    clipped = readings.get("values", "clipped") == "clipped"
    reach = H - h if clipped else H  # V_{h+1}: Algorithm 1; crude: Assumption 2
    # Assumption 1 is about V in [0, H]; ∫ψV is linear in V, so that a V in [0, c·H] has ‖φ‖ ≤ c·√d₁·H
    phi = Column("phi of V", sqrt(transition) * reach, r"\phi")
    varphi = Column("phi of r", 1, r"\varphi")
    value, gain = Column("V", reach, "V"), Column("r", 1, "r")
    # Theorem 6.4's proof: one user's norm, for each step; all H steps together √H times that
    steps, long, short = sqrt(H), transition * H**2, sqrt(transition) * H**2
    return (
        _counter(
            "transition gram",
            GramMatrices(name="Gram matrices of φ", steps=H, dimension=transition, vector=phi),
            long,
            readings,
            stated=L2(steps * long),
            source="Theorem 6.4",
        ),
        _counter(
            "transition values",
            FeatureSums(name="φ·V sums", steps=H, dimension=transition, vector=phi, target=value),
            short,
            readings,
            stated=L2(steps * short),
            source="Theorem 6.4",
        ),
        _counter(
            "reward gram",
            GramMatrices(name="Gram matrices of ϕ", steps=H, dimension=reward, vector=varphi),
            expression(1),
            readings,
            stated=L2(steps),
            source="Theorem 6.4",
        ),
        _counter(
            "reward sums",
            FeatureSums(name="ϕ·r sums", steps=H, dimension=reward, vector=varphi, target=gain),
            expression(1),
            readings,
            stated=L2(steps),
            source="Theorem 6.4",
        ),
    )


def _counter(
    name: str,
    statistic: GramMatrices | FeatureSums,
    bound: Expr,
    readings: Mapping[str, str],
    *,
    stated: L2,
    source: str,
) -> Release:
    """One of the four counters, with all H steps.

    Args:
        name: Name of the release.
        statistic: Statistic of a leaf of the tree.
        bound: Δ, the sensitivity per step for the noise calibration.
        readings: The readings.
        stated: Δ for all steps together.
        source: Source in the paper.
    """
    count = ceil_log2(K) if readings.get("log", "log2") == "log2" else ceil(log(K))
    levels = maximum(1, count)  # K = 1 has no release; 1 keeps its noise a law
    # Theorem 6.5's proof: σ = HΔ√(32·m·ln(4H/δ))/ε, for an (ε/4H, δ/4H) a counter and step
    variance = 32 * levels * (H * bound / epsilon) ** 2 * log(4 * H / delta)
    symmetric = isinstance(statistic, GramMatrices)  # section 6.1: one draw for (p, q) and (q, p), p ≤ q
    return Release(
        name,
        statistic,
        SymmetricGaussian(variance=variance, kind="upper") if symmetric else Gaussian(variance=variance),
        stated=stated,
        source=source,
        schedule=Tree(leaves=K - 1, counted=count),  # section 6.1; Lemma 6.1
        budget=ApproxDP(epsilon / 4, delta / 4),  # Theorem 6.4's proof, for each of H steps with ε/H and δ/H
    )


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
    conformance=conformance.VI,
    rate=LINOPT_RATE,
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
    conformance=conformance.PO,
    rate=LINOPT_RATE,
)

__all__ = ["PO", "VI"]
