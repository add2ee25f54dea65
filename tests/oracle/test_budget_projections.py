"""What is read in place of whole chains, against a twin that reads every row by itself; on both stores.

And what every reader takes of a store does not grow with the charges behind it: SQLite's own steps are counted.
"""

import json
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import budget_stores
from postgres_cluster import shared
from privcheck.errors import BudgetError
from privcheck.ledger import Actor, Book, create_store, open_store, rows, schema
from privcheck.ledger import grants as granting
from privcheck.ledger.chains import read_checkpoint, write_checkpoint
from privcheck.ledger.views import charges_of_rows, join_charged
from privcheck.service.pages import queries

OTTO, OLGA = Actor(name="otto", role="officer"), Actor(name="olga", role="officer")
BEGAN = datetime(2027, 1, 1, tzinfo=UTC)
ACTS = ("charge", "charge", "reserve", "reserve", "commit", "release", "consistent", "violation", "freeze", "grant",
        "dataset", "blocks", "check")  # fmt: skip
histories = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 10**6)), min_size=1, max_size=40)


class Clock:
    hours = 0.0

    def __call__(self):
        return BEGAN + timedelta(hours=self.hours)


def open_dataset(book, name):
    book.set_policy(OTTO, dataset=name, epsilon="900", delta="1e-6", unit=budget_stores.UNIT)


def act(book, what, number, made):
    """Does one thing, chosen by a number among what there is; what is refused changes nothing."""
    names, grants, charges = made["datasets"], made["grants"], made["charges"]
    event = {"type": "zcdp", "rho": f"0.0{1 + number % 7}"}
    if what == "dataset" or not names:
        names.append(f"d{len(names)}")
        open_dataset(book, names[-1])
    elif what == "blocks":
        fresh, empty = f"b{number}", f"e{len(names)}"
        names.append(empty)
        open_dataset(book, empty)
        book.add_blocks(OTTO, empty, [fresh, f"{fresh}x"], disjoint_users="by month")
        made["blocks"][empty] = [fresh]
    elif what == "grant" or not grants:
        of = names[number % len(names)]
        more = {"blocks": made["blocks"][of]} if of in made["blocks"] else {}
        try:
            book.grant(OTTO, name=f"g{len(grants)}", dataset=of, currency="rho", cap="1", delta="1e-6", **more)
        except BudgetError:
            return
        grants.append(f"g{len(grants)}")
    elif what in {"charge", "reserve"}:
        ask = book.charge if what == "charge" else book.reserve
        more = {} if what == "charge" else {"seconds": 600 + number % 7200}
        done = ask(OTTO, grant=grants[number % len(grants)], unit="dataset", event=event, **more)
        charges += [done.charge] if done.charge else []
    elif what == "freeze":
        book.freeze(OTTO, grants[number % len(grants)], reason="a look")
    elif charges and what in {"consistent", "violation"}:
        book.add_evidence(OTTO, charges[number % len(charges)], verdict=what, report="r")
    elif charges and what in {"commit", "release"}:
        name = charges[number % len(charges)]
        if book.find_charge(OTTO, name).state == "reserved":
            if what == "commit":
                book.commit(OTTO, name)
            else:
                book.release(OLGA, name, evidence="never began")


@contextmanager
def lived(kind, history):
    """Yields a ledger with a history, and the check of it that was written to a file on the way."""
    with tempfile.TemporaryDirectory() as folder, budget_stores.STORES[kind](Path(folder)) as store:
        clock = Clock()
        book, _ = Book.init(store, clock=clock)
        made = {"datasets": [], "grants": [], "charges": [], "blocks": {}}
        file = Path(folder) / "checked.json"
        for what, number in history:
            clock.hours += (number % 5) / 4
            if what == "check":
                found = book.verify(OTTO, after=read_checkpoint(file))
                assert found.ok, found.problems
                write_checkpoint(file, found.checkpoint)
            else:
                act(book, what, number, made)
        yield book, file


def read_all(transaction):
    """The twin: every row as the store has it, by nothing but its table."""
    found = transaction.all(
        "SELECT dataset, seq, kind, budget, charge, body, written_at FROM entry WHERE dataset <> '(registry)' "
        "ORDER BY dataset, seq"
    )
    return [(*row[:5], json.loads(row[5]), row[6]) for row in found]


