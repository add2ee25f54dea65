"""Checkpoints: finished blocks are kept, a killed audit resumes bit for bit, and two audits are never mixed.

Nothing here depends on chance: results are compared for equality.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from privcheck.errors import ParameterError
from privcheck_audits.bounds import Moments
from privcheck_audits.engine import checkpoints
from privcheck_audits.engine.blocks import Tally, blocks, gather, tally, total
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.scores import Scored, draw_hidden_bits

PLAN = {"declaration": "a", "H": 2, "confidence": 0.99}
AUDIT = """
import sys, time
import numpy as np
from pathlib import Path
from privcheck_audits.engine.checkpoints import Checkpoint
from privcheck_audits.engine.blocks import Tally, blocks, total

def work(rng, runs, first):
    time.sleep(float(sys.argv[2]))
    return Tally(runs=runs, errors=int((rng.random(runs) < 0.3).sum()), ranked_errors=(), ranked_guesses=())

kept = Checkpoint(directory=Path(sys.argv[1]), plan={}, kinds=(Tally,))
found = total(blocks(work, 4_000, seed=5, block=100, workers=2, checkpoint=kept))
print(found.errors)
"""


@dataclass(frozen=True)
class Counting:
    """Counts how often it is called."""

    calls: list

    def __call__(self, rng: np.random.Generator, runs: int, first: int) -> Tally:
        self.calls.append(first)
        wrong = rng.random(runs) < 0.3
        return Tally(runs=runs, errors=int(wrong.sum()), ranked_errors=(1, 2), ranked_guesses=(3, 4))


def checkpoint(directory: Path, **plan) -> Checkpoint:
    return Checkpoint(directory=directory, plan={**PLAN, **plan}, kinds=(Tally, Moments))


def counted(directory, *, calls=None, plan=None, **how):
    work = Counting([] if calls is None else calls)
    how = {"seed": 1, "block": 50, **how}
    runs = how.pop("runs", 1_000)
    return total(blocks(work, runs, checkpoint=checkpoint(directory, **(plan or {})), **how))


@pytest.mark.parametrize("workers", [1, 2])
def test_finished_blocks_are_not_run_again(tmp_path, workers):
    first = counted(tmp_path, workers=workers)
    again = []
    assert counted(tmp_path, calls=again, workers=3 - workers) == first
    assert again == []
    assert first == total(blocks(Counting([]), 1_000, seed=1, block=50))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_audit_resumes_with_what_it_had(tmp_path, workers):
    def progress(done, of):
        if done >= 400:
            raise KeyboardInterrupt

    begun, rest = [], []
    with pytest.raises(KeyboardInterrupt):
        counted(tmp_path, calls=begun, workers=workers, progress=progress)
    assert counted(tmp_path, calls=rest) == total(blocks(Counting([]), 1_000, seed=1, block=50))
    assert sorted(begun + rest) == list(range(0, 1_000, 50))  # each block once: nothing finished was lost


def test_a_block_that_raises_leaves_the_others_on_disk(tmp_path):
    def breaks(rng, runs, first):
        if first == 500:
            raise ZeroDivisionError("no")
        return Counting([])(rng, runs, first)

    with pytest.raises(ZeroDivisionError):
        total(blocks(breaks, 1_000, seed=1, block=50, workers=2, checkpoint=checkpoint(tmp_path)))
    rest = []
    counted(tmp_path, calls=rest)
    assert 500 in rest
    assert not {*range(0, 500, 50)} & {*rest}


@pytest.mark.slow
def test_a_killed_audit_resumes_bit_for_bit(tmp_path):
    def start(directory, pause):
        command = [sys.executable, "-c", AUDIT, str(directory), str(pause)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})

    finished = start(tmp_path / "whole", 0)
    running = start(tmp_path / "killed", 0.05)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "killed").rglob("0*.npz"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    had = {path.name: path.read_bytes() for path in (tmp_path / "killed").rglob("0*.npz")}
    assert 5 <= len(had) < 40
    resumed = start(tmp_path / "killed", 0)
    assert resumed.communicate()[0] == finished.communicate()[0] != ""
    now = {path.name: path.read_bytes() for path in (tmp_path / "killed").rglob("0*.npz")}
    assert had.items() <= now.items()
    assert now == {path.name: path.read_bytes() for path in (tmp_path / "whole").rglob("0*.npz")}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 2}, "seed: there 1, here 2"),
        ({"runs": 2_000}, "runs: there 1000, here 2000"),
        ({"block": 25}, "block: there 50, here 25"),
        ({"grow": 10}, "grow: there 0, here 10"),
        ({"plan": {"H": 3}}, "H: there 2, here 3"),
        ({"plan": {"new": 1}}, "new: there None, here 1"),
    ],
)
def test_blocks_of_another_audit_are_refused_before_anything_runs(tmp_path, change, named):
    counted(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    calls = []
    with pytest.raises(ParameterError, match=named) as caught:
        counted(tmp_path, calls=calls, **change)
    assert "another directory" in str(caught.value)
    assert calls == []
    assert sorted(tmp_path.rglob("*")) == before


def test_blocks_of_another_version_are_refused(tmp_path, monkeypatch):
    counted(tmp_path)
    monkeypatch.setattr(checkpoints, "version", lambda _: "0.0.1")
    with pytest.raises(ParameterError, match=r"privcheck: there .*here '0\.0\.1'"):
        counted(tmp_path)


def test_somebody_else_s_directory_is_refused(tmp_path):
    (tmp_path / "stream-0").mkdir()
    (tmp_path / "stream-0" / "thesis.txt").write_text("mine")
    with pytest.raises(ParameterError, match=r"holds files but no plan\.json"):
        counted(tmp_path)
    (tmp_path / "stream-0" / "plan.json").write_text("{")
    with pytest.raises(ParameterError, match="not the plan of an audit"):
        counted(tmp_path)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("damage", ["cut short", "edited", "removed", "empty"])
def test_a_damaged_block_is_drawn_again(tmp_path, workers, damage):
    whole = counted(tmp_path)
    path = sorted(tmp_path.rglob("0*.npz"))[7]
    if damage == "removed":
        path.unlink()
    else:
        before = path.read_bytes()
        edited = before.replace(b'"errors": 1', b'"errors": 9')
        path.write_bytes({"cut short": before[:-9], "edited": edited, "empty": b""}[damage])
        assert path.read_bytes() != before
    again = []
    assert counted(tmp_path, calls=again, workers=workers) == whole
    assert again == [350]


def test_streams_are_kept_apart(tmp_path):
    one, other = counted(tmp_path, stream=0), counted(tmp_path, stream=1)
    assert one != other
    assert (counted(tmp_path, stream=0), counted(tmp_path, stream=1)) == (one, other)


def test_a_stopped_audit_stops_at_the_same_place_when_it_is_read_back(tmp_path):
    def gathered(**how):
        return gather(
            Counting([]),
            10_000,
            stop=lambda t: t.errors > 100,
            seed=1,
            block=50,
            checkpoint=checkpoint(tmp_path),
            **how,
        )

    assert gathered(workers=2) == gathered() == gathered(workers=3)


def test_an_audit_with_scores_survives_the_disk(tmp_path):
    def work(rng, runs, first):
        from privcheck_audits.bounds import guess_plan

        return tally(
            Scored(score=rng.standard_normal(runs), secret=draw_hidden_bits(rng, runs)),
            guess_plan(),
            first=first,
            seed=1,
        )

    def found(**how):
        return total(blocks(work, 1_000, seed=1, block=100, **how))

    assert found(checkpoint=checkpoint(tmp_path)) == found(checkpoint=checkpoint(tmp_path)) == found()


@pytest.mark.parametrize(
    "value",
    [
        None, True, -(10**30), 0.1, float("inf"), -0.0, "α", (1, (2.5, "x")), [1, [2]], {"a": (1.0,)}, np.float64(0.1),
        np.int32(7), Moments(pairs=3, sums=(0.1, 1e-300), squares=(2.0, 3.0)),
    ],
    ids=repr,
)  # fmt: skip
def test_results_come_back_as_they_were(tmp_path, value):
    kept = checkpoint(tmp_path).stream(0, {})
    kept.store(0, value)
    (found,) = kept.load(0)
    assert found == value
    assert repr(found) == repr(value)
    assert type(found) is type(value)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint8", "bool", "float32"])
def test_arrays_come_back_as_they_were(tmp_path, dtype):
    kept = checkpoint(tmp_path).stream(0, {})
    value = (np.arange(12).reshape(3, 4).T * 0.37).astype(dtype)
    kept.store(0, value)
    (found,) = kept.load(0)
    np.testing.assert_array_equal(found, value, strict=True)
    found[0, 0] = 1  # and can be written to


def test_what_cannot_be_stored_exactly_is_refused(tmp_path):
    kept = Checkpoint(directory=tmp_path, plan={}).stream(0, {})
    for value in (object(), {1: 2}, {1, 2}, replace(Moments(pairs=1, sums=(), squares=())), np.array(["a"])):
        with pytest.raises(ParameterError, match="a checkpoint cannot hold"):
            kept.store(0, value)
    assert not list(tmp_path.rglob("0*.npz"))


def test_files_are_renamed_into_place(tmp_path):
    counted(tmp_path)
    assert not list(tmp_path.rglob("*.partial"))
    assert json.loads((tmp_path / "stream-0" / "plan.json").read_text())["declaration"] == "a"
