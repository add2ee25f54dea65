"""The client: what it asks for is done once, whatever is lost on the way."""

import http.client
import socket
import threading

import pytest

import budget_stores
from privcheck.commands.ledger_client import open_till
from privcheck.declare.relations import AddRemoveOne, ReplaceOne, declared_unit
from privcheck.errors import (
    AuthorityError,
    BudgetError,
    IdempotencyError,
    ParameterError,
    StateError,
    StoreError,
    UnknownNameError,
)
from privcheck.ledger.client import Client
from privcheck.service.app import Settings, create_app, open_or_create
from privcheck.service.calculator import Calculator
from served import served

EVENT = {"type": "gaussian", "rho": "0.01"}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    url = str(tmp_path_factory.mktemp("store") / "ledger.db")
    token = open_or_create(url)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Calculator, "start", lambda *_: None)
        with served(create_app(Settings(store=url, rate=1e6, burst=10**6))) as client:
            made = Client(str(client.base_url), token, sleep=lambda _: None)
            fields = {"name": "G", "dataset": "people", "currency": "rho", "cap": "1", "delta": "1e-6"}
            made.set_policy(**budget_stores.policy_body(fields))
            made.grant(**fields)
            yield made


def test_the_operations_of_the_book(ledger):
    assert ledger.quote(grant="G", unit="dataset", event=EVENT)["state"] == "quoted"
    done = ledger.charge(grant="G", unit="dataset", event=EVENT)
    assert (done["state"], done["remaining"]) == ("committed", "0.99")
    held = ledger.reserve(grant="G", unit="dataset", event=EVENT, seconds=60)
    assert ledger.commit(held["id"])["state"] == "committed"
    assert ledger.commit(held["id"])["state"] == "committed"
    with pytest.raises(StateError) as caught:
        ledger.release(held["id"], evidence="nothing ran")
    assert caught.value.state == "committed"
    given_back = ledger.reserve(grant="G", unit="dataset", event=EVENT)
    assert ledger.release(given_back["id"], evidence="nothing ran")["state"] == "released"
    assert ledger.find_charge(done["id"])["state"] == "committed"
    assert [one["name"] for one in ledger.show()["datasets"]] == ["people"]
    assert ledger.show("people")["datasets"][0]["grants"][0]["remaining"] == "0.98"
    assert len(ledger.charges("people")["charges"]) == 3
    assert ledger.export()["kind"] == "statement"
    made = ledger.set_policy(dataset="second", epsilon="1", delta="1e-6", unit=budget_stores.UNIT)["policy"]
    assert (made["epsilon"], made["unit"]["stated_by"]) == ("1", "officer officer")
    refused = ledger.charge(grant="G", unit="dataset", event={**EVENT, "count": 1000})
    assert (refused["state"], refused["remaining"]) == ("refused", "0.98")


def test_errors_are_those_of_the_book(ledger):
    with pytest.raises(UnknownNameError, match="nowhere"):
        ledger.charge(grant="nowhere", unit="dataset", event=EVENT)
    with pytest.raises(ParameterError, match="type"):
        ledger.charge(grant="G", unit="dataset", event={"type": "nothing"})
    ledger.charge(grant="G", unit="dataset", event=EVENT, key="mine")
    with pytest.raises(IdempotencyError):
        ledger.charge(grant="G", unit="dataset", event={**EVENT, "count": 2}, key="mine")
    with pytest.raises(BudgetError):
        ledger.grant(name="H", dataset="people", currency="rho", cap="100", delta="1e-6")
    token = ledger.make_token(name="looks", role="reader")
    reader = Client(ledger.url, token)
    with pytest.raises(AuthorityError) as caught:
        reader.charge(grant="G", unit="dataset", event=EVENT)
    assert caught.value.known
    ledger.revoke_token("looks")
    with pytest.raises(AuthorityError) as caught:
        reader.show()
    assert not caught.value.known
    assert token not in repr(reader)


