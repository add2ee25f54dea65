"""Blocks of trials: seeds, order, interrupts, ranks and numbers that are not numbers."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcheck.errors import AuditError, ParameterError
from privcheck_audits.bounds import guess_plan
from privcheck_audits.engine.blocks import blocks, tally, total
from privcheck_audits.engine.scores import Scored


def draw(rng: np.random.Generator, runs: int, first: int) -> tuple[int, int, tuple[float, ...]]:
    return first, runs, tuple(rng.random(3))


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_blocks_come_in_order_with_the_same_numbers_for_any_number_of_workers(workers):
    found = list(blocks(draw, 1050, seed=3, block=100, workers=workers))
    assert found == list(blocks(draw, 1050, seed=3, block=100))
    assert [(first, runs) for first, runs, _ in found] == [(100 * i, 100 if i < 10 else 50) for i in range(11)]
    assert len({numbers for _, _, numbers in found}) == 11


def test_streams_and_seeds_draw_different_numbers():
    def numbers(**kwargs):
        return [n for _, _, n in blocks(draw, 10, block=5, **kwargs)]

    drawn = numbers(seed=0) + numbers(seed=1) + numbers(seed=0, stream=1)
    assert len(set(drawn)) == len(drawn)


def test_an_audit_does_not_draw_what_a_noise_source_draws():
    _, _, ours = next(blocks(draw, 1, seed=0))
    for release in range(3):
        stream = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(release, 0)))
        assert tuple(stream.random(3)) != ours


def test_progress_counts_runs():
    seen = []
    list(blocks(draw, 25, seed=0, block=10, progress=lambda done, of: seen.append((done, of))))
    assert seen == [(10, 25), (20, 25), (25, 25)]


def test_an_error_in_a_block_arrives_and_leaves_no_thread():
    def fail(rng, runs, first):
        if first >= 30:
            raise ZeroDivisionError(first)
        return first

    with pytest.raises(ZeroDivisionError, match="30"):
        list(blocks(fail, 10_000, seed=0, block=10, workers=2))
    assert not [t for t in threading.enumerate() if t.name.startswith("audit")]


def test_an_interrupt_stops_the_work_and_leaves_no_thread():
    begun = []

    def work(rng, runs, first):
        begun.append(first)

    def interrupt(done, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(blocks(work, 100_000, seed=0, block=10, workers=2, progress=interrupt))
    assert len(begun) < 20
    assert not [t for t in threading.enumerate() if t.name.startswith("audit")]


@pytest.mark.parametrize("bad", [{"runs": 0}, {"runs": 5, "workers": 0}, {"runs": 5, "block": 0}])
def test_nothing_runs_on_numbers_that_are_not_positive(bad):
    with pytest.raises(ParameterError):
        next(blocks(draw, bad.pop("runs"), seed=0, **bad))


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=80))
def test_the_tally_agrees_with_a_slow_twin(runs):
    # few distinct scores: ties everywhere, broken by position
    score, secret = np.array([float(s) for s, _ in runs]), np.array([b for _, b in runs])
    plan = guess_plan(0.3)
    found = tally(Scored(score=score, secret=secret), plan, first=0, seed=0)
    order = sorted(range(len(runs)), key=lambda i: (-abs(runs[i][0]), i))
    wrong = [(runs[i][0] > 0) != runs[i][1] for i in order]
    assert found.errors == sum(wrong)
    assert found.ranked_guesses == plan.ranks(len(runs))
    assert found.ranked_errors == tuple(sum(wrong[:rank]) for rank in plan.ranks(len(runs)))
    unranked = tally(Scored(score=score, secret=secret), None, first=0, seed=0)
    assert (unranked.errors, unranked.ranked_errors) == (found.errors, ())


def test_tallies_add_up():
    def part(rng, runs, first):
        return tally(
            Scored(score=rng.standard_normal(runs), secret=rng.random(runs) < 0.5), guess_plan(), first=first, seed=0
        )

    parts = list(blocks(part, 250, seed=0, block=100))
    together = total(iter(parts))
    assert together.runs == 250
    assert together.ranked_guesses == tuple(map(sum, zip(*(p.ranked_guesses for p in parts), strict=True)))
    assert together.errors == sum(p.errors for p in parts)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_refused_by_number_and_seed(bad):
    score = np.zeros(10)
    score[7] = bad
    with pytest.raises(AuditError, match=r"run 107 .* seed 42") as caught:
        tally(Scored(score=score, secret=np.zeros(10, dtype=bool)), None, first=100, seed=42)
    assert (caught.value.trial, caught.value.seed) == (107, 42)


def test_a_worker_starts_without_what_only_bounds_need():
    """SciPy's distributions take half of the time in which a process starts; workers draw and count."""
    rooms = ("blackbox.pairs", "policy.view", "releases.attacks", "shuffled.view", "lockstep.agent_views")
    code = f"import sys, {', '.join(f'privcheck_audits.{room}' for room in rooms)}; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
