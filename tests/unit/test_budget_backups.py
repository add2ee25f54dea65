"""A ledger that was restored from a backup opens read-only, until it was compared; on both stores."""

import hmac
import json
import shutil
import sqlite3
import types
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

import budget_stores
import postgres_cluster
from privcheck.errors import AuthorityError, ParameterError, StoreError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.marks import heads_path, read_marks
from privcheck.ledger.rows import REGISTRY
from privcheck.ledger.schema import VERSION

OTTO = Actor(name="otto", role="officer")
ANA = Actor(name="ana", role="analyst", grants=("G",))
EVENT = {"type": "zcdp", "rho": "0.1"}


def charge(book, grant="G"):
    return book.charge(OTTO, grant=grant, unit="dataset", event=EVENT)


def reopen(url):
    return Book(open_store(url))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def book(path):
    yield (made := budget_stores.begin(str(path)))
    made.store.close()


def put_back(book, path, backup):
    book.store.close()
    shutil.copy(backup, path)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return reopen(str(path))


def back_up(book, path):
    """As SQLite's own backup does: all that is committed, in one file."""
    backup = path.with_name("backup.db")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    return backup


def test_a_ledger_that_is_opened_again_is_written_on(book, path):
    charge(book)
    for _ in range(3):
        again = reopen(str(path))
        assert again.store.doubt == ""
        assert charge(again).state == "committed"
        again.store.close()
    book.store.close()
    heads = read_marks(path).heads
    assert {name: seq for name, (seq, _) in heads.items()} == {"of-G": 6, "of-H": 2, REGISTRY: 6}
    assert heads_path(path).stat().st_mode & 0o077 == 0


def test_an_older_copy_is_read_only_until_what_was_lost_is_frozen(book, path):
    kept = [charge(book).receipt, charge(book, "H").receipt]
    backup = back_up(book, path)
    lost = charge(book).receipt
    old = put_back(book, path, backup)
    assert "older copy: row 4 of 'of-G' was written" in old.store.doubt
    with pytest.raises(StoreError, match="read-only: it is an older copy") as caught:
        charge(old)
    assert caught.value.read_only
    assert old.show(ANA)["datasets"][0]["grants"][0]["remaining"] == "0.9"
    with pytest.raises(AuthorityError):
        old.accept(ANA, receipts=kept)
    for receipts in ((), kept, (*kept, lost)):
        refused = old.accept(OTTO, receipts=receipts)
        assert (refused.accepted, refused.lost, refused.frozen) == (False, ("of-G",), ())
    taken = old.accept(OTTO, freeze=True)
    assert (taken.accepted, taken.frozen) == (True, ("G",))
    assert (charge(old).state, charge(old, "H").state) == ("refused", "committed")
    assert old.verify(OTTO).ok
    assert not old.verify(OTTO, receipts=[lost]).ok
    old.store.close()
    again = reopen(str(path))
    assert again.store.doubt == ""
    assert "frozen" in charge(again).reason
    again.store.close()


def test_receipts_from_before_the_last_charge_say_nothing_about_what_came_after_it(book, path):
    early = [charge(book).receipt, charge(book, "H").receipt]
    last = charge(book).receipt
    running = book.reserve(OTTO, grant="H", unit="dataset", event=EVENT)
    ended = book.commit(OTTO, running.charge).receipt
    moved = path.with_name("moved.db")
    shutil.copy(back_up(book, path), moved)
    other = reopen(str(moved))
    for receipts, uncompared in ((early, ("of-G", "of-H")), ([*early, last, running.receipt], ("of-H",))):
        found = other.accept(OTTO, receipts=receipts)
        assert (found.accepted, found.lost, found.uncompared) == (False, (), uncompared)
    taken = other.accept(OTTO, receipts=[last, ended])
    assert (taken.accepted, taken.frozen) == (True, ())
    other.store.close()


def test_a_copy_without_its_heads_is_compared_with_receipts(book, path):
    first, second = charge(book).receipt, charge(book, "H").receipt
    newest = back_up(book, path)
    moved = path.with_name("moved.db")
    shutil.copy(newest, moved)
    other = reopen(str(moved))
    assert "its heads, kept beside it in FILE.heads, are missing" in other.store.doubt
    refused = other.accept(OTTO, receipts=[first])
    assert (refused.accepted, refused.lost, refused.uncompared) == (False, (), ("of-H",))
    with pytest.raises(ParameterError, match="not signed by this store"):
        other.accept(
            OTTO,
            receipts=[
                budget_stores.begin(str(path.with_name("third.db")))
                .charge(OTTO, grant="G", unit="dataset", event=EVENT)
                .receipt
            ],
        )
    later = charge(book).receipt
    unseen = other.accept(OTTO, receipts=[first, second, later])
    assert (unseen.accepted, unseen.lost) == (False, ("of-G",))
    taken = other.accept(OTTO, receipts=[first, second])
    assert (taken.accepted, taken.frozen) == (True, ())
    assert charge(other).state == "committed"
    other.store.close()
    again = reopen(str(moved))
    assert again.store.doubt == ""
    again.store.close()


def test_a_receipt_shows_what_a_folder_that_was_put_back_as_a_whole_has_lost(book, path, tmp_path):
    charge(book)
    book.store.close()
    shutil.copytree(tmp_path, tmp_path / "backup", ignore=shutil.ignore_patterns("backup"))
    book = reopen(str(path))
    lost = charge(book).receipt
    book.store.close()
    whole = reopen(str(tmp_path / "backup" / path.name))
    assert whole.store.doubt == ""  # nothing here can tell
    assert whole.accept(OTTO, receipts=[lost]).lost == ("of-G",)
    assert whole.accept(OTTO, receipts=[lost], freeze=True).frozen == ("G",)
    whole.store.close()


