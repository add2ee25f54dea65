"""Every method of the releases view by simulation: correct mechanisms at α = .05, broken ones at the promised speed.

The alarms of R audits of a correct mechanism are at most Bin(R, α): each such test fails with probability below 1e-9.
Medians are over fixed seeds; the limits are 1.3 times what the seeds give, or what is promised.
"""

from __future__ import annotations

import dataclasses
import json
import statistics

import pytest
from click.testing import CliRunner
from scipy.stats import binom

import mutants
import small_declarations as small
from privcheck.cli.main import main
from privcheck.runtime.registry import Algorithm
from privcheck_audits.engine.pools import processes
from privcheck_audits.plan import runner
from privcheck_audits.releases.view import releases

ALPHA, AUDITS = 0.05, 200
EPSILON_ONE = {"rho": "36/1000"}  # μ = .268: ε = 1 at δ = 10⁻⁵ on the Gaussian curve
LAPLACE_RUNS, GAUSSIAN_RUNS = 200, 1_500  # promised, in all, until half of the noise is certain
pytestmark = pytest.mark.nightly


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """Half of a short audit's time, on which no bound depends."""
    monkeypatch.setattr(runner, "add_pictures", lambda result, *_, **__: result)


def limit(audits: int) -> int:
    return int(binom.isf(1e-9, audits, ALPHA))


@pytest.mark.parametrize(
    ("method", "law", "sets", "trials", "more"),
    [
        ("coin-flip", "laplace", {}, 2_000, {}),
        ("coin-flip", "laplace", {}, 2_000, {"delta": 1e-3}),
        ("curve", "gaussian", {}, 2_000, {}),
        ("clopper-pearson", "laplace", {}, 2_000, {}),
        ("divergence", "gaussian", {}, 4_000, {}),
        ("divergence", "mixed", {"rho": "1"}, 4_000, {}),
        ("sequential", "laplace", {}, 1_000, {}),
        ("sequential", "gaussian", {}, 1_000, {}),
        ("sequential", "laplace", {}, 1_000, {"delta": 1e-3}),
        ("one-run", "laplace", {"S": 50}, 1_000, {}),
        ("one-run", "laplace", {"S": 50}, 1_000, {"delta": 1e-3}),
        ("group", "laplace", {"epsilon": "1/10"}, 1_000, {}),
        ("group", "gaussian", {"rho": "1/200"}, 1_000, {}),
        ("group", "laplace", {"epsilon": "1/10"}, 1_000, {"delta": 1e-4}),
        ("auto", "mixed", {"rho": "1/2"}, 2_000, {}),
    ],
)
def test_a_bound_is_above_the_truth_at_most_with_alpha(method, law, sets, trials, more):
    request = small.request(getattr(small, law)(), method=method, sets=sets, trials=trials, **more)
    found = [releases(dataclasses.replace(request, seed=seed)) for seed in range(AUDITS)]
    assert sum(result.verdict == "violation" for result in found) <= limit(AUDITS)
    assert sum((result.epsilon_lower or 0.0) > result.epsilon_upper for result in found) <= limit(AUDITS)
    assert all(r.confidence == 0.95 for r in found)


@pytest.mark.parametrize(
    ("method", "law", "sets", "trials"),
    [
        ("coin-flip", "laplace", {}, 300),
        ("curve", "gaussian", EPSILON_ONE, 2_000),
        ("clopper-pearson", "laplace", {}, 1_000),
        ("divergence", "gaussian", {}, 2_000),
        ("one-run", "laplace", {"S": 50}, 300),
        ("group", "laplace", {"epsilon": "1/10"}, 300),
        ("group", "gaussian", {"rho": "1/200"}, 1_000),
        ("auto", "mixed", {"rho": "1/2"}, 2_000),
    ],
)
def test_half_of_the_noise_is_found_by_most_audits(method, law, sets, trials):
    broken = mutants.rescaled_noise(getattr(small, law)(), 0.5)
    request = small.request(broken, method=method, sets=sets, trials=trials)
    found = [releases(dataclasses.replace(request, seed=seed)).verdict for seed in range(40)]
    assert found.count("violation") >= 32


def test_every_method_runs_in_processes():
    with processes(2)() as pool:
        for method, law, sets in (
            ("curve", "gaussian", {}),
            ("clopper-pearson", "laplace", {}),
            ("divergence", "gaussian", {}),
            ("sequential", "laplace", {}),
            ("one-run", "laplace", {"S": 50}),
            ("group", "laplace", {"epsilon": "1/10"}),
            ("auto", "mixed", {}),
        ):
            request = small.request(getattr(small, law)(), method=method, sets=sets, trials=40_000)
            there, here = releases(dataclasses.replace(request, executor=pool)), releases(request)
            assert there.epsilon_lower == here.epsilon_lower
            assert {**there.evidence, "trials_per_second": 0} == {**here.evidence, "trials_per_second": 0}


@pytest.mark.parametrize("confidence", [0.95, 0.99])
@pytest.mark.parametrize(
    ("law", "sets", "promised"), [("laplace", {}, LAPLACE_RUNS), ("gaussian", EPSILON_ONE, GAUSSIAN_RUNS)]
)
def test_bets_find_half_of_the_noise_in_the_promised_number_of_runs(law, sets, promised, confidence):
    broken = mutants.rescaled_noise(getattr(small, law)(), 0.5)
    request = small.request(broken, method="sequential", sets=sets, trials=100_000, confidence=confidence)
    found = [releases(dataclasses.replace(request, seed=seed)) for seed in range(100)]
    assert all(result.verdict == "violation" for result in found)
    assert statistics.median(result.evidence["runs"] for result in found) <= promised


@pytest.mark.parametrize(
    ("law", "sets", "promised"),
    [("laplace", (), LAPLACE_RUNS), ("gaussian", ("--set", f"rho={EPSILON_ONE['rho']}"), GAUSSIAN_RUNS)],
)
def test_so_does_the_command(law, sets, promised, register):
    broken = mutants.rescaled_noise(getattr(small, law)(), 0.5)
    algorithm = Algorithm(name="small", title="half of the noise", source="a test", declare=lambda _: broken)
    register("algorithms", "small", algorithm)
    runs = []
    for seed in range(25):
        arguments = ["audit", "small", "--method", "sequential", "--seed", str(seed), "--json", *sets]
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 1, result.output
        found = json.loads(result.stdout)
        assert found["verdict"] == "violation"
        assert found["evidence"]["ended"] == "stopped"
        assert found["trials"] == -(-found["evidence"]["runs"] // 2)
        runs.append(found["evidence"]["runs"])
    assert statistics.median(runs) <= promised
