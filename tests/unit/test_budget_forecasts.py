"""Forecasts of grants, on both stores, beside a twin that walks every row and tries charges until one is refused."""

import random
from datetime import datetime, timedelta
from fractions import Fraction

import pytest

import budget_stores
from demo_pages import OFFICER
from privcheck.ledger import Book, rows
from privcheck.ledger.forecasts import say_forecast


@pytest.fixture(params=sorted(budget_stores.STORES))
def opened(request, tmp_path):
    with budget_stores.STORES[request.param](tmp_path) as store:
        clock = budget_stores.Clock()
        book, _ = Book.init(store, clock=clock)
        book.set_policy(OFFICER, dataset="d", epsilon="50", delta="1e-6", unit=budget_stores.UNIT)
        book.grant(OFFICER, name="a", dataset="d", currency="rho", cap="1/3", lost="1e-9", delta="5e-7")
        book.grant(OFFICER, name="b", dataset="d", currency="epsilon", cap="2")
        yield book, clock


def forecast(book, grant):
    shown = book.show(OFFICER, "d")["datasets"][0]["grants"]
    return next(one for one in shown if one["name"] == grant)["forecast"]


def walked(book, grant):
    """The start of the window, and the end of the budget at the rate of the window, from all rows."""
    now = datetime.fromisoformat(book.now())
    with book.store.read() as transaction:
        about = [row for row in rows.rows_of_dataset(transaction, "d") if row.grant == grant]
    began = [row for row in about if datetime.fromisoformat(row.at) <= now - timedelta(days=30)]
    since = now - timedelta(days=30) if began else datetime.fromisoformat(about[0].at)
    first, last = began[-1] if began else about[0], about[-1]
    ends = [
        now + (now - since) * ((2**62 - after) / (after - before))
        for before, after in ((first.held, last.held), (first.lost, last.lost))
        if after > before
    ]
    return since, min(ends) if ends and now - since >= timedelta(days=1) else None


@pytest.mark.parametrize("seed", range(3))
def test_a_forecast_is_that_of_a_walk_through_all_rows_and_of_charges_until_one_is_refused(opened, seed):
    book, clock = opened
    rng, reserved = random.Random(seed), []  # noqa: S311 - draws a history, no secret
    assert forecast(book, "a") is None
    for _ in range(60):
        clock.hours += rng.choice([0, 0.5, 10, 40])
        what = rng.choice(["charge", "reserve", "release"])
        event = {"type": "zcdp", "rho": f"0.00{rng.randint(1, 9)}"}
        if rng.random() < 0.1:
            event = {"type": "approximate", "epsilon": "0.01", "delta": "1e-12"}
        if what == "charge":
            book.charge(OFFICER, grant="a", unit="dataset", event=event)
        elif what == "reserve":
            reserved.append(book.reserve(OFFICER, grant="a", unit="dataset", event=event, seconds=10**6).charge)
        elif reserved and not book.find_charge(OFFICER, reserved[-1]).expired:
            book.release(OFFICER, reserved.pop(), evidence="never began")
        if (found := forecast(book, "a")) is None:
            continue
        since, end = walked(book, "a")
        assert datetime.fromisoformat(found["since"]) == since
        assert (found["spent_at"] is None) == (
            end is None or end - datetime.fromisoformat(book.now()) > timedelta(36525)
        )
        if found["spent_at"] is not None:
            assert abs((datetime.fromisoformat(found["spent_at"]) - end).total_seconds()) < 1
    newest = book.find_charge(OFFICER, found["charge"])
    count = 0
    while True:
        decision = book.charge(OFFICER, grant="a", unit="dataset", event=newest.event)
        if decision.state == "refused":
            break
        count += 1
    assert count == found["times"]
    assert forecast(book, "a")["times"] == 0
    assert forecast(book, "b") is None


def test_a_young_grant_has_no_rate_and_a_frozen_one_buys_nothing(opened):
    book, clock = opened
    clock.hours += 1
    book.charge(OFFICER, grant="b", unit="dataset", event={"type": "pure", "epsilon": "0.5"})
    assert (forecast(book, "b")["times"], forecast(book, "b")["spent_at"]) == (3, None)
    clock.hours += 23
    assert forecast(book, "b")["spent_at"] == "2027-01-05T00:00:00.000000Z"
    book.freeze(OFFICER, "b", reason="asked")
    assert (forecast(book, "b")["times"], forecast(book, "b")["spent_at"]) == (0, None)
    clock.hours += 24 * 40
    assert forecast(book, "b")["spent"] == 0


def test_a_plan_is_forecast_by_its_events(opened):
    book, clock = opened
    book.set_policy(OFFICER, dataset="p", epsilon="5", delta="0", unit=budget_stores.UNIT)
    book.plan(OFFICER, name="q", dataset="p", unit="dataset", events={"type": "pure", "epsilon": "0.1", "count": 10})
    book.charge(OFFICER, grant="q", unit="dataset", event={"type": "pure", "epsilon": "0.1", "count": 3})
    clock.hours += 48
    found = book.show(OFFICER, "p")["datasets"][0]["grants"][0]["forecast"]
    assert found["times"] == 2
    states = [
        book.charge(OFFICER, grant="q", unit="dataset", event={"type": "pure", "epsilon": "0.1", "count": 3}).state
        for _ in range(3)
    ]
    assert states == ["committed", "committed", "refused"]
    assert Fraction(found["spent"]).limit_denominator(100) == Fraction(3, 10)


@pytest.mark.parametrize(
    ("times", "spent_at", "until", "words"),
    [
        (1, None, None, "1 more charge like the newest (rho = 0.01) fits"),
        (0, None, None, "0 more charges like the newest (rho = 0.01) fit"),
        (None, None, None, "any number of charges like the newest (rho = 0.01) fits"),
        (1200, "2027-03-04T00:00:00.000000Z", None, "all is spent by 2027-03-04"),
        (2, "2027-03-04T00:00:00.000000Z", "2027-03-01T00:00:00.000000Z", ", after the policy's end on 2027-03-01"),
    ],
)
def test_a_forecast_in_words(times, spent_at, until, words):
    told = {"times": times, "spent_at": spent_at, "cost": {"amount": "1/100"}, "since": "2027-01-01T00:00:00.000000Z"}
    assert words in say_forecast(told, "rho", until=until)
    assert ("rate" in say_forecast(told, "rho", until=until)) == (spent_at is not None)
