"""The engine on executors: the same result everywhere, and a worker that dies costs time, not the audit.

Nothing here depends on chance: results are compared for equality.
"""

from __future__ import annotations

import itertools
import multiprocessing
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import engine_work as work
from privcheck.errors import AuditError, ParameterError
from privcheck_audits.engine import pools
from privcheck_audits.engine.blocks import Tally, blocks, gather, total
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.pools import LOSSES, Flight, processes

pytestmark = pytest.mark.slow

ALONE = [part.tolist() for _, _, part in blocks(work.numbers, 1_050, seed=3, block=100)]


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture
def spawned():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def alone(what=work.guesses, runs=1_000, **how):
    return total(blocks(what, runs, **{"seed": 1, "block": 50, **how}))


def test_any_executor_gives_the_same_result(spawned):
    for executor in (spawned, ThreadPoolExecutor(3), processes(2)):
        found = list(blocks(work.numbers, 1_050, seed=3, block=100, executor=executor))
        assert [part.tolist() for _, _, part in found] == ALONE
    assert total(blocks(work.guesses, 1_000, seed=1, block=50, executor=spawned)) == alone()


def test_an_executor_that_was_handed_in_stays_open():
    with ThreadPoolExecutor(1) as pool:
        next(blocks(work.guesses, 1_000, seed=1, block=50, executor=pool))
        assert pool.submit(int, "4").result() == 4


@pytest.mark.parametrize("given", ["made", pytest.param("instance", marks=pytest.mark.slow)])
def test_a_process_that_is_killed_costs_time_and_not_the_audit(given, tmp_path, spawned):
    dying = work.Dying(at=300, flag=tmp_path / "died")
    executor = processes(2) if given == "made" else spawned
    found = total(blocks(dying, 1_000, seed=1, block=50, executor=executor))
    assert (tmp_path / "died").exists()
    assert found == alone()


@pytest.mark.slow
def test_a_block_that_always_kills_its_worker_ends_the_audit_with_its_name(tmp_path):
    with pytest.raises(
        AuditError, match=rf"block 2 \(runs 100 to 149\).* lost its worker {LOSSES + 1} times"
    ) as caught:
        total(blocks(work.Dying(at=100, flag=None), 300, seed=1, block=50, executor=processes(1)))
    assert (caught.value.trial, caught.value.seed) == (100, 1)


def test_errors_come_back_from_processes_as_what_they_are(spawned):
    with pytest.raises(AuditError, match="run 100") as caught:
        total(blocks(work.Raising(at=100, kind="audit"), 300, seed=7, block=50, executor=spawned))
    assert (caught.value.trial, caught.value.seed) == (100, 7)
    assert "runs 100 to 149" in caught.value.__notes__[0]
    with pytest.raises(RuntimeError, match="AwkwardError: broken at 100"):  # and the pool survives
        total(blocks(work.Raising(at=100, kind="awkward"), 300, seed=7, block=50, executor=spawned))
    assert spawned.submit(int, "4").result() == 4


def at_least(monkeypatch, size):
    """Makes every task after the first ones a group of at most so many blocks."""
    monkeypatch.setattr(pools, "_TASK", 1e9)
    monkeypatch.setattr(pools, "_MOST", size)
    monkeypatch.setattr("privcheck_audits.engine.blocks._ELSEWHERE", 4)
    sent = []
    submit = Flight.submit
    monkeypatch.setattr(Flight, "submit", lambda self, *numbers: (sent.append(numbers), submit(self, *numbers))[1])
    return sent


@pytest.mark.parametrize("size", [1, 3, 64])
def test_no_result_depends_on_the_groups_that_blocks_are_sent_in(monkeypatch, spawned, size, tmp_path):
    sent = at_least(monkeypatch, size)
    checkpoint = Checkpoint(directory=tmp_path, plan={}, kinds=(Tally,))
    found = list(blocks(work.guesses, 3_000, seed=1, block=50, executor=spawned, checkpoint=checkpoint))
    assert found == list(blocks(work.guesses, 3_000, seed=1, block=50))
    assert sorted(number for numbers in sent for number in numbers) == list(range(60))
    longest = max(map(len, sent))  # how long depends on how busy the workers were
    assert longest <= size
    assert (longest > 1) == (size > 1)
    sent.clear()
    kept = list(blocks(work.guesses, 3_000, seed=1, block=50, executor=spawned, checkpoint=checkpoint))
    assert kept == found
    assert not sent


