"""What a run under release noise writes about its data: nothing but releases and public facts. No error probability."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from privcheck import AddRemoveOne, load_policy
from privcheck.cli.main import main
from privcheck.commands.datasets import load
from privcheck.commands.runs import why_withheld
from privcheck.commands.settings import settle
from privcheck.runtime import registry
from privcheck.runtime.noise import ReleaseNoise

USERS = 37


def call(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


def prepared(path, *, hole, missing):
    """A table of users with two steps each; with a hole, one user lacks a reward."""
    rng, lines = np.random.default_rng(0), ["user,episode,step,state,action,reward,next_state"]
    states = rng.integers(3, size=(USERS, 3))
    for user, (first, second, last) in enumerate(states):
        gap = "" if hole and user == 5 else "1"
        lines += [f"{user},{user},0,{first},0,1,{second}", f"{user},{user},1,{second},1,{gap},{last}"]
    raw = path.with_suffix(".csv")
    raw.write_text("\n".join(lines), encoding="utf-8")
    call("prepare", raw, "--out", path, "--missing", missing, "--horizon", 2, "--states", 3)
    return path


def release(path, out):
    call("run", "dp-apvi", "--data", path, "--set", "S=3", "--set", "A=2", "--noise", "release", "--out", out)
    return json.loads((out / "private" / "run.json").read_text(encoding="utf-8"))


def test_a_private_number_of_episodes_is_in_no_file_of_a_release(tmp_path):
    for name, hole in (("whole", False), ("hole", True)):
        out = tmp_path / name
        ran = release(prepared(tmp_path / f"{name}.parquet", hole=hole, missing="drop"), out)
        ran = ran.get("run", ran)
        assert ran["episodes"] is None
        assert ran["episodes_per_second"] is None
        assert str(USERS - hole) not in ran["description"]
        assert {str(ran["facts"][count]).partition(" (")[0] for count in ("rows", "users")} == {"withheld: private"}
        record = load_policy(out).record
        assert any("the number of remaining episodes is private" in warning for warning in record.warnings)
        assert "the number of remaining episodes is private" in call("policy", out)
        call("report", out)


def test_a_public_number_of_users_is_said(tmp_path):
    ran = release(prepared(tmp_path / "whole.parquet", hole=False, missing="refuse"), tmp_path / "out")
    ran = ran.get("run", ran)
    assert (ran["episodes"], ran["facts"]["users"]) == (USERS, USERS)
    assert not load_policy(tmp_path / "out").record.warnings


def test_a_number_in_which_neighbours_differ_is_withheld(tmp_path):
    path = prepared(tmp_path / "whole.parquet", hole=False, missing="refuse")
    chosen = registry.algorithm("dp-apvi")
    source = load(env=None, data=path, rewards=None, given={"S": "3", "A": "2"}, algorithm=chosen, seed=0)
    setting = settle(chosen, source.given, sizes=source.sizes)
    assert not why_withheld(setting, source)
    added = replace(setting.declared, relation=AddRemoveOne("trajectory"))
    setting = replace(setting, setting=replace(setting.setting, declaration=added))
    assert "neighbours differ in it" in why_withheld(setting, source)


# of a run and its audits, and where its files lie: all that may differ behind the same board, under private/ alone
TIMES = {"seconds", "started", "command", "trials_per_second"}


def strip(value):
    if isinstance(value, dict):
        return {name: strip(part) for name, part in value.items() if name not in TIMES}
    return [strip(part) for part in value] if isinstance(value, list) else value


def read_private(folder):
    """Every file under private/ but the page, which shows the times of report.json; of JSON all but the times."""
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".html"}
    return {name: strip(json.loads(raw)) if name.endswith(".json") else raw for name, raw in files.items()}


def replay_board(monkeypatch):
    """From here on, every draw for the same slice is what the first one was, whatever the exact value."""
    board, draw, drawn = {}, ReleaseNoise.add, []

    def replay(self, noise, value, *, release, part):
        noisy = board.setdefault((release, part), draw(self, noise, value, release=release, part=part))
        drawn.append(not np.array_equal(value, noisy))
        return noisy.copy()

    monkeypatch.setattr(ReleaseNoise, "add", replay)
    return drawn


@pytest.mark.parametrize("command", ["run", pytest.param("check", marks=pytest.mark.slow)])
def test_every_file_of_a_release_is_the_same_on_neighbours_behind_the_same_board(tmp_path, monkeypatch, command):
    """The raw tables differ in one cell of one user; a field that is added to any file is compared with the rest."""
    drawn, written = replay_board(monkeypatch), []
    for name, hole in (("D", False), ("D2", True)):
        (tmp_path / name).mkdir()
        path = prepared(tmp_path / name / "trips.parquet", hole=hole, missing="drop")
        out = tmp_path / name / "out"
        more = ("--trials", 200) if command == "check" else ()
        sizes = ("--set", "S=3", "--set", "A=2")
        told = CliRunner().invoke(
            main,
            [
                str(word)
                for word in (command, "dp-apvi", "--data", path, *sizes, "--noise", "release", "--out", out, *more)
            ],
        )
        assert told.exit_code == 0, told.output
        assert f"{USERS - hole} " not in told.output.partition("\n")[0]  # the first line has no noisy figure
        public = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
        written.append((public, read_private(out / "private")))
    assert any(drawn)
    assert set(written[0][0]) == {
        "policy.json",
        "policy.npz",
        "ledger.jsonl",
    }  # public to the last byte, times included
    assert set(written[0][1]) >= {"README.txt", {"run": "run.json", "check": "report.json"}[command]}
    assert written[0] == written[1]
