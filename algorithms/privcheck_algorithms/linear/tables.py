"""Statistics of users for linear value iteration, independent of value functions, as one vector per step.

In a linear MDP (Jin et al. 2020) E[V(s′) | s, a] is linear in φ for every V. Three sums over users serve all of them:
φφᵀ, φ·x(s′)ᵀ and φ·(r − ½), where x(0), …, x(S − 1) are the vertices of a regular simplex about 0 in S − 1 dimensions.
P·1 = 1 determines the total of the S sums of φ·1{s′}, and the simplex leaves it out: with M the regression of x(s′) on
φ,

    E[V(s′) | s, a] = mean(V) + φᵀM·(XᵀV),    X = (x(0), …, x(S − 1))ᵀ.

In this order: users' data (`LinearSteps`) and their sums, the statistic `LinearTables`, rounding of features.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics import Sensitivity, SparseDifference
from privcheck.errors import ParameterError, TrajectoryError
from privcheck.terms.parameters import Condition, number
from privcheck.terms.symbols import Exact, Expr, expression, sqrt
from privcheck.terms.symbols.functions import computed

Array = NDArray[np.float64]
Weights = tuple[float, float, float]

SLACK: Final = 1e-12  # relative: a norm of 1 comes out as 1 + a few roundings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearSteps:
    """Users' data, step by step, as `LinearTables` sum them up.

    Attributes:
        phi: (users, H, d) features, of norm at most 1.
        following: (users, H) the states reached, from 0.
        rewards: (users, H) rewards in [0, 1].
        states: S, the number of states that can be reached.
        weights: Squared weights of Gram matrix, successors and rewards, as `LinearTables.weights_at` has them; 0 for
            parts that are not summed.

    Raises:
        TrajectoryError: A shape is wrong or a value out of range; the message names the first user and step.
    """

    phi: Array
    following: NDArray[np.int64]
    rewards: Array
    states: int
    weights: Weights

    def __post_init__(self) -> None:
        if self.phi.ndim != 3 or not self.following.shape == self.rewards.shape == self.phi.shape[:2]:
            got = f"phi {self.phi.shape}, following {self.following.shape}, rewards {self.rewards.shape}"
            raise TrajectoryError(f"expected phi (users, H, d), following and rewards (users, H), got {got}")
        norms = np.sqrt(np.einsum("uhi,uhi->uh", self.phi, self.phi))
        _within("the norm of phi", norms, 1 + SLACK, "divide all features by a public bound on their length")
        _within("the state reached", self.following, self.states - 1, "states are counted from 0 to S − 1")
        _within("the reward", self.rewards, 1, "scale rewards to [0, 1] by a public bound")
        if len(self.weights) != 3 or not all(0 <= w < math.inf for w in self.weights):
            raise TrajectoryError(f"expected three squared weights, at least 0, got {self.weights}")

    @property
    def horizon(self) -> int:
        """Number of steps H."""
        return int(self.phi.shape[1])

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.phi[0, 0, :2])
        first = f"phi = ({shown}{', …' if self.phi.shape[2] > 2 else ''}), next state {self.following[0, 0]}"
        return f"{first}, reward {self.rewards[0, 0]:.4g} at step 1, and so on for {self.horizon} steps"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The tables of one or many vectors, in their own units.

    Attributes:
        gram: (…, d, d) Σφφᵀ, symmetric; None if not summed.
        successors: (…, d, S − 1) Σφ·x(s′)ᵀ.
        rewards: (…, d) Σφ·(r − ½); None if not summed.
    """

    gram: Array | None
    successors: Array
    rewards: Array | None


def unpack(vectors: Array, *, dimension: int, states: int, weights: Weights) -> Tables:
    """Tables in vectors (…, numbers), exact or noisy: noise of variance σ² is σ²/g in units of φφᵀ.

    Args:
        vectors: Vectors from `LinearTables.compute`.
        dimension: d.
        states: S.
        weights: `LinearTables.weights_at`.
    """
    d, (g, b, w) = dimension, weights
    rows, columns = np.triu_indices(d)
    triangle, moves, gram = rows.size if g > 0 else 0, d * (states - 1), None
    if g > 0:
        entries = vectors[..., :triangle] / np.where(rows == columns, 1.0, math.sqrt(2)) / math.sqrt(g)
        gram = np.empty((*vectors.shape[:-1], d, d))
        gram[..., rows, columns] = entries
        gram[..., columns, rows] = entries
    successors = vectors[..., triangle : triangle + moves].reshape(*vectors.shape[:-1], d, states - 1) / math.sqrt(b)
    rewards = vectors[..., triangle + moves :] / math.sqrt(w) if w > 0 else None
    return Tables(gram=gram, successors=successors, rewards=rewards)


