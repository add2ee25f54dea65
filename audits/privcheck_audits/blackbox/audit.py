"""Black-box audit: any Python function with a claim and pairs of neighbours, judged by its outputs alone.

A `Round` goes over all pairs: calls are compared, scores learned on three tenths of the runs (`blackbox.scores`), the
other runs counted between edges fixed in advance and tested (`blackbox.verdict`), bounds confirmed. If the audit may
stop early, all runs are also bet on (`blackbox.anytime`). No reported violation depends on the independence of runs of
one call (`blackbox.confirmation`): if separate calls contradict the promise of long calls, the audit is repeated with
one run per call. Users call `privcheck.audit_mechanism`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from privcheck.errors import ParameterError
from privcheck.runtime.audit_pictures import TradeOff
from privcheck.runtime.auditors import (
    Exceptions,
    MechanismAudit,
    MechanismClaim,
    MechanismError,
    MechanismFunction,
    Neighbours,
    Workers,
)
from privcheck.support.display import Progress
from privcheck_audits.blackbox.anytime import EProcess, anytime, refutes, weigh
from privcheck_audits.blackbox.calls import read_signature
from privcheck_audits.blackbox.inputs import probe
from privcheck_audits.blackbox.pairs import APART, BLOCK, LEAST, AuditedPair, BlockPlace
from privcheck_audits.blackbox.power import find_power
from privcheck_audits.blackbox.verdict import TIES, Attempt, Best, ClaimedLoss, Counts, attempts, best
from privcheck_audits.engine.blocks import Tally
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.pools import refuse_unsendable
from privcheck_audits.plan.pictures import trace_claim, trade_off

_LOOKS: Final = 0.5  # of α, for the looks of an audit that may stop early

Ended = Literal["done", "stopped", "interrupted"]
_Phase = Callable[[], Generator[None, None, None]]  # one pair's part of a phase, block by block


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Result of a round.

    Attributes:
        largest: The largest bound.
        refuted: Whether the claim is refuted.
        misled: Whether runs of long calls were dependent, or promised too much, so that the audit must be repeated.
        notes: Notes for users.
        evidence: Figures behind the confirmation.
        error: Error that prevented the confirmation.
    """

    largest: Best
    refuted: bool
    misled: bool = False
    notes: tuple[str, ...] = ()
    evidence: Mapping[str, float | int] = field(default_factory=dict)
    error: MechanismError | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Round:
    """One pass over all pairs.

    Attributes:
        pairs: Pairs of neighbours.
        target: The claim.
        alpha: One minus the confidence of this round.
        stop: Whether to check after every block and stop once the claim is refuted.
        ended: How the round ended.
    """

    pairs: Sequence[AuditedPair]
    target: ClaimedLoss
    alpha: float
    stop: bool
    ended: Ended = "interrupted"

    @property
    def looks(self) -> float:
        """Part of α spent on interim checks."""
        return _LOOKS * self.alpha if self.stop else 0.0

    @property
    def has_counted(self) -> bool:
        """Whether any run was tested."""
        return any(
            (pair.tested is not None and pair.tested.runs) or (pair.e_process is not None and pair.e_process.runs)
            for pair in self.pairs
        )

    def go(self, progress: Progress) -> None:
        """Make all runs, unless stopped or interrupted.

        Raises:
            MechanismError: The function cannot be audited.
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
        """Judge whether the bound refutes the claim; separate calls have to confirm a refutation by long calls."""
        largest = _verdict(self.pairs, self.target, self.ended, alpha=self.alpha - self.looks, looks=self.looks)
        pair = self.pairs[largest.attempt.pair]
        notes = [f"{each.dependence}; every run of pair {each.source.number} was made in a separate call"
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
                    "runs in separate calls, which give this bound"
                )
                largest = replace(largest, lower=found.lower)
            return Judged(largest=largest, refuted=True, notes=tuple(notes), evidence=evidence)
        said = "contradict" if contradicts else "do not confirm"
        notes.append(
            f"not confirmed: long calls gave {largest.lower:.4g}, which {runs:,} runs in separate calls {said}"
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
    """Run all pairs block by block, one pair after the other or in turn."""
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
    """Largest valid bound: from all runs, unless their number depended on the outcomes, or from the interim checks."""
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


def draw_errors(counts: Counts, score: int, claim: MechanismClaim, *, confidence: float) -> TradeOff | None:
    """Both kinds of error of one score at all its edges, beside the errors that the claim allows.

    Args:
        counts: Counts of runs in a number fixed beforehand; the result is None if a neighbour has no runs.
        score: Index of the score.
        claim: The claim.
        confidence: Confidence of the band.
    """
    inside = counts.inside[score]
    used = int(inside.sum(axis=0).nonzero()[0].max(initial=0))
    at_most = np.cumsum(inside[:, : max(1, used)], axis=1)  # scores below each edge, for D and D′
    counted = Tally(
        runs=counts.runs,
        errors=0,
        ranked_errors=(),
        ranked_guesses=(),
        on_first=int(counts.totals[0]),
        on_second=int(counts.totals[1]),
        false_second=tuple(at_most[0].tolist()),
        false_first=tuple((counts.totals[1] - at_most[1]).tolist()),
    )
    return trade_off(counted, confidence=confidence, claim=trace_claim(claim, {}), words=f"{claim}", accountant=None)


_AGAIN: Final = 0.1  # of α, for what is done again with one run a call
_MOST_NUMBERS: Final = 12_000_000  # of the outputs that are held in memory for learning


def audit_mechanism(
    mechanism: MechanismFunction,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours,
    trials: int,
    confidence: float,
    seed: int,
    workers: int,
    progress: Progress,
    stop: bool = False,
    executor: Workers = None,
    directory: Path | None = None,
    exceptions: Exceptions = "output",
    one_at_a_time: bool | None = None,
    block: int = BLOCK,
) -> MechanismAudit:
    """Audit a function; see `privcheck.audit_mechanism`. Slow functions get fewer runs per block.

    Raises:
        ParameterError: An argument is out of its range, the function cannot be sent to the workers, or the directory
            belongs to another audit.
        MechanismError: The function raised or returned something other than runs.
        KeyboardInterrupt: The audit was interrupted before any run was tested.
    """
    began = time.perf_counter()
    target = ClaimedLoss.of(claim)
    _refuse(neighbours, trials=trials, confidence=confidence, seed=seed, workers=workers)
    if executor is not None:
        refuse_unsendable(mechanism, executor, name="mechanism")
        refuse_unsendable(neighbours, executor, name="neighbours")
    if exceptions not in ("output", "raise"):
        wanted = "“output” or “raise”"
        raise ParameterError(f"exceptions: expected {wanted}, got {exceptions!r}", name="exceptions", given=exceptions)
    caller = read_signature(mechanism, one_at_a_time=one_at_a_time, catch=exceptions == "output")
    probed = [probe(caller, pair, number=i, seed=seed) for i, pair in enumerate(neighbours)]
    if directory is not None and not all(each.outputs for each in probed):
        message = "directory: the function's outputs do not repeat with the seed, so that no audit of it can be resumed"
        wanted = "expected all randomness from `rng`, or no directory"
        raise ParameterError(f"{message}; {wanted}", name="directory", given=str(directory))
    plan = {
        "mechanism": getattr(mechanism, "__qualname__", type(mechanism).__qualname__),
        "claim": str(claim),
        "trials": trials,
        "confidence": confidence,
        "pairs": len(neighbours),
        "stop": stop,
        "exceptions": exceptions,
        "one_at_a_time": str(one_at_a_time),
    }
    alpha = 1 - confidence
    again = 0.0 if trials <= APART else _AGAIN * alpha

    said: list[str] = [note for each in probed for note in each.notes]

    def begin(*, second: bool) -> Round:
        held = _MOST_NUMBERS // (len(probed) if stop else 1)
        pairs = [
            AuditedPair(
                source=each.source,
                target=target,
                trials=trials,
                held=held,
                kept=_MOST_NUMBERS // len(probed),
                how=BlockPlace(
                    workers=workers, executor=executor, checkpoint=_keep(directory, plan, outputs=each.outputs)
                ),
                e_process=EProcess(target=target) if stop else None,
                block=block,
                again=second,
            )
            for each in probed
        ]
        return Round(pairs=pairs, target=target, alpha=again if second else alpha - again, stop=stop)

    def result(last: Round, judged: Judged) -> MechanismAudit:
        pairs, largest = last.pairs, judged.largest
        left = max(2 * trials - pair.learned for pair in pairs)
        power, share = find_power(target, left, alpha=last.alpha - last.looks), left / (2 * trials)
        more = _precision_notes(pairs, target, refuted=judged.refuted, alpha=last.alpha)
        more += [] if judged.refuted else power.notes(trials, share=share)
        counts = pairs[largest.attempt.pair].tested
        score = -1 if largest.attempt.kind == "e-process" else largest.attempt.score
        return MechanismAudit(
            claim=str(claim),
            verdict="violation" if judged.refuted else "consistent",
            unit=target.unit,
            claimed=target.claimed,
            lower=largest.lower,
            reachable=power.reachable,
            visible=power.visible,
            needed=power.trials(share=share),
            delta=target.delta,
            trials=trials,
            runs=sum(pair.runs for pair in pairs),
            ended=last.ended,
            confidence=confidence,
            seed=seed,
            pair=largest.attempt.pair,
            method=_describe(largest, pairs[largest.attempt.pair]),
            notes=tuple(dict.fromkeys([*said, *judged.notes, *more])),
            evidence={
                "learned_on": sum(pair.learned for pair in pairs),
                "tested_on": sum(pair.tested.runs for pair in pairs if pair.tested is not None),
                "right_guesses": largest.right,
                "wrong_guesses": largest.wrong,
                "alpha_of_this_attempt": largest.alpha,
                "attempts": sum(len(attempts(0, p.edges.cuts, target)) for p in pairs if p.edges is not None),
                "compared_runs": sum(pair.compared for pair in pairs),
                **judged.evidence,
            },
            seconds=time.perf_counter() - began,
            neighbours=tuple(neighbours),
            trade_off=None
            if counts is None or last.ended != "done"
            else draw_errors(counts, score, claim, confidence=confidence),
        )

    found, judged = _run(begin(second=False), progress, result)
    if not judged.misled:
        return found
    said += judged.notes
    try:
        return _run(begin(second=True), progress, result)[0]
    except KeyboardInterrupt:  # before any run of the second round was tested: the first one accuses nobody
        return found


def _run(
    last: Round, progress: Progress, result: Callable[[Round, Judged], MechanismAudit]
) -> tuple[MechanismAudit, Judged]:
    judged: Judged | None = None
    try:
        last.go(progress)
        if last.ended == "interrupted" and not last.has_counted:
            raise KeyboardInterrupt
        judged = last.judge()
        if judged.error is not None:
            raise judged.error
    except MechanismError as error:
        if not last.has_counted:
            raise
        last.ended = "interrupted"
        finished = result(last, judged or last.judge())
        message = f"{error}; the {finished.runs:,} runs before it say: {finished.verdict}"
        raise MechanismError(message, trial=error.trial, seed=error.seed, finished=finished) from error.__cause__
    return result(last, judged), judged


def _precision_notes(pairs: Sequence[AuditedPair], target: ClaimedLoss, *, refuted: bool, alpha: float) -> list[str]:
    """Notes on whether the design or floating-point noise leaks, for outputs of low precision."""
    if all(pair.coarse is None for pair in pairs):
        return []
    seen = "outputs have less than double precision, and are compared on a grid that is coarser than they are"
    if refuted:
        return [f"{seen}: the design refutes the claim, not the floating-point noise"]
    for cut, counts in filter(None, (pair.learn_precisely() for pair in pairs)):
        tried = attempts(0, cut.cuts, target)
        weights = weigh(tried, [counts], target, tested=[counts.runs], alpha=alpha)
        rng = np.random.default_rng(TIES)
        lower = best(tried, weights, [counts], [counts], target, alpha=alpha, rng=rng).lower
        if lower > target.claimed:
            told = (
                f"{seen}. On a finer grid the verdict would be “violation” ({lower:.4g} in the runs that scores were "
                "learned on): there the floating-point noise leaks, not the design. That leak is real, and "
                "`audit_float_noise` audits it"
            )
            return [told]
    return []


def _describe(largest: Best, pair: AuditedPair) -> str:
    if largest.attempt.kind == "e-process":
        return "e-process of bets on a hidden coin, checked after every block"
    way = {
        "flip": "guesses of a hidden coin",
        "event": "probabilities of an event",
        "curve": "errors in all runs",
        "divergence": "Donsker–Varadhan divergence",
    }[largest.attempt.kind]
    assert pair.scores is not None
    return f"{way}, score “{pair.scores.names[largest.attempt.score]}”"


def _keep(directory: Path | None, plan: Mapping[str, str | float], *, outputs: str) -> Checkpoint | None:
    if directory is None:
        return None
    return Checkpoint(directory=directory, plan={**plan, "outputs": outputs})


def _refuse(neighbours: Any, *, trials: int, confidence: float, seed: int, workers: int) -> None:
    for name, good, wanted, given in (
        ("trials", trials >= LEAST, f"at least {LEAST}: scores are learned", trials),
        ("confidence", 0 < confidence < 1, "strictly between 0 and 1", confidence),
        ("seed", seed >= 0, "at least 0", seed),
        ("workers", workers >= 1, "at least 1", workers),
    ):
        if not good:
            raise ParameterError(f"{name}: expected {wanted}, got {given!r}", name=name, given=given)
    pairs = list(neighbours) if isinstance(neighbours, list | tuple) else []
    if not pairs or not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        wanted = "a list of pairs [(D, D′), …], one at least"
        raise ParameterError(f"neighbours: expected {wanted}, got {neighbours!r}", name="neighbours", given=neighbours)
