"""A divided dataset: every block up to the policy, a charge to several all or nothing, on both stores."""

from fractions import Fraction
from itertools import count

import pytest

import budget_stores
from privcheck.errors import BudgetError, IdempotencyError, ParameterError, UnknownNameError
from privcheck.ledger import Actor, Book, rows
from privcheck.ledger.balances import Balance

OTTO = Actor(name="otto", role="officer")
WHY = "by the month of signing up"


@pytest.fixture(params=sorted(budget_stores.STORES))
def book(request, tmp_path):
    with budget_stores.STORES[request.param](tmp_path) as store:
        made, _ = Book.init(store)
        made.set_policy(
            OTTO, dataset="trips", epsilon="8", delta="1e-6", unit=budget_stores.UNIT
        )  # ρ = 1.05 fits, 1.06 does not
        yield made


def divide(book, *names):
    return book.add_blocks(OTTO, "trips", names, disjoint_users=WHY)


def give(book, name, cap, *blocks):
    return book.grant(OTTO, name=name, dataset="trips", currency="rho", cap=cap, delta="1e-6", blocks=blocks)[0]


def spend(book, grant, rho, *blocks, how="charge"):
    chosen = {"blocks": blocks} if blocks else {}
    return getattr(book, how)(OTTO, grant=grant, unit="dataset", event={"type": "zcdp", "rho": rho}, **chosen)


def free(book, grant):
    shown = {g["name"]: g for g in book.show(OTTO, "trips")["datasets"][0]["grants"]}
    return {block: Fraction(one["free"]) for block, one in shown[grant]["balance"]["blocks"].items()}


def test_nothing_is_divided_until_somebody_says_that_no_user_is_in_two_blocks(book):
    for nothing in (None, "", "  "):
        with pytest.raises(
            ParameterError, match="the losses add up over them: charge the dataset as a whole"
        ) as caught:
            book.add_blocks(OTTO, "trips", ["a", "b"], disjoint_users=nothing)
        assert caught.value.name == "disjoint_users"
    made = divide(book, "b", "a")
    assert [(one.name, one.disjoint_users, one.by) for one in made] == [("a", WHY, "otto"), ("b", WHY, "otto")]
    assert [one["name"] for one in book.show(OTTO)["datasets"][0]["blocks"]] == ["a", "b"]
    assert [one.name for one in divide(book, "c")] == ["a", "b", "c"]
    with pytest.raises(ParameterError, match="expected names of new blocks"):
        divide(book, "d", "a")
    with pytest.raises(UnknownNameError):
        book.add_blocks(OTTO, "beds", ["a"], disjoint_users=WHY)


def test_a_dataset_is_divided_before_its_first_grant_or_not_at_all(book):
    give(book, "whole", "0.1")
    with pytest.raises(ParameterError, match="before the first grant"):
        divide(book, "a")
    with pytest.raises(ParameterError, match="has no block 'a'"):
        give(book, "G", "0.1", "a")
    with pytest.raises(ParameterError, match="has no blocks; expected a charge to all of it"):
        spend(book, "whole", "0.01", "a")
    assert spend(book, "whole", "0.01").to_dict()["blocks"] == []


@pytest.mark.parametrize(
    ("blocks", "message"),
    [((), "is divided; expected the blocks"), (("a", "c"), "no block 'c'"), (("a", "a"), "every block once"),
     (("a b",), "expected block as"), ("a", "as a list"), (tuple(f"x{i}" for i in range(65)), "at most 64")],
)  # fmt: skip
def test_a_grant_names_the_blocks_that_it_covers(book, blocks, message):
    divide(book, "a", "b")
    with pytest.raises(ParameterError, match=message):
        book.grant(OTTO, name="G", dataset="trips", currency="rho", cap="1", delta="1e-6", blocks=blocks)


def test_every_block_may_lose_all_that_the_policy_allows_and_no_more(book):
    divide(book, "a", "b", "c")
    give(book, "ab", "0.5", "a", "b")
    give(book, "c", "1.05", "c")
    give(book, "bc-less", "0.0001", "b")
    with pytest.raises(BudgetError, match="policy allows 8"):
        give(book, "more", "0.6", "a")
    with pytest.raises(BudgetError, match="policy allows 8"):
        give(book, "more", "0.1", "b", "c")
    give(book, "a", "0.55", "a")
    assert book.verify(OTTO).ok


def test_a_charge_to_several_blocks_is_all_or_nothing(book):
    divide(book, "a", "b", "c")
    give(book, "G", "1", "c", "a", "b")
    assert spend(book, "G", "0.75", "b").state == "committed"
    assert free(book, "G") == {"a": 1, "b": Fraction(1, 4), "c": 1}
    refused = spend(book, "G", "0.5", "c", "b")
    assert (refused.state, refused.blocks) == ("refused", ("b", "c"))
    assert refused.reason == "on block b: it costs rho = 0.5, and 0.25 is left"
    assert free(book, "G") == {"a": 1, "b": Fraction(1, 4), "c": 1}
    kept = spend(book, "G", "0.5", "c", "a", how="reserve")
    assert kept.to_dict()["blocks"] == ["a", "c"]
    assert free(book, "G") == {"a": Fraction(1, 2), "b": Fraction(1, 4), "c": Fraction(1, 2)}
    everywhere = spend(book, "G", "0.25")
    assert everywhere.blocks == ("a", "b", "c")
    assert everywhere.to_dict()["remaining"] == "0"
    assert book.release(OTTO, kept.charge, evidence="it never ran").blocks == ("a", "c")
    assert free(book, "G") == {"a": Fraction(3, 4), "b": 0, "c": Fraction(3, 4)}
    assert book.find_charge(OTTO, everywhere.charge).to_dict()["blocks"] == ["a", "b", "c"]
    quarter = {"type": "zcdp", "rho": "0.25"}
    quoted = {blocks: book.quote(OTTO, grant="G", unit="dataset", event=quarter, blocks=blocks).times
              for blocks in (("a",), ("a", "c"), ("a", "b"), None)}  # fmt: skip
    assert quoted == {("a",): 3, ("a", "c"): 3, ("a", "b"): 0, None: 0}
    for wrong, message in ((("d",), "expected some of these"), ((), "got none"), ("a", "as a list")):
        with pytest.raises(ParameterError, match=message):
            book.charge(OTTO, grant="G", unit="dataset", event={"type": "zcdp", "rho": "0.1"}, blocks=wrong)
    assert book.verify(OTTO).ok


