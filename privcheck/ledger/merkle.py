"""Merkle trees over rows, their roots and proofs, as in certificate transparency (RFC 9162, section 2.1).

A tree of n leaves is built over the largest power of two of them below n, and the rest. So it consists of complete
subtrees that never change again when leaves are added: with those stored, any size takes O(log n) of them.
Functions that compute a root or a proof take such a `Node`; those that check a proof take hashes alone.

A leaf's hash is SHA-256(0x00 ‖ the row's hash, 32 bytes), a node's SHA-256(0x01 ‖ left ‖ right).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

Node = Callable[[int, int], bytes]  # level, place → the hash over leaves place · 2^level and the 2^level - 1 after it


def hash_leaf(value: bytes) -> bytes:
    """Hash of a leaf."""
    return hashlib.sha256(b"\x00" + value).digest()


def hash_node(left: bytes, right: bytes) -> bytes:
    """Hash of a node with two children."""
    return hashlib.sha256(b"\x01" + left + right).digest()


def find_root(size: int, node: Node) -> bytes:
    """Root of the first `size` leaves, at least one (section 2.1.1)."""
    return _subtree(0, size, node)


def prove_inclusion(index: int, size: int, node: Node) -> list[bytes]:
    """Path from a leaf, counted from 0, to the root of the first `size` leaves (section 2.1.3.1)."""
    path, low, high = [], 0, size
    while high - low > 1:
        middle = low + _split(high - low)
        if index < middle:
            path.append(_subtree(middle, high, node))
            high = middle
        else:
            path.append(_subtree(low, middle, node))
            low = middle
    return path[::-1]


def prove_consistency(first: int, second: int, node: Node) -> list[bytes]:
    """Proof that the first `second` leaves begin with the first `first`, at least one (section 2.1.4.1)."""
    path, low, high, whole = [], 0, second, True
    while first != high:
        middle = low + _split(high - low)
        if first <= middle:
            path.append(_subtree(middle, high, node))
            high = middle
        else:
            path.append(_subtree(low, middle, node))
            low, whole = middle, False
    if not whole:  # else the verifier has it: it is the first root
        path.append(_subtree(low, high, node))
    return path[::-1]


def check_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether a path leads from a leaf's hash to a root (section 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    place, last, value = index, size - 1, leaf
    for other in path:
        if last == 0:
            return False
        if place & 1 or place == last:
            value = hash_node(other, value)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            value = hash_node(value, other)
        place, last = place >> 1, last >> 1
    return last == 0 and value == root


def check_consistency(first: int, second: int, roots: tuple[bytes, bytes], path: Sequence[bytes]) -> bool:
    """Whether a proof shows that a tree of `second` leaves begins with one of `first` (section 2.1.4.2)."""
    if not 0 < first <= second:
        return False
    if first == second:
        return not path and roots[0] == roots[1]
    steps = [roots[0], *path] if first & (first - 1) == 0 else list(path)
    if not path or not steps:
        return False
    place, last = first - 1, second - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    old = new = steps[0]
    for other in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = hash_node(other, old), hash_node(other, new)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            new = hash_node(new, other)
        place, last = place >> 1, last >> 1
    return last == 0 and (old, new) == roots


class Growing:
    """Tree to which leaves are added one by one; it keeps O(log n) hashes."""

    def __init__(self, complete: Sequence[tuple[int, bytes]] = ()) -> None:
        self._complete = list(complete)  # levels and hashes of the subtrees that make it, the largest first
        self.size = sum(1 << level for level, _ in complete)

    @property
    def complete(self) -> list[tuple[int, bytes]]:
        """Levels and hashes of the subtrees that make up the tree, the largest first: the state for `Growing`."""
        return list(self._complete)

    def add(self, leaf: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Add a leaf's hash; yields the level, place and hash of every subtree above it that is now complete."""
        level, value = 0, leaf
        self.size += 1
        while self._complete and self._complete[-1][0] == level:
            value = hash_node(self._complete.pop()[1], value)
            level += 1
            yield level, (self.size >> level) - 1, value
        self._complete.append((level, value))

    def root(self) -> bytes:
        """Root of the added leaves, at least one."""
        value = self._complete[-1][1]
        for _, other in reversed(self._complete[:-1]):
            value = hash_node(other, value)
        return value


def _split(count: int) -> int:
    """Largest power of two below a number of leaves, at least two."""
    return 1 << ((count - 1).bit_length() - 1)


def _subtree(low: int, high: int, node: Node) -> bytes:
    """Hash over the leaves from `low` to before `high`, a range of the recursion from the root."""
    count = high - low
    if count & (count - 1) == 0:  # such a part is complete: it begins at a multiple of its length
        level = count.bit_length() - 1
        return node(level, low >> level)
    middle = low + _split(count)
    return hash_node(_subtree(low, middle, node), _subtree(middle, high, node))
