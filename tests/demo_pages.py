"""The demonstration's ledger, served, with people who are logged in."""

from contextlib import contextmanager

from page_visits import Looker
from privcheck.cli import demo
from privcheck.ledger import Actor, Book, create_store
from privcheck.service.app import Settings, create_app
from served import served

OFFICER = Actor(name="officer", role="officer")


@contextmanager
def demonstrated(folder):
    """Yields the application and, by name, its first officer, another one, and an analyst with two grants."""
    url = str(folder / "demo.db")
    store = create_store(url)
    book, token = Book.init(store)
    demo.fill(book)
    ana = book.make_token(OFFICER, name="ana", role="analyst", grants=("icu-team", "trips-routes"))
    second = book.make_token(OFFICER, name="second", role="officer")
    store.close()
    app = create_app(Settings(store=url, rate=1e6, burst=10**6, processes=1, calculation_seconds=30))
    with served(app) as client:
        base = str(client.base_url)
        tokens = {"officer": token, "second": second, "ana": ana}
        yield app, {name: Looker(base, token) for name, token in tokens.items()}