def check_reading(book):
    now = book.now()
    with book.store.read() as transaction:
        every = read_all(transaction)
        names = rows.datasets(transaction)
        assert names == sorted({row[0] for row in every})
        for name in names:
            mine = [row for row in every if row[0] == name]
            for kind in ("policy", "blocks", "grant", "freeze", "evidence"):
                found = rows.rows_of_kind(transaction, name, kind)
                assert [row.seq for row in found] == [row[1] for row in mine if row[2] == kind]
            assert granting.find_policy(transaction, name).to_dict() == mine[0][5]
            made = [row[5]["grant"] for row in mine if row[2] == "grant"]
            assert [grant.to_dict() for grant in granting.grants_of(transaction, name)] == made
            assert rows.is_charged(transaction, name) == any(row[2] == "charge" for row in mine)
            charged = charges_of_rows(rows.rows_of_dataset(transaction, name))
            told = join_charged((one["state"], one["event"]) for one in charged)
            assert Counter({tuple(e.items()): e["count"] for e in told}) == count_events(mine)
        open_ = reserved(every)
        listed, count = schema.find_reserved(transaction, most=3)
        in_order = sorted(open_, key=lambda charge: (open_[charge][1], charge))
        assert (list(listed), count) == (in_order[:3], len(open_))
        assert listed == {charge: open_[charge][0] for charge in in_order[:3]}
        queue = queries.queue_of(transaction, now=now)
        assert {one.id for one in queue.expired} == {name for name, (_, ends) in open_.items() if ends <= now}
        assert {one.id for one in (*queue.expired, *queue.running)} == set(open_)
        assert {one["grant"] for one in queue.frozen} == {row[3] for row in every if row[2] == "freeze"}
        found = [row for row in every if row[2] == "evidence" and row[5]["verdict"] == "violation"]
        assert [(row.dataset, row.seq) for row in queue.violations] == [row[:2] for row in found]


def reserved(every):
    """The datasets and ends of reservations that are open, from all rows."""
    begun = {row[4]: row for row in every if row[2] == "charge"}
    last = {row[4]: row[5]["state"] for row in every if row[4] is not None}
    return {name: (begun[name][0], begun[name][5]["expires"]) for name, state in last.items() if state == "reserved"}


def count_events(mine):
    last = {row[4]: row[5]["state"] for row in mine if row[4] is not None}
    counts = Counter(
        (row[5]["event"]["type"], row[5]["event"]["rho"])
        for row in mine
        if row[2] == "charge" and last[row[4]] != "released"
    )
    return Counter({(("count", n), ("rho", rho), ("type", kind)): n for (kind, rho), n in counts.items()})


@pytest.mark.parametrize("kind", sorted(budget_stores.STORES))
def test_what_is_read_is_what_a_walk_through_every_row_finds(kind):
    @settings(max_examples=25 if kind == "sqlite" else 6, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories)
    def run(history):
        with lived(kind, history) as (book, file):
            check_reading(book)
            whole, later = book.verify(OTTO), book.verify(OTTO, after=read_checkpoint(file))
            assert whole.ok
            assert (later.ok, later.datasets) == (True, whole.datasets)
            assert later.checkpoint == whole.checkpoint  # whatever was read before, and wherever it was cut
            if later.since is not None:
                assert later.rows == whole.rows - sum(later.since.values())

    run()


def begin(url):
    """A ledger with two datasets, a reservation that is open and one of each kind of row."""
    book = budget_stores.begin(url)
    event = {"type": "zcdp", "rho": "0.125"}
    done = book.charge(OTTO, grant="G", unit="dataset", event=event, key="k")
    book.reserve(OTTO, grant="G", unit="dataset", event=event)
    book.commit(OTTO, book.reserve(OTTO, grant="H", unit="dataset", event=event).charge)
    book.add_evidence(OTTO, done.charge, verdict="consistent", report="r")
    assert book.verify(OTTO).ok
    return book


@pytest.fixture(params=sorted(budget_stores.STORES))
def store(request, tmp_path):
    with budget_stores.STORES[request.param](tmp_path) as made:
        yield made


def change(url, *statements):
    """Somebody who may write the store, past every guard of ours."""
    if url.startswith("postgresql:"):
        with closing(psycopg.connect(url, autocommit=True)) as raw:
            for statement in ("SET session_replication_role = replica", *statements):
                raw.execute(statement)
        return
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw, raw:
        for name in ("entry_no_update", "entry_no_delete"):
            raw.execute(f"DROP TRIGGER IF EXISTS {name}")
        for statement in statements:
            raw.execute(statement)