def test_heads_that_cannot_be_read_are_no_heads_and_an_empty_ledger_needs_none(book, path, tmp_path):
    charge(book)
    book.store.close()
    for text in ("", "[]", '{"of-G": 3}', "{"):
        heads_path(path).write_text(text)
        again = reopen(str(path))
        assert "are missing" in again.store.doubt
        again.store.close()
    empty = tmp_path / "empty.db"
    Book.init(create_store(str(empty)))[0].store.close()
    heads_path(empty).unlink(missing_ok=True)
    assert reopen(str(empty)).store.doubt == ""


def as_before_marks(transaction, *, sqlite):
    """Makes the tables of version 1, which had no marks."""
    transaction.run("DROP INDEX entry_key")
    transaction.run("CREATE UNIQUE INDEX entry_key ON entry (budget, actor, request_key)")
    transaction.run("DROP INDEX entry_rare")
    for table in ("answer", "claim", "tree", "reservation"):
        transaction.run(f"DROP TABLE {table}")
    transaction.run("DELETE FROM meta WHERE name NOT IN ('key')")
    transaction.run("INSERT INTO meta (name, value) VALUES ('version', '1')")
    off, on = "ALTER TABLE entry DISABLE TRIGGER USER", "ALTER TABLE entry ENABLE TRIGGER USER"
    if sqlite:
        off = "DROP TRIGGER entry_no_delete"
        (on,) = transaction.run("SELECT sql FROM sqlite_master WHERE name = 'entry_no_delete'").fetchone()
    transaction.run(off)
    transaction.run("DELETE FROM entry WHERE dataset = '(registry)'")
    transaction.run("DELETE FROM dataset WHERE name = '(registry)'")
    transaction.run(on)


def as_before_ed25519(book, receipt):
    """The receipt as the store gave it when it signed with HMAC, and had no number."""
    with book.store.read() as transaction:
        (secret,) = transaction.one("SELECT value FROM meta WHERE name = 'key'")
    fields = [receipt.dataset, receipt.seq, receipt.hash, receipt.at]
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    signature = hmac.new(bytes.fromhex(secret), text.encode(), "sha256").hexdigest()
    return replace(receipt, store="", key="", signature=signature)


def old_program(url):
    """Yields a transaction of a program that knows of no marks."""
    if url.startswith("postgresql:"):
        return psycopg.connect(url)
    return closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None))


@pytest.mark.parametrize("charged", [True, False])
def test_bringing_tables_up_to_date_accepts_nothing(new_ledger, charged):
    """A backup from before there were marks: it may be an older copy, and nothing says that it is not."""
    url = new_ledger()
    book = budget_stores.begin(url) if charged else Book.init(create_store(url))[0]
    kept = [as_before_ed25519(book, charge(book, name).receipt) for name in "GH"] if charged else []
    book.store.close()
    with old_program(url) as connection:
        as_before_marks(types.SimpleNamespace(run=connection.execute), sqlite=not url.startswith("postgresql:"))
        if url.startswith("postgresql:"):
            connection.commit()
        else:
            heads_path(Path(url.removeprefix("sqlite:///"))).unlink()
    again = reopen(url)
    with again.store.read() as transaction:
        assert transaction.one("SELECT value FROM meta WHERE name = 'version'") == (str(VERSION),)
    if charged or url.startswith("postgresql:"):
        with pytest.raises(StoreError, match="compare it with kept receipts"), again.write():
            pass
        again.store.close()
        again = reopen(url)  # bringing it up to date once did not end the doubt
        assert again.store.doubt
        assert again.accept(OTTO, receipts=kept).accepted
    if charged:
        assert charge(again).state == "committed"
    again.store.close()
    assert reopen(url).store.doubt == ""


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_dump_that_was_loaded_is_compared_with_receipts(tmp_path, elsewhere):
    cluster = postgres_cluster.shared()
    url = cluster.new()
    book = budget_stores.begin(url)
    kept = [charge(book).receipt, charge(book, "H").receipt]
    cluster.save(url, tmp_path / "dump.sql")
    lost = charge(book).receipt
    book.store.close()
    assert reopen(url).store.doubt == ""
    target = cluster.new() if elsewhere else url
    cluster.load(target, tmp_path / "dump.sql")
    old = reopen(target)
    assert "restored from a backup, or its server was restored" in old.store.doubt
    with pytest.raises(StoreError, match="read-only"):
        charge(old)
    assert old.accept(OTTO, receipts=[lost]).lost == ("of-G",)
    assert old.accept(OTTO, receipts=kept[:1]).uncompared == ("of-H",)
    assert old.accept(OTTO, receipts=[*kept, lost], freeze=True).frozen == ("G",)
    assert (charge(old).state, charge(old, "H").state) == ("refused", "committed")
    old.store.close()
    assert reopen(target).store.doubt == ""


def test_who_may_not_ask_the_server_where_it_is_is_marked_by_the_database():
    cluster = postgres_cluster.shared()
    url = cluster.new()
    book = budget_stores.begin(url)
    name = url.split("/")[3].split("?")[0]
    with book.store.read() as transaction:
        (full,) = transaction.one("SELECT value FROM meta WHERE name = 'place'")
    assert [bool(part) for part in full.split("/")] == [True] * 4
    cluster.ask("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", name=name)
    cluster.ask(f"CREATE ROLE plain_{name} LOGIN", name=name)
    cluster.ask(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO plain_{name}", name=name)
    theirs = url.replace("user=postgres", f"user=plain_{name}")
    assert reopen(theirs).store.doubt != ""  # it cannot be told that this is the same server
    book.store.close()
