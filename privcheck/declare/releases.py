"""Releases: a statistic, its noise, its schedule and its users, beside the paper's own figures.

A `Release` is one kind of `privcheck.declare.procedures.Procedure`; its schedule decides how it is priced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, get_args

import numpy as np

from privcheck.data.trajectories import Regressors, Trajectories, choose_rows, take
from privcheck.declare.mechanisms import PRICED, Mechanism, Noise, SymmetricGaussian
from privcheck.declare.mechanisms.checks import check_mechanism, mechanism_conditions
from privcheck.declare.procedures.base import Cost, Facts, KnownPair
from privcheck.declare.procedures.charges import release_branches
from privcheck.declare.procedures.noise_schedules import check_varying, varying_cost, varying_events, varying_pairs
from privcheck.declare.procedures.sampled_pairs import sampled_pairs
from privcheck.declare.procedures.sampling_costs import alone, check_sampling, sampled_cost, sampled_events
from privcheck.declare.relations import Relation, of_one_trajectory
from privcheck.declare.schedules import (
    Batches,
    EveryEpisode,
    Once,
    Outputs,
    PerUser,
    Sampled,
    Schedule,
    Tree,
    load_of,
    schedule_conditions,
    schedule_symbols,
)
from privcheck.declare.statistics import Sensitivity, SparseDifference, Statistic
from privcheck.declare.statistics.sensitivities import check_statistic, is_derived, is_whole
from privcheck.declare.statistics.vectors import Vectors
from privcheck.errors import DeclarationError, ParameterError
from privcheck.terms.guarantees import Budget, guarantee_conditions, guarantee_symbols
from privcheck.terms.parameters import Condition, instance, number, text, truth, words_of
from privcheck.terms.symbols import INFINITE, Exact, Expr, exact, expression

if TYPE_CHECKING:
    from privcheck.accounting.events import Event


def count_rows(user: Any) -> int:
    """Count the rows of a user; 0 for an absent user, 1 for custom data."""
    if user is None:
        return 0
    return user.users if isinstance(user, Trajectories | Regressors | Vectors) else 1


def take_rows(user: Any, rows: slice) -> Any:
    """Take a slice of a user's rows; None if it is empty."""
    count = count_rows(user)
    kept = range(count)[rows]
    if not kept or len(kept) == count:
        return user if kept else None
    if isinstance(user, Trajectories):
        return take(user, rows)
    if isinstance(user, Regressors):
        return choose_rows(user, np.array(kept))
    return replace(user, rows=user.rows[rows])


def repeat_rows(user: Any, times: int) -> Any:
    """Repeat a user's rows `times` times; None stays None."""
    if user is None or times == 1:
        return user
    chosen = np.tile(np.arange(count_rows(user)), times)
    if isinstance(user, Trajectories):
        return take(user, chosen)
    return choose_rows(user, chosen) if isinstance(user, Regressors) else replace(user, rows=user.rows[chosen])


@dataclass(frozen=True, slots=True)
class L1:
    """A sensitivity in the ℓ₁ norm, as a paper states it."""

    value: Expr

    def __init__(self, value: Exact | Expr) -> None:
        object.__setattr__(self, "value", number("L1", value))

    def true(self, sensitivity: Sensitivity) -> Expr:
        """Derived sensitivity in the same norm."""
        return sensitivity.l1


