"""The writer that many threads share: the same answers as the book's, written together, apart where one is poisoned."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

import budget_stores
from privcheck.errors import FullError, IdempotencyError, ParameterError, StoreError
from privcheck.ledger import Book, create_store
from privcheck.ledger.writer import Writer

EVENT = {"type": "gaussian", "rho": "0.01"}


@pytest.fixture
def book(new_ledger):
    store = create_store(new_ledger())
    found, token = Book.init(store)
    officer = found.find_actor(token)
    for dataset in ("one", "two"):
        budget_stores.grant(found, officer, name=f"g-{dataset}", dataset=dataset, currency="rho", cap="1", delta="1e-6")
    yield found, officer
    store.close()


@pytest.fixture
def writer(book):
    made = Writer(book[0])
    yield made
    made.close()


class Held:
    """A book whose first transaction waits until it is let go, so that what comes meanwhile shares the second."""

    def __init__(self, book):
        self.book, self.go, self.begun, self.sizes = book, threading.Event(), threading.Event(), []

    def __getattr__(self, name):
        return getattr(self.book, name)

    @contextmanager
    def write(self):
        self.begun.set()
        assert self.go.wait(10)
        self.sizes.append(0)
        with self.book.write() as transaction:
            yield transaction

    def apply(self, transaction, prepared):
        self.sizes[-1] += 1
        if prepared.claim == {"poison": True}:
            transaction.run("INSERT INTO entry (dataset) VALUES (?)", ("nowhere",))
        return self.book.apply(transaction, prepared)


def wait_for(writer, number):
    until = time.monotonic() + 10
    while writer._queue.qsize() < number:
        assert time.monotonic() < until
        time.sleep(0.005)


def together(held, writer, calls):
    """Runs calls so that all but the first are written in one transaction; returns what each gave."""
    with ThreadPoolExecutor(len(calls) + 1) as pool:
        futures = [pool.submit(calls[0])]
        assert held.begun.wait(10)
        futures += [pool.submit(call) for call in calls[1:]]
        wait_for(writer, len(calls) - 1)
        held.go.set()
        return [f.exception() or f.result() for f in futures]


def test_what_waits_is_written_in_one_transaction_and_answered_as_the_book_does(book):
    found, officer = book
    held = Held(found)
    writer = Writer(held)
    grants = ["g-one"] + ["g-two", "g-one"] * 20
    answers = together(
        held,
        writer,
        [
            lambda i=i, g=g: writer.charge(officer, grant=g, unit="dataset", event=EVENT, key=f"k{i}")
            for i, g in enumerate(grants)
        ],
    )
    assert held.sizes == [1, 40]
    assert {a.state for a in answers} == {"committed"}
    assert len({a.charge for a in answers}) == len(grants)
    for i, (grant, answer) in enumerate(zip(grants, answers, strict=True)):
        assert found.charge(officer, grant=grant, unit="dataset", event=EVENT, key=f"k{i}") == answer
        assert writer.charge(officer, grant=grant, unit="dataset", event=EVENT, key=f"k{i}") == answer
    assert found.quote(officer, grant="g-one", unit="dataset", event=EVENT).balance["free"] == "0.79"
    writer.close()


def test_a_poisoned_request_touches_no_other(book):
    found, officer = book
    held = Held(found)
    writer = Writer(held)

    def ask(i):
        return writer.charge(
            officer, grant="g-one", unit="dataset", event=EVENT, key=f"k{i}", claim={"poison": True} if i == 4 else None
        )

    answers = together(held, writer, [lambda i=i: ask(i) for i in range(9)])
    assert isinstance(answers[4], StoreError)
    assert [a.state for i, a in enumerate(answers) if i != 4] == ["committed"] * 8
    assert found.quote(officer, grant="g-one", unit="dataset", event=EVENT).balance["committed"] == "0.08"
    writer.close()


@pytest.mark.parametrize("claim", [{"x": float("nan")}, {"x": "\ud800"}, {1, 2}])
def test_what_cannot_be_written_down_at_all_touches_no_other(book, claim):
    """Such claims are not JSON; where a caller lets one through, the error is his alone."""
    found, officer = book
    held = Held(found)
    writer = Writer(held)
    bad = replace(found.prepare(officer, "charge", grant="g-one", unit="dataset", event=EVENT, key="bad"), claim=claim)
    good = [
        lambda i=i: writer.charge(officer, grant="g-one", unit="dataset", event=EVENT, key=f"k{i}") for i in range(5)
    ]
    answers = together(held, writer, [*good[:2], lambda: writer.submit(bad), *good[2:]])
    assert isinstance(answers[2], Exception)
    assert [a.state for i, a in enumerate(answers) if i != 2] == ["committed"] * 5
    writer.close()


def test_a_key_that_was_used_for_something_else_is_told_without_writing_the_others_again(book):
    found, officer = book
    held = Held(found)
    writer = Writer(held)
    found.charge(officer, grant="g-one", unit="dataset", event=EVENT, key="k2")
    other = {"type": "gaussian", "rho": "0.02"}
    answers = together(
        held,
        writer,
        [lambda i=i: writer.charge(officer, grant="g-one", unit="dataset", event=other, key=f"k{i}") for i in range(6)],
    )
    assert isinstance(answers[2], IdempotencyError)
    assert held.sizes == [1, 5]
    assert [a.state for i, a in enumerate(answers) if i != 2] == ["committed"] * 5
    writer.close()


def test_a_hundred_places_for_many_threads_are_a_hundred(book, writer):
    """0.01 of a cap of 1: the hundred and first is refused, whoever asks."""
    _, officer = book
    with ThreadPoolExecutor(16) as pool:
        states = list(
            pool.map(lambda _: writer.charge(officer, grant="g-one", unit="dataset", event=EVENT).state, range(250))
        )
    assert states.count("committed") == 100
    assert states.count("refused") == 150


def test_reservations_are_written_too(book, writer):
    found, officer = book
    decision = writer.reserve(officer, grant="g-two", unit="dataset", event=EVENT, seconds=60)
    assert decision.state == "reserved"
    assert found.commit(officer, decision.charge).state == "committed"
    with pytest.raises(ParameterError):
        writer.reserve(officer, grant="g-two", unit="dataset", event=EVENT, seconds=0)
    with pytest.raises(ParameterError):
        writer.charge(officer, grant="g-two", unit="dataset", event={"type": "gaussian"})


def test_a_full_queue_and_a_late_answer_are_told(book):
    found, officer = book
    held = Held(found)
    writer = Writer(held, waiting=2, timeout=0.3)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(writer.charge, officer, grant="g-one", unit="dataset", event=EVENT, key="first")
        assert held.begun.wait(10)
        late = [
            pool.submit(writer.charge, officer, grant="g-one", unit="dataset", event=EVENT, key=f"late{i}")
            for i in range(2)
        ]
        wait_for(writer, 2)
        with pytest.raises(FullError, match="2 requests are already waiting"):
            writer.charge(officer, grant="g-one", unit="dataset", event=EVENT)
        for future in (first, *late):
            with pytest.raises(StoreError, match=r"no answer within 0\.3 s; ask again with the same key"):
                future.result()
    held.go.set()
    writer.close()
    balance = found.quote(officer, grant="g-one", unit="dataset", event=EVENT).balance
    assert balance["committed"] == "0.01"  # the one that was begun; those that still waited were left out
    assert found.charge(officer, grant="g-one", unit="dataset", event=EVENT, key="first").balance["committed"] == "0.01"
    with pytest.raises(StoreError, match="being closed"):
        writer.charge(officer, grant="g-one", unit="dataset", event=EVENT)


def test_closing_writes_what_waits(book):
    found, officer = book
    held = Held(found)
    writer = Writer(held)

    def ask(i):
        return writer.charge(officer, grant="g-one", unit="dataset", event=EVENT, key=f"k{i}")

    with ThreadPoolExecutor(9) as pool:
        futures = [pool.submit(ask, 0)]
        assert held.begun.wait(10)  # the others come once this one is being written
        futures += [pool.submit(ask, i) for i in range(1, 8)]
        wait_for(writer, 7)
        closing = pool.submit(writer.close)
        held.go.set()
        closing.result()
        assert {f.result().state for f in futures} == {"committed"}
    assert found.quote(officer, grant="g-one", unit="dataset", event=EVENT).balance["committed"] == "0.08"


def test_a_store_that_cannot_be_written_any_more_is_told_at_once(book):
    found, officer = book
    held = Held(found)
    writer = Writer(held)
    found.store.stop_writing("the disk is full")
    answers = together(
        held,
        writer,
        [lambda i=i: writer.charge(officer, grant="g-one", unit="dataset", event=EVENT, key=f"k{i}") for i in range(4)],
    )
    assert all(isinstance(a, StoreError) and a.read_only for a in answers)
    writer.close()
