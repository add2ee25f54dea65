"""The kinds of store that the budget ledger's tests run over; a new kind joins by a line in STORES."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres_cluster import shared
from privcheck.ledger import Store, create_store


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
