"""Counts of guesses, all attempts at once, against loops; the whole verdict against every outcome of few runs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck_audits.blackbox.anytime import weigh
from privcheck_audits.blackbox.verdict import ClaimedLoss, Counts, Edges, attempts, best, beyond_cuts, fixed_number

CLAIM = ClaimedLoss(unit="epsilon", claimed=0.5, delta=0.1)
CUTS = Edges(cuts=(np.array([-1.5, -0.5, 0.5, 1.5]), np.array([-0.5, 0.5, 1.5])))
VALUES = st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.booleans()), min_size=1, max_size=60)


def counted(rows) -> Counts:
    scores = np.array([[row[0], row[1]] for row in rows], dtype=np.float64).T
    return CUTS.count(scores, np.array([row[2] for row in rows]))


def guessed(attempt, rows):
    """Returns (right, wrong) of the runs beyond the attempt's cuts."""
    right = wrong = 0
    for *values, secret in rows:
        value, cut = values[attempt.score], CUTS.cuts[attempt.score]
        says_first = attempt.upper is not None and value > cut[attempt.upper]
        says_other = attempt.lower is not None and value < cut[attempt.lower]
        right += (says_first and secret) + (says_other and not secret)
        wrong += (says_first and not secret) + (says_other and secret)
    return right, wrong


@given(VALUES)
def test_guesses_beyond_cuts_are_those_of_a_loop(rows):
    tried = attempts(0, CUTS.cuts, CLAIM)
    made = beyond_cuts(tried, counted(rows))
    assert list(zip(made.right, made.wrong, strict=True)) == [guessed(attempt, rows) for attempt in tried]


@given(VALUES, VALUES, st.integers(0, 9))
def test_the_number_of_guesses_is_fixed_by_training_and_lies_between_bins(taught, rows, seed):
    tried = attempts(0, CUTS.cuts, CLAIM)
    made = fixed_number(tried, counted(taught), counted(rows), np.random.default_rng(seed))
    for attempt, right, wrong in zip(tried, made.right, made.wrong, strict=True):
        wanted = min(len(rows), max(1, round(sum(guessed(attempt, taught)) / len(taught) * len(rows))))
        assert right + wrong == wanted
        alike = [
            guessed(other, rows)
            for other in tried
            if other.score == attempt.score
            and (other.upper is None, other.lower is None) == (attempt.upper is None, attempt.lower is None)
        ]
        for inner, outer in product(alike, repeat=2):
            if sum(inner) <= wanted <= sum(outer):
                assert inner[0] <= right <= outer[0]
                assert inner[1] <= wrong <= outer[1]


def test_tied_runs_are_picked_whatever_their_bit():
    # 30 of 40 tied runs are on D; the attempt wants 10 of them
    one = Edges(cuts=(np.array([0.5]),))
    tied = one.count(np.ones((1, 40)), np.arange(40) < 30)
    few = one.count(np.where(np.arange(40) < 10, 1.0, 0.0)[None], np.arange(40) % 2 == 0)
    tried = attempts(0, one.cuts, CLAIM)[:1]
    rng = np.random.default_rng(0)
    drawn = [fixed_number(tried, few, tied, rng) for _ in range(2_000)]
    assert {int(made.right[0] + made.wrong[0]) for made in drawn} == {10}
    assert np.mean([made.right[0] for made in drawn]) == pytest.approx(7.5, abs=6 * 1.2 / math.sqrt(2_000))


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_over_every_outcome_of_five_runs_the_claim_is_accused_with_probability_at_most_alpha(delta):
    # randomised response at exactly the claim; outputs 2 and −2 reveal the bit, 1 and −1 have odds e^ε
    target = ClaimedLoss(unit="epsilon", claimed=0.5, delta=delta)
    p = (1 - delta) / (1 + math.exp(-0.5))
    chance = {(2, True): delta, (1, True): p, (-1, True): 1 - delta - p}
    chance |= {(-value, False): mass for (value, _), mass in chance.items()}
    kinds = [kind for kind, mass in chance.items() if mass > 0]
    taught = counted(
        [(value, value, secret) for value, secret in kinds for _ in range(round(20 * chance[value, secret]))]
    )
    tried = attempts(0, CUTS.cuts, target)
    alpha, runs = 0.5, 5
    weights = weigh(tried, [taught], target, tested=[runs], alpha=alpha)
    assert weights.sum() <= 1 + 1e-12
    accused = 0.0
    for numbers in product(range(runs + 1), repeat=len(kinds)):
        if sum(numbers) != runs:
            continue
        rows = [(value, value, secret) for (value, secret), n in zip(kinds, numbers, strict=True) for _ in range(n)]
        found = best(tried, weights, [taught], [counted(rows)], target, alpha=alpha, rng=np.random.default_rng(3))
        if found.lower > target.claimed:
            ways = math.factorial(runs) / math.prod(map(math.factorial, numbers))
            accused += ways * math.prod((chance[kind] / 2) ** n for kind, n in zip(kinds, numbers, strict=True))
    assert 0 < accused <= alpha
