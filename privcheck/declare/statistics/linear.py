"""Sums over users of x xᵀ and of y·x, and the smallest eigenvalue of a Gram matrix.

x is a vector of norm at most b_h, y a target in [0, B_h], and both may carry a weight w in [0, W_h] from past releases
(1/σ̄² in weighted regression). Bounds may depend on the step, the symbol `h`: V_{h+1} ≤ H − h where Q is clipped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privcheck.data.trajectories import Regressors
from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.terms.parameters import Condition, instance, number, text
from privcheck.terms.symbols import Exact, Expr, Rounding, expression, in_step, sqrt, sum_steps

_TOLERANCE = 1e-9  # relative: features are floats, and a norm of 1 comes out as 1 + a few roundings


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `Regressors` and the bound on it.

    Attributes:
        name: Its name there.
        bound: On the norm of a vector, on a target in [0, bound], on a weight; may contain `h`.
        latex: Its formula.
    """

    name: str
    bound: Expr
    latex: str

    def __init__(self, name: str, bound: Exact | Expr, latex: str) -> None:
        text("name, of Column", name)
        text("latex, of Column", latex, empty=True)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bound", number(f"bound, of Column {name!r}", bound))
        object.__setattr__(self, "latex", latex)


@dataclass(frozen=True, slots=True, kw_only=True)
class GramMatrices:
    """Σ w·x xᵀ over users, one symmetric d × d matrix per step; shape (H, d, d).

    Attributes:
        name: The statistic in words.
        steps: H.
        dimension: d.
        vector: x.
        weight: w; None for 1.
    """

    name: str
    steps: Expr
    dimension: Expr
    vector: Column
    weight: Column | None = None

    symmetric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_fields(self)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        return _conditions(self, self.vector, None, self.weight)

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        w = self.weight.latex if self.weight else ""
        return rf"\textstyle\sum {w} {self.vector.latex} {self.vector.latex}^\top"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return (self.steps.symbols | self.dimension.symbols | self.size.symbols) - {"h"}

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data; `check_bounds` checks each."""
        return _preconditions(self.vector, None, self.weight)

    @property
    def size(self) -> Expr:
        """W_h·b_h², the largest ‖w·x xᵀ‖_F at step h."""
        return (self.weight.bound if self.weight else expression(1)) * self.vector.bound**2

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """‖D‖_F² ≤ 2·size² per step under replacement, size² under add/remove.

        Lemma gram-change: With w‖x‖² and v‖z‖² at most size, ‖w xxᵀ − v zzᵀ‖_F² ≤ 2·size², attained by orthogonal x and
        z if d ≥ 2. Proof: it is w²‖x‖⁴ + v²‖z‖⁴ − 2wv⟨x, z⟩².

        If the dimension is the number 1 it is (w x² − v z²)² ≤ size², attained by z = 0. With a shared first step x = z
        there, and only the weights may differ, as far as is known: |w − v|·‖x‖² ≤ size. D has d² entries: ‖D‖₁ ≤
        d·‖D‖_F, attained for even d.
        """
        replaced = isinstance(relation, ReplaceOne) and self.dimension != expression(1)
        squares = (2 if replaced else 1) * sum_steps(self.steps, self.size**2)
        norms = (sqrt(2) if replaced else 1) * sum_steps(self.steps, self.size)
        together = "orthogonal vectors: two matrices of rank one" if replaced else "one matrix of rank one"
        if isinstance(relation, ReplaceOne) and relation.initial == "fixed":
            first = sum_steps(1, self.size)
            kept = first if self.weight is not None else expression(0)
            squares = squares + kept**2 - (2 if replaced else 1) * first**2
            norms = norms + kept - (sqrt(2) if replaced else 1) * first
            together += ", whose vectors are shared at the first step,"
        one = Sensitivity(
            l1=self.dimension * norms,
            l2=sqrt(squares),
            linf=sqrt(squares),
            reason=f"{together} at each step, of Frobenius norm at most {self.size}",
        )
        return one.of_several(relation)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """(H, d, d)."""
        d = int(self.dimension.number(values))
        return (int(self.steps.number(values)), d, d)

    def compute(self, data: Regressors, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the matrices (H, d, d), or that of one step counted from 0.

        Raises:
            TrajectoryError: There is no such step or column.
        """
        x, w = _columns(data, self.vector, self.weight, step)
        matrices: NDArray[np.float64] = np.einsum("uhi,uhj->hij", x * w[..., np.newaxis], x)
        return matrices if step is None else matrices[0]

    def contributions(self, data: Regressors, *, step: int, rows: slice) -> NDArray[np.float64]:
        """w·x xᵀ of some users at one step counted from 0, (rows, d, d), symmetric to the last bit."""
        x, w = (column[rows, 0] for column in _columns(data, self.vector, self.weight, step))
        matrices: NDArray[np.float64] = x[:, :, np.newaxis] * x[:, np.newaxis] * w[:, np.newaxis, np.newaxis]
        return matrices

    def difference(self, pair: tuple[Regressors | None, Regressors | None]) -> SparseDifference:
        """Change in the entries on and above the diagonal, flat over (H, d, d).

        Only coordinates in which some user's vector is not 0 are considered: the pairs made here have two, whatever d
        is.
        """
        d = next(user for user in pair if user is not None).column("vectors", self.vector.name).shape[2]
        support, reduced = _check_support(pair, self.vector.name)
        change = _subtract(self.compute, reduced)
        rows, columns = np.triu_indices(support.size)
        steps = np.arange(change.shape[0])[:, np.newaxis]
        cells = (steps * d * d + support[rows] * d + support[columns]).ravel()
        entries = change[:, rows, columns].ravel()
        mirrored = np.broadcast_to(rows != columns, (change.shape[0], rows.size)).ravel()
        moved = entries != 0
        return SparseDifference(cells=cells[moved], change=entries[moved], mirrored=mirrored[moved])


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSums:
    """Σ w·y·x over users, one vector per step; shape (H, d).

    Attributes:
        name: The statistic in words.
        steps: H.
        dimension: d.
        vector: x.
        target: y, at least 0.
        power: 1, or 2 for y²·x; any whole number from 1 on.
        weight: w; None for 1.
    """

    name: str
    steps: Expr
    dimension: Expr
    vector: Column
    target: Column
    power: int = 1
    weight: Column | None = None

    symmetric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_fields(self)
        instance(f"target, of {self.name}", self.target, (Column,))
        if type(self.power) is not int or self.power < 1:
            message = f"power, of {self.name}: expected a whole number, at least 1, got {self.power!r}"
            raise DeclarationError(f"{message}; a target near 0 has no bounded inverse")

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        return _conditions(self, self.vector, self.target, self.weight)

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        w = self.weight.latex if self.weight else ""
        y = self.target.latex if self.power == 1 else rf"{self.target.latex}^{self.power}"
        return rf"\textstyle\sum {w} {self.vector.latex} {y}"

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return (self.steps.symbols | self.dimension.symbols | self.size.symbols) - {"h"}

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data; `check_bounds` checks each."""
        return _preconditions(self.vector, self.target, self.weight)

    @property
    def size(self) -> Expr:
        """W_h·B_h^power·b_h, the largest ‖w·y·x‖ at step h."""
        w = self.weight.bound if self.weight else expression(1)
        return w * self.target.bound**self.power * self.vector.bound

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """2·size per step under replacement (opposite vectors), size under add/remove; steps add in squares.

        With a shared first step only weight and target differ there: ‖(w·y − w′·y′)x‖ ≤ size. ‖·‖₁ ≤ √d·‖·‖₂, attained
        by vectors with equal entries.
        """
        factor = 2 if isinstance(relation, ReplaceOne) else 1
        together = "opposite vectors" if factor == 2 else "one vector"
        squares, norms = factor**2 * sum_steps(self.steps, self.size**2), factor * sum_steps(self.steps, self.size)
        if isinstance(relation, ReplaceOne) and relation.initial == "fixed":
            first = sum_steps(1, self.size)
            squares, norms = squares - 3 * first**2, norms - first
            together += ", of which only the targets differ at the first step,"
        one = Sensitivity(
            l1=sqrt(self.dimension) * norms,
            l2=sqrt(squares),
            linf=sqrt(squares),
            reason=f"{together} at each step, of norm at most {self.size}",
        )
        return one.of_several(relation)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """(H, d)."""
        return (int(self.steps.number(values)), int(self.dimension.number(values)))

    def compute(self, data: Regressors, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the vectors (H, d), or that of one step counted from 0.

        Raises:
            TrajectoryError: There is no such step or column.
        """
        x, w = _columns(data, self.vector, self.weight, step)
        steps = slice(None) if step is None else slice(step, step + 1)
        y = data.column("targets", self.target.name)[:, steps] ** self.power
        sums: NDArray[np.float64] = np.einsum("uhi,uh->hi", x, w * y)
        return sums if step is None else sums[0]

    def contributions(self, data: Regressors, *, step: int, rows: slice) -> NDArray[np.float64]:
        """w·y·x of some users at one step counted from 0, (rows, d)."""
        x, w = (column[rows, 0] for column in _columns(data, self.vector, self.weight, step))
        y = data.column("targets", self.target.name)[rows, step] ** self.power
        vectors: NDArray[np.float64] = x * (w * y)[:, np.newaxis]
        return vectors

    def difference(self, pair: tuple[Regressors | None, Regressors | None]) -> SparseDifference:
        """Change of the statistic, flat over (H, d)."""
        change = _subtract(self.compute, pair).ravel()
        moved = np.flatnonzero(change)
        return SparseDifference(cells=moved.astype(np.int64), change=change[moved])


