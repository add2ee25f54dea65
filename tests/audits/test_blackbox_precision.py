"""Single and half precision: correct mechanisms are spared, broken ones found, and the floats' own leak is said.

Correct mechanisms are audited at confidence 1 − 10⁻⁹: all of them together are accused with probability below 10⁻⁷.
"""

from __future__ import annotations

import numpy as np
import pytest

from privcheck import GaussianDP, PureDP, audit_float_noise, audit_mechanism

SURE = 1 - 1e-9
STEP = 1 / np.sqrt(8)


def laplace(kind, scale, *, wrap=lambda found: found):
    return lambda given, runs, rng: wrap(kind(given) + rng.laplace(0, scale, runs).astype(kind))


def sgd(std):
    """Returns a sum of eight coordinates with normal noise, all in single precision."""

    def run(given, runs, rng):
        return np.full((runs, 8), given, np.float32) + rng.standard_normal((runs, 8), np.float32) * np.float32(std)

    return run


@pytest.mark.parametrize(
    ("kind", "magnitude", "wrap"),
    [
        (np.float32, 1e-3, list),
        (np.float32, 1.0, lambda found: found.astype(np.float64)),
        (np.float32, 1e4, lambda found: found),
        (np.float16, 1e-3, lambda found: found),
        (np.float16, 1e3, lambda found: [{"sum": each} for each in found]),
    ],
    ids=["single, small, list", "single, cast up", "single, large", "half, small", "half, large, dict"],
)
def test_low_precision_is_no_violation_and_half_the_noise_is(kind, magnitude, wrap):
    asked = {"neighbours": [(0.0, magnitude)], "trials": 3_000}
    correct, broken = (laplace(kind, share * magnitude, wrap=wrap) for share in (1.0, 0.4))
    found = audit_mechanism(correct, PureDP(1), **asked, confidence=SURE)
    assert (found.verdict, found.lower > 0.4) == ("consistent", True)
    found = audit_mechanism(broken, PureDP(1), **asked)
    assert found.verdict == "violation"
    assert any("the design refutes the claim, not the floating-point noise" in note for note in found.notes)


def test_sums_of_gradients_in_single_precision_are_judged_by_their_noise():
    asked = {"neighbours": [(0.0, STEP)], "trials": 3_000}
    assert audit_mechanism(sgd(1), GaussianDP(1), **asked, confidence=SURE).verdict == "consistent"
    assert audit_mechanism(sgd(0.6), GaussianDP(1), **asked).verdict == "violation"


def test_a_verdict_that_would_flip_with_the_grid_says_so_and_the_audit_of_floats_finds_it():
    asked = {"neighbours": [(0.0, 1.0)], "trials": 6_000}
    for kind in (np.float32, np.float16):
        found = audit_mechanism(laplace(kind, 1), PureDP(1), **asked, confidence=0.9999)
        assert found.verdict == "consistent"
        assert any("would be “violation”" in note and "`audit_float_noise`" in note for note in found.notes)
        assert audit_float_noise(laplace(kind, 1), PureDP(1), **asked).verdict == "violation"
    found = audit_mechanism(laplace(np.float64, 1), PureDP(1), **asked, confidence=SURE)
    assert not any("precision" in note for note in found.notes)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda given, runs, rng: (2 * rng.integers(0, 500, runs) + given).astype(np.float32),
        lambda given, runs, rng: ((2 * rng.integers(0, 200, runs) + given) / 4).astype(np.float16),
        lambda given, runs, rng: (rng.normal(size=runs) + np.where(rng.random(runs) < 0.5, 30 * given, 0)).astype(
            np.float16
        ),
    ],
    ids=["integers", "quarters", "atom"],
)
def test_a_coarse_grid_hides_no_design(mechanism):
    found = audit_mechanism(mechanism, PureDP(1), neighbours=[(0, 1)], trials=1_000)
    assert found.verdict == "violation"


def test_the_audit_of_floats_looks_into_outputs_of_any_kind():
    asked = {"neighbours": [(0.0, 1.0)], "trials": 1_500}

    def noisy(given, rng):
        return {"sum": float(given + rng.laplace()), "ok": True}

    def whole(given, rng):
        return {"sum": round(given + rng.laplace()), "ok": True}

    assert audit_float_noise(noisy, PureDP(1), **asked).verdict == "violation"
    assert audit_float_noise(whole, PureDP(1), **asked, confidence=SURE).verdict == "consistent"
