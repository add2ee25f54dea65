"""Lower bounds on ε and δ of a composition whose laws are known from below, as those of random allocations are.

If every law of a composition dominates another, the composition of these is dominated by that of the first: a pair that
is dominated is a post-processing of the other (Blackwell), and so is a product of such pairs.
"""

from __future__ import annotations

import functools
from typing import Final

import numpy as np

from privcheck.accounting.answers import fetch_job
from privcheck.accounting.engine.below import LossSum, loss_sums, refuted_epsilon
from privcheck.accounting.engine.discrete import AtomicLaw
from privcheck.accounting.engine.laws import DIRECTIONS
from privcheck.accounting.events import Event

_DOWN: Final = 1 - 1e-9  # covers the roundings of masses and losses, and of sums over them


def known_below(branch: tuple[Event, ...]) -> bool:
    """Whether all laws of a composition are known from below, and none is a bound on its event."""
    job = fetch_job(branch)
    known = all(isinstance(law, AtomicLaw) and law.below is not None for law, _ in job.laws)
    rest = job.mu_squared > 0 or job.lost < 0 or job.orders_only or any(event.note for event in branch)
    return bool(job.laws) and known and not rest


def delta_below(branch: tuple[Event, ...], epsilon: float) -> float:
    """δ(ε), rounded down."""
    return max(0.0, *(law.delta(epsilon) for law in _sums(branch))) * _DOWN


def epsilon_below(branch: tuple[Event, ...], delta: float) -> float:
    """Least ε with δ(ε) ≤ δ, rounded down."""
    return refuted_epsilon(lambda epsilon: delta_below(branch, epsilon), delta) if delta > 0 else 0.0


@functools.lru_cache(maxsize=16)
def _sums(branch: tuple[Event, ...]) -> tuple[LossSum, ...]:
    """Sums of the losses of the laws below, in both directions."""
    sums = list[LossSum]()
    for direction in DIRECTIONS:
        parts = []
        for law, count in fetch_job(branch).laws:
            assert isinstance(law, AtomicLaw)
            atoms = law.atoms_below(direction)
            assert atoms is not None
            kept = atoms.logs > -np.inf
            parts.append((atoms.losses[kept], np.exp(atoms.logs[kept]), count))
        sums += loss_sums(parts, direct=None if sum(count for *_, count in parts) == 1 else 0)
    return tuple(sums)
