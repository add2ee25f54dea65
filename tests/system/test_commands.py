"""The commands as a script sees them: JSON on standard output; on misuse one message, exit code 2, nothing written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from privcheck.cli.main import main

HEADER = "episode,step,state,action,reward,next_state\n"


def call(*arguments):
    return CliRunner().invoke(main, list(arguments))


def as_json(*arguments, code=0):
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def trips(path: Path, users=40, steps=3, seed=1) -> Path:
    rng = np.random.default_rng(seed)
    lines = [HEADER]
    for user in range(users):
        states = rng.integers(0, 3, steps + 1)
        lines += [
            f"{user},{h},{states[h]},{rng.integers(0, 2)},{rng.integers(0, 2)},{states[h + 1]}\n" for h in range(steps)
        ]
    path.write_text("".join(lines))
    return path


def test_list_has_the_fields_that_scripts_rely_on():
    rows = as_json("list")["algorithms"]
    assert {"dp-apvi", "dp-apvi-laplace", "apvi"} <= {r["name"] for r in rows}
    for row in rows:
        assert {"name", "title", "source", "model", "claim", "parameters", "agent"} <= row.keys()


def test_show():
    found = as_json("show", "dp-apvi")
    assert {"name", "relation", "releases", "claim", "latex"} <= found.keys()
    assert r"\frac{\rho}{2}" in found["latex"]


def test_budget_is_exact_in_its_input_and_ordered_in_its_output():
    found = as_json("budget", "dp-apvi", "--set", "rho=1/10", "--delta", "1e-6")
    assert found["parameters"]["rho"] == "1/10"
    assert [round(m["epsilon"], 4) for m in found["methods"]] == [1.9945, 2.1419, 2.4508]
    assert found["guarantee"]["epsilon"] == found["methods"][0]["epsilon"]
    assert found["guarantee"]["pure_epsilon"] is None
    assert {"name", "count", "sensitivity", "mechanism", "cost"} <= found["releases"][0].keys()
    assert as_json("budget", "dp-apvi", "--set", "rho=0.1", "--delta", "1e-6")["guarantee"] == found["guarantee"]


def test_calibrate():
    found = as_json("calibrate", "dp-apvi-laplace", "--epsilon", "1", "--delta", "1e-5")
    for row in found["releases"]:
        assert {"name", "published_std", "needed_std", "ratio"} <= row.keys()
        assert row["ratio"] == pytest.approx(row["needed_std"] / row["published_std"])
    assert found["guarantee"]["epsilon"] <= 1


@pytest.mark.parametrize("rho", ["1e-300", "1e-12", "1e12", "1e300"])
def test_extreme_budgets_end_in_numbers(rho):
    found = as_json("budget", "dp-apvi", "--set", f"rho={rho}")
    epsilons = [float(m["epsilon"]) for m in found["methods"]]
    assert epsilons == sorted(epsilons)
    assert as_json("verify", "dp-apvi", "--set", f"rho={rho}")["verdict"] == "holds"


def test_the_upper_bound_needs_no_trajectories():
    found = as_json("verify", "dp-apvi", "--set", "H=1000000000000")
    assert (found["verdict"], found["method"], found["witness"]) == ("holds", "proved", None)


def test_verify():
    found = as_json("verify", "dp-apvi")
    fields = {"algorithm", "claim", "verdict", "joint", "method", "upper_ratio", "lower_ratio", "findings", "witness"}
    assert fields <= found.keys()
    assert (found["verdict"], found["method"]) == ("holds", "proved")
    assert (found["upper_ratio"], found["lower_ratio"]) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "nope"], "unknown algorithm 'nope'; expected one of: .*dp-apvi, dp-apvi-laplace"),
        (["budget", "dp-apvi", "--set", "rho=0"], "rho .*expected a number above 0, got 0"),
        (["budget", "dp-apvi", "--set", "rho=nan"], "expected an exact number such as"),
        (["budget", "dp-apvi", "--set", "H=2.5"], "expected a whole number"),
        (["budget", "dp-apvi", "--set", "Q=2"], "unknown parameter or option of dp-apvi 'Q'"),
        (["budget", "dp-apvi", "--set", "H"], "--set expects NAME=VALUE"),
        (["budget", "dp-apvi", "--set", "H=2", "--set", "H=3"], "gives H twice"),
        (["budget", "dp-apvi", "--delta", "1"], r"--delta expects a number in \[0, 1\)"),
        (["budget", "dp-apvi", "--delta", "x"], "--delta expects a number"),
        (["budget", "apvi"], "apvi is not private"),
        (["calibrate", "dp-apvi", "--epsilon", "0"], "ε above 0"),
        (["calibrate", "dp-apvi", "--epsilon", "1", "--delta", "0"], "give --delta above 0"),
        (["verify", "dp-apvi", "--set", "rewards=maybe"], "expected one of known, released"),
        (["verify"], "NAME or --all"),
        (["verify", "dp-apvi", "--all"], "NAME or --all"),
        (["audit", "dp-apvi", "--set", "H=1000000000"], "at most 1000000 steps"),
        (["run", "dp-apvi", "--env", "riverswim", "--set", "H=1000000000"], "takes about 1.2 days and 40 TB of memory"),
        (["run", "dp-apvi", "--env", "riverswim", "--set", "H=1e9", "--yes"], "at most 200000000 are sampled"),
        (["audit", "dp-apvi", "--view", "vibes"], "--view expects one of"),
        (["audit", "dp-apvi", "--confidence", "1.5"], "--confidence expects"),
        (["audit", "apvi"], "apvi is not private"),
        (["run", "dp-apvi"], "exactly one of --env"),
        (["run", "dp-apvi", "--env", "mars"], "unknown environment 'mars'"),
        (["run", "dp-apvi", "--data", "no-such.parquet"], "no-such.parquet"),
        (["run", "dp-apvi", "--env", "riverswim", "--set", "A=3"], "contradicts the data"),
        (["verify", "dp-apvi", "--set", "rho=1e400"], "expected between 1e-300 and 1e300"),
        (["run", "dp-apvi", "--env", "riverswim", "--set", "bonus_scale=1e400"], "between 1e-300 and 1e300"),
        (["run", "dp-apvi", "--env", "riverswim", "--set", "failure=1e-400"], "between 1e-300 and 1e300"),
        (["audit", "dp-apvi", "--set", "S=3000000000"], "at most 2147483647"),
        (["report", "no-such-directory"], "no-such-directory"),
    ],
)
def test_misuse_is_one_message_and_exit_code_2(arguments, says):
    result = call(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert re.search(says, result.stderr), result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "empty"),
        (HEADER, "no rows|empty"),
        ("episode,step\n1,2\n", "state"),
        (HEADER + "0,0,0,0,nan,0\n", "reward"),
        (HEADER + "0,0,0,0,1.5,0\n", "reward"),
        (HEADER + "0,0,-1,0,0,0\n", "state"),
        (HEADER + "0,0,0,0,0,1\n0,2,1,0,0,0\n", "step"),
        (HEADER + "0,0,0,0,0,1\n0,0,0,0,0,1\n", "twice|duplicate"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_bad_data_are_refused_before_anything_is_written(tmp_path, content, says, command):
    path = tmp_path / "trips.csv"
    path.write_text(content)
    out = tmp_path / "out"
    result = call(command, "dp-apvi", *stated(path), "--out", str(out))
    assert result.exit_code == 2
    assert re.search(says, result.stderr), result.stderr
    assert not out.exists()


def stated(path):
    """The options of a file whose episodes are each another user's."""
    return "--data", str(path), "--one-episode-is-one-user"


