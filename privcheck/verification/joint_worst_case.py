"""Joint worst case of releases, if no single pair of neighbours is worst for all of them.

**Linear releases.** The change of a Gram matrix is largest for orthogonal vectors, that of a feature sum for opposite
ones: the sum of their separate worst cases is more than the loss of any pair. Under Gaussian noise the joint worst case
has a closed form.

One step, one vector column. User 1 has the vector x of length p·b, weights w_i·W_i, targets y_k·B_k; user 2 has z of
length q·b, w′_i·W_i, y′_k·B_k: all of p, q, w, y in [0, 1]; c is the cosine of x and z. With a_i = w_i p² and t_k = w_k
y_k p (a target's power included), primes alike, the ρ of all releases is

    F = Σ g_i (a_i² + a′_i² − 2 a_i a′_i c²) + Σ s_k (t_k² + t′_k² − 2 t_k t′_k c),

g over Gram matrices, s over feature sums: outputs·size²/(2·variance), for GOE noise half of it. Let g = Σ g_i and
s = Σ s_k.

Lemma linear-together: In two dimensions or more F, the ρ of all releases, is largest at p = q = y = y′ = 1, with every
weight at its bound or at zero. With A, A′ the sums of g_i over the weights that are at their bounds in user 1 and in
user 2, A″ over those that are in both, and B, B′, B″ likewise of s_k, F* = max over such weights of A + A′ + B + B′ +
max over κ in [0, 1] of 2B″κ − 2A″κ², attained at c = −κ, κ = min(1, B″/2A″). Proof: F(c) ≤ F(−c) for c ≥ 0, and for
c ≤ 0 F rises in every y; so y = y′ = 1 and c = −κ. For fixed p, q and κ the part of one weight is g(w²p⁴ + w′²q⁴ −
2ww′p²q²κ²) + s(w²p² + w′²q² + 2ww′pqκ), convex in w and in w′: it is largest at ends of their ranges. Then F = Ap⁴ +
A′q⁴ + Bp² + B′q² + 2B″u − 2A″u² with u = pqκ in [0, pq], and its largest over u rises in p and in q. ∎ If all releases
carry the same weight, or none, that is 2g + 2s + s²/2g at c = −s/2g where s ≤ 2g, else 4s at c = −1.

Lemma linear-in-one-dimension: In one dimension, with the same weight or none, F* = max over q in [0, 1] of g(1 − q²)² +
s(1 + q)². Proof: c = −1, y = y′ = 1: F = g(A − A′)² + s(B + B′)² with A = wp², B = wp, convex in (A, B), which fills B²
≤ A ≤ B: largest on the parabola A = B², that is at w = 1, and likewise for user 2. Then F = (p + q)²(g(p − q)² + s)
rises in the larger of p and q, which is 1. ∎ In q it has a maximum at q = (1 − √(1 − 2s/g))/2 where 2s ≤ g, and one at
q = 1. With different weights F ≤ g + 4s, each term at its largest.

Lemma shared-first-step: With a shared first step F ≤ s + g over the Gram matrices that carry a weight, each at its
largest. Proof: x = z there.

The first is attained by the pair that `candidates` makes; its change is diagonal, which noise on and above the diagonal
protects least. Steps and columns add up.

Lemma m-trajectories: Of a user with m trajectories F is at most m²·F*, attained by m copies of the worst pair; in a
tree with c_v of them in node v, at most Σ c_v²·F*. Proof: D − D′ is the sum of m such differences (one that is missing
is that of x = 0), and F the square of a norm of it.

Lemma rewards-and-costs: Where a user's reward r and cost 1 − r at a step go to the same cell of two tables, with losses
α(r), β(1 − r) of a coordinate that changes by that amount, both convex and 0 at 0, a step loses at most 2·max(α(1),
β(1)) under replacement, a shared first one α(1) + β(1); under add/remove max(α(1), β(1)). Rewards of 1 or of 0
throughout attain it. Proof: one user loses at most max(α(1), β(1)) in both, and two users in one cell α(|r − r′|) +
β(|r − r′|) ≤ α(1) + β(1).

For users with several trajectories the separate worst cases are charged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privcheck.accounting.engine.gdp import gdp_delta, gdp_epsilon
from privcheck.declare.declaration import Declaration
from privcheck.declare.mechanisms import PRICED, lacks
from privcheck.declare.relations import Relation, ReplaceOne, most_trajectories
from privcheck.declare.releases import Release
from privcheck.declare.schedules import Tree, load_of
from privcheck.declare.statistics import FeatureSums, GramMatrices
from privcheck.declare.statistics.linear import step_bounds
from privcheck.declare.statistics.sensitivities import find_complement
from privcheck.terms.guarantees import ApproxDP
from privcheck.terms.symbols import expression, to_float
from privcheck.verification.units import order_of, unit_of

_LONGEST = 10_000  # steps; beyond, the separate worst cases are charged
MOST_WEIGHTS = 5  # by which releases of one column are told apart
_UP = 1 + 1e-12  # covers the roundings of a few dozen operations


def cost_together(declaration: Declaration, values: Mapping[str, Fraction]) -> Fraction | None:
    """Joint worst case of all releases in the claim's unit, exact or rounded up; None if unknown.

    Args:
        declaration: All releases linear with fresh Gaussian noise under replacement, or tables with rewards and costs.
        values: Its parameters.
    """
    if declaration.others:  # only additive noise is looked at together
        return None
    unit = unit_of(declaration, values)
    if unit == "pure":
        return _largest(declaration, lambda releases: _rewards_and_costs(declaration, releases, values, pure=True))
    rho = rho_together(declaration, values)
    if rho is None or unit == "rho":
        return rho
    if unit == "renyi":  # αρ: exact for Gaussian noise, above D_α for others
        return rho * Fraction(order_of(declaration, values, rounding="up"))
    gaussian = all(r.mechanism.law.gaussian for r in declaration.noisy)
    return _on_the_curve(declaration, rho, values) if gaussian else None


def _on_the_curve(declaration: Declaration, rho: Fraction, values: Mapping[str, Fraction]) -> Fraction:
    """μ = √2ρ, or the ε at the claim's δ, or δ at ε = 0, of Gaussian noise; rounded up."""
    unit, claim = unit_of(declaration, values), declaration.claim.guarantee
    mu = math.nextafter(math.sqrt(to_float(2 * rho, rounding="up")), math.inf)
    if unit == "mu":
        return Fraction(mu)
    assert isinstance(claim, ApproxDP)
    delta = claim.delta.number(values, rounding="down")
    return Fraction(gdp_delta(mu, 0.0) if unit == "delta" else gdp_epsilon(mu, delta))


