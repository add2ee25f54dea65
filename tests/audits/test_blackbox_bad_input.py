"""Functions that misbehave: one message with run and seed, and finished blocks are kept.

Nothing here depends on chance.
"""

# ruff: noqa: ARG005 - signatures are what is read

from __future__ import annotations

import itertools
import resource
import sys

import numpy as np
import pytest

from privcheck import ApproxDP, PureDP, audit_mechanism
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismError
from privcheck_audits.blackbox.calls import read_signature
from privcheck_audits.blackbox.inputs import probe

PAIR = [(0.0, 1.0)]


def laplace(given, runs, rng):
    return given + rng.laplace(0, 0.5, runs)


async def asynchronous(given, rng):
    return given


def contains_itself():
    found = []
    found.append(found)
    return found


def deep(levels):
    return [deep(levels - 1)] if levels else []


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (lambda *_: {"answer": 1}, r"a dict; .*answers once a call takes \(dataset, rng\); expected 5 runs"),
        (lambda *_: None, "a NoneType; .*expected 5 runs"),
        (lambda *_: "yes", "a str; .*expected 5 runs"),
        (lambda *_: {1, 2, 3, 4, 5}, "a set; .*expected 5 runs"),
        (lambda _, runs, __: [0] * (runs + 1), "a list of length 6; expected 5 runs"),
        (lambda *_: itertools.count(), "a generator of more than 5 runs"),
        (lambda _, runs, __: np.zeros((3, runs)), r"float64 values of shape \(3, 5\); expected 5 runs"),
        (lambda _, rng: itertools.count(), "a itertools.count of more than 1,000,000 items"),
        (lambda _, rng: contains_itself(), "something that contains itself"),
        (lambda _, rng: deep(200), "more than 100 containers in each other"),
        (lambda given, runs, rng: np.full(runs, given + rng.laplace()), "share their randomness.*size=size"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_what_to_do(mechanism, said):
    with pytest.raises(MechanismError, match=f"(?s)on D of pair 0, seed 3, returned .*{said}") as caught:
        audit_mechanism(mechanism, PureDP(1), neighbours=PAIR, trials=1_000, seed=3)
    assert (caught.value.trial, caught.value.seed, caught.value.finished) == (0, 3, None)


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        (lambda given, runs, rng: missing, "NameError: name 'missing'"),  # noqa: F821
        (lambda given, rng: given["a"], "TypeError"),
        (lambda given, rng: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_what_raises_in_every_run_is_a_mistake_and_not_an_output(mechanism, said):
    with pytest.raises(MechanismError, match=f"raised {said}.*as in every other of the first runs on both neighbours"):
        audit_mechanism(mechanism, PureDP(1), neighbours=PAIR, trials=1_000)


@pytest.mark.parametrize(
    ("mechanism", "more", "said"),
    [
        (3, {}, "expected a function"),
        (asynchronous, {}, "is asynchronous"),
        (lambda: 0, {}, "takes no dataset"),
        (lambda given, epsilon: 0, {}, "“epsilon”, which is neither"),
        (lambda given, epsilon, delta, rng: 0, {}, "takes epsilon, delta; bind all arguments"),
        (lambda given, rng: 0, {"one_at_a_time": False}, "does not take the number of runs"),
        (lambda given, a, b: 0, {"one_at_a_time": True}, "takes a and b besides the dataset"),
        (laplace, {"exceptions": "ignore"}, "exceptions: expected “output” or “raise”"),
    ],
)
def test_a_signature_that_does_not_tell_is_refused(mechanism, more, said):
    with pytest.raises(ParameterError, match=said):
        audit_mechanism(mechanism, PureDP(1), neighbours=PAIR, trials=1_000, **more)


def test_an_audit_that_cannot_be_repeated_cannot_be_resumed(tmp_path):
    def own(given, runs):
        return np.random.default_rng().laplace(given, 1, runs)

    found = audit_mechanism(own, PureDP(9), neighbours=PAIR, trials=500)
    assert "it takes no `rng`" in found.notes[0]
    with pytest.raises(ParameterError, match=r"directory: .*do not repeat with the seed"):
        audit_mechanism(own, PureDP(9), neighbours=PAIR, trials=500, directory=tmp_path)


def test_a_conversion_that_fails_is_said_whatever_it_raises():
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("not today")

    with pytest.raises(MechanismError, match=r"returned no array .RuntimeError: not today"):
        audit_mechanism(lambda *_: Odd(), PureDP(1), neighbours=PAIR, trials=1_000)


@pytest.mark.parametrize(
    ("late", "more", "said"),
    [
        (lambda found: found[:-1], {}, r"in the call for runs \d+ to \d+ .*expected \d+ runs"),
        (lambda _: 1 / 0, {}, "raised ZeroDivisionError: .*one_at_a_time=True"),
        (lambda _: 1 / 0, {"exceptions": "raise"}, "raised ZeroDivisionError: division by zero;"),
    ],
    ids=["rows", "raises", "stops"],
)
def test_what_goes_wrong_at_run_60_000_names_it_and_what_was_finished_is_kept(late, more, said):
    seen = []

    def failing(given, runs, rng):
        seen.append(runs)
        found = laplace(given, runs, rng)
        return late(found) if runs > 500 and sum(seen) > 68_000 else found

    with pytest.raises(MechanismError, match=f"{said}.*say: violation") as caught:
        audit_mechanism(failing, PureDP(1), neighbours=PAIR, trials=40_000, seed=4, **more)
    error = caught.value
    assert 50_000 < error.trial < 70_000
    assert error.seed == 4
    assert (error.finished.verdict, error.finished.ended) == ("violation", "interrupted")
    assert 1.9 < error.finished.lower < 2
    assert error.trial - 8_192 <= error.finished.runs <= error.trial


@pytest.mark.parametrize(
    "late",
    [
        lambda found: np.where(np.arange(found.size) == 5, np.nan, found),
        lambda found: np.stack([found, found], axis=1),
        lambda found: found.astype(str),
        lambda found: [None, *found[1:]],
    ],
    ids=["nan", "shape", "text", "none"],
)
def test_outputs_of_another_kind_that_come_late_are_outputs_too(late):
    seen = []

    def changing(given, runs, rng):
        seen.append(runs)
        found = laplace(given, runs, rng)
        return late(found) if runs > 500 and sum(seen) > 17_000 else found

    found = audit_mechanism(changing, PureDP(1), neighbours=PAIR, trials=10_000, seed=4)
    assert (found.ended, found.runs, found.verdict) == ("done", 20_000, "violation")


def test_a_late_failure_on_the_second_pair_keeps_the_first():
    def failing(given, runs, rng):
        if given > 1 and runs > 3_500:
            raise OSError("disk full")
        return laplace(given, runs, rng)

    with pytest.raises(MechanismError, match=r"of pair 1, .*disk full.*say: violation") as caught:
        audit_mechanism(
            failing, ApproxDP(1, "0.00001"), neighbours=[(0.0, 1.0), (2.0, 3.0)], trials=10_000, exceptions="raise"
        )
    assert caught.value.finished.pair == 0


def test_an_audit_that_looks_keeps_what_it_finished_while_learning():
    def failing(given, runs, rng):
        if runs > 100:
            raise OSError("disk full")
        return laplace(given, runs, rng)

    with pytest.raises(MechanismError, match=r"disk full.*say: consistent") as caught:
        audit_mechanism(failing, PureDP("1.99"), neighbours=PAIR, trials=20_000, stop=True, exceptions="raise")
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
    source = probe(read_signature(mechanism, one_at_a_time=None, catch=True), (0, 1), number=0, seed=0).source
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
