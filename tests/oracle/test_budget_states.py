"""The budget ledger against an exact model in fractions: any order of requests, keys asked again, clocks that jump.

Two grants are to a dataset each, two overlap on the blocks of a third, where a charge is to all of its blocks or none.
Of a local dataset nothing is ever used up, and what was charged is summed beside the cap.
"""

import tempfile
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

import budget_stores
from http_book import serving_books
from privcheck.errors import AuthorityError, IdempotencyError, StateError
from privcheck.ledger import Actor, Book

GRANTS = {  # currency, cap, blocks
    "rho": ("rho", Fraction(1, 3), ()),
    "mu2": ("mu2", Fraction(7, 10), ()),
    "wide": ("rho", Fraction(2, 5), ("b1", "b2", "b3")),
    "late": ("mu2", Fraction(3, 7), ("b2", "b3")),
    "local": ("rho", Fraction(1, 5), ()),
}
HOUR, FIVE_MINUTES = timedelta(hours=1), timedelta(minutes=5)
ANA, OTTO = Actor(name="ana", role="analyst", grants=tuple(GRANTS)), Actor(name="otto", role="officer")
parts = st.fractions(min_value=0, max_value=Fraction(2, 5), max_denominator=40).map(lambda f: Fraction(round(f, 3)))


def dataset_of(grant):
    return "divided" if GRANTS[grant][2] else f"of-{grant}"


class Model:
    """What should be: every charge with its state, grant, cost and end; sums are taken anew each time."""

    def __init__(self):
        self.charges, self.keys, self.time = {}, {}, datetime(2027, 1, 1, tzinfo=UTC)
        self.last = dict.fromkeys(map(dataset_of, GRANTS), self.time)  # row of each dataset

    def free(self, grant):
        """What is left in every place of a grant: a block, or None for the whole."""
        _, cap, blocks = GRANTS[grant]
        return {place: cap - (0 if grant == "local" else held) for place, held in self.held(grant, blocks).items()}

    def held(self, grant, blocks=()):
        mine = [one for one in self.charges.values() if one[0] == grant]
        live = [(places, cost) for _, cost, state, _, places in mine if state != "released"]
        return {b: sum((cost for places, cost in live if b in places), Fraction(0)) for b in blocks or [None]}

    def now(self, grant):
        return max(self.time, self.last[dataset_of(grant)])  # a clock set back is not believed

    def write(self, grant):
        self.last[dataset_of(grant)] = self.now(grant)

    def begin(self, grant):
        """When a reservation begins and ends: by the dataset's time, and by the clock that has written it."""
        now = self.now(grant)
        return now + HOUR, self.time if now - self.time > FIVE_MINUTES else now

    def expired(self, name):
        grant, _, _, (end, began), _ = self.charges[name]
        return end <= self.now(grant) or began + HOUR <= self.time or self.time < began - FIVE_MINUTES


