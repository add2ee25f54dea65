"""What strangers can use up, and what they are told: nothing that an officer needs, and nothing about the store."""

import re
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

import budget_stores
import postgres_cluster
from privcheck.errors import StoreError
from privcheck.ledger import Book, create_store
from privcheck.service.access import ENDPOINTS, PAGES
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from privcheck.service.pages.login import Sessions
from privcheck.service.problems import UNAVAILABLE, ProblemError
from served import refuse, served

COMPOSE = {"events": [{"type": "gaussian", "rho": "0.01"}], "delta": "1e-6"}
BODY = {"delta": "1e-6", "events": [], "grant": "G", "evidence": "x", "dataset": "of-G", "name": "x", "token": "x"}


def holder(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """A store with the grants G and H, and its officer's token."""
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    url = str(tmp_path / "ledger.db")
    book, token = Book.init(create_store(url))
    book.store.close()
    return url, token


def test_24_loops_of_strangers_leave_an_officer_his_calculations(ledger, monkeypatch):
    """Real requests; a calculation takes a while, as one with many events does."""
    url, token = ledger
    end = threading.Event()
    slow, plain = {"events": [{"type": "gaussian", "rho": "0.02"}], "delta": "1e-6"}, Calculator.run
    app = create_app(Settings(store=url, rate=1e6, burst=10**6, processes=1))
    app.state.calculators.strangers.waiting = 2

    def run(self, task, body):
        if task == "compose" and self is app.state.calculators.strangers:
            with self._places if self._places.acquire(blocking=False) else _refused():
                time.sleep(0.1)
                return {"quantity": "epsilon", "at": {}, "estimate": "1", "upper": "1", "method": "", "direction": "",
                        "reason": None}  # fmt: skip
        return plain(self, task, body)

    monkeypatch.setattr(Calculator, "run", run)
    with served(app) as client, ThreadPoolExecutor(24) as pool:
        mine = {**COMPOSE, "events": [{"type": "gaussian", "rho": "0.5"}]}
        while (first := client.post("/v1/compose", json=mine, headers=holder(token))).status_code == 503:
            time.sleep(0.1)  # the process starts
        assert first.status_code == 200

        def loop(_):
            seen = set()
            with httpx.Client(base_url=client.base_url, timeout=60) as stranger:
                while not end.is_set():
                    seen.add(stranger.post("/v1/compose", json=slow).status_code)
            return seen

        loops = [pool.submit(loop, i) for i in range(24)]
        time.sleep(0.1)
        answers = []
        for i in range(8):
            mine["events"][0]["rho"] = f"0.{i + 11}"  # never one that was answered before
            answers.append(client.post("/v1/compose", json=mine, headers=holder(token)).status_code)
        end.set()
        assert 429 in set().union(*(one.result() for one in loops))  # they were too many for their own place
    assert answers == [200] * 8


class _refused:  # noqa: N801 - stands for a lock that was not had
    def __enter__(self):
        raise ProblemError(429, "too many")

    def __exit__(self, *_):
        return False


def test_an_officer_behind_the_address_of_strangers_has_a_bucket_of_his_own(ledger):
    url, token = ledger
    with served(create_app(Settings(store=url, rate=0.001, burst=5))) as client:
        wrong = [client.get("/v1/datasets", headers=holder("privcheck_wrong")).status_code for _ in range(7)]
        assert wrong == [401] * 5 + [429] * 2  # a wrong token counts to the address
        assert client.get("/v1/healthz").status_code == 429
        own = [client.get("/v1/datasets", headers=holder(token)).status_code for _ in range(6)]
        assert own == [200] * 5 + [429]


def test_an_officer_logs_in_where_strangers_have_used_up_their_address(ledger):
    url, token = ledger
    with served(create_app(Settings(store=url, rate=0.001, burst=5))) as client:
        same = {"Sec-Fetch-Site": "same-origin"}
        assert [client.get("/v1/healthz").status_code for _ in range(6)][-1] == 429
        assert client.get("/login").status_code == 200
        assert client.post("/login", data={"token": "privcheck_wrong"}, headers=same).status_code == 429
        assert client.post("/login", data={"token": token}, headers=same).status_code == 303
        assert client.get("/").status_code == 200


def test_headers_that_say_nothing_are_a_strangers(ledger):
    url, _ = ledger
    odd = {"Host": ("[", ""), "Authorization": ("Bearer", "\u00e9", "Basic eDp4"), "Cookie": ("=;\u00e9;privcheck",)}
    with served(create_app(Settings(store=url))) as client:
        for name, value in ((name, value) for name, values in odd.items() for value in values):
            said = {"Cookie": b"privcheck=x", name: value.encode("latin-1")}
            for path in ("/v1/datasets", "/v1/healthz", "/"):
                assert client.get(path, headers=said).status_code in {200, 303, 400, 401}


def test_strangers_who_wait_do_not_fill_the_service(ledger, monkeypatch):
    url, token = ledger
    app = create_app(Settings(store=url, rate=1e6, burst=10**6))
    hold = threading.Event()
    monkeypatch.setattr(Calculator, "run", lambda *_: hold.wait(30) and {})
    with served(app) as client, ThreadPoolExecutor(20) as pool:
        assert client.get("/v1/datasets", headers=holder(token)).status_code == 200
        guard = app.middleware_stack
        while type(guard).__name__ != "Guard":
            guard = guard.app
        guard.most = 20
        asked = [pool.submit(client.post, "/v1/compose", json=COMPOSE) for _ in range(20)]
        while guard.under_way[False] < 20:
            time.sleep(0.01)
        assert client.get("/v1/healthz").status_code == 429
        assert client.get("/v1/datasets", headers=holder(token)).status_code == 200
        hold.set()
        for one in asked:
            one.result()


def test_a_token_that_was_revoked_counts_as_a_strangers(ledger, monkeypatch):
    monkeypatch.setattr("privcheck.service.session._LOOKUP_FRESH", 0.0)
    url, token = ledger
    with served(create_app(Settings(store=url, rate=0.001, burst=5))) as client:
        asked = {"name": "b", "role": "reader"}
        key = {"Idempotency-Key": "k"}
        reader = client.post("/v1/tokens", json=asked, headers={**holder(token), **key}).json()["token"]
        assert client.get("/v1/datasets", headers=holder(reader)).status_code == 200
        assert client.request("DELETE", "/v1/tokens/b", headers={**holder(token), **key, "Idempotency-Key": "l"})
        assert [client.get("/v1/datasets", headers=holder(reader)).status_code for _ in range(8)][-1] == 429
        assert client.get("/v1/healthz").status_code == 429


def break_sqlite_by_removing(url):
    path = url.removeprefix("sqlite:///")
    shutil.move(path, f"{path}.away")


def break_sqlite_by_writing_over_it(url):
    path = url.removeprefix("sqlite:///")
    shutil.move(path, f"{path}.away")
    Path(path).write_bytes(b"no database" * 1000)


def break_sqlite_by_dropping(url):
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("ALTER TABLE token RENAME TO nothing_secret")


def break_postgres_by_dropping(url):
    postgres_cluster.shared().ask("ALTER TABLE token RENAME TO nothing_secret", name=_name(url))


def break_postgres_by_refusing(url):
    cluster = postgres_cluster.shared()
    cluster.ask(f"ALTER DATABASE {_name(url)} RENAME TO {_name(url)}_away")


def _name(url):
    return url.split("/")[3].split("?")[0]


SQLITE = [break_sqlite_by_removing, break_sqlite_by_writing_over_it, break_sqlite_by_dropping]
POSTGRES = [break_postgres_by_dropping, break_postgres_by_refusing]
WORDS = {"table", "nothing_secret", "relation ", "column", "sqlite", "postgres", "psycopg", "socket", "file is not"}


@pytest.mark.parametrize("broken", [*SQLITE, *POSTGRES])
def test_nobody_without_a_token_reads_where_the_store_is(tmp_path, monkeypatch, broken):
    """Every address, with no token, one that is wrong, and a session whose token cannot be looked up."""
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    monkeypatch.setattr(Calculator, "run", lambda *_: {})
    monkeypatch.setattr(Calculator, "run_later", lambda *_: {})
    monkeypatch.setattr("privcheck.service.session._LOOKUP_FRESH", 0.0)
    cluster = postgres_cluster.shared()
    url = cluster.new() if broken in POSTGRES else f"sqlite:///{tmp_path}/secret-place.db"
    book = budget_stores.begin(url)
    token = book.make_token(budget_stores.OTTO, name="o", role="officer")
    reader = book.make_token(budget_stores.OTTO, name="r", role="reader")
    book.store.close()
    secrets = {str(tmp_path), "secret-place", *WORDS}
    secrets |= {str(cluster.folder), _name(url)} if broken in POSTGRES else set()
    app = create_app(Settings(store=url, rate=1e6, burst=10**6))
    routes = [*ENDPOINTS, *PAGES]
    with served(app) as client:
        assert client.get("/v1/datasets", headers=holder(token)).status_code == 200
        monkeypatch.setattr(Sessions, "find", _session_of_a_stranger)
        if broken in POSTGRES:
            cluster.disconnect(url)
        else:
            app.state.desk.book.store.close()
        broken(url)
        seen = set()
        for who in ({}, holder("privcheck_wrong"), {"Cookie": "privcheck=x"}):
            for accept in ("application/json", "text/html"):
                for method, path in routes:
                    where = re.sub(r"\{\w+\}", "a" * 64, path)
                    headers = {**who, "Accept": accept, "Idempotency-Key": "k", "Sec-Fetch-Site": "same-origin"}
                    given = {"data": BODY} if (method, path) in PAGES else {"json": BODY}
                    if method != "POST":
                        given = {}
                    answer = client.request(method, where, headers=headers, **given)
                    told = f"{answer.text} {dict(answer.headers)}"
                    if path not in ("/page.css", "/icon.svg"):
                        assert not [one for one in secrets if one.lower() in told.lower()], (method, path, told)
                    if answer.status_code == 503 and accept == "application/json":
                        assert answer.json()["detail"] == UNAVAILABLE
                        seen.add(path)
        assert {"/v1/readyz", "/v1/datasets", "/"} <= seen  # what asks the store
        said = refuse(client.get("/v1/datasets", headers=holder(reader)), 503)["detail"]
        assert re.match("the ledger is not available now: ask again|the ledger is read-only until an officer has", said)
        full = refuse(client.get("/v1/datasets", headers=holder(token)), 503)["detail"]
        assert any(one in full for one in secrets), full
        if broken is break_postgres_by_refusing:
            cluster.ask(f"ALTER DATABASE {_name(url)}_away RENAME TO {_name(url)}")


def _session_of_a_stranger(self, name):
    from privcheck.service.pages.login import Session

    return Session(digest="0" * 64, csrf="c", began=self.clock()) if name == "x" else None


@pytest.mark.parametrize("role", [None, "reader", "analyst", "ci", "admin"])
def test_what_the_store_says_is_told_to_officers_alone(role):
    from privcheck.service.problems import as_problem

    problem = as_problem(StoreError("postgresql://zoe@host:5432/budget: cannot be reached"))
    assert "zoe@host" in problem.tell("officer").detail
    told = problem.tell(role)
    assert "zoe" not in f"{told.detail} {told.more}"
    assert (told.status, told.detail == UNAVAILABLE) == (503, role is None)
