"""The ledger that the service starts with: the one that is there, or a new one."""

from __future__ import annotations

from privcheck.errors import StoreError
from privcheck.ledger import Book, create_store, open_store


def open_or_create(url: str) -> str | None:
    """Returns the first officer's token of a ledger that is made because there is none; None where there is one.

    Raises:
        ParameterError: The URL is none of a store.
        StoreError: There is something else, or it cannot be opened.
    """
    try:
        open_store(url).close()
    except StoreError as error:
        try:
            store = create_store(url)
        except StoreError:
            raise error from None  # there is something, and it is no ledger
        _, token = Book.init(store)
        store.close()
        return token
    return None
