"""Protocol of a store: transactions in the SQL that all stores share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from privcheck.ledger.values import Entry

Field = str | int | None
Row = tuple[Field, ...]


class Transaction(Protocol):
    """One transaction: its writes are on the disk once it has ended, or have no effect.

    Attributes:
        heads: The last row that the transaction has itself appended to a dataset's chain ("dataset", name) and about a
            grant ("grant", name). No other transaction can append after such a row before this one ends.
        keys: Known idempotency keys, by actor and key: the digests of the requests with the key, each with its row if
            it was a request to spend.
        holders: Whether tokens are valid, by their digests, as far as they were looked up.
    """

    heads: dict[tuple[str, str], Entry]
    keys: dict[tuple[str, str], list[tuple[str, Entry | None]]]
    holders: dict[str, bool]

    def run(self, statement: str, parameters: Sequence[Field] = ()) -> None:
        """Run a statement, with `?` for parameters.

        Raises:
            StoreError: The statement violates a constraint, or the store cannot be used.
        """

    def later(self, statement: str, parameters: Sequence[Field]) -> None:
        """Run a statement before the next query, or when the transaction ends; many are run at once.

        Equal statements keep their order; of different ones, the one that was given first is run first.
        """

    def one(self, statement: str, parameters: Sequence[Field] = ()) -> Row | None:
        """First row of a result, or None if it is empty."""

    def all(self, statement: str, parameters: Sequence[Field] = ()) -> list[Row]:
        """All rows of a result."""

    def claim(self, what: str, names: Sequence[str]) -> None:
        """Lock names exclusively until the transaction ends; call it before datasets are locked.

        Args:
            what: Kind of name: "token" before "key" before "name", which is that of a dataset, a grant or a token.
            names: The names; several of one transaction are passed in one call.
        """

    def share(self, what: str, names: Sequence[str]) -> None:
        """Lock names against `claim` by other writers until the transaction ends; the lock is shared."""

    def lock(self, dataset: str) -> None:
        """Lock a dataset against other writers until the transaction ends; datasets are locked in order."""


class Waiting:
    """Queue of statements that are run in batches, equal statements together.

    Args:
        run: Runs a statement for each of several parameters.
    """

    __slots__ = ("_parameters", "_run")

    def __init__(self, run: Callable[[str, Sequence[Sequence[Field]]], object]) -> None:
        self._run = run
        self._parameters: dict[str, list[Sequence[Field]]] = {}

    def add(self, statement: str, parameters: Sequence[Field]) -> None:
        """Queue a statement."""
        self._parameters.setdefault(statement, []).append(parameters)

    def flush(self) -> None:
        """Run the queued statements: different ones in the order in which the first of each was queued."""
        if self._parameters:
            waiting, self._parameters = self._parameters, {}
            for statement, parameters in waiting.items():
                self._run(statement, parameters)


class Store(Protocol):
    """Storage of a ledger.

    Attributes:
        url: Its URL, without secrets.
        read_only: The reason why the store is read-only; empty if it is writable.
        doubt: The reason why it may be an older copy of itself, which is read-only until it has been compared; else
            empty.
    """

    url: str
    read_only: str
    doubt: str

    def write(self) -> AbstractContextManager[Transaction]:
        """Open a write transaction; it ends on the disk, or with an error and without effect.

        It first checks that this is the store that was opened, with all rows that are known to have been written:
        `privcheck.ledger.marks`.

        Raises:
            StoreError: The store cannot be written now, or may be an older copy of itself.
        """

    def read(self) -> AbstractContextManager[Transaction]:
        """Open a read transaction, with one consistent state.

        Raises:
            StoreError: The store cannot be read now.
        """

    def stop_writing(self, reason: str) -> None:
        """Make the store read-only from now on."""

    def accept(self, decide: Callable[[Transaction, Mapping[str, bool]], bool]) -> None:
        """Make a store in doubt writable again, in one transaction that locks out every other writer.

        Args:
            decide: Compares the store, and writes the accompanying rows; its second argument says by dataset whether
                the newest row that is known to have been written is there. If it returns False nothing is changed.

        Raises:
            StoreError: The store cannot be written now; the doubt stays.
        """

    def copy_to(self, path: Path) -> None:
        """Write all committed rows, as of one moment, into an empty file, as a SQLite ledger.

        Raises:
            StoreError: The store cannot be read now, or the file cannot be written.
        """

    def close(self) -> None:
        """Close the store's connections."""
