"""Schedules: how often a statistic is released, and how many of its noisy outputs contain one user's data.

Every output of a schedule has independent noise. Online, the users after the differing one are affected only through
the released outputs: conditional on the billboard their data is the same (adaptive composition), so that only the
outputs that contain the one user change.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from privcheck.declare.samples import (
    BallsInBins,
    Facts,
    Known,
    Placed,
    Poisson,
    Sample,
    Sampled,
    Sampling,
    ShuffledEpochs,
    WithoutReplacement,
    WithReplacement,
    set_public,
)
from privcheck.declare.statements import PublicFact, take_public
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.parameters import Condition, function, number, text
from privcheck.terms.symbols import Exact, Expr, Rounding, expression, h, sum_over, tree_levels
from privcheck.terms.symbols.functions import computed

if TYPE_CHECKING:
    from privcheck.accounting.engine.trees import TreeLoad

__all__ = [
    "BallsInBins",
    "Batches",
    "EveryEpisode",
    "Load",
    "Once",
    "Outputs",
    "PerUser",
    "Placed",
    "Poisson",
    "Sample",
    "Sampled",
    "Sampling",
    "Schedule",
    "ShuffledEpochs",
    "Tree",
    "WithReplacement",
    "WithoutReplacement",
    "load_of",
    "public_facts",
    "schedule_conditions",
    "schedule_symbols",
]

_MOST_PARTICIPATIONS: Final = 1_000_000
_BOUNDARIES: Final = (
    "let a batch end after a number of users known beforehand, public(…, why=…), or determined by earlier outputs, "
    "from_billboard(…, of=…)"
)


@dataclass(frozen=True, slots=True)
class Once:
    """One output from all users."""

    @property
    def times(self) -> Expr:
        """One."""
        return expression(1)

    @property
    def words(self) -> str:
        """Schedule in words."""
        return "released once"


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryEpisode:
    """After each episode the cumulative statistic is released again, with fresh noise.

    Attributes:
        outputs: Number of outputs after the first user's episode; K − 1 if the last one is never used.
        after: Event after which it is released, if rarer than every episode: "batch", "policy update".
        facts: Reason why `outputs` is public, from `public(…, why=…)`. Computed, not given.
    """

    outputs: Expr
    after: str
    facts: Facts = field(compare=False, repr=False)

    def __init__(self, *, outputs: Known, after: str = "episode", facts: Facts = ()) -> None:
        text("after, of EveryEpisode", after)
        set_public(self, facts, outputs=outputs)
        object.__setattr__(self, "after", after)

    @property
    def times(self) -> Expr:
        """Number of outputs, all of which contain the first user."""
        return self.outputs

    @property
    def words(self) -> str:
        """Schedule in words."""
        return f"released after every {self.after}, {self.outputs} times, each holding all users so far"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Binary counting: a noisy sum for every complete node of a binary tree over the users (Chan, Shi & Song 2011).

    A leaf holds one trajectory. A user with several (`ReplaceOne("user", trajectories=p)`) is in as many leaves, which
    are public and do not depend on the outputs; node v contains c_v of them.

    Attributes:
        leaves: Number of users, or trajectories, in the tree; K − 1 if the last episode's data is never used.
        counted: Number of nodes that contain one user according to the paper (Σ c_v); None if the paper does not say.
        participations: p, largest number of leaves of one user, equal to the relation's number of trajectories.
        separation: Least distance of these in leaves; a whole epoch if all epochs have the same order.
        trees: Number of such trees, one after the other, each over its own leaves; a user is in one leaf of each, and
            has as many trajectories.
        facts: Reason why `leaves` is public, from `public(…, why=…)`. Computed, not given.
    """

    leaves: Expr
    counted: Expr | None
    participations: Expr
    separation: Expr
    trees: Expr
    facts: Facts = field(compare=False, repr=False)

    def __init__(
        self, *, leaves: Known, counted: Exact | Expr | None = None, participations: Exact | Expr = 1,
        separation: Exact | Expr = 1, trees: Exact | Expr = 1, facts: Facts = (),
    ) -> None:  # fmt: skip
        set_public(self, facts, leaves=leaves)
        object.__setattr__(self, "counted", None if counted is None else number("counted, of Tree", counted))
        object.__setattr__(self, "participations", number("participations, of Tree", participations))
        object.__setattr__(self, "separation", number("separation, of Tree", separation))
        object.__setattr__(self, "trees", number("trees, of Tree", trees))
        if self.trees != expression(1) and self.participations != expression(1):
            message = (
                f"Tree(trees={self.trees}, participations={self.participations}): a user is in one leaf of each tree"
            )
            raise DeclarationError(f"{message}; leave participations out, or declare one tree over all leaves")

    @property
    def times(self) -> Expr:
        """⌊log₂ T⌋ + 1, attained by the first leaf; for several leaves of one user the largest Σ c_v."""
        return self.load.total

    @property
    def leaves_of_a_user(self) -> Expr:
        """Largest number of leaves of one user in all trees."""
        return self.participations * self.trees

    @property
    def load(self) -> Load:
        """Σ c_v and Σ c_v² at the worst leaves for each (`privcheck.accounting.engine.trees`), and c_v ≤ p."""
        levels, p = tree_levels(self.leaves), self.participations
        if p == expression(1):
            return Load(total=levels * self.trees, squares=levels * self.trees, most=expression(1))
        of = (self.leaves, p, self.separation)
        return Load(
            total=computed("tree_visits", _tree_total, *of),
            squares=computed("tree_squares", _tree_squares, *of),
            most=p,
        )

    def held_rows(self, rows: int, values: Mapping[str, Fraction]) -> Iterator[slice]:
        """Yield the user's rows in each complete node that has any: row i is in leaf 1 + i·b, or in tree i."""
        leaves, apart = (int(of.number(values)) for of in (self.leaves, self.separation))
        if self.trees != expression(1):  # row i is in the first leaf of tree i
            first = min(rows, int(self.trees.number(values)))
            yield from (slice(row, row + 1) for row in range(first) for _ in range(leaves.bit_length()))
            return
        positions = range(0, min(rows * apart, leaves), apart)
        for level in range(leaves.bit_length()):
            for node, held in itertools.groupby(range(len(positions)), key=lambda row: positions[row] >> level):
                members = list(held)
                if node < leaves >> level:
                    yield slice(members[0], members[-1] + 1)

    @property
    def words(self) -> str:
        """Schedule in words."""
        if self.trees != expression(1):
            return f"{self.trees} binary trees of partial sums over {self.leaves} leaves, a user in one leaf of each"
        if self.participations == expression(1):
            return f"a binary tree of partial sums over {self.leaves} users"
        apart = "" if self.separation == expression(1) else f", {self.separation} apart at least"
        return (
            f"a binary tree of partial sums over {self.leaves} trajectories, up to {self.participations} of one user"
            f"{apart}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How often the outputs contain one user's data, c_v times in output v, each with independent noise.

    Attributes:
        total: The largest Σ c_v.
        squares: The largest Σ c_v².
        most: A bound on every c_v.
    """

    total: Expr
    squares: Expr
    most: Expr


def load_of(schedule: Schedule) -> Load:
    """Load of one user's data in a schedule's outputs."""
    if isinstance(schedule, Tree):
        return schedule.load
    return Load(total=schedule.times, squares=schedule.times, most=expression(1))


def _tree_total(leaves: int, participations: int, separation: int) -> int:
    load = _tree_load(leaves, participations, separation)
    return 0 if load is None else load.total


def _tree_squares(leaves: int, participations: int, separation: int) -> int:
    load = _tree_load(leaves, participations, separation)
    return 0 if load is None else load.squares


def _tree_load(leaves: int, participations: int, separation: int) -> TreeLoad | None:
    """Worst load for as many participations as fit; None for a tree without leaves.

    Raises:
        ParameterError: There are too many participations to search for the worst leaves.
    """
    from privcheck.accounting.engine.trees import tree_load

    if leaves < 1 or participations < 1 or separation < 1:
        return None
    fitting = min(participations, 1 + (leaves - 1) // separation)
    if fitting > _MOST_PARTICIPATIONS:
        message = f"{fitting} leaves of one user: the worst are searched for up to {_MOST_PARTICIPATIONS}"
        raise ParameterError(f"{message}; declare fewer participations", name="participations", given=fitting)
    return tree_load(leaves, fitting, separation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Disjoint batches of users, each released once.

    Attributes:
        size: Number of users in a batch, in words or as a formula; `public(…, why=…)` or `from_billboard(…, of=…)` adds
            the reason why the boundaries are public.
        sizes: Function from the parameters to all numbers n of users in a batch that occur; None if nothing depends on
            them. With it the symbol `n` may occur in the mechanism, and stands for each of them.
        fact: Reason why the boundaries are public. Computed, not given.

    Raises:
        DeclarationError: `size` is not text, or is computed from data; or earlier outputs determine the number of users
            in a batch although its noise depends on it.
    """

    size: str
    sizes: Callable[[Mapping[str, Fraction]], tuple[int, ...]] | None
    fact: PublicFact = field(compare=False, repr=False)

    def __init__(
        self, *, size: str | PublicFact, sizes: Callable[[Mapping[str, Fraction]], tuple[int, ...]] | None = None,
        fact: PublicFact | None = None,
    ) -> None:  # fmt: skip
        chosen = "" if sizes is None else "the noise of a batch depends on its size, but its price assumes one size"
        taken = take_public("size, of Batches", size, sound=_BOUNDARIES, billboard=chosen)
        if fact is not None and fact.value == taken.value and not taken.why and not taken.of:
            taken = fact  # of a schedule that is copied
        object.__setattr__(self, "size", taken.value)
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "fact", taken)
        text("size, of Batches", self.size)
        function("sizes, of Batches", self.sizes, "write sizes=lambda values: (…,), every size of a batch")

    @property
    def times(self) -> Expr:
        """1: every user is in exactly one batch."""
        return expression(1)

    @property
    def words(self) -> str:
        """Schedule in words."""
        return f"disjoint batches of {self.size}, each released once"