LinearStatistic = GramMatrices | FeatureSums


def _check_fields(statistic: LinearStatistic) -> None:
    """Validate the shared fields and convert numbers to exact expressions.

    Raises:
        DeclarationError: A field is of another type.
    """
    text("name, of a linear statistic", statistic.name)
    for size in ("steps", "dimension"):
        object.__setattr__(statistic, size, number(f"{size}, of {statistic.name}", getattr(statistic, size)))
    instance(f"vector, of {statistic.name}", statistic.vector, (Column,))
    instance(f"weight, of {statistic.name}", statistic.weight, (Column,), none=True)


def _conditions(
    statistic: LinearStatistic, vector: Column, target: Column | None, weight: Column | None
) -> tuple[Condition, ...]:
    bounds = (
        Condition(
            what=f"the bound on {column.name} in {statistic.name}",
            of=column.bound,
            domain="nonnegative",
            steps=statistic.steps,
        )
        for column in (vector, target, weight)
        if column is not None
    )
    return (
        Condition(what=f"the steps of {statistic.name}", of=statistic.steps, domain="count"),
        Condition(what=f"the dimension of {statistic.name}", of=statistic.dimension, domain="count"),
        *bounds,
    )


def step_bounds(
    bound: Expr, values: Mapping[str, Fraction], horizon: int, *, rounding: Rounding = "down"
) -> NDArray[np.float64]:
    """A bound at h = 1, …, H; shape (H,).

    If it is a polynomial in h with values that are whole numbers below 2⁵³, floats hold all of it exactly.
    """
    if "h" not in bound.symbols:
        return np.full(horizon, bound.number(values, rounding=rounding))
    if (polynomial := in_step(bound, values)) is not None:
        coefficients, apart = polynomial
        largest = sum(abs(c) * horizon**power for power, c in enumerate(coefficients))
        if largest < 2**53 and all(c.denominator == 1 for c in coefficients):
            steps = np.arange(1, horizon + 1, dtype=np.int64)
            bounds = sum((int(c) * steps**power for power, c in enumerate(coefficients)), np.zeros_like(steps))
            exactly = bounds.astype(np.float64)
            for step in (int(s) for s in apart if s.denominator == 1 and 1 <= s <= horizon):
                exactly[step - 1] = bound.number({**values, "h": Fraction(step)}, rounding=rounding)
            return exactly
    return np.array([bound.number({**values, "h": Fraction(s)}, rounding=rounding) for s in range(1, horizon + 1)])


