"""Backups made while others write, put back each way: what was acknowledged is there, or the ledger says so."""

import contextlib
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

import budget_stores
import postgres_cluster
from budget_stores import OTTO
from privcheck.cli.main import main
from privcheck.errors import AuthorityError, LedgerError, StoreError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.backups import back_up, restore
from privcheck.ledger.marks import heads_path

CLIENT = Path(__file__).parents[1] / "ledger_client.py"
DOCS = Path(__file__).parents[2] / "docs" / "ledger.md"
EVENT = {"type": "zcdp", "rho": "0.01"}
NOW = "2027-01-01T00:00:00.000000Z"
STAMPS = (f"t{n}" for n in range(10**6))


def charge(book, grant="G", **more):
    return book.charge(OTTO, grant=grant, unit="dataset", event=EVENT, **more)


def put_back(url, file, *, anyway=False):
    return restore(url, file, replace_newer=anyway, stamp=next(STAMPS))


@contextlib.contextmanager
def opened(url):
    book = Book(open_store(url))
    try:
        yield book
    finally:
        book.store.close()


def lose(url):
    """The store is gone, with its marks where it has them; returns where there is nothing now."""
    if url.startswith("postgresql:"):
        return postgres_cluster.shared().new()
    path = Path(url.removeprefix("sqlite:///"))
    for left in path.parent.glob(f"{path.name}*"):
        left.unlink()
    return url


def keys_of(book, dataset="of-G"):
    found, after = set(), 0
    while page := book.charges(OTTO, dataset, after=after, most=1000):
        found |= {one.key for one in page}
        after = page[-1].seq
    return found


@pytest.fixture
def ledger(new_ledger):
    url = new_ledger()
    budget_stores.begin(url).store.close()
    return url


