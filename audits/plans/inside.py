"""The views that look inside: lockstep replay and noise as declared, for any tabular declaration.

They see exact values, which only auditors do, and bound no ε: they say whether the running code is what was declared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

import numpy as np

from audits.canaries import pairs, random_users, sizes
from audits.lockstep import Distance, replay, worst
from audits.noise import noise_tests
from audits.plans.common import Evidence, check, limits
from privcheck.results import AuditRequest, AuditResult

_USERS: Final = 50  # behind a canary
_CELLS: Final = 60_000  # of one step's statistics, above which these views take fewer states


def lockstep(request: AuditRequest) -> AuditResult:
    """Returns whether some pair moves a release further than it is charged; `trials` is the number of pairs."""
    check(request)
    began = time.perf_counter()
    values = _tractable(request.values)
    rng = np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(2,)))
    base = random_users(_USERS, values, rng)
    found: tuple[Distance, ...] = ()
    for number, pair in enumerate(pairs(request.declaration, values, rng, request.trials)):
        found = worst([*found, *replay(request.declaration, values, base, pair, seed=request.seed + number)])
        request.progress(number + 1, request.trials)
    broken = [distance for distance in found if distance.exceeds]
    top = max(broken or found, key=lambda distance: distance.ratio)
    evidence: Evidence = {
        f"{d.release}_{d.norm}_moved_over_charged": d.ratio if math.isfinite(d.ratio) else "slices differ"
        for d in found
    }
    evidence |= {
        "release": top.release,
        "norm": top.norm,
        "moved": top.measured if math.isfinite(top.measured) else "slices differ",
        "charged": top.charged,
        **_size_note(request.values, values),
    }
    return _result(
        request,
        began,
        violated=bool(broken),
        method="lockstep replay: the distance of the exact values on D and, behind D's billboard, on D′ against the "
        "sensitivity charged; exact, without error probability",
        witness=top.pair,
        evidence=evidence,
    )


def noise(request: AuditRequest) -> AuditResult:
    """Returns whether the channel draws the declared noise; `trials` is the number of runs of the channel."""
    check(request)
    began = time.perf_counter()
    values = _tractable(request.values)
    rng = np.random.default_rng(np.random.SeedSequence(request.seed, spawn_key=(3,)))
    data = random_users(_USERS, values, rng)
    found = noise_tests(
        request.declaration, values, data, runs=request.trials, seed=request.seed, progress=request.progress
    )
    level = (1 - request.confidence) / len(found)
    broken = sorted((test for test in found if test.p_value < level), key=lambda test: test.p_value)
    evidence: Evidence = {f"drawn_over_declared_scale_{t.where}": t.figure for t in found if t.name == "scale"}
    evidence |= {
        "tests": len(found),
        "smallest_p_value": min(test.p_value for test in found),
        "level_of_each_test": level,
        "draws": sum(test.draws for test in found if test.name == "scale"),
        **_size_note(request.values, values),
    }
    refuted = "; ".join(f"{t.name} of {t.where} ({t.figure:.4g})" for t in broken) or "nothing"
    evidence["refuted"] = refuted
    return _result(
        request,
        began,
        violated=bool(broken),
        method=f"noise as declared: {len(found)} tests of scale, law and independence of what the channel drew, valid "
        "at any number of draws, α divided among them",
        witness=refuted,
        evidence=evidence,
    )


def _result(
    request: AuditRequest, began: float, *, violated: bool, method: str, witness: str, evidence: Evidence
) -> AuditResult:
    """Returns what an audit that bounds no ε found, beside the bounds of the request."""
    bound = limits(request, request.values)
    return AuditResult(
        view=request.view,
        verdict="violation" if violated else "consistent",
        trials=request.trials,
        confidence=request.confidence,
        delta=request.delta,
        epsilon_lower=None,
        epsilon_upper=bound.upper,
        epsilon_claimed=bound.claimed,
        reachable=None,
        method=method,
        witness=witness,
        evidence=evidence,
        seconds=time.perf_counter() - began,
    )


def _tractable(values: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    _, states, actions = sizes(values)
    if states * actions * (states + 1) <= _CELLS:
        return values
    fewer = max(2, math.isqrt(_CELLS // actions))
    return {**values, "S": Fraction(min(states, fewer))}


def _size_note(asked: Mapping[str, Fraction], used: Mapping[str, Fraction]) -> Evidence:
    return {} if asked["S"] == used["S"] else {"audited_at": f"S = {used['S']} (asked: {asked['S']})"}