def test_a_users_file_is_learned_from_the_billboard_alone(tmp_path):
    path = trips(tmp_path / "trips.csv")
    found = as_json("run", "dp-apvi", *stated(path), "--set", "S=3", "--set", "A=2", "--out", str(tmp_path / "o"))
    assert [r["release"] for r in found["ledger"]["releases"]] == ["visits", "transitions", "rewards"]
    assert found["value"]["baseline"] is None
    assert found["value"]["mean"] is None
    assert found["gap"] == {"mean": None, "uniform": None, "share_of_uniform": None}
    assert found["spent"]["rho"] == pytest.approx(1.0, rel=1e-12)


def test_a_public_reward_function_saves_a_third_of_the_budget(tmp_path):
    path, table = trips(tmp_path / "trips.csv"), tmp_path / "rewards.csv"
    rows = [f"{s},{a},{(s + a) % 2}\n" for s in range(3) for a in range(2)]
    table.write_text("state,action,reward\n" + "".join(rows))
    sizes = ["--set", "S=3", "--set", "A=2"]
    found = as_json("run", "dp-apvi", *stated(path), "--rewards", str(table), *sizes)
    assert [r["release"] for r in found["ledger"]["releases"]] == ["visits", "transitions"]


def test_a_value_is_also_a_share_of_what_uniform_play_leaves():
    given = ["run", "dp-apvi", "--env", "linear-mixture", "--set", "n=200", "--set", "H=5", "--replicates", "2"]
    found = as_json(*given)
    known = found["value"]["references"]
    assert found["gap"]["uniform"] == pytest.approx(known["optimum"] - known["random"])
    assert found["gap"]["mean"] == pytest.approx(known["optimum"] - found["value"]["mean"])
    assert found["gap"]["share_of_uniform"] == pytest.approx(found["gap"]["mean"] / found["gap"]["uniform"])
    assert {"myopic", "prior-only"} <= known.keys()
    assert "of the gap from uniform play to the optimum is left" in " ".join(call(*given).stdout.split())