@pytest.mark.parametrize("lost", [True, False])
def test_backups_under_a_writer_that_is_killed(new_ledger, tmp_path, lost):
    """Two backups while eight threads of another process charge; it is killed; each is put back."""
    url = new_ledger()
    book, _ = Book.init(create_store(url))
    budget_stores.grant(book, OTTO, name="G", dataset="of-G", currency="rho", cap="1000", delta="1e-6")
    book.store.close()
    process = subprocess.Popen(
        [sys.executable, str(CLIENT), url, "8", "100000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    acknowledged, upto = [], []
    try:
        assert process.stdout.readline() == "ready\n"
        process.stdin.write("w\n")
        process.stdin.flush()
        number = int(process.stdout.readline().split()[1])

        def read():
            for line in process.stdout:
                if line == "ended\n":
                    return
                acknowledged.append(line.split()[1])

        reader = threading.Thread(target=read)
        reader.start()
        with opened(url) as book:
            for i in range(2):
                time.sleep(0.15)
                upto.append(len(acknowledged))  # acknowledged before it began
                back_up(book.store, tmp_path / f"{i}.backup", at=NOW)
        os.kill(number, signal.SIGKILL)
        reader.join()
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
    assert upto[-1] > 10
    for i, known in enumerate(upto):
        if lost:
            url = lose(url)
        told = put_back(url, tmp_path / f"{i}.backup", anyway=True)
        with opened(url) as book:
            there = keys_of(book)
            assert set(acknowledged[:known]) <= there
            assert set(acknowledged) <= there or book.store.doubt == told.doubt != ""
            assert book.verify(OTTO).ok
            with pytest.raises(StoreError, match="read-only"):
                charge(book)


def test_what_a_backup_says_is_what_it_has(ledger, tmp_path):
    with opened(ledger) as book:
        receipt = charge(book).receipt
        made = book.back_up(OTTO, tmp_path / "a.backup")
        assert made.datasets["of-G"] == {"seq": receipt.seq, "hash": receipt.hash}
        assert (made.rows["token"], made.doubt) == (1, "")
        with book.store.read() as transaction:
            assert transaction.one("SELECT COUNT(*) FROM entry") == (made.rows["entry"],)
        with pytest.raises(StoreError, match="already exists; give a new path"):
            book.back_up(OTTO, tmp_path / "a.backup")
        with pytest.raises(AuthorityError):
            book.back_up(Actor(name="ana", role="analyst", grants=("G",)), tmp_path / "b.backup")
        with pytest.raises(StoreError, match="cannot be written"):
            book.back_up(OTTO, tmp_path / "nowhere" / "b.backup")
    with closing(sqlite3.connect(tmp_path / "a.backup")) as connection:
        counts = {name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in made.rows}  # noqa: S608
    assert counts == made.rows
    assert [one.name for one in tmp_path.iterdir() if ".part" in one.name] == []
    assert (tmp_path / "a.backup").stat().st_mode & 0o077 == 0


def test_a_backup_that_is_opened_by_mistake_says_so_and_stays_as_it_is(ledger, tmp_path):
    file = tmp_path / "a.backup"
    with opened(ledger) as book:
        charge(book)
        book.back_up(OTTO, file)
    before = file.read_bytes()
    with opened(str(file)) as copy:
        assert copy.show(OTTO)["datasets"][0]["grants"][0]["remaining"] == "0.99"
        for act in (lambda: charge(copy), lambda: copy.accept(OTTO, freeze=True)):
            with pytest.raises(StoreError, match="it is a backup, not a ledger"):
                act()
    assert file.read_bytes() == before
    assert not list(tmp_path.glob("a.backup-*"))


def test_a_chain_that_does_not_fit_makes_no_backup_and_none_that_was_changed_is_put_back(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    budget_stores.begin(url).store.close()
    with opened(url) as book:
        charge(book)
        book.back_up(OTTO, tmp_path / "a.backup")
    for path in (tmp_path / "budget.db", tmp_path / "a.backup"):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TRIGGER entry_no_update")
            connection.execute("UPDATE entry SET body = replace(body, '1/100', '1/1000')")
            connection.execute("UPDATE entry SET actor = 'eve' WHERE seq = 3")
            connection.commit()
    with opened(url) as book, pytest.raises(LedgerError, match="do not fit together"):
        back_up(book.store, tmp_path / "b.backup", at=NOW)
    assert not (tmp_path / "b.backup").exists()
    with pytest.raises(LedgerError, match="do not fit together"):
        put_back(f"sqlite:///{tmp_path}/new.db", tmp_path / "a.backup")
    assert not (tmp_path / "new.db").exists()


def test_into_an_empty_place_it_is_in_doubt_until_it_was_compared(ledger, tmp_path):
    file = tmp_path / "a.backup"
    with opened(ledger) as book:
        kept = [charge(book, key="k").receipt, charge(book, "H").receipt]
        book.back_up(OTTO, file)
        later = charge(book).receipt
    ledger = lose(ledger)
    told = put_back(ledger, file)
    assert "restored from a backup" in told.doubt
    assert told.kept == ""
    with opened(ledger) as book:
        assert book.accept(OTTO, receipts=[*kept, later]).lost == ("of-G",)
        assert book.accept(OTTO, receipts=kept[:1]).uncompared == ("of-H",)
        assert book.accept(OTTO, receipts=[*kept, later], freeze=True).frozen == ("G",)
        assert (charge(book).state, charge(book, "H").state) == ("refused", "committed")
    with opened(ledger) as book:
        assert book.store.doubt == ""
        assert charge(book, "H", key="k2").state == "committed"
        assert book.verify(OTTO).ok


def test_a_backup_of_a_ledger_without_a_row_is_in_doubt_too(new_ledger, tmp_path):
    """Something may have been charged after it: without a row there is nothing else that could say so."""
    url = new_ledger()
    book, _ = Book.init(create_store(url))
    book.back_up(OTTO, tmp_path / "a.backup")
    budget_stores.grant(book, OTTO, name="G", dataset="of-G", currency="rho", cap="1", delta="1e-6")
    receipt = charge(book).receipt
    book.store.close()
    url = lose(url)
    assert put_back(url, tmp_path / "a.backup").doubt
    with opened(url) as book:
        assert book.accept(OTTO, receipts=[receipt]).lost == ("of-G",)
        assert book.accept(OTTO).accepted
    with opened(url) as book:
        assert book.store.doubt == ""


def test_marks_that_are_older_than_the_backup_vouch_for_nothing(tmp_path):
    url, marks = f"sqlite:///{tmp_path}/budget.db", heads_path(tmp_path / "budget.db")
    budget_stores.begin(url).store.close()
    old = marks.read_bytes()
    with opened(url) as book:
        charge(book)
        book.back_up(OTTO, tmp_path / "a.backup")
        charge(book)
    (tmp_path / "budget.db").unlink()
    newest = marks.read_bytes()
    for left, doubt in ((old, "restored from a backup"), (newest, "older copy: row 4")):
        marks.write_bytes(left)
        assert doubt in put_back(url, tmp_path / "a.backup").doubt
        (tmp_path / "budget.db").unlink()


def test_a_backup_of_the_last_moment_is_written_on(tmp_path):
    url = f"sqlite:///{tmp_path}/budget.db"
    budget_stores.begin(url).store.close()
    with opened(url) as book:
        charge(book)
        book.back_up(OTTO, tmp_path / "a.backup")
    (tmp_path / "budget.db").write_bytes(b"")  # the disk lost it
    with pytest.raises(StoreError, match="the present file cannot be read"):
        put_back(url, tmp_path / "a.backup")
    told = put_back(url, tmp_path / "a.backup", anyway=True)
    assert (told.doubt, Path(told.kept).read_bytes()) == ("", b"")
    with opened(url) as book:
        assert charge(book).state == "committed"


def test_what_is_newer_or_another_ledger_or_in_use_is_refused_and_kept(ledger, new_ledger, tmp_path):
    file = tmp_path / "a.backup"
    with opened(ledger) as book:
        charge(book)
        book.back_up(OTTO, file)
        with pytest.raises(StoreError, match="it is open in another process"):
            put_back(ledger, file)
    assert put_back(ledger, file).kept  # no newer than the backup
    with opened(ledger) as book:
        book.accept(OTTO, freeze=True)
        late = charge(book, "H").receipt
    with pytest.raises(StoreError, match=r"newer than the backup, in .*of-H"):
        put_back(ledger, file)
    other = new_ledger()
    budget_stores.begin(other).store.close()
    with pytest.raises(StoreError, match="another ledger is there"):
        put_back(other, file)
    told = put_back(ledger, file, anyway=True)
    with opened(ledger) as book:
        assert book.store.doubt
        assert set(book.accept(OTTO, receipts=[late]).lost) - {"(registry)"} == {"of-H"}  # and who accepted, in a file
    if ledger.startswith("sqlite:"):
        with opened(told.kept) as before:  # what was there can still be read
            assert before.find_receipt(OTTO, late.hash) == late
    else:
        name = ledger.split("/")[3].split("?")[0]
        kept = f"SELECT 1 FROM {told.kept}.entry WHERE hash = %s"  # noqa: S608
        assert postgres_cluster.shared().ask(kept, late.hash, name=name)


def test_whoever_has_it_open_while_it_is_replaced_writes_no_more(ledger, tmp_path):
    file = tmp_path / "a.backup"
    with opened(ledger) as book:
        charge(book)
        book.back_up(OTTO, file)
        late = charge(book).receipt
        put_back(ledger, file, anyway=True)
        with pytest.raises(StoreError, match="read-only"):
            charge(book)
    with opened(ledger) as book:
        assert book.store.doubt
        assert book.accept(OTTO, receipts=[late]).lost == ("of-G",)


def test_from_one_kind_of_store_to_the_other(ledger, tmp_path):
    file = tmp_path / "a.backup"
    with opened(ledger) as book:
        kept = [charge(book, key="k").receipt, charge(book, "H").receipt]
        book.back_up(OTTO, file)
        whole = book.show(OTTO)
    postgres = ledger.startswith("postgresql:")
    other = f"sqlite:///{tmp_path}/moved.db" if postgres else postgres_cluster.shared().new()
    assert "restored" in put_back(other, file).doubt
    with opened(other) as book:
        assert book.show(OTTO) == whole
        assert book.accept(OTTO, receipts=kept).accepted
        assert charge(book, key="k").receipt == kept[0]  # what was charged once stays so
        assert charge(book).state == "committed"
        assert book.verify(OTTO).ok
        with pytest.raises(StoreError), book.write() as transaction:  # its guards are there
            transaction.run("UPDATE entry SET actor = 'eve'")


def test_a_log_that_was_left_is_never_taken_for_that_of_another_file(tmp_path):
    """A stale -wal beside a file that was put in its place by hand is refused; `restore` moves it away."""
    url, path = f"sqlite:///{tmp_path}/budget.db", tmp_path / "budget.db"
    budget_stores.begin(url).store.close()
    with opened(url) as book:
        book.back_up(OTTO, tmp_path / "a.backup")
        late = charge(book).receipt
        wal = Path(f"{path}-wal").read_bytes()
        assert wal
    for by_hand in (True, False):
        for left in tmp_path.glob("budget.db*"):
            if left != heads_path(path):
                left.unlink()
        if by_hand:
            with closing(sqlite3.connect(tmp_path / "a.backup")) as source, closing(sqlite3.connect(path)) as target:
                source.backup(target)
                target.execute("PRAGMA application_id = 0")
        Path(f"{path}-wal").write_bytes(wal)
        if not by_hand:
            put_back(url, tmp_path / "a.backup")
            assert [one.read_bytes() for one in tmp_path.glob("*.replaced-*-wal")] == [wal]
        try:
            with opened(url) as book, book.store.read() as transaction:
                there = transaction.one("SELECT 1 FROM entry WHERE hash = ?", (late.hash,))
                assert there is not None or book.store.doubt
                assert there is None or book.verify(OTTO).ok
        except StoreError:
            assert by_hand


@pytest.mark.parametrize(("others", "own", "late"), [(0, 1, 1), (1, 40, 3), (40, 1, 30), (40, 5, 1), (5, 40, 30)])
def test_the_log_of_one_ledger_beside_the_file_of_another_is_refused_or_loses_nothing(tmp_path, others, own, late):
    """SQLite cannot tell whose a log is: what comes of both is malformed, in doubt, or has all that was charged."""
    path, other = tmp_path / "a.db", tmp_path / "b.db"
    for file, count in ((path, own), (other, others)):
        made = budget_stores.begin(str(file))
        for _ in range(count):
            charge(made)
        made.store.close()
    with opened(str(path)) as book:
        receipts = [charge(book).receipt for _ in range(late)]
        wal = Path(f"{path}-wal").read_bytes()
    for left in tmp_path.glob("a.db*"):
        if left != heads_path(path):
            left.unlink()
    path.write_bytes(other.read_bytes())
    Path(f"{path}-wal").write_bytes(wal)
    with contextlib.suppress(StoreError), opened(str(path)) as book:  # malformed
        if book.store.doubt:
            with pytest.raises(StoreError, match="read-only"):
                charge(book)
        else:
            assert book.verify(OTTO, receipts=receipts).ok


@pytest.mark.parametrize("store", ["https://host/ledger", "http://127.0.0.1:1"])
def test_a_service_is_not_backed_up_from_afar(store, tmp_path):
    (tmp_path / "a").write_bytes(b"")
    for words in (["backup", str(tmp_path / "b")], ["restore", str(tmp_path / "a")]):
        done = CliRunner().invoke(main, ["ledger", *words, "--store", store])
        assert done.exit_code not in (0, 1)
        assert "on its own machine: give --store PATH" in done.output
        assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("made", [b"", b"no backup", None])
def test_what_is_no_backup_is_refused_and_nothing_is_touched(ledger, tmp_path, made):
    file = tmp_path / "x"
    if made is None:
        budget_stores.begin(f"sqlite:///{file}").store.close()
    else:
        file.write_bytes(made)
    with pytest.raises(StoreError, match="not a backup; expected one made by"):
        put_back(ledger, file, anyway=True)
    with opened(ledger) as book:
        assert charge(book).state == "committed"


def test_the_drill_of_the_page_runs_as_it_is_written(tmp_path, monkeypatch):
    """Every command between the drill's marks, in order, with the exit codes that the page promises."""
    drill = re.search(r"<!-- drill -->(.*?)<!-- end of the drill -->", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.removeprefix("$ ") for line in drill[1].splitlines() if line.startswith("$ ")]
    assert len(lines) >= 8
    monkeypatch.chdir(tmp_path)
    told = []
    for line in lines:
        command, _, file = line.partition(" >> ")
        words, _, expected = command.partition("  # exit code ")
        words = shlex.split(words)
        if words[0] == "rm":
            for name in words[1:]:
                Path(name).unlink()
            continue
        assert words[0] == "privcheck"
        done = CliRunner().invoke(main, words[1:])
        assert done.exit_code == int(expected or 0), (line, done.output)
        if file:
            with Path(file.strip()).open("a") as receipts:
                receipts.write(done.output)
        told.append(done.output)
    final = json.loads(told[-1])["datasets"][0]
    states = {grant["name"]: grant["balance"]["state"] for grant in final["grants"]}
    assert states == {"team-a": "frozen"}
    assert not re.search("sqlite3 |pg_dump|pg_restore", drill[1])
