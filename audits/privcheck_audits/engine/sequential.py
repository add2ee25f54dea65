"""Audits that look after every block and stop when the claim is refuted: few runs for a large violation.

The e-process of `bounds.e_process` may be monitored continuously. Blocks begin small and grow by an eighth of the runs
before them, so at most an eighth is run beyond what was needed. An interrupted audit is as valid as a finished one.

What an audit had counted after its first blocks: a few dozen sums, whatever the number of blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar

from privcheck.errors import ParameterError
from privcheck_audits.bounds import (
    GuessPlan,
    anytime_epsilon,
    anytime_mu,
    e_process_plan,
    log_e_value,
    log_e_value_on_the_curve,
)
from privcheck_audits.engine.blocks import Tally, Work, gather

_GROWTH: Final = 1.2  # runs of a sum over those of the one kept before


class Counted(Protocol):
    """What blocks come to."""

    @property
    def runs(self) -> int:
        """Returns the number of runs."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """Returns the sum."""
        ...


C = TypeVar("C", bound=Counted)


@dataclass(slots=True, eq=False)
class Prefixes(Generic[C]):
    """The sums of the first blocks of an audit, a few dozen whatever their number."""

    _kept: list[C] = field(default_factory=list)
    _last: C | None = None

    def note(self, counted: C) -> None:
        """Takes the sum of all blocks so far, and keeps it where it is a fifth larger than the one kept before."""
        self._last = counted
        if not self._kept or counted.runs >= _GROWTH * self._kept[-1].runs:
            self._kept.append(counted)

    def total(self, parts: Iterator[C]) -> C:
        """Returns the sum of all blocks, noting those on the way."""
        counted = next(parts)
        self.note(counted)
        for part in parts:
            counted = counted + part
            self.note(counted)
        return counted

    def watch(self, stop: Callable[[C], bool] | None = None) -> Callable[[C], bool]:
        """Returns a rule for `gather` that notes what it sees and then asks the given one."""

        def rule(counted: C) -> bool:
            self.note(counted)
            return stop is not None and stop(counted)

        return rule

    @property
    def points(self) -> tuple[C, ...]:
        """Returns the sums, the last one included."""
        if self._last is None or self._last.runs == self._kept[-1].runs:
            return tuple(self._kept)
        return (*self._kept, self._last)


FIRST: Final = 8  # runs of the first block


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequential:
    """What a sequential audit came to.

    Attributes:
        verdict: "violation" where the e-value reached 1/α, else "consistent".
        runs: All runs, under both neighbours, up to the block at which it stopped.
        log_e_value: ln of the e-value against the claim at that time, rounded down.
        lower: The lower bound on ε at the claim's δ, or on μ, that holds at any time at confidence 1 − α.
        ended: "stopped" by a violation, "done" with all runs, or "interrupted".
        tally: The counts.
    """

    verdict: Literal["violation", "consistent"]
    runs: int
    log_e_value: float
    lower: float
    ended: Literal["done", "stopped", "interrupted"]
    tally: Tally


def sequential(
    work: Work[Tally],
    runs: int,
    *,
    epsilon: float,
    alpha: float,
    delta: float,
    plan: GuessPlan | None = None,
    grow: int = FIRST,
    seen: Prefixes[Tally] | None = None,
    **how: Any,
) -> Sequential:
    """Returns the audit of a claim of (ε, δ)-DP, stopped as soon as it is refuted.

    Args:
        work: Counts a block's wrong guesses at the ranks of the same plan.
        runs: At most, under both neighbours.
        epsilon: The claim.
        alpha: The probability with which a true claim is ever refuted, at most.
        delta: The claim.
        plan: On how many runs to guess, with each attempt's weight; None for `e_process_plan()`.
        grow: Runs of the first block.
        seen: Keeps what the first blocks came to.
        how: Seed, workers, executor, checkpoint, progress, … as in `privcheck_audits.engine.blocks.blocks`.

    Raises:
        ParameterError: A number is out of its range.
    """
    _check(alpha)
    guesses = plan if plan is not None else e_process_plan()

    def e_value(t: Tally) -> float:
        return log_e_value(t.ranked_errors, t.ranked_guesses, t.runs, plan=guesses, epsilon=epsilon, delta=delta)

    def lower(t: Tally) -> float:
        return anytime_epsilon(t.ranked_errors, t.ranked_guesses, t.runs, plan=guesses, alpha=alpha, delta=delta)

    return _stop_when_refuted(
        work, runs, e_value=e_value, lower=lower, alpha=alpha, seen=seen, how={"grow": grow, **how}
    )


def sequential_on_the_curve(
    work: Work[Tally],
    runs: int,
    *,
    mu: float,
    alpha: float,
    grow: int = FIRST,
    seen: Prefixes[Tally] | None = None,
    **how: Any,
) -> Sequential:
    """Returns the audit of a claim of μ-GDP from a guess in every run, stopped as soon as it is refuted.

    Args:
        work: Counts a block's wrong guesses by the sign of the score.
        runs: At most, under both neighbours.
        mu: The claim; about mechanisms that are μ-GDP, which ρ-zCDP alone does not imply.
        alpha: The probability with which a true claim is ever refuted, at most.
        grow: Runs of the first block.
        seen: Keeps what the first blocks came to.
        how: Seed, workers, executor, checkpoint, progress, … as in `privcheck_audits.engine.blocks.blocks`.

    Raises:
        ParameterError: A number is out of its range.
    """
    _check(alpha)
    return _stop_when_refuted(
        work,
        runs,
        e_value=lambda t: log_e_value_on_the_curve(t.errors, t.runs, mu=mu),
        lower=lambda t: anytime_mu(t.errors, t.runs, alpha=alpha),
        alpha=alpha,
        seen=seen,
        how={"grow": grow, **how},
    )


def _stop_when_refuted(
    work: Work[Tally],
    runs: int,
    *,
    e_value: Callable[[Tally], float],
    lower: Callable[[Tally], float],
    alpha: float,
    seen: Prefixes[Tally] | None,
    how: dict[str, Any],
) -> Sequential:
    enough = -math.log(alpha)
    noted = Prefixes[Tally]() if seen is None else seen
    gathered = gather(work, runs, stop=noted.watch(lambda t: e_value(t) >= enough), **how)
    reached = e_value(gathered.total)
    return Sequential(
        verdict="violation" if reached >= enough else "consistent",
        runs=gathered.runs,
        log_e_value=reached,
        lower=lower(gathered.total),
        ended=gathered.ended,
        tally=gathered.total,
    )


def _check(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ParameterError(f"expected alpha in (0, 1), got {alpha!r}", name="alpha", given=alpha)