@dataclass(frozen=True, slots=True)
class PerUser:
    """Every user releases the statistic of their own data (local model)."""

    @property
    def times(self) -> Expr:
        """One."""
        return expression(1)

    @property
    def words(self) -> str:
        """Schedule in words."""
        return "released by every user about their own data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Several outputs of one statistic of all users, with noise that varies from one to the next.

    For tables with a row for each step, noise that varies by step is declared as a statistic of one step released H
    times.

    Attributes:
        count: Number of outputs.
        factor: Factor on the standard deviation of the mechanism in output t, written in the symbol `h`.
    """

    count: Expr
    factor: Expr

    def __init__(self, *, count: Exact | Expr, times_std: Callable[[Expr], Exact | Expr]) -> None:
        object.__setattr__(self, "count", number("count, of Outputs", count))
        if times_std is None:
            raise DeclarationError("times_std, of Outputs: expected a function; write times_std=lambda t: sqrt(t)")
        function("times_std, of Outputs", times_std, "write times_std=lambda t: sqrt(t)")
        object.__setattr__(self, "factor", number("times_std, of Outputs", times_std(h)))

    @property
    def times(self) -> Expr:
        """Number of outputs: a user is in all of them."""
        return self.count

    @property
    def words(self) -> str:
        """Schedule in words."""
        return f"released {self.count} times, each about all users, with noise that varies"

    def sum_inverse(self, power: int) -> Expr:
        """Σ over outputs of factor^−power."""
        return sum_over(self.count, lambda _: self.factor**-power)

    def factors(self, values: Mapping[str, Fraction], *, rounding: Rounding) -> tuple[float, ...]:
        """Factor of every output."""
        outputs = range(1, int(self.count.number(values)) + 1)
        return tuple(self.factor.number({**values, "h": Fraction(t)}, rounding=rounding) for t in outputs)


Schedule = Once | EveryEpisode | Tree | Batches | PerUser | Sampled | Outputs


def public_facts(schedule: Schedule) -> tuple[tuple[str, PublicFact], ...]:
    """Public facts of a schedule, each in words and with the reason."""
    if isinstance(schedule, Batches):
        return ((f"the borders of the batches ({schedule.size})", schedule.fact),)
    if isinstance(schedule, EveryEpisode):
        words = f"the number of outputs ({schedule.outputs}), and the order of the users"
        return ((words, schedule.facts[0][1]),)
    if isinstance(schedule, Tree):
        words = f"which leaf of the tree, of {schedule.leaves}, belongs to which user; not what the user did"
        return ((words, schedule.facts[0][1]),)
    if isinstance(schedule, Sampled):
        return tuple((f"{name} = {fact.value} of the sampling", fact) for name, fact in schedule.facts)
    return ()


def schedule_symbols(schedule: Schedule) -> frozenset[str]:
    """Names of the parameters that occur in a schedule."""
    if isinstance(schedule, Sampled):
        return schedule.symbols
    counted = schedule.counted if isinstance(schedule, Tree) else None
    tree: tuple[Expr, ...] = ()
    if isinstance(schedule, Tree):
        tree = (schedule.leaves, schedule.participations, schedule.separation, schedule.trees)
    factor = schedule.factor.symbols - {"h"} if isinstance(schedule, Outputs) else frozenset[str]()
    return schedule.times.symbols.union(factor, *(x.symbols for x in (counted, *tree) if x is not None))


def schedule_conditions(schedule: Schedule) -> tuple[Condition, ...]:
    """Numbers of a schedule, with the condition on each."""
    if isinstance(schedule, EveryEpisode):
        return (Condition(what="the outputs of EveryEpisode", of=schedule.outputs, domain="whole"),)
    if isinstance(schedule, Outputs):
        each = "the factor of the noise of its outputs"
        return (
            Condition(what="the number of Outputs", of=schedule.count, domain="whole"),
            Condition(what=each, of=schedule.factor, domain="positive", steps=schedule.count),
        )
    if isinstance(schedule, Sampled):
        return schedule.conditions
    if isinstance(schedule, Tree):
        conditions = [
            Condition(what="the leaves of its Tree", of=schedule.leaves, domain="whole"),
            Condition(what="the participations in its Tree", of=schedule.participations, domain="count"),
            Condition(what="the separation of participations in its Tree", of=schedule.separation, domain="count"),
            Condition(what="the trees of its Tree", of=schedule.trees, domain="count"),
        ]
        if schedule.counted is not None:
            what = "the nodes that are counted of its Tree"
            conditions.append(Condition(what=what, of=schedule.counted, domain="nonnegative"))
        return tuple(conditions)
    return ()
