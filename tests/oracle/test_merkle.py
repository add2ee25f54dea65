"""Merkle trees against the recursive definitions of RFC 9162, section 2.1, written down over lists."""

import hashlib
import random

import pytest

from privcheck.ledger import merkle

MOST = 300
LEAVES = [hashlib.sha256(bytes([i % 256, i // 256])).digest() for i in range(MOST)]


def sha(data):
    return hashlib.sha256(data).digest()


def largest(n):
    k = 1
    while 2 * k < n:
        k *= 2
    return k


ROOTS = {}


def mth(low, high):
    """MTH of a range, as section 2.1.1 has it; remembered, for nothing else makes 300 trees cheap."""
    if (low, high) not in ROOTS:
        n = high - low
        if n == 1:
            ROOTS[low, high] = sha(b"\x00" + LEAVES[low])
        else:
            k = largest(n)
            ROOTS[low, high] = sha(b"\x01" + mth(low, low + k) + mth(low + k, high))
    return ROOTS[low, high]


def path(m, low, high):
    n = high - low
    if n == 1:
        return []
    k = largest(n)
    if m < k:
        return [*path(m, low, low + k), mth(low + k, high)]
    return [*path(m - k, low + k, high), mth(low, low + k)]


def subproof(m, low, high, whole):
    n = high - low
    if m == n:
        return [] if whole else [mth(low, high)]
    k = largest(n)
    if m <= k:
        return [*subproof(m, low, low + k, whole), mth(low + k, high)]
    return [*subproof(m - k, low + k, high, False), mth(low, low + k)]


def node(level, place):
    return mth(place << level, (place + 1) << level)


def test_a_growing_tree_has_the_root_and_the_subtrees_of_the_definition():
    tree = merkle.Growing()
    for size, leaf in enumerate(LEAVES, 1):
        for level, place, value in tree.add(merkle.hash_leaf(leaf)):
            assert value == node(level, place)
        assert tree.root() == merkle.find_root(size, node) == mth(0, size)
        assert tree.size == size


def test_all_inclusion_proofs_are_those_of_the_definition_and_verify():
    for size in range(1, MOST + 1):
        for index in range(size) if size < 40 else range(size % 7, size, 7):
            proof = merkle.prove_inclusion(index, size, node)
            assert proof == path(index, 0, size)
            assert merkle.check_inclusion(mth(index, index + 1), index, size, proof, mth(0, size))


def test_all_consistency_proofs_are_those_of_the_definition_and_verify():
    for second in range(1, MOST + 1):
        for first in range(1, second + 1):
            proof = merkle.prove_consistency(first, second, node)
            assert proof == subproof(first, 0, second, True)
            assert merkle.check_consistency(first, second, (mth(0, first), mth(0, second)), proof)


@pytest.mark.parametrize("seed", range(3))
def test_a_proof_that_is_changed_is_none(seed):
    """500 trees a seed, with a hash, a length, an index, a size or a root changed: SHA-256 would have to collide."""
    drawn = random.Random(f"merkle {seed}")  # noqa: S311 - which tree
    for _ in range(500):
        second = drawn.randint(2, MOST)
        first, index = drawn.randint(1, second - 1), drawn.randrange(second)
        kept = merkle.prove_inclusion(index, second, node)
        for wrong in changes(drawn, kept):
            assert not merkle.check_inclusion(mth(index, index + 1), index, second, wrong, mth(0, second))
        leaf = (index + drawn.randint(1, second - 1)) % second
        assert not merkle.check_inclusion(mth(leaf, leaf + 1), index, second, kept, mth(0, second))
        assert not merkle.check_inclusion(mth(index, index + 1), second, second, kept, mth(0, second))
        proof = merkle.prove_consistency(first, second, node)
        roots = (mth(0, first), mth(0, second))
        for wrong in changes(drawn, proof):
            assert not merkle.check_consistency(first, second, roots, wrong)
        assert not merkle.check_consistency(first, second, (sha(roots[0]), roots[1]), proof)
        assert not merkle.check_consistency(first, second, (roots[0], sha(roots[1])), proof)
        assert not merkle.check_consistency(second, first, roots[::-1], proof)
        assert not merkle.check_consistency(0, second, roots, proof)


def changes(drawn, proof):
    at = drawn.randrange(len(proof))
    yield [*proof[:at], sha(proof[at]), *proof[at + 1 :]]
    yield proof[:-1]
    yield [*proof, proof[at]]
    yield []
