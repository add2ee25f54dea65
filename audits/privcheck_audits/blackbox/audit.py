"""The black box: any Python function with a claim and pairs of neighbours, judged by its outputs alone.

Three tenths of the runs teach scores (`blackbox.scores`); the others are counted between edges that were fixed
before (`blackbox.counts`) and tested (`blackbox.verdict`). Where the audit may stop early, all of them
are bet on as well (`privcheck_audits.blackbox.anytime`). Users call `privcheck.audit_mechanism`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from privcheck.auditors import (
    Exceptions,
    MechanismAudit,
    MechanismClaim,
    MechanismError,
    MechanismFunction,
    Neighbours,
    Workers,
)
from privcheck.errors import ParameterError
from privcheck.guarantees import ZCDP, ApproxDP, GaussianDP, PureDP
from privcheck.progress import Progress
from privcheck_audits.blackbox.anytime import EProcess
from privcheck_audits.blackbox.calls import read_signature
from privcheck_audits.blackbox.pairs import APART, BLOCK, LEAST, AuditedPair
from privcheck_audits.blackbox.pictures import draw_errors
from privcheck_audits.blackbox.power import find_power
from privcheck_audits.blackbox.probing import probe
from privcheck_audits.blackbox.rounds import Judged, Round
from privcheck_audits.blackbox.verdict import TIES, Best, ClaimedLoss, attempts, best
from privcheck_audits.blackbox.weights import weigh
from privcheck_audits.blackbox.work import BlockPlace
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.pools import refuse_unsendable

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
    """Returns the audit; see `privcheck.audit_mechanism`. Slow functions have fewer runs in a block.

    Raises:
        ParameterError: An argument is out of its range, the function cannot be sent to the workers, or the directory
            belongs to another audit.
        MechanismError: The function raised or returned something else than rows of numbers.
        KeyboardInterrupt: No run had been tested yet.
    """
    began = time.perf_counter()
    target = _target(claim)
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
    """Returns whether the design or the floating-point noise tells, where outputs have low precision."""
    precise = [pair.precise for pair in pairs if pair.precise is not None]
    if not precise:
        return []
    seen = "outputs have less than double precision, and are compared on a grid that is coarser than they are"
    if refuted:
        return [f"{seen}: what refutes the claim is the design, not the floating-point noise"]
    for cut, counts in precise:
        tried = attempts(0, cut.cuts, target)
        weights = weigh(tried, [counts], target, tested=[counts.runs], alpha=alpha)
        rng = np.random.default_rng(TIES)
        lower = best(tried, weights, [counts], [counts], target, alpha=alpha, rng=rng).lower
        if lower > target.claimed:
            told = (
                f"{seen}. On a finer grid the verdict would be “violation” ({lower:.4g} in the runs that scores were "
                "learned on): what tells there is the floating-point noise, not the design. That leak is real, and "
                "`audit_float_noise` is the audit of it"
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


def _target(claim: object) -> ClaimedLoss:
    if isinstance(claim, PureDP):
        target = ClaimedLoss(unit="epsilon", claimed=claim.epsilon.number(rounding="up"), delta=0.0)
    elif isinstance(claim, ApproxDP):
        target = ClaimedLoss(
            unit="epsilon", claimed=claim.epsilon.number(rounding="up"), delta=claim.delta.number(rounding="up")
        )
    elif isinstance(claim, ZCDP):
        target = ClaimedLoss(unit="rho", claimed=claim.rho.number(rounding="up"), delta=0.0)
    elif isinstance(claim, GaussianDP):
        target = ClaimedLoss(unit="mu", claimed=claim.mu.number(rounding="up"), delta=0.0)
    else:
        wanted = "PureDP, ApproxDP, ZCDP or GaussianDP"
        raise ParameterError(f"claim: expected one of {wanted}, got {claim!r}", name="claim", given=claim)
    if not (0 <= target.claimed < np.inf and 0 <= target.delta < 1):
        raise ParameterError(f"claim: expected finite and not negative, δ below 1, got {claim}", given=claim)
    return target


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
