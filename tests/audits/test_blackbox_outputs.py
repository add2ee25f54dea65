"""Functions that return whatever functions return, called in whatever way.

Broken ones are found with a thousand runs, fixed by the seed. Correct ones are audited at confidence 1 − 10⁻⁹: all of
them together are accused with probability below 10⁻⁷.
"""

# ruff: noqa: ARG005 - signatures are what is read

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import blackbox_work as work
from mutants.catalogue import REPORTED, specimen
from privcheck import PureDP, audit_mechanism
from privcheck.runtime.auditors import MechanismError
from privcheck_audits.blackbox.calls import read_signature

SURE = 1 - 1e-9
PAIR = [(0, 1)]
FAIR = math.e / (1 + math.e)


def audit(mechanism, *, trials=1_000, claim=None, neighbours=PAIR, **more):
    found = audit_mechanism(mechanism, claim or PureDP(1), neighbours=neighbours, trials=trials, **more)
    return replace(found, seconds=0.0)


@pytest.mark.parametrize(
    "name",
    [
        "level of the exact count",
        "length of a session",
        "exact count in a rare message",
        "last bit of 90",
    ],
)
def test_what_surrounds_the_numbers_is_seen(name):
    given = specimen(name)
    found = audit(given.run, claim=given.claim, neighbours=given.pairs)
    assert found.verdict == "violation"
    assert found.lower <= given.loss
    mended = specimen(f"{name}, mended")
    found = audit(mended.run, claim=mended.claim, neighbours=mended.pairs, trials=400, confidence=SURE)
    assert (found.verdict, found.lower <= mended.loss) == ("consistent", True)


def test_thirty_bugs_are_found_as_they_are_published():
    assert sum(given.broken and read_signature(given.run, one_at_a_time=None, catch=True).single
               for given in REPORTED) >= 30  # fmt: skip


def answer(given, size):
    return [given] * size


WAYS = [
    (lambda given, size, rng: rng.normal(given, 1, size), {}, (False, True)),
    (lambda given, runs, _: [given] * runs, {}, (False, True)),
    (lambda *_: 0, {}, (False, True)),
    (lambda given, n: [given] * n, {}, (False, False)),
    (lambda given, rng, size: rng.normal(given, 1, size), {}, (False, True)),
    (lambda given, *, size, rng: rng.normal(given, 1, size), {}, (False, True)),
    (lambda given, size=1, generator=None: generator.normal(given, 1, size), {}, (False, True)),
    (lambda given, rng: rng.normal(given), {}, (True, True)),
    (lambda given, *, rng=None: rng.normal(given), {}, (True, True)),
    (lambda given, epsilon=1.0, rng=None: rng.laplace(given, 1 / epsilon), {}, (True, True)),
    (lambda given, seed: np.random.default_rng(seed).normal(given), {}, (True, True)),
    (lambda given, random_state=None: np.random.default_rng(random_state).normal(given), {}, (True, True)),
    (lambda given: given, {}, (True, False)),
    (lambda given, chance: chance.normal(given), {"one_at_a_time": True}, (True, True)),
    (lambda given, many: [given] * many, {"one_at_a_time": False}, (False, False)),
    (lambda given, size, rng: rng.normal(given, 1, size), {"one_at_a_time": True}, (True, True)),
    (partial(lambda epsilon, given, rng: rng.laplace(given, 1 / epsilon), 1.0), {}, (True, True)),
]


@pytest.mark.parametrize(("mechanism", "asked", "wanted"), WAYS, ids=range(len(WAYS)))
def test_the_signature_tells_how_a_function_is_called(mechanism, asked, wanted):
    caller = read_signature(mechanism, **{"one_at_a_time": None, "catch": True, **asked})
    assert (caller.single, caller.seeded) == wanted
    if mechanism is not WAYS[2][0]:
        assert len(caller.runs(0, 3, np.random.default_rng(0))) == 3


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        iter,
        lambda found: {"noisy": found, "public": ["x"] * len(found)},
        lambda found: (found, np.zeros((len(found), 2))),
        lambda found: [(float(x), None) for x in found],
        lambda found: [[x, x] for x in found],
        lambda found: found.astype(object),
        lambda found: np.array([(x, 1) for x in found], dtype=[("noisy", float), ("n", int)]),
        lambda found: [f"{x:.3f}" for x in found],
    ],
    ids=["list", "generator", "columns", "tuple of columns", "tuples", "lists", "objects", "records", "texts"],
)
def test_a_call_for_many_runs_gives_them_in_any_form(wrap):
    broken, correct = (
        lambda given, size, rng, scale=scale: wrap(given + rng.laplace(0, scale, size)) for scale in (0.3, 1)
    )
    assert audit(broken).verdict == "violation"
    assert audit(correct, trials=400, confidence=SURE).verdict == "consistent"


