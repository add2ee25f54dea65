"""Lemmas that need no code of the packages: their statement on laws with a few outcomes, drawn and enumerated here."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from privcheck.accounting.engine.trees import _level_bound

ODDS = (Fraction(1), Fraction(5, 4), Fraction(2), Fraction(7, 2))  # e^ε


def hockey_stick(p, q, alpha):
    return sum(max(a - alpha * b, 0) for a, b in zip(p, q, strict=True))


def law(rng, outcomes=4):
    numbers = [Fraction(int(n)) for n in rng.integers(1, 12, outcomes)]
    return [n / sum(numbers) for n in numbers]


def mix(weights, laws):
    return [sum(w * p for w, p in zip(weights, column, strict=True)) for column in zip(*laws, strict=True)]


def product(*laws):
    return [math.prod(chances) for chances in itertools.product(*laws)]


# [lemma billboard]
def test_outputs_that_see_the_billboard_and_own_data_are_jointly_private():
    """Three bits, a billboard by randomised response; a user is shown its own bit where the board's sum is odd."""
    odds = Fraction(3)

    def others_see(bits, user):
        """Law of all that is shown to everybody but one user."""
        seen = {}
        for board in itertools.product((0, 1), repeat=3):
            chance = math.prod((odds if b == s else 1) / (odds + 1) for b, s in zip(bits, board, strict=True))
            shown = tuple((board, bits[k] if sum(board) % 2 else None) for k in range(3) if k != user)
            seen[shown] = seen.get(shown, 0) + chance
        return seen

    worst = 0
    for bits, user in itertools.product(itertools.product((0, 1), repeat=3), range(3)):
        changed = tuple(bit ^ (k == user) for k, bit in enumerate(bits))
        before, after = others_see(bits, user), others_see(changed, user)
        assert set(before) == set(after)
        worst = max(worst, *(before[shown] / after[shown] for shown in before))
    assert worst == odds


# [lemma trimmed-laws]
@pytest.mark.parametrize("seed", range(4))
def test_leaving_out_outcomes_changes_delta_by_their_mass_at_most(seed):
    rng = np.random.default_rng(seed)
    p, q = law(rng), law(rng)
    kept, other = p[:-1], q[:-1]
    for n, alpha in itertools.product((1, 2, 3), ODDS):
        whole, trimmed = (hockey_stick(product(*[a] * n), product(*[b] * n), alpha) for a, b in ((p, q), (kept, other)))
        assert trimmed <= whole <= trimmed + 1 - sum(kept) ** n


# [lemma replaced-sample]
@pytest.mark.parametrize("seed", range(6))
def test_a_replaced_user_of_a_sample_is_bounded_by_two_curves(seed):
    rng = np.random.default_rng(seed)
    x, y, z = law(rng), law(rng), law(rng)
    for q, alpha in itertools.product((Fraction(1, 10), Fraction(1, 2), Fraction(1)), ODDS):
        there, beta = 1 + (alpha - 1) / q, alpha * q / (alpha - 1 + q)
        found = hockey_stick(mix((1 - q, q), (z, x)), mix((1 - q, q), (z, y)), alpha)
        assert found == q * hockey_stick(x, mix((beta, 1 - beta), (y, z)), there)
        assert found <= q * (beta * hockey_stick(x, y, there) + (1 - beta) * hockey_stick(x, z, there))


# [lemma allocation-blocks]
@pytest.mark.parametrize("seed", range(4))
def test_two_of_four_rounds_cost_no_more_than_one_of_each_half(seed):
    rng = np.random.default_rng(seed)
    there, gone = law(rng, 2), law(rng, 2)
    pairs = list(itertools.combinations(range(4), 2))
    rounds = [product(*(there if i in pair else gone for i in range(4))) for pair in pairs]
    halves = [laws for laws, pair in zip(rounds, pairs, strict=True) if pair[0] < 2 <= pair[1]]
    every, blocks = (mix([Fraction(1, len(laws))] * len(laws), laws) for laws in (rounds, halves))
    without = product(*[gone] * 4)
    for alpha in ODDS:
        assert hockey_stick(every, without, alpha) <= hockey_stick(blocks, without, alpha)
        assert hockey_stick(without, every, alpha) <= hockey_stick(without, blocks, alpha)


# [lemma pure-divergence]
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_law_within_a_ratio_has_a_larger_divergence_than_randomised_response(epsilon):
    rng, most = np.random.default_rng(1), 0.0
    for _ in range(2_000):
        q = rng.dirichlet(np.ones(4))
        ratio = np.exp(epsilon * rng.choice([-1, -0.5, 0, 0.5, 1], 4))
        p = q * ratio / (q * ratio).sum()
        if np.abs(np.log(p / q)).max() <= epsilon:
            most = max(most, (p * np.log(p / q)).sum())
    assert 0 < most <= epsilon * math.tanh(epsilon / 2)


# [lemma tree-levels]
@pytest.mark.parametrize(("leaves", "most", "apart"), [(7, 3, 1), (9, 3, 2), (12, 4, 3), (16, 5, 1)])
def test_the_bound_by_levels_majorises_every_pattern(leaves, most, apart):
    bound = [c for c, n in _level_bound(leaves, most, apart) for _ in range(n)]
    patterns = (s for k in range(1, most + 1) for s in itertools.combinations(range(leaves), k))
    for chosen in patterns:
        if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
            counts = [
                sum(start <= i < start + 2**level for i in chosen)
                for level in range(leaves.bit_length())
                for start in range(0, leaves - 2**level + 1, 2**level)
            ]
            for t in range(most):
                assert sum(max(c - t, 0) for c in counts) <= sum(max(c - t, 0) for c in bound)
