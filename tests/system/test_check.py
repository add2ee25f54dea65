"""The main job: `check` on sampled users and on a file, its report, and what a killed run leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.commands import checks
from privcheck.reports.policies import load_policy
from privcheck.runtime import read_ledger

SMALL = ["--set", "n=500", "--set", "H=4", "--trials", "2000", "--replicates", "2"]


def check(*arguments):
    return CliRunner().invoke(main, ["check", *arguments, "--json"])


@pytest.mark.parametrize("name", ["dp-apvi", "dp-apvi-laplace"])
def test_a_check_goes_through_every_room(tmp_path, name):
    out = tmp_path / "out"
    result = check(name, "--env", "riverswim", *SMALL, "--out", str(out))
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    for section in ("show", "budget", "verify", "audit", "run", "provenance"):
        assert report[section], section
    assert report["verify"]["verdict"] == "holds"
    assert set(report["audit"]["views"]) == {"releases", "lockstep", "noise", "policy"}
    assert all(view["verdict"] == "consistent" for view in report["audit"]["views"].values())
    releases = report["audit"]["views"]["releases"]
    assert 0 <= releases["epsilon_lower"] <= releases["epsilon_upper"]
    written = ["certificate.json", "ledger.jsonl", "policy.json", "policy.npz", "report.html", "report.json"]
    assert sorted(p.name for p in out.iterdir()) == written
    header, entries = read_ledger(out / "ledger.jsonl")
    assert header["algorithm"] == name
    assert len(entries) == 2 * 4
    assert json.loads((out / "report.json").read_text())["verify"] == report["verify"]


def test_a_report_is_rendered_again_from_its_json(tmp_path):
    out = tmp_path / "out"
    assert check("dp-apvi", "--env", "riverswim", *SMALL, "--out", str(out)).exit_code == 0
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    result = CliRunner().invoke(main, ["report", str(out), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["html"].endswith("report.html")
    assert (out / "report.html").read_text() == before
    ledger = out / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"part": 3', '"part": 2', 1))
    result = CliRunner().invoke(main, ["report", str(out)])
    assert result.exit_code == 2
    assert "ledger.jsonl, line" in result.stderr
    for foreign in ('src="http', 'href="http', "@import", "url(http"):
        assert foreign not in before


@pytest.mark.slow
def test_a_killed_check_leaves_nothing_half_written(tmp_path):
    """Killed at several moments: a report is whole or absent, a closed ledger reads, an open one is called partial."""
    for moment in (0.5, 2.0, 4.0, 6.0):
        out = tmp_path / f"out-{moment}"
        code = "from privcheck.cli.main import main; main()"
        arguments = ["check", "dp-apvi", "--data", "icu-sepsis", "--out", str(out), "--trials", "200000"]
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=-3, stderr=-3)
        time.sleep(moment)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        left = {p.name for p in out.iterdir()} if out.exists() else set()
        if "ledger.jsonl" in left:
            read_ledger(out / "ledger.jsonl")
        if "report.json" in left:
            json.loads((out / "report.json").read_text())
        if {"policy.npz", "policy.json"} <= left:
            load_policy(out)
        whole = {"ledger.jsonl", "policy.npz", "policy.json", "report.json", "report.html"}
        assert left <= whole | {name for name in left if name.endswith(".partial")}


@pytest.mark.parametrize("wrong", [{0}, {0, checks.SECOND}], ids=["by chance", "confirmed"])
def test_an_audit_that_accuses_what_holds_is_run_again_and_the_second_run_counts(monkeypatch, wrong):
    """One fixed seed accused everybody with the same sizes, who were told that something was wrong."""
    ask, asked = checks.audit, []

    def accuse(setting, *, view, seed, **how):
        asked.append((view, seed))
        found = ask(setting, view=view, seed=seed, **how)
        if view != "releases" or seed not in wrong:
            return found
        return replace(found, verdict="violation", epsilon_lower=found.epsilon_upper + 1)

    monkeypatch.setattr(checks, "audit", accuse)
    result = CliRunner().invoke(main, ["check", "dp-apvi", "--env", "riverswim", *SMALL, "--json"])
    view = json.loads(result.stdout)["audit"]["views"]["releases"]
    assert [seed for name, seed in asked if name == "releases"] == [0, checks.SECOND]
    assert {seed for name, seed in asked if name != "releases"} == {0}
    assert (view["verdict"] == "violation", result.exit_code) == (len(wrong) == 2, int(len(wrong) == 2))
    assert view["evidence"]["first_run"]["seed"] == 0
    said = CliRunner().invoke(main, ["check", "dp-apvi", "--env", "riverswim", *SMALL]).stdout
    assert ("confirms it" if len(wrong) == 2 else "does not confirm it") in " ".join(said.split())
    assert "probability 0.0001" in " ".join(said.split())
