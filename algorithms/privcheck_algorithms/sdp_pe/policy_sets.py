"""Sets of remaining policies, explicit with a bit each or implicit with one constraint, and the explorative mixture.

The README says what the implicit set loses. The explorative policy of equation (4), `cover`, is a mixture that visits
everything about as often as any policy of φ_b does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError
from privcheck.support.kernels import njit
from privcheck_algorithms.online.private import MEMORY
from privcheck_algorithms.sdp_pe.kernels import add_visits, plan, plan_above
from privcheck_algorithms.sdp_pe.policy_bits import (
    Numbering,
    Words,
    all_policies,
    complete,
    count_policies,
    count_words,
    find_best,
    keep_above,
    number_policies,
    shorten,
)

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Arrays = dict[str, NDArray[np.float64] | NDArray[np.uint64]]

_TIE = 1e-9  # rewards below this only decide between policies that tie


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Mixture of policies for users.

    Attributes:
        policies: (M, H, S) actions.
        shares: (M,) probability that a user gets each policy; they sum to 1.
    """

    policies: Indices
    shares: Array


def mix(parts: list[Mixture]) -> Mixture:
    """Mixture of several mixtures with equal shares."""
    return Mixture(
        policies=np.concatenate([part.policies for part in parts]),
        shares=np.concatenate([part.shares for part in parts]) / len(parts),
    )


class PolicySet(Protocol):
    """Set φ_b of remaining policies, stored in a replicate's arrays."""

    def blank(self) -> Arrays:
        """Arrays of the set of all policies."""
        ...

    def find(self, kept: Arrays, P: Array, reward: Array, ties: np.random.Generator) -> Mixture:
        """Mixture of policies of φ_b with the largest reward.

        Args:
            kept: The set's arrays.
            P: (H, S, A, S) transitions; rows may sum to less than 1.
            reward: (steps, S, A) rewards of the first steps only.
            ties: Generator that breaks ties.
        """
        ...

    def eliminate(self, kept: Arrays, P: Array, reward: Array, width: float) -> None:
        """Remove policies from φ_b with a value at least `width` below the best one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explicit:
    """One bit for every deterministic policy; actions in impossible first states are not distinguished.

    Attributes:
        H: Number of steps.
        numbering: Numbering of the policies.
        initial: (S,) law of the first state.
        A: Number of actions.
    """

    H: int
    numbering: Numbering
    initial: Array
    A: int

    def blank(self) -> Arrays:
        """All bits set, and their number."""
        bits = all_policies(self.numbering, self.H)
        return {"alive": bits, "left": np.array([float(self._whole), 0.0])}

    @property
    def _whole(self) -> int:
        return int(self.A ** (len(self.numbering.firsts) + (self.H - 1) * self.initial.size))

    def find(self, kept: Arrays, P: Array, reward: Array, ties: np.random.Generator) -> Mixture:
        """A single policy; by dynamic programming until a policy is eliminated."""
        steps, S = reward.shape[:2]
        actions = np.zeros((self.H, S), np.int64)
        wanted = np.zeros((self.H, S, self.A))
        wanted[:steps] = reward
        wanted += _TIE * ties.random(wanted.shape)
        start = int(ties.integers(2**31))
        if kept["left"][0] == self._whole:
            plan(P, wanted, self.initial, actions)
        else:
            alive: Words = kept["alive"]  # type: ignore[assignment]
            short = shorten(alive, self.numbering, self.H, steps)
            find_best(short, self.numbering, P[:steps], wanted[:steps], actions[:steps])
            complete(alive, self.numbering, steps, start, actions)
        return Mixture(policies=actions[None], shares=np.ones(1))

    def eliminate(self, kept: Arrays, P: Array, reward: Array, width: float) -> None:
        """Clear bits (Algorithm 1, lines 8 to 13)."""
        alive: Words = kept["alive"]  # type: ignore[assignment]
        best = find_best(alive, self.numbering, P, reward, np.zeros((self.H, self.initial.size), np.int64))
        if best - width < 0.0:  # no value is below 0
            return
        keep_above(alive, self.numbering, P, reward, best - width)
        kept["left"][0] = count_policies(alive)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Implicit:
    """Set {π: V^π ≥ c} in the last stage's model, as mixtures; earlier stages' constraints are dropped.

    Attributes:
        H: Number of steps.
        S: Number of states.
        A: Number of actions.
        initial: (S,) law of the first state.
    """

    H: int
    S: int
    A: int
    initial: Array

    def blank(self) -> Arrays:
        """Arrays without a constraint: c = 0, which every policy reaches."""
        H, S, A = self.H, self.S, self.A
        return {"last_P": np.zeros((H, S, A, S)), "last_reward": np.zeros((H, S, A)), "least": np.zeros(1)}

    def find(self, kept: Arrays, P: Array, reward: Array, ties: np.random.Generator) -> Mixture:
        """Mixture of two policies; a constraint uses its own model for the reward too, whatever P is."""
        wanted = np.zeros((self.H, self.S, self.A))
        wanted[: len(reward)] = reward
        wanted += _TIE * ties.random(wanted.shape)
        pair = np.zeros((2, self.H, self.S), np.int64)
        least = float(kept["least"][0])
        if least <= 0.0:
            plan(P, wanted, self.initial, pair[0])
            return Mixture(policies=pair[:1], shares=np.ones(1))
        worth: Array = kept["last_reward"]  # type: ignore[assignment]
        model: Array = kept["last_P"]  # type: ignore[assignment]
        share = min(1.0, max(0.0, plan_above(model, wanted, worth, least, self.initial, pair)))
        return Mixture(policies=pair, shares=np.array([1.0 - share, share]))

    def eliminate(self, kept: Arrays, P: Array, reward: Array, width: float) -> None:
        """Replace the constraint by this stage's: at most `width` below the best of all policies."""
        best = plan(P, reward, self.initial, np.zeros((self.H, self.S), np.int64))
        kept["last_P"][...], kept["last_reward"][...] = P, reward
        kept["least"][0] = max(0.0, best - width)


