"""`privcheck run`, `check` and `publish` of agents that train a policy."""

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import budget_stores
from privcheck import api
from privcheck.cli import main
from privcheck.errors import FileFormatError, ParameterError, PrivcheckError
from privcheck.reports.policies import load_learned, load_policy
from privcheck.reports.values import Ran, from_json
from privcheck.runtime import read_ledger
from privcheck_algorithms.trained import (
    CART_POLE,
    PRIVATE_POLICY_GRADIENT,
    LinearPolicy,
    PolicyGradient,
    SimulatedUsers,
    load_trained,
    no_noise,
    train,
)
from privcheck_algorithms.trained import running as module

SMALL = {"K": 80, "B": 20, "policy": "linear"}
NAMES = ["private-policy-gradient", "private-evolution-strategies"]


def run(name=NAMES[0], *, env="cart-pole", **how):
    return api.run(name, env=env, parameters={**SMALL, **how.pop("given", {})}, **how)


def call(*arguments, code=0):
    result = CliRunner().invoke(main.main, [*map(str, arguments), "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_writes_its_result_its_ledger_and_a_policy_that_acts(name, tmp_path):
    ran = run(name, out=tmp_path, replicates=2)
    assert from_json(Ran, json.loads((tmp_path / "run.json").read_text()), "run").value == ran.value
    assert (ran.episodes, ran.replicates, ran.value.std is not None) == (80, 2, True)
    assert ran.value.references.keys() == {"random", "untrained"}
    assert ran.unit.who == "simulated user"
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert (header["algorithm"], header["protects"], len(entries)) == (name, False, 1)
    learned = load_trained(tmp_path)
    assert np.array_equal(learned.parameters, ran.weights.parameters)
    assert learned.act(np.array([0.0, 0.0, 0.1, 0.0])) in (0, 1)
    with pytest.raises(ParameterError, match="finite numbers as an observation"):
        learned.act(np.zeros(3))
    with pytest.raises(FileFormatError, match="on observations"):
        load_policy(tmp_path)
    with pytest.raises(ParameterError, match="see `weights`"):
        _ = ran.policy
    shown = call("policy", tmp_path)
    assert (shown["form"]["kind"], shown["rows"]) == ("linear", [])
    call("policy", tmp_path, "--out", tmp_path / "picture.svg", code=2)


def test_a_run_is_the_training_of_the_page():
    """The twin's training by the function itself, on the same users."""
    found = {}
    real = module._train

    def spied(request, agent, kind, number, kept):
        found[kind] = (
            real(request, agent, kind, number, kept),
            request.world.users(module._seed(request, number, "users")),
        )
        return found[kind][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_train", spied)
        run()
    declared = PRIVATE_POLICY_GRADIENT.declare({})
    agent = PolicyGradient(task=CART_POLE, policy=LinearPolicy(inputs=4, actions=2))
    values = declared.values({"K": 80, "B": 20, "d": 6})
    users = SimulatedUsers(task=CART_POLE, seed=found["twin"][1].seed)
    wanted = train(agent, users, declaration=declared, values=values, noise=no_noise)
    assert np.array_equal(found["twin"][0].parameters, wanted.parameters)
    assert not np.array_equal(found["private"][0].parameters, wanted.parameters)


def test_the_vectors_size_follows_from_the_policy_and_the_task():
    units = run(given={"policy": "tanh", "units": 3})
    assert units.parameters["d"] == str((4 + 1) * 3 + 3 + 1 + 1)
    assert run(env="acrobot", given={"policy": "linear-without-constant"}).parameters["d"] == "7"
    with pytest.raises(ParameterError, match="contradicts"):
        run(given={"d": 7})


def test_a_stopped_run_goes_on_to_the_same_end(tmp_path):
    whole = run(replicates=2, out=tmp_path / "whole")
    played = []
    real = SimulatedUsers.play

    def play(users, choose, asked):
        played.append((users.seed, asked.start))
        return real(users, choose, asked)

    def stop_at(most):
        def progress(done, _):
            if done == most:
                raise KeyboardInterrupt

        return lambda _: progress

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedUsers, "play", play)
        for most in (3, 6, 11):  # in a training, in its twin, in the second replicate
            with pytest.raises(KeyboardInterrupt):
                run(replicates=2, out=tmp_path / "stopped", progress=stop_at(most))
            assert (tmp_path / "stopped" / "checkpoint.npz").exists()
            assert not (tmp_path / "stopped" / "run.json").exists()
        ran = run(replicates=2, out=tmp_path / "stopped")
    assert (ran.value, ran.spent) == (whole.value, whole.spent)
    assert np.array_equal(ran.weights.parameters, whole.weights.parameters)
    files = [(tmp_path / name / "ledger.jsonl").read_bytes() for name in ("whole", "stopped")]
    assert files[0] == files[1]
    twice = [one for one in set(played) if played.count(one) > 1]
    trained = {seed for seed, start in played if start > 0}
    # each user plays once in a training and once in its twin, however often the run was stopped
    assert sorted(played.count(one) for one in twice if one[0] in trained) == [2] * 8


def test_another_run_s_checkpoint_is_refused(tmp_path):
    run(out=tmp_path)
    with pytest.raises(PrivcheckError, match="another"):
        run(out=tmp_path, seed=1)
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(ParameterError, match="checkpoint of another run"):
        run(out=tmp_path, seed=1)
    (tmp_path / "checkpoint.npz").write_bytes(b"cut")
    with pytest.raises(PrivcheckError, match="delete it"):
        run(out=tmp_path)


def test_a_release_is_published_and_not_continued(tmp_path):
    ran = run(noise="release", out=tmp_path / "run")
    assert ran.ledger.protects
    assert "parameters" in ran.compared
    assert not list((tmp_path / "run").glob("**/checkpoint*"))
    published = api.publish(tmp_path / "run", out=tmp_path / "public", learned_for="carts")
    assert published.guarantee.verdict.verdict == "holds"
    assert published.guarantee.cost.epsilon <= 1
    names = {file.name for file in published.files}
    assert names >= {"policy.npz", "policy.json", "guarantee.json", "ledger.jsonl", "card.md"}
    assert "4 observed numbers" in (tmp_path / "public" / "card.md").read_text()
    assert np.array_equal(load_learned(tmp_path / "public").parameters, ran.weights.parameters)
    for noise in ("release", "simulated"):
        with pytest.raises(ParameterError, match="choose another --out"):
            run(noise=noise, out=tmp_path / "run")
    with pytest.raises(ParameterError, match="replicates"):
        run(noise="release", replicates=2)


def test_simulated_noise_is_not_published(tmp_path):
    run(out=tmp_path / "run")
    with pytest.raises(ParameterError, match="simulated"):
        api.publish(tmp_path / "run", out=tmp_path / "public")


def test_a_continued_run_is_charged_once(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    call("ledger", "init", "--store", url)
    unit = budget_stores.unit_of("joint")
    call("ledger", "policy", "--store", url, "--dataset", "trips", "--epsilon", 8, "--delta", "1e-4", "--unit", unit)
    given = ("--dataset", "trips", "--currency", "rho", "--cap", "0.05", "--delta", "1e-6", "--name", "G")
    call("ledger", "grant", "--store", url, *given)
    for _ in range(2):
        run(out=tmp_path / "run", ledger=url, grant="G")
    assert "0.0359" in json.dumps(call("ledger", "show", "--store", url))  # μ²/2, once, of a cap of 0.05
    with pytest.raises(PrivcheckError, match="refused"):
        run(out=tmp_path / "other", seed=1, ledger=url, grant="G")


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"env": "riverswim"}, "no task with observations"),
        ({"env": None}, "--env ENV"),
        ({"env": None, "data": "trips.parquet"}, "no file"),
        ({"given": {"B": 0}}, "B"),
        ({"given": {"units": 3, "policy": "conv"}}, "expected one of"),
        ({"given": {"K": 9}}, "batches"),
        ({"given": {"rate": -1}}, "rate"),
    ],
    ids=str,
)
def test_what_cannot_be_run_is_refused(how, says):
    with pytest.raises(PrivcheckError, match=says):
        run(**how)


