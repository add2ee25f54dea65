"""The binary tree: in how many nodes a user's contributions add up, at the worst.

Nodes of level l are the complete blocks of 2^l consecutive leaves among T. A user who takes part in leaves x₁ < … < x_p
moves node v by c_v, the number of these leaves below it; Gaussian noise is charged Σc_v², Laplace noise Σ|c_v|.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from dataclasses import dataclass

from privcheck.errors import ParameterError

_MOST_PATTERNS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLoad:
    """How often a user moves how many nodes by how much.

    Attributes:
        moves: (c, number of nodes moved by c), the dearest pattern level by level.
        exact: Whether a pattern of leaves attains it; otherwise it is an upper bound.
    """

    moves: tuple[tuple[int, int], ...]
    exact: bool

    @property
    def squares(self) -> int:
        """Returns Σc_v²."""
        return sum(n * c * c for c, n in self.moves)

    @property
    def total(self) -> int:
        """Returns Σ|c_v|."""
        return sum(n * c for c, n in self.moves)


@functools.lru_cache(maxsize=256)
def tree_load(leaves: int, participations: int, separation: int) -> TreeLoad:
    """Returns the worst load of a tree.

    Level by level no node holds more than m = min(p, ⌈2^l/separation⌉) of the leaves, and the complete blocks of a
    level hold only so many together, so that (m, …, m, rest) majorises every pattern: an upper bound on Σc² and on
    Σ|c|. Leaves 1, 1 + separation, … attain it on every level where separation is a power of two and the tree is
    large enough; if they do not, small trees are searched and large ones keep the bound.

    Args:
        leaves: T.
        participations: p, of one user.
        separation: At least this many leaves apart.

    Raises:
        ParameterError: So many participations so far apart do not fit into the tree.
    """
    if (participations - 1) * separation >= leaves:
        message = f"{participations} participations at least {separation} leaves apart do not fit into {leaves} leaves"
        raise ParameterError(f"{message}: give fewer of them", name="participations", given=participations)
    bound: Counter[int] = Counter()
    for level in range(leaves.bit_length()):
        block, blocks = 1 << level, leaves >> level
        most = min(participations, -(-block // separation))
        held = min(participations, -(-(block * blocks) // separation), most * blocks)
        bound[most] += held // most
        if held % most:
            bound[held % most] += 1
    upper = TreeLoad(moves=tuple(sorted(bound.items())), exact=True)
    first = _load(leaves, tuple(range(0, participations * separation, separation)))
    if first.squares == upper.squares and first.total == upper.total:
        return upper
    found = _search(leaves, participations, separation)
    if found is None:
        return TreeLoad(moves=upper.moves, exact=False)
    return found


def _search(leaves: int, participations: int, separation: int) -> TreeLoad | None:
    """Returns the worst pattern by enumeration, None where there are too many or no pattern is worst in both sums."""
    free = leaves - (participations - 1) * (separation - 1)
    patterns = 1
    for i in range(participations):
        patterns = patterns * (free - i) // (i + 1)
        if patterns > _MOST_PATTERNS:
            return None
    loads = [
        _load(leaves, tuple(x + i * (separation - 1) for i, x in enumerate(chosen)))
        for chosen in itertools.combinations(range(free), participations)
    ]
    squares, total = max(x.squares for x in loads), max(x.total for x in loads)
    return next((x for x in loads if x.squares == squares and x.total == total), None)


def _load(leaves: int, positions: tuple[int, ...]) -> TreeLoad:
    moves: Counter[int] = Counter()
    for level in range(leaves.bit_length()):
        nodes = Counter(x >> level for x in positions if x >> level < leaves >> level)
        moves.update(nodes.values())
    return TreeLoad(moves=tuple(sorted(moves.items())), exact=True)
