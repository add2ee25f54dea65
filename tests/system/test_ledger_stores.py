"""Stores under many writers and under kill −9: never more than the cap, and nothing lost that was acknowledged."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import budget_stores
import ledger_client
from ledger_client import EVENT, OFFICER
from privcheck.errors import StoreError
from privcheck.ledger import Book, create_store, open_store, rows
from privcheck.ledger.writer import Writer

ROUNDS = 20


@pytest.fixture
def url(new_ledger):
    """A ledger with a grant for 500 charges, and one for a million."""
    found = new_ledger()
    book, _ = Book.init(create_store(found))
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap="5", delta="1e-6")
    book.store.close()
    return found


@pytest.fixture
def wide(new_ledger):
    found = new_ledger()
    book, _ = Book.init(create_store(found))
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap="1e6", delta="1e-6")
    book.store.close()
    return found


def start(url, threads, requests):
    """Starts a client, of which every process is forked."""
    command = [sys.executable, ledger_client.__file__, url, str(threads), str(requests)]
    client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    assert client.stdout.readline() == "ready\n"
    return client


def begin(client, prefix):
    """Lets a client charge; returns the number of its process."""
    client.stdin.write(f"{prefix}\n")
    word, number = client.stdout.readline().split()
    assert word == "pid"
    return int(number)


def answers(client):
    """Returns what a client answered until its process ended."""
    return list(iter(client.stdout.readline, "ended\n"))


def written(url):
    """Returns how often each key was committed, and the grant's balance, from the rows themselves."""
    store = open_store(url)
    with store.read() as transaction:
        found = transaction.all("SELECT request_key, body FROM entry WHERE kind = 'charge' ORDER BY seq")
    store.close()
    bodies = [json.loads(body) for _, body in found]
    assert all(body["state"] == "committed" for body in bodies)
    return Counter(key for key, _ in found), bodies[-1]["balance"]["committed"]["amount"] if bodies else "0"


@pytest.mark.slow
def test_three_thousand_requests_for_five_hundred_places_get_five_hundred(url):
    with start(url, 64, 1000) as one, start(url, 64, 1000) as two, start(url, 64, 1000) as three:
        for i, client in enumerate((one, two, three)):
            begin(client, f"p{i}")
        said = [line.split() for client in (one, two, three) for line in answers(client)]
    assert Counter(state for state, _ in said) == {"committed": 500, "refused": 2500}
    keys, spent = written(url)
    assert keys == Counter(key for state, key in said if state == "committed")
    assert spent == "5"


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_where_the_client_is_killed(wide):
    acknowledged = set()
    with start(wide, 16, 10**6) as client:
        for turn in range(ROUNDS):
            process = begin(client, f"r{turn}")
            first = client.stdout.readline()
            time.sleep(0.01 * turn)
            os.kill(process, signal.SIGKILL)
            lines = [first, *answers(client)]
            acknowledged |= {line.split()[1] for line in lines if line.startswith("committed ")}
            keys, _ = written(wide)
            assert acknowledged <= keys.keys()
            assert set(keys.values()) == {1}
    store = open_store(wide)
    assert Book(store).verify(OFFICER).ok
    store.close()
    keys, spent = written(wide)
    assert len(acknowledged) > 3 * ROUNDS
    assert float(spent) == pytest.approx(len(keys) / 100)


@pytest.mark.every_change
@pytest.mark.slow
def test_nothing_acknowledged_is_lost_where_the_database_is_killed(postgres):
    url = postgres.new()
    book, _ = Book.init(create_store(url))
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap="1e6", delta="1e-6")
    acknowledged, unknown = set(), set()
    for turn in range(ROUNDS):
        writer = Writer(book, timeout=60)

        def work(name, writer=writer):
            for i in range(10**6):
                try:
                    assert (
                        writer.charge(OFFICER, grant="G", unit="dataset", event=EVENT, key=f"{name}-{i}").state
                        == "committed"
                    )
                except StoreError:
                    unknown.add(f"{name}-{i}")
                    return
                acknowledged.add(f"{name}-{i}")

        before = len(acknowledged)
        threads = [threading.Thread(target=work, args=(f"r{turn}-{j}",)) for j in range(16)]
        for thread in threads:
            thread.start()
        while len(acknowledged) == before:
            time.sleep(0.001)
        time.sleep(0.01 * turn)
        postgres.kill()
        for thread in threads:
            thread.join()
        writer.close()
        postgres.start()
        keys, _ = written(url)
        assert acknowledged <= keys.keys()
        assert set(keys.values()) == {1}
    assert len(acknowledged) > 3 * ROUNDS
    for key in unknown:  # asked again with the same key: written once, whatever had become of it
        assert book.charge(OFFICER, grant="G", unit="dataset", event=EVENT, key=key).state == "committed"
    keys, spent = written(url)
    assert keys == Counter(acknowledged | unknown)
    assert book.verify(OFFICER).ok
    assert float(spent) == pytest.approx(len(keys) / 100)
    book.store.close()


