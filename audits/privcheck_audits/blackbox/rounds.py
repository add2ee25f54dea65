"""All pairs of a black box on their way together: calls are compared, scores learned, runs tested, bounds confirmed.

No violation is reported that rests on the independence of runs of one call (`blackbox.confirmation`). Where long calls
promised what calls of their own then contradict, everything is done a second time, with one run a call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal

import numpy as np

from privcheck.auditors import MechanismError
from privcheck.progress import Progress
from privcheck_audits.blackbox.anytime import anytime, refutes
from privcheck_audits.blackbox.counts import Counts
from privcheck_audits.blackbox.pairs import AuditedPair
from privcheck_audits.blackbox.verdict import TIES, Attempt, Best, ClaimedLoss, attempts, best
from privcheck_audits.blackbox.weights import weigh

_LOOKS: Final = 0.5  # of α, for the looks of an audit that may stop early

Ended = Literal["done", "stopped", "interrupted"]
_Phase = Callable[[], Generator[None, None, None]]  # one pair's part of a phase, block by block


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a round came to.

    Attributes:
        largest: The bound.
        refuted: Whether the claim is.
        misled: Runs of long calls depend on each other, or promised too much: everything has to be done again.
        notes: What users should know.
        evidence: Figures behind the confirmation.
        error: Why it could not be confirmed.
    """

    largest: Best
    refuted: bool
    misled: bool = False
    notes: tuple[str, ...] = ()
    evidence: Mapping[str, float | int] = field(default_factory=dict)
    error: MechanismError | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Round:
    """All pairs, once.

    Attributes:
        pairs: Of neighbours.
        target: The claim.
        alpha: One minus the confidence of this round.
        stop: Whether it looks after every block and stops when the claim is refuted.
        ended: How it ended.
    """

    pairs: Sequence[AuditedPair]
    target: ClaimedLoss
    alpha: float
    stop: bool
    ended: Ended = "interrupted"

    @property
    def looks(self) -> float:
        """Returns the part of α that pays for looks."""
        return _LOOKS * self.alpha if self.stop else 0.0

    @property
    def has_counted(self) -> bool:
        """Returns whether any run was tested."""
        return any(
            (pair.tested is not None and pair.tested.runs) or (pair.e_process is not None and pair.e_process.runs)
            for pair in self.pairs
        )

    def go(self, progress: Progress) -> None:
        """Makes all runs, until it is stopped or interrupted.

        Raises:
            MechanismError: The function cannot be judged.
        """
        whole = sum(2 * pair.trials for pair in self.pairs)

        def settle() -> bool:
            progress(sum(pair.runs for pair in self.pairs), whole)
            e_processes = [pair.e_process for pair in self.pairs if pair.e_process is not None]
            return self.stop and refutes(e_processes, self.target.claimed, alpha=self.looks)

        for phases in (
            [pair.learn for pair in self.pairs],
            [pair.test for pair in self.pairs],
        ):
            self.ended = _through(phases, settle, in_turn=self.stop)
            if self.ended != "done":
                return

    def judge(self) -> Judged:
        """Returns the bound and whether it refutes the claim, which calls of their own have to confirm."""
        largest = _verdict(self.pairs, self.target, self.ended, alpha=self.alpha - self.looks, looks=self.looks)
        pair = self.pairs[largest.attempt.pair]
        notes = [f"{each.dependence}; every run of pair {each.source.number} was made in a call of its own"
                 for each in self.pairs if each.dependence]  # fmt: skip
        refuted = self.ended == "stopped" or largest.lower > self.target.claimed
        if not refuted or pair.source.apart:
            return Judged(largest=largest, refuted=refuted, notes=tuple(notes))
        error: MechanismError | None = None
        how: Ended = "interrupted"
        try:
            how = _through([partial(pair.confirm, alpha=self.alpha)], lambda: False, in_turn=False)
        except MechanismError as raised:
            error = raised
        found = pair.confirmation
        runs = found.runs if found is not None else 0
        evidence: dict[str, float | int] = {"confirming_runs": runs}
        confirmed, contradicts = found is not None and found.confirmed, found is not None and found.contradicts
        if found is not None and confirmed:
            evidence |= {"confirmed_lower": found.lower, "runs_of_a_confirming_call": found.size}
            if contradicts:
                notes.append(
                    f"runs of long calls depend on each other: they gave {largest.lower:.4g}, far more than {runs:,} "
                    "runs in calls of their own, whose bound this is"
                )
                largest = replace(largest, lower=found.lower)
            return Judged(largest=largest, refuted=True, notes=tuple(notes), evidence=evidence)
        said = "contradict" if contradicts else "do not confirm"
        notes.append(
            f"not confirmed: long calls gave {largest.lower:.4g}, which {runs:,} runs in calls of their own {said}"
            + (" (interrupted)" if how == "interrupted" else "")
        )
        return Judged(
            largest=replace(largest, lower=min(largest.lower, self.target.claimed)),
            refuted=False,
            misled=how == "done" and self.ended != "interrupted" and (contradicts or self.ended == "stopped"),
            notes=tuple(notes),
            evidence=evidence,
            error=error,
        )


def _through(phases: Sequence[_Phase], stop: Callable[[], bool], *, in_turn: bool) -> Ended:
    """Goes through all pairs block by block, one pair after the other or a block of each in turn."""
    waiting = [phase() for phase in phases]
    try:
        while waiting:
            for steps in list(waiting if in_turn else waiting[:1]):
                if next(steps, waiting) is waiting:
                    waiting.remove(steps)
                elif stop():
                    return "stopped"
    except KeyboardInterrupt:
        return "interrupted"
    finally:
        for steps in waiting:
            steps.close()
    return "done"


def _verdict(pairs: Sequence[AuditedPair], target: ClaimedLoss, ended: Ended, *, alpha: float, looks: float) -> Best:
    """Returns the largest bound that holds: of all runs, unless what they showed decided their number, or of looks."""
    nothing = Best(lower=0.0, attempt=Attempt(pair=0, score=0, kind="e-process"), alpha=looks, right=0, wrong=0)
    largest = nothing
    counted = [pair.tested for pair in pairs if pair.tested is not None]
    if ended != "stopped" and len(counted) == len(pairs):
        largest = _of_all_runs(pairs, counted, target, alpha=alpha)
    e_processes = [pair.e_process for pair in pairs if pair.e_process is not None]
    if e_processes:
        lower = max(anytime(e_processes, alpha=looks), target.claimed if ended == "stopped" else 0.0)
        if lower > largest.lower:
            strongest = int(np.argmax([e_process.log_e_value(target.claimed) for e_process in e_processes]))
            right, wrong = e_processes[strongest].guess_counts
            attempt = Attempt(pair=strongest, score=0, kind="e-process")
            largest = Best(lower=lower, attempt=attempt, alpha=looks, right=right, wrong=wrong)
    return largest


def _of_all_runs(pairs: Sequence[AuditedPair], counted: list[Counts], target: ClaimedLoss, *, alpha: float) -> Best:
    tried: list[Attempt] = []
    training = []
    for i, pair in enumerate(pairs):
        assert pair.edges is not None
        assert pair.training is not None
        tried += attempts(i, pair.edges.cuts, target)
        training.append(pair.training)
    sizes = [2 * pair.trials - pair.learned for pair in pairs]  # as planned: nothing tested decides the weights
    weights = weigh(tried, training, target, tested=sizes, alpha=alpha)
    rng = np.random.default_rng(np.random.SeedSequence(pairs[0].source.seed, spawn_key=(TIES,)))
    return best(tried, weights, training, counted, target, alpha=alpha, rng=rng)
