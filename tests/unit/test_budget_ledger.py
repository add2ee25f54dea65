"""The budget ledger over a store: what is admitted, refused, asked again, and found when somebody edits a row."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

import budget_stores
from privcheck.errors import (
    AuthorityError,
    BudgetError,
    IdempotencyError,
    LedgerError,
    ParameterError,
    StateError,
    StoreError,
    UnknownNameError,
)
from privcheck.ledger import Actor, Book, create_store, open_store, parse_event, rows
from privcheck.ledger.exact import round_up, write_number
from privcheck.service.pages import queries

OFFICER = Actor(name="olga", role="officer")
OTHER = Actor(name="otto", role="officer")
ANA = Actor(name="ana", role="analyst", grants=("G",))


class Clock:
    def __init__(self):
        self.time = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def book(tmp_path, clock):
    made, _ = Book.init(create_store(str(tmp_path / "budget.db")), clock=clock)
    budget_stores.grant(made, OFFICER, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6")
    yield made
    made.store.close()


def spend(book, rho, **more):
    return book.charge(ANA, grant="G", unit="dataset", event={"type": "gaussian", "rho": rho}, **more)


def test_a_charge_is_committed_and_its_cost_is_exact(book):
    decision = spend(book, "0.01", key="k")
    assert decision.state == "committed"
    assert decision.to_dict()["remaining"] == "0.99"
    assert decision.receipt.seq == 3  # after the policy and the grant


@pytest.mark.parametrize("n", [3, 7, 100, 500])
def test_the_nth_part_fits_n_times_and_not_once_more(book, n):
    budget_stores.grant(book, OFFICER, name="H", dataset="nth", currency="mu2", cap=Fraction(n, n * n), delta="1e-6")
    event = {"type": "gaussian", "std": n, "sensitivity": "1"}
    states = [book.charge(OFFICER, grant="H", unit="dataset", event=event).state for _ in range(n + 1)]
    assert states == ["committed"] * n + ["refused"]


def test_a_refusal_changes_nothing_and_says_why(book):
    before = book.show(ANA)
    decision = spend(book, "1.5", key="k")
    assert (decision.state, decision.receipt, decision.charge) == ("refused", None, None)
    assert "1.5" in decision.reason
    assert book.show(ANA) == before
    assert spend(book, "0.5", key="k").state == "committed"  # what was refused is decided anew


def test_a_key_is_charged_once_and_belongs_to_its_request(book):
    first = spend(book, "0.01", key="k")
    spend(book, "0.02")
    assert spend(book, "0.0100", key="k").to_dict() == first.to_dict()
    with pytest.raises(IdempotencyError, match="another request"):
        spend(book, "0.02", key="k")
    assert (
        book.charge(OFFICER, grant="G", unit="dataset", event={"type": "gaussian", "rho": "0.02"}, key="k").state
        == "committed"
    )


def test_a_reservation_counts_until_it_is_released_and_an_expired_one_needs_an_officer(book, clock):
    reserved = book.reserve(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.75"}, seconds=60)
    assert (reserved.state, reserved.to_dict()["remaining"]) == ("reserved", "0.25")
    assert spend(book, "0.5").state == "refused"
    clock.time += timedelta(seconds=61)
    assert spend(book, "0.5").state == "refused"
    assert book.find_charge(ANA, reserved.charge).expired
    for nobody in (ANA, Actor(name="ana", role="officer")):
        with pytest.raises(AuthorityError):
            book.release(nobody, reserved.charge, evidence="I swear")
    released = book.release(OFFICER, reserved.charge, evidence="the job never left the queue")
    assert released.to_dict()["remaining"] == "1"
    assert book.release(OFFICER, reserved.charge, evidence="again").receipt == released.receipt
    with pytest.raises(StateError, match="released"):
        book.commit(ANA, reserved.charge)


def test_an_officer_charges_like_anybody_and_never_attests_an_own_charge(book, clock):
    event = {"type": "zcdp", "rho": "0.25"}
    assert book.charge(OFFICER, grant="G", unit="dataset", event=event).state == "committed"
    running = book.reserve(OFFICER, grant="G", unit="dataset", event=event, seconds=60)
    assert book.release(OFFICER, running.charge, evidence="it was cancelled").state == "released"
    over = book.reserve(OFFICER, grant="G", unit="dataset", event=event, seconds=60)
    clock.time += timedelta(seconds=60)
    with pytest.raises(AuthorityError, match="another officer than olga has to attest"):
        book.release(OFFICER, over.charge, evidence="I am an officer")
    with pytest.raises(AuthorityError, match="may not release a charge or reservation of olga"):
        book.release(ANA, over.charge, evidence="she asked me to")
    assert book.release(OTHER, over.charge, evidence="the queue's log").state == "released"
    assert book.verify(ANA).ok


def test_a_row_in_which_somebody_attests_an_own_charge_is_found(book, clock):
    over = book.reserve(OTHER, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.25"}, seconds=60)
    clock.time += timedelta(seconds=61)
    with book.store.write() as transaction:
        opened = rows.rows_of_charge(transaction, over.charge)[0].body
        zero = {"amount": "0", "lost": "0"}
        body = {"state": "released", "cost": opened["cost"], "evidence": "none", "balance": {
            **opened["balance"], "reserved": zero}}  # fmt: skip
        rows.append(transaction, dataset="trips", kind="release", actor="otto", body=body, at=book.now(), grant="G",
                    charge=over.charge)  # fmt: skip
    (problem,) = book.verify(ANA).problems
    assert "had expired, and was attested by otto, who had reserved it" in problem


def test_what_is_committed_is_never_refunded(book):
    reserved = book.reserve(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.75"})
    committed = book.commit(ANA, reserved.charge)
    assert (committed.state, committed.to_dict()["remaining"]) == ("committed", "0.25")
    assert book.commit(ANA, reserved.charge) == committed
    with pytest.raises(StateError, match="never refunded"):
        book.release(OFFICER, reserved.charge, evidence="please")


def test_a_clock_that_jumps_frees_nothing(book, clock):
    reserved = book.reserve(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "1"}, seconds=60)
    for jump in (-86400, 59 + 86400, 2, 10**9, -(10**9)):
        clock.time += timedelta(seconds=jump)
        assert spend(book, "1e-9").state == "refused"
    assert book.commit(ANA, reserved.charge).state == "committed"
    assert book.verify(ANA).ok


def test_a_clock_set_back_opens_nothing_that_a_row_saw_end(book, clock):
    over = book.reserve(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.25"}, seconds=60)
    clock.time += timedelta(seconds=61)
    spend(book, "0.25")
    clock.time -= timedelta(days=1)
    assert book.find_charge(ANA, over.charge).expired
    assert [charge.expired for charge in book.charges(ANA, "trips")] == [True, False]
    with book.store.read() as transaction:
        assert queries.history_of(transaction, over.charge, now=book.now()).charge.expired
        assert [charge.id for charge in queries.queue_of(transaction, now=book.now()).expired] == [over.charge]
    with pytest.raises(AuthorityError):
        book.release(ANA, over.charge, evidence="it never started")
    again = book.reserve(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.25"}, seconds=60)
    assert again.expires > over.expires
    clock.time += timedelta(seconds=59)
    assert not book.find_charge(ANA, again.charge).expired
    clock.time += timedelta(days=1)  # by this machine's clock it has run for a day, by the rows for a minute
    assert book.find_charge(ANA, again.charge).expired
    with pytest.raises(AuthorityError):
        book.release(ANA, again.charge, evidence="it never started")
    assert book.release(OFFICER, again.charge, evidence="the queue's log").state == "released"
    assert book.release(OFFICER, over.charge, evidence="the queue's log").state == "released"
    with book.store.read() as transaction:
        times = [row.at for row in rows.rows_of_dataset(transaction, "trips")]
    assert times == sorted(times)
    assert book.verify(ANA).ok


def test_a_clock_that_was_once_ahead_keeps_no_reservation_open(book, clock):
    event = {"type": "zcdp", "rho": "0.25"}
    before = book.reserve(ANA, grant="G", unit="dataset", event=event, seconds=30 * 86400)
    clock.time += timedelta(days=20)
    over = book.reserve(ANA, grant="G", unit="dataset", event=event, seconds=1)
    assert book.show(ANA)["datasets"][0]["clock"] is None
    clock.time += timedelta(hours=1) - timedelta(days=20)
    assert [one.expired for one in book.charges(ANA, "trips")] == [False, True]
    with pytest.raises(AuthorityError):
        book.release(ANA, over.charge, evidence="it never started")
    running = book.reserve(ANA, grant="G", unit="dataset", event=event, seconds=600)
    clock.time += timedelta(seconds=599)
    assert not book.find_charge(ANA, running.charge).expired
    clock.time += timedelta(seconds=1)
    assert book.find_charge(ANA, running.charge).expired
    told = book.show(ANA)["datasets"][0]["clock"]
    assert "trips: its newest row, of 2027-01-21T00:00:00, is 19 days ahead of this machine's clock" in told
    checked = book.verify(ANA)
    assert (checked.ok, checked.notes) == (True, (told,))
    with book.store.read() as transaction:
        queue = queries.queue_of(transaction, now=book.now())
    assert queue.clocks == (told,)
    assert {one.id for one in queue.expired} == {over.charge, running.charge}
    for name in (over, running):
        assert book.release(OFFICER, name.charge, evidence="the queue's log").state == "released"
    clock.time += timedelta(days=19)
    assert book.show(ANA)["datasets"][0]["clock"] is not None
    clock.time += timedelta(days=1)
    assert book.show(ANA)["datasets"][0]["clock"] is None
    assert book.release(ANA, before.charge, evidence="it never started").state == "released"
    assert book.verify(ANA).ok


def test_clocks_that_differ_by_minutes_end_a_reservation_by_the_rows(book, clock):
    event = {"type": "zcdp", "rho": "0.25"}
    spend(book, "0.25")
    clock.time -= timedelta(minutes=4)
    running = book.reserve(ANA, grant="G", unit="dataset", event=event, seconds=60)
    assert not book.find_charge(ANA, running.charge).expired
    assert book.show(ANA)["datasets"][0]["clock"] is None
    clock.time += timedelta(minutes=3)
    assert not book.find_charge(ANA, running.charge).expired
    assert book.release(ANA, running.charge, evidence="it never started").state == "released"


def test_a_clock_set_back_opens_no_policy_that_has_ended(book, clock):
    until = clock.time + timedelta(days=1)
    book.set_policy(
        OFFICER, dataset="beds", epsilon="8", delta="1e-6", unit=budget_stores.UNIT, until=until.isoformat()
    )
    book.grant(OFFICER, name="B", dataset="beds", currency="rho", cap="0.5", delta="1e-6")
    event = {"type": "zcdp", "rho": "0.01"}
    running = book.reserve(OFFICER, grant="B", unit="dataset", event=event, seconds=2 * 86400)
    clock.time = until + timedelta(seconds=1)
    assert book.charge(OFFICER, grant="B", unit="dataset", event=event).state == "refused"
    book.add_evidence(OFFICER, running.charge, verdict="consistent", report="the queue's log")  # a row after the end
    clock.time -= timedelta(hours=12)
    assert not book.quote(OFFICER, grant="B", unit="dataset", event=event).fits
    assert book.charge(OFFICER, grant="B", unit="dataset", event=event).state == "refused"
    assert book.commit(OFFICER, running.charge).state == "refused"


def test_grants_of_a_dataset_keep_its_policy(book):
    book.set_policy(OFFICER, dataset="beds", epsilon="8", delta="1e-6", unit=budget_stores.UNIT)
    book.grant(OFFICER, name="a", dataset="beds", currency="rho", cap="0.5", delta="1e-6")
    book.grant(OFFICER, name="b", dataset="beds", currency="epsilon", cap="0.5")
    with pytest.raises(BudgetError, match="policy allows 8"):
        book.grant(OFFICER, name="c", dataset="beds", currency="rho", cap="0.6", delta="1e-6")
    with pytest.raises(BudgetError, match="policy allows"):  # the first grant is as large as its policy
        book.grant(OFFICER, name="c", dataset="trips", currency="rho", cap="0.001", delta="1e-6")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "gaussian", "rho": "0.01", "sigma": 1}, "unknown field 'sigma'"),
        ({"type": "gaussian"}, "expected the fields"),
        ({"type": "gaussian", "rho": "5e-324"}, "from 1e-30 to 1e30"),
        ({"type": "gaussian", "rho": 5e-324}, "from 1e-30 to 1e30"),
        ({"type": "gaussian", "rho": "nan"}, "expected rho"),
        ({"type": "gaussian", "rho": "1e999999999"}, "expected rho"),
        ({"type": "gaussian", "rho": "0.1234567890123456789"}, "at most 15 digits"),
        ({"type": "gaussian", "rho": True}, "expected rho"),
        ({"type": "gaussian", "rho": "-1"}, "expected rho"),
        ({"type": "gaussian", "rho": "0.01", "count": 10**9 + 1}, "expected count"),
        ({"type": "gaussian", "rho": "0.01", "count": 0}, "expected count"),
        ({"type": "__import__"}, "expected type one of"),
        ({"type": "laplace", "scale": 0}, "expected scale above 0"),
        ({"type": "compose", "events": [{"type": "compose", "events": []}]}, "nested events"),
        ({"type": "compose", "events": [{"type": "pure", "epsilon": 1}] * 10_001}, "1 to 10000"),
        ('{"type": "pure", "epsilon": 1, "epsilon": 0}', "repeated"),
        ('{"type": "pure", "epsilon": Infinity}', "finite"),
        ("[" * 60_000, "expected JSON"),
        ("[]", "expected an event"),
    ],
)
def test_what_is_no_event_is_refused_before_anything_is_asked(book, event, message):
    with pytest.raises(ParameterError, match=message):
        book.prepare(ANA, "charge", grant="G", unit="dataset", event=event)


@pytest.mark.parametrize("key", ["a\0b", "", "a\nb", "x" * 201, 7])
def test_a_bad_key_is_refused_before_the_transaction(book, key):
    with pytest.raises(ParameterError, match="key"):
        book.prepare(ANA, "charge", grant="G", unit="dataset", event={"type": "gaussian", "rho": 1}, key=key)


@pytest.mark.parametrize("more", [{"kye": "k"}, {"seconds": 5}])
def test_a_misspelt_request_is_not_charged_without_its_key(book, more):
    with pytest.raises(TypeError, match="expected blocks, claim, event, grant, key, unit; got"):
        spend(book, "0.1", **more)
    with pytest.raises(TypeError, match="got event"):
        book.reserve(ANA, event={"type": "zcdp", "rho": "0.1"})


def test_numbers_keep_their_decimals():
    event = parse_event('{"type": "gaussian", "rho": 0.10, "count": 3.0}')
    assert event.to_dict() == {"type": "gaussian", "rho": "0.1", "count": 3}
    assert event.cost("rho").amount == Fraction(3, 10)
    assert event.cost("mu2").amount == Fraction(6, 10)
    assert parse_event(event.to_dict()) == event
    with pytest.raises(ParameterError, match="no finite cost in pure"):
        event.cost("epsilon")


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(7, 2**61), Fraction(12, 10), Fraction(10**9)])
def test_written_numbers_are_exact(number):
    assert Fraction(write_number(number)) == number


def test_long_costs_are_rounded_up_and_by_next_to_nothing():
    for number in (Fraction(2**300 + 1, 3**200), Fraction(1, 7**80)):
        assert number <= round_up(number) <= number * (1 + Fraction(1, 10**16))


def test_a_token_says_who_acts_and_is_kept_as_a_hash(tmp_path):
    path = tmp_path / "budget.db"
    book, token = Book.init(create_store(str(path)))
    officer = book.find_actor(token)
    budget_stores.grant(book, officer, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6")
    mine = book.make_token(officer, name="ana", role="analyst", grants=("G",))
    assert book.find_actor(mine) == ANA
    for secret in (token, mine):
        assert secret.encode() not in path.read_bytes()
    book.revoke_token(officer, "ana")
    for wrong in (mine, token + "x", ""):
        with pytest.raises(AuthorityError, match="unknown, revoked or expired"):
            book.find_actor(wrong)
    with pytest.raises(ParameterError, match="exactly one grant"):
        book.make_token(officer, name="job", role="ci", grants=("G",))


def test_an_analyst_charges_own_grants_only_and_commits_own_charges_only(book):
    budget_stores.grant(book, OFFICER, name="H", dataset="beds", currency="rho", cap="1", delta="1e-6")
    with pytest.raises(AuthorityError, match="own grants: G"):
        book.charge(ANA, grant="H", unit="dataset", event={"type": "zcdp", "rho": 1})
    reserved = book.reserve(OFFICER, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.5"})
    with pytest.raises(AuthorityError, match="reservation of olga"):
        book.commit(ANA, reserved.charge)
    with pytest.raises(AuthorityError, match="may not grant"):
        book.grant(ANA, name="I", dataset="beds", currency="rho", cap="1", delta="1e-6")
    with pytest.raises(UnknownNameError, match="unknown grant"):
        book.charge(OFFICER, grant="J", unit="dataset", event={"type": "zcdp", "rho": 1})


@pytest.mark.parametrize("column", ["held", "body", "actor", "request_key", "written_at", "kind", "charge", "prev"])
def test_an_edited_row_is_reported(book, column):
    spend(book, "0.25", key="first")
    spend(book, "0.25", key="second")
    spend(book, "0.25")
    path = book.store.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as raw, raw:
        with pytest.raises(sqlite3.IntegrityError, match="only added"):
            raw.execute("DELETE FROM entry")
        raw.execute("DROP TRIGGER entry_no_update")
        (body,) = raw.execute("SELECT body FROM entry WHERE seq = 4").fetchone()
        other = {"held": 1, "body": body.replace("0.25", "0.15", 1)}.get(column, "x")
        raw.execute(f"UPDATE entry SET {column} = ? WHERE seq = 4", (other,))  # noqa: S608 - of the list above
    assert any("row 4" in problem for problem in book.verify(ANA).problems)


def test_a_cut_tail_is_reported_given_a_receipt_and_stops_writing(book):
    receipts = [spend(book, "0.25").receipt for _ in range(3)]
    path = book.store.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("DROP TRIGGER entry_no_delete")
        raw.execute("DELETE FROM entry WHERE seq = 5")
    assert book.verify(ANA).ok
    problems = book.verify(ANA, receipts=receipts).problems
    assert len(problems) == 1
    assert "row 5: a receipt was given for it, but it is missing" in problems[0]
    with pytest.raises(StoreError, match="older copy: row 5 of 'trips' was written, but is missing"):
        spend(book, "0.1")


def test_a_changed_head_stops_writing(book):
    for _ in range(2):
        spend(book, "0.25")
    with closing(sqlite3.connect(book.store.url.removeprefix("sqlite:///"))) as raw, raw:
        raw.execute("DROP TRIGGER entry_no_update")
        raw.execute("UPDATE entry SET held = 0 WHERE seq = 4")
    with pytest.raises(LedgerError, match="row 4: it was changed"):
        spend(book, "0.1")
    with pytest.raises(StoreError, match="read-only"):
        spend(book, "0.1")
    assert not book.verify(ANA).ok


def test_the_store_itself_refuses_an_overspend(book):
    """Whatever a program forgets: the row's share of the cap is checked by the database."""
    spend(book, "0.25")
    path = book.store.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as raw, raw, pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        raw.execute(
            "INSERT INTO entry SELECT dataset, seq + 1, kind, budget, 'c', actor, NULL, 4611686018427387905, lost, "
            "body, written_at, prev, 'h' FROM entry WHERE seq = 3"
        )


