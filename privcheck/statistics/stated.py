"""A statistic of one's own, of any records, with a sensitivity that its author states by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privcheck.corners import corner_records
from privcheck.domains import Condition
from privcheck.errors import DeclarationError, TrajectoryError
from privcheck.fields import function, number, text, truth
from privcheck.relations import Relation, ReplaceOne
from privcheck.statistics.base import Sensitivity, SparseDifference
from privcheck.statistics.searching import furthest_pairs
from privcheck.symbols import Exact, Expr, expression

_USERS: Final = 12  # drawn, of whom neighbours are made
_CROWDS: Final = (0, 1, 2, 3, 8)  # how many others there are


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Records:
    """What a statistic of one's own is computed of: one record a user.

    Attributes:
        rows: The records, of whatever kind the statistic knows.
    """

    rows: tuple[Any, ...]

    @property
    def users(self) -> int:
        """Returns how many users there are."""
        return len(self.rows)

    def __str__(self) -> str:
        shown = ", ".join(f"{row!s:.60}" for row in self.rows[-1:])
        others = f", beside {len(self.rows) - 1} others" if len(self.rows) > 1 else ""
        return f"the record {shown}{others}" if self.rows else "no record"


@dataclass(frozen=True, slots=True)
class Stated:
    """Any statistic of records, with a stated sensitivity.

    `verify` tries to break it on neighbours among the records that it draws, alone and among others, and says *given*.

    Attributes:
        name: In words.
        l1: ‖f(D) − f(D′)‖₁ over neighbours under the declared relation, at most.
        l2: In ℓ₂; as in ℓ₁ unless it is given.
        linf: In ℓ∞; as in ℓ₂ unless it is given.
        compute_rows: From a tuple of records to a number or an array.
        draw: (values, rng) → one user's record, corners preferred.
        sizes: The shape of what is computed; (1,) of a number.
        whole: Whether its values are whole numbers, as discrete noise needs.
        stepwise: Whether between neighbours every entry moves by 0 or Δ∞, never by a part of it: sums of bits, which
            shuffled bits protect.
        latex: As a formula.
        preconditions: What a record must satisfy, in words; `compute_rows` raises where one does not.
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
        """Returns the parameters that the statistic depends on."""
        return frozenset[str]().union(*(one.symbols for one in (self.l1, self.l2, self.linf, *self.sizes)))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its sizes, which are counts."""
        return tuple(Condition(what=f"a size of {self.name}", of=size, domain="count") for size in self.sizes)

    def sensitivity(self, relation: Relation) -> Sensitivity:
        """Returns what its author states, under whichever relation is declared.

        Raises:
            DeclarationError: Users have several trajectories, of which nothing is stated: a record is all of a user.
        """
        if relation.trajectories != expression(1):
            message = f"{self.name}: one record is all of a user, got {relation.words!r}"
            raise DeclarationError(f"{message}; put all of a user in a record, and leave `trajectories` out")
        reason = f"stated for: {relation.words}"
        return Sensitivity(l1=self.l1, l2=self.l2, linf=self.linf, reason=reason, stepwise=self.stepwise)

    def shape(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns (1, …): it leaves in one step."""
        return (1, *(int(size.number(values)) for size in self.sizes))

    def compute(self, data: Records, *, step: int | None = None) -> NDArray[np.float64]:
        """Returns what is computed of the records, (1, …), or its only slice.

        Raises:
            TrajectoryError: Whole numbers are stated, and one is not.
        """
        value: NDArray[np.float64] = np.atleast_1d(np.asarray(self.compute_rows(data.rows), dtype=np.float64))
        if self.whole and not np.array_equal(value, np.rint(value)):
            message = f"{self.name}: expected whole numbers, as is stated, got {value[value != np.rint(value)][0]:g}"
            raise TrajectoryError(f"{message}; round each record, or leave `whole` out")
        return value[np.newaxis] if step is None else value

    def difference(self, pair: tuple[Records | None, Records | None]) -> SparseDifference:
        """Returns the change between two sets of records; None is no record."""
        first, second = (self.compute(Records(rows=()) if data is None else data).ravel() for data in pair)
        change = first - second
        cells = np.flatnonzero(change)
        return SparseDifference(cells=cells.astype(np.int64), change=change[cells])

    def extreme_pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> Iterator[tuple[Records, Records]]:
        """Yields neighbours among drawn records: typical ones, and those that a search finds to move it furthest."""
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
        """Yields neighbours among typical records: one alone, if `compute` can do with none, and among others."""
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
        """Returns whether the author's own function computes anything of no records."""
        try:
            self.compute(Records(rows=()))
        except Exception:  # noqa: BLE001 - whatever the author's own code raises
            return False
        return True

    def record(self, values: Mapping[str, Fraction], rng: np.random.Generator) -> Any:
        """Returns one user's record, as its author draws it.

        Raises:
            DeclarationError: The author's own function raises something.
        """
        try:
            return self.draw(values, rng)
        except Exception as error:
            message = f"{self.name}: its records raised {type(error).__name__}: {error}; expected one user's record"
            raise DeclarationError(message) from error


def not_neighbours(relation: Relation, first: Records | None, second: Records | None) -> str:
    """Returns why two sets of records are no neighbours; empty where one record is all that they differ in."""
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
