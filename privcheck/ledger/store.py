"""What a store has to be able to do: transactions in the SQL that all stores share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from privcheck.ledger.values import Entry

Field = str | int | None
Row = tuple[Field, ...]


class Transaction(Protocol):
    """One transaction: what is written in it is on the disk once it has ended, or none of it.

    Attributes:
        heads: The last row that it has itself appended, of a dataset's chain ("dataset", name) and about a grant
            ("grant", name). Until it ends nobody else can follow such a row: the place after it is its own.
        keys: What is known of requests' keys, by actor and key: the digests of requests that had it, each with its row
            where it was one to spend.
        holders: Whether tokens may be used, by their digests, as far as that was asked.
    """

    heads: dict[tuple[str, str], Entry]
    keys: dict[tuple[str, str], list[tuple[str, Entry | None]]]
    holders: dict[str, bool]

    def run(self, statement: str, parameters: Sequence[Field] = ()) -> None:
        """Runs a statement, with `?` for parameters.

        Raises:
            StoreError: It breaks a guard, or the store cannot be used.
        """

    def later(self, statement: str, parameters: Sequence[Field]) -> None:
        """Runs a statement before the next one that is another, or when the transaction ends; many go at once."""

    def one(self, statement: str, parameters: Sequence[Field] = ()) -> Row | None:
        """Returns the first row of an answer, None where there is none."""

    def all(self, statement: str, parameters: Sequence[Field] = ()) -> list[Row]:
        """Returns the rows of an answer."""

    def claim(self, what: str, names: Sequence[str]) -> None:
        """Keeps every other writer from deciding about names until the transaction ends; before datasets are locked.

        Args:
            what: Of what: "token" before "key" before "name", which is that of a dataset, a grant or a token.
            names: Which; those of one transaction at once, where there are several.
        """

    def share(self, what: str, names: Sequence[str]) -> None:
        """Keeps every other writer from claiming names until the transaction ends; they may share them."""

    def lock(self, dataset: str) -> None:
        """Keeps every other writer out of a dataset until the transaction ends; datasets are locked in order."""


class Waiting:
    """Statements of one text that wait to be run at once.

    Args:
        run: Runs a statement for each of several parameters.
    """

    __slots__ = ("_parameters", "_run", "_statement")

    def __init__(self, run: Callable[[str, Sequence[Sequence[Field]]], object]) -> None:
        self._run = run
        self._statement = ""
        self._parameters: list[Sequence[Field]] = []

    def add(self, statement: str, parameters: Sequence[Field]) -> None:
        """Lets a statement wait; runs those of another text before it."""
        if statement != self._statement:
            self.flush()
        self._statement = statement
        self._parameters.append(parameters)

    def flush(self) -> None:
        """Runs what waits."""
        if self._parameters:
            waiting, self._parameters = self._parameters, []
            self._run(self._statement, waiting)


class Store(Protocol):
    """Where a ledger is kept.

    Attributes:
        url: Where that is, without secrets.
        read_only: Why nothing can be written any more; empty where it can.
        doubt: Why it may be an older copy of itself, which is not written until somebody has compared it; else empty.
    """

    url: str
    read_only: str
    doubt: str

    def write(self) -> AbstractContextManager[Transaction]:
        """Returns a transaction that may write; it ends on the disk, or with an error and without effect.

        Before anything is decided in it, it has asked whether this is the store that was opened, with all that is known
        to have been written: `privcheck.ledger.marks`.

        Raises:
            StoreError: The store cannot be written now, or may be an older copy of itself.
        """

    def read(self) -> AbstractContextManager[Transaction]:
        """Returns a transaction that sees one state and writes nothing.

        Raises:
            StoreError: The store cannot be read now.
        """

    def stop_writing(self, reason: str) -> None:
        """Makes the store read-only from now on."""

    def accept(self, decide: Callable[[Transaction, Mapping[str, bool]], bool]) -> None:
        """Lets a store in doubt be written again, in one transaction that keeps every other writer out.

        Args:
            decide: Compares, and writes what has to be written with it; told by dataset whether the newest row that is
                known to have been written is there. Where it returns False nothing is changed.

        Raises:
            StoreError: The store cannot be written now; the doubt stays.
        """

    def copy_to(self, path: Path) -> None:
        """Writes what is committed, as of one moment, into an empty file, as a SQLite ledger's.

        Raises:
            StoreError: The store cannot be read now, or the file cannot be written.
        """

    def close(self) -> None:
        """Lets go of its connections."""
