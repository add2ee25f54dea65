"""The kinds of store that the budget ledger's tests run over, and datasets to grant from; STORES has a line a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from postgres_cluster import shared
from privcheck.errors import UnknownNameError
from privcheck.ledger import Actor, Book, Store, create_store
from privcheck.ledger.exact import write_number
from privcheck.ledger.grants import read_adaptive
from privcheck.ledger.policies import above
from privcheck.ledger.values import read_currency

BEGAN = datetime(2027, 1, 1, tzinfo=UTC)


class Clock:
    """A ledger's clock, which a test moves on by hours."""

    hours = 0.0

    def __call__(self):
        return BEGAN + timedelta(hours=self.hours)


OTTO = Actor(name="otto", role="officer")
UNIT = "user, 1 trajectory, replace-one, central"
UNIT_BODY = {"who": "user", "trajectories": 1, "relation": "replace-one", "model": "central"}  # over HTTP


def unit_of(model="central", relation="replace-one", *, who="user", trajectories=1):
    several = "trajectory" if trajectories == 1 else "trajectories"
    return f"{who}, {trajectories} {several}, {relation}, {model}"


def policy_for(fields):
    """Returns the fields of the least policy that an adaptive grant fits into, as that grant is the first."""
    grant = read_adaptive(**fields)
    least = {"dataset": grant.dataset, "epsilon": above(grant.epsilon), "delta": grant.delta}
    return {**least, "unit": UNIT, "remainder": read_currency(grant.currency)}


def policy_body(fields):
    """Returns the same as the body of POST /v1/datasets."""
    least = policy_for(fields)
    numbers = {name: write_number(least[name]) for name in ("epsilon", "delta")}
    return {**least, **numbers, "unit": UNIT_BODY}


def grant(book, officer, **fields):
    """Makes an adaptive grant; opens its dataset before, with the least policy, where there is none."""
    try:
        book.show(officer, fields["dataset"])
    except UnknownNameError:
        book.set_policy(officer, **policy_for(fields))
    return book.grant(officer, **fields)


@contextmanager
def sqlite_store(directory: Path) -> Iterator[Store]:
    store = create_store(str(directory / "budget.db"))
    try:
        yield store
    finally:
        store.close()


@contextmanager
def postgres_store(directory: Path) -> Iterator[Store]:
    store = create_store(shared().new())
    try:
        yield store
    finally:
        store.close()


STORES: dict[str, Callable[[Path], object]] = {"sqlite": sqlite_store, "postgresql": postgres_store}


def begin(url):
    """A new ledger with the grants G and H, each of a dataset alone."""
    book, _ = Book.init(create_store(url))
    officer = Actor(name="otto", role="officer")
    for name in ("G", "H"):
        grant(book, officer, name=name, dataset=f"of-{name}", currency="rho", cap="1", delta="1e-6")
    return book
