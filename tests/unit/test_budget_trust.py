"""Trust models on both stores: whose claims a dataset takes, and local charges, which are recorded and not added."""

from fractions import Fraction

import pytest

import budget_stores
from privcheck.accounting.conversions import zcdp_to_epsilon
from privcheck.errors import BudgetError, ParameterError
from privcheck.ledger import Actor, Book, rows

OTTO = Actor(name="otto", role="officer")
RHO = {"type": "zcdp", "rho": "0.4"}


@pytest.fixture(params=sorted(budget_stores.STORES))
def book(request, tmp_path):
    with budget_stores.STORES[request.param](tmp_path) as store:
        yield Book.init(store)[0]


def open_dataset(book, trust, *, name="G", cap="0.5", currency="rho"):
    book.set_policy(OTTO, dataset=f"of-{name}", epsilon="8", delta="1e-6", unit=budget_stores.unit_of(trust))
    return book.grant(OTTO, name=name, dataset=f"of-{name}", currency=currency, cap=cap, delta="1e-6")[0]


def test_local_charges_are_recorded_beside_the_cap_and_never_counted_in_it(book):
    grant = open_dataset(book, "local")
    assert grant.recorded
    assert "recorded, not added" in grant.theorem
    decisions = [book.charge(OTTO, grant="G", unit="dataset", event=RHO, key=f"k{n}") for n in range(10)]
    assert {d.state for d in decisions} == {"committed"}
    told = decisions[-1].to_dict()
    assert (told["remaining"], told["balance"]["committed"], told["balance"]["free"]) == ("0.5", "0", "0.5")
    recorded = told["balance"]["recorded"]
    assert recorded["amount"] == "4"
    assert float(recorded["epsilon"]) == pytest.approx(zcdp_to_epsilon(4.0, 1e-6).value)
    message = book.find_charge(OTTO, decisions[3].charge).message
    assert message["delta"] == "0.000001"
    assert float(message["epsilon"]) == pytest.approx(zcdp_to_epsilon(0.4, 1e-6).value)
    refused = book.charge(OTTO, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.6"})
    assert refused.reason == "it costs rho = 0.6 a message, and 0.5 is the most for one message"
    assert book.quote(OTTO, grant="G", unit="dataset", event=RHO).times is None
    assert book.quote(OTTO, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.6"}).times == 0
    assert book.verify(OTTO).ok


def test_a_statement_says_what_was_lost_by_who_took_part_in_everything(book):
    open_dataset(book, "local")
    shown = book.show(OTTO)["datasets"][0]
    assert shown["taken_part_in_all"]["epsilon"] == "0"
    book.grant(OTTO, name="H", dataset="of-G", currency="rho", cap="1", delta="1e-6")  # each within the policy: no sum
    book.grant(OTTO, name="E", dataset="of-G", currency="epsilon", cap="3")
    with pytest.raises(BudgetError, match="policy allows 8"):
        book.grant(OTTO, name="too-much", dataset="of-G", currency="epsilon", cap="9")
    for _ in range(3):
        book.charge(OTTO, grant="G", unit="dataset", event=RHO)
        book.charge(OTTO, grant="H", unit="dataset", event=RHO)
    everything = book.show(OTTO)["datasets"][0]["taken_part_in_all"]
    assert float(everything["epsilon"]) == pytest.approx(zcdp_to_epsilon(2.4, 1e-6).value)
    assert "not of the amount spent so far" in everything["note"]
    book.charge(OTTO, grant="E", unit="dataset", event={"type": "pure", "epsilon": "2"})
    both = float(book.show(OTTO)["datasets"][0]["taken_part_in_all"]["epsilon"])
    assert both == pytest.approx(2 + zcdp_to_epsilon(2.4, 5e-7).value)
    released = book.reserve(OTTO, grant="E", unit="dataset", event={"type": "pure", "epsilon": "1"})
    assert float(book.show(OTTO)["datasets"][0]["taken_part_in_all"]["epsilon"]) == pytest.approx(both + 1)
    book.release(OTTO, released.charge, evidence="nobody was asked")
    assert float(book.show(OTTO)["datasets"][0]["taken_part_in_all"]["epsilon"]) == pytest.approx(both)
    assert book.verify(OTTO).ok


def test_local_users_of_one_block_have_lost_what_was_charged_there(book):
    book.set_policy(OTTO, dataset="d", epsilon="8", delta="1e-6", unit=budget_stores.unit_of("local"))
    book.add_blocks(OTTO, "d", ["a", "b"], disjoint_users="by the month of signing up")
    book.grant(OTTO, name="G", dataset="d", currency="epsilon", cap="2", blocks=["a", "b"])
    for blocks in (["a"], ["a", "b"], ["b"], ["b"]):
        done = book.charge(OTTO, grant="G", unit="dataset", event={"type": "pure", "epsilon": "1"}, blocks=blocks)
    assert done.balance["recorded"]["amount"] == "3"
    assert book.show(OTTO)["datasets"][0]["taken_part_in_all"]["epsilon"] == "3"
    assert book.verify(OTTO).ok


def test_what_is_added_has_no_sum_beside_the_cap(book):
    for trust in ("central", "joint", "shuffle"):
        assert not open_dataset(book, trust, name=trust).recorded
        assert book.quote(OTTO, grant=trust, unit="dataset", event=RHO).balance["recorded"] is None
    assert {one["taken_part_in_all"] for one in book.show(OTTO)["datasets"]} == {None}


def test_a_plan_is_no_local_grant(book):
    open_dataset(book, "local")
    with pytest.raises(ParameterError, match="not added up"):
        book.plan(
            OTTO, name="P", dataset="of-G", events={"type": "gaussian", "std": "30"}, unit="dataset", delta="1e-6"
        )


TAKEN = {"central": {"central", "joint"}, "joint": {"central", "joint"}, "shuffle": {"shuffle"}, "local": {"local"}}


@pytest.mark.parametrize("trust", sorted(TAKEN))
def test_a_claim_of_another_trust_model_is_refused_with_what_to_do(book, trust):
    open_dataset(book, trust)
    for model in TAKEN:
        claim = {"algorithm": "x", "joint": MET if model == "joint" else {}}
        asked = {"grant": "G", "event": {**RHO, "rho": "0.1"}, "claim": claim, "unit": budget_stores.unit_of(model)}
        if model in TAKEN[trust]:
            assert book.charge(OTTO, **asked).state == "committed"
        else:
            with pytest.raises(
                ParameterError, match=f"the model is {model}, not {trust}.* or charge a dataset with its"
            ):
                book.charge(OTTO, **asked)
    with pytest.raises(ParameterError, match="expected one of central, joint"):
        book.charge(OTTO, grant="G", unit=budget_stores.unit_of("trusted"), event=RHO)


OUTPUTS, BOARD = "declared: actions are computed from billboard and own data", "verified"
MET = {"outputs": OUTPUTS, "billboard": BOARD}


@pytest.mark.parametrize("trust", ["joint", "central"])
def test_joint_dp_carries_the_lemmas_conditions_in_every_row(book, trust):
    open_dataset(book, trust)
    event = {**RHO, "rho": "0.1"}
    claim, joint = {"algorithm": "x", "joint": MET}, budget_stores.unit_of("joint")
    held = book.reserve(OTTO, grant="G", unit=joint, event=event, claim=claim, key="k")
    assert [(one["name"], one["how"], one["holds"]) for one in held.conditions] == [
        ("outputs", OUTPUTS, True), ("billboard", BOARD, True),
    ]  # fmt: skip
    assert "function of the billboard and of k's own data" in held.conditions[0]["statement"]
    assert book.reserve(OTTO, grant="G", unit=joint, event=event, claim=claim, key="k") == held
    done = book.commit(OTTO, held.charge)
    assert done.to_dict()["conditions"] == list(held.conditions)
    kept = book.find_charge(OTTO, held.charge).claim["joint"]
    assert kept["conditions"] == list(held.conditions)
    assert "Hsu" in kept["lemma"]
    assert book.verify(OTTO).ok


@pytest.mark.parametrize(
    ("met", "missing"),
    [({}, "outputs: every output to user k"), ({"outputs": OUTPUTS}, "billboard: the billboard is"),
     ({**MET, "outputs": None}, "outputs: every output"), ({**MET, "billboard": ""}, "billboard: the billboard")],
)  # fmt: skip
def test_joint_dp_whose_conditions_are_not_met_is_refused(book, met, missing):
    open_dataset(book, "central")
    asked = {"grant": "G", "unit": budget_stores.unit_of("joint"), "event": RHO}
    with pytest.raises(BudgetError, match=f"was not found to hold: {missing}"):
        book.charge(OTTO, **asked, claim={"joint": met})
    with pytest.raises(ParameterError, match="expected conditions of outputs, billboard; got 'everything'"):
        book.charge(OTTO, **asked, claim={"joint": {**MET, "everything": "x"}})
    with pytest.raises(ParameterError, match="this was priced for the central model"):
        book.charge(OTTO, grant="G", unit="dataset", event=RHO, claim={"joint": MET})
    assert book.charges(OTTO, "of-G") == []


def test_on_a_joint_dataset_an_event_needs_the_conditions_and_what_is_central_does_not(book):
    open_dataset(book, "joint")
    event = {**RHO, "rho": "0.1"}
    for claim in (None, {"algorithm": "x"}):
        with pytest.raises(BudgetError, match="not found to hold: outputs"):
            book.charge(OTTO, grant="G", unit="dataset", event=event, claim=claim)
    assert len(book.charge(OTTO, grant="G", unit="dataset", event=event, claim={"joint": MET}).conditions) == 2
    assert book.charge(OTTO, grant="G", unit=budget_stores.UNIT, event=event).conditions == ()


def test_a_row_that_claims_not_to_be_added_is_found(book):
    open_dataset(book, "central")
    with book.store.write() as transaction:
        made = rows.first_of_grant(transaction, "G").body
        body = {**made, "grant": {**made["grant"], "name": "H", "recorded": True}}
        transaction.run("INSERT INTO budget (name, dataset) VALUES ('H', 'of-G')")
        rows.append(transaction, dataset="of-G", kind="grant", actor="eve", body=body, at=book.now(), grant="H")
    problems = book.verify(OTTO).problems
    assert any("are not added up, but the dataset does not use the local model" in problem for problem in problems)


def test_a_local_charge_above_its_cap_is_found(book):
    open_dataset(book, "local")
    cost = {"amount": "0.75", "lost": "0"}
    balance = {"committed": cost, "reserved": {"amount": "0", "lost": "0"}, "used": [], "frozen": False}
    body = {"state": "committed", "event": {"type": "zcdp", "rho": "0.75", "count": 1}, "cost": cost, "claim": None,
            "expires": None, "request": "x", "balance": balance}  # fmt: skip
    with book.store.write() as transaction:
        rows.append(
            transaction, dataset="of-G", kind="charge", actor="eve", body=body, at=book.now(), grant="G", charge="c-1"
        )
    assert any("costs more than grant 'G' allows for one charge" in problem for problem in book.verify(OTTO).problems)
    assert Fraction(book.show(OTTO)["datasets"][0]["grants"][0]["balance"]["recorded"]["amount"]) == Fraction(3, 4)
