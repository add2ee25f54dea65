"""`privcheck ledger … --store http://…`: what every command answers of a store, a service answers too."""

import json
import re
from contextlib import ExitStack

import pytest
from click.testing import CliRunner

import budget_stores
from privcheck.cli import main
from privcheck.ledger import open_store
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from served import served

G = ("--grant", "G")
FOR = ("--unit", "dataset")
RHO = (*FOR, "--gaussian-rho", "0.01")
POLICY = ("--epsilon", "8", "--delta", "1e-6", "--unit", budget_stores.UNIT)
MADE = {  # of every ledger its own: places in chains stay
    "id": r"c-[0-9a-f]{16}",
    "hash": r"[0-9a-f]{64}",
    "row": r"[0-9a-f]{64}",
    "signature": r"[A-Za-z0-9+/]{86}==",
    "store": r"[0-9a-f]{32}",
    "key": r"[0-9a-f]{64}|-----BEGIN PUBLIC KEY-----[^-]*-----END PUBLIC KEY-----\n",
    "fingerprint": r"[0-9a-f]{64}",
    "root": r"[0-9a-f]{64}",
    "prev": r"[0-9a-f]{64}",
    "token": r"privcheck_[\w-]{43}",
    "at": r"20\d\d-.*Z",
    "made_at": r"20\d\d-.*Z",
    "revoked": r"20\d\d-.*Z",
    "charge": r"c-[0-9a-f]{16}",
    "expires": r"20\d\d-.*Z",
    "since": r"20\d\d-.*Z",
}


def call(*arguments, code=0):
    result = CliRunner().invoke(main.main, [*map(str, arguments), "--json"])
    assert result.exit_code == code, result.output
    assert "privcheck_" not in result.stderr
    return json.loads(result.stdout)


def plain(told):
    """Returns an answer without what is another one's in every ledger."""
    if isinstance(told, dict):
        return {
            name: "…" if isinstance(value, str) and re.fullmatch(MADE.get(name, "(?!)"), value) else plain(value)
            for name, value in told.items()
        }
    return [plain(one) for one in told] if isinstance(told, list) else told


@pytest.fixture(params=["store", "service"])
def ledger(request, tmp_path, monkeypatch):
    """Where a ledger is asked, with its officer's token in the environment."""
    store = f"sqlite:///{tmp_path}/budget.db"
    monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", call("ledger", "init", "--store", store)["officer_token"])
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    with ExitStack() as stack:
        if request.param == "service":
            app = create_app(Settings(store=store, rate=1e6, burst=10**6, processes=1, calculation_seconds=60))
            store = str(stack.enter_context(served(app)).base_url)
        yield store


def walk(url, folder):
    """Yields what every command answers, one after the other."""

    def ask(command, *arguments, code=0):
        return call("ledger", command, *arguments, "--store", url, code=code)

    yield ask("policy", "--dataset", "people", *POLICY, "--until", "2099-01-01T00:00:00Z")
    given = ("--dataset", "trips", "--currency", "rho", "--cap", "1/3", "--delta", "1e-6")
    yield ask("grant", *given, "--name", "G", code=2)["error"]  # there is no policy
    yield ask("policy", "--dataset", "trips", *POLICY, "--allow-asserted-unit")
    yield ask("policy", "--dataset", "plans", *POLICY)
    yield ask("grant", *given, "--name", "G")
    yield ask("grant", *given, "--name", "G", code=2)["error"]
    yield ask("grant", *given[:4], "--cap", "100", "--delta", "1e-6", "--name", "H", code=1)["error"]
    (folder / "plan.json").write_text('{"type": "compose", "events": [{"type": "gaussian", "rho": 0.01, "count": 3}]}')
    yield ask("grant", "--dataset", "plans", "--plan", folder / "plan.json", "--delta", "1e-6", *FOR, "--name", "P")
    yield ask("quote", *G, *RHO, "--count", "1e1")
    yield ask("quote", *G, *FOR, "--gaussian-rho", "9", code=1)
    first = ask("charge", *G, *RHO, "--key", "K")
    yield first
    assert ask("charge", *G, *RHO, "--key", "K") == first
    yield ask("charge", *G, *FOR, "--gaussian-rho", "0.02", "--key", "K", code=2)["error"]
    yield ask("charge", *G, *FOR, "--gaussian-rho", "0.5", code=1)
    yield ask("charge", *G, *FOR, "--event", '{"type": "gaussian", "rho": "0.01", "rho": "0.001"}', code=2)
    yield ask("charge", "--grant", "nothing", *RHO, code=2)["error"]
    yield ask("charge", *G, "--algorithm", "dp-apvi", "--set", "rho=1/4")
    yield ask("charge", *G, "--algorithm", "sparse-vector-4", code=1)
    yield ask("charge", "--grant", "P", *RHO)
    held = ask("reserve", *G, *RHO, "--seconds", "60")
    yield held
    yield ask("commit", held["id"])
    yield ask("release", held["id"], "--evidence", "it never ran", code=2)["error"]
    tiny = ask("reserve", *G, *FOR, "--gaussian-rho", "1.23456789012345e-30")
    yield ask("release", tiny["id"], "--evidence", "it never ran: " + "x" * 1000)
    yield ask("block", "people", "--name", "b1", "--name", "b2", code=2)["error"]
    yield ask("block", "people", "--name", "b1", "--name", "b2", "--disjoint-users", "by month")
    of = ("--dataset", "people", "--currency", "mu2", "--cap", "1", "--delta", "1e-6", "--name", "B")
    yield ask("grant", *of, "--block", "b2", "--block", "b1")
    yield ask("charge", "--grant", "B", *FOR, "--gaussian-std", "30", "--sensitivity", "2", "--block", "b1")
    yield ask("evidence", held["id"], "--verdict", "consistent", "--report", "audit.json")
    yield ask("freeze", "B", "--reason", "an audit")
    yield ask("token", "--name", "ana", "--role", "analyst", "--grant", "G", "--expires", "2099-01-01T00:00:00+01:00")
    yield ask("token", "--name", "ana", "--role", "analyst", code=2)["error"]
    yield ask("token", "--name", "ana", "--revoke")
    yield ask("token", "--list")
    yield ask("key")
    yield call("ledger", "heads", "show", "--store", url)
    yield ask("show")
    yield ask("show", "people")
    yield ask("show", "nowhere", code=2)["error"]
    yield ask("verify", "--receipt", json.dumps(first))
    yield ask("verify", "--receipt", json.dumps({**first["receipt"], "seq": 99}), code=1)
    yield ask("export", "trips")
    yield ask("export", "trips", "--as", "dp-event")
    for command in (("show",), ("export", "trips"), ("verify",), ("token", "--list")):  # in words too
        assert CliRunner().invoke(main.main, ["ledger", *command, "--store", url]).exit_code == 0


