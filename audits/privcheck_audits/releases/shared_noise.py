"""Outputs that share their noise are attacked where they leak: in the difference of two of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.mechanisms import Noise
from privcheck.results import AuditRequest, AuditResult
from privcheck.verification import Witness, worst_witness
from privcheck_audits.bounds import GuessPlan, RankedBound, bound_at_ranks, guess_plan
from privcheck_audits.engine.blocks import BLOCK, Tally, blocks, tally
from privcheck_audits.engine.prefixes import Prefixes
from privcheck_audits.engine.scores import Scored, draw_hidden_bits
from privcheck_audits.plan.common import Evidence, check, limits, place_blocks
from privcheck_audits.plan.meanings import releases_meaning
from privcheck_audits.plan.runner import Outcome, run_test

_CERTAIN: Final = 1_000.0  # nats: the score of a difference that only one neighbour can produce


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Differences:
    """A block of trials: two outputs with the same draw, and which neighbour their difference reveals."""

    noise: Noise
    change: float
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        secret = draw_hidden_bits(rng, runs)
        drawn = self.noise.draw(rng, runs)
        with_user: NDArray[np.float64] = np.where(secret, self.change, 0.0) + drawn
        difference = with_user - drawn  # what the outputs themselves are: the draw is in both
        nearer = np.abs(difference - self.change) < np.abs(difference)
        score = np.where(nearer, _CERTAIN, -_CERTAIN)
        scored = Scored(score=score, secret=secret)
        return tally(scored, guess_plan(), first=first, seed=self.seed, thresholds=(0.0,))


def audit_differences(request: AuditRequest) -> AuditResult:
    """Returns the audit of two outputs with the same draw of noise, by their difference.

    Raises:
        ParameterError: A number of the request is out of its range.
    """
    check(request, ("auto", "coin-flip"))
    began = time.perf_counter()
    declaration, values = request.declaration, request.values
    witness = worst_witness(request.priced)
    name, change, noise = _choose_release(request, witness)
    bound, alpha, plan = limits(request, values), 1 - request.confidence, guess_plan()
    work = _Differences(noise=noise, change=change, seed=request.seed)

    def count(seen: Prefixes[Tally]) -> Tally:
        return seen.total(blocks(work, 2 * request.trials, stream=0, block=BLOCK, **place_blocks(request, Tally)))

    def guess(some: Tally) -> RankedBound:
        return bound_at_ranks(
            some.ranked_errors, some.ranked_guesses, plan, runs=some.runs, alpha=alpha, delta=request.delta
        )

    def limit(runs: int) -> float:
        return _flawless(runs, plan, alpha=alpha, delta=request.delta)

    def read(counted: Tally) -> Outcome:
        best = guess(counted)
        refuted = bound.name_refuted(best.epsilon)
        evidence: Evidence = {
            "errors": best.flip.errors,
            "guesses": best.flip.guesses,
            "attacked": name,
            "change": change,
            "noise_scale": noise.scale,
            "refuted": refuted,
            "meaning": releases_meaning(refuted, declaration, reachable=None),
        }
        return Outcome(
            violated=refuted != "nothing",
            lower=best.epsilon,
            evidence=evidence,
            method=f"coin flip: two outputs of {name} with the same draw of noise, subtracted",
            witness=witness.words if witness is not None else "",
            reachable=limit(counted.runs),
            runs=counted.runs,
            tally=counted,
            bound=lambda some: guess(some).epsilon,
            limit=limit,
            pair=None if witness is None else witness.pair,
        )

    return run_test(request, count, read, bound=bound, began=began)


def _flawless(runs: int, plan: GuessPlan, *, alpha: float, delta: float) -> float:
    """Returns what guesses that are never wrong certify."""
    guesses = plan.ranks(runs)
    return bound_at_ranks((0,) * len(guesses), guesses, plan, runs=runs, alpha=alpha, delta=delta).epsilon


def _choose_release(request: AuditRequest, witness: Witness | None) -> tuple[str, float, Noise]:
    """Returns the release whose outputs leak, the largest entry of what the witness moves in it, and its noise."""
    declaration, values = request.declaration, request.values
    leaking = declaration.shared_draws
    if witness is None:
        return leaking[0], 0.0, declaration.release(leaking[0]).mechanism.at(values).coordinates()
    moved = {name: declaration.release(name).moved(witness.pair, values).change for name in leaking}
    name = max(moved, key=lambda key: float(np.abs(moved[key]).max(initial=0.0)))
    change = moved[name]
    largest = float(change[np.abs(change).argmax()]) if change.size else 0.0
    return name, largest, declaration.release(name).mechanism.at(values).coordinates()