def choose_set(kind: str, *, H: int, S: int, A: int, initial: Array, replicates: int) -> PolicySet:
    """Set of all policies.

    Args:
        kind: "explicit" or "implicit".
        H: Number of steps.
        S: Number of states.
        A: Number of actions.
        initial: (S,) law of the first state.
        replicates: Number of runs that store a set.

    Raises:
        ParameterError: A bit for every policy does not fit into memory.
    """
    if kind == "implicit":
        return Implicit(H=H, S=S, A=A, initial=np.ascontiguousarray(initial))
    firsts = int((initial > 0).sum())
    bits = (firsts + (H - 1) * S) * math.log2(A)
    tails, words = count_words(H, S, A, firsts) if bits < 64 else (2**63, 1)
    needed = 8.0 * tails * (words * replicates + S * A)
    if needed > MEMORY:
        message = (
            f"policies=explicit keeps a bit for each of {A}^{firsts + (H - 1) * S} deterministic policies, "
            f"{needed / 1e9:.3g} GB or more for {replicates} replicates; at most {MEMORY / 1e9:g} GB are taken: use "
            "--set policies=implicit, or fewer replicates, states, actions or steps"
        )
        raise ParameterError(message, name="policies", given=kind)
    initial = np.ascontiguousarray(initial, dtype=np.float64)
    return Explicit(H=H, numbering=number_policies(initial, A), initial=initial, A=A)


STEPS = 40  # policies that are mixed in, at most
CLOSE = 1.1  # the worst ratio of equation (4) over the least there can be, with which it is left
_SEEN = 1e-6  # visits below that are none


def count_visits(mixture: Mixture, P: Array, initial: Array) -> Array:
    """Probability that a user visits each pair at each step, (H, S, A).

    Args:
        mixture: Mixture of policies for the users.
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
    """Mixture for equation (4), and its worst Σ q_μ/q divided by the least possible value.

    The minimiser of equation (4) exists as a mixture (Lemma 13): it maximises Σ ln q(h, x, a) over the pairs that a
    policy of φ_b visits at all, with visits q, because no policy μ then has Σ q_μ/q above the number of pairs. Found by
    the method of Frank and Wolfe: every step finds the policy of φ_b with the largest Σ q_μ/q, which is a planning
    problem, and mixes it in.

    Args:
        start: A mixture that visits every relevant pair.
        find: Finds the policy of φ_b with the largest reward (H, S, A).
        P: (H, S, A, S) the crude model.
        initial: (S,) law of the first state.
        steps: Largest number of policies to mix in.
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
    """Share t in [0, 1) that maximises Σ ln((1 − t)·here + t·there), by bisection on its slope.

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
