"""Releases: a statistic, the noise on it, how often it leaves and who is in it, beside the paper's own figures.

A `Release` is one kind of what leaves (`privcheck.declare.procedures.Procedure`); its schedule decides how it is
priced.
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
from privcheck.declare.mechanisms.checking import check_mechanism, mechanism_conditions
from privcheck.declare.procedures.additive import release_branches
from privcheck.declare.procedures.base import Cost, Facts, KnownPair
from privcheck.declare.procedures.sampled_pairs import sampled_pairs
from privcheck.declare.procedures.sampling_costs import alone, check_sampling, sampled_cost, sampled_events
from privcheck.declare.procedures.varying import check_varying, varying_cost, varying_events, varying_pairs
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
    """Number of rows of a user; 0 for an absent user, 1 for an author's own kind of data."""
    if user is None:
        return 0
    return user.users if isinstance(user, Trajectories | Regressors | Vectors) else 1


def take_rows(user: Any, rows: slice) -> Any:
    """Some of a user's rows; None if none is left."""
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
    """`times` copies of a user's rows; None stays None."""
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
        """Returns the derived sensitivity in the same norm."""
        return sensitivity.l1


@dataclass(frozen=True, slots=True)
class L2:
    """A sensitivity in the ℓ₂ norm (Frobenius for matrices), as a paper states it."""

    value: Expr

    def __init__(self, value: Exact | Expr) -> None:
        object.__setattr__(self, "value", number("L2", value))

    def true(self, sensitivity: Sensitivity) -> Expr:
        """Returns the derived sensitivity in the same norm."""
        return sensitivity.l2


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Which noise is one and the same draw; by default every cell of every output has its own.

    Attributes:
        name: Releases with the same name that is not empty add the same draw.
        across: "cells": one draw serves all cells of an output; "outputs": one serves all outputs of the schedule.
    """

    name: str = ""
    across: tuple[Literal["cells", "outputs"], ...] = ()

    def __post_init__(self) -> None:
        text("name, of Draw", self.name, empty=True)
        words_of("across, of Draw", self.across, ("cells", "outputs"))


@dataclass(frozen=True, slots=True)
class Release:
    """One noisy statistic that leaves the curator, as often as its schedule says.

    Attributes:
        name: Unique in the declaration; the name the channel is called with.
        statistic: What is computed.
        mechanism: What is added.
        stated: The sensitivity of one contribution as the paper states it, or None where it states none. Charged is
            always the derived one.
        source: Where the paper says so.
        schedule: How often it leaves; where its users are sampled, how, or the `Sample` that it shares with others.
        fresh: That its samples are drawn independently of all others', where others are drawn alike.
        users: Of one of the declaration's `partitions` of the users, the group whose data this is; empty where it is
            everybody's.
        draw: Which noise is shared.
        counted: How often the paper's proof charges this release to one user; None where it counts as the schedule.
        budget: What the paper says all outputs of this release cost together, or None.
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
            raise DeclarationError(f"{where}: {message}; {self.statistic.name} is none, give it Gaussian noise")
        if self.mechanism.law.whole and not is_whole(self.statistic):
            message = f"{self.mechanism.law.name} noise hides whole numbers, and {self.statistic.name} may be others"
            raise DeclarationError(f"{where}: {message}; declare counts, Stated(…, whole=True), or continuous noise")
        if isinstance(self.schedule, Sampled):
            check_sampling(self)
        elif isinstance(self.schedule, Outputs):
            check_varying(self)

    @property
    def facts(self) -> Facts:
        """What reports say of it, and the numbers that it depends on."""
        words, latex, kept = self.mechanism.words, self.mechanism.latex, tuple(self.statistic.preconditions)
        if isinstance(self.schedule, Sampled):
            words = f"{words}, on the {self.statistic.name} of a random sample"
            kept = (*kept, "who is in a sample is not told")
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
        """Return the standard deviation of one coordinate, rounded up; of batches, that of the least noise."""
        return self.mechanism.std.number(self.quietest(values), rounding="up")

    def with_std(self, factor: Fraction) -> Release:
        """Return the release with all noise of `factor` times the standard deviation.

        The spread of noise that is priced by ℓ₂ is a variance.

        Raises:
            ParameterError: The mechanism lacks `with_spread`.
        """
        if not hasattr(self.mechanism, "with_spread"):
            message = f"{self.name}: no other spread can be set of {self.mechanism.words}"
            remedy = f"give {type(self.mechanism).__name__} the method `with_spread`"
            raise ParameterError(f"{message}; {remedy}", name="spread")
        power = 2 if self.mechanism.law.norm == "l2" else 1
        return replace(self, mechanism=self.mechanism.with_spread(self.mechanism.spread * factor**power))

    def cost(self, relation: Relation) -> Cost:
        """Return what all outputs cost: of noise that hides two values no finite price.

        Raises:
            DeclarationError: The relation means nothing for the way in which the users are sampled.
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
        """Return all outputs as events of the numeric accountant, none where no user moves anything.

        Raises:
            ParameterError: A user is in one of several batches, of which none is the dearest for certain.
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
            message = f"{self.name}: a user is in one of several batches, and each has a curve of its own"
            raise ParameterError(f"{message}; ask `account` of the declaration", name="sizes")
        return branches[0] if branches else ()

    def pairs(self, relation: Relation, values: Mapping[str, Fraction]) -> tuple[KnownPair, ...]:
        """Return users whom one output tells apart, with its law in D and in D′.

        None of outputs that hold all users with the declared noise: verification searches neighbours for all of these
        together (`privcheck.verification.candidate_pairs`).
        """
        if isinstance(self.schedule, Sampled):
            return sampled_pairs(alone(self), relation, values)
        return varying_pairs(self, relation, values) if isinstance(self.schedule, Outputs) else ()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Returns its numbers and what each must be."""
        conditions = [*getattr(self.statistic, "conditions", ()), *schedule_conditions(self.schedule)]
        if self.stated is not None:
            conditions.append(Condition(what="its stated sensitivity", of=self.stated.value, domain="nonnegative"))
        if self.counted is not None:
            conditions.append(Condition(what="how often it is counted", of=self.counted, domain="nonnegative"))
        if self.budget is not None:
            conditions += guarantee_conditions(self.budget)
        where, sizes = f"release {self.name!r}", self.batch_sizes
        noise = (one.at(where, sizes, self.schedule.times) for one in mechanism_conditions(self.mechanism))
        return (*(one.at(where, sizes) for one in conditions), *noise)

    @property
    def reuses_noise(self) -> bool:
        """Returns whether one of its draws hides two values: of several outputs, or of several cells of a table."""
        across, one = self.draw.across, expression(1)
        schedule = self.schedule
        alone = isinstance(schedule, Once) or (isinstance(schedule, EveryEpisode) and schedule.outputs == one)
        alone = alone or (isinstance(schedule, Tree) and schedule.leaves == one and schedule.trees == one)
        known = is_derived(self.statistic) and not self.statistic.symbols
        scalar = known and math.prod(self.statistic.shape({})) == 1
        return ("outputs" in across and not alone) or ("cells" in across and not scalar)

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that occur in it."""
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
        """Returns how many users `n` the batches have that its mechanism depends on, or None."""
        sized = isinstance(self.schedule, Batches) and self.schedule.sizes is not None
        return self._sizes_at if sized else None

    def _sizes_at(self, values: Mapping[str, Fraction]) -> tuple[int, ...]:
        """Returns the sizes of its batches.

        Raises:
            ParameterError: The schedule's `sizes` gives none, or one that is no whole number from 1 on.
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
        """Returns the parameters, once for every size of a batch with `n` among them; none where nobody is in any."""
        if self.batch_sizes is None:
            return (values,)
        return tuple({**values, "n": Fraction(size)} for size in self.batch_sizes(values))

    def quietest(self, values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
        """Returns the setting with the least noise; of a batch of one user where nobody is in any; n stays."""
        if self.batch_sizes is not None and "n" in values:
            return values
        settings = self.settings(values) or ({**values, "n": Fraction(1)},)
        return settings[0] if len(settings) == 1 else min(settings, key=lambda at: self.mechanism.at(at).scale)

    def charged(self, relation: Relation) -> Sensitivity:
        """Returns how far one user moves all outputs together, in coordinates in which the noise is independent."""
        return self.mechanism.whiten(self.contributed(relation)).repeated(load_of(self.schedule))

    def contributed(self, relation: Relation) -> Sensitivity:
        """Returns how far one user moves one output, or where its outputs hold trajectories one by one, one of them."""
        return self.statistic.sensitivity(self.contribution(relation))

    def contribution(self, relation: Relation) -> Relation:
        """Returns the relation of one contribution: all that a user has, or in the leaves of trees one trajectory."""
        return of_one_trajectory(relation) if self._one_by_one else relation

    def one_contribution(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        """Returns the pair of one contribution: all that the user has, or in the leaves of trees the first of each."""
        first = slice(0, 1)
        return (take_rows(pair[0], first), take_rows(pair[1], first)) if self._one_by_one else pair

    @property
    def _one_by_one(self) -> bool:
        return isinstance(self.schedule, Tree) and self.schedule.leaves_of_a_user != expression(1)

    def moved(self, pair: tuple[Any, Any], values: Mapping[str, Fraction]) -> SparseDifference:
        """Returns what the pair changes in one output, in the noise's coordinates, and in how many outputs it does.

        The user who differs is the first: in the tree the first leaf, of the cumulative outputs the one in all of them.
        A user with several trajectories is in leaves 1, 1 + separation, …; the changes of all nodes then stand one
        after the other, as of one output.
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
    """Return whether a release is a statistic of all users with the declared noise, in every output alike.

    These are priced by the sensitivity of all outputs together and attacked together: their changes are one vector.
    """
    return isinstance(one, Release) and not isinstance(one.schedule, Sampled | Outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What the analysis presupposes of the data or of the algorithm's own quantities, and what it is given.

    Attributes:
        what: The quantity, as in the paper.
        assumed: The bound that the sensitivities rest on.
        attained: The bound that the paper's own algorithm or benchmark attains; None where nothing bounds it.
        repair: What would make it true.
        source: Where the paper says so.
        bounds: The `Column` that it bounds, by name: where more is attained than assumed, the column's bound is raised
            to it, and that is charged. Empty where it bounds none: no claim then holds while it is broken.
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
        """Returns its numbers and what each must be."""
        numbers = (("the assumed bound", self.assumed), ("the attained bound", self.attained))
        conditions = (Condition(what=what, of=of, domain="nonnegative") for what, of in numbers if of is not None)
        return tuple(condition.at(f"assumption on {self.what!r}") for condition in conditions)

    @property
    def symbols(self) -> frozenset[str]:
        """Returns the parameters that occur in it."""
        return self.assumed.symbols | (self.attained.symbols if self.attained is not None else frozenset())