def test_a_task_is_no_finite_model():
    with pytest.raises(ParameterError, match="no finite model"):
        api.run("calibrated-ucb-vi", env="cart-pole", K=10)
    with pytest.raises(ParameterError, match="no trajectories"):
        api.run("dp-apvi", env="cart-pole")


def test_a_check_runs_and_audits_the_training(tmp_path):
    report = api.check(NAMES[1], parameters={**SMALL, "K": 200}, replicates=1, trials=2000, out=tmp_path)
    lockstep = report.audit.views["lockstep"]
    assert (lockstep.verdict, lockstep.agent_ran) == ("consistent", True)
    assert "parameters" in lockstep.evidence["compared"]
    assert lockstep.evidence["moved"] <= lockstep.evidence["charged"] * (1 + Fraction(1, 10**9))
    assert report.verify.verdict == "holds"
    assert report.run.episodes == 200
    assert report.run.compared
    assert (tmp_path / "report.html").exists()


def test_a_dry_run_says_what_it_would_do_and_sweeps_and_comparisons_are_refused():
    arguments = ("--env", "cart-pole", "--set", "K=1000", "--dry-run")
    planned = call("run", NAMES[0], *arguments)
    assert planned["parts"][0]["sizes"] == {"episodes": 1000, "replicates": 1, "H": 500}
    assert call("check", NAMES[0], "--dry-run")["within"]
    assert "run" in call("sweep", NAMES[0], "--env", "cart-pole", "--over", "K=100,200", code=2)["message"]
    assert call("run", *NAMES, "--env", "cart-pole", code=2)["error"] == "parameter"