def rho_together(declaration: Declaration, values: Mapping[str, Fraction]) -> Fraction | None:
    """Joint worst case in zCDP, exact or rounded up, the largest over a partition; None if unknown."""
    relation = declaration.relation
    linear = all(
        isinstance(r.statistic, GramMatrices | FeatureSums) and r.mechanism.law.gaussian for r in declaration.noisy
    )
    if linear and isinstance(relation, ReplaceOne):
        fixed = relation.initial == "fixed"
        trees = [r.schedule for r in declaration.noisy if isinstance(r.schedule, Tree)]
        in_leaves = any(tree.leaves_of_a_user != expression(1) for tree in trees)
        if in_leaves and len({r.schedule for r in declaration.noisy}) > 1:
            return None  # a user's trajectories are in leaves of one tree, and together elsewhere
        several = 1 if in_leaves else most_trajectories(relation, values) ** 2
        one = _largest(declaration, lambda releases: _linear(releases, values, fixed=fixed))
        return None if one is None else one * several
    return _largest(declaration, lambda releases: _rewards_and_costs(declaration, releases, values, pure=False))


def _largest(declaration: Declaration, of: Callable[[Sequence[Release]], Fraction | None]) -> Fraction | None:
    """The largest over the groups of a partition; None if one is not derived or noise is not fresh."""
    if declaration.shared_draws or any(type(r.mechanism) not in PRICED for r in declaration.noisy):
        return None
    losses = [of(declaration.seen_by(group)) for group in declaration.groups]
    known = [one for one in losses if one is not None]
    return max(known) if len(known) == len(losses) else None


