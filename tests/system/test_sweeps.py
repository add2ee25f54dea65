"""`privcheck sweep` from outside: resumed with the same bytes, the same for any executor, no point dropped."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner

import privcheck
from privcheck.cli.main import main
from privcheck.commands.partial_outputs import describe_kept
from privcheck.data.finite_models import evaluate, solve
from privcheck.errors import ParameterError, UnknownNameError
from privcheck.reports.run_plots import frontiers
from privcheck.reports.values import Sweep, from_json
from privcheck_algorithms.environments.finite import riverswim

NAMES = ["private-ucb-vi-calibrated", "private-ucb-vi-central", "ucb-vi"]
RIVER = {"env": "riverswim", "S": 3, "H": 4, "replicates": 2}
GRID = {"epsilon": [1, 100], "K": [40, 60]}
GIVEN = ["--env", "riverswim", "--set", "S=3", "--set", "H=4", "--seeds", "2"]
OVER = ["--over", "epsilon=1,100", "--over", "K=40,60"]


def invoked(*arguments, code=0):
    result = CliRunner().invoke(main, ["sweep", *arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep")
    return privcheck.sweep(NAMES, over=GRID, out=out, **RIVER), out


def test_every_algorithm_runs_once_for_every_combination_that_concerns_it(straight):
    points = straight[0].points
    seen = [(one.algorithm, dict(one.over)) for one in points]
    both = [{"epsilon": e, "K": k} for e in ("1", "100") for k in ("40", "60")]
    assert seen == [
        *((name, point) for name in NAMES[:2] for point in both),
        *(("ucb-vi", {"K": k}) for k in ("40", "60")),
    ]
    assert straight[0].budgets == ("epsilon",)


def test_a_point_is_the_run_with_the_same_setting(straight):
    for one in straight[0].points:
        ran = privcheck.run(one.algorithm, **RIVER, **one.over)
        assert one.regret == ran.regret
        assert one.standing.value == ran.curves.value.mean[-1]
        assert one.parameters == ran.parameters
        if one.standing.guarantee is not None:
            named = {name: value for name, value in {"S": 3, "H": 4, **one.over}.items() if name in ran.parameters}
            budget = privcheck.budget(one.algorithm, delta=straight[0].delta, **named)
            assert one.standing.guarantee.epsilon == budget.guarantee.epsilon
            assert one.standing.guarantee.verdict == privcheck.verify_claim(one.algorithm, **named).verdict


def test_optimum_and_uniform_play_are_those_of_the_model_and_the_twin_is_the_one_without_privacy(straight):
    mdp = riverswim(3, H=4)
    for one in straight[0].points:
        assert one.standing.optimum == pytest.approx(solve(mdp).value)
        assert one.standing.uniform == pytest.approx(evaluate(mdp, np.full((4, 3, 2), 0.5)))
    twins = [one.standing for one in straight[0].points if one.algorithm == "private-ucb-vi-central"]
    assert {one.twin for one in twins} == {"ucb-vi"}
    assert all(one.twin_value is not None for one in twins)
    for where, plot in frontiers(straight[0]):
        assert where in ("K = 40", "K = 60")
        said = "".join(plot.wide.split())
        assert all(name in said for name in ("optimum", "uniformplay", *NAMES))
        assert "private-ucb-vi-calibratedwithoutnoise" in said
        assert "Dashed: without privacy. Dotted: the optimum, and uniformly random play." in plot.caption


def test_the_file_is_the_result_without_its_clocks(straight):
    result, out = straight
    kept = json.loads((out / "sweep.json").read_text())
    assert from_json(Sweep, kept, "sweep") == result.without_clocks()
    assert all(one["seconds"] is None for one in kept["points"])
    assert all(one.seconds > 0 for one in result.points)
    page = (out / "sweep.html").read_text()
    assert "Simulated noise: not for release" in page
    assert "A claim fails" in page
    assert result.made_by.command in page.replace("&#39;", "'")
    assert page.count("<svg") == 4
    assert "http" not in page.replace("http-equiv", "")
    assert result.to_frame().shape[0] == 10
    assert [path.name for path in sorted(out.glob("*.svg"))] == ["frontier-1.svg", "frontier-2.svg"]
    assert "<svg" in result.plot().svgs[0]


def test_the_command_says_the_same_and_prints_the_fields_of_run(straight, tmp_path):
    result = invoked(*NAMES, *OVER, *GIVEN, "--workers", "1", "--out", str(tmp_path / "command"), "--json")
    printed = json.loads(result.stdout)
    assert (tmp_path / "command" / "sweep.json").read_bytes() == (straight[1] / "sweep.json").read_bytes()
    fields = {"algorithm", "environment", "replicates", "episodes", "regret", "spent", "ledger", "seconds"}
    assert all(one.keys() >= {*fields, "episodes_per_second"} for one in printed["points"])
    words = invoked(*NAMES, *OVER, *GIVEN, "--out", str(tmp_path / "command")).stdout
    assert printed["headline"] in words.replace("\n  ", " ")
    page = (tmp_path / "command" / "sweep.html").read_bytes()
    (tmp_path / "command" / "sweep.html").unlink()
    assert CliRunner().invoke(main, ["report", str(tmp_path / "command")]).exit_code == 0
    assert (tmp_path / "command" / "sweep.html").read_bytes() == page


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_the_result_does_not_depend_on_where_points_run(pool, straight, tmp_path):
    some = {"epsilon": [1, 100], "K": [40]}
    here = privcheck.sweep(NAMES[1:], over=some, **RIVER, workers=1)
    with pool(2) as executor:
        there = privcheck.sweep(NAMES[1:], over=some, **RIVER, executor=executor, out=tmp_path)
    assert there.without_clocks() == here.without_clocks()
    folders = sorted(path.name for path in (tmp_path / "points").iterdir())
    assert set(folders) < {path.name for path in (straight[1] / "points").iterdir()}


@pytest.mark.slow
def test_the_result_does_not_depend_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    some = {"epsilon": [1, 100], "K": [40]}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as two:
        there = privcheck.sweep(NAMES[:1], over=some, **RIVER, cluster=two.scheduler_address)
    assert there.without_clocks() == privcheck.sweep(NAMES[:1], over=some, **RIVER).without_clocks()


def test_a_sweep_that_was_stopped_goes_on_with_the_same_bytes(straight, tmp_path):
    class StopError(Exception):
        pass

    def stopping(_):
        def progress(done, total):
            if done >= 0.45 * total:
                raise StopError

        return progress

    with pytest.raises(StopError):
        privcheck.sweep(NAMES, over=GRID, out=tmp_path, progress=stopping, **RIVER)
    kept = describe_kept(tmp_path, resumes=True)
    assert re.match(rf"kept: [345] finished points of the sweep in {tmp_path / 'points'}", kept)
    assert kept.endswith("the same command goes on from there")
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("points/*/point.json")}
    assert 3 <= len(kept) <= 5
    assert not (tmp_path / "sweep.json").exists()
    privcheck.sweep(NAMES, over=GRID, out=tmp_path, **RIVER)
    assert (tmp_path / "sweep.json").read_bytes() == (straight[1] / "sweep.json").read_bytes()
    assert all(path.stat().st_mtime_ns == made for path, made in kept.items())
    assert not list(tmp_path.glob("points/*.partial"))
    assert not list(tmp_path.glob("points/*/checkpoint.npz"))


def test_a_larger_grid_takes_what_is_there_and_another_seed_does_not(straight, tmp_path):
    shutil.copytree(straight[1], tmp_path / "copy")
    before = {path.name for path in (tmp_path / "copy" / "points").iterdir()}
    privcheck.sweep(NAMES, over={**GRID, "epsilon": [1, 10, 100]}, out=tmp_path / "copy", **RIVER)
    after = {path.name for path in (tmp_path / "copy" / "points").iterdir()}
    assert len(after - before) == 4
    privcheck.sweep(["ucb-vi"], over={"K": [40]}, seed=1, out=tmp_path / "copy", **RIVER)
    assert len({path.name for path in (tmp_path / "copy" / "points").iterdir()} - after) == 1
    for broken in (tmp_path / "copy" / "points").glob("ucb-vi*/point.json"):
        broken.write_text("{")
    text = invoked("ucb-vi", *OVER[2:], *GIVEN, "--out", str(tmp_path / "copy"), code=2).output
    assert "not a readable point of a sweep" in text
    assert "delete its folder" in text


@pytest.mark.slow
def test_a_killed_sweep_loses_nothing_that_was_finished(tmp_path):
    def script(out):
        return [
            sys.executable, "-c", "from privcheck.cli.main import main; main()", "sweep", "private-ucb-vi-central",
            "--env", "riverswim", "--over", "K=50,150000", "--over", "epsilon=1,2", "--seeds", "2", "--out", str(out),
        ]  # fmt: skip

    killed = subprocess.Popen(script(tmp_path / "a"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    patience = time.monotonic() + 120
    while not list(tmp_path.glob("a/points/*K=150000*.partial/checkpoint.npz")) and time.monotonic() < patience:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("a/points/*/point.json")}
    assert len(kept) >= 2  # the points of 50 users come first
    assert not (tmp_path / "a" / "sweep.json").exists()
    subprocess.run(script(tmp_path / "a"), check=True, capture_output=True)
    subprocess.run(script(tmp_path / "b"), check=True, capture_output=True)
    assert (tmp_path / "a" / "sweep.json").read_bytes() == (tmp_path / "b" / "sweep.json").read_bytes()
    assert all(path.stat().st_mtime_ns == made for path, made in kept.items())


def test_a_point_that_the_agent_refuses_stands_in_the_result(tmp_path):
    given = ["--env", "random", "--over", "K=5,6", "--seeds", "1"]
    printed = json.loads(invoked("ldp-obi", "ucb-vi", *given, "--out", str(tmp_path), "--json").stdout)
    assert [bool(one["refused"]) for one in printed["points"]] == [True, True, False, False]
    assert "pools" in printed["points"][0]["refused"]
    page = (tmp_path / "sweep.html").read_text()
    assert page.count("Refused.") == 2
    assert "refused: ldp-obi at K = 5" in invoked("ldp-obi", "ucb-vi", *given).stdout
    assert "no point could be run" in invoked("ldp-obi", *given, code=2).output


@pytest.mark.parametrize(("arguments", "match"), [
    (["ucb-vi", *GIVEN], "Missing option '--over'"),
    (["ucb-vi", "--over", "K=5"], "give --env"),
    (["ucb-vii", *OVER, *GIVEN], "did you mean ucb-vi"),
    (["ucb-vi", "dp-apvi", *OVER, *GIVEN], "dp-apvi learns from data"),
    (["calibrated-ucb-vi", "--over", "epsilonn=1", *GIVEN], "did you mean epsilon?"),
    (["calibrated-ucb-vi", "--over", "epsilon=1", *GIVEN, "--set", "KK=5"], "did you mean K?"),
    (["calibrated-ucb-vi", "--over", "epsilon=1,-1", *GIVEN], "calibrated-ucb-vi at epsilon = -1"),
    (["calibrated-ucb-vi", "--over", "epsilon=1,x", *GIVEN], "exact number"),
    (["calibrated-ucb-vi", "--over", "preset=paper,papr", *GIVEN], "did you mean paper"),
    (["ucb-vi", "ucb-vi", "--over", "K=5", *GIVEN], "swept once"),
    (["ucb-vi", "--over", "K=1e9", *GIVEN[:2], "--seeds", "1000"], "--yes"),
    (["dp-apvi", "--over", "rho=1"], "exactly one of"),
    (["dp-apvi", "--over", "rho=1", "--data", "riverswim", "--delta", "2"], "--delta"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused_before_anything_runs(arguments, match, tmp_path):
    assert match in invoked(*arguments, "--out", str(tmp_path / "out"), code=2).output
    assert not (tmp_path / "out").exists()


def test_a_dry_run_says_every_part(tmp_path):
    words = invoked(*NAMES, *OVER, *GIVEN, "--dry-run", "--out", str(tmp_path / "out")).stdout
    assert "run private-ucb-vi-calibrated at epsilon = 100, K = 60" in words
    assert not (tmp_path / "out").exists()


def test_agents_that_learn_from_data_are_swept_too(tmp_path):
    over = {"rho": ["0.1", 1], "n": [50, 80]}
    result = privcheck.sweep(["dp-apvi", "apvi"], over=over, env="riverswim", S=3, H=4, replicates=2)
    assert [dict(one.over) for one in result.points[-2:]] == [{"n": "50"}, {"n": "80"}]
    assert result.budgets == ("rho",)
    assert all(one.regret is None and one.value is not None for one in result.points)
    for one in result.points[:4]:
        ran = privcheck.run("dp-apvi", env="riverswim", S=3, H=4, replicates=2, **one.over)
        assert one.value == ran.value
    assert [where for where, _ in frontiers(result)] == ["n = 50", "n = 80"]


def test_users_own_data_are_looked_at_once_a_point_and_the_page_says_how_often(tmp_path):
    rows = ["episode,step,state,action,reward,next_state"]
    rows += [f"{e},{h},{(e + h) % 2},{e % 2},{h % 2},{(e + h + 1) % 2}" for e in range(20) for h in range(3)]
    (tmp_path / "own.csv").write_text("\n".join(rows))
    data = tmp_path / "own.csv"
    over = {"rho": ["0.1", 1]}
    result = privcheck.sweep(
        ["dp-apvi"], over=over, data=data, users=privcheck.Users(one_episode_is_one_user=True), out=tmp_path / "out"
    )
    assert result.own_data
    assert [one.standing.value for one in result.points] == [None, None]
    assert "is unknown" in result.headline
    assert "2 looks at the same users" in (tmp_path / "out" / "sweep.html").read_text()
    again = privcheck.sweep(
        ["dp-apvi"], over=over, data=data, users=privcheck.Users(one_episode_is_one_user=True), out=tmp_path / "out"
    )
    assert again == result
    with pytest.raises(ParameterError, match="releases about the same users"):
        privcheck.sweep(
            ["dp-apvi"], over=over, data=data, users=privcheck.Users(one_episode_is_one_user=True), replicates=2
        )
    data.write_text("\n".join(rows[:-3]))
    other = privcheck.sweep(
        ["dp-apvi"], over=over, data=data, users=privcheck.Users(one_episode_is_one_user=True), out=tmp_path / "out"
    )
    assert other.points[0].episodes == 19


def test_grids_in_python_are_checked_as_those_of_the_command():
    with pytest.raises(ParameterError, match="list of algorithms"):
        privcheck.sweep("ucb-vi", over={"K": [5]}, env="riverswim")
    with pytest.raises(ParameterError, match="lists of values"):
        privcheck.sweep(["ucb-vi"], over={"K": "5,6"}, env="riverswim")
    with pytest.raises(ParameterError, match="exact"):
        privcheck.sweep(["calibrated-ucb-vi"], over={"epsilon": [0.5]}, env="riverswim")
    with pytest.raises(UnknownNameError, match="did you mean epsilon"):
        privcheck.sweep(["calibrated-ucb-vi"], over={"epsilom": [1]}, env="riverswim")
