"""What third parties register: auditors of functions are called with the caller's arguments, all of them."""

import inspect
import os
import sys

import pytest
from click.testing import CliRunner

from privcheck import PureDP, audit_agent, audit_float_noise, audit_mechanism, audit_one_run
from privcheck.cli.main import main
from privcheck.commands.failures import explain
from privcheck.commands.provenance import diagnose
from privcheck.errors import PackageError, ParameterError, UnknownNameError
from privcheck.runtime import registry
from privcheck.support.plugins import list_entries, load_entry


def laplace(given, runs, rng):
    return given + rng.laplace(0, 1, runs)


def test_a_third_partys_auditor_is_called_by_its_name_with_every_argument(register):
    calls = []
    register("auditors", "theirs", lambda *first, **rest: calls.append((first, rest)))
    assert audit_mechanism(laplace, PureDP(1), neighbours=[(0, 1)], trials=500, stop=True, auditor="theirs") is None
    (first, rest), named = calls[0], set(inspect.signature(audit_mechanism).parameters)
    assert first == (laplace, PureDP(1))
    assert set(rest) == named - {"mechanism", "claim", "auditor"}
    assert (rest["neighbours"], rest["trials"], rest["stop"], rest["seed"]) == ([(0, 1)], 500, True, 0)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("blackbox", audit_mechanism),
        ("float-noise", audit_float_noise),
        ("one-run", audit_one_run),
        ("agent", audit_agent),
    ],
)
def test_ours_take_what_their_functions_hand_on(name, function):
    handed = set(inspect.signature(function).parameters) - {"auditor"}
    taken = inspect.signature(load_entry("auditors", name)).parameters
    if name == "float-noise":  # hands everything after the claim on to the black box
        taken = inspect.signature(load_entry("auditors", "blackbox")).parameters
    assert handed <= set(taken)
    assert {p.name for p in taken.values() if p.default is p.empty} <= handed


def test_an_unknown_auditor_is_refused_with_the_names_there_are():
    with pytest.raises(UnknownNameError, match=r"auditor.*nobody.*blackbox"):
        audit_mechanism(laplace, PureDP(1), neighbours=[(0, 1)], auditor="nobody")
    assert "nobody" not in list_entries("auditors")


def test_a_name_of_ours_that_a_third_party_registers_too_is_refused_and_not_decided_by_the_order_of_the_path(register):
    register("algorithms", "dp-apvi", object())
    with pytest.raises(
        ParameterError, match=r"'dp-apvi' is registered twice, as .*package somebody_.*package privcheck"
    ):
        registry.algorithm("dp-apvi")
    assert [problem for problem in diagnose().problems if "dp-apvi" in problem]


def test_what_is_installed_or_removed_later_is_seen_at_once(tmp_path, monkeypatch):
    """In a place that was on the path before, and by a place that joins or leaves the path."""
    os.utime(tmp_path, (1, 1))  # a directory that changes twice within a tick of the clock looks unchanged
    monkeypatch.syspath_prepend(tmp_path)
    assert "later" not in list_entries("auditors")
    metadata = tmp_path / "somebody-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[privcheck.auditors]\nlater = builtins:len\n")
    assert load_entry("auditors", "later") is len
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    with pytest.raises(UnknownNameError, match="later"):
        load_entry("auditors", "later")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_entry("auditors", "later") is len
    os.utime(tmp_path, (2, 2))
    metadata.rename(tmp_path / "somebody-1.0.away")
    with pytest.raises(UnknownNameError, match="later"):
        load_entry("auditors", "later")


BROKEN = {
    "import no_such_thing\n": r"ModuleNotFoundError: No module named 'no_such_thing' \(.*broken_agents.py, line 1",
    "def f(:\n    pass\n": r"SyntaxError: .* \(.*broken_agents.py, line 1\)",
    "\n\nVALUE = 1 / 0\n": r"ZeroDivisionError: .* \(.*broken_agents.py, line 3\)",
    "OTHER = 1\n": "AttributeError: .*VALUE",
}


@pytest.mark.parametrize("source", BROKEN)
def test_a_package_that_cannot_be_loaded_is_one_error_with_its_file_and_line(tmp_path, monkeypatch, source):
    (tmp_path / "broken_agents.py").write_text(source)
    _install(tmp_path, monkeypatch)
    with pytest.raises(PackageError, match=BROKEN[source]) as caught:
        registry.algorithm("broken")
    assert explain(caught.value).code == 2
    assert "package somebody (broken_agents:VALUE) cannot be loaded" in str(caught.value)


def test_a_package_that_fails_at_work_is_named_and_ours_is_not(tmp_path, monkeypatch):
    source = (
        "from privcheck.runtime.registry import Algorithm\n\n\ndef declare(chosen):\n    return {}['missing']\n\n\n"
        "VALUE = Algorithm(name='broken', title='t', source='s', declare=declare)\n"
    )
    (tmp_path / "broken_agents.py").write_text(source)
    _install(tmp_path, monkeypatch)
    ended = CliRunner().invoke(main, ["verify", "broken"])
    assert ended.exit_code == 2, ended.output
    assert "privcheck: package broken_agents failed: KeyError: 'missing'" in ended.output
    assert "broken_agents.py, line 5); repair the package, or uninstall it" in ended.output
    assert "internal error" not in ended.output
    monkeypatch.setattr("privcheck.api.calibrate", lambda *_, **__: {}["ours"])
    ended = CliRunner().invoke(main, ["calibrate", "dp-apvi", "--epsilon", "1"])
    assert (ended.exit_code, "please report it" in ended.output) == (70, True)


def _install(folder, monkeypatch):
    metadata = folder / "somebody-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: somebody\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[privcheck.algorithms]\nbroken = broken_agents:VALUE\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "broken_agents", raising=False)
