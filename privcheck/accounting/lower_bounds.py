"""Lower bounds on ε and δ of a composition.

The laws of random allocations are known from below, and those of Gaussian noise beside them. If every law of a
composition dominates another, the composition of these is dominated by that of the first: a pair that is dominated is a
post-processing of the other (Blackwell), and so is a product of such pairs.

Other laws are those of two outputs that some mechanism has: the pair that refutes is the one that is charged. Their
composition is bounded from below by contour integrals (`engine.brackets`).
"""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np

from privcheck.accounting.answers import fetch_job
from privcheck.accounting.engine.allocated_below import merged_gaussian
from privcheck.accounting.engine.below import LossSum, loss_sums, refuted_epsilon
from privcheck.accounting.engine.brackets import bracket_log_deltas
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laplace import LaplaceLaw
from privcheck.accounting.engine.laws import DIRECTIONS
from privcheck.accounting.engine.replaced import ReplacedGaussian
from privcheck.accounting.engine.sampled import SampledGaussian
from privcheck.accounting.events import Event

_EXACT: Final = (LaplaceLaw, SampledGaussian, ReplacedGaussian)  # laws of outputs that some mechanism has
# … and events that are those mechanisms themselves, or the worst of a class: others may be bounded by the same laws
_KINDS: Final = frozenset({
    "gaussian", "laplace", "discrete_laplace", "randomized_response", "pure", "poisson_gaussian"
})  # fmt: skip
_WITH_GAUSSIANS: Final = frozenset({"gaussian", "random_allocation", "allocated"})
_LESS: Final = (1e-6, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3)  # of ε, by which a lower bound is tried
_DOWN: Final = 1 - 1e-9  # covers the roundings of masses and losses, and of sums over them


def known_below(branch: tuple[Event, ...]) -> bool:
    """Whether all laws of a composition are known from below, and none is a bound on its event."""
    return _with_laws_below(branch) or _of_exact_laws(branch)


def _with_laws_below(branch: tuple[Event, ...]) -> bool:
    job = fetch_job(branch)
    known = all(isinstance(law, AtomicLaw) and law.below is not None for law, _ in job.laws)
    # a Gaussian may stand for something that costs less
    exact = job.mu_squared == 0 or all(event.kind in _WITH_GAUSSIANS for event in branch)
    return bool(job.laws) and known and exact and not _is_bound(branch)


def _of_exact_laws(branch: tuple[Event, ...]) -> bool:
    job = fetch_job(branch)
    laws = [law for law, _ in job.laws]
    exact = all(isinstance(law, _EXACT) or (isinstance(law, AtomicLaw) and law.whole) for law in laws)
    named = all(event.kind in _KINDS for event in branch)
    return bool(laws) and exact and named and not job.joined and not _is_bound(branch)


def _is_bound(branch: tuple[Event, ...]) -> bool:
    job = fetch_job(branch)
    return job.lost < 0 or job.orders_only or any(event.note for event in branch)


def delta_below(branch: tuple[Event, ...], epsilon: float) -> float:
    """δ(ε), rounded down."""
    if _with_laws_below(branch):
        return max(0.0, *(law.delta(epsilon) for law in _sums(branch))) * _DOWN
    least = -math.inf
    for direction in DIRECTIONS:
        found = bracket_log_deltas(fetch_job(branch), np.array([epsilon]), np.zeros(1), direction)
        least = max(least, -math.inf if found is None else float(found[1][0]))
    return math.exp(least) * _DOWN


def epsilon_below(branch: tuple[Event, ...], delta: float, upper: float) -> float:
    """Least ε with δ(ε) ≤ δ, rounded down.

    Args:
        branch: The composition.
        delta: δ.
        upper: A bound from above.
    """
    if delta == 0:
        return 0.0
    if _with_laws_below(branch):
        return refuted_epsilon(lambda epsilon: delta_below(branch, epsilon), delta)
    if math.isfinite(upper):
        for share in _LESS:
            if delta_below(branch, upper * (1 - share)) > delta:
                return upper * (1 - share)
    return 0.0


@functools.lru_cache(maxsize=16)
def _sums(branch: tuple[Event, ...]) -> tuple[LossSum, ...]:
    """Sums of the losses of the laws below, in both directions where they differ."""
    sums, laws = list[LossSum](), fetch_job(branch).laws
    for direction in DIRECTIONS[: 1 if all(law.symmetric for law, _ in laws) else 2]:
        parts = []
        for law, count in laws:
            assert isinstance(law, AtomicLaw)
            atoms = law.atoms_below(direction)
            assert atoms is not None
            kept = atoms.logs > -np.inf
            parts.append((atoms.losses[kept], np.exp(atoms.logs[kept]), count))
        if (squared := fetch_job(branch).mu_squared) > 0:
            parts.append((*merged_gaussian(math.sqrt(squared) * (1 - 1e-15)), 1))
        sums += loss_sums(parts, direct=None if sum(count for *_, count in parts) == 1 else 0)
    return tuple(sums)
