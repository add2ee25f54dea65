"""Audits of any Python function with a claim: what goes in and what comes out.

The auditor itself is found by name through the entry points (`privcheck.auditors`), as algorithms and audit plans are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol, cast

import numpy as np

from privcheck.errors import AuditError, UnknownNameError
from privcheck.guarantees import ZCDP, ApproxDP, PureDP
from privcheck.results import Progress, silent
from privcheck.symbols import Exact, Expr, expression

Mechanism = Callable[[Any, int, np.random.Generator], Any]  # (dataset, size, rng) → array whose first axis is `size`
Neighbours = Sequence[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class GaussianDP:
    """μ-GDP: no test tells D from D′ better than N(0, 1) from N(μ, 1) (Dong, Roth & Su 2022, Definition 2.6).

    A claim for mechanisms that add Gaussian noise. ρ-zCDP does not imply it.

    Attributes:
        mu: μ.
    """

    mu: Expr

    def __init__(self, mu: Exact | Expr) -> None:
        object.__setattr__(self, "mu", expression(mu))

    def __str__(self) -> str:
        return f"({self.mu})-GDP"


MechanismClaim = PureDP | ApproxDP | ZCDP | GaussianDP


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismAudit:
    """What the audit of a function found.

    Attributes:
        claim: What was claimed, in words.
        verdict: "violation" or "consistent"; an audit never shows that a mechanism is private.
        unit: What `claimed`, `lower` and `reachable` measure: "epsilon" (at `delta`), "rho" or "mu".
        claimed: The claim in that unit, rounded up.
        lower: With the confidence, the loss is at least this, rounded down.
        reachable: About what the best test could have certified with these runs, were the claim exactly true.
        delta: The claim's δ; 0 where it has none.
        trials: N, runs under each neighbour of each pair.
        confidence: 1 − α of the whole audit: all pairs, directions, scores and thresholds together.
        seed: With which the audit can be repeated.
        pair: The index of the pair that gave `lower`.
        method: The test that gave `lower`, in words.
        notes: What else was noticed about the function: that a seed does not fix its output, for example.
        evidence: Figures behind the verdict, by name.
        seconds: Wall time.
    """

    claim: str
    verdict: Literal["violation", "consistent"]
    unit: Literal["epsilon", "rho", "mu"]
    claimed: float
    lower: float
    reachable: float
    delta: float
    trials: int
    confidence: float
    seed: int
    pair: int
    method: str
    notes: tuple[str, ...]
    evidence: Mapping[str, float | int | str]
    seconds: float

    def __str__(self) -> str:
        letter = {"epsilon": "ε", "rho": "ρ", "mu": "μ"}[self.unit]
        found = f"{letter} ≥ {self.lower:.4g} at {self.confidence:.4g} confidence (pair {self.pair}, {self.method})"
        runs = f"{self.trials:,} runs under each neighbour, seed {self.seed}"
        best = f"at most about {self.reachable:.4g} could be shown with them, were the claim exactly true"
        lines = [f"{self.verdict}: {self.claim} claimed, {found}; {runs}; {best}", *self.notes]
        return "\n".join(lines)


class MechanismError(AuditError):
    """A function under audit that cannot be judged: it raised, or what it returned is not an array of numbers.

    Attributes:
        trial: The run, counted from 0 over both neighbours; the first of a call where the call failed as a whole.
        seed: The audit's seed, with which the run can be repeated.
        finished: The audit of the runs before it; None where it failed before any run was tested.
    """

    def __init__(self, message: str, *, trial: int, seed: int, finished: MechanismAudit | None = None) -> None:
        super().__init__(message, trial=trial, seed=seed)
        self.finished = finished


class Auditor(Protocol):
    """What the entry points "blackbox" and "float-noise" of the group `privcheck.auditors` are."""

    def __call__(
        self,
        mechanism: Mechanism,
        claim: MechanismClaim,
        *,
        neighbours: Neighbours,
        trials: int,
        confidence: float,
        seed: int,
        workers: int,
        progress: Progress,
    ) -> MechanismAudit:
        """Returns the audit."""


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
    """Returns whether outputs of a function refute its claim, and a lower bound on its loss.

    Three tenths of the runs teach several scores; the rest is tested by statistics that are valid whatever was learned
    and that pay for everything they try. Outputs are put on a grid 2³⁰ times finer than their spread first: that the
    floating-point noise of NumPy tells its own centre is the business of `audit_float_noise`.

    Args:
        mechanism: `mechanism(dataset, size, rng)` returns `size` independent runs on the dataset, as an array (size,)
            or (size, …) of numbers. It takes all its randomness from `rng`.
        claim: `PureDP`, `ApproxDP`, `ZCDP` or `GaussianDP`.
        neighbours: Pairs of neighbouring datasets, whatever the mechanism takes.
        trials: N, runs under each neighbour of each pair; 2N a pair in all.
        confidence: 1 − α, all pairs, directions, scores and thresholds included.
        seed: Of the runs and of the learning.
        workers: Threads; the result does not depend on it.
        progress: Called after each block of runs.

    Raises:
        ParameterError: An argument is out of its range.
        MechanismError: The function raised or returned something else than `size` rows of numbers.
    """
    return _auditor("blackbox")(
        mechanism,
        claim,
        neighbours=neighbours,
        trials=trials,
        confidence=confidence,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def audit_float_noise(
    mechanism: Mechanism,
    claim: MechanismClaim,
    *,
    neighbours: Neighbours,
    trials: int = 10_000,
    confidence: float = 0.99,
    seed: int = 0,
    workers: int = 1,
    progress: Progress = silent,
) -> MechanismAudit:
    """Returns whether a function is told by the grid on which its floating-point outputs lie, whatever its design.

    Any mechanism that adds NumPy's noise to a float is; one that publishes integers or rounds to a coarse grid is not.
    A violation here says that the samplers must be replaced before anything is released, not that the design is wrong.

    Args:
        mechanism: As in `audit_mechanism`.
        claim: As in `audit_mechanism`.
        neighbours: As in `audit_mechanism`.
        trials: N, runs under each neighbour of each pair.
        confidence: 1 − α.
        seed: Of the runs and of the learning.
        workers: Threads; the result does not depend on it.
        progress: Called after each block of runs.

    Raises:
        ParameterError: An argument is out of its range.
        MechanismError: The function raised or returned something else than `size` rows of numbers.
    """
    return _auditor("float-noise")(
        mechanism,
        claim,
        neighbours=neighbours,
        trials=trials,
        confidence=confidence,
        seed=seed,
        workers=workers,
        progress=progress,
    )


def _auditor(name: str) -> Auditor:
    points = {point.name: point for point in entry_points(group="privcheck.auditors")}
    if name not in points:
        raise UnknownNameError("auditor", name, sorted(points))
    return cast("Auditor", points[name].load())
