"""The explorative policy of equation (4): a mixture that visits everything about as often as any policy of φ_b does.

Its minimiser exists as a mixture (Lemma 13): it is the one that maximises Σ ln q(h, x, a) over the pairs that a policy
of φ_b visits at all, where q are its visits, because no policy μ then has Σ q_μ/q above their number. Found by Frank
and Wolfe's method: every step asks φ_b for the policy with the largest Σ q_μ/q, which is a plan, and mixes it in.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privcheck.compiling import njit
from privcheck_algorithms.sdp_pe.planning import add_visits
from privcheck_algorithms.sdp_pe.policy_sets import Mixture

Array = NDArray[np.float64]

STEPS = 40  # policies that are mixed in, at most
CLOSE = 1.1  # the worst ratio of equation (4) over the least there can be, with which it is left
_SEEN = 1e-6  # visits below that are none


def count_visits(mixture: Mixture, P: Array, initial: Array) -> Array:
    """Returns (H, S, A) how likely a user visits each pair at each step.

    Args:
        mixture: What users are dealt.
        P: (H, S, A, S) transitions; rows may sum to less than 1.
        initial: (S,) law of the first state.
    """
    visits = np.zeros(P.shape[:3])
    for actions, share in zip(mixture.policies, mixture.shares, strict=True):
        add_visits(P, initial, actions, share, visits)
    return visits


def cover(
    start: Mixture, find: Callable[[Array], Mixture], P: Array, initial: Array, *, steps: int = STEPS
) -> tuple[Mixture, float]:
    """Returns the mixture and the worst Σ q_μ/q that it has, over the least there can be.

    Args:
        start: A mixture that visits every pair that counts.
        find: Asks φ_b for the policy with the largest reward (H, S, A).
        P: (H, S, A, S) the crude model.
        initial: (S,) law of the first state.
        steps: At most so many policies are mixed in.
    """
    visits = count_visits(start, P, initial)
    seen = visits > _SEEN
    least, parts, shares = max(1, int(seen.sum())), [start], [1.0]
    worst = np.inf
    for _ in range(steps):
        inverse = np.where(seen, 1.0 / np.where(seen, visits, 1.0), 0.0)
        found = find(inverse)
        other = count_visits(found, P, initial)
        worst = float((other * inverse).sum()) / least
        if worst <= CLOSE:
            break
        share = search_line(visits[seen], other[seen])
        if share <= 0.0:
            break
        visits = (1 - share) * visits + share * other
        shares = [(1 - share) * one for one in shares] + [share]
        parts.append(found)
    mixed = Mixture(
        policies=np.concatenate([part.policies for part in parts]),
        shares=np.concatenate([one * part.shares for one, part in zip(shares, parts, strict=True)]),
    )
    return mixed, worst


@njit(cache=True, nogil=True, error_model="numpy")
def search_line(here: Array, there: Array) -> float:
    """Returns the share t in [0, 1) that maximises Σ ln((1 − t)·here + t·there), by halving on its slope.

    Args:
        here: (n,) positive.
        there: (n,) not negative.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        t, slope = 0.5 * (low + high), 0.0
        for i in range(here.size):
            slope += (there[i] - here[i]) / ((1.0 - t) * here[i] + t * there[i])
        if slope > 0.0:
            low = t
        else:
            high = t
    return low