WRONG = {
    "a reservation that is not listed": ("DELETE FROM reservation", "the table of reservations lacks it"),
    "one that is over and listed": (
        "INSERT INTO reservation (charge, dataset, expires) VALUES ('c-1', 'of-G', '2027')", "but it is not open",
    ),
    "one with another end": ("UPDATE reservation SET expires = '2099'", "another end"),
    "a grant of another dataset": ("UPDATE budget SET dataset = 'of-H' WHERE name = 'G'", "it belongs to of-G"),
    "a grant that is not listed": ("DELETE FROM budget WHERE name = 'G'", "the table of grants lacks it"),
    "a grant that no row has made": ("INSERT INTO budget VALUES ('I', 'of-G')", "the row that made it is missing"),
    "a dataset that is not listed": ("DELETE FROM dataset WHERE name = 'of-G'", "the table of datasets lacks it"),
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(budget_stores.STORES))
@pytest.mark.parametrize("what", WRONG)
def test_a_table_that_is_not_what_the_rows_say_is_told(tmp_path, kind, what):
    statement, told = WRONG[what]
    url = f"sqlite:///{tmp_path}/budget.db" if kind == "sqlite" else shared().new()
    book = begin(url)
    before = book.verify(OTTO).checkpoint
    change(url, statement)
    for after in (None, before):
        problems = book.verify(OTTO, after=after).problems
        assert any(told in problem for problem in problems), problems
    if "reservation" in statement:
        book.rebuild(OTTO)
        assert book.verify(OTTO).ok
    book.store.close()


def test_a_row_that_the_index_lacks_is_told(tmp_path):
    """The index is taken out of the schema, a grant is made, and the index is put back as it was."""
    path = tmp_path / "budget.db"
    begin(str(path)).store.close()
    told = "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = 'entry_rare'"
    with closing(sqlite3.connect(path)) as raw, raw:
        (kept,) = raw.execute(told).fetchall()
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("DELETE FROM sqlite_master WHERE name = 'entry_rare'")
    book = Book(open_store(str(path)))
    book.set_policy(OTTO, dataset="third", epsilon="9", delta="1e-6", unit=budget_stores.UNIT)
    book.store.close()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", kept)
    book = Book(open_store(str(path)))
    assert any("the index entry_rare lacks it" in problem or "policy is missing" in problem
               for problem in book.verify(OTTO).problems)  # fmt: skip
    book.store.close()
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("REINDEX")
    book = Book(open_store(str(path)))
    assert book.verify(OTTO).ok
    book.store.close()


@pytest.mark.parametrize("wrong", ["cost", "grant"])
def test_a_reservation_that_ends_otherwise_than_it_began_is_told(tmp_path, wrong):
    """It would give back more than was reserved, or give it back where it was not; every hash and sum fits."""
    book, _ = Book.init(create_store(str(tmp_path / "budget.db")))
    open_dataset(book, "d")
    for name in ("G", "H"):
        book.grant(OTTO, name=name, dataset="d", currency="rho", cap="1", delta="1e-6")
    event = {"type": "zcdp", "rho": "0.25"}
    book.charge(OTTO, grant="G", unit="dataset", event=event)
    book.reserve(OTTO, grant="G", unit="dataset", event=event)
    over = book.reserve(OTTO, grant="G", unit="dataset", event=event)
    of, cost = ("H", "0.25") if wrong == "grant" else ("G", "0.5")
    with book.store.write() as transaction:
        reserved = "0" if of == "G" else "-0.25"
        sums = {"committed": {"amount": "0.25" if of == "G" else "0", "lost": "0"},
                "reserved": {"amount": reserved, "lost": "0"}, "used": [], "frozen": False}  # fmt: skip
        body = {"state": "released", "cost": {"amount": cost, "lost": "0"}, "evidence": "none", "balance": sums}
        rows.append(transaction, dataset="d", kind="release", actor="olga", body=body, at=book.now(), grant=of,
                    charge=over.charge, shares=(2**60 if of == "G" else 0, 0))  # fmt: skip
    assert any("was reserved in grant 'G', or at another cost" in one for one in book.verify(OLGA).problems)
    book.store.close()


