"""`privcheck run` and `check` of online agents from outside: JSON, pages, comparison, interruption, bad input."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.data.finite_models import evaluate, solve
from privcheck.reports.files import render_runs_again
from privcheck_algorithms.environments.finite import riverswim

SMALL = ["--env", "riverswim", "--set", "S=3", "--set", "H=4", "--set", "K=60", "--replicates", "2"]

OLDER = ("mean", "std", "optimal", "maximum", "share", "twin", "baseline")  # of a regret, before uniform play


def invoked(*arguments, code=0):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == code, result.output
    return result


def test_one_run_writes_json_a_page_a_ledger_and_says_the_same(tmp_path):
    out = tmp_path / "one"
    printed = json.loads(invoked("run", "private-ucb-vi-central", *SMALL, "--out", str(out), "--json").stdout)
    assert json.loads((out / "run.json").read_text()) == printed
    assert printed["regret"].keys() >= {"mean", "std", "baseline", "optimal"}
    assert printed["regret"]["twin"] == "ucb-vi"
    lost = printed["regret"]
    assert lost["share_of_uniform"] == pytest.approx(lost["mean"] / lost["uniform"])
    assert lost["uniform"] < lost["maximum"]
    assert "regret of ucb-vi, without privacy" in (out / "run.html").read_text()
    assert printed["episodes"] == 60
    assert printed["environment"] == "riverswim"
    assert printed["odometer"][-1]["pure_epsilon"] == printed["spent"]["pure_epsilon"]
    assert "Whitehouse" in printed["spent"]["theorem"]
    assert "the guarantee is that of the cap" in printed["spent"]["note"]
    page = (out / "run.html").read_text()
    assert page.count("<svg") == 8  # four plots in two widths
    assert "private-ucb-vi-central" in page
    assert "http" not in page.replace("http-equiv", "")
    assert (out / "ledger.jsonl").exists()
    again = json.loads(invoked("run", "private-ucb-vi-central", *SMALL, "--workers", "1", "--json").stdout)
    assert again["curves"] == printed["curves"]


def test_several_agents_are_compared(tmp_path):
    names = ("ucb-vi", "oppo", "private-ucb-po-local", "calibrated-ucb-vi")
    given = [*SMALL, "--set", "epsilon=5", "--set", "mu=2"]
    printed = json.loads(invoked("run", *names, *given, "--out", str(tmp_path), "--json").stdout)
    assert printed["algorithms"] == list(names)
    assert printed["results"][2]["parameters"]["epsilon"] == "5"
    assert printed["results"][0]["spent"] is None
    page = (tmp_path / "run.html").read_text()
    assert all(name in page for name in names)
    assert printed["headline"] in page.replace("&#39;", "'").replace("\u00a0", " ")
    assert "Simulated noise: not for release" in page
    assert printed["delta"] == 1e-5
    for one, name in zip(printed["standings"], names, strict=True):
        if one["guarantee"] is None:
            assert name in ("ucb-vi", "oppo")
            continue
        settings = {k: v for k, v in (("epsilon", "5"), ("mu", "2"), ("S", "3"), ("H", "4"), ("K", "60"))
                    if k in next(r for r in printed["results"] if r["algorithm"] == name)["parameters"]}  # fmt: skip
        asked = [part for k, v in settings.items() for part in ("--set", f"{k}={v}")]
        budget = json.loads(invoked("budget", name, *asked, "--delta", repr(printed["delta"]), "--json").stdout)
        assert one["guarantee"]["epsilon"] == budget["guarantee"]["epsilon"]
        verdict = json.loads(CliRunner().invoke(main, ["verify", name, *asked, "--json"]).stdout)
        assert one["guarantee"]["verdict"] == verdict["verdict"]
    assert "goes with several" in invoked("run", "ucb-vi", *SMALL, "--delta", "1e-6", code=2).output
    assert (tmp_path / "private-ucb-po-local" / "ledger.jsonl").exists()
    table = invoked("run", *names, *given).stdout
    assert "not private" in table
    assert "private-ucb-po-local: without privacy (oppo) the regret is" in table
    assert "4 replicates" not in table
    assert table.split("\n\n")[0].replace("\n  ", " ") == printed["headline"]
    for one in printed["results"]:
        assert f"{100 * one['regret']['share_of_uniform']:.2f} %" in table
    assert "Policies that learn nothing: the uniform one has regret" in table


def test_policy_elimination_behind_a_shuffler_runs_in_a_bandit():
    names, given = ("sdp-pe", "sdp-pe-calibrated", "shuffled-arms"), ["--env", "bandit", "--replicates", "2"]
    printed = json.loads(invoked("run", *names, *given, "--set", "K=900", "--set", "epsilon=3", "--json").stdout)
    assert printed["algorithms"] == list(names)
    for one in printed["results"]:
        assert (one["parameters"].get("H", "1"), one["parameters"]["A"], one["parameters"]["epsilon"]) == (
            "1",
            "20",
            "3",
        )
        assert one["regret"]["share_of_uniform"] < 1.2


def test_regret_is_shown_beside_that_of_policies_that_learn_nothing(tmp_path):
    given = ["--env", "linear-mixture", "--set", "S=3", "--set", "H=4", "--set", "K=60", "--replicates", "2"]
    printed = json.loads(invoked("run", "ucb-vi", *given, "--out", str(tmp_path), "--json").stdout)
    mdp = riverswim(3, H=4)
    uniform = 60 * (solve(mdp).value - evaluate(mdp, np.full((4, 3, 2), 0.5)))
    assert printed["regret"]["uniform"] == pytest.approx(uniform, rel=1e-12)
    assert printed["regret"]["prior_only"] == pytest.approx(0.0, abs=1e-9)  # structure and prior solve it
    share = printed["facts"]["regret of the myopic policy, share of the uniform policy's"]
    assert printed["regret"]["myopic"] == pytest.approx(share * uniform, rel=1e-4)
    page = (tmp_path / "run.html").read_text()
    assert "Grey: policies that learn nothing, uniform" in page
    assert "of uniform&#39;s" in page
    before = dict(printed, regret={k: v for k, v in printed["regret"].items() if k in OLDER})
    (tmp_path / "run.json").write_text(json.dumps(before))
    render_runs_again(tmp_path)
    assert "Grey: policies that learn nothing" not in (tmp_path / "run.html").read_text()


def test_the_odometer_is_read_where_it_changes(tmp_path):
    """A tree charges at every power of two, which the 400 points of a longer run's curves do not all hold."""
    given = ["--env", "riverswim", "--set", "S=2", "--set", "H=2", "--set", "K=900", "--json"]
    printed = json.loads(invoked("run", "private-ucb-vi-central", *given).stdout)
    assert [step["episode"] for step in printed["odometer"]] == [2**level for level in range(10)]
    assert {1, 2, 4} - {*printed["curves"]["episodes"]}
    table = invoked("run", "private-ucb-vi-central", *given[:-1]).stdout
    assert "spent from episode … on" in table
    assert f"512: {printed['spent']['pure_epsilon']:.4g}" in table


