"""What pages read of the ledger, on both stores, beside a twin that walks every row."""

import random
from collections import defaultdict

import pytest

import budget_stores
from demo_pages import OFFICER
from privcheck.ledger import Book, rows
from privcheck.service.pages.queries import course_of, history_of, newest_charges, queue_of


@pytest.fixture(params=sorted(budget_stores.STORES))
def store(request, tmp_path):
    with budget_stores.STORES[request.param](tmp_path) as made:
        yield made


def live(store, rng, steps):
    """Lets a ledger live for some random steps; returns it."""
    clock = budget_stores.Clock()
    book, _ = Book.init(store, clock=clock)
    for dataset in ("d", "e"):
        book.set_policy(OFFICER, dataset=dataset, epsilon="50", delta="1e-6", unit=budget_stores.UNIT)
        for number in range(2):
            book.grant(OFFICER, name=f"{dataset}{number}", dataset=dataset, currency="rho", cap="1", delta="1e-6")
    open_ = []
    for _ in range(steps):
        clock.hours += rng.choice([0, 0.3, 2])
        grant, event = rng.choice(["d0", "d1", "e0", "e1"]), {"type": "zcdp", "rho": "0.0005"}
        what = rng.choice(["charge", "reserve", "reserve", "commit", "release", "audit"])
        if what == "charge":
            book.charge(OFFICER, grant=grant, unit="dataset", event=event)
        elif what == "reserve":
            open_.append(
                book.reserve(OFFICER, grant=grant, unit="dataset", event=event, seconds=rng.choice([600, 36000])).charge
            )
        elif open_ and what == "commit":
            book.commit(OFFICER, open_.pop(rng.randrange(len(open_))))
        elif open_ and what == "release":
            name = open_[-1]
            if not book.find_charge(OFFICER, name).expired:
                book.release(OFFICER, open_.pop(), evidence="never began")
        elif open_ and what == "audit" and rng.random() < 0.2:
            verdict = rng.choice(["consistent", "violation"]) if grant == "e1" else "consistent"
            book.add_evidence(OFFICER, open_[0], verdict="consistent", report="r")
            if verdict == "violation" and book.find_charge(OFFICER, open_[0]).grant == "e1":
                book.add_evidence(OFFICER, open_[0], verdict="violation", report="r2")
    return book


def walk(transaction):
    """Returns all rows by dataset, and the last row's state of every charge with its first row."""
    every = {name: list(rows.rows_of_dataset(transaction, name)) for name in ("d", "e")}
    about = defaultdict(list)
    for row in (*every["d"], *every["e"]):
        if row.charge is not None:
            about[row.charge].append(row)
    return every, about


@pytest.mark.parametrize("seed", range(3))
def test_reading_agrees_with_a_walk_through_every_row(store, seed):
    book = live(store, random.Random(seed), 150)  # noqa: S311
    now = book.now()
    with store.read() as transaction:
        every, about = walk(transaction)
        queue = queue_of(transaction, now=now)
        waiting = {n: r for n, r in about.items() if r[-1].body["state"] == "reserved"}
        expired = {name for name, found in waiting.items() if found[0].body["expires"] <= now}
        assert {charge.id for charge in queue.expired} == expired
        assert {charge.id for charge in queue.running} == set(waiting) - expired
        found = [row for name in every for row in every[name] if row.kind == "evidence"]
        assert list(queue.violations) == [row for row in found if row.body["verdict"] == "violation"]
        frozen = {row.grant for name in every for row in every[name] if row.kind == "freeze"}
        assert {one["grant"] for one in queue.frozen} == frozen
        for dataset, chain in every.items():
            opened = [row for row in chain if row.kind == "charge"][::-1]
            shown = newest_charges(transaction, dataset, before=None, most=10, now=now)
            assert [charge.id for charge in shown] == [row.charge for row in opened[:10]]
            older = newest_charges(transaction, dataset, before=shown[-1].seq, most=10**6, now=now)
            assert [charge.id for charge in older] == [row.charge for row in opened[10:]]
            for grant in (f"{dataset}0", f"{dataset}1"):
                course = [(row.at, row.held / 2**62) for row in chain if row.grant == grant]
                assert set(course_of(transaction, grant).points) <= set(course)
                assert course_of(transaction, grant).points[-1] == course[-1]
        name = next(iter(about))
        history = history_of(transaction, name, now=now)
        assert list(history.rows) == about[name]
        assert history.receipt.hash == about[name][-1].hash
        assert [row.body["of"] for row in history.evidence] == [name for row in found if row.body["of"] == name]


@pytest.mark.parametrize("count", [1, 2, 79, 80, 81, 400])
def test_the_course_of_spending_is_that_of_the_rows(store, count):
    book, _ = Book.init(store)
    book.set_policy(OFFICER, dataset="d", epsilon="50", delta="1e-6", unit=budget_stores.UNIT)
    book.grant(OFFICER, name="a", dataset="d", currency="rho", cap="1", delta="1e-6")
    book.grant(OFFICER, name="b", dataset="d", currency="rho", cap="1", delta="1e-6")
    event = {"type": "zcdp", "rho": "0.001"}
    asked = [book.prepare(OFFICER, "charge", grant=name, unit="dataset", event=event) for name in ("a", "b")]
    with book.write() as transaction:
        for n in range(2 * count - 2):
            book.apply(transaction, asked[n % 2])
    with store.read() as transaction:
        found = course_of(transaction, "a").points
        naive = [(row.at, row.held / 2**62) for row in rows.rows_of_dataset(transaction, "d") if row.grant == "a"]
    assert set(found) <= set(naive)
    assert (found[0], found[-1]) == (naive[0], naive[-1])
    assert len(found) == count if count <= 40 else 40 <= len(found) <= 80