def test_the_tables_themselves_refuse_more_than_a_cap_and_a_second_row_in_a_place(url):
    """Even where a lock were forgotten: the guards are the database's."""
    store = open_store(url)
    book = Book(store)
    book.charge(OFFICER, grant="G", unit="dataset", event=EVENT)
    with store.read() as transaction:
        row = transaction.one("SELECT * FROM entry WHERE kind = 'charge'")
    names = [
        "dataset", "seq", "kind", "budget", "charge", "actor", "request_key", "held", "lost", "body", "written_at",
        "prev", "hash",
    ]  # fmt: skip
    fields = dict(zip(names, row, strict=True))
    marks = ", ".join("?" * len(names))
    insert = f"INSERT INTO entry ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of the test's own
    for change in (
        {"hash": "other"},
        {"seq": 9, "hash": "o", "held": 2**62 + 1},
        {"seq": 9, "hash": "o", "dataset": "X"},
    ):
        with pytest.raises(StoreError), store.write() as transaction:
            transaction.run(insert, [*{**fields, **change}.values()])
    for statement in ("DELETE FROM entry", "UPDATE entry SET held = 0", "UPDATE entry SET body = '{}' WHERE seq = 1"):
        with pytest.raises(StoreError, match="only added"), store.write() as transaction:
            transaction.run(statement)
    with store.read() as transaction:
        assert transaction.one("SELECT count(*) FROM entry WHERE kind = 'charge'") == (1,)
    store.close()


def test_a_ledger_is_made_once_and_opened_where_it_is(new_ledger):
    url, empty = new_ledger(), new_ledger()
    Book.init(create_store(url))
    with pytest.raises(StoreError, match=r"(already has a ledger|file already exists)"):
        create_store(url)
    with pytest.raises(StoreError, match=r"(no such|not a) ledger"):
        open_store(empty)
    assert open_store(url).read_only == ""


# --- PostgreSQL alone -------------------------------------------------------------------------------------------------


def test_two_writers_of_one_dataset_wait_for_each_other(postgres):
    """Without the lock both would read the same head; the second one's row would break PRIMARY KEY (dataset, seq)."""
    url = postgres.new()
    book, _ = Book.init(create_store(url))
    for name in ("G", "H"):
        budget_stores.grant(book, OFFICER, name=name, dataset=f"D{name}", currency="rho", cap="5", delta="1e-6")
    other = Book(open_store(url))
    done = []

    def charge(grant):
        done.append(other.charge(OFFICER, grant=grant, unit="dataset", event=EVENT).state)

    with book.write() as transaction:
        book.apply(transaction, book.prepare(OFFICER, "charge", grant="G", unit="dataset", event=EVENT))
        waits, goes = (threading.Thread(target=charge, args=(grant,)) for grant in "GH")
        waits.start()
        goes.start()
        goes.join(10)  # another dataset's writer does not wait
        waits.join(0.3)
        assert done == ["committed"]
        assert waits.is_alive()
    waits.join(10)
    assert done == ["committed", "committed"]


def test_a_deadlock_with_others_is_an_error_that_one_may_ask_again_after(postgres):
    url = postgres.new()
    book, _ = Book.init(create_store(url))
    for name in ("G", "H"):
        budget_stores.grant(book, OFFICER, name=name, dataset=f"D{name}", currency="rho", cap="5", delta="1e-6")
    store, ready, said = open_store(url), threading.Barrier(2), []

    def lock(names):
        try:
            with store.write() as transaction:
                transaction.lock(names[0])
                ready.wait(10)
                transaction.lock(names[1])
        except StoreError as error:
            said.append(str(error))

    threads = [threading.Thread(target=lock, args=(names,)) for names in (("DG", "DH"), ("DH", "DG"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 1
    assert "ask again with the same key" in said[0]
    assert book.charge(OFFICER, grant="G", unit="dataset", event=EVENT).state == "committed"


def test_a_reader_sees_one_state_and_cannot_write(postgres):
    store = create_store(postgres.new())
    with store.read() as reader:
        assert rows.datasets(reader) == []
        with store.write() as writer:
            writer.run("INSERT INTO dataset (name) VALUES (?)", ("later",))
        assert rows.datasets(reader) == []
    with pytest.raises(StoreError, match="read-only"), store.read() as reader:
        reader.run("INSERT INTO dataset (name) VALUES (?)", ("never",))
    assert store.read_only


def test_connections_that_the_server_closed_are_replaced(postgres):
    url = postgres.new()
    book, _ = Book.init(create_store(url))
    postgres.disconnect(url)
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap="5", delta="1e-6")
    assert book.charge(OFFICER, grant="G", unit="dataset", event=EVENT).state == "committed"
    asked = book.prepare(OFFICER, "charge", grant="G", unit="dataset", event=EVENT, key="k")
    with pytest.raises(StoreError, match="ask again with the same key"), book.write() as transaction:  # noqa: PT012
        book.apply(transaction, asked)
        postgres.disconnect(url)
    assert book.charge(OFFICER, grant="G", unit="dataset", event=EVENT, key="k").balance["committed"] == "0.02"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql:///nothing?host=/nowhere", "cannot be reached"),
        ("postgresql://ann:secret@127.0.0.1:1/x", "cannot be reached"),
        ("postgresql://ann:secret@127.0.0.1:1/x?colour=blue", "colour"),
    ],
)
def test_a_server_that_is_not_there_is_said_without_the_password(url, said):
    with pytest.raises(StoreError, match=said) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_a_server_that_may_lose_what_it_acknowledged_is_refused(postgres):
    url = postgres.new()
    name = url.split("/")[3].split("?")[0]
    postgres.ask(f"ALTER DATABASE {name} SET synchronous_commit = off")
    store = create_store(url)
    with store.read() as transaction:
        assert transaction.one("SELECT current_setting('synchronous_commit')") == ("on",)
    postgres.ask("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(StoreError, match="expected a database in UTF8"):
        create_store(postgres.url("latin"))


def test_without_psycopg_one_message_says_what_to_install(tmp_path):
    (tmp_path / "psycopg.py").write_text("raise ImportError('not here')")
    program = "from privcheck.ledger import open_store\nopen_store('postgresql:///x')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{program}"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parent,
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("a ledger in PostgreSQL needs psycopg: pip install 'privcheck[postgres]'")
