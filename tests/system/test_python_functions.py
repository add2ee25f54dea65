"""The functions of `privcheck` say what the commands say, refuse what they refuse, and show no more than that."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import privcheck
from privcheck.cli.main import main
from privcheck.errors import FileFormatError, InexactNumberError, ParameterError, TrajectoryError, UnknownNameError
from privcheck.reports import load_report
from privcheck.reports.values import Compared, Ran, RanOnline, from_json
from privcheck.runtime.registry import algorithm

WORLD = {"env": "riverswim", "H": 3, "S": 3}
PLACE = ["--env", "riverswim", "--set", "H=3", "--set", "S=3"]
CALLS = {
    "budget": (
        lambda: privcheck.budget("dp-apvi", rho=Fraction(1, 2), delta="1e-6"),
        ["budget", "dp-apvi", "--set", "rho=0.5", "--delta", "1e-6"],
    ),
    "verify": (lambda: privcheck.verify_claim("dp-apvi-laplace"), ["verify", "dp-apvi-laplace"]),
    "calibrate": (
        lambda: privcheck.calibrate("dp-apvi", epsilon=1, delta=1e-5, H=4),
        ["calibrate", "dp-apvi", "--epsilon", "1", "--delta", "1e-5", "--set", "H=4"],
    ),
    "audit": (
        lambda: privcheck.audit("dp-apvi", trials=300, H=3, seed=5, workers=1),
        ["audit", "dp-apvi", "--trials", "300", "--set", "H=3", "--seed", "5"],
    ),
    "run": (
        lambda: privcheck.run("dp-apvi", n=40, replicates=2, seed=3, **WORLD),
        ["run", "dp-apvi", "--set", "n=40", "--replicates", "2", "--seed", "3", *PLACE],
    ),
    "run online": (
        lambda: privcheck.run("private-ucb-vi-central", K=30, parameters={"epsilon": "1/2"}, **WORLD),
        ["run", "private-ucb-vi-central", "--set", "K=30", "--set", "epsilon=1/2", *PLACE],
    ),
    "compare": (
        lambda: privcheck.compare(["ucb-vi", "oppo"], K=30, replicates=2, workers=1, **WORLD),
        ["run", "ucb-vi", "oppo", "--set", "K=30", "--replicates", "2", *PLACE],
    ),
    "check": (
        lambda: privcheck.check("dp-apvi", n=40, trials=100, replicates=1, workers=1, **WORLD),
        ["check", "dp-apvi", "--set", "n=40", "--trials", "100", "--replicates", "1", *PLACE],
    ),
}  # fmt: skip
TIMES = re.compile(r"seconds|.*_per_second|started|command|path|policy_file")  # and where files lie


@pytest.fixture(scope="module")
def results():
    return {name: call() for name, (call, _) in CALLS.items()}


def printed(*arguments):
    result = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert result.exit_code in (0, 3), result.output
    return json.loads(result.stdout)


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if not TIMES.fullmatch(key)}
    return [without_times(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_what_the_command_prints(name, results, tmp_path):
    command = [*CALLS[name][1], *(["--out", tmp_path / "out"] if name == "check" else [])]
    document = json.loads(json.dumps(results[name].to_dict(), allow_nan=False))
    assert without_times(document) == without_times(printed(*command))


@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_shown_in_a_line_and_a_table_and_is_saved_as_json_and_as_a_page(name, results, tmp_path):
    result = results[name]
    assert len(repr(result)) <= 500
    assert repr(result).startswith(f"{type(result).__name__}(")
    ET.fromstring(result._repr_html_())  # noqa: S314 - our own output
    assert json.loads(result.save(tmp_path / "new" / "r.json").read_text(encoding="utf-8")) == result.to_dict()
    page = result.save(str(tmp_path / "r.html")).read_text(encoding="utf-8")
    assert "<!doctype html" in page.lower()
    assert "dp-apvi" in page or "ucb-vi" in page
    with pytest.raises(ParameterError, match=r"r\.txt: expected a name that ends in \.json or \.html"):
        result.save(tmp_path / "r.txt")


@pytest.mark.parametrize("name", [name for name in CALLS if name != "check"])
def test_tables_are_frames(name, results):
    frame = results[name].to_frame()
    rows = {"budget": 2, "verify": 0, "calibrate": 2, "audit": 1, "compare": 60}
    assert isinstance(frame, pd.DataFrame)
    if name in rows:
        assert len(frame) == rows[name]
    if name == "run":
        assert frame.set_index("policy")["value"]["optimum"] == results[name].value.references["optimum"]
    if name == "compare":
        assert set(frame["algorithm"]) == {"ucb-vi", "oppo"}
        last = frame[(frame["algorithm"] == "oppo") & (frame["episodes"] == 30)]
        assert last["regret"].item() == results[name].results[1].regret.mean


@pytest.fixture(scope="module")
def pictures(results):
    return {name: results[name].plot() for name in ("calibrate", "audit", "run", "run online", "compare")}


def test_pictures_stand_alone(results, pictures, tmp_path):
    assert {name: len(picture.svgs) for name, picture in pictures.items()} == {
        "calibrate": 1, "audit": 2, "run": 1, "run online": 5, "compare": 3,
    }  # fmt: skip
    for picture in pictures.values():
        assert len(picture.captions) == len(picture.svgs)
        for svg in picture.svgs:
            assert ET.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own output
            assert "var(" not in svg
        assert picture._repr_html_().count("<svg") == len(picture.svgs)
        assert len(repr(picture)) <= 500
    path = pictures["run"].save(tmp_path / "a" / "p.svg")
    assert path.read_text(encoding="utf-8") == pictures["run"].svgs[0]
    assert pictures["compare"].save(tmp_path / "p.html").read_text(encoding="utf-8").count("<svg") == 3
    with pytest.raises(ParameterError, match=r"these are 3 plots, and a \.svg file holds one"):
        pictures["compare"].save(tmp_path / "p.svg")
    with pytest.raises(ParameterError, match=r"ends in \.svg or \.html"):
        pictures["compare"].save(tmp_path / "p.png")
    with pytest.raises(ParameterError, match="nothing to draw in this Budget"):
        results["budget"].plot()
    assert len(privcheck.budget("dp-apvi", curve=True).plot().svgs) == 1


def test_ids_of_two_pictures_on_one_page_differ(pictures):
    two = (pictures["run online"], pictures["compare"])
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for picture in two for svg in picture.svgs]
    assert sum(map(len, ids)) == len(set().union(*ids)) > 0


def test_a_run_has_its_policy_with_and_without_files(results, tmp_path):
    policy = results["run"].policy
    assert policy.probabilities.shape == (3, 3, 2)
    assert not policy.record.guarantee.protects
    kept = privcheck.run("dp-apvi", n=40, replicates=2, seed=3, out=tmp_path, **WORLD)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "ledger.jsonl", "policy.json", "policy.npz", "run.json",
    ]  # fmt: skip
    for other in (kept.policy, privcheck.load_policy(tmp_path)):
        np.testing.assert_array_equal(other.probabilities, policy.probabilities)
    assert results["check"].run.policy.record.algorithm == "dp-apvi"
    assert all(one.policy.probabilities.shape == (3, 3, 2) for one in results["compare"].results)
    for kind, name in ((Ran, "run"), (RanOnline, "run online"), (Compared, "compare")):
        again = from_json(kind, results[name].to_dict())
        assert again == results[name]
        with pytest.raises(ParameterError, match="load_policy"):
            _ = (again.results[0] if kind is Compared else again).policy


def test_directories_hold_what_the_commands_leave(tmp_path):
    privcheck.audit("dp-apvi", trials=100, H=3, rho=Fraction(1, 2), workers=1, out=tmp_path / "audit")
    report = load_report(tmp_path / "audit")
    assert report.provenance.command == "privcheck.audit('dp-apvi', view='releases', seed=0, H=3, rho='1/2')"
    assert (tmp_path / "audit" / "audit.json").exists()
    assert (tmp_path / "audit" / "report.html").exists()
    privcheck.compare(["ucb-vi", "oppo"], K=10, out=str(tmp_path / "two"), **WORLD)
    assert {path.name for path in (tmp_path / "two").iterdir()} == {"ucb-vi", "oppo", "run.json", "run.html"}


def test_a_budget_asked_with_floats_where_levels_are_floats():
    assert privcheck.budget("dp-apvi", delta=1e-6) == privcheck.budget("dp-apvi", delta="1e-6")
    assert privcheck.calibrate("dp-apvi", epsilon=0.5) == privcheck.calibrate("dp-apvi", epsilon="1/2")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: privcheck.budget("dp-apvi", rho=0.5), InexactNumberError, r"rho: a float \(0\.5\).*write it.*'0\.5'"),
        (lambda: privcheck.budget("dp-apvi", rho=True), ParameterError, "rho: expected a number, got True"),
        (lambda: privcheck.budget("dp-apvi", rho=1, parameters={"rho": 2}), ParameterError, "rho is given twice"),
        (lambda: privcheck.budget("dp-apvi", tau=1), UnknownNameError, "unknown parameter or option of dp-apvi 'tau'"),
        (lambda: privcheck.budget("dp-apvy"), UnknownNameError, "did you mean dp-apvi"),
        (lambda: privcheck.budget("dp-apvi", delta=2.0), ParameterError, r"expects a number in \[0, 1\), got 2\.0"),
        (lambda: privcheck.budget("dp-apvi", delta=float("nan")), ParameterError, r"a number in \[0, 1\), got nan"),
        (lambda: privcheck.budget("apvi"), ParameterError, "apvi is not private"),
        (lambda: privcheck.audit("dp-apvi", view="sideways"), ParameterError, "expects one of releases"),
        (lambda: privcheck.audit("dp-apvi", trials=2.5), ParameterError, "trials expects a whole number, at least 1"),
        (lambda: privcheck.audit("dp-apvi", confidence="a"), ParameterError, r"a number in \[0\.5, 1\), got 'a'"),
        (lambda: privcheck.check("dp-apvi", confidence=1.0), ParameterError, r"a number in \[0\.5, 1\), got 1\.0"),
        (lambda: privcheck.run("dp-apvi", env=3), ParameterError, "env expects an environment's name, got 3"),
        (lambda: privcheck.audit("dp-apvi", seed=-1), ParameterError, "seed expects a whole number, at least 0"),
        (lambda: privcheck.run("dp-apvi"), ParameterError, "exactly one of --env ENVIRONMENT and --data"),
        (lambda: privcheck.run("dp-apvi", env="riverswim", noise="none"), ParameterError, "simulated or release"),
        (lambda: privcheck.run("dp-apvi", env="riverswim", out=""), ParameterError, "directory's name"),
        (lambda: privcheck.run("dp-apvi", env="riverswim", replicates=1.5), ParameterError, "whole number"),
        (lambda: privcheck.run("ucb-vi", data="trips.csv"), ParameterError, "learns as it acts: give --env"),
        (lambda: privcheck.run("dp-apvi", data=[1, 2]), ParameterError, "a value of type list"),
        (lambda: privcheck.compare("ucb-vi", env="riverswim"), ParameterError, "expected a list of algorithms' names"),
        (lambda: privcheck.compare(["dp-apvi"], env="riverswim"), ParameterError, "does not learn as it acts"),
        (lambda: privcheck.check("dp-sgd", env="riverswim"), ParameterError, "has no agent to learn"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_as_by_the_commands(call, error, says):
    with pytest.raises(error, match=says):
        call()


def trips(users=30, steps=3, seed=1):
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 3, (users, steps + 1))
    user, step = np.divmod(np.arange(users * steps), steps)
    return pd.DataFrame({
        "episode": [f"e{one:02}" for one in user], "step": step, "state": states[:, :-1].ravel(),
        "action": rng.integers(0, 2, users * steps), "reward": rng.integers(0, 2, users * steps) / 4,
        "next_state": states[:, 1:].ravel(), "ward": "x",
    })  # fmt: skip


class Spoken:
    """A frame of another library, such as polars: with columns, and Arrow for everything else."""

    def __init__(self, frame):
        self._table, self.columns = pa.Table.from_pandas(frame), list(frame.columns)

    def to_numpy(self):
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


ALONE = privcheck.Users(one_episode_is_one_user=True)


def test_data_in_memory_go_through_the_door_of_files(tmp_path):
    frame = trips()
    frame.to_csv(tmp_path / "trips.csv", index=False)
    sizes = {"num_states": 3, "num_actions": 2}
    read = privcheck.read_trajectories(tmp_path / "trips.csv", users=ALONE, **sizes)
    same = ("value", "spent", "parameters", "episodes", "diagnostics", "ledger")
    asked = {"S": 3, "A": 2, "seed": 4}
    from_file = privcheck.run("dp-apvi", data=tmp_path / "trips.csv", users=ALONE, **asked)
    for held in (frame, pa.Table.from_pandas(frame), Spoken(frame), read, read.trajectories):
        asked |= {"users": privcheck.Users() if held is read or held is read.trajectories else ALONE}
        ran = privcheck.run("dp-apvi", data=held, **asked)
        assert [getattr(ran, name) for name in same] == [getattr(from_file, name) for name in same]
        np.testing.assert_array_equal(ran.policy.probabilities, from_file.policy.probabilities)
        assert ran.environment == type(held).__name__
        assert ran.value.mean is None  # of users' own data nobody knows it
        with pytest.raises(ParameterError, match="2 replicates on your own data are 2 releases"):
            privcheck.run("dp-apvi", data=held, replicates=2, **asked)
    asked |= {"users": ALONE}
    report = privcheck.check("dp-apvi", data=frame, trials=100, workers=1, **asked)
    assert report.provenance.command == "privcheck.check('dp-apvi', data=<DataFrame>, seed=4, S=3, A=2)"
    assert report.run.value == from_file.value
    guessed = privcheck.run("dp-apvi", data=privcheck.read_trajectories(tmp_path / "trips.csv", users=ALONE))
    assert "taken from the largest ids" in guessed.facts["warning"]
    with pytest.raises(TrajectoryError, match="made with S = 3: expected S = 4"):
        privcheck.run("dp-apvi", data=read, S=4, A=2)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda f: f.assign(reward=f["reward"].where(f.index != 4, 2.0)), TrajectoryError, "row 5"),
        (lambda f: f.assign(reward=f["reward"].where(f.index != 4)), TrajectoryError, "row 5"),
        (lambda f: f.drop(7), TrajectoryError, "begins on row 7 has no step 1"),
        (lambda f: f.drop(columns="action"), FileFormatError, "no column action"),
        (lambda f: f.head(0), FileFormatError, "no rows"),
        (lambda f: pd.concat([f, f["state"]], axis=1), FileFormatError, "state occurs more than once"),
        (lambda f: f.assign(state=[1j] * len(f)), FileFormatError, "cannot be read"),
    ],
)
def test_frames_are_refused_with_their_rows(change, error, says):
    with pytest.raises(error, match=says) as caught:
        privcheck.run("dp-apvi", data=change(trips()), users=ALONE, S=3, A=2)
    assert "DataFrame" in str(caught.value)


def test_nothing_that_is_public_is_long_or_shows_a_patient(tmp_path):
    frame = trips(users=3)
    frame.to_csv(tmp_path / "trips.csv", index=False)
    read = privcheck.read_trajectories(tmp_path / "trips.csv", num_states=3, num_actions=2, users=ALONE)
    secret = [repr(row)[:20] for array in (read.trajectories.states, read.trajectories.rewards) for row in array]
    shown = [read, read.trajectories, read.trajectories.user(0)]
    declaration = algorithm("sdp-pe-as-printed").declare({})
    verdict = privcheck.verify(declaration, declaration.values({}))
    shown += [verdict, *verdict.findings, verdict.witness, verdict.account, verdict.account.at(declaration.values({}))]
    shown += [privcheck.verify_claim("sdp-pe-as-printed"), privcheck.budget("sdp-pe-as-printed")]
    ran = privcheck.run("dp-apvi", data=frame, users=ALONE, S=3, A=2)
    shown += [ran, ran.policy, ran.policy.record]
    for one in shown:
        text = repr(one)
        assert len(text) <= 500, type(one)
        assert not any(row in text or row in one._repr_html_() for row in secret)