@functools.cache
def simplex(states: int) -> Array:
    """Vertices x(s) of a regular simplex about 0, (S, S − 1): XᵀX = I and XXᵀ = I − 11ᵀ/S.

    >>> simplex(2).round(4).tolist()
    [[0.7071], [-0.7071]]
    """
    vertices = np.zeros((states, states - 1))
    for k in range(1, states):  # Helmert's contrasts
        vertices[:k, k - 1] = 1 / math.sqrt(k * (k + 1))
        vertices[k, k - 1] = -k / math.sqrt(k * (k + 1))
    vertices.flags.writeable = False  # shared by all who ask
    return vertices


@functools.cache
def _upper_triangle(dimension: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
    """Rows and columns of a symmetric matrix's upper triangle, and factors that keep its Frobenius norm."""
    rows, columns = np.triu_indices(dimension)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))


def sum_up(data: LinearSteps, step: int) -> Array:
    """Vector of one step from 0, (numbers,)."""
    phi, following = data.phi[:, step], data.following[:, step]
    reached = np.zeros((data.states, phi.shape[1]))
    np.add.at(reached, following, phi)
    return pack(phi.T @ phi, reached.T, (data.rewards[:, step] - 0.5) @ phi, weights=data.weights)


def add_each(data: LinearSteps, step: int, rows: slice) -> Array:
    """Contribution of some users to the vector of one step, (rows, numbers)."""
    phi, following = data.phi[rows, step], data.following[rows, step]
    reached = np.zeros((*phi.shape, data.states))
    reached[np.arange(len(phi)), :, following] = phi
    gains = (data.rewards[rows, step] - 0.5)[:, np.newaxis] * phi
    return pack(phi[:, :, np.newaxis] * phi[:, np.newaxis], reached, gains, weights=data.weights)


def pack(gram: Array, reached: Array, gains: Array, *, weights: Weights) -> Array:
    """Vectors (…, numbers) of sums over users; `unpack` reads them.

    Args:
        gram: (…, d, d) Σφφᵀ; not read if its weight is 0.
        reached: (…, d, S) Σφ·1{s′}.
        gains: (…, d) Σφ·(r − ½); not read if their weight is 0.
        weights: As `LinearSteps.weights`.
    """
    g, b, w = np.sqrt(weights)
    parts = [(reached @ simplex(reached.shape[-1]) * b).reshape(*reached.shape[:-2], -1)]
    if g > 0:
        rows, columns, factors = _upper_triangle(reached.shape[-2])
        parts.insert(0, gram[..., rows, columns] * factors * g)
    if w > 0:
        parts.append(gains * w)
    return np.concatenate(parts, axis=-1)


def _within(what: str, numbers: NDArray[np.float64] | NDArray[np.int64], most: float, remedy: str) -> None:
    wrong = ~((numbers >= 0) & (numbers <= most))
    if wrong.any():
        user, step = (int(i) for i in np.argwhere(wrong)[0])
        message = f"{what} is {numbers[user, step]:.6g} for user {user} at step {step + 1}, expected 0 to {most:.6g}"
        raise TrajectoryError(f"{message}; {int(wrong.sum())} break that: {remedy}")


