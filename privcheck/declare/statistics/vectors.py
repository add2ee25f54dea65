"""Sums of users' vectors, each clipped to a norm, as private gradient methods release them.

If a user has several records, either each record's vector is clipped, and m of them change the sum by m times as much,
or the sum of a user's records is (`clip_users`), which changes it by one norm however many there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privcheck.declare.relations import Relation, ReplaceOne, most_trajectories
from privcheck.declare.statistics.base import Sensitivity, SparseDifference, expect_data
from privcheck.errors import TrajectoryError
from privcheck.support.display import Brief
from privcheck.terms.parameters import Condition, number, one_of, text
from privcheck.terms.symbols import Exact, Expr, sqrt

Per = Literal["record", "user"]
Ball = Literal["l1", "l2", "linf"]
_ORDERS: Final[Mapping[str, float]] = {"l1": 1, "l2": 2, "linf": math.inf}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Vectors(Brief):
    """One vector per record, or per user, clipped: v·min(1, C/‖v‖) in ℓ₂ or another norm.

    Attributes:
        rows: (records, d), finite; given at any length, clipped on construction.
        norm: C, to which every row is clipped.
        per: What a row belongs to: a "record", or a "user" with all records, as `clip_users` sums them.
        ball: The norm: "l1", "l2" or "linf".

    Raises:
        TrajectoryError: The rows are not finite, not of that shape, or C is not positive.
    """

    rows: NDArray[np.float64]
    norm: float
    per: Per = "record"
    ball: Ball = "l2"

    def __post_init__(self) -> None:
        one_of("per, of Vectors", self.per, get_args(Per))
        rows = _numbers("Vectors", self.rows)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            message = f"Vectors: expected finite numbers of shape (users, d), got shape {rows.shape}"
            raise TrajectoryError(f"{message}; give one row per record, without NaN or infinity")
        number_given = isinstance(self.norm, int | float | np.number) and not isinstance(self.norm, bool)
        if not (number_given and math.isfinite(self.norm) and self.norm > 0):
            message = f"Vectors: expected a norm above 0 to clip to, a float, got {self.norm!r:.100}"
            raise TrajectoryError(f"{message}; give the declared one, as norm.number(values)")
        one_of("ball, of Vectors", self.ball, _ORDERS)
        lengths = np.linalg.norm(rows, ord=_ORDERS[self.ball], axis=1, keepdims=True)
        object.__setattr__(self, "rows", rows * np.minimum(1.0, self.norm / np.maximum(lengths, self.norm)))

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Norm of every row, (records,)."""
        lengths: NDArray[np.float64] = np.linalg.norm(self.rows, ord=_ORDERS[self.ball], axis=1)
        return lengths

    @property
    def users(self) -> int:
        """Number of rows, of users or of one user's records."""
        return int(self.rows.shape[0])

    @property
    def horizon(self) -> int:
        """Number of steps: one, as vectors have none."""
        return 1

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.4g}" for x in self.rows[0, :2])
        more = f" and {self.users - 1} more" if self.users > 1 else ""
        return f"the vector ({shown}{', …' if self.rows.shape[1] > 2 else ''}){more}"


def _numbers(where: str, given: object) -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"{where}: expected numbers of shape (records, d), got {given!r:.100} ({error})"
        raise TrajectoryError(f"{message}; give one row per record, all of one length") from error