def test_what_one_run_raises_in_a_call_for_many_is_not_the_others_output():
    calls = []

    def strict(given, size, rng):
        calls.append(size)
        if (rng.random(size) < 0.01 * (1 + 1.7 * given)).any():  # a loss of 1, by Bernoulli variables at 1 % and 2.7 %
            raise ArithmeticError("negative")
        return rng.normal(size=size)

    found = audit(strict, trials=2_000, confidence=SURE)
    assert found.verdict == "consistent"
    assert calls[-1] == 1  # whether a call for many raises tells far more: each run has its own

    def told(given, size, rng):
        if (rng.random(size) < (0.9 if given else 0.1)).any():
            raise ArithmeticError("negative")
        return np.zeros(size)

    found = audit(told)
    assert found.verdict == "violation"
    assert found.lower < math.log(9)


def test_an_exception_ends_the_audit_where_it_is_no_output():
    def sometimes(given, rng):
        if rng.random() < 0.01:
            raise ArithmeticError("negative")
        return rng.normal(given)

    assert audit(sometimes, claim=PureDP(5), trials=400).verdict == "consistent"
    with pytest.raises(MechanismError, match="raised ArithmeticError: negative"):
        audit(sometimes, exceptions="raise")


def test_what_raises_on_one_neighbour_alone_is_told_and_said():
    def empty(given, rng):
        if not given:
            raise ValueError("no records")
        return rng.normal()

    found = audit(empty)
    assert found.verdict == "violation"
    assert any("every run on D of pair 0 raised, the first ValueError: no records" in note for note in found.notes)
    assert any("type of an output distinguishes the neighbours" in note for note in found.notes)


def test_rare_outputs_of_another_kind_are_met_while_learning_and_told():
    def rarely(given, size, rng):
        found = rng.normal(size=size)
        return [None if rare else float(x) for rare, x in zip(rng.random(size) < 0.03 * given, found, strict=True)]

    def rarely_nan(given, size, rng):
        return np.where(rng.random(size) < 0.03 * given, np.nan, rng.normal(size=size))

    for mechanism in (rarely, rarely_nan):
        for stop in (False, True):
            assert audit(mechanism, trials=2_000, stop=stop).verdict == "violation"


@pytest.mark.parametrize("late", [200, 1_400])
def test_learning_that_begins_again_forgets_scores_of_other_rows(late):
    made = []

    def changing(given, size, rng):
        made.append(size)
        found = rng.laplace(given, 1, size)
        return found if sum(made) < late else [(float(x), "more") for x in found]

    found = audit(changing, trials=3_000, stop=True, confidence=SURE)
    assert (found.verdict, found.ended, found.runs) == ("consistent", "done", 6_000)


def test_objects_without_fields_are_compared_by_type_and_that_is_said():
    found = audit(lambda given, rng: [object(), given * 0 + rng.normal()], trials=300, confidence=SURE)
    assert found.verdict == "consistent"
    assert any("of object only the type is compared" in note for note in found.notes)


def test_a_buffer_that_one_run_uses_again_and_a_view_of_the_dataset_are_copied():
    data = [(np.zeros(2), np.ones(2))]
    buffer = {"sum": 0.0, "noise": []}

    def again(given, rng):
        buffer["sum"] = float(given[0] + rng.laplace())
        buffer["noise"] = [float(rng.normal())]
        return buffer

    found = audit(again, neighbours=data, trials=2_000, confidence=SURE)
    assert (found.verdict, found.lower > 0.3) == ("consistent", True)
    assert audit(lambda given, rng: given[:1], neighbours=data, trials=200).verdict == "violation"


def test_any_number_of_workers_and_a_directory_give_the_same_result(tmp_path):
    asked = {"claim": PureDP(9), "trials": 1_500, "stop": False}
    alone = audit(work.told_by_types, **asked)
    assert audit(work.told_by_types, **asked, executor=ThreadPoolExecutor(2)) == alone
    assert audit(work.told_by_types, **asked, directory=tmp_path) == alone
    assert audit(work.told_by_types, **asked, directory=tmp_path) == alone


def test_randomness_of_its_own_is_taken_and_said():
    found = audit(lambda given: np.random.default_rng().laplace(given, 0.3), trials=1_000)
    assert found.verdict == "violation"
    assert "it takes no `rng`" in found.notes[0]


def test_the_same_numbers_as_objects_are_as_good_as_an_array():
    as_array = audit(lambda given, size, rng: given + rng.laplace(0, 0.5, size), trials=1_500)
    as_dict = audit(lambda given, rng: {"noisy": float(given + rng.laplace(0, 0.5))}, trials=1_500)
    assert as_dict.lower > as_array.lower - 0.2


@pytest.mark.parametrize("base", [10**17, 10**25, -(10**30), 10**400])
@pytest.mark.parametrize("columns", [1, 3])
def test_integers_beyond_what_a_float_holds_are_told_apart(base, columns):
    def counts(scale):
        def run(given, size, rng):
            noisy = np.rint(rng.laplace(0, scale, (size, columns))).astype(int)
            rows = [[base + given * (j == 0) + int(k) for j, k in enumerate(row)] for row in noisy]
            return rows if columns > 1 else [row[0] for row in rows]

        return run

    assert audit(counts(0.4), trials=1_500).verdict == "violation"
    right = audit(counts(1.05), trials=1_500, confidence=SURE)
    assert right.verdict == "consistent"
    assert right.lower > 0.2