ANSWERS = {}


def test_every_command_answers_the_same(ledger, tmp_path):
    told = [plain(one) for one in walk(ledger, tmp_path)]
    kind = "service" if ledger.startswith("http") else "store"
    ANSWERS[kind] = told
    if len(ANSWERS) == 2:
        for here, there in zip(ANSWERS["store"], ANSWERS["service"], strict=True):
            assert _without_claim(here) == _without_claim(there)


def _without_claim(told):
    """Returns an answer without what a service says of a claim that it has judged itself."""
    if isinstance(told, dict):
        return {
            name: sorted({"algorithm", "parameters"} & set(value))
            if name == "claim" and value
            else _without_claim(value)
            for name, value in told.items()
            if name not in ("given", "message", "hint", "key")
        }
    return [_without_claim(one) for one in told] if isinstance(told, list) else told


def test_a_runs_own_record_is_charged_through_a_service(ledger, tmp_path):
    out = tmp_path / "run"
    small = ("--env", "riverswim", "--set", "H=3", "--set", "n=20", "--set", "rho=1/8")
    call("run", "dp-apvi", *small, "--out", out)
    call("ledger", "policy", "--dataset", "trips", *POLICY, "--store", ledger)
    given = ("--dataset", "trips", "--currency", "rho", "--cap", "1", "--delta", "1e-6", "--name", "G")
    call("ledger", "grant", *given, "--store", ledger)
    said = json.loads((out / "ledger.jsonl").read_text().splitlines()[0]).get("unit")
    asked = ("ledger", "import", out / "ledger.jsonl", *G, *(() if said else FOR), "--store", ledger)
    done = call(*asked)
    assert (done["state"], call(*asked)) == ("committed", done)
    (charge,) = call("ledger", "export", "trips", "--store", ledger)["charges"]
    assert (charge["claim"]["algorithm"], charge["claim"]["parameters"]["rho"]) == ("dp-apvi", "1/8")
    assert len(charge["claim"]["record"]) == 64


def test_what_a_service_cannot_be_asked(tmp_path, monkeypatch):
    told = call("ledger", "init", "--store", "https://ledger.example.org", code=2)
    assert "privcheck serve" in told["message"]
    monkeypatch.delenv("PRIVCHECK_LEDGER_TOKEN", raising=False)
    assert call("ledger", "show", "--store", "https://ledger.example.org", code=2)["error"] == "authority"
    (tmp_path / "token").write_text("privcheck_x\n")
    given = ("--token-file", tmp_path / "token")
    told = call("ledger", "show", "--store", "http://ledger.example.org", *given, code=2)
    assert "clear text" in told["message"]
    told = call("ledger", "charge", *G, *RHO, "--key", "two words", "--store", "https://127.0.0.1:9", *given, code=2)
    assert "--key two words: expected a key" in told["message"]


@pytest.mark.parametrize(
    "url",
    [
        "postgres+x://ann:s3cret@host/budget",
        "https://ann:s3cret@127.0.0.1:9",
        "https://ann:s3cret@host:port",
        "postgresql://ann:s3cret/word@127.0.0.1:1/x",
        "host=127.0.0.1 password=s3cret",
        "postgresql://127.0.0.1:1/x?password=s3cret",
        "postgresql://ann:s3cret/word/@127.0.0.1:1/x",
        "postgresql://ann:9/%s3cret@127.0.0.1:1/x",
    ],
)
@pytest.mark.parametrize("command", [("ledger", "show"), ("ledger", "init"), ("serve",)])
def test_a_password_is_never_shown(url, command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRIVCHECK_LEDGER_TOKEN", "privcheck_x")
    for form in ([], ["--json"]) if command[0] == "ledger" else ([],):
        if (command[-1], url[:5]) in {("init", "host="), ("serve", "host=")}:
            continue  # that is a file's name as good as any
        result = CliRunner().invoke(main.main, [*command, "--store", url, *form])
        assert result.exit_code == 2
        assert "s3cret" not in result.output


def test_the_store_that_is_served_is_the_one_that_is_asked(ledger, tmp_path):
    call("ledger", "policy", "--dataset", "trips", *POLICY, "--store", ledger)
    given = ("--dataset", "trips", "--currency", "rho", "--cap", "1", "--delta", "1e-6", "--name", "G")
    call("ledger", "grant", *given, "--store", ledger)
    store = open_store(f"{tmp_path}/budget.db")
    with store.read() as transaction:
        assert transaction.one("SELECT name FROM budget") == ("G",)
    store.close()
