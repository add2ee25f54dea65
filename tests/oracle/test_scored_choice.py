"""The exponential mechanism and permute-and-flip against formula and enumeration, and noise that has no theorem.

Random tests are seeded: 24 shares outside 6 standard errors have probability 5e-8.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from privcheck.commands.settings import resolve_setting
from privcheck.declare.procedures import NoisyMax, ScoredChoice
from privcheck.declare.procedures.scored_choice import draw_by_weight, permute_and_flip_coins
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import DeclarationError, ParameterError
from privcheck.pricing import account
from privcheck.verification import verify
from privcheck.verification.outcome_loss import pure_loss

RELATION = ReplaceOne()
WAYS = ("exponential mechanism", "permute-and-flip")
NAMES = ("noisy-max", "exponential-mechanism", "permute-and-flip")


def by_formula(scores, rate):
    weights = [math.exp(rate * (u - max(scores))) for u in scores]
    return [w / sum(weights) for w in weights]


def by_orders(scores, rate):
    """Permute-and-flip, over all orders and coins."""
    found = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for i in order:
            coin = math.exp(rate * (scores[i] - max(scores)))
            found[i] += left * coin / len(orders)
            left *= 1 - coin
    return found


LAW = {WAYS[0]: by_formula, WAYS[1]: by_orders}


@pytest.mark.parametrize(("draw", "law"), [(draw_by_weight, by_formula), (permute_and_flip_coins, by_orders)])
@pytest.mark.parametrize("scores", [(0.0, -1.0, 2.0, 0.5), (0.0, 0.0), (3.0, -900.0, 2.9)])
def test_candidates_are_taken_as_often_as_the_paper_says(draw, law, scores):
    runs, rate, rng = 200_000, 0.7, np.random.default_rng(5)
    weights = np.exp(rate * (np.array(scores) - max(scores)))
    taken = np.bincount(draw(rng, np.tile(weights, (runs, 1))), minlength=len(scores)) / runs
    for share, p in zip(taken, law(scores, rate), strict=True):
        assert abs(share - p) <= 6 * math.sqrt(p * (1 - p) / runs)


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1/10", "1"), ("1", "2"), ("7", "1/3")])
def test_pairs_have_the_paper_s_law_and_attain_the_price(by, monotone, epsilon, sensitivity):
    one = ScoredChoice("choice", by=by, epsilon=epsilon, candidates=6, sensitivity=sensitivity, monotone=monotone)
    rate = float(Fraction(epsilon) / 2 / Fraction(sensitivity))
    price = one.cost(RELATION).pure.number()
    assert price == pytest.approx(float(Fraction(epsilon)) / (2 if monotone else 1))
    losses = []
    for pair in one.pairs(RELATION, {}):
        for scores, logs in zip(pair.sampler.scores, (pair.outcomes.log_p, pair.outcomes.log_q), strict=True):
            assert np.exp(logs) == pytest.approx(LAW[by](scores, rate), rel=1e-9, abs=1e-15)
        losses.append(pure_loss(pair.outcomes, 1))
    assert 0.998 * price <= max(losses) <= price
    assert one.with_std(Fraction(2)).cost(RELATION).pure.number() == pytest.approx(price / 2)


@pytest.mark.parametrize("by", WAYS)
def test_runs_are_scored_by_the_law(by):
    runs, rng = 100_000, np.random.default_rng(6)
    pair = ScoredChoice("choice", by=by, epsilon=1, candidates=2).pairs(RELATION, {})[2]
    ratios = pair.outcomes.log_p - pair.outcomes.log_q
    for on_first, logs in ((True, pair.outcomes.log_p), (False, pair.outcomes.log_q)):
        share = float((pair.sampler(rng, np.full(runs, on_first)) == ratios[0]).mean())
        p = math.exp(logs[0])
        assert abs(share - p) < 6 * math.sqrt(p * (1 - p) / runs)


def test_the_exponential_mechanism_composes_by_its_range_and_permute_and_flip_does_not():
    numbers = {}
    for name in NAMES:
        setting = resolve_setting(name, {})
        many = tuple(replace_name(setting.declared.releases[0], f"{name} {i}") for i in range(20))
        numbers[name] = account(replace(setting.declared, releases=many)).at(setting.values).epsilon(1e-6)
    assert numbers["exponential-mechanism"] < 0.75 * numbers["permute-and-flip"]
    assert numbers["permute-and-flip"] == pytest.approx(numbers["noisy-max"])


def replace_name(procedure, name):
    return replace(procedure, name=name)


@pytest.mark.parametrize("name", NAMES)
def test_noise_five_per_cent_too_small_is_refuted(name):
    setting = resolve_setting(name, {})
    assert verify(setting.declared, setting.values).method == "proved"
    quieter = tuple(one.with_std(Fraction(19, 20)) for one in setting.declared.releases)
    verdict = verify(replace(setting.declared, releases=quieter), setting.values)
    assert verdict.verdict == "fails"
    assert verdict.lower_ratio == pytest.approx(20 / 19, rel=1e-3)


def test_what_has_no_theorem_is_refused():
    with pytest.raises(DeclarationError, match=r"'laplace', 'exponential', 'gumbel'.*no theorem here"):
        NoisyMax("winner", noise="gaussian", scale=1, candidates=3)
    with pytest.raises(DeclarationError, match="expected one of 'exponential mechanism'"):
        ScoredChoice("choice", by="report noisy max", epsilon=1, candidates=3)
    for sets in ({"epsilon": 0}, {"candidates": 1}, {"candidates": "5/2"}):
        with pytest.raises(ParameterError):
            resolve_setting("permute-and-flip", {key: str(value) for key, value in sets.items()})