def test_a_charge_that_is_over_is_begun_and_ended_once(store):
    book, _ = Book.init(store)
    open_dataset(book, "d")
    book.grant(OTTO, name="G", dataset="d", currency="rho", cap="1", delta="1e-6")
    done = book.charge(OTTO, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.25"})
    before = book.verify(OTTO).checkpoint
    with store.write() as transaction:
        body = rows.rows_of_charge(transaction, done.charge)[0].body
        rows.append(transaction, dataset="d", kind="charge", actor="eve", body=body, at=book.now(), grant="G",
                    charge=done.charge, shares=(2**60, 0))  # fmt: skip
    for after in (None, before):
        problems = book.verify(OTTO, after=after).problems
        assert any("cannot be committed after it was committed or released" in one for one in problems)


def test_an_old_store_gets_its_index_and_its_open_reservations(tmp_path):
    url = str(tmp_path / "budget.db")
    book = begin(url)
    event = {"type": "zcdp", "rho": "0.125"}
    claim = {"algorithm": "x", "note": '"state":"reserved"'}  # as a body with that state would have it
    book.charge(OTTO, grant="G", unit="dataset", event=event, claim=claim)
    for _ in range(3):
        book.release(OLGA, book.reserve(OTTO, grant="H", unit="dataset", event=event).charge, evidence="none")
    with book.store.read() as transaction:
        wanted = transaction.all("SELECT * FROM reservation")
        version = transaction.one("SELECT value FROM meta WHERE name = 'version'")
    book.store.close()
    change(url, "DROP TABLE reservation", "DROP INDEX entry_rare", "UPDATE meta SET value = '5' WHERE name = 'version'")
    again = Book(open_store(url))
    with again.store.read() as transaction:
        assert transaction.all("SELECT * FROM reservation") == wanted
        assert transaction.one("SELECT value FROM meta WHERE name = 'version'") == version
    assert len(wanted) == 1
    assert again.verify(OTTO).ok
    again.store.close()


def steps(book, ask):
    """How many hundred steps of SQLite's machine a question takes."""
    counted = [0]

    def count():
        counted[0] += 1

    with book.store.read() as transaction:
        connection = transaction._connection
    connection.set_progress_handler(count, 100)
    ask()
    connection.set_progress_handler(None, 0)
    return counted[0]


def test_what_is_asked_does_not_take_longer_after_many_charges(tmp_path):
    book, _ = Book.init(create_store(str(tmp_path / "budget.db")))
    open_dataset(book, "d")
    for name in ("G", "H"):
        book.grant(OTTO, name=name, dataset="d", currency="rho", cap="100", delta="1e-6")
    event = {"type": "zcdp", "rho": "0.001"}
    kept = [book.reserve(OTTO, grant="G", unit="dataset", event=event).charge for _ in range(3)]
    book.add_evidence(OTTO, kept[0], verdict="consistent", report="r")

    def read(ask):
        def run():
            with book.store.read() as transaction:
                ask(transaction)

        return run

    def fresh():  # as a command's, which has read nothing before
        again = Book(book.store)
        again.charge(OTTO, grant="G", unit="dataset", event=event)

    def too_much():
        with pytest.raises(BudgetError):
            book.grant(OTTO, name="I", dataset="d", currency="rho", cap="100000", delta="1e-6")

    questions = {
        "show": lambda: book.show(OTTO),
        "queue": read(lambda t: queries.queue_of(t, now=book.now())),
        "newest": read(lambda t: queries.newest_charges(t, "d", before=None, most=26, now=book.now())),
        "history": read(lambda t: queries.history_of(t, kept[0], now=book.now())),
        "page": lambda: book.charges(OTTO, "d", after=30, most=26),
        "quote": lambda: book.quote(OTTO, grant="G", unit="dataset", event=event),
        "charge": fresh,
        "is charged": read(lambda t: rows.is_charged(t, "d")),
        "grant": too_much,
    }

    def spend(count):
        asked = book.prepare(OTTO, "charge", grant="H", unit="dataset", event=event)
        with book.write() as transaction:
            for _ in range(count):
                book.apply(transaction, asked)

    spend(60)
    first = {name: steps(book, ask) for name, ask in questions.items()}
    spend(4000)
    then = {name: steps(book, ask) for name, ask in questions.items()}
    assert {name: (first[name], then[name]) for name in questions if then[name] > 1.5 * first[name] + 3} == {}
    book.store.close()