_GRID: Final = 2.0**-26  # entries of witnesses are multiples of it, rounded towards 0: norms are at most 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTables:
    """Σ over users of (√g·φφᵀ, √b·φ·x(s′)ᵀ, √w·φ·(r − ½)), a vector per step; shape (H, d(d + 1)/2 + d(S − 1) + d).

    A Gram matrix is stored as its entries on and above the diagonal, those above times √2: the vector's Euclidean norm
    is the matrix's Frobenius norm. Parts that are not summed take no space.

    The sums are released as one vector, so that one Gaussian noise protects them against the worst joint pair of users:
    Gram matrices differ most for orthogonal features, the others for parallel ones, and no pair is both.

    Attributes:
        steps: H.
        dimension: d.
        states: S, at least 1: the number of states that can be reached.
        gram: g, above 0: with noise of variance σ² on the vector, that on φφᵀ has σ²/g. None if Gram matrices are
            public and not summed.
        successors: b, above 0.
        rewards: w, above 0; None if rewards are public and not summed.
        least: κ in [−1, 0], a lower bound on the inner product of two features; 0 for features without negative
            entries.
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
        """The statistic in words."""
        gram, rewards = "" if self.gram is None else "φφᵀ, ", "" if self.rewards is None else ", φ·(r − ½)"
        return f"sums of {gram}φ·x(s′){rewards}, free of V, one vector a step"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        rewards = "" if self.rewards is None else r",\ \phi (r - \tfrac12)"
        gram = "" if self.gram is None else r"\phi \phi^\top,\ "
        return rf"\textstyle\sum \left({gram}\phi\, {{x(s')}}^\top{rewards}\right)"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return frozenset[str]().union(*(c.of.symbols for c in self.conditions))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions on its parameters."""
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
        """Conditions on the data; `LinearSteps` checks all but the inner products (`least_product`)."""
        angles = () if self.least == expression(-1) else (f"⟨φ, ψ⟩ at least {self.least} for any two features",)
        rewards = () if self.rewards is None else ("rewards in [0, 1]",)
        return ("‖φ‖ at most 1", *angles, *rewards)

    @property
    def moved(self) -> Expr:
        """Largest squared distance F at one step when a user is replaced by any other: `move_at_most`."""
        weights = (self.gram_or_none, self.successors, self.rewards_or_none)
        return computed("F", move_at_most, self.states, *weights, self.least, whole=False)

    @property
    def gram_or_none(self) -> Expr:
        """Weight g, or 0 if Gram matrices are not summed."""
        return expression(0) if self.gram is None else self.gram

    @property
    def rewards_or_none(self) -> Expr:
        """Weight w, or 0 if rewards are not summed."""
        return expression(0) if self.rewards is None else self.rewards

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Sensitivity ‖Δ‖₂² = H·F under replacement (`moved`), else H times one user's squared norm.

        That is g‖φ‖⁴ + b(S − 1)/S·‖φ‖² + w(r − ½)²‖φ‖² ≤ g + b(S − 1)/S + w/4. If the first step is shared there are
        only fewer neighbours. ‖·‖₁ ≤ √(numbers)·‖·‖₂ per step, and no entry changes more than its step.
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
        """Number of entries per step."""
        d = self.dimension
        gram = expression(0) if self.gram is None else d * (d + 1) / 2
        rewards = expression(0) if self.rewards is None else d
        return gram + d * (self.states - 1) + rewards

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Shape (H, numbers)."""
        return (int(self.steps.number(values)), int(self.numbers.number(values)))

    def weights_at(self, values: Mapping[str, Fraction]) -> Weights:
        """The three squared weights, 0 for parts that are not summed; rounded down."""
        gram, successors, rewards = (
            weight.number(values, rounding="down")
            for weight in (self.gram_or_none, self.successors, self.rewards_or_none)
        )
        return gram, successors, rewards

    def compute(self, data: LinearSteps, *, step: int | None = None) -> Array:
        """Vectors (H, numbers), or that of one step from 0.

        Raises:
            TrajectoryError: The step does not exist.
        """
        if step is not None and not 0 <= step < data.horizon:
            raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
        if step is None:
            return np.stack([sum_up(data, h) for h in range(data.horizon)])
        return sum_up(data, step)

    def contributions(self, data: LinearSteps, *, step: int, rows: slice) -> Array:
        """Vectors of some users at one step from 0, (rows, numbers)."""
        return add_each(data, step, rows)

    def difference(self, pair: tuple[LinearSteps | None, LinearSteps | None]) -> SparseDifference:
        """Change, flat over the vectors."""
        parts = [sign * self.compute(user) for sign, user in zip((1.0, -1.0), pair, strict=True) if user is not None]
        change: Array = np.sum(parts, axis=0).ravel()
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def candidates(self, values: Mapping[str, Fraction]) -> Iterator[tuple[LinearSteps, LinearSteps]]:
        """Yield the pairs of users that are furthest apart by `moved`, the same at every step.

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
        """Random user: features in random directions, half of them with few coordinates, mostly extreme values.

        If κ is above −1, all features are in the positive orthant, which satisfies every κ up to 0.
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
    """Exact F = max ‖f(φ, s, r) − f(ψ, t, q)‖² of f = (√g·φφᵀ, √b·φ·x(s)ᵀ, √w·φ·(r − ½)).

    Lemma unit-length: With c = ⟨φ, ψ⟩ for the features φ and ψ of the two users, of length at most 1, some pair of unit
    vectors with inner product c is at least as far apart in f. Proof: replace φ = tφ̂, 0 ≤ t ≤ 1, by the random unit
    vector φ ± √(1 − t²)·u, each sign with probability ½, with u a new dimension, and ψ likewise with another new
    dimension. Inner products stay c. The mean of the first user's vector is its old one, plus (1 − t²)uuᵀ in the Gram
    part, which is orthogonal to everything else; so the distance of the means is at least the old one, and by convexity
    of the squared norm the mean squared distance is at least that.

    Lemma table-move: Unit vectors are at most 2g(1 − c²) + 2b(S − 1)/S + w/2 + p·|c| apart, p = 2b/S + w/2 for c ≥ 0
    and 2b(S − 1)/S + w/2 for c < 0; where d ≥ 2 (and S ≥ 2) a pair attains it. Proof: ‖φφᵀ − ψψᵀ‖² = 2(1 − c²). From
    ‖x(s)‖² = (S − 1)/S and ⟨x(s), x(t)⟩ = −1/S, ‖φ·x(s)ᵀ − ψ·x(t)ᵀ‖² is 2(S − 1)/S − 2c(S − 1)/S if s = t and
    2(S − 1)/S + 2c/S otherwise. For a, b in [−½, ½], ‖aφ − bψ‖² is convex in a and in b, hence largest at the corners,
    with value ½(1 ∓ c). For c ≥ 0 the rest, linear in c, is largest for different successors and opposite rewards, for
    c < 0 for equal ones.

    Either is a parabola p·u − 2g·u² in u = |c|, with its top at u = p/4g or, where that is outside, at the end of u's
    range: 1, and −κ.

    Args:
        states: S.
        gram: g, 0 if Gram matrices are not summed.
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
    """Least inner product of two public features, rounded down and at most 0: the largest valid κ.

    Args:
        phi: (S, A, d) features.
    """
    rows = phi.reshape(-1, phi.shape[-1])
    least = min(float((rows[i : i + 1024] @ rows.T).min()) for i in range(0, len(rows), 1024))
    return min(0.0, least - SLACK if least < 0 else 0.0)


