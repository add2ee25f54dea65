"""The release gate of the black-box audit: what it finds, and how often it accuses.

Correct mechanisms of the catalogue are audited at confidence 1 − 10⁻⁹: all of them together are accused, or bounded
above their loss, with a probability below 2·10⁻⁷. Counts of false alarms are compared with a binomial quantile that a
correct auditor exceeds with probability below 10⁻⁹. What is found at 10³, 10⁴, 10⁵ or, of one function, 10⁶ runs is
fixed by the seed; what needs more than 10³ is looked for at night. How much at which number, and false alarms at more
runs, are in benchmarks/blackbox.md and literature.md.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from mutants.catalogue import CATALOGUE, FOUND_LATER, REPORTED
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP, audit_mechanism

pytestmark = pytest.mark.slow
BROKEN = [each for each in CATALOGUE if each.broken]
CORRECT = [each for each in CATALOGUE if not each.broken]


def claimed(claim):
    """Returns a claim's figure."""
    name = {PureDP: "epsilon", ApproxDP: "epsilon", ZCDP: "rho", GaussianDP: "mu"}[type(claim)]
    return getattr(claim, name).number(rounding="up")


def most(given):
    """Returns what no bound may exceed: the loss, which is stated with rounding, where it is known."""
    known = given.loss is not None and given.loss_is != "at least"
    return given.loss * 1.05 if known else math.inf


@pytest.mark.every_change
@pytest.mark.parametrize("given", [one for one in BROKEN if one.name not in FOUND_LATER], ids=lambda given: given.name)
def test_broken_mechanisms_are_found(given):
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=1_000)
    assert found.verdict == "violation"
    assert found.lower <= most(given)


@pytest.mark.nightly
@pytest.mark.parametrize("given", [one for one in BROKEN if one.name in FOUND_LATER], ids=lambda given: given.name)
def test_broken_mechanisms_that_lose_little_are_found(given):
    for trials in (10_000, 100_000, 1_000_000):
        found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=trials)
        if found.verdict == "violation":
            break
    assert found.verdict == "violation"
    assert found.lower <= most(given)


@pytest.mark.parametrize("given", CORRECT, ids=lambda given: given.name)
def test_correct_mechanisms_are_spared(given):
    found = audit_mechanism(given.run, given.claim, neighbours=given.pairs, trials=1_000, confidence=1 - 1e-9)
    assert found.verdict == "consistent"
    assert found.lower <= most(given)


def test_reported_bugs_have_mended_twins():
    names = {given.name: given for given in REPORTED}
    for given in REPORTED:
        if given.broken:
            twin = names[f"{given.name}, mended"]
            assert (twin.broken, twin.claim, twin.pairs) == (False, given.claim, given.pairs)
            assert twin.loss <= claimed(twin.claim) < given.loss
    assert len(names) == len(REPORTED)
    assert sum(given.broken for given in REPORTED) >= 40


def tells_sometimes(given, runs, rng):
    """Returns randomised response at ε = 1 that tells the bit outright with probability δ = .02: exactly (1, .02)."""
    answer = np.where(rng.random(runs) < math.e / (1 + math.e), given, 1 - given)
    return np.where(rng.random(runs) < 0.02, 10 + given, answer)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (lambda given, runs, rng: np.where(rng.random(runs) < math.e / (1 + math.e), given, 1 - given), PureDP(1)),
        (tells_sometimes, ApproxDP(1, "0.02")),
        (lambda given, runs, rng: given + rng.laplace(0, 1, runs), PureDP(1)),
        (lambda given, runs, rng: given + rng.normal(0, 1, runs), ZCDP("1/2")),
        (lambda given, runs, rng: given + rng.normal(0, 1, runs), GaussianDP(1)),
    ],
    ids=["response", "told", "laplace", "zcdp", "gdp"],
)
def test_mechanisms_exactly_at_their_claim_are_accused_at_most_with_alpha(mechanism, claim):
    alpha, audits = 0.2, 40
    alarms = sum(
        audit_mechanism(mechanism, claim, neighbours=[(0, 1)], trials=400, confidence=1 - alpha, seed=seed).verdict
        == "violation"
        for seed in range(audits)
    )
    assert alarms <= binom.isf(1e-9, audits, alpha)