class Machine(RuleBasedStateMachine):
    make = None
    serve = None  # over HTTP, where a body is what a key is for, also one that was refused, until the service ends
    names = Bundle("names")

    def __init__(self):
        super().__init__()
        self.model = Model()
        self.directory = tempfile.TemporaryDirectory()
        self.manager = self.make(Path(self.directory.name))
        self.book, _ = Book.init(self.manager.__enter__(), clock=lambda: self.model.time)
        self.book.set_policy(OTTO, dataset="divided", epsilon=9, delta="1e-6", unit=budget_stores.UNIT, remainder="mu2")
        self.book.add_blocks(OTTO, "divided", ["b3", "b1", "b2"], disjoint_users="by the month of signing up")
        self.book.set_policy(OTTO, dataset="of-local", epsilon=9, delta="1e-6", unit=budget_stores.unit_of("local"))
        for name, (unit, cap, blocks) in GRANTS.items():
            more = {"dataset": dataset_of(name), "blocks": blocks}
            budget_stores.grant(self.book, OTTO, name=name, currency=unit, cap=cap, delta="1e-6", **more)
        if self.serve is not None:
            self.book = self.serve(self.book, (ANA, OTTO))

    def teardown(self):
        self.manager.__exit__(None, None, None)
        self.directory.cleanup()

    @rule(
        target=names, grant=st.sampled_from(sorted(GRANTS)), part=parts, key=st.sampled_from("abcd"),
        keep=st.booleans(), chosen=st.sets(st.sampled_from(["b1", "b2", "b3"])),
    )  # fmt: skip
    def spend(self, grant, part, key, keep, chosen):
        unit, _, blocks = GRANTS[grant]
        places = sorted(chosen & set(blocks)) or blocks or [None]
        more = {"blocks": sorted(chosen & set(blocks), reverse=True)} if chosen & set(blocks) else {}
        action = self.book.reserve if keep else self.book.charge
        asked, event = (grant, part, keep, tuple(places)), {"type": "gaussian", unit: f"{float(part)}"}
        if self.serve is not None:
            more = {"blocks": places} if blocks else {}
        said, before = key, self.model.keys.get(key)  # a key is its actor's, whatever the grant
        if before is not None and before[0] != asked:
            with pytest.raises(IdempotencyError):
                action(ANA, grant=grant, unit="dataset", event=event, key=said, **more)
            return before[1].charge
        decision = action(ANA, grant=grant, unit="dataset", event=event, key=said, **more)
        if before is not None:
            assert decision == before[1]
            return decision.charge
        if part > min(self.model.free(grant)[place] for place in places):
            assert (decision.state, decision.charge, decision.receipt) == ("refused", None, None)
            return "none"
        assert decision.state == ("reserved" if keep else "committed")
        end = self.model.begin(grant)
        self.model.write(grant)
        self.model.charges[decision.charge] = (grant, part, decision.state, end, places)
        self.model.keys[key] = (asked, decision)
        assert Fraction(decision.to_dict()["remaining"]) == min(self.model.free(grant).values())
        return decision.charge

    @rule(name=names, actor=st.sampled_from([ANA, OTTO]), commit=st.booleans())
    def end(self, name, actor, commit):
        if name == "none":
            return
        grant, part, state, end, places = self.model.charges[name]
        wanted = "committed" if commit else "released"

        def act():
            return self.book.commit(actor, name) if commit else self.book.release(actor, name, evidence="it never ran")

        if state not in ("reserved", wanted):
            with pytest.raises(StateError):
                act()
        elif state == "reserved" and not commit and actor is ANA and self.model.expired(name):
            with pytest.raises(AuthorityError):
                act()
        else:
            assert act().state == wanted
            if state == "reserved":
                self.model.write(grant)
            self.model.charges[name] = (grant, part, wanted, end, places)

    @rule(seconds=st.sampled_from([1, 3599, 3601, -7200, 10**8]))
    def jump(self, seconds):
        self.model.time += timedelta(seconds=seconds)

    @rule(name=names)
    def look(self, name):
        if name != "none" and self.serve is None:
            found = self.book.find_charge(ANA, name)
            assert found.expired == (found.state == "reserved" and self.model.expired(name))

    @invariant()
    def what_is_left_is_exact(self):
        shown = {g["name"]: g for one in self.book.show(ANA)["datasets"] for g in one["grants"]}
        for name in GRANTS:
            free = self.model.free(name)
            assert Fraction(shown[name]["remaining"]) == min(free.values())
            told = {block: Fraction(one["free"]) for block, one in shown[name]["balance"]["blocks"].items()}
            assert told == {block: left for block, left in free.items() if block is not None}
        assert Fraction(shown["local"]["balance"]["recorded"]["amount"]) == self.model.held("local")[None]

    @rule()
    def check(self):
        assert self.book.verify(ANA, receipts=[d.receipt for _, d in self.model.keys.values()]).ok


@pytest.mark.parametrize("kind", sorted(budget_stores.STORES))
def test_the_ledger_is_its_model(kind):
    machine = type("Machine", (Machine,), {"make": staticmethod(budget_stores.STORES[kind])})
    examples = 25 if kind == "sqlite" else 8  # every one is a ledger of its own
    limits = settings(
        max_examples=examples, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=limits)


@pytest.mark.parametrize("kind", sorted(budget_stores.STORES))
def test_the_ledger_over_http_is_its_model(kind, tmp_path):
    with serving_books(tmp_path) as serve:
        made = {"make": staticmethod(budget_stores.STORES[kind]), "serve": staticmethod(serve)}
        limits = settings(
            max_examples=8 if kind == "sqlite" else 4, stateful_step_count=25, deadline=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        run_state_machine_as_test(type("Machine", (Machine,), made), settings=limits)
