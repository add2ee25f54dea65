"""A token that ends while a request is under way: what it asked for is not written, on both stores."""

import itertools
import threading
from datetime import UTC, datetime, timedelta

import pytest

import budget_stores
from budget_stores import OTTO
from privcheck.errors import AuthorityError, StateError
from privcheck.ledger import Book, Writer, open_store
from privcheck.ledger.idempotency import once

EVENT = {"type": "zcdp", "rho": "0.001"}
ASKED = {"grant": "G", "unit": "dataset", "event": EVENT}


@pytest.fixture(scope="module", params=list(budget_stores.STORES))
def book(request, tmp_path_factory):
    with budget_stores.STORES[request.param](tmp_path_factory.mktemp("store")) as store:
        made, _ = Book.init(store)
        for name in ("of-G", "free", "planned"):
            made.set_policy(OTTO, dataset=name, epsilon="50", delta="1e-3", unit=budget_stores.UNIT)
        made.grant(OTTO, name="G", dataset="of-G", currency="rho", cap="1", delta="1e-6")
        made.grant(OTTO, name="F", dataset="of-G", currency="rho", cap="1", delta="1e-6")
        yield made


NAMES = (f"o{n}" for n in itertools.count())


def make_holder(book, expires=None):
    name = next(NAMES)
    return name, book.find_actor(book.make_token(OTTO, name=name, role="officer", expires=expires))


def rows_of(book):
    with book.store.read() as transaction:
        tables = ("entry", "dataset", "budget", "token", "answer")
        return [transaction.one(f"SELECT COUNT(*) FROM {name}")[0] for name in tables]  # noqa: S608


POLICY = {"dataset": "fresh", "epsilon": "1", "delta": "1e-6", "unit": budget_stores.UNIT}
PLAN = {"name": "P", "dataset": "planned", "delta": "1e-9", "events": EVENT, "unit": budget_stores.UNIT}
# every write of a book, by a holder; a reservation of whom is there
WRITES = {
    "charge": lambda book, who, _: book.charge(who, **ASKED),
    "reserve": lambda book, who, _: book.reserve(who, **ASKED),
    "commit": lambda book, who, charge: book.commit(who, charge),
    "release": lambda book, who, charge: book.release(who, charge, evidence="it did not start"),
    "evidence": lambda book, who, charge: book.add_evidence(who, charge, verdict="consistent", report="r"),
    "freeze": lambda book, who, _: book.freeze(who, "F", reason="r"),
    "policy": lambda book, who, _: book.set_policy(who, **POLICY),
    "blocks": lambda book, who, _: book.add_blocks(who, "free", ["b"], disjoint_users="by month"),
    "grant": lambda book, who, _: book.grant(who, name="K", dataset="of-G", currency="rho", cap="0.1", delta="1e-9"),
    "plan": lambda book, who, _: book.plan(who, **PLAN),
    "token": lambda book, who, _: book.make_token(who, name=f"of-{who.name}", role="reader"),
    "revoke": lambda book, who, _: book.revoke_token(who, "officer"),
    "accept": lambda book, who, _: book.accept(who),
    "rebuild": lambda book, who, _: book.rebuild(who),
    "once": lambda book, who, _: once(book, who, "k", {"do": "x"}, dict),
    "writer": lambda book, who, _: _through_a_writer(book, who),
}


def _through_a_writer(book, who):
    writer = Writer(book)
    try:
        return writer.charge(who, **ASKED)
    finally:
        writer.close()


def test_every_write_of_a_book_is_tried():
    """Whoever adds one adds it above."""
    looks = {"quote", "find_actor", "find_holder", "find_grant", "find_charge", "find_receipt", "charges", "show",
             "verify", "list_tokens", "back_up", "init", "now", "prepare", "apply", "write", "read", "together",
             "public_key", "heads", "prove"}  # fmt: skip
    named = {"add_evidence": "evidence", "set_policy": "policy", "add_blocks": "blocks", "make_token": "token",
             "revoke_token": "revoke"}  # fmt: skip
    methods = {name for name, of in vars(Book).items() if not name.startswith("_") and callable(of)}
    methods |= {name for name, of in vars(Book).items() if isinstance(of, staticmethod)}
    assert {named.get(name, name) for name in methods - looks} <= set(WRITES)


