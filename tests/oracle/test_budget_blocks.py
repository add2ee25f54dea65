"""Why every block may lose the whole cap: each answer spelled out, of two users who are in one block each, or in both.

Randomised response on the first block's bit, on the second's at an ε that depends on that answer, and again on the
first's at an ε that depends on both. Whoever changes one bit changes the probability of no outcome by more than e to
the block's own sum; whoever is in both blocks, by the sum over both, which is why the ledger asks for disjoint users.
"""

from fractions import Fraction
from itertools import product

import pytest

# by odds e^ε, so that everything is exact; the caps of the blocks are 6 and 5
FIRST, SECOND, THIRD = 2, {0: 5, 1: 3}, {(0, 0): 3, (0, 1): 1, (1, 0): 2, (1, 1): 3}
CAPS = (6, 5)


def answer(bit, said, odds):
    return Fraction(odds if bit == said else 1, odds + 1)


def chance(bits, said):
    one, two, three = said
    return answer(bits[0], one, FIRST) * answer(bits[1], two, SECOND[one]) * answer(bits[0], three, THIRD[one, two])


def worst(changed):
    """The largest factor by which changing bits changes the probability of an outcome."""
    pairs = (
        (bits, tuple(bit ^ place for bit, place in zip(bits, changed, strict=True)))
        for bits in product((0, 1), repeat=2)
    )
    return max(chance(a, said) / chance(b, said) for a, b in pairs for said in product((0, 1), repeat=3))


# [lemma parallel]
@pytest.mark.parametrize("block", [0, 1])
def test_a_user_of_one_block_loses_no_more_than_its_cap(block):
    assert worst((block == 0, block == 1)) == CAPS[block]


# [lemma parallel]
def test_a_user_of_both_blocks_loses_more_than_either_cap():
    assert max(CAPS) < worst((1, 1)) <= CAPS[0] * CAPS[1]
