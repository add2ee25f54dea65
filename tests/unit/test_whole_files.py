"""A file is written whole or not at all, whatever goes wrong and wherever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from privcheck.support.files import partial_path, whole_file, write_whole

ERRORS = [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("bad data")]


def test_a_file_takes_its_name_when_it_is_whole(tmp_path):
    path = tmp_path / "table.csv"
    with whole_file(path) as file:
        file.write(b"first\n")
        assert [p.name for p in tmp_path.iterdir()] == ["table.csv.partial"] == [partial_path(path).name]
        file.write(b"second\n")
    assert path.read_bytes() == b"first\nsecond\n"
    write_whole(path, "ρ\n")
    assert path.read_bytes() == "ρ\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["table.csv"]


def _fail_halfway(path, error):
    with whole_file(path) as file:
        file.write(b"half of the n")
        raise error


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_whatever_fails_the_old_file_stays_and_nothing_else(error, tmp_path):
    path = tmp_path / "table.csv"
    write_whole(path, "old")
    with pytest.raises(type(error)):
        _fail_halfway(path, error)
    assert [(p.name, p.read_text(encoding="utf-8")) for p in tmp_path.iterdir()] == [("table.csv", "old")]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_is_noticed_before_the_name_is_given(call, tmp_path, monkeypatch):
    def full(*_):
        raise ERRORS[0]

    path = tmp_path / "table.csv"
    write_whole(path, "old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert [(p.name, p.read_text(encoding="utf-8")) for p in tmp_path.iterdir()] == [("table.csv", "old")]


def test_a_directory_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_whole(Path(tmp_path / "nowhere" / "table.csv"), "new")
    assert list(tmp_path.iterdir()) == []
