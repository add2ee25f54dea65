"""A statistic of any records with a sensitivity stated by its author, and a search for records that refute it.

The search (`furthest_pairs`) changes one user among others: alone, among few, and among as many as common thresholds on
the number of users; the others typical, all equal, or in corners; the user last, first and in the middle, as statistics
may depend on the order. Corners come from a generator with possible but mostly extreme draws (`CornerGenerator`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privcheck.declare.relations import Relation, ReplaceOne
from privcheck.declare.statistics.base import Sensitivity, SparseDifference
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.terms.parameters import Condition, function, number, text, truth
from privcheck.terms.symbols import Exact, Expr, expression

Rows = tuple[Any, ...]
Measure = Callable[[Rows], NDArray[np.float64]]
_SMALL: Final = (0, 1, 2, 3)  # others, beside whom all users are compared
LARGE_CROWDS: Final = (  # others, among whom few users are compared: one less than a threshold, or as many
    4, 5, 7, 8, 9, 10, 14, 15, 16, 19, 20, 24, 25, 29, 30, 31, 32, 49, 50, 63, 64, 99, 100, 199, 200, 499, 500, 999,
    1000,
)  # fmt: skip
_FEW: Final = 6  # users who are compared among many others
_CELLS: Final = 2_000_000  # of all tables of one crowd
_FURTHER: Final = 1 + 1e-9
_MOST_WORK: Final = 5_000_000  # cells and rows that are gone through among many others


def furthest_pairs(
    measure: Measure, typical: Sequence[Any], corners: Sequence[Any], *, replaced: bool, stepwise: bool = False
) -> Iterator[tuple[Rows, Rows]]:
    """Yield neighbours, each with a larger change of the statistic than all before it in one of three norms.

    Args:
        measure: The statistic of a tuple of records, flat; data for which it raises, or is not finite, is skipped.
        typical: Records as their author draws them.
        corners: Records from corners, and their mirror images.
        replaced: Whether neighbours differ by a replaced record; otherwise by an added or removed one.
        stepwise: Whether pairs with a smaller change of an entry than all before them are yielded too.
    """
    search = _Search(measure, replaced=replaced, stepwise=stepwise)
    users = [*corners, *typical]
    for size in _SMALL:
        for others in _crowds(size, typical, corners):
            for place in sorted({0, size // 2, size}):
                yield from search.among(others, place, users)
    few = [*search.worst, *users][:_FEW]
    for turn, size in enumerate(LARGE_CROWDS):
        if (size + search.cells) * len(few) * len(LARGE_CROWDS) > _MOST_WORK:
            continue
        for others in _crowds(size, typical, corners):
            yield from search.among(others, (size, size // 2, 0)[turn % 3], few)


def _crowds(size: int, typical: Sequence[Any], corners: Sequence[Any]) -> Iterator[Rows]:
    """Yield the others: typical ones, ones in corners, all equal, and half equal to one and half to another."""
    yield tuple(typical[i % len(typical)] for i in range(size))
    if size == 0 or not corners:
        return
    yield tuple(corners[i % len(corners)] for i in range(size))
    for alike in corners[:2]:
        yield (alike,) * size
    yield tuple(corners[i * len(corners[:2]) // size] for i in range(size))


class _Search:
    """State of the search: the largest changes so far."""

    def __init__(self, measure: Measure, *, replaced: bool, stepwise: bool) -> None:
        self._measure, self._replaced, self._stepwise = measure, replaced, stepwise
        self._most = np.zeros(3)  # in ℓ₁, ℓ₂, ℓ∞
        self._least = np.inf  # move of an entry
        self.cells = 1
        self.worst: list[Any] = []

    def among(self, others: Rows, place: int, users: Sequence[Any]) -> Iterator[tuple[Rows, Rows]]:
        """Yield pairs among the same others with larger changes than all before them."""
        sets = [(*others[:place], user, *others[place:]) for user in users]
        known = [
            (rows, user, table) for rows, user in zip(sets, users, strict=True) if (table := self._of(rows)) is not None
        ]
        if not known:
            return
        known = [one for one in known if one[2].shape == known[0][2].shape]
        self.cells = known[0][2].size
        known = known[: max(2, _CELLS // max(1, self.cells * len(known)))]
        tables = np.stack([table for _, _, table in known])
        if self._replaced:
            for i in range(len(known) - 1):
                found = self._best(np.abs(tables[i + 1 :] - tables[i]))
                for j in found:
                    self.worst = [known[i][1], known[i + 1 + j][1], *self.worst[:2]]
                    yield known[i][0], known[i + 1 + j][0]
            return
        without = self._of(others)
        if without is None or without.shape != tables[0].shape:
            return
        for j in self._best(np.abs(tables - without)):
            self.worst = [known[j][1], *self.worst[:3]]
            yield known[j][0], others
            yield others, known[j][0]

    def _of(self, rows: Rows) -> NDArray[np.float64] | None:
        try:
            with np.errstate(all="ignore"):
                table = self._measure(rows)
        except Exception:  # noqa: BLE001 - the author's own code may not know such data; typical records tell
            return None
        return table if np.isfinite(table).all() else None

    def _best(self, moved: NDArray[np.float64]) -> list[int]:
        """Rows of the changes (pairs, cells) that exceed all before them; updates the largest changes."""
        if not moved.size:
            return []
        sizes = np.stack([moved.sum(axis=1), np.sqrt(np.square(moved).sum(axis=1)), moved.max(axis=1)])
        found = {int(row.argmax()) for row, most in zip(sizes, self._most, strict=True) if row.max() > most * _FURTHER}
        self._most = np.maximum(self._most, sizes.max(axis=1))
        if self._stepwise:
            parts = np.where(moved > 0, moved, np.inf)
            if parts.min() < self._least / _FURTHER:
                found.add(int(parts.min(axis=1).argmin()))
                self._least = float(parts.min())
        return sorted(found)


T = TypeVar("T")
Manner = Literal["one end", "either end", "one at an end", "all alike", "some at an end", "call by call"]
_MANNERS: Final[tuple[Manner, ...]] = (
    "one end", *("either end",) * 4, *("one at an end",) * 4, *("all alike",) * 4, *("some at an end",) * 4,
    *("call by call",) * 3,
)  # fmt: skip
_CALLS: Final = 500  # after so many a record is drawn as it comes: who rejects corners must come to an end
_TOP: Final = 1 - 2.0**-53
_FAR: Final = 6.0  # standard deviations, or scales
_TINY: Final = 1e-9


def corner_records(draw: Callable[[np.random.Generator], T | None]) -> list[T]:
    """Draw records at corners, each followed by its mirror image; those that cannot be drawn so are left out.

    Args:
        draw: Draws one record from a generator.

    >>> low, high, *_ = corner_records(lambda rng: rng.uniform(-1, 1))
    >>> low, round(high, 9)
    (-1.0, 1.0)
    """
    records = []
    for seed, manner in enumerate(_MANNERS):
        for mirrored in (False, True):
            try:
                with np.errstate(all="ignore"):
                    record = draw(CornerGenerator(seed, manner, mirrored=mirrored))
            except Exception:  # noqa: BLE001, S112 - the author's own code; typical draws tell what is wrong with it
                continue
            if record is not None:
                records.append(record)
    return records


class CornerGenerator(np.random.Generator):
    """A NumPy generator with draws inside the support of their law, mostly at its ends.

    A subclass, because authors' code asks for a `numpy.random.Generator`. Methods that are not overridden here draw as
    usual.

    The author of a statistic of records defines a record by drawing one. Typical draws hardly ever come near the worst
    case (of 12 numbers that are uniform on [0, 1] two differ by .95 or more one time in eight), so the function that
    draws a record is given this generator: all draws at one end, each at either end, one at an end and the others in
    the middle, all equal. Every record comes with its mirror image, for which every draw is at the opposite position.
    """

    def __init__(self, seed: int, manner: Manner, *, mirrored: bool) -> None:
        """Make a generator for a single record.

        Args:
            seed: Seed of all choices; a record and its mirror image have the same.
            manner: How the places in [0, 1] are chosen.
            mirrored: Whether every place is replaced by the opposite one.
        """
        super().__init__(np.random.PCG64(seed))
        self._choices = np.random.default_rng(seed)
        self._manner, self._mirrored, self._left = manner, mirrored, _CALLS
        self._level = float(self._choices.random())

    def _places(self, size: Any, *parameters: ArrayLike) -> NDArray[np.float64]:
        """Places in [0, 1), of the given size or of that of the law's parameters."""
        wanted: Any = np.broadcast_shapes(*(np.shape(p) for p in parameters)) if size is None else size
        shape = (int(wanted),) if np.ndim(wanted) == 0 else tuple(wanted)
        self._left -= 1
        chosen = self._choices
        if self._left < 0:
            return chosen.random(shape)
        places = self._at_ends(shape)
        return np.asarray(_TOP - places if self._mirrored else places)

    def _at_ends(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        chosen = self._choices
        ends = np.where(chosen.random(shape) < 0.5, 0.0, _TOP)
        if self._manner == "one end":
            return np.zeros(shape)
        if self._manner == "either end":
            return ends
        if self._manner == "call by call":
            return np.full(shape, 0.0 if chosen.random() < 0.5 else _TOP)
        if self._manner == "all alike":
            return np.full(shape, self._level)
        if self._manner == "some at an end":
            return np.where(chosen.random(shape) < 0.5, ends, chosen.random(shape))
        places = np.full(shape, 0.5)
        if places.size and (places.size > 1 or chosen.random() < 0.5):
            places.flat[int(chosen.integers(places.size))] = 0.0 if chosen.random() < 0.5 else _TOP
        return places

    def _normals(self, size: Any, *parameters: ArrayLike) -> NDArray[np.float64]:
        places = 2 * _FAR * (self._places(size, *parameters) - 0.5)
        return np.where(np.abs(places) < _TINY, 1e-3, places)

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Places in [0, 1)."""
        below = 1 - 2.0**-24 if np.dtype(dtype) == np.float32 else _TOP
        return _given(np.minimum(self._places(size if out is None else out.shape), below).astype(dtype), out)

    def uniform(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: Any = None) -> Any:
        """Numbers between two ends."""
        first, last = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        return _given(first + (last - first) * self._places(size, first, last))

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Any = None, dtype: Any = np.int64,
        endpoint: bool = False,  # noqa: FBT001, FBT002 - NumPy's
    ) -> Any:  # fmt: skip
        """Whole numbers between two ends."""
        first, last = (np.zeros_like(low), np.asarray(low)) if high is None else (np.asarray(low), np.asarray(high))
        many = last - first + int(endpoint)
        if np.any(many < 1):
            raise ValueError("low >= high")
        places = np.floor(self._places(size, first, last) * many).astype(np.int64)
        return _given((first + np.minimum(places, many - 1)).astype(dtype))

    def choice(  # noqa: PLR0917 - NumPy's arguments
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0,  # noqa: FBT001, FBT002 - NumPy's
        shuffle: bool = True,  # noqa: FBT001, FBT002 - NumPy's
    ) -> Any:  # fmt: skip
        """Any option with a positive probability, however small."""
        if size is not None and not replace:
            return super().choice(a, size, replace, p, axis, shuffle)
        options = np.arange(a) if np.ndim(a) == 0 else np.asarray(a)
        possible = np.arange(options.shape[axis]) if p is None else np.flatnonzero(np.asarray(p) > 0)
        index = possible[np.floor(self._places(() if size is None else size) * len(possible)).astype(np.int64)]
        return options.take(index, axis=axis)[()]

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Numbers of absolute value at most six."""
        return _given(self._normals(size if out is None else out.shape).astype(dtype), out)

    def normal(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Numbers up to six standard deviations from the mean."""
        return _given(np.asarray(loc) + np.asarray(scale) * self._normals(size, loc, scale))

    def laplace(self, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Numbers up to six scales from the centre."""
        return _given(np.asarray(loc) + np.asarray(scale) * self._normals(size, loc, scale))

    def lognormal(self, mean: ArrayLike = 0.0, sigma: ArrayLike = 1.0, size: Any = None) -> Any:
        """Exponentials of normal numbers."""
        return _given(np.exp(np.asarray(mean) + np.asarray(sigma) * self._normals(size, mean, sigma)))

    def exponential(self, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Numbers from 0 to 36 scales."""
        return _given(-np.asarray(scale) * np.log1p(-self._places(size, scale)))

    def gamma(self, shape: ArrayLike, scale: ArrayLike = 1.0, size: Any = None) -> Any:
        """Numbers above 0, up to 36 means."""
        mean = np.asarray(shape) * np.asarray(scale)
        return _given(mean * np.maximum(-np.log1p(-self._places(size, mean)), _TINY))

    def beta(self, a: ArrayLike, b: ArrayLike, size: Any = None) -> Any:
        """Numbers strictly between 0 and 1."""
        return _given(np.clip(self._places(size, a, b), _TINY, 1 - _TINY))

    def triangular(self, left: ArrayLike, mode: ArrayLike, right: ArrayLike, size: Any = None) -> Any:
        """Numbers between two ends."""
        first, last = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
        return _given(first + (last - first) * self._places(size, first, mode, last))

    def binomial(self, n: ArrayLike, p: ArrayLike, size: Any = None) -> Any:
        """Numbers of successes, including none and all."""
        trials, chance = np.asarray(n), np.asarray(p)
        places = np.floor(self._places(size, trials, chance) * (trials + 1)).astype(np.int64)
        return _given(np.where(chance <= 0, 0, np.where(chance >= 1, trials, np.minimum(places, trials))))

    def poisson(self, lam: ArrayLike = 1.0, size: Any = None) -> Any:
        """Numbers of events, from none to about ten standard deviations above the mean."""
        mean = np.asarray(lam)
        most = np.where(mean > 0, np.ceil(mean + 10 * np.sqrt(mean) + 10), 0)
        return _given(np.floor(self._places(size, mean) * (most + 1)).astype(np.int64))

    def geometric(self, p: ArrayLike, size: Any = None) -> Any:
        """Numbers of trials, from 1 to 36 means."""
        chance = np.asarray(p)
        waited = np.floor(-np.log1p(-self._places(size, chance)) / chance).astype(np.int64)
        return _given(1 + np.where(chance < 1, waited, 0))

    def dirichlet(self, alpha: ArrayLike, size: Any = None) -> Any:
        """Shares that sum to 1, including almost all in one or in few places."""
        many = () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)
        weights = np.maximum(self._places((*many, np.size(alpha))), _TINY)
        return weights / weights.sum(axis=-1, keepdims=True)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """Counts that are all in one category."""
        if np.ndim(n) or np.ndim(pvals) != 1:
            return super().multinomial(n, pvals, size)
        possible = np.flatnonzero(np.asarray(pvals) > 0)
        places = self._places(() if size is None else size)
        chosen = possible[np.floor(places * len(possible)).astype(np.int64)]
        return int(n) * (chosen[..., np.newaxis] == np.arange(np.size(pvals))).astype(np.int64)


def _given(values: NDArray[Any], out: Any = None) -> Any:
    """The values in NumPy's form: in the array `out` if there is one, as a number if they are a single one."""
    if out is not None:
        out[...] = values
        return out
    return values if np.ndim(values) else values[()].item()


_USERS: Final = 12  # drawn, of whom neighbours are made
_CROWDS: Final = (0, 1, 2, 3, 8)  # how many others there are


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """Input of an author's own statistic: one record per user.

    Attributes:
        rows: The records, of any kind that the statistic accepts.
    """

    rows: tuple[Any, ...]

    @property
    def users(self) -> int:
        """Number of users."""
        return len(self.rows)

    def __str__(self) -> str:
        shown = ", ".join(f"{row!s:.60}" for row in self.rows[-1:])
        others = f", beside {len(self.rows) - 1} others" if len(self.rows) > 1 else ""
        return f"the record {shown}{others}" if self.rows else "no record"


@dataclass(frozen=True, slots=True)
class Stated:
    """Any statistic of records, with a stated sensitivity.

    `verify` tries to refute it on neighbours among the records that it draws, alone and among others, and says *given*.

    Attributes:
        name: In words.
        l1: Bound on ‖f(D) − f(D′)‖₁ over neighbours under the declared relation.
        l2: In ℓ₂; as in ℓ₁ unless it is given.
        linf: In ℓ∞; as in ℓ₂ unless it is given.
        compute_rows: From a tuple of records to a number or an array.
        draw: (values, rng) → one user's record, corners preferred.
        sizes: Shape of the computed value; (1,) for a number.
        whole: Whether its values are whole numbers, as discrete noise needs.
        stepwise: Whether between neighbours every entry changes by 0 or Δ∞, never by a part of it: sums of bits, which
            shuffled bits protect.
        latex: As a formula.
        preconditions: Conditions on a record, in words; `compute_rows` raises if a record violates them.
    """

    name: str
    l1: Expr
    l2: Expr
    linf: Expr
    compute_rows: Callable[[tuple[Any, ...]], ArrayLike]
    draw: Callable[[Mapping[str, Fraction], np.random.Generator], Any]
    sizes: tuple[Expr, ...]
    whole: bool
    stepwise: bool
    latex: str
    preconditions: tuple[str, ...]

    def __init__(
        self, name: str, *, l1: Exact | Expr, compute: Callable[[tuple[Any, ...]], ArrayLike],
        records: Callable[[Mapping[str, Fraction], np.random.Generator], Any], l2: Exact | Expr | None = None,
        linf: Exact | Expr | None = None, shape: Sequence[Exact | Expr] = (1,), whole: bool = False,
        stepwise: bool = False, latex: str = "f(D)", preconditions: Sequence[str] = (),
    ) -> None:  # fmt: skip
        text("name, of Stated", name)
        text("latex, of Stated", latex)
        truth("whole, of Stated", whole)
        truth("stepwise, of Stated", stepwise)
        for what, asked, remedy in (
            ("compute", compute, "write compute=lambda rows: …, of a tuple of records"),
            ("records", records, "write records=lambda values, rng: …, one user's record"),
        ):
            function(f"{what}, of Stated", asked, remedy)
            if asked is None:
                raise DeclarationError(f"{what}, of Stated: expected a function, got None; {remedy}")
        if not isinstance(preconditions, tuple | list):
            message = f"preconditions, of Stated: expected a tuple of texts, got {preconditions!r:.100}"
            raise DeclarationError(f"{message}; mind the comma in ('spent in [0, 50]',)")
        for word in preconditions:
            text("preconditions, of Stated", word)
        if not isinstance(shape, tuple | list) or not shape:
            message = f"shape, of Stated: expected a tuple of sizes, such as (1,) of a number, got {shape!r:.100}"
            raise DeclarationError(f"{message}; write shape=(…,), the shape of what compute returns")
        norms = {"l1": l1, "l2": l1 if l2 is None else l2}
        norms["linf"] = norms["l2"] if linf is None else linf
        for norm, given in norms.items():
            object.__setattr__(self, norm, number(f"{norm}, of Stated", given))
        object.__setattr__(self, "sizes", tuple(number("shape, of Stated", size) for size in shape))
        given_fields = {"name": name, "compute_rows": compute, "draw": records, "whole": whole, "stepwise": stepwise}
        for what, value in {**given_fields, "latex": latex, "preconditions": tuple(preconditions)}.items():
            object.__setattr__(self, what, value)

    @property
    def symbols(self) -> frozenset[str]:
        """Parameters that the statistic depends on."""
        return frozenset[str]().union(*(one.symbols for one in (self.l1, self.l2, self.linf, *self.sizes)))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The statistic's sizes, which are counts."""
        return tuple(Condition(what=f"a size of {self.name}", of=size, domain="count") for size in self.sizes)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """The author's stated sensitivity, under whichever relation is declared.

        Raises:
            DeclarationError: Users have several trajectories, for which nothing is stated: a record is all data of a
                user.
        """
        if relation.trajectories != expression(1):
            message = f"{self.name}: a user has only one record, got {relation.words!r}"
            raise DeclarationError(f"{message}; put all data of a user in one record, and leave `trajectories` out")
        reason = f"stated for: {relation.words}"
        return Sensitivity(l1=self.l1, l2=self.l2, linf=self.linf, reason=reason, stepwise=self.stepwise)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """(1, …): it is released in one step."""
        return (1, *(int(size.number(values)) for size in self.sizes))

    def compute(self, data: Records, *, step: int | None = None) -> NDArray[np.float64]:
        """Compute the statistic of the records, (1, …), or its only slice.

        Raises:
            TrajectoryError: Whole numbers are stated, and a value is not whole.
        """
        value: NDArray[np.float64] = np.atleast_1d(np.asarray(self.compute_rows(data.rows), dtype=np.float64))
        if self.whole and not np.array_equal(value, np.rint(value)):
            message = f"{self.name}: expected whole numbers, as stated, got {value[value != np.rint(value)][0]:g}"
            raise TrajectoryError(f"{message}; round each record, or leave `whole` out")
        return value[np.newaxis] if step is None else value

    def difference(self, pair: tuple[Records | None, Records | None]) -> SparseDifference:
        """Change between two sets of records; None is no record."""
        first, second = (self.compute(Records(rows=()) if data is None else data).ravel() for data in pair)
        change = first - second
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def extreme_pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> Iterator[tuple[Records, Records]]:
        """Yield neighbours among drawn records: typical ones, and those with the largest change in a search."""
        rng = np.random.default_rng(0)
        users = [self.record(values, rng) for _ in range(_USERS)]
        yield from self._typical_pairs(relation, values, users, rng)
        for first, second in furthest_pairs(
            lambda rows: self.compute(Records(rows=rows)).ravel(),
            users,
            corner_records(lambda generator: self.draw(values, generator)),
            replaced=isinstance(relation, ReplaceOne),
            stepwise=self.stepwise,
        ):
            yield Records(rows=first), Records(rows=second)

    def _typical_pairs(
        self, relation: Relation, values: Mapping[str, Fraction], users: Sequence[Any], rng: np.random.Generator
    ) -> Iterator[tuple[Records, Records]]:
        """Yield neighbours among typical records: one alone, if `compute` accepts no records, and among others."""
        for crowd in _CROWDS:
            others = tuple(self.record(values, rng) for _ in range(crowd))
            if isinstance(relation, ReplaceOne):
                for one, two in itertools.combinations(users, 2):
                    yield Records(rows=(*others, one)), Records(rows=(*others, two))
                continue
            without = Records(rows=others)
            if not crowd and not self._knows_nobody():
                continue
            for one in users:
                yield Records(rows=(*others, one)), without
                yield without, Records(rows=(*others, one))

    def _knows_nobody(self) -> bool:
        """Whether the author's own function accepts an empty tuple of records."""
        try:
            self.compute(Records(rows=()))
        except Exception:  # noqa: BLE001 - whatever the author's own code raises
            return False
        return True

    def record(self, values: Mapping[str, Fraction], rng: np.random.Generator) -> Any:
        """Draw one user's record with the author's function.

        Raises:
            DeclarationError: The author's function raises an exception.
        """
        try:
            return self.draw(values, rng)
        except Exception as error:
            message = f"{self.name}: its records raised {type(error).__name__}: {error}; expected one user's record"
            raise DeclarationError(message) from error


def not_neighbours(relation: Relation, first: Records | None, second: Records | None) -> str:
    """Reason why two sets of records are not neighbours; empty if they differ in one record only."""
    rows = [() if data is None else data.rows for data in (first, second)]
    longer, shorter = sorted(rows, key=len, reverse=True)
    if isinstance(relation, ReplaceOne):
        apart = sum(one is not other for one, other in zip(*rows, strict=False))
        alike = len(longer) == len(shorter) and len(longer) > 0 and apart <= 1
    else:
        apart = next((i for i, (x, y) in enumerate(zip(longer, shorter, strict=False)) if x is not y), len(shorter))
        alike = len(longer) == len(shorter) + 1 and all(
            x is y for x, y in zip(longer[apart + 1 :], shorter[apart:], strict=True)
        )
    return "" if alike else f"expected records that differ in one, {relation.words}"