def check_bounds(data: Regressors, statistic: LinearStatistic, values: Mapping[str, Fraction]) -> None:
    """Check that the data meets the bounds that the sensitivity depends on; nothing is clipped.

    Raises:
        TrajectoryError: A vector is longer than its bound, or a target or weight is out of its range; the message names
            the user, the step, the value and the bound.
    """
    target = statistic.target if isinstance(statistic, FeatureSums) else None
    norms = np.linalg.norm(data.column("vectors", statistic.vector.name), axis=2)
    _within(f"the norm of {statistic.vector.name}", norms, statistic.vector, values)
    for kind, column in (("targets", target), ("weights", statistic.weight)):
        if column is not None:
            _within(column.name, data.column(kind, column.name), column, values)


def _within(name: str, numbers: NDArray[np.float64], column: Column, values: Mapping[str, Fraction]) -> None:
    bounds = step_bounds(column.bound, values, numbers.shape[1])
    wrong = (numbers > bounds * (1 + _TOLERANCE)) | (numbers < 0)
    if wrong.any():
        user, step = (int(i) for i in np.argwhere(wrong)[0])
        message = (
            f"{name} is {numbers[user, step]:.6g} for user {user} at step {step + 1}, expected 0 to {bounds[step]:.6g} "
            f"({column.bound}); {int(wrong.sum())} values in all break the bound assumed by the sensitivity: rescale "
            "the data, or declare the larger bound"
        )
        raise TrajectoryError(message)