def test_one_key_is_one_set_of_blocks(book):
    divide(book, "a", "b")
    give(book, "G", "1", "a", "b")
    event = {"type": "zcdp", "rho": "0.1"}
    first = book.charge(OTTO, grant="G", unit="dataset", event=event, key="k")
    assert book.charge(OTTO, grant="G", unit="dataset", event=event, key="k", blocks=["b", "a"]) == first
    with pytest.raises(IdempotencyError, match="another request"):
        book.charge(OTTO, grant="G", unit="dataset", event=event, key="k", blocks=["a"])


def test_what_is_granted_after_a_blocks_first_charge_is_late_there_alone(book):
    divide(book, "a", "b", "c")
    give(book, "first", "0.5", "a", "b")
    spend(book, "first", "0.1", "a")
    late = [give(book, "".join(blocks), "0.1", *blocks).late for blocks in ("a", "b", "c", "ac")]
    assert late == [True, False, False, True]
    plan = {"type": "gaussian", "std": "30", "count": 4}
    with pytest.raises(BudgetError, match="in events"):  # a plan chosen after looking has no price
        book.plan(OTTO, name="plan", dataset="trips", events=plan, unit="dataset", delta="1e-6", blocks=["a"])
    assert book.verify(OTTO).ok


def test_a_plan_is_counted_down_on_each_block(book):
    divide(book, "a", "b")
    event = {"type": "gaussian", "std": "30"}
    book.plan(
        OTTO, name="P", dataset="trips", events={**event, "count": 4}, unit="dataset", delta="1e-6", blocks=["a", "b"]
    )
    book.charge(OTTO, grant="P", unit="dataset", event={**event, "count": 3}, blocks=["a"])
    book.charge(OTTO, grant="P", unit="dataset", event={**event, "count": 2}, blocks=["b"])
    assert free(book, "P") == {"a": 1, "b": 2}
    refused = book.charge(OTTO, grant="P", unit="dataset", event={**event, "count": 2})
    assert refused.reason.startswith("on block a: the plan has 1 of 4 left")
    assert book.charge(OTTO, grant="P", unit="dataset", event=event).balance["used"] == [4]
    assert book.verify(OTTO).ok


def forge(book, *, blocks, balance, held=2**60):
    """A row with its hash and place right, as whoever may write the database could make it."""
    number = next(_NUMBERS)
    cost = {"amount": "0.25", "lost": "0"}
    event = {"type": "zcdp", "rho": "0.25", "count": 1}
    body = {"state": "committed", "event": event, "cost": cost, "claim": None, "expires": None, "request": "x",
            "blocks": blocks, "balance": balance}  # fmt: skip
    with book.store.write() as transaction:
        rows.append(transaction, dataset="trips", kind="charge", actor="eve", body=body, at=book.now(), grant="G",
                    charge=f"c-{number}", shares=(held, 0))  # fmt: skip


_NUMBERS = count()


def sums(**amounts):
    zero = {"amount": "0", "lost": "0"}
    parts = {name: {"committed": {"amount": amount, "lost": "0"}, "reserved": zero, "used": []}
             for name, amount in amounts.items()}  # fmt: skip
    return {"blocks": parts, "frozen": False}


@pytest.mark.parametrize(
    ("blocks", "balance", "message"),
    [
        (["a", "b"], sums(a="0.25"), "its balance is not the sum"),
        (["a", "z"], sums(a="0.25", z="0.25"), "has blocks that grant 'G' does not cover"),
        ([], sums(a="0.25"), "has blocks that grant 'G' does not cover"),
    ],
)
def test_a_charge_that_skips_a_block_is_found(book, blocks, balance, message):
    divide(book, "a", "b")
    give(book, "G", "1", "a", "b")
    forge(book, blocks=blocks, balance=balance)
    assert any(message in problem for problem in book.verify(OTTO).problems)


def test_a_block_that_is_overspent_is_found(book):
    divide(book, "a", "b")
    give(book, "G", "1", "a", "b")
    for number in range(1, 6):
        forge(book, blocks=["b"], balance=sums(b=str(Fraction(number, 4))), held=min(number, 4) * 2**60)
    assert any("overspent on block b: 1.25 of its cap 1" in problem for problem in book.verify(OTTO).problems)


def test_a_row_before_blocks_is_read_as_it_was_written():
    old = {"committed": {"amount": "1/4", "lost": "0"}, "reserved": {"amount": "0", "lost": "0"}, "used": [],
           "frozen": True}  # fmt: skip
    assert Balance.of(old).to_dict() == {**old, "committed": {"amount": "0.25", "lost": "0"}}