def _linear(releases: Sequence[Release], values: Mapping[str, Fraction], *, fixed: bool) -> Fraction | None:
    """Σ F* over vector columns and steps; None if a column's bounds differ or no proof applies."""
    columns: dict[str, list[Release]] = {}
    for release in releases:
        columns.setdefault(_statistic(release).vector.name, []).append(release)
    shapes = {r.statistic.shape(values)[0] for r in releases}
    if len(shapes) > 1 or max(shapes) > _LONGEST:
        return None
    parts = [_column(column, values, max(shapes), fixed=fixed) for column in columns.values()]
    return None if None in parts else Fraction(math.fsum(part for part in parts if part is not None) * _UP)


def _column(releases: Sequence[Release], values: Mapping[str, Fraction], horizon: int, *, fixed: bool) -> float | None:
    statistics = [_statistic(r) for r in releases]
    if len({s.vector for s in statistics}) > 1 or len({s.shape(values)[-1] for s in statistics}) > 1:
        return None
    pulls = pulls_by_weight(releases, values, horizon, rounding="up")
    gram, sums = (sum((part[i] for part in pulls.values()), np.zeros(horizon)) for i in (0, 1))
    weighted = math.fsum(float(part[0][0]) for name, part in pulls.items() if name)
    if statistics[0].shape(values)[-1] == 1:
        top = _one_dimension(gram, sums) if len(pulls) == 1 else gram + 4 * sums
    elif len(pulls) <= MOST_WEIGHTS:
        top = worst_weights(pulls).loss
    else:
        return None
    if fixed:
        top[0] = sums[0] + weighted
    return math.fsum(top)


