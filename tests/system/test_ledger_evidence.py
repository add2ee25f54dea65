"""What an audit finds of a charge is recorded by itself, and a violation stops spending before more is drawn."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

import budget_stores
from privcheck.cli import main
from privcheck.commands import checks, runs
from privcheck.ledger import Actor, Book, open_store, rows

OFFICER = Actor(name="otto", role="officer")
SIZE = ("--set", "H=3", "--set", "rho=1/4")
AUDIT = ("audit", "dp-apvi", "--view", "releases", "--trials", 400, *SIZE)
CHECK = ("check", "dp-apvi", "--env", "riverswim", "--trials", 400, *SIZE, "--set", "n=20")


def call(*arguments, code=0):
    result = CliRunner().invoke(main.main, [*map(str, arguments), "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture
def store(tmp_path):
    url = str(tmp_path / "budget.db")
    call("ledger", "init", "--store", url)
    policy = ("--epsilon", 30, "--delta", "1e-6", "--unit", budget_stores.UNIT)
    call("ledger", "policy", "--store", url, "--dataset", "trips", *policy)
    given = ("--dataset", "trips", "--currency", "rho", "--cap", 4, "--delta", "1e-6", "--name", "G")
    call("ledger", "grant", "--store", url, *given)
    return url


@pytest.fixture
def charge(store):
    return call("ledger", "charge", "--store", store, "--grant", "G", "--algorithm", "dp-apvi", *SIZE)["id"]


def found(store):
    """The evidence in the store, the grant's state, and the states of its charges."""
    book = Book(open_store(store))
    with book.store.read() as transaction:
        evidence = [row.body for row in rows.rows_of_kind(transaction, "trips", "evidence")]
    state = book.show(OFFICER)["datasets"][0]["grants"][0]["balance"]["state"]
    states = [one.state for one in book.charges(OFFICER, "trips")]
    book.store.close()
    return evidence, state, states


def violate(monkeypatch, module):
    honest = module.audit
    monkeypatch.setattr(module, "audit", lambda *a, **k: replace(honest(*a, **k), verdict="violation"))


def test_an_audit_is_recorded_with_the_charge_that_it_is_of(store, charge, tmp_path, monkeypatch):
    assert call(*AUDIT, "--ledger", store, "--charge", charge)["verdict"] == "consistent"
    ((evidence,), state, _) = found(store)
    assert (evidence["of"], evidence["verdict"], state) == (charge, "consistent", "open")
    assert "releases: consistent, ε ≥" in evidence["report"]
    violate(monkeypatch, runs)
    out = tmp_path / "audit"
    assert call(*AUDIT, "--ledger", store, "--charge", charge, "--out", out, code=1)["verdict"] == "violation"
    assert (out / "audit.json").exists()
    evidence, state, _ = found(store)
    assert ([one["verdict"] for one in evidence], state) == (["consistent", "violation"], "frozen")


def test_an_audit_of_something_else_is_refused_before_it_begins(store, charge, monkeypatch):
    monkeypatch.setattr(runs, "audit", lambda *_, **__: pytest.fail("it was begun"))
    other = (*AUDIT[:-1], "rho=1/2", "--ledger", store, "--charge", charge)
    assert "is of parameters" in call(*other, code=2)["message"]
    bare = call("ledger", "charge", "--store", store, "--grant", "G", "--unit", "dataset", "--gaussian-rho", "0.01")[
        "id"
    ]
    assert "of algorithm None" in call(*AUDIT, "--ledger", store, "--charge", bare, code=2)["message"]
    assert "together" in call(*AUDIT, "--ledger", store, code=2)["message"]
    assert "together" in call(*AUDIT, "--charge", bare, code=2)["message"]
    assert call(*AUDIT, "--ledger", store, "--charge", "c-0", code=2)["error"] == "unknown-name"
    assert found(store)[0] == []


def test_a_check_records_what_its_audits_found_before_it_runs(store, tmp_path):
    report = call(*CHECK, "--replicates", 1, "--ledger", store, "--grant", "G", "--out", tmp_path / "check")
    assert report["run"]["replicates"] == 1
    ((evidence,), state, states) = found(store)
    assert (evidence["verdict"], state, states) == ("consistent", "open", ["committed"])
    assert "releases: consistent" in evidence["report"]


def test_a_check_whose_audit_finds_a_violation_draws_nothing_and_freezes_the_grant(store, tmp_path, monkeypatch):
    violate(monkeypatch, checks)
    out = tmp_path / "check"
    report = call(*CHECK, "--replicates", 1, "--ledger", store, "--grant", "G", "--out", out, code=1)
    assert report.get("run") is None
    assert not (out / "ledger.jsonl").exists()
    assert not (out / "receipt.json").exists()
    ((evidence,), state, states) = found(store)
    assert (evidence["verdict"], state, states) == ("violation", "frozen", ["released"])
    again = call(*CHECK, "--replicates", 1, "--ledger", store, "--grant", "G", "--out", out, code=1)
    assert "frozen" in again["message"]


def test_after_a_violation_no_statement_promises_the_guarantee(store, charge):
    before = call("ledger", "show", "--store", store)["datasets"][0]["support"]
    assert before["state"] == "as declared"
    assert before["sentence"].startswith(
        "The guarantee stands as declared; no audit of a charge is recorded. Unit: replace one user"
    )
    report = "dp-apvi, releases: violation, ε ≥ 0.41 at δ = 0"
    call("ledger", "evidence", charge, "--store", store, "--verdict", "violation", "--report", report)
    after = call("ledger", "show", "--store", store)["datasets"][0]["support"]
    assert (after["state"], after["charges"]) == ("not supported", [charge])
    assert after["sentence"].startswith(f"Not supported since {after['since'][:10]}: an audit of charge {charge} found")
    assert report in after["sentence"]
    exported = call("ledger", "export", "trips", "--store", store)
    assert exported["dataset"]["support"] == after
    for command in (("show",), ("export", "trips")):
        text = CliRunner().invoke(main.main, ["ledger", *command, "--store", store]).output
        assert after["sentence"] in text