@pytest.mark.parametrize("names", [["private-ucb-vi-central"], ["ucb-vi", "private-ucb-po-local"]])
def test_a_finished_run_is_rendered_again_unless_its_ledger_was_changed(names, tmp_path):
    invoked("run", *names, *SMALL, "--out", str(tmp_path))
    page = (tmp_path / "run.html").read_text()
    (tmp_path / "run.html").unlink()
    assert invoked("report", str(tmp_path)).stdout.strip() == str(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text() == page
    ledger = next(tmp_path.rglob("ledger.jsonl"))
    lines = ledger.read_text().splitlines()
    ledger.write_text("\n".join([lines[0], lines[1].replace("1", "2", 1), *lines[2:]]) + "\n")
    assert "line 2" in invoked("report", str(tmp_path), code=2).output
    assert "line 2" in invoked("run", *names, *SMALL, "--out", str(tmp_path), code=2).output
    (tmp_path / "run.json").write_text('{"algorithm": "x", "ledger": null}')
    assert "expected the output of `privcheck run NAME --out DIR`" in invoked("report", str(tmp_path), code=2).output


@pytest.mark.parametrize(("arguments", "match"), [
    (["run", "ucb-vi"], "give --env"),
    (["run", "ucb-vi", "--data", "riverswim"], "give --env"),
    (["run", "ucb-vi", "dp-apvi", "--env", "riverswim"], "dp-apvi does not"),
    (["run", "dp-apvi", "--env", "random"], "learn as they act"),
    (["run", "ucb-vi", "--env", "riverswin"], "unknown environment"),
    (["run", "ucb-vi", "--env", "gym:CartPole-v1"], "Discrete"),
    (["run", "ucb-vi", "--env", "table:missing.npz"], "cannot be read"),
    (["run", "ucb-vi", *SMALL[:6], "--set", "K=0"], "K"),
    (["run", "ucb-vi", *SMALL, "--set", "n=5"], "unknown parameter"),
    (["run", "ldp-obi", "--env", "random", "--set", "K=5"], "pools"),
])  # fmt: skip
def test_what_cannot_be_run_ends_with_2_and_one_message(arguments, match):
    assert match in invoked(*arguments, code=2).output


def test_environments_of_gymnasium_and_of_a_user(tmp_path):
    table = tmp_path / "two.json"
    table.write_text(json.dumps({"P": [[[0.5, 0.5]] * 2, [[1, 0], [0, 1]]], "r": [[0, 0.1], [1, 0.5]], "H": 3}))
    for env in ("gym:FrozenLake-v1", f"table:{table}"):
        more = ["--set", "H=12"] if env.startswith("gym") else []
        printed = json.loads(invoked("run", "ucb-vi", "--env", env, "--set", "K=20", *more, "--json").stdout)
        assert 0 < printed["optimal_value"] <= 5


def test_check_of_an_online_agent(tmp_path):
    given = ["--set", "S=3", "--set", "H=4", "--set", "K=60", "--out", str(tmp_path), "--trials", "200", "--json"]
    report = json.loads(invoked("check", "calibrated-ucb-vi", *given).stdout)
    assert report["verify"]["verdict"] == "holds"
    assert report["run"]["environment"] == "riverswim"
    page = (tmp_path / "report.html").read_text()
    assert "Cumulative regret" in page
    assert invoked("report", str(tmp_path)).stdout


@pytest.mark.slow
def test_an_interrupted_run_is_continued_with_the_same_result(tmp_path):
    script = [
        sys.executable, "-c", "from privcheck.cli.main import main; main()", "run", "private-ucb-vi-central",
        "--env", "riverswim", "--set", "K=100000", "--replicates", "2", "--json", "--out", str(tmp_path),
    ]  # fmt: skip
    killed = subprocess.Popen(script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    patience = time.monotonic() + 120
    while not (tmp_path / "checkpoint.npz").exists() and time.monotonic() < patience:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "run.json").exists()
    resumed = json.loads(subprocess.run(script, check=True, capture_output=True).stdout)
    straight = json.loads(subprocess.run(script[:-2], check=True, capture_output=True).stdout)
    assert resumed["curves"] == straight["curves"]
    assert resumed["ledger"]["digest"] == straight["ledger"]["digest"]