def test_an_answer_that_was_lost_is_asked_for_again_and_charged_once(ledger, monkeypatch):
    before = len(ledger.charges("people")["charges"])
    received = http.client.HTTPConnection.getresponse
    lost = []

    def lose(connection):
        answer = received(connection)
        if len(lost) < 3:
            answer.read()  # the service has written it
            lost.append(answer.status)
            raise ConnectionResetError("lost on the way")
        return answer

    monkeypatch.setattr(http.client.HTTPConnection, "getresponse", lose)
    done = ledger.charge(grant="G", unit="dataset", event=EVENT)
    assert (done["state"], lost) == ("committed", [201, 201, 201])
    assert len(ledger.charges("people")["charges"]) == before + 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n",
        b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"state": "committed"}',
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n16\r\n{",
        b"HTTP/1.1 201 Created\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        b"HTTP/1.1 20",
    ],
)
def test_an_answer_that_was_cut_is_none(answer):
    """A service that is killed between headers and body has said 201 and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: [answer_once(server, answer) for _ in range(2)])
        thread.start()
        port = server.getsockname()[1]
        client = Client(f"http://127.0.0.1:{port}", "t", attempts=2, sleep=lambda _: None)
        with pytest.raises(StoreError, match="ask again with the key 'mine'"):
            client.charge(grant="G", unit="dataset", event=EVENT, key="mine")
        thread.join()


def test_a_url_that_sends_elsewhere_is_told_and_not_followed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        moved = b"HTTP/1.1 307 Moved\r\nLocation: https://elsewhere.example\r\nContent-Length: 2\r\n\r\n{}"
        thread = threading.Thread(target=answer_once, args=(server, moved))
        thread.start()
        with pytest.raises(StoreError, match="this one redirects"):
            Client(f"http://127.0.0.1:{server.getsockname()[1]}", "t").charge(grant="G", unit="dataset", event=EVENT)
        thread.join()


def answer_once(server, answer):
    line, _ = server.accept()
    with line:
        while not line.recv(65536).endswith(b"}"):
            pass
        line.sendall(answer)


def test_nobody_there_ends_with_the_key_to_ask_again():
    slept = []
    nobody = Client("http://127.0.0.1:9", "t", attempts=4, sleep=slept.append)
    with pytest.raises(StoreError, match="ask again with the key 'mine'"):
        nobody.charge(grant="G", unit="dataset", event=EVENT, key="mine")
    assert len(slept) == 3
    assert all(0 < wait < 2 for wait in slept)


@pytest.mark.parametrize(
    "url",
    ["ftp://127.0.0.1", "127.0.0.1:80", "http://ledger.example.org", "https://me:pw@host", "http://10.0.0.1:8080"],
)
def test_what_is_no_url_or_would_tell_the_token_to_others_is_refused(url):
    with pytest.raises(ParameterError):
        Client(url, "t")
    with pytest.raises(ParameterError, match="token"):
        Client("https://host", "two\nlines")


def test_what_a_run_pays_through_a_service_is_of_the_datasets_neighbours(ledger, monkeypatch):
    monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", ledger.make_token(name="pays", role="analyst", grants=["G"]))
    with open_till(ledger.url) as till:
        assert till.currency("G") == "rho"
        adding, replacing = (
            declared_unit(relation, "central", {}, name="a", steps=3).to_dict()
            for relation in (AddRemoveOne(), ReplaceOne())
        )
        with pytest.raises(ParameterError, match="the relation is add-remove, not replace-one"):
            till.reserve(grant="G", event=EVENT, claim={"unit": adding}, key=None)
        about = {"unit": replacing, "algorithm": "a", "parameters": {"H": "3"}, "verdict": "holds"}
        held = till.reserve(grant="G", event=EVENT, claim=about, key=None)
        found = till.find_charge(held["id"])
        assert held["state"] == found["state"] == "reserved"
        assert found["unit"] == replacing
        assert found["claim"] == {"algorithm": "a", "parameters": {"H": "3"}}
        with pytest.raises(ParameterError, match="expected no other unit beside it"):
            till.reserve(grant="G", event=EVENT, unit="dataset", claim=about, key=None)
        with pytest.raises(ParameterError, match="give unit with an event"):
            till.reserve(grant="G", event=EVENT, key=None)
    with pytest.raises(ParameterError, match="expected one of replace-one"):
        ledger.charge(grant="G", unit="user, 1 trajectory, whoever, central", event=EVENT)
    with pytest.raises(ParameterError, match="a claim has its own"):
        ledger.charge(grant="G", claim="0" * 64, unit="dataset")


def test_a_plans_unit_is_known_at_the_till(ledger, monkeypatch):
    ledger.set_policy(dataset="planned", epsilon="1", delta="1e-6", unit=budget_stores.UNIT)
    ledger.grant(name="P", dataset="planned", events=[EVENT], unit="dataset", delta="1e-7")
    monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", ledger.make_token(name="plans", role="analyst", grants=["P"]))
    with open_till(ledger.url) as till:
        assert till.currency("P") == "events"
