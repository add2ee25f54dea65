"""Somebody else's agents, registered by entry points: what runs under a name is what `privcheck check` audits.

Broken agents lose so much that missing one is far rarer than 1e-6. The noise audits of the two honest ones run at 99 %
here, as they do by default, with one seed: they were accused by none of 20 others.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from privcheck.cli.main import main
from privcheck.commands.settings import resolve_setting
from privcheck.errors import AuditError, ParameterError
from privcheck.runtime import registry
from privcheck.runtime.results import AuditRequest

PACKAGE = Path(__file__).parents[1] / "third_party"
BROKEN = {  # by the view that finds it
    "own-tenth": "noise",
    "own-half": "noise",
    "own-one-stream": "noise",
    "own-forgets-node": "noise",
    "own-one-step": "noise",
    "own-silent": "noise",
    "own-ties": "lockstep",
    "own-raw": "lockstep",
    "own-lies": "lockstep",
    "own-plain-twice": "lockstep",
    "own-plain-smuggler": "lockstep",
}


@pytest.fixture(autouse=True)
def _installed(monkeypatch):
    monkeypatch.syspath_prepend(str(PACKAGE))
    yield
    sys.modules.pop("privcheck_own", None)


def audit(name, view):
    plan = registry.audit_plan(name)
    request = AuditRequest(
        setting=resolve_setting(name, {}).setting, view=view, delta=0.0, trials=plan.trials[view], confidence=0.99
    )
    return plan.audit(request)


def check(name, tmp_path, *more):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", "from privcheck.cli.main import main; main()"]
    command += ["check", name, *more, "--json", "--out", str(tmp_path / "out")]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False, timeout=600)


@pytest.mark.parametrize(("name", "view"), BROKEN.items())
def test_a_broken_agent_is_found_at_the_default_trials(name, view):
    result = audit(name, view)
    assert result.agent_ran
    assert result.verdict == "violation"


@pytest.mark.parametrize(
    ("name", "view"),
    [("own-honest", "policy"), *itertools.product(["own-plain", "own-honest"], ["lockstep", "noise"])],
)
def test_the_honest_ones_are_run_and_accused_by_no_view(name, view):
    """The policy view of the plain one is `check`'s, below."""
    result = audit(name, view)
    assert result.agent_ran
    assert result.verdict == "consistent"


@pytest.mark.parametrize("view", ["lockstep", "noise"])
@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("own-hides", ParameterError, "its face shows .* tables .*declared are"),
        ("own-mute", AuditError, "shows no output in episode 1, in which one is declared"),
    ],
)
def test_a_face_that_hides_something_is_refused_with_the_reason(name, error, why, view):
    with pytest.raises(error, match=why):
        audit(name, view)


@pytest.mark.parametrize("view", ["lockstep", "noise"])
def test_an_agent_that_shows_auditors_nothing_is_refused_with_the_reason(view):
    with pytest.raises(ParameterError, match="has no face: the running agent cannot be audited"):
        audit("own-faceless", view)


def test_a_plain_agent_s_ledger_is_written_by_its_releases():
    from privcheck.commands.online_runs import load_world
    from privcheck.runtime.results import OnlineRequest

    algorithm, setting = registry.algorithm("own-plain"), resolve_setting("own-plain", {}).setting
    world, _ = load_world("riverswim", {"S": "3", "H": "4"}, seed=0)
    request = OnlineRequest(setting=setting, world=world, episodes=64, replicates=2)
    ledger = algorithm.play(request).ledger
    assert ledger.header["written"] == "release by release, as they left"
    digests = [entry.output for entry in ledger.entries]
    assert len(digests) == len(set(digests)) == 2 * 4  # of two tables a slice for each step, of the first output
    other = registry.algorithm("own-honest").play(request.__class__(setting=setting, world=world, episodes=64))
    assert other.ledger.header["written"] == "before the run: a plan of spending, from the declaration"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "more", "code", "lockstep"),
    # a replay finds the ties, so the views that bound ε need no more runs than show that they ran the agent
    [("own-plain", (), 0, "consistent"), ("own-ties", ("--trials", "1000"), 1, "violation")],
)
def test_check_runs_the_agent_in_every_view(name, more, code, lockstep, tmp_path):
    done = check(name, tmp_path, *more)
    assert done.returncode == code, done.stderr
    views = json.loads(done.stdout)["audit"]["views"]
    assert {view: one["agent_ran"] for view, one in views.items()} == {
        "releases": False, "lockstep": True, "noise": True, "policy": True,
    }  # fmt: skip
    found = {view: one["verdict"] for view, one in views.items()}
    assert found["lockstep"] == lockstep
    if code == 0:
        assert set(found.values()) == {"consistent"}


def test_check_of_an_agent_without_a_face_ends_with_the_reason(tmp_path):
    done = CliRunner().invoke(main, ["check", "own-faceless", "--json", "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "has no face" in json.loads(done.stdout)["message"]
