"""Idempotency keys of what is no charge, on both stores: one transaction with what they are of, and never a secret."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import budget_stores
from privcheck.errors import BudgetError, IdempotencyError, ParameterError, StateError, StoreError
from privcheck.ledger import Actor, Book, Writer
from privcheck.ledger.idempotency import find_claim, keep_claim, once

OTTO, ANA = Actor(name="otto", role="officer"), Actor(name="ana", role="officer")
FIELDS = {"name": "G", "dataset": "trips", "currency": "rho", "cap": "0.5", "delta": "1e-6"}


@pytest.fixture(params=sorted(budget_stores.STORES))
def book(request, tmp_path):
    with budget_stores.STORES[request.param](tmp_path) as store:
        made = Book.init(store)[0]
        made.set_policy(OTTO, **budget_stores.policy_for(FIELDS))
        yield made


def give(book, name, *, actor=OTTO, key="k", cap="0.5", **more):
    """Makes a grant as a service does, with a key."""
    fields = {**FIELDS, "name": name, "cap": cap}

    def write():
        grant, policy = book.grant(actor, **fields)
        return {"grant": grant.to_dict(), "policy": policy.to_dict()}

    return once(book, actor, key, {"do": "grant", **fields, **more}, write)


def test_the_same_request_with_the_same_key_is_written_once_and_answered_the_same(book):
    first = give(book, "G")
    again = Book(book.store)  # as after a restart: nothing is remembered but the store
    assert give(again, "G") == first
    assert list(give(again, "G")) == list(first)
    assert give(again, "G", later=None) == first  # a field that a newer service knows, and nobody has set
    with pytest.raises(IdempotencyError, match="another request"):
        give(again, "H")
    with pytest.raises(ParameterError, match="already"):
        give(again, "G", key="other")
    with pytest.raises(ParameterError, match="already"):  # keys are everybody's own
        give(again, "G", actor=ANA)
    assert len(book.show(OTTO)["datasets"][0]["grants"]) == 1


def test_what_is_refused_keeps_no_key(book):
    give(book, "G")
    for _ in range(2):
        with pytest.raises(BudgetError):
            give(book, "H", key="h", cap="9")
    with book.store.read() as transaction:
        assert transaction.all("SELECT request_key FROM answer") == [("k",)]
    assert book.verify(OTTO).ok


@pytest.mark.parametrize("end", ["commit", "release"])
def test_a_book_that_has_signed_nothing_yet_ends_a_reservation_by_its_key(book, end):
    """The key that signs was read in a second transaction inside the first, which SQLite refuses."""
    give(book, "G")
    charge = book.reserve(OTTO, grant="G", unit="dataset", event={"type": "gaussian", "rho": "0.01"}).charge
    again = Book(book.store)
    more = {"evidence": "it did not start"} if end == "release" else {}
    answer = once(again, OTTO, "ends", {"do": end}, lambda: getattr(again, end)(OTTO, charge, **more).to_dict())
    assert answer["state"] == ("released" if end == "release" else "committed")


def test_a_key_and_what_it_is_of_are_written_together_or_not_at_all(book, monkeypatch):
    def fail(_):
        raise RuntimeError("the machine stopped")

    with monkeypatch.context() as patch:
        patch.setattr("privcheck.ledger.idempotency._write", fail)
        with pytest.raises(RuntimeError):
            give(book, "G")
    assert book.show(OTTO)["datasets"][0]["grants"] == []
    assert give(book, "G")["grant"]["name"] == "G"
    book.charge(OTTO, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.1"})  # no transaction is left open
    assert book.verify(OTTO).ok


def test_a_token_is_told_once_and_never_kept(book):
    def ask():
        return once(
            book, OTTO, "t", {"do": "token", "name": "ana"},
            lambda: {"token": book.make_token(OTTO, name="ana", role="reader")}, secret=True,
        )  # fmt: skip

    token = ask()["token"]
    assert book.find_actor(token).name == "ana"
    with pytest.raises(StateError, match="shown once and not kept; if it did not arrive, revoke that token"):
        ask()
    with pytest.raises(IdempotencyError):
        once(book, OTTO, "t", {"do": "token", "name": "eve"}, dict, secret=True)
    with book.store.read() as transaction:
        kept = [transaction.all(f"SELECT * FROM {table}") for table in ("answer", "token", "entry", "meta", "claim")]  # noqa: S608 - of this list
    assert token not in str(kept)


def test_the_same_key_at_once_is_written_once(book):
    def ask(_):
        try:
            return give(book, "G")
        except StoreError:  # another one was first: its answer is there now
            return give(book, "G")

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(4)))
    assert all(answer == answers[0] for answer in answers)
    assert book.verify(OTTO).ok


def test_what_a_claim_is_about_is_kept_by_its_name(book):
    about = {"name": "dp-apvi", "parameters": {"rho": "1/2"}, "version": "1"}
    for _ in range(2):
        with book.write() as transaction:
            keep_claim(transaction, "c" * 64, about)
    with Book(book.store).store.read() as transaction:
        assert find_claim(transaction, "c" * 64) == about
        assert find_claim(transaction, "d" * 64) is None


def test_a_key_is_its_actors_whatever_the_request_is_about(book):
    """Before a restart and after one, in one transaction and in two, for charges and for everything else."""
    event = {"type": "zcdp", "rho": "0.1"}
    give(book, "G", key="made", cap="0.2")
    book.set_policy(OTTO, **budget_stores.policy_for({**FIELDS, "dataset": "rides"}))
    book.grant(OTTO, **{**FIELDS, "name": "H", "dataset": "rides"})

    def charge(book, grant, key="k", actor=OTTO):
        return book.charge(actor, grant=grant, unit="dataset", event=event, key=key)

    first = charge(book, "G")
    for one in (book, Book(book.store)):
        assert charge(one, "G") == first
        with pytest.raises(IdempotencyError, match="another request"):
            charge(one, "H")
        with pytest.raises(IdempotencyError, match="another request"):
            charge(one, "G", key="made")
        with pytest.raises(IdempotencyError, match="another request"):
            give(one, "I", key="k")
    with pytest.raises(IdempotencyError), book.write() as transaction:  # noqa: PT012
        for grant in "GH":
            asked = book.prepare(OTTO, "charge", grant=grant, unit="dataset", event=event, key="both")
            book.apply(transaction, asked)
    assert charge(book, "H", actor=ANA).state == "committed"  # keys are everybody's own
    shown = {g["name"]: g["remaining"] for d in book.show(OTTO)["datasets"] for g in d["grants"]}
    assert shown == {"G": "0.1", "H": "0.4"}


def test_the_same_key_for_two_grants_at_once_is_charged_once(book):
    """By the writer, which writes both in one transaction, and by two processes in one each."""
    event = {"type": "zcdp", "rho": "0.001"}
    give(book, "G")
    book.set_policy(OTTO, **budget_stores.policy_for({**FIELDS, "dataset": "rides"}))
    book.grant(OTTO, **{**FIELDS, "name": "H", "dataset": "rides"})
    writer = Writer(book)

    def charge(asked):
        way, grant, key = asked
        try:
            return way.charge(OTTO, grant=grant, unit="dataset", event=event, key=key).state
        except IdempotencyError:
            return "another"

    for way in (writer, book):
        with ThreadPoolExecutor(8) as pool:
            asked = [(way, grant, f"{way is book}-{i}") for i in range(10) for grant in "GH"]
            states = list(pool.map(charge, asked))
        assert [{*states[i : i + 2]} for i in range(0, 20, 2)] == [{"committed", "another"}] * 10
    writer.close()
    assert book.verify(OTTO).ok
