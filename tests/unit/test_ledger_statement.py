"""A statement that somebody could sign: noise, sensitivity and relation of each charge, and one sentence everywhere."""

import html
import json
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import budget_stores
from budget_stores import OTTO
from privcheck.accounting.currencies import CONCURRENCY, THEOREMS
from privcheck.cli.main import main
from privcheck.ledger import Book, create_store
from privcheck.ledger.grants import read_adaptive, read_policy
from privcheck.ledger.rows import rows_of_dataset
from privcheck.ledger.values import concurrency_between
from privcheck.ledger.views import charges_of_rows, state_charges
from privcheck.service.app import Settings, create_app
from privcheck.service.calculator import Calculator
from privcheck.service.problems import ProblemError
from served import served

UNIT = {"who": "user", "trajectories": 1, "steps": None, "relation": "replace-one", "model": "central",
        "basis": "statement", "stated_by": "ana, who charges"}  # fmt: skip
SAID = [
    ({"type": "gaussian", "std": "30", "count": 1}, "gaussian, std 30", "1"),
    ({"type": "gaussian", "std": "30", "sensitivity": "2", "count": 5}, "5 × gaussian, std 30", "2"),
    ({"type": "gaussian", "rho": "0.01", "count": 1}, "gaussian, rho 0.01", "in the cost: not stated separately"),
    ({"type": "laplace", "scale": "10", "count": 1}, "laplace, scale 10", "1"),
    ({"type": "zcdp", "rho": "0.1", "count": 1}, "zcdp, rho 0.1 (a guarantee: the noise is not stated)", "in the cost"),
    ({"type": "pure", "epsilon": "1", "count": 1}, "(a guarantee", "in the cost"),
    (
        {"type": "compose", "events": [{"type": "laplace", "scale": "2", "count": 1},
                                       {"type": "discrete_gaussian", "std": "3", "sensitivity": "4", "count": 2}]},
        "laplace, scale 2; 2 × discrete gaussian, std 3", "1; 4",
    ),
]  # fmt: skip


def charge(event, **more):
    fields = {"grant": "G", "state": "committed", "event": event, "unit": UNIT, "cost": {"amount": "1", "lost": "0"}}
    return {**fields, "claim": None, "blocks": [], **more}


@pytest.mark.parametrize(("event", "noise", "sensitivity"), SAID)
def test_a_line_says_noise_sensitivity_relation_unit_and_cost(event, noise, sensitivity):
    (line,) = state_charges([charge(event)])
    assert noise in line["noise"]
    assert line["sensitivity"].startswith(sensitivity)
    assert (line["relation"], line["stated_by"], line["times"]) == ("replace-one", "ana, who charges", 1)
    assert (line["cost"], line["event"]) == ({"amount": "1", "lost": "0"}, event)


def test_an_events_own_relation_and_a_claim_are_said():
    event = {"type": "poisson_gaussian", "std": "3", "rate": "0.1", "relation": "add-remove", "count": 1}
    about = {"algorithm": "dp-apvi", "given": ["unit"]}
    (line,) = state_charges([charge(event, claim=about)])
    assert (line["relation"], line["about"], line["given"]) == ("add-remove", "dp-apvi", ["unit"])
    assert "rate 0.1" in line["noise"]
    (old,) = state_charges([charge(event, unit=None)])
    assert (old["unit"], old["stated_by"]) == ("never stated", None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["G", "H"]),
            st.sampled_from(["reserved", "committed", "released"]),
            st.integers(0, len(SAID) - 1),
            st.sampled_from(["ana", "ben"]),
        ),
        max_size=20,
    )
)
def test_every_charge_that_counts_is_in_one_line_and_no_other_is(drawn):
    charges = [
        charge(SAID[i][0], grant=grant, state=state, unit={**UNIT, "stated_by": who}) for grant, state, i, who in drawn
    ]
    lines = state_charges(charges)
    kept = [one for one in drawn if one[1] != "released"]
    assert sum(line["times"] for line in lines) == len(kept)
    assert len(lines) == len(set(kept))
    for grant, state, i, who in set(kept):
        (line,) = [
            one for one in lines
            if (one["grant"], one["state"], one["event"], one["stated_by"]) == (grant, state, SAID[i][0], who)
        ]  # fmt: skip
        assert line["times"] == kept.count((grant, state, i, who))