def _preconditions(vector: Column, target: Column | None, weight: Column | None) -> tuple[str, ...]:
    preconditions = [f"‖{vector.name}‖ at most {vector.bound}"]
    preconditions += [f"{column.name} in [0, {column.bound}]" for column in (target, weight) if column is not None]
    return tuple(preconditions)


def _columns(
    data: Regressors, vector: Column, weight: Column | None, step: int | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if step is not None and not 0 <= step < data.horizon:
        raise TrajectoryError(f"expected a step in 0..{data.horizon - 1}, got {step}")
    steps = slice(None) if step is None else slice(step, step + 1)
    x = data.column("vectors", vector.name)[:, steps]
    w = data.column("weights", weight.name)[:, steps] if weight else np.ones(x.shape[:2])
    return x, w


def _check_support(
    pair: tuple[Regressors | None, Regressors | None], vector: str
) -> tuple[NDArray[np.int64], tuple[Regressors | None, Regressors | None]]:
    """Coordinates in which a vector of either user is not 0, and the users restricted to those."""
    users = [user.column("vectors", vector) for user in pair if user is not None]
    support = np.flatnonzero(np.any([(x != 0).any(axis=(0, 1)) for x in users], axis=0)).astype(np.int64)
    first, second = (
        None if user is None else replace(user, vectors={vector: user.column("vectors", vector)[:, :, support]})
        for user in pair
    )
    return support, (first, second)


def _subtract(
    compute: Callable[[Regressors], NDArray[np.float64]], pair: tuple[Regressors | None, Regressors | None]
) -> NDArray[np.float64]:
    parts = [sign * compute(user) for sign, user in zip((1.0, -1.0), pair, strict=True) if user is not None]
    difference: NDArray[np.float64] = np.sum(parts, axis=0)
    return difference


@dataclass(frozen=True, slots=True)
class SmallestEigenvalue:
    """λ_min of Σ xxᵀ over users; shape (1, 1).

    Attributes:
        dimension: d.
        vector: x, with its bound.
    """

    dimension: Expr
    vector: Column

    def __init__(self, *, dimension: Exact | Expr, vector: Column) -> None:
        instance("vector, of SmallestEigenvalue", vector, (Column,))
        object.__setattr__(self, "dimension", number("dimension, of SmallestEigenvalue", dimension))
        object.__setattr__(self, "vector", vector)

    weight: ClassVar[Column | None] = None

    @property
    def steps(self) -> Expr:
        """The number 1."""
        return expression(1)

    @property
    def name(self) -> str:
        """The statistic in words."""
        return f"smallest eigenvalue of the Gram matrix of {self.vector.name}"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        return rf"\lambda_{{\min}}\left(\textstyle\sum {self.vector.latex}{self.vector.latex}^\top\right)"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        return (
            Condition(what=f"the dimension of {self.vector.name}", of=self.dimension, domain="count"),
            Condition(what=f"the bound on {self.vector.name}", of=self.vector.bound, domain="nonnegative"),
        )

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return self.dimension.symbols | self.vector.bound.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data."""
        return (f"‖{self.vector.name}‖ at most {self.vector.bound}",)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """b², under each relation: λ_min(G) ≤ λ_min(G + xxᵀ) ≤ λ_min(G) + ‖x‖² (Weyl).

        Lemma least-eigenvalue: Adding, removing or replacing a user of ‖x‖ ≤ b changes λ_min(G) by at most b². Source:
        Weyl. Proof: λ_min(G) ≤ λ_min(G + xxᵀ) ≤ λ_min(G) + ‖x‖². Replacing x by z changes it by λ_min(G + xxᵀ) −
        λ_min(G + zzᵀ), and both lie within b² above λ_min(G).

        Raises:
            DeclarationError: The bound depends on the step, although there is only one.
        """
        if "h" in self.vector.bound.symbols:
            message = f"{self.name}: expected a bound that does not depend on the step, got {self.vector.bound}"
            raise DeclarationError(f"{message}; it is one Gram matrix, of one step")
        b = self.vector.bound**2
        reason = (
            f"a user along the emptiest axis, among users along all others (Weyl), of norm at most {self.vector.bound}"
        )
        return Sensitivity(l1=b, l2=b, linf=b, reason=reason).of_several(relation)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """(1, 1)."""
        return (1, 1)

    def compute(self, data: Regressors, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute λ_min: (1, 1), or (1,) for step 0.

        Raises:
            TrajectoryError: There is no such column, or a user has several steps.
        """
        rows = self._rows(data)
        value = np.array([[float(np.linalg.eigvalsh(rows.T @ rows)[0])]])
        return value if step is None else value[step]

    def difference(self, pair: tuple[Regressors | None, Regressors | None]) -> SparseDifference:
        """Change by the pair among others who cover all axes but the first, with more weight than the pair.

        They are the worst others for a user along the first axis, which then has the least weight in D and in D′.
        """
        known = [self._rows(user) for user in pair if user is not None]
        d = known[0].shape[1]
        most = 1 + 2 * sum(float(np.square(rows).sum()) for rows in known)
        others = np.diag([0.0] + [most] * (d - 1))
        all_rows = (np.zeros((0, d)) if user is None else self._rows(user) for user in pair)
        values = [float(np.linalg.eigvalsh(others + rows.T @ rows)[0]) for rows in all_rows]
        change = np.array([values[0] - values[1]])
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def _rows(self, data: Regressors) -> NDArray[np.float64]:
        """The vectors, (users, d).

        Raises:
            TrajectoryError: A user has several steps.
        """
        x = data.column("vectors", self.vector.name)
        if x.shape[1] != 1:
            message = f"{self.name}: expected one vector per user, got {x.shape[1]} steps"
            raise TrajectoryError(f"{message}; give each step's vector a separate row")
        return x[:, 0]
