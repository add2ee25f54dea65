"""Checks of the whole ledger over HTTP: asked for again while they run, joined, bounded, forgotten if not fetched."""

import asyncio
import shutil
import threading

import pytest

import budget_stores
from privcheck.errors import AuthorityError, ParameterError, StoreError
from privcheck.ledger import Actor, Book, create_store
from privcheck.ledger.chains import Checked
from privcheck.ledger.client import Client
from privcheck.service import session
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from privcheck.service.problems import ProblemError
from served import served

FOUND = Checked(ok=True, rows=1, datasets={}, problems=())
OFFICER = Actor(name="officer", role="officer")
EVENT = {"type": "gaussian", "rho": "0.01"}


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr(session, "_PATIENCE", 0.05)
    every = session.Checks()
    yield every
    every.close()


def test_a_long_check_is_asked_for_again_and_runs_once(made):
    go, runs = threading.Event(), []

    def check():
        runs.append(1)
        assert go.wait(10)
        return FOUND

    async def ask():
        assert [await made.ask("a", check) for _ in range(3)] == [None] * 3
        go.set()
        while (found := await made.ask("a", check)) is None:
            pass
        assert (found, len(runs)) == (FOUND, 1)
        assert (await made.ask("a", check), len(runs)) == (FOUND, 2)  # what was told is not told again

    asyncio.run(ask())


def test_too_many_checks_are_refused_and_what_nobody_fetches_is_forgotten(made, monkeypatch):
    go = threading.Event()

    async def ask():
        for i in range(session._MOST):
            assert await made.ask(f"c{i}", lambda: (go.wait(10), FOUND)[1]) is None
        with pytest.raises(ProblemError) as caught:
            await made.ask("one too many", lambda: FOUND)
        assert caught.value.status == 429
        go.set()
        await asyncio.gather(*(asyncio.wrap_future(one.answer) for one in made._running.values()))
        monkeypatch.setattr(session, "_FRESH", -1.0)
        assert await made.ask("new", lambda: FOUND) == FOUND
        assert not made._running

    asyncio.run(ask())


def test_what_a_check_raises_is_told(made):
    def fail():
        raise StoreError("the disk is gone")

    with pytest.raises(StoreError, match="the disk is gone"):
        asyncio.run(made.ask("a", fail))
    assert not made._running


def test_a_ledger_that_was_put_back_is_accepted_over_http(tmp_path, monkeypatch):
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    book, token = Book.init(create_store(str(path)))
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap="1", delta="1e-6")
    book.store.close()
    shutil.copy(path, copy)
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    with served(create_app(Settings(store=str(path)))) as client:
        ledger = Client(str(client.base_url), token)
        kept = [ledger.charge(grant="G", unit="dataset", event=EVENT)["receipt"] for _ in range(3)]
        assert ledger.verify(kept * 50)["ok"]  # more than fit into one request
        with pytest.raises(ParameterError, match="at most 128"):
            ledger.accept(kept * 50)
        reader = Client(ledger.url, ledger.make_token(name="rita", role="reader"))
        assert reader.verify(kept)["ok"]
        with pytest.raises(AuthorityError, match="may not accept"):
            reader.accept(kept)
    shutil.copy(copy, path)
    for suffix in ("-wal", "-shm"):
        path.with_name(f"ledger.db{suffix}").unlink(missing_ok=True)
    with served(create_app(Settings(store=str(path)))) as client:
        ledger = Client(str(client.base_url), token, attempts=1)
        assert client.get("/v1/readyz").status_code == 503
        with pytest.raises(StoreError, match="read-only"):
            ledger.charge(grant="G", unit="dataset", event=EVENT)
        checked = ledger.verify(kept)
        assert not checked["ok"]
        assert "a receipt was given for it, but it is missing" in checked["problems"][0]
        told = ledger.accept(kept)
        assert (told["accepted"], told["lost"]) == (False, ["(registry)", "D"])  # D was opened after the copy
        told = ledger.accept(kept, freeze=True)
        assert (told["accepted"], told["frozen"]) == (True, ["G"])
        assert "frozen" in ledger.charge(grant="G", unit="dataset", event=EVENT)["reason"]
