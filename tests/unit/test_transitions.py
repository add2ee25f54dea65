"""The state machine of a charge, rule by rule: what a request may ask, who may act, and what each row says."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

import budget_stores
from privcheck.errors import AuthorityError, IdempotencyError, ParameterError, StateError
from privcheck.ledger import Actor, Book, create_store, rows, transitions
from privcheck.ledger.sqlite import SqliteTransaction

OFFICER, OTHER = Actor(name="olga", role="officer"), Actor(name="otto", role="officer")
ANA = Actor(name="ana", role="analyst", grants=("G", "J"))
EVENT = {"type": "zcdp", "rho": "0.25"}
JOINT = {"outputs": "declared", "billboard": "verified"}
START = datetime(2027, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.time = START

    def __call__(self):
        return self.time


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def book(tmp_path, clock):
    made, _ = Book.init(create_store(str(tmp_path / "budget.db")), clock=clock)
    budget_stores.grant(made, OFFICER, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6")
    made.set_policy(OFFICER, dataset="beds", epsilon="8", delta="1e-6", unit=budget_stores.UNIT)
    made.add_blocks(OFFICER, "beds", ["a", "b"], disjoint_users="by the month of signing up")
    made.grant(OFFICER, name="J", dataset="beds", currency="rho", cap="1", delta="1e-6", blocks=["a", "b"])
    yield made
    made.store.close()


def charge(book, **more):
    return book.charge(ANA, **{"grant": "G", "unit": "dataset", "event": EVENT, **more})


def reserve(book, **more):
    return book.reserve(ANA, **{"grant": "G", "unit": "dataset", "event": EVENT, **more})


def bodies(book, name):
    with book.store.read() as transaction:
        return [row.body for row in rows.rows_of_charge(transaction, name)]


# --- what a request may ask -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, -1, 30 * 86400 + 1, True, 1.0, "60", None])
def test_a_reservation_of_no_whole_number_of_seconds_in_a_month_is_refused(book, seconds):
    with pytest.raises(ParameterError, match="expected seconds of a reservation from 1 to 2592000") as caught:
        reserve(book, seconds=seconds)
    assert caught.value.name == "seconds"


@pytest.mark.parametrize(("more", "seconds"), [({}, 3600), ({"seconds": 1}, 1), ({"seconds": 30 * 86400}, 30 * 86400)])
def test_a_reservation_ends_after_its_seconds_and_what_is_committed_never(book, clock, more, seconds):
    kept = reserve(book, **more)
    assert datetime.fromisoformat(kept.expires) == START + timedelta(seconds=seconds)
    clock.time += timedelta(seconds=seconds - 1)
    assert not book.find_charge(ANA, kept.charge).expired
    clock.time += timedelta(seconds=1)
    assert book.find_charge(ANA, kept.charge).expired
    spent = charge(book)
    assert (spent.expires, book.find_charge(ANA, spent.charge).expires) == (None, None)


@pytest.mark.parametrize("missing", [{"grant"}, {"event"}, {"grant", "event"}])
def test_a_request_without_a_grant_or_an_event_says_what_is_expected(book, missing):
    asked = {name: value for name, value in {"grant": "G", "event": EVENT}.items() if name not in missing}
    with pytest.raises(TypeError, match="charge: expected blocks, claim, event, grant, key, unit; got "):
        book.charge(ANA, unit="dataset", **asked)


def test_a_key_belongs_to_the_seconds_of_a_reservation_too(book):
    kept = reserve(book, key="k", seconds=60)
    assert reserve(book, key="k", seconds=60) == kept
    for ask, more in ((reserve, {"seconds": 61}), (reserve, {}), (charge, {})):
        with pytest.raises(IdempotencyError):
            ask(book, key="k", **more)
    spent = charge(book, key="other")
    assert charge(book, key="other") == spent
    assert charge(book).charge != charge(book).charge  # without a key each request is a new one


def test_the_unit_is_the_request_s_or_the_claim_s_and_never_both(book):
    claimed = {"algorithm": "x", "unit": budget_stores.UNIT}
    spent = book.charge(ANA, grant="G", event=EVENT, claim=claimed)
    assert book.find_charge(ANA, spent.charge).claim == {"algorithm": "x"}
    assert budget_stores.UNIT_BODY.items() <= book.find_charge(ANA, spent.charge).unit.items()
    assert charge(book, claim={"algorithm": "x"}).state == "committed"
    for unit in ("dataset", budget_stores.UNIT):
        with pytest.raises(ParameterError, match="expected no other unit beside it") as caught:
            charge(book, unit=unit, claim=claimed)
        assert caught.value.name == "unit"
    with pytest.raises(ParameterError):
        book.charge(ANA, grant="G", event=EVENT, claim={"algorithm": "x"})
    assert len(book.charges(ANA, "trips")) == 2


# --- who may act ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("act", ["commit", "release", "evidence"])
def test_whose_token_no_longer_names_the_grant_may_not_act_on_an_own_charge(book, act):
    kept = reserve(book)
    acts = {
        "commit": lambda who: book.commit(who, kept.charge),
        "release": lambda who: book.release(who, kept.charge, evidence="it never ran"),
        "evidence": lambda who: book.add_evidence(who, kept.charge, verdict="consistent", report="runs/1"),
    }
    for who in (Actor(name="ana", role="analyst", grants=("J",)), Actor(name="ana", role="reader")):
        with pytest.raises(AuthorityError, match=f"may not {act}"):
            acts[act](who)
    with pytest.raises(AuthorityError, match=f"may not {act} a charge or reservation of ana"):
        acts[act](Actor(name="ben", role="analyst", grants=("G",)))
    assert book.find_charge(ANA, kept.charge).state == "reserved"
    acts[act](ANA)


def test_an_expired_reservation_is_attested_by_an_officer_who_is_not_its_author(book, clock):
    kept, own = reserve(book, seconds=1), book.reserve(OFFICER, grant="G", unit="dataset", event=EVENT, seconds=1)
    clock.time += timedelta(seconds=1)
    with pytest.raises(AuthorityError, match="ana is an analyst and may not attest") as caught:
        book.release(ANA, kept.charge, evidence="it never ran")
    assert caught.value.action == "attest"
    with pytest.raises(AuthorityError, match="another officer than olga has to attest"):
        book.release(OFFICER, own.charge, evidence="it never ran")
    for each in (kept, own):
        assert book.release(OTHER, each.charge, evidence="the queue's log").state == "released"


# --- what follows what ------------------------------------------------------------------------------------------------


def test_what_ended_before_is_told_again(book):
    spent, kept, gone = charge(book), reserve(book), reserve(book)
    assert book.commit(ANA, spent.charge) == spent  # charged at once, of one row
    done, over = book.commit(ANA, kept.charge), book.release(ANA, gone.charge, evidence="it never ran")
    assert (done.state, over.state) == ("committed", "released")
    assert book.commit(ANA, kept.charge) == done
    assert book.release(ANA, gone.charge, evidence="again") == over
    for name in (spent.charge, kept.charge):
        with pytest.raises(StateError, match="never refunded"):
            book.release(OFFICER, name, evidence="please")
    with pytest.raises(StateError, match="was released"):
        book.commit(ANA, gone.charge)
    assert [one.state for one in book.charges(ANA, "trips")] == ["committed", "committed", "released"]


@pytest.mark.parametrize("end", ["commit", "release"])
def test_a_reservation_on_a_block_is_committed_or_released_there_alone(book, end):
    kept = reserve(book, grant="J", blocks=["a"])
    both = reserve(book, grant="J")

    def free():
        (grant,) = book.show(OFFICER, "beds")["datasets"][0]["grants"]
        return {name: Fraction(one["free"]) for name, one in grant["balance"]["blocks"].items()}

    assert free() == {"a": Fraction(1, 2), "b": Fraction(3, 4)}
    if end == "commit":
        assert book.commit(ANA, kept.charge).blocks == ("a",)
        assert book.commit(ANA, both.charge).state == "committed"
        assert free() == {"a": Fraction(1, 2), "b": Fraction(3, 4)}
    else:
        book.release(ANA, kept.charge, evidence="it never ran")
        assert free() == {"a": Fraction(3, 4), "b": Fraction(3, 4)}
        book.release(ANA, both.charge, evidence="it never ran")
        assert free() == {"a": Fraction(1), "b": Fraction(1)}
    assert book.verify(OFFICER).ok


def test_a_grant_that_is_frozen_stays_so_whatever_is_noted_after(book):
    spent, kept = charge(book), reserve(book)
    book.add_evidence(ANA, spent.charge, verdict="violation", report="runs/1")
    last = book.add_evidence(ANA, spent.charge, verdict="consistent", report="runs/2")
    assert charge(book).state == book.commit(ANA, kept.charge).state == "refused"
    with book.store.read() as transaction:
        noted = rows.rows_of_dataset(transaction, "trips")
        kinds, hashes = zip(*((row.kind, row.hash) for row in noted), strict=True)
    assert kinds[-3:] == ("evidence", "freeze", "evidence")
    assert last == hashes[-1]
    assert charge(book, grant="J").state == "committed"  # another grant


@pytest.mark.parametrize("verdict", ["Violation", "fine", "", None, 1, ["violation"]])
def test_a_finding_is_consistent_or_a_violation(book, verdict):
    spent = charge(book)
    with pytest.raises(ParameterError, match="expected verdict consistent or violation") as caught:
        book.add_evidence(ANA, spent.charge, verdict=verdict, report="runs/1")
    assert caught.value.name == "verdict"


def test_a_report_is_named_in_at_most_two_thousand_characters(book):
    spent = charge(book)
    assert book.add_evidence(ANA, spent.charge, verdict="consistent", report="x" * 2000)
    with pytest.raises(ParameterError, match="1 to 2000"):
        book.add_evidence(ANA, spent.charge, verdict="consistent", report="x" * 2001)


# --- what the rows say ------------------------------------------------------------------------------------------------

OPENED = {"state", "event", "unit", "cost", "claim", "expires", "request", "balance"}


def test_a_row_says_what_it_has_to_and_nothing_else(book, clock):
    spent, kept = charge(book), reserve(book)
    book.commit(ANA, kept.charge)
    gone = reserve(book, grant="J", blocks=["a"])
    book.release(ANA, gone.charge, evidence="it never ran")
    assert set(bodies(book, spent.charge)[0]) == OPENED
    opened, ended = bodies(book, kept.charge)
    assert (set(opened), set(ended)) == (OPENED, {"state", "cost", "balance"})
    opened, ended = bodies(book, gone.charge)
    assert (set(opened), set(ended)) == (OPENED | {"blocks"}, {"state", "cost", "evidence", "blocks", "balance"})
    assert opened["blocks"] == ended["blocks"] == ["a"]
    joint = book.charge(
        OFFICER, grant="G", unit=budget_stores.unit_of("joint"), event={"type": "zcdp", "rho": "0.1"},
        claim={"algorithm": "x", "joint": JOINT},
    )  # fmt: skip
    assert set(bodies(book, joint.charge)[0]) == OPENED | {"conditions"}


def test_a_clock_far_behind_the_rows_is_written_where_a_reservation_ends_by_it(book, clock):
    clock.time += timedelta(days=1)
    charge(book)
    clock.time -= timedelta(hours=2)
    spent, kept = charge(book), reserve(book)
    assert set(bodies(book, spent.charge)[0]) == OPENED
    assert set(bodies(book, kept.charge)[0]) == OPENED | {"clock"}
    assert bodies(book, kept.charge)[0]["clock"] == book.now()


def test_every_write_locks_its_dataset_before_it_reads_what_decides(book, monkeypatch):
    """A SQLite file has one writer; other stores have many, and what was read before the lock may be over."""
    held, read = [], []

    def watch(owner, name):
        of = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: read.append("trips" in held) or of(*given))

    monkeypatch.setattr(SqliteTransaction, "lock", lambda _, dataset: held.append(dataset))
    for owner, name in ((rows, "read_clock"), (transitions, "balance_of"), (type(book._known), "balance_of")):
        watch(owner, name)
    spent, running, gone = charge(book), reserve(book), reserve(book)
    acts = [
        lambda: charge(book, key="k"),
        lambda: reserve(book),
        lambda: book.commit(ANA, running.charge),
        lambda: book.release(ANA, gone.charge, evidence="it never ran"),
        lambda: book.add_evidence(ANA, spent.charge, verdict="consistent", report="runs/1"),
        lambda: book.freeze(OFFICER, "G", reason="an incident"),
    ]
    for act in acts:
        held.clear()
        read.clear()
        act()
        assert read
        assert all(read)
