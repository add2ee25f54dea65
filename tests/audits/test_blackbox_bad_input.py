"""Functions that misbehave: one message with run and seed, and what was finished is kept.

Nothing here depends on chance.
"""

from __future__ import annotations

import resource
import sys

import numpy as np
import pytest

from privcheck import ApproxDP, PureDP, audit_mechanism
from privcheck.auditors import MechanismError
from privcheck_audits.blackbox.inputs import probe

PAIR = [(0.0, 1.0)]


def laplace(given, runs, rng):
    return given + rng.laplace(0, 0.5, runs)


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (lambda _, runs, __: np.array(["yes"] * runs), r"<U3 values .*give each text a number"),
        (lambda _, runs, __: np.array([None] * runs), "object values .*generator has to become a list"),
        (lambda _, runs, __: np.array([10**30] * runs), "object values"),
        (lambda _, runs, __: (x for x in range(runs)), "a generator; expected numbers.*become a list"),
        (lambda *_: {"answer": 1}, "a dict; expected numbers"),
        (lambda *_: None, "a NoneType; expected numbers"),
        (lambda _, runs, __: np.zeros(runs, dtype="datetime64[s]"), "times can be numbers"),
        (lambda _, runs, __: np.zeros(runs, dtype=[("a", float)]), "fields of records can be columns"),
        (lambda _, runs, __: np.ma.masked_equal(np.arange(runs), 2), "masked array.*a number of its own"),
        (lambda _, runs, __: [[0.0] * (1 + k % 2) for k in range(runs)], "no array .*pad them"),
        (lambda _, runs, __: np.zeros((runs, 3, 0)), r"shape \(5, 3, 0\).* at least one number"),
        (lambda _, runs, __: np.zeros((runs, runs)), "shapes .*in a call for 5 runs.*pad them"),
        (lambda given, runs, rng: np.full(runs, given + rng.laplace()), "share their randomness.*size=size"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_what_to_do(mechanism, said):
    with pytest.raises(MechanismError, match=f"(?s)on D of pair 0, seed 3, returned .*{said}") as caught:
        audit_mechanism(mechanism, PureDP(1), neighbours=PAIR, trials=1_000, seed=3)
    assert (caught.value.trial, caught.value.seed, caught.value.finished) == (0, 3, None)


def test_a_conversion_that_fails_is_said_whatever_it_raises():
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("not today")

    with pytest.raises(MechanismError, match=r"returned no array .RuntimeError: not today"):
        audit_mechanism(lambda *_: Odd(), PureDP(1), neighbours=PAIR, trials=1_000)


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (lambda found: np.where(np.arange(found.size) == 5, np.nan, found), r"in run \d+ on D.*returned NaN"),
        (lambda found: found[:-1], r"in the call for runs \d+ to \d+ .*expected \("),
        (lambda found: np.stack([found, found], axis=1), r"shape \(2,\) where it returned \(\) before"),
        (lambda found: found.astype(str), "expected numbers"),
        (lambda _: 1 / 0, "raised ZeroDivisionError"),
    ],
    ids=["nan", "rows", "shape", "text", "raises"],
)
def test_what_goes_wrong_at_run_100_000_names_it_and_what_was_finished_is_kept(late, said):
    seen = []

    def failing(given, runs, rng):
        seen.append(runs)
        found = laplace(given, runs, rng)
        return late(found) if sum(seen) > 100_000 else found

    with pytest.raises(MechanismError, match=f"{said}.*say: violation") as caught:
        audit_mechanism(failing, PureDP(1), neighbours=PAIR, trials=80_000, seed=4)
    error = caught.value
    assert 90_000 < error.trial < 110_000
    assert error.seed == 4
    assert (error.finished.verdict, error.finished.ended) == ("violation", "interrupted")
    assert 1.9 < error.finished.lower < 2
    assert error.trial - 8_192 <= error.finished.runs <= error.trial


def test_a_late_failure_on_the_second_pair_keeps_the_first():
    def failing(given, runs, rng):
        if given > 1 and runs > 3_500:
            raise OSError("disk full")
        return laplace(given, runs, rng)

    with pytest.raises(MechanismError, match=r"of pair 1, .*disk full.*say: violation") as caught:
        audit_mechanism(failing, ApproxDP(1, "0.00001"), neighbours=[(0.0, 1.0), (2.0, 3.0)], trials=10_000)
    assert caught.value.finished.pair == 0


def test_an_audit_that_looks_keeps_what_it_finished_while_learning():
    def failing(given, runs, rng):
        if runs > 100:
            raise OSError("disk full")
        return laplace(given, runs, rng)

    with pytest.raises(MechanismError, match=r"disk full.*say: consistent") as caught:
        audit_mechanism(failing, PureDP("1.99"), neighbours=PAIR, trials=20_000, stop=True)
    assert caught.value.finished.lower > 1


def test_a_dataset_that_the_function_changes_is_said():
    def changes(given, runs, rng):
        given += 1
        return given[0] + rng.laplace(0, 1, runs)

    pair = [(np.zeros(1), np.ones(1))]
    assert "changes its dataset" in audit_mechanism(changes, PureDP(9), neighbours=pair, trials=500).notes[0]


def test_a_buffer_that_is_used_again_is_copied():
    buffer = np.zeros(100_000)

    def again(given, runs, rng):
        buffer[:runs] = rng.laplace(given, 1, runs)
        return buffer[:runs]

    found = audit_mechanism(again, PureDP(1), neighbours=PAIR, trials=2_000, confidence=1 - 1e-9)
    assert found.verdict == "consistent"
    assert found.lower > 0.3


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
def test_the_last_digits_of_integers_beyond_floats_are_seen(kind):
    mechanism = lambda given, runs, rng: 2 * rng.integers(1 << 55, 1 << 61, runs, dtype=kind) + kind(given)  # noqa: E731
    found = audit_mechanism(mechanism, PureDP(1), neighbours=[(0, 1)], trials=1_000)
    assert found.verdict == "violation"
    source = probe(mechanism, (0, 1), number=0, seed=0).source
    rows, secret = source.runs(np.random.default_rng(0), 50, 0)
    assert rows.shape == (50, 2)
    assert (rows[:, 1] % 2 == ~secret).all()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_width_of_outputs():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wide = lambda given, runs, rng: rng.laplace(0, 0.5, (runs, 400_000)) + given * (np.arange(400_000) == 7)  # noqa: E731
    found = audit_mechanism(wide, PureDP(1), neighbours=PAIR, trials=300)
    assert found.runs == 600
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert more < 1_000_000 * (1 if sys.platform == "linux" else 1_024)  # 600 runs are 1.9 GB


def test_wide_outputs_are_narrowed_and_still_told():
    wide = lambda given, runs, rng: rng.laplace(0, 0.3, (runs, 900)) + given * (np.arange(900) == 7)  # noqa: E731
    found = audit_mechanism(wide, PureDP(1), neighbours=PAIR, trials=2_000)
    assert found.verdict == "violation"
    assert found.runs == 4_000
