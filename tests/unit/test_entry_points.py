"""What third parties register: auditors of functions are called with the caller's arguments, all of them."""

import inspect
import os
import sys

import pytest

from privcheck import PureDP, audit_agent, audit_float_noise, audit_mechanism, audit_one_run, registry
from privcheck.commands.doctor import diagnose
from privcheck.entry_points import list_entries, load_entry
from privcheck.errors import ParameterError, UnknownNameError


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
