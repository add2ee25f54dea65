"""Runs through the registry, from the environment to the result, and what stays behind when one fails."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from privcheck.declare.declaration import resolve
from privcheck.errors import LedgerError, ParameterError
from privcheck.runtime import read_ledger, registry
from privcheck.runtime.results import RunRequest
from privcheck.runtime.setting import Setting

ICU = {"n": 20_000, "H": 20, "S": 24}


@pytest.fixture(scope="module")
def patients():
    return registry.environment("icu-sepsis").sample(ICU, 0)


def request_for(data, name: str = "dp-apvi", rewards: str = "known", **given) -> RunRequest:
    algorithm = registry.algorithm(name)
    declaration = algorithm.declare({"rewards": rewards}) if algorithm.declare else None
    t = data.trajectories
    sizes = {"H": t.horizon, "S": t.num_states, "A": t.num_actions}
    return RunRequest(
        setting=Setting(
            declaration=declaration,
            values=declaration.values(sizes) if declaration else {},
            options=resolve(algorithm.options, given.pop("options", {}), owner=name),
        ),
        data=data,
        **given,
    )


def learn(request: RunRequest):
    name = request.declaration.name if request.declaration else "apvi"
    return registry.algorithm(name).learn_from(request)


def test_the_main_job_learns_and_records(patients, tmp_path: Path) -> None:
    ticks: list[tuple[int, int]] = []
    request = request_for(
        patients, replicates=2, seed=5, ledger=tmp_path / "ledger.jsonl", progress=lambda *at: ticks.append(at)
    )
    result = learn(request)
    assert result.returns is not None
    assert (result.returns > patients.references["clinicians"]).all()  # .701 ± .002 over seeds, measured
    assert (result.returns < patients.references["optimum"]).all()
    assert result.baseline == learn(request_for(patients, "apvi")).returns[0]
    assert result.remarks == ()  # most visits are above the noise
    assert result.policy.shape == (20, 24, 25)
    assert set(np.unique(result.policy)) == {0.0, 1.0}
    assert (result.policy.sum(axis=2) == 1).all()
    assert patients.evaluate(result.policy) == result.returns[0]
    assert ticks == [(done, 40) for done in range(1, 41)]
    header, entries = read_ledger(tmp_path / "ledger.jsonl")
    assert header["algorithm"] == "dp-apvi"
    assert [entry.part for entry in entries] == [h for h in range(19, -1, -1) for _ in range(2)]
    assert result.ledger.closed
    last = (tmp_path / "ledger.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["chain"] == result.ledger.digest  # the first replicate's, not the second's
    assert sorted(tmp_path.iterdir()) == [tmp_path / "ledger.jsonl"]


@pytest.mark.parametrize(("name", "rewards"), [("dp-apvi", "released"), ("dp-apvi-laplace", "known")])
def test_the_other_readings_run(patients, name: str, rewards: str) -> None:
    result = learn(request_for(patients, name, rewards, seed=1))
    assert 0 <= result.returns[0] <= 1
    assert np.isfinite(list(result.diagnostics.values())).all()


def test_a_replicate_does_not_depend_on_how_many_there_are(patients) -> None:
    two, four = (learn(request_for(patients, replicates=count, seed=9)) for count in (2, 4))
    assert (two.claimed == four.claimed[:2]).all()
    assert (two.returns == four.returns[:2]).all()
    assert (two.policy == four.policy).all()
    assert two.ledger.digest == four.ledger.digest
    assert len(set(four.claimed)) == 4
    other = learn(request_for(patients, replicates=1, seed=10))
    assert other.claimed[0] not in four.claimed


def test_data_of_a_users_own_get_no_exact_baseline(patients) -> None:
    own = dataclasses.replace(patients, public=False, references={})
    assert learn(request_for(own, seed=9)).baseline is None
    result = learn(request_for(dataclasses.replace(own, evaluate=None), seed=9))
    assert result.baseline is None
    assert result.returns is None
    assert (result.policy == learn(request_for(patients, seed=9)).policy).all()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [({"S": 23}, "S=23 but 24 in the data"), ({"H": 19, "A": 5}, "H=19 but 20 in the data; A=5 but 25 in the data")],
)
def test_sizes_that_are_not_the_datas_are_refused_before_anything_is_written(
    patients, tmp_path: Path, sizes, message: str
) -> None:
    request = request_for(patients, ledger=tmp_path / "ledger.jsonl")
    values = request.declaration.values({"H": 20, "S": 24, "A": 25, **sizes})
    with pytest.raises(ParameterError, match=message):
        learn(dataclasses.replace(request, setting=request.setting.at(values)))
    assert not list(tmp_path.iterdir())


def test_unknown_rewards_and_bad_options_are_refused_before_anything_is_written(patients, tmp_path: Path) -> None:
    blind = dataclasses.replace(patients, reward=None)
    with pytest.raises(ParameterError, match="--set rewards=released"):
        learn(request_for(blind, ledger=tmp_path / "ledger.jsonl"))
    with pytest.raises(ParameterError, match="above 1"):
        learn(request_for(patients, ledger=tmp_path / "ledger.jsonl", options={"C": "1"}))
    assert not list(tmp_path.iterdir())
    assert learn(request_for(blind, rewards="released")).baseline is not None


def test_an_interrupted_run_leaves_a_partial_ledger_only(patients, tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn(request_for(patients, ledger=tmp_path / "ledger.jsonl", progress=interrupt))
    (left,) = tmp_path.iterdir()
    assert left.name == "ledger.jsonl.partial"
    with pytest.raises(LedgerError, match="cut short"):
        read_ledger(left)


def test_apvi_stands_alone(patients) -> None:
    result = learn(request_for(patients, "apvi", replicates=3))
    assert result.ledger is None
    assert result.returns.tolist() == [result.returns[0]] * 3
    with pytest.raises(ParameterError, match="above 1"):
        learn(request_for(patients, "apvi", options={"C": "1/2"}))


def test_a_run_that_learned_from_noise_says_so(patients) -> None:
    request = request_for(patients, "dp-apvi-laplace", seed=1)
    result = learn(request)
    assert result.diagnostics["share_above_noise"] < 0.5
    assert [remark.title for remark in result.remarks] == ["Learned mostly from noise"]
    assert f"Only {math.floor(1000 * result.diagnostics['share_above_noise']) / 10:g} %" in result.remarks[0].text