@pytest.mark.parametrize("ended", ["revoked", "over"])
@pytest.mark.parametrize("write", WRITES)
def test_what_was_asked_before_the_token_ended_is_not_written(book, write, ended, monkeypatch):
    """The interleaving: the token is looked up, it ends, and only then the request is written."""
    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    name, who = make_holder(book, soon)
    charge = book.reserve(who, **ASKED).charge
    if ended == "revoked":
        book.revoke_token(OTTO, name)
    else:
        monkeypatch.setattr(book, "_clock", lambda: datetime.now(UTC) + timedelta(hours=2))
    before = rows_of(book)
    with pytest.raises(AuthorityError, match="unknown, revoked or expired"):
        WRITES[write](book, who, charge)
    assert rows_of(book) == before


def test_a_token_that_is_there_writes(book):
    """The others would pass too if nothing were ever written."""
    _, who = make_holder(book)
    for name, write in WRITES.items():
        before, charge = rows_of(book), book.reserve(who, **ASKED).charge
        write(book, who, charge)
        if name not in ("accept", "revoke", "rebuild"):  # which change rows, or nothing
            assert sum(rows_of(book)) > sum(before) + 1, name


def test_a_token_is_ended_after_what_is_being_written_by_it(book):
    """Its end is answered once no transaction runs that has found it: later there is no row of it."""
    name, who = make_holder(book)
    prepared = book.prepare(who, "charge", **ASKED)
    ended = threading.Event()
    other = Book(open_store(book.store.url))

    def end():
        other.revoke_token(OTTO, name)
        ended.set()

    with book.write(who) as transaction:
        thread = threading.Thread(target=end)
        thread.start()
        assert not ended.wait(0.3)
        assert (told := book.apply(transaction, prepared)).state == "committed", told.reason
    thread.join()
    assert ended.is_set()
    other.store.close()
    with pytest.raises(AuthorityError):
        book.charge(who, **ASKED)


def test_in_a_batch_the_others_are_written(book):
    name, who = make_holder(book)
    book.revoke_token(OTTO, name)
    writer, hold = Writer(book), threading.Event()
    write, sizes = writer._write, []

    def held(batch):
        hold.wait(10)
        sizes.append(len(batch))
        write(batch)

    writer._write = held
    answers = {}

    def ask(name, actor):
        try:
            answers[name] = writer.charge(actor, **ASKED).state
        except AuthorityError:
            answers[name] = "authority"

    threads = [threading.Thread(target=ask, args=(i, who if i == 2 else OTTO)) for i in range(5)]
    for thread in threads:
        thread.start()
    hold.set()
    for thread in threads:
        thread.join()
    writer.close()
    assert answers == {i: "authority" if i == 2 else "committed" for i in range(5)}


def test_what_is_refused_keeps_no_key_and_what_is_written_does(book):
    """As of the book and the service: a commit, a release, the end of a token."""
    _, who = make_holder(book)
    tried = [{"state": "refused"}, {"state": "committed"}, {"state": "never"}]
    asked = {"do": "commit", "charge": "c"}
    answers = [once(book, who, "k", asked, lambda: tried.pop(0)) for _ in range(3)]
    assert answers == [{"state": "refused"}, {"state": "committed"}, {"state": "committed"}]
    charge = book.reserve(who, **ASKED).charge
    once(book, who, "r", {"do": "release"}, lambda: book.release(who, charge, evidence="none").to_dict())
    with pytest.raises(StateError):
        once(book, who, "c", {"do": "commit"}, lambda: book.commit(who, charge).to_dict())
    with book.store.read() as transaction:
        kept = transaction.all("SELECT request_key FROM answer WHERE actor = ? ORDER BY 1", (who.name,))
    assert kept == [("k",), ("r",)]