def test_a_full_disk_makes_the_store_read_only_and_loses_nothing(book):
    with book.store.write() as transaction:
        (pages,) = transaction.one("PRAGMA page_count")
        transaction.one(f"PRAGMA max_page_count = {pages + 2}")
    kept = []

    def fill():
        while len(kept) < 1000:
            kept.append(spend(book, "0.001", key=f"{'k' * 150}{len(kept)}").receipt)

    with pytest.raises(StoreError, match="read-only from now on") as caught:
        fill()
    assert caught.value.read_only
    with pytest.raises(StoreError, match="read-only"):
        spend(book, "0.001")
    assert book.verify(ANA, receipts=kept).ok
    again = Book(open_store(book.store.url))
    assert again.verify(ANA, receipts=kept).ok
    again.store.close()


def test_a_store_is_opened_where_there_is_one_and_made_where_there_is_none(tmp_path):
    with pytest.raises(StoreError, match="no such ledger"):
        open_store(str(tmp_path / "none.db"))
    create_store(f"sqlite:///{tmp_path}/budget.db").close()
    with pytest.raises(StoreError, match="the file already exists"):
        create_store(str(tmp_path / "budget.db"))
    (tmp_path / "text.db").write_text("no database, but long enough to be looked at by SQLite " * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_store(str(tmp_path / "text.db"))
    for url in ("", "mysql://host/name", "sqlite://budget.db", "sqlite:///"):
        with pytest.raises(ParameterError, match="expected a store"):
            open_store(url)


def test_a_decision_is_json(book):
    decision = spend(book, "0.01")
    assert json.loads(json.dumps(decision.to_dict()))["state"] == "committed"


PLAN = [{"type": "gaussian", "std": "30", "count": 10}, {"type": "laplace", "scale": "50", "count": 5}]


def test_a_plan_is_counted_down_and_keeps_its_exact_curve(book):
    from privcheck import accounting as acc

    events = {"type": "compose", "events": [*PLAN, {"type": "gaussian", "std": 30}]}
    book.set_policy(OFFICER, dataset="beds", epsilon="8", delta="1e-6", unit=budget_stores.UNIT)
    grant, _ = book.plan(OFFICER, name="P", dataset="beds", events=events, unit="dataset", delta="1e-6")
    curve = acc.compose(acc.gaussian(std=30, count=11), acc.laplace(scale=50, count=5))
    assert grant.epsilon == curve.epsilon(delta=1e-6).upper
    nine = {"type": "gaussian", "std": "30", "count": 9}
    assert (
        book.quote(OFFICER, grant="P", unit="dataset", event={"type": "gaussian", "std": "30", "count": 2}).times == 5
    )
    assert book.charge(OFFICER, grant="P", unit="dataset", event=nine).to_dict()["remaining"] == "7"
    kept = book.reserve(OFFICER, grant="P", unit="dataset", event={"type": "laplace", "scale": 50, "count": 5})
    for event in (nine, {"type": "laplace", "scale": 50}):
        assert "left" in book.charge(OFFICER, grant="P", unit="dataset", event=event).reason
    book.release(OFFICER, kept.charge, evidence="the queue was emptied")
    assert (
        book.charge(OFFICER, grant="P", unit="dataset", event={"type": "laplace", "scale": 50, "count": 5}).state
        == "committed"
    )
    with pytest.raises(ParameterError, match="event of the plan"):
        book.charge(OFFICER, grant="P", unit="dataset", event={"type": "gaussian", "std": "31"})
    assert book.verify(OFFICER).ok


def test_what_is_granted_after_the_first_charge_draws_on_the_remainder(book):
    """ε(ρ) at 1e-6 is 8 for ρ of about 1.056: 0.5 first, so that about 0.556 remain, in ρ."""
    book.set_policy(OFFICER, dataset="beds", epsilon="8", delta="1e-6", unit=budget_stores.UNIT, remainder="rho")
    book.grant(OFFICER, name="a", dataset="beds", currency="rho", cap="0.5", delta="1e-6")
    book.charge(OFFICER, grant="a", unit="dataset", event={"type": "zcdp", "rho": "0.1"})
    late, _ = book.grant(OFFICER, name="b", dataset="beds", currency="rho", cap="0.25", delta="1e-6")
    assert late.late
    book.grant(OFFICER, name="c", dataset="beds", currency="mu2", cap="0.5", delta="1e-6")  # 0.25 of ρ
    with pytest.raises(BudgetError, match="policy allows 8"):
        book.grant(OFFICER, name="d", dataset="beds", currency="epsilon", cap="1")  # about 0.46
    book.grant(OFFICER, name="d", dataset="beds", currency="epsilon", cap="0.2")  # about 0.02
    with pytest.raises(BudgetError, match="outright loss"):
        book.grant(OFFICER, name="e", dataset="beds", currency="rho", cap="0.001", lost="1e-9", delta="1e-6")
    with pytest.raises(BudgetError, match="in events"):
        book.plan(OFFICER, name="e", dataset="beds", events=PLAN[0], unit="dataset", delta="1e-6")
    assert book.verify(OFFICER).ok


def test_a_violation_freezes_the_grant_and_what_was_reserved_on_it(book):
    kept, spent = book.reserve(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.5"}), spend(book, "0.1")
    book.add_evidence(ANA, spent.charge, verdict="consistent", report="runs/audit-1/report.json")
    assert spend(book, "0.1").state == "committed"
    book.add_evidence(ANA, spent.charge, verdict="violation", report="runs/audit-2/report.json")
    for decision in (spend(book, "0.1"), book.commit(ANA, kept.charge)):
        assert decision.state == "refused"
        assert "frozen" in decision.reason
    assert book.quote(ANA, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.1"}).fits is False
    assert book.release(ANA, kept.charge, evidence="it was refused before the first draw").state == "released"
    assert book.verify(ANA).ok
    with pytest.raises(AuthorityError):
        book.freeze(ANA, "G", reason="because")


def test_charges_and_receipts_are_found_again(book):
    decisions = [spend(book, "0.01", key=f"k{n}") for n in range(5)]
    listed = book.charges(ANA, "trips", most=3)
    assert [c.id for c in listed] == [d.charge for d in decisions[:3]]
    assert [c.key for c in book.charges(ANA, "trips", after=listed[-1].seq)] == ["k3", "k4"]
    assert book.find_receipt(ANA, decisions[2].receipt.hash) == decisions[2].receipt
    with pytest.raises(UnknownNameError):
        book.find_receipt(ANA, "0" * 64)
    with pytest.raises(UnknownNameError):
        book.charges(ANA, "beds")


def test_a_store_whose_making_was_cut_short_says_so(tmp_path):
    store = create_store(str(tmp_path / "budget.db"))
    cut = Book(store)
    budget_stores.grant(cut, OFFICER, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6")
    with pytest.raises(StoreError, match="has no key"):
        cut.charge(OFFICER, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.1"})
    assert (
        Fraction(cut.quote(OFFICER, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.1"}).balance["free"])
        == 1
    )
    store.close()
