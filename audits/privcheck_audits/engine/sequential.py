"""Audits that check after every block and stop when the claim is refuted: few runs for a large violation.

The e-process of `bounds.e_process` may be monitored continuously. Blocks begin small and grow by an eighth of the runs
before them, so at most an eighth of the runs is superfluous. An interrupted audit is as valid as a finished one.
`Prefixes` are the sums of the first blocks: a few dozen, whatever the number of blocks.
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
    """Results of blocks, with a number of runs."""

    @property
    def runs(self) -> int:
        """Number of runs."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """Sum of two results."""
        ...


C = TypeVar("C", bound=Counted)


@dataclass(slots=True, eq=False)
class Prefixes(Generic[C]):
    """Sums of the first blocks of an audit, a few dozen whatever their number."""

    _kept: list[C] = field(default_factory=list)
    _last: C | None = None

    def note(self, counted: C) -> None:
        """Note the sum of all blocks so far; it is kept if it has a fifth more runs than the last kept one."""
        self._last = counted
        if not self._kept or counted.runs >= _GROWTH * self._kept[-1].runs:
            self._kept.append(counted)

    def total(self, parts: Iterator[C]) -> C:
        """Sum all blocks, noting the partial sums."""
        counted = next(parts)
        self.note(counted)
        for part in parts:
            counted = counted + part
            self.note(counted)
        return counted

    def watch(self, stop: Callable[[C], bool] | None = None) -> Callable[[C], bool]:
        """Rule for `gather` that notes each sum and then applies the given rule."""

        def rule(counted: C) -> bool:
            self.note(counted)
            return stop is not None and stop(counted)

        return rule

    @property
    def points(self) -> tuple[C, ...]:
        """The kept sums, with the last one included."""
        if self._last is None or self._last.runs == self._kept[-1].runs:
            return tuple(self._kept)
        return (*self._kept, self._last)


FIRST: Final = 8  # runs of the first block


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequential:
    """Result of a sequential audit.

    Attributes:
        verdict: "violation" if the e-value reached 1/α, else "consistent".
        runs: All runs, under both neighbours, up to the block at which it stopped.
        log_e_value: ln of the e-value against the claim at that time, rounded down.
        lower: The lower bound on ε at the claim's δ, or on μ, anytime-valid at confidence 1 − α.
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
    """Audit a claim of (ε, δ)-DP, stopping as soon as it is refuted.

    Args:
        work: Counts a block's wrong guesses at the ranks of the same plan.
        runs: Largest number of runs, under both neighbours.
        epsilon: ε of the claim.
        alpha: Upper bound on the probability of ever refuting a true claim.
        delta: δ of the claim.
        plan: Numbers of runs to guess on, with weights; None for `e_process_plan()`.
        grow: Runs of the first block.
        seen: Keeps the sums of the first blocks.
        how: Seed, workers, executor, checkpoint, progress, … as in `privcheck_audits.engine.blocks.blocks`.

    Raises:
        ParameterError: A number is out of range.
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
    """Audit a claim of μ-GDP from a guess in every run, stopping as soon as it is refuted.

    Args:
        work: Counts a block's wrong guesses by the sign of the score.
        runs: Largest number of runs, under both neighbours.
        mu: μ of the claim; ρ-zCDP alone does not imply μ-GDP.
        alpha: Upper bound on the probability of ever refuting a true claim.
        grow: Runs of the first block.
        seen: Keeps the sums of the first blocks.
        how: Seed, workers, executor, checkpoint, progress, … as in `privcheck_audits.engine.blocks.blocks`.

    Raises:
        ParameterError: A number is out of range.
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