def test_every_currency_says_which_concurrency_its_theorem_covers():
    assert set(CONCURRENCY) == set(THEOREMS)
    assert CONCURRENCY["zcdp"].startswith("interactions one after the other")


@pytest.mark.parametrize(
    ("fields", "late", "remainder", "apart"),
    [
        ({}, False, "rho", False),
        ({"lost": Fraction(1, 10**9)}, False, "rho", True),
        ({"lost": Fraction(1, 10**9), "currency": "mu2"}, False, "rho", False),
        ({}, True, "rho", True),
        ({"currency": "mu2"}, True, "mu2", False),
    ],
)
def test_between_grants_no_more_concurrency_is_said_than_is_cited(fields, late, remainder, apart):
    asked = {"name": "K", "dataset": "d", "currency": "rho", "cap": "1", "delta": "1e-6", **fields}
    policy = read_policy(
        dataset="d", epsilon="8", delta="1e-3", unit=budget_stores.UNIT, remainder=remainder, by="otto"
    )
    said = concurrency_between(policy, [replace(read_adaptive(**asked), late=late)])
    assert ("interactions with K one after the other" in said) == apart


@pytest.mark.parametrize("violated", [False, True])
def test_show_json_page_and_statement_say_the_same_sentence(tmp_path, monkeypatch, violated):
    monkeypatch.setattr(Calculator, "start", lambda *_: None)
    monkeypatch.setattr(Calculator, "run", _refuse_now)
    url = str(tmp_path / "budget.db")
    book, token = Book.init(create_store(url))
    budget_stores.grant(book, OTTO, name="G", dataset="d", currency="rho", cap="1", delta="1e-6")
    asked = {"grant": "G", "unit": "dataset", "event": {"type": "gaussian", "std": "30", "sensitivity": "2"}}
    first, second = book.charge(OTTO, **asked), book.reserve(OTTO, **asked)
    book.charge(OTTO, **{**asked, "event": {"type": "gaussian", "rho": "0.001"}})
    book.release(OTTO, second.charge, evidence="it did not start")
    if violated:
        book.add_evidence(OTTO, first.charge, verdict="violation", report="epsilon at least .41, claimed .25")
    sentence = book.show(OTTO)["datasets"][0]["support"]["sentence"]
    with book.store.read() as transaction:
        lines = state_charges(charges_of_rows(rows_of_dataset(transaction, "d")))
    book.store.close()
    assert sentence.startswith("Not supported since" if violated else "The guarantee stands as declared")
    assert not violated or ".41" in sentence
    assert [line["sensitivity"][:11] for line in lines] == ["2", "in the cost"]

    def say(*words):
        done = CliRunner().invoke(main, ["ledger", *words, "--store", url])
        assert done.exit_code == 0, done.output
        return done.output

    told = say("export", "d", "--as", "statement")
    exported = json.loads(say("export", "d", "--as", "statement", "--json"))
    assert sorted(exported["lines"], key=str) == sorted(lines, key=str)
    headers = {"Authorization": f"Bearer {token}"}
    with served(create_app(Settings(store=url))) as client:
        over_http = client.get("/v1/export?as=statement&dataset=d", headers=headers).json()["datasets"][0]
        shown = client.get("/v1/datasets/d", headers=headers).json()
        client.post("/login", data={"token": token}, headers={"Sec-Fetch-Site": "same-origin"})
        page = html.unescape(client.get("/statement/d").text)
    assert over_http["lines"] == lines
    assert {one["support"]["sentence"] for one in (shown, over_http, exported["dataset"])} == {sentence}
    for text in (told, say("show", "d"), page):
        assert sentence in text
    for text in (told, page):
        assert THEOREMS["zcdp"] in text
        assert "one after the other" in text
        assert exported["head"]["signature"] in text.replace("\u200b", "").replace("<wbr>", "")
        assert "gaussian, std 30" in text


def _refuse_now(*_):
    raise ProblemError(503, "not there yet")
