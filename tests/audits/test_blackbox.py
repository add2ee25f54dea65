"""Functions with claims: broken ones are found, correct ones spared, bad ones refused with trial and seed.

Correct mechanisms are audited at confidence 1 − 10⁻⁹, so that all tests here together accuse one with probability
below 10⁻⁷.
"""

from __future__ import annotations

import numpy as np
import pytest

import privcheck
from mutants.catalogue import CATALOGUE, specimen
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP, audit_float_noise, audit_mechanism
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismError

SURE = 1 - 1e-9


def laplace(scale):
    return lambda given, runs, rng: given + rng.laplace(0, scale, runs)


def gaussian(std):
    return lambda given, runs, rng: given + rng.normal(0, std, runs)


@pytest.mark.parametrize(
    "name",
    [
        "laplace at half scale",
        "gaussian, zCDP, sensitivity short by 2",
        "gaussian, GDP, short by √2",
        "noise shared between ten",
        "no noise once in 50",
        "256 seeds",
        "sparse vector 5",
        "noisy max with the value",
        "unary code, twice the budget",
        "as many numbers as records",
        "parity kept",
    ],
)
def test_broken_mechanisms_are_found_with_3_000_runs(name):
    broken = specimen(name)
    found = audit_mechanism(broken.run, broken.claim, neighbours=broken.pairs, trials=3_000)
    assert found.verdict == "violation"
    assert found.lower > found.claimed


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (laplace(1), PureDP(1)),
        (gaussian(1), ZCDP("1/2")),
        (gaussian(1), GaussianDP(1)),
        (gaussian(3.7306), ApproxDP(1, "0.00001")),
        (lambda _, runs, __: np.zeros(runs), PureDP(0)),
    ],
    ids=["pure", "zcdp", "gdp", "approximate", "constant"],
)
def test_correct_mechanisms_are_spared(mechanism, claim):
    found = audit_mechanism(mechanism, claim, neighbours=[(0.0, 1.0)], trials=3_000, confidence=SURE)
    assert found.verdict == "consistent"
    assert 0 <= found.lower <= found.claimed


def test_a_known_loss_is_approached():
    found = audit_mechanism(laplace(1), PureDP(1), neighbours=[(0.0, 1.0)], trials=10_000)
    assert 0.87 < found.lower < 1  # the limit of all tests is .971 at 95 %, with the score known beforehand
    assert found.lower < found.reachable < 1


def test_the_result_depends_on_the_seed_alone():
    def audit(**more):
        asked = {"neighbours": [(0.0, 1.0)], "trials": 6_000, **more}
        found = audit_mechanism(laplace(0.7), PureDP(1), **asked)
        return found.lower, found.method, dict(found.evidence)

    assert audit() == audit(workers=2)
    assert audit() != audit(seed=1)


def test_a_claim_with_delta_is_tested_on_pairs_of_which_one_shows_little():
    found = audit_mechanism(
        lambda given, runs, rng: given[0] + given[1] * rng.laplace(0, 1, runs),
        ApproxDP(1, "0.01"),
        neighbours=[((0, 0), (0, 0)), ((0, 1), (3, 1))],  # one output, and a score with many edges
        trials=2_000,
    )
    assert found.verdict == "violation"
    assert found.pair == 1


def test_the_best_of_several_pairs_is_named():
    found = audit_mechanism(laplace(1), PureDP(1), neighbours=[(0.0, 0.1), (0.0, 3.0), (1.0, 1.0)], trials=2_000)
    assert found.verdict == "violation"
    assert found.pair == 1


def test_the_float_audit_finds_the_grid_and_the_design_audit_does_not():
    asked = {"neighbours": [(0.0, 1.0)], "trials": 3_000}
    assert audit_float_noise(laplace(1), PureDP(1), **asked).verdict == "violation"
    assert audit_mechanism(laplace(1), PureDP(1), **asked, confidence=SURE).verdict == "consistent"
    coarse = lambda given, runs, rng: np.round(given + rng.laplace(0, 1, runs), 2)  # noqa: E731
    assert audit_float_noise(coarse, PureDP(1), **asked, confidence=SURE).verdict == "consistent"


def test_a_late_exception_names_the_call_and_what_was_finished_is_kept():
    calls = []

    def failing(given, runs, rng):
        calls.append(runs)
        if runs > 500 and sum(calls) > 18_000:
            raise OSError("disk full")
        return given + rng.laplace(0, 0.5, runs)

    with pytest.raises(MechanismError, match=r"runs \d+ to \d+ on D.*raised OSError: disk full") as caught:
        audit_mechanism(failing, PureDP(1), neighbours=[(0.0, 1.0)], trials=10_000)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.finished.verdict == "violation"


def test_state_between_calls_and_unused_randomness_are_said():
    def own(given, runs, rng):
        return np.random.default_rng().laplace(given, 1, runs)

    def same(given, runs, rng):
        return np.random.default_rng(1).laplace(given, 1, runs)

    asked = {"neighbours": [(0.0, 1.0)], "trials": 500, "confidence": SURE}
    assert "not repeatable" in audit_mechanism(own, PureDP(1), **asked).notes[0]
    assert "not used" in audit_mechanism(same, PureDP(1), **asked).notes[0]
    assert "not random" in audit_mechanism(lambda _, n, __: np.zeros(n), PureDP(1), **asked).notes[0]
    assert audit_mechanism(laplace(1), PureDP(1), **asked).notes == ()


@pytest.mark.parametrize("kind", [np.float32, np.int8, np.bool_, np.uint64])
def test_other_kinds_of_numbers_are_taken(kind):
    mechanism = lambda given, runs, rng: np.clip(given + rng.geometric(0.6, runs), 0, 9).astype(kind)  # noqa: E731
    assert audit_mechanism(mechanism, PureDP(9), neighbours=[(0, 1)], trials=500).verdict == "consistent"


def test_infinite_answers_are_atoms():
    def told(given, runs, rng):
        return np.where(rng.random(runs) < 0.2, np.inf if given else -np.inf, rng.laplace(0, 1, runs))

    assert audit_mechanism(told, PureDP(1), neighbours=[(0, 1)], trials=500).verdict == "violation"


@pytest.mark.parametrize(
    "wrong",
    [{"trials": 10}, {"confidence": 1.0}, {"seed": -1}, {"workers": 0}, {"neighbours": []}, {"neighbours": (0, 1)}],
)
def test_arguments_out_of_range_are_refused_before_anything_is_called(wrong):
    def never(given, runs, rng):
        raise AssertionError

    with pytest.raises(ParameterError, match=next(iter(wrong))):
        audit_mechanism(never, PureDP(1), **{"neighbours": [(0, 1)], **wrong})
    with pytest.raises(ParameterError, match="expected one of PureDP"):
        audit_mechanism(never, "private", neighbours=[(0, 1)])


def test_every_specimen_has_a_name_of_its_own_and_a_loss_that_fits_its_claim():
    assert len({each.name for each in CATALOGUE}) == len(CATALOGUE)
    assert sum(each.broken for each in CATALOGUE) >= 50
    assert sum(not each.broken for each in CATALOGUE) >= 30
    assert "audit_mechanism" in dir(privcheck)
