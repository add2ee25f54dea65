"""A store that is changed beneath an open ledger: the next write notices it, nothing is charged, the marks stay."""

import os
import shutil
import sqlite3
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import budget_stores
import postgres_cluster
from privcheck.errors import ParameterError, StoreError
from privcheck.ledger import Actor, Book, open_store
from privcheck.ledger.idempotency import keep_claim
from privcheck.ledger.marks import heads_path, read_marks

OTTO = Actor(name="otto", role="officer")
EVENT = {"type": "zcdp", "rho": "0.1"}


def charge(book, grant="G", **more):
    return book.charge(OTTO, grant=grant, unit="dataset", event=EVENT, **more)


def left(book, grant="G"):
    return (
        book.find_grant(OTTO, grant)
        and {
            one["name"]: Fraction(one["remaining"])
            for dataset in book.show(OTTO)["datasets"]
            for one in dataset["grants"]
        }[grant]
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def opened():
    """Returns a function that opens a ledger, closed at the end."""
    books = []

    def open_book(url):
        books.append(Book(open_store(str(url))))
        return books[-1]

    yield open_book
    for book in books:
        book.store.close()


@pytest.fixture
def book(path, opened):
    budget_stores.begin(str(path)).store.close()
    return opened(path)


def copy_into(source, target):
    """As SQLite's own backup does, in place: the file stays the one that others have open."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


def save(url, file):
    """Makes a backup, as each store's own program does."""
    if url.startswith("postgresql:"):
        postgres_cluster.shared().save(url, file)
    else:
        copy_into(url.removeprefix("sqlite:///"), file)


def put_back(url, file):
    """Puts a backup back beneath whoever has the ledger open."""
    if url.startswith("postgresql:"):
        postgres_cluster.shared().load(url, file)
    else:
        copy_into(file, url.removeprefix("sqlite:///"))


def refuse(book, match="older copy"):
    """The next write notices; nothing is written, and the marks are as they were."""
    path = Path(book.store.url.removeprefix("sqlite:///"))
    kept = heads_path(path).read_bytes() if heads_path(path).exists() else b""
    for _ in range(2):
        with pytest.raises(StoreError, match=match) as caught:
            charge(book)
        assert caught.value.read_only
        assert "privcheck ledger verify --receipts FILE --accept" in str(caught.value)
    if kept:
        before, after = read_marks(path), kept.count(b'"dataset"')
        assert len(before.heads) >= after


@pytest.mark.parametrize("writer", ["this process", "another"])
def test_an_older_copy_that_is_written_into_the_open_file_is_noticed(book, path, opened, writer):
    other = opened(path)
    charge(book)
    charge(other)
    copy_into(path, path.with_name("backup.db"))
    charge(book if writer == "this process" else other)
    copy_into(path.with_name("backup.db"), path)
    refuse(book)
    refuse(other)
    again = opened(path)
    assert "row 5 of 'of-G' was written, but is missing" in again.store.doubt


@pytest.mark.parametrize("how", ["an older copy", "the same", "removed", "moved away and back"])
def test_another_file_at_the_path_of_an_open_ledger_is_noticed(book, path, opened, how):
    charge(book)
    copy_into(path, path.with_name("backup.db"))
    if how == "an older copy":
        charge(book)
    before = read_marks(path)
    kept = path.with_name("kept.db")
    os.link(path, kept)
    if how in ("removed", "moved away and back"):
        path.unlink()
    else:
        path.with_name("backup.db").replace(path)
    if how == "moved away and back":
        os.link(kept, path)
        assert charge(book).state == "committed"  # it is the file that was opened
        return
    refuse(book, "its file was replaced or removed after it was opened")
    assert read_marks(path) == before
    with book.store.read() as transaction:  # nor was anything written into the one that was moved
        found = transaction.one("SELECT count(*) FROM entry WHERE kind = 'charge'")
    assert found == (2 if how == "an older copy" else 1,)
    book.store.close()
    for suffix in ("-wal", "-shm"):  # of the file that was there before
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    if how == "an older copy":
        assert "row 4 of 'of-G' was written" in opened(path).store.doubt
    elif how == "the same":
        assert opened(path).store.doubt == ""


def test_a_charge_that_went_into_a_file_that_was_moved_meanwhile_is_not_acknowledged(book, path):
    charge(book)
    with pytest.raises(StoreError, match="its file was replaced or removed"), book.write() as transaction:  # noqa: PT012
        book.apply(transaction, book.prepare(OTTO, "charge", grant="G", unit="dataset", event=EVENT))
        path.rename(path.with_name("moved.db"))


def test_a_backup_from_within_a_burst_is_an_older_copy(book, path, opened):
    """The marks are of the last charge that was acknowledged, also where the process was killed right after it."""
    for i in range(10):
        charge(book, key=str(i))
        assert read_marks(path).heads["of-G"][0] == 3 + i
        if i == 4:
            copy_into(path, path.with_name("backup.db"))
    book.store.close()
    shutil.copy(path.with_name("backup.db"), path)
    assert "row 12 of 'of-G' was written, but is missing" in opened(path).store.doubt


def test_files_of_a_live_ledger_that_were_copied_are_an_older_copy(book, path, tmp_path, opened):
    """What is still in the log is missing; the marks of that moment say so."""
    charge(book)
    (tmp_path / "copy").mkdir()
    for file in (path, heads_path(path)):
        shutil.copy(file, tmp_path / "copy")
    charge(book)
    assert "row 3 of 'of-G' was written, but is missing" in opened(tmp_path / "copy" / path.name).store.doubt


def test_a_token_that_was_revoked_does_not_come_back_with_a_backup(book, path, opened):
    """It is in the chain of names and tokens."""
    book.make_token(OTTO, name="ana", role="reader")
    copy_into(path, path.with_name("backup.db"))
    book.revoke_token(OTTO, "ana")
    copy_into(path.with_name("backup.db"), path)
    refuse(opened(path), "is an older copy: row .* of '.registry.' was written, but is missing")


def test_what_is_in_no_chain_is_missed_all_the_same(book, path, opened):
    """The transaction that wrote it is counted."""
    copy_into(path, path.with_name("backup.db"))
    with book.write() as transaction:
        keep_claim(transaction, "claim", {})
    copy_into(path.with_name("backup.db"), path)
    refuse(opened(path), "transactions were acknowledged, but some are missing")


def test_a_crash_between_commit_and_marks_accuses_nobody(book, path, opened):
    charge(book)
    if (child := os.fork()) == 0:
        from privcheck.ledger import sqlite

        sqlite.advance_marks = lambda *_: os._exit(7)
        charge(Book(open_store(str(path))), key="unknown")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert read_marks(path).heads["of-G"][0] == 3
    copy_into(path, path.with_name("backup.db"))
    assert charge(book, "H").state == "committed"  # a newer copy than the marks, which are brought up to it
    assert read_marks(path).heads["of-G"][0] == 4
    assert charge(book, key="unknown").balance["committed"] == "0.2"
    copy_into(path.with_name("backup.db"), path)
    refuse(book)
    assert opened(path).accept(OTTO, freeze=True).lost == ("of-H",)


def test_marks_that_cannot_be_kept_are_told_before_a_charge_is_acknowledged(book, path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("privcheck.ledger.sqlite.advance_marks", fail)
    with pytest.raises(StoreError, match="heads cannot be kept beside it: No space") as caught:
        charge(book)
    assert caught.value.read_only
    with pytest.raises(StoreError, match="read-only"):
        charge(book)


def lose(url, tmp_path, opened):
    """A ledger in which an acknowledged charge is lost, with another process that has it open; both have written."""
    book, other = opened(url), opened(url)
    kept = [charge(book).receipt, charge(other, "H").receipt]
    save(url, tmp_path / "backup")
    kept.append(charge(book).receipt)
    put_back(url, tmp_path / "backup")
    return book, other, kept


@pytest.fixture
def url(new_ledger):
    url = new_ledger()
    budget_stores.begin(url).store.close()
    return url


def test_a_backup_that_is_put_back_beneath_a_running_ledger_is_noticed_by_every_process(url, tmp_path, opened):
    book, other, kept = lose(url, tmp_path, opened)
    for one in (other, book, opened(url)):
        with pytest.raises(StoreError, match="compare it with kept receipts"):
            charge(one)
        with pytest.raises(StoreError, match="compare it with kept receipts"):
            one.make_token(OTTO, name="eve", role="officer")
    assert opened(url).accept(OTTO, receipts=kept).lost == ("of-G",)
    taken = opened(url).accept(OTTO, receipts=kept, freeze=True)
    assert (taken.accepted, taken.frozen) == (True, ("G",))
    for one in (book, other):  # what they remember is of the copy before
        with pytest.raises(StoreError, match=r"open it again|compare it"):
            charge(one, "H")
    again = opened(url)
    assert (charge(again).state, charge(again, "H").state) == ("refused", "committed")
    assert again.verify(OTTO).ok


def test_rows_that_are_gone_are_noticed_though_the_tables_stay(url, opened):
    """As a dump of the data alone is loaded: whoever has written them says so to every process."""
    book, other = opened(url), opened(url)
    charge(other, "H")
    charge(book)
    if url.startswith("postgresql:"):
        name = url.split("/")[3].split("?")[0]
        for statement in (
            "ALTER TABLE entry DISABLE TRIGGER ALL",
            "DELETE FROM entry WHERE dataset = 'of-G' AND seq = 3",
        ):
            postgres_cluster.shared().ask(statement, name=name)
    else:
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw, raw:
            raw.execute("DROP TRIGGER entry_no_delete")
            raw.execute("DELETE FROM entry WHERE dataset = 'of-G' AND seq = 3")
    with pytest.raises(StoreError, match="older copy: row 3 of 'of-G' was written, but is missing"):
        charge(book)
    assert opened(url).store.doubt
    with pytest.raises(StoreError, match="read-only"):
        opened(url).freeze(OTTO, "G", reason="looking at it")
    assert book.accept(OTTO).lost == ("of-G",)  # it remembers
    assert book.accept(OTTO, freeze=True).frozen[0] == "G"
    assert charge(book).state == "refused"


def test_an_acceptance_that_fails_ends_no_doubt(url, tmp_path, opened, monkeypatch):
    lose(url, tmp_path, opened)
    book = opened(url)

    def fail(*_, **__):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("privcheck.ledger.transitions.note", fail)
        with pytest.raises(StoreError, match="disk is full"):
            book.accept(OTTO, freeze=True)
    for one in (book, opened(url)):
        with pytest.raises(StoreError, match="read-only"):
            charge(one)
    assert left(book) == Fraction(9, 10)
    assert book.accept(OTTO, freeze=True).frozen


def test_an_acceptance_that_does_not_get_the_file_ends_no_doubt(tmp_path, opened, monkeypatch):
    url = f"sqlite:///{tmp_path}/budget.db"
    budget_stores.begin(url).store.close()
    lose(url, tmp_path, opened)
    monkeypatch.setattr("privcheck.ledger.sqlite._WAIT", 0.2)
    book = opened(url)
    with closing(sqlite3.connect(tmp_path / "budget.db", isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing"):
            book.accept(OTTO, freeze=True)
        raw.execute("ROLLBACK")
    with pytest.raises(StoreError, match="older copy"):
        charge(book)


def test_nothing_is_charged_while_a_copy_is_being_accepted(url, tmp_path, opened, monkeypatch):
    """By threads of the same process, by other processes, opened before or meanwhile."""
    monkeypatch.setattr("privcheck.ledger.sqlite._WAIT", 0.5)
    lost, *_ = lose(url, tmp_path, opened)
    book, inside, go = opened(url), threading.Event(), threading.Event()
    from privcheck.ledger import backups

    freeze = backups._freeze

    def wait(*args, **more):
        inside.set()
        assert go.wait(30)
        return freeze(*args, **more)

    monkeypatch.setattr(backups, "_freeze", wait)
    taken = []
    accepting_thread = threading.Thread(target=lambda: taken.append(book.accept(OTTO, freeze=True)))
    accepting_thread.start()
    assert inside.wait(30)
    states = []

    def work(one):
        try:
            states.append(charge(one).state)
        except StoreError as error:
            states.append(type(error).__name__)

    threads = [threading.Thread(target=work, args=(one,)) for one in (book, lost, opened(url))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(1)
    assert "committed" not in states
    go.set()
    for thread in (*threads, accepting_thread):
        thread.join(30)
    assert set(states) == {"StoreError"}
    assert taken[0].accepted
    assert charge(book).state == "refused"


def test_what_is_lost_with_its_dataset_or_its_grant_cannot_be_granted_again(url, tmp_path, opened):
    """A grant that is lost is in no sum of the policy: whoever made it anew would spend it twice."""
    book = opened(url)
    book.set_policy(OTTO, dataset="two", epsilon=1, delta=0, unit=budget_stores.UNIT, remainder="epsilon")
    half = {"dataset": "two", "currency": "epsilon", "cap": "0.5", "delta": 0}
    book.grant(OTTO, name="first", **half)
    other = {"epsilon": 1, "delta": 0, "unit": budget_stores.UNIT, "remainder": "epsilon"}
    save(url, tmp_path / "backup")
    event = {"type": "pure", "epsilon": "0.5"}
    book.grant(OTTO, name="second", **half)
    book.set_policy(OTTO, dataset="three", **other)
    book.grant(OTTO, name="third", **{**half, "dataset": "three"})
    kept = [
        book.charge(OTTO, grant=grant, unit="dataset", event=event).receipt for grant in ("first", "second", "third")
    ]
    put_back(url, tmp_path / "backup")
    again = opened(url)
    taken = again.accept(OTTO, receipts=kept, freeze=True)
    names = (
        ("(registry)",) if "postgresql" not in str(url) else ()
    )  # known by the marks, which PostgreSQL does not have
    assert (taken.lost, taken.frozen) == ((*names, "three", "two"), ("first",))
    assert taken.revoked == (("officer",) if names else ())  # which tokens were ended since then nobody knows
    for make in (
        lambda: again.set_policy(OTTO, dataset="three", **other),
        lambda: again.grant(OTTO, name="new", **half),
    ):
        with pytest.raises(ParameterError, match="are lost: an older copy of the ledger was restored"):
            make()
    assert again.verify(OTTO).ok


def test_a_promoted_standby_is_noticed_by_the_service_that_goes_on_with_it(tmp_path, opened):
    """It has not replayed the last charge, and has the address of the server before it."""
    first = postgres_cluster.Cluster()
    try:
        url = first.new()
        book = budget_stores.begin(url)
        charge(book)
        with first.standby() as standby:
            standby.wait_for(first)
            standby.kill()
            lost = charge(book).receipt
            first.kill()
            standby.start_in(first.folder)
            standby.ask("SELECT pg_promote()")
            with pytest.raises(StoreError, match="restored or promoted; compare it"):
                charge(book)
            again = opened(url)
            assert again.accept(OTTO, receipts=[lost]).lost == ("of-G",)
            assert again.accept(OTTO, receipts=[lost], freeze=True).accepted
            assert (charge(again).state, charge(again, "H").state) == ("refused", "committed")
            again.store.close()
            book.store.close()
    finally:
        first.remove()