def _one_dimension(gram: NDArray[np.float64], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    q = shorter(gram, sums)
    squares: NDArray[np.float64] = np.maximum(gram * (1 - q * q) ** 2 + sums * (1 + q) ** 2, 4 * sums)
    return squares


def shorter(gram: NDArray[np.float64], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The q in [0, 1] that maximises g(1 − q²)² + s(1 + q)²: relative length of the second user's number."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(2 * sums <= gram, (1 - np.sqrt(np.maximum(1 - 2 * sums / gram, 0.0))) / 2, 1.0)
    inner = np.where(gram > 0, inner, 1.0)
    better = gram * (1 - inner * inner) ** 2 + sums * (1 + inner) ** 2 >= 4 * sums
    return np.where(better, inner, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorstWeights:
    """Worst case of releases of one vector column in two dimensions or more, at every step.

    Attributes:
        loss: (H,) F*.
        cosines: (H,) of both users' vectors.
        kept: For each user and each weight, (H,) whether it is at its bound; otherwise it is 0.
    """

    loss: NDArray[np.float64]
    cosines: NDArray[np.float64]
    kept: tuple[Mapping[str, NDArray[np.bool_]], Mapping[str, NDArray[np.bool_]]]


Pulls = Mapping[str, tuple[NDArray[np.float64], NDArray[np.float64]]]


def worst_weights(pulls: Pulls) -> WorstWeights:
    """The worst weights; among equally bad ones those at their bounds.

    Args:
        pulls: As of `pulls_by_weight`, of up to 5 weights.
    """
    horizon = len(next(iter(pulls.values()))[0])
    names = sorted(name for name in pulls if name)
    loss, cosines = np.full(horizon, -1.0), np.zeros(horizon)
    ones = [{name: np.ones(horizon, dtype=bool) for name in names} for _ in range(2)]
    for at_bound in itertools.product((True, False), repeat=2 * len(names)):
        sides = [{"": True, **dict(zip(names, half, strict=True))} for half in _halves(at_bound)]
        alone, common = np.zeros((2, horizon)), np.zeros((2, horizon))
        for name, part in pulls.items():
            held = [side[name] for side in sides]
            alone += sum(held) * np.stack(part)
            common += all(held) * np.stack(part)
        with np.errstate(divide="ignore", invalid="ignore"):
            cosine = np.where(common[1] < 2 * common[0], common[1] / (2 * common[0]), common[1] > 0)
        found = alone.sum(axis=0) + 2 * common[1] * cosine - 2 * common[0] * cosine**2
        better = found > loss * _UP
        loss, cosines = np.where(better, found, loss), np.where(better, -cosine, cosines)
        for one, side in zip(ones, sides, strict=True):
            for name in names:
                one[name] = np.where(better, side[name], one[name])
    return WorstWeights(loss=loss, cosines=cosines, kept=(ones[0], ones[1]))


def _halves(whole: tuple[bool, ...]) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    return whole[: len(whole) // 2], whole[len(whole) // 2 :]


def pulls_by_weight(
    releases: Sequence[Release], values: Mapping[str, Fraction], horizon: int, *, rounding: Literal["up", "down"]
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The numbers g and s, (H,), of all releases that carry a weight, by its name; the name is empty for those without.

    Args:
        releases: Of one vector column.
        values: The parameters.
        horizon: H.
        rounding: Direction of rounding, except for the last operations.
    """
    found: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
    other: Literal["up", "down"] = "down" if rounding == "up" else "up"
    for release in releases:
        statistic = _statistic(release)
        variance = release.mechanism.spread.number(values, rounding=other)
        halves = 2.0 if getattr(release.mechanism, "kind", "") == "goe" else 1.0
        size = step_bounds(statistic.size, values, horizon, rounding=rounding)
        outputs = load_of(release.schedule).squares.number(values, rounding=rounding)
        name = statistic.weight.name if statistic.weight is not None else ""
        parts = found.setdefault(name, (np.zeros(horizon), np.zeros(horizon)))
        parts[0 if isinstance(statistic, GramMatrices) else 1][:] += outputs * size**2 / (2 * halves * variance)
    return found


def _statistic(release: Release) -> GramMatrices | FeatureSums:
    statistic = release.statistic
    assert isinstance(statistic, GramMatrices | FeatureSums)
    return statistic


def _rewards_and_costs(
    declaration: Declaration, releases: Sequence[Release], values: Mapping[str, Fraction], *, pure: bool
) -> Fraction | None:
    """Joint loss of tables some of which hold rewards and some costs; None unless there are both."""
    sides = {r.name: find_complement(r.statistic) for r in releases}
    if not {"rewards", "costs"} <= set(sides.values()):
        return None
    laws = [r.mechanism.law for r in releases]
    if any(lacks(law, "unit_loss") or (pure and law.unbounded) for law in laws):
        return None
    if most_trajectories(declaration.relation, values) > 1:
        return None
    horizon = next(r.statistic.shape(values)[0] for r in releases if sides[r.name])
    unit = {"rewards": Fraction(0), "costs": Fraction(0)}
    rest = Fraction(0)
    for release in releases:
        if side := sides[release.name]:
            unit[side] += _unit_move(release, values, pure=pure)
        else:
            rest += _alone(release, declaration.relation, values, pure=pure)
    most = max(unit.values())
    relation = declaration.relation
    if not isinstance(relation, ReplaceOne):
        return horizon * most + rest
    if relation.initial == "any":
        return 2 * horizon * most + rest
    return 2 * (horizon - 1) * most + sum(unit.values()) + rest


def _unit_move(release: Release, values: Mapping[str, Fraction], *, pure: bool) -> Fraction:
    """Loss of all outputs of a release by one cell that changes by 1: exact, or rounded up."""
    exact = release.mechanism.spread.rational(values)
    spread = Fraction(release.mechanism.spread.number(values, rounding="down")) if exact is None else exact
    times = release.schedule.times.rational(values)
    outputs = Fraction(release.schedule.times.number(values, rounding="up")) if times is None else times
    return outputs * release.mechanism.law.unit_loss(spread, pure=pure)


def _alone(release: Release, relation: Relation, values: Mapping[str, Fraction], *, pure: bool) -> Fraction:
    """Loss of one release at its own worst case: exact, or rounded up."""
    charged = release.charged(relation)
    if charged.l1.rational(values) == 0:
        return Fraction(0)
    cost = release.mechanism.pure(charged) if pure else release.mechanism.zcdp(charged)
    assert cost is not None
    known = cost.rational(values)
    return Fraction(cost.number(values, rounding="up")) if known is None else known
