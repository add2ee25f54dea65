"""A ledger over HTTP with the calls of `Book`: a served application whose desk is another one for every ledger."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from privcheck.ledger import Actor, Book, Writer, create_store
from privcheck.ledger.client import Client
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from privcheck.service.session import LedgerSession
from served import served

NO_LIMIT = {"rate": 1e6, "burst": 10**6}


@dataclass(frozen=True)
class Told:
    """An answer, by the names of `Decision`."""

    fields: dict[str, Any]

    def __getattr__(self, name):
        return self.fields["id" if name == "charge" else name]

    def to_dict(self):
        return self.fields


class HttpBook:
    """The calls that tests make of a book, each by whose token it is."""

    def __init__(self, url, book, people):
        officer = Actor(name="officer", role="officer")
        tokens = {one: book.make_token(officer, name=one.name, role=one.role, grants=one.grants) for one in people}
        self.clients = {one: Client(url, token, attempts=1) for one, token in tokens.items()}

    def charge(self, actor, **asked):
        return Told(self.clients[actor].charge(**asked))

    def reserve(self, actor, **asked):
        return Told(self.clients[actor].reserve(**asked))

    def commit(self, actor, charge):
        return Told(self.clients[actor].commit(charge))

    def release(self, actor, charge, *, evidence):
        return Told(self.clients[actor].release(charge, evidence=evidence))

    def show(self, actor):
        return self.clients[actor].show()

    def verify(self, actor, *, receipts=()):
        return Told(self.clients[actor].verify(receipts))


@contextmanager
def serving_books(directory):
    """Yields a function that serves a book, in place of the one before, and returns it over HTTP for some people."""
    first = str(directory / "first.db")
    create_store(first).close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calculator, "start", lambda *_: None)
        app = create_app(Settings(store=first, **NO_LIMIT))
        with served(app) as client:
            mine = app.state.desk

            def serve(book: Book, people):
                if app.state.desk is not mine:
                    app.state.desk.writer.close()
                app.state.desk = LedgerSession(book=book, writer=Writer(book))
                return HttpBook(str(client.base_url), book, people)

            yield serve
            if app.state.desk is not mine:
                app.state.desk.writer.close()