def clip_users(rows: NDArray[np.float64], owners: NDArray[np.int64], *, norm: float, ball: Ball = "l2") -> Vectors:
    """Sum each user's vectors and clip the sum, one row per user: per-user clipping.

    Args:
        rows: (records, d) vectors of any length.
        owners: (records,) the user of each record; any whole numbers.
        norm: C.
        ball: The norm: "l1", "l2" or "linf".

    Raises:
        TrajectoryError: There is not one owner per row, or the rows are not finite vectors.

    >>> import numpy as np
    >>> clip_users(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 1.0]]), np.array([7, 7, 9]), norm=1).rows.tolist()
    [[0.6000000000000001, 0.8], [0.0, 1.0]]
    """
    vectors, whose = _numbers("clip_users", rows), np.asarray(owners)
    if vectors.ndim != 2 or whose.shape != vectors.shape[:1] or not np.issubdtype(whose.dtype, np.integer):
        message = f"clip_users: expected one owner, a whole number, for each row of (records, d), got {whose.shape}"
        raise TrajectoryError(f"{message} for {vectors.shape}; number the users")
    users, owner = np.unique(whose, return_inverse=True)
    summed = np.zeros((users.size, vectors.shape[1]))
    np.add.at(summed, owner, vectors)
    return Vectors(rows=summed, norm=norm, per="user", ball=ball)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippedSums:
    """Σ of v·min(1, C/‖v‖) over records, or over users, in ℓ₂ or another norm; shape (1, d).

    Attributes:
        dimension: d.
        norm: C, in the unit of the vectors.
        of: The vectors that are summed, in words.
        per: Unit of clipping: each "record", of which a user may have several (`ReplaceOne(trajectories=m)`), or the
            sum of all records of a "user".
        ball: The norm: "l2" for Gaussian noise, "l1" for Laplace noise, "linf" for entries of equal size.
    """

    dimension: Expr
    norm: Expr
    of: str
    per: Per
    ball: Ball

    def __init__(
        self, *, dimension: Exact | Expr, norm: Exact | Expr, of: str = "clipped gradients", per: Per = "record",
        ball: Ball = "l2",
    ) -> None:  # fmt: skip
        text("of, of ClippedSums", of)
        one_of("ball, of ClippedSums", ball, _ORDERS)
        object.__setattr__(self, "ball", ball)
        one_of("per, of ClippedSums", per, get_args(Per))
        object.__setattr__(self, "per", per)
        object.__setattr__(self, "dimension", number("dimension, of ClippedSums", dimension))
        object.__setattr__(self, "norm", number("norm, of ClippedSums", norm))
        object.__setattr__(self, "of", of)

    @property
    def name(self) -> str:
        """The statistic in words."""
        each = "each" if self.per == "record" else "a user"
        norm = "norm" if self.ball == "l2" else f"ℓ{'₁' if self.ball == 'l1' else '∞'} norm"
        return f"sum of {self.of}, of {norm} at most {self.norm} {each}"

    @property
    def latex(self) -> str:
        """The statistic as a formula."""
        order = {"l1": "1", "l2": "2", "linf": r"\infty"}[self.ball]
        return rf"\textstyle\sum_u g_u \min\left(1,\ {self.norm.latex()}/\lVert g_u\rVert_{{{order}}}\right)"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's numbers with the range required of each."""
        return (
            Condition(what="the dimension of its vectors", of=self.dimension, domain="count"),
            Condition(what="the norm to which its vectors are clipped", of=self.norm, domain="positive"),
        )

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return self.dimension.symbols | self.norm.symbols

    @property
    def preconditions(self) -> tuple[str, ...]:
        """Conditions on the data; `Vectors` are clipped to meet them."""
        what = "every vector" if self.per == "record" else "the sum of all vectors of a user"
        return (f"{what} is clipped to norm {self.norm}",)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """‖Δ‖ ≤ 2C in its own norm under replacement, C otherwise.

        Two opposite vectors of norm C, or one alone, attain it.

        Lemma norm-ball: For an ℓ₂ ball, ‖Δ‖₁ is √d times the bound on ‖Δ‖₂; for ℓ∞, ‖Δ‖₂ is √d and ‖Δ‖₁ d times it; for
        ℓ₁ all norms are equal. Proof: the inequalities between norms, attained by entries of equal size, for ℓ₁ on an
        axis.

        If records are clipped, m of a user change the sum by m times as much; if users are, their number changes
        nothing.
        """
        most = (2 if isinstance(relation, ReplaceOne) else 1) * self.norm
        reason = f"two opposite vectors of norm {self.norm}"
        reason = reason if isinstance(relation, ReplaceOne) else f"one vector of norm {self.norm}"
        root = sqrt(self.dimension)
        l1, l2 = {"l1": (most, most), "l2": (root * most, most), "linf": (self.dimension * most, root * most)}[
            self.ball
        ]
        one = Sensitivity(l1=l1, l2=l2, linf=most, reason=reason)
        return one.of_several(relation) if self.per == "record" else one

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """(1, d)."""
        return (1, int(self.dimension.number(values)))

    def compute(self, data: Vectors, *, step: int | None = None) -> NDArray[np.float64]:
        """Sum the clipped vectors: (1, d), or (d,) for step 0.

        Raises:
            TrajectoryError: Records are given although users are clipped, or the other way round, or the norm differs.
        """
        summed = self._sum(data)
        return summed[np.newaxis] if step is None else summed

    def contributions(self, data: Vectors, *, step: int, rows: slice) -> NDArray[np.float64]:
        """Clipped vectors of some rows, (rows, d); a user's may be several.

        Raises:
            TrajectoryError: As for `compute`.
        """
        self._check(data)
        return data.rows[rows]

    def difference(self, pair: tuple[Vectors | None, Vectors | None]) -> SparseDifference:
        """Change of the sum."""
        first, second = (0.0 if user is None else self._sum(user) for user in pair)
        change = np.asarray(first - second, dtype=np.float64)
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def extreme_pairs(
        self, relation: Relation, values: Mapping[str, Fraction]
    ) -> Iterator[tuple[Vectors | None, Vectors | None]]:
        """Yield users along one axis, and with entries of equal size: the largest changes in ℓ₂, and in ℓ₁."""
        d, norm = int(self.dimension.number(values)), self.norm.number(values, rounding="down")
        entry = norm / {"l1": d, "l2": math.sqrt(d), "linf": 1}[self.ball]
        axis, flat = np.zeros((1, d)), np.full((1, d), entry)
        axis[0, 0] = norm
        records = most_trajectories(relation, values) if self.per == "record" else 1
        for row in (axis, flat) if d > 1 else (axis,):
            rows = np.repeat(row, records, axis=0)
            user = Vectors(rows=rows, norm=norm, per=self.per, ball=self.ball)
            other = (
                Vectors(rows=-rows, norm=norm, per=self.per, ball=self.ball)
                if isinstance(relation, ReplaceOne)
                else None
            )
            yield user, other
            yield other, user

    def _sum(self, data: Vectors) -> NDArray[np.float64]:
        self._check(data)
        summed: NDArray[np.float64] = data.rows.sum(axis=0)
        return summed

    def _check(self, data: Vectors) -> None:
        expect_data(self.name, data, Vectors, "wrap them, Vectors(rows=…, norm=…)")
        if data.per != self.per:
            message = f"{self.name}: expected one row a {self.per}, got one row a {data.per}"
            raise TrajectoryError(
                f"{message}; clip the vectors of a user together with `clip_users`, and declare per='user'"
            )
        if data.ball != self.ball:
            message = f"{self.name}: expected vectors clipped in {self.ball}, got {data.ball}"
            raise TrajectoryError(f"{message}; make them with ball={self.ball!r}")