@pytest.mark.parametrize("kind", ["audit", "awkward"])
def test_an_error_in_a_group_is_that_of_its_block_and_comes_after_the_blocks_before_it(monkeypatch, spawned, kind):
    sent = at_least(monkeypatch, 8)
    parts = blocks(work.Raising(at=1_250, kind=kind), 3_000, seed=7, block=50, executor=spawned)
    seen = list(itertools.islice(parts, 25))
    with pytest.raises((AuditError, RuntimeError), match=r"run 1250|broken at 1250") as caught:
        next(parts)
    assert "block 25 (runs 1250 to 1299)" in caught.value.__notes__[0]
    assert seen == list(blocks(work.guesses, 3_000, seed=7, block=50))[:25]
    assert max(map(len, sent)) > 1


def test_a_process_that_is_killed_in_a_group_costs_no_block(monkeypatch, spawned, tmp_path):
    sent = at_least(monkeypatch, 8)
    dying = work.Dying(at=1_250, flag=tmp_path / "died")
    assert total(blocks(dying, 3_000, seed=1, block=50, executor=spawned)) == alone(runs=3_000)
    assert (tmp_path / "died").exists()
    assert max(map(len, sent)) > 1


def test_tasks_grow_until_they_take_half_a_second_and_shrink_at_the_end(monkeypatch):
    flight = Flight(task=int, given=processes(1), name=str, first=int, seed=0)
    assert flight.size(1_000) == 1  # nothing is known yet
    monkeypatch.setattr(time, "perf_counter", lambda: flight._begun + 10.0)
    for seconds, workers, left, wanted in [
        (0.05, 4, 1_000, 10), (0.05, 4, 24, 3), (0.05, 4, 5, 1), (0.05, 64, 1_000, 7),
        (60.0, 4, 1_000, 1), (0.0, 4, 10_000, 64),
    ]:  # fmt: skip
        flight._seconds, flight._spent = seconds, 10.0 * workers  # all were busy for ten seconds
        assert flight.size(left) == wanted


def test_blocks_grow_by_an_eighth_of_the_runs_before_them():
    found = [(first, runs) for first, runs, _ in blocks(work.numbers, 5_000, seed=0, block=200, grow=16)]
    position = 0
    for first, runs in found[:-1]:
        assert first == position
        assert runs == min(200, max(16, first // 8))
        position += runs
    assert position + found[-1][1] == 5_000
    assert len(found) == len({first for first, _ in found})


@pytest.mark.parametrize("runs", [1, 15, 16, 17, 300, 1_999])
def test_every_run_is_in_one_block(runs):
    found = [(first, number) for first, number, _ in blocks(work.numbers, runs, seed=0, block=64, grow=16)]
    covered = [run for first, number in found for run in range(first, first + number)]
    assert covered == list(range(runs))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_rule_stops_at_the_same_block_whatever_finishes_first(workers):
    seen = []

    def stop(found):
        seen.append(found.runs)
        return found.errors > 100

    found = gather(work.guesses, 100_000, stop=stop, seed=1, block=50, workers=workers)
    assert found.ended == "stopped"
    assert found.runs == found.total.runs == seen[-1]
    assert seen == list(range(50, found.runs + 1, 50))
    assert found.total == alone(runs=found.runs)


def test_all_blocks_without_a_rule():
    found = gather(work.guesses, 1_020, seed=1, block=50)
    assert (found.ended, found.runs) == ("done", 1_020)
    assert found.total == alone(runs=1_020)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_returns_what_was_finished(workers):
    def progress(done, of):
        if done == 300:
            raise KeyboardInterrupt

    found = gather(work.guesses, 100_000, seed=1, block=50, workers=workers, progress=progress)
    assert found.ended == "interrupted"
    assert found.total == alone(runs=250)
    assert found.runs == 250

    def at_once(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gather(work.guesses, 1_000, seed=1, block=50, workers=workers, progress=at_once)
    assert not [t for t in threading.enumerate() if t.name.startswith("audit")]


def test_few_blocks_are_in_flight_however_many_there_are(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        parts = blocks(work.Slow(seconds=0.001, traces=tmp_path), 10**9, seed=0, block=100, executor=pool)
        next(parts)
        parts.close()
    assert len(list(tmp_path.iterdir())) <= 40


@pytest.mark.parametrize("bad", [{"grow": -1}, {"block": 0}, {"workers": 0}])
def test_numbers_that_make_no_blocks_are_refused(bad):
    with pytest.raises(ParameterError):
        next(blocks(work.guesses, 10, seed=0, **bad))


@pytest.mark.slow
def test_a_dask_worker_that_is_killed_costs_time_and_not_the_audit(tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        assert total(blocks(work.guesses, 1_000, seed=1, block=50, executor=executor)) == alone()
        dying = work.Dying(at=300, flag=tmp_path / "died")
        assert total(blocks(dying, 1_000, seed=1, block=50, executor=executor)) == alone()
        assert (tmp_path / "died").exists()
        started = time.monotonic()
        parts = blocks(work.Slow(seconds=0.01), 1_000_000, seed=1, block=50, executor=executor)
        next(parts)
        parts.close()
        assert time.monotonic() - started < 60
