"""The registry: whatever is changed in a table of names, tokens or datasets is found by `verify`."""

# ruff: noqa: S608 - statements of the test itself

import shutil
import sqlite3
from contextlib import closing

import pytest

import budget_stores
from privcheck.ledger import Actor, Book, open_store
from privcheck.ledger.marks import heads_path

OTTO = Actor(name="otto", role="officer")
BETTER = {"role": "officer", "grants": '["G", "H"]', "expires": None, "revoked": None}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A ledger with two datasets, a reader whose token ended, and an analyst's."""
    path = tmp_path_factory.mktemp("registry") / "budget.db"
    book = budget_stores.begin(str(path))
    book.make_token(OTTO, name="eve", role="reader", expires="2026-01-01T00:00:00Z")
    book.revoke_token(OTTO, "eve")
    book.make_token(OTTO, name="ana", role="analyst", grants=("G",), expires="2099-01-01T00:00:00Z")
    book.charge(OTTO, grant="G", unit="dataset", event={"type": "gaussian", "rho": "0.1"})
    book.store.close()
    return path


@pytest.fixture
def tampered(written, tmp_path):
    """Tells what `verify` finds after statements that go around the ledger."""

    def run(*statements):
        path = tmp_path / "copy.db"
        for source, target in ((written, path), (heads_path(written), heads_path(path))):
            shutil.copyfile(source, target)
        with closing(sqlite3.connect(path, isolation_level=None)) as raw:
            for verb in ("update", "delete"):
                raw.execute(f"DROP TRIGGER entry_no_{verb}")
            for statement in statements:
                raw.execute(*statement) if isinstance(statement, tuple) else raw.execute(statement)
        book = Book(open_store(str(path)))
        try:
            return book.verify(OTTO).problems
        finally:
            book.store.close()

    return run


def columns(path, table):
    with closing(sqlite3.connect(path)) as raw:
        return [row[1] for row in raw.execute(f"PRAGMA table_info({table})")], raw.execute(
            f"SELECT rowid, * FROM {table}"
        ).fetchall()


def test_what_was_written_is_found_sound(written, tampered):
    assert tampered() == ()


@pytest.mark.parametrize("table", ["dataset", "budget", "token"])
def test_every_changed_added_or_deleted_name_is_found(written, tampered, table):
    names, kept = columns(written, table)
    tried = 0
    for rowid, *values in kept:
        assert tampered(f"DELETE FROM {table} WHERE rowid = {rowid}"), (table, values)
        for name, value in zip(names, values, strict=True):
            changed = BETTER.get(name, f"{value}x") if table == "token" else f"{value}x"
            if (table, name) == ("budget", "dataset"):
                changed = "of-H" if value == "of-G" else "of-G"
            if changed == value:
                continue
            tried += 1
            assert tampered((f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (changed, rowid))), (table, name, value)
    assert tried >= len(kept)
    new = ["x", "x", "officer", "[]", None, None, "x", "2026-01-01T00:00:00Z"] if table == "token" else ["x", "of-G"]
    marks = ", ".join("?" * len(names))
    assert tampered((f"INSERT INTO {table} VALUES ({marks})", new[: len(names)]))


def test_what_was_moved_ended_or_closed_is_named(tampered):
    for statement, said in (
        ("UPDATE budget SET dataset = 'of-H' WHERE name = 'G'", "grant G: it belongs to dataset 'of-H'"),
        ("DELETE FROM budget WHERE name = 'G'", "grant G: it is in the registry, but was removed"),
        ("UPDATE token SET revoked = NULL WHERE name = 'eve'", "token eve: its revoked is None"),
        ("UPDATE token SET role = 'officer' WHERE name = 'ana'", "token ana: its role is 'officer'"),
        ("UPDATE token SET hash = 'f' WHERE name = 'officer'", "token officer: its hash is another"),
        ("DELETE FROM dataset WHERE name = 'of-H'", "dataset of-H: it is in the registry"),
        ("UPDATE meta SET value = '[\"of-G\"]' WHERE name = 'lost'", "datasets with lost rows: the store says of-G"),
        (f"UPDATE meta SET value = '{'0' * 64}' WHERE name = 'key'", "the store's key differs"),
        ("UPDATE meta SET value = 'x' WHERE name = 'store'", "the store's number differs"),
        ("DELETE FROM entry WHERE dataset = '(registry)'", "registry: its rows are missing"),
        ("DELETE FROM entry WHERE dataset = '(registry)' AND kind = 'revoke'", "the chain breaks"),
        ("DELETE FROM entry WHERE dataset = '(registry)' AND seq = 1", "the chain breaks"),
        ("UPDATE entry SET body = '{}' WHERE dataset = '(registry)' AND seq = 3", "its hash does not match"),
    ):
        assert any(said in problem for problem in tampered(statement)), (statement, tampered(statement))


def test_what_was_lost_stays_known_when_the_store_forgets_it(written, tampered, tmp_path):
    """`accept` writes into the registry what it closed: emptying the list in the store is found."""
    path = tmp_path / "accepted.db"
    shutil.copyfile(written, path)  # without its marks: nothing to compare it with
    book = Book(open_store(str(path)))
    assert book.accept(OTTO, freeze=True).uncompared == ("of-G",)
    assert book.verify(OTTO).problems == ()
    with book.store.write() as transaction:
        transaction.run("UPDATE meta SET value = '[]' WHERE name = 'lost'")
    (problem,) = book.verify(OTTO).problems
    assert problem == "datasets with lost rows: the store says none, and the registry of-G"
    book.store.close()


def test_the_registry_is_no_dataset(new_ledger):
    book = budget_stores.begin(new_ledger())
    assert [one["name"] for one in book.show(OTTO)["datasets"]] == ["of-G", "of-H"]
    assert set(book.verify(OTTO).datasets) == {"of-G", "of-H"}
    with pytest.raises(KeyError):
        book.show(OTTO, "(registry)")
    with pytest.raises(ValueError, match="expected dataset as 1 to 64"):
        book.set_policy(OTTO, dataset="(registry)", epsilon=1, delta=0, unit=budget_stores.UNIT)
    book.store.close()
