"""A ledger that may only be looked at: a file in a folder that cannot be written, with or without its log."""

import json
import os
import pwd
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import budget_stores
from privcheck.errors import StoreError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.schema import VERSION

OTTO = Actor(name="otto", role="officer")
EVENT = {"type": "zcdp", "rho": "0.1"}


@pytest.fixture
def folder():
    """A folder that every user may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o755)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def as_somebody(function):
    """Returns what a function returns in a process whose user owns nothing."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(pwd.getpwnam("nobody").pw_gid)
                os.setuid(pwd.getpwnam("nobody").pw_uid)
            answer = function()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            answer = {"error": f"{type(error).__name__}: {error}"}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = json.loads(pipe.read())
    os.waitpid(child, 0)
    return told


def look(path):
    book = Book(open_store(str(path)))
    shown = book.show(OTTO)["datasets"][0]["grants"][0]["remaining"]
    found = {"shown": shown, "ok": book.verify(OTTO).ok, "doubt": book.store.doubt}
    try:
        book.charge(OTTO, grant="G", unit="dataset", event=EVENT)
    except StoreError as error:
        found["refused"] = (str(error), error.read_only)
    return found


@pytest.mark.parametrize("log", [False, True])
def test_show_and_verify_work_on_media_that_cannot_be_written(folder, log):
    path = folder / "budget.db"
    book, _ = Book.init(create_store(str(path)))
    budget_stores.grant(book, OTTO, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6")
    book.charge(OTTO, grant="G", unit="dataset", event=EVENT)
    if log:  # of a process that has it open
        book.charge(OTTO, grant="G", unit="dataset", event=EVENT)
    else:
        book.store.close()
    for file in folder.iterdir():
        file.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    folder.chmod(0o555)
    found = as_somebody(lambda: look(path))
    assert found["refused"][1], found
    assert "read-only: the file or its folder is not writable" in found["refused"][0]
    assert {name: found[name] for name in ("shown", "ok", "doubt")} == {
        "shown": "0.8" if log else "0.9", "ok": True, "doubt": "",
    }  # fmt: skip
    assert {file.name for file in folder.iterdir()} >= {"budget.db", "budget.db.heads"}
    book.store.close()


def test_tables_of_an_earlier_version_cannot_be_brought_up_to_date_there(folder):
    path = folder / "budget.db"
    Book.init(create_store(str(path)))[0].store.close()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE meta SET value = '3' WHERE name = 'version'")
    path.chmod(0o444)
    folder.chmod(0o555)
    found = as_somebody(lambda: look(path))
    assert f"its tables are of version 3 and must be upgraded to {VERSION}" in found["error"]
