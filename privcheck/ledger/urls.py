"""Opening and creation of a store by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from privcheck.errors import ParameterError, hide_passwords
from privcheck.ledger.sqlite import SqliteStore
from privcheck.ledger.store import Store

_EXPECTED: Final = "expected a store as a path, sqlite:///path or postgresql://host/name"


def open_store(url: str) -> Store:
    """Open the existing ledger at a URL.

    Args:
        url: A path, `sqlite:///path` (relative; four slashes for an absolute one), or `postgresql://user@host/database`
            (extra `[postgres]`), with libpq's options and environment.

    Raises:
        ParameterError: The URL is not that of a store.
        StoreError: There is no ledger, or it cannot be opened.
    """
    return _make(url, create=False)


def create_store(url: str) -> Store:
    """Create an empty ledger at a URL.

    Raises:
        ParameterError: The URL is not that of a store.
        StoreError: The place is not empty, or the ledger cannot be created.
    """
    return _make(url, create=True)


def _make(url: str, *, create: bool) -> Store:
    if is_postgres(url):
        from privcheck.ledger.postgres import PostgresStore

        return PostgresStore(url, create=create)
    return SqliteStore(read_path(url), create=create)


def is_postgres(url: str) -> bool:
    """Whether a URL is that of a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


def read_path(url: str) -> Path:
    """Path of a SQLite ledger.

    Raises:
        ParameterError: The URL is not that of a SQLite ledger.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "sqlite", f"/{url}" if url else ""
    path = rest.removeprefix("/")
    if scheme != "sqlite" or not rest.startswith("/") or not path.strip() or "\0" in path:
        shown = hide_passwords(url)
        raise ParameterError(f"{_EXPECTED}, got {shown[:80]!r}", name="store", given=shown)
    return Path(path)
