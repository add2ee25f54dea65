"""A plan in the ledger and the `Plan` of accounting: the same events, counts, refusals and curve, however written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budget_stores
from privcheck import accounting as acc
from privcheck.errors import BudgetError, ParameterError
from privcheck.ledger import Actor, Book, create_store
from privcheck.ledger.policies import count_lines, join_lines, plan_of
from privcheck.ledger.wire import parse_event

OTTO = Actor(name="otto", role="officer")
# ways to write one event in JSON, and the event
SPELLINGS = [
    ([{"std": "30"}, {"std": 30}, {"std": "3e1", "sensitivity": "1"}], "gaussian", acc.gaussian(std=30)),
    ([{"std": "15", "sensitivity": "2"}], "gaussian", acc.gaussian(std=15, sensitivity=2)),
    ([{"scale": "50"}, {"scale": 50.0, "sensitivity": 1}], "laplace", acc.laplace(scale=50)),
    ([{"epsilon": "0.1"}, {"epsilon": 0.1}], "pure", acc.pure(epsilon="0.1")),
    ([{"rho": "0.01"}, {"rho": "0.0100"}], "zcdp", acc.zcdp(rho="0.01")),
]
WRITTEN = st.sampled_from(SPELLINGS).flatmap(
    lambda one: st.tuples(st.sampled_from(one[0]), st.integers(1, 10**6)).map(
        lambda pair: ({"type": one[1], **pair[0], "count": pair[1]}, one[2] * pair[1])
    )
)


@given(st.lists(WRITTEN, min_size=1, max_size=7), st.lists(WRITTEN, max_size=7), st.randoms(use_true_random=False))
def test_lines_count_as_the_accountants_plan_does(planned, asked, random):
    lines = join_lines(parse_event({"type": "compose", "events": [written for written, _ in planned]}))
    other = list(planned)
    random.shuffle(other)
    assert join_lines(parse_event({"type": "compose", "events": [written for written, _ in other]})) == lines
    plan = acc.Plan.of(event for _, event in planned)
    assert plan_of(lines) == plan
    assert len(lines) == len(plan.events)
    used = [0] * len(lines)
    for written, event in asked:
        try:
            counts = count_lines(lines, parse_event(written))
        except ParameterError:
            with pytest.raises(BudgetError, match="not in the plan"):
                plan.charge(event)
            continue
        after = [a + b for a, b in zip(used, counts, strict=True)]
        fits = all(n <= line["count"] for n, line in zip(after, lines, strict=True))
        assert fits is plan.can_afford(event)
        if fits:
            used, plan = after, plan.charge(event)
    left = {
        parse_event({**line, "count": line["count"] - n}).events()[0]
        for n, line in zip(used, lines, strict=True)
        if n < line["count"]
    }
    assert left == set(plan.remaining)


def test_an_event_of_the_plan_may_be_written_in_another_way(tmp_path):
    store = create_store(str(tmp_path / "budget.db"))
    book, _ = Book.init(store)
    events = [{"type": "gaussian", "std": "30", "count": 3}, {"type": "gaussian", "std": 30, "sensitivity": "1.0"}]
    book.set_policy(OTTO, dataset="d", epsilon="8", delta="1e-6", unit=budget_stores.UNIT)
    events = {"type": "compose", "events": events}
    grant, _ = book.plan(OTTO, name="P", dataset="d", events=events, unit="dataset", delta="1e-6")
    assert [line["count"] for line in grant.plan] == [4]
    assert grant.epsilon == acc.Plan.of(acc.gaussian(std=30, count=4)).epsilon(delta=1e-6).upper
    for written, fits in (({"std": "3e1", "count": 3}, True), ({"std": 30, "sensitivity": 1, "count": 2}, False)):
        assert (
            book.charge(OTTO, grant="P", unit="dataset", event={"type": "gaussian", **written}).state == "committed"
        ) is fits
    assert book.verify(OTTO).ok
    store.close()
