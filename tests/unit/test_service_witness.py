"""The service's key and heads over HTTP, and the heads that it pushes to a second place by itself."""

import time

import pytest

import budget_stores
from privcheck.errors import ParameterError
from privcheck.ledger import Actor, Book, open_store
from privcheck.ledger.client import Client
from privcheck.ledger.heads import Evidence, Head, check_signatures, compare
from privcheck.ledger.signing import PublicKey
from privcheck.service.app import Settings, create_app, open_or_create
from served import served

EVENT = {"type": "gaussian", "rho": "0.01"}
OFFICER = Actor(name="otto", role="officer")


@pytest.fixture
def ledger(tmp_path):
    """A ledger with a grant G, and its officer's token."""
    url = str(tmp_path / "ledger.db")
    token = open_or_create(url)
    book = Book(open_store(url))
    budget_stores.grant(book, OFFICER, name="G", dataset="D", currency="rho", cap="1", delta="1e-6")
    yield url, token, book
    book.store.close()


def wait(told, seconds=20):
    until = time.monotonic() + seconds
    while not told():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_heads_are_pushed_while_the_service_runs_and_a_place_that_fails_stops_no_charge(ledger, tmp_path):
    url, token, book = ledger
    place = tmp_path / "not-there-yet" / "heads.jsonl"
    app = create_app(Settings(store=url, processes=1, push_heads=str(place), push_seconds=0.05))
    with served(app) as client:
        officer = {"Authorization": f"Bearer {token}"}

        def ready():
            return client.get("/v1/readyz").json()

        wait(lambda: ready().get("heads_failing"))
        assert ready()["heads_pushed"] is None

        def charge(key):
            asked = {"grant": "G", "unit": "dataset", "event": EVENT}
            return client.post("/v1/charges", json=asked, headers={**officer, "Idempotency-Key": key})

        first = charge("a")
        assert first.status_code == 201
        place.parent.mkdir()
        wait(lambda: ready()["heads_pushed"] is not None)
        assert charge("b").status_code == 201
        wait(lambda: '"size":4' in place.read_text())
        assert not ready()["heads_failing"]
        key = PublicKey.parse(client.get("/v1/key", headers=officer).json()["key"])
        heads = [Head.parse(one) for one in client.get("/v1/heads", headers=officer).json()["heads"]]
        for path in ("/v1/key", "/v1/heads"):
            assert client.get(path).status_code == 401
    kept = Evidence.parse(place.read_text())
    assert compare(kept, key).verdict == "consistent"
    assert book.verify(OFFICER, heads=[*kept.heads, *heads]).ok
    receipt = Evidence.parse(first.text).receipts
    assert check_signatures(Evidence(receipts=receipt, heads=tuple(heads)), key).to_dict()["receipts"] == 1
    threads = app.state.pusher._thread
    assert not threads.is_alive()


def test_a_place_that_is_none_is_refused_before_the_service_starts(ledger):
    with pytest.raises(ParameterError, match="expected a place"):
        create_app(Settings(store=ledger[0], push_heads="ftp://host/heads"))


def test_the_client_asks_for_key_and_heads(ledger):
    url, token, book = ledger
    app = create_app(Settings(store=url, processes=1))
    with served(app) as http:
        client = Client(str(http.base_url), token)
        assert client.public_key() == book.public_key(OFFICER).to_dict()
        assert [one["dataset"] for one in client.heads()] == ["(registry)", "D"]
