"""One run with many canaries: against a loop, at the limit, covered, and refused where it cannot be judged."""

from __future__ import annotations

import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import blackbox_work as work
from privcheck import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP, audit_one_run
from privcheck.errors import ParameterError
from privcheck.runtime.auditors import MechanismError
from privcheck_audits.blackbox.one_run import _Attempts, _Plan, _Run
from privcheck_audits.blackbox.verdict import ClaimedLoss


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def cells(scale):
    return lambda included, rng: included + rng.laplace(0, scale, included.size)


def audit(agent=work.cells, claim=None, **more):
    found = audit_one_run(agent, claim or PureDP(1), **{"canaries": 300, **more})
    return replace(found, seconds=0.0)


def test_wrong_guesses_are_those_of_a_loop():
    canaries = 37
    attempts = _Attempts.of(canaries, _Plan.of(ClaimedLoss.of(PureDP(1)), canaries, alpha=0.01))
    seen = []

    def agent(included, rng):
        scores = np.round(included + rng.normal(0, 1, canaries), 1)  # with ties
        seen.append((included.copy(), scores))
        included[:] = True  # the auditor's own coins are not touched
        return scores

    found = _Run(agent=agent, canaries=canaries, attempts=attempts, seed=0)(np.random.default_rng(1), 1, 0)
    included, scores = seen[0]
    order = sorted(range(canaries), key=lambda i: (-scores[i], i))
    for at in range(len(attempts.names)):
        first, last = int(attempts.inside[at]), int(attempts.outside[at])
        wrong = sum(not included[i] for i in order[:first]) + sum(included[i] for i in order[canaries - last :])
        assert found.wrong[at] == wrong
        assert first + last <= canaries
    assert sum(attempts.weights) == pytest.approx(1)


def test_a_thousand_canaries_tell_half_noise_and_approach_a_known_loss():
    found = audit(cells(0.5), canaries=1_000)
    assert found.verdict == "violation"
    assert 1.4 < found.lower < 2
    fair = audit(cells(1), canaries=20_000, confidence=1 - 1e-9)
    assert fair.verdict == "consistent"
    assert 0.75 < fair.lower < 1
    assert fair.lower < fair.reachable < 1
    assert "1 run with 20,000 canaries" in str(fair)
    assert audit(cells(0.5), ApproxDP(1, "0.00001"), canaries=1_000).verdict == "violation"


def noisy(mu):
    return lambda included, rng: mu * included + rng.normal(size=included.size)


@pytest.mark.parametrize(("claim", "mu"), [(GaussianDP("0.5"), 0.5), (ZCDP("0.125"), 0.5), (GaussianDP("0.9"), 0.9)])
def test_gaussian_claims_are_tested_on_their_curves(claim, mu):
    found = audit(noisy(mu), claim, canaries=2_000, confidence=0.95)
    assert found.verdict == "consistent"
    assert found.unit == ("rho" if isinstance(claim, ZCDP) else "mu")
    assert 0.5 * found.reachable < found.lower < min(1.6 * found.reachable, found.claimed)
    assert found.visible > found.claimed
    assert audit(noisy(4 * mu), claim, canaries=2_000).verdict == "violation"
    assert audit(noisy(0.0), claim, canaries=2_000).lower < 0.3 * found.lower
    one_sided = audit(lambda included, rng: np.where(rng.random(included.size) < 0.2, 9.0 * included, 0.0), claim,
                      canaries=2_000)  # fmt: skip
    assert one_sided.method.endswith(", in")


def test_what_gaussian_noise_of_an_approximate_claim_would_show_is_said():
    found = audit(noisy(0.9252), ApproxDP(4, "0.00001"), canaries=1_000, confidence=0.95)
    (said,) = found.notes
    of_epsilon, of_mu = (float(part.rstrip(";")) for part in re.findall(r"ε = ([0-9.]+)", said))
    assert "claimed as GaussianDP(0.925)" in said
    assert 1.1 < of_epsilon < of_mu < 4
    assert found.lower == pytest.approx(of_epsilon, rel=0.25)
    assert found.reachable > of_mu  # of what tells its bits with probability δ


def test_several_runs_say_more_wherever_they_are_made(tmp_path):
    one, four = audit(runs=1), audit(runs=4, directory=tmp_path)
    assert four.lower > one.lower
    assert four == audit(runs=4, workers=2)
    made = []

    def counted(included, rng):
        made.append(1)
        return work.cells(included, rng)

    counted.__qualname__ = "cells"
    assert audit(counted, runs=4, directory=tmp_path) == four
    assert not made  # all four were kept
    with pytest.raises(ParameterError, match="another audit"):
        audit(runs=4, directory=tmp_path, canaries=301)


@pytest.mark.parametrize(
    ("claim", "mu"), [(GaussianDP("0.5"), 1.0), (ZCDP("0.125"), 1.0), (ApproxDP(1, "0.00001"), 1.0)]
)
def test_an_audit_that_may_stop_looks_after_every_run(claim, mu, tmp_path):
    made = []

    def agent(included, rng):
        made.append(1)
        return mu * included + rng.normal(size=included.size)

    found = audit(agent, claim, runs=12, stop=True, directory=tmp_path)
    assert (found.verdict, found.ended) == ("violation", "stopped")
    assert found.runs == len(made) < 12
    assert found.lower > found.claimed
    assert found.method == "bets on guesses of canaries, looked at after every run"
    assert f"stopped after {found.runs} of 12 runs" in str(found)
    assert audit(agent, claim, runs=12, stop=True, workers=2) == found
    fair = audit(noisy(mu / 2), claim, runs=2, stop=True)  # (1, 10⁻⁵)-DP is met with μ = .268
    assert fair.ended in ("done", "stopped")