def refuse_angles(phi: Array, least: float) -> None:
    """Raise an error for public features with a smaller inner product than declared.

    Raises:
        ParameterError: Two features have a smaller inner product.
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


_MOST_STEPS: Final = 20_000
_NEAR: Final = 1e-3  # relative: the ellipsoid's volume is then within (1 + _NEAR)^d of the smallest one's
_SPANNED: Final = 1e-9  # relative: singular values below are 0 but for roundings
_INSIDE: Final = 1 + 1e-13  # norms are at most 1 after the map, roundings included


def round_features(phi: Array) -> Array:
    """Features in rounded coordinates, (S, A, k): ‖φ‖ ≤ 1, with k ≤ d the dimension that they span.

    Khachiyan & Todd: of the smallest ellipsoid {x: xᵀM⁻¹x ≤ k} around the features, M = Σ w·φφᵀ is the D-optimal
    design's. Its weights are the fixed point of w ← w·φᵀM⁻¹φ/k (Titterington 1976), under which det M grows.

    In rounded coordinates the features fill the unit ball best, so that noise hides least of them. Noise on sums of φ
    is the same in every direction, and is scaled to the longest feature. If all features are in a thin ellipsoid, its
    narrow directions are lost in noise. Any linear map of the features is public, and the MDP stays linear under it:
    after the map that makes the smallest ellipsoid about 0 around all features the unit ball, no direction is narrow.

    Args:
        phi: (S, A, d) public features, independent of users' data.
    """
    S, A, d = phi.shape
    rounded: Array = _round(np.ascontiguousarray(phi, dtype=np.float64).tobytes(), d).reshape(S, A, -1)
    return rounded


@functools.lru_cache(maxsize=32)
def _round(data: bytes, d: int) -> Array:
    rows = np.frombuffer(data).reshape(-1, d)
    atoms = np.unique(rows, axis=0)
    _, sizes, axes = np.linalg.svd(atoms, full_matrices=False)
    k = max(1, int((sizes > _SPANNED * sizes[0]).sum()))
    spanned = atoms @ axes[:k].T
    weights = np.full(len(atoms), 1 / len(atoms))
    squares = np.full(len(atoms), float(k))
    design = np.eye(k)
    if sizes[0] > 0:
        for _ in range(_MOST_STEPS):
            design = (spanned * weights[:, np.newaxis]).T @ spanned
            squares = np.einsum("ni,ni->n", spanned @ np.linalg.inv(design), spanned)
            if squares.max() <= k * (1 + _NEAR):
                break
            weights *= squares / k
    root = np.linalg.cholesky(np.linalg.inv(design))
    rounded: Array = rows @ (axes[:k].T @ root)
    longest = np.linalg.norm(rounded, axis=1).max()
    rounded /= max(longest, np.finfo(float).tiny) * _INSIDE
    rounded.flags.writeable = False
    return rounded
