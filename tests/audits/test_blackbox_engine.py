"""Audits of functions through the engine: any executor, dead workers, resumed and interrupted audits, early stops.

Results are compared for equality, or fixed by the seed; the two simulations say their error probability.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import blackbox_work as work
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismAudit, MechanismError
from privcheck_audits.engine.pools import processes

audit = work.audit


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def laplace(scale):
    return lambda given, runs, rng: given + rng.laplace(0, scale, runs)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [False, True])
def test_any_executor_gives_the_same_result(stop):
    alone = audit(stop=stop)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for executor in (pool, ThreadPoolExecutor(3), processes(2)):
            assert audit(stop=stop, executor=executor) == alone
        assert pool.submit(int, "4").result() == 4  # what was handed in stays open
    assert audit(stop=stop, workers=2) == alone


@pytest.mark.slow
def test_a_worker_that_dies_costs_time_and_not_the_audit(tmp_path):
    found = audit(work.Dying(tmp_path / "died"), executor=processes(2))
    assert (tmp_path / "died").exists()
    assert found == audit()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [laplace(1), lambda given, *_: given])
def test_a_function_that_cannot_travel_is_refused_in_one_message(mechanism):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(ParameterError, match=r"mechanism: .* cannot be sent to the workers of Process.* top level"):
            audit(mechanism, executor=pool)
        assert pool.submit(int, "4").result() == 4  # and the pool survives
    with pytest.raises(ParameterError, match="cannot be sent"):
        audit(mechanism, executor=processes(1))
    assert audit(mechanism=laplace(0.5), executor=ThreadPoolExecutor(1)).verdict == "violation"


@pytest.mark.nightly
def test_a_dask_cluster_gives_the_same_result():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert audit(executor=client.get_executor()) == audit()


@pytest.mark.parametrize("stop", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_killed_audit_resumes_to_the_same_result_and_draws_nothing_twice(tmp_path, stop):
    traces = tmp_path / "traces"
    traces.mkdir()
    asked = {"directory": tmp_path / "kept", "claim": PureDP("1.9"), "stop": stop}
    child = multiprocessing.get_context("spawn").Process(
        target=audit, args=(work.Traced(traces, 2),), kwargs=asked, daemon=True
    )
    child.start()
    child.join(120)
    assert child.exitcode == -9
    assert len(list(traces.iterdir())) == 2
    again = audit(work.Traced(traces, None), **asked)
    once = tmp_path / "once"
    once.mkdir()
    assert again == audit(work.Traced(once, None), claim=PureDP("1.9"), stop=stop)
    assert len(list(traces.iterdir())) <= len(list(once.iterdir())) + 1  # the block it died in was drawn again
    before = len(list(traces.iterdir()))
    assert audit(work.Traced(traces, None), **asked) == again
    assert len(list(traces.iterdir())) == before  # finished: nothing is drawn


def test_blocks_of_another_audit_are_refused(tmp_path):
    audit(trials=500, directory=tmp_path)
    for other in ({"seed": 1}, {"trials": 501}, {"claim": PureDP(2)}, {"neighbours": [(0.0, 2.0)]}, {"stop": True}):
        with pytest.raises(ParameterError, match="another audit"):
            audit(**{"trials": 500, "directory": tmp_path, **other})
    scaled = lambda given, runs, rng: work.laplace(given, runs, rng) * 2  # noqa: E731
    scaled.__qualname__ = "laplace"
    with pytest.raises(ParameterError, match="outputs: there"):  # another function of the same name
        audit(scaled, trials=500, directory=tmp_path)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stop", [False, True])
def test_an_interrupt_gives_the_bound_of_what_was_finished(workers, stop):
    def progress(done, of):
        if done > 20_000:
            raise KeyboardInterrupt

    found = audit(trials=30_000, claim=PureDP("1.95"), workers=workers, stop=stop, progress=progress, confidence=0.999)
    assert found.ended == "interrupted"
    assert 20_000 < found.runs < 60_000
    assert 1.5 < found.lower < 2
    assert "interrupted after" in str(found)


def test_an_interrupt_before_anything_was_tested_is_an_interrupt():
    def at_once(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(progress=at_once)


@pytest.mark.parametrize(
    ("mechanism", "claim", "most"),
    [
        (lambda given, runs, _: np.full(runs, given), PureDP(1), 400),
        (laplace(0.5), PureDP(1), 1_500),
        (laplace(0.5), ApproxDP(1, "0.00001"), 1_500),
        (lambda given, runs, rng: given + rng.normal(0, 0.5, runs), ZCDP("1/2"), 4_000),
        (lambda given, runs, rng: given + rng.normal(0, 0.5, runs), GaussianDP(1), 2_500),
    ],
    ids=["exact", "pure", "approximate", "zcdp", "gdp"],
)
def test_gross_violations_stop_after_few_runs(mechanism, claim, most):
    found = audit(mechanism, claim, trials=100_000, stop=True)
    assert (found.verdict, found.ended) == ("violation", "stopped")
    assert found.runs <= most
    assert found.lower >= found.claimed
    assert f"stopped after {found.runs:,} of 200,000 runs, 100,000 under each neighbour, seed" in str(found)


def test_the_pair_that_tells_stops_the_audit_however_many_others_there_are():
    found = audit(neighbours=[(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)], trials=100_000, stop=True)
    assert (found.ended, found.pair) == ("stopped", 2)
    assert found.runs < 6_000
    assert "of 600,000 runs, 100,000 under each neighbour of each of 3 pairs, seed" in str(found)


def test_an_audit_is_a_document_without_the_data_of_its_neighbours():
    found = audit(
        neighbours=[(np.zeros(3), object()), (0.0, 0.0)], mechanism=lambda _, runs, rng: rng.normal(size=runs)
    )
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    fields = {field.name for field in dataclasses.fields(MechanismAudit)} - {"neighbours"}
    assert fields <= set(document)
    assert set(document) - fields <= {"schema", "visible_infinite"}
    for name in fields - {"evidence", "notes", "trade_off", "visible"}:
        assert document[name] == getattr(found, name)
    assert document["trade_off"]["type_one"] == list(found.trade_off.type_one)


def test_an_audit_that_never_stops_ends_with_nearly_the_bound_of_one_that_does_not_look():
    looked, plain = (audit(laplace(1), trials=20_000, stop=stop) for stop in (True, False))
    assert looked.ended == "done"
    assert looked.runs == plain.runs == 40_000
    assert 0.85 < looked.lower <= 1
    assert plain.lower < looked.lower + 0.08


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (lambda given, runs, rng: np.where(rng.random(runs) < np.e / (1 + np.e), given, 1 - given), PureDP(1)),
        (lambda given, runs, rng: given + rng.normal(0, 2, runs), GaussianDP("1/2")),
    ],
    ids=["response", "gdp"],
)
def test_looking_all_the_time_accuses_at_most_with_alpha(mechanism, claim):
    # fails a correct audit with probability below 1e-9
    alpha, audits = 0.3, 40
    alarms = sum(
        audit(mechanism, claim, trials=400, confidence=1 - alpha, seed=seed, stop=True).verdict == "violation"
        for seed in range(audits)
    )
    assert alarms <= binom.isf(1e-9, audits, alpha)


def test_no_score_bets_on_runs_that_it_was_learned_on():
    # nothing to learn and much to be misled by; a correct audit accuses with probability 1e-9
    nothing = lambda _, runs, rng: rng.normal(size=(runs, 6))  # noqa: E731
    found = audit(nothing, PureDP(0), trials=5_000, confidence=1 - 1e-9, stop=True)
    assert (found.verdict, found.ended) == ("consistent", "done")


def test_the_finished_part_of_a_failed_audit_does_not_depend_on_the_workers():
    def failing(given, runs, rng):
        if runs == 4_092:  # one block's hidden bits come to this
            raise OSError("disk full")
        return given + rng.laplace(0, 0.5, runs)

    found = []
    for workers in (1, 3):
        with pytest.raises(MechanismError, match="raised OSError: disk full") as caught:
            audit(failing, trials=100_000, workers=workers)
        found.append((caught.value.trial, caught.value.finished.lower, caught.value.finished.runs))
    assert found[0] == found[1]
    assert 100_000 < found[0][2] <= found[0][0]
