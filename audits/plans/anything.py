"""The plan of every declaration that has none of its own: its releases, at the witness of verification.

Declarations whose outputs share their noise are attacked where they leak: in the difference of two outputs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from audits.bounds import guess_plan, ranked_bound
from audits.engine import BLOCK, Tally, blocks, tally, total
from audits.plans.common import Evidence, check, checkpoint, limits
from audits.plans.releases import releases
from audits.scores import Scored, hidden_bits
from privcheck.accounting.account import shared_draws
from privcheck.declaration import Declaration
from privcheck.mechanisms import Noise
from privcheck.registry import AuditPlan
from privcheck.results import AuditRequest, AuditResult
from privcheck.verification import Witness, find_witness

_ADDITIVE: Final = ("gaussian", "laplace")
_CERTAIN: Final = 1_000.0  # nats: the score of a difference that only one neighbour can produce


def audit(request: AuditRequest) -> AuditResult:
    """Returns the audit of the releases; of outputs that share their noise, by their difference.

    Raises:
        ParameterError: A number of the request is out of its range, or nothing can be attacked.
        AuditError: A trial's score is not finite.
    """
    return _differences(request) if shared_draws(request.declaration) else releases(request)


def declines(declaration: Declaration) -> str:
    """Returns why a declaration cannot be audited by this plan; empty where it can."""
    other = [r.name for r in declaration.releases if r.mechanism.law not in _ADDITIVE]
    return f"the noise of {', '.join(other)} is not additive, and no plan of its own is registered" if other else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Differences:
    """A block of trials: two outputs with the same draw, and which neighbour their difference gives away."""

    noise: Noise
    change: float
    seed: int

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        secret = hidden_bits(rng, runs)
        drawn = self.noise.draw(rng, runs)
        with_user: NDArray[np.float64] = np.where(secret, self.change, 0.0) + drawn
        difference = with_user - drawn  # what the outputs themselves are: the draw is in both
        nearer = np.abs(difference - self.change) < np.abs(difference)
        score = np.where(nearer, _CERTAIN, -_CERTAIN)
        return tally(Scored(score=score, secret=secret), guess_plan(), first=first, seed=self.seed)


def _differences(request: AuditRequest) -> AuditResult:
    check(request)
    began = time.perf_counter()
    declaration, values = request.declaration, request.values
    found = find_witness(declaration, values)
    name, change, noise = _attacked(request, found)
    counted = total(
        blocks(
            _Differences(noise=noise, change=change, seed=request.seed),
            2 * request.trials,
            seed=request.seed,
            stream=0,
            block=BLOCK,
            workers=request.workers,
            executor=request.executor,
            checkpoint=checkpoint(request, Tally),
            progress=request.progress,
        )
    )
    bound, alpha, plan = limits(request, values), 1 - request.confidence, guess_plan()
    best = ranked_bound(
        counted.ranked_errors, counted.ranked_guesses, plan, runs=counted.runs, alpha=alpha, delta=request.delta
    )
    evidence: Evidence = {
        "errors": best.flip.errors,
        "guesses": best.flip.guesses,
        "attacked": name,
        "change": change,
        "noise_scale": noise.scale,
        "refuted": bound.refuted(best.epsilon),
        "trials_per_second": counted.runs / (time.perf_counter() - began),
    }
    return AuditResult(
        view="releases",
        verdict="consistent" if bound.refuted(best.epsilon) == "nothing" else "violation",
        trials=request.trials,
        confidence=request.confidence,
        delta=request.delta,
        epsilon_lower=best.epsilon,
        epsilon_upper=bound.upper,
        epsilon_claimed=bound.claimed,
        reachable=best.epsilon if best.flip.errors == 0 else None,
        method=f"coin flip: two outputs of {name} with the same draw of noise, subtracted",
        witness=found.words if found is not None else "",
        evidence=evidence,
        seconds=time.perf_counter() - began,
    )


def _attacked(request: AuditRequest, found: Witness | None) -> tuple[str, float, Noise]:
    """Returns the release whose outputs leak, the largest entry of what the witness moves in it, and its noise."""
    declaration, values = request.declaration, request.values
    leaking = shared_draws(declaration)
    if found is None:
        return leaking[0], 0.0, declaration.release(leaking[0]).mechanism.at(values).coordinates()
    moved = {name: declaration.release(name).moved(found.pair, values).change for name in leaking}
    name = max(moved, key=lambda key: float(np.abs(moved[key]).max(initial=0.0)))
    change = moved[name]
    largest = float(change[np.abs(change).argmax()]) if change.size else 0.0
    return name, largest, declaration.release(name).mechanism.at(values).coordinates()


ANY = AuditPlan(name="any", views=("releases",), trials={"releases": 1_000_000}, audit=audit, declines=declines)
