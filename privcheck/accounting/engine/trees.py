"""Binary tree: the worst-case counts of a user's contributions in its nodes.

Nodes of level l are the complete blocks of 2^l consecutive leaves among T. A user who takes part in p leaves, at least
`separation` apart, shifts node v by c_v, the number of these leaves below it. Gaussian noise is charged Σc_v², Laplace
noise the curve of independent releases with shifts c_v, in ε of pure DP Σ|c_v|; both at the worst pattern.

Lemma laplace-majorisation: Of independent Laplace noise of one scale, shifts that are larger in the order of weak
majorisation (Marshall, Olkin & Arnold 2011) have the larger δ(ε) at every ε. Proof: let two coordinates with noise of
scale 1 have shifts w₁ ≥ w₂. At w₁ + θ and w₂ − θ, dδ/dθ = e^ε·2[Q(M, x < w₁, y > w₂) − Q(M, x > w₁, y < w₂)], M the
outputs with a loss above ε, and both terms are explicit: dδ/dθ = ½e^{(ε − w₁ − w₂)/2}·(1[w₁ − w₂ > ε] − 1[w₂ − w₁ > ε])
for ε > −w₁ − w₂, below that 0. It is never negative, for any ε, and other coordinates only average over ε.

*How it is found.* A dynamic programme over blocks gives the largest Σf(c_v) over all patterns for any f: a block is
described by the number of chosen leaves and the distances of the first and the last from its ends, and all blocks of a
level are alike. f(c) = c² is the Gaussian's charge.

Lemma tree-shifts: Let g(t) be the largest Σ(c_v − t)₊ over all patterns of a user's leaves, c_v of them below node v, t
= 0, 1, …. The shifts with g(t − 1) − 2g(t) + g(t + 1) of size t are the least that weakly majorise every pattern.
Proof: g is convex in t, and these shifts have exactly these sums.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from privcheck.errors import ParameterError

_MOST_WORK: Final = 100_000_000  # sums in the dynamic programme: about a second
_NONE: Final = -(10**17)  # value of a pattern that does not exist; the sum of two is far from −2⁶³
Values = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLoad:
    """Shifts of a tree's nodes by one user: their sizes and numbers.

    Attributes:
        moves: (c, number of nodes shifted by c); weakly majorises every pattern of leaves.
        squares: A bound on Σc_v² over all patterns.
        exact: Whether a pattern attains `squares`.
        least: Whether no smaller shifts majorise every pattern; then a pattern attains their sum, Σ|c_v|.
    """

    moves: tuple[tuple[int, int], ...]
    squares: int
    exact: bool
    least: bool

    @property
    def total(self) -> int:
        """Sum of the shifts, a bound on Σ|c_v| over all patterns."""
        return sum(n * c for c, n in self.moves)

    @property
    def attained(self) -> bool:
        """Whether one pattern shifts the nodes exactly as in `moves`: if and only if its Σc_v² is that of `moves`."""
        return self.exact and self.least and self.squares == _squares(self.moves)


@functools.lru_cache(maxsize=256)
def tree_load(leaves: int, participations: int, separation: int) -> TreeLoad:
    """Compute the worst load of a tree.

    In closed form where leaves 1, 1 + separation, … are worst on every level (without separation they always are); else
    by the dynamic programme; where that is too large, bounded level by level.

    Lemma tree-levels: With m = min(p, ⌈2^l/separation⌉), (m, …, m, rest) majorises every pattern of level l. Proof: no
    node of the level holds more than m chosen leaves, and its complete blocks hold a bounded number together.

    Args:
        leaves: T.
        participations: p, of one user.
        separation: Least distance between two participations, in leaves.

    Raises:
        ParameterError: The participations at this separation do not fit into the tree.
    """
    if (participations - 1) * separation >= leaves:
        message = f"{participations} participations at least {separation} leaves apart do not fit into {leaves} leaves"
        raise ParameterError(f"{message}: give fewer of them", name="participations", given=participations)
    bound = _level_bound(leaves, participations, separation)
    if pattern_moves(leaves, range(0, participations * separation, separation)) == bound:
        return TreeLoad(moves=bound, squares=_squares(bound), exact=True, least=True)
    work = _work(leaves, participations, separation)
    if work > _MOST_WORK:
        return TreeLoad(moves=bound, squares=_squares(bound), exact=False, least=False)
    c = np.arange(participations + 1)
    squares = int(_most(leaves, separation, (c * c)[None, :])[0])
    if work * participations > _MOST_WORK:
        return TreeLoad(moves=bound, squares=squares, exact=True, least=False)
    over = np.maximum(c[None, :] - c[:-1, None], 0)  # (c − t)₊ for t = 0, …, p − 1
    sums = [*_most(leaves, separation, over).tolist(), 0, 0]
    steps = [(t, sums[t - 1] - 2 * sums[t] + sums[t + 1]) for t in range(1, participations + 1)]
    return TreeLoad(moves=tuple((t, n) for t, n in steps if n), squares=squares, exact=True, least=True)


def pattern_moves(leaves: int, positions: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """(c, number of nodes shifted by c) of one pattern of leaves, counted from 0."""
    moves: Counter[int] = Counter()
    chosen = np.sort(np.fromiter(positions, dtype=np.int64))
    for level in range(leaves.bit_length()):
        nodes = chosen >> level
        nodes = nodes[nodes < leaves >> level]
        ends = np.flatnonzero(np.append(np.diff(nodes) > 0, True)) if len(nodes) else nodes
        sizes, numbers = np.unique(np.diff(ends, prepend=-1), return_counts=True)
        moves.update(dict(zip(sizes.tolist(), numbers.tolist(), strict=True)))
    return tuple(sorted(moves.items()))


def _squares(moves: Sequence[tuple[int, int]]) -> int:
    return sum(n * c * c for c, n in moves)


def _level_bound(leaves: int, participations: int, separation: int) -> tuple[tuple[int, int], ...]:
    bound: Counter[int] = Counter()
    for level in range(leaves.bit_length()):
        block, blocks = 1 << level, leaves >> level
        most = min(participations, -(-block // separation))
        held = min(participations, -(-(block * blocks) // separation), most * blocks)
        bound[most] += held // most
        if held % most:
            bound[held % most] += 1
    return tuple(sorted(bound.items()))


def _work(leaves: int, participations: int, separation: int) -> int:
    """Number of sums that the dynamic programme takes for one f: two joints a level."""
    held = [min(participations, -(-(1 << level) // separation)) for level in range(leaves.bit_length())]
    return sum(2 * most * most * separation**3 for most in held)


def _most(leaves: int, separation: int, charges: Values) -> Values:
    """(m,) the largest Σf(c_v) over all patterns, for each of m functions f.

    The state of a stretch of leaves is (m, c, a, b): the largest sum over its nodes if c + 1 of its leaves are chosen,
    the first at least a from its beginning and the last at least b from its end, a and b below the separation.

    Args:
        leaves: T.
        separation: s.
        charges: (m, p + 1) f(0) = 0, f(1), …, f(p).
    """
    most = charges.shape[1] - 1
    block = np.full((len(charges), 1, separation, separation), _NONE, dtype=np.int64)
    block[:, 0, 0, 0] = charges[:, 1]
    values: Values | None = None
    done = 0
    for level in range(leaves.bit_length()):
        if level:
            block = _join(block, block, 1 << (level - 1), 1 << (level - 1), most)
            block += charges[:, 1 : block.shape[1] + 1, None, None]
        if leaves >> level & 1:  # the trees of T leaves stand from large to small, left to right
            values = block if values is None else _join(block, values, 1 << level, done, most)
            done += 1 << level
    assert values is not None
    result: Values = values[:, most - 1, 0, 0]
    return result


def _join(left: Values, right: Values, left_size: int, right_size: int, most: int) -> Values:
    """States of two stretches side by side, without the node above them."""
    functions, few, separation, _ = left.shape
    many = right.shape[1]
    size = min(most, few + many)
    result = np.full((functions, size, separation, separation), _NONE, dtype=np.int64)
    apart = np.arange(separation)
    # all in one of the two: the other one's leaves count towards the distance from the end
    result[:, :few] = np.maximum(result[:, :few], left[..., np.maximum(apart - right_size, 0)][:, :size])
    result[:, :many] = np.maximum(result[:, :many], right[:, :, np.maximum(apart - left_size, 0)][:, :size])
    mirrored = right[:, :, ::-1]  # x from the left one's end needs s − 1 − x from the right one's beginning
    for total in range(2, size + 1):
        i = np.arange(max(1, total - many), min(few, total - 1) + 1)
        if len(i):
            sums = left[:, i - 1, :, :, None] + mirrored[:, total - i - 1, None]
            result[:, total - 1] = np.maximum(result[:, total - 1], sums.max(axis=(1, 3)))
    return np.maximum(result, _NONE)
