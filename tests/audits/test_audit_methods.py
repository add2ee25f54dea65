"""The bounds as methods of an audit: which fit, what they say of a true claim and of a false one, where they run.

Random parts are seeded. At confidence 1 − 1e-9 a correct mechanism is accused with probability 1e-9 a test; the broken
ones are at least 7 standard deviations beyond the threshold.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import ks_2samp

import mutants
import small_declarations as small
from privcheck.cli.main import main
from privcheck.commands.settings import resolve_setting
from privcheck.data.trajectories import concatenate
from privcheck.declare.relations import ReplaceOne
from privcheck.errors import ParameterError
from privcheck.pricing import Priced
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest, AuditResult
from privcheck_audits.bounds import pure_epsilon_at_least
from privcheck_audits.engine.scores import likelihood_trials
from privcheck_audits.plan.requests import METHODS
from privcheck_audits.releases.canaries import worst_canary
from privcheck_audits.releases.groups import choose_canaries
from privcheck_audits.releases.view import releases

SURE = 1 - 1e-9
TIMES = ("trials_per_second", "seconds")
FITTING = {  # the method, on what, and the share of the truth that it certifies at N = 20 000, less 10 points
    "auto": ("laplace", {}, 0.82),
    "coin-flip": ("laplace", {}, 0.82),
    "curve": ("gaussian", {}, 0.7),
    "clopper-pearson": ("laplace", {}, 0.76),
    "divergence": ("gaussian", {}, 0.4),
    "sequential": ("laplace", {}, 0.8),
    "one-run": ("laplace", {"S": 20}, 0.81),
    "group": ("laplace", {"epsilon": "1/10"}, 0.82),
}


def asked(method: str, **more) -> AuditRequest:
    law, sets, _ = FITTING[method]
    declaration = more.pop("declaration", None) or getattr(small, law)()
    given = {"method": method, "sets": sets, "confidence": SURE, "trials": 20_000, **more}
    return small.request(declaration, **given)


def timeless(result: AuditResult) -> dict:
    evidence = {key: value for key, value in result.evidence.items() if key not in TIMES}
    return {**dataclasses.asdict(result), "evidence": evidence, "seconds": 0}


def share(method: str, result: AuditResult) -> float:
    if method == "divergence":
        return result.evidence["rho_lower"] / result.evidence["rho_claimed"]
    return result.epsilon_lower / result.epsilon_upper


def test_every_method_is_tested_here():
    assert set(FITTING) == set(METHODS)


@pytest.mark.parametrize("method", FITTING)
def test_a_correct_mechanism_is_certified_and_not_accused(method):
    for seed in (1, 2, 3):
        result = releases(asked(method, seed=seed))
        assert result.verdict == "consistent"
        assert result.evidence["refuted"] == "nothing"
        assert FITTING[method][2] < share(method, result) <= 1


@pytest.mark.parametrize("method", FITTING)
def test_half_of_the_noise_is_found(method):
    honest = asked(method).declaration
    result = releases(asked(method, declaration=mutants.rescaled_noise(honest, 0.5)))
    assert result.verdict == "violation"
    assert "declaration" in result.evidence["refuted"]
    assert result.confidence == SURE
    loss = 4 if method == "divergence" else 2
    assert share(method, result) < loss if method != "curve" else result.evidence["mu_lower"] <= 1.0


@pytest.mark.parametrize("method", ["curve", "coin-flip", "clopper-pearson", "divergence", "sequential", "group"])
def test_half_of_the_std_is_found(method):
    sets = {"rho": "1/200"} if method == "group" else {"rho": "1/2"}
    declaration = mutants.rescaled_noise(small.gaussian(), 0.5)
    result = releases(small.request(declaration, method=method, sets=sets, trials=200_000, confidence=SURE))
    true_rho = 4 * float(declaration.values(sets)["rho"])
    if method in {"curve", "sequential", "group"}:  # the curve: from N = 100 to a few thousand
        assert result.verdict == "violation"
        assert result.evidence["mu_lower"] <= math.sqrt(2 * true_rho)
    if method == "divergence":
        assert result.verdict == "violation"
        assert 0.9 * true_rho < result.evidence["rho_lower"] <= true_rho
        assert result.epsilon_lower is None  # a divergence implies nothing at δ > 0


@pytest.mark.parametrize(
    ("law", "method", "more", "why"),
    [
        ("laplace", "curve", {}, "is for Gaussian releases only, but here some noise is laplace"),
        ("gaussian", "curve", {"delta": 0.0}, "at δ = 0 a Gaussian release has no finite ε"),
        ("laplace", "divergence", {}, "bounds ρ, but the claim is"),
        ("gaussian", "sequential", {"delta": 0.0}, "at δ = 0 there is no claimed ε"),
        ("laplace", "group", {}, "is for small ε, below 1, and here it is 1"),
    ],
)
def test_a_method_that_does_not_fit_is_refused_with_those_that_do(law, method, more, why):
    with pytest.raises(ParameterError, match=why) as refused:
        releases(small.request(getattr(small, law)(), method=method, **more))
    fit = str(refused.value).rpartition("these fit: ")[2].split(", ")
    assert "auto" in fit
    assert method not in fit
    for other in fit:
        releases(small.request(getattr(small, law)(), method=other, trials=50, **more))


@pytest.mark.parametrize(
    ("name", "view", "method", "why"),
    [
        ("dp-apvi", "lockstep", "curve", "expects one of auto for this audit's view lockstep"),
        ("dp-apvi", "noise", "coin-flip", "expects one of auto"),
        ("dp-apvi", "policy", "divergence", "expects one of auto, coin-flip, sequential"),
        ("private-ucb-vi-central", "policy", "one-run", "expects one of auto, coin-flip, sequential"),
        ("private-ucb-vi-central", "releases", "one-run", "releases that are made once"),
        ("private-ucb-vi-central", "releases", "group", "releases are made once"),
        ("dp-vapvi-unsplit", "releases", "one-run", "not tables of states and actions"),
        ("published-ucb-vi-local", "releases", "sequential", "expects one of auto, coin-flip"),
    ],
)
def test_plans_refuse_what_they_have_no_test_for(name, view, method, why):
    setting = resolve_setting(name, {})
    request = AuditRequest(
        setting=setting.setting, view=view, delta=1e-5,
        trials=100, confidence=0.9, method=method,
    )  # fmt: skip
    with pytest.raises(ParameterError, match=why):
        registry.audit_plan(name).audit(request)


@pytest.mark.parametrize("method", FITTING)
def test_it_does_not_matter_where_and_in_how_many_sessions_blocks_run(method, tmp_path):
    request = asked(method, trials=30_000)
    whole = timeless(releases(request))
    assert timeless(releases(dataclasses.replace(request, workers=3))) == whole
    with ThreadPoolExecutor(2) as pool:
        assert timeless(releases(dataclasses.replace(request, executor=pool))) == whole

    def interrupt(done, of):
        if done > of / 3:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        releases(dataclasses.replace(request, directory=tmp_path, progress=interrupt))
    kept = list(tmp_path.rglob("0*.npz"))
    assert kept
    times = {path: path.stat().st_mtime_ns for path in kept}
    resumed = releases(dataclasses.replace(request, directory=tmp_path, workers=2))
    assert timeless(resumed) == whole
    assert all(path.stat().st_mtime_ns == then for path, then in times.items())  # nothing was drawn again
    other = "coin-flip" if method != "coin-flip" else "sequential"
    if FITTING[method][0] == "laplace":
        with pytest.raises(ParameterError, match="method: there"):
            releases(dataclasses.replace(request, directory=tmp_path, method=other))


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--method", "group", "--set", "epsilon=1/10"], 0, "15 users moved at once"),
        (["--method", "sequential", "--set", "H=1"], 0, "ended after 4,000 runs in all, nothing was refuted"),
        (["--method", "bogus"], 2, "--method expects one of auto, coin-flip, curve, clopper-pearson, divergence"),
        (["--method", "curve"], 2, "these fit: auto, coin-flip, clopper-pearson, sequential, one-run"),
        (["--method", "curve", "--view", "noise"], 2, "expects one of auto for this audit's view noise"),
    ],
)
def test_the_command_takes_a_method(options, code, said):
    found = CliRunner().invoke(main, ["audit", "dp-apvi-laplace", "--trials", "2000", "--json", *options])
    assert found.exit_code == code
    assert said in json.loads(found.stdout)["method" if code == 0 else "message"]


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        (
            "dp-apvi",
            ["--method", "divergence"],
            r"are ρ-zCDP for no ρ below 0\.[78]\d+; the claim allows ρ = 1; the accountant",
        ),
        (
            "private-ucb-vi-central",
            ["--method", "sequential", "--trials", "1000000"],
            r"more than the claim allows .* The audit stopped as soon as this was decided, after [\d\s]+ of at most",
        ),
    ],
)
def test_the_verdict_says_what_the_method_found(name, options, said):
    found = CliRunner().invoke(main, ["audit", name, "--trials", "20000", *options])
    assert re.search(said, " ".join(found.stdout.split()))


def test_a_sequential_audit_says_after_how_many_runs_it_stopped():
    broken = mutants.rescaled_noise(small.laplace(), 0.5)
    result = releases(small.request(broken, method="sequential", trials=10**9, confidence=0.99))
    assert result.evidence["ended"] == "stopped"
    assert result.evidence["runs"] < 2_000
    assert result.evidence["most_runs"] == 2 * 10**9
    assert result.trials == -(-result.evidence["runs"] // 2)
    assert f"ended after {result.evidence['runs']:,} runs in all, the claim was refuted" in result.method
    assert result.evidence["log_wealth"] >= math.log(100)
    assert result.epsilon_lower > 1


def test_an_interrupted_sequential_audit_is_valid_as_it_is():
    def interrupt(done, of):
        if done > 1_000:
            raise KeyboardInterrupt

    result = releases(asked("sequential", progress=interrupt))
    assert result.evidence["ended"] == "interrupted"
    assert result.verdict == "consistent"
    assert 0 < result.epsilon_lower <= 1


@pytest.mark.parametrize("rho", ["1/2", "1"])
def test_auto_judges_zcdp_off_the_curve_in_its_own_unit_too(rho):
    correct = small.request(small.mixed(), sets={"rho": rho}, trials=4_000, confidence=SURE)
    assert releases(correct).verdict == "consistent"
    half = dataclasses.replace(correct.setting, declaration=mutants.rescaled_noise(small.mixed(), 0.5))
    broken = dataclasses.replace(correct, setting=half, confidence=0.99)
    alone = releases(dataclasses.replace(broken, method="coin-flip"))
    both = releases(broken)
    assert alone.verdict == "consistent"  # needs 3·10⁴ runs, at ρ = 1 more than 10⁵
    assert both.verdict == "violation"  # needs 10³
    assert both.evidence["rho_lower"] > 2 * both.evidence["rho_claimed"]
    assert 0.9 * alone.epsilon_lower < both.epsilon_lower < alone.epsilon_lower  # half of α costs little
    assert "half of α each" in both.method
    assert "rho_upper" not in releases(small.request(small.gaussian())).evidence  # on the curve nothing would be added


# [lemma pure-divergence]
def test_a_divergence_refutes_pure_dp_up_to_randomised_response():
    for epsilon in (0.01, 0.3, 1.0, 4.0, 12.0):
        p = 1 / (1 + math.exp(-epsilon))  # told truly; KL of the two arms
        divergence = p * math.log(p / (1 - p)) + (1 - p) * math.log((1 - p) / p)
        found = pure_epsilon_at_least(divergence)
        assert found <= epsilon
        assert found == pytest.approx(epsilon, rel=1e-8)
    assert pure_epsilon_at_least(0.0) == pure_epsilon_at_least(-1.0) == 0.0
    result = releases(small.request(small.gaussian(), method="divergence", delta=0.0, trials=50_000))
    assert result.epsilon_lower == pure_epsilon_at_least(result.evidence["rho_lower"]) > 0


def test_the_canaries_of_one_run_are_scored_as_one_alone_would_be():
    declaration = small.laplace(ReplaceOne())
    values = declaration.values({"S": 40, "H": 2})
    many, one = choose_canaries(declaration, values)
    assert many.canaries == 40
    worst = worst_canary(Priced(declaration, values))
    assert one.pure == pytest.approx(worst.pure)
    rng = np.random.default_rng(5)
    runs = [many(rng) for _ in range(60)]
    scores = np.concatenate([run.score for run in runs])
    secret = np.concatenate([run.secret for run in runs])
    alone = likelihood_trials(one.groups, rng, 2_400)
    for arm in (True, False):  # two-sided, at 1e-9 each
        assert ks_2samp(scores[secret == arm], alone.score[alone.secret == arm]).pvalue > 1e-9
    # no canary's score knows another's bit
    scores, bits = np.stack([run.score for run in runs]), np.stack([run.secret for run in runs])
    assert abs(np.corrcoef(scores[:, 0], bits[:, 1])[0, 1]) < 6 / math.sqrt(60)


def test_a_group_moves_the_statistic_as_so_many_users_together_do():
    declaration = small.laplace(ReplaceOne())
    values = declaration.values({"epsilon": "1/10"})
    pair = worst_canary(Priced(declaration, values)).pair
    many = tuple(concatenate([user] * 15) for user in pair)
    release = declaration.releases[0]
    exact = release.statistic.compute(many[0]) - release.statistic.compute(many[1])
    one = release.statistic.compute(pair[0]) - release.statistic.compute(pair[1])
    assert np.array_equal(exact, 15 * one)
    result = releases(small.request(declaration, method="group", sets={"epsilon": "1/10"}))
    assert result.evidence["users_moved"] in (8, 15)  # replacement: each user moves two cells; ε of one is 2/10
    assert result.witness.startswith(f"{result.evidence['users_moved']} users at once")


@pytest.mark.slow
def test_a_group_pays_for_the_delta_of_all_its_users():
    sets = {"epsilon": "1/10"}
    free = releases(small.request(small.laplace(), method="group", sets=sets, trials=50_000))
    paid = releases(small.request(small.laplace(), method="group", sets=sets, trials=50_000, delta=1e-4))
    assert 0 < paid.epsilon_lower < free.epsilon_lower <= 0.1
    assert paid.evidence["revealed"] > 0
