"""All that a linear value iteration needs of its users, free of any value function, as one vector a step.

In a linear MDP (Jin et al. 2020) E[V(s′) | s, a] is linear in φ for every V. Three sums over users serve all of them:
φφᵀ, φ·x(s′)ᵀ and φ·(r − ½), where x(0), …, x(S − 1) are the vertices of a regular simplex about 0 in S − 1 dimensions.
P·1 = 1 says what the S sums of φ·1{s′} add up to, and the simplex leaves that out: with M the regression of x(s′) on φ,

    E[V(s′) | s, a] = mean(V) + φᵀM·(XᵀV),    X = (x(0), …, x(S − 1))ᵀ.

The sums leave as one vector, so that one Gaussian noise protects them against the worst of all pairs of users together:
Gram matrices move most for orthogonal features, the others for parallel ones, and no pair is both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.domains import Condition
from privcheck.errors import ParameterError, TrajectoryError
from privcheck.fields import number
from privcheck.relations import Relation, ReplaceOne
from privcheck.statistics import Sensitivity, SparseDifference
from privcheck.symbols import Exact, Expr, expression, sqrt
from privcheck.symbols.computed import computed
from privcheck_algorithms.linear.steps import SLACK, LinearSteps, Weights, add_each, sum_up

Array = NDArray[np.float64]

_GRID: Final = 2.0**-26  # entries of witnesses are multiples of it, rounded towards 0: norms are at most 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTables:
    """Σ over users of (√g·φφᵀ, √b·φ·x(s′)ᵀ, √w·φ·(r − ½)), a vector a step; shape (H, d(d + 1)/2 + d(S − 1) + d).

    A Gram matrix is stored as its entries on and above the diagonal, those above times √2: the vector's Euclidean norm
    is the matrix's Frobenius norm. What is not summed takes no place.

    Attributes:
        steps: H.
        dimension: d.
        states: S, at least 1: how many may be reached.
        gram: g, above 0: with noise of variance σ² on the vector, that on φφᵀ has σ²/g. None where Gram matrices are
            known without users, and are not summed.
        successors: b, above 0.
        rewards: w, above 0; None where rewards are public and are not summed.
        least: κ in [−1, 0]: no two features have a smaller inner product. 0 of features without negative entries.
    """

    steps: Expr
    dimension: Expr
    states: Expr
    gram: Expr | None
    successors: Expr
    rewards: Expr | None
    least: Expr

    def __init__(
        self, steps: Exact | Expr, dimension: Exact | Expr, states: Exact | Expr, *, gram: Exact | Expr | None,
        successors: Exact | Expr, rewards: Exact | Expr | None, least: Exact | Expr = -1,
    ) -> None:  # fmt: skip
        given = {"steps": steps, "dimension": dimension, "states": states, "successors": successors}
        for name, value in {**given, "least": least}.items():
            object.__setattr__(self, name, number(f"{name}, of LinearTables", value))
        for name, weight in {"gram": gram, "rewards": rewards}.items():
            object.__setattr__(self, name, None if weight is None else number(f"{name}, of LinearTables", weight))

    @property
    def name(self) -> str:
        """Returns the statistic in words."""
        gram, rewards = "" if self.gram is None else "φφᵀ, ", "" if self.rewards is None else ", φ·(r − ½)"
        return f"sums of {gram}φ·x(s′){rewards}, free of V, one vector a step"

    @property
    def latex(self) -> str:
        """Returns the statistic as a formula."""
        rewards = "" if self.rewards is None else r",\ \phi (r - \tfrac12)"
        gram = "" if self.gram is None else r"\phi \phi^\top,\ "
        return rf"\textstyle\sum \left({gram}\phi\, {{x(s')}}^\top{rewards}\right)"

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that the statistic depends on."""
        return frozenset[str]().union(*(c.of.symbols for c in self.conditions))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        counts = {"steps": self.steps, "dimension": self.dimension, "states": self.states}
        weights = {"Gram matrices": self.gram, "successors": self.successors, "rewards": self.rewards}
        return (
            *(Condition(what=f"the {what} of linear tables", of=of, domain="count") for what, of in counts.items()),
            *(
                Condition(what=f"the weight of {what}", of=of, domain="positive")
                for what, of in weights.items()
                if of is not None
            ),
            Condition(what="minus the least inner product", of=-self.least, domain="nonnegative"),
            Condition(what="1 plus the least inner product", of=1 + self.least, domain="nonnegative"),
        )

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Returns what the data must satisfy; `LinearSteps` check all but the inner products (`least_product`)."""
        angles = () if self.least == expression(-1) else (f"⟨φ, ψ⟩ at least {self.least} for any two features",)
        rewards = () if self.rewards is None else ("rewards in [0, 1]",)
        return ("‖φ‖ at most 1", *angles, *rewards)

    @property
    def moved(self) -> Expr:
        """Returns F, the largest squared distance at one step when a user is replaced by any other: `move_at_most`."""
        weights = (self.gram_or_none, self.successors, self.rewards_or_none)
        return computed("F", move_at_most, self.states, *weights, self.least, whole=False)

    @property
    def gram_or_none(self) -> Expr:
        """Returns g, or 0 where Gram matrices are not summed."""
        return expression(0) if self.gram is None else self.gram

    @property
    def rewards_or_none(self) -> Expr:
        """Returns w, or 0 where rewards are not summed."""
        return expression(0) if self.rewards is None else self.rewards

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns ‖Δ‖₂² = H·F under replacement (`moved`), else H times one user's own squared norm.

        That is g‖φ‖⁴ + b(S − 1)/S·‖φ‖² + w(r − ½)²‖φ‖² ≤ g + b(S − 1)/S + w/4. Where the first step is shared there are
        only fewer neighbours. ‖·‖₁ ≤ √(numbers)·‖·‖₂ a step, and no number moves further than its step.
        """
        replaced = isinstance(relation, ReplaceOne)
        alone = self.gram_or_none + self.successors * (1 - 1 / self.states) + self.rewards_or_none / 4
        squared = self.moved if replaced else alone
        one = Sensitivity(
            l1=self.steps * sqrt(self.numbers * squared),
            l2=sqrt(self.steps * squared),
            linf=sqrt(squared),
            reason="two unit features at the worst angle, with the worst successors and rewards, at every step"
            if replaced
            else "one unit feature at every step",
        )
        return one.of_several(relation)

    @property
    def numbers(self) -> Expr:
        """Returns how many numbers leave a step."""
        d = self.dimension
        gram = expression(0) if self.gram is None else d * (d + 1) / 2
        rewards = expression(0) if self.rewards is None else d
        return gram + d * (self.states - 1) + rewards

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns (H, numbers)."""
        return (int(self.steps.number(values)), int(self.numbers.number(values)))

    def weights_at(self, values: Mapping[str, Fraction]) -> Weights:
        """Returns the three squared weights, 0 of what is not summed; rounded down."""
        gram, successors, rewards = (
            weight.number(values, rounding="down")
            for weight in (self.gram_or_none, self.successors, self.rewards_or_none)
        )
        return gram, successors, rewards

    def compute(self, data: LinearSteps, *, step: int | None = None) -> Array:
        """Returns the vectors (H, numbers), or that of one step counted from 0.

        Raises:
            TrajectoryError: There is no such step.
        """
        if step is not None and not 0 <= step < data.horizon:
            raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
        if step is None:
            return np.stack([sum_up(data, h) for h in range(data.horizon)])
        return sum_up(data, step)

    def contributions(self, data: LinearSteps, *, step: int, rows: slice) -> Array:
        """Returns the vectors of some users at one step counted from 0, (rows, numbers)."""
        return add_each(data, step, rows)

    def difference(self, pair: tuple[LinearSteps | None, LinearSteps | None]) -> SparseDifference:
        """Returns the change, flat over the vectors."""
        parts = [sign * self.compute(user) for sign, user in zip((1.0, -1.0), pair, strict=True) if user is not None]
        change: Array = np.sum(parts, axis=0).ravel()
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def candidates(self, values: Mapping[str, Fraction]) -> Iterator[tuple[LinearSteps, LinearSteps]]:
        """Yields the pairs of users that `moved` says are furthest apart, the same at every step.

        In one dimension c is ±1, and they may be nearer than F.
        """
        H, d, S = (int(size.number(values)) for size in (self.steps, self.dimension, self.states))
        weights, least = self.weights_at(values), self.least.number(values, rounding="up")
        g, b, w = weights
        top = min((2 * b * min(1, S - 1) / S + w / 2) / (4 * g), 1.0) if g > 0 else 1.0
        low = min((2 * b * (S - 1) / S + w / 2) / (4 * g), -least) if g > 0 else -least
        first = np.zeros(d)
        first[0] = 1.0
        for c, following, reward in ((top, min(1, S - 1), 0.0), (-low, 0, 1.0)):
            second = np.zeros(d)
            second[0] = c if d > 1 else math.copysign(1.0, c) if c else 0.0
            second[1:2] = math.sqrt(1 - c * c)
            second = np.trunc(second / _GRID) * _GRID
            yield (
                _same_at_all_steps(first, 0, 1.0, horizon=H, states=S, weights=weights),
                _same_at_all_steps(second, following, reward, horizon=H, states=S, weights=weights),
            )

    def record(self, values: Mapping[str, Fraction], rng: np.random.Generator) -> LinearSteps:
        """Returns one user's data: features of random directions, half of them of a few coordinates, mostly corners.

        Where κ is above −1 all features lie in the positive orthant, which keeps every κ up to 0.
        """
        H, d, S = (int(size.number(values)) for size in (self.steps, self.dimension, self.states))
        phi = rng.normal(size=(1, H, d))
        if rng.random() < 0.5:
            kept = rng.random((1, H, d)) < 2 / d
            kept[..., 0] |= ~kept.any(axis=2)
            phi = np.where(kept, phi, 0.0)
        phi /= np.linalg.norm(phi, axis=2, keepdims=True) * (1 + SLACK)
        if rng.random() < 0.25:
            phi *= rng.random((1, H, 1))
        rewards = rng.random((1, H))
        return LinearSteps(
            phi=phi if self.least.number(values) == -1 else np.abs(phi),
            following=rng.integers(0, S, (1, H)),
            rewards=np.rint(rewards) if rng.random() < 0.75 else rewards,
            states=S,
            weights=self.weights_at(values),
        )


def move_at_most(
    states: Fraction, gram: Fraction, successors: Fraction, rewards: Fraction, least: Fraction
) -> Fraction:
    """Returns F = max ‖f(φ, s, r) − f(ψ, t, q)‖² of f = (√g·φφᵀ, √b·φ·x(s)ᵀ, √w·φ·(r − ½)), exactly.

    Let c = ⟨φ, ψ⟩ for the features φ and ψ of the two. *Unit length suffices*: replace φ = tφ̂, 0 ≤ t ≤ 1, by the
    random unit vector φ ± √(1 − t²)·u, each sign with probability ½, with u a new dimension, and ψ likewise with
    another new dimension. Inner products stay c. The mean of the first user's vector is its old one, plus
    (1 − t²)uuᵀ in the Gram part, which is orthogonal to everything else; so the distance of the means is at least
    the old one, and by convexity of the squared norm the mean squared distance is at least that. Some pair of unit
    vectors with inner product c is therefore at least as far apart.

    Of unit vectors, ‖φφᵀ − ψψᵀ‖² = 2(1 − c²). From ‖x(s)‖² = (S − 1)/S and ⟨x(s), x(t)⟩ = −1/S,
    ‖φ·x(s)ᵀ − ψ·x(t)ᵀ‖² is 2(S − 1)/S − 2c(S − 1)/S where s = t and 2(S − 1)/S + 2c/S elsewhere. For a, b in
    [−½, ½], ‖aφ − bψ‖² is convex in a and in b, hence largest in corners, where it is ½(1 ∓ c). Together

        2g(1 − c²) + 2b(S − 1)/S + w/2 + (what is left, linear in c).

    For c ≥ 0 the last is largest for different successors and opposite rewards, c·(2b/S + w/2); for c < 0 for equal
    ones, |c|·(2b(S − 1)/S + w/2). Either is a parabola p·u − 2g·u² in u = |c|, with its top at u = p/4g or, where
    that is outside, at the end of u's range: 1, and −κ. Where d ≥ 2 (and S ≥ 2) a pair of unit vectors attains it.

    Args:
        states: S.
        gram: g, 0 where Gram matrices are not summed.
        successors: b.
        rewards: w.
        least: κ.
    """
    # with a single state no two successors differ
    apart = 2 * successors * min(Fraction(1), states - 1) / states + rewards / 2
    alike = 2 * successors * (1 - 1 / states) + rewards / 2

    def top(slope: Fraction, furthest: Fraction) -> Fraction:
        u = min(slope / (4 * gram), furthest) if gram else furthest
        return slope * u - 2 * gram * u**2

    return 2 * gram + alike + max(top(apart, Fraction(1)), top(alike, -least))


def least_product(phi: Array) -> float:
    """Returns the least inner product of two public features, rounded down and at most 0: the largest κ they keep.

    Args:
        phi: (S, A, d).
    """
    rows = phi.reshape(-1, phi.shape[-1])
    least = min(float((rows[i : i + 1024] @ rows.T).min()) for i in range(0, len(rows), 1024))
    return min(0.0, least - SLACK if least < 0 else 0.0)


def refuse_angles(phi: Array, least: float) -> None:
    """Refuses public features two of which have a smaller inner product than is declared.

    Raises:
        ParameterError: Two have.
    """
    found = least_product(phi)
    if found < least - 2 * SLACK:
        message = f"two features have an inner product of {found:.6g}, and none below κ = {least:g} is declared"
        raise ParameterError(f"{message}: declare a κ of no more than that, or −1", name="least", given=found)


def _same_at_all_steps(
    phi: Array, following: int, reward: float, *, horizon: int, states: int, weights: Weights
) -> LinearSteps:
    return LinearSteps(
        phi=np.broadcast_to(phi, (1, horizon, phi.size)),
        following=np.full((1, horizon), following),
        rewards=np.full((1, horizon), reward),
        states=states,
        weights=weights,
    )
