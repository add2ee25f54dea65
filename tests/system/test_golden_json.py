"""The JSON of every command and endpoint is what `tests/system/golden` holds; `python tests/golden.py` writes it."""

from __future__ import annotations

import difflib
import json

import pytest

import golden

REMEDY = "if the change is meant, write the files again: python tests/golden.py"


@pytest.mark.parametrize("area", list(golden.AREAS))
def test_documents_are_as_committed(area, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    changes = []
    for name, document in golden.AREAS[area](tmp_path.resolve()).items():
        path = golden.FOLDER / f"{name}.json"
        before = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        changes += difflib.unified_diff(before, golden.write(document).splitlines(), path.name, "now", lineterm="", n=4)
    assert not changes, "\n".join([*changes[:200], REMEDY])


def test_every_command_and_endpoint_has_a_golden_file():
    found = {path.stem.partition("~")[0] for path in golden.FOLDER.glob("*.json")}
    assert found == golden.commands() | golden.endpoints(), REMEDY


def test_a_changed_type_or_a_missing_field_is_seen(tmp_path):
    """The markers hide values, never fields or types of what is not volatile."""
    note = golden.Recorder(tmp_path)
    told = {"seconds": 1.5, "epsilon": 1.23456789012, "path": f"{tmp_path}/x", "count": 1}
    note.keep("first", told)
    assert note.found["first"] == {"seconds": "<seconds>", "epsilon": 1.23456789, "path": "<folder>/x", "count": 1}
    note.keep("second", told, exact=True)
    assert note.found["second"]["epsilon"] == told["epsilon"]
    for name, other in (("count", 1.0), ("count", "1"), ("epsilon", 1.2345678), ("seconds", None), ("path", "x")):
        note.keep(f"{name} {other}", {**told, name: other})
        assert json.dumps(note.found[f"{name} {other}"]) != json.dumps(note.found["first"])
