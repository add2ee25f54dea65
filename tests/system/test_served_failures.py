"""A served ledger under many clients, under kill −9, on a full disk, at clocks that jump: over HTTP, on both stores."""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

import budget_stores
import http_client
import ledger_server
from http_book import NO_LIMIT
from privcheck.errors import AuthorityError, StoreError
from privcheck.ledger import Actor, Book, create_store, open_store
from privcheck.ledger.client import Client
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from served import served

EVENT = {"type": "gaussian", "rho": "0.01"}
OFFICER = Actor(name="officer", role="officer")


def make(url, *, cap):
    """Makes a ledger with a grant; returns its officer's token."""
    book, token = Book.init(create_store(url))
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap=cap, delta="1e-6")
    book.store.close()
    return token


@contextmanager
def server(url):
    """Yields a process that serves a ledger when it is told to."""
    command = [sys.executable, ledger_server.__file__, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.stdin.close()


def begin(process):
    """Lets it serve; returns the number of the process that does, and its URL."""
    process.stdin.write("\n")
    _, number, _, port = process.stdout.readline().split()
    return int(number), f"http://127.0.0.1:{port}"


def written(url):
    """Returns how often each key was committed, from the rows themselves, and the balance; checks the chains."""
    store = open_store(url)
    with store.read() as transaction:
        found = transaction.all("SELECT request_key, body FROM entry WHERE kind = 'charge' ORDER BY seq")
    assert Book(store).verify(OFFICER).ok
    store.close()
    bodies = [json.loads(body) for _, body in found]
    assert all(body["state"] == "committed" for body in bodies)
    return Counter(key for key, _ in found), bodies[-1]["balance"]["committed"]["amount"] if bodies else "0"


def race(url, token, *, processes, threads, requests):
    environment = {**os.environ, "PRIVCHECK_LEDGER_TOKEN": token}
    command = [sys.executable, http_client.__file__]
    with server(url) as process:
        number, base = begin(process)
        running = [
            subprocess.Popen(
                [*command, base, f"p{i}", str(threads), str(requests)],
                stdout=subprocess.PIPE, text=True, env=environment,
            )
            for i in range(processes)
        ]  # fmt: skip
        told = [tuple(map(int, one.communicate()[0].split())) for one in running]
        os.kill(number, signal.SIGTERM)
        assert process.stdout.readline() == "ended\n"
    return sum(committed for committed, _ in told), sum(refused for _, refused in told)


@pytest.mark.nightly
def test_three_thousand_requests_of_three_processes_for_five_hundred_places_get_five_hundred(new_ledger):
    url = new_ledger()
    token = make(url, cap="5")
    assert race(url, token, processes=3, threads=64, requests=1000) == (500, 2500)
    keys, spent = written(url)
    assert (len(keys), set(keys.values()), spent) == (500, {1}, "5")


def test_two_processes_for_one_place_too_few(new_ledger):
    url = new_ledger()
    token = make(url, cap="0.09")
    assert race(url, token, processes=2, threads=4, requests=5) == (9, 1)
    assert written(url)[1] == "0.09"


def kill_rounds(url, rounds):
    token = make(url, cap="1e6")
    acknowledged, unknown = set(), set()
    with server(url) as process:
        for turn in range(rounds):
            number, base = begin(process)
            client = Client(base, token, attempts=1)

            def work(name, client=client):
                for i in range(10**6):
                    try:
                        assert (
                            client.charge(grant="G", unit="dataset", event=EVENT, key=f"{name}-{i}")["state"]
                            == "committed"
                        )
                    except StoreError:
                        unknown.add(f"{name}-{i}")
                        return
                    acknowledged.add(f"{name}-{i}")

            before = len(acknowledged)
            threads = [threading.Thread(target=work, args=(f"r{turn}-{j}",)) for j in range(16)]
            for thread in threads:
                thread.start()
            while len(acknowledged) < before + 4:
                time.sleep(0.001)
            time.sleep(0.01 * turn)
            os.kill(number, signal.SIGKILL)
            for thread in threads:
                thread.join()
            assert process.stdout.readline() == "ended\n"
            keys, _ = written(url)
            assert acknowledged <= keys.keys()
            assert set(keys.values()) == {1}
        number, base = begin(process)
        for key in sorted(unknown):  # asked again with the same key: written once, whatever had become of it
            assert Client(base, token).charge(grant="G", unit="dataset", event=EVENT, key=key)["state"] == "committed"
        os.kill(number, signal.SIGTERM)
        assert process.stdout.readline() == "ended\n"
    keys, spent = written(url)
    assert keys == Counter(acknowledged | unknown)
    assert len(acknowledged) > 3 * rounds
    assert float(spent) == pytest.approx(len(keys) / 100)


def test_nothing_acknowledged_is_lost_where_the_service_is_killed(new_ledger):
    kill_rounds(new_ledger(), rounds=2)


@pytest.mark.nightly
def test_nothing_acknowledged_is_lost_in_20_kills_of_the_service(new_ledger):
    kill_rounds(new_ledger(), rounds=20)


def test_a_full_disk_makes_the_service_read_only_and_not_ready(tmp_path):
    """The disk is full as the process sees it: its files may not grow any more."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    token = make(url, cap="1e6")
    with server(url) as process:
        number, base = begin(process)
        client = Client(base, token, attempts=1)
        kept = [client.charge(grant="G", unit="dataset", event=EVENT, key=f"k{i}")["receipt"] for i in range(5)]
        full = max(path.stat().st_size for path in tmp_path.iterdir())
        resource.prlimit(number, resource.RLIMIT_FSIZE, (full, full))
        with pytest.raises(StoreError, match="read-only from now on"):  # noqa: PT012 - some still fit
            for i in range(5, 2000):
                kept += [client.charge(grant="G", unit="dataset", event=EVENT, key=f"k{i}")["receipt"]]
        with pytest.raises(StoreError, match="read-only"):
            client.charge(grant="G", unit="dataset", event=EVENT, key="later")
        with pytest.raises(StoreError, match="read-only until an officer has compared"):
            client._ask("GET", "/readyz")
        assert client.show("D")["datasets"][0]["head"]["seq"] >= kept[-1]["seq"]  # it can still be read
        assert client.verify(kept)["ok"]
        os.kill(number, signal.SIGTERM)
        assert process.stdout.readline() == "ended\n"
        number, base = begin(process)  # there is space again, and somebody has looked
        client = Client(base, token)
        assert client.charge(grant="G", unit="dataset", event=EVENT, key="later")["state"] == "committed"
        assert client.verify(kept)["ok"]
        os.kill(number, signal.SIGKILL)
        assert process.stdout.readline() == "ended\n"


def test_a_full_disk_of_the_database_is_told_as_such(postgres):
    url = postgres.new()
    token = make(url, cap="1e6")
    with serving(url) as (base, app):
        client = Client(base, token, attempts=1)
        assert client.charge(grant="G", unit="dataset", event=EVENT)["state"] == "committed"
        name = url.split("/")[3].split("?")[0]
        postgres.ask(
            """CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$""",
            name=name,
        )
        postgres.ask("CREATE TRIGGER full_disk BEFORE INSERT ON entry EXECUTE FUNCTION full_disk()", name=name)
        with pytest.raises(StoreError, match="read-only from now on: could not extend file"):
            client.charge(grant="G", unit="dataset", event=EVENT)
        with pytest.raises(StoreError, match="read-only"):
            client._ask("GET", "/readyz")
        assert client.show()["datasets"]
        assert app.state.desk.book.store.read_only


@contextmanager
def serving(url):
    """Yields a service in this process: its URL, and the application."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calculator, "start", lambda *_: None)
        app = create_app(Settings(store=url, **NO_LIMIT))
        with served(app) as client:
            yield str(client.base_url), app


def test_a_poisoned_request_does_not_touch_the_others_in_its_transaction(new_ledger):
    url = new_ledger()
    token = make(url, cap="1e6")
    with serving(url) as (base, app):
        client, book = Client(base, token, attempts=1), app.state.desk.book
        apply, sizes, write = book.apply, [], app.state.desk.writer._write

        def poisoned(transaction, prepared):
            if str(prepared.key).startswith("poison"):
                raise RuntimeError("as no request should be able to")
            return apply(transaction, prepared)

        def count(batch):
            sizes.append(len(batch))
            write(batch)

        book.apply = poisoned
        app.state.desk.writer._write = count

        def ask(i):
            try:
                return client.charge(
                    grant="G", unit="dataset", event=EVENT, key=f"poison-{i}" if i % 8 == 0 else f"good-{i}"
                )["state"]
            except StoreError as error:
                return "500" if "internal error" in str(error) else str(error)

        with ThreadPoolExecutor(32) as threads:
            told = list(threads.map(ask, range(160)))
    assert [state for i, state in enumerate(told) if i % 8] == ["committed"] * 140
    assert set(told[::8]) == {"500"}
    assert max(sizes) > 1
    keys, spent = written(url)
    assert (len(keys), spent) == (140, "1.4")


def test_what_cannot_be_read_does_not_touch_what_is_charged_beside_it(new_ledger):
    url = new_ledger()
    token = make(url, cap="1e6")
    bad = ["1e-320", "1e400", "0.01\0", "\ud800", "-1", "", "9" * 60]
    with serving(url) as (base, _):
        client = Client(base, token, attempts=1)

        def ask(i):
            if i % 4:
                return client.charge(grant="G", unit="dataset", event=EVENT, key=f"good-{i}")["state"]
            with pytest.raises(ValueError, match=r"."):  # a ParameterError: 422
                client.charge(
                    grant="G", unit="dataset", event={"type": "gaussian", "rho": bad[i % len(bad)]}, key=f"bad-{i}"
                )
            return "refused"

        with ThreadPoolExecutor(16) as threads:
            assert Counter(threads.map(ask, range(80))) == {"committed": 60, "refused": 20}
    assert len(written(url)[0]) == 60


def test_a_clock_that_jumps_frees_nothing(new_ledger):
    url = new_ledger()
    token = make(url, cap="0.02")
    with serving(url) as (base, app):
        now = datetime(2027, 1, 1, tzinfo=UTC)
        app.state.desk.book._clock = lambda: now
        officer = Client(base, token, attempts=1)
        ana = Client(base, officer.make_token(name="ana", role="analyst", grants=["G"], expires="2027-06-01T00:00:00Z"))
        one, two = (ana.reserve(grant="G", unit="dataset", event=EVENT, seconds=60)["id"] for _ in range(2))
        now += timedelta(seconds=61)
        assert ana.find_charge(one)["expired"]
        assert ana.charge(grant="G", unit="dataset", event=EVENT)["state"] == "refused"  # it still counts as spent
        with pytest.raises(AuthorityError):
            ana.release(one, evidence="it never ran")
        assert ana.commit(two)["state"] == "committed"  # late, and safe
        now -= timedelta(days=400)  # and back: nothing comes to life again that was decided
        assert ana.charge(grant="G", unit="dataset", event=EVENT)["state"] == "refused"
        now += timedelta(days=800)
        with pytest.raises(AuthorityError, match="unknown, revoked or expired"):
            ana.show()
        assert officer.release(one, evidence="the job never started")["state"] == "released"
        assert officer.charge(grant="G", unit="dataset", event=EVENT)["remaining"] == "0"
        assert officer.verify()["ok"]