@dataclass(frozen=True, slots=True)
class L2:
    """A sensitivity in the ℓ₂ norm (Frobenius for matrices), as a paper states it."""

    value: Expr

    def __init__(self, value: Exact | Expr) -> None:
        object.__setattr__(self, "value", number("L2", value))

    def true(self, sensitivity: Sensitivity) -> Expr:
        """Derived sensitivity in the same norm."""
        return sensitivity.l2


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Identity of the noise draws; by default every cell of every output has an independent draw.

    Attributes:
        name: Releases with the same nonempty name add the same draw.
        across: "cells": one draw is added to all cells of an output; "outputs": one draw is added to all outputs of the
            schedule.
    """

    name: str = ""
    across: tuple[Literal["cells", "outputs"], ...] = ()

    def __post_init__(self) -> None:
        text("name, of Draw", self.name, empty=True)
        words_of("across, of Draw", self.across, ("cells", "outputs"))


@dataclass(frozen=True, slots=True)
class Release:
    """One noisy statistic, released as often as its schedule says.

    Attributes:
        name: Name, unique in the declaration; the channel is called with it.
        statistic: The statistic that is computed.
        mechanism: The noise that is added.
        stated: Sensitivity of one contribution as stated in the paper, or None. The charge always uses the derived
            sensitivity.
        source: Reference in the paper.
        schedule: How often it is released; if its users are sampled, the sampling, or the `Sample` that it shares with
            others.
        fresh: States that its samples are drawn independently of all other releases' samples with the same law.
        users: Group, of one of the declaration's `partitions` of the users, with the data of this release; empty for
            all users.
        draw: Sharing of noise draws.
        counted: Number of times that the paper's proof charges this release to one user; None if it is as in the
            schedule.
        budget: Joint cost of all outputs of this release as stated in the paper, or None.
    """

    name: str
    statistic: Statistic[Any]
    mechanism: Mechanism
    stated: L1 | L2 | None = field(default=None, kw_only=True)
    source: str = field(default="", kw_only=True)
    schedule: Schedule = field(default=Once(), kw_only=True)
    fresh: bool = field(default=False, kw_only=True)
    users: str = field(default="", kw_only=True)
    draw: Draw = field(default=Draw(), kw_only=True)
    counted: Expr | None = field(default=None, kw_only=True)
    budget: Budget | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        text("a release's name", self.name)
        where = f"release {self.name!r}"
        check_statistic(where, self.statistic)
        check_mechanism(where, self.mechanism)
        instance(f"{where}, stated", self.stated, (L1, L2), none=True)
        text(f"{where}, source", self.source, empty=True)
        instance(f"{where}, schedule", self.schedule, get_args(Schedule))
        truth(f"{where}, fresh", self.fresh)
        text(f"{where}, users", self.users, empty=True)
        instance(f"{where}, draw", self.draw, (Draw,))
        if self.counted is not None:
            object.__setattr__(self, "counted", number(f"{where}, counted", self.counted))
        instance(f"{where}, budget", self.budget, get_args(Budget), none=True)
        if isinstance(self.mechanism, SymmetricGaussian) and not getattr(self.statistic, "symmetric", False):
            message = "a symmetric Gaussian matrix protects symmetric matrices"
            raise DeclarationError(f"{where}: {message}; {self.statistic.name} is not one; give it Gaussian noise")
        if self.mechanism.law.whole and not is_whole(self.statistic):
            message = (
                f"{self.mechanism.law.name} noise hides whole numbers, but {self.statistic.name} may be other numbers"
            )
            raise DeclarationError(f"{where}: {message}; declare counts, Stated(…, whole=True), or continuous noise")
        if isinstance(self.schedule, Sampled):
            check_sampling(self)
        elif isinstance(self.schedule, Outputs):
            check_varying(self)

    @property
    def facts(self) -> Facts:
        """Description for reports, and the numbers that the release depends on."""
        words, latex, kept = self.mechanism.words, self.mechanism.latex, tuple(self.statistic.preconditions)
        if isinstance(self.schedule, Sampled):
            words = f"{words}, on the {self.statistic.name} of a random sample"
            kept = (*kept, "the members of a sample are kept secret")
        elif isinstance(self.schedule, Outputs):
            factor = f"output t {str(self.schedule.factor).replace('h', 't')} times its standard deviation"
            words, latex = f"{words}, {factor}, on the {self.statistic.name}", rf"c_t\cdot {latex}"
        model = "shuffle" if self.mechanism.law.shuffled else "central"
        return Facts(
            words=words,
            output=f"noisy {self.statistic.name}",
            latex=rf"{self.statistic.latex} + {latex}",
            law=self.mechanism.law.name,
            spread=self.mechanism.spread,
            conditions=self.conditions,
            symbols=self.symbols,
            rounds=self.schedule.times,
            schedule=self.schedule.words,
            models=("local",) if isinstance(self.schedule, PerUser) else (model,),
            preconditions=kept,
            source=self.source,
        )

    def std(self, values: Mapping[str, Fraction]) -> float:
        """Standard deviation of one coordinate, rounded up; for batches that of the least noise."""
        return self.mechanism.std.number(self.quietest(values), rounding="up")

    def with_std(self, factor: Fraction) -> Release:
        """Copy with `factor` times the standard deviation of all noise.

        The spread is a variance for noise that is priced by the ℓ₂ sensitivity.

        Raises:
            ParameterError: The mechanism has no `with_spread`.
        """
        if not hasattr(self.mechanism, "with_spread"):
            message = f"{self.name}: no other spread can be set of {self.mechanism.words}"
            remedy = f"give {type(self.mechanism).__name__} the method `with_spread`"
            raise ParameterError(f"{message}; {remedy}", name="spread")
        power = 2 if self.mechanism.law.norm == "l2" else 1
        return replace(self, mechanism=self.mechanism.with_spread(self.mechanism.spread * factor**power))

    def cost(self, relation: Relation) -> Cost:
        """Cost of all outputs; no finite price if one draw of noise hides two values.

        Raises:
            DeclarationError: The relation is meaningless for the sampling of the users.
        """
        if isinstance(self.schedule, Sampled):
            return sampled_cost(alone(self), relation)
        if isinstance(self.schedule, Outputs):
            return varying_cost(self, relation)
        charged, leaks = self.charged(relation), self.reuses_noise
        return Cost(
            sensitivity=self.contributed(relation),
            charged=getattr(charged, self.mechanism.law.norm),
            rho=INFINITE if leaks else self.mechanism.zcdp(charged),
            pure=None if leaks else self.mechanism.pure(charged),
            mu_squared=None if leaks else self.mechanism.gdp_squared(charged),
            theorem=self.mechanism.law.theorem if type(self.mechanism) in PRICED else Noise.theorem,
        )

    def events(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[Event, ...]:
        """All outputs as events of the numeric accountant; empty if no user changes any output.

        Raises:
            ParameterError: A user is in one of several batches, and none of them is known to cost most.
        """
        from privcheck.accounting.events import non_private

        if isinstance(self.schedule, Sampled):
            return sampled_events(alone(self), relation, values)
        if isinstance(self.schedule, Outputs):
            return varying_events(self, relation, values)
        if self.reuses_noise:
            return (non_private(),)
        branches = release_branches([(self, self.charged(relation))], values)
        if len(branches) > 1:
            message = f"{self.name}: a user is in one of several batches, and each has its own curve"
            raise ParameterError(f"{message}; call `account` on the declaration", name="sizes")
        return branches[0] if branches else ()

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Users that one output distinguishes, with its laws in D and in D′.

        Empty for outputs that contain all users with the declared noise: verification searches neighbours for all of
        these together (`privcheck.verification.candidates.candidate_pairs`).
        """
        if isinstance(self.schedule, Sampled):
            return sampled_pairs(alone(self), relation, values)
        return varying_pairs(self, relation, values) if isinstance(self.schedule, Outputs) else ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        conditions = [*getattr(self.statistic, "conditions", ()), *schedule_conditions(self.schedule)]
        if self.stated is not None:
            conditions.append(Condition(what="its stated sensitivity", of=self.stated.value, domain="nonnegative"))
        if self.counted is not None:
            conditions.append(
                Condition(what="the number of times that it is counted", of=self.counted, domain="nonnegative")
            )
        if self.budget is not None:
            conditions += guarantee_conditions(self.budget)
        where, sizes = f"release {self.name!r}", self.batch_sizes
        noise = (one.at(where, sizes, self.schedule.times) for one in mechanism_conditions(self.mechanism))
        return (*(one.at(where, sizes) for one in conditions), *noise)

    @property
    def reuses_noise(self) -> bool:
        """Whether one draw hides two values: of several outputs, or of several cells of a table."""
        across, one = self.draw.across, expression(1)
        schedule = self.schedule
        alone = isinstance(schedule, Once) or (isinstance(schedule, EveryEpisode) and schedule.outputs == one)
        alone = alone or (isinstance(schedule, Tree) and schedule.leaves == one and schedule.trees == one)
        known = is_derived(self.statistic) and not self.statistic.symbols
        scalar = known and math.prod(self.statistic.shape({})) == 1
        return ("outputs" in across and not alone) or ("cells" in across and not scalar)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the parameters that occur in it."""
        free = {"n"} if self.batch_sizes is not None else set[str]()
        given = [x for x in (self.counted, self.stated.value if self.stated else None) if x is not None]
        return frozenset[str]().union(
            self.statistic.symbols,
            *(one.of.symbols - free for one in mechanism_conditions(self.mechanism)),
            schedule_symbols(self.schedule),
            guarantee_symbols(self.budget) if self.budget is not None else (),
            *(x.symbols for x in given),
        )

    @property
    def batch_sizes(self) -> Callable[[Mapping[str, Fraction]], tuple[int, ...]] | None:
        """Function from the parameters to the batch sizes `n` that its mechanism depends on, or None."""
        sized = isinstance(self.schedule, Batches) and self.schedule.sizes is not None
        return self._sizes_at if sized else None

    def _sizes_at(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Sizes of its batches.

        Raises:
            ParameterError: The schedule's `sizes` raises an exception, or returns a size that is not a whole number of
                at least 1.
        """
        assert isinstance(self.schedule, Batches)
        assert self.schedule.sizes is not None
        where = f"release {self.name!r}: the sizes of its Batches"
        try:
            sizes = tuple(exact(size) for size in self.schedule.sizes(values))
        except Exception as error:
            message = f"{where}: expected whole numbers, at least 1, got {type(error).__name__}: {error}"
            raise ParameterError(message, name="sizes") from error
        if wrong := [size for size in sizes if size.denominator != 1 or size < 1]:
            raise ParameterError(f"{where}: expected whole numbers, at least 1, got {wrong[0]}", name="sizes")
        return tuple(int(size) for size in sizes)

    def settings(self, values: Mapping[str, Fraction]) -> tuple[Mapping[str, Fraction], ...]:
        """Parameters, once per batch size with `n` set; unchanged without sizes, empty if no user is in a batch."""
        if self.batch_sizes is None:
            return (values,)
        return tuple({**values, "n": Fraction(size)} for size in self.batch_sizes(values))

    def quietest(self, values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
        """Setting with the least noise; a batch of one user if there are no batches; a given `n` is kept."""
        if self.batch_sizes is not None and "n" in values:
            return values
        settings = self.settings(values) or ({**values, "n": Fraction(1)},)
        return settings[0] if len(settings) == 1 else min(settings, key=lambda at: self.mechanism.at(at).scale)

    def charged(self, relation: Relation) -> Sensitivity:
        """Sensitivity of all outputs together to one user, in coordinates in which the noise is independent."""
        return self.mechanism.whiten(self.contributed(relation)).repeated(load_of(self.schedule))

    def contributed(self, relation: Relation) -> Sensitivity:
        """Sensitivity of one output to one user, or to one trajectory if outputs hold trajectories one by one."""
        return self.statistic.sensitivity(self.contribution(relation))

    def contribution(self, relation: Relation) -> Relation:
        """Relation for one contribution: all data of a user, or one trajectory in the leaves of trees."""
        return of_one_trajectory(relation) if self._one_by_one else relation

    def one_contribution(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """Pair for one contribution: all data of the user, or the first trajectory of each in the leaves of trees."""
        first = slice(0, 1)
        return (take_rows(pair[0], first), take_rows(pair[1], first)) if self._one_by_one else pair

    @property
    def _one_by_one(self) -> bool:
        return isinstance(self.schedule, Tree) and self.schedule.leaves_of_a_user != expression(1)

    def moved(self, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> SparseDifference:
        """Change of one output by the pair, in the noise's coordinates, with the number of outputs it occurs in.

        The differing user is the first: the first leaf of the tree, or the user in all cumulative outputs. A user with
        several trajectories is in leaves 1, 1 + separation, …; the changes of all nodes are then concatenated, as if
        they were one output.
        """
        if isinstance(self.schedule, Tree) and self._one_by_one:
            return self._moved_nodes(self.schedule, pair, values)
        change = self.mechanism.whitened(self.statistic.difference(pair))
        times = int(self.schedule.times.number(values)) if self.settings(values) else 0
        return replace(change, times=times)

    def _moved_nodes(self, tree: Tree, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> SparseDifference:
        size = math.prod(self.statistic.shape(values))
        cells, change = [np.zeros(0, np.int64)], [np.zeros(0)]
        for node, rows in enumerate(tree.held_rows(max(map(count_rows, pair)), values)):
            part = tuple(take_rows(user, rows) for user in pair)
            if part == (None, None):
                continue
            moved = self.mechanism.whitened(self.statistic.difference((part[0], part[1])))
            cells.append(moved.cells + node * size)
            change.append(moved.change)
        return SparseDifference(cells=np.concatenate(cells), change=np.concatenate(change))


def is_additive(one: object) -> TypeGuard[Release]:
    """Whether a release is a statistic of all users with the declared noise, the same in every output.

    Such releases are priced by the sensitivity of all outputs together and attacked together: their changes form one
    vector.
    """
    return isinstance(one, Release) and not isinstance(one.schedule, Sampled | Outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """An assumption of the analysis on the data or the algorithm's quantities, with the bound that is attained.

    Attributes:
        what: The quantity, as named in the paper.
        assumed: The bound that the sensitivities assume.
        attained: The bound that the paper's own algorithm or benchmark attains; None if the quantity is unbounded.
        repair: Change that would make the assumption true.
        source: Reference in the paper.
        bounds: Name of the `Column` that it bounds: if the attained bound is larger than the assumed one, the column's
            bound is raised to it, and charged. Empty if it bounds no column: then no claim holds while it is broken.
    """

    what: str
    assumed: Expr
    attained: Expr | None
    repair: str
    source: str
    bounds: str = ""

    def __post_init__(self) -> None:
        text("what, of Assumption", self.what)
        where = f"assumption on {self.what!r}"
        object.__setattr__(self, "assumed", number(f"{where}, assumed", self.assumed))
        if self.attained is not None:
            object.__setattr__(self, "attained", number(f"{where}, attained", self.attained))
        text(f"{where}, repair", self.repair, empty=True)
        text(f"{where}, source", self.source, empty=True)
        text(f"{where}, bounds", self.bounds, empty=True)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Its numbers, with the condition on each."""
        numbers = (("the assumed bound", self.assumed), ("the attained bound", self.attained))
        conditions = (Condition(what=what, of=of, domain="nonnegative") for what, of in numbers if of is not None)
        return tuple(condition.at(f"assumption on {self.what!r}") for condition in conditions)

    @property
    def symbols(self) -> frozenset[str]:
        """Names of the parameters that occur in it."""
        return self.assumed.symbols | (self.attained.symbols if self.attained is not None else frozenset())