def test_the_same_seed_gives_the_same_run_and_another_does_not(tmp_path):
    path = trips(tmp_path / "trips.csv")
    runs = [as_json("run", "dp-apvi", *stated(path), "--seed", seed) for seed in ("5", "5", "6")]
    digests = [run["ledger"]["digest"] for run in runs]
    assert digests[0] == digests[1] != digests[2]


def test_importing_is_light():
    code = (
        "import sys, privcheck, privcheck.cli.main\n"
        "heavy = {'sympy', 'scipy', 'numba', 'dp_accounting', 'matplotlib', 'pyarrow', 'cryptography'}\n"
        "heavy &= set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_doctor_finds_this_installation_sound():
    found = as_json("doctor")
    assert found["ok"], found["problems"]
    assert found["cores"] >= 1


def test_several_replicates_on_a_users_own_data_are_several_releases(tmp_path):
    path = trips(tmp_path / "trips.csv")
    for command in ("run", "check"):
        result = call(command, "dp-apvi", *stated(path), "--replicates", "2", "--out", str(tmp_path / "o"))
        assert result.exit_code == 2
        assert "2 replicates on your own data are 2 releases" in result.stderr
        assert not (tmp_path / "o").exists()


def test_the_record_of_an_earlier_release_is_not_replaced(tmp_path):
    path, out = trips(tmp_path / "trips.csv"), tmp_path / "o"
    as_json("run", "dp-apvi", *stated(path), "--out", str(out))
    before = (out / "ledger.jsonl").read_bytes()
    for command in ("run", "check"):
        result = call(command, "dp-apvi", *stated(path), "--out", str(out), "--seed", "9")
        assert result.exit_code == 2
        assert "ledger of an earlier run" in result.stderr
    assert (out / "ledger.jsonl").read_bytes() == before


def test_options_are_refused_before_anything_is_written(tmp_path):
    path, out = trips(tmp_path / "trips.csv"), tmp_path / "o"
    result = call("run", "dp-apvi", *stated(path), "--set", "C=1", "--out", str(out))
    assert result.exit_code == 2
    assert not out.exists()


def test_no_guarantee_is_null():
    assert as_json("budget", "dp-apvi", "--delta", "0")["guarantee"]["epsilon"] is None
    assert as_json("verify", "dp-apvi", "--set", "S=3000000000")["verdict"] == "holds"


def test_sizes_are_compared_as_numbers(tmp_path):
    path = trips(tmp_path / "trips.csv")
    as_json("run", "dp-apvi", *stated(path), "--set", "S=3", "--set", "A=02")


def test_a_bug_does_not_end_with_the_code_of_a_failing_claim(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("privcheck.commands.declarations.show", broken)
    result = call("show", "dp-apvi")
    assert result.exit_code == 70
    assert "internal error" in result.stderr
