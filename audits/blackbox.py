"""The black box: any Python function with a claim and a pair of neighbours, judged by its outputs alone.

Three tenths of the runs teach scores (`audits.blackbox_scores`); the others are counted between edges that were fixed
before (`audits.blackbox_counts`) and tested (`audits.blackbox_verdict`). Users call `privcheck.audit_mechanism`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from audits.blackbox_counts import Counts, Edges, edges
from audits.blackbox_inputs import Array, Bits, Source, probe, together
from audits.blackbox_scores import Learned, Scores, learn
from audits.blackbox_verdict import Attempt, Best, Target, attempts, best, reachable, weigh
from audits.engine import blocks
from privcheck.auditors import GaussianDP, Mechanism, MechanismAudit, MechanismClaim, MechanismError, Neighbours
from privcheck.errors import ParameterError
from privcheck.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.results import Progress, silent

LEARNED: Final = 0.3  # the share of the runs that scores are learned on
_MOST_LEARNED: Final = 60_000  # of a pair
_MOST_NUMBERS: Final = 20_000_000  # of the outputs that are held in memory for learning
_BLOCK: Final = 8_192  # runs
_BLOCK_NUMBERS: Final = 1_000_000
_LEAST: Final = 100  # trials
_STREAM: Final = 0xB1AC  # keeps these blocks apart from other audits of the same seed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Prepared:
    source: Source
    scores: Scores
    edges: Edges
    training: Counts
    learned: int


def audit_mechanism(
    mechanism: Mechanism,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours,
    trials: int = 100_000,
    confidence: float = 0.99,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = silent,
) -> MechanismAudit:
    """Returns the audit; see `privcheck.audit_mechanism`."""
    began = time.perf_counter()
    target = _target(claim)
    _check(neighbours, trials=trials, confidence=confidence, seed=seed, workers=workers)
    looked = [probe(mechanism, pair, number=i, seed=seed) for i, pair in enumerate(neighbours)]
    whole = 2 * trials * len(looked)

    def made(before: int) -> Progress:
        return lambda done, _: progress(before + done, whole)

    prepared = []
    for i, (source, _) in enumerate(looked):
        prepared.append(_prepare(source, target, trials=trials, workers=workers, progress=made(2 * trials * i)))
    tried: list[Attempt] = []
    for i, pair in enumerate(prepared):
        tried += attempts(i, pair.edges.cuts, target)
    alpha = 1 - confidence
    sizes = [2 * trials - pair.learned for pair in prepared]
    weights = weigh(tried, [pair.training for pair in prepared], target, tested=sizes, alpha=alpha)

    def result(counted: list[Counts]) -> MechanismAudit:
        found = best(tried, weights, counted, target, alpha=alpha)
        notes = tuple(dict.fromkeys(note for _, some in looked for note in some))
        return MechanismAudit(
            claim=str(claim),
            verdict="violation" if found.lower > target.claimed else "consistent",
            unit=target.unit,
            claimed=target.claimed,
            lower=found.lower,
            reachable=reachable(target, max(sizes), alpha=alpha),
            delta=target.delta,
            trials=trials,
            confidence=confidence,
            seed=seed,
            pair=found.attempt.pair,
            method=_words(found, prepared[found.attempt.pair].scores.names[found.attempt.score]),
            notes=notes,
            evidence={
                "learned_on": sum(pair.learned for pair in prepared),
                "tested_on": sum(counts.runs for counts in counted),
                "right_guesses": found.right,
                "wrong_guesses": found.wrong,
                "alpha_of_this_attempt": found.alpha,
                "attempts": len(tried),
            },
            seconds=time.perf_counter() - began,
        )

    counted = [pair.training.none() for pair in prepared]
    try:
        for i, pair in enumerate(prepared):
            report = made(2 * trials * i + pair.learned)
            for part in _tested(pair, target, runs=sizes[i], workers=workers, progress=report):
                counted[i] += part
    except MechanismError as error:
        if any(counts.runs for counts in counted):
            finished = result(counted)
            message = f"{error}; the {sum(c.runs for c in counted):,} runs tested before it say: {finished.verdict}"
            raise MechanismError(message, trial=error.trial, seed=error.seed, finished=finished) from error.__cause__
        raise
    return result(counted)


def _prepare(source: Source, target: Target, *, trials: int, workers: int, progress: Progress) -> _Prepared:
    most = max(2 * _LEAST, _MOST_NUMBERS // source.width)
    runs = min(round(LEARNED * 2 * trials), _MOST_LEARNED, most)
    parts: Iterator[tuple[Array, Bits]] = blocks(
        source.runs,
        runs,
        seed=source.seed,
        stream=_STREAM + 2 * source.number,
        block=_block(source),
        workers=workers,
        progress=progress,
    )
    rows, secret = together(list(parts))
    sequence = np.random.SeedSequence(source.seed, spawn_key=(_STREAM, source.number))
    learned: Learned = learn(rows, secret, np.random.default_rng(sequence))
    cuts = edges(learned.held_out)
    training = cuts.count(learned.held_out, secret, moments=target.unit == "rho")
    return _Prepared(source=source, scores=learned.scores, edges=cuts, training=training, learned=runs)


def _tested(pair: _Prepared, target: Target, *, runs: int, workers: int, progress: Progress) -> Iterator[Counts]:
    def work(rng: np.random.Generator, number: int, first: int) -> Counts:
        rows, secret = pair.source.runs(rng, number, pair.learned + first)
        return pair.edges.count(pair.scores(rows), secret, moments=target.unit == "rho")

    return blocks(
        work,
        runs,
        seed=pair.source.seed,
        stream=_STREAM + 2 * pair.source.number + 1,
        block=_block(pair.source),
        workers=workers,
        progress=progress,
    )


def _block(source: Source) -> int:
    return max(64, min(_BLOCK, _BLOCK_NUMBERS // source.width))


def _target(claim: object) -> Target:
    if isinstance(claim, PureDP):
        found = Target(unit="epsilon", claimed=claim.epsilon.number(rounding="up"), delta=0.0)
    elif isinstance(claim, ApproxDP):
        found = Target(
            unit="epsilon", claimed=claim.epsilon.number(rounding="up"), delta=claim.delta.number(rounding="up")
        )
    elif isinstance(claim, ZCDP):
        found = Target(unit="rho", claimed=claim.rho.number(rounding="up"), delta=0.0)
    elif isinstance(claim, GaussianDP):
        found = Target(unit="mu", claimed=claim.mu.number(rounding="up"), delta=0.0)
    else:
        wanted = "PureDP, ApproxDP, ZCDP or GaussianDP"
        raise ParameterError(f"claim: expected one of {wanted}, got {claim!r}", name="claim", given=claim)
    if not (0 <= found.claimed < np.inf and 0 <= found.delta < 1):
        raise ParameterError(f"claim: expected finite and not negative, δ below 1, got {claim}", given=claim)
    return found


def _check(neighbours: Any, *, trials: int, confidence: float, seed: int, workers: int) -> None:
    for name, good, wanted, given in (
        ("trials", trials >= _LEAST, f"at least {_LEAST}: scores are learned", trials),
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


def _words(found: Best, score: str) -> str:
    way = {
        "flip": "guesses of a hidden coin",
        "event": "probabilities of an event",
        "curve": "errors in all runs",
        "divergence": "Donsker–Varadhan divergence",
    }[found.attempt.kind]
    return f"{way}, score “{score}”"