def test_what_may_stop_ends_with_the_bound_of_all_runs_at_half_of_alpha():
    fair = audit(runs=4, stop=True, confidence=0.9)
    assert (fair.ended, fair.runs, fair.verdict) == ("done", 4, "consistent")
    assert fair.lower == audit(runs=4, confidence=0.95).lower  # no bet shows more of so few runs


@pytest.mark.nightly
@pytest.mark.parametrize("claim", [PureDP(1), GaussianDP("0.5"), ApproxDP(1, "0.01")], ids=str)
def test_looking_after_every_run_accuses_what_keeps_its_claim_at_most_with_alpha(claim):
    # fails a correct audit with probability below 1e-9
    def agent(included, rng):
        if claim == GaussianDP("0.5"):
            return 0.5 * included + rng.normal(size=included.size)
        told = rng.random(included.size) < (0.01 if isinstance(claim, ApproxDP) else 0.0)
        answer = np.where(rng.random(included.size) < np.e / (1 + np.e), included, ~included)
        return np.where(told, np.where(included, 9.0, -9.0), answer)

    alpha, audits = 0.3, 200
    alarms = sum(
        audit(agent, claim, canaries=40, runs=15, stop=True, confidence=1 - alpha, seed=seed).verdict == "violation"
        for seed in range(audits)
    )
    assert alarms <= binom.isf(1e-9, audits, alpha)


def test_counts_at_other_numbers_of_guesses_are_not_taken_for_those_asked_for(tmp_path):
    agent, claim = noisy(0.5), GaussianDP("0.5")
    audit(agent, claim, confidence=0.9, directory=tmp_path)
    with pytest.raises(ParameterError, match="another audit"):  # the favourite number of guesses depends on α
        audit(agent, claim, confidence=1 - 1e-9, directory=tmp_path)


@pytest.mark.slow
def test_runs_in_other_processes_are_the_same_and_a_lambda_is_refused():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert audit(runs=3, executor=pool) == audit(runs=3)
        with pytest.raises(ParameterError, match=r"agent: .* cannot be sent to the workers"):
            audit(cells(1), executor=pool)


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [0, "0.01"])
def test_an_agent_exactly_at_its_claim_is_accused_at_most_with_alpha(delta):
    # fails a correct audit with probability below 1e-9
    def agent(included, rng):
        told = rng.random(included.size) < float(delta)
        answer = np.where(rng.random(included.size) < np.e / (1 + np.e), included, ~included)
        return np.where(told, np.where(included, 9.0, -9.0), answer)

    alpha, audits = 0.3, 300
    claim = ApproxDP(1, delta) if delta else PureDP(1)
    alarms = sum(
        audit(agent, claim, canaries=200, confidence=1 - alpha, seed=seed).verdict == "violation"
        for seed in range(audits)
    )
    assert alarms <= binom.isf(1e-9, audits, alpha)
    assert alarms > 0 or delta


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        (lambda included, _: included[:-1] * 1.0, r"shape \(299,\)"),
        (lambda *_: ["in"] * 300, "values of shape"),
        (lambda *_: np.full(300, np.nan), "NaN for canary 0"),
        (lambda *_: None, "object values"),
        (lambda *_: [[1], [2, 3]] * 150, "no array"),
        (lambda *_: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_what_is_not_a_number_a_canary_is_refused(agent, said):
    with pytest.raises(MechanismError, match=f"in run 0, seed 5, .*{said}") as caught:
        audit(agent, seed=5)
    assert (caught.value.trial, caught.value.finished) == (0, None)


def test_a_late_failure_and_an_interrupt_keep_the_runs_before():
    made = []

    def failing(included, rng):
        made.append(1)
        if len(made) == 4:
            raise OSError("disk full")
        return included + rng.laplace(0, 0.1, included.size)

    with pytest.raises(MechanismError, match=r"in run 3, .*disk full.*the 3 runs before it say: violation") as caught:
        audit(failing, runs=9)
    assert caught.value.finished.runs == 3

    def progress(done, of):
        if done == 3:
            raise KeyboardInterrupt

    found = audit(runs=9, progress=progress)
    assert (found.runs, found.ended) == (2, "interrupted")
    with pytest.raises(KeyboardInterrupt):
        audit(runs=2, progress=lambda _, of: progress(3, of))


@pytest.mark.parametrize("wrong", [{"canaries": 9}, {"runs": 0}, {"confidence": 0.0}, {"seed": -1}, {"workers": 0}])
def test_arguments_out_of_range_are_refused_before_anything_is_trained(wrong):
    def never(included, rng):
        raise AssertionError

    with pytest.raises(ParameterError, match=next(iter(wrong))):
        audit(never, **wrong)
    with pytest.raises(ParameterError, match="expected one of PureDP, ApproxDP, ZCDP or GaussianDP"):
        audit(never, RenyiDP(2, 1))
