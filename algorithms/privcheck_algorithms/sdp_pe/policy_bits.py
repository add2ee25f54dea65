"""Sets of deterministic policies, one bit each: the best of the remaining policies, and elimination (Algorithm 1).

A policy's number has a *head*, its actions at steps 1 and 2, and a *tail*, those at the later ones. The bits of all
heads with one tail are neighbours, so that a word of 64 of them shares the backward computation from the tail: with Q₂
of the tail, a head's value is Σ_s w(s)·Q₂(s, a₂(s)) + c, where w and c depend on its first step alone.
Values of whole words are bounded by the largest Q₂, so that words without a maximum are skipped. At step 1 only
possible first states count: 2²¹ of the 2²⁴ policies of S = 4, A = 2, H = 6 are distinguished.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcheck.support.kernels import njit

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]

WORD = 64


class Numbering(NamedTuple):
    """Numbering of policies.

    Attributes:
        firsts: (F,) possible first states.
        initial: (F,) their probabilities.
        digits: (A^S, S) the actions of a step by its number, the first state's most significant.
        digits_first: (A^F, F) the same for step 1.
    """

    firsts: Indices
    initial: Array
    digits: Indices
    digits_first: Indices


def number_policies(initial: Array, A: int) -> Numbering:
    """Number the policies of A actions.

    Args:
        initial: (S,) law of the first state.
        A: Number of actions.
    """
    firsts = np.flatnonzero(initial > 0)
    return Numbering(
        firsts=firsts,
        initial=np.ascontiguousarray(initial[firsts], dtype=np.float64),
        digits=_digits(initial.size, A),
        digits_first=_digits(firsts.size, A),
    )


def _digits(places: int, A: int) -> Indices:
    numbers = np.arange(A**places)[:, None]
    return np.ascontiguousarray(numbers // A ** np.arange(places - 1, -1, -1) % A)


def count_words(H: int, S: int, A: int, firsts: int) -> tuple[int, int]:
    """Number of tails, and number of words of each tail's heads.

    >>> count_words(6, 4, 2, 1)
    (65536, 1)
    """
    heads = A**firsts * (A**S if H > 1 else 1)
    return A ** (S * max(0, H - 2)), -(-heads // WORD)


def all_policies(n: Numbering, H: int) -> Words:
    """Bits of all policies, all set, (tails, words).

    Args:
        n: Numbering of policies.
        H: Number of steps.
    """
    heads = len(n.digits_first) * (len(n.digits) if H > 1 else 1)
    tails, words = len(n.digits) ** max(0, H - 2), -(-heads // WORD)
    row = np.full(words, ~np.uint64(0))
    if heads % WORD:
        row[-1] = np.uint64((1 << heads % WORD) - 1)
    return np.tile(row, (tails, 1))


@njit(cache=True, nogil=True)
def count_policies(alive: Words) -> int:
    """Number of set bits."""
    number = 0
    for word in alive.reshape(-1):
        left = word
        while left != np.uint64(0):
            left &= left - np.uint64(1)
            number += 1
    return number


@njit(cache=True, nogil=True)
def shorten(alive: Words, n: Numbering, H: int, steps: int) -> Words:
    """Bits of the policy prefixes of `steps` steps that belong to remaining policies.

    Args:
        alive: (tails, words) of policies of H steps.
        n: Numbering of policies.
        H: Number of steps.
        steps: At most H.
    """
    if steps == H:
        return alive
    tails = n.digits.shape[0] ** max(0, steps - 2)
    group, words = alive.shape[0] // tails, alive.shape[1]
    short = np.zeros((tails, words), np.uint64)
    for tail in range(tails):
        for other in range(group):
            for word in range(words):
                short[tail, word] |= alive[tail * group + other, word]
    if steps > 1:
        return short
    heads = n.digits_first.shape[0]
    first = np.zeros((1, (heads + WORD - 1) // WORD), np.uint64)
    for head in range(heads):
        for second in range(n.digits.shape[0]):
            bit = head * n.digits.shape[0] + second
            if short[0, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
                first[0, head >> 6] |= np.uint64(1) << np.uint64(head & 63)
    return first


class Tails(NamedTuple):
    """Results of the backward computation shared by all tails.

    Attributes:
        later: (N, S, A) Q₃ by the number of the actions after step 3; (1, S, A) zeros without a step 3.
        weights: (A^F, S) w: probabilities of the states at step 2, by the actions of step 1.
        constant: (A^F,) c: the mean reward of step 1.
    """

    later: Array
    weights: Array
    constant: Array


@njit(cache=True, nogil=True)
def look_back(n: Numbering, P: Array, reward: Array) -> Tails:
    """Run the backward computation shared by all tails.

    Args:
        n: Numbering of policies.
        P: (H, S, A, S) transitions; rows may sum to less than 1.
        reward: (H, S, A) rewards.
    """
    H, S, A = reward.shape
    combos = n.digits.shape[0]
    later = np.zeros((1, S, A))
    if H > 2:
        later = reward[H - 1].copy().reshape(1, S, A)
        for h in range(H - 2, 1, -1):
            longer = np.empty((combos * later.shape[0], S, A))
            for tail in range(later.shape[0]):
                sums = _add_up(n.digits, P[h + 0], reward[h], later[tail])
                for combo in range(combos):
                    for s in range(S):
                        for a in range(A):
                            longer[combo * later.shape[0] + tail, s, a] = sums[combo, s * A + a]
            later = longer
    firsts = n.digits_first.shape[0]
    weights, constant = np.zeros((firsts, S)), np.zeros(firsts)
    for combo in range(firsts):
        for i in range(n.firsts.size):
            s, a = n.firsts[i], n.digits_first[combo, i]
            constant[combo] += n.initial[i] * reward[0, s, a]
            for after in range(S):
                weights[combo, after] += n.initial[i] * P[0, s, a, after]
    return Tails(later, weights, constant)


@njit(cache=True, nogil=True)
def _add_up(digits: Indices, P: Array, reward: Array, later: Array) -> Array:
    """Q-values of a step by the actions of the next one, (A^S, SA), from the next step's Q-values `later` (S, A).

    r + Σ P(s′)·Q(s′, a(s′)), state by state: sums over the first states are shared by all combinations with the same
    actions there.
    """
    S, A = reward.shape
    cells = S * A
    sums = np.empty((digits.shape[0], cells))
    for s in range(S):
        for a in range(A):
            sums[0, s * A + a] = reward[s, a]
    known = 1
    for after in range(S):
        for combo in range(known - 1, -1, -1):
            for taken in range(A - 1, -1, -1):
                worth = later[after, taken]
                for s in range(S):
                    for a in range(A):
                        cell = s * A + a
                        sums[combo * A + taken, cell] = sums[combo, cell] + P[s, a, after] * worth
        known *= A
    return sums


@njit(cache=True, nogil=True)
def find_best(alive: Words, n: Numbering, P: Array, reward: Array, actions: Indices) -> float:
    """Write a policy with the largest value among the remaining ones; returns the value, −∞ if none remains.

    Args:
        alive: (tails, words) of policies of as many steps as `reward` has.
        n: Numbering of policies.
        P: (H, S, A, S) transitions; rows may sum to less than 1.
        reward: (H, S, A), not negative.
        actions: (H, S) overwritten; 0 where a policy's number does not determine the action.
    """
    H, S, A = reward.shape
    found, best_tail, best_head = -np.inf, 0, 0
    given = look_back(n, P, reward)
    seconds = n.digits.shape[0] if H > 1 else 1
    combos, tails = n.digits.shape[0] if H > 2 else 1, given.later.shape[0]
    top = np.empty(S)
    for tail in range(tails):
        sums = _second(n, P, reward, given.later[tail])
        for combo in range(combos):
            number = combo * tails + tail
            if not _any(alive[number]):
                continue
            _take_largest(sums[combo], top)
            for first in range(n.digits_first.shape[0]):
                most = given.constant[first]
                for s in range(S):
                    most += given.weights[first, s] * top[s]
                if most <= found:
                    continue
                for second in range(seconds):
                    head = first * seconds + second
                    if alive[number, head >> 6] >> np.uint64(head & 63) & np.uint64(1):
                        value = given.constant[first]
                        for s in range(S):
                            value += given.weights[first, s] * sums[combo, s * A + n.digits[second, s]]
                        if value > found:
                            found, best_tail, best_head = value, number, head
    _write(n, best_tail, best_head, actions)
    return found


@njit(cache=True, nogil=True)
def keep_above(alive: Words, n: Numbering, P: Array, reward: Array, cut: float) -> None:
    """Clear the bits of all policies with a value of at most `cut` (Algorithm 1, lines 8 to 13).

    Args:
        alive: (tails, words) overwritten.
        n: Numbering of policies.
        P: (H, S, A, S) transitions; rows may sum to less than 1.
        reward: (H, S, A) rewards.
        cut: Largest value that is eliminated.
    """
    H, S, A = reward.shape
    given = look_back(n, P, reward)
    seconds = n.digits.shape[0] if H > 1 else 1
    combos, tails = n.digits.shape[0] if H > 2 else 1, given.later.shape[0]
    for tail in range(tails):
        sums = _second(n, P, reward, given.later[tail])
        for combo in range(combos):
            number = combo * tails + tail
            if not _any(alive[number]):
                continue
            for head in range(n.digits_first.shape[0] * seconds):
                if alive[number, head >> 6] >> np.uint64(head & 63) & np.uint64(1):
                    first, second = head // seconds, head % seconds
                    value = given.constant[first]
                    for s in range(S):
                        value += given.weights[first, s] * sums[combo, s * A + n.digits[second, s]]
                    if value <= cut:
                        alive[number, head >> 6] &= ~(np.uint64(1) << np.uint64(head & 63))


@njit(cache=True, nogil=True)
def _second(n: Numbering, P: Array, reward: Array, later: Array) -> Array:
    """Q-values Q₂ by the actions of step 3, (A^S, SA); one row with fewer steps."""
    H, S, A = reward.shape
    if H > 2:
        return _add_up(n.digits, P[1], reward[1], later)
    sums = np.zeros((1, S * A))
    if H == 2:
        for s in range(S):
            for a in range(A):
                sums[0, s * A + a] = reward[1, s, a]
    return sums


@njit(cache=True, nogil=True)
def _take_largest(quality: Array, top: Array) -> None:
    """Write the largest Q of every state."""
    A = quality.size // top.size
    for s in range(top.size):
        top[s] = quality[s * A]
        for a in range(1, A):
            top[s] = max(top[s], quality[s * A + a])


@njit(cache=True, nogil=True)
def _any(words: Words) -> bool:
    for i in range(words.size):  # noqa: SIM110 - Numba has no any()
        if words[i] != np.uint64(0):
            return True
    return False


@njit(cache=True, nogil=True)
def _write(n: Numbering, tail: int, head: int, actions: Indices) -> None:
    """Write the actions of a policy, by its number."""
    H, S = actions.shape
    combos = n.digits.shape[0]
    seconds = combos if H > 1 else 1
    for h in range(H):
        for s in range(S):
            actions[h, s] = 0
    for i in range(n.firsts.size):
        actions[0, n.firsts[i]] = n.digits_first[head // seconds, i]
    left = tail
    for h in range(H - 1, 0, -1):
        combo = head % seconds
        if h > 1:
            combo = left % combos
            left //= combos
        for s in range(S):
            actions[h, s] = n.digits[combo, s]


@njit(cache=True, nogil=True)
def complete(alive: Words, n: Numbering, steps: int, from_: int, actions: Indices) -> bool:
    """Write the later actions of a remaining policy with given first steps; returns whether there is one.

    Args:
        alive: (tails, words) of policies of H steps.
        n: Numbering of policies.
        steps: Number of given steps.
        from_: Tail at which the search begins, so that the result is not always the first.
        actions: (H, S) of which the first `steps` rows are given and the others are overwritten.
    """
    H = actions.shape[0]
    seconds = n.digits.shape[0] if H > 1 else 1
    first = _number(n.digits_first.shape[1], actions, 0, n)
    low, high = first * seconds, (first + 1) * seconds
    if steps > 1:
        low += _number(actions.shape[1], actions, 1, n)
        high = low + 1
    group, begin = alive.shape[0], 0
    for h in range(2, steps):
        group //= n.digits.shape[0]
        begin += _number(actions.shape[1], actions, h, n) * group
    for i in range(group):
        tail = begin + (from_ + i) % group
        for j in range(high - low):
            head = low + (from_ + j) % (high - low)
            if alive[tail, head >> 6] >> np.uint64(head & 63) & np.uint64(1):
                _write(n, tail, head, actions)
                return True
    return False


@njit(cache=True, nogil=True)
def _number(places: int, actions: Indices, h: int, n: Numbering) -> int:
    """Number of a step's actions; for step 1 those of the first states only."""
    A, number = 1, 0
    for i in range(n.digits.shape[0]):
        A = max(A, n.digits[i, 0] + 1)
    for i in range(places):
        number = number * A + actions[h, n.firsts[i] if h == 0 else i]
    return number
